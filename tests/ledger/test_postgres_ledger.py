"""The ledger on a real server that these tests start; SQLite's races and kills, over again."""

import multiprocessing
import os
import random
import signal
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from skdp import BudgetExceededError, LedgerError, PrivacyAccountant
from skdp.accounting import PureDP
from skdp.ledger import chain_end, open_ledger
from tests._calls import count_calls
from tests._processes import PATIENCE_SECONDS, Child, read_first_byte, read_to_end, wait_until
from tests.ledger._ledger_contract import race_users
from tests.ledger._postgres_server import running_server

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.fixture(scope="module")
def server():
    with running_server() as server:
        yield server


@pytest.fixture
def address(server):
    return server.new_database()


def run(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement)


def charged(address, times=3):
    accountant = PrivacyAccountant(10.0, 0.0, ledger=address)
    for _ in range(times):
        accountant.charge(PureDP(0.5))
    return accountant


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE skdp.records SET body = replace(body, '0.5', '0.1') WHERE sequence = 3",
        "DELETE FROM skdp.records WHERE sequence = 2",
        "UPDATE skdp.records SET sequence = 9 WHERE sequence = 4",
        "UPDATE skdp.records SET dataset = 'other' WHERE sequence = 4",
    ],
)
def test_verify_finds_an_edit(address, statement):
    accountant = charged(address)
    run(address, statement)
    with pytest.raises(LedgerError, match="chain breaks"):
        accountant.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE skdp.records SET dataset = 'other' WHERE sequence = 2",
        "UPDATE skdp.records SET dataset = 'other'",
        "UPDATE skdp.records SET body = replace(body, '0.5', '0.1') WHERE sequence = 4",
        "DELETE FROM skdp.records WHERE sequence = 2",
        "UPDATE skdp.records SET sequence = -2 WHERE sequence = 2",
    ],
)
def test_a_charge_notices_an_edit_of_what_it_had_seen(address, statement):
    accountant = charged(address)
    accountant.charge(PureDP(0.5))
    run(address, statement)
    with pytest.raises(LedgerError, match="chain breaks"):
        accountant.charge(PureDP(0.5))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE skdp.records SET body = replace(body, '0.5', '0.1') WHERE sequence = 2",
        "DELETE FROM skdp.records WHERE sequence = 2",
    ],
)
def test_a_charge_notices_an_edit_by_an_older_transaction(address, statement):
    accountant = charged(address)
    with psycopg.connect(address) as older:
        older.execute("SELECT txid_current()")
        accountant.charge(PureDP(0.5))
        older.execute(statement)
    with pytest.raises(LedgerError, match="chain breaks"):
        accountant.charge(PureDP(0.5))


def test_what_was_checked_is_not_read_again(address):
    accountant = charged(address)
    n_calls = []
    for _ in range(9):
        n_calls.append(count_calls(lambda: accountant.charge(PureDP(0.5))))
    assert n_calls[-1] <= n_calls[1]


def test_a_ledger_that_was_cut_while_in_use_is_refused(address):
    accountant = charged(address)
    run(address, "DELETE FROM skdp.records WHERE sequence = 4")
    for use in (lambda: accountant.charge(PureDP(0.5)), accountant.verify):
        with pytest.raises(LedgerError, match="replaced or cut"):
            use()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_keeps_a_ledger(server, encoding, monkeypatch):
    address = server.new_database(f"ENCODING {encoding} LOCALE 'C' TEMPLATE template0")
    with monkeypatch.context() as patch:
        patch.setenv("PGCLIENTENCODING", "latin1")
        charged(address)
    accountant = PrivacyAccountant(10.0, 0.0, ledger=address)
    accountant.charge(PureDP(0.5), label="café")
    assert accountant.epsilon_spent == 2.0
    try:
        PrivacyAccountant(1.0, 0.0, ledger=address, dataset="日本")
    except LedgerError:
        assert encoding == "LATIN1"


def test_a_missing_newer_or_foreign_ledger_is_refused(address):
    accountant = charged(address)
    run(address, "UPDATE skdp.schema_version SET version = 99")
    with pytest.raises(LedgerError, match="newer"):
        accountant.charge(PureDP(0.5))
    run(address, "DROP SCHEMA skdp CASCADE")
    with pytest.raises(LedgerError, match="no ledger"):
        accountant.charge(PureDP(0.5))
    run(address, "CREATE SCHEMA skdp; CREATE TABLE skdp.records (name TEXT)")
    with pytest.raises(LedgerError):
        PrivacyAccountant(1.0, 0.0, ledger=address)


