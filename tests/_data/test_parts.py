"""A table is read part by part, and its sums are those of the whole, within a public bound."""

import gc
import itertools
import math
import subprocess
import sys
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import dask.array as da
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from skdp import (
    DPPCA,
    ChunkedArray,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp._data._batch_rows import open_rows
from skdp._data._bounded import BoundedRows
from skdp._data._chunked import as_chunked
from skdp._data._dask import DaskTable, DaskWorkers
from skdp._data._one_thread import _libraries, one_thread
from skdp._data._parts import Rows, max_additions, row_blocks, sum_over
from skdp._data._persons import read_persons
from skdp._data._row_wise import (
    row_combinations,
    row_distances,
    row_norms,
    row_products,
    row_softmax,
    row_sums,
)
from skdp._data._sources import Parts, Source
from skdp._data._symmetric import pack_symmetric, unpack_symmetric
from skdp._data._workers import (
    JoblibWorkers,
    PersistedRef,
    _called,
    slice_row_args,
    split_range,
    tree_sum,
)
from skdp.base import clip_rows
from tests._containers import counted
from tests._guarantees import of_rows
from tests._persons import persons_of
from tests._private import (
    BinaryLogisticLoss,
    ClippedSums,
    MultinomialLogisticLoss,
    _centered_sums,
    check_choice,
    format_rounded_up,
    gradient_rounding,
    is_auto,
    loss_gradient,
    public_inputs,
    read_block,
    sum_rounding,
)

HEIGHTS = (7, 1, 160, 90, 42)
N, D = sum(HEIGHTS), 3
UNIT = 2.0**-53

ESTIMATORS = [
    DPLogisticRegression(C=0.1),
    DPLogisticRegression(C=0.1, mechanism="gradient", standard_errors="total"),
    DPLogisticRegression(data_norm="auto", classes=[0, 1, 2]),
    DPLinearSVC(C=0.1),
    DPLinearRegression(target_bounds=(0, 1)),
    DPRidge(target_bounds=(0, 1)),
    DPPoissonRegressor(alpha=0.1, target_bounds=(0, 1)),
    DPSGDClassifier(max_iter=3, batch_size=N),
    DPPCA(data_norm="auto"),
    DPMeanTransformer(bounds=(-1, 1)),
    DPStandardScaler(bounds="auto"),
    DPMinMaxScaler(bounds="auto"),
    DPHistogramTransformer(bounds="auto"),
    DPHistogramTransformer(bounds="auto", edges="quantile"),
    DPKBinsDiscretizer(bounds="auto"),
    DPOneHotEncoder(categories=[0, 1]),
    DPTargetEncoder(categories=[0, 1], classes=[0, 1]),
    DPSimpleImputer(bounds="auto"),
    DPSimpleImputer(strategy="most_frequent", categories=[0, 1]),
]


def make_table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, size=(N, D)) + 0.0, rng.integers(0, 2, size=N)


def in_parts(X, heights=HEIGHTS):
    return ChunkedArray(np.split(X, np.cumsum(heights)[:-1]))


@pytest.mark.quick_cases(every=10)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_parts_are_computed_once_in_a_pass(estimator, monkeypatch):
    """No block lies across two parts; a part that is computed is computed once in each pass."""
    read = ChunkedArray.__getitem__

    def within_a_part(self, rows):
        start, stop, _ = rows.indices(len(self))
        assert not any(start < border < stop for border in self.offsets)
        return read(self, rows)

    monkeypatch.setattr(ChunkedArray, "__getitem__", within_a_part)
    # Blocks of 64 rows, so that some parts have several and some are shorter than one.
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    X, y = make_table()
    lazy, computed = counted(X, HEIGHTS)
    clone(estimator).fit(lazy, y)
    assert np.ptp(np.bincount(computed, minlength=len(HEIGHTS))) == 0 < len(computed)


def test_blocks_cover_the_rows_and_lie_in_parts():
    X = in_parts(np.zeros((20, 1)), (0, 3, 0, 9, 8, 0))
    blocks = [(rows.start, rows.stop) for rows in row_blocks(X, 4)]
    assert blocks == [(0, 3), (3, 7), (7, 11), (11, 12), (12, 16), (16, 20)]


def add_rows(total, block, weights):
    total += weights @ block


