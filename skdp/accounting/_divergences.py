"""Renyi divergences and zCDP parameters rho of releases that are not sampled.

Those of sampled releases are in `skdp.accounting._sampled`, and of groups in `_mixtures`.
"""

import math

import numpy as np
from scipy.special import ndtri_exp

from skdp.accounting._pairs import LossPair, discretize, log_moments
from skdp.utils import _rounding as rounding

# Factor that rounds the logarithm of a moment up.
UP = 1.0 + 1e-13
# Absolute error of the logarithm of a moment near 1. For a low order, it is divided by order - 1.
ROUND_OFF = 1e-14
# The smallest positive rho, so that a positive cost does not underflow to 0.
_MIN_POSITIVE = 1e-300
# Number of cells in the grid on which moments of a continuous loss are computed.
_CELLS = 8192


def squared(x: float) -> float:
    """Return x^2, which is positive unless x is 0."""
    if x == 0.0:
        return 0.0
    return max(x * x, _MIN_POSITIVE)


def pure_rho(epsilon: float) -> float:
    """Return rho of an epsilon-DP release: epsilon tanh(epsilon / 2), at most epsilon^2 / 2.

    It is the Renyi divergence of randomized response at order 1, where the ratio of divergence to
    order is largest (Harrison and Manurangsi 2025).
    """
    if epsilon == 0.0 or epsilon == math.inf:
        return epsilon
    return max(epsilon * math.tanh(0.5 * epsilon) * rounding.UP, _MIN_POSITIVE)


def laplace_rho(epsilon: float) -> float:
    """Return rho of a Laplace release, epsilon + e^-epsilon - 1 (Harrison, Manurangsi 2025)."""
    exact = epsilon + math.expm1(-epsilon) + 2.0**-51 * epsilon
    return min(exact, 0.5 * squared(epsilon)) * rounding.UP


def pure_mu(epsilon: float) -> float:
    """Return mu of an epsilon-DP release, with e^epsilon / (1 + e^epsilon) = Phi(mu / 2)."""
    if epsilon < 1e-3:
        # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2 <= epsilon/4; the factor covers the cubic term.
        return epsilon * math.sqrt(math.pi / 2.0) * (1.0 + 1e-6)
    return -2.0 * float(ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon))))) * (1.0 + 1e-13)


def response_renyi(epsilon, order, num_categories=2):
    """Return the Renyi divergence of k-ary randomized response (Mironov 2017, table II)."""
    # The logarithm of the probability of a true answer.
    log_p = -math.log1p((num_categories - 1.0) * math.exp(-epsilon))
    terms = [log_p + (order - 1.0) * epsilon, log_p - order * epsilon]
    if num_categories > 2:
        terms.append(math.log(num_categories - 2.0) + log_p - epsilon)
    else:
        terms.append(-math.inf)
    peak = max(terms)
    total = peak + math.log(math.fsum(math.exp(term - peak) for term in terms))
    zcdp_bound = order * pure_rho(epsilon)
    round_off = ROUND_OFF * (1.0 - log_p)
    return min(epsilon, zcdp_bound, (max(0.0, total) * UP + round_off) / (order - 1.0))


def laplace_renyi(epsilon, order):
    """Return the Renyi divergence of Laplace noise (Mironov 2017, table II)."""
    width = 2.0 * order - 1.0
    first = math.log(order / width) + (order - 1.0) * epsilon
    second = math.log((order - 1.0) / width) - order * epsilon
    total = max(first, second) + math.log1p(math.exp(-abs(first - second)))
    zcdp_bound = order * laplace_rho(epsilon)
    return min(epsilon, zcdp_bound, (max(0.0, total) * UP + ROUND_OFF) / (order - 1.0))


def bounded_range_renyi(epsilon, order):
    """Return the largest Renyi divergence of the two-point pairs of Dong, Durfee and Rogers (2020).

    With x = e^t, the moment is x^s (A - x B) / (e^epsilon - 1), where s = order - 1,
    A = e^epsilon - e^(-s epsilon) and B = 1 - e^(-s epsilon). It is largest at x = s A / (order B).
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
    """Return a function that maps orders to Renyi divergences of bounded loss distributions.

    Atoms are exact, and a continuous part is put on a fine grid. A connect-the-dots grid has no
    smaller moments than the distribution.

    Parameters
    ----------
    pairs : tuple of LossPair
        One pair per order of the tables; the largest divergence is used.
    cap : callable
        Function that maps orders to known upper bounds.
    """
    tables = []
    for pair in pairs:
        mass = pair.p
        losses = pair.losses
        if pair.tails is not None:
            # The grid must also cover the atoms, which may be outside the support of the continuous
            # part. Without atoms, `min` and `max` still need two arguments.
            low = min(pair.low, *losses, pair.high)
            high = max(pair.high, *losses, pair.low)
            grid = discretize(pair, (high - low) / _CELLS, low, high)
            mass = grid.mass
            losses = grid.losses
        tables.append((np.log(mass[mass > 0.0]), losses[mass > 0.0]))

    def divergence(order):
        """Return the largest Renyi divergence of the pairs at an order, rounded up."""
        moments = (float(log_moments(*table, np.array([order - 1.0]))[0]) for table in tables)
        return min(cap(order), (max(0.0, *moments) * UP + ROUND_OFF) / (order - 1.0))

    return divergence
