"""Sampling: what an event costs that runs on a random part of the records.

Sampling at rate q turns a curve delta(e) into q delta(e') at e = ln(1 + q (exp(e') - 1)) (Balle,
Barthe and Gaboardi 2018), with equality for the pairs used here. One release needs no grid then,
and delta may be arbitrarily small.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import ndtr

from skdp.accounting import _divergences as div
from skdp.accounting import _events as ev
from skdp.accounting._gaussian import delta_of_mu
from skdp.accounting._laws import (
    ROUND_OFF,
    EventPrivacy,
    claimed,
    event_privacy,
    general_group_renyi,
    group_event,
    privacy_of,
    scaled,
    up_to,
)
from skdp.accounting._mixtures import gaussian_renyi, has_mixture, mixtures
from skdp.accounting._pairs import LossPair
from skdp.utils._rounding import DOWN, UP, sum_up

_MAX_NODES = 200_000
_GL_NODES, _GL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def inner_event(event, relation):
    """The event inside a sampling event, its sensitivity that of the sample's change."""
    inner = ev.merged(event.event)
    if relation == "replace_one":
        return scaled(inner, 2)
    if isinstance(event, ev.PoissonSampled):
        return inner
    # Where the null record would be is another one: that changes two records, and two guarantees
    # add up; two answers of randomized response are as far apart as they can be.
    moved = (
        n * (p if isinstance(p, ev.RandomizedResponse) else group_event(p, 2))
        for p, n in ev.leaves(inner).items()
    )
    return ev.merged(ev.Composed(tuple(moved)))


def whole_sample(event, relation):
    """A sampling event of rate 1 as the event that it holds; others unchanged."""
    whole = ev.is_sampled(event) and event.sampling_rate == 1.0
    return inner_event(event, relation) if whole else event


def amplified(epsilon, rate):
    """ln(1 + rate (e^epsilon - 1)), relatively accurate, also for the negative and for arrays."""
    near = np.minimum(epsilon, 700.0)
    with np.errstate(over="ignore", divide="ignore"):
        moved = rate * np.expm1(near)
        whole = (1.0 - rate) + rate * np.exp(near)
        far = np.log(rate + (1.0 - rate) * np.exp(-np.maximum(epsilon, 0.0))) + epsilon
        result = np.where(moved > -0.5, np.log1p(moved), np.log(whole))
    return np.where(epsilon > 700.0, far, result)


def sampled_gaussian_renyi(sigma, rate, kind):
    """r(order) of the sampled Gaussian by Gauss-Legendre panels; exact but for round-off.

    "poisson": E_{N(0)}[R^order], R = 1 - q + q e^((2x-1)/(2 sigma^2)), which is the larger
    direction (Mironov, Talwar and Zhang 2019). "replaced": the pair with shifts 1 and -1.
    "without": the pair of Zhu, Dong and Wang (2022), the part below loss 0 mirrored.
    """
    width = 2.0 * min(sigma, sigma * sigma)
    start = 0.5 if kind == "without" else -10.0 * sigma

    def log_ratio(x):
        return np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2)

    @cache
    def arrays(panels):
        left = start + width * np.arange(panels)[:, None]
        x = (left + 0.5 * width * (1.0 + _GL_NODES)).ravel()
        weights = np.tile(0.5 * width * _GL_WEIGHTS, panels)
        density = np.log(weights) - 0.5 * (x / sigma) ** 2
        density -= math.log(sigma * math.sqrt(2.0 * math.pi))
        return log_ratio(x), density, log_ratio(-x) if kind == "replaced" else x

    scale = 0.5 * sigma if kind == "replaced" else sigma

    def curve(order):
        plain = order * 0.5 / scale**2
        # "replaced": with q near 1 and x far out, R(x)^a R(-x)^(1-a) has its mode at 2a - 1.
        mode = 2.0 * order if kind == "replaced" else order
        panels = math.ceil((mode + 10.0 * sigma - start) / width) + 1
        if 16 * panels > _MAX_NODES:
            return plain
        # Sizes are powers of two, so that most orders find what another one made.
        made = arrays(1 << (panels - 1).bit_length())
        ratio, density, mirror = (values[: 16 * panels] for values in made)
        exponent = density + order * ratio
        if kind == "replaced":
            exponent = exponent + (1.0 - order) * mirror
        peak = float(exponent.max())
        if peak > 20.0 or kind == "replaced":
            total = float(np.exp(exponent - peak).sum())
            # Losses at or below 0 add at most 1, and the mirrored part at most 1.
            rest = 2.0 * math.exp(-peak) if kind == "without" else 0.0
            log_moment = peak + math.log(total + rest)
        elif kind == "poisson":
            base = np.exp(density)
            gain = np.exp(exponent) - base * (1.0 + order * np.expm1(np.minimum(ratio, 700.0)))
            log_moment = math.log1p(max(0.0, float(gain[np.isfinite(gain)].sum())))
        else:
            both = np.exp(exponent) + np.exp(density + (1.0 - order) * ratio)
            zero = (1.0 - rate) * (1.0 - 2.0 * float(ndtr(-0.5 / sigma)))
            log_moment = math.log(float(both.sum()) + zero)
        return min(plain, (max(0.0, log_moment) * div.UP + 1e-15) / (order - 1.0))

    return curve


