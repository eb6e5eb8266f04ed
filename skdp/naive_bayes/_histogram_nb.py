"""Naive Bayes on raw tables, from one release of noisy counts of cells by class."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import logit, softmax

from skdp._data._dyadic import CELLS, consistent_counts, nonnegative_counts
from skdp._data._parts import sum_over
from skdp._data._persons import row_weights_of, weighted_bincount, zero_counts
from skdp._data._row_wise import row_softmax, row_sums
from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.gam import DPAdditiveClassifier
from skdp.gam._additive import FittedTerms, TermsModel
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.mechanisms._stages import stages_of
from skdp.naive_bayes._calibration import calibrate, evidence_bins, n_evidence_bins
from skdp.stats._column_cells import cells_of, exact_counts
from skdp.stats._column_plan import ColumnsFit, plan_columns
from skdp.utils._types import Bounds, Categories, Classes

# Fractions of mu squared, or of epsilon with delta = 0, for the histogram of the evidence with two
# classes and for the temperature with several. With .1 instead of .05, the mean log loss on the
# training rows of ten tables (docs/benchmarks/many_tables.py) is lower by .003 and .006 at epsilon
# = .3 and 1.
CALIBRATION_FRACTION = 0.1
TEMPERATURE_FRACTION = 0.05
# Candidate factors of the evidence with several classes, which are inverse temperatures.
INVERSE_TEMPERATURES = 0.5 ** np.arange(5)
# Minimum pseudo-count of a cell's parent, in standard deviations of a count's noise.
PARENT_COUNT_STDS = 10.0
# Number of standard deviations subtracted from the statistic of differences between cells, and the
# minimum result, in the same unit.
NULL_STDS = 2.0
MIN_DIFFERENCE_STDS = 0.1
# Counts of two classes, which limit the levels of cells (delta > 0). Their noise is n_rows divided
# by the ratio, unless this needs a larger fraction of mu squared than the maximum.
MAX_CLASSES_FRACTION = 0.02
CLASSES_RATIO = 4000.0
# Minimum average count of the rarer class in a cell, in standard deviations of a count's noise
# (delta > 0). With 1 instead of .25, the mean AUC on Adult's training rows is lower by .003 at
# epsilon = .1. A class with one row in a thousand is classified about equally well with both.
RARE_COUNT_STDS = 0.25
# Average count of a cell with delta = 0, in standard deviations of the noise.
PURE_COUNT_STDS = 8.0
# Losses are rounded to this grid, so their sums are exact.
LOSS_GRID = 2.0**-20


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramNBFit(ColumnsFit):
    """A fit: counts by class, and the calibration of the resulting evidence.

    Parameters
    ----------
    n_classes : int
    max_level : int, default=None
        Maximum level of dyadic cells, from released class counts. None means no maximum.
    """

    n_classes: int
    n_bins: int = CELLS
    max_level: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.has_two_classes:
            self._calibration_mechanism.check_size(2 * self.n_evidence_bins)
        else:
            self._losses_mechanism.check_size(len(INVERSE_TEMPERATURES))

    @property
    def name(self):
        return f"{self._counts_mechanism.name} on counts of cells by class"

    @property
    def has_two_classes(self):
        return self.n_classes == 2

    @property
    def stages(self):
        """Stages of a fit, in the order in which they run; they determine its event and price."""
        if self.has_two_classes:
            last = stages_of(self._calibration_mechanism, "counts of the evidence")
        else:
            last = stages_of(self._losses_mechanism, "losses at each temperature")
        stages = self._column_stages
        if self.limits_levels:
            # The last of the column stages counts the cells. It follows the counts of the classes,
            # which limit its levels.
            classes = stages_of(self._classes_mechanism, "counts of the classes")
            stages = (*stages[:-1], *classes, stages[-1])
        return (*stages, *last)

    @property
    def limits_levels(self):
        """True if the counts of two classes are released first and limit the levels of cells."""
        has_numbers = any(not column.is_categorical for column in self.columns)
        return self.has_two_classes and has_numbers and not self.budget.is_pure

    no_interaction = ()
    n_other_counts = 1

    @property
    def scale(self):
        return self._counts_mechanism.scale

    @property
    def sensitivity(self):
        return self._counts_mechanism.sensitivity

    @cached_property
    def budget_fractions(self):
        """Fraction of the budget for each stage."""
        calibration = TEMPERATURE_FRACTION
        if self.has_two_classes:
            calibration = CALIBRATION_FRACTION
        fractions = self.column_fractions | {"calibration": calibration, "counts": 0.0}
        if self.limits_levels:
            # The variance of the noise is 1 / fraction times that of the whole budget.
            fraction = (CLASSES_RATIO * self.budget.multiplier / self.n_rows) ** 2
            fractions["classes"] = min(fraction, MAX_CLASSES_FRACTION)
        # The counts receive the rest. The last term is a margin for rounding.
        fractions["counts"] = 1.0 - math.fsum(fractions.values()) - 2.0**-50
        return fractions

    @property
    def _max_counts(self):
        return self.n_classes * (super()._max_counts + 1)

    @cached_property
    def levels(self):
        """Levels of dyadic cells that are counted, as fine as noise allows."""
        # With delta > 0, coarser levels are counted too, so cells may be as small as the noise.
        min_stds = PURE_COUNT_STDS if self.budget.is_pure else 1.0
        levels = self._choose_levels(min_stds)
        if self.max_level is None:
            return levels
        return range(levels[0], min(levels[-1], self.max_level) + 1)

    @property
    def _losses_mechanism(self):
        """Mechanism for the sums of losses at each temperature, which choose the temperature."""
        size = len(INVERSE_TEMPERATURES)
        # A row adds a loss within [-1/2, 1/2] at each temperature.
        sensitivity = 0.5 * self._sensitivity_factor
        l2 = math.nextafter(sensitivity * math.sqrt(size), math.inf)
        budget_fraction = self.budget_fractions["calibration"]
        return self.budget.mechanism(budget_fraction, l1=sensitivity * size, l2=l2)

    @property
    def _calibration_mechanism(self):
        """Mechanism for the counts of the evidence of two classes, in its bins."""
        # A row is in one bin of the evidence, within its class.
        l1 = float(self._sensitivity_factor)
        l2 = math.nextafter(math.sqrt(l1), math.inf)
        return self.budget.mechanism(self.budget_fractions["calibration"], l1=l1, l2=l2)

    @property
    def _classes_mechanism(self):
        """Mechanism for the counts of two classes, which limit the levels of cells."""
        # A row is counted once, in its class.
        l1 = float(self._sensitivity_factor)
        l2 = math.nextafter(math.sqrt(l1), math.inf)
        return self.budget.mechanism(self.budget_fractions["classes"], l1=l1, l2=l2)

    @property
    def n_evidence_bins(self):
        """Number of bins in which the evidence of two classes is counted."""
        # The standard deviation depends little on the number of counts, and is public.
        return n_evidence_bins(self.n_rows, self._calibration_mechanism.deviation(size=2))

    def run(self, read, source, persons=None):
        """Release counts, and return the model that follows from them.

        Parameters
        ----------
        read : RowsAndTarget
            A `ColumnTable`, and the code of each row's class.
        source : RandomSource
            Source of the noise, which the charge returned.
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        fit : HistogramNBFit
            This fit, with the maximum level of cells chosen from released counts of the classes.
            The estimator publishes its scale, sensitivity and stages, which are those of the counts
            that were released. It has the event of this fit, because budget fractions are equal.
        terms : list of Term
        values : list of ndarray of shape (n_cells, n_outputs)
            Evidence of the cells; there is one output for two classes, otherwise one per class.
        constant : ndarray of shape (n_outputs,)
        """
        table = read.X
        codes = read.y
        columns = self._find_domains(table, source, persons)
        row_weights = row_weights_of(persons)
        leveled = self
        if self.limits_levels:
            leveled = replace(self, max_level=self._max_level(codes, row_weights, source))
        return (leveled, *leveled._run_counts(columns, table, codes, row_weights, source))

    def _max_level(self, codes, row_weights, source):
        """Return the finest level whose cells have enough rows of the rarer of two classes.

        The odds of two classes in a cell are as uncertain as the count of the rarer one. Finer
        levels would add noise to all counts without any information about this class.
        """
        exact = weighted_bincount(codes, row_weights, self.n_classes).astype(float)
        noisy = self._classes_mechanism.release(exact, random_state=source)
        # The counts add up to the number of rows, which is public.
        first = 0.5 * (noisy[0] + self.n_rows - noisy[1])
        n_rare = min(first, self.n_rows - first)
        for level in reversed(self.levels):
            noise_std = self._mechanism_for_levels(level).deviation(size=1)
            if n_rare >= RARE_COUNT_STDS * noise_std * 2**level:
                return level
        return self.levels[0]

    def _run_counts(self, columns, table, codes, row_weights, source):
        """Return the terms, their values and the constant from the counts of all columns."""
        coarsest = self.levels[0]
        terms = self._finest_terms(columns)
        exact = exact_counts(terms, table, row_weights, codes, self.n_classes, coarsest)
        exact.append(weighted_bincount(codes, row_weights, self.n_classes)[:, np.newaxis])
        noise_std = self._counts_mechanism.deviation(sum(counts.size for counts in exact))
        *noisy, class_counts = self._release_counts(exact, source)
        class_counts = _pool_class_counts(terms, noisy, class_counts, coarsest)
        class_counts = np.clip(class_counts, noise_std, None)
        class_counts *= self.n_rows / class_counts.sum()
        log_prior = np.log(class_counts / self.n_rows)
        terms, values, corrections = self._log_ratios(terms, noisy, class_counts, noise_std)
        self._report_counts(terms, noise_std)
        rows = cells_of(table, terms)
        row_args = (codes, row_weights)
        if self.has_two_classes:
            prior = class_counts[1] / self.n_rows
            values, shift = self._calibrated_evidence(
                terms, values, corrections, prior, rows, row_args, source
            )
            return terms, values, log_prior[1:] - log_prior[:1] + shift
        factor = self._inverse_temperature(rows, values, corrections, log_prior, row_args, source)
        return terms, [factor * column_values for column_values in values], log_prior

    def _log_ratios(self, terms, noisy, class_counts, noise_std):
        """Return log ratios of the classes' frequencies in each cell to their priors.

        Everything is computed from released counts.

        Returns
        -------
        terms : list of Term
            With their counts.
        values : list of ndarray of shape (n_cells, n_classes)
            The log ratios: the evidence of the cells of each column.
        corrections : list of ndarray of shape (n_cells, n_classes)
            The change in a row's evidence if its own count is left out.
        """
        prior = class_counts / self.n_rows
        parent_count = PARENT_COUNT_STDS * noise_std + 1.0
        # Smallest possible ratio of a class's frequency in a cell to its prior, reached if the cell
        # contains all rows but none of this class.
        min_ratio = parent_count / (self.n_rows + parent_count)
        counted_terms = []
        values = []
        corrections = []
        single_rows = np.eye(self.n_classes)[..., np.newaxis]
        for term, counts in zip(terms, noisy, strict=True):
            summary = _summarize_column(term, counts, class_counts, noise_std, self.levels[0])
            counted_terms.append(replace(term, counts=summary.counts))
            probabilities = _class_probabilities(summary, prior, parent_count)
            leave_one_out = [
                _class_probabilities(summary, prior, parent_count, row)[k]
                for k, row in enumerate(single_rows)
            ]
            values.append(np.log(np.maximum(probabilities.T / prior, min_ratio)))
            corrections.append((logit(leave_one_out) - logit(probabilities)).T)
        return counted_terms, values, corrections

    def _calibrated_evidence(self, terms, values, corrections, prior, rows, row_args, source):
        """Return the scaled evidence of the second of two classes, and the shift of its score.

        The columns are not independent, so the sum of their evidence is too large; see `calibrate`.

        Parameters
        ----------
        terms, values, corrections
            Results of `_log_ratios`.
        prior : float
            Released fraction of the second class.
        rows : Rows
            Cells of the terms.
        row_args : tuple of (codes, row_weights)
        source : RandomSource
        """
        values = [column_values[:, 1] - column_values[:, 0] for column_values in values]
        # The correction changes the evidence in the direction of the row's class.
        corrections = [column_corrections * (-1.0, 1.0) for column_corrections in corrections]
        counts = [term.counts for term in terms]
        edges, evidence = evidence_bins(values, counts, self.n_evidence_bins)
        exact = zero_counts(2 * len(evidence), row_args[1])
        sum_over(rows, _count_evidence, exact, values, corrections, edges, row_args=row_args)
        mechanism = self._calibration_mechanism
        noisy = mechanism.release(exact.astype(float), random_state=source).reshape(2, -1)
        noise_std = mechanism.deviation(noisy.size)
        shift, slope = calibrate(noisy, evidence, prior, noise_std, self.n_rows)
        scaled = [slope * column_values[:, np.newaxis] for column_values in values]
        return scaled, shift

    def _inverse_temperature(self, rows, values, corrections, log_prior, row_args, source):
        """Return the factor of the evidence with several classes, from noisy losses."""
        losses = np.zeros(len(INVERSE_TEMPERATURES))
        sum_over(rows, _add_losses, losses, values, corrections, log_prior, row_args=row_args)
        noisy = self._losses_mechanism.release(losses, random_state=source)
        noise_std = self._losses_mechanism.deviation(len(noisy))
        return softmax(-noisy / noise_std) @ INVERSE_TEMPERATURES


def _count_evidence(counts, cells, codes, row_weights, values, corrections, edges):
    """Add the counts in the bins of the evidence, for the first class and then for the second.

    As in `_add_losses`, the effect of a row's own count on its evidence is removed.
    """
    evidence = sum(column_values[k] for column_values, k in zip(values, cells, strict=True))
    codes = codes.astype(np.intp)
    pairs = zip(corrections, cells, strict=True)
    evidence = evidence + sum(column_corrections[k, codes] for column_corrections, k in pairs)
    bins = np.searchsorted(edges, evidence) + (len(edges) + 1) * codes
    counts += weighted_bincount(bins, row_weights, len(counts))


def _add_losses(losses, cells, codes, row_weights, values, corrections, log_prior):
    """Add each row's half Brier score minus 1/2, at each temperature, with exact sums.

    `corrections` for each cell and class remove the effect of a row's own count on its evidence.
    """
    evidence = sum(column_values[k] for column_values, k in zip(values, cells, strict=True))
    truth = np.eye(len(log_prior))[codes]
    pairs = zip(corrections, cells, strict=True)
    evidence += truth * sum(column_corrections[k] for column_corrections, k in pairs)
    for i, factor in enumerate(INVERSE_TEMPERATURES):
        errors = row_softmax(log_prior + factor * evidence) - truth
        loss = np.clip(0.5 * row_sums(errors**2) - 0.5, -0.5, 0.5)
        steps = np.trunc(loss / LOSS_GRID)
        if row_weights is not None:
            steps = np.trunc(steps * row_weights)
        losses[i] += LOSS_GRID * steps.sum()


def _pool_class_counts(terms, noisy, class_counts, coarsest):
    """Return the pooled numbers of rows of the classes.

    The counts of each column's cells add up to the counts of the classes, so every column gives an
    estimate. The estimates are averaged with weights inversely proportional to their variances.

    Parameters
    ----------
    terms : list of Term
    noisy : list of ndarray of shape (n_classes, n_counts)
        Noisy counts of each column.
    class_counts : ndarray of shape (n_classes, 1)
        Noisy counts of the classes.
    coarsest : int
        Level of the coarsest cells of a numeric column.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    # The coarsest cells of a numeric column and its missing values are the last counts.
    n_last = 2**coarsest + 1
    estimates = [class_counts.sum(axis=1)]
    # All counts have the same noise variance.
    weights = [1.0 / class_counts.shape[1]]
    for term, counts in zip(terms, noisy, strict=True):
        cells = counts
        if "label" not in term.kinds:
            cells = counts[:, -n_last:]
        estimates.append(cells.sum(axis=1))
        weights.append(1.0 / cells.shape[1])
    return np.average(estimates, axis=0, weights=weights)


