"""The ledger in an SQLite file, for one host."""

import os
import re
import sqlite3
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skdp.exceptions import LedgerError
from skdp.ledger import _sql
from skdp.ledger._chain import NOTHING
from skdp.ledger._file_lock import LOCK_SUFFIX, locked

APPLICATION_ID = 0x736B6470  # "skdp"
BUSY_TIMEOUT_SECONDS = 30.0

# Files of these names belong to another ledger: SQLite removes its journal, and we write its lock.
_BESIDE = ("-journal", "-wal", "-shm", LOCK_SUFFIX)

_TABLE = _sql.TABLE.format("records", "INTEGER")
# In the transaction that begins the ledger: a file whose maker was killed is empty, or becomes so
# when it is next opened.
_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {_sql.SCHEMA_VERSION}",
    _TABLE,
)
_SEAL = re.compile(r"skdp (\d+ \d+ \d+ \d+) (\d+) (\w+)")


@dataclass(kw_only=True)
class _LockedTransaction(_sql.Transaction):
    """A transaction under the lock beside the file.

    Parameters
    ----------
    lock : LockFile or None
        None for a reader who cannot make one.
    stamp : str
        The file's state when the transaction began.
    is_sealed : bool
        Whether no other program has written since the chain was checked up to `sealed_end`.
    sealed_end : tuple of (int, str)
        The end of the chain that the lock's last holder noted.
    """

    lock: object
    stamp: str
    is_sealed: bool
    sealed_end: tuple


