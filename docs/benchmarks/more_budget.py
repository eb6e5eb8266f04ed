"""More budget is not worse: mean scores over tables, numbers of rows and epsilon, cell by cell.

Usage: python docs/benchmarks/more_budget.py [--file FILE] [--draws 5] [--again 40] [NAME ...]

A case is an estimator, a table and a number of rows, and has a cell at each of eight values of
epsilon: more than 400 cells. In each draw rows are drawn anew, and the estimator is fitted to the
same ones at each epsilon. With SKDP_TABLES (see many_tables.py) the training rows of real tables
are among the tables: all of them, and 300. Scores are on rows that were not fitted: area under the
curve, accuracy and log loss of classes, R² of numbers. A cell breaks the property where

- the mean score is below that at a smaller epsilon by more than .003 (AUC, accuracy) or .005 (R²),
- or below that of the noisy constant of the same epsilon (the class of more rows by a noisy count,
  the noisy mean) by more than that,
- or the log loss is above that of the classes' shares in the fitted rows by more than .02,
- or, for additive models where the truth is linear, the score is more than .01 behind that of
  `DPLogisticRegression` or `DPRidge` on the same rows.

A case with such a cell is run again with fresh draws. A comparison fails if the one-sided t-test of
paired differences against the tolerance rejects, by Holm's method at 1 % over all comparisons that
were run again. Draws that were measured are kept in FILE, so that a run can be stopped and taken up
again. Names are of estimators or tables, to take their cases alone.
"""

import argparse
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0)
TOLERANCE = {"AUC": 0.003, "accuracy": 0.003, "R²": 0.005, "log loss": 0.02, "rival": 0.01}
DELTA, LEVEL, TESTED = 1e-6, 0.01, 4000
# Number of test rows of tables with a class of one in a thousand.
MANY_TESTED = 20_000


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
    "linear, one in a hundred": (partial(linear_classes, share=0.01), (5000,)),
    "linear, one in a thousand": (partial(linear_classes, share=0.001), (20_000,)),
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
# Bounds of all columns for the additive models: about as wide as the values, and ten times wider.
COLUMN_BOUNDS, WIDE_COLUMN_BOUNDS = (-1.0, 1.0), (-10.0, 10.0)
WIDE = ", bounds ten times too wide"


def logistic(epsilon):
    return DPLogisticRegression(epsilon, delta=DELTA)


def ridge(epsilon, bounds=BOUNDS):
    return DPRidge(epsilon, delta=DELTA, target_bounds=bounds)


def additive_classifier(epsilon, bounds=COLUMN_BOUNDS):
    return DPAdditiveClassifier(epsilon, delta=DELTA, bounds=bounds)


def additive_regressor(epsilon, bounds=COLUMN_BOUNDS, target_bounds=BOUNDS):
    return DPAdditiveRegressor(epsilon, delta=DELTA, bounds=bounds, target_bounds=target_bounds)


# Each with its tables: makers that take epsilon.
ESTIMATORS = {
    "DPLogisticRegression": (logistic, CLASSES),
    "DPSGDClassifier": (lambda e: DPSGDClassifier(e, delta=DELTA), CLASSES),
    "DPRidge": (ridge, NUMBERS),
    "DPRidge" + WIDE: (partial(ridge, bounds=WIDE_BOUNDS), NUMBERS),
    "DPLinearRegression": (
        lambda e: DPLinearRegression(e, delta=DELTA, target_bounds=BOUNDS),
        {name: NUMBERS[name] for name in ("linear", "one normal column")},
    ),
    "DPSGDRegressor": (lambda e: DPSGDRegressor(e, delta=DELTA, target_bounds=BOUNDS), NUMBERS),
    "DPAdditiveClassifier": (additive_classifier, CLASSES),
    "DPAdditiveClassifier" + WIDE: (
        partial(additive_classifier, bounds=WIDE_COLUMN_BOUNDS),
        CLASSES,
    ),
    "DPAdditiveRegressor": (
        additive_regressor,
        {name: table for name, table in NUMBERS.items() if name != "one normal column"},
    ),
    "DPAdditiveRegressor" + WIDE: (
        partial(additive_regressor, bounds=WIDE_COLUMN_BOUNDS, target_bounds=WIDE_BOUNDS),
        {name: table for name, table in NUMBERS.items() if name != "one normal column"},
    ),
}
# With the additive models, on tables whose truth is linear: makers of the models beside them.
RIVALS = {"DPAdditiveClassifier": logistic, "DPAdditiveRegressor": ridge}


