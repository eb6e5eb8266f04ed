"""The hash chain of a ledger's records, as pure functions that do not depend on the storage."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from skdp.exceptions import LedgerError
from skdp.utils._json import canonical_json

# Hash before the first record, in the format of a SHA-256 in hexadecimal digits.
FIRST_HASH = "0" * 64

# The position before the first record: (sequence, hash).
CHAIN_START = (0, FIRST_HASH)


@dataclass(frozen=True)
class Record:
    """One record of a ledger.

    Parameters
    ----------
    sequence : int
        Position in the ledger, from 1.
    dataset : str
        The data set to which the record belongs.
    kind : str
        ``"open"``, ``"charge"``, ``"reuse"``, ``"change_limit"``, ``"sub_limit"`` or ``"close"``.
    body : dict
        The recorded values, as JSON values.
    hash : str
        SHA-256 over this record and the hash of the one before it, in hexadecimal.

    Examples
    --------
    >>> from skdp.ledger import Record, chain_end, next_record
    >>> record = next_record(chain_end([]), "default", "open", {"epsilon": 1.0})
    >>> Record.from_row(record.row) == record
    True
    """

    sequence: int
    dataset: str
    kind: str
    body: dict
    hash: str

    @property
    def row(self) -> tuple[int, str, str, str, str]:
        """The database row: sequence, data set, kind, body as JSON text, and hash."""
        return self.sequence, self.dataset, self.kind, canonical_json(self.body), self.hash

    @classmethod
    def from_row(cls, row: tuple) -> "Record":
        """Return the record of a database row.

        Parameters
        ----------
        row : tuple
            A row in the form of `row`.

        Returns
        -------
        Record

        Raises
        ------
        LedgerError
            If a column is not text, or the body is not JSON.
        """
        sequence, dataset, kind, body, digest = row
        is_text = isinstance(dataset, str) and isinstance(kind, str) and isinstance(body, str)
        if not (is_text and isinstance(digest, str)):
            raise LedgerError(f"record {sequence} cannot be read: a column is not text")
        try:
            return cls(sequence, dataset, kind, json.loads(body), digest)
        except json.JSONDecodeError as error:
            raise LedgerError(f"record {sequence} cannot be read: it is not JSON") from error


def chain_hash(previous, sequence, dataset, kind, body):
    """Return the hash of a record after a record with hash `previous`; `body` is JSON text."""
    text = canonical_json([previous, sequence, dataset, kind, body])
    return hashlib.sha256(text.encode()).hexdigest()


def chain_end(rows: Iterable[tuple], start: tuple[int, str] = CHAIN_START) -> tuple[int, str]:
    """Check the chain of hashes from a position on, and return its last position.

    Parameters
    ----------
    rows : iterable of tuple
        The `Record.row` of each record, in order.
    start : tuple of (int, str), default=CHAIN_START
        The sequence and the hash of the record before the first.

    Returns
    -------
    tuple of (int, str)
        The sequence and the hash of the last record.

    Raises
    ------
    LedgerError
        If a record was changed, removed, inserted or reordered.

    Examples
    --------
    >>> from skdp.ledger import chain_end
    >>> chain_end([])[0]
    0
    """
    expected, previous = start
    for sequence, dataset, kind, body, digest in rows:
        expected += 1
        is_text = isinstance(dataset, str) and isinstance(kind, str) and isinstance(body, str)
        follows = is_text and sequence == expected
        if not follows or digest != chain_hash(previous, sequence, dataset, kind, body):
            raise LedgerError(f"the ledger's chain breaks at record {expected}")
        previous = digest
    return expected, previous


def next_record(end: tuple[int, str], dataset: str, kind: str, body: dict) -> Record:
    """Return the record that follows the end of a chain, as it will be read back.

    Parameters
    ----------
    end : tuple of (int, str)
        The sequence and the hash of the last record.
    dataset : str
        The data set to which the record belongs.
    kind : str
        The kind of record; see `Record`.
    body : dict
        The values to record, as JSON values.

    Returns
    -------
    Record

    Raises
    ------
    LedgerError
        If the body is not JSON, or would be read back as a different one.

    Examples
    --------
    >>> from skdp.ledger import chain_end, next_record
    >>> record = next_record(chain_end([]), "default", "open", {"epsilon": 1.0})
    >>> record.sequence, chain_end([record.row]) == (1, record.hash)
    (1, True)
    """
    return Record.from_row(next_row(end, dataset, kind, body))


def next_row(end, dataset, kind, body):
    """Return the row of a database for the next record: its position, body as JSON, and hash.

    SQL ledgers insert the row as it is and compare it with the row that they read back. The text is
    hashed, so it is made only once; `next_record` makes a `Record` from the row.

    Parameters
    ----------
    end : (int, str)
        Sequence and hash of the last record.
    dataset, kind : str
    body : dict

    Raises
    ------
    LedgerError
        If the body is not JSON, or would be read back as a different one.
    """
    try:
        text = canonical_json(body)
        read = json.loads(text)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"a record cannot be written: {error}") from error
    if read != body:
        raise LedgerError("a record cannot be written: JSON would read it back as a different one")
    previous = end[1]
    sequence = end[0] + 1
    return sequence, dataset, kind, text, chain_hash(previous, sequence, dataset, kind, text)
