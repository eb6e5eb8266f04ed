"""Numeric and categorical columns as `bounds` and `categories` declare them, and their cells.

A cell is a bin of a numeric column, a category, or one of two further cells: other values
(categorical columns only), and missing values (always last).
"""

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from skdp._data._columns import category_entries, column_entries
from skdp._data._containers import as_numbers
from skdp._data._dyadic import level_counts
from skdp._data._errors import HINTS, check_finite, column_name, join_messages
from skdp._data._histogram import Bins, find_bins
from skdp._data._labels import category_codes, is_missing, kind_without_form
from skdp._data._parts import block_size, row_blocks, sum_over
from skdp._data._persons import weighted_bincount, zero_counts
from skdp._data._sources import rows_within
from skdp._data._tables import names_for_keys
from skdp.mechanisms._randomized_response import categories_array
from skdp.stats._categories import check_served, declared_places, is_per_column
from skdp.utils._validation import check_bounds, check_has_order, check_not_pairs, is_auto
from skdp.utils._values import FrozenValue

# Text of dates: a year, a month, a day or a time of day.
DATE_TEXT = re.compile(
    r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?)?", flags=re.ASCII
)
DATE_TEXT_HINT = "dates that are text are written as '2020-12-31' or '2020-12-31T23:59:59'"
# Maximum distance of a date from 1970: 290,000 years. 64 bits can represent 292,000.
MAX_MICROSECONDS = 290_000 * 365 * 86_400 * 10**6
# Units of NumPy's dates that are longer than a microsecond.
COARSE_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms")
BOOLEAN = np.array([False, True])
# Maximum number of found categories per column; only the most frequent ones are used.
MAX_CATEGORIES = 1000
# If widths are not equal, the inner finest cells are about sinh(WARP) / WARP times as wide as the
# outermost ones.
WARP = 4.0
# Up to this magnitude, the edges midway between integers are exact doubles.
MAX_CELL_INTEGER = 1 << 50
# In a bin around 0 with at least this many cells, each cell is narrower than its neighbor by this
# factor towards 0. With 32 cells, the narrowest one is 2,500 times narrower than the bin.
CELL_RATIO_AT_ZERO = 1.3
MIN_CELLS_AT_ZERO = 8
# Number of rows per block when cells are counted.
BLOCK_ROWS = 1 << 15
# Memory in bytes for the cells of a block of samples in `predict`.
PREDICT_BYTES = 1 << 25


