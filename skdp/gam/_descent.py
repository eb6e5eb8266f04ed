"""Noisy gradient descent on the cells of a table: blocks, packed codes, exact sums."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._data._tables import row_blocks
from skdp.utils import sum_grid

__all__ = [
    "MOST_STEPS",
    "Block",
    "Layout",
    "PackedCells",
    "Schedule",
    "descend",
    "dyadic_weight",
    "residual_grid",
    "residual_sums",
    "residuals_at",
]

# Weights of blocks are multiples of this, so that a weight times a sum is exact.
WEIGHT_STEP = 2.0**-12
BLOCK_ROWS = 1 << 15
LARGEST_PACK = 1 << 12
FEWEST_STEPS, MOST_TIMES = 10, 7.0
# The condition number is kept at most this by the penalty.
CONDITION = 22_500.0
MOST_STEPS = 2_200
# The step size allows for counts that are larger than their noisy ones.
MARGIN = 1.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
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
    """

    term: int
    weight: float
    groups: np.ndarray
    counts: np.ndarray

    @property
    def size(self):
        return len(self.counts)


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
        if math.fsum(block.weight**2 for block in blocks) > 1.0:
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
            own = block.weight * weights[start : start + block.size][block.groups]
            known = tables.get(block.term)
            tables[block.term] = own if known is None else known + own
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
            np.add.at(total, block.groups, sums[block.term])
            parts.append(block.weight * total)
        return np.concatenate(parts)

    def moved_from(self, other, weights):
        """Return the weights by which the blocks of a shorter layout have the values they had."""
        pairs = zip(self.blocks, other.blocks, strict=False)
        factors = [np.full(block.size, old.weight / block.weight) for block, old in pairs]
        result = np.zeros((self.size, weights.shape[1]))
        result[: other.size] = np.concatenate(factors)[:, None] * weights
        return result

    @property
    def weights_sum(self):
        """The L1 norm of a row's features."""
        return math.fsum(block.weight for block in self.blocks)

    def bend(self, n_rows):
        """Return what bounds the largest eigenvalue of the features' second moment, up to noise."""
        largest = sum(block.weight**2 * block.counts.max() for block in self.blocks)
        return min(float(n_rows), MARGIN * largest)


