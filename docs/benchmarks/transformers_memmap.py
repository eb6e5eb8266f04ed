"""Anonymous memory of transformers and statistics on a table that is a mapped file.

Usage: OMP_NUM_THREADS=1 python docs/benchmarks/transformers_memmap.py [rows] [folder]

Writes a float64 table of 10 columns (800 MB for the default of 1e7 rows), fits on it as a
`numpy.memmap`, and deletes it. Anonymous memory as in ``memmap.py``, at its highest, beyond what
was held before the fit. In memory the table would be 80 bytes a row; one column is 8.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from memmap import PeakMemory, anonymous_bytes

from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
)
from skdp.stats import dp_histogram, dp_mean, dp_quantile, estimate_bounds

WIDTH, BLOCK, SPAN = 10, 100_000, (-5.0, 5.0)


def write_table(path, n_rows):
    rng = np.random.default_rng(0)
    X = np.memmap(path, np.float64, "w+", shape=(n_rows, WIDTH))
    for start in range(0, n_rows, BLOCK):
        X[start : start + BLOCK] = rng.normal(size=(min(BLOCK, n_rows - start), WIDTH))
    X.flush()


def calls(X):
    estimators = (
        DPMeanTransformer(bounds=SPAN),
        DPStandardScaler(bounds=SPAN),
        DPStandardScaler(),
        DPHistogramTransformer(bounds=SPAN, edges="uniform", n_bins=64),
        DPHistogramTransformer(bounds=SPAN, n_bins=64),
        DPKBinsDiscretizer(bounds=SPAN),
        DPPCA(data_norm=5.0),
        DPSimpleImputer(bounds=SPAN),
        DPMinMaxScaler(bounds=SPAN),
        DPRobustScaler(bounds=SPAN),
        DPQuantileTransformer(bounds=SPAN),
    )
    for estimator in estimators:
        yield str(estimator), lambda estimator=estimator: estimator.fit(X)
    yield "dp_mean", lambda: dp_mean(X, bounds=SPAN, axis=0)
    yield "dp_histogram", lambda: dp_histogram(X, bins=1000, range=SPAN, axis=0)
    yield "estimate_bounds", lambda: estimate_bounds(X, axis=0)
    yield "dp_quantile", lambda: dp_quantile(X, [0.25, 0.5, 0.75], bounds=SPAN, axis=0)


def main(n_rows, parent):
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        path = Path(folder) / "table.raw"
        write_table(path, n_rows)
        X = np.memmap(path, np.float64, "r", shape=(n_rows, WIDTH))
        for _, call in calls(X[:1000]):
            call()
        print(f"{n_rows} x {WIDTH} float64, {X.nbytes / 1e6:.0f} MB")
        for name, call in calls(X):
            before, start = anonymous_bytes(), time.process_time()
            with PeakMemory() as memory:
                call()
            used, seconds = memory.peak - before, time.process_time() - start
            print(f"  {name:75} {seconds:6.2f} s, {used / 1e6:6.1f} MB more", flush=True)


if __name__ == "__main__":
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    main(rows, sys.argv[2] if len(sys.argv) > 2 else None)
