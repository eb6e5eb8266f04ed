"""Plain models of raw tables: each cell to its very edges, gaps, unseen labels, pairs and trees."""

import pickle
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPHistogramNB,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPStandardScaler,
    DPTableVectorizer,
)
from skdp.export import to_sklearn
from tests.export._models import answers
from tests.export.test_round_trips import check_onnx, onnx_answers

BOUNDS = {"age": (17, 90), "income": (-1.0, 3.3)}
# Not in order; one is no whole number.
CATEGORIES = {"rooms": [3, 0, 1.5], "work": ["state", "firm", ""]}
KNOWN = {"bounds": BOUNDS, "categories": CATEGORIES, "epsilon": 50.0}
# Fewer cells, and fewer steps of a fit.
NOISY = KNOWN | {"epsilon": 5.0}
PAIRS, TARGET = {"interactions": [("age", "work"), ("rooms", "income")]}, {"target_bounds": (-1, 2)}
# A model, and how many classes there are, or 0.
MODELS = {
    "pairs": (DPAdditiveClassifier(**KNOWN, **PAIRS), 2),
    "pairs that were found": (DPAdditiveRegressor(**KNOWN, **TARGET, interactions=3), 0),
    "pairs and three classes": (DPAdditiveClassifier(**KNOWN, **PAIRS), 3),
    "counts": (DPAdditiveRegressor(**KNOWN, target_bounds=(0.0, 2.0), loss="poisson"), 0),
    "tables by default": (DPAdditiveRegressor(**KNOWN, **TARGET), 0),
    "trees and three classes": (DPRandomForestClassifier(**NOISY, delta=0.0, n_estimators=9), 3),
    "trees": (DPRandomForestClassifier(**KNOWN, n_estimators=9, max_depth=4), 2),
    "trees of numbers": (DPRandomForestRegressor(**KNOWN, **TARGET, n_estimators=9), 0),
    "one tree": (DPDecisionTreeClassifier(**KNOWN, max_depth=6), 2),
    "histograms": (DPHistogramNB(**NOISY), 2),
    "histograms and three classes": (DPHistogramNB(**NOISY), 3),
    "bins": (DPTableVectorizer(**KNOWN), 2),
    "scaled": (DPTableVectorizer(**KNOWN, numeric="scaled"), 2),
}
# Chances with clipped residuals: of several classes no plain estimator has them.
OWN = {"pairs and three classes": {"predict_proba"}}
OWN |= dict.fromkeys(["pairs", "trees", "one tree"], {"decision_function"})


def people(n_rows, edges=(), seed=0):
    """Return numbers within bounds and beyond, half of them at edges or next to them; labels."""
    rng, columns = np.random.default_rng(seed), {}
    for name, (low, high) in BOUNDS.items():
        values = rng.uniform(low - 5.0, high + 5.0, n_rows)
        near = [*np.nextafter(edges, -np.inf), *edges, *np.nextafter(edges, np.inf)] or values
        columns[name] = np.where(rng.random(n_rows) < 0.5, values, rng.choice(near, n_rows))
        columns[name][rng.random(n_rows) < 0.1] = np.nan
    columns["rooms"] = rng.choice([0.0, 3.0, 1.5, 2.0, -1.0, 1e30, np.nan], n_rows)
    words = np.array(["state", "firm", "", "other", "nan", None, np.nan], dtype=object)
    return pd.DataFrame(
        columns | {"work": rng.choice(words, n_rows), "child": rng.random(n_rows) < 0.5}
    )


@cache
def fitted_model(name):
    estimator, n_classes = MODELS[name]
    X = people(1000)
    score = np.nan_to_num(X["age"] / 90 + X["income"] / 3) + (X["work"] == "firm") - X["child"]
    codes = np.digitize(score, [0.0, 0.8][: n_classes - 1])
    return clone(estimator).fit(X, codes if n_classes else score)


def edges_of(fitted):
    shapes = getattr(fitted, "shape_functions_", ())
    edges = [shape.edges[0] for shape in shapes] or fitted.bin_edges_
    return np.concatenate([own for own in edges if own.dtype.kind == "f"])


@pytest.mark.quick_cases(every=13)
@pytest.mark.parametrize("name", MODELS)
def test_rows_at_edges_with_gaps_and_unseen_labels_are_answered_alike(name):
    fitted = fitted_model(name)
    plain, X = to_sklearn(fitted), people(10_000, edges_of(fitted), seed=1)
    expected, found = answers(fitted, X), answers(plain, X)
    assert expected.keys() - found.keys() == OWN.get(name, set())
    assert found
    for each in found:
        np.testing.assert_allclose(found[each], expected[each], rtol=1e-9, atol=1e-9)
    X.loc[7, "income"] = np.inf
    for model in (fitted, plain):
        with pytest.raises(ValueError, match="infinity"):
            answers(model, X)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", MODELS)
