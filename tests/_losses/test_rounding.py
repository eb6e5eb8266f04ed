import numpy as np
import pytest

from skdp._losses._classes import BinaryHuberizedHingeLoss


@pytest.mark.parametrize("h", [1e-4, 0.3, 0.7])
def test_residuals_of_the_hinge_at_its_corner(h):
    """The rounded corner is the one place where its residual is neither 0 nor 1."""
    rng = np.random.default_rng(0)
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no extended precision here")
    y = rng.integers(2, size=500)
    scores = (2 * y - 1) * (1.0 + h * rng.uniform(-1, 1, size=500))
    loss = BinaryHuberizedHingeLoss(h)
    exact = loss.residual(scores.astype(np.longdouble), y)
    error = np.abs(loss.residual(scores, y) - exact).max()
    assert 0.0 < error <= loss.residual_error
