"""Ledgers whose records are rows of a table of SQL.

The functions for every database take `execute(statement, parameters)`, which returns a cursor;
parameters are marked by question marks. No frame keeps a cursor: an exception that is kept would
keep it, and SQLite does not end a connection, nor its transaction, before the last row was
fetched.
"""

import os
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from skdp.exceptions import LedgerError
from skdp.ledger._chain import NOTHING, Record, chain_end, next_row

SCHEMA_VERSION = 2
# A format of the table's name and of the type of its sequence numbers.
TABLE = """CREATE TABLE {} (
    sequence {} PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
)"""
_ROWS = "SELECT sequence, dataset, kind, body, hash FROM records"
_ALL = f"{_ROWS} ORDER BY sequence"
_FROM = f"{_ROWS} WHERE sequence >= ? ORDER BY sequence"
_OF_DATASET_FROM = f"{_ROWS} WHERE dataset = ? AND sequence >= ? ORDER BY sequence"

# Held during every connection of this process, and during every fork: a fork while a database's
# library works in another thread would copy its locked mutexes into the child, and a connection
# that a child inherits may, when it is closed, delete or end what others use.
_connections = threading.RLock()
# The ledgers that a call of this process is using now.
_in_use: set = set()


def _begin_in_child():
    global _connections
    _connections = threading.RLock()
    _in_use.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _connections.acquire(),
        after_in_parent=lambda: _connections.release(),
        after_in_child=_begin_in_child,
    )


@contextmanager
def in_use(address):
    """Hold the one connection of this process, to the ledger at an address.

    Raises
    ------
    LedgerError
        If a call of this thread is using the ledger already, as inside a signal handler: it would
        wait for its own lock for ever.
    """
    with _connections:
        if address in _in_use:
            raise LedgerError(
                f"the ledger {address} is in use by this thread: nothing can be charged or read "
                "inside a charge, as a signal handler or a finalizer would"
            )
        try:
            _in_use.add(address)
            yield
        finally:
            _in_use.discard(address)


@dataclass
class Transaction:
    """A transaction that has begun.

    Parameters
    ----------
    execute : callable
        Runs a statement.
    seen : tuple of (int, str)
        The position up to which the chain had been checked before; set by a check.
    new_rows : list of tuple
        The rows that follow it; set by a check.
    """

    execute: Callable
    seen: tuple = NOTHING
    new_rows: list = field(default_factory=list)


class TableLedger:
    """Base of the ledgers whose records are rows of a table.

    A subclass has `_transaction(reading)`, a context with a `Transaction` in which no one else can
    append; `_check(transaction, whole)`, which returns the end of the chain; and
    `_write(transaction, row, end)`, which inserts a row behind the end, commits and reads it back.
    """

    def read(self, dataset, after=NOTHING):
        """Return the records of a data set that follow a position."""
        with self._transaction(reading=True) as transaction:
            self._check(transaction)
            return self._select(transaction, dataset, after)

    def append(self, dataset, after, decide):
        """Append one record, decided while no one else can append."""
        # Open the database and begin: no one else can append from here to the end.
        with self._transaction() as transaction:
            # Read, and check what others have written since.
            end = self._check(transaction)
            records = self._select(transaction, dataset, after)
            # Decide, which may raise: nothing is written then.
            decision = decide(records)
            if decision is None:
                return records
            # Append, commit and read back: a record that is not there does not count.
            row = next_row(end, dataset, *decision)
            self._write(transaction, row, end)
            return [*records, Record.from_row(row)]

    def verify(self):
        """Check the whole chain and return the hash of the last record."""
        with self._transaction(reading=True) as transaction:
            return self._check(transaction, whole=True)[1]

    def records(self):
        """Return the records of every data set, in order."""
        with self._transaction(reading=True) as transaction:
            rows = transaction.execute(_ALL).fetchall()
        return [Record.from_row(row) for row in rows]

    def _select(self, transaction, dataset, after):
        """Return the records of a data set that follow a position, of a chain that was checked."""
        if after == transaction.seen:
            # They were read when the chain was checked.
            rows = transaction.new_rows
        else:
            execute = transaction.execute
            rows = execute(_OF_DATASET_FROM, (dataset, after[0])).fetchall()
            if after != NOTHING:
                # The record that was seen is usually the last one of this data set.
                if rows and rows[0][0] == after[0]:
                    _check_first(rows, after)
                    rows = rows[1:]
                else:
                    check_position(execute, after)
        records = []
        for row in rows:
            if row[1] == dataset:
                records.append(Record.from_row(row))
        return records


def check_version(version, address):
    """Raise LedgerError unless this version of skdp knows the schema of a ledger."""
    if version is not None and version < SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {address} was written by a development version of skdp before 0.1.0 "
            f"(schema {version}, this one reads {SCHEMA_VERSION}); begin a new ledger"
        )
    if version is None or version > SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {address} was written by a newer skdp (schema {version}, this one reads "
            f"{SCHEMA_VERSION})"
        )


def check_position(execute, position):
    """Raise LedgerError if the record that was seen at a position is not there any more."""
    if position != NOTHING:
        _check_first(execute(_FROM + " LIMIT 1", (position[0],)).fetchall(), position)


def _check_first(rows, position):
    """Raise LedgerError unless the first of some rows is the record at a position."""
    if not rows or (rows[0][0], rows[0][-1]) != position:
        raise LedgerError("the ledger was replaced or cut while in use")


def _rows_after(execute, position):
    """Return the rows that follow a position, at which there must be the record that was seen."""
    if position == NOTHING:
        return execute(_ALL).fetchall()
    rows = execute(_FROM, (position[0],)).fetchall()
    _check_first(rows, position)
    return rows[1:]


def check_chain(execute, seen=NOTHING):
    """Check the chain from a record that was seen to the last one.

    Parameters
    ----------
    execute : callable
    seen : tuple of (int, str), default=NOTHING
        The sequence and the hash of a record up to which nothing has changed since the chain
        was last checked.

    Returns
    -------
    end : tuple of (int, str)
        The sequence and the hash of the last record.
    rows : list of tuple
        The rows that follow the record that was seen.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.
    """
    rows = _rows_after(execute, seen)
    return chain_end(rows, seen), rows


def insert_row(execute, row):
    """Insert a record's row, inside the caller's transaction."""
    execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row)


def read_back(execute, row, end):
    """Raise LedgerError unless a row that was written is there, right behind a position."""
    if _rows_after(execute, end) != [row]:
        raise LedgerError(
            f"record {row[0]} was written but is missing: another program wrote into the "
            "ledger's file at the same time; nothing is released"
        )
