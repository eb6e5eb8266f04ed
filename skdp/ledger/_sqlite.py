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
from skdp.ledger._chain import CHAIN_START
from skdp.ledger._file_lock import LOCK_SUFFIX, hold_file_lock
from skdp.utils._documents import count_of

# The bytes of "skdp": the number in the file's header that identifies the application of a
# database.
APPLICATION_ID = 0x736B6470
# Maximum time to wait for another program that has locked the database without writing to it.
BUSY_TIMEOUT_SECONDS = 30.0

# Suffixes of files that may belong to another ledger: SQLite deletes its journals, and skdp writes
# to its lock file.
_RESERVED_SUFFIXES = ("-journal", "-wal", "-shm", LOCK_SUFFIX)

_TABLE = _sql.TABLE.format("records", "INTEGER")
# These statements run in the first transaction of a ledger. If a process is killed in it, the file
# is empty, or the next process that opens it rolls it back to an empty one.
_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {_sql.SCHEMA_VERSION}",
    _TABLE,
)
_SEAL = re.compile(r"skdp (\d+ \d+ \d+ \d+) (\d+) (\w+)")


@dataclass(kw_only=True)
class _LockedTransaction(_sql.Transaction):
    """A transaction that holds the lock next to the file.

    Parameters
    ----------
    lock : LockFile or None
        The lock, None for a reader who cannot create one.
    stamp : str
        Inode, size and times of the file when the transaction began.
    is_sealed : bool
        True if no other program has written since the chain was checked up to `sealed_end`.
    sealed_end : tuple of (int, str)
        The end of the chain, as noted by the last holder of the lock.
    """

    lock: object
    stamp: str
    is_sealed: bool
    sealed_end: tuple


