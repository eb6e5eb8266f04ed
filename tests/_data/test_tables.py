"""Tables of every container: what is read, what is refused, and how labels are told apart."""

import datetime
import itertools
from collections import Counter
from enum import Enum, IntEnum
from fractions import Fraction
from functools import wraps

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.base import BaseEstimator, clone

import skdp
from skdp import (
    DPPCA,
    ChunkedArray,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPTargetEncoder,
    PrivacyAccountant,
    limit_rows,
)
from skdp._data import _columns, _frames, _histogram, _tables
from skdp._data._columns import read_columns
from skdp._data._containers import as_cells, as_numbers, is_sequence
from skdp._data._labels import kind_of_others, label_kinds
from skdp._data._parts import read_block, row_blocks
from skdp._data._tables import (
    indexable_table,
    linear_scores,
    number_array,
    numeric_columns,
    read_numeric_target,
    read_table,
    read_target,
    target_array,
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


def table(n=300, d=4):
    return np.random.default_rng(0).normal(size=(n, d))


def chunked(X, at=130):
    return ChunkedArray([X[:at], X[at:]])


def test_chunked_tables_are_checked_as_arrays_are():
    X, one, other = table(), BaseEstimator(), BaseEstimator()
    y = np.arange(300)
    checked = read_table(one, chunked(X))
    assert isinstance(checked, ChunkedArray) and one.n_features_in_ == 4
    target = read_target(one, y[:, None].ravel().tolist(), 300)
    np.testing.assert_array_equal(target, read_target(other, y, len(read_table(other, X))))
    assert read_table(one, chunked(X), reset=False).shape == (300, 4)
    assert not hasattr(one, "feature_names_in_")


def test_names_of_an_earlier_fit_are_forgotten_or_missed():
    X, estimator = table(), BaseEstimator()
    read_table(estimator, pd.DataFrame(X, columns=list("abcd")))
    assert list(estimator.feature_names_in_) == list("abcd")
    with pytest.warns(UserWarning, match="feature names"):
        read_table(estimator, chunked(X), reset=False)
    read_table(estimator, chunked(X))
    assert not hasattr(estimator, "feature_names_in_")


def bad_value(value):
    X = table()
    X[299, 3] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (bad_value(np.nan), np.zeros(300), "NaN"),
        (bad_value(np.inf), np.zeros(300), "infinity"),
        (table(), np.zeros(299), "rows, but X has"),
        (table(), np.full(300, np.nan), "NaN"),
        (table(), np.zeros((300, 2)), "1d"),
        (table(), None, "requires y"),
        (table()[:0], np.zeros(0), "0 sample"),
        (table()[:, :0], np.zeros(300), "0 feature"),
    ],
)
def test_what_is_refused_of_an_array_is_refused_of_chunks(X, y, words):
    class NeedsTarget(BaseEstimator):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.required = True
            return tags

    for container in (X, chunked(X)):
        with pytest.raises(ValueError, match=words):
            read = read_table(NeedsTarget(), container, accept_sparse=True)
            read_target(NeedsTarget(), y, read.shape[0])


def test_another_width_is_refused_when_predicting():
    estimator = BaseEstimator()
    read_table(estimator, chunked(table()))
    with pytest.raises(ValueError, match="3 features"):
        read_table(estimator, chunked(table(d=3)), reset=False)


def test_numbers_as_objects_become_numbers():
    y = np.arange(300).astype(object)
    assert read_numeric_target(BaseEstimator(), y, 300).dtype == np.float64


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_blocks_of_csr_are_those_of_the_array(index):
    X = table() * (np.random.default_rng(1).random((300, 4)) < 0.3)
    S = csr_array(X.astype(np.float32))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    for rows in row_blocks(S, 7):
        block = read_block(S, rows)
        assert block.dtype == np.float64
        np.testing.assert_array_equal(block.toarray(), X.astype(np.float32)[rows])


def test_entries_of_one_place_are_summed_and_the_table_is_left_alone():
    S = csr_array((np.array([1.0, 2.0, 5.0, 7.0]), np.array([1, 1, 2, 0]), np.array([0, 3, 4])))
    # A stale note of a canonical format is not believed.
    S.has_canonical_format = True
    data, indices = S.data.copy(), S.indices.copy()
    block = read_block(S, slice(0, 2))
    assert block.nnz == 3
    np.testing.assert_array_equal(block.toarray(), [[0, 3, 5], [7, 0, 0]])
    block.data[:] = 0.0
    np.testing.assert_array_equal(S.data, data)
    np.testing.assert_array_equal(S.indices, indices)


