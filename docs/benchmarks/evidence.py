"""Additive models of numbers on few rows: columns of noise, and columns that say something.

Usage: python docs/benchmarks/evidence.py [draws]
       python docs/benchmarks/evidence.py chance [draws]

R² on rows that were not fitted, less that of the mean of the fitted targets, means of the draws
(8 by default), with delta = 1 / n² and declared bounds. In the first three tables columns say
nothing: a model that believes them is below 0. In the last, 600 rows of 12 columns, six columns
say something; `RidgeCV` without privacy is fitted to the same rows.

"chance" prints the part of the decrease of the loss in the shrinkage test that is due to chance, in
units of the clips and as a sum over the rows: as measured (the decrease on the fitted rows less
that on as many new rows), and as the test computes it. Weights are not shrunk.
"""

import sys
import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
from sklearn.linear_model import RidgeCV

from skdp import DPAdditiveRegressor
from skdp._optim._noisy_gradients import ShrinkageRule
from skdp.gam._plan import AdditiveFit

EPSILONS = (1.0, 4.0, 16.0, 100.0, 1000.0)
TABLES = ((400, 10, 0), (1000, 20, 0), (1000, 60, 0), (600, 12, 6))
NEW_ROWS = 3000
# Rows, columns, and columns that say something, of the tables for "chance".
CHANCE_TABLES = ((500, 5, 0), (500, 20, 0), (500, 60, 0), (500, 5, 5), (500, 20, 6), (500, 60, 6))


def draw(rng, n_rows, n_columns, n_telling):
    """Return normal columns, and a target of which the first ones say half a deviation each."""
    X = rng.normal(size=(n_rows, n_columns))
    return X, 0.5 * X[:, :n_telling].sum(axis=1) + rng.normal(size=n_rows)


def gain(model, X, y, mean):
    """Return R² less that of a constant."""
    squares = np.sum((y - y.mean()) ** 2)
    return (np.sum((y - mean) ** 2) - np.sum((y - model.predict(X)) ** 2)) / squares


@contextmanager
def recorded_tests(tests):
    """Append the rule, the released sums, the weights and the baseline of each test to a list.

    Weights are not shrunk.
    """
    run_test = AdditiveFit._shrinkage_factor
    factor = ShrinkageRule.shrinkage_factor

    def record(rule, decreases, displacement, noise_std=0.0):
        tests.append([rule, decreases, displacement])
        return factor(rule, decreases, displacement, noise_std)

    def run_without_shrinkage(fit, cells, design, residuals, *args, **options):
        run_test(fit, cells, design, residuals, *args, **options)
        tests[-1].append(float(residuals.baseline[0]))
        return 1.0

    with (
        mock.patch.object(ShrinkageRule, "shrinkage_factor", record),
        mock.patch.object(AdditiveFit, "_shrinkage_factor", run_without_shrinkage),
    ):
        yield


def decreases_by_chance(model, X, y, new, targets):
    """Return the decrease by chance as measured with new rows, and as the test computes it."""
    tests = []
    with recorded_tests(tests):
        model.fit(X, y)
    rule, decreases, displacement, baseline = tests[0]
    max_change, max_residual = rule.clip_norms(displacement)
    low, high = model.target_bounds_
    half_range = (high - low) / 2.0
    center = (high + low) / 2.0 + half_range * baseline
    changes = (model.predict(new) - center) / half_range / max_change
    residuals = (targets - center) / half_range / max_residual
    new_decrease = len(y) * np.mean(np.clip(changes, -1.0, 1.0) * np.clip(residuals, -1.0, 1.0))
    return decreases[0] - new_decrease, rule.null_decrease(decreases, displacement)


def print_chance(n_draws=8):
    warnings.simplefilter("ignore")
    print("table".ljust(24), *(f"{epsilon:>16g}" for epsilon in EPSILONS))
    for n_rows, n_columns, n_telling in CHANCE_TABLES:
        cells = []
        for epsilon in EPSILONS:
            found = []
            for seed in range(n_draws):
                rng = np.random.default_rng(seed)
                X, y = draw(rng, n_rows, n_columns, n_telling)
                new, targets = draw(rng, NEW_ROWS, n_columns, n_telling)
                params = {"delta": n_rows**-2.0, "bounds": (-4, 4), "target_bounds": (-8, 8)}
                model = DPAdditiveRegressor(epsilon, random_state=seed, **params)
                found.append(decreases_by_chance(model, X, y, new, targets))
            measured, computed = np.mean(found, axis=0)
            cells.append(f"{measured:8.1f}{computed:8.1f}")
        title = f"{n_rows} x {n_columns}, {n_telling} say something"
        print(title.ljust(24), *cells, flush=True)


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
    if sys.argv[1:2] == ["chance"]:
        print_chance(*map(int, sys.argv[2:]))
    else:
        main(*map(int, sys.argv[1:]))
