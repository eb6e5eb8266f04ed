"""What the branches of a plan cost, and the scale at which the worst one fits a budget."""

import math
from dataclasses import dataclass, replace

from skdp.accounting import ZCDP, Composed, Gaussian, PureDP, get_delta, get_epsilon, zcdp
from skdp.accounting._events import is_sampled, leaves, merged
from skdp.accounting._laws import law
from skdp.pipeline._planning import stand_in

MOST_STEPS, LARGEST_STEP = 40, 7.0


def fitting_scale(task, make_branches):
    """Return a scale at which every branch is within the budget, and the worst nearly fills it.

    Costs grow with the scale, about in proportion: a secant in logarithms, kept in its bracket.
    """
    whole, tolerance = task.guarantee, 1e-3
    target, relation = whole.epsilon, whole.relation
    low, high = 0.0, math.inf
    scale, points = 1.0, []
    for _ in range(MOST_STEPS):
        # A fit that changes its mechanism at some epsilon has costs that jump over the budget.
        if high <= low * (1.0 + tolerance):
            break
        cost = max(get_epsilon(e, whole.delta, relation=relation) for e in make_branches(scale))
        if cost <= target:
            low = max(low, scale)
            if cost >= target * (1.0 - tolerance):
                break
        else:
            high = min(high, scale)
        points = [*points, (math.log(scale), math.log(max(cost, 1e-300)))][-2:]
        step = math.log((1.0 - 0.5 * tolerance) * target) - points[-1][1]
        scale *= math.exp(min(max(step * _inverse(points), -LARGEST_STEP), LARGEST_STEP))
        if not low < scale < high:
            scale = math.sqrt(low * high) if low and high < math.inf else (low or high) / 2.0
    if not low:
        raise ValueError(
            f"epsilon={target!r} and delta={whole.delta!r} cannot pay for this search: the "
            "cost of a candidate does not fall with its epsilon"
        )
    while any(get_delta(e, target, relation=relation) > whole.delta for e in make_branches(low)):
        low *= 1.0 - tolerance
    return low


def _inverse(points):
    """Return the inverse of the slope through the last points, within a factor of 3 of 1."""
    if len(points) < 2 or points[0][0] == points[1][0]:
        return 1.0
    slope = (points[1][1] - points[0][1]) / (points[1][0] - points[0][0])
    return 1.0 / min(max(slope, 1.0 / 3.0), 3.0)


def worst_branches(branches):
    """Return the branches, each a list of events, that no other one exceeds.

    The Gaussians of a branch are one Gaussian; of branches that differ in it alone the one with
    the least noise costs most.
    """
    least = {}
    for events in branches:
        counts = leaves(Composed(tuple(events))).items()
        gaussians = tuple(part * n for part, n in counts if isinstance(part, Gaussian))
        others = frozenset((part, n) for part, n in counts if not isinstance(part, Gaussian))
        noise = math.inf
        if gaussians:
            noise = math.nextafter(merged(Composed(gaussians)).noise_multiplier, 0.0)
        least[others] = min(noise, least.get(others, math.inf))
    found = []
    for others, noise in least.items():
        events = tuple(part * n for part, n in sorted(others, key=repr))
        found.append(Composed(events if noise == math.inf else (*events, Gaussian(noise))))
    return tuple(found)


def dominating(fits):
    """Return an event that costs at least as much as the fit of any candidate.

    Parameters
    ----------
    fits : sequence of FitPlan
    """
    distinct = worst_branches([fit.event] for fit in fits)
    if len(distinct) == 1:
        return distinct[0]
    pure = max(map(_pure_epsilon, distinct))
    if pure < math.inf:
        return PureDP(pure)
    guarantee = fits[0].guarantee
    return stand_in(replace(guarantee, epsilon=_common_epsilon(fits, guarantee.delta)))


@dataclass(frozen=True)
class RunCost:
    """What one run costs, whichever candidate it draws.

    Parameters
    ----------
    event : Event
        What a run is with probability 1 - `set_aside`.
    set_aside : float, default=0.0
        0 where every fit has a Renyi bound.
    """

    event: object
    set_aside: float = 0.0


def run_cost(fits, delta):
    """Return what one run costs, a delta being set aside only where a fit has no Renyi bound.

    Parameters
    ----------
    fits : sequence of FitPlan
    delta : float
        The one to set aside: the run is then (epsilon, delta)-DP, and its event that of the pure
        mechanism which it is with probability 1 - delta.

    Returns
    -------
    RunCost
    """
    relation = fits[0].guarantee.relation
    distinct = worst_branches([fit.event] for fit in fits)
    parts = [part for event in distinct for part in leaves(event)]
    if any(law(part, relation).delta > 0.0 for part in parts):
        return RunCost(PureDP(_common_epsilon(fits, delta)), delta)
    pure = max(map(_pure_epsilon, distinct))
    if pure < math.inf:
        return RunCost(PureDP(pure))
    if len(distinct) == 1:
        counts = leaves(distinct[0])
        return RunCost(parts[0] if list(counts.values()) == [1] else distinct[0])
    if any(map(is_sampled, parts)):
        return RunCost(PureDP(_common_epsilon(fits, delta)), delta)
    return RunCost(ZCDP(max(zcdp(event, relation=relation)[0] for event in distinct)))


def _pure_epsilon(event):
    return get_epsilon(event, 0.0, method="basic")


def _common_epsilon(fits, delta):
    relation = fits[0].guarantee.relation
    return max(get_epsilon(fit.event, delta, relation=relation) for fit in fits)
