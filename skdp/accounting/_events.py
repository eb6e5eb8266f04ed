"""Privacy events: immutable values that say what was released and with what noise."""

import functools
import json
import math
from dataclasses import dataclass, fields
from fractions import Fraction

from skdp.utils._json import canonical_json
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_integer, check_within
from skdp.utils._values import FrozenValue, checked

# Within these limits neither the square of a cost nor its multiples leave the range of floats.
_LARGEST = 1e100
_LEAST_NOISE = 1e-50
_MAX_COUNT = 10**100
_MAX_SENSITIVITY = 10**40
_MAX_DEPTH = 100
_MAX_NODES = 10**7


def _number(value, name, low, high=_LARGEST, ends="[]"):
    return check_within(value, name, low, high, ends) + 0.0


def _integer(value, name, low, high=_MAX_COUNT):
    whole = isinstance(value, float) and value.is_integer()
    return check_integer(int(value) if whole else value, name, low, high)


def check_event(event, name="event"):
    """Return a privacy event, or raise `ValueError`."""
    if not isinstance(event, Event):
        raise ValueError(f"{name} must be a privacy event, got {type(event).__name__}")
    return event


def _check_sampled(event, name):
    single = (*ADDITIVE, *PURE, ApproximateDP, NonPrivate)
    for part in leaves(event):
        if not isinstance(part, single):
            raise ValueError(f"{type(part).__name__} cannot be inside a sampling event")
    merged(event)
    return event


def _check_events(events, name):
    try:
        return tuple(check_event(event) for event in events)
    except TypeError:
        raise ValueError(f"{name} must be a sequence, got {events!r}") from None


def _cached_hash(event):
    """The hash, computed once: a part that occurs twice in every level is one of 2^depth."""
    if "_hash" not in vars(event):
        vars(event)["_hash"] = hash(event.__reduce__())
    return vars(event)["_hash"]


class Event:
    """What a release is, for the accountant: a privacy event.

    ``a + b`` composes two and ``event * n`` repeats one.

    Events are immutable, hashable values. A plain event (Gaussian, Laplace, pure DP, ...)
    states its noise relative to the release's sensitivity under the relation in use, so it
    costs the same under either relation. Inside a sampling event the noise of an additive
    mechanism is relative to the contribution of one record, which replacing a record can
    move by twice that amount; the sampling event accounts for it.

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
                raise ValueError(f"events may be nested {_MAX_DEPTH} deep, not deeper")
            nodes = 1 + sum(getattr(part, "_nodes", 1) for part in parts)
            vars(self).update(_depth=depth, _nodes=nodes)

    def __add__(self, other):
        if not isinstance(other, Event):
            return NotImplemented
        one, two = (e.events if isinstance(e, Composed) else (e,) for e in (self, other))
        return Composed(one + two)

    def __mul__(self, count):
        if isinstance(count, Event):
            return NotImplemented
        count = _integer(count, "count", 0)
        return self if count == 1 else Repeated(self, count)

    __rmul__ = __mul__

    def __reduce__(self):
        # By the constructor: a cached hash holds in its own process only.
        return type(self), tuple(getattr(self, one.name) for one in fields(self))

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, the type's name inside.

        Returns
        -------
        str
            With sorted keys and without spaces, so that equal events have equal texts.

        Raises
        ------
        ValueError
            If the event has too many parts to be written.
        """
        if getattr(self, "_nodes", 1) > _MAX_NODES:
            raise ValueError(f"an event of more than {_MAX_NODES:g} events is too long to write")
        return canonical_json(self, _as_dict)


@dataclass(frozen=True)
class _Listed(FrozenValue, Event):
    """The events of this file, which a ledger can read, in any process.

    It cannot read those that a program adds, which are what they say themselves.
    """

    def __post_init__(self):
        super().__post_init__()
        Event.__post_init__(self)


