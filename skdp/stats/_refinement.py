"""The second step of a search for bounds: finer bounds of columns that lie in few of its bins.

Seconds since 1970 within a day, or measurements around a large offset, lie in one or two of the
exponentially spaced bins, whose width says nothing of theirs. Their bins are divided into equal
cells at several levels, from few wide cells to many narrow ones, which are counted with noise: a
column is followed from level to level, as long as a small part of the cells holds it.
"""

from dataclasses import dataclass
from math import hypot, inf, nextafter, sqrt

import numpy as np

from skdp._data._parts import Rows
from skdp._data._persons import count_over, row_weights_of, weighted_bincount
from skdp.accounting import Gaussian, PureDP
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import PlanValue
from skdp.mechanisms._stages import Stage

# Fraction of the search's epsilon, or of its mu**2 with Gaussian noise, that the refinement has.
# Ordinary columns pay for it by a threshold that is 18 % higher (8 % with Gaussian noise). Chosen
# with MAX_NOISE and DEVIATIONS on made narrow columns of 2,000 and 4,000 rows and on the training
# rows of twenty small tables, by how well columns are told apart within the bounds.
REFINEMENT_FRACTION = 0.15
# Number of equal cells of each column at each level; each divides the next. The last one sets how
# narrow a column may be: 2**-13 of its bin. From level to level a column in one or two cells is
# told apart by few cells more, so that the noise of their sums stays small.
LEVELS = (1 << 4, 1 << 9, 1 << 13)
N_CELLS = LEVELS[-1]
# The bounds of a column are replaced only by bounds that are so many times narrower, so that those
# of ordinary columns stay.
MIN_GAIN = 4
# Fraction of a column's noisy count that its new bounds must hold, up to so many standard
# deviations of the noise.
COVERAGE = 0.98
DEVIATIONS = 1.0
# Ranges that hold less, but not by so many deviations, leave it open whether a column is narrow.
DEVIATIONS_OF_DOUBT = 3.0
# Cells whose noise has a larger standard deviation than this fraction of the column's noisy count
# cannot show that they hold the column.
MAX_NOISE = 0.2
# Relative slack for the rounding of noise multipliers: raises noise, never lowers it.
SLACK = 1.0 + 2.0**-40
BLOCK_VALUES = 1 << 16


