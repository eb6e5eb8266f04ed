"""A table's columns, as numbers in a range or labels; cells: of terms, exact counts, packed."""

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import chain
from numbers import Real

import numpy as np
from scipy.sparse import csr_array

from skdp._data._columns import column_entries, names_for_keys
from skdp._data._containers import as_numbers
from skdp._data._histogram import Bins, find_bins
from skdp._data._parts import Rows, block_size, cut, map_over, row_blocks, sum_over
from skdp._data._persons import counts_of, no_counts, times_shares
from skdp._data._refusals import TYPED, check_finite, column_name, in_one
from skdp.gam._bins import level_counts
from skdp.mechanisms._randomized_response import categories_array
from skdp.preprocessing._binning import category_entries
from skdp.preprocessing._categories import check_served, declared_places, is_per_column
from skdp.utils import ChunkedArray
from skdp.utils._labels import category_codes, is_missing, kind_without_form
from skdp.utils._sources import rows_within
from skdp.utils._validation import check_bounds, check_not_pairs, is_auto
from skdp.utils._values import FrozenValue

BOOLEAN = np.array([False, True])
# No column gets more categories than this: the most frequent ones.
LARGEST_LIST = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Column(FrozenValue):
    """What is known of one column before its cells are counted.

    Parameters
    ----------
    kind : {"number", "date", "duration", "label"}
        Durations count days, dates those from 1970 on.
    known : ndarray, tuple of (float, float) or None
        The categories of labels, the bounds of all else; None where they have to be found.
    """

    kind: str
    known: object = None

    @property
    def is_label(self):
        return self.kind == "label"

    def most_cells(self, of_numbers):
        """Return how many cells there can be, where numbers get so many."""
        if not self.is_label:
            return of_numbers
        return 2 + (LARGEST_LIST if self.known is None else len(self.known))

    def numbers(self, values):
        """Return values as doubles, NaN where one is missing."""
        return as_numbers(values) if self.kind == "number" else _days(values)

    def check(self, values, name):
        """Return values, or the numbers that they are, unless the kind is another: `ValueError`."""
        if self.is_label:
            return values
        try:
            numbers = self.numbers(values)
        except Exception:
            # "auto" is advised only where it can find the column's values.
            kind = kind_without_form(values)
            message = f"{name} holds values that are no {self.kind}s: declare its categories, "
            if kind in TYPED and values.dtype.kind == "O":
                message = (
                    f"{name} holds {kind} in a column of objects: {TYPED[kind]}; to use it as a "
                    "label, turn each value into text, by X[column].astype(str) in pandas"
                )
            elif kind is None:
                message += "or give categories={column: 'auto'} to find them"
            else:
                message += "or turn each value into text, by X[column].astype(str) in pandas"
            raise ValueError(message) from None
        check_finite(numbers, name, allow_nan=True)
        return numbers if self.kind == "number" else values

    def cells(self, values, edges):
        """Return the cell of each value; the last one is of what is missing.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
        edges : ndarray
            Of numbers, values outside are in the outermost cells. Of labels the categories; the
            cell after theirs is of what is not among them.

        Returns
        -------
        ndarray of shape (n_rows,), dtype int64
        """
        if not self.is_label:
            return _cells_of_numbers(self.numbers(values)[:, None], Bins([edges]))[:, 0]
        other = len(edges)
        cells = category_codes(values, edges, other)
        if values.dtype.kind in "OfmMT":
            for i in np.flatnonzero(cells == other):
                cells[i] += is_missing(values[i])
        return cells


def n_cells(kind, edges):
    """Return how many cells a column has, that of missing values included."""
    return len(edges) + 2 * (kind == "label")


