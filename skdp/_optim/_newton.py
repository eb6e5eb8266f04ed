"""A minimizer that certifies the gradient norm at its result, for any data."""

import math
from collections import deque
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

# Largest number of features for which the Hessian is factorized.
CHOLESKY_LIMIT = 1500
# If the Hessian can be factorized, L-BFGS first runs for about as many steps as a factorization
# costs. After this number of steps, it is stopped if the remaining steps will not be sufficient.
TRIAL_STEPS = 5
# After that, up to this number of factorizations follow, each with this number of steps.
MAX_FACTORS = 50
STEPS_PER_FACTOR = 10
# Number of steps without a factor, and number of pairs that L-BFGS keeps.
LBFGS_STEPS = 3000
MEMORY = 20
# Number of step lengths that the line search tries, and the number of these that come from a model.
MAX_BACKTRACKS = 20
MODEL_BACKTRACKS = 3


def minimize(objective, tolerance, radius=math.inf):
    r"""Return weights at which the computed gradient's norm is at most `tolerance`.

    The method is L-BFGS. If it converges slowly and there are few features and one output, a
    Cholesky factor of the Hessian is the initial curvature. If L-BFGS stalls, accelerated gradient
    descent follows. On a strongly convex, L-smooth objective, it reaches the tolerance within a
    number of steps that depends only on L and the gradient (Nesterov 2004, section 2.2).

    Parameters
    ----------
    objective : LinearObjective
    tolerance : float
        Tolerance well above the rounding error of a gradient.
    radius : float, default=inf
        For weights with a larger norm, the tolerance grows in proportion, as rounding errors do.

    Returns
    -------
    ndarray
        The weights.

    Raises
    ------
    ArithmeticError
        If the tolerance is below the rounding error of the gradient.
    """

    def excess(point):
        local_tolerance = tolerance * max(1.0, np.linalg.norm(point.weights) / radius)
        return np.linalg.norm(point.gradient) / local_tolerance

    def is_done(point, step=0):
        return excess(point) <= 1.0

    def is_done_or_slow(point, step):
        return is_done(point) or _is_slow(start, excess(point), step, max_steps)

    point = objective.at(np.zeros(objective.shape))
    if len(objective.shape) == 1 and objective.shape[0] <= CHOLESKY_LIMIT:
        start = excess(point)
        max_steps = 20 + objective.shape[0] // 4
        point = lbfgs(objective, point, is_done_or_slow, max_steps)
        for _ in range(MAX_FACTORS):
            if is_done(point):
                break
            try:
                solve = objective.hessian_solver(point.weights)
            except LinAlgError:
                # Rounding errors made a nearly singular matrix indefinite.
                break
            point = lbfgs(objective, point, is_done, STEPS_PER_FACTOR, solve)
    point = lbfgs(objective, point, is_done, LBFGS_STEPS)
    if is_done(point):
        return point.weights
    return _accelerated_descent(objective, point, tolerance, is_done)


def _is_slow(start, excess, step, max_steps):
    """Return True if the remaining steps are too few at the rate of convergence so far."""
    if step < TRIAL_STEPS:
        return False
    return step * math.log(excess) > (max_steps - step) * math.log(start / excess)


def lbfgs(objective, point, is_done, max_steps, solve=None):
    """Return the point that L-BFGS reaches (Nocedal 1980, Liu and Nocedal 1989).

    It stops if `is_done` returns True, if rounding errors prevent a step, or after `max_steps`.

    Parameters
    ----------
    objective : LinearObjective
    point : Point
        Start.
    is_done : callable
        Function of the point and the number of steps taken that returns True to stop.
    max_steps : int
    solve : callable, default=None
        Function that multiplies a vector by an approximate inverse of the Hessian. None uses a
        multiple of the identity computed from the last step.

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
            # Length of the step along the gradient that leads to the minimum of a quadratic model.
            probe = objective.at(point.weights - point.gradient / objective.smoothness)
            change = objective.smoothness * (point.gradient - probe.gradient)
            scale = np.vdot(point.gradient, point.gradient) / np.vdot(point.gradient, change)
        inverse = solve or partial(np.multiply, scale)
        step = -_inverse_product(pairs, inverse, point.gradient)
        accepted = _backtrack(objective, point, step)
        if accepted is None:
            break
        displacement = accepted.weights - point.weights
        change = accepted.gradient - point.gradient
        curvature = np.vdot(displacement, change)
        # By strong convexity, the curvature is positive, up to rounding errors.
        if not curvature > 0.0:
            break
        pairs.append((displacement, change, 1.0 / curvature))
        scale = curvature / np.vdot(change, change)
        point = accepted
    return point


def _inverse_product(pairs, solve, vector):
    """Return the product of the approximate inverse Hessian and a vector (two-loop recursion).

    `solve` is the approximate inverse that the pairs update.
    """
    result = vector.copy()
    coefficients = []
    for displacement, change, inverse in reversed(pairs):
        coefficients.append(inverse * np.vdot(displacement, result))
        result -= coefficients[-1] * change
    result = solve(result)
    for pair, coefficient in zip(pairs, reversed(coefficients), strict=True):
        displacement, change, inverse = pair
        result += (coefficient - inverse * np.vdot(change, result)) * displacement
    return result


def _backtrack(objective, point, step):
    """Return a point along a step that the line search accepts, or None if there is none.

    A point is accepted if the directional derivative is still negative, or positive with at most a
    fifth of its initial magnitude. Values of the objective are not compared, because near the
    minimum they agree to the last digit.
    """
    derivative = np.vdot(point.gradient, step)
    length = 1.0
    for attempt in range(MAX_BACKTRACKS):
        candidate = objective.at(point.weights + length * step)
        new_derivative = np.vdot(candidate.gradient, step)
        if new_derivative <= -0.2 * derivative:
            return candidate
        # The new length is where the derivative of a quadratic model is zero, but at least a tenth
        # of the current length. If the derivative jumps, as for a nearly piecewise linear loss, the
        # model only halves the length.
        factor = 0.1
        if attempt < MODEL_BACKTRACKS:
            factor = max(0.1, derivative / (derivative - new_derivative))
        length *= factor
    return None


def _accelerated_descent(objective, point, tolerance, is_done):
    """Return the weights that Nesterov's method reaches within its proven number of steps."""
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
    raise ArithmeticError("tolerance is below the rounding error of the gradient")