@dataclass(frozen=True)
class Refined:
    """Bounds of one column after the second step.

    Parameters
    ----------
    low, high : float
    is_finer : bool
        True if they are other bounds than those of the first step.
    is_seen : bool
        True if the noise was small enough to tell whether finer bounds hold the column.
    """

    low: float
    high: float
    is_finer: bool
    is_seen: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinementPlan(PlanValue):
    r"""Finer bounds of narrow columns, from noisy counts of equal cells between their bounds.

    Which columns are narrow, and their bounds, was released by the first step. Given these, a row
    is in at most one cell of each level of each of the k narrow columns, so that counts of all
    cells of L levels move by m k L in L1 norm and by :math:`\sqrt{m k L}` in L2 norm, with m = 1
    under add/remove and 2 under replace-one. The noise is calibrated to this k: the price is the
    same for every outcome of the first step, so that the two steps compose adaptively.

    Parameters
    ----------
    guarantee : Guarantee
        Of the whole search.
    n_columns : int
        The number of columns of which some may be narrow.
    whole : GeometricMechanism, LaplaceMechanism or GaussianMechanism
        What the whole search would release if it had one step.
    share : float
        The epsilon that is left for the refinement where the noise is not Gaussian.

    References
    ----------
    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022 (adaptive composition).
    """

    guarantee: object
    n_columns: int
    whole: object
    share: float

    @property
    def event(self):
        """The price for every number of narrow columns."""
        if isinstance(self.whole, GaussianMechanism):
            return Gaussian(self.whole.noise_multiplier / sqrt(REFINEMENT_FRACTION))
        return PureDP(self.share)

    def mechanism(self, n_narrow):
        """Return the noise on the cells of some number of narrow columns."""
        moved = n_narrow * len(LEVELS) * self.guarantee.neighbors.sensitivity_factor
        if isinstance(self.whole, GaussianMechanism):
            return gaussian_part(self.whole, REFINEMENT_FRACTION, nextafter(sqrt(moved), inf))
        return type(self.whole)(self.share, moved)

    @property
    def stage(self):
        """The stage of a privacy statement, with the noise for as many narrow columns as can be."""
        mechanism = self.mechanism(self.n_columns)
        return Stage(
            name="finer bounds of narrow columns",
            law=f"{mechanism.name} on equal cells of {len(LEVELS)} levels",
            scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            event=self.event,
        )

    def run(self, X, low, high, totals, totals_std, source, persons=None):
        """Release finer bounds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Numbers, read block by block.
        low, high : ndarray of shape (n_columns,)
            The bounds that the first step released; NaN for columns that are not narrow.
        totals, totals_std : ndarray of shape (n_columns,)
            The noisy counts of the first step, of what is likely to belong to the columns, and the
            standard deviations of their noise.
        source : RandomSource
            What the charge returned.
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        dict of int to Refined
            One for each narrow column.
        """
        narrow = np.flatnonzero(low == low)
        if not len(narrow):
            return {}
        size = len(narrow) * N_CELLS
        table = Rows.wrap(X).with_block_size(max(1, max(BLOCK_VALUES, size) // X.shape[1]))
        args = size, narrow, low[narrow], high[narrow]
        counts = count_over(table, _add_cells, *args, row_weights=row_weights_of(persons))
        mechanism = self.mechanism(len(narrow))
        exact = counts_of_levels(counts.reshape(len(narrow), N_CELLS))
        noisy = mechanism.release(exact.ravel(), random_state=source).reshape(exact.shape)
        std = mechanism.deviation(exact.size)
        return {
            j: refined_bounds(own, low[j], high[j], totals[j], totals_std[j], std)
            for j, own in zip(narrow.tolist(), noisy, strict=True)
        }


def counts_of_levels(cells):
    """Return the counts of the cells of all levels, from those of the last one.

    Parameters
    ----------
    cells : ndarray of shape (n_columns, N_CELLS)

    Returns
    -------
    ndarray of shape (n_columns, sum(LEVELS))
    """
    levels = [cells.reshape(len(cells), size, -1).sum(axis=2) for size in LEVELS]
    return np.concatenate(levels, axis=1)


def gaussian_part(whole, fraction, sensitivity):
    """Return Gaussian noise of a sensitivity whose mu**2 is a fraction of another one's."""
    multiplier = whole.noise_multiplier / sqrt(fraction) * SLACK
    return GaussianMechanism.from_scale(multiplier * sensitivity * SLACK, sensitivity, whole.delta)


def refined_bounds(noisy, low, high, total, total_std, std):
    """Return the `Refined` bounds of one column.

    At each level the shortest range of cells that holds the column is taken, if it is at most a
    quarter of what the level before left.

    Parameters
    ----------
    noisy : ndarray of shape (sum(LEVELS),)
        Noisy counts of equal cells between `low` and `high`, level by level.
    low, high : float
    total, total_std : float
        The noisy count of the column, from the first step, and the standard deviation of its noise.
    std : float
        The standard deviation of the noise in a count.
    """
    first = 0
    last = 1
    n_cells = 1
    is_seen = True
    for size, counts in zip(LEVELS, np.split(noisy, np.cumsum(LEVELS)[:-1]), strict=True):
        start, end = first * (size // n_cells), last * (size // n_cells)
        holding, is_seen = _shortest_range(counts[start:end], total, total_std, std)
        if holding is None:
            break
        first = start + holding[0]
        last = start + holding[1]
        n_cells = size
    if n_cells == 1:
        return Refined(low, high, is_finer=False, is_seen=is_seen)
    # What the noise hides, tails for example, may be beside the cells.
    margin = max(1, (last - first) // 4)
    first = max(0, first - margin)
    last = min(n_cells, last + margin)
    width = (high - low) / n_cells
    return Refined(low + first * width, low + last * width, is_finer=True, is_seen=is_seen)


def _shortest_range(counts, total, total_std, std):
    """Return the shortest range of cells that holds a column, and whether the noise shows it.

    Returns
    -------
    holding : tuple of (int, int) or None
        None if no range of a quarter of the cells holds it.
    is_certain : bool
        False if a range of these cells may hold it that the noise hides.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    is_certain = True
    for length in range(1, len(counts) // MIN_GAIN + 1):
        noise = hypot(std * sqrt(length), total_std)
        if noise > MAX_NOISE * total:
            return None, False
        inside = sums[length:] - sums[:-length]
        start = int(inside.argmax())
        if inside[start] >= COVERAGE * total - DEVIATIONS * noise:
            return (start, start + length), True
        is_certain &= bool(inside[start] < COVERAGE * total - DEVIATIONS_OF_DOUBT * noise)
    return None, is_certain


def _add_cells(counts, block, row_weights, narrow, low, high):
    values = np.asarray(block, dtype=np.float64)[:, narrow]
    # No warning may tell of a value that overflows. Every operation is row-wise to the last bit.
    with np.errstate(all="ignore"):
        # Bins of negative numbers hold their upper ends.
        is_inside = (values >= low) & (values <= high)
        places = (values - low) / ((high - low) / N_CELLS)
    places = np.minimum(np.where(is_inside, places, 0.0).astype(np.int64), N_CELLS - 1)
    places += np.arange(len(narrow)) * N_CELLS
    if row_weights is not None:
        row_weights = np.broadcast_to(row_weights[:, np.newaxis], places.shape)[is_inside]
    counts += weighted_bincount(places[is_inside], row_weights, counts.size)
