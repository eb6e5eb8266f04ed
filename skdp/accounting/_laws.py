"""The privacy of single events: an `EventPrivacy` for each class of events.

Only `privacy_of(event, relation)` dispatches on the class of an uncomposed event. To add an event,
write its class in `_events`, with the checks of its fields, and register a function for this class
with `event_privacy.register`, here or in another module such as `_sampled`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial, singledispatch

import numpy as np

from skdp.accounting import _divergences as div
from skdp.accounting import _events as ev
from skdp.accounting import _pairs
from skdp.accounting._conversions import zcdp_to_delta, zcdp_to_epsilon
from skdp.accounting._gaussian import delta_of_mu, gdp_to_epsilon, smallest_epsilon
from skdp.utils._rounding import DOWN, UP, float_up, sum_up, up_from_underflow
from skdp.utils._types import Relation
from skdp.utils._validation import check_integer, check_relation, check_within
from skdp.utils._values import FrozenValue

# Factor that exceeds the relative error of a sum over a discrete distribution.
ROUND_OFF = 1.0 + 5e-13
# Discrete Gaussians with larger parameters have too many atoms, so their cost is that of zCDP.
_MAX_SIGMA = 5e4
_MAX_SENSITIVITY = 10**6
# For discrete Laplace noise with a larger sensitivity, the Renyi divergence of its epsilon is used.
_MAX_LAPLACE_SENSITIVITY = 100_000
_MAX_GROUP_SIZE = 10**9


def _always(value):
    """Return a function without arguments that returns the value."""

    def function():
        return value

    return function


def _one_pair(make_pair, *args):
    """Return the function `pairs` of an event with one symmetric pair, ``make_pair(*args)``."""

    def pairs():
        return (make_pair(*args),)

    return pairs


def no_event(k):
    """Return None: no event for a group of k records is known."""
    return None


def _no_divergence(order):
    """Return infinity: no Renyi divergence is known."""
    return math.inf


def _no_profile(epsilon):
    """Return 1, the delta of any release."""
    return 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class EventPrivacy(FrozenValue):
    """The privacy of one event; by default no bound is known.

    Parameters
    ----------
    epsilon, delta : float
        The release is (epsilon, delta)-DP. No larger epsilon has a smaller `delta`. If delta is 0,
        epsilon is the smallest possible.
    rho : float
        The release is delta-approximate rho-zCDP.
    grouped : callable
        Function that maps k to an event that costs at least as much as this event does for a group
        of k records, or to None if none is known. For additive noise, it is the event with k times
        the sensitivity.
    pairs : callable or None
        Function that returns a tuple of `LossPair`, one for each order of the tables or a single
        symmetric one. None if no privacy loss distribution is known.
    renyi : callable
        Function that returns a mapping from orders to Renyi divergences. These hold up to
        probability `delta`.
    privacy_profile : callable
        Function that returns a mapping from epsilons to the smallest known delta, which is exact if
        `pairs` is known.
    inverse : callable or None
        Function that maps deltas to the smallest epsilon, if it has a closed form.
    start : float
        The first epsilon of the search that inverts `privacy_profile`.
    """

    epsilon: float = math.inf
    delta: float = 0.0
    rho: float = math.inf
    grouped: Callable = no_event
    pairs: Callable | None = None
    renyi: Callable = _always(_no_divergence)
    privacy_profile: Callable = _always(_no_profile)
    inverse: Callable | None = None
    start: float = 1.0

    @property
    def pure(self):
        """The smallest known epsilon with delta = 0; infinite if there is none."""
        if self.delta == 0.0:
            return self.epsilon
        return math.inf

    @cached_property
    def divergence(self):
        """A function that maps orders to Renyi divergences, valid up to probability `delta`."""
        return self.renyi()

    def epsilon_at(self, delta):
        """Return the smallest known epsilon at delta; exact if a loss distribution is known."""
        if self.inverse is not None:
            return self.inverse(delta)
        if delta == 0.0:
            return self.pure
        delta_at = self.privacy_profile()
        low = 0.0
        high = min(self.pure, self.start)
        if delta_at(math.inf) > delta:
            return math.inf
        while delta_at(high) > delta:
            low, high = high, min(self.pure, 2.0 * high)
        return min(self.pure, smallest_epsilon(delta_at, delta, high, low))


@singledispatch
def event_privacy(event: ev.Event, relation: Relation) -> EventPrivacy:
    """Return the privacy of an event; functions for the classes of events are registered here."""
    return EventPrivacy()


privacy_of = lru_cache(maxsize=1024)(event_privacy)


def claimed(epsilon: float, delta: float = 0.0, num_categories: int = 2) -> EventPrivacy:
    """Return the privacy of any (epsilon, delta)-DP release, which randomized response attains.

    With `num_categories` > 2, it is that of randomized response with this number of categories. It
    costs less than with two categories and the same epsilon.
    """

    def grouped(k):
        """Return the claim for a group of k: k epsilon, and the group's delta."""
        group_epsilon = sum_up([(k, epsilon)])
        if delta == 0.0:
            return ev.PureDP(group_epsilon)
        return ev.ApproximateDP(group_epsilon, group_delta(epsilon, delta, k))

    def delta_at(at):
        """Return the profile of k-ary randomized response that fails with probability delta."""
        if at >= epsilon:
            return delta
        tail = -math.expm1(at - epsilon) / (1.0 + (num_categories - 1.0) * math.exp(-epsilon))
        return min(1.0, (delta + (1.0 - delta) * tail) * UP)

    def divergence(order):
        return div.response_renyi(epsilon, order, num_categories)

    return EventPrivacy(
        epsilon=epsilon,
        delta=delta,
        rho=div.pure_rho(epsilon),
        grouped=grouped,
        pairs=_one_pair(_pairs.response, epsilon, num_categories, delta),
        renyi=_always(divergence),
        privacy_profile=_always(delta_at),
        start=epsilon,
    )


