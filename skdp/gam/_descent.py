"""Noisy gradient descent on the cells of a table: exact sums, steps."""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import sum_over
from skdp.gam._blocks import WEIGHT_STEP
from skdp.utils import sum_grid

FEWEST_STEPS, MOST_TIMES = 4, 7.0
# The root of the condition number from which on noise leaves time for all steps.
ENOUGH_ROOT = 20.0
# The condition number is kept at most this by the penalty.
CONDITION = 22_500.0
MOST_STEPS = 2_200


def scores_at(weights, cells, layout):
    """Return a function of a slice of rows: their scores at some weights."""
    tables = layout.tables(weights)
    packed = cells.packed([tables[j] for j in range(len(cells.sizes))])
    return lambda rows: cells.scores(rows, packed) + tables[-1]


def residual_sums(cells, layout, residuals, weights, step):
    """Return the exact gradient: sums of residuals in the cells of all blocks, times weights.

    Parameters
    ----------
    cells : PackedCells
    layout : Layout
    residuals : callable
        Maps (scores, rows) to clipped residuals of shape (rows, n_outputs).
    weights : ndarray of shape (layout.size, n_outputs)
    step : float
        The grid of residuals.

    Returns
    -------
    ndarray of shape (layout.size, n_outputs)
    """
    scores = scores_at(weights, cells, layout)

    def add(totals, rows):
        cells.add_sums(totals, rows, cells.steps(rows, residuals(scores(rows), rows), step))

    sums = cells.unpacked(sum_over(cells, add, cells.zeros(weights.shape[1])))
    sums[-1] = sums[0].sum(axis=0, keepdims=True)
    return step * layout.gather(sums)


def residual_grid(clip, n_rows):
    """Return the grid on which weighted sums of clipped residuals are exact in float64."""
    return sum_grid(clip, n_rows) / WEIGHT_STEP


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Steps of Nesterov's method on the squared-norm penalised loss.

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

    @property
    def averaged(self):
        """Of how many of the last iterates the mean is taken: half of them, or fewer likewise."""
        return math.ceil(self.n_steps / (2.0 * self._times))

    @property
    def momentum(self):
        root = math.sqrt(self.smoothness / self.strength)
        return (root - 1.0) / (root + 1.0)


def descend(gradient, schedule, start, radius, *, averaged=None, penalty=None, after_step=None):
    """Return the mean of the last iterates.

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
    """
    weights = ahead = start
    n_steps, half = schedule.n_steps, schedule.n_steps // 2
    averaged = averaged or schedule.averaged
    mean, first, early = np.zeros_like(start), n_steps - averaged, 0.0
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
    return mean / averaged
