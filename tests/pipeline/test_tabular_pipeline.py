"""One call from a raw table to a private model."""

import pickle
import subprocess
import sys
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGridSearchCV,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
    tabular_pipeline,
)
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import check_pipeline, planned_charge
from tests.pipeline.test_table_vectorizer import BOUNDS, CATEGORIES, make_frame

DECLARED = {"bounds": BOUNDS, "categories": CATEGORIES}
CLASSIFIERS = ["classifier", DPLogisticRegression, DPLinearSVC, DPSGDClassifier]
REGRESSORS = ["regressor", DPLinearRegression, DPRidge, DPPoissonRegressor, DPSGDRegressor]
TARGET_BOUNDS = (0, 100)


def make(estimator, **params):
    if estimator in REGRESSORS:
        params = {"target_bounds": TARGET_BOUNDS} | params
    return tabular_pipeline(estimator, **params)


def target_of(estimator, frame):
    age = np.nan_to_num(frame["age"].to_numpy())
    return age if estimator in REGRESSORS else age > 50


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("estimator", "declared"),
    [*((each, DECLARED) for each in CLASSIFIERS + REGRESSORS), (DPLinearSVC, {}), (DPRidge, {})],
    ids=str,
)
def test_a_fit_is_one_charge_of_the_budget(estimator, declared):
    accountant, frame = PrivacyAccountant(2.0, 2e-5), make_frame()
    pipe = make(estimator, delta=1e-5, accountant=accountant, **declared)
    checked = check_pipeline(pipe, n_samples=400, n_features=4)
    assert checked.accepted and not list(checked)
    assert (checked.epsilon, checked.delta) == pytest.approx((1.0, 1e-5))
    pipe.fit(frame, target_of(estimator, frame))
    assert (accountant.epsilon_spent, len(accountant.charges)) == (1.0, 1)
    assert pipe.predict(frame).shape == (400,)


def test_additive_models_need_no_front():
    assert isinstance(tabular_pipeline("classifier")[0], DPAdditiveClassifier)
    pipe = make("regressor", epsilon=2.0, **DECLARED)
    assert isinstance(pipe[0], DPAdditiveRegressor) and len(pipe) == 1
    assert (pipe[0].epsilon, pipe[0].bounds, pipe[0].target_bounds) == (2.0, BOUNDS, TARGET_BOUNDS)
    own = DPAdditiveClassifier(bounds={0: (0, 1)}, classes=[0, 1], interactions=3)
    pipe = tabular_pipeline(own)
    assert (pipe[0].bounds, pipe[0].interactions) == (own.bounds, 3) and pipe[0] is not own


def test_the_model_gets_the_norm_of_the_front_and_keeps_the_rest():
    accountant = PrivacyAccountant(1.0, 1e-5)
    own = DPLogisticRegression(7.0, data_norm=50.0, C=0.5, accountant=accountant, random_state=1)
    pipe = tabular_pipeline(own, epsilon=1.0, delta=1e-5, **DECLARED)
    model = pipe[-1]
    assert (model.data_norm, model.C, model.random_state, own.data_norm) == (1.0, 0.5, 1, 50.0)
    frame = make_frame()
    pipe.fit(frame, target_of("classifier", frame))
    # The accountant of an instance is not lost.
    assert accountant.epsilon_spent == 1.0
    for mechanism, numbers in (("sufficient_statistics", "scaled"), ("auto", "bins")):
        model = DPRidge(target_bounds=(0, 1), mechanism=mechanism)
        assert tabular_pipeline(model)[0].numeric == numbers


@pytest.mark.parametrize("estimator", ["trees", 3, DPPCA, LogisticRegression])
def test_what_is_no_private_model_is_refused(estimator):
    with pytest.raises(ValueError, match="a classifier or regressor of skdp"):
        tabular_pipeline(estimator)
    with pytest.raises(ValueError, match=r"DPGridSearchCV\(tabular_pipeline"):
        tabular_pipeline(DPGridSearchCV(DPLogisticRegression(), {"C": [1.0]}))


def test_what_the_model_would_refuse_is_refused_before_the_front_is_charged():
    with pytest.raises(ValueError, match="target_bounds"):
        tabular_pipeline(DPRidge)
    with pytest.raises(ValueError, match="C must be a number"):
        tabular_pipeline(DPLogisticRegression(C=-1.0))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(class_weight={"old": 2.0, "young": 1.0}),
        DPLogisticRegression(class_weight={"old": 2.0}),
        DPSGDClassifier(class_weight={"young": 2.0}, max_iter=1),
        DPSGDClassifier(batch_size=1500, max_iter=1),
    ],
    ids=lambda model: repr(model)[2:60],
)
def test_what_the_model_takes_of_some_table_is_not_refused_before_there_is_one(model):
    """Neither by the labels that it has, nor by the number of rows."""
    frame = pd.concat([make_frame()] * 4, ignore_index=True)
    y = np.where(target_of(DPLinearSVC, frame), "old", "young")
    pipe = tabular_pipeline(model, delta=1e-5, **DECLARED)
    assert check_pipeline(pipe, n_samples=1600, n_features=4).accepted
    assert set(pipe.fit(frame, y).predict(frame)) <= {"old", "young"}


