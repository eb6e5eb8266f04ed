"""What check_pipeline says that wrappers cost, against what their fits charge."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.pipeline import check_pipeline, planned_charge, split_budget
from tests.test_contract import ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)) / 4
TWO, THREE = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.1, 0.1])
BOTH = np.column_stack([TWO, (X[:, 1] > 0).astype(int)])
FOLDS = KFold(4, shuffle=True, random_state=0)
GRID = {"C": [0.1, 1.0, 10.0]}


def wrappers(model, regressor):
    scaled = make_pipeline(DPStandardScaler(bounds=(-1, 1), accountant=model.accountant), model)
    return {
        "grid": (GridSearchCV(model, GRID, cv=FOLDS), TWO, True),
        "grid without refit": (GridSearchCV(model, GRID, cv=3, refit=False), TWO, True),
        "grid of a pipeline": (
            GridSearchCV(scaled, {"dplogisticregression__C": [1.0, 2.0]}, cv=FOLDS),
            TWO,
            True,
        ),
        "grid of budgets": (GridSearchCV(model, {"epsilon": [0.1, 0.2]}, cv=FOLDS), TWO, False),
        "random": (RandomizedSearchCV(model, GRID, n_iter=2, cv=FOLDS), TWO, True),
        "random, all": (RandomizedSearchCV(model, GRID, n_iter=9, cv=FOLDS), TWO, True),
        "halving": (HalvingGridSearchCV(model, GRID, cv=2, random_state=0), TWO, False),
        "halving at random": (HalvingRandomSearchCV(model, GRID, cv=2, random_state=0), TWO, False),
        "bagging": (BaggingClassifier(model, 7), TWO, True),
        "bagging a pipeline": (make_pipeline(BaggingClassifier(scaled, 2)), TWO, True),
        "bagging behind a scaler": (
            make_pipeline(clone_of(scaled[0]), BaggingClassifier(model, 3)),
            TWO,
            True,
        ),
        "bagging regressors": (BaggingRegressor(regressor, 3), X[:, 0], True),
        "votes": (VotingClassifier([("a", model), ("b", scaled)]), TWO, True),
        "stacking": (
            StackingClassifier([("a", model), ("b", scaled)], LogisticRegression(), cv=3),
            TWO,
            False,
        ),
        "stacking, final": (StackingClassifier([("a", model)], model, cv=FOLDS), TWO, False),
        "stacking, default folds": (
            StackingRegressor([("a", regressor)], LinearRegression()),
            X[:, 0],
            False,
        ),
        "calibrated": (CalibratedClassifierCV(model, cv=3, ensemble=True), TWO, False),
        "calibrated once": (CalibratedClassifierCV(model, cv=3, ensemble=False), TWO, False),
        "calibrated, default": (CalibratedClassifierCV(model, cv=3), TWO, False),
        "target": (TransformedTargetRegressor(regressor), X[:, 0], True),
        "selection": (SelectFromModel(model), TWO, True),
        "fixed threshold": (FixedThresholdClassifier(model), TWO, True),
        "tuned threshold": (TunedThresholdClassifierCV(model, cv=3), TWO, False),
        "rest": (OneVsRestClassifier(model), THREE, False),
        "rest of two": (OneVsRestClassifier(model), TWO, False),
        "one against one": (OneVsOneClassifier(model), THREE, False),
        "codes": (OutputCodeClassifier(model, random_state=0), THREE, False),
        "outputs": (MultiOutputClassifier(model), BOTH, False),
        "chain": (ClassifierChain(model), BOTH, False),
        "elimination": (RFE(model, n_features_to_select=1), TWO, False),
        "sequential": (SequentialFeatureSelector(model, cv=2), TWO, False),
        "self-training": (SelfTrainingClassifier(model), TWO, False),
        "folds that are read once": (
            GridSearchCV(model, GRID, cv=iter(list(FOLDS.split(X)))),
            TWO,
            False,
        ),
        "nested": (BaggingClassifier(GridSearchCV(model, GRID, cv=2), 2), TWO, True),
        "a rest in a search": (
            GridSearchCV(OneVsRestClassifier(model), {"estimator__C": [1.0, 2.0]}, cv=FOLDS),
            THREE,
            False,
        ),
    }


def clone_of(estimator):
    return type(estimator)(**estimator.get_params())


FAST = ("grid", "grid of budgets", "halving", "bagging behind a scaler", "votes", "rest", "outputs")
CASES = [
    name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
    for name in wrappers(DPLogisticRegression(), DPLinearRegression())
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_wrappers_cost_what_is_said_or_more(name):
    accountant = PrivacyAccountant(1e4, 0.9)
    model = DPLogisticRegression(1.0, delta=0.0, accountant=accountant)
    regressor = DPLinearRegression(1.0, delta=0.0, target_bounds=(-1, 1), accountant=accountant)
    wrapper, y, exact = wrappers(model, regressor)[name]
    result = check_pipeline(wrapper)
    assert not accountant.spends and result.exact is exact and result.to_dict()["exact"] is exact
    wrapper.fit(X, y)
    said = result.fits * result.epsilon
    assert accountant.epsilon_spent >= said
    assert (accountant.epsilon_spent == said) is exact or not exact
    for text in (str(result), result._repr_html_()):
        assert ("at least" in text) is not exact


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
    "a plan, its final step again": (
        lambda a: (
            lambda p: VotingClassifier([("a", p), ("b", BaggingClassifier(clone(p[1]), 4))])
        )(split(a)),
        5.0,
        True,
    ),
    "a plan, twice": (
        lambda a: (lambda p: VotingClassifier([("a", p), ("b", clone(p))]))(split(a)),
        2.0,
        True,
    ),
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
        4.0,
        True,
    ),
    "a plan in bagging in a search": (
        lambda a: search(BaggingClassifier(split(a), 2), {"n_estimators": [3]}),
        0.0,
        False,
    ),
    # Searches that try what decides how often something is fitted, or other estimators.
    "bagging of other sizes": (
        lambda a: search(BaggingClassifier(model(a), 1), {"n_estimators": [2]}, cv=2),
        0.0,
        False,
    ),
    "stacking on other folds": (lambda a: search(stacked(a), {"cv": [2, 3]}), 0.0, False),
    "calibration in other ways": (
        lambda a: search(
            CalibratedClassifierCV(model(a), cv=3, ensemble=True), {"ensemble": [True, False]}
        ),
        0.0,
        False,
    ),
    "votes of others": (
        lambda a: search(
            VotingClassifier([("a", model(a))]),
            {"estimators": [[("a", model(a)), ("b", model(a))], [("a", model(a))]]},
        ),
        0.0,
        False,
    ),
    "other steps": (
        lambda a: search(named(a), {"steps": [[("m", model(a))], named(a).steps]}),
        0.0,
        False,
    ),
    "other transformers": (
        lambda a: search(
            of_columns(a, [0]),
            {"columntransformer__transformers": [of_columns(a, [0], [1])[0].transformers]},
        ),
        0.0,
        False,
    ),
    "an array of estimators": (
        lambda a: search(
            Pipeline([("m", model(a))]),
            {"m": array_of(model(a, epsilon=3.0), model(a, epsilon=7.0))},
        ),
        0.0,
        False,
    ),
    "an array of words": (lambda a: search(named(a), {"s": array_of("passthrough")}), 0.0, False),
    "a plain model's": (
        lambda a: search(Pipeline([("m", LogisticRegression())]), {"m": [model(a)]}),
        0.0,
        False,
    ),
    "a plain model's in a wrapper": (
        lambda a: BaggingClassifier(
            search(Pipeline([("m", LogisticRegression())]), {"m": [model(a)]}), 1
        ),
        0.0,
        False,
    ),
    "categories": (
        lambda a: search(
            make_pipeline(
                Binarizer(), DPOneHotEncoder(categories=[0, 1], delta=1e-6, accountant=a), model(a)
            ),
            {"dponehotencoder__categories": [None]},
        ),
        0.0,
        False,
    ),
    "only numbers": (
        lambda a: search(named(a), {"m__C": np.array([1.0]), "m__fit_intercept": [True]}, cv=2),
        4.5,
        True,
    ),
    "numbers at random": (
        lambda a: RandomizedSearchCV(model(a), {"C": uniform(1, 2)}, n_iter=2, cv=TRIED),
        7.0,
        True,
    ),
    "a plain model's numbers": (
        lambda a: search(Pipeline([("m", LogisticRegression())]), {"m__C": [1.0]}),
        0.0,
        True,
    ),
    "halving by another resource": (
        lambda a: HalvingGridSearchCV(
            BaggingClassifier(model(a), 8),
            {"bootstrap": [True, False]},
            cv=TRIED,
            resource="n_estimators",
            min_resources=2,
            max_resources=8,
        ),
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
    "constant targets": (lambda a: OneVsRestClassifier(model(a)), 0.0, False),
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
    "local": (with_local, 2.0, True),
    "local, alone": (
        lambda a: RandomizedResponseTransformer(categories=[0, 1], accountant=a),
        0.0,
        False,
    ),
    "local in a search": (
        lambda a: search(with_local(a), {"dplogisticregression__C": [1.0]}),
        8.0,
        False,
    ),
    "local in a stack": (
        lambda a: StackingClassifier([("a", with_local(a))], model(a, data_norm=1.5), cv=TRIED),
        3.0,
        False,
    ),
    "local in calibration": (
        lambda a: CalibratedClassifierCV(with_local(a), cv=3, ensemble=True),
        2.0,
        False,
    ),
    # Lists of pairs that are no estimators.
    "a list of folds": (lambda a: stacked(a, cv=list(TRIED.split(X))), 2.0, False),
}
QUICK = (
    "a plan, its final step again",
    "a plan, twice",
    "a plan, one step twice",
    "a plan, in part",
    "bagging of other sizes",
    "an array of words",
    "a plain model's",
    "only numbers",
    "no columns",
    "chosen columns",
    "an empty remainder",
    "declared categories",
    "a declared constant",
    "local, alone",
    "local in calibration",
    "a list of folds",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PRICES]
)
def test_prices_are_those_of_the_ledger(name):
    make, said, exact = PRICES[name]
    accountant = PrivacyAccountant(1e4, 0.9)
    estimator = make(accountant)
    result = check_pipeline(estimator)
    assert not accountant.spends
    assert result.fits * result.epsilon == pytest.approx(said, rel=1e-12)
    assert result.exact is exact and ("at least" in result._totals()) is not exact
    table, y = {"local, alone": BITS, "chosen columns": pd.DataFrame(X)}.get(name, X), TWO
    if name == "constant targets":
        y = np.zeros((len(X), 2), dtype=int)
    estimator.fit(table, y)
    spent = accountant.epsilon_spent
    assert spent == pytest.approx(said, rel=1e-12) if exact else spent >= said


def test_a_memory_may_spare_fits(tmp_path):
    accountant = PrivacyAccountant(1e4, 0.9)
    grid = {"m__C": [1.0, 2.0]}
    wrapper = search(named(accountant, memory=str(tmp_path)), grid, cv=2, refit=False)
    result = check_pipeline(wrapper)
    wrapper.fit(X, TWO)
    assert not result.exact and result.fits * result.epsilon == 4.0
    assert 4.0 <= accountant.epsilon_spent < 6.0


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
        split_budget(make_pipeline(free, model(None)), 1.0, 1e-5, shares=shares)


def test_only_known_classes_release_nothing():
    plans = {type(e).__name__: type(e).plan_fit for e in ESTIMATORS if hasattr(e, "plan_fit")}
    sources = {name: inspect.getsource(inspect.getmodule(plan)) for name, plan in plans.items()}
    free = {name for name, source in sources.items() if "NoRelease(" in source}
    # What is charged there are the transforms.
    free.remove("RandomizedResponseTransformer")
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
    search = GridSearchCV(clone(pipe[1]), {"C": [1.0]}, cv=KFold(2))
    for part, rounds in ((pipe[1], 0), (pipe, 1), (search, 2)):
        found, before = check_pipeline(part), accountant.epsilon_spent
        assert found.exact and found.epsilon * found.fits == rounds
        part.fit(X, TWO)
        assert accountant.epsilon_spent == before + rounds
