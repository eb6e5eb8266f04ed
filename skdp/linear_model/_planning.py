"""What the plans of all mechanisms share: public constants and the price of a fit."""

import math
from dataclasses import dataclass

__all__ = [
    "EXPECTED_WEIGHTS_NORM",
    "LARGEST_CURVATURE",
    "Problem",
    "gradient_noise_cost",
]

# C="auto" keeps C times the curvature of all rows below this.
LARGEST_CURVATURE = 1e9

# The norm of weights, times data_norm, for which C="auto" balances regularisation against noise;
# chosen with the benchmarks' tables in view, see docs/benchmarks/utility.md.
EXPECTED_WEIGHTS_NORM = 10.0


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is public of the rows that a linear model is fitted to.

    Parameters
    ----------
    loss : loss
        From `skdp._losses`.
    n_rows, n_features : int
        The constant feature included.
    norm : float
        The bound on a row's norm, the constant feature included.
    """

    loss: object
    n_rows: int
    n_features: int
    norm: float

    @property
    def size(self):
        """The number of weights."""
        return math.prod(self.loss.weights_shape) * self.n_features

    @property
    def lipschitz(self):
        """The bound on the norm of a row's gradient."""
        return self.loss.slope_bound * self.norm

    @property
    def smoothness(self):
        """The bound on a row's curvature."""
        return self.loss.curvature_bound * self.norm**2

    @property
    def curvature_trace(self):
        """The bound on the trace of a row's curvature."""
        return self.loss.trace_bound * self.norm**2


def gradient_noise_cost(problem, strength):
    r"""Bound the loss that noise of variance 1 on a summed gradient costs, in a quadratic model.

    With :math:`\lambda` the strength of the regulariser it is
    :math:`\tfrac12 \sum_j h_j / (h_j + \lambda)^2` over the D eigenvalues of the Hessian, whose
    sum is at most that of the traces of the rows' curvatures. The sum is largest when all are
    equal or, if there is enough curvature, equal to :math:`\lambda`.
    """
    h = min(strength, problem.n_rows * problem.curvature_trace / problem.size)
    return 0.5 * problem.size * (h / (h + strength)) / (h + strength)
