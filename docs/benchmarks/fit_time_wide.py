"""Fit time of DPLogisticRegression with many features against lbfgs at the same gradient norm.

Usage: python docs/benchmarks/fit_time_wide.py [repetitions]

As in ``fit_time.py``, without an intercept; a sparse row has 50 entries. Those of a row are sorted
by column, as scikit-learn's own vectorizers leave them, or in no order and some of them double:
then skdp sorts and sums a copy first, as the norm of a row is not that of its entries.
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
from skdp.accounting import Guarantee
from skdp.linear_model._classifier import logistic_loss_spec
from skdp.linear_model._output_perturbation import plan_output_perturbation
from skdp.linear_model._planning import PerturbationProblem

ENTRIES = 50


def make_unsorted(n, d):
    rng = np.random.default_rng(0)
    ends = np.arange(0, n * ENTRIES + 1, ENTRIES)
    X = csr_matrix((np.ones(n * ENTRIES), rng.integers(d, size=n * ENTRIES), ends), shape=(n, d))
    X = csr_matrix(diags(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    return X, (rng.random(n) < expit(X @ rng.normal(scale=5.0, size=d))).astype(int)


def make_sorted(n, d):
    X, y = make_unsorted(n, d)
    X.sum_duplicates()
    return X, y


TABLES = (
    (make_table, 5000, 5000),
    (make_sorted, 50_000, 5000),
    (make_sorted, 50_000, 20_000),
    (make_unsorted, 50_000, 5000),
    (make_unsorted, 50_000, 20_000),
)


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    warnings.simplefilter("ignore", ConvergenceWarning)
    for make, n, d in TABLES:
        X, y = make(n, d)
        for C in (0.01, 1.0):
            guarantee = Guarantee(epsilon=1.0, delta=1e-6)
            problem = PerturbationProblem(
                loss_spec=logistic_loss_spec([1.0, 1.0]),
                n_rows=n,
                n_columns=d,
                norm=1.0,
                guarantee=guarantee,
            )
            norm = plan_output_perturbation(problem, C, guarantee).tolerance
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
            median = {name: np.median(values, axis=0) for name, values in times.items()}
            print(f"{make.__name__}, n = {n}, d = {d}, C = {C}, gradient norm <= {norm:.2g}")
            for name, value in median.items():
                wall, process = value / median["lbfgs"]
                print(
                    f"  {name:<10} {value[0]:.3f} s, {wall:.2f} x lbfgs; "
                    f"of processor {value[1]:.3f} s, {process:.2f} x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
