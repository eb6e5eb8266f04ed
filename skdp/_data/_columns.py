"""Tables of numeric and categorical columns, read block by block, and declared numeric bounds."""

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import product
from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skdp._data._chunked import ChunkedArray, as_chunked, meta_of
from skdp._data._classes import code_type
from skdp._data._containers import as_cells, as_numbers, is_sequence
from skdp._data._errors import (
    DAYS_OF,
    FILL_VALUE_HINT,
    HINTS,
    HintedError,
    check_finite,
    column_name,
    join_errors,
    join_messages,
    label_text,
)
from skdp._data._frames import (
    NUMBERS,
    TIMES,
    check_labels_match,
    check_names_differ,
    check_not_masked,
    columns_in_blocks,
    float_type_of,
    frame_blocks,
    frame_columns,
    has_time_zone,
    in_memory,
    is_frame,
    kind_of,
    label_kind_of,
    listed_number_type_of,
    map_types,
    names_of,
    number_type_of,
    objects,
    time_type_of,
    types_of,
    with_plain_names,
)
from skdp._data._labels import (
    ARRAY_KINDS,
    LARGE_NUMBERS,
    MISSING_KEY,
    category_codes,
    has_kind,
    is_missing,
    kind_of_others,
    kind_of_zone,
    kind_without_form,
    label_key,
    label_kinds,
    rounded_labels,
)
from skdp._data._parts import Rows, check_loops, map_over, slice_row_args, sum_over
from skdp._data._persons import count_over, weighted_bincount
from skdp._data._tables import names_for_keys, read_chunks, read_table, validate_meta
from skdp._loops import NUMPY
from skdp.utils._documents import count_of
from skdp.utils._validation import broadcast_bounds, check_bounds, is_auto
from skdp.utils._warnings import warn_user

# Words in messages for dates with or without a time zone.
ZONES = {True: "with", False: "without"}