@dataclass(frozen=True, eq=False)
class _ColumnSummary:
    """The noisy counts of one column by class, made consistent.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,)
        Counts of the finest cells over all classes; the last one counts missing values.
    levels : list of (ndarray of shape (n_classes, n_cells), ndarray of shape (n_cells,))
        Counts of the cells of each level, coarsest first, and the pseudo-counts of their parents;
        see `_parent_counts`.
    missing : ndarray of shape (n_classes, 0 or 1)
        Counts of missing values; empty if they are among the cells of `levels`.
    """

    counts: np.ndarray
    levels: list
    missing: np.ndarray


def _summarize_column(term, noisy, class_counts, noise_std, coarsest):
    """Return the `_ColumnSummary` of a column.

    Parameters
    ----------
    term : Term
    noisy : ndarray of shape (n_classes, n_counts)
        Noisy counts; for a numeric column, at all levels that are counted.
    class_counts : ndarray of shape (n_classes,)
        Noisy numbers of rows of the classes.
    noise_std : float
        Standard deviation of the noise in a count.
    coarsest : int
        Level of the coarsest cells of a numeric column.
    """
    total = class_counts.sum()
    variance = noise_std**2
    if "label" in term.kinds:
        return _ColumnSummary(
            counts=np.clip(noisy.sum(axis=0), 0.0, total),
            levels=[(noisy, _parent_counts(noisy, 1, variance))],
            missing=noisy[:, :0],
        )
    missing = np.clip(noisy[:, -1], 0.0, class_counts)
    cells = np.stack(
        [
            consistent_counts(counts, n_present, coarsest)
            for counts, n_present in zip(noisy[:, :-1], class_counts - missing, strict=True)
        ]
    )
    levels = []
    for level in range(1, cells.shape[1].bit_length()):
        counts = cells.reshape(len(cells), 2**level, -1).sum(axis=2)
        width = cells.shape[1] >> level
        noise_variance = variance * width
        if level >= coarsest:
            # Consistent counts have less noise if all levels are counted (Hay et al. 2010).
            noise_variance /= 2 * width - 1
        levels.append((counts, _parent_counts(counts, 2 ** (level - 1), noise_variance)))
    n_missing = missing.sum()
    finest_counts = nonnegative_counts(cells.sum(axis=0), total - n_missing)
    return _ColumnSummary(
        counts=np.append(finest_counts, n_missing), levels=levels, missing=missing[:, np.newaxis]
    )


