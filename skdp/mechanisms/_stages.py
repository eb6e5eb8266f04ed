"""Stages: the separate releases of a plan, as listed in a privacy statement."""

from collections import Counter
from dataclasses import dataclass, replace

from skdp.accounting import Event, Gaussian, Laplace, PoissonSampled, SampledWithoutReplacement
from skdp.utils._documents import count_of
from skdp.utils._units import ALL_ONCE, UnitText, for_unit
from skdp.utils._values import FrozenValue

# Name of a stage whose plan does not name the released values.
UNNAMED = "the release"
NOTHING_READ = UnitText(lambda unit: f"no {unit}s: nothing is computed from the data")


@dataclass(frozen=True, kw_only=True)
class Stage(FrozenValue):
    """One release made by a fit, or several with the same noise distribution.

    Parameters
    ----------
    name : str
        Name of the released values.
    law : str
        Name of the mechanism and of its noise distribution.
    scale : float or None
        The scale of the noise: the standard deviation of Gaussian noise, or the scale of Laplace
        noise. None for fits whose releases are described by their event alone.
    sensitivity : float or None
        The sensitivity to which the noise was calibrated, in the mechanism's norm. None if
        `scale` is None. For batches that are drawn at random, it is the sensitivity to adding or
        removing one record.
    event : Event
        Privacy event of one release.
    reads : str, default="all rows, once"
        Description of the rows that a release reads.
    n_releases : int, default=1
        Number of releases.
    n_calls : int, default=1
        Number of calls of `partial_fit` in which the stage ran.
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
        """Noise scale divided by the sensitivity, or None; see the function of this name."""
        return noise_multiplier(self.event)

    @property
    def is_sampled(self):
        """True if a release reads a batch of rows that was drawn at random."""
        return isinstance(self.event, PoissonSampled | SampledWithoutReplacement)

    @property
    def total_event(self):
        """Privacy event of all releases of one call."""
        if self.n_releases == 1:
            return self.event
        return self.event * self.n_releases

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
        text = f"{self.name}: {self.law}"
        if self.scale is not None and self.sensitivity is not None:
            text += f", scale {self.scale:g}, sensitivity {self.sensitivity:g}"
            text += " to one record of a batch" if self.is_sampled else ""
        if self.noise_multiplier is not None:
            text += f", noise multiplier {self.noise_multiplier:g}"
        if self.n_releases > 1:
            text += f", {count_of(self.n_releases, 'release')}"
        if self.n_calls > 1:
            text += f" in each of {count_of(self.n_calls, 'call')}"
        return f"{text}; reads {self.reads}"


def noise_multiplier(event):
    """Return the noise scale of an event divided by its sensitivity.

    A sampling event has that of the event inside it. The plan of DP-SGD calls this function for the
    event of a step before it has any `Stage`.

    Returns
    -------
    float or None
        None unless the event is a single Gaussian or Laplace mechanism. The composed event of a
        `GaussianThreshold`, for example, also has a probability of failure.
    """
    if isinstance(event, PoissonSampled | SampledWithoutReplacement):
        event = event.event
    if isinstance(event, Gaussian):
        return event.noise_multiplier
    if isinstance(event, Laplace):
        return 1.0 / event.epsilon
    return None


def stages_of(plan, name=UNNAMED, unit=""):
    """Return the stages of a plan or mechanism.

    Parameters
    ----------
    plan : plan
    name : str, default="the release"
        Name of the stages that have none, such as the stage of a mechanism.
    unit : str, default=""
        Name of the quantity that is the unit of the scale and sensitivity of these stages, "" for
        1. The scale and sensitivity are those of values that were divided by it.

    Returns
    -------
    tuple of Stage
    """
    stages = getattr(plan, "stages", None)
    if stages is None:
        # A plan or mechanism without stages makes one release.
        stage = Stage(
            name=UNNAMED,
            law=plan.name,
            scale=plan.scale,
            sensitivity=plan.sensitivity,
            event=plan.event,
        )
        stages = (stage,)
    named_stages = []
    for stage in stages:
        if stage.name == UNNAMED:
            law = stage.law
            if unit:
                law += f", in units of {unit}"
            stage = replace(stage, name=name, law=law)
        named_stages.append(stage)
    return tuple(named_stages)


def sampler_of(stages):
    """Return a description of the rows that the stages read."""
    if not stages:
        return NOTHING_READ
    texts = [stage.reads for stage in stages]
    has_one_text = len(set(texts)) == 1 and all(type(text) is str for text in texts)
    if len(stages) == 1:
        return texts[0]
    if has_one_text:
        return f"{texts[0]}, in each stage"

    def write(unit):
        """Return the text of what each stage reads, for a privacy unit."""
        reads = [for_unit(stage.reads, unit) for stage in stages]
        if len(set(reads)) == 1:
            return f"{reads[0]}, in each stage"
        named = zip(stages, reads, strict=True)
        return "; ".join(dict.fromkeys(f"{stage.name}: {text}" for stage, text in named))

    return UnitText(write)


def joined_calls(earlier, stages):
    """Return the stages of several calls, with stages that are equal in several calls merged."""
    counts = Counter({replace(stage, n_calls=1): stage.n_calls for stage in earlier})
    counts.update(replace(stage, n_calls=1) for stage in stages)
    return tuple(replace(stage, n_calls=count) for stage, count in counts.items())
