"""Released matrices of counts, their bootstrap draws, and functions of confusion matrices.

Functions of counts accept arrays with further axes in front. Counts are noisy, so they may be
negative.
"""

from dataclasses import dataclass

import numpy as np

from skdp._data._sums import project_on_simplex
from skdp.metrics._bootstrap import Errors, draw_counts, draw_noise
from skdp.metrics._values import NoisyConfusionMatrix, NoisyScore
from skdp.utils._values import FrozenValue

# If a denominator is below this number of standard deviations of its noise, it may be 0.
HIDDEN_STD = 3.0
# Cells are merged until they have at least this many times as many rows as noise, so that fractions
# of positives are between 0 and 1 and few bins differ by noise alone.
ROWS_PER_NOISE = 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedMatrix(FrozenValue):
    """Released counts in a matrix with bootstrap draws of their noise and of sampling.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_columns)
        Noisy counts, whose sum is the public number of units.
    total : int
        The public number of rows, or of persons.
    noisy, resampled : ndarray of shape (n_draws, n_rows, n_columns)
        Draws of the expected counts with noise, and of the counts of resampled rows with noise.
    expected : ndarray of shape (n_rows, n_columns)
        The non-negative counts to which the draws add noise. If noise were added to noisy counts,
        intervals would be too wide where a metric divides by a count.
    count_std : float
        Standard deviation of the noise in one count.
    """

    counts: np.ndarray
    total: int
    noisy: np.ndarray
    resampled: np.ndarray
    expected: np.ndarray
    count_std: float

    def score(self, name, statistic, low=0.0, high=1.0, slack=(0.0, 0.0)):
        """Return a `NoisyScore` of a function of counts, in the range [low, high].

        A positive slack is for highly nonlinear functions. The intervals then also contain the
        quantiles of the draws themselves, and the intervals from draws about the noisy counts.
        """
        raw_value = float(statistic(self.counts))
        value = float(np.clip(raw_value, low, high))
        errors = self.errors(statistic)
        noise_interval, interval = errors.intervals(raw_value, low, high, slack)
        if max(slack) > 0.0:
            center = float(statistic(self.expected))
            draws = Errors(-errors.noise, -errors.total)
            about_counts = self.errors(statistic, self.counts)
            candidates = (
                (noise_interval, interval),
                draws.intervals(center, low, high, slack),
                about_counts.intervals(raw_value, low, high, slack),
            )
            noise_interval, interval = (
                (min(low for low, _ in sides), max(high for _, high in sides))
                for sides in zip(*candidates, strict=True)
            )
        noise_std, std = errors.deviations()
        return NoisyScore(
            value,
            name=name,
            noise_std=noise_std,
            std=std,
            noise_interval=noise_interval,
            interval=interval,
        )

    def ratio(self, name, statistic, denominator):
        """Return a `NoisyScore` of a ratio of counts in [0, 1].

        The denominator is another function of the counts. If it may be 0, the intervals are [0, 1].
        """
        score = self.score(name, statistic)
        values = denominator(self.noisy)
        if denominator(self.counts) > HIDDEN_STD * np.std(values):
            return score
        return NoisyScore(
            float(score),
            name=name,
            noise_std=score.noise_std,
            std=score.std,
            noise_interval=(0.0, 1.0),
            interval=(0.0, 1.0),
        )

    def errors(self, statistic, start=None):
        """Return the bootstrap `Errors` of a function of counts.

        The draws start from the expected counts, or from others.
        """
        if start is None:
            start = self.expected
        shift = start - self.expected
        center = statistic(start)
        return Errors(
            statistic(self.noisy + shift) - center, statistic(self.resampled + shift) - center
        )


