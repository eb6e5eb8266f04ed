"""Many quantiles of many columns by the exponential mechanism, in one release."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from skdp._data._columns import each_column
from skdp._data._parts import cut
from skdp.accounting import ExponentialMechanism, Repeated, calibrate
from skdp.noise import bernoulli_exp, choose_by_distance, uniform_integers
from skdp.stats._moments import StatisticPlan
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue, checked

# Values lie on a public grid of this many steps between the bounds. Each grid point is a run of
# POSITIONS integers, of which a row takes a random one, so that hardly any two rows are equal.
CELLS = 1 << 24
POSITIONS = 1 << 24
_LAST = (CELLS + 1) * POSITIONS - 1
_UNIT = 1 << 30
# A person's rows weigh so much at most together, and scores are rounded to as fine a grid as int64
# holds for 2**26 persons: see `_Ranked`.
_WHOLE = 1 << 20
_FINE = 1 << 15
# All whole numbers that 2**20 / k can be rounded down to: those below 2**10, and of k up to 2**10.
_SMALL = 1 << 10
_CODE_BITS = 11
_WEIGHTS = np.append(np.arange(_SMALL), _WHOLE // np.arange(1, _SMALL + 1))
# Runs at which the probability has fallen by exp(-_FAR) are lumped together. So are rows that weigh
# less than one unit together, where a unit changes a probability by exp(-_NEAR) at most.
_FAR = 50
_NEAR = 0.125
# Beyond this epsilon a choice, composition saves next to nothing.
_PLENTY = 100.0
_BLOCK = 1 << 16


def _check_quantiles(quantiles, name):
    """Return a flat float64 array of numbers in [0, 1], or raise `ValueError`."""
    try:
        array = np.asarray(quantiles, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers in [0, 1], got {quantiles!r}") from None
    if array.ndim > 1 or array.size == 0 or not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"{name} must be numbers in [0, 1], got {quantiles!r}")
    return np.atleast_1d(array)


class _Node(FrozenValue):
    """One choice: the quantile at `index` of the sorted ones, between two chosen before it.

    `first` and `last` are the positions of these two, None for the ends of the range. `share` is
    the fraction of the rows between them that should lie below, in units of 2**-30.
    """

    index: int
    first: int | None
    last: int | None
    share: int

    @property
    def larger_share(self):
        return Fraction(max(self.share, _UNIT - self.share), _UNIT)


class QuantilePlan(StatisticPlan):
    """Quantiles of each of several columns, with one cost for all of them.

    It is a mechanism: `event`, `epsilon`, `delta`, `name`, `scale` and `sensitivity` are what a
    charge and a privacy statement ask for.

    The quantile in the middle of the list is chosen first, among the points of a public grid,
    with probability proportional to ``exp(-|rank - wanted rank| / scale)``; it splits the rows in
    two parts, in which the next quantiles are chosen, and so on. A row is in one part of each
    level, so that a level costs what one of its choices costs.

    Parameters
    ----------
    quantiles : array-like of shape (n_quantiles,)
        Numbers in [0, 1], in any order, repeats allowed.
    low, high : array-like of shape (n_columns,)
        Public bounds; values are clipped to them. ``low <= high``.
    guarantee : Guarantee
    n_rows : int, default=None
        The public number of rows, where there is one: then a quantile q is wanted at the rank
        ``q * (n_rows - 1) + 1/2``. So without noise it is the row that is nearest to where
        `numpy.quantile` has it (or the next one, where it is chosen after others); 0 and 1 are
        the smallest and the largest row.

    Attributes
    ----------
    level_epsilon : float
        What each level of each column costs.
    event : skdp.accounting.Repeated
        What all levels of all columns cost.
    scale : float
        The largest scale of the ranks' errors: that of the first level, or of the most uneven
        split.
    sensitivity : float
        By how much the first choice's scores can differ between neighbours.

    Notes
    -----
    The derivation is in ``docs/statistics.md``.

    References
    ----------
    A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates", 2011 (one
    quantile). H. Kaplan, S. Schnapp, U. Stemmer, "Differentially Private Approximate Quantiles",
    2022 (the recursion).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.accounting import Guarantee
    >>> from skdp.noise import RandomSource
    >>> from skdp.stats._quantiles import QuantilePlan
    >>> guarantee = Guarantee(epsilon=1.0)
    >>> plan = QuantilePlan(
    ...     quantiles=[0.25, 0.5, 0.75], low=[0.0], high=[100.0], guarantee=guarantee
    ... )
    >>> ages = np.random.default_rng(0).uniform(0, 100, size=(10_000, 1))
    >>> released = plan.run(ages, RandomSource())
    >>> bool(np.abs(released[:, 0] - [25, 50, 75]).max() < 5)
    True
    """

    quantiles: np.ndarray = checked(_check_quantiles)
    low: np.ndarray
    high: np.ndarray
    n_rows: int | None = checked(check_integer, default=None, low=1)

    name = "Exponential mechanism, recursively for many quantiles"

    @property
    def n_columns(self):
        return len(self.low)

    @cached_property
    def shares(self):
        """The share of the rows that is wanted below each quantile."""
        if self.n_rows is None:
            return self.quantiles
        return (self.quantiles * (self.n_rows - 1) + 0.5) / self.n_rows

    @cached_property
    def levels(self):
        """The choices, level by level: a tuple of tuples of nodes."""
        return _levels(np.unique(self.shares))

    @cached_property
    def level_epsilon(self):
        return epsilon_of_each(self.guarantee, len(self.levels) * self.n_columns)

    @property
    def event(self):
        return Repeated(ExponentialMechanism(self.level_epsilon), len(self.levels) * self.n_columns)

    @property
    def size(self):
        """How many values are released together."""
        return self.n_columns * len(self.quantiles)

    def check_size(self, size):
        """Any number of values can be released."""

    @property
    def scale(self):
        rates = (self._rate(level, node) for level in self.levels for node in level)
        return float(1 / min(rates))

    @property
    def sensitivity(self):
        if self.guarantee.relation == "replace_one":
            return 1.0
        return float(self.levels[0][0].larger_share)

    def _rate(self, level, node):
        """The factor of |rank - wanted rank| in the exponent, for the level to cost its epsilon."""
        epsilon = Fraction(self.level_epsilon)
        if self.guarantee.neighbours.unit == "person":
            # Scores of weights are rounded.
            epsilon /= 1 + Fraction(2, _FINE)
        if self.guarantee.relation == "add_remove":
            return epsilon / (2 * node.larger_share)
        return epsilon / (2 if len(level) == 1 else 4 * node.larger_share)

    def run(self, columns, source, persons=None):
        """Release the quantiles.

        Parameters
        ----------
        columns : array-like or ChunkedArray of shape (n_rows, n_columns), or iterable of columns
            Numbers; NaN counts nowhere. One column at a time is copied and sorted.
        source : RandomSource
            What the charge returned.
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        ndarray of shape (n_quantiles, n_columns), float64
            In the order of `quantiles`, within the bounds, non-decreasing in the quantile.
        """
        if hasattr(columns, "shape") and len(columns.shape) == 2:
            columns = each_column(columns)
        released = np.empty((len(self.quantiles), self.n_columns))
        codes = None if persons is None else _weight_codes(persons.shares)
        for j, column in enumerate(columns):
            present = ~np.isnan(column)
            cells = grid_cells(column[present], self.low[j], self.high[j])
            cells = self.choose(cells, source, cut(codes, present)) // POSITIONS
            released[:, j] = cell_values(cells, self.low[j], self.high[j])
        return released

    def choose(self, cells, source, codes=None):
        """Return the chosen positions, for one column's cells, which are overwritten."""
        stream = source.stream()
        rows = _Ranked.of(_apart(cells, stream), codes)
        distinct, inverse = np.unique(self.shares, return_inverse=True)
        chosen = np.zeros(len(distinct), dtype=np.int64)
        for level in self.levels:
            for node in level:
                rate = self._rate(level, node)
                part, ends = _between(rows, chosen, node)
                chosen[node.index] = _choose(part, *ends, node.share, rate, len(cells), stream)
        return chosen[inverse]


