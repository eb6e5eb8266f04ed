"""Every kind of ledger keeps the same contract; one of somebody's own is run through it too."""

import contextlib
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
import uuid

import pytest

from skdp import LedgerError, PrivacyAccountant
from skdp.accounting import PureDP
from skdp.ledger import open_ledger, register_ledger
from skdp.ledger._sql import MemoryLedger, _kept
from tests._processes import Child
from tests.ledger._ledger_contract import DAMAGES, LEDGER_CHECKS, check_damage
from tests.ledger._postgres_server import running_server


@pytest.fixture(autouse=True)
def short_waits_for_what_never_comes(request, monkeypatch):
    if "inside_a_charge" in request.node.name:
        monkeypatch.setattr("skdp.ledger._sqlite.BUSY_TIMEOUT_SECONDS", 0.2)
        monkeypatch.setattr("skdp.ledger._postgres.LOCK_TIMEOUT_SECONDS", 0.2)


BY_NAME = pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)


class Foreign:
    """A ledger of somebody's own: that in memory, by another name."""

    def __init__(self, address):
        self._kept = open_ledger(address.replace("foreign", "memory"))

    def __getattr__(self, name):
        return getattr(self._kept, name)


@BY_NAME
def test_sqlite(check, tmp_path, any_system):
    check(str(tmp_path / "budget.db"))


@BY_NAME
def test_memory(check):
    check(f"memory://{uuid.uuid4().hex[:8]}")


@BY_NAME
def test_a_kind_that_was_registered(check):
    register_ledger("foreign", Foreign)
    check(f"foreign://{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running_server() as server:
        yield server


@BY_NAME
def test_postgresql(check, server):
    check(server.new_database())


def rewrite_memory(address, change):
    rows = _kept[MemoryLedger.address_of(address.replace("foreign", "memory"))][1]
    rows[:] = change(list(rows))
    return list(rows)


def rewrite_table(connection, change, table="records", mark="?"):
    columns = "sequence, dataset, kind, body, hash"
    found = connection.execute(f"SELECT {columns} FROM {table} ORDER BY sequence").fetchall()
    rows = change([tuple(row) for row in found])
    connection.execute(f"DELETE FROM {table}")
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join([mark] * 5)})", row)
    connection.commit()
    return rows


def rewrite_sqlite(address, change):
    with contextlib.closing(sqlite3.connect(address)) as connection:
        return rewrite_table(connection, change)


def rewrite_postgresql(address, change):
    with pytest.importorskip("psycopg").connect(address) as connection:
        return rewrite_table(connection, change, "skdp.records", "%s")


DAMAGED = pytest.mark.parametrize("damage", DAMAGES)


@DAMAGED
def test_a_damaged_sqlite(damage, tmp_path, any_system):
    check_damage(str(tmp_path / "budget.db"), rewrite_sqlite, damage)


@DAMAGED
def test_a_damaged_memory(damage):
    check_damage(f"memory://{uuid.uuid4().hex[:8]}", rewrite_memory, damage)


@DAMAGED
def test_a_damaged_ledger_of_a_kind_that_was_registered(damage):
    register_ledger("foreign", Foreign)
    check_damage(f"foreign://{uuid.uuid4().hex[:8]}", rewrite_memory, damage)


@DAMAGED
def test_a_damaged_postgresql(damage, server):
    check_damage(server.new_database(), rewrite_postgresql, damage)


def test_kinds_are_registered_by_a_word_that_is_not_taken():
    for scheme in ("memory", "postgresql", "postgres", "My", "my:", ""):
        with pytest.raises(ValueError, match="scheme"):
            register_ledger(scheme, Foreign)
    with pytest.raises(LedgerError, match="scheme 'nobody': import the module that calls"):
        open_ledger("nobody://here")


def test_memory_without_a_name_is_a_new_ledger_each_time():
    one, two = (PrivacyAccountant(1.0, 0.0, ledger="memory://") for _ in range(2))
    one.charge(PureDP(1.0))
    assert (one.epsilon_spent, two.epsilon_spent) == (1.0, 0.0)


def charges_nothing(accountant):
    with pytest.raises(LedgerError, match="memory of another process"):
        accountant.charge(PureDP(0.5))
    PrivacyAccountant(9.0, 0.0, ledger="memory://shared").charge(PureDP(9.0))
    with pytest.raises(LedgerError, match="memory of another process"):
        assert accountant.epsilon_spent


def test_memory_is_not_charged_from_another_process():
    accountant = PrivacyAccountant(1.0, 0.0, ledger="memory://shared")
    accountant.charge(PureDP(0.5))
    Child(charges_nothing, accountant).join()
    assert accountant.epsilon_spent == 0.5
    script = (
        "import pickle, sys\n"
        "from skdp import PrivacyAccountant\n"
        "PrivacyAccountant(1.0, 0.0, ledger='memory://shared')\n"
        "pickle.loads(bytes.fromhex(sys.argv[1])).epsilon_spent\n"
    )
    command = [sys.executable, "-c", script, pickle.dumps(accountant).hex()]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "LedgerError" in told.stderr and "memory of another process" in told.stderr


def charges_from_threads(uuid4):
    def slow():
        time.sleep(0.05)
        return uuid4()

    uuid.uuid4 = slow
    spent = []

    def charge():
        PrivacyAccountant(9.0, 0.0, ledger="memory://threads").charge(PureDP(1.0))
        spent.append(1)

    threads = [threading.Thread(target=charge) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(spent) == 3
    assert PrivacyAccountant(9.0, 0.0, ledger="memory://threads").epsilon_spent == 3.0


def test_threads_of_a_new_process_find_the_same_memory():
    Child(charges_from_threads, uuid.uuid4).join()
