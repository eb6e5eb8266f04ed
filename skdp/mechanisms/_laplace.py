"""The Laplace mechanism."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from skdp.accounting import Laplace
from skdp.mechanisms import _grid
from skdp.noise import discrete_laplace
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_integer


@dataclass(frozen=True)
class LaplaceMechanism(_grid.GridMechanism, _grid.PureMechanism):
    """Add Laplace noise of scale sensitivity / epsilon; the release is epsilon-DP.

    The values are rounded to a grid, a power of two at most 2**-20 of the scale, and discrete
    Laplace noise is added there, exactly and in integers. Rounding d values can raise the
    sensitivity by d grid steps; the noise is raised in the same proportion, by a factor of about
    1 + max(2**-16, 2**-44 d / epsilon) at most, so that `event` stays that of the continuous
    mechanism. An epsilon below about 2**-48 d is refused.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : float > 0
        By how much the L1 norm of the values' difference can differ between neighbouring
        data sets, under the relation that the accountant protects.

    Attributes
    ----------
    scale : float
        The scale b = sensitivity / epsilon, of a standard deviation of sqrt(2) b. The noise in a
        release of d values has the scale ``scale_for(d)``, which is raised for their rounding.
    event : skdp.accounting.Laplace
        What one release costs. It holds for a whole array of that L1 sensitivity.
    delta : float
        0.

    Raises
    ------
    ValueError
        If a parameter is not a positive finite number, the scale cannot be represented, or epsilon
        is too small for the release of even one value.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in Private Data
    Analysis", 2006. C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential
    Privacy", 2020 (the sampler). I. Mironov, "On significance of the least significant bits for
    differential privacy", 2012 (why a grid).

    Examples
    --------
    >>> from skdp.mechanisms import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=0.5, sensitivity=1.0)
    >>> round(mechanism.scale, 6)
    2.0
    >>> noisy = mechanism.release([10.0, 20.0])
    >>> noisy.shape
    (2,)
    """

    name: ClassVar[str] = "Laplace mechanism"
    _deviation: ClassVar[float] = math.sqrt(2.0)
    _mean_error: ClassVar[float] = 1.0
    _event = Laplace

    def __post_init__(self):
        super().__post_init__()
        self.check_size(1)

    def tail(self, probability: float, size: int = 1, terms: int = 1) -> float:
        """Return what the noise in a value exceeds with at most some probability.

        Parameters
        ----------
        probability : float in (0, 1/2]
            At most this.
        size : int, default=1
            How many values are released together.
        terms : int, default=1
            Of how many values the noise is summed.

        Returns
        -------
        float
        """
        return _grid.laplace_tail(self.scale_for(size), probability, terms)

    def _sample(self, scale, size, stream):
        return discrete_laplace(scale, size, stream)

    def _on_grid(self, size):
        """The step of the grid for `size` values, and the scale of the noise in steps."""
        size = check_integer(size, "size", 1, math.inf)
        step = _grid.grid_step(self.scale, self.sensitivity / size)
        scale = scale_in_steps(self.sensitivity, self.epsilon, size, step)
        return step, _grid.check_steps(self, scale, size)


def scale_in_steps(sensitivity, epsilon, d, step):
    """The scale, rounded up, that pays for rounding d values and for pricing by the continuous law.

    Rounding adds at most d steps to the L1 distance. For a scale of at least 2**18 steps the
    discrete law is dominated by the continuous one when 1 / (4 scale) of a step is added for each
    coordinate.
    """
    distance = Fraction(sensitivity) / Fraction(step) + d * (1 + Fraction(1, 2**20))
    return float_up(distance / Fraction(epsilon))