@dataclass(frozen=True)
class Gaussian(_Listed):
    """Gaussian noise on a release.

    `noise_multiplier` is its standard deviation over the release's L2 sensitivity (inside a
    sampling event: over the norm bound of one record).

    Parameters
    ----------
    noise_multiplier : float
        The noise's standard deviation over the sensitivity, positive.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> Gaussian(1) + Gaussian(2.0)
    Composed(events=(Gaussian(noise_multiplier=1.0), Gaussian(noise_multiplier=2.0)))
    """

    noise_multiplier: float = checked(_number, low=_LEAST_NOISE)


@dataclass(frozen=True)
class Laplace(_Listed):
    """Laplace noise of scale sensitivity / epsilon.

    The sensitivity is that in L1 (inside a sampling event: the L1 norm bound of one record).

    Parameters
    ----------
    epsilon : float
        The sensitivity over the noise's scale, positive.

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
        In units of the lattice, positive.
    sensitivity : int, default=1
        How far the integer can move.

    Examples
    --------
    >>> from skdp.accounting import DiscreteGaussian, get_epsilon
    >>> round(get_epsilon(DiscreteGaussian(10.0, 10), 1e-5), 2)
    4.38
    """

    sigma: float = checked(_number, low=_LEAST_NOISE)
    sensitivity: int = checked(_integer, default=1, low=1, high=_MAX_SENSITIVITY)


@dataclass(frozen=True)
class DiscreteLaplace(_Listed):
    """One integer plus discrete Laplace noise.

    P(x) is proportional to exp(-abs(x) / scale) on the integers. It is (sensitivity / scale)-DP.

    Parameters
    ----------
    scale : float
        In units of the lattice, positive.
    sensitivity : int, default=1
        How far the integer can move.

    Examples
    --------
    >>> from skdp.accounting import DiscreteLaplace, get_epsilon
    >>> get_epsilon(DiscreteLaplace(2.0, 1), 0.0)
    0.5
    """

    scale: float = checked(_number, low=_LEAST_NOISE)
    sensitivity: int = checked(_integer, default=1, low=1, high=_MAX_SENSITIVITY)


@dataclass(frozen=True)
class RandomizedResponse(_Listed):
    """K-ary randomized response: each row tells the truth with a certain probability.

    The true one of `num_categories` categories is reported with probability
    e^epsilon / (num_categories - 1 + e^epsilon), each other one equally often.

    The pair of two different answers is used under both relations; it dominates that of an
    answer and a null record, which reports uniformly.

    Parameters
    ----------
    epsilon : float
        At least 0.
    num_categories : int, default=2
        How many answers there are, at least 2.

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
    """A choice whose log-likelihood ratio has range at most `epsilon`.

    That is bounded range (Durfee and Rogers 2019), as of the exponential mechanism
    exp(epsilon u / (2 sensitivity)) and of Gumbel noisy max. Permute-and-flip and noisy max with
    Laplace or exponential noise are not: charge those as `PureDP`.

    Parameters
    ----------
    epsilon : float
        At least 0.

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
        At least 0.

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
        At least 0.
    delta : float
        In [0, 1].

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
        At least 0.
    delta : float, default=0.0
        In [0, 1]; 0 is zCDP proper.

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
    """A release without any privacy: infinite cost.

    Examples
    --------
    >>> from skdp.accounting import NonPrivate, get_epsilon
    >>> get_epsilon(NonPrivate(), 1e-6)
    inf
    """


@dataclass(frozen=True)
class PoissonSampled(_Listed):
    """`event` run on a sample that holds each record independently with `sampling_rate`.

    `event` is one additive-noise, pure, approximate-DP, randomized-response or
    exponential-mechanism event, or a composition of Gaussians alone or of pure events alone.
    The noise of additive mechanisms is relative to the contribution of one record: under
    replace-one the inner release moves by two of them. Other inner events must hold for one
    record of the sample changed in the way of the relation in use, or made null.

    Parameters
    ----------
    sampling_rate : float
        The probability that a record is in the sample, in [0, 1].
    event : Event
        What is run on the sample.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, PoissonSampled, get_epsilon
    >>> round(get_epsilon(PoissonSampled(0.01, Gaussian(1.0)) * 1000, 1e-5), 2)
    1.83
    """

    sampling_rate: float = checked(_number, low=0.0, high=1.0)
    event: Event = checked(_check_sampled)


