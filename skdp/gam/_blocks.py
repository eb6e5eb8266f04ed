"""Blocks of weights: terms at several resolutions, trends, and tables of pairs of columns."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from skdp._data._dyadic import merge_cells
from skdp._data._parts import sum_over
from skdp.gam._joint_codes import JointCodes, one_hot_csr
from skdp.preprocessing._binning import column_pairs
from skdp.stats._column_cells import Term
from skdp.utils._validation import check_integer, is_auto
from skdp.utils._values import FrozenValue

# Weights of blocks are multiples of this, so that the product of a weight and a sum is exact.
WEIGHT_STEP = 2.0**-12
# Factor of the smoothness constant: exact counts may be larger than the noisy ones.
SMOOTHNESS_MARGIN = 1.1
# Number of neighboring cells that are merged in the next coarser resolution.
COARSENING_FACTOR = 4
# Minimum number of cells of a coarser resolution, without the cell of missing values.
MIN_CELLS = 3
# Signal-to-noise ratio (n mu) below which columns with little variation have smaller weights.
MIN_SIGNAL_FOR_EQUAL_WEIGHTS = 500.0
# A column with at most this number of cells, including the cell of missing values, has no trend.
MAX_CELLS_WITHOUT_TREND = 3
# The normal score at which a trend ends, in standard deviations. On training rows of
# california_housing 2 is ahead of 3 by .0035 of R²; with 2.5 the tables of classes are alike.
LAST_NORMAL_SCORE = 2.0
# Number of rows and columns of the table of a pair of numeric columns: in the model, and while
# pairs are chosen.
TABLE_CELLS = 12
CHOICE_CELLS = 8
# Threshold of the statistic by which a pair is chosen. Without an interaction the statistic is
# approximately standard normal.
MIN_EVIDENCE = 4.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Block(FrozenValue):
    """One resolution of one term.

    Parameters
    ----------
    term : int
        Index of the term; -1 for the constant.
    weight : float
        Value of the feature of a row in its cell of the block.
    groups : ndarray of int
        The block's cell of each of the term's finest cells.
    counts : ndarray of float
        Noisy counts of the block's cells, or upper bounds on them.
    ordered : bool, default=False
        True if neighboring cells have similar values. The last cell, of missing values, has no
        neighbors.
    profile : ndarray of float, default=None
        For a trend, a block of one cell: factor of `weight` in each of the term's finest cells,
        from -1 to 1. `counts` is then the sum of the squared factors over the rows. None is 1
        everywhere.
    cell_counts : ndarray of float, default=None
        Noisy counts of the term's finest cells. None if they are the cells of the block.
    """

    term: int
    weight: float
    groups: np.ndarray
    counts: np.ndarray
    ordered: bool = False
    profile: np.ndarray | None = None
    cell_counts: np.ndarray | None = None

    @property
    def size(self):
        return len(self.counts)

    @property
    def moments(self):
        """Second moments of the features, summed over the rows, from noisy counts."""
        return self.weight**2 * self.counts

    @cached_property
    def features(self):
        """Feature of a row in each of the term's finest cells, a multiple of `WEIGHT_STEP`."""
        if self.profile is None:
            return np.full(len(self.groups), self.weight)
        # Rounding towards zero does not increase the norm of a row.
        return np.trunc(self.weight * self.profile / WEIGHT_STEP) * WEIGHT_STEP


def dyadic_weight(value):
    """Return the largest multiple of `WEIGHT_STEP` that is at most `value`."""
    return math.floor(value / WEIGHT_STEP) * WEIGHT_STEP


