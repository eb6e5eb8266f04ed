"""What check_pipeline says that wrappers cost, against what their fits charge."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.pipeline import check_pipeline, planned_charge, split_budget
from tests._estimators import ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)) / 4
TWO, THREE = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.1, 0.1])
BOTH = np.column_stack([TWO, (X[:, 1] > 0).astype(int)])
FOLDS = KFold(4, shuffle=True, random_state=0)
GRID = {"C": [0.1, 1.0, 10.0]}


def wrappers(model):
    scaled = make_pipeline(DPStandardScaler(bounds=(-1, 1), accountant=model.accountant), model)
    behind = make_pipeline(clone_of(scaled[0]), VotingClassifier([("a", model)]))
    return {
        "grid": (GridSearchCV(model, GRID, cv=FOLDS), TWO, 0.0),
        "grid of budgets": (GridSearchCV(model, {"epsilon": [0.1, 0.2]}, cv=FOLDS), TWO, 0.0),
        "random": (RandomizedSearchCV(scaled, {}, n_iter=1, cv=FOLDS), TWO, 0.0),
        "halving": (HalvingGridSearchCV(model, GRID, cv=2, random_state=0), TWO, 0.0),
        "votes behind a scaler": (behind, TWO, 1.0),
        "votes": (VotingClassifier([("a", model), ("b", scaled)]), TWO, 0.0),
        "rest": (OneVsRestClassifier(model), THREE, 0.0),
        "outputs": (MultiOutputClassifier(model), BOTH, 0.0),
        "selection": (SelectFromModel(model), TWO, 0.0),
    }


def clone_of(estimator):
    return type(estimator)(**estimator.get_params())


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(wrappers(DPLogisticRegression())))
def test_wrappers_cost_what_is_said_or_more(name):
    """How often they fit what is inside is not counted: all that is said is "at least"."""
    accountant = PrivacyAccountant(1e4, 0.9)
    model = DPLogisticRegression(1.0, delta=0.0, accountant=accountant)
    wrapper, y, said = wrappers(model)[name]
    result = check_pipeline(wrapper)
    assert not accountant.charges and result.exact is result.to_dict()["exact"] is False
    assert result.epsilon == said
    inside = next(step for step in result.steps if step.estimator == "DPLogisticRegression")
    assert (inside.fits, inside.exact, inside.epsilon) == (0, False, 1.0)
    wrapper.fit(X, y)
    assert accountant.epsilon_spent > said
    for text in (str(result), result._repr_html_()):
        assert "costs at least" in text and "(1, 0) x ?" in text


def test_the_price_of_what_is_not_verified_is_no_price():
    class Odd(DPLogisticRegression):
        pass

    result = check_pipeline(make_pipeline(DPStandardScaler(bounds=(0, 1)), Odd()))
    assert not result.accepted and not result.exact and "at least" in str(result)


TRIED = KFold(3, shuffle=True, random_state=0)
BITS = (X > 0).astype(float)


def model(accountant, **params):
    params = {"delta": 1e-6, "data_norm": 3.0, "mechanism": "gradient", "C": 0.1} | params
    return DPLogisticRegression(accountant=accountant, **params)


def scaler(accountant, **params):
    return DPStandardScaler(0.5, bounds=(-1, 1), accountant=accountant, **params)


def search(estimator, grid, **params):
    return GridSearchCV(estimator, grid, **({"cv": TRIED} | params))


def named(accountant, **params):
    return Pipeline([("s", scaler(accountant)), ("m", model(accountant))], **params)


def split(accountant):
    return split_budget(make_pipeline(scaler(None), model(None)), 1.0, 1e-5, accountant)


def of_columns(accountant, *columns, **params):
    parts = [(str(number), scaler(accountant), c) for number, c in enumerate(columns)]
    return make_pipeline(ColumnTransformer(parts, sparse_threshold=0, **params), model(accountant))


def with_local(accountant):
    local = RandomizedResponseTransformer(categories=[0, 1], accountant=accountant)
    return make_pipeline(Binarizer(threshold=0.5), local, model(accountant))


def array_of(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def stacked(a, **params):
    last = model(a, data_norm=1.5)
    return StackingClassifier([("a", model(a))], last, **({"cv": TRIED} | params))


# What is said of a fit to an accountant's ledger, and whether it is exact.
PRICES = {
    # Reservations: as many rounds as runs of the step that runs most often.
    "a plan": (split, 1.0, True),
    "a plan, one step twice": (
        lambda a: (lambda p: make_pipeline(FeatureUnion([("a", p[0]), ("b", clone(p[0]))]), p[1]))(
            split(a)
        ),
        2.0,
        True,
    ),
    "a plan, in part": (lambda a: make_pipeline(split(a)[0], model(a)), 2.0, True),
    "a plan, in part, and no accountant": (
        lambda a: make_pipeline(split(a)[0], model(None)),
        1.0,
        False,
    ),
    "a plan in a search": (
        lambda a: search(split(a), {"dplogisticregression__C": [1.0]}),
        0.0,
        False,
    ),
    # Searches may try other estimators.
    "a plain model's": (
        lambda a: search(Pipeline([("m", LogisticRegression())]), {"m": [model(a)]}),
        0.0,
        False,
    ),
    "a plain model's numbers": (
        lambda a: search(Pipeline([("m", LogisticRegression())]), {"m__C": [1.0]}),
        0.0,
        False,
    ),
    # What a container may not fit.
    "no columns": (lambda a: of_columns(a, [], [0, 1]), 1.5, True),
    "no columns by a mask": (lambda a: of_columns(a, [False] * 3, [0, 1]), 1.5, True),
    "chosen columns": (
        lambda a: of_columns(a, make_column_selector(dtype_include=object), [0, 1]),
        1.5,
        False,
    ),
    "an empty remainder": (lambda a: of_columns(a, [0, 1, 2], remainder=scaler(a)), 1.5, False),
    # What charges nothing, and what is charged elsewhere than in a fit.
    "declared categories": (
        lambda a: make_pipeline(
            Binarizer(), DPOneHotEncoder(categories=[0, 1], accountant=a), model(a)
        ),
        1.0,
        True,
    ),
    "a declared constant": (
        lambda a: make_pipeline(
            DPSimpleImputer(strategy="constant", fill_value=0.0, accountant=a), model(a)
        ),
        1.0,
        True,
    ),
    "local": (with_local, 1.0, False),
    "local, alone": (
        lambda a: RandomizedResponseTransformer(categories=[0, 1], accountant=a),
        0.0,
        False,
    ),
    "local in a search": (
        lambda a: search(with_local(a), {"dplogisticregression__C": [1.0]}),
        0.0,
        False,
    ),
}
SLOW = ("a plan", "a plan in a search", "no columns by a mask", "local", "local in a search")


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PRICES]
)
def test_prices_are_those_of_the_ledger(name):
    make, said, exact = PRICES[name]
    accountant = PrivacyAccountant(1e4, 0.9)
    estimator = make(accountant)
    result = check_pipeline(estimator)
    assert not accountant.charges
    assert result.epsilon == pytest.approx(said, rel=1e-12)
    assert result.exact is exact and ("at least" in result._totals()) is not exact
    table, y = {"local, alone": BITS, "chosen columns": pd.DataFrame(X)}.get(name, X), TWO
    estimator.fit(table, y)
    spent = accountant.epsilon_spent
    assert spent == pytest.approx(said, rel=1e-12) if exact else spent >= said


@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_a_memory_may_spare_fits(tmp_path):
    accountant = PrivacyAccountant(1e4, 0.9)
    pipe = named(accountant, memory=str(tmp_path))
    result = check_pipeline(pipe)
    for _ in range(2):
        pipe.fit(X, TWO)
    assert not result.exact and result.epsilon == 0.0
    assert accountant.epsilon_spent == 2.5


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(
            DPGridSearchCV(model(None), {"C": [1.0, 2.0]}, epsilon=2.0, delta=1e-5, cv=TRIED),
            marks=pytest.mark.slow,
        ),
        pytest.param(DPSGDClassifier(delta=1e-6), marks=pytest.mark.slow),
        model(None, data_norm="auto"),
        pytest.param(model(None, mechanism="objective"), marks=pytest.mark.slow),
        model(None),
        scaler(None, delta=1e-6),
        scaler(None),
    ],
    ids=repr,
)
def test_groups_cost_what_is_said(estimator):
    accountant = PrivacyAccountant(1e4, 0.9, unit="group", max_rows=2)
    estimator = clone(estimator).set_params(accountant=accountant)
    result = check_pipeline(estimator)
    estimator.fit(X, TWO)
    assert result.exact and 0.0 < result.epsilon == accountant.epsilon_spent
    assert result.delta == accountant.delta_spent


def test_what_releases_nothing_has_no_share_and_can_release_nothing():
    accountant = PrivacyAccountant(1e4, 0.9)
    free = DPSimpleImputer(strategy="constant", fill_value=0.0)
    empty = ColumnTransformer([("s", scaler(None), []), ("t", scaler(None), [0, 1])])
    for first in (free, empty):
        pipe = split_budget(make_pipeline(first, model(None)), 1.0, 1e-5, accountant)
        assert pipe[-1].accountant.reservation.planned[0].event.events == ()
        spent = accountant.epsilon_spent
        result = check_pipeline(pipe)
        pipe.fit(X, TWO)
        assert accountant.epsilon_spent - spent == result.epsilon == 1.0 and result.exact
    pipe = split_budget(make_pipeline(free, model(None)), 1.0, 1e-5, accountant)
    assert pipe[1].epsilon == pytest.approx(1.0, rel=1e-3)
    pipe.set_params(dpsimpleimputer__strategy="mean", dpsimpleimputer__bounds=(-1, 1))
    with pytest.raises(ValueError, match="not planned"):
        pipe.fit(X, TWO)
    with pytest.raises(ValueError, match="nothing to charge"):
        split_budget(free, 1.0)
    with pytest.raises(ValueError, match="that release something"):
        shares = {"dpsimpleimputer": 1, "dplogisticregression": 1}
        split_budget(make_pipeline(free, model(None)), 1.0, 1e-5, fractions=shares)


def test_only_known_classes_release_nothing():
    plans = {type(e).__name__: type(e).plan_fit for e in ESTIMATORS if hasattr(e, "plan_fit")}
    sources = {name: inspect.getsource(inspect.getmodule(plan)) for name, plan in plans.items()}
    free = {
        name for name, source in sources.items() if re.search(r"(NoRelease|Declared)\(", source)
    }
    # What is charged there are the transforms, and the counts of the targets.
    free -= {"RandomizedResponseTransformer", "DPTargetEncoder"}
    said = {type(e).__name__ for e in ESTIMATORS if getattr(e, "_may_release_nothing", False)}
    assert free == said
    assert planned_charge(DPOneHotEncoder(categories=[0, 1])).event.events == ()
    # However wide the table is, the lists say for which width they are declared.
    assert planned_charge(DPOneHotEncoder(categories=[["a", "b"]] * 7)).event.events == ()


def test_what_was_changed_may_charge_anything():
    changed = search(model(None), {"C": [1.0]})
    changed.fit = lambda X, y: None
    assert not check_pipeline(changed).exact


def test_rounds_that_are_left_over_are_not_priced_again():
    """A step that has run in fewer rounds than were charged draws on these."""
    accountant = PrivacyAccountant(9.0, 9e-5)
    pipe = split_budget(make_pipeline(scaler(None), model(None)), 1.0, 1e-5, accountant)
    for _ in range(2):
        clone(pipe[0]).fit(X)
    for part, rounds in ((pipe[1], 0), (pipe, 1), (pipe[0], 1)):
        found, before = check_pipeline(part), accountant.epsilon_spent
        assert found.exact and found.epsilon == rounds
        part.fit(X, TWO)
        assert accountant.epsilon_spent == before + rounds