@dataclass(frozen=True, kw_only=True, eq=False)
class Column(FrozenValue):
    """Kind and domain of one column, before its cells are counted.

    Parameters
    ----------
    kind : {"number", "date", "duration", "label"}
        "label" is a categorical column. Durations are counted in days, dates in days since 1970.
    domain : ndarray, tuple of (float, float) or None
        Categories of a categorical column, or bounds of any other column; None if they have to be
        found.
    """

    kind: str
    domain: object = None

    @property
    def is_categorical(self):
        return self.kind == "label"

    def max_cells(self, n_numeric_cells):
        """Return the maximum number of cells, which is `n_numeric_cells` for a numeric column."""
        if not self.is_categorical:
            return n_numeric_cells
        if self.domain is None:
            return 2 + MAX_CATEGORIES
        return 2 + len(self.domain)

    def numbers(self, values):
        """Return values as doubles, with NaN for missing values."""
        if self.kind != "number":
            _check_time_cells(values, self.kind)
            return _days(values)
        times = (np.datetime64, np.timedelta64)
        if values.dtype.kind == "O":
            has_times = any(issubclass(cls, times) for cls in set(map(type, values.tolist())))
            if has_times and not all(map(is_missing, [v for v in values if isinstance(v, times)])):
                raise TypeError("dates and durations are not numbers")
        elif values.dtype.kind in "mM":
            if not np.isnat(values).all():
                raise TypeError("dates and durations are not numbers")
            return np.full(values.shape, np.nan)
        return as_numbers(values)

    def check(self, values, name, after_fit=False):
        """Return values, as numbers if the column is numeric.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
        name : str
            Name of the column for messages.
        after_fit : bool, default=False
            True for samples passed to a fitted estimator, for which the error message differs.

        Raises
        ------
        ValueError
            If values are not of the column's kind.
        """
        if self.is_categorical:
            return values
        try:
            numbers = self.numbers(values)
        except Exception:
            raise self._kind_error(values, name, after_fit) from None
        check_finite(numbers, name, allow_nan=True)
        if self.kind == "number":
            return numbers
        return values

    def _kind_error(self, values, name, after_fit):
        """Return the error for values that are not of the column's kind."""
        text_hint = ""
        if self.kind == "date":
            text_hint = f"; {DATE_TEXT_HINT}"
        if after_fit:
            return ValueError(
                f"{name} contains values that are not {self.kind}s, unlike in the fit: convert the "
                f"samples to {self.kind}s, in the same way as the rows of the fit{text_hint}"
            )
        found_kind = kind_without_form(values)
        as_text = "convert its values to text, e.g. with X[column].astype(str) in pandas"
        if found_kind in HINTS and values.dtype.kind == "O":
            return ValueError(
                f"{name} contains {found_kind} with dtype object: {HINTS[found_kind]}. To use it "
                f"as a categorical column, {as_text}."
            )
        message = f"{name} contains values that are not {self.kind}s. Declare its categories, or "
        # "auto" is suggested only if it can find the column's categories.
        if found_kind is None:
            return ValueError(message + "find them with categories={column: 'auto'}.")
        return ValueError(message + as_text + ".")

    def cells(self, values, edges):
        """Return the cell of each value; the last cell is for missing values.

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
        edges : ndarray
            Edges of a numeric column, whose outermost cells also contain the values outside the
            edges. Or categories of a categorical column; the cell after them contains all other
            values.

        Returns
        -------
        ndarray of shape (n_rows,), dtype int64
        """
        if not self.is_categorical:
            return _numeric_cells(self.numbers(values)[:, None], Bins([edges]))[:, 0]
        other = len(edges)
        cells = category_codes(values, edges, other)
        if values.dtype.kind in "OfmMT":
            for i in np.flatnonzero(cells == other):
                cells[i] += is_missing(values[i])
        return cells


def n_cells(kind, edges):
    """Return the number of cells of a column, including that of missing values."""
    return len(edges) + 2 * (kind == "label")


def declared_columns(kinds, bounds, categories, names):
    """Return one `Column` per column, from its dtype and the declared bounds and categories.

    Where all columns are numeric, `declared_bounds` in `skdp._data._columns` reads the bounds.

    Parameters
    ----------
    kinds : list of str or None
        Kinds of the columns, from `skdp._data._kinds.container_kinds`. A column of unknown kind
        (None) contains dates or durations if its bounds are of this kind.
    bounds, categories
        Parameters of the estimator.
    names : ndarray of str or None
        Names of the columns.

    Raises
    ------
    ValueError
        If the arguments contradict one another or the table's shape.
    """
    if is_auto(categories):
        categories = None
    # In a list with one list per column, "auto" is not a category but the entry of a column.
    if isinstance(categories, Mapping | None) or not is_per_column(categories):
        labels = category_entries(categories, names, len(kinds))
    else:
        labels = column_entries(categories, names, len(kinds), parameter="categories")
    bound_entries = _bound_entries(bounds, names, len(kinds))
    named_in_bounds = _named_in(bounds, names, len(kinds))
    columns = []
    categorical_with_bounds = []
    problems = []
    entries = zip(kinds, labels, bound_entries, strict=True)
    for j, (kind, column_labels, column_bounds) in enumerate(entries):
        is_object_label = kind == "object" and j not in named_in_bounds
        if column_labels is None and kind == "boolean":
            column = Column(kind="label", domain=BOOLEAN)
        elif column_labels is not None or kind == "label" or is_object_label:
            column = Column(kind="label")
        else:
            if kind is None and column_bounds is not None:
                kind = _kind_of_bounds(column_bounds)
            if kind not in ("date", "duration"):
                kind = "number"
            column = Column(kind=kind)
        has_bounds = column_bounds is not None
        if has_bounds and isinstance(bounds, Mapping) and column.is_categorical:
            categorical_with_bounds.append(column_name(j, names))
        try:
            if column.is_categorical and not (column_labels is None or is_auto(column_labels)):
                column = replace(column, domain=categories_array(column_labels))
            if has_bounds and not column.is_categorical:
                column = replace(column, domain=_checked_bounds(column, column_bounds))
        except ValueError as error:
            problems.append(f"{column_name(j, names)}: {error}")
        columns.append(column)
    if categorical_with_bounds:
        problems.append(
            f"bounds: {', '.join(categorical_with_bounds)} is categorical, by its type or by "
            "categories: leave the column out of bounds, or give it a type of numbers or dates, as "
            "pd.to_numeric and pd.to_datetime do in pandas"
        )
    if problems:
        raise ValueError(join_messages(problems))
    return columns