def epsilon_of_each(guarantee, count):
    """The epsilon of each of `count` exponential mechanisms that together meet a guarantee."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    # One step down, so that the sum of the parts is no more than the whole.
    even = math.nextafter(epsilon / count, 0.0) if count > 1 else epsilon
    if delta == 0.0 or count == 1 or even >= _PLENTY:
        return even
    found = calibrate(
        lambda each: Repeated(ExponentialMechanism(each), count),
        epsilon,
        delta,
        bounds=(even, max(epsilon, 2 * even)),
    )
    return max(even, found)


def _levels(shares):
    """The binary tree over sorted shares, level by level."""
    spans, levels = [(0, len(shares), None, None)], []
    while spans:
        nodes, below = [], []
        for start, stop, first, last in spans:
            index = (start + stop) // 2
            left = 0.0 if first is None else shares[first]
            right = 1.0 if last is None else shares[last]
            share = round(float((shares[index] - left) / (right - left)) * _UNIT)
            nodes.append(_Node(index, first, last, share))
            below += [(start, index, first, index)] if start < index else []
            below += [(index + 1, stop, index, last)] if index + 1 < stop else []
        levels.append(tuple(nodes))
        spans = below
    return tuple(levels)


def grid_cells(column, low, high):
    """Return the nearest of the grid points 0, ..., CELLS between the bounds, row by row."""
    cells = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _BLOCK):
        cells[start : start + _BLOCK] = _nearest_cells(column[start : start + _BLOCK], low, high)
    return cells


def _nearest_cells(values, low, high):
    with np.errstate(all="ignore"):
        scaled = np.array(values, dtype=np.float64)
        np.clip(scaled, low, high, out=scaled)
        if not high > low:
            scaled[:] = 0.0
        else:
            # Halves, because high - low can overflow.
            scaled *= 0.5
            scaled -= 0.5 * low
            scaled /= 0.5 * high - 0.5 * low
            np.clip(scaled, 0.0, 1.0, out=scaled)
        scaled *= CELLS
        return np.rint(scaled, out=scaled)


def _apart(cells, stream):
    """Turn cells, in place, into random positions in the cells' runs."""
    cells *= POSITIONS
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        words = stream.words((len(block) + 1) // 2).view(np.uint32)[: len(block)]
        block += words & np.uint32(POSITIONS - 1)
    return cells


def cell_values(cells, low, high):
    """Return the values of grid points 0, ..., CELLS between the bounds."""
    share = np.clip(cells / CELLS, 0.0, 1.0)
    return np.clip((1.0 - share) * low + share * high, low, high)


class _Ranked(FrozenValue, eq=False):
    """Rows in the order of their positions, and what they weigh.

    Parameters
    ----------
    positions : ndarray of shape (n,), dtype int64
        Of weights, rows at one position are one.
    below : ndarray of shape (n + 1,), dtype int64
        The weight before each row and, last, of all; from any number on.
    whole, fine : int
        The weight of one unit, and how many steps of a score a weight of 1 has.
    """

    positions: np.ndarray
    below: np.ndarray
    whole: int = 1
    fine: int = _UNIT

    @classmethod
    def of(cls, positions, codes=None):
        """Return the rows at some positions, which are changed; by the codes of their weights."""
        if codes is None:
            positions.sort()
            return cls(positions, np.arange(len(positions) + 1))
        # One sort, of both in one number of less than 62 bits.
        positions <<= _CODE_BITS
        positions += codes
        positions.sort()
        weights = _WEIGHTS[positions & (len(_WEIGHTS) - 1)]
        positions >>= _CODE_BITS
        below = np.append(0, np.cumsum(weights))
        last = np.append(positions[1:] != positions[:-1], True)[: len(positions)]
        if not last.all():
            positions, below = positions[last], below[np.append(True, last)]
        return cls(positions, below, _WHOLE, _FINE)

    @property
    def total(self):
        return int(self.below[-1] - self.below[0])

    def scores(self, places, share):
        """Return (1 - q) below - q above in steps, rounded down, for q = share / 2**30."""
        wanted = share * self.total * self.fine // _UNIT
        return (self.below[places] - self.below[0]) * self.fine - wanted


def _weight_codes(shares):
    """Return the place of each share, in whole steps, among `_WEIGHTS`."""
    weights = np.floor(shares * _WHOLE).astype(np.int64)
    codes = np.where(weights < _SMALL, weights, _SMALL - 1 + _WHOLE // np.maximum(weights, 1))
    return codes.astype(np.int16)


def _between(rows, chosen, node):
    """Return the rows of a node, and the least and the largest point that it can choose.

    A row at a chosen point belongs to the part above it, at the end of the range as well.
    """
    start, stop, first, last = 0, len(rows.positions), 0, _LAST
    if node.first is not None:
        first = chosen[node.first]
        start = np.searchsorted(rows.positions, first)
    if node.last is not None:
        last = chosen[node.last]
        stop = np.searchsorted(rows.positions, last)
    part = replace(rows, positions=rows.positions[start:stop], below=rows.below[start : stop + 1])
    return part, (first, last)


def _choose(rows, first, last, share, rate, n_rows, stream):
    """Choose a point c in [first, last], by the weights of the rows below c and from c on.

    With f(c) = (1 - q) below - q above for q = share / 2**30, its distance is that of 0 from
    [f(c - 1), f(c)]: |f(c)|, but for the point behind a row.
    """
    edges, distances = _intervals(rows, first, last, share, rate, n_rows)
    weights = np.diff(edges)
    step = rate / (rows.whole * rows.fine)
    while True:
        j = choose_by_distance(weights, distances, step, stream)
        point = int(edges[j]) + int(uniform_integers(int(weights[j]), 1, stream)[0])
        if _accepted(rows, point, share, distances[j], step, stream):
            return point


def _intervals(rows, first, last, share, rate, n_rows):
    """Edges of runs of points, and the distance of each run: no point in it is nearer.

    Runs near the wanted rank hold points of one distance, or of distances that a unit's weight or
    less lies between. The first and the last run are all points below and above these.
    """
    n = len(rows.positions)
    wanted = rows.below[0] + share * rows.total // _UNIT
    # Far enough for what is beyond to be hopeless, and for some point to be within.
    reach = int(min(_FAR / rate, rows.total // rows.whole)) + 2 * (n_rows // POSITIONS) + 64
    reach *= rows.whole
    low = int(np.searchsorted(rows.below, wanted - reach))
    high = max(low, int(np.searchsorted(rows.below, wanted + reach, side="right")) - 1)
    ranks = np.arange(low, high + 2)
    if rows.whole > 1 and rate <= _NEAR:
        units = rows.below[low : high + 1] // rows.whole
        ranks = ranks[np.diff(units, prepend=-1, append=-1) != 0]
    # Points of rank k start behind row k - 1 and end with row k.
    starts = np.empty(len(ranks), dtype=np.int64)
    starts[0] = first if low == 0 else rows.positions[low - 1] + 1
    starts[1:-1] = rows.positions[ranks[1:-1] - 1] + 1
    starts[-1] = last + 1 if high == n else rows.positions[high] + 1
    edges = np.empty(2 * len(starts) + 1, dtype=np.int64)
    edges[0], edges[-1] = first, last + 1
    edges[1:-1:2] = starts
    edges[2:-1:2] = np.minimum(starts[:-1] + 1, starts[1:])
    distances = np.empty(len(edges) - 1, dtype=np.int64)
    # There is no row before the first one.
    before = rows.scores(np.maximum(ranks - 1, 0), share)
    scores = rows.scores(ranks[:-1], share)
    distances[2:-1:2] = _distance(scores, before[1:])
    distances[1:-1:2] = _distance(before[:-1], scores)
    distances[0], distances[-1] = abs(before[0]), abs(before[-1])
    return edges, distances


def _distance(low, high):
    """The distance of 0 from [low, high]."""
    return np.maximum(np.maximum(low, -high), 0)


def _accepted(rows, point, share, distance, step, stream):
    """Accept a point of a run by how much farther it is than the run's distance."""
    place = int(np.searchsorted(rows.positions, point))
    behind = place > 0 and rows.positions[place - 1] == point - 1
    own = _distance(rows.scores(place - int(behind), share), rows.scores(place, share))
    excess = step * (int(own) - int(distance))
    exponents = np.array([float(min(excess, 10_000))])

    def exact(index):
        return np.array([excess.numerator], dtype=object), excess.denominator

    return excess == 0 or bool(bernoulli_exp(exponents, exact, stream)[0])
