"""Classifiers and regressors at their defaults, beside a noisy constant of the same budget.

Usage: SKDP_DATA=folder python docs/benchmarks/constants.py FILE [draws] [cells=N] [n=N] [NAME ...]

A cell is an estimator, a table, a number of rows, epsilon, delta and a relation. The 1,000 cells
are drawn once, from a seed; ``cells=100`` takes the first hundred and ``n=3000`` leaves out those
of more rows. Names are of estimators or tables, to take their cells alone. In each of `draws` (20)
draws of a cell some of the table's training rows are drawn anew; the estimator and the constant are
fitted to the same ones and scored on the same rows of the test part: by accuracy, by R², or by the
explained Poisson deviance.

The constant is the class of most rows by noisy counts, or the noisy mean of the targets, clipped to
their bounds; its noise is Laplace's or Gaussian, whichever is less at that epsilon and delta.
A score below -10 counts as -10.

Each result is a line of FILE, so that a run which was stopped goes on. At the end the cells are
tested: the mean difference of a cell against 0 by Student's one-sided test of paired draws, all of
them together by Holm's method at 1 %.
"""

import csv
import math
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from _tables import load
from additive import marital
from regression import binned_columns, counts, housing, many_columns
from scipy.stats import ttest_1samp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
)
from skdp.accounting import gaussian_noise_multiplier

CELLS, LEAST, LARGEST, TESTED = 1000, 200, 15_000, 3000
EPSILONS, DELTAS, RELATIONS = (0.05, 8.0), (0.0, 1e-5), ("add_remove", "replace_one")
LEVEL = 0.01


def split(X, y, test=0.25):
    """Return the rows to train and to test on, by a fixed permutation."""
    order = np.random.default_rng(0).permutation(len(y))
    cut = round(test * len(y))
    return X[order[cut:]], y[order[cut:]], X[order[:cut]], y[order[:cut]]


def rows_of_norm_one(X, y):
    return split(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12), y)


def several_classes():
    """Adult's marital status, one-hot categories and numbers in [0, 1], rows of norm 1."""
    from additive import scaled

    (X, y), (X_test, y_test), declared = marital()
    return scaled(X, declared), y, scaled(X_test, declared), y_test


def nothing_to_learn(shares, d=40, n=8000):
    """Return rows that tell nothing of their classes, which have given shares."""
    rng = np.random.default_rng(0)
    return rows_of_norm_one(rng.normal(size=(n, d)), rng.choice(len(shares), n, p=shares))


def nothing_of_targets(d=40, n=8000):
    rng = np.random.default_rng(0)
    return split(rng.uniform(-1, 1, (n, d)) / math.sqrt(d), rng.beta(2, 5, n))


def diabetes():
    """Ten columns whose ranges are taken as public."""
    X, y = load_diabetes(return_X_y=True)
    return split(X / np.abs(X).max(axis=0) / math.sqrt(10.0), y)


def over_norm(table, norm):
    X, y = table
    return split(X / norm, y)


CLASSES = {
    "adult": lambda: load("adult"),
    "bank_marketing": lambda: load("bank_marketing"),
    "credit_default": lambda: load("credit_default"),
    "marital_status": several_classes,
    "digits": lambda: rows_of_norm_one(*load_digits(return_X_y=True)),
    "breast_cancer": lambda: rows_of_norm_one(*load_breast_cancer(return_X_y=True)),
    "nothing_2": lambda: nothing_to_learn((0.75, 0.25)),
    "nothing_4": lambda: nothing_to_learn((0.1, 0.2, 0.6, 0.1)),
}
# With the declared range of targets.
TARGETS = {
    "housing": (lambda: over_norm(housing(), 3.0), (0, 500_001)),
    "housing_wide": (lambda: over_norm(housing(), 3.0), (0, 5_000_000)),
    "diabetes": (diabetes, (0, 400)),
    "many_columns": (lambda: over_norm(many_columns()[:2], 10.0), (-1200, 1200)),
    "binned": (lambda: over_norm(binned_columns(), math.sqrt(30.0)), (0, 1)),
    "nothing": (nothing_of_targets, (0, 1)),
    "counts": (lambda: over_norm(counts(), math.sqrt(50.0)), (0, 60)),
}
COUNTS = {
    "counts": TARGETS["counts"],
    "counts_wide": (TARGETS["counts"][0], (0, 600)),
    "nothing": (nothing_of_targets, (0, 1)),
    "diabetes": TARGETS["diabetes"],
}
MODELS = {
    "DPLogisticRegression": (DPLogisticRegression, CLASSES),
    "DPLinearSVC": (DPLinearSVC, CLASSES),
    "DPSGDClassifier": (DPSGDClassifier, CLASSES),
    "DPAdditiveClassifier": (DPAdditiveClassifier, CLASSES),
    "DPRidge": (DPRidge, TARGETS),
    "DPLinearRegression": (DPLinearRegression, TARGETS),
    "DPSGDRegressor": (DPSGDRegressor, TARGETS),
    "DPAdditiveRegressor": (DPAdditiveRegressor, {k: TARGETS[k] for k in TARGETS if k != "binned"}),
    "DPPoissonRegressor": (DPPoissonRegressor, COUNTS),
}
SEVERAL_CLASSES = ("marital_status", "digits", "nothing_4")
TWO_CLASSES = [name for name in CLASSES if name not in SEVERAL_CLASSES]
# Training rows of the small tables.
ROWS = {"breast_cancer": 427, "digits": 1348, "diabetes": 332, "many_columns": 2550}


