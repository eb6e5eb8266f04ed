"""Two violations that are known of another library are found. Runs where that library imports."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.audit import audit_epsilon
from skdp.exceptions import PrivacyViolationWarning

try:
    from diffprivlib.models import LogisticRegression
except ImportError:
    pytest.skip("diffprivlib does not import", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


NORM = 100.0


class WeightsAlone(ClassifierMixin, BaseEstimator):
    """The weights of diffprivlib's model, without its number of iterations.

    That number is not private either, and an audit that sees it finds nothing else.
    """

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y):
        C = 1.0 / (0.88 * NORM)
        model = LogisticRegression(
            epsilon=self.epsilon, data_norm=NORM, C=C, fit_intercept=False, tol=1e-8
        )
        self.coef_ = model.fit(X, y).coef_
        return self


def test_a_curvature_of_the_norm_where_its_square_is_due():
    """The curvature that a row of norm R adds is taken to be R / 4 and is R squared / 4.

    The weights have one mean in both worlds, so that only their distance to a mode tells them
    apart.
    """
    X = 1e-3 * np.arange(20.0)[:, None]
    options = {"canary": (np.array([NORM]), 1), "replacement": (np.zeros(1), 1), "n_fits": 1500}
    options["relation"] = "replace_one"
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(
            WeightsAlone(), X, np.arange(20) % 2, method="two_worlds", delta=0.0, **options
        )
    assert found.lower_bound > 1.0 and "the mode of one table" in found.attack


def test_one_noise_vector_for_all_classes_in_workers():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, fit_intercept=False, n_jobs=2)
    options = {"canary": (np.array([1.0, 0.0, 0.0]), 0), "n_fits": 100}
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(
            model, X, np.arange(300) % 3, method="two_worlds", delta=0.0, **options
        )
    assert found.lower_bound > 1.0
