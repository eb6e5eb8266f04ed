"""Conversion of events to and from dp-accounting, with which a ledger can be checked."""

import math
from typing import TYPE_CHECKING

from skdp.accounting import _events as ev
from skdp.accounting._laws import scaled

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


def to_dp_accounting(event: ev.Event) -> "DpEvent":
    """Convert an event to the equivalent event of the dp-accounting library.

    Inside sampling without replacement, dp-accounting states the noise of additive mechanisms
    relative to the sensitivity under replacement, and skdp relative to the contribution of one
    record. The conversion accounts for this.

    Events do not contain the relation. In skdp, the noise of an unsampled event is relative to the
    sensitivity under the relation in use, so it costs the same under both relations. The
    `PLDAccountant` of dp-accounting prices an unsampled Gaussian under REPLACE_ONE at half its
    noise multiplier and refuses an unsampled Laplace. Pass unsampled events to an accountant for
    ADD_OR_REMOVE_ONE, regardless of the relation in skdp, and Poisson-sampled events to an
    accountant for the same relation.

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
    if isinstance(event, ev.Repeated) and event.count == 0:
        return dp.NoOpDpEvent()
    if type(event) is ev.Gaussian:
        return dp.GaussianDpEvent(event.noise_multiplier)
    if type(event) is ev.Laplace:
        return dp.LaplaceDpEvent(1.0 / event.epsilon)
    if type(event) is ev.DiscreteLaplace:
        return dp.DiscreteLaplaceDpEvent(1.0 / event.scale, event.sensitivity)
    if type(event) is ev.RandomizedResponse:
        k = event.num_categories
        return dp.RandomizedResponseDpEvent(k / (k - 1.0 + math.exp(event.epsilon)), k)
    if type(event) is ev.ZCDP and not event.delta > 0.0:
        return dp.ZCDpEvent(event.rho)
    if type(event) is ev.NonPrivate:
        return dp.NonPrivateDpEvent()
    if type(event) is ev.Composed:
        return dp.ComposedDpEvent([convert(part) for part in event.events])
    if type(event) is ev.Repeated:
        return dp.SelfComposedDpEvent(convert(event.event), event.count)
    if type(event) is ev.PoissonSampled:
        return dp.PoissonSampledDpEvent(event.sampling_rate, convert(event.event))
    if type(event) is ev.SampledWithoutReplacement:
        inner = convert(scaled(event.event, 2))
        return dp.SampledWithoutReplacementDpEvent(event.population_size, event.sample_size, inner)
    if type(event) is ev.RandomStopping:
        return dp.RepeatAndSelectDpEvent(convert(event.event), event.mean, event.shape)
    raise ValueError(f"{type(event).__name__} has no counterpart in dp-accounting")


def from_dp_accounting(event: "DpEvent") -> ev.Event:
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
    if type(event) is dp.NoOpDpEvent:
        return ev.Composed(())
    if type(event) is dp.NonPrivateDpEvent:
        return ev.NonPrivate()
    if type(event) is dp.GaussianDpEvent:
        if event.noise_multiplier == 0.0:
            return ev.NonPrivate()
        return ev.Gaussian(event.noise_multiplier)
    if type(event) is dp.LaplaceDpEvent:
        if event.noise_multiplier == 0.0:
            return ev.NonPrivate()
        return ev.Laplace(1.0 / event.noise_multiplier)
    if type(event) is dp.DiscreteLaplaceDpEvent:
        return ev.DiscreteLaplace(1.0 / event.noise_parameter, event.sensitivity)
    if type(event) is dp.RandomizedResponseDpEvent:
        k = event.num_buckets
        p = event.noise_parameter
        if p == 0.0:
            return ev.NonPrivate()
        return ev.RandomizedResponse(math.log1p((1.0 - p) * k / p), k)
    if type(event) is dp.ZCDpEvent and event.xi == 0.0:
        return ev.ZCDP(event.rho)
    if type(event) is dp.ComposedDpEvent:
        return ev.Composed(tuple(convert(part) for part in event.events))
    if type(event) is dp.SelfComposedDpEvent:
        return ev.Repeated(convert(event.event), event.count)
    if type(event) is dp.PoissonSampledDpEvent:
        return ev.PoissonSampled(event.sampling_probability, convert(event.event))
    if type(event) is dp.SampledWithoutReplacementDpEvent:
        inner = scaled(convert(event.event), 0.5)
        return ev.SampledWithoutReplacement(event.source_dataset_size, event.sample_size, inner)
    if type(event) is dp.RepeatAndSelectDpEvent:
        return ev.RandomStopping(convert(event.event), event.mean, event.shape)
    raise ValueError(f"{type(event).__name__} has no counterpart in skdp")
