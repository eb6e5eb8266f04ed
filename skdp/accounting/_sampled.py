"""The privacy of sampled events: amplification, profiles and Renyi divergences.

Sampling at rate q changes a privacy profile delta(e) to q delta(e') at e = ln(1 + q (exp(e') - 1))
(Balle, Barthe and Gaboardi 2018), with equality for the pairs used here. A single release therefore
needs no grid, and delta may be arbitrarily small.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from scipy.special import ndtr

from skdp.accounting import _divergences as div
from skdp.accounting import _events as ev
from skdp.accounting._gaussian import delta_of_mu
from skdp.accounting._guarantee import Neighbors
from skdp.accounting._laws import (
    ROUND_OFF,
    EventPrivacy,
    claimed,
    event_privacy,
    general_group_renyi,
    group_event,
    no_event,
    privacy_of,
    safe_profile,
    scaled,
)
from skdp.accounting._mixtures import has_mixture, mixtures, mixtures_renyi
from skdp.accounting._pairs import LossPair
from skdp.utils._rounding import DOWN, UP, sum_up
from skdp.utils._types import Relation

# If a quadrature needs more nodes, the divergence without sampling is used instead.
_MAX_NODES = 200_000
_GL_NODES, _GL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def inner_event(event, relation):
    """Return the event inside a sampling event, priced for the largest change of the sample.

    Under add/remove, a Poisson sample gains or loses at most one record. Under replace-one, a
    record of the sample is replaced, which changes a sum by twice the sensitivity of one record.
    """
    inner = ev.merged(event.event)
    if relation == "replace_one":
        return scaled(inner, 2)
    if isinstance(event, ev.PoissonSampled):
        return inner
    # Without replacement, another record takes the place of the null record. Two records change, so
    # two guarantees add up. For randomized response, one is enough, because the pair of two
    # different categories is already the worst case.
    events = []
    for leaf, count in ev.leaves(inner).items():
        if not isinstance(leaf, ev.RandomizedResponse):
            leaf = group_event(leaf, 2)
        events.append(count * leaf)
    return ev.merged(ev.Composed(tuple(events)))


def whole_sample(event, relation):
    """Return the inner event of a sampling event with rate 1; return other events unchanged."""
    if ev.is_sampled(event) and event.sampling_rate == 1.0:
        return inner_event(event, relation)
    return event


def amplified(epsilon, rate):
    """Return ln(1 + rate (e^epsilon - 1)) with a small relative error, also for arrays.

    Privacy losses of pairs of distributions are amplified in the same way as epsilon, and a loss
    may be negative.
    """
    # Beyond 700, the exponential would overflow. Where the increase is below -1/2, it is so close
    # to -1 that adding 1 would cancel digits; the mixture is then a sum of positive numbers.
    near = np.minimum(epsilon, 700.0)
    with np.errstate(over="ignore", divide="ignore"):
        increase = rate * np.expm1(near)
        mixture = (1.0 - rate) + rate * np.exp(near)
        far = np.log(rate + (1.0 - rate) * np.exp(-np.maximum(epsilon, 0.0))) + epsilon
        result = np.where(increase > -0.5, np.log1p(increase), np.log(mixture))
    return np.where(epsilon > 700.0, far, result)


def _unamplified(epsilon, rate):
    """Return the epsilon whose amplification by a sampling rate is `epsilon`."""
    if epsilon > 30.0:
        return epsilon - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-epsilon))
    return math.log1p(math.expm1(epsilon) / rate)


def sampled_gaussian_renyi(sigma, rate, kind):
    """Return a function that maps orders to Renyi divergences of the sampled Gaussian.

    It uses Gauss-Legendre quadrature and is exact up to round-off.

    Parameters
    ----------
    sigma : float
        The noise multiplier.
    rate : float
        The sampling rate q.
    kind : {"poisson", "replaced", "without"}
        "poisson" is E_{N(0)}[R^order] with R = 1 - q + q e^((2x-1)/(2 sigma^2)), which is the
        larger divergence of the two orders of the tables (Mironov, Talwar and Zhang 2019).
        "replaced" is the pair with shifts 1 and -1. "without" (sampling without replacement) is the
        pair of Zhu, Dong and Wang (2022), whose part below loss 0 is mirrored.
    """
    width = 2.0 * min(sigma, sigma * sigma)
    start = -10.0 * sigma
    if kind == "without":
        # The pair's distribution below loss 0, at x = 0.5, is mirrored.
        start = 0.5
    scale = sigma
    modes_per_order = 1.0
    if kind == "replaced":
        # The shifts 1 and -1 are 2 apart. For q near 1 and a large x, R(x)^a R(-x)^(1-a) has its
        # mode at 2a - 1. The mirrored ratio R(-x) has the mode -1.
        start = -1.0 - 10.0 * sigma
        scale = 0.5 * sigma
        modes_per_order = 2.0

    def log_ratio(x):
        """Return ln R(x), the log likelihood ratio of the mixture and N(0, sigma^2)."""
        return np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2)

    @cache
    def arrays(panels):
        """Return ln R(x) and the log of N(0, sigma^2)'s density times the quadrature weights.

        The nodes x are those of `panels` panels from `start`. For "replaced", ln R(-x) is returned
        too.
        """
        left_ends = start + width * np.arange(panels)[:, None]
        x = (left_ends + 0.5 * width * (1.0 + _GL_NODES)).ravel()
        weights = np.tile(0.5 * width * _GL_WEIGHTS, panels)
        density = np.log(weights) - 0.5 * (x / sigma) ** 2
        density -= math.log(sigma * math.sqrt(2.0 * math.pi))
        if kind == "replaced":
            return log_ratio(x), density, log_ratio(-x)
        return log_ratio(x), density

    def divergence(order):
        """Return the Renyi divergence at an order: ln E[R^order] / (order - 1), rounded up.

        It is at most the divergence without sampling, which is returned if there would be too many
        nodes.
        """
        unsampled = order * 0.5 / scale**2
        panels = math.ceil((modes_per_order * order + 10.0 * sigma - start) / width) + 1
        if 16 * panels > _MAX_NODES:
            return unsampled
        # The sizes of cached arrays are powers of two, so most orders share them.
        cached = arrays(1 << (panels - 1).bit_length())
        ratio, density, *mirrored_ratio = (values[: 16 * panels] for values in cached)
        exponent = density + order * ratio
        if kind == "replaced":
            exponent = exponent + (1.0 - order) * mirrored_ratio[0]
        peak = float(exponent.max())
        if peak > 20.0:
            total = float(np.exp(exponent - peak).sum())
            if kind == "without":
                # The quadrature covers losses above 0. The mass at loss 0 contributes at most 1,
                # and so does the mirrored part, because its ratios R^(1 - order) are at most 1.
                total += 2.0 * math.exp(-peak)
            log_moment = peak + math.log(total)
        elif kind == "without":
            # The parts above loss 0 and, mirrored, below it. The rest of the mass has loss 0. It is
            # 1 minus the masses of the mixture and of N(0, sigma^2) above x = 0.5, where R = 1.
            both = np.exp(exponent) + np.exp(density + (1.0 - order) * ratio)
            zero = (1.0 - rate) * (1.0 - 2.0 * float(ndtr(-0.5 / sigma)))
            log_moment = math.log(float(both.sum()) + zero)
        else:
            # E[1] = E[R(x)] = E[R(-x)] = 1, so the moment of R = R(x) is
            # 1 + E[R^order - 1 - order (R - 1)]. That of the ratio of R and S = R(-x) is
            # 1 + E[S^(1 - order) R^order - S - order (R - S)]. Both expectations are of nonnegative
            # functions (Bernoulli's inequality), so they are accurate even if the moment is close
            # to 1. Ratios are bounded to keep their exponentials finite.
            first = np.expm1(np.minimum(ratio, 700.0))
            second = 0.0
            if kind == "replaced":
                second = np.expm1(np.minimum(mirrored_ratio[0], 700.0))
            tangent = 1.0 + second + order * (first - second)
            gain = np.exp(exponent) - np.exp(density) * tangent
            log_moment = math.log1p(max(0.0, float(gain[np.isfinite(gain)].sum())))
        # UP covers relative errors, and 1e-15 the rounding errors of a moment near 1.
        return min(unsampled, (max(0.0, log_moment) * div.UP + 1e-15) / (order - 1.0))

    return divergence


def _mixed(pair: LossPair, rate: float) -> LossPair:
    """Return the pair ((1 - rate) Q + rate P, Q) of a Poisson sample with and without a record."""

    def inverse(loss):
        """Return the pair's losses whose mixture has these losses."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0))
            far = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 1.0)))
        return np.where(loss > 30.0, far, near)

    def mixed(p, q):
        return (1.0 - rate) * q + rate * p

    def tails(loss):
        """Return the four tails of the mixture's loss, which grows with that of the pair."""
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

    Its distribution is the one for the mixture and Q for losses above 0 and, mirrored, below 0. The
    remaining mass has loss 0. `pair` must dominate any two of these three samples: with one value
    of the record, with another value, and without the record.
    """
    mix = _mixed(pair, rate)

    def tails(loss):
        """Return the four tails of the continuous part, of mass `whole` under either distribution.

        Below 0, they are the tails at the mirrored loss with P and Q exchanged.
        """
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
        """Return the four tails of the loss, from the mixtures' tails at its position."""
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
    """Return delta for (1-q) N(0) + q N(1) and (1-q) N(0) + q N(-1), without cancellation.

    At the point t sigma^2 whose loss is epsilon, (1-q)(e^epsilon - 1) equals
    q (e^(t - c) - e^(epsilon - t - c)) with c = 1 / (2 sigma^2). Inserted into the hockey-stick
    divergence, this gives a sum of two positive terms, each with the privacy profile G of a
    Gaussian release: q (G(t - c) + e^(epsilon - t - c) G(t + c)).
    """
    mu = 1.0 / sigma
    half = 0.5 / sigma / sigma
    t = float(replaced_gaussian_position(sigma, rate, np.array([epsilon]))[0]) / sigma
    if not epsilon - t - half <= 600.0:
        # The second factor may have underflowed, so the product would be too small.
        return math.inf
    second = math.exp(epsilon - t - half) * delta_of_mu(mu, t + half)
    # The factor covers the error of the position, which matters in the tail of a tiny delta.
    return rate * (delta_of_mu(mu, t - half) + second) * (1.0 + 1e-11)


