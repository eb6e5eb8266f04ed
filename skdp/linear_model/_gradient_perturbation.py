r"""Noisy accelerated gradient descent on all rows (Bassily, Smith and Thakurta 2014).

Each of T steps releases the summed gradient of the loss with Gaussian noise of multiplier
:math:`z \sqrt T`; together they cost exactly what one release of multiplier z costs. Rows have
bounded norm, so that no gradient needs clipping. The steps are Nesterov's for a strongly convex
and smooth objective (2004, section 2.2), and the iterates of the last half are averaged.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting import gaussian_noise_multiplier
from skdp.linear_model._objective import loss_gradient
from skdp.linear_model._planning import (
    EXPECTED_WEIGHTS_NORM,
    ROWS_MOVED,
    FitCost,
    gradient_noise_cost,
)
from skdp.linear_model._rounding import gradient_rounding, rounding_per_weight
from skdp.mechanisms import GaussianMechanism

__all__ = ["GradientPerturbation", "expected_excess", "gradient_C", "plan_gradient_perturbation"]

# Steps over the root of the condition number: the bias that is left is about exp(-2), and less
# where the noise is so small that it would show.
STEPS_PER_ROOT = 4.0
MOST_STEPS = 20_000
# C="auto" takes no more steps than this before the noise is small.
STEPS_FOR_AUTOMATIC_C = 1000
# The noise that reaches averaged weights, over that of one release of the gradient at the
# minimiser, is at most this in the quadratic model.
NOISE_FACTOR = 2.0
SLACK = 1e-12
RESPONSE_BLOCK = 256


@dataclass(frozen=True)
class GradientPerturbation:
    """What a fit by noisy gradient descent will do.

    Parameters
    ----------
    C : float
        Inverse regularisation strength, as in scikit-learn.
    n_steps : int
    step_size, momentum : float
        For the objective in scikit-learn's scaling.
    radius : float
        Gradients are taken at weights of at most this norm.
    step : GaussianMechanism
        The release of each gradient.
    mechanism : FitCost
        The price of all steps, the noise and the sensitivity of one.
    """

    C: float
    n_steps: int
    step_size: float
    momentum: float
    radius: float
    step: GaussianMechanism
    mechanism: FitCost
    quadratic: ClassVar[float] = 1.0

    @property
    def sampler(self):
        return f"all rows, in each of {self.n_steps} steps"

    def run(self, loss, rows, y, source):
        """Return the average of the noisy iterates of the last half.

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
        point = previous = np.zeros((*loss.weights_shape, rows.n_features))
        average, first = np.zeros_like(point), self.n_steps // 2
        for step in range(self.n_steps):
            gradient = loss_gradient(loss, rows, y, point)
            gradient = self.step.release(gradient, random_state=source)
            current = point - self.step_size * (self.C * gradient + point)
            point = current + self.momentum * (current - previous)
            point /= max(1.0, np.linalg.norm(point) / self.radius)
            previous = current
            if step >= first:
                average += (current - average) / (step - first + 1)
        return average

    def noise_variance(self, curvature):
        """Return the variance of the noise in the weights, where the summed loss has a curvature.

        It is exact for a quadratic loss: how far the noise of each step moves each later iterate.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian.

        Returns
        -------
        ndarray
        """
        variance = np.empty(len(curvature))
        for start in range(0, len(curvature), RESPONSE_BLOCK):
            block = slice(start, start + RESPONSE_BLOCK)
            variance[block] = self._noise_variance(np.asarray(curvature[block]))
        return variance

    def _noise_variance(self, curvature):
        # summed[l] is what one step's noise adds to the sum of the iterates up to l steps later.
        summed = np.zeros((self.n_steps + 1, len(curvature)))
        for step, response in enumerate(self._responses(curvature)):
            summed[step + 1] = summed[step] + response
        first = self.n_steps // 2
        averaged = summed[:0:-1].copy()
        averaged[:first] -= summed[first:0:-1]
        averaged *= self.step.scale / (self.n_steps - first)
        return np.sum(averaged**2, axis=0)

    def _responses(self, curvature):
        """Yield what a step's noise of size 1 adds to the iterates, from the next on."""
        kept = 1.0 - self.step_size * (self.C * curvature + 1.0)
        current, previous = np.full(len(kept), self.step_size * self.C), 0.0
        for _ in range(self.n_steps):
            yield current
            point = current + self.momentum * (current - previous)
            previous, current = current, kept * point

    def lengthening(self, curvature, norm):
        r"""Return by which share noise in the iterates lengthens their average, about.

        Iterates whose scores vary by :math:`s^2` see the loss blurred. A logistic slope blurred by
        a Gaussian is about that of scores divided by :math:`\sqrt{1 + \pi s^2 / 8}` (Spiegelhalter
        and Lauritzen 1990), and so the iterates are longer by that factor where it vanishes.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian, at least 0.
        norm : float
            The bound on a row's norm; shorter rows have a smaller s².

        Returns
        -------
        float
        """
        total = np.sum(curvature)
        if total == 0.0:
            return 0.0
        spread = sum(response**2 for response in self._responses(curvature)) * self.step.scale**2
        variance = norm**2 * float(curvature @ spread) / total
        return math.sqrt(1.0 + math.pi * variance / 8.0) - 1.0

    def standard_error(self, shape):
        """Return None: how the noise reaches the weights depends on the data."""
        return None


