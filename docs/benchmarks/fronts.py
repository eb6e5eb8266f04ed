"""Which front for which model, how many bins, and whether a declared cross helps.

Usage: SKDP_DATA=folder python docs/benchmarks/fronts.py [fits] [fronts|bins|crosses] [table ...]

Training rows only, of which three in ten are held out to score; subsamples of n of the others.
Bounds and categories are the declared ones of ``_tables.py`` and ``additive.py``; delta = 1e-5,
add/remove. Means of `fits` (4) draws of rows and noise with standard errors: AUC, and R² of
california_housing.

fronts: models behind `DPTableVectorizer`, binned for .15 of epsilon or scaled for nothing.
bins: `DPHistogramTransformer` for .1 of epsilon before `DPLogisticRegression`, beside columns
scaled by the declared bounds, for nothing.
crosses: latitude and longitude, before `DPSGDRegressor`.
"""

import sys
import warnings

import numpy as np
from additive import PRICES, classification, housing
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPHistogramTransformer,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPTableVectorizer,
)

DELTA, EPSILONS = 1e-5, (0.1, 1.0, 4.0)
CLASSIFICATION = ("adult", "bank_marketing", "credit_default")
CLASSES = {"delta": DELTA, "classes": [0, 1]}
NUMBERS = {"delta": DELTA, "target_bounds": PRICES}


def load(table):
    (X, y), _, declared = housing() if table == "california_housing" else classification(table)
    # An empty number counts as its lower bound: the histogram takes no gaps.
    X = X.fillna({name: low for name, (low, _) in declared["bounds"].items()})
    order = np.random.default_rng(7).permutation(len(y))
    fit, held = np.split(order, [7 * len(y) // 10])
    return (X.iloc[fit], y[fit]), (X.iloc[held], y[held]), declared


def score(model, X, y):
    if hasattr(model, "decision_function"):
        return roc_auc_score(y, model.decision_function(X))
    return r2_score(y, model.predict(X))


def fronts(epsilon, declared, regression):
    kinds = {DPLogisticRegression: CLASSES, DPSGDClassifier: CLASSES, DPLinearSVC: CLASSES}
    if regression:
        kinds = {DPRidge: NUMBERS, DPSGDRegressor: NUMBERS}
    for numbers, share in (("bins", 0.15), ("scaled", 0.0)):
        for kind, terms in kinds.items():
            front = DPTableVectorizer(share * epsilon or 1.0, numeric=numbers, **declared)
            yield (
                f"{kind.__name__}, {numbers}",
                make_pipeline(front, kind((1 - share) * epsilon, **terms)),
            )


def bins(epsilon, declared, regression):
    scaled = DPTableVectorizer(numeric="scaled", **declared)
    yield "scaled columns", make_pipeline(scaled, DPLogisticRegression(epsilon, **CLASSES))
    for n_bins in ("auto", 32):
        front = DPHistogramTransformer(0.1 * epsilon, n_bins=n_bins, **declared)
        yield (
            f"n_bins={n_bins!r}",
            make_pipeline(front, DPLogisticRegression(0.9 * epsilon, **CLASSES)),
        )


def crosses(epsilon, declared, regression):
    for n_bins in (8, 16, 32):
        for pairs in (None, [("latitude", "longitude")]):
            front = DPHistogramTransformer(
                0.1 * epsilon, n_bins=n_bins, interactions=pairs, sparse_output=True, **declared
            )
            model = DPSGDRegressor(0.9 * epsilon, **NUMBERS)
            yield f"n_bins={n_bins}, interactions={pairs}", make_pipeline(front, model)


def measure(make, table, sizes, fits):
    (X, y), held, declared = load(table)
    for n in [min(size, len(y)) for size in sizes]:
        for epsilon in EPSILONS:
            found = {}
            for draw in range(fits):
                rows = np.random.default_rng(1000 + draw).permutation(len(y))[:n]
                for words, model in make(epsilon, declared, table == "california_housing"):
                    fitted = model.fit(X.iloc[rows], y[rows])
                    found.setdefault(words, []).append(score(fitted, *held))
            print(f"{table}, {n} rows, ε = {epsilon:g}")
            for words, scores in found.items():
                error = np.std(scores, ddof=1) / np.sqrt(fits)
                print(f"  {words:<60} {np.mean(scores):.4f} ± {error:.4f}", flush=True)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    what = sys.argv[2] if len(sys.argv) > 2 else "fronts"
    tables = {"crosses": ["california_housing"], "bins": CLASSIFICATION}
    for table in sys.argv[3:] or tables.get(what, [*CLASSIFICATION, "california_housing"]):
        sizes = {"fronts": (1000, 10**6), "bins": (500, 1000, 3000, 10_000, 10**6)}
        measure(globals()[what], table, sizes.get(what, (10**6,)), fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
