"""The children of other tests are heard when they fail."""

import os
import signal
import sys
import time

import pytest

from tests._processes import Child, read_to_end, wait_until


def fail():
    raise KeyError("what went wrong")


def test_what_a_child_raised_is_told():
    with pytest.raises(AssertionError, match="KeyError: 'what went wrong'"):
        Child(fail).join()
    with pytest.raises(AssertionError, match="SystemExit"):
        Child(sys.exit, 0).join()
    Child(int).join()


def test_a_child_is_killed():
    assert Child(time.sleep, 60.0).kill() == signal.SIGKILL


def test_a_child_that_does_not_end_is_killed_and_told():
    child = Child(time.sleep, 60.0)
    with pytest.raises(AssertionError, match="did not come to pass"):
        child.join(seconds=0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_wait_for_a_child_that_has_failed_ends():
    child = Child(fail)
    with pytest.raises(AssertionError, match="KeyError: 'what went wrong'"):
        wait_until(lambda: False, children=[child])


def test_a_pipe_that_is_not_closed_is_told():
    read_end, write_end = os.pipe()
    os.write(write_end, b"half a note")
    with pytest.raises(AssertionError, match="half a note"):
        read_to_end(read_end, seconds=0.05)
    os.close(write_end)
