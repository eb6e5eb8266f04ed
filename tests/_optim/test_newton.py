"""Weights are fitted by L-BFGS, to a certified norm and in bounded work."""

import numpy as np
import pytest
from scipy.sparse import random_array
from scipy.special import expit

from skdp._optim import _newton
from skdp._optim._linear_objective import LinearObjective
from skdp._optim._newton import MAX_BACKTRACKS, MEMORY, _inverse_product, lbfgs
from tests._guarantees import meet, of_rows
from tests._private import (
    BinaryLogisticLoss,
    BoundedRows,
    MultinomialLogisticLoss,
    plan_output_perturbation,
)


def make_objective(C=1.0, loss=None, n=400, d=2000, quadratic=1.0):
    rng, loss = np.random.default_rng(0), BinaryLogisticLoss() if loss is None else loss
    X = random_array((n, d), density=0.01, format="csr", random_state=rng)
    y = rng.integers(2 if not loss.weights_shape else loss.weights_shape[0], size=n)
    return LinearObjective(loss, BoundedRows(X, 1.0, 0.3), y, C, quadratic)


def count_work(objective):
    """Return a list that grows with each gradient or Cholesky factor."""
    seen, gradient, solver = [], objective.at, objective.hessian_solver
    objective.at = lambda w: seen.append("gradient") or gradient(w)
    objective.hessian_solver = lambda w: seen.append("factor") or solver(w)
    return seen


@pytest.mark.parametrize("loss", [BinaryLogisticLoss(), MultinomialLogisticLoss(3)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_many_weights_take_few_gradients(C, loss):
    objective = make_objective(C, loss)
    plan = plan_output_perturbation(of_rows(loss, 400, 2001, 1.1), C, meet(1.0, 1e-6))
    seen = count_work(objective)
    weights = _newton.minimize(objective, plan.tolerance)
    assert set(seen) == {"gradient"} and len(seen) < 150
    assert np.linalg.norm(objective.at(weights).gradient) <= plan.tolerance


@pytest.mark.parametrize("d", [20, 2000])
def test_accelerated_descent_finishes_what_too_few_steps_leave(d, monkeypatch):
    objective = make_objective(d=d)
    expected = _newton.minimize(objective, 1e-9)
    for name in ("LBFGS_STEPS", "MAX_FACTORS"):
        monkeypatch.setattr(_newton, name, 2)
    monkeypatch.setattr(_newton, "STEPS_PER_FACTOR", 1)
    np.testing.assert_allclose(_newton.minimize(objective, 1e-9), expected, atol=2e-9)


@pytest.mark.parametrize("most", [1, 7])
def test_the_work_is_bounded_where_the_norm_is_never_enough(most):
    objective = make_objective()
    seen = count_work(objective)
    lbfgs(objective, objective.at(np.zeros(objective.shape)), lambda *_: False, most)
    assert len(seen) <= 2 + most * MAX_BACKTRACKS


def test_it_ends_where_rounding_leaves_no_step():
    objective = make_objective(C=1e-3)
    start = objective.at(np.zeros(objective.shape))
    end = lbfgs(objective, start, lambda *_: False, 10_000)
    assert np.isfinite(end.weights).all() and np.linalg.norm(end.gradient) < 1e-12


def test_the_two_loops_multiply_by_the_matrix_of_bfgs():
    rng = np.random.default_rng(0)
    A = np.cov(rng.normal(size=(5, 20)))
    scale, vector, pairs = 0.7, rng.normal(size=5), []
    H = scale * np.eye(5)
    for moved in rng.normal(size=(MEMORY, 5)):
        change = A @ moved
        inverse = 1.0 / (moved @ change)
        V = np.eye(5) - inverse * np.outer(change, moved)
        H = V.T @ H @ V + inverse * np.outer(moved, moved)
        pairs.append((moved, change, inverse))
    result = _inverse_product(pairs, lambda vector: scale * vector, vector)
    np.testing.assert_allclose(result, H @ vector)


def test_a_factor_alone_makes_newtons_step():
    objective = make_objective(d=20)
    start = objective.at(np.ones(objective.shape))
    solve = objective.hessian_solver(start.weights)
    end = lbfgs(objective, start, lambda *_: False, 1, solve)
    np.testing.assert_allclose(end.weights, start.weights - solve(start.gradient))
    units = np.eye(objective.shape[0])
    ahead = [objective.at(start.weights + 1e-5 * unit).gradient for unit in units]
    behind = [objective.at(start.weights - 1e-5 * unit).gradient for unit in units]
    hessian = (np.array(ahead) - behind) / 2e-5
    np.testing.assert_allclose(hessian @ [solve(unit) for unit in units], units, atol=1e-6)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4, 1e8])
def test_the_tolerance_is_reached_on_any_table(C, monkeypatch):
    monkeypatch.setattr(_newton, "CHOLESKY_LIMIT", 0)
    rng, loss = np.random.default_rng(0), BinaryLogisticLoss()
    for X in (
        np.zeros((300, 4)),
        np.full((300, 4), 1e-160),
        np.ones((300, 4)),
        rng.standard_cauchy(size=(300, 4)) * 10.0 ** rng.integers(-100, 100, size=(300, 4)),
    ):
        for y in (rng.integers(2, size=300), np.zeros(300, dtype=int)):
            plan = plan_output_perturbation(of_rows(loss, 300, 5, 1.3), C, meet(1e10, 1e-6))
            objective = LinearObjective(loss, BoundedRows(X, 1.0, 0.3), y, C)
            weights = _newton.minimize(objective, plan.tolerance)
            gradient = objective.at(weights).gradient
            assert np.linalg.norm(gradient) <= plan.tolerance


@pytest.mark.parametrize("smallest", [1.0, 1e-3])
def test_few_weights_take_newton_steps_where_others_would_be_many(smallest):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40)) * np.geomspace(1.0, smallest, 40) / 8
    y = rng.random(2000) < expit(X.sum(axis=1) / smallest)
    objective = LinearObjective(BinaryLogisticLoss(), BoundedRows(X, 1.0, 0.0), y, 100.0)
    seen = count_work(objective)
    weights = _newton.minimize(objective, 1e-5)
    assert np.linalg.norm(objective.at(weights).gradient) <= 1e-5
    assert (seen.count("factor") > 0) == (smallest < 1.0)
    assert len(seen) < 30


def test_a_slow_descent_is_told_from_a_fast_one():
    # Ten steps took three of six orders of magnitude: ten more will do.
    assert not _newton._is_slow(1e6, 1e3, 10, 20)
    assert _newton._is_slow(1e6, 1e3, 10, 19)
    assert _newton._is_slow(1e6, 1.5e6, 10, 1000)
    assert not _newton._is_slow(1e6, 1.5e6, _newton.TRIAL_STEPS - 1, 1000)