class SQLiteLedger(_sql.TableLedger):
    """Ledger in one SQLite file, safe for threads, processes, forks and crashes.

    Each call opens one connection and runs one transaction, which reads, decides, writes, commits
    and reads back its record. Every call holds a lock file next to the ledger's file
    (`skdp.ledger._file_lock`), so reading, copying or backing up the file in any thread is
    safe. Writes are durable when they return, and are then in this one file (rollback journal,
    ``synchronous=EXTRA``). The file must be on a disk whose locks are shared by all of its users,
    and must have only one name: under a second name (a link), neither the lock nor the journal of
    a killed writer would be found.

    Parameters
    ----------
    path : str
        The path of the file. Nothing is opened before the first call.

    Raises
    ------
    LedgerError
        If the name of the file is one that SQLite or skdp uses for other files of a ledger.
    """

    def __init__(self, path):
        self.path = Path(self.address_of(path))
        if self.path.name.lower().endswith(_RESERVED_SUFFIXES):
            raise LedgerError(
                f"the name of a ledger cannot end in {', '.join(_RESERVED_SUFFIXES)}: SQLite and "
                "skdp write files with such names next to a ledger"
            )
        self._uri = f"{self.path.as_uri()}?mode=rw"
        # The position up to which this object has checked the chain.
        self._checked = CHAIN_START

    @staticmethod
    def address_of(address):
        """Return the absolute path of the file, without symbolic links."""
        return os.path.realpath(address)

    def create(self):
        """Create the file unless it exists; an empty file is a ledger without records."""
        if os.path.exists(self.path):
            return
        with hold_file_lock(self.path, BUSY_TIMEOUT_SECONDS) as lock:
            if os.path.exists(self.path):
                return
            count = _read_seal(lock.text())[1][0]
            if count:
                raise LedgerError(
                    f"the ledger {self.path} is missing: according to its lock file it held "
                    f"{count_of(count, 'record')}; put the file back, or remove {lock.name} to "
                    "begin a new ledger on purpose"
                )
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644))
            except OSError as error:
                raise LedgerError(f"the ledger {self.path} cannot be created: {error}") from error

    @contextmanager
    def _transaction(self, reading=False):
        """Open the file under its lock and begin; anything uncommitted is rolled back."""
        # If the file is missing, this raises an error before a lock file is created next to it.
        self._file_status()
        with hold_file_lock(self.path, BUSY_TIMEOUT_SECONDS, reading=reading) as lock:
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
        """Begin a transaction on a new connection, and return it."""
        execute = connection.execute
        if sys.platform == "darwin":
            # On macOS, fsync leaves data in the cache of the disk, which a power failure erases.
            execute("PRAGMA fullfsync = 1")
        execute("PRAGMA synchronous = EXTRA")
        execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        stamp = self._file_stamp()
        seal = ""
        if lock:
            seal = lock.text()
        sealed_stamp, sealed_end = _read_seal(seal)
        # An empty file has no schema yet.
        is_sealed = stamp == sealed_stamp and sealed_end != CHAIN_START
        if not is_sealed:
            # Another program may have written, so the schema may have changed.
            self._check_schema(execute)
            # Reading has rolled back the journal of a killed writer, which changes the file.
            stamp = self._file_stamp()
        return _LockedTransaction(
            execute, lock=lock, stamp=stamp, is_sealed=is_sealed, sealed_end=sealed_end
        )

    def _write(self, transaction, row, end):
        """Write a row, commit it and read it back from the file.

        The lock file then receives a new seal, so that the next call need not check earlier rows.
        """
        execute = transaction.execute
        lock = transaction.lock
        _sql.insert_row(execute, row)
        self._check_lock(lock)
        execute("COMMIT")
        # Drop the cached pages, so SQLite reads the row back from the file.
        execute("PRAGMA shrink_memory")
        stamp = self._file_stamp()
        _sql.read_back(execute, row, end)
        self._check_lock(lock)
        self._checked = row[0], row[-1]
        lock.write_text(_seal(stamp, self._checked))

    def _check_lock(self, lock):
        """Raise `LedgerError` if the lock file is no longer at its path."""
        if not lock.is_at_its_path():
            raise LedgerError(
                f"the lock {lock.name} was removed while it was held, so another process may have "
                "written at the same time; nothing is released"
            )

    def _check(self, transaction, from_start=False):
        """Check the chain and return its end.

        A valid seal (see `_seal`) proves that no other program wrote into the file, so records
        that this object has checked need not be read again.
        """
        execute = transaction.execute
        lock = transaction.lock
        sealed_end = transaction.sealed_end
        start = self._checked
        end = None
        if not from_start and transaction.is_sealed:
            end, rows = _sql.check_chain(execute, start)
        if end != sealed_end:
            start = CHAIN_START
            end, rows = _sql.check_chain(execute, start)
            _sql.check_position(execute, self._checked)
            try:
                _sql.check_position(execute, sealed_end)
            except LedgerError as error:
                raise LedgerError(
                    f"{error}; if you restored an older copy on purpose, remove {lock.name}"
                ) from None
            if lock:
                lock.write_text(_seal(transaction.stamp, end))
        self._checked = end
        transaction.start = start
        transaction.new_rows = rows
        return end

    def _file_status(self):
        """Return the `os.stat_result` of the file; raise LedgerError unless it has one name."""
        try:
            status = os.lstat(self.path)
        except OSError as error:
            lock = self.path.name + LOCK_SUFFIX
            also = ""
            if os.path.lexists(self.path.with_name(lock)):
                also = f"remove {lock} too, and "
            raise LedgerError(
                f"there is no ledger at {self.path}: put its file back. If it was removed on "
                f"purpose, {also}use an accountant of a new process, which creates another ledger"
            ) from error
        if stat.S_ISDIR(status.st_mode):
            raise LedgerError(
                f"ledger {self.path} is a folder; give the path of a file, such as "
                f"{self.path}/budget.db"
            )
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(
                f"the ledger {self.path} is not a regular file; if it was moved and replaced by "
                "a link, open it by its new name in a new process"
            )
        if status.st_nlink > 1:
            raise LedgerError(
                f"the ledger {self.path} has {status.st_nlink} names (hard links); remove all but "
                "one"
            )
        return status

    def _file_stamp(self):
        """Return inode, size and times of the file, which change when any program writes to it."""
        status = self._file_status()
        # On Windows st_ctime is the time of creation, and st_mtime reveals edits.
        return f"{status.st_ino} {status.st_size} {status.st_ctime_ns} {status.st_mtime_ns}"

    def _check_schema(self, execute):
        """Create the tables in an empty file, or raise `LedgerError` for an unusable one."""
        application = execute("PRAGMA application_id").fetchone()[0]
        # Beginning the transaction has rolled back the journal of a killed writer.
        if application == 0 and self._file_status().st_size == 0:
            for statement in _SCHEMA:
                execute(statement)
        elif application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of skdp")
        version = execute("PRAGMA user_version").fetchone()[0]
        _sql.check_version(version, self.path)
        mode = execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"another program set journal_mode={mode} in the ledger {self.path}, so records "
                "may be missing from the file; set it back by PRAGMA journal_mode=DELETE"
            )


def _seal(stamp, end):
    """Return the line of the lock file that is valid while only skdp writes to the ledger.

    The system updates the change time of a file at each write. The holder of the lock compares the
    stamp before it writes, so records that were checked need not be read again.
    """
    return f"skdp {stamp} {end[0]} {end[1]}"


def _read_seal(text):
    """Return the stamp and the chain's end in a seal; "" and `CHAIN_START` if it is not a seal."""
    match = _SEAL.fullmatch(text)
    if match is None:
        return "", CHAIN_START
    return match[1], (int(match[2]), match[3])
