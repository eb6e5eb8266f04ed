"""What one row holds has no say in how another one is read, in any container."""

import datetime
import itertools
from fractions import Fraction

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from skdp import ChunkedArray, limit_rows
from skdp._data._columns import read_columns
from skdp._data._containers import as_cells, as_numbers, is_sequence
from skdp._data._parts import read_block
from skdp._data._tables import (
    indexable_table,
    number_array,
    numeric_columns,
    read_numeric_target,
    read_table,
    read_target,
)
from skdp.mechanisms import RandomizedResponse
from tests._containers import (
    DATES,
    DAYS,
    GONE,
    LABELS,
    NO_LABELS,
    NUMERIC,
    OTHER_ENTRIES,
    OTHER_NUMBERS,
    SAME_ENTRIES,
    SAME_NUMBERS,
    SPARSE,
    date_rows,
    entry_rows,
    label_rows,
    number_rows,
)
from tests._private import _value_counts, category_codes, check_classes, column_values, id_codes

ROWS = {"numbers": number_rows, "labels": label_rows, "dates": date_rows}
REFUSED = (TypeError, ValueError, RuntimeError, ReferenceError)
CATEGORIES = {
    "numbers": np.array([0, 1, 2]),
    "labels": np.array(["a", "b", "c"]),
    "dates": np.array([*DAYS, None][:3], dtype=object),
}


def doubles(X, accept_sparse=False):
    table = read_table(BaseEstimator(), X, accept_sparse=accept_sparse, allow_nan=True)
    block = read_block(table, slice(0, table.shape[0]))
    return block.toarray() if issparse(block) else block


def codes(X, holds):
    table = read_columns(BaseEstimator(), X)
    whole = slice(0, table.shape[0])
    columns = [table.values(j, whole) for j in range(table.shape[1])]
    return np.column_stack([category_codes(column, CATEGORIES[holds]) for column in columns])


def discovered(X):
    """The values that discovery counts, of each column, without the first row's own."""
    table = read_columns(BaseEstimator(), X)
    whole = slice(0, table.shape[0])
    columns = [table.values(j, whole) for j in range(table.shape[1])]
    return [_value_counts(column[1:]) for column in columns]


def reported(X):
    """The codes that randomized response would report of each column."""
    cells = np.array([list(row) for row in X], dtype=object)
    return np.column_stack(
        [RandomizedResponse(1.0, (0, 1, 2))._encode(list(column)) for column in cells.T]
    )


def kept(X):
    """The rows that each of some persons keeps."""
    rows = limit_rows(X, None, list(range(len(X))), 1)[0]
    rows = as_cells(rows) if is_sequence(rows) else rows
    # Of several lengths they are no table, which every estimator refuses.
    return np.vectorize(repr, otypes=[object])(rows) if rows.ndim == 2 else None


def searched(X):
    table = indexable_table(X)
    table = table.toarray() if issparse(table) else table
    return np.asarray(table, dtype=object)


def tried(read, container, rows):
    """Read rows, or return None if the container cannot hold them, or the reader refuses."""
    try:
        table = container.build(rows)
    except Exception:
        return None
    try:
        return read(table)
    except REFUSED:
        return None


def assert_others_unmoved(before, after):
    """The rows behind the first are the same to the last bit."""
    if after is None:
        return
    one, other = (np.ascontiguousarray(rows)[1:] for rows in (before, after))
    assert one.dtype == other.dtype and one.shape == other.shape
    same = one == other if one.dtype.kind == "O" else one.view(np.uint8) == other.view(np.uint8)
    assert np.all(same)


