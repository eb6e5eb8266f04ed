"""Laplace noise: on numbers, and the discrete one on integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import DiscreteLaplace, Event, Laplace
from skdp.mechanisms import _grid
from skdp.noise import LARGEST_SCALE, SourceLike, as_source, discrete_laplace
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue, checked

_LARGEST_VALUE = 2**61


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
        By how much the L1 norm of the values' difference can differ between neighboring
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
    _sample = staticmethod(discrete_laplace)

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


@dataclass(frozen=True)
class GeometricMechanism(_grid.PureMechanism):
    """Add discrete Laplace noise to integers; the release is epsilon-DP.

    The noise x has probability proportional to ``exp(-epsilon |x| / sensitivity)`` and is drawn
    exactly. Integers need no grid and nothing is rounded.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : int >= 1, default=1
        By how much the integers can differ in L1 norm between neighboring data sets, under the
        relation that the accountant protects.

    Attributes
    ----------
    scale : float
        sensitivity / epsilon.
    event : skdp.accounting.DiscreteLaplace
        What one release costs. It holds for a whole array of that L1 sensitivity.
    delta : float
        0.

    Raises
    ------
    ValueError
        If epsilon is not a positive finite number, the sensitivity not a positive integer, or the
        scale above 2**48.

    References
    ----------
    A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms",
    2009.

    Examples
    --------
    >>> from skdp.mechanisms import GeometricMechanism
    >>> isinstance(GeometricMechanism(epsilon=1.0).release(100), int)
    True
    """

    sensitivity: int = checked(check_integer, default=1, low=1, high=math.inf)

    name: ClassVar[str] = "Geometric mechanism"

    def __post_init__(self):
        FrozenValue.__post_init__(self)
        if self.sensitivity > LARGEST_SCALE or not 0 < self.scale <= LARGEST_SCALE:
            raise ValueError("the noise scale sensitivity / epsilon must be at most 2**48")

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float = 1) -> Self:
        """Return the mechanism whose noise has a given scale.

        Parameters
        ----------
        scale : float > 0
            The scale of the noise.
        sensitivity : int >= 1, default=1
            As in the constructor.

        Returns
        -------
        GeometricMechanism
            Its epsilon is sensitivity / scale, rounded up.
        """
        return super().from_scale(scale, sensitivity)

    @property
    def event(self) -> Event:
        return DiscreteLaplace(self.scale, self.sensitivity)

    def deviation(self, size: int) -> float:
        """Return the standard deviation of the noise in each value.

        Parameters
        ----------
        size : int
            How many integers are released together; it is the same for any number.

        Returns
        -------
        float
        """
        # Of the law with probabilities proportional to a**|x|, a = exp(-1 / scale).
        rate = 1.0 / self.scale
        return math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)

    def mean_error(self, size: int) -> float:
        """Return the mean magnitude of the noise in each value.

        Parameters
        ----------
        size : int
            How many integers are released together; it is the same for any number.

        Returns
        -------
        float
        """
        # 2 a / (1 - a**2), which underflows beyond what floats hold.
        return 1.0 / math.sinh(1.0 / self.scale) if self.scale > 2e-3 else 0.0

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
        return _grid.laplace_tail(self.scale, probability, terms)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return what the error of a release stays below.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability with which the error stays below.
        size : int, default=1
            How many integers are released together.

        Returns
        -------
        int
            No error of the `size` integers exceeds it, with probability `confidence` at least.
        """
        # P(|X| > t) = 2 a**(t + 1) / (1 + a) with a = exp(-1 / scale).
        tail = _grid.check_tail(confidence, size)
        bound = -self.scale * math.log(0.5 * tail * (1.0 + math.exp(-1.0 / self.scale)))
        return max(0, math.ceil(bound) - 1)

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> int | np.ndarray:
        """Return the integers with fresh noise.

        Parameters
        ----------
        values : int or array-like of int
            Their L1 sensitivity, all together, is `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer is reproducible and
            protects nothing.

        Returns
        -------
        int or ndarray of int64
            Of the shape of `values`.

        Raises
        ------
        ValueError
            If the values are not integers of magnitude at most 2**61.
        """
        array = np.asarray(values)
        if array.dtype.kind not in "iu" or array.size == 0:
            raise ValueError(
                f"values must be integers and not empty, got {array.size} of {array.dtype}"
            )
        if int(array.max()) > _LARGEST_VALUE or int(array.min()) < -_LARGEST_VALUE:
            raise ValueError("values must not exceed 2**61 in magnitude")
        noise = discrete_laplace(self.scale, array.size, as_source(random_state).stream())
        released = array.astype(np.int64) + noise.reshape(array.shape)
        return int(released) if array.ndim == 0 else released
