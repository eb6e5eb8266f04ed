"""Plan of one release of many quantiles of many columns by the exponential mechanism."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._parts import Rows
from skdp._data._persons import n_units, row_weights_of
from skdp._fitting._findings import report_unfilled_quantiles
from skdp.accounting import ExponentialMechanism, Guarantee, Repeated, calibrate
from skdp.mechanisms._plan import plan_release
from skdp.mechanisms._stages import UNNAMED, Stage
from skdp.noise import bernoulli_exp, choose_by_distance
from skdp.noise._integers import uniform_integer
from skdp.stats._ranks import CELLS, CODE_BITS, COLUMN_SHIFT, WHOLE, ranked_columns, weights_of
from skdp.utils._units import ALL_IN_EACH
from skdp.utils._validation import as_doubles, check_integer
from skdp.utils._values import FrozenValue, checked

# Number of integer positions within each grid point. Each row is assigned a random position within
# its grid point, so two rows are almost never equal.
POSITIONS = 1 << 24
_LAST = (CELLS + 1) * POSITIONS - 1
# Unit of fractions of rows.
_UNIT = 1 << 30
# Steps of scores per unit of weight, for persons: the largest number that int64 permits with 2**26
# persons.
_FINE = 1 << 15
# Points whose probability is smaller by a factor of exp(-_FAR) are combined into one run. Rows with
# less than one unit of weight are also combined if a unit changes a probability by a factor of at
# most exp(_NEAR).
_FAR = 50
_NEAR = 0.125
# Above this epsilon per choice, advanced composition has almost no advantage.
_MAX_COMPOSED_EPSILON = 100.0
# Number of positions that are drawn at a time.
_BLOCK = 1 << 16


def check_quantiles(quantiles, name):
    """Return a flat float64 array of numbers in [0, 1], or raise `ValueError`."""
    array = as_doubles(quantiles)
    if array.ndim > 1 or array.size == 0 or not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"{name} must be numbers in [0, 1], got {quantiles!r}")
    return np.atleast_1d(array)


@dataclass(frozen=True)
class _Node(FrozenValue):
    """Choice of one quantile between two quantiles that were chosen earlier.

    Parameters
    ----------
    index : int
        Index among the sorted quantiles.
    first, last : int or None
        Indices of the two quantiles; None for the ends of the range.
    share : int
        Fraction of the rows between them that should be below the quantile, in units of 2**-30.
    """

    index: int
    first: int | None
    last: int | None
    share: int

    @property
    def larger_share(self):
        return Fraction(max(self.share, _UNIT - self.share), _UNIT)


def plan_quantiles(shape, guarantee, *, quantiles):
    """Return the plan of quantiles of columns within bounds.

    Parameters
    ----------
    shape : TableShape
        With the number of rows, if it is public.
    guarantee : Guarantee
    quantiles : array-like of shape (n_quantiles,)
        Probabilities in [0, 1].

    Returns
    -------
    Plan
        Its run is `QuantileTree.run`.
    """
    tree = QuantileTree(
        quantiles=quantiles, n_columns=shape.n_columns, n_rows=shape.n_rows, guarantee=guarantee
    )
    return plan_release(tree, tree.run, guarantee=guarantee, stage_name="quantiles")


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantileTree(FrozenValue):
    """The choices that release quantiles of several columns with one charge.

    The middle quantile of the list is chosen first, among the points of a public grid, with
    probability proportional to ``exp(-|rank - target rank| / scale)``. It splits the rows into two
    parts, in which the next quantiles are chosen, and so on. At each level, a row is in one part,
    so a level costs as much as one of its choices.

    Parameters
    ----------
    quantiles : array-like of shape (n_quantiles,)
        Probabilities in [0, 1], in any order. They may repeat.
    n_columns : int
    guarantee : Guarantee
    n_rows : int, default=None
        The public number of rows, if there is one. The target rank of a quantile q is then ``q *
        (n_rows - 1) + 1/2``. Without noise, the result is therefore the row nearest to the result
        of `numpy.quantile` (or the next row, if the quantile is chosen after others). The quantiles
        0 and 1 are the smallest and the largest row.

    Attributes
    ----------
    level_epsilon : float
        Epsilon of each level of each column.
    event : skdp.accounting.Repeated
        Privacy event of all levels of all columns.
    scale : float
        Maximum noise scale of the ranks, reached at the first level or at the most uneven split.
    sensitivity : float
        Maximum change in a score between neighboring datasets, for the choice with that scale.
    stages : tuple of Stage
        One stage, whose releases are the choices: one for each level of each column.

    Notes
    -----
    The derivation is in ``docs/theory/statistics.md``.

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
    >>> from skdp.stats._quantiles import QuantileTree
    >>> guarantee = Guarantee(epsilon=1.0)
    >>> tree = QuantileTree(quantiles=[0.25, 0.5, 0.75], n_columns=1, guarantee=guarantee)
    >>> ages = np.random.default_rng(0).uniform(0, 100, size=(10_000, 1))
    >>> released = tree.run(ages, RandomSource(), low=np.array([0.0]), high=np.array([100.0]))
    >>> bool(np.abs(released[:, 0] - [25, 50, 75]).max() < 5)
    True
    """

    quantiles: ArrayLike = checked(check_quantiles)
    n_columns: int
    guarantee: Guarantee
    n_rows: int | None = checked(check_integer, default=None, low=1)

    name = "Exponential mechanism, recursively for many quantiles"

    @cached_property
    def shares(self):
        """Fraction of the rows that should be below each quantile."""
        if self.n_rows is None:
            return self.quantiles
        return (self.quantiles * (self.n_rows - 1) + 0.5) / self.n_rows

    @cached_property
    def levels(self):
        """The choices of each level: a tuple of tuples of nodes."""
        return _levels(np.unique(self.shares))

    @cached_property
    def level_epsilon(self):
        return epsilon_of_each(self.guarantee, len(self.levels) * self.n_columns)

    @property
    def event(self):
        return Repeated(ExponentialMechanism(self.level_epsilon), len(self.levels) * self.n_columns)

    @property
    def stages(self):
        """The choices of all levels and columns, which have the same epsilon."""
        stage = Stage(
            name=UNNAMED,
            law=self.name,
            scale=self.scale,
            sensitivity=self.sensitivity,
            event=ExponentialMechanism(self.level_epsilon),
            n_releases=len(self.levels) * self.n_columns,
            reads=ALL_IN_EACH,
        )
        return (stage,)

    @property
    def scale(self):
        return float(1 / self._min_rate)

    @property
    def sensitivity(self):
        # The exponent of the exponential mechanism is score * epsilon / (2 * sensitivity).
        return float(Fraction(self.level_epsilon) / (2 * self._min_rate))

    @cached_property
    def _min_rate(self):
        return min(self._rate(level, node) for level in self.levels for node in level)

    def _rate(self, level, node):
        """Return the factor of |rank - target rank| with which a level costs its epsilon."""
        epsilon = Fraction(self.level_epsilon)
        if self.guarantee.neighbors.unit == "person":
            # Scores of weighted rows are rounded, which raises their sensitivity.
            epsilon /= 1 + Fraction(2, _FINE)
        if self.guarantee.relation == "add_remove":
            return epsilon / (2 * node.larger_share)
        if len(level) == 1:
            return epsilon / 2
        return epsilon / (4 * node.larger_share)

    def run(self, X, source, low, high, persons=None, columns=None):
        """Release the quantiles.

        Parameters
        ----------
        X : ndarray, ChunkedArray or Rows of shape (n_rows, n_columns)
            Numbers. NaN has no rank. The rows of a partitioned table stay in their partitions,
            except those with ranks near the target ranks.
        source : RandomSource
            The source that the charge returned.
        low, high : ndarray of shape (n_columns,)
            Public bounds with ``low <= high``. Values are clipped to them.
        persons : Persons, default=None
            Person of each row.
        columns : ndarray of int, default=None
            Indices of the columns in the estimator's table; None if they are all its columns.

        Returns
        -------
        ndarray of shape (n_quantiles, n_columns), float64
            Values in the order of `quantiles`, within the bounds, non-decreasing in the quantile.
        """
        rows = Rows.wrap(X)
        column_groups = ranked_columns(rows, low, high, row_weights_of(persons))
        positions = np.hstack(
            [self._choose(ranks, rows.shape[0], source) for ranks in column_groups]
        )
        values = cell_values(positions // POSITIONS, low, high)
        # If the bounds are only a few floats apart, rounding can make the values of increasing grid
        # points decrease. Sorting released values is post-processing.
        values[np.argsort(self.quantiles, kind="stable")] = np.sort(values, axis=0)
        report_unfilled_quantiles(
            values, self.shares, self.scale, n_units(rows, persons), low, high, columns
        )
        return values

    def _choose(self, ranks, n_rows, source):
        """Return the chosen positions in each of the given columns."""
        columns = range(len(ranks.starts) - 1)
        positions = [_Positions(source.stream()) for _ in columns]
        targets, inverse = np.unique(self.shares, return_inverse=True)
        choices = np.zeros((len(targets), len(columns)), dtype=np.int64)
        below = np.zeros_like(choices)
        for level in self.levels:
            rates = [self._rate(level, node) for node in level]
            parts = [
                self._part(node, rate, j, n_rows, choices[:, j], below[:, j], ranks.starts)
                for j in columns
                for node, rate in zip(level, rates, strict=True)
            ]
            for part, window in zip(parts, _windows(parts, ranks, positions), strict=True):
                index = part.node.index, part.column
                point, weight_below = _choose(part, window, positions[part.column].stream)
                choices[index] = point
                below[index] = weight_below
        return choices[inverse]

    def _part(self, node, rate, column, n_rows, positions, below, starts):
        """Return the part of a column's rows in which a node's quantile is chosen.

        Parameters
        ----------
        node : _Node
        rate : Fraction
            Result of `_rate` for the node.
        column : int
        n_rows : int
        positions, below : ndarray of int
            Chosen positions of the column's quantiles of earlier levels, and the weights of all
            rows before them.
        starts : list of int
            Cumulative weight before each column.
        """
        first = 0
        last = _LAST
        start = starts[column]
        end = starts[column + 1]
        if node.first is not None:
            first = int(positions[node.first])
            start = int(below[node.first])
        if node.last is not None:
            last = int(positions[node.last])
            end = int(below[node.last])
        by_person = self.guarantee.neighbors.unit == "person"
        return _Part(node, column, rate, by_person, n_rows, first, last, start, end)


def epsilon_of_each(guarantee, count):
    """Return the epsilon at which `count` exponential mechanisms together meet a guarantee."""
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    # Rounded down, so the sum does not exceed epsilon.
    basic = epsilon
    if count > 1:
        basic = math.nextafter(epsilon / count, 0.0)
    if delta == 0.0 or count == 1 or basic >= _MAX_COMPOSED_EPSILON:
        return basic

    def repeated(choice_epsilon):
        return Repeated(ExponentialMechanism(choice_epsilon), count)

    composed = calibrate(repeated, epsilon, delta, bounds=(basic, max(epsilon, 2 * basic)))
    return max(basic, composed)


def _levels(shares):
    """Return the binary tree over sorted fractions, level by level."""
    spans = [(0, len(shares), None, None)]
    levels = []
    while spans:
        nodes = []
        below = []
        for start, stop, first, last in spans:
            index = (start + stop) // 2
            if first is None:
                lower = 0.0
            else:
                lower = shares[first]
            if last is None:
                right = 1.0
            else:
                right = shares[last]
            share = round(float((shares[index] - lower) / (right - lower)) * _UNIT)
            nodes.append(_Node(index, first, last, share))
            if start < index:
                below.append((start, index, first, index))
            if index + 1 < stop:
                below.append((index + 1, stop, index, last))
        levels.append(tuple(nodes))
        spans = below
    return tuple(levels)


def cell_values(cells, low, high):
    """Return the values of grid points 0, ..., CELLS between the bounds."""
    share = np.clip(cells / CELLS, 0.0, 1.0)
    return np.clip((1.0 - share) * low + share * high, low, high)


@dataclass(frozen=True)
class _Part(FrozenValue):
    """Rows of a column among which one quantile is chosen.

    Parameters
    ----------
    node : _Node
        The choice.
    column : int
        Index of the column.
    rate : Fraction
        Factor of the distance between ranks in the exponent.
    by_person : bool
        True if rows have weights, which sum to at most `WHOLE` for each person.
    n_rows : int
        Number of rows of the table.
    first, last : int
        The smallest and the largest point that can be chosen.
    start, end : int
        Cumulative weight before the part, and including it.
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

    @property
    def share(self):
        """Fraction of the weight `total` that should be below the quantile, in units of 2**-30."""
        return self.node.share

    @property
    def total(self):
        """Weight of the rows of the part."""
        return self.end - self.start

    @property
    def stop(self):
        """Position after the part's rows.

        A row at a chosen point belongs to the part above it, even at the end of the range.
        """
        return self.last + (self.node.last is None)

    @property
    def whole(self):
        """Weight of one privacy unit."""
        if self.by_person:
            return WHOLE
        return 1

    @property
    def fine(self):
        """Number of steps of a score per weight of 1."""
        if self.by_person:
            return _FINE
        return _UNIT

    @property
    def first_key(self):
        """The smallest key of the column."""
        return self.column << COLUMN_SHIFT

    @cached_property
    def near(self):
        """The range of cumulative weights within which runs of points are distinguished.

        The range contains at least one point, and points outside it have negligible probability.
        """
        target = self.start + self.share * self.total // _UNIT
        distance = int(min(_FAR / self.rate, self.total // self.whole))
        distance = (distance + 2 * (self.n_rows // POSITIONS) + 64) * self.whole
        return target - distance, target + distance

    def reaches(self, weight):
        """Return True if a cumulative weight is within the part."""
        return self.start <= weight < self.end

    def run_of(self, first, end):
        """Return the range of keys of a range of cells of the column."""
        return tuple(self.first_key + (cell << CODE_BITS) for cell in (first, end))

    def scores(self, below):
        """Return (1 - q) * below - q * above in steps, rounded down, for q = share / 2**30."""
        return (below - self.start) * self.fine - self.share * self.total * self.fine // _UNIT


class _Positions:
    """Random positions of a column's rows, drawn when the rows of a cell are first needed.

    Positions are stored in pieces, each with all rows of a range of cells. A new piece is inserted
    between the others, so the positions that were drawn earlier are not copied.

    Parameters
    ----------
    stream : Stream

    Attributes
    ----------
    first_cells, end_cells : list of int
        The first cell of each piece, and the one after its last, in increasing order.
    pieces : list of ndarray of int64
        The sorted positions of the rows of each piece, each with the code of the row's weight in
        its low bits.
    """

    def __init__(self, stream):
        self.stream = stream
        self.first_cells = []
        self.end_cells = []
        self.pieces = []

    def rows(self, keys, cells):
        """Return the sorted positions of the rows of a range of cells, each with its weight's code.

        Positions are drawn for the rows that do not have one.

        Parameters
        ----------
        keys : ndarray of int
            Sorted keys of all rows in these cells, minus the smallest key of the column.
        cells : tuple of (int, int)
            The first cell, and the one after the last.

        Returns
        -------
        ndarray of shape (n_keys,), dtype int64
        """
        first, end = cells
        start = bisect_right(self.end_cells, first)
        stop = bisect_left(self.first_cells, end)
        # Ranges of cells before, between and after the pieces that overlap with the given range.
        gap_starts = [first, *self.end_cells[start:stop]]
        gap_ends = [*self.first_cells[start:stop], end]
        new_keys = [keys]
        if start < stop:
            gaps = np.searchsorted(keys, np.array([gap_starts, gap_ends]) << CODE_BITS)
            new_keys = [keys[i:j] for i, j in gaps.T.tolist()]
        new_pieces = self._drawn(new_keys)
        pieces = new_pieces[:1]
        for old, new in zip(self.pieces[start:stop], new_pieces[1:], strict=True):
            pieces += [old, new]
        # The first and the last piece may begin before the range, or end after it.
        trimmed = [p for p in pieces if len(p)]
        if start < stop and trimmed:
            positions = np.array(cells) * POSITIONS << CODE_BITS
            trimmed[0] = trimmed[0][np.searchsorted(trimmed[0], positions[0]) :]
            trimmed[-1] = trimmed[-1][: np.searchsorted(trimmed[-1], positions[1])]
        # From the last gap on, so that indices of earlier pieces do not change.
        for i in reversed(range(len(new_pieces))):
            if len(new_pieces[i]):
                self.first_cells.insert(start + i, gap_starts[i])
                self.end_cells.insert(start + i, gap_ends[i])
                self.pieces.insert(start + i, new_pieces[i])
        if len(trimmed) == 1:
            return trimmed[0]
        return np.concatenate([np.empty(0, dtype=np.int64), *trimmed])

    def _drawn(self, new_keys):
        """Return the sorted positions of rows, drawn for a list of keys of disjoint cells."""
        keys = new_keys[0]
        if len(new_keys) > 1:
            keys = np.concatenate(new_keys)
        if not len(keys):
            return new_keys
        # The positions of all rows of a cell are drawn at once.
        drawn = (keys >> CODE_BITS) * POSITIONS
        for first in range(0, len(drawn), _BLOCK):
            block = drawn[first : first + _BLOCK]
            words = self.stream.words((len(block) + 1) // 2).view(np.uint32)[: len(block)]
            block += words & np.uint32(POSITIONS - 1)
        drawn <<= CODE_BITS
        drawn |= keys & ((1 << CODE_BITS) - 1)
        # Cells are disjoint and in order, so the sorted rows of each of them stay together.
        drawn.sort()
        ends = list(accumulate(map(len, new_keys), initial=0))
        return [drawn[start:end] for start, end in pairwise(ends)]


class _Window:
    """Rows of a part near the target rank, in the order of their positions.

    Parameters
    ----------
    part : _Part
    ranks : StoredColumns or CountedColumns
    drawn : _Positions
        Positions of the column's rows.
    cells : tuple of (int, int)
        The first cell of the window, and the one after the last.
    anchor : tuple of (int, int)
        A position, and the weight of the rows below it.
    keys : ndarray of int
        Keys of the rows in these cells.

    Attributes
    ----------
    positions : ndarray of shape (n,), dtype int64
        Positions of the rows. Weighted rows at the same position are combined.
    below : ndarray of shape (n + 1,), dtype int64
        Cumulative weight before each row, and after the last one.
    """

    def __init__(self, part, ranks, drawn, cells, anchor, keys):
        self._part = part
        self._ranks = ranks
        self._drawn = drawn
        self._cells = cells
        self._anchor = anchor
        rows = drawn.rows(keys - part.first_key, cells)
        lowest, highest = (cell * POSITIONS for cell in cells)
        first = min(max(part.first, lowest), highest)
        end = min(max(part.stop, lowest), highest)
        positions = np.array([first, end, anchor[0]]) << CODE_BITS
        start, stop, at_anchor = rows.searchsorted(positions).tolist()
        if not part.by_person:
            # Each row has weight 1.
            self.positions = rows[start:stop] >> CODE_BITS
            below = np.arange(start, stop + 1)
            below += anchor[1] - at_anchor
            self.below = below
            return
        sums = np.append(0, np.cumsum(weights_of(rows)))
        positions = rows[start:stop] >> CODE_BITS
        below = sums[start : stop + 1] + (anchor[1] - sums[at_anchor])
        if len(positions):
            is_last = np.append(positions[1:] != positions[:-1], True)
            positions = positions[is_last]
            below = below[np.append(True, is_last)]
        self.positions = positions
        self.below = below

    def with_point(self, point):
        """Return this window, extended if it does not contain a point and the one before it."""
        first, end = self._cells
        cells = min(first, max(point - 1, 0) // POSITIONS), max(end, point // POSITIONS + 1)
        if cells == self._cells:
            return self
        (keys,) = self._ranks.rows([self._part.run_of(*cells)])
        return _Window(self._part, self._ranks, self._drawn, cells, self._anchor, keys)


def _windows(parts, ranks, positions):
    """Yield the window of each given part.

    The rows of all windows are found and read together, since each search over a partitioned table
    is a pass over the data.
    """
    ranges = [(part.near[0] - 1, part.near[1]) for part in parts]
    spans = [
        (max(lowest, part.start), min(highest, part.end - 1))
        for part, (lowest, highest) in zip(parts, ranges, strict=True)
    ]
    ranks.sort([(lowest, highest) for lowest, highest in spans if lowest <= highest])
    weights = []
    for part, weight_range in zip(parts, ranges, strict=True):
        weights += [weight for weight in weight_range if part.reaches(weight)]
    cells_at = {}
    if weights:
        cells_at = dict(zip(weights, ranks.find(weights), strict=True))
    bounds = []
    for part, (lowest, highest) in zip(parts, ranges, strict=True):
        first = part.first // POSITIONS
        end = (part.stop - 1) // POSITIONS + 1
        anchor = part.first, part.start
        if part.reaches(lowest):
            key, below = cells_at[lowest]
            first = (key - part.first_key) >> CODE_BITS
            anchor = first * POSITIONS, below
        if part.reaches(highest):
            end = ((cells_at[highest][0] - part.first_key) >> CODE_BITS) + 1
        bounds.append(((first, end), anchor))
    runs = [part.run_of(*cells) for part, (cells, _) in zip(parts, bounds, strict=True)]
    for part, (cells, anchor), keys in zip(parts, bounds, ranks.rows(runs), strict=True):
        yield _Window(part, ranks, positions[part.column], cells, anchor, keys)


def _choose(part, rows, stream):
    """Choose a point of a part; return it and the weight of the column's rows below it.

    The score of a point c is f(c) = (1 - q) below - q above, with the weights of the rows below c
    and from c on, and q = share / 2**30. Its distance is |f(c)|. For the point after a row of
    weight w, the distance is that from 0 to the interval [f(c) - w, f(c)].
    """
    edges, distances = _intervals(part, rows)
    weights = np.diff(edges)
    step = part.rate / (part.whole * part.fine)
    while True:
        j = choose_by_distance(weights, distances, step, stream)
        point = int(edges[j]) + uniform_integer(int(weights[j]), stream)
        window = rows.with_point(point)
        if _accepted(part, window, point, distances[j], step, stream):
            return point, window.below[window.positions.searchsorted(point)]


def _intervals(part, rows):
    """Return the edges of runs of points, and a lower bound on the distances in each run.

    The points of a run near the target rank have the same distance, or distances that differ by at
    most the weight of one unit. The first and the last run contain all points below and above
    these.
    """
    n = len(rows.positions)
    low = int(rows.below.searchsorted(part.near[0]))
    high = max(low, int(rows.below.searchsorted(part.near[1], side="right")) - 1)
    # Points of rank k start after row k - 1 and end with row k. There is no row before the first.
    positions = rows.positions[low:high]
    below = rows.below[low : high + 1]
    if part.by_person and part.rate <= _NEAR:
        units = (below - part.start) // part.whole
        is_first = np.diff(units, prepend=-1, append=-1) != 0
        ranks = np.arange(low, high + 2)[is_first]
        positions = rows.positions[ranks[1:-1] - 1]
        scores = part.scores(rows.below[ranks[:-1]])
        before = part.scores(rows.below[np.maximum(ranks - 1, 0)])
    else:
        before = part.scores(np.append(rows.below[max(low - 1, 0)], below))
        scores = before[1:]
    starts = np.empty(len(before), dtype=np.int64)
    starts[0] = part.first
    if low != 0:
        starts[0] = rows.positions[low - 1] + 1
    np.add(positions, 1, out=starts[1:-1])
    starts[-1] = part.last + 1
    if high != n:
        starts[-1] = rows.positions[high] + 1
    edges = np.empty(2 * len(starts) + 1, dtype=np.int64)
    edges[0], edges[-1] = part.first, part.last + 1
    edges[1:-1:2] = starts
    np.minimum(starts[:-1] + 1, starts[1:], out=edges[2:-1:2])
    distances = np.empty(len(edges) - 1, dtype=np.int64)
    distances[2:-1:2] = _distance(scores, before[1:])
    distances[1:-1:2] = _distance(before[:-1], scores)
    distances[0], distances[-1] = abs(before[0]), abs(before[-1])
    return edges, distances


def _distance(low, high):
    """Return the distance from 0 to [low, high]."""
    return np.maximum(np.maximum(low, -high), 0)


def _accepted(part, rows, point, distance, step, stream):
    """Return True with probability exp(-excess), where a point exceeds the distance of its run.

    A distance is that of a point's rank from the target rank. `distance` is the lower bound of
    `_intervals`, and `step` the factor of its excess in the exponent, a fraction.
    """
    index = int(rows.positions.searchsorted(point))
    is_after_row = index > 0 and rows.positions[index - 1] == point - 1
    weights_below = rows.below[[index - int(is_after_row), index]]
    low, high = part.scores(weights_below).tolist()
    difference = max(low, -high, 0) - int(distance)
    if difference == 0:
        return True
    excess = step * difference
    exponents = np.array([float(min(excess, 10_000))])

    def exact(index):
        return np.array([excess.numerator], dtype=object), excess.denominator

    return bool(bernoulli_exp(exponents, exact, stream)[0])
