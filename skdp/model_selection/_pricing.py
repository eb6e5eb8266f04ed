"""What the branches of a plan cost, and the scale at which the worst one fits a budget."""

import math

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    PoissonSampled,
    PureDP,
    SampledWithoutReplacement,
    get_delta,
    get_epsilon,
    zcdp,
)
from skdp.accounting._events import leaves, merged
from skdp.accounting._rdp import fixed_delta

__all__ = [
    "dominating",
    "fitting_scale",
    "run_event",
    "stand_in",
    "worst_branches",
]

MOST_STEPS, LARGEST_STEP = 40, 7.0


def fitting_scale(task, make_branches):
    """Return a scale at which every branch is within the budget, and the worst nearly fills it.

    Costs grow with the scale, about in proportion: a secant in logarithms, kept in its bracket.
    """
    relation = task.terms.relation
    target, tolerance = task.epsilon, 1e-3
    low, high = 0.0, math.inf
    scale, points = 1.0, []
    for _ in range(MOST_STEPS):
        # A fit that changes its mechanism at some epsilon has costs that jump over the budget.
        if high <= low * (1.0 + tolerance):
            break
        cost = max(get_epsilon(e, task.delta, relation=relation) for e in make_branches(scale))
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
            f"epsilon={task.epsilon!r} and delta={task.delta!r} cannot pay for this search: the "
            "cost of a candidate does not fall with its epsilon"
        )
    while any(get_delta(e, target, relation=relation) > task.delta for e in make_branches(low)):
        low *= 1.0 - tolerance
    return low


def _inverse(points):
    """Return the inverse of the slope through the last points, within a factor of 3 of 1."""
    if len(points) < 2 or points[0][0] == points[1][0]:
        return 1.0
    slope = (points[1][1] - points[0][1]) / (points[1][0] - points[0][0])
    return 1.0 / min(max(slope, 1.0 / 3.0), 3.0)


def _split_event(event):
    """Return an event as (noise multiplier of its Gaussians or inf, counts of the others)."""
    counts = leaves(event)
    gaussians = [part * n for part, n in counts.items() if isinstance(part, Gaussian)]
    others = frozenset((part, n) for part, n in counts.items() if not isinstance(part, Gaussian))
    if not gaussians:
        return math.inf, others
    return math.nextafter(merged(Composed(tuple(gaussians))).noise_multiplier, 0.0), others


def worst_branches(branches):
    """Return the branches, each a list of events, that no other one exceeds.

    The Gaussians of a branch are one Gaussian; of branches that differ in it alone the one with
    the least noise costs most.
    """
    least = {}
    for events in branches:
        noise, others = _split_event(Composed(tuple(events)))
        least[others] = min(noise, least.get(others, math.inf))
    found = []
    for others, noise in least.items():
        events = tuple(part * n for part, n in sorted(others, key=repr))
        found.append(Composed(events if noise == math.inf else (*events, Gaussian(noise))))
    return tuple(found)


def _has_delta(event):
    """Say whether an event has a delta that no epsilon makes smaller."""
    return any(fixed_delta(part) > 0.0 for part in leaves(event))


def stand_in(epsilon, delta):
    """Return the event of anything that is (epsilon, delta)-differentially private."""
    return PureDP(epsilon) if delta == 0.0 else ApproximateDP(epsilon, delta)


def dominating(fits):
    """Return an event that costs at least as much as the fit of any candidate.

    Parameters
    ----------
    fits : sequence of FitPlan
    """
    distinct = worst_branches([fit.event] for fit in fits)
    if len(distinct) == 1:
        return distinct[0]
    pure = max(_pure(event) for event in distinct)
    if pure < math.inf:
        return PureDP(pure)
    return stand_in(_common_epsilon(fits, fits[0].delta), fits[0].delta)


def run_event(fits, delta):
    """Return (event, delta) of one run, whichever candidate it draws.

    The delta is 0 where every fit has a Renyi bound; otherwise the run is (epsilon, delta)-DP
    and the event is that of the pure mechanism which it is with probability 1 - delta.

    Parameters
    ----------
    fits : sequence of FitPlan
    delta : float
    """
    distinct = worst_branches([fit.event] for fit in fits)
    if any(map(_has_delta, distinct)):
        return PureDP(_common_epsilon(fits, delta)), delta
    if len(distinct) == 1:
        (event,) = distinct
        return _only_part(event), 0.0
    pure = max(map(_pure, distinct))
    if pure < math.inf:
        return PureDP(pure), 0.0
    if any(map(_is_sampled, distinct)):
        return PureDP(_common_epsilon(fits, delta)), delta
    relation = fits[0].pipeline.terms.relation
    return ZCDP(max(zcdp(event, relation=relation)[0] for event in distinct)), 0.0


def _only_part(event):
    """Return a composition of one event as this event, and of pure ones as a pure one."""
    parts = leaves(event)
    if len(parts) == 1 and set(parts.values()) == {1}:
        (event,) = parts
    pure = _pure(event)
    return PureDP(pure) if pure < math.inf else event


def _is_sampled(event):
    return any(isinstance(p, PoissonSampled | SampledWithoutReplacement) for p in leaves(event))


def _pure(event):
    """Return the epsilon of an event at delta = 0."""
    return get_epsilon(event, 0.0, method="basic")


def _common_epsilon(fits, delta):
    relation = fits[0].pipeline.terms.relation
    return max(get_epsilon(fit.event, delta, relation=relation) for fit in fits)
