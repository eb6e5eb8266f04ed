"""Metrics for two classes, computed from released counts by class and cell of the score.

Functions of counts accept arrays of shape (..., 2, n_cells). The second-to-last axis is the class,
the negative class first. Counts are noisy, so they may be negative.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.isotonic import isotonic_regression

from skdp.metrics._counts import HIDDEN_STD, ReleasedMatrix, merge_cells, nonnegative, ratio
from skdp.metrics._grid import cell_probabilities, thresholds_at
from skdp.metrics._values import NoisyCurve
from skdp.utils._values import FrozenValue

# Points and weights of the quadrature over a cell in which positives and negatives are mixed.
QUADRATURE, QUADRATURE_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Largest log loss of a row in reports: probabilities of labels are clipped to exp(-MAX_LOG_LOSS).
MAX_LOG_LOSS = 5.0


def roc_auc(counts):
    """Return the area under the ROC curve, with densities that are linear within each cell.

    If rows of both classes in one cell counted as ties, the area would be too small by about 1 /
    n_cells^2, since the fraction of positives also rises with the score within cells. For linear
    densities whose slopes, relative to their means, are s for positives and t for negatives, a
    positive has the higher score with probability 1/2 + (s - t) / 12. The slopes are half the
    differences between the adjacent cells, so the correction is a sum of products of counts with
    independent noise. It is at most half of the sum, over the cells, of the products of both
    counts, which bounds the error due to ties.

    Parameters
    ----------
    counts : ndarray of shape (..., 2, n_cells)
        Noisy counts of the negatives and the positives in each cell of scores; some may be
        negative.

    Returns
    -------
    float or ndarray of shape (...)
    """
    negatives, positives = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    ties = (positives * below).sum(axis=-1)
    shifts = negatives[..., :-1] * positives[..., 1:] - negatives[..., 1:] * positives[..., :-1]
    bound = 0.5 * (np.maximum(negatives, 0.0) * np.maximum(positives, 0.0)).sum(axis=-1)
    ordered = ties + np.clip(shifts.sum(axis=-1) / 12.0, -bound, bound)
    return ratio(ordered, positives.sum(-1) * negatives.sum(-1))


def average_precision(counts):
    """Return the average precision for rows of both classes that are evenly mixed in each cell."""
    negatives, positives = nonnegative(counts)[..., ::-1].swapaxes(0, -2)[:2]
    true_before = np.cumsum(positives, axis=-1) - positives
    false_before = np.cumsum(negatives, axis=-1) - negatives
    area = 0.0
    for point, weight in zip(QUADRATURE, QUADRATURE_WEIGHTS, strict=True):
        fraction = (point + 1.0) / 2.0
        true = true_before + fraction * positives
        area += weight / 2.0 * positives * ratio(true, true + false_before + fraction * negatives)
    return ratio(area.sum(axis=-1), positives.sum(axis=-1))


def average_precision_range(counts):
    """Return the smallest and largest average precision of rows with these counts.

    The smallest one results if, in each cell, all negatives have higher scores than all positives.
    """
    negatives, positives = nonnegative(counts)[:, ::-1]
    true_before = np.cumsum(positives) - positives
    false_before = np.cumsum(negatives) - negatives
    total = max(positives.sum(), 1e-300)

    def mean_precision(n_false):
        """Return, per cell, the sum of precisions at its positives, after `n_false` negatives."""
        # The mean of t / (t + n_false) as the number t of true positives grows through the cell.
        start = true_before + n_false
        growth = np.log1p(positives / np.where(start > 0.0, start, 1.0))
        return positives - n_false * np.where(start > 0.0, growth, 0.0)

    worst = mean_precision(false_before + negatives).sum() / total
    best = mean_precision(false_before).sum() / total
    return float(np.clip(worst, 0.0, 1.0)), float(np.clip(best, 0.0, 1.0))


def brier_score(counts, probabilities):
    """Return the mean squared difference between a row's label and the probability of its cell."""
    losses = np.stack([probabilities**2, (1.0 - probabilities) ** 2])
    return ratio((counts * losses).sum(axis=(-2, -1)), counts.sum(axis=(-2, -1)))


def log_loss(counts, probabilities):
    """Return the mean log loss of the probabilities of the cells, clipped to `MAX_LOG_LOSS`."""
    losses = -np.log(np.stack([1.0 - probabilities, probabilities]))
    losses = np.minimum(losses, MAX_LOG_LOSS)
    return ratio((counts * losses).sum(axis=(-2, -1)), counts.sum(axis=(-2, -1)))


