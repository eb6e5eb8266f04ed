"""What one uncomposed event costs in pure DP, zCDP and Gaussian DP."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from skdp.accounting import _events as ev
from skdp.utils._rounding import float_up, sum_up
from skdp.utils._validation import check_integer, check_relation

_UP = 1.0 + 2.0**-50
_TINY = 1e-300
_MAX_GROUP_SIZE = 10**9


def check_neighbours(relation: str, group_size: int) -> None:
    """Refuse what is no relation and no number of records that are protected together."""
    check_relation(relation)
    check_integer(group_size, "group_size", 1, _MAX_GROUP_SIZE)


def squared(x: float) -> float:
    """x^2, which does not round to 0 unless x is 0."""
    return max(x * x, _TINY) if x != 0.0 else 0.0


def scaled(event: ev.Event, k: float) -> ev.Event:
    """An additive-noise event whose release moves by k times as much; others unchanged."""
    if isinstance(event, ev.Gaussian):
        return ev.Gaussian(-float_up(-Fraction(event.noise_multiplier) / k))
    if isinstance(event, ev.Laplace):
        return ev.Laplace(sum_up([(k, event.epsilon)]))
    if isinstance(event, (ev.DiscreteGaussian, ev.DiscreteLaplace)):
        return replace(event, sensitivity=event.sensitivity * k)
    if isinstance(event, ev.Composed):
        return ev.Composed(tuple(scaled(part, k) for part in event.events))
    if isinstance(event, ev.Repeated):
        return replace(event, event=scaled(event.event, k))
    return event


def is_sampled(event: ev.Event) -> bool:
    return isinstance(event, (ev.PoissonSampled, ev.SampledWithoutReplacement))


def sampling_rate(event: ev.Event) -> float:
    """The probability that a record is in the sample."""
    if isinstance(event, ev.PoissonSampled):
        return event.sampling_rate
    return float_up(Fraction(event.sample_size, event.population_size))


def inner_event(event: ev.Event, relation: str) -> ev.Event:
    """The event inside a sampling event, its sensitivity that of the sample's change."""
    doubled = isinstance(event, ev.SampledWithoutReplacement) or relation == "replace_one"
    inner = ev.merged(event.event)
    return scaled(inner, 2) if doubled else inner


def pure_epsilon(event: ev.Event, relation: str) -> float:
    """The least known epsilon with delta = 0 of an uncomposed event (or of pure events)."""
    if isinstance(event, (ev.Laplace, ev.RandomizedResponse, ev.ExponentialMechanism, ev.PureDP)):
        return event.epsilon
    if isinstance(event, ev.DiscreteLaplace):
        return float_up(event.sensitivity / Fraction(event.scale))
    if isinstance(event, ev.ZCDP) and event.rho == 0.0 and event.delta == 0.0:
        return 0.0
    if isinstance(event, ev.ApproximateDP) and event.delta == 0.0:
        return event.epsilon
    if isinstance(event, (ev.Composed, ev.Repeated)):
        parts = ev.leaves(event).items()
        return sum_up((count, pure_epsilon(part, relation)) for part, count in parts)
    if isinstance(event, ev.RandomStopping):
        base = pure_epsilon(event.event, relation)
        # Papernot and Steinke (2022), corollary 4: (2 + eta) epsilon.
        return sum_up([(2, base), (base, event.shape)]) if base > 0.0 else 0.0
    if is_sampled(event):
        return _sampled_pure_epsilon(event, relation)
    return math.inf


def _sampled_pure_epsilon(event, relation):
    """ln(1 + q (e^epsilon - 1)) (Balle, Barthe and Gaboardi 2018); for additive noise under
    Poisson sampling and replace-one, the ratio of the two mixtures bounded term by term."""
    rate = sampling_rate(event)
    if rate == 0.0:
        return 0.0
    bound = float(amplified(pure_epsilon(inner_event(event, relation), relation), rate))
    if isinstance(event, ev.PoissonSampled) and relation == "replace_one":
        one = pure_epsilon(ev.merged(event.event), "add_remove")
        if all(isinstance(part, ev.ADDITIVE) for part in ev.leaves(event.event)):
            bound = min(bound, float(amplified(one, rate) - amplified(-one, rate)))
    return math.nextafter(bound * _UP, math.inf) if bound > 0.0 else 0.0


