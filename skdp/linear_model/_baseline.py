r"""Baseline predictions: noisy class frequencies or a noisy mean, released before the weights.

Linear models shrink their weights to the model that predicts the baseline, so a fit to
uninformative data returns that model instead of noise. Additive models, forests and trees start
from the same releases (`skdp/gam/_tasks.py`).

A *score* is the output of a model before its link function: log-odds of classes, the logarithm of
the mean of counts, or the mean of targets that are scaled to [-1, 1].

An accurate baseline needs a fraction of epsilon that decreases with the number of rows. The
sensitivity and the fraction are derived in ``docs/theory/guarantees.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import Rows, sum_over
from skdp._data._persons import row_weights_of
from skdp._data._sums import exact_sum
from skdp._optim._clipped_sums import MAX_DECREASE_NORM
from skdp.accounting._guarantee import split_epsilon
from skdp.linear_model._balanced import (
    BalancedBaseline,
    BalancedWeights,
    count_sensitivity,
    release_counts,
)
from skdp.mechanisms import LaplaceMechanism
from skdp.mechanisms._plan import plan_release
from skdp.utils._values import FrozenValue

# The baseline receives the fraction of epsilon that makes the Laplace scale equal to
# n_rows / ROWS_PER_SCALE, within the limits below. Tuned on synthetic tables and Adult (train).
MAX_BASELINE_FRACTION = 0.75
ROWS_PER_SCALE = 40.0
# Minimum fraction for class frequencies: the fraction that makes the Laplace scale equal to
# n_rows / ROWS_PER_SCALE_OF_RARE, or this limit. The start and the penalty depend on the
# frequency of a rare class relative to its noise.
MIN_CLASSES_FRACTION = 0.01
ROWS_PER_SCALE_OF_RARE = 1000.0
# Minimum fraction for the mean of targets. Without it, the standard deviation of the noisy mean
# would be 1/57 of the range at every epsilon, which exceeds the standard deviation of amounts with
# a wide range.
MIN_MEAN_FRACTION = 0.05
# The same ratio for counts, whose logarithm is used and which may be much smaller than their upper
# bound.
ROWS_PER_SCALE_OF_COUNTS = 200.0
# Maximum fraction of epsilon for the shrinkage rule, and the ratio of n_rows to the Laplace scale.
MAX_SHRINKAGE_FRACTION = 0.05
ROWS_PER_SHRINKAGE_SCALE = 100.0
# The same ratio where a class may be rare, since the loss decreases then come from its rows; with
# weights that are not balanced, for at most this fraction of epsilon.
ROWS_PER_RARE_SHRINKAGE_SCALE = 1000.0
MAX_RARE_SHRINKAGE_FRACTION = 0.03
# Grid on which targets are summed without rounding errors.
TARGET_STEP = 2.0**-20
# Largest magnitude of a baseline score.
MAX_SCORE = 8.0


@dataclass(frozen=True, kw_only=True)
class ClassBaseline(FrozenValue):
    """Release of the logarithms of noisy class frequencies.

    Parameters
    ----------
    n_rows : int
    class_weight : tuple of float
        Weights that multiply the noisy counts of the classes.
    mechanism : LaplaceMechanism, or in additive models also GaussianMechanism
        Mechanism that adds noise to the counts. If there are two classes, only one is counted,
        since the number of rows is public.
    max_abs_score : float
        Scores are scaled down to at most this magnitude, all by the same factor.
    """

    n_rows: int
    class_weight: tuple
    mechanism: LaplaceMechanism
    max_abs_score: float

    def __post_init__(self):
        self.mechanism.check_size(len(self.class_weight))

    def plan(self):
        """Return the plan of the release."""
        return plan_release(self.mechanism, self.run, stage_name="class frequencies")

    @property
    def norm(self):
        """Upper bound on the norm of the scores."""
        return self.max_abs_score * math.sqrt(len(self.class_weight))

    @property
    def score_std(self):
        """Approximate standard deviation of a score, for a class with a fourth of the rows."""
        return self.mechanism.deviation(len(self.class_weight)) / (0.1875 * self.n_rows)

    def run(self, codes, source, persons=None):
        """Release class frequencies, and return the log-odds of the second class, or all scores.

        With more than two classes, a score is the logarithm of a class frequency minus the mean of
        these logarithms.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Class codes.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        float or ndarray of shape (n_classes,)
        """
        return self.limited(self.release(codes, source, persons))

    def limited(self, scores):
        """Return scores scaled down to a magnitude of at most `max_abs_score`; post-processing."""
        return scores / max(1.0, np.abs(scores).max() / self.max_abs_score)

    def release(self, codes, source, persons=None):
        """Release class frequencies, and return the scores before `limited`.

        Linear models call it instead of `run`, because scores of any magnitude also give the
        frequency of a rare class.
        """
        n_classes = len(self.class_weight)
        row_weights = None
        if persons is not None:
            row_weights = persons.row_weights
        counts = release_counts(codes, n_classes, self.n_rows, self.mechanism, source, row_weights)
        logits = np.log(np.maximum(counts, 0.0) + max(1.0, self.mechanism.scale))
        logits += np.log(self.class_weight)
        if n_classes == 2:
            return logits[1] - logits[0]
        return logits - logits.mean()


@dataclass(frozen=True, kw_only=True)
class MeanBaseline(FrozenValue):
    """Release of the noisy mean of the targets, or of its logarithm.

    Parameters
    ----------
    n_rows : int
    mechanism : LaplaceMechanism, or in additive models also GaussianMechanism
        Mechanism of the sum of targets in [-1, 1].
    high : float, default=None
        None for targets in [-1, 1]. Otherwise targets are counts in [0, high], and the score is a
        logarithm.
    """

    n_rows: int
    mechanism: LaplaceMechanism
    high: float | None = None

    def plan(self):
        """Return the plan of the release."""
        return plan_release(
            self.mechanism, self.run, stage_name="the mean of targets", unit="target_bounds"
        )

    @property
    def score_std(self):
        """Approximate standard deviation of the score; counts are assumed to average high / 10.

        It does not vanish with the noise, because the score at the mean of all columns, which the
        intercept represents, differs from the mean of the targets.
        """
        # Slightly smaller than the noise wherever the ratio determines the noise.
        min_std = 0.999 * math.sqrt(2.0) / _rows_per_scale(self.high)
        mean_std = max(self.mechanism.deviation(size=1) / self.n_rows, min_std)
        if self.high is None:
            return mean_std
        # At high / 10 the mean is 0.2 in units of high / 2, where the derivative of ln is 5.
        return 5.0 * mean_std

    @property
    def min_mean(self):
        """Smallest mean in (0, 2] whose logarithm is used."""
        return min(1.0, self.mechanism.scale / self.n_rows)

    @property
    def norm(self):
        """Upper bound on the magnitude of the score."""
        if self.high is None:
            return 1.0
        return max(abs(math.log(0.5 * self.high * mean)) for mean in (self.min_mean, 2.0))

    def run(self, targets, source, persons=None):
        """Release the mean of the targets, and return the score, which is the same for all rows.

        Parameters
        ----------
        targets : ndarray of shape (n_rows,)
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        float
        """
        rows = Rows(targets[:, np.newaxis])
        row_args = (row_weights_of(persons),)
        total = sum_over(rows, _add_targets, np.zeros(1), self.high, self.n_rows, row_args=row_args)
        mean = self.mechanism.release(total, random_state=source)[0] / self.n_rows
        if self.high is None:
            return float(np.clip(mean, -1.0, 1.0))
        # The mean of the targets is in [-1, 1]. This inverts 2 t / high - 1 of `_add_targets`.
        return math.log(0.5 * self.high * float(np.clip(1.0 + mean, self.min_mean, 2.0)))


def _add_targets(total, targets, row_weights, high, n_rows):
    """Add the exact sum of a block's targets; counts are first scaled from [0, high] to [-1, 1]."""
    if high is not None:
        targets = 2.0 * (targets / high) - 1.0
    steps = np.rint(np.clip(targets, -1.0, 1.0) / TARGET_STEP) * TARGET_STEP
    total += exact_sum(steps, (-1.0, 1.0), n_samples=n_rows, row_weights=row_weights)


