"""Privacy cost of record paths, and the scale at which the costliest one fits a budget."""

import math
from dataclasses import dataclass, replace
from functools import cache

from skdp.accounting import ZCDP, Composed, Gaussian, PureDP, get_delta, get_epsilon, zcdp
from skdp.accounting._calibrate import bracket, crossing
from skdp.accounting._events import is_sampled, leaves, merged
from skdp.accounting._laws import privacy_of
from skdp.utils._values import FrozenValue

# Range in which a scale of the epsilons is searched.
SCALES = (2.0**-30, 2.0**20)


def fitting_scale(task, make_record_paths):
    """Return a scale at which all record paths fit the budget and the costliest nearly exhausts it.

    Costs grow approximately in proportion to the scale.
    """
    delta = task.guarantee.delta
    tolerance = 1e-3
    target = task.guarantee.epsilon
    relation = task.guarantee.relation

    @cache
    def cost(scale):
        return max(get_epsilon(e, delta, relation=relation) for e in make_record_paths(scale))

    # A candidate's errors that do not depend on its budget are raised here, unchanged.
    cost(1.0)
    try:
        fits, exceeds = bracket(cost, target, 1.0, 0.9, *SCALES)
    except ValueError as error:
        raise ValueError(
            f"epsilon={target!r} and delta={delta!r} are too small for this search: the cost of a "
            "candidate does not decrease with its epsilon, or the candidate refuses a smaller "
            f"epsilon: {error}"
        ) from None
    # A fit may change its mechanism at some epsilon, at which the cost may jump over the budget.
    if exceeds is None:
        scale = fits
    else:
        scale = crossing(cost, target, fits, exceeds, 0.5 * tolerance)
    while cost(scale) > target or any(
        get_delta(e, target, relation=relation) > delta for e in make_record_paths(scale)
    ):
        scale *= 1.0 - tolerance
    return scale


def worst_record_paths(record_paths):
    """Return, as composed events, the record paths that can be the costliest.

    A record path is the list of the events of all releases that read one record: the fits that
    train on it, the scores that test on it, and the refit.

    The Gaussian events of a path are merged into one. Among paths that differ only in this event,
    the one with the smallest noise multiplier dominates the others.
    """
    min_noise = {}
    for events in record_paths:
        counts = leaves(Composed(tuple(events))).items()
        gaussians = tuple(event * n for event, n in counts if isinstance(event, Gaussian))
        others = frozenset((event, n) for event, n in counts if not isinstance(event, Gaussian))
        noise = math.inf
        if gaussians:
            noise = math.nextafter(merged(Composed(gaussians)).noise_multiplier, 0.0)
        min_noise[others] = min(noise, min_noise.get(others, math.inf))
    worst = []
    for others, noise in min_noise.items():
        events = tuple(event * n for event, n in sorted(others, key=repr))
        worst.append(Composed(events if noise == math.inf else (*events, Gaussian(noise))))
    return tuple(worst)


def dominating_event(fits):
    """Return an event that costs at least as much as the fit of any candidate.

    Parameters
    ----------
    fits : sequence of CandidateFit
    """
    distinct = worst_record_paths([fit.event] for fit in fits)
    if len(distinct) == 1:
        return distinct[0]
    pure = max(map(_pure_epsilon, distinct))
    if pure < math.inf:
        return PureDP(pure)
    guarantee = fits[0].guarantee
    return replace(guarantee, epsilon=_common_epsilon(fits, guarantee.delta)).event


@dataclass(frozen=True)
class RunCost(FrozenValue):
    """Upper bound on the privacy cost of one run, for every candidate that it may draw.

    Parameters
    ----------
    event : Event
        Event of a run with probability 1 - `reserved_delta`.
    reserved_delta : float, default=0.0
        Reserved delta; 0 if every fit has a Renyi bound.
    """

    event: object
    reserved_delta: float = 0.0


def run_cost(fits, delta):
    """Return the cost of one run; a delta is reserved only if a fit has no Renyi bound.

    Parameters
    ----------
    fits : sequence of CandidateFit
    delta : float
        Delta to reserve. The run is then (epsilon, delta)-DP: with probability 1 - delta it is
        a pure mechanism, whose event is returned.

    Returns
    -------
    RunCost
    """
    relation = fits[0].guarantee.relation
    distinct = worst_record_paths([fit.event] for fit in fits)
    leaf_events = [leaf for event in distinct for leaf in leaves(event)]
    pure = max(map(_pure_epsilon, distinct))
    if pure < math.inf:
        return RunCost(PureDP(pure))
    is_mixed = len(distinct) > 1
    if any(
        privacy_of(leaf, relation).delta > 0.0 or (is_mixed and is_sampled(leaf))
        for leaf in leaf_events
    ):
        return RunCost(PureDP(_common_epsilon(fits, delta)), delta)
    if is_mixed:
        return RunCost(ZCDP(max(zcdp(event, relation=relation)[0] for event in distinct)))
    return RunCost(leaf_events[0] if list(leaves(distinct[0]).values()) == [1] else distinct[0])


def _pure_epsilon(event):
    return get_epsilon(event, 0.0, method="basic")


def _common_epsilon(fits, delta):
    """Return the largest epsilon of the fits at this delta."""
    relation = fits[0].guarantee.relation
    return max(get_epsilon(fit.event, delta, relation=relation) for fit in fits)
