"""Blocks of weights: terms at several resolutions, trends, and joint tables of columns."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from skdp.gam._smooth_blocks import WEIGHT_STEP, SmoothBlock, centered_loadings, smooth_loadings
from skdp.preprocessing._binning import column_pairs
from skdp.utils._validation import check_integer, is_auto
from skdp.utils._values import FrozenValue

# Factor of the smoothness constant: exact counts may be larger than the noisy ones.
SMOOTHNESS_MARGIN = 1.1
# Number of neighboring cells that are merged in the next coarser resolution.
COARSENING_FACTOR = 4
# Minimum number of cells at a coarser resolution, not counting the cell of missing values.
MIN_CELLS = 3
# Signal-to-noise ratio (n mu) below which columns with little variation receive smaller weights.
MIN_SIGNAL_FOR_EQUAL_WEIGHTS = 500.0
# A column with at most this number of cells, including the cell of missing values, has no trend.
MAX_CELLS_WITHOUT_TREND = 3
# Largest factor by which the features of trends are longer than their part of a row's norm.
MAX_TREND_FACTOR = 4.0
# Mean square of residuals relative to their squared clip, of which the sampling variance of a
# gradient is computed. It is at most 1/4 for two classes, and a typical value for numbers.
RESIDUAL_SQUARE = 0.2
# The normal score at which a trend ends, in standard deviations. On training rows of
# california_housing, R² is .0035 higher with 2 than with 3; with 2.5, results on the tables of
# classes do not differ.
LAST_NORMAL_SCORE = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Block(FrozenValue):
    """One resolution of one term.

    Parameters
    ----------
    term : int
        Index of the term; -1 for the constant.
    weight : float
        Value of a row's feature in its cell of the block.
    groups : ndarray of int
        The block's cell of each of the term's finest cells.
    counts : ndarray of float
        Noisy counts of the block's cells, or upper bounds on them.
    ordered : bool, default=False
        True if neighboring cells have similar values. The last cell, which contains missing values,
        has no neighbors.
    profile : ndarray of float, default=None
        For a trend, which is a block of one cell: factor of `weight` in each of the term's finest
        cells, from -1 to 1. `counts` is then the sum of the squared factors over the rows. None
        means 1 everywhere.
    cell_counts : ndarray of float, default=None
        Noisy counts of the term's finest cells. None if they are the cells of the block.
    most_counts : ndarray of float, default=None
        Upper bounds on the counts, for the step size. None if they are `counts`.
    """

    term: int
    weight: float
    groups: np.ndarray
    counts: np.ndarray
    ordered: bool = False
    profile: np.ndarray | None = None
    cell_counts: np.ndarray | None = None
    most_counts: np.ndarray | None = None

    table = None

    @property
    def size(self):
        return len(self.counts)

    @property
    def moments(self):
        """Second moments of the features, summed over the rows, from noisy counts."""
        return self.weight**2 * self.counts

    @property
    def max_moment(self):
        """Upper bound on the second moment of each feature, summed over the rows."""
        counts = self.counts if self.most_counts is None else self.most_counts
        return float(self.weight**2 * counts.max())

    def mean_square(self, n_rows):
        """Return the mean square of a trend, or of another block of one cell, from noisy counts."""
        return self.weight**2 * min(float(self.counts[0]) / n_rows, 1.0)

    @cached_property
    def features(self):
        """Feature of a row in each of the term's finest cells, a multiple of `WEIGHT_STEP`."""
        if self.profile is None:
            return np.full(len(self.groups), self.weight)
        # Rounding towards zero does not increase the norm of a row.
        return np.trunc(self.weight * self.profile / WEIGHT_STEP) * WEIGHT_STEP

    @cached_property
    def _feature_column(self):
        return self.features[:, np.newaxis]

    @cached_property
    def is_finest(self):
        """True if the block's cells are the term's finest cells, in their order."""
        return np.array_equal(self.groups, np.arange(self.size))

    @property
    def is_indicator(self):
        """True if a row has a feature in only one cell of the block."""
        return self.profile is None

    @property
    def is_trend(self):
        """True if the block has one feature that increases from cell to cell."""
        return self.profile is not None

    @property
    def key(self):
        """Value that is equal for blocks with equal features and counts."""
        return self.weight, self.counts.tobytes(), self.groups.tobytes()

    @property
    def matrix(self):
        """Features of each of the term's finest cells, as an array of shape (n_cells, size)."""
        is_member = np.equal.outer(self.groups, np.arange(self.size))
        return self.features[:, np.newaxis] * is_member

    @property
    def squared_norms(self):
        """Squared norm of a row's features in each of the term's finest cells; exact."""
        return self.features**2

    @property
    def squared_norm(self):
        """Largest squared norm of a row's features."""
        return float(self.squared_norms.max())

    def values(self, weights):
        """Return the values of the term's finest cells."""
        if not self.is_finest:
            weights = weights[self.groups]
        return self._feature_column * weights

    def gradient(self, sums):
        """Return the transposed features times sums over rows of the finest cells; exact."""
        products = self._feature_column * sums
        if self.is_finest:
            # Zero is added, so that no sum is a negative zero.
            return products + 0.0
        gradient = np.empty((self.size, sums.shape[1]))
        for output, values in enumerate(products.T):
            gradient[:, output] = np.bincount(self.groups, values, self.size)
        return gradient


