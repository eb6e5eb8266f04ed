"""A lock of skdp's own beside a file: one thread of one process at a time.

SQLite locks a file by POSIX locks, and the operating system drops those as soon as any thread of
the process closes the file, which it does when it has copied it. The lock here is on another file:
flock(2), and `msvcrt.locking` on Windows. It belongs to one open file: it ends when its holder
gives it back or dies, and not when another process reads, copies or closes that file.
"""

import io
import os
import stat
import time
import weakref
from contextlib import contextmanager, suppress

from skdp.exceptions import LedgerError
from skdp.ledger._sql import in_use

try:
    import fcntl
except ImportError:
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

LOCK_SUFFIX = ".skdp-lock"
# Windows forbids reading the bytes that a lock covers: the one byte that is locked is far behind
# the text of the lock file.
_LOCKED_BYTE = 1 << 30

# A child that is forked holds copies of these, and with them the locks, until it closes them.
_openings = weakref.WeakSet()


def _close_in_child():
    for opening in _openings:
        opening.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def locked(path, seconds, *, reading=False):
    """Hold the lock of a file, in a context that gives the `LockFile`.

    Threads of a process wait for each other; processes ask again and again, after pauses that
    differ. Nobody has a place in a queue. The lock file stays.

    Parameters
    ----------
    path : Path
        The file that is guarded; the lock is beside it.
    seconds : float
        For how long the file may stay unchanged before another process is no longer waited for.
    reading : bool, default=False
        Whether to go on without a lock file, with None, if it is missing and cannot be made: a
        user who may not write in a folder can read there.

    Raises
    ------
    LedgerError
        If the lock cannot be taken.
    """
    seen = None
    since = time.monotonic()
    while True:
        with in_use(path):
            try:
                lock = LockFile(path)
            except LedgerError:
                if reading and not os.path.lexists(path.with_name(path.name + LOCK_SUFFIX)):
                    yield None
                    return
                raise
            try:
                if lock.take():
                    yield lock
                    return
            finally:
                lock.give_back()
        with suppress(OSError):
            if (changed := os.stat(path).st_mtime_ns) != seen:
                seen = changed
                since = time.monotonic()
        if time.monotonic() > since + seconds:
            raise LedgerError(
                f"the ledger {path} is locked: another process or thread has held "
                f"{path.name}{LOCK_SUFFIX} for {seconds:g} s and charged nothing"
            )
        time.sleep(0.001 + time.monotonic_ns() % 4001 / 1e6)


class LockFile(io.FileIO):
    """One opening of a lock file.

    It also holds one line of text, by which holders tell the next one something.

    Parameters
    ----------
    guarded : Path
        The file that is guarded.
    """

    def __init__(self, guarded):
        if fcntl is None and msvcrt is None:
            raise LedgerError(
                "a ledger in a file needs the file locks of POSIX or Windows, which this system "
                "does not have; use a postgresql:// ledger"
            )
        path = guarded.with_name(guarded.name + LOCK_SUFFIX)
        try:
            super().__init__(path, opener=_descriptor)
        except OSError as error:
            folder = path.parent
            missing = "" if folder.exists() else f"; there is no folder {folder}, make it first"
            raise LedgerError(
                f"the lock {path} of the ledger cannot be opened: {error.strerror}{missing}"
            ) from error
        self._is_taken = False
        _openings.add(self)
        status = os.fstat(self.fileno())
        self.identity = status.st_dev, status.st_ino
        with suppress(OSError):
            # Who may use the file may use its lock, whatever the umask.
            guarded_mode = os.stat(guarded).st_mode
            if hasattr(os, "fchmod") and status.st_mode != guarded_mode:
                os.fchmod(self.fileno(), stat.S_IMODE(guarded_mode))

    def take(self):
        """Take the lock unless it is held; return True if it was taken and is still at its path."""
        try:
            if fcntl is not None:
                fcntl.flock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                self._lock_byte(msvcrt.LK_NBLCK)
        except (BlockingIOError, PermissionError):
            return False
        self._is_taken = True
        return self.is_at_its_path()

    def give_back(self):
        """Give the lock back, if it is held, and close the file."""
        if not self.closed:
            try:
                # Copies of the descriptor, in a child that did not close them, hold nothing then.
                if fcntl is not None:
                    fcntl.flock(self, fcntl.LOCK_UN)
                elif self._is_taken:
                    self._lock_byte(msvcrt.LK_UNLCK)
            finally:
                self.close()

    def _lock_byte(self, how):
        # The lock of Windows begins where the file stands.
        self.seek(_LOCKED_BYTE)
        msvcrt.locking(self.fileno(), how, 1)

    def is_at_its_path(self):
        """Return whether the file at the lock's path is still this lock."""
        try:
            there = os.stat(self.name, follow_symlinks=False)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == self.identity

    def text(self):
        """Return the line that the last holder wrote."""
        self.seek(0)
        return self.read(4096).decode(errors="replace").partition("\n")[0]

    def write_text(self, text):
        """Leave a line for the next holder; without the right to write, the old line stays."""
        with suppress(OSError):
            self.seek(0)
            # By the descriptor: the object was made for reading.
            os.write(self.fileno(), f"{text}\n".encode())


def _descriptor(path, flags):
    """Open a lock file, for reading alone where it cannot be written, or make it."""
    # Each system has some of these.
    names = ("O_BINARY", "O_NOINHERIT", "O_CLOEXEC")
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    for way in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, way | flags)
    return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
