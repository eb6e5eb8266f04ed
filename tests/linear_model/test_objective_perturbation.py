"""The density of a perturbed minimizer never tells neighbors apart by more than is claimed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax

from skdp import DPLogisticRegression
from skdp.accounting import gdp_to_delta
from skdp.linear_model import _objective_perturbation
from skdp.linear_model._objective_perturbation import (
    LinearNoise,
    automatic_C,
    expected_excess,
    log_jacobian,
    plan_objective_perturbation,
)
from skdp.noise import RandomSource
from tests._guarantees import meet, of_rows
from tests._private import (
    BinaryLogisticLoss,
    BoundedRows,
    ClassWeightedLoss,
    LinearObjective,
    MultinomialLogisticLoss,
    loss_gradient,
    minimize,
    read_persons,
)

BINARY = BinaryLogisticLoss()
LOSSES = {
    "binary": BINARY,
    "weighted": ClassWeightedLoss(BINARY, (3.0, 0.5)),
    "softmax": MultinomialLogisticLoss(3),
    "weighted softmax": ClassWeightedLoss(MultinomialLogisticLoss(3), (1.0, 0.2, 2.0)),
}


def n_classes(loss):
    return max(2, *loss.weights_shape) if loss.weights_shape else 2


def hessian(loss, X, y, weights, C, quadratic):
    """Return the Hessian of an objective over all weights, column by column."""
    block = BoundedRows(X, 2.0, 0.0)[slice(0, len(X))]
    curvature = loss.curvature(block.scores(weights), y)

    def product(unit):
        images = loss.curvature_product(curvature, block.scores(unit))
        return C * block.weighted_sum(images) + quadratic * unit

    units = np.eye(weights.size).reshape(-1, *weights.shape)
    return np.array([product(unit).ravel() for unit in units])


def jacobian_over_claim(loss, rng, C, at_zero):
    """Return ln det H(with a row) - ln det H(without) over the bound."""
    d = 2
    X, y = rng.normal(size=(4, d)), rng.integers(n_classes(loss), size=4)
    X[0] *= 2.0 / np.linalg.norm(X[0])
    X[1:] *= 0.0 if at_zero else 1.0
    if isinstance(loss, ClassWeightedLoss):
        y[0] = np.argmax(loss.weights)
    weights = (0.0 if at_zero else 1.0) * rng.normal(size=(*loss.weights_shape, d))
    quadratic = 1.0 if at_zero else rng.uniform(1.0, 3.0)
    with_row, without = (
        np.linalg.slogdet(hessian(loss, X[k:], y[k:], weights, C, quadratic))[1] for k in (0, 1)
    )
    return (with_row - without) / log_jacobian(of_rows(loss, 4, d, 2.0), C / quadratic)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_jacobian_is_bounded_and_the_bound_is_reached(loss):
    rng = np.random.default_rng(0)
    for _ in range(30):
        C = 10.0 ** rng.uniform(-2, 2)
        assert jacobian_over_claim(loss, rng, C, at_zero=False) <= 1.0
        assert jacobian_over_claim(loss, rng, C, at_zero=True) == pytest.approx(1.0)


def test_a_persons_jacobian_has_every_rank_and_its_bound_is_reached():
    """At weights 0, by rows at right angles that share evenly."""
    rows, labels = np.vstack([2.0 * np.eye(3), np.zeros((1, 3))]), np.zeros(4)
    persons = read_persons([0, 0, 0, 1], 4)
    bounded, C = BoundedRows(rows, 2.0, 0.0, persons=persons), 5.0
    objective = LinearObjective(BINARY, bounded, labels, C, 1.0)
    solve = objective.hessian_solver(np.zeros(3))
    found = -np.linalg.slogdet(np.array([solve(unit) for unit in np.eye(3)]))[1]
    of_persons = replace(of_rows(BINARY, 2, 3, 2.0), guarantee=meet(1.0, unit="person"))
    claim = log_jacobian(of_persons, C)
    assert found == pytest.approx(claim) and found > 1.5 * log_jacobian(of_rows(BINARY, 2, 3, 2), C)


def vertices(loss, x, code):
    """Return the vectors in whose hull with 0 the gradient of a row stays."""
    if not loss.weights_shape:
        weight = loss.weights[code] if isinstance(loss, ClassWeightedLoss) else 1.0
        return [weight * (1.0 if code == 0 else -1.0) * x]
    weight = loss.weights[code] if isinstance(loss, ClassWeightedLoss) else 1.0
    k = loss.weights_shape[0]
    return [weight * np.outer(np.eye(k)[j] - np.eye(k)[code], x) for j in range(k) if j != code]


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradients_stay_in_the_hull(loss):
    """A linear function over the hull is largest at a vertex or at 0."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, code = rng.normal(size=(1, 2)), rng.integers(n_classes(loss), size=1)
        x *= 2.0 / np.linalg.norm(x)
        weights = 10.0 ** rng.uniform(-1, 2) * rng.normal(size=(*loss.weights_shape, 2))
        gradient = loss_gradient(loss, BoundedRows(x, 2.0, 0.0), code, weights)
        hull = vertices(loss, x[0], code[0])
        assert len(hull) == loss.n_vertices
        assert max(np.linalg.norm(v) for v in hull) <= 2.0 * loss.loss_lipschitz * (1 + 1e-12)
        direction = rng.normal(size=gradient.shape)
        most = max(0.0, max(np.vdot(direction, v) for v in hull))
        assert np.vdot(direction, gradient) <= most + 1e-9


