"""Records of the noise that a fit draws, to be compared with the stages of its statement."""

import math
import sys
from dataclasses import dataclass

from skdp import noise

# Samplers of noise that is added to values, by the name of their distribution.
SAMPLERS = {
    noise.discrete_gaussian: "Gaussian",
    noise.discrete_laplace: "Laplace",
    noise.rounded_norm_noise: "Gamma",
}
# Stages with these words have a scale in a unit that a fit releases, or stand for several draws of
# other scales. Objective perturbation draws its noise in units of C.
OTHER_SCALES = (
    "as one",
    "at the largest",
    "relative to",
    "largest class weight",
    "about the released center",
    "Objective perturbation",
    "narrow column",
    "ratio of the clip",
    "Exponential mechanism",
    "stability threshold",
)


@dataclass
class Draw:
    """Some releases with noise of the same distribution and scale, in steps of a grid."""

    law: str
    scale: float
    count: int


def record_draws(monkeypatch):
    """Return a list to which each later draw of noise is appended."""
    draws = []

    def recording(sampler, law):
        def sample(first, second, *args, **kwargs):
            scale = first
            shape = second
            if law == "Gamma":
                scale = second
                shape = (len(first),)
            count = 1
            if isinstance(shape, tuple) and len(shape) == 2:
                # One row of noise for each step of a descent.
                count = shape[0]
            draws.append(Draw(law, float(scale), count))
            return sampler(first, second, *args, **kwargs)

        return sample

    replaced = {sampler: recording(sampler, law) for sampler, law in SAMPLERS.items()}
    for module in [m for name, m in sys.modules.items() if name.startswith("skdp")]:
        for name, value in list(vars(module).items()):
            if any(value is sampler for sampler in replaced):
                monkeypatch.setattr(module, name, replaced[value])
            elif isinstance(value, type) and value.__module__.startswith("skdp"):
                for member, function in list(vars(value).items()):
                    inner = getattr(function, "__func__", None)
                    if isinstance(function, staticmethod) and inner in replaced:
                        monkeypatch.setattr(value, member, staticmethod(replaced[inner]))
    return draws


def is_of_stage(draw, stage):
    """Return whether a draw has the law and scale of a stage; the grid's step is a power of two."""
    words = {"Gaussian": "Gaussian", "Gamma": "Gamma-norm", "Laplace": "Laplace|Geometric"}
    if not any(word in stage.law for word in words[draw.law].split("|")):
        return False
    exponent = math.log2(draw.scale / stage.scale)
    is_whole = "Geometric" in stage.law
    nearest = 0 if is_whole else round(exponent)
    return abs(2.0 ** (exponent - nearest) - 1.0) < 2e-3


def missing_draws(stages, draws):
    """Return the stages that were not drawn as often as they say, with the number of draws."""
    left = [Draw(draw.law, draw.scale, draw.count) for draw in draws]
    missing = []
    for stage in stages:
        if stage.scale is None or any(words in stage.law for words in OTHER_SCALES):
            continue
        wanted = stage.n_releases * stage.n_calls
        n_drawn = 0
        for draw in left:
            if n_drawn < wanted and draw.count and is_of_stage(draw, stage):
                taken = min(draw.count, wanted - n_drawn)
                draw.count -= taken
                n_drawn += taken
        if n_drawn != wanted:
            missing.append((str(stage), n_drawn))
    return missing
