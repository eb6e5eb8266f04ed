"""Norms near the ends of their range: a fit succeeds, or is refused before the charge."""

import numpy as np
import pytest
from sklearn.base import clone

from skdp import PrivacyAccountant
from skdp.decomposition import DPPCA
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)
from skdp.svm import DPLinearSVC

CLASSES = {"classes": [0, 1]}
TARGETS = {"target_bounds": (0, 1)}
ESTIMATORS = {
    "logistic": DPLogisticRegression(delta=1e-5, **CLASSES),
    "logistic gradient": DPLogisticRegression(delta=1e-5, mechanism="gradient", **CLASSES),
    "svc": DPLinearSVC(delta=1e-5, **CLASSES),
    "sgd": DPSGDClassifier(delta=1e-5, **CLASSES),
    "sgd regressor": DPSGDRegressor(delta=1e-5, **TARGETS),
    "ridge": DPRidge(delta=1e-5, **TARGETS),
    "linear": DPLinearRegression(delta=1e-5, **TARGETS),
    "poisson": DPPoissonRegressor(delta=1e-5, **TARGETS),
    "pca": DPPCA(n_components=1, delta=1e-5),
}


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("norm", [1e-50, 3e-50, 1e-48, 1e48, 1e50])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_norm_at_the_ends_of_its_range_never_fails_after_the_charge(name, norm):
    """Rows far from 0 are centered, and their released size multiplies the clip of gradients."""
    rows = 0.6 + 0.001 * np.random.default_rng(0).normal(size=(3000, 2))
    y = (rows[:, 0] > 0.6).astype(int)
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = ESTIMATORS[name]
    model.set_params(data_norm=norm, accountant=accountant, random_state=0)
    try:
        model.fit(norm * rows, y)
    except ValueError:
        assert accountant.epsilon_spent == 0.0
    else:
        assert accountant.epsilon_spent > 0.0


# Factors from the smallest double to the largest.
STRENGTHS = [5e-324, 1e-308, 1e-200, 1e200, 1e305, 1e308]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_penalty_of_any_size_is_planned_or_refused(name, strength):
    """Products and inverses of it overflow and underflow."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = ESTIMATORS[name]
    parameters = model.get_params()
    penalties = [param for param in ("C", "alpha") if param in parameters]
    if not penalties:
        pytest.skip("it has no penalty")
    for mechanism in ("auto", "output", "objective", "gradient", "sufficient_statistics"):
        accountant = PrivacyAccountant(100.0, 1e-2)
        extreme = clone(model).set_params(
            data_norm=1.0, accountant=accountant, random_state=0, **{penalties[0]: strength}
        )
        if "mechanism" in parameters:
            extreme.set_params(mechanism=mechanism)
        try:
            extreme.fit(X, y)
        except ValueError as error:
            assert not accountant.charges
            if "max_grad_norm" not in parameters:
                assert "max_grad_norm" not in str(error)
        else:
            assert np.isfinite(extreme.coef_).all()


@pytest.mark.parametrize("data_norm", [1e-50, 1e50])
def test_messages_name_no_parameter_that_the_model_does_not_have(data_norm):
    X = np.zeros((60, 2))
    y = np.arange(60) % 2
    for name in ("svc", "poisson", "ridge", "linear", "logistic gradient"):
        model = clone(ESTIMATORS[name]).set_params(data_norm=data_norm, mechanism="gradient")
        if "target_bounds" in model.get_params():
            model.set_params(target_bounds=(0, data_norm))
        try:
            model.fit(X, y * data_norm if "target_bounds" in model.get_params() else y)
        except ValueError as error:
            assert "max_grad_norm" not in str(error)
