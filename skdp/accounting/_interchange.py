"""Events to and from dp-accounting's `dp_event`, so that another library can check a ledger."""

import math

from skdp.accounting import _events as ev
from skdp.accounting._laws import scaled


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
    from dp_accounting import dp_event as dp

    there = to_dp_accounting
    kinds = {
        ev.Gaussian: lambda e: dp.GaussianDpEvent(e.noise_multiplier),
        ev.Laplace: lambda e: dp.LaplaceDpEvent(1.0 / e.epsilon),
        ev.DiscreteLaplace: lambda e: dp.DiscreteLaplaceDpEvent(1.0 / e.scale, e.sensitivity),
        ev.RandomizedResponse: lambda e: dp.RandomizedResponseDpEvent(
            e.num_categories / (e.num_categories - 1.0 + math.exp(e.epsilon)), e.num_categories
        ),
        ev.ZCDP: lambda e: dp.ZCDpEvent(e.rho),
        ev.NonPrivate: lambda e: dp.NonPrivateDpEvent(),
        ev.Composed: lambda e: dp.ComposedDpEvent([there(part) for part in e.events]),
        ev.Repeated: lambda e: dp.SelfComposedDpEvent(there(e.event), e.count),
        ev.PoissonSampled: lambda e: dp.PoissonSampledDpEvent(e.sampling_rate, there(e.event)),
        ev.SampledWithoutReplacement: lambda e: dp.SampledWithoutReplacementDpEvent(
            e.population_size, e.sample_size, there(scaled(e.event, 2))
        ),
        ev.RandomStopping: lambda e: dp.RepeatAndSelectDpEvent(there(e.event), e.mean, e.shape),
    }
    if isinstance(event, ev.Repeated) and event.count == 0:
        return dp.NoOpDpEvent()
    if type(event) not in kinds or (isinstance(event, ev.ZCDP) and event.delta > 0.0):
        raise ValueError(f"{type(event).__name__} has no counterpart in dp-accounting")
    return kinds[type(event)](event)


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
    from dp_accounting import dp_event as dp

    here = from_dp_accounting
    kinds = {
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
        dp.ComposedDpEvent: lambda e: ev.Composed(tuple(here(part) for part in e.events)),
        dp.SelfComposedDpEvent: lambda e: ev.Repeated(here(e.event), e.count),
        dp.PoissonSampledDpEvent: lambda e: ev.PoissonSampled(
            e.sampling_probability, here(e.event)
        ),
        dp.SampledWithoutReplacementDpEvent: lambda e: ev.SampledWithoutReplacement(
            e.source_dataset_size, e.sample_size, scaled(here(e.event), 0.5)
        ),
        dp.RepeatAndSelectDpEvent: lambda e: ev.RandomStopping(here(e.event), e.mean, e.shape),
    }
    if type(event) not in kinds or (isinstance(event, dp.ZCDpEvent) and event.xi != 0.0):
        raise ValueError(f"{type(event).__name__} has no counterpart here")
    name = "noise_parameter" if type(event) is dp.RandomizedResponseDpEvent else "noise_multiplier"
    return ev.NonPrivate() if getattr(event, name, None) == 0.0 else kinds[type(event)](event)
