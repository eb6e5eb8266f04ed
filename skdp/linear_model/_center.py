r"""The intercept's own share: noisy class frequencies or a noisy mean, released before the weights.

Weights shrink to the model that predicts it, so that a fit without information ends there and not
at noise. It costs no more than it takes to know it well, which is the less of epsilon the more
rows there are. The sensitivity and the share are derived in ``docs/guarantees.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import Rows, row_blocks, slice_row_args, sum_over
from skdp._data._persons import row_weights_of, weighted_bincount
from skdp._sgd._clipped_sums import LENGTH_OF_GAINS
from skdp.mechanisms import LaplaceMechanism
from skdp.mechanisms._plan import MechanismPlan
from skdp.utils._sums import exact_sum, split_epsilon

# The center's share of epsilon: at most so much, and no more than leaves noise of a scale of one
# so manieth of the rows. Chosen with made tables and training rows of Adult in view.
LARGEST_SHARE = 0.75
ROWS_OVER_SCALE = 40.0
# A mean has at least this share. With less, its standard deviation stays at 1/57 of the range at
# every epsilon, which is more than the spread of amounts whose range is wide.
LEAST_SHARE_OF_MEAN = 0.05
# Counts may be a small part of the largest, and their logarithm is needed.
ROWS_OVER_SCALE_OF_COUNTS = 200.0
# The same of a check of the weights.
CHECK_SHARE = 0.05
ROWS_OVER_CHECK = 100.0
# Targets are summed in steps of this, exactly.
TARGET_STEP = 2.0**-20
COUNTED_ROWS = 1 << 16
# The largest score of a center.
LARGEST_SCORE = 8.0


@dataclass(frozen=True, kw_only=True)
class ClassCenter(MechanismPlan):
    """The logarithms of noisy class frequencies.

    Parameters
    ----------
    n_rows : int
    class_weight : tuple of float
        By which the counts of the classes are multiplied afterwards.
    mechanism : LaplaceMechanism
        Of the counts; of two classes one is counted, as the number of rows is public.
    largest : float
        Scores are scaled down to at most this, in order.
    """

    n_rows: int
    class_weight: tuple
    mechanism: LaplaceMechanism
    largest: float

    released = "class frequencies"

    def __post_init__(self):
        self.check_size(len(self.class_weight))

    # The largest norm of the scores.
    @property
    def norm(self):
        return self.largest * math.sqrt(len(self.class_weight))

    @property
    def deviation(self):
        """About the standard deviation of a score, where a class has a fourth of the rows."""
        return self.mechanism.deviation(len(self.class_weight)) / (0.1875 * self.n_rows)

    def run(self, codes, source, persons=None):
        """Return the score of the second of two classes, or those of all classes.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Codes of classes.
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        float or ndarray of shape (n_classes,)
        """
        binary = len(self.class_weight) == 2
        row_weights = row_weights_of(persons)
        n = len(self.class_weight)
        counts = np.zeros(n)
        # At once they would all be copied as numbers of eight bytes.
        for rows in row_blocks(codes, COUNTED_ROWS):
            counts += weighted_bincount(codes[rows], slice_row_args(row_weights, rows), n)
        counts = counts[binary:]
        counts = self.mechanism.release(counts, random_state=source)
        if binary:
            counts = np.append(self.n_rows - counts, counts)
        logits = np.log(np.maximum(counts, 0.0) + max(1.0, self.mechanism.scale))
        logits += np.log(self.class_weight)
        scores = logits[1] - logits[0] if binary else logits - logits.mean()
        return scores / max(1.0, np.abs(scores).max() / self.largest)


@dataclass(frozen=True, kw_only=True)
class MeanCenter(MechanismPlan):
    """The noisy mean of targets, or its logarithm.

    Parameters
    ----------
    n_rows : int
    mechanism : LaplaceMechanism
        Of the sum of targets in [-1, 1].
    high : float, default=None
        None for targets in [-1, 1]; else counts lie in [0, high], and the score is a logarithm.
    """

    n_rows: int
    mechanism: LaplaceMechanism
    high: float | None = None

    released = "the mean of targets"

    @property
    def deviation(self):
        """About the standard deviation of the score, for counts of a tenth of the largest.

        It does not vanish with the noise: the score at the mean of all columns, where a model's
        intercept is, differs from the mean of the targets.
        """
        ratio = ROWS_OVER_SCALE if self.high is None else ROWS_OVER_SCALE_OF_COUNTS
        # A little less, so that it is the noise's wherever the noise is planned by the ratio.
        least = 0.999 * math.sqrt(2.0) / ratio
        of_mean = max(self.mechanism.deviation(1) / self.n_rows, least)
        return of_mean if self.high is None else 5.0 * of_mean

    # The least mean in (0, 2] whose logarithm is taken.
    @property
    def least(self):
        return min(1.0, self.mechanism.scale / self.n_rows)

    @property
    def norm(self):
        """The largest magnitude of the score."""
        if self.high is None:
            return 1.0
        return max(abs(math.log(0.5 * self.high * mean)) for mean in (self.least, 2.0))

    def run(self, targets, source, persons=None):
        """Return the score that is the same for all rows.

        Parameters
        ----------
        targets : ndarray of shape (n_rows,)
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

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
        return math.log(0.5 * self.high * float(np.clip(1.0 + mean, self.least, 2.0)))


