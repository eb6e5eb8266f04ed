"""Reduction of compositions of very many different events to fewer ones.

Bounds from loss distributions or Renyi divergences require a grid, or integrals, for every distinct
event. This module rounds parameters to common values, in the direction in which the event costs
more.
"""

import math
from dataclasses import replace

from skdp.accounting import _events as ev

# Compositions with more distinct events are reduced.
MAX_DISTINCT = 200
# The same limit for events of groups under sampling, whose mixtures take about 0.3 s each.
MAX_DISTINCT_GROUPS = 10
# Logarithms of the ratio of neighboring common values, finest first.
_LOG_RATIOS = [2.0**n for n in range(-20, 3)]
# Relative error of a common value, by exp and log.
_SLACK = 1e-12
_EPSILON_EVENTS = (ev.Laplace, ev.PureDP, ev.RandomizedResponse, ev.ExponentialMechanism)


def with_fewer_events(
    counts: dict[ev.Event, int], max_distinct: int | None = None
) -> dict[ev.Event, int]:
    """Return a composition of at most `max_distinct` events, if rounding can reach it.

    At most `MAX_DISTINCT_GROUPS` of them are events of groups under sampling.

    The result costs no less. An event with less noise or a larger epsilon costs no less, because
    the other event is a post-processing of it. For the sampling rate, (1 - r) Q + r P is a mixture
    of Q and of the same expression with a larger rate, and divergences are jointly convex.

    Parameters
    ----------
    counts : dict
        Maps events to their counts, as `leaves` returns it.
    max_distinct : int, default=None
        Maximum number of distinct events; None means `MAX_DISTINCT`.
    """
    if max_distinct is None:
        max_distinct = MAX_DISTINCT
    fewer = counts
    for log_ratio in _LOG_RATIOS:
        n_groups = sum(map(contains_group, fewer))
        if len(fewer) <= max_distinct and n_groups <= MAX_DISTINCT_GROUPS:
            break
        fewer = {}
        for event, count in counts.items():
            rounded = _rounded(event, log_ratio)
            fewer[rounded] = fewer.get(rounded, 0) + count
    return fewer


def contains_group(event):
    """Return True for a `SampledGroup`, and for a random number of runs of one."""
    if isinstance(event, ev.SampledGroup):
        return True
    return isinstance(event, ev.RandomStopping) and any(map(contains_group, ev.leaves(event.event)))


def _rounded(event, log_ratio):
    """Return an event that costs no less and has parameters among the common values."""
    if isinstance(event, ev.SampledGroup):
        # The records of a group that a smaller sample draws are a random part of those that a
        # larger one draws, so the argument for the sampling rate holds for each part.
        return replace(event, event=_rounded(event.event, log_ratio))
    if isinstance(event, ev.Gaussian):
        return ev.Gaussian(_down(event.noise_multiplier, log_ratio))
    if isinstance(event, _EPSILON_EVENTS):
        return replace(event, epsilon=_up(event.epsilon, log_ratio))
    if ev.is_sampled(event):
        # A composition inside a sampling event is not changed.
        event = replace(event, event=_rounded(event.event, log_ratio))
    if isinstance(event, ev.PoissonSampled) and 0.0 < event.sampling_rate < 1.0:
        rate = _up(event.sampling_rate, log_ratio)
        if rate < 1.0:
            return replace(event, sampling_rate=rate)
    return event


def _up(x, log_ratio):
    """Return the smallest common value that is at least x."""
    if not 1e-90 < x < 1e90:
        return x
    return math.exp(math.ceil(math.log(x) / log_ratio) * log_ratio) * (1.0 + _SLACK)


def _down(x, log_ratio):
    """Return the largest common value that is at most x."""
    if not 1e-40 < x < 1e90:
        return x
    return math.exp(math.floor(math.log(x) / log_ratio) * log_ratio) * (1.0 - _SLACK)
