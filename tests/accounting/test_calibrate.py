import math

import pytest

from skdp.accounting import (
    DiscreteGaussian,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomStopping,
    SampledWithoutReplacement,
    calibrate,
    gaussian_noise_multiplier,
    get_epsilon,
)

FAMILIES = {
    "sampled": lambda s: PoissonSampled(0.01, Gaussian(s)) * 1000,
    "laplace": lambda s: Laplace(s) * 10,
    "mix": lambda s: PoissonSampled(0.01, Gaussian(s)) * 100 + Gaussian(2 * s) + Laplace(0.01),
    "discrete": lambda s: DiscreteGaussian(s) * 10,
    "without replacement": lambda s: SampledWithoutReplacement(1000, 10, Gaussian(s)) * 10,
    "stopping": lambda s: RandomStopping(Gaussian(s), 10),
    "selection": lambda s: ExponentialMechanism(s) * 5,
    "gaussians": lambda s: Gaussian(s) * 3 + Gaussian(2 * s),
}


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize("target", [0.1, 3.0])
def test_result_is_safe_and_tight(family, target):
    value = calibrate(family, target, 1e-6)
    cost = get_epsilon(family(value), 1e-6)
    assert target * (1 - 1e-4) <= cost <= target


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("method", ["rdp", "pld", "zcdp"])
def test_every_method_and_relation(method, relation):
    family = FAMILIES["without replacement"]
    options = {"method": method, "relation": relation}
    value = calibrate(family, 1.0, 1e-6, **options)
    assert 1 - 1e-4 <= get_epsilon(family(value), 1e-6, **options) <= 1.0


def test_golden_calibration_row():
    sigma = calibrate(FAMILIES["sampled"], 1.0, 1e-5)
    assert 1.41462 <= sigma <= 1.41462 + 1e-4


@pytest.mark.parametrize("eps", [1e-6, 1e-3, 1.0, 1e4, 1e12])
def test_plain_gaussians_by_the_closed_form(eps):
    value = calibrate(lambda s: Gaussian(s) * 4, eps, 1e-5)
    assert value == pytest.approx(2 * gaussian_noise_multiplier(eps, 1e-5), rel=1e-12)
    assert get_epsilon(Gaussian(value) * 4, 1e-5) <= eps


def test_pure_budget():
    value = calibrate(lambda s: PureDP(s) * 10, 1.0, 0.0)
    assert 0.1 * (1 - 2e-6) <= value <= 0.1


def test_other_parameters_than_noise():
    rate = calibrate(
        lambda q: PoissonSampled(q, Gaussian(1.0)) * 100, 1.0, 1e-6, bounds=(1e-6, 1.0)
    )
    assert 0.01 < rate < 0.02
    steps = calibrate(
        lambda t: PoissonSampled(0.01, Gaussian(1.0)) * int(t), 2.0, 1e-6, bounds=(1, 1e9)
    )
    event = PoissonSampled(0.01, Gaussian(1.0))
    assert (
        get_epsilon(event * int(steps), 1e-6) <= 2.0 < get_epsilon(event * (int(steps) + 1), 1e-6)
    )


def test_groups_need_more_noise():
    one = calibrate(lambda s: Gaussian(s), 1.0, 1e-6)
    assert calibrate(lambda s: Gaussian(s), 1.0, 1e-6, group_size=3) == pytest.approx(3 * one)


def test_a_parameter_far_from_one_fits_too():
    value = calibrate(lambda s: PureDP(s**-0.01), 0.01, 0.0, bounds=(1e-300, 1e300))
    assert 0.01 * (1 - 1e-7) <= get_epsilon(PureDP(value**-0.01), 0.0) <= 0.01


def test_ends_of_the_bounds():
    assert calibrate(lambda s: Laplace(s), 100.0, 0.0, bounds=(0.1, 5.0)) == 5.0
    with pytest.raises(ValueError, match="fits the budget"):
        calibrate(lambda s: Laplace(s), 0.01, 0.0, bounds=(0.1, 5.0))
    with pytest.raises(ValueError, match="fits the budget"):
        calibrate(lambda s: Gaussian(s), 1.0, 0.0)


@pytest.mark.parametrize(
    "options", [{"bounds": (0, 1)}, {"bounds": (2, 1)}, {"rtol": 0.0}, {"method": "clt"}]
)
def test_bad_arguments(options):
    with pytest.raises(ValueError):
        calibrate(lambda s: Gaussian(s), 1.0, 1e-6, **options)
    with pytest.raises(ValueError):
        calibrate(lambda s: Gaussian(s), math.nan, 1e-6)
