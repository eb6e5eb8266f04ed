"""The budget of a fit, and the searches for bounds and categories that are not declared."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._sgd._noise import SLACK, GaussianNoise
from skdp.accounting import ApproximateDP, Gaussian, Guarantee, PureDP, gaussian_noise_multiplier
from skdp.gam._columns import LARGEST_LIST
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
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


# What part of delta a search for categories may fail with.
DELTA_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much noise a share of a guarantee asks for.

    Releases whose shares add up to 1 are one Gaussian release of the multiplier `multiplier`
    together, whatever was seen before each of them was made (Dong, Roth and Su 2022).

    Parameters
    ----------
    guarantee : Guarantee
    discovers : bool
        Whether categories are sought: that may fail with a part of delta.
    """

    guarantee: Guarantee
    discovers: bool = False

    def __post_init__(self):
        if self.discovers and self.pure:
            raise ValueError("categories are found with delta > 0 only; declare them")

    @property
    def pure(self):
        return self.guarantee.delta == 0.0

    @property
    def threshold_delta(self):
        return DELTA_SHARE * self.guarantee.delta if self.discovers else 0.0

    @cached_property
    def multiplier(self):
        """The noise multiplier 1 / mu of one Gaussian release; rounded up."""
        delta = math.nextafter(self.guarantee.delta - self.threshold_delta, 0.0)
        return gaussian_noise_multiplier(self.guarantee.epsilon, delta) * SLACK

    @cached_property
    def event(self):
        return PureDP(self.guarantee.epsilon) if self.pure else self.event_of(1.0)

    def event_of(self, share):
        """Return what Gaussian releases of a share of mu squared cost, with any discovery."""
        event = Gaussian(self.multiplier / math.sqrt(share))
        return event + ApproximateDP(0.0, self.threshold_delta) if self.discovers else event

    def mechanism(self, share, *, l1, l2):
        """Return what makes one release that costs a share of the whole.

        Parameters
        ----------
        share : float in (0, 1]
            Of mu squared, or of epsilon with delta = 0.
        l1, l2 : float
            What it moves by between neighbours.

        Returns
        -------
        LaplaceMechanism or GaussianMechanism
        """
        if self.pure:
            return LaplaceMechanism(share * self.guarantee.epsilon, sensitivity=l1)
        scale = self.noise(share, 1, moved=l2).scale
        return GaussianMechanism.from_scale(scale, l2, self.guarantee.delta)

    def noise(self, share, size, *, moved, n_steps=1):
        """Return the Gaussian noise of some releases that cost a share of mu squared together.

        Parameters
        ----------
        share : float in (0, 1]
        size : int
            Of how many values each.
        moved : float
            By how much, in L2 norm, a release moves between neighbours.
        n_steps : int, default=1
            How many releases.

        Returns
        -------
        GaussianNoise
        """
        scale = moved * self.multiplier * math.sqrt(n_steps / share)
        return GaussianNoise(scale * SLACK**2, size, moved)
