"""Bins of columns and their edges: declared, or found privately."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import OneToOneFeatureMixin

from skdp._data._columns import (
    category_entries,
    check_no_times,
    column_entries,
    declared_bounds,
    flat_or_column_entries,
    has_length,
)
from skdp._data._histogram import bin_numbers, check_edges, count_bins, uniform_edges
from skdp._data._labels import UNDECLARED
from skdp.accounting import Guarantee
from skdp.accounting._guarantee import split_guarantee
from skdp.mechanisms._plan import Plan
from skdp.mechanisms._randomized_response import categories_array
from skdp.stats._bounds import plan_search
from skdp.stats._categories import position_of
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._ranks import CELLS
from skdp.utils._documents import count_of
from skdp.utils._validation import check_bounds, check_integer, is_auto
from skdp.utils._values import FrozenValue

AUTOMATIC = ("uniform", "quantile")
# For n_bins="auto": minimum and maximum number of bins, and minimum number of rows in a quantile
# bin, relative to the noise scale of a quantile's rank.
MIN_BINS = 8
MAX_BINS = 32
ROWS_PER_SCALE = 2.5
# Maximum number of bins per column and in total, so that the edges and their copies fit into 1 GB.
MAX_COLUMN_BINS = 2**20
MAX_TOTAL_BINS = 2**24


@dataclass(frozen=True, eq=False)
class ColumnBins(FrozenValue):
    """Bins of one column: intervals between edges, or categories.

    Parameters
    ----------
    kind : {"categories", "declared", "uniform", "quantile"}
        Categories, or the origin of the edges.
    limits : ndarray, default=None
        Edges or categories; None if the edges have yet to be found.
    other : int, default=-1
        Code of the category of undeclared values, or -1 if there is none.
    """

    kind: str
    limits: np.ndarray | None = None
    other: int = UNDECLARED

    @property
    def is_numeric(self):
        return self.kind != "categories"

    @property
    def size(self):
        """Number of bins."""
        return len(self.limits) - self.is_numeric


def column_bins(categories, other, edges, names, n_features):
    """Return one `ColumnBins` per column, from the parameters of an estimator.

    Raises
    ------
    ValueError
        If the parameters contradict one another or the table's shape.
    """
    categories = category_entries(categories, names, n_features)
    edges = _edge_entries(edges, names, n_features)
    bins = []
    for j, (labels, declared) in enumerate(zip(categories, edges, strict=True)):
        if labels is not None:
            labels = categories_array(labels)
            bins.append(ColumnBins("categories", labels, position_of(other, labels)))
        elif isinstance(declared, str) and declared in AUTOMATIC:
            bins.append(ColumnBins(declared))
        elif declared is None or isinstance(declared, str):
            raise ValueError(f"edges: column {j} needs 'uniform', 'quantile' or edges")
        else:
            declared = check_edges(declared, "edges")
            # Edges have the same limits as bounds, so densities are finite.
            ends = declared[:-1], declared[1:]
            check_bounds(ends, len(declared) - 1, "edges", is_resolved=False)
            bins.append(ColumnBins("declared", declared))
    if other is not None and all(column.other == UNDECLARED for column in bins):
        raise ValueError(f"other={other!r} is not among the categories of any column")
    return bins


def planned_n_bins(n_bins):
    """Return the number of equal-width bins for a parameter `n_bins`."""
    if is_auto(n_bins):
        return MAX_BINS
    return check_integer(n_bins, "n_bins", 2, MAX_COLUMN_BINS)


def _check_total_bins(n_bins, n_columns):
    """Raise `ValueError` if the columns' edges would not fit into memory."""
    if n_bins * n_columns > MAX_TOTAL_BINS:
        raise ValueError(
            f"n_bins={n_bins} for {count_of(n_columns, 'column')} is too large: there "
            f"may be at most {MAX_TOTAL_BINS:,} bins in all; use fewer bins"
        )


def planned_size(bins, n_bins):
    """Return the number of bins of a column before a fit, or None if quantiles determine it.

    Parameters
    ----------
    bins : ColumnBins
    n_bins : int or "auto"
    """
    if bins.kind == "quantile":
        # Equal quantiles, which result from common values, become one edge.
        return None
    if bins.limits is None:
        return planned_n_bins(n_bins)
    return bins.size


