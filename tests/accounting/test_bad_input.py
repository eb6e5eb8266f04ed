import math
import pickle

import pytest

from skdp import PrivacyAccountant
from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomStopping,
    Repeated,
    SampledWithoutReplacement,
    advanced_epsilon,
    calibrate,
    convert_relation,
    event_from_json,
    gaussian_delta,
    gdp,
    gdp_to_delta,
    gdp_to_epsilon,
    get_delta,
    get_epsilon,
    rdp,
    rdp_to_delta,
    rdp_to_epsilon,
    trade_off,
    zcdp,
    zcdp_to_delta,
    zcdp_to_epsilon,
)


def test_delta_zero_is_infinite_without_pure_events():
    for event in (Gaussian(1.0), PoissonSampled(0.1, Gaussian(1.0)), ZCDP(0.1)):
        for method in ("auto", "rdp", "zcdp", "basic"):
            assert get_epsilon(event, 0.0, method=method) == math.inf
    assert get_epsilon(Gaussian(1.0) * 0, 0.0) == 0.0


def test_delta_one_is_free():
    assert get_epsilon(Gaussian(1e-3), 1.0) == 0.0


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
    found = get_epsilon(event * 10**12, 1e-6)
    assert 0.0 < found < math.inf
    assert get_epsilon(Repeated(event, 10**12), 1e-9) >= found


def test_methods_without_a_curve_say_so():
    for event in (ZCDP(0.1), RandomStopping(Gaussian(4.0), 3)):
        with pytest.raises(ValueError, match="privacy loss distribution"):
            get_epsilon(event + Laplace(1.0), 1e-5, method="pld")
        with pytest.raises(ValueError, match="privacy loss distribution"):
            get_delta(event, 1.0, method="pld")
        assert get_epsilon(event + Laplace(1.0), 1e-5) < math.inf


def test_extreme_parameters_stay_finite_or_say_infinity():
    assert get_epsilon(Laplace(1e5) * 10, 1e-6) <= 1e6
    assert get_epsilon(PoissonSampled(0.5, Gaussian(0.01)) * 10, 1e-6) < 1e5
    assert get_epsilon(PoissonSampled(1e-9, Gaussian(0.1)) * 10, 1e-6) == pytest.approx(
        0.0, abs=0.01
    )
    assert get_epsilon(PoissonSampled(0.0, Gaussian(1.0)) * 10, 0.0) == 0.0
    assert get_epsilon(ApproximateDP(0.1, 1e-7) * 11, 1e-6) == math.inf
    assert get_delta(Gaussian(1.0), math.inf) == 0.0


@pytest.mark.parametrize("value", [math.nan, -1.0, 1.5, True])
def test_bad_delta_and_alpha(value):
    with pytest.raises(ValueError):
        get_epsilon(Gaussian(1.0), value)
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
        lambda: get_epsilon(Gaussian(1.0), 1e-6, tolerance=0.0),
        lambda: get_delta(Gaussian(1.0), math.nan),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(1e-200),
        lambda: Gaussian(1e200),
        lambda: DiscreteGaussian(1e-200),
        lambda: DiscreteLaplace(1e-310),
        lambda: PureDP(1e308),
        lambda: Laplace(1e308),
        lambda: Gaussian(1.0) * 10**400,
        lambda: Gaussian("1.0"),
        lambda: Gaussian(b"1"),
        lambda: Gaussian(None),
        lambda: Gaussian([1.0]),
        lambda: get_epsilon(Gaussian(1.0) * 10**100 * 10**100, 1e-5),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, group_size=10**400),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, group_size=math.inf),
        lambda: get_epsilon(PoissonSampled(0.1, Gaussian(1.0)), 1e-5, group_size=1e30),
        lambda: get_epsilon(Gaussian(1.0), "1e-5"),
        lambda: get_epsilon(Gaussian(1.0), None),
        lambda: get_epsilon(Gaussian(1.0), [1e-5]),
        lambda: get_epsilon(Gaussian(1.0), 1e-5, tolerance="a"),
        lambda: get_delta(Gaussian(1.0), "1"),
        lambda: trade_off(Gaussian(1.0), ".1"),
        lambda: rdp(Gaussian(1.0), "2"),
        lambda: gaussian_delta("1", 1.0),
        lambda: calibrate(Gaussian, 1.0, 1e-5, bounds=None),
        lambda: calibrate(Gaussian, 1.0, 1e-5, rtol="a"),
        lambda: event_from_json("[" * 100_000),
        lambda: event_from_json('{"type":"Gaussian","noise_multiplier":"1"}'),
        lambda: event_from_json('{"type":"Gaussian","noise_multiplier":1,"noise_multiplier":2}'),
    ],
)
def test_out_of_range_or_no_number(make):
    with pytest.raises(ValueError):
        make()