@dataclass(frozen=True)
class SampledWithoutReplacement(_Listed):
    """`event` run on a sample drawn without replacement.

    The `sample_size` of `population_size` records are drawn uniformly.

    Inner events as in `PoissonSampled`. The inner release is always taken to move by two
    records' contributions (one leaves the sample, another enters), also under add/remove,
    which is read as zero-out here: the population size is public and fixed. What holds for one
    record made null, `PureDP` say, is used twice there.

    Parameters
    ----------
    population_size : int
        The number of records.
    sample_size : int
        The number of records in the sample.
    event : Event
        What is run on the sample.

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
class RandomStopping(_Listed):
    """The best of a random number of runs of `event`.

    Only the best is released, and the number stays secret (Papernot and Steinke 2022).

    The number of runs follows the truncated negative binomial distribution of `shape`
    (eta > -1; 1 is geometric, 0 logarithmic) or, for ``shape=inf``, the Poisson distribution;
    `mean` is its mean (at least 1 for a truncated negative binomial).

    Parameters
    ----------
    event : Event
        One run. It must have no delta of its own.
    mean : float
        The mean number of runs.
    shape : float, default=1.0
        Of the distribution of the number of runs, above -1 or inf.

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
            inner = merged(part.event) if is_sampled(part) else part
            if getattr(part, "delta", 0.0) > 0.0 or getattr(inner, "delta", 0.0) > 0.0:
                raise ValueError("the base of RandomStopping must have a Renyi bound: no delta")


@dataclass(frozen=True)
class Composed(_Listed):
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
class Repeated(_Listed):
    """`event` repeated `count` times, each with fresh randomness.

    Parameters
    ----------
    event : Event
        What is repeated.
    count : int
        How often, at least 0.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, Repeated
    >>> Gaussian(1.0) * 3 == Repeated(Gaussian(1.0), 3)
    True
    """

    event: Event = checked(check_event)
    count: int = checked(_integer, low=0)

    __hash__ = _cached_hash


_KINDS = {kind.__name__: kind for kind in _Listed.__subclasses__()}


@dataclass(frozen=True)
class SampledGroup(FrozenValue, Event):
    """A Poisson-sampled event for a group of records that change together.

    It exists to be priced and is never written to a ledger, which keeps the event of one record.

    Parameters
    ----------
    event : PoissonSampled
        Gaussian or Laplace noise relative to the contribution of one record.
    size : int
        The largest number of records of the group.
    """

    event: PoissonSampled
    size: int


ADDITIVE = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace)
PURE = (Laplace, DiscreteLaplace, RandomizedResponse, ExponentialMechanism, PureDP)


def is_sampled(event: Event) -> bool:
    return isinstance(event, (PoissonSampled, SampledWithoutReplacement))


def _parts(event):
    """The events that an event is made of, None for one that cannot be made of others."""
    if isinstance(event, Composed):
        return event.events
    return (event.event,) if hasattr(event, "event") else None


def leaves(event: Event) -> dict[Event, int]:
    """Distinct uncomposed events and how often each occurs, in a canonical order.

    A part that is the same object in several places is counted once, then multiplied.
    """
    counts = _counts(event, {})
    if any(count > _MAX_COUNT for count in counts.values()):
        raise ValueError(f"an event may be repeated {float(_MAX_COUNT):g} times, not more often")
    if len(counts) < 2:
        return dict(counts)
    return dict(sorted(counts.items(), key=lambda pair: _sort_key(pair[0])))


