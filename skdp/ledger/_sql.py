"""Ledgers whose records are rows of an SQL table.

The functions for all databases receive `execute(statement, parameters)`, which returns a cursor.
Question marks mark parameters. No local variable refers to a cursor: a stored exception would keep
it alive through its traceback, and SQLite ends neither a connection nor its transaction before the
last row has been fetched.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from skdp.exceptions import LedgerError
from skdp.ledger._chain import CHAIN_START, Record, chain_end, next_row

# Incremented with every change to the tables or the text of records; other versions are refused.
SCHEMA_VERSION = 2
# A template for the name of the table and the type of its sequence numbers.
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
_DATASET_FROM = f"{_ROWS} WHERE dataset = ? AND sequence >= ? ORDER BY sequence"


@dataclass
class Transaction:
    """An open transaction.

    Parameters
    ----------
    execute : callable
        Runs a statement.
    start : tuple of (int, str)
        The position from which `_check` checked the chain. `_check` sets it.
    new_rows : list of tuple
        The rows that follow this position. `_check` sets them.
    """

    execute: Callable
    start: tuple = CHAIN_START
    new_rows: list = field(default_factory=list)


class TableLedger:
    """Base class of ledgers whose records are rows of a table.

    A subclass has three methods. `_transaction(reading)` is a context that yields a `Transaction`,
    during which no one else can append. `_check(transaction, from_start)` checks the chain, from
    its first record if `from_start` is True, and returns its end. `_write(transaction, row, end)`
    inserts a row after the end, commits and reads it back.
    """

    def read(self, dataset, after=CHAIN_START):
        """Return the records of a data set that follow a position."""
        with self._transaction(reading=True) as transaction:
            self._check(transaction)
            return self._select(transaction, dataset, after)

    def append(self, dataset, after, decide):
        """Append one record; `decide` is called while no one else can append."""
        # Open the database and begin: no one else can append from here to the end.
        with self._transaction() as transaction:
            # Read, and check the records that others have written in the meantime.
            end = self._check(transaction)
            records = self._select(transaction, dataset, after)
            # Decide. If this raises an error, nothing is written.
            decision = decide(records)
            if decision is None:
                return records
            # Append, commit and read back, because only a record that is in the ledger counts.
            row = next_row(end, dataset, *decision)
            self._write(transaction, row, end)
            return [*records, Record.from_row(row)]

    def verify(self):
        """Check the whole chain and return the hash of the last record."""
        with self._transaction(reading=True) as transaction:
            return self._check(transaction, from_start=True)[1]

    def records(self):
        """Return the records of every data set, in order."""
        with self._transaction(reading=True) as transaction:
            rows = transaction.execute(_ALL).fetchall()
        return [Record.from_row(row) for row in rows]

    def _select(self, transaction, dataset, after):
        """Return the records of a data set that follow a position; the chain was checked."""
        if after == transaction.start:
            # The check has read these rows.
            rows = transaction.new_rows
        else:
            execute = transaction.execute
            rows = execute(_DATASET_FROM, (dataset, after[0])).fetchall()
            if after != CHAIN_START:
                # The caller's position is usually the last record of this data set.
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
    """Raise LedgerError unless this version of skdp can read the schema of a ledger."""
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
    """Raise LedgerError if the record at a position was changed or removed."""
    if position != CHAIN_START:
        _check_first(execute(_FROM + " LIMIT 1", (position[0],)).fetchall(), position)


def _check_first(rows, position):
    """Raise LedgerError unless the first row is the record at a position."""
    if not rows or (rows[0][0], rows[0][-1]) != position:
        raise LedgerError("the ledger was replaced or cut while in use")


def _rows_after(execute, position):
    """Return the rows that follow a position; raise LedgerError if its record was changed."""
    if position == CHAIN_START:
        return execute(_ALL).fetchall()
    rows = execute(_FROM, (position[0],)).fetchall()
    _check_first(rows, position)
    return rows[1:]


def check_chain(execute, start=CHAIN_START):
    """Check the chain from a position to the last record.

    Parameters
    ----------
    execute : callable
        Runs a statement.
    start : tuple of (int, str), default=CHAIN_START
        The sequence and the hash of a record. The chain up to it was checked before.

    Returns
    -------
    end : tuple of (int, str)
        The sequence and the hash of the last record.
    rows : list of tuple
        The rows that follow `start`.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.
    """
    rows = _rows_after(execute, start)
    return chain_end(rows, start), rows


def insert_row(execute, row):
    """Insert a record's row, inside the caller's transaction."""
    execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row)


def read_back(execute, row, end):
    """Raise LedgerError unless the written row is the only one after a position."""
    if _rows_after(execute, end) != [row]:
        raise LedgerError(
            f"record {row[0]} was written but is missing: another program wrote to the ledger at "
            "the same time; nothing is released"
        )
