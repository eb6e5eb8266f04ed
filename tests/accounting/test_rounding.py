"""Bounds that must not round to the wrong side: tiny costs, many releases, low orders."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from skdp import PrivacyAccountant
from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    SampledWithoutReplacement,
    calibrate,
    convert_relation,
    gaussian_delta,
    gdp_to_delta,
    gdp_to_epsilon,
    get_delta,
    get_epsilon,
    rdp,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp,
    zcdp_to_delta,
    zcdp_to_epsilon,
)

METHODS = ("auto", "basic", "advanced", "zcdp", "rdp", "pld")
TINY = [
    kind(value)
    for kind in (RandomizedResponse, PureDP, Laplace, ExponentialMechanism)
    for value in (1e-8, 1e-17, 1e-300)
]


@pytest.mark.parametrize("event", TINY, ids=lambda event: event.to_json())
def test_a_tiny_pure_release_is_not_free(event):
    for method in ("auto", "basic", "advanced", "pld"):
        assert get_epsilon(event, 0.0, method=method) == event.epsilon
    assert get_epsilon(event * 10**18, 0.0) >= event.epsilon * 10**18
    assert min(zcdp(event)[0], rdp(event, 2.0)) > 0.0
    least = 0.25 if isinstance(event, ExponentialMechanism) else 0.4999999
    assert get_delta(event, 0.0) >= least * event.epsilon
    assert PrivacyAccountant(1.0, 1e-6).charge(event).epsilon == event.epsilon


@pytest.mark.parametrize("eps, num_categories", [(1e-12, 2), (1e-8, 3), (0.1, 2), (3.0, 7)])
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 0.99])
def test_randomized_response_exactly(eps, num_categories, share):
    with mpmath.workdps(50):
        e, k = mpmath.mpf(eps), num_categories
        delta_ = float(share * mpmath.expm1(e) / (k - 1 + mpmath.exp(e)))
        truth = mpmath.log(mpmath.exp(e) - delta_ * (k - 1 + mpmath.exp(e)))
        found = get_epsilon(RandomizedResponse(eps, num_categories), delta_)
        assert truth <= found <= truth + 1e-14 * e


@pytest.mark.parametrize("noise", [1.0, 99.0, 101.0, 1e6, 1e12, 1e17])
def test_gaussian_total_variation(noise):
    truth = math.erf(1.0 / (2.0 * math.sqrt(2.0) * noise))
    assert get_delta(Gaussian(noise), 0.0) == pytest.approx(truth, rel=1e-13)


@pytest.mark.parametrize(
    "exponents, deltas",
    [
        ((8, 17), (1e-5,)),
        pytest.param((8, 9, 10, 17, 20), (1e-3, 1e-5, 1e-9), marks=pytest.mark.slow),
    ],
)
def test_many_tiny_releases(exponents, deltas):
    assert get_epsilon(Gaussian(1e17) * 10**34, 1e-5) == pytest.approx(4.377178095681, rel=1e-11)
    for exponent in exponents:
        event = RandomizedResponse(10 ** (-0.5 * exponent)) * 10**exponent
        # Randomized response so near 0 composes to a Gaussian release.
        for delta_ in deltas:
            for method in ("pld", "auto"):
                assert (
                    get_epsilon(event, delta_, method=method) >= gdp_to_epsilon(1.0, delta_) - 1e-7
                )
        assert get_delta(event, 1.0) >= 0.126936


@pytest.mark.parametrize("count", [10**6, 10**8])
def test_many_releases_stay_tight(count):
    event = RandomizedResponse(count**-0.5) * count
    for delta_ in (1e-5, 1e-9):
        assert get_epsilon(event, delta_, method="pld") <= gdp_to_epsilon(1.0, delta_) * (1 + 1e-3)


def renyi(p, q, order):
    with mpmath.workdps(60):
        total = mpmath.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
        return mpmath.log(total) / (order - 1)


def exact_response(eps, order):
    e, order = mpmath.mpf(eps), mpmath.mpf(order)
    p = [mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))]
    return renyi(p, p[::-1], order)


def exact_laplace(eps, order):
    e, a = mpmath.mpf(eps), mpmath.mpf(order)
    first = a / (2 * a - 1) * mpmath.exp((a - 1) * e)
    return mpmath.log(first + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)) / (a - 1)


def exact_bounded_range(eps, order):
    e, a = mpmath.mpf(eps), mpmath.mpf(order)
    best = mpmath.mpf(0)
    for t in (e * i / 64 for i in range(1, 64)):
        p = (mpmath.exp(e) - mpmath.exp(t)) / mpmath.expm1(e)
        q = p * mpmath.exp(-t)
        best = max(best, renyi([p, 1 - p], [q, 1 - q], a))
    return best


@pytest.mark.parametrize("order", [1.0 + 2.0**-40, 1.0 + 2.0**-20, 1.001, 1.5, 8.0])
@pytest.mark.parametrize("eps", [1e-3, 0.013, 0.3, 2.0])
def test_renyi_divergence_at_low_orders(eps, order):
    with mpmath.workdps(60):
        assert rdp(RandomizedResponse(eps), order) >= exact_response(eps, order)
        assert rdp(Laplace(eps), order) >= exact_laplace(eps, order)
        assert rdp(ExponentialMechanism(eps), order) >= exact_bounded_range(eps, order)


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 4.0])
def test_exponential_mechanism_covers_every_two_point_pair(eps):
    """The pairs of Dong, Durfee and Rogers (2020): losses t and t - eps."""
    t = np.linspace(0.0, eps, 20_001)
    p = (math.exp(eps) - np.exp(t)) / math.expm1(eps)
    for at in np.linspace(0.0, 0.999 * eps, 23):
        truth = float(np.max(p * np.maximum(-np.expm1(at - t), 0.0)))
        found = get_delta(ExponentialMechanism(eps), at)
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-4) + 1e-12
        assert get_epsilon(ExponentialMechanism(eps), truth) >= at - 1e-12
        assert get_epsilon(ExponentialMechanism(eps), truth * (1 + 1e-4)) <= at + 1e-3 * eps


@pytest.mark.parametrize("mean, at_least", [(0.1, 28.04), (1.0, 100.0)])
def test_no_run_at_all_is_an_outcome_too(mean, at_least):
    """delta of one release and the sum of its moment, by the best run's distribution."""
    event = RandomStopping(RandomizedResponse(1.0), mean, math.inf)
    assert get_epsilon(event * 200, 1e-5) >= at_least
    for order in (1.5, 4.0, 32.0):
        moments = []
        for good in (math.e / (1 + math.e), 1 / (1 + math.e)):
            # Poisson: no run; some run found the better answer; all found the worse one.
            none, better = math.exp(-mean), -math.expm1(-mean * good)
            moments.append([none, better, 1 - none - better])
        assert rdp(event, order) >= float(renyi(*moments, order)) - 1e-12


