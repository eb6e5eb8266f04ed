r"""Objective perturbation: a random linear term is added to the objective, then it is minimized.

.. math:: J(w) = C \sum_i \ell_i(w) + \tfrac{1 + \Lambda}2 \|w\|^2 + b^\top w

With delta = 0, the density of b is proportional to :math:`e^{-\|b\| / s}` (Chaudhuri, Monteleoni
and Sarwate 2011). Otherwise b is Gaussian (Kifer, Smith and Thakurta 2012) and its cost is computed
with the hockey-stick divergence (Redberg, Koskela and Wang 2023). The minimizer is computed
approximately, and a small noise on the weights covers the error (Iyengar et al. 2019). Every step
is derived in ``docs/theory/objective_perturbation.md``.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from skdp._optim._linear_objective import LinearObjective
from skdp._optim._newton import minimize
from skdp.accounting._gaussian import mean_delta, sum_of_deltas, summed_noise_multiplier
from skdp.linear_model import _planning
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism
from skdp.mechanisms._plan import Plan
from skdp.mechanisms._stages import UNNAMED, Stage
from skdp.noise import discrete_gaussian, rounded_norm_noise

# Largest fraction of epsilon for the Jacobian. For a given C, the quadratic term is increased until
# the Jacobian costs no more than that.
JACOBIAN_FRACTION = 0.25
# Fraction of the budget spent on the small output noise: of epsilon for delta = 0, of mu otherwise.
OUTPUT_FRACTION = 2.0**-6
# Grid step of b relative to its scale, and the distance in steps per coordinate between b and a
# continuous sample.
GRID = 2.0**-40
GRID_DISTANCE = {"Gaussian": 160.0, "Gamma-norm": 0.5}
SLACK = 1e-12
# Upper bound on an automatic C, in units of the expected norm of the weights over the gradient's
# norm bound.
MAX_C = 100.0
# Norm of the weights, times data_norm, for which C="auto" balances regularization and noise.
BALANCED_WEIGHTS_NORM = _planning.EXPECTED_WEIGHTS_NORM
# Target ratio of signal and noise, relative to gradient perturbation. Tuned on Adult (train).
SIGNAL_FRACTION = 0.7


@dataclass(frozen=True)
class LinearNoise:
    """Distribution of the random linear term.

    Parameters
    ----------
    law : {"Gaussian", "Gamma-norm"}
    scale : float
        Standard deviation, or scale s of the density exp(-||b|| / s).
    size : int
        Number of weights.
    """

    law: str
    scale: float
    size: int

    @property
    def step(self):
        """The step of the grid on which b is drawn, a power of two."""
        width = self.scale
        if self.law == "Gamma-norm":
            width = self.scale * math.sqrt(self.size)
        return math.ldexp(GRID, math.frexp(width)[1] - 1)

    @property
    def distance(self):
        """Upper bound on the L2 distance between b and the continuous sample that it rounds."""
        return GRID_DISTANCE[self.law] * self.step * math.sqrt(self.size)

    @property
    def deviation(self):
        """The standard deviation of each coordinate."""
        if self.law == "Gamma-norm":
            return self.scale * math.sqrt(self.size + 1)
        return self.scale

    @property
    def likely_norm(self):
        """A norm that b exceeds with negligible probability."""
        root = math.sqrt(self.size)
        if self.law == "Gamma-norm":
            return self.scale * (self.size + 10.0 * root + 50.0)
        return self.scale * (root + 10.0)

    def draw(self, stream):
        """Return b, of shape (size,)."""
        if self.law == "Gamma-norm":
            steps = rounded_norm_noise(np.zeros(self.size), self.scale / self.step, stream)
        else:
            sigma = math.hypot(self.scale / self.step, 4.0) * (1.0 + GRID)
            steps = discrete_gaussian(sigma, self.size, stream)
        return steps * self.step


@dataclass(frozen=True)
class ObjectivePerturbation(_planning.PrivateSolver):
    """The plan of a fit by objective perturbation.

    Parameters
    ----------
    C : float
        Inverse regularization strength, as in scikit-learn.
    quadratic : float
        1 plus the additional quadratic term.
    tolerance : float
        Norm of the computed gradient at which the solver stops.
    radius : float
        Weights are projected onto the ball of this radius, which almost never changes them.
    noise : LinearNoise
        Distribution of the linear term.
    output : GaussianMechanism or GammaNormMechanism
        Noise that covers the solver's error.
    mechanism : Plan
        Combined cost of both, with the scale and the sensitivity for the summed loss without C.
    """

    C: float
    quadratic: float
    tolerance: float
    radius: float
    noise: LinearNoise
    output: object
    mechanism: Plan
    choice = "objective"

    def run(self, loss, rows, y, source, start=0.0):
        """Return the minimizer of the perturbed objective, with the output noise.

        Parameters
        ----------
        loss : BoundedLoss
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource
        start : ndarray, default=0.0
            Weights that regularization shrinks to.

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
        """Return the variance of the noise in the weights along directions with given curvatures.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian.

        Returns
        -------
        ndarray
        """
        linear_std = self.noise.deviation
        output_std = self.output.deviation(self.noise.size)
        return linear_std**2 / (self.C * curvature + self.quadratic) ** 2 + output_std**2


