"""Divergences of common releases in closed form: of one order, and their largest slope rho."""

import math

import numpy as np
from scipy.special import ndtri_exp

from skdp.accounting._pairs import LossPair, discretize, log_moments
from skdp.utils import _rounding as rounding

UP = 1.0 + 1e-13
# Round-off of a logarithm of a moment near 1, which a low order would divide by order - 1.
ROUND_OFF = 1e-14
_TINY = 1e-300
_CELLS = 8192


def squared(x: float) -> float:
    """x^2, which does not round to 0 unless x is 0."""
    return max(x * x, _TINY) if x != 0.0 else 0.0


def pure_rho(epsilon: float) -> float:
    """rho of an epsilon-DP release: epsilon tanh(epsilon / 2), at most epsilon^2 / 2.

    It is the Renyi divergence of randomized response at order 1, which is where the
    divergence over the order is largest (Harrison and Manurangsi 2025).
    """
    if epsilon == 0.0 or epsilon == math.inf:
        return epsilon
    return max(epsilon * math.tanh(0.5 * epsilon) * rounding.UP, _TINY)


def laplace_rho(epsilon: float) -> float:
    """rho of a Laplace release: epsilon + e^-epsilon - 1 (Harrison and Manurangsi 2025)."""
    exact = epsilon + math.expm1(-epsilon) + 2.0**-51 * epsilon
    return min(exact, 0.5 * squared(epsilon)) * rounding.UP


def pure_mu(epsilon: float) -> float:
    """mu with e^epsilon / (1 + e^epsilon) = Phi(mu / 2)."""
    if epsilon < 1e-3:
        # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2 <= epsilon/4; the cubic term is covered by 1e-6.
        return epsilon * math.sqrt(math.pi / 2.0) * (1.0 + 1e-6)
    return -2.0 * float(ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon))))) * (1.0 + 1e-13)


def response_renyi(epsilon, order, num_categories=2):
    """Randomized response (Mironov 2017, table II), k-ary."""
    rest = num_categories - 1.0
    top = -math.log1p(rest * math.exp(-epsilon))
    terms = [
        top + (order - 1.0) * epsilon,
        top - order * epsilon,
        math.log(num_categories - 2.0) + top - epsilon if num_categories > 2 else -math.inf,
    ]
    peak = max(terms)
    total = peak + math.log(math.fsum(math.exp(term - peak) for term in terms))
    small = order * pure_rho(epsilon)
    round_off = ROUND_OFF * (1.0 - top)
    return min(epsilon, small, (max(0.0, total) * UP + round_off) / (order - 1.0))


def laplace_renyi(epsilon, order):
    """Mironov (2017), table II."""
    width = 2.0 * order - 1.0
    first = math.log(order / width) + (order - 1.0) * epsilon
    second = math.log((order - 1.0) / width) - order * epsilon
    total = max(first, second) + math.log1p(math.exp(-abs(first - second)))
    small = order * laplace_rho(epsilon)
    return min(epsilon, small, (max(0.0, total) * UP + ROUND_OFF) / (order - 1.0))


def bounded_range_renyi(epsilon, order):
    """The largest of the two-point pairs of Dong, Durfee and Rogers (2020), in closed form.

    With x = e^t the moment is x^s (A - x B) / (e^epsilon - 1), s = order - 1,
    A = e^epsilon - e^(-s epsilon), B = 1 - e^(-s epsilon); it is largest at x = s A / (order B).
    """
    bound = min(order * squared(epsilon) / 8.0 * UP, epsilon)
    s = order - 1.0
    if epsilon < 1e-3 or epsilon > 300.0:
        return bound
    log_a = epsilon + math.log(-math.expm1(-order * epsilon))
    log_b = math.log(-math.expm1(-s * epsilon))
    x = min(max(math.log(s / order) + log_a - log_b, 0.0), epsilon)
    excess = -math.expm1(min(x + log_b - log_a, -1e-300))
    log_moment = s * x + log_a + math.log(excess) - epsilon - math.log(-math.expm1(-epsilon))
    round_off = 1e-15 * (10.0 + epsilon + abs(log_a) + abs(log_b)) / excess
    return min(bound, (max(0.0, log_moment) * UP + round_off) / s)


def pair_renyi(pairs: tuple[LossPair, ...], cap):
    """r(order) from bounded loss distributions: atoms exactly, the rest on a fine grid.

    A connect-the-dots grid has no smaller moments than the distribution itself.
    """
    tables = []
    for pair in pairs:
        mass = pair.p
        losses = pair.losses
        if pair.tails is not None:
            low, high = min(pair.low, *losses, pair.high), max(pair.high, *losses, pair.low)
            grid = discretize(pair, (high - low) / _CELLS, low, high)
            mass = grid.mass
            losses = grid.losses
        tables.append((np.log(mass[mass > 0.0]), losses[mass > 0.0]))

    def curve(order):
        moments = (float(log_moments(*table, np.array([order - 1.0]))[0]) for table in tables)
        return min(cap(order), (max(0.0, *moments) * UP + ROUND_OFF) / (order - 1.0))

    return curve
