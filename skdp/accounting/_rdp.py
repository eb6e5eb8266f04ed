"""Bounds by Renyi divergences, and the law of a random number of runs, which rests on them."""

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq

from skdp.accounting import _advanced
from skdp.accounting import _divergences as div
from skdp.accounting import _events as ev
from skdp.accounting._conversions import converted_delta, converted_epsilon, minimum_over_orders
from skdp.accounting._gaussian import delta_of_mu
from skdp.accounting._laws import (
    EventPrivacy,
    claimed,
    composed_rdp,
    event_privacy,
    group_event,
    privacy_of,
)
from skdp.utils._rounding import sum_up


def rdp_epsilon(parts, delta, relation):
    """epsilon by RDP, minimized over real orders, at what the events' own deltas leave."""
    deltas = [privacy_of(part, relation).delta for part in parts]
    spare = _advanced.remaining_delta(deltas, parts.values(), delta)
    if spare <= 0.0:
        return math.inf
    base = partial(composed_rdp, parts, relation)
    return minimum_over_orders(lambda a: converted_epsilon(base(a), a, spare))


def rdp_delta(parts, epsilon, relation):
    """delta by RDP, minimized over real orders, with the events' own deltas."""
    base = partial(composed_rdp, parts, relation)
    found = minimum_over_orders(lambda a: converted_delta(base(a), a, epsilon))
    own = _advanced.total_delta((n, privacy_of(part, relation).delta) for part, n in parts.items())
    return own + (1.0 - own) * found


def stopping_gamma(mean: float, shape: float) -> float:
    """gamma of the truncated negative binomial with this mean (Papernot and Steinke 2022)."""
    if mean == 1.0:
        return 1.0

    def log_mean(log_gamma):
        gamma = math.exp(log_gamma)
        if abs(shape) < 1e-9:
            value = (1.0 / gamma - 1.0) / -log_gamma
        else:
            value = shape * (1.0 - gamma) / (gamma * -math.expm1(shape * log_gamma))
        return math.log(value) - math.log(mean)

    low, high = -1.0, -1e-12
    while log_mean(low) < 0.0:
        low *= 2.0
        if low < -700.0:
            raise ValueError(f"mean={mean:g} is out of reach for shape={shape:g}")
    if log_mean(high) > 0.0:
        return math.exp(high)
    return math.exp(brentq(log_mean, low, high, xtol=1e-14)) * (1.0 - 1e-12)


def _stopping_curve(event, relation, pure):
    parts = ev.leaves(event.event)
    mean = event.mean
    shape = event.shape
    base = partial(composed_rdp, parts, relation)
    if shape == math.inf:
        hat = _base_delta(parts, relation)

        def poisson(order):
            # Theorem 6 bounds the moment of what some run released; no run at all, an outcome
            # of probability e^-mean on both sides, adds just that to it.
            s = order - 1.0
            ran = s * (base(order) + mean * hat(math.log1p(1.0 / s))) + math.log(mean)
            return (max(0.0, float(np.logaddexp(-mean, ran))) * div.UP + div.ROUND_OFF) / s

        return poisson
    log_gamma = math.log(stopping_gamma(mean, shape))
    penalty = minimum_over_orders(lambda b: (1.0 - 1.0 / b) * base(b) - log_gamma / b)
    penalty = min(max(0.0, penalty), -log_gamma)

    def curve(order):
        value = base(order) + (1.0 + shape) * penalty + math.log(mean) / (order - 1.0)
        return min(value, div.response_renyi(pure, order)) if pure < math.inf else value

    return curve


def _base_delta(parts, relation):
    mu = ev.gaussian_mu(parts)
    if mu is not None:
        return partial(delta_of_mu, mu)
    pure = sum_up((n, privacy_of(part, relation).pure) for part, n in parts.items())

    @lru_cache(maxsize=512)
    def hat(epsilon):
        return 0.0 if pure <= epsilon else rdp_delta(parts, epsilon, relation)

    return hat


@event_privacy.register
def _stopping(e: ev.RandomStopping, relation):
    base = privacy_of(e.event, relation).pure
    # Papernot and Steinke (2022), corollary 4: (2 + eta) epsilon.
    pure = sum_up([(2, base), (base, e.shape)]) if base > 0.0 else 0.0

    def grouped(k):
        # The number of runs knows no row: it is the best of as many runs of the group's price.
        run = group_event(e.event, k)
        return None if run is None else replace(e, event=run)

    return replace(
        claimed(pure) if pure < math.inf else EventPrivacy(),
        grouped=grouped,
        renyi=lambda: _stopping_curve(e, relation, pure),
    )
