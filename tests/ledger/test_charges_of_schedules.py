"""Charges under compositions that add up no costs: no recorded delta blocks a later charge."""

import pytest

from skdp import BudgetExceededError, PrivacyAccountant
from skdp.accounting import (
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    PureDP,
    Repeated,
    get_epsilon,
)

SCHEDULES = ["advanced", "pld", "auto"]
GROUPS = [{}, {"unit": "group", "max_rows": 3}]
# A plan whose delta is the whole delta of the budget.
PLAN = Composed((Gaussian(27.7), ApproximateDP(0.0, 1.5e-8), ApproximateDP(0.35, 8.5e-7)))


@pytest.mark.parametrize("terms", GROUPS, ids=["row", "group"])
@pytest.mark.parametrize("composition", SCHEDULES)
def test_a_pure_charge_leaves_the_whole_delta_to_a_plan(composition, terms):
    for event in (PureDP(0.01), Laplace(0.01), Repeated(PureDP(0.005), 2)):
        accountant = PrivacyAccountant(4.0, 1e-6, composition=composition, **terms)
        first = accountant.charge(event)
        assert first.delta == 0.0
        assert first.epsilon == pytest.approx(0.01 * accountant.config.max_rows)
        delta = 1e-6 if not terms else 1e-7
        plan = PLAN if not terms else Composed((Gaussian(100.0), ApproximateDP(0.1, 1e-8)))
        accountant.charge(plan, epsilon=0.5, delta=delta)
        parts = accountant.config.max_rows * 0.01 + get_epsilon(
            plan, 1e-6, group_size=accountant.config.max_rows
        )
        assert accountant.epsilon_spent <= 1.2 * parts


@pytest.mark.parametrize("composition", [*SCHEDULES, "zcdp"])
def test_a_claim_for_one_row_is_charged_for_the_group_at_a_delta_that_covers_it(composition):
    accountant = PrivacyAccountant(1.0, 1e-6, composition=composition, unit="group", max_rows=3)
    charge = accountant.charge(ApproximateDP(0.01, 1e-8), epsilon=0.01, delta=1e-8)
    assert 0.0299 < charge.epsilon < 0.0301 and 3e-8 < charge.delta <= 1e-6
    assert accountant.epsilon_spent <= 0.0301


@pytest.mark.parametrize("composition", SCHEDULES)
def test_many_pure_releases_are_recorded_at_the_delta_of_the_budget(composition):
    """Their sum at delta = 0 would say many times as much as they cost."""
    accountant = PrivacyAccountant(1.0, 1e-6, composition=composition)
    charge = accountant.charge(Repeated(Laplace(0.001), 5_000))
    assert charge.delta == 1e-6 and charge.epsilon < 0.5
    assert accountant.epsilon_spent <= 1.0


def test_refusals_say_why_a_release_costs_more_than_is_left():
    accountant = PrivacyAccountant(1.0, 1e-6, composition="zcdp")
    accountant.charge(PureDP(0.01))
    with pytest.raises(BudgetExceededError, match="their costs are not a sum") as error:
        accountant.charge(PureDP(0.5))
    assert error.value.asked[0] < error.value.remaining[0]
    groups = PrivacyAccountant(1.0, 1e-8, composition="auto", unit="group", max_rows=30)
    with pytest.raises(BudgetExceededError, match="no finite epsilon at delta=1e-08"):
        groups.charge(ApproximateDP(0.01, 1e-8), epsilon=0.01, delta=1e-8)
