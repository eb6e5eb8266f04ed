"""The searches for what is not declared: bounds of numbers, categories of labels."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._sgd._noise import SLACK, GaussianNoise
from skdp.gam._columns import LARGEST_LIST
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._grid import to_steps
from skdp.noise import discrete_gaussian
from skdp.preprocessing._categories import StabilityThreshold
from skdp.stats._bounds import BoundsPlan


@dataclass(frozen=True, kw_only=True)
class GaussianSearch(BoundsPlan):
    """The search for bounds with Gaussian noise of a given multiplier.

    Parameters
    ----------
    noise_multiplier : float
    """

    noise_multiplier: float

    @cached_property
    def mechanism(self):
        moved = math.sqrt(self.n_columns * self.guarantee.neighbours.rows_moved) * SLACK
        scale = self.noise_multiplier * moved * SLACK
        return GaussianMechanism.from_scale(scale, moved, self.guarantee.delta)


@dataclass(frozen=True, kw_only=True)
class GaussianThreshold(StabilityThreshold):
    r"""The values of columns whose count with Gaussian noise reaches a threshold.

    A value that occurs in one row is released with probability :math:`\delta_t / d` at most. The
    noise of counts is that of a vector as long as could be, so that its law does not depend on how
    many values occur. The proof is in ``docs/additive_models.md``.

    Parameters
    ----------
    noise_multiplier : float
    n_rows : int
    threshold_delta : float
    """

    noise_multiplier: float
    n_rows: int
    threshold_delta: float

    name = "Gaussian mechanism with a stability threshold"

    def __post_init__(self):
        object.__setattr__(self, "mechanism", self)

    @cached_property
    def _noise(self):
        moved = math.sqrt(self.n_columns * self.guarantee.neighbours.rows_moved) * SLACK
        size = self.n_rows * self.n_columns
        return GaussianNoise(self.noise_multiplier * moved * SLACK, size, moved)

    @property
    def threshold(self):
        deviation = GaussianMechanism.from_scale(1.0, 1.0, 0.5).tail(
            self.threshold_delta / self.n_columns
        )
        return 1.0 + self._noise.drawn_scale * deviation * (1.0 + 2.0**-20)

    def release(self, counts, *, random_state):
        noise = self._noise
        if not len(counts):
            return np.zeros(0)
        drawn = discrete_gaussian(noise.scale_in_steps, len(counts), random_state.stream())
        return (to_steps(np.asarray(counts, float), noise.step) + drawn) * noise.step

    def run(self, columns, source, persons=None):
        """Return the released labels of each of some columns of values."""
        return [self._discover(values, source, persons)[0] for values in columns]

    def _discover(self, values, source, persons):
        labels, counts = super()._discover(values, source, persons)
        kept = np.sort(np.argsort(-counts, kind="stable")[:LARGEST_LIST])
        return labels[kept], counts[kept]