@dataclass(frozen=True, eq=False)
class EdgesSearch(FrozenValue):
    """Search for the edges of the columns whose bins are not declared.

    Parameters
    ----------
    bins : list of ColumnBins
    n_bins : int
        Number of bins of "uniform" and "quantile" columns.
    bounds : tuple of (low, high) or None
        Bounds of these columns, in their order; NaN where they have yet to be found. None if there
        are no such columns.
    search : Plan or None
        Plan that finds the bounds that are not declared.
    quantiles : Plan or None
        Plan that finds the edges of "quantile" columns.
    remaining : Guarantee or None
        Guarantee that remains for a release on the bins, if there is one.
    """

    bins: list
    n_bins: int
    bounds: tuple
    search: Plan | None
    quantiles: Plan
    remaining: Guarantee

    @classmethod
    def make(cls, bins, n_bins, bounds, shape, guarantee, quantiles_fraction=1.0):
        """Return the search, calibrated to fractions of the guarantee.

        Parameters
        ----------
        bins : list of ColumnBins
            As in the class.
        n_bins : int or "auto"
        bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
        shape : TableShape
        guarantee : Guarantee
            Guarantee of everything that is released.
        quantiles_fraction : float in (0, 1], default=1.0
            Fraction of the budget left by the search that the quantiles receive. If it is below 1,
            the rest is kept for a release on the bins.
        """
        auto = is_auto(n_bins)
        n_bins = planned_n_bins(n_bins)
        ranged = columns_of(bins, AUTOMATIC)
        _check_total_bins(n_bins, len(ranged))
        for j in columns_of(bins, ("declared",)):
            check_no_times(shape, [j], "edges", bins[j].limits.tolist())
        quantile_columns = columns_of(bins, ("quantile",))
        if len(ranged):
            bounds = declared_bounds(bounds, shape, ranged)
        else:
            bounds = None
        search = None
        quantiles = None
        remaining = guarantee
        n_undeclared = 0
        if bounds is not None:
            for ends in zip(*bounds, strict=True):
                if np.isnan(ends[0]):
                    n_undeclared += 1
                    continue
                edges = uniform_edges(*ends, n_bins)
                check_edges(edges, "bounds are too close to one another for n_bins")
        if n_undeclared:
            is_single = not len(quantile_columns) and quantiles_fraction == 1.0
            search, remaining = plan_search(
                replace(shape, n_columns=n_undeclared), remaining, alone=is_single
            )
        if len(quantile_columns):
            if quantiles_fraction < 1.0:
                quantiles_guarantee, remaining = split_guarantee(remaining, quantiles_fraction)
            else:
                quantiles_guarantee, remaining = remaining, None
            quantiles_shape = replace(shape, n_columns=len(quantile_columns))
            plan = partial(plan_quantiles, quantiles_shape, quantiles_guarantee)
            quantiles = plan(quantiles=np.arange(1, n_bins) / n_bins)
            if auto:
                affordable = shape.n_rows / (ROWS_PER_SCALE * quantiles.scale)
                n_bins = int(np.clip(affordable, MIN_BINS, MAX_BINS))
                quantiles = plan(quantiles=np.arange(1, n_bins) / n_bins)
        return cls(bins, n_bins, bounds, search, quantiles, remaining)

    @property
    def columns_with_found_bounds(self):
        """Positions of the columns whose bounds are needed but not declared."""
        ranged = columns_of(self.bins, AUTOMATIC)
        if len(ranged) == 0:
            return ranged
        return ranged[np.isnan(self.bounds[0])]

    def run(self, table, source, persons=None):
        """Return the bins of each column, with the released edges."""
        bins = list(self.bins)
        n_features = len(self.bins)
        ranged = columns_of(bins, AUTOMATIC)
        quantile_columns = columns_of(bins, ("quantile",))
        low, high = np.full(n_features, np.nan), np.full(n_features, np.nan)
        if len(ranged):
            low[ranged], high[ranged] = self.bounds
            if self.search is not None:
                undeclared = self.columns_with_found_bounds
                numbers = table.numbers(undeclared)
                bounds = self.search.run(numbers, source, persons=persons, columns=undeclared)
                low[undeclared], high[undeclared] = bounds
        for j in columns_of(bins, ("uniform",)):
            bins[j] = replace(bins[j], limits=uniform_edges(low[j], high[j], self.n_bins))
        if len(quantile_columns):
            released = self.quantiles.run(
                table.numbers(quantile_columns),
                source,
                low=low[quantile_columns],
                high=high[quantile_columns],
                persons=persons,
                columns=quantile_columns,
            )
            for j, column in zip(quantile_columns, released.T, strict=True):
                bins[j] = replace(bins[j], limits=quantile_edges(column, low[j], high[j]))
        return bins


def quantile_edges(quantiles, low, high):
    """Return bin edges from released quantiles; the outermost edges are the bounds.

    A value shared by several quantiles is common in the data and gets a narrow bin to itself. The
    value of a single quantile belongs to the bin below it. Edges are half a step of the quantiles'
    grid away from the value, so rounding cannot change its bin.

    Parameters
    ----------
    quantiles : ndarray of shape (n_quantiles,)
        Quantiles on the grid of `QuantileTree`.
    low, high : float
    """
    values, repeats = np.unique(quantiles, return_counts=True)
    half = 0.5 * (high - low) / CELLS
    inner = np.concatenate([values + half, values[repeats > 1] - half])
    inner = np.unique(inner[(inner > low) & (inner < high)])
    edges = np.concatenate([[low], inner, [high]])
    return edges[np.append(True, np.diff(edges) > 0)]


