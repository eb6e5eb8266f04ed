"""Expected beside measured excess loss, for each family of estimators: the table of planning.md.

Usage: SKDP_DATA=folder python docs/benchmarks/planning.py [fits] [NAME ...]

What is measured is the mean loss of a fit on its own rows less that of the best model without
privacy on the same rows; the mean of `fits` (3) fits to rows drawn anew. A best classifier has
weights of norm at most 10 over `data_norm`, as the formula supposes; the best additive model is
that of epsilon = 10,000. A cell is a table, a number of rows (500, 2000, 10,000), an epsilon
(.1, 1, 4) and a relation. Prints for each family and delta the quantiles of measured over expected;
cells whose measured one is below .001, in nats or in variances of the targets, are only counted.
"""

import sys
import warnings
from functools import cache
from itertools import product

import numpy as np
from _tables import SCHEMAS, load, split_rows, unit_range
from regression import counts, housing
from scipy.special import xlogy
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

import skdp
from skdp.exceptions import SeededNoiseWarning

SIZES, EPSILONS, DELTAS = (500, 2000, 10_000), (0.1, 1.0, 4.0), (0.0, 1e-5)
RELATIONS = ("add_remove", "replace_one")
LEAST = 0.001


def raw(name):
    """Return numbers in [0, 1] and codes of categories, labels, and what is declared."""
    rows, (bounds, categories) = split_rows(name)[0], SCHEMAS[name]
    columns = [unit_range(rows, column, limits) for column, limits in bounds.items()]
    known = [values.split() for values in categories.values()]
    for column, values in zip(categories, known, strict=True):
        columns.append([values.index(row[column]) if row[column] in values else -1 for row in rows])
    lists = {len(bounds) + j: [*map(float, range(len(v)))] for j, v in enumerate(known)}
    declared = {"bounds": {j: (0, 1) for j in range(len(bounds))}, "categories": lists}
    return np.column_stack(columns), np.array([int(row["target"]) for row in rows]), declared


def made_classes():
    X, y = make_classification(20_000, 10, n_informative=6, flip_y=0.05, random_state=1)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def made_numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 10))
    return X, np.clip(X @ rng.normal(size=10) + rng.normal(size=20_000), -6, 6)


@cache
def table(name):
    """Return X, y, the parameters of linear models and those of additive ones."""
    if name in SCHEMAS:
        return *load(name)[:2], {"data_norm": 1.0}, raw(name)
    if name == "made classes":
        X, y = made_classes()
        return X, y, {"data_norm": 1.0}, (X, y, {"bounds": (-1, 1)})
    X, y, norm, limits = {
        "housing": lambda: (*housing(), 3.0, (0.0, 500_001.0)),
        "made numbers": lambda: (*made_numbers(), 2.5, (-6.0, 6.0)),
        "counts": lambda: (*counts(), 5.0, (0.0, 60.0)),
    }[name]()
    targets = {"target_bounds": limits}
    return X, y, {"data_norm": norm} | targets, (X, y, {"bounds": (-1, 1)} | targets)


def log_loss(model, X, y):
    p = model.predict_proba(X)
    return -np.mean(np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)))


def hinge(model, X, y):
    margin, h = (2 * y - 1) * model.decision_function(X), 0.5
    corner = (1.0 - margin + h) ** 2 / (4.0 * h)
    return np.mean(np.where(np.abs(1.0 - margin) < h, corner, np.maximum(1.0 - margin, 0.0)))


def half_squared(model, X, y):
    return 0.5 * np.mean((model.predict(X) - y) ** 2)


def half_deviance(model, X, y):
    mean = np.maximum(model.predict(X), 1e-12)
    return np.mean(xlogy(y, y / mean) - y + mean)


def best_logistic(X, y, data_norm):
    fits = [LogisticRegression(C=C, max_iter=3000).fit(X, y) for C in np.geomspace(1e-2, 1e2, 13)]
    return [fit for fit in fits if np.linalg.norm(fit.coef_) <= 10.0 / data_norm][-1]


def best(family, X, y, given):
    """Return the best model of a family without privacy."""
    if family.startswith("DPAdditive"):
        return getattr(skdp, family)(1e4, delta=0.1, **given).fit(X, y)
    if family == "DPLinearSVC":
        return skdp.DPLinearSVC(1e9, C=1.0, **given).fit(X, y)
    if family == "DPPoissonRegressor":
        return PoissonRegressor(alpha=1e-6, max_iter=3000).fit(X, y)
    if "target_bounds" in given:
        return Ridge(alpha=1e-6 * len(y)).fit(X, y)
    return best_logistic(X, y, given["data_norm"])


CLASSES, NUMBERS = ("adult", "bank_marketing", "made classes"), ("housing", "made numbers")
FAMILIES = {
    "DPLogisticRegression": (log_loss, CLASSES),
    "DPSGDClassifier": (log_loss, CLASSES),
    "DPLinearSVC": (hinge, CLASSES),
    "DPRidge": (half_squared, NUMBERS),
    "DPLinearRegression": (half_squared, NUMBERS),
    "DPSGDRegressor": (half_squared, NUMBERS),
    "DPPoissonRegressor": (half_deviance, ("counts",)),
    "DPAdditiveClassifier": (log_loss, CLASSES),
    "DPAdditiveRegressor": (half_squared, NUMBERS),
}


def draws(family, name, n, fits):
    """Yield rows with their targets, and the loss of the best model on them."""
    X, y, given, additive = table(name)
    if family.startswith("DPAdditive"):
        X, y, given = additive
    loss, _ = FAMILIES[family]
    for draw in range(fits):
        rows = np.random.default_rng(draw).choice(len(y), n, replace=False)
        yield X[rows], y[rows], loss(best(family, X[rows], y[rows], given), X[rows], y[rows])


def cells(family, delta, fits):
    """Yield the expected and the measured excess of each cell."""
    loss, names = FAMILIES[family]
    for name, n in product(names, SIZES):
        given = table(name)[3][2] if family.startswith("DPAdditive") else table(name)[2]
        drawn = list(draws(family, name, n, fits))
        unit = np.var(table(name)[1]) if "target_bounds" in given and name != "counts" else 1.0
        for epsilon, relation in product(EPSILONS, RELATIONS):
            accountant = skdp.PrivacyAccountant(1e6, 0.5, relation=relation)
            model = getattr(skdp, family)(epsilon, delta=delta, accountant=accountant, **given)
            expected = model.expected_excess_loss(n, drawn[0][0].shape[1])
            measured = [loss(model.fit(X, y), X, y) - least for X, y, least in drawn]
            yield name, n, epsilon, relation, expected / unit, np.mean(measured) / unit


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print("measured over expected      delta  cells  < .001     5 %    half    95 %    most")
    for family, delta in product(sys.argv[2:] or FAMILIES, DELTAS):
        found = list(cells(family, delta, fits))
        pairs = np.array([cell[-2:] for cell in found])
        clear = pairs[pairs[:, 1] >= LEAST]
        quantiles = np.quantile(clear[:, 1] / clear[:, 0], [0.05, 0.5, 0.95, 1.0])
        figures = " ".join(f"{q:7.3f}" for q in quantiles)
        few = len(pairs) - len(clear)
        print(f"{family:25} {delta:8g} {len(pairs):6} {few:7} {figures}", flush=True)
        worst = max(found, key=lambda cell: cell[-1] / cell[-2])
        print("   most:", *worst[:4], *(f"{value:.4f}" for value in worst[4:]), flush=True)


if __name__ == "__main__":
    main()
