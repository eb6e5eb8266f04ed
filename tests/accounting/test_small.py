"""Few releases, tiny delta, tiny epsilon: where round-off and fixed tolerances would show."""

import math

import numpy as np
import pytest

from skdp.accounting import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
    gdp_to_delta,
    get_delta,
    get_epsilon,
)
from skdp.accounting._advanced import optimal_epsilon
from skdp.accounting._events import leaves
from skdp.accounting._laws import privacy_of
from skdp.accounting._pld import _coarse_parts, _compose_directly, pld_epsilon

RELATIONS = ("add_remove", "replace_one")
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def delta_of_two(sigma, rate, eps):
    """delta of two sampled Gaussian releases (adding a row): the curve of one, at what the
    loss of the other leaves of eps, integrated over the other. Every term is positive."""
    width = min(sigma, 1.0) / 4.0
    bend = sigma**2 * math.log(math.expm1(eps) / rate + 1.0) + 0.5  # where the loss is eps
    edges = np.arange(-12.0 * sigma, 12.0 * sigma + 1.0, width)
    edges = np.sort(np.append(edges, bend))[:, None]
    half = 0.5 * np.diff(edges, axis=0)
    x = (edges[:-1] + half * (1.0 + NODES)).ravel()
    weights = (half * WEIGHTS).ravel() / (sigma * math.sqrt(2.0 * math.pi))
    ratio = rate * np.expm1((x - 0.5) / sigma**2)
    density = np.exp(-0.5 * (x / sigma) ** 2) * (1.0 + ratio)

    def curve(e):
        inner = math.expm1(e) + rate
        if inner <= 0.0:
            return -math.expm1(e)
        return rate * gdp_to_delta(1.0 / sigma, math.log(inner / rate))

    return math.fsum(weights * density * [curve(eps - loss) for loss in np.log1p(ratio)])


@pytest.mark.parametrize(
    "sigma, rate, d",
    [
        (1.77, 1.2e-5, 2e-20),
        (0.6, 1e-6, 1e-14),
        (6.3, 4.7e-6, 1.5e-11),
        (1.0, 0.01, 1e-20),
        (8.0, 1e-3, 1e-9),
        (1.01, 3e-5, 2e-6),
        (1.0, 1e-4, 1e-6),
    ],
)
def test_two_sampled_releases(sigma, rate, d):
    found = get_epsilon(PoissonSampled(rate, Gaussian(sigma)) * 2, d, method="pld")
    assert delta_of_two(sigma, rate, found) <= d * (1 + 1e-9)
    assert delta_of_two(sigma, rate, found * (1 - 3e-4)) > d


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [7])
def test_no_method_gives_up_down_to_1e_20(relation, count):
    for rate, sigma, d in ((1e-6, 0.6, 1e-16), (1e-6, 50.0, 1e-20), (1e-3, 1.0, 1e-20)):
        event = PoissonSampled(rate, Gaussian(sigma)) * count
        found = get_epsilon(event, d, relation=relation, method="pld")
        assert found <= get_epsilon(event, d, relation=relation, method="rdp") < math.inf
        assert get_delta(event, found, relation=relation, method="pld") == pytest.approx(
            d, rel=1e-2
        )


ONE = [
    (PoissonSampled(1e-6, Gaussian(0.6)), 1e-14),
    (PoissonSampled(1e-6, Gaussian(50.0)), 1e-18),
    (PoissonSampled(0.01, Gaussian(1.0)), 1e-6),
    (PoissonSampled(0.1, Laplace(0.3)), 1e-12),
    (PoissonSampled(1e-4, PureDP(0.5)), 1e-9),
    (SampledWithoutReplacement(1000, 10, Gaussian(1.0)), 1e-16),
    (DiscreteGaussian(3.0), 1e-20),
    (ApproximateDP(0.1, 1e-25), 1e-20),
]


def check_monotone(event, d, relation, counts):
    for method in ("auto", "pld"):
        prices = [get_epsilon(event * n, d, relation=relation, method=method) for n in counts]
        assert prices == sorted(prices)
        assert prices[-1] < math.inf


@pytest.mark.parametrize("event, d", [ONE[0], ONE[2], ONE[5]])
def test_more_releases_never_cost_less(event, d):
    check_monotone(event, d, "add_remove", (1, 2, 3, 30))
    check_monotone(event, d, "replace_one", (1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("event, d", ONE)
def test_many_more_releases_never_cost_less(event, d):
    for relation in RELATIONS:
        counts = [*range(1, 40), *range(255, 260), *range(9_999, 10_002)]
        check_monotone(event, d, relation, counts)


@pytest.mark.parametrize("mu", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("reach", [0.3, 2.0, 5.0])
def test_tolerance_is_relative_to_a_tiny_epsilon(mu, reach):
    """Four Gaussian releases on a grid against the closed form of one."""
    exact = reach * mu
    d = gdp_to_delta(mu, exact)
    found = pld_epsilon(leaves(Gaussian(2.0 / mu) * 4), d, "add_remove", 1e-4)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)


@pytest.mark.parametrize("eps, d", [(1e-3, 1e-7), (1e-5, 1e-9), (3e-6, 1e-6)])
def test_tolerance_of_a_tiny_epsilon_with_atoms(eps, d):
    exact = optimal_epsilon(eps, 30, d)
    found = get_epsilon(RandomizedResponse(eps) * 30, d, method="pld")
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 1e-4)
    # Laplace releases cost no more than randomized response.
    found = get_epsilon(Laplace(eps) * 30, d, method="pld")
    finer = pld_epsilon(leaves(Laplace(eps) * 30), d, "add_remove", 1e-6)
    assert found == pytest.approx(finer, rel=1e-4)
    assert finer <= exact * (1 + 1e-5)


@pytest.mark.parametrize("rate, sigma, target", [(2e-3, 2.9, 1e-3), (1e-4, 9.0, 1e-4)])
def test_tiny_epsilon_of_sampled_releases(rate, sigma, target):
    event = PoissonSampled(rate, Gaussian(sigma)) * 20
    d = get_delta(event, target, tolerance=1e-6)
    assert target * (1 - 1e-5) <= get_epsilon(event, d) <= target * (1 + 2e-4)


def test_direct_composition_of_gaussians():
    """A convolution term by term against the closed form, far below what a transform resolves."""
    (pair,) = privacy_of(Gaussian(2.0), "add_remove").pairs()
    for count in (1, 3, 4):
        mu, eps = math.sqrt(count) / 2.0, 6.0
        truth = gdp_to_delta(mu, eps)
        total = _compose_directly(_coarse_parts([(pair, count)], truth), 5e-3, truth)
        found = total.delta(eps)
        assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-3)


def test_direct_composition_loses_no_mass():
    (pair,) = privacy_of(Gaussian(2.0), "add_remove").pairs()
    for count in (1, 6, 7):
        total = _compose_directly(_coarse_parts([(pair, count)], 0.5), 5e-3, 0.5)
        assert 1e-8 < total.beyond < 1e-5
        assert total.beyond + float(total.masses.sum()) == pytest.approx(1.0, abs=1e-11)
