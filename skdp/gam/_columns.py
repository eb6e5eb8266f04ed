"""A table's columns as an additive model sees them: numbers in a range, or labels; cells."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skdp._data._columns import column_entries
from skdp._data._containers import as_numbers
from skdp._data._histogram import bin_numbers, check_edges
from skdp._data._refusals import check_finite, column_name
from skdp.gam._bins import CELLS
from skdp.mechanisms._randomized_response import categories_array
from skdp.preprocessing._binning import category_entries
from skdp.utils._labels import category_codes, is_missing
from skdp.utils._validation import check_bounds, check_not_pairs, is_auto

BOOLEAN = np.array([False, True])
# No column gets more categories than this: the most frequent ones.
LARGEST_LIST = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Column:
    """What is known of one column before its cells are counted.

    Parameters
    ----------
    kind : {"number", "date", "duration", "label"}
        Durations count days, dates those from 1970 on.
    bounds : tuple of (float, float) or None
        Of numbers and dates; None where they have to be found.
    categories : ndarray or None
        Of labels; None where they have to be found.
    """

    kind: str
    bounds: tuple = None
    categories: np.ndarray = None

    @property
    def is_label(self):
        return self.kind == "label"

    @property
    def is_declared(self):
        return (self.categories if self.is_label else self.bounds) is not None

    def most_cells(self, of_numbers):
        """Return how many cells there can be, where numbers get so many."""
        if not self.is_label:
            return of_numbers
        return 2 + (len(self.categories) if self.is_declared else LARGEST_LIST)

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
            raise ValueError(
                f"{name} holds values that are no {self.kind}s: declare its categories, or give "
                "categories={column: 'auto'} to find them"
            ) from None
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
            numbers, n_bins = self.numbers(values), len(edges) - 1
            cells = np.clip(bin_numbers(numbers[:, None], [edges])[:, 0], 0, n_bins - 1)
            return np.where(np.isnan(numbers), n_bins, cells)
        other = len(edges)
        cells = category_codes(values, edges, other)
        for i in np.flatnonzero(cells == other) if values.dtype.kind in "OfmMT" else ():
            cells[i] += is_missing(values[i])
        return cells


def n_cells(column, edges):
    """Return how many cells a column has, that of missing values included."""
    return len(edges) + 2 if column.is_label else len(edges)


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
    # "auto" beside lists of labels is no label.
    mixed = isinstance(categories, list | tuple) and any(map(is_auto, categories))
    read = partial(column_entries, what="categories") if mixed else category_entries
    labels = read(categories, names, len(kinds))
    limits = _bound_entries(bounds, names, len(kinds))
    columns = []
    for j, (kind, own, limit) in enumerate(zip(kinds, labels, limits, strict=True)):
        if own is None and kind == "boolean":
            column = Column(kind="label", categories=BOOLEAN)
        elif own is not None or kind == "label":
            found = own is None or is_auto(own)
            column = Column(kind="label", categories=None if found else categories_array(own))
        else:
            column = Column(kind=kind if kind in ("date", "duration") else "number")
        if limit is not None and isinstance(bounds, Mapping) and column.is_label:
            raise ValueError(f"bounds: {column_name(j, names)} is categorical")
        if limit is not None and not column.is_label:
            column = replace(column, bounds=_checked_bounds(column, limit))
        columns.append(column)
    return columns


def entries_of(value, names, n_features, what):
    """Return `column_entries`, or raise `ValueError` for what is neither a list nor a dict."""
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1
    if not (value is None or is_vector or isinstance(value, Mapping | list | tuple)):
        raise ValueError(f"{what} must be a dict of columns or a flat list, got {value!r}")
    return column_entries(value, names, n_features, what)


def _bound_entries(bounds, names, n_features):
    if is_auto(bounds):
        return [None] * n_features
    if isinstance(bounds, Mapping):
        entries = column_entries(bounds, names, n_features, "bounds")
        return [None if each is None or is_auto(each) else each for each in entries]
    check_not_pairs(bounds, n_features)
    try:
        low, high = bounds
        low, high = (np.broadcast_to(np.asarray(end), (n_features,)) for end in (low, high))
    except (TypeError, ValueError):
        raise ValueError(
            "bounds must be 'auto', (low, high), numbers or arrays of length n_features, or a "
            f"dict of columns, got {bounds!r}"
        ) from None
    return list(zip(low, high, strict=True))


def _checked_bounds(column, limit):
    if column.kind != "number":
        try:
            limit = _days(np.array([*limit], dtype=object))
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds of {column.kind}s must be {column.kind}s, got {limit!r}"
            ) from None
    low, high = check_bounds(limit, 1)
    low, high = float(low[0]), float(high[0])
    check_edges(np.linspace(low, high, CELLS + 1), "bounds are too close to one another")
    return low, high


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