@cache
def table_of(name):
    """Return X, y, X_test, y_test."""
    make = CLASSES[name] if name in CLASSES else (TARGETS | COUNTS)[name][0]
    X, y, X_test, y_test = make()
    return X, y, X_test[:TESTED], y_test[:TESTED]


def cells():
    """Return the cells, each with its number."""
    rng = np.random.default_rng(17)
    drawn = []
    for number in range(CELLS):
        model = str(rng.choice(list(MODELS)))
        tables = MODELS[model][1]
        table = str(rng.choice(TWO_CLASSES if model == "DPAdditiveClassifier" else list(tables)))
        ends = (LEAST, ROWS.get(table, LARGEST)), EPSILONS
        n, epsilon = (np.exp(rng.uniform(*np.log(pair))) for pair in ends)
        rest = float(rng.choice(DELTAS)), str(rng.choice(RELATIONS))
        drawn.append((number, model, table, int(n), float(f"{epsilon:.3g}"), *rest))
    return drawn


def noise(size, epsilon, delta, l1, rng):
    """Return noise for counts, or for a sum, that one row moves by `l1` in L1 norm."""
    gaussian = math.inf
    if delta > 0.0:
        gaussian = gaussian_noise_multiplier(epsilon, delta) * (l1 if size == 1 else math.sqrt(l1))
    if gaussian < math.sqrt(2.0) * l1 / epsilon:
        return rng.normal(0.0, gaussian, size)
    return rng.laplace(0.0, l1 / epsilon, size)


def constant_class(y, classes, budget, relation, rng):
    """Return the class of most rows, by noisy counts; of two classes one is counted."""
    counted = np.array([np.sum(y == label) for label in classes], dtype=float)
    if len(classes) == 2:
        counted[1] += noise(1, *budget, 1.0, rng)[0]
        counted[0] = len(y) - counted[1]
    else:
        counted += noise(len(classes), *budget, 1.0 + (relation == "replace_one"), rng)
    return classes[np.argmax(counted)]


def constant_mean(y, bounds, budget, relation, rng):
    middle, half = np.mean(bounds), 0.5 * (bounds[1] - bounds[0])
    total = np.sum(np.clip(y, *bounds) - middle)
    total += half * noise(1, *budget, 1.0 + (relation == "replace_one"), rng)[0]
    return np.clip(middle + total / len(y), *bounds)


def result(model, table, n, epsilon, delta, relation, draw):
    """Return the scores of the estimator and of the constant, and the seconds of the fit."""
    make, tables = MODELS[model]
    X, y, X_test, y_test = table_of(table)
    seed = np.random.default_rng([draw, n])
    rows = np.sort(seed.permutation(len(y))[:n])
    X, y = X[rows], y[rows]
    accountant = PrivacyAccountant(epsilon, delta, relation=relation)
    params = {"delta": delta, "random_state": draw, "accountant": accountant}
    if tables is CLASSES:
        params["classes"] = np.unique(y_test)
        guess = constant_class(y, params["classes"], (epsilon, delta), relation, seed)
        guesses = np.full(len(y_test), guess)
    else:
        bounds = tables[table][1]
        params["target_bounds"] = bounds
        guesses = np.full(len(y_test), constant_mean(y, bounds, (epsilon, delta), relation, seed))
    if "Additive" in model:
        params["bounds"] = (-1, 1)
    begun = time.process_time()
    fitted = make(epsilon, **params).fit(X, y)
    seconds = time.process_time() - begun
    return fitted.score(X_test, y_test), constant_score(fitted, y_test, guesses), seconds


