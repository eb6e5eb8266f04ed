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
    "append_record",
    "select_records",
    "verify_chain",
]

FIRST_HASH = "0" * 64

# The position before the first record, as (sequence, hash).
NOTHING = (0, FIRST_HASH)

_ALL = "SELECT sequence, dataset, kind, body, hash FROM records ORDER BY sequence"

# A fork while a database's library works in another thread would copy its locked mutexes into
# the child, and a connection that a child inherits may, when it is closed, delete or end what
# others use. No connection outlives this lock, and no fork happens while it is held.
CONNECTIONS = threading.RLock()
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


def select_records(execute, dataset, after):
    """Return the records of a data set that follow a position.

    Raises
    ------
    LedgerError
        If the record at that position is not there any more, or one that follows was changed or
        does not follow the one before it.
    """
    sequence, digest = after
    if after != NOTHING:
        seen = execute("SELECT hash FROM records WHERE sequence = ?", (sequence,)).fetchone()
        if seen != (digest,):
            raise LedgerError("the ledger was replaced or cut while in use")
    rows = execute(
        "SELECT r.sequence, r.dataset, r.kind, r.body, r.hash, p.hash FROM records AS r"
        " LEFT JOIN records AS p ON p.sequence = r.sequence - 1"
        " WHERE r.dataset = ? AND r.sequence > ? ORDER BY r.sequence",
        (dataset, sequence),
    )
    return [_linked(_record(*row), text=row[3], previous=previous) for *row, previous in rows]


def all_records(execute):
    """Return the records of every data set, in order."""
    return _read(execute(_ALL, ()))


def append_record(execute, dataset, decision):
    """Append what was decided, inside the caller's transaction, and return the record."""
    kind, body = decision
    text = canonical_json(body)
    newest = "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1"
    last, previous = execute(newest, ()).fetchone() or NOTHING
    digest = chain_hash(previous, last + 1, dataset, kind, text)
    execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", (last + 1, dataset, kind, text, digest))
    return Record(last + 1, dataset, kind, json.loads(text), digest)


def verify_chain(execute):
    """Check the hash chain from the first record to the last, and return its last hash.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.
    """
    previous, expected = FIRST_HASH, 1
    for sequence, dataset, kind, body, digest in execute(_ALL, ()):
        is_text = all(isinstance(value, str) for value in (dataset, kind, body))
        follows = is_text and sequence == expected
        if not follows or digest != chain_hash(previous, sequence, dataset, kind, body):
            raise LedgerError(f"the ledger's chain breaks at record {expected}")
        previous, expected = digest, expected + 1
    return previous


def _linked(record, text, previous):
    """Return a record whose hash is that of its text and of the record before it."""
    previous = FIRST_HASH if record.sequence == 1 else previous
    expected = chain_hash(previous, record.sequence, record.dataset, record.kind, text)
    if record.hash != expected:
        raise LedgerError(f"the ledger's chain breaks at record {record.sequence}")
    return record


def _read(rows):
    return [_record(*row) for row in rows]


def _record(sequence, dataset, kind, body, digest):
    if not all(isinstance(value, str) for value in (dataset, kind, body, digest)):
        raise LedgerError(f"record {sequence} cannot be read: it is not text")
    return Record(sequence, dataset, kind, json.loads(body), digest)
