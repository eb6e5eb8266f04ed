"""Upper bounds on epsilon and delta for an event, by all composition methods."""

import math
from fractions import Fraction
from functools import lru_cache, partial

from scipy.optimize import brentq, minimize_scalar

from skdp.accounting import _advanced, _conversions, _gaussian, _pld
from skdp.accounting import _events as ev
from skdp.accounting._fewer import contains_group, with_fewer_events
from skdp.accounting._gaussian import round_to_safe
from skdp.accounting._laws import (
    check_neighbors,
    composed_zcdp,
    group_delta,
    group_event,
    privacy_of,
)
from skdp.accounting._rdp import rdp_delta, rdp_epsilon
from skdp.accounting._sampled import whole_sample
from skdp.utils._rounding import sum_up
from skdp.utils._types import Method, Relation
from skdp.utils._validation import check_choice, check_positive, check_within

# Tolerance of the one-record bounds from which the general bound for a group is computed.
_GROUP_TOLERANCE = 1e-3

# Maximum number of distinct events in the general bound for a group. If there are more, they are
# rounded to common events.
MAX_DISTINCT_IN_SEARCH = 48

# Smallest delta to which an epsilon is inverted; smaller ones are rounded up to it.
_MIN_INVERTED_DELTA = 1e-300
METHODS = ("auto", "basic", "advanced", "zcdp", "rdp", "pld")

# With more releases, the trade-off is searched with a rough tolerance and few iterations. An
# unlimited search computes about eighty prices, each of which takes up to half a second. Any point
# of the search gives a valid bound.
_MANY_RELEASES = 10**6
_ROUGH_TOLERANCE = 1e-2
_ROUGH_ITERATIONS = 8
# For groups with more records than this and for many releases, the group's delta is computed only
# from its mixtures; the general bound would have to be computed about fifty times.
_LARGE_GROUP = 16

# Products of smaller deltas underflow.
MIN_DELTA = 1e-290


def has_loss_distribution(leaves, relation):
    """Return True if the privacy loss distribution of every event is known."""
    return all(privacy_of(leaf, relation).pairs is not None for leaf in leaves)


def _is_exact(leaves, relation):
    """Return True if the exact privacy profile is known: for Gaussians, and for a single event.

    The profile of a single event with a known loss distribution is exact (`EventPrivacy`), and its
    epsilon is computed in closed form or by inverting the profile. `RandomStopping` is excepted,
    because its loss distribution is that of any pure release. For several events that are not
    all Gaussian, the loss distributions would have to be composed on a grid, which only gives
    bounds.
    """
    if ev.gaussian_mu(leaves) is not None:
        return True
    is_single = sum(leaves.values()) == 1 and not isinstance(next(iter(leaves)), ev.RandomStopping)
    return is_single and has_loss_distribution(leaves, relation)


def _single_epsilon(leaf, delta, relation):
    """Return the smallest known epsilon at delta of one release; RDP is also tried if inexact."""
    bound = privacy_of(leaf, relation).epsilon_at(delta)
    if not _is_exact({leaf: 1}, relation):
        bound = min(bound, rdp_epsilon({leaf: 1}, delta, relation))
    return bound


def _split_delta(leaves, delta, relation):
    """Split delta among the events: each receives its delta, or an equal part of the rest.

    Returns
    -------
    deltas : dict
        Maps events to their deltas.
    is_enough : bool
        False if the deltas of the events alone exceed delta.
    """
    event_deltas = {leaf: privacy_of(leaf, relation).delta for leaf in leaves}
    fixed = sum(n * Fraction(event_deltas[leaf]) for leaf, n in leaves.items())
    without_epsilon = {leaf for leaf in leaves if privacy_of(leaf, relation).epsilon == math.inf}
    total = sum(leaves[leaf] for leaf in without_epsilon)
    equal_part = 0.0
    if total:
        equal_part = float(max(0, Fraction(delta) - fixed)) * (1.0 - 1e-15) / total
    deltas = dict(event_deltas)
    for leaf in without_epsilon:
        deltas[leaf] += equal_part
    return deltas, fixed <= delta