def add_columns(total, block):
    total += np.add.accumulate(block, axis=0)[-1]


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("heights", [(2**14,), (1,) * 2**14, (3000, 1, 8383, 5000)])
def test_sums_are_within_the_bound_however_the_rows_are_cut(heights):
    """Rows that a running sum from the first of them on would lose; the bound knows no number."""
    n = sum(heights)
    x = np.full((n, 1), 0.99 * UNIT)
    x[0] = 1.0
    total = sum_over(Rows(in_parts(x, heights), 2), add_columns, np.zeros(1))
    error = abs(total[0] - math.fsum(x[:, 0]))
    bound = max_additions(2) * UNIT * np.abs(x).sum()
    running = abs(np.add.accumulate(x[:, 0])[-1] - math.fsum(x[:, 0]))
    assert error <= bound < running


def test_what_goes_with_the_rows_is_cut_with_them():
    X, rng = make_table()[0], np.random.default_rng(1)
    weights, whole = rng.normal(size=N), np.zeros(D)
    table = Rows(in_parts(X), 64)

    def add(total, block, pair, nothing, factor):
        assert nothing is None and len(pair[0]) == len(pair[1]) == len(block)
        add_rows(total, block, factor * (pair[0] + pair[1]))

    sum_over(table, add, whole, 0.5, row_args=((weights, weights), None))
    np.testing.assert_allclose(whole, weights @ X, atol=1e-12)


@pytest.mark.parametrize("heights", [HEIGHTS, (1,) * N])
@pytest.mark.parametrize("loss", [BinaryLogisticLoss(), MultinomialLogisticLoss(3)], ids=str)
def test_gradients_of_parts_are_those_in_memory_within_the_rounding_that_is_charged(loss, heights):
    (X, y), rng = make_table(), np.random.default_rng(2)
    weights = rng.normal(size=(*loss.weights_shape, D + 1))
    one, other = (BoundedRows(table, 1.0, 0.5) for table in (X, in_parts(X, heights)))
    problem = of_rows(loss, N, D + 1, one.norm)
    rounding = gradient_rounding(problem, 1.0, np.linalg.norm(weights))
    apart = loss_gradient(loss, one, y, weights) - loss_gradient(loss, other, y, weights)
    assert np.linalg.norm(apart) <= 2.0 * rounding
    one, other = (
        ClippedSums(table, y + 0.0 if not loss.weights_shape else y, loss, constant=0.5, clip=1.0)
        for table in (X, in_parts(X, heights))
    )
    apart = one.sums(weights, None) - other.sums(weights, None)
    assert np.linalg.norm(apart) <= 2.0 * sum_rounding(D, math.prod(loss.weights_shape), 1.0, N)


@pytest.mark.parametrize("heights", [HEIGHTS, (1,) * N])
def test_moments_of_parts_are_those_in_memory_within_the_rounding_that_is_charged(heights):
    X, bounds = np.random.default_rng(3).normal(size=(N, D)), (np.full(D, -1.0), np.full(D, 2.0))
    apart = _centered_sums(X, *bounds, 2) - _centered_sums(in_parts(X, heights), *bounds, 2)
    assert np.abs(apart).max() <= 2.0 * (max_additions(4096) + 5) * N * UNIT


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_part_is_forgotten_with_what_read_its_rows(dtype):
    """Without a search for cycles, which may come after a gigabyte."""
    gc.disable()
    try:
        part = np.ones((10, 2), dtype)
        reader, forgotten = open_rows(part), weakref.ref(part)
        assert reader.read(np.array([1, 3])).shape == reader.read(slice(4, 6)).shape == (2, 2)
        del part, reader
        assert forgotten() is None
    finally:
        gc.enable()


ROW_COUNTS = (1, 2, 3, 5, 4096)


# Sums of eight numbers or fewer are added in one order, whatever the layout.
WIDTHS = (1, 2, 3, 9, 20, 300, 9000)


TYPES = (np.float64, np.float32, np.float16, np.int64)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    # What a slice of a table leaves: no dimension is contiguous.
    "rows of F": lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "columns of C": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def vectors(n_columns, n_vectors=3):
    return np.random.default_rng(1).normal(size=(n_vectors, n_columns))


