"""Checks of a mechanism's parameters and of the values it is given."""

import math
import numbers
from contextlib import suppress
from fractions import Fraction

import numpy as np

from skdp.utils._validation import check_integer

_LARGEST_INTEGER = 2**53
_LARGEST_VALUE = 2.0**1000


def check_number(
    name: str, value: object, *, low: float = 0.0, high: float = math.inf, include_low: bool = False
) -> float:
    """Return `value` as a float in (low, high), or raise `ValueError`."""
    if value is None:
        raise ValueError(f"{name} must be set: an unset {name} never means that no noise is needed")
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        with suppress(OverflowError):
            number = float(value)
    above = number >= low if include_low else number > low
    if not (above and number < high):
        opening = "[" if include_low else "("
        raise ValueError(f"{name} must be a number in {opening}{low:g}, {high:g}), got {value!r}")
    return number


def epsilon_of_scale(scale: object, sensitivity: object) -> float:
    """Return the epsilon of noise of scale sensitivity / epsilon, rounded up."""
    return round_up(check_number("sensitivity", sensitivity) / check_number("scale", scale))


def check_values(values):
    """Return `values` as a float64 vector and their shape, or raise `ValueError`.

    Integers beyond 2**53 are refused: their conversion would change by how much they differ.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(
            f"values must be real numbers of at most 64 bits, got an array of {array.dtype}"
        )
    if array.size == 0:
        raise ValueError("values must not be empty")
    if array.dtype.kind in "iu":
        if int(array.max()) > _LARGEST_INTEGER or int(array.min()) < -_LARGEST_INTEGER:
            raise ValueError("integer values must not exceed 2**53 in magnitude")
    vector = array.astype(np.float64).ravel()
    if not np.all(np.abs(vector) < _LARGEST_VALUE):
        raise ValueError("values must be finite and below 2**1000 in magnitude")
    return vector, array.shape


def check_tail(confidence: float, size: int) -> float:
    """Return the probability with which each of `size` independent errors may exceed a bound.

    None of them does with probability `confidence`: ``1 - confidence**(1 / size)``.
    """
    confidence = check_number("confidence", confidence, high=1.0)
    return -math.expm1(math.log(confidence) / check_integer(size, "size", 1, math.inf))


def round_up(value: float) -> float:
    """The next float: covers the rounding of one operation, on the safe side for a scale."""
    return math.nextafter(value, math.inf)


def float_up(number: Fraction) -> float:
    """The least float that is not below a positive rational number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    return nearest if nearest == math.inf or Fraction(nearest) >= number else round_up(nearest)


def check_steps(steps: float, largest: float, name: str, epsilon: float, size: int) -> float:
    """Return a noise scale in steps of its grid, unless it is more than can be drawn."""
    if not steps <= largest:
        raise ValueError(
            f"{name}: epsilon={epsilon!r} is too small for {size} value(s) released together; "
            "raise epsilon or release fewer values at once"
        )
    return float(steps)


def check_scale(scale: float) -> float:
    """Return a noise scale whose grid has room on both sides in float64."""
    if not 2.0**-900 <= scale <= 2.0**900:
        raise ValueError(
            f"the noise scale {scale:g} lies outside [2**-900, 2**900], where noise on a grid of "
            "floating-point numbers overflows; rescale the values"
        )
    return scale