def pure_or_unknown(epsilon: float) -> EventPrivacy:
    """Return the privacy of an epsilon-DP release; if epsilon is infinite, nothing is known."""
    if epsilon < math.inf:
        return claimed(epsilon)
    return EventPrivacy()


def safe_profile(pure_epsilon: float, profile: Callable) -> Callable:
    """Return a privacy profile that rounding errors do not make too small.

    Parameters
    ----------
    pure_epsilon : float
        Epsilon of the event's pure differential privacy, from which on delta is 0; infinite if it
        has none.
    profile : callable
        Function of epsilon that returns delta, up to rounding errors.

    Returns
    -------
    callable
        Function of epsilon that returns delta, rounded up to at most 1.
    """

    def delta_at(epsilon):
        """Return the profile at an epsilon, rounded up; 0 only where the loss never exceeds it."""
        if pure_epsilon <= epsilon and pure_epsilon < math.inf:
            return 0.0
        delta = min(1.0, profile(epsilon) * UP)
        if epsilon == math.inf:
            return delta
        return up_from_underflow(delta)

    return delta_at


@event_privacy.register
def _pure(e: ev.PureDP, relation):
    """Return the privacy of any epsilon-DP release."""
    return claimed(e.epsilon)


@event_privacy.register
def _approximate(e: ev.ApproximateDP, relation):
    """Return the privacy of any (epsilon, delta)-DP release."""
    return claimed(e.epsilon, e.delta)


@event_privacy.register
def _randomized_response(e: ev.RandomizedResponse, relation):
    """Return the privacy of k-ary randomized response."""
    return claimed(e.epsilon, num_categories=e.num_categories)