@dataclass(frozen=True)
class _SampledRelease:
    """The privacy of one release on a sample whose rate lies between 0 and 1.

    Attributes
    ----------
    event : PoissonSampled or SampledWithoutReplacement
        The sampling event.
    relation : {"add_remove", "replace_one"}
        The relation between neighboring tables.
    rate : float
        The sampling rate q.
    inner : Event
        The event on the sample, for the largest change of the sample (`inner_event`).
    unsampled : EventPrivacy
        The privacy of `inner`.
    """

    event: ev.PoissonSampled | ev.SampledWithoutReplacement
    relation: Relation
    rate: float
    inner: ev.Event
    unsampled: EventPrivacy

    @property
    def is_poisson(self):
        """True if each record enters the sample independently of the others."""
        return isinstance(self.event, ev.PoissonSampled)

    @property
    def is_replaced(self):
        """True if a record in a Poisson sample can be replaced by another one."""
        return self.is_poisson and self.relation == "replace_one"

    @property
    def is_gaussian(self):
        """True if the noise is Gaussian, which has separate closed forms."""
        return isinstance(self.inner, ev.Gaussian)

    @property
    def record_sigma(self):
        """Gaussian noise divided by one contribution; a replacement changes two of them."""
        return 2.0 * self.inner.noise_multiplier

    @cached_property
    def merged_event(self):
        """The sampling event; a composition inside a Poisson sample is merged into one event."""
        if not self.is_poisson:
            return self.event
        return replace(self.event, event=ev.merged(self.event.event))

    @cached_property
    def is_laplace_mixture(self):
        """True for a replaced record under Laplace noise, whose pair consists of two mixtures."""
        return (
            self.is_replaced
            and isinstance(self.merged_event.event, ev.Laplace)
            and has_mixture(self.merged_event, 1)
        )

    @cached_property
    def epsilon(self):
        """The amplified epsilon ln(1 + q (e^epsilon - 1)), rounded up.

        See Balle, Barthe and Gaboardi 2018. For additive noise under Poisson sampling and
        replace-one, the ratio of the two mixtures is also bounded term by term.
        """
        epsilon = amplified(self.unsampled.epsilon, self.rate)
        if self.is_replaced and all(
            isinstance(leaf, ev.ADDITIVE) for leaf in ev.leaves(self.inner)
        ):
            one = privacy_of(self.merged_event.event, self.relation).epsilon
            epsilon = min(epsilon, amplified(one, self.rate) - amplified(-one, self.rate))
        if epsilon > 0.0:
            return math.nextafter(epsilon * UP, math.inf)
        return 0.0

    @cached_property
    def delta(self):
        """The amplified delta, q times that of the release on the sample."""
        return sum_up([(self.rate, self.unsampled.delta)])

    def grouped(self, k):
        """Return the event for k records, or None if only the general bound is known."""
        if self.is_poisson and has_mixture(self.merged_event, k):
            return ev.SampledGroup(self.merged_event, k)
        return None

    def pairs(self):
        """Return the dominating pairs, one for each order of the tables or a symmetric one."""
        if self.is_replaced and self.is_gaussian:
            return (_poisson_gaussian_replaced(self.record_sigma, self.rate),)
        if self.is_laplace_mixture:
            return tuple(mix.pair() for mix in mixtures(self.merged_event, 1, self.relation))
        (pair,) = self.unsampled.pairs()
        if self.is_replaced or not self.is_poisson:
            return (_replace_curve(pair, self.rate),)
        mix = _mixed(pair, self.rate)
        return mix, mix.reversed()

    def renyi(self):
        """Return a function that maps orders to Renyi divergences, by quadrature or from pairs."""
        unsampled = self.unsampled.renyi()
        if self.is_gaussian and self.is_replaced:
            return sampled_gaussian_renyi(self.record_sigma, self.rate, "replaced")
        if self.is_gaussian:
            kind = "without"
            if self.is_poisson:
                kind = "poisson"
            return sampled_gaussian_renyi(self.inner.noise_multiplier, self.rate, kind)
        if isinstance(self.inner, ev.DiscreteGaussian):
            return self._discrete_gaussian_renyi(unsampled)
        if self.epsilon == math.inf:
            name = type(self.inner).__name__
            raise ValueError(f"no Renyi bound is known for a sampled {name}")
        return div.pair_renyi(self.pairs(), claimed(self.epsilon).renyi())

    def _discrete_gaussian_renyi(self, unsampled):
        """Return the Renyi divergences from the atoms; beyond the atoms, those without sampling."""
        ratio = self.inner.sensitivity / self.inner.sigma
        if self.inner.sigma >= 1e4 or ratio >= 25.0:
            return unsampled
        on_grid = div.pair_renyi(self.pairs(), unsampled)

        def divergence(order):
            """Return the divergence of an order; for large orders, that without sampling."""
            # The moment's mode is at order * ratio standard deviations, where atoms must not be
            # cut off.
            if order * ratio < 25.0:
                return on_grid(order)
            return unsampled(order)

        return divergence

    def privacy_profile(self):
        """Return a function that maps epsilons to the smallest known delta."""
        epsilon = self.epsilon
        if self.is_laplace_mixture:
            return safe_profile(epsilon, mixtures(self.merged_event, 1, self.relation)[0].delta)
        unsampled = self.unsampled.privacy_profile()
        rate = self.rate
        has_closed_form = self.is_replaced and self.is_gaussian

        def sampled(at):
            """Return delta at an epsilon, before it is rounded: the smaller of two formulas."""
            bound = rate * unsampled(_unamplified(at, rate) * DOWN) * ROUND_OFF
            if has_closed_form:
                bound = min(bound, _replaced_gaussian_delta(self.record_sigma, rate, at))
            return bound

        amplified_profile = safe_profile(math.inf, sampled)
        if epsilon == math.inf:
            return amplified_profile
        from_claim = claimed(epsilon, self.delta).privacy_profile()

        def smaller(at):
            return min(amplified_profile(at), from_claim(at))

        return smaller