def _parent_counts(counts, n_parents, variance):
    """Return the pseudo-counts by which the class frequencies of the cells' parents are weighted.

    It is large if cells differ from their siblings no more than by chance (the sampling of rows and
    the noise in counts), and for a cell with most of its parent's rows, because that adds little
    information. Otherwise it is the method-of-moments estimate for class frequencies drawn from a
    Dirichlet distribution around the parent's frequencies.

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_cells)
        Noisy counts.
    n_parents : int
        Number of parents; each has ``n_cells / n_parents`` neighboring cells.
    variance : float
        Noise variance of a count.

    Returns
    -------
    ndarray of shape (n_cells,)
    """
    k = len(counts)
    noisy = counts.reshape(len(counts), n_parents, -1)
    rows = np.maximum(noisy, 0.0)
    # Correction for comparing a cell with a group that includes the cell itself.
    sibling_factor = noisy.shape[2] / (noisy.shape[2] - 1.0)
    cell_counts = rows.sum(axis=0)
    parent_counts = np.maximum(rows.sum(axis=(0, 2))[:, np.newaxis], 1e-9)
    frequencies = rows.sum(axis=2, keepdims=True) / parent_counts
    part = cell_counts / parent_counts
    # Half a row is added to each class. With a single class, the sampling variance would otherwise
    # be 0 and the noise alone would decide.
    smoothed = (frequencies * parent_counts + 0.5) / (parent_counts + 0.5 * k)
    squares = (smoothed**2).sum(axis=0)
    size = cell_counts * (1.0 - part)
    sampling_variance = (
        (1.0 - squares) * size * parent_counts / np.maximum(parent_counts - 1.0, 1.0)
    )
    noise_factor = (1.0 - part) ** 2 + part**2 / (sibling_factor - 1.0)
    noise_variance = (k - 2.0 + k * squares) * noise_factor * variance
    null_variance = np.maximum(sampling_variance + noise_variance, 1e-300)
    signal = sibling_factor * size * sampling_variance / null_variance
    weights = signal / (1.0 + signal)
    deviations = ((noisy - frequencies * noisy.sum(axis=0)) ** 2).sum(axis=0)
    statistic = np.sum(weights * (deviations / null_variance - 1.0))
    null_std = math.sqrt(2.0 * sibling_factor * np.sum(weights**2) / max(k - 1, 1))
    excess = max(statistic - NULL_STDS * null_std, MIN_DIFFERENCE_STDS * null_std)
    difference = excess / np.sum(weights * signal + 1e-300)
    new_fraction = np.clip(sibling_factor * (1.0 - part), 1e-12, 1.0).ravel()
    return 1.0 / (np.clip(difference, 1e-12, 1.0) * new_fraction) - 1.0