def check_labels_served(model, table, labels):
    """Raise `ValueError` if samples contain labels whose kind no category of a model has.

    Parameters
    ----------
    model : estimator
        Estimator with the parameter `categories`.
    table : ColumnTable
        Samples.
    labels : dict of column to ndarray
        The model's categories, declared or found.
    """
    names = names_for_keys(model)
    declared = set(declared_places(model.categories, names, model.n_features_in_))
    # Found categories are never booleans. Boolean columns are recognized by their dtype.
    declared |= {j for j, categories in labels.items() if categories.dtype == bool}
    check_served(table, labels, declared)


def _named_in(bounds, names, n_features):
    """Return the positions of the columns that are named in a dict of bounds."""
    if not isinstance(bounds, Mapping):
        return ()
    entries = column_entries(bounds, names, n_features, "bounds")
    return [j for j, entry in enumerate(entries) if entry is not None]


def _bound_entries(bounds, names, n_features):
    """Return the declared bounds of each column, or None where they are not declared."""
    if is_auto(bounds):
        return [None] * n_features
    if isinstance(bounds, Mapping):
        entries = column_entries(bounds, names, n_features, "bounds")
        return [None if entry is None or is_auto(entry) else entry for entry in entries]
    check_has_order(bounds, "bounds")
    check_not_pairs(bounds, n_features)
    try:
        if hasattr(bounds, "__array__") and not np.ma.is_masked(bounds):
            # The cells of a column of Arrow are no numbers.
            bounds = np.asarray(bounds)
        low, high = bounds
        if np.ma.is_masked(low) or np.ma.is_masked(high):
            raise TypeError("a bound is masked")
        low, high = (np.broadcast_to(np.asarray(end), (n_features,)) for end in (low, high))
    except (TypeError, ValueError):
        raise ValueError(
            "bounds must be 'auto', (low, high), numbers or arrays of length n_features, or a "
            f"dict of columns, got {bounds!r}"
        ) from None
    return list(zip(low, high, strict=True))


def _kind_of_bounds(bounds):
    """Return the kind of column that the bounds describe: "date", "duration" or "number"."""
    if np.ndim(bounds) == 0:
        # The bounds are not a pair; `_checked_bounds` refuses them.
        return "number"
    if any(isinstance(bound, np.datetime64 | datetime.date) for bound in bounds):
        return "date"
    if any(isinstance(bound, np.timedelta64 | datetime.timedelta) for bound in bounds):
        return "duration"
    return "number"