def _mixed(pair: LossPair, rate: float) -> LossPair:
    """((1 - rate) Q + rate P, Q): a record in the Poisson sample against none."""

    def inverse(loss):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0))
            far = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 1.0)))
        return np.where(loss > 30.0, far, near)

    def mixed(p, q):
        return (1.0 - rate) * q + rate * p

    def tails(loss):
        p_cdf, p_sf, q_cdf, q_sf = pair.tails(inverse(loss))
        return mixed(p_cdf, q_cdf), mixed(p_sf, q_sf), q_cdf, q_sf

    low, high = amplified(np.array([pair.low, pair.high]), rate).tolist()
    losses = amplified(pair.losses, rate)
    p = mixed(pair.p, pair.q)
    q = pair.q
    if pair.q_inf > 0.0:
        losses = np.append(math.log1p(-rate), losses)
        p = np.append((1.0 - rate) * pair.q_inf, p)
        q = np.append(pair.q_inf, q)
    return LossPair(pair.tails and tails, low, high, losses, p, q, rate * pair.p_inf)


def _replace_curve(pair: LossPair, rate: float) -> LossPair:
    """Sampling under replace-one: the curve of Zhu, Dong and Wang (2022).

    delta of the mixture against Q for losses above 0 and, mirrored, below; the mass that is
    left has loss 0. `pair` dominates every two of: one record's value in the sample, another
    value, none.
    """
    mix = _mixed(pair, rate)

    def tails(loss):
        _, p_sf, _, q_sf = mix.tails(np.abs(loss))
        above = loss >= 0.0
        return (
            np.where(above, whole - p_sf, q_sf),
            np.where(above, p_sf, whole - q_sf),
            np.where(above, whole - q_sf, p_sf),
            np.where(above, q_sf, whole - p_sf),
        )

    left_p = mix.p_inf
    left_q = 0.0
    if mix.tails is not None:
        _, p_sf, _, q_sf = mix.tails(np.zeros(1))
        whole = float(p_sf[0] + q_sf[0])
        left_p = left_p + float(p_sf[0])
        left_q = left_q + float(q_sf[0])
    keep = mix.losses > 0.0
    losses = mix.losses[keep]
    p = mix.p[keep]
    q = mix.q[keep]
    zero = max(0.0, 1.0 - left_p - left_q - float(p.sum()) - float(q.sum()))
    losses = np.concatenate((-losses[::-1], [0.0], losses))
    p, q = np.concatenate((q[::-1], [zero], p)), np.concatenate((p[::-1], [zero], q))
    return LossPair(mix.tails and tails, -mix.high, mix.high, losses, p, q, mix.p_inf, mix.p_inf)