def log_density(table, plan, points):
    """Return the log-density of the perturbed minimizer at points of shape (..., 2).

    It is that of the linear term that makes a point the minimizer, times how fast that term
    moves with the point. A table is a list of (row, label, count).
    """
    gradient = plan.quadratic * points
    a = np.full(points.shape[:-1], plan.quadratic)
    b, c = np.zeros_like(a), a.copy()
    for x, y, count in table:
        p = expit(points @ x)
        gradient = gradient + (count * plan.C * (p - y))[..., None] * x
        curvature = count * plan.C * p * (1 - p)
        a, b, c = (v + curvature * x[k] * x[m] for v, k, m in ((a, 0, 0), (b, 0, 1), (c, 1, 1)))
    length = np.linalg.norm(gradient, axis=-1) / plan.noise.scale
    law = -0.5 * length**2 if plan.noise.law == "Gaussian" else -length
    return law - np.log(2 * np.pi * plan.noise.scale**2) + np.log(a * c - b * b)


# Of a person: the angle of each row to the first axis, in degrees.
ANGLES = {"row": [85.0], "person": [85.0, 20.0, -85.0, 85.0]}


def neighbors(relation, sharp, C, unit="row"):
    """Return two tables, and a point near which both minimizers are.

    In the sharp ones many short rows push the minimizer far along the first axis and hardly
    curve the objective; the long rows that differ are on the wrong side of it.
    """
    angles = np.deg2rad(ANGLES[unit])
    right, left = (
        [(np.array([np.cos(a), s * np.sin(a)]), 1 / len(angles)) for a in angles] for s in (1, -1)
    )
    short = [(np.array([0.01, 0.0]), 1, 2 * 60.0 / (0.01 * C))] if sharp else []
    one, center = [*short, *((row, 0, share) for row, share in right)], np.zeros(2)
    if sharp:
        w = 0.0
        for _ in range(200):
            w = 0.5 * w + 0.5 * 120.0 * expit(-0.01 * w)
        center = np.array([w, 0.0])
    other = [(row, 0, share) for row, share in left] if relation == "replace_one" else []
    return one, [*short, *other], center


def densities(relation, epsilon, delta, C, sharp, width, unit="row"):
    problem, quadratic = of_rows(BINARY, 10**6, 2, 1.0), None
    problem = replace(problem, guarantee=meet(1.0, unit=unit))
    guarantee = meet(epsilon, delta, relation, unit)
    if C == "auto":
        C, quadratic = automatic_C(problem, 10.0, guarantee), 1.0
    plan = plan_objective_perturbation(problem, C, guarantee, quadratic)
    one, other, center = neighbors(relation, sharp, C, unit)
    half = (width * plan.noise.scale + 2 * C) / plan.quadratic
    axis = np.linspace(-half, half, 401)
    grid = center / plan.quadratic + np.stack(np.meshgrid(axis, axis), axis=-1)
    pair = [log_density(table, plan, grid) for table in (one, other)]
    return pair, (axis[1] - axis[0]) ** 2


