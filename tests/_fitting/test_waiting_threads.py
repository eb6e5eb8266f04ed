"""The calls of a thread that goes on while they are read are found."""

import sys
from types import SimpleNamespace

import pytest

from skdp._fitting._waiting_threads import find_waiting
from tests._fitting._running_calls import running_call


def call_of_joblib(owner):
    return running_call("joblib.parallel", "call", self=owner)


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


@pytest.mark.parametrize(
    ("module", "function", "argument", "waits"),
    [
        ("threading", "join", "self", True),
        ("threading", "is_alive", "self", False),
        ("multiprocessing.pool", "_join_exited_workers", "worker", False),
        ("multiprocessing.pool", "_wait_for_updates", "sentinels", False),
    ],
)
def test_the_thread_that_maintains_a_pool_waits_for_no_task(
    monkeypatch, module, function, argument, waits
):
    """It holds the objects of all threads of the pool, now and then in a variable."""
    worker = object()
    task, keeps_task = running_call("threading", "run", self=worker)
    other, keeps_other = running_call(module, function, **{argument: worker})
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other})
    assert (find_waiting([task], set()) is other) == waits
    keeps_task.close()
    keeps_other.close()


def test_another_worker_of_joblib_waits_for_no_task(monkeypatch):
    """Its tasks have the same cache of pickles, and its calls are not around this task."""

    class BatchedCalls:
        _pickle_cache = {}

    task, keeps_task = call_of_joblib(BatchedCalls())
    other, keeps_other = call_of_joblib(BatchedCalls())
    waiting, keeps_waiting = call_of_joblib(
        SimpleNamespace(_pickle_cache=BatchedCalls._pickle_cache)
    )
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other, 2: waiting})
    assert find_waiting([task], set()) is waiting
    for generator in (keeps_task, keeps_other, keeps_waiting):
        generator.close()
