"""Calibration from noisy counts of scores: its values, its price and what few rows do."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.svm import LinearSVC

from skdp import (
    DPAdditiveClassifier,
    DPCalibratedClassifierCV,
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyAccountant,
    privacy_report,
)
from skdp.calibration import ScoreCalibrator

pytestmark = pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
ALMOST_NONE = 1e9
METHODS = ("sigmoid", "isotonic")


@pytest.fixture(scope="module")
def table():
    return make_classification(12_000, 5, n_redundant=0, weights=[0.9], random_state=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", [LogisticRegression(C=0.01), LinearSVC()], ids=str)
def test_without_noise_it_is_as_good_as_that_of_scikit_learn(table, inner, method):
    X, y = table
    model = inner.fit(X[:4000], y[:4000])
    ours = DPCalibratedClassifierCV(FrozenEstimator(model), method=method, epsilon=ALMOST_NONE)
    theirs = CalibratedClassifierCV(FrozenEstimator(model), method=method)
    losses = []
    for calibrated in (ours, theirs):
        calibrated.fit(X[4000:8000], y[4000:8000])
        probabilities = calibrated.predict_proba(X[8000:])[:, 1]
        losses.append(log_loss(y[8000:], np.clip(probabilities, 1e-3, 1 - 1e-3)))
    assert losses[0] <= losses[1] + 0.01


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_of_a_margin_become_better(table, method):
    X, y = table
    gains = []
    for _ in range(3):
        model = DPCalibratedClassifierCV(DPLinearSVC(data_norm=4.0), method=method)
        model.fit(X[:8000], y[:8000])
        uncalibrated = expit(model.estimator_.decision_function(X[8000:]))
        calibrated = model.predict_proba(X[8000:])[:, 1]
        gains.append(
            brier_score_loss(y[8000:], uncalibrated) - brier_score_loss(y[8000:], calibrated)
        )
    assert np.median(gains) > 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("params", [{}, {"cv": 3, "refit": True}], ids=str)
def test_fits_and_counts_are_one_charge(table, params):
    X, y = table
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = DPCalibratedClassifierCV(
        DPAdditiveClassifier(bounds=(-4, 4)), accountant=accountant, **params
    ).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.epsilon_spent <= 1.0
    assert any("cells" in stage.name for stage in model.privacy_.stages)
    assert "DPCalibratedClassifierCV" in str(privacy_report(model))


def test_a_fitted_model_pays_for_the_counts_only(table):
    X, y = table
    fitted = DPLogisticRegression(epsilon=2.0).fit(X[:6000], y[:6000])
    accountant = PrivacyAccountant(0.5, 0.0)
    model = DPCalibratedClassifierCV(
        fitted, epsilon=0.5, delta=0.0, cv="prefit", accountant=accountant
    ).fit(X[6000:], y[6000:])
    assert accountant.epsilon_spent == 0.5
    assert model.estimator_ is fitted


def test_few_rows_do_not_change_the_probabilities():
    X, y = make_classification(200, 5, random_state=0)
    changes = []
    for _ in range(10):
        model = DPCalibratedClassifierCV(DPLogisticRegression(), epsilon=0.1).fit(X, y)
        changes.append(abs(model.calibrator_.slope - 1.0) + abs(model.calibrator_.intercept))
    assert np.median(changes) < 0.5


@pytest.mark.parametrize("method", METHODS)
def test_predictions_agree_and_are_row_wise(table, method):
    X, y = table
    model = DPCalibratedClassifierCV(DPLogisticRegression(), method=method, epsilon=4.0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(X), (probabilities[:, 1] > 0.5).astype(int))
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0.0).astype(int))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
    assert np.array_equal(model.predict_proba(X[5:6]), probabilities[5:6])
    order = np.argsort(model.estimator_.decision_function(X))
    assert np.all(np.diff(probabilities[order, 1]) >= -1e-12)


def test_a_calibrator_maps_scores_on_the_scale_of_the_logit():
    calibrator = ScoreCalibrator(method="sigmoid", slope=2.0, intercept=-1.0)
    scores = np.array([-1e300, -1.0, 0.0, 1.0, np.inf])
    np.testing.assert_allclose(logit(calibrator.predict(scores[1:4])), [-3.0, -1.0, 1.0])
    assert np.isfinite(calibrator.predict(scores)).all()
    steps = ScoreCalibrator(
        method="isotonic", scores=np.array([0.0, 1.0]), probabilities=np.array([0.2, 0.6])
    )
    np.testing.assert_allclose(steps.predict([-5.0, 0.5, 5.0]), [0.2, 0.4, 0.6])


@pytest.mark.parametrize(
    ("params", "words"),
    [({"method": "temperature"}, "method"), ({"cv": 5}, "refit"), ({"cv": 0.0}, "cv")],
)
def test_bad_parameters_are_refused_and_not_charged(table, params, words):
    X, y = table
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = DPCalibratedClassifierCV(DPLogisticRegression(), accountant=accountant)
    with pytest.raises(ValueError, match=words):
        model.set_params(**params).fit(X[:200], y[:200])
    assert accountant.charges == []
