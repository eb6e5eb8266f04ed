"""Each check of a ledger's contract passes on one that keeps it and fails on one that does not."""

import uuid

import pytest

from skdp import LedgerError
from skdp.ledger import register_ledger
from tests._memory_ledger import MemoryLedger, rewrite_memory
from tests.ledger import _broken_ledgers as zoo
from tests.ledger import _ledger_contract as contract
from tests.ledger._ledger_contract import DAMAGES, LEDGER_CHECKS, WHOLE_CHAINS, check_damage

CHECKS = {check.__name__.removeprefix("check_"): check for check in LEDGER_CHECKS}
BROKEN = {
    "an_accountant": zoo.StuckLedger,
    "that_a_closed_data_set_accepts_nothing": zoo.MixingLedger,
    "that_a_data_set_has_one_unit": zoo.MixingLedger,
    "that_a_decision_is_made_on_the_records_that_are_there": zoo.BlindLedger,
    "that_a_position_must_be_there": zoo.WithoutPositionsLedger,
    "that_all_caps_hold": zoo.UnchainedLedger,
    "that_another_process_shares_it_or_raises": zoo.CopiedLedger,
    "that_data_sets_are_apart": zoo.MixingLedger,
    "that_decisions_are_made_one_at_a_time": zoo.UnlockedLedger,
    "that_making_one_opens_nothing": zoo.EagerLedger,
    "that_nobody_changes_what_was_read": zoo.LendingLedger,
    "that_nothing_is_charged_inside_a_charge": zoo.HangingLedger,
    "that_nothing_is_forgotten": zoo.ShortLedger,
    "that_racing_processes_never_pass_a_cap": zoo.ThreadLockedLedger,
    "that_racing_threads_never_pass_the_cap": zoo.StuckLedger,
    "that_racing_users_never_pass_a_cap": zoo.StuckLedger,
    "that_what_was_not_decided_is_not_there": zoo.HastyLedger,
    "the_chain": zoo.UnchainedLedger,
    "what_was_seen_is_not_returned_again": zoo.RepeatingLedger,
    "who_charges_and_what_for": zoo.MixingLedger,
}
MORE = [
    ("that_a_decision_is_made_on_the_records_that_are_there", zoo.AskingLedger),
    ("that_a_decision_is_made_on_the_records_that_are_there", zoo.RepeatingLedger),
    ("that_decisions_are_made_one_at_a_time", zoo.BlindLedger),
    ("that_what_was_not_decided_is_not_there", zoo.StuckLedger),
]


def address_of_a(kind):
    register_ledger("toy", kind)
    return f"toy://{uuid.uuid4().hex[:8]}"


def test_every_check_has_a_broken_ledger():
    assert list(BROKEN) == list(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_small_ledger_keeps_the_contract(name):
    CHECKS[name](address_of_a(MemoryLedger))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in CHECKS if "processes" not in name])
def test_a_lock_between_threads_passes_all_other_checks(name):
    CHECKS[name](address_of_a(zoo.ThreadLockedLedger))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_small_ledger_notices_damage(damage):
    check_damage(address_of_a(MemoryLedger), rewrite_memory, damage)


@pytest.mark.parametrize(("name", "kind"), [*BROKEN.items(), *MORE])
def test_a_check_finds_what_it_is_for(name, kind, monkeypatch):
    if kind in (zoo.HangingLedger, zoo.StuckLedger):
        monkeypatch.setattr(contract, "PATIENCE", 0.5)
    with pytest.raises((AssertionError, LedgerError, pytest.fail.Exception)):
        CHECKS[name](address_of_a(kind))


@pytest.mark.parametrize(
    ("kind", "unseen"),
    [
        (zoo.TrustingLedger, DAMAGES),
        (zoo.CheckedWhenAskedLedger, DAMAGES),
        (zoo.WithoutPositionsLedger, WHOLE_CHAINS),
    ],
)
def test_the_contract_names_what_a_ledger_does_not_check(kind, unseen):
    for damage in unseen:
        with pytest.raises(AssertionError, match=f"does not notice {damage}"):
            check_damage(address_of_a(kind), rewrite_memory, damage)