def _checked_bounds(column, bounds):
    """Return the bounds of a column as a pair of floats, or raise `ValueError`."""
    if np.ndim(bounds) == 0:
        raise ValueError(f"bounds must be a pair (low, high), got {bounds!r}")
    if column.kind == "number":
        if any(isinstance(bound, np.datetime64 | datetime.date) for bound in bounds):
            raise ValueError(f"bounds are dates, but the column's dtype is not: {HINTS['dates']}")
        if any(isinstance(bound, np.timedelta64 | datetime.timedelta) for bound in bounds):
            raise ValueError(
                f"bounds are durations, but the column's dtype is not: {HINTS['durations']}"
            )
    else:
        text_hint = ""
        if column.kind == "date":
            text_hint = f"; {DATE_TEXT_HINT}"
        try:
            # NumPy would read a number as microseconds since 1970, far from any realistic date.
            if not all(_is_bound_of(column.kind, bound) for bound in bounds):
                raise TypeError
            bounds = _days(np.array([*bounds], dtype=object))
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds of {column.kind}s must be {column.kind}s, got {bounds!r}{text_hint}"
            ) from None
    return tuple(bound.item() for bound in check_bounds(bounds, 1))


def _is_bound_of(kind, bound):
    """Return True if a bound has the kind of a column's values: dates or durations."""
    is_duration = isinstance(bound, np.timedelta64 | datetime.timedelta)
    if kind == "duration":
        return is_duration
    return isinstance(bound, np.datetime64 | datetime.date | str)


def _check_time_cells(values, kind):
    """Raise `TypeError` if a value is not a date, or not a duration.

    NumPy would read a number as microseconds since 1970. Text is parsed as a date where possible.
    Each value is checked independently.
    """
    is_duration = kind == "duration"
    if is_duration:
        dtype_kind = "m"
        types = (np.timedelta64, datetime.timedelta)
    else:
        dtype_kind = "M"
        types = (np.datetime64, datetime.date, str)
    if values.dtype.kind in "mM":
        is_valid = values.dtype.kind == dtype_kind
    else:
        is_valid = all(isinstance(value, types) or is_missing(value) for value in values.tolist())
    if not is_valid:
        raise TypeError(f"values are not {kind}s")


def _days(values):
    """Return dates in days since 1970, or durations in days.

    Raises
    ------
    ValueError
        If the text of a date does not match `DATE_TEXT`, or a date does not fit into microseconds.
    """
    if values.dtype.kind not in "mM":
        values = np.array([_as_date(value) for value in values], dtype="M8[us]")
    _check_fits_microseconds(values)
    microseconds = values.astype(f"{values.dtype.kind}8[us]")
    days = microseconds.astype(np.int64) / 86_400e6
    days[np.isnat(microseconds)] = np.nan
    return days


def _as_date(value):
    """Return a bound or a cell as a date in microseconds; a duration is added to 1970-01-01."""
    if is_missing(value):
        return np.datetime64("NaT")
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        return np.datetime64(0, "us") + np.timedelta64(value)
    if isinstance(value, str):
        # NumPy would read "20210105" as a year, and "today" as the day of the call.
        if DATE_TEXT.fullmatch(value) is None:
            raise ValueError(f"{value!r} is not a date of the form 2020-12-31")
        value = str.__str__(value)
    if isinstance(value, np.datetime64):
        _check_fits_microseconds(np.array([value]))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _check_fits_microseconds(times):
    """Raise `ValueError` if a date or duration is too large for a count of microseconds.

    NumPy would return another date without an error.
    """
    unit = np.datetime_data(times.dtype)[0]
    if unit not in COARSE_UNITS:
        return
    # NumPy's conversion of the least integer to a longer unit overflows.
    limits = np.array([-MAX_MICROSECONDS, MAX_MICROSECONDS]).astype(f"{times.dtype.kind}8[us]")
    low, high = limits.astype(f"{times.dtype.kind}8[{unit}]")
    # Comparisons with NaT, which is missing, are False.
    if ((times < low) | (times > high)).any():
        raise ValueError("dates and durations must be within 290,000 years of 1970")


@dataclass(frozen=True, kw_only=True, eq=False)
class TermCells(FrozenValue):
    """The cells of one column, or the joint cells of two or three columns.

    Parameters
    ----------
    features : tuple of int
        Positions of the columns in the table.
    kinds : tuple of {"number", "date", "duration", "label"}
        Kinds of the columns.
    edges : tuple of ndarray
        Edges of the bins, or categories, of each column.
    counts : ndarray, default=None
        Noisy counts of all cells; None before they are counted.
    """

    features: tuple
    kinds: tuple
    edges: tuple
    counts: np.ndarray | None = None

    @property
    def shape(self):
        return self.counts.shape


