"""Losses for binary, multiclass and regression targets: clipped residuals, and constants."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import expit

from skdp._data._parts import Rows, sum_over
from skdp._data._persons import row_weights_of, times_row_weights
from skdp._data._row_wise import row_norms, row_softmax, row_sums
from skdp._data._sums import exact_sum
from skdp._loops import get_loops
from skdp._optim._classification_losses import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._optim._loss import ClippableLoss
from skdp._optim._regression_losses import HuberLoss
from skdp.linear_model._balanced import ClassCounts
from skdp.linear_model._baseline import MAX_SCORE, ClassBaseline, MeanBaseline
from skdp.mechanisms._plan import plan_release
from skdp.utils._values import FrozenValue

# Clip of the residuals for two classes, before they are weighted.
ROW_CLIP = 0.5
# Factor that compensates for the rounding error in a clipped vector's norm.
NORM_MARGIN = 1.0 - 2.0**-40
# Number of iterations for the initial scores; each one at least halves the error.
N_ITERATIONS = 50


class _Task(FrozenValue):
    """Base of all tasks."""

    def residual_steps(self, scores, targets, step, loops):
        """Return the residuals in multiples of `step`; see `Residuals.in_steps`."""
        return np.trunc(self.residuals(scores, targets) / step)


@dataclass(frozen=True, eq=False)
class Residuals(FrozenValue):
    """The clipped residuals of rows, as a function of scores and targets.

    Parameters
    ----------
    task : task
    baseline : ndarray of shape (n_outputs,)
        Scores from which the model starts.
    """

    task: object
    baseline: np.ndarray

    def __call__(self, scores, targets):
        """Return the residuals, of the shape of the scores: (n_rows, n_outputs)."""
        return self.task.residuals(scores + self.baseline, targets)

    def start(self, shape):
        """Return the baseline in the given shape, (1, n_outputs)."""
        return np.broadcast_to(self.baseline, shape)

    def in_steps(self, step, loops, scores, targets, row_weights=None):
        """Return the weighted residuals in multiples of `step`, rounded towards zero.

        Rounding towards zero does not increase the norm of a row. It does not increase the norm of
        a person's rows either, because the row weights leave room for the rounding error in each
        product.

        Parameters
        ----------
        step : float
        loops : str
            Version of the loops over rows, see `skdp._loops`.
        scores : ndarray of shape (n_rows, n_outputs)
            Scores with the baseline.
        targets : ndarray of shape (n_rows,)
        row_weights : ndarray of shape (n_rows,), default=None
            Row weights of persons; None gives every row the weight 1.
        """
        steps = self.task.residual_steps(scores, targets, step, loops)
        if row_weights is None:
            return steps
        return np.trunc(times_row_weights(steps, row_weights))


@dataclass(frozen=True)
class _ClassTask(_Task):
    """Base of the tasks of classes, whose `loss` is a negative log-likelihood.

    Parameters
    ----------
    is_balanced : bool, default=False
        True if class counts are released first, which determine balanced weights; see
        `skdp.linear_model._balanced`. Until then the task is planned with weights of 1.
    """

    is_balanced: bool = False

    score_std = 2.0
    unit = 1.0
    overlap = 0.5
    main_fraction = 0.7
    has_pairs = False
    # Scores rank the rows even if they are nearly constant.
    min_shrinkage_factor = 0.1
    # The evidence raises the penalty if columns explain little, so a factor of 1 is enough: on
    # columns of noise, the log loss exceeds that of the class frequencies by at most .018. Tuned on
    # training rows of twenty small tables (docs/benchmarks/many_tables.py).
    null_decrease_factor = 1.0
    baseline_fraction = (0.35, 20.0)
    min_baseline_fraction = 0.001
    max_abs_score = 2.0 * MAX_SCORE

    @property
    def n_outputs(self):
        """Number of scores per row, which is 1 for two classes."""
        return math.prod(self.loss.weights_shape)

    @property
    def max_mean_loss(self):
        """Bound on the mean loss of the baseline, which holds unless its noise is extreme.

        Without noise, it is at most the loss with scores of 0.
        """
        return self.loss.value_at_zero() + 1.0

    @property
    def max_weight(self):
        """The largest class weight, to which the clip of a row's residuals is proportional."""
        return max(self.weights)

    @property
    def mean_weight_of_classes(self):
        """Variance of a row's weighted residuals, over that of residuals times their mean weight.

        With balanced weights, each class has the same weighted frequency, so the ratio is the mean
        of the weights over the classes. Public weights are not taken into account.
        """
        if not self.is_balanced:
            return 1.0
        return sum(self.weights) / len(self.weights)

    def with_balanced_weights(self, weights, is_pure):
        """Return the task with released weights.

        The mean weight of a row is 1, and the clip grows with the largest weight. With delta = 0,
        the largest weight is 1 instead, because the bounds of the perturbed objective hold for this
        weight.
        """
        scale = max(weights) if is_pure else 1.0
        return replace(self, weights=tuple(weight / scale for weight in weights))

    def plan_baseline(self, n_rows, sensitivity_factor, mechanism):
        """Return the plan of the noisy class frequencies; of two classes, only one is counted."""
        l1 = 1.0 if self.n_outputs == 1 else float(sensitivity_factor)
        noise = mechanism(l1=l1, l2=math.sqrt(l1))
        if self.is_balanced:
            return ClassCounts(n_rows=n_rows, n_classes=len(self.weights), mechanism=noise)
        return ClassBaseline(
            n_rows=n_rows, class_weight=self.weights, mechanism=noise, max_abs_score=MAX_SCORE
        )

    def minority_fraction(self, scores):
        """Return the released frequency of all classes except the most frequent one.

        Parameters
        ----------
        scores : ndarray of shape (n_outputs,)
            Baseline scores.
        """
        if self.is_balanced:
            # A class with weight w has n / (k w) rows.
            frequencies = [1.0 / (len(self.weights) * weight) for weight in self.weights]
            return (sum(frequencies) - max(frequencies)) / sum(frequencies)
        return 1.0 - float(self.probabilities(scores[np.newaxis]).max())

    def initial_scores(self, log_odds):
        """Return the scores whose probabilities, corrected for clipping, have these log-odds."""
        log_odds = np.atleast_2d(log_odds)
        scores = log_odds
        for _ in range(N_ITERATIONS):
            log_p = np.log(self.probabilities(scores))
            scores = scores + log_odds - (log_p - log_p[:, :1])[:, -self.n_outputs :]
        if self.n_outputs == 1:
            return scores[0]
        return scores[0] - scores.mean()


