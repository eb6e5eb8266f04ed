"""The stages of a release, as a privacy statement describes them."""

from collections import Counter
from dataclasses import dataclass, replace

from skdp.accounting import Event, Gaussian, Laplace, PoissonSampled, SampledWithoutReplacement
from skdp.utils._units import ALL_ONCE, UnitText, for_unit
from skdp.utils._values import FrozenValue

UNNAMED = "the release"
NOTHING_READ = UnitText(lambda unit: f"no {unit}s: nothing is computed from the data")


@dataclass(frozen=True, kw_only=True)
class Stage(FrozenValue):
    """One release, or several of one law, within a fit.

    Parameters
    ----------
    name : str
        What is released.
    law : str
        The mechanism and the law of its noise.
    scale : float or None
        The scale of the noise: the standard deviation of Gaussian noise, the scale of Laplace
        noise. None of fits whose releases are described by their event alone.
    sensitivity : float or None
        What the noise was calibrated to, in the mechanism's norm; None as `scale`.
    event : Event
        What one release costs.
    reads : str, default="all rows, once"
        Which rows a release reads.
    n_releases : int, default=1
        How many releases there are.
    n_calls : int, default=1
        In how many calls of `partial_fit` the stage ran.
    """

    name: str
    law: str
    scale: float | None
    sensitivity: float | None
    event: Event
    reads: str = ALL_ONCE
    n_releases: int = 1
    n_calls: int = 1

    @property
    def noise_multiplier(self):
        """The noise's scale over what one unit moves, for Gaussian and Laplace noise, or None."""
        return noise_multiplier(self.event)

    @property
    def total_event(self):
        """What all releases of one call cost."""
        return self.event if self.n_releases == 1 else self.event * self.n_releases

    def for_unit(self, unit):
        """Return the stage with its text for a privacy unit."""
        return replace(self, reads=for_unit(self.reads, unit))

    def to_dict(self):
        """Return the stage as JSON values.

        Returns
        -------
        dict
        """
        values = {name: value for name, value in vars(self).items() if name != "event"}
        return values | {
            "reads": str(self.reads),
            "noise_multiplier": self.noise_multiplier,
            "event": self.event.to_json(),
        }

    def __str__(self):
        words = f"{self.name}: {self.law}"
        if self.scale is not None and self.sensitivity is not None:
            words += f", scale {self.scale:g}, sensitivity {self.sensitivity:g}"
        if self.noise_multiplier is not None:
            words += f", noise multiplier {self.noise_multiplier:g}"
        if self.n_releases > 1:
            words += f", {self.n_releases} releases"
        if self.n_calls > 1:
            words += f" in each of {self.n_calls} calls"
        return f"{words}; reads {self.reads}"


def noise_multiplier(event):
    """Return the scale of an event's noise over its sensitivity, or None if it has none."""
    if isinstance(event, PoissonSampled | SampledWithoutReplacement):
        event = event.event
    if isinstance(event, Gaussian):
        return event.noise_multiplier
    return 1.0 / event.epsilon if isinstance(event, Laplace) else None


def one_stage(plan, name=UNNAMED):
    """Return the only stage of a plan or mechanism that makes one release."""
    described = {"scale": plan.scale, "sensitivity": plan.sensitivity, "event": plan.event}
    return Stage(name=name, law=plan.name, **described)


def stages_of(plan, name=UNNAMED):
    """Return the stages of a plan, of which a mechanism is the smallest.

    Parameters
    ----------
    plan : plan
    name : str, default="the release"
        What is released by a mechanism, or by a plan that does not say so.

    Returns
    -------
    tuple of Stage
    """
    stages = getattr(plan, "stages", None)
    stages = (one_stage(plan),) if stages is None else stages
    return tuple(replace(s, name=name) if s.name == UNNAMED else s for s in stages)


def sampler_of(stages):
    """Return which rows the stages read, in words."""
    if not stages:
        return NOTHING_READ

    def write(unit):
        reads = [for_unit(stage.reads, unit) for stage in stages]
        if len(set(reads)) == 1:
            return reads[0]
        named = zip(stages, reads, strict=True)
        return "; ".join(dict.fromkeys(f"{stage.name}: {words}" for stage, words in named))

    return UnitText(write)


def joined_calls(earlier, stages):
    """Return the stages of several calls, those that are the same in several calls as one."""
    counts = Counter({replace(stage, n_calls=1): stage.n_calls for stage in earlier})
    counts.update(replace(stage, n_calls=1) for stage in stages)
    return tuple(replace(stage, n_calls=count) for stage, count in counts.items())
