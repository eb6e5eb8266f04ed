"""Processor time of fits, beside that of scikit-learn's estimator of the same kind.

Usage: python docs/benchmarks/siblings.py [rows] [rounds] [names ...]

Tables have 20 columns; epsilon is 1 and delta 1e-7. In each round, skdp's estimator and its sibling
fit the same table one after the other, in one process and on one core; medians are printed. Only
the estimators whose names are given are fitted, by default all of them.
"""

import statistics
import sys
import time
import warnings

import numpy as np
import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.impute
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.preprocessing
import sklearn.svm
import sklearn.tree
from threadpoolctl import threadpool_limits

import skdp

N_COLUMNS = 20
NORM = 6.0
BOUNDS = (-5.0, 5.0)
CATEGORIES = list("abcde")


def table(kind, n_rows, rng):
    """Return the rows of a table and a target."""
    X = rng.normal(size=(n_rows, N_COLUMNS))
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] - 0.5 * X[:, 3]
    if kind == "words":
        X = np.array(CATEGORIES, dtype=object)[rng.integers(0, 5, size=X.shape)]
    elif kind == "missing":
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    elif kind == "codes":
        X = np.floor(np.clip(X, -4.0, 3.9)) + 4.0
    noise = rng.normal(size=n_rows)
    if kind == "numbers":
        return X, np.clip(score + noise, -5.0, 5.0)
    if kind == "counts":
        return X, rng.poisson(np.exp(np.clip(0.5 * score, -2.0, 2.0))).clip(0, 20)
    return X, (score + noise > 0.0).astype(int)


DECLARED = {"classes": [0, 1]}
TARGETS = {"target_bounds": (-5.0, 5.0)}
# Name in the table of results, skdp's class and parameters, its sibling, and the kind of table.
PAIRS = {
    "standard scaler": ("DPStandardScaler", {"bounds": BOUNDS}, "preprocessing.StandardScaler"),
    "standard scaler, bounds found": ("DPStandardScaler", {}, "preprocessing.StandardScaler"),
    "min-max scaler, bounds found": ("DPMinMaxScaler", {}, "preprocessing.MinMaxScaler"),
    "max-abs scaler, bounds found": ("DPMaxAbsScaler", {}, "preprocessing.MaxAbsScaler"),
    "robust scaler": ("DPRobustScaler", {"bounds": BOUNDS}, "preprocessing.RobustScaler"),
    "quantiles": (
        "DPQuantileTransformer",
        {"bounds": BOUNDS},
        "preprocessing.QuantileTransformer",
        {"subsample": None},
    ),
    "bins": (
        "DPKBinsDiscretizer",
        {"bounds": BOUNDS},
        "preprocessing.KBinsDiscretizer",
        {"subsample": None},
    ),
    "one-hot encoder": (
        "DPOneHotEncoder",
        {"categories": "auto"},
        "preprocessing.OneHotEncoder",
        {},
        "words",
    ),
    "target encoder": ("DPTargetEncoder", {}, "preprocessing.TargetEncoder", {}, "words"),
    "imputer": ("DPSimpleImputer", {"bounds": BOUNDS}, "impute.SimpleImputer", {}, "missing"),
    "PCA": ("DPPCA", {"n_components": 5, "data_norm": NORM}, "decomposition.PCA"),
    "k-means": (
        "DPKMeans",
        {"n_clusters": 5, "bounds": BOUNDS},
        "cluster.KMeans",
        {"n_clusters": 5},
    ),
    "Gaussian naive Bayes": (
        "DPGaussianNB",
        {"bounds": BOUNDS, **DECLARED},
        "naive_bayes.GaussianNB",
    ),
    "histogram naive Bayes": (
        "DPHistogramNB",
        {"bounds": (0.0, 8.0), **DECLARED},
        "naive_bayes.CategoricalNB",
        {},
        "codes",
    ),
    "decision tree": (
        "DPDecisionTreeClassifier",
        {"bounds": BOUNDS, **DECLARED},
        "tree.DecisionTreeClassifier",
        {"max_depth": 5},
    ),
    "random forest": (
        "DPRandomForestClassifier",
        {"bounds": BOUNDS, **DECLARED},
        "ensemble.RandomForestClassifier",
        {"n_estimators": 10},
    ),
    "logistic regression": (
        "DPLogisticRegression",
        {"data_norm": NORM, **DECLARED},
        "linear_model.LogisticRegression",
    ),
    "linear SVC": (
        "DPLinearSVC",
        {"data_norm": NORM, **DECLARED},
        "linear_model.SGDClassifier",
        {"loss": "hinge"},
    ),
    "SGD classifier": (
        "DPSGDClassifier",
        {"data_norm": NORM, **DECLARED},
        "linear_model.SGDClassifier",
        {"loss": "log_loss"},
    ),
    "SGD regressor": (
        "DPSGDRegressor",
        {"data_norm": NORM, **TARGETS},
        "linear_model.SGDRegressor",
        {},
        "numbers",
    ),
    "ridge": ("DPRidge", {"data_norm": NORM, **TARGETS}, "linear_model.Ridge", {}, "numbers"),
    "least squares": (
        "DPLinearRegression",
        {"data_norm": NORM, **TARGETS},
        "linear_model.LinearRegression",
        {},
        "numbers",
    ),
    "Poisson regression": (
        "DPPoissonRegressor",
        {"data_norm": NORM, "target_bounds": (0.0, 20.0)},
        "linear_model.PoissonRegressor",
        {},
        "counts",
    ),
}


def make_pair(kind, params, sibling, sibling_params=(), table_kind="classes"):
    """Return skdp's estimator, its sibling and the kind of table."""
    estimator = getattr(skdp, kind)(1.0, **params)
    if "delta" in estimator.get_params():
        estimator.set_params(delta=1e-7)
    package, name = sibling.split(".")
    return estimator, getattr(getattr(sklearn, package), name)(**dict(sibling_params)), table_kind


def seconds_of(estimator, X, y):
    start = time.process_time()
    estimator.fit(X, y)
    return time.process_time() - start


def main():
    n_rows = int(float(sys.argv[1])) if sys.argv[1:] else 1_000_000
    n_rounds = int(sys.argv[2]) if sys.argv[2:] else 3
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    print(f"{n_rows} x {N_COLUMNS}, epsilon 1, {n_rounds} rounds\n")
    print("| | skdp, s | scikit-learn, s | ratio |\n|---|---|---|---|")
    for name in sys.argv[3:] or PAIRS:
        ours, sibling, kind = make_pair(*PAIRS[name])
        X, y = table(kind, n_rows, np.random.default_rng(0))
        times = [(seconds_of(ours, X, y), seconds_of(sibling, X, y)) for _ in range(n_rounds)]
        own, other = (statistics.median(values) for values in zip(*times, strict=True))
        print(f"| {name} | {own:.3g} | {other:.3g} | {own / other:.1f} |", flush=True)


if __name__ == "__main__":
    main()
