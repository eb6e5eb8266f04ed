r"""Automatic settings for a run of noisy gradient steps, among them the number of steps.

All are computed from public quantities alone. The rule is described in ``docs/theory/dp_sgd.md``,
section 2. It balances regularization against the noise of the whole run, which acts like the noise
of one release of the mean gradient. The number of steps follows from the condition number.
"""

import math
from dataclasses import dataclass, replace

from skdp._optim._linear_shrinkage import LinearShrinkageRule
from skdp._optim._whitened_rows import SAFETY, WHITENED_NORM
from skdp.accounting import Guarantee, gaussian_noise_multiplier
from skdp.utils._values import FrozenValue

# Constants of the rule, tuned on the tables of docs/benchmarks.
# With delta = 0, upper bound on the ratio of the L1 clip to the L2 clip.
MAX_L1_OVER_L2 = 4.0
# Steps per square root of the condition number, for Gaussian and for Laplace noise.
STEPS_PER_ROOT = 4.0
LAPLACE_STEPS_PER_ROOT = 2.5
# Bounds on the number of steps; the second is for tables that are slow to read.
MIN_STEPS = 4
MIN_STEPS_OF_LARGE_TABLES = 25
MAX_STEPS = 20_000
# An automatic penalty is large enough for this number of steps to minimize the objective.
STEPS_FOR_AUTOMATIC_ALPHA = 1000
# Bound on the largest second moment of whitened rows in a direction, times the number of columns.
WHITENED_SECOND_MOMENT = SAFETY * WHITENED_NORM**2
# Typical curvature of the loss at the end of a run, relative to its bound; rows with clipped
# gradients contribute no curvature.
TYPICAL_CURVATURE = 0.25
# The constant feature may converge more slowly than this, since it starts at the baseline.
MAX_CONDITION_OF_CONSTANT = 2500.0
# Number of values of X that a run may read, which takes a few seconds.
READ_VALUES = 2e9
# Smallest batch, in rows, and number of passes over the rows with partial batches.
MIN_BATCH_SIZE = 256
DEFAULT_PASSES = 10
# Step size relative to the expected norm of the weights, and momentum, of Adam.
ADAM_RATE = 0.005
ADAM_MOMENTUM = 0.9
# The null decrease is subtracted in a shrinkage rule only if weights explain at most this fraction
# of the targets by chance, for rows that are equally distributed over all directions.
MAX_NULL_FRACTION = 0.2


