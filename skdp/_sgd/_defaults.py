r"""What "auto" stands for: settings of a run from public quantities alone.

The rule is written down in ``docs/dp_sgd.md``, section 2. It balances the noise of a whole run,
which acts like that of one release of the mean gradient, against regularization, and takes as
many steps as the condition number asks for.
"""

import math
from dataclasses import dataclass, replace

from skdp._sgd._linear_check import LinearCheck
from skdp.accounting import Guarantee, gaussian_noise_multiplier
from skdp.utils._values import FrozenValue

# Constants of the rule, chosen with the benchmarks' tables in view.
LARGEST_L1_OVER_L2 = 4.0
STEPS_PER_ROOT = 4.0
LAPLACE_STEPS_PER_ROOT = 2.5
FEWEST_STEPS = 4
MOST_STEPS = 20_000
FEWEST_STEPS_TO_SAVE_TIME = 25
STEPS_FOR_AUTOMATIC_ALPHA = 1000
# Of the bound on it, at the end of a run: rows whose gradient is clipped have none.
USUAL_CURVATURE = 0.25
# The constant feature need not be quicker: it starts at the center.
LARGEST_CONDITION_OF_CONSTANT = 2500.0
# How many values of X a run may read: a few seconds' worth.
READ_VALUES = 2e9
SMALLEST_BATCH = 256
DEFAULT_PASSES = 10
ADAM_RATE = 0.005
ADAM_MOMENTUM = 0.9
# What part of the targets chance may explain, for rows in all directions alike, where it is
# subtracted in a check.
LARGEST_CHANCE = 0.2


@dataclass(frozen=True)
class Task(FrozenValue):
    """A loss, with the public quantities that settings follow from.

    Parameters
    ----------
    loss : loss
    slope : float
        The bound on the norm of a residual, or a typical one. Of a `Problem` it is that at which
        residuals are clipped.
    curvature : float
        The bound on the loss's curvature by a score.
    weights_norm : float
        The expected norm of the weights, times that of rows.
    signal : float, default=inf
        The expected variance of scores, times the curvature. A finite one makes the penalty grow
        with the square of the noise where there is much, so that weights end near 0 there.
    least_clip : float, default=1.0
        The share of the slope at which residuals are clipped; it grows where there is less noise
        on the mean gradient than `knee`, in units of its bound.
    knee : float, default=0.0
    checked : float, default=0.0
        The residual at which the last steps' gains are clipped; 0 leaves them out.
    usual_curvature : float, default=1.0
        Of the loss, where gains are released.
    null_decrease_factor : float, default=1.5
        How often the decrease of the loss that chance explains is subtracted in a check.
    spread_from : {"residuals", "curvature", None}, default=None
        How a check finds the spread of rows along weights; see `LinearCheck`.
    least_kept : float, default=0.0
        What is kept of the weights in any case; if it is positive, weights that start at no center
        are not checked.
    """

    loss: object
    slope: float
    curvature: float
    weights_norm: float
    signal: float = math.inf
    least_clip: float = 1.0
    knee: float = 0.0
    checked: float = 0.0
    usual_curvature: float = 1.0
    null_decrease_factor: float = 1.5
    spread_from: str | None = None
    least_kept: float = 0.0

    @property
    def n_outputs(self):
        return math.prod(self.loss.weights_shape)

    def check(self, norm, n_features, n_rows, alpha):
        """Return the check of weights that were fitted under a penalty, in one step or in none.

        How much weights explain by chance is known where that is little. Where there are about as
        many directions as rows no formula holds: nothing is subtracted, and the check holds back
        what noise has made alone.
        """
        outputs = self.n_outputs
        row_curvature = self.usual_curvature * norm**2
        check = LinearCheck(
            n_steps=int(bool(self.checked) and n_features * outputs > 2),
            norm=norm * math.sqrt(outputs),
            residual=self.checked,
            chance=0.0,
            least_kept=self.least_kept,
            null_decrease_factor=self.null_decrease_factor,
            n_rows=n_rows,
            n_features=n_features,
            row_curvature=row_curvature,
            curvature=self.usual_curvature,
            alpha=alpha,
            spread_from=self.spread_from,
            largest_curvature=max(self.curvature, self.usual_curvature),
        )
        if check.degrees(1.0) > LARGEST_CHANCE * n_rows:
            return replace(check, null_decrease_factor=0.0)
        return check