def plan_gradient_perturbation(loss, n_rows, n_features, norm, C, epsilon, delta, relation):
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
        The guarantee of the fit; delta must be positive.
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    GradientPerturbation
    """
    rounding_per_weight(loss, n_rows, n_features, norm, C)
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    moved = ROWS_MOVED[relation] * loss.slope_bound * norm
    smoothness = 1.0 + C * n_rows * loss.curvature_bound * norm**2
    size = math.prod(loss.weights_shape) * n_features
    noise = C * moved * multiplier * math.sqrt(size)
    n_steps = _n_steps(smoothness, noise * norm / EXPECTED_WEIGHTS_NORM)
    # The minimiser is inside: its objective is at most that of zero weights.
    radius = math.sqrt(2.0 * C * n_rows * loss.value_at_zero()) + 1.0 / norm
    rounding = gradient_rounding(loss, n_rows, n_features, norm, 1.0, radius, penalised=False)
    sensitivity = (moved + 2.0 * rounding) * (1.0 + SLACK)
    each = multiplier * math.sqrt(n_steps) * (1.0 + SLACK)
    step = GaussianMechanism(epsilon, delta, sensitivity, noise_multiplier=each)
    step.check_size(size)
    cost = FitCost(
        name="Noisy gradient descent, Gaussian noise",
        event=step.event * n_steps,
        epsilon=epsilon,
        delta=delta,
        scale=step.scale,
        sensitivity=sensitivity,
    )
    root = math.sqrt(smoothness)
    momentum = (root - 1.0) / (root + 1.0)
    return GradientPerturbation(C, n_steps, 1.0 / smoothness, momentum, radius, step, cost)


def _n_steps(smoothness, noise):
    """Return how many steps leave a bias below the noise, relative to the weights."""
    per_root = STEPS_PER_ROOT + 2.0 * max(0.0, -math.log(noise))
    return min(math.ceil(per_root * math.sqrt(smoothness)), MOST_STEPS)


def gradient_C(loss, n_rows, n_features, norm, weights_norm, epsilon, delta, relation):
    """Return the C for which `expected_excess` is least, within a number of steps."""
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    condition = (STEPS_FOR_AUTOMATIC_C / STEPS_PER_ROOT) ** 2
    high = math.log((condition - 1.0) / (n_rows * loss.curvature_bound * norm**2))
    table = loss, n_rows, n_features, norm

    def excess(log_C):
        return _excess(*table, math.exp(log_C), weights_norm, multiplier, relation)

    return math.exp(minimize_scalar(excess, bounds=(high - 25.0, high), method="bounded").x)


def expected_excess(loss, n_rows, n_features, norm, C, weights_norm, epsilon, delta, relation):
    r"""Return the summed loss expected above that of weights of norm W, in the quadratic model.

    The regulariser costs at most :math:`W^2 / (2C)`, and the noise at most twice what a
    minimiser under one release of noise on the gradient costs.
    """
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    return _excess(loss, n_rows, n_features, norm, C, weights_norm, multiplier, relation)


def _excess(loss, n_rows, n_features, norm, C, weights_norm, multiplier, relation):
    noise = ROWS_MOVED[relation] * loss.slope_bound * norm * multiplier
    cost = NOISE_FACTOR * gradient_noise_cost(loss, n_rows, n_features, norm, 1.0 / C)
    return 0.5 * weights_norm**2 / C + cost * noise * noise