def test_the_limits_of_parameters_still_have_a_price():
    huge, small = Gaussian(1e100), Gaussian(1e-50)
    assert zcdp(small)[0] >= 5e99 and rdp(small, 2.0) >= 9e99 and gdp(small) == pytest.approx(1e50)
    for event in (PoissonSampled(0.01, huge), SampledWithoutReplacement(100, 1, huge), huge):
        for relation in ("add_remove", "replace_one"):
            assert get_epsilon(event * 10, 1e-5, relation=relation) == 0.0
    for event in (
        small,
        PoissonSampled(0.01, Gaussian(1e-40)),
        PoissonSampled(0.5, Gaussian(1e-5)),
    ):
        for relation in ("add_remove", "replace_one"):
            assert get_epsilon(event, 1e-5, relation=relation) >= 1e9
    assert get_epsilon(ApproximateDP(1.0, 1e-9), 1e-5, group_size=10**6) == math.inf
    assert get_epsilon(Gaussian(1.0) * 10**100, 1e-5) >= 5e99


def nested(depth):
    event = Gaussian(1.0)
    for _ in range(depth):
        event = Repeated(event, 2)
    return event


def test_nesting_has_a_limit():
    deepest = nested(100)
    assert event_from_json(deepest.to_json()) == deepest
    assert hash(event_from_json(deepest.to_json())) == hash(deepest)
    with pytest.raises(ValueError, match="nested"):
        nested(101)
    text = Gaussian(1.0).to_json()
    for _ in range(500):
        text = '{"type":"Repeated","count":1,"event":' + text + "}"
    with pytest.raises(ValueError, match="nested"):
        event_from_json(text)


def doubled(depth):
    event = Gaussian(1e6)
    for _ in range(depth):
        event = Composed((event, event))
    return event


@pytest.mark.parametrize("group_size", [1, 2])
def test_prices_are_not_looked_up_by_comparing_every_part_of_two_events(group_size):
    """Of events that were built apart, which are 2^40 parts to compare."""
    one, other = (get_epsilon(doubled(40), 1e-5, group_size=group_size) for _ in range(2))
    assert one == other > 0.0


def test_a_part_that_occurs_twice_in_every_level_is_priced_once():
    event = doubled(40)
    assert get_epsilon(event, 1e-5) == get_epsilon(Gaussian(1e6) * 2**40, 1e-5)
    assert hash(event) == hash(Composed(event.events))
    with pytest.raises(ValueError, match="too long"):
        event.to_json()


def test_a_pickle_holds_no_cached_hash():
    event = Gaussian(1.0) * 3 + Laplace(0.1)
    before = pickle.dumps(event)
    assert hash(pickle.loads(before)) == hash(event)
    assert pickle.dumps(event) == before
    assert pickle.loads(before) == event


NO_NUMBER = (math.nan, -1.0, True, "0.1", 10**400)


@pytest.mark.parametrize(
    "call",
    [
        lambda value: gdp_to_epsilon(value, 1e-5),
        lambda value: gdp_to_epsilon(1.0, value),
        lambda value: gdp_to_delta(value, 1.0),
        lambda value: rdp_to_epsilon(value, 2.0, 1e-5),
        lambda value: rdp_to_delta(value, 2.0, 1.0),
        lambda value: zcdp_to_epsilon(value, 1e-5),
        lambda value: zcdp_to_epsilon(0.1, 1e-5, value),
        lambda value: zcdp_to_delta(value, 1.0),
        lambda value: zcdp_to_delta(0.1, 1.0, value),
        lambda value: advanced_epsilon([(value, 0.0)], 1e-6),
        lambda value: advanced_epsilon([(0.1, value)], 1e-6),
        lambda value: advanced_epsilon([(0.1, 0.0, value)], 1e-6),
    ],
)
def test_conversions_take_numbers_in_range_alone(call):
    for value in NO_NUMBER:
        with pytest.raises(ValueError, match="must be (a number|within)"):
            call(value)


def test_no_charge_or_partition_by_what_only_looks_false():
    accountant = PrivacyAccountant(1.0, 1e-6, ledger="memory://")
    for value in (False, "", [], {}):
        with pytest.raises(ValueError, match="delta must be a number"):
            accountant.charge(PureDP(0.1), epsilon=0.1, delta=value)
    assert accountant.epsilon_spent == 0.0
    for value in ("no", 0, None):
        with pytest.raises(ValueError, match="by_index"):
            accountant.disjoint("part", 2, by_index=value)


@pytest.mark.parametrize("text", ["\ud800", "a count \udfff", "\udc80 by hand"])
def test_a_text_that_cannot_be_written_is_refused_before_the_charge(text):
    accountant = PrivacyAccountant(1.0, 0.0)
    head = accountant.verify()
    for use in (
        lambda: accountant.charge(PureDP(0.1), label=text),
        lambda: accountant.reserve(0.1, label=text),
        lambda: accountant.close(reason=text),
        lambda: accountant.change_limit(2.0, 0.0, reason=text),
        lambda: accountant.sub_limit("team", 0.5, 0.0, users=["ann"], reason=text),
        lambda: accountant.as_user(text),
        lambda: accountant.disjoint(text, 2),
        lambda: PrivacyAccountant(1.0, 0.0, dataset=text),
    ):
        with pytest.raises(ValueError):
            use()
    assert accountant.verify() == head
    accountant.charge(PureDP(0.1), label="\U0001f600")
