"""The budget of a fit, and what it learns of columns: bounds, categories, bins with counts."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from skdp._data._histogram import check_edges
from skdp._data._persons import shares_of
from skdp._sgd._noise import SLACK, GaussianNoise
from skdp.accounting import ApproximateDP, Gaussian, Guarantee, PureDP, gaussian_noise_multiplier
from skdp.gam._bins import CELLS, LEVELS, consistent_counts, merged_cells, nearest_masses
from skdp.gam._columns import LARGEST_LIST, Term, exact_counts, finest_edges
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.mechanisms._plan import PlanValue
from skdp.mechanisms._stages import UNNAMED, stages_of
from skdp.noise import discrete_gaussian
from skdp.preprocessing._categories import StabilityThreshold
from skdp.stats._bounds import BoundsPlan
from skdp.utils._findings import (
    NO_CATEGORIES,
    ONE_BIN,
    report_finding,
    report_identifiers,
    report_many_labels,
    report_unmatched,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundsSearch(BoundsPlan):
    """The search for bounds with the noise of a share of a budget.

    Parameters
    ----------
    whole : LaplaceMechanism or GaussianMechanism
    """

    whole: object = None


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianThreshold(StabilityThreshold):
    r"""The values of columns whose count with Gaussian noise reaches a threshold.

    A value that occurs in one row is released with probability :math:`\delta_t / d` at most. The
    noise of counts is that of a vector as long as could be, so that its law does not depend on how
    many values occur. The proof is in ``docs/additive_models.md``.

    Parameters
    ----------
    noise_multiplier : float
    n_rows : int
    threshold_delta : float
    """

    noise_multiplier: float
    n_rows: int
    threshold_delta: float

    name = "Gaussian mechanism with a stability threshold"

    @property
    def scale(self):
        return self._noise.scale

    @property
    def sensitivity(self):
        return self._noise.sensitivity

    @property
    def event(self):
        """What it costs within the budget of a fit, which is charged as a whole."""
        return Gaussian(self.noise_multiplier) + ApproximateDP(0.0, self.threshold_delta)

    def __post_init__(self):
        object.__setattr__(self, "mechanism", self)

    @cached_property
    def _noise(self):
        moved = math.sqrt(self.n_columns * self.guarantee.neighbors.sensitivity_factor) * SLACK
        size = self.n_rows * self.n_columns
        return GaussianNoise(self.noise_multiplier * moved * SLACK, size, moved)

    @property
    def threshold(self):
        normal = GaussianMechanism.from_scale(1.0, 1.0, 0.5)
        deviation = normal.tail(self.threshold_delta / self.n_columns)
        return 1.0 + self._noise.drawn_scale * deviation * (1.0 + 2.0**-20)

    def release(self, counts, *, random_state):
        noise = self._noise
        drawn = discrete_gaussian(noise.scale_in_steps, len(counts), random_state.stream())
        return noise.add(np.asarray(counts, float), drawn)

    def run(self, columns, source, persons=None):
        """Return the released labels of each of some columns."""
        found = self.found(columns, source, persons)
        return [own[np.sort(np.argsort(-n, kind="stable")[:LARGEST_LIST])] for own, n in found]


# What part of delta a search for categories may fail with.
DELTA_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much noise a share of a guarantee asks for.

    Releases whose shares add up to 1 are one Gaussian release of the multiplier `multiplier`
    together, whatever was seen before each of them was made (Dong, Roth and Su 2022).

    Parameters
    ----------
    guarantee : Guarantee
    discovers : bool
        Whether categories are sought: that may fail with a part of delta.
    """

    guarantee: Guarantee
    discovers: bool = False

    def __post_init__(self):
        if self.discovers and self.pure:
            raise ValueError("categories are found with delta > 0 only; declare them")

    @property
    def pure(self):
        return self.guarantee.delta == 0.0

    @property
    def threshold_delta(self):
        return DELTA_SHARE * self.guarantee.delta if self.discovers else 0.0

    @cached_property
    def multiplier(self):
        """The noise multiplier 1 / mu of one Gaussian release; rounded up."""
        delta = math.nextafter(self.guarantee.delta - self.threshold_delta, 0.0)
        return gaussian_noise_multiplier(self.guarantee.epsilon, delta) * SLACK

    @cached_property
    def event(self):
        return PureDP(self.guarantee.epsilon) if self.pure else self.event_of(1.0)

    def event_of(self, share):
        """Return what Gaussian releases of a share of mu squared cost, with any discovery."""
        event = Gaussian(self.multiplier / math.sqrt(share))
        return event + ApproximateDP(0.0, self.threshold_delta) if self.discovers else event

    def mechanism(self, share, *, l1, l2):
        """Return what makes one release that costs a share of the whole.

        Parameters
        ----------
        share : float in (0, 1]
            Of mu squared, or of epsilon with delta = 0.
        l1, l2 : float
            What it moves by between neighbors.

        Returns
        -------
        LaplaceMechanism or GaussianMechanism
        """
        if self.pure:
            return LaplaceMechanism(share * self.guarantee.epsilon, sensitivity=l1)
        scale = self.noise(share, 1, moved=l2).scale
        return GaussianMechanism.from_scale(scale, l2, self.guarantee.delta)

    def noise(self, share, size, *, moved, n_steps=1):
        """Return the Gaussian noise of some releases that cost a share of mu squared together.

        Parameters
        ----------
        share : float in (0, 1]
        size : int
            Of how many values each.
        moved : float
            By how much, in L2 norm, a release moves between neighbors.
        n_steps : int, default=1
            How many releases.

        Returns
        -------
        GaussianNoise
        """
        scale = moved * self.multiplier * math.sqrt(n_steps / share)
        return GaussianNoise(scale * SLACK**2, size, moved)