@event_privacy.register
def _gaussian(e: ev.Gaussian, relation):
    """Return the privacy of a Gaussian release, which is mu-GDP with mu = 1 / noise_multiplier."""
    z = e.noise_multiplier

    def grouped(k):
        """Return the Gaussian with z / k, rounded down: a group changes a sum k times as much."""
        return ev.Gaussian(-float_up(-Fraction(z) / k))

    def divergence(order):
        return 0.5 * order / z**2

    return EventPrivacy(
        rho=0.5 / z**2 * UP,
        grouped=grouped,
        pairs=_one_pair(_pairs.gaussian, 1.0 / z),
        renyi=_always(divergence),
        privacy_profile=_always(partial(delta_of_mu, 1.0 / z)),
        inverse=partial(gdp_to_epsilon, 1.0 / z),
    )


@event_privacy.register
def _laplace(e: ev.Laplace, relation):
    """Return the privacy of a Laplace release, where epsilon is the sensitivity over the scale."""

    def grouped(k):
        return ev.Laplace(sum_up([(k, e.epsilon)]))

    def delta_at(at):
        """Return 1 - e^((at - epsilon) / 2), the profile below `epsilon`."""
        return -math.expm1(0.5 * (at - e.epsilon))

    return replace(
        claimed(e.epsilon),
        rho=div.laplace_rho(e.epsilon),
        grouped=grouped,
        pairs=_one_pair(_pairs.laplace, e.epsilon),
        renyi=_always(partial(div.laplace_renyi, e.epsilon)),
        privacy_profile=_always(safe_profile(e.epsilon, delta_at)),
    )


@event_privacy.register
def _discrete_laplace(e: ev.DiscreteLaplace, relation):
    """Return the privacy of a discrete Laplace release, computed from the atoms of its pair.

    The pair is created only when it is needed, because it can have millions of atoms.
    """
    epsilon = float_up(e.sensitivity / Fraction(e.scale))
    pure = claimed(epsilon)
    pair = partial(_pairs.discrete_laplace, e.scale, e.sensitivity)

    def renyi():
        """Return the Renyi divergences from the atoms, or for large sensitivities from epsilon."""
        if e.sensitivity >= _MAX_LAPLACE_SENSITIVITY:
            return pure.renyi()
        return div.pair_renyi((pair(),), pure.renyi())

    def privacy_profile():
        return safe_profile(epsilon, partial(_atoms_delta, pair()))

    return replace(
        pure,
        grouped=partial(_with_more_sensitivity, e),
        pairs=_one_pair(pair),
        renyi=renyi,
        privacy_profile=privacy_profile,
        start=1.0,
    )


def _with_more_sensitivity(event, k):
    """Return the event of discrete noise for a group of k records."""
    return replace(event, sensitivity=event.sensitivity * k)


@event_privacy.register
def _discrete_gaussian(e: ev.DiscreteGaussian, relation):
    """Return the privacy of a discrete Gaussian release.

    It satisfies the zCDP and the Renyi divergences of the continuous Gaussian (Canonne, Kamath and
    Steinke 2020). Its privacy profile is computed from the atoms of its pair, unless there are too
    many.
    """
    rho = 0.5 * (e.sensitivity / e.sigma) ** 2

    def divergence(order):
        return 0.5 * order * (e.sensitivity / e.sigma) ** 2

    concentrated = _concentrated(
        rho * UP, grouped=partial(_with_more_sensitivity, e), divergence=divergence
    )
    if e.sigma > _MAX_SIGMA or e.sensitivity > _MAX_SENSITIVITY:
        return concentrated
    pair = partial(_pairs.discrete_gaussian, e.sigma, e.sensitivity)

    def privacy_profile():
        return safe_profile(math.inf, partial(_atoms_delta, pair()))

    return replace(
        concentrated, pairs=_one_pair(pair), privacy_profile=privacy_profile, inverse=None
    )


