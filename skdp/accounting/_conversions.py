"""Conversions to (epsilon, delta), with the search over orders of RDP, and between relations."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.utils._rounding import float_up, up_from_underflow
from skdp.utils._validation import check_relation, check_within

# A bound on the rounding errors of one formula, relative to the sum of its terms.
_ROUND_OFF = 2.0**-50
# The search over orders covers three decades on each side of an approximation of the best order
# minus 1. Every order gives a valid bound, so this range affects only the tightness.
_SEARCH_RANGE = (1e-3, 1e3)
# The approximation is at most this, so the orders and their squares are finite.
_MAX_EXCESS = 1e150
# The ranges of parameters, as arguments of `check_within`. All others are at least 0.
_RANGES: dict = {"delta": (0.0, 1.0), "rho_delta": (0.0, 1.0), "order": (1.0, math.inf, "()")}


def check_costs(**costs: float) -> None:
    """Raise `ValueError` if a cost, an order or a failure probability is out of range."""
    for name, cost in costs.items():
        check_within(cost, name, *_RANGES.get(name, (0.0,)))


def rdp_to_epsilon(rdp: float, order: float, delta: float) -> float:
    """Return epsilon at delta for a release with Renyi divergence `rdp` at one `order`.

    epsilon = rdp + ln(1 - 1/order) - (ln delta + ln order) / (order - 1) (Canonne, Kamath and
    Steinke 2020, proposition 12; Asoodeh et al. 2020), at least 0.

    Parameters
    ----------
    rdp : float
        The Renyi divergence.
    order : float
        The order, above 1.
    delta : float
        The delta, in [0, 1].

    Returns
    -------
    float
        An upper bound, rounded up.

    Examples
    --------
    >>> from skdp.accounting import rdp_to_epsilon
    >>> round(rdp_to_epsilon(0.5, 8.0, 1e-5), 6)
    1.714109
    """
    check_costs(rdp=rdp, order=order, delta=delta)
    return converted_epsilon(rdp, order, delta)


def converted_epsilon(rdp, order, delta):
    """Return `rdp_to_epsilon` without checks of the ranges."""
    if delta >= 1.0:
        return 0.0
    if delta == 0.0:
        return math.inf
    log_ratio = math.log1p(1.0 / (order - 1.0))
    order_term = math.log(order) / (order - 1.0)
    delta_term = -math.log(delta) / (order - 1.0)
    round_off = _ROUND_OFF * (rdp + log_ratio + delta_term + order_term)
    return max(0.0, rdp - log_ratio + delta_term - order_term + round_off)


def rdp_to_delta(rdp: float, order: float, epsilon: float) -> float:
    """Return delta at epsilon for a release with Renyi divergence `rdp` at one `order`.

    This is the inverse of `rdp_to_epsilon` at the same order, at most 1.

    Parameters
    ----------
    rdp : float
        The Renyi divergence.
    order : float
        The order, above 1.
    epsilon : float
        The epsilon, at least 0.

    Returns
    -------
    float
        An upper bound, rounded up.

    Examples
    --------
    >>> from skdp.accounting import rdp_to_delta
    >>> round(rdp_to_delta(0.5, 8.0, 1.714109), 8)
    1e-05
    """
    check_costs(rdp=rdp, order=order, epsilon=epsilon)
    return converted_delta(rdp, order, epsilon)


def converted_delta(rdp, order, epsilon):
    """Return `rdp_to_delta` without checks of the ranges."""
    if not rdp < math.inf:
        return 1.0
    if epsilon == math.inf:
        return 0.0
    log_delta = (order - 1.0) * (rdp - epsilon - math.log1p(1.0 / (order - 1.0))) - math.log(order)
    size = (order - 1.0) * (rdp + epsilon) + math.log(order) + 2.0
    return up_from_underflow(math.exp(min(0.0, log_delta + _ROUND_OFF * size)))


def minimum_over_orders(function, low: float = 1e-4, high: float = 1e8) -> float:
    """Return the minimum of a function over real orders, 1 + low to 1 + high.

    Every order gives a valid bound, so a local minimum only gives a less tight bound.
    """
    grid = np.linspace(math.log(low), math.log(high), 29)

    def at(log_excess):
        """Return the value at the order 1 + exp(log_excess); infinity if it is not a number."""
        value = function(1.0 + math.exp(log_excess))
        if math.isnan(value):
            return math.inf
        return value

    values = []
    for point in grid:
        values.append(at(point))
        recent = values[-6:]
        if len(recent) == 6 and recent[-1] < math.inf and recent == sorted(set(recent)):
            # The values have increased at five points in a row.
            break
    best = int(np.argmin(values))
    if values[best] == math.inf:
        return math.inf
    bounds = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    result = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-7})
    return float(min(values[best], result.fun))


def zcdp_to_epsilon(rho: float, delta: float, rho_delta: float = 0.0) -> float:
    """Return epsilon at delta for rho_delta-approximate rho-zCDP.

    This is the RDP conversion with divergence rho * order, minimized over real orders (Canonne,
    Kamath and Steinke 2020).

    Parameters
    ----------
    rho : float
        The parameter of zCDP, at least 0.
    delta : float
        The delta, in [0, 1].
    rho_delta : float, default=0.0
        The delta of approximate zCDP, in [0, 1].

    Returns
    -------
    float
        An upper bound, rounded up.

    Examples
    --------
    >>> from skdp.accounting import zcdp_to_epsilon
    >>> round(zcdp_to_epsilon(0.1, 1e-5), 6)
    1.914239
    """
    check_costs(rho=rho, delta=delta, rho_delta=rho_delta)
    if delta >= 1.0 or (rho == 0.0 and delta >= rho_delta):
        return 0.0
    if delta <= rho_delta or not rho < math.inf:
        return math.inf
    delta_left = (delta - rho_delta) / (1.0 - rho_delta)
    # Approximately the best order minus 1, around which the search starts.
    excess = max(1e-9, math.sqrt(-math.log(delta_left)) / math.sqrt(rho))

    def epsilon_at(order):
        return converted_epsilon(rho * order, order, delta_left)

    low, high = _SEARCH_RANGE
    return minimum_over_orders(epsilon_at, excess * low, excess * high)


def zcdp_to_delta(rho: float, epsilon: float, rho_delta: float = 0.0) -> float:
    """Return delta at epsilon for rho_delta-approximate rho-zCDP.

    Parameters
    ----------
    rho : float
        The parameter of zCDP, at least 0.
    epsilon : float
        The epsilon, at least 0.
    rho_delta : float, default=0.0
        The delta of approximate zCDP, in [0, 1].

    Returns
    -------
    float
        An upper bound, rounded up.

    Examples
    --------
    >>> from skdp.accounting import zcdp_to_delta
    >>> round(zcdp_to_delta(0.1, 1.914239), 8)
    1e-05
    """
    check_costs(rho=rho, epsilon=epsilon, rho_delta=rho_delta)
    if rho == 0.0 or rho_delta >= 1.0:
        return rho_delta
    if not rho < math.inf:
        return 1.0

    # This is approximately s, the best order minus 1. Without the logarithms of the order, s is
    # (epsilon / rho - 1) / 2. Below sqrt(1 / (2 rho)), the logarithms, with the derivative -1 / s,
    # are the larger term.
    excess = min(max(1e-6, math.sqrt(0.5 / rho), 0.5 * (epsilon / rho - 1.0)), _MAX_EXCESS)

    def delta_at(order):
        return converted_delta(rho * order, order, epsilon)

    # An order of at least 2 is tried, no matter how small the approximation is.
    low, high = _SEARCH_RANGE
    delta = minimum_over_orders(delta_at, excess * low, excess * high + 1.0)
    return min(1.0, (rho_delta + (1.0 - rho_delta) * delta) * (1.0 + _ROUND_OFF))


def convert_relation(epsilon: float, delta: float, source: str, target: str) -> tuple[float, float]:
    """Convert (epsilon, delta) from one relation to the other.

    From add/remove to replace-one, the result is (2 epsilon, (1 + e^epsilon) delta), because a
    replacement is a removal and an addition. From replace-one to add/remove, the pair is unchanged:
    the number of records is public, so removing a record means that the null record takes its
    place, which is one of the replacements.

    Parameters
    ----------
    epsilon : float
        The epsilon, at least 0.
    delta : float
        The delta, in [0, 1].
    source : {"add_remove", "replace_one"}
        The relation under which `epsilon` and `delta` hold.
    target : {"add_remove", "replace_one"}
        The relation of the result.

    Returns
    -------
    (float, float)
        Epsilon and delta under `target`, rounded up.

    Examples
    --------
    >>> from skdp.accounting import convert_relation
    >>> convert_relation(0.0, 1e-6, "add_remove", "replace_one")
    (0.0, 2e-06)
    """
    check_relation(source)
    check_relation(target)
    check_costs(epsilon=epsilon, delta=delta)
    if source == target or source == "replace_one":
        return float(epsilon), float(delta)
    # Doubling a float is exact, unless it overflows to infinity.
    return 2.0 * epsilon, _delta_of_two_steps(epsilon, delta)


def _delta_of_two_steps(epsilon, delta):
    """Return (1 + e^epsilon) delta, at most 1, rounded up once."""
    if delta == 0.0 or epsilon == 0.0:
        return min(1.0, 2.0 * delta)
    if epsilon > 750.0:
        # e^750 times the smallest positive float is above 1.
        return 1.0
    # `Decimal.exp` is correctly rounded, so the next larger number is an upper bound.
    context = Context(prec=60)
    growth = Fraction(context.next_plus(context.exp(Decimal(epsilon))))
    return float_up(min(Fraction(1), (1 + growth) * Fraction(delta)))
