"""Rounding of values to a grid, on which integer noise is added exactly.

Noise that is added in floating-point arithmetic reveals low bits of the values (I. Mironov, "On
significance of the least significant bits for differential privacy", 2012). Values are therefore
rounded to multiples of a power of two, and discrete noise is added to the integer multiples.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Event, ExponentialMechanism, Laplace, PureDP
from skdp.noise import LARGEST_SCALE, SourceLike, as_source
from skdp.noise._source import Stream
from skdp.utils._validation import check_integer, check_positive, check_within
from skdp.utils._values import FrozenValue, checked

# Largest multiple of the grid step that is computed in int64, with room for the noise.
MAX_STEPS = 2.0**61
# Largest magnitude of a value, so that sums with noise do not overflow.
_MAX_VALUE = 2.0**1000
# Rates t of the Chernoff bounds on the tail of a sum of Laplace variables of scale 1, and the
# logarithms of 1 - t^2.
_CHERNOFF_RATES = np.linspace(0.01, 0.99, 99)
_LOG_FACTORS = np.log1p(-_CHERNOFF_RATES * _CHERNOFF_RATES)


def as_floats(values, name):
    """Return real numbers as a float64 array, or raise `ValueError`.

    Integers beyond 2**53 are refused: their conversion is inexact and could raise the sensitivity.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(
            f"{name} must be real numbers of at most 64 bits, got an array of dtype {array.dtype}"
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > 2**53:
        raise ValueError(f"integer {name} must not exceed 2**53 in magnitude")
    return array.astype(np.float64)


def check_values(values):
    """Return `values` as a float64 vector, and their shape, or raise `ValueError`."""
    array = as_floats(values, "values")
    if not np.all(np.abs(array) < _MAX_VALUE):
        raise ValueError("values must be finite and below 2**1000 in magnitude")
    return array.ravel(), array.shape


def check_tail(confidence: float, size: int) -> float:
    """Return the probability with which each of `size` independent errors may exceed its bound.

    It is ``1 - confidence**(1 / size)``: with probability `confidence` no error exceeds the bound.
    """
    confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
    return -math.expm1(math.log(confidence) / check_integer(size, "size", 1, math.inf))


def round_up(value: float) -> float:
    """Return the next larger float: an upper bound on the exact result of a rounded operation."""
    return math.nextafter(value, math.inf)


def check_steps(mechanism, steps: float, size: int = 1, max_steps: float = LARGEST_SCALE) -> float:
    """Return a noise scale in grid steps, or raise `ValueError` if it is too large to sample."""
    if not steps <= max_steps:
        raise ValueError(
            f"{mechanism.name}: epsilon={mechanism.epsilon!r} is too small for {size} value(s) "
            "released together; raise epsilon or release fewer values at once"
        )
    return float(steps)


def check_scale(scale: float) -> None:
    """Raise `ValueError` for a noise scale whose grid could under- or overflow in float64."""
    if not 2.0**-900 <= scale <= 2.0**900:
        raise ValueError(
            f"the noise scale must be in [2**-900, 2**900], got {scale:g}: noise on a grid of "
            "floating-point numbers would overflow. Rescale the values"
        )


def power_of_two_below(value):
    """Return the largest power of two that is at most `value`."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def grid_step(scale, slack_unit):
    """Return the grid step for a noise scale: at most 2**-20 of it, and 2**-16 of `slack_unit`.

    Parameters
    ----------
    scale : float
        Scale of the noise.
    slack_unit : float
        The sensitivity, divided by the number of steps by which rounding can raise it. The noise
        then grows by a factor of at most 1 + 2**-16 for the rounding. The step is not finer than
        2**-44 of the scale, even if the factor is then larger.

    Returns
    -------
    float
        A power of two.
    """
    return power_of_two_below(min(scale * 2.0**-20, max(slack_unit * 2.0**-16, scale * 2.0**-44)))


def to_steps(array, step):
    """Return a float64 vector in multiples of `step`, rounded exactly to integers.

    The result has dtype int64, or is an object array of Python integers if int64 is too small.
    """
    largest = float(np.maximum.reduce(np.abs(array), initial=0.0))
    if largest / step <= MAX_STEPS:
        return np.rint(array / step).astype(np.int64)
    return np.array([round(Fraction(value) / Fraction(step)) for value in array], dtype=object)


def from_steps(steps, step, shape):
    """Return integers times `step`, as a float or a float64 array with the given shape.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Integers from `to_steps`, or Python integers in an array of objects, after the noise was
        added. The array is flat for every `shape`.
    step : float
    shape : tuple of int
        () returns a float.
    """
    # Rounding is post-processing here: the noise has been added.
    if steps.dtype == object:
        result = np.array([float(number * Fraction(step)) for number in steps], dtype=np.float64)
    else:
        result = steps * step
    if shape == ():
        return float(result[0])
    return result.reshape(shape)


@dataclass(frozen=True)
class PureMechanism(FrozenValue):
    """Base class of epsilon-DP mechanisms whose noise has scale sensitivity / epsilon.

    If the scores among which a mechanism chooses may change in different directions, the scale is
    twice as large.
    """

    epsilon: float = checked(check_positive)
    sensitivity: float = checked(check_positive)

    delta: ClassVar[float] = 0.0
    _event: ClassVar[type[PureDP | Laplace | ExponentialMechanism]] = PureDP
    # Scale of the noise, relative to sensitivity / epsilon; a property in selection mechanisms.
    _factor: ClassVar[int] = 1

    def __post_init__(self):
        super().__post_init__()
        check_scale(self.scale)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float) -> Self:
        """Return the mechanism with the given noise scale.

        Parameters
        ----------
        scale : float > 0
            The scale of the noise.
        sensitivity : float > 0
            Sensitivity as in the constructor.

        Returns
        -------
        mechanism
            Its epsilon is sensitivity / scale, rounded up.
        """
        scale = check_positive(scale, "scale")
        return cls(round_up(check_positive(sensitivity, "sensitivity") / scale), sensitivity)

    @cached_property
    def event(self) -> Event:
        return self._event(self.epsilon)

    @cached_property
    def scale(self) -> float:
        return round_up(self._factor * self.sensitivity / self.epsilon)

    def check_size(self, size: int) -> None:
        """Raise `ValueError` if `size` is not a positive integer.

        Any number of values can be released together, because no rounding adds to the sensitivity.
        Where it does, `check_size` of `GridMechanism` applies. The Laplace mechanism inherits both,
        that of `GridMechanism` first.

        Parameters
        ----------
        size : int
            Number of values to release together.

        Raises
        ------
        ValueError
            If `size` is not a positive integer.
        """
        check_integer(size, "size", 1, math.inf)


@dataclass(frozen=True)
class GridMechanism(FrozenValue):
    """Base class of mechanisms that add discrete noise on a grid.

    A subclass defines `_on_grid`, `_sample`, `tail` and the following attributes.
    """

    # Standard deviation and mean magnitude of noise of scale 1.
    _deviation: ClassVar[float]
    _mean_error: ClassVar[float]

    def _on_grid(self, size: int) -> tuple[float, float]:
        """Return the grid step for `size` values, and the noise scale in steps.

        Raise the `ValueError` of `check_size` if `size` values cannot be released together.
        """
        raise NotImplementedError

    @staticmethod
    def _sample(scale: float, size: int, stream: Stream, /) -> np.ndarray:
        """Return `size` integers of noise."""
        raise NotImplementedError

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
        raise NotImplementedError

    def check_size(self, size: int) -> None:
        """Raise `ValueError` before the charge if `size` values cannot be released together.

        Parameters
        ----------
        size : int
            Number of values to release together.

        Raises
        ------
        ValueError
            If epsilon is too small for this number of values, or `size` is not a positive integer.
        """
        # Only its error is needed.
        self._on_grid(size)

    def grid_for(self, size: int) -> float:
        """Return the grid step to whose multiples a release rounds values, a power of two.

        Parameters
        ----------
        size : int
            Number of values that are released together.

        Returns
        -------
        float
        """
        return float(self._on_grid(size)[0])

    def scale_for(self, size: int) -> float:
        """Return the scale of the noise in a release, raised for the rounding of the values.

        Parameters
        ----------
        size : int
            Number of values that are released together.

        Returns
        -------
        float
            Slightly larger than `scale`.
        """
        step, steps = self._on_grid(size)
        return step * steps

    def deviation(self, size: int) -> float:
        """Return the standard deviation of the noise in each value.

        Parameters
        ----------
        size : int
            Number of values that are released together.

        Returns
        -------
        float
        """
        return self._deviation * self.scale_for(size)

    def mean_error(self, size: int) -> float:
        """Return the mean magnitude of the noise in each value.

        Parameters
        ----------
        size : int
            Number of values that are released together.

        Returns
        -------
        float
        """
        return self._mean_error * self.scale_for(size)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return a bound, not a mean, that errors exceed with probability 1 - `confidence`.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Probability that the error is at most the returned bound.
        size : int, default=1
            Number of values that are released together.

        Returns
        -------
        float
            With probability `confidence`, none of the `size` errors exceeds it.
        """
        # One more step covers the rounding of the values and of the noise to the grid. Noise is
        # symmetric: half of the probability is for errors above the bound, half for those below
        # its negative.
        return self._on_grid(size)[0] + self.tail(0.5 * check_tail(confidence, size), size)

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> float | np.ndarray:
        """Return the values with fresh noise.

        Parameters
        ----------
        values : float or array-like of numbers
            Values, which together have sensitivity `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer makes the noise
            reproducible, so there is no protection. Inside a private fit, it must be the source
            that the charge returned.

        Returns
        -------
        float or ndarray of float64
            Array of the shape of `values`.

        Raises
        ------
        ValueError
            If the values are not finite real numbers, or epsilon is too small for their number
            (`check_size`).
        """
        array, shape = check_values(values)
        step, scale = self._on_grid(array.size)
        noise = self._sample(scale, array.size, as_source(random_state).stream())
        return from_steps(to_steps(array, step) + noise, step, shape)


def laplace_tail(scale, probability, terms):
    """Return a bound that a sum of Laplace variables exceeds with at most a given probability.

    One variable of scale b has ``P(X > t) = exp(-t / b) / 2``. Its moment generating function is
    ``1 / (1 - (b t)^2)``, so each t in (0, 1 / b) gives a bound on the tail of a sum (Chernoff).
    The smallest of 99 such bounds is returned. For discrete Laplace noise of the same scale both
    the tail and the moment generating function are at most as large.
    """
    if terms == 1:
        return -scale * math.log(2.0 * probability)
    exponents = -math.log(probability) - terms * _LOG_FACTORS
    return scale * float((exponents / _CHERNOFF_RATES).min())
