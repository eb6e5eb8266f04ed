"""A minimizer that certifies the norm of the gradient where it stops, on any data."""

import math
from collections import deque
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

CHOLESKY_LIMIT = 1500
# Where a Hessian can be factorized L-BFGS first takes as many steps as that costs, about, and it is
# left after the trial if it will not do with them; then as many with each factor.
TRIAL_STEPS = 5
FACTORS = 50
STEPS_WITH_A_FACTOR = 10
LBFGS_STEPS = 3000
MEMORY = 20
SHORTENINGS = 20
BY_A_MODEL = 3


def minimize(objective, tolerance, radius=math.inf):
    r"""Return weights at which the computed gradient's norm is at most `tolerance`.

    L-BFGS, in which a Cholesky factor of the Hessian stands for the curvature if it does not
    promise to be done soon without one (few features, one output). Where it stalls, accelerated
    gradient descent takes over; on a strongly convex, L-smooth objective it gets there within a
    number of steps that follows from L and the gradient alone (Nesterov 2004, section 2.2).

    Parameters
    ----------
    objective : LinearObjective
    tolerance : float
        Well above the rounding error of a gradient.
    radius : float, default=inf
        For weights of a larger norm the tolerance grows in proportion, as rounding does.

    Returns
    -------
    ndarray
        The weights.
    """

    def excess(point):
        goal = tolerance * max(1.0, np.linalg.norm(point.weights) / radius)
        return np.linalg.norm(point.gradient) / goal

    def is_done(point, step=0):
        return excess(point) <= 1.0

    def is_done_or_slow(point, step):
        return is_done(point) or _is_slow(start, excess(point), step, most_steps)

    point = objective.at(np.zeros(objective.shape))
    if len(objective.shape) == 1 and objective.shape[0] <= CHOLESKY_LIMIT:
        start = excess(point)
        most_steps = 20 + objective.shape[0] // 4
        point = lbfgs(objective, point, is_done_or_slow, most_steps)
        for _ in range(FACTORS):
            if is_done(point):
                break
            try:
                solve = objective.hessian_solver(point.weights)
            except LinAlgError:
                # Rounding made a nearly singular matrix indefinite.
                break
            point = lbfgs(objective, point, is_done, STEPS_WITH_A_FACTOR, solve)
    point = lbfgs(objective, point, is_done, LBFGS_STEPS)
    return _accelerated_descent(objective, point, tolerance, is_done)


def _is_slow(start, excess, step, most_steps):
    """Say whether as many steps as are left will not do at the rate so far."""
    if step < TRIAL_STEPS:
        return False
    return step * math.log(excess) > (most_steps - step) * math.log(start / excess)


def lbfgs(objective, point, is_done, max_steps, solve=None):
    """Return the point that L-BFGS reaches (Nocedal 1980, Liu and Nocedal 1989).

    It stops where `is_done`, where rounding leaves it no step, or after `max_steps`.

    Parameters
    ----------
    objective : LinearObjective
    point : Point
        Where to start.
    is_done : callable
        Whether to stop, from the point and the number of steps taken.
    max_steps : int
    solve : callable, default=None
        Multiplies by what is taken for the inverse of the Hessian; None takes a multiple of the
        identity, by the last step.

    Returns
    -------
    Point
    """
    pairs = deque(maxlen=MEMORY)
    scale = None
    for step_index in range(max_steps):
        if is_done(point, step_index):
            break
        if solve is None and scale is None:
            # The step along the gradient to the minimum of the quadratic model.
            probe = objective.at(point.weights - point.gradient / objective.smoothness)
            change = objective.smoothness * (point.gradient - probe.gradient)
            scale = np.vdot(point.gradient, point.gradient) / np.vdot(point.gradient, change)
        inverse = solve or partial(np.multiply, scale)
        step = -_inverse_product(pairs, inverse, point.gradient)
        accepted = _backtrack(objective, point, step)
        if accepted is None:
            break
        moved = accepted.weights - point.weights
        change = accepted.gradient - point.gradient
        along = np.vdot(moved, change)
        # Strong convexity makes it positive but for rounding.
        if not along > 0.0:
            break
        pairs.append((moved, change, 1.0 / along))
        scale = along / np.vdot(change, change)
        point = accepted
    return point


def _inverse_product(pairs, solve, vector):
    """Multiply by the approximate inverse of the Hessian, in two loops over the memory.

    `solve` is the approximate inverse that the memory is about.
    """
    result = vector.copy()
    shares = []
    for moved, change, inverse in reversed(pairs):
        shares.append(inverse * np.vdot(moved, result))
        result -= shares[-1] * change
    result = solve(result)
    for (moved, change, inverse), share in zip(pairs, reversed(shares), strict=True):
        result += (share - inverse * np.vdot(change, result)) * moved
    return result


def _backtrack(objective, point, step):
    """Return a point where the slope along a step has turned up by a fifth at most.

    Near the minimum the values agree to the last digit and only slopes tell.
    """
    slope = np.vdot(point.gradient, step)
    length = 1.0
    for attempt in range(SHORTENINGS):
        candidate = objective.at(point.weights + length * step)
        new_slope = np.vdot(candidate.gradient, step)
        if new_slope <= -0.2 * slope:
            return candidate
        # Where it vanishes in a quadratic model, kept from too short a step. Where slopes jump, as
        # those of a loss that is nearly linear on both sides do, such a model only halves a step.
        length *= max(0.1, slope / (slope - new_slope)) if attempt < BY_A_MODEL else 0.1
    return None


def _accelerated_descent(objective, point, tolerance, is_done):
    L = objective.smoothness
    root = math.sqrt(L / objective.quadratic)
    momentum = (root - 1.0) / (root + 1.0)
    previous = point.weights
    distance = np.linalg.norm(point.gradient)
    steps = 1 + math.ceil(2.0 * root * math.log(2.0 + 2.0 * root**2 * distance / tolerance))
    for _ in range(steps):
        if is_done(point):
            return point.weights
        current = point.weights - point.gradient / L
        point = objective.at(current + momentum * (current - previous))
        previous = current
    raise ArithmeticError("the tolerance is below the rounding error of the gradient")