def count_columns(table, bins, row_weights=None):
    """Return the exact counts of each column's bins.

    Values beyond the outermost edges are counted in the outermost bins.
    """
    numeric = numeric_columns(bins)
    labels = columns_of(bins, ("categories",))
    counts = {}
    if len(numeric):
        edges = [bins[j].limits for j in numeric]
        rows = table.numbers(numeric)
        numeric_counts = count_bins(rows, edges, outermost=True, row_weights=row_weights)
        counts.update(zip(numeric, numeric_counts, strict=True))
    if len(labels):
        label_counts = table.label_counts(labels, *_categories(bins, labels), row_weights)
        counts.update(zip(labels, label_counts, strict=True))
    return [counts[j] for j in range(len(bins))]


def _categories(bins, columns):
    return [bins[j].limits for j in columns], [bins[j].other for j in columns]


def bin_codes(table, bins):
    """Return the bin of each value, or -1 for an undeclared category.

    Returns
    -------
    ndarray of shape (n_rows, n_features), dtype int64
    """
    codes = np.empty(table.shape, dtype=np.int64)
    numeric = numeric_columns(bins)
    if len(numeric):
        codes[:, numeric] = bin_numbers(table.numbers(numeric), [bins[j].limits for j in numeric])
    labels = columns_of(bins, ("categories",))
    if len(labels):
        codes[:, labels] = table.codes(labels, *_categories(bins, labels))
    return codes


def numeric_columns(bins):
    """Return the positions of the columns that are not categorical."""
    return columns_of(bins, ("declared", *AUTOMATIC))


def columns_of(bins, kinds):
    """Return the positions of the columns of these kinds."""
    positions = [j for j, column in enumerate(bins) if column.kind in kinds]
    return np.array(positions, dtype=np.intp)


def column_pairs(interactions, names, n_features):
    """Return declared pairs of columns by their positions.

    Parameters
    ----------
    interactions : list of pairs of columns
    names, n_features
        See `column_entries` in `skdp._data._columns`.

    Returns
    -------
    list of (int, int)
        Pairs in the declared order; each pair's positions are ascending.

    Raises
    ------
    ValueError
        If `interactions` is not a list of pairs of columns, or contains a pair twice, in the same
        or the opposite order.
    """
    declared = []
    if isinstance(interactions, np.ndarray) and interactions.ndim:
        interactions = interactions.tolist()
    if not isinstance(interactions, list | tuple):
        raise ValueError(f"interactions must be a list of pairs of columns, got {interactions!r}")
    for pair in interactions:
        if isinstance(pair, str) or np.ndim(pair) != 1 or len(pair := tuple(pair)) != 2:
            raise ValueError(f"interactions must hold pairs of columns, got {pair!r}")
        entries = column_entries(dict.fromkeys(pair, True), names, n_features, "interactions")
        positions = tuple(j for j, is_named in enumerate(entries) if is_named)
        if len(positions) != 2 or positions in declared:
            raise ValueError(f"interactions: {pair!r} is one column, or named twice")
        declared.append(positions)
    return declared


def crossed(codes, n_bins, pairs):
    """Return the codes of columns and of pairs, and their numbers of bins.

    A pair is encoded like one more column, whose bins are all combinations of a bin of the first
    column and a bin of the second. One-hot encoding then has an indicator of each combination, with
    which a linear model learns interactions.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_features)
        Bins of the values. A value that is not in any bin, and all of its pairs, get -1.
    n_bins : ndarray of shape (n_features,)
    pairs : list of (int, int)

    Returns
    -------
    codes : ndarray of shape (n_rows, n_features + n_pairs)
    n_bins : ndarray of shape (n_features + n_pairs,)
    """
    one, two = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    cells = codes[:, one] * n_bins[two] + codes[:, two]
    cells[(codes[:, one] < 0) | (codes[:, two] < 0)] = UNDECLARED
    return np.hstack([codes, cells]), np.append(n_bins, n_bins[one] * n_bins[two])


def _edge_entries(edges, names, n_features):
    """Return "uniform", "quantile" or an array of edges for each column."""
    if isinstance(edges, str):
        return [edges] * n_features
    if not has_length(edges):
        raise ValueError(f"edges must be 'uniform', 'quantile' or edges, got {edges!r}")
    return flat_or_column_entries(edges, str | None, names, n_features, "edges")


def one_hot(codes, n_bins, value, sparse):
    """Return one column per bin of each feature, which contains `value` for the rows in the bin."""
    columns = codes + (np.cumsum(n_bins) - n_bins)
    inside = codes >= 0
    shape = (len(codes), int(n_bins.sum()))
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    indices = columns[inside]
    encoded = csr_array((np.full(len(indices), value), indices, starts), shape=shape)
    if sparse:
        return encoded
    return encoded.toarray()


# Names of X's features: from the fit, from the argument, or x0, x1, ...
input_names = OneToOneFeatureMixin.get_feature_names_out