FUNCTIONS = {
    "sums": row_sums,
    "norms": row_norms,
    "softmax": lambda X: row_softmax(X / 8),
    "products": lambda X: row_products(X, vectors(X.shape[1])),
    "combinations": lambda X: row_combinations(X[:, :20], vectors(30, min(X.shape[1], 20))),
    "distances": lambda X: row_distances(X, vectors(X.shape[1])),
    "clipped": lambda X: clip_rows(X, 1.0),
}


def rows_of(n_rows, n_columns, dtype):
    """Some rows, repeated; whole numbers too are rounded once they are squared and summed."""
    rng = np.random.default_rng(n_columns)
    distinct = (1.5e8 if dtype is np.int64 else 1.0) * rng.normal(size=(7, n_columns))
    return np.resize(distinct.astype(dtype), (n_rows, n_columns))


def alone(function, X):
    """What a function returns for the first and the last rows, each in a table of its own."""
    return np.concatenate([function(X[i : i + 1].copy()) for i in edges(X)])


def cut_off(function, X):
    """The same for views of the table, which keep its strides."""
    return np.concatenate([function(X[i : i + 1]) for i in edges(X)])


def edges(X):
    """The numbers of the first and of the last rows: a kernel may treat these in another way."""
    return sorted({*range(min(8, len(X))), *range(max(len(X) - 8, 0), len(X))})


def cases():
    """Yield a height, a width and a type; the largest tables of each kind would fill memory."""
    for n_rows, n_columns, dtype in itertools.product(ROW_COUNTS, WIDTHS, TYPES):
        yield (100 if (n_rows, n_columns) == (4096, 9000) else n_rows), n_columns, dtype


@pytest.mark.quick_cases(one_per=lambda name, layout: (name, layout == "F"))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_alone_has_the_value_that_it_has_among_others(name, layout):
    function, lay_out = FUNCTIONS[name], LAYOUTS[layout]
    for case in cases():
        rows = rows_of(*case)
        X = lay_out(rows)
        among = function(X)[edges(X)]
        np.testing.assert_array_equal(alone(function, X), among, err_msg=str(case))
        np.testing.assert_array_equal(cut_off(function, X), among, err_msg=str(case))
        # Nor does the layout say anything.
        np.testing.assert_array_equal(function(rows[:5]), function(X[:5]), err_msg=str(case))


@pytest.mark.parametrize("n_columns", WIDTHS)
def test_a_sparse_row_alone(n_columns):
    X = csr_array(np.where(np.random.default_rng(0).random((50, n_columns)) < 0.3, 0.1, 0.0))
    for function in (row_norms, FUNCTIONS["products"]):
        among = function(X)
        for i in range(50):
            np.testing.assert_array_equal(function(X[[i]])[0], among[i])


@pytest.mark.parametrize("name", ["norms", "products", "combinations", "distances", "softmax"])
def test_values(name):
    X, V = np.random.default_rng(0).normal(size=(6, 9)), vectors(9)
    expected = {
        "norms": np.linalg.norm(X, axis=1),
        "products": X @ V.T,
        "combinations": X @ vectors(30, 9),
        "distances": np.linalg.norm(X[:, None] - V, axis=2),
        "softmax": np.exp(X / 8) / np.exp(X / 8).sum(axis=1, keepdims=True),
    }[name]
    np.testing.assert_allclose(FUNCTIONS[name](X), expected, rtol=1e-13)


def products_of_matrices(X):
    """Norms as they must not be computed: as products of matrices."""
    return np.sqrt(np.matmul(X[:, np.newaxis, :], X[:, :, np.newaxis])[:, 0, 0])


@pytest.mark.parametrize(
    "norms",
    [
        products_of_matrices,
        lambda X: np.sqrt((X * X).sum(axis=1)),
        lambda X: X @ np.ones(X.shape[1]),
    ],
)
def test_other_ways_are_told_apart(norms):
    """A product of matrices and a sum in another order: the test above can fail."""
    different = []
    for n_rows, n_columns in itertools.product((3, 5, 103), (9, 20, 300)):
        X = np.asfortranarray(rows_of(n_rows, n_columns, np.float64))
        different.append(np.any(alone(norms, X) != norms(X)[edges(X)]))
    assert any(different)


