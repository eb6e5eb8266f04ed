"""Descent with limited memory of the curvature (L-BFGS; Nocedal 1980, Liu and Nocedal 1989)."""

from collections import deque

import numpy as np

__all__ = ["lbfgs"]

MEMORY = 20
SHORTENINGS = 20


def lbfgs(objective, weights, gradient, is_done, max_steps):
    """Return weights and the gradient there, after a bounded number of steps.

    It stops where `is_done`, where rounding leaves it no step, or after `max_steps`.

    Parameters
    ----------
    objective : LinearObjective
    weights : ndarray
        Where to start.
    gradient : ndarray
        That of the objective at `weights`.
    is_done : callable
        Whether to stop, from the weights, the gradient and the number of steps taken.
    max_steps : int

    Returns
    -------
    weights : ndarray
    gradient : ndarray
    """
    pairs = deque(maxlen=MEMORY)
    scale = None
    for step_index in range(max_steps):
        if is_done(weights, gradient, step_index):
            break
        if scale is None:
            scale = _steepest_length(objective, weights, gradient)
        step = -_inverse_product(pairs, scale, gradient)
        accepted = _backtrack(objective, weights, gradient, step)
        if accepted is None:
            break
        moved, change = accepted[0] - weights, accepted[1] - gradient
        along = np.vdot(moved, change)
        # Strong convexity makes it positive but for rounding.
        if not along > 0.0:
            break
        pairs.append((moved, change, 1.0 / along))
        scale = along / np.vdot(change, change)
        weights, gradient = accepted
    return weights, gradient


def _steepest_length(objective, weights, gradient):
    """Return the length of the step along the gradient to the minimum of the quadratic model."""
    image = objective.hessian_product(weights)(gradient)
    return np.vdot(gradient, gradient) / np.vdot(gradient, image)


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


def _backtrack(objective, weights, gradient, step):
    """Return weights where the slope along a step has turned up by a fifth at most.

    Near the minimum the values agree to the last digit and only slopes tell.
    """
    slope, length = np.vdot(gradient, step), 1.0
    for _ in range(SHORTENINGS):
        candidate = weights + length * step
        new_gradient = objective.gradient(candidate)
        new_slope = np.vdot(new_gradient, step)
        if new_slope <= -0.2 * slope:
            return candidate, new_gradient
        # Where it vanishes in a quadratic model, kept from too short a step.
        length *= max(0.1, slope / (slope - new_slope))
    return None
