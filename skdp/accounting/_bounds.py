"""Upper bounds on what an event costs, by any of the field's methods."""

from __future__ import annotations

import math

from . import _advanced, _conversions, _gaussian, _leaf
from . import _events as ev
from ._checks import check_delta, check_epsilon, check_group_size, check_relation, check_tolerance

__all__ = ["METHODS", "delta", "epsilon", "trade_off"]

METHODS = ("auto", "basic", "advanced", "zcdp")


def _closed_epsilon(part, delta_, relation):
    """Least epsilon at delta of one uncomposed event, by closed forms alone."""
    if delta_ >= 1.0:
        return 0.0
    if isinstance(part, ev.NonPrivate):
        return math.inf
    if isinstance(part, ev.Gaussian):
        return _gaussian.gdp_to_epsilon(1.0 / part.noise_multiplier, delta_)
    bounds = [math.inf]
    pure = _leaf.pure_epsilon(part, relation)
    if pure < math.inf:
        bounds += [pure, _advanced.optimal_epsilon(pure, 1, delta_)]
    if isinstance(part, ev.Laplace):
        bounds.append(max(0.0, pure + 2.0 * math.log1p(-delta_)))
    if isinstance(part, ev.ExponentialMechanism):
        # The largest of the two-point curves of Dong, Durfee and Rogers (2020).
        root = math.sqrt(delta_ * -math.expm1(-pure))
        bounds.append(max(0.0, pure + 2.0 * math.log1p(-root)))
    if isinstance(part, ev.RandomizedResponse) and pure < 700.0:
        top = math.exp(pure)
        rest = top - delta_ * (part.num_categories - 1.0 + top)
        bounds.append(math.log(rest) if rest > 1.0 else 0.0)
    if isinstance(part, ev.ApproximateDP):
        bounds.append(_advanced.optimal_epsilon(part.epsilon, 1, delta_, part.delta))
    rho, rho_delta = _leaf.leaf_zcdp(part, relation)
    bounds.append(_conversions.zcdp_to_epsilon(rho, delta_, rho_delta))
    return min(bounds)


def _fixed_delta(part, relation):
    """The delta below which an event has no finite epsilon."""
    return part.delta if isinstance(part, (ev.ApproximateDP, ev.ZCDP)) else 0.0


def _shares(parts, delta_, relation):
    """Each event's part of delta: what it needs, and an equal share if it is not pure."""
    fixed = math.fsum(n * _fixed_delta(p, relation) for p, n in parts.items())
    needy = sum(
        n
        for p, n in parts.items()
        if _leaf.pure_epsilon(p, relation) == math.inf and not isinstance(p, ev.ApproximateDP)
    )
    spare = max(0.0, delta_ - fixed) * (1.0 - 1e-15)
    share = spare / needy if needy else 0.0
    shares = {}
    for part in parts:
        pure = _leaf.pure_epsilon(part, relation) < math.inf
        own = 0.0 if pure or isinstance(part, ev.ApproximateDP) else share
        shares[part] = _fixed_delta(part, relation) + own
    return shares, fixed <= delta_


def _basic(parts, delta_, relation):
    if len(parts) == 1 and sum(parts.values()) == 1:
        return _closed_epsilon(next(iter(parts)), delta_, relation)
    shares, enough = _shares(parts, delta_, relation)
    if not enough:
        return math.inf
    costs = [n * _closed_epsilon(p, shares[p], relation) for p, n in parts.items()]
    return math.fsum(costs) * (1.0 + 1e-15)


def _advanced_bound(parts, delta_, relation):
    bounds = [math.inf]
    for part_of_delta in (0.0, 0.5):
        shares, enough = _shares(parts, delta_ * part_of_delta, relation)
        if part_of_delta == 0.0:
            shares = {part: _fixed_delta(part, relation) for part in parts}
            enough = True
        if not enough:
            continue
        costs = [(_closed_epsilon(p, shares[p], relation), shares[p], n) for p, n in parts.items()]
        if all(cost[0] < math.inf for cost in costs):
            bounds.append(_advanced.advanced_epsilon(costs, delta_))
            if len(costs) == 1:
                cost, own, count = costs[0]
                bounds.append(_advanced.optimal_epsilon(cost, count, delta_, own))
    return min(bounds)


def _zcdp_bound(parts, delta_, relation):
    event = ev.Composed(tuple(part * count for part, count in parts.items()))
    rho, rho_delta = _leaf.zcdp(event, relation=relation)
    return _conversions.zcdp_to_epsilon(rho, delta_, rho_delta)


def _gaussian_bound(parts, delta_, relation):
    if not all(isinstance(part, ev.Gaussian) for part in parts):
        return math.inf
    mu = math.sqrt(math.fsum(n / p.noise_multiplier**2 for p, n in parts.items()))
    return _gaussian.gdp_to_epsilon(mu, delta_)


_BOUNDS = {"basic": _basic, "advanced": _advanced_bound, "zcdp": _zcdp_bound}


def _epsilon(parts, delta_, relation, method, tolerance):
    if not parts or delta_ >= 1.0:
        return 0.0
    if any(isinstance(part, ev.NonPrivate) for part in parts):
        return math.inf
    if method != "auto":
        return _BOUNDS[method](parts, delta_, relation)
    bounds = [bound(parts, delta_, relation) for bound in _BOUNDS.values()]
    return min(*bounds, _gaussian_bound(parts, delta_, relation))


def _check(event, relation, method, tolerance, group_size):
    if not isinstance(event, ev.Event):
        raise ValueError(f"event must be a privacy event, got {type(event).__name__}")
    check_relation(relation)
    check_tolerance(tolerance)
    check_group_size(group_size)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")


