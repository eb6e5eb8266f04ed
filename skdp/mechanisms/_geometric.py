"""The geometric mechanism: discrete Laplace noise on integers."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import DiscreteLaplace, Event
from skdp.mechanisms._grid import PureMechanism, check_tail, laplace_tail
from skdp.noise import LARGEST_SCALE, SourceLike, as_source, discrete_laplace
from skdp.utils._validation import check_integer, check_positive

_LARGEST_VALUE = 2**61


@dataclass(frozen=True)
class GeometricMechanism(PureMechanism):
    """Add discrete Laplace noise to integers; the release is epsilon-DP.

    The noise x has probability proportional to ``exp(-epsilon |x| / sensitivity)`` and is drawn
    exactly. Integers need no grid and nothing is rounded.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : int >= 1, default=1
        By how much the integers can differ in L1 norm between neighbouring data sets, under the
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

    sensitivity: int = 1

    name: ClassVar[str] = "Geometric mechanism"

    def __post_init__(self):
        sensitivity = check_integer(self.sensitivity, "sensitivity", 1, math.inf)
        vars(self).update(epsilon=check_positive(self.epsilon, "epsilon"), sensitivity=sensitivity)
        if sensitivity > LARGEST_SCALE or not 0 < self.scale <= LARGEST_SCALE:
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

    def check_size(self, size: int) -> None:
        """Refuse a `size` that is not a positive integer: any number of values can be released.

        Parameters
        ----------
        size : int
            How many values would be released together.

        Raises
        ------
        ValueError
            If `size` is not a positive integer.
        """
        check_integer(size, "size", 1, math.inf)

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
        return laplace_tail(self.scale, probability, terms)

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
        tail = check_tail(confidence, size)
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
