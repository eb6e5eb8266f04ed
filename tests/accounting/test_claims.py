"""What a release was calibrated to, or what `epsilon` says of it, can be charged; no less can."""

import math
import random

import pytest

import skdp.accounting as privacy
from skdp import PrivacyAccountant
from skdp.accounting import (
    ZCDP,
    ApproximateDP,
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
    get_epsilon,
)

RELATIONS = ("add_remove", "replace_one")


def additive(rng):
    return rng.choice(
        [
            Gaussian(rng.uniform(0.5, 8)),
            Laplace(rng.uniform(0.05, 2)),
            DiscreteGaussian(rng.uniform(0.6, 8), rng.randint(1, 2)),
            DiscreteLaplace(rng.uniform(0.6, 8), rng.randint(1, 2)),
        ]
    )


def leaf(rng):
    pure = rng.uniform(0.05, 1.5)
    return rng.choice(
        [
            additive(rng),
            PoissonSampled(rng.uniform(1e-4, 0.5), additive(rng)),
            PoissonSampled(10 ** rng.uniform(-6, -1), Gaussian(rng.uniform(0.6, 4))),
            SampledWithoutReplacement(1000, rng.randint(1, 300), additive(rng)),
            PureDP(pure),
            ExponentialMechanism(pure),
            RandomizedResponse(pure, rng.randint(2, 6)),
            ApproximateDP(pure, 1e-15),
            ZCDP(0.1 * pure, rng.choice([0.0, 1e-15])),
            RandomStopping(additive(rng), rng.uniform(1, 20), 1.0),
        ]
    )


def composition(rng):
    """One to three kinds of release, some of them many times."""
    events = [leaf(rng) * rng.choice([1, 1, 2, 7, 60]) for _ in range(rng.choice([1, 1, 2, 3]))]
    return sum(events[1:], events[0])


def random_events(seed, count):
    rng = random.Random(seed)
    for i in range(count):
        yield composition(rng), RELATIONS[i % 2], 10 ** rng.uniform(-12, -3)


def charge(event, relation, **claim):
    return PrivacyAccountant(1e6, 0.9, relation=relation).charge(event, **claim)


def claimed(event, relation, epsilon, delta):
    spend = charge(event, relation, epsilon=epsilon, delta=delta)
    return spend.epsilon, spend.delta


def check_claims(seed, count):
    for event, relation, delta in random_events(seed, count):
        price = get_epsilon(event, delta, relation=relation)
        assert 0.0 <= price < math.inf
        assert claimed(event, relation, price, delta) == (price, delta)
        other = privacy.get_delta(event, price, relation=relation)
        assert claimed(event, relation, price, other) == (price, other)
        if price > 1e-2:
            with pytest.raises(ValueError, match="is not"):
                claimed(event, relation, 0.99 * price, delta)


@pytest.mark.thorough
def test_every_price_can_be_charged_and_no_less():
    check_claims(0, 24)


@pytest.mark.slow
def test_every_price_of_many_events_can_be_charged_and_no_less():
    check_claims(1, 2000)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_ledger_takes_a_price_and_states_the_same(relation):
    event = PureDP(0.1580670251594314) * 3
    delta = 1.2841048536992213e-05
    price = get_epsilon(event, delta, relation=relation)
    assert charge(event, relation, delta=delta).epsilon == price
    assert charge(event, relation, epsilon=price, delta=delta).epsilon == price


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_adds_up_exactly_can_be_charged_at_the_sum(relation):
    event = ApproximateDP(3.0, 1e-6) + Laplace(3.0)
    assert get_epsilon(event, 1e-6, relation=relation) == 6.0
    assert claimed(event, relation, 6.0, 1e-6) == (6.0, 1e-6)
    # The exact sum of ten times this number is no double.
    tenths = PureDP(0.1) * 10
    assert get_epsilon(tenths, 0.0, method="basic") == math.nextafter(1.0, 2.0)


def test_a_release_that_costs_nothing_can_be_charged():
    assert get_epsilon(Laplace(0.01), 0.1) == 0.0
    assert charge(Laplace(0.01), "add_remove", epsilon=0.0, delta=0.1).epsilon == 0.0
    with pytest.raises(ValueError, match="is not"):
        charge(Laplace(0.5), "add_remove", epsilon=0.0, delta=0.1)


FAMILIES = [
    lambda s: PoissonSampled(0.09487263016853538, Gaussian(s)) * 218,
    lambda s: PoissonSampled(1e-3, Gaussian(s)) * 4,
    lambda s: PoissonSampled(0.2, Laplace(s)) * 5,
    lambda s: SampledWithoutReplacement(1000, 30, Gaussian(s)) * 20,
    lambda s: Gaussian(s) * 3 + Laplace(0.1),
    lambda s: DiscreteGaussian(s) * 4,
    lambda s: ExponentialMechanism(s) * 5,
    lambda s: RandomStopping(Gaussian(s), 10.0),
    lambda s: Gaussian(s),
]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", FAMILIES)
def test_what_was_calibrated_can_be_charged(make, relation):
    eps, delta = 1.7105818547756004, 1.8486635926699605e-06
    event = make(calibrate(make, eps, delta, relation=relation, rtol=1e-4))
    assert claimed(event, relation, eps, delta) == (eps, delta)


OPTIONS = [{"tolerance": 1e-6}, {"tolerance": 1e-2}, {"method": "rdp"}, {"group_size": 2}]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_of_the_calibration_do_not_matter(options):
    make, (eps, delta) = FAMILIES[0], (1.1, 1e-6)
    event = make(calibrate(make, eps, delta, rtol=1e-5, **options))
    rows = options.get("group_size", 1)
    unit = {"unit": "group", "max_rows": rows} if rows > 1 else {}
    spend = PrivacyAccountant(5.0, 1e-3, **unit).charge(event, epsilon=eps, delta=delta)
    assert spend.epsilon <= eps


def test_groups_are_charged_what_they_cost():
    rng = random.Random(2)
    for _ in range(4):
        event, relation, delta = additive(rng) * rng.randint(1, 3), rng.choice(RELATIONS), 1e-7
        price = get_epsilon(event, delta, relation=relation, group_size=2)
        accountant = PrivacyAccountant(1e6, 0.9, relation=relation, unit="group", max_rows=2)
        assert accountant.charge(event, epsilon=price, delta=delta).epsilon == price


@pytest.mark.parametrize(
    "event",
    [Gaussian(1.0), DiscreteGaussian(1.0), ZCDP(1.0), PoissonSampled(0.1, Gaussian(1.0)) * 3],
)
def test_a_delta_that_underflows_proves_no_pure_claim(event):
    assert get_epsilon(event, 0.0) == math.inf
    with pytest.raises(ValueError, match="not"):
        claimed(event, "add_remove", 700.0, 0.0)


def test_events_of_every_kind_count_how_deep_they_nest():
    event = PureDP(1e-6)
    with pytest.raises(ValueError, match="nested"):
        for _ in range(150):
            event = RandomStopping(event, 1.0, -0.5)


def test_the_least_losses_end_a_search():
    for event in (
        PureDP(1e-320),
        ApproximateDP(1e-320, 1e-9),
        PoissonSampled(0.01, PureDP(1e-320)),
    ):
        assert get_epsilon(event, 1e-9) <= 1e-319
