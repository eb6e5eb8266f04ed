"""Noise on a vector with density proportional to exp(-epsilon ||b|| / sensitivity)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv

from skdp.mechanisms import _grid
from skdp.noise import SourceLike, as_source, rounded_norm_noise
from skdp.utils._validation import check_integer, check_within


@dataclass(frozen=True)
class GammaNormMechanism(_grid.PureMechanism):
    """Add noise b with density proportional to exp(-epsilon ||b||_2 / sensitivity).

    The release is epsilon-DP for a vector whose L2 sensitivity is known. The direction of b is
    uniform and its length has a gamma distribution of shape d and scale sensitivity / epsilon.

    The value plus the noise, as real numbers, is rounded to a grid, a power of two about 2**-20 of
    sqrt(d) times the scale: the noise is evaluated with as many bits as decide that rounding, which
    is then mere post-processing. No sensitivity is added for it and delta is 0.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : float > 0
        By how much the values can differ in L2 norm between neighbouring data sets, under the
        relation that the accountant protects.

    Attributes
    ----------
    scale : float
        sensitivity / epsilon, the scale of the gamma distribution of the noise's length; for d
        values each has a standard deviation of sqrt(d + 1) times the scale.
    event : skdp.accounting.PureDP
        What one release costs.
    delta : float
        0.

    Raises
    ------
    ValueError
        If a parameter is not a positive finite number, or the scale cannot be represented.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk minimization",
    2011.

    Examples
    --------
    >>> from skdp.mechanisms import GammaNormMechanism
    >>> mechanism = GammaNormMechanism(epsilon=1.0, sensitivity=0.5)
    >>> mechanism.release([1.0, 2.0, 3.0]).shape
    (3,)
    """

    name: ClassVar[str] = "Gamma-norm mechanism"

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
            How many values are released together.

        Returns
        -------
        float
            The norm has a mean square of ``size * (size + 1)`` times that of the scale.
        """
        return self.scale * math.sqrt(check_integer(size, "size", 1) + 1)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return what the L2 norm of the error of a release stays below.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability with which the error stays below.
        size : int, default=1
            How many values are released together.

        Returns
        -------
        float
            The L2 norm of the error is at most this, with probability `confidence`.
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        size = check_integer(size, "size", 1, math.inf)
        return self.scale * float(gammaincinv(size, confidence))

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> float | np.ndarray:
        """Return the values with fresh noise.

        Parameters
        ----------
        values : float or array-like of numbers
            Their L2 sensitivity, all together, is `sensitivity`.
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
            If the values are not finite real numbers.
        """
        array, shape = _grid.check_values(values)
        step = _grid.power_of_two_below(self.scale * math.sqrt(array.size)) * 2.0**-20
        steps = _grid.to_steps(array, step)
        rest = _grid.fractions_of_steps(array, step)
        stream = as_source(random_state).stream()
        noise = rounded_norm_noise(rest, self.scale / step, stream)
        return _grid.from_steps(steps + noise, step, shape)
