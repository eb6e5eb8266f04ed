"""The weights' blocks: terms at several resolutions, and tables of pairs of columns."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from skdp._data._parts import sum_over
from skdp.gam._bins import merged_cells
from skdp.gam._columns import PackedCells, Term, marked
from skdp.preprocessing._binning import column_pairs
from skdp.utils._validation import check_integer, is_auto
from skdp.utils._values import FrozenValue

# Weights of blocks are multiples of this, so that a weight times a sum is exact.
WEIGHT_STEP = 2.0**-12
# The step size allows for counts that are larger than their noisy ones.
MARGIN = 1.1
COARSER = 4
# Below so many rows beside the noise, columns that hardly vary get less.
ROWS_FOR_ALL = 500.0
FEWEST_CELLS = 3
# A column of this many cells or fewer, that of missing values included, has no trend.
MAX_CELLS_WITHOUT_TREND = 3
# The normal score at which a trend ends, in standard deviations. On training rows of
# california_housing 2 is ahead of 3 by .0035 of R²; with 2.5 the tables of classes are alike.
LAST_NORMAL_SCORE = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Block(FrozenValue):
    """One resolution of one term.

    Parameters
    ----------
    term : int
        -1 for the constant.
    weight : float
        What a row has in its cell of the block.
    groups : ndarray of int
        Of each of the term's finest cells, the block's cell.
    counts : ndarray of float
        Noisy counts of the block's cells, or a bound on them.
    ordered : bool, default=False
        Whether neighbors are alike; the last cell, of what is missing, has none.
    profile : ndarray of float, default=None
        For a trend, a block of one cell: the fraction of `weight` that a row has in each of the
        term's finest cells, from -1 to 1. `counts` is the sum of the squares of these over the
        rows. None is 1 everywhere.
    """

    term: int
    weight: float
    groups: np.ndarray
    counts: np.ndarray
    ordered: bool = False
    profile: np.ndarray | None = None

    @property
    def size(self):
        return len(self.counts)

    # The second moments of the features, from noisy counts.
    @property
    def moments(self):
        return self.weight**2 * self.counts

    @cached_property
    def features(self):
        """The feature of a row in each of the term's finest cells: multiples of `WEIGHT_STEP`."""
        if self.profile is None:
            return np.full(len(self.groups), self.weight)
        # Towards zero, so that no row's norm grows.
        return np.trunc(self.weight * self.profile / WEIGHT_STEP) * WEIGHT_STEP


def dyadic_weight(value):
    """Return the largest weight that is a multiple of `WEIGHT_STEP` and at most a value."""
    return math.floor(value / WEIGHT_STEP) * WEIGHT_STEP


