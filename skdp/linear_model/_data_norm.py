"""How a fit bounds its rows: by a given norm, or by one found privately in the same charge."""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._bounded import BoundedRows
from skdp._sgd._clipped_sums import LENGTH_OF_GAINS, ClippedSums
from skdp.accounting import Guarantee
from skdp.linear_model._center import ClassCenter, MeanCenter
from skdp.linear_model._planning import Perturbation, Problem
from skdp.mechanisms import LaplaceMechanism
from skdp.mechanisms._plan import MechanismPlan, one_charge, vector_noise
from skdp.mechanisms._stages import stages_of
from skdp.stats._bounds import NormPlan, plan_norm
from skdp.utils._validation import check_boolean, check_magnitude, check_verbose

# Columns whose signals count, by the root of their number.
MOST_COLUMNS = 100
# The clip over the bound on a gradient at most: it cuts nothing.
LARGEST_CLIP = 1.01


@dataclass(frozen=True, kw_only=True)
class RowPlan:
    """How the rows of a fit are bounded.

    Parameters
    ----------
    search : NormPlan or None
        What finds the norm that rows are divided by; None if the norm was given.
    data_norm : float
        The bound on a row; 1 for rows that are divided by the norm that was found.
    constant : float
        The value of the constant feature that carries the intercept; 0 for none.
    whole, left : Guarantee
        Of the fit, and of what comes after the search and the center.
    center : ClassCenter or MeanCenter, default=None
        What releases the scores that weights shrink to; None for 0.
    checking : LaplaceMechanism, default=None
        What releases the gains of the weights; None where steps do, or nothing.
    """

    search: NormPlan | None
    data_norm: float
    constant: float
    whole: Guarantee
    left: Guarantee
    center: ClassCenter | MeanCenter | None = None
    checking: LaplaceMechanism | None = None

    # The bound on the norm of a row with its constant feature.
    @property
    def norm(self):
        return math.hypot(self.data_norm, self.constant)

    def n_features(self, n_columns):
        """Return the number of features of so many columns, the constant one included."""
        return n_columns + (self.constant > 0)

    def problem(self, task, shape):
        """Return what is public of the bounded rows of a table of some shape, for a `Task`.

        The task has the signal of one column, the problem that of all columns.
        """
        n_features = self.n_features(shape.n_columns)
        center = self.center
        signal = task.signal * math.sqrt(min(n_features, MOST_COLUMNS))
        return Problem(
            task=replace(task, signal=signal),
            n_rows=shape.n_rows,
            n_columns=shape.n_columns,
            norm=self.norm,
            guarantee=self.left,
            constant=self.constant,
            center=0.0 if center is None else center.norm / self.constant,
            center_deviation=math.inf if center is None else center.deviation,
        )

    def sgd_problem(self, shape, expected):
        """Return what is public of a run of clipped gradients for a `Task`.

        Its clip grows as there is less noise on the mean gradient.
        """
        problem = self.problem(expected, shape)
        noise = vector_noise(self.left, self.left.neighbors.sensitivity_factor).deviation(
            problem.size
        )
        noise *= math.sqrt(problem.size) / shape.n_rows
        share = expected.least_clip * math.sqrt(max(1.0, expected.knee / noise))
        known = {"slope": expected.slope * min(share, LARGEST_CLIP)}
        if expected.least_kept and (self.center is None or self.checking is not None):
            known["checked"] = 0.0
        return replace(problem, task=replace(problem.task, **known))

    def joined(self, mechanism):
        """Return what is charged: the model's mechanism, with what is released beside it."""
        parts = self.search, self.center, mechanism, self.checking
        return one_charge(parts, self.whole, main=mechanism)

    def stages(self, weights):
        """Return the stages of a fit, in order, some of which release the weights."""
        first = (stage for part in (self.search, self.center) if part for stage in stages_of(part))
        last = stages_of(self.checking, "check of the weights") if self.checking else ()
        return (*first, *weights, *last)

    def run(self, X, source, persons=None):
        """Return the rows, bounded; their norm is released first if it is searched.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        BoundedRows
        """
        unit = 1.0 if self.search is None else self.search.run(X, source, persons=persons)
        return BoundedRows(X, self.data_norm, self.constant, unit, persons)

    def start(self, shape, y, source, persons=None):
        """Return the weights that predict the center, which is released; 0 without one.

        Parameters
        ----------
        shape : tuple of int
            Of the weights, the last one that of the constant feature.
        y : ndarray of shape (n_rows,)
            Codes of classes or scaled targets.
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        ndarray
        """
        start = np.zeros(shape)
        if self.center is not None:
            start[..., -1] = self.center.run(y, source, persons) / self.constant
        return start


