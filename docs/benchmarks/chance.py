"""Additive models of few rows and little noise: what may be taken for chance at most.

Usage: python docs/benchmarks/chance.py [draws]

The check of an additive model's weights takes off what they explain by chance, by a sum over
cells. Where cells are about as many as rows that sum says nothing, and the check would take all for
chance. The script fits `DPAdditiveClassifier` with delta = 1e-5 under bounds on that sum (none, and
`MAX_NULL_FRACTION`) to scikit-learn's breast cancer and diabetes and to made tables of ten columns:
that say nothing, and of which one tells. It prints accuracy and log loss on rows that were not
fitted, means of the draws, and the log loss of the classes' shares.
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.gam import _plan

EPSILONS = (1.0, 4.0, 10.0, 30.0, 100.0)
BOUNDS = (np.inf, _plan.MAX_NULL_FRACTION)


def tables():
    """Yield names, rows, labels, how many rows are fitted, and the bounds of columns."""
    rng = np.random.default_rng(0)
    for name, load, n, split in (
        ("breast cancer, 400 rows", load_breast_cancer, 400, 0),
        ("diabetes, 300 rows", load_diabetes, 300, 140),
    ):
        X, y = load(return_X_y=True)
        order = rng.permutation(len(y))
        yield name, X[order], (y[order] > split).astype(int), n, (X.min(axis=0), X.max(axis=0))
    for words, n, chances in (
        ("nothing told, 400 rows", 400, (0.5, 0.5)),
        ("nothing told, 2000 rows", 2000, (0.2, 0.2)),
        ("one column tells, 500 rows", 500, (0.2, 0.8)),
        ("one column tells, 3000 rows", 3000, (0.2, 0.8)),
    ):
        X = rng.uniform(size=(n + 2000, 10))
        y = rng.random(len(X)) < np.where(X[:, 0] < 0.5, *chances)
        yield words, X, y.astype(int), n, (0.0, 1.0)


def main(n_draws=3):
    warnings.simplefilter("ignore")
    print("| | epsilon | no bound | bound | classes' shares |\n|---|---|---|---|---|")
    for name, X, y, n, bounds in tables():
        shares = log_loss(y[n:], np.full(len(y) - n, y[:n].mean()))
        for epsilon in EPSILONS:
            cells = []
            for _plan.MAX_NULL_FRACTION in BOUNDS:
                found = []
                for seed in range(n_draws):
                    accountant = PrivacyAccountant(1e3, 0.5)
                    terms = {"delta": 1e-5, "accountant": accountant, "random_state": seed}
                    model = DPAdditiveClassifier(epsilon, bounds=bounds, **terms)
                    model.fit(X[:n], y[:n])
                    loss = log_loss(y[n:], model.predict_proba(X[n:])[:, 1])
                    found.append((model.score(X[n:], y[n:]), loss))
                cells.append("{:.3f}, {:.3f}".format(*np.mean(found, axis=0)))
            print(f"| {name} | {epsilon:g} | {' | '.join(cells)} | {shares:.3f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