def test_a_locked_ledger_is_refused(address, short_waits):
    accountant = charged(address)
    with psycopg.connect(address) as blocker:
        blocker.execute("LOCK TABLE skdp.records IN EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match="lock timeout"):
            accountant.charge(PureDP(0.5))
        assert accountant.epsilon_spent == 1.5
    accountant.charge(PureDP(0.5))


def test_a_charge_from_a_signal_handler_inside_a_charge_raises_at_once(server, address):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=address)
    elsewhere = PrivacyAccountant(1.0, 0.0, ledger=server.new_database())
    append, waits = accountant._ledger.append, []

    def handler(*_):
        begun = time.monotonic()
        for use in (lambda: accountant.charge(PureDP(0.1)), lambda: accountant.epsilon_spent):
            with pytest.raises(LedgerError, match="in use by this thread"):
                use()
        # Another ledger is not in use.
        elsewhere.charge(PureDP(0.125))
        waits.append(time.monotonic() - begun)

    def interrupted(dataset, after, decide):
        def decided(records):
            signal.raise_signal(signal.SIGUSR1)
            return decide(records)

        return append(dataset, after, decided)

    accountant._ledger.append = interrupted
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        accountant.charge(PureDP(0.5))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(waits) == 1 and waits[0] < 15.0
    accountant._ledger.append = append
    accountant.charge(PureDP(0.25))
    assert (accountant.epsilon_spent, elsewhere.epsilon_spent) == (0.75, 0.125)


def test_a_child_that_is_forked_inside_a_charge_can_use_the_ledger(address):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=address)
    accountant.charge(PureDP(0.5))
    append, children = accountant._ledger.append, []

    def read():
        signal.alarm(60)
        # It only reads: its parent keeps the lock of writers until the charge is over.
        assert accountant.epsilon_spent == 0.5

    def forking(dataset, after, decide):
        def decided(records):
            children.append(Child(read))
            children[0].join()
            return decide(records)

        return append(dataset, after, decided)

    accountant._ledger.append = forking
    accountant.charge(PureDP(0.25))
    assert len(children) == 1


def test_a_role_that_does_not_wait_for_the_disk_waits_here(address):
    name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    run(address, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    ledger = open_ledger(address)
    ledger.create()
    settings = []
    transaction = ledger._transaction

    @contextmanager
    def spied():
        with transaction() as inner:
            execute = inner.execute

            def spy(statement, parameters=()):
                if "INSERT" in statement:
                    settings.append(execute("SHOW synchronous_commit").fetchone()[0])
                return execute(statement, parameters)

            inner.execute = spy
            yield inner

    ledger._transaction = spied
    ledger.append("default", chain_end([]), lambda records: ("open", {}))
    assert settings == ["on"]


def test_a_password_in_the_address_is_refused():
    for address in ("postgresql://me:secret@host/db", "postgresql://host/db?password=secret"):
        with pytest.raises(ValueError, match="no password") as refusal:
            PrivacyAccountant(1.0, 0.0, ledger=address)
        assert "secret" not in str(refusal.value)


def test_an_unreachable_server_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="cannot be used"):
        PrivacyAccountant(1.0, 0.0, ledger=f"postgresql:///nowhere?host={tmp_path}")


def _charge_many(address, times, cap):
    accountant = PrivacyAccountant(cap, 0.0, ledger=address)
    done = 0
    for _ in range(times):
        try:
            accountant.charge(PureDP(1.0))
            done += 1
        except BudgetExceededError:
            pass
    return done


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_racing_processes_never_pass_the_cap(address, method):
    with multiprocessing.get_context(method).Pool(4) as pool:
        race = pool.starmap_async(_charge_many, [(address, 20, 40.0)] * 4)
        done = race.get(timeout=PATIENCE_SECONDS)
    accountant = PrivacyAccountant(40.0, 0.0, ledger=address)
    assert sum(done) == 40 == len(accountant.charges)
    assert accountant.epsilon_spent == 40.0
    accountant.verify()


@pytest.mark.slow
def test_8_processes_of_500_charges_never_pass_a_cap(address):
    race_users(address, 500)


def _charge_until_killed(address, write_end):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=address)
    with suppress(LedgerError):
        while True:
            accountant.charge(PureDP(1.0))
            os.write(write_end, b"r")


