"""What is predicted: clipped residuals of two classes, of several, or of numbers; and back."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skdp._data._parts import Rows, sum_over
from skdp._data._persons import row_weights_of
from skdp._losses._classes import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._losses._numbers import HuberLoss
from skdp.linear_model._baseline import MAX_SCORE, ClassBaseline, MeanBaseline
from skdp.mechanisms._plan import MechanismPlan
from skdp.utils._row_wise import row_norms, row_softmax, row_sums
from skdp.utils._sums import exact_sum
from skdp.utils._values import FrozenValue

# A clipped vector's norm may exceed the clip by the rounding of its computation.
SHRINK = 1.0 - 2.0**-40
# Each halves the distance from the scores that are sought, at least.
ROUNDS = 50


@dataclass(frozen=True)
class _OfClasses(FrozenValue):
    """What tasks of classes take from their `loss`, a likelihood."""

    spread = 2.0
    unit = 1.0
    overlap = 0.5
    main_share = 0.7
    has_pairs = False
    # Scores order the rows, however little they say.
    least_kept = 0.1
    # The evidence raises the penalty where columns say little, so that once is enough: on columns
    # of noise the log loss stays within .018 of the class frequencies'. Tuned on training rows of
    # twenty small tables (docs/benchmarks/many_tables.py).
    null_decrease_factor = 1.0
    center_share = 0.35, 20.0
    least_center_share = 0.001

    @property
    def n_outputs(self):
        return math.prod(self.loss.weights_shape)

    largest_score = 2.0 * MAX_SCORE

    # That of a center is hardly ever larger: it is below that of scores 0, but for its noise.
    @property
    def largest_loss(self):
        return self.loss.value_at_zero() + 1.0

    def center(self, n_rows, sensitivity_factor, mechanism):
        """Return the plan of noisy class frequencies; of two classes one is counted."""
        l1 = 1.0 if self.n_outputs == 1 else float(sensitivity_factor)
        terms = {"mechanism": mechanism(l1=l1, l2=math.sqrt(l1)), "max_abs_score": MAX_SCORE}
        return ClassBaseline(n_rows=n_rows, class_weight=self.weights, **terms)

    def minority(self, scores):
        """Return the released frequency of all classes but the most frequent one.

        Parameters
        ----------
        scores : ndarray of shape (n_outputs,)
            Those at which the model begins.
        """
        return 1.0 - float(self.probabilities(scores[np.newaxis]).max())

    def begin(self, center):
        """Return the scores whose probabilities, corrected for the clip, are a center's."""
        scores = log_odds = np.atleast_2d(center)
        for _ in range(ROUNDS):
            logs = np.log(self.probabilities(scores))
            scores = scores + log_odds - (logs - logs[:, :1])[:, -self.n_outputs :]
        return scores[0] - scores.mean() * (self.n_outputs > 1)


