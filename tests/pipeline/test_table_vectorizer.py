"""The front of raw tables: what it releases, in which budget, and rows of norm 1."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPTableVectorizer, PrivacyAccountant
from skdp.accounting import ApproximateDP, Composed, Gaussian, get_delta, get_epsilon
from skdp.base import TableShape
from skdp.pipeline import planned_charge, split_budget
from tests._guarantees import meet

BOUNDS = {"age": (17, 90), "since": (np.datetime64("2020-01-01"), np.datetime64("2024-01-01"))}
CATEGORIES = {"job": ["works", "studies"]}
KINDS = ["number", "date", "label", "boolean"]


def make_frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(10, 100, n).astype(float),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 1400, n).astype("m8[D]"),
            "job": pd.Series(rng.choice(["works", "studies", "hunts"], n), dtype="str"),
            "owns": rng.random(n) < 0.5,
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::5, "job"] = None
    return frame


def shape_of(names=("age", "since", "job", "owns"), kinds=KINDS):
    return TableShape(n_rows=400, n_columns=4, names=np.array(names), kinds=kinds)


def entry(row, names, name):
    return row[list(names).index(name)]


@pytest.mark.parametrize("numbers", ["bins", "scaled"])
def test_every_row_has_a_norm_of_one_at_most(numbers):
    frame = make_frame()
    front = DPTableVectorizer(numeric=numbers, bounds=BOUNDS, categories=CATEGORIES).fit(frame)
    rows = front.transform(frame).toarray()
    norms = np.linalg.norm(rows, axis=1)
    assert norms.max() <= 1.0
    # As much of it as the weights' grid allows, so that no signal is given away.
    assert numbers == "scaled" or norms.min() > 0.99
    assert len(set(front.get_feature_names_out())) == rows.shape[1]


def test_scaled_numbers_and_cells_stand_where_their_names_say():
    frame = make_frame(5)
    frame["age"] = [17.0, 90.0, 53.5, 200.0, np.nan]
    frame["job"] = ["works", "studies", "hunts", None, "works"]
    accountant = PrivacyAccountant(1.0, 1e-6)
    params = {"bounds": BOUNDS, "categories": CATEGORIES, "accountant": accountant}
    front = DPTableVectorizer(numeric="scaled", **params).fit(frame)
    assert accountant.charges == [] and front.privacy_.epsilon == 0.0
    # Half of the norm for each of four columns.
    rows = 2.0 * front.transform(frame).toarray()
    names = front.get_feature_names_out()
    assert [entry(row, names, "age_0") for row in rows] == [-1.0, 1.0, 0.0, 1.0, 0.0]
    assert [entry(row, names, "age_missing") for row in rows] == [0, 0, 0, 0, 1]
    labels = ["works", "studies", "other", "missing", "works"]
    assert all(entry(row, names, f"job_{x}") == 1 for row, x in zip(rows, labels, strict=True))


@pytest.mark.parametrize("numbers", ["bins", "scaled"])
@pytest.mark.parametrize("declared", [True, False])
def test_what_is_released_together_is_the_event(numbers, declared):
    params = {"bounds": BOUNDS, "categories": CATEGORIES} if declared else {}
    front = DPTableVectorizer(numeric=numbers, **params)
    plan = front.plan_fit(shape_of(), meet(1.0, 1e-6, "replace_one"))
    if declared and numbers == "scaled":
        assert plan.event == Composed(()) and plan.epsilon == 0.0
        return
    parts = []
    fit = plan.mechanism
    if not declared:
        refinement = fit.bounds_search.refinement
        n_levels = int(refinement.n_levels(1))
        finer = [refinement.mechanism(n, n_levels) for n in (1, fit.bounds_search.n_columns)]
        assert finer[0].noise_multiplier == pytest.approx(finer[1].noise_multiplier)
        parts = [fit.bounds_search.mechanism, *[finer[0]] * n_levels, fit.key_selection._noise]
    parts += [fit._counts_mechanism] if numbers == "bins" else []
    precision = sum((part.sensitivity / part.scale) ** 2 for part in parts)
    mu = 1.0 / fit.budget.multiplier
    assert 0.999 * mu**2 < precision <= mu**2
    assert get_delta(plan.event, 1.0, relation="replace_one") <= 1e-6


def test_without_delta_the_stages_share_epsilon():
    front = DPTableVectorizer(delta=0.0, categories=CATEGORIES)
    plan = front.plan_fit(shape_of(), meet(1.0, 0.0))
    fit = plan.mechanism
    cells, search = fit._counts_mechanism, fit.bounds_search
    both_steps = search.mechanism.epsilon + 3 * search.refinement.mechanism(1, 3).epsilon
    assert 0.999 < both_steps + cells.sensitivity / cells.scale <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
@pytest.mark.parametrize("bounds", ["auto", BOUNDS])
def test_the_price_is_known_without_a_table(bounds, epsilon):
    frame, accountant = make_frame(), PrivacyAccountant(10.0, 1e-5)
    front = DPTableVectorizer(epsilon, bounds=bounds, accountant=accountant)
    planned = planned_charge(front)
    front.fit(frame)
    assert planned.exact and accountant.charges[0].event == planned.event


def test_scaling_learns_nothing_of_a_declared_table_and_refuses_a_column_that_is_not():
    accountant = PrivacyAccountant(10.0, 1e-5)
    front = DPTableVectorizer(numeric="scaled", bounds=BOUNDS, categories={}, accountant=accountant)
    assert planned_charge(front).event == Composed(())
    with pytest.raises(ValueError, match=r"column 'job': not declared.*'auto'"):
        front.fit(make_frame())
    front.set_params(categories={"job": "auto"})
    assert planned_charge(front).event != Composed(())
    assert accountant.charges == [] and front.fit(make_frame()).kinds_[2] == "label"


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.array([["a"], [1.0]], dtype=object), "Declare its categories"),
        (pd.DataFrame({"x": [1.0, np.inf]}), "infinity"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_charge(frame, message):
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        DPTableVectorizer(accountant=accountant).fit(frame)
    with pytest.raises(ValueError, match="rows, but X has"):
        DPTableVectorizer(accountant=accountant).fit(make_frame(), np.zeros(3))
    with pytest.raises(ValueError, match="y contains NaN"):
        DPTableVectorizer(accountant=accountant).fit(make_frame(3), [1.0, np.nan, 0.0])
    assert accountant.charges == []


def test_a_row_is_encoded_by_itself():
    frame = make_frame()
    front = DPTableVectorizer(bounds=BOUNDS, categories=CATEGORIES, random_state=0).fit(frame)
    whole = front.transform(frame).toarray()
    np.testing.assert_array_equal(front.transform(frame.iloc[[3]]).toarray()[0], whole[3])
    assert math.isclose(np.linalg.norm(whole[3]), 1.0, rel_tol=0.01)


def test_categories_in_a_list_are_found_where_numbers_are_scaled():
    front = DPTableVectorizer(numeric="scaled", bounds=(0, 1), categories=[None, "auto"])
    fitted = front.fit(np.array([[0.5, "a"], [0.2, "b"]] * 100, dtype=object))
    assert fitted.kinds_ == ["number", "label"]
    assert fitted.privacy_.epsilon == 1.0


@pytest.mark.parametrize("missing", [None, np.nan, np.datetime64("NaT")], ids=repr)
def test_labels_that_are_missing_cost_nothing(missing):
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-4)
    y = np.array(["a", "b", missing, "a"] * 100, dtype=object)
    with pytest.raises(ValueError, match=r"y contains|contains NaN"):
        DPTableVectorizer(accountant=accountant).fit(make_frame(), y)
    assert not accountant.charges


def test_labels_of_several_kinds_cost_nothing():
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-4)
    with pytest.raises(ValueError, match="several kinds"):
        DPTableVectorizer(accountant=accountant).fit(make_frame(), ["a", "b", 1, "a"] * 100)
    assert not accountant.charges


def parts_of(event):
    """Return the different releases of which an event is composed."""
    if not isinstance(event, Composed):
        return {event}
    return set().union(*map(parts_of, event.events))


@pytest.mark.parametrize("numeric", ["bins", "scaled"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("columns", "categories", "finds_categories"),
    [(["a"], None, False), (["a", "c"], {"c": ["u", "v"]}, False), (["a", "c"], None, True)],
)
def test_the_event_is_that_of_the_stages(columns, categories, finds_categories, delta, numeric):
    """A delta is reserved for found categories, and belongs to the event only if some are found."""
    frame = pd.DataFrame({"a": np.arange(200.0), "c": np.tile(["u", "v"], 100)})[columns]
    if finds_categories and delta == 0.0:
        return
    accountant = PrivacyAccountant(10.0, 1e-3)
    params = {"delta": delta, "categories": categories, "bounds": "auto", "numeric": numeric}
    model = DPTableVectorizer(1.0, **params, accountant=accountant).fit(frame)
    (charge,) = accountant.charges
    parts = parts_of(charge.event)
    stage_parts = [part for stage in model.privacy_.stages for part in parts_of(stage.event)]
    deltas = [part.delta for part in parts if isinstance(part, ApproximateDP)]
    stage_deltas = [part.delta for part in stage_parts if isinstance(part, ApproximateDP)]
    assert deltas == stage_deltas and len(deltas) == finds_categories
    if delta:
        precision, stage_precision = (
            sum(part.noise_multiplier**-2 for part in found if isinstance(part, Gaussian))
            for found in (parts, stage_parts)
        )
        assert precision * (1 - 1e-6) <= stage_precision <= precision
        assert get_epsilon(charge.event, delta) <= 1.0


@pytest.mark.parametrize("shape", [{}, {"n_features": 2}, {"n_samples": 9, "n_features": 2}])
@pytest.mark.parametrize("parameter", ["bounds", "categories"])
@pytest.mark.parametrize("key", [0, 1, "age"])
def test_a_wrong_entry_is_named_by_its_key_before_a_table_is_known(key, parameter, shape):
    vectorizer = DPTableVectorizer(**{parameter: {key: 1.0}})
    with pytest.raises(ValueError, match=rf"column {key!r}: {parameter} must be"):
        split_budget(make_pipeline(vectorizer, DPLogisticRegression()), 1.0, 1e-6, **shape)
