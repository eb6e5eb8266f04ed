"""The ledger in a PostgreSQL database, for analysts on several hosts.

Its address stands in every pickle of an estimator and in messages, and so can hold no secret.
libpq has many ways to write a password, and new versions bring new ones; so what is allowed is
listed, not what is forbidden.
"""

import os
import re
from types import SimpleNamespace
from urllib.parse import unquote

from skdp.exceptions import LedgerError
from skdp.ledger import _sql
from skdp.ledger._chain import NOTHING

_KEYWORDS = (
    "user host hostaddr dbname service application_name connect_timeout target_session_attrs "
    "sslmode sslrootcert sslcert sslkey sslcrl channel_binding gssencmode"
)
_SERVER = r"(?:[\w.-]*|\[[\da-fA-F:.]+\])(?::\d*)?"
_PAIR = rf"(?:port=[\d,]*|(?:{_KEYWORDS.replace(' ', '|')})=[\w./,+~-]*)"
# Of an address without percent signs. libpq takes what is between a colon and an at sign for a
# password: no colon is followed by one here.
_HARMLESS = re.compile(
    r"postgres(?:ql)?://(?:[\w.+-]+(?:@[\w.-]+)?@)?"
    rf"{_SERVER}(?:,{_SERVER})*(?:/[\w.+-]*)?(?:\?{_PAIR}(?:&{_PAIR})*)?"
)
CONNECT_TIMEOUT_SECONDS = 10
LOCK_TIMEOUT_SECONDS = 30.0
_CREATE = f"""
CREATE SCHEMA skdp;
CREATE TABLE skdp.schema_version AS SELECT {_sql.SCHEMA_VERSION} AS version;
{_sql.TABLE.format("skdp.records", "BIGINT")};
"""
# Any number that everyone who creates the tables agrees on: "skdp" in ASCII.
_CREATION_LOCK = 0x736B6470
# Weaker settings of the server or of a role answer before the record is on disk.
_WAIT_FOR_DISK = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""
# What the server notes of a row by itself: which transaction wrote it, and where it stands. Whoever
# edits a row writes another one.
_VERSION = "hashtextextended(concat_ws(' ', sequence, xmin, ctid), 0)"
_VERSIONS = f"SELECT sum({_VERSION}) FILTER (WHERE sequence <= ?), sum({_VERSION}) FROM records"
# The ledgers whose call is under way, by process and address; a child that is forked has none.
_in_use: set = set()