@event_privacy.register
def _exponential(e: ev.ExponentialMechanism, relation):
    """Return the privacy of a release of bounded range, such as the exponential mechanism.

    epsilon^2 / 8 is its zCDP by bounded range (Cesar and Rogers 2021).
    """
    pure = claimed(e.epsilon)

    def grouped(k):
        return ev.ExponentialMechanism(sum_up([(k, e.epsilon)]))

    def delta_at(at):
        """Return the profile below `epsilon`, before it is rounded."""
        # The largest privacy profile of the two-point pairs of Dong, Durfee and Rogers (2020).
        gap = math.expm1(0.5 * (at - e.epsilon))
        return gap * (gap / -math.expm1(-e.epsilon))

    pairs = pure.pairs
    if e.epsilon > 0.0:
        pairs = _one_pair(_pairs.bounded_range, e.epsilon)
    return replace(
        pure,
        rho=min(div.squared(e.epsilon) / 8.0, pure.rho) * UP,
        grouped=grouped,
        pairs=pairs,
        renyi=_always(partial(div.bounded_range_renyi, e.epsilon)),
        privacy_profile=_always(safe_profile(e.epsilon, delta_at)),
    )


def _concentrated(rho, delta=0.0, *, grouped, divergence):
    """Return the privacy of a release that is only known to be delta-approximate rho-zCDP."""
    profile = safe_profile(math.inf, partial(zcdp_to_delta, rho, rho_delta=delta))

    def epsilon_at(at):
        """Return the epsilon at this delta; a bound exists only for a positive delta."""
        if at <= 0.0:
            return math.inf
        return zcdp_to_epsilon(rho, at, delta)

    return EventPrivacy(
        delta=delta,
        rho=rho,
        grouped=grouped,
        renyi=_always(divergence),
        privacy_profile=_always(profile),
        inverse=epsilon_at,
    )


@event_privacy.register
def _zcdp(e: ev.ZCDP, relation):
    """Return the privacy of a release that is only known to be delta-approximate rho-zCDP."""
    if e.rho == e.delta == 0.0:
        return claimed(0.0)

    def grouped(k):
        """Return the event with k^2 rho (Bun and Steinke 2016); None is known with a delta."""
        if e.delta > 0.0:
            return None
        return ev.ZCDP(k * k * e.rho)

    def divergence(order):
        return e.rho * order

    return _concentrated(e.rho, e.delta, grouped=grouped, divergence=divergence)


@event_privacy.register
def _composed(e: ev.Composed | ev.Repeated, relation):
    """Return the privacy of a composition; pure events are replaced by their total epsilon."""
    leaves = ev.leaves(e)
    pure = sum_up((n, privacy_of(leaf, relation).pure) for leaf, n in leaves.items())
    rho, delta = composed_zcdp(leaves, relation)
    return replace(
        pure_or_unknown(pure),
        delta=delta,
        rho=rho,
        renyi=_always(partial(composed_rdp, leaves, relation)),
    )


def composed_zcdp(
    leaves: dict[ev.Event, int], relation: Relation, k: int = 1
) -> tuple[float, float]:
    """Return the sums of the events' (rho, delta) for a group of k records."""
    if k > 1 and may_fail_with_others(leaves):
        return math.inf, 1.0
    costs = [(count, _group_zcdp(leaf, relation, k)) for leaf, count in leaves.items()]
    rho = sum_up((count, cost[0]) for count, cost in costs)
    delta = sum_up((count, cost[1]) for count, cost in costs)
    return rho, min(1.0, delta)


def _group_zcdp(leaf, relation, k):
    """Return (rho, delta) of one event for a group of k records."""
    grouped = group_event(leaf, k)
    if grouped is not None:
        privacy = privacy_of(grouped, relation)
        return privacy.rho, privacy.delta
    privacy = privacy_of(leaf, relation)
    if privacy.delta == 0.0:
        # rho grows with the square of the group (Bun and Steinke 2016).
        return k * k * privacy.rho, 0.0
    return math.inf, 1.0


