"""Fit of an additive model: its stages, and the fraction of the budget for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from skdp._data._dyadic import LEVELS
from skdp._data._parts import sum_over
from skdp._data._persons import row_weights_of
from skdp._data._sums import exact_sum
from skdp._fitting._fit_progress import progress_callback
from skdp._loops import choose_loops
from skdp._optim._clipped_sums import MAX_DECREASE_NORM, SQUARED_RESIDUAL_WEIGHT, sum_loss_decreases
from skdp._optim._default_settings import MAX_NULL_FRACTION
from skdp._optim._noisy_gradients import ShrinkageRule
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.gam import _blocks, _descent
from skdp.gam._evidence import (
    chance_dof,
    min_l2_reg_strength,
    penalty_by_evidence,
    unclipped_fraction,
)
from skdp.gam._joint_codes import JointCodes
from skdp.gam._standard_errors import IterateDrift, standard_errors
from skdp.gam._tables import append_joint_terms, make_table, table_cells
from skdp.gam._tasks import NumberTask, Residuals
from skdp.mechanisms._stages import Stage, stages_of
from skdp.stats._column_cells import Term, cells_of
from skdp.stats._column_plan import ColumnsFit, plan_columns
from skdp.utils._units import ALL_ONCE, UnitText
from skdp.utils._values import FrozenValue

# Budget fractions. If a row changes a stage's value by 1, the stage receives the smallest fraction
# at which the noise (its standard deviation, or its scale with delta = 0) is n_rows / ratio, but at
# most `max_fraction` and at least `min_fraction`. A fraction of MIN_FRACTION is negligible.
MIN_FRACTION = 0.001
# The shrinkage test, (max_fraction, ratio), with delta > 0 and with delta = 0.
SHRINKAGE_TEST_FRACTION = (0.08, 100.0)
PURE_SHRINKAGE_TEST_FRACTION = (0.08, 200.0)
# The variance of numeric targets, (max_fraction, ratio, min_fraction).
VARIANCE_FRACTION = (0.05, 30.0, MIN_FRACTION)
# For numeric targets with delta > 0, the baseline consists of two releases: a first mean, with
# noise for values anywhere within the target bounds, (max_fraction, ratio, min_fraction), and the
# mean of the distances from it, clipped at a multiple of their released standard deviation,
# (min_fraction, max_fraction, ratio). The second fraction is ratio / (n mu): the squared error is
# proportional to 1 / fraction, and the cost to the steps is proportional to the fraction.
FIRST_MEAN_FRACTION = (0.15, 20.0, 0.01)
MEAN_CORRECTION_FRACTION = (0.0125, 0.4, 12.5)
# Minimum and maximum clip of the second mean, in standard deviations. Between them, the noise is
# MAX_CORRECTION_NOISE standard deviations of the targets. Clipping at k standard deviations shifts
# a mean by at most 1 / (4 k) of them, because max(x - k, 0) <= x**2 / (4 k).
CORRECTION_CLIPS = (2.5, 10.0)
MAX_CORRECTION_NOISE = 0.05
# Part of the second release's fraction that goes to the release of the level, if the task needs
# one.
LEVEL_FRACTION = 0.5
# Bounds on the logarithm of the factor by which the level of a log link is corrected.
MAX_LOG_LEVEL = math.log(4.0)
# Clip of residuals in standard deviations of the targets, and the n mu above which the clip is
# larger. Noise is proportional to the clip, but clipped residuals count less.
MIN_RESIDUAL_CLIP = 1.0
RESIDUAL_CLIP_PER_SIGNAL = 0.001
# Lower limit on each clip, in units of half the target range.
MIN_CLIP = 0.02
# Minimum of the mean square around the corrected mean, relative to that around the first mean.
MIN_VARIANCE_RATIO = 0.3
# Number of cells of a numeric column whose noisy counts allow only fewer bins. The trend
# distinguishes the cells within a bin.
MIN_TREND_CELLS = 12
# Class frequencies with delta > 0, (max_fraction, ratio, min_fraction); trees and delta = 0 use the
# fractions of their task. On training rows of ten small tables, a ratio of 20 with a maximum of 35
# % decreases the mean AUC by .003 (epsilon = .3) and .004 (1), with unchanged accuracy. A ratio of
# 10 lowers the accuracy on the smallest tables below that of guessing the most frequent class.
CLASSES_BASELINE_FRACTION = (0.25, 15.0, MIN_FRACTION)
# With balanced weights: the class counts, and the shrinkage test, whose loss decreases come from
# the rows of a rare class. The noise is a thousandth of the rows, so the count of a class with 1 %
# of the rows is off by 10 %; see docs/benchmarks/rare_classes.py.
BALANCED_COUNTS_FRACTION = (0.1, 1000.0, MIN_FRACTION)
BALANCED_TEST_FRACTION = (0.08, 1000.0, MIN_FRACTION)
# Factor of the weights of earlier steps, from which later steps start.
WARM_START_FACTOR = 0.5
# Noisy count of a numeric column's missing values, in units of its noise, up to which they have the
# feature 0 in regression.
MIN_MISSING_STDS = 2.0
# Names of the stages of steps before the last ones.
EARLY_STEPS = ("first_steps", "second_steps")
# Bound on the number of cells of a table, for the check that noise can be drawn.
MAX_JOINT_CELLS = 1 << 12
# Expected squared norm of a column's weights over the variance of scores, for the expected excess
# loss. Tuned on the tables of docs/benchmarks/planning.md.
EXPECTED_SQUARES = 6.0
# Minimum and maximum fraction of a numeric column's squared weights that its trend receives. The
# minimum is used if the number of rows outside the most frequent class, in units of the noise (n mu
# times their frequency), is at least TREND_ROWS. Below this number, the fraction is proportional to
# the inverse square root of the number of rows. Without a trend, a class with 3 % of the rows would
# be learned separately in each cell from a few rows. On training rows of twenty small tables
# (docs/benchmarks/many_tables.py) trends increase the mean AUC by .03 to .04 at epsilon = .3 and by
# .02 at 1. A fraction of 1/3 on all tables decreases the AUC on Adult by .0013.
TREND_FRACTIONS = (0.1, 0.8)
TREND_ROWS = 2000.0
# Bounds on the regularization strength. The minimum also keeps the weights of empty cells finite.
MIN_L2_REG_STRENGTH = 0.01
MAX_L2_REG_STRENGTH = 2.0
# Lower limit of the finest level with delta > 0 and with delta = 0: 16 cells.
MIN_LEVELS = 4
MIN_PURE_LEVELS = 4
# Multiple of the null decrease of the loss that the shrinkage test subtracts if the evidence
# chooses the penalty. The test clips changes in scores at half their typical size, and the
# covariance of a normal variable with its clipped version is P(|N| < 1/2) = .383 of its variance
# (Stein 1981).
NULL_DECREASE_FACTOR = 0.383
# Maximum effective degrees of freedom of the weights, relative to the number of rows.
MAX_DOF_FRACTION = 0.25
# Variance of the residuals for two classes, in units of the typical curvature. For a logistic loss,
# the two are equal. The excess over 1 allows for the clip, owing to which the curvature is known
# only roughly. Tuned, with the next constant, on synthetic tables of 300 to 5000 rows
# (docs/benchmarks/more_budget.py).
VARIANCE_OF_CLASSES = 1.2
# Maximum fraction of the residuals' variance that weights for two classes explain by chance.
MAX_NULL_FRACTION_OF_CLASSES = 0.1
# Grid of residuals if their sums need not be exact.
INEXACT_GRID = 2.0**-200


def _reads_in_steps(unit):
    return f"all {unit}s, in every step"


IN_STEPS = UnitText(_reads_in_steps)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveFit(ColumnsFit):
    """Fit of an additive model: its stages, and the functions that run them.

    Parameters
    ----------
    task : task
        See `skdp.gam._tasks`.
    declared_pairs : list of (int, int), default=()
        Positions of the columns of declared interactions.
    signs : tuple of int, default=()
        For each column, 1 or -1 if scores must not decrease or increase with it, otherwise 0.
    """

    task: object
    declared_pairs: Sequence[tuple[int, int]] = ()
    signs: tuple = ()

    # True if numeric columns have a feature that increases from cell to cell.
    has_trends = True
    # Number of steps per root of the condition number, in the stages of steps before the last.
    early_steps_per_root = _descent.STEPS_PER_ROOT

    @property
    def is_smooth(self):
        """True if neighboring cells of numbers have similar values: with delta > 0, not for trees.

        With delta = 0, the noise grows with the L1 norm of a row's features.
        """
        return self.has_trends and not self.budget.is_pure

    @cached_property
    def loops(self):
        """Version of the loops over rows, chosen by public numbers; see `skdp._loops`."""
        return choose_loops(self.n_rows, len(self.columns))

    @property
    def finds_variance(self):
        """True if the evidence chooses the penalty, which needs the variance of the targets.

        This applies to regression with delta > 0, but not to trees, because the leaves of several
        trees are too dependent on each other.
        """
        return not self.budget.is_pure and isinstance(self.task, NumberTask)

    @property
    def releases_level(self):
        """True if the mean residual of the fitted model is released, which corrects its level."""
        return self.finds_variance and self.task.has_log_link

    @property
    def uses_moments(self):
        """True if the penalty for two classes is at least that of the method of moments.

        This applies with delta > 0, but not to trees, as for `finds_variance`.
        """
        is_binary = bool(self.task.typical_curvature) and self.task.n_outputs == 1
        return is_binary and self.has_trends and not self.budget.is_pure

    @property
    def min_cells(self):
        """Number of cells of a numeric column with fewer bins, if it has a trend."""
        if self.budget.is_pure or not self.has_trends:
            return 0
        return MIN_TREND_CELLS

    @property
    def equal_width(self):
        """True if the finest cells of a numeric column have equal widths."""
        return not self.budget.is_pure

    @cached_property
    def levels(self):
        """Levels of dyadic cells that are counted; with delta = 0, only the finest useful level.

        Each level increases the noise in all levels. In classification, cells finer than 1 / (n mu)
        of the range are not counted. In regression, skewed columns need them: R² is .005 lower
        without them.
        """
        if self.budget.is_pure:
            return self._choose_levels(1.0, MIN_PURE_LEVELS)
        if not self.has_trends or self.finds_variance:
            return super().levels
        finest = math.ceil(math.log2(max(self.signal_to_noise, 1.0)))
        return range(1, min(max(finest, MIN_LEVELS), LEVELS) + 1)

    @property
    def no_interaction(self):
        """Positions of the columns that must not be in a pair, because they must be monotone."""
        return {j for j, sign in enumerate(self.signs) if sign}

    @property
    def name(self):
        """Name of the mechanism."""
        if self.budget.is_pure:
            return "Objective perturbation, Laplace noise, on private bins"
        return "Noisy gradients, Gaussian noise, on private bins"

    @property
    def noise_multiplier(self):
        """Noise multiplier of one step that costs as much as all steps; None with delta = 0."""
        if self.budget.is_pure:
            return None
        return self._steps_event(self.budget_fractions["steps"]).noise_multiplier

    @property
    def stages(self):
        """Stages of a fit, in the order in which they run."""
        stages = [*self._column_stages, *self.baseline.plan().stages]
        if self.finds_variance:
            stages.extend(self.target_variance.stages)
            stages.extend(self.mean_correction.stages)
        stages.extend(self._early_stages)
        stages.append(self._steps_stage("weights", "steps"))
        stages.extend(stages_of(self.shrinkage_test, "check of the weights"))
        if self.releases_level:
            stages.extend(stages_of(self.level_mechanism, "mean residual of the model"))
        return tuple(stages)

    @property
    def _early_stages(self):
        """Stages between the baseline and the last steps."""
        stages = []
        if "first_steps" in self.budget_fractions:
            stages.append(self._steps_stage("first steps", "first_steps"))
        return stages

    def _steps_event(self, budget_fraction):
        """Return the event of steps that use a fraction of the budget."""
        if self.budget.is_pure:
            return PureDP(budget_fraction * self.guarantee.epsilon)
        return Gaussian(self.budget.multiplier / math.sqrt(budget_fraction))

    def _steps_stage(self, name, stage):
        """Return all steps as one stage, because their number depends on released bins."""
        budget_fraction = self.budget_fractions[stage]
        if self.budget.is_pure:
            noise = self._objective(1.0, 1, 0.0, budget_fraction)
            # The event is the same for every norm of the features, because the noise is
            # proportional to it.
            distribution = (
                "Objective perturbation, Laplace noise on the objective and on its solution, for "
                "features of L1 norm 1"
            )
            reads = ALL_ONCE
        else:
            noise = self._steps_noise(1, 1, budget_fraction)
            distribution = "Noisy gradients, Gaussian noise, all steps as one"
            if self.finds_variance:
                # The event is the same for every clip, because the noise is proportional to it.
                distribution += ", at the largest clip of residuals"
            reads = IN_STEPS
        if self.task.is_balanced:
            # The event is also the same for all class weights.
            distribution += ", in units of the largest class weight"
        return Stage(
            name=name,
            law=distribution,
            reads=reads,
            scale=noise.scale,
            sensitivity=self.sensitivity,
            event=self._steps_event(budget_fraction),
        )

    def __post_init__(self):
        # Noise that cannot be drawn is refused before the charge.
        super().__post_init__()
        n_column_cells = sum(2 * column.max_cells(4 * self.n_bins) for column in self.columns)
        max_size = (n_column_cells + self._max_joint_cells) * self.task.n_outputs
        for stage in {"steps", *EARLY_STEPS}.intersection(self.budget_fractions):
            budget_fraction = self.budget_fractions[stage]
            if self.budget.is_pure:
                self._objective(1.0, max_size, 0.0, budget_fraction)
            else:
                for n_steps in (1, _descent.MAX_STEPS):
                    self._steps_noise(max_size, n_steps, budget_fraction)
        self.baseline.mechanism.check_size(self.task.n_outputs)
        if self.finds_variance:
            self.target_variance.mechanism.check_size(1)
            self.mean_correction.mechanism.check_size(1)
        if self.releases_level:
            self.level_mechanism.check_size(1)
        self.shrinkage_test.check_size(3)

    @property
    def _max_joint_cells(self):
        """Maximum number of cells of tables or trees."""
        return len(self.declared_pairs) * MAX_JOINT_CELLS

    @property
    def main_fraction(self):
        """Fraction of a row's squared norm for single columns, as opposed to tables or trees."""
        return self.task.main_fraction

    @property
    def _extra_fractions(self):
        """Fractions of the remaining budget for the stages before the last steps."""
        return {}

    @property
    def scale(self):
        """Noise scale of a single step that costs as much as all steps."""
        if self.budget.is_pure:
            return self._objective(1.0, 1, 0.0).scale
        return self._steps_noise(1, 1).scale

    @property
    def sensitivity(self):
        """Sensitivity of a gradient in L2 norm; with delta = 0, in L1 norm for norm-1 features."""
        clip = self.task.clip_l1 if self.budget.is_pure else self.task.clip
        return clip * self._sensitivity_factor

    @property
    def total_excess_loss(self):
        """Expected excess loss, summed over the rows, if all bins have equal counts.

        The noise is that of a single release of the gradient, and its effect on a weight is divided
        by the feature's curvature plus the penalty. The penalty shrinks weights of squared norm W².
        If their scores have variance s² and all curvatures are h, then W² h = n s².
        """
        task = self.task
        terms = []
        for j, column in enumerate(self.columns):
            if column.is_categorical and column.domain is not None:
                n_cells = 2 + len(column.domain)
            else:
                n_cells = 1 + self.n_bins
            counts = np.full(n_cells, self.n_rows / n_cells)
            terms.append(Term(features=(j,), kinds=(column.kind,), edges=(), counts=counts))
        design = self._main_design(terms)
        problem = self._problem(design)
        l2_reg = problem.l2_reg_strength
        if self.budget.is_pure:
            noise_std = math.sqrt(2.0) * problem.scale
        else:
            noise_std = self._steps_noise(1, 1).scale
        curvatures = task.loss.trace_bound * design.diagonal
        weight_stds = noise_std / (curvatures / task.n_outputs + l2_reg)
        noise_loss = np.sum(curvatures * weight_stds**2)
        total_curvature = self.n_rows * task.loss.curvature_bound
        h = total_curvature / (EXPECTED_SQUARES * (len(terms) + 1))
        penalty_loss = total_curvature * task.score_std**2 * l2_reg / (h + l2_reg)
        return task.unit * 0.5 * float(noise_loss + penalty_loss)

    @property
    def signal_to_noise(self):
        """Number of rows divided by the whole budget's noise: n mu, or n epsilon with delta = 0."""
        if self.budget.is_pure:
            return self.n_rows * self.guarantee.epsilon
        return self.n_rows * (1.0 / self.budget.multiplier)

    @cached_property
    def budget_fractions(self):
        """Fraction of the budget for each stage."""
        task = self.task
        test_fraction = SHRINKAGE_TEST_FRACTION
        if self.budget.is_pure:
            test_fraction = PURE_SHRINKAGE_TEST_FRACTION
        fractions = {
            "baseline": self._fraction_for_noise(
                *task.baseline_fraction, task.min_baseline_fraction
            ),
            "shrinkage_test": self._fraction_for_noise(*test_fraction, MIN_FRACTION),
        }
        if self.has_trends and not self.budget.is_pure and not self.finds_variance:
            fractions["baseline"] = self._fraction_for_noise(*CLASSES_BASELINE_FRACTION)
        if task.is_balanced:
            fractions["baseline"] = self._fraction_for_noise(*BALANCED_COUNTS_FRACTION)
            fractions["shrinkage_test"] = self._fraction_for_noise(*BALANCED_TEST_FRACTION)
        if self.finds_variance:
            fractions["variance"] = self._fraction_for_noise(*VARIANCE_FRACTION)
            fractions["baseline"] = self._fraction_for_noise(*FIRST_MEAN_FRACTION)
            low, high, ratio = MEAN_CORRECTION_FRACTION
            fractions["correction"] = min(high, max(ratio / self.signal_to_noise, low))
        if self.releases_level:
            fractions["level"] = LEVEL_FRACTION * fractions["correction"]
            fractions["correction"] -= fractions["level"]
        selected = math.fsum(fraction for _, fraction in self.selections)
        remaining = 1.0 - selected - math.fsum(fractions.values())
        for stage, fraction in (self.column_fractions | self._extra_fractions).items():
            fractions[stage] = remaining * fraction
        # The last term is a margin for rounding.
        fractions["steps"] = 1.0 - selected - math.fsum(fractions.values()) - 2.0**-50
        return fractions

    def _fraction_for_noise(self, max_fraction, ratio, min_fraction):
        """Return the budget fraction that makes the noise n_rows / ratio, within limits."""
        power = 1.0 if self.budget.is_pure else 2.0
        return min(max_fraction, max((ratio / self.signal_to_noise) ** power, min_fraction))

    @cached_property
    def baseline(self):
        """Release of the scores from which the model starts."""
        mechanism = partial(self.budget.mechanism, self.budget_fractions["baseline"])
        return self.task.plan_baseline(self.n_rows, self._sensitivity_factor, mechanism)

    @cached_property
    def target_variance(self):
        """Release of the variance of the targets around the baseline."""
        mechanism = partial(self.budget.mechanism, self.budget_fractions["variance"])
        return self.task.plan_variance(self.n_rows, mechanism)

    @cached_property
    def mean_correction(self):
        """Release of the mean clipped distance between the targets and the baseline."""
        mechanism = partial(self.budget.mechanism, self.budget_fractions["correction"])
        return self.task.plan_correction(self.n_rows, self._sensitivity_factor, mechanism)

    @cached_property
    def level_mechanism(self):
        """Mechanism that releases the sum of residuals of the model, in units of their clip."""
        sensitivity = float(self._sensitivity_factor)
        fraction = self.budget_fractions["level"]
        return self.budget.mechanism(fraction, l1=sensitivity, l2=sensitivity)

    @cached_property
    def shrinkage_test(self):
        """Mechanism that releases the decrease in loss, which determines the shrinkage."""
        return self.budget.mechanism(
            self.budget_fractions["shrinkage_test"],
            l1=MAX_DECREASE_NORM["l1"] * self._sensitivity_factor,
            l2=MAX_DECREASE_NORM["l2"] * self._sensitivity_factor,
        )

    def _steps_noise(self, size, n_steps, budget_fraction=None):
        """Return the noise of `n_steps` steps on `size` weights.

        The default budget fraction is that of the last steps.
        """
        return self.budget.noise(
            budget_fraction or self.budget_fractions["steps"],
            size,
            l2_sensitivity=self.sensitivity,
            n_steps=n_steps,
        )

    def run(self, read, source, persons=None):
        """Return everything that is released: the terms, their values and the constant.

        Parameters
        ----------
        read : RowsAndTarget
            A `ColumnTable`, and targets in the form that the task expects.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        terms : list of Term
        values : list of ndarray of shape (*shape of a term's cells, n_outputs)
        constant : ndarray of shape (n_outputs,)
        stds : list of ndarray of the shapes of values, or None
            Standard errors of the values, relative to the mean of their term.
        class_weight : ndarray of shape (n_classes,)
            Only with balanced weights: the released weights.
        """
        table = read.X
        targets = read.y
        columns = self._find_domains(table, source, persons)
        terms = self._count_cells(columns, table, source, persons)
        cells = self._joint_codes(terms, table, targets, row_weights_of(persons))
        released = self.baseline.run(targets, source, persons)
        fit = self
        variance = None
        class_weight = ()
        if self.task.is_balanced:
            weights = self.baseline.weights(released).values
            class_weight = (np.array(weights),)
            task = self.task.with_balanced_weights(weights, self.budget.is_pure)
            # Weighted classes are equally frequent, so the steps start at scores of 0.
            baseline = np.zeros(task.n_outputs)
            # For all weights, the event is the planned one: the noise is proportional to the clip,
            # and the clip to the largest weight.
            fit = replace(self, task=task)
        else:
            baseline = self.task.initial_scores(released)
        if self.finds_variance:
            variance = self.target_variance.run(targets, float(baseline[0]), source, persons)
            baseline, variance = self._correct_mean(targets, baseline, variance, source, persons)
            clip = self._residual_clip(variance)
            task, baseline, variance = self.task.at_baseline(baseline, variance)
            fit = replace(self, task=replace(task, clip=task.clip_unit * clip))
        state = FitState(
            terms=terms,
            cells=cells,
            design=fit._main_design(terms, fit._trend_fraction(baseline)),
            baseline=baseline,
            variance=variance,
            n_rows=self.n_rows,
        )
        return (*fit._run_steps(state, source), *class_weight)

    def _with_clip(self, clip):
        """Return the fit with a different clip of residuals, which leaves its event unchanged."""
        return replace(self, task=replace(self.task, clip=clip))

    def _correct_mean(self, targets, baseline, variance, source, persons):
        """Release a correction of the mean of the targets, and return the corrected mean.

        Distances from the first mean are clipped to a few standard deviations. If the targets fill
        only a small part of their bounds, the noise is much smaller than in the first mean.

        Parameters
        ----------
        targets : array of shape (n_rows,)
            Rescaled so that their bounds are -1 and 1.
        baseline : ndarray of shape (1,)
            The first released mean.
        variance : float
            Released variance of the targets around `baseline`.
        source : RandomSource
            Source of the noise of the correction.
        persons : Persons or None

        Returns
        -------
        baseline : ndarray of shape (1,)
            The corrected mean, which is noisy.
        variance : float
            Variance of the targets around it.
        """
        clip = self._mean_clip("correction", variance)
        shift = self.mean_correction.run(targets, float(baseline[0]), clip, source, persons)
        # The mean square around the first mean is larger by the squared distance of the two means.
        variance = max(variance - shift**2, MIN_VARIANCE_RATIO * variance)
        return np.clip(baseline + shift, -1.0, 1.0), variance

    def _mean_clip(self, stage, variance):
        """Return the clip of distances before their mean is released, from their variance."""
        fraction = self.budget_fractions[stage]
        ratio = MAX_CORRECTION_NOISE * self.signal_to_noise * math.sqrt(fraction)
        low, high = CORRECTION_CLIPS
        clip = min(max(low, ratio), high) * math.sqrt(variance)
        return min(max(clip, MIN_CLIP * self.task.clip_unit), self.task.clip_unit)

    def _residual_clip(self, variance):
        """Return the clip of residuals, computed from the released variance of the targets."""
        ratio = max(MIN_RESIDUAL_CLIP, RESIDUAL_CLIP_PER_SIGNAL * self.signal_to_noise)
        return min(max(ratio * math.sqrt(variance), MIN_CLIP), self.task.clip)

    def _run_steps(self, state, source):
        """Return everything that is released, given the stages of the columns and the baseline."""
        joint_terms = self._joint_terms(state, source)
        if joint_terms:
            state = state.with_joint_terms(joint_terms, self.main_fraction)
        return self._last_steps(state, source)

    def _take_steps(self, state, stage, source):
        """Return the state after the steps of a stage before the last."""
        weights, _ = self._descent(
            state.cells,
            state.design,
            state.residuals(self.task),
            source,
            budget_fraction=self.budget_fractions[stage],
            start=state.start,
            variance=state.variance,
            steps_per_root=self.early_steps_per_root,
        )
        return replace(state, weights=weights)

    def _last_steps(
        self,
        state,
        source,
        *,
        budget_fraction=None,
        earlier_fraction=0.0,
        steps_per_root=_descent.STEPS_PER_ROOT,
    ):
        """Take the steps that produce the model, and return everything that is released.

        Parameters
        ----------
        state : FitState
        source : RandomSource
        budget_fraction : float, default=None
            Fraction of the steps; None uses the planned one.
        earlier_fraction : float, default=0.0
            Budget fraction of earlier steps with the same model. Their weights are averaged with
            those of the last steps.
        steps_per_root : float, default=STEPS_PER_ROOT
            Number of steps per square root of the condition number.
        """
        budget_fraction = budget_fraction or self.budget_fractions["steps"]
        design = state.design
        problem = self._problem(design, budget_fraction, steps_per_root)
        drift = None
        if self.has_standard_errors:
            drift = IterateDrift(problem)
        residuals = state.residuals(self.task)
        weights, last_strength = self._descent(
            state.cells,
            design,
            residuals,
            source,
            budget_fraction=budget_fraction,
            start=state.start,
            variance=state.variance,
            drift=drift,
            report_progress=True,
            steps_per_root=steps_per_root,
        )
        if earlier_fraction:
            weights = budget_fraction * weights + earlier_fraction * state.weights
            weights /= budget_fraction + earlier_fraction
        l2_reg_strength = last_strength
        if not self.finds_variance:
            final_strength = self._final_strength(design, weights, budget_fraction)
            if self.uses_moments:
                final_strength = max(final_strength, l2_reg_strength)
            l2_reg_strength = final_strength
        shrinkage_factor = self._shrinkage_factor(
            state.cells, design, residuals, weights, l2_reg_strength, source, problem
        )
        bin_values = design.bin_values(weights * shrinkage_factor)
        constant = state.baseline + bin_values[-1][0]
        if self.releases_level:
            constant = constant + self._level_correction(state, bin_values, source)
        values = [bin_values[t] for t in range(len(bin_values) - 1)]
        stds = None
        if self.has_standard_errors:
            schedules = _step_schedules(problem, last_strength)
            stds = self._standard_errors(state, values, constant, schedules, budget_fraction, drift)
            stds = state.expand([shrinkage_factor * term_stds for term_stds in stds])
        return state.released_terms, state.expand(values), constant, stds

    def _level_correction(self, state, bin_values, source):
        """Return the change in the constant that gives predictions the mean of the targets.

        Clipped residuals and noise in the iterates lower the predictions of skewed targets. So the
        mean residual r of the model is released, with a larger clip. In units of the mean of the
        targets, the mean of the predictions is 1 + r. The part of r that noise explains is left
        out.
        """
        clip = self._mean_clip("level", state.variance)
        scores = _descent.Scores(state.cells.detach(0), bin_values)
        residuals = state.residuals(replace(self.task, clip=clip))
        args = (scores, residuals, clip, self.n_rows)
        total = sum_over(state.cells, _add_residuals, np.zeros(1), *args)
        unit = clip / self.n_rows
        mean = unit * float(self.level_mechanism.release(total, random_state=source)[0])
        noise = unit * self.level_mechanism.deviation(size=1)
        factor = max(1.0 + beyond_noise(mean, noise), math.exp(-MAX_LOG_LEVEL))
        return -min(math.log(factor), MAX_LOG_LEVEL)

    def _standard_errors(self, state, values, constant, schedules, budget_fraction, drift):
        """Return the standard errors of the values at the terms' cells (post-processing)."""
        size = state.design.size * self.task.n_outputs
        noise_std = self._steps_noise(size, len(schedules), budget_fraction).scale
        terms = state.fitted_terms
        return standard_errors(
            state.design, terms, values, constant, self.task, schedules, noise_std, drift
        )

    @property
    def has_standard_errors(self):
        """True if a fit computes standard errors of the values: with delta > 0, not for trees."""
        return self.has_trends and not self.budget.is_pure

    def _main_design(self, terms, trend_fraction=0.0):
        """Return the design of the terms of single columns, in which the first steps are taken."""
        # Laplace noise grows with the number of blocks. With delta = 0, a roughness penalty on
        # neighboring cells replaces the coarser resolutions.
        return _blocks.main_design(
            terms,
            self.n_rows,
            self.signal_to_noise,
            coarser=not self.budget.is_pure,
            trend_fraction=trend_fraction,
            is_smooth=self.is_smooth,
            min_missing=self._min_missing,
        )

    @property
    def _min_missing(self):
        """Largest noisy count of missing values without a feature; None if a constant is kept.

        Features without a constant are used for regression only. On training rows of small tables
        they increase the mean R² by .011 at epsilon = 1 and by .002 at 4, but not the mean AUC.
        """
        if not self.finds_variance or not self.is_smooth:
            return None
        # Without noise, a count of 0 is known to be 0.
        return max(MIN_MISSING_STDS * self._counts_mechanism.scale, 0.5)

    def _trend_fraction(self, baseline):
        """Return the fraction of a numeric column's squared weights that its trend receives.

        Parameters
        ----------
        baseline : ndarray of shape (n_outputs,)
            Released scores from which the model starts.
        """
        if self.budget.is_pure or not self.has_trends:
            return 0.0
        low, high = TREND_FRACTIONS
        rows = self.signal_to_noise * self.task.minority_fraction(baseline)
        return float(np.clip(low * math.sqrt(TREND_ROWS / max(rows, 1.0)), low, high))

    def _joint_codes(self, terms, table, targets, row_weights=None):
        """Return the joint codes of the rows of a table."""
        # A block of `cells_of` is an array with one row per term; `list` separates the terms.
        return JointCodes(
            cells_of(table, terms),
            cells=list,
            targets=targets,
            row_weights=row_weights,
            sizes=[term.counts.size for term in terms],
            n_units=self.n_rows,
            loops=self.loops,
        )

    def _joint_terms(self, state, source):
        """Return the tables of declared pairs; fits of trees return trees."""
        signal_to_noise = self.signal_to_noise
        if self.budget.is_pure:
            # With delta = 0, the noise grows with the number of cells.
            signal_to_noise = 0.0
        n_cells = table_cells(2, signal_to_noise)
        return [
            make_table(state.terms, indices, n_cells, self.n_rows, is_smooth=self.is_smooth)
            for indices in self.declared_pairs
        ]

    def _shrinkage_factor(
        self, cells, design, residuals, weights, l2_reg_strength, source, problem
    ):
        """Return the factor by which the weights are shrunk; see `ShrinkageRule`.

        `l2_reg_strength` is the strength in the last steps. None, which occurs only with delta = 0,
        uses the planned strength. `problem` has the schedule that produced the weights.
        """
        # The null fraction is set below.
        rule = ShrinkageRule(
            n_steps=1,
            norm=1.0,
            residual=self.task.clip,
            null_fraction=0.0,
            min_shrinkage_factor=self.task.min_shrinkage_factor,
            null_decrease_factor=NULL_DECREASE_FACTOR,
        )
        # The mean square of the scaled weights is approximately that of the scores.
        scaled_weights = weights * np.sqrt(design.diagonal * (design.size / self.n_rows))[:, None]
        scores = _descent.Scores.at(weights, cells, design)
        clips = rule.clip_norms(scaled_weights)
        decreases = sum_over(cells, _add_gains, np.zeros(3), scores, residuals, clips)
        noisy = self.shrinkage_test.release(decreases, random_state=source)
        if self.finds_variance:
            mean_square = noisy[2] / (SQUARED_RESIDUAL_WEIGHT * self.n_rows)
            slope = unclipped_fraction(mean_square)
            dof = chance_dof(design, problem, l2_reg_strength, slope)
            rule = replace(rule, null_fraction=dof / self.n_rows)
        else:
            null_fraction = self._null_fraction(design, l2_reg_strength)
            factor = self.task.null_decrease_factor
            rule = replace(rule, null_fraction=null_fraction, null_decrease_factor=factor)
        return rule.shrinkage_factor(noisy, scaled_weights, self.shrinkage_test.deviation(size=3))

    def _problem(self, design, budget_fraction=None, steps_per_root=_descent.STEPS_PER_ROOT):
        """Return the schedule of the steps or, with delta = 0, the perturbed objective.

        The penalty bounds the standard deviation of a score due to noise.
        """
        loss_smoothness = self.task.loss.curvature_bound * design.smoothness(self.n_rows)
        if self.budget.is_pure:
            size = design.size * self.task.n_outputs
            return self._objective(design.weights_sum, size, loss_smoothness, budget_fraction)
        noise_minimum = self._steps_noise(1, 1, budget_fraction).scale / self.task.score_std
        condition_minimum = loss_smoothness / _descent.MAX_CONDITION
        l2_reg_strength = max(noise_minimum, condition_minimum, MIN_L2_REG_STRENGTH)
        if self.finds_variance or self.uses_moments:
            curvature = self.task.typical_curvature or 1.0
            n_effective = self.n_rows / self.task.mean_weight_of_classes
            dof_minimum = min_l2_reg_strength(design, MAX_DOF_FRACTION * n_effective)
            dof_minimum *= curvature
            l2_reg_strength = max(l2_reg_strength, dof_minimum)
        return _descent.Schedule(
            loss_smoothness=loss_smoothness,
            l2_reg_strength=l2_reg_strength,
            penalty_to_noise=l2_reg_strength / noise_minimum,
            steps_per_root=steps_per_root,
        )

    def _final_strength(self, design, weights, budget_fraction):
        """Return the regularization strength of the released weights; None with delta = 0.

        With delta > 0, the evidence raises the penalty halfway through the steps. A larger penalty
        lowers the decrease in loss that is expected by chance (Efron 2004). Computed with the
        initial penalty, this decrease would be several times too large on small tables, and good
        weights would be shrunk to 0.
        """
        if self.budget.is_pure:
            return None
        problem = self._problem(design, budget_fraction)
        noise_std = self._steps_noise(weights.size, problem.n_steps, budget_fraction).scale
        evidence = self._evidence_penalty(design, weights, problem, noise_std)
        return max(problem.l2_reg_strength, evidence)

    def _null_fraction(self, design, l2_reg_strength=None):
        """Return the fraction of the residuals' variance that weights explain by chance.

        Parameters
        ----------
        design : BlockDesign
        l2_reg_strength : float, default=None
            Regularization strength of the weights; None uses the strength of the first steps.
        """
        moments = design.diagonal
        problem = self._problem(design)
        if l2_reg_strength is not None:
            problem = replace(problem, l2_reg_strength=l2_reg_strength)
        curvatures = (self.task.typical_curvature or self.task.loss.curvature_bound) * moments
        if self.budget.is_pure:
            response = 1.0 / (curvatures + problem.l2_reg_strength)
        else:

            def gradient(w):
                return curvatures * w - 1.0

            start = np.zeros(design.size)
            response, _ = _descent.descend(gradient, problem, start, math.inf)
        # With about as many cells as rows, the estimate is meaningless, so it is limited.
        limit = MAX_NULL_FRACTION_OF_CLASSES if self.uses_moments else MAX_NULL_FRACTION
        return min(self.task.overlap * float(moments @ response) / self.n_rows, limit)

    def _objective(self, weights_sum, size, loss_smoothness, budget_fraction=None):
        """Return the perturbed objective, which replaces the steps with delta = 0."""
        rank = self.task.loss.curvature_rank
        if self.guarantee.neighbors.unit == "person":
            # A person's contribution to the Hessian can have any rank.
            rank = size
        return _descent.PerturbedObjective(
            epsilon=(budget_fraction or self.budget_fractions["steps"]) * self.guarantee.epsilon,
            task=self.task,
            l1_sensitivity=self.sensitivity * weights_sum,
            size=size,
            n_rows=self.n_rows,
            loss_smoothness=loss_smoothness,
            rank=rank,
        )

    def spent_after(self, n_taken, n_steps):
        """Return the epsilon of a fit that has taken `n_taken` of its `n_steps` steps."""
        selected = math.fsum(fraction for _, fraction in self.selections)
        remaining_steps = self.budget_fractions["steps"] * (1.0 - n_taken / n_steps)
        budget_fraction = 1.0 - selected - remaining_steps
        return get_epsilon(self.budget.partial_event(budget_fraction), self.guarantee.delta)

    def _descent(
        self,
        cells,
        design,
        residuals,
        source,
        *,
        budget_fraction,
        start=None,
        variance=None,
        drift=None,
        report_progress=False,
        steps_per_root=_descent.STEPS_PER_ROOT,
    ):
        """Return the weights after noisy steps, and the regularization strength of the last ones.

        Parameters
        ----------
        cells : JointCodes
            Cells and targets of the rows.
        design : BlockDesign
        residuals : Residuals
        source : RandomSource
            Source of the noise, which the charge returned.
        budget_fraction : float
            Fraction of the budget for all steps.
        start : ndarray of shape (design.size, n_outputs), default=None
            Initial weights; None means zeros.
        variance : float, default=None
            Released variance of numeric targets, for the penalty; None for other targets.
        drift : IterateDrift, default=None
            Collects the iterates, for standard errors.
        report_progress : bool, default=False
            True to report each step, with the epsilon spent so far.
        steps_per_root : float
            Number of steps per square root of the condition number.
        """
        problem = self._problem(design, budget_fraction, steps_per_root)
        if self.budget.is_pure:
            # These sums are not exact, and the noise covers only the rounding in short blocks.
            inexact_sums = partial(
                _descent.residual_sums, cells, design, residuals, step=INEXACT_GRID
            )

            def penalized_gradient(w):
                return inexact_sums(w) + problem.l2_reg_strength * design.roughness_gradient(w)

            return problem.run(penalized_gradient, source), problem.l2_reg_strength
        rows = _descent.shorten_rows(cells, design).with_step_blocks(self.task.n_outputs)
        if start is None:
            start = np.zeros((design.size, self.task.n_outputs))
        n_steps = problem.n_steps
        noise = self._steps_noise(start.size, n_steps, budget_fraction)
        draws = noise.draw(n_steps, source.stream())
        step = _descent.residual_grid(self.task.clip, self.n_rows)

        def noisy_gradient(weights):
            """Return the noisy sum of gradients at some weights."""
            if drift is not None:
                drift.add(weights)
            exact = _descent.residual_sums(rows, design, residuals, weights, step)
            return noise.add(exact, next(draws))

        penalty = self._penalty_rule(design, problem, noise, budget_fraction, variance)
        after_step = None
        if report_progress:
            spent_after = partial(self.spent_after, n_steps=n_steps)
            after_step = progress_callback(n_steps, n_steps, spent_after)
        # The optimum is within this radius; outside, the loss would exceed that of zero weights.
        max_loss = self.n_rows * self.task.max_mean_loss
        radius = math.sqrt(2.0 * max_loss / problem.l2_reg_strength)
        return _descent.descend(
            noisy_gradient, problem, start, radius, penalty=penalty, after_step=after_step
        )

    def _penalty_rule(self, design, problem, noise, budget_fraction, variance):
        """Return the function that maps early iterates to the penalty for the second half.

        Parameters
        ----------
        design : BlockDesign
        problem : Schedule
            The schedule of the steps.
        noise : mechanism
            The mechanism of one step.
        budget_fraction : float
            Fraction of the budget that all steps have.
        variance : float or None
            Released variance of numeric targets; None for other targets.
        """
        total_noise = self._steps_noise(1, 1, budget_fraction).scale
        if variance is not None:
            return partial(
                penalty_by_evidence,
                design,
                schedule=problem,
                variance=variance,
                step_noise=noise.scale,
                noise=total_noise,
            )

        def penalty(weights):
            """Return the penalty that early iterates of a classifier imply.

            With `uses_moments`, it is at least that of the method of moments.
            """
            strength = self._evidence_penalty(design, weights, problem, noise.scale)
            if not self.uses_moments:
                return strength
            by_moments = penalty_by_evidence(
                design,
                weights,
                problem,
                variance=VARIANCE_OF_CLASSES * self.task.mean_weight_of_classes,
                step_noise=noise.scale,
                noise=total_noise,
                curvature=self.task.typical_curvature,
            )
            return max(strength, by_moments)

        return penalty

    def _evidence_penalty(self, design, weights, schedule, noise_std):
        """Return the regularization strength that weights imply: 1 / (variance without noise).

        This is MacKay's update of the precision of a prior: the effective degrees of freedom of the
        weights divided by their squared norm. It is computed only from released values.
        """
        if not self.task.typical_curvature:
            return 0.0
        curvatures = self.task.typical_curvature * design.diagonal[:, None]
        hessian_diag = curvatures + schedule.l2_reg_strength
        noise_squares = np.sum((noise_std / hessian_diag) ** 2)
        noise = 2.0 / schedule.n_steps * noise_squares * weights.shape[1]
        dof = np.sum(curvatures / hessian_diag) * weights.shape[1]
        squared_norm = np.sum(weights[1:] ** 2) - noise
        return dof / max(squared_norm, dof / MAX_L2_REG_STRENGTH)


