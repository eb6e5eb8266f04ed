"""The penalty by the evidence: its formulas, checked against simulations."""

import math

import numpy as np
import pytest

from skdp.gam._blocks import Block, BlockDesign
from skdp.gam._descent import Schedule, descend
from skdp.gam._evidence import (
    averaged_response,
    chance_dof,
    penalty_by_evidence,
    spectrum,
    unclipped_fraction,
)

SCHEDULE = Schedule(loss_smoothness=50.0, l2_reg_strength=0.5, penalty_to_noise=1.0)


def layout_of(n_terms=6, n_cells=16, n_rows=1600.0, resolutions=(1, 4)):
    """Return terms of equally full cells, each of them at several resolutions."""
    weight = 1.0 / math.sqrt(2.0 * max(n_terms, 1) * len(resolutions))
    blocks = [Block(term=-1, weight=0.5, groups=np.zeros(1, dtype=int), counts=np.array([n_rows]))]
    for term in range(n_terms):
        for coarser in resolutions:
            groups = np.arange(n_cells) // coarser
            counts = np.bincount(groups, weights=np.full(n_cells, n_rows / n_cells))
            blocks.append(Block(term=term, weight=weight, groups=groups, counts=counts))
    return BlockDesign(blocks)


def early_mean(gradient, schedule, size):
    """Return the mean of the iterates of the second quarter of the steps."""
    told = []

    def penalty(weights):
        told.append(weights)
        return 0.0

    descend(gradient, schedule, np.zeros((size, 1)), math.inf, penalty=penalty)
    return told[0]


def test_response_is_that_of_the_steps():
    curvatures = np.array([0.0, 0.02, 0.3, 4.0, 50.0])
    gain, noise_gain = averaged_response(curvatures, SCHEDULE)

    def answer(gradient):
        column = curvatures[:, np.newaxis]
        steps = iter(gradient)
        return early_mean(lambda w: column * w + next(steps), SCHEDULE, 5)[:, 0]

    n_steps = SCHEDULE.n_steps
    np.testing.assert_allclose(gain, answer(np.full((n_steps, 5, 1), -1.0)), rtol=0.02)
    rng = np.random.default_rng(0)
    draws = [answer(rng.normal(size=(n_steps, 5, 1))) for _ in range(4000)]
    # The relative standard error of a variance of 4,000 draws is sqrt(2 / 4000) = .022: five of
    # them, of five variances.
    np.testing.assert_allclose(noise_gain, np.var(draws, axis=0), rtol=0.11)


