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
    SampledWithoutReplacement,
    gdp_to_delta,
    get_delta,
    get_epsilon,
)

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


@pytest.mark.parametrize("rate, sigma, target", [(2e-3, 2.9, 1e-3), (1e-4, 9.0, 1e-4)])
def test_tiny_epsilon_of_sampled_releases(rate, sigma, target):
    event = PoissonSampled(rate, Gaussian(sigma)) * 20
    d = get_delta(event, target, tolerance=1e-6)
    assert target * (1 - 1e-5) <= get_epsilon(event, d) <= target * (1 + 2e-4)