def declared_columns(kinds, bounds, categories, names):
    """Return a `Column` for each column, from its container's kind and from what is declared.

    Parameters
    ----------
    kinds : list of str
        Of `skdp._data._kinds.container_kinds`.
    bounds, categories
        As the estimators take them.
    names : ndarray of str or None

    Raises
    ------
    ValueError
        If they contradict one another or the table's shape.
    """
    if is_auto(categories):
        categories = None
    # "auto" beside lists of labels is no label.
    is_flat = isinstance(categories, Mapping | None) or not is_per_column(categories)
    read = category_entries if is_flat else partial(column_entries, what="categories")
    labels = read(categories, names, len(kinds))
    limits = _bound_entries(bounds, names, len(kinds))
    bounded = _named_in(bounds, names, len(kinds))
    columns = []
    categorical = []
    refused = []
    for j, (kind, own, limit) in enumerate(zip(kinds, labels, limits, strict=True)):
        if own is None and kind == "boolean":
            column = Column(kind="label", known=BOOLEAN)
        elif own is not None or kind == "label" or (kind == "object" and j not in bounded):
            column = Column(kind="label")
        else:
            column = Column(kind=kind if kind in ("date", "duration") else "number")
        if limit is not None and isinstance(bounds, Mapping) and column.is_label:
            categorical.append(column_name(j, names))
        try:
            if column.is_label and not (own is None or is_auto(own)):
                column = replace(column, known=categories_array(own))
            if limit is not None and not column.is_label:
                column = replace(column, known=_checked_bounds(column, limit))
        except ValueError as error:
            refused.append(f"{column_name(j, names)}: {error}")
        columns.append(column)
    if categorical:
        refused.append(
            f"bounds: {', '.join(categorical)} is categorical, by its type or by categories: leave "
            "the column out of bounds, or give it a type of numbers or dates, as pd.to_numeric and "
            "pd.to_datetime do in pandas"
        )
    if refused:
        raise ValueError(in_one(refused))
    return columns


def check_labels_served(model, table, labels):
    """Raise `ValueError` if samples hold labels of other kinds than a model's categories.

    Parameters
    ----------
    model : estimator
        With the parameter `categories`.
    table : ColumnTable
    labels : dict of column to ndarray
        The model's categories, declared or found.
    """
    names = names_for_keys(model)
    declared = set(declared_places(model.categories, names, model.n_features_in_))
    # Found categories are never booleans: these are known by the column's type.
    declared |= {j for j, own in labels.items() if own.dtype == bool}
    check_served(table, labels, declared)


def _named_in(bounds, names, n_features):
    """Return the columns that have bounds, or "auto", of their own."""
    if not isinstance(bounds, Mapping):
        return ()
    entries = column_entries(bounds, names, n_features, "bounds")
    return [j for j, entry in enumerate(entries) if entry is not None]


def _bound_entries(bounds, names, n_features):
    if is_auto(bounds):
        return [None] * n_features
    if isinstance(bounds, Mapping):
        entries = column_entries(bounds, names, n_features, "bounds")
        return [None if each is None or is_auto(each) else each for each in entries]
    check_not_pairs(bounds, n_features)
    try:
        low, high = (np.broadcast_to(np.asarray(end), (n_features,)) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            "bounds must be 'auto', (low, high), numbers or arrays of length n_features, or a "
            f"dict of columns, got {bounds!r}"
        ) from None
    return list(zip(low, high, strict=True))


def _checked_bounds(column, limit):
    if column.kind != "number":
        try:
            # numpy would take a number for microseconds since 1970: all dates are beyond it.
            if not all(_is_bound_of(column.kind, end) for end in limit):
                raise TypeError
            limit = _days(np.array([*limit], dtype=object))
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds of {column.kind}s must be {column.kind}s, got {limit!r}"
            ) from None
    for kind, words in (("date", "dates"), ("duration", "durations")):
        if column.kind == "number" and any(_is_time(end, kind) for end in limit):
            raise ValueError(f"bounds are {words}, but the column's type is not: {TYPED[words]}")
    return tuple(end.item() for end in check_bounds(limit, 1))


def _is_bound_of(kind, end):
    """Say whether a bound is of the kind of a column of dates or of durations."""
    is_duration = isinstance(end, np.timedelta64 | datetime.timedelta)
    return is_duration if kind == "duration" else not (is_duration or isinstance(end, Real))


def _is_time(end, kind):
    """Return True if a bound of a column of numbers is a date, or a duration."""
    times = {
        "date": (np.datetime64, datetime.date),
        "duration": (np.timedelta64, datetime.timedelta),
    }
    return isinstance(end, times[kind])


