"""Dominating pairs of single events, as distributions of the privacy loss.

A pair (P, Q) is kept as what P and Q say about the loss L = ln(dP/dQ) (Sommer, Meiser and
Mohammadi 2019; Zhu, Dong and Wang 2022), so that sampling is a change of variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from skdp.accounting import _events as ev
from skdp.accounting._leaf import amplified, inner_event, is_sampled, pure_epsilon, sampling_rate

_MAX_ATOMS = 4_000_000
_EMPTY = np.zeros(0)


@dataclass(frozen=True)
class LossPair:
    """Losses of a pair (P, Q).

    `tails` maps losses l to (P(L <= l), P(L > l), Q(L <= l), Q(L > l)) of the continuous part
    (None: there is none), whose support is [low, high], each tail accurate where it is the
    smaller one. `p_inf` is P(L = inf) and `q_inf` is Q(L = -inf).
    """

    tails: Callable | None = None
    low: float = 0.0
    high: float = 0.0
    losses: np.ndarray = field(default_factory=lambda: _EMPTY)
    p: np.ndarray = field(default_factory=lambda: _EMPTY)
    q: np.ndarray = field(default_factory=lambda: _EMPTY)
    p_inf: float = 0.0
    q_inf: float = 0.0
    spacing: float | None = None

    def reversed(self) -> LossPair:
        """The pair (Q, P)."""
        tails = None
        if self.tails is not None:

            def tails(loss):
                p_cdf, p_sf, q_cdf, q_sf = self.tails(-loss)
                return q_sf, q_cdf, p_sf, p_cdf

        atoms = -self.losses[::-1], self.q[::-1], self.p[::-1], self.q_inf, self.p_inf
        return LossPair(tails, -self.high, -self.low, *atoms, self.spacing)


def _gaussian(mu):
    def tails(loss):
        result = []
        for mean in (0.5 * mu, -0.5 * mu):
            z = loss / mu - mean
            small = ndtr(-np.abs(z))
            large = 1.0 - small
            below = z < 0.0
            result += [np.where(below, small, large), np.where(below, large, small)]
        return result

    return LossPair(tails, -math.inf, math.inf)


def _laplace(epsilon):
    small = 0.5 * math.exp(-epsilon)

    def far(width):
        if epsilon > 600.0:
            return 0.5 * (np.exp(width - epsilon) - math.exp(-epsilon))
        return small * np.expm1(width)

    def tails(loss):
        above = np.clip(0.5 * (epsilon - loss), 0.0, epsilon)
        below = np.clip(0.5 * (epsilon + loss), 0.0, epsilon)
        return far(below), -0.5 * np.expm1(-above), -0.5 * np.expm1(-below), far(above)

    losses, p = np.array([-epsilon, epsilon]), np.array([small, 0.5])
    return LossPair(tails, -epsilon, epsilon, losses, p, p[::-1], spacing=epsilon)


def _bounded_range(epsilon):
    """The largest of the two-point curves, e^epsilon (1 - e^((l-epsilon)/2))^2 / (e^epsilon - 1).

    Dong, Durfee and Rogers (2020) give the two-point pairs; the largest delta over them, in
    closed form, is itself a privacy curve (Zhu, Dong and Wang 2022).
    """
    whole = -math.expm1(-epsilon)

    def tails(loss):
        loss = np.clip(loss, -epsilon, epsilon)
        upper, lower = -np.expm1(0.5 * (loss - epsilon)), -np.expm1(-0.5 * (loss + epsilon))
        q_sf = np.exp(-0.5 * (loss + epsilon)) * upper
        p_cdf = np.exp(0.5 * (loss - epsilon)) * lower
        return p_cdf / whole, upper / whole, lower / whole, q_sf / whole

    return LossPair(tails, -epsilon, epsilon)


def _atoms(losses, p, q, p_inf=0.0, q_inf=0.0, spacing=None):
    losses, p, q = (np.asarray(values, dtype=float) for values in (losses, p, q))
    order = np.argsort(losses, kind="stable")
    return LossPair(None, 0.0, 0.0, losses[order], p[order], q[order], p_inf, q_inf, spacing)


def _response(epsilon, num_categories=2, delta=0.0):
    """Randomised response; with delta the four-point pair (Kairouz, Oh and Viswanath 2015)."""
    if epsilon == 0.0:
        return _atoms([0.0], [1.0 - delta], [1.0 - delta], delta, delta)
    others = (num_categories - 1.0) * math.exp(-epsilon)
    top = (1.0 - delta) / (1.0 + others)
    low = top * math.exp(-epsilon)
    middle = (num_categories - 2.0) * low
    return _atoms(
        [-epsilon, 0.0, epsilon], [low, middle, top], [top, middle, low], delta, delta, epsilon
    )


def _discrete_laplace(scale, sensitivity):
    a = 1.0 / scale
    if sensitivity > _MAX_ATOMS:
        return _response(sensitivity * a)
    x = np.arange(1, sensitivity, dtype=float)
    edge, inside = 1.0 / (1.0 + math.exp(-a)), -math.expm1(-a) / (1.0 + math.exp(-a))
    far = edge * math.exp(-a * sensitivity)
    losses = np.concatenate(([a * sensitivity], a * (sensitivity - 2.0 * x), [-a * sensitivity]))
    p = np.concatenate(([edge], inside * np.exp(-a * x), [far]))
    return _atoms(losses, p, p[::-1], spacing=a)


def _discrete_gaussian(sigma, sensitivity):
    reach = math.ceil((38.0 if sigma < 1e4 else 14.0) * sigma) + sensitivity + 1
    if 2 * reach > _MAX_ATOMS:
        raise ValueError(
            f"a discrete Gaussian of sigma={sigma:g} grid units has too many atoms for its "
            "exact distribution; use method 'rdp' or 'zcdp', or a Gaussian event"
        )
    x = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-0.5 * (x / sigma) ** 2)
    total = math.fsum(weights) if len(x) < 10_000 else float(weights.sum())
    losses = (0.5 * sensitivity - x) * (sensitivity / sigma**2)
    p = weights / total
    q = np.exp(-0.5 * ((x - sensitivity) / sigma) ** 2) / total
    # Beyond 38 sigma there is less than e^-722, and what has underflowed is off by less than this.
    tail = 1e-314 if sigma < 1e4 else 1e-40
    keep = (p > 0.0) | (q > 0.0)
    return _atoms(losses[keep], p[keep], q[keep], tail, tail, sensitivity / sigma**2)


def _mixed(pair: LossPair, rate: float) -> LossPair:
    """((1 - rate) Q + rate P, Q): a record in the Poisson sample against none."""

    def inverse(loss):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0))
            far = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 1.0)))
        return np.where(loss > 30.0, far, near)

    def mixed(p, q):
        return (1.0 - rate) * q + rate * p

    tails = None
    if pair.tails is not None:

        def tails(loss):
            p_cdf, p_sf, q_cdf, q_sf = pair.tails(inverse(loss))
            return mixed(p_cdf, q_cdf), mixed(p_sf, q_sf), q_cdf, q_sf

    low, high = amplified(np.array([pair.low, pair.high]), rate).tolist()
    losses, p, q = amplified(pair.losses, rate), mixed(pair.p, pair.q), pair.q
    if pair.q_inf > 0.0:
        losses = np.append(math.log1p(-rate), losses)
        p, q = np.append((1.0 - rate) * pair.q_inf, p), np.append(pair.q_inf, q)
    return LossPair(tails, low, high, losses, p, q, rate * pair.p_inf)


def _replace_curve(pair: LossPair, rate: float) -> LossPair:
    """Sampling under replace-one: the curve of Zhu, Dong and Wang (2022).

    delta of the mixture against Q for losses above 0 and, mirrored, below; the mass that is
    left has loss 0. `pair` dominates every two of: one record's value in the sample, another
    value, none.
    """
    mix = _mixed(pair, rate)
    tails, left_p, left_q = None, mix.p_inf, 0.0
    if mix.tails is not None:

        def tails(loss):
            _, p_sf, _, q_sf = mix.tails(np.abs(loss))
            above = loss >= 0.0
            return (
                np.where(above, whole - p_sf, q_sf),
                np.where(above, p_sf, whole - q_sf),
                np.where(above, whole - q_sf, p_sf),
                np.where(above, q_sf, whole - p_sf),
            )

        _, p_sf, _, q_sf = mix.tails(np.zeros(1))
        whole = float(p_sf[0] + q_sf[0])
        left_p, left_q = left_p + float(p_sf[0]), left_q + float(q_sf[0])
    keep = mix.losses > 0.0
    losses, p, q = mix.losses[keep], mix.p[keep], mix.q[keep]
    zero = max(0.0, 1.0 - left_p - left_q - float(p.sum()) - float(q.sum()))
    losses = np.concatenate((-losses[::-1], [0.0], losses))
    p, q = np.concatenate((q[::-1], [zero], p)), np.concatenate((p[::-1], [zero], q))
    return LossPair(tails, -mix.high, mix.high, losses, p, q, mix.p_inf, mix.p_inf)


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
        low, up = ndtr(z), ndtr(-z)
        p_cdf = (1.0 - rate) * low + rate * ndtr(z - one)
        p_sf = (1.0 - rate) * up + rate * ndtr(one - z)
        q_cdf = (1.0 - rate) * low + rate * ndtr(z + one)
        q_sf = (1.0 - rate) * up + rate * ndtr(-z - one)
        return p_cdf, p_sf, q_cdf, q_sf

    return LossPair(tails, -math.inf, math.inf)


def base_pair(event: ev.Event, relation: str) -> LossPair:
    """The pair of an event without sampling; it is symmetric."""
    if isinstance(event, ev.Gaussian):
        return _gaussian(1.0 / event.noise_multiplier)
    if isinstance(event, ev.Laplace):
        return _laplace(event.epsilon)
    if isinstance(event, ev.DiscreteGaussian):
        return _discrete_gaussian(event.sigma, event.sensitivity)
    if isinstance(event, ev.DiscreteLaplace):
        return _discrete_laplace(event.scale, event.sensitivity)
    if isinstance(event, ev.RandomizedResponse):
        return _response(event.epsilon, event.num_categories)
    if isinstance(event, ev.ExponentialMechanism) and event.epsilon > 0.0:
        return _bounded_range(event.epsilon)
    if isinstance(event, ev.ApproximateDP):
        return _response(event.epsilon, delta=event.delta)
    pure = pure_epsilon(event, relation)
    if pure < math.inf:
        return _response(pure)
    raise ValueError(f"no privacy loss distribution is known for {type(event).__name__}")


def loss_pairs(event: ev.Event, relation: str) -> tuple[LossPair, ...]:
    """One pair for each direction; a single one if the pair is symmetric."""
    if not is_sampled(event):
        return (base_pair(event, relation),)
    rate = sampling_rate(event)
    if rate == 0.0:
        return (_response(0.0),)
    inner = inner_event(event, relation)
    pair = base_pair(inner, relation)
    if rate == 1.0:
        return (pair,)
    if isinstance(event, ev.PoissonSampled):
        if relation == "add_remove":
            mix = _mixed(pair, rate)
            return mix, mix.reversed()
        if isinstance(inner, ev.Gaussian):
            return (_poisson_gaussian_replaced(2.0 * inner.noise_multiplier, rate),)
    return (_replace_curve(pair, rate),)
