"""Additive models at their defaults on raw tables, beside pipelines, linear models and DP-EBM.

Usage: SKDP_DATA=folder python docs/benchmarks/additive.py [fits] [row ...]

Rows: adult, credit_default, bank_marketing, california_housing, kdd, marital (Adult's marital
status, 8 classes, without the relationship), pure (Adult with delta = 0), undeclared (Adult,
bounds and categories found privately); hours, product, friedman1, crossed and additive, simulated
tables of 17,000 rows (``_tables.py``), with and without tables of columns, and forests.
``peers`` adds today's private bins with a private model,
linear models on columns scaled by public bounds, and DP-EBM at its defaults and with 3000 rounds
(3 fits) where interpret-core can be imported; see ``private_bins.py``.

Everything is learned in one fit and one budget: epsilon in the table, delta = 1e-5 (0 in "pure"),
add/remove. Bounds and categories are those of the published descriptions (``_tables.py``), but in
"undeclared". Adult by its official split; of kdd a tenth is held out, of the others a quarter.
Constants of the models were chosen on the training rows of Adult alone. Means of `fits` (10) fits
with standard errors, and the mean processor time of a fit; set OPENBLAS_NUM_THREADS=1 for it.
"""

import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
import private_bins
from _tables import N_SIMULATED, SCHEMAS, one_hot, read_rows, simulated, split_rows
from dpsgd_utility import KDD_CATEGORIES, KDD_LARGEST, KDD_OTHER_COUNTS
from private_bins import FEW, private_pipeline
from sklearn.metrics import r2_score, roc_auc_score

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)

