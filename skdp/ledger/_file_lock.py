"""Locks of ledgers: one connection per process, and a lock file next to a ledger's file.

The lock file is held by one thread of one process at a time.

SQLite locks a file with POSIX locks. The operating system drops these as soon as any thread of the
process closes the file, for example after copying it. The lock here is on a separate file, with
flock(2), or with `msvcrt.locking` on Windows. It belongs to one open file description: it ends when
its holder releases it or dies, not when another process reads, copies or closes the file.
"""

import io
import os
import stat
import threading
import time
import weakref
from contextlib import contextmanager, suppress

from skdp.exceptions import LedgerError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # Windows has no such module
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]  # only Windows has this module

LOCK_SUFFIX = ".skdp-lock"
# Windows forbids reading locked bytes, so the locked byte is far beyond the text in the lock file.
_LOCKED_BYTE = 1 << 30

# A forked child inherits copies of these open files, and with them the locks, until it closes them.
_open_locks: "weakref.WeakSet[LockFile]" = weakref.WeakSet()


# Held during every connection of this process, and during every fork. A fork while a database's
# library works in another thread would copy locked mutexes into the child. A child that inherits
# and closes a connection may delete files or end a session that the parent uses.
_connections = threading.RLock()
# The addresses of the ledgers that a call of this process is using.
_in_use: set = set()


# These are functions because `_connections` is a different lock in a child process.
def _acquire_before_fork():
    _connections.acquire()


def _release_after_fork():
    _connections.release()


def _reset_in_child():
    """Forget the locks of the parent process, which a fork copies in their state."""
    global _connections
    _connections = threading.RLock()
    _in_use.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_before_fork,
        after_in_parent=_release_after_fork,
        after_in_child=_reset_in_child,
    )


@contextmanager
def hold_connection(address):
    """Context manager that holds this process's only connection to the ledger at an address.

    Raises
    ------
    LedgerError
        If this thread is already using the ledger, for example when a signal handler interrupts a
        call. The second call would wait forever for a lock that its own thread holds.
    """
    with _connections:
        if address in _in_use:
            raise LedgerError(
                f"the ledger {address} is in use by this thread: a signal handler or a finalizer "
                "that runs inside a charge can neither charge nor read"
            )
        try:
            _in_use.add(address)
            yield
        finally:
            _in_use.discard(address)


def _close_locks_in_child():
    for lock in _open_locks:
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_locks_in_child)


@contextmanager
def hold_file_lock(path, seconds, *, reading=False):
    """Context manager that holds the lock of a file and yields the `LockFile`.

    Threads of a process wait for each other. Processes poll the lock, with random pauses, and no
    order among them is guaranteed. The lock file is not removed.

    Parameters
    ----------
    path : Path
        The guarded file; the lock file is beside it.
    seconds : float
        Give up waiting if the guarded file has not changed for this long.
    reading : bool, default=False
        True to yield None, without a lock, if the lock file is missing and cannot be created. This
        allows a user without write permission for a folder to read a ledger in it.

    Raises
    ------
    LedgerError
        If the lock cannot be taken.
    """
    last_modified = None
    # A holder that writes is alive, so the time limit restarts at each change of the file.
    unchanged_since = time.monotonic()
    while True:
        with hold_connection(path):
            try:
                lock = LockFile(path)
            except LedgerError:
                if reading and not os.path.lexists(path.with_name(path.name + LOCK_SUFFIX)):
                    yield None
                    return
                raise
            try:
                if lock.acquire():
                    yield lock
                    return
            finally:
                lock.release()
        with suppress(OSError):
            modified = os.stat(path).st_mtime_ns
            if modified != last_modified:
                last_modified = modified
                unchanged_since = time.monotonic()
        if time.monotonic() > unchanged_since + seconds:
            raise LedgerError(
                f"the ledger {path} is locked: another process or thread has held "
                f"{path.name}{LOCK_SUFFIX} for {seconds:g} s and charged nothing"
            )
        # Random pauses of 1 to 5 ms, so that two processes do not poll in step.
        time.sleep(0.001 + time.monotonic_ns() % 4001 / 1e6)


class LockFile(io.FileIO):
    """One open file description of a lock file.

    The file also contains one line of text, a note from its last holder to the next one.

    Parameters
    ----------
    guarded : Path
        The guarded file; the lock file is beside it.

    Raises
    ------
    LedgerError
        If the lock file cannot be opened, or the system has no file locks.
    """

    def __init__(self, guarded):
        if fcntl is None and msvcrt is None:
            raise LedgerError(
                "a ledger in a file needs the file locks of POSIX or Windows, which this system "
                "does not have; use a postgresql:// ledger"
            )
        path = guarded.with_name(guarded.name + LOCK_SUFFIX)
        try:
            super().__init__(path, opener=_open_descriptor)
        except OSError as error:
            folder = path.parent
            message = f"the lock {path} of the ledger cannot be opened: {error.strerror}"
            if not folder.exists():
                message += f"; create the folder {folder} first"
            raise LedgerError(message) from error
        self._is_taken = False
        _open_locks.add(self)
        status = os.fstat(self.fileno())
        self.identity = status.st_dev, status.st_ino
        with suppress(OSError):
            # Every user of the guarded file may use its lock, regardless of the umask.
            guarded_mode = os.stat(guarded).st_mode
            if hasattr(os, "fchmod") and status.st_mode != guarded_mode:
                os.fchmod(self.fileno(), stat.S_IMODE(guarded_mode))

    def acquire(self):
        """Try to acquire the lock; return True if it is held and the file is still at its path."""
        try:
            if fcntl is not None:
                fcntl.flock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                self._lock_byte(msvcrt.LK_NBLCK)
        except (BlockingIOError, PermissionError):
            return False
        self._is_taken = True
        return self.is_at_its_path()

    def release(self):
        """Release the lock, if it is held, and close the file."""
        if not self.closed:
            try:
                # Unlock before closing: a child may hold an open copy of the descriptor.
                if fcntl is not None:
                    fcntl.flock(self, fcntl.LOCK_UN)
                elif self._is_taken:
                    self._lock_byte(msvcrt.LK_UNLCK)
            finally:
                self.close()

    def _lock_byte(self, mode):
        """Lock or unlock one byte of the file on Windows."""
        # Windows locks from the current position of the file.
        self.seek(_LOCKED_BYTE)
        msvcrt.locking(self.fileno(), mode, 1)

    def is_at_its_path(self):
        """Return True if the file at the lock's path is still this file."""
        try:
            status = os.stat(self.name, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def text(self):
        """Return the line that the last holder wrote."""
        self.seek(0)
        return self.read(4096).decode(errors="replace").partition("\n")[0]

    def write_text(self, text):
        """Write a line for the next holder; without write permission, the old line stays."""
        with suppress(OSError):
            self.seek(0)
            # This uses the descriptor, because the Python object was opened for reading.
            os.write(self.fileno(), f"{text}\n".encode())


def _open_descriptor(path, flags):
    """Open a lock file, read-only if it cannot be written, or create it."""
    # Each system has only some of these flags.
    names = ("O_BINARY", "O_NOINHERIT", "O_CLOEXEC")
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    for access in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, access | flags)
    return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