@dataclass(frozen=True, kw_only=True, eq=False)
class Term(TermCells):
    """A term of an additive model during the fit; see `TermCells` for the other parameters.

    Parameters
    ----------
    bin_starts : ndarray of int, default=None
        The cells at which bins start, for a numeric column whose cells are finer than its bins.
        None if each cell is a bin.
    """

    bin_starts: np.ndarray | None = None

    @property
    def bins(self):
        """Bin of each cell. The cell of missing values is a bin."""
        indices = np.arange(len(self.counts))
        if self.bin_starts is None:
            return indices
        starts = np.append(self.bin_starts, indices[-1])
        return np.searchsorted(starts, indices, side="right") - 1

    def in_bins(self):
        """Return the term whose cells are the bins of this one."""
        if self.bin_starts is None:
            return self
        (edges,) = self.edges
        return replace(
            self,
            edges=(np.append(edges[self.bin_starts], edges[-1]),),
            counts=np.bincount(self.bins, weights=self.counts),
            bin_starts=None,
        )


def finest_edges(column, n_cells, *, equal_width):
    """Return the edges of a numeric column's finest cells, or the categories of a categorical one.

    With `equal_width`, cells have equal widths; otherwise they get narrower towards the ends of the
    range.
    """
    if column.is_categorical:
        return column.domain
    if equal_width:
        return np.linspace(*column.domain, n_cells + 1)
    low, high = column.domain
    grid = np.linspace(-1.0, 1.0, n_cells + 1)
    grid = np.sign(grid) * (1.0 - np.sinh(WARP * (1.0 - np.abs(grid))) / np.sinh(WARP))
    return low * (0.5 - 0.5 * grid) + high * (0.5 + 0.5 * grid)