def dyadic_weight(value):
    """Return the largest multiple of `WEIGHT_STEP` that is at most `value`."""
    return math.floor(value / WEIGHT_STEP) * WEIGHT_STEP


class BlockDesign:
    """The matrix of features, one block after another; see ``docs/theory/additive_models.md``.

    Parameters
    ----------
    blocks : list of Block
        The squared norms of a row's features in all blocks but trends add up to at most 1. With
        trends, a row may be longer; its residual is then multiplied by a factor that shortens the
        row to 1, see `skdp.gam._descent.shorten_rows`.

    Attributes
    ----------
    squared_norm : float
        Bound on the squared norm of a row's features.
    offsets : ndarray of shape (n_blocks + 1,)
        Index of the first feature of each block.
    size : int
        Number of features.
    decompositions : list or None
        Eigenvectors of the terms, once `skdp.gam._evidence` has computed them.
    min_strengths : dict of float to float
        Results of `skdp.gam._evidence.min_l2_reg_strength` by its second argument.
    """

    def __init__(self, blocks):
        self.blocks = blocks
        squares = [block.squared_norm for block in blocks]
        without_trends = [
            square for block, square in zip(blocks, squares, strict=True) if not block.is_trend
        ]
        if math.fsum(without_trends) > 1.0 or max(squares, default=0.0) > 1.0:
            raise ValueError("the squares of the blocks' weights add up to more than 1")
        self.squared_norm = math.fsum(squares)
        self.offsets = np.cumsum([0, *(block.size for block in blocks)])
        self.size = int(self.offsets[-1])
        self._starts, self._ends = self.offsets[:-1].tolist(), self.offsets[1:].tolist()
        self.decompositions = None
        self.min_strengths = {}

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
        for block, start, end in zip(self.blocks, self._starts, self._ends, strict=True):
            block_values = block.values(weights[start:end])
            values[block.term] = values.get(block.term, 0.0) + block_values
        return values

    @property
    def squared_norms(self):
        """Squared norms of a row's features in each term, in the form of `bin_values`; exact."""
        norms = {}
        for block in self.blocks:
            block_norms = block.squared_norms[:, np.newaxis]
            norms[block.term] = norms.get(block.term, 0.0) + block_norms
        return norms

    def rmatvec(self, sums):
        """Return the gradient: the exact product of the transposed design and sums over rows.

        Parameters
        ----------
        sums : dict of term to ndarray of shape (n_cells, n_outputs)
            Sums of residuals over the rows of each finest cell.

        Returns
        -------
        ndarray of shape (size, n_outputs)
        """
        return np.concatenate([block.gradient(sums[block.term]) for block in self.blocks])

    def weights_from(self, other, weights):
        """Return the model's weights in this design, given those in a shorter design.

        When joint terms are added, the features of all blocks shrink, because the squared weights
        of the blocks add up to at most 1. The model's weights grow by the same factors, so its
        scores stay the same; those of a trend change slightly, because its features are rounded.

        Parameters
        ----------
        other : BlockDesign
            The shorter design, whose blocks are the first blocks of this one, up to `Block.weight`,
            the scale of a block's features.
        weights : ndarray of shape (other.size, n_outputs)
            Coefficients of the features of `other`.

        Returns
        -------
        ndarray of shape (size, n_outputs)
            Coefficients of the features of this design; those of further blocks are 0.
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

        The bound is computed from noisy counts, so it holds only up to their noise.
        """
        bound = sum(block.max_moment for block in self.blocks)
        # A row whose features have norm z > 1 counts with the factor 1 / z, so its contribution has
        # the eigenvalue z.
        max_norm = math.sqrt(max(self.squared_norm, 1.0))
        return min(max_norm * n_rows, SMOOTHNESS_MARGIN * bound)