class Layout:
    """All blocks, one after another in a vector; see ``docs/additive_models.md``.

    Parameters
    ----------
    blocks : list of Block
        Of weights whose squares add up to at most 1: the norm of a row's features.
    """

    def __init__(self, blocks):
        self.blocks = blocks
        if math.fsum(np.abs(block.features).max() ** 2 for block in blocks) > 1.0:
            raise ValueError("the squares of the blocks' weights add up to more than 1")
        self.starts = np.cumsum([0, *(block.size for block in blocks)])
        self.size = int(self.starts[-1])

    def tables(self, weights):
        """Return each term's values at its finest cells.

        Parameters
        ----------
        weights : ndarray of shape (size, n_outputs)

        Returns
        -------
        dict of term to ndarray of shape (n_cells, n_outputs)
        """
        tables = {}
        for block, start in zip(self.blocks, self.starts, strict=False):
            own = block.features[:, None] * weights[start : start + block.size][block.groups]
            tables[block.term] = tables.get(block.term, 0.0) + own
        return tables

    def gather(self, sums):
        """Return the gradient from each term's sums at its finest cells; exact.

        Parameters
        ----------
        sums : dict of term to ndarray of shape (n_cells, n_outputs)

        Returns
        -------
        ndarray of shape (size, n_outputs)
        """
        parts = []
        for block in self.blocks:
            total = np.zeros((block.size, sums[block.term].shape[1]))
            np.add.at(total, block.groups, block.features[:, None] * sums[block.term])
            parts.append(total)
        return np.concatenate(parts)

    def moved_from(self, other, weights):
        """Return the weights by which the blocks of a shorter layout have the values they had.

        A trend has nearly the values it had: its features are rounded.
        """
        pairs = zip(self.blocks, other.blocks, strict=False)
        factors = [old.weight / max(block.weight, WEIGHT_STEP) for block, old in pairs]
        factors = np.repeat(factors, [block.size for block in other.blocks])
        result = np.zeros((self.size, weights.shape[1]))
        result[: other.size] = factors[:, None] * weights
        return result

    def ties(self, weights):
        """Return the gradient of half the sum of squared differences of neighbors' weights."""
        result = np.zeros_like(weights)
        for block, start in zip(self.blocks, self.starts, strict=False):
            if block.ordered:
                bins = slice(start, start + block.size - 1)
                result[bins] = -np.diff(np.pad(weights[bins], ((1, 1), (0, 0)), "edge"), 2, axis=0)
        return result

    @property
    def diagonal(self):
        """The second moment of each feature, from noisy counts."""
        return np.concatenate([block.moments for block in self.blocks])

    # The L1 norm of a row's features.
    @property
    def weights_sum(self):
        return math.fsum(block.weight for block in self.blocks)

    def bend(self, n_rows):
        """Return what bounds the largest eigenvalue of the features' second moment, up to noise."""
        largest = sum(block.moments.max() for block in self.blocks)
        return min(float(n_rows), MARGIN * largest)


def main_layout(terms, n_rows, clearness=1e12, *, coarser=True, trend_fraction=0.0):
    """Return the blocks of the constant and of each column, of numbers at several resolutions.

    Of the squares of the weights each has the same part, if noise is small beside the rows
    (`clearness`, n mu). Else a column gets the less, the less it varies. Without `coarser` numbers
    have the finest resolution alone. A trend has the part `trend_fraction` of a number's squares.
    """
    constant_share = 1.0 / (len(terms) + 1)
    parts = np.sqrt([clearness / ROWS_FOR_ALL + variety(term.counts) for term in terms])
    shares = (1.0 - constant_share) * parts / parts.sum()
    constant = {"groups": np.zeros(1, dtype=np.intp), "counts": np.array([float(n_rows)])}
    blocks = [Block(term=-1, weight=dyadic_weight(math.sqrt(constant_share)), **constant)]
    for j, (term, share) in enumerate(zip(terms, shares, strict=True)):
        ordered = "label" not in term.kinds
        groups = resolutions(len(term.counts), coarser=coarser and ordered)
        has_trend = trend_fraction and ordered and len(term.counts) > MAX_CELLS_WITHOUT_TREND
        left = share * (1.0 - trend_fraction) if has_trend else share
        weight = dyadic_weight(math.sqrt(left / len(groups)))
        for group in groups:
            own = np.bincount(group, weights=term.counts)
            blocks.append(Block(term=j, weight=weight, groups=group, counts=own, ordered=ordered))
        if has_trend:
            weight = dyadic_weight(math.sqrt(trend_fraction * share))
            blocks.append(trend_block(j, term.counts, weight))
    return Layout(blocks)


def trend_block(term, counts, weight):
    """Return a feature that rises from cell to cell, and is 0 where values are missing.

    It is the normal score of a cell's middle rank: about a straight line of a number with a bell
    curve, or of the logarithm of an amount. What few rows of a rare class say of it is learned from
    all cells together.

    Parameters
    ----------
    term : int
    counts : ndarray of shape (n_cells,)
        Noisy, that of missing values at the end.
    weight : float
        The feature is between this and its negative.
    """
    # A count of no rows at all has ranks as well.
    present = np.maximum(counts[:-1], 0.0) + 1e-9
    ranks = (np.cumsum(present) - 0.5 * present) / present.sum()
    scores = np.clip(ndtri(ranks) / LAST_NORMAL_SCORE, -1.0, 1.0)
    squares = np.array([float(scores**2 @ present)])
    groups = np.zeros(len(counts), dtype=np.intp)
    profile = np.append(scores, 0.0)
    return Block(term=term, weight=weight, groups=groups, counts=squares, profile=profile)