@dataclass(frozen=True, kw_only=True)
class BinaryTask(_OfClasses):
    """The logistic loss, with residuals clipped to 1/2.

    Parameters
    ----------
    weights : tuple of float
        Of the two classes, the largest 1.

    Attributes
    ----------
    clip, clip_l1 : float
        The largest L2 and L1 norm of a row's residuals.
    loss : Loss
        It bounds the curvature.
    main_share : float
        What single columns have of the squares of the blocks' weights, beside pairs.
    has_pairs : bool
        Whether choosing pairs has been found to be worth its price.
    typical_curvature : float or None
        A usual one of a row, where the loss is that of a likelihood.
    spread : float
        The standard deviation that noise may give a score where data say nothing.
    unit : float
        What a loss of 1 is in the units of the targets.
    least_kept : float
        Of the weights, whatever the check of them says.
    overlap : float
        What weights explain by chance over the sum of what their cells would, each by itself:
        blocks of a column overlap, and columns say alike.
    null_decrease_factor : float
        How often the decrease of the loss that chance explains is subtracted in the check.
    center_share : (float, float)
        Of the budget at most, and one over what noise may be of the rows.
    least_center_share : float
        Of the budget at least.
    largest_score, largest_loss : float
        The norm of a center at most, and the mean loss there, if its noise is not far beyond usual.
    """

    weights: tuple = (1.0, 1.0)

    loss = BinaryLogisticLoss()
    clip = clip_l1 = 0.5
    typical_curvature = 0.15

    def residuals(self, scores, targets):
        """Return clipped residuals.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
        targets : ndarray of shape (n_rows,)
            Codes of classes.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        residuals = self.loss.residual(scores[:, 0], targets)
        np.clip(residuals, -self.clip, self.clip, out=residuals)
        return (residuals * np.take(self.weights, targets))[:, None]

    def probabilities(self, scores):
        """Return the classes' probabilities, of shape (n_rows, 2).

        The scores solve ``E[clip(q - y)] = 0`` with q their logistic function, that is
        ``(1 - p) min(q, c) = p min(1 - q, c)``.
        """
        q = expit(scores[:, 0])
        one = np.minimum(q, self.clip)
        other = np.minimum(expit(-scores[:, 0]), self.clip)
        p = one / (one + other)
        return np.column_stack([1.0 - p, p])


@dataclass(frozen=True, kw_only=True)
class MultinomialTask(_OfClasses):
    """The softmax loss, with residual vectors clipped to an L2 norm of sqrt(1/2), or not.

    Parameters
    ----------
    weights : tuple of float
        Of the classes, the largest 1.
    clipped : bool, default=True
        A vector that is clipped is no gradient, as objective perturbation needs it.
    """

    weights: tuple
    clipped: bool = True

    @property
    def loss(self):
        return MultinomialLogisticLoss(len(self.weights))

    @property
    def clip(self):
        return math.sqrt(0.5 if self.clipped else 2.0)

    clip_l1 = 2.0
    typical_curvature = 0.1
    overlap = 0.06

    def residuals(self, scores, targets):
        """Return clipped residuals; as `BinaryTask.residuals`."""
        residuals = self.loss.residual(scores, targets)
        norms = row_norms(residuals)
        factor = np.minimum(1.0, self.clip / np.maximum(norms, 1e-300)) * SHRINK
        return residuals * (factor * np.asarray(self.weights)[targets])[:, None]

    def probabilities(self, scores):
        """Return the classes' probabilities, of shape (n_rows, n_classes).

        With q the softmax of the scores and s_k the factor that clips a row of class k, the scores
        solve ``sum_k p_k s_k (q - e_k) = 0``: p_k is in proportion to q_k / s_k.
        """
        q = row_softmax(scores)
        p = np.empty_like(q)
        for k in range(q.shape[1]):
            norms = row_norms(q - np.eye(q.shape[1])[k])
            p[:, k] = q[:, k] * np.maximum(1.0, norms / self.clip)
        return p / row_sums(p)[:, np.newaxis]


@dataclass(frozen=True, kw_only=True)
class VarianceOfTargets(MechanismPlan):
    """The noisy mean of squared distances of targets from a number that was released.

    A distance is clipped to `clip`, so that a row's square lies between 0 and `clip` squared: by
    so much it moves their sum.

    Parameters
    ----------
    n_rows : int
    clip : float
    mechanism : LaplaceMechanism or GaussianMechanism
        Of the sum of squares.
    """

    n_rows: int
    clip: float
    mechanism: object

    released = "the variance of targets"

    def run(self, targets, center, source, persons=None):
        """Return the variance, at least about the noise in it and at most the clip's square.

        Parameters
        ----------
        targets : ndarray of shape (n_rows,)
        center : float
            It was released.
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        float
        """
        rows = Rows(targets[:, np.newaxis])
        row_args = (row_weights_of(persons),)
        known = (center, self.clip, self.n_rows)
        total = sum_over(rows, _add_squares, np.zeros(1), *known, row_args=row_args)
        variance = self.mechanism.release(total, random_state=source)[0] / self.n_rows
        least = self.mechanism.deviation(1) / self.n_rows
        return float(np.clip(variance, min(least, self.clip**2), self.clip**2))


def _add_squares(total, targets, row_weights, center, clip, n_rows):
    squares = np.clip(targets - center, -clip, clip) ** 2
    total += exact_sum(squares, (0.0, clip**2), n_samples=n_rows, row_weights=row_weights)


@dataclass(frozen=True, kw_only=True)
class NumberTask(FrozenValue):
    """The squared loss on targets in [-1, 1], with residuals clipped to 1/4."""

    unit: float = 1.0

    loss = HuberLoss()
    n_outputs = 1
    clip = clip_l1 = 0.25
    typical_curvature = None
    spread = overlap = 0.5
    largest_loss = 0.5
    largest_score = 1.0
    main_share = 0.5
    has_pairs = True
    least_kept = 0.0
    # Where no evidence raises the penalty (trees, and delta = 0): subtracted once, columns of noise
    # cost up to .15 of R².
    null_decrease_factor = 2.0
    center_share = 0.6, 60.0
    # With less than 5 % the mean's standard deviation stays at 1/120 of the range at every
    # epsilon, which is more than the spread of amounts whose range is wide.
    least_center_share = 0.05

    def center(self, n_rows, sensitivity_factor, mechanism):
        """Return the plan of the noisy mean of targets."""
        moved = float(sensitivity_factor)
        return MeanBaseline(n_rows=n_rows, mechanism=mechanism(l1=moved, l2=moved))

    def variance(self, n_rows, mechanism):
        """Return the plan of the noisy variance of targets around a center."""
        # No square is below 0, so that a row that takes the place of another moves no more.
        moved = self.clip**2
        return VarianceOfTargets(
            n_rows=n_rows, clip=self.clip, mechanism=mechanism(l1=moved, l2=moved)
        )

    def minority(self, scores):
        """Return 1: no target is rare, as a class can be."""
        return 1.0

    def begin(self, center):
        """Return the score of a center."""
        return np.array([center])

    def residuals(self, scores, targets):
        """Return clipped residuals; as `BinaryTask.residuals`."""
        return np.clip(self.loss.residual(scores[:, 0], targets), -self.clip, self.clip)[:, None]
