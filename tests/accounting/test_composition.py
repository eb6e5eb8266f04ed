import itertools
import math
import random

import numpy as np
import pytest

from skdp import BudgetExceededError, DPStandardScaler, PrivacyAccountant
from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    advanced_epsilon,
    gaussian_noise_multiplier,
    gdp_to_epsilon,
    get_epsilon,
    rdp_to_epsilon,
)
from skdp.ledger import Charge

BUDGET = (3.0, 1e-5)
COMPOSITIONS = [
    {"composition": "basic"},
    {"composition": "zcdp"},
    {"composition": "rdp", "rdp_order": 12.0},
    {"composition": "gdp"},
    {"composition": "advanced"},
    {"composition": "pld"},
    {"composition": "auto"},
]
TERMS = pytest.mark.parametrize("terms", COMPOSITIONS, ids=lambda t: t["composition"])


@TERMS
def test_a_budget_pays_for_one_release_calibrated_to_it(terms):
    event = Gaussian(gaussian_noise_multiplier(*BUDGET))
    accountant = PrivacyAccountant(*BUDGET, **terms)
    accountant.charge(event, epsilon=BUDGET[0], delta=BUDGET[1])
    assert accountant.epsilon_spent <= BUDGET[0]
    assert not accountant.can_afford(event)


@TERMS
def test_totals_never_fall_below_the_truth(terms):
    accountant = PrivacyAccountant(50.0, 1e-5, **terms)
    for count in range(1, 6):
        accountant.charge(Gaussian(3.0))
        assert accountant.epsilon_spent >= get_epsilon(Gaussian(3.0) * count, 1e-5) * (1 - 1e-12)
    assert accountant.epsilon_remaining == pytest.approx(50.0 - accountant.epsilon_spent)


def test_totals_are_those_of_the_theorems():
    spent = {}
    for terms in COMPOSITIONS:
        accountant = PrivacyAccountant(50.0, 1e-5, **terms)
        for _ in range(30):
            accountant.charge(Gaussian(10.0))
        spent[terms["composition"]] = accountant.epsilon_spent
    exact = gdp_to_epsilon(math.sqrt(30) / 10.0, 1e-5)
    assert spent["gdp"] == pytest.approx(exact, rel=1e-9)
    assert spent["pld"] == pytest.approx(exact, rel=1e-9)
    assert spent["auto"] == pytest.approx(exact, rel=1e-9)
    assert spent["rdp"] == pytest.approx(rdp_to_epsilon(30 * 12.0 / 200.0, 12.0, 1e-5))
    assert exact < spent["zcdp"] < spent["advanced"] < spent["basic"]


def test_gdp_adds_pure_releases():
    accountant = PrivacyAccountant(50.0, 1e-5, composition="gdp")
    accountant.charge(Gaussian(2.0))
    accountant.charge(PureDP(0.1))
    assert accountant.epsilon_spent > gdp_to_epsilon(0.5, 1e-5)
    with pytest.raises(ValueError, match="'gdp' has no finite cost for ApproximateDP.*'zcdp'"):
        accountant.charge(ApproximateDP(0.1, 1e-9))
    assert len(accountant.charges) == 2


def test_what_a_filter_cannot_price_is_refused_uncharged():
    accountant = PrivacyAccountant(50.0, 1e-5, composition="rdp", rdp_order=8.0)
    with pytest.raises(ValueError, match="'rdp' has no finite cost for ApproximateDP.*declare"):
        accountant.charge(ApproximateDP(0.1, 1e-9))
    assert accountant.charges == []


@pytest.mark.parametrize(
    "terms",
    [
        {"composition": "rdp"},
        {"composition": "rdp", "rdp_order": 1.0},
        {"composition": "rdp", "rdp_order": "8"},
        {"composition": "zcdp", "rdp_order": 8.0},
        {"unit": "group", "max_rows": 0},
        {"unit": "group", "max_rows": 1.5},
        {"unit": "row", "max_rows": 2},
    ],
)
def test_bad_terms_are_refused(terms):
    with pytest.raises(ValueError):
        PrivacyAccountant(1.0, 1e-5, **terms)


