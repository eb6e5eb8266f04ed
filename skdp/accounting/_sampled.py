"""The privacy of sampled events: amplification by sampling.

Sampling at rate q turns a privacy profile delta(e) into q delta(e') at e = ln(1 + q (exp(e') - 1))
(Balle, Barthe and Gaboardi 2018), with equality for the pairs used here. So a single release needs
no grid, and delta may be arbitrarily small.
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
    no_event,
    privacy_of,
    scaled,
    up_to,
)
from skdp.accounting._mixtures import has_mixture, mixtures, mixtures_renyi
from skdp.accounting._pairs import LossPair
from skdp.utils._rounding import DOWN, UP, sum_up

# Quadratures with more nodes are replaced by the divergence without sampling.
_MAX_NODES = 200_000
_GL_NODES, _GL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def inner_event(event, relation):
    """Return the event inside a sampling event, for the change of the sample that can happen."""
    inner = ev.merged(event.event)
    if relation == "replace_one":
        return scaled(inner, 2)
    if isinstance(event, ev.PoissonSampled):
        return inner
    # Without replacement, another record takes the place of the null record. Two records change,
    # so two guarantees add up. Randomized response needs no second one, because the pair of two
    # different categories is already the worst case.
    events = []
    for leaf, count in ev.leaves(inner).items():
        if not isinstance(leaf, ev.RandomizedResponse):
            leaf = group_event(leaf, 2)
        events.append(count * leaf)
    return ev.merged(ev.Composed(tuple(events)))


def whole_sample(event, relation):
    """Return the inner event of a sampling event of rate 1; other events unchanged."""
    if ev.is_sampled(event) and event.sampling_rate == 1.0:
        return inner_event(event, relation)
    return event


def amplified(epsilon, rate):
    """Return ln(1 + rate (e^epsilon - 1)) with a small relative error, also for arrays.

    Negative epsilons are allowed.
    """
    near = np.minimum(epsilon, 700.0)
    with np.errstate(over="ignore", divide="ignore"):
        increase = rate * np.expm1(near)
        mixture = (1.0 - rate) + rate * np.exp(near)
        far = np.log(rate + (1.0 - rate) * np.exp(-np.maximum(epsilon, 0.0))) + epsilon
        result = np.where(increase > -0.5, np.log1p(increase), np.log(mixture))
    return np.where(epsilon > 700.0, far, result)


def sampled_gaussian_renyi(sigma, rate, kind):
    """Return the function of orders to Renyi divergences of the sampled Gaussian.

    It uses Gauss-Legendre quadrature and is exact up to round-off.

    Parameters
    ----------
    sigma : float
        The noise multiplier.
    rate : float
        The sampling rate q.
    kind : {"poisson", "replaced", "without"}
        "poisson" is E_{N(0)}[R^order] with R = 1 - q + q e^((2x-1)/(2 sigma^2)), which is the
        larger one of the two orders of the tables (Mironov, Talwar and Zhang 2019). "replaced" is
        the pair with shifts 1 and -1. "without" is the pair of Zhu, Dong and Wang (2022), whose
        part below loss 0 is mirrored.
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
        unsampled = order * 0.5 / scale**2
        # For "replaced", q near 1 and a large x, R(x)^a R(-x)^(1-a) has its mode at 2a - 1.
        mode = 2.0 * order if kind == "replaced" else order
        panels = math.ceil((mode + 10.0 * sigma - start) / width) + 1
        if 16 * panels > _MAX_NODES:
            return unsampled
        # The sizes of cached arrays are powers of two, so that most orders share them.
        cached = arrays(1 << (panels - 1).bit_length())
        ratio, density, mirror = (values[: 16 * panels] for values in cached)
        exponent = density + order * ratio
        if kind == "replaced":
            exponent = exponent + (1.0 - order) * mirror
        peak = float(exponent.max())
        if peak > 20.0 or kind == "replaced":
            total = float(np.exp(exponent - peak).sum())
            # Losses up to 0 add at most 1, and the mirrored part adds at most 1.
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
        return min(unsampled, (max(0.0, log_moment) * div.UP + 1e-15) / (order - 1.0))

    return curve


