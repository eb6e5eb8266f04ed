"""One sampled release against its exact curve, in 50 digits, down to delta = 1e-20."""

import math
import random

import mpmath
import pytest

from skdp import accounting
from skdp.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    get_delta,
    get_epsilon,
)

RELATIONS = ("add_remove", "replace_one")
METHODS = ("pld", "auto", "basic")


def mixture_delta(sigma, rate, relation, eps):
    """The largest of both directions: tails of the mixtures, beyond where the loss is eps."""
    s, q, growth = mpmath.mpf(sigma), mpmath.mpf(rate), mpmath.exp(eps)

    def above(x, mean):
        return mpmath.ncdf((mean - x) / s)

    def other(x):
        return (1 - q) * above(x, 0) + q * above(x, -1)

    if relation == "add_remove":
        x = s**2 * mpmath.log((growth - 1 + q) / q) + 0.5
        forward = (1 - q) * above(x, 0) + q * above(x, 1) - growth * above(x, 0)
        ratio = (1 - growth * (1 - q)) / (q * growth)
        if ratio <= 0:
            return forward
        x = -(s**2) * mpmath.log(ratio) - 0.5
        return max(forward, above(x, 0) - growth * ((1 - q) * above(x, 0) + q * above(x, -1)))

    def loss(x):
        up, down = (1 - q + q * mpmath.exp((m * x - 0.5) / s**2) for m in (1, -1))
        return mpmath.log(up / down)

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while loss(high) < eps:
        low, high = high, 2 * high
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < eps else (low, middle)
    return (1 - q) * above(high, 0) + q * above(high, 1) - growth * other(high)


def settings(count, seed):
    rng = random.Random(seed)
    for i in range(count):
        sigma, rate = 10 ** rng.uniform(-0.5, 2), 10 ** rng.uniform(-7, -0.02)
        yield sigma, rate, 10 ** rng.uniform(-20, -2), RELATIONS[i % 2], METHODS[i % 3]


def check_sampled_gaussian(count, seed):
    with mpmath.workdps(50):
        for sigma, rate, d, relation, method in settings(count, seed):
            event = PoissonSampled(rate, Gaussian(sigma))
            found = get_epsilon(event, d, relation=relation, method=method)
            assert mixture_delta(sigma, rate, relation, found) <= d
            if found > 0.0:
                assert mixture_delta(sigma, rate, relation, found * (1 - mpmath.mpf(1e-9))) > d
            truth = mixture_delta(sigma, rate, relation, 0.7 * found)
            for name in ("pld", "auto"):
                below = get_delta(event, 0.7 * found, relation=relation, method=name)
                assert truth <= below <= truth * (1 + 1e-9)


def test_sampled_gaussian_to_nine_digits():
    check_sampled_gaussian(12, 0)


@pytest.mark.slow
def test_many_sampled_gaussians_to_nine_digits():
    check_sampled_gaussian(600, 1)


def test_no_noise_to_speak_of_under_replacement():
    # The second term of the curve overflows here; the amplified curve is what is left.
    event = PoissonSampled(0.999, Gaussian(0.01))
    assert get_epsilon(event, 1e-9, relation="replace_one") <= get_epsilon(Gaussian(0.005), 1e-9)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("size", [1e5, 1e8, 1e10, 1e12, 1e15])
def test_huge_losses_have_a_price(size):
    gaussian = Gaussian(1.0 / math.sqrt(2.0 * size))
    for other in (PureDP(0.5 * size), PureDP(1.0), Laplace(size), RandomizedResponse(size, 2)):
        event = accounting.Composed((gaussian, other))
        separately = get_epsilon(gaussian, 1e-6) + get_epsilon(other, 0.0)
        assert 0.5 * size < get_epsilon(event, 1e-6) <= separately * (1 + 1e-9)


def test_what_is_given_is_given_back_exactly():
    rng = random.Random(0)
    for _ in range(50):
        given, delta_ = rng.uniform(0.01, 5), 10 ** rng.uniform(-12, -3)
        event = accounting.ApproximateDP(given, delta_)
        for same in (event, accounting.Composed((event,))):
            assert accounting.get_delta(same, given) == delta_
            assert accounting.get_epsilon(same, delta_) == given