@pytest.mark.quick_cases(every=12)
@pytest.mark.parametrize("container", NUMERIC, ids=repr)
def test_numbers(container):
    first, *rest = number_rows()
    readers = [doubles, lambda X: codes(X, "numbers")]
    if is_sequence(container.build([first, *rest])):
        readers += [reported, searched, kept]
    for read in readers:
        before = tried(read, container, [first, *rest])
        assert before is not None
        for odd, row in (SAME_NUMBERS | OTHER_NUMBERS).items():
            after = tried(read, container, [row, *rest])
            assert_others_unmoved(before, after)
            if odd in SAME_NUMBERS and after is not None and read is not kept:
                np.testing.assert_array_equal(after[0], before[0])


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("container", [*LABELS, *DATES], ids=repr)
def test_labels(container):
    first, *rest = ROWS[container.holds]()
    before = tried(lambda X: codes(X, container.holds), container, [first, *rest])
    assert before is not None
    for row in NO_LABELS.values():
        after = tried(lambda X: codes(X, container.holds), container, [row, *rest])
        assert_others_unmoved(before, after)
        if after is not None:
            assert (after[0] == -1).all()
    if container.holds == "dates" and "timedelta" not in container.name:
        # Every container tells the same of the same dates.
        expected = [[DAYS.index(day) for day in row] for row in [first, *rest]]
        np.testing.assert_array_equal(before, expected)


@pytest.mark.parametrize("container", SPARSE, ids=repr)
@pytest.mark.parametrize("read", [lambda X: doubles(X, accept_sparse=True), searched])
def test_entries(container, read):
    first, *rest = entry_rows()
    before = tried(read, container, [first, *rest])
    for odd, row in (SAME_ENTRIES | OTHER_ENTRIES).items():
        after = tried(read, container, [row, *rest])
        assert_others_unmoved(before, after)
        if odd in SAME_ENTRIES:
            np.testing.assert_array_equal(after[0], before[0])


@pytest.mark.quick_cases(every=10)
@pytest.mark.parametrize("container", [*NUMERIC, *LABELS, *DATES], ids=repr)
def test_what_discovery_counts(container):
    rows = ROWS[container.holds]()
    before = tried(discovered, container, rows)
    for odd in (OTHER_NUMBERS | NO_LABELS).values():
        after = tried(discovered, container, [odd, *rows[1:]])
        if after is None:
            continue
        for (one, counts), (other, other_counts) in zip(before, after, strict=True):
            assert list(one) == list(other)
            np.testing.assert_array_equal(counts, other_counts)


def test_codes_are_the_same_of_numbers_and_of_objects():
    rng = np.random.default_rng(0)
    kinds = (np.int64, np.uint8, np.float16, np.float64, bool)
    for kind, other in itertools.product(kinds, kinds):
        # Of equal categories, as predictions are, the first has the code in either.
        categories, values = rng.integers(0, 4, 9).astype(kind), rng.integers(0, 6, 30)
        values = values.astype(other)
        expected = category_codes(values, categories).tolist()
        for one, two in ((object, kind), (other, object), (object, object)):
            again = category_codes(values.astype(one), categories.astype(two))
            assert again.tolist() == expected


def test_zeros_of_categories_have_no_sign():
    for other in (0.25, True, "x", None):
        column = pd.Series([other, -0.0, 0.5, 0.0], dtype=object).astype("category")
        zero, _, same = column_values(column)[0][1:]
        assert not np.signbit([zero, same]).any()


def test_groups_are_read_one_by_one():
    ids = [2**53, 2**53 + 1] * 3
    X = np.arange(7).reshape(7, 1)
    for last in (7, 0.5, "x", np.float32(1), (1, 2)):
        assert limit_rows(X, None, [*ids, last], 1)[0].ravel().tolist() == [0, 1, 6]
    for container in (list, pa.array, pl.Series):
        with pytest.raises(ValueError, match="missing"):
            limit_rows(X, None, container([*ids, None]), 1)


@pytest.mark.parametrize("time", [np.datetime64("1970-01-03"), np.timedelta64(2, "D")])
def test_a_date_is_no_number_whatever_stands_beside_it(time):
    """A count of its unit would depend on the type of the container; missing is missing."""
    for odd in (1.0, None, np.nan, 2, np.float32(4), np.datetime64("NaT")):
        missing = np.array([odd, np.datetime64("NaT")], dtype=object)
        assert np.isnan(as_numbers(missing)[1])
        with pytest.raises(ValueError, match="contains (dates|durations)"):
            as_numbers(np.array([odd, time], dtype=object))
    with pytest.raises(ValueError, match="contains (dates|durations)"):
        as_numbers(np.array([time]))


