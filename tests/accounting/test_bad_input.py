import math

import pytest

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomStopping,
    Repeated,
    convert_relation,
    delta,
    epsilon,
    rdp,
    trade_off,
    zcdp,
)


def test_delta_zero_is_infinite_without_pure_events():
    for event in (Gaussian(1.0), PoissonSampled(0.1, Gaussian(1.0)), ZCDP(0.1)):
        for method in ("auto", "rdp", "zcdp", "basic"):
            assert epsilon(event, 0.0, method=method) == math.inf
    assert epsilon(Gaussian(1.0) * 0, 0.0) == 0.0


def test_delta_one_is_free():
    assert epsilon(Gaussian(1e-3), 1.0) == 0.0


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(0.01, Gaussian(1.0)),
        PoissonSampled(1e-6, Gaussian(10.0)),
        PureDP(1e-6),
        Laplace(1.0),
        DiscreteGaussian(1e3),
        Gaussian(1e6),
    ],
    ids=lambda event: event.to_json(),
)
def test_a_million_million_steps(event):
    found = epsilon(event * 10**12, 1e-6)
    assert 0.0 < found < math.inf
    assert epsilon(Repeated(event, 10**12), 1e-9) >= found


def test_methods_without_a_curve_say_so():
    for event in (ZCDP(0.1), RandomStopping(Gaussian(4.0), 3)):
        with pytest.raises(ValueError, match="privacy loss distribution"):
            epsilon(event + Laplace(1.0), 1e-5, method="pld")
        with pytest.raises(ValueError, match="privacy loss distribution"):
            delta(event, 1.0, method="pld")
        assert epsilon(event + Laplace(1.0), 1e-5) < math.inf


def test_extreme_parameters_stay_finite_or_say_infinity():
    assert epsilon(Laplace(1e5) * 10, 1e-6) <= 1e6
    assert epsilon(PoissonSampled(0.5, Gaussian(0.01)) * 10, 1e-6) < 1e5
    assert epsilon(PoissonSampled(1e-9, Gaussian(0.1)) * 10, 1e-6) == pytest.approx(0.0, abs=0.01)
    assert epsilon(PoissonSampled(0.0, Gaussian(1.0)) * 10, 0.0) == 0.0
    assert epsilon(ApproximateDP(0.1, 1e-7) * 11, 1e-6) == math.inf
    assert delta(Gaussian(1.0), math.inf) == 0.0


@pytest.mark.parametrize("value", [math.nan, -1.0, 1.5, True])
def test_bad_delta_and_alpha(value):
    with pytest.raises(ValueError):
        epsilon(Gaussian(1.0), value)
    with pytest.raises(ValueError):
        trade_off(Gaussian(1.0), value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rdp(Gaussian(1.0), 1.0),
        lambda: rdp(Gaussian(1.0), math.inf),
        lambda: rdp(Gaussian(1.0), 2.0, relation="both"),
        lambda: zcdp(Gaussian(1.0), relation="both"),
        lambda: zcdp(Gaussian(1.0), group_size=1.5),
        lambda: convert_relation(1.0, 1e-6, "add_remove", "swap"),
        lambda: epsilon(Gaussian(1.0), 1e-6, tolerance=0.0),
        lambda: delta(Gaussian(1.0), math.nan),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError):
        call()
