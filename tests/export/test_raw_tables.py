"""Plain models of raw tables: every cell, at its very edges, gaps, unseen labels, pairs, trees."""

import pickle

import numpy as np
import pandas as pd
import pytest

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPHistogramNB,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPTableVectorizer,
)
from skdp.export import to_sklearn
from tests.export._models import answers

N_ROWS = 1000
BOUNDS = {"age": (17, 90), "income": (-1.0, 3.3)}
# Not in order, and one that is no whole number.
CATEGORIES = {"rooms": [3, 0, 1.5], "work": ["state", "firm", ""]}
KNOWN = {"bounds": BOUNDS, "categories": CATEGORIES, "epsilon": 50.0}
PAIRS = {"interactions": [("age", "work"), ("rooms", "income")]}
TARGET = {"target_bounds": (-1, 2)}
MODELS = {
    "curves and pairs": (DPAdditiveClassifier(**KNOWN, **PAIRS), 2),
    "three classes": (DPAdditiveClassifier(**KNOWN, **PAIRS), 3),
    "three classes, not clipped": (DPAdditiveClassifier(**KNOWN, delta=0.0), 3),
    "pairs that are found": (DPAdditiveRegressor(**KNOWN, **TARGET, interactions=3), 0),
    "histograms": (DPHistogramNB(**KNOWN), 2),
    "histograms of three": (DPHistogramNB(**KNOWN), 3),
    "a tree": (DPDecisionTreeClassifier(**KNOWN, max_depth=6), 2),
    "a forest": (DPRandomForestClassifier(**KNOWN, n_estimators=20, max_depth=4), 2),
    "a forest of numbers": (DPRandomForestRegressor(**KNOWN, **TARGET, n_estimators=20), 0),
    "bins": (DPTableVectorizer(**KNOWN), 2),
    "scaled": (DPTableVectorizer(**KNOWN, numbers="scaled"), 2),
}


def table(edges=(), seed=0):
    """Return rows among and at edges, or next to them, with all kinds of labels and gaps."""
    rng = np.random.default_rng(seed)
    columns = {}
    for name, (low, high) in BOUNDS.items():
        values = rng.uniform(1.5 * low - 1.0, 1.5 * high, N_ROWS)
        near = (
            np.concatenate([(e, np.nextafter(e, -9e9), np.nextafter(e, 9e9)) for e in edges])
            if len(edges)
            else values
        )
        columns[name] = np.where(rng.random(N_ROWS) < 0.5, values, rng.choice(near, N_ROWS))
        columns[name][rng.random(N_ROWS) < 0.1] = np.nan
    columns["rooms"] = rng.choice([0.0, 3.0, 1.5, 2.0, -1.0, np.nan, 1e30], N_ROWS)
    columns["work"] = rng.choice(
        np.array(["state", "firm", "", "other", "nan", None, np.nan], dtype=object), N_ROWS
    )
    columns["child"] = rng.random(N_ROWS) < 0.5
    return pd.DataFrame(columns)


def fitted_model(name):
    model, n_classes = MODELS[name]
    X = table()
    score = np.nan_to_num(X["age"] / 90 + X["income"] / 3) + (X["work"] == "firm") - X["child"]
    y = np.clip(score, -1, 2) if n_classes == 0 else np.digitize(score, [0.0, 0.8][: n_classes - 1])
    return model.fit(X, y)


def edges_of(model):
    shapes = getattr(model, "shape_functions_", None)
    edges = [s.edges[0] for s in shapes] if shapes else model.bin_edges_
    return np.concatenate([own for own in edges if own.dtype.kind == "f"])


@pytest.mark.parametrize("name", MODELS)
def test_every_cell_is_the_same(name):
    fitted = fitted_model(name)
    plain, X = to_sklearn(fitted), table(edges_of(fitted), seed=1)
    expected, found = answers(fitted, X), answers(plain, X)
    print(
        expected.keys() - found.keys(),
        len(plain.steps),
        [
            np.abs(expected[n] - found[n]).max()
            if expected[n].dtype.kind == "f"
            else (expected[n] != found[n]).mean()
            for n in expected.keys() & found.keys()
        ],
    )
    for each in expected.keys() & found.keys():
        np.testing.assert_allclose(found[each], expected[each], rtol=1e-6, atol=1e-9)
