r"""Output perturbation of a certified minimizer (Chaudhuri, Monteleoni and Sarwate 2011).

The objective :math:`J(w) = C \sum_i \ell_i(w) + \tfrac12\|w\|^2` is 1-strongly convex and one
row adds a term whose gradient is at most :math:`C L`, so the minimizers of neighboring
datasets are at most :math:`C L` apart under add/remove and :math:`2 C L` under replace-one. Weights
at which :math:`\|\nabla J\| \le \tau` are within :math:`\tau` of the minimizer. The L2 sensitivity
of the computed weights is therefore :math:`\Delta_2 = m C L + 2\tau` with m = 1 or 2.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._optim._linear_objective import LinearObjective
from skdp._optim._newton import minimize
from skdp.linear_model import _planning
from skdp.mechanisms._plan import vector_noise
from skdp.utils._validation import check_within, is_auto

# Upper bound on the solver's tolerance, relative to a row's gradient.
RELATIVE_TOLERANCE = 2.0**-13

# Norm of the weights, times data_norm, for which C="auto" balances regularization and noise in
# hinge and Poisson models. Tuned on Adult (train).
BALANCED_WEIGHTS_NORM = 5.0
# Target signal-to-noise ratio, relative to gradient perturbation. Tuned on Adult (train).
SIGNAL_FRACTION = 0.4
# Smallest regularization strength; its inverse is finite.
MIN_C = 1e-300


@dataclass(frozen=True)
class OutputPerturbation(_planning.PrivateSolver):
    """The plan of a fit by output perturbation.

    Parameters
    ----------
    C : float
        Inverse regularization strength, as in scikit-learn.
    tolerance : float
        Norm of the computed gradient at which the solver stops.
    size : int
        Number of weights.
    mechanism : GaussianMechanism or GammaNormMechanism
        Mechanism that releases the weights.
    """

    C: float
    tolerance: float
    size: int
    mechanism: object
    quadratic = 1.0
    choice = "output"

    def run(self, loss, rows, y, source, start=0.0):
        """Return the noisy minimizer.

        Parameters
        ----------
        loss : BoundedLoss
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource
        start : ndarray, default=0.0
            Weights that regularization shrinks to.

        Returns
        -------
        ndarray
        """
        objective = LinearObjective(loss, rows, y, self.C, baseline=start)
        return self.mechanism.release(minimize(objective, self.tolerance), random_state=source)

    def noise_variance(self, curvature=0.0):
        """Return the variance of the noise in a weight, which does not depend on the curvature."""
        return np.full(np.shape(curvature), self.mechanism.deviation(self.size) ** 2)

    def standard_error(self, shape):
        """Return the standard deviation of the noise in each weight, in an array of this shape."""
        return np.full(shape, self.mechanism.deviation(self.size))


def plan_output_perturbation(problem, C, guarantee):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : PerturbationProblem
    C : float
    guarantee : Guarantee
        Guarantee of the release. With delta = 0, the release uses the Gamma-norm mechanism.

    Returns
    -------
    OutputPerturbation

    Raises
    ------
    ValueError
        If epsilon is so small that the noise cannot be sampled.
    """
    distance = C * problem.lipschitz
    rounding = _gradient_rounding(problem, C)
    relative_noise = vector_noise(guarantee, 1.0).deviation(problem.size)
    # The solver's error is negligible if it is far below both the noise and the effect of one row.
    # A tolerance below four rounding errors may be out of reach.
    tolerance = distance * min(RELATIVE_TOLERANCE, relative_noise / 64.0) + 4.0 * rounding
    distance *= guarantee.neighbors.sensitivity_factor
    sensitivity = (distance + 2.0 * (tolerance + rounding)) * (1.0 + 1e-12)
    mechanism = vector_noise(guarantee, sensitivity)
    mechanism.check_size(problem.size)
    return OutputPerturbation(C=C, tolerance=tolerance, size=problem.size, mechanism=mechanism)


def automatic_C(problem, weights_norm, guarantee):
    r"""Return the C that minimizes the expected excess loss due to regularization and noise.

    For weights of norm W the regularizer increases the summed loss by at most
    :math:`W^2 / (2C)`. Noise of standard deviation :math:`\sigma(C) = s C` increases it by about
    :math:`n \kappa R^2 \sigma^2(C) / 2`, where :math:`\kappa` bounds the loss's curvature. The sum
    is minimal at :math:`C^3 = W^2 / (2 n \kappa R^2 s^2)`.
    """
    curvature = problem.n_rows * problem.smoothness
    noise = _noise(problem, guarantee)
    C = ((weights_norm / noise) ** 2 / (2.0 * curvature)) ** (1.0 / 3.0)
    # Beyond this condition number, reducing the regularization only adds rounding errors.
    C = min(C, SIGNAL_FRACTION * problem.max_C(noise), _planning.MAX_CURVATURE / curvature)
    # C underflows for the longest rows and targets, whose plan is refused.
    return max(C, MIN_C)


def expected_excess(problem, C, weights_norm, guarantee):
    """Return the expected excess loss, summed over rows, relative to weights of norm W."""
    noise = C * _noise(problem, guarantee)
    curvature = problem.n_rows * problem.curvature_trace
    return 0.5 * weights_norm**2 / C + 0.5 * curvature * noise * noise


def _noise(problem, guarantee):
    """Return the standard deviation of the noise in a weight for C = 1."""
    sensitivity = guarantee.neighbors.sensitivity_factor * problem.lipschitz
    return sensitivity * vector_noise(guarantee, 1.0).deviation(problem.size)


def _gradient_rounding(problem, C):
    r"""Return an upper bound on the gradient's rounding error near the minimizer.

    There :math:`\|w\|^2 \le 2 C n \ell(0)`.
    """
    summed = C * problem.n_rows
    distance = C * problem.lipschitz
    norm_by_value = math.sqrt(2.0 * summed * problem.value_at_baseline)
    weights_norm = min(norm_by_value, problem.n_rows * distance)
    weights_norm += problem.baseline_norm
    # The solver stops within its tolerance of the minimizer, and the tolerance is at most the
    # effect of one row plus four rounding errors. The rounding error thus solves a linear equation.
    weights_norm += distance
    per_weight = _planning.rounding_per_weight(problem, C)
    at_zero = _planning.gradient_rounding(problem, C, 0.0)
    return (at_zero + per_weight * weights_norm) / (1.0 - 4.0 * per_weight)


def check_reg_strength(value, name):
    """Return a regularization strength from 1e-300 to 1e100 as a float, or None if it is "auto".

    The inverse of its product with the number of rows does not underflow.
    """
    if is_auto(value):
        return None
    return check_within(value, name, MIN_C, 1e100)
