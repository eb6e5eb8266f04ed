import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

import pytest

from skdp import LedgerError
from skdp.accounting import PureDP
from skdp.ledger import PrivacyAccountant, chain_end, open_ledger
from tests._processes import Child, read_first_byte, read_to_end

pytestmark = pytest.mark.usefixtures("any_system")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def charged(path, times=3):
    accountant = PrivacyAccountant(10.0, 0.0, ledger=path)
    for _ in range(times):
        accountant.charge(PureDP(0.5))
    return accountant


def edit(path, statement):
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_verify_returns_the_last_hash(path):
    accountant = charged(path)
    assert accountant.verify() == accountant.charges[-1].hash


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = replace(body, '0.5', '0.1') WHERE sequence = 3",
        "DELETE FROM records WHERE sequence = 2",
        "UPDATE records SET sequence = sequence + 1 WHERE sequence = 4",
        "UPDATE records SET dataset = 'other' WHERE sequence = 4",
        "UPDATE records SET hash = lower(hex(randomblob(32))) WHERE sequence = 4",
    ],
)
def test_verify_finds_an_edit(path, statement):
    accountant = charged(path)
    edit(path, statement)
    with pytest.raises(LedgerError, match="chain breaks"):
        accountant.verify()


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE records SET body = replace(body, '"epsilon":0.5,', '"epsilon":0.1,')
        WHERE sequence = 3""",
        "DELETE FROM records WHERE sequence = 2",
        "UPDATE records SET hash = lower(hex(randomblob(32))) WHERE sequence = 4",
    ],
)
def test_a_ledger_whose_chain_is_broken_pays_for_nothing(path, statement):
    charged(path)
    edit(path, statement)
    copy = shutil.copy(path, path.with_name("copy.db"))
    with pytest.raises(LedgerError, match="chain breaks"):
        PrivacyAccountant(10.0, 0.0, ledger=copy)


@pytest.mark.parametrize("price", ["NaN", "-3.0", '"0"', "Infinity", "null"])
def test_a_price_that_is_none_is_refused(path, price):
    PrivacyAccountant(10.0, 0.0, ledger=path)
    body = {"label": "", "event": PureDP(0.5).to_json(), "epsilon": 0.5, "delta": 0.0}
    body |= {"seeded": False, "time": "", "version": "", "part": None}
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    text = text.replace('"epsilon":0.5,"event"', f'"epsilon":{price},"event"')
    ledger = open_ledger(str(path))
    opened = ledger.records()[-1]
    chained = [opened.hash, 2, "default", "charge", text]
    digest = hashlib.sha256(json.dumps(chained, separators=(",", ":")).encode()).hexdigest()
    edit(path, f"INSERT INTO records VALUES (2, 'default', 'charge', '{text}', '{digest}')")
    assert ledger.verify() == digest
    copy = shutil.copy(path, path.with_name("copy.db"))
    with pytest.raises(LedgerError, match="record 2 cannot be read"):
        PrivacyAccountant(10.0, 0.0, ledger=copy)


def test_a_decision_that_raises_leaves_no_record(path):
    ledger = open_ledger(str(path))
    ledger.create()

    def refuse(records):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.append("default", chain_end([]), refuse)
    assert ledger.read("default") == []
    assert ledger.append("default", chain_end([]), lambda records: ("open", {}))[-1].sequence == 1


def test_a_corrupt_file_is_refused(path):
    path.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    with pytest.raises(LedgerError):
        PrivacyAccountant(1.0, 0.0, ledger=path)


def test_a_file_of_another_kind_is_refused(path):
    path.write_text("epsilon,delta\n1,0\n")
    with pytest.raises(LedgerError):
        PrivacyAccountant(1.0, 0.0, ledger=path)
    assert path.read_text() == "epsilon,delta\n1,0\n"


def test_a_database_of_another_program_is_refused(path):
    edit(path, "CREATE TABLE persons (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger of skdp"):
        PrivacyAccountant(1.0, 0.0, ledger=path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(path):
    charged(path)
    edit(path, "PRAGMA user_version = 99")
    with pytest.raises(LedgerError, match="newer"):
        open_ledger(str(path)).read("default")


def test_a_read_only_ledger_refuses_charges(path, monkeypatch):
    accountant = charged(path)
    path.chmod(0o444)
    connect = sqlite3.connect
    # Whoever runs the tests as root may write to any file: ask for what others get.
    monkeypatch.setattr(
        sqlite3, "connect", lambda file, **k: connect(file.replace("mode=rw", "mode=ro"), **k)
    )
    with pytest.raises(LedgerError, match="readonly"):
        accountant.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 1.5


def test_a_locked_ledger_is_refused(path, short_waits):
    accountant = charged(path)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        accountant.charge(PureDP(0.5))
    blocker.execute("ROLLBACK")
    blocker.close()
    assert len(accountant.charges) == 3
    accountant.charge(PureDP(0.5))


def test_a_ledger_that_vanished_while_in_use_is_refused(path):
    accountant = charged(path)
    path.unlink()
    for use in (accountant.report, lambda: accountant.charge(PureDP(0.5))):
        with pytest.raises(LedgerError, match="no ledger"):
            use()
    # As long as this process knows the ledger, a missing file is not begun anew.
    path.with_name("budget.db.skdp-lock").unlink()
    for use in (
        lambda: PrivacyAccountant(10.0, 0.0, ledger=path),
        lambda: accountant.charge(PureDP(0.5)),
    ):
        with pytest.raises(LedgerError, match="no ledger"):
            use()
    assert not path.exists()


def test_a_ledger_that_was_cut_while_in_use_is_refused(path):
    accountant = charged(path)
    edit(path, "DELETE FROM records WHERE sequence = 4")
    with pytest.raises(LedgerError, match="replaced or cut"):
        accountant.charge(PureDP(0.5))
    with pytest.raises(LedgerError, match="replaced or cut"):
        assert accountant.epsilon_spent


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_a_truncated_file_is_refused(path, size):
    accountant = charged(path)
    os.truncate(path, size)
    with pytest.raises(LedgerError):
        accountant.charge(PureDP(0.5))
    del accountant
    with pytest.raises(LedgerError):
        PrivacyAccountant(10.0, 0.0, ledger=path)


def test_a_second_hard_link_is_refused(path):
    accountant = charged(path)
    os.link(path, path.with_name("other.db"))
    with pytest.raises(LedgerError, match="hard links"):
        accountant.charge(PureDP(0.5))
    with pytest.raises(LedgerError, match="hard links"):
        PrivacyAccountant(10.0, 0.0, ledger=path.with_name("other.db"))
    path.with_name("other.db").unlink()
    accountant.charge(PureDP(0.5))


def test_links_and_relative_paths_are_one_ledger(path, monkeypatch):
    accountant = charged(path)
    path.with_name("link.db").symlink_to(path)
    monkeypatch.chdir(path.parent)
    for name in (path.with_name("link.db"), "budget.db", "./budget.db"):
        assert PrivacyAccountant(10.0, 0.0, ledger=name) is accountant


def test_a_copy_of_the_file_holds_every_charge(path):
    accountant = charged(path)
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    assert PrivacyAccountant(10.0, 0.0, ledger=copy).epsilon_spent == accountant.epsilon_spent
    names = {p.name for p in path.parent.iterdir()}
    assert names == {
        f"{name}{end}" for name in ("budget.db", "copy.db") for end in ("", ".skdp-lock")
    }


def test_no_connection_outlives_a_call(path, monkeypatch):
    opened = []
    connect = sqlite3.connect

    def spy(*args, **options):
        class Connection(sqlite3.Connection):
            closed = False

            def close(self):
                self.closed = True
                super().close()

        opened.append(connect(*args, **options, factory=Connection))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", spy)
    accountant = charged(path)
    accountant.report()
    accountant.can_afford(PureDP(1.0))
    assert len(opened) > 5
    assert all(connection.closed for connection in opened)


def _keep_charging(accountant, stop):
    while not stop.is_set():
        accountant.charge(PureDP(1.0))


def _charge_once(accountant):
    # A child that hangs is ended by the alarm, with another status than 0.
    signal.alarm(60)
    accountant.charge(PureDP(1.0), label="child")


@pytest.mark.quick_cases(every=2)
def test_children_forked_while_others_charge_can_charge(path):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=path)
    stop = threading.Event()
    threads = [threading.Thread(target=_keep_charging, args=(accountant, stop)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            Child(_charge_once, accountant).join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    accountant.verify()
    spends = accountant.charges
    assert sum(spend.label == "child" for spend in spends) == 8
    assert accountant.epsilon_spent == len(spends)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(LedgerError):
        PrivacyAccountant(1.0, 0.0, ledger=tmp_path / "nowhere" / "budget.db")


def test_a_path_that_cannot_be_a_file_is_an_error_of_the_ledger(tmp_path):
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)
    for path in (loop, tmp_path / ("a" * 300)):
        with pytest.raises(LedgerError):
            PrivacyAccountant(1.0, 0.0, ledger=path)


def test_unknown_kinds_of_ledger_are_refused():
    with pytest.raises(LedgerError, match="scheme 'gopher'"):
        PrivacyAccountant(1.0, 0.0, ledger="gopher://host/budget")


def _charge_until_killed(path, write_end):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=path)
    while True:
        accountant.charge(PureDP(1.0))
        os.write(write_end, b"r")


@pytest.mark.quick_cases(every=2)
def test_kill_loses_no_release_and_breaks_no_chain(path):
    moments = random.Random(0)
    released = 0
    for _ in range(20):
        read_end, write_end = os.pipe()
        child = Child(_charge_until_killed, path, write_end)
        os.close(write_end)
        read_first_byte(read_end)
        released += 1
        time.sleep(moments.uniform(0.0, 0.03))
        child.kill()
        released += len(read_to_end(read_end))
        accountant = PrivacyAccountant(1e6, 0.0, ledger=path)
        accountant.verify()
        # A child may die between the commit and its word of it, once each.
        assert released <= len(accountant.charges)
    assert len(accountant.charges) <= released + 20
    assert released >= 20
