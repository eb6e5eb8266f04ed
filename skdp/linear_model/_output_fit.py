"""The plan of a fit by output perturbation, from an estimator's parameters to its coefficients."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from skdp.linear_model._data_norm import RowPlan, plan_rows, released_model
from skdp.linear_model._output_perturbation import (
    OutputPerturbation,
    balanced_C,
    plan_output_perturbation,
)
from skdp.mechanisms._plan import MechanismPlan
from skdp.utils._validation import check_positive, is_auto

__all__ = ["OutputFit", "check_strength", "plan_output_fit"]

# The norm of weights, times data_norm, that hinge and Poisson models are balanced for. Logistic
# regression's own, which is larger, was tuned for its mechanisms; this one with Adult in view.
BALANCED_WEIGHTS_NORM = 5.0


@dataclass(frozen=True, kw_only=True)
class OutputFit(MechanismPlan):
    """What a fit by output perturbation will release.

    Parameters
    ----------
    rows : RowPlan
    loss : loss
        From `skdp._losses`.
    weights : OutputPerturbation
    """

    rows: RowPlan
    loss: object
    weights: OutputPerturbation
    sampler: ClassVar[str] = OutputPerturbation.sampler

    @property
    def mechanism(self):
        """The noise on the weights, after the search for a norm if there is one."""
        return self.rows.joined(self.weights.mechanism)

    def run(self, table, source):
        """Return the released attributes.

        Parameters
        ----------
        table : RowsAndTarget
        source : RandomSource

        Returns
        -------
        dict
            `coef_` and `intercept_` have an entry for each output.
        """
        rows = self.rows.run(table.X, source)
        weights = self.weights.run(self.loss, rows, table.y, source)
        return {"C_": self.weights.C, **released_model(rows, weights)}


def check_strength(value, name):
    """Return a regularisation strength as a positive float, or None for "auto"."""
    if is_auto(value):
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a positive number or 'auto', got {value!r}")
    return check_positive(value, name)


def plan_output_fit(estimator, shape, guarantee, loss, C=None):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    estimator : estimator
        As in `plan_rows`.
    shape : TableShape
    guarantee : Guarantee
    loss : loss
        From `skdp._losses`.
    C : float, default=None
        Inverse regularisation strength; None balances it against the noise.

    Returns
    -------
    OutputFit

    Raises
    ------
    ValueError
        If a parameter is not as described, or epsilon is too small.
    """
    rows = plan_rows(estimator, shape.n_rows, guarantee)
    problem = rows.problem(loss, shape)
    if C is None:
        C = balanced_C(problem, BALANCED_WEIGHTS_NORM / rows.data_norm, rows.left)
    weights = plan_output_perturbation(problem, C, rows.left)
    return OutputFit(rows=rows, loss=loss, weights=weights)
