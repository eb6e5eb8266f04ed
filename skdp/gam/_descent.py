r"""How weights are found: noisy gradient descent, or one perturbed objective where delta = 0.

The latter has Laplace noise: one release takes the place of many steps.

.. math:: J(w) = \sum_i \ell_i(w) + \tfrac\lambda2 \|w\|^2 + b^\top w

A row moves the gradient of the sum by at most :math:`\Delta_1` in L1 norm, whatever w is, and the
values of b have the density :math:`e^{-|b_j| / s}`. The proof is in ``docs/additive_models.md``.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp._data._parts import max_additions, sum_over
from skdp._sgd._noise import SLACK
from skdp.gam._blocks import WEIGHT_STEP
from skdp.gam._columns import BLOCK_ROWS, largest_pack
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import discrete_laplace
from skdp.utils import sum_grid
from skdp.utils._values import FrozenValue

FEWEST_STEPS = 4
MOST_TIMES = 7.0
# The root of the condition number from which on noise leaves time for all steps.
ENOUGH_ROOT = 20.0
# The condition number is kept at most this by the penalty.
CONDITION = 22_500.0
MOST_STEPS = 2_200


@dataclass(frozen=True, eq=False)
class Scores(FrozenValue):
    """What weights make of a block of packed cells: its rows' scores.

    Parameters
    ----------
    cells : PackedCells
        Of no rows.
    tables : dict of term to ndarray of shape (n_cells, n_outputs)
    """

    cells: object
    tables: dict

    @classmethod
    def at(cls, weights, cells, layout):
        return cls(cells.detach(0), layout.tables(weights))

    @cached_property
    def _packed(self):
        # Where rows are: what is sent there is much smaller.
        return self.cells.packed(self.tables)

    def __call__(self, block):
        return block.marks @ self._packed + self.tables[-1]


def residual_sums(cells, layout, residuals, weights, step):
    """Return the exact gradient: sums of residuals in the cells of all blocks, times weights.

    Parameters
    ----------
    cells : PackedCells
    layout : Layout
    residuals : callable
        A function of a module that maps (scores, targets) to clipped residuals of shape
        (rows, n_outputs).
    weights : ndarray of shape (layout.size, n_outputs)
    step : float
        The grid of residuals.

    Returns
    -------
    ndarray of shape (layout.size, n_outputs)
    """
    scores = Scores.at(weights, cells, layout)
    zeros = np.zeros((cells.ends[-1], weights.shape[1]))
    unpacked = scores.cells.unpacked
    totals = sum_over(cells, _add_residuals, zeros, scores, residuals, step, finalize=unpacked)
    sums = dict(enumerate(np.split(totals, np.cumsum(cells.sizes)[:-1])))
    sums[-1] = sums[0].sum(axis=0, keepdims=True)
    return step * layout.gather(sums)


def _add_residuals(totals, block, scores, residuals, step):
    steps = block.steps(residuals(scores(block), block.targets), step)
    totals += block.marks.T.dot(steps)


def residual_grid(clip, n_rows):
    """Return the grid on which weighted sums of clipped residuals are exact in float64."""
    return sum_grid(clip, n_rows) / WEIGHT_STEP


@dataclass(frozen=True, kw_only=True)
class Schedule(FrozenValue):
    """Steps of Nesterov's method on the squared-norm penalized loss.

    Parameters
    ----------
    bend : float
        What bounds the loss's curvature.
    strength : float
        Of the penalty, lambda / 2 times the squared norm.
    quiet : float
        What it is, over what the noise asks for.
    """

    bend: float
    strength: float
    quiet: float

    @property
    def smoothness(self):
        return self.bend + self.strength

    @property
    def _times(self):
        return min(max(math.log(self.quiet), 1.0), MOST_TIMES)

    @property
    def n_steps(self):
        """Twice the root of the condition number; more or fewer where noise is small or large."""
        root = math.sqrt(self.smoothness / self.strength)
        part = min(self.quiet * math.sqrt(root / ENOUGH_ROOT), 1.0)
        return max(int(2.0 * part * self._times * root), FEWEST_STEPS)

    # Of how many of the last iterates the mean is taken: half of them, or fewer likewise.
    @property
    def averaged(self):
        return math.ceil(self.n_steps / (2.0 * self._times))

    @property
    def momentum(self):
        root = math.sqrt(self.smoothness / self.strength)
        return (root - 1.0) / (root + 1.0)


def descend(gradient, schedule, start, radius, *, averaged=None, penalty=None, after_step=None):
    """Return the mean of the last iterates, and the penalty that they were found with.

    Parameters
    ----------
    gradient : callable
        Maps weights to the noisy gradient of the summed loss.
    schedule : Schedule
    start : ndarray
    radius : float
        Iterates are kept within this norm.
    averaged : int, default=None
        Of how many of the last iterates the mean is returned; None takes the schedule's.
    penalty : callable, default=None
        Asked after half of the steps, with the mean of their second half, for a stronger penalty.
    after_step : callable, default=None
        Told how many steps were taken.

    Returns
    -------
    weights : ndarray
        As `start`.
    strength : float
        The penalty of the last steps.
    """
    weights = ahead = start
    n_steps = schedule.n_steps
    half = schedule.n_steps // 2
    averaged = averaged or schedule.averaged
    mean = np.zeros_like(start)
    first = n_steps - averaged
    early = 0.0
    for number in range(n_steps):
        if number == half and penalty is not None:
            asked = penalty(early / (half - half // 2))
            schedule = replace(schedule, strength=max(schedule.strength, asked))
        slope = gradient(ahead) + schedule.strength * ahead
        moved = ahead - slope / schedule.smoothness
        norm = np.linalg.norm(moved)
        if norm > radius:
            moved *= radius / norm
        ahead = moved + schedule.momentum * (moved - weights)
        weights = moved
        if number >= first:
            mean += weights
        elif penalty is not None and number >= half // 2:
            early = early + weights
        if after_step is not None:
            after_step(number + 1)
    return mean / averaged, schedule.strength


# Of epsilon: what b has at least, what the Jacobian may cost; the rest is that of the output noise.
NOISE_SHARE = 13 / 16
JACOBIAN_SHARE = 11 / 64
OUTPUT_SHARE = 1 / 64
# The penalty's largest curvature, with what ties neighbors (`Layout.ties`): in strengths.
TIES = 5.0
GRID = 2.0**-40
ROUNDS = 10
TOLERANCE = 2.0**-24
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, kw_only=True)
class PerturbedObjective(FrozenValue):
    """The release of the weights with a share of epsilon.

    Parameters
    ----------
    epsilon : float
    task : task
    moved : float
        By how much neighbors' gradients can differ in L1 norm.
    size : int
        The number of weights.
    n_rows : int
    bend : float
        What the loss's curvature is expected to be at most, from released counts.
    rank : int
        A bound on that of a unit's part of the Hessian.
    """

    epsilon: float
    task: object
    moved: float
    size: int
    n_rows: int
    bend: float
    rank: int

    def __post_init__(self):
        if self.size * GRID > 0.5 * NOISE_SHARE * self.epsilon:
            raise ValueError(f"epsilon={self.epsilon:g} is too small for {self.size} weights")

    @cached_property
    def scale(self):
        """Of b: it has what the Jacobian leaves of the share that is allowed for it, too."""
        cost = self.rank * math.log1p(self.task.loss.trace_bound / (self.rank * self.strength))
        # What a step of its grid for each weight costs is paid for.
        left = (1.0 - OUTPUT_SHARE) * self.epsilon - cost * SLACK - self.size * GRID
        return self.moved / left * SLACK**2

    @cached_property
    def strength(self):
        """The penalty, by which noise moves no score by much and the Jacobian costs its share."""
        allowed = math.expm1(min(JACOBIAN_SHARE * self.epsilon / self.rank, 500.0)) / SLACK
        least = self.task.loss.trace_bound / (self.rank * allowed)
        largest_scale = self.moved / (NOISE_SHARE * self.epsilon)
        return max(math.sqrt(2.0) * largest_scale / self.task.spread, least, self.bend / CONDITION)

    def run(self, gradient, source):
        """Return the weights.

        Parameters
        ----------
        gradient : callable
            That of the summed loss at weights of shape (size // n_outputs, n_outputs), and of what
            ties neighbors: a function of the weights alone, convex, least at zero.
        source : RandomSource
        """
        shape = (self.size // self.task.n_outputs, self.task.n_outputs)
        step = math.ldexp(GRID, math.frexp(self.scale)[1] - 1)
        drawn = discrete_laplace(self.scale / step, shape, source.stream()) * step
        radius = self._radius
        rounding = self._rounding(radius)
        tolerance = max(TOLERANCE * self.scale, 4.0 * rounding)
        weights = self._minimum(lambda w: gradient(w) + drawn, shape, tolerance, radius)
        norm = np.linalg.norm(weights)
        weights *= min(1.0, radius / norm) if norm else 1.0
        distance = (tolerance + rounding + step * math.sqrt(self.size)) / self.strength
        # Neighbors' weights are each within twice that of what is released exactly.
        spread = 4.0 * distance * math.sqrt(self.size) * SLACK
        output = LaplaceMechanism(OUTPUT_SHARE * self.epsilon, spread)
        return output.release(weights, random_state=source)

    @property
    def _radius(self):
        """Twice what the minimizer hardly ever exceeds."""
        noise = self.scale * (2.0 * math.sqrt(self.size) + 50.0)
        loss = math.sqrt(2.0 * self.strength * self.n_rows * self.task.largest_loss)
        return 2.0 * (noise + math.hypot(noise, loss)) / self.strength

    def _rounding(self, radius):
        """Bound the rounding error of the gradient at weights within a radius, in L2 norm."""
        n = self.n_rows
        clip = self.task.clip_l1
        # Of a pack, or of a column that has more cells.
        added = BLOCK_ROWS + max(largest_pack(n), self.size)
        sums = n * clip * (max_additions(added) + 64.0)
        reach = max(64.0 * self.size**0.5, self.size) * radius + self.task.largest_score
        scores = n * self.task.loss.curvature_bound * reach
        rest = 16.0 * (TIES * self.strength * radius + self.scale * math.sqrt(self.size) * 50.0)
        return 2.0 * UNIT_ROUNDOFF * (sums + scores + rest)

    def _minimum(self, gradient, shape, tolerance, radius):
        """Return weights of a gradient within the tolerance, which grows beyond the radius."""
        bends = self.bend, self.n_rows * self.task.loss.curvature_bound
        smoothness, steepest = (bend + TIES * self.strength for bend in bends)
        while True:
            weights = np.zeros(shape)
            smoothness = min(smoothness, steepest)
            # Many more steps than noisy ones: ten times the root of the condition number.
            schedule = Schedule(bend=smoothness, strength=self.strength, quiet=math.exp(5.0))
            for _ in range(ROUNDS):
                weights, _ = descend(gradient, schedule, weights, math.inf, averaged=1)
                reached = np.linalg.norm(gradient(weights) + self.strength * weights)
                if reached <= tolerance * max(1.0, np.linalg.norm(weights) / radius):
                    return weights
            smoothness *= 2.0
