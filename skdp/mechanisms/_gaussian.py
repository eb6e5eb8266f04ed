"""The Gaussian mechanism."""

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import ndtri

from skdp.accounting import Gaussian, gaussian_delta, gaussian_noise_multiplier
from skdp.accounting import epsilon as event_epsilon
from skdp.mechanisms._checks import (
    check_confidence,
    check_number,
    check_scale,
    check_values,
    round_up,
)
from skdp.mechanisms._grid import from_steps, grid_step, to_steps
from skdp.noise import as_source, discrete_gaussian

_CALIBRATIONS = ("analytic", "classical")


@dataclass(frozen=True)
class GaussianMechanism:
    """Add Gaussian noise; the release is (epsilon, delta)-DP.

    The values are rounded to a grid, a power of two at most 2**-20 of the standard deviation, and
    discrete Gaussian noise is added there, exactly and in integers. Rounding d values can raise
    the sensitivity by sqrt(d) grid steps; the noise is raised in the same proportion (by a factor
    of at most 1 + 2**-16), and by a relative 2**-37 for which the discrete law is
    priced by the continuous one: `event` stays that of the continuous mechanism.

    Parameters
    ----------
    epsilon : float > 0
    delta : float in (0, 1)
        A release is (epsilon, delta)-DP.
    sensitivity : float > 0
        By how much the values can differ in L2 norm between neighbouring data sets, under the
        relation that the accountant protects.
    calibration : {"analytic", "classical"}, default="analytic"
        "analytic" is the least noise that suffices, for any epsilon. "classical" is
        ``sqrt(2 ln(1.25 / delta)) * sensitivity / epsilon``, for comparison; it is valid for
        epsilon <= 1 only.
    noise_multiplier : float, default=None
        Standard deviation over sensitivity; None calibrates it. A given one must suffice.

    Attributes
    ----------
    scale : float
        The standard deviation sigma of the noise on the released values.
    rho : float
        The release is rho-zCDP.
    event : skdp.accounting.Gaussian
        What one release costs. It holds for a whole array of that L2 sensitivity.

    Raises
    ------
    ValueError
        If a parameter is out of range, if the classical calibration is asked for epsilon > 1, or
        if a given noise multiplier is too small for (epsilon, delta).

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
    delta: float
    sensitivity: float
    calibration: str = "analytic"
    noise_multiplier: float | None = None

    name: ClassVar[str] = "Gaussian mechanism"

    def __post_init__(self):
        given = self.noise_multiplier is not None
        numbers = {
            "epsilon": check_number("epsilon", self.epsilon, include_low=given),
            "delta": check_number("delta", self.delta, high=1.0),
            "sensitivity": check_number("sensitivity", self.sensitivity),
        }
        if self.calibration not in _CALIBRATIONS:
            raise ValueError(
                f"calibration must be one of {_CALIBRATIONS}, got {self.calibration!r}"
            )
        calibrate = _classical if self.calibration == "classical" else gaussian_noise_multiplier
        if given:
            multiplier = check_number("noise_multiplier", self.noise_multiplier)
            _check_sufficient(multiplier, numbers["epsilon"], numbers["delta"])
        else:
            multiplier = calibrate(numbers["epsilon"], numbers["delta"])
        for name, value in (numbers | {"noise_multiplier": multiplier}).items():
            object.__setattr__(self, name, value)
        check_scale(self.scale)

    @classmethod
    def from_rho(cls, rho, sensitivity, delta):
        """Return the mechanism that is rho-zCDP: sigma**2 = sensitivity**2 / (2 rho).

        Parameters
        ----------
        rho : float > 0
        sensitivity : float > 0
        delta : float in (0, 1)
            At which epsilon is stated; it does not change the noise.

        Returns
        -------
        GaussianMechanism
        """
        rho = check_number("rho", rho)
        multiplier = round_up(round_up(1.0 / math.sqrt(2.0 * rho)))
        return cls._with_multiplier(multiplier, sensitivity, delta)

    @classmethod
    def from_scale(cls, scale, sensitivity, delta):
        """Return the mechanism whose noise has a given standard deviation.

        Parameters
        ----------
        scale : float > 0
        sensitivity : float > 0
        delta : float in (0, 1)
            At which epsilon is stated; it does not change the noise.

        Returns
        -------
        GaussianMechanism
        """
        scale = check_number("scale", scale)
        sensitivity = check_number("sensitivity", sensitivity)
        multiplier = math.nextafter(scale / sensitivity, 0.0)
        return cls._with_multiplier(multiplier, sensitivity, delta)

    @classmethod
    def _with_multiplier(cls, multiplier, sensitivity, delta):
        delta = check_number("delta", delta, high=1.0)
        epsilon = event_epsilon(Gaussian(multiplier), delta)
        return cls(epsilon, delta, sensitivity, noise_multiplier=multiplier)

    @property
    def scale(self):
        return round_up(self.noise_multiplier * self.sensitivity)

    @property
    def rho(self):
        return round_up(0.5 / self.noise_multiplier**2)

    @property
    def event(self):
        return Gaussian(self.noise_multiplier)

    def expected_error(self, confidence=0.95, size=1):
        """Return what the error of a release stays below.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
        size : int, default=1
            How many values are released together.

        Returns
        -------
        float
            No error of the `size` values exceeds it, with probability `confidence`.
        """
        return -self.scale * float(ndtri(0.5 * (1.0 - check_confidence(confidence, size))))

    def release(self, values, *, random_state=None):
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
        array, shape = check_values(values)
        root = math.sqrt(array.size)
        step = grid_step(self.scale, self.sensitivity / root)
        steps = to_steps(array, step)
        sigma = _sigma_in_steps(self.scale, self.sensitivity, root, step)
        noise = discrete_gaussian(sigma, array.size, as_source(random_state).stream())
        return from_steps(steps + noise, step, shape)


def _sigma_in_steps(scale, sensitivity, root, step):
    """The standard deviation that pays for rounding and for pricing by the continuous law.

    Rounding adds at most sqrt(d) steps to the L2 distance. A discrete Gaussian of variance s**2 is
    within a factor of 1 + exp(-300) of a randomised rounding of a continuous one of variance
    s**2 - 16. The factor 1 + 2**-40 covers the rounding of this computation.
    """
    raised = scale / step * (1.0 + root * step / sensitivity)
    return math.sqrt(raised * raised + 16.0) * (1.0 + 2.0**-40)


def _classical(epsilon, delta):
    if epsilon > 1.0:
        raise ValueError(
            "the classical calibration is valid for epsilon <= 1 only, got "
            f"epsilon={epsilon!r}; use calibration='analytic'"
        )
    return round_up(math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon * (1.0 + 2.0**-48))


def _check_sufficient(multiplier, epsilon, delta):
    if gaussian_delta(multiplier, epsilon) > delta and (
        event_epsilon(Gaussian(multiplier), delta) > epsilon
    ):
        raise ValueError(
            f"noise_multiplier={multiplier!r} is too small for (epsilon={epsilon!r}, "
            f"delta={delta!r})"
        )
