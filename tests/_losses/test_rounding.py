import numpy as np
import pytest

from skdp._losses import (
    BinaryHuberisedHingeLoss,
    BinaryLogisticLoss,
    MulticlassHuberisedHingeLoss,
    MultinomialLogisticLoss,
)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-4, 1.0])
@pytest.mark.parametrize(
    "loss",
    [
        BinaryLogisticLoss(),
        MultinomialLogisticLoss(4),
        BinaryHuberisedHingeLoss(1e-4),
        BinaryHuberisedHingeLoss(0.5),
        MulticlassHuberisedHingeLoss(4, 1e-4),
        MulticlassHuberisedHingeLoss(4, 0.5),
    ],
    ids=str,
)
def test_residuals_are_off_by_no_more_than_stated(loss, scale):
    """Against the same formulas in extended precision; ties and near-ties are the worst."""
    rng = np.random.default_rng(0)
    n_classes = max((2, *loss.weights_shape))
    y = rng.integers(n_classes, size=500)
    scores = scale * rng.normal(size=(500, *loss.weights_shape))
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no extended precision here")
    exact = loss.residual(scores.astype(np.longdouble), y)
    error = np.linalg.norm((loss.residual(scores, y) - exact).reshape(500, -1), axis=1).max()
    assert error <= loss.residual_error


@pytest.mark.parametrize("h", [1e-4, 0.3, 0.7])
def test_residuals_of_the_hinge_at_its_corner(h):
    """The rounded corner is the one place where its residual is neither 0 nor 1."""
    rng = np.random.default_rng(0)
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no extended precision here")
    y = rng.integers(2, size=500)
    scores = (2 * y - 1) * (1.0 + h * rng.uniform(-1, 1, size=500))
    loss = BinaryHuberisedHingeLoss(h)
    exact = loss.residual(scores.astype(np.longdouble), y)
    error = np.abs(loss.residual(scores, y) - exact).max()
    assert 0.0 < error <= loss.residual_error
