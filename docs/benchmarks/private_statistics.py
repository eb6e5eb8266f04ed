"""Private histograms, quantiles, bounds and standardization against numpy and scikit-learn.

Usage: python docs/benchmarks/private_statistics.py [rows]

A table of 10 normal columns, 1e7 rows by default (800 MB). Medians of three runs each, in processor
time, since one thread does all the work; the ratio is what the private function takes over what the
public one takes, column by column for numpy.
"""

import statistics
import sys
import time

import numpy as np
from sklearn.preprocessing import StandardScaler

from skdp import DPStandardScaler
from skdp.stats import dp_histogram, dp_mean, dp_quantile, estimate_bounds

COLUMNS, RUNS, SPAN = 10, 3, (-4.0, 4.0)
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]


def seconds(call):
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def comparisons(X):
    """Yield a name, the private call and the public one."""
    for bins in (64, 1000):
        yield (
            f"histogram, {bins} bins",
            lambda bins=bins: dp_histogram(X, bins=bins, range=SPAN, axis=0),
            lambda bins=bins: [np.histogram(column, bins, SPAN) for column in X.T],
        )
    yield (
        "five quantiles",
        lambda: dp_quantile(X, QUANTILES, bounds=SPAN, axis=0),
        lambda: [np.quantile(column, QUANTILES) for column in X.T],
    )
    yield "mean", lambda: dp_mean(X, bounds=SPAN, axis=0), lambda: X.mean(axis=0)
    yield (
        "DPStandardScaler",
        lambda: DPStandardScaler(bounds=SPAN).fit(X),
        lambda: StandardScaler().fit(X),
    )
    yield (
        "bounds (minimum, maximum)",
        lambda: estimate_bounds(X, axis=0),
        lambda: (X.min(0), X.max(0)),
    )


def main(rows):
    X = np.random.default_rng(0).normal(size=(rows, COLUMNS))
    print(f"| {rows:,} x {COLUMNS} | private, s | public, s | ratio |\n|---|---|---|---|")
    for name, private, public in comparisons(X):
        ours, theirs = seconds(private), seconds(public)
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7)
