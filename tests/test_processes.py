"""The children of other tests are heard when they fail."""

import signal
import sys
import time

import pytest

from tests._processes import Child


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