def _step_schedules(problem, l2_reg_strength):
    """Return the schedule of each of the last steps; the penalty changes halfway through."""
    half = problem.n_steps // 2
    second_half = replace(problem, l2_reg_strength=l2_reg_strength)
    return [problem] * half + [second_half] * (problem.n_steps - half)


def plan_additive(fit):
    """Return the plan of a fit of an additive model, a tree or a forest."""
    return replace(plan_columns(fit), noise_multiplier=fit.noise_multiplier)


@dataclass(frozen=True, kw_only=True, eq=False)
class FitState(FrozenValue):
    """Encoded rows and released values of a fit between two stages of steps.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns.
    cells : JointCodes
        Cells of the rows in all terms.
    design : BlockDesign
        Design of all terms.
    baseline : ndarray of shape (n_outputs,)
        Scores from which the model starts.
    variance : float or None
        Variance of the residuals of numeric targets.
    n_rows : int
        Public number of rows.
    joint_terms : list of Table or of Tree, default=()
        Terms of several columns.
    weights : ndarray of shape (design.size, n_outputs), default=None
        Weights of the last stage of steps.
    main_design : BlockDesign, default=None
        Design of single columns; None if there are no joint terms.
    """

    terms: list
    cells: JointCodes
    design: _blocks.BlockDesign
    baseline: np.ndarray
    variance: float | None
    n_rows: int
    joint_terms: Sequence = ()
    weights: np.ndarray | None = None
    main_design: _blocks.BlockDesign | None = None

    def with_joint_terms(self, joint_terms, main_fraction):
        """Return the state with further joint terms, whose weights are 0."""
        main = self.main_design
        if main is None:
            main = self.design
        all_joint_terms = [*self.joint_terms, *joint_terms]
        design = _blocks.joint_design(main, all_joint_terms, main_fraction)
        weights = None
        if self.weights is not None:
            weights = design.weights_from(self.design, self.weights)
        return replace(
            self,
            cells=append_joint_terms(self.cells, joint_terms),
            design=design,
            main_design=main,
            joint_terms=all_joint_terms,
            weights=weights,
        )

    @property
    def start(self):
        """Weights at which the next steps start; None for zeros."""
        return None if self.weights is None else WARM_START_FACTOR * self.weights

    def residuals(self, task):
        """Return the function that maps scores and targets to clipped residuals."""
        return Residuals(task, self.baseline)

    @property
    def fitted_terms(self):
        """Terms of columns and tables, with the cells that the steps use."""
        tables = [
            replace(table.term(self.terms, self.n_rows), counts=table.expected_counts)
            for table in self.joint_terms
        ]
        return [*self.terms, *tables]

    @property
    def released_terms(self):
        """Terms as they are published."""
        joint_terms = [joint.term(self.terms, self.n_rows) for joint in self.joint_terms]
        return [*self.terms, *joint_terms]

    def expand(self, values):
        """Return the values of the released terms from values of shape (n_cells, n_outputs)."""
        n_columns = len(self.terms)
        joint_values = zip(self.joint_terms, values[n_columns:], strict=True)
        return [*values[:n_columns], *(joint.expand(table) for joint, table in joint_values)]


def beyond_noise(value, noise_std):
    """Return a released value without the part that its noise explains (James and Stein 1961)."""
    if not value:
        return 0.0
    return value * max(1.0 - (noise_std / value) ** 2, 0.0)


def _add_gains(gains, block, scores, residuals, units):
    """Add the first-order decreases in loss from zero weights to the fitted weights."""
    final_scores = scores(block)
    start_residuals = residuals(0.0 * final_scores, block.targets)
    final_residuals = residuals(1.0 * final_scores, block.targets)
    gains += sum_loss_decreases(
        final_scores, start_residuals, final_residuals, units, block.row_weights
    )


def _add_residuals(total, block, scores, residuals, clip, n_rows):
    """Add the clipped residuals, in units of their clip, exactly."""
    steps = residuals(scores(block), block.targets) / clip
    total += exact_sum(steps, (-1.0, 1.0), n_samples=n_rows, row_weights=block.row_weights)
