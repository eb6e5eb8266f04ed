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
