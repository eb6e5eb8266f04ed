"""Mechanisms that add noise, and the plans of one release."""

import inspect
import math
import pickle
import warnings
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp import accounting, mechanisms
from skdp.accounting import Composed, Guarantee
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import (
    GammaNormMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    ReportNoisyMax,
    _gaussian,
    _grid,
    _laplace,
)
from skdp.mechanisms._grid import grid_step
from skdp.mechanisms._plan import Mechanism, Plan, join_plans, plan_release
from skdp.noise import RandomSource, discrete_gaussian, discrete_laplace, rounded_norm_noise

MECHANISMS = [
    LaplaceMechanism(1.0, 2.0),
    GaussianMechanism(1.0, 1e-5, 2.0),
    GammaNormMechanism(1.0, 2.0),
]
by_name = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


@by_name
def test_release_returns_its_like(mechanism):
    assert isinstance(mechanism.release(3), float)
    assert isinstance(mechanism.release(np.float32(3)), float)
    for values in (
        [1, 2, 3],
        np.zeros((2, 3), dtype=np.float32),
        np.ones((1, 1, 1), dtype=np.int8),
    ):
        released = mechanism.release(values)
        assert released.shape == np.shape(values) and released.dtype == np.float64


def check_fresh(mechanism):
    source = seeded(1)
    releases = [mechanism.release(np.zeros(3), random_state=source) for _ in range(20)]
    releases += [mechanism.release(np.zeros(3)) for _ in range(20)]
    assert len({r.tobytes() for r in releases}) == 40


@by_name
def test_every_release_has_its_own_noise(mechanism):
    check_fresh(mechanism)


@by_name
def test_every_value_has_its_own_noise(mechanism):
    """Two of 64 draws are equal with a probability of 1e-3 at most, nine with less than 1e-20."""
    assert len(set(mechanism.release(np.zeros(64)).tolist())) > 56


@by_name
def test_an_integer_is_reproducible_and_warns(mechanism):
    with pytest.warns(SeededNoiseWarning):
        first = mechanism.release([1.0, 2.0], random_state=3)
    second = mechanism.release([1.0, 2.0], random_state=seeded(3))
    assert np.array_equal(first, second)


@by_name
@pytest.mark.parametrize("value", [0.1, -7.0, 1e6, 123456.789e9])
def test_releases_lie_on_a_grid_whatever_the_value(mechanism, value):
    source = seeded(2)
    step = mechanism.scale * 2.0**-23
    step = 2.0 ** math.floor(math.log2(step))
    released = [mechanism.release(value, random_state=source) for _ in range(50)]
    assert all(float(r / step).is_integer() for r in released)


def check_noise(mechanism, n=3000):
    """Mean and variance of the noise, within five standard errors."""
    source = seeded(3)
    noise = np.array([mechanism.release([5.0, -1e3], random_state=source) for _ in range(n)])
    noise -= [5.0, -1e3]
    variance = {"Laplace mechanism": 2.0, "Gaussian mechanism": 1.0, "Gamma-norm mechanism": 3.0}
    sd = mechanism.scale * math.sqrt(variance[mechanism.name])
    assert np.all(np.abs(noise.mean(axis=0)) < 5 * sd / math.sqrt(n))
    # The kurtosis is at most 6, so a variance has a relative standard error of sqrt(5 / n).
    assert np.all(np.abs(noise.var(axis=0) / sd**2 - 1) < 5 * math.sqrt(5 / n))


@by_name
def test_noise_is_centered_and_of_the_stated_scale(mechanism):
    check_noise(mechanism)


@by_name
def test_half_the_noise_is_caught(mechanism, monkeypatch):
    def halved(sampler):
        return lambda scale, *args: sampler(scale / 2, *args)

    def halved_norm(offset, scale, stream):
        return rounded_norm_noise(offset, scale / 2, stream)

    for kind, sampler in (
        (LaplaceMechanism, discrete_laplace),
        (GaussianMechanism, discrete_gaussian),
    ):
        monkeypatch.setattr(kind, "_sample", staticmethod(halved(sampler)))
    monkeypatch.setattr(_gaussian, "rounded_norm_noise", halved_norm)
    with pytest.raises(AssertionError):
        check_noise(mechanism, n=1500)


