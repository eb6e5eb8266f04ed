"""Compositions of very many different events, rounded up to fewer ones.

A price by loss distributions or by Renyi divergences takes a grid, or integrals, for each distinct
event. Here parameters are rounded to common values, each to the side on which the event costs more.
"""

import math
from dataclasses import replace

from skdp.accounting import _events as ev

MAX_DISTINCT = 200
# Logarithms of the ratio of neighboring values, from the finest on.
_LOG_RATIOS = [2.0**n for n in range(-20, 3)]
_SLACK = 1e-12
_STATED = (ev.Laplace, ev.PureDP, ev.RandomizedResponse, ev.ExponentialMechanism)


def with_fewer_events(parts: dict[ev.Event, int]) -> dict[ev.Event, int]:
    """Return a composition of at most `MAX_DISTINCT` events, if rounding leads to it.

    Less noise, a larger epsilon and a larger sampling rate each cost no less: the release with
    more noise or a smaller rate can be made from the other one. For the rate, (1 - r) Q + r P is a
    mixture of Q and of the one of a larger rate, and the divergence is jointly convex.
    """
    fewer = parts
    for log_ratio in _LOG_RATIOS:
        if len(fewer) <= MAX_DISTINCT:
            break
        fewer = {}
        for event, count in parts.items():
            rounded = _rounded(event, log_ratio)
            fewer[rounded] = fewer.get(rounded, 0) + count
    return fewer


def _rounded(event, log_ratio):
    if isinstance(event, ev.Gaussian):
        return ev.Gaussian(_down(event.noise_multiplier, log_ratio))
    if isinstance(event, _STATED):
        return replace(event, epsilon=_up(event.epsilon, log_ratio))
    if ev.is_sampled(event):
        # Compositions inside a sampling event stay as they are.
        event = replace(event, event=_rounded(event.event, log_ratio))
    if isinstance(event, ev.PoissonSampled) and 0.0 < event.sampling_rate < 1.0:
        rate = _up(event.sampling_rate, log_ratio)
        return replace(event, sampling_rate=rate) if rate < 1.0 else event
    return event


def _up(x, log_ratio):
    """The next of the common values that is not below a number."""
    if not 1e-90 < x < 1e90:
        return x
    return math.exp(math.ceil(math.log(x) / log_ratio) * log_ratio) * (1.0 + _SLACK)


def _down(x, log_ratio):
    """The next of the common values that is not above a number."""
    if not 1e-40 < x < 1e90:
        return x
    return math.exp(math.floor(math.log(x) / log_ratio) * log_ratio) * (1.0 - _SLACK)
