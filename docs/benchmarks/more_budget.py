"""More budget is not worse: mean scores over tables, numbers of rows and epsilon, cell by cell.

Usage: python docs/benchmarks/more_budget.py [draws] [NAME ...]

A cell is an estimator, a table and a number of rows. In each of `draws` (5) draws rows are drawn
anew, and the estimator is fitted to the same ones at each epsilon. Scores are on rows that were not
fitted: accuracy and log loss of classes, R² of numbers. A cell breaks the property where

- the mean score at some epsilon is below that at a smaller one by more than .003 (accuracy) or
  .005 (R²),
- or below that of the noisy constant of the same epsilon (the class of more rows by a noisy count,
  the noisy mean) by more than that,
- or the log loss is above that of the classes' shares in the fitted rows by more than .02.

A cell that breaks it is run again with 40 fresh draws. It fails if the one-sided t-test of paired
differences against the tolerance rejects, by Holm's method at 1 % over all comparisons that were
run again. Names are of estimators or tables, to take their cells alone.
"""

import sys
import warnings
from functools import partial

import numpy as np
from scipy.stats import ttest_1samp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, r2_score

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0)
TOLERANCE = {"accuracy": 0.003, "R²": 0.005, "log loss": 0.02}
DELTA, LEVEL, TESTED = 1e-6, 0.01, 4000


def rows_of(rng, n, n_columns):
    return np.clip(rng.normal(size=(n, n_columns)), -3.0, 3.0)


def linear_classes(rng, n, n_columns=12, share=0.5):
    X = rows_of(rng, n, n_columns)
    scores = X[:, :6] @ np.full(6, 0.35) + rng.logistic(size=n)
    return X / n_columns**0.5, (scores > np.quantile(scores, 1.0 - share)).astype(int)


def noise_classes(rng, n, n_columns=20, share=0.3):
    return rows_of(rng, n, n_columns) / n_columns**0.5, (rng.random(n) < share).astype(int)


def linear_numbers(rng, n, n_columns=12):
    X = rows_of(rng, n, n_columns)
    y = X[:, :6] @ np.full(6, 0.35) + rng.normal(size=n)
    return X / n_columns**0.5, np.clip(y, -5.0, 5.0)


def noise_numbers(rng, n, n_columns=20):
    return rows_of(rng, n, n_columns) / n_columns**0.5, np.clip(rng.normal(size=n), -5.0, 5.0)


def one_normal_column(rng, n):
    """Return rows of which a third are longer than `data_norm`."""
    x = rng.normal(size=n)
    return x[:, np.newaxis], np.clip(x + 0.3 * rng.normal(size=n), -5.0, 5.0)