def test_spectrum_is_that_of_the_centered_features():
    design, rng = layout_of(n_terms=1), np.random.default_rng(0)
    curvatures, rotated = spectrum(design, rng.normal(size=(design.size, 1)))
    # 1,600 rows, a hundred in each of the sixteen cells.
    cells = np.repeat(np.arange(16), 100)
    fine, coarse = design.blocks[1], design.blocks[2]
    features = np.hstack(
        [
            fine.weight * np.equal.outer(cells, np.arange(16)),
            coarse.weight * np.equal.outer(cells // 4, np.arange(4)),
        ]
    )
    features -= features.mean(axis=0)
    expected = np.linalg.eigvalsh(features.T @ features)
    np.testing.assert_allclose(np.sort(curvatures), np.maximum(expected, 0.0), atol=1e-9)
    assert rotated.shape == (20, 1)


@pytest.mark.parametrize("signal", [0.0, 0.05, 0.3])
def test_variance_of_weights_is_found(signal):
    """Weights of a known variance give a penalty near the best one; without any it is large."""
    rng, variance, step_noise = np.random.default_rng(1), 0.04, 0.5
    moments, _ = spectrum(layout_of(n_terms=20))
    # In the basis of eigenvectors a gradient is the curvature times the distance of the weights,
    # sampling noise and the noise of the step.
    basis = BlockDesign(
        layout_of(n_terms=0).blocks
        + [
            Block(term=j, weight=1.0 / 64.0, groups=np.zeros(1, dtype=int), counts=np.array([m]))
            for j, m in enumerate(64.0**2 * moments[:400])
        ]
    )
    curvatures, _ = spectrum(basis)
    true = np.concatenate([[0.0], signal * rng.normal(size=400)])[:, np.newaxis]
    h = np.concatenate([[0.0], curvatures])[:, np.newaxis]
    sampling = np.sqrt(h * variance) * rng.normal(size=h.shape)

    def gradient(weights):
        return h * (weights - true) + sampling + step_noise * rng.normal(size=h.shape)

    weights = early_mean(gradient, SCHEDULE, 401)
    known = {"variance": variance, "step_noise": step_noise}
    found = penalty_by_evidence(basis, weights, SCHEDULE, noise=0.0, **known)
    if signal == 0.0:
        # The best is infinite; what is left of a feature of the largest curvature is little.
        assert found > curvatures.max()
    else:
        best = max(variance / signal**2, SCHEDULE.l2_reg_strength)
        assert 0.6 * best < found < 1.7 * best


def schedule_of(strength, smoothness=50.0, log_ratio=7.0):
    ratio = math.exp(log_ratio)
    return Schedule(loss_smoothness=smoothness, l2_reg_strength=strength, penalty_to_noise=ratio)


def test_chance_falls_with_the_penalty():
    design = layout_of()
    degrees = [
        chance_dof(design, schedule_of(strength, strength + 50.0), strength)
        for strength in (1e-3, 1.0, 1e6)
    ]
    moments, _ = spectrum(design)
    # Six columns of sixteen cells, less the mean of each.
    assert degrees[0] == pytest.approx(90.0, rel=1e-2)
    # The steps have converged: the trace of a ridge regression.
    assert degrees[1] == pytest.approx(np.sum(moments / (moments + 1.0)), rel=1e-3)
    assert degrees[2] < 1e-3


@pytest.mark.parametrize(("strength", "slope"), [(0.5, 1.0), (20.0, 1.0), (20.0, 0.6)])
def test_chance_is_the_covariance_of_fitted_values_and_targets(strength, slope):
    """Targets that columns do not explain have this covariance with the mean of the last steps."""
    design = layout_of()
    moments, _ = spectrum(design)
    column = moments[:, np.newaxis]
    # The gradient at weights 0 has the variance of the targets times the second moments.
    gradients = np.sqrt(column) * np.random.default_rng(2).normal(size=(len(moments), 4000))
    weights, last_strength = descend(
        lambda w: slope * column * w - gradients,
        SCHEDULE,
        np.zeros_like(gradients),
        math.inf,
        penalty=lambda _: strength,
    )
    assert last_strength == strength
    covariances = np.sum(weights * gradients, axis=0)
    error = covariances.std() / math.sqrt(len(covariances))
    found = chance_dof(design, SCHEDULE, strength, slope)
    # Six standard errors.
    assert abs(found - covariances.mean()) < 6.0 * error
    if strength > SCHEDULE.l2_reg_strength:
        # The mean contains iterates of the first steps, whose penalty was smaller.
        assert found > 1.02 * np.sum(moments / (slope * moments + strength))


@pytest.mark.parametrize("clip", [0.6, 1.0, 2.0, 5.0])
def test_mean_clipped_squares_tell_how_many_residuals_are_clipped(clip):
    grid = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-(grid**2) / 2.0)
    density /= density.sum()
    mean_square = density @ np.minimum(grid**2, clip**2) / clip**2
    inside = density @ (np.abs(grid) < clip)
    assert unclipped_fraction(mean_square) == pytest.approx(inside, abs=1e-4)


def test_impossible_mean_squares_give_the_limits():
    assert 0.39 < unclipped_fraction(1.5) < 0.41
    assert unclipped_fraction(-1.0) == pytest.approx(1.0)