def composed_rdp(leaves: dict[ev.Event, int], relation: Relation, order: float) -> float:
    """Return the sum of the events' Renyi divergences at one order."""
    return math.fsum(n * privacy_of(leaf, relation).divergence(order) for leaf, n in leaves.items())


def may_fail_with_others(leaves):
    """Return True if a composition has an `ApproximateDP` with epsilon = 0 and other events.

    Such an event represents the failure probability of a threshold on noisy counts, which hides
    values that only one record has. For a group, this probability also depends on the noise of the
    other events.
    """
    failure = any(isinstance(p, ev.ApproximateDP) and p.epsilon == 0.0 for p in leaves)
    return failure and len(leaves) > 1


def scaled(event: ev.Event, k: float) -> ev.Event:
    """Return an event with the same noise and k times the sensitivity.

    Inside a sampling event, noise is relative to the sensitivity to one added or removed record,
    which is half of that to a replaced record. Events that add no noise to a result, such as
    randomized response, have no sensitivity and are returned unchanged.
    """
    if isinstance(event, ev.Composed):
        return ev.Composed(tuple(scaled(leaf, k) for leaf in event.events))
    if isinstance(event, ev.Repeated):
        return replace(event, event=scaled(event.event, k))
    if isinstance(event, ev.ADDITIVE):
        return privacy_of(event, "add_remove").grouped(k)
    return event


def group_event(event, k):
    """Return an event for a group of k records that costs no less, or None if none is known.

    Additive noise gets k times the sensitivity. Pure DP and bounded range add up along the path of
    k changes. zCDP with delta = 0 grows by k^2 (Bun and Steinke 2016). (epsilon, delta) becomes
    (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)). Poisson-sampled noise becomes
    mixtures of shifted noise (`_mixtures`).
    """
    if k == 1:
        return event
    if isinstance(event, (ev.Composed, ev.Repeated)):
        leaves = {leaf: group_event(leaf, k) for leaf in ev.leaves(event)}
        if None in leaves.values() or may_fail_with_others(leaves):
            return None
        return ev.Composed(tuple(leaves[p] * count for p, count in ev.leaves(event).items()))
    return privacy_of(event, "add_remove").grouped(k)


def group_delta(epsilon: float, delta: float, k: int) -> float:
    """Return the delta for a group of k at k epsilon: the sum of delta e^(i epsilon) over i < k.

    The delta must be positive and epsilon finite. The result is rounded up.
    """
    if epsilon < 1e-12 and k * epsilon < 1.0:
        return min(1.0, k * delta * math.exp(k * epsilon) * UP)
    geometric = -math.expm1(-k * epsilon) / -math.expm1(-epsilon)
    log_delta = (k - 1) * epsilon + math.log(geometric) + math.log(delta)
    rounding = 2.0**-50 * (k * epsilon - math.log(delta) + 30.0)
    return math.nextafter(math.exp(min(0.0, log_delta + rounding)), 1.0)


def _atoms_delta(pair, epsilon):
    """Return delta at epsilon of a loss distribution with atoms only, rounded up."""
    # A computed loss can be below the exact one, with epsilon between the two.
    epsilon *= DOWN
    index = int(np.searchsorted(pair.losses, epsilon, side="right"))
    tail = float(pair.p[index:] @ -np.expm1(epsilon - pair.losses[index:]))
    return (pair.p_inf + tail) * ROUND_OFF


def check_neighbors(relation: Relation, group_size: int) -> None:
    """Raise ValueError unless the relation and the group size are valid."""
    check_relation(relation)
    check_integer(group_size, "group_size", 1, _MAX_GROUP_SIZE)


