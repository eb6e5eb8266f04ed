"""Privacy events: immutable descriptions of mechanisms, for the accountant."""

import functools
import json
import math
from dataclasses import dataclass, fields
from fractions import Fraction

from skdp.utils._json import canonical_json
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_integer, check_within
from skdp.utils._values import FrozenValue, checked

# Limits on parameters, so that neither the square of a cost nor its multiples overflow a float.
_MAX_VALUE = 1e100
_MIN_NOISE = 1e-50
_MAX_COUNT = 10**100
_MAX_SENSITIVITY = 10**40
_MAX_DEPTH = 100
_MAX_NODES = 10**7


def _number(value, name, low, high=_MAX_VALUE, ends="[]"):
    """Return a number in range as a float; the addition turns -0.0 into 0.0."""
    return check_within(value, name, low, high, ends) + 0.0


def _integer(value, name, low, high=_MAX_COUNT):
    """Return an integer in range; a float with an integer value is accepted."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return check_integer(value, name, low, high)


def check_event(event, name="event"):
    """Return the value if it is a privacy event, else raise `ValueError`."""
    if not isinstance(event, Event):
        raise ValueError(f"{name} must be a privacy event, got {type(event).__name__}")
    return event


def _check_sampled(event, name):
    """Return the event if it can be inside a sampling event, else raise `ValueError`."""
    single = (*ADDITIVE, *PURE, ApproximateDP, NonPrivate)
    for part in leaves(event):
        if not isinstance(part, single):
            raise ValueError(f"{type(part).__name__} cannot be inside a sampling event")
    merged(event)
    return event


def _check_events(events, name):
    """Return a tuple of events; raise ValueError unless all items are events."""
    try:
        return tuple(check_event(event) for event in events)
    except TypeError:
        raise ValueError(f"{name} must be a sequence, got {events!r}") from None


def _cached_hash(event):
    """Return the hash, computed once: an event can occur 2^depth times in a nested event."""
    if "_hash" not in vars(event):
        vars(event)["_hash"] = hash(event.__reduce__())
    return vars(event)["_hash"]


class Event:
    """Base class of privacy events, which describe a release for the accountant.

    ``a + b`` composes two events and ``event * n`` repeats one.

    Events are immutable, hashable values. The noise of an unsampled event (Gaussian, Laplace, pure
    DP, ...) is relative to the sensitivity of the release under the relation in use, so the event
    costs the same under both relations. Inside a sampling event, the noise of an additive
    mechanism is relative to the contribution of one record. A replacement changes a sum by up to
    twice this contribution, which the sampling event accounts for.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Laplace, get_epsilon
    >>> event = Gaussian(2.0) * 10 + Laplace(0.1)
    >>> round(get_epsilon(event, 1e-6), 2)
    8.32
    """

    def __post_init__(self):
        parts = _parts(self)
        if parts is not None:
            depth = 1 + max((getattr(part, "_depth", 0) for part in parts), default=0)
            if depth > _MAX_DEPTH:
                raise ValueError(f"event is nested {depth} deep; at most {_MAX_DEPTH} is allowed")
            nodes = 1 + sum(getattr(part, "_nodes", 1) for part in parts)
            vars(self).update(_depth=depth, _nodes=nodes)

    def __add__(self, other):
        if not isinstance(other, Event):
            return NotImplemented
        return Composed(_summands(self) + _summands(other))

    def __mul__(self, count):
        if isinstance(count, Event):
            return NotImplemented
        count = _integer(count, "count", 0)
        if count == 1:
            return self
        return Repeated(self, count)

    __rmul__ = __mul__

    def __reduce__(self):
        # Unpickling calls the constructor, because a cached hash is only valid in its process.
        return type(self), tuple(getattr(self, one.name) for one in fields(self))

    def to_json(self) -> str:
        """Return the event as canonical JSON, with the name of its type.

        Returns
        -------
        str
            JSON with sorted keys and without spaces, so equal events have equal texts.

        Raises
        ------
        ValueError
            If the event has too many parts to be written.
        """
        if getattr(self, "_nodes", 1) > _MAX_NODES:
            raise ValueError(f"event has more than {_MAX_NODES:g} parts, too long to write")
        return canonical_json(self, _as_dict)


@dataclass(frozen=True)
class _Listed(FrozenValue, Event):
    """Base class of the events in this module, which a ledger can read back.

    User-defined events cannot be read back from a ledger.
    """


@dataclass(frozen=True)
class _Nested(_Listed):
    """Base class of the events that contain other events, whose depth is limited."""

    def __post_init__(self):
        super().__post_init__()
        Event.__post_init__(self)


@dataclass(frozen=True)
class Gaussian(_Listed):
    """Gaussian noise on a release.

    Parameters
    ----------
    noise_multiplier : float
        The standard deviation of the noise divided by the L2 sensitivity, or inside a sampling
        event by the bound on the L2 norm of one record. It must be positive.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> Gaussian(1) + Gaussian(2.0)
    Composed(events=(Gaussian(noise_multiplier=1.0), Gaussian(noise_multiplier=2.0)))
    """

    noise_multiplier: float = checked(_number, low=_MIN_NOISE)


@dataclass(frozen=True)
class Laplace(_Listed):
    """Laplace noise with scale sensitivity / epsilon.

    Parameters
    ----------
    epsilon : float
        The L1 sensitivity, or inside a sampling event the bound on the L1 norm of one record,
        divided by the scale of the noise. It must be positive.

    Examples
    --------
    >>> from skdp.accounting import Laplace, get_epsilon
    >>> get_epsilon(Laplace(0.5) * 2, 0.0)
    1.0
    """

    epsilon: float = checked(_number, low=0.0, ends="(]")


@dataclass(frozen=True)
class DiscreteGaussian(_Listed):
    """One integer plus discrete Gaussian noise.

    P(x) is proportional to exp(-x^2 / (2 sigma^2)) on the integers (Canonne, Kamath and Steinke
    2020).

    Parameters
    ----------
    sigma : float
        The parameter sigma of the noise, positive.
    sensitivity : int, default=1
        The sensitivity of the integer.

    Examples
    --------
    >>> from skdp.accounting import DiscreteGaussian, get_epsilon
    >>> round(get_epsilon(DiscreteGaussian(10.0, 10), 1e-5), 2)
    4.38
    """

    sigma: float = checked(_number, low=_MIN_NOISE)
    sensitivity: int = checked(_integer, default=1, low=1, high=_MAX_SENSITIVITY)


@dataclass(frozen=True)
class DiscreteLaplace(_Listed):
    """One integer plus discrete Laplace noise.

    P(x) is proportional to exp(-abs(x) / scale) on the integers. It is (sensitivity / scale)-DP.

    Parameters
    ----------
    scale : float
        The scale of the noise, positive.
    sensitivity : int, default=1
        The sensitivity of the integer.

    Examples
    --------
    >>> from skdp.accounting import DiscreteLaplace, get_epsilon
    >>> get_epsilon(DiscreteLaplace(2.0, 1), 0.0)
    0.5
    """

    scale: float = checked(_number, low=_MIN_NOISE)
    sensitivity: int = checked(_integer, default=1, low=1, high=_MAX_SENSITIVITY)


@dataclass(frozen=True)
class RandomizedResponse(_Listed):
    """K-ary randomized response, which reports the true category with a certain probability.

    The true category is reported with probability e^epsilon / (num_categories - 1 + e^epsilon), and
    each other category with equal probability.

    The pair of two different true categories is used under both relations. It dominates the pair
    of a category and a null record, which reports uniformly.

    Parameters
    ----------
    epsilon : float
        The epsilon of the release, at least 0.
    num_categories : int, default=2
        Number of categories, at least 2.

    Examples
    --------
    >>> from skdp.accounting import RandomizedResponse, get_epsilon
    >>> get_epsilon(RandomizedResponse(1.0, 5), 0.0)
    1.0
    """

    epsilon: float = checked(_number, low=0.0)
    num_categories: int = checked(_integer, default=2, low=2)


@dataclass(frozen=True)
class ExponentialMechanism(_Listed):
    """A choice whose log-likelihood ratio has a range of at most `epsilon`.

    This is the bounded range property (Durfee and Rogers 2019). The exponential mechanism
    exp(epsilon u / (2 sensitivity)) and Gumbel noisy max have this property. Permute-and-flip, and
    noisy max with Laplace or exponential noise, do not have it: charge them as `PureDP`.

    Parameters
    ----------
    epsilon : float
        The range, at least 0.

    Examples
    --------
    >>> from skdp.accounting import ExponentialMechanism, PureDP, get_epsilon
    >>> get_epsilon(ExponentialMechanism(0.1) * 50, 1e-6) < get_epsilon(PureDP(0.1) * 50, 1e-6)
    True
    """

    epsilon: float = checked(_number, low=0.0)


@dataclass(frozen=True)
class PureDP(_Listed):
    """Any epsilon-DP release.

    Parameters
    ----------
    epsilon : float
        The epsilon, at least 0.

    Examples
    --------
    >>> from skdp.accounting import PureDP, get_epsilon
    >>> get_epsilon(PureDP(0.25) * 4, 0.0)
    1.0
    """

    epsilon: float = checked(_number, low=0.0)


@dataclass(frozen=True)
class ApproximateDP(_Listed):
    """Any (epsilon, delta)-DP release.

    Parameters
    ----------
    epsilon : float
        The epsilon, at least 0.
    delta : float
        The delta, in [0, 1].

    Examples
    --------
    >>> from skdp.accounting import ApproximateDP, get_epsilon
    >>> round(get_epsilon(ApproximateDP(0.5, 1e-6), 1e-6), 6)
    0.5
    """

    epsilon: float = checked(_number, low=0.0)
    delta: float = checked(_number, low=0.0, high=1.0)


@dataclass(frozen=True)
class ZCDP(_Listed):
    """Any delta-approximate rho-zCDP release (Bun and Steinke 2016).

    Parameters
    ----------
    rho : float
        The rho, at least 0.
    delta : float, default=0.0
        The delta of approximate zCDP, in [0, 1]; 0 is zCDP.

    Examples
    --------
    >>> from skdp.accounting import ZCDP, get_epsilon
    >>> round(get_epsilon(ZCDP(0.1), 1e-5), 6)
    1.914239
    """

    rho: float = checked(_number, low=0.0)
    delta: float = checked(_number, default=0.0, low=0.0, high=1.0)


@dataclass(frozen=True)
class NonPrivate(_Listed):
    """A release without any privacy, which has an infinite cost.

    Examples
    --------
    >>> from skdp.accounting import NonPrivate, get_epsilon
    >>> get_epsilon(NonPrivate(), 1e-6)
    inf
    """


@dataclass(frozen=True)
class PoissonSampled(_Nested):
    """A mechanism that runs on a Poisson sample of the records.

    `event` is an additive-noise, pure, approximate-DP, randomized-response or
    exponential-mechanism event, or a composition of only Gaussians or of only pure events. The
    noise of additive mechanisms is relative to the contribution of one record: under replace-one,
    the release on the sample changes by up to two contributions. Other inner events must hold for
    the change of one record in the sample under the relation in use, and for its replacement by a
    null record.

    Parameters
    ----------
    sampling_rate : float
        The probability, in [0, 1], that a record is in the sample, independently of the others.
    event : Event
        The event of the mechanism on the sample.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, PoissonSampled, get_epsilon
    >>> round(get_epsilon(PoissonSampled(0.01, Gaussian(1.0)) * 1000, 1e-5), 2)
    1.83
    """

    sampling_rate: float = checked(_number, low=0.0, high=1.0)
    event: Event = checked(_check_sampled)


@dataclass(frozen=True)
class SampledWithoutReplacement(_Nested):
    """A mechanism that runs on a sample drawn uniformly without replacement.

    Inner events are as in `PoissonSampled`. The release on the sample is always assumed to change
    by the contributions of two records (one leaves the sample, another enters). This also holds
    under add/remove, which here means a replacement by a null record: the population size is public
    and fixed. A guarantee for one null record, such as `PureDP`, is applied twice.

    Parameters
    ----------
    population_size : int
        Number of records.
    sample_size : int
        Number of records in the sample.
    event : Event
        The event of the mechanism on the sample.

    Examples
    --------
    >>> from skdp.accounting import Laplace, SampledWithoutReplacement, get_epsilon
    >>> get_epsilon(SampledWithoutReplacement(1000, 10, Laplace(0.5)), 0.0) < 0.02
    True
    """

    population_size: int = checked(_integer, low=1)
    sample_size: int = checked(_integer, low=0)
    event: Event = checked(_check_sampled)

    def __post_init__(self):
        super().__post_init__()
        _integer(self.sample_size, "sample_size", 0, self.population_size)

    @property
    def sampling_rate(self) -> float:
        """The probability that a record is in the sample."""
        return float_up(Fraction(self.sample_size, self.population_size))


@dataclass(frozen=True)
class RandomStopping(_Nested):
    """The best result of a random number of runs.

    Only the best result is released, and the number of runs stays secret (Papernot and Steinke
    2022). The number of runs follows the truncated negative binomial distribution (1 is geometric,
    0 logarithmic) or, for ``shape=inf``, the Poisson distribution.

    Parameters
    ----------
    event : Event
        The event of one run, without a delta.
    mean : float
        The mean number of runs, at least 1 for a truncated negative binomial distribution.
    shape : float, default=1.0
        The shape eta of the distribution of the number of runs, above -1 or inf.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, RandomStopping, get_epsilon
    >>> one = Gaussian(5.0)
    >>> best = get_epsilon(RandomStopping(one, mean=10.0), 1e-6)
    >>> get_epsilon(one, 1e-6) < best < get_epsilon(one * 10, 1e-6)
    True
    """

    event: Event = checked(check_event)
    mean: float = checked(_number, low=0.0, ends="(]")
    shape: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.shape != math.inf:
            vars(self)["shape"] = _number(self.shape, "shape", -1.0, ends="(]")
            _number(self.mean, "mean", 1.0)
        for part in leaves(self.event):
            inner = part
            if is_sampled(part):
                inner = merged(part.event)
            if getattr(part, "delta", 0.0) > 0.0 or getattr(inner, "delta", 0.0) > 0.0:
                raise ValueError(
                    "event of RandomStopping must have a Renyi bound, so no delta, got "
                    f"{type(part).__name__}"
                )


@dataclass(frozen=True)
class Composed(_Nested):
    """Several releases, in any order.

    Parameters
    ----------
    events : tuple of Event
        The releases.

    Examples
    --------
    >>> from skdp.accounting import Composed, Gaussian, Laplace
    >>> Composed((Gaussian(1.0), Laplace(0.1))) == Gaussian(1.0) + Laplace(0.1)
    True
    """

    events: tuple[Event, ...] = checked(_check_events)

    __hash__ = _cached_hash


@dataclass(frozen=True)
class Repeated(_Nested):
    """Independent repetitions of an event.

    Parameters
    ----------
    event : Event
        The event of one repetition.
    count : int
        Number of repetitions, at least 0.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Repeated
    >>> Gaussian(1.0) * 3 == Repeated(Gaussian(1.0), 3)
    True
    """

    event: Event = checked(check_event)
    count: int = checked(_integer, low=0)

    __hash__ = _cached_hash


_LISTED = {*_Listed.__subclasses__(), *_Nested.__subclasses__()} - {_Nested}
_CLASSES = {cls.__name__: cls for cls in _LISTED}


@dataclass(frozen=True)
class SampledGroup(FrozenValue, Event):
    """A Poisson-sampled event for a group of records that change together.

    It is used only to compute costs. A ledger stores the event for one record.

    Parameters
    ----------
    event : PoissonSampled
        Sampled Gaussian or Laplace noise, relative to the contribution of one record.
    size : int
        The largest number of records in the group.
    """

    event: PoissonSampled
    size: int


ADDITIVE = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace)
PURE = (Laplace, DiscreteLaplace, RandomizedResponse, ExponentialMechanism, PureDP)


def is_sampled(event: Event) -> bool:
    """Return True for a Poisson-sampled event and for an event sampled without replacement."""
    return isinstance(event, (PoissonSampled, SampledWithoutReplacement))


def _summands(event):
    """Return the events of a composition, or a tuple with the event itself."""
    if isinstance(event, Composed):
        return event.events
    return (event,)


def _parts(event):
    """Return the events inside an event, or None if its class has none."""
    if isinstance(event, Composed):
        return event.events
    if hasattr(event, "event"):
        return (event.event,)
    return None


def leaves(event: Event) -> dict[Event, int]:
    """Return the distinct uncomposed events with their counts, in a canonical order.

    An object that occurs in several places is counted once and then multiplied.
    """
    counts = _count_leaves(event, {})
    if any(count > _MAX_COUNT for count in counts.values()):
        raise ValueError(f"event is repeated more than {float(_MAX_COUNT):g} times")
    if len(counts) < 2:
        return dict(counts)
    return {leaf: counts[leaf] for leaf in sorted(counts, key=_sort_key)}


def _count_leaves(event, cache):
    """Return the numbers of uncomposed events; `cache` maps ids of visited events to theirs.

    The key is the id, because a lookup by equality would compare equal events of any depth. All
    visited events are alive during the call, so their ids differ.
    """
    if not isinstance(event, (Composed, Repeated)):
        return {check_event(event): 1}
    if id(event) not in cache:
        counts = {}
        cache[id(event)] = counts
        times = 1
        if isinstance(event, Repeated):
            times = event.count
        if times == 0:
            return counts
        for part in _parts(event):
            for leaf, count in _count_leaves(part, cache).items():
                counts[leaf] = counts.get(leaf, 0) + times * count
    return cache[id(event)]


def _sort_key(event):
    """Return a key that orders events by class, then by parameters or JSON."""
    values = vars(event).values()
    has_only_numbers = all(isinstance(value, (int, float)) for value in values)
    parameters = event.to_json()
    if has_only_numbers:
        parameters = tuple(values)
    return (type(event).__name__, has_only_numbers, parameters)


def gaussian_mu(counts: dict[Event, int]) -> float | None:
    """Return mu for a composition of Gaussians, rounded up; None if there are other events.

    See Dong, Roth and Su 2022, corollary 3.3. A single mu is not rounded.
    """
    gaussians = {event: n for event, n in counts.items() if isinstance(event, Gaussian)}
    if not counts or len(gaussians) < len(counts):
        return None
    if sum(gaussians.values()) == 1:
        return 1.0 / next(iter(gaussians)).noise_multiplier
    precision = math.fsum(n / event.noise_multiplier**2 for event, n in gaussians.items())
    return math.sqrt(precision) * (1.0 + 2.0**-50)


def merged(event: Event) -> Event:
    """Return a composition of only Gaussians or only pure events as one event.

    Other compositions raise ValueError.
    """
    counts = leaves(event)
    if len(counts) == 1 and next(iter(counts.values())) == 1:
        return next(iter(counts))
    mu = gaussian_mu(counts)
    if mu is not None:
        return Gaussian(1.0 / mu)
    if all(isinstance(leaf, PURE) for leaf in counts):
        return Composed(tuple(leaf * count for leaf, count in counts.items()))
    raise ValueError(
        "a sampled composition must be of Gaussian events alone or of pure events alone, got "
        + ", ".join(sorted({type(leaf).__name__ for leaf in counts}))
    )


def _as_dict(event):
    """Return the JSON object of an event; "inf" replaces infinity, which JSON does not have."""
    values = {"type": type(event).__name__}
    for one in fields(event):
        value = getattr(event, one.name)
        if value == math.inf:
            value = "inf"
        values[one.name] = value
    return values


def _event_from_pairs(pairs):
    """Return the event of a JSON object whose inner events have already been read."""
    values = dict(pairs)
    class_name = values.pop("type", None)
    if class_name not in _CLASSES:
        raise ValueError(f"unknown event type {class_name!r}")
    names = [one.name for one in fields(_CLASSES[class_name])]
    if sorted(name for name, _ in pairs) != sorted([*names, "type"]):
        raise ValueError(f"wrong fields for {class_name}: {sorted(values)}")
    for name, value in values.items():
        if value == "inf":
            values[name] = math.inf
    return _CLASSES[class_name](**values)


def event_from_json(text: str) -> Event:
    """Return the event of a text that `Event.to_json` wrote.

    Parameters
    ----------
    text : str
        Canonical JSON of an event.

    Returns
    -------
    Event

    Raises
    ------
    ValueError
        If the text is not the JSON of an event, or a parameter is out of range.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, event_from_json
    >>> event_from_json((Gaussian(1.5) * 3).to_json())
    Repeated(event=Gaussian(noise_multiplier=1.5), count=3)
    """
    try:
        return check_event(json.loads(text, object_pairs_hook=_event_from_pairs), "text")
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"not the JSON of an event: {error}") from None
    except RecursionError:
        raise ValueError(f"event is nested more than {_MAX_DEPTH} deep") from None


# A cache is safe, because equal texts give equal events and events are immutable.
cached_event_from_json = functools.lru_cache(maxsize=4096)(event_from_json)


def readable_json(event):
    """Return the JSON of an event, after a check that a ledger reads it back as an equal event.

    Raises
    ------
    ValueError
        For a user-defined event, or one whose attributes were changed after construction.
    """
    if not isinstance(event, Event):
        check_event(event)
    try:
        return _readable_json(event)
    except (AttributeError, RecursionError, TypeError) as error:
        raise ValueError(f"a ledger could not read this event: {error}") from error


# A cache is safe, because equal events have equal texts. A charge needs the text twice: to check
# the event and to write the record.
@functools.lru_cache(maxsize=4096)
def _readable_json(event):
    """Return the JSON of an event that was read back as an equal event; see `readable_json`."""
    text = event.to_json()
    try:
        read = cached_event_from_json(text)
    except ValueError as error:
        raise ValueError(f"a ledger could not read this event: {error}") from error
    if read != event:
        raise ValueError(f"a ledger would read this event back as another one: {read}")
    return text
