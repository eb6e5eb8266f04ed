"""Losses keep the protocol that they declare, and what minimizes them is bounded."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import random_array
from scipy.special import expit, xlogy
from sklearn.metrics import mean_poisson_deviance

from skdp._optim import _newton
from skdp._optim._classification_losses import (
    BinaryHuberizedHingeLoss,
    MulticlassHuberizedHingeLoss,
)
from skdp._optim._linear_objective import LinearObjective
from skdp._optim._loss import BoundedLoss, ClippableLoss
from skdp._optim._newton import MAX_BACKTRACKS, MEMORY, _inverse_product, lbfgs
from skdp._optim._regression_losses import ClippedPoissonLoss, PoissonLoss
from tests._guarantees import meet, of_rows
from tests._optim import _broken_losses as zoo
from tests._optim._all_losses import (
    BOUNDED,
    KINDS,
    LOSSES,
    MODULES,
    draw,
    draw_far,
    kinds_in,
    norms,
    what_hinders,
)
from tests._private import (
    BinaryLogisticLoss,
    BoundedRows,
    HuberLoss,
    ModifiedHuberLoss,
    MultinomialLogisticLoss,
    OneVersusRestLoss,
    SquaredHingeLoss,
    plan_output_perturbation,
)


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


# Every loss of the package keeps the protocol that it declares.


every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


EXTENDED = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps


extended = pytest.mark.skipif(not EXTENDED, reason="no extended precision here")


every_bounded_loss = pytest.mark.parametrize("loss", BOUNDED, ids=str)


@pytest.mark.parametrize("kind", KINDS)
def test_every_loss_of_the_package_is_checked(kind):
    assert what_hinders(kind) is None, f"{kind.__name__}: {what_hinders(kind)}"
    assert kind in {type(loss) for loss in LOSSES}


def test_losses_stand_in_files_named_after_losses():
    """Files of `_optim` with other names are not searched for losses."""
    kinds = [ClippableLoss]
    for kind in kinds:
        kinds += kind.__subclasses__()
    places = {kind.__module__ for kind in kinds if kind.__module__.startswith("skdp.")}
    assert places <= {module.__name__ for module in MODULES}


def test_what_hinders_a_loss_is_named():
    found = {kind.__name__: what_hinders(kind) for kind in kinds_in([zoo])}
    assert found.keys() >= zoo.HINDERED.keys() and found["WholeLoss"] is None
    for name, words in found.items():
        expected = zoo.HINDERED.get(name)
        assert expected is None or expected in words


def test_what_is_missing_is_named():
    @dataclass(frozen=True)
    class Unfinished(BoundedLoss):
        loss_lipschitz = 1.0

    with pytest.raises(TypeError, match="curvature_bound.*residual.*value"):
        Unfinished()


@every_loss
def test_residuals_are_derivatives_of_the_value(loss):
    scores, y = draw(loss)
    direction = np.random.default_rng(1).normal(size=scores.shape)
    for length in (1e-6, 1e-5):
        up, down = (loss.value(scores + s * length * direction, y).sum() for s in (1, -1))
        slope = np.vdot(loss.residual(scores, y), direction)
        assert (up - down) / (2 * length) == pytest.approx(slope, rel=1e-5)


@every_loss
def test_a_rows_part_depends_on_the_row_alone(loss):
    scores, y = draw(loss, 50)
    some = np.random.default_rng(1).permutation(50)[:23]
    residual = loss.residual(scores, y)
    np.testing.assert_array_equal(loss.residual(scores[some], y[some]), residual[some])
    one_by_one = [loss.value(scores[[i]], y[[i]])[0] for i in range(50)]
    assert loss.value(scores, y) == pytest.approx(one_by_one, rel=1e-12)
    if isinstance(loss, BoundedLoss):
        direction = np.random.default_rng(2).normal(size=scores.shape)
        products = [
            loss.curvature_product(loss.curvature(scores[rows], y[rows]), direction[rows])
            for rows in (slice(None), some)
        ]
        np.testing.assert_array_equal(products[1], products[0][some])


@every_loss
def test_shapes(loss):
    for n in (0, 1, 7):
        scores, y = draw(loss, n)
        kept = scores.copy()
        residual = loss.residual(scores, y)
        assert residual.shape == (n, *loss.weights_shape) and residual.dtype == np.float64
        assert not (np.shares_memory(residual, scores) or np.shares_memory(residual, y))
        assert loss.value(scores, y).shape == (n,)
        if isinstance(loss, BoundedLoss):
            product = loss.curvature_product(loss.curvature(scores, y), np.ones_like(scores))
            assert product.shape == scores.shape
        np.testing.assert_array_equal(scores, kept)


# The curvature of the Poisson loss is not bounded. Its `curvature_bound` is that of step sizes.
WITH_CURVATURE_BOUND = [loss for loss in LOSSES if not isinstance(loss, PoissonLoss)]


@pytest.mark.parametrize("loss", WITH_CURVATURE_BOUND, ids=str)
def test_residuals_move_no_faster_than_the_curvature_bound(loss):
    scores, y = draw_far(loss)
    rng = np.random.default_rng(3)
    for length in (1e-3, 0.1, 10.0):
        step = length * rng.normal(size=scores.shape)
        moved = norms(loss.residual(scores + step, y) - loss.residual(scores, y))
        assert np.all(moved <= loss.curvature_bound * norms(step) * (1 + 1e-9) + 1e-12)


@every_bounded_loss
def test_curvatures_are_derivatives_of_the_residuals(loss):
    scores, y = draw(loss)
    direction = np.random.default_rng(1).normal(size=scores.shape)
    up, down = (loss.residual(scores + s * 1e-6 * direction, y) for s in (1, -1))
    product = loss.curvature_product(loss.curvature(scores, y), direction)
    # A row within 1e-5 of a kink of its derivative has no curvature to compare.
    assert np.mean(norms((up - down) / 2e-6 - product) > 1e-4) < 0.01


@every_bounded_loss
def test_slopes_and_curvatures_are_within_their_bounds(loss):
    scores, y = draw_far(loss)
    slopes = norms(loss.residual(scores, y))
    assert 0.9 * loss.loss_lipschitz <= slopes.max() <= loss.loss_lipschitz * (1 + 1e-12)
    curvature = loss.curvature(scores, y)
    direction = np.random.default_rng(3).normal(size=scores.shape)
    stretch = norms(loss.curvature_product(curvature, direction)) / norms(direction)
    assert stretch.max() <= loss.curvature_bound * (1 + 1e-12)
    units = np.eye(scores[0].size).reshape(-1, *scores.shape[1:])
    columns = [loss.curvature_product(curvature, np.broadcast_to(u, scores.shape)) for u in units]
    hessians = np.stack([column.reshape(len(y), -1) for column in columns], axis=2)
    assert np.trace(hessians, axis1=1, axis2=2).max() <= loss.trace_bound * (1 + 1e-12)
    eigenvalues = np.linalg.eigvalsh(hessians)
    assert eigenvalues.min() >= -1e-12 * loss.curvature_bound
    assert 0.9 * loss.curvature_bound <= eigenvalues.max() <= loss.curvature_bound * (1 + 1e-12)
    assert np.sum(eigenvalues > 1e-12 * loss.curvature_bound, axis=1).max() <= loss.curvature_rank


@every_bounded_loss
def test_bounded_losses_are_convex(loss):
    scores, y = draw_far(loss)
    other = scores + np.random.default_rng(4).standard_cauchy(size=scores.shape)
    turned = (loss.residual(other, y) - loss.residual(scores, y)) * (other - scores)
    rising = turned.reshape(len(y), -1).sum(axis=1)
    assert np.all(rising >= -1e-12 * norms(other - scores) * loss.loss_lipschitz)


@pytest.mark.quick_cases(every=2)
@every_bounded_loss
def test_the_value_at_zero_bounds_every_row_and_values_are_not_negative(loss):
    scores, y = draw(loss)
    rows = [loss.value(0.0 * scores[[i]], y[[i]]) for i in range(len(y))]
    assert max(rows) <= loss.value_at_zero() + 1e-12
    assert min(loss.value(scores[[i]], y[[i]]) for i in range(len(y))) >= -1e-12


@pytest.mark.parametrize("loss", [b for b in BOUNDED if hasattr(b, "n_vertices")], ids=str)
def test_curvature_vanishes_at_vertices_where_a_loss_says_so(loss):
    if not loss.curvature_vanishes_at_vertices:
        return
    scores, y = draw_far(loss)
    share = norms(loss.residual(scores, y)) / loss.loss_lipschitz
    assert loss.n_vertices == 1
    trace = loss.curvature(scores, y)
    assert np.all(trace <= 4.0 * share * (1.0 - share) * loss.trace_bound + 1e-12)


@pytest.mark.quick_cases(cover="values")
@extended
@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-4, 0.3, 10.0])
@every_bounded_loss
def test_residuals_are_off_by_no_more_than_stated(loss, scale):
    """Against the same formulas in extended precision; ties and near-ties are the worst."""
    scores, y = draw(loss, 500)
    scores *= scale
    exact = loss.residual(scores.astype(np.longdouble), y)
    assert norms(loss.residual(scores, y) - exact).max() <= loss.residual_error


@every_bounded_loss
def test_the_rounding_error_of_residuals_is_stated_with_measure(loss):
    """It is a few roundings of the slope and of the scores, which the curvature passes on."""
    roundings = 64.0 * np.finfo(np.float64).eps
    assert loss.residual_error <= roundings * (loss.loss_lipschitz + loss.curvature_bound)


SIZES = (1.0, 1e3, 1e8, 1e16, 1e100, 1e154, 1e200, 1e300)


@every_loss
def test_residuals_of_enormous_scores_are_numbers(loss):
    scores, y = draw(loss, 50)
    with np.errstate(all="ignore"):
        for size in SIZES:
            assert np.isfinite(loss.residual(size * scores, y)).all()
        assert loss.residual(np.inf * np.sign(scores), y).shape == scores.shape


@every_bounded_loss
def test_slopes_of_enormous_scores_do_not_fall_and_values_follow_them(loss):
    """A square that overflows makes a slope of 0, or a value that is no number."""
    scores, y = draw(loss, 50)
    before = np.full(50, -np.inf)
    for size in SIZES:
        far = size * scores
        with np.errstate(all="ignore"):
            residual, value = loss.residual(far, y), loss.value(far, y)
        slope = (residual * scores).reshape(50, -1).sum(axis=1)
        assert np.all(slope >= before - 1e-12 * loss.loss_lipschitz * norms(scores))
        assert np.all(value <= (1 + 1e-12) * largest_values(loss, far))
        before = slope


def largest_values(loss, scores):
    """Return what the slope lets the loss of each row be."""
    largest = np.abs(scores).max()
    return loss.value_at_zero() + loss.loss_lipschitz * largest * norms(scores / largest)


@pytest.mark.quick_cases(cover="values")
@extended
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 0.3, 10.0])
@every_bounded_loss
def test_values_are_off_by_a_few_roundings_of_what_they_may_be(loss, scale):
    scores, y = draw(loss)
    scores *= scale
    gap = np.abs(loss.value(scores, y) - loss.value(scores.astype(np.longdouble), y))
    assert np.all(gap <= 16.0 * np.finfo(np.float64).eps * largest_values(loss, scores))


BROKEN = [
    (test_residuals_are_derivatives_of_the_value, zoo.WrongLoss),
    (test_a_rows_part_depends_on_the_row_alone, zoo.CrowdedLoss),
    (test_shapes, zoo.SharingLoss),
    (test_residuals_move_no_faster_than_the_curvature_bound, zoo.CurvedLoss),
    (test_curvatures_are_derivatives_of_the_residuals, zoo.FlatLoss),
    (test_slopes_and_curvatures_are_within_their_bounds, zoo.SteepLoss),
    (test_slopes_and_curvatures_are_within_their_bounds, zoo.LooseLoss),
    (test_bounded_losses_are_convex, zoo.DentedLoss),
    (test_the_value_at_zero_bounds_every_row_and_values_are_not_negative, zoo.CodedLoss),
    (test_the_value_at_zero_bounds_every_row_and_values_are_not_negative, zoo.ShiftedLoss),
    (test_residuals_are_off_by_no_more_than_stated, zoo.RoughLoss),
    (test_the_rounding_error_of_residuals_is_stated_with_measure, zoo.WastefulLoss),
    (test_residuals_of_enormous_scores_are_numbers, zoo.NumberlessLoss),
    (test_slopes_of_enormous_scores_do_not_fall_and_values_follow_them, zoo.OverflowingLoss),
    (test_slopes_of_enormous_scores_do_not_fall_and_values_follow_them, zoo.InfiniteLoss),
    (test_values_are_off_by_a_few_roundings_of_what_they_may_be, zoo.CancellingLoss),
]


def run(test, loss):
    given = {"scale": 0.3} if "scale" in inspect.signature(test).parameters else {}
    if given and not EXTENDED:
        pytest.skip("no extended precision here")
    test(loss, **given)


@pytest.mark.parametrize("test", dict(BROKEN))
def test_a_loss_that_keeps_the_contract_passes(test):
    run(test, zoo.WholeLoss(9.0))


@pytest.mark.parametrize(("test", "kind"), BROKEN)
def test_a_check_finds_what_it_is_for(test, kind):
    with pytest.raises(AssertionError):
        run(test, kind(9.0))


# Weights are fitted by L-BFGS, to a certified norm and in bounded work.


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


# Losses of DPSGDClassifier and DPSGDRegressor.


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (SquaredHingeLoss(), np.array([0.0, 1.0] * 20)),
        (ModifiedHuberLoss(), np.array([0.0, 1.0] * 20)),
        (OneVersusRestLoss(ModifiedHuberLoss(), 3), np.arange(40) % 3),
        (HuberLoss(), np.linspace(-2, 2, 40)),
        (HuberLoss(0.7), np.linspace(-2, 2, 40)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_residuals_are_derivatives(loss, y):
    scores = np.random.default_rng(0).normal(size=(40, *loss.weights_shape)) * 2
    step, residual = 1e-6, loss.residual(scores, y)
    for place in np.ndindex(scores.shape):
        moved = scores.copy()
        moved[place] += step
        numeric = (loss.value(moved, y) - loss.value(scores, y)).sum() / step
        assert residual[place] == pytest.approx(numeric, abs=1e-4)
        steeper = abs(loss.residual(moved, y)[place] - residual[place])
        assert steeper <= loss.curvature_bound * step * (1 + 1e-6)
