"""
Private models of a table that stays on disk
============================================

A table in a file is read block by block through a memory map: whatever its size, a fit keeps only a
few blocks in memory. The table here is simulated, 0.4 GB in a temporary file that is deleted
afterwards; ``python examples/plot_memmap.py 4`` uses 4 GB.
"""

import multiprocessing
import sys
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPLogisticRegression, DPSGDClassifier

plt.style.use("tableau-colorblind10")
gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 0.4
N_COLUMNS, BLOCK = 100, 50_000
n_rows = int(gigabytes * 1e9 / (4 * N_COLUMNS))

# %%
# Memory is that of the process without file pages: ``RssAnon`` in ``/proc/self/status`` on
# Linux. The operating system may reclaim mapped pages at any time. Each fit runs in a separate
# process, so it does not inherit memory from the previous fit.


def anonymous_megabytes():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1e3


def measure(estimator, X, y):
    """Fit, and return the peak memory, measured every few milliseconds, and the time."""
    looks, done = [anonymous_megabytes()], threading.Event()

    def look():
        while not done.wait(0.005):
            looks.append(anonymous_megabytes())

    watch = threading.Thread(target=look)
    watch.start()
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    done.set()
    watch.join()
    return max(looks), seconds


def measure_apart(path, estimator, n_part):
    X = np.memmap(path, np.float32, "r", shape=(n_rows, N_COLUMNS))
    return measure(estimator, X[:n_part], y[:n_part])


# %%
# The file
# --------


def write_table(path):
    """Write rows of norm 1 and return their labels."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_COLUMNS)
    X = np.memmap(path, np.float32, "w+", shape=(n_rows, N_COLUMNS))
    y = np.empty(n_rows, dtype=np.int8)
    for start in range(0, n_rows, BLOCK):
        block = rng.standard_normal((min(BLOCK, n_rows - start), N_COLUMNS), dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        X[start : start + len(block)] = block
        y[start : start + len(block)] = block @ weights + 0.5 * rng.normal(size=len(block)) > 0
    X.flush()
    return y


# %%
# Fits to growing parts of the file
# ---------------------------------
#
# `DPLogisticRegression` reads all rows in every pass. `DPSGDClassifier` reads ten epochs of Poisson
# batches of 8192 rows.

estimators = [
    DPLogisticRegression(1.0, C=0.01),
    DPSGDClassifier(1.0, sampling="poisson", batch_size=8192, max_iter=10),
]
parts = [n_rows * share // 8 for share in (1, 2, 4, 8)]
sizes = np.array(parts) * N_COLUMNS * 4 / 1e6
results = {}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "table.raw"
    y = write_table(path)
    idle = anonymous_megabytes()
    for estimator in estimators:
        name = type(estimator).__name__
        for part, size in zip(parts, sizes, strict=True):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                megabytes, seconds = pool.apply(measure_apart, (path, estimator, part))
            print(f"{name:<20}{size:5.0f} MB: {seconds:5.1f} s, {megabytes:4.0f} MB")
            results.setdefault(name, []).append((megabytes, seconds))

# %%
# **Result:** on the left, memory stays near that of the process before the fit (dotted), while the
# file (dashed) grows: fits keep a few blocks, and a few numbers per row, such as its label. On the
# right, time grows with the number of rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.8), layout="constrained")
left.plot(sizes, sizes, color="0.3", linestyle="--", label="size of the file")
for (name, values), style in zip(results.items(), ("C0o-", "C1s-"), strict=True):
    megabytes, seconds = np.transpose(values)
    left.plot(sizes, megabytes, style, label=name)
    right.plot(sizes, seconds, style)
left.axhline(idle, color="0.6", linestyle=":", label="process before the fits")
left.set(ylim=(0, None), xlabel="rows read, MB", ylabel="RssAnon, MB", title="Peak memory")
right.set(ylim=(0, None), xlabel="rows read, MB", ylabel="seconds", title="Time of a fit")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
