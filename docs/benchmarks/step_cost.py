"""The time of one step of noisy gradient descent over that of X @ w and X.T @ r.

Usage: python docs/benchmarks/step_cost.py [repetitions]

A step clips rows, appends the constant feature, computes the gradient and adds its noise. Medians
of processor time, one after the other, so that other work on the machine hardly matters (with
OPENBLAS_NUM_THREADS=1).
"""

import sys
import time

import numpy as np
from skdp.linear_model._gradient_perturbation import plan_gradient_perturbation

from skdp._data._bounded import BoundedRows
from skdp._losses import BinaryLogisticLoss
from skdp.accounting import Guarantee
from skdp.linear_model._objective import loss_gradient
from skdp.linear_model._planning import Problem
from skdp.noise import RandomSource

SIZES = ((100_000, 100), (1_000_000, 20))


def seconds(run):
    start = time.process_time()
    run()
    return time.process_time() - start


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    rng, loss, source = np.random.default_rng(0), BinaryLogisticLoss(), RandomSource()
    for n, d in SIZES:
        X, y = rng.normal(size=(n, d)), rng.integers(2, size=n)
        w, r, rows = rng.normal(size=d + 1), rng.normal(size=n), BoundedRows(X, 1.0, 0.3)
        norm = np.hypot(1.0, 0.3)
        problem = Problem(loss=loss, n_rows=n, n_features=d + 1, norm=norm)
        plan = plan_gradient_perturbation(problem, 0.1, Guarantee(epsilon=1.0, delta=1e-5))

        def step(rows=rows, y=y, w=w, plan=plan):
            plan.step.release(loss_gradient(loss, rows, y, w), random_state=source)

        def products(X=X, w=w, r=r):
            X @ w[:-1]
            X.T @ r

        times = np.array([(seconds(step), seconds(products)) for _ in range(repetitions)])
        one, other = np.median(times, axis=0)
        print(
            f"n = {n}, d = {d}: step {one * 1e3:.1f} ms, products {other * 1e3:.1f} ms, "
            f"ratio {one / other:.2f}"
        )


if __name__ == "__main__":
    main()