def two_point(loss, probability):
    """Return (P, Q) of an outcome with a loss and a probability under P, and of the rest."""
    P = np.array([probability, 1 - probability])
    Q = np.array([probability * math.exp(-loss), 1 - probability * math.exp(-loss)])
    return P, Q


def divergence(pair, order):
    P, Q = pair
    return math.log(np.sum(P**order * Q ** (1 - order))) / (order - 1)


def test_orders_side_by_side_are_no_filter():
    """Going on while some order is within its budget spends delta twice; one order does not."""
    cap, delta, orders = 4.0, 1e-5, (6, 48)
    budget = {
        a: cap - math.log1p(-1 / a) + (math.log(delta) + math.log(a)) / (a - 1) for a in orders
    }
    first = two_point(0.4, 6.15e-4)
    # After the rare outcome, a release that fills order 48; else one that fills order 6.
    fill = {}
    for order, loss in ((48, 3.6 + 0.021), (6, 4.0 + 0.182)):
        room = budget[order] - divergence(first, order)
        low, high = 0.0, 1.0
        for _ in range(200):
            middle = (low + high) / 2
            inside = divergence(two_point(loss, middle), order) <= room
            low, high = (middle, high) if inside else (low, middle)
        fill[order] = two_point(loss, low)
    hockey_stick = 0.0
    for outcome, order in ((0, 48), (1, 6)):
        P, Q = first[0][outcome] * fill[order][0], first[1][outcome] * fill[order][1]
        hockey_stick += np.maximum(P - math.exp(cap) * Q, 0).sum()
        path = divergence(first, order) + divergence(fill[order], order)
        assert path <= budget[order] * (1 + 1e-12)
    assert hockey_stick > 1.9 * delta
    # A filter at either one order refuses one of the two releases.
    for order, other in ((6, 48), (48, 6)):
        assert divergence(first, order) + divergence(fill[other], order) > budget[order]


@pytest.mark.quick_cases(cover="pairs")
@TERMS
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("by_index", [False, True])
def test_disjoint_parts_compose_in_parallel(terms, relation, by_index):
    def spent(events_of_parts):
        accountant = PrivacyAccountant(100.0, 1e-2, relation=relation, **terms)
        for part, events in zip(
            accountant.disjoint("clinic", 3, by_index=by_index), events_of_parts, strict=True
        ):
            for event in events:
                part.charge(event, epsilon=get_epsilon(event, 1e-4), delta=1e-4)
        accountant.charge(Laplace(0.2))
        return accountant.epsilon_spent

    def together(events):
        accountant = PrivacyAccountant(100.0, 1e-2, relation=relation, **terms)
        for event in events:
            accountant.charge(event, epsilon=get_epsilon(event, 1e-4), delta=1e-4)
        accountant.charge(Laplace(0.2))
        return accountant.epsilon_spent

    large, middle, small = [Gaussian(2.0)] * 2, [Gaussian(3.0)] * 2, [Gaussian(9.0)]
    counted = large + middle if relation == "replace_one" and not by_index else large
    assert spent([middle, small, large]) == pytest.approx(together(counted), rel=1e-9)


def test_a_part_says_what_it_is_and_cannot_be_parted():
    accountant = PrivacyAccountant(1.0, 0.0)
    part = accountant.disjoint("clinic", 2)[1]
    part.charge(PureDP(0.25), label="count")
    assert "part 2 of 2 of 'clinic'" in str(accountant.report())
    assert accountant.charges[0].part.index == 1
    assert part.epsilon_remaining == accountant.epsilon_remaining == 0.75
    with pytest.raises(ValueError, match="do not nest"):
        part.disjoint("ward", 2)
    with pytest.raises(ValueError, match="other parts"):
        accountant.disjoint("clinic", 3)[0].charge(PureDP(0.25))
    for parts in (1, 0, 2.5):
        with pytest.raises(ValueError, match="parts"):
            accountant.disjoint("other", parts)


def test_estimators_take_parts():
    X = np.random.default_rng(0).uniform(size=(100, 2))
    accountant = PrivacyAccountant(1.0, 0.0)
    for rows, part in zip((X[::2], X[1::2]), accountant.disjoint("half", 2), strict=True):
        DPStandardScaler(epsilon=1.0, bounds=(0, 1), accountant=part).fit(rows)
    assert accountant.epsilon_spent == 1.0
    with pytest.raises(BudgetExceededError):
        DPStandardScaler(epsilon=0.1, bounds=(0, 1), accountant=accountant).fit(X)