def confusion(counts, first_positive):
    """Return confusion matrices of shape (..., 2, 2); cells from `first_positive` are positive."""
    return np.stack(
        [counts[..., :first_positive].sum(-1), counts[..., first_positive:].sum(-1)], axis=-1
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryCells(FrozenValue):
    """Released counts by class and cell of the score: the source of all metrics for two classes.

    Parameters
    ----------
    matrix : ReleasedMatrix
        Counts of shape (2, n_cells).
    edges : ndarray of shape (n_cells - 1,)
        Inner edges of the cells, as probabilities.
    score_bounds : tuple of (low, high) or None
        As in `score_cells`.
    classes : ndarray of shape (2,)
        The negative and the positive label.
    threshold : float, default=0.5
        The probability above which rows are predicted positive; one of the edges.
    """

    matrix: ReleasedMatrix
    edges: np.ndarray
    score_bounds: tuple | None
    classes: np.ndarray
    threshold: float = 0.5

    @property
    def probabilities(self):
        """The middle of each cell."""
        return cell_probabilities(self.edges)

    @cached_property
    def at_threshold(self):
        """The released confusion matrix of predictions at the threshold."""
        first = int(np.searchsorted(self.edges, self.threshold)) + 1
        matrix = self.matrix
        return ReleasedMatrix(
            counts=confusion(matrix.counts, first),
            total=matrix.total,
            noisy=confusion(matrix.noisy, first),
            resampled=confusion(matrix.resampled, first),
            expected=confusion(matrix.expected, first),
            count_std=matrix.count_std,
        )

    def roc_auc(self):
        """Return the area under the ROC curve."""
        return self.matrix.score("roc_auc", roc_auc)

    def average_precision(self):
        """Return the average precision; its intervals include the bound from the cells' width."""
        low, high = average_precision_range(self.matrix.counts)
        value = float(average_precision(self.matrix.counts))
        slack = (max(value - low, 0.0), max(high - value, 0.0))
        return self.matrix.score("average_precision", average_precision, slack=slack)

    def brier_score(self):
        """Return the Brier score."""

        def statistic(counts):
            return brier_score(counts, self.probabilities)

        return self.matrix.score("brier_score", statistic)

    def log_loss(self):
        """Return the log loss, with the loss in each cell clipped to `MAX_LOG_LOSS`."""

        def statistic(counts):
            return log_loss(counts, self.probabilities)

        return self.matrix.score("log_loss", statistic, high=MAX_LOG_LOSS)

    def roc_curve(self):
        """Return the ROC curve, a `NoisyCurve`."""

        def rates(counts, label):
            above = np.cumsum(counts[..., label, ::-1], axis=-1)
            return ratio(above, above[..., -1:])

        def curve(label):
            values = isotonic_regression(rates(self.matrix.counts, label), y_min=0.0, y_max=1.0)
            return np.concatenate([[0.0], values])

        def true_positive_rates(counts):
            return rates(counts, 1)

        y = curve(1)
        errors = self.matrix.errors(true_positive_rates)
        intervals = errors.intervals(rates(self.matrix.counts, 1), 0.0, 1.0)
        padded = [tuple(np.concatenate([[0.0], side]) for side in sides) for sides in intervals]
        return NoisyCurve(
            name="roc",
            x=curve(0),
            y=y,
            noise_interval=padded[0],
            interval=padded[1],
            thresholds=thresholds_at(self.edges, self.score_bounds),
        )

    def calibration_curve(self, n_bins, strategy="uniform"):
        """Return the calibration curve over bins whose edges are edges of the cells.

        Parameters
        ----------
        n_bins : int
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or at most `n_bins` bins that, by the released counts, have about
            equally many rows and more rows than noise.
        """
        if strategy == "quantile":
            totals = self.matrix.counts.sum(axis=0)
            starts = merge_cells(totals, self.matrix.count_std, self.matrix.total / n_bins)
        else:
            starts = np.searchsorted(self.edges, np.arange(1, n_bins) / n_bins) + 1
            starts = np.concatenate([[0], starts])
        return calibration_of_bins(self.matrix, starts, self.edges)


def calibration_of_bins(matrix, starts, edges):
    """Return the calibration curve of released counts by outcome and probability, a `NoisyCurve`.

    Parameters
    ----------
    matrix : ReleasedMatrix
        Counts of shape (2, n_cells).
    starts : ndarray of int
        First cell of each bin.
    edges : ndarray of shape (n_cells - 1,)
        Inner edges of the cells.
    """

    def fractions(counts):
        binned = np.add.reduceat(counts, starts, axis=-1)
        return ratio(binned[..., 1, :], binned.sum(axis=-2))

    value = fractions(matrix.counts)
    errors = matrix.errors(fractions)
    # The fraction of positives is unknown in a bin that may be empty.
    binned = np.add.reduceat(matrix.counts.sum(axis=-2), starts)
    width = np.diff(np.append(starts, matrix.counts.shape[-1]))
    is_hidden = binned < HIDDEN_STD * matrix.count_std * np.sqrt(2.0 * width)
    intervals = []
    for low, high in errors.intervals(value, 0.0, 1.0):
        intervals.append((np.where(is_hidden, 0.0, low), np.where(is_hidden, 1.0, high)))
    bin_edges = np.concatenate([[0.0], edges, [1.0]])[np.append(starts, len(edges) + 1)]
    rows = np.maximum(matrix.counts.sum(axis=-2), 0.0)
    totals = np.add.reduceat(rows, starts)
    means = ratio(np.add.reduceat(rows * cell_probabilities(edges), starts), totals)
    centers = (bin_edges[1:] + bin_edges[:-1]) / 2.0
    return NoisyCurve(
        name="calibration",
        x=np.where(totals > 0.0, means, centers),
        y=np.clip(value, 0.0, 1.0),
        noise_interval=intervals[0],
        interval=intervals[1],
        bin_edges=bin_edges,
    )
