"""Values on a grid of a power of two, and noise that is added there in integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Event, PureDP
from skdp.noise import LARGEST_SCALE, SourceLike, as_source
from skdp.utils._validation import check_integer, check_positive, check_within
from skdp.utils._values import FrozenValue, checked

_LARGEST_STEP = 2.0**61
_LARGEST_VALUE = 2.0**1000


def as_floats(values, name):
    """Return real numbers as a float64 array, or raise `ValueError`.

    Integers beyond 2**53 are refused: their conversion would change by how much they differ.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(
            f"{name} must be real numbers of at most 64 bits, got an array of {array.dtype}"
        )
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > 2**53:
        raise ValueError(f"integer {name} must not exceed 2**53 in magnitude")
    return array.astype(np.float64)


def check_values(values):
    """Return `values` as a float64 vector and their shape, or raise `ValueError`."""
    array = as_floats(values, "values")
    if not np.all(np.abs(array) < _LARGEST_VALUE):
        raise ValueError("values must be finite and below 2**1000 in magnitude")
    return array.ravel(), array.shape


def check_tail(confidence: float, size: int) -> float:
    """Return the probability with which each of `size` independent errors may exceed a bound.

    None of them does with probability `confidence`: ``1 - confidence**(1 / size)``.
    """
    confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
    return -math.expm1(math.log(confidence) / check_integer(size, "size", 1, math.inf))


def round_up(value: float) -> float:
    """The next float: covers the rounding of one operation, on the safe side for a scale."""
    return math.nextafter(value, math.inf)


def check_steps(mechanism, steps: float, size: int = 1, most: float = LARGEST_SCALE) -> float:
    """Return a noise scale in steps of its grid, unless it is more than can be drawn."""
    if not steps <= most:
        raise ValueError(
            f"{mechanism.name}: epsilon={mechanism.epsilon!r} is too small for {size} value(s) "
            "released together; raise epsilon or release fewer values at once"
        )
    return float(steps)


def check_scale(scale: float) -> None:
    """Refuse a noise scale whose grid has no room on both sides in float64."""
    if not 2.0**-900 <= scale <= 2.0**900:
        raise ValueError(
            f"the noise scale {scale:g} lies outside [2**-900, 2**900], where noise on a grid of "
            "floating-point numbers overflows; rescale the values"
        )


def power_of_two_below(value):
    """The largest power of two that is at most `value`."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def grid_step(scale, slack_unit):
    """The grid for noise of a scale: at most 2**-20 of it, and 2**-16 of `slack_unit`.

    `slack_unit` is the sensitivity over the number of steps by which rounding can raise it: the
    noise then grows by a factor of at most 1 + 2**-16 for the rounding, unless that took a grid
    finer than 2**-44 of the scale.
    """
    return power_of_two_below(min(scale * 2.0**-20, max(slack_unit * 2.0**-16, scale * 2.0**-44)))


def to_steps(array, step):
    """Round a float64 vector to integer multiples of `step`, exactly.

    Returns int64, or Python integers in an object array where int64 is too small.
    """
    with np.errstate(over="ignore"):
        steps = np.rint(array / step)
    if np.all(np.abs(steps) <= _LARGEST_STEP):
        return steps.astype(np.int64)
    return np.array([round(Fraction(value) / Fraction(step)) for value in array], dtype=object)


def from_steps(steps, step, shape):
    """Integers times `step`, as a float or a float64 array; rounding here is post-processing."""
    if steps.dtype == object:
        result = np.array([float(number * Fraction(step)) for number in steps], dtype=np.float64)
    else:
        result = steps * step
    return float(result[0]) if shape == () else result.reshape(shape)


@dataclass(frozen=True)
class PureMechanism(FrozenValue):
    """What epsilon-DP releases share whose noise has the scale sensitivity / epsilon.

    A choice whose scores move both ways has twice that scale: a `_factor` of 2.
    """

    epsilon: float = checked(check_positive)
    sensitivity: float = checked(check_positive)

    delta: ClassVar[float] = 0.0
    _factor = 1
    _event: ClassVar[type[Event]] = PureDP

    def __post_init__(self):
        super().__post_init__()
        check_scale(self.scale)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float) -> Self:
        """Return the mechanism whose noise has a given scale.

        Parameters
        ----------
        scale : float > 0
            The scale of the noise.
        sensitivity : float > 0
            As in the constructor.

        Returns
        -------
        mechanism
            Its epsilon is sensitivity / scale, rounded up.
        """
        scale = check_positive(scale, "scale")
        return cls(round_up(check_positive(sensitivity, "sensitivity") / scale), sensitivity)

    @property
    def event(self) -> Event:
        return self._event(self.epsilon)

    @property
    def scale(self) -> float:
        return round_up(self._factor * self.sensitivity / self.epsilon)

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


@dataclass(frozen=True)
class GridMechanism(FrozenValue):
    """What noise on a grid shares, whatever its law: `_on_grid`, `_sample` and two constants.

    `_deviation` and `_mean_error` are those of the law of scale 1.
    """

    def check_size(self, size: int) -> None:
        """Refuse what no release can do, before anything is charged.

        Parameters
        ----------
        size : int
            How many values would be released together.

        Raises
        ------
        ValueError
            If epsilon is too small for that many values, or `size` is not a positive integer.
        """
        self._on_grid(size)

    def grid_for(self, size: int) -> float:
        """Return the grid to whose multiples a release rounds values, a power of two.

        Parameters
        ----------
        size : int
            How many values are released together.

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
            How many values are released together.

        Returns
        -------
        float
            A little above `scale`.
        """
        step, steps = self._on_grid(size)
        return step * steps

    def deviation(self, size: int) -> float:
        """Return the standard deviation of the noise in each value.

        Parameters
        ----------
        size : int
            How many values are released together.

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
            How many values are released together.

        Returns
        -------
        float
        """
        return self._mean_error * self.scale_for(size)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return what the error of a release stays below.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability with which the error stays below.
        size : int, default=1
            How many values are released together.

        Returns
        -------
        float
            No error of the `size` values exceeds it, with probability `confidence`.
        """
        # One more step covers the rounding of the values and that the noise is discrete.
        return self._on_grid(size)[0] + self.tail(0.5 * check_tail(confidence, size), size)

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> float | np.ndarray:
        """Return the values with fresh noise.

        Parameters
        ----------
        values : float or array-like of numbers
            All together they move by `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer is reproducible and
            protects nothing. Inside a private fit it is the source of the charge.

        Returns
        -------
        float or ndarray of float64
            Of the shape of `values`.

        Raises
        ------
        ValueError
            If the values are not finite real numbers, or too many for epsilon (`check_size`).
        """
        array, shape = check_values(values)
        step, scale = self._on_grid(array.size)
        noise = self._sample(scale, array.size, as_source(random_state).stream())
        return from_steps(to_steps(array, step) + noise, step, shape)


def laplace_tail(scale, probability, terms):
    """Return what the sum of `terms` Laplace variables exceeds with at most that probability.

    One: ``P(X > t) = exp(-t / b) / 2``. Several: a Laplace variable's moment generating function
    is ``1 / (1 - (b t)^2)``, so that every t bounds the tail of the sum (Chernoff). Discrete
    Laplace noise of the same scale has no heavier tail and no larger such function.
    """
    if terms == 1:
        return -scale * math.log(2.0 * probability)
    t = np.linspace(0.01, 0.99, 99)
    return scale * float(((-math.log(probability) - terms * np.log1p(-t * t)) / t).min())
