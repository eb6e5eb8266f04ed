"""Records of a ledger in SQL, for every database that keeps them in a table.

The functions take `execute(statement, parameters)`, which returns a cursor; parameters are
marked by question marks. No frame keeps a cursor: whoever kept an exception would keep it, and
SQLite does not end a connection, nor its transaction, before the last row was fetched.
"""

import os
import threading
from functools import partial

from skdp.accounting._chain import FIRST_HASH, NOTHING, Record, chain_end, next_record
from skdp.exceptions import LedgerError

_ROWS = "SELECT sequence, dataset, kind, body, hash FROM records"
_ALL = f"{_ROWS} ORDER BY sequence"
_SINCE = f"{_ROWS} WHERE sequence > ? ORDER BY sequence"
# In the order of the table, which is what the chain is checked in: an index that somebody added
# is a second copy, from which records can be missing. (A sum of nothing keeps planners from it.)
_OF_DATASET = f"{_ROWS} WHERE dataset || '' = ? AND sequence > ? ORDER BY sequence"

# A fork while a database's library works in another thread would copy its locked mutexes into
# the child, and a connection that a child inherits may, when it is closed, delete or end what
# others use. No connection outlives this lock, and no fork happens while it is held.
CONNECTIONS = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=CONNECTIONS.acquire,
        after_in_parent=CONNECTIONS.release,
        after_in_child=CONNECTIONS.release,
    )


class TableLedger:
    """What ledgers share that keep their records in a table.

    A subclass has `_call(work, reading)`, which returns what `work` returns of a transaction that
    nobody else can append in; `_check(transaction, whole)`, which returns the end of the chain;
    and `_commit(transaction, record, end)`. A transaction has `execute`, or the subclass says
    how records are selected.
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
            end = self._check(transaction)
            records = self._select(transaction, dataset, after)
            decision = decide(records)
            if decision is None:
                return records
            record = next_record(end, dataset, *decision)
            self._commit(transaction, record, end)
            return [*records, record]

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
        check_position(transaction.execute, after)
        of_dataset = (dataset, after[0])
        return list(map(Record.from_row, transaction.execute(_OF_DATASET, of_dataset)))


def check_position(execute, position):
    """Raise LedgerError if the record that was seen at a position is not there any more."""
    sequence, digest = position
    if position != NOTHING and _hash_at(execute, sequence) != digest:
        raise LedgerError("the ledger was replaced or cut while in use")


def check_chain(execute, seen=NOTHING):
    """Check the chain from a record that was seen to the last one, and return its end.

    Parameters
    ----------
    execute : callable
    seen : tuple of (int, str), default=NOTHING
        The sequence and the hash of a record up to which nothing has changed since the chain
        was last checked.

    Returns
    -------
    tuple of (int, str)
        The sequence and the hash of the last record.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.
    """
    if seen == NOTHING:
        return chain_end(execute(_ALL, ()).fetchall())
    check_position(execute, seen)
    before = seen[0] - 1
    previous = _hash_at(execute, before) if before else FIRST_HASH
    return chain_end(execute(_SINCE, (before,)).fetchall(), (before, previous))


def insert_record(execute, record):
    """Insert a record, inside the caller's transaction."""
    execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", record.row)


def read_back(execute, record, end):
    """Raise LedgerError unless a record that was committed is there, behind a position."""
    check_position(execute, end)
    if execute(_SINCE, (end[0],)).fetchall() != [record.row]:
        raise LedgerError(
            f"record {record.sequence} was written but is missing: another program wrote into the "
            "ledger's file at the same time; nothing is released"
        )


def _hash_at(execute, sequence):
    row = execute("SELECT hash FROM records WHERE sequence = ?", (sequence,)).fetchone()
    return None if row is None else row[0]