def _basic(leaves, delta, relation):
    """Return the epsilon of basic composition."""
    if sum(leaves.values()) == 1:
        return _single_epsilon(next(iter(leaves)), delta, relation)
    deltas, is_enough = _split_delta(leaves, delta, relation)
    if not is_enough:
        return math.inf
    return sum_up((n, _single_epsilon(p, deltas[p], relation)) for p, n in leaves.items())


def _advanced_bound(leaves, delta, relation):
    """Return the epsilon of advanced composition.

    Two splits are tried: each event at its delta, and half of delta split among the events.
    """
    event_deltas = {leaf: privacy_of(leaf, relation).delta for leaf in leaves}
    best = math.inf
    splits = [event_deltas]
    half_split, is_enough = _split_delta(leaves, 0.5 * delta, relation)
    if is_enough:
        splits.append(half_split)
    for deltas in splits:
        costs = [(_single_epsilon(p, deltas[p], relation), deltas[p], n) for p, n in leaves.items()]
        if all(epsilon < math.inf for epsilon, _, _ in costs):
            best = min(best, _advanced.advanced_epsilon(costs, delta))
            if len(costs) == 1:
                epsilon, delta0, count = costs[0]
                best = min(best, _advanced.optimal_epsilon(epsilon, count, delta, delta0))
    return best


def _zcdp_bound(leaves, delta, relation, k=1):
    """Return the epsilon that zCDP implies for a group of k records."""
    rho, rho_delta = composed_zcdp(leaves, relation, k)
    return _conversions.zcdp_to_epsilon(rho, delta, rho_delta)


def _gaussian_and_others(leaves, delta, relation):
    """Return the joint epsilon of all Gaussians plus the sum of the other epsilons.

    It is infinite if there is no Gaussian, because `_basic` then gives the same sum, and if the
    other events have an infinite epsilon or use more than delta.
    """
    gaussians = {leaf: n for leaf, n in leaves.items() if isinstance(leaf, ev.Gaussian)}
    others = {leaf: n for leaf, n in leaves.items() if leaf not in gaussians}
    others_epsilon = sum_up((n, privacy_of(leaf, relation).epsilon) for leaf, n in others.items())
    others_delta = sum_up((n, privacy_of(leaf, relation).delta) for leaf, n in others.items())
    # The factor rounds down the difference, which must not exceed the part of delta that is left.
    delta_left = (delta - others_delta) * (1.0 - 1e-15)
    if not gaussians or others_epsilon == math.inf or delta_left < 0.0:
        return math.inf
    gaussian_epsilon = _gaussian.gdp_to_epsilon(ev.gaussian_mu(gaussians), delta_left)
    return sum_up([(1, others_epsilon), (1, gaussian_epsilon)])


def _require_loss_distribution(leaves, relation):
    """Raise ValueError unless the loss distribution of every event is known."""
    if not has_loss_distribution(leaves, relation):
        names = sorted({type(leaf).__name__ for leaf in leaves})
        raise ValueError(
            "no privacy loss distribution is known for a composition of "
            f"{', '.join(names)}; use method='auto', 'rdp' or 'zcdp'"
        )


def _pld_bound(leaves, delta, relation, tolerance):
    """Return epsilon computed from privacy loss distributions, or from RDP if that is smaller.

    A loss distribution can be looser than the Renyi divergences: the exponential mechanism has a
    pair with the largest profile of its two-point pairs, and a random number of pure runs has the
    pair of an arbitrary pure release. In addition, the method returns no finite epsilon for more
    than 1e9 releases, or if the losses are too large for a grid.
    """
    exact = _exact_epsilon(leaves, delta, relation)
    if exact is not None:
        return exact
    bound = rdp_epsilon(leaves, delta, relation)
    if delta == 0.0 or sum(leaves.values()) == 1:
        return min(bound, _basic(leaves, delta, relation))
    return min(bound, _pld.pld_epsilon(leaves, delta, relation, tolerance))


def _exact_epsilon(leaves, delta, relation):
    """Return the exact epsilon of Gaussians or of a single event, else None; see `_is_exact`."""
    mu = ev.gaussian_mu(leaves)
    if mu is not None:
        return _gaussian.gdp_to_epsilon(mu, delta)
    if _is_exact(leaves, relation):
        return _basic(leaves, delta, relation)
    return None