def zcdp(
    event: ev.Event, *, relation: Relation = "add_remove", group_size: int = 1
) -> tuple[float, float]:
    """Return the cost in approximate zero-concentrated differential privacy.

    Costs add up, even if parameters are chosen after seeing earlier results (Whitehouse et al.
    2023).

    Parameters
    ----------
    event : Event
        The event of the mechanism.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    group_size : int, default=1
        Number of records protected together; rho grows with its square.

    Returns
    -------
    rho, delta : float
        The release is delta-approximate rho-zCDP (Bun and Steinke 2016). `rho` is infinite if no
        bound is known. zCDP has no amplification by sampling: the cost of a sampled event is its
        cost without sampling, or the cost of its amplified (epsilon, delta) if that is smaller.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, zcdp
    >>> rho, delta = zcdp(Gaussian(1.0) * 4)
    >>> round(rho, 12), delta
    (2.0, 0.0)
    """
    check_neighbors(relation, group_size)
    return composed_zcdp(ev.leaves(event), relation, group_size)


def rdp(
    event: ev.Event, order: float, *, relation: Relation = "add_remove", group_size: int = 1
) -> float:
    """Return the Renyi differential privacy of an event at one order.

    Costs at one fixed order add up, even if parameters are chosen after seeing earlier results
    (Feldman and Zrnic 2021).

    Parameters
    ----------
    event : Event
        The event of the mechanism.
    order : float > 1
        The Renyi order.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    group_size : int, default=1
        Number of records protected together.

    Returns
    -------
    float
        An upper bound on the Renyi divergence of this order, in nats. It is infinite for events
        with a delta, such as `ApproximateDP`.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, rdp
    >>> round(rdp(Gaussian(2.0) * 4, 8.0), 12)
    4.0
    """
    check_within(order, "order", 1.0, ends="()")
    check_neighbors(relation, group_size)
    leaves = ev.leaves(event).items()
    costs = ((n, _group_rdp(leaf, float(order), relation, group_size)) for leaf, n in leaves)
    return sum_up(costs) * (1.0 + 2.0**-50)


def _group_rdp(leaf, order, relation, k):
    """Return the Renyi divergence of one event for a group of k records."""
    grouped = group_event(leaf, k)
    if privacy_of(grouped or leaf, relation).delta > 0.0:
        return math.inf
    if grouped is not None:
        return privacy_of(grouped, relation).divergence(order)
    return general_group_renyi(privacy_of(leaf, relation).divergence, order, k)


def general_group_renyi(divergence, order, k):
    """Return the Renyi divergence for a group of k records (Mironov 2017, proposition 2).

    A group of 2^c at an order a >= 2 costs 3^c r(2^c a).
    """
    c = math.ceil(math.log2(k))
    return 3.0**c * divergence(2.0**c * max(order, 2.0))


class NoCostError(ValueError):
    """Raised for an event without a cost in Gaussian differential privacy."""


def gdp(event: ev.Event, *, relation: Relation = "add_remove", group_size: int = 1) -> float:
    """Return the cost in Gaussian differential privacy, for a filter on the sum of mu^2.

    Parameters
    ----------
    event : Event
        A composition of Gaussian and pure events.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    group_size : int, default=1
        Number of records protected together.

    Returns
    -------
    float
        The parameter mu: 1 / noise_multiplier for a Gaussian release,
        2 Phi^-1(e^epsilon / (1 + e^epsilon)) for an epsilon-DP release (Dong, Roth and Su 2022),
        and the root of the sum of squares for several releases.

    Raises
    ------
    ValueError
        If the composition contains other events; no central-limit approximation is used.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, gdp
    >>> gdp(Gaussian(2.0) * 4)
    1.0
    """
    check_neighbors(relation, group_size)
    squares = []
    for leaf, count in ev.leaves(event).items():
        if isinstance(leaf, ev.Gaussian):
            squares.append(count * (group_size / leaf.noise_multiplier) ** 2)
            continue
        epsilon = group_size * privacy_of(leaf, relation).pure
        if epsilon == math.inf:
            raise NoCostError(f"{type(leaf).__name__} has no cost in Gaussian DP")
        squares.append(count * div.pure_mu(epsilon) ** 2)
    return math.sqrt(math.fsum(squares))
