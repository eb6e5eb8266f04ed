"""What linear estimators charge, state and refuse is what their `plan_fit` says without a table."""

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skdp import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
)
from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape, guarantee_of
from tests._estimators import ESTIMATORS

LINEAR = [
    estimator
    for estimator in ESTIMATORS
    if type(estimator).__module__.startswith(("skdp.linear_model", "skdp.svm"))
]
RELATIONS = ("add_remove", "replace_one")
CLASSIFIERS = (DPLogisticRegression, DPLinearSVC, DPSGDClassifier)
REGRESSORS = (DPLinearRegression, DPRidge, DPPoissonRegressor, DPSGDRegressor)
# Not a parameter of what is planned: the guarantee, and who charges and draws.
NOT_PLANNED = {"epsilon", "delta", "accountant", "random_state"}
WRONG = (None, -1, 0, 0.5, "nonsense", np.nan, 1e300, True, (), {7: 1.0}, [0, 1, 2])


def make_table(estimator, n=40, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = rng.integers(0, 2, size=n) if is_classifier(estimator) else rng.uniform(0, 10, size=n)
    return X, y


def shape_of(X, y, estimator):
    classes = np.unique(y) if is_classifier(estimator) else None
    return TableShape(n_rows=X.shape[0], n_columns=X.shape[1], classes=classes)


def simplest(cls):
    """Return an estimator of which every parameter counts."""
    model = cls() if cls in CLASSIFIERS else cls(target_bounds=(0, 10))
    return model.set_params(loss="huber") if cls is DPSGDRegressor else model


def refused(action, *arguments):
    try:
        action(*arguments)
    except ValueError:
        return True
    return False


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_what_is_planned_is_charged_and_stated(estimator, relation):
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(100.0, 0.1, relation=relation)
    model = clone(estimator).set_params(accountant=accountant)
    before = {name: id(value) for name, value in vars(model).items()}
    plan = model.plan_fit(shape_of(X, y, model), guarantee_of(model))
    assert {name: id(value) for name, value in vars(model).items()} == before
    assert not accountant.charges

    model.fit(X, y)
    if hasattr(model, "partial_fit"):
        # Of released weights that it goes on from the center is known.
        classes = {"classes": np.unique(y)} if is_classifier(model) else {}
        clone(model).partial_fit(X, y, **classes)
    for spend in accountant.charges:
        assert (spend.event, spend.epsilon, spend.delta) == (plan.event, plan.epsilon, plan.delta)
    statement = model.privacy_
    if getattr(model, "class_weight", None) == "balanced":
        # The noise is proportional to the released weights; its event is the planned one.
        assert statement.mechanism == plan.name
        return
    assert (statement.mechanism, statement.noise_scale) == (plan.name, plan.scale)
    assert statement.sensitivity == plan.sensitivity
    assert statement.sampler.startswith(plan.sampler)


@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_a_plan_is_a_value_made_without_an_accountant(estimator):
    X, y = make_table(estimator)
    model = clone(estimator).set_params(accountant="nobody may look at this")
    neighbors = Neighbors(relation="replace_one")
    guarantee = Guarantee(epsilon=0.5, delta=estimator.delta, neighbors=neighbors)
    shape = shape_of(X, y, model)
    plan = model.plan_fit(shape, guarantee)
    assert (plan.epsilon, plan.delta) == (0.5, estimator.delta)
    assert plan == pickle.loads(pickle.dumps(plan)) == model.plan_fit(shape, guarantee)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.epsilon = 1.0


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
def test_a_plan_refuses_the_parameters_that_a_fit_refuses(cls, capsys):
    estimator = simplest(cls)
    X, y = make_table(estimator)
    seen = set()
    for name in estimator.get_params().keys() - NOT_PLANNED:
        for value in WRONG:
            model = clone(estimator).set_params(**{name: value})
            of_fit = refused(model.fit, X, y)
            of_plan = refused(model.plan_fit, shape_of(X, y, model), guarantee_of(model))
            assert of_plan == of_fit, (name, value)
            seen |= {name} if of_plan else set()
    # Each of them can be wrong.
    assert seen == estimator.get_params().keys() - NOT_PLANNED


@pytest.mark.parametrize("cls", (DPSGDClassifier, DPSGDRegressor))
def test_a_plan_refuses_batches_of_more_rows_than_there_are(cls):
    model = simplest(cls).set_params(batch_size=41)
    X, y = make_table(model)
    assert refused(model.fit, X, y)
    assert refused(model.plan_fit, shape_of(X, y, model), guarantee_of(model))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_labels_are_those_of_the_shape_or_declared(cls):
    guarantee = Guarantee(epsilon=1.0, delta=1e-6)
    unknown = TableShape(n_rows=100, n_columns=3)
    three = TableShape(n_rows=100, n_columns=3, classes=np.array(["a", "b", "c"]))
    one = TableShape(n_rows=100, n_columns=3, classes=np.array(["a"]))
    declared = cls(classes=["c", "a", "b"])
    plans = [
        cls().plan_fit(three, guarantee),
        *(declared.plan_fit(shape, guarantee) for shape in (three, one, unknown)),
    ]
    assert all(plan == plans[0] for plan in plans)
    for model, shape in ((cls(), unknown), (cls(), one), (cls(classes=["a", "b"]), three)):
        with pytest.raises(ValueError, match="classes|labels"):
            model.plan_fit(shape, guarantee)


# Each draws more values at once than its noise allows at that epsilon.
TOO_SMALL = [
    (DPLogisticRegression(1e-12, mechanism="output"), 200),
    (DPLogisticRegression(1e-12, mechanism="objective"), 200),
    (DPLogisticRegression(1e-12, mechanism="gradient"), 200),
    (DPLinearSVC(1e-12), 200),
    (DPLinearRegression(1e-11, target_bounds=(0, 1)), 200),
    (DPRidge(1e-12, mechanism="gradient", target_bounds=(0, 1)), 200),
    (DPPoissonRegressor(1e-12, target_bounds=(0, 1)), 200),
    (DPSGDClassifier(1e-12), 200),
]


@pytest.mark.parametrize(("estimator", "n_columns"), TOO_SMALL, ids=str)
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(estimator, n_columns):
    accountant = PrivacyAccountant(10.0, 0.1)
    model = clone(estimator).set_params(delta=1e-99, accountant=accountant)
    X, y = make_table(model, n=30, d=n_columns)
    with pytest.raises(ValueError, match="too small"):
        model.fit(X, y)
    assert not accountant.charges
    with pytest.raises(ValueError, match="too small"):
        model.plan_fit(shape_of(X, y, model), guarantee_of(model))