@dataclass(frozen=True, kw_only=True)
class BinaryTask(_ClassTask):
    """The logistic loss of two classes, with residuals clipped to 1/2.

    Parameters
    ----------
    weights : tuple of float
        Weights of the two classes. The larger weight is 1, unless the weights are balanced.

    Attributes
    ----------
    clip, clip_l1 : float
        Largest L2 and L1 norm of a row's residuals.
    loss : Loss
        The loss, with bounds on its curvature.
    main_fraction : float
        Fraction of a row's squared norm that single columns receive, as opposed to pairs.
    has_pairs : bool
        True if choosing pairs is worth its cost.
    typical_curvature : float or None
        Typical curvature of a row's loss; None if the loss is not a negative log-likelihood.
    score_std : float
        Standard deviation that noise may cause in a score if columns are not related to the target.
    unit : float
        Factor from the loss to the units of the targets.
    min_shrinkage_factor : float
        Lower bound on the shrinkage factor of the weights.
    overlap : float
        Fraction of the residuals' variance that weights explain by chance, relative to the sum over
        separately fitted cells. It is below 1, because the blocks of a column overlap and columns
        are correlated.
    null_decrease_factor : float
        Multiple of the null decrease of the loss that the shrinkage test subtracts.
    baseline_fraction : (float, float)
        Maximum budget fraction of the baseline, and n_rows over the noise in a count.
    min_baseline_fraction : float
        Minimum budget fraction of the baseline.
    max_abs_score, max_mean_loss : float
        Bounds on the norm of the baseline and on its mean loss, which hold unless its noise is
        extreme.
    """

    weights: tuple = (1.0, 1.0)

    loss = BinaryLogisticLoss()
    typical_curvature = 0.15

    @property
    def clip(self):
        return ROW_CLIP * self.max_weight

    @property
    def clip_l1(self):
        return self.clip

    def residuals(self, scores, targets):
        """Return the clipped residuals of rows, times the weights of their classes.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
        targets : ndarray of shape (n_rows,)
            Class codes.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        residuals = self.loss.residual(scores[:, 0], targets)
        np.clip(residuals, -ROW_CLIP, ROW_CLIP, out=residuals)
        return (residuals * np.take(self.weights, targets))[:, None]

    def residual_steps(self, scores, targets, step, loops):
        """Return the residuals in multiples of `step`; see `Residuals.in_steps`."""
        return get_loops(loops).class_residual_steps(scores, targets, self.weights, ROW_CLIP, step)

    def probabilities(self, scores):
        """Return the class probabilities, of shape (n_rows, 2).

        The scores solve ``E[clip(q - y)] = 0`` with q their logistic function, that is
        ``(1 - p) min(q, c) = p min(1 - q, c)``.
        """
        q = expit(scores[:, 0])
        one = np.minimum(q, ROW_CLIP)
        other = np.minimum(expit(-scores[:, 0]), ROW_CLIP)
        p = one / (one + other)
        return np.column_stack([1.0 - p, p])


@dataclass(frozen=True, kw_only=True)
class MultinomialTask(_ClassTask):
    """The softmax loss, with residual vectors optionally clipped to an L2 norm of sqrt(1/2).

    Parameters
    ----------
    weights : tuple of float
        Weights of the classes. The largest weight is 1, unless the weights are balanced.
    clipped : bool, default=True
        False for objective perturbation, which needs gradients of a convex function; clipped
        residual vectors are not gradients.
    """

    weights: tuple
    clipped: bool = True

    @property
    def loss(self):
        return MultinomialLogisticLoss(len(self.weights))

    @property
    def row_clip(self):
        """Largest L2 norm of a row's residuals before they are weighted."""
        if self.clipped:
            return math.sqrt(0.5)
        return math.sqrt(2.0)

    @property
    def clip(self):
        return self.row_clip * self.max_weight

    @property
    def clip_l1(self):
        return 2.0 * self.max_weight

    typical_curvature = 0.1
    overlap = 0.06

    def residuals(self, scores, targets):
        """Return the clipped residuals of rows; see `BinaryTask.residuals`."""
        residuals = self.loss.residual(scores, targets)
        norms = row_norms(residuals)
        factor = np.minimum(1.0, self.row_clip / np.maximum(norms, 1e-300)) * NORM_MARGIN
        return residuals * (factor * np.asarray(self.weights)[targets])[:, None]

    def probabilities(self, scores):
        """Return the class probabilities, of shape (n_rows, n_classes).

        With q the softmax of the scores and s_k the factor that clips a row of class k, the scores
        solve ``sum_k p_k s_k (q - e_k) = 0``. So p_k is proportional to q_k / s_k.
        """
        q = row_softmax(scores)
        p = np.empty_like(q)
        for k in range(q.shape[1]):
            norms = row_norms(q - np.eye(q.shape[1])[k])
            p[:, k] = q[:, k] * np.maximum(1.0, norms / self.row_clip)
        return p / row_sums(p)[:, np.newaxis]


