"""Many quantiles of many columns by the exponential mechanism, in one release."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from skdp._data._parts import Rows
from skdp._data._persons import row_weights_of
from skdp.accounting import ExponentialMechanism, Repeated, calibrate
from skdp.mechanisms._plan import PlanValue
from skdp.noise import bernoulli_exp, choose_by_distance, uniform_integers
from skdp.stats._moments import StatisticPlan
from skdp.stats._ranks import CELLS, CODE_BITS, COLUMN_SHIFT, WHOLE, ranked_columns, weights_of
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue, checked

# Each grid point is a run of so many integers, its positions, of which a row takes a random one,
# so that hardly any two rows are equal.
POSITIONS = 1 << 24
_LAST = (CELLS + 1) * POSITIONS - 1
_UNIT = 1 << 30
# Scores of persons' weights are rounded to as fine a grid as int64 holds for 2**26 persons.
_FINE = 1 << 15
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


@dataclass(frozen=True)
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


@dataclass(frozen=True, kw_only=True, eq=False)
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
    low, high : ndarray of shape (n_columns,)
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
        By how much the first choice's scores can differ between neighbors.

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
    >>> ends = {"low": np.array([0.0]), "high": np.array([100.0])}
    >>> plan = QuantilePlan(quantiles=[0.25, 0.5, 0.75], **ends, guarantee=guarantee)
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
    released = "quantiles"
    stages = PlanValue.stages

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

    # How many values are released together.
    @property
    def size(self):
        return self.n_columns * len(self.quantiles)

    def check_size(self, size):
        """Any number of values can be released."""

    @property
    def scale(self):
        return float(1 / min(self._rate(level, node) for level in self.levels for node in level))

    @property
    def sensitivity(self):
        if self.guarantee.relation == "replace_one":
            return 1.0
        return float(self.levels[0][0].larger_share)

    def _rate(self, level, node):
        """The factor of |rank - wanted rank| in the exponent, for the level to cost its epsilon."""
        epsilon = Fraction(self.level_epsilon)
        if self.guarantee.neighbors.unit == "person":
            # Scores of weights are rounded.
            epsilon /= 1 + Fraction(2, _FINE)
        if self.guarantee.relation == "add_remove":
            return epsilon / (2 * node.larger_share)
        return epsilon / (2 if len(level) == 1 else 4 * node.larger_share)

    def run(self, X, source, persons=None):
        """Release the quantiles.

        Parameters
        ----------
        X : ndarray, ChunkedArray or Rows of shape (n_rows, n_columns)
            Numbers; NaN counts nowhere. Rows in parts stay there, but for those whose ranks are
            near the wanted ones.
        source : RandomSource
            What the charge returned.
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        ndarray of shape (n_quantiles, n_columns), float64
            In the order of `quantiles`, within the bounds, non-decreasing in the quantile.
        """
        rows = Rows.wrap(X)
        ranked = ranked_columns(rows, self.low, self.high, row_weights_of(persons))
        chosen = np.hstack([self._choose(each, rows.shape[0], source) for each in ranked])
        values = cell_values(chosen // POSITIONS, self.low, self.high)
        # Between bounds that are a few doubles apart, rounding can put the values of increasing
        # grid points out of order. Sorting released values is post-processing.
        values[np.argsort(self.quantiles, kind="stable")] = np.sort(values, axis=0)
        return values

    def _choose(self, ranks, n_rows, source):
        """Return the chosen positions in each of some columns."""
        columns = range(len(ranks.starts) - 1)
        places = [_Places(source.stream()) for _ in columns]
        wanted, inverse = np.unique(self.shares, return_inverse=True)
        chosen = np.zeros((len(wanted), len(columns)), dtype=np.int64)
        below = np.zeros_like(chosen)
        for level in self.levels:
            parts = [
                self._part(level, node, j, n_rows, chosen[:, j], below[:, j], ranks.starts)
                for j in columns
                for node in level
            ]
            for part, window in zip(parts, _windows(parts, ranks, places), strict=True):
                place = part.node.index, part.column
                chosen[place], below[place] = _choose(part, window, places[part.column].stream)
        return chosen[inverse]

    def _part(self, level, node, column, n_rows, chosen, below, starts):
        """Return the part of a column's rows in which a node's quantile is chosen."""
        first = 0
        last = _LAST
        start = starts[column]
        end = starts[column + 1]
        if node.first is not None:
            first = int(chosen[node.first])
            start = int(below[node.first])
        if node.last is not None:
            last = int(chosen[node.last])
            end = int(below[node.last])
        rate = self._rate(level, node)
        by_person = self.guarantee.neighbors.unit == "person"
        return _Part(node, column, rate, by_person, n_rows, first, last, start, end)


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
    spans = [(0, len(shares), None, None)]
    levels = []
    while spans:
        nodes = []
        below = []
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


def cell_values(cells, low, high):
    """Return the values of grid points 0, ..., CELLS between the bounds."""
    share = np.clip(cells / CELLS, 0.0, 1.0)
    return np.clip((1.0 - share) * low + share * high, low, high)


@dataclass(frozen=True)
class _Part(FrozenValue):
    """A part of a column's rows, in which one quantile is chosen, and how.

    Parameters
    ----------
    node : _Node
        The choice.
    column : int
    rate : Fraction
        Of the distance in the exponent.
    by_person : bool
        Whether rows have weights of persons, of which `WHOLE` is one.
    n_rows : int
        Of the table.
    first, last : int
        The least and the largest point that can be chosen.
    start, end : int
        The weight of the rows below the part's, and that with the part's.
    """

    node: _Node
    column: int
    rate: Fraction
    by_person: bool
    n_rows: int
    first: int
    last: int
    start: int
    end: int

    # The fraction of the weight `total` that should lie below, in units of 2**-30.
    @property
    def share(self):
        return self.node.share

    @property
    def total(self):
        return self.end - self.start

    # The position after those of the part's rows: a row at a chosen point belongs to the part
    # above it, at the end of the range as well.
    @property
    def stop(self):
        return self.last + (self.node.last is None)

    # The weight of one unit, and how many steps of a score a weight of 1 has.
    @property
    def whole(self):
        return WHOLE if self.by_person else 1

    @property
    def fine(self):
        return _FINE if self.by_person else _UNIT

    # The least key of the column.
    @property
    def first_key(self):
        return self.column << COLUMN_SHIFT

    @cached_property
    def near(self):
        """The least and the largest weight below which points are looked at one by one.

        Far enough for what is beyond to be hopeless, and for some point to be within.
        """
        wanted = self.start + self.share * self.total // _UNIT
        reach = int(min(_FAR / self.rate, self.total // self.whole))
        reach = (reach + 2 * (self.n_rows // POSITIONS) + 64) * self.whole
        return wanted - reach, wanted + reach

    def reaches(self, weight):
        """Say whether a weight is that of a row of the part."""
        return self.start <= weight < self.end

    def run_of(self, first, end):
        """Return the run of keys that a run of cells of the column has."""
        return tuple(self.first_key + (cell << CODE_BITS) for cell in (first, end))

    def scores(self, below):
        """Return (1 - q) below - q above in steps, rounded down, for q = share / 2**30."""
        return (below - self.start) * self.fine - self.share * self.total * self.fine // _UNIT


class _Places:
    """The positions of a column's rows, drawn when rows of their cell are first asked for.

    Parameters
    ----------
    stream : Stream

    Attributes
    ----------
    rows : ndarray of shape (n,), dtype int64
        The positions that were drawn, in order, with the codes of the rows' weights behind them.
    sums : ndarray of shape (n + 1,), dtype int64
        What these weigh before each of them and, last, together.
    """

    def __init__(self, stream):
        self.stream, self.rows, self.sums = stream, np.empty(0, dtype=np.int64), np.zeros(1, int)

    def draw(self, keys, cells):
        """Draw positions for the rows of a run of cells, unless that was done.

        Parameters
        ----------
        keys : ndarray of int
            Of all rows in these cells, sorted, less the least key of the column.
        cells : tuple of (int, int)
            The first and the one after the last.
        """
        start, stop = self.find(np.array(cells) * POSITIONS)
        if stop - start == len(keys):
            return
        # All rows of a cell are placed at once.
        known = self.rows[start:stop]
        new = keys[~np.isin(keys >> CODE_BITS, known // (POSITIONS << CODE_BITS))]
        drawn = (new >> CODE_BITS) * POSITIONS
        for first in range(0, len(drawn), _BLOCK):
            block = drawn[first : first + _BLOCK]
            words = self.stream.words((len(block) + 1) // 2).view(np.uint32)[: len(block)]
            block += words & np.uint32(POSITIONS - 1)
        drawn = (drawn << CODE_BITS) | (new & ((1 << CODE_BITS) - 1))
        known = np.sort(np.append(known, drawn))
        self.rows = np.concatenate([self.rows[:start], known, self.rows[stop:]])
        self.sums = np.append(0, np.cumsum(weights_of(self.rows)))

    def find(self, positions):
        """Return how many of the rows are at lower positions than each."""
        return np.searchsorted(self.rows, positions << CODE_BITS)


class _Window:
    """Rows of a part in the order of their positions: all whose weights are near, or more.

    Parameters
    ----------
    part : _Part
    ranks : SortedColumns or CountedColumns
    places : _Places
        Of the column's rows.
    cells : tuple of (int, int)
        The first cell whose rows are looked at, and the one after the last.
    anchor : tuple of (int, int)
        A position, and the weight of the rows below it.
    keys : ndarray of int
        Of the rows in these cells.

    Attributes
    ----------
    positions : ndarray of shape (n,), dtype int64
        Of weights, rows at one position are one.
    below : ndarray of shape (n + 1,), dtype int64
        The weight before each row and, last, after all.
    """

    def __init__(self, part, ranks, places, cells, anchor, keys):
        self._part = part
        self._ranks = ranks
        self._places = places
        self._cells = cells
        self._anchor = anchor
        places.draw(keys - part.first_key, cells)
        ends = np.clip([part.first, part.stop], *np.array(cells) * POSITIONS)
        start, stop, at_anchor = places.find(np.append(ends, anchor[0]))
        positions = places.rows[start:stop] >> CODE_BITS
        below = places.sums[start : stop + 1] + (anchor[1] - places.sums[at_anchor])
        if part.by_person and len(positions):
            last = np.append(positions[1:] != positions[:-1], True)
            positions = positions[last]
            below = below[np.append(True, last)]
        self.positions = positions
        self.below = below

    def with_point(self, point):
        """Return a window in which the rows at a point and at the one before it are, or this."""
        first, end = self._cells
        cells = min(first, max(point - 1, 0) // POSITIONS), max(end, point // POSITIONS + 1)
        if cells == self._cells:
            return self
        (keys,) = self._ranks.rows([self._part.run_of(*cells)])
        return _Window(self._part, self._ranks, self._places, cells, self._anchor, keys)


def _windows(parts, ranks, places):
    """Yield the window of each of some parts."""
    ends = [(part.near[0] - 1, part.near[1]) for part in parts]
    asked = [w for part, own in zip(parts, ends, strict=True) for w in own if part.reaches(w)]
    found = dict(zip(asked, ranks.find(asked) if asked else (), strict=True))
    looked = []
    for part, (lowest, highest) in zip(parts, ends, strict=True):
        first = part.first // POSITIONS
        end = (part.stop - 1) // POSITIONS + 1
        anchor = part.first, part.start
        if part.reaches(lowest):
            key, below = found[lowest]
            first = (key - part.first_key) >> CODE_BITS
            anchor = first * POSITIONS, below
        if part.reaches(highest):
            end = ((found[highest][0] - part.first_key) >> CODE_BITS) + 1
        looked.append(((first, end), anchor))
    runs = [part.run_of(*cells) for part, (cells, _) in zip(parts, looked, strict=True)]
    for part, (cells, anchor), keys in zip(parts, looked, ranks.rows(runs), strict=True):
        yield _Window(part, ranks, places[part.column], cells, anchor, keys)


def _choose(part, rows, stream):
    """Choose a point c of a part, by the weights of the rows below c and from c on.

    With f(c) = (1 - q) below - q above for q = share / 2**30, its distance is |f(c)|, but for the
    point behind a row of weight w that of 0 from [f(c) - w, f(c)]. Returned are the point and the
    weight of the column's rows below it.
    """
    edges, distances = _intervals(part, rows)
    weights = np.diff(edges)
    step = part.rate / (part.whole * part.fine)
    while True:
        j = choose_by_distance(weights, distances, step, stream)
        point = int(edges[j]) + int(uniform_integers(int(weights[j]), 1, stream)[0])
        around = rows.with_point(point)
        if _accepted(part, around, point, distances[j], step, stream):
            return point, around.below[np.searchsorted(around.positions, point)]


def _intervals(part, rows):
    """Edges of runs of points, and the distance of each run: no point in it is nearer.

    Runs near the wanted rank hold points of one distance, or of distances that a unit's weight or
    less lies between. The first and the last run are all points below and above these.
    """
    n = len(rows.positions)
    low = int(np.searchsorted(rows.below, part.near[0]))
    high = max(low, int(np.searchsorted(rows.below, part.near[1], side="right")) - 1)
    ranks = np.arange(low, high + 2)
    if part.by_person and part.rate <= _NEAR:
        units = (rows.below[low : high + 1] - part.start) // part.whole
        ranks = ranks[np.diff(units, prepend=-1, append=-1) != 0]
    # Points of rank k start behind row k - 1 and end with row k.
    starts = np.empty(len(ranks), dtype=np.int64)
    starts[0] = part.first if low == 0 else rows.positions[low - 1] + 1
    starts[1:-1] = rows.positions[ranks[1:-1] - 1] + 1
    starts[-1] = part.last + 1 if high == n else rows.positions[high] + 1
    edges = np.empty(2 * len(starts) + 1, dtype=np.int64)
    edges[0], edges[-1] = part.first, part.last + 1
    edges[1:-1:2] = starts
    edges[2:-1:2] = np.minimum(starts[:-1] + 1, starts[1:])
    distances = np.empty(len(edges) - 1, dtype=np.int64)
    # There is no row before the first one.
    before = part.scores(rows.below[np.maximum(ranks - 1, 0)])
    scores = part.scores(rows.below[ranks[:-1]])
    distances[2:-1:2] = _distance(scores, before[1:])
    distances[1:-1:2] = _distance(before[:-1], scores)
    distances[0], distances[-1] = abs(before[0]), abs(before[-1])
    return edges, distances


def _distance(low, high):
    """The distance of 0 from [low, high]."""
    return np.maximum(np.maximum(low, -high), 0)


def _accepted(part, rows, point, distance, step, stream):
    """Accept a point of a run by how much farther it is than the run's distance."""
    place = int(np.searchsorted(rows.positions, point))
    behind = place > 0 and rows.positions[place - 1] == point - 1
    own = _distance(*part.scores(rows.below[[place - int(behind), place]]))
    excess = step * (int(own) - int(distance))
    exponents = np.array([float(min(excess, 10_000))])

    def exact(index):
        return np.array([excess.numerator], dtype=object), excess.denominator

    return excess == 0 or bool(bernoulli_exp(exponents, exact, stream)[0])