def _add_targets(total, targets, row_weights, high, n_rows):
    if high is not None:
        targets = 2.0 * (targets / high) - 1.0
    steps = np.rint(np.clip(targets, -1.0, 1.0) / TARGET_STEP) * TARGET_STEP
    total += exact_sum(steps, (-1.0, 1.0), n_samples=n_rows, row_weights=row_weights)


def _with_center(rows, n_rows, moved, center, least_share=0.0, **params):
    """Return the plan of rows with a share of what is left for a center, if an intercept is fitted.

    `moved` is the L1 distance by which a row moves what is counted or summed.
    """
    if not rows.constant:
        return rows
    whole = rows.left
    ratio = ROWS_OVER_SCALE if params.get("high") is None else ROWS_OVER_SCALE_OF_COUNTS
    share = max(least_share, min(LARGEST_SHARE, ratio / n_rows / whole.epsilon))
    own, left = split_epsilon(whole.epsilon, share)
    mechanism = LaplaceMechanism(own, sensitivity=float(moved))
    plan = center(n_rows=n_rows, mechanism=mechanism, **params)
    return replace(rows, center=plan, left=replace(whole, epsilon=left))


def with_class_center(rows, n_rows, class_weight, largest=LARGEST_SCORE):
    """Return the plan of rows with noisy class frequencies as their center.

    Parameters
    ----------
    rows : RowPlan
    n_rows : int
    class_weight : list of float
        Of each class.
    largest : float, default=8.0
        The largest score.

    Returns
    -------
    RowPlan
    """
    moved = 1 if len(class_weight) == 2 else rows.left.neighbors.sensitivity_factor
    params = {"class_weight": tuple(class_weight), "largest": largest}
    return _with_center(rows, n_rows, moved, ClassCenter, **params)


def with_check(rows, shape):
    """Return the plan of rows with a share of what is left for the gains of the weights.

    Nothing is checked without a center or with one column.

    Parameters
    ----------
    rows : RowPlan
    shape : TableShape

    Returns
    -------
    RowPlan
    """
    whole = rows.left
    n = shape.n_rows
    if rows.center is None or rows.n_features(shape.n_columns) <= 2:
        return rows
    own, left = split_epsilon(whole.epsilon, min(CHECK_SHARE, ROWS_OVER_CHECK / n / whole.epsilon))
    checking = LaplaceMechanism(own, LENGTH_OF_GAINS["l1"] * whole.neighbors.sensitivity_factor)
    checking.check_size(3)
    return replace(rows, checking=checking, left=replace(whole, epsilon=left))


def with_mean_center(rows, n_rows, high=None):
    """Return the plan of rows with the noisy mean of targets, or its logarithm, as their center.

    Parameters
    ----------
    rows : RowPlan
    n_rows : int
    high : float, default=None
        As in `MeanCenter`.

    Returns
    -------
    RowPlan
    """
    moved = rows.left.neighbors.sensitivity_factor
    return _with_center(rows, n_rows, moved, MeanCenter, LEAST_SHARE_OF_MEAN, high=high)
