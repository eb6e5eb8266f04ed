"""Faults that published accountants had, each of which would be a wrong promise."""

import math

import pytest

import skdp.accounting as accounting
from skdp.accounting import (
    ZCDP,
    ApproximateDP,
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
    gaussian_noise_multiplier,
    get_delta,
    get_epsilon,
    rdp,
    zcdp,
)

RELATIONS = ("add_remove", "replace_one")
METHODS = ("auto", "basic", "advanced", "zcdp", "rdp", "pld")


@pytest.mark.parametrize("method", ["basic", "advanced", "zcdp", "rdp", "pld", "auto"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_all_hundred_responses_count(method, relation):
    event = RandomizedResponse(0.2) * 100
    found = get_epsilon(event, 1e-6, relation=relation, method=method)
    assert found >= 10.6765
    if method in ("advanced", "pld", "auto"):
        assert found == pytest.approx(10.676577201, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_integer_noise_multiplier_equals_the_float_one(method):
    def event(z):
        return PoissonSampled(0.1, Gaussian(z) * 4) * 10 + Gaussian(z) * 3

    assert get_epsilon(event(2), 1e-5, method=method) == get_epsilon(
        event(2.0), 1e-5, method=method
    )
    assert event(2).to_json() == event(2.0).to_json()


@pytest.mark.parametrize("method", METHODS)
def test_replacing_doubles_a_clipped_sum_and_nothing_else(method):
    options = {"method": method}
    clipped = PoissonSampled(1.0, Gaussian(2.0))
    doubled = get_epsilon(clipped, 1e-5, relation="replace_one", **options)
    assert doubled == pytest.approx(get_epsilon(Gaussian(1.0), 1e-5, **options), rel=1e-9)
    assert get_epsilon(clipped, 1e-5, **options) == pytest.approx(
        get_epsilon(Gaussian(2.0), 1e-5, **options), rel=1e-9
    )
    for plain in (Gaussian(1.0) * 2, Laplace(0.5) * 3, DiscreteLaplace(2.0, 3), PureDP(0.3)):
        one, two = (get_epsilon(plain, 1e-5, relation=r, **options) for r in RELATIONS)
        assert one == two


@pytest.mark.parametrize("method", ["rdp", "pld", "auto"])
def test_replacing_costs_more_under_sampling(method):
    for inner in (Gaussian(1.0), Laplace(1.0), DiscreteLaplace(2.0)):
        event = PoissonSampled(0.1, inner) * 10
        one, two = (get_epsilon(event, 1e-5, relation=r, method=method) for r in RELATIONS)
        assert two > 1.1 * one


def test_replacing_is_not_halved_noise():
    event = PoissonSampled(0.01, Gaussian(1.0)) * 1000
    found = get_epsilon(event, 1e-5, relation="replace_one")
    assert found == pytest.approx(2.84344, abs=3e-4)
    halved = PoissonSampled(0.01, Gaussian(0.5)) * 1000
    assert get_epsilon(halved, 1e-5) > 13.0


def test_replacing_is_within_the_general_conversion():
    event = PoissonSampled(0.1, Gaussian(2.0)) * 20
    eps = get_epsilon(event, 1e-6)
    doubled, delta_ = convert_relation(eps, 1e-6, "add_remove", "replace_one")
    assert get_epsilon(event, delta_, relation="replace_one") <= doubled


def test_no_central_limit_approximation():
    assert not {"gdp", "clt", "prv"} & set(METHODS)
    with pytest.raises(ValueError):
        get_epsilon(Gaussian(1.0), 1e-5, method="gdp")
    with pytest.raises(ValueError, match="Gaussian DP"):
        accounting.gdp(PoissonSampled(0.01, Gaussian(1.0)))
    # That approximation says 1.618.
    assert get_epsilon(PoissonSampled(0.01, Gaussian(1.0)) * 1000, 1e-5) >= 1.828235


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["rdp", "pld", "auto"])
def test_small_delta_is_finite(method, relation):
    event = PoissonSampled(0.01, Gaussian(1.0)) * 1000
    found = [
        get_epsilon(event, d, relation=relation, method=method)
        for d in (1e-12, 1e-15, 1e-20, 1e-60)
    ]
    assert found == sorted(found)
    assert all(math.isfinite(value) for value in found)


@pytest.mark.parametrize("q, steps", [(0.01, 100), (0.2, 7)])
@pytest.mark.parametrize("target", [0.3, 5.0])
def test_noise_search_never_returns_too_little(q, steps, target):
    def event(sigma):
        return PoissonSampled(q, Gaussian(sigma)) * steps

    assert get_epsilon(event(calibrate(event, target, 1e-6)), 1e-6) <= target


@pytest.mark.parametrize("method", ["basic", "advanced", "pld", "auto"])
def test_one_laplace_costs_exactly_its_parameter(method):
    assert get_epsilon(Laplace(1.0), 0.0, method=method) == 1.0
    for delta_ in (1e-15, 1e-9, 1e-5, 0.1):
        assert get_epsilon(Laplace(1.0), delta_) <= 1.0
    assert get_delta(Laplace(1.0), 1.0) == 0.0


def test_advanced_composition_pays_for_every_delta():
    pairs = [(0.1, 1e-8)] * 100
    assert accounting.advanced_epsilon(pairs, 99e-8) == math.inf
    spare = 1 - (1 - 101e-8) / (1 - 1e-8) ** 100
    rest = accounting.advanced_epsilon([(0.1, 0.0)] * 100, spare)
    assert accounting.advanced_epsilon(pairs, 101e-8) == pytest.approx(rest, rel=1e-6)


def test_loose_and_wrong_textbook_formulas_are_not_ours():
    rho, delta_ = 1e-4, 0.05
    assert get_epsilon(ZCDP(rho), delta_) <= rho + 2 * math.sqrt(rho * math.log(1 / delta_))
    # rho + 4 rho ln(1/delta) is too little here.
    wrong = rho + 4 * rho * math.log(1 / delta_)
    assert get_epsilon(Gaussian(math.sqrt(0.5 / rho)), 1e-5) > rho + 4 * rho * math.log(1e5)
    assert wrong < 0.01
    # sqrt(2 ln(1.25/delta)) / epsilon is too little noise from epsilon = 8.4 on.
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / 9.0
    assert gaussian_noise_multiplier(9.0, 1e-5) > classical


def test_zcdp_of_a_gaussian_is_half_the_inverse_square():
    assert zcdp(Gaussian(2.0))[0] == pytest.approx(1 / 8)


def test_without_replacement_uses_the_replacement_sensitivity_under_both_relations():
    event = SampledWithoutReplacement(1000, 10, Laplace(0.5))
    amplified = math.log1p(0.01 * math.expm1(1.0))
    for relation in RELATIONS:
        assert get_epsilon(event, 0.0, relation=relation) == pytest.approx(amplified, rel=1e-12)
    pure = SampledWithoutReplacement(1000, 10, PureDP(1.0))
    assert get_epsilon(pure, 0.0, relation="replace_one") == pytest.approx(amplified, rel=1e-12)
    assert rdp(event, 8.0) > rdp(PoissonSampled(0.01, Laplace(0.5)), 8.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_without_replacement_a_guarantee_for_a_null_record_is_used_twice(epsilon):
    # One of two records runs through a release that is epsilon-DP for a record made null. On one
    # outcome the first record stands as far above the null record as it may, the other below it.
    high, low = math.exp(epsilon), math.exp(-epsilon)
    truth = math.log((high + low) / (1.0 + low))
    for release in (PureDP(epsilon), ExponentialMechanism(epsilon), ApproximateDP(epsilon, 0.0)):
        assert get_epsilon(SampledWithoutReplacement(2, 1, release), 0.0) >= truth
    answers = SampledWithoutReplacement(2, 1, RandomizedResponse(epsilon))
    amplified = math.log1p(0.5 * math.expm1(epsilon))
    assert get_epsilon(answers, 0.0) == pytest.approx(amplified, rel=1e-12)


def test_the_search_for_the_best_run_is_not_free():
    assert get_epsilon(RandomStopping(Gaussian(4.0), 10), 1e-5) > get_epsilon(Gaussian(4.0), 1e-5)


def test_a_group_in_a_sample_of_everything_is_moved_twice_by_each_replacement():
    whole = PoissonSampled(1.0, Laplace(0.3))
    rho, _ = zcdp(whole, relation="replace_one", group_size=2)
    assert rho >= zcdp(Laplace(4 * 0.3))[0]
    assert get_epsilon(whole, 1e-9, relation="replace_one", group_size=2) >= 4 * 0.3 * 0.999