@by_name
def test_noise_shared_by_releases_is_caught(mechanism, monkeypatch):
    for module in (_grid, _gaussian):
        monkeypatch.setattr(module, "as_source", lambda random_state: seeded(0))
    with pytest.raises(AssertionError):
        check_fresh(mechanism)


@by_name
def test_large_values_do_not_overflow_and_keep_the_others_noise(mechanism):
    released = mechanism.release([1e300, -1e25, 0.5], random_state=seeded(4))
    assert released[0] == 1e300
    assert abs(released[1] + 1e25) < 1e12
    assert 1e-6 < abs(released[2] - 0.5) < 100 * mechanism.scale


@by_name
@pytest.mark.parametrize(
    "bad", [np.nan, np.inf, 1e308, None, "a", 1j, [None, 1], 2**53 + 1, 2**70, [], np.longdouble(1)]
)
def test_bad_values(mechanism, bad):
    with pytest.raises(ValueError, match="values"):
        mechanism.release(bad)


@pytest.mark.parametrize("cls", [LaplaceMechanism, GammaNormMechanism, GaussianMechanism])
@pytest.mark.parametrize("bad", [0, 0.0, -1.0, np.nan, np.inf, None, "1", True, 10**400, [1.0]])
def test_bad_parameters(cls, bad):
    delta = {"delta": 1e-5} if cls is GaussianMechanism else {}
    with pytest.raises(ValueError, match="epsilon must be"):
        cls(epsilon=bad, sensitivity=1.0, **delta)
    with pytest.raises(ValueError, match="sensitivity must be"):
        cls(epsilon=1.0, sensitivity=bad, **delta)


@pytest.mark.parametrize("cls", [LaplaceMechanism, GammaNormMechanism, GaussianMechanism])
@pytest.mark.parametrize("sensitivity", [1e-300, 1e300])
def test_scales_that_overflow(cls, sensitivity):
    delta = {"delta": 1e-5} if cls is GaussianMechanism else {}
    with pytest.raises(ValueError, match="scale"):
        cls(epsilon=1.0, sensitivity=sensitivity, **delta)


@pytest.mark.parametrize("bad", [0, -1e-5, 1.0, 2, np.nan, None, "x"])
def test_bad_delta(bad):
    with pytest.raises(ValueError, match="delta must be"):
        GaussianMechanism(1.0, bad, 1.0)


@pytest.mark.parametrize("bad", [-1, 1.5, "x", np.random.default_rng(0)])
@by_name
def test_bad_random_state(mechanism, bad):
    with pytest.raises(ValueError, match="random_state"):
        mechanism.release(1.0, random_state=bad)


def test_mechanisms_are_values():
    assert LaplaceMechanism(1, 2) == LaplaceMechanism(1.0, 2.0)
    assert hash(GaussianMechanism(1, 1e-5, 2)) == hash(GaussianMechanism(1.0, 1e-5, 2.0))
    with pytest.raises(AttributeError):
        LaplaceMechanism(1, 2).epsilon = 3


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 5.0, 1e3, 1e8])
def test_scales_and_events(epsilon):
    laplace = LaplaceMechanism(epsilon, 3.0)
    assert Fraction(laplace.scale) >= Fraction(3) / Fraction(epsilon)
    assert laplace.event == accounting.Laplace(epsilon)
    assert laplace.scale == pytest.approx(3 / epsilon)
    assert LaplaceMechanism.from_scale(laplace.scale, 3.0).epsilon == pytest.approx(epsilon)
    assert GammaNormMechanism(epsilon, 3.0).event == accounting.PureDP(epsilon)
    gaussian = GaussianMechanism(epsilon, 1e-6, 3.0)
    z = gaussian.event.noise_multiplier
    assert Fraction(gaussian.scale) >= Fraction(z) * 3
    assert accounting.gaussian_delta(z, epsilon) <= 1e-6
    assert accounting.gaussian_delta(z * (1 - 1e-6), epsilon) > 1e-6
    back = GaussianMechanism.from_scale(gaussian.scale, 3.0, 1e-6)
    assert back.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert back.scale <= gaussian.scale * (1 + 1e-15)


def test_gaussian_from_rho():
    mechanism = GaussianMechanism.from_rho(0.125, 3.0, 1e-6)
    assert mechanism.scale == pytest.approx(3.0 / math.sqrt(2 * 0.125))
    assert mechanism.rho == pytest.approx(0.125)
    assert mechanism.epsilon == pytest.approx(accounting.get_epsilon(mechanism.event, 1e-6))