def amplified(epsilon, rate):
    """ln(1 + rate (e^epsilon - 1)), relatively accurate, also for the negative and for arrays."""
    near = np.minimum(epsilon, 700.0)
    with np.errstate(over="ignore", divide="ignore"):
        moved, whole = rate * np.expm1(near), (1.0 - rate) + rate * np.exp(near)
        far = np.log(rate + (1.0 - rate) * np.exp(-np.maximum(epsilon, 0.0))) + epsilon
        result = np.where(moved > -0.5, np.log1p(moved), np.log(whole))
    return np.where(epsilon > 700.0, far, result)


def pure_rho(epsilon: float) -> float:
    """rho of an epsilon-DP release: epsilon tanh(epsilon / 2), at most epsilon^2 / 2.

    It is the Renyi divergence of randomised response at order 1, which is where the
    divergence over the order is largest (Harrison and Manurangsi 2025).
    """
    if epsilon == 0.0 or epsilon == math.inf:
        return epsilon
    return max(epsilon * math.tanh(0.5 * epsilon) * _UP, _TINY)


def laplace_rho(epsilon: float) -> float:
    """rho of a Laplace release: epsilon + e^-epsilon - 1 (Harrison and Manurangsi 2025)."""
    exact = epsilon + math.expm1(-epsilon) + 2.0**-51 * epsilon
    return min(exact, 0.5 * squared(epsilon)) * _UP


def leaf_zcdp(event: ev.Event, relation: str) -> tuple[float, float]:
    """(rho, delta) of an uncomposed event; rho may be infinite."""
    if isinstance(event, ev.Gaussian):
        return 0.5 / event.noise_multiplier**2 * _UP, 0.0
    if isinstance(event, ev.DiscreteGaussian):
        return 0.5 * (event.sensitivity / event.sigma) ** 2 * _UP, 0.0
    if isinstance(event, ev.Laplace):
        return laplace_rho(event.epsilon), 0.0
    if isinstance(event, ev.ExponentialMechanism):
        rho = squared(event.epsilon) / 8.0
        return min(rho, pure_rho(event.epsilon)) * _UP, 0.0
    if isinstance(event, ev.ZCDP):
        return event.rho, event.delta
    if isinstance(event, ev.ApproximateDP):
        return pure_rho(event.epsilon), event.delta
    rho, delta = pure_rho(pure_epsilon(event, relation)), 0.0
    if is_sampled(event) and sampling_rate(event) > 0.0:
        inner = composed_zcdp(ev.leaves(inner_event(event, relation)), relation)
        return inner if inner[0] < rho else (rho, delta)
    return rho, delta


def composed_zcdp(parts: dict[ev.Event, int], relation: str, k: int = 1) -> tuple[float, float]:
    """Sums of the events' (rho, delta) for a group of k records."""
    costs = [(count, _group_zcdp(part, relation, k)) for part, count in parts.items()]
    rho, delta = (sum_up((count, cost[i]) for count, cost in costs) for i in (0, 1))
    return rho, min(1.0, delta)


def zcdp(
    event: ev.Event, *, relation: str = "add_remove", group_size: int = 1
) -> tuple[float, float]:
    """Cost in approximate zero-concentrated differential privacy.

    Costs add up, also for parameters chosen after seeing earlier results (Whitehouse et al.
    2023).

    Parameters
    ----------
    event : Event
        What was released.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together; rho grows with its square.

    Returns
    -------
    rho, delta : float
        The release is delta-approximate rho-zCDP (Bun and Steinke 2016). `rho` is infinite
        where no bound is known. A sampled event costs what it costs without sampling:
        sampling does not fit zCDP.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, zcdp
    >>> rho, delta = zcdp(Gaussian(1.0) * 4)
    >>> round(rho, 12), delta
    (2.0, 0.0)
    """
    check_neighbours(relation, group_size)
    return composed_zcdp(ev.leaves(event), relation, group_size)


def _group_zcdp(part, relation, k):
    grouped = group_event(part, k)
    if grouped is not None:
        return leaf_zcdp(grouped, relation)
    rho, delta = leaf_zcdp(part, relation)
    return (k * k * rho, 0.0) if delta == 0.0 else (math.inf, 1.0)


