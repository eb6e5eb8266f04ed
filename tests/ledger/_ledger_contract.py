"""What every ledger must do: checks that are called with an address where there is none yet.

Somebody's own kind, once it is registered, is run through the same checks::

    @pytest.mark.parametrize("check", LEDGER_CHECKS)
    def test_my_ledger(check):
        check("mine://a-new-name")

What somebody does to the stored records must be noticed. A ledger offers its tests a way to do it,
`rewrite(address, change)`: it puts `change(rows)` where the rows are, each as `Record.row` is, and
returns them. A kind that stores its records in lines also tests a half-written last one, which a
`change` of whole rows cannot make::

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_my_ledger_when_it_was_damaged(damage):
        check_damage("mine://a-new-name", rewrite, damage)

A check that is not over after `PATIENCE` seconds fails: a ledger that waits for itself would hang.
`pytest.register_assert_rewrite("tests.ledger._ledger_contract")` before the import shows what
is on both sides of a comparison that fails.
"""

import contextlib
import functools
import json
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time

import pytest

from skdp import BudgetExceededError, DPStandardScaler, LedgerError, PrivacyAccountant
from skdp.accounting import PureDP
from skdp.ledger import PlannedCharge, Reservation, _accountant, chain_end, next_record, open_ledger
from skdp.ledger._registry import normalize_address
from tests._processes import Child, read_first_byte

START = chain_end([])
PATIENCE = 120.0
# More than a ledger would keep that keeps the last ones.
MANY = 60


def at_once(*works):
    """Return what functions return, each in a thread; one that would wait for ever fails."""
    done = queue.SimpleQueue()

    def run(work):
        try:
            done.put((work(), None))
        except BaseException as error:
            done.put((None, error))

    for work in works:
        # A thread that waits for ever must not keep the tests from ending.
        threading.Thread(target=run, args=(work,), daemon=True).start()
    try:
        results = [done.get(timeout=PATIENCE) for _ in works]
    except queue.Empty:
        raise AssertionError(f"a ledger still waits after {PATIENCE} s") from None
    for _, error in results:
        if error is not None:
            raise error
    return [result for result, _ in results]


def in_time(check):
    """Return a check that fails where it would wait for ever."""

    @functools.wraps(check)
    def checked(*arguments):
        at_once(functools.partial(check, *arguments))

    return checked


def forget_handles():
    """Forget the live handles of this process: the next ones know what another process knows."""
    _accountant._live.clear()


def created(address):
    ledger = open_ledger(address)
    ledger.create()
    return ledger


def position(record):
    return record.sequence, record.hash


def append(ledger, dataset="a", after=START, body=None):
    return ledger.append(dataset, after, lambda records: ("charge", body or {}))


def check_that_making_one_opens_nothing(address):
    ledger = open_ledger(address)
    for use in (
        lambda: ledger.read("a", START),
        lambda: append(ledger),
        ledger.verify,
        ledger.records,
    ):
        with pytest.raises(LedgerError):
            use()
    ledger.create()
    ledger.create()
    assert (ledger.read("a", START), ledger.records()) == ([], [])
    assert ledger.verify() == START[1]


def check_the_chain(address):
    ledger, expected = created(address), []
    bodies = [{}, {"label": "\ud800\0 '\u00e4\u3042"}, {"a": [0.1, None, True, {"b": 10**30}]}]
    for dataset, body in zip("aba", bodies, strict=True):
        before = position(expected[-1]) if expected else START
        expected.append(next_record(before, dataset, "charge", body))
        assert append(ledger, dataset, body=body)[-1] == expected[-1]
    assert ledger.records() == expected == open_ledger(address).records()
    assert position(expected[-1]) == chain_end(record.row for record in expected)
    assert ledger.verify() == expected[-1].hash


def check_that_nothing_is_forgotten(address):
    ledger = created(address)
    records = [append(ledger, after=START)[-1] for _ in range(MANY)]
    for handle in (ledger, open_ledger(address)):
        assert handle.records() == handle.read("a", START) == records


def check_that_data_sets_are_apart(address):
    ledger = created(address)
    for dataset in ("a", "A", "a ", "b' OR 1=1 --"):
        append(ledger, dataset)
    assert [len(ledger.read(name, START)) for name in ("a", "A", "a ", "b", "%")] == [1, 1, 1, 0, 0]