def plan_rows(estimator, n_rows, guarantee):
    """Return how an estimator's fit bounds its rows; "auto" spends a fifth of epsilon on it.

    Parameters
    ----------
    estimator : estimator
        With parameters `data_norm`, `fit_intercept`, `intercept_scaling` and `verbose`.
    n_rows : int
    guarantee : Guarantee
        Of the fit.

    Returns
    -------
    RowPlan

    Raises
    ------
    ValueError
        If a parameter is not as described.
    """
    check_verbose(estimator.verbose)
    search, left, data_norm = plan_norm(estimator.data_norm, n_rows, guarantee)
    scaling = check_magnitude(estimator.intercept_scaling, "intercept_scaling")
    has_intercept = check_boolean(estimator.fit_intercept, "fit_intercept")
    constant = scaling * data_norm if has_intercept else 0.0
    return RowPlan(
        search=search, data_norm=data_norm, constant=constant, whole=guarantee, left=left
    )


@dataclass(frozen=True, kw_only=True)
class WeightsFit(MechanismPlan):
    """What a fit will release: the norm of its rows if it is searched, and weights.

    Parameters
    ----------
    rows : RowPlan
    problem : Problem
        What is public of the rows once they are bounded.
    weights : Perturbation
    excess : float
        The summed loss, in the units of targets, expected above that of weights of a norm.
    """

    rows: RowPlan
    problem: Problem
    weights: Perturbation
    excess: float

    @property
    def loss(self):
        return self.problem.loss

    # The noise of a step, where steps make the weights, over what one row moves its sum by.
    @property
    def noise_multiplier(self):
        return getattr(self.weights.mechanism, "noise_multiplier", None)

    by_person = True

    @property
    def stages(self):
        """All releases of the fit, in order."""
        return self.rows.stages(stages_of(self.weights.mechanism, "weights"))

    @classmethod
    def of(cls, choice, rows, unit=1.0, **more):
        """Return the plan of a fit by the `Choice` that was made for its rows.

        The unit is that of the loss, in the units of targets.
        """
        weights = choice.plan()
        excess = unit * choice.expected
        return cls(rows=rows, problem=choice.problem, weights=weights, excess=excess, **more)

    # The noise on the weights, after the search for a norm if there is one.
    @property
    def mechanism(self):
        return self.rows.joined(self.weights.mechanism)

    def run(self, table, source, persons=None, start=None):
        """Return the released attributes.

        Parameters
        ----------
        table : RowsAndTarget
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.
        start : ndarray of shape (*loss.weights_shape, n_features), default=None
            Weights that were released earlier; None begins at the center, or at 0.

        Returns
        -------
        dict
            In the units of the rows; `coef_` and `intercept_` have an entry for each output.
        """
        rows = self.rows.run(table.X, source, persons)
        shape = (*self.loss.weights_shape, rows.n_features)
        if start is None:
            start = self.rows.start(shape, table.y, source, persons)
        weights = self.weights.run(self.loss, rows, table.y, source, start)
        if self.rows.checking is not None:
            weights = start + self._kept(rows, table.y, start, weights, source) * (weights - start)
        of_outputs = np.atleast_2d(weights)
        constant = rows.constant
        released = {
            "coef_": of_outputs[:, : rows.n_columns] / rows.unit,
            "intercept_": constant * of_outputs[:, -1] if constant else np.zeros(len(of_outputs)),
            "data_norm_": rows.unit * rows.data_norm,
        }
        return released | self.beside(rows, table.y, weights, released["coef_"], source)

    def _kept(self, rows, y, start, weights, source):
        """Return the share of the way from the start that explains more than chance."""
        n = rows.n_units
        unit = rows.unit
        moved = weights - start
        check = self.problem.task.check(rows.norm, rows.n_features, n, 1.0 / (n * self.weights.C))
        whole = {"clip": LENGTH_OF_GAINS["l1"], "norm": "l1", "of_gains": True}
        own = {"constant": unit * rows.constant, "persons": rows.persons}
        sums = ClippedSums(rows.X, y, self.loss, **own, **whole)
        gains = sums.gains(start / unit, weights / unit, None, check.units(moved)).ravel()[:3]
        # Means over the rows, or persons, whose number is public.
        check = replace(check, deviation=self.rows.checking.deviation(3) / n)
        return check.kept(self.rows.checking.release(gains, random_state=source) / n, moved)

    def beside(self, rows, y, weights, coef, source):
        """Return what is released or known beside the weights: here nothing."""
        return {}
