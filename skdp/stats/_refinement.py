"""The second step of a search for bounds: finer bounds of columns that occupy one or two bins.

Seconds since 1970 within a day, or measurements with a large offset, are in one or two of the
exponentially spaced bins, which are much wider than the range of the values. These bins are divided
into equal cells at several levels, from few wide cells to many narrow ones. The cells are counted
with noise, and a column is followed from level to level as long as few cells contain it.
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

# Fraction of the search's epsilon, or of its mu**2 with Gaussian noise, for the refinement. It
# raises the threshold of ordinary columns by 18 % (8 % with Gaussian noise). Tuned with MAX_NOISE
# and DEVIATIONS on synthetic narrow columns of 2,000 and 4,000 rows and on the training rows of
# twenty small tables, by how well values are resolved within the bounds.
REFINEMENT_FRACTION = 0.15
# Number of equal cells of each column at each level; each number divides the next. The last one
# sets the narrowest range that is found, 2**-13 of a bin. A column in one or two cells is searched
# in few cells of the next level, so that the noise of their sums stays small.
LEVELS = (1 << 4, 1 << 9, 1 << 13)
N_CELLS = LEVELS[-1]
# Minimum ratio of the old to the new width of bounds; ordinary columns keep their bounds.
MIN_GAIN = 4
# Fraction of a column's noisy count that its new bounds must contain, minus DEVIATIONS standard
# deviations of the noise.
COVERAGE = 0.98
DEVIATIONS = 1.0
# A range that contains less, but by fewer standard deviations than this, leaves it open whether the
# column is narrow.
DEVIATIONS_OF_DOUBT = 3.0
# Maximum standard deviation of the noise of a range of cells, as a fraction of the column's noisy
# count. With more noise, the counts cannot show that the range contains the column.
MAX_NOISE = 0.2
# Relative slack for the rounding of noise multipliers: it raises the noise, never lowers it.
SLACK = 1.0 + 2.0**-40
# Minimum number of values of a block.
BLOCK_VALUES = 1 << 16


@dataclass(frozen=True)
class Refined:
    """Bounds of one column after the second step.

    Parameters
    ----------
    low, high : float
    is_finer : bool
        True if they differ from the bounds of the first step.
    is_seen : bool
        True if the noise was small enough to decide whether finer bounds contain the column.
    """

    low: float
    high: float
    is_finer: bool
    is_seen: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinementPlan(PlanValue):
    r"""Plan of finer bounds of narrow columns, from noisy counts of equal cells of their bins.

    The first step released which columns are narrow, and their bounds. Given these, a row is in at
    most one cell of each level of each of the k narrow columns. So the counts of all cells of L
    levels change by at most m k L in L1 norm and :math:`\sqrt{m k L}` in L2 norm, with m = 1 under
    add/remove and 2 under replace-one. The noise is calibrated to k, so that the cost is the same
    for every result of the first step, and the two steps compose adaptively.

    Parameters
    ----------
    guarantee : Guarantee
        Guarantee of the whole search.
    n_columns : int
        Number of columns, some of which may be narrow.
    whole : GeometricMechanism, LaplaceMechanism or GaussianMechanism
        Mechanism of a search with one step that has the cost of both.
    share : float
        Epsilon of the refinement if the noise is not Gaussian.

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
        """Privacy event of the refinement, for any number of narrow columns."""
        if isinstance(self.whole, GaussianMechanism):
            return Gaussian(self.whole.noise_multiplier / sqrt(REFINEMENT_FRACTION))
        return PureDP(self.share)

    def mechanism(self, n_narrow):
        """Return the mechanism for the counts of the cells of `n_narrow` columns."""
        l1_sensitivity = n_narrow * len(LEVELS) * self.guarantee.neighbors.sensitivity_factor
        if isinstance(self.whole, GaussianMechanism):
            l2_sensitivity = nextafter(sqrt(l1_sensitivity), inf)
            return gaussian_part(self.whole, REFINEMENT_FRACTION, l2_sensitivity)
        return type(self.whole)(self.share, l1_sensitivity)

    @property
    def stage(self):
        """The stage for a privacy statement, with the noise for the largest number of columns."""
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
            Noisy number of values of each column from the first step, and the standard deviation
            of its noise.
        source : RandomSource
            The source that the charge returned.
        persons : Persons, default=None
            Person of each row.

        Returns
        -------
        dict of int to Refined
            The bounds by index, for each narrow column.
        """
        narrow = np.flatnonzero(~np.isnan(low))
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
        refined = {}
        for j, column_counts in zip(narrow.tolist(), noisy, strict=True):
            refined[j] = refined_bounds(
                column_counts, low[j], high[j], totals[j], totals_std[j], std
            )
        return refined


def counts_of_levels(cells):
    """Return the counts of the cells of all levels, from the counts of the last level.

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
    """Return a Gaussian mechanism whose mu**2 is a fraction of another mechanism's mu**2."""
    multiplier = whole.noise_multiplier / sqrt(fraction) * SLACK
    return GaussianMechanism.from_scale(multiplier * sensitivity * SLACK, sensitivity, whole.delta)


def refined_bounds(noisy, low, high, total, total_std, std):
    """Return the `Refined` bounds of one column.

    At each level the shortest range of cells that contains the column is chosen, if it is at most a
    quarter of the range of the previous level.

    Parameters
    ----------
    noisy : ndarray of shape (sum(LEVELS),)
        Noisy counts of equal cells between `low` and `high`, level by level.
    low, high : float
    total, total_std : float
        Noisy number of values from the first step, and the standard deviation of its noise.
    std : float
        Standard deviation of the noise in a count.
    """
    first = 0
    last = 1
    n_cells = 1
    is_seen = True
    for size, counts in zip(LEVELS, np.split(noisy, np.cumsum(LEVELS)[:-1]), strict=True):
        start = first * (size // n_cells)
        end = last * (size // n_cells)
        cell_range, is_seen = _shortest_range(counts[start:end], total, total_std, std)
        if cell_range is None:
            break
        first = start + cell_range[0]
        last = start + cell_range[1]
        n_cells = size
    if n_cells == 1:
        return Refined(low, high, is_finer=False, is_seen=is_seen)
    # Values that the noise hides, such as tails, may be next to the range.
    margin = max(1, (last - first) // 4)
    first = max(0, first - margin)
    last = min(n_cells, last + margin)
    width = (high - low) / n_cells
    return Refined(low + first * width, low + last * width, is_finer=True, is_seen=is_seen)


def _shortest_range(counts, total, total_std, std):
    """Return the shortest range of cells that contains a column.

    Returns
    -------
    cell_range : tuple of (int, int) or None
        The first cell and the one after the last; None if no range of at most a quarter of the
        cells contains the column.
    is_certain : bool
        False if the noise may hide a range that contains it.
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
    # A NumPy warning would reveal a value that overflows. Every operation is row-wise to the last
    # bit.
    with np.errstate(all="ignore"):
        # Bins of negative numbers contain their upper ends.
        is_inside = (values >= low) & (values <= high)
        cells = (values - low) / ((high - low) / N_CELLS)
    cells = np.minimum(np.where(is_inside, cells, 0.0).astype(np.int64), N_CELLS - 1)
    cells += np.arange(len(narrow)) * N_CELLS
    if row_weights is not None:
        row_weights = np.broadcast_to(row_weights[:, np.newaxis], cells.shape)[is_inside]
    counts += weighted_bincount(cells[is_inside], row_weights, counts.size)
