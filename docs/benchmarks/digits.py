"""Softmax regression on ten digits against one-vs-rest with a split budget.

Usage: python docs/benchmarks/digits.py [fits]

The joint softmax has one noise in Frobenius norm; one-vs-rest fits ten models, each with a tenth of
epsilon and of delta. Rows of scikit-learn's digits are scaled to norm 1; three quarters train. All
parameters are the defaults; delta = 1e-5.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression

DELTA = 1e-5


def load():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / np.linalg.norm(X, axis=1, keepdims=True), y, random_state=0)


def one_vs_rest(epsilon, X, X_test, y, y_test):
    model = DPLogisticRegression(epsilon / 10, delta=DELTA / 10)
    scores = [model.fit(X, y == digit).decision_function(X_test) for digit in range(10)]
    return np.mean(np.argmax(scores, axis=0) == y_test)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    X, X_test, y, y_test = table = load()
    print("epsilon   softmax (± s.e.)   one-vs-rest (± s.e.)")
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        model = DPLogisticRegression(epsilon, delta=DELTA)
        joint = [model.fit(X, y).score(X_test, y_test) for _ in range(fits)]
        split = [one_vs_rest(epsilon, *table[:2], y, y_test) for _ in range(fits)]
        cells = [
            f"{np.mean(v):.4f} ± {np.std(v, ddof=1) / np.sqrt(fits):.4f}" for v in (joint, split)
        ]
        print(f"{epsilon:7g}   {cells[0]}    {cells[1]}   ({model.mechanism_})", flush=True)


if __name__ == "__main__":
    main()