def test_no_run_at_all_leaves_a_mass():
    # With a base that says nothing the truth is 0; the bound must not be negative.
    event = RandomStopping(RandomizedResponse(0.0), 0.01, math.inf)
    assert 0.0 <= rdp(event, 2.0) < math.inf


@pytest.mark.parametrize("method", ["auto", "pld"])
@pytest.mark.parametrize("rate, noise", [(1e-6, 50.0), (1e-9, 1e3), (0.01, 1.0)])
def test_total_variation_of_a_sampled_gaussian(method, rate, noise):
    event = PoissonSampled(rate, Gaussian(noise))
    for relation, moves in (("add_remove", 1), ("replace_one", 2)):
        truth = rate * math.erf(moves / (2.0 * math.sqrt(2.0) * noise))
        found = get_delta(event, 0.0, relation=relation, method=method)
        assert truth * (1 - 1e-15) <= found <= truth * (1 + 1e-12)


def test_small_sampled_delta_by_the_transform():
    """The transform is off by round-off of a tail, which two releases must cover as well."""
    event = PoissonSampled(1e-6, Gaussian(50.0))
    single = 1e-6 * math.erf(1.0 / (50.0 * math.sqrt(2.0)))
    assert get_delta(event * 2, 0.0, relation="replace_one") >= single


