"""One budget, and what shares of it buy."""

import math
from dataclasses import dataclass
from functools import cached_property

from skdp._sgd._noise import SLACK, GaussianNoise, LaplaceNoise
from skdp.accounting import ApproximateDP, Gaussian, Guarantee, PureDP, gaussian_noise_multiplier

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

    def noise(self, share, size, *, l1, l2, n_steps=1):
        """Return the noise of each of some releases that cost a share of the whole together.

        Parameters
        ----------
        share : float in (0, 1]
            Of mu squared, or of epsilon with delta = 0.
        size : int
            Of how many values each.
        l1, l2 : float
            What a release moves by between neighbours.
        n_steps : int, default=1
            How many releases.

        Returns
        -------
        GaussianNoise or LaplaceNoise
        """
        if self.pure:
            scale = l1 * n_steps / (share * self.guarantee.epsilon)
            return LaplaceNoise(scale * SLACK**2, size, l1)
        scale = l2 * self.multiplier * math.sqrt(n_steps / share)
        return GaussianNoise(scale * SLACK**2, size, l2)