@TERMS
def test_a_group_pays_for_all_its_rows(terms):
    accountant = PrivacyAccountant(100.0, 1e-4, unit="group", max_rows=3, **terms)
    accountant.charge(Gaussian(12.0))
    group = get_epsilon(Gaussian(4.0), 1e-4)
    assert accountant.epsilon_spent >= group * (1 - 1e-9)
    if terms["composition"] in ("gdp", "pld", "auto"):
        assert accountant.epsilon_spent == pytest.approx(group, rel=1e-9)


def test_a_group_pays_its_epsilon_and_gets_three_times_the_noise():
    accountant = PrivacyAccountant(2.0, 0.0, unit="group", max_rows=3)
    X = np.random.default_rng(0).uniform(size=(100, 2))
    scaler = DPStandardScaler(epsilon=0.5, bounds=(0, 1), accountant=accountant).fit(X)
    assert accountant.epsilon_spent == scaler.privacy_.epsilon == 0.5
    alone = DPStandardScaler(epsilon=0.5, bounds=(0, 1)).fit(X).privacy_
    assert scaler.privacy_.noise_scale == pytest.approx(3 * alone.noise_scale, rel=1e-6)
    assert "at most 3 of them" in scaler.privacy_.unit
    assert "at most 3 of them" in str(accountant.report())
    assert not accountant.can_afford(PureDP(0.51))


def test_a_schedule_says_what_it_assumes():
    accountant = PrivacyAccountant(1.0, 1e-5, composition="auto")
    scaler = DPStandardScaler(epsilon=0.5, bounds=(0, 1), accountant=accountant)
    scaler.fit(np.zeros((10, 1)))
    assert "fixed beforehand" in scaler.privacy_.composition
    assert "fixed beforehand" in str(accountant.report())


def test_old_records_can_be_recomposed():
    accountant = PrivacyAccountant(50.0, 1e-4)
    for _ in range(20):
        accountant.charge(Gaussian(20.0), epsilon=get_epsilon(Gaussian(20.0), 1e-6), delta=1e-6)
    assert accountant.recompose("auto", 1e-5) < 0.5 * accountant.epsilon_spent
    assert accountant.recompose("pld") == pytest.approx(get_epsilon(Gaussian(20.0) * 20, 1e-4))


def test_automatic_composition_takes_sampled_releases():
    event = PoissonSampled(0.01, Gaussian(1.0)) * 100
    accountant = PrivacyAccountant(2.0, 1e-5, composition="auto")
    accountant.charge(event)
    accountant.charge(event)
    assert accountant.epsilon_spent == pytest.approx(get_epsilon(event * 2, 1e-5), rel=1e-9)
    assert accountant.epsilon_spent < 2 * get_epsilon(event, 1e-5)


def descent(steps, price):
    """Return an event of several equal steps and the price that it was calibrated to."""
    multiplier = gaussian_noise_multiplier(*price) * math.sqrt(steps) * (1 + 1e-12)
    return Gaussian(multiplier) * steps, dict(zip(("epsilon", "delta"), price, strict=True))


@TERMS
def test_a_budget_pays_for_one_release_of_many_steps(terms):
    event, price = descent(400, (1.0, 1e-5))
    accountant = PrivacyAccountant(1.0, 1e-5, **terms)
    accountant.charge(event, **price)
    assert accountant.epsilon_spent <= 1.0
    assert not accountant.can_afford(PureDP(0.1))


@pytest.mark.parametrize("composition", ["advanced", "pld", "auto"])
@pytest.mark.parametrize("unit", [{}, {"unit": "group", "max_rows": 2}])
def test_a_schedule_costs_no_more_than_the_sum_of_its_prices(composition, unit):
    accountant = PrivacyAccountant(1.0, 0.0, composition=composition, **unit)
    scale = unit.get("max_rows", 1)
    for epsilon_ in (0.1, 0.9):
        accountant.charge(PureDP(epsilon_ / scale), epsilon=epsilon_, delta=0.0)
    assert accountant.epsilon_spent == 1.0
    assert not accountant.can_afford(PureDP(1e-9 / scale), epsilon=1e-9, delta=0.0)