def _split_for_baseline(rows, budget_fraction, sensitivity):
    """Return the mechanism of a baseline, and the guarantee that remains for the weights."""
    remaining = rows.remaining
    epsilon, remaining_epsilon = split_epsilon(remaining.epsilon, budget_fraction)
    mechanism = LaplaceMechanism(epsilon, sensitivity=float(sensitivity))
    return mechanism, replace(remaining, epsilon=remaining_epsilon)


def _baseline_fraction(rows, n_rows, ratio):
    """Return the fraction of epsilon, within limits, for a Laplace scale of n_rows over a ratio."""
    return min(MAX_BASELINE_FRACTION, ratio / n_rows / rows.remaining.epsilon)


def reserve_for_class_baseline(rows, n_rows, class_weight, max_abs_score=MAX_SCORE):
    """Return the `RowsFit` with noisy class frequencies as the baseline.

    Without an intercept there is no baseline, and the `RowsFit` is returned unchanged. Balanced
    weights make the classes equally frequent, so their baseline needs no release.

    Parameters
    ----------
    rows : RowsFit
    n_rows : int
    class_weight : list of float or BalancedWeights
        Weight of each class.
    max_abs_score : float, default=8.0
        Largest magnitude of a score.

    Returns
    -------
    RowsFit
    """
    if not rows.constant:
        return rows
    if isinstance(class_weight, BalancedWeights):
        return replace(rows, baseline=BalancedBaseline(score_std=class_weight.score_std))
    fraction = max(
        _baseline_fraction(rows, n_rows, ROWS_PER_SCALE),
        min(MIN_CLASSES_FRACTION, _baseline_fraction(rows, n_rows, ROWS_PER_SCALE_OF_RARE)),
    )
    sensitivity = count_sensitivity(len(class_weight), rows.remaining.neighbors)
    mechanism, remaining = _split_for_baseline(rows, fraction, sensitivity)
    baseline = ClassBaseline(
        n_rows=n_rows,
        mechanism=mechanism,
        class_weight=tuple(class_weight),
        max_abs_score=max_abs_score,
    )
    return replace(rows, baseline=baseline, remaining=remaining)