@dataclass(frozen=True)
class LossSpec(FrozenValue):
    """A loss with the public quantities from which the settings are computed.

    Parameters
    ----------
    loss : ClippableLoss
    residual_norm : float
        Upper bound on the norm of a residual, or a typical norm. In an `SGDProblem`, the norm to
        which residuals are clipped.
    curvature : float
        Upper bound on the second derivative of the loss with respect to a score.
    weights_norm : float
        Expected norm of the weights times the norm of rows.
    signal : float, default=inf
        Expected variance of scores times the curvature. If it is finite, the penalty grows with the
        square of large noise, so that weights then end near 0.
    min_clip_fraction : float, default=1.0
        Residuals are clipped at least at this fraction of `residual_norm`. The fraction grows if
        the noise on the mean gradient is below `clip_noise_threshold`.
    clip_noise_threshold : float, default=0.0
        Noise level, relative to the bound on a gradient.
    shrinkage_residual : float, default=0.0
        Norm to which the residuals of the shrinkage rule are clipped; 0 for no shrinkage.
    typical_curvature : float, default=1.0
        Typical second derivative of the loss where the shrinkage rule is applied.
    null_decrease_factor : float, default=1.5
        Multiple of the null decrease of the loss that the shrinkage rule subtracts.
    curvature_from : {"residuals", "curvature", None}, default=None
        Quantity from which the curvature along the weights is estimated; see `LinearShrinkageRule`.
    min_shrinkage_factor : float, default=0.0
        Lower bound on the shrinkage factor. If it is positive, weights that do not start at a
        baseline are not shrunk.
    score_exponent : int, default=None
        Exponent of p (1 - p), with p the frequency of one of two classes, to which the scores that
        minimize the loss are proportional where p is small: 1 for hinge losses, 0 for the logistic
        loss. None for losses without classes. See `ClippedDescent.for_frequency`.
    whitened_condition : float, default=120.0
        Condition number for which the momentum is chosen if rows are whitened: the bound on the
        curvature over the curvature in directions that must converge.
    whitened_steps : int, default=64
        Number of steps if rows are whitened, for up to 10,000 rows and with little noise. With more
        noise, `reserve_for_whitening` in `skdp.linear_model._whitening` raises it and the condition
        number for losses without classes.
    whitened_steps_per_decade : int, default=0
        Number of further steps for each factor of ten in the number of rows.
    whitened_optimizer : {"nesterov", "sgd"}, default="nesterov"
        Optimizer if rows are whitened; "sgd" uses Polyak's momentum (see `_heavy_ball_momentum`).
    whitened_average : float, default=0.5
        Fraction of the steps whose iterates are averaged if rows are whitened.
    """

    loss: object
    residual_norm: float
    curvature: float
    weights_norm: float
    signal: float = math.inf
    min_clip_fraction: float = 1.0
    clip_noise_threshold: float = 0.0
    shrinkage_residual: float = 0.0
    typical_curvature: float = 1.0
    null_decrease_factor: float = 1.5
    curvature_from: str | None = None
    min_shrinkage_factor: float = 0.0
    score_exponent: int | None = None
    whitened_condition: float = 120.0
    whitened_steps: int = 64
    whitened_steps_per_decade: int = 0
    whitened_optimizer: str = "nesterov"
    whitened_average: float = 0.5

    @property
    def n_outputs(self):
        """Number of scores per row."""
        return math.prod(self.loss.weights_shape)

    def shrinkage_rule(self, norm, n_features, n_rows, alpha):
        """Return the shrinkage rule for weights that were fitted with a penalty.

        Its number of steps is 1, or 0 if weights are not shrunk. The null decrease is known only if
        it is small. If the number of directions is close to the number of rows, the formula does
        not hold and nothing is subtracted; the rule then removes only the effect of the noise.

        Parameters
        ----------
        norm : float
            Upper bound on the norm of a row.
        n_features, n_rows : int
        alpha : float
            L2 regularization strength of the mean loss.

        Returns
        -------
        LinearShrinkageRule
        """
        row_curvature = self.typical_curvature * norm**2
        has_enough_weights = n_features * self.n_outputs > 2
        rule = LinearShrinkageRule(
            n_steps=int(self.shrinkage_residual > 0.0 and has_enough_weights),
            norm=norm * math.sqrt(self.n_outputs),
            residual=self.shrinkage_residual,
            null_fraction=0.0,
            min_shrinkage_factor=self.min_shrinkage_factor,
            null_decrease_factor=self.null_decrease_factor,
            n_rows=n_rows,
            n_features=n_features,
            row_curvature=row_curvature,
            curvature=self.typical_curvature,
            alpha=alpha,
            curvature_from=self.curvature_from,
            max_curvature=max(self.curvature, self.typical_curvature),
        )
        if rule.effective_dof(1.0) > MAX_NULL_FRACTION * n_rows:
            return replace(rule, null_decrease_factor=0.0)
        return rule


