"""Ledgers whose records are rows of a table: in the memory of one process, or in SQL.

The functions for every database take `execute(statement, parameters)`, which returns a cursor;
parameters are marked by question marks. No frame keeps a cursor: whoever kept an exception would
keep it, and SQLite does not end a connection, nor its transaction, before the last row was
fetched.
"""

import os
import re
import threading
import uuid
from functools import partial

from skdp.exceptions import LedgerError
from skdp.ledger._chain import NOTHING, Record, chain_end, next_row

SCHEMA_VERSION = 1
# By its name and the type of its numbers.
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

# The lock, the rows and the calls that are under way (one at most) of each ledger.
_kept: dict = {}
# By the number of a process, its name, which no other one has, and the lock of `connections`. A
# child finds its own, also where a signal kept the hook of a fork from running.
_of_process: dict = {}


def _own():
    process = os.getpid()
    if process not in _of_process:
        _of_process.setdefault(process, (uuid.uuid4().hex, threading.RLock()))
    return _of_process[process]


def connections():
    """Return the lock that no connection of this process outlives.

    A fork while a database's library works in another thread would copy its locked mutexes into
    the child, and a connection that a child inherits may, when it is closed, delete or end what
    others use. No other thread forks while the lock is held.
    """
    return _own()[1]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: connections().acquire(),
        after_in_parent=lambda: connections().release(),
        after_in_child=_of_process.clear,
    )


class TableLedger:
    """What ledgers share that keep their records in a table.

    A subclass has `_call(work, reading)`, which returns what `work` returns of a transaction that
    nobody else can append in; `_check(transaction, whole)`, which returns the end of the chain;
    and `_commit(transaction, row, end)`. A transaction has `execute` and, once it is
    checked, `checked`: a position and the rows that follow it; or the subclass says how records are
    selected.
    """

    def read(self, dataset, after=NOTHING):
        """Return the records of a data set that follow a position."""

        def work(transaction):
            self._check(transaction)
            return self._select(transaction, dataset, after)

        return self._call(work, reading=True)

    def append(self, dataset, after, decide):
        """Append one record, decided while nobody else can append."""

        def work(transaction):
            # Read: nobody else can append from the transaction's begin to its end.
            end = self._check(transaction)
            records = self._select(transaction, dataset, after)
            # Decide: whoever charges sees what is there now, whoever wrote it.
            decision = decide(records)
            if decision is None:
                return records
            # Append, commit and read back.
            row = next_row(end, dataset, *decision)
            self._commit(transaction, row, end)
            return [*records, Record.from_row(row)]

        # Open and begin.
        return self._call(work)

    def verify(self):
        """Check the whole chain and return the hash of the last record."""
        return self._call(partial(self._check, whole=True), reading=True)[1]

    def records(self):
        """Return the records of every data set, in order."""
        rows = self._call(lambda transaction: transaction.execute(_ALL).fetchall(), reading=True)
        return list(map(Record.from_row, rows))

    def _select(self, transaction, dataset, after):
        """Return the records of a data set that follow a position, of a chain that was checked."""
        seen, new_rows = transaction.checked
        if after == seen:
            # They were read when the chain was checked.
            return [Record.from_row(row) for row in new_rows if row[1] == dataset]
        execute = transaction.execute
        rows = execute(_OF_DATASET_FROM, (dataset, after[0])).fetchall()
        if after != NOTHING:
            # The record that was seen is usually the last one of this data set.
            if rows and rows[0][0] == after[0]:
                _check_first(rows, after)
                rows = rows[1:]
            else:
                check_position(execute, after)
        return [Record.from_row(row) for row in rows]


def check_version(version, address):
    """Raise LedgerError unless this version of skdp knows the schema of a ledger."""
    if version is None or version > SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {address} was written by a newer skdp (schema {version}, this one reads "
            f"up to {SCHEMA_VERSION})"
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


class MemoryLedger(TableLedger):
    """A ledger that ends with its process and is in no other one.

    A handle that is pickled into another process, or used in a child that was forked, raises
    LedgerError there: what it charged would not be found by the others.

    Parameters
    ----------
    address : str
        What `address_of` returns.
    """

    def __init__(self, address):
        self._address = address
        # The rows that this object has checked, and their end.
        self._checked = [], NOTHING

    @staticmethod
    def address_of(address):
        """Return the address of a ledger of this process; without a name, of a new one."""
        if re.match("memory://[0-9a-f]{32}/", address):
            return address
        return f"memory://{_own()[0]}/{address.partition('://')[2] or uuid.uuid4().hex}"

    def create(self):
        """Begin the ledger unless it is there."""
        self._check_process()
        _kept.setdefault(self._address, (threading.RLock(), [], []))

    def records(self):
        """Return the records of every data set, in order."""
        return self._call(lambda rows: list(map(Record.from_row, rows)))

    def _select(self, rows, dataset, after):
        seen = {(row[0], row[-1]) for row in rows[after[0] - 1 :][:1]}
        if after != NOTHING and after not in seen:
            raise LedgerError("the ledger was replaced or cut while in use")
        return [Record.from_row(row) for row in rows[after[0] :] if row[1] == dataset]

    def _check(self, rows, whole=False):
        known, end = self._checked
        if whole or rows[: len(known)] != known:
            known, end = [], NOTHING
        self._checked = rows.copy(), chain_end(rows[len(known) :], end)
        return self._checked[1]

    def _commit(self, rows, row, end):
        rows.append(row)

    def _call(self, work, reading=False):
        """Return what `work` returns of the rows, under the ledger's lock."""
        self._check_process()
        if self._address not in _kept:
            raise LedgerError(f"there is no ledger at {self._address}")
        lock, rows, calls = _kept[self._address]
        with lock:
            if calls:
                raise LedgerError(
                    "the ledger is in use by this thread: nothing can be charged inside a charge, "
                    "as a signal handler or a finaliser would"
                )
            try:
                calls.append(work)
                return work(rows)
            finally:
                calls.clear()

    def _check_process(self):
        if not self._address.startswith(f"memory://{_own()[0]}/"):
            raise LedgerError(f"the ledger {self._address} is in the memory of another process")