def _rows_per_scale(high):
    """Return the number of rows per Laplace scale, for the mean of targets or of counts."""
    if high is None:
        return ROWS_PER_SCALE
    return ROWS_PER_SCALE_OF_COUNTS


def reserve_for_mean_baseline(rows, n_rows, high=None):
    """Return the `RowsFit` with the noisy mean of targets, or its logarithm, as the baseline.

    Without an intercept there is no baseline, and the `RowsFit` is returned unchanged.

    Parameters
    ----------
    rows : RowsFit
    n_rows : int
    high : float, default=None
        As in `MeanBaseline`.

    Returns
    -------
    RowsFit
    """
    if not rows.constant:
        return rows
    fraction = _baseline_fraction(rows, n_rows, _rows_per_scale(high))
    fraction = max(MIN_MEAN_FRACTION, fraction)
    sensitivity = rows.remaining.neighbors.sensitivity_factor
    mechanism, remaining = _split_for_baseline(rows, fraction, sensitivity)
    baseline = MeanBaseline(n_rows=n_rows, mechanism=mechanism, high=high)
    return replace(rows, baseline=baseline, remaining=remaining)


def reserve_for_shrinkage(rows, shape):
    """Return the `RowsFit` with a fraction of epsilon reserved for the shrinkage rule.

    Weights are not shrunk if there is no baseline or only one column. The `RowsFit` is then
    returned unchanged.

    Parameters
    ----------
    rows : RowsFit
    shape : TableShape

    Returns
    -------
    RowsFit
    """
    if rows.baseline is None or rows.n_features(shape.n_columns) <= 2:
        return rows
    remaining = rows.remaining
    signal = shape.n_rows * remaining.epsilon
    rare_fraction = ROWS_PER_RARE_SHRINKAGE_SCALE / signal
    fraction = rare_fraction
    if not isinstance(rows.baseline, BalancedBaseline):
        rare_fraction = min(MAX_RARE_SHRINKAGE_FRACTION, rare_fraction)
        fraction = max(ROWS_PER_SHRINKAGE_SCALE / signal, rare_fraction)
    fraction = min(MAX_SHRINKAGE_FRACTION, fraction)
    epsilon, remaining_epsilon = split_epsilon(remaining.epsilon, fraction)
    sensitivity = MAX_DECREASE_NORM["l1"] * remaining.neighbors.sensitivity_factor
    mechanism = LaplaceMechanism(epsilon, sensitivity)
    mechanism.check_size(3)
    remaining = replace(remaining, epsilon=remaining_epsilon)
    return replace(rows, shrinkage_mechanism=mechanism, remaining=remaining)