@pytest.mark.parametrize("composition", ["advanced", "pld", "auto"])
def test_a_schedule_adds_up_what_was_calibrated_to_shares_of_delta(composition):
    """Randomized responses attain their prices, so that nothing but the sum can pay for them."""
    accountant = PrivacyAccountant(1.0, 1e-5, composition=composition)
    for price in ((0.1, 1e-6), (0.9, 9e-6)):
        accountant.charge(ApproximateDP(*price), epsilon=price[0], delta=price[1])
    assert accountant.epsilon_spent <= 1.0
    other = PrivacyAccountant(1.0, 1e-5, composition=composition)
    other.charge(ApproximateDP(0.1, 2e-6), epsilon=0.1, delta=2e-6)
    assert not other.can_afford(ApproximateDP(0.9, 9e-6), epsilon=0.9, delta=9e-6)


@pytest.mark.parametrize("steps", [1, 9])
def test_advanced_composition_takes_a_charge_as_one_release(steps):
    accountant = PrivacyAccountant(10.0, 1e-5, composition="advanced")
    events = [descent(steps + extra, (0.1, 1e-8)) for extra in range(100)]
    for event, price in events:
        accountant.charge(event, **price)
    as_releases = advanced_epsilon([(0.1, 1e-8, 100)], 1e-5)
    assert accountant.epsilon_spent == pytest.approx(as_releases, rel=1e-9)
    one_by_one = Composed(tuple(event for event, _ in events))
    assert as_releases < get_epsilon(one_by_one, 1e-5, method="advanced")
    assert as_releases > get_epsilon(one_by_one, 1e-5)


def test_prices_of_parts_add_up_where_one_unit_can_be_in_several():
    accountant = PrivacyAccountant(1.0, 0.0, relation="replace_one", composition="advanced")
    for part, epsilon_ in zip(accountant.disjoint("half", 3), (0.4, 0.3, 0.6), strict=True):
        part.charge(PureDP(epsilon_), epsilon=epsilon_, delta=0.0)
    assert accountant.epsilon_spent == 1.0


def test_a_price_does_not_let_through_what_the_method_cannot_compose():
    accountant = PrivacyAccountant(1.0, 1e-5, composition="pld")
    accountant.charge(PureDP(0.1), epsilon=0.1, delta=0.0)
    price = get_epsilon(ZCDP(1e-3), 1e-6)
    with pytest.raises(ValueError, match="privacy loss distribution"):
        accountant.charge(ZCDP(1e-3), epsilon=price, delta=1e-6)
    assert len(accountant.charges) == 1


def test_the_worst_parts_of_a_schedule_are_those_of_all_choices():
    rule = PrivacyAccountant(1.0, 0.0, composition="auto").config.rule
    rng = random.Random(0)
    for _ in range(40):
        totals = []
        for _ in range(rng.randint(1, 7)):
            total = rule.zero
            for _ in range(rng.randint(1, 2)):
                price = rng.choice([0.1, 0.2, 0.3])
                total = rule.add(
                    total, rule.cost(Charge("", PureDP(price), price, 0.0, False, "", ""))
                )
            totals.append(total)
        for affected in range(1, 9):
            groups = itertools.combinations(totals, min(affected, len(totals)))
            expected = {total.key for group in groups for total in rule.add(*group)}
            assert {total.key for total in rule.worst(totals, affected)} == expected


@pytest.mark.parametrize("delta", [1e-100, 1e-9, 1e-5, 0.5, 1.0 - 1e-12])
def test_the_quick_bound_of_zcdp_lets_no_total_through_that_is_beyond_the_limit(delta):
    rule = PrivacyAccountant(1.0, delta, composition="zcdp").config.rule
    for rho in np.geomspace(1e-12, 1e6, 60):
        charges = [Charge("", ZCDP(rho / 2), math.inf, delta, False, "", "")] * 2
        total = rule.add(*map(rule.cost, charges))
        epsilon = rule.spent(total, (1.0, delta))[0]
        assert rule.is_within(total, (epsilon, delta))
        below = math.nextafter(epsilon, 0.0)
        assert epsilon == 0.0 or not rule.is_within(total, (below, delta))
