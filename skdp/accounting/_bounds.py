"""Upper bounds on what an event costs, by any of the field's methods."""

import math
from fractions import Fraction
from functools import lru_cache, partial

from scipy.optimize import brentq, minimize_scalar

from skdp.accounting import _advanced, _conversions, _gaussian, _pld
from skdp.accounting import _events as ev
from skdp.accounting._fewer import with_fewer_events
from skdp.accounting._gaussian import round_to_safe
from skdp.accounting._laws import (
    check_neighbors,
    composed_zcdp,
    group_delta,
    group_event,
    privacy_of,
)
from skdp.accounting._rdp import rdp_delta, rdp_epsilon
from skdp.accounting._sampled import whole_sample
from skdp.utils._rounding import sum_up
from skdp.utils._validation import check_choice, check_positive, check_within

# Of prices of one record in the general bound on a group.
_GROUP_TOLERANCE = 1e-3

METHODS = ("auto", "basic", "advanced", "zcdp", "rdp", "pld")

# Below it logarithms and products of probabilities underflow.
LEAST_DELTA = 1e-290


def has_loss_distribution(parts, relation):
    """Whether the privacy loss distribution of every event is known."""
    return all(privacy_of(part, relation).pairs is not None for part in parts)


def _is_exact(parts, relation):
    """Whether the least curve is known in closed form: of Gaussians, or of one event alone."""
    one = sum(parts.values()) == 1 and not isinstance(next(iter(parts)), ev.RandomStopping)
    return ev.gaussian_mu(parts) is not None or (one and has_loss_distribution(parts, relation))


def _single_epsilon(part, delta_, relation):
    """Least epsilon at delta of one release, RDP included where no closed form is exact."""
    bound = privacy_of(part, relation).epsilon_at(delta_)
    if not _is_exact({part: 1}, relation):
        bound = min(bound, rdp_epsilon({part: 1}, delta_, relation))
    return bound


def _shares(parts, delta_, relation):
    """Each event's part of delta: what it needs, and an equal share if it is not pure."""
    fixed = sum(n * Fraction(privacy_of(part, relation).delta) for part, n in parts.items())
    without_delta = {part for part in parts if privacy_of(part, relation).epsilon == math.inf}
    total = sum(parts[part] for part in without_delta)
    share = float(max(0, Fraction(delta_) - fixed)) * (1.0 - 1e-15) / total if total else 0.0
    shares = {
        p: privacy_of(p, relation).delta + (share if p in without_delta else 0.0) for p in parts
    }
    return shares, fixed <= delta_


def _basic(parts, delta_, relation):
    if sum(parts.values()) == 1:
        return _single_epsilon(next(iter(parts)), delta_, relation)
    shares, enough = _shares(parts, delta_, relation)
    if not enough:
        return math.inf
    return sum_up((n, _single_epsilon(p, shares[p], relation)) for p, n in parts.items())


def _advanced_bound(parts, delta_, relation):
    """Each release at the delta that it states, or all within half of delta if they can be."""
    stated = {part: privacy_of(part, relation).delta for part in parts}
    best = math.inf
    halves, enough = _shares(parts, 0.5 * delta_, relation)
    for shares in (stated, halves) if enough else (stated,):
        costs = [(_single_epsilon(p, shares[p], relation), shares[p], n) for p, n in parts.items()]
        if all(cost < math.inf for cost, _, _ in costs):
            best = min(best, _advanced.advanced_epsilon(costs, delta_))
            if len(costs) == 1:
                cost, own, count = costs[0]
                best = min(best, _advanced.optimal_epsilon(cost, count, delta_, own))
    return best


def _zcdp_bound(parts, delta_, relation, k=1):
    rho, rho_delta = composed_zcdp(parts, relation, k)
    return _conversions.zcdp_to_epsilon(rho, delta_, rho_delta)


def _stated_and_gaussian(parts, delta_, relation):
    """What releases state, plus what the Gaussian ones cost together at the rest of delta."""
    gaussians = {part: n for part, n in parts.items() if isinstance(part, ev.Gaussian)}
    others = {part: n for part, n in parts.items() if part not in gaussians}
    stated = sum_up((n, privacy_of(part, relation).epsilon) for part, n in others.items())
    fixed = sum_up((n, privacy_of(part, relation).delta) for part, n in others.items())
    left = (delta_ - fixed) * (1.0 - 1e-15)
    if not gaussians or stated == math.inf or left < 0.0:
        return math.inf
    return sum_up([(1, stated), (1, _gaussian.gdp_to_epsilon(ev.gaussian_mu(gaussians), left))])


