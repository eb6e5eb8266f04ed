"""The released optimum never moves by more than the sensitivity that the noise is made for."""

import numpy as np
import pytest

from skdp._losses import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp.linear_model._newton import _accelerated_descent, minimise
from skdp.linear_model._objective import LinearObjective
from skdp.linear_model._output_perturbation import plan_output_perturbation
from skdp.linear_model._rows import BoundedRows

LOSSES = {2: BinaryLogisticLoss(), 3: MultinomialLogisticLoss(3), 5: MultinomialLogisticLoss(5)}


def optimum(loss, X, y, C, data_norm, constant):
    rows = BoundedRows(X, data_norm, constant)
    return minimise(LinearObjective(loss, rows, y, C), 1e-9 * C)


def random_neighbours(rng, n_classes, relation):
    n, d = rng.integers(3, 30), rng.integers(1, 5)
    X, y = rng.normal(scale=3.0, size=(n, d)), rng.integers(n_classes, size=n)
    one, other = (np.delete(X, 0, axis=0), np.delete(y, 0)), (X, y)
    if relation == "replace_one":
        other = np.delete(X, 1, axis=0), np.delete(y, 1)
    return one, other, 10.0 ** rng.uniform(-3, 1)


def worst_neighbours(n_classes, relation):
    """Return neighbours whose optima are nearly as far apart as the bound allows.

    Many short rows push the weights far along the first axis and curve the objective little;
    the rows that differ are long, hardly along that axis, and on the wrong side of it.
    """
    short = np.zeros((8000, 2))
    short[:, 0] = np.tile([0.01, -0.01], 4000)
    labels = np.tile([1, 0], 4000)
    angle = np.deg2rad(80.0)
    left, right = 2.0 * np.array([[np.cos(angle), s * np.sin(angle)] for s in (1, -1)])
    one = np.vstack([short, left]), np.append(labels, 0)
    if relation == "add_remove":
        return one, (short, labels), 1.0
    return one, (np.vstack([short, right]), np.append(labels, 0)), 1.0


def moved_over_claimed(loss, pair, C, relation, constant):
    shape = max(len(X) for X, _ in pair), pair[0][0].shape[1] + (constant > 0)
    norm = np.hypot(2.0, constant)
    plan = plan_output_perturbation(loss, *shape, norm, C, 1.0, 1e-6, relation)
    one, other = (optimum(loss, X, y, C, 2.0, constant) for X, y in pair)
    return np.linalg.norm(one - other) / plan.mechanism.sensitivity


@pytest.mark.parametrize("constant", [0.0, 0.6])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, n_classes, constant):
    rng, loss = np.random.default_rng(0), LOSSES[n_classes]
    for _ in range(40):
        *pair, C = random_neighbours(rng, n_classes, relation)
        assert moved_over_claimed(loss, pair, C, relation, constant) <= 1.0
    *pair, C = worst_neighbours(n_classes, relation)
    ratio = moved_over_claimed(loss, pair, C, relation, constant)
    # Nine tenths of the claim are reached: a smaller claim would be found out.
    assert 0.9 <= ratio <= 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_solver_reaches_the_planned_tolerance_on_any_table(n_classes):
    rng, loss = np.random.default_rng(0), LOSSES[n_classes]
    tables = [
        rng.normal(size=(300, 4)),
        np.zeros((300, 4)),
        np.full((300, 4), 1e-160),
        np.full((300, 4), 1e300),
        np.outer(np.ones(300), [1.0, 1.0, 1.0, 1.0]),
        rng.standard_cauchy(size=(300, 4)) * 10.0 ** rng.integers(-100, 100, size=(300, 4)),
    ]
    for X in tables:
        for y in (rng.integers(n_classes, size=300), np.zeros(300, dtype=int)):
            for C in (1e-6, 1.0, 1e4, 1e8):
                plan = plan_output_perturbation(loss, 300, 5, 1.3, C, 1e10, 1e-6, "add_remove")
                objective = LinearObjective(loss, BoundedRows(X, 1.0, 0.3), y, C)
                weights = minimise(objective, plan.tolerance)
                gradient = objective.value_and_gradient(weights)[1]
                assert np.linalg.norm(gradient) <= plan.tolerance


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fallback_reaches_the_tolerance_too(n_classes):
    rng, loss = np.random.default_rng(0), LOSSES[n_classes]
    X, y = rng.normal(size=(500, 4)), rng.integers(n_classes, size=500)
    objective = LinearObjective(loss, BoundedRows(X, 1.0, 0.3), y, 10.0)
    expected = minimise(objective, 1e-8)
    found = _accelerated_descent(objective, np.zeros(objective.shape), 1e-8)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_conjugate_gradients_agree_with_cholesky(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 20)), rng.integers(2, size=500)
    objective = LinearObjective(LOSSES[2], BoundedRows(X, 1.0, 0.3), y, 10.0)
    expected = minimise(objective, 1e-8)
    monkeypatch.setattr("skdp.linear_model._newton.CHOLESKY_LIMIT", 0)
    np.testing.assert_allclose(minimise(objective, 1e-8), expected, atol=1e-7)


def test_the_tolerance_is_part_of_the_sensitivity():
    C, norm = 0.5, 1.3
    for relation, moved in (("add_remove", 1.0), ("replace_one", 2.0)):
        plan = plan_output_perturbation(LOSSES[2], 1000, 5, norm, C, 1.0, 1e-6, relation)
        assert plan.mechanism.sensitivity > moved * C * norm + 2.0 * plan.tolerance
        assert plan.mechanism.sensitivity < moved * C * norm * 1.001


def test_rounding_of_gradients_is_within_its_bound():
    """Gradients in double precision against exact sums, near the minimiser."""
    from fractions import Fraction

    from skdp.linear_model._output_perturbation import _gradient_rounding

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.integers(2, size=3000)
    rows = BoundedRows(X, 1.0, 0.0)
    objective = LinearObjective(LOSSES[2], rows, y, 1.0)
    weights = minimise(objective, 1e-6)
    scaled = [
        [Fraction(v) * Fraction(f) for v in row] for row, f in zip(X, rows._factor, strict=True)
    ]
    import mpmath

    mpmath.mp.prec = 120
    exact = [mpmath.mpf(v) for v in weights]
    for row, label in zip(scaled, y, strict=True):
        row = [mpmath.mpf(v.numerator) / v.denominator for v in row]
        score = sum(w * v for w, v in zip(map(mpmath.mpf, weights), row, strict=True))
        residual = 1 / (1 + mpmath.exp(-score)) - int(label)
        exact = [e + residual * v for e, v in zip(exact, row, strict=True)]
    computed = objective.value_and_gradient(weights)[1]
    error = max(abs(mpmath.mpf(c) - e) for c, e in zip(computed, exact, strict=True))
    assert error < _gradient_rounding(LOSSES[2], 3000, 3, 1.0, 1.0)