# Doubles do not tell these apart.
EQUAL_DOUBLES = [2**53 + 1, 2**53]


def _frame_of(array):
    return pd.DataFrame({"a": array})


def _sparse(cells):
    return pd.arrays.SparseArray(np.array(cells, np.uint64), fill_value=0)


INTEGERS = {
    "polars": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int64)}),
    "polars unsigned": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.UInt64)}),
    "arrow": lambda cells: pa.table({"a": pa.array(cells, type=pa.int64())}),
    "record batch": lambda cells: pa.record_batch({"a": pa.array(cells, type=pa.int64())}),
    "pandas Int64": lambda cells: _frame_of(pd.array(cells, dtype="Int64")),
    "pandas Sparse": lambda cells: _frame_of(_sparse(cells)),
    "pandas category": lambda cells: _frame_of(pd.array(cells, "Int64")).astype("category"),
    "column called dtype": lambda cells: INTEGERS["pandas category"](cells).set_axis(
        ["dtype"], axis=1
    ),
    "chunk of Sparse": lambda cells: ChunkedArray([_frame_of(_sparse(cells))]),
    "rows": lambda cells: [[cell] for cell in cells],
    "rows of numpy": lambda cells: [np.array([cell]) for cell in cells],
    "chunks": lambda cells: ChunkedArray([[[cell] for cell in cells]]),
}


@pytest.mark.parametrize("build", INTEGERS.values(), ids=INTEGERS)
@pytest.mark.parametrize("categories", [[0.5, 2.0**53], [0, *EQUAL_DOUBLES], [1, 2**53, 2**63]])
def test_large_integers_are_the_same_whatever_stands_beside_them(build, categories):
    def found(first):
        table = read_columns(BaseEstimator(), build([first, *EQUAL_DOUBLES]))
        return category_codes(table.values(0, slice(0, 3)), np.array(categories))[1:]

    before = found(0)
    for odd in (1, None, 0.5):
        try:
            after = found(odd)
        except (TypeError, ValueError, pa.ArrowInvalid):
            continue
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    "build",
    [
        pd.Series,
        pl.Series,
        lambda cells: pa.chunked_array([cells]),
        lambda cells: pd.Series(pd.Categorical(cells)),
        lambda cells: pl.DataFrame({"a": cells}),
        lambda cells: _frame_of(pd.Categorical(cells)),
        lambda cells: pa.table({"a": cells}),
    ],
)
def test_a_report_of_a_column_of_a_frame_is_of_its_own_value(build):
    response = RandomizedResponse(60.0, (0, *EQUAL_DOUBLES))
    for first in (0, None) if build is not pd.Series else (0,):
        released = response.release(build([first, *EQUAL_DOUBLES]), random_state=0)
        assert released.ravel()[1:].tolist() == EQUAL_DOUBLES


def test_large_labels_stay_apart_beside_a_float():
    classes = [0, *EQUAL_DOUBLES]
    for odd in (0, np.int64(0), 0.0, np.float64(-0.0), np.uint64(0), np.int8(0)):
        for kind in (int, np.int64):
            y = read_target(BaseEstimator(), [odd, *map(kind, EQUAL_DOUBLES)], 3)
            assert check_classes(classes, y)[1].tolist() == [0, 2, 1]


