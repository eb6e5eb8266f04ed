"""What a charge notices in a ledger, and what it refuses to write into one."""

import itertools
import json
import os
import random
import resource
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass

import pytest

from skdp import LedgerError, PrivacyAccountant
from skdp.accounting import Composed, Event, Gaussian, PureDP, Repeated
from skdp.ledger import PlannedCharge, Reservation, _accountant, _sql, chain_end
from skdp.ledger._file_lock import LOCK_SUFFIX
from skdp.ledger._sqlite import _RESERVED_SUFFIXES, _TABLE
from tests._processes import Child

pytestmark = pytest.mark.usefixtures("any_system")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def charged(path, times=4, dataset="default"):
    accountant = PrivacyAccountant(10.0, 1e-5, ledger=path, dataset=dataset)
    for _ in range(times):
        accountant.charge(PureDP(0.5))
    return accountant


def edit(path, *statements):
    # Systems before Linux 6.13 note the time of a change by a clock that ticks 100 times a second.
    time.sleep(0.02)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


EDITS = {
    "moved": "UPDATE records SET dataset = 'other' WHERE sequence = 3",
    "moved to another case": "UPDATE records SET dataset = 'Default' WHERE sequence = 3",
    "its data set no text": "UPDATE records SET dataset = CAST(dataset AS BLOB) WHERE sequence = 3",
    "edited": "UPDATE records SET body = replace(body, '0.5', '0.1') WHERE sequence = 3",
    "of another kind": "UPDATE records SET kind = 'reuse' WHERE sequence = 3",
    "taken away": "DELETE FROM records WHERE sequence = 3",
    "taken to the front": "UPDATE records SET sequence = -3 WHERE sequence = 3",
    "all renamed": "UPDATE records SET dataset = 'other'",
    "the last taken away": "DELETE FROM records WHERE sequence = 5",
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_charge_notices_what_verify_notices(path, statement, is_fresh):
    accountant = charged(path)
    edit(path, statement)
    if is_fresh:
        del accountant
        accountant = _fresh_handle(path)
    for use in (
        lambda: accountant.charge(PureDP(0.5)),
        lambda: accountant.can_afford(PureDP(0.5)),
        accountant.verify,
    ):
        with pytest.raises(LedgerError, match="chain breaks|replaced or cut"):
            use()


def _fresh_handle(path):
    """Return a handle that has seen nothing, as another process has it."""
    _accountant._live.clear()
    return _accountant.attach(str(path), "default")


def test_a_charge_notices_an_edit_of_another_data_set(path):
    accountant, _ = charged(path), charged(path, dataset="another")
    accountant.charge(PureDP(0.5))
    edit(path, "UPDATE records SET body = replace(body, '0.5', '0.1') WHERE sequence = 8")
    with pytest.raises(LedgerError, match="chain breaks at record 8"):
        accountant.charge(PureDP(0.5))


def test_a_charge_notices_bytes_that_were_changed_without_sqlite(path):
    accountant = charged(path)
    time.sleep(0.02)
    data = path.read_bytes()
    assert data.count(b'"label":""') == 4
    path.write_bytes(data.replace(b'"label":""', b'"label":"x'[:10], 1))
    with pytest.raises(LedgerError, match="chain breaks"):
        accountant.charge(PureDP(0.5))


def test_an_older_copy_in_the_place_of_a_ledger_is_refused(path):
    accountant = charged(path)
    copy = shutil.copy(path, path.with_name("copy.db"))
    accountant.charge(PureDP(0.5))
    os.replace(copy, path)
    fresh = _fresh_handle(path)
    with pytest.raises(LedgerError, match="on purpose, remove"):
        fresh.charge(PureDP(0.5))
    path.with_name(path.name + LOCK_SUFFIX).unlink()
    assert fresh.epsilon_spent == 2.0
    with pytest.raises(LedgerError, match="replaced or cut"):
        accountant.charge(PureDP(0.5))


def test_a_ledger_that_was_deleted_is_begun_again_on_purpose_alone(path):
    charged(path)
    path.unlink()
    lock = path.with_name(path.name + LOCK_SUFFIX)
    before = lock.read_text()
    with pytest.raises(LedgerError, match="held 5 records.*on purpose"):
        PrivacyAccountant(1.0, 0.0, ledger=path)
    assert lock.read_text() == before and not path.exists()
    lock.unlink()
    assert PrivacyAccountant(1.0, 0.0, ledger=path).epsilon_spent == 0.0


@pytest.mark.parametrize("suffix", [*_RESERVED_SUFFIXES, "-JOURNAL"])
def test_a_ledger_is_no_file_that_another_one_removes_or_writes(path, suffix):
    charged(path)
    with pytest.raises(LedgerError, match="cannot end in"):
        PrivacyAccountant(1.0, 0.0, ledger=f"{path}{suffix}")


def test_a_ledger_whose_lock_is_lost_or_says_nothing_goes_on(path):
    accountant = charged(path)
    for lock in path.parent.glob("*.skdp-*"):
        lock.unlink()
    accountant.charge(PureDP(0.5))
    path.with_name(path.name + LOCK_SUFFIX).write_text("\0 nonsense \n")
    accountant.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 3.0


def test_what_was_checked_is_not_read_again(path, monkeypatch):
    accountant, other = charged(path), charged(path, dataset="another")
    read = []

    def counted(rows, *start):
        rows = list(rows)
        read.append(len(rows))
        return chain_end(rows, *start)

    monkeypatch.setattr(_sql, "chain_end", counted)
    for _ in range(3):
        accountant.charge(PureDP(0.5))
        other.charge(PureDP(0.5))
    # The last record that was seen, and what others appended.
    assert max(read[2:]) <= 2


@dataclass(frozen=True)
class Clipped(Gaussian):
    pass


@dataclass(frozen=True)
class Unknown(Event):
    epsilon: float


Namesake = type("Gaussian", (Gaussian,), {})


def changed(event, /, **values):
    for name, value in values.items():
        object.__setattr__(event, name, value)
    return event


UNREADABLE = {
    "a subclass": Clipped(50.0),
    "a subclass of the same name": Namesake(50.0),
    "an event of one's own": Unknown(0.1),
    "a subclass inside": Composed((PureDP(0.1), Repeated(Clipped(50.0), 2))),
    "not a number": changed(PureDP(0.1), epsilon=float("nan")),
    "infinite": changed(PureDP(0.1), epsilon=float("inf")),
    "negative": changed(PureDP(0.1), epsilon=-1.0),
    "no number": changed(PureDP(0.1), epsilon="0.1"),
    "no JSON": changed(PureDP(0.1), epsilon=1j),
    "a list of parts": changed(Composed((PureDP(0.1),)), events=[PureDP(0.1)]),
}


@pytest.mark.parametrize("event", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_event_that_would_not_be_read_back_is_refused(path, event):
    accountant = charged(path)
    before = accountant.verify()
    planned = PlannedCharge("step", PureDP(0.1), 0.1)
    reservation = Reservation(accountant, (planned,), 0.1, 0.0)
    in_plan = Reservation(accountant, (changed(planned, event=event),), 0.1, 0.0)
    for use in (
        lambda: accountant.charge(event, epsilon=0.1, delta=0.0),
        lambda: accountant.charge(event, delta=1e-6),
        lambda: accountant.can_afford(event, epsilon=0.1, delta=0.0),
        lambda: reservation.steps[0]._paying_charge((0.1, 0.0), event, "", False),
        lambda: in_plan.steps[0]._paying_charge((0.1, 0.0), PureDP(0.1), "", False),
    ):
        with pytest.raises(ValueError):
            use()
    assert accountant.verify() == before
    accountant.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 2.5


def test_a_record_that_would_not_be_read_back_is_refused(path, monkeypatch):
    accountant = charged(path)
    ledger = accountant._ledger
    for body in ({"a": float("nan")}, {"a": (1, 2)}, {1: "a"}, {"a": object()}):
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.append("default", chain_end([]), lambda records, body=body: ("charge", body))
    # Whatever an accountant decides is read as the next process will read it, before it is there.
    monkeypatch.setattr("skdp.ledger._accountant._current_time", lambda: 0)
    monkeypatch.setattr("skdp.ledger._accountant._charge_body", lambda spend: {"event": "{}"})
    with pytest.raises(LedgerError, match="cannot be read"):
        accountant.charge(PureDP(0.5))
    monkeypatch.undo()
    accountant.charge(PureDP(0.5))
    assert [json.loads(s.event.to_json())["type"] for s in accountant.charges] == ["PureDP"] * 5


@pytest.mark.parametrize("is_under_way", [False, True])
def test_a_ledger_that_was_moved_and_left_a_link_is_refused(path, is_under_way, monkeypatch):
    accountant, insert = charged(path), _sql.insert_row
    moved = path.with_name("moved.db")

    def move(*arguments):
        os.rename(path, moved)
        path.symlink_to(moved)
        return insert(*arguments) if arguments else None

    if is_under_way:
        monkeypatch.setattr("skdp.ledger._sql.insert_row", move)
    else:
        move()
    with pytest.raises(LedgerError, match="not a regular file"):
        accountant.charge(PureDP(0.5))
    monkeypatch.undo()
    assert PrivacyAccountant(10.0, 1e-5, ledger=path).epsilon_spent == 2.0 + 0.5 * is_under_way


def test_a_shortage_of_descriptors_is_an_error_of_the_ledger(path):
    Child(charge_with_few_descriptors, charged(path)).join()


def charge_with_few_descriptors(accountant):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # The test runner may have opened any number of files.
    n_open = max(int(name) for name in os.listdir("/dev/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 64, most))
    taken, sequences = [], []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    while not sequences:
        try:
            sequences.append(accountant.charge(PureDP(0.5)).sequence)
        except LedgerError:
            os.close(taken.pop())
    assert sequences == [6]


def test_a_folder_that_was_moved_and_left_a_link_is_one_ledger(tmp_path):
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "budget.db"
    accountant = charged(path)
    os.rename(tmp_path / "folder", tmp_path / "moved")
    (tmp_path / "folder").symlink_to(tmp_path / "moved")
    accountant.charge(PureDP(0.5))
    assert PrivacyAccountant(10.0, 1e-5, ledger=path).epsilon_spent == 2.5


def leave_half_a_ledger(path):
    """Write as a maker does who is killed when a part of his pages is in the file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA application_id = 1")
    connection.execute(_TABLE)
    for sequence in range(100):
        row = (sequence, "default", "open", "x" * 1000, "")
        connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row)
    os._exit(0)


@pytest.mark.parametrize("leave", [lambda path: path.touch(), leave_half_a_ledger])
def test_a_creator_that_is_killed_leaves_nothing_in_the_way(path, leave):
    Child(leave, path).join()
    assert (path.stat().st_size > 0) == path.with_name("budget.db-journal").exists()
    charged(path).verify()
    assert {entry.name for entry in path.parent.iterdir()} == {"budget.db", "budget.db.skdp-lock"}


def begin_ledgers(path):
    for number in itertools.count():
        charged(path.with_name(f"{number}.db"), times=1)


def check_killed_creators(path, kills):
    moments = random.Random(0)
    for _ in range(kills):
        child = Child(begin_ledgers, path)
        time.sleep(moments.uniform(0.0, 0.1))
        child.kill()
        # A lock file may have been created, but not yet its ledger.
        names = {file.name.partition(".")[0] for file in path.parent.glob("*.db*")}
        for name in names:
            assert charged(path.parent / f"{name}.db", times=0).epsilon_spent in (0.0, 0.5)
            for file in path.parent.glob(f"{name}.db*"):
                file.unlink()
    assert not list(path.parent.glob("*.db*"))


@pytest.mark.quick_cases(every=2)
def test_creators_that_are_killed_leave_whole_ledgers(path):
    check_killed_creators(path, 4)


@pytest.mark.slow
def test_200_creators_that_are_killed_leave_whole_ledgers(path):
    check_killed_creators(path, 200)


def test_a_ledger_that_was_emptied_is_not_begun_again(path):
    charged(path)
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(LedgerError, match="on purpose, remove"):
            PrivacyAccountant(10.0, 1e-5, ledger=path)


def test_a_ledger_with_a_log_beside_it_is_refused(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(LedgerError, match="journal_mode"):
        accountant.charge(PureDP(0.5))


def test_an_interrupted_charge_leaves_the_ledger_free(path, monkeypatch):
    accountant = charged(path, times=3)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("skdp.ledger._sql.insert_row", interrupted)
        with pytest.raises(KeyboardInterrupt):
            accountant.charge(PureDP(0.5))
    assert len(accountant.charges) == 3
    accountant.charge(PureDP(0.5))
    accountant.verify()
