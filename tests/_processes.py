"""Children of tests: forked, ended by `os._exit`, and heard when they fail.

A child of multiprocessing ends as a whole Python does: it waits for threads, and calls what
other tests of the same worker left to be called at exit. What goes wrong there is its status.
"""

import os
import select
import signal
import time
import traceback

# A wait that is not over then fails, with what the other side has told: a test that hangs says
# nothing.
PATIENCE_SECONDS = 120.0


def wait_until(condition, children=(), seconds=PATIENCE_SECONDS):
    """Wait until a condition holds; a child that has failed, or a deadline, ends the wait."""
    deadline = time.monotonic() + seconds
    while not condition():
        for child in children:
            child.check()
        assert time.monotonic() < deadline, f"it did not come to pass in {seconds:g} s"
        time.sleep(0.001)


def read_first_byte(descriptor, seconds=PATIENCE_SECONDS):
    """Return the first byte that is written into a pipe."""
    is_ready = select.select([descriptor], [], [], seconds)[0]
    assert is_ready, f"nothing was written into a pipe in {seconds:g} s"
    return os.read(descriptor, 1)


def read_to_end(descriptor, seconds=PATIENCE_SECONDS):
    """Return all that is written into a pipe, and close it; the pipe must be closed in time."""
    deadline, told = time.monotonic() + seconds, b""
    try:
        while True:
            is_ready = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert is_ready, f"a pipe was not closed in {seconds:g} s; it told {told[-500:]!r}"
            data = os.read(descriptor, 1 << 16)
            if not data:
                return told
            told += data
    finally:
        os.close(descriptor)


class Child:
    """A forked process that calls a function and does nothing else.

    Parameters
    ----------
    target : callable
    *arguments
        What it is called with.
    """

    def __init__(self, target, *arguments):
        self._told, tell = os.pipe()
        self._status = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                target(*arguments)
                status = 0
            except BaseException:
                os.write(tell, traceback.format_exc().encode())
            finally:
                os._exit(status)
        os.close(tell)

    def join(self, seconds=PATIENCE_SECONDS):
        """Wait until it ends, and raise what it raised; kill it if that takes too long."""
        try:
            wait_until(self._has_ended, seconds=seconds)
        except AssertionError:
            self.kill()
            raise
        problem = read_to_end(self._told).decode()
        assert self._status == 0, f"a child ended with status {self._status}:\n{problem}"

    def check(self):
        """Raise what it raised if it has failed already."""
        if self._has_ended() and self._status != 0:
            self.join()

    def kill(self):
        """Kill it, unless it has ended, and return its status."""
        if not self._has_ended():
            os.kill(self.pid, signal.SIGKILL)
            self._status = os.waitpid(self.pid, 0)[1]
        os.close(self._told)
        return self._status

    def _has_ended(self):
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None