class ColumnTable:
    """The columns of a table, which are converted when a block of rows is read.

    Parameters
    ----------
    shape : tuple of (int, int)
    matrix : ndarray or ChunkedArray, default=None
        All columns, or None if they have no common array.
    columns : list of ndarray of shape (n_rows,), default=None
        The columns, if `matrix` is None.
    numeric : list of bool, default=None
        For each column, True if its declared type is numeric. None uses the type of `matrix`.
    time_types : list of dtype or None, default=None
        For each column of a partitioned table of objects, the NumPy type of its dates or durations,
        or None for other columns.
    names : list, default=None
        Names of the columns.
    label_kinds : list of {"numbers", "text", "bytes", None}, default=None
        For each column, the kind of its values as labels, or None if its declared type does not
        determine it. None uses the type of `matrix`.
    number_types : list of dtype or None, default=None
        For each column, the NumPy type of its numbers or Booleans, or None for other columns. None
        instead of a list uses the type of `matrix`.
    blocks : list of FrameBlock, default=()
        The same columns, grouped into one block per type.
    float_types : dict of column to dtype, default=None
        Columns whose labels are compared as numbers of a floating-point type of less than 8 bytes,
        because the column has this type or had it in the fit.
    after_fit : bool, default=False
        True if the rows are samples of a fitted estimator, which get other error messages.
    has_large_numbers : ndarray of shape (n_columns,), bool, default=None
        For a partitioned table of numbers, True for the columns in which the pass that checked the
        table found numbers too large to be found as categories.
    rounded_columns : collection of int, default=()
        Columns of integers or decimals that are read in double precision.
    """

    def __init__(
        self,
        shape,
        matrix=None,
        columns=None,
        numeric=None,
        time_types=None,
        names=None,
        label_kinds=None,
        number_types=None,
        blocks=(),
        has_large_numbers=None,
        float_types=None,
        after_fit=False,
        rounded_columns=(),
    ):
        self.shape = shape
        self.matrix = matrix
        self._columns = columns
        self._names = names
        self._number_blocks = [
            block
            for block in blocks
            if block.values.dtype.kind in NUMBERS and len(block.columns) > 1
        ]
        self.offsets = getattr(matrix, "offsets", (0, shape[0]))
        if numeric is None:
            numeric = [matrix is None or matrix.dtype.kind in "biuf"] * shape[1]
        self.numeric_types = numeric
        self.time_types = time_types or [None] * shape[1]
        label_kind = None
        number_type = None
        if matrix is not None:
            number_type = number_type_of(matrix.dtype)
            # Dates may be encoded as labels of another kind, so a dtype of dates does not determine
            # the kind.
            if matrix.dtype.kind not in TIMES:
                label_kind = ARRAY_KINDS.get(matrix.dtype.kind)
        if label_kinds is None:
            label_kinds = [label_kind] * shape[1]
        self._label_kinds = label_kinds
        if number_types is None:
            number_types = [number_type] * shape[1]
        self._number_types = number_types
        self.float_types = float_types or {}
        self.after_fit = after_fit
        self._has_large_numbers = has_large_numbers
        self._rounded_columns = rounded_columns
        # Partitioned tables of numbers were already read when they were checked for infinite
        # values.
        self._has_unread_rows = isinstance(matrix, ChunkedArray) and matrix.dtype.kind == "O"

    def name(self, j):
        """Return the name of a column for messages."""
        return column_name(j, self._names)

    def label(self, j):
        """Return the name of a column, or None if the table has no names."""
        return None if self._names is None else self._names[j]

    def column(self, j):
        """Return the raw values of a column, as `Rows`."""
        return self.rows(partial(ColumnTable.values, column=j), 1)

    def whole_column(self, j):
        """Return all raw values of a column as one array, reading a partitioned table."""
        if isinstance(self.matrix, ChunkedArray):
            return self.column(j).to_array()
        return self.values(j, slice(0, self.shape[0]))

    def select(self, columns):
        """Return the values of some columns as labels, as `Rows` whose blocks are lists of arrays.

        Values are raw, except that numbers are rounded to the column's `float_types`.
        """
        return self.rows(partial(_select, columns=columns), len(columns))

    def numbers(self, columns=None):
        """Return some columns, or all of them, in double precision, as `Rows`."""
        if columns is None:
            columns = np.arange(self.shape[1])
        return self.rows(partial(ColumnTable.numeric, columns=columns), len(columns))

    def rows(self, read, n_columns):
        """Return the values of a function of a `ColumnTable` and a slice `rows`, as `Rows`.

        The function must be defined in a module, because it may run on another machine.
        """
        source = self if self.matrix is None else self.matrix
        read_block = partial(
            _read_block, read, self.numeric_types, self.time_types, self.float_types
        )
        return Rows(source, read=read_block, n_columns=n_columns)

    def codes(self, columns, categories, others):
        """Return the codes of the values of some columns, as in `category_codes`, in one pass."""
        dtype = code_type(max(categories, key=len))
        rows = self.select(columns)
        categories = self.as_labels(columns, categories)
        return map_over(rows, _codes, categories, others, shape=(len(columns),), dtype=dtype)

    def label_counts(self, columns, categories, others, row_weights=None):
        """Return the number of rows with each category of some columns, in one pass.

        Parameters
        ----------
        columns : sequence of int
        categories : list of ndarray
            Categories of each column.
        others : list of int
            For each column, the index of the category that counts all other values; negative if
            they are not counted.
        row_weights : ndarray of shape (n_rows,), default=None
            Weights of the rows; None gives every row the weight 1.

        Returns
        -------
        list of ndarray
        """
        rows = self.select(columns)
        categories = self.as_labels(columns, categories)
        n_labels = sum(map(len, categories))
        counts = count_over(
            rows, _add_labels, n_labels, categories, others, row_weights=row_weights
        )
        return split_by_column(counts, categories)

    def numeric(self, columns, rows):
        """Return some columns of a slice of rows in double precision, which may be a view.

        Parameters
        ----------
        columns : ndarray of int
        rows : slice

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Values that overflow are infinite.
        """
        with np.errstate(all="ignore"):
            columns = np.asarray(columns, dtype=np.intp)
            if self.matrix is None:
                return self._numeric_columns(columns, rows)
            block = self.matrix[rows]
            if not np.array_equal(columns, np.arange(self.shape[1])):
                block = block[:, columns]
            return as_numbers(block)

    def _numeric_columns(self, columns, rows):
        """Return columns of a frame in double precision; columns of one block are read together."""
        numbers = np.empty((len(range(*rows.indices(self.shape[0]))), len(columns)))
        is_read = np.zeros(len(columns), dtype=bool)
        for block in self._number_blocks:
            positions = np.full(self.shape[1], -1)
            positions[block.columns] = np.arange(len(block.columns))
            positions = positions[columns]
            is_in_block = positions >= 0
            numbers[:, is_in_block] = as_numbers(block.values[rows][:, positions[is_in_block]])
            is_read |= is_in_block
        for k in np.flatnonzero(~is_read):
            numbers[:, k] = as_numbers(self._columns[columns[k]][rows])
        return numbers

    def values(self, column, rows):
        """Return a column's raw values in a slice of rows, as an array of any type."""
        if self.matrix is None:
            return self._columns[column][rows]
        cells = self.matrix[rows][:, column]
        if cells.dtype.kind != "O":
            return cells
        if self.time_types[column] is not None:
            return cells.astype(self.time_types[column])
        return cells.astype(np.float64) if self.numeric_types[column] else cells

    def labels(self, column, rows):
        """Return a column's values in a slice of rows as labels, as in `select`."""
        return self.as_label(column, self.values(column, rows))

    def as_label(self, column, values):
        """Return values or categories, rounded to the floating-point type of a column."""
        float_type = self.float_types.get(int(column))
        return values if float_type is None else rounded_labels(values, float_type)

    def as_labels(self, columns, categories):
        """Return the categories of some columns as labels, see `as_label`."""
        return [self.as_label(j, labels) for j, labels in zip(columns, categories, strict=True)]

    def check(self, checks, labels=None, found_columns=(), expected=None):
        """Check some columns in one pass, and raise `ValueError` if they contain invalid values.

        Columns of objects in memory are replaced by the values that the checks return. A cell may
        be a user-defined object that returns a different number when it is converted again, or
        raises an error after the charge.

        Parameters
        ----------
        checks : dict of column to callable
            Functions of the raw values in some rows and of the column's name for messages. They
            return the values, possibly as numbers, or raise an error. They must be defined in a
            module.
        labels : dict of column to ndarray, default=None
            Declared categories of columns; see `check_label_kinds`.
        found_columns : collection of int, default=()
            Columns whose categories are found privately, or were so in the fit; see
            `check_label_forms`.
        expected : dict of column to ndarray, default=None
            Declared categories, each of which the column's type must be able to hold.
        """
        self._check_types(labels or {}, expected or {})
        self._warn_of_mixed_kinds(expected or {})
        label_checks = {}
        if labels is not None:
            label_checks = self._label_kind_checks(labels)
        check_forms = partial(check_label_forms, after_fit=self.after_fit)
        for j in self._with_doubtful_forms(found_columns):
            if j in label_checks:
                label_checks[j] = partial(_check_both, first=label_checks[j], second=check_forms)
            else:
                label_checks[j] = check_forms
        if isinstance(self.matrix, ChunkedArray) and self.matrix.dtype.kind != "O":
            # Numbers were checked when the table was read.
            checks = label_checks
        else:
            checks = dict(checks)
            for j, check in label_checks.items():
                if j in checks:
                    check = partial(_check_both, first=check, second=checks[j])
                checks[j] = check
        if not isinstance(self.matrix, ChunkedArray):
            checks = self._check_objects(checks)
        if checks:
            named_checks = [(check, self.name(j)) for j, check in checks.items()]
            sum_over(self.select(list(checks)), _check_block, np.zeros(1), named_checks)
            self._has_unread_rows = False

    def _check_objects(self, checks):
        """Check and replace the columns of objects in memory; return the other columns' checks."""
        if self.matrix is not None and self.matrix.dtype.kind == "O":
            self._columns = list(self.matrix.T)
            self.matrix = None
        remaining = {}
        errors = []
        for j, check in checks.items():
            if self.matrix is not None or self._columns[j].dtype.kind != "O":
                remaining[j] = check
                continue
            try:
                self._columns[j] = check(self._columns[j], self.name(j))
            except ValueError as error:
                errors.append(error)
        if errors:
            raise join_errors(errors)
        return remaining

    def check_readable(self):
        """Check in one pass that all rows can be read, unless a pass has already been made.

        A partitioned table is read when its rows are needed. A damaged file, or a failing dask
        task, must raise an error before the charge.
        """
        if self._has_unread_rows:
            sum_over(self.select(range(self.shape[1])), _read_only, np.zeros(1))
            self._has_unread_rows = False

    def _check_types(self, labels, expected):
        """Raise `ValueError` if a column's type excludes a declared category."""
        messages = []
        for j, categories in labels.items():
            try:
                if j in self.float_types:
                    check_distinct_labels(
                        self.name(j), self.float_types[j], categories, self.after_fit
                    )
                if j in self._rounded_columns:
                    check_exact_labels(self.name(j), categories, self.after_fit)
            except ValueError as error:
                messages.append(str(error))
        for j, categories in expected.items():
            mismatch = category_of_no_value(self._label_kinds[j], self._number_types[j], categories)
            if mismatch is not None:
                messages.append(_mismatch_message(self.name(j), *mismatch))
        if messages:
            raise ValueError(join_messages(messages))

    def _warn_of_mixed_kinds(self, expected):
        """Warn about lists of mixed kinds if the column's type allows values of any kind.

        The values must not determine whether the list is refused, so a list that contains at least
        one label of the right kind is accepted.
        """
        for j, categories in expected.items():
            kinds = label_kinds(categories)
            if len(kinds) > 1 and self._label_kinds[j] is None:
                warn_user(
                    f"the categories of {self.name(j)} are {' and '.join(sorted(kinds))}, which "
                    "never equal one another ('1' is not 1), and the column's type allows all of "
                    "them: declare only categories of the kind that its values have"
                )

    def _label_kind_checks(self, labels):
        """Return a check of the values' kinds, for each column whose type allows other kinds."""
        checks = {}
        for j, categories in labels.items():
            kinds = label_kinds(categories)
            # No check is needed without labels, or if the column's type allows only their kind.
            if kinds and self._label_kinds[j] not in kinds:
                checks[j] = partial(
                    check_label_kinds, categories=categories, kinds=kinds, after_fit=self.after_fit
                )
        return checks

    def _with_doubtful_forms(self, columns):
        """Return the columns that may contain values which cannot be found as categories."""
        if self._has_large_numbers is not None:
            # The columns were checked when the table was read.
            return [j for j in columns if self._has_large_numbers[j]]
        return columns

    def may_hold_times(self, column):
        """Return True if the column's type is a type of dates, durations or objects."""
        if self.time_types[column] is not None:
            return True
        array = self.matrix
        if array is None:
            array = self._columns[column]
        return array.dtype.kind in f"{TIMES}O"

    def has_integers(self, column):
        """Return True if the column's type is a type of integers."""
        number_type = self._number_types[column]
        return number_type is not None and number_type.kind in "iu"

    def kind_is_public(self, column):
        """Return True if the column's type determines the kind of its values as labels."""
        return self._label_kinds[column] is not None


