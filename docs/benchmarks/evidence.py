"""Additive models of numbers on few rows: columns of noise, and columns that say something.

Usage: python docs/benchmarks/evidence.py [draws]

R² on rows that were not fitted, less that of the mean of the fitted targets, means of the draws
(8 by default), with delta = 1 / n² and declared bounds. In the first three tables columns say
nothing: a model that believes them is below 0. In the last, 600 rows of 12 columns, six columns
say something; `RidgeCV` without privacy is fitted to the same rows.
"""

import sys
import warnings

import numpy as np
from sklearn.linear_model import RidgeCV

from skdp import DPAdditiveRegressor

EPSILONS = (1.0, 4.0, 16.0, 100.0, 1000.0)
TABLES = ((400, 10, 0), (1000, 20, 0), (1000, 60, 0), (600, 12, 6))
NEW_ROWS = 3000


def draw(rng, n_rows, n_columns, n_telling):
    """Return normal columns, and a target of which the first ones say half a deviation each."""
    X = rng.normal(size=(n_rows, n_columns))
    return X, 0.5 * X[:, :n_telling].sum(axis=1) + rng.normal(size=n_rows)


def gain(model, X, y, mean):
    """Return R² less that of a constant."""
    squares = np.sum((y - y.mean()) ** 2)
    return (np.sum((y - mean) ** 2) - np.sum((y - model.predict(X)) ** 2)) / squares


def main(n_draws=8):
    warnings.simplefilter("ignore")
    print("table".ljust(24), *(f"{epsilon:>8g}" for epsilon in EPSILONS), "  RidgeCV")
    for n_rows, n_columns, n_telling in TABLES:
        gains = {epsilon: [] for epsilon in (*EPSILONS, None)}
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            X, y = draw(rng, n_rows, n_columns, n_telling)
            new, targets = draw(rng, NEW_ROWS, n_columns, n_telling)
            params = {"delta": n_rows**-2.0, "bounds": (-4, 4), "target_bounds": (-8, 8)}
            for epsilon in EPSILONS:
                model = DPAdditiveRegressor(epsilon, random_state=seed, **params).fit(X, y)
                gains[epsilon].append(gain(model, new, targets, y.mean()))
            gains[None].append(gain(RidgeCV().fit(X, y), new, targets, y.mean()))
        title = f"{n_rows} x {n_columns}, {n_telling} say something"
        print(title.ljust(24), *(f"{np.mean(each):8.3f}" for each in gains.values()), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
