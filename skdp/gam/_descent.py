r"""Solvers of additive models: noisy gradient descent, or objective perturbation with delta = 0.

Objective perturbation has Laplace noise and is one release instead of many steps. It minimizes

.. math:: J(w) = \sum_i \ell_i(w) + \tfrac\lambda2 \|w\|^2 + b^\top w .

For every w, a row changes the gradient of the sum by at most :math:`\Delta_1` in L1 norm. The
values of b have a density proportional to :math:`e^{-|b_j| / s}`. The proof is in
``docs/theory/additive_models.md``.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from skdp._data._parts import map_over, max_additions, sum_over
from skdp._data._persons import STEP as ROW_WEIGHT_STEP
from skdp._data._persons import times_row_weights
from skdp._data._sums import sum_grid
from skdp._loops import get_loops
from skdp._optim._gradient_noise import SLACK
from skdp.gam._blocks import WEIGHT_STEP
from skdp.gam._joint_codes import max_joint_codes, split_at
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import discrete_laplace
from skdp.stats._column_cells import BLOCK_ROWS
from skdp.utils._documents import count_of
from skdp.utils._values import FrozenValue

# Gradient descent: minimum number of steps, and the constants from which the maximum is computed.
MIN_STEPS = 4
MAX_STEPS = 2_200
# Number of steps per square root of the condition number.
STEPS_PER_ROOT = 2.0
# Largest logarithm of `penalty_to_noise` that increases the number of steps.
MAX_LOG_RATIO = 7.0
# From this square root of the condition number on, noise does not reduce the number of steps.
FULL_STEPS_ROOT = 20.0
# Largest condition number; the penalty is raised to enforce it.
MAX_CONDITION = 22_500.0

# Objective perturbation: fractions of epsilon for the linear noise (at least), the Jacobian (at
# most), and the output noise.
MIN_LINEAR_FRACTION = 13 / 16
MAX_JACOBIAN_FRACTION = 11 / 64
OUTPUT_FRACTION = 1 / 64
# Smoothness of the penalty including the roughness penalty on neighboring cells, in units of the
# regularization strength: 1 for the squared norm and 4 for squared differences.
PENALTY_SMOOTHNESS = 5.0
# Grid of the linear noise, relative to its scale.
NOISE_GRID = 2.0**-40
# Number of restarts before the assumed smoothness is doubled.
MAX_ROUNDS = 10
# Gradient norm at which the minimizer stops, relative to the scale of the linear noise.
TOLERANCE = 2.0**-24
UNIT_ROUNDOFF = 2.0**-53
# Factor that leaves room for rounding errors in the factor of a long row.
FACTOR_MARGIN = 1.0 - 2.0**-40


@dataclass(frozen=True, eq=False)
class Scores(FrozenValue):
    """Function that maps a block of joint codes to the scores of its rows.

    Parameters
    ----------
    cells : JointCodes
        Codes without rows, which define how columns are grouped.
    bin_values : dict of term to ndarray of shape (n_cells, n_outputs)
        Values of the terms at their finest cells; the term -1 is the constant.
    """

    cells: object
    bin_values: dict

    @classmethod
    def at(cls, weights, cells, design):
        """Return the scores that the weights of a design produce."""
        return cls(cells.detach(0), design.bin_values(weights))

    @cached_property
    def code_values(self):
        """Value of each joint code."""
        # The values are computed where the rows are, because `bin_values` is much cheaper to send.
        return self.cells.code_values(self.bin_values)

    def __call__(self, block):
        loops = get_loops(block.loops)
        return loops.code_scores(block.codes, block.ends, self.code_values, self.bin_values[-1])


def shorten_rows(cells, design):
    """Return the cells with row weights that shorten the features of every row to norm 1.

    The residual of a row whose features have norm z > 1 is multiplied by 1 / z in the gradients, so
    a row changes a gradient by no more than its clip. The factor depends only on the cells of the
    row and on the design, which was computed from released values.

    Parameters
    ----------
    cells : JointCodes
    design : BlockDesign
    """
    if design.squared_norm <= 1.0:
        return cells
    squared_norms = Scores(cells.detach(0), design.squared_norms)
    return cells.with_row_weights(map_over(cells, _row_weights, squared_norms, persist=True))


def _row_weights(block, squared_norms):
    """Return the row weights of a block that shorten its rows, as multiples of their step."""
    # Features are multiples of 2**-12, so their squared norms are exact.
    norms = np.sqrt(np.maximum(squared_norms(block)[:, 0], 1.0))
    factors = np.where(norms > 1.0, FACTOR_MARGIN / norms, 1.0)
    weights = times_row_weights(factors, block.row_weights)
    return np.floor(weights / ROW_WEIGHT_STEP) * ROW_WEIGHT_STEP


def residual_sums(cells, design, residuals, weights, step):
    """Return the exact gradient of the summed loss with respect to the weights.

    Parameters
    ----------
    cells : JointCodes
        Rows that `shorten_rows` has shortened.
    design : BlockDesign
    residuals : Residuals
    weights : ndarray of shape (design.size, n_outputs)
    step : float
        Grid to which residuals are rounded.

    Returns
    -------
    ndarray of shape (design.size, n_outputs)
    """
    scores = Scores.at(weights, cells, design)
    zeros = np.zeros((cells.ends[-1], weights.shape[1]))
    column_sums = scores.cells.column_sums
    totals = sum_over(cells, _add_residuals, zeros, scores, residuals, step, finalize=column_sums)
    sums = dict(enumerate(split_at(totals, np.cumsum(cells.sizes))))
    sums[-1] = sums[0].sum(axis=0, keepdims=True)
    return step * design.rmatvec(sums)


def _add_residuals(totals, block, scores, residuals, step):
    """Add the clipped residuals of a block's rows to the sums of their codes, in steps of `step`.

    `block` is a part of the `cells` of `residual_sums`, with the loops of its process.
    """
    get_loops(block.loops).add_residual_sums(
        totals,
        block.codes,
        block.ends,
        scores.code_values,
        np.concatenate([scores.bin_values[-1], residuals.start(scores.bin_values[-1].shape)]),
        partial(residuals.in_steps, step, block.loops),
        (block.targets, block.row_weights),
    )


def residual_grid(clip, n_rows):
    """Return the step of the grid on which weighted sums of clipped residuals are exact."""
    return sum_grid(clip, n_rows) / WEIGHT_STEP


@dataclass(frozen=True, kw_only=True)
class Schedule(FrozenValue):
    """Schedule of Nesterov's method for the loss plus an L2 penalty.

    Parameters
    ----------
    loss_smoothness : float
        Upper bound on the curvature of the loss.
    l2_reg_strength : float
        Strength lambda of the penalty, lambda / 2 times the squared norm.
    penalty_to_noise : float
        Strength relative to the strength that the noise alone would require.
    steps_per_root : float, default=STEPS_PER_ROOT
        Number of steps per square root of the condition number, with much noise.
    """

    loss_smoothness: float
    l2_reg_strength: float
    penalty_to_noise: float
    steps_per_root: float = STEPS_PER_ROOT

    @cached_property
    def smoothness(self):
        """Smoothness constant of the penalized loss."""
        return self.loss_smoothness + self.l2_reg_strength

    @property
    def _log_ratio(self):
        return min(max(math.log(self.penalty_to_noise), 1.0), MAX_LOG_RATIO)

    @cached_property
    def n_steps(self):
        """Number of steps.

        The number is proportional to the square root of the condition number. It is larger with
        little noise, because more precision is then worthwhile, and smaller with much noise.
        """
        root = math.sqrt(self.smoothness / self.l2_reg_strength)
        noise_factor = min(self.penalty_to_noise * math.sqrt(root / FULL_STEPS_ROOT), 1.0)
        return max(int(self.steps_per_root * noise_factor * self._log_ratio * root), MIN_STEPS)

    @property
    def n_averaged(self):
        """Number of final iterates that are averaged: half of them, or fewer with little noise."""
        return math.ceil(self.n_steps / (2.0 * self._log_ratio))

    @cached_property
    def momentum(self):
        """Nesterov's momentum for strongly convex functions."""
        root = math.sqrt(self.smoothness / self.l2_reg_strength)
        return (root - 1.0) / (root + 1.0)


