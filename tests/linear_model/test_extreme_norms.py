"""Norms near the ends of their range: a fit succeeds, or is refused before the charge."""

import numpy as np
import pytest

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
