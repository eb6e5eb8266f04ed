"""Fits on a dask array whose chunks are files that two workers read: what travels, and how often.

Usage: python docs/benchmarks/clusters.py [rows [columns [chunks [name ...]]]]
       python docs/benchmarks/clusters.py workers [rows [columns [chunks [name ...]]]]

Scheduler and workers are processes of this machine. For each estimator it prints what the client
received and sent (KB), how often each chunk was read (the largest and the smallest number), by how
much the client's peak memory grew (MB), the seconds of the fit and of the same one on a
`ChunkedArray` of the same files in this process, and whether both released the same to the last
bit. One thread each does linear algebra: what more threads round otherwise is not compared.
`workers` fits on one worker and on two, three times each, and prints the medians of rows a second
and of bytes a row that the client received and sent.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, SubprocessCluster
from tornado.iostream import IOStream

from skdp import (
    DPPCA,
    ChunkedArray,
    DPAdditiveClassifier,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKMeans,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    DPRobustScaler,
    DPSGDClassifier,
    DPStandardScaler,
)
from skdp.stats import dp_histogram

SIZES = 2_000_000, 20, 10
N_STEPS = 20


def statistic(X, y):
    return dp_histogram(X, range=(-4, 4), bins=50, axis=0, random_state=0)


def fitted(estimator, X, y):
    model = estimator.set_params(random_state=0).fit(X, y)
    return {k: v for k, v in vars(model).items() if k[-1] == "_" and k != "privacy_"}


def fits(n_rows):
    estimators = {
        "DPStandardScaler": DPStandardScaler(bounds="auto"),
        "DPHistogramTransformer, uniform": DPHistogramTransformer(edges="uniform", bounds=(-4, 4)),
        "DPRobustScaler": DPRobustScaler(bounds=(-4, 4)),
        "DPPCA": DPPCA(data_norm=6.0),
        "DPRidge, statistics": DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics"),
        "DPGaussianNB": DPGaussianNB(bounds=(-4, 4)),
        "DPKMeans": DPKMeans(n_clusters=5, bounds=(-4, 4)),
        "DPSGDClassifier, all rows": DPSGDClassifier(max_iter=N_STEPS, batch_size=n_rows),
        "DPSGDClassifier, Poisson": DPSGDClassifier(max_iter=1, batch_size=n_rows // N_STEPS),
        "DPLogisticRegression": DPLogisticRegression(data_norm=6.0),
        "DPLinearSVC": DPLinearSVC(data_norm=6.0, mechanism="output"),
        "DPLogisticRegression, gradient": DPLogisticRegression(data_norm=6.0, mechanism="gradient"),
        "DPHistogramNB": DPHistogramNB(bounds=(-4, 4)),
        "DPAdditiveClassifier": DPAdditiveClassifier(bounds=(-4, 4)),
        "DPDecisionTreeClassifier": DPDecisionTreeClassifier(bounds=(-4, 4)),
    }
    named = {name: partial(fitted, estimator) for name, estimator in estimators.items()}
    return {"dp_histogram": statistic} | named


def write(folder, n_rows, n_columns, n_chunks):
    """Write the chunks, and return their paths and the labels."""
    rng, paths, labels = np.random.default_rng(0), [], []
    direction = rng.normal(size=n_columns)
    for number, part in enumerate(np.array_split(np.arange(n_rows), n_chunks)):
        X = rng.normal(size=(len(part), n_columns))
        labels.append(X @ direction + rng.normal(size=len(part)) > 0)
        paths.append(folder / f"{number}.npy")
        np.save(paths[-1], X)
    return paths, np.concatenate(labels).astype(int)


def read(path):
    with open(f"{path}.reads", "ab") as reads:
        reads.write(b".")
    return np.load(path)


class Traffic:
    """What this process receives and sends by way of tornado."""

    received = sent = 0

    def count(self):
        receive, send = IOStream.read_from_fd, IOStream.write_to_fd

        def received(stream, buffer):
            n = receive(stream, buffer)
            self.received += n or 0
            return n

        def sent(stream, data):
            n = send(stream, data)
            self.sent += n
            return n

        IOStream.read_from_fd, IOStream.write_to_fd = received, sent


def memory(name):
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


def measure(fit, lazy, paths, y, traffic):
    reads = [Path(f"{path}.reads") for path in paths]
    for each in reads:
        each.write_bytes(b"")
    Path("/proc/self/clear_refs").write_text("5")
    received, sent, resident = traffic.received, traffic.sent, memory("VmRSS")
    start = time.perf_counter()
    there = fit(lazy, y)
    seconds = time.perf_counter() - start
    received, sent = traffic.received - received, traffic.sent - sent
    grown, passes = memory("VmHWM") - resident, [each.stat().st_size for each in reads]
    start = time.perf_counter()
    here = fit(ChunkedArray(paths), y)
    alone = time.perf_counter() - start
    return (
        f"{received / 1024:.0f} | {sent / 1024:.0f} | {max(passes)}, {min(passes)} | {grown:.0f} | "
        f"{seconds:.1f} | {alone:.1f} | {'yes' if same(there, here) else 'NO'}"
    )


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype.kind == "O":
        return same(one.tolist(), other.tolist())
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return one == other or repr(one) == repr(other)


@contextmanager
def cluster(folder, sizes, n_workers=2):
    """Yield a dask array of files, their paths and the labels, where workers are ready."""
    paths, y = write(Path(folder), *sizes)
    options = {"n_workers": n_workers, "worker_kwargs": {"nthreads": 1}}
    with SubprocessCluster(**options) as local, Client(local) as client:
        client.wait_for_workers(n_workers)
        chunks = [
            da.from_delayed(dask.delayed(read)(path), np.load(path, mmap_mode="r").shape, float)
            for path in paths
        ]
        lazy = da.concatenate(chunks)
        # What is imported is imported once.
        statistic(lazy, y)
        yield lazy, paths, y


def chosen(names, sizes):
    return {name: fit for name, fit in fits(sizes[0]).items() if not names or name in names}


def travels(names, sizes, traffic):
    with tempfile.TemporaryDirectory() as folder, cluster(folder, sizes) as (lazy, paths, y):
        print("| | received | sent | passes | memory | seconds | in memory | same |")
        print("|---|---|---|---|---|---|---|---|")
        for name, fit in chosen(names, sizes).items():
            print(f"| {name} | {measure(fit, lazy, paths, y, traffic)} |", flush=True)


def workers(names, sizes, traffic):
    found = {name: [] for name in chosen(names, sizes)}
    for n_workers in (1, 2):
        with (
            tempfile.TemporaryDirectory() as folder,
            cluster(folder, sizes, n_workers) as (lazy, _, y),
        ):
            for name, fit in chosen(names, sizes).items():
                seconds, before = [], traffic.received + traffic.sent
                for _ in range(3):
                    start = time.perf_counter()
                    fit(lazy, y)
                    seconds.append(time.perf_counter() - start)
                moved = (traffic.received + traffic.sent - before) / (3 * sizes[0])
                found[name] += [f"{sizes[0] / np.median(seconds):,.0f}", f"{moved:.2f}"]
    print("| | rows a second, 1 worker | bytes a row | rows a second, 2 | bytes a row |")
    print("|---|---|---|---|---|")
    for name, cells in found.items():
        print(f"| {name} | {' | '.join(cells)} |")


def main(arguments):
    called = workers if arguments[:1] == ["workers"] else travels
    arguments = arguments[called is workers :]
    given = [int(each) for each in arguments[:3]]
    sizes = *given, *SIZES[len(given) :]
    warnings.simplefilter("ignore")
    traffic = Traffic()
    traffic.count()
    print("rows {}, columns {}, chunks {}".format(*sizes))
    called(arguments[3:], sizes, traffic)


if __name__ == "__main__":
    main(sys.argv[1:])