def plan_variance(n_rows, clip, mechanism):
    """Return the plan of the noisy mean squared distance between targets and a released number.

    A distance is clipped to `clip`, so the sensitivity of the sum of squares is `clip` squared.

    Parameters
    ----------
    n_rows : int
        Public number of rows.
    clip : float
        Bound on a target's distance.
    mechanism : LaplaceMechanism or GaussianMechanism
        Noise of the sum of squares.

    Returns
    -------
    Plan
        Its ``run(targets, center, source, persons=None)`` also receives the released number. It
        returns the variance, at least the standard deviation of its noise and at most clip**2.
    """
    run = partial(_release_variance, mechanism, n_rows, clip)
    return plan_release(
        mechanism, run, stage_name="the variance of targets", unit="target_bounds", size=1
    )


def _release_variance(mechanism, n_rows, clip, targets, center, source, persons=None):
    """Return the noisy mean of squared distances between targets and the center."""
    rows = Rows(targets[:, np.newaxis])
    row_args = (row_weights_of(persons),)
    total = sum_over(rows, _add_squares, np.zeros(1), center, clip, n_rows, row_args=row_args)
    variance = mechanism.release(total, random_state=source)[0] / n_rows
    noise_std = mechanism.deviation(size=1) / n_rows
    max_variance = clip**2
    return float(np.clip(variance, min(noise_std, max_variance), max_variance))


def _add_squares(total, targets, row_weights, center, clip, n_rows):
    squares = np.clip(targets - center, -clip, clip) ** 2
    total += exact_sum(squares, (0.0, clip**2), n_samples=n_rows, row_weights=row_weights)