@dataclass(frozen=True, kw_only=True)
class SGDProblem(FrozenValue):
    """The public sizes and bounds of a run of noisy gradient steps.

    Parameters
    ----------
    loss_spec : LossSpec
    n_rows, n_columns : int
    norm : float
        Expected norm of a row, including its constant feature.
    guarantee : Guarantee
        Guarantee of the whole run.
    constant : float, default=0.0
        Value of the constant feature; 0 if there is none, or if it need not be considered in the
        number of steps.
    baseline_std : float, default=inf
        Standard deviation of the score at which the constant feature's weights start.
    rounding_factor : float, default=1.0
        Factor on the bound on the rounding error of a sum; above 1 for centered or whitened rows.
    is_whitened : bool, default=False
        Whether rows are whitened; see `RowWhitening`.
    """

    loss_spec: LossSpec
    n_rows: int
    n_columns: int
    norm: float
    guarantee: Guarantee
    constant: float = 0.0
    baseline_std: float = math.inf
    rounding_factor: float = 1.0
    is_whitened: bool = False

    @property
    def delta(self):
        """Delta of the run; if it is 0, the clip is in L1 norm and Laplace noise is used."""
        return self.guarantee.delta

    @property
    def n_features(self):
        """Number of features, including the constant feature."""
        return self.n_columns + (self.constant > 0)

    @property
    def size(self):
        """Number of weights."""
        return self.loss_spec.n_outputs * self.n_features

    @property
    def n_weights_with_intercept(self):
        """Number of weights if there is a constant feature."""
        return (self.n_columns + 1) * self.loss_spec.n_outputs

    @property
    def curvature(self):
        """Upper bound on the loss's curvature in the weights, for rows of the expected norm."""
        if self.is_whitened:
            # Whitened rows have the unit of `data_norm`, the norm without the constant feature.
            squared_data_norm = self.norm**2 - self.constant**2
            second_moment = squared_data_norm * WHITENED_SECOND_MOMENT / self.n_columns
            second_moment = max(second_moment, self.constant**2)
            return self.loss_spec.curvature * second_moment
        return self.loss_spec.curvature * self.norm**2

    def condition(self, alpha, intercept_l2_reg):
        """Return the condition number of the objective.

        Parameters
        ----------
        alpha : float
            L2 regularization strength of the features' weights.
        intercept_l2_reg : float
            L2 regularization strength of the constant feature's weights.

        Returns
        -------
        float
        """
        max_curvature = self.curvature + alpha
        condition_of_constant = 0.0
        if self.constant:
            typical = TYPICAL_CURVATURE * self.loss_spec.curvature * self.constant**2
            condition_of_constant = max_curvature / (intercept_l2_reg + typical)
        return max(max_curvature / alpha, min(condition_of_constant, MAX_CONDITION_OF_CONSTANT))


