"""Conversion of events to and from dp-accounting, so that another library can check a ledger."""

import math

from skdp.accounting import _events as ev
from skdp.accounting._laws import scaled


def to_dp_accounting(event: ev.Event) -> object:
    """Convert an event to the equivalent event of the dp-accounting library.

    Inside sampling without replacement, dp-accounting states the noise of additive mechanisms
    relative to the sensitivity under replacement, and skdp relative to the contribution of one
    record. The noise is converted.

    Events do not contain the relation. In skdp, the noise of an unsampled event is relative to
    the sensitivity under the relation in use, so it costs the same under both relations. The
    `PLDAccountant` of dp-accounting prices an unsampled Gaussian under REPLACE_ONE at half its
    noise multiplier and refuses an unsampled Laplace. Pass unsampled events to an accountant for
    ADD_OR_REMOVE_ONE, whatever the relation in skdp, and Poisson-sampled events to one for the
    same relation.

    Parameters
    ----------
    event : Event
        The event to convert.

    Returns
    -------
    dp_accounting.dp_event.DpEvent

    Raises
    ------
    ValueError
        For events without a counterpart in dp-accounting: `PureDP`, `ApproximateDP`,
        `ExponentialMechanism`, `DiscreteGaussian`, approximate zCDP.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, to_dp_accounting
    >>> to_dp_accounting(Gaussian(2.0) * 3)
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=3)
    """
    from dp_accounting import dp_event as dp

    convert = to_dp_accounting
    converters = {
        ev.Gaussian: lambda e: dp.GaussianDpEvent(e.noise_multiplier),
        ev.Laplace: lambda e: dp.LaplaceDpEvent(1.0 / e.epsilon),
        ev.DiscreteLaplace: lambda e: dp.DiscreteLaplaceDpEvent(1.0 / e.scale, e.sensitivity),
        ev.RandomizedResponse: lambda e: dp.RandomizedResponseDpEvent(
            e.num_categories / (e.num_categories - 1.0 + math.exp(e.epsilon)), e.num_categories
        ),
        ev.ZCDP: lambda e: dp.ZCDpEvent(e.rho),
        ev.NonPrivate: lambda e: dp.NonPrivateDpEvent(),
        ev.Composed: lambda e: dp.ComposedDpEvent([convert(part) for part in e.events]),
        ev.Repeated: lambda e: dp.SelfComposedDpEvent(convert(e.event), e.count),
        ev.PoissonSampled: lambda e: dp.PoissonSampledDpEvent(e.sampling_rate, convert(e.event)),
        ev.SampledWithoutReplacement: lambda e: dp.SampledWithoutReplacementDpEvent(
            e.population_size, e.sample_size, convert(scaled(e.event, 2))
        ),
        ev.RandomStopping: lambda e: dp.RepeatAndSelectDpEvent(convert(e.event), e.mean, e.shape),
    }
    if isinstance(event, ev.Repeated) and event.count == 0:
        return dp.NoOpDpEvent()
    if type(event) not in converters or (isinstance(event, ev.ZCDP) and event.delta > 0.0):
        raise ValueError(f"{type(event).__name__} has no counterpart in dp-accounting")
    return converters[type(event)](event)


def from_dp_accounting(event: object) -> ev.Event:
    """Convert an event of the dp-accounting library to the equivalent event.

    Events do not contain the relation. The `PLDAccountant` of dp-accounting prices an unsampled
    Gaussian under REPLACE_ONE at half its noise multiplier: halve the noise multiplier of such an
    event yourself.

    Parameters
    ----------
    event : dp_accounting.dp_event.DpEvent
        The event to convert.

    Returns
    -------
    Event

    Raises
    ------
    ValueError
        For events without a counterpart in skdp.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from skdp.accounting import Laplace, from_dp_accounting, to_dp_accounting
    >>> from_dp_accounting(to_dp_accounting(Laplace(0.5)))
    Laplace(epsilon=0.5)
    """
    from dp_accounting import dp_event as dp

    convert = from_dp_accounting
    converters = {
        dp.NoOpDpEvent: lambda e: ev.Composed(()),
        dp.NonPrivateDpEvent: lambda e: ev.NonPrivate(),
        dp.GaussianDpEvent: lambda e: ev.Gaussian(e.noise_multiplier),
        dp.LaplaceDpEvent: lambda e: ev.Laplace(1.0 / e.noise_multiplier),
        dp.DiscreteLaplaceDpEvent: lambda e: ev.DiscreteLaplace(
            1.0 / e.noise_parameter, e.sensitivity
        ),
        dp.RandomizedResponseDpEvent: lambda e: ev.RandomizedResponse(
            math.log1p((1.0 - e.noise_parameter) * e.num_buckets / e.noise_parameter), e.num_buckets
        ),
        dp.ZCDpEvent: lambda e: ev.ZCDP(e.rho),
        dp.ComposedDpEvent: lambda e: ev.Composed(tuple(convert(part) for part in e.events)),
        dp.SelfComposedDpEvent: lambda e: ev.Repeated(convert(e.event), e.count),
        dp.PoissonSampledDpEvent: lambda e: ev.PoissonSampled(
            e.sampling_probability, convert(e.event)
        ),
        dp.SampledWithoutReplacementDpEvent: lambda e: ev.SampledWithoutReplacement(
            e.source_dataset_size, e.sample_size, scaled(convert(e.event), 0.5)
        ),
        dp.RepeatAndSelectDpEvent: lambda e: ev.RandomStopping(convert(e.event), e.mean, e.shape),
    }
    if type(event) not in converters or (isinstance(event, dp.ZCDpEvent) and event.xi != 0.0):
        raise ValueError(f"{type(event).__name__} has no counterpart in skdp")
    name = "noise_parameter" if type(event) is dp.RandomizedResponseDpEvent else "noise_multiplier"
    if getattr(event, name, None) == 0.0:
        # A release without noise.
        return ev.NonPrivate()
    return converters[type(event)](event)
