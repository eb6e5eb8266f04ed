"""The ledger in a PostgreSQL database, for analysts on several hosts.

Its address stands in every pickle of an estimator and in messages, and so can hold no secret.
libpq has many ways to write a password, and new versions bring new ones; so what is allowed is
listed, not what is forbidden.
"""

import re
from contextlib import contextmanager
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
# The addresses that can hold no password, without percent signs. libpq takes the text between a
# colon and an at sign for a password: here no colon is followed by an at sign.
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
# The server itself records of each row which transaction wrote it and where it is stored. An edit
# writes another row.
_VERSION = "hashtextextended(concat_ws(' ', sequence, xmin, ctid), 0)"
_VERSIONS = f"SELECT sum({_VERSION}) FILTER (WHERE sequence <= ?), sum({_VERSION}) FROM records"


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
        self._checked = NOTHING
        self._versions = None

    def create(self):
        """Create the tables unless they are there."""
        with self._connected() as execute:
            execute("BEGIN")
            execute("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if not _exists(execute):
                execute(_CREATE)
            execute("COMMIT")

    @contextmanager
    def _transaction(self, reading=False):
        """Connect and begin; closing the connection rolls back what was not committed."""
        with self._connected() as execute:
            _check_server(execute, self.address)
            if reading:
                execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            else:
                execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                execute(_WAIT_FOR_DISK)
                execute("LOCK TABLE records IN EXCLUSIVE MODE")
            yield _sql.Transaction(execute)

    def _write(self, transaction, row, end):
        """Write a row, read it back and commit it."""
        _sql.insert_row(transaction.execute, row)
        _sql.read_back(transaction.execute, row, end)
        versions = _versions(transaction.execute, end)[1]
        transaction.execute("COMMIT")
        self._checked = (row[0], row[-1])
        self._versions = versions

    def _check(self, transaction, whole=False):
        """Check what this object has not checked yet, or everything if rows were touched."""
        execute = transaction.execute
        seen = self._checked
        before, now = _versions(execute, seen)
        is_new = whole or before != self._versions
        start = NOTHING if is_new else seen
        end, rows = _sql.check_chain(execute, start)
        transaction.seen = start
        transaction.new_rows = rows
        _sql.check_position(execute, seen)
        self._checked = end
        self._versions = now
        return self._checked

    @contextmanager
    def _connected(self):
        """Open a connection for a while, in a context that gives its `execute`."""
        try:
            import psycopg
        except ImportError:
            needs = "a postgresql:// ledger needs psycopg: install skdp[postgres]"
            raise LedgerError(needs) from None
        settings = {
            "autocommit": True,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "skdp",
            # How long a server that is no longer reached is waited for.
            "tcp_user_timeout": int(1000 * LOCK_TIMEOUT_SECONDS),
            "keepalives_idle": CONNECT_TIMEOUT_SECONDS,
            # By another one what was written is read as other text, or as bytes.
            "client_encoding": "utf8",
            "target_session_attrs": "read-write",
        }

        def call_driver(function, *arguments, **options):
            """Call the driver; a `LedgerError` has the words of its errors.

            It is not chained to them: they hold the connection, and with it the password.
            """
            try:
                return function(*arguments, **options)
            except psycopg.Error as error:
                problem = str(error)
            raise LedgerError(f"the ledger {self.address} cannot be used: {problem}")

        def execute(statement, parameters=()):
            # Without parameters the driver sends several statements at once.
            statement = statement.replace("?", "%s")
            return call_driver(connection.execute, statement, parameters or None)

        with _sql.in_use(self.address):
            connection = call_driver(psycopg.connect, self.address, **settings)
            try:
                timeout = f"{LOCK_TIMEOUT_SECONDS:g}s"
                execute("SELECT set_config('lock_timeout', ?, false)", (timeout,))
                execute("SET search_path TO skdp")
                yield execute
            finally:
                connection.close()


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
