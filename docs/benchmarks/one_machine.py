"""Fits on one machine: how much faster two cores are than one, and how much memory files take.

Usage: python docs/benchmarks/one_machine.py speed [rows [columns [seconds [name ...]]]]
       python docs/benchmarks/one_machine.py memory [rows [columns [npy|parquet [name ...]]]]

`speed` fits each estimator by one thread and by two in turn (`joblib.parallel_config`), on an array
in memory and on a memory map of the same file, and prints the medians of seconds and of processor
seconds. Other programs may use the machine meanwhile: `others` is the share of its processors that
they took during the fits that count, which are the quarter in which it was least. `memory` writes a
folder of files, fits each estimator in a process of its own, by one thread and by two, and prints
the peak of its memory in MB, the interpreter and its libraries included. Linear algebra has one
thread.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import parallel_config

import skdp
from skdp.stats import dp_histogram
from skdp.utils import ChunkedArray

N_STEPS = 20
FILES = 40
BETWEEN = (-4, 4)
RUNS = 40


class Histogram:
    """`dp_histogram` as an estimator."""

    def fit(self, X, y):
        dp_histogram(X, range=BETWEEN, bins=50, axis=0, random_state=0)


def estimators(n_rows):
    return {
        "dp_histogram": Histogram(),
        "DPStandardScaler": skdp.DPStandardScaler(bounds="auto"),
        "DPHistogramTransformer": skdp.DPHistogramTransformer(bounds=BETWEEN, edges="uniform"),
        "DPPCA": skdp.DPPCA(data_norm=6.0),
        "DPRidge": skdp.DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics"),
        "DPLogisticRegression": skdp.DPLogisticRegression(data_norm=6.0),
        "DPLogisticRegression, gradient": skdp.DPLogisticRegression(
            data_norm=6.0, mechanism="gradient"
        ),
        "DPGaussianNB": skdp.DPGaussianNB(bounds=BETWEEN),
        "DPSGDClassifier, all rows": skdp.DPSGDClassifier(max_iter=N_STEPS, batch_size=n_rows),
        "DPSGDClassifier, Poisson": skdp.DPSGDClassifier(max_iter=1, batch_size=n_rows // N_STEPS),
        "DPAdditiveClassifier": skdp.DPAdditiveClassifier(bounds=BETWEEN),
    }


def write(folder, n_rows, n_columns, kind, n_files):
    rng = np.random.default_rng(0)
    direction, labels = rng.normal(size=n_columns), []
    for number, part in enumerate(np.array_split(np.arange(n_rows), n_files)):
        X = rng.normal(size=(len(part), n_columns))
        labels.append(X @ direction + rng.normal(size=len(part)) > 0)
        if kind == "npy":
            np.save(folder / f"{number:03d}.npy", X)
        else:
            import pyarrow
            from pyarrow import parquet

            table = pyarrow.table({f"x{j}": X[:, j] for j in range(n_columns)})
            parquet.write_table(table, folder / f"{number:03d}.parquet")
    np.save(folder / "labels", np.concatenate(labels).astype(int))


def read(folder):
    paths = [path for path in sorted(Path(folder).iterdir()) if path.stem != "labels"]
    return ChunkedArray(paths), np.load(Path(folder) / "labels.npy")


def processors():
    """Return the seconds that all processors were busy, and had in all."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    a_second = os.sysconf("SC_CLK_TCK")
    return np.array([sum(ticks) - ticks[3] - ticks[4], sum(ticks)]) / a_second


def fit(estimator, X, y, n_jobs):
    """Return seconds, processor seconds and the share of the processors that others took."""
    before, start, own = processors(), time.perf_counter(), time.process_time()
    with parallel_config(n_jobs=n_jobs):
        estimator.fit(X, y)
    seconds, own = time.perf_counter() - start, time.process_time() - own
    busy, had = processors() - before
    return seconds, own, max(0.0, busy - own) / max(had, 0.01)


def compare(estimator, X, y, patience):
    """Return medians of the runs that others disturbed least, for one thread and for two."""
    runs, end = {1: [], 2: []}, time.monotonic() + patience
    estimator.fit(X, y)
    while len(runs[2]) < 4 or (time.monotonic() < end and len(runs[2]) < RUNS):
        for n_jobs, measured in runs.items():
            measured.append(fit(estimator, X, y, n_jobs))
    best = [sorted(each, key=lambda run: run[2])[: len(each) // 4 + 1] for each in runs.values()]
    return [np.median(each, axis=0) for each in best]


def speed(n_rows=2_000_000, n_columns=20, patience=20, *names):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows, n_columns, "npy", 1)
        mapped, y = read(folder)
        print(f"rows {n_rows}, columns {n_columns}")
        print("| | one | two | times as fast | processor, one | two | others |")
        print("|---|---|---|---|---|---|---|")
        for where, X in (("memory", np.asarray(mapped)), ("file", mapped)):
            for name, estimator in estimators(n_rows).items():
                if not names or name in names:
                    one, two = compare(estimator, X, y, patience)
                    others = f"{one[2]:.0%}, {two[2]:.0%}"
                    print(
                        f"| {name}, {where} | {one[0]:.2f} | {two[0]:.2f} | {one[0] / two[0]:.2f} "
                        f"| {one[1]:.2f} | {two[1]:.2f} | {others} |",
                        flush=True,
                    )


def memory(n_rows=10_000_000, n_columns=20, kind="npy", *names):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows, n_columns, kind, FILES)
        print(f"rows {n_rows}, columns {n_columns}, {FILES} files of {kind}")
        print("| | MB, one thread | seconds | MB, two | seconds |")
        print("|---|---|---|---|---|")
        for name in names or ("imports", *estimators(n_rows)):
            cells = []
            for n_jobs in ("1", "2"):
                terms = [sys.executable, __file__, "peak", folder, name, n_jobs]
                cells.append(subprocess.check_output(terms, text=True).strip())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def peak(folder, name, n_jobs):
    X, y = read(folder)
    start = time.perf_counter()
    if name != "imports":
        fit(estimators(len(X))[name], X, y, int(n_jobs))
    seconds = time.perf_counter() - start
    # Of this program alone: what `resource` says may be its parent's.
    most = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    print(f"{int(most) / 1024:.0f} | {seconds:.1f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    calls = {"speed": speed, "memory": memory, "peak": peak}
    terms = [int(each) if each.isdigit() and i < 3 else each for i, each in enumerate(sys.argv[2:])]
    calls[sys.argv[1]](*terms)
