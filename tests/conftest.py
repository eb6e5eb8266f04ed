"""What holds for every test, and for the processes that tests start."""

import gc
import os
import threading

import pytest

from tests._quick_cases import mark_thorough_cases

# Tests run on as many workers as there are processors. Where each starts as many threads again,
# they wait for one another: a fit of scikit-learn's k-means takes many times the processor time.
# The libraries read it when they are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from skdp.ledger import register_ledger
from tests._memory_ledger import MemoryLedger
from tests._repeatable_noise import SYSTEM, make_noise_repeatable

register_ledger("memory", MemoryLedger)
make_noise_repeatable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    SYSTEM.restart(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Make the noise of shared fixtures independent of the test that runs first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param', None)!r}]"
    with SYSTEM.named(name):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark cases before pytest selects by marks."""
    mark_thorough_cases(items)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Spare the garbage collector the collected tests: millions of objects, and no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def set_ledger_time(monkeypatch):
    """Return a function that sets the time of the charges to come."""

    def set_time(time):
        monkeypatch.setattr("skdp.ledger._accountant._current_time", lambda: time)

    return set_time


@pytest.fixture
def no_rows_here(monkeypatch):
    """Let no chunk of a dask array be read where the fit is."""

    def read(array, number):
        raise AssertionError("a chunk was pulled")

    monkeypatch.setattr("skdp._data._sources._compute_block", read)


@pytest.fixture
def few_values_for_threads(monkeypatch):
    """Let threads and processes share sums of a few values."""
    monkeypatch.setattr("skdp._data._parts.MIN_VALUES_FOR_THREADS", 1)


@pytest.fixture
def short_sums(few_values_for_threads, monkeypatch):
    """Let sums of few rows be cut into blocks, and return the names of threads that make them."""
    threads = set()

    def watched(call):
        threads.add(threading.current_thread().name)
        return call()

    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    monkeypatch.setattr("skdp._data._parts.RUN_BLOCKS", 2)
    monkeypatch.setattr("skdp.gam._joint_codes.STEP_ROWS", 64)
    monkeypatch.setattr("skdp._data._batch_rows.TILE_BYTES", 1)
    monkeypatch.setattr("skdp._data._workers.call", watched)
    return threads
