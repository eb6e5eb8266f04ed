"""The stages that precede a model (bounds, categories, bin counts) and their budget fractions."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from skdp._data._dyadic import CELLS, LEVELS, consistent_counts, merge_cells, nonnegative_counts
from skdp._data._histogram import check_edges
from skdp._data._persons import row_weights_of
from skdp._fitting._findings import (
    NO_CATEGORIES,
    ONE_BIN,
    is_in_one_bin,
    report_finding,
    report_identifiers,
    report_many_labels,
    report_one_label,
    report_resolved_bins,
    report_unmatched,
)
from skdp._optim._gradient_noise import SLACK, GaussianNoise
from skdp.accounting import (
    ApproximateDP,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    PureDP,
    calibrate,
    gaussian_noise_multiplier,
    get_epsilon,
)
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.mechanisms._plan import Plan
from skdp.mechanisms._stages import stages_of
from skdp.noise import discrete_gaussian
from skdp.stats._bounds import BoundsSearch
from skdp.stats._categories import CATEGORIES, StabilityThreshold
from skdp.stats._column_cells import MAX_CATEGORIES, Term, exact_counts, finest_edges
from skdp.utils._values import FrozenValue

# Budget fractions of the stages of columns: the search for bounds, the selection of categories, and
# the counts of cells. They are fractions of mu squared, or of epsilon with delta = 0.
BOUNDS_FRACTION = 0.05
KEY_SELECTION_FRACTION = 0.1
COUNTS_FRACTION = 0.05
PURE_COUNTS_FRACTION = 0.15
# Fraction of delta with which the selection of categories may fail.
KEY_SELECTION_DELTA_FRACTION = 0.1
# Squared epsilon of a choice by the exponential mechanism, in units of the mu squared that it
# replaces. With 4, the cost would exceed epsilon by 0.3 to 1.6 % (for epsilon from 0.1 to 20).
SELECTION_SQUARE = 3.0
# Pseudo-count of a numeric column, in standard deviations of the noise in a count. It is spread
# evenly over the bounds, so bins have equal widths if the noise hides the counts.
UNIFORM_PSEUDO_COUNT = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianThreshold(StabilityThreshold):
    r"""Release of the values whose counts, with Gaussian noise, reach a threshold.

    A value that occurs in one row is released with probability at most :math:`\delta_t / d`. The
    noise of the counts is calibrated for the largest possible number of values, so its distribution
    does not depend on the number of values in the data. The proof is in
    ``docs/theory/additive_models.md``.

    Parameters
    ----------
    noise_multiplier : float
        Noise scale divided by the L2 sensitivity of the counts.
    n_rows : int
        Public number of rows.
    threshold_delta : float
        Probability with which a value that occurs in a single row may be released, for all columns
        together.
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
        """Privacy event of the release, which is part of the fit's charge."""
        return Gaussian(self.noise_multiplier) + ApproximateDP(0.0, self.threshold_delta)

    @cached_property
    def _noise(self):
        """Noise of the counts, for the largest possible number of values."""
        sensitivity_factor = self.guarantee.neighbors.sensitivity_factor
        l2_sensitivity = math.sqrt(self.n_columns * sensitivity_factor) * SLACK
        size = self.n_rows * self.n_columns
        return GaussianNoise(self.noise_multiplier * l2_sensitivity * SLACK, size, l2_sensitivity)

    @property
    def threshold(self):
        """Threshold of the noisy counts."""
        standard_normal = GaussianMechanism.from_scale(1.0, 1.0, 0.5)
        quantile = standard_normal.tail(self.threshold_delta / self.n_columns)
        # The last factor covers the discretization of the noise.
        return 1.0 + self._noise.drawn_scale * quantile * (1.0 + 2.0**-20)

    def release(self, counts, *, random_state):
        """Return the noisy counts of the values that occur."""
        noise = self._noise
        drawn = discrete_gaussian(noise.scale_in_steps, len(counts), random_state.stream())
        return noise.add(np.asarray(counts, float), drawn)

    def run(self, columns, source, persons=None):
        """Return the released categories of each column, at most `MAX_CATEGORIES`."""
        categories = []
        for labels, counts in self.release_labels(columns, source, persons):
            most_frequent = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
            categories.append(labels[np.sort(most_frequent)])
        return categories


def _selection_epsilon(multiplier, n_choices, budget_fraction):
    """Return the epsilon of each choice in a round that replaces a fraction of mu squared.

    A choice of bounded range epsilon is (epsilon^2 / 8)-zCDP, as is a Gaussian release of
    mu = epsilon / 2 (Cesar and Rogers 2021). At the privacy levels of a fit, a choice costs up to
    4/3 of that, so `SELECTION_SQUARE` is 3 instead of 4.
    """
    return math.sqrt(SELECTION_SQUARE * budget_fraction / n_choices) / multiplier


