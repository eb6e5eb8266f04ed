"""The ledger: an append-only, hash-chained table of records in an SQLite file.

The ledger stores what it is given and knows no theorem. Whoever appends decides inside the
write transaction, on the records that are there at that moment, whether to append at all.
"""

import hashlib
import json
import os
import sqlite3
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skdp.exceptions import LedgerError

__all__ = ["NOTHING", "Record", "SQLiteLedger", "open_ledger"]

APPLICATION_ID = 0x736B6470  # "skdp"
SCHEMA_VERSION = 1
FIRST_HASH = "0" * 64
BUSY_TIMEOUT_SECONDS = 30.0

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX records_of_dataset ON records (dataset, sequence);
"""

# A fork while SQLite works in another thread would copy its locked mutexes into the child, and a
# connection that a child inherits may delete what others wrote when it is closed. No connection
# outlives this lock, and no fork happens while it is held.
_SQLITE = threading.RLock()
os.register_at_fork(
    before=_SQLITE.acquire,
    after_in_parent=_SQLITE.release,
    after_in_child=_SQLITE.release,
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


# The position before the first record, as (sequence, hash).
NOTHING = (0, FIRST_HASH)


def canonical_json(value):
    """Return the one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain_hash(previous, sequence, dataset, kind, body):
    """Return the hash of a record that follows the hash `previous`; `body` is JSON text."""
    text = canonical_json([previous, sequence, dataset, kind, body])
    return hashlib.sha256(text.encode()).hexdigest()


def open_ledger(address):
    """Return the ledger at an address, without touching it.

    Parameters
    ----------
    address : str
        A file's path.

    Returns
    -------
    SQLiteLedger
    """
    if "://" in address:
        scheme = address.partition("://")[0]
        raise LedgerError(f"no ledger of kind {scheme!r}; give the path of a file")
    return SQLiteLedger(address)


class SQLiteLedger:
    """A ledger in one SQLite file, safe for threads, processes, forks and crashes.

    Writes are durable when they return, and then stand in this one file (rollback journal,
    ``synchronous=EXTRA``). A connection lives for one call. The file must be on a disk whose
    locks all its users share, and have one name: under a second hard link the journal of a
    writer that was killed would not be found.

    Parameters
    ----------
    path : str
        The file. Nothing is opened before the first call.
    """

    def __init__(self, path):
        self.path = Path(path)

    def create(self):
        """Create the file, with its schema, unless there is one. Two processes may race here."""
        if self.path.exists():
            return
        draft = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}")
        try:
            with self._errors(), _SQLITE:
                connection = sqlite3.connect(draft)
                try:
                    connection.executescript(_SCHEMA)
                finally:
                    connection.close()
            # A link, unlike a renaming, never replaces what another process has just made.
            os.link(draft, self.path)
        except FileExistsError:
            pass
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be created: {error}") from error
        finally:
            draft.unlink(missing_ok=True)

    def read(self, dataset, after=NOTHING):
        """Return the records of a data set that follow a position, in order.

        Parameters
        ----------
        dataset : str
        after : tuple of (int, str), default=NOTHING
            The sequence and the hash of the last record that the caller has seen.

        Returns
        -------
        list of Record

        Raises
        ------
        LedgerError
            If the record that was seen is not there any more.
        """
        with self._connection() as connection:
            return self._select(connection, dataset, after)

    def append(self, dataset, after, decide):
        """Append one record, decided inside the write transaction.

        Parameters
        ----------
        dataset : str
        after : tuple of (int, str)
            The sequence and the hash of the last record that the caller has seen.
        decide : callable
            Called with the list of records of `dataset` since `after`; returns
            ``(kind, body)``, or None to append nothing. What it raises rolls back.

        Returns
        -------
        list of Record
            The records since `after`, the appended one last.
        """
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            records = self._select(connection, dataset, after)
            decision = decide(records)
            if decision is None:
                return records
            kind, body = decision
            text = canonical_json(body)
            row = connection.execute(
                "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
            last, previous = row or NOTHING
            digest = chain_hash(previous, last + 1, dataset, kind, text)
            connection.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
                (last + 1, dataset, kind, text, digest),
            )
            connection.execute("COMMIT")
            return [*records, Record(last + 1, dataset, kind, json.loads(text), digest)]

    def verify(self):
        """Check the hash chain from the first record to the last.

        Returns
        -------
        str
            The hash of the last record. Keep it elsewhere: the chain finds an edit, and only
            a hash kept elsewhere finds a chain that was replaced or cut at its end.

        Raises
        ------
        LedgerError
            If a record was changed, removed, inserted or reordered.
        """
        with self._connection() as connection:
            previous, expected = FIRST_HASH, 1
            for row in connection.execute(
                "SELECT sequence, dataset, kind, body, hash FROM records ORDER BY sequence"
            ):
                sequence, dataset, kind, body, digest = row
                if sequence != expected or digest != chain_hash(
                    previous, sequence, dataset, kind, body
                ):
                    raise LedgerError(f"the ledger's chain breaks at record {expected}")
                previous, expected = digest, expected + 1
            return previous

    def _select(self, connection, dataset, after):
        sequence, digest = after
        if after != NOTHING:
            seen = connection.execute(
                "SELECT hash FROM records WHERE sequence = ?", (sequence,)
            ).fetchone()
            if seen != (digest,):
                raise LedgerError(f"the ledger {self.path} was replaced or cut while in use")
        rows = connection.execute(
            "SELECT sequence, dataset, kind, body, hash FROM records"
            " WHERE dataset = ? AND sequence > ? ORDER BY sequence",
            (dataset, sequence),
        )
        return [Record(s, d, kind, json.loads(body), h) for s, d, kind, body, h in rows]

    @contextmanager
    def _connection(self):
        """Yield a connection; closing it rolls back what was not committed."""
        with self._errors(), _SQLITE:
            self._check_file()
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
            )
            try:
                self._check_schema(connection)
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
            finally:
                connection.close()

    @contextmanager
    def _errors(self):
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from error
        except json.JSONDecodeError as error:
            raise LedgerError(f"the ledger {self.path} holds a record that is no JSON") from error

    def _check_file(self):
        # While its creator takes away the draft's name, a new file has two for a moment.
        for _ in range(100):
            try:
                names = os.stat(self.path).st_nlink
            except OSError as error:
                raise LedgerError(f"there is no ledger at {self.path}") from error
            if names == 1:
                return
            time.sleep(0.01)
        raise LedgerError(f"the ledger {self.path} has {names} names (hard links); keep one")

    def _check_schema(self, connection):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of skdp")
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self.path} was written by a newer skdp (schema {version}, "
                f"this one reads up to {SCHEMA_VERSION})"
            )
