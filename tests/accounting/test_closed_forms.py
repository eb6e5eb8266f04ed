import math

import mpmath
import pytest

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    gaussian_delta,
    gaussian_noise_multiplier,
    gdp,
    gdp_to_delta,
    gdp_to_epsilon,
    get_delta,
    get_epsilon,
    zcdp,
    zcdp_to_delta,
    zcdp_to_epsilon,
)


def exact_gaussian_delta(mu, eps):
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(mu), mpmath.mpf(eps)
        upper = mpmath.ncdf(mu / 2 - eps / mu)
        return upper - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


@pytest.mark.parametrize(
    "mu, eps",
    [
        (1, 1),
        (0.1, 0.5),
        (1e-3, 1e-3),
        (1e-6, 1e-6),
        (1e-7, 1e-6),
        (0.01, 0.05),
        (0.011, 0.05),
        (5, 3),
        (30, 200),
        (30, 600),
        (100, 5400),
        (1e-4, 0),
        (1, -1),
        (3, 100),
    ],
)
def test_gaussian_curve_has_no_cancellation(mu, eps):
    assert abs(gdp_to_delta(mu, eps) / exact_gaussian_delta(mu, eps) - 1) < 1e-12


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta_", [1e-300, 1e-15, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("eps", [1e-6, 1e-3, 0.1, 1, 8, 100, 1e4, 1e8, 1e12])
def test_gaussian_noise_is_on_the_safe_side_and_tight(eps, delta_):
    z = gaussian_noise_multiplier(eps, delta_)
    assert gaussian_delta(z, eps) <= delta_
    assert get_epsilon(Gaussian(z), delta_) <= eps
    assert gaussian_delta(z * (1 - 1e-8), eps) > delta_


def test_gaussians_compose_to_one():
    event = Gaussian(10) * 100
    assert get_epsilon(event, 1e-5) == pytest.approx(get_epsilon(Gaussian(1.0), 1e-5), rel=1e-13)
    assert gdp(event) == pytest.approx(1.0)
    assert get_epsilon(Gaussian(1.0), 1e-5, group_size=3) == pytest.approx(
        gdp_to_epsilon(3.0, 1e-5), rel=1e-12
    )


def test_pure_events():
    assert get_epsilon(Laplace(1.0), 0.0) == 1.0
    assert get_epsilon(Laplace(1.0), 1e-5) == pytest.approx(0.99998, abs=1e-9)
    assert get_epsilon(PureDP(0.1) * 100, 1e-6) == pytest.approx(4.774567588, abs=2e-9)
    assert get_epsilon(PureDP(0.1) * 100, 0.0) == pytest.approx(10.0)
    assert get_epsilon(ApproximateDP(0.1, 1e-8) * 50, 1e-5) == pytest.approx(2.856550165, abs=2e-9)
    assert get_epsilon(PureDP(0.5), 1e-5, group_size=4) <= 2.0


@pytest.mark.parametrize("method", ["auto", "basic", "pld"])
def test_costs_of_different_events_add_up(method):
    event = Composed((Laplace(0.5), PureDP(0.25), RandomizedResponse(0.125)))
    assert get_epsilon(event, 0.0, method=method) == pytest.approx(0.875, rel=1e-12)


def test_zcdp():
    assert get_epsilon(ZCDP(0.1), 1e-5) == pytest.approx(1.914238832, rel=1e-8)
    assert zcdp(Gaussian(2.0) * 8 + ZCDP(0.1, 1e-9)) == pytest.approx((1.1, 1e-9))
    assert get_epsilon(ZCDP(0.1, 1e-6), 1e-7) == math.inf
    total = 1 - (1 - 1e-6) * (1 - 1e-5)
    assert get_epsilon(ZCDP(0.1, 1e-6), total) == pytest.approx(
        get_epsilon(ZCDP(0.1), 1e-5), rel=1e-9
    )


def test_infinite_costs():
    assert get_epsilon(Gaussian(1.0), 0.0) == math.inf
    assert get_epsilon(Laplace(1.0) + NonPrivate(), 1e-5) == math.inf
    assert get_delta(NonPrivate(), 5.0) == 1.0


@pytest.mark.parametrize("event", [Gaussian(1.0), Laplace(1.0), ZCDP(0.3), PureDP(0.2) * 9])
@pytest.mark.parametrize("eps", [0.1, 0.5, 2.0])
def test_delta_inverts_epsilon(event, eps):
    d = get_delta(event, eps)
    assert get_epsilon(event, d) <= eps * (1 + 1e-9) + 1e-12
    if d > 0:
        assert get_epsilon(event, d * (1 - 1e-6)) >= eps * (1 - 1e-6)


def test_bad_arguments():
    for call in (
        lambda: get_epsilon(Gaussian(1.0), -0.1),
        lambda: get_epsilon(Gaussian(1.0), math.nan),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, relation="swap"),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, method="clt"),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, group_size=0),
        lambda: get_epsilon("Gaussian", 1e-5),
        lambda: get_delta(Gaussian(1.0), -1.0),
        lambda: gaussian_noise_multiplier(0.0, 1e-5),
        lambda: gaussian_noise_multiplier(1.0, 0.0),
        lambda: gaussian_delta(0.0, 1.0),
        lambda: gdp(ZCDP(0.1)),
    ):
        with pytest.raises(ValueError):
            call()


def test_stated_prices_and_gaussian_releases_add_up():
    """The parts of a fit that finds a norm first, however large or small epsilon and delta are."""
    for total, at in ((62.7, 0.0139), (1e4, 1e-9), (1e-5, 1e-20), (742.0, 1e-21)):
        z = gaussian_noise_multiplier(0.8 * total, at) * math.sqrt(200) * (1.0 + 1e-12)
        event = Composed((Laplace(0.2 * total), Gaussian(z) * 200))
        assert get_delta(event, total) <= at
        assert get_epsilon(event, at) <= total * (1.0 + 1e-9)
        stated = ApproximateDP(0.2 * total, 0.5 * at)
        small = gaussian_noise_multiplier(0.8 * total, 0.5 * at) * (1.0 + 1e-12)
        assert get_delta(Composed((stated, Gaussian(small))), total) <= at * (1.0 + 1e-15)
        # A part cannot cost more than all.
        assert get_delta(event, total) >= get_delta(Gaussian(z) * 200, total)


def test_groups_run_random_stopping_at_the_price_of_their_runs():
    one = RandomStopping(PureDP(0.1), 50.0)
    assert get_epsilon(one, 0.0, group_size=3) == pytest.approx(0.9)
    run = RandomStopping(Gaussian(8.0), 10.0)
    assert get_epsilon(run, 1e-5, group_size=2) == get_epsilon(
        RandomStopping(Gaussian(4.0), 10.0), 1e-5
    )
    sampled = RandomStopping(PoissonSampled(0.1, Gaussian(4.0)) * 3, 10.0)
    assert get_epsilon(sampled, 1e-5, group_size=2) > get_epsilon(sampled, 1e-5)


@pytest.mark.parametrize("rho", [5e-9, 1e-4, 0.1, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.1])
def test_zcdp_has_the_delta_whose_epsilon_it_has(rho, delta):
    assert zcdp_to_delta(rho, zcdp_to_epsilon(rho, delta)) <= delta * (1.0 + 1e-6)
