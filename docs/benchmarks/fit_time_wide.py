"""Fit time of DPLogisticRegression with many features against lbfgs at the same gradient norm.

Usage: python docs/benchmarks/fit_time_wide.py [repetitions]

As in ``fit_time.py``, without an intercept; a sparse row has 50 entries.
"""

import sys
import warnings
from functools import partial

import numpy as np
from fit_time import MECHANISMS, make_table, seconds, tolerance_for
from scipy.sparse import csr_matrix, diags
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp._losses import BinaryLogisticLoss
from skdp.linear_model._output_perturbation import plan_output_perturbation

ENTRIES = 50


def make_sparse(n, d):
    rng = np.random.default_rng(0)
    ends = np.arange(0, n * ENTRIES + 1, ENTRIES)
    X = csr_matrix((np.ones(n * ENTRIES), rng.integers(d, size=n * ENTRIES), ends), shape=(n, d))
    X = csr_matrix(diags(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    return X, (rng.random(n) < expit(X @ rng.normal(scale=5.0, size=d))).astype(int)


TABLES = ((make_table, 5000, 5000), (make_sparse, 50_000, 5000), (make_sparse, 50_000, 20_000))


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    warnings.simplefilter("ignore", ConvergenceWarning)
    for make, n, d in TABLES:
        X, y = make(n, d)
        for C in (0.01, 1.0):
            norm = plan_output_perturbation(
                BinaryLogisticLoss(), n, d, 1.0, C, 1.0, 1e-6, "add_remove"
            ).tolerance
            options = {"C": C, "fit_intercept": False}
            runs = {
                name: partial(DPLogisticRegression(mechanism=name, **options).fit, X, y)
                for name in MECHANISMS
            }
            tol = tolerance_for("lbfgs", X, y, C, norm)
            if tol is None:
                print(f"lbfgs does not reach {norm:.2g}")
                continue
            peer = LogisticRegression(tol=tol, max_iter=10_000, **options)
            runs["lbfgs"] = partial(peer.fit, X, y)
            times = {name: [] for name in runs}
            for _ in range(repetitions):
                for name, run in runs.items():
                    times[name].append(seconds(run))
            median = {name: np.median(values) for name, values in times.items()}
            print(f"{make.__name__}, n = {n}, d = {d}, C = {C}, gradient norm <= {norm:.2g}")
            for name, value in median.items():
                print(
                    f"  {name:<10} {value:.3f} s, {value / median['lbfgs']:.2f} x lbfgs", flush=True
                )


if __name__ == "__main__":
    main()
