"""The privacy curve of one release, in closed form.

Sampling at rate q turns a curve delta(e) into q delta(e') at e = ln(1 + q (exp(e') - 1)) (Balle,
Barthe and Gaboardi 2018), with equality for the pairs used here: nothing is composed, so that no
grid is needed, and delta may be arbitrarily small.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from skdp.accounting import _conversions, _gaussian, _leaf
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


def is_exact(parts, relation):
    """Whether the least curve is known in closed form: of Gaussians, or of one event alone."""
    one = sum(parts.values()) == 1 and not isinstance(next(iter(parts)), ev.RandomStopping)
    return ev.gaussian_mu(parts) is not None or (one and has_loss_distribution(parts, relation))


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
    if not (_leaf.is_sampled(part) or _has_loss_distribution(part, relation)):
        rho, rho_delta = _leaf.leaf_zcdp(part, relation)
        return _conversions.zcdp_to_epsilon(rho, delta, rho_delta)
    curve, low = closed_curve(part, relation), 0.0
    high = min(pure, getattr(part, "epsilon", 1.0))
    if curve(math.inf) > delta:
        return math.inf
    while curve(high) > delta:
        low, high = high, min(pure, 2.0 * high)
    return min(pure, _gaussian.least_epsilon(curve, delta, high, low))


def _is_discrete(part, relation):
    discrete = isinstance(part, (ev.DiscreteLaplace, ev.DiscreteGaussian))
    return discrete and _has_loss_distribution(part, relation)


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
    if not epsilon - t - half <= 600.0:  # The second factor may have underflowed.
        return math.inf
    second = math.exp(epsilon - t - half) * _gaussian.delta_of_mu(mu, t + half)
    # The position of a loss is inexact too, and a tail tells it where delta is tiny.
    return rate * (_gaussian.delta_of_mu(mu, t - half) + second) * (1.0 + 1e-11)


def closed_curve(part, relation):
    """Least delta of one uncomposed event by epsilon, exact if its loss distribution is known."""
    if isinstance(part, ev.Gaussian):
        return partial(_gaussian.delta_of_mu, 1.0 / part.noise_multiplier)
    pure = _leaf.pure_epsilon(part, relation)
    curve = _unrounded_curve(part, pure, relation)

    def rounded(epsilon):
        if isinstance(part, ev.ApproximateDP) and epsilon >= part.epsilon:
            return part.delta
        return min(1.0, curve(epsilon) * _UP) if epsilon < pure or pure == math.inf else 0.0

    return rounded


def _unrounded_curve(part, pure, relation):
    if isinstance(part, ev.Laplace):
        return lambda epsilon: -math.expm1(0.5 * (epsilon - pure))
    if isinstance(part, ev.ExponentialMechanism):
        return partial(_bounded_range_delta, pure)
    if isinstance(part, ev.ApproximateDP):
        other = 1.0 - part.delta
        return lambda epsilon: part.delta + other * _response_delta(part.epsilon, 1.0, epsilon)
    if isinstance(part, ev.RandomizedResponse):
        return partial(_response_delta, pure, part.num_categories - 1.0)
    if _is_discrete(part, relation):
        return partial(_atoms_delta, base_pair(part, relation))
    if _leaf.is_sampled(part):
        curve = _sampled_curve(part, relation)
        if pure == math.inf:
            return curve
        return lambda epsilon: min(curve(epsilon), _response_delta(pure, 1.0, epsilon))
    if pure < math.inf:
        return partial(_response_delta, pure, 1.0)
    rho, rho_delta = _leaf.leaf_zcdp(part, relation)
    return lambda epsilon: _conversions.zcdp_to_delta(rho, epsilon, rho_delta)


def _bounded_range_delta(pure, epsilon):
    """The largest of the two-point curves of Dong, Durfee and Rogers (2020)."""
    gap = math.expm1(0.5 * (epsilon - pure))
    return gap * (gap / -math.expm1(-pure))


def _response_delta(pure, others, epsilon):
    return -math.expm1(epsilon - pure) / (1.0 + others * math.exp(-pure))


def _sampled_curve(part, relation):
    rate, inner = _leaf.sampling_rate(part), _leaf.inner_event(part, relation)
    if rate == 0.0:
        return lambda epsilon: 0.0
    curve = closed_curve(inner, relation)

    def sampled(epsilon):
        if epsilon > 30.0:
            before = epsilon - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-epsilon))
        else:
            before = math.log1p(math.expm1(epsilon) / rate)
        bound = rate * curve(before * _DOWN) * _ROUND_OFF
        if not _is_replaced_gaussian(part, inner, relation):
            return bound
        return min(bound, _replaced_gaussian_delta(part, epsilon))

    return sampled


def _tail_sum(pair, index, epsilon):
    return float(pair.p[index:] @ -np.expm1(epsilon - pair.losses[index:]))


def _atoms_delta(pair, epsilon):
    # A computed loss can be below the one it stands for, and epsilon between them.
    epsilon *= _DOWN
    index = int(np.searchsorted(pair.losses, epsilon, side="right"))
    return (pair.p_inf + _tail_sum(pair, index, epsilon)) * _ROUND_OFF
