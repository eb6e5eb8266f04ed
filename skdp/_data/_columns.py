"""Tables of numeric and of categorical columns, read block by block."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skdp._data._containers import as_cells, as_numbers, is_sequence
from skdp._data._parts import Rows, cut, map_over, sum_over
from skdp._data._persons import count_over, counts_of
from skdp._data._refusals import TYPED, check_finite, column_name, in_one
from skdp._data._tables import check_chunks, read_form, read_table
from skdp.utils._chunked import ChunkedArray, as_chunked
from skdp.utils._frames import (
    NUMBERS,
    TIMES,
    check_names_differ,
    columns_in_blocks,
    frame_blocks,
    frame_columns,
    in_memory,
    is_frame,
    label_kind_of,
    names_of,
    number_type_of,
    objects,
    of_each_type,
    types_of,
)
from skdp.utils._labels import (
    ARRAY_KINDS,
    NOTHING,
    category_codes,
    is_missing,
    kind_of_others,
    kind_without_form,
    label_key,
    label_kinds,
)
from skdp.utils._validation import broadcast_bounds, check_bounds, code_type, is_auto


class ColumnTable:
    """The columns of a table, converted when a block of them is read.

    Parameters
    ----------
    shape : tuple of (int, int)
    matrix : ndarray or ChunkedArray, default=None
        All columns.
        None where they have no common array.
    columns : list of ndarray of shape (n_rows,), default=None
        The columns one by one, where `matrix` is None.
    numeric : list of bool, default=None
        Whether each column's declared type is one of numbers; None asks the type of `matrix`.
    names : list, default=None
        Of the columns.
    label_kinds : list of {"numbers", "text", "bytes", None}, default=None
        Of each column the kind of its values, as labels, where its declared type says it; None
        asks the type of `matrix`.
    number_types : list of dtype or None, default=None
        Of each column numpy's type of its floats or integers, None of another type; None asks the
        type of `matrix`.
    blocks : list of FrameBlock, default=()
        The same columns as `columns`, where several of one type stand together.
    has_large_numbers : ndarray of shape (n_columns,), bool, default=None
        Of a table of numbers in partitions the columns that hold numbers too large to be found as
        categories, from the pass that checked them.
    """

    def __init__(
        self,
        shape,
        matrix=None,
        columns=None,
        numeric=None,
        names=None,
        label_kinds=None,
        number_types=None,
        blocks=(),
        has_large_numbers=None,
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
        self.borders = getattr(matrix, "borders", (0, shape[0]))
        if numeric is None:
            numeric = [matrix is None or matrix.dtype.kind in "biuf"] * shape[1]
        self.numeric_types = numeric
        if label_kinds is None:
            kind = None if matrix is None else matrix.dtype.kind
            # Dates may be discovered as labels of another kind.
            label_kinds = [None if kind in (None, *TIMES) else ARRAY_KINDS.get(kind)] * shape[1]
        self._label_kinds = label_kinds
        if number_types is None:
            number_types = [None if matrix is None else number_type_of(matrix.dtype)] * shape[1]
        self._number_types = number_types
        self._has_large_numbers = has_large_numbers
        # Tables of numbers in partitions were read when they were checked to be finite.
        self._has_unread_rows = isinstance(matrix, ChunkedArray) and matrix.dtype.kind == "O"

    def name(self, j):
        """Return what a column is called in errors."""
        return column_name(j, self._names)

    def label(self, j):
        """Return the name of a column, None where the table has no names."""
        return None if self._names is None else self._names[j]

    def column(self, j):
        """Return the raw values of a column, as `Rows`."""
        return self.rows(partial(ColumnTable.values, column=j), 1)

    def whole_column(self, j):
        """Return all raw values of a column; those of a table in parts are read."""
        if isinstance(self.matrix, ChunkedArray):
            return self.column(j).whole()
        return self.values(j, slice(0, self.shape[0]))

    def several(self, columns):
        """Return the raw values of some columns, as `Rows`: a block is a list of arrays."""
        return self.rows(partial(_several, columns=columns), len(columns))

    def numbers(self, columns=None):
        """Return some columns, or all, in double precision, as `Rows`."""
        columns = np.arange(self.shape[1]) if columns is None else columns
        return self.rows(partial(ColumnTable.numeric, columns=columns), len(columns))

    def rows(self, read, n_columns):
        """Return as `Rows` what a function of a module makes of such a table and a slice `rows`."""
        parts = self if self.matrix is None else self.matrix
        return Rows(parts, read=partial(_read_part, read, self.numeric_types), n_columns=n_columns)

    def codes(self, columns, categories, others):
        """Return the codes of the values of some columns, as `category_codes` does, in one pass."""
        form = {"shape": (len(columns),), "dtype": code_type(max(categories, key=len))}
        return map_over(self.several(columns), _codes, categories, others, **form)

    def label_counts(self, columns, categories, others, row_weights=None):
        """Return how often each category occurs in some columns, in one pass.

        Parameters
        ----------
        columns : sequence of int
        categories : list of ndarray
            Of each.
        others : list of int
            The place in these of what is not among them.
        row_weights : ndarray of shape (n_rows,), default=None
            What the rows count; None for ones.

        Returns
        -------
        list of ndarray
        """
        rows = self.several(columns)
        n_labels = sum(map(len, categories))
        counts = count_over(
            rows, _add_labels, n_labels, categories, others, row_weights=row_weights
        )
        return split_by_column(counts, categories)

    def numeric(self, columns, rows):
        """Return some columns of a slice of rows in double precision; it may be a view.

        Parameters
        ----------
        columns : ndarray of int
        rows : slice

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            What overflows is infinite.
        """
        with np.errstate(all="ignore"):
            columns = np.asarray(columns, dtype=np.intp)
            if self.matrix is None:
                return self._numeric_columns(columns, rows)
            block = self.matrix[rows]
            whole = np.array_equal(columns, np.arange(self.shape[1]))
            return as_numbers(block if whole else block[:, columns])

    def _numeric_columns(self, columns, rows):
        """Return columns of a frame in double precision, those of a block together."""
        numbers = np.empty((len(range(*rows.indices(self.shape[0]))), len(columns)))
        is_read = np.zeros(len(columns), dtype=bool)
        for block in self._number_blocks:
            places = np.full(self.shape[1], -1)
            places[block.columns] = np.arange(len(block.columns))
            places = places[columns]
            is_in_block = places >= 0
            numbers[:, is_in_block] = as_numbers(block.values[rows][:, places[is_in_block]])
            is_read |= is_in_block
        for k in np.flatnonzero(~is_read):
            numbers[:, k] = as_numbers(self._columns[columns[k]][rows])
        return numbers

    def values(self, column, rows):
        """Return the raw values of a column's slice of rows, an array of any type."""
        if self.matrix is None:
            return self._columns[column][rows]
        cells = self.matrix[rows][:, column]
        is_numeric = cells.dtype.kind == "O" and self.numeric_types[column]
        return cells.astype(np.float64) if is_numeric else cells

    def check(self, checks, labels=None, found=(), expected=None):
        """Raise `ValueError` if columns hold what they must not, in one pass over the rows.

        Columns of objects in memory are replaced by what the checks return: asked for its number
        again, a cell could give another one, or raise after the charge.

        Parameters
        ----------
        checks : dict of column to callable
            Functions of modules, of the raw values of some rows and of what the column is called.
            They raise, or return the values, or the numbers that these are.
        labels : dict of column to ndarray, default=None
            The categories that are declared for columns; see `check_label_kinds`.
        found : collection of int, default=()
            The columns whose categories are to be found, or were; see `check_label_forms`.
        expected : dict of column to ndarray, default=None
            The categories of which each must be one that the column's type can hold.
        """
        self._check_types(labels or {}, expected or {})
        of_kinds = {} if labels is None else self._checks_of_kinds(labels)
        for j in self._with_doubtful_forms(found):
            if j in of_kinds:
                of_kinds[j] = partial(_check_in_turn, own=check_label_forms, of_kind=of_kinds[j])
            else:
                of_kinds[j] = check_label_forms
        if isinstance(self.matrix, ChunkedArray) and self.matrix.dtype.kind != "O":
            # Numbers were checked when the table was read.
            checks = of_kinds
        else:
            checks = checks | {
                j: partial(_check_in_turn, own=checks[j], of_kind=check) if j in checks else check
                for j, check in of_kinds.items()
            }
        if isinstance(self.matrix, ChunkedArray):
            left = dict(checks)
        else:
            if self.matrix is not None and self.matrix.dtype.kind == "O":
                self._columns = list(self.matrix.T)
                self.matrix = None
            held = [j for j in checks if self.matrix is None and self._columns[j].dtype.kind == "O"]
            refused = []
            for j in held:
                try:
                    self._columns[j] = checks[j](self._columns[j], self.name(j))
                except ValueError as error:
                    refused.append(str(error))
            if refused:
                raise ValueError(in_one(refused))
            left = {j: check for j, check in checks.items() if j not in held}
        if left:
            named = [(check, self.name(j)) for j, check in left.items()]
            sum_over(self.several(list(left)), _check_block, np.zeros(1), named)
            self._has_unread_rows = False

    def check_readable(self):
        """Raise if some rows cannot be read, in one pass that is left out where one was made.

        A table in partitions is read when its rows are needed. A file that is damaged, or a task of
        dask that fails, must raise before the charge.
        """
        if self._has_unread_rows:
            sum_over(self.several(range(self.shape[1])), _read_only, np.zeros(1))
            self._has_unread_rows = False

    def _check_types(self, labels, expected):
        """Raise `ValueError` if a declared category can equal no value, by the columns' types."""
        refused = []
        for j, categories in labels.items():
            number_type = self._number_types[j]
            if number_type is not None:
                try:
                    check_not_rounded(number_type, self.name(j), categories)
                except ValueError as error:
                    refused.append(str(error))
        for j, categories in expected.items():
            held = category_of_no_value(self._label_kinds[j], self._number_types[j], categories)
            if held is not None:
                category, kind = held
                refused.append(
                    f"{self.name(j)} holds {kind} by its type, which never equal its category "
                    f"{category!r}: declare categories of the column's own type only, or convert "
                    "the column to text"
                )
        if refused:
            raise ValueError(in_one(refused))

    def _checks_of_kinds(self, labels):
        """Return a check of the values' kinds for each column that can hold values of others."""
        checks = {}
        for j, categories in labels.items():
            kinds = label_kinds(categories)
            # Nothing to check of a list without labels, nor of a column all of whose values are of
            # an allowed kind by its type.
            if kinds and self._label_kinds[j] not in kinds:
                checks[j] = partial(check_label_kinds, categories=categories, kinds=kinds)
        return checks

    def _with_doubtful_forms(self, columns):
        """Return those of some columns that may hold values of which no category can be found."""
        if self._has_large_numbers is not None:
            # The partitions need not be read again.
            return [j for j in columns if self._has_large_numbers[j]]
        return columns

    def kind_is_public(self, column):
        """Return whether the column's type alone says what kind of labels its values are."""
        return self._label_kinds[column] is not None


