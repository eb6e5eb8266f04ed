"""What weights explain by chance, as the check of a linear model finds it from what it releases."""

import numpy as np
import pytest

from skdp._optim._clipped_sums import sum_loss_decreases
from skdp._optim._default_settings import LossSpec
from tests._private import HuberLoss

N, P = 4000, 30


def loss_spec(curvature_from="residuals"):
    return LossSpec(
        HuberLoss(1.0), 1.0, 1.0, 10.0, shrinkage_residual=0.15, curvature_from=curvature_from
    )


def rule_and_decreases(rows, alpha=1e-3, factor=None):
    """Return the check of ridge weights that were fitted to targets without information."""
    rng = np.random.default_rng(1)
    y = 0.1 * rng.normal(size=len(rows))
    weights = np.linalg.solve(rows.T @ rows / len(rows) + alpha * np.eye(P), rows.T @ y / len(rows))
    rule = loss_spec().shrinkage_rule(1.0, P, len(rows), alpha)
    scores = rows @ weights
    loss_decreases = sum_loss_decreases(
        scores, -y, scores - y, rule.clip_norms(weights), None
    ) / len(rows)
    return rule, loss_decreases, weights


def rows_of_spectrum(spectrum):
    rng = np.random.default_rng(0)
    spectrum = np.asarray(spectrum, dtype=float)
    return rng.normal(size=(N, P)) * np.sqrt(spectrum / max(1.0, spectrum.sum()))


@pytest.mark.parametrize(
    "spectrum",
    [np.full(P, 1.0 / P), np.full(P, 0.02 / P), np.where(np.arange(P) < 3, 0.3, 1e-6)],
    ids=["all directions", "short rows", "three directions"],
)
def test_degrees_follow_the_rows_and_not_the_bound_on_their_norm(spectrum):
    rows = rows_of_spectrum(spectrum)
    rule, loss_decreases, weights = rule_and_decreases(rows)
    curvatures = np.linalg.eigvalsh(rows.T @ rows / N)
    exact = np.sum(curvatures / (curvatures + 1e-3))
    first, last, squares = loss_decreases
    spread = rule.relative_curvature((first, last, 4.0 * squares), weights)
    assert 0.6 * exact < rule.effective_dof(spread) < 2.1 * exact
    if spectrum[0] != 1.0 / P:
        assert rule.effective_dof(1.0) > 1.8 * exact


def test_noise_leaves_the_spread_at_one():
    rule, loss_decreases, weights = rule_and_decreases(rows_of_spectrum(np.full(P, 0.02 / P)))
    loud = type(rule)(
        **{name: getattr(rule, name) for name in rule.__annotations__}
        | {
            "n_steps": 1,
            "norm": rule.norm,
            "residual": rule.residual,
            "null_fraction": 0.0,
            "noise_std": 1.0,
        }
    )
    first, last, squares = loss_decreases
    assert loud.relative_curvature((first, last, 4.0 * squares), weights) == 1.0


def test_chance_is_subtracted_only_where_it_is_little():
    assert loss_spec().shrinkage_rule(1.0, P, N, 1e-3).null_decrease_factor == 1.5
    assert loss_spec().shrinkage_rule(1.0, P, 4 * P, 1e-6).null_decrease_factor == 0.0
    assert (
        loss_spec(None)
        .shrinkage_rule(1.0, P, N, 1e-3)
        .relative_curvature((0.5, 0.5, 0.5), np.ones(P))
        == 1.0
    )
