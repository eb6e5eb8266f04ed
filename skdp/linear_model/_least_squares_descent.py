"""Least squares by noisy gradient descent on targets of magnitude at most 1."""

from dataclasses import dataclass
from operator import attrgetter

from skdp._losses import ClippedSquaredLoss
from skdp.linear_model._gradient_perturbation import (
    GradientPerturbation,
    gradient_C,
    plan_gradient_perturbation,
)

LOSS = ClippedSquaredLoss()
# The norm of weights, times data_norm over the targets' bound, that the ridge is balanced for;
# chosen with California housing and made tables in view.
EXPECTED_WEIGHTS_NORM = 3.0


@dataclass(frozen=True)
class LeastSquaresDescent:
    """What a fit by gradients will do.

    Parameters
    ----------
    constant : float
        The constant feature, 0 for none.
    target_norm : float
        The bound on a centred target, which is the unit of targets and weights.
    plan : GradientPerturbation
    """

    constant: float
    target_norm: float
    plan: GradientPerturbation

    mechanism = property(attrgetter("plan.mechanism"))
    sampler = property(attrgetter("plan.sampler"))

    def run(self, rows, targets, alpha, source):
        """Return the coefficients and the intercept of the centred targets.

        Parameters
        ----------
        rows : BoundedRows
        targets : ndarray of shape (n_rows,)
            Centred targets, at most `target_norm` in magnitude.
        alpha : float
            Not read: the plan has it.
        source : RandomSource
        """
        weights = self.target_norm * self.plan.run(LOSS, rows, targets / self.target_norm, source)
        if not self.constant:
            return weights, 0.0
        return weights[:-1].copy(), self.constant * float(weights[-1])


def plan_descent(rows, shape, target_norm, alpha):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    rows : RowPlan
        With the guarantee that is left for the fit; delta must be positive.
    shape : TableShape
    target_norm : float
    alpha : float
        The least ridge. It is raised to the one that balances regularisation against noise, for
        weights of norm 3 times `target_norm` over `data_norm`.

    Returns
    -------
    LeastSquaresDescent
    """
    problem = rows.problem(LOSS, shape)
    C = gradient_C(problem, EXPECTED_WEIGHTS_NORM / rows.data_norm, rows.left)
    if alpha > 0.0:
        C = min(C, 1.0 / alpha)
    plan = plan_gradient_perturbation(problem, C, rows.left)
    return LeastSquaresDescent(rows.constant, target_norm, plan)
