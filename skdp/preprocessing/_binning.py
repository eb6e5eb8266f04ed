"""The bins of a table's columns: which are declared, and how the others are found privately."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import OneToOneFeatureMixin

from skdp._data._columns import column_entries, declared_bounds
from skdp._data._histogram import bin_numbers, check_edges, count_bins, uniform_edges
from skdp.accounting import Guarantee
from skdp.mechanisms._randomized_response import categories_array
from skdp.preprocessing._categories import position_of
from skdp.stats._bounds import BoundsPlan, plan_search
from skdp.stats._quantiles import QuantilePlan
from skdp.stats._ranks import CELLS
from skdp.utils._labels import UNDECLARED
from skdp.utils._sums import split_guarantee
from skdp.utils._validation import check_bounds, check_integer, is_auto
from skdp.utils._values import FrozenValue

AUTOMATIC = ("uniform", "quantile")
# Of n_bins="auto": a bin of quantiles holds so many times the scale of the ranks' errors.
FEWEST_BINS = 8
MOST_BINS = 32
ROWS_PER_SCALE = 2.5


@dataclass(frozen=True, eq=False)
class ColumnBins(FrozenValue):
    """One column's bins: between edges, or categories.

    Parameters
    ----------
    kind : {"categories", "declared", "uniform", "quantile"}
        Whether there are categories, and if not, where the edges are from.
    limits : ndarray, default=None
        The edges, or the categories; None while the edges are to be found.
    other : int, default=-1
        The category that takes undeclared values, -1 if none does.
    """

    kind: str
    limits: np.ndarray = None
    other: int = UNDECLARED

    @property
    def is_numeric(self):
        return self.kind != "categories"

    # How many bins there are.
    @property
    def size(self):
        return len(self.limits) - self.is_numeric


def column_bins(categories, other, edges, names, n_features):
    """Return a `ColumnBins` for each column, from the parameters as the user gave them.

    Raises
    ------
    ValueError
        If they contradict one another or the table's shape.
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
            # As of bounds, so that densities are finite.
            ends = declared[:-1], declared[1:]
            check_bounds(ends, len(declared) - 1, "edges", is_resolved=False)
            bins.append(ColumnBins("declared", declared))
    if other is not None and all(each.other == UNDECLARED for each in bins):
        raise ValueError(f"other={other!r} is among no column's categories")
    return bins


def planned_n_bins(n_bins):
    """Return how many bins of equal width a parameter `n_bins` asks for."""
    return MOST_BINS if is_auto(n_bins) else check_integer(n_bins, "n_bins", 2)


def planned_size(bins, n_bins):
    """Return how many bins a column will have; None where quantiles decide it.

    Parameters
    ----------
    bins : ColumnBins
    n_bins : int or "auto"
    """
    if bins.kind == "quantile":
        # Quantiles of values that are common are one edge.
        return None
    return planned_n_bins(n_bins) if bins.limits is None else bins.size


@dataclass(frozen=True, eq=False)
class EdgesPlan(FrozenValue):
    """Finds the edges of the columns whose bins are not declared.

    Parameters
    ----------
    bins : list of ColumnBins
    n_bins : int
        Of "uniform" and "quantile" columns.
    bounds : tuple of (low, high) or None
        Of these columns, in their order; NaN where they are to be found. None if there are none.
    search : BoundsPlan or None
        Finds the bounds that are not declared.
    quantiles : QuantilePlan or None
        Finds the edges of "quantile" columns. Its own bounds are read in `run` only where
        `search` is None.
    left : Guarantee or None
        What the release of something else on the bins must meet, if there is one.
    """

    bins: list
    n_bins: int
    bounds: tuple
    search: BoundsPlan
    quantiles: QuantilePlan
    left: Guarantee

    @classmethod
    def make(cls, bins, n_bins, bounds, shape, guarantee, share=1.0):
        """Return the plan, calibrated to its two parts' shares.

        Parameters
        ----------
        n_bins : int or "auto"
        bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
        shape : TableShape
        guarantee : Guarantee
            Of all that is released.
        share : float in (0, 1], default=1.0
            Of the quantiles, in what the search leaves. Below 1 something is released on the bins,
            too.
        """
        n_bins = MOST_BINS if (auto := is_auto(n_bins)) else check_integer(n_bins, "n_bins", 2)
        ranged = columns_of(bins, AUTOMATIC)
        chosen = columns_of(bins, ("quantile",))
        bounds = declared_bounds(bounds, shape, ranged) if len(ranged) else None
        search = None
        quantiles = None
        left = guarantee
        n_sought = 0
        if bounds is not None:
            for ends in zip(*bounds, strict=True):
                if np.isnan(ends[0]):
                    n_sought += 1
                    continue
                edges = uniform_edges(*ends, n_bins)
                check_edges(edges, "bounds are too close to one another for n_bins")
        if n_sought:
            alone = not len(chosen) and share == 1.0
            search, left = plan_search(replace(shape, n_columns=n_sought), left, alone=alone)
        if len(chosen):
            own, left = split_guarantee(left, share) if share < 1.0 else (left, None)
            low, high = np.zeros(len(chosen)), np.ones(len(chosen))
            plan = partial(QuantilePlan, low=low, high=high, guarantee=own, n_rows=shape.n_rows)
            quantiles = plan(quantiles=np.arange(1, n_bins) / n_bins)
            if auto:
                affordable = shape.n_rows / (ROWS_PER_SCALE * quantiles.scale)
                n_bins = int(np.clip(affordable, FEWEST_BINS, MOST_BINS))
                quantiles = plan(quantiles=np.arange(1, n_bins) / n_bins)
        return cls(bins, n_bins, bounds, search, quantiles, left)

    def run(self, table, source, **shared):
        """Return the bins of each column, their edges found."""
        bins = list(self.bins)
        n_features = len(self.bins)
        ranged = columns_of(bins, AUTOMATIC)
        chosen = columns_of(bins, ("quantile",))
        low, high = np.full(n_features, np.nan), np.full(n_features, np.nan)
        if len(ranged):
            low[ranged], high[ranged] = self.bounds
            if self.search is not None:
                sought = ranged[np.isnan(low[ranged])]
                numbers = table.numbers(sought)
                found = self.search.run(numbers, source, columns=sought, **shared)
                low[sought], high[sought] = found
        for j in columns_of(bins, ("uniform",)):
            bins[j] = replace(bins[j], limits=uniform_edges(low[j], high[j], self.n_bins))
        if len(chosen):
            plan = replace(self.quantiles, low=low[chosen], high=high[chosen])
            released = plan.run(table.numbers(chosen), source, **shared)
            for j, column in zip(chosen, released.T, strict=True):
                bins[j] = replace(bins[j], limits=quantile_edges(column, low[j], high[j]))
        return bins


