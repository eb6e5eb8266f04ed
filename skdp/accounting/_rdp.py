"""Renyi differential privacy of every event, at any real order (Mironov 2017)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skdp.accounting import _events as ev
from skdp.accounting import _leaf
from skdp.accounting._conversions import converted_delta, converted_epsilon, minimum_over_orders
from skdp.accounting._gaussian import delta_of_mu
from skdp.accounting._grid import discretise
from skdp.accounting._pairs import LossPair, loss_pairs
from skdp.utils._rounding import sum_up
from skdp.utils._validation import check_within

_UP = 1.0 + 1e-13
# Round-off of a logarithm of a moment near 1, which a low order would divide by order - 1.
_ROUND_OFF = 1e-14
_CELLS = 8192
_MAX_NODES = 200_000
_GL_NODES, _GL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def _pure(epsilon, order, num_categories=2):
    """Randomised response (Mironov 2017, table II), k-ary."""
    if epsilon == math.inf:
        return math.inf
    rest = num_categories - 1.0
    top = -math.log1p(rest * math.exp(-epsilon))
    terms = [
        top + (order - 1.0) * epsilon,
        top - order * epsilon,
        math.log(num_categories - 2.0) + top - epsilon if num_categories > 2 else -math.inf,
    ]
    peak = max(terms)
    total = peak + math.log(math.fsum(math.exp(term - peak) for term in terms))
    small = order * _leaf.pure_rho(epsilon)
    round_off = _ROUND_OFF * (1.0 - top)
    return min(epsilon, small, (max(0.0, total) * _UP + round_off) / (order - 1.0))


def _laplace(epsilon, order):
    """Mironov (2017), table II."""
    width = 2.0 * order - 1.0
    first = math.log(order / width) + (order - 1.0) * epsilon
    second = math.log((order - 1.0) / width) - order * epsilon
    total = max(first, second) + math.log1p(math.exp(-abs(first - second)))
    small = order * _leaf.laplace_rho(epsilon)
    return min(epsilon, small, (max(0.0, total) * _UP + _ROUND_OFF) / (order - 1.0))


def _bounded_range(epsilon, order):
    """The largest of the two-point pairs of Dong, Durfee and Rogers (2020), in closed form.

    With x = e^t the moment is x^s (A - x B) / (e^epsilon - 1), s = order - 1,
    A = e^epsilon - e^(-s epsilon), B = 1 - e^(-s epsilon); it is largest at x = s A / (order B).
    """
    bound = min(order * _leaf.squared(epsilon) / 8.0 * _UP, epsilon)
    s = order - 1.0
    if epsilon < 1e-3 or epsilon > 300.0:
        return bound
    log_a = epsilon + math.log(-math.expm1(-order * epsilon))
    log_b = math.log(-math.expm1(-s * epsilon))
    x = min(max(math.log(s / order) + log_a - log_b, 0.0), epsilon)
    excess = -math.expm1(min(x + log_b - log_a, -1e-300))
    log_moment = s * x + log_a + math.log(excess) - epsilon - math.log(-math.expm1(-epsilon))
    round_off = 1e-15 * (10.0 + epsilon + abs(log_a) + abs(log_b)) / excess
    return min(bound, (max(0.0, log_moment) * _UP + round_off) / s)


def _gaussian_quadrature(sigma, rate, kind):
    """r(order) of the sampled Gaussian by Gauss-Legendre panels; exact but for round-off.

    "poisson": E_{N(0)}[R^order], R = 1 - q + q e^((2x-1)/(2 sigma^2)), which is the larger
    direction (Mironov, Talwar and Zhang 2019). "replaced": the pair with shifts 1 and -1.
    "without": the pair of Zhu, Dong and Wang (2022), the part below loss 0 mirrored.
    """
    width = 2.0 * min(sigma, sigma * sigma)
    start = 0.5 if kind == "without" else -10.0 * sigma
    cache: dict[str, np.ndarray] = {}

    def log_ratio(x):
        return np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2)

    def arrays(panels):
        if len(cache.get("x", ())) < 16 * panels:
            grown = 2 * panels
            left = start + width * np.arange(grown)[:, None]
            x = (left + 0.5 * width * (1.0 + _GL_NODES)).ravel()
            weights = np.tile(0.5 * width * _GL_WEIGHTS, grown)
            density = np.log(weights) - 0.5 * (x / sigma) ** 2
            cache["x"], cache["ratio"] = x, log_ratio(x)
            cache["density"] = density - math.log(sigma * math.sqrt(2.0 * math.pi))
            cache["mirror"] = log_ratio(-x) if kind == "replaced" else x
        return (cache[name][: 16 * panels] for name in ("ratio", "density", "mirror"))

    scale = 0.5 * sigma if kind == "replaced" else sigma

    def curve(order):
        plain = order * 0.5 / scale**2
        # "replaced": with q near 1 and x far out, R(x)^a R(-x)^(1-a) has its mode at 2a - 1.
        mode = 2.0 * order if kind == "replaced" else order
        panels = math.ceil((mode + 10.0 * sigma - start) / width) + 1
        if 16 * panels > _MAX_NODES:
            return plain
        ratio, density, mirror = arrays(panels)
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
        return min(plain, (max(0.0, log_moment) * _UP + 1e-15) / (order - 1.0))

    return curve


def _pair_curve(pairs: tuple[LossPair, ...], cap):
    """r(order) from bounded loss distributions: atoms exactly, the rest on a fine grid.

    A connect-the-dots grid has no smaller moments than the distribution itself.
    """
    tables = []
    for pair in pairs:
        mass, losses = pair.p, pair.losses
        if pair.tails is not None:
            low, high = min(pair.low, *losses, pair.high), max(pair.high, *losses, pair.low)
            grid = discretise(pair, (high - low) / _CELLS, low, high)
            mass, losses = grid.mass, grid.losses
        tables.append((np.log(mass[mass > 0.0]), losses[mass > 0.0]))

    def curve(order):
        moments = []
        for log_p, losses in tables:
            exponent = log_p + (order - 1.0) * losses
            peak = float(exponent.max())
            moments.append(peak + math.log(float(np.exp(exponent - peak).sum())))
        return min(cap(order), (max(0.0, *moments) * _UP + _ROUND_OFF) / (order - 1.0))

    return curve


def _sampled_curve(event, relation):
    rate = _leaf.sampling_rate(event)
    inner = _leaf.inner_event(event, relation)
    if rate == 0.0:
        return lambda order: 0.0
    if rate == 1.0:
        return lambda order: composed_rdp(ev.leaves(inner), relation, order)
    if isinstance(inner, ev.Gaussian):
        z = inner.noise_multiplier
        if isinstance(event, ev.SampledWithoutReplacement):
            return _gaussian_quadrature(z, rate, "without")
        if relation == "replace_one":
            return _gaussian_quadrature(2.0 * z, rate, "replaced")
        return _gaussian_quadrature(z, rate, "poisson")
    pure = _leaf.pure_epsilon(event, relation)
    if isinstance(inner, ev.DiscreteGaussian):
        ratio = inner.sensitivity / inner.sigma

        def whole(order):
            return 0.5 * order * ratio**2

        near = inner.sigma < 1e4 and ratio < 25.0
        exact = _pair_curve(loss_pairs(event, relation), whole) if near else whole
        return lambda order: exact(order) if order * ratio < 25.0 else whole(order)
    if pure == math.inf:
        raise ValueError(f"no Renyi bound is known for a sampled {type(inner).__name__}")
    return _pair_curve(loss_pairs(event, relation), lambda order: _pure(pure, order))


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


def _stopping_curve(event, relation):
    parts = ev.leaves(event.event)

    def base(order):
        return composed_rdp(parts, relation, order)

    pure = _leaf.pure_epsilon(event, relation)
    mean, shape = event.mean, event.shape
    if shape == math.inf:
        hat = _base_delta(parts, relation)

        def poisson(order):
            # Theorem 6 bounds the moment of what some run released; no run at all, an outcome
            # of probability e^-mean on both sides, adds just that to it.
            s = order - 1.0
            ran = s * (base(order) + mean * hat(math.log1p(1.0 / s))) + math.log(mean)
            return (max(0.0, float(np.logaddexp(-mean, ran))) * _UP + _ROUND_OFF) / s

        return poisson
    log_gamma = math.log(stopping_gamma(mean, shape))
    _, penalty = minimum_over_orders(lambda b: (1.0 - 1.0 / b) * base(b) - log_gamma / b)
    penalty = min(max(0.0, penalty), -log_gamma)

    def curve(order):
        value = base(order) + (1.0 + shape) * penalty + math.log(mean) / (order - 1.0)
        return min(value, _pure(pure, order)) if pure < math.inf else value

    return curve


def _base_delta(parts, relation):
    mu = ev.gaussian_mu(parts)
    if mu is not None:
        return partial(delta_of_mu, mu)
    pure = sum_up((n, _leaf.pure_epsilon(part, relation)) for part, n in parts.items())

    @lru_cache(maxsize=512)
    def hat(epsilon):
        return 0.0 if pure <= epsilon else rdp_delta(parts, epsilon, relation)

    return hat


# Of each event at an order, its own delta set aside.
_DIVERGENCES = {
    ev.Gaussian: lambda e, order: 0.5 * order / e.noise_multiplier**2,
    ev.DiscreteGaussian: lambda e, order: 0.5 * order * (e.sensitivity / e.sigma) ** 2,
    ev.Laplace: lambda e, order: _laplace(e.epsilon, order),
    ev.RandomizedResponse: lambda e, order: _pure(e.epsilon, order, e.num_categories),
    ev.ExponentialMechanism: lambda e, order: _bounded_range(e.epsilon, order),
    ev.ApproximateDP: lambda e, order: _pure(e.epsilon, order),
    ev.ZCDP: lambda e, order: e.rho * order,
    ev.NonPrivate: lambda e, order: math.inf,
}


@lru_cache(maxsize=1024)
def leaf_curve(event: ev.Event, relation: str):
    """Order -> Renyi divergence of an uncomposed event, its own delta set aside."""
    for kind, divergence in _DIVERGENCES.items():
        if isinstance(event, kind):
            return partial(divergence, event)
    if isinstance(event, ev.RandomStopping):
        return _stopping_curve(event, relation)
    if _leaf.is_sampled(event):
        return _sampled_curve(event, relation)
    pure = _leaf.pure_epsilon(event, relation)
    if isinstance(event, ev.DiscreteLaplace) and event.sensitivity < 100_000:
        return _pair_curve(loss_pairs(event, relation), lambda order: _pure(pure, order))
    return lambda order: _pure(pure, order)


def composed_rdp(parts: dict[ev.Event, int], relation: str, order: float) -> float:
    """Sum of the events' Renyi divergences at one order."""
    return math.fsum(n * leaf_curve(part, relation)(order) for part, n in parts.items())