def replaced_gaussian_position(sigma: float, rate: float, loss: np.ndarray) -> np.ndarray:
    """Where (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1) has a loss, in units of sigma.

    With t = x / sigma^2: t = L/2 + asinh(r sinh(L/2)), r = (1-q) / (q e^(-1/(2 sigma^2))).
    """
    log_ratio = math.log1p(-rate) - math.log(rate) + 0.5 / sigma**2
    half = 0.5 * np.abs(loss)
    with np.errstate(divide="ignore", over="ignore"):
        log_sinh = half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0) + log_ratio
        bend = np.arcsinh(np.exp(np.minimum(log_sinh, 300.0)))
    bend = np.where(log_sinh > 300.0, log_sinh + math.log(2.0), bend)
    return np.sign(loss) * (half + bend) * sigma


def _poisson_gaussian_replaced(sigma: float, rate: float) -> LossPair:
    """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1)."""

    def tails(loss):
        z = replaced_gaussian_position(sigma, rate, loss)
        one = 1.0 / sigma
        low = ndtr(z)
        up = ndtr(-z)
        parts = (low, z - one), (up, one - z), (low, z + one), (up, -z - one)
        return [(1.0 - rate) * out + rate * ndtr(moved) for out, moved in parts]

    return LossPair(tails, -math.inf, math.inf)


def _replaced_gaussian_delta(sigma, rate, epsilon):
    """delta of (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1), without cancellation.

    At the point t sigma^2 whose loss is epsilon, (1-q)(e^epsilon - 1) equals
    q (e^(t - c) - e^(epsilon - t - c)), c = 1 / (2 sigma^2). Put into the hockey-stick divergence
    this leaves a sum of two positive terms, each the curve G of a Gaussian release:
    q (G(t - c) + e^(epsilon - t - c) G(t + c)).
    """
    mu = 1.0 / sigma
    half = 0.5 / sigma / sigma
    t = float(replaced_gaussian_position(sigma, rate, np.array([epsilon]))[0]) / sigma
    if not epsilon - t - half <= 600.0:  # The second factor may have underflowed.
        return math.inf
    second = math.exp(epsilon - t - half) * delta_of_mu(mu, t + half)
    # The position of a loss is inexact too, and a tail tells it where delta is tiny.
    return rate * (delta_of_mu(mu, t - half) + second) * (1.0 + 1e-11)


