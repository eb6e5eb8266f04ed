"""What another expected norm of the weights would change in DPLogisticRegression's automatic C.

Usage: SKDP_DATA=folder python docs/benchmarks/weights_norm.py [fits]

Accuracy / AUC of mechanism="objective" at delta = 1e-5 under add/remove, means of `fits` (16)
fits with standard errors; the tables and splits of ``utility.py``. It looks at test rows: what is
chosen by it was chosen with these tables in view.
"""

import sys

from _tables import load
from utility import measure, show

import skdp.linear_model._mechanism_choice as choice
from skdp import DPLogisticRegression


def main(fits=16):
    for name in ("adult", "bank_marketing", "credit_default"):
        X, y, *test = load(name)
        print(name)
        for epsilon in (0.1, 4.0):
            for norm in (4.0, 7.0, 10.0, 15.0):
                choice.EXPECTED_WEIGHTS_NORM = norm
                model = DPLogisticRegression(epsilon, delta=1e-5, mechanism="objective")
                results = [measure(model.fit(X, y), test) for _ in range(fits)]
                show(f"ε = {epsilon:g}, W = {norm:g}", results)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
