"""The vertices of which the price of objective perturbation is the sum, by brute force.

``docs/theory/objective_perturbation.md``, section 4. Each vertex is a pair (t1, t2): how far the
residuals of the row that is taken away, whose Jacobian counts, and of the row in its place are from
0.
"""

import itertools

import numpy as np
import pytest

from skdp.accounting import gdp_to_delta
from skdp.linear_model import _objective_perturbation
from skdp.linear_model._objective_perturbation import (
    OUTPUT_FRACTION,
    log_jacobian,
    plan_objective_perturbation,
)
from tests._guarantees import meet, of_rows
from tests._private import BinaryLogisticLoss, MultinomialLogisticLoss

LOSSES = {"binary": BinaryLogisticLoss(), "softmax": MultinomialLogisticLoss(3)}
VERTICES = {"add_remove": [(0, 0), (1, 0)], "replace_one": [(0, 0), (0, 1), (1, 0), (1, 1)]}


def noise_part(b, shift):
    """Return the log-ratio of unit Gaussian densities, shape (n_draws,)."""
    return 0.5 * (np.sum((b + shift) ** 2, axis=1) - np.sum(b**2, axis=1))


def draws(rng):
    """Return linear terms, two rows' vertices of norm at most 1, and the tangent a."""
    v = rng.normal(size=(2, 2))
    v *= (rng.uniform(0.2, 1.0, size=2) / np.linalg.norm(v, axis=1))[:, None]
    return 1.5 * rng.normal(size=(2000, 2)), *v, rng.uniform(0.0, 0.5)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("relation", VERTICES)
def test_the_loss_is_at_most_that_of_a_vertex_and_none_can_be_left_out(relation):
    rng, needed = np.random.default_rng(0), set()
    t = np.linspace(0.0, 1.0, 21)
    steps = [(t1, t2) for t1 in t for t2 in (t if relation == "replace_one" else [0.0])]
    for _ in range(15):
        b, v1, v2, a = draws(rng)
        bounds = {
            (t1, t2): noise_part(b, t1 * v1 - t2 * v2) + a * (t1 == 0)
            for t1, t2 in VERTICES[relation]
        }
        losses = np.max(
            [noise_part(b, t1 * v1 - t2 * v2) + a * t1 * (1 - t1) for t1, t2 in steps], axis=0
        )
        assert np.all(losses <= np.max(list(bounds.values()), axis=0) + 1e-12)
        for vertex in bounds:
            others = np.max([bounds[other] for other in bounds if other != vertex], axis=0)
            if np.any(losses > others + 1e-3):
                needed.add(vertex)
    assert needed == set(VERTICES[relation])


def documented_delta(loss, relation, free, epsilon, a, multiplier):
    """Return the sum over the vertices, the output noise in each of them."""
    longest = 2 if relation == "replace_one" else 1
    total = 0.0
    for t1, t2 in VERTICES[relation]:
        reached = t1 == 1 or not free
        mu = np.hypot(t1 + t2, OUTPUT_FRACTION * longest) / multiplier
        count = loss.n_vertices ** (t1 + t2)
        total += count * gdp_to_delta(mu, epsilon if reached else epsilon - a)
    return total


def check_price(loss, relation, C, epsilon, delta):
    problem = of_rows(loss, 1000, 3, 1.0)
    plan = plan_objective_perturbation(problem, C, meet(epsilon, delta, relation), 1.0)
    multiplier = plan.noise.scale / (C * loss.loss_lipschitz)
    paid = epsilon - log_jacobian(problem, C)
    a = 4.0 * C * loss.trace_bound
    choices = [(False, paid)]
    if loss.curvature_vanishes_at_vertices and a <= 0.9 * epsilon:
        choices.append((True, epsilon))
    found = [documented_delta(loss, relation, *choice, a, multiplier) for choice in choices]
    assert min(found) == pytest.approx(delta, rel=1e-5)
    assert min(found) <= delta


# C, epsilon, delta: with the Jacobian paid for and free, and so that the output noise is seen.
TERMS = [(0.1, 0.5, 0.1), (0.3, 0.5, 0.2), (0.009, 0.01, 0.2)]
PRICES = list(itertools.product(LOSSES, VERTICES, TERMS))


@pytest.mark.parametrize(("name", "relation", "terms"), PRICES)
def test_the_noise_is_priced_by_every_vertex(name, relation, terms):
    check_price(LOSSES[name], relation, *terms)


def forgotten(found, place):
    return found[:place] + found[place + 1 :]


def other_side(found, place):
    norm, count, adds = found[place]
    return [*found[:place], (norm, count, not adds), *found[place + 1 :]]


# The last vertex is the longest, to which the output noise is scaled: without it that changes
# too. The tangent is nowhere taken off (0, 0) of replace-one: where it would be seen, it costs
# more than the Jacobian.
MUTANTS = [
    ("add_remove", forgotten, 0),
    ("add_remove", other_side, 0),
    ("add_remove", other_side, 1),
    ("replace_one", forgotten, 0),
    *itertools.product(["replace_one"], [forgotten, other_side], [1, 2]),
    ("replace_one", other_side, 3),
]


@pytest.mark.parametrize(("relation", "mutation", "place"), MUTANTS)
def test_a_vertex_forgotten_or_priced_as_another_is_caught(relation, mutation, place, monkeypatch):
    moves = _objective_perturbation._vertices
    monkeypatch.setattr(
        _objective_perturbation,
        "_vertices",
        lambda loss, relation: mutation(moves(loss, relation), place),
    )
    with pytest.raises(AssertionError):
        for terms in TERMS:
            check_price(LOSSES["binary"], relation, *terms)
