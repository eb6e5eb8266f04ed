"""Fitted models of every estimator, and pipelines of them, that the tests of export share."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils import get_tags

from skdp import (
    DPPCA,
    DPAdditiveRegressor,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPQuantileTransformer,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from tests._estimators import ESTIMATORS
from tests._private import Case

# Beyond every bound, and what is no category.
BEYOND, UNDECLARED = 100.0, 7.0
SCALER = DPStandardScaler(bounds=(0, 90))
accountant = cache(partial(PrivacyAccountant, 1e9, 0.5))


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model, and rows to ask it about: numbers of them are single precision's."""

    fitted: object
    X: object

    @property
    def answers(self):
        """What it answers, by the name of the method."""
        return answers(self.fitted, self.X)


def answers(model, X):
    """Return the arrays that the methods of a fitted model return."""
    names = ["predict", "predict_proba", "decision_function"]
    last = model
    while hasattr(last, "steps"):
        last = last[-1]
    if not hasattr(model, "predict") or hasattr(last, "cluster_centers_"):
        names.append("transform")
    found = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    return {name: a.toarray() if hasattr(a, "toarray") else a for name, a in found.items()}


def single(X):
    """Return numbers, each one of single precision."""
    return np.asarray(X, dtype=np.float32).astype(np.float64)


@cache
def contract_model(name):
    case = Case({repr(estimator): estimator for estimator in ESTIMATORS}[name])
    X, tags = np.vstack([case.X, case.other_X]), get_tags(case.estimator).input_tags
    X = np.vstack([X, np.full_like(X[:1], UNDECLARED)])
    if not tags.categorical:
        X = np.vstack([X, BEYOND * X])
    if tags.allow_nan:
        X[::5, 1] = np.nan
    # So little noise that categories which are to be found are found in every run.
    return Model(case.fit(accountant=accountant(), epsilon=1e3), single(X))


def people(n_rows=300, seed=0):
    """Return a table of numbers, gaps, whole numbers and strings, and labels that are strings."""
    rng = np.random.default_rng(seed)
    age, hours = single(rng.uniform([17, 0], [90, 60], size=(n_rows, 2))).T
    labels = np.where(age > 50, "old", np.where(hours > 30, "busy", "other")).astype(object)
    hours[::7] = np.nan
    rooms, work = rng.integers(0, 4, size=n_rows), rng.choice(["state", "firm", "none"], n_rows)
    return pd.DataFrame({"age": age, "hours": hours, "rooms": rooms, "work": work}), labels


def _columns():
    numbers = make_pipeline(DPSimpleImputer(bounds=(0, 90)), SCALER)
    rooms, work = (DPOneHotEncoder(categories=own) for own in ([0, 1, 2], ["state", "firm"]))
    parts = [("numbers", numbers, ["age", "hours"]), ("work", work, ["work"])]
    made = [*parts, ("none", DPPCA(), [])]
    return ColumnTransformer(made, remainder=rooms, sparse_threshold=0)


def _frozen():
    return FrozenEstimator(SCALER.fit(people(seed=1)[0][["age", "rooms"]]))


LABELS = {"work": ["state", "firm"], "rooms": [0, 1, 2]}
NUMBER, COUNTS = {"target_bounds": (0, 2)}, DPPoissonRegressor(target_bounds=(0, 2))
PIPELINES = {
    "scaler": lambda: make_pipeline(SCALER, DPLogisticRegression()),
    "columns": lambda: make_pipeline(_columns(), DPLogisticRegression()),
    "union": lambda: make_pipeline(
        FeatureUnion([("frozen", _frozen()), ("centered", DPMeanTransformer(bounds=(0, 90)))]),
        DPSGDClassifier(),
    ),
    "means": lambda: make_pipeline(
        DPTargetEncoder(categories=[0, 1, 2], **NUMBER), DPLinearRegression(**NUMBER)
    ),
    "bins": lambda: make_pipeline(DPKBinsDiscretizer(encode="onehot-dense"), DPRidge(**NUMBER)),
    "cells": lambda: make_pipeline(DPHistogramTransformer(n_bins=6), DPLogisticRegression()),
    "quantiles": lambda: make_pipeline(DPQuantileTransformer(bounds=(0, 90)), COUNTS),
    "table": lambda: make_pipeline(
        DPTableVectorizer(categories=LABELS, bounds=(0, 90)), DPLogisticRegression()
    ),
    "beside": lambda: make_pipeline(
        ColumnTransformer(
            [("raw", DPTableVectorizer(bounds=(0, 90)), [0]), ("scaled", SCALER, [1])]
        ),
        DPLogisticRegression(),
    ),
    "curves": lambda: make_pipeline(SCALER, DPAdditiveRegressor(bounds=(-9, 9), **NUMBER)),
    "axes": lambda: make_pipeline(SCALER, DPPCA(n_components=1), DPKMeans(n_clusters=3)),
}
# Of bins a column without common values, which ONNX rounds to the next bin.
COLUMNS = {"bins": ["age"], "cells": ["age"], "means": ["rooms"]}
COLUMNS |= dict.fromkeys(["columns", "table"], ["age", "hours", "rooms", "work"])


@cache
def pipeline_model(name):
    table, labels = people()
    X, pipe = table[COLUMNS.get(name, ["age", "rooms"])], PIPELINES[name]()
    is_number = hasattr(pipe[-1], "target_bounds")
    pipe.fit(X, (labels == "old") * 2.0 if is_number else labels)
    return Model(pipe, people(seed=2)[0][X.columns])


def model(name):
    """Return the model of a name: a pipeline's, or what an estimator looks like."""
    return pipeline_model(name) if name in PIPELINES else contract_model(name)


# One of each class: what further parameters change is no question of formats.
FIRST = {type(e): e for e in reversed(ESTIMATORS)}.values()
NAMES = [repr(e) for e in FIRST]
PREDICTORS = [*(repr(e) for e in FIRST if hasattr(e, "predict")), *PIPELINES]
