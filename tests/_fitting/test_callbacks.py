"""Every private fit tells callbacks that it begins and ends, and nothing of the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRidge,
    DPSGDRegressor,
    DPTableVectorizer,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.base import private_fit

X = np.random.default_rng(0).integers(0, 2, size=(100, 2)).astype(float)
ESTIMATORS = [
    DPLogisticRegression(mechanism="output"),
    DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics"),
    DPMinMaxScaler(bounds=(0, 1)),
    DPOneHotEncoder(categories=[0.0, 1.0]),
    DPTableVectorizer(delta=1e-6),
    RandomizedResponseTransformer(categories=[0.0, 1.0]),
]


class Recorder:
    """A callback of scikit-learn that asks for everything."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is metadata is fitted_estimator is None
        self.told.append("begin")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is fitted_estimator is None
        self.told.append(("end", metadata))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_fit_is_one_task(estimator):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder)
    model.fit(X, X[:, 0])
    cost = {"epsilon": model.privacy_.epsilon, "delta": model.privacy_.delta}
    if isinstance(model, RandomizedResponseTransformer):
        cost = None  # transform is charged
    assert recorder.told == ["setup", "begin", ("end", cost), "teardown"]
    recorder.told.clear()
    with pytest.raises(ValueError, match="epsilon must be"):
        model.set_params(epsilon=-1.0).fit(X, X[:, 0])
    assert recorder.told == ["setup", "begin", "teardown"]


TAKES_SECONDS = [
    *(DPLogisticRegression(mechanism=name) for name in ("output", "objective", "gradient")),
    DPLogisticRegression(mechanism="gradient", delta=0.0, data_norm="auto"),
    *(DPLinearSVC(mechanism=name) for name in ("output", "gradient")),
    *(DPRidge(target_bounds=(0, 1), mechanism=m) for m in ("sufficient_statistics", "gradient")),
    DPLinearRegression(target_bounds=(0, 1)),
    DPPoissonRegressor(target_bounds=(0, 2)),
    DPSGDRegressor(target_bounds=(0, 1), max_iter=30),
    DPAdditiveRegressor(target_bounds=(0, 1)),
    DPAdditiveClassifier(delta=0.0),
]


@pytest.mark.parametrize("estimator", TAKES_SECONDS, ids=str)
def test_what_takes_seconds_shows_its_planned_steps_whatever_the_rows(estimator, capsys):
    told = []
    for scale in (1.0, 1e6):
        model = clone(estimator).set_params(verbose=1).fit(scale * X, X[:, 0])
        told.append(capsys.readouterr().out)
    first, *steps = told[0].splitlines()
    if not isinstance(model, DPAdditiveRegressor):  # its steps follow from bins that are released
        assert told[0] == told[1]
    assert first.startswith(f"{type(model).__name__}: ") and "; epsilon 1, delta" in first
    if "gradients" in model.privacy_.mechanism:
        assert len(steps) <= 11 and steps[-1].endswith(f"epsilon 1 of 1 at delta {model.delta:g}")
    else:
        assert not steps
    clone(estimator).fit(X, X[:, 0])
    assert not capsys.readouterr().out
    accountant = PrivacyAccountant(1.0, 1e-5)
    for wrong in (-1, 1.5, "yes", None):
        model.set_params(verbose=wrong, accountant=accountant)
        with pytest.raises(ValueError, match="verbose must be"):
            model.fit(X, X[:, 0])
    assert not accountant.charges
    model.set_params(verbose=True, accountant=None).fit(X, X[:, 0])
    assert capsys.readouterr().out.startswith(first)


def test_what_learns_around_an_additive_model_is_said_before_the_charge():
    accountant = PrivacyAccountant(1.0, 0.0)
    model = DPAdditiveClassifier(epsilon=2.0, delta=0.0, accountant=accountant)
    with (
        pytest.warns(UserWarning, match="around DPAdditiveClassifier .*: StandardScaler in"),
        pytest.raises(BudgetExceededError),
    ):
        make_pipeline(StandardScaler(), model).fit(X, X[:, 0])


def test_what_a_step_made_of_floats_is_scaled_and_a_frame_of_them_may_not_be():
    pytest.importorskip("sklearn.callback")
    frame = pd.DataFrame(X, columns=["a", "b"])
    with pytest.warns(UserWarning, match="column 'a' holds numbers, and data_norm=1.0"):
        DPRidge(target_bounds=(0, 1)).fit(frame, X[:, 0])
    scaler = DPMinMaxScaler(bounds=(0, 1)).set_output(transform="pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(scaler, DPRidge(target_bounds=(0, 1))).fit(frame, X[:, 0])
        DPRidge(target_bounds=(0, 1), data_norm=2.0).fit(frame, X[:, 0])
        DPRidge(target_bounds=(0, 1)).fit(frame.to_numpy(), X[:, 0])


def test_a_silent_fit_within_another_one_reports_nothing_to_it(capsys):
    outer = DPSGDRegressor(target_bounds=(0, 1), delta=1e-6, verbose=2)
    silent = clone(outer).set_params(verbose=0)
    with private_fit(outer):
        silent.fit(X, X[:, 0])
    assert capsys.readouterr().out == ""
    with private_fit(silent):
        outer.fit(X, X[:, 0])
    assert capsys.readouterr().out
