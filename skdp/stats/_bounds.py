"""Private bounds by a histogram over exponentially spaced bins."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp._data._parts import Rows, as_dense
from skdp._data._persons import count_over, row_weights_of, weighted_bincount
from skdp.accounting import Composed
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import PlanValue, counting_mechanism
from skdp.mechanisms._stages import Stage
from skdp.stats._bounds_reading import FALSE_ALARM_BESIDE_ZEROS, MAX_WINDOW, Noise, likely_ranges
from skdp.stats._moments import StatisticPlan
from skdp.stats._refinement import REFINEMENT_FRACTION, RefinementPlan, gaussian_part
from skdp.utils._findings import NO_BOUNDS, NO_NORM, ROUGH_BOUNDS, report_finding
from skdp.utils._row_wise import row_norms
from skdp.utils._sums import split_epsilon
from skdp.utils._validation import check_integer, check_magnitude, is_auto
from skdp.utils._values import checked

# What part of epsilon, and at most of delta, estimators spend on bounds that are "auto".
AUTO_SHARE = 0.2
# Magnitudes are told apart from SMALLEST to LARGEST; what is smaller shares one bin with 0, what
# is larger is in the outermost bin.
_OCTAVES = 100
SMALLEST = 2.0**-_OCTAVES
LARGEST = 2.0**_OCTAVES
# Taken where no bin stands out of the noise.
FALLBACK = 1.0
# The share of the rows that a norm is to cover.
NORM_COVERAGE = 0.98
# The probability that a column has an empty bin that is taken to be occupied; and that it has an
# empty range from a power of two to the next that is.
_FALSE_ALARM = 1e-4
# Noisy counts of bins beside the occupied ones belong to a narrow column, too, if their sum is so
# many standard deviations of its noise above 0.
DEVIATIONS_OF_OTHERS = 2.0
_FINEST = 3
_ROWS_PER_THRESHOLD = 16
_BLOCK_VALUES = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class _SpacedHistogram(StatisticPlan):
    """Noisy counts over bins whose width grows with their distance from 0.

    Parameters
    ----------
    n_rows : int
        Public.
    guarantee : Guarantee
        Gaussian noise is used if delta is positive and it is the smaller.
    n_columns : int, default=1

    Attributes
    ----------
    mechanism : GeometricMechanism or GaussianMechanism
        What makes the release.
    threshold : float
        A bin whose noisy count is above it is taken to be occupied.
    splits : int
        Into how many bins of one width each range from a power of two to the next is divided: as
        many, up to 8, as leave many more rows than the threshold for each. It depends on the
        number of rows and the noise only.
    """

    n_rows: int = checked(check_integer, low=1)
    n_columns: int = checked(check_integer, default=1, low=1)

    signed = True

    def __post_init__(self):
        super().__post_init__()
        self.check_size(self.size)

    # How many values are released together.
    @property
    def size(self):
        return self.n_columns * self._n_bins(self._split_bits)

    @property
    def name(self):
        return f"{self.mechanism.name} on exponentially spaced bins"

    stages = PlanValue.stages

    @cached_property
    def mechanism(self):
        # A row is in one bin of each column; replace-one moves it from one to another.
        moved = self.n_columns * self.guarantee.neighbors.sensitivity_factor
        return counting_mechanism(moved, self.guarantee, error=self._threshold)

    @property
    def threshold(self):
        return self._threshold(self.mechanism, self._split_bits)

    @property
    def splits(self):
        return 1 << self._split_bits

    @cached_property
    def _split_bits(self):
        def affordable(bits):
            rows = _ROWS_PER_THRESHOLD * (1 << bits) * self._threshold(self.mechanism, bits)
            return self.n_rows >= rows

        return max((bits for bits in range(1, _FINEST + 1) if affordable(bits)), default=0)

    def _threshold(self, mechanism, bits=_FINEST):
        n_bins = self._n_bins(bits)
        return mechanism.tail(_FALSE_ALARM / n_bins, self.n_columns * n_bins)

    @property
    def octave_threshold(self):
        """What the sum of the noise in a divided range from a power of two to the next is below."""
        return self.mechanism.tail(_FALSE_ALARM / self._n_bins(0), self.size, self.splits)

    def occupied(self, noisy):
        """Return which bins are taken to be occupied, for noisy counts of shape (..., n_bins).

        Those that stand out of the noise, and all of a range from a power of two to the next in
        which none does but their sum: so rare values are found as well where they are spread.
        """
        above = noisy > self.threshold
        if self.splits == 1:
            return above
        middle = noisy.shape[-1] // 2 if self.signed else 0
        for side in (slice(0, middle), slice(middle + 1, None)):
            seen = above[..., side]
            octaves = (*seen.shape[:-1], -1, self.splits)
            sums = noisy[..., side].reshape(octaves).sum(axis=-1)
            alone = (sums > self.octave_threshold) & ~seen.reshape(octaves).any(axis=-1)
            seen |= np.repeat(alone, self.splits, axis=-1)
        return above

    def _n_bins(self, bits):
        magnitudes = 2 * _OCTAVES << bits
        return 2 * magnitudes + 1 if self.signed else magnitudes + 1

    def _release(self, X, source, add, *small, persons=None):
        """Return the noisy counts of what `add` counts, shape (n_columns, n_bins)."""
        bits = self._split_bits
        n_bins = self._n_bins(bits)
        d = self.n_columns
        first = np.arange(d) * n_bins + (n_bins // 2 if self.signed else 0)
        table = Rows.wrap(X).with_block_size(max(1, max(_BLOCK_VALUES, d * n_bins) // X.shape[1]))
        small = d * n_bins, bits, first, *small
        counts = count_over(table, add, *small, row_weights=row_weights_of(persons))
        return self.mechanism.release(counts, random_state=source).reshape(d, n_bins)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundsPlan(_SpacedHistogram):
    """Bounds of each of several columns, from one noisy histogram and a refinement of it.

    Attributes
    ----------
    whole : GeometricMechanism, LaplaceMechanism or GaussianMechanism
        The noise of one step that costs what the two steps cost.
    refinement : RefinementPlan
        The second step.
    """

    released = "bounds of columns"

    @cached_property
    def whole(self):
        moved = self.n_columns * self.guarantee.neighbors.sensitivity_factor
        return counting_mechanism(moved, self.guarantee, error=self._threshold)

    @cached_property
    def _epsilons(self):
        """Epsilon of the two steps where the noise is not Gaussian."""
        return split_epsilon(self.whole.epsilon, 1.0 - REFINEMENT_FRACTION)

    @cached_property
    def mechanism(self):
        if isinstance(self.whole, GaussianMechanism):
            return gaussian_part(self.whole, 1.0 - REFINEMENT_FRACTION, self.whole.sensitivity)
        return type(self.whole)(self._epsilons[0], self.whole.sensitivity)

    @cached_property
    def refinement(self):
        return RefinementPlan(
            guarantee=self.guarantee,
            n_columns=self.n_columns,
            whole=self.whole,
            share=self._epsilons[1],
        )

    @property
    def event(self):
        """The price of both steps."""
        return Composed((self.mechanism.event, self.refinement.event))

    @property
    def stages(self):
        """The two steps."""
        described = {"scale": self.scale, "sensitivity": self.sensitivity}
        first = Stage(name=self.released, law=self.name, event=self.mechanism.event, **described)
        return (first, self.refinement.stage)

    def run(self, X, source, persons=None, columns=None):
        """Release the bounds, and report the columns of which none, or rough ones, are found.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Numbers, read block by block; what is NaN counts nowhere.
        source : RandomSource
            What the charge returned.
        persons : Persons, default=None
            Whose the rows are.
        columns : ndarray of int, default=None
            The positions of the columns in the estimator's table; None if they are all of it.

        Returns
        -------
        low, high : ndarray of shape (n_columns,)
            The outer edges of the outermost bins that are likely to hold values, which are the
            occupied ones at least, refined where these are few; -1 and 1 for a column of which
            nothing but 0 is likely.
        """
        positions = np.arange(self.n_columns) if columns is None else np.asarray(columns)
        noisy = self._release(X, source, _add_bins, persons=persons)
        first, last, is_found = self.read_bins(noisy)
        likely = self.likely_bins(noisy, first, last, is_found)
        low, high = self.ends_of(*likely)
        totals, totals_std, is_wider = self._totals(noisy, first, last, likely)
        # A column is narrow if it lies in one bin, or in two beside one another, away from 0.
        is_narrow = is_found & (last - first <= 1) & (first * last > 0)
        occupied_ends = self.ends_of(first, last, is_found)
        refined = self.refinement.run(
            X, *np.where(is_narrow, occupied_ends, np.nan), totals, totals_std, source, persons
        )
        is_rough = np.zeros(self.n_columns, dtype=bool)
        for j, bounds in refined.items():
            # What is seen outside the bins shows that the column is not narrow.
            is_rough[j] = not (bounds.is_seen or is_wider[j])
            if bounds.is_finer:
                low[j], high[j] = with_zero_beside_one(bounds.low, bounds.high)
        report_finding(NO_BOUNDS, positions[~is_found])
        report_finding(ROUGH_BOUNDS, positions[is_rough])
        return low, high

    def _totals(self, noisy, first, last, likely):
        """Return the noisy count of each column, and the standard deviation of its noise.

        It is that of the occupied bins, and of the other likely ones if it stands out of the noise:
        these would bring the noise of many bins where they hold nothing. The third array says of
        which columns they do.
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
        """Return the first and the last occupied bin of each column, and whether there is one.

        They are numbered from the bin of 0, on either side. Zeros have no magnitude: where nothing
        else is seen, they say nothing of the units of what is rare, and no bin counts as found.
        """
        occupied = self.occupied(noisy)
        middle = noisy.shape[1] // 2
        is_found = np.delete(occupied, middle, axis=1).any(axis=1)
        first = occupied.argmax(axis=1) - middle
        last = noisy.shape[1] - 1 - occupied[:, ::-1].argmax(axis=1) - middle
        return first, last, is_found

    def likely_bins(self, noisy, first, last, is_found):
        """Return the first and the last bin that are likely to hold each column's values.

        Parameters
        ----------
        noisy : ndarray of shape (n_columns, n_bins)
        first, last, is_found
            What `read_bins` returns. The likely bins are these and more.

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
        # The outermost occupied bins stay the ends where no octave beyond them was added.
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
        """Return the outer edges of bins, -1 and 1 for a column of which none is found."""
        edges = spaced_edges(self._split_bits)
        low = np.where(first > 0, edges[first - 1], -edges[np.maximum(-first, 0)])
        high = np.where(last < 0, -edges[-last - 1], edges[np.maximum(last, 0)])
        # The bin of 0 is that of numbers which are 0 for every purpose.
        low, high = np.where(first == 0, 0.0, low), np.where(last == 0, 0.0, high)
        return np.where(is_found, low, -FALLBACK), np.where(is_found, high, FALLBACK)

    def read(self, noisy):
        """Return the bounds that noisy counts of the first step show."""
        return self.ends_of(*self.likely_bins(noisy, *self.read_bins(noisy)))


@dataclass(frozen=True, kw_only=True)
class NormPlan(_SpacedHistogram):
    """A bound on the norm of most rows, from a noisy histogram of norms."""

    signed = False
    released = "the norm of rows"

    def run(self, X, source, center=None, persons=None):
        """Release the bound.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_features)
            Read block by block. A norm that overflows is in the outermost bin.
        source : RandomSource
            What the charge returned.
        center : ndarray of shape (n_features,), default=None
            What is subtracted from each row.
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        float
            The upper edge of the first bin up to which occupied bins hold 98 % of the noisy
            counts, rows of zeros left out; 1.0 if no bin stands out of the noise.
        """
        return self.read(self._release(X, source, _add_norms, center, persons=persons)[0])

    def read(self, noisy):
        """Return the bound that noisy counts show."""
        held = np.where(self.occupied(noisy), noisy, 0)
        # A row of zeros fits in any norm.
        held[0] = 0
        if not held.any():
            report_finding(NO_NORM)
            return FALLBACK
        covered = np.cumsum(held) >= NORM_COVERAGE * held.sum()
        return float(spaced_edges(self._split_bits)[covered.argmax()])


def plan_search(shape, guarantee, *, alone=False):
    """Return the plan that finds bounds, and what it leaves of a guarantee.

    It gets a fifth of epsilon, and of delta where Gaussian noise is the smaller then, else none of
    that; or all of both if it is `alone`.
    """
    share = 1.0 if alone else AUTO_SHARE
    first, rest = split_epsilon(guarantee.epsilon, share)
    delta, left = split_epsilon(guarantee.delta, share)
    own = replace(guarantee, epsilon=first, delta=0.0)
    search = BoundsPlan(n_rows=shape.n_rows, n_columns=shape.n_columns, guarantee=own)
    # Smaller parts of delta are refused.
    if delta >= 1e-100 and (alone or left >= 1e-100):
        other = replace(search, guarantee=replace(own, delta=delta))
        if other.threshold < search.threshold:
            return other, None if alone else replace(guarantee, epsilon=rest, delta=left)
    return search, None if alone else replace(guarantee, epsilon=rest)


def plan_norm(data_norm, n_rows, guarantee):
    """Return the plan that finds the rows' norm, what it leaves of a guarantee, and the norm.

    "auto" spends a fifth of epsilon on the search, and the norm is 1 until it has run. A declared
    norm needs no plan.

    Raises
    ------
    ValueError
        If it is no norm.
    """
    if not is_auto(data_norm):
        return None, guarantee, check_magnitude(data_norm, "data_norm")
    first, rest = split_epsilon(guarantee.epsilon, AUTO_SHARE)
    own = replace(guarantee, epsilon=first, delta=0.0)
    return NormPlan(n_rows=n_rows, guarantee=own), replace(guarantee, epsilon=rest), 1.0


def spaced_bins(values, bits):
    """Return the signed number of each value's bin: 0 for what is smaller than `SMALLEST`.

    Each range from a power of two to the next is divided in ``2**bits`` bins of one width, which
    the exponent and the leading bits of the significand name.
    """
    words = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    magnitude = (words & np.int64(2**63 - 1)) >> np.int64(52 - bits)
    magnitude -= ((1023 - _OCTAVES) << bits) - 1
    np.clip(magnitude, 0, 2 * _OCTAVES << bits, out=magnitude)
    return np.where(words < 0, -magnitude, magnitude)


def spaced_edges(bits):
    """Return the edges: bin k > 0 lies between edges k - 1 and k, bin 0 below edge 0."""
    k = np.arange((2 * _OCTAVES << bits) + 1)
    return np.ldexp(1.0 + (k % (1 << bits)) / (1 << bits), (k >> bits) - _OCTAVES)


def with_zero_beside_one(low, high):
    """Return bounds of which nearly all values are 1, or -1, widened to hold 0; others as they are.

    Such a column is a flag, or a code that begins with 1. Its other values are too rare to be seen,
    and have to stay apart from 1. Bounds on both sides of 1 were found with cells around 1 only.
    """
    if low <= 1.0 < high:
        return 0.0, max(high, 2.0)
    if low < -1.0 <= high:
        return min(low, -2.0), 0.0
    return low, high


def _octave_of(bins, splits):
    """Return the octaves that hold some bins; both are numbered from the bin of 0, on each side."""
    return np.sign(bins) * -(-np.abs(bins) // splits)


def _last_bin(octaves, splits):
    """Return the last bin of some octaves: of negative ones that which is the nearest to 0."""
    return np.where(octaves < 0, (octaves + 1) * splits - 1, octaves * splits)


def _add_bins(counts, block, row_weights, bits, first):
    bins = spaced_bins(block, bits) + first
    missing = np.isnan(block)
    if missing.any():
        if row_weights is not None:
            row_weights = np.broadcast_to(row_weights[:, None], bins.shape)[~missing]
        bins = bins[~missing]
    counts += weighted_bincount(bins, row_weights, counts.size)


def _add_norms(counts, block, row_weights, bits, first, center):
    # No warning may tell of a row that overflows.
    with np.errstate(all="ignore"):
        norms = row_norms(block if center is None else as_dense(block) - center)
    _add_bins(counts, norms[:, np.newaxis], row_weights, bits, first)