def rdp_epsilon(parts, delta, relation):
    """epsilon by RDP, minimised over real orders."""
    return minimum_over_orders(
        lambda order: converted_epsilon(composed_rdp(parts, relation, order), order, delta)
    )[1]


def rdp_delta(parts, epsilon, relation):
    """delta by RDP, minimised over real orders."""
    return minimum_over_orders(
        lambda order: converted_delta(composed_rdp(parts, relation, order), order, epsilon)
    )[1]


def rdp(
    event: ev.Event, order: float, *, relation: str = "add_remove", group_size: int = 1
) -> float:
    """Renyi differential privacy of an event at one order.

    Costs at one fixed order add up, also for parameters chosen after seeing earlier results
    (Feldman and Zrnic 2021).

    Parameters
    ----------
    event : Event
        What was released.
    order : float > 1
        At which the divergence is wanted.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        An upper bound on the Renyi divergence of this order, in nats; infinite where none is
        finite (an event with a delta of its own, such as `ApproximateDP`).

    Examples
    --------
    >>> from skdp.accounting import Gaussian, rdp
    >>> round(rdp(Gaussian(2.0) * 4, 8.0), 12)
    4.0
    """
    check_within(order, "order", 1.0, ends="()")
    _leaf.check_neighbours(relation, group_size)
    parts = ev.leaves(event).items()
    costs = ((n, _group_rdp(part, float(order), relation, group_size)) for part, n in parts)
    return sum_up(costs) * (1.0 + 2.0**-50)