def check_loops_of(table, version):
    """Raise `RuntimeError` if this process or a worker lacks the loops that a plan has chosen.

    Sums over rows run in NumPy or in loops that numba compiles, and each worker process needs numba
    then. A fit calls this function before its charge.

    Parameters
    ----------
    table : ColumnTable or a table that `Rows` reads
    version : {"numpy", "numba"}
        Result of `skdp._loops.choose_loops`.
    """
    if version == NUMPY:
        return
    if isinstance(table, ColumnTable):
        check_loops(table.select(range(table.shape[1])), version)
    else:
        check_loops(Rows.wrap(table), version)


def check_label_kinds(values, name, categories, kinds=None, after_fit=False):
    """Return the values, or raise `ValueError` if the kind of a value differs from all categories'.

    Such a value equals no category: ``"1"`` is not 1. In that case, the declaration is wrong, and
    all rows of the table would count as undeclared. Each value is checked independently.

    Parameters
    ----------
    values : ndarray
        Values of any type.
    name : str
        Name of the values for messages.
    categories : ndarray of shape (n_categories,)
    kinds : set of str, default=None
        Kinds of the categories, as in `label_kinds`; None computes them.
    after_fit : bool, default=False
        True for samples passed to a fitted estimator, for which the error message differs.

    Returns
    -------
    ndarray
    """
    if kinds is None:
        kinds = label_kinds(categories)
    other_kind = None
    if kinds:
        other_kind = kind_of_others(values, kinds)
    if other_kind is not None:
        shown = ", ".join(map(repr, categories[:3].tolist()))
        if len(categories) > 3:
            shown += ", ..."
        if after_fit:
            remedy = "convert the samples to the type that the column had in the fit"
        else:
            remedy = (
                "declare categories of the column's type, or convert the column to the type of the "
                "categories"
            )
        text = (
            f"{name} holds {other_kind}, but its categories [{shown}] are "
            f"{' and '.join(sorted(kinds))}, which never equal {other_kind}: {remedy}"
        )
        if not after_fit and has_kind(values, kinds):
            raise HintedError(text + FILL_VALUE_HINT, text)
        raise ValueError(text)
    return values