def test_calibration_stays_within_the_last_place():
    # One unit in the last place decides.
    target = 5.0
    for eps in (target, math.nextafter(target, 6.0)):
        found = calibrate(PureDP, eps, 0.0)
        assert get_epsilon(PureDP(found), 0.0) <= eps
        noise = calibrate(lambda s: Laplace(1 / s) * 3, eps, 1e-6, method="basic")
        assert get_epsilon(Laplace(1 / noise) * 3, 1e-6, method="basic") <= eps


def test_calibration_for_a_group_by_basic_composition():
    options = {"method": "basic", "group_size": 3}
    noise = calibrate(lambda s: PoissonSampled(0.01, Gaussian(s)) * 100, 1.0, 1e-5, **options)
    assert get_epsilon(PoissonSampled(0.01, Gaussian(noise)) * 100, 1e-5, **options) <= 1.0


def test_hardly_any_noise_costs_what_it_must():
    assert get_epsilon(DiscreteLaplace(1e-49), 1e-5) >= 1e49
    for event in (PureDP(1e100) * 10, Laplace(1e100) * 10, Gaussian(1e-50) * 10**6):
        assert get_epsilon(event, 1e-5) > 1e99


@pytest.mark.parametrize("noise", [1e-40, 1e-49])
def test_losses_beyond_every_grid_have_a_price(noise):
    event = Gaussian(noise) + PureDP(0.1)
    for relation in ("add_remove", "replace_one"):
        found = get_epsilon(event, 1e-5, method="pld", relation=relation)
        assert found == get_epsilon(event, 1e-5, method="rdp", relation=relation)
    assert 0.49 / noise**2 < get_epsilon(event, 1e-5) < math.inf
    accountant = PrivacyAccountant(1.0, 1e-5, composition="pld", ledger="memory://")
    assert not accountant.can_afford(event)


def test_what_is_told_to_be_spent_and_left_is_on_the_safe_side():
    rng = np.random.default_rng(0)
    for charges in (*rng.uniform(0.0, 0.4, size=(40, 2)), (0.1, 1e-18)):
        accountant = PrivacyAccountant(1.0, 0.0, ledger="memory://")
        for cost in charges:
            accountant.charge(PureDP(cost))
        total = sum(Fraction(repr(float(cost))) for cost in charges)
        assert Fraction(repr(accountant.epsilon_spent)) >= total
        accountant.charge(PureDP(accountant.epsilon_remaining))


def exact_gaussian_delta(mu, eps):
    """Of mpmath numbers, at a precision that a mu of 1e-12 leaves 30 digits of."""
    a = eps / mu - mu / 2
    root = mpmath.sqrt(2)
    return mpmath.erfc(a / root) / 2 - mpmath.exp(eps) * mpmath.erfc((a + mu) / root) / 2


def test_a_gaussian_curve_is_never_below_the_truth():
    rng = np.random.default_rng(0)
    ranges = [(-8.0, 0.0), (-1.1, 1.0), (-1e-3, 1e-3), (0.0, 6.0), (0.0, 37.0)]
    for i in range(600):
        z = 10.0 ** rng.uniform(-7, 12) if i % 2 else 10.0 ** rng.uniform(-0.5, 1.5)
        a = rng.uniform(*ranges[i % len(ranges)])
        # To either side of epsilon = 0, where nothing cancels.
        eps = max(0.0, a / z + 0.5 / z**2)
        with mpmath.workdps(80):
            exact_mu, exact_eps = 1 / mpmath.mpf(z), mpmath.mpf(eps)
            truth = exact_gaussian_delta(exact_mu, exact_eps)
            a = abs(float(exact_eps / exact_mu - exact_mu / 2))
            found = gaussian_delta(z, eps)
            excess = found / truth - 1 if truth > 1e-300 else 0
        assert 0 <= excess <= 2e-14 * (1 + a) * (1 + a + 1 / z), (z, eps)


@pytest.mark.parametrize("mu", [1e-12, 1e-3, 0.9, 1.1, 30.0])
@pytest.mark.parametrize("eps", [-1e-13, -1e-4, -0.5, -20.0])
def test_a_gaussian_curve_at_a_negative_epsilon(mu, eps):
    with mpmath.workdps(80):
        truth = exact_gaussian_delta(mpmath.mpf(mu), mpmath.mpf(eps))
        assert 0 <= gdp_to_delta(mu, eps) / truth - 1 < 1e-13