class PackedCells:
    """The cells of rows, several columns in one number.

    Parameters
    ----------
    sizes : list of int
        How many cells each column has.
    n_rows : int
    """

    def __init__(self, sizes, n_rows):
        largest = min(LARGEST_PACK, max(n_rows // 4, 64))
        packs, product = [[]], 1
        for j, size in enumerate(sizes):
            if product * size > largest and packs[-1]:
                packs.append([])
                product = 1
            packs[-1].append(j)
            product *= size
        self.sizes, self.n_rows = sizes, n_rows
        self._packs = [np.array(pack, dtype=np.intp) for pack in packs]
        self._shapes = [tuple(sizes[j] for j in pack) for pack in packs]
        types = [np.min_scalar_type(math.prod(shape) - 1) for shape in self._shapes]
        self._codes = [np.empty(n_rows, dtype=each) for each in types]

    def set(self, rows, cells):
        """Set the cells of a slice of rows, of shape (n_columns, rows in the slice)."""
        for codes, pack, shape in zip(self._codes, self._packs, self._shapes, strict=True):
            codes[rows] = np.ravel_multi_index(tuple(cells[pack]), shape)

    def column(self, j, rows):
        """Return the cells of one column for a slice of rows."""
        for codes, pack, shape in zip(self._codes, self._packs, self._shapes, strict=True):
            if j in pack:
                return np.unravel_index(codes[rows], shape)[int(j - pack[0])]

    def scores(self, rows, tables):
        """Return the sum of the columns' values for a slice of rows.

        Parameters
        ----------
        rows : slice
        tables : list of ndarray of shape (n_packed_cells, n_outputs)
            From `packed`.
        """
        total = 0.0
        for codes, table in zip(self._codes, tables, strict=True):
            total = total + np.take(table, codes[rows], axis=0)
        return total

    def packed(self, tables):
        """Return the values of packed cells from those of each column's cells."""
        result = []
        for pack, shape in zip(self._packs, self._shapes, strict=True):
            total = np.zeros((*shape, tables[pack[0]].shape[1]))
            for axis, j in enumerate(pack):
                total += np.expand_dims(tables[j], [k for k in range(len(shape)) if k != axis])
            result.append(total.reshape(math.prod(shape), -1))
        return result

    def add_sums(self, rows, residuals, totals):
        """Add a slice's residuals, whole numbers of shape (n_outputs, rows), to packed cells."""
        for codes, total in zip(self._codes, totals, strict=True):
            places = codes[rows].astype(np.intp)
            for k, each in enumerate(residuals):
                total[:, k] += np.bincount(places, weights=each, minlength=len(total))

    def zeros(self, n_outputs):
        """Return the packed cells' totals before anything is added."""
        return [np.zeros((math.prod(shape), n_outputs)) for shape in self._shapes]

    def unpacked(self, totals):
        """Return the sums of each column's cells from those of packed cells."""
        sums = {}
        for total, pack, shape in zip(totals, self._packs, self._shapes, strict=True):
            cube = total.reshape(*shape, -1)
            for axis, j in enumerate(pack):
                others = tuple(k for k in range(len(shape)) if k != axis)
                sums[int(j)] = cube.sum(axis=others)
        return sums


def residuals_at(weights, cells, layout, residuals):
    """Return a function of a slice of rows: their residuals at some weights."""
    tables = layout.tables(weights)
    packed = cells.packed([tables[j] for j in range(len(cells.sizes))])

    def clipped(rows):
        return residuals(cells.scores(rows, packed) + tables[-1], rows)

    return clipped


def residual_sums(cells, layout, residuals, weights, step):
    """Return the exact gradient: sums of residuals in the cells of all blocks, times weights.

    Parameters
    ----------
    cells : PackedCells
    layout : Layout
    residuals : callable
        Maps (scores, rows) to clipped residuals of shape (rows, n_outputs).
    weights : ndarray of shape (layout.size, n_outputs)
    step : float
        The grid of residuals.

    Returns
    -------
    ndarray of shape (layout.size, n_outputs)
    """
    clipped = residuals_at(weights, cells, layout, residuals)
    totals = cells.zeros(weights.shape[1])
    for rows in row_blocks(cells.n_rows, BLOCK_ROWS):
        # Towards zero: no row's norm grows.
        cells.add_sums(rows, np.trunc(clipped(rows).T / step), totals)
    sums = cells.unpacked(totals)
    sums[-1] = sums[0].sum(axis=0, keepdims=True)
    return step * layout.gather(sums)


def residual_grid(clip, n_rows):
    """Return the grid on which weighted sums of clipped residuals are exact in float64."""
    return sum_grid(clip, n_rows) / WEIGHT_STEP


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps of Nesterov's method on the squared-norm penalised loss.

    Parameters
    ----------
    bend : float
        What bounds the loss's curvature.
    strength : float
        Of the penalty, lambda / 2 times the squared norm.
    quiet : float
        What it is, over what the noise asks for.
    """

    bend: float
    strength: float
    quiet: float

    @property
    def smoothness(self):
        return self.bend + self.strength

    @property
    def n_steps(self):
        """Twice the root of the condition number, or more where noise is small beside steps."""
        times = min(max(math.log(self.quiet), 1.0), MOST_TIMES)
        return max(int(2.0 * times * math.sqrt(self.smoothness / self.strength)), FEWEST_STEPS)

    @property
    def momentum(self):
        root = math.sqrt(self.smoothness / self.strength)
        return (root - 1.0) / (root + 1.0)


def descend(gradient, schedule, start, radius, *, averaged=None, after_step=None):
    """Return the mean of the last iterates.

    Parameters
    ----------
    gradient : callable
        Maps weights to the noisy gradient of the summed loss.
    schedule : Schedule
    start : ndarray
    radius : float
        Iterates are kept within this norm.
    averaged : int, default=None
        Of how many of the last iterates the mean is returned; None takes half of them.
    after_step : callable, default=None
        Told how many steps were taken.
    """
    weights = ahead = start
    averaged = averaged or (schedule.n_steps + 1) // 2
    mean, first = np.zeros_like(start), schedule.n_steps - averaged
    for number in range(schedule.n_steps):
        slope = gradient(ahead) + schedule.strength * ahead
        moved = ahead - slope / schedule.smoothness
        norm = np.linalg.norm(moved)
        if norm > radius:
            moved *= radius / norm
        ahead = moved + schedule.momentum * (moved - weights)
        weights = moved
        if number >= first:
            mean += weights
        if after_step is not None:
            after_step(number + 1)
    return mean / averaged