def check_type_of_labels(labels, name, categories):
    """Raise `ValueError` if the type of a container of labels excludes a declared category.

    Parameters
    ----------
    labels : array-like, Series or list
    name : str
        Name of the labels for messages.
    categories : ndarray of shape (n_categories,)
    """
    for dtype in list(types_of(labels)) or [getattr(labels, "type", None)]:
        if dtype is None:
            continue
        kind = label_kind_of(dtype)
        mismatch = category_of_no_value(kind, listed_number_type_of(dtype), categories)
        if mismatch is not None:
            raise ValueError(_mismatch_message(name, *mismatch))


def _mismatch_message(name, category, kind):
    """Return an error message for a category that no value of a column's type equals."""
    return (
        f"{name} holds {kind} by its type, which never equal its category {category!r}: declare "
        "categories of the column's own type only, or convert the column to text"
    )


def check_distinct_labels(name, float_type, categories, after_fit=False):
    """Raise `ValueError` if two categories are the same number in a shorter floating-point type.

    Parameters
    ----------
    name : str
        Name of the values for messages.
    float_type : dtype
        Type in which numbers are compared, see `rounded_labels`.
    categories : ndarray of shape (n_categories,)
    after_fit : bool, default=False
        True for samples passed to a fitted estimator, for which the error message differs.
    """
    first_index = {}
    for i, key in enumerate(map(label_key, rounded_labels(categories, float_type).tolist())):
        k = first_index.setdefault(key, i)
        if k != i:
            remedy = "convert the samples to float64" if after_fit else "declare only one"
            raise ValueError(
                f"{name} is compared as {float_type}, in which its categories {categories[k]!r} "
                f"and {categories[i]!r} are the same number: {remedy}"
            )


def check_exact_labels(name, categories, after_fit=False):
    """Raise `ValueError` if a category is a number to which other numbers are rounded.

    Integers and decimals in a table that is read in parts become floats. From 2**53 on, different
    integers become the same float, so a row could be counted in another row's category.

    Parameters
    ----------
    name : str
        Name of the values for messages.
    categories : ndarray of shape (n_categories,)
    after_fit : bool, default=False
        True for samples passed to a fitted estimator, for which the error message differs.
    """
    for category in categories.tolist():
        # No number rounds to infinity: numbers beyond double precision are refused elsewhere.
        is_infinite = isinstance(category, float) and math.isinf(category)
        if not is_infinite and kind_without_form(objects([category])) == LARGE_NUMBERS:
            remedy = ""
            if not after_fit:
                remedy = "convert the column and its categories to text, or "
            raise ValueError(
                f"{name} is read in double precision, as its table is read in parts, and its "
                f"category {category!r} is a number of a magnitude of 2**53 or more, to which "
                f"others are rounded: {remedy}load the table into memory (by the compute() of "
                "dask, or the collect() of polars)"
            )


def category_of_no_value(kind, number_type, categories):
    """Return the first category that no value in a column can equal, and the column's kind.

    Parameters
    ----------
    kind : {"numbers", "text", "bytes", None}
        Kind of all values of the column; None if its type does not determine it.
    number_type : dtype or None
        Type of a column of floats, integers or Booleans.
    categories : ndarray
        Declared categories.

    Returns
    -------
    tuple of (label, str) or None
        None if each category may occur as a value. A missing value may always occur.
    """
    for category in categories.tolist():
        key = label_key(category)
        if key is None or key == MISSING_KEY:
            continue
        if kind is not None and label_kinds(objects([category])) != {kind}:
            return category, kind
        is_whole = not isinstance(key, float) or key.is_integer()
        if number_type is not None and number_type.kind in "iu" and not is_whole:
            return category, f"{number_type} values"
        if number_type == np.float64 and not _is_double(key):
            return category, f"{number_type} values"
        # Longer integers are not compared with the type's limits: the columns of a file of small
        # values are often stored in a type that cannot hold all declared categories.
        if number_type is not None and number_type.kind == "b" and key not in (0, 1):
            return category, "Booleans"
    return None


def _is_double(number):
    """Return True if a number is equal to one in double precision."""
    try:
        return float(number) == number
    except OverflowError:
        return False


def check_label_forms(values, name, after_fit=False):
    """Return the values, or raise `ValueError` if a value cannot be found as a category.

    Such a value would not be counted in any category, and the column would silently be lost. Each
    value is checked independently.

    Parameters
    ----------
    values : ndarray
        Values of any type.
    name : str
        Name of the values for messages.
    after_fit : bool, default=False
        True for samples passed to a fitted estimator, for which the error message differs.

    Returns
    -------
    ndarray
    """
    kind = kind_without_form(values)
    if kind is not None and after_fit:
        raise ValueError(
            f"{name} holds {kind}, and the categories that the fit found are text or numbers below "
            "2**53: convert the samples to the type that the column had in the fit"
        )
    if kind is not None:
        hint = ""
        if kind in HINTS:
            hint = f"{HINTS[kind]}; to use it as a label, "
        raise ValueError(
            f"{name} holds {kind}, and only text and numbers below 2**53 can be found as "
            f"categories: {hint}turn each value of the column into text, by "
            "X[column].astype(str) in pandas or str(value) elsewhere"
        )
    return values