def draw_scores(make, draw, n, epsilons, seed, is_seeded=False, rival=None):
    """Return {kind of score: array} of one draw: an entry for each epsilon, higher is better.

    Only tests take `is_seeded`, which makes the noise of fits reproducible.
    """
    rng = np.random.default_rng(seed)
    tested = MANY_TESTED if n >= MANY_TESTED else TESTED
    X, y = draw(rng, n + tested)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]

    def fit(make):
        models = [make(epsilon) for epsilon in epsilons]
        if is_seeded:
            models = [model.set_params(random_state=seed) for model in models]
        return [model.fit(X, y) for model in models]

    fits = fit(make)
    scores = fitted_scores(fits, epsilons, y, X_test, y_test, rng)
    if rival is not None:
        beside = fitted_scores(fit(rival), epsilons, y, X_test, y_test, rng)
        kind = ranking_of(scores)
        scores["rival"] = scores[kind] - beside[kind]
    return scores


def ranking_of(scores):
    """Return the kind of score by which models are compared."""
    return "R²" if "R²" in scores else "AUC"


def fitted_scores(fits, epsilons, y, X_test, y_test, rng):
    """Return the scores of fitted models on rows that they have not seen; see `draw_scores`."""
    n = len(y)
    noise = rng.laplace(size=len(epsilons)) / (n * np.array(epsilons))
    if not hasattr(fits[0], "classes_"):
        width = np.diff(fits[0].target_bounds_)[0] / 2.0
        constants = [np.full(len(y_test), y.mean() + width * one) for one in noise]
        return {
            "R²": np.array([r2_score(y_test, fit.predict(X_test)) for fit in fits]),
            "constant": np.array([r2_score(y_test, one) for one in constants]),
        }
    classes = fits[0].classes_
    shares = np.array([np.mean(y == one) for one in classes])
    guesses = [shares + one * np.eye(len(classes))[0] for one in noise]
    constants = [np.mean(y_test == classes[guess.argmax()]) for guess in guesses]
    guessed = log_loss(y_test, np.tile(shares, (len(y_test), 1)), labels=classes)
    probabilities = [fit.predict_proba(X_test) for fit in fits]
    accuracies = [np.mean(y_test == classes[p.argmax(axis=1)]) for p in probabilities]
    return {
        "AUC": np.array([area_under_curve(y_test, p, classes) for p in probabilities]),
        "accuracy": np.array(accuracies),
        "constant": np.array(constants),
        "log loss": guessed
        - np.array([log_loss(y_test, p, labels=classes) for p in probabilities]),
    }


def area_under_curve(y, p, classes):
    if len(classes) == 2:
        return roc_auc_score(y, p[:, 1])
    return roc_auc_score(y, p, multi_class="ovr", labels=classes)