def check_what_was_seen_is_not_returned_again(address):
    ledger = created(address)
    first, second = (append(ledger)[-1] for _ in range(2))
    assert ledger.read("a", position(first)) == [second]
    decided = []
    third = ledger.append("a", position(second), lambda records: decided.extend(records) or None)
    assert third == decided == []
    assert append(ledger, after=position(first))[0] == second


def check_that_a_decision_is_made_on_the_records_that_are_there(address):
    """Whoever decides on none of them passes every cap."""
    ledger, decided = created(address), []
    first, second = append(ledger)[-1], append(ledger)[-1]
    append(ledger, "b")
    last = [first, second]
    for handle in (ledger, open_ledger(address)):
        for after, expected in ((START, last), (position(first), last[1:])):
            handle.append("a", after, decided.append)
            assert decided.pop() == expected, "`decide` was not given the records since `after`"
            assert not decided, "`decide` was called more than once"


def check_that_a_position_must_be_there(address):
    ledger = created(address)
    append(ledger)
    for wrong in ((1, "f" * 64), (2, START[1]), (5, "f" * 64)):
        with pytest.raises(LedgerError):
            ledger.read("a", wrong)
        with pytest.raises(LedgerError):
            append(ledger, after=wrong)
    assert len(ledger.records()) == 1


def check_that_what_was_not_decided_is_not_there(address):
    ledger = created(address)

    def interrupted(records):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.append("a", START, interrupted)
    assert ledger.append("a", START, lambda records: None) == []
    for body in ({"a": float("nan")}, {"a": (1, 2)}, {1: "a"}, {"a": object()}):
        with pytest.raises(LedgerError, match="cannot be written"):
            append(ledger, body=body)
    assert ledger.records() == []
    assert append(ledger)[-1].sequence == 1


def check_that_nobody_changes_what_was_read(address):
    ledger = created(address)
    append(ledger, body={"epsilon": 1.0})[-1].body["epsilon"] = 0.0
    ledger.read("a", START)[-1].body["epsilon"] = 0.0
    assert ledger.read("a", START)[-1].body == {"epsilon": 1.0}
    ledger.verify()


def check_that_nothing_is_charged_inside_a_charge(address):
    """As a signal handler or a finalizer would that runs while another charge is decided."""
    ledger, other = created(address), open_ledger(address)

    def decide(records):
        for inner in (ledger, other):
            with pytest.raises(LedgerError):
                append(inner)
            try:
                assert (inner.read("a", START), inner.verify()) == ([], START[1])
            except LedgerError:
                continue
        return "charge", {}

    assert len(ledger.append("a", START, decide)) == len(ledger.records()) == 1
    assert len(append(other)) == 2


def check_an_accountant(address):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=address)
    for _ in range(3):
        accountant.charge(PureDP(0.25))
    assert PrivacyAccountant(1.0, 0.0, ledger=address) is accountant
    assert pickle.loads(pickle.dumps(accountant)) is accountant
    assert (accountant.epsilon_spent, accountant.epsilon_remaining) == (0.75, 0.25)
    with pytest.raises(BudgetExceededError):
        accountant.charge(PureDP(0.5))
    with pytest.raises(LedgerError, match="another configuration"):
        PrivacyAccountant(2.0, 0.0, ledger=address)
    accountant.change_limit(2.0, 0.0, reason="the board said so")
    assert accountant.charge(PureDP(0.5)).hash == accountant.verify()
    assert accountant.report().to_dict()["epsilon"] == {"limit": 2.0, "spent": 1.25}
    assert PrivacyAccountant(1.0, 0.0, ledger=address, dataset="b").epsilon_spent == 0.0


def check_that_a_data_set_has_one_unit(address):
    units = [{}, {"unit": "person"}, *({"unit": "group", "max_rows": rows} for rows in (2, 3))]
    for number, unit in enumerate(units):
        at = {"epsilon": 1.0, "delta": 1e-6, "ledger": address, "dataset": str(number)}
        accountant = PrivacyAccountant(**at, **unit)
        accountant.charge(PureDP(0.25))
        for other in units:
            if other != unit:
                with pytest.raises(LedgerError, match="another configuration"):
                    PrivacyAccountant(**at, **other)
        again = PrivacyAccountant(**at, **unit)
        assert (again.config, len(again.charges)) == (accountant.config, 1)


