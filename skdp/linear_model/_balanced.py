r"""Balanced class weights, computed from class counts that a fit releases first.

The weight of class c is :math:`n / (k \tilde n_c)`, as in scikit-learn, with the noisy count
:math:`\tilde n_c` raised to the standard deviation of its noise and to :math:`n / (100 k)`. So no
weight exceeds 100 on any table. The later stages of a fit compute their sensitivity from the
released weights, as a bound on a row's loss that holds for both neighboring datasets. Their noise
is proportional to this sensitivity, so their privacy event does not depend on the weights, and the
whole fit is charged before the counts are released.

The mean of these weights over the rows is about 1, so curvature, regularization and typical scores
are those of unweighted rows. The bound on a single row's loss is that for the largest weight.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._data._parts import row_blocks
from skdp._data._persons import row_weights_of, weighted_bincount
from skdp.accounting import Guarantee
from skdp.accounting._guarantee import split_epsilon
from skdp.mechanisms import LaplaceMechanism
from skdp.mechanisms._plan import Plan, join_plans, plan_release
from skdp.utils._values import FrozenValue

# Largest weight of a class: counts are raised to at least n / (MAX_BALANCED_WEIGHT k).
MAX_BALANCED_WEIGHT = 100.0
# Epsilon of the counts: the fraction whose Laplace scale is n_rows / ROWS_PER_COUNT_SCALE, within
# the limits below. Owing to the lower limit, the noise vanishes as epsilon grows. The weight of a
# class with 1 % of the rows is off by about 10 %, which changes scores by 0.1. Chosen by the
# balanced accuracy in docs/benchmarks/rare_classes.py.
ROWS_PER_COUNT_SCALE = 1000.0
MIN_COUNTS_FRACTION = 0.005
MAX_COUNTS_FRACTION = 0.1
# Largest weight assumed in the plan of the later stages before the counts are known: for two
# classes, the weight of a class with a twentieth of the rows. It determines the number of steps
# and, if that is "auto", the mechanism. Neither may depend on released values.
TYPICAL_MAX_WEIGHT = 10.0
# Smallest standard deviation of the initial score's error with balanced weights. Even with exact
# counts it is not 0, because the score at the mean of all columns is not the mean score.
MIN_SCORE_STD = 0.2
# Number of class codes that are counted at once.
COUNTED_ROWS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class BalancedWeights(FrozenValue):
    """Balanced weights from released counts.

    Parameters
    ----------
    values : tuple of float
        Weight of each class.
    score_std : float
        Standard deviation of a score at the start, where the weighted classes are assumed to be
        equally frequent.
    """

    values: tuple
    score_std: float

    def __len__(self):
        return len(self.values)

    @property
    def max_weight(self):
        """The largest weight, to which sensitivities are proportional."""
        return max(self.values)

    @classmethod
    def typical(cls, n_classes):
        """Return the weights assumed by plans made before the counts are released."""
        weights = (1.0,) * (n_classes - 1) + (TYPICAL_MAX_WEIGHT,)
        return cls(values=weights, score_std=MIN_SCORE_STD)


@dataclass(frozen=True, kw_only=True)
class ClassCounts(FrozenValue):
    """Release of noisy class counts.

    Parameters
    ----------
    n_rows, n_classes : int
    mechanism : LaplaceMechanism or GaussianMechanism
        Mechanism that adds noise to the counts. If there are two classes, only one is counted,
        since the number of rows is public.
    """

    n_rows: int
    n_classes: int
    mechanism: object

    def __post_init__(self):
        self.mechanism.check_size(self.n_classes)

    def plan(self):
        """Return the plan of the release."""
        return plan_release(
            self.mechanism, self.run, stage_name="class counts for balanced weights"
        )

    def run(self, codes, source, persons=None):
        """Return the noisy count of each class.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Class codes.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return release_counts(
            codes, self.n_classes, self.n_rows, self.mechanism, source, row_weights_of(persons)
        )

    def weights(self, counts):
        """Return the `BalancedWeights` of noisy counts (post-processing)."""
        n_rows = self.n_rows
        std = self.mechanism.deviation(self.n_classes)
        floor = max(std, n_rows / (MAX_BALANCED_WEIGHT * self.n_classes))
        raised = np.clip(counts, min(floor, n_rows), n_rows)
        # Rounded down, so no weight exceeds the bound by a rounding error.
        weights = np.minimum(n_rows / (self.n_classes * raised), MAX_BALANCED_WEIGHT)
        score_std = math.hypot(MIN_SCORE_STD, *(std / raised))
        return BalancedWeights(values=tuple(weights.tolist()), score_std=score_std)