def _require_loss_distribution(parts, relation):
    if not has_loss_distribution(parts, relation):
        names = sorted({type(part).__name__ for part in parts})
        raise ValueError(
            "no privacy loss distribution is known for a composition of "
            f"{', '.join(names)}; use method='auto', 'rdp' or 'zcdp'"
        )


def _pld_bound(parts, delta_, relation, tolerance):
    """epsilon by privacy loss distributions, never above that by RDP.

    A loss distribution can be looser than the Renyi divergences: the pair of the exponential
    mechanism is the largest over its two-point pairs, and that of a random number of pure runs
    is that of any release as pure. It may also have no price: beyond 1e9 releases, or where losses
    are too large for a grid.
    """
    exact = _exact_epsilon(parts, delta_, relation)
    if exact is not None:
        return exact
    bound = rdp_epsilon(parts, delta_, relation)
    if delta_ == 0.0 or sum(parts.values()) == 1:
        return min(bound, _basic(parts, delta_, relation))
    return min(bound, _pld.pld_epsilon(parts, delta_, relation, tolerance))


def _exact_epsilon(parts, delta_, relation):
    """The least epsilon where the curve is known in closed form, else None."""
    mu = ev.gaussian_mu(parts)
    if mu is not None:
        return _gaussian.gdp_to_epsilon(mu, delta_)
    return _basic(parts, delta_, relation) if _is_exact(parts, relation) else None


_BOUNDS = {"basic": _basic, "advanced": _advanced_bound, "zcdp": _zcdp_bound}


def _whole(counts, relation):
    merged: dict[ev.Event, int] = {}
    for part, count in counts:
        for leaf, times in ev.leaves(whole_sample(part, relation)).items():
            merged[leaf] = merged.get(leaf, 0) + count * times
    return merged


def _counts(event):
    return tuple(ev.leaves(event).items())


# What finds a plan's noise, every fit of the same plan and a ledger ask for the same prices again.
@lru_cache(maxsize=1024)
def _epsilon(counts, delta_, relation, method, tolerance):
    if not counts or delta_ >= 1.0:
        return 0.0
    if any(_is_non_private(part) for part, _ in counts):
        return math.inf
    parts = _whole(counts, relation)
    fewer = with_fewer_events(parts)
    if method == "pld":
        _require_loss_distribution(parts, relation)
        return _pld_bound(parts if delta_ == 0.0 else fewer, delta_, relation, tolerance)
    if method == "rdp":
        return rdp_epsilon(fewer, delta_, relation)
    if method != "auto":
        return _BOUNDS[method](parts, delta_, relation)
    exact = _exact_epsilon(parts, delta_, relation) if delta_ > 0.0 else None
    if exact is not None:
        return exact
    bounds = [bound(parts, delta_, relation) for bound in _BOUNDS.values()]
    bounds.append(rdp_epsilon(fewer, delta_, relation))
    bounds.append(_stated_and_gaussian(parts, delta_, relation))
    if delta_ > 0.0 and sum(parts.values()) > 1 and has_loss_distribution(parts, relation):
        bounds.append(_pld.pld_epsilon(fewer, delta_, relation, tolerance))
    return min(bounds)


def _is_non_private(part):
    if not hasattr(part, "event"):
        return isinstance(part, ev.NonPrivate)
    runs = getattr(part, "sampling_rate", 1.0) > 0.0
    return runs and any(map(_is_non_private, ev.leaves(part.event)))


def _check(event, relation, method, tolerance, group_size):
    ev.check_event(event)
    check_neighbors(relation, group_size)
    check_positive(tolerance, "tolerance")
    check_choice(method, "method", METHODS)


