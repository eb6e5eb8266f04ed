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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skdp.exceptions import LedgerError

__all__ = ["Record", "SQLiteLedger", "open_ledger"]

APPLICATION_ID = 0x736B6470  # "skdp"
SCHEMA_VERSION = 1
FIRST_HASH = "0" * 64
BUSY_TIMEOUT_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX records_of_dataset ON records (dataset, sequence);
"""

# Connections of the parent of a fork are kept alive, unused: closing one would release
# the parent's locks.
_INHERITED = []


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
        ``"open"``, ``"charge"`` or ``"change_cap"``.
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

    Writes are durable when they return (write-ahead log, ``synchronous=FULL``). There is one
    connection for each process and thread; none is carried over a fork. The file must be on a
    local disk: the write-ahead log needs memory that all writers share.

    Parameters
    ----------
    path : str
        The file. Nothing is opened before the first call.
    """

    def __init__(self, path):
        self.path = Path(path)
        self._local = threading.local()

    def create(self):
        """Create the file unless it exists. Two processes may race here."""
        self._connection(create=True)

    def read(self, dataset, after=0):
        """Return the records of a data set whose sequence exceeds `after`, in order."""
        with self._errors():
            return self._select(self._connection(), dataset, after)

    def append(self, dataset, after, decide):
        """Append one record, decided inside the write transaction.

        Parameters
        ----------
        dataset : str
        after : int
            The last sequence that the caller has seen.
        decide : callable
            Called with the list of records of `dataset` since `after`; returns
            ``(kind, body)``, or None to append nothing. What it raises rolls back.

        Returns
        -------
        list of Record
            The records since `after`, the appended one last.
        """
        with self._errors(), self._transaction() as connection:
            records = self._select(connection, dataset, after)
            decision = decide(records)
            if decision is None:
                return records
            kind, body = decision
            text = canonical_json(body)
            row = connection.execute(
                "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
            sequence, previous = (row[0] + 1, row[1]) if row else (1, FIRST_HASH)
            digest = chain_hash(previous, sequence, dataset, kind, text)
            connection.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?)",
                (sequence, dataset, kind, text, digest),
            )
            return [*records, Record(sequence, dataset, kind, json.loads(text), digest)]

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
        with self._errors():
            previous, expected = FIRST_HASH, 1
            for row in self._connection().execute(
                "SELECT sequence, dataset, kind, body, hash FROM records ORDER BY sequence"
            ):
                sequence, dataset, kind, body, digest = row
                if sequence != expected or digest != chain_hash(
                    previous, sequence, dataset, kind, body
                ):
                    raise LedgerError(f"the ledger's chain breaks at record {expected}")
                previous, expected = digest, expected + 1
            return previous

    def close(self):
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None and self._local.process == os.getpid():
            connection.close()
        self._local.connection = None

    @staticmethod
    def _select(connection, dataset, after):
        rows = connection.execute(
            "SELECT sequence, dataset, kind, body, hash FROM records"
            " WHERE dataset = ? AND sequence > ? ORDER BY sequence",
            (dataset, after),
        )
        return [Record(s, d, kind, json.loads(body), h) for s, d, kind, body, h in rows]

    @contextmanager
    def _transaction(self):
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self):
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from error
        except json.JSONDecodeError as error:
            raise LedgerError(f"the ledger {self.path} holds a record that is no JSON") from error

    def _connection(self, create=False):
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            if self._local.process == os.getpid():
                if self._local.file != self._file_identity():
                    raise LedgerError(
                        f"the ledger {self.path} was removed or replaced while in use"
                    )
                return connection
            _INHERITED.append(connection)
        with self._errors():
            connection = self._connect(create)
        self._local.connection, self._local.process = connection, os.getpid()
        self._local.file = self._file_identity()
        return connection

    def _file_identity(self):
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self, create):
        if not create and not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}")
        mode = "rwc" if create else "rw"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
        )
        try:
            if create:
                self._initialise(connection)
            self._check_schema(connection)
            if create:
                self._use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _initialise(self, connection):
        connection.execute("BEGIN IMMEDIATE")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        connection.execute("COMMIT")

    def _use_write_ahead_log(self, connection):
        # Changing the journal's mode does not wait for other connections as other statements do.
        deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
                continue
            if mode != "wal":
                raise LedgerError(f"{self.path} is not on a disk that allows a write-ahead log")
            return

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
