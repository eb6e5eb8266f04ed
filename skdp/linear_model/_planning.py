"""What the plans of all mechanisms share: public constants and the price of a fit."""

import math
from dataclasses import dataclass

from skdp.accounting import Event

__all__ = [
    "EXPECTED_WEIGHTS_NORM",
    "LARGEST_CURVATURE",
    "ROWS_MOVED",
    "FitCost",
    "gradient_noise_cost",
]

# The rows' gradients by which neighbours' sums differ.
ROWS_MOVED = {"add_remove": 1, "replace_one": 2}

# C="auto" keeps C times the curvature of all rows below this.
LARGEST_CURVATURE = 1e9

# The norm of weights, times data_norm, for which C="auto" balances regularisation against noise;
# chosen with the benchmarks' tables in view, see docs/benchmarks/utility.md.
EXPECTED_WEIGHTS_NORM = 10.0


@dataclass(frozen=True)
class FitCost:
    """The price of a fit and the noise that it is the price of.

    Parameters
    ----------
    name : str
        What is done, in words.
    event : Event
    epsilon, delta : float
        The fit is (epsilon, delta)-DP.
    scale : float
        The scale of the noise on a sum of gradients.
    sensitivity : float
        The L2 sensitivity of that sum.
    """

    name: str
    event: Event
    epsilon: float
    delta: float
    scale: float
    sensitivity: float


def gradient_noise_cost(loss, n_rows, n_features, norm, strength):
    r"""Bound the loss that noise of variance 1 on a summed gradient costs, in a quadratic model.

    With :math:`\lambda` the strength of the regulariser it is
    :math:`\tfrac12 \sum_j h_j / (h_j + \lambda)^2` over the D eigenvalues of the Hessian, whose
    sum is at most that of the traces of the rows' curvatures. The sum is largest when all are
    equal or, if there is enough curvature, equal to :math:`\lambda`.
    """
    size = math.prod(loss.weights_shape) * n_features
    h = min(strength, n_rows * loss.trace_bound * norm**2 / size)
    return 0.5 * size * (h / (h + strength)) / (h + strength)