def test_classical_calibration():
    classical = GaussianMechanism(0.5, 1e-5, 2.0, calibration="classical")
    assert classical.scale == pytest.approx(math.sqrt(2 * math.log(1.25e5)) * 2 / 0.5)
    assert classical.scale > GaussianMechanism(0.5, 1e-5, 2.0).scale
    with pytest.raises(ValueError, match="epsilon <= 1"):
        GaussianMechanism(1.01, 1e-5, 2.0, calibration="classical")
    with pytest.raises(ValueError, match="calibration"):
        GaussianMechanism(1.0, 1e-5, 2.0, calibration="other")


def test_a_noise_multiplier_that_does_not_suffice():
    z = GaussianMechanism(1.0, 1e-5, 2.0).noise_multiplier
    assert GaussianMechanism(1.0, 1e-5, 2.0, noise_multiplier=z).scale > 0
    with pytest.raises(ValueError, match="too small"):
        GaussianMechanism(1.0, 1e-5, 2.0, noise_multiplier=z * 0.999)


def check_laplace_pays(epsilon, d, scale_in_steps):
    """The inequalities of docs/theory/mechanisms.md, in rational numbers."""
    mechanism = LaplaceMechanism(epsilon, 0.7)
    step = grid_step(mechanism.scale, 0.7 / d)
    scale = Fraction(scale_in_steps(0.7, epsilon, d, step))
    assert scale >= 2**18
    distance = Fraction(0.7) / Fraction(step) + d
    assert distance / scale + d / (4 * scale**2) <= Fraction(epsilon)
    extra = max(2.0**-15, 2.0**-43 * d / epsilon)
    assert scale * Fraction(step) <= Fraction(mechanism.scale * (1 + extra))


def check_gaussian_pays(epsilon, d, sigma_in_steps):
    """The inequalities of docs/theory/mechanisms.md, in rational numbers."""
    mechanism = GaussianMechanism(epsilon, 1e-6, 0.7)
    step = grid_step(mechanism.scale, 0.7 / math.sqrt(d))
    sigma = Fraction(sigma_in_steps(mechanism.scale, 0.7, math.sqrt(d), step))
    assert sigma >= 2**18
    root = Fraction(math.nextafter(math.sqrt(d), math.inf))
    distance = Fraction(0.7) / Fraction(step) + root
    assert sigma**2 - 16 >= (distance * Fraction(mechanism.noise_multiplier)) ** 2
    assert sigma * Fraction(step) <= Fraction(mechanism.scale) * (1 + Fraction(1, 2**15))


@pytest.mark.parametrize("d", [1, 100, 10**6])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0])
def test_the_noise_pays_for_rounding(d, epsilon):
    check_laplace_pays(epsilon, d, _laplace.scale_in_steps)
    check_gaussian_pays(epsilon, d, _gaussian.sigma_in_steps)


@pytest.mark.parametrize("d", [1, 100])
def test_noise_that_does_not_pay_for_rounding_is_caught(d):
    with pytest.raises(AssertionError):
        check_laplace_pays(1.0, d, lambda delta, eps, d, step: delta / step / eps)
    with pytest.raises(AssertionError):
        check_gaussian_pays(1.0, d, lambda sigma, delta, root, step: sigma / step)


@pytest.mark.quick_cases(every=6)
@by_name
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_expected_error_covers(mechanism, confidence):
    source, n = seeded(7), 2000
    errors = np.array([mechanism.release(np.zeros(4), random_state=source) for _ in range(n)])
    if isinstance(mechanism, GammaNormMechanism):
        size = np.linalg.norm(errors, axis=1)
    else:
        size = np.abs(errors).max(axis=1)
    inside = np.sum(size <= mechanism.expected_error(confidence, size=4))
    assert stats.binomtest(int(inside), n, confidence).pvalue > 1e-5