def check_readable(rows):
    """Raise if some rows of what a fit has read, with a target or without, cannot be read."""
    table = getattr(rows, "X", rows)
    if isinstance(table, ColumnTable):
        table.check_readable()


def check_label_kinds(values, name, categories, kinds=None):
    """Return values, unless one is of a kind that none of the categories is of: `ValueError`.

    Such a value can equal no category, whatever it is: ``"1"`` is not 1. A table that has them
    where the categories are declared is one whose declaration is wrong, and all its rows would
    count as undeclared. Each value is judged by itself.

    Parameters
    ----------
    values : ndarray
        Of any type.
    name : str
        What they are called in errors.
    categories : ndarray of shape (n_categories,)
    kinds : set of str, default=None
        Those of `label_kinds`, where they are known.

    Returns
    -------
    ndarray
    """
    kinds = label_kinds(categories) if kinds is None else kinds
    found = kind_of_others(values, kinds) if kinds else None
    if found is not None:
        shown = ", ".join(map(repr, categories[:3].tolist())) + ", ..." * (len(categories) > 3)
        raise ValueError(
            f"{name} holds {found}, but its categories [{shown}] are {' and '.join(sorted(kinds))}"
            f", which never equal {found}: declare categories of the column's own type, or convert "
            "each value of the column to the type of the categories"
        )
    check_not_rounded(values.dtype, name, categories)
    return values


