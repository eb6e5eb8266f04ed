r"""Objective perturbation: a random linear term is added to the objective and the minimiser kept.

.. math:: J(w) = C \sum_i \ell_i(w) + \tfrac{1 + \Lambda}2 \|w\|^2 + b^\top w

With delta = 0 the density of b is proportional to :math:`e^{-\|b\| / s}` (Chaudhuri, Monteleoni
and Sarwate 2011), otherwise b is Gaussian (Kifer, Smith and Thakurta 2012) and priced by the
hockey-stick divergence (Redberg, Koskela and Wang 2023). The minimiser is found approximately and
made exact by a small noise on the weights (Iyengar et al. 2019). Every step is derived in
``docs/objective_perturbation.md``.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting import ApproximateDP, PureDP, gaussian_noise_multiplier, gdp_to_delta
from skdp.linear_model._newton import minimise
from skdp.linear_model._objective import LinearObjective
from skdp.linear_model._planning import (
    LARGEST_CURVATURE,
    ROWS_MOVED,
    FitCost,
    gradient_noise_cost,
)
from skdp.linear_model._rounding import gradient_rounding, rounding_per_weight
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism
from skdp.noise import discrete_gaussian, rounded_norm_noise

__all__ = [
    "ObjectivePerturbation",
    "expected_excess",
    "log_jacobian",
    "objective_C",
    "plan_objective_perturbation",
]

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

    @property
    def distance(self):
        """How far b is from the continuous draw of which it is a rounding, in L2."""
        return GRID_DISTANCE[self.law] * self.step * math.sqrt(self.size)

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
class ObjectivePerturbation:
    """What a fit by objective perturbation will do.

    Parameters
    ----------
    C : float
        Inverse regularisation strength, as in scikit-learn.
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
    mechanism : FitCost
        The price of both, the scale and the sensitivity for the summed loss without C.
    """

    C: float
    quadratic: float
    tolerance: float
    radius: float
    noise: LinearNoise
    output: object
    mechanism: FitCost
    sampler: ClassVar[str] = "all rows, once"

    def run(self, loss, rows, y, source):
        """Return the minimiser of the perturbed objective, with the output noise.

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
        shape = (*loss.weights_shape, rows.n_features)
        linear = self.noise.draw(source.stream()).reshape(shape)
        objective = LinearObjective(loss, rows, y, self.C, self.quadratic, linear)
        weights = minimise(objective, self.tolerance, self.radius)
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
        widening = self.noise.size + 1 if self.noise.law == "Gamma-norm" else 1
        linear, output = self.noise.scale**2 * widening, self.output.scale**2 * widening
        return linear / (self.C * curvature + self.quadratic) ** 2 + output

    def lengthening(self, curvature, norm):
        """Return 0: the weights have no iterates that wander."""
        return 0.0

    def standard_error(self, shape):
        """Return None: how the noise reaches the weights depends on the data."""
        return None