def release_matrix(counts, total, mechanism, n_released, stream, n_draws, *, is_complete=True):
    """Return a `ReleasedMatrix` with its bootstrap draws.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_columns)
        Noisy counts.
    total : int
        The public number of rows, or of persons.
    mechanism : Mechanism
    n_released : int
        Number of values that were released together.
    stream : Stream
        Source of the bootstrap's random numbers.
    n_draws : int
    is_complete : bool, default=True
        True if every row is in one of the cells, so their sum is public.
    """
    noise = draw_noise(mechanism, counts.size, n_draws, stream).reshape(n_draws, *counts.shape)
    if is_complete:
        # The noise in the sum is known, so it is subtracted from all counts in equal parts.
        counts = with_total(counts, total)
        noise = with_total(noise, 0.0)
    expected = nonnegative(counts)
    sampled = draw_counts(expected, expected.sum(), n_draws, stream)
    return ReleasedMatrix(
        counts=counts,
        total=total,
        noisy=expected + noise,
        resampled=sampled + noise,
        expected=expected,
        count_std=mechanism.deviation(n_released),
    )


def confusion_value(matrix, classes):
    """Return the `NoisyConfusionMatrix` of a released matrix, clipped to possible counts."""

    def identity(counts):
        return counts

    errors = matrix.errors(identity)
    noise_interval, interval = errors.intervals(matrix.counts, 0.0, float(matrix.total))
    return NoisyConfusionMatrix(
        counts=np.clip(matrix.counts, 0.0, float(matrix.total)),
        classes=classes,
        noise_std=float(np.mean(errors.deviations()[0])),
        noise_interval=noise_interval,
        interval=interval,
    )


def accuracy(matrix):
    """Return the fraction of rows on the diagonal of confusion matrices."""
    return ratio(np.trace(matrix, axis1=-2, axis2=-1), matrix.sum(axis=(-2, -1)))


def balanced_accuracy(matrix):
    """Return the mean over classes of the fraction of rows predicted correctly."""
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    return ratio(diagonal, matrix.sum(axis=-1)).mean(axis=-1)


def precision(matrix):
    """Return the fraction of positive predictions that are correct."""
    return ratio(matrix[..., 1, 1], matrix[..., :, 1].sum(axis=-1))


def recall(matrix):
    """Return the fraction of positives that are predicted as positive."""
    return ratio(matrix[..., 1, 1], matrix[..., 1, :].sum(axis=-1))


def f1(matrix):
    """Return the harmonic mean of precision and recall."""
    wrong = matrix[..., 0, 1] + matrix[..., 1, 0]
    return ratio(2.0 * matrix[..., 1, 1], 2.0 * matrix[..., 1, 1] + wrong)


def majority_share(matrix):
    """Return the fraction of the most frequent class: the accuracy of always guessing it."""
    return ratio(matrix.sum(axis=-1).max(axis=-1), matrix.sum(axis=(-2, -1)))


def nonnegative(counts):
    """Return the nearest non-negative counts with the same total in each class."""
    totals = np.maximum(counts.sum(axis=-1, keepdims=True), 0.0)
    return project_on_simplex(counts, totals)


def with_total(counts, total):
    """Return the nearest counts with this sum over the last two axes."""
    size = counts.shape[-1] * counts.shape[-2]
    excess = counts.sum(axis=(-2, -1), keepdims=True) - total
    return counts - excess / size


def ratio(numerator, denominator):
    """Return a ratio, which is 0 where the denominator is not positive, as in scikit-learn."""
    is_positive = denominator > 0.0
    return np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), 0.0)


def merge_cells(totals, count_std, min_rows=0.0):
    """Return the first cell of each bin, merged from the highest scores down (post-processing).

    Parameters
    ----------
    totals : ndarray of shape (n_cells,)
        Noisy numbers of rows, each the sum of two counts.
    count_std : float
        Standard deviation of the noise in one count.
    min_rows : float, default=0
        Minimum number of rows in a bin, in addition to the minimum given by its noise.

    Returns
    -------
    ndarray of int
        Increasing; the first is 0.
    """
    starts = []
    rows = 0.0
    width = 0
    for cell in range(len(totals) - 1, -1, -1):
        rows += totals[cell]
        width += 1
        if rows >= max(min_rows, ROWS_PER_NOISE * count_std * np.sqrt(2.0 * width)):
            starts.append(cell)
            rows = 0.0
            width = 0
    # The remaining cells, those with the lowest scores, join the bin above them.
    starts[-1:] = [0]
    return np.array(sorted(starts))