def variety(counts):
    """Return how likely two rows are in different cells, by their noisy counts."""
    parts = counts / max(counts.sum(), 1.0)
    return float(np.sum(parts * (1.0 - parts)))


def resolutions(n_cells, *, coarser):
    """Return, finest first, the cell of each resolution in which each finest cell lies.

    Parameters
    ----------
    n_cells : int
        With that of missing values, which stays apart, at the end.
    coarser : bool
        Whether there are coarser ones: neighbors are alike.

    Returns
    -------
    list of ndarray of shape (n_cells,)
        Increasing, from 0 on.
    """
    groups = [np.arange(n_cells)]
    while coarser and math.ceil(groups[-1][-1] / COARSER) >= FEWEST_CELLS:
        coarse = groups[-1] // COARSER
        coarse[-1] = coarse[-2] + 1
        groups.append(coarse)
    return groups


def joint_layout(layout, pairs, main_share):
    """Return the blocks of a layout with those of pairs, or of trees, which share the rest."""
    factor = math.sqrt(main_share)
    blocks = [
        replace(block, weight=dyadic_weight(factor * block.weight)) for block in layout.blocks
    ]
    first = blocks[-1].term + 1
    weight = dyadic_weight(math.sqrt((1.0 - main_share) / len(pairs)))
    for term, counts in enumerate((pair.most_counts for pair in pairs), start=first):
        blocks.append(Block(term=term, weight=weight, groups=np.arange(len(counts)), counts=counts))
    return Layout(blocks)


TABLE_CELLS = 12
CHOICE_CELLS = 8
# A pair is chosen if its statistic, about standard normal without interaction, exceeds this.
LEAST_EVIDENCE = 4.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair(FrozenValue):
    """Two terms of one column each, and the cells of their table.

    Parameters
    ----------
    places : tuple of (int, int)
        Of the terms.
    edges : tuple of (ndarray, ndarray)
    groups : tuple of (ndarray, ndarray)
        Of each cell of a term, the row or column of the table.
    margins : tuple of (ndarray, ndarray)
        Noisy counts of the table's rows and columns.
    """

    places: tuple
    edges: tuple
    groups: tuple
    margins: tuple

    @property
    def shape(self):
        return tuple(map(len, self.margins))

    # Bounds of the cells' counts: a cell has no more rows than its row or column.
    @property
    def most_counts(self):
        return np.minimum.outer(*self.margins).ravel()

    def cells(self, own):
        """Return the cells of some rows, from those of the terms."""
        one, two = (groups[own[j]] for groups, j in zip(self.groups, self.places, strict=True))
        return one * self.shape[1] + two

    def term(self, terms, n_rows):
        """Return the pair's term; its counts are those of independent columns."""
        one, two = (terms[j] for j in self.places)
        return Term(
            features=one.features + two.features,
            kinds=one.kinds + two.kinds,
            edges=self.edges,
            counts=np.multiply.outer(*self.margins) / n_rows,
        )


def pair_of(terms, places, n_cells=TABLE_CELLS):
    """Return a pair whose table has about `n_cells` rows and columns, without what is missing."""
    edges, groups = zip(*(_axis(terms[j], n_cells) for j in places), strict=True)
    counts = (terms[j].counts for j in places)
    margins = tuple(np.bincount(g, weights=c) for g, c in zip(groups, counts, strict=True))
    return Pair(places=places, edges=edges, groups=groups, margins=margins)


