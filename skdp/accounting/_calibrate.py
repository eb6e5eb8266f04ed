"""Calibration: the parameter with which the cost of a mechanism just fits a budget."""

import math
from collections.abc import Callable
from functools import cache, partial

from scipy.optimize import brentq

from skdp.accounting import _bounds
from skdp.accounting import _events as ev
from skdp.accounting._conversions import check_costs
from skdp.accounting._gaussian import gaussian_noise_multiplier, round_to_safe
from skdp.utils._types import Method, Relation
from skdp.utils._validation import check_increasing, check_within


def calibrate(
    make_event: Callable[[float], ev.Event],
    epsilon: float,
    delta: float,
    *,
    relation: Relation = "add_remove",
    method: Method = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
    bounds: tuple[float, float] = (1e-12, 1e15),
    rtol: float = 1e-6,
) -> float:
    """Return the parameter with which the cost of a family of events just fits a budget.

    Parameters
    ----------
    make_event : callable
        Function that maps a positive float to an event. The cost of the event must be a monotone
        function of the float, either increasing or decreasing.
    epsilon, delta : float
        The budget.
    relation, method, tolerance, group_size : options
        As in `skdp.accounting.get_epsilon`.
    bounds : (float, float), default=(1e-12, 1e15)
        The smallest and the largest parameter to try.
    rtol : float, default=1e-6
        Relative accuracy of the parameter.

    Returns
    -------
    float
        A parameter on the safe side: ``get_epsilon(make_event(result), delta, ...) <= epsilon``
        with the same options. If every parameter within the bounds fits, it is the bound with the
        larger cost.

    Raises
    ------
    ValueError
        If no parameter within bounds fits the budget.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, PoissonSampled, calibrate
    >>> sigma = calibrate(lambda s: PoissonSampled(0.01, Gaussian(s)) * 1000, 1.0, 1e-5)
    >>> round(sigma, 3)
    1.415
    """
    check_costs(epsilon=epsilon, delta=delta)
    check_within(rtol, "rtol", 0.0, 1.0, "()")
    low, high = check_increasing(bounds, "bounds", math.ulp(0.0), math.nextafter(math.inf, 0.0))

    @cache
    def cost(value, cost_method=method):
        """Return the epsilon of the event with this parameter.

        The searches below use the same parameters more than once, so costs are cached.
        """
        return _bounds.get_epsilon(
            make_event(value),
            delta,
            relation=relation,
            method=cost_method,
            tolerance=tolerance,
            group_size=group_size,
        )

    def fits(value):
        return cost(value) <= epsilon

    start = min(max(1.0, low), high)
    exact = method in ("auto", "pld")
    if exact and 0.0 < delta < 1.0 and epsilon > 0.0:
        closed = _gaussian_scale(make_event, start, low, high)
        if closed is not None:
            value = closed * group_size * gaussian_noise_multiplier(epsilon, delta)
            if low <= value <= high:
                return round_to_safe(fits, value)
    counts = ev.leaves(make_event(start))
    is_slow = exact and delta > 0.0 and (len(counts) > 1 or any(map(ev.is_sampled, counts)))
    rough: Callable[[float], float] = cost
    if is_slow:
        # Start from the RDP bound, which is quick and no smaller.
        rough = partial(cost, cost_method="rdp")
    safer = 0.25
    if _is_decreasing(rough, start, low, high):
        safer = 4.0
    safe, unsafe = bracket(rough, epsilon, start, safer, low, high)
    if is_slow and unsafe is not None:
        start = crossing(rough, epsilon, safe, unsafe, 0.05)
        safe, unsafe = bracket(cost, epsilon, start, safer**0.05, low, high)
    if unsafe is None:
        return safe
    accuracy = max(0.25 * rtol, 2.0**-50)
    value = crossing(cost, epsilon, safe, unsafe, accuracy)
    if safer > 1.0:
        return min(round_to_safe(fits, value, accuracy), safe)
    return max(round_to_safe(fits, value, -accuracy), safe)


def _gaussian_scale(make_event, start, low, high):
    """Return c if the family with parameter s is equivalent to one Gaussian of multiplier s / c.

    The result is None for other families.
    """
    other = max(low, 0.5 * start)
    if start < high:
        other = min(2.0 * start, high)
    scales = []
    for value in (start, other):
        mu = ev.gaussian_mu(ev.leaves(make_event(value)))
        if mu is None:
            return None
        scales.append(value * mu)
    if math.isclose(*scales, rel_tol=1e-12):
        return scales[0]
    return None


def _is_decreasing(cost, start, low, high):
    """Return True if the cost decreases as the parameter grows."""
    for factor in (2.0, 16.0, 1e3, 1e6):
        first = cost(max(start / factor, low))
        second = cost(min(start * factor, high))
        if first != second:
            return second < first
    return True


def bracket(cost, target, start, safer, low, high):
    """Return (safe, unsafe) parameters that enclose the target; steps grow up to fourfold.

    A parameter times `safer` costs less. Unsafe is None if all parameters within bounds are safe.
    """
    is_safe = cost(start) <= target
    value = start
    factor = safer
    if is_safe:
        factor = 1.0 / safer
    while True:
        next_value = min(max(value * factor, low), high)
        if next_value == value:
            break
        if (cost(next_value) <= target) != is_safe:
            if is_safe:
                return value, next_value
            return next_value, value
        value = next_value
        if 0.5 < factor < 2.0:
            factor = factor**2
    if not is_safe:
        raise ValueError(f"no parameter in [{low:g}, {high:g}] fits the budget")
    return value, None


def crossing(cost, target, safe, unsafe, rtol):
    """Return a parameter whose cost is close to the target, on either side of it."""

    def gap(value):
        """Return ln(cost / target), or -1 or 1 if it is not finite; `brentq` finds its root."""
        value_cost = cost(value)
        if value_cost <= 0.0 or not math.isfinite(value_cost) or target <= 0.0:
            if value_cost <= target:
                return -1.0
            return 1.0
        return math.log(value_cost / target)

    return brentq(gap, safe, unsafe, xtol=1e-300, rtol=rtol, disp=False)