class BlockDesign:
    """The matrix of features, one block after another; see ``docs/theory/additive_models.md``.

    Parameters
    ----------
    blocks : list of Block
        The squares of their weights add up to at most 1, so the norm of a row is at most 1.

    Attributes
    ----------
    offsets : ndarray of shape (n_blocks + 1,)
        Index of the first feature of each block.
    size : int
        Number of features.
    """

    def __init__(self, blocks):
        self.blocks = blocks
        if math.fsum(np.abs(block.features).max() ** 2 for block in blocks) > 1.0:
            raise ValueError("the squares of the blocks' weights add up to more than 1")
        self.offsets = np.cumsum([0, *(block.size for block in blocks)])
        self.size = int(self.offsets[-1])

    def bin_values(self, weights):
        """Return the values of each term at its finest cells: the design times the weights.

        Parameters
        ----------
        weights : ndarray of shape (size, n_outputs)

        Returns
        -------
        dict of term to ndarray of shape (n_cells, n_outputs)
        """
        values = {}
        for block, start in zip(self.blocks, self.offsets, strict=False):
            block_weights = weights[start : start + block.size]
            block_values = block.features[:, None] * block_weights[block.groups]
            values[block.term] = values.get(block.term, 0.0) + block_values
        return values

    def rmatvec(self, sums):
        """Return the gradient: the transposed design times sums over rows; exact.

        Parameters
        ----------
        sums : dict of term to ndarray of shape (n_cells, n_outputs)
            Sums of residuals over the rows of each finest cell.

        Returns
        -------
        ndarray of shape (size, n_outputs)
        """
        gradients = []
        for block in self.blocks:
            gradient = np.zeros((block.size, sums[block.term].shape[1]))
            np.add.at(gradient, block.groups, block.features[:, None] * sums[block.term])
            gradients.append(gradient)
        return np.concatenate(gradients)

    def weights_from(self, other, weights):
        """Return the weights with which this design has the values of a shorter design.

        The values of a trend change slightly, because its features are rounded.

        Parameters
        ----------
        other : BlockDesign
            Its blocks are the first blocks of this design, up to their weights.
        weights : ndarray of shape (other.size, n_outputs)
        """
        pairs = zip(self.blocks, other.blocks, strict=False)
        factors = [old.weight / max(block.weight, WEIGHT_STEP) for block, old in pairs]
        factors = np.repeat(factors, [block.size for block in other.blocks])
        result = np.zeros((self.size, weights.shape[1]))
        result[: other.size] = factors[:, None] * weights
        return result

    def roughness_gradient(self, weights):
        """Return the gradient of half the sum of squared differences of neighboring weights."""
        result = np.zeros_like(weights)
        for block, start in zip(self.blocks, self.offsets, strict=False):
            if block.ordered:
                bins = slice(start, start + block.size - 1)
                result[bins] = -np.diff(np.pad(weights[bins], ((1, 1), (0, 0)), "edge"), 2, axis=0)
        return result

    @property
    def diagonal(self):
        """Second moment of each feature, summed over the rows, from noisy counts."""
        return np.concatenate([block.moments for block in self.blocks])

    @property
    def weights_sum(self):
        """Sum of the blocks' weights: the largest L1 norm of a row's features."""
        return math.fsum(block.weight for block in self.blocks)

    def smoothness(self, n_rows):
        """Return an upper bound on the largest eigenvalue of the features' second moment.

        It is computed from noisy counts and holds up to their noise.
        """
        bound = sum(block.moments.max() for block in self.blocks)
        return min(float(n_rows), SMOOTHNESS_MARGIN * bound)


def main_design(terms, n_rows, signal_to_noise=1e12, *, coarser=True, trend_fraction=0.0):
    """Return the blocks of the constant and of each column, numeric ones at several resolutions.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts.
    n_rows : int
        Public number of rows.
    signal_to_noise : float, default=1e12
        Number of rows over the noise, n mu. If it is large, the constant and all columns have equal
        parts of the squared norm of a row. Otherwise columns with less variation have smaller
        parts.
    coarser : bool, default=True
        False uses only the finest resolution of numeric columns.
    trend_fraction : float, default=0.0
        Fraction of a numeric column's squared weights that belongs to its trend.

    Returns
    -------
    BlockDesign
    """
    constant_square = 1.0 / (len(terms) + 1)
    parts = np.sqrt(
        [
            signal_to_noise / MIN_SIGNAL_FOR_EQUAL_WEIGHTS + gini_impurity(term.counts)
            for term in terms
        ]
    )
    squares = (1.0 - constant_square) * parts / parts.sum()
    constant = Block(
        term=-1,
        weight=dyadic_weight(math.sqrt(constant_square)),
        groups=np.zeros(1, dtype=np.intp),
        counts=np.array([float(n_rows)]),
    )
    blocks = [constant]
    for j, (term, square) in enumerate(zip(terms, squares, strict=True)):
        ordered = "label" not in term.kinds
        bins = term.bins
        n_bins = int(bins[-1]) + 1
        resolution_groups = [
            groups[bins] for groups in resolutions(n_bins, coarser=coarser and ordered)
        ]
        has_trend = trend_fraction and ordered and len(term.counts) > MAX_CELLS_WITHOUT_TREND
        cells_square = square * (1.0 - trend_fraction) if has_trend else square
        weight = dyadic_weight(math.sqrt(cells_square / len(resolution_groups)))
        for groups in resolution_groups:
            counts = np.bincount(groups, weights=term.counts)
            cell_counts = None if len(counts) == len(groups) else term.counts
            block = Block(
                term=j,
                weight=weight,
                groups=groups,
                counts=counts,
                ordered=ordered,
                cell_counts=cell_counts,
            )
            blocks.append(block)
        if has_trend:
            weight = dyadic_weight(math.sqrt(trend_fraction * square))
            blocks.append(trend_block(j, term.counts, weight))
    return BlockDesign(blocks)


