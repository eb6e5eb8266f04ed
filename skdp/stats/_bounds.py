"""Searches for bounds of columns and for a norm, by a histogram over exponentially spaced bins.

How a linear model uses its norm, and which fraction of rows' gradients it clips, is decided in
`skdp.linear_model._data_norm`.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from skdp._data._parts import Rows, as_dense
from skdp._data._persons import count_over, row_weights_of, weighted_bincount
from skdp._data._row_wise import row_norms
from skdp._fitting._findings import (
    CLIPPED_VALUES,
    FAR_VALUES,
    NO_BOUNDS,
    NO_NORM,
    ROUGH_BOUNDS,
    report_finding,
    report_found_bounds,
)
from skdp.accounting import Composed, Guarantee
from skdp.accounting._guarantee import split_epsilon
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import Plan, counting_mechanism
from skdp.mechanisms._stages import Stage
from skdp.stats._bounds_reading import FALSE_ALARM_BESIDE_ZEROS, MAX_WINDOW, Noise, likely_ranges
from skdp.stats._refinement import REFINEMENT_FRACTION, Refinement, gaussian_part
from skdp.utils._validation import check_integer, check_magnitude, is_auto
from skdp.utils._values import FrozenValue, checked, computed

# Fraction of epsilon, and maximum fraction of delta, that estimators spend on "auto" bounds.
BOUNDS_FRACTION = 0.2
# Magnitudes between 2**-100 and 2**100 are distinguished. Smaller ones share one bin with 0,
# larger ones are in the outermost bin.
_OCTAVES = 100
# Bound used if no bin is visible above the noise.
FALLBACK = 1.0
# Fraction of the rows whose norm the bound must cover.
NORM_COVERAGE = 0.98
# Probability that any empty bin of a column is mistaken for occupied, and the same probability for
# empty octaves (ranges from a power of two to the next).
_FALSE_ALARM = 1e-4
# Likely bins next to the occupied bins of a narrow column are counted with it if their noisy counts
# sum to this many standard deviations above 0.
DEVIATIONS_OF_OTHERS = 2.0
# A column is reported as clipped if its noisy counts beyond the likely bins, in one of these
# numbers of octaves on either side, exceed a fraction of the rows by this many standard deviations.
OUTER_OCTAVES = (8, 16, 24, 32)
MIN_CLIPPED = 0.1
DEVIATIONS_OF_CLIPPED = 3.5
# Octaves are divided into at most 2**_MAX_SPLIT_BITS bins of equal width.
_MAX_SPLIT_BITS = 3
# Minimum number of rows per bin, in units of the threshold, for an octave to be divided.
_ROWS_PER_THRESHOLD = 16
# Minimum number of values in a block.
_BLOCK_VALUES = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class _SpacedHistogram(FrozenValue):
    """Noisy counts of bins whose width grows with their distance from 0.

    Parameters
    ----------
    n_rows : int
        Public number of privacy units.
    guarantee : Guarantee
        With a positive delta, Gaussian noise is used if its expected error is smaller.
    n_columns : int, default=1

    Attributes
    ----------
    mechanism : GeometricMechanism or GaussianMechanism
        The mechanism that adds noise to the counts.
    threshold : float
        A bin counts as occupied if its noisy count exceeds it.
    splits : int
        Number of equal-width bins into which each octave is divided, up to 8. It depends only on
        the number of rows and on the noise, and leaves far more rows per bin than the threshold.
    """

    n_rows: int = checked(check_integer, low=1)
    guarantee: Guarantee
    n_columns: int = checked(check_integer, default=1, low=1)

    # True if negative values have bins.
    signed = True

    def __post_init__(self):
        super().__post_init__()
        self.mechanism.check_size(self.size)

    @property
    def size(self):
        """Number of values that are released together."""
        return self.n_columns * self._n_bins(self._split_bits)

    @property
    def name(self):
        return f"{self.mechanism.name} on exponentially spaced bins"

    @property
    def stages(self):
        """The stage that releases the counts."""
        stage = Stage(
            name=self.released_name,
            law=self.name,
            scale=self.mechanism.scale,
            sensitivity=self.mechanism.sensitivity,
            event=self.mechanism.event,
        )
        return (stage,)

    @cached_property
    def mechanism(self):
        return self._counting_mechanism()

    def _counting_mechanism(self):
        """Return the mechanism with the lowest threshold, for the whole guarantee."""
        # A row is in one bin of each column. Under replace-one, two counts of a column change.
        l1_sensitivity = self.n_columns * self.guarantee.neighbors.sensitivity_factor
        return counting_mechanism(l1_sensitivity, self.guarantee, error=self._threshold)

    @property
    def threshold(self):
        return self._threshold(self.mechanism, self._split_bits)

    @property
    def splits(self):
        return 1 << self._split_bits

    @cached_property
    def _split_bits(self):
        """Base-2 logarithm of `splits`."""
        for bits in range(_MAX_SPLIT_BITS, 0, -1):
            threshold = self._threshold(self.mechanism, bits)
            if self.n_rows >= _ROWS_PER_THRESHOLD * (1 << bits) * threshold:
                return bits
        return 0

    def _threshold(self, mechanism, bits=_MAX_SPLIT_BITS):
        """Return the count that an empty bin of a column exceeds with a small probability.

        Any of the column's empty bins exceeds it with probability at most `_FALSE_ALARM`.
        """
        n_bins = self._n_bins(bits)
        return mechanism.tail(_FALSE_ALARM / n_bins, self.n_columns * n_bins)

    @property
    def octave_threshold(self):
        """Threshold of the noisy count of an octave, the sum over its bins."""
        return self.mechanism.tail(_FALSE_ALARM / self._n_bins(0), self.size, self.splits)

    def occupied(self, noisy):
        """Return a mask of occupied bins, for noisy counts of shape (..., n_bins).

        A bin is occupied if its count exceeds the threshold. If no bin of an octave exceeds the
        threshold but their sum exceeds the threshold for octaves, all of them are occupied. So rare
        values are found even if they are spread over several bins.
        """
        is_occupied = noisy > self.threshold
        if self.splits == 1:
            return is_occupied
        middle = 0
        if self.signed:
            middle = noisy.shape[-1] // 2
        for side in (slice(0, middle), slice(middle + 1, None)):
            # A view, which is changed in place.
            side_occupied = is_occupied[..., side]
            by_octave = (*side_occupied.shape[:-1], -1, self.splits)
            sums = noisy[..., side].reshape(by_octave).sum(axis=-1)
            has_occupied_bin = side_occupied.reshape(by_octave).any(axis=-1)
            is_octave_occupied = (sums > self.octave_threshold) & ~has_occupied_bin
            side_occupied |= np.repeat(is_octave_occupied, self.splits, axis=-1)
        return is_occupied

    def _n_bins(self, bits):
        """Return the number of bins of a column with 2**bits bins per octave."""
        magnitudes = 2 * _OCTAVES << bits
        if self.signed:
            return 2 * magnitudes + 1
        return magnitudes + 1

    def _release(self, X, source, add, *small, persons=None):
        """Return noisy counts of shape (n_columns, n_bins).

        `add` adds the counts of a block; see `_add_bins`.
        """
        bits = self._split_bits
        n_bins = self._n_bins(bits)
        d = self.n_columns
        first = np.arange(d) * n_bins
        if self.signed:
            first += n_bins // 2
        table = Rows.wrap(X).with_block_size(max(1, max(_BLOCK_VALUES, d * n_bins) // X.shape[1]))
        small = d * n_bins, bits, first, *small
        counts = count_over(table, add, *small, row_weights=row_weights_of(persons))
        return self.mechanism.release(counts, random_state=source).reshape(d, n_bins)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundsSearch(_SpacedHistogram):
    """Search for the bounds of columns by one noisy histogram and its refinement.

    Parameters
    ----------
    one_step_mechanism : GeometricMechanism, LaplaceMechanism or GaussianMechanism, default=None
        Mechanism of a single step that would cost as much as both steps together. Each step has a
        mechanism of its kind, with a part of its epsilon or mu squared. None means the mechanism
        with the lowest threshold that meets the guarantee.

    Attributes
    ----------
    refinement : Refinement
        The second step.
    """

    one_step_mechanism: object = computed()

    released_name = "bounds of columns"

    def __post_init__(self):
        if self.one_step_mechanism is None:
            vars(self)["one_step_mechanism"] = self._counting_mechanism()
        super().__post_init__()

    @cached_property
    def _epsilons(self):
        """Epsilon of each of the two steps if the noise is not Gaussian."""
        return split_epsilon(self.one_step_mechanism.epsilon, 1.0 - REFINEMENT_FRACTION)

    @cached_property
    def mechanism(self):
        """The mechanism of the first step's counts."""
        if isinstance(self.one_step_mechanism, GaussianMechanism):
            return gaussian_part(
                self.one_step_mechanism,
                1.0 - REFINEMENT_FRACTION,
                self.one_step_mechanism.sensitivity,
            )
        return type(self.one_step_mechanism)(self._epsilons[0], self.one_step_mechanism.sensitivity)

    @cached_property
    def refinement(self):
        """The second step: a search for finer bounds of columns that occupy one or two bins.

        It has the part of the budget that `mechanism`, the first step, leaves.
        """
        return Refinement(
            guarantee=self.guarantee,
            n_rows=self.n_rows,
            n_columns=self.n_columns,
            one_step_mechanism=self.one_step_mechanism,
            epsilon=self._epsilons[1],
        )

    @property
    def stages(self):
        """One stage for each of the two steps."""
        return (*super().stages, self.refinement.stage)

    def run(self, X, source, persons=None, columns=None):
        """Release the bounds, and report columns with no bounds or only rough ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Numbers, read block by block. NaNs are not counted.
        source : RandomSource
            The source that the charge returned.
        persons : Persons, default=None
            Person of each row.
        columns : ndarray of int, default=None
            Indices of the columns in the estimator's table; None if they are all its columns.

        Returns
        -------
        low, high : ndarray of shape (n_columns,)
            The outer edges of the outermost bins that are likely to contain values. These include
            the occupied bins. Bounds of one or two bins are refined. If only 0 is likely in a
            column, its bounds are -1 and 1.
        """
        if columns is None:
            positions = np.arange(self.n_columns)
        else:
            positions = np.asarray(columns)
        noisy = self._release(X, source, _add_bins, persons=persons)
        first, last, is_found = self.read_bins(noisy)
        likely = self.likely_bins(noisy, first, last, is_found)
        low, high = self.ends_of(*likely)
        totals, totals_std, is_wider = self._totals(noisy, first, last, likely)
        # A column is narrow if it occupies one bin or two adjacent bins, not counting the bin of 0.
        is_narrow = is_found & (last - first <= 1) & (first * last > 0)
        occupied_ends = self.ends_of(first, last, is_found)
        refined = self.refinement.run(
            X, *np.where(is_narrow, occupied_ends, np.nan), totals, totals_std, source, persons
        )
        is_rough = np.zeros(self.n_columns, dtype=bool)
        for j, bounds in refined.items():
            # Values outside the bins show that the column fills its bins, unless it lies in one or
            # two cells.
            is_rough[j] = not bounds.is_seen and (bounds.is_finer or not is_wider[j])
            if bounds.is_finer:
                low[j], high[j] = with_zero_beside_one(bounds.low, bounds.high)
        report_found_bounds(positions)
        report_finding(NO_BOUNDS, positions[~is_found])
        # The outermost bins also contain all values beyond them.
        outermost = noisy.shape[1] // 2
        is_far = is_found & (np.maximum(-first, last) == outermost)
        report_finding(FAR_VALUES, positions[is_far])
        report_finding(ROUGH_BOUNDS, positions[is_rough])
        report_finding(CLIPPED_VALUES, positions[is_found & self._is_clipped(noisy, likely)])
        return low, high

    def _is_clipped(self, noisy, likely):
        """Return True for columns with many values beyond the likely bins, allowing for noise.

        Octaves next to each other may have too few values each to be visible above the noise, and
        many together. Smaller values of the same sign are not counted: they are clipped by at most
        the magnitude of an end.
        """
        first, last, _ = likely
        first = _octave_of(first, self.splits)
        last = _octave_of(last, self.splits)
        counts = self._octave_counts(noisy)
        middle = counts.shape[1] // 2
        std = self.mechanism.deviation(self.size) * np.sqrt(self.splits)
        sums = np.zeros((len(counts), counts.shape[1] + 1))
        np.cumsum(counts, axis=1, out=sums[:, 1:])
        rows = np.arange(len(counts))
        is_clipped = np.zeros(len(counts), dtype=bool)
        for n_octaves in OUTER_OCTAVES:
            # If all likely values have one sign, those of the other sign are counted around the
            # same magnitude.
            opposite_of_first = np.maximum(-first - n_octaves // 2, 0)
            opposite_of_last = np.minimum(n_octaves // 2 - last, 0)
            above = middle + 1 + np.where(last > 0, last, opposite_of_first)
            below = middle + np.where(first < 0, first, opposite_of_last)
            end = np.minimum(above + n_octaves, counts.shape[1])
            start = np.maximum(below - n_octaves, 0)
            n_above, n_below = end - above, below - start
            sum_above = sums[rows, end] - sums[rows, above]
            sum_below = sums[rows, below] - sums[rows, start]
            for total, n_counts in (
                (sum_above, n_above),
                (sum_below, n_below),
                (sum_above + sum_below, n_above + n_below),
            ):
                least = total - DEVIATIONS_OF_CLIPPED * std * np.sqrt(n_counts)
                is_clipped |= least > MIN_CLIPPED * self.n_rows
        return is_clipped

    def _totals(self, noisy, first, last, likely):
        """Return the noisy number of values of each column, and the noise's standard deviation.

        The number is the sum over the occupied bins. The other likely bins are included only if
        their sum is visible above the noise, because empty ones would add the noise of many bins.
        The third array is True for columns whose likely bins are included.
        """
        likely_first, likely_last, _ = likely
        std = self.mechanism.deviation(self.size)
        middle = noisy.shape[1] // 2
        totals = np.empty(self.n_columns)
        stds = np.empty(self.n_columns)
        is_wider = np.zeros(self.n_columns, dtype=bool)
        for j, counts in enumerate(noisy):
            occupied = counts[first[j] + middle : last[j] + middle + 1]
            wider = counts[likely_first[j] + middle : likely_last[j] + middle + 1]
            others_std = std * np.sqrt(max(0, len(wider) - len(occupied)))
            is_wider[j] = wider.sum() - occupied.sum() > DEVIATIONS_OF_OTHERS * others_std
            if is_wider[j]:
                occupied = wider
            totals[j] = min(self.n_rows, occupied.sum())
            stds[j] = std * np.sqrt(len(occupied))
        return totals, stds, is_wider

    def read_bins(self, noisy):
        """Return the first and the last occupied bin of each column, and a mask of found columns.

        Bins are numbered from the bin of 0 on either side. A column does not count as found if only
        the bin of 0 is occupied, because zeros do not reveal the magnitude of rarer values.
        """
        occupied = self.occupied(noisy)
        middle = noisy.shape[1] // 2
        is_found = np.delete(occupied, middle, axis=1).any(axis=1)
        first = occupied.argmax(axis=1) - middle
        last = noisy.shape[1] - 1 - occupied[:, ::-1].argmax(axis=1) - middle
        return first, last, is_found

    def likely_bins(self, noisy, first, last, is_found):
        """Return, for each column, the first and the last bin that are likely to contain values.

        Parameters
        ----------
        noisy : ndarray of shape (n_columns, n_bins)
        first, last, is_found
            Return values of `read_bins`. The likely bins include these.

        Returns
        -------
        first, last, is_likely : ndarray of shape (n_columns,)
            See `skdp.stats._bounds_reading`.
        """
        middle = noisy.shape[1] // 2
        splits = self.splits
        noise = Noise(
            std=self.mechanism.deviation(self.size) * np.sqrt(splits),
            is_gaussian=isinstance(self.mechanism, GaussianMechanism),
            thresholds=np.array(
                [
                    self.mechanism.tail(FALSE_ALARM_BESIDE_ZEROS, self.size, splits * length)
                    for length in range(1, MAX_WINDOW + 1)
                ]
            ),
        )
        first_octave = _octave_of(first, splits)
        last_octave = _octave_of(last, splits)
        likely_first, likely_last, is_likely = likely_ranges(
            self._octave_counts(noisy),
            first_octave,
            last_octave,
            is_found,
            noise,
            has_zeros=noisy[:, middle] > self.threshold,
            n_rows=self.n_rows,
        )
        # If no octave beyond them was added, the outermost occupied bins remain the ends.
        is_new_first = ~is_found | (likely_first != first_octave)
        is_new_last = ~is_found | (likely_last != last_octave)
        return (
            np.where(is_new_first, -_last_bin(-likely_first, splits), first),
            np.where(is_new_last, _last_bin(likely_last, splits), last),
            is_likely,
        )

    def _octave_counts(self, noisy):
        """Return the noisy counts of the bin of 0 and of undivided octaves on either side."""
        middle = noisy.shape[1] // 2
        negative = noisy[:, :middle].reshape(len(noisy), -1, self.splits).sum(axis=2)
        positive = noisy[:, middle + 1 :].reshape(len(noisy), -1, self.splits).sum(axis=2)
        return np.concatenate([negative, noisy[:, middle : middle + 1], positive], axis=1)

    def ends_of(self, first, last, is_found):
        """Return the outer edges of bins; -1 and 1 for a column that was not found."""
        edges = spaced_edges(self._split_bits)
        low = np.where(first > 0, edges[first - 1], -edges[np.maximum(-first, 0)])
        high = np.where(last < 0, -edges[-last - 1], edges[np.maximum(last, 0)])
        # Numbers in the zero bin are small enough to be treated as 0.
        low = np.where(first == 0, 0.0, low)
        high = np.where(last == 0, 0.0, high)
        return np.where(is_found, low, -FALLBACK), np.where(is_found, high, FALLBACK)

    def read(self, noisy):
        """Return the bounds from noisy counts of the first step."""
        return self.ends_of(*self.likely_bins(noisy, *self.read_bins(noisy)))


@dataclass(frozen=True, kw_only=True)
class NormSearch(_SpacedHistogram):
    """Search for a bound on the norm of most rows, by a noisy histogram of norms."""

    signed = False
    released_name = "the norm of rows"

    def run(self, X, source, center=None, persons=None):
        """Release the bound.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_features)
            Rows, read block by block. A norm that overflows is in the outermost bin.
        source : RandomSource
            The source that the charge returned.
        center : ndarray of shape (n_features,), default=None
            Vector that is subtracted from each row.
        persons : Persons, default=None
            Person of each row.

        Returns
        -------
        float
            The upper edge of the first bin up to which the occupied bins contain 98 % of the noisy
            counts, not counting rows of zeros. 1.0 if no bin is occupied.
        """
        return self.read(self._release(X, source, _add_norms, center, persons=persons)[0])

    def read(self, noisy):
        """Return the bound from the noisy counts of norms; 1 if no bin is occupied."""
        counts = np.where(self.occupied(noisy), noisy, 0)
        # A row of zeros satisfies every bound.
        counts[0] = 0
        if not counts.any():
            report_finding(NO_NORM)
            return FALLBACK
        is_covered = np.cumsum(counts) >= NORM_COVERAGE * counts.sum()
        return float(spaced_edges(self._split_bits)[is_covered.argmax()])


def plan_bounds(shape, guarantee):
    """Return the plan of a search for the bounds of all columns of a table.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
        With a positive delta, Gaussian noise is used if its expected error is smaller.

    Returns
    -------
    Plan
        Its `run` is `BoundsSearch.run`, and its mechanism is the `BoundsSearch`.
    """
    search = BoundsSearch(n_rows=shape.n_rows, n_columns=shape.n_columns, guarantee=guarantee)
    noise = search.mechanism
    return Plan(
        name=search.name,
        event=Composed((noise.event, search.refinement.event)),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        scale=noise.scale,
        sensitivity=noise.sensitivity,
        stages=search.stages,
        run=search.run,
        mechanism=search,
    )


def plan_search(shape, guarantee, *, alone=False):
    """Return the plan of a search for bounds, and the remaining guarantee.

    The search spends a fifth of epsilon. It also receives a fifth of delta if Gaussian noise is
    then smaller. With `alone` it receives all of epsilon and delta, and the remaining guarantee is
    None.
    """
    fraction = BOUNDS_FRACTION
    if alone:
        fraction = 1.0
    search_epsilon, remaining_epsilon = split_epsilon(guarantee.epsilon, fraction)
    search_delta, remaining_delta = split_epsilon(guarantee.delta, fraction)
    pure_guarantee = replace(guarantee, epsilon=search_epsilon, delta=0.0)
    search = plan_bounds(shape, pure_guarantee)
    if alone:
        remaining = None
    else:
        remaining = replace(guarantee, epsilon=remaining_epsilon)
    # Mechanisms would refuse a smaller delta.
    if search_delta >= 1e-100 and (alone or remaining_delta >= 1e-100):
        gaussian = plan_bounds(shape, replace(pure_guarantee, delta=search_delta))
        if gaussian.mechanism.threshold < search.mechanism.threshold:
            search = gaussian
            if not alone:
                remaining = replace(remaining, delta=remaining_delta)
    return search, remaining


def plan_norm(data_norm, n_rows, guarantee):
    """Return the plan of a search for a bound on norms, the remaining guarantee, and the bound.

    "auto" spends a fifth of epsilon on the search, and the bound is 1 until the search has run. For
    a declared bound, the plan is None.

    Raises
    ------
    ValueError
        If `data_norm` is not a positive number or "auto".
    """
    if not is_auto(data_norm):
        return None, guarantee, check_magnitude(data_norm, "data_norm")
    search_epsilon, remaining_epsilon = split_epsilon(guarantee.epsilon, BOUNDS_FRACTION)
    search_guarantee = replace(guarantee, epsilon=search_epsilon, delta=0.0)
    search = NormSearch(n_rows=n_rows, guarantee=search_guarantee)
    plan = Plan(
        name=search.name,
        event=search.mechanism.event,
        epsilon=search_epsilon,
        delta=0.0,
        scale=search.mechanism.scale,
        sensitivity=search.mechanism.sensitivity,
        stages=search.stages,
        run=search.run,
        mechanism=search,
    )
    return plan, replace(guarantee, epsilon=remaining_epsilon), 1.0


def spaced_bins(values, bits):
    """Return the signed bin number of each value; 0 for magnitudes below 2**-100.

    Each octave is divided into ``2**bits`` bins of equal width. The exponent and the leading bits
    of the significand form the number of the bin.
    """
    words = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    leading = words >> np.uint64(52 - bits)
    # Reading a small table is faster than the operations that compute the number.
    return _bins_of_leading_bits(bits).take(leading.view(np.int64))


@cache
def _bins_of_leading_bits(bits):
    """Return the bin number for each value of a double's sign, exponent and `bits` next bits."""
    leading = np.arange(1 << (12 + bits))
    magnitude = leading & ((1 << (11 + bits)) - 1)
    magnitude -= ((1023 - _OCTAVES) << bits) - 1
    np.clip(magnitude, 0, 2 * _OCTAVES << bits, out=magnitude)
    is_negative = leading >> (11 + bits) == 1
    bins = np.where(is_negative, -magnitude, magnitude)
    bins.flags.writeable = False
    return bins


@cache
def spaced_edges(bits):
    """Return the edges of bins: bin k > 0 is between edges k - 1 and k, bin 0 below edge 0."""
    k = np.arange((2 * _OCTAVES << bits) + 1)
    edges = np.ldexp(1.0 + (k % (1 << bits)) / (1 << bits), (k >> bits) - _OCTAVES)
    edges.flags.writeable = False
    return edges


def with_zero_beside_one(low, high):
    """Return refined bounds, extended to 0 if nearly all values are 1, or -1.

    Such a column is a flag, or a code that begins with 1. Its other values are too rare to be
    visible but must remain distinct from 1. If the refined bounds enclose 1, only cells around 1
    were visible.
    """
    if low <= 1.0 < high:
        return 0.0, max(high, 2.0)
    if low < -1.0 <= high:
        return min(low, -2.0), 0.0
    return low, high


def _octave_of(bins, splits):
    """Return the octaves of bins; both are numbered from the bin of 0, on either side."""
    return np.sign(bins) * -(-np.abs(bins) // splits)


def _last_bin(octaves, splits):
    """Return the last bin of octaves; for negative octaves, this is the bin nearest to 0."""
    return np.where(octaves < 0, (octaves + 1) * splits - 1, octaves * splits)


def _add_bins(counts, block, row_weights, bits, first):
    """Add a block's counts per bin; `first` contains the index of each column's bin 0."""
    bins = spaced_bins(block, bits)
    bins += first
    is_missing = np.isnan(block)
    if is_missing.any():
        if row_weights is not None:
            row_weights = np.broadcast_to(row_weights[:, None], bins.shape)[~is_missing]
        bins = bins[~is_missing]
    counts += weighted_bincount(bins, row_weights, counts.size)


def _add_norms(counts, block, row_weights, bits, first, center):
    """Add the counts of bins of the rows' norms, about `center`; see `_add_bins`."""
    # A NumPy warning would reveal that a row overflows.
    with np.errstate(all="ignore"):
        if center is not None:
            block = as_dense(block) - center
        norms = row_norms(block)
    _add_bins(counts, norms[:, np.newaxis], row_weights, bits, first)
