r"""Noisy accelerated gradient descent on all rows (Bassily, Smith and Thakurta 2014).

Each of T steps releases the summed gradient of the loss with Gaussian noise of multiplier
:math:`z \sqrt T`; together they cost exactly what one release of multiplier z costs. Rows have
bounded norm, so that no gradient needs clipping. The steps are Nesterov's for a strongly convex
and smooth objective (2004, section 2.2), and the iterates of the last half are averaged.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting import gaussian_noise_multiplier
from skdp.linear_model._objective import loss_gradient
from skdp.linear_model._planning import (
    EXPECTED_WEIGHTS_NORM,
    Perturbation,
    gradient_rounding,
    quadratic_excess,
    rounding_per_weight,
)
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import Price

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
class GradientPerturbation(Perturbation):
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
    mechanism : Price
        The price of all steps, the noise and the sensitivity of one.
    """

    C: float
    n_steps: int
    step_size: float
    momentum: float
    radius: float
    step: GaussianMechanism
    mechanism: Price
    quadratic = 1.0

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


def plan_gradient_perturbation(problem, C, guarantee):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : Problem
    C : float
    guarantee : Guarantee
        Of the fit; delta must be positive.

    Returns
    -------
    GradientPerturbation
    """
    rounding_per_weight(problem, C)
    multiplier = gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
    moved = guarantee.neighbours.rows_moved * problem.lipschitz
    smoothness = 1.0 + C * problem.n_rows * problem.smoothness
    noise = C * moved * multiplier * math.sqrt(problem.size)
    n_steps = _n_steps(smoothness, noise * problem.norm / EXPECTED_WEIGHTS_NORM)
    # The minimiser is inside: its objective is at most that of zero weights.
    radius = math.sqrt(2.0 * C * problem.n_rows * problem.loss.value_at_zero())
    radius += 1.0 / problem.norm
    rounding = gradient_rounding(problem, 1.0, radius, penalised=False)
    sensitivity = (moved + 2.0 * rounding) * (1.0 + SLACK)
    each = multiplier * math.sqrt(n_steps) * (1.0 + SLACK)
    step = GaussianMechanism(guarantee.epsilon, guarantee.delta, sensitivity, noise_multiplier=each)
    step.check_size(problem.size)
    price = Price(
        name="Noisy gradient descent, Gaussian noise",
        event=step.event * n_steps,
        guarantee=guarantee,
        scale=step.scale,
        sensitivity=sensitivity,
    )
    root = math.sqrt(smoothness)
    momentum = (root - 1.0) / (root + 1.0)
    return GradientPerturbation(C, n_steps, 1.0 / smoothness, momentum, radius, step, price)


def _n_steps(smoothness, noise):
    """Return how many steps leave a bias below the noise, relative to the weights."""
    per_root = STEPS_PER_ROOT + 2.0 * max(0.0, -math.log(noise))
    return min(math.ceil(per_root * math.sqrt(smoothness)), MOST_STEPS)


def gradient_C(problem, weights_norm, guarantee):
    """Return the C for which `expected_excess` is least, within a number of steps."""
    noise = _noise(problem, guarantee)
    condition = (STEPS_FOR_AUTOMATIC_C / STEPS_PER_ROOT) ** 2
    high = math.log((condition - 1.0) / (problem.n_rows * problem.smoothness))

    def excess(log_C):
        return _excess(problem, math.exp(log_C), weights_norm, noise)

    return math.exp(minimize_scalar(excess, bounds=(high - 25.0, high), method="bounded").x)


def expected_excess(problem, C, weights_norm, guarantee):
    r"""Return the summed loss expected above that of weights of norm W, in the quadratic model.

    The regulariser costs at most :math:`W^2 / (2C)`, and the noise at most twice what a
    minimiser under one release of noise on the gradient costs.
    """
    return _excess(problem, C, weights_norm, _noise(problem, guarantee))


def _noise(problem, guarantee):
    """Return the standard deviation of noise on the summed gradient, released once."""
    moved = guarantee.neighbours.rows_moved * problem.lipschitz
    return moved * gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)


def _excess(problem, C, weights_norm, noise):
    return quadratic_excess(problem, 1.0 / C, weights_norm, math.sqrt(NOISE_FACTOR) * noise)
