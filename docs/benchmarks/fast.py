"""Processor time of fits with the loops of NumPy and with compiled ones, in one run.

Usage: python docs/benchmarks/fast.py [repetitions [name ...]]

Each model is fitted with both versions of the loops in turn (the environment variable
``SKDP_LOOPS``), after a first fit of each that does not count: it imports numba and loads or
compiles the loops. The table has medians of seconds of the process, which other work on the machine
hardly touches, their ratio, and whether the released values are equal to the last bit. The last
lines are a fit with two threads (`joblib.parallel_config`) beside one with one thread, and what
numba's import and first fit cost a new process. Adult is read from the folder that ``SKDP_DATA``
names. Without numba only one column is printed.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from joblib import parallel_config

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPHistogramNB,
    DPQuantileTransformer,
    DPRandomForestClassifier,
)
from skdp.stats import dp_histogram

VERSIONS = ["numpy", "numba"] if find_spec("numba") else ["numpy"]
FIRST_FIT = """
import time
start = time.process_time()
import numpy as np, skdp
X = np.random.default_rng(0).normal(size=(30_000, 10))
imported = time.process_time()
skdp.DPAdditiveClassifier(1.0, delta=1e-6, classes=[0, 1], random_state=0).fit(X, (X[:, 0] > 0) * 1)
first = time.process_time()
skdp.DPAdditiveClassifier(1.0, delta=1e-6, classes=[0, 1], random_state=0).fit(X, (X[:, 0] > 0) * 1)
print(first - imported - (time.process_time() - first))
"""


class Histogram:
    """`dp_histogram` as an estimator."""

    def fit(self, X, y):
        self.values_ = dp_histogram(X, range=(-4, 4), bins=50, axis=0, random_state=0)[0]
        return self


def simulated(n_rows, n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n_rows) > 0).astype(int)


def adult():
    frame = pd.read_csv(os.path.join(os.environ["SKDP_DATA"], "adult_train.csv.gz"))
    return frame.drop(columns="target"), frame["target"]


def cases():
    """Yield the name, the table and the model of each case."""
    two = {"classes": [0, 1], "random_state": 0}
    if "SKDP_DATA" in os.environ:
        X, y = adult()
        words = [name for name in X if X[name].dtype.kind not in "if"]
        known = {name: sorted(X[name].dropna().unique()) for name in words}
        classes = {"classes": sorted(set(y)), "random_state": 0}
        yield "additive, Adult", X, y, DPAdditiveClassifier(1.0, categories=known, **classes)
        found = DPAdditiveClassifier(1.0, delta=1e-6, categories="auto", **classes)
        yield "additive, Adult, found categories", X, y, found
    yield "additive, 1e3 x 8", *simulated(1_000, 8), DPAdditiveClassifier(1.0, **two)
    table = simulated(100_000, 15)
    yield "additive, 1e5 x 15", *table, DPAdditiveClassifier(1.0, **two)
    yield (
        "additive, 1e5 x 15, numbers",
        *table,
        DPAdditiveRegressor(1.0, target_bounds=(0, 1), random_state=0),
    )
    yield "forest, 1e5 x 15", *table, DPRandomForestClassifier(1.0, **two)
    yield "histogram naive Bayes, 1e5 x 15", *table, DPHistogramNB(1.0, **two)
    yield "quantiles, 1e5 x 15", *table, DPQuantileTransformer(1.0, random_state=0)
    yield "histograms, 1e5 x 15", *table, Histogram()
    yield "additive, 1e6 x 15", *simulated(1_000_000, 15), DPAdditiveClassifier(1.0, **two)


def seconds(model, X, y, version):
    os.environ["SKDP_LOOPS"] = version
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def released(model):
    """Return the bits of the shape functions, or of all released arrays."""
    shapes = getattr(model, "shape_functions_", None)
    if shapes is not None:
        return b"".join(shape.values.tobytes() for shape in shapes)
    values = {k: v for k, v in vars(model).items() if k[-1] == "_" and isinstance(v, np.ndarray)}
    return b"".join(values[name].tobytes() for name in sorted(values))


def compare(name, X, y, model, repetitions):
    times = {version: [] for version in VERSIONS}
    bits = set()
    for repetition in range(repetitions + 1):
        for version in VERSIONS:
            took = seconds(model, X, y, version)
            bits.add(released(model))
            if repetition:
                times[version].append(took)
    medians = [float(np.median(times[version])) for version in VERSIONS]
    cells = [f"{value:.3g}" for value in medians]
    if len(medians) == 2:
        cells += [f"{medians[0] / medians[1]:.2f}", "yes" if len(bits) == 1 else "NO"]
    print("| " + " | ".join([name, *cells]) + " |", flush=True)


def compare_threads(repetitions):
    X, y = simulated(1_000_000, 15)
    # A hundredth of epsilon takes fewer of the same steps.
    model = DPAdditiveClassifier(0.01, classes=[0, 1], random_state=0)
    times = {1: [], 2: []}
    bits = set()
    for repetition in range(repetitions + 1):
        for n_jobs in times:
            with parallel_config(n_jobs=n_jobs):
                wall = time.perf_counter()
                took = seconds(model, X, y, VERSIONS[-1])
                wall = time.perf_counter() - wall
            bits.add(released(model))
            if repetition:
                times[n_jobs].append((took, wall))
    one, two = (np.median(times[n_jobs], axis=0) for n_jobs in times)
    print(f"two threads, 1e6 x 15: {two[0] / one[0]:.2f} of the processor time of one,", end=" ")
    print(f"{one[1] / two[1]:.2f} times faster, same bits: {len(bits) == 1}")


def main():
    warnings.simplefilter("ignore")
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    names = sys.argv[2:]
    print(
        "| fit | "
        + " | ".join(VERSIONS)
        + (" | ratio | same bits |" if len(VERSIONS) == 2 else " |")
    )
    print("|---" * (len(VERSIONS) + 1 + 2 * (len(VERSIONS) == 2)) + "|")
    for name, X, y, model in cases():
        if not names or any(part in name for part in names):
            compare(name, X, y, model, repetitions)
    if not names or "threads" in names:
        compare_threads(repetitions)
    if len(VERSIONS) == 2 and (not names or "import" in names):
        os.environ["SKDP_LOOPS"] = "numba"
        runs = [
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", FIRST_FIT],
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(3)
        ]
        print(
            f"import of numba and loading of loops: {min(float(run.stdout) for run in runs):.2f} s"
        )


if __name__ == "__main__":
    main()