@dataclass(frozen=True, kw_only=True)
class Problem(FrozenValue):
    """What is public of a run.

    Parameters
    ----------
    task : Task
    n_rows, n_columns : int
    norm : float
        The expected norm of a row, its constant feature included.
    guarantee : Guarantee
    constant : float, default=0.0
        The constant feature, where steps are to be enough for it under a large penalty too.
    center_deviation : float, default=inf
        The standard deviation of the score at which the constant feature's weights start.
    """

    task: Task
    n_rows: int
    n_columns: int
    norm: float
    guarantee: Guarantee
    constant: float = 0.0
    center_deviation: float = math.inf

    # It decides the law of the noise and what is clipped.
    @property
    def delta(self):
        return self.guarantee.delta

    # The number of features, the constant one included.
    @property
    def n_features(self):
        return self.n_columns + (self.constant > 0)

    # The number of weights.
    @property
    def size(self):
        return self.task.n_outputs * self.n_features

    # The number of weights, one constant feature included.
    @property
    def most_weights(self):
        return (self.n_columns + 1) * self.task.n_outputs

    @property
    def curvature(self):
        """The bound on the loss's curvature by the weights, for rows of the norm."""
        return self.task.curvature * self.norm**2

    def condition(self, alpha, tie):
        """Return the condition number under a penalty; the constant feature has the tie."""
        largest = self.curvature + alpha
        unpenalized = tie + USUAL_CURVATURE * self.task.curvature * self.constant**2
        of_constant = largest / unpenalized if self.constant else 0.0
        return max(largest / alpha, min(of_constant, LARGEST_CONDITION_OF_CONSTANT))


