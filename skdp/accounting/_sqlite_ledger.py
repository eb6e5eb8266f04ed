"""The ledger in an SQLite file, for one host."""

import os
import re
import sqlite3
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from skdp.accounting import _records
from skdp.accounting._chain import NOTHING
from skdp.accounting._file_lock import LOCK_SUFFIX, locked
from skdp.exceptions import LedgerError

APPLICATION_ID = 0x736B6470  # "skdp"
BUSY_TIMEOUT_SECONDS = 30.0

# Files of these names belong to another ledger: SQLite removes its journal, and we write its lock.
_BESIDE = ("-journal", "-wal", "-shm", LOCK_SUFFIX, ".skdp-queue")

_TABLE = _records.TABLE.format("records", "INTEGER")
# Of files that older versions made; nothing reads by it.
_OLD_INDEX = "CREATE INDEX records_of_dataset ON records (dataset, sequence)"
# One transaction: a file whose maker was killed is empty, or becomes so when it is next opened.
_SCHEMA = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {_records.SCHEMA_VERSION};
{_TABLE};
COMMIT;
"""


class SQLiteLedger(_records.TableLedger):
    """A ledger in one SQLite file, safe for threads, processes, forks and crashes.

    Every use holds a lock of skdp's own beside the file (`skdp.accounting._file_lock`), so that
    reading, copying or backing up the file, in whatever thread, loses nothing. Writes are durable
    when they return, and then stand in this one file (rollback journal, ``synchronous=EXTRA``)
    and have been read back through a second connection. A connection lives for one call. The
    file must be on a disk whose locks all its users share, and have one name: under a second
    one (a link, or a mount of this file alone) neither the lock nor the journal of a writer that
    was killed would be found.

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
        # Up to where this object has checked the chain.
        self._checked = NOTHING

    @staticmethod
    def address_of(address):
        """Return the one spelling of where the file is."""
        return os.path.realpath(address)

    def create(self):
        """Create the file unless there is one; as long as it is empty it is a ledger of nothing."""

        def make(lock):
            if not os.path.exists(self.path):
                lock.write_text("")
                try:
                    self.path.touch(mode=0o644)
                except OSError as error:
                    problem = f"the ledger {self.path} cannot be created: {error}"
                    raise LedgerError(problem) from error

        if not os.path.exists(self.path):
            locked(self.path, BUSY_TIMEOUT_SECONDS, make)

    def _commit(self, connection, record, end):
        _records.insert_record(connection.execute, record)
        self._check_lock(connection.lock)
        connection.execute("COMMIT")
        stamp = self._stamp()
        connection.close()
        self._connection(lambda again: _records.read_back(again.execute, record, end))
        self._check_lock(connection.lock)
        self._checked = record.sequence, record.hash
        connection.lock.write_text(_seal(stamp, self._checked))

    def _call(self, work, reading=False):
        """Return what `work` returns of a connection that has the lock."""
        # A missing file raises here: no lock is made beside it.
        self._file()
        if _is_mounted(self.path):
            raise LedgerError(
                f"the ledger {self.path} is mounted by itself, so that it has a second name; mount "
                "its folder"
            )

        def begun(connection):
            connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
            return work(connection)

        connected = partial(self._connection, begun)
        return locked(self.path, BUSY_TIMEOUT_SECONDS, connected, reading=reading)

    def _check_lock(self, lock):
        if not lock.is_at_its_path():
            raise LedgerError(
                f"the lock {lock.name} was removed while it was held, so that others may have "
                "written at the same time; nothing is released"
            )

    def _check(self, connection, whole=False):
        """Check the chain, and return its end; see `_seal` for what need not be read again."""
        lock, stamp = connection.lock, self._stamp()
        text = lock.text() if lock else ""
        newest = "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1"
        end = connection.execute(newest).fetchone() or NOTHING
        seen, is_sealed = self._checked, text == _seal(stamp, end)
        end = _records.check_chain(connection.execute, seen if is_sealed and not whole else NOTHING)
        _records.check_position(connection.execute, seen)
        if not is_sealed:
            try:
                _records.check_position(connection.execute, _sealed_end(text))
            except LedgerError as error:
                restored = f"if you restored an older copy on purpose, remove {lock.name}"
                raise LedgerError(f"{error}; {restored}") from None
            if lock:
                lock.write_text(_seal(stamp, end))
        self._checked = end
        return end

    def _file(self):
        try:
            file = os.lstat(self.path)
        except OSError as error:
            raise LedgerError(f"there is no ledger at {self.path}") from error
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
        return f"{file.st_ino} {file.st_size} {file.st_ctime_ns}"

    def _connection(self, work, lock=None):
        """Return what `work` returns of a new connection to the checked file.

        Closing it rolls back what was not committed. Nothing is held by a context manager written
        in Python: an interrupt at the entry of its `__exit__` would leave it open as long as
        anybody keeps the exception.
        """
        self._file()
        how = {"factory": _Connection, "timeout": BUSY_TIMEOUT_SECONDS, "isolation_level": None}
        try:
            connection = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, **how)
            try:
                connection.lock = lock
                connection.execute("PRAGMA synchronous = EXTRA")
                self._check_schema(connection)
                return work(connection)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from error

    def _check_schema(self, connection):
        # What a writer that was killed has left goes when this is read.
        if not connection.execute("PRAGMA page_count").fetchone()[0]:
            connection.executescript(_SCHEMA)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of skdp")
        _records.check_version(version, self.path)
        # A view or a trigger shows or keeps other records than were written. Tables and indices
        # whose names begin with sqlite_ are SQLite's own.
        statement = """SELECT sql FROM sqlite_master
            WHERE substr(lower(name), 1, 7) <> 'sqlite_' OR type NOT IN ('table', 'index')"""
        found = connection.execute(statement).fetchall()
        if {sql for (sql,) in found} - {_OLD_INDEX} != {_TABLE}:
            raise LedgerError(
                f"the ledger {self.path} holds tables, views, triggers or indices that skdp did "
                "not make"
            )
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"another program set journal_mode={mode} in the ledger {self.path}, so that "
                "records can be missing from the file; set it back: PRAGMA journal_mode=DELETE"
            )


class _Connection(sqlite3.Connection):
    """A connection that knows the lock under which it was made."""

    lock = None


def _is_mounted(path):
    """Say whether a file is mounted by itself, as far as the system tells."""
    # The folder may have been moved, and a link left in its place.
    path = os.path.join(os.path.realpath(path.parent), path.name)
    name = re.sub(r"[ \t\n\\]", lambda sign: rf"\{ord(sign[0]):03o}", path)
    with suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_bytes().rstrip(b"\n").split(b"\n")
        return os.fsencode(name) in (line.split(b" ")[4] for line in mounts)


def _seal(stamp, end):
    """Return what the lock says as long as nothing but skdp has written into the file.

    The system sets a file's change time at each writing. Whoever holds the lock compares it
    before writing, so that what was checked once need not be read again.
    """
    return f"skdp {stamp} {end[0]} {end[1]}"


def _sealed_end(text):
    """Return the end of the chain in a seal, `NOTHING` if the text is none."""
    found = re.fullmatch(r"skdp \d+ \d+ \d+ (\d+) (\w+)", text)
    return (int(found[1]), found[2]) if found else NOTHING