def _with_selections(event, multiplier, selections):
    """Return the event composed with all choices by the exponential mechanism."""
    for n_choices, fraction in selections:
        epsilon = _selection_epsilon(multiplier, n_choices, fraction)
        event = event + ExponentialMechanism(epsilon) * n_choices
    return event


@lru_cache(maxsize=256)
def _multiplier_with_selections(epsilon, delta, selections):
    """Return the smallest noise multiplier of the whole budget if part of it goes to choices.

    It is at least the multiplier for Gaussian releases alone, and usually equal to it.
    """
    gaussian_fraction = 1.0 - math.fsum(fraction for _, fraction in selections)

    def event_at(multiplier):
        event = Gaussian(multiplier / math.sqrt(gaussian_fraction))
        return _with_selections(event, multiplier, selections)

    alone = gaussian_noise_multiplier(epsilon, delta) * SLACK
    if get_epsilon(event_at(alone), delta) <= epsilon:
        return alone
    return calibrate(event_at, epsilon, delta, bounds=(alone, 2.0 * alone)) * SLACK


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The privacy budget of a fit, and the noise that a fraction of it requires.

    Gaussian releases whose fractions of mu squared add up to 1 form one Gaussian release with the
    noise multiplier `multiplier`, even if each one is chosen in view of the previous results (Dong,
    Roth and Su 2022).

    Parameters
    ----------
    guarantee : Guarantee
    uses_key_selection : bool, default=False
        True if categories are found privately, which may fail with a fraction of delta.
    selections : tuple of (int, float), default=()
        Number of choices by the exponential mechanism, and the fraction of mu squared that they
        replace, for each round of choices.
    """

    guarantee: Guarantee
    uses_key_selection: bool = False
    selections: tuple = ()

    def __post_init__(self):
        if self.uses_key_selection and self.is_pure:
            raise ValueError(
                "categories: finding categories needs delta > 0. Declare them, or set delta."
            )

    @property
    def is_pure(self):
        """True for pure differential privacy, delta = 0."""
        return self.guarantee.delta == 0.0

    @property
    def threshold_delta(self):
        """Part of delta that is reserved for a failure of the selection of categories."""
        if self.uses_key_selection:
            return KEY_SELECTION_DELTA_FRACTION * self.guarantee.delta
        return 0.0

    @cached_property
    def multiplier(self):
        """Noise multiplier 1 / mu of one Gaussian release with the whole budget; rounded up."""
        delta = math.nextafter(self.guarantee.delta - self.threshold_delta, 0.0)
        epsilon = self.guarantee.epsilon
        if not self.selections:
            return gaussian_noise_multiplier(epsilon, delta) * SLACK
        return _multiplier_with_selections(epsilon, delta, self.selections)

    def selection_epsilon(self, n_choices, budget_fraction):
        """Return the epsilon of each of `n_choices` choices by the exponential mechanism."""
        return _selection_epsilon(self.multiplier, n_choices, budget_fraction)

    @cached_property
    def event(self):
        """Privacy event of the whole budget."""
        if self.is_pure:
            return PureDP(self.guarantee.epsilon)
        return self.partial_event(1.0 - math.fsum(fraction for _, fraction in self.selections))

    def partial_event(self, budget_fraction):
        """Return the event of Gaussian releases with a fraction of mu squared.

        It includes all choices by the exponential mechanism, and the failure probability of the
        selection of categories.
        """
        event = Gaussian(self.multiplier / math.sqrt(budget_fraction))
        event = _with_selections(event, self.multiplier, self.selections)
        if self.uses_key_selection:
            return event + ApproximateDP(0.0, self.threshold_delta)
        return event

    def mechanism(self, budget_fraction, *, l1, l2):
        """Return the mechanism of one release that costs a fraction of the budget.

        Parameters
        ----------
        budget_fraction : float in (0, 1]
            Fraction of mu squared, or of epsilon with delta = 0.
        l1, l2 : float
            L1 and L2 sensitivity of the release.

        Returns
        -------
        LaplaceMechanism or GaussianMechanism
        """
        if self.is_pure:
            return LaplaceMechanism(budget_fraction * self.guarantee.epsilon, sensitivity=l1)
        scale = self.noise(budget_fraction, 1, l2_sensitivity=l2).scale
        return GaussianMechanism.from_scale(scale, l2, self.guarantee.delta)

    def noise(self, budget_fraction, size, *, l2_sensitivity, n_steps=1):
        """Return the Gaussian noise for releases that together cost a given fraction of mu squared.

        Parameters
        ----------
        budget_fraction : float in (0, 1]
        size : int
            Number of values of a release.
        l2_sensitivity : float
            L2 sensitivity of a release.
        n_steps : int, default=1
            Number of releases.

        Returns
        -------
        GaussianNoise
        """
        scale = l2_sensitivity * self.multiplier * math.sqrt(n_steps / budget_fraction)
        return GaussianNoise(scale * SLACK**2, size, l2_sensitivity)


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnsFit(FrozenValue):
    """A fit whose first stages concern the columns; `plan_columns` returns its plan.

    Subclasses define `budget_fractions`, which maps each stage to its fraction of the budget, the
    `stages`, the `name`, the noise `scale` and the `sensitivity` of the main stage, and `run`.

    Parameters
    ----------
    columns : list of Column
    n_rows : int
        Public number of rows.
    n_bins : int
        Approximate maximum number of bins of a numeric column.
    guarantee : Guarantee
    """

    columns: list
    n_rows: int
    n_bins: int
    guarantee: object

    # Levels at which the dyadic cells of numeric columns are counted; level k has 2**k cells.
    levels = range(1, LEVELS + 1)
    # True if the finest cells have equal widths; otherwise they are narrower towards the ends of
    # the range.
    equal_width = True
    # Number of cells into which a numeric column is divided if the noise allows only fewer bins.
    min_cells = 0
    # Number of counts, other than those of its columns, to which a row contributes.
    n_other_counts = 0

    def __post_init__(self):
        # Cells that cannot be counted, and noise that cannot be drawn, are refused before the
        # charge.
        for j, column in enumerate(self.columns):
            if not column.is_categorical and column.domain is not None:
                check_edges(self._edges(column), f"bounds of column {j} are too close")
        if self.budget_fractions["counts"]:
            self._counts_mechanism.check_size(self._max_counts)
        if self.key_selection is not None:
            _ = self.key_selection.threshold
        # The constructor raises `ValueError` for noise that cannot be drawn.
        _ = self.bounds_search

    @cached_property
    def budget(self):
        """The budget of the fit and its division."""
        return Budget(
            guarantee=self.guarantee,
            uses_key_selection=bool(self._undeclared(categorical=True)),
            selections=self.selections,
        )

    # Rounds of choices by the exponential mechanism, as in `Budget`.
    selections = ()

    @property
    def _sensitivity_factor(self):
        return self.guarantee.neighbors.sensitivity_factor

    def _undeclared(self, *, categorical):
        """Return the positions of the columns without a declared domain."""
        return [
            j
            for j, column in enumerate(self.columns)
            if column.is_categorical == categorical and column.domain is None
        ]

    @property
    def column_fractions(self):
        """Budget fractions of the columns' stages if a model follows.

        Subclasses make their `budget_fractions` of them; those of `VectorizerFit`, which no model
        follows, have the same ratios.
        """
        fractions = {"bounds": 0.0, "key_selection": 0.0, "counts": COUNTS_FRACTION}
        if self._undeclared(categorical=False):
            fractions["bounds"] = BOUNDS_FRACTION
        if self._undeclared(categorical=True):
            fractions["key_selection"] = KEY_SELECTION_FRACTION
        if self.budget.is_pure:
            fractions["counts"] = PURE_COUNTS_FRACTION
        return fractions

    @property
    def _column_stages(self):
        """Stages before a model, in the order in which they run."""
        stages = []
        if self.key_selection is not None:
            stages.extend(stages_of(self.key_selection, CATEGORIES))
        if self.bounds_search is not None:
            stages.extend(self.bounds_search.stages)
        if self.budget_fractions["counts"]:
            stages.extend(stages_of(self._counts_mechanism, "counts of cells"))
        return tuple(stages)

    @cached_property
    def bounds_search(self):
        """Search for the bounds that are not declared, or None if all are declared."""
        n_columns = len(self._undeclared(categorical=False))
        if not n_columns:
            return None
        l1_sensitivity = float(n_columns * self._sensitivity_factor)
        mechanism = self.budget.mechanism(
            self.budget_fractions["bounds"], l1=l1_sensitivity, l2=math.sqrt(l1_sensitivity) * SLACK
        )
        return BoundsSearch(
            guarantee=self.guarantee,
            one_step_mechanism=mechanism,
            n_rows=self.n_rows,
            n_columns=n_columns,
        )

    @cached_property
    def key_selection(self):
        """Selection of the categories that are not declared, or None if all are declared.

        Key selection (or partition selection) releases the keys, here categories, that many rows
        have.
        """
        n_columns = len(self._undeclared(categorical=True))
        if not n_columns:
            return None
        budget_fraction = self.budget_fractions["key_selection"]
        return GaussianThreshold(
            n_columns=n_columns,
            n_rows=self.n_rows,
            guarantee=self.guarantee,
            noise_multiplier=self.budget.multiplier / math.sqrt(budget_fraction),
            threshold_delta=self.budget.threshold_delta,
        )

    @property
    def _max_counts(self):
        """Maximum number of counts of a release."""
        return sum(column.max_cells(2 * CELLS) for column in self.columns)

    @property
    def _counts_mechanism(self):
        return self._mechanism_for_levels(len(self.levels))

    def _choose_levels(self, min_stds, min_levels=1):
        """Return the levels up to the finest one whose average count is visible above the noise.

        Laplace noise grows with the number of levels. So with delta = 0 only the finest level is
        counted.

        Parameters
        ----------
        min_stds : float
            Minimum average count of a cell, in standard deviations of a count's noise.
        min_levels : int, default=1
            Lower limit of the finest level.
        """
        n_levels = LEVELS
        if self.budget.is_pure:
            n_levels = 1
        min_count = min_stds * self._mechanism_for_levels(n_levels).deviation(size=1)
        finest = int(np.clip(round(math.log2(self.n_rows / min_count)), min_levels, LEVELS))
        if self.budget.is_pure:
            return range(finest, finest + 1)
        return range(1, finest + 1)

    def _mechanism_for_levels(self, n_levels):
        """Return the mechanism of the counts if numeric columns are counted at `n_levels`."""
        counts_per_row = self.n_other_counts
        for column in self.columns:
            if column.is_categorical:
                counts_per_row += 1
            else:
                counts_per_row += n_levels
        l1_sensitivity = counts_per_row * self._sensitivity_factor
        # A row changes each of its counts by 1, so this number is also the squared L2 sensitivity.
        l2_sensitivity = math.nextafter(math.sqrt(l1_sensitivity), math.inf)
        return self.budget.mechanism(
            self.budget_fractions["counts"], l1=float(l1_sensitivity), l2=l2_sensitivity
        )

    def check(self, table):
        """Raise `ValueError` if a column contains values that are not of its kind."""
        labels = {
            j: column.domain
            for j, column in enumerate(self.columns)
            if column.is_categorical and column.domain is not None
        }
        checks = {j: column.check for j, column in enumerate(self.columns)}
        undeclared = self._undeclared(categorical=True)
        table.check(checks, labels, found_columns=undeclared, expected=labels)

    def _find_domains(self, table, source, persons=None):
        """Return the columns, with released bounds and categories if they are not declared."""
        categorical = self._undeclared(categorical=True)
        numeric = self._undeclared(categorical=False)
        domains = {}
        report_identifiers(table, sorted(categorical + numeric))
        if categorical:
            categories = self.key_selection.run(table.select(categorical), source, persons)
            domains |= zip(categorical, categories, strict=True)
            report_finding(NO_CATEGORIES, [j for j in categorical if not len(domains[j])])
            report_many_labels({j: len(domains[j]) for j in categorical}, self.n_rows)
        if numeric:
            read = partial(_numbers, columns=[(self.columns[j], j) for j in numeric])
            rows = table.rows(read, len(numeric))
            low, high = self.bounds_search.run(rows, source, persons, numeric)
            domains |= zip(numeric, zip(low, high, strict=True), strict=True)
        return [
            replace(column, domain=domains.get(j, column.domain))
            for j, column in enumerate(self.columns)
        ]

    def _edges(self, column):
        return finest_edges(column, 1 << self.levels[-1], equal_width=self.equal_width)

    def _finest_terms(self, columns):
        """Return one term per column, with the finest cells of numeric columns."""
        return [
            Term(features=(j,), kinds=(column.kind,), edges=(self._edges(column),))
            for j, column in enumerate(columns)
        ]

    def _release_counts(self, exact, source):
        """Return the noisy counts of all columns, from one release.

        Parameters
        ----------
        exact : list of ndarray of shape (n_classes, n_counts)
        source : RandomSource

        Returns
        -------
        list of ndarray of shape (n_classes, n_counts)
        """
        counts = np.concatenate(exact, axis=1).astype(np.float64)
        noisy = self._counts_mechanism.release(counts, random_state=source)
        ends = np.cumsum([column_counts.shape[1] for column_counts in exact])
        return np.split(noisy, ends[:-1], axis=1)

    def _count_cells(self, columns, table, source, persons=None):
        """Return one term per column; its bins and counts come from the noisy counts of cells."""
        finest_terms = self._finest_terms(columns)
        scale = self._counts_mechanism.scale
        exact = exact_counts(finest_terms, table, row_weights_of(persons), coarsest=self.levels[0])
        noisy = self._release_counts(exact, source)
        terms = []
        for term, column_counts in zip(finest_terms, noisy, strict=True):
            terms.append(self._merge_bins(term, column_counts[0], scale))
        self._report_counts([term.in_bins() for term in terms], scale)
        return terms

    def _report_counts(self, terms, scale):
        """Report columns whose values, by their noisy counts, a model can hardly distinguish."""
        report_finding(ONE_BIN, [t.features[0] for t in terms if self._is_in_one_bin(t, scale)])
        numeric = [t for t in terms if "label" not in t.kinds]
        largest_counts = {t.features[0]: t.counts[:-1].max() for t in numeric}
        report_resolved_bins(largest_counts, scale, self.n_rows)
        # The cells of the categories are followed by a cell of other values and one of missing
        # values.
        labels = {t.features[0]: t for t in terms if "label" in t.kinds and len(t.edges[0])}
        matched = {j: self.n_rows - t.counts[len(t.edges[0]) :].sum() for j, t in labels.items()}
        report_unmatched(matched, dict.fromkeys(matched, scale), self.n_rows)
        label_counts = {j: t.counts[: len(t.edges[0])] for j, t in labels.items()}
        report_one_label(label_counts, scale, self.n_rows)

    def _is_in_one_bin(self, term, scale):
        """Return True if the noisy counts show that one bin contains nearly all rows of a column.

        Returns False if the noise is too large to show it.
        """
        if "label" in term.kinds:
            return False
        is_declared = self.columns[term.features[0]].domain is not None
        counts = term.counts[:-1]
        return is_in_one_bin(
            counts,
            counts.sum() - counts.max(),
            term.edges[0],
            scale,
            self.n_rows,
            has_values=term.kinds == ("number",),
            is_declared=is_declared,
        )

    def _merge_bins(self, term, noisy, scale):
        """Return a term of one column with the bins and counts computed from its noisy counts.

        A bin has about as many rows as the noise in a count, at least, so that a model can learn a
        value for it. If the noise allows fewer than `min_cells` bins, these are divided into cells.
        An additive model learns one value per bin and a slope across the cells, its "trend"
        (``docs/theory/additive_models.md``, section 2a), which needs no minimum number of rows.

        Parameters
        ----------
        term : Term
            The column's finest cells, or its categories.
        noisy : ndarray of shape (n_counts,)
            Counts of the categories, or of the cells of a numeric column at all `levels`, the
            coarsest first. The last count is that of missing values.
        scale : float
            Scale of the noise in a count.
        """
        counts = np.clip(noisy, 0.0, self.n_rows)
        if "label" in term.kinds:
            return replace(term, counts=counts)
        (edges,) = term.edges
        missing = counts[-1]
        total = self.n_rows - missing
        cell_counts = consistent_counts(noisy[:-1], total, self.levels[0])
        cell_counts = nonnegative_counts(cell_counts, total)
        pseudo_count = UNIFORM_PSEUDO_COUNT * scale / len(cell_counts)
        padded_counts = cell_counts + pseudo_count
        starts = merge_cells(padded_counts, self.n_bins, scale)
        bin_starts = None
        n_cells = min(self.min_cells, self.n_bins)
        if len(starts) < n_cells:
            finer = np.union1d(starts, merge_cells(padded_counts, n_cells, 0.0))
            bin_starts = np.searchsorted(finer, starts)
            starts = finer
        return replace(
            term,
            edges=(np.append(edges[starts], edges[-1]),),
            counts=np.append(np.add.reduceat(cell_counts, starts), missing),
            bin_starts=bin_starts,
        )


def plan_columns(fit):
    """Return the plan of a `ColumnsFit`, whose mechanism is the fit."""
    return Plan(
        name=fit.name,
        event=fit.budget.event,
        epsilon=fit.guarantee.epsilon,
        delta=fit.guarantee.delta,
        scale=fit.scale,
        sensitivity=fit.sensitivity,
        stages=fit.stages,
        run=fit.run,
        mechanism=fit,
    )


def _numbers(table, rows, columns):
    """Return numeric columns of a slice of rows; missing values are NaN, which is not counted."""
    return np.column_stack([column.numbers(table.values(j, rows)) for column, j in columns])
