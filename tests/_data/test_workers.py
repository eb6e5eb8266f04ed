"""What calls functions where the parts of a table are."""

import threading

import dask
import dask.array as da
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from skdp import DPSGDClassifier
from skdp._data._dask import DaskTable, DaskWorkers
from skdp._data._one_thread import _libraries, one_thread
from skdp._data._workers import (
    JoblibWorkers,
    PersistedRef,
    _called,
    slice_row_args,
    split_range,
    tree_sum,
)


def n_threads():
    libraries = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in libraries]


def held(entered, leave, found):
    with one_thread():
        entered.set()
        leave.wait(10)
        found.append(n_threads())


@pytest.mark.skipif(not n_threads(), reason="no library of linear algebra is known")
def test_linear_algebra_has_one_thread_until_the_last_that_wants_it_has_ended():
    """A limit is one of the process: the first to end must not lift that of the others."""
    events, found = [threading.Event() for _ in range(4)], []
    with threadpool_limits(2, "blas"):
        before = n_threads()
        runs = [
            threading.Thread(target=held, args=(*pair, found)) for pair in (events[:2], events[2:])
        ]
        for run, (entered, _) in zip(runs, (events[:2], events[2:]), strict=True):
            run.start()
            assert entered.wait(10)
        for run, (_, leave) in zip(runs, (events[:2], events[2:]), strict=True):
            leave.set()
            run.join()
        assert found == [[1] * len(before)] * 2
        assert n_threads() == before and max(before) == 2


def test_the_libraries_with_threads_are_looked_for_once(monkeypatch):
    made, found = [], _libraries()
    monkeypatch.setattr("threadpoolctl.ThreadpoolController.__init__", lambda self: made.append(1))
    X = np.zeros((20, 2))
    for _ in range(2):
        DPSGDClassifier(classes=[0, 1], max_iter=1).fit(X, np.arange(20) % 2)
    assert made == [] and _libraries() is found


def of_part(part, values):
    return [n_threads(), part, values]


@pytest.mark.parametrize("is_dask", [False, True])
def test_calls_have_one_thread_of_linear_algebra(is_dask):
    X, values = np.zeros((6, 2)), np.arange(6)
    if is_dask:
        workers = DaskWorkers(DaskTable(da.from_array(X, chunks=(3, 1))), (0, 3, 6))
    else:
        workers = JoblibWorkers([lambda: X[:3], lambda: X[3:]], (0, 3, 6), 2, True)
    with threadpool_limits(2, "blas"), dask.config.set(scheduler="threads"):
        found = workers.results([workers.call(i, of_part, values) for i in range(2)])
    for i, (threads, part, own) in enumerate(found):
        assert set(threads) <= {1}
        assert part.shape == (3, 2) and own.tolist() == values[3 * i :][:3].tolist()


def test_a_worker_of_another_version_is_refused():
    with pytest.raises(RuntimeError, match=r"has skdp .*, the calling process 0\.0"):
        _called("0.0", of_part, None, None)


def test_what_lies_beside_the_parts_is_not_cut_here():
    with pytest.raises(TypeError, match="PersistedRef"):
        slice_row_args((np.arange(4), PersistedRef([None] * 4)), slice(2))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 100])
def test_sums_of_spans_are_added_in_the_order_of_all(n):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, size=n)
    whole = tree_sum(iter(numbers), n)
    for depth in range(9):
        cuts = split_range(n, depth)
        assert [first for first, _ in cuts] == [0, *(last for _, last in cuts[:-1])]
        assert len(cuts) == min(n, 2**depth)
        sums = [tree_sum(iter(numbers[slice(*cut)]), cut[1] - cut[0]) for cut in cuts]
        assert tree_sum(iter(sums), len(sums)) == whole