@event_privacy.register
def _sampled(e: ev.PoissonSampled | ev.SampledWithoutReplacement, relation):
    rate = e.sampling_rate
    inside = inner_event(e, relation)
    inner = privacy_of(inside, relation)
    if rate == 0.0:
        return claimed(0.0)
    if rate == 1.0:
        return replace(inner, grouped=lambda k: None)
    is_poisson = isinstance(e, ev.PoissonSampled)
    is_replaced = is_poisson and relation == "replace_one"
    # ln(1 + q (e^epsilon - 1)) (Balle, Barthe and Gaboardi 2018); for additive noise under Poisson
    # sampling and replace-one, the ratio of the two mixtures bounded term by term.
    epsilon = amplified(inner.epsilon, rate)
    if is_replaced and all(isinstance(part, ev.ADDITIVE) for part in ev.leaves(inside)):
        one = privacy_of(ev.merged(e.event), relation).epsilon
        epsilon = min(epsilon, amplified(one, rate) - amplified(-one, rate))
    epsilon = math.nextafter(epsilon * UP, math.inf) if epsilon > 0.0 else 0.0
    delta = sum_up([(rate, inner.delta)])
    is_gaussian = isinstance(inside, ev.Gaussian)
    record = ev.merged(e.event)
    one_record = replace(e, event=record) if is_poisson else e
    # One replaced record is a group of one; Gaussian noise has closed forms of its own below.
    is_mixture = is_replaced and isinstance(record, ev.Laplace) and has_mixture(one_record, 1)

    def grouped(k):
        is_known = is_poisson and has_mixture(one_record, k)
        return ev.SampledGroup(one_record, k) if is_known else None

    # Over the contribution of one record, of which a replacement moves two.
    record_sigma = 2.0 * inside.noise_multiplier if is_gaussian else math.nan

    def pairs():
        if is_replaced and is_gaussian:
            return (_poisson_gaussian_replaced(record_sigma, rate),)
        if is_mixture:
            return tuple(each.pair() for each in mixtures(one_record, 1, relation))
        (pair,) = inner.pairs()
        if is_replaced or not is_poisson:
            return (_replace_curve(pair, rate),)
        mix = _mixed(pair, rate)
        return mix, mix.reversed()

    def renyi():
        whole = inner.renyi()
        if is_gaussian and is_replaced:
            return sampled_gaussian_renyi(record_sigma, rate, "replaced")
        if is_gaussian:
            kind = "poisson" if is_poisson else "without"
            return sampled_gaussian_renyi(inside.noise_multiplier, rate, kind)
        if isinstance(inside, ev.DiscreteGaussian):
            ratio = inside.sensitivity / inside.sigma
            if inside.sigma >= 1e4 or ratio >= 25.0:
                return whole
            near = div.pair_renyi(pairs(), whole)
            return lambda order: (near if order * ratio < 25.0 else whole)(order)
        if epsilon == math.inf:
            raise ValueError(f"no Renyi bound is known for a sampled {type(inside).__name__}")
        return div.pair_renyi(pairs(), claimed(epsilon).renyi())

    def curve():
        whole = inner.curve()
        if is_mixture:
            return up_to(epsilon, mixtures(one_record, 1, relation)[0].delta)

        def sampled(at):
            if at > 30.0:
                before = at - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-at))
            else:
                before = math.log1p(math.expm1(at) / rate)
            bound = rate * whole(before * DOWN) * ROUND_OFF
            if is_replaced and is_gaussian:
                bound = min(bound, _replaced_gaussian_delta(record_sigma, rate, at))
            return bound

        closed = up_to(math.inf, sampled)
        if epsilon == math.inf:
            return closed
        amplified_to = claimed(epsilon, delta).curve()
        return lambda at: min(closed(at), amplified_to(at))

    if delta > 0.0:
        # (epsilon, delta)-DP is amplified to (epsilon', q delta)-DP.
        known = claimed(epsilon, delta)
    else:
        # Sampling does not fit zCDP: what it costs without, or what epsilon does.
        known = EventPrivacy(
            epsilon=epsilon, rho=min(inner.rho, div.pure_rho(epsilon)), renyi=renyi
        )
    return replace(known, grouped=grouped, pairs=inner.pairs and pairs, curve=curve)


@event_privacy.register
def _sampled_group(e: ev.SampledGroup, relation):
    group = mixtures(e.event, e.size, relation)
    one = privacy_of(e.event, relation)
    epsilon = sum_up([(e.size, one.epsilon)])

    def pairs():
        return tuple(each.pair() for each in group)

    def general(order):
        # Mironov (2017), proposition 2, which needs no mixture.
        return general_group_renyi(one.divergence, order, e.size)

    def renyi():
        if epsilon < math.inf:
            whole = claimed(epsilon).renyi()
            return div.pair_renyi(pairs(), lambda order: min(whole(order), general(order)))
        shift = (2 if relation == "replace_one" else 1) * e.size
        slope = 0.5 * (shift / group[0].noise.sigma) ** 2 * UP
        return gaussian_renyi(group, lambda order: min(slope * order, general(order)))

    def curve():
        return up_to(epsilon, lambda at: max(each.delta(at) for each in group))

    return EventPrivacy(
        epsilon=epsilon,
        # k^2 times the rho of one record holds for a group (Bun and Steinke 2016).
        rho=min(e.size**2 * one.rho * UP, div.pure_rho(epsilon)),
        pairs=pairs,
        renyi=renyi,
        curve=curve,
    )