def _check_both(values, name, first, second):
    """Run two checks of `ColumnTable.check`, and return the values of the second."""
    first(values, name)
    return second(values, name)


def check_numbers(values, name):
    """Return values as finite numbers, or raise `ValueError` or `TypeError`."""
    numbers = as_numbers(values, name)
    check_finite(numbers, name)
    return numbers


def check_labels(values, name):
    """Return the values, or raise `ValueError` if a value is NaN, None or infinite."""
    check_not_infinite(values, name, allow_nan=False)
    if values.dtype.kind in "OmM" and any(map(is_missing, values)):
        raise ValueError(
            f"{name} contains NaN or None: replace missing values by a separate category, with "
            "DPSimpleImputer(strategy='constant')"
        )
    return values


def check_not_infinite(values, name, *, allow_nan=True):
    """Return the values, or raise `ValueError` if a value is infinite."""
    if values.dtype.kind == "f":
        check_finite(values, name, allow_nan=allow_nan)
    return values


def _read_block(read, numeric, time_types, float_types, X, rows):
    """Return a block of `ColumnTable.rows`; X is a `ColumnTable` or a partition of a matrix."""
    if not isinstance(X, ColumnTable):
        # Decode the rows once for all columns.
        block = X[rows]
        X = ColumnTable(
            block.shape, block, numeric=numeric, time_types=time_types, float_types=float_types
        )
        rows = slice(0, len(block))
    return read(X, rows=rows)


def _select(table, rows, columns):
    return [table.labels(j, rows) for j in columns]


def _check_block(total, columns, checks):
    """Check a block of columns; `total` is not changed."""
    messages = []
    for values, (check, name) in zip(columns, checks, strict=True):
        try:
            check(values, name)
        except ValueError as error:
            messages.append(str(error))
    if messages:
        raise ValueError(join_messages(messages))


def _read_only(total, columns):
    """Do nothing: the purpose is to read the block, which happens before this call."""


def _codes(columns, categories, others):
    return np.column_stack([*map(category_codes, columns, categories, others)])


def _add_labels(counts, columns, row_weights, categories, others):
    """Add the weights of a block's rows to the totals of their categories, in place.

    `counts` has the totals of all columns, one column after another. See `label_counts`.
    """
    totals = split_by_column(counts, categories)
    for total, values, labels, other in zip(totals, columns, categories, others, strict=True):
        inverse = slice(None)
        if values.dtype.kind in "biuf":
            # Looking up a few distinct numbers is faster than looking up all values.
            values, inverse = np.unique(values, return_inverse=True)
        codes = category_codes(values, labels, other)[inverse]
        is_counted = codes >= 0
        weights = slice_row_args(row_weights, is_counted)
        total += weighted_bincount(codes[is_counted], weights, len(total))


def split_by_column(values, columns):
    """Split an array of concatenated values into one array per column, by the columns' lengths."""
    return np.split(values, np.cumsum([len(column) for column in columns])[:-1])


