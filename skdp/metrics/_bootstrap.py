"""Parametric bootstrap of noise and sampling, from released values only.

All of it is post-processing: it reads released values and public numbers, and draws its random
numbers from the release's noise source.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri, pdtr

from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, GeometricMechanism
from skdp.utils._values import FrozenValue

# Number of draws; public. Quantiles at 2.5 % have a standard error of about half a percent.
N_DRAWS = 1000
CONFIDENCE = 0.95
# Mean from which a Poisson count is drawn as a rounded normal number.
MIN_NORMAL_MEAN = 30.0


def uniforms(shape, stream):
    """Return uniform doubles in (0, 1)."""
    words = stream.words(math.prod(shape))
    return ((words >> np.uint64(12)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-52


def draw_noise(mechanism, size, n_draws, stream):
    """Return draws of a mechanism's noise, as an array of shape (n_draws, size).

    They are drawn in double precision, because these draws do not protect anything.
    """
    if isinstance(mechanism, GammaNormMechanism):
        directions = ndtri(uniforms((n_draws, size), stream))
        norms = np.sqrt((directions**2).sum(axis=1, keepdims=True))
        radii = gammaincinv(size, uniforms((n_draws, 1), stream))
        return mechanism.scale * radii * directions / norms
    if isinstance(mechanism, GaussianMechanism):
        return mechanism.deviation(size) * ndtri(uniforms((n_draws, size), stream))
    u = uniforms((2, n_draws, size), stream)
    if isinstance(mechanism, GeometricMechanism):
        # The difference between two geometric variables is discrete Laplace.
        first, second = np.floor(-mechanism.scale * np.log(u))
        return first - second
    return mechanism.deviation(size) / math.sqrt(2.0) * (np.log(u[0]) - np.log(u[1]))


def draw_counts(expected, total, n_draws, stream):
    """Return draws of the counts of `total` independent rows with these expected counts.

    They are Poisson counts, divided by their sum and multiplied by the total. Their means and
    covariances are those of a multinomial distribution up to terms of order 1 / total.

    Parameters
    ----------
    expected : ndarray
        Expected counts, not negative.
    total : float
    n_draws : int
    stream : Stream

    Returns
    -------
    ndarray of shape (n_draws, *expected.shape)
    """
    means = expected.ravel()
    u = uniforms((n_draws, means.size), stream)
    counts = np.empty(u.shape)
    is_large = means >= MIN_NORMAL_MEAN
    large = means[is_large]
    counts[:, is_large] = np.maximum(np.rint(large + np.sqrt(large) * ndtri(u[:, is_large])), 0.0)
    # With a mean below 30, counts of 100 and more have a probability below 1e-20.
    numbers = np.arange(100.0)
    for j in np.flatnonzero(~is_large):
        counts[:, j] = np.searchsorted(pdtr(numbers, means[j]), u[:, j])
    sums = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return (counts * (total / sums)).reshape(n_draws, *expected.shape)


@dataclass(frozen=True, eq=False)
class Errors(FrozenValue):
    """Bootstrap draws of the error in a released value.

    Parameters
    ----------
    noise : ndarray of shape (n_draws, ...)
        Errors against the value of the raw rows: noise only.
    total : ndarray of shape (n_draws, ...)
        Errors against the value of the population: noise and sampling.
    """

    noise: np.ndarray
    total: np.ndarray

    def intervals(self, value, low=-math.inf, high=math.inf, slack=(0.0, 0.0)):
        """Return the intervals for noise alone and for noise and sampling, each as (low, high).

        Parameters
        ----------
        value : float or ndarray
        low, high : float
            Range of the value; intervals are clipped to it.
        slack : tuple of (below, above), default=(0, 0)
            Amounts by which the intervals are widened on each side.
        """
        return tuple(
            _interval(value, errors, low, high, slack) for errors in (self.noise, self.total)
        )

    def deviations(self):
        """Return the standard deviations of the noise alone, and of noise and sampling together."""
        return np.nanstd(self.noise, axis=0), np.nanstd(self.total, axis=0)


def _interval(value, errors, low, high, slack):
    """Return the basic bootstrap interval of a value from draws of its error."""
    tail = (1.0 - CONFIDENCE) / 2.0
    smallest, largest = np.nanquantile(errors, [tail, 1.0 - tail], axis=0)
    below, above = slack
    return np.clip(value - largest - below, low, high), np.clip(value - smallest + above, low, high)