def trend_block(term, counts, weight):
    """Return a block of one feature that increases from cell to cell; 0 for missing values.

    The feature is the normal score of a cell's middle rank. It is approximately linear in a
    normally distributed column, or in the logarithm of an amount. A few rows of a rare class
    determine its weight from all cells together.

    Parameters
    ----------
    term : int
        Index of the term.
    counts : ndarray of shape (n_cells,)
        Noisy counts; the last one is of missing values.
    weight : float
        Bound on the magnitude of the feature.
    """
    # The small constant defines ranks even if all counts are 0.
    present = np.maximum(counts[:-1], 0.0) + 1e-9
    ranks = (np.cumsum(present) - 0.5 * present) / present.sum()
    scores = np.clip(ndtri(ranks) / LAST_NORMAL_SCORE, -1.0, 1.0)
    squares = np.array([float(scores**2 @ present)])
    groups = np.zeros(len(counts), dtype=np.intp)
    profile = np.append(scores, 0.0)
    return Block(term=term, weight=weight, groups=groups, counts=squares, profile=profile)


def gini_impurity(counts):
    """Return the probability that two random rows are in different cells, from noisy counts."""
    frequencies = counts / max(counts.sum(), 1.0)
    return float(np.sum(frequencies * (1.0 - frequencies)))


def resolutions(n_cells, *, coarser):
    """Return the mapping from the finest cells to the cells of each resolution, finest first.

    Parameters
    ----------
    n_cells : int
        Number of finest cells. The last one is of missing values and is never merged.
    coarser : bool
        If True, coarser resolutions are included, because neighboring cells are similar.

    Returns
    -------
    list of ndarray of shape (n_cells,)
        Increasing cell indices, starting with 0.
    """
    groups = [np.arange(n_cells)]
    while coarser and math.ceil(groups[-1][-1] / COARSENING_FACTOR) >= MIN_CELLS:
        coarse = groups[-1] // COARSENING_FACTOR
        coarse[-1] = coarse[-2] + 1
        groups.append(coarse)
    return groups


def joint_design(design, pairs, main_fraction):
    """Return the blocks of a design together with the blocks of pairs or trees.

    Parameters
    ----------
    design : BlockDesign
        Design of single columns.
    pairs : list of Pair or of Tree
        They have equal weights.
    main_fraction : float
        Part of the squared norm of a row that single columns have.
    """
    factor = math.sqrt(main_fraction)
    blocks = [
        replace(block, weight=dyadic_weight(factor * block.weight)) for block in design.blocks
    ]
    first = blocks[-1].term + 1
    weight = dyadic_weight(math.sqrt((1.0 - main_fraction) / len(pairs)))
    for term, pair in enumerate(pairs, start=first):
        counts = pair.most_counts
        blocks.append(Block(term=term, weight=weight, groups=np.arange(len(counts)), counts=counts))
    return BlockDesign(blocks)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair(FrozenValue):
    """Two terms of one column each, and the cells of their joint table.

    Parameters
    ----------
    indices : tuple of (int, int)
        Indices of the terms.
    edges : tuple of (ndarray, ndarray)
        Edges or categories of the table's rows and columns.
    groups : tuple of (ndarray, ndarray)
        The table's row, or column, of each cell of a term.
    margins : tuple of (ndarray, ndarray)
        Noisy counts of the table's rows and columns.
    """

    indices: tuple
    edges: tuple
    groups: tuple
    margins: tuple

    @property
    def shape(self):
        return tuple(map(len, self.margins))

    @property
    def most_counts(self):
        """Upper bounds on the cells' counts: the counts of their row and column."""
        return np.minimum.outer(*self.margins).ravel()

    def cells(self, column_cells):
        """Return the table's cell of each row of the data, from the cells of the terms."""
        i, j = self.indices
        table_rows = self.groups[0][column_cells[i]]
        table_columns = self.groups[1][column_cells[j]]
        return table_rows * self.shape[1] + table_columns

    def term(self, terms, n_rows):
        """Return the pair's term, with the counts that independent columns would have."""
        first, second = (terms[j] for j in self.indices)
        return Term(
            features=first.features + second.features,
            kinds=first.kinds + second.kinds,
            edges=self.edges,
            counts=np.multiply.outer(*self.margins) / n_rows,
        )


def make_pair(terms, indices, n_cells=TABLE_CELLS):
    """Return a pair whose table has about `n_cells` rows and columns, besides missing values."""
    edges, groups = zip(*(_axis(terms[j], n_cells) for j in indices), strict=True)
    counts = (terms[j].counts for j in indices)
    margins = tuple(np.bincount(g, weights=c) for g, c in zip(groups, counts, strict=True))
    return Pair(indices=indices, edges=edges, groups=groups, margins=margins)