def real_scores(name, n, epsilons, seed):
    """Return the scores of additive models on a table of `SKDP_TABLES`, as `draw_scores` does.

    At most `n` training rows (or persons) are drawn; the test rows are those of the table.
    """
    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from load import declared, load

    table = load(name)
    rng = np.random.default_rng(seed)
    units = np.arange(len(table.X_train)) if table.groups is None else table.groups.to_numpy()
    distinct = rng.permutation(np.unique(units))
    rows = np.isin(units, distinct[: n or max(1, 9 * len(distinct) // 10)])
    groups = {} if table.groups is None else {"groups": units[rows]}
    params = declared(pd.concat([table.X_train, table.X_test])) | {"delta": DELTA}
    if table.task == "number":
        params["target_bounds"] = table.target_bounds
    maker = DPAdditiveRegressor if table.task == "number" else DPAdditiveClassifier
    X, y = table.X_train[rows], table.y_train[rows]
    fits = [maker(epsilon, **params).fit(X, y, **groups) for epsilon in epsilons]
    return fitted_scores(fits, epsilons, y.to_numpy(), table.X_test, table.y_test.to_numpy(), rng)


def comparisons(scores, epsilons):
    """Yield (words, tolerance, differences of draws) of scores that must not be lower."""
    kinds = [kind for kind in ("AUC", "accuracy", "R²") if kind in scores]
    for j, larger in enumerate(epsilons):
        for kind in kinds:
            for i in range(j):
                words = f"{kind} at {larger:g} after {epsilons[i]:g}"
                yield words, TOLERANCE[kind], scores[kind][:, j] - scores[kind][:, i]
        kind = kinds[-1]
        words = f"{kind} at {larger:g} and the noisy constant's"
        yield words, TOLERANCE[kind], scores[kind][:, j] - scores["constant"][:, j]
        for kind, words in (("log loss", "the guess's"), ("rival", "the linear model's")):
            if kind in scores:
                yield f"{kind} at {larger:g} and {words}", TOLERANCE[kind], scores[kind][:, j]


def stack(draws):
    """Return {kind of score: array of shape (n_draws, n_epsilons)}."""
    return {kind: np.stack([one[kind] for one in draws]) for kind in draws[0]}


def cell_scores(make, draw, n, epsilons, seeds, is_seeded=False):
    return stack([draw_scores(make, draw, n, epsilons, seed, is_seeded) for seed in seeds])


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


def cases(names=()):
    """Yield (words, function of a seed that returns the scores of a draw)."""
    for estimator, (make, tables) in ESTIMATORS.items():
        for table, (draw, sizes) in tables.items():
            rival = RIVALS.get(estimator) if table.startswith("linear") else None
            for n in sizes:
                if not names or estimator in names or table in names:
                    score = partial(draw_scores, make, draw, n, EPSILONS, rival=rival)
                    yield f"{estimator}, {table}, {n} rows", score
    if "SKDP_TABLES" in os.environ:
        for path in sorted(Path(os.environ["SKDP_TABLES"]).glob("*.csv.gz")):
            name = path.name.removesuffix(".csv.gz")
            for n in (None, 300):
                if not names or "real" in names or name in names:
                    words = f"additive model, {name}, {n or 'nine tenths of the'} rows"
                    yield words, partial(real_scores, name, n, EPSILONS)


def measured(runs, words, score, seeds):
    """Return the scores of draws, of a file or measured now."""
    draws = []
    for seed in seeds:

        def measure(_, seed=seed):
            yield {kind: values.tolist() for kind, values in score(seed).items()}

        draws.extend(runs.of(f"{words}, draw {seed}", 1, measure))
    return stack([{kind: np.array(values) for kind, values in one.items()} for one in draws])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--file", help="keeps the draws that were measured")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--again", type=int, default=40, help="fresh draws of cases that break")
    args = parser.parse_args()
    # A test loads this module from its path, where the folder's other modules are not found.
    from _runs import Runs

    warnings.simplefilter("ignore")
    runs = Runs(args.file)
    tests = []
    n_cells = 0
    for words, score in cases(args.names):
        scores = measured(runs, words, score, range(args.draws))
        n_cells += len(EPSILONS)
        means = "  ".join(f"{mean:.3f}" for mean in scores[ranking_of(scores)].mean(axis=0))
        beyond = broken(scores, EPSILONS)
        print(f"{words:60} {means}  {len(beyond) or ''}", flush=True)
        if beyond and args.again:
            scores = measured(runs, words, score, range(1000, 1000 + args.again))
            for which, tolerance, apart in comparisons(scores, EPSILONS):
                if which in beyond:
                    # The tiny spread defines the test of equal differences.
                    spread = np.linspace(-1e-9, 1e-9, len(apart))
                    p = ttest_1samp(apart + spread, -tolerance, alternative="less").pvalue
                    tests.append((f"{words}: {which}: {apart.mean():.4f}", p))
    failures = rejected(tests)
    print(f"{n_cells} cells, {len(tests)} comparisons were run again, {len(failures)} fail")
    for failure in failures:
        print("  " + failure)


if __name__ == "__main__":
    main()