def _mixed(pair: LossPair, rate: float) -> LossPair:
    """Return the pair ((1 - rate) Q + rate P, Q) of a Poisson sample with and without a record."""

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
    """Return the pair of sampling under replace-one (Zhu, Dong and Wang 2022).

    Its distribution is that of the mixture and Q for losses above 0 and, mirrored, below 0. The
    remaining mass has loss 0. `pair` must dominate every two of: a sample with a value of the
    record, with another value, and without it.
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
    """Return the position x / sigma of a loss of the pair of a replaced record.

    The pair is (1-q) N(0) + q N(1) and (1-q) N(0) + q N(-1). With t = x / sigma^2,
    t = L/2 + asinh(r sinh(L/2)), where r = (1-q) / (q e^(-1/(2 sigma^2))).
    """
    log_ratio = math.log1p(-rate) - math.log(rate) + 0.5 / sigma**2
    half = 0.5 * np.abs(loss)
    with np.errstate(divide="ignore", over="ignore"):
        log_sinh = half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0) + log_ratio
        arcsinh = np.arcsinh(np.exp(np.minimum(log_sinh, 300.0)))
    # arcsinh(y) is ln(2 y) for a large y, whose exponential would overflow.
    arcsinh = np.where(log_sinh > 300.0, log_sinh + math.log(2.0), arcsinh)
    return np.sign(loss) * (half + arcsinh) * sigma


def _poisson_gaussian_replaced(sigma: float, rate: float) -> LossPair:
    """Return the pair (1-q) N(0) + q N(1) and (1-q) N(0) + q N(-1)."""

    def tails(loss):
        z = replaced_gaussian_position(sigma, rate, loss)
        shift = 1.0 / sigma
        below = ndtr(z)
        above = ndtr(-z)

        def mix(unshifted, position):
            return (1.0 - rate) * unshifted + rate * ndtr(position)

        p_cdf = mix(below, z - shift)
        p_sf = mix(above, shift - z)
        q_cdf = mix(below, z + shift)
        q_sf = mix(above, -z - shift)
        return [p_cdf, p_sf, q_cdf, q_sf]

    return LossPair(tails, -math.inf, math.inf)


def _replaced_gaussian_delta(sigma, rate, epsilon):
    """Return delta of (1-q) N(0) + q N(1) and (1-q) N(0) + q N(-1), without cancellation.

    At the point t sigma^2 whose loss is epsilon, (1-q)(e^epsilon - 1) equals
    q (e^(t - c) - e^(epsilon - t - c)) with c = 1 / (2 sigma^2). Inserted into the hockey-stick
    divergence, this gives a sum of two positive terms, each with the privacy profile G of a
    Gaussian release: q (G(t - c) + e^(epsilon - t - c) G(t + c)).
    """
    mu = 1.0 / sigma
    half = 0.5 / sigma / sigma
    t = float(replaced_gaussian_position(sigma, rate, np.array([epsilon]))[0]) / sigma
    if not epsilon - t - half <= 600.0:
        # The second factor may have underflowed, so that the product would be too small.
        return math.inf
    second = math.exp(epsilon - t - half) * delta_of_mu(mu, t + half)
    # The factor covers the error of the position, which matters in the tail of a tiny delta.
    return rate * (delta_of_mu(mu, t - half) + second) * (1.0 + 1e-11)


@event_privacy.register
def _sampled(e: ev.PoissonSampled | ev.SampledWithoutReplacement, relation):
    rate = e.sampling_rate
    inside = inner_event(e, relation)
    inner = privacy_of(inside, relation)
    if rate == 0.0:
        return claimed(0.0)
    if rate == 1.0:
        return replace(inner, grouped=no_event)
    is_poisson = isinstance(e, ev.PoissonSampled)
    is_replaced = is_poisson and relation == "replace_one"
    # ln(1 + q (e^epsilon - 1)) (Balle, Barthe and Gaboardi 2018). For additive noise under Poisson
    # sampling and replace-one, the ratio of the two mixtures is also bounded term by term.
    epsilon = amplified(inner.epsilon, rate)
    if is_replaced and all(isinstance(part, ev.ADDITIVE) for part in ev.leaves(inside)):
        one = privacy_of(ev.merged(e.event), relation).epsilon
        epsilon = min(epsilon, amplified(one, rate) - amplified(-one, rate))
    epsilon = math.nextafter(epsilon * UP, math.inf) if epsilon > 0.0 else 0.0
    delta = sum_up([(rate, inner.delta)])
    is_gaussian = isinstance(inside, ev.Gaussian)
    record = ev.merged(e.event)
    one_record = replace(e, event=record) if is_poisson else e
    # A replaced record is a group of one. Gaussian noise has separate closed forms below.
    is_mixture = is_replaced and isinstance(record, ev.Laplace) and has_mixture(one_record, 1)

    def grouped(k):
        is_known = is_poisson and has_mixture(one_record, k)
        return ev.SampledGroup(one_record, k) if is_known else None

    # Noise over the contribution of one record; a replacement changes a sum by up to two.
    record_sigma = 2.0 * inside.noise_multiplier if is_gaussian else math.nan

    def pairs():
        if is_replaced and is_gaussian:
            return (_poisson_gaussian_replaced(record_sigma, rate),)
        if is_mixture:
            return tuple(mixture.pair() for mixture in mixtures(one_record, 1, relation))
        (pair,) = inner.pairs()
        if is_replaced or not is_poisson:
            return (_replace_curve(pair, rate),)
        mix = _mixed(pair, rate)
        return mix, mix.reversed()

    def renyi():
        unsampled = inner.renyi()
        if is_gaussian and is_replaced:
            return sampled_gaussian_renyi(record_sigma, rate, "replaced")
        if is_gaussian:
            kind = "poisson" if is_poisson else "without"
            return sampled_gaussian_renyi(inside.noise_multiplier, rate, kind)
        if isinstance(inside, ev.DiscreteGaussian):
            ratio = inside.sensitivity / inside.sigma
            if inside.sigma >= 1e4 or ratio >= 25.0:
                return unsampled
            on_grid = div.pair_renyi(pairs(), unsampled)

            def discrete_gaussian(order):
                # The moment's mode is at order * ratio standard deviations, where atoms must not
                # be cut off.
                return on_grid(order) if order * ratio < 25.0 else unsampled(order)

            return discrete_gaussian
        if epsilon == math.inf:
            raise ValueError(f"no Renyi bound is known for a sampled {type(inside).__name__}")
        return div.pair_renyi(pairs(), claimed(epsilon).renyi())

    def privacy_profile():
        unsampled = inner.privacy_profile()
        if is_mixture:
            return up_to(epsilon, mixtures(one_record, 1, relation)[0].delta)

        def sampled(at):
            # The epsilon that sampling amplifies to `at`.
            if at > 30.0:
                inner_epsilon = at - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-at))
            else:
                inner_epsilon = math.log1p(math.expm1(at) / rate)
            bound = rate * unsampled(inner_epsilon * DOWN) * ROUND_OFF
            if is_replaced and is_gaussian:
                bound = min(bound, _replaced_gaussian_delta(record_sigma, rate, at))
            return bound

        closed_form = up_to(math.inf, sampled)
        if epsilon == math.inf:
            return closed_form
        from_claim = claimed(epsilon, delta).privacy_profile()

        def smaller(at):
            return min(closed_form(at), from_claim(at))

        return smaller

    if delta > 0.0:
        # (epsilon, delta)-DP is amplified to (epsilon', q delta)-DP.
        privacy = claimed(epsilon, delta)
    else:
        # zCDP has no amplification by sampling: rho is that without sampling, or of epsilon.
        privacy = EventPrivacy(
            epsilon=epsilon, rho=min(inner.rho, div.pure_rho(epsilon)), renyi=renyi
        )
    return replace(
        privacy,
        grouped=grouped,
        pairs=None if inner.pairs is None else pairs,
        privacy_profile=privacy_profile,
    )


@event_privacy.register
def _sampled_group(e: ev.SampledGroup, relation):
    group = mixtures(e.event, e.size, relation)
    one = privacy_of(e.event, relation)
    epsilon = sum_up([(e.size, one.epsilon)])

    def pairs():
        return tuple(mixture.pair() for mixture in group)

    def general(order):
        # Mironov (2017), proposition 2, does not use the mixtures.
        return general_group_renyi(one.divergence, order, e.size)

    def renyi():
        if epsilon < math.inf:
            pure = claimed(epsilon).renyi()

            def smaller(order):
                return min(pure(order), general(order))

            return div.pair_renyi(pairs(), smaller)
        sensitivity_factor = 2 if relation == "replace_one" else 1
        shift = sensitivity_factor * e.size
        unsampled_rho = 0.5 * (shift / group[0].noise.sigma) ** 2 * UP

        def smaller_of_gaussian(order):
            return min(unsampled_rho * order, general(order))

        return mixtures_renyi(group, smaller_of_gaussian)

    def largest_delta(at):
        return max(mixture.delta(at) for mixture in group)

    def privacy_profile():
        return up_to(epsilon, largest_delta)

    return EventPrivacy(
        epsilon=epsilon,
        # A group of k records has at most k^2 times the rho of one (Bun and Steinke 2016).
        rho=min(e.size**2 * one.rho * UP, div.pure_rho(epsilon)),
        pairs=pairs,
        renyi=renyi,
        privacy_profile=privacy_profile,
    )
