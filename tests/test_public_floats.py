"""Nothing beyond the claim can be read off the bits of what an estimator publishes."""

import numpy as np
import pytest

from skdp import DPLogisticRegression, DPStandardScaler
from skdp.mechanisms import LaplaceMechanism
from tests._attacks import certified_epsilon

FITS = 1500
N_ROWS = 64


def neighboring_tables():
    """Two tables of which one row differs; both hold sums that are no multiples of the grid."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(N_ROWS, 2))
    other = X.copy()
    other[0] = 0.0
    return X, other


def published(estimator, X):
    y = np.arange(N_ROWS) % 2
    rows = []
    for _ in range(FITS):
        estimator.fit(X, y)
        values = [getattr(estimator, name) for name in NAMES[type(estimator)]]
        rows.append(np.concatenate([value.ravel() for value in values]))
    return np.array(rows)


NAMES = {DPStandardScaler: ("mean_", "var_"), DPLogisticRegression: ("coef_", "intercept_")}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "estimator",
    [
        DPStandardScaler(bounds=(-1, 1), epsilon=1.0),
        DPStandardScaler(bounds=(-1, 1), epsilon=1.0, delta=1e-6),
        DPLogisticRegression(C=0.1, delta=0.0),
        # Its noise is Gaussian, as that of the scaler above.
        pytest.param(DPLogisticRegression(C=0.1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_attacks_certify_nothing_above_the_claim(estimator):
    # Each certificate is wrong with a probability of at most 1e-3 if the claim is attained, which
    # it is far from being.
    first, second = (published(estimator, X) for X in neighboring_tables())
    assert certified_epsilon(first, second, delta=estimator.delta) <= estimator.epsilon


@pytest.mark.thorough
def test_the_same_attacks_break_textbook_noise(monkeypatch):
    generator = np.random.default_rng(0)

    def release(self, values, random_state):
        return values + generator.laplace(scale=self.scale, size=np.shape(values))

    monkeypatch.setattr(LaplaceMechanism, "release", release)
    estimator = DPStandardScaler(bounds=(-1, 1), epsilon=1.0, with_std=False)
    monkeypatch.setitem(NAMES, DPStandardScaler, ("mean_",))
    X = np.zeros((N_ROWS, 1))
    other = X.copy()
    other[0] = 1.0
    first, second = published(estimator, other), published(estimator, X)
    assert certified_epsilon(first, second) > 2.0 * estimator.epsilon
