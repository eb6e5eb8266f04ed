"""Fit time of DPLogisticRegression against scikit-learn's solvers at the same gradient norm.

Usage: python docs/benchmarks/fit_time.py [repetitions]

scikit-learn's tolerance does not name the gradient norm that it reaches, so each solver's
tolerance is lowered tenfold from its default until the norm of the gradient of
C * sum(loss) + |w|^2 / 2 is at most the one that DPLogisticRegression certifies for output
perturbation; objective perturbation certifies a smaller one. Times are
medians of the wall and of the process, the second of which other work on the machine hardly
touches (with OPENBLAS_NUM_THREADS=1); solvers are run in turn so that it slows all of them.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp.accounting import Guarantee
from skdp.linear_model._classifier import logistic_loss_spec
from skdp.linear_model._output_perturbation import plan_output_perturbation
from skdp.linear_model._planning import PerturbationProblem

SIZES = ((100_000, 100), (1_000_000, 20))
MECHANISMS = ("output", "objective")
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")


def make_table(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.random(n) < expit(X @ rng.normal(scale=5.0, size=d))).astype(int)


def gradient_norm(w, X, y, C):
    return np.linalg.norm(C * ((expit(X @ w) - y) @ X) + w)


def tolerance_for(solver, X, y, C, target):
    for tol in 10.0 ** -np.arange(4, 15):
        model = LogisticRegression(
            C=C, solver=solver, tol=tol, fit_intercept=False, max_iter=10_000
        ).fit(X, y)
        if gradient_norm(model.coef_[0], X, y, C) <= target:
            return tol
    return None


def seconds(fit):
    """Return the seconds of the wall's clock and of the process."""
    wall, process = time.perf_counter(), time.process_time()
    fit()
    return time.perf_counter() - wall, time.process_time() - process


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n, d in SIZES:
        X, y = make_table(n, d)
        augmented = np.column_stack([X, np.full(n, 0.3)])
        for C in (0.01, 1.0):
            norm = np.hypot(1.0, 0.3)
            guarantee = Guarantee(epsilon=1.0, delta=1e-6)
            problem = PerturbationProblem(
                loss_spec=logistic_loss_spec([1.0, 1.0]),
                n_rows=n,
                n_columns=d,
                norm=norm,
                constant=0.3,
                guarantee=guarantee,
            )
            target = plan_output_perturbation(problem, C, guarantee).tolerance
            runs = {}
            for mechanism in MECHANISMS:
                private = DPLogisticRegression(1.0, delta=1e-6, mechanism=mechanism, C=C)
                runs[f"skdp, {mechanism}"] = partial(private.fit, X, y)
            for solver in SOLVERS:
                tol = tolerance_for(solver, augmented, y, C, target)
                same = None if tol is None else {"tol": tol}
                for name, options in (("default", {}), ("same norm", same)):
                    if options is not None:
                        model = LogisticRegression(
                            C=C, solver=solver, fit_intercept=False, max_iter=10_000, **options
                        )
                        runs[f"{solver}, {name}"] = partial(model.fit, augmented, y)
            times = {name: [] for name in runs}
            for _ in range(repetitions):
                for name, run in runs.items():
                    times[name].append(seconds(run))
            median = {name: np.median(values, axis=0) for name, values in times.items()}
            best = np.min([v for k, v in median.items() if k.endswith("same norm")], axis=0)
            default = np.min([v for k, v in median.items() if k.endswith("default")], axis=0)
            print(f"n = {n}, d = {d}, C = {C}, gradient norm <= {target:.2g}; wall, process")
            for name, value in median.items():
                print(f"  {name:<28} {value[0]:7.3f} s {value[1]:7.3f} s")
            for mechanism in MECHANISMS:
                own = median[f"skdp, {mechanism}"]
                for words, peer in (("at the same norm", best), ("default", default)):
                    ratio = own / peer
                    print(f"  {mechanism} / fastest {words}: {ratio[0]:.2f}, {ratio[1]:.2f}")


if __name__ == "__main__":
    main()