def _class_probabilities(summary, prior, parent_count, removed=0.0):
    """Return the probabilities of the classes in each cell; the last cell is for missing values.

    Parameters
    ----------
    summary : _ColumnSummary
    prior : ndarray of shape (n_classes,)
        Class frequencies, which are the parent of the coarsest cells.
    parent_count : float
        Minimum pseudo-count of a parent.
    removed : ndarray of shape (n_classes, 1), default=0.0
        Counts that are subtracted from all cells to leave out a row.

    Returns
    -------
    ndarray of shape (n_classes, n_cells)
    """
    prior = prior[:, np.newaxis]
    probabilities = prior
    for counts, extra_parent_counts in summary.levels:
        n_children = counts.shape[1] // probabilities.shape[1]
        parents = np.repeat(probabilities, n_children, axis=1)
        probabilities = _shrink(counts - removed, parents, parent_count + extra_parent_counts)
    missing = _shrink(summary.missing - removed, prior, parent_count)
    return np.clip(np.hstack([probabilities, missing]), 1e-15, 1.0 - 1e-15)


def _shrink(counts, parents, parent_counts):
    """Return class frequencies of cells, with pseudo-counts from their parents' frequencies."""
    smoothed = np.maximum(counts, 0.0) + parent_counts * parents
    return smoothed / smoothed.sum(axis=0)


class DPHistogramNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TermsModel):
    """Naive Bayes classifier from private histograms of raw tables.

    Each numeric column is divided into dyadic bins; each category of a categorical column is a bin.
    One release counts the rows of each class in all bins of all levels (with delta = 0, only in the
    finest bins, because the noise grows with the number of levels). The evidence of a bin is the
    log-ratio of each class's frequency in the bin to its frequency in the table, and the score of a
    row is the sum of the evidence of its bins. If noise or chance hides the count of a bin, the
    evidence of its parent bin is used. The data need no preprocessing: numbers, strings, dates and
    missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, the model is less accurate
        and categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values form one further category. A data frame's column of dtype object is categorical
        unless `bounds` names it.
    classes : array-like of shape (n_classes,), default=None
        Possible class labels. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    shape_functions_ : list of ShapeFunction
        Values that each column's bins or categories add to a score, as in `DPAdditiveClassifier`.
    intercept_ : float or ndarray of shape (n_classes,)
        Constant that is added to the sum of the shape functions.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute value of each column's shape function, weighted by the noisy counts and
        normalized to a sum of 1.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    See Also
    --------
    DPAdditiveClassifier : Fits the values of all columns together, iteratively.
    DPGaussianNB : For numeric columns that are normally distributed within classes.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    Columns are seldom independent, and naive Bayes counts shared information twice, so all evidence
    is rescaled. With two classes and delta > 0, the classes are counted first, and if one of them
    is rare, the bins are coarser. With two classes, a tenth of the budget is spent on a histogram
    of the evidence, which determines the scale and a shift that makes the mean probability equal to
    the released class frequency. With more classes, a twentieth is spent on a temperature. The
    proof is in ``docs/theory/naive_bayes.md``.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    J. Platt. Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods. 1999.

    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger. On calibration of modern neural networks.
    ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHistogramNB
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(17, 90, size=5000), rng.integers(0, 3, size=5000)])
    >>> y = X[:, 0] > 40
    >>> model = DPHistogramNB(epsilon=1.0, bounds={0: (17, 90)}, categories={1: [0, 1, 2]})
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    decision_function = DPAdditiveClassifier.decision_function

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        classes: Classes | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, y, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            leveled, *released = fit.run(plan, table)
            # The noise is that of the counted levels, and the event is that of the plan.
            plan = replace(
                plan,
                scale=leveled.scale,
                sensitivity=leveled.sensitivity,
                stages=leveled.stages,
                mechanism=leveled,
            )
            fitted = FittedTerms(*released).without_output_axis()
            shapes, intercept = self._centered_shapes(leveled, fitted)
            fit.publish(
                plan,
                classes_=table.shape.classes,
                shape_functions_=shapes,
                intercept_=intercept,
                feature_importances_=self._importances(shapes),
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table; with its class labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape; parameters
            that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        n_classes = len(self._planned_classes(shape))
        return plan_columns(self._make_fit(HistogramNBFit, shape, guarantee, n_classes=n_classes))
