"""Accuracy of the three linear classifiers at their defaults, on small and on larger tables.

Usage: SKDP_DATA=folder python docs/benchmarks/classifiers.py [draws]

Adult, credit_default and bank_marketing, encoded as in ``_tables.py``, rows of norm 1; 2,000 and
20,000 training rows, delta = 1e-5, add/remove; accuracy on the test rows, means of `draws` (5)
draws of rows and noise, the same rows for all models. Prints a table of Markdown.
"""

import sys
import warnings

import numpy as np
from _tables import load

from skdp import DPLinearSVC, DPLogisticRegression, DPSGDClassifier

MODELS = (DPLogisticRegression, DPSGDClassifier, DPLinearSVC)
EPSILONS = (0.1, 1.0, 4.0)
SIZES = (2_000, 20_000)


def main(n_draws=5):
    warnings.simplefilter("ignore")
    names = " | ".join(f"`{model.__name__}`" for model in MODELS)
    print(f"| table | rows | ε | {names} |\n|---|---|---|---|---|---|")
    for table in ("adult", "credit_default", "bank_marketing"):
        X, y, X_test, y_test = load(table)
        rng = np.random.default_rng(0)
        for n_rows in SIZES:
            draws = [rng.choice(len(X), n_rows, replace=False) for _ in range(n_draws)]
            for epsilon in EPSILONS:
                cells = []
                for model in MODELS:
                    scores = []
                    for rows in draws:
                        fitted = model(epsilon, delta=1e-5, classes=[0, 1]).fit(X[rows], y[rows])
                        scores.append(fitted.score(X_test, y_test))
                    cells.append(f"{np.mean(scores):.3f}")
                print(f"| {table} | {n_rows:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
