r"""Objective perturbation: a random linear term is added to the objective and the minimizer kept.

.. math:: J(w) = C \sum_i \ell_i(w) + \tfrac{1 + \Lambda}2 \|w\|^2 + b^\top w

With delta = 0 the density of b is proportional to :math:`e^{-\|b\| / s}` (Chaudhuri, Monteleoni
and Sarwate 2011), otherwise b is Gaussian (Kifer, Smith and Thakurta 2012) and priced by the
hockey-stick divergence (Redberg, Koskela and Wang 2023). The minimizer is found approximately and
made exact by a small noise on the weights (Iyengar et al. 2019). Every step is derived in
``docs/objective_perturbation.md``.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting._gaussian import mean_delta, sum_of_deltas, summed_noise_multiplier
from skdp.linear_model import _planning
from skdp.linear_model._newton import minimize
from skdp.linear_model._objective import LinearObjective
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism
from skdp.mechanisms._plan import Price
from skdp.noise import discrete_gaussian, rounded_norm_noise

# Of epsilon, what the Jacobian may cost at a given C before the quadratic term is raised.
JACOBIAN_SHARE = 0.25
# The small output noise has this share of the budget: of epsilon for delta = 0, of mu otherwise.
OUTPUT_SHARE = 2.0**-6
# The grid of b over its scale, and how far b lies from a continuous draw, in steps a coordinate.
GRID = 2.0**-40
GRID_DISTANCE = {"Gaussian": 160.0, "Gamma-norm": 0.5}
SLACK = 1e-12
# C="auto" is at most this, in units of the expected norm of the weights over that of a gradient.
LARGEST_C = 100.0
# The norm of weights, times data_norm, for which C="auto" balances regularization against noise.
BALANCED_WEIGHTS_NORM = _planning.EXPECTED_WEIGHTS_NORM
# Of the signal that noise is to leave with gradients, what it is to leave here; chosen likewise.
SIGNAL_SHARE = 0.7


@dataclass(frozen=True)
class LinearNoise:
    """The law of the random linear term.

    Parameters
    ----------
    law : {"Gaussian", "Gamma-norm"}
    scale : float
        The standard deviation, or the scale s of the density exp(-||b|| / s).
    size : int
        The number of weights.
    """

    law: str
    scale: float
    size: int

    @property
    def step(self):
        """The grid on which b is drawn, a power of two."""
        width = self.scale * (math.sqrt(self.size) if self.law == "Gamma-norm" else 1.0)
        return math.ldexp(GRID, math.frexp(width)[1] - 1)

    # How far b is from the continuous draw of which it is a rounding, in L2.
    @property
    def distance(self):
        return GRID_DISTANCE[self.law] * self.step * math.sqrt(self.size)

    @property
    def deviation(self):
        """The standard deviation of each of its values."""
        return self.scale * (math.sqrt(self.size + 1) if self.law == "Gamma-norm" else 1.0)

    @property
    def likely_norm(self):
        """A norm that b hardly ever exceeds."""
        root = math.sqrt(self.size)
        long = self.size + 10.0 * root + 50.0 if self.law == "Gamma-norm" else root + 10.0
        return self.scale * long

    def draw(self, stream):
        """Return b, of shape (size,)."""
        if self.law == "Gamma-norm":
            steps = rounded_norm_noise(np.zeros(self.size), self.scale / self.step, stream)
        else:
            sigma = math.hypot(self.scale / self.step, 4.0) * (1.0 + GRID)
            steps = discrete_gaussian(sigma, self.size, stream)
        return steps * self.step


@dataclass(frozen=True)
class ObjectivePerturbation(_planning.Perturbation):
    """What a fit by objective perturbation will do.

    Parameters
    ----------
    C : float
        Inverse regularization strength, as in scikit-learn.
    quadratic : float
        1 plus the extra quadratic term.
    tolerance : float
        The computed gradient norm at which the solver stops.
    radius : float
        Weights are projected onto the ball of this radius, which hardly ever matters.
    noise : LinearNoise
        The law of the linear term.
    output : GaussianMechanism or GammaNormMechanism
        The noise that hides the solver's error.
    mechanism : Price
        The price of both, the scale and the sensitivity for the summed loss without C.
    """

    C: float
    quadratic: float
    tolerance: float
    radius: float
    noise: LinearNoise
    output: object
    mechanism: Price

    def run(self, loss, rows, y, source, start=0.0):
        """Return the minimizer of the perturbed objective, with the output noise.

        Parameters
        ----------
        loss : loss
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource

        Returns
        -------
        ndarray
        """
        linear = self.noise.draw(source.stream()).reshape((*loss.weights_shape, rows.n_features))
        objective = LinearObjective(loss, rows, y, self.C, self.quadratic, linear, start)
        weights = minimize(objective, self.tolerance, self.radius)
        weights /= max(1.0, np.linalg.norm(weights) / self.radius)
        return self.output.release(weights, random_state=source)

    def noise_variance(self, curvature):
        """Return the variance of the noise in the weights, where the summed loss has a curvature.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian.

        Returns
        -------
        ndarray
        """
        linear = self.noise.deviation
        output = self.output.deviation(self.noise.size)
        return linear**2 / (self.C * curvature + self.quadratic) ** 2 + output**2


def plan_objective_perturbation(problem, C, guarantee, quadratic=None):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : Problem
    C : float
    guarantee : Guarantee
        Of the fit; delta = 0 takes noise of Gamma-distributed norm.
    quadratic : float, default=None
        1 plus the extra quadratic term; None for the least that leaves most of epsilon to the
        noise. For the C of `automatic_C` it is 1.

    Returns
    -------
    ObjectivePerturbation
    """
    _planning.rounding_per_weight(problem, C)
    quadratic = quadratic or _quadratic(problem, C, guarantee)
    moved = C * problem.lipschitz * (1.0 + SLACK)
    law = "Gaussian" if guarantee.delta > 0.0 else "Gamma-norm"
    multiplier, left = _noise_multiplier(problem, C / quadratic, guarantee)
    noise = LinearNoise(law, moved * multiplier, problem.size)
    radius = _radius(problem, C, quadratic, noise.likely_norm)
    rounding = _rounding(problem, C, quadratic, radius)
    condition = 1.0 + C * problem.n_rows * problem.smoothness / quadratic
    tolerance = moved * min(2.0**-16, 2.0**-11 / condition) + 4.0 * rounding
    # Each neighbor's weights are within twice this of its exact minimizer, projected.
    distance = (tolerance + rounding + noise.distance) / quadratic
    if not distance <= radius / 4.0:
        raise ValueError(f"C={C:g} is too large for {problem.n_rows} rows of norm {problem.norm:g}")
    left = replace(guarantee, epsilon=left)
    output = _output_mechanism(left, noise.scale / moved, 4.0 * distance)
    output.check_size(problem.size)
    price = Price(
        name=f"Objective perturbation, {law} noise",
        event=guarantee.event,
        guarantee=guarantee,
        scale=noise.scale / C,
        sensitivity=guarantee.neighbors.sensitivity_factor * problem.lipschitz,
    )
    return ObjectivePerturbation(C, quadratic, tolerance, radius, noise, output, price)


