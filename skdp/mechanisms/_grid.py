"""Values on a grid of a power of two, and noise that is added there in integers."""

import math
from fractions import Fraction

import numpy as np

_LARGEST_STEP = 2.0**61


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
    exact = [round(Fraction(value) / Fraction(step)) for value in array]
    return np.array(exact, dtype=object)


def fractions_of_steps(array, step):
    """What rounding to the grid leaves, in steps: ``array / step - to_steps(array, step)``."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = array / step
        return np.where(np.abs(steps) < 2.0**52, steps - np.rint(steps), 0.0)


def from_steps(steps, step, shape):
    """Integers times `step`, as a float or a float64 array; rounding here is post-processing."""
    if steps.dtype == object:
        result = np.array([float(number * Fraction(step)) for number in steps], dtype=np.float64)
    else:
        result = steps * step
    return float(result[0]) if shape == () else result.reshape(shape)
