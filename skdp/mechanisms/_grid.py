"""Values on a grid of a power of two, and noise that is added there in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from skdp.mechanisms._checks import check_tail, check_values
from skdp.noise import SourceLike, as_source

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


class GridMechanism:
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
        step, _ = self._on_grid(size)
        return step + self.tail(0.5 * check_tail(confidence, size), size)

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
