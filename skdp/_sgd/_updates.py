"""The loop of noisy gradient steps: learning rates, averages, projections.

What is done with a noisy gradient is post-processing of noisy sums: none of it enters the
guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._sgd._clipped_sums import LENGTH_OF_GAINS, PART_OF_SPREAD
from skdp.utils._one_thread import one_thread
from skdp.utils._values import FrozenValue

LEARNING_RATES = ("constant", "invscaling", "linear")

# Weights, gradients and velocities stay within this, whatever the learning rate and the noise:
# they are always finite.
LARGEST = 1e100

ADAM_SECOND_MOMENT = 0.999
ADAM_LEAST_ROOT = 1e-8


# Of a usual move of a score, at which it is clipped in a check.
USUAL_MOVES = 0.5
LEAST_MOVE = 1e-200
# Weights whose best length is this part of their own are kept as they are.
ALL = 0.8


@dataclass(frozen=True)
class Check(FrozenValue):
    """How far weights are better than the start of a run, from its last steps.

    Parameters
    ----------
    n_steps : int
        How many release gains in the place of gradients.
    norm : float
        Usual of a row.
    residual : float
        Residuals are clipped at it.
    chance : float
        What part of the variance of targets weights are expected to explain by chance.
    least_kept : float, default=0.0
    null_decrease_factor : float, default=1.0
        How often the decrease of the loss that chance explains is subtracted.
    """

    n_steps: int
    norm: float
    residual: float
    chance: float
    least_kept: float = 0.0
    null_decrease_factor: float = 1.0

    def chance_of(self, gains, moved):
        """Return the part of the residuals' variance that weights are expected to explain.

        Parameters
        ----------
        gains : (float, float, float)
            Released means over the rows: of the two products of moves and residuals, and of the
            squared residuals, in units of where they are clipped.
        moved : ndarray
        """
        return self.chance

    def units(self, moved):
        """Return the moves of scores and the residuals at which gains are clipped."""
        usual = self.norm * math.sqrt(np.mean(moved**2))
        return max(USUAL_MOVES * usual, LEAST_MOVE), self.residual

    def kept(self, gains, moved, noise=0.0):
        """Return the share of the move that explains more than chance and noise do.

        Parameters
        ----------
        gains : ndarray
            Whose first values are what `sum_gains` returns, with noise.
        moved : ndarray
            The weights' move.
        noise : float, default=0.0
            What is subtracted besides.
        """
        first, last, spread = np.ravel(gains)[:3].tolist()
        move, residual = self.units(moved)
        unexplained = max(spread * (residual / move / PART_OF_SPREAD) - first, 0.0)
        chance = self.chance_of((first, last, spread / PART_OF_SPREAD), moved)
        earned = max(first - self.null_decrease_factor * chance * unexplained - noise, 0.0)
        return max(self.least_kept, earned / max(ALL * (first + last), earned, LEAST_MOVE))


NO_CHECK = Check(0, 1.0, 1.0, 0.0)


def run_sgd(plan, sums, update, start, alpha, source, after_step=None, tie=0.0, check=NO_CHECK):
    r"""Return the weights after all steps of a plan.

    The objective is the mean loss of a row plus :math:`\tfrac\alpha2 \|w\|^2` over the
    weights of features; the penalty of the constant feature's is that of its distance from the
    start, times `tie`. BLAS runs on one thread
    meanwhile: products are too small for more, and are to be rounded the same way in every step.

    Parameters
    ----------
    plan : SGDPlan
        Charged.
    sums : ClippedSums
        Of the table.
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
    check : Check, default=NO_CHECK
        Moves the weights back towards the start, unless they are better by the last steps.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the update and the check are for another number of steps.
    """
    if update.n_steps + check.n_steps != plan.n_steps:
        raise ValueError(f"an update of {update.n_steps} steps for a plan of {plan.n_steps}")
    features = plan.problem.n_columns
    walk = update.begin(np.array(start, dtype=np.float64))
    gains = 0.0

    def next_sum(rows):
        if walk.taken < update.n_steps:
            return sums.sums(walk.point, rows)
        weights = walk.average
        return sums.gains(start, weights, rows, check.units(weights - start))

    means = plan.noisy_means(next_sum, source)
    with one_thread():
        for taken, gradient in enumerate(means, start=1):
            if taken <= update.n_steps:
                gradient[..., :features] += alpha * walk.point[..., :features]
                gradient[..., features:] += tie * (walk.point - start)[..., features:]
                walk.step(gradient)
            else:
                gains += gradient
            if after_step is not None:
                after_step(taken)
    if not check.n_steps:
        return walk.average
    moved = walk.average - start
    # The sums of the steps, as means over the rows; see `ClippedSums.gains`.
    gains *= LENGTH_OF_GAINS[plan.norm] / (plan.clip * check.n_steps)
    return start + check.kept(gains, moved) * moved


@dataclass(frozen=True)
class Update(FrozenValue):
    r"""How weights move: an optimizer with its learning rates, an average and a projection.

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
        `average` is the mean of the last iterates.
        """
        return OPTIMIZERS[self.optimizer](self, self.bounded(weights))

    def bounded(self, weights):
        """Return the projection of weights on the ball, finite."""
        weights = _finite(weights)
        norm = np.linalg.norm(weights)
        return weights if norm <= self.radius else weights * (self.radius / norm)


class _Walk:
    def __init__(self, update, start):
        self._update = update
        self.taken = 0
        self.iterate = self.point = start
        self.average = np.zeros_like(start)

    def step(self, gradient):
        """Move by a gradient taken at `point`."""
        self.taken += 1
        self._move(_finite(gradient), self._update.rate(self.taken))
        first = self._update.n_steps - self._update.n_averaged
        if self.taken > first:
            self.average += (self.iterate - self.average) / (self.taken - first)


class _GradientDescent(_Walk):
    _velocity = 0.0

    def _move(self, gradient, rate):
        self._velocity = _finite(self._update.momentum * self._velocity + gradient)
        self.iterate = self.point = self._update.bounded(self.point - rate * self._velocity)


class _NesterovDescent(_Walk):
    def _move(self, gradient, rate):
        previous = self.iterate
        self.iterate = self._update.bounded(self.point - rate * gradient)
        ahead = self.iterate + self._update.momentum * (self.iterate - previous)
        self.point = self._update.bounded(ahead)


class _Adam(_Walk):
    _mean = _square = 0.0

    def _move(self, gradient, rate):
        momentum = self._update.momentum
        t = self.taken
        self._mean += (1.0 - momentum) * (gradient - self._mean)
        self._square += (1.0 - ADAM_SECOND_MOMENT) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - momentum**t)
        root = np.sqrt(self._square / (1.0 - ADAM_SECOND_MOMENT**t))
        self.iterate = self.point = self._update.bounded(
            self.point - rate * mean / (root + ADAM_LEAST_ROOT)
        )


def _finite(values):
    return np.clip(values, -LARGEST, LARGEST)


OPTIMIZERS = {"sgd": _GradientDescent, "nesterov": _NesterovDescent, "adam": _Adam}