def check_that_racing_threads_never_pass_the_cap(address):
    accountant = PrivacyAccountant(20.0, 0.0, ledger=address)

    charged = []

    def charge():
        for _ in range(4):
            try:
                charged.append(accountant.charge(PureDP(1.0)).sequence)
            except BudgetExceededError:
                continue

    at_once(*[charge] * 8)
    assert sorted(charged) == list(range(2, 22))
    assert accountant.epsilon_spent == 20.0
    accountant.verify()


def check_who_charges_and_what_for(address):
    accountant = PrivacyAccountant(2.0, 0.0, ledger=address)
    ann = accountant.as_user("Änn", purpose="report")
    assert accountant.as_user("Änn", purpose="report") is ann is pickle.loads(pickle.dumps(ann))
    ann.charge(PureDP(0.25))
    accountant.charge(PureDP(0.25))
    assert [(one.user, one.purpose) for one in accountant.charges] == [("Änn", "report"), ("", "")]
    bodies = [record.body for record in open_ledger(ann._address).records()[1:]]
    assert (bodies[0]["user"], bodies[0]["purpose"]) == ("Änn", "report")
    assert not {"user", "purpose"} & set(bodies[1])
    # A user of the same name of another data set is another one.
    PrivacyAccountant(1.0, 0.0, ledger=address, dataset="b").as_user("Änn").charge(PureDP(1.0))
    assert ann.epsilon_spent == accountant.epsilon_spent == 0.5


def check_that_all_caps_hold(address):
    """The data set's, a team's, a user's and a purpose's; handles know of each other's charges."""
    accountant = PrivacyAccountant(3.0, 0.0, ledger=address)
    ann, bob = accountant.as_user("ann", purpose="trial"), accountant.as_user("bob")
    ann.charge(PureDP(0.25))
    accountant.sub_limit("team", 1.0, 0.0, users=["ann", "bob"], reason="the board")
    accountant.sub_limit("trial", 0.5, 0.0, purposes=["trial"], reason="the board")
    # What was charged before counts too.
    assert (ann.epsilon_remaining, bob.epsilon_remaining) == (0.25, 0.75)
    bob.charge(PureDP(0.5))
    ann.charge(PureDP(0.25))
    for user, name in (
        (bob, "team"),
        (ann, "team"),
        (accountant.as_user("c", purpose="trial"), "trial"),
    ):
        assert not user.can_afford(PureDP(0.125))
        with pytest.raises(BudgetExceededError, match=f"the limit '{name}' has") as refusal:
            user.charge(PureDP(0.125))
        assert pickle.loads(pickle.dumps(refusal.value)).name == name
    accountant.charge(PureDP(1.5))
    assert accountant.epsilon_remaining == 0.5
    accountant.sub_limit("team", 3.0, 0.0, users=["bob"], reason="the board")
    bob.charge(PureDP(0.5))
    with pytest.raises(BudgetExceededError, match="the budget has"):
        bob.charge(PureDP(0.125))
    assert len(accountant.charges) == 5
    accountant.verify()


def check_that_a_closed_data_set_accepts_nothing(address):
    accountant = PrivacyAccountant(3.0, 0.0, ledger=address)
    plan = (PlannedCharge("a", PureDP(0.25), 0.25), PlannedCharge("b", PureDP(0.25), 0.25))
    first, second = Reservation(accountant, plan, 0.5, 0.0).steps
    first.charge(PureDP(0.25))
    part = accountant.reserve(0.5).reserve(0.25)
    other = PrivacyAccountant(1.0, 0.0, ledger=address, dataset="other")
    accountant.close(reason="the study is over")
    head = accountant.verify()
    uses = (
        lambda: accountant.charge(PureDP(0.25)),
        lambda: accountant.as_user("ann").charge(PureDP(0.25)),
        lambda: accountant.disjoint("sites", 2)[0].charge(PureDP(0.25)),
        lambda: accountant.reserve(0.25),
        lambda: part.charge(PureDP(0.25)),
        lambda: second.charge(PureDP(0.25)),
        lambda: accountant.change_limit(9.0, 0.0, reason="more"),
        lambda: accountant.sub_limit("a", 1.0, 0.0, users=["ann"], reason="more"),
    )
    for use in uses:
        with pytest.raises(LedgerError, match="closed and accepts no charge: the study is over"):
            use()
    assert not accountant.can_afford(PureDP(0.25))
    assert (accountant.epsilon_spent, accountant.epsilon_remaining) == (1.0, 0.0)
    # It can be read and is closed once.
    assert PrivacyAccountant(3.0, 0.0, ledger=address).report().closed == "the study is over"
    accountant.close(reason="again")
    assert accountant.verify() == head
    other.charge(PureDP(1.0))