def release_counts(codes, n_classes, n_rows, mechanism, source, row_weights=None):
    """Return noisy class counts; if there are two classes, only one is counted.

    Parameters
    ----------
    codes : ndarray
        Class codes.
    n_classes, n_rows : int
        `n_rows` is the public number of privacy units.
    mechanism : LaplaceMechanism or GaussianMechanism
    source : RandomSource
    row_weights : ndarray, default=None
        Weights of the rows of persons.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    is_binary = n_classes == 2
    counts = np.zeros(n_classes)
    # Counted in blocks, because counting copies the codes as eight-byte numbers.
    for rows in row_blocks(codes, COUNTED_ROWS):
        if row_weights is None:
            counts += np.bincount(codes[rows], minlength=n_classes)
        else:
            counts += weighted_bincount(codes[rows], row_weights[rows], n_classes)
    counts = mechanism.release(counts[is_binary:], random_state=source)
    if is_binary:
        counts = np.append(n_rows - counts, counts)
    return counts


def count_sensitivity(n_classes, neighbors):
    """Return the L1 sensitivity of the released class counts, and the squared L2 sensitivity."""
    if n_classes == 2:
        # Only one of the two classes is counted.
        return 1
    # Under replace-one, a row can change two counts.
    return neighbors.sensitivity_factor


@dataclass(frozen=True, kw_only=True)
class BalancedBaseline(FrozenValue):
    """The baseline of balanced classes: scores of 0, which need no release.

    Parameters
    ----------
    score_std : float
        Standard deviation of its error; see `BalancedWeights`.
    """

    score_std: float

    norm = 0.0

    def run(self, codes, source, persons=None):
        """Return the score 0 of each output."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class BalancedFit(FrozenValue):
    """A fit with balanced weights: class counts, then all stages of a weighted fit.

    Parameters
    ----------
    counts : ClassCounts
    planned : Plan
        The later stages for typical weights.
    guarantee, remaining : Guarantee
        Guarantee of the whole fit, and of the later stages.
    make_later_plan : callable
        ``make_later_plan(remaining, weights, planned)`` returns the later stages for a
        `BalancedWeights`, with the event of `planned`.
    is_typical : bool, default=True
        True if `planned` is for typical weights, False if it is for released weights.
    """

    counts: ClassCounts
    planned: Plan
    guarantee: Guarantee
    remaining: Guarantee
    # The function is not compared: it is the same in equal plans, but bound to the estimator.
    make_later_plan: Callable = field(compare=False)
    is_typical: bool = True

    @property
    def weights(self):
        """The solver of the later stages."""
        return self.planned.mechanism.weights

    def make_plan(self, weights):
        """Return the plan of the later stages for a `BalancedWeights`."""
        return self.make_later_plan(self.remaining, weights, self.planned.mechanism)

    def plan(self):
        """Return the plan of the fit, which charges all its releases together.

        Its `mechanism` is this fit. The noise of its stages is that for typical weights, or for
        the released ones after a run.
        """
        planned = self.planned
        if self.is_typical:
            # The noise is proportional to the largest weight, which is not known yet.
            stages = []
            for stage in planned.stages:
                if stage.name == "weights":
                    law = f"{stage.law}, for a largest class weight of {TYPICAL_MAX_WEIGHT:g}"
                    stage = replace(stage, law=law)
                stages.append(stage)
            planned = replace(planned, stages=tuple(stages))
        return replace(
            join_plans((self.counts.plan(), planned), self.guarantee, main=planned),
            run=self.run,
            noise_multiplier=self.planned.noise_multiplier,
            total_excess_loss=self.planned.total_excess_loss,
            mechanism=self,
        )

    def run(self, table, source, persons=None):
        """Return the `BalancedResult` of the fit.

        Parameters
        ----------
        table : RowsAndTarget
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Raises
        ------
        RuntimeError
            If the privacy event of the later stages differs from the charged one.
        """
        weights = self.counts.weights(self.counts.run(table.y, source, persons))
        plan = self.make_plan(weights)
        if plan.event != self.planned.event:
            raise RuntimeError(
                "the privacy event of the stages for the released class weights differs from the "
                "charged one; nothing more was released"
            )
        result = plan.run(table, source, persons)
        return BalancedResult(
            result=result,
            class_weight=np.array(weights.values),
            plan=replace(self, planned=plan, is_typical=False).plan(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class BalancedResult(FrozenValue):
    """The result of a fit with balanced weights.

    Parameters
    ----------
    result : object
        The result of the later stages.
    class_weight : ndarray of shape (n_classes,)
        The released weights.
    plan : Plan
        The plan whose later stages are those that ran.
    """

    result: object
    class_weight: np.ndarray
    plan: Plan


def weighted_result(released, plan):
    """Return the result of a fit, its released class weights or None, and the plan that ran.

    Parameters
    ----------
    released : object
        Result of the plan's run.
    plan : plan
        The planned fit, for typical weights if `class_weight` is "balanced".
    """
    if isinstance(released, BalancedResult):
        return released.result, released.class_weight, released.plan
    return released, None, plan


def is_balanced(class_weight):
    """Return True if `class_weight` is "balanced"."""
    return isinstance(class_weight, str) and class_weight == "balanced"


def plan_balanced(make_plan, n_rows, n_classes, guarantee):
    """Return the plan of a fit with balanced weights.

    Parameters
    ----------
    make_plan : callable
        ``make_plan(guarantee, weights, planned)`` returns the later stages for `BalancedWeights`.
        `planned` is None, or the fit for typical weights, whose event the result must have.
    n_rows, n_classes : int
    guarantee : Guarantee
        Guarantee of the whole fit.

    Returns
    -------
    Plan
    """
    fraction = ROWS_PER_COUNT_SCALE / n_rows / guarantee.epsilon
    fraction = min(max(fraction, MIN_COUNTS_FRACTION), MAX_COUNTS_FRACTION)
    epsilon, remaining_epsilon = split_epsilon(guarantee.epsilon, fraction)
    sensitivity = float(count_sensitivity(n_classes, guarantee.neighbors))
    mechanism = LaplaceMechanism(epsilon, sensitivity)
    remaining = replace(guarantee, epsilon=remaining_epsilon)
    planned = make_plan(remaining, BalancedWeights.typical(n_classes), None)

    fit = BalancedFit(
        counts=ClassCounts(n_rows=n_rows, n_classes=n_classes, mechanism=mechanism),
        planned=planned,
        guarantee=guarantee,
        remaining=remaining,
        make_later_plan=make_plan,
    )
    return fit.plan()