def group_event(event: ev.Event, k: int) -> ev.Event | None:
    """An event for a group of k records that costs no less; None where none is known.

    Additive noise moves by k times as much; pure DP and bounded range add up along the path
    of k changes; zCDP with delta = 0 grows by k^2 (Bun and Steinke 2016); (epsilon, delta)
    becomes (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)).
    """
    if k == 1 or isinstance(event, ev.NonPrivate):
        return event
    if isinstance(event, (ev.Composed, ev.Repeated)):
        parts = {part: group_event(part, k) for part in ev.leaves(event)}
        if any(part is None for part in parts.values()):
            return None
        return ev.Composed(tuple(parts[p] * count for p, count in ev.leaves(event).items()))
    if isinstance(event, ev.ADDITIVE):
        return scaled(event, k)
    if isinstance(event, ev.ExponentialMechanism):
        return ev.ExponentialMechanism(sum_up([(k, event.epsilon)]))
    if isinstance(event, (ev.PureDP, ev.RandomizedResponse)):
        return ev.PureDP(sum_up([(k, event.epsilon)]))
    if isinstance(event, ev.ApproximateDP):
        return ev.ApproximateDP(
            sum_up([(k, event.epsilon)]), group_delta(event.epsilon, event.delta, k)
        )
    if isinstance(event, ev.ZCDP) and event.delta == 0.0:
        return ev.ZCDP(k * k * event.rho)
    if isinstance(event, ev.RandomStopping):
        # The number of runs knows no row: it is the best of as many runs of the group's price.
        run = group_event(event.event, k)
        return None if run is None else replace(event, event=run)
    return None


def group_delta(epsilon: float, delta: float, k: int) -> float:
    """delta of a group of k at k epsilon: the sum of delta e^(i epsilon) over i < k."""
    if delta == 0.0:
        return 0.0
    if epsilon == math.inf:
        return 1.0
    if epsilon < 1e-12 and k * epsilon < 1.0:
        return min(1.0, k * delta * math.exp(k * epsilon) * _UP)
    geometric = -math.expm1(-k * epsilon) / -math.expm1(-epsilon)
    log_delta = (k - 1) * epsilon + math.log(geometric) + math.log(delta)
    rounding = 2.0**-50 * (k * epsilon - math.log(delta) + 30.0)
    return math.nextafter(math.exp(min(0.0, log_delta + rounding)), 1.0)


def gdp(event: ev.Event, *, relation: str = "add_remove", group_size: int = 1) -> float:
    """Cost in Gaussian differential privacy, for a filter on the sum of mu^2.

    Parameters
    ----------
    event : Event
        Composed of Gaussian and of pure events.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        mu: 1 / noise_multiplier for a Gaussian release, 2 Phi^-1(e^epsilon / (1 + e^epsilon))
        for an epsilon-DP one (Dong, Roth and Su 2022), the root of the sum of squares for
        several.

    Raises
    ------
    ValueError
        For events that are neither; no central-limit approximation is made.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, gdp
    >>> gdp(Gaussian(2.0) * 4)
    1.0
    """
    check_neighbours(relation, group_size)
    squares = []
    for part, count in ev.leaves(event).items():
        if isinstance(part, ev.Gaussian):
            squares.append(count * (group_size / part.noise_multiplier) ** 2)
            continue
        epsilon = group_size * pure_epsilon(part, relation)
        if epsilon == math.inf:
            raise ValueError(f"{type(part).__name__} has no cost in Gaussian DP")
        squares.append(count * pure_mu(epsilon) ** 2)
    return math.sqrt(math.fsum(squares))


def pure_mu(epsilon: float) -> float:
    """mu with e^epsilon / (1 + e^epsilon) = Phi(mu / 2)."""
    if epsilon == 0.0:
        return 0.0
    if epsilon < 1e-3:
        # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2 <= epsilon/4; the cubic term is covered by 1e-6.
        return epsilon * math.sqrt(math.pi / 2.0) * (1.0 + 1e-6)
    return -2.0 * float(ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon))))) * (1.0 + 1e-13)
