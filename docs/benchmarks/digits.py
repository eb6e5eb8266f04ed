"""Classifiers of ten digits: softmax regression, DP-SGD, the additive model, one-vs-rest.

Usage: python docs/benchmarks/digits.py [fits]

The joint softmax has one noise in Frobenius norm; one-vs-rest fits ten models, each with a tenth of
epsilon and of delta. Rows of scikit-learn's digits are scaled to norm 1; three quarters train. The
additive model has the raw pixels with their public bounds: it is not for such tables. All other
parameters are the defaults; delta = 1e-5. Accuracy, and seconds of the clock a fit.
"""

import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdp import DPAdditiveClassifier, DPLogisticRegression, DPSGDClassifier

DELTA = 1e-5


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def one_vs_rest(epsilon, X, X_test, y, y_test):
    model = DPLogisticRegression(epsilon / 10, delta=DELTA / 10)
    scores = [model.fit(X, y == digit).decision_function(X_test) for digit in range(10)]
    return np.mean(np.argmax(scores, axis=0) == y_test)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    rows, tests = unit(X), unit(X_test)
    print(
        "epsilon   " + "".join(f"{name:<26}" for name in ("softmax", "SGD", "additive", "1 v rest"))
    )
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        given = {"epsilon": epsilon, "delta": DELTA}
        additive = DPAdditiveClassifier(**given, bounds=(0, 16))
        ways = [
            lambda given=given: DPLogisticRegression(**given).fit(rows, y).score(tests, y_test),
            lambda given=given: DPSGDClassifier(**given).fit(rows, y).score(tests, y_test),
            lambda additive=additive: additive.fit(X, y).score(X_test, y_test),
            lambda epsilon=epsilon: one_vs_rest(epsilon, rows, tests, y, y_test),
        ]
        line = f"{epsilon:7g}   "
        for way in ways:
            start = time.perf_counter()
            found = [way() for _ in range(fits)]
            seconds = (time.perf_counter() - start) / fits
            error = np.std(found, ddof=1) / np.sqrt(fits)
            line += f"{np.mean(found):.4f} ± {error:.4f} {seconds:6.3f} s  "
        print(line, flush=True)


if __name__ == "__main__":
    main()