def check_not_rounded(dtype, name, categories):
    """Raise `ValueError` if a floating point type rounds one of the categories."""
    rounded = category_rounded_by(dtype, categories)
    if rounded is not None:
        raise ValueError(
            f"{name} holds {dtype} values, which never equal its category {rounded!r}: declare "
            f"categories that are {dtype} values, such as {float(dtype.type(rounded))!r}, or turn "
            "each value of the column into text"
        )


def category_rounded_by(dtype, categories):
    """Return the first category that no number of a floating point type equals, or None."""
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return None
    for category in categories.tolist():
        key = label_key(category)
        # What is missing equals nothing, and is declared by itself.
        if isinstance(key, int | float):
            with np.errstate(over="ignore"):
                if float(dtype.type(key)) != key:
                    return category
    return None


def category_of_no_value(kind, number_type, categories):
    """Return the first category that no value of a column equals by its type, and what it holds.

    Parameters
    ----------
    kind : {"numbers", "text", "bytes", None}
        The kind of all values of the column; None if its type does not say it.
    number_type : dtype or None
        Of a column of floats or integers.
    categories : ndarray
        Declared.

    Returns
    -------
    tuple of (label, str) or None
        None if each of them may be a value. What is missing may be one.
    """
    for category in categories.tolist():
        key = label_key(category)
        if key is None or key == NOTHING:
            continue
        if kind is not None and label_kinds(objects([category])) != {kind}:
            return category, kind
        is_whole = not isinstance(key, float) or key.is_integer()
        if number_type is not None and number_type.kind in "iu" and not is_whole:
            return category, f"{number_type} values"
    return None


