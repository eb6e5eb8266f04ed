"""Fit times of means and histograms beside scikit-learn and numpy, in one run.

Usage: OPENBLAS_NUM_THREADS=1 python docs/benchmarks/transformers.py [rows] [columns] [repeats]

Medians of `repeats` (3) processor times, on 1e7 x 10 float64 by default, bounds declared. The last
line is the memory beyond the table, at its highest.
"""

import resource
import sys
import time

import numpy as np
from sklearn.preprocessing import StandardScaler

from skdp import DPHistogramTransformer, DPMeanTransformer, DPStandardScaler

BOUNDS = (-5.0, 5.0)


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median_time(run, repeats):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return sorted(times)[repeats // 2]


def numpy_histograms(X, n_bins):
    return [np.histogram(X[:, j], n_bins, BOUNDS) for j in range(X.shape[1])]


def main():
    n, d, repeats = (
        int(float(sys.argv[i])) if len(sys.argv) > i else default
        for i, default in ((1, 1e7), (2, 10), (3, 3))
    )
    X = np.random.default_rng(0).normal(size=(n, d))
    before = peak_megabytes()
    ours = {
        "mean": lambda: DPMeanTransformer(bounds=BOUNDS).fit(X),
        "mean and variance": lambda: DPStandardScaler(bounds=BOUNDS).fit(X),
    }
    theirs = {
        "mean": lambda: StandardScaler(with_std=False).fit(X),
        "mean and variance": lambda: StandardScaler().fit(X),
    }
    for n_bins in (64, 1000):
        params = {"bounds": BOUNDS, "edges": "uniform", "n_bins": n_bins}
        name = f"histogram, {n_bins} bins"
        ours[name] = lambda params=params: DPHistogramTransformer(**params).fit(X)
        theirs[name] = lambda n_bins=n_bins: numpy_histograms(X, n_bins)
    times = {name: median_time(run, repeats) for name, run in ours.items()}
    memory = peak_megabytes() - before
    print(f"{n} x {d} float64            skdp      scikit-learn or numpy   ratio")
    for name, run in theirs.items():
        other = median_time(run, repeats)
        print(f"{name:25} {times[name]:7.2f} s   {other:14.2f} s   {times[name] / other:12.2f}")
    print(f"memory beyond the table: {memory:.1f} MB")


if __name__ == "__main__":
    main()