def quantile_edges(quantiles, low, high):
    """Return bin edges from released quantiles, the bounds outermost.

    A value that several quantiles share is common in the data and gets a narrow bin of its own;
    one that is a single quantile belongs to the bin below. Edges lie half a step of the
    quantiles' grid beside the value, so that rounding does not tell on which side it falls.

    Parameters
    ----------
    quantiles : ndarray of shape (n_quantiles,)
        On the grid of `QuantilePlan`.
    low, high : float
    """
    values, repeats = np.unique(quantiles, return_counts=True)
    half = 0.5 * (high - low) / CELLS
    inner = np.concatenate([values + half, values[repeats > 1] - half])
    inner = np.unique(inner[(inner > low) & (inner < high)])
    edges = np.concatenate([[low], inner, [high]])
    return edges[np.append(True, np.diff(edges) > 0)]


def count_columns(table, bins, row_weights=None):
    """Return the exact counts of each column's bins; what is outside counts in the outermost."""
    numeric = numeric_columns(bins)
    labels = columns_of(bins, ("categories",))
    counts = {}
    if len(numeric):
        own = [bins[j].limits for j in numeric]
        rows = table.numbers(numeric)
        found = count_bins(rows, own, outermost=True, row_weights=row_weights)
        counts |= zip(numeric, found, strict=True)
    if len(labels):
        found = table.label_counts(labels, *_categories(bins, labels), row_weights)
        counts |= zip(labels, found, strict=True)
    return [counts[j] for j in range(len(bins))]


def _categories(bins, columns):
    return [bins[j].limits for j in columns], [bins[j].other for j in columns]


def bin_codes(table, bins):
    """Return the bin of each value, -1 for an undeclared category.

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
    return np.array([j for j, each in enumerate(bins) if each.kind in kinds], dtype=np.intp)


def category_entries(categories, names, n_features):
    """One list of categories a column, None where a column is numeric."""
    if isinstance(categories, str | bytes) or not (categories is None or _has_length(categories)):
        raise ValueError(
            "categories must be a dict of columns, one list a column (None for a numeric one) or "
            f"one flat list for every column, got {categories!r}"
        )
    return _entries(categories, type(None), names, n_features, "categories")


def column_pairs(interactions, names, n_features):
    """Return declared pairs of columns by their positions.

    Parameters
    ----------
    interactions : list of pairs of columns
    names, n_features
        As in `column_entries`.

    Returns
    -------
    list of (int, int)

    Raises
    ------
    ValueError
        If it is no list of pairs of columns, or a pair is named twice.
    """
    declared = []
    for pair in interactions if isinstance(interactions, list | tuple) else [interactions]:
        if isinstance(pair, str) or np.ndim(pair) != 1 or len(pair := tuple(pair)) != 2:
            raise ValueError(f"interactions must hold pairs of columns, got {pair!r}")
        found = column_entries(dict.fromkeys(pair, True), names, n_features, "interactions")
        places = tuple(j for j, named in enumerate(found) if named)
        if len(places) != 2 or places in declared:
            raise ValueError(f"interactions: {pair!r} is one column, or named twice")
        declared.append(places)
    return declared


def crossed(codes, n_bins, pairs):
    """Return the codes of columns and of pairs, and how many each has.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_features)
        -1 where a value is in no bin; so is its pair.
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
    """ "uniform", "quantile" or an array for each column."""
    if isinstance(edges, str):
        return [edges] * n_features
    if not _has_length(edges):
        raise ValueError(f"edges must be 'uniform', 'quantile' or edges, got {edges!r}")
    return _entries(edges, str | None, names, n_features, "edges")


def _has_length(value):
    return hasattr(value, "__len__") and getattr(value, "shape", None) != ()


def _entries(value, apart, names, n_features, what):
    """Return a parameter's entry for each column, of which a flat list is every one's.

    In none of these lists are entries of some types `apart`.
    """
    if isinstance(value, Mapping | None) or not len(value):
        return column_entries(value, names, n_features, what)
    flat = all(np.ndim(item) == 0 and not isinstance(item, apart) for item in value)
    return [value] * n_features if flat else column_entries(value, names, n_features, what)


def one_hot(codes, n_bins, value, sparse):
    """Return a column for each bin of each feature, `value` where a row is in the bin."""
    places = codes + (np.cumsum(n_bins) - n_bins)
    inside = codes >= 0
    shape = (len(codes), int(n_bins.sum()))
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    indices = places[inside]
    encoded = csr_array((np.full(len(indices), value), indices, starts), shape=shape)
    return encoded if sparse else encoded.toarray()


# The names of the features of X: the estimator's own, those that are given, or x0, x1, ...
input_names = OneToOneFeatureMixin.get_feature_names_out