def check_label_forms(values, name):
    """Return values, unless one is of a kind that no category can be found of: `ValueError`.

    Such a value would count as no category, and the column would be lost without a word. Each
    value is judged by itself.

    Parameters
    ----------
    values : ndarray
        Of any type.
    name : str
        What they are called in errors.

    Returns
    -------
    ndarray
    """
    kind = kind_without_form(values)
    if kind is not None:
        typed = f"{TYPED[kind]}; to use it as a label, " if kind in TYPED else ""
        raise ValueError(
            f"{name} holds {kind}, and categories are found of text and of numbers below 2**53 "
            f"only: {typed}turn each value of the column into text, by X[column].astype(str) in "
            "pandas or str(value) elsewhere"
        )
    return values


def _check_in_turn(values, name, own, of_kind):
    of_kind(values, name)
    return own(values, name)


def check_numbers(values, name):
    """Return values as finite numbers, or raise `ValueError`."""
    numbers = as_numbers(values, name)
    check_finite(numbers, name)
    return numbers


def check_labels(values, name):
    """Return values, unless one is NaN, None or an infinite float: `ValueError`."""
    check_not_infinite(values, name, allow_nan=False)
    if values.dtype.kind in "OmM" and any(map(is_missing, values)):
        raise ValueError(
            f"{name} contains NaN or None; give missing values a category of their own, by "
            "DPSimpleImputer(strategy='constant')"
        )
    return values