def log_jacobian(problem, C):
    r"""Bound :math:`\ln\det(I + A)`, A what a unit adds to the Hessian over its least eigenvalue.

    A has rank r and trace at most :math:`C t`, so that by the inequality of the means the
    determinant is at most :math:`(1 + C t / r)^r`.
    """
    rank = problem.curvature_rank
    return rank * math.log1p(C * problem.curvature_trace / rank)


# Two minimizations over noise multipliers take more time than the rest of a small fit. Folds,
# trials and audits plan for the same public numbers again and again.
@lru_cache(maxsize=256)
def automatic_C(problem, weights_norm, guarantee):
    """Return the C for which `expected_excess` is least without an extra quadratic term."""

    def excess(log_C):
        return expected_excess(problem, math.exp(log_C), weights_norm, guarantee, quadratic=1.0)

    rank = problem.curvature_rank
    trace = problem.curvature_trace
    most = rank * math.expm1(min(0.99 * guarantee.epsilon / rank, 30.0)) / trace
    edges = [most, _free_tangent(guarantee) / (4.0 * trace)]
    largest = LARGEST_C * weights_norm / problem.lipschitz
    largest = min(largest, _planning.LARGEST_CURVATURE / (problem.n_rows * trace))
    found = []
    for edge in edges:
        high = math.log(min(edge, largest)) - SLACK
        best = minimize_scalar(excess, bounds=(high - 25.0, high), method="bounded")
        found += [(best.fun, best.x), (excess(high), high)]
    C = math.exp(min(found)[1])
    return min(C, SIGNAL_SHARE * problem.largest_C(_deviation(problem, C, guarantee)))


def expected_excess(problem, C, weights_norm, guarantee, quadratic=None):
    r"""Return the summed loss expected above that of weights of norm W, in the quadratic model.

    With :math:`\lambda = (1 + \Lambda) / C` the regularizer costs at most
    :math:`\lambda W^2 / 2`. Noise of standard deviation :math:`\sigma` on the summed gradient
    costs as in `quadratic_excess`.
    """
    quadratic = quadratic or _quadratic(problem, C, guarantee)
    strength = quadratic / C
    noise = _deviation(problem, 1.0 / strength, guarantee)
    return _planning.quadratic_excess(problem, strength, weights_norm, noise)


