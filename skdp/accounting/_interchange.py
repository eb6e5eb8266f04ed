"""Events to and from dp-accounting's `dp_event`, so that another library can check a ledger."""

from __future__ import annotations

import math

from skdp.accounting import _events as ev
from skdp.accounting._leaf import scaled

__all__ = ["from_dp_accounting", "to_dp_accounting"]


def _dp_event():
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError("the interchange of events needs the package dp-accounting") from error
    return dp_event


def to_dp_accounting(event: ev.Event) -> object:
    """The event of the dp-accounting library that states the same releases.

    Noise of additive mechanisms inside sampling without replacement is there relative to the
    replacement sensitivity, here to the contribution of one record; it is converted.

    Events carry no relation. A plain event here states its noise over the release's
    sensitivity under the relation in use and costs the same under both; the `PLDAccountant`
    there prices a plain Gaussian under REPLACE_ONE at half its noise multiplier and refuses a
    plain Laplace. Give plain events to an accountant for ADD_OR_REMOVE_ONE, whatever the
    relation here, and events of Poisson sampling to one for the same relation.

    Parameters
    ----------
    event : Event
        To translate.

    Returns
    -------
    dp_accounting.dp_event.DpEvent

    Raises
    ------
    ValueError
        For events without a counterpart there: `PureDP`, `ApproximateDP`,
        `ExponentialMechanism`, `DiscreteGaussian`, approximate zCDP.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, to_dp_accounting
    >>> to_dp_accounting(Gaussian(2.0) * 3)
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=3)
    """
    dp = _dp_event()
    if isinstance(event, ev.Gaussian):
        return dp.GaussianDpEvent(event.noise_multiplier)
    if isinstance(event, ev.Laplace):
        return dp.LaplaceDpEvent(1.0 / event.epsilon)
    if isinstance(event, ev.DiscreteLaplace):
        return dp.DiscreteLaplaceDpEvent(1.0 / event.scale, event.sensitivity)
    if isinstance(event, ev.RandomizedResponse):
        k = event.num_categories
        return dp.RandomizedResponseDpEvent(k / (k - 1.0 + math.exp(event.epsilon)), k)
    if isinstance(event, ev.ZCDP) and event.delta == 0.0:
        return dp.ZCDpEvent(event.rho)
    if isinstance(event, ev.NonPrivate):
        return dp.NonPrivateDpEvent()
    if isinstance(event, ev.Composed):
        return dp.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
    if isinstance(event, ev.Repeated):
        if event.count == 0:
            return dp.NoOpDpEvent()
        return dp.SelfComposedDpEvent(to_dp_accounting(event.event), event.count)
    if isinstance(event, ev.PoissonSampled):
        return dp.PoissonSampledDpEvent(event.sampling_rate, to_dp_accounting(event.event))
    if isinstance(event, ev.SampledWithoutReplacement):
        return dp.SampledWithoutReplacementDpEvent(
            event.population_size, event.sample_size, to_dp_accounting(scaled(event.event, 2))
        )
    if isinstance(event, ev.RandomStopping):
        return dp.RepeatAndSelectDpEvent(to_dp_accounting(event.event), event.mean, event.shape)
    raise ValueError(f"{type(event).__name__} has no counterpart in dp-accounting")


def from_dp_accounting(event: object) -> ev.Event:
    """The event that states the same releases as one of the dp-accounting library.

    Events carry no relation. A plain Gaussian of which the `PLDAccountant` there says what it
    costs under REPLACE_ONE has half the noise multiplier here: halve it yourself.

    Parameters
    ----------
    event : dp_accounting.dp_event.DpEvent
        To translate.

    Returns
    -------
    Event

    Raises
    ------
    ValueError
        For events without a counterpart here.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from skdp.accounting import Laplace, from_dp_accounting, to_dp_accounting
    >>> from_dp_accounting(to_dp_accounting(Laplace(0.5)))
    Laplace(epsilon=0.5)
    """
    dp = _dp_event()
    if isinstance(event, dp.NoOpDpEvent):
        return ev.Composed(())
    if isinstance(event, dp.NonPrivateDpEvent):
        return ev.NonPrivate()
    if isinstance(event, dp.GaussianDpEvent):
        return ev.Gaussian(event.noise_multiplier) if event.noise_multiplier else ev.NonPrivate()
    if isinstance(event, dp.LaplaceDpEvent):
        noise = event.noise_multiplier
        return ev.Laplace(1.0 / noise) if noise else ev.NonPrivate()
    if isinstance(event, dp.DiscreteLaplaceDpEvent):
        return ev.DiscreteLaplace(1.0 / event.noise_parameter, event.sensitivity)
    if isinstance(event, dp.RandomizedResponseDpEvent):
        k, noise = event.num_buckets, event.noise_parameter
        if noise == 0.0:
            return ev.NonPrivate()
        return ev.RandomizedResponse(math.log1p((1.0 - noise) * k / noise), k)
    if isinstance(event, dp.ZCDpEvent) and event.xi == 0.0:
        return ev.ZCDP(event.rho)
    if isinstance(event, dp.ComposedDpEvent):
        return ev.Composed(tuple(from_dp_accounting(part) for part in event.events))
    if isinstance(event, dp.SelfComposedDpEvent):
        return ev.Repeated(from_dp_accounting(event.event), event.count)
    if isinstance(event, dp.PoissonSampledDpEvent):
        return ev.PoissonSampled(event.sampling_probability, from_dp_accounting(event.event))
    if isinstance(event, dp.SampledWithoutReplacementDpEvent):
        inner = scaled(from_dp_accounting(event.event), 0.5)
        return ev.SampledWithoutReplacement(event.source_dataset_size, event.sample_size, inner)
    if isinstance(event, dp.RepeatAndSelectDpEvent):
        return ev.RandomStopping(from_dp_accounting(event.event), event.mean, event.shape)
    raise ValueError(f"{type(event).__name__} has no counterpart here")