def check_not_infinite(values, name, *, allow_nan=True):
    """Return values, unless they are floats of which one is infinite: `ValueError`."""
    if values.dtype.kind == "f":
        check_finite(values, name, allow_nan=allow_nan)
    return values


def _read_part(read, numeric, X, rows):
    if not isinstance(X, ColumnTable):
        # Column by column, rows would be decoded anew for each.
        block = X[rows]
        X = ColumnTable(block.shape, block, numeric=numeric)
        rows = slice(0, len(block))
    return read(X, rows=rows)


def _several(table, rows, columns):
    return [table.values(j, rows) for j in columns]


def _check_block(total, columns, checks):
    refused = []
    for values, (check, name) in zip(columns, checks, strict=True):
        try:
            check(values, name)
        except ValueError as error:
            refused.append(str(error))
    if refused:
        raise ValueError(in_one(refused))


def _read_only(total, columns):
    """Do nothing with a block, which was read before it came here."""


def _codes(columns, categories, others):
    return np.column_stack([*map(category_codes, columns, categories, others)])


def _add_labels(counts, columns, row_weights, categories, others):
    totals = split_by_column(counts, categories)
    for total, values, labels, other in zip(totals, columns, categories, others, strict=True):
        places = slice(None)
        if values.dtype.kind in "biuf":
            values, places = np.unique(values, return_inverse=True)
        codes = category_codes(values, labels, other)[places]
        known = codes >= 0
        total += counts_of(codes[known], cut(row_weights, known), len(total))


def split_by_column(values, columns):
    """Return the parts of values that stand one behind another, as many as each column has."""
    return np.split(values, np.cumsum([len(own) for own in columns])[:-1])


def read_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table some of whose columns may be categorical, each cell by itself.

    Cells are checked by `ColumnTable.check`.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    allow_nan : bool, default=False
        Whether values may be missing in a table of numbers that is read in parts; in others
        nothing is said.

    Returns
    -------
    ColumnTable
        Nothing is copied where no conversion is needed, and what needs one is converted when
        it is read.

    Raises
    ------
    ValueError
        If scikit-learn would raise it.
    """
    check_names_differ(X)
    chunked = as_chunked(X)
    if chunked is not None:
        if chunked.dtype.kind != "O":
            return read_numeric_columns(estimator, chunked, reset=reset, allow_nan=allow_nan)
        form = read_form(estimator, chunked, reset=reset)
        known = {}
        if is_frame(form):
            known = {
                "numeric": frame_columns(form)[1],
                "names": names_of(form),
                "label_kinds": of_each_type(label_kind_of, types_of(form)),
                "number_types": of_each_type(number_type_of, types_of(form)),
            }
        return ColumnTable(chunked.shape, chunked, **known)
    if is_frame(X):
        X = in_memory(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        blocks = frame_blocks(X)
        columns, numeric = columns_in_blocks(blocks)
        shape = (len(X), len(columns))
        # It raises as scikit-learn does where there is no row or no column.
        check_array(np.broadcast_to(0.0, shape), estimator=estimator)
        return ColumnTable(
            shape,
            columns=columns,
            numeric=numeric,
            names=names_of(X),
            label_kinds=of_each_type(label_kind_of, types_of(X)),
            number_types=of_each_type(number_type_of, types_of(X)),
            blocks=blocks,
        )
    if not hasattr(X, "dtype"):
        X = as_cells(X) if is_sequence(X) else np.asarray(X)
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    return ColumnTable(X.shape, X)


def read_numeric_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table of numbers as `read_table` does, as a `ColumnTable`."""
    chunked = as_chunked(X)
    if chunked is not None:
        read_form(estimator, chunked, reset=reset)
        large = check_chunks(chunked, allow_nan=allow_nan)
        return ColumnTable(chunked.shape, chunked, has_large_numbers=large)
    matrix = read_table(estimator, X, reset=reset, allow_nan=allow_nan)
    return ColumnTable(matrix.shape, matrix)