def test_labels_that_are_weighed_are_known_to_a_plan():
    alone = (
        {label: 2.0} for label in ("b", 0, 7, True, 0.5, 1e300, 2**53 + 1, np.int64(2**63 - 1))
    )
    for weights in ({"a": 2.0, "b": 1.0}, *alone):
        model = DPLogisticRegression(class_weight=weights, accountant=PrivacyAccountant(1.0, 0.1))
        assert check_pipeline(model, n_samples=100, n_features=3).epsilon == 1.0
    with pytest.raises(ValueError, match="class_weight"):
        check_pipeline(model.set_params(class_weight={"a": -1.0}), n_samples=100, n_features=3)
    days = [date(2020, 1, 1), date(2021, 1, 1)]
    model = DPLogisticRegression(class_weight={days[0]: 2.0})
    shape = {"n_samples": 100, "n_features": 3}
    for plan in (
        tabular_pipeline,
        partial(check_pipeline, **shape),
        partial(planned_charge, **shape),
    ):
        with pytest.raises(ValueError, match="has only the label"):
            plan(model)
        plan(clone(model).set_params(classes=days))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("estimator", ["classifier", DPLogisticRegression], ids=str)
def test_folds_and_searches_price_it_as_one(estimator):
    frame = make_frame()
    y = target_of(estimator, frame)
    pipe = make(estimator, delta=1e-5, **DECLARED)
    accountant = PrivacyAccountant(3.0, 1e-3)
    dp_cross_val_score(pipe, frame, y, epsilon=3.0, delta=1e-4, cv=2, accountant=accountant)
    assert accountant.epsilon_spent == pytest.approx(3.0)
    accountant = PrivacyAccountant(3.0, 3e-5)
    pipe = make(estimator, delta=1e-5, accountant=accountant, **DECLARED)
    folds = KFold(3, shuffle=True, random_state=0)
    assert np.isfinite(cross_val_score(pipe, frame, y, cv=folds)).all()
    assert accountant.epsilon_spent == pytest.approx(3.0)


@pytest.mark.thorough
def test_a_fitted_pipeline_predicts_in_another_process(tmp_path):
    frame, accountant = make_frame(), PrivacyAccountant(1.0, 1e-6)
    pipe = tabular_pipeline(DPLogisticRegression, accountant=accountant, **DECLARED)
    pipe.fit(frame, target_of("classifier", frame))
    (tmp_path / "model").write_bytes(pickle.dumps((pipe, frame)))
    code = "import pickle, sys; m, X = pickle.load(open(sys.argv[1], 'rb')); print(*m.predict(X))"
    run = [sys.executable, "-c", code, str(tmp_path / "model")]
    there = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert there == [str(label) for label in pipe.predict(frame)]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("by_config", [False, True])
def test_a_frame_between_the_front_and_the_model_changes_nothing(container, by_config):
    pytest.importorskip(container)
    frame, accountant = make_frame(), PrivacyAccountant(1.0, 1e-5)
    y, models = target_of("classifier", frame), []
    for output in ("default", container):
        terms = {"epsilon": 1.0, "delta": 1e-5, "random_state": 0}
        if output != "default":
            terms["accountant"] = accountant
        with config_context(transform_output=output if by_config else "default"):
            pipe = tabular_pipeline(DPLogisticRegression(random_state=0), **terms, **DECLARED)
            if not by_config:
                pipe.set_output(transform=output)
            models.append(pipe.fit(frame, y).predict_proba(frame))
            made = pipe[:-1].transform(frame)
    assert accountant.epsilon_spent == 1.0
    assert type(made).__module__.partition(".")[0] == container
    assert list(made.columns) == pipe[:-1].get_feature_names_out().tolist()
    np.testing.assert_allclose(*models, atol=1e-12)


def test_further_parameters_are_those_of_the_model():
    pipe = tabular_pipeline("classifier", class_weight="balanced", n_bins=16)
    assert pipe[-1].class_weight == "balanced"
    assert pipe[-1].n_bins == 16
    model = DPLogisticRegression(C=0.5)
    pipe = tabular_pipeline(model, class_weight={1: 2.0})
    assert pipe[-1].get_params()["class_weight"] == {1: 2.0}
    assert pipe[-1].get_params()["C"] == 0.5
    assert model.class_weight is None


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_trees": 3}, "'n_trees' is not a parameter"),
        ({"data_norm": 2.0}, "data_norm"),
        ({"target_bounds": (0, 1)}, "target_bounds is for regressors"),
    ],
)
def test_parameters_that_the_model_lacks_or_the_pipeline_sets_are_refused(params, words):
    with pytest.raises(ValueError, match=words):
        tabular_pipeline(DPLogisticRegression, **params)
