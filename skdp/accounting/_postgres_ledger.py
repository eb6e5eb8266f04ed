"""The ledger in a PostgreSQL database, for analysts on several hosts."""

import json
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from skdp.accounting._records import (
    CONNECTIONS,
    NOTHING,
    all_records,
    append_record,
    select_records,
    verify_chain,
)
from skdp.exceptions import LedgerError

__all__ = ["PostgreSQLLedger"]

SCHEMA_VERSION = 1
CONNECT_TIMEOUT_SECONDS = 10
LOCK_TIMEOUT_SECONDS = 30.0

_CREATE = f"""
CREATE SCHEMA skdp;
CREATE TABLE skdp.schema_version AS SELECT {SCHEMA_VERSION} AS version;
CREATE TABLE skdp.records (
    sequence BIGINT PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX records_of_dataset ON skdp.records (dataset, sequence);
"""

# Any number that everyone who creates the tables agrees on: "skdp" in ASCII.
_CREATION_LOCK = 0x736B6470

# Weaker settings of the server or of a role answer before the record is on disk.
_WAIT_FOR_DISK = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""


class PostgreSQLLedger:
    """A ledger in the schema ``skdp`` of a PostgreSQL database.

    Writers wait for each other on one table lock; a record is on the server's disk when
    `append` returns. A connection lives for one call. If it breaks while a record is being
    committed, `append` raises although the record may be there: charged, and nothing released.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:port/database?options``, without a password: every pickle of an
        estimator holds the address. libpq takes the password from its password file, from
        ``PGPASSWORD`` or from a service file. Nothing is opened before the first call.

    Raises
    ------
    ValueError
        If the address holds a password.
    """

    def __init__(self, address):
        parts = urlsplit(address)
        if parts.password is not None or "password" in parse_qs(parts.query):
            raise ValueError(
                "the address of a ledger must hold no password, for it is pickled with every "
                "estimator; use a password file, PGPASSWORD or a service file"
            )
        self.address = address

    def create(self):
        """Create the tables unless they are there. Two hosts may race here."""
        with self._connection(checked=False) as execute:
            if _exists(execute):
                return
            execute("BEGIN")
            execute("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if not _exists(execute):
                execute(_CREATE)
            execute("COMMIT")

    def read(self, dataset, after=NOTHING):
        """Return the records of a data set that follow a position; see `SQLiteLedger.read`."""
        with self._connection() as execute:
            return select_records(execute, dataset, after)

    def append(self, dataset, after, decide):
        """Append one record, decided under the table's lock; see `SQLiteLedger.append`."""
        with self._connection() as execute:
            execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            execute(_WAIT_FOR_DISK)
            execute("LOCK TABLE records IN EXCLUSIVE MODE")
            records = select_records(execute, dataset, after)
            decision = decide(records)
            if decision is None:
                return records
            record = append_record(execute, dataset, decision)
            execute("COMMIT")
            return [*records, record]

    def verify(self):
        """Check the hash chain and return its last hash; see `SQLiteLedger.verify`."""
        with self._connection() as execute:
            return verify_chain(execute)

    def records(self):
        """Return the records of every data set, in order."""
        with self._connection() as execute:
            return all_records(execute)

    @contextmanager
    def _connection(self, checked=True):
        """Yield `execute` of a new connection; closing it rolls back what was not committed."""
        psycopg = _driver()
        timeout = f"{LOCK_TIMEOUT_SECONDS:g}s"
        with self._errors(psycopg), CONNECTIONS:
            connection = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                application_name="skdp",
                target_session_attrs="read-write",
            )
            try:

                def execute(statement, parameters=()):
                    # Without parameters the driver sends several statements at once.
                    return connection.execute(statement.replace("?", "%s"), parameters or None)

                execute("SELECT set_config('lock_timeout', ?, false)", (timeout,))
                execute("SET search_path TO skdp")
                if checked:
                    _check_server(execute)
                yield execute
            finally:
                connection.close()

    @contextmanager
    def _errors(self, psycopg):
        try:
            yield
        except psycopg.Error as error:
            raise LedgerError(f"the ledger {self.address} cannot be used: {error}") from error
        except json.JSONDecodeError as error:
            raise LedgerError(
                f"the ledger {self.address} holds a record that is no JSON"
            ) from error


def _driver():
    try:
        import psycopg
    except ImportError as error:
        raise LedgerError("a postgresql:// ledger needs psycopg: install skdp[postgres]") from error
    return psycopg


def _exists(execute):
    # Name lookups are cached by the session; the catalogue itself is what others have committed.
    table = "SELECT 1 FROM pg_tables WHERE schemaname = 'skdp' AND tablename = 'schema_version'"
    return execute(table).fetchone() is not None


def _check_server(execute):
    if not _exists(execute):
        raise LedgerError("there is no ledger of skdp in that database")
    version = execute("SELECT max(version) FROM schema_version").fetchone()[0]
    if version is None or version > SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger was written by a newer skdp (schema {version}, this one reads up to "
            f"{SCHEMA_VERSION})"
        )
    if execute("SHOW fsync").fetchone()[0] != "on":
        raise LedgerError("the server runs with fsync=off: a crash would lose charges")