def declared_bounds(bounds, shape, columns=None):
    """Return (low, high) of some columns, NaN for those whose bounds are to be found.

    Parameters
    ----------
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
    shape : TableShape
        Whose names a dict may use.
    columns : ndarray of int, default=None
        The ones whose bounds are needed; others need no entry. None takes all.

    Returns
    -------
    tuple of ndarray of shape (n_columns,), float64

    Raises
    ------
    ValueError
        If they are not as described, or name no column of the table.
    """
    columns = np.arange(shape.n_columns) if columns is None else columns
    if is_auto(bounds):
        return np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    if not isinstance(bounds, Mapping):
        ends = broadcast_bounds(bounds, shape.n_columns)
        return check_bounds([end[columns] for end in ends], len(columns))
    low, high = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    refused = []
    for i, entry in enumerate(all_declared(bounds, shape, "bounds", columns)):
        if is_auto(entry):
            continue
        try:
            (low[i],), (high[i],) = check_bounds(entry, 1)
        except ValueError as error:
            refused.append(f"{column_name(columns[i], shape.names)}: {error}")
    if refused:
        raise ValueError(in_one(refused))
    return low, high


def all_declared(value, shape, what, columns):
    """Return the entries of some columns in a dict, or raise `ValueError` where one has none."""
    entries = column_entries(value, shape.names, shape.n_columns, what)
    names = range(shape.n_columns) if shape.names is None else shape.names
    missing = [names[j] for j in columns if entries[j] is None]
    if missing:
        raise ValueError(f"{what}: columns {missing} have none")
    return [entries[j] for j in columns]


def labels_apart(X):
    """Return the labels of a frame's columns if they are no strings and no positions, or None.

    scikit-learn keeps names that are strings only. A dict of columns must not take the labels
    1, 2, 3 of a frame whose column 0 was dropped for positions.
    """
    if not is_frame(X):
        return None
    names = names_of(X)
    if any(isinstance(name, str) for name in names) or names == [*range(len(names))]:
        return None
    return names


def names_for_keys(estimator):
    """Return the names by which parameters call the columns of a fitted table, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return getattr(estimator, "_labels_in", None) if names is None else names


def column_entries(value, names, n_features, what):
    """Return a parameter's entry for each column, None where it has none.

    Parameters
    ----------
    value : dict of column to entry, sequence of n_features entries, or None
        Columns are named by their position or, where the table has names, by their name. Where
        names are no strings, these alone count.
    names : ndarray of str, list or None
        Those of `names_for_keys`.
    n_features : int
    what : str
        The parameter's name, for errors.

    Returns
    -------
    list of length n_features

    Raises
    ------
    ValueError
        If a column does not exist, is named twice, or the length is another.
    """
    if value is None:
        return [None] * n_features
    if not isinstance(value, Mapping):
        if len(value) != n_features:
            raise ValueError(f"{what} has {len(value)} entries, X has {n_features} columns")
        return list(value)
    positions = {name: j for j, name in enumerate(names)} if names is not None else {}
    # None stands for a column whose name is not known.
    only_labels = any(not isinstance(name, str | None) for name in positions)
    entries = [None] * n_features
    for key, entry in value.items():
        j = positions.get(key, None if only_labels else key)
        is_position = isinstance(j, int | np.integer) and not isinstance(j, bool)
        if not is_position or not 0 <= j < n_features:
            raise ValueError(f"{what}: X has no column {key!r}")
        if entries[j] is not None:
            raise ValueError(f"{what} names column {j} twice")
        entries[j] = entry
    return entries
