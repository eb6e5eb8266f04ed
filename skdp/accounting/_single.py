"""The privacy curve of one release, in closed form.

Sampling at rate q turns a curve delta(e) into q delta(e') at e = ln(1 + q (exp(e') - 1)) (Balle,
Barthe and Gaboardi 2018), with equality for the pairs used here: nothing is composed, so that no
grid is needed, and delta may be arbitrarily small.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from skdp.accounting import _advanced, _conversions, _gaussian, _leaf
from skdp.accounting import _events as ev
from skdp.accounting._pairs import base_pair, replaced_gaussian_position

_UP = 1.0 + 2.0**-50
_DOWN = 1.0 - 2.0**-50
# More than the curves below are off by, relatively.
_ROUND_OFF = 1.0 + 5e-13
_LARGEST_SIGMA, _LARGEST_SENSITIVITY = 5e4, 10**6


def has_loss_distribution(parts, relation):
    """Whether the privacy loss distribution of every event is known."""
    return all(_has_loss_distribution(part, relation) for part in parts)


def _has_loss_distribution(part, relation):
    base = _leaf.inner_event(part, relation) if _leaf.is_sampled(part) else part
    if isinstance(base, ev.DiscreteGaussian):
        return base.sigma <= _LARGEST_SIGMA and base.sensitivity <= _LARGEST_SENSITIVITY
    if isinstance(base, (ev.Gaussian, ev.ApproximateDP)):
        return True
    return _leaf.pure_epsilon(base, relation) < math.inf


def closed_epsilon(part, delta, relation):
    """Least epsilon at delta of one uncomposed event; exact if its loss distribution is known."""
    if delta >= 1.0:
        return 0.0
    if isinstance(part, ev.Gaussian):
        return _gaussian.gdp_to_epsilon(1.0 / part.noise_multiplier, delta)
    pure = _leaf.pure_epsilon(part, relation)
    if delta == 0.0:
        return pure
    bounds = [math.inf]
    if pure < math.inf:
        bounds += [pure, _advanced.optimal_epsilon(pure, 1, delta)]
    if isinstance(part, ev.Laplace):
        bounds.append(_lessened(pure, 2.0, delta))
    if isinstance(part, ev.ExponentialMechanism):
        # The largest of the two-point curves of Dong, Durfee and Rogers (2020).
        bounds.append(_lessened(pure, 2.0, math.sqrt(delta * -math.expm1(-pure))))
    if isinstance(part, ev.RandomizedResponse):
        others = (part.num_categories - 1.0) * math.exp(-pure)
        bounds.append(_lessened(pure, 1.0, delta * (1.0 + others)))
    if isinstance(part, ev.ApproximateDP):
        bounds.append(_advanced.optimal_epsilon(part.epsilon, 1, delta, part.delta))
    if _is_discrete(part, relation):
        bounds.append(_atoms_epsilon(base_pair(part, relation), delta))
    if _leaf.is_sampled(part):
        bounds.append(_sampled_epsilon(part, delta, relation))
    rho, rho_delta = _leaf.leaf_zcdp(part, relation)
    bounds.append(_conversions.zcdp_to_epsilon(rho, delta, rho_delta))
    return min(bounds)


def _lessened(epsilon, factor, share):
    """epsilon + factor ln(1 - share), rounded up, at least 0."""
    share *= _DOWN
    if share >= 1.0:
        return 0.0
    return max(0.0, epsilon * _UP + factor * math.log1p(-share) * _DOWN)


def _is_discrete(part, relation):
    discrete = isinstance(part, (ev.DiscreteLaplace, ev.DiscreteGaussian))
    return discrete and _has_loss_distribution(part, relation)


def _sampled_epsilon(part, delta, relation):
    rate, inner = _leaf.sampling_rate(part), _leaf.inner_event(part, relation)
    if rate == 0.0:
        return 0.0
    bound = closed_epsilon(inner, delta / rate / _ROUND_OFF, relation)
    if rate == 1.0 or bound == 0.0:
        return bound
    bound = _leaf.amplified(bound, rate) * _UP
    if not _is_replaced_gaussian(part, inner, relation) or bound == math.inf:
        return bound

    return _gaussian.least_epsilon(lambda e: _sampled_delta(part, e, relation), delta, bound)


def _is_replaced_gaussian(part, inner, relation):
    poisson = isinstance(part, ev.PoissonSampled) and 0.0 < part.sampling_rate < 1.0
    return poisson and relation == "replace_one" and isinstance(inner, ev.Gaussian)


def _replaced_gaussian_delta(part, epsilon):
    """delta of (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1), without cancellation.

    At the point t sigma^2 whose loss is epsilon, (1-q)(e^epsilon - 1) equals
    q (e^(t - c) - e^(epsilon - t - c)), c = 1 / (2 sigma^2). Put into the hockey-stick divergence
    this leaves a sum of two positive terms, each the curve G of a Gaussian release:
    q (G(t - c) + e^(epsilon - t - c) G(t + c)).
    """
    sigma, rate = ev.merged(part.event).noise_multiplier, part.sampling_rate
    mu, half = 1.0 / sigma, 0.5 / sigma / sigma
    t = float(replaced_gaussian_position(sigma, rate, np.array([epsilon]))[0]) / sigma
    if epsilon - t - half > 600.0:  # The second factor may have underflowed.
        return math.inf
    second = math.exp(epsilon - t - half) * _gaussian.gdp_to_delta(mu, t + half)
    # The position of a loss is inexact too, and a tail tells it where delta is tiny.
    return rate * (_gaussian.gdp_to_delta(mu, t - half) + second) * (1.0 + 1e-11)


def closed_delta(part, epsilon, relation):
    """Least delta at epsilon of one uncomposed event, exact; 1 if its loss is not known."""
    if isinstance(part, ev.Gaussian):
        return _gaussian.gdp_to_delta(1.0 / part.noise_multiplier, epsilon)
    if isinstance(part, ev.ApproximateDP) and epsilon >= part.epsilon:
        return part.delta
    return min(1.0, _closed_delta(part, epsilon, relation) * _UP)


def _closed_delta(part, epsilon, relation):
    pure, bound = _leaf.pure_epsilon(part, relation), 1.0
    if epsilon >= pure:
        return 0.0
    if pure < math.inf:
        bound = _response_delta(pure, 1.0, epsilon)
    if isinstance(part, ev.Laplace):
        bound = -math.expm1(0.5 * (epsilon - pure))
    elif isinstance(part, ev.ExponentialMechanism):
        gap = math.expm1(0.5 * (epsilon - pure))
        bound = gap * (gap / -math.expm1(-pure))
    elif isinstance(part, ev.RandomizedResponse):
        bound = _response_delta(pure, part.num_categories - 1.0, epsilon)
    elif isinstance(part, ev.ApproximateDP):
        rest = _response_delta(part.epsilon, 1.0, epsilon) if epsilon < part.epsilon else 0.0
        bound = part.delta + (1.0 - part.delta) * rest
    elif _is_discrete(part, relation):
        bound = min(bound, _atoms_delta(base_pair(part, relation), epsilon))
    elif _leaf.is_sampled(part):
        bound = min(bound, _sampled_delta(part, epsilon, relation))
    return bound


def _response_delta(pure, others, epsilon):
    return -math.expm1(epsilon - pure) / (1.0 + others * math.exp(-pure))


def _sampled_delta(part, epsilon, relation):
    rate, inner = _leaf.sampling_rate(part), _leaf.inner_event(part, relation)
    if rate == 0.0:
        return 0.0
    if epsilon > 30.0:
        before = epsilon - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-epsilon))
    else:
        before = math.log1p(math.expm1(epsilon) / rate)
    bound = rate * closed_delta(inner, before * _DOWN, relation) * _ROUND_OFF
    if _is_replaced_gaussian(part, inner, relation):
        return min(bound, _replaced_gaussian_delta(part, epsilon))
    return bound


def _tail_sum(pair, index, epsilon):
    return float(pair.p[index:] @ -np.expm1(epsilon - pair.losses[index:]))


def _atoms_delta(pair, epsilon):
    # A computed loss can be below the one it stands for, and epsilon between them.
    epsilon *= _DOWN
    index = int(np.searchsorted(pair.losses, epsilon, side="right"))
    return (pair.p_inf + _tail_sum(pair, index, epsilon)) * _ROUND_OFF


def _atoms_epsilon(pair, delta):
    """The least epsilon >= 0; between two losses delta is linear in e^epsilon."""
    spare = delta / _ROUND_OFF - pair.p_inf
    if spare < 0.0:
        return math.inf

    def fits(index):
        return _tail_sum(pair, index + 1, float(pair.losses[index])) <= spare

    low = int(np.searchsorted(pair.losses, 0.0, side="right"))
    low += bisect_left(range(low, len(pair.losses) - 1), True, key=fits)
    if low >= len(pair.losses):
        return 0.0
    top = float(pair.losses[low])
    slope = float(pair.p[low:] @ np.exp(top - pair.losses[low:]))
    room = (spare - _tail_sum(pair, low + 1, top)) / slope if slope > 0.0 else 0.0
    return max(0.0, top * _UP + math.log1p(-room) * _DOWN) if room < 1.0 else 0.0
