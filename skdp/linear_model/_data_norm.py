"""Use of `data_norm`, declared or "auto", in linear models: bounds on rows, clips of gradients.

The search for an "auto" norm is `NormSearch` in `skdp.stats._bounds`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from skdp._data._bounded import BoundedRows
from skdp._loops import NUMPY
from skdp._optim._clipped_sums import MAX_DECREASE_NORM, ClippedSums
from skdp.accounting import Guarantee
from skdp.linear_model._balanced import BalancedBaseline
from skdp.linear_model._baseline import ClassBaseline, MeanBaseline
from skdp.linear_model._planning import PerturbationProblem, PrivateSolver
from skdp.linear_model._row_center import RowCenter, center_rounding_factor, is_rare
from skdp.linear_model._whitening import RowWhitening
from skdp.mechanisms import LaplaceMechanism
from skdp.mechanisms._plan import Plan, join_plans, plan_release, vector_noise
from skdp.stats._bounds import plan_norm
from skdp.utils._validation import check_boolean, check_magnitude, check_verbose, is_auto
from skdp.utils._values import FrozenValue

# The expected signal grows with the square root of the number of columns, up to this number.
MAX_SIGNAL_COLUMNS = 100
# Largest clip, relative to the bound on a gradient. With it, nothing is clipped.
MAX_CLIP_FRACTION = 1.01
# The same for whitened rows, whose norm has no bound: rows of a rare category are long. The larger
# clip needs noise that is smaller by this factor squared: with more noise, rare classes are lost.
MAX_WHITENED_CLIP_FRACTION = 4.0
LARGER_CLIP_FACTOR = 8.0


@dataclass(frozen=True, kw_only=True)
class RowsFit:
    """Bound on the rows of a fit, and all its releases other than the weights.

    Parameters
    ----------
    norm_search : Plan or None
        Release of the norm that rows are divided by; None if the norm is declared.
    data_norm : float
        Upper bound on the norm of a row; 1 for rows that are divided by the released norm.
    constant : float
        Value of the constant feature of the intercept; 0 for none.
    fit_guarantee : Guarantee
        Guarantee of the whole fit.
    remaining : Guarantee
        Guarantee that is left for the weights.
    baseline : ClassBaseline, MeanBaseline or BalancedBaseline, default=None
        Release of the scores that weights shrink to; None for scores of 0. A `BalancedBaseline` is
        known without a release.
    shrinkage_mechanism : LaplaceMechanism, default=None
        Release of the loss decreases of the shrinkage rule. None if weights are not shrunk, or if
        the last steps of a descent determine the shrinkage.
    center : RowCenter, default=None
        Release of the mean row, about which rows are clipped; None for 0.
    whitening : RowWhitening, default=None
        Release of the second moment, by which rows are centered and whitened.
    """

    norm_search: Plan | None
    data_norm: float
    constant: float
    fit_guarantee: Guarantee
    remaining: Guarantee
    baseline: ClassBaseline | MeanBaseline | BalancedBaseline | None = None
    shrinkage_mechanism: LaplaceMechanism | None = None
    center: RowCenter | None = None
    whitening: RowWhitening | None = None

    @property
    def norm(self):
        """Upper bound on the norm of a row including its constant feature."""
        return math.hypot(self.data_norm, self.constant)

    @property
    def is_centered(self):
        """True if gradients are those of centered rows, whitened or not."""
        return self.center is not None or self.whitening is not None

    @property
    def noise_unit(self):
        """Name of the released number to which the noise in the weights is proportional, or ""."""
        if self.whitening is not None:
            return "the gradients of rows whitened by the released second moment"
        if self.center is not None:
            return "the released norm about the released center"
        if self.norm_search is not None:
            return "the released data_norm"
        return ""

    def with_releases_of(self, planned):
        """Return the `RowsFit` whose rows are centered or whitened as planned for another loss."""
        return replace(
            self,
            center=planned.center,
            whitening=planned.whitening,
            constant=planned.constant,
            remaining=planned.remaining,
        )

    def n_features(self, n_columns):
        """Return the number of features for a number of columns, including the constant feature."""
        return n_columns + (self.constant > 0)

    def problem(self, loss_spec, shape):
        """Return the public sizes and bounds of a fit.

        Parameters
        ----------
        loss_spec : LossSpec
            Its signal is the signal of one column. The problem contains the signal of all columns.
        shape : TableShape

        Returns
        -------
        PerturbationProblem
        """
        n_features = self.n_features(shape.n_columns)
        signal = loss_spec.signal * math.sqrt(min(n_features, MAX_SIGNAL_COLUMNS))
        baseline_norm = 0.0
        baseline_std = math.inf
        if self.baseline is not None:
            baseline_norm = self.baseline.norm / self.constant
            baseline_std = self.baseline.score_std
        factor = 1.0
        if self.center is not None:
            factor = center_rounding_factor(self)
        if self.whitening is not None:
            factor = self.whitening.rounding_factor(self.data_norm / self.constant)
        return PerturbationProblem(
            loss_spec=replace(loss_spec, signal=signal),
            n_rows=shape.n_rows,
            n_columns=shape.n_columns,
            norm=self.norm,
            guarantee=self.remaining,
            constant=self.constant,
            baseline_norm=baseline_norm,
            baseline_std=baseline_std,
            rounding_factor=factor,
            is_whitened=self.whitening is not None,
        )

    def sgd_problem(self, shape, loss_spec):
        """Return the public sizes and bounds of a run of clipped gradients.

        The clip is larger if there is less noise on the mean gradient.

        Parameters
        ----------
        shape : TableShape
        loss_spec : LossSpec

        Returns
        -------
        PerturbationProblem
        """
        problem = self.problem(loss_spec, shape)
        mechanism = vector_noise(self.remaining, self.remaining.neighbors.sensitivity_factor)
        noise = mechanism.deviation(problem.size)
        noise *= math.sqrt(problem.size) / shape.n_rows
        clip_fraction = loss_spec.min_clip_fraction * math.sqrt(
            max(1.0, loss_spec.clip_noise_threshold / noise)
        )
        max_clip_fraction = MAX_CLIP_FRACTION
        if self.whitening is not None:
            larger = min(clip_fraction / LARGER_CLIP_FACTOR, MAX_WHITENED_CLIP_FRACTION)
            max_clip_fraction = max(max_clip_fraction, larger)
        residual_norm = loss_spec.residual_norm * min(clip_fraction, max_clip_fraction)
        clipped_spec = replace(problem.loss_spec, residual_norm=residual_norm)
        is_shrunk_otherwise = self.baseline is None or self.shrinkage_mechanism is not None
        if loss_spec.min_shrinkage_factor and is_shrunk_otherwise:
            clipped_spec = replace(clipped_spec, shrinkage_residual=0.0)
        return replace(problem, loss_spec=clipped_spec)

    def join(self, weights):
        """Return the plan of all the fit's releases together, which has no `run`.

        Parameters
        ----------
        weights : Plan
            Plan that releases the weights.
        """
        plans = []
        if self.norm_search is not None:
            plans.append(self.norm_search)
        if self.center is not None:
            plans.append(self.center.plan())
        if self.whitening is not None:
            plans.append(self.whitening.center.plan())
            plans.append(self.whitening.plan())
        # A `BalancedBaseline` is known without a release.
        if self.baseline is not None and not isinstance(self.baseline, BalancedBaseline):
            plans.append(self.baseline.plan())
        plans.append(weights)
        if self.shrinkage_mechanism is not None:
            mechanism = self.shrinkage_mechanism
            plans.append(plan_release(mechanism, None, stage_name="check of the weights"))
        return join_plans(plans, self.fit_guarantee, main=weights)

    def run(self, X, source, persons=None):
        """Return the bounded rows. If the norm is not declared, it is released first.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        BoundedRows
        """
        unit = 1.0
        if self.norm_search is not None:
            unit = self.norm_search.run(X, source, persons=persons)
        center = None
        column_factors = None
        centered_unit = 1.0
        if self.center is not None:
            center, column_factors, centered_unit = self.center.run(
                X, unit * self.data_norm, source, persons
            )
        rows = BoundedRows(X, self.data_norm, self.constant, unit * centered_unit, persons)
        rows.center = center
        rows.column_factors = column_factors
        rows.centered_unit = centered_unit
        if self.whitening is not None:
            rows.whitening = self.whitening.run(X, unit * self.data_norm, source, persons)
        return rows

    def start(self, shape, y, source, persons=None):
        """Return weights that predict the baseline, which is released, and class frequencies.

        Parameters
        ----------
        shape : tuple of int
            Shape of the weights, with the constant feature last.
        y : ndarray of shape (n_rows,)
            Class codes or scaled targets.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        start : ndarray
            0 without a baseline.
        frequency : float or None
            Released frequency of the second of two classes, times their weights; None for other
            baselines.
        """
        start = np.zeros(shape)
        frequency = None
        if isinstance(self.baseline, ClassBaseline):
            scores = self.baseline.release(y, source, persons)
            start[..., -1] = self.baseline.limited(scores) / self.constant
            if np.ndim(scores) == 0:
                frequency = float(expit(scores))
        elif self.baseline is not None:
            start[..., -1] = self.baseline.run(y, source, persons) / self.constant
        return start, frequency


def plan_rows(estimator, n_rows, guarantee):
    """Return the `RowsFit` of an estimator.

    With ``data_norm="auto"``, the release of the norm costs a fifth of epsilon.

    Parameters
    ----------
    estimator : estimator
        It has the parameters `data_norm`, `fit_intercept`, `intercept_scaling` and `verbose`.
    n_rows : int
    guarantee : Guarantee
        Guarantee of the whole fit.

    Returns
    -------
    RowsFit

    Raises
    ------
    ValueError
        If a parameter is invalid.
    """
    check_verbose(estimator.verbose)
    norm_search = None
    remaining = guarantee
    if is_auto(estimator.data_norm):
        norm_search, remaining, data_norm = plan_norm(estimator.data_norm, n_rows, guarantee)
    else:
        data_norm = check_magnitude(estimator.data_norm, "data_norm")
    scaling = check_magnitude(estimator.intercept_scaling, "intercept_scaling")
    constant = 0.0
    if check_boolean(estimator.fit_intercept, "fit_intercept"):
        constant = scaling * data_norm
    return RowsFit(
        norm_search=norm_search,
        data_norm=data_norm,
        constant=constant,
        fit_guarantee=guarantee,
        remaining=remaining,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearWeights(FrozenValue):
    """Released weights of a linear model.

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)
    data_norm : float
        The declared bound on the norm of rows, or the released one.
    solver : PrivateSolver
        Plan of the weights that ran.
    standard_error : ndarray of shape (n_outputs, n_features) or None
    """

    coef: np.ndarray
    intercept: np.ndarray
    data_norm: float
    solver: PrivateSolver
    standard_error: np.ndarray | None = None

    def in_target_units(self, scale):
        """Return the coefficients and the intercept of one output in the units of targets.

        Parameters
        ----------
        scale : TargetScale

        Returns
        -------
        coef : ndarray of shape (n_features,)
        intercept : float
        """
        intercept = float(scale.offset + scale.half_range * self.intercept[0])
        return scale.half_range * self.coef[0], intercept


@dataclass(frozen=True, kw_only=True)
class WeightsFit(FrozenValue):
    """A fit: the norm of rows if it is not declared, a baseline, and weights.

    Parameters
    ----------
    rows : RowsFit
    problem : PerturbationProblem
        Public sizes and bounds of the bounded rows.
    weights : PrivateSolver
    total_excess_loss : float
        Expected excess loss summed over rows, in the units of targets.
    adapts_penalty : bool, default=False
        Whether the penalty of noisy gradients grows if one of two classes is rare; see
        `ClippedDescent.for_frequency`.
    """

    rows: RowsFit
    problem: PerturbationProblem
    weights: PrivateSolver
    total_excess_loss: float
    adapts_penalty: bool = False

    @property
    def loops(self):
        """Version of the loops over rows; see `skdp._loops`."""
        return getattr(self.weights.mechanism, "loops", NUMPY)

    @classmethod
    def from_candidate(cls, candidate, loss_unit=1.0):
        """Return the fit by a `MechanismCandidate`.

        Parameters
        ----------
        candidate : MechanismCandidate
        loss_unit : float, default=1.0
            Factor from the loss of scaled targets to that of targets.
        """
        return cls(
            rows=candidate.rows,
            problem=candidate.problem,
            weights=candidate.plan(),
            total_excess_loss=loss_unit * candidate.bounded_excess_loss,
        )

    def weights_plan(self):
        """Return the plan that releases the weights, which has no `run`."""
        mechanism = self.weights.mechanism
        return plan_release(mechanism, None, stage_name="weights", unit=self.rows.noise_unit)

    def plan(self):
        """Return the plan of the fit, which charges all its releases together.

        Its `mechanism` is this fit.
        """
        return replace(
            self.rows.join(self.weights_plan()),
            run=self.run,
            noise_multiplier=getattr(self.weights.mechanism, "noise_multiplier", None),
            total_excess_loss=self.total_excess_loss,
            mechanism=self,
        )

    def run(self, table, source, persons=None, start=None):
        """Return the released weights.

        Parameters
        ----------
        table : RowsAndTarget
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.
        start : ndarray of shape (*loss.weights_shape, n_features), default=None
            Weights that were released earlier; None starts at the baseline, or at 0.

        Returns
        -------
        LinearWeights
            In the units of the rows, with an entry per output.
        """
        rows = self.rows.run(table.X, source, persons)
        loss = self.problem.loss
        shape = (*loss.weights_shape, rows.n_features)
        solver = self.weights
        if start is None:
            start, frequency = self.rows.start(shape, table.y, source, persons)
            has_factors = frequency is not None and rows.column_factors is not None
            if has_factors and not is_rare(frequency):
                rows.column_factors = None
            if self.adapts_penalty and frequency is not None:
                solver = solver.for_frequency(frequency)
        weights = solver.run(loss, rows, table.y, source, start)
        if self.rows.shrinkage_mechanism is not None:
            fit = replace(self, weights=solver)
            factor = fit._shrinkage_factor(rows, table.y, start, weights, source)
            weights = start + factor * (weights - start)
        output_weights = np.atleast_2d(weights)
        coef = output_weights[:, : rows.n_columns] / rows.unit
        if rows.column_factors is not None:
            coef = coef * rows.column_factors
        if rows.whitening is not None:
            coef = coef @ rows.whitening.transform.T
        intercept = np.zeros(len(output_weights))
        if rows.constant:
            intercept = rows.constant * output_weights[:, -1]
        if rows.center is not None:
            intercept = intercept - coef @ rows.center
        if rows.whitening is not None:
            intercept = intercept - coef @ rows.whitening.center
        return LinearWeights(
            coef=coef,
            intercept=intercept,
            data_norm=rows.unit / rows.centered_unit * rows.data_norm,
            solver=solver,
            standard_error=self._standard_errors(rows, table.y, weights, coef, source),
        )

    def _shrinkage_factor(self, rows, y, start, weights, source):
        """Return the released factor by which weights shrink to the start; see `ShrinkageRule`."""
        n_units = rows.n_units
        unit = rows.unit
        displacement = weights - start
        alpha = 1.0 / (n_units * self.weights.C)
        rule = self.problem.loss_spec.shrinkage_rule(rows.norm, rows.n_features, n_units, alpha)
        # The sensitivity of the mechanism is MAX_DECREASE_NORM, which is also the clip here.
        sums = ClippedSums(
            rows.X,
            y,
            self.problem.loss,
            constant=unit * rows.constant,
            clip=MAX_DECREASE_NORM["l1"],
            norm="l1",
            persons=rows.persons,
            only_loss_decreases=True,
            center=rows.center,
            column_factors=rows.column_factors,
            whitening=rows.whitening,
        )
        clip_norms = rule.clip_norms(displacement)
        decreases = sums.loss_decreases(start / unit, weights / unit, None, clip_norms).ravel()[:3]
        # Means over rows or persons, whose number is public.
        mechanism = self.rows.shrinkage_mechanism
        rule = replace(rule, noise_std=mechanism.deviation(size=3) / n_units)
        means = mechanism.release(decreases, random_state=source) / n_units
        return rule.shrinkage_factor(means, displacement)

    def _standard_errors(self, rows, y, weights, coef, source):
        """Return the standard errors of the coefficients; None in this class."""