def test_gaussian_rounds_the_value_plus_the_noise(monkeypatch):
    """What the sampler is told to add before rounding and the steps make up the value, exactly."""
    offsets = []

    def no_noise(offset, scale, stream):
        offsets.extend(offset.tolist())
        return np.zeros(offset.size, dtype=np.int64)

    monkeypatch.setattr(_gaussian, "rounded_norm_noise", no_noise)
    values = [0.1, -7.3, 1e6 / 3, 5e-7, -123456.789]
    released = MECHANISMS[2].release(values).tolist()
    step = Fraction(2) ** (math.floor(math.log2(MECHANISMS[2].scale * math.sqrt(5))) - 20)
    assert all((Fraction(r) / step).denominator == 1 for r in released)
    for value, rounded, offset in zip(values, released, offsets, strict=True):
        assert Fraction(value) == Fraction(rounded) + Fraction(offset) * step
    assert all(0 < abs(offset) <= 0.5 for offset in offsets)


@by_name
@pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"confidence": 0}, {"size": 0}])
def test_expected_error_refuses(mechanism, bad):
    with pytest.raises(ValueError):
        mechanism.expected_error(**bad)


def unchecked(multiplier):
    """A mechanism of any noise multiplier, to look at its rho alone."""
    mechanism = object.__new__(GaussianMechanism)
    object.__setattr__(mechanism, "noise_multiplier", multiplier)
    return mechanism


def test_rho_is_rounded_up_and_from_rho_pays_for_it():
    rng = np.random.default_rng(0)
    for z in [*rng.uniform(0.1, 100, 2000), 1e-140, 1e140, 1e160, 1e300]:
        true = 1 / (2 * Fraction(float(z)) ** 2)
        found = Fraction(unchecked(float(z)).rho)
        assert true <= found <= true * (1 + Fraction(1, 2**52)) + Fraction(5e-324)
    for rho in 10.0 ** rng.uniform(-20, 5, 1000):
        z = Fraction(GaussianMechanism.from_rho(rho, 1.0, 1e-6).noise_multiplier)
        assert 1 <= 2 * Fraction(float(rho)) * z**2 <= 1 + Fraction(1, 2**50)


TOO_SMALL = [
    (LaplaceMechanism, {"epsilon": 1e-15, "sensitivity": 1.0}),
    (LaplaceMechanism, {"epsilon": 1e-270, "sensitivity": 1.0}),
    (GaussianMechanism, {"epsilon": 1e-16, "delta": 1e-15, "sensitivity": 1.0}),
    (ReportNoisyMax, {"epsilon": 1e-15, "sensitivity": 1.0, "noise": "laplace"}),
    (ReportNoisyMax, {"epsilon": 1e-260, "sensitivity": 1.0, "noise": "laplace"}),
]


@pytest.mark.parametrize("cls, parameters", TOO_SMALL)
def test_what_can_release_nothing_is_not_built(cls, parameters):
    with pytest.raises(ValueError, match=r"epsilon=\S+ is too small for 1 value"):
        cls(**parameters)


@pytest.mark.parametrize(
    "mechanism",
    [LaplaceMechanism(1e-9, 1.0), GaussianMechanism(1e-13, 1e-13, 1.0), *MECHANISMS],
    ids=lambda m: f"{m.name} {m.epsilon}",
)
def test_check_size_says_what_release_can_do(mechanism):
    fits = mechanism in MECHANISMS
    for size in (1, 10**6 if fits else 10):
        mechanism.check_size(size)
        mechanism.release(np.zeros(min(size, 10)))
    if not fits:
        with pytest.raises(ValueError, match="epsilon=.* is too small for 1000000 value"):
            mechanism.check_size(10**6)
        with pytest.raises(ValueError, match="epsilon=.* is too small for 1000000 value"):
            mechanism.release(np.zeros(10**6))
    for bad in (0, -1, 2.0, True, "3", None):
        with pytest.raises(ValueError, match="size"):
            mechanism.check_size(bad)


@pytest.mark.parametrize(
    "mechanism, factor",
    [(LaplaceMechanism(1e-11, 1.0), 1.3), (GaussianMechanism(1e-13, 1e-13, 1.0), 1.3)],
    ids=["laplace", "gaussian"],
)
def test_scale_and_error_of_a_release_whose_rounding_costs(mechanism, factor):
    d, n = 100, 200
    scale = mechanism.scale_for(d)
    assert scale > factor * mechanism.scale
    source = seeded(8)
    errors = np.abs([mechanism.release(np.zeros(d), random_state=source) for _ in range(n)])
    # Six standard errors: the relative one of a variance is at most sqrt(5 / (n d)).
    moment = 2.0 if isinstance(mechanism, LaplaceMechanism) else 1.0
    assert math.sqrt(np.mean(errors**2) / moment) == pytest.approx(scale, rel=0.05)
    inside = np.sum(errors.max(axis=1) <= mechanism.expected_error(0.5, size=d))
    assert stats.binomtest(int(inside), n, 0.5).pvalue > 1e-5