def descend(gradient, schedule, start, radius, *, n_averaged=None, penalty=None, after_step=None):
    """Return the mean of the last iterates and the regularization strength of the last steps.

    Parameters
    ----------
    gradient : callable
        Function of weights that returns the noisy gradient of the summed loss.
    schedule : Schedule
    start : ndarray
        Initial weights.
    radius : float
        Iterates are projected onto the ball of this norm.
    n_averaged : int, default=None
        Number of the last iterates that are averaged. None uses the value of the schedule.
    penalty : callable, default=None
        Called after half of the steps, with the mean iterate of the second quarter. It returns a
        regularization strength, which is used if it exceeds the current one.
    after_step : callable, default=None
        Called with the number of steps taken so far.

    Returns
    -------
    weights : ndarray
        Same shape as `start`.
    l2_reg_strength : float
        Regularization strength of the last steps.
    """
    weights = start
    lookahead = start
    n_steps = schedule.n_steps
    half = schedule.n_steps // 2
    n_averaged = n_averaged or schedule.n_averaged
    mean = np.zeros_like(start)
    first_averaged = n_steps - n_averaged
    early_sum = 0.0
    for step in range(n_steps):
        if step == half and penalty is not None:
            requested = penalty(early_sum / (half - half // 2))
            l2_reg_strength = max(schedule.l2_reg_strength, requested)
            schedule = replace(schedule, l2_reg_strength=l2_reg_strength)
        penalized_gradient = gradient(lookahead) + schedule.l2_reg_strength * lookahead
        new_weights = lookahead - penalized_gradient / schedule.smoothness
        norm = np.linalg.norm(new_weights)
        if norm > radius:
            new_weights *= radius / norm
        lookahead = new_weights + schedule.momentum * (new_weights - weights)
        weights = new_weights
        if step >= first_averaged:
            mean += weights
        elif penalty is not None and step >= half // 2:
            early_sum = early_sum + weights
        if after_step is not None:
            after_step(step + 1)
    return mean / n_averaged, schedule.l2_reg_strength


@dataclass(frozen=True, kw_only=True)
class PerturbedObjective(FrozenValue):
    """Release of the weights by objective perturbation with a fraction of epsilon.

    Parameters
    ----------
    epsilon : float
    task : task
        See `skdp.gam._tasks`.
    l1_sensitivity : float
        Largest L1 norm of the difference between neighbors' gradients.
    size : int
        Number of weights.
    n_rows : int
        Public number of rows.
    loss_smoothness : float
        Upper bound expected for the curvature of the loss, from released counts.
    rank : int
        Upper bound on the rank of one privacy unit's contribution to the Hessian.
    """

    epsilon: float
    task: object
    l1_sensitivity: float
    size: int
    n_rows: int
    loss_smoothness: float
    rank: int

    def __post_init__(self):
        if self.size * NOISE_GRID > 0.5 * MIN_LINEAR_FRACTION * self.epsilon:
            raise ValueError(
                f"epsilon={self.epsilon:g} is too small for a model with "
                f"{count_of(self.size, 'weight')}"
            )

    @cached_property
    def scale(self):
        """Laplace scale of b, which also uses the budget left over by the Jacobian."""
        trace = self.task.loss.trace_bound
        jacobian_cost = self.rank * math.log1p(trace / (self.rank * self.l2_reg_strength))
        # The last term is the cost of rounding each weight to a multiple of the noise's grid step.
        linear_epsilon = (
            (1.0 - OUTPUT_FRACTION) * self.epsilon - jacobian_cost * SLACK - self.size * NOISE_GRID
        )
        return self.l1_sensitivity / linear_epsilon * SLACK**2

    @cached_property
    def l2_reg_strength(self):
        """Regularization strength.

        It is the smallest value that bounds the noise-induced standard deviation of a row's score,
        the cost of the Jacobian, and the condition number.
        """
        jacobian_epsilon = MAX_JACOBIAN_FRACTION * self.epsilon
        # The cost of the Jacobian is rank * log(1 + trace / (rank * strength)); see `scale`.
        max_trace_ratio = math.expm1(min(jacobian_epsilon / self.rank, 500.0)) / SLACK
        jacobian_minimum = self.task.loss.trace_bound / (self.rank * max_trace_ratio)
        max_scale = self.l1_sensitivity / (MIN_LINEAR_FRACTION * self.epsilon)
        noise_minimum = math.sqrt(2.0) * max_scale / self.task.score_std
        return max(noise_minimum, jacobian_minimum, self.loss_smoothness / MAX_CONDITION)

    def run(self, gradient, source):
        """Return the released weights, of shape (size // n_outputs, n_outputs).

        Parameters
        ----------
        gradient : callable
            Function of the weights that returns the gradient of the summed loss plus a
            data-independent convex penalty whose minimum is at zero.
        source : RandomSource
        """
        shape = (self.size // self.task.n_outputs, self.task.n_outputs)
        step = math.ldexp(NOISE_GRID, math.frexp(self.scale)[1] - 1)
        linear_noise = discrete_laplace(self.scale / step, shape, source.stream()) * step
        radius = self._radius
        rounding = self._rounding(radius)
        tolerance = max(TOLERANCE * self.scale, 4.0 * rounding)
        weights = self._minimum(lambda w: gradient(w) + linear_noise, shape, tolerance, radius)
        norm = np.linalg.norm(weights)
        if norm > radius:
            weights *= radius / norm
        error = (tolerance + rounding + step * math.sqrt(self.size)) / self.l2_reg_strength
        # The weights of either neighbor are within twice this error of the exact minimizer, whose
        # release is private.
        output_sensitivity = 4.0 * error * math.sqrt(self.size) * SLACK
        output_mechanism = LaplaceMechanism(OUTPUT_FRACTION * self.epsilon, output_sensitivity)
        return output_mechanism.release(weights, random_state=source)

    @property
    def _radius(self):
        """Twice a norm that the minimizer exceeds only with negligible probability."""
        noise = self.scale * (2.0 * math.sqrt(self.size) + 50.0)
        loss = math.sqrt(2.0 * self.l2_reg_strength * self.n_rows * self.task.max_mean_loss)
        return 2.0 * (noise + math.hypot(noise, loss)) / self.l2_reg_strength

    def _rounding(self, radius):
        """Return a bound on the norm of the gradient's rounding error for weights in a ball."""
        n = self.n_rows
        clip = self.task.clip_l1
        # Maximum number of cells in a group of columns, or in a single column if that has more.
        n_added = BLOCK_ROWS + max(max_joint_codes(n), self.size)
        sums = n * clip * (max_additions(n_added) + 64.0)
        max_abs_score = max(64.0 * self.size**0.5, self.size) * radius + self.task.max_abs_score
        scores = n * self.task.loss.curvature_bound * max_abs_score
        penalty = PENALTY_SMOOTHNESS * self.l2_reg_strength * radius
        rest = 16.0 * (penalty + self.scale * math.sqrt(self.size) * 50.0)
        return 2.0 * UNIT_ROUNDOFF * (sums + scores + rest)

    def _minimum(self, gradient, shape, tolerance, radius):
        """Return weights at which the norm of the gradient is within the tolerance.

        Beyond the radius, the tolerance grows with the norm of the weights. If the expected
        smoothness is too small, the steps do not converge; it is then doubled up to the bound that
        holds for all data.
        """
        penalty_smoothness = PENALTY_SMOOTHNESS * self.l2_reg_strength
        smoothness = self.loss_smoothness + penalty_smoothness
        max_smoothness = self.n_rows * self.task.loss.curvature_bound + penalty_smoothness
        while True:
            weights = np.zeros(shape)
            smoothness = min(smoothness, max_smoothness)
            # Ten times the square root of the condition number is far more steps than are useful
            # with noise.
            schedule = Schedule(
                loss_smoothness=smoothness,
                l2_reg_strength=self.l2_reg_strength,
                penalty_to_noise=math.exp(5.0),
            )
            for _ in range(MAX_ROUNDS):
                weights, _ = descend(gradient, schedule, weights, math.inf, n_averaged=1)
                norm = np.linalg.norm(gradient(weights) + self.l2_reg_strength * weights)
                if norm <= tolerance * max(1.0, np.linalg.norm(weights) / radius):
                    return weights
            smoothness *= 2.0