@pytest.mark.parametrize("n_columns", [1, 3, 100, 8193, 10_000, 12_289])
def test_norms_of_rows_are_those_of_each_row_alone(n_columns):
    """To the last bit: what one row is cut to must not tell how many others were read with it."""
    X = np.random.default_rng(n_columns).normal(size=(23, n_columns))
    norms = row_norms(X)
    np.testing.assert_allclose(norms, np.linalg.norm(X, axis=1))
    for height in (1, 2, 3, 22):
        for start in range(0, 23 - height, 3):
            rows = slice(start, start + height)
            np.testing.assert_array_equal(row_norms(X[rows]), norms[rows])
            np.testing.assert_array_equal(clip_rows(X[rows], 1.0), clip_rows(X, 1.0)[rows])


# What calls functions where the parts of a table are.


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


# Small functions of numbers: sums that are not exceeded, packed matrices, rounded texts.


def test_packing_keeps_frobenius_norms():
    A = np.random.default_rng(0).normal(size=(5, 5))
    A = A + A.T
    assert np.linalg.norm(pack_symmetric(A)) == pytest.approx(np.linalg.norm(A), rel=1e-14)
    np.testing.assert_allclose(unpack_symmetric(pack_symmetric(A), 5), A, rtol=1e-15)


def test_amounts_are_rounded_up_but_for_the_error_of_a_sum():
    assert format_rounded_up(0.1, 0.1 + 0.2, 1e-300, 0.0, np.inf) == "0.1, 0.3, 1e-300, 0, inf"
    assert format_rounded_up(1.0 / 3.0) == "0.333334"


def test_arrays_of_one_number_are_no_numbers():
    """Old versions of NumPy convert them."""
    accountant = PrivacyAccountant(1.0, 0.0)
    frame = pd.DataFrame({"x": [np.array([0.5])] * 10})
    with pytest.raises((TypeError, ValueError), match="column 'x' contains"):
        DPStandardScaler(bounds=(0, 1), accountant=accountant).fit(frame)
    assert accountant.epsilon_spent == 0.0


# Chunks: their views, their bound, and blocks of dask.


def test_a_view_sees_that_what_it_is_made_of_has_changed():
    held = [np.zeros((9, 3))]
    source = Source("rows", (9, 3), held[0].dtype, partial(held.__getitem__, 0))
    X = ChunkedArray._of(Parts(sources=(source,)))[:, [0, 1]]
    for held[0] in (np.zeros((5, 3)), np.zeros((9, 3), np.float32)):
        with pytest.raises(ValueError, match="rows has changed"):
            ChunkedArray([X])[0:2]


def test_more_chunks_than_the_bound_on_rounding_allows_are_refused(monkeypatch):
    monkeypatch.setattr("skdp._data._chunked.MAX_CHUNKS", 2)
    ChunkedArray([np.ones((1, 1))] * 2)
    with pytest.raises(ValueError, match="at most"):
        ChunkedArray([np.ones((1, 1))] * 3)


@pytest.mark.thorough
def test_other_libraries_are_not_imported():
    assert as_chunked(np.ones((2, 2))) is None
    others = {"dask", "polars", "pyarrow.dataset"}
    code = f"import sys, skdp, skdp.utils; assert not {others} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_blocks_of_a_dask_array_are_computed_one_at_a_time():
    X = np.random.default_rng(0).normal(size=(30, 4))
    lazy, computed = counted(X, (10, 0, 15, 5))
    chunked = as_chunked(lazy)
    assert computed == [] and chunked.shape == (30, 4)
    rows = [chunked[start : start + 4] for start in range(0, 30, 4)]
    np.testing.assert_array_equal(np.concatenate(rows), X)
    assert computed == [0, 2, 3]


def test_dask_arrays_of_unknown_shape_are_refused():
    lazy = da.ones((4, 2))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        as_chunked(lazy[lazy[:, 0] > 0])
    with pytest.raises(ValueError, match="real numbers"):
        as_chunked(lazy.astype(complex))


def test_a_real_dask_array():
    X = np.random.default_rng(0).normal(size=(30, 4))
    chunked = as_chunked(da.from_array(X, chunks=(7, 3)))
    assert chunked.shape == (30, 4) and chunked.dtype == X.dtype
    np.testing.assert_array_equal(chunked[5:23], X[5:23])
    kept = da.from_array(X, chunks=(7, 3))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        as_chunked(kept[kept[:, 0] > 0])


