"""The ledger: an append-only, hash-chained table of records, by default in an SQLite file.

The ledger stores what it is given and knows no theorem. Whoever appends decides inside the
write transaction, on the records that are there at that moment, whether to append at all.
"""

import json
import os
import sqlite3
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

from skdp.accounting._postgres_ledger import PostgreSQLLedger
from skdp.accounting._records import (
    CONNECTIONS,
    NOTHING,
    all_records,
    append_record,
    select_records,
    verify_chain,
)
from skdp.exceptions import LedgerError

__all__ = ["SQLiteLedger", "open_ledger"]

APPLICATION_ID = 0x736B6470  # "skdp"
SCHEMA_VERSION = 1
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


def open_ledger(address):
    """Return the ledger at an address, without touching it.

    Parameters
    ----------
    address : str
        A file's path, or the URI of a PostgreSQL database.

    Returns
    -------
    SQLiteLedger or PostgreSQLLedger
    """
    scheme, separator, _ = address.partition("://")
    if not separator:
        return SQLiteLedger(address)
    if scheme in ("postgresql", "postgres"):
        return PostgreSQLLedger(address)
    raise LedgerError(
        f"no ledger of kind {scheme!r}; give the path of a file or a postgresql:// address"
    )


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
            with self._errors(), CONNECTIONS:
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
            record = append_record(connection.execute, dataset, decision)
            connection.execute("COMMIT")
            return [*records, record]

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
            return verify_chain(connection.execute)

    def records(self):
        """Return the records of every data set, in order."""
        with self._connection() as connection:
            return all_records(connection.execute)

    def _select(self, connection, dataset, after):
        return select_records(connection.execute, dataset, after)

    @contextmanager
    def _connection(self):
        """Yield a connection; closing it rolls back what was not committed."""
        with self._errors(), CONNECTIONS:
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
