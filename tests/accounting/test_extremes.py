"""Bounds at numbers where round-off, underflow or a limit in the code could hide a violation."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from skdp.accounting import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    convert_relation,
    get_delta,
    get_epsilon,
    rdp,
)

NEAR_HALF = ApproximateDP(1.0, 0.5)
FAR = ApproximateDP(1e14, 1e-3) * 3 + PureDP(1e9)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize(
    "event, method, group",
    [(event, method, 1) for event in (NEAR_HALF, FAR) for method in ("basic", "advanced", "auto")]
    + [(Gaussian(1e-7), method, 2) for method in ("zcdp", "rdp", "auto")]
    + [(PureDP(11.143540078599951) * 165992449, "advanced", 1)],
)
@pytest.mark.parametrize("target", [9e8, 1849694410.9249313, 2.5e14, 1e15])
def test_epsilon_at_the_delta_of_an_epsilon_is_no_larger(event, method, group, target):
    delta = get_delta(event, target, method=method, group_size=group)
    assert get_epsilon(event, delta, method=method, group_size=group) <= target * (1 + 1e-12)


def gaussian_curve(sigma, epsilon):
    """delta of a discrete Gaussian of sensitivity 1, to 40 digits."""
    with localcontext(Context(prec=60)):
        variance, half = Decimal(sigma) ** 2, Decimal("0.5")
        weights = {x: (-(x * x) / (2 * variance)).exp() for x in map(Decimal, range(-60, 61))}
        losses = {x: (half - x) / variance - Decimal(epsilon) for x in weights}
        gains = (weights[x] * (1 - (-loss).exp()) for x, loss in losses.items() if loss > 0)
        return Fraction(sum(gains) / sum(weights.values()))


@pytest.mark.parametrize("sigma", [0.1, 0.2, 0.3, 0.35, 0.45, 0.6, 0.7])
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_delta_at_the_float_of_a_loss(sigma, steps):
    epsilon = 0.5 * steps * (1.0 / sigma**2)
    for near in (math.nextafter(epsilon, 0.0), epsilon, math.nextafter(epsilon, math.inf)):
        assert get_delta(DiscreteGaussian(sigma), near) >= gaussian_curve(sigma, near)
    between = 0.7 * epsilon
    truth = gaussian_curve(sigma, between)
    assert truth <= get_delta(DiscreteGaussian(sigma), between) <= truth * (1 + Fraction(1, 10**12))


def test_delta_just_below_the_largest_loss():
    for scale in (i / 7 for i in range(1, 300)):
        epsilon = 1.0 / scale
        below = Fraction(1) / Fraction(scale) - Fraction(epsilon)
        truth = -math.expm1(-max(0.0, float(below))) / (1.0 + math.exp(-epsilon))
        assert get_delta(DiscreteLaplace(scale), epsilon, method="pld") >= truth


@pytest.mark.parametrize("epsilon", [37.6, 37.8, 38.1, 38.3, 38.6, 50.0])
def test_delta_below_the_smallest_float(epsilon):
    event, truth = DiscreteGaussian(1.0), gaussian_curve(1.0, epsilon)
    assert truth < Fraction(1e-300)
    assert get_delta(event, epsilon, method="pld") >= truth
    for delta in (1e-312, 1e-318, 5e-324):
        found = get_epsilon(event, delta, method="pld")
        assert found == math.inf or gaussian_curve(1.0, found) <= delta


def test_a_tiny_delta_of_a_group_or_of_a_replacement_is_not_lost():
    event = ApproximateDP(800.0, 1e-310)
    assert get_delta(event, 1600.0, group_size=2) == 1.0
    assert get_epsilon(event, 1e-5, group_size=2) > 1600.0
    assert convert_relation(800.0, 1e-310, "add_remove", "replace_one") == (1600.0, 1.0)
    assert convert_relation(1.0, 1e-6, "add_remove", "replace_one")[1] == pytest.approx(
        (1.0 + math.e) * 1e-6, rel=1e-12
    )


# delta0, count, delta, and epsilon of (0.1, delta0)-DP releases, by mpmath with 60 digits.
@pytest.mark.parametrize(
    "delta0, count, delta, truth",
    [
        (1e-18, 1000, 1e-15, 40.35770636889833),
        (1e-15, 100, 1e-13, 9.59242942705655),
        (1e-17, 10000, 1e-13, 155.87774873925352),
        (1e-6, 1000, 0.0009995006661255913, 32.44891335029159),
        (1e-9, 1000, 9.999995005001664e-07, 34.69474924605922),
    ],
)
@pytest.mark.parametrize("method", ["advanced", "auto"])
def test_epsilon_where_deltas_nearly_fill_the_total(delta0, count, delta, truth, method):
    found = get_epsilon(ApproximateDP(0.1, delta0) * count, delta, method=method)
    assert truth * (1 - 1e-15) <= found <= truth * (1 + 1e-12)


@pytest.mark.parametrize("method", ["advanced", "rdp", "zcdp", "pld", "basic", "auto"])
def test_no_epsilon_below_the_deltas_of_the_releases(method):
    for i in range(100):
        delta0, count = 10.0 ** (-3 - 0.25 * i), (2, 3, 7, 10, 33, 1000)[i % 6]
        with localcontext(Context(prec=80)):
            least = Fraction(1 - (1 - Decimal(delta0)) ** count)
        delta = float(least)
        if delta >= least:
            delta = math.nextafter(delta, 0.0)
        for epsilon0 in (0.0, 0.1):
            event = ApproximateDP(epsilon0, delta0) * count
            assert get_epsilon(event, delta, method=method) == math.inf


@pytest.mark.parametrize("method", ["basic", "advanced", "pld", "auto"])
def test_one_release_at_its_own_delta_is_exact(method):
    for delta in (0.3, 1e-5, 1e-17, 1e-310):
        assert get_epsilon(ApproximateDP(0.7, delta), delta, method=method) == 0.7


# epsilon0, count, epsilon, and delta by mpmath with 50 digits.
RESPONSES = [
    (0.1, 10**5, 657.5, 2.4437181289760014e-07),
    (0.01, 10**5, 17.6, 1.4247145429941972e-05),
    (1.0, 1000, 574.29, 1.7885921484672457e-05),
    (3.0, 10**5, 273560.9, 2.1346312214716848e-07),
    (8.0, 10**8, 799478087.4, 2.552790586276624e-07),
    (12.0, 10**10, 119998549194.0, 3.0467846163558832e-05),
    (13.5, 3 * 10**11, 4049988964508.8, 3.107059774728342e-05),
]


@pytest.mark.parametrize("epsilon0, count, epsilon, truth", RESPONSES)
def test_optimal_delta_of_many_releases(epsilon0, count, epsilon, truth):
    found = get_delta(PureDP(epsilon0) * count, epsilon, method="advanced")
    assert truth * (1 - 1e-15) <= found <= truth * (1 + (1e-11 if count <= 10**5 else 1e-8))


@pytest.mark.parametrize("method", ["auto", "pld"])
def test_a_sum_of_pure_releases_is_rounded_up(method):
    for event, count in [(Laplace(0.3), 3), (PureDP(0.1), 5), (Laplace(1 / 3), 5)]:
        exact = count * Fraction(event.epsilon)
        assert exact <= Fraction(get_epsilon(event * count, 0.0, method=method))
    sampled = PoissonSampled(3.5269870884287635e-09, PureDP(13.198355420789786))
    with localcontext(Context(prec=50)):
        grown = Decimal(sampled.sampling_rate) * (Decimal(sampled.event.epsilon).exp() - 1)
        price = get_epsilon(sampled, 0.0, relation="replace_one", method=method)
        assert (1 + grown).ln() <= Decimal(price)


def test_losses_thousands_apart_have_a_price():
    event, at = DiscreteGaussian(0.5126265875501058) * 5000, 1.2421e-4
    assert get_epsilon(event, at, method="pld") <= get_epsilon(event, at, method="rdp")


@pytest.mark.parametrize("event", [DiscreteGaussian(1.0, 10**7), DiscreteGaussian(0.1, 10**40)])
def test_a_discrete_gaussian_with_too_many_atoms_has_a_price(event):
    for asked in (event, event * 3, PoissonSampled(0.1, event)):
        assert get_epsilon(asked, 1e-5) < math.inf
        assert rdp(asked, 4.0) < math.inf


def test_a_rarely_sampled_gaussian_at_a_tiny_delta():
    event = PoissonSampled(2.423130896111718e-10, Gaussian(8438.11706277407))
    # By 60 digits.
    truth = 3.0594924094146173e-208
    found = get_delta(event, 1.7030241831094252e-12, relation="replace_one", method="pld")
    assert truth <= found <= truth * (1.0 + 1e-9)