# Shares of mu squared, or of epsilon with delta = 0.
SEARCH_SHARE = 0.05
DISCOVERY_SHARE = 0.1
CELLS_SHARE = 0.05
PURE_CELLS_SHARE = 0.15
# A column of numbers has so many standard deviations of a count's noise spread evenly over its
# bounds, beside its noisy counts: where noise hides these, its bins have equal widths.
EVEN_NOISES = 2.0


# A column is reported to be in one bin if the others hold this fraction of the rows at most, and if
# the noise of a count is this fraction of them at most.
MAX_OTHER_BINS = 0.05
MAX_NOISE_OF_ONE_BIN = 0.02
# That of bins which hold one of the numbers that flags and amounts of rare events have in most
# rows: there a large bin is no sign of bounds that are too wide. Of bounds that were found only
# bins up to this width count so: wider ones may hold many other values.
USUAL_VALUES = np.array([-1.0, 0.0, 1.0])
MAX_WIDTH_OF_USUAL_VALUE = 1.0
MAX_OTHER_BINS_OF_USUAL_VALUES = 0.005


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnsPlan(PlanValue):
    """The stages before a model; `shares` says what each of them gets.

    Parameters
    ----------
    columns : list of Column
    n_rows : int
    n_bins : int
    guarantee : Guarantee
    """

    columns: list
    n_rows: int
    n_bins: int
    guarantee: object

    sparse_output = False
    by_person = True
    # Of numbers' cells those that are counted: how often a range is halved.
    levels = range(1, LEVELS + 1)
    # Whether these have one width, or are the narrower, the nearer they are to an end of the range.
    even = True
    # Counts that a row is in, beside those of columns.
    n_others = 0

    def __post_init__(self):
        # What could not be counted or drawn is refused before the charge.
        for j, column in enumerate(self.columns):
            if not column.is_label and column.known is not None:
                check_edges(self._edges(column), f"bounds of column {j} are too close")
        if self.shares["cells"]:
            self._cells_noise.check_size(self._most_counts)
        if self.discovery is not None:
            _ = self.discovery.threshold
        # It refuses what it could not draw when it is made.
        _ = self.search

    @cached_property
    def budget(self):
        return Budget(guarantee=self.guarantee, discovers=bool(self._undeclared(True)))

    @property
    def event(self):
        return self.budget.event

    @property
    def _moved(self):
        return self.guarantee.neighbors.sensitivity_factor

    def _undeclared(self, label):
        return [j for j, c in enumerate(self.columns) if c.is_label == label and c.known is None]

    @property
    def column_shares(self):
        """What the stages of the columns get where a model follows."""
        return {
            "search": SEARCH_SHARE * bool(self._undeclared(False)),
            "discovery": DISCOVERY_SHARE * bool(self._undeclared(True)),
            "cells": PURE_CELLS_SHARE if self.budget.pure else CELLS_SHARE,
        }

    @property
    def _stages_of_columns(self):
        """The stages before a model, in the order in which they run."""
        parts = [(self.discovery, UNNAMED), (self.search, UNNAMED)]
        if self.shares["cells"]:
            parts.append((self._cells_noise, "counts of cells"))
        return tuple(stage for part, name in parts if part for stage in stages_of(part, name))

    @cached_property
    def search(self):
        """Finds the bounds that are not declared, None where all are."""
        n_columns = len(self._undeclared(False))
        if not n_columns:
            return None
        moved = float(n_columns * self._moved)
        share = self.shares["search"]
        mechanism = self.budget.mechanism(share, l1=moved, l2=math.sqrt(moved) * SLACK)
        sizes = {"n_rows": self.n_rows, "n_columns": n_columns}
        return BoundsSearch(guarantee=self.guarantee, whole=mechanism, **sizes)

    @cached_property
    def discovery(self):
        """Finds the categories that are not declared, None where all are."""
        n_columns = len(self._undeclared(True))
        share = self.shares["discovery"]
        if not n_columns:
            return None
        return GaussianThreshold(
            n_columns=n_columns,
            n_rows=self.n_rows,
            guarantee=self.guarantee,
            noise_multiplier=self.budget.multiplier / math.sqrt(share),
            threshold_delta=self.budget.threshold_delta,
        )

    @property
    def _most_counts(self):
        return sum(each.most_cells(2 * CELLS) for each in self.columns)

    @property
    def _cells_noise(self):
        return self._noise_of_counts(len(self.levels))

    def _levels_of(self, deviations, fewest=1):
        """Return levels up to that whose cells hold so many deviations of their noise on average.

        Laplace's noise grows with their number. So with delta = 0 the finest stands alone.
        """
        alone = self.budget.pure
        least = deviations * self._noise_of_counts(1 if alone else LEVELS).deviation(1)
        finest = int(np.clip(round(math.log2(self.n_rows / least)), fewest, LEVELS))
        return range(finest if alone else 1, finest + 1)

    def _noise_of_counts(self, n_levels):
        of_row = sum(1 if column.is_label else n_levels for column in self.columns) + self.n_others
        squares = of_row * self._moved
        l2 = math.nextafter(math.sqrt(squares), math.inf)
        return self.budget.mechanism(self.shares["cells"], l1=float(squares), l2=l2)

    def check(self, table):
        """Raise `ValueError` where a column holds what its kind does not."""
        known = {j: c.known for j, c in enumerate(self.columns) if c.is_label}
        labels = {j: categories for j, categories in known.items() if categories is not None}
        checks = {j: column.check for j, column in enumerate(self.columns)}
        table.check(checks, labels, found=self._undeclared(True), expected=labels)

    def _found(self, table, source, persons=None):
        """Return the columns with the bounds and categories that they lacked."""
        labels = self._undeclared(True)
        numbers = self._undeclared(False)
        found = {}
        report_identifiers(table, sorted(labels + numbers))
        if labels:
            lists = self.discovery.run(table.several(labels), source, persons)
            found |= zip(labels, lists, strict=True)
            report_finding(NO_CATEGORIES, [j for j in labels if not len(found[j])])
            report_many_labels({j: len(found[j]) for j in labels}, self.n_rows)
        if numbers:
            read = partial(_numbers, columns=[(self.columns[j], j) for j in numbers])
            ends = self.search.run(table.rows(read, len(numbers)), source, persons, numbers)
            found |= zip(numbers, zip(*ends, strict=True), strict=True)
        return [replace(c, known=found.get(j, c.known)) for j, c in enumerate(self.columns)]

    def _edges(self, column):
        return finest_edges(column, 1 << self.levels[-1], even=self.even)

    def _finest(self, columns):
        """Return a term for each column: of a number the finest cells."""
        return [
            Term(features=(j,), kinds=(column.kind,), edges=(self._edges(column),))
            for j, column in enumerate(columns)
        ]

    def _noisy(self, exact, source):
        """Return counts, of shape (n_classes, n_counts) each, with the noise of one release."""
        counts = np.concatenate(exact, axis=1).astype(np.float64)
        noisy = self._cells_noise.release(counts, random_state=source)
        return np.split(noisy, np.cumsum([each.shape[1] for each in exact])[:-1], axis=1)

    def _counted(self, columns, table, source, persons=None):
        """Return a term for each column, its bins made from noisy counts of cells."""
        terms = self._finest(columns)
        scale = self._cells_noise.scale
        exact = exact_counts(terms, table, shares_of(persons), coarsest=self.levels[0])
        noisy = self._noisy(exact, source)
        terms = [self._term(term, own[0], scale) for term, own in zip(terms, noisy, strict=True)]
        self._report_counts(terms, scale)
        return terms

    def _report_counts(self, terms, scale):
        """Report columns whose noisy counts show that a model hardly tells their values apart."""
        report_finding(ONE_BIN, [t.features[0] for t in terms if self._is_in_one_bin(t, scale)])
        # Behind the cells of the categories are one of other values and one of missing ones.
        labels = {t.features[0]: t for t in terms if "label" in t.kinds and len(t.edges[0])}
        matched = {j: self.n_rows - t.counts[len(t.edges[0]) :].sum() for j, t in labels.items()}
        report_unmatched(matched, dict.fromkeys(matched, scale), self.n_rows)

    def _is_in_one_bin(self, term, scale):
        """Return True if the noisy counts show that one bin holds nearly all of a column.

        Where noise is large beside the number of rows, they do not show it.
        """
        if "label" in term.kinds or scale > MAX_NOISE_OF_ONE_BIN * self.n_rows:
            return False
        counts = term.counts[:-1]
        others = counts.sum() - counts.max()
        is_usual = self._holds_usual_value(term, int(counts.argmax()))
        fraction = MAX_OTHER_BINS_OF_USUAL_VALUES if is_usual else MAX_OTHER_BINS
        return others <= fraction * self.n_rows + scale

    def _holds_usual_value(self, term, k):
        """Return True if the k-th bin of a column holds a number that most rows may well have."""
        (edges,) = term.edges
        is_declared = self.columns[term.features[0]].known is not None
        if term.kinds != ("number",):
            return False
        if not is_declared and edges[k + 1] - edges[k] > MAX_WIDTH_OF_USUAL_VALUE:
            return False
        # The last bin holds its upper end and what is above it.
        high = edges[k + 1] if k + 2 < len(edges) else np.inf
        low = edges[k] if k else -np.inf
        return bool(((low <= USUAL_VALUES) & (USUAL_VALUES < high)).any())

    def _term(self, term, noisy, scale):
        counts, (edges,) = np.clip(noisy, 0.0, self.n_rows), term.edges
        if "label" not in term.kinds:
            missing = counts[-1]
            total = self.n_rows - missing
            masses = nearest_masses(consistent_counts(noisy[:-1], total, self.levels[0]), total)
            even = EVEN_NOISES * scale / len(masses)
            starts = merged_cells(masses + even, self.n_bins, scale)
            counts = np.append(np.add.reduceat(masses, starts), missing)
            edges = np.append(edges[starts], edges[-1])
        return replace(term, edges=(edges,), counts=counts)


def _numbers(table, rows, columns):
    """Return columns of a slice of rows; the search counts what is missing, NaN, nowhere."""
    return np.column_stack([column.numbers(table.values(j, rows)) for column, j in columns])