def test_numbers_beyond_double_precision_are_the_largest():
    largest = np.finfo(np.longdouble).max
    data = np.array([largest, -largest, 1.0], dtype=np.longdouble)
    X = csr_array((data, np.array([0, 0, 1]), np.array([0, 2, 3])))
    X = read_table(DPPCA(), X, accept_sparse=True)
    np.testing.assert_array_equal(read_block(X, slice(0, 2)).toarray(), [[0, 0], [0, 1]])
    assert np.isfinite(DPPCA().fit(X).components_).all()
    dense = read_table(DPPCA(), np.array([[largest], [-largest]]))
    assert dense.dtype == np.float64 and (np.abs(dense) == np.finfo(np.float64).max).all()


@pytest.mark.parametrize(
    "estimator",
    [
        DPLinearRegression(target_bounds=(0, 1)),
        DPRidge(target_bounds=(0, 1)),
        DPPoissonRegressor(target_bounds=(0, 1)),
        DPSGDRegressor(target_bounds=(0, 1)),
        DPTargetEncoder(categories=[0, 1], target_bounds=(0, 1)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_target_is_refused_before_the_charge(estimator, missing):
    y = np.full(60, 0.5, dtype=object)
    y[7] = missing
    accountant = PrivacyAccountant(1e6, 0.5)
    with pytest.raises((ValueError, TypeError)):
        clone(estimator).set_params(accountant=accountant).fit(table(60), y)
    assert accountant.charges == []


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, csr_array, chunked])
def test_scores_are_products(container, monkeypatch):
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    X, rng = table(), np.random.default_rng(2)
    coef, intercept = rng.normal(size=(3, 4)), rng.normal(size=3)
    scores = linear_scores(container(X), coef, intercept)
    np.testing.assert_allclose(scores, X @ coef.T + intercept, atol=1e-13)


def test_other_sparse_formats_become_csr():
    checked = read_table(BaseEstimator(), coo_array(table()), accept_sparse=True)
    assert checked.format == "csr"


class AnyLabel:
    """A label that says that it is equal to each, and sorts behind all."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(0)

    def __lt__(self, other):
        return False

    def __gt__(self, other):
        return True


@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(classes=[0, 1, 2]),
        DPLinearSVC(classes=[0, 1, 2]),
        DPSGDClassifier(classes=[0, 1, 2]),
        DPTargetEncoder(categories=[0, 1], classes=[0, 1, 2]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_label_that_is_none_of_the_declared_is_refused_before_the_charge(estimator):
    y = np.array([0, 1, 2] * 20, dtype=object)
    for odd in (AnyLabel(), object(), [1], 1j, pd.NA, "1", 3):
        y[0] = odd
        accountant = PrivacyAccountant(1e6, 0.5)
        with pytest.raises((TypeError, ValueError)):
            clone(estimator).set_params(accountant=accountant).fit(table(60), y)
        assert accountant.charges == []


def test_the_label_set_does_not_hold_a_label_of_one_row():
    class Secret(str):
        pass

    for odd in (np.str_("a"), Secret("a")):
        classes, codes = check_classes(None, np.array([odd, "b", "a", odd], dtype=object))
        assert [type(label) for label in classes] == [str, str] and codes.tolist() == [0, 1, 0, 0]


class Answer(str, Enum):  # noqa: UP042
    NO = "no"
    YES = "yes"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@pytest.mark.parametrize("kind", [Answer, Level])
def test_members_of_an_enum_are_their_values(kind):
    """Numpy takes the names of words, cut to the length of the longest value."""
    y = target_array([*kind] * 3)
    assert y.tolist() == [member.value for member in kind] * 3
    assert set(map(type, y.tolist())) == {type(y[0].item())}
    cells = as_cells([[member, 1.0] for member in kind])
    assert cells.shape == (2, 2) and id_codes(cells[:, 0]).tolist() == [0, 1]


def test_the_label_set_does_not_tell_the_sign_of_one_zero():
    for odd in range(4):
        y = np.array([0.0, 1.0, 0.0, 1.0])
        y[odd] *= -1.0 if y[odd] == 0.0 else 1.0
        classes, codes = check_classes(None, y)
        assert not np.signbit(classes).any() and codes.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("column", [-1, 4, 100])
@pytest.mark.parametrize("kind", [csr_array, coo_array])
def test_an_entry_outside_of_its_row_is_refused(kind, column):
    X = kind(table())
    columns = X.indices if kind is csr_array else X.col
    columns[7] = column
    with pytest.raises(ValueError, match="ind(ices|ex values) must be"):
        read_table(BaseEstimator(), X, accept_sparse=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_rows_scores_do_not_depend_on_how_many_rows_there_are(n_outputs, order):
    rng = np.random.default_rng(0)
    row, coef = rng.normal(size=33) * 10.0 ** rng.integers(0, 12, 33), rng.normal(size=(3, 33))
    intercept = np.zeros(n_outputs)
    tables = [np.asarray(np.tile(row, (n, 1)), order=order) for n in range(1, 18)]
    scores = [linear_scores(X, coef[:n_outputs], intercept) for X in tables]
    assert all((each == scores[0]).all() for each in scores)


# What one row holds has no say in how another one is read, in any container.


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


# The kinds of labels: what can be equal to one another.


@pytest.mark.parametrize(
    "cell, kind",
    [
        ("a", "text"),
        (np.str_("a"), "text"),
        (b"a", "bytes"),
        (1, "numbers"),
        (True, "numbers"),
        (np.float32(1), "numbers"),
        (datetime.date(2024, 1, 1), "dates"),
        (np.datetime64("2024-01-01"), "dates"),
        (pd.Timestamp("2024-01-01", tz="UTC"), "dates with a time zone"),
        (datetime.timedelta(1), "durations"),
        (np.timedelta64(1, "D"), "durations"),
        (None, None),
        (np.nan, None),
        (pd.NaT, None),
        (pd.NA, None),
        ([1], "values of type list"),
    ],
)
def test_each_cell_is_judged_by_itself(cell, kind):
    cells = np.empty(3, dtype=object)
    cells[0], cells[1], cells[2] = (1, 2), cell, None
    allowed = {"values of type tuple"}
    assert kind_of_others(cells, allowed) == kind
    assert kind_of_others(cells, allowed | {kind}) is None
    if kind not in (None, "values of type list"):
        assert label_kinds(cells[1:2]) == {kind}


# What an answer costs: how often tables are read does not grow with their columns.


# What reads, converts or checks cells.
READERS = [
    (_columns, "as_numbers"),
    (_columns, "check_finite"),
    (_columns.ColumnTable, "values"),
    (_tables, "check_finite"),
    (_tables._containers, "as_numbers"),
    (_tables._frames, "column_values"),
    (_histogram.Bins, "__init__"),
]


FEW, MANY = 4, 40


KNOWN = {"epsilon": 10.0, "random_state": 0}


OF_NUMBERS = [
    skdp.DPAdditiveClassifier(bounds=(0, 1), **KNOWN),
    skdp.DPHistogramNB(bounds=(0, 1), **KNOWN),
    skdp.DPDecisionTreeClassifier(bounds=(0, 1), max_depth=1, **KNOWN),
    skdp.DPTableVectorizer(bounds=(0, 1), **KNOWN),
    skdp.DPTableVectorizer(bounds=(0, 1), numeric="scaled", **KNOWN),
    skdp.DPSimpleImputer(bounds=(0, 1), **KNOWN),
    skdp.DPStandardScaler(bounds=(0, 1), **KNOWN),
]


def numbers(kind, n_columns, n_rows=40):
    values = np.random.default_rng(0).uniform(size=(n_rows, n_columns))
    if kind == "array":
        return values
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    return frame if kind == "frame" else frame.astype({"x0": np.float32, "x1": np.float32})


def calls_of(answer, rows):
    """Return how often each reader is called while rows are answered."""
    counts = Counter()

    def counted(function, name):
        @wraps(function)
        def counting(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return counting

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in READERS:
            patched.setattr(owner, name, counted(getattr(owner, name), f"{owner}.{name}"))
        answer(rows)
    return counts


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("kind", ["array", "frame", "frame of two types"])
@pytest.mark.parametrize("model", OF_NUMBERS, ids=lambda model: type(model).__name__)
def test_columns_of_one_type_are_read_together(model, kind):
    counts = []
    for n_columns in (FEW, MANY):
        table = numbers(kind, n_columns)
        fitted = clone(model).fit(table, np.arange(len(table)) % 2)
        answer = getattr(fitted, "predict", None) or fitted.transform
        counts.append(calls_of(answer, table[:1]))
    assert counts[0] == counts[1]


class CountedTable:
    """An Arrow table that counts how often the list of its columns is made."""

    column_names = ()

    def __init__(self, table):
        self.table = table
        self.n_lists = 0

    @property
    def columns(self):
        self.n_lists += 1
        return self.table.columns


def test_the_columns_of_an_arrow_table_are_listed_once():
    """Arrow makes a new list at each access, so a list for each column takes quadratic time."""
    table = pa.table({f"x{j}": [float(j)] for j in range(MANY)})
    counted = CountedTable(table)
    columns = _frames.columns_of(counted, range(1, MANY))
    assert counted.n_lists == 1
    assert [column.to_pylist() for column in columns] == [[float(j)] for j in range(1, MANY)]