def read_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table with numeric and categorical columns, each cell independently.

    Values are checked later, with `ColumnTable.check`.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
    reset : bool, default=True
        True to set `n_features_in_` and `feature_names_in_`, False to compare with them.
    allow_nan : bool, default=False
        True if values of a partitioned table of numbers may be missing. Other tables are not
        checked here.

    Returns
    -------
    ColumnTable
        The table. Values are not copied, and are converted when they are read.

    Raises
    ------
    ValueError
        As scikit-learn's `validate_data`, without its checks of values.
    """
    check_names_differ(X)
    chunked = as_chunked(X)
    if chunked is not None:
        X = chunked
    elif is_frame(X):
        X = in_memory(X)
    elif not hasattr(X, "dtype"):
        X = as_cells(X) if is_sequence(X) else np.asarray(X)
    check_not_masked(X)
    table = _read_columns(estimator, X, reset, allow_nan)
    _check_zones_of_values(table, check_zones(estimator, X, reset))
    return table


def float_types_of(X):
    """Return a dict from each column with a floating-point type below 8 bytes to that type.

    Parameters
    ----------
    X : array, DataFrame or ChunkedArray of shape (n_samples, n_features)
    """
    meta = meta_of(X)
    types = map_types(float_type_of, types_of(meta))
    if not is_frame(meta):
        types = types * X.shape[1]
    return {j: dtype for j, dtype in enumerate(types) if dtype is not None}


def rounded_columns_of(chunked):
    """Return the columns of 8-byte integers or decimals that are read in double precision.

    Parameters
    ----------
    chunked : ChunkedArray of shape (n_samples, n_features)

    Returns
    -------
    list of int
    """
    meta = meta_of(chunked)
    if not is_frame(meta) or chunked.dtype.kind in "iu":
        return []
    label_kinds = map_types(label_kind_of, types_of(meta))
    number_types = map_types(number_type_of, types_of(meta))
    columns = []
    for j, (kind, number_type) in enumerate(zip(label_kinds, number_types, strict=True)):
        # Decimals have no NumPy type.
        is_wide = number_type is None or (number_type.kind in "iu" and number_type.itemsize == 8)
        if kind == "numbers" and is_wide:
            columns.append(j)
    return columns


def _float_types(estimator, X, reset):
    """Return `ColumnTable.float_types`: the shorter of each column's types in the fit and in X.

    The types of a fit are stored. A model that was fitted to float32 gives the same answers for the
    same table in float64, and vice versa.
    """
    # The blocks of a partitioned table have one common type, not the type of each column.
    X_types = float_types_of(X) | getattr(estimator, "_float_types_of_samples", {})
    if reset:
        X_types = X_types | _declared_float_types(estimator, X)
        estimator._float_types_in = {j: dtype.name for j, dtype in X_types.items()}
        return X_types
    fit_types = getattr(estimator, "_float_types_in", {})
    float_types = dict(X_types)
    for j, name in fit_types.items():
        dtype = np.dtype(name)
        if j not in X_types or dtype.itemsize < X_types[j].itemsize:
            float_types[j] = dtype
    return float_types


def _declared_float_types(estimator, X):
    """Return the columns of floats whose declared categories are of a shorter type, and this type.

    The double 0.1 is not equal to the float32 0.1, so these columns would have no declared category
    at all. Both are the same number of the shorter type.

    Parameters
    ----------
    estimator : estimator
        After its names of columns were read.
    X : array, DataFrame or ChunkedArray of shape (n_samples, n_features)

    Returns
    -------
    dict of column to dtype

    Raises
    ------
    ValueError
        As `check_no_half_floats`.
    """
    meta = meta_of(X)
    types = map_types(listed_number_type_of, types_of(meta))
    are_untyped = map_types(holds_any_number, types_of(meta))
    if not is_frame(meta):
        types = types * X.shape[1]
        are_untyped = are_untyped * X.shape[1]
    categories = getattr(estimator, "categories", None)
    has_floats = any(dtype is not None and dtype.kind == "f" for dtype in types)
    if not (has_floats or any(are_untyped)) or is_auto(categories):
        return {}
    try:
        entries = category_entries(categories, names_for_keys(estimator), X.shape[1])
    except (TypeError, ValueError):
        # The plan of the fit raises the error.
        return {}
    float_types = {}
    for j, (dtype, labels) in enumerate(zip(types, entries, strict=True)):
        float_type = float_type_of_labels(labels)
        if are_untyped[j]:
            check_no_half_floats(column_name(j, names_for_keys(estimator)), float_type)
        if is_shorter(float_type, dtype):
            float_types[j] = float_type
    return float_types


def holds_any_number(dtype):
    """Return True if the cells of a column may be numbers of several types: objects or decimals."""
    kind = kind_of(dtype)
    return kind == "object" or (kind == "number" and listed_number_type_of(dtype) is None)


def check_no_half_floats(name, float_type):
    """Raise `ValueError` if the declared categories of an untyped column are float16 numbers.

    The type of its cells is not public, and a cell of another type could be lost. Single precision
    is no such case, see `short_float_twins`.

    Parameters
    ----------
    name : str
        Name of the column for messages.
    float_type : dtype or None
        As in `float_type_of_labels`.
    """
    if float_type == np.float16:
        raise ValueError(
            f"{name} contains objects or decimals, and its declared categories are numbers of type "
            f"{float_type}, which differ from Python's floats: declare Python's floats, or convert "
            f"the column to {float_type}"
        )


def is_shorter(float_type, number_type):
    """Return True if a column has floats of a wider type than `float_type_of_labels`."""
    if float_type is None or number_type is None or number_type.kind != "f":
        return False
    return float_type.itemsize < number_type.itemsize


def float_type_of_labels(labels):
    """Return the floating-point type of less than 8 bytes of declared labels, or None.

    None if all of them are the same numbers in double precision, as 0.5 is and 0.1 is not.

    Parameters
    ----------
    labels : sequence of labels, "auto" or None
    """
    if labels is None or isinstance(labels, str) or not has_length(labels):
        return None
    listed = list(types_of(labels)) or [getattr(labels, "type", None)]
    types = [float_type_of(dtype) for dtype in listed if dtype is not None]
    types += [label.dtype for label in labels if isinstance(label, np.floating)]
    types = [dtype for dtype in types if dtype is not None and dtype.itemsize < 8]
    if not types:
        return None
    float_type = min(types, key=lambda dtype: dtype.itemsize)
    numbers = np.asarray([label for label in labels if isinstance(label, Real)], dtype=np.float64)
    if np.array_equal(rounded_labels(numbers, float_type), numbers, equal_nan=True):
        return None
    return float_type


def check_zones(estimator, X, reset=False):
    """Raise `ValueError` if a date column has a time zone only in the fit or only in the samples.

    A date with a time zone is an instant. A date without a zone is read as if its zone were UTC, so
    samples without a zone would silently be off by hours from the rows of the fit.

    Parameters
    ----------
    estimator : estimator
    X : array, DataFrame or ChunkedArray of shape (n_samples, n_features)
    reset : bool, default=False
        True to store which columns of dates have a time zone, False to compare with them.

    Returns
    -------
    dict of column to bool
        For each column whose type in X does not show whether its dates have a time zone, True if
        they had one in the fit. Their values have to be checked with `_check_zones_of_values`.
    """
    meta = meta_of(X)
    if is_frame(meta):
        flags = map_types(has_time_zone, types_of(meta))
    else:
        # NumPy's dates have no time zone.
        flags = [False if meta.dtype.kind == "M" else None] * X.shape[1]
    zones = {j: has_zone for j, has_zone in enumerate(flags) if has_zone is not None}
    if reset:
        estimator._zones_in = zones
        return {}
    fit_zones = getattr(estimator, "_zones_in", {})
    names = None
    if is_frame(meta):
        names = names_of(meta)
    messages = []
    for j, has_zone in zones.items():
        if fit_zones.get(j, has_zone) != has_zone:
            kind = f"dates {ZONES[has_zone]} a time zone"
            messages.append(_zone_message(column_name(j, names), kind, not has_zone))
    if messages:
        raise ValueError(join_messages(messages))
    return {j: had_zone for j, had_zone in fit_zones.items() if flags[j] is None}


def _check_zones_of_values(table, zones):
    """Raise `ValueError` if dates in an object column differ from the fit in having a time zone.

    Each value is checked independently.

    Parameters
    ----------
    table : ColumnTable
    zones : dict of column to bool
        Columns to check; True if the dates of the fit had a time zone.
    """
    if zones:
        checks = [
            (partial(_check_zone_of_values, had_zone=had_zone), table.name(j))
            for j, had_zone in zones.items()
        ]
        sum_over(table.select(list(zones)), _check_block, np.zeros(1), checks)


def _check_zone_of_values(values, name, had_zone):
    """Raise `ValueError` if dates have a time zone but had none in the fit, or vice versa."""
    kind = kind_of_zone(values, not had_zone)
    if kind is not None:
        raise ValueError(_zone_message(name, kind, had_zone))


def _zone_message(name, kind, had_zone):
    """Return an error message for dates whose time zone differs from that in the fit."""
    return (
        f"{name} contains {kind}, and the dates of the fit were {ZONES[had_zone]} a time zone: "
        "convert the samples, by tz_localize or tz_convert(None) in pandas, "
        "dt.replace_time_zone in polars, or datetime.replace(tzinfo=...) in Python"
    )


def _read_chunked_columns(estimator, X, reset, allow_nan):
    """Return the `ColumnTable` of a partitioned table, for `read_columns`.

    Numbers are checked in one pass; objects are checked later, by `ColumnTable.check`.
    """
    if X.dtype.kind != "O":
        chunked, large = read_chunks(estimator, X, reset=reset, allow_nan=allow_nan)
        meta = meta_of(X)
        names = number_types = None
        if is_frame(meta):
            names = names_of(meta)
            number_types = map_types(listed_number_type_of, types_of(meta))
        return ColumnTable(
            chunked.shape,
            chunked,
            names=names,
            number_types=number_types,
            has_large_numbers=large,
            float_types=_float_types(estimator, X, reset),
            after_fit=not reset,
            rounded_columns=rounded_columns_of(X),
        )
    meta = validate_meta(estimator, X, reset=reset)
    float_types = _float_types(estimator, X, reset)
    if not is_frame(meta):
        return ColumnTable(X.shape, X, float_types=float_types, after_fit=not reset)
    return ColumnTable(
        X.shape,
        X,
        numeric=frame_columns(meta)[1],
        time_types=map_types(time_type_of, types_of(meta)),
        names=names_of(meta),
        label_kinds=map_types(label_kind_of, types_of(meta)),
        number_types=map_types(listed_number_type_of, types_of(meta)),
        float_types=float_types,
        after_fit=not reset,
        rounded_columns=rounded_columns_of(X),
    )


def _read_columns(estimator, X, reset, allow_nan):
    """Return the `ColumnTable` of a table, for `read_columns`, which then checks its time zones."""
    if isinstance(X, ChunkedArray):
        return _read_chunked_columns(estimator, X, reset, allow_nan)
    if is_frame(X):
        validate_data(estimator, with_plain_names(X), reset=reset, skip_check_array=True)
        if not reset:
            check_labels_match(estimator, X)
        blocks = frame_blocks(X)
        columns, numeric = columns_in_blocks(blocks)
        shape = (len(X), len(columns))
        # This raises scikit-learn's error for a table without rows or columns.
        check_array(np.broadcast_to(0.0, shape), estimator=estimator)
        return ColumnTable(
            shape,
            columns=columns,
            numeric=numeric,
            names=names_of(X),
            label_kinds=map_types(label_kind_of, types_of(X)),
            number_types=map_types(listed_number_type_of, types_of(X)),
            blocks=blocks,
            float_types=_float_types(estimator, X, reset),
            after_fit=not reset,
        )
    matrix = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    # A block of a partitioned table does not show its columns' types.
    label_kinds = None if reset else getattr(estimator, "_label_kinds_of_samples", None)
    return ColumnTable(
        matrix.shape,
        matrix,
        label_kinds=label_kinds,
        float_types=_float_types(estimator, X, reset),
        after_fit=not reset,
        rounded_columns=getattr(estimator, "_rounded_columns_of_samples", ()),
    )


def read_numeric_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table of numbers, as `read_table` does, and return it as a `ColumnTable`."""
    chunked = as_chunked(X)
    if chunked is not None:
        chunked, large = read_chunks(estimator, chunked, reset=reset, allow_nan=allow_nan)
        return ColumnTable(chunked.shape, chunked, has_large_numbers=large)
    matrix = read_table(estimator, X, reset=reset, allow_nan=allow_nan)
    return ColumnTable(matrix.shape, matrix)


