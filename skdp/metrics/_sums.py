"""The values of a row that regression metrics sum, and the metrics computed from released sums.

Means of bounded losses are also computed here. The sensitivities of the sums are in
`skdp.metrics._releases`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from skdp.metrics._bootstrap import Errors, draw_noise, uniforms
from skdp.metrics._values import NoisyScore
from skdp.utils._values import FrozenValue


def mean_score(name, sums, statistics, mechanism, stream, n_draws, *, scale=1.0):
    """Return the `NoisyScore` of a mean of values in [0, 1], times a scale.

    Parameters
    ----------
    name : str
    sums : ndarray of shape (2,)
        Released sums of the values and of their squares.
    statistics : LossSums
    mechanism : Mechanism
        The mechanism that added the noise.
    stream : Stream
    n_draws : int
    scale : float, default=1
    """
    mean, mean_square = sums / statistics.n_units
    noise = statistics.uncentered_noise(draw_noise(mechanism, statistics.size, n_draws, stream))
    noise = noise[:, 0] / statistics.n_units
    # A variance smaller than its noise is unknown, so the noise is added to it.
    variance_noise = np.std(noise) * statistics.factors[0] / statistics.factors[1]
    mean_clipped = float(np.clip(mean, 0.0, 1.0))
    variance = np.clip(mean_square - mean_clipped**2, 0.0, mean_clipped * (1.0 - mean_clipped))
    variance = min(variance + variance_noise, 0.25)
    sampling = math.sqrt(variance / statistics.n_units) * ndtri(uniforms((n_draws,), stream))
    errors = Errors(scale * noise, scale * (noise + sampling))
    return score_from_errors(name, scale * mean, errors, 0.0, scale)


def score_from_errors(name, value, errors, low, high):
    """Return the `NoisyScore` of a value, from draws of its error, clipped to its range."""
    noise_interval, interval = errors.intervals(value, low, high)
    noise_std, std = errors.deviations()
    return NoisyScore(
        float(np.clip(value, low, high)),
        name=name,
        noise_std=noise_std,
        std=std,
        noise_interval=noise_interval,
        interval=interval,
    )


def regression_values(y_true, y_pred, target_bounds):
    """Return the vector of each row whose sums `ErrorSums` releases.

    Targets and predictions are clipped to the bounds; a prediction of NaN counts as the bound that
    is farther from the target.

    Returns
    -------
    ndarray of shape (n_rows, 9)
    """
    low, high = target_bounds
    half = (high - low) / 2.0
    middle = low + half
    with np.errstate(all="ignore"):
        u = np.clip((np.asarray(y_true, dtype=np.float64) - middle) / half, -1.0, 1.0)
        v = np.clip((np.asarray(y_pred, dtype=np.float64) - middle) / half, -1.0, 1.0)
    v = np.where(np.isnan(v), np.where(u > 0.0, -1.0, 1.0), v)
    error = np.abs(u - v) / 2.0
    squared = error * error
    u_squared = u * u
    return np.column_stack(
        [
            squared,
            error,
            u,
            u_squared,
            squared * squared,
            u_squared * u,
            u_squared * u_squared,
            squared * u,
            squared * u_squared,
        ]
    )


def error_covariance(means):
    """Return the covariance of e^2 and (y - mean of y)^2, computed from means.

    The error e is in [0, 1] and y in [-1, 1], as in `regression_values`: e is half the difference
    of y and its prediction.

    Parameters
    ----------
    means : ndarray of shape (..., 9)
        Means of `regression_values`.

    Returns
    -------
    ndarray of shape (...)
    """
    squared, first, second = means[..., 0], means[..., 2], means[..., 3]
    with_first, with_second = means[..., 7], means[..., 8]
    product = with_second - 2.0 * first * with_first + first**2 * squared
    return product - squared * (second - first**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionSums(FrozenValue):
    """Released sums of errors and of targets: the source of all regression metrics.

    Parameters
    ----------
    sums : ndarray of shape (9,)
        Sums of the vectors of `regression_values`.
    n_units : int
        Public number of rows, or of persons.
    noise : ndarray of shape (n_draws, 9)
        Bootstrap draws of the noise in the sums.
    normals : ndarray of shape (n_draws,)
        Standard normal numbers for the sampling errors.
    target_bounds : tuple of (low, high)
    """

    sums: np.ndarray
    n_units: int
    noise: np.ndarray
    normals: np.ndarray
    target_bounds: tuple

    @classmethod
    def from_release(cls, sums, statistics, mechanism, stream, n_draws, target_bounds):
        """Return the released sums with bootstrap draws of their noise and of sampling errors."""
        noise = statistics.uncentered_noise(draw_noise(mechanism, statistics.size, n_draws, stream))
        return cls(
            sums=sums,
            n_units=statistics.n_units,
            noise=noise,
            normals=ndtri(uniforms((n_draws,), stream)),
            target_bounds=target_bounds,
        )

    @property
    def _width(self):
        return self.target_bounds[1] - self.target_bounds[0]

    @cached_property
    def moments(self):
        """The means of `regression_values`, clipped to their possible ranges."""
        means = self.sums / self.n_units
        low = np.array([0.0, 0.0, -1.0, 0.0, 0.0, -1.0, 0.0, -1.0, 0.0])
        return np.clip(means, low, 1.0)

    @cached_property
    def _noisy_means(self):
        return (self.sums + self.noise) / self.n_units

    def _sampling_variance(self, name):
        """Return the variance of one row's influence on a metric, from released moments.

        A row's influence on R^2 is -((2 e)^2 - (1 - R^2) d^2) / V, where d is the distance of its
        target from the mean, and V the variance of the targets. Targets are in [-1, 1] here, and e
        in [0, 1] is half the error (`regression_values`).
        """
        squared, absolute, first, second, fourth_error, third, fourth, *_ = self.moments
        if name == "absolute":
            return max(squared - absolute**2, 0.0)
        # The noise in the fourth moment can exceed the moment, so the variance is raised to at
        # least that of the squares of normal errors.
        error_variance = max(fourth_error - squared**2, 2.0 * squared**2)
        if name == "squared":
            return error_variance
        variance = second - first**2
        fourth_central = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
        # The variance of squares is at most that of a variable that takes only the values at the
        # two bounds.
        spread = min(max(fourth_central - variance**2, 0.0), 4.0 * max(variance, 0.0))
        # 1 - R^2. The variance of (2 e)^2 - unexplained * d^2 follows: that of (2 e)^2 is 16 times
        # that of e^2, and twice its covariance with unexplained * d^2 is 8 unexplained times that
        # of e^2 and d^2.
        unexplained = 4.0 * squared / variance
        covariance = self._shrunk_covariance(math.sqrt(error_variance * spread))
        independent = 16.0 * error_variance + unexplained**2 * spread
        # Rounding may make the difference of equal terms negative.
        return max(independent - 8.0 * unexplained * covariance, 0.0) / variance**2

    def _shrunk_covariance(self, max_magnitude):
        """Return the `error_covariance`, shrunk towards 0 where it is mostly noise.

        The factor is the fraction of the squared covariance that is signal. With a factor of 0, the
        interval of R^2 would be too wide where errors are larger for extreme targets. An unshrunk
        covariance would make it too narrow as often as too wide.

        Parameters
        ----------
        max_magnitude : float
            Bound by the inequality of Cauchy and Schwarz.
        """
        covariance = float(error_covariance(self.sums / self.n_units))
        noise_std = float(np.std(error_covariance(self._noisy_means)))
        # The lower limit is for a covariance and a noise of 0.
        signal = covariance**2 / max(covariance**2 + noise_std**2, 1e-300)
        return float(np.clip(signal * covariance, -max_magnitude, max_magnitude))

    def _score(self, name, statistic, influence, low, high, scale=1.0):
        """Return the `NoisyScore` of a metric that is a function of the means.

        Parameters
        ----------
        name : str
        statistic : callable
            Function of means of shape (n, 9) that returns n values of the metric.
        influence : {"squared", "absolute", "r2"}
            Row's influence on the metric, whose variance is that of the sampling error.
        low, high : float
            Range of the metric.
        scale : float, default=1.0
            Factor of the influence, in the unit of the metric.
        """
        means = self.sums / self.n_units
        value = float(statistic(means[np.newaxis])[0])
        noise = statistic(self._noisy_means) - value
        sampling = scale * math.sqrt(self._sampling_variance(influence) / self.n_units)
        errors = Errors(noise, noise + sampling * self.normals)
        return score_from_errors(name, value, errors, low, high)

    def mean_squared_error(self):
        """Return the mean squared error."""
        scale = self._width**2

        def statistic(means):
            return scale * means[:, 0]

        return self._score("mean_squared_error", statistic, "squared", 0.0, scale, scale)

    def root_mean_squared_error(self):
        """Return the root mean squared error."""
        width = self._width

        def statistic(means):
            return width * np.sqrt(np.maximum(means[:, 0], 0.0))

        root = math.sqrt(self.moments[0])
        scale = width
        if root > 0.0:
            scale = width / (2.0 * root)
        return self._score("root_mean_squared_error", statistic, "squared", 0.0, width, scale)

    def mean_absolute_error(self):
        """Return the mean absolute error."""
        width = self._width

        def statistic(means):
            return width * means[:, 1]

        return self._score("mean_absolute_error", statistic, "absolute", 0.0, width, width)

    def target_std(self):
        """Return the standard deviation of the targets: the error of predicting their mean."""
        width = self._width

        def statistic(means):
            return width / 2.0 * np.sqrt(np.maximum(means[:, 3] - means[:, 2] ** 2, 0.0))

        return float(statistic((self.sums / self.n_units)[np.newaxis])[0])

    def r2(self):
        """Return the coefficient of determination.

        If the noise does not rule out a target variance of 0, the interval is unbounded.
        """

        def variances(means):
            return means[:, 3] - means[:, 2] ** 2

        noisy = variances(self._noisy_means)
        variance = float(variances((self.sums / self.n_units)[np.newaxis])[0])

        def statistic(means):
            # A draw of the variance near 0 would give an unbounded outlier.
            return 1.0 - 4.0 * means[:, 0] / np.maximum(variances(means), 0.05 * variance)

        if variance > 3.0 * np.std(noisy):
            return self._score("r2", statistic, "r2", -math.inf, 1.0)
        # Nothing is known about the ratio, so the result is the value for predicting the mean.
        return NoisyScore(
            0.0,
            name="r2",
            noise_std=math.inf,
            std=math.inf,
            noise_interval=(-math.inf, 1.0),
            interval=(-math.inf, 1.0),
        )