def breast_cancer(rng, n):
    """Return rows drawn from the real table, as often as they are asked for."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X / (1.5 * X.max(axis=0)) / X.shape[1] ** 0.5
    drawn = rng.permutation(len(y))[:n]
    return X[drawn], y[drawn]


def diabetes(rng, n):
    X, y = load_diabetes(return_X_y=True)
    X = X / np.abs(X).max(axis=0) / X.shape[1] ** 0.5
    drawn = rng.permutation(len(y))[:n]
    return X[drawn], y[drawn] / 40.0 - 5.0


CLASSES = {
    "linear": (linear_classes, (300, 1000, 5000)),
    "linear, one in twenty": (partial(linear_classes, share=0.05), (1000, 5000)),
    "noise": (noise_classes, (300, 3000)),
    "breast cancer": (breast_cancer, (400,)),
}
NUMBERS = {
    "linear": (linear_numbers, (300, 1000, 5000)),
    "noise": (noise_numbers, (300, 3000)),
    "one normal column": (one_normal_column, (500, 5000)),
    "diabetes": (diabetes, (300,)),
}
BOUNDS, WIDE_BOUNDS = (-5.0, 5.0), (-50.0, 50.0)
# Bounds of all columns for the additive models, which are up to ten times too wide.
COLUMN_BOUNDS = (-1.0, 1.0)
# Each with its tables: makers that take epsilon.
ESTIMATORS = {
    "DPLogisticRegression": (lambda e: DPLogisticRegression(e, delta=DELTA), CLASSES),
    "DPSGDClassifier": (lambda e: DPSGDClassifier(e, delta=DELTA), CLASSES),
    "DPRidge": (lambda e: DPRidge(e, delta=DELTA, target_bounds=BOUNDS), NUMBERS),
    "DPRidge, bounds ten times too wide": (
        lambda e: DPRidge(e, delta=DELTA, target_bounds=WIDE_BOUNDS),
        NUMBERS,
    ),
    "DPLinearRegression": (
        lambda e: DPLinearRegression(e, delta=DELTA, target_bounds=BOUNDS),
        {name: NUMBERS[name] for name in ("linear", "one normal column")},
    ),
    "DPSGDRegressor": (lambda e: DPSGDRegressor(e, delta=DELTA, target_bounds=BOUNDS), NUMBERS),
    "DPAdditiveClassifier": (
        lambda e: DPAdditiveClassifier(e, delta=DELTA, bounds=COLUMN_BOUNDS),
        CLASSES,
    ),
    "DPAdditiveRegressor": (
        lambda e: DPAdditiveRegressor(e, delta=DELTA, bounds=COLUMN_BOUNDS, target_bounds=BOUNDS),
        {name: table for name, table in NUMBERS.items() if name != "one normal column"},
    ),
}


def draw_scores(make, draw, n, epsilons, seed, is_seeded=False):
    """Return {kind of score: array} of one draw: an entry for each epsilon, higher is better.

    Only tests take `is_seeded`, which makes the noise of fits reproducible.
    """
    rng = np.random.default_rng(seed)
    X, y = draw(rng, n + TESTED)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    models = [make(epsilon) for epsilon in epsilons]
    if is_seeded:
        models = [model.set_params(random_state=seed) for model in models]
    fits = [model.fit(X, y) for model in models]
    noise = rng.laplace(size=len(epsilons)) / (n * np.array(epsilons))
    if not hasattr(fits[0], "classes_"):
        width = np.diff(fits[0].target_bounds_)[0] / 2.0
        constants = [np.full(len(y_test), y.mean() + width * one) for one in noise]
        return {
            "R²": np.array([r2_score(y_test, fit.predict(X_test)) for fit in fits]),
            "constant": np.array([r2_score(y_test, one) for one in constants]),
        }
    shares = np.bincount(y, minlength=2) / n
    constants = [np.mean(y_test == int(shares[1] + one > 0.5)) for one in noise]
    guessed = log_loss(y_test, np.tile(shares, (len(y_test), 1)), labels=[0, 1])
    losses = [log_loss(y_test, fit.predict_proba(X_test), labels=[0, 1]) for fit in fits]
    return {
        "accuracy": np.array([np.mean(fit.predict(X_test) == y_test) for fit in fits]),
        "constant": np.array(constants),
        "log loss": guessed - np.array(losses),
    }


def comparisons(scores, epsilons):
    """Yield (words, tolerance, differences of draws) of what is to be no lower."""
    kind = "R²" if "R²" in scores else "accuracy"
    for j, larger in enumerate(epsilons):
        for i in range(j):
            words = f"{kind} at {larger:g} after {epsilons[i]:g}"
            yield words, TOLERANCE[kind], scores[kind][:, j] - scores[kind][:, i]
        words = f"{kind} at {larger:g} and the noisy constant's"
        yield words, TOLERANCE[kind], scores[kind][:, j] - scores["constant"][:, j]
        if "log loss" in scores:
            words = f"log loss at {larger:g} and the guess's"
            yield words, TOLERANCE["log loss"], scores["log loss"][:, j]


def cell_scores(make, draw, n, epsilons, seeds, is_seeded=False):
    draws = [draw_scores(make, draw, n, epsilons, seed, is_seeded) for seed in seeds]
    return {kind: np.stack([one[kind] for one in draws]) for kind in draws[0]}


def broken(scores, epsilons):
    """Return the words of the comparisons whose mean is beyond the tolerance."""
    return [
        words
        for words, tolerance, apart in comparisons(scores, epsilons)
        if apart.mean() < -tolerance
    ]


def rejected(tests, level=LEVEL):
    """Return which of (words, p-value) Holm's method rejects."""
    ordered, found = sorted(tests, key=lambda test: test[1]), []
    for i, (words, p) in enumerate(ordered):
        if p > level / (len(ordered) - i):
            break
        found.append(words)
    return found


def cells(names=()):
    for estimator, (make, tables) in ESTIMATORS.items():
        for table, (draw, sizes) in tables.items():
            if not names or estimator in names or table in names:
                for n in sizes:
                    yield f"{estimator}, {table}, {n} rows", make, draw, n


def main(n_draws=5, names=(), epsilons=EPSILONS):
    warnings.simplefilter("ignore")
    again = []
    for words, make, draw, n in cells(names):
        scores = cell_scores(make, draw, n, epsilons, range(n_draws))
        kind = "R²" if "R²" in scores else "accuracy"
        means = "  ".join(f"{mean:.3f}" for mean in scores[kind].mean(axis=0))
        beyond = broken(scores, epsilons)
        print(f"{words:60} {kind:8} {means}  {len(beyond) or ''}", flush=True)
        if beyond:
            again.append((words, make, draw, n, set(beyond)))
    tests = []
    for words, make, draw, n, beyond in again:
        scores = cell_scores(make, draw, n, epsilons, range(1000, 1040))
        for which, tolerance, apart in comparisons(scores, epsilons):
            if which in beyond:
                p = ttest_1samp(apart, -tolerance, alternative="less").pvalue
                tests.append((f"{words}: {which}: {apart.mean():.4f}", p))
    failures = rejected(tests)
    print(f"{len(tests)} comparisons were run again, {len(failures)} fail")
    for failure in failures:
        print("  " + failure)
    return failures


if __name__ == "__main__":
    count = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(*count[:1], names=[word for word in sys.argv[1:] if not word.isdigit()])
