"""Times of the encoders, scalers and the imputer beside scikit-learn's, and what they find.

python docs/benchmarks/encoders.py [repeats]; with SKDP_DATA=folder also on the Adult table.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    TargetEncoder,
)

import skdp

N_ROWS, N_FEATURES = 300_000, 10


def tables():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N_ROWS, N_FEATURES)) @ rng.normal(size=(N_FEATURES, N_FEATURES))
    missing = np.where(rng.random(numbers.shape) < 0.1, np.nan, numbers)
    codes = rng.poisson(5.0, size=numbers.shape)
    target = (codes[:, 0] + rng.normal(size=N_ROWS) > 5).astype(int)
    return numbers, missing, codes, target


def pairs():
    numbers, missing, codes, target = tables()
    bounds, norm, labels = (-20, 20), 20.0, list(range(25))
    yield "DPPCA", skdp.DPPCA(data_norm=norm), PCA(), (numbers,)
    yield "DPPCA, data_norm='auto'", skdp.DPPCA(data_norm="auto"), PCA(), (numbers,)
    yield "DPMinMaxScaler", skdp.DPMinMaxScaler(bounds=bounds), MinMaxScaler(), (numbers,)
    yield "DPRobustScaler", skdp.DPRobustScaler(bounds=bounds), RobustScaler(), (numbers,)
    yield "DPRobustScaler, bounds='auto'", skdp.DPRobustScaler(), RobustScaler(), (numbers,)
    many = QuantileTransformer(subsample=None)
    yield "DPQuantileTransformer", skdp.DPQuantileTransformer(bounds=bounds), many, (numbers,)
    for strategy in ("mean", "median"):
        ours = skdp.DPSimpleImputer(strategy=strategy, bounds=bounds)
        yield f"DPSimpleImputer, {strategy}", ours, SimpleImputer(strategy=strategy), (missing,)
    counted = skdp.DPOneHotEncoder(categories=labels, min_frequency=100)
    yield ("DPOneHotEncoder, declared", counted, OneHotEncoder(min_frequency=100), (codes,))
    yield "DPOneHotEncoder, discovered", skdp.DPOneHotEncoder(delta=1e-6), OneHotEncoder(), (codes,)
    ours = skdp.DPTargetEncoder(categories=labels)
    yield "DPTargetEncoder", ours, TargetEncoder(smooth=10.0), (codes, target)


def seconds(estimator, table):
    start = time.perf_counter()
    estimator.fit(*table)
    return time.perf_counter() - start


def time_fits(repeats):
    print(f"{N_ROWS} rows, {N_FEATURES} columns, medians of {repeats} fits: ours, sklearn's, ratio")
    for name, ours, theirs, table in pairs():
        measured = [(seconds(ours, table), seconds(theirs, table)) for _ in range(repeats)]
        one, other = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"  {name:<30} {one:7.3f} s {other:7.3f} s {one / other:6.2f}")


def adult(folder):
    import pandas as pd

    path = Path(folder)
    train, test = (
        pd.read_csv(path / f"adult_{part}.csv.gz", keep_default_na=False)
        for part in ("train", "test")
    )
    words = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    y, y_test = train["target"].to_numpy(), test["target"].to_numpy()
    X, X_test = train[words].to_numpy(object), test[words].to_numpy(object)
    total = sum(len(np.unique(column.astype(str))) for column in X.T)
    print(f"Adult, {len(X)} rows, {len(words)} columns of words, {total} categories")
    # The published lists, in effect.
    declared = [sorted(set(column)) for column in X.T]
    reference = auc(TargetEncoder(smooth=10.0, random_state=0), X, y, X_test, y_test)
    print(f"  AUC of logistic regression on scikit-learn's target encoding {reference:.4f}")
    for epsilon in (0.1, 1.0, 10.0):
        found = skdp.DPOneHotEncoder(epsilon, delta=1e-5).fit(X)
        n_found = sum(map(len, found.categories_))
        covered = np.mean(found.transform(X).sum(axis=1)) / len(words)
        runs = [
            auc(skdp.DPTargetEncoder(epsilon, **params), X, y, X_test, y_test)
            for params in ({"categories": declared}, {"delta": 1e-5})
            for _ in range(5)
        ]
        first, second = np.mean(runs[:5]), np.mean(runs[5:])
        print(
            f"  epsilon {epsilon:<4}: {n_found} discovered, {covered:.3f} of all values; AUC of "
            f"target encoding {first:.4f} declared, {second:.4f} discovered"
        )


def auc(encoder, X, y, X_test, y_test):
    """Return the AUC of a model that is not private, on an encoding that may be."""
    encoder.fit(X, y)
    model = LogisticRegression(C=1e6, max_iter=1000).fit(encoder.transform(X), y)
    return roc_auc_score(y_test, model.decision_function(encoder.transform(X_test)))


if __name__ == "__main__":
    time_fits(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    if "SKDP_DATA" in os.environ:
        adult(os.environ["SKDP_DATA"])