_BOUNDS = {"basic": _basic, "advanced": _advanced_bound, "zcdp": _zcdp_bound}


def _without_full_samples(counts, relation):
    """Return the number of times of each event, with sampling events of rate 1 replaced.

    A sample of all records hides nothing. The events inside it have the same price and can be
    composed with others: Gaussians exactly.

    Parameters
    ----------
    counts : iterable of (Event, int)
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    dict of Event to int
    """
    merged = {}
    for event, count in counts:
        for leaf, times in ev.leaves(whole_sample(event, relation)).items():
            merged[leaf] = merged.get(leaf, 0) + count * times
    return merged


def _leaf_counts(event):
    """Return the distinct uncomposed events with their counts as a tuple, which can be hashed."""
    return tuple(ev.leaves(event).items())


# The cache helps because calibration, every fit of a plan and the ledger compute the same costs
# repeatedly.
@lru_cache(maxsize=1024)
def _epsilon(counts, delta, relation, method, tolerance):
    """Return the upper bound on epsilon for one record; `counts` are the pairs of `_leaf_counts`.

    Parameters
    ----------
    counts : tuple of (Event, int)
    delta, relation, method, tolerance
        As in `get_epsilon`, which has checked them.
    """
    if not counts or delta >= 1.0:
        return 0.0
    if any(_is_non_private(leaf) for leaf, _ in counts):
        return math.inf
    leaves = _without_full_samples(counts, relation)
    fewer = with_fewer_events(leaves)
    if delta > 0.0 and any(map(contains_group, leaves)):
        # Pricing a single event is also slow.
        leaves = fewer
    if method == "pld":
        _require_loss_distribution(leaves, relation)
        # At delta = 0 the largest loss counts, so parameters are not rounded.
        pld_parts = fewer
        if delta == 0.0:
            pld_parts = leaves
        return _pld_bound(pld_parts, delta, relation, tolerance)
    if method == "rdp":
        return rdp_epsilon(fewer, delta, relation)
    if method != "auto":
        return _BOUNDS[method](leaves, delta, relation)
    # At delta = 0, the bounds below include the exact epsilon: Gaussians have none, and basic
    # composition returns that of a single event.
    if delta > 0.0:
        exact = _exact_epsilon(leaves, delta, relation)
        if exact is not None:
            return exact
    bounds = [bound(leaves, delta, relation) for bound in _BOUNDS.values()]
    bounds.append(rdp_epsilon(fewer, delta, relation))
    bounds.append(_gaussian_and_others(leaves, delta, relation))
    if delta > 0.0 and sum(leaves.values()) > 1 and has_loss_distribution(leaves, relation):
        bounds.append(_pld.pld_epsilon(fewer, delta, relation, tolerance))
    return min(bounds)


def _is_non_private(leaf):
    """Return True for `NonPrivate`, and for events that run it with positive probability."""
    if not hasattr(leaf, "event"):
        return isinstance(leaf, ev.NonPrivate)
    runs = getattr(leaf, "sampling_rate", 1.0) > 0.0
    return runs and any(map(_is_non_private, ev.leaves(leaf.event)))


def _check(event, relation, method, tolerance, group_size):
    """Raise `ValueError` unless the arguments, which `get_epsilon` describes, are valid."""
    ev.check_event(event)
    check_neighbors(relation, group_size)
    check_positive(tolerance, "tolerance")
    check_choice(method, "method", METHODS)