def constant_score(fitted, y_test, guesses):
    """Return what the estimator's own score is of a constant."""

    class Constant(type(fitted)):
        def predict(self, X):
            return guesses

    return Constant.score(fitted.__class__.__new__(Constant), np.empty((len(y_test), 1)), y_test)


def read(file):
    if not Path(file).exists():
        return []
    with Path(file).open(newline="") as text:
        return list(csv.reader(text))


def run(file, draws, chosen):
    done = {(int(row[0]), int(row[7])) for row in read(file)}
    with Path(file).open("a", newline="") as out:
        writer = csv.writer(out)
        for cell in chosen:
            for draw in range(draws):
                if (cell[0], draw) not in done:
                    own, constant, seconds = result(*cell[1:], draw)
                    writer.writerow([*cell, draw, own, constant, f"{seconds:.3f}"])
                    out.flush()


def tested(file, chosen):
    """Return each cell with its draws, the mean difference, its standard error and p-value."""
    found = {}
    for row in read(file):
        # A mean of 0 explains minus infinity of counts.
        scores = [max(float(score), -10.0) for score in row[8:10]]
        found.setdefault(int(row[0]), {})[int(row[7])] = scores
    rows = []
    for cell in chosen:
        pairs = np.array(list(found.get(cell[0], {}).values()))
        if len(pairs) > 1:
            gaps = pairs[:, 0] - pairs[:, 1]
            error = gaps.std(ddof=1) / math.sqrt(len(gaps))
            p = float(gaps[0] >= 0.0)
            if error > 0.0:
                p = float(ttest_1samp(gaps, 0.0, alternative="less").pvalue)
            rows.append((*cell, *pairs.mean(axis=0), gaps.mean(), error, p))
    return sorted(rows, key=lambda row: row[-1])


def summary(file, chosen):
    """Print how many cells are worse by Holm's method, and the worst ones."""
    rows = tested(file, chosen)
    worse = 0
    while worse < len(rows) and rows[worse][-1] <= LEVEL / (CELLS - worse):
        worse += 1
    print(f"{len(rows)} cells, {worse} worse than the noisy constant (Holm, {LEVEL:.0%})\n")
    print("| estimator | cells | worse | mean difference | least p |\n|---|---|---|---|---|")
    for name in MODELS:
        own = [row for row in rows if row[1] == name]
        if own:
            gaps = [row[-3] for row in own]
            lost = sum(row in rows[:worse] for row in own)
            print(f"| {name} | {len(own)} | {lost} | {np.mean(gaps):.3f} | {own[0][-1]:.1e} |")
    print("\n| worst cells | n | ε | δ | relation | ours | constant | difference | p |")
    print("|---|---|---|---|---|---|---|---|---|")
    for _, model, table, n, epsilon, delta, relation, own, constant, gap, error, p in rows[:25]:
        where = f"| {model}, {table} | {n} | {epsilon:g} | {delta:g} | {relation} "
        print(f"{where}| {own:.3f} | {constant:.3f} | {gap:.3f} ± {error:.3f} | {p:.1e} |")


def main():
    file, words = sys.argv[1], sys.argv[2:]
    numbers = dict(word.split("=") for word in words if "=" in word)
    draws = next((int(word) for word in words if word.isdigit()), 20)
    names = {word for word in words if not word.isdigit() and "=" not in word}
    models, tables = names & set(MODELS), names - set(MODELS)
    chosen = [
        cell
        for cell in cells()[: int(numbers.get("cells", CELLS))]
        if cell[1] in (models or MODELS)
        and (not tables or cell[2] in tables)
        and cell[3] <= int(numbers.get("n", LARGEST))
    ]
    run(file, draws, chosen)
    summary(file, chosen)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
