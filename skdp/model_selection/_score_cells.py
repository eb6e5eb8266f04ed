"""Counts of a model's scores by class, released together with its fits in one charge.

The counts are those of `skdp.metrics`: rows by class and cell of the score, on a public grid. The
threshold of a classifier and the calibration of its probabilities are functions of them.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import logit
from sklearn.isotonic import isotonic_regression

import skdp.mechanisms as mechanisms
from skdp.metrics._counts import merge_cells, ratio
from skdp.metrics._grid import MAX_LOGIT
from skdp.model_selection._plans import scaled, score_noise
from skdp.model_selection._pooled import PooledStatistics
from skdp.model_selection._pricing import dominating_event, fitting_scale, worst_record_paths
from skdp.utils._values import FrozenValue

# Fraction of the budget after the refit that the counts receive if counted rows are also trained
# on.
COUNTS_FRACTION = 0.2
# Width, on the logit scale, assumed for the first and the last cell, which are unbounded.
OUTER_WIDTH = 0.5


@dataclass(frozen=True)
class PooledCells(PooledStatistics):
    """Counts of the scores of all test sets by class and cell, used instead of a score.

    Parameters
    ----------
    edges : tuple of float or None
        Inner edges of the cells, as probabilities; None uses the edges for public numbers.
    """

    edges: tuple | None = None

    name = "counts of scores"

    @cached_property
    def statistics(self):
        """The counts of all test sets together."""
        n_units = sum(self.fold_sizes)
        return cell_counts(self.task, n_units, self.guarantee, self.edges)

    @property
    def size(self):
        """Number of released values."""
        return self.statistics.size

    @property
    def sensitivities(self):
        """The (L1, L2) sensitivities of the counts: each row is in at most one test set."""
        return self.statistics.sensitivities

    def vector(self, statistics):
        """Return the counts to release from those of all test sets."""
        return np.sum(statistics, axis=0).astype(float)


def cell_counts(task, n_units, guarantee, edges=None):
    """Return the counts of a model's scores by class and cell.

    Parameters
    ----------
    task : BinaryTask
    n_units : int
        Number of rows, or of persons.
    guarantee : Guarantee
    edges : tuple of float, default=None
        Inner edges of the cells, as probabilities; None uses the edges for public numbers.

    Returns
    -------
    BinaryCounts
    """
    counts = task.statistics(n_units, guarantee)
    if edges is None:
        return counts
    return replace(counts, edges=np.array(edges), sizes=(2 * (len(edges) + 1),))


def plan_counted_fits(task, layout):
    """Return the plan of a model's fits on their splits and of the counts of its scores.

    For rows that are only counted, the whole budget except the refit's can be spent on the counts.
    For rows that are trained on and counted, the fits and the counts share it.

    Parameters
    ----------
    task : SearchTask
        Its score is a `PooledCells`, and it has one candidate.
    layout : Layout

    Returns
    -------
    SearchFit
    """
    patterns = layout.patterns()
    is_shared = any(runs and is_counted for runs, is_counted in patterns)
    max_fits = max(len(runs) for runs, _ in patterns)
    fraction = (1.0 - task.refit_fraction) * (1.0 - COUNTS_FRACTION * is_shared)
    delta_fraction = 1.0
    if task.refit:
        delta_fraction = 0.25
    elif is_shared:
        delta_fraction = 0.5
    budget = task.budget_part(fraction / max_fits, delta_fraction / max_fits)

    def record_paths(scale, noise, patterns):
        """Return the costliest compositions of the releases that one record takes part in.

        Parameters
        ----------
        scale : float
            Factor on the budget of the fits.
        noise : mechanism
            The mechanism of the counts.
        patterns : list of Pattern
            For each kind of record, the runs that train on it and whether its score is counted.
        """
        fits = task.run_plans(layout, scaled(budget, scale))
        refit = []
        if task.refit:
            refit = [dominating_event(task.refits(scale))]
        paths = []
        for runs, is_counted in patterns:
            events = [fits[run].event for run in runs]
            if is_counted:
                events.append(noise.event)
            paths.append(events + refit)
        return worst_record_paths(paths)

    l1, l2 = task.score.sensitivities
    counts_fraction = (1.0 - task.refit_fraction) * (COUNTS_FRACTION if is_shared else 1.0)
    gaussian_noise = partial(score_noise, task, counts_fraction, l1=l1, l2=l2)
    trained = [pattern for pattern in patterns if pattern.trained]
    scale = fitting_scale(task, lambda s: record_paths(s, gaussian_noise(1.0), trained))
    noise = gaussian_noise(1.0)
    if not is_shared:
        noise = _noise_of_counted_rows(
            task, lambda mechanism: record_paths(scale, mechanism, [((), True)]), counts_fraction
        )
    return task.make_fit(
        "histogram",
        layout,
        budget,
        scale,
        record_paths=record_paths(scale, noise, patterns),
        noisy=noise,
        released_together=task.score.size,
    )


def _noise_of_counted_rows(task, make_record_paths, fraction):
    """Return the least noisy mechanism for the budget of rows that are only counted.

    If nothing else is released, Laplace noise is far smaller than Gaussian noise, since a row is in
    a single cell. Both are compared at the scale that the budget allows.
    """
    l1, l2 = task.score.sensitivities

    def laplace_noise(scale):
        return mechanisms.LaplaceMechanism(task.guarantee.epsilon * fraction * scale, l1)

    candidates = [laplace_noise]
    if task.guarantee.delta > 0.0:
        candidates.append(partial(score_noise, task, fraction, l1=l1, l2=l2))
    fitted = []
    for make_noise in candidates:
        scale = fitting_scale(task, partial(_paths_at, make_record_paths, make_noise))
        fitted.append(make_noise(scale))
    return min(fitted, key=lambda mechanism: mechanism.deviation(task.score.size))


def _paths_at(make_record_paths, make_noise, scale):
    return make_record_paths(make_noise(scale))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreCells(FrozenValue):
    """Released counts of scores by class, in the cells of a public grid.

    Parameters
    ----------
    counts : ndarray of shape (2, n_cells)
        Noisy counts of negatives and positives, which may be negative.
    count_std : float
        Standard deviation of the noise in a count.
    edges : ndarray of shape (n_cells - 1,)
        Inner edges of the cells, as probabilities.
    score_bounds : tuple of (low, high) or None
        As in `skdp.metrics._grid.score_cells`.
    """

    counts: np.ndarray
    count_std: float
    edges: np.ndarray
    score_bounds: tuple | None

    @classmethod
    def from_release(cls, statistics, noisy, mechanism):
        """Return the released counts of a `BinaryCounts`."""
        return cls(
            counts=np.asarray(noisy, dtype=np.float64).reshape(2, -1),
            count_std=mechanism.deviation(statistics.size),
            edges=statistics.edges,
            score_bounds=statistics.score_bounds,
        )

    @property
    def logits(self):
        """Logit of the score that represents each cell, within the range of the grid."""
        borders = np.clip(logit(self.edges), -MAX_LOGIT, MAX_LOGIT)
        outer = [borders[0] - OUTER_WIDTH], [borders[-1] + OUTER_WIDTH]
        borders = np.concatenate([outer[0], borders, outer[1]])
        return (borders[1:] + borders[:-1]) / 2.0

    def bins(self):
        """Return the cells merged into bins that can be distinguished from their noise."""
        totals = self.counts.sum(axis=0)
        starts = merge_cells(totals, self.count_std)
        binned = np.add.reduceat(self.counts, starts, axis=1)
        widths = np.diff(np.append(starts, len(totals)))
        # The last term handles bins without rows.
        weights = np.maximum(totals, 0.0) + 1e-9
        logits = np.add.reduceat(weights * self.logits, starts) / np.add.reduceat(weights, starts)
        inner = np.asarray(self.edges)[starts[1:] - 1]
        thresholds = logit(inner)
        if self.score_bounds is not None:
            low, high = self.score_bounds
            thresholds = low + inner * (high - low)
        # A cell contains its upper edge.
        thresholds = np.nextafter(thresholds, np.inf)
        usual = np.searchsorted(self.edges, 0.5) + 1
        threshold_stds = self.count_std * np.sqrt(np.abs(starts[1:] - usual))
        return ScoreBins(
            counts=binned,
            count_stds=self.count_std * np.sqrt(widths),
            logits=logits,
            thresholds=thresholds,
            threshold_stds=threshold_stds,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreBins(FrozenValue):
    """Released counts of scores by class, in bins that can be distinguished from noise.

    Parameters
    ----------
    counts : ndarray of shape (2, n_bins)
        Noisy counts of negatives and positives, which may be negative.
    count_stds : ndarray of shape (n_bins,)
        Standard deviation of the noise in each count of a bin.
    logits : ndarray of shape (n_bins,)
        Logit of the score that represents each bin: the mean of its cells.
    thresholds : ndarray of shape (n_bins - 1,)
        Smallest score of each bin but the first, in the units of the scores.
    threshold_stds : ndarray of shape (n_bins - 1,)
        Standard deviation of the noise in the number of rows of a class between each threshold and
        the usual one, a probability of 1/2.
    """

    counts: np.ndarray
    count_stds: np.ndarray
    logits: np.ndarray
    thresholds: np.ndarray
    threshold_stds: np.ndarray

    @property
    def n_bins(self):
        """Number of bins."""
        return self.counts.shape[1]

    def positive_fractions(self):
        """Return the number of rows in each bin, and the fraction of positives among them.

        The fractions rise with the score (isotonic regression), which removes much of the noise.
        """
        counts = np.maximum(self.counts, 0.0)
        totals = counts.sum(axis=0)
        # The last term handles bins without rows.
        fractions = isotonic_regression(ratio(counts[1], totals), sample_weight=totals + 1e-9)
        return totals, np.clip(fractions, 0.0, 1.0)