def plan_objective_perturbation(
    loss, n_rows, n_features, norm, C, epsilon, delta, relation, quadratic=None
):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    loss : loss
        From `skdp._losses`.
    n_rows, n_features : int
        The size of the problem, the constant feature included.
    norm : float
        The bound on a row's norm, the constant feature included.
    C : float
    epsilon, delta : float
        The guarantee of the fit; delta = 0 takes noise of Gamma-distributed norm.
    relation : {"add_remove", "replace_one"}
    quadratic : float, default=None
        1 plus the extra quadratic term; None for the least that leaves most of epsilon to the
        noise. For the C of `objective_C` it is 1.

    Returns
    -------
    ObjectivePerturbation
    """
    rounding_per_weight(loss, n_rows, n_features, norm, C)
    if quadratic is None:
        quadratic = _quadratic(loss, norm, C, epsilon, delta, relation)
    size = math.prod(loss.weights_shape) * n_features
    moved = C * loss.slope_bound * norm * (1.0 + SLACK)
    law = "Gaussian" if delta > 0.0 else "Gamma-norm"
    multiplier, left = _noise_multiplier(loss, norm, C / quadratic, epsilon, delta, relation)
    noise = LinearNoise(law, moved * multiplier, size)
    radius = _radius(loss, n_rows, norm, C, quadratic, noise.likely_norm)
    rounding = _rounding(loss, n_rows, n_features, norm, C, quadratic, radius)
    condition = 1.0 + C * n_rows * loss.curvature_bound * norm**2 / quadratic
    tolerance = moved * min(2.0**-16, 2.0**-11 / condition) + 4.0 * rounding
    # Each neighbour's weights are within twice this of its exact minimiser, projected.
    distance = (tolerance + rounding + noise.distance) / quadratic
    if not distance <= radius / 4.0:
        raise ValueError(f"C={C:g} is too large for {n_rows} rows of norm {norm:g}")
    output = _output_mechanism(left, delta, noise.scale, moved, relation, 4.0 * distance)
    output.check_size(size)
    cost = FitCost(
        name=f"Objective perturbation, {law} noise",
        event=ApproximateDP(epsilon, delta) if delta > 0.0 else PureDP(epsilon),
        epsilon=epsilon,
        delta=delta,
        scale=noise.scale / C,
        sensitivity=ROWS_MOVED[relation] * loss.slope_bound * norm,
    )
    return ObjectivePerturbation(C, quadratic, tolerance, radius, noise, output, cost)


def log_jacobian(loss, norm, C):
    r"""Bound :math:`\ln\det(I + A)`, A what one row adds to the Hessian over its least eigenvalue.

    A has rank r and trace at most :math:`C t`, so that by the inequality of the means the
    determinant is at most :math:`(1 + C t / r)^r`.
    """
    rank = loss.curvature_rank
    return rank * math.log1p(C * loss.trace_bound * norm**2 / rank)


def objective_C(loss, n_rows, n_features, norm, weights_norm, epsilon, delta, relation):
    """Return the C for which `expected_excess` is least without an extra quadratic term."""

    def excess(log_C):
        return expected_excess(
            loss,
            n_rows,
            n_features,
            norm,
            math.exp(log_C),
            weights_norm,
            epsilon,
            delta,
            relation,
            quadratic=1.0,
        )

    rank, trace = loss.curvature_rank, loss.trace_bound * norm**2
    most = rank * math.expm1(min(0.99 * epsilon / rank, 30.0)) / trace
    edges = [most, _free_tangent(epsilon, delta, relation) / (4.0 * trace)]
    largest = LARGEST_C * weights_norm / (loss.slope_bound * norm)
    largest = min(largest, LARGEST_CURVATURE / (n_rows * trace))
    found = []
    for edge in edges:
        high = math.log(min(edge, largest)) - SLACK
        best = minimize_scalar(excess, bounds=(high - 25.0, high), method="bounded")
        found += [(best.fun, best.x), (excess(high), high)]
    return math.exp(min(found)[1])


def expected_excess(
    loss, n_rows, n_features, norm, C, weights_norm, epsilon, delta, relation, quadratic=None
):
    r"""Return the summed loss expected above that of weights of norm W, in the quadratic model.

    With :math:`\lambda = (1 + \Lambda) / C` the regulariser costs at most
    :math:`\lambda W^2 / 2`. Noise of standard deviation :math:`\sigma` on the summed gradient
    costs :math:`\sigma^2` times `gradient_noise_cost`.
    """
    if quadratic is None:
        quadratic = _quadratic(loss, norm, C, epsilon, delta, relation)
    size, strength = math.prod(loss.weights_shape) * n_features, quadratic / C
    multiplier, _ = _noise_multiplier(loss, norm, C / quadratic, epsilon, delta, relation)
    noise = loss.slope_bound * norm * multiplier
    if delta == 0.0:
        noise *= math.sqrt(size + 1)
    cost = gradient_noise_cost(loss, n_rows, n_features, norm, strength)
    return 0.5 * strength * weights_norm**2 + cost * noise * noise


def _quadratic(loss, norm, C, epsilon, delta, relation):
    """Return the least 1 + Lambda for which the Jacobian costs its share, or nothing."""
    rank, trace = loss.curvature_rank, loss.trace_bound * norm**2
    allowed = rank * math.expm1(min(JACOBIAN_SHARE * epsilon / rank, 700.0))
    if loss.curvature_vanishes_at_vertices:
        free = _free_tangent(epsilon, delta, relation)
        allowed = max(allowed, free * (1.0 - SLACK) / 4.0)
    return max(1.0, C * trace / allowed)


def _free_tangent(epsilon, delta, relation):
    """Return up to which 4 C times the trace of a row's curvature costs nothing or little.

    With delta = 0 and two rows that differ, one of them can move half as far as both while the
    other's Jacobian adds up.
    """
    return (0.45 if delta == 0.0 and relation == "replace_one" else 0.9) * epsilon


def _noise_multiplier(loss, norm, C, epsilon, delta, relation):
    """Return the scale of b over C times the bound on a row's gradient, and the epsilon it has.

    `C` is that over the quadratic term. The least of two analyses: the Jacobian is paid for, or,
    where it vanishes at the vertices of the gradients' hull and is small, it costs nothing.
    """
    choices = []
    paid = (epsilon - log_jacobian(loss, norm, C)) * (1.0 - SLACK)
    if paid > 0.0:
        choices.append((_multiplier(loss, paid, paid, delta, relation), paid))
    tangent = 4.0 * C * loss.trace_bound * norm**2
    if loss.curvature_vanishes_at_vertices and tangent <= _free_tangent(epsilon, delta, relation):
        free = epsilon * (1.0 - SLACK)
        choices.append((_multiplier(loss, free, free - tangent, delta, relation), free))
    return min(choices)


def _multiplier(loss, epsilon, reduced, delta, relation):
    """Return the scale of b in the same units; the output noise is paid from epsilon too.

    `reduced` is the epsilon of the vertices that the Jacobian can add to.
    """
    if delta == 0.0:
        return ROWS_MOVED[relation] / ((1.0 - OUTPUT_SHARE) * epsilon) * (1.0 + SLACK)
    moves = _moves(loss, relation)
    longest = max(move for move, _, _ in moves)

    def delta_at(multiplier):
        return sum(
            count
            * gdp_to_delta(
                math.hypot(move, OUTPUT_SHARE * longest) / multiplier,
                reduced if adds else epsilon,
            )
            for move, count, adds in moves
        )

    low = longest * gaussian_noise_multiplier(epsilon, delta)
    high = 2.0 * low
    while delta_at(high) > delta:
        high *= 2.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high * (1.0 + SLACK)


def _moves(loss, relation):
    """Return the vertices of the gradients' hull: norm, number, and if the Jacobian adds to them.

    It does where the row that the Jacobian belongs to contributes the gradient 0.
    """
    n = loss.n_vertices
    if relation == "add_remove":
        return [(0.0, 1, True), (1.0, n, False)]
    return [(0.0, 1, True), (1.0, n, True), (1.0, n, False), (2.0, n * n, False)]


def _output_mechanism(epsilon, delta, scale, moved, relation, sensitivity):
    if delta == 0.0:
        return GammaNormMechanism(epsilon=OUTPUT_SHARE * epsilon, sensitivity=sensitivity)
    multiplier = scale / (moved * OUTPUT_SHARE * ROWS_MOVED[relation]) * (1.0 + SLACK)
    return GaussianMechanism(epsilon, delta, sensitivity, noise_multiplier=multiplier)


def _radius(loss, n_rows, norm, C, quadratic, linear_norm):
    r"""Bound the minimiser for a linear term of that norm, from J at 0 and the gradient, twice."""
    by_value = math.hypot(
        linear_norm, math.sqrt(2.0 * quadratic * C * n_rows * loss.value_at_zero())
    )
    by_gradient = C * n_rows * loss.slope_bound * norm
    return 2.0 * (linear_norm + min(by_value, by_gradient)) / quadratic


def _rounding(loss, n_rows, n_features, norm, C, quadratic, radius):
    """Bound the rounding error of the gradient at weights within the radius.

    At the end of the solver the linear term is as long as the rest of the gradient.
    """
    terms = quadratic * radius + C * n_rows * loss.slope_bound * norm
    unit = np.finfo(np.float64).eps
    return gradient_rounding(loss, n_rows, n_features, norm, C, radius) + 4.0 * unit * terms
