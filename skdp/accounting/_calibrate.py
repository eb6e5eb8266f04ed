"""The noise that a budget buys."""

from __future__ import annotations

import math
from collections.abc import Callable

from skdp.accounting import _bounds
from skdp.accounting import _events as ev
from skdp.accounting._checks import as_number, check_delta, check_epsilon
from skdp.accounting._gaussian import gaussian_noise_multiplier
from skdp.accounting._leaf import is_sampled

__all__ = ["calibrate"]

_MAX_STEPS = 200
_STEP = 4.0


def calibrate(
    make_event: Callable[[float], ev.Event],
    epsilon: float,
    delta: float,
    *,
    relation: str = "add_remove",
    method: str = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
    bounds: tuple[float, float] = (1e-12, 1e15),
    rtol: float = 1e-6,
) -> float:
    """The parameter of an event family whose cost just fits a budget.

    Parameters
    ----------
    make_event : callable
        Maps a positive float to an event whose cost is monotone in it, in either direction.
    epsilon, delta : float
        The budget.
    relation, method, tolerance, group_size : options
        As in `skdp.accounting.get_epsilon`.
    bounds : (float, float), default=(1e-12, 1e15)
        The parameters to search.
    rtol : float, default=1e-6
        Relative accuracy of the parameter.

    Returns
    -------
    float
        Always on the safe side: ``get_epsilon(make_event(result), delta, ...) <= epsilon`` with
        the same options. If every parameter within bounds fits, the bound at the costly end.

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
    low, high = _checked(epsilon, delta, bounds, rtol)
    options = {"relation": relation, "tolerance": tolerance, "group_size": group_size}

    def cost(value, name=method):
        return _bounds.get_epsilon(make_event(value), delta, method=name, **options)

    start = min(max(1.0, low), high)
    exact = method in ("auto", "pld")
    if exact and 0.0 < delta < 1.0 and epsilon > 0.0:
        closed = _gaussian_scale(make_event, start, low, high)
        if closed is not None:
            value = closed * group_size * gaussian_noise_multiplier(epsilon, delta)
            if low <= value <= high:
                return _first_safe(cost, value, epsilon)
    parts = ev.leaves(make_event(start))
    transform = exact and delta > 0.0 and (len(parts) > 1 or any(map(is_sampled, parts)))
    return _search(cost, epsilon, start, low, high, rtol, "rdp" if transform else None)


def _checked(epsilon, delta, bounds, rtol):
    check_epsilon(epsilon)
    check_delta(delta)
    try:
        low, high = (as_number("bounds", bound) for bound in bounds)
    except TypeError:
        raise ValueError(f"bounds must be two numbers, got {bounds!r}") from None
    if not 0.0 < low < high < math.inf:
        raise ValueError(f"bounds must be positive, finite and increasing, got {bounds!r}")
    if not 0.0 < as_number("rtol", rtol) < 1.0:
        raise ValueError(f"rtol must lie in (0, 1), got {rtol!r}")
    return low, high


def _search(cost, epsilon, start, low, high, rtol, rough_method):
    """The safe parameter: bracketed by a cheap method if one is named, then by the cost."""

    def rough(value):
        return cost(value, rough_method) if rough_method else cost(value)

    safe, unsafe = _bracket(rough, epsilon, start, low, high)
    if rough_method:
        safe, unsafe = _tightened(rough, safe, unsafe, epsilon, 0.05)
        safe, unsafe = _rebracketed(cost, safe, unsafe, epsilon, low, high)
    if unsafe is None:
        return safe
    return _tightened(cost, safe, unsafe, epsilon, rtol)[0]


def _gaussian_scale(make_event, start, low, high):
    """c if the family is Gaussian releases worth one of multiplier s / c; else None."""
    scales = []
    for value in (start, min(2.0 * start, high) if start < high else max(low, 0.5 * start)):
        parts = ev.leaves(make_event(value))
        if not parts or not all(isinstance(part, ev.Gaussian) for part in parts):
            return None
        total = math.fsum(n / part.noise_multiplier**2 for part, n in parts.items())
        scales.append(value * math.sqrt(total))
    return scales[0] if math.isclose(*scales, rel_tol=1e-12) else None


def _first_safe(cost, value, target):
    step = 2.0**-52
    while cost(value) > target:
        value *= 1.0 + step
        step *= 2.0
    return value


def _bracket(cost, target, start, low, high):
    """(safe, unsafe) parameters, neighbours on a coarse logarithmic grid; unsafe is None if
    all parameters within bounds are safe."""
    falls = _falls(cost, start, low, high)

    def move(value, factor):
        return min(max(value * factor, low), high)

    towards_safe = _STEP if falls else 1.0 / _STEP
    safe, unsafe = start, None
    for _ in range(_MAX_STEPS):
        if cost(safe) <= target:
            break
        unsafe, following = safe, move(safe, towards_safe)
        if following == safe:
            raise ValueError(f"no parameter in [{low:g}, {high:g}] fits the budget")
        safe = following
    if unsafe is not None:
        return safe, unsafe
    for _ in range(_MAX_STEPS):
        following = move(safe, 1.0 / towards_safe)
        if following == safe:
            return safe, None
        if cost(following) > target:
            return safe, following
        safe = following
    return safe, None


def _falls(cost, start, low, high):
    """Whether the cost falls as the parameter grows."""
    for factor in (2.0, 16.0, 1e3, 1e6):
        one, two = max(start / factor, low), min(start * factor, high)
        first, second = cost(one), cost(two)
        if first != second:
            return second < first
    return True


def _rebracketed(cost, safe, unsafe, target, low, high):
    """The bracket of a looser bound made one of `cost`, which is no larger."""
    if unsafe is None:
        return safe, None
    ratio = unsafe / safe
    for _ in range(_MAX_STEPS):
        if cost(unsafe) > target:
            break
        safe = unsafe
        ratio = ratio * abs(ratio) if 0.5 < ratio < 2.0 else ratio
        following = min(max(unsafe * ratio, low), high)
        if following == unsafe:
            return safe, None
        unsafe = following
    while cost(safe) > target:
        unsafe, safe = safe, min(max(safe / ratio, low), high)
        if safe == unsafe:
            raise ValueError(f"no parameter in [{low:g}, {high:g}] fits the budget")
    return safe, unsafe


def _tightened(cost, safe, unsafe, target, rtol):
    """The bracket narrowed by regula falsi (Illinois) with bisection as a safeguard."""
    if unsafe is None:
        return safe, unsafe
    x_safe, x_unsafe = math.log(safe), math.log(unsafe)

    def gap(value):
        found = cost(value)
        if found <= 0.0 or not math.isfinite(found) or target <= 0.0:
            return -1.0 if found <= target else 1.0
        ratio = math.log(found / target)
        return max(ratio, 1e-17) if found > target else min(ratio, -0.0)

    y_safe, y_unsafe, last = gap(safe), gap(unsafe), 0
    for step in range(_MAX_STEPS):
        if abs(x_unsafe - x_safe) <= rtol:
            break
        share = y_safe / (y_safe - y_unsafe) if y_safe != y_unsafe else 0.5
        if step % 4 == 3:
            share = 0.5
        # Aim a little to the safe side, so that the bracket closes from both sides.
        margin = 0.3 * rtol / abs(x_unsafe - x_safe)
        share = min(max(share - margin if last >= 0 else share + margin, 0.01 * rtol), 1.0)
        middle = x_safe + min(max(share, 1e-3 * margin), 1.0 - 1e-3 * margin) * (x_unsafe - x_safe)
        value = math.exp(middle)
        if value in (safe, unsafe):
            break
        found = gap(value)
        if found <= 0.0:
            safe, x_safe, y_safe = value, middle, found
            if last < 0:
                y_unsafe *= 0.5
            last = -1
        else:
            unsafe, x_unsafe, y_unsafe = value, middle, found
            if last > 0:
                y_safe *= 0.5
            last = 1
    return safe, unsafe