# Types of pairs of plain numbers.
PAIRS_OF_NUMBERS = frozenset(product((int, float), repeat=2))


def declared_bounds(bounds, shape, columns=None):
    """Return (low, high) of some columns; NaN for bounds that are found privately.

    All columns of these estimators are numeric. For tables that may also have categorical columns,
    `declared_columns` in `skdp.stats._column_cells` reads `bounds` and `categories` together.

    Parameters
    ----------
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
    shape : TableShape
        Shape of the table; keys of a dict may be its column names.
    columns : ndarray of int, default=None
        Columns whose bounds are needed; other columns need no entry. None takes all.

    Returns
    -------
    tuple of ndarray of shape (n_columns,), float64

    Raises
    ------
    ValueError
        If `bounds` is invalid, has a key that is not a column, or lacks a column, or if a column
        with declared bounds contains dates or durations.
    """
    has_all_columns = columns is None
    if has_all_columns:
        columns = np.arange(shape.n_columns)
    if is_auto(bounds):
        return np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    _check_word(bounds, "bounds")
    if not isinstance(bounds, Mapping):
        check_no_times(shape, columns, "bounds", bounds)
        if has_all_columns:
            if type(bounds) is tuple and tuple(map(type, bounds)) in PAIRS_OF_NUMBERS:
                # The text distinguishes -0.0 from 0.0, which are equal.
                low, high = _bounds_of_all(bounds, shape.n_columns, text=repr(bounds))
            else:
                low, high = check_bounds(bounds, shape.n_columns)
            return low.copy(), high.copy()
        # Bounds of other columns need not be far enough apart.
        ends = broadcast_bounds(bounds, shape.n_columns)
        return check_bounds([end[columns] for end in ends], len(columns))
    low, high = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    messages = []
    for i, entry in enumerate(all_declared(bounds, shape, "bounds", columns)):
        if is_auto(entry):
            continue
        try:
            _check_word(entry, f"{column_name(columns[i], shape.names)}: bounds")
            check_no_times(shape, [columns[i]], "bounds", entry)
        except ValueError as error:
            messages.append(str(error))
            continue
        try:
            (low[i],), (high[i],) = check_bounds(entry, 1)
        except ValueError as error:
            messages.append(f"{column_name(columns[i], shape.names)}: {error}")
    if messages:
        raise ValueError(join_messages(messages))
    return low, high


