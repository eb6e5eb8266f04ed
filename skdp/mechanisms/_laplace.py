"""Laplace noise on real numbers, and discrete Laplace noise on integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import DiscreteLaplace, Event, Laplace
from skdp.mechanisms import _grid
from skdp.noise import LARGEST_SCALE, SourceLike, as_source, discrete_laplace
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue, checked

# Largest magnitude of an integer, so that the sum with the noise fits into int64.
_MAX_VALUE = 2**61


@dataclass(frozen=True)
class LaplaceMechanism(_grid.GridMechanism, _grid.PureMechanism):
    """Add Laplace noise with scale sensitivity / epsilon; the release is epsilon-DP.

    The values are rounded to a grid whose step is a power of two, at most 2**-20 of the scale.
    Discrete Laplace noise is added on the grid, exactly, in integers. Rounding d values can raise
    the sensitivity by d grid steps. The noise is raised in proportion, by a factor of at most about
    1 + max(2**-16, 2**-44 d / epsilon). Therefore, `event` is the event of the continuous
    mechanism. An epsilon below about 2**-48 d is refused.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : float > 0
        Maximum L1 distance between the values of neighboring datasets, under the accountant's
        neighboring relation.

    Attributes
    ----------
    scale : float
        The scale b = sensitivity / epsilon. The standard deviation is sqrt(2) b. The noise in a
        release of d values has the slightly larger scale ``scale_for(d)``, because of the rounding.
    event : skdp.accounting.Laplace
        Privacy event of one release. It holds for an array of that L1 sensitivity.
    delta : float
        It is 0.

    Raises
    ------
    ValueError
        If a parameter is not a positive finite number, if the scale cannot be represented, or if
        epsilon is too small to release even one value.

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
        """Return a bound that the noise exceeds with at most the given probability.

        Parameters
        ----------
        probability : float in (0, 1/2]
            Upper bound on the probability.
        size : int, default=1
            Number of values that are released together.
        terms : int, default=1
            Number of values whose noise is summed.

        Returns
        -------
        float
        """
        return _grid.laplace_tail(self.scale_for(size), probability, terms)

    def _on_grid(self, size):
        """Return the grid step for `size` values, and the noise scale in steps.

        Raise `ValueError` if epsilon is too small for `size` values, or `size` is not positive.
        """
        size = check_integer(size, "size", 1, math.inf)
        step = _grid.grid_step(self.scale, self.sensitivity / size)
        scale = scale_in_steps(self.sensitivity, self.epsilon, size, step)
        return step, _grid.check_steps(self, scale, size)


@lru_cache(maxsize=256)
def scale_in_steps(sensitivity, epsilon, d, step):
    """Return the noise scale in steps for d values, raised for the rounding and rounded up.

    Rounding adds at most d steps to the L1 distance. The charge is computed for continuous noise.
    For a scale of at least 2**18 steps, the privacy loss of discrete noise is dominated by that of
    continuous noise if 1 / (4 scale) of a step is added for each value.
    """
    distance = Fraction(sensitivity) / Fraction(step) + d * (1 + Fraction(1, 2**20))
    return float_up(distance / Fraction(epsilon))


@dataclass(frozen=True)
class GeometricMechanism(_grid.PureMechanism):
    """Add discrete Laplace noise to integers; the release is epsilon-DP.

    The noise x has probability proportional to ``exp(-epsilon |x| / sensitivity)`` and is drawn
    exactly. Nothing is rounded.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : int >= 1, default=1
        Maximum L1 distance between the integers of neighboring datasets, under the accountant's
        neighboring relation.

    Attributes
    ----------
    scale : float
        It is sensitivity / epsilon.
    event : skdp.accounting.DiscreteLaplace
        Privacy event of one release. It holds for an array of that L1 sensitivity.
    delta : float
        It is 0.

    Raises
    ------
    ValueError
        If epsilon is not a positive finite number, the sensitivity is not a positive integer, or
        the scale exceeds 2**48.

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
            raise ValueError(
                "the noise scale sensitivity / epsilon must be at most 2**48, got "
                f"sensitivity={self.sensitivity!r} and epsilon={self.epsilon!r}"
            )

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float = 1) -> Self:
        """Return the mechanism with the given noise scale.

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

    @cached_property
    def event(self) -> Event:
        return DiscreteLaplace(self.scale, self.sensitivity)

    def deviation(self, size: int) -> float:
        """Return the standard deviation of the noise in each value.

        Parameters
        ----------
        size : int
            Number of integers that are released together. The result is the same for any number.

        Returns
        -------
        float
        """
        # Probabilities are proportional to a**|x| with a = exp(-1 / scale); the variance is
        # 2 a / (1 - a)**2.
        rate = 1.0 / self.scale
        return math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)

    def mean_error(self, size: int) -> float:
        """Return the mean magnitude of the noise in each value.

        Parameters
        ----------
        size : int
            Number of integers that are released together. The result is the same for any number.

        Returns
        -------
        float
        """
        # It is 2 a / (1 - a**2) = 1 / sinh(1 / scale), where sinh overflows for tiny scales.
        if self.scale > 2e-3:
            return 1.0 / math.sinh(1.0 / self.scale)
        return 0.0

    def tail(self, probability: float, size: int = 1, terms: int = 1) -> float:
        """Return a bound that the noise exceeds with at most the given probability.

        Parameters
        ----------
        probability : float in (0, 1/2]
            Upper bound on the probability.
        size : int, default=1
            Number of values that are released together.
        terms : int, default=1
            Number of values whose noise is summed.

        Returns
        -------
        float
        """
        return _grid.laplace_tail(self.scale, probability, terms)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return a bound, not a mean, that errors exceed with probability at most 1 - `confidence`.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Probability that the error is at most the returned bound.
        size : int, default=1
            Number of integers that are released together.

        Returns
        -------
        int
            With probability at least `confidence`, none of the `size` errors exceeds it.
        """
        # P(|X| > t) = 2 a**(t + 1) / (1 + a) with a = exp(-1 / scale), solved for t + 1; the 0.5
        # is the inverse of the factor 2, for both signs.
        tail = _grid.check_tail(confidence, size)
        bound = -self.scale * math.log(0.5 * tail * (1.0 + math.exp(-1.0 / self.scale)))
        return max(0, math.ceil(bound) - 1)

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> int | np.ndarray:
        """Return the integers with fresh noise.

        Parameters
        ----------
        values : int or array-like of int
            Integers, which together have the L1 sensitivity `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer makes the noise
            reproducible, so there is no protection.

        Returns
        -------
        int or ndarray of int64
            Array of the shape of `values`.

        Raises
        ------
        ValueError
            If the values are not integers of magnitude at most 2**61.
        """
        array = np.asarray(values)
        if array.dtype.kind not in "iu" or array.size == 0:
            raise ValueError(
                f"values must be one or more integers, got {array.size} of dtype {array.dtype}"
            )
        if int(array.max()) > _MAX_VALUE or int(array.min()) < -_MAX_VALUE:
            raise ValueError("values must not exceed 2**61 in magnitude")
        noise = discrete_laplace(self.scale, array.size, as_source(random_state).stream())
        released = array.astype(np.int64) + noise.reshape(array.shape)
        if array.ndim == 0:
            return int(released)
        return released