DELTA = 1e-5
EPSILONS = (0.1, 1.0, 4.0)
SIMULATED = ("hours", "product", "friedman1", "crossed", "additive")
SIMULATED_EPSILONS = (0.3, 1.0, 4.0)
HOUSING = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (1, 52),
    "total_rooms": (0, 20_000),
    "total_bedrooms": (0, 4_000),
    "population": (0, 10_000),
    "households": (0, 3_000),
    "median_income": (0, 15),
}
OCEAN = {"ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]}
PRICES = (14_999, 500_001)


def frame(rows, schema):
    """Return the columns of a schema: numbers, missing ones too, and strings."""
    bounds, categories = schema
    table = pd.DataFrame(rows)
    numbers = {name: pd.to_numeric(table[name], errors="coerce") for name in bounds}
    return pd.DataFrame(numbers | {name: table[name].astype(str) for name in categories})


def classification(name):
    bounds, categories = SCHEMAS[name]
    declared = {"bounds": bounds, "categories": {n: t.split() for n, t in categories.items()}}
    parts = [
        (frame(rows, SCHEMAS[name]), np.array([int(row["target"]) for row in rows]))
        for rows in split_rows(name)
    ]
    return *parts, declared


def housing():
    rows = read_rows("california_housing")
    order = np.random.default_rng(0).permutation(len(rows))
    X = frame(rows, (HOUSING, OCEAN))
    y = np.array([float(row["target"]) for row in rows])
    cut = 3 * len(rows) // 4
    parts = [(X.iloc[part], y[part]) for part in (order[:cut], order[cut:])]
    return *parts, {"bounds": HOUSING, "categories": OCEAN}


def simulation(name):
    X, y, bounds, target_bounds = simulated(name)
    declared = {"bounds": bounds}
    if target_bounds is not None:
        declared["target_bounds"] = target_bounds
    cut = N_SIMULATED[0]
    return (X[:cut], y[:cut]), (X[cut:], y[cut:]), declared


def kdd():
    table = pd.DataFrame(read_rows("kddcup99_10pct"))
    y = table.pop("target").astype(int).to_numpy()
    columns, bounds = {}, {}
    for name in table:
        if name in KDD_CATEGORIES:
            columns[name] = table[name]
            continue
        numbers, bounds[name] = table[name].astype(float), (0.0, 1.0)
        if not name.endswith("_rate"):
            largest = KDD_LARGEST.get(name, KDD_OTHER_COUNTS)
            numbers, bounds[name] = np.log1p(np.clip(numbers, 0, largest)), (0, np.log1p(largest))
        columns[name] = numbers
    X, order = pd.DataFrame(columns), np.random.default_rng(0).permutation(len(y))
    parts = [(X.iloc[part], y[part]) for part in np.split(order, [9 * len(y) // 10])]
    lists = {name: values.split() for name, values in KDD_CATEGORIES.items()}
    return *parts, {"bounds": bounds, "categories": lists}


def marital():
    """Marital status by the other columns; the income counts as one of two labels."""
    train, test, declared = classification("adult")
    parts = []
    for X, y in (train, test):
        X = X.drop(columns="relationship").assign(income=y.astype(str))
        parts.append((X.drop(columns="marital_status"), X["marital_status"].to_numpy()))
    lists = declared["categories"] | {"income": ["0", "1"]}
    classes = sorted(lists.pop("marital_status"))
    del lists["relationship"]
    return *parts, {"bounds": declared["bounds"], "categories": lists, "classes": classes}


def quality(model, X, y):
    """Return R² of a regressor; of a classifier its accuracy, and of two classes the AUC."""
    if not hasattr(model, "predict_proba"):
        return r2_score(y, model.predict(X)), np.nan
    auc = np.nan
    if len(model.classes_) == 2:
        auc = roc_auc_score(y, model.predict_proba(X)[:, 1])
    return np.mean(model.predict(X) == y), auc


def measure(words, make, table, fits):
    (X, y), test, _ = table
    results = []
    for _ in range(fits):
        start = time.process_time()
        model = make().fit(X, y)
        seconds = time.process_time() - start
        results.append((*quality(model, *test), seconds))
    results = np.array(results)
    mean, error = results.mean(axis=0), results.std(axis=0, ddof=1) / np.sqrt(fits)
    cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(mean[:2], error, strict=False) if m == m]
    print(f"  {words:<44} {'   '.join(cells):<34} {mean[2]:6.2f} s", flush=True)


def additive_rows(name, table, fits):
    """Yield the words and the maker of each row of the table."""
    terms = {"delta": 0.0 if name == "pure" else DELTA} | table[2]
    if name in SIMULATED:
        yield from simulated_rows(terms)
        return
    if name == "undeclared":
        terms = {"delta": DELTA}
    for epsilon in EPSILONS[: 2 if name in ("kdd", "marital", "undeclared") else 3]:
        if name != "california_housing":
            yield f"additive, ε = {epsilon:g}", lambda e=epsilon: DPAdditiveClassifier(e, **terms)
            continue
        for pairs in (0, "auto"):
            yield (
                f"additive, ε = {epsilon:g}, interactions={pairs!r}",
                lambda e=epsilon, i=pairs: DPAdditiveRegressor(
                    e, target_bounds=PRICES, interactions=i, **terms
                ),
            )


def simulated_rows(terms):
    """Yield the words and the maker of each row of a simulated table."""
    additive, forest = DPAdditiveClassifier, DPRandomForestClassifier
    if "target_bounds" in terms:
        additive, forest = DPAdditiveRegressor, DPRandomForestRegressor
    for epsilon in SIMULATED_EPSILONS:
        for chosen in (0, "auto"):
            yield (
                f"additive, ε = {epsilon:g}, interactions={chosen!r}",
                partial(additive, epsilon, interactions=chosen, **terms),
            )
        yield f"forest, ε = {epsilon:g}", partial(forest, epsilon, **terms)


def scaled(X, declared):
    """Return one-hot categories and min-max numbers, rows of norm 1; a gap is a lower bound."""
    parts = []
    for name, (low, high) in declared["bounds"].items():
        values = np.clip(X[name].fillna(low), low, high).to_numpy(dtype=float)
        parts.append((values[:, None] - low) / (high - low))
    parts += [one_hot(X[name], values) for name, values in declared["categories"].items()]
    rows = np.hstack(parts)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def raw(X, declared):
    """Return an array of numbers and strings as the bins and DP-EBM take it, without gaps."""
    numbers = [X[name].fillna(low) for name, (low, _) in declared["bounds"].items()]
    columns = [*numbers, *(X[name] for name in declared["categories"])]
    return np.array([column.to_numpy(dtype=object) for column in columns]).T


def schema_of(declared):
    """Return bounds and categories as ``_tables.py`` has them."""
    return declared["bounds"], {n: " ".join(v) for n, v in declared["categories"].items()}


def boosting(name, epsilon, declared, **params):
    """Return DP-EBM, given the bounds, and those of the target."""
    private_bins.EPSILON = epsilon
    schema = schema_of(declared)
    if name != "california_housing":
        return private_bins.boosting(schema, **params)
    from interpret.privacy import DPExplainableBoostingRegressor

    low, high = PRICES
    bounds = private_bins.public_schema(schema)[0]
    kinds = ["continuous"] * len(bounds) + ["nominal"] * len(schema[1])
    params |= {"epsilon": epsilon, "delta": DELTA, "privacy_bounds": bounds, "n_jobs": 1}
    params |= {"privacy_target_min": low, "privacy_target_max": high}
    return DPExplainableBoostingRegressor(feature_types=kinds, **params)


def peers(name, table, fits):
    """Measure today's pipeline, linear models and DP-EBM on a table."""
    declared = table[2]
    linear, objects = (
        (*((encode(X, declared), y) for X, y in table[:2]), None) for encode in (scaled, raw)
    )
    kinds, target = (DPLogisticRegression, DPSGDClassifier), {}
    if name == "california_housing":
        kinds, target = (DPRidge, DPSGDRegressor), {"target_bounds": PRICES}
    for epsilon in EPSILONS:
        words = f"bins and model, ε = {epsilon:g}"
        if not target:
            private_bins.EPSILON, private_bins.BINS_EPSILON = epsilon, 0.1 * epsilon
            measure(words, lambda: private_pipeline(schema_of(declared)), objects, fits)
        for kind in kinds:
            words = f"{kind.__name__}, scaled, ε = {epsilon:g}"
            terms = {"delta": DELTA} | target
            measure(words, lambda e=epsilon, k=kind, t=terms: k(e, **t), linear, fits)
        if find_spec("interpret") is None:
            print("  DP-EBM: interpret-core is not installed", flush=True)
            continue
        make = partial(boosting, name, epsilon, declared)
        measure(f"DP-EBM, ε = {epsilon:g}", make, objects, fits)
        words = f"DP-EBM, 3000 rounds, ε = {epsilon:g}"
        measure(words, partial(make, max_rounds=3000), objects, min(fits, FEW))


LOADERS = {
    "adult": lambda: classification("adult"),
    "credit_default": lambda: classification("credit_default"),
    "bank_marketing": lambda: classification("bank_marketing"),
    "california_housing": housing,
    "kdd": kdd,
    "marital": marital,
    "pure": lambda: classification("adult"),
    "undeclared": lambda: classification("adult"),
    **{name: partial(simulation, name) for name in SIMULATED},
}


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    rows = sys.argv[2:] or [*LOADERS, "peers"]
    for name in [row for row in rows if row != "peers"]:
        table = LOADERS[name]()
        (X, y), (X_test, _), _ = table
        print(f"{name}: {len(y)} rows, {X.shape[1]} columns, {len(X_test)} to test on", flush=True)
        for words, make in additive_rows(name, table, fits):
            measure(words, make, table, fits)
        if "peers" in rows and (name in SCHEMAS or name == "california_housing"):
            peers(name, table, fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