@by_name
def test_expected_error_of_many_values(mechanism):
    """The confidence of each rounds to 1 in float64."""
    size = 10**12 if isinstance(mechanism, GammaNormMechanism) else 10**16
    if isinstance(mechanism, LaplaceMechanism):
        mechanism = LaplaceMechanism(1e3, 2.0)
    error = mechanism.expected_error(0.95, size)
    assert mechanism.expected_error(0.95, size // 100) < error < math.inf


# Every mechanism keeps the protocol of its kind.


KINDS = [kind for kind in vars(mechanisms).values() if inspect.isclass(kind)]


# They choose, answer, stand for others or release nothing: no noise is added to a vector.
WITHOUT_A_VECTOR = {
    *("ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"),
    *("JointMechanism", "NoRelease", "RandomizedResponse"),
}


def missing(kind):
    """Return what the protocol asks of a mechanism, and its class neither has nor is given."""
    asked = {*inspect.get_annotations(Mechanism)}
    if kind.__name__ not in WITHOUT_A_VECTOR:
        asked |= {name for name in vars(Mechanism) if not name.startswith("_")}
    return sorted(asked - {*dir(kind), *inspect.signature(kind).parameters})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_mechanism_keeps_the_protocol(kind):
    assert missing(kind) == []


def test_what_is_missing_is_named():
    class Silent:
        def __init__(self, epsilon, delta, scale, sensitivity, event):
            pass

        def release(self, values, *, random_state=None):
            return values

    assert missing(Silent) == ["check_size", "deviation", "name"]


def test_a_plan_is_a_frozen_value():
    plan = plan_release(mechanisms.LaplaceMechanism(1.0, 2.0), print, size=3)
    assert pickle.loads(pickle.dumps(plan)) == plan != replace(plan, epsilon=0.5)
    # Plans with the same releases are equal, whatever function makes them.
    assert plan == replace(plan, run=max) and hash(plan) == hash(replace(plan, run=max))
    with pytest.raises(FrozenInstanceError):
        plan.scale = 2.0
    with pytest.raises(TypeError, match="positional"):
        Plan("a sum")


def test_a_plan_of_one_release_has_the_cost_of_its_mechanism():
    mechanism = mechanisms.LaplaceMechanism(1.0, 2.0)
    plan = plan_release(mechanism, print, stage_name="a sum", size=3)
    assert (plan.event, plan.epsilon, plan.delta) == (mechanism.event, 1.0, 0.0)
    assert (plan.scale, plan.sensitivity, plan.run) == (mechanism.scale, 2.0, print)
    assert [(stage.name, stage.event) for stage in plan.stages] == [("a sum", mechanism.event)]
    charged = plan_release(mechanism, print, guarantee=Guarantee(epsilon=3.0, delta=1e-6))
    assert (charged.epsilon, charged.delta, charged.event) == (3.0, 1e-6, mechanism.event)
    with pytest.raises(FrozenInstanceError):
        plan.run = None


def test_a_plan_refuses_values_for_which_no_noise_can_be_drawn():
    mechanism = mechanisms.LaplaceMechanism(1e-13, 1.0)
    assert plan_release(mechanism, print, size=1).run is print
    with pytest.raises(ValueError, match="too small for 1000 value"):
        plan_release(mechanism, print, size=1000)


def test_joined_plans_are_charged_together():
    bounds = plan_release(mechanisms.LaplaceMechanism(0.25, 1.0), print, stage_name="bounds")
    total = plan_release(mechanisms.LaplaceMechanism(0.75, 3.0), print, stage_name="a sum")
    guarantee = Guarantee(epsilon=1.0)
    joined = join_plans([None, bounds, total], guarantee)
    assert (joined.event, joined.epsilon) == (Composed((bounds.event, total.event)), 1.0)
    assert (joined.name, joined.scale) == ("Laplace mechanism, then Laplace mechanism", total.scale)
    assert [stage.name for stage in joined.stages] == ["bounds", "a sum"]
    assert joined.run is None
    assert join_plans([bounds, total], guarantee, main=bounds).scale == bounds.scale
    assert join_plans([None, total], guarantee) is total