def plan_objective_perturbation(problem, C, guarantee, quadratic=None):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : PerturbationProblem
    C : float
    guarantee : Guarantee
        Guarantee of the weights. With delta = 0, the noise has a Gamma-distributed norm.
    quadratic : float, default=None
        1 plus the additional quadratic term. None uses the smallest term that leaves most of
        epsilon to the noise, which is 1 for the C of `automatic_C`.

    Returns
    -------
    ObjectivePerturbation

    Raises
    ------
    ValueError
        If C is too large or too small for this number of rows and their norm.
    """
    _planning.rounding_per_weight(problem, C)
    quadratic = quadratic or _quadratic(problem, C, guarantee)
    row_gradient = C * problem.lipschitz * (1.0 + SLACK)
    law = _distribution(guarantee)
    multiplier, noise_epsilon = _noise_multiplier(problem, C / quadratic, guarantee)
    noise = LinearNoise(law, row_gradient * multiplier, problem.size)
    radius = _radius(problem, C, quadratic, noise.likely_norm)
    rounding = _rounding(problem, C, quadratic, radius)
    condition = 1.0 + C * problem.n_rows * problem.smoothness / quadratic
    tolerance = row_gradient * min(2.0**-16, 2.0**-11 / condition) + 4.0 * rounding
    # For either dataset, the weights are within twice this distance of the projected exact
    # minimizer.
    distance = (tolerance + rounding + noise.distance) / quadratic
    if not distance <= radius / 4.0:
        raise ValueError(
            f"C={C:g} times the number of rows is too large for rows of norm {problem.norm:g}"
        )
    noise_guarantee = replace(guarantee, epsilon=noise_epsilon)
    output = _output_mechanism(noise_guarantee, noise.scale / row_gradient, 4.0 * distance)
    output.check_size(problem.size)
    name = f"Objective perturbation, {law} noise"
    stage = Stage(
        name=UNNAMED,
        law=f"{name} on the objective and on its solution",
        event=guarantee.event,
        scale=noise.scale / C,
        sensitivity=guarantee.neighbors.sensitivity_factor * problem.lipschitz,
    )
    mechanism = Plan(
        name=name,
        event=stage.event,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        scale=stage.scale,
        sensitivity=stage.sensitivity,
        stages=(stage,),
    )
    return ObjectivePerturbation(C, quadratic, tolerance, radius, noise, output, mechanism)


def _distribution(guarantee):
    """Return the distribution of the linear term."""
    if guarantee.delta > 0.0:
        return "Gaussian"
    return "Gamma-norm"


def log_jacobian(problem, C):
    r"""Return an upper bound on :math:`\ln\det(I + A)`.

    A is a unit's contribution to the Hessian, divided by the Hessian's smallest eigenvalue. It has
    rank r and trace at most :math:`C t`, so by the inequality of arithmetic and geometric means the
    determinant is at most :math:`(1 + C t / r)^r`.
    """
    rank = problem.curvature_rank
    return rank * math.log1p(C * problem.curvature_trace / rank)


# Cached: the two minimizations over noise multipliers take longer than the rest of a small fit, and
# folds, trials and audits repeatedly plan for the same public numbers.
@lru_cache(maxsize=256)
def automatic_C(problem, weights_norm, guarantee):
    """Return the C that minimizes `expected_excess` without an additional quadratic term."""

    def excess(log_C):
        return expected_excess(problem, math.exp(log_C), weights_norm, guarantee, quadratic=1.0)

    rank = problem.curvature_rank
    trace = problem.curvature_trace
    # Largest C in either analysis: the Jacobian costs nearly all of epsilon, or costs nothing.
    max_C_of_jacobian = rank * math.expm1(min(0.99 * guarantee.epsilon / rank, 30.0)) / trace
    max_C_of_free_jacobian = _free_jacobian_limit(guarantee) / (4.0 * trace)
    max_C = MAX_C * weights_norm / problem.lipschitz
    max_C = min(max_C, _planning.MAX_CURVATURE / (problem.n_rows * trace))
    candidates = []
    for edge in (max_C_of_jacobian, max_C_of_free_jacobian):
        high = math.log(min(edge, max_C)) - SLACK
        best = minimize_scalar(excess, bounds=(high - 25.0, high), method="bounded")
        candidates += [(best.fun, best.x), (excess(high), high)]
    _, log_C = min(candidates)
    C = math.exp(log_C)
    return min(C, SIGNAL_FRACTION * problem.max_C(_noise_std(problem, C, guarantee)))


def expected_excess(problem, C, weights_norm, guarantee, quadratic=None):
    r"""Return the expected excess loss, summed over rows, relative to weights of norm W.

    This is the `quadratic_excess` for a regularizer of strength :math:`\lambda = (1 + \Lambda) / C`
    and the noise on the summed gradient.
    """
    quadratic = quadratic or _quadratic(problem, C, guarantee)
    l2_reg_strength = quadratic / C
    noise_std = _noise_std(problem, 1.0 / l2_reg_strength, guarantee)
    return _planning.quadratic_excess(problem, l2_reg_strength, weights_norm, noise_std)


def _noise_std(problem, C, guarantee):
    """Return the standard deviation of the noise on the summed gradient.

    `C` is divided by the quadratic term.
    """
    multiplier, _ = _noise_multiplier(problem, C, guarantee)
    scale = problem.lipschitz * multiplier
    return LinearNoise(_distribution(guarantee), scale, problem.size).deviation


def _quadratic(problem, C, guarantee):
    """Return the smallest 1 + Lambda for which the Jacobian costs its fraction, or nothing."""
    rank = problem.curvature_rank
    max_trace = rank * math.expm1(min(JACOBIAN_FRACTION * guarantee.epsilon / rank, 700.0))
    if problem.curvature_vanishes_at_vertices:
        max_trace = max(max_trace, _free_jacobian_limit(guarantee) * (1.0 - SLACK) / 4.0)
    return max(1.0, C * problem.curvature_trace / max_trace)


def _free_jacobian_limit(guarantee):
    """Return the largest 4 C times the trace of a row's curvature that costs (almost) nothing.

    With delta = 0, if two rows differ, the gradient of one can account for half of the total change
    while the Jacobian of the other adds to the cost.
    """
    if guarantee.delta == 0.0 and guarantee.relation == "replace_one":
        return 0.45 * guarantee.epsilon
    return 0.9 * guarantee.epsilon


def _noise_multiplier(problem, C, guarantee):
    """Return the scale of b over C times the bound on a row's gradient, and the epsilon of b.

    `C` is divided by the quadratic term. The result is the better of two analyses: either the
    Jacobian is charged, or it is free because it is small and vanishes at the vertices of the hull
    of gradients.
    """
    candidates = []
    loss = problem.loss
    epsilon = (guarantee.epsilon - log_jacobian(problem, C)) * (1.0 - SLACK)
    if epsilon > 0.0:
        charged = replace(guarantee, epsilon=epsilon)
        candidates.append((_multiplier(loss, charged, epsilon), epsilon))
    tangent = 4.0 * C * problem.curvature_trace
    if problem.curvature_vanishes_at_vertices and tangent <= _free_jacobian_limit(guarantee):
        epsilon = guarantee.epsilon * (1.0 - SLACK)
        free = replace(guarantee, epsilon=epsilon)
        candidates.append((_multiplier(loss, free, epsilon - tangent), epsilon))
    return min(candidates)


def _multiplier(loss, guarantee, reduced_epsilon):
    """Return the scale of b in the same units, for an epsilon that includes the output noise.

    `reduced_epsilon` applies to the vertices at which the Jacobian can add to the cost.
    """
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    if delta == 0.0:
        sensitivity = guarantee.neighbors.sensitivity_factor
        return sensitivity / ((1.0 - OUTPUT_FRACTION) * epsilon) * (1.0 + SLACK)
    vertices = _vertices(loss, guarantee.relation)
    output_distance = OUTPUT_FRACTION * max(distance for distance, _, _ in vertices)
    curves = []
    for distance, count, has_jacobian in vertices:
        vertex_epsilon = epsilon
        if has_jacobian:
            vertex_epsilon = reduced_epsilon
        curves.append((count, math.hypot(distance, output_distance), vertex_epsilon))
    total_delta = sum_of_deltas
    if guarantee.neighbors.unit == "person":
        total_delta = mean_delta
    return summed_noise_multiplier(curves, delta, total_delta) * (1.0 + SLACK)


def _vertices(loss, relation):
    """Return the vertices of the hull of gradient differences as (norm, number, has_jacobian).

    The Jacobian adds to the cost of a vertex if its row contributes the gradient 0 there.
    """
    n = loss.n_vertices
    if relation == "add_remove":
        return [(0.0, 1, True), (1.0, n, False)]
    return [(0.0, 1, True), (1.0, n, True), (1.0, n, False), (2.0, n * n, False)]


def _output_mechanism(guarantee, multiplier, sensitivity):
    """Return the noise that covers the solver's error.

    `multiplier` is the noise multiplier of b for one row.
    """
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    if delta == 0.0:
        return GammaNormMechanism(epsilon=OUTPUT_FRACTION * epsilon, sensitivity=sensitivity)
    multiplier /= OUTPUT_FRACTION * guarantee.neighbors.sensitivity_factor
    multiplier *= 1.0 + SLACK
    return GaussianMechanism(epsilon, delta, sensitivity, noise_multiplier=multiplier)


def _radius(problem, C, quadratic, linear_norm):
    r"""Return an upper bound on the norm of the minimizer for a linear term of this norm.

    The bound is computed from J at the baseline, or from the gradients of rows.
    """
    at_baseline = C * problem.n_rows * problem.value_at_baseline
    by_value = math.hypot(linear_norm, math.sqrt(2.0 * quadratic * at_baseline))
    by_gradient = C * problem.n_rows * problem.lipschitz
    return problem.baseline_norm + 2.0 * (linear_norm + min(by_value, by_gradient)) / quadratic


def _rounding(problem, C, quadratic, radius):
    """Return an upper bound on the gradient's rounding error at weights within the radius.

    At the minimizer, the linear term has the same norm as the rest of the gradient.
    """
    gradient_norm = quadratic * radius + C * problem.n_rows * problem.lipschitz
    rounding = 4.0 * np.finfo(np.float64).eps * gradient_norm
    return _planning.gradient_rounding(problem, C, radius) + rounding
