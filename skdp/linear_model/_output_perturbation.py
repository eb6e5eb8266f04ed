r"""Output perturbation of a certified minimizer (Chaudhuri, Monteleoni and Sarwate 2011).

The objective :math:`J(w) = C \sum_i \ell_i(w) + \tfrac12\|w\|^2` is 1-strongly convex and one
row adds a term whose gradient is at most :math:`C L`, so that the minimizers of neighbors are
at most :math:`C L` apart under add/remove and :math:`2 C L` under replace-one. Weights at which
:math:`\|\nabla J\| \le \tau` are within :math:`\tau` of the minimizer. The released vector
therefore moves by at most :math:`\Delta_2 = m C L + 2\tau` with m = 1 or 2.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.linear_model import _planning
from skdp.linear_model._newton import minimize
from skdp.linear_model._objective import LinearObjective
from skdp.mechanisms._plan import vector_noise
from skdp.utils._validation import check_positive, is_auto

RELATIVE_TOLERANCE = 2.0**-13

# The norm of weights, times data_norm, that hinge and Poisson models are balanced for. Logistic
# regression's own, which is larger, was tuned for its mechanisms; this one with Adult in view.
BALANCED_WEIGHTS_NORM = 5.0
# Of the signal that noise is to leave with gradients, what it is to leave here; chosen likewise.
SIGNAL_SHARE = 0.4


@dataclass(frozen=True)
class OutputPerturbation(_planning.Perturbation):
    """What a fit by output perturbation will do.

    Parameters
    ----------
    C : float
        Inverse regularization strength, as in scikit-learn.
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
    quadratic = 1.0

    def run(self, loss, rows, y, source, start=0.0):
        """Return the noisy minimizer.

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
        objective = LinearObjective(loss, rows, y, self.C, center=start)
        return self.mechanism.release(minimize(objective, self.tolerance), random_state=source)

    def noise_variance(self, curvature=0.0):
        """Return the variance of the noise in a weight, whatever the curvature of the loss."""
        return np.full(np.shape(curvature), self.mechanism.deviation(self.size) ** 2)

    def standard_error(self, shape):
        """Return the standard deviation of the noise in each weight, of the given shape."""
        return np.full(shape, math.sqrt(self.noise_variance()))


def plan_output_perturbation(problem, C, guarantee):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : Problem
    C : float
    guarantee : Guarantee
        Of the release; delta = 0 takes the Gamma-norm mechanism.

    Returns
    -------
    OutputPerturbation

    Raises
    ------
    ValueError
        If epsilon is too small for noise that can be drawn.
    """
    moved = C * problem.lipschitz
    rounding = _gradient_rounding(problem, C)
    noise = vector_noise(guarantee, 1.0).deviation(problem.size)
    # The noise hides the solver's error when that is far below both the noise and what one row
    # moves. A tolerance below four times the rounding error might not be reached.
    tolerance = moved * min(RELATIVE_TOLERANCE, noise / 64.0) + 4.0 * rounding
    moved *= guarantee.neighbors.sensitivity_factor
    sensitivity = (moved + 2.0 * (tolerance + rounding)) * (1.0 + 1e-12)
    mechanism = vector_noise(guarantee, sensitivity)
    mechanism.check_size(problem.size)
    return OutputPerturbation(C=C, tolerance=tolerance, size=problem.size, mechanism=mechanism)


def automatic_C(problem, weights_norm, guarantee):
    r"""Return the C at which regularization and noise are expected to cost least together.

    Weights of norm W lose at most :math:`W^2 / (2C)` in summed loss to the regularizer; noise
    of standard deviation :math:`\sigma(C) = s C` loses about
    :math:`n \kappa R^2 \sigma^2(C) / 2`, where :math:`\kappa` bounds the loss's curvature.
    The sum is least at :math:`C^3 = W^2 / (2 n \kappa R^2 s^2)`.
    """
    curvature = problem.n_rows * problem.smoothness
    noise = _noise(problem, guarantee)
    C = ((weights_norm / noise) ** 2 / (2.0 * curvature)) ** (1.0 / 3.0)
    # Beyond this condition number less regularization buys nothing but rounding errors.
    return min(C, SIGNAL_SHARE * problem.largest_C(noise), _planning.LARGEST_CURVATURE / curvature)


def expected_excess(problem, C, weights_norm, guarantee):
    """Return the summed loss expected above that of weights of norm W, in the quadratic model."""
    noise = C * _noise(problem, guarantee)
    curvature = problem.n_rows * problem.curvature_trace
    return 0.5 * weights_norm**2 / C + 0.5 * curvature * noise * noise


def _noise(problem, guarantee):
    """Return the standard deviation of the noise in a weight, for C = 1."""
    moved = guarantee.neighbors.sensitivity_factor * problem.lipschitz
    return moved * vector_noise(guarantee, 1.0).deviation(problem.size)


def _gradient_rounding(problem, C):
    r"""Bound the rounding error near the minimizer, where :math:`\|w\|^2 \le 2 C n \ell(0)`."""
    summed = C * problem.n_rows
    moved = C * problem.lipschitz
    weights = min(math.sqrt(2.0 * summed * problem.value_at_center), problem.n_rows * moved)
    weights += problem.center
    # The solver stops within its tolerance of the minimizer, which is below what one row moves
    # plus four rounding errors: a linear equation for the rounding error.
    weights += moved
    per_weight = _planning.rounding_per_weight(problem, C)
    sums = _planning.gradient_rounding(problem, C, 0.0)
    return (sums + per_weight * weights) / (1.0 - 4.0 * per_weight)


def check_strength(value, name):
    """Return a regularization strength as a positive float, or None for "auto"."""
    return None if is_auto(value) else check_positive(value, name)