def get_epsilon(
    event: ev.Event,
    delta: float,
    *,
    relation: Relation = "add_remove",
    method: Method = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Return an upper bound on epsilon at delta.

    Parameters
    ----------
    event : Event
        The event of the mechanism, whose parameters were fixed beforehand.
    delta : float in [0, 1]
        The delta.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        The composition method. "auto" is the smallest of all bounds that apply.
    tolerance : float, default=1e-4
        The accuracy of numerical bounds, relative to min(1, epsilon).
    group_size : int, default=1
        Number of records protected together.

    Returns
    -------
    float
        The epsilon, rounded up; infinite if no finite bound holds.

    Raises
    ------
    ValueError
        If an argument is out of range, or if `method` is "pld" and an event has no known
        privacy loss distribution (`ZCDP`, most `RandomStopping`).

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Laplace, get_epsilon
    >>> get_epsilon(Laplace(1.0), 0.0)
    1.0
    >>> round(get_epsilon(Gaussian(1.0), 1e-5), 6)
    4.377178
    """
    _check(event, relation, method, tolerance, group_size)
    delta = check_within(delta, "delta", 0.0, 1.0)
    if group_size == 1:
        return _epsilon(_leaf_counts(event), delta, relation, method, tolerance)
    return _group_epsilon(_leaf_counts(event), delta, relation, method, tolerance, int(group_size))


@lru_cache(maxsize=1024)
def _group_epsilon(counts, delta, relation, method, tolerance, k):
    """Return an upper bound on epsilon at delta for a group of k records.

    It is the smallest of up to four bounds: the epsilon of an event that describes the release for
    a group, if there is one; with delta = 0, k times the epsilon of one record; the bound that zCDP
    implies; and the general bound for any (epsilon, delta)-DP release.
    """
    event = ev.Composed(tuple(leaf * n for leaf, n in counts))
    bounds = [math.inf]
    grouped = group_event(event, k)
    if grouped is not None:
        bounds.append(_epsilon(_leaf_counts(grouped), delta, relation, method, tolerance))
    if delta == 0.0:
        # k records cost k times as much as one (Dwork and Roth 2014, theorem 2.2).
        single = _epsilon(counts, 0.0, relation, method, tolerance)
        if single < math.inf:
            bounds.append(sum_up([(k, single)]))
    if method in ("auto", "zcdp"):
        bounds.append(_zcdp_bound(dict(counts), delta, relation, k))
    # The search for a good delta of one record computes many bounds, so each is less accurate.
    tolerance = max(tolerance, _GROUP_TOLERANCE)
    if delta == 0.0:
        use_general = False
    elif grouped is None:
        use_general = True
    else:
        # The general bound can be smaller only if the event of the group has a `SampledGroup`: its
        # output is a mixture over the number of the group's records that a batch draws, for which
        # only an upper bound is computed.
        is_mixture = any(map(contains_group, ev.leaves(grouped)))
        use_general = is_mixture and not _is_general_bound_above(
            min(bounds), counts, delta, relation, method, tolerance, k
        )
    if use_general:
        # The search computes about 30 bounds for one record, each from all distinct events.
        fewer = with_fewer_events(dict(counts), MAX_DISTINCT_IN_SEARCH)
        counts = tuple(fewer.items())
        bounds.append(_general_group_epsilon(counts, delta, relation, method, tolerance, k))
    return min(bounds)


def _is_general_bound_above(bound, counts, delta, relation, method, tolerance, k):
    """Return True if the general bound on a group is proved to be at least another bound.

    The general bound is k times the epsilon of one record at some delta of at most delta / k. The
    epsilon at delta / k is a lower bound on this epsilon. It implies a delta for the group, which
    gives a smaller delta for one record and a better lower bound, and so on.
    """
    if bound == math.inf:
        return False
    record_delta = delta / k
    for _ in range(4):
        record_epsilon = _epsilon(counts, record_delta, relation, method, tolerance)
        if k * record_epsilon >= bound:
            return True
        total_delta = group_delta(record_epsilon, record_delta, k)
        if total_delta <= delta * (1.0 + 1e-3):
            return False
        record_delta *= delta / total_delta
        if record_delta < MIN_DELTA:
            return False
    return False


def _general_group_epsilon(counts, delta, relation, method, tolerance, k):
    """Return k epsilon for one record, at the largest delta whose group delta is at most delta."""
    searches = [(method, 24)]
    if method in ("auto", "pld"):
        # These are slow, so a quick search narrows the interval first.
        searches = [("rdp", 24), (method, 8)]
    log_high = math.log(delta / k)
    best = math.inf
    low = log_high - 600.0
    high = log_high
    for name, steps in searches:
        for _ in range(steps):
            middle = 0.5 * (low + high)
            single = math.exp(max(middle, -700.0))
            value = _epsilon(counts, single, relation, name, tolerance)
            if value < math.inf and group_delta(value, single, k) <= delta:
                best = min(best, k * value)
                low = middle
            else:
                high = middle
        high = log_high
    return best


def get_delta(
    event: ev.Event,
    epsilon: float,
    *,
    relation: Relation = "add_remove",
    method: Method = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Return an upper bound on delta at epsilon.

    Parameters
    ----------
    event : Event
        The event of the mechanism, whose parameters were fixed beforehand.
    epsilon : float
        The epsilon, at least 0.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        As in `get_epsilon`.
    tolerance : float, default=1e-4
        As in `get_epsilon`.
    group_size : int, default=1
        Number of records protected together.

    Returns
    -------
    float
        The delta in [0, 1], rounded up. It is 0 only if the mechanism's loss never exceeds epsilon.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, get_delta
    >>> round(get_delta(Gaussian(1.0), 1.0), 6)
    0.126937
    """
    _check(event, relation, method, tolerance, group_size)
    target = check_within(epsilon, "epsilon", 0.0)
    counts = _leaf_counts(event)
    if group_size == 1:
        return _delta(counts, target, relation, method, tolerance)
    grouped = group_event(event, int(group_size))
    bound = 1.0
    if grouped is not None:
        bound = _delta(_leaf_counts(grouped), target, relation, method, tolerance)
        n_releases = sum(count for _, count in counts)
        is_slow = any(map(contains_group, ev.leaves(grouped)))
        if is_slow and group_size > _LARGE_GROUP and n_releases > _MANY_RELEASES:
            return bound

    def epsilon_at(delta):
        return _group_epsilon(counts, delta, relation, method, tolerance, int(group_size))

    return _inverted_delta(epsilon_at, target, bound)


@lru_cache(maxsize=1024)
def _delta(counts, target, relation, method, tolerance):
    """Return the upper bound on delta for one record; `counts` are the pairs of `_leaf_counts`.

    It is the smallest bound of the method, or of all methods for "auto". Methods that only bound
    epsilon are inverted. The other parameters are those of `get_delta`; `target` is epsilon.
    """
    if any(_is_non_private(leaf) for leaf, _ in counts):
        return 1.0
    if not counts or target == math.inf:
        return 0.0
    leaves = _without_full_samples(counts, relation)
    if method == "pld":
        _require_loss_distribution(leaves, relation)
    if method in ("auto", "pld"):
        exact = _exact_delta(leaves, target, relation)
        if exact is not None:
            return exact
    best = 1.0
    fewer = with_fewer_events(leaves)
    if any(map(contains_group, leaves)):
        leaves = fewer
    if method in ("auto", "zcdp"):
        rho, rho_delta = composed_zcdp(leaves, relation)
        best = min(best, _conversions.zcdp_to_delta(rho, target, rho_delta))
    if method in ("auto", "rdp", "pld"):
        best = min(best, rdp_delta(fewer, target, relation))
    if method in ("auto", "pld") and has_loss_distribution(leaves, relation):
        best = min(best, _pld_delta(fewer, target, relation, tolerance))
    by_epsilon = {"basic": _basic, "advanced": _advanced_bound, "auto": _gaussian_and_others}
    for name, bound in by_epsilon.items():
        if method in ("auto", name):
            best = _inverted_delta(_epsilon_curve(bound, leaves, relation), target, best)
    return best


def _epsilon_curve(bound, leaves, relation):
    """Return a function that maps deltas to a bound on epsilon."""

    def epsilon_at(delta):
        return bound(leaves, delta, relation)

    return epsilon_at


def _exact_delta(leaves, target, relation):
    """Return the exact delta of Gaussians or of a single event, else None; see `_is_exact`."""
    mu = ev.gaussian_mu(leaves)
    if mu is not None:
        return _gaussian.delta_of_mu(mu, target)
    if _is_exact(leaves, relation):
        return privacy_of(next(iter(leaves)), relation).privacy_profile()(target)
    return None


def _pld_delta(leaves, target, relation, tolerance):
    """Return delta computed from privacy loss distributions, without a grid for one event."""
    if sum(leaves.values()) == 1:
        return privacy_of(next(iter(leaves)), relation).privacy_profile()(target)
    return _pld.pld_delta(leaves, target, relation, tolerance)


def _inverted_delta(epsilon_at, target, bound=1.0):
    """Return a delta whose epsilon is at most the target, close to the smallest one.

    The result is at most `bound`, another upper bound on delta.
    """
    if bound == 0.0 or epsilon_at(0.0) <= target:
        return 0.0
    if bound <= _MIN_INVERTED_DELTA:
        return bound
    if epsilon_at(bound * (1.0 - 1e-9)) > target:
        return bound

    def gap(log_delta):
        """Return epsilon minus the target at a delta, which has the sign that `brentq` needs."""
        excess = epsilon_at(math.exp(log_delta)) - target
        # An excess of 0 counts as negative, so that the search continues with smaller deltas.
        if excess > 0.0:
            return min(excess, 1e9)
        return min(excess, -1e-300)

    def is_safe(log_delta):
        """Return True if the epsilon at a delta is at most the target."""
        return gap(log_delta) <= 0.0

    low = math.log(_MIN_INVERTED_DELTA)
    high = math.log(bound)
    if gap(low) <= 0.0:
        return _MIN_INVERTED_DELTA
    root = high
    if gap(high) < 0.0:
        root = brentq(gap, low, high, xtol=1e-11, disp=False)
    root = round_to_safe(is_safe, root, 1e-13)
    return min(bound, math.exp(root))


def trade_off(
    event: ev.Event,
    alpha: float,
    *,
    relation: Relation = "add_remove",
    method: Method = "auto",
    tolerance: float = 1e-4,
    group_size: int = 1,
) -> float:
    """Return a lower bound on the false-negative rate of tests with false-positive rate alpha.

    f(alpha) is the maximum of 1 - delta(epsilon) - e^epsilon alpha and
    e^-epsilon (1 - delta(epsilon) - alpha) over epsilon >= 0 (Dong, Roth and Su 2022,
    proposition 2.12).

    Parameters
    ----------
    event : Event
        The event of the mechanism, whose parameters were fixed beforehand.
    alpha : float
        The false-positive rate, in [0, 1].
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring tables.
    method : {"auto", "basic", "advanced", "zcdp", "rdp", "pld"}, default="auto"
        As in `get_epsilon`.
    tolerance : float, default=1e-4
        As in `get_epsilon`.
    group_size : int, default=1
        Number of records protected together.

    Returns
    -------
    float
        The false-negative rate, rounded down.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, trade_off
    >>> round(trade_off(Gaussian(1.0), 0.05), 4)
    0.7405
    """
    check_within(alpha, "alpha", 0.0, 1.0)
    _check(event, relation, method, tolerance, group_size)
    max_iterations = 500
    if sum(ev.leaves(event).values()) > _MANY_RELEASES:
        tolerance = max(tolerance, _ROUGH_TOLERANCE)
        max_iterations = _ROUGH_ITERATIONS
    delta_at = partial(
        get_delta,
        event,
        relation=relation,
        method=method,
        tolerance=tolerance,
        group_size=group_size,
    )
    epsilon_at = partial(
        get_epsilon,
        event,
        relation=relation,
        method=method,
        tolerance=tolerance,
        group_size=group_size,
    )

    def first(epsilon):
        return 1.0 - delta_at(epsilon) - math.exp(epsilon) * alpha

    def second(epsilon):
        return math.exp(-epsilon) * (1.0 - delta_at(epsilon) - alpha)

    second_end = min(700.0, epsilon_at(0.0), epsilon_at(1e-9))
    # Delta decreases in epsilon, so no point of the search exceeds this value.
    if 1.0 - delta_at(second_end) - alpha <= 0.0:
        return 0.0
    first_end = second_end
    if alpha > 0.0:
        # Above -ln(alpha), e^epsilon alpha exceeds 1.
        first_end = min(second_end, -math.log(alpha))
    best_first = _maximum(first, first_end, max_iterations)
    return max(0.0, best_first, _maximum(second, second_end, max_iterations))


def _maximum(function, high, max_iterations):
    """Return the maximum of a function on [0, high]; a smaller value is a valid bound too."""

    def negative(epsilon):
        return -function(epsilon)

    options = {"maxiter": max_iterations}
    result = minimize_scalar(negative, bounds=(0.0, high), method="bounded", options=options)
    return max(-float(result.fun), function(0.0), function(high))
