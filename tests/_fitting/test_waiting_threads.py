"""The calls of a thread that goes on while they are read are found."""

import sys
from types import SimpleNamespace

import pytest

from skdp._fitting._waiting_threads import find_waiting

SOURCE = """
import sys

def call(self):
    yield sys._getframe()
"""


def call_of_joblib(owner):
    """Return the frame of a call of joblib, and the generator that keeps it."""
    names = {"__name__": "joblib.parallel"}
    exec(SOURCE, names)
    generator = names["call"](owner)
    return next(generator), generator


@pytest.mark.parametrize("n_suspended", [0, 1, 3])
def test_a_generator_that_is_suspended_hides_no_waiting_call(monkeypatch, n_suspended):
    cache = {}
    task, keeps_task = call_of_joblib(SimpleNamespace(_pickle_cache=cache))
    waiting, keeps_waiting = call_of_joblib(SimpleNamespace(_pickle_cache=cache))
    other = (number for number in range(3))
    next(other)
    snapshots = [{1: other.gi_frame}] * n_suspended + [{1: other.gi_frame, 2: waiting}]
    monkeypatch.setattr(sys, "_current_frames", lambda: snapshots.pop(0))
    visited = set()
    assert find_waiting([task], visited) is waiting
    assert visited == {2}
    keeps_task.close()
    keeps_waiting.close()


def test_the_search_ends_if_no_call_waits(monkeypatch):
    task, keeps_task = call_of_joblib(SimpleNamespace(_pickle_cache={}))
    other = (number for number in range(3))
    next(other)
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other.gi_frame})
    assert find_waiting([task], set()) is None
    keeps_task.close()