def _deviation(problem, C, guarantee):
    """Return the standard deviation of the noise on the summed gradient, C over the quadratic."""
    multiplier, _ = _noise_multiplier(problem, C, guarantee)
    law = "Gaussian" if guarantee.delta > 0.0 else "Gamma-norm"
    return LinearNoise(law, problem.lipschitz * multiplier, problem.size).deviation


def _quadratic(problem, C, guarantee):
    """Return the least 1 + Lambda for which the Jacobian costs its share, or nothing."""
    rank = problem.curvature_rank
    allowed = rank * math.expm1(min(JACOBIAN_SHARE * guarantee.epsilon / rank, 700.0))
    if problem.curvature_vanishes_at_vertices:
        allowed = max(allowed, _free_tangent(guarantee) * (1.0 - SLACK) / 4.0)
    return max(1.0, C * problem.curvature_trace / allowed)


def _free_tangent(guarantee):
    """Return up to which 4 C times the trace of a row's curvature costs nothing or little.

    With delta = 0 and two rows that differ, one of them can move half as far as both while the
    other's Jacobian adds up.
    """
    halved = guarantee.delta == 0.0 and guarantee.relation == "replace_one"
    return (0.45 if halved else 0.9) * guarantee.epsilon


def _noise_multiplier(problem, C, guarantee):
    """Return the scale of b over C times the bound on a row's gradient, and the epsilon it has.

    `C` is that over the quadratic term. The least of two analyzes: the Jacobian is paid for, or,
    where it vanishes at the vertices of the gradients' hull and is small, it costs nothing.
    """
    choices = []
    loss = problem.loss
    paid = (guarantee.epsilon - log_jacobian(problem, C)) * (1.0 - SLACK)
    if paid > 0.0:
        choices.append((_multiplier(loss, replace(guarantee, epsilon=paid), paid), paid))
    tangent = 4.0 * C * problem.curvature_trace
    if problem.curvature_vanishes_at_vertices and tangent <= _free_tangent(guarantee):
        free = guarantee.epsilon * (1.0 - SLACK)
        choices.append((_multiplier(loss, replace(guarantee, epsilon=free), free - tangent), free))
    return min(choices)


def _multiplier(loss, guarantee, reduced):
    """Return the scale of b in the same units; the output noise is paid from epsilon too.

    `reduced` is the epsilon of the vertices that the Jacobian can add to.
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if delta == 0.0:
        moved = guarantee.neighbors.sensitivity_factor
        return moved / ((1.0 - OUTPUT_SHARE) * epsilon) * (1.0 + SLACK)
    moves = _moves(loss, guarantee.relation)
    output = OUTPUT_SHARE * max(move for move, _, _ in moves)
    curves = [
        (count, math.hypot(move, output), reduced if adds else epsilon)
        for move, count, adds in moves
    ]
    of_curves = mean_delta if guarantee.neighbors.unit == "person" else sum_of_deltas
    return summed_noise_multiplier(curves, delta, of_curves) * (1.0 + SLACK)


def _moves(loss, relation):
    """Return the vertices of the gradients' hull: norm, number, and if the Jacobian adds to them.

    It does where the row that the Jacobian belongs to contributes the gradient 0.
    """
    n = loss.n_vertices
    if relation == "add_remove":
        return [(0.0, 1, True), (1.0, n, False)]
    return [(0.0, 1, True), (1.0, n, True), (1.0, n, False), (2.0, n * n, False)]


def _output_mechanism(guarantee, multiplier, sensitivity):
    """Return the noise that hides the solver's error; `multiplier` is that of one row's b."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if delta == 0.0:
        return GammaNormMechanism(epsilon=OUTPUT_SHARE * epsilon, sensitivity=sensitivity)
    multiplier /= OUTPUT_SHARE * guarantee.neighbors.sensitivity_factor
    multiplier *= 1.0 + SLACK
    return GaussianMechanism(epsilon, delta, sensitivity, noise_multiplier=multiplier)


def _radius(problem, C, quadratic, linear_norm):
    r"""Bound the minimizer for a linear term of that norm, from J at the center and gradients."""
    at_center = C * problem.n_rows * problem.value_at_center
    by_value = math.hypot(linear_norm, math.sqrt(2.0 * quadratic * at_center))
    by_gradient = C * problem.n_rows * problem.lipschitz
    return problem.center + 2.0 * (linear_norm + min(by_value, by_gradient)) / quadratic


def _rounding(problem, C, quadratic, radius):
    """Bound the rounding error of the gradient at weights within the radius.

    At the end of the solver the linear term is as long as the rest of the gradient.
    """
    terms = quadratic * radius + C * problem.n_rows * problem.lipschitz
    return _planning.gradient_rounding(problem, C, radius) + 4.0 * np.finfo(np.float64).eps * terms