@pytest.mark.parametrize("ids", [[3, 1, 3, 2, 1, 3, 9], ["b", "b", "a"], [0], np.arange(50) % 7])
def test_persons_are_those_of_the_tests(ids):
    """`tests/_persons.py` computes them in another way."""
    found, expected = read_persons(ids, len(ids)), persons_of(ids)
    assert found.n_persons == expected.n_persons
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.row_weights, expected.row_weights)
    column = np.arange(len(ids)) + 0.5
    np.testing.assert_array_equal(found.first_entries(column), expected.first_entries(column))
    some = np.arange(found.n_persons)[::2]
    np.testing.assert_array_equal(found.rows_of(some), expected.rows_of(some))


# Values of parameters.


SIZES = ("the numbers of rows and columns",)


def test_what_is_found_or_left_out_is_not_called_public():
    estimator = SimpleNamespace(bounds="auto", categories=None, data_norm=2.0, other=0)
    names = ("bounds", "categories", "data_norm", "other")
    assert public_inputs(estimator, *names) == (*SIZES, "data_norm", "other")
    assert is_auto("auto") and not is_auto(["auto"]) and not is_auto(None)


@pytest.mark.parametrize(
    "value", [pd.array([0, None]), pd.Series(["one"]), ["one"], "three", 1, None]
)
def test_what_is_no_choice_is_refused(value):
    """An array of pandas that compares as one of missing values counts as true."""
    assert check_choice("one", "name", ("one", "two")) == "one"
    with pytest.raises(ValueError, match="name must be one of"):
        check_choice(value, "name", ("one", "two"))


# Attributes of rows that go to workers.


BLOCK_HEIGHTS = (700, 1, 0, 1600, 423)


N_SENT, D_SENT = sum(BLOCK_HEIGHTS), 4


@pytest.fixture(scope="module")
def sent_table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N_SENT, D_SENT)) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N_SENT) > 1).astype(int), np.arange(N_SENT) // 3


@pytest.fixture
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def attributes(rows):
    return set(vars(rows.detach(0)))


@pytest.mark.usefixtures("here")
def test_what_is_sent_of_rows_is_listed(sent_table):
    """The attributes of each kind of `Rows` that go to workers: none that was not thought of."""
    X, y, groups = sent_table
    parts, shared = as_chunked(counted(X, BLOCK_HEIGHTS)[0]), read_persons(groups, N_SENT)
    rows = {"shape", "_size", "_read"}
    assert attributes(Rows(parts)) == rows
    bounded = BoundedRows(parts, 1.0, 0.5, persons=shared)
    public = {"data_norm", "unit", "constant", "n_units", "n_columns", "n_features", "norm"}
    assert attributes(bounded) == rows | public | {"block_size", "_blocks"}
    assert bounded.detach(0)._blocks == {}
    sums = ClippedSums(parts, y + 0.0, BinaryLogisticLoss(), constant=1.0, clip=1.0, persons=shared)
    assert attributes(sums) == rows | {
        "loss",
        "constant",
        "norm",
        "center",
        "column_factors",
        "whitening",
        "_weights_are_known",
        "_clip",
        "_indices",
        "_one_tile",
        "_reads_tiles",
    }


# Threads.


N_ROWS, N_COLUMNS = 3000, 4


@pytest.fixture(scope="module")
def classes_table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N_ROWS, N_COLUMNS)) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N_ROWS) > 1).astype(int), np.arange(N_ROWS) // 3


def test_threads_read_at_the_same_time(classes_table, short_sums, monkeypatch):
    """Neither waits for the other, as both would for the lock of a cached property."""
    X, y, _ = classes_table
    met = threading.Barrier(2)

    def read(*block):
        # The same number of blocks for both: each waits until the other reads one too.
        met.wait(10.0)
        return read_block(*block)

    monkeypatch.setattr("skdp._data._bounded.read_block", read)
    monkeypatch.setattr("skdp._data._workers.CALLS_PER_JOB", 1)
    rows = BoundedRows(X[:2048], 2.0, 1.0).streaming()
    with parallel_config(n_jobs=2):
        loss_gradient(BinaryLogisticLoss(), rows, y[:2048], np.zeros(N_COLUMNS + 1))
    assert len(short_sums) == 2 and not met.broken