@pytest.mark.parametrize("odd", [0, 0.0, np.float32(0), np.uint64(0)])
@pytest.mark.parametrize(
    "build",
    [lambda cells: pl.Series(cells, dtype=pl.Object), lambda cells: _objects_by_code(cells)],
)
def test_large_labels_of_a_series_stay_apart_beside_a_float(odd, build):
    y = read_target(BaseEstimator(), build([odd, *EQUAL_DOUBLES]), 3)
    assert check_classes([0, *EQUAL_DOUBLES], y)[1].tolist() == [0, 2, 1]
    # Of which type the labels are is told by the model.
    assert y.dtype == np.int64
    with pytest.raises(ValueError, match="several kinds"):
        read_target(BaseEstimator(), build([True, *EQUAL_DOUBLES]), 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize(
    "build",
    [_sparse, lambda cells: pd.Series(_sparse(cells)), lambda cells: _frame_of(_sparse(cells))],
)
def test_large_labels_of_a_sparse_array_stay_apart(build):
    """numpy makes floats of integers beside the value that is not stored."""
    labels = [0, 1, *EQUAL_DOUBLES]
    for first, code in ((0, 0), (1, 1)):
        column = build([first, *EQUAL_DOUBLES])
        y = read_target(BaseEstimator(), column, 3)
        assert check_classes(labels, y)[1].tolist() == [code, 3, 2]
        reports = RandomizedResponse(60.0, labels).release(column, random_state=0)
        assert reports.ravel().tolist() == [first, *EQUAL_DOUBLES]
        if column.ndim == 1:
            assert len(limit_rows(np.zeros((3, 1)), None, column, 1)[0]) == 3


def _parts_of_dask(first, kind):
    """A column of two parts that is declared to be one of integers."""
    parts = [np.array([first, 1]), np.array([2, *EQUAL_DOUBLES])]
    if kind == "array":
        blocks = zip(map(dask.delayed(np.array), parts), map(np.shape, parts), strict=True)
        return dask.array.concatenate([dask.array.from_delayed(*b, np.int64) for b in blocks])
    frame = dask.dataframe.from_map(
        lambda i: _frame_of(parts[i]), [0, 1], meta=_frame_of(parts[1][:0])
    )
    return frame if kind == "frame" else frame["a"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("kind", ["array", "frame", "series"])
def test_a_part_of_another_type_than_declared_is_refused(kind):
    """Joined with the others its type would become theirs."""
    readers = [
        lambda column: read_target(BaseEstimator(), column, 5),
        lambda column: RandomizedResponse(60.0, range(2)).release(column),
        number_array,
    ]
    if kind == "frame":
        readers += [doubles, lambda frame: codes(frame, "numbers")]
    else:
        readers.append(lambda column: limit_rows(np.zeros((5, 1)), None, column, 1))
    if kind == "array":
        readers.append(lambda column: doubles(column[:, np.newaxis]))
    for read in readers:
        read(_parts_of_dask(0, kind))
        for odd in (0.0, None):
            with pytest.raises(
                ValueError, match="are declared|holds float64|holds object|a block is"
            ):
                read(_parts_of_dask(odd, kind))


def test_columns_may_be_called_as_what_containers_have():
    names = ["dtype", "schema", "column_names", "compute", "map_blocks", "blocks", "to_pylist"]
    frame = pd.DataFrame(np.eye(7), columns=[*names]).astype({"dtype": "Int64"})
    for X in (frame, dask.dataframe.from_pandas(frame, npartitions=2)):
        np.testing.assert_array_equal(doubles(X), np.eye(7))
        np.testing.assert_array_equal(codes(X, "numbers"), np.eye(7))
    column = pd.Series(range(7), index=names, dtype="Int64")
    assert number_array(column).tolist() == list(range(7))
    assert read_target(BaseEstimator(), column, 7).tolist() == list(range(7))


class Money:
    """A label that is not compared with one of another currency."""

    def __init__(self, amount, currency):
        self.amount, self.currency = amount, currency

    def __hash__(self):
        return hash(self.amount)

    def __eq__(self, other):
        if self.currency != other.currency:
            raise ValueError("different currencies")
        return self.amount == other.amount


class Unknown:
    """A label that does not even tell its class."""

    @property
    def __class__(self):
        raise RuntimeError("asked for its class")


class Incomparable(Fraction):
    def __lt__(self, other):
        raise RuntimeError("compared")

    __le__ = __gt__ = __ge__ = __lt__


def test_labels_that_raise_are_no_labels():
    labels = np.array([Money(0, "USD"), Money(1, "USD")])
    assert not is_sequence(Unknown())
    odd = [Money(1, "EUR"), Unknown(), GONE, np.ma.masked, Incomparable(1, 3)]
    values = np.empty(len(odd) + 1, dtype=object)
    for i, value in enumerate([Money(1, "USD"), *odd]):
        values[i] = value
    assert category_codes(values, labels).tolist() == [1, -1, -1, -1, -1, -1]
    assert id_codes(values).tolist() == [0, -1, -1, -1, -1, 1]
    # A fraction is compared as the nearest double, which is what is found.
    assert list(_value_counts(values)[0]) == [1 / 3]


def test_a_masked_cell_is_missing():
    cells = np.array([1.0, 2], dtype=object)
    cells[0] = np.ma.masked
    np.testing.assert_array_equal(as_numbers(cells), [np.nan, 2.0])


def _objects_by_code(cells):
    categories = pd.Index(cells, dtype=object)
    return pd.Series(pd.Categorical.from_codes(range(len(cells)), categories))


@pytest.mark.parametrize("build", [pl.DataFrame, pa.table])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_a_null_has_no_say_in_the_sign_of_a_zero(build, kind):
    """Of a column without nulls an array is made, of one with a null objects."""
    zeros = pa.array([-0.0, 0.0], pa.float32() if kind == "f4" else pa.float64())
    for first in (1.0, None):
        column = pa.concat_arrays([pa.array([first], zeros.type), zeros])
        X = build({"a": pl.Series(column) if build is pl.DataFrame else column})
        assert np.signbit(doubles(X)[1:, 0]).tolist() == [True, False]


def test_a_column_of_a_list_whose_kind_one_row_decides_is_refused():
    rest = [[None, 7, None], [None, None, 7.5], [None, 8, 9]]
    for odd in ("x", 1.0, None, np.nan):
        with pytest.raises(ValueError, match="column 0 .* fewer than two known values"):
            indexable_table([[odd, 1, 2], *rest])
    # Of one row there are no others.
    assert np.isnan(indexable_table([[None]])).all()
    assert numeric_columns(as_cells([["a", 1], [None, 2], ["b", None]])) == [False, True]


def test_cells_of_arrays_are_of_one_type_beside_a_row_of_dates():
    rows = [np.array(["a", "b"]), np.array(["c", "d"])]
    dates = np.array(["2020-01-01", "NaT"], dtype="M8[ns]")
    for first in (rows[0], dates, pd.Series(dates)):
        cells = indexable_table([first, *rows])
        assert [type(cell) for cell in cells[1]] == [str, str]


def test_dates_of_a_zone_are_no_numbers_and_labels_of_their_own():
    moments = [datetime.datetime(2020, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    frames = [
        _frame_of(pd.Series([*moments, None]).dt.tz_convert("Europe/Zurich")),
        _frame_of(pd.Series([*moments, None]).astype("timestamp[us, tz=UTC][pyarrow]")),
        pl.DataFrame({"a": pl.Series([*moments, None])}),
        pa.table({"a": pa.array([*moments, None])}),
    ]
    for frame in frames:
        with pytest.raises(ValueError, match="contains dates"):
            doubles(frame)
        column = read_columns(BaseEstimator(), frame).values(0, slice(0, 3))
        naive = moments[0].replace(tzinfo=None)
        labels = np.array([moments[1], naive], dtype=object)
        assert category_codes(column, labels).tolist() == [-1, 0, -1]


def test_containers_of_other_libraries_are_taken():
    cells = [[1.0], [0.0], [1.0]]
    frame = pd.DataFrame({"a": np.ravel(cells)})
    for X in (
        pa.record_batch({"a": pa.array([True, False, True])}),
        dask.dataframe.from_pandas(frame, npartitions=2),
        dask.dataframe.from_pandas(frame.astype("Int64"), npartitions=2),
    ):
        np.testing.assert_array_equal(doubles(X), cells)
        np.testing.assert_array_equal(codes(X, "numbers").ravel(), [1, 0, 1])
    column = dask.dataframe.from_pandas(frame, npartitions=2)["a"]
    np.testing.assert_array_equal(np.asarray(number_array(column)), np.ravel(cells))
    np.testing.assert_array_equal(read_numeric_target(BaseEstimator(), column, 3), np.ravel(cells))