def exact_deltas(relation, epsilon, delta, C, unit="row"):
    """Return exact hockey-stick divergences of pairs of neighbors, in both directions."""
    found = []
    for sharp in (False, True):
        (one, other), cell = densities(relation, epsilon, delta, C, sharp, 9.0, unit)
        assert np.exp(one).sum() * cell == pytest.approx(1.0, abs=1e-6)
        for a, b in ((one, other), (other, one)):
            gap = np.exp(a) * -np.expm1(np.minimum(epsilon + b - a, 0.0))
            found.append(gap.sum() * cell)
    return np.array(found)


def exact_losses(relation, epsilon, C, unit="row"):
    """Return the largest privacy losses of pairs of neighbors."""
    pairs = [densities(relation, epsilon, 0.0, C, sharp, 20.0, unit)[0] for sharp in (False, True)]
    return np.array([np.abs(one - other).max() for one, other in pairs])


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("C", [0.1, 0.44, 0.88, 3.5, "auto"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_exact_divergences_in_two_dimensions(relation, epsilon, C):
    deltas = exact_deltas(relation, epsilon, 1e-3, C)
    losses = exact_losses(relation, epsilon, C)
    assert deltas.max() <= 1e-3
    assert losses.max() <= epsilon
    if C == 0.1:
        # Where the Jacobian is small the claim is nearly reached.
        assert deltas.max() >= 0.25e-3
        assert losses.max() >= 0.85 * epsilon


@pytest.mark.parametrize(
    ("relation", "C"),
    [("add_remove", 3.5)]
    + [
        pytest.param(relation, C, marks=pytest.mark.slow)
        for relation in ("add_remove", "replace_one")
        for C in (0.1, 3.5, "auto")
    ],
)
def test_exact_divergences_of_persons(relation, C, monkeypatch):
    """Rows of several directions; and all alike, which move it as a row does."""
    for angles in (ANGLES["person"], [85.0] * 3):
        monkeypatch.setitem(ANGLES, "person", angles)
        deltas = exact_deltas(relation, 1.0, 1e-3, C, "person")
        losses = exact_losses(relation, 1.0, C, "person")
        assert deltas.max() <= 1e-3 and losses.max() <= 1.0
    if C == 0.1:
        assert deltas.max() >= 0.2e-3 and losses.max() >= 0.85


def softmax_losses(loss, plan, n_draws):
    """Return privacy losses of drawn minimizers for a row that is removed."""
    rng = np.random.default_rng(0)
    X, y = np.array([[1.0], [0.2], [0.2], [-0.3]]), np.array([0, 1, 2, 1])
    rows, fewer = BoundedRows(X, 1.0, 0.0), BoundedRows(X[1:], 1.0, 0.0)
    losses = np.empty(n_draws)
    for i in range(n_draws):
        b = plan.noise.scale * rng.normal(size=(3, 1))
        weights = minimize(LinearObjective(loss, rows, y, plan.C, plan.quadratic, b), 1e-9)
        other = LinearObjective(loss, fewer, y[1:], plan.C, plan.quadratic)
        other = other.at(weights).gradient
        losses[i] = (np.sum(other**2) - np.sum(b**2)) / (2 * plan.noise.scale**2)
        for sign, k in ((1, 0), (-1, 1)):
            table = X[k:], y[k:], weights, plan.C, plan.quadratic
            losses[i] += sign * np.linalg.slogdet(hessian(loss, *table))[1]
    return losses


@pytest.mark.thorough
def test_divergence_of_softmax_by_simulation():
    """The mean is within five standard errors of its expectation but for a chance below 1e-6."""
    loss, epsilon, delta = LOSSES["softmax"], 0.5, 0.05
    problem = of_rows(loss, 4, 1, 1.0)
    plan = plan_objective_perturbation(problem, 0.1, meet(epsilon, delta))
    losses = softmax_losses(loss, plan, 1000)
    gaps = -np.expm1(np.minimum(epsilon - losses, 0.0))
    assert gaps.mean() - 5 * gaps.std() / np.sqrt(len(gaps)) <= delta
    left = epsilon - log_jacobian(problem, plan.C / plan.quadratic)
    mu = plan.C * loss.loss_lipschitz / plan.noise.scale
    assert 2 * gdp_to_delta(mu, left) <= delta
    assert 2 * gdp_to_delta(1.01 * mu, left) > delta


def spread(delta, classes=(0, 1)):
    """Return the weights of a fit to null rows, over the scale of the linear term."""
    X, y = np.zeros((50, 400)), np.arange(50) % len(classes)
    model = DPLogisticRegression(
        delta=delta, mechanism="objective", C=1e-3, fit_intercept=False, classes=classes
    ).fit(X, y)
    scale = model.privacy_.noise_scale * model.C_
    return model.coef_ / (scale if delta else scale * np.sqrt(model.coef_.size + 1))


# The root mean square of 400 values is within a fifth of its expectation but for a chance below
# 1e-7; the length of the gamma law is spread by another twentieth.
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_is_what_was_priced(delta):
    assert 0.75 < np.sqrt(np.mean(spread(delta) ** 2)) < 1.3


def check_classes_are_independent():
    noise = spread(1e-6, classes=(0, 1, 2))
    assert np.abs(np.corrcoef(noise)[~np.eye(3, dtype=bool)]).max() < 0.3


def test_classes_get_noise_of_their_own():
    """A correlation of 400 pairs is below 0.3 but for a chance of 1e-8."""
    check_classes_are_independent()


class TestMutations:
    """Each of the classic mistakes is found by a check above."""

    def test_root_for_square_in_the_curvature(self, monkeypatch):
        monkeypatch.setattr(BinaryLogisticLoss, "trace_bound", 0.25 / 2.0)
        with pytest.raises(AssertionError):
            test_the_jacobian_is_bounded_and_the_bound_is_reached(BINARY)

    def test_jacobian_of_rank_one_for_softmax(self, monkeypatch):
        monkeypatch.setattr(MultinomialLogisticLoss, "curvature_rank", 1)
        monkeypatch.setattr(MultinomialLogisticLoss, "trace_bound", 0.25)
        with pytest.raises(AssertionError):
            test_the_jacobian_is_bounded_and_the_bound_is_reached(LOSSES["softmax"])

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    def test_jacobian_forgotten(self, delta, monkeypatch):
        monkeypatch.setattr(_objective_perturbation, "log_jacobian", lambda *args: 0.0)
        monkeypatch.setattr(_objective_perturbation, "_quadratic", lambda *args: 1.0)
        with pytest.raises(AssertionError):
            if delta:
                assert exact_deltas("add_remove", 0.5, delta, 4.0).max() <= delta
            else:
                assert exact_losses("add_remove", 0.5, 4.0).max() <= 0.5

    def test_jacobian_taken_to_be_free_for_two_rows_as_for_one(self, monkeypatch):
        monkeypatch.setattr(
            _objective_perturbation,
            "_free_jacobian_limit",
            lambda guarantee: 0.9 * guarantee.epsilon,
        )
        assert exact_losses("replace_one", 0.5, 0.44).max() > 0.5

    @pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
    def test_noise_scaled_down(self, relation, monkeypatch):
        multiplier = _objective_perturbation._noise_multiplier
        monkeypatch.setattr(
            _objective_perturbation,
            "_noise_multiplier",
            lambda *args: (0.5 * multiplier(*args)[0], multiplier(*args)[1]),
        )
        with pytest.raises(AssertionError):
            assert exact_deltas(relation, 1.0, 1e-3, 0.1).max() <= 1e-3
        with pytest.raises(AssertionError):
            assert exact_losses(relation, 1.0, 0.1).max() <= 1.0

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_halved_draws(self, delta, monkeypatch):
        draw = LinearNoise.draw
        monkeypatch.setattr(LinearNoise, "draw", lambda self, stream: 0.5 * draw(self, stream))
        with pytest.raises(AssertionError):
            test_the_noise_is_what_was_priced(delta)

    def test_replacement_priced_as_removal(self, monkeypatch):
        moves = _objective_perturbation._vertices
        monkeypatch.setattr(
            _objective_perturbation, "_vertices", lambda loss, relation: moves(loss, "add_remove")
        )
        with pytest.raises(AssertionError):
            assert exact_deltas("replace_one", 1.0, 1e-3, 0.1).max() <= 1e-3

    def test_noise_shared_between_classes(self, monkeypatch):
        def shared(self, stream):
            return np.tile(LinearNoise("Gaussian", self.scale, self.size // 3).draw(stream), 3)

        draw = LinearNoise.draw

        def patched(self, stream):
            return draw(self, stream) if self.size % 3 or self.size < 1000 else shared(self, stream)

        monkeypatch.setattr(LinearNoise, "draw", patched)
        with pytest.raises(AssertionError):
            check_classes_are_independent()


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("loss", [BINARY, LOSSES["softmax"]], ids=["binary", "softmax"])
def test_the_solver_reaches_the_planned_tolerance_on_any_table(loss, delta):
    rng, k = np.random.default_rng(0), n_classes(loss)
    tables = [
        rng.normal(size=(300, 4)),
        np.zeros((300, 4)),
        np.full((300, 4), 1e300),
        rng.standard_cauchy(size=(300, 4)) * 10.0 ** rng.integers(-100, 100, size=(300, 4)),
    ]
    for X in tables:
        y = rng.integers(k, size=300)
        for C, epsilon in ((1e-6, 1.0), (1.0, 0.01), (1e4, 1.0), (1e8, 1e10)):
            problem = of_rows(loss, 300, 5, 1.3)
            plan = plan_objective_perturbation(problem, C, meet(epsilon, delta))
            # A linear term a thousand times as long as planned does no harm either.
            for stretch in (1.0, 1000.0):
                b = stretch * plan.noise.draw(RandomSource(0).stream())
                b = b.reshape((*loss.weights_shape, 5))
                rows = BoundedRows(X, 1.0, 0.3)
                objective, n_evaluations = LinearObjective(loss, rows, y, C, plan.quadratic, b), 0

                def counted(weights, at=objective.at):
                    nonlocal n_evaluations
                    n_evaluations += 1
                    return at(weights)

                objective.at = counted
                weights = minimize(objective, plan.tolerance, plan.radius)
                # The last resort, which is certain to end, would take up to 1.5 million.
                assert n_evaluations < 2000
                gradient = np.linalg.norm(objective.at(weights).gradient)
                length = max(1.0, np.linalg.norm(weights) / plan.radius)
                assert gradient <= plan.tolerance * length


def test_the_output_noise_is_small_and_hides_the_solver():
    for delta in (0.0, 1e-6):
        for relation in ("add_remove", "replace_one"):
            problem = of_rows(BINARY, 10_000, 20, 1.0)
            plan = plan_objective_perturbation(problem, 1.0, meet(1.0, delta, relation))
            assert plan.output.sensitivity >= 4.0 * plan.tolerance / plan.quadratic
            stiffest = plan.quadratic + 10_000 * 0.25
            assert plan.output.scale < 0.5 * plan.noise.scale / stiffest


def test_probabilities_of_softmax_rows_are_those_of_the_loss():
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.arange(300) % 3
    model = DPLogisticRegression(10.0, mechanism="objective").fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1))


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", ["binary", "softmax"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_given_C_with_its_quadratic_term_is_expected_to_beat_the_automatic_one(
    name, relation, delta
):
    loss = BINARY if name == "binary" else MultinomialLogisticLoss(3)
    problem = of_rows(loss, 10_000, 10, np.hypot(1.0, 0.3))
    for epsilon in (1e-3, 0.1, 1.0, 8.0):
        guarantee = meet(epsilon, delta, relation)
        C = automatic_C(problem, 10.0, guarantee)
        plan = plan_objective_perturbation(problem, C, guarantee, quadratic=1.0)
        assert plan.quadratic == 1.0
        found = expected_excess(problem, C, 10.0, guarantee, quadratic=1.0)
        for given in np.geomspace(C / 30, 30 * C, 41):
            assert found <= 1.001 * expected_excess(problem, given, 10.0, guarantee)


def test_the_same_public_problem_is_planned_once():
    """A search or an audit plans for the same public numbers in every fit."""
    X, y = np.eye(40), np.arange(40) % 2
    model = DPLogisticRegression(0.987)
    automatic_C.cache_clear()
    for _ in range(3):
        model.fit(X, y)
    found = automatic_C.cache_info()
    assert (found.misses, found.hits) == (1, 2)
    model.set_params(epsilon=0.986).fit(X, y)
    assert automatic_C.cache_info().misses == 2