# Cached, as every fit of a fold, a search or an audit reads the same bounds.
@lru_cache(maxsize=256)
def _bounds_of_all(bounds, n_columns, text):
    """Return (low, high) of columns with the same pair of bounds, as read-only arrays.

    `text` is part of the key of the cache.
    """
    return check_bounds(bounds, n_columns)


def _check_word(bounds, name):
    """Raise `ValueError` for bounds that are a string; the only valid string is "auto"."""
    if isinstance(bounds, str):
        raise ValueError(f'{name} must be (low, high) or "auto", got {bounds!r}')


def check_no_times(shape, columns, parameter, declared):
    """Raise `ValueError` if a column with declared numbers holds dates or durations.

    Read as numbers, they are counts of the unit of the column's type, such as microseconds, and lie
    outside any bounds that a person would write. The fit would then be charged in full and learn
    nothing.

    Parameters
    ----------
    shape : TableShape
    columns : sequence of int
        Columns for which numbers are declared.
    parameter : {"bounds", "edges"}
    declared : object
        The declaration, for the message.
    """
    if shape.kinds is None:
        return
    messages = []
    for j in columns:
        kind = shape.kinds[j]
        if kind in ("date", "duration"):
            messages.append(
                f"{column_name(j, shape.names)}: {parameter} of {kind}s must be {kind}s, and this "
                f"estimator reads numbers only, got {declared!r}: use DPTableVectorizer, whose "
                f"bounds may be {kind}s, or convert the column to numbers first, such as days: "
                f"{DAYS_OF[kind]}"
            )
    if messages:
        raise ValueError(join_messages(messages))


def all_declared(value, shape, parameter, columns):
    """Return the entries of some columns in a dict; raise `ValueError` if an entry is missing."""
    entries = column_entries(value, shape.names, shape.n_columns, parameter)
    names = shape.names
    if names is None:
        names = range(shape.n_columns)
    missing = [names[j] for j in columns if entries[j] is None]
    if missing:
        raise ValueError(f"{parameter} has no entry for the columns {missing}")
    return [entries[j] for j in columns]


def column_entries(value, names, n_features, parameter):
    """Return a parameter's entry for each column, or None for a column without an entry.

    Parameters
    ----------
    value : dict of column to entry, sequence of n_features entries, or None
        Keys are column names, if the table has names, or positions. If the names are not
        strings, keys must be names.
    names : ndarray of str, list or None
        Names of `names_for_keys`.
    n_features : int
    parameter : str
        Name of the parameter for messages.

    Returns
    -------
    list of length n_features

    Raises
    ------
    ValueError
        If a key is not a column, if two keys mean the same column, or if a sequence has a different
        length.
    """
    if value is None:
        return [None] * n_features
    if not isinstance(value, Mapping):
        if len(value) != n_features:
            raise ValueError(
                f"{parameter} has {count_of(len(value), 'entry', 'entries')}, X has "
                f"{count_of(n_features, 'column')}"
            )
        return list(value)
    positions = {}
    if names is not None:
        positions = {name: j for j, name in enumerate(names)}
    # None represents a column whose name is unknown.
    only_labels = any(not isinstance(name, str | None) for name in positions)
    entries = [None] * n_features
    unknown = []
    for key, entry in value.items():
        j = positions.get(key, None if only_labels else key)
        is_position = isinstance(j, int | np.integer) and not isinstance(j, bool)
        if not is_position or not 0 <= j < n_features:
            unknown.append(label_text(key))
        elif entries[j] is not None:
            raise ValueError(f"{parameter} names {column_name(j, names)} twice")
        else:
            entries[j] = entry
    if unknown:
        raise ValueError(f"{parameter}: X has no column {' and no column '.join(unknown)}")
    return entries


def category_entries(categories, names, n_features):
    """Return one list of categories per column, with None for numeric columns."""
    if isinstance(categories, str | bytes) or not (categories is None or has_length(categories)):
        raise ValueError(
            "categories must be a dict of columns, one list per column (None if numeric) or "
            f"one flat list for every column, got {categories!r}"
        )
    return flat_or_column_entries(categories, type(None), names, n_features, "categories")


def has_length(value):
    """Return True for a sequence, an array or a mapping, False for a single value."""
    return hasattr(value, "__len__") and getattr(value, "shape", None) != ()


def flat_or_column_entries(value, entry_types, names, n_features, description):
    """Return a parameter's entry for each column; a flat list is the entry of every column.

    A list with an entry of the types `entry_types` is not flat.
    """
    if isinstance(value, Mapping | None) or not len(value):
        return column_entries(value, names, n_features, description)
    if all(np.ndim(item) == 0 and not isinstance(item, entry_types) for item in value):
        return [value] * n_features
    return column_entries(value, names, n_features, description)