@dataclass(frozen=True)
class Settings(FrozenValue):
    """The settings of a run; the rule chooses those that are None.

    Parameters
    ----------
    optimizer : str
    sampling : str, default=None
    batch_size, max_iter : int, default=None
        `max_iter` is the number of passes; a pass reads the table's number of rows.
    clip, alpha, eta0, momentum : float, default=None
    intercept_l2_reg : float, default=None
        L2 regularization strength for the distance between the constant feature's weights and their
        start.
    alpha_of_columns : float, default=0.0
        Further L2 regularization strength if rows are whitened, for the weights of the columns.
    """

    optimizer: str
    sampling: str | None = None
    batch_size: int | None = None
    max_iter: int | None = None
    clip: float | None = None
    alpha: float | None = None
    eta0: float | None = None
    momentum: float | None = None
    intercept_l2_reg: float | None = None
    alpha_of_columns: float = 0.0

    def n_steps(self, n_rows):
        """Return the number of batches in `max_iter` passes, rounded up."""
        return -(-self.max_iter * n_rows // self.batch_size)

    @property
    def has_automatic_batches(self):
        """True if the rule chooses the sampling, the batch size and the number of passes."""
        return self.sampling is None and self.batch_size is None and self.max_iter is None


def automatic_settings(problem, requested):
    """Return settings in which nothing is None.

    Parameters
    ----------
    problem : SGDProblem
    requested : Settings
        Settings that are not None are returned unchanged.

    Returns
    -------
    Settings
    """
    clip = requested.clip
    if clip is None:
        clip = _automatic_clip(problem)
    automatic_alpha, intercept_l2_reg, n_steps = _balance(problem, clip, requested)
    alpha = requested.alpha
    if alpha is None:
        alpha = automatic_alpha
    if problem.is_whitened and requested.max_iter is None:
        n_steps = problem.loss_spec.whitened_steps
    sampling, batch_size, max_iter = _batches(problem, requested, n_steps)
    # A requested alpha may be too small for the number of steps.
    l2_reg_strength = max(automatic_alpha, alpha)
    momentum = requested.momentum
    if momentum is None:
        condition = problem.condition(l2_reg_strength, intercept_l2_reg)
        if problem.is_whitened:
            condition = min(condition, problem.loss_spec.whitened_condition)
        momentum = _automatic_momentum(requested.optimizer, condition, problem.is_whitened)
    eta0 = requested.eta0
    if eta0 is None:
        smoothness = problem.curvature + l2_reg_strength
        eta0 = _automatic_rate(requested.optimizer, problem, smoothness, momentum)
    return Settings(
        optimizer=requested.optimizer,
        sampling=sampling,
        batch_size=batch_size,
        max_iter=max_iter,
        clip=clip,
        alpha=alpha,
        eta0=eta0,
        momentum=momentum,
        intercept_l2_reg=intercept_l2_reg,
        alpha_of_columns=requested.alpha_of_columns,
    )


def necessary_steps(problem, requested):
    """Return the number of steps that minimize the objective, also where whitened rows take more.

    Parameters
    ----------
    problem : SGDProblem
    requested : Settings
        Its clip is given.

    Returns
    -------
    int
    """
    _, _, n_steps = _balance(problem, requested.clip, requested)
    return n_steps


def _intercept_l2_reg(problem, requested, l2_reg_strength, noise):
    """Return the requested penalty of the intercept, or the one that balances start and noise.

    If the score at the start has variance s² and gradients have variance t², the best penalty is t²
    divided by s² and by the curvature.
    """
    if requested.intercept_l2_reg is not None or problem.baseline_std == math.inf:
        return requested.intercept_l2_reg or 0.0
    optimum = (noise / problem.baseline_std) ** 2 / problem.loss_spec.curvature
    return min(l2_reg_strength, optimum)


def _automatic_clip(problem):
    """Return the largest norm of a row's gradient; with delta = 0, in L1, up to a limit."""
    clip = problem.loss_spec.residual_norm * problem.norm
    if problem.delta > 0.0:
        return clip
    return clip * min(math.sqrt(problem.n_weights_with_intercept), MAX_L1_OVER_L2)


def _balance(problem, clip, requested):
    """Return the penalties of weights and intercept that balance the noise, and the steps."""
    weights_norm = problem.loss_spec.weights_norm / problem.norm
    root_size = math.sqrt(problem.n_weights_with_intercept)
    is_pure = problem.delta == 0.0
    steps_per_root = STEPS_PER_ROOT
    if is_pure:
        steps_per_root = LAPLACE_STEPS_PER_ROOT
    max_steps = _max_steps(problem, requested)
    max_root = min(max_steps, STEPS_FOR_AUTOMATIC_ALPHA) / steps_per_root
    min_strength = problem.curvature / max_root**2
    n_steps = MIN_STEPS
    n_iterations = 1
    if is_pure:
        # The noise of Laplace steps grows with the number of steps, which in turn falls with the
        # noise.
        n_iterations = 30
    for _ in range(n_iterations):
        noise = release_noise(problem, clip, n_steps) * root_size
        strength = noise / weights_norm + noise**2 / problem.loss_spec.signal
        strength = max(strength, min_strength)
        l2_reg_strength = max(strength, requested.alpha or 0.0)
        steps = steps_per_root
        if requested.alpha is not None:
            # If the noise is smaller than the bias due to a requested alpha, the optimization error
            # must be equally small.
            largest_bias = min(l2_reg_strength, problem.curvature)
            steps += 2.0 * max(0.0, math.log(largest_bias) - math.log(noise / weights_norm))
        intercept_l2_reg = _intercept_l2_reg(problem, requested, strength, noise / root_size)
        condition = problem.condition(l2_reg_strength, intercept_l2_reg)
        n_steps = math.ceil(steps * math.sqrt(condition))
        n_steps = min(max(n_steps, MIN_STEPS), max_steps)
    return strength, intercept_l2_reg, n_steps


def _max_steps(problem, requested):
    """Return the number of affordable steps if smaller batches cannot compensate for the cost."""
    if problem.delta > 0.0 or not requested.has_automatic_batches:
        return MAX_STEPS
    values = problem.n_rows * problem.n_columns * problem.loss_spec.n_outputs
    return min(max(int(2.0 * READ_VALUES / values), MIN_STEPS_OF_LARGE_TABLES), MAX_STEPS)


def release_noise(problem, clip, n_steps):
    """Return the noise in one release of a mean gradient that costs as much as the whole run.

    Returns
    -------
    float
        Standard deviation of each value.
    """
    sensitivity_factor = problem.guarantee.neighbors.sensitivity_factor
    scale = sensitivity_factor * clip / problem.n_rows
    if problem.delta > 0.0:
        return scale * gaussian_noise_multiplier(problem.guarantee.epsilon, problem.delta)
    # The mean of T Laplace steps of epsilon / T each.
    return scale * math.sqrt(2.0 * n_steps) / problem.guarantee.epsilon


def _batches(problem, requested, n_steps):
    """Return (sampling, batch size, passes) for a number of steps."""
    n_rows = problem.n_rows
    size = requested.batch_size
    sampling = requested.sampling
    if sampling is None:
        affordable = READ_VALUES / (problem.n_columns * problem.loss_spec.n_outputs * n_steps)
        is_pure = problem.delta == 0.0
        is_undecided = size is None and requested.max_iter is None
        if is_undecided and affordable < 0.5 * n_rows and not is_pure:
            size = min(max(math.ceil(affordable), MIN_BATCH_SIZE), n_rows)
        if size is None or size == n_rows:
            sampling = "full"
        else:
            sampling = "poisson"
            if is_pure:
                sampling = "without_replacement"
    if sampling == "full":
        return sampling, n_rows, requested.max_iter or n_steps
    if size is None:
        passes = requested.max_iter or DEFAULT_PASSES
        size = min(max(math.ceil(passes * n_rows / n_steps), MIN_BATCH_SIZE), n_rows)
    return sampling, size, requested.max_iter or max(1, round(n_steps * size / n_rows))


def _automatic_momentum(optimizer, condition, is_whitened):
    """Return the momentum for a condition number, or the default of the optimizer."""
    if optimizer == "adam":
        return ADAM_MOMENTUM
    if optimizer == "sgd":
        if is_whitened:
            return _heavy_ball_momentum(condition)
        return 0.0
    root = math.sqrt(condition)
    return (root - 1.0) / (root + 1.0)


def _heavy_ball_momentum(condition):
    r"""Return the momentum of Polyak's heavy ball for a quadratic loss of this condition number.

    With the step size of `heavy_ball_rate`, the error falls by the factor :math:`(\sqrt Q - 1) /
    (\sqrt Q + 1)` per step, instead of :math:`1 - 1 / \sqrt Q` with Nesterov's momentum (Polyak
    1964). So 24 steps do what 40 do otherwise. For other losses this need not converge.
    """
    root = math.sqrt(condition)
    return ((root - 1.0) / (root + 1.0)) ** 2


def heavy_ball_rate(smoothness, momentum):
    """Return the step size of Polyak's heavy ball for an upper bound on the curvature."""
    return (1.0 + math.sqrt(momentum)) ** 2 / smoothness


def _automatic_rate(optimizer, problem, smoothness, momentum):
    """Return the largest step size that the smoothness allows, or Adam's default."""
    if optimizer == "adam":
        return ADAM_RATE * problem.loss_spec.weights_norm / problem.norm
    if optimizer == "nesterov":
        return 1.0 / smoothness
    if problem.is_whitened:
        return heavy_ball_rate(smoothness, momentum)
    return (1.0 - momentum) / smoothness