def integer_edges(domain, max_cells):
    """Return the edges of the finest cells of a column of integers, midway between integers.

    Parameters
    ----------
    domain : tuple of (low, high)
    max_cells : int
        Maximum number of cells, a power of two.

    Returns
    -------
    ndarray or None
        The number of cells is a power of two. Each cell contains 1, 2, 4, 8, ... integers. The last
        cells may be beyond the domain. None if the integers are too large to be distinguished as
        doubles.
    """
    low = math.floor(domain[0])
    n_integers = math.ceil(domain[1]) - low + 1
    if max(abs(low), n_integers) >= MAX_CELL_INTEGER:
        return None
    width = 1
    while -(-n_integers // width) > max_cells:
        width *= 2
    n_cells = 1 << max(1, (-(-n_integers // width) - 1).bit_length())
    return low - 0.5 + width * np.arange(n_cells + 1.0)


def binary_edges(domain, n_cells):
    """Return the edges of cells that start at the lower bound and whose width is a power of two.

    Bins of 2, 4, 8, ... cells then have round edges and contain equally many integers. The last
    cells may be beyond the domain.

    Parameters
    ----------
    domain : tuple of (low, high)
    n_cells : int

    Returns
    -------
    ndarray of shape (n_cells + 1,) or None
        None if the bounds are too close, or too far from each other, for such cells.
    """
    low, high = domain
    with np.errstate(all="ignore"):
        width = 2.0 ** np.ceil(np.log2((high - low) / n_cells))
        edges = low + width * np.arange(n_cells + 1.0)
        is_valid = np.isfinite(edges).all() and (np.diff(edges) == width).all()
    if is_valid and edges[-1] >= high:
        return edges
    return None


def with_finer_bin_at_zero(edges, n_bins, *, is_integer=False):
    """Return the edges of the same number of cells, narrower near 0 within the bin around 0.

    Values of skewed columns, such as amounts of money, are mostly near 0. The edges of the bins do
    not change, so the counts of equal-width bins are still sums over cells.

    Parameters
    ----------
    edges : ndarray of shape (n_cells + 1,)
        Edges of cells of equal width.
    n_bins : int
        Number of bins of equal width, a divisor of the number of cells.
    is_integer : bool, default=False
        True for edges midway between integers. Their bin is changed only if it begins at 0.
    """
    step = (len(edges) - 1) // n_bins
    if step < MIN_CELLS_AT_ZERO:
        return edges
    start = step * int(np.searchsorted(edges[:-1:step], 0.0, side="right") - 1)
    if start < 0 or edges[start + step] <= 0.0:
        return edges
    low, high = edges[start], edges[start + step]
    new_edges = edges.copy()
    if is_integer:
        if low == -0.5:
            new_edges[start : start + step + 1] = low + _growing_cells(high - low, step, 1.0)
        return new_edges
    n_below = int(round(step * -low / (high - low)))
    below = -_growing_cells(-low, n_below, 0.0)[::-1]
    new_edges[start : start + step + 1] = np.append(
        below, _growing_cells(high, step - n_below, 0.0)[1:]
    )
    return new_edges


def _growing_cells(width, n_cells, unit):
    """Return the edges of cells from 0 to `width`, each wider than the one before.

    Edges are multiples of `unit`; with 0, they can be any numbers.
    """
    edges = width * CELL_RATIO_AT_ZERO ** (np.arange(n_cells + 1.0) - n_cells)
    edges[0] = 0.0
    if unit:
        edges = np.rint(edges / unit)
        for i in range(1, n_cells):
            edges[i] = max(edges[i], edges[i - 1] + 1.0)
        edges *= unit
    return edges


def with_atoms(edges, atoms, half_width):
    """Return the edges of the same number of cells, some of which contain a single value.

    The cell that contains an atom is reduced to the atom, and its neighbors are extended
    accordingly. This keeps a value that is frequent in many tables, such as 0 or a bound, apart
    from others.

    Parameters
    ----------
    edges : ndarray of shape (n_cells + 1,)
        Increasing.
    atoms : sequence of float
        Values within the edges.
    half_width : float
        Half the width of the cell of an atom, less than a quarter of each cell.
    """
    new_edges = edges.copy()
    for atom in atoms:
        cell = int(np.clip(np.searchsorted(edges, atom, side="right") - 1, 0, len(edges) - 2))
        if cell > 0:
            new_edges[cell] = atom - half_width
        if cell < len(edges) - 2:
            new_edges[cell + 1] = atom + half_width
    # Atoms in neighboring cells may be too close together to be separated.
    if (np.diff(new_edges) > 0.0).all():
        return new_edges
    return edges


def cells_of(table, terms):
    """Return the cells of terms, as `Rows` whose blocks have shape (n_terms, n_rows)."""
    rows = min(BLOCK_ROWS // 4, block_size(len(terms)))
    return table.rows(cell_reader(terms), len(terms)).with_block_size(rows)


def cell_reader(terms, *, checks=False):
    """Return a function that finds the cells of terms in some rows of a table.

    Parameters
    ----------
    terms : list of Term
    checks : bool, default=False
        If True, the function raises `ValueError` if values are not of their column's kind. The rows
        of a fit need no check, because they were checked before the charge.

    Returns
    -------
    callable
        Function of a `ColumnTable` and a slice of its rows that returns an ndarray of shape
        (n_terms, n_rows), dtype int64.
    """
    # Position in the table, kind, and edges or categories of each column of each term.
    columns = [*chain.from_iterable(zip(t.features, t.kinds, t.edges, strict=True) for t in terms)]
    numeric = [k for k, (_, kind, _) in enumerate(columns) if kind == "number"]
    bins = None
    if numeric:
        bins = Bins([columns[k][2] for k in numeric])
    return partial(_read_cells, terms, columns, numeric, bins, checks)


def served_blocks(table, n_terms):
    """Return the slices of samples whose cells are read in one step."""
    return row_blocks(table, min(BLOCK_ROWS, rows_within(PREDICT_BYTES, n_terms)))


def _read_cells(terms, columns, numeric, bins, checks, table, rows):
    """Return the cells of terms in a slice of rows; see `cell_reader`."""
    cells = np.empty((len(columns), rows.stop - rows.start), dtype=np.int64)
    if numeric:
        numbers = _read_numbers(table, [columns[k][0] for k in numeric], rows, checks)
        cells[numeric] = _numeric_cells(numbers, bins).T
    for k in sorted(set(range(len(columns))).difference(numeric)):
        j, kind, edges = columns[k]
        column = Column(kind=kind)
        if column.is_categorical:
            values = table.labels(j, rows)
            edges = table.as_label(j, edges)
        else:
            values = table.values(j, rows)
        # The labels of all columns were checked together earlier.
        if checks and not column.is_categorical:
            column.check(values, table.name(j), after_fit=True)
        cells[k] = column.cells(values, edges)
    if len(columns) == len(terms):
        return cells
    term_cells = np.empty((len(terms), cells.shape[1]), dtype=np.int64)
    first = 0
    for k, term in enumerate(terms):
        last = first + len(term.features)
        term_cells[k] = cells[first]
        if last - first > 1:
            sizes = [
                n_cells(kind, edges) for kind, edges in zip(term.kinds, term.edges, strict=True)
            ]
            term_cells[k] = np.ravel_multi_index(tuple(cells[first:last]), sizes)
        first = last
    return term_cells


def _read_numbers(table, indices, rows, checks):
    """Return numeric columns, or raise `ValueError` for the first one with other values."""
    try:
        numbers = table.numeric(indices, rows)
        if not checks or not (np.isinf(numbers).any() or any(map(table.may_hold_times, indices))):
            return numbers
    except (TypeError, ValueError):
        if not checks:
            raise
    column = Column(kind="number")
    checked = [
        column.check(table.values(j, rows), table.name(j), after_fit=checks) for j in indices
    ]
    return np.column_stack(checked)


def _numeric_cells(values, bins):
    return np.where(np.isnan(values), bins.sizes - 2, find_bins(values, bins))


def exact_counts(terms, table, row_weights=None, codes=None, n_classes=1, coarsest=1, cells=None):
    """Return the exact counts of each column's cells, per class.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns.
    table : ColumnTable
    row_weights : ndarray of shape (n_rows,), default=None
        Row weights of persons; None gives every row the weight 1.
    codes : ndarray of shape (n_rows,), default=None
        Classes of the rows; None for one class.
    n_classes : int, default=1
    coarsest : int, default=1
        Coarsest level of numeric columns, see `level_counts`.
    cells : Rows, default=None
        Cells of the table, if they are already known; None computes them.

    Returns
    -------
    list of ndarray of shape (n_classes, n_counts)
        Counts of the categories, or of all levels of a numeric column. The last count is the number
        of missing values.
    """
    sizes = [n_classes * n_cells(term.kinds[0], term.edges[0]) for term in terms]
    ends = np.cumsum(sizes)
    counts = zero_counts(sum(sizes), row_weights)
    if cells is None:
        cells = cells_of(table, terms)
    sum_over(cells, _add_counts, counts, ends, n_classes, row_args=(row_weights, codes))
    result = []
    for term, term_counts in zip(terms, np.split(counts, ends[:-1]), strict=True):
        class_counts = term_counts.reshape(n_classes, -1)
        if "label" not in term.kinds:
            class_counts = np.apply_along_axis(_at_levels, -1, class_counts, coarsest)
        result.append(class_counts)
    return result


def _add_counts(counts, cells, row_weights, codes, ends, n_classes):
    """Add a block's counts of the cells of each term, for one class after another, in place."""
    for term_cells, total in zip(cells, np.split(counts, ends[:-1]), strict=True):
        if codes is not None:
            term_cells = term_cells + len(total) // n_classes * codes.astype(np.intp)
        total += weighted_bincount(term_cells, row_weights, len(total))


def _at_levels(counts, coarsest):
    """Return the counts of all levels, then the count of missing values."""
    return np.append(level_counts(counts[:-1], coarsest), counts[-1])
