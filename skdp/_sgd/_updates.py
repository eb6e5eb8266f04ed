"""The loop of noisy gradient steps: learning rates, averages, projections.

What is done with a noisy gradient is post-processing of noisy sums: none of it enters the
guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

LEARNING_RATES = ("constant", "invscaling", "linear")
OPTIMIZERS = ("sgd", "nesterov", "adam")

# Weights, gradients and velocities stay within this, whatever the learning rate and the noise:
# they are always finite.
LARGEST = 1e100

ADAM_SECOND_MOMENT = 0.999
ADAM_LEAST_ROOT = 1e-8


def run_sgd(plan, table, update, start, alpha, source, after_step=None, tie=0.0, persons=None):
    r"""Return the weights after all steps of a plan.

    The objective is the mean loss of a row plus :math:`\tfrac\alpha2 \|w\|^2` over the
    weights of features; the penalty of the constant feature's is that of its distance from the
    start, times `tie`. BLAS runs on one thread
    meanwhile: products are too small for more, and are to be rounded the same way in every step.

    Parameters
    ----------
    plan : SGDPlan
        Charged.
    table : (X, y, loss)
    update : Update
        Of as many steps.
    start : ndarray of shape (..., n_features)
        Weights that do not depend on the rows, or were released.
    alpha : float
    source : RandomSource
        Of the charge.
    after_step : callable, default=None
        Called with the number of steps taken; it sees no iterate.
    tie : float, default=0.0
    persons : Persons, default=None
        Whose the rows are.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the update is for another number of steps.
    """
    if update.n_steps != plan.n_steps:
        raise ValueError(f"an update of {update.n_steps} steps for a plan of {plan.n_steps}")
    features = plan.model.n_columns
    walk = update.begin(np.array(start, dtype=np.float64))
    means = plan.noisy_means(*table, lambda: walk.point, source, persons)
    with threadpool_limits(1, "blas"):
        for taken, gradient in enumerate(means, start=1):
            gradient[..., :features] += alpha * walk.point[..., :features]
            gradient[..., features:] += tie * (walk.point - start)[..., features:]
            walk.step(gradient)
            if after_step is not None:
                after_step(taken)
    return walk.result()


@dataclass(frozen=True)
class Update:
    r"""How weights move: an optimiser with its learning rates, an average and a projection.

    Parameters
    ----------
    optimizer : {"sgd", "nesterov", "adam"}
        "sgd": :math:`v \gets \mu v + g,\ w \gets w - \eta v` (Polyak's heavy ball).
        "nesterov": the gradient is taken at :math:`w + \mu (w - w_{previous})` (Nesterov 1983).
        "adam": Kingma and Ba 2015, with :math:`\beta_1 = \mu, \beta_2 = .999`.
    learning_rate : {"constant", "invscaling", "linear"}
        :math:`\eta_t` in step t = 1 to T: :math:`\eta_0`, :math:`\eta_0 / t^p` or
        :math:`\eta_0 (T + 1 - t) / T`.
    eta0, power_t, momentum : float
        The symbols :math:`\eta_0, p, \mu`.
    n_steps : int
        T.
    n_averaged : int
        The result is the mean of that many last iterates; 1 for the last one itself.
    radius : float
        Weights are projected on the ball of this norm about 0; may be infinite.
    """

    optimizer: str
    learning_rate: str
    eta0: float
    power_t: float
    momentum: float
    n_steps: int
    n_averaged: int
    radius: float = math.inf

    def rate(self, t):
        """Return the learning rate of step t, from 1."""
        if self.learning_rate == "constant":
            return self.eta0
        if self.learning_rate == "invscaling":
            return self.eta0 * t**-self.power_t
        return self.eta0 * (self.n_steps + 1 - t) / self.n_steps

    def begin(self, weights):
        """Return the walk that starts at some weights.

        Its `point` is where the next gradient is to be taken, ``step(gradient)`` moves on and
        ``result()`` is the average.
        """
        return _WALKS[self.optimizer](self, self.bounded(weights))

    def bounded(self, weights):
        """Return the projection of weights on the ball, finite."""
        weights = _finite(weights)
        norm = np.linalg.norm(weights)
        return weights if norm <= self.radius else weights * (self.radius / norm)


class _Walk:
    def __init__(self, update, start):
        self._update, self._taken = update, 0
        self.iterate = self.point = start
        self._average = np.zeros_like(start)

    def step(self, gradient):
        """Move by a gradient taken at `point`."""
        self._taken += 1
        self._move(_finite(gradient), self._update.rate(self._taken))
        first = self._update.n_steps - self._update.n_averaged
        if self._taken > first:
            self._average += (self.iterate - self._average) / (self._taken - first)

    def result(self):
        """Return the mean of the last iterates."""
        return self._average


class _GradientDescent(_Walk):
    _velocity = 0.0

    def _move(self, gradient, rate):
        self._velocity = _finite(self._update.momentum * self._velocity + gradient)
        self.iterate = self.point = self._update.bounded(self.point - rate * self._velocity)


class _NesterovDescent(_Walk):
    def _move(self, gradient, rate):
        previous, self.iterate = self.iterate, self._update.bounded(self.point - rate * gradient)
        ahead = self.iterate + self._update.momentum * (self.iterate - previous)
        self.point = self._update.bounded(ahead)


class _Adam(_Walk):
    _mean = _square = 0.0

    def _move(self, gradient, rate):
        momentum, t = self._update.momentum, self._taken
        self._mean += (1.0 - momentum) * (gradient - self._mean)
        self._square += (1.0 - ADAM_SECOND_MOMENT) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - momentum**t)
        root = np.sqrt(self._square / (1.0 - ADAM_SECOND_MOMENT**t))
        self.iterate = self.point = self._update.bounded(
            self.point - rate * mean / (root + ADAM_LEAST_ROOT)
        )


def _finite(values):
    return np.clip(values, -LARGEST, LARGEST)


_WALKS = {"sgd": _GradientDescent, "nesterov": _NesterovDescent, "adam": _Adam}
