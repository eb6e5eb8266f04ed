"""Fits on one machine: how much faster two cores are than one, and how much memory files take.

Usage: python docs/benchmarks/one_machine.py speed [rows [columns [seconds [kind [name ...]]]]]
       python docs/benchmarks/one_machine.py memory [rows [columns [kind [name ...]]]]

The kind of files is npy or parquet. `speed` fits each estimator by one thread, by two and by two
processes in turn (`joblib.parallel_config`), on an array in memory and on a folder of files, and
prints the medians of seconds, and how many times faster two are. Other programs may use the machine
meanwhile: `others` is the share of its processors that they took during the fits that count, which
are the quarter in which it was least, of four or more after a first one; with 0 seconds this is the
only one. A name may end in ", files" or ", memory" for these alone. `memory` fits each estimator to
a folder of files in a process of its own, by one thread, by two, and by two with jemalloc in place
of Arrow's default allocator, and prints the peak of its memory in MB, the interpreter, its
libraries and the labels (a byte a row) included. Linear algebra has one thread.

The second additive model has a hundredth of epsilon, and so takes fewer of the same steps: at ten
million rows a fit of the first takes minutes, in which other programs may come and go.

The environment variable `ONE_MACHINE_FOLDER` names a folder in which files are kept for the next
call. With `ONE_MACHINE_SECONDS`, `memory` stops a fit after so many, and says "stopped": the peak
is the one until then.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from joblib import parallel_config

import skdp
from skdp import ChunkedArray
from skdp.stats import dp_histogram

N_STEPS = 20
FILES = 40
BETWEEN = (-4, 4)
RUNS = 40
CONFIGS = [{"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": 2, "backend": "loky"}]
PROCESSES = [("1", {}), ("2", {}), ("2", {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"})]


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
        "DPAdditiveClassifier, epsilon 0.01": skdp.DPAdditiveClassifier(
            epsilon=0.01, bounds=BETWEEN
        ),
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
    np.save(folder / "labels", np.concatenate(labels))


@contextmanager
def written(*table):
    """Write files and give their folder, which is kept where the environment names one."""
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get("ONE_MACHINE_FOLDER")
        if kept:
            folder = Path(kept) / "-".join(map(str, table))
        folder = Path(folder)
        if not (folder / "labels.npy").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, *table)
        yield folder


def read(folder):
    paths = [path for path in sorted(Path(folder).iterdir()) if path.stem != "labels"]
    return ChunkedArray(paths), np.load(Path(folder) / "labels.npy")


def processors():
    """Return the seconds that all processors were busy, and had in all."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    a_second = os.sysconf("SC_CLK_TCK")
    return np.array([sum(ticks) - ticks[3] - ticks[4], sum(ticks)]) / a_second


def own_seconds():
    """Return the seconds that processors were busy with this process and those that it started."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        # A thread, or a process, may end meanwhile.
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                ticks = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
                found += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return found + time.process_time()


def fit(estimator, X, y, **config):
    """Return seconds, and the share of the processors that others took."""
    before, start, own = processors(), time.perf_counter(), own_seconds()
    with parallel_config(**config):
        estimator.fit(X, y)
    seconds, own = time.perf_counter() - start, own_seconds() - own
    busy, had = processors() - before
    return seconds, max(0.0, busy - own) / max(had, 0.01)


def compare(estimator, X, y, patience, configs):
    """Return medians of the runs that others disturbed least, for each configuration."""
    runs = [[fit(estimator, X, y, **config)] for config in configs]
    if patience:
        runs, end = [[] for _ in configs], time.monotonic() + patience
        while len(runs[-1]) < 4 or (time.monotonic() < end and len(runs[-1]) < RUNS):
            for config, measured in zip(configs, runs, strict=True):
                measured.append(fit(estimator, X, y, **config))
    best = [sorted(each, key=lambda run: run[1])[: len(each) // 4 + 1] for each in runs]
    return [np.median(each, axis=0) for each in best]


def speed(n_rows=2_000_000, n_columns=20, patience=20, kind="npy", *names):
    with written(n_rows, n_columns, kind, FILES) as folder:
        files, y = read(folder)
        print(f"rows {n_rows}, columns {n_columns}, {FILES} files of {kind}")
        print("| | one | two threads | times as fast | two processes | times as fast | others |")
        print("|---|---|---|---|---|---|---|")
        for where, n_configs in (("memory", 2), ("files", 3)):
            X = np.asarray(files) if where == "memory" else files
            for name, estimator in estimators(n_rows).items():
                if not names or not {name, f"{name}, {where}"}.isdisjoint(names):
                    found = compare(estimator, X, y, patience, CONFIGS[:n_configs])
                    cells = [f"{found[0][0]:.2f}"]
                    for seconds, _ in found[1:]:
                        cells += [f"{seconds:.2f}", f"{found[0][0] / seconds:.2f}"]
                    cells += ["", ""] * (3 - n_configs)
                    cells.append(", ".join(f"{others:.0%}" for _, others in found))
                    print(f"| {name}, {where} | {' | '.join(cells)} |", flush=True)
            del X


def memory(n_rows=10_000_000, n_columns=20, kind="npy", *names):
    with written(n_rows, n_columns, kind, FILES) as folder:
        print(f"rows {n_rows}, columns {n_columns}, {FILES} files of {kind}")
        print("| | MB, one thread | seconds | MB, two | seconds | MB, two, jemalloc | seconds |")
        print("|---|---|---|---|---|---|---|")
        for name in names or ("imports", *estimators(n_rows)):
            cells = []
            for n_jobs, settings in PROCESSES:
                terms = [sys.executable, __file__, "peak", folder, name, n_jobs]
                own = {"text": True, "env": os.environ | settings}
                cells.append(subprocess.check_output(terms, **own).strip())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def peak(folder, name, n_jobs):
    X, y = read(folder)
    start, limit = time.perf_counter(), os.environ.get("ONE_MACHINE_SECONDS")

    def say(word=""):
        # Of this program alone: what `resource` says may be its parent's.
        most = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
        print(f"{int(most) / 1024:.0f} | {time.perf_counter() - start:.1f}{word}", flush=True)
        os._exit(0)

    if limit:
        threading.Timer(float(limit), say, [", stopped"]).start()
    if name != "imports":
        fit(estimators(len(X))[name], X, y, n_jobs=int(n_jobs))
    say()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    calls = {"speed": speed, "memory": memory, "peak": peak}
    terms = [int(each) if each.isdigit() and i < 3 else each for i, each in enumerate(sys.argv[2:])]
    calls[sys.argv[1]](*terms)
