"""
Rows that stay on a cluster
===========================

For a dask array, an estimator asks the workers for sums over their chunks. The rows stay on the
workers. The accountant stays in this process, which draws the noise once. Two workers on this
machine are the cluster. With workers on other hosts only the address changes, and connections must
be encrypted.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp import ChunkedArray, DPLogisticRegression, DPStandardScaler, PrivacyAccountant

try:
    import dask.array as da
    from dask.distributed import Client, SubprocessCluster
    from tornado.iostream import IOStream
except ImportError:
    da = None

plt.style.use("tableau-colorblind10")
N_COLUMNS, CHUNK = 20, 25_000
sizes = [CHUNK * n for n in (2, 4, 8)]

# %%
# The table
# ---------
#
# Each chunk is simulated by the worker that computes it. It must contain the same rows each time,
# so the seed of its random numbers is computed from its position.


def rows(block_info=None):
    """Return the rows of a chunk; without `block_info`, those of the first chunk."""
    first = block_info[None]["array-location"][0][0] if block_info else 0
    return np.random.default_rng(first).uniform(-1, 1, size=(CHUNK, N_COLUMNS))


def labels(table):
    return table[:, 0] + table[:, 1] ** 2 > 0.3


# %%
# The data that this process receives
# -----------------------------------
#
# All bytes from the cluster pass through one tornado class. Labels are arrays in this process: they
# are sent to the workers once per fit.

received = [0]


def counted(stream, buffer, read=IOStream.read_from_fd if da else None):
    n_bytes = read(stream, buffer)
    received[0] += n_bytes or 0
    return n_bytes


def fits(table, y, accountant):
    """Yield names, and models fitted with the same noise each time."""
    kept = {"accountant": accountant, "random_state": 0}
    yield "DPStandardScaler", DPStandardScaler(bounds=(-1, 1), **kept).fit(table)
    model = DPLogisticRegression(data_norm=N_COLUMNS**0.5, **kept)
    yield "DPLogisticRegression", model.fit(table, y)


accountant = PrivacyAccountant(epsilon=6.0, delta=1e-5)
results = {}
if da is None:
    print("dask.distributed is not installed: nothing is sent, and nothing is drawn.")
else:
    IOStream.read_from_fd = counted
    with SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1}) as cluster:
        with Client(cluster) as client:
            client.wait_for_workers(2)
            for size in sizes:
                chunks = ((CHUNK,) * (size // CHUNK), (N_COLUMNS,))
                table = da.map_blocks(rows, chunks=chunks, dtype=float, meta=np.empty((0, 0)))
                here = ChunkedArray([np.asarray(table.blocks[i]) for i in range(size // CHUNK)])
                y = labels(np.asarray(here))
                before = received[0]
                there = {}
                for name, model in fits(table, y, accountant):
                    results.setdefault(name, []).append((received[0] - before) / 1e3)
                    before, there[name] = received[0], model
    # The same chunks of the largest table, in memory.
    alone = dict(fits(here, y, PrivacyAccountant(epsilon=2.0, delta=1e-5)))
    weights = [models["DPLogisticRegression"].coef_ for models in (alone, there)]
    print("the same in memory, to the last bit:", np.array_equal(*weights))
print(accountant.report())

# %%
# **Result:** the table grows (dashed), but the data received hardly grow: sums of 20 columns for
# the scaler, a gradient and a 21 by 21 matrix per step of the solver for the logistic regression,
# and a message or two per chunk and pass.

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
table_sizes = [8 * N_COLUMNS * size / 1e3 for size in sizes]
axes.plot(sizes, table_sizes, color="0.3", linestyle="--", label="the table")
for (name, kilobytes), style in zip(results.items(), ("C0o-", "C1s-"), strict=False):
    axes.plot(sizes, kilobytes, style, label=name)
axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="KB", title="Received from the cluster")
axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
axes.minorticks_off()
axes.legend()
plt.show()