def test_a_plain_model_is_made_of_public_attributes_alone(name):
    """Whatever else a fitted model may hold, nothing of it goes out."""
    fitted = fitted_model(name)
    public = {own: value for own, value in vars(fitted).items() if re.fullmatch(r"[a-z]\w*_", own)}
    bare = clone(fitted)
    vars(bare).update(public)
    kept = pickle.dumps(to_sklearn(bare))
    assert kept == pickle.dumps(to_sklearn(fitted))
    assert b"skdp" not in kept


@pytest.mark.quick_cases(every=11)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in MODELS if hasattr(MODELS[name][0], "predict")])
def test_onnx_answers_raw_tables_in_single_precision(name):
    """A gap of strings is the word nan there; the private model is asked for the same rows."""
    fitted = fitted_model(name)
    X = people(1000, seed=2).drop(columns="child").assign(child=1.0)
    X[["age", "income"]] = X[["age", "income"]].astype(np.float32).astype(np.float64)
    told = X.assign(work=[str(w) if isinstance(w, str) else "nan" for w in X["work"]])
    expected = answers(
        fitted, X.assign(work=X["work"].replace("nan", None)).astype({"child": bool})
    )
    expected = {method: own for method, own in expected.items() if method not in OWN.get(name, ())}
    check_onnx(onnx_answers(to_sklearn(fitted), told, np.float32), expected)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", ["pairs", "histograms and three classes", "trees of numbers"])
def test_onnx_answers_numbers_in_double_precision_where_there_are_no_gaps(name):
    estimator, n_classes = MODELS[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 3))
    parameters = {"bounds": (-1, 1), "categories": {2: [-1, 0, 1]}}
    if n_classes == 2:
        parameters["interactions"] = [(0, 2)]
    X[:, 2] = X[:, 2].round()
    y = np.digitize(X.sum(axis=1), [-0.5, 0.5][: n_classes - 1]) if n_classes else X[:, 0]
    fitted = clone(estimator).set_params(**parameters).fit(X, y)
    edges = edges_of(fitted)
    # Below 0 by more than the narrowest step.
    below = np.minimum(np.nextafter(edges, -9.0), edges - 2e-38)
    near = np.column_stack([edges, below, rng.integers(-1, 3, len(edges))])
    check_onnx(onnx_answers(to_sklearn(fitted)[1:], near, np.float64), answers(fitted, near))


@pytest.mark.parametrize(
    ("column", "categories"),
    [
        (pd.date_range("2020", periods=300), None),
        (np.arange(300.0).astype(object), {"column": [0, "a"]}),
        (np.arange(300.0), {"column": [10**9, 2]}),
    ],
)
@pytest.mark.filterwarnings("ignore:the categories of column")
def test_columns_that_no_plain_step_reads_are_refused(column, categories):
    model = DPAdditiveRegressor(epsilon=1e3, target_bounds=(0, 1), categories=categories)
    fitted = model.fit(pd.DataFrame({"column": column}), np.arange(300) / 300)
    with pytest.raises(ValueError, match="DPAdditiveRegressor cannot be exported .* dates"):
        to_sklearn(fitted)


@pytest.mark.parametrize("gap", ["a string dtype", "a row of gaps"])
def test_frames_whose_gaps_are_other_things_are_answered_by_the_recipe_of_the_page(gap):
    fitted = fitted_model("pairs")
    X = people(100, seed=3)
    X = X.assign(work=X["work"].astype("string") if gap == "a string dtype" else np.nan)
    told = X.astype(object)
    found = to_sklearn(fitted).predict_proba(told.where(told.notna(), None))
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-9)


def test_bounds_that_stand_for_gaps_are_refused():
    model = DPAdditiveClassifier(bounds=(0, 1e39), classes=[0, 1]).fit(np.ones((9, 1)), np.ones(9))
    with pytest.raises(ValueError, match="bounds beyond the range of single precision"):
        to_sklearn(model)


def test_a_plain_union_or_table_of_columns_makes_arrays_whatever_the_private_one_made():
    X = people(100, seed=3)[["age", "income"]].fillna(0.0)
    columns = ColumnTransformer([("p", DPPCA(data_norm=1.0), ["age", "income"])])
    union = FeatureUnion([("s", DPStandardScaler(bounds=(0, 90)))])
    pipe = make_pipeline(columns, union, DPLogisticRegression()).set_output(transform="pandas")
    pipe.fit(X, X["age"] > 50)
    np.testing.assert_allclose(to_sklearn(pipe).predict_proba(X), pipe.predict_proba(X))
