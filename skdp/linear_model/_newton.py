"""A minimiser that certifies the norm of the gradient where it stops, on any data."""

import math

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import LinearOperator, cg

from skdp.linear_model._lbfgs import lbfgs

CHOLESKY_LIMIT = 1500
# L-BFGS takes at most this many steps, where Newton steps with factors are at hand about as many
# as these cost, and it is left after the trial if it will not do with them.
LBFGS_STEPS = 300
TRIAL_STEPS = 5
NEWTON_STEPS = 100
HALVINGS = 30


def minimise(objective, tolerance, radius=math.inf):
    r"""Return weights at which the computed gradient's norm is at most `tolerance`.

    L-BFGS, as long as it promises to be done soon, then damped Newton steps: with Cholesky factors
    that are kept while they contract the gradient fast (few features, one output), else by
    conjugate gradients. Where they stall, accelerated gradient descent takes over; on a strongly
    convex, L-smooth objective it gets there within a number of steps that follows from L and the
    gradient alone (Nesterov 2004, section 2.2).

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

    def goal(point):
        return tolerance * max(1.0, np.linalg.norm(point.weights) / radius)

    point = objective.at(np.zeros(objective.shape))
    most_steps = LBFGS_STEPS
    if _factorises(objective):
        most_steps = min(most_steps, 20 + objective.shape[0] // 4)
    start = np.linalg.norm(point.gradient)

    def is_done(point, step):
        reached = np.linalg.norm(point.gradient)
        if reached <= goal(point):
            return True
        return _factorises(objective) and _is_slow(start, reached, goal(point), step, most_steps)

    point = lbfgs(objective, point, is_done, most_steps)
    solve = None
    for _ in range(NEWTON_STEPS):
        norm = np.linalg.norm(point.gradient)
        if norm <= goal(point):
            return point.weights
        fresh = solve is None
        if fresh:
            solve = _newton_system(objective, point)
        accepted = _line_search(objective, point, -solve(point.gradient), fresh)
        if accepted is None:
            if fresh:
                break
            solve = None
            continue
        point = accepted
        if np.linalg.norm(point.gradient) > 0.1 * norm:
            solve = None
    return _accelerated_descent(objective, point, tolerance, goal)


def _factorises(objective):
    return len(objective.shape) == 1 and objective.shape[0] <= CHOLESKY_LIMIT


def _is_slow(start, reached, goal, step, most_steps):
    """Say whether as many steps as are left will not do at the rate so far."""
    if step < TRIAL_STEPS:
        return False
    return step * math.log(reached / goal) > (most_steps - step) * math.log(start / reached)


def _newton_system(objective, point):
    if _factorises(objective):
        try:
            return objective.hessian_solver(point)
        except LinAlgError:
            # Rounding made a nearly singular matrix indefinite.
            pass
    product = objective.hessian_product(point)
    return lambda gradient: _conjugate_gradients(product, gradient)


def _conjugate_gradients(product, target):
    def image(vector):
        return product(vector.reshape(target.shape)).ravel()

    hessian = LinearOperator((target.size, target.size), image, dtype=np.float64)
    solution, _ = cg(hessian, target.ravel(), rtol=0.03, maxiter=500)
    return solution.reshape(target.shape)


def _line_search(objective, point, step, fresh):
    slope, norm = np.vdot(point.gradient, step), np.linalg.norm(point.gradient)
    value, length = None, 1.0
    for _ in range(HALVINGS if fresh else 1):
        candidate = objective.at(point.weights + length * step)
        # Near the minimum values agree to the last digit and only the gradient tells.
        if np.linalg.norm(candidate.gradient) <= 0.5 * norm:
            return candidate
        value = objective.value(point) if value is None else value
        if objective.value(candidate) <= value + 1e-4 * length * slope:
            return candidate
        length *= 0.5
    return None


def _accelerated_descent(objective, point, tolerance, goal):
    L = objective.smoothness
    root = math.sqrt(L / objective.quadratic)
    momentum = (root - 1.0) / (root + 1.0)
    previous = point.weights
    distance = np.linalg.norm(point.gradient)
    steps = 1 + math.ceil(2.0 * root * math.log(2.0 + 2.0 * root**2 * distance / tolerance))
    for _ in range(steps):
        if np.linalg.norm(point.gradient) <= goal(point):
            return point.weights
        current = point.weights - point.gradient / L
        point = objective.at(current + momentum * (current - previous))
        previous = current
    raise ArithmeticError("the tolerance is below the rounding error of the gradient")
