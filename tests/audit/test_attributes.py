import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.audit import attribute_inference, success_bound
from skdp.audit._tables import with_constant


def table(n=300, d=12):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, size=(n, d)).astype(float), rng.integers(0, 2, n)


def test_what_a_tree_learns_by_heart_is_found():
    X, y = table()
    found = attribute_inference(
        DecisionTreeClassifier(), X, y, column=0, n_models=16, random_state=0
    )
    assert found.gain.low > 0.15 and found.with_row.low > 0.65
    assert abs(found.without_row.value - 0.5) < 0.05 > abs(found.baseline - 0.5)
    assert found.gain.value == pytest.approx(found.with_row.value - found.without_row.value)
    assert json.loads(json.dumps(found.to_dict()))["n_values"] == 2
    assert "Only the gain" in str(found) and "<table" in found._repr_html_()


def test_what_follows_from_other_columns_is_no_gain():
    """Statistics: the column is the label, which a model of other rows tells as well."""
    X, y = table(600)
    X[:, 0] = np.where(np.random.default_rng(1).random(600) < 0.9, y, 1 - y)
    found = attribute_inference(
        LogisticRegression(), X, y, column=0, n_models=16, confidence=0.999, random_state=0
    )
    assert found.baseline > 0.85 and found.without_row.value > 0.85
    assert found.gain.low <= 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_claim_bounds_the_gain(epsilon):
    """False alarms are below 1e-4, the confidence of intervals being 1 - 1e-4."""
    X, y = table()
    accountant = PrivacyAccountant(1.0, 0.0)
    model = DPLogisticRegression(
        epsilon, delta=0.0, mechanism="output", data_norm=3.5, accountant=accountant
    )
    found = attribute_inference(
        model, X, y, column=0, n_models=16, confidence=1.0 - 1e-4, random_state=0
    )
    allowed = success_bound(found.without_row.value, 2.0 * epsilon)
    assert found.with_row.value - allowed <= found.gain.high - found.gain.value
    assert accountant.epsilon_spent == 0.0


def test_a_leaky_model_passes_a_claim():
    """A tree is told from a claim of 0.1: with the row more is right than that claim allows."""
    X, y = table()
    found = attribute_inference(
        DecisionTreeClassifier(), X, y, column=0, n_models=16, confidence=0.999, random_state=0
    )
    assert found.with_row.low > success_bound(found.without_row.high, 0.2)


@pytest.mark.parametrize("kind", ["pandas", "polars", "categories"])
def test_frames_and_several_values(kind):
    X, y = table(120, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = np.random.default_rng(0).integers(0, 3, 120)
    if kind == "categories":
        frame["a"] = pd.Categorical.from_codes(frame["a"], [10, 20, 30])
    given = pl.from_pandas(frame) if kind == "polars" else frame
    options = {"n_models": 6, "random_state": 0, "baseline": LogisticRegression()}
    found = attribute_inference(DecisionTreeClassifier(), given, y, column="a", **options)
    assert found.n_values == 3 and found.with_row.value > found.without_row.value
    constant = with_constant(given, 0, 5)
    assert type(constant) is type(given) and len(np.unique(constant["a"])) == 1
    assert constant["a"].dtype == given["a"].dtype


def test_regressors_and_workers():
    X, _ = table(80, 60)
    y = X @ np.random.default_rng(2).normal(size=60)
    options = {"column": 0, "n_models": 6, "random_state": 0, "baseline": LogisticRegression()}
    one, two = (
        attribute_inference(LinearRegression(), X, y, n_jobs=n, **options) for n in (None, 2)
    )
    assert one == two


@pytest.mark.parametrize(
    "options", [{"column": 1}, {"column": 2}, {"n_models": 7}, {"n_models": 4}, {"access": "all"}]
)
def test_bad_options(options):
    X, y = table(60, 4)
    X[:, 1], X[:, 2] = 1.0, np.arange(60)
    with pytest.raises(ValueError):
        attribute_inference(LogisticRegression(), X, y, **({"column": 0} | options))
