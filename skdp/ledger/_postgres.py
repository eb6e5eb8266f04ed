"""The ledger in a PostgreSQL database, for analysts on several hosts.

The address of a ledger is in every pickle of an estimator and in messages, so it must not contain a
secret. libpq accepts passwords in many places, and new versions add more. The module therefore
lists the allowed parts of an address, instead of the forbidden ones.
"""

import re
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote

from skdp.exceptions import LedgerError
from skdp.ledger import _sql
from skdp.ledger._chain import CHAIN_START
from skdp.ledger._file_lock import hold_connection

_KEYWORDS = (
    "user host hostaddr dbname service application_name connect_timeout target_session_attrs "
    "sslmode sslrootcert sslcert sslkey sslcrl channel_binding gssencmode"
)
_SERVER = r"(?:[\w.-]*|\[[\da-fA-F:.]+\])(?::\d*)?"
_PAIR = rf"(?:port=[\d,]*|(?:{_KEYWORDS.replace(' ', '|')})=[\w./,+~-]*)"
# Addresses that cannot contain a password, after percent-decoding. libpq reads the text between a
# colon and an at sign as a password, so no colon may be followed by an at sign.
_ALLOWED_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:[\w.+-]+(?:@[\w.-]+)?@)?"
    rf"{_SERVER}(?:,{_SERVER})*(?:/[\w.+-]*)?(?:\?{_PAIR}(?:&{_PAIR})*)?"
)
# Maximum time to wait for a connection, and for other writers of the ledger.
CONNECT_TIMEOUT_SECONDS = 10
LOCK_TIMEOUT_SECONDS = 30.0
_CREATE = f"""
CREATE SCHEMA skdp;
CREATE TABLE skdp.schema_version AS SELECT {_sql.SCHEMA_VERSION} AS version;
{_sql.TABLE.format("skdp.records", "BIGINT")};
"""
# Key of the advisory lock under which tables are created. Any constant works: "skdp" in ASCII.
_CREATION_LOCK = 0x736B6470
# With these weaker settings of a server or a role, a commit returns before the record is on disk.
_WAIT_FOR_DISK = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""
# A hash of a row's position, the transaction that wrote it (xmin) and its place in the table
# (ctid). Any edit writes a new row, which changes both.
_ROW_HASH = "hashtextextended(concat_ws(' ', sequence, xmin, ctid), 0)"
_FINGERPRINTS = (
    f"SELECT sum({_ROW_HASH}) FILTER (WHERE sequence <= ?), sum({_ROW_HASH}) FROM records"
)


class PostgreSQLLedger(_sql.TableLedger):
    """Ledger in the schema ``skdp`` of a PostgreSQL database.

    Writers wait for each other on one table lock, first come, first served. A record is on the
    server's disk when `append` returns. Each call opens and closes a connection. If the connection
    breaks during the commit of a record, `append` raises an error although the record may have been
    written. In that case, the release is charged but not made.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:port/database?keyword=word``, without a password, because every
        pickle of an estimator contains the address. libpq reads the password from its password
        file, from ``PGPASSWORD`` or from a service file. Nothing is opened before the first call.

    Raises
    ------
    ValueError
        If the address contains a password, or anything else that is not in the list of allowed
        parts. The message does not repeat the address.
    """

    def __init__(self, address):
        if not _ALLOWED_ADDRESS.fullmatch(unquote(address)):
            raise ValueError(
                "ledger must be postgresql://user@host:port/database, with no password, because "
                "the address is pickled with every estimator; ?keyword=word may follow, where the "
                f"keyword is one of: {_KEYWORDS} port. Write other settings in a service file, a "
                "password file or the variables of libpq (PGPASSWORD)"
            )
        self.address = address
        # The position up to which this object has checked the chain, and the fingerprint of the
        # rows up to it.
        self._checked = CHAIN_START
        self._fingerprint = None

    def create(self):
        """Create the tables unless they exist."""
        with self._connected() as execute:
            execute("BEGIN")
            execute("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if not _has_tables(execute):
                execute(_CREATE)
            execute("COMMIT")

    @contextmanager
    def _transaction(self, reading=False):
        """Connect and begin; closing the connection rolls back anything uncommitted."""
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
        fingerprint = _fingerprints(transaction.execute, end)[1]
        transaction.execute("COMMIT")
        self._checked = (row[0], row[-1])
        self._fingerprint = fingerprint

    def _check(self, transaction, from_start=False):
        """Check the records that this object has not checked yet, or all if rows were edited."""
        execute = transaction.execute
        checked = self._checked
        fingerprint_to_checked, fingerprint = _fingerprints(execute, checked)
        if from_start or fingerprint_to_checked != self._fingerprint:
            start = CHAIN_START
        else:
            start = checked
        end, rows = _sql.check_chain(execute, start)
        transaction.start = start
        transaction.new_rows = rows
        _sql.check_position(execute, checked)
        self._checked = end
        self._fingerprint = fingerprint
        return self._checked

    @contextmanager
    def _connected(self):
        """Context manager that opens a connection and yields its `execute`."""
        try:
            import psycopg
        except ImportError:
            message = "a postgresql:// ledger needs psycopg: install skdp[postgres]"
            raise LedgerError(message) from None
        connect = partial(
            psycopg.connect,
            self.address,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="skdp",
            # Time in milliseconds until a connection to an unreachable server fails.
            tcp_user_timeout=int(1000 * LOCK_TIMEOUT_SECONDS),
            keepalives_idle=CONNECT_TIMEOUT_SECONDS,
            # With another encoding, text would be read back as different text or as bytes.
            client_encoding="utf8",
            target_session_attrs="read-write",
        )

        def call_driver(function, *arguments):
            """Call the driver, and raise a `LedgerError` with the message of its errors.

            The error is not chained to the driver's, which refers to the connection and thus to the
            password.
            """
            try:
                return function(*arguments)
            except psycopg.Error as error:
                problem = str(error)
            raise LedgerError(f"the ledger {self.address} cannot be used: {problem}")

        def execute(statement, parameters=()):
            """Execute a statement with SQLite's placeholders."""
            # The driver accepts several statements in one call only without parameters.
            statement = statement.replace("?", "%s")
            return call_driver(connection.execute, statement, parameters or None)

        with hold_connection(self.address):
            connection = call_driver(connect)
            try:
                timeout = f"{LOCK_TIMEOUT_SECONDS:g}s"
                execute("SELECT set_config('lock_timeout', ?, false)", (timeout,))
                execute("SET search_path TO skdp")
                yield execute
            finally:
                connection.close()


def _has_tables(execute):
    """Return True if the database contains the tables of a ledger."""
    # The session caches lookups of names; the catalog shows what other sessions have committed.
    table = "SELECT 1 FROM pg_tables WHERE schemaname = 'skdp' AND tablename = 'schema_version'"
    return execute(table).fetchone() is not None


def _fingerprints(execute, position):
    """Return a fingerprint of the rows up to a position, and one of all rows."""
    return execute(_FINGERPRINTS, (position[0],)).fetchone()


def _check_server(execute, address):
    """Raise `LedgerError` unless there is a ledger of this version, and the server has fsync on."""
    if not _has_tables(execute):
        raise LedgerError(f"there is no ledger of skdp in the database {address}")
    version = execute("SELECT max(version) FROM schema_version").fetchone()[0]
    _sql.check_version(version, address)
    if execute("SHOW fsync").fetchone()[0] != "on":
        raise LedgerError(
            "the server runs with fsync=off, so a crash would lose charges; set it on"
        )
