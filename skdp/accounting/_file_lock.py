"""A lock of skdp's own beside a file: one thread of one process at a time, in the order of asking.

SQLite locks a file by POSIX locks, and the operating system drops those as soon as any thread of
the process closes the file, which it does when it has copied it. The lock here is flock(2) on
another file. It belongs to one open file: it ends when its holder gives it back or dies, and not
when somebody else reads, copies or closes that file.
"""

import errno
import io
import os
import stat
import threading
import weakref
from contextlib import suppress

from skdp.exceptions import LedgerError

try:
    import fcntl
except ImportError:
    fcntl = None

LOCK_SUFFIX, QUEUE_SUFFIX = ".skdp-lock", ".skdp-queue"

# A child that is forked holds copies of these, and with them the locks, until it closes them. An
# opening that nobody refers to any more closes itself: an interrupt can come while it is closed.
_openings = weakref.WeakSet()
_openings_lock = threading.RLock()


def _close_in_child():
    for opening in _openings:
        opening.close()
    _openings_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_openings_lock.acquire,
        after_in_parent=_openings_lock.release,
        after_in_child=_close_in_child,
    )


def locked(path, seconds, work, *, reading=False):
    """Hold the lock of a file during some work.

    There are two locks. A process first takes the queue's and then waits for the file's, so that
    one that has just given back the lock is behind all that wait. The lock files stay.

    Parameters
    ----------
    path : Path
        The file that is guarded; the locks are beside it.
    seconds : float
        For how long the file may stay unchanged before waiting is given up.
    work : callable
        Called with the `LockFile`.
    reading : bool, default=False
        Whether to go on without a lock file that is missing and cannot be made: a user who may
        not write in a folder can read there.

    Returns
    -------
    object
        What `work` returns.

    Raises
    ------
    LedgerError
        If the lock cannot be taken.
    """
    queue = lock = LockFile(path, QUEUE_SUFFIX, reading)
    try:
        queue.wait(seconds)
        while True:
            lock = LockFile(path, LOCK_SUFFIX, reading)
            lock.wait(seconds)
            # Whoever removed or replaced the file while we waited made another lock of it.
            if lock.is_at_its_path():
                queue.close()
                return work(lock)
            lock.close()
    finally:
        # Whoever keeps the exception of an interrupt keeps these, and the entry of a function,
        # a context manager's too, can be interrupted: each is closed twice.
        try:
            lock.close()
            queue.close()
        finally:
            lock.close()
            queue.close()


class LockFile:
    """One opening of a lock file.

    It also holds one line of text, by which holders tell the next one something.

    Parameters
    ----------
    guarded : Path
        The file that is guarded.
    suffix : str
        What follows its name in that of the lock.
    reading : bool
        Whether there need be no lock where none can be made.
    """

    def __init__(self, guarded, suffix, reading):
        if fcntl is None:
            raise LedgerError(
                "a ledger in a file needs the file locks of POSIX, which this system does not "
                "have; use a postgresql:// ledger"
            )
        self.guarded = guarded
        self.path = guarded.with_name(guarded.name + suffix)
        self._guard = threading.Lock()
        self._waits = self._is_abandoned = False
        with _openings_lock:
            self._file = self._open(reading)
            if self._file is not None:
                _openings.add(self._file)

    def _open(self, reading):
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        mode = None
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(self.guarded).st_mode)
        try:
            try:
                descriptor = os.open(self.path, os.O_RDWR | flags)
            except FileNotFoundError:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | flags, mode or 0o666)
                if mode is not None:
                    # Who may use the file may use its lock, whatever the umask.
                    with suppress(OSError):
                        os.fchmod(descriptor, mode)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                # A lock can be held on a file that cannot be written.
                descriptor = os.open(self.path, os.O_RDONLY | flags)
        except OSError as error:
            if reading and not os.path.lexists(self.path):
                return None
            folder = self.path.parent
            missing = "" if folder.exists() else f"; there is no folder {folder}, make it first"
            raise LedgerError(
                f"the lock {self.path} of the ledger cannot be opened: {error.strerror}{missing}"
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LedgerError(f"the lock {self.path} of the ledger is no regular file")
        return io.FileIO(descriptor)

    def wait(self, seconds):
        """Take the lock, behind those who asked before."""
        if self._file is None:
            return
        with suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        # Only a call that blocks has a place in the system's queue, and no time limit.
        done, problems = threading.Event(), []
        before, self._waits = self._progress(), True
        try:
            threading.Thread(target=self._block, args=(done, problems), daemon=True).start()
        except RuntimeError as error:
            self._waits = False
            raise LedgerError(f"the lock {self.path} cannot be waited for: {error}") from error
        while not done.wait(seconds):
            now = self._progress()
            if now == before:
                raise LedgerError(
                    f"the ledger {self.guarded} is locked: another process or thread has held "
                    f"{self.path.name} for {seconds:g} s and charged nothing"
                )
            before = now
        if problems:
            raise LedgerError(f"the lock {self.path} cannot be taken: {problems[0]}")

    def _block(self, done, problems):
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            problems.append(error)
        with self._guard:
            self._waits = False
            done.set()
            if self._is_abandoned:
                self._release()

    def _progress(self):
        try:
            return os.stat(self.guarded).st_mtime_ns
        except OSError:
            return None

    def is_at_its_path(self):
        """Return whether the file at the lock's path is still this lock."""
        if self._file is None:
            return True
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._file.fileno()))

    def text(self):
        """Return the line that the last holder wrote."""
        if self._file is None:
            return ""
        return os.pread(self._file.fileno(), 4096, 0).decode(errors="replace").partition("\n")[0]

    def write(self, text):
        """Leave a line for the next holder; without the right to write, the old line stays."""
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file.fileno(), f"{text}\n".encode(), 0)

    def close(self):
        """Give back the lock. A thread that still waits for it gives it back as soon as it can."""
        with self._guard:
            if self._waits:
                self._is_abandoned = True
            else:
                self._release()

    def _release(self):
        if self._file is None or self._file.closed:
            return
        with _openings_lock, self._file, suppress(OSError):
            # Copies of the descriptor, in a child that did not close them, hold nothing then.
            fcntl.flock(self._file, fcntl.LOCK_UN)
