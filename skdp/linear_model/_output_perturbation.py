r"""Output perturbation of a certified minimiser (Chaudhuri, Monteleoni and Sarwate 2011).

The objective :math:`J(w) = C \sum_i \ell_i(w) + \tfrac12\|w\|^2` is 1-strongly convex and one
row adds a term whose gradient is at most :math:`C L`, so that the minimisers of neighbours are
at most :math:`C L` apart under add/remove and :math:`2 C L` under replace-one. Weights at which
:math:`\|\nabla J\| \le \tau` are within :math:`\tau` of the minimiser. The released vector
therefore moves by at most :math:`\Delta_2 = m C L + 2\tau` with m = 1 or 2.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.accounting import gaussian_noise_multiplier
from skdp.linear_model._newton import minimise
from skdp.linear_model._objective import LinearObjective
from skdp.linear_model._planning import LARGEST_CURVATURE, ROWS_MOVED
from skdp.linear_model._rounding import gradient_rounding, rounding_per_weight
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism

__all__ = ["OutputPerturbation", "balanced_C", "expected_excess", "plan_output_perturbation"]

RELATIVE_TOLERANCE = 2.0**-13


@dataclass(frozen=True)
class OutputPerturbation:
    """What a fit by output perturbation will do.

    Parameters
    ----------
    C : float
        Inverse regularisation strength, as in scikit-learn.
    tolerance : float
        The computed gradient norm at which the solver stops.
    size : int
        The number of weights.
    mechanism : GaussianMechanism or GammaNormMechanism
        The noise, its sensitivity and its event.
    """

    C: float
    tolerance: float
    size: int
    mechanism: object
    quadratic: ClassVar[float] = 1.0
    sampler: ClassVar[str] = "all rows, once"

    def run(self, loss, rows, y, source):
        """Return the noisy minimiser.

        Parameters
        ----------
        loss : loss
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource

        Returns
        -------
        ndarray
        """
        weights = minimise(LinearObjective(loss, rows, y, self.C), self.tolerance)
        return self.mechanism.release(weights, random_state=source)

    def noise_variance(self, curvature=0.0):
        """Return the variance of the noise in a weight, whatever the curvature of the loss."""
        deviation = self.mechanism.scale
        if self.mechanism.delta == 0.0:
            deviation *= math.sqrt(self.size + 1)
        return np.full(np.shape(curvature), deviation**2)

    def lengthening(self, curvature, norm):
        """Return 0: the weights have no iterates that wander."""
        return 0.0

    def standard_error(self, shape):
        """Return the standard deviation of the noise in each weight, of the given shape."""
        return np.full(shape, math.sqrt(self.noise_variance()))


def plan_output_perturbation(loss, n_rows, n_features, norm, C, epsilon, delta, relation):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    loss : loss
        From `skdp._losses`.
    n_rows, n_features : int
        The size of the problem, the constant feature included.
    norm : float
        The bound on a row's norm, the constant feature included.
    C : float
    epsilon, delta : float
        The guarantee of the release; delta = 0 takes the Gamma-norm mechanism.
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    OutputPerturbation

    Raises
    ------
    ValueError
        If epsilon is too small for noise that can be drawn.
    """
    moved = C * loss.slope_bound * norm
    rounding = _gradient_rounding(loss, n_rows, n_features, norm, C)
    noise = _noise_per_sensitivity(loss, n_features, epsilon, delta)
    # The noise hides the solver's error when that is far below both the noise and what one row
    # moves. A tolerance below four times the rounding error might not be reached.
    tolerance = moved * min(RELATIVE_TOLERANCE, noise / 64.0) + 4.0 * rounding
    sensitivity = (ROWS_MOVED[relation] * moved + 2.0 * (tolerance + rounding)) * (1.0 + 1e-12)
    if delta == 0.0:
        mechanism = GammaNormMechanism(epsilon=epsilon, sensitivity=sensitivity)
    else:
        mechanism = GaussianMechanism(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    size = math.prod(loss.weights_shape) * n_features
    mechanism.check_size(size)
    return OutputPerturbation(C=C, tolerance=tolerance, size=size, mechanism=mechanism)


def balanced_C(loss, n_rows, n_features, norm, weights_norm, epsilon, delta, relation):
    r"""Return the C at which regularisation and noise are expected to cost least together.

    Weights of norm W lose at most :math:`W^2 / (2C)` in summed loss to the regulariser; noise
    of standard deviation :math:`\sigma(C) = s C` loses about
    :math:`n \kappa R^2 \sigma^2(C) / 2`, where :math:`\kappa` bounds the loss's curvature.
    The sum is least at :math:`C^3 = W^2 / (2 n \kappa R^2 s^2)`.
    """
    s = ROWS_MOVED[relation] * loss.slope_bound * norm
    s *= _noise_per_sensitivity(loss, n_features, epsilon, delta)
    curvature = n_rows * loss.curvature_bound * norm**2
    C = ((weights_norm / s) ** 2 / (2.0 * curvature)) ** (1.0 / 3.0)
    # Beyond this condition number less regularisation buys nothing but rounding errors.
    return min(C, LARGEST_CURVATURE / curvature)


def expected_excess(loss, n_rows, n_features, norm, C, weights_norm, epsilon, delta, relation):
    """Return the summed loss expected above that of weights of norm W, in the quadratic model."""
    noise = ROWS_MOVED[relation] * C * loss.slope_bound * norm
    noise *= _noise_per_sensitivity(loss, n_features, epsilon, delta)
    return 0.5 * weights_norm**2 / C + 0.5 * n_rows * loss.trace_bound * norm**2 * noise * noise


def _noise_per_sensitivity(loss, n_features, epsilon, delta):
    """Return the noise's standard deviation in a coordinate, for sensitivity 1."""
    if delta == 0.0:
        return math.sqrt(math.prod(loss.weights_shape) * n_features + 1) / epsilon
    return gaussian_noise_multiplier(epsilon, delta)


def _gradient_rounding(loss, n_rows, n_features, norm, C):
    r"""Bound the rounding error near the minimiser, where :math:`\|w\|^2 \le 2 C n \ell(0)`."""
    weights = min(
        math.sqrt(2.0 * C * n_rows * loss.value_at_zero()), C * n_rows * loss.slope_bound * norm
    )
    # The solver stops within its tolerance of the minimiser, which is below what one row moves
    # plus four rounding errors: a linear equation for the rounding error.
    weights += C * loss.slope_bound * norm
    sums = gradient_rounding(loss, n_rows, n_features, norm, C, 0.0)
    per_weight = rounding_per_weight(loss, n_rows, n_features, norm, C)
    return (sums + per_weight * weights) / (1.0 - 4.0 * per_weight)
