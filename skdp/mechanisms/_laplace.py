"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Event, Laplace
from skdp.mechanisms._checks import (
    check_number,
    check_scale,
    check_steps,
    check_tail,
    check_values,
    epsilon_of_scale,
    float_up,
    round_up,
)
from skdp.mechanisms._grid import from_steps, grid_step, to_steps
from skdp.noise import LARGEST_SCALE, SourceLike, as_source, discrete_laplace
from skdp.utils._validation import check_integer


@dataclass(frozen=True)
class LaplaceMechanism:
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

    epsilon: float
    sensitivity: float

    name: ClassVar[str] = "Laplace mechanism"
    delta: ClassVar[float] = 0.0

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", check_number("sensitivity", self.sensitivity))
        check_scale(self.scale)
        self.check_size(1)

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
        LaplaceMechanism
            Its epsilon is sensitivity / scale, rounded up.
        """
        return cls(epsilon_of_scale(scale, sensitivity), sensitivity)

    @property
    def scale(self) -> float:
        return round_up(self.sensitivity / self.epsilon)

    @property
    def event(self) -> Event:
        return Laplace(self.epsilon)

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
            Above `scale` by a factor of about 1 + max(2**-16, 2**-44 size / epsilon) at most.
        """
        step, steps = self._on_grid(size)
        return step * steps

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
        tail = check_tail(confidence, size)
        step, steps = self._on_grid(size)
        # One more step covers the rounding of the values and that the noise is discrete.
        return step * (1.0 - steps * math.log(tail))

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> float | np.ndarray:
        """Return the values with fresh noise.

        Parameters
        ----------
        values : float or array-like of numbers
            Their L1 sensitivity, all together, is `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer is reproducible and
            protects nothing.

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
        noise = discrete_laplace(scale, array.size, as_source(random_state).stream())
        return from_steps(to_steps(array, step) + noise, step, shape)

    def _on_grid(self, size):
        """The step of the grid for `size` values, and the scale of the noise in steps."""
        size = check_integer(size, "size", 1, math.inf)
        step = grid_step(self.scale, self.sensitivity / size)
        scale = _scale_in_steps(self.sensitivity, self.epsilon, size, step)
        return step, check_steps(scale, LARGEST_SCALE, self.name, self.epsilon, size)


def _scale_in_steps(sensitivity, epsilon, d, step):
    """The scale, rounded up, that pays for rounding d values and for pricing by the continuous law.

    Rounding adds at most d steps to the L1 distance. For a scale of at least 2**18 steps the
    discrete law is dominated by the continuous one when 1 / (4 scale) of a step is added for each
    coordinate.
    """
    distance = Fraction(sensitivity) / Fraction(step) + d * (1 + Fraction(1, 2**20))
    return float_up(distance / Fraction(epsilon))