class PostgreSQLLedger(_sql.TableLedger):
    """A ledger in the schema ``skdp`` of a PostgreSQL database.

    Writers wait for each other on one table lock, in the order of asking; a record is on the
    server's disk when `append` returns. A connection lives for one call. If it breaks while a
    record is being committed, `append` raises although the record may be there: charged, and
    nothing released.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:port/database?keyword=word``, without a password: every pickle of
        an estimator holds the address. libpq takes the password from its password file, from
        ``PGPASSWORD`` or from a service file. Nothing is opened before the first call.

    Raises
    ------
    ValueError
        If the address holds a password, or whatever else is not known to be harmless; no part of
        it is repeated.
    """

    def __init__(self, address):
        if not _HARMLESS.fullmatch(unquote(address)):
            raise ValueError(
                "the address of a ledger must be postgresql://user@host:port/database, with no "
                "password and nothing that could be one, because it is pickled with every "
                f"estimator; ?keyword=word may follow, of {_KEYWORDS} port; all else goes into a "
                "service file, a password file or the variables of libpq (PGPASSWORD)"
            )
        self.address = address
        # Up to where this object has checked the chain.
        self._checked, self._versions = NOTHING, None

    def create(self):
        """Create the tables unless they are there."""

        def work(transaction):
            execute = transaction.execute
            execute("BEGIN")
            execute("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if not _exists(execute):
                execute(_CREATE)
            execute("COMMIT")

        self._connected(work)

    def _call(self, work, reading=False):
        def begun(transaction):
            _check_server(transaction.execute, self.address)
            if reading:
                transaction.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            else:
                transaction.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                transaction.execute(_WAIT_FOR_DISK)
                transaction.execute("LOCK TABLE records IN EXCLUSIVE MODE")
            return work(transaction)

        return self._connected(begun)

    def _commit(self, transaction, row, end):
        _sql.insert_row(transaction.execute, row)
        _sql.read_back(transaction.execute, row, end)
        versions = _versions(transaction.execute, end)[1]
        transaction.execute("COMMIT")
        self._checked, self._versions = (row[0], row[-1]), versions

    def _check(self, transaction, whole=False):
        """Check what this object has not checked yet, or everything if rows were touched."""
        execute, seen = transaction.execute, self._checked
        before, now = _versions(execute, seen)
        is_new = whole or before != self._versions
        start = NOTHING if is_new else seen
        end, rows = _sql.check_chain(execute, start)
        transaction.checked = start, rows
        _sql.check_position(execute, seen)
        self._checked, self._versions = end, now
        return self._checked

    def _connected(self, work):
        """Return what `work` returns of an object that has a new connection's `execute`.

        Closing the connection rolls back what was not committed. The driver's errors hold the
        connection, and with it the password that was used: a `LedgerError` takes their words and
        is not chained to them.
        """
        try:
            import psycopg
        except ImportError:
            needs = "a postgresql:// ledger needs psycopg: install skdp[postgres]"
            raise LedgerError(needs) from None
        settings = {
            "autocommit": True,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "skdp",
            # Of a server that is no longer reached.
            "tcp_user_timeout": int(1000 * LOCK_TIMEOUT_SECONDS),
            "keepalives_idle": CONNECT_TIMEOUT_SECONDS,
            # By another one what was written is read as other text, or as bytes.
            "client_encoding": "utf8",
            "target_session_attrs": "read-write",
        }

        def execute(statement, parameters=()):
            # Without parameters the driver sends several statements at once.
            return connection.execute(statement.replace("?", "%s"), parameters or None)

        use = os.getpid(), self.address
        try:
            with _sql.connections():
                if use in _in_use:
                    # Only this thread can be here: the table's lock would be waited for in vain.
                    raise LedgerError(
                        f"the ledger {self.address} is in use by this thread: nothing can be "
                        "charged or read inside a charge, as a signal handler or a finalizer would"
                    )
                try:
                    # A signal can arrive at any time: the ledger counts as in use from before the
                    # connection is there until after it was closed.
                    _in_use.add(use)
                    connection = psycopg.connect(self.address, **settings)
                    try:
                        timeout = f"{LOCK_TIMEOUT_SECONDS:g}s"
                        execute("SELECT set_config('lock_timeout', ?, false)", (timeout,))
                        execute("SET search_path TO skdp")
                        return work(SimpleNamespace(execute=execute))
                    finally:
                        connection.close()
                finally:
                    _in_use.discard(use)
        except psycopg.Error as error:
            words = str(error)
        raise LedgerError(f"the ledger {self.address} cannot be used: {words}")


def _exists(execute):
    # Name lookups are cached by the session; the catalogue itself is what others have committed.
    table = "SELECT 1 FROM pg_tables WHERE schemaname = 'skdp' AND tablename = 'schema_version'"
    return execute(table).fetchone() is not None


def _versions(execute, position):
    """Return a fingerprint of the rows up to a position, and one of all rows."""
    return execute(_VERSIONS, (position[0],)).fetchone()


def _check_server(execute, address):
    if not _exists(execute):
        raise LedgerError("there is no ledger of skdp in that database")
    version = execute("SELECT max(version) FROM schema_version").fetchone()[0]
    _sql.check_version(version, address)
    if execute("SHOW fsync").fetchone()[0] != "on":
        raise LedgerError("the server runs with fsync=off: a crash would lose charges")
