"""Noise on a vector with known L2 sensitivity: Gaussian, or with a gamma-distributed norm."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtri

from skdp.accounting import Event, Gaussian, gaussian_noise_multiplier, get_epsilon
from skdp.accounting._composition import is_proved
from skdp.mechanisms import _grid
from skdp.noise import LARGEST_SCALE, SourceLike, as_source, discrete_gaussian, rounded_norm_noise
from skdp.utils._rounding import float_up
from skdp.utils._validation import check_choice, check_integer, check_positive, check_within
from skdp.utils._values import checked, computed


def _classical(epsilon, delta):
    """Return the classical noise multiplier sqrt(2 ln(1.25 / delta)) / epsilon, rounded up."""
    if epsilon > 1.0:
        raise ValueError(
            "calibration='classical' is valid for epsilon <= 1 only, got "
            f"epsilon={epsilon!r}; use calibration='analytic'"
        )
    return _grid.round_up(math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon * (1.0 + 2.0**-48))


_CALIBRATIONS = {"analytic": gaussian_noise_multiplier, "classical": _classical}


@dataclass(frozen=True)
class GaussianMechanism(_grid.GridMechanism):
    """Add Gaussian noise; the release is (epsilon, delta)-DP.

    The values are rounded to a grid whose step is a power of two, at most 2**-20 of the standard
    deviation. Discrete Gaussian noise is added on the grid, exactly, in integers. Rounding d values
    can raise the sensitivity by sqrt(d) grid steps. The noise is raised in proportion, by a factor
    of at most about 1 + max(2**-16, 2**-44 sqrt(d) noise_multiplier), and by a relative 2**-37
    because the noise is discrete. Therefore, `event` is the event of the continuous mechanism. A
    noise multiplier above about 2**47 / sqrt(d) is refused.

    Parameters
    ----------
    epsilon : float > 0
        Epsilon of one release.
    delta : float in (0, 1)
        Delta of one release.
    sensitivity : float > 0
        Maximum L2 distance between the values of neighboring datasets, under the accountant's
        neighboring relation.
    calibration : {"analytic", "classical"}, default="analytic"
        "analytic" is the smallest sufficient noise, for any epsilon. "classical" is ``sqrt(2
        ln(1.25 / delta)) * sensitivity / epsilon``, for comparison; it is valid only for epsilon <=
        1.
    noise_multiplier : float, default=None
        Standard deviation divided by the sensitivity. None calibrates it to (epsilon, delta). A
        number that is too small for them is refused.

    Attributes
    ----------
    scale : float
        The standard deviation sigma = noise_multiplier * sensitivity. The noise in a release of d
        values has the slightly larger standard deviation ``scale_for(d)``, because of the rounding.
    rho : float
        The release is rho-zCDP; the value is rounded up.
    event : skdp.accounting.Gaussian
        Privacy event of one release. It holds for an array with that L2 sensitivity.

    Raises
    ------
    ValueError
        If a parameter is out of range, if epsilon > 1 with the classical calibration, if the noise
        multiplier is too small for (epsilon, delta), or if epsilon is too small to release even one
        value.

    References
    ----------
    B. Balle, Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical
    Calibration and Optimal Denoising", 2018. M. Bun, T. Steinke, "Concentrated Differential
    Privacy", 2016 (rho). C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for
    Differential Privacy", 2020 (the sampler).

    Examples
    --------
    >>> from skdp.mechanisms import GaussianMechanism
    >>> mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    >>> round(mechanism.scale, 4)
    3.7306
    >>> mechanism.release([1.0, 2.0, 3.0]).shape
    (3,)
    """

    epsilon: float
    delta: float = checked(check_within, low=0.0, high=1.0, ends="()")
    sensitivity: float = checked(check_positive)
    calibration: str = checked(check_choice, default="analytic", choices=_CALIBRATIONS)
    noise_multiplier: float = computed()

    name: ClassVar[str] = "Gaussian mechanism"
    _deviation: ClassVar[float] = 1.0
    _mean_error: ClassVar[float] = math.sqrt(2.0 / math.pi)
    _sample = staticmethod(discrete_gaussian)

    def __post_init__(self):
        super().__post_init__()
        has_multiplier = self.noise_multiplier is not None
        epsilon_ends = "()"
        if has_multiplier:
            # Noise that is large enough is (0, delta)-DP.
            epsilon_ends = "[)"
        epsilon = check_within(self.epsilon, "epsilon", 0.0, ends=epsilon_ends)
        if has_multiplier:
            multiplier = check_positive(self.noise_multiplier, "noise_multiplier")
            if not is_proved(Gaussian(multiplier), epsilon, self.delta, "add_remove"):
                raise ValueError(
                    f"noise_multiplier={multiplier!r} is too small for (epsilon={epsilon!r}, "
                    f"delta={self.delta!r}); leave it out to calibrate it"
                )
        else:
            multiplier = _CALIBRATIONS[self.calibration](epsilon, self.delta)
        vars(self).update(epsilon=epsilon, noise_multiplier=multiplier)
        _grid.check_scale(self.scale)
        self.check_size(1)

    @classmethod
    def from_rho(cls, rho: float, sensitivity: float, delta: float) -> Self:
        """Return the mechanism that is rho-zCDP: sigma**2 = sensitivity**2 / (2 rho).

        Parameters
        ----------
        rho : float > 0
            The rho of one release.
        sensitivity : float > 0
            Sensitivity as in the constructor.
        delta : float in (0, 1)
            Delta at which epsilon is stated. It does not change the noise.

        Returns
        -------
        GaussianMechanism
        """
        rho = check_positive(rho, "rho")
        multiplier = 1.0 / math.sqrt(2.0 * rho)
        while 2 * Fraction(rho) * Fraction(multiplier) ** 2 < 1:
            multiplier = _grid.round_up(multiplier)
        return cls._with_multiplier(multiplier, sensitivity, delta)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: float, delta: float) -> Self:
        """Return the mechanism whose noise has a given standard deviation.

        Parameters
        ----------
        scale : float > 0
            The standard deviation.
        sensitivity : float > 0
            Sensitivity as in the constructor.
        delta : float in (0, 1)
            Delta at which epsilon is stated. It does not change the noise.

        Returns
        -------
        GaussianMechanism
        """
        multiplier = check_positive(scale, "scale") / check_positive(sensitivity, "sensitivity")
        return cls._with_multiplier(math.nextafter(multiplier, 0.0), sensitivity, delta)

    @classmethod
    def _with_multiplier(cls, multiplier, sensitivity, delta):
        epsilon = get_epsilon(Gaussian(multiplier), delta)
        return cls(epsilon, delta, sensitivity, noise_multiplier=multiplier)

    @cached_property
    def scale(self) -> float:
        return _grid.round_up(self.noise_multiplier * self.sensitivity)

    @property
    def rho(self) -> float:
        return float_up(1 / (2 * Fraction(self.noise_multiplier) ** 2))

    @cached_property
    def event(self) -> Event:
        return Gaussian(self.noise_multiplier)

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
        return -self.scale_for(size) * math.sqrt(terms) * float(ndtri(probability))

    def _on_grid(self, size):
        """Return the grid step for `size` values, and the standard deviation in steps.

        Raise `ValueError` if the standard deviation is too large for `size` values, or `size` is
        not positive.
        """
        root = math.sqrt(check_integer(size, "size", 1, math.inf))
        step = _grid.grid_step(self.scale, self.sensitivity / root)
        sigma = sigma_in_steps(self.scale, self.sensitivity, root, step)
        return step, _grid.check_steps(self, sigma, size, 0.5 * LARGEST_SCALE)


def sigma_in_steps(scale, sensitivity, root, step):
    """Return the standard deviation in steps, raised for the rounding and the discrete noise.

    Rounding adds at most sqrt(d) steps to the L2 distance; `root` is sqrt(d). A discrete Gaussian
    with variance s**2 is within a factor of 1 + exp(-300) of a randomized rounding of a continuous
    one with variance s**2 - 16. The factor 1 + 2**-40 covers the rounding of this computation.
    """
    raised = scale / step * (1.0 + root * step / sensitivity)
    return math.sqrt(raised * raised + 16.0) * (1.0 + 2.0**-40)


@dataclass(frozen=True)
class GammaNormMechanism(_grid.PureMechanism):
    """Add noise b with density proportional to exp(-epsilon ||b||_2 / sensitivity).

    The release is epsilon-DP for a vector with known L2 sensitivity. The direction of b is uniform,
    and its length has a gamma distribution with shape d and scale sensitivity / epsilon.

    The exact sum of value and noise is rounded to a grid whose step is a power of two, about 2**-20
    sqrt(d) times the scale. The noise is evaluated with all the bits that exact rounding needs. The
    rounding is therefore post-processing: it adds no sensitivity, and delta is 0.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one release.
    sensitivity : float > 0
        Maximum L2 distance between the values of neighboring datasets, under the accountant's
        neighboring relation.

    Attributes
    ----------
    scale : float
        The scale sensitivity / epsilon of the gamma distribution of the noise's length. Each of d
        values has a standard deviation of sqrt(d + 1) times the scale.
    event : skdp.accounting.PureDP
        Privacy event of one release.
    delta : float
        It is 0.

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

    def deviation(self, size: int) -> float:
        """Return the standard deviation of the noise in each value.

        Parameters
        ----------
        size : int
            Number of values that are released together.

        Returns
        -------
        float
            ``scale * sqrt(size + 1)``: the mean square of the norm is ``size * (size + 1)`` times
            that of the scale.
        """
        return self.scale * math.sqrt(check_integer(size, "size", 1) + 1)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return a bound, not a mean, on the L2 norm of the error, which holds with `confidence`.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Probability that the error is at most the returned bound.
        size : int, default=1
            Number of values that are released together.

        Returns
        -------
        float
            With probability `confidence` the L2 norm of the error is at most this.
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        size = check_integer(size, "size", 1, math.inf)
        return self.scale * float(gammaincinv(size, confidence))

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> float | np.ndarray:
        """Return the values with fresh noise.

        Parameters
        ----------
        values : float or array-like of numbers
            All values together have the L2 sensitivity `sensitivity`.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer makes the noise
            reproducible, so there is no protection.

        Returns
        -------
        float or ndarray of float64
            Array of the shape of `values`.

        Raises
        ------
        ValueError
            If the values are not finite real numbers.
        """
        array, shape = _grid.check_values(values)
        step = _grid.power_of_two_below(self.scale * math.sqrt(array.size)) * 2.0**-20
        steps = _grid.to_steps(array, step)
        remainders = np.array([math.remainder(value, step) / step for value in array.tolist()])
        noise = rounded_norm_noise(remainders, self.scale / step, as_source(random_state).stream())
        return _grid.from_steps(steps + noise, step, shape)