def _axis(term, n_cells):
    """Return coarser edges of a term, and the coarse cell of each of its cells."""
    (edges,), counts = term.edges, term.counts
    if "label" not in term.kinds:
        starts = merged_cells(counts[:-1], n_cells, 0.0)
        groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts) - 1))
        return np.append(edges[starts], edges[-1]), np.append(groups, len(starts))
    # The most frequent categories; the others are other ones.
    kept = np.sort(np.argsort(-counts[: len(edges)], kind="stable")[: n_cells - 1])
    groups = np.full(len(counts), len(kept))
    groups[kept], groups[-1] = np.arange(len(kept)), len(kept) + 1
    return edges[kept], groups


def extended(cells, pairs):
    """Return packed cells with those of pairs, or of trees, behind them."""
    sizes = [*cells.sizes, *(math.prod(pair.shape) for pair in pairs)]
    known = {"n_units": cells.n_units, "targets": cells.targets, "row_weights": cells.row_weights}
    return PackedCells(cells, _with_pairs, pairs, sizes=sizes, **known)


def _with_pairs(block, pairs):
    own = block.columns()
    return [*own, *(pair.cells(own) for pair in pairs)]


def pair_sums(cells, pairs, scores, residuals, step):
    """Return the exact sums of residuals in the cells of all pairs' tables, one after another.

    Parameters
    ----------
    cells : PackedCells
    pairs : list of Pair
    scores : Scores
    residuals : callable
        A function of a module that maps (scores, targets) to clipped residuals of shape
        (rows, n_outputs).
    step : float
        Their grid.
    """
    totals = np.zeros((_ends(pairs)[-1], scores.tables[-1].shape[1]))
    return step * sum_over(cells, _add_to_pairs, totals, pairs, scores, residuals, step)


def _ends(pairs):
    return np.cumsum([math.prod(pair.shape) for pair in pairs])


def _add_to_pairs(totals, block, pairs, scores, residuals, step):
    steps = block.steps(residuals(scores(block), block.targets), step)
    own = block.columns()
    for pair, total in zip(pairs, np.split(totals, _ends(pairs)[:-1]), strict=True):
        total += marked(pair.cells(own)[:, np.newaxis], [len(total)]).T.dot(steps)


def chosen_pairs(pairs, noisy, deviation, most):
    """Return the pairs of most evidence for an interaction: post-processing of noisy sums."""
    evidence = []
    for pair, table in zip(pairs, np.split(noisy, _ends(pairs)[:-1]), strict=True):
        table = table.reshape(*pair.shape, -1)
        one, two = (margin / max(margin.sum(), 1.0) for margin in pair.margins)
        one = one[:, None, None]
        two = two[None, :, None]
        rest = table - one * table.sum(axis=0, keepdims=True)
        rest = rest - two * rest.sum(axis=1, keepdims=True)
        weights = np.broadcast_to(one * two, table.shape)
        spread = deviation**2 * math.sqrt(2.0 * np.sum(weights**2))
        evidence.append(np.sum(weights * (rest**2 - deviation**2)) / max(spread, 1e-300))
    return [pairs[i] for i in np.argsort(evidence)[::-1][:most] if evidence[i] > LEAST_EVIDENCE]


def check_interactions(interactions, names, n_features):
    """Return the declared pairs of positions, and how many are to be chosen.

    Raises
    ------
    ValueError
        If it is neither a number, nor "auto", nor a list of pairs of columns.
    """
    if is_auto(interactions):
        return [], None
    if isinstance(interactions, Integral):
        return [], check_integer(interactions, "interactions", 0)
    return column_pairs(interactions, names, n_features), 0


def all_pairs(terms, left_out):
    """Return every pair of terms but those with a column that is left out, of few cells."""
    places = [j for j in range(len(terms)) if j not in left_out]
    return [pair_of(terms, both, CHOICE_CELLS) for both in itertools.combinations(places, 2)]
