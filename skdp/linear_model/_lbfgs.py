"""Descent with limited memory of the curvature (L-BFGS; Nocedal 1980, Liu and Nocedal 1989)."""

from collections import deque

import numpy as np

MEMORY = 20
SHORTENINGS = 20


def lbfgs(objective, point, is_done, max_steps):
    """Return the point that is reached after a bounded number of steps.

    It stops where `is_done`, where rounding leaves it no step, or after `max_steps`.

    Parameters
    ----------
    objective : LinearObjective
    point : Point
        Where to start.
    is_done : callable
        Whether to stop, from the point and the number of steps taken.
    max_steps : int

    Returns
    -------
    Point
    """
    pairs = deque(maxlen=MEMORY)
    scale = None
    for step_index in range(max_steps):
        if is_done(point, step_index):
            break
        if scale is None:
            # The step along the gradient to the minimum of the quadratic model.
            image = objective.hessian_product(point)(point.gradient)
            scale = np.vdot(point.gradient, point.gradient) / np.vdot(point.gradient, image)
        step = -_inverse_product(pairs, scale, point.gradient)
        accepted = _backtrack(objective, point, step)
        if accepted is None:
            break
        moved, change = accepted.weights - point.weights, accepted.gradient - point.gradient
        along = np.vdot(moved, change)
        # Strong convexity makes it positive but for rounding.
        if not along > 0.0:
            break
        pairs.append((moved, change, 1.0 / along))
        scale = along / np.vdot(change, change)
        point = accepted
    return point


def _inverse_product(pairs, scale, vector):
    """Multiply by the approximate inverse of the Hessian, in two loops over the memory."""
    result, shares = vector.copy(), []
    for moved, change, inverse in reversed(pairs):
        shares.append(inverse * np.vdot(moved, result))
        result -= shares[-1] * change
    result *= scale
    for (moved, change, inverse), share in zip(pairs, reversed(shares), strict=True):
        result += (share - inverse * np.vdot(change, result)) * moved
    return result


def _backtrack(objective, point, step):
    """Return a point where the slope along a step has turned up by a fifth at most.

    Near the minimum the values agree to the last digit and only slopes tell.
    """
    slope, length = np.vdot(point.gradient, step), 1.0
    for _ in range(SHORTENINGS):
        candidate = objective.at(point.weights + length * step)
        new_slope = np.vdot(candidate.gradient, step)
        if new_slope <= -0.2 * slope:
            return candidate
        # Where it vanishes in a quadratic model, kept from too short a step.
        length *= max(0.1, slope / (slope - new_slope))
    return None