def _days(values):
    """Return dates, or durations, in days."""
    if values.dtype.kind not in "mM":
        values = np.array([_as_date(value) for value in values], dtype="M8[us]")
    short = values.astype(f"{values.dtype.kind}8[us]")
    days = short.astype(np.int64) / 86_400e6
    days[np.isnat(short)] = np.nan
    return days


def _as_date(value):
    if is_missing(value):
        return np.datetime64("NaT")
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        return np.datetime64(0, "us") + np.timedelta64(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


BLOCK_ROWS = 1 << 15
# Memory for the cells of a block of samples that are answered.
SERVED_BYTES = 1 << 25
# Those of a step of an exact gradient, and how many are added in a run.
STEP_ROWS = 1 << 17
STEP_BLOCKS = 2
# A pack has at most so many cells; where there are many rows a cell to so many of them, as far as
# a code of two bytes reaches.
LARGEST_PACK = 1 << 12
ROWS_A_CELL = 64
LARGEST_CODE = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Term(FrozenValue):
    """The cells of one column, or of two together.

    Parameters
    ----------
    features : tuple of int
        The columns' positions in the table.
    kinds : tuple of {"number", "date", "duration", "label"}
    edges : tuple of ndarray
        One a column: the edges of its bins, or its categories.
    counts : ndarray, default=None
        Noisy, of all cells; None before they are counted.
    """

    features: tuple
    kinds: tuple
    edges: tuple
    counts: np.ndarray = None

    @property
    def shape(self):
        return self.counts.shape


# In the middle cells are about sinh of it times as wide as at the ends, where they are not equal.
WARP = 4.0


def finest_edges(column, n_cells, *, even):
    """Return the edges of a number's finest cells, or a label's categories.

    Cells are equal, or (not `even`) the narrower, the nearer they are to an end of the range.
    """
    if column.is_label:
        return column.known
    if even:
        return np.linspace(*column.known, n_cells + 1)
    (low, high), places = column.known, np.linspace(-1.0, 1.0, n_cells + 1)
    places = np.sign(places) * (1.0 - np.sinh(WARP * (1.0 - np.abs(places))) / np.sinh(WARP))
    return low * (0.5 - 0.5 * places) + high * (0.5 + 0.5 * places)


def cells_of(table, terms):
    """Return the cells of terms, as `Rows` whose blocks have a line of cells for each term."""
    rows = min(BLOCK_ROWS // 4, block_size(len(terms)))
    return table.rows(cell_reader(terms), len(terms)).sized(rows)


def cell_reader(terms, *, checks=False):
    """Return a function that finds the cells of terms in some rows of a table.

    Parameters
    ----------
    terms : list of Term
    checks : bool, default=False
        Whether it raises `ValueError` where a column holds what its kind does not, as the rows of
        a fit were checked before.

    Returns
    -------
    callable
        Of a `ColumnTable` and a slice of its rows. It returns an ndarray of shape (n_terms,
        n_rows), dtype int64.
    """
    # A place in the table, a kind, and edges or categories, for each column of each term.
    parts = [*chain.from_iterable(zip(t.features, t.kinds, t.edges, strict=True) for t in terms)]
    of_numbers = [k for k, (_, kind, _) in enumerate(parts) if kind == "number"]
    bins = Bins([parts[k][2] for k in of_numbers]) if of_numbers else None
    return partial(_read_cells, terms, parts, of_numbers, bins, checks)


def served_blocks(table, n_terms):
    """Yield the slices of samples whose cells are read at a time."""
    return row_blocks(table, min(BLOCK_ROWS, rows_within(SERVED_BYTES, n_terms)))


def _read_cells(terms, parts, of_numbers, bins, checks, table, rows):
    cells = np.empty((len(parts), rows.stop - rows.start), dtype=np.int64)
    if of_numbers:
        numbers = _read_numbers(table, [parts[k][0] for k in of_numbers], rows, checks)
        cells[of_numbers] = _cells_of_numbers(numbers, bins).T
    columns = {kind: Column(kind=kind) for kind in {kind for _, kind, _ in parts}}
    for k in sorted(set(range(len(parts))).difference(of_numbers)):
        j, kind, edges = parts[k]
        values = table.values(j, rows)
        # The kinds of labels were checked before: those of all columns together.
        if checks and kind != "label":
            columns[kind].check(values, table.name(j))
        cells[k] = columns[kind].cells(values, edges)
    if len(parts) == len(terms):
        return cells
    of_terms = np.empty((len(terms), cells.shape[1]), dtype=np.int64)
    first = 0
    for k, term in enumerate(terms):
        last = first + len(term.features)
        of_terms[k] = cells[first]
        if last - first > 1:
            sizes = [n_cells(*own) for own in zip(term.kinds, term.edges, strict=True)]
            of_terms[k] = np.ravel_multi_index(tuple(cells[first:last]), sizes)
        first = last
    return of_terms


def _read_numbers(table, places, rows, checks):
    """Return columns of numbers, or raise `ValueError` that names the first that has others."""
    try:
        numbers = table.numeric(places, rows)
        if not checks or not np.isinf(numbers).any():
            return numbers
    except (TypeError, ValueError):
        if not checks:
            raise
    column = Column(kind="number")
    checked = [column.check(table.values(j, rows), table.name(j)) for j in places]
    return np.column_stack(checked)


def _cells_of_numbers(values, bins):
    return np.where(np.isnan(values), bins.sizes - 2, find_bins(values, bins))


def exact_counts(terms, table, shares=None, codes=None, n_classes=1, coarsest=1):
    """Return the counts of each column's cells, of numbers at levels; missing values last.

    They are of shape (n_classes, n_counts); `codes` are the classes of the rows.
    """
    sizes = [n_classes * n_cells(term.kinds[0], term.edges[0]) for term in terms]
    ends = np.cumsum(sizes)
    counts = no_counts(sum(sizes), shares)
    sum_over(cells_of(table, terms), _add_counts, counts, ends, n_classes, along=(shares, codes))
    counts = [own.reshape(n_classes, -1) for own in np.split(counts, ends[:-1])]
    return [
        own if "label" in term.kinds else np.apply_along_axis(_at_levels, -1, own, coarsest)
        for term, own in zip(terms, counts, strict=True)
    ]


def _add_counts(counts, cells, shares, codes, ends, n_classes):
    for own, total in zip(cells, np.split(counts, ends[:-1]), strict=True):
        if codes is not None:
            own = own + len(total) // n_classes * codes.astype(np.intp)
        total += counts_of(own, shares, len(total))


def _at_levels(counts, coarsest):
    return np.append(level_counts(counts[:-1], coarsest), counts[-1])


class PackedCells(Rows):
    """The cells of rows, several columns in one number, held where the rows are.

    A block is the same of its rows.

    Parameters
    ----------
    rows : Rows
        Which the cells are found of.
    cells : callable
        A function of a module: of a block, and `small`, the cells of each column.
    *small : objects
    sizes : list of int
        How many cells each column has.
    n_units : int
        The public number of rows, or of persons. How columns are packed says how scores are
        rounded, those of all rows.
    targets : ndarray of shape (n_rows,)
    shares : ndarray of shape (n_rows,), default=None
        By which residuals count; None for ones.

    Attributes
    ----------
    codes : ndarray of shape (n_rows, n_packs)
        The packed cells.
    marks : csr_array of shape (n_rows, n_packed_cells)
        Of a block, ones in the packed cells of each row, those of one pack after another.
    ends : ndarray of shape (n_packs,)
        Where those of each pack end, if they stand one pack after another.
    """

    of_chunks = False

    def __init__(self, rows, cells, *small, sizes, n_units, targets, shares=None):
        super().__init__(rows.X)
        self.n_units, largest = n_units, largest_pack(n_units)
        packs = [[]]
        for j, size in enumerate(sizes):
            if packs[-1] and size * math.prod(sizes[k] for k in packs[-1]) > largest:
                packs.append([])
            packs[-1].append(j)
        self.sizes, self._packs, self._size = sizes, packs, _rows_of(len(packs), BLOCK_ROWS)
        self._shapes = [tuple(sizes[j] for j in pack) for pack in packs]
        lengths = [math.prod(shape) for shape in self._shapes]
        self.ends = np.cumsum(lengths)
        made = {"shape": (len(packs),), "dtype": np.min_scalar_type(max(lengths) - 1), "held": True}
        codes = map_over(rows, _packed_codes, packs, self._shapes, cells, *small, **made)
        self.along = codes, targets, shares
        if isinstance(rows.X, ChunkedArray):
            # It is not read again.
            rows.X.forget()

    @property
    def targets(self):
        return self.along[1]

    @property
    def shares(self):
        return self.along[2]

    @property
    def codes(self):
        return self.along[0]

    def __getitem__(self, rows):
        block = self.with_rows(None, cut(self.along, rows))
        block.marks = marked(block.codes, self.ends)
        return block

    def with_rows(self, X, along):
        """Return the cells of a part, or of a block, by what goes with its rows alone."""
        return self._changed(X=None, along=along, borders=(0, len(along[0]) if along else 0))

    def in_steps(self, n_outputs):
        """Return the same in fewer blocks: in shorter steps threads wait for each other."""
        return self.sized(_rows_of(max(len(self.ends), 8 * n_outputs), STEP_ROWS), STEP_BLOCKS)

    def columns(self):
        """Return the cells of all columns."""
        parts = zip(self.codes.T, self._shapes, strict=True)
        return np.concatenate([np.unravel_index(codes, shape) for codes, shape in parts])

    def packed(self, tables):
        """Return the values of packed cells, sums of those of each column's cells.

        Returns
        -------
        ndarray of shape (n_packed_cells, n_outputs)
        """
        result = []
        for pack in self._packs:
            of_outputs = zip(*(tables[j].T for j in pack), strict=True)
            sums = [reduce(np.add.outer, own).ravel() for own in of_outputs]
            result.append(np.stack(sums, axis=1))
        return np.concatenate(result)

    def steps(self, residuals, step):
        """Return residuals in whole steps, towards zero.

        So no row's norm grows; nor does a person's, whose shares leave room for the rounding of a
        product wherever one is rounded.
        """
        steps = np.trunc(residuals / step)
        return steps if self.shares is None else np.trunc(times_shares(steps, self.shares))

    def unpacked(self, totals):
        """Return the sums of each column's cells, one after another, from those of packed cells."""
        sums = []
        totals = np.split(totals, self.ends[:-1])
        for total, shape in zip(totals, self._shapes, strict=True):
            cube = total.reshape(*shape, -1)
            for axis in range(len(shape)):
                sums.append(cube.sum(axis=tuple(k for k in range(len(shape)) if k != axis)))
        return np.concatenate(sums)


def _rows_of(n_packs, most):
    """Return how many rows a block has: as many as of eight packs, and fewer of more."""
    return max(8 * most // max(n_packs, 8), 1)


def largest_pack(n_units):
    """Return how many packed cells there are at most: their sums must not take longer than rows."""
    return min(max(n_units // 4, 64), max(LARGEST_PACK, min(n_units // ROWS_A_CELL, LARGEST_CODE)))


def marked(cells, ends):
    """Return a matrix of ones in the cells of each row, whose products are sums of cells.

    Threads compute them at the same time, which they do not by `numpy.bincount`.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_tables)
    ends : ndarray of shape (n_tables,)
        Where each table's cells end, if they stand one behind another.

    Returns
    -------
    csr_array of shape (n_rows, n_cells)
    """
    n, k = cells.shape
    ones, starts, pointers = _of_marks(1 << (n - 1).bit_length(), (0, *ends[:-1]))
    places = np.add(cells.ravel(), starts[: n * k], dtype=np.int32, casting="same_kind")
    return csr_array((ones[: n * k], places, pointers[: n + 1]), shape=(n, ends[-1]))


@lru_cache(maxsize=2)
def _of_marks(n_rows, starts):
    """Return what is the same in all matrices of so many rows, or fewer."""
    size = n_rows * len(starts)
    k = len(starts)
    starts = np.tile(np.array(starts, dtype=np.int32), n_rows)
    same = np.ones(size), starts, np.arange(0, size + 1, k, dtype=np.int32)
    for each in same:
        each.setflags(write=False)
    return same


def _packed_codes(block, packs, shapes, cells, *small):
    own = cells(block, *small)
    found = zip(packs, shapes, strict=True)
    codes = [np.ravel_multi_index([own[j] for j in pack], shape) for pack, shape in found]
    return np.stack(codes, axis=1)