def _counts(event, known):
    if not isinstance(event, (Composed, Repeated)):
        return {check_event(event): 1}
    if id(event) not in known:
        known[id(event)] = counts = {}
        times = event.count if isinstance(event, Repeated) else 1
        for part in _parts(event) if times else ():
            for leaf, count in _counts(part, known).items():
                counts[leaf] = counts.get(leaf, 0) + times * count
    return known[id(event)]


def _sort_key(event):
    values = vars(event).values()
    plain = all(isinstance(value, (int, float)) for value in values)
    return (type(event).__name__, plain, tuple(values) if plain else event.to_json())


def gaussian_mu(parts: dict[Event, int]) -> float | None:
    """mu of Gaussians that are composed (Dong, Roth and Su 2022, corollary 3.3), None of others.

    That of several is rounded up."""
    if not parts or not all(isinstance(part, Gaussian) for part in parts):
        return None
    if sum(parts.values()) == 1:
        return 1.0 / next(iter(parts)).noise_multiplier
    precision = math.fsum(n / part.noise_multiplier**2 for part, n in parts.items())
    return math.sqrt(precision) * (1.0 + 2.0**-50)


def merged(event: Event) -> Event:
    """A composition of Gaussians alone, or of pure events alone, as one event."""
    parts = leaves(event)
    if len(parts) == 1 and next(iter(parts.values())) == 1:
        return next(iter(parts))
    mu = gaussian_mu(parts)
    if mu is not None:
        return Gaussian(1.0 / mu)
    if all(isinstance(part, PURE) for part in parts):
        return Composed(tuple(part * count for part, count in parts.items()))
    raise ValueError(
        "a sampled composition must be of Gaussian events alone or of pure events alone, got "
        + ", ".join(sorted({type(part).__name__ for part in parts}))
    )


def _as_dict(event):
    values = {one.name: getattr(event, one.name) for one in fields(event)}
    finite = {name: "inf" if value == math.inf else value for name, value in values.items()}
    return {"type": type(event).__name__, **finite}


def _event_of(pairs):
    """The event of a JSON object, whose own events have been read before it."""
    values = dict(pairs)
    kind = values.pop("type", None)
    if kind not in _KINDS:
        raise ValueError(f"unknown event type {kind!r}")
    names = [one.name for one in fields(_KINDS[kind])]
    if sorted(name for name, _ in pairs) != sorted([*names, "type"]):
        raise ValueError(f"wrong fields for {kind}: {sorted(values)}")
    return _KINDS[kind](**{name: math.inf if v == "inf" else v for name, v in values.items()})


def event_from_json(text: str) -> Event:
    """The event that `Event.to_json` wrote.

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
        If the text is no event, or one whose parameters are out of range.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, event_from_json
    >>> event_from_json((Gaussian(1.5) * 3).to_json())
    Repeated(event=Gaussian(noise_multiplier=1.5), count=3)
    """
    try:
        return check_event(json.loads(text, object_pairs_hook=_event_of), "the text")
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"not the JSON of an event: {error}") from None
    except RecursionError:
        raise ValueError(f"events may be nested {_MAX_DEPTH} deep, not deeper") from None


# Equal texts are read as equal events, which cannot be changed.
cached_event_from_json = functools.lru_cache(maxsize=4096)(event_from_json)


def readable_json(event):
    """Return the JSON of an event, as long as a ledger reads it as the same event.

    Raises
    ------
    ValueError
        For a subclass of an event, and one whose values were changed after it was made.
    """
    if not isinstance(event, Event):
        check_event(event)
    try:
        return _readable_json(event)
    except (AttributeError, RecursionError, TypeError) as error:
        raise ValueError(f"a ledger could not read this event: {error}") from error


# Equal events have equal texts. A charge asks for the text as it is checked and as it is written.
@functools.lru_cache(maxsize=4096)
def _readable_json(event):
    text = event.to_json()
    try:
        read = cached_event_from_json(text)
    except ValueError as error:
        raise ValueError(f"a ledger could not read this event: {error}") from error
    if read != event:
        raise ValueError(f"a ledger would read this event as another one: {read}")
    return text
