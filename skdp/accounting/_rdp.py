"""Bounds from Renyi divergences, and the privacy of a random number of runs, which uses them."""

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
    composed_rdp,
    event_privacy,
    group_event,
    privacy_of,
    pure_or_unknown,
)
from skdp.utils._rounding import sum_up


def rdp_epsilon(counts, delta, relation):
    """Return the epsilon that RDP implies, minimized over real orders.

    Parameters
    ----------
    counts : dict
        From events to their numbers, as `leaves` returns it.
    delta : float
        The total, including the deltas of the events.
    relation : {"add_remove", "replace_one"}
        The relation between neighboring tables.
    """
    deltas = [privacy_of(event, relation).delta for event in counts]
    delta_left = _advanced.remaining_delta(deltas, counts.values(), delta)
    if delta_left <= 0.0:
        return math.inf
    divergence = partial(composed_rdp, counts, relation)

    def epsilon_at(order):
        return converted_epsilon(divergence(order), order, delta_left)

    return minimum_over_orders(epsilon_at)


def rdp_delta(counts, epsilon, relation):
    """Return the delta that RDP implies, minimized over real orders, with the events' deltas."""
    divergence = partial(composed_rdp, counts, relation)

    def delta_at(order):
        return converted_delta(divergence(order), order, epsilon)

    rdp_term = minimum_over_orders(delta_at)
    deltas = [(n, privacy_of(event, relation).delta) for event, n in counts.items()]
    event_delta = _advanced.total_delta(deltas)
    return event_delta + (1.0 - event_delta) * rdp_term


def stopping_gamma(mean: float, shape: float) -> float:
    """Return gamma for the truncated negative binomial with this mean (Papernot, Steinke 2022)."""
    if mean == 1.0:
        return 1.0

    def log_mean(log_gamma):
        """Return ln of the mean for gamma = exp(log_gamma), minus ln of the target.

        Near shape 0, the mean is that of the limit, the logarithmic distribution.
        """
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
            raise ValueError(f"mean={mean:g} is too large for shape={shape:g}")
    if log_mean(high) > 0.0:
        return math.exp(high)
    return math.exp(brentq(log_mean, low, high, xtol=1e-14)) * (1.0 - 1e-12)


def _stopping_renyi(event, relation, pure):
    """Return a function that maps orders to Renyi divergences of a random number of runs.

    `pure` is an epsilon that the event satisfies with delta = 0; it is infinite if there is none.
    """
    counts = ev.leaves(event.event)
    mean = event.mean
    shape = event.shape
    run_divergence = partial(composed_rdp, counts, relation)
    if shape == math.inf:
        run_delta = _run_privacy_profile(counts, relation)

        def poisson(order):
            """Return the Renyi divergence at an order for a Poisson number of runs."""
            # Theorem 6 bounds the moment of the outcomes of at least one run. The event that there
            # is no run has the same probability e^-mean under both tables, which is added.
            s = order - 1.0
            run_term = run_divergence(order) + mean * run_delta(math.log1p(1.0 / s))
            log_moment = s * run_term + math.log(mean)
            return (max(0.0, float(np.logaddexp(-mean, log_moment))) * div.UP + div.ROUND_OFF) / s

        return poisson
    log_gamma = math.log(stopping_gamma(mean, shape))

    def penalty_at(order):
        return (1.0 - 1.0 / order) * run_divergence(order) - log_gamma / order

    penalty = min(max(0.0, minimum_over_orders(penalty_at)), -log_gamma)

    def negative_binomial(order):
        """Return the Renyi divergence at an order (Papernot and Steinke 2022, theorem 2)."""
        value = run_divergence(order) + (1.0 + shape) * penalty + math.log(mean) / (order - 1.0)
        if pure < math.inf:
            return min(value, div.response_renyi(pure, order))
        return value

    return negative_binomial


def _run_privacy_profile(counts, relation):
    """Return a function that maps epsilons to deltas of one run."""
    mu = ev.gaussian_mu(counts)
    if mu is not None:
        return partial(delta_of_mu, mu)
    pure = sum_up((n, privacy_of(event, relation).pure) for event, n in counts.items())

    @lru_cache(maxsize=512)
    def delta_at(epsilon):
        """Return the delta at this epsilon; 0 from the pure epsilon on."""
        if pure <= epsilon:
            return 0.0
        return rdp_delta(counts, epsilon, relation)

    return delta_at


@event_privacy.register
def _stopping(e: ev.RandomStopping, relation):
    """Return the privacy of the best of a random number of runs of an event."""
    run_epsilon = privacy_of(e.event, relation).pure
    pure = 0.0
    if run_epsilon > 0.0:
        # Papernot and Steinke (2022), corollary 4: (2 + eta) epsilon, where eta is the shape.
        pure = math.inf
        if e.shape < math.inf:
            pure = sum_up([(2, run_epsilon), (e.shape, run_epsilon)])

    def grouped(k):
        """Return the event for a group of k records; None if that of a run is unknown."""
        # The number of runs does not depend on the data, so a group changes only each run.
        run = group_event(e.event, k)
        if run is None:
            return None
        return replace(e, event=run)

    return replace(
        pure_or_unknown(pure), grouped=grouped, renyi=partial(_stopping_renyi, e, relation, pure)
    )