class SQLiteLedger(_sql.TableLedger):
    """A ledger in one SQLite file, safe for threads, processes, forks and crashes.

    A call opens one connection and begins one transaction, which reads, decides, writes, commits
    and reads back what it wrote. Every call holds a lock of skdp's own beside the file
    (`skdp.ledger._file_lock`), so that reading, copying or backing up the file, in whatever
    thread, loses nothing. Writes are durable when they return, and then stand in this one file
    (rollback journal, ``synchronous=EXTRA``). The file must be on a disk whose locks all its users
    share, and have one name: under a second one (a link) neither the lock nor the journal of a
    writer that was killed would be found.

    Parameters
    ----------
    path : str
        The file. Nothing is opened before the first call.
    """

    def __init__(self, path):
        self.path = Path(self.address_of(path))
        if self.path.name.lower().endswith(_BESIDE):
            raise LedgerError(
                f"the name of a ledger cannot end in {', '.join(_BESIDE)}: files of such names "
                "belong to other ledgers"
            )
        self._uri = f"{self.path.as_uri()}?mode=rw"
        # Up to where this object has checked the chain.
        self._checked = NOTHING

    @staticmethod
    def address_of(address):
        """Return the one spelling of where the file is."""
        return os.path.realpath(address)

    def create(self):
        """Create the file unless there is one; as long as it is empty it is a ledger of nothing."""

        if os.path.exists(self.path):
            return
        with locked(self.path, BUSY_TIMEOUT_SECONDS) as lock:
            if os.path.exists(self.path):
                return
            count = _read_seal(lock.text())[1][0]
            if count:
                raise LedgerError(
                    f"the ledger {self.path} is missing: its lock says that it held {count} "
                    f"records; put the file back, or remove {lock.name} to begin a new ledger on "
                    "purpose"
                )
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644))
            except OSError as error:
                raise LedgerError(f"the ledger {self.path} cannot be created: {error}") from error

    @contextmanager
    def _transaction(self, reading=False):
        """Open the file under its lock and begin; what is not committed is rolled back."""
        # A missing file raises here: no lock is made beside it.
        self._file()
        with locked(self.path, BUSY_TIMEOUT_SECONDS, reading=reading) as lock:
            try:
                connection = sqlite3.connect(
                    self._uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None
                )
                try:
                    yield self._begin(connection, lock, reading)
                finally:
                    connection.close()
            except sqlite3.Error as error:
                raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from error

    def _begin(self, connection, lock, reading):
        """Return a transaction that has begun on a new connection."""
        execute = connection.execute
        if sys.platform == "darwin":
            # There fsync leaves data in the disk's own cache, which is lost with the power.
            # Other systems ignore this setting.
            execute("PRAGMA fullfsync = 1")
        execute("PRAGMA synchronous = EXTRA")
        execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        stamp = self._stamp()
        sealed_stamp, sealed_end = _read_seal(lock.text() if lock else "")
        # An empty file has no schema yet.
        is_sealed = stamp == sealed_stamp and sealed_end != NOTHING
        if not is_sealed:
            # Only where another program may have written: it can have changed the schema.
            self._check_schema(execute)
            # Reading has rolled back what a killed writer had left.
            stamp = self._stamp()
        return _LockedTransaction(
            execute, lock=lock, stamp=stamp, is_sealed=is_sealed, sealed_end=sealed_end
        )

    def _write(self, transaction, row, end):
        """Write a row and commit it; it counts when it was read back from the file."""
        execute = transaction.execute
        lock = transaction.lock
        _sql.insert_row(execute, row)
        self._check_lock(lock)
        execute("COMMIT")
        # Without this SQLite would answer from the pages that it still has in memory.
        execute("PRAGMA shrink_memory")
        stamp = self._stamp()
        _sql.read_back(execute, row, end)
        self._check_lock(lock)
        self._checked = row[0], row[-1]
        lock.write_text(_seal(stamp, self._checked))

    def _check_lock(self, lock):
        if not lock.is_at_its_path():
            raise LedgerError(
                f"the lock {lock.name} was removed while it was held, so that others may have "
                "written at the same time; nothing is released"
            )

    def _check(self, transaction, whole=False):
        """Check the chain, and return its end; see `_seal` for what need not be read again."""
        execute = transaction.execute
        lock = transaction.lock
        sealed_end = transaction.sealed_end
        start, end = self._checked, None
        if not whole and transaction.is_sealed:
            end, rows = _sql.check_chain(execute, start)
        if end != sealed_end:
            start = NOTHING
            end, rows = _sql.check_chain(execute, start)
            _sql.check_position(execute, self._checked)
            try:
                _sql.check_position(execute, sealed_end)
            except LedgerError as error:
                restored = f"if you restored an older copy on purpose, remove {lock.name}"
                raise LedgerError(f"{error}; {restored}") from None
            if lock:
                lock.write_text(_seal(transaction.stamp, end))
        self._checked = end
        transaction.seen = start
        transaction.new_rows = rows
        return end

    def _file(self):
        try:
            file = os.lstat(self.path)
        except OSError as error:
            raise LedgerError(
                f"there is no ledger at {self.path}; if its file was removed on purpose, a new "
                "process can begin another one there"
            ) from error
        if stat.S_ISDIR(file.st_mode):
            raise LedgerError(f"{self.path} is a folder; a ledger is a file: {self.path}/budget.db")
        if not stat.S_ISREG(file.st_mode):
            raise LedgerError(
                f"the ledger {self.path} is no regular file; if it was moved and a link left in "
                "its place, open it by its new name in a new process"
            )
        if file.st_nlink > 1:
            raise LedgerError(
                f"the ledger {self.path} has {file.st_nlink} names (hard links); keep one"
            )
        return file

    def _stamp(self):
        file = self._file()
        # Windows keeps the time of creation as st_ctime; there the time of writing tells of edits.
        return f"{file.st_ino} {file.st_size} {file.st_ctime_ns} {file.st_mtime_ns}"

    def _check_schema(self, execute):
        application = execute("PRAGMA application_id").fetchone()[0]
        # The transaction's begin has rolled back what a killed writer had left.
        if application == 0 and self._file().st_size == 0:
            for statement in _SCHEMA:
                execute(statement)
        elif application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of skdp")
        version = execute("PRAGMA user_version").fetchone()[0]
        _sql.check_version(version, self.path)
        mode = execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"another program set journal_mode={mode} in the ledger {self.path}, so that "
                "records can be missing from the file; set it back: PRAGMA journal_mode=DELETE"
            )


def _seal(stamp, end):
    """Return the line of the lock file that holds while nothing but skdp writes into the ledger.

    The system sets a file's change time at each writing. Whoever holds the lock compares it
    before writing, so that what was checked once need not be read again.
    """
    return f"skdp {stamp} {end[0]} {end[1]}"


def _read_seal(text):
    """Return the stamp and the end of the chain in a seal, "" and `NOTHING` if it is none."""
    match = _SEAL.fullmatch(text)
    return (match[1], (int(match[2]), match[3])) if match else ("", NOTHING)