@pytest.mark.parametrize("count, group_size", [(1, 1), (7, 1), (1, 3), (5, 7)])
@pytest.mark.parametrize("noise, delta", [(0.3, 1e-9), (1.7, 1e-5), (11.3, 1e-3), (70.1, 1e-300)])
def test_gaussians_and_groups_are_never_below_the_truth(noise, delta, count, group_size):
    eps = get_epsilon(Gaussian(noise) * count, delta, group_size=group_size)
    with mpmath.workdps(80):
        mu = mpmath.sqrt(count) * group_size / mpmath.mpf(noise)
        assert exact_gaussian_delta(mu, mpmath.mpf(eps)) <= delta
        assert exact_gaussian_delta(mu, mpmath.mpf(eps * (1 - 1e-11))) > delta


def test_sums_of_pure_releases_are_never_below_the_truth():
    rng = np.random.default_rng(0)
    for eps, k in zip(rng.uniform(0.01, 3.0, 300), rng.integers(2, 50, 300), strict=True):
        eps, k = float(eps), int(k)
        kinds = (Laplace, PureDP, ExponentialMechanism, RandomizedResponse)
        found = [get_epsilon(kind(eps), 0.0, group_size=k) for kind in kinds]
        found.append(get_epsilon(PoissonSampled(1.0, Laplace(eps) * k), 0.0))
        found.append(get_epsilon(RandomStopping(PureDP(eps), 100.0, float(k - 2)), 0.0))
        assert all(k * Fraction(eps) <= bound <= k * eps * (1 + 1e-15) for bound in found)
        rho, noise = zcdp(ZCDP(eps) * k)[0], Fraction(eps) ** 2
        assert k * Fraction(eps) <= rho <= k * eps * (1 + 1e-15)
        assert k / noise * 3 <= rdp(Gaussian(eps) * k, 6.0) <= k / eps**2 * 3 * (1 + 1e-14)


SAMPLED = (
    PoissonSampled(1e-200, ApproximateDP(1.0, 1e-200)),
    SampledWithoutReplacement(10**100, 1, ApproximateDP(0.5, 1e-300)),
)


@pytest.mark.parametrize("event", SAMPLED)
@pytest.mark.parametrize("method", METHODS)
def test_a_sampled_delta_never_rounds_to_none(event, method):
    for repeated in (event, event * 3):
        assert get_epsilon(repeated, 0.0, method=method) == math.inf


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("order", [1.0 + 1e-9, 1.001, 1.7, 30.0, 1e6, 1e9])
@pytest.mark.parametrize("cost", [1e-12, 1e-3, 0.7, 40.0])
def test_conversions_are_never_below_the_truth(order, cost):
    for delta in (1e-300, 1e-20, 1e-5, 0.3, 0.999):
        with mpmath.workdps(60):
            a, d = mpmath.mpf(order), mpmath.mpf(delta)
            truth = cost + mpmath.log(1 - 1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
            found = rdp_to_epsilon(cost, order, delta)
            size = cost + abs(truth) + (3 + abs(mpmath.log(d))) / (a - 1)
            assert max(0, truth) <= found <= max(0, truth) + 1e-14 * size
            eps = mpmath.mpf(found)
            log_delta = (a - 1) * (cost - eps + mpmath.log(1 - 1 / a)) - mpmath.log(a)
            assert rdp_to_delta(cost, order, found) >= mpmath.exp(min(0, log_delta)) * (
                1 if log_delta > -690 else 0
            )


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.5, 30.0])
def test_conversions_of_zcdp_agree(rho):
    for delta in (1e-200, 1e-20, 1e-5, 0.3):
        eps = zcdp_to_epsilon(rho, delta)
        assert eps == 0.0 or zcdp_to_delta(rho, eps) == pytest.approx(delta, rel=1e-9)


