"""Losses against what they are rounded from, and against each other."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.metrics import mean_poisson_deviance

from skdp._optim._classification_losses import (
    BinaryHuberizedHingeLoss,
    MulticlassHuberizedHingeLoss,
)
from skdp._optim._regression_losses import ClippedPoissonLoss
from tests._optim._all_losses import draw


def test_the_binary_hinge_is_rounded_at_its_corner_alone():
    loss, z = BinaryHuberizedHingeLoss(0.25), np.linspace(-3, 3, 601)
    values = np.array([loss.value(np.array([v]), np.array([1]))[0] for v in z])
    hinge = np.maximum(0.0, 1.0 - z)
    far = np.abs(z - 1.0) >= 0.25
    np.testing.assert_allclose(values[far], hinge[far], atol=1e-15)
    assert np.max(values - hinge) == pytest.approx(0.25 / 4)
    assert np.all(values[~far] == pytest.approx((1.25 - z[~far]) ** 2 / (4 * 0.25)))
    flipped = [loss.value(np.array([-v]), np.array([0]))[0] for v in z]
    np.testing.assert_allclose(flipped, values)


def test_two_classes_of_the_multiclass_hinge_are_the_binary_hinge():
    binary, many = BinaryHuberizedHingeLoss(0.4), MulticlassHuberizedHingeLoss(2, 0.4)
    scores, y = draw(many)
    difference = scores[:, 1] - scores[:, 0]
    assert many.value(scores, y) == pytest.approx(binary.value(difference, y))
    np.testing.assert_allclose(
        many.residual(scores, y)[:, 1], binary.residual(difference, y), atol=1e-12
    )


def test_the_multiclass_hinge_is_its_maximum_and_near_that_of_crammer_and_singer():
    loss = MulticlassHuberizedHingeLoss(4, 0.3)
    scores, y = draw(loss, 20)
    for s, label in zip(scores, y, strict=True):
        m = s + (np.arange(4) != label)
        value = loss.value(s[None], np.array([label]))[0]
        found = minimize(
            lambda p, m=m: -(p @ m) - 0.15 * (1 - p @ p),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert value == pytest.approx(-found.fun - s[label], abs=1e-6)
        hinge = m.max() - s[label]
        assert hinge - 1e-12 <= value <= hinge + 0.15


def test_the_multiclass_hinge_survives_enormous_scores():
    loss = MulticlassHuberizedHingeLoss(3, 1e-3)
    scores, y = np.array([[1e18, -1e18, 0.0], [1e18, 1e18, 1e18]]), np.array([1, 0])
    residual = loss.residual(scores, y)
    np.testing.assert_allclose(residual.sum(axis=1), 0.0, atol=1e-9)
    assert np.linalg.norm(residual, axis=1).max() <= np.sqrt(2.0) + 1e-12


def test_the_poisson_loss_is_half_the_deviance_below_its_corner():
    loss, rng = ClippedPoissonLoss(20.0), np.random.default_rng(0)
    scores, y = rng.uniform(-3, 3, size=200), rng.integers(0, 20, size=200)
    below = np.exp(scores) < y + 20
    expected = 0.5 * below.sum() * mean_poisson_deviance(y[below], np.exp(scores[below]))
    assert loss.value(scores[below], y[below]).sum() == pytest.approx(expected)


def test_the_poisson_loss_goes_on_along_its_tangent():
    loss = ClippedPoissonLoss(5.0)
    y, corner = np.array([2.0]), np.log(7.0)
    at_corner = 7.0 - 2.0 * corner - 2.0 + xlogy(2.0, 2.0)
    assert loss.value(np.array([corner + 3.0]), y) == pytest.approx(at_corner + 15.0)
    assert loss.residual(np.array([1e6]), y) == pytest.approx(5.0)
    assert np.isfinite(loss.value(np.array([1e6, -1e6]), np.array([0.0, 5.0]))).all()


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
