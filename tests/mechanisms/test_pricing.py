"""Discrete noise is no easier to see through than the continuous law that prices it.

Exact sums on the lattice, at scales where the slack that docs/theory/mechanisms.md derives is
visible.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr


def discrete_overlap(log_weight, shifts, losses):
    """Integral of min(p, e^loss q) for a product of lattice pairs, 0 against each shift."""
    p, q = np.ones(1), np.ones(1)
    for shift in shifts:
        x = np.arange(-LIMIT, LIMIT + shift + 1)
        p1, q1 = np.exp(log_weight(x)), np.exp(log_weight(x - shift))
        keep = (p1 > 1e-25) | (q1 > 1e-25)
        p = np.outer(p, p1[keep] / p1.sum()).ravel()
        q = np.outer(q, q1[keep] / q1.sum()).ravel()
    return np.array([np.minimum(p, math.exp(loss) * q).sum() for loss in losses])


LIMIT = 700


def gaussian_overlap(mu, losses):
    losses = np.asarray(losses)
    return 1 - (ndtr(mu / 2 - losses / mu) - np.exp(losses) * ndtr(-mu / 2 - losses / mu))


def laplace_overlap(epsilon, losses):
    return np.exp(-(epsilon - np.minimum(losses, epsilon)) / 2)


@pytest.mark.parametrize("s", [4.5, 8.0, 20.0])
@pytest.mark.parametrize("shifts", [(1,), (7,), (3, 4)])
def test_discrete_gaussian_is_priced_with_16_less_in_the_variance(s, shifts):
    mu = math.sqrt(sum(k * k for k in shifts) / (s * s - 16.0))
    losses = np.linspace(0, 4 * mu * mu + 3 * mu, 60)
    found = discrete_overlap(lambda x: -x * x / (2 * s * s), shifts, losses)
    assert np.all(found >= gaussian_overlap(mu, losses) - 1e-13)


@pytest.mark.parametrize("s", [4.5, 8.0])
def test_without_the_slack_a_discrete_gaussian_is_underpriced(s):
    mu = 7 / s
    losses = np.linspace(0, 4 * mu * mu, 60)
    found = discrete_overlap(lambda x: -x * x / (2 * s * s), (7,), losses)
    assert np.any(found < gaussian_overlap(mu, losses) - 1e-6)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("s", [2.0, 8.0, 30.0])
@pytest.mark.parametrize("shifts", [(1,), (2,), (9,), (1, 2), (4, 3)])
def test_discrete_laplace_is_priced_with_a_quarter_step_more(s, shifts):
    epsilon = sum(shifts) / s + len(shifts) / (4 * s * s)
    losses = np.linspace(0, epsilon, 80)
    found = discrete_overlap(lambda x: -np.abs(x) / s, shifts, losses)
    assert np.all(found >= laplace_overlap(epsilon, losses) - 1e-13)


@pytest.mark.parametrize("s", [2.0, 8.0])
def test_without_the_slack_a_discrete_laplace_is_underpriced(s):
    found = discrete_overlap(lambda x: -np.abs(x) / s, (3,), [0.0])
    assert found[0] < laplace_overlap(3 / s, 0.0) - 1e-6


@pytest.mark.parametrize("split", [(0.5, 0.5), (0.9, 0.1)])
def test_a_vector_of_laplace_noise_is_priced_by_one_number(split):
    """The L1 sensitivity split over two coordinates: fine lattices stand for the real line."""
    s = 12.0
    shifts = [round(24 * part) for part in split]
    epsilon = sum(shifts) / s + len(shifts) / (4 * s * s)
    losses = np.linspace(0, epsilon, 15)
    found = discrete_overlap(lambda x: -np.abs(x) / s, shifts, losses)
    assert np.all(found >= laplace_overlap(epsilon, losses) - 1e-13)
