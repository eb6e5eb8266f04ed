"""Second step of a search for bounds: finer bounds for columns that occupy one or two bins.

Seconds since 1970 within a day, or measurements with a large offset, are in one or two of the
exponentially spaced bins, which are much wider than the range of the values. The range of such a
column is divided into equal cells, which are counted with noise. If a few cells contain the column,
they become its new range, which is divided again at the next level. This ends when the counts show
that the values are spread over the range, or when no levels are left.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import hypot, inf, nextafter, sqrt

import numpy as np

from skdp._data._parts import Rows
from skdp._data._persons import count_over, row_weights_of, weighted_bincount
from skdp.accounting import Gaussian, PureDP
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._stages import Stage
from skdp.utils._documents import count_of
from skdp.utils._units import UnitText
from skdp.utils._values import FrozenValue

# Fraction of the search's epsilon, or of its mu**2 with Gaussian noise, for the refinement. It
# raises the threshold of ordinary columns by 18 % (8 % with Gaussian noise). Tuned, together with
# MAX_NOISE and DEVIATIONS, on synthetic narrow columns of 2,000 and 4,000 rows and on the training
# rows of twenty small tables, for the resolution of values within the bounds.
REFINEMENT_FRACTION = 0.15
# Number of equal cells at the first level. Few cells keep the noise of their sums small, so
# columns that fill their bins are recognized.
FIRST_CELLS = 1 << 4
# Minimum number of cells at later levels. Beyond it, the number is the largest for which the sum of
# a quarter of the cells has a standard deviation of at most MAX_NOISE_OF_LONG_RANGE of the rows.
# With only three levels, the noise is large, so the third level has 16 cells.
MIN_CELLS = 1 << 5
MIN_CELLS_OF_THIRD_LEVEL = 1 << 4
MAX_CELLS = 1 << 9
# Number of levels: the largest number for which a count has a standard deviation of at most
# MAX_LEVEL_NOISE of the rows. Fewer levels mean less noise; more levels find narrower columns.
MIN_LEVELS = 3
MAX_LEVELS = 6
MAX_LEVEL_NOISE = 0.05
# A column with values in only one or two cells may be narrower than the search can resolve, or have
# a single value. Its cells are at least this fraction of its first range, so that rare other values
# do not become huge when scaled.
MIN_UNRESOLVED_CELL = 2.0**-14
# Minimum width of new bounds relative to the magnitude of the values. With 2**20 doubles between
# the bounds, estimators can divide them into bins or grid points.
MIN_RELATIVE_WIDTH = 2.0**-32
# Minimum ratio of the old to the new width of bounds. Ordinary columns thus keep their bounds.
MIN_GAIN = 4
# Fraction of a column's noisy count that its new bounds must contain, up to DEVIATIONS standard
# deviations of the noise.
COVERAGE = 0.98
DEVIATIONS = 1.0
# If a range falls short of that fraction by fewer standard deviations than this, it remains open
# whether the column is narrow.
DEVIATIONS_OF_DOUBT = 3.0
# Maximum standard deviation of the noise in a range of cells, as a fraction of the column's noisy
# count. With more noise, the counts cannot show that the range contains the column.
MAX_NOISE = 0.2
# The same maximum at later levels, for ranges of more than a fraction of 1 / LONG_RANGE of the
# cells. With more noise, one of many ranges might be chosen by chance, and other values would be
# lost.
MAX_NOISE_OF_LONG_RANGE = 0.08
LONG_RANGE = 8
# Values in at most this number of adjacent cells may be close to an edge between two cells, and
# fill only a small part of both. If there are more such cells, the column fills a part of its
# range.
MAX_UNRESOLVED_CELLS = 2
# A range is not rough if more than 1 / MIN_PART of it is filled.
MIN_PART = 8
# Smallest standard deviation used as a divisor; with a huge epsilon, it could otherwise be 0.
MIN_STD = 2.0**-20
# Relative slack for rounding errors in noise multipliers. It only ever raises the noise.
SLACK = 1.0 + 2.0**-40
# Minimum number of values in a block.
BLOCK_VALUES = 1 << 16


def _rows_read(max_levels, unit):
    """Return a description of the rows or persons that a refinement reads."""
    # Whether a column is narrow is known only from the counts of the first step.
    return (
        f"all {unit}s in each of at most {count_of(max_levels, 'level')}, none if no column is "
        "narrow"
    )


@dataclass(frozen=True)
class Refined:
    """Bounds of one column after the second step.

    Parameters
    ----------
    low, high : float
    is_finer : bool
        True if they differ from the bounds of the first step.
    is_seen : bool
        True if the counts show whether the values fill the bounds. False if noise hides this, or if
        the values are in one or two cells of the last level and may fill only a small part of them.
    """

    low: float
    high: float
    is_finer: bool
    is_seen: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement(FrozenValue):
    r"""Search for finer bounds of narrow columns, from noisy counts of the cells in their bins.

    The first step has released which columns are narrow, and their bounds. Given these and the
    counts of previous levels, a row is in at most one cell of each of the k columns counted at a
    level. So the counts of a level change by at most m k in L1 norm and :math:`\sqrt{m k}` in L2
    norm, with m = 1 under add/remove and 2 under replace-one. Each of the L levels costs 1/L of the
    refinement's epsilon or mu squared, including its rounding. So the cost is the same for every
    result of the first step and of previous levels, and all of them compose adaptively.

    Parameters
    ----------
    guarantee : Guarantee
        Guarantee of the whole search.
    n_rows : int
        Public number of privacy units.
    n_columns : int
        Number of columns, some of which may be narrow.
    one_step_mechanism : GeometricMechanism, LaplaceMechanism or GaussianMechanism
        Mechanism of a one-step search that would cost as much as both steps.
    epsilon : float
        Epsilon of the refinement if the noise is not Gaussian.

    References
    ----------
    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022 (adaptive composition).
    """

    guarantee: object
    n_rows: int
    n_columns: int
    one_step_mechanism: object
    epsilon: float

    @property
    def event(self):
        """Privacy event of the refinement, for any number of narrow columns."""
        if isinstance(self.one_step_mechanism, GaussianMechanism):
            return Gaussian(self.one_step_mechanism.noise_multiplier / sqrt(REFINEMENT_FRACTION))
        return PureDP(self.epsilon)

    def mechanism(self, n_narrow, n_levels):
        """Return the mechanism of one of `n_levels` levels, which counts `n_narrow` columns.

        It is calibrated to the level alone, so the rounding of its counts is charged to it.
        """
        l1_sensitivity = n_narrow * self.guarantee.neighbors.sensitivity_factor
        if isinstance(self.one_step_mechanism, GaussianMechanism):
            l2_sensitivity = nextafter(sqrt(l1_sensitivity), inf)
            return gaussian_part(
                self.one_step_mechanism, REFINEMENT_FRACTION / n_levels, l2_sensitivity
            )
        return type(self.one_step_mechanism)(
            nextafter(self.epsilon / n_levels, 0.0), l1_sensitivity
        )

    @cached_property
    def _max_counts_of_a_row(self):
        """Number of columns times levels at which the noise is `MAX_LEVEL_NOISE` of the rows."""
        std = max(MIN_STD, self.mechanism(1, 1).deviation(size=1))
        ratio = MAX_LEVEL_NOISE * self.n_rows / std
        # Gaussian noise grows with the square root of the number of counts of a row.
        if isinstance(self.one_step_mechanism, GaussianMechanism):
            return ratio**2
        return ratio

    def n_levels(self, n_narrow):
        """Return the maximum number of levels if `n_narrow` columns are narrow."""
        return np.clip(self._max_counts_of_a_row // n_narrow, MIN_LEVELS, MAX_LEVELS).astype(int)

    @property
    def stage(self):
        """The stage for a privacy statement, with the largest noise for any number of columns."""
        n_narrow = np.arange(1, self.n_columns + 1)
        all_n_levels = self.n_levels(n_narrow)
        largest = int((n_narrow * all_n_levels).argmax())
        n_levels = int(all_n_levels[largest])
        mechanism = self.mechanism(largest + 1, n_levels)
        # Both the event and the sensitivity are those of all levels together.
        if isinstance(mechanism, GaussianMechanism):
            sensitivity = mechanism.sensitivity * sqrt(n_levels)
        else:
            sensitivity = mechanism.sensitivity * n_levels
        law = (
            f"{mechanism.name} on equal cells, at most {count_of(n_levels, 'level')} of "
            f"{count_of(largest + 1, 'narrow column')}"
        )
        if self.n_columns > 1:
            law += ", and no more noise for another number of columns"
        return Stage(
            name="finer bounds of narrow columns",
            law=law,
            scale=mechanism.scale,
            sensitivity=sensitivity,
            event=self.event,
            reads=UnitText(partial(_rows_read, int(all_n_levels.max()))),
        )

    def run(self, X, low, high, totals, totals_std, source, persons=None):
        """Release finer bounds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Numbers, read block by block, once for each level.
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
        searches = {
            j: _ColumnSearch(low[j], high[j], totals[j], totals_std[j])
            for j in np.flatnonzero(~np.isnan(low)).tolist()
        }
        if not searches:
            return {}
        n_levels = int(self.n_levels(len(searches)))
        followed = list(searches)
        for level in range(n_levels):
            mechanism = self.mechanism(len(followed), n_levels)
            max_cells = self._max_cells(mechanism, level, n_levels)
            n_cells = [searches[j].n_cells(max_cells) for j in followed]
            exact = self._count_cells(
                X, [searches[j] for j in followed], followed, n_cells, persons
            )
            noisy = mechanism.release(exact, random_state=source)
            std = mechanism.deviation(exact.size)
            max_noise = MAX_NOISE
            if level:
                max_noise = MAX_NOISE_OF_LONG_RANGE
            by_column = np.split(noisy, np.cumsum(n_cells)[:-1])
            for j, counts in zip(followed, by_column, strict=True):
                searches[j].add_level(counts, std, max_noise)
            followed = [j for j in followed if searches[j].is_open]
            if not followed:
                break
        return {j: search.refined() for j, search in searches.items()}

    def _max_cells(self, mechanism, level, n_levels):
        """Return the number of cells of a level: a power of two, so that sums have little noise."""
        if level == 0:
            return FIRST_CELLS
        std = max(MIN_STD, mechanism.deviation(MAX_CELLS))
        max_length = (MAX_NOISE_OF_LONG_RANGE * self.n_rows / std) ** 2
        is_third_of_three = level == 2 and n_levels == MIN_LEVELS
        n_cells = MIN_CELLS
        if is_third_of_three:
            n_cells = MIN_CELLS_OF_THIRD_LEVEL
        while n_cells < MAX_CELLS and 2 * n_cells <= MIN_GAIN * max_length:
            n_cells *= 2
        return n_cells

    def _count_cells(self, X, searches, columns, n_cells, persons):
        """Return the exact counts of the columns' cells, one column after the other."""
        size = sum(n_cells)
        table = Rows.wrap(X).with_block_size(max(1, max(BLOCK_VALUES, size) // X.shape[1]))
        low = np.array([search.low for search in searches])
        high = np.array([search.high for search in searches])
        args = size, np.array(columns), low, high, np.array(n_cells)
        return count_over(table, _add_cells, *args, row_weights=row_weights_of(persons))


class _ColumnSearch:
    """Search for finer bounds of one column, from the noisy counts of one level after another.

    Parameters
    ----------
    low, high : float
        Bounds of the first step.
    total, total_std : float
        Noisy number of values from the first step, and the standard deviation of its noise.

    Attributes
    ----------
    low, high : float
        Range that is divided into cells at the next level.
    is_open : bool
        True if the next level may find a narrower range.
    is_seen : bool
        See `Refined`.
    """

    def __init__(self, low, high, total, total_std):
        self.low = float(low)
        self.high = float(high)
        self.is_open = True
        self.is_seen = True
        self._first_range = self.low, self.high
        self._total = total
        self._total_std = total_std
        # True if the last counts showed more than two cells with values.
        self._are_spread = False
        # Range of each level that gave finer bounds, with the number of cells and their width.
        self._ranges = []

    def n_cells(self, max_cells):
        """Return the number of cells at the next level, limited by the resolution of doubles."""
        magnitude = max(abs(self.low), abs(self.high))
        # New bounds have a width of at least two cells.
        n_resolved = 2.0 * (self.high - self.low) / (MIN_RELATIVE_WIDTH * magnitude)
        return int(min(max_cells, n_resolved))

    def add_level(self, counts, std, max_noise_of_long_range):
        """Choose the shortest range of cells that contains the column.

        It is the new range if it is at most a quarter of the previous one.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,)
            Noisy counts of equal cells between `low` and `high`.
        std : float
            Standard deviation of the noise in a count.
        max_noise_of_long_range : float
            Maximum standard deviation of the noise in a range of more than an eighth of the cells,
            as a fraction of the column's noisy count.
        """
        args = counts, self._total, self._total_std, std
        cell_range, is_certain = _shortest_range(*args, max_noise_of_long_range)
        self._are_spread = _are_spread(*args, MAX_UNRESOLVED_CELLS)
        if cell_range is None:
            # Values spread over an eighth of the range can be told apart.
            length = max(MAX_UNRESOLVED_CELLS, len(counts) // MIN_PART)
            self.is_seen = is_certain or _are_spread(*args, length)
            self.is_open = False
            return
        first, last = cell_range
        width = (self.high - self.low) / len(counts)
        low = self.low
        self.low, self.high = low + first * width, low + last * width
        self._ranges.append((self.low, self.high, last - first, width))
        # No range of a quarter of the cells contains them, and the values are spread over more than
        # two cells.
        self.is_open = not self._are_spread and self.n_cells(FIRST_CELLS) == FIRST_CELLS
        self.is_seen = self._are_spread

    def refined(self):
        """Return the `Refined` bounds."""
        low, high = self._first_range
        if not self._ranges:
            return Refined(low, high, is_finer=False, is_seen=self.is_seen)
        finest = self._ranges[-1]
        if not (self.is_seen or self._are_spread) and finest[2] <= MAX_UNRESOLVED_CELLS:
            min_width = MIN_UNRESOLVED_CELL * (high - low)
            finest = [entry for entry in self._ranges if entry[3] >= min_width][-1]
        finer_low, finer_high, length, width = finest
        # There may be values next to the range that the noise hides, such as tails.
        margin = max(1, length // 4) * width
        return Refined(
            max(low, finer_low - margin),
            min(high, finer_high + margin),
            is_finer=True,
            is_seen=self.is_seen,
        )


@lru_cache(maxsize=256)
def gaussian_part(mechanism, fraction, sensitivity):
    """Return a Gaussian mechanism whose mu**2 is a fraction of another mechanism's mu**2."""
    multiplier = mechanism.noise_multiplier / sqrt(fraction) * SLACK
    scale = multiplier * sensitivity * SLACK
    return GaussianMechanism.from_scale(scale, sensitivity, mechanism.delta)


def _shortest_range(counts, total, total_std, std, max_noise_of_long_range):
    """Return the shortest range of cells that contains a column.

    Returns
    -------
    cell_range : tuple of (int, int) or None
        The first cell and the one after the last; None if no range of at most a quarter of the
        cells contains the column.
    is_certain : bool
        False if the noise may hide a range that contains the column.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    is_certain = True
    for length in range(1, len(counts) // MIN_GAIN + 1):
        noise = hypot(std * sqrt(length), total_std)
        max_noise = MAX_NOISE
        if LONG_RANGE * length > len(counts):
            max_noise = max_noise_of_long_range
        if noise > max_noise * total:
            return None, False
        inside = sums[length:] - sums[:-length]
        start = int(inside.argmax())
        if inside[start] >= COVERAGE * total - DEVIATIONS * noise:
            return (start, start + length), True
        is_certain &= bool(inside[start] < COVERAGE * total - DEVIATIONS_OF_DOUBT * noise)
    return None, is_certain


def _are_spread(counts, total, total_std, std, length):
    """Return True if noisy counts show that no range of `length` cells contains the column."""
    noise = hypot(std * sqrt(length), total_std)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    inside = sums[length:] - sums[:-length]
    return bool(inside.max() < COVERAGE * total - DEVIATIONS_OF_DOUBT * noise)


def _add_cells(counts, block, row_weights, narrow, low, high, n_cells):
    """Add a block's counts in the equal cells of the narrow columns, one column after the other.

    Parameters
    ----------
    counts : ndarray of shape (sum of n_cells,)
        Changed in place.
    block : array of shape (n_rows, n_columns)
    row_weights : ndarray of shape (n_rows,) or None
    narrow : ndarray of int
        Indices of the narrow columns.
    low, high : ndarray of shape (n_narrow,)
        Range of each narrow column. Values outside are not counted.
    n_cells : ndarray of int of shape (n_narrow,)
    """
    values = np.asarray(block, dtype=np.float64)[:, narrow]
    # A NumPy warning would reveal a value that overflows. Every operation is row-wise to the last
    # bit.
    with np.errstate(all="ignore"):
        # Bins of negative numbers contain their upper ends.
        is_inside = (values >= low) & (values <= high)
        cells = (values - low) / ((high - low) / n_cells)
    cells = np.minimum(np.where(is_inside, cells, 0.0).astype(np.int64), n_cells - 1)
    cells += np.cumsum(n_cells) - n_cells
    if row_weights is not None:
        row_weights = np.broadcast_to(row_weights[:, np.newaxis], cells.shape)[is_inside]
    counts += weighted_bincount(cells[is_inside], row_weights, counts.size)