def plan_correction(n_rows, mechanism):
    """Return the plan of the noisy mean clipped distance between targets and a released number.

    Distances are divided by the clip before they are summed, so the sensitivity and the noise are
    those of values in [-1, 1] for every clip that is a function of released values.

    Parameters
    ----------
    n_rows : int
        Public number of rows.
    mechanism : LaplaceMechanism or GaussianMechanism
        Noise of the sum.

    Returns
    -------
    Plan
        Its ``run(targets, center, clip, source, persons=None)`` also receives the released number
        and the clip. It returns the mean distance, in the units of the targets.
    """
    run = partial(_release_correction, mechanism, n_rows)
    stage_name = "the correction of the mean of targets"
    return plan_release(mechanism, run, stage_name=stage_name, unit="the clip of residuals", size=1)


def _release_correction(mechanism, n_rows, targets, center, clip, source, persons=None):
    """Return the noisy mean of clipped distances between targets and the center."""
    rows = Rows(targets[:, np.newaxis])
    row_args = (row_weights_of(persons),)
    args = (center, clip, n_rows)
    total = sum_over(rows, _add_distances, np.zeros(1), *args, row_args=row_args)
    return clip * float(mechanism.release(total, random_state=source)[0]) / n_rows


def _add_distances(total, targets, row_weights, center, clip, n_rows):
    distances = (targets - center) / clip
    total += exact_sum(distances, (-1.0, 1.0), n_samples=n_rows, row_weights=row_weights)


@dataclass(frozen=True, kw_only=True)
class NumberTask(_Task):
    """The squared loss on targets in [-1, 1], with clipped residuals.

    Parameters
    ----------
    unit : float, default=1.0
        Factor from the loss to the units of the targets. The attributes are as in `BinaryTask`.
    clip : float, default=0.25
        Bound on residuals. Additive models lower it to the spread of the targets.
    """

    unit: float = 1.0
    clip: float = 0.25

    loss: ClassVar[ClippableLoss] = HuberLoss()
    is_balanced = False
    mean_weight_of_classes = 1.0
    n_outputs = 1
    typical_curvature = None
    has_log_link = False
    score_std = overlap = 0.5
    max_mean_loss = 0.5
    max_abs_score = 1.0
    main_fraction = 0.5
    has_pairs = True
    min_shrinkage_factor = 0.0
    # This is used if no evidence raises the penalty (in trees, and with delta = 0). With 1, columns
    # of noise cost up to .15 of R².
    null_decrease_factor = 2.0
    baseline_fraction = (0.6, 60.0)
    # With less than 5 %, the mean's standard deviation would stay at 1/120 of the range at every
    # epsilon, which exceeds the standard deviation of amounts with a wide range.
    min_baseline_fraction = 0.05

    def plan_baseline(self, n_rows, sensitivity_factor, mechanism):
        """Return the plan of the noisy mean of targets."""
        sensitivity = float(sensitivity_factor)
        return MeanBaseline(n_rows=n_rows, mechanism=mechanism(l1=sensitivity, l2=sensitivity))

    @property
    def clip_l1(self):
        """Largest L1 norm of a row's residuals."""
        return self.clip

    def plan_variance(self, n_rows, mechanism):
        """Return the plan of the noisy variance of targets around the baseline."""
        # Squares are not negative, so replacing a row changes the sum by no more than removing one.
        sensitivity = self.clip**2
        return plan_variance(n_rows, self.clip, mechanism(l1=sensitivity, l2=sensitivity))

    def plan_correction(self, n_rows, sensitivity_factor, mechanism):
        """Return the plan of the correction of the baseline with clipped distances."""
        sensitivity = float(sensitivity_factor)
        return plan_correction(n_rows, mechanism(l1=sensitivity, l2=sensitivity))

    @property
    def clip_unit(self):
        """Half the target range in units of residuals."""
        return 1.0

    def at_baseline(self, means, variance):
        """Return the task of the steps, their baseline scores and the variance of residuals.

        Parameters
        ----------
        means : ndarray of shape (1,)
            Released mean of the targets in [-1, 1].
        variance : float
            Released variance around it.
        """
        return self, means, variance

    def minority_fraction(self, scores):
        """Return 1, because numeric targets have no rare class."""
        return 1.0

    def initial_scores(self, mean):
        """Return the released mean as an array of one score."""
        return np.array([mean])

    def residuals(self, scores, targets):
        """Return the clipped residuals of rows; see `BinaryTask.residuals`."""
        return np.clip(self.loss.residual(scores[:, 0], targets), -self.clip, self.clip)[:, None]