def _child(address):
    read_end, write_end = os.pipe()
    child = Child(_charge_until_killed, address, write_end)
    os.close(write_end)
    read_first_byte(read_end)
    return child, read_end


def _released(read_end):
    # One was read when the child began.
    return 1 + len(read_to_end(read_end))


def check_killed_clients(address, kills):
    moments = random.Random(0)
    released = 0
    for _ in range(kills):
        child, read_end = _child(address)
        time.sleep(moments.uniform(0.0, 0.05))
        child.kill()
        released += _released(read_end)
    accountant = PrivacyAccountant(1e6, 0.0, ledger=address)
    accountant.verify()
    # The server may still commit what a client sent before it died.
    assert released <= len(accountant.charges) <= released + kills


def test_killed_clients_lose_no_release(address):
    check_killed_clients(address, 6)


@pytest.mark.slow
def test_200_killed_clients_lose_no_release(address):
    check_killed_clients(address, 200)


def check_crashes(server, address, crashes):
    moments = random.Random(0)
    released = 0
    for _ in range(crashes):
        child, read_end = _child(address)
        time.sleep(moments.uniform(0.05, 0.15))
        server.stop("immediate")
        child.join()
        released += _released(read_end)
        server.start()
        accountant = PrivacyAccountant(1e6, 0.0, ledger=address)
        accountant.verify()
        assert released <= len(accountant.charges)


def test_a_crash_of_the_server_loses_no_release(server, address):
    check_crashes(server, address, 1)


@pytest.mark.slow
def test_20_crashes_of_the_server_lose_no_release(server, address):
    check_crashes(server, address, 20)


def test_a_server_that_does_not_write_to_disk_is_refused(server, address):
    accountant = charged(address)
    server.stop()
    server.start("fsync=off")
    try:
        with pytest.raises(LedgerError, match="fsync"):
            accountant.charge(PureDP(0.5))
    finally:
        server.stop()
        server.start()
    assert accountant.epsilon_spent == 1.5


def test_children_forked_while_others_charge_can_charge(address):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=address)
    stop = threading.Event()

    def keep_charging():
        while not stop.is_set():
            accountant.charge(PureDP(1.0))

    def charge_once():
        signal.alarm(60)
        accountant.charge(PureDP(1.0), label="child")

    threads = [threading.Thread(target=keep_charging) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            Child(charge_once).join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    accountant.verify()
    assert sum(spend.label == "child" for spend in accountant.charges) == 4


def _charge_in_spite_of_crashes(address, notes, name, times):
    with open(notes, "a", buffering=1) as file:
        for index in range(times):
            label = f"{name}-{index}"
            while True:
                try:
                    # A child that begins late opens the ledger while the server is down.
                    accountant = PrivacyAccountant(1e9, 0.0, ledger=address)
                    spend = accountant.charge(PureDP(1.0), label=label)
                except LedgerError:
                    # The server is down; what it had committed without our hearing is there too.
                    time.sleep(0.05)
                else:
                    file.write(f"{label} {spend.hash}\n")
                    break


def _count_lines(notes):
    return notes.read_text().count("\n") if notes.exists() else 0


def _charge_while_the_server_is_killed(
    server, address, notes, processes, times, patience=PATIENCE_SECONDS
):
    PrivacyAccountant(1e9, 0.0, ledger=address)
    running = [
        Child(_charge_in_spite_of_crashes, address, notes, name, times) for name in range(processes)
    ]
    for share in (1, 2):
        expected = processes * times * share / 3
        wait_until(lambda n=expected: _count_lines(notes) >= n, running, seconds=patience)
        server.stop("immediate")
        server.start()
    for child in running:
        child.join(patience)
    accountant = PrivacyAccountant(1e9, 0.0, ledger=address)
    there = [f"{spend.label} {spend.hash}" for spend in accountant.charges]
    told = notes.read_text().splitlines()
    assert len(told) == len(set(told)) == processes * times
    assert set(told) <= set(there)
    # At each of two crashes one commit a process may be there without its word.
    assert len(there) <= len(told) + 2 * processes
    accountant.verify()


def test_a_server_that_is_killed_twice_loses_no_charge(server, address, tmp_path):
    _charge_while_the_server_is_killed(server, address, tmp_path / "notes", 2, 6)


@pytest.mark.slow
def test_20000_charges_survive_two_kills_of_the_server(server, address, tmp_path):
    _charge_while_the_server_is_killed(
        server, address, tmp_path / "notes", 4, 5000, patience=3600.0
    )