def epsilon(
    event: ev.Event,
    delta: float,
    *,
    relation: str = "add_remove",
    method: str = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Upper bound on epsilon at delta.

    Parameters
    ----------
    event : Event
        What was released, its parameters fixed beforehand.
    delta : float in [0, 1]
    relation : {"add_remove", "replace_one"}, default="add_remove"
    method : {"auto", "basic", "advanced", "zcdp"}, default="auto"
        "auto" is the least of all bounds.
    tolerance : float, default=1e-4
        Wanted accuracy, relative to min(1, epsilon).
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        Never below the truth; infinite where no finite bound holds.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Laplace, epsilon
    >>> epsilon(Laplace(1.0), 0.0)
    1.0
    >>> round(epsilon(Gaussian(1.0), 1e-5), 6)
    4.377178
    """
    _check(event, relation, method, tolerance, group_size)
    check_delta(delta)
    delta = float(delta)
    if group_size == 1:
        return _epsilon(ev.leaves(event), delta, relation, method, tolerance)
    return _group_epsilon(event, delta, relation, method, tolerance, int(group_size))


def _group_epsilon(event, delta_, relation, method, tolerance, k):
    bounds = [math.inf]
    grouped = _leaf.group_event(event, k)
    if grouped is not None:
        bounds.append(_epsilon(ev.leaves(grouped), delta_, relation, method, tolerance))
    if method in ("auto", "zcdp"):
        rho, rho_delta = _leaf.zcdp(event, relation=relation, group_size=k)
        bounds.append(_conversions.zcdp_to_epsilon(rho, delta_, rho_delta))
    if grouped is None and delta_ > 0.0:
        bounds.append(_generic_group_epsilon(event, delta_, relation, method, tolerance, k))
    return min(bounds)


def _generic_group_epsilon(event, delta_, relation, method, tolerance, k):
    """k epsilon, for the least found epsilon at whose delta the group's delta fits."""
    parts = ev.leaves(event)
    best, low, high = math.inf, math.log(delta_) - 700.0, math.log(delta_ / k)
    for _ in range(24):
        middle = 0.5 * (low + high)
        single = math.exp(max(middle, -744.0))
        value = _epsilon(parts, single, relation, method, tolerance)
        if value < math.inf and _leaf.group_delta(value, single, k) <= delta_:
            best, low = min(best, k * value), middle
        else:
            high = middle
    return best


def delta(
    event: ev.Event,
    epsilon: float,
    *,
    relation: str = "add_remove",
    method: str = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Upper bound on delta at epsilon; parameters as in `epsilon`.

    Returns
    -------
    float
        In [0, 1], never below the truth.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, delta
    >>> round(delta(Gaussian(1.0), 1.0), 6)
    0.126937
    """
    _check(event, relation, method, tolerance, group_size)
    check_epsilon(epsilon)
    target = float(epsilon)
    parts = ev.leaves(event)
    if (
        group_size == 1
        and method == "auto"
        and parts
        and all(isinstance(part, ev.Gaussian) for part in parts)
    ):
        mu = math.sqrt(math.fsum(n / p.noise_multiplier**2 for p, n in parts.items()))
        return _gaussian.gdp_to_delta(mu, target)
    return _inverted_delta(
        lambda d: _safe_epsilon(event, d, relation, method, tolerance, group_size), target
    )


def _safe_epsilon(event, delta_, relation, method, tolerance, group_size):
    if group_size > 1:
        return _group_epsilon(event, delta_, relation, method, tolerance, int(group_size))
    return _epsilon(ev.leaves(event), delta_, relation, method, tolerance)


def _inverted_delta(epsilon_at, target):
    """The least delta found whose epsilon is at most the target, by bisection on its log."""
    if epsilon_at(0.0) <= target:
        return 0.0
    low, high = math.log(1e-300), 0.0
    if epsilon_at(1e-300) <= target:
        return 1e-300
    for _ in range(60):
        middle = 0.5 * (low + high)
        if epsilon_at(math.exp(middle)) <= target:
            high = middle
        else:
            low = middle
    return math.exp(high)


def trade_off(
    event: ev.Event,
    alpha: float,
    *,
    relation: str = "add_remove",
    method: str = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Lower bound on the false-negative rate of any test with false-positive rate alpha.

    f(alpha) is the largest of 1 - delta(epsilon) - e^epsilon alpha and
    e^-epsilon (1 - delta(epsilon) - alpha) over epsilon >= 0 (Dong, Roth and Su 2022,
    proposition 2.12).

    Examples
    --------
    >>> from skdp.accounting import Gaussian, trade_off
    >>> round(trade_off(Gaussian(1.0), 0.05), 4)
    0.7405
    """
    if isinstance(alpha, bool) or not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie in [0, 1], got {alpha!r}")
    options = {"relation": relation, "method": method, "tolerance": tolerance}

    def at(eps):
        d = delta(event, eps, group_size=group_size, **options)
        return max(1.0 - d - math.exp(eps) * alpha, math.exp(-eps) * (1.0 - d - alpha))

    high = math.log(1.0 / alpha) if alpha > 0.0 else 50.0
    grid = [high * i / 32 for i in range(33)]
    values = [at(eps) for eps in grid]
    index = max(range(33), key=values.__getitem__)
    low, top = grid[max(0, index - 1)], grid[min(32, index + 1)]
    best = values[index]
    for _ in range(30):
        one, two = low + (top - low) / 3, top - (top - low) / 3
        first, second = at(one), at(two)
        best = max(best, first, second)
        low, top = (one, top) if first < second else (low, two)
    return max(0.0, best)