KINDS = [
    Gaussian(3.0),
    Laplace(0.1),
    DiscreteLaplace(10.0),
    RandomizedResponse(0.1, 3),
    ExponentialMechanism(0.5),
    PureDP(0.1),
    ZCDP(0.01),
    PoissonSampled(0.1, ExponentialMechanism(0.5)),
    RandomStopping(ExponentialMechanism(0.1), 3.0),
]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("event", KINDS, ids=lambda event: event.to_json())
@pytest.mark.parametrize("method", METHODS)
def test_a_delta_of_its_own_counts_beside_every_other_event(event, method):
    own, count = 1e-6, 40
    least = -math.expm1(count * math.log1p(-own)) * (1 - 1e-12)
    mixed = event * 90 + ApproximateDP(0.1, own) * count
    if method == "pld" and isinstance(event, ZCDP):
        return
    for eps in (20.0, 60.0, 1e4):
        assert get_delta(mixed, eps, method=method) >= least
    assert get_epsilon(mixed, 0.9 * least, method=method) == math.inf


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rate, noise, delta", [(1e-12, 1e9, 1e-300), (1e-15, 5.0, 1e-20)])
def test_a_tiny_epsilon_is_tight(rate, noise, delta, relation):
    event = PoissonSampled(rate, Gaussian(noise))
    eps = get_epsilon(event, delta, relation=relation)
    assert delta * (1 - 1e-9) <= get_delta(event, eps, relation=relation) <= delta


@pytest.mark.parametrize("method", ["auto", "pld"])
@pytest.mark.parametrize(
    "eps, count, delta", [(632.36, 6, 8e-12), (35419921.3, 2, 1e-8), (292149759.6, 3, 1.8e-11)]
)
def test_large_losses_are_rounded_relatively(method, eps, count, delta):
    found = get_epsilon(PureDP(eps) * count, delta, method=method)
    stated = get_delta(PureDP(eps) * count, found, method=method)
    with mpmath.workdps(60):
        truth = mpmath.mpf(0)
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(eps)))
        for i in range(count):
            gap = max(0, (count - 2 * i) * mpmath.mpf(eps) - found)
            truth -= (
                mpmath.binomial(count, i) * p ** (count - i) * (1 - p) ** i * mpmath.expm1(-gap)
            )
        assert truth <= min(delta, stated)
    assert found <= count * eps * (1 + 1e-14)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("rate", [1e-25, 1e-13, 3e-5, 0.4, 1 - 1e-6, 1 - 1e-13])
@pytest.mark.parametrize("eps", [1e-4, 2.4, 31.0, 58.0, 800.0])
def test_amplification_is_relatively_accurate(rate, eps):
    found = get_epsilon(PoissonSampled(rate, PureDP(eps)), 0.0)
    replaced = get_epsilon(PoissonSampled(rate, Laplace(eps)), 0.0, relation="replace_one")
    with mpmath.workdps(400):
        q, e = mpmath.mpf(rate), mpmath.mpf(eps)
        more, less = (mpmath.log(1 - q + q * mpmath.exp(sign * e)) for sign in (1, -1))
        assert 0 <= found / more - 1 < 1e-14
        assert 0 <= replaced / (more - less) - 1 < 1e-14


@pytest.mark.parametrize("method", ["rdp", "pld"])
@pytest.mark.parametrize("rate", [1e-12, 3e-9, 7e-7, 3e-5])
def test_small_losses_of_a_large_epsilon(method, rate):
    count = 3
    for eps in (1.2, 2.365, 9.0):
        with mpmath.workdps(60):
            moved = 1 + rate * mpmath.expm1(eps)
            probability = (moved / (1 + mpmath.exp(eps))) ** count
            largest = count * mpmath.log(moved)
            # The next lower total loss is below the epsilon at this delta.
            delta = float(probability * largest / 100)
            found = get_epsilon(PoissonSampled(rate, PureDP(eps)) * count, delta, method=method)
            assert probability * -mpmath.expm1(found - largest) <= delta


def exponential_between(x):
    """Rational numbers below and above e^x, by the series and a bound on its rest."""
    terms = 260 if x > 1e-3 else 10
    x, term, total = Fraction(x), Fraction(1), Fraction(0)
    for n in range(terms):
        total += term
        term *= x / (n + 1)
    return total, total + term / (1 - x / (terms + 1))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("seed", range(4))