def main_design(
    terms,
    n_rows,
    signal_to_noise=1e12,
    *,
    coarser=True,
    trend_fraction=0.0,
    is_smooth=False,
    min_missing=None,
):
    """Return the blocks of the constant and all columns; numeric ones have several resolutions.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts.
    n_rows : int
        Public number of rows.
    signal_to_noise : float, default=1e12
        Number of rows over the noise, n mu. If this is large, the constant and all columns receive
        equal parts of a row's squared norm. Otherwise, columns with less variation receive smaller
        parts.
    coarser : bool, default=True
        False uses only the finest resolution of numeric columns.
    trend_fraction : float, default=0.0
        Fraction of a numeric column's squared weights that its trend receives.
    is_smooth : bool, default=False
        True if a smooth prior on the bins of numeric columns replaces the coarser resolutions.
    min_missing : float, default=None
        If given, the smooth features of a column do not represent the constant, and those of its
        missing values are 0 unless their noisy count is larger than this.

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
        has_trend = trend_fraction and ordered and len(term.counts) > MAX_CELLS_WITHOUT_TREND
        cells_square = square
        if has_trend:
            cells_square = square * (1.0 - trend_fraction)
        if is_smooth and ordered:
            weight = dyadic_weight(math.sqrt(cells_square))
            blocks.append(_smooth_block(j, term, weight, min_missing))
        else:
            blocks.extend(_resolution_blocks(j, term, cells_square, coarser=coarser and ordered))
        if has_trend:
            weight = dyadic_weight(math.sqrt(trend_fraction * square))
            blocks.append(trend_block(j, term.counts, weight))
    return BlockDesign(_lengthen_trends(blocks, n_rows, signal_to_noise))


def _lengthen_trends(blocks, n_rows, signal_to_noise):
    """Return the blocks with longer trends, so that the mean squared norm of a row is 1.

    A trend reaches its largest magnitude only in the outermost cells, and its mean square is about
    a quarter of the largest one. So the features of most rows would be shorter than 1, and weaker
    than the noise allows. Trends are multiplied by a common factor of at least 1, which is computed
    from noisy counts. The less noise there is in the gradient of a trend relative to its sampling
    error, the closer to 1 the factor is: longer trends are penalized less than bins.
    """
    trends = [block for block in blocks if block.is_trend]
    mean_square = math.fsum(block.mean_square(n_rows) for block in trends)
    if mean_square <= 0.0:
        return blocks
    rest = math.fsum(block.weight**2 for block in blocks if not block.is_trend)
    # Variances of the gradient of a trend, in units of the squared clip.
    noise_variance = (n_rows / signal_to_noise) ** 2
    sampling_variance = n_rows * RESIDUAL_SQUARE * mean_square / len(trends)
    share = min(noise_variance / sampling_variance, 1.0)
    squared_factor = 1.0 + share * max((1.0 - rest) / mean_square - 1.0, 0.0)
    factor = min(math.sqrt(squared_factor), MAX_TREND_FACTOR)
    return [
        replace(block, weight=min(dyadic_weight(factor * block.weight), 1.0))
        if block.is_trend
        else block
        for block in blocks
    ]


def _resolution_blocks(index, term, square, *, coarser):
    """Return equally weighted blocks of a term's bins, or categories, one per resolution."""
    bins = term.bins
    resolution_groups = [groups[bins] for groups in resolutions(int(bins[-1]) + 1, coarser=coarser)]
    weight = dyadic_weight(math.sqrt(square / len(resolution_groups)))
    blocks = []
    for groups in resolution_groups:
        counts = np.bincount(groups, weights=term.counts)
        cell_counts = None
        if len(counts) != len(groups):
            cell_counts = term.counts
        block = Block(
            term=index,
            weight=weight,
            groups=groups,
            counts=counts,
            ordered="label" not in term.kinds,
            cell_counts=cell_counts,
        )
        blocks.append(block)
    return blocks


def _smooth_block(index, term, weight, min_missing):
    """Return the block of a numeric term whose neighboring bins have similar values."""
    bins = term.bins
    if min_missing is None:
        loadings = smooth_loadings(int(bins[-1]), True)
    else:
        loadings = centered_loadings(int(bins[-1]), bool(term.counts[-1] > min_missing))
    return SmoothBlock(term=index, weight=weight, loadings=loadings[bins], cell_counts=term.counts)


def trend_block(term, counts, weight):
    """Return a block with one feature that increases from cell to cell and is 0 if missing.

    The feature is the normal score of a cell's middle rank. It is approximately linear in a
    normally distributed column, and in the logarithm of amounts. Even a few rows of a rare class
    determine its weight, because all cells contribute.

    Parameters
    ----------
    term : int
        Index of the term.
    counts : ndarray of shape (n_cells,)
        Noisy counts; the last one counts missing values.
    weight : float
        Bound on the magnitude of the feature.
    """
    # The small constant keeps ranks defined even if all counts are 0.
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
        Number of finest cells. The last one contains missing values and is never merged.
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


def joint_design(design, joint_terms, main_fraction):
    """Return the blocks of a design together with the blocks of tables or trees.

    Parameters
    ----------
    design : BlockDesign
        Design of single columns.
    joint_terms : list of Table or of Tree
        They have equal weights.
    main_fraction : float
        Part of a row's squared norm that single columns receive.
    """
    factor = math.sqrt(main_fraction)
    blocks = [
        replace(block, weight=dyadic_weight(factor * block.weight)) for block in design.blocks
    ]
    first = blocks[-1].term + 1
    weight = dyadic_weight(math.sqrt((1.0 - main_fraction) / len(joint_terms)))
    for term, joint in enumerate(joint_terms, start=first):
        blocks.append(joint.block(term, weight))
    return BlockDesign(blocks)


def check_interactions(interactions, names, n_features):
    """Return the declared pairs, as positions, and the number of pairs to choose.

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