@dataclass(frozen=True)
class Settings(FrozenValue):
    """Everything that a run needs to know; None is for the rule to decide.

    Parameters
    ----------
    optimizer : str
    sampling : str, default=None
    batch_size, max_iter : int, default=None
        `max_iter` counts passes over as many rows as the table has.
    clip, alpha, eta0, momentum : float, default=None
    tie : float, default=None
        The strength at which the constant feature's weights are held to where they start.
    """

    optimizer: str
    sampling: str | None = None
    batch_size: int | None = None
    max_iter: int | None = None
    clip: float | None = None
    alpha: float | None = None
    eta0: float | None = None
    momentum: float | None = None
    tie: float | None = None

    def n_steps(self, n_rows):
        """Return how many batches make `max_iter` passes."""
        return -(-self.max_iter * n_rows // self.batch_size)


def automatic_settings(problem, given):
    """Return settings with everything decided.

    Parameters
    ----------
    problem : Problem
    given : Settings
        What is not None stays.

    Returns
    -------
    Settings
    """
    clip = _clip(problem) if given.clip is None else given.clip
    strength, tie, n_steps = _balance(problem, clip, given)
    alpha = strength if given.alpha is None else given.alpha
    batches = _batches(problem, given, n_steps)
    stronger = max(strength, alpha)
    condition = problem.condition(stronger, tie)
    momentum = _momentum(given.optimizer, condition) if given.momentum is None else given.momentum
    rate = _rate(given.optimizer, problem, problem.curvature + stronger, momentum)
    eta0 = rate if given.eta0 is None else given.eta0
    return Settings(given.optimizer, *batches, clip, alpha, eta0, momentum, tie)


def _tie(problem, given, strength, noise):
    """Return the given tie, or the one that weighs the start against noisy gradients.

    A start of variance s² in the score and gradients of variance t² are best together where it is
    t² over s² and the curvature.
    """
    if given.tie is not None or problem.center_deviation == math.inf:
        return given.tie or 0.0
    return min(strength, (noise / problem.center_deviation) ** 2 / problem.task.curvature)


def _clip(problem):
    clip = problem.task.slope * problem.norm
    if problem.delta > 0.0:
        return clip
    return clip * min(math.sqrt(problem.most_weights), LARGEST_L1_OVER_L2)


def _balance(problem, clip, given):
    """Return the strengths of the penalty and the tie that balance the noise, and the steps."""
    weights_norm = problem.task.weights_norm / problem.norm
    pure = problem.delta == 0.0
    per_root = LAPLACE_STEPS_PER_ROOT if pure else STEPS_PER_ROOT
    most = _most_steps(problem, given)
    least = problem.curvature / (min(most, STEPS_FOR_AUTOMATIC_ALPHA) / per_root) ** 2
    n_steps = FEWEST_STEPS
    # The noise of Laplace steps grows with their number, and that falls with the noise.
    for _ in range(30 if pure else 1):
        noise = release_noise(problem, clip, n_steps) * math.sqrt(problem.most_weights)
        strength = max(noise / weights_norm + noise**2 / problem.task.signal, least)
        stronger = max(strength, given.alpha or 0.0)
        steps = per_root
        if given.alpha is not None:
            # Where the noise is smaller than a given alpha's bias, so must be what steps leave.
            most_biased = min(stronger, problem.curvature)
            steps += 2.0 * max(0.0, math.log(most_biased) - math.log(noise / weights_norm))
        tie = _tie(problem, given, strength, noise / math.sqrt(problem.most_weights))
        n_steps = math.ceil(steps * math.sqrt(problem.condition(stronger, tie)))
        n_steps = min(max(n_steps, FEWEST_STEPS), most)
    return strength, tie, n_steps


def _most_steps(problem, given):
    """Return how many steps are affordable where smaller batches would not make up for them."""
    if problem.delta > 0.0 or (given.sampling, given.batch_size, given.max_iter) != (None,) * 3:
        return MOST_STEPS
    values = problem.n_rows * problem.n_columns * problem.task.n_outputs
    return min(max(int(2.0 * READ_VALUES / values), FEWEST_STEPS_TO_SAVE_TIME), MOST_STEPS)


def release_noise(problem, clip, n_steps):
    """Return the standard deviation, on a mean gradient, of one release worth the whole run."""
    scale = problem.guarantee.neighbors.sensitivity_factor * clip / problem.n_rows
    if problem.delta > 0.0:
        return scale * gaussian_noise_multiplier(problem.guarantee.epsilon, problem.delta)
    # T Laplace steps of epsilon / T, averaged.
    return scale * math.sqrt(2.0 * n_steps) / problem.guarantee.epsilon


def _batches(problem, given, n_steps):
    """Return (sampling, batch size, passes) for a number of steps."""
    n = problem.n_rows
    size = given.batch_size
    sampling = given.sampling
    if sampling is None:
        affordable = READ_VALUES / (problem.n_columns * problem.task.n_outputs * n_steps)
        pure = problem.delta == 0.0
        if size is None and given.max_iter is None and affordable < 0.5 * n and not pure:
            size = min(max(math.ceil(affordable), SMALLEST_BATCH), n)
        partial = "without_replacement" if pure else "poisson"
        sampling = "full" if size is None or size == n else partial
    if sampling == "full":
        return sampling, n, given.max_iter or n_steps
    if size is None:
        passes = given.max_iter or DEFAULT_PASSES
        size = min(max(math.ceil(passes * n / n_steps), SMALLEST_BATCH), n)
    return sampling, size, given.max_iter or max(1, round(n_steps * size / n))


def _momentum(optimizer, condition):
    if optimizer == "adam":
        return ADAM_MOMENTUM
    root = math.sqrt(condition)
    return (root - 1.0) / (root + 1.0) if optimizer == "nesterov" else 0.0


def _rate(optimizer, problem, smoothness, momentum):
    if optimizer == "adam":
        return ADAM_RATE * problem.task.weights_norm / problem.norm
    return (1.0 if optimizer == "nesterov" else 1.0 - momentum) / smoothness
