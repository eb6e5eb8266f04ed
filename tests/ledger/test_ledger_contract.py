"""Every kind of ledger keeps the same contract; one that is registered is run through it too."""

import contextlib
import sqlite3
import uuid

import pytest

from skdp import LedgerError
from skdp.ledger import open_ledger, register_ledger
from tests._memory_ledger import MemoryLedger, rewrite_memory
from tests.ledger._ledger_contract import DAMAGES, LEDGER_CHECKS, check_damage
from tests.ledger._postgres_server import running_server


@pytest.fixture(autouse=True)
def short_waits_for_what_never_comes(request):
    if "inside_a_charge" in request.node.name:
        request.getfixturevalue("short_waits")


BY_NAME = pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)


@pytest.mark.quick_cases(every=4)
@BY_NAME
def test_sqlite(check, tmp_path, any_system):
    check(str(tmp_path / "budget.db"))


@BY_NAME
def test_memory(check):
    check(f"memory://{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running_server() as server:
        yield server


@pytest.mark.quick_cases(every=20)
@BY_NAME
def test_postgresql(check, server):
    check(server.new_database())


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


@pytest.mark.quick_cases(every=3)
@DAMAGED
def test_a_damaged_sqlite(damage, tmp_path, any_system):
    check_damage(str(tmp_path / "budget.db"), rewrite_sqlite, damage)


@DAMAGED
def test_a_damaged_memory(damage):
    check_damage(f"memory://{uuid.uuid4().hex[:8]}", rewrite_memory, damage)


@pytest.mark.quick_cases(every=4)
@DAMAGED
def test_a_damaged_postgresql(damage, server):
    check_damage(server.new_database(), rewrite_postgresql, damage)


def test_kinds_are_registered_by_a_word_that_is_not_taken():
    for scheme in ("postgresql", "postgres", "My", "my:", ""):
        with pytest.raises(ValueError, match="scheme"):
            register_ledger(scheme, MemoryLedger)
    with pytest.raises(LedgerError, match="scheme 'nobody': import the module that calls"):
        open_ledger("nobody://here")