def _axis(term, n_cells):
    """Return coarser edges of a term, and the coarse cell of each of its cells."""
    (edges,) = term.edges
    counts = term.counts
    if "label" not in term.kinds:
        bins = term.bins
        bin_counts = np.bincount(bins, weights=counts)
        starts = np.searchsorted(bins, merge_cells(bin_counts[:-1], n_cells, 0.0))
        groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts) - 1))
        return np.append(edges[starts], edges[-1]), np.append(groups, len(starts))
    # The most frequent categories have cells; the rest share the cell of other values.
    frequent = np.sort(np.argsort(-counts[: len(edges)], kind="stable")[: n_cells - 1])
    groups = np.full(len(counts), len(frequent))
    groups[frequent] = np.arange(len(frequent))
    groups[-1] = len(frequent) + 1
    return edges[frequent], groups


def append_pairs(cells, pairs):
    """Return joint codes that also contain the cells of pairs, or of trees."""
    sizes = [*cells.sizes, *(math.prod(pair.shape) for pair in pairs)]
    return JointCodes(
        cells,
        _column_and_pair_cells,
        pairs,
        sizes=sizes,
        n_units=cells.n_units,
        targets=cells.targets,
        row_weights=cells.row_weights,
    )


def _column_and_pair_cells(block, pairs):
    column_cells = block.column_cells()
    return [*column_cells, *(pair.cells(column_cells) for pair in pairs)]


def pair_sums(cells, pairs, scores, residuals, step):
    """Return the exact sums of residuals in the cells of all pairs' tables, one after another.

    Parameters
    ----------
    cells : JointCodes
    pairs : list of Pair
    scores : Scores
    residuals : callable
        Function of (scores, targets) that returns clipped residuals of shape (n_rows, n_outputs).
        It must be picklable.
    step : float
        Grid to which residuals are rounded.
    """
    totals = np.zeros((_ends(pairs)[-1], scores.bin_values[-1].shape[1]))
    return step * sum_over(cells, _add_to_pairs, totals, pairs, scores, residuals, step)


def _ends(pairs):
    return np.cumsum([math.prod(pair.shape) for pair in pairs])


def _add_to_pairs(totals, block, pairs, scores, residuals, step):
    steps = block.round_to_grid(residuals(scores(block), block.targets), step)
    column_cells = block.column_cells()
    for pair, total in zip(pairs, np.split(totals, _ends(pairs)[:-1]), strict=True):
        pair_cells = pair.cells(column_cells)[:, np.newaxis]
        total += one_hot_csr(pair_cells, [len(total)]).T.dot(steps)


def choose_pairs(pairs, noisy, noise_std, max_pairs):
    """Return the pairs with the most evidence for an interaction; post-processing of noisy sums.

    The statistic is the weighted sum of squared residual sums after the effects of rows and columns
    are removed, minus its expectation without an interaction, divided by its standard deviation.

    Parameters
    ----------
    pairs : list of Pair
    noisy : ndarray
        Noisy output of `pair_sums`.
    noise_std : float
        Standard deviation of the noise.
    max_pairs : int
        Maximum number of pairs.
    """
    evidence = []
    for pair, sums in zip(pairs, np.split(noisy, _ends(pairs)[:-1]), strict=True):
        table = sums.reshape(*pair.shape, -1)
        row_frequencies, column_frequencies = (
            margin / max(margin.sum(), 1.0) for margin in pair.margins
        )
        row_frequencies = row_frequencies[:, None, None]
        column_frequencies = column_frequencies[None, :, None]
        interaction = table - row_frequencies * table.sum(axis=0, keepdims=True)
        interaction = interaction - column_frequencies * interaction.sum(axis=1, keepdims=True)
        weights = np.broadcast_to(row_frequencies * column_frequencies, table.shape)
        null_std = noise_std**2 * math.sqrt(2.0 * np.sum(weights**2))
        statistic = np.sum(weights * (interaction**2 - noise_std**2)) / max(null_std, 1e-300)
        evidence.append(statistic)
    ranking = np.argsort(evidence)[::-1][:max_pairs]
    return [pairs[i] for i in ranking if evidence[i] > MIN_EVIDENCE]


def check_interactions(interactions, names, n_features):
    """Return the declared pairs of positions and the number of pairs to choose.

    The number is None for "auto".

    Raises
    ------
    ValueError
        If `interactions` is neither a number, nor "auto", nor a list of pairs of columns.
    """
    if is_auto(interactions):
        return [], None
    if isinstance(interactions, Integral):
        return [], check_integer(interactions, "interactions", 0)
    return column_pairs(interactions, names, n_features), 0


def all_pairs(terms, excluded):
    """Return all pairs of terms without those in `excluded`, with small tables."""
    candidates = [j for j in range(len(terms)) if j not in excluded]
    return [
        make_pair(terms, indices, CHOICE_CELLS) for indices in itertools.combinations(candidates, 2)
    ]
