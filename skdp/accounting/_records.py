"""Records of a ledger, and what every database that keeps them has in common.

The functions take `execute(statement, parameters)`, which returns a cursor; parameters are
marked by question marks.
"""

import hashlib
import json
import os
import threading
from dataclasses import dataclass

from skdp.exceptions import LedgerError

__all__ = [
    "CONNECTIONS",
    "NOTHING",
    "Record",
    "all_records",
    "check_chain",
    "insert_record",
    "next_record",
    "read_back",
    "select_records",
]

FIRST_HASH = "0" * 64

# The position before the first record, as (sequence, hash).
NOTHING = (0, FIRST_HASH)

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


@dataclass(frozen=True)
class Record:
    """One line of the ledger.

    Parameters
    ----------
    sequence : int
        Position in the ledger, from 1.
    dataset : str
        The data set that the record is about.
    kind : str
        ``"open"``, ``"charge"``, ``"draw"`` or ``"change_cap"``.
    body : dict
        What was recorded, as JSON values.
    hash : str
        SHA-256 over this record and the hash of the one before it, in hexadecimal.
    """

    sequence: int
    dataset: str
    kind: str
    body: dict
    hash: str


def canonical_json(value):
    """Return the one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain_hash(previous, sequence, dataset, kind, body):
    """Return the hash of a record that follows the hash `previous`; `body` is JSON text."""
    text = canonical_json([previous, sequence, dataset, kind, body])
    return hashlib.sha256(text.encode()).hexdigest()


def chain_end(rows, start=NOTHING):
    """Return where a chain ends that goes on from a position.

    Parameters
    ----------
    rows : iterable of (int, str, str, str, str)
        Sequence, data set, kind, body and hash of each record, in order.
    start : tuple of (int, str), default=NOTHING
        The sequence and the hash of the record before the first.

    Returns
    -------
    tuple of (int, str)
        The sequence and the hash of the last record.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.
    """
    expected, previous = start
    for sequence, dataset, kind, body, digest in rows:
        expected += 1
        is_text = all(isinstance(value, str) for value in (dataset, kind, body))
        follows = is_text and sequence == expected
        if not follows or digest != chain_hash(previous, sequence, dataset, kind, body):
            raise LedgerError(f"the ledger's chain breaks at record {expected}")
        previous = digest
    return expected, previous


def next_record(end, dataset, kind, body):
    """Return the record that follows the end of a chain, as it will be read.

    Raises
    ------
    LedgerError
        If another body would be read than the one that is written.
    """
    try:
        text = canonical_json(body)
        read = json.loads(text)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"a record cannot be written: {error}") from error
    if read != body:
        raise LedgerError("a record cannot be written: it would be read as another one")
    previous, sequence = end[1], end[0] + 1
    digest = chain_hash(previous, sequence, dataset, kind, text)
    return Record(sequence, dataset, kind, read, digest)


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
        return chain_end(execute(_ALL, ()))
    check_position(execute, seen)
    before = seen[0] - 1
    previous = _hash_at(execute, before) if before else FIRST_HASH
    return chain_end(execute(_SINCE, (before,)), (before, previous))


def select_records(execute, dataset, after):
    """Return the records of a data set that follow a position, of a chain that was checked."""
    check_position(execute, after)
    return _read(execute(_OF_DATASET, (dataset, after[0])))


def all_records(execute):
    """Return the records of every data set, in order."""
    return _read(execute(_ALL, ()))


def insert_record(execute, record):
    """Insert a record, inside the caller's transaction."""
    execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", _row(record))


def read_back(execute, record, end):
    """Raise LedgerError unless a record that was committed is there, behind a position."""
    check_position(execute, end)
    if [tuple(row) for row in execute(_SINCE, (end[0],))] != [_row(record)]:
        raise LedgerError(
            f"record {record.sequence} was written and is not there: somebody else wrote into the "
            "ledger's file meanwhile; nothing is released"
        )


def _row(record):
    text = canonical_json(record.body)
    return record.sequence, record.dataset, record.kind, text, record.hash


def _hash_at(execute, sequence):
    row = execute("SELECT hash FROM records WHERE sequence = ?", (sequence,)).fetchone()
    return None if row is None else row[0]


def _read(rows):
    return [_record(*row) for row in rows]


def _record(sequence, dataset, kind, body, digest):
    if not all(isinstance(value, str) for value in (dataset, kind, body, digest)):
        raise LedgerError(f"record {sequence} cannot be read: it is not text")
    return Record(sequence, dataset, kind, json.loads(body), digest)