def get_epsilon(
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
        At which epsilon is wanted.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        "auto" is the least of all bounds that apply.
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
        If an argument is out of range, or if `method` is "pld" and an event has no known
        privacy loss distribution (`ZCDP`, most `RandomStopping`).

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Laplace, get_epsilon
    >>> get_epsilon(Laplace(1.0), 0.0)
    1.0
    >>> round(get_epsilon(Gaussian(1.0), 1e-5), 6)
    4.377178
    """
    _check(event, relation, method, tolerance, group_size)
    delta = check_within(delta, "delta", 0.0, 1.0)
    if group_size == 1:
        return _epsilon(_counts(event), delta, relation, method, tolerance)
    return _group_epsilon(_counts(event), delta, relation, method, tolerance, int(group_size))


@lru_cache(maxsize=1024)
def _group_epsilon(counts, delta_, relation, method, tolerance, k):
    event = ev.Composed(tuple(part * n for part, n in counts))
    bounds = [math.inf]
    grouped = group_event(event, k)
    if grouped is not None:
        bounds.append(_epsilon(_counts(grouped), delta_, relation, method, tolerance))
    if method in ("auto", "zcdp"):
        bounds.append(_zcdp_bound(dict(counts), delta_, relation, k))
    # The search for a good delta of one record needs no finer prices: many of them are asked for.
    how = relation, method, max(tolerance, _GROUP_TOLERANCE), k
    if grouped is None:
        is_wanted = delta_ > 0.0
    else:
        is_wanted = delta_ > 0.0 and any(map(_is_sampled_group, ev.leaves(grouped)))
        is_wanted = is_wanted and not _is_generic_above(min(bounds), counts, delta_, *how)
    if is_wanted:
        bounds.append(_generic_group_epsilon(counts, delta_, *how))
    return min(bounds)


def _is_generic_above(known, counts, delta_, relation, method, tolerance, k):
    """Return True if the general bound on a group is found to be no less than a known one.

    One record's epsilon at delta / k is a lower bound on the epsilon that the general bound
    multiplies by k; its own delta of the group then gives a larger one, and so on.
    """
    single = delta_ / k
    for _ in range(4 if known < math.inf else 0):
        value = _epsilon(counts, single, relation, method, tolerance)
        if k * value >= known:
            return True
        grown = group_delta(value, single, k)
        if grown <= delta_ * (1.0 + 1e-3):
            return False
        single *= delta_ / grown
        if single < LEAST_DELTA:
            return False
    return False


def _is_sampled_group(part):
    return isinstance(part, ev.SampledGroup) or (
        isinstance(part, ev.RandomStopping) and any(map(_is_sampled_group, ev.leaves(part.event)))
    )


def _generic_group_epsilon(counts, delta_, relation, method, tolerance, k):
    """k epsilon, for the largest found delta of one record that makes the group's delta fit."""
    rough = "rdp" if method in ("auto", "pld") else method
    log_high = math.log(delta_ / k)
    best = math.inf
    low = log_high - 600.0
    high = log_high
    for name, steps in ((rough, 24), (method, 8 if rough != method else 0)):
        for _ in range(steps):
            middle = 0.5 * (low + high)
            single = math.exp(max(middle, -700.0))
            value = _epsilon(counts, single, relation, name, tolerance)
            if value < math.inf and group_delta(value, single, k) <= delta_:
                best = min(best, k * value)
                low = middle
            else:
                high = middle
        high = log_high
    return best


def get_delta(
    event: ev.Event,
    epsilon: float,
    *,
    relation: str = "add_remove",
    method: str = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Upper bound on delta at epsilon.

    Parameters
    ----------
    event : Event
        What was released, its parameters fixed beforehand.
    epsilon : float
        At which delta is wanted, at least 0.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        What neighboring tables are.
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        As in `epsilon`.
    tolerance : float, default=1e-4
        As in `epsilon`.
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        In [0, 1], never below the truth.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, get_delta
    >>> round(get_delta(Gaussian(1.0), 1.0), 6)
    0.126937
    """
    _check(event, relation, method, tolerance, group_size)
    target = check_within(epsilon, "epsilon", 0.0)
    counts = _counts(event)
    if group_size == 1:
        return _delta(counts, target, relation, method, tolerance)
    how = relation, method, tolerance
    grouped = group_event(event, int(group_size))
    known = 1.0
    if grouped is not None:
        # A delta that has underflowed is no bound that an epsilon at it would meet.
        known = _delta(_counts(grouped), target, *how) or 1.0
    return _inverted_delta(
        lambda d: _group_epsilon(counts, d, *how, int(group_size)), target, known
    )


@lru_cache(maxsize=1024)
def _delta(counts, target, relation, method, tolerance):
    if any(_is_non_private(part) for part, _ in counts):
        return 1.0
    if not counts or target == math.inf:
        return 0.0
    parts = _whole(counts, relation)
    if method == "pld":
        _require_loss_distribution(parts, relation)
    if method in ("auto", "pld"):
        exact = _exact_delta(parts, target, relation)
        if exact is not None:
            return exact
    best = 1.0
    fewer = with_fewer_events(parts)
    if method in ("auto", "zcdp"):
        rho, rho_delta = composed_zcdp(parts, relation)
        best = min(best, _conversions.zcdp_to_delta(rho, target, rho_delta))
    if method in ("auto", "rdp", "pld"):
        best = min(best, rdp_delta(fewer, target, relation))
    if method in ("auto", "pld") and has_loss_distribution(parts, relation):
        best = min(best, _pld_delta(fewer, target, relation, tolerance))
    by_epsilon = {"basic": _basic, "advanced": _advanced_bound, "auto": _stated_and_gaussian}
    for name, bound in by_epsilon.items():
        if method in ("auto", name):
            best = _inverted_delta(lambda d, f=bound: f(parts, d, relation), target, best)
    return best


def _exact_delta(parts, target, relation):
    """The least delta where the curve is known in closed form, else None."""
    mu = ev.gaussian_mu(parts)
    if mu is not None:
        return _gaussian.delta_of_mu(mu, target)
    return (
        privacy_of(next(iter(parts)), relation).curve()(target)
        if _is_exact(parts, relation)
        else None
    )


def _pld_delta(parts, target, relation, tolerance):
    if sum(parts.values()) == 1:
        return privacy_of(next(iter(parts)), relation).curve()(target)
    return _pld.pld_delta(parts, target, relation, tolerance)


def _inverted_delta(epsilon_at, target, known=1.0):
    """The lesser of `known` and the least delta found whose epsilon is at most the target."""
    if known == 0.0 or epsilon_at(0.0) <= target:
        return 0.0
    if epsilon_at(known * (1.0 - 1e-9)) > target:
        return known

    def gap(log_delta):
        above = epsilon_at(math.exp(log_delta)) - target
        # At the target itself delta may still be larger than it need be.
        return min(above, 1e9) if above > 0.0 else min(above, -1e-300)

    low, high = math.log(1e-300), math.log(known)
    if gap(low) <= 0.0:
        return math.exp(low)
    root = brentq(gap, low, high, xtol=1e-11, disp=False) if gap(high) < 0.0 else high
    root = round_to_safe(lambda log_delta: gap(log_delta) <= 0.0, root, 1e-13)
    return min(known, math.exp(root))


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

    Parameters
    ----------
    event : Event
        What was released, its parameters fixed beforehand.
    alpha : float
        The false-positive rate, in [0, 1].
    relation : {"add_remove", "replace_one"}, default="add_remove"
        What neighboring tables are.
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        As in `epsilon`.
    tolerance : float, default=1e-4
        As in `epsilon`.
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        Never above the truth.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, trade_off
    >>> round(trade_off(Gaussian(1.0), 0.05), 4)
    0.7405
    """
    check_within(alpha, "alpha", 0.0, 1.0)
    options = dict(relation=relation, method=method, tolerance=tolerance, group_size=group_size)
    curve = partial(get_delta, event, **options)

    def first(eps):
        return 1.0 - curve(eps) - math.exp(eps) * alpha

    def second(eps):
        return math.exp(-eps) * (1.0 - curve(eps) - alpha)

    smallest = (get_epsilon(event, d, **options) for d in (0.0, 1e-9))
    far = min(700.0, *smallest)
    near = min(far, -math.log(alpha)) if alpha > 0.0 else far
    return max(0.0, _largest(first, near), _largest(second, far))


def _largest(function, high):
    """The largest value found of a function on [0, high]; any of them is a bound."""
    found = minimize_scalar(lambda e: -function(e), bounds=(0.0, high), method="bounded")
    return max(-float(found.fun), function(0.0), function(high))