def check_that_racing_users_never_pass_a_cap(address):
    """Each of four users has a cap, two of them one together; in the end all are spent."""
    accountant = PrivacyAccountant(22.0, 0.0, ledger=address)
    for user in "abcd":
        accountant.sub_limit(user, 6.0, 0.0, users=[user], reason="the board")
    accountant.sub_limit("team", 10.0, 0.0, users=["a", "b"], reason="the board")

    def charge(user):
        for _ in range(6):
            with contextlib.suppress(BudgetExceededError):
                accountant.as_user(user).charge(PureDP(1.0))

    at_once(*[functools.partial(charge, user) for user in "abcdabcd"])
    users = [spend.user for spend in accountant.charges]
    assert (len(users), users.count("c"), users.count("d")) == (22, 6, 6)
    assert max(users.count("a"), users.count("b")) <= 6
    accountant.verify()


def _charge_as(address, user, times):
    handle = PrivacyAccountant(1100.0, 0.0, ledger=address).as_user(user)
    for _ in range(times):
        with contextlib.suppress(BudgetExceededError):
            handle.charge(PureDP(1.0))


def check_that_racing_processes_never_pass_a_cap(address):
    """A lock that holds between threads only is found here."""
    # In a child, the address of a ledger in memory would otherwise be that of another ledger.
    address = normalize_address(address)
    try:
        race_users(address, 5)
    except LedgerError:
        # No child can use it, as the protocol allows, and so nothing was charged.
        assert PrivacyAccountant(1100.0, 0.0, ledger=address).charges == []


def race_users(address, times):
    """Two processes a user; a and b share a cap. In the end each cap is spent, and none passed."""
    accountant = PrivacyAccountant(1100.0, 0.0, ledger=address)
    each, team = times * 3 // 5, times
    for user in "abcd":
        accountant.sub_limit(user, each, 0.0, users=[user], reason="the board")
    accountant.sub_limit("team", team, 0.0, users=["a", "b"], reason="the board")
    with multiprocessing.get_context("fork").Pool(8) as pool:
        race = pool.starmap_async(_charge_as, [(address, user, times) for user in "abcdabcd"])
        race.get(timeout=PATIENCE + times)
    users = [spend.user for spend in accountant.charges]
    counts = {user: users.count(user) for user in "abcd"}
    assert counts["c"] == counts["d"] == each
    assert counts["a"] + counts["b"] == team and max(counts.values()) <= each
    assert accountant.epsilon_spent == len(users) == team + 2 * each
    accountant.verify()


def check_that_decisions_are_made_one_at_a_time(address):
    """Each thread has a handle of its own, and takes its time to decide."""
    cap, racers = 5, 12
    created(address)

    def decide(records):
        time.sleep(0.002)
        return None if len(records) >= cap else ("charge", {})

    race = [lambda: open_ledger(address).append("a", START, decide)] * racers
    lengths = sorted(map(len, at_once(*race)))
    assert lengths == [1, 2, 3, 4] + [cap] * (racers - cap + 1), "two decisions were made at once"
    assert len(open_ledger(address).records()) == cap, "a record was lost, or passed the cap"
    open_ledger(address).verify()


def check_that_another_process_shares_it_or_raises(address):
    """A child sees what is charged here meanwhile, and its charge is seen here, or it raises."""
    ledger = created(address)
    append(ledger)
    wait, go = os.pipe()

    def charge():
        signal.alarm(int(PATIENCE))
        read_first_byte(wait)
        assert len(append(ledger)) == 3, "a child does not see what its parent charged"

    child = Child(charge)
    append(ledger)
    os.write(go, b"!")
    try:
        child.join()
    except AssertionError as error:
        if "LedgerError" not in str(error):
            raise
        charged = 2
    else:
        charged = 3
    finally:
        os.close(wait)
        os.close(go)
    assert len(ledger.records()) == charged, "what a child charged is not seen by its parent"