@event_privacy.register
def _sampled(e: ev.PoissonSampled | ev.SampledWithoutReplacement, relation):
    """Return the privacy of a sampled event; rates 0 and 1 need no amplification."""
    rate = e.sampling_rate
    inner = inner_event(e, relation)
    unsampled = privacy_of(inner, relation)
    if rate == 0.0:
        return claimed(0.0)
    if rate == 1.0:
        return replace(unsampled, grouped=no_event)
    release = _SampledRelease(e, relation, rate, inner, unsampled)
    if release.delta > 0.0:
        # (epsilon, delta)-DP is amplified to (epsilon', q delta)-DP.
        privacy = claimed(release.epsilon, release.delta)
    else:
        # zCDP has no amplification by sampling: rho is the value without sampling, or the value
        # implied by epsilon.
        rho = min(unsampled.rho, div.pure_rho(release.epsilon))
        privacy = EventPrivacy(epsilon=release.epsilon, rho=rho, renyi=release.renyi)
    pairs: Callable | None = release.pairs
    if unsampled.pairs is None:
        pairs = None
    return replace(
        privacy, grouped=release.grouped, pairs=pairs, privacy_profile=release.privacy_profile
    )


@event_privacy.register
def _sampled_group(e: ev.SampledGroup, relation):
    """Return the privacy of a Poisson sample for a group of records, from its mixtures."""
    group = mixtures(e.event, e.size, relation)
    one = privacy_of(e.event, relation)
    epsilon = sum_up([(e.size, one.epsilon)])

    def pairs():
        return tuple(mixture.pair(len(group)) for mixture in group)

    def general(order):
        # Mironov (2017), proposition 2, does not use the mixtures.
        return general_group_renyi(one.divergence, order, e.size)

    def renyi():
        """Return a function that maps orders to Renyi divergences, by quadrature or from pairs."""
        if epsilon < math.inf:
            pure = claimed(epsilon).renyi()

            def smaller(order):
                return min(pure(order), general(order))

            return div.pair_renyi(pairs(), smaller)
        shift = Neighbors(relation=relation).sensitivity_factor * e.size
        unsampled_rho = 0.5 * (shift / group[0].noise.sigma) ** 2 * UP

        def smaller_of_gaussian(order):
            return min(unsampled_rho * order, general(order))

        return mixtures_renyi(group, smaller_of_gaussian)

    def largest_delta(at):
        return max(mixture.delta(at) for mixture in group)

    def privacy_profile():
        return safe_profile(epsilon, largest_delta)

    return EventPrivacy(
        epsilon=epsilon,
        # A group of k records has at most k^2 times the rho of one (Bun and Steinke 2016).
        rho=min(e.size**2 * one.rho * UP, div.pure_rho(epsilon)),
        pairs=pairs,
        renyi=renyi,
        privacy_profile=privacy_profile,
    )
