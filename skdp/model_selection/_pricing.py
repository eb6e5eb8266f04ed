"""What the branches of a plan cost, and the scale at which the worst one fits a budget."""

import math
from dataclasses import dataclass, replace
from functools import cache

from skdp.accounting import ZCDP, Composed, Gaussian, PureDP, get_delta, get_epsilon, zcdp
from skdp.accounting._calibrate import bracket, crossing
from skdp.accounting._events import is_sampled, leaves, merged
from skdp.accounting._laws import privacy_of
from skdp.utils._values import FrozenValue

SCALES = (2.0**-30, 2.0**20)


def fitting_scale(task, make_branches):
    """Return a scale at which every branch is within the budget, and the worst nearly fills it.

    Costs grow with the scale, about in proportion.
    """
    whole = task.guarantee
    tolerance = 1e-3
    target = whole.epsilon
    relation = whole.relation

    @cache
    def cost(scale):
        branches = make_branches(scale)
        return max(get_epsilon(e, whole.delta, relation=relation) for e in branches)

    # What a candidate refuses at any price is raised here.
    cost(1.0)
    try:
        fits, exceeds = bracket(cost, target, 1.0, 0.9, *SCALES)
    except ValueError as error:
        raise ValueError(
            f"epsilon={target!r} and delta={whole.delta!r} cannot pay for this search: the cost "
            f"of a candidate does not fall with its epsilon, or a smaller one is refused: {error}"
        ) from None
    # A fit that changes its mechanism at some epsilon has costs that jump over the budget.
    scale = fits if exceeds is None else crossing(cost, target, fits, exceeds, 0.5 * tolerance)
    while cost(scale) > target or any(
        get_delta(e, target, relation=relation) > whole.delta for e in make_branches(scale)
    ):
        scale *= 1.0 - tolerance
    return scale


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
    return replace(guarantee, epsilon=_common_epsilon(fits, guarantee.delta)).event


@dataclass(frozen=True)
class RunCost(FrozenValue):
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
    pure = max(map(_pure_epsilon, distinct))
    if pure < math.inf:
        return RunCost(PureDP(pure))
    several = len(distinct) > 1
    if any(
        privacy_of(part, relation).delta > 0.0 or (several and is_sampled(part)) for part in parts
    ):
        return RunCost(PureDP(_common_epsilon(fits, delta)), delta)
    if several:
        return RunCost(ZCDP(max(zcdp(event, relation=relation)[0] for event in distinct)))
    return RunCost(parts[0] if list(leaves(distinct[0]).values()) == [1] else distinct[0])


def _pure_epsilon(event):
    return get_epsilon(event, 0.0, method="basic")


def _common_epsilon(fits, delta):
    relation = fits[0].guarantee.relation
    return max(get_epsilon(fit.event, delta, relation=relation) for fit in fits)