def test_another_relation_is_the_least_float_above_the_exact_rational(seed):
    rng = np.random.default_rng(seed)
    for _ in range(15):
        epsilon = float(rng.choice([1e-300, 1e-17, 10.0 ** rng.uniform(-8, 1.7)]))
        delta = float(10.0 ** rng.uniform(-300, -1))
        doubled, grown = convert_relation(epsilon, delta, "add_remove", "replace_one")
        below, above = exponential_between(epsilon)
        assert Fraction(doubled) == 2 * Fraction(epsilon)
        assert Fraction(grown) >= min(Fraction(1), (1 + above) * Fraction(delta)) or grown == 1.0
        assert Fraction(math.nextafter(grown, 0.0)) < (1 + below) * Fraction(delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        (0.0, 1e-6, (0.0, 2e-6)),
        (0.0, 0.7, (0.0, 1.0)),
        (3.0, 0.0, (6.0, 0.0)),
        (math.inf, 0.0, (math.inf, 0.0)),
        (math.inf, 5e-324, (math.inf, 1.0)),
        (1e308, 1e-9, (math.inf, 1.0)),
        (745.0, 5e-324, (1490.0, 1.0)),
        (1e-300, 5e-324, (2e-300, 3 * 5e-324)),
    ],
)
def test_another_relation_at_the_ends(epsilon, delta, expected):
    assert convert_relation(epsilon, delta, "add_remove", "replace_one") == expected


# Every kind of event whose privacy losses are not bounded, and compositions.
UNBOUNDED = {
    "Gaussian": Gaussian(3.0),
    "Gaussians": Gaussian(3.0) * 5,
    "sampled": PoissonSampled(0.01, Gaussian(1.0)),
    "sampled often": PoissonSampled(0.01, Gaussian(1.0)) * 100,
    "without replacement": SampledWithoutReplacement(100, 10, Gaussian(1.0)),
    "zCDP": ZCDP(0.1),
    "discrete Gaussian": DiscreteGaussian(3.0, 1),
    "with Laplace": Composed((Gaussian(2.0), Laplace(1.0))),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_positive_delta_is_not_rounded_to_zero(name, relation):
    """At an epsilon at which it is below the smallest double, too."""
    for epsilon in (1.0, 50.0, 1e3, 1e8):
        for method in METHODS:
            try:
                delta = get_delta(UNBOUNDED[name], epsilon, relation=relation, method=method)
            except ValueError as error:
                assert "loss distribution" in str(error)
                continue
            assert delta > 0.0, (epsilon, method)
    assert get_delta(UNBOUNDED[name], 1e8, relation=relation, group_size=3) > 0.0


BOUNDED = {
    "pure": PureDP(0.1) * 10,
    "Laplace": Laplace(0.3) * 3,
    "responses": RandomizedResponse(1.0, 3) * 500,
    "exponential": ExponentialMechanism(1.0) * 20,
    "sampled Laplace": PoissonSampled(0.1, Laplace(1.0)) * 10,
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", BOUNDED)
def test_delta_is_zero_only_beyond_the_largest_loss(name):
    largest = get_epsilon(BOUNDED[name], 0.0)
    for factor in (0.0, 0.5, 0.9, 0.999):
        assert get_delta(BOUNDED[name], factor * largest) > 0.0
    assert get_delta(BOUNDED[name], largest) == 0.0


def test_conversions_do_not_round_to_zero():
    least = math.ulp(0.0)
    assert gaussian_delta(3.0, 1e6) == gdp_to_delta(1e-3, 1.0) == least
    assert zcdp_to_delta(0.1, 1e4) == rdp_to_delta(0.1, 100.0, 1e3) == least
    assert gdp_to_delta(0.0, 1.0) == zcdp_to_delta(0.0, 1.0) == 0.0
    with mpmath.workdps(60):
        for half in (36.0, 37.5, 38.0, 38.4, 38.6, 39.0):
            # Of the smallest doubles, which have few digits.
            exact = mpmath.ncdf(-half) - mpmath.exp(half + 0.5) * mpmath.ncdf(-half - 1)
            assert exact <= gdp_to_delta(1.0, half + 0.5) <= exact * (1 + 1e-9) + 3 * least


@pytest.mark.parametrize("delta", [math.ulp(0.0), 1e-320, 1e-310])
def test_an_epsilon_at_the_smallest_deltas_is_found(delta):
    for mu in (1e-3, 1.0, 30.0):
        epsilon = gdp_to_epsilon(mu, delta)
        assert gdp_to_delta(mu, epsilon) <= delta and math.isfinite(epsilon)