def _group_rdp(part, order, relation, k):
    grouped = _leaf.group_event(part, k)
    if fixed_delta(grouped or part) > 0.0:
        return math.inf
    if grouped is not None:
        return leaf_curve(grouped, relation)(order)
    # Mironov (2017), proposition 2: a group of 2^c at order a costs 3^c r(2^c a), for a >= 2.
    c = math.ceil(math.log2(k))
    return 3.0**c * leaf_curve(part, relation)(2.0**c * max(order, 2.0))


def fixed_delta(event: ev.Event) -> float:
    """The part of an event's delta that no epsilon makes smaller."""
    if isinstance(event, (ev.ApproximateDP, ev.ZCDP)):
        return event.delta
    if _leaf.is_sampled(event):
        return sum_up([(_leaf.sampling_rate(event), fixed_delta(ev.merged(event.event)))])
    return 0.0


def whole_sample(event: ev.Event, relation: str) -> ev.Event:
    """A sampling event of rate 1 as the event that it holds; others unchanged."""
    if _leaf.is_sampled(event) and _leaf.sampling_rate(event) == 1.0:
        return _leaf.inner_event(event, relation)
    return event


def simplified(event: ev.Event, relation: str) -> ev.Event:
    """A sampled (epsilon, delta) event as the (epsilon', q delta) one that it amplifies to
    (Balle, Barthe and Gaboardi 2018); others unchanged."""
    if _leaf.is_sampled(event):
        inner = _leaf.inner_event(event, relation)
        if isinstance(inner, ev.ApproximateDP):
            amplified = _leaf.pure_epsilon(replace(event, event=ev.PureDP(inner.epsilon)), relation)
            return ev.ApproximateDP(amplified, fixed_delta(event))
    return event