# A fork is made where there are no other threads; those checks have a limit of their own.
LEDGER_CHECKS = [
    check if "process" in name else in_time(check)
    for name, check in sorted(globals().items())
    if name.startswith("check_")
]


def renumbered(rows):
    """Return rows whose sequence says where they stand."""
    return [(place, *row[1:]) for place, row in enumerate(rows, start=1)]


def rehashed(rows):
    """Return rows whose chain is whole, whoever wrote them."""
    end, chained = START, []
    for _, dataset, kind, body, _ in rows:
        record = next_record(end, dataset, kind, json.loads(body))
        end = position(record)
        chained.append(record.row)
    return chained


def of_row(place, change):
    """Return what changes the row at a place alone."""
    return lambda rows: [*rows[:place], *change(rows[place]), *rows[place + 1 :]]


def cheaper(row):
    assert '"epsilon":0.5' in row[3]
    return [(*row[:3], row[3].replace('"epsilon":0.5', '"epsilon":0.1'), row[4])]


# The third of six rows is the second of three charges of one data set; the last is another one's.
BROKEN_CHAINS = {
    "a changed body": of_row(2, cheaper),
    "a changed body of another data set": of_row(5, cheaper),
    "a changed data set": of_row(2, lambda row: [(row[0], "other", *row[2:])]),
    "a changed kind": of_row(2, lambda row: [(*row[:2], "reuse", *row[3:])]),
    "a changed hash": of_row(2, lambda row: [(*row[:4], "f" * 64)]),
    "a changed hash at the end": of_row(5, lambda row: [(*row[:4], "f" * 64)]),
    "a changed number at the end": of_row(5, lambda row: [(9, *row[1:])]),
    "a deleted record": of_row(2, lambda row: []),
    "a deleted record, the others renumbered": lambda rows: renumbered([*rows[:2], *rows[3:]]),
    "a deleted first record": of_row(0, lambda row: []),
    "two records in the other order": lambda rows: renumbered(
        [*rows[:2], rows[3], rows[2], *rows[4:]]
    ),
    "a record twice": lambda rows: renumbered([*rows[:3], *rows[2:]]),
    "a record again at the end": lambda rows: renumbered([*rows, rows[2]]),
}
# Whoever has not seen what was there cannot know of these.
WHOLE_CHAINS = {
    "a chain that was cut": lambda rows: rows[:3],
    "a chain that was emptied": lambda rows: [],
    "a chain made anew": lambda rows: rehashed(of_row(2, cheaper)(rows)),
}
DAMAGES = BROKEN_CHAINS | WHOLE_CHAINS


@in_time
def check_damage(address, rewrite, damage):
    """Nobody who opens, reads or charges a damaged ledger gets an answer, and nothing is fitted."""
    at = {"epsilon": 10.0, "delta": 0.0, "ledger": address, "dataset": "a"}
    accountant = PrivacyAccountant(**at)
    for _ in range(3):
        accountant.charge(PureDP(0.5))
    PrivacyAccountant(**at | {"dataset": "b"}).charge(PureDP(0.5))
    seen = open_ledger(address)
    places = {name: position(seen.read(name, START)[-1]) for name in "ab"}
    before = rewrite(address, list)
    assert len(before) == 6
    damaged = rewrite(address, DAMAGES[damage])
    assert damaged != before
    scaler = DPStandardScaler(bounds=(0, 1), epsilon=0.5, accountant=accountant)
    uses = {
        "a charge": lambda: accountant.charge(PureDP(0.5)),
        "what was spent": lambda: accountant.epsilon_spent,
        "opening it again": lambda: PrivacyAccountant(**at),
        "a fit": lambda: scaler.fit([[0.0], [1.0]]),
        "read": lambda: seen.read("a", places["a"]),
        "append": lambda: append(seen, after=places["a"]),
    }
    if damage in BROKEN_CHAINS:
        for whose, ledger in {"this": seen, "a new": open_ledger(address)}.items():
            uses |= {
                f"verify of {whose} ledger": ledger.verify,
                f"read of {whose} ledger": lambda ledger=ledger: ledger.read("b", START),
                f"append of {whose} ledger": lambda ledger=ledger: append(ledger, "c"),
            }
    for name, use in uses.items():
        try:
            use()
        except LedgerError:
            continue
        raise AssertionError(f"{name} does not notice {damage}")
    assert not [name for name in vars(scaler) if name.endswith("_")]
    assert rewrite(address, list) == damaged
