"""The exact privacy profile of the Gaussian mechanism, without cancellation (Balle, Wang 2018)."""

import math
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from skdp.utils._rounding import up_from_underflow
from skdp.utils._validation import check_positive, check_within

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# exp overflows a little above this.
_MAX_EXPONENT = 700.0
# The Gaussian tail beyond this number of standard deviations underflows to 0.
_UNDERFLOW = 40.0
# Half a unit in the last place, as a relative error.
_UNIT = 2.0**-53
# Points of the tangents in `mean_delta`, relative to the farthest one.
_TANGENTS = np.geomspace(2.0**-12, 1.0, 64)


def gdp_to_delta(mu: float, epsilon: float) -> float:
    """Return delta at epsilon for mu-Gaussian DP (Balle and Wang 2018, theorem 8).

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). `epsilon` may be
    negative; `mu` may be 0 or infinite.

    Parameters
    ----------
    mu : float
        The parameter of Gaussian DP, at least 0: 1 over the noise multiplier.
    epsilon : float
        The epsilon, of any sign; it may be infinite.

    Returns
    -------
    float
        The delta, in [0, 1], rounded up.

    Examples
    --------
    >>> from skdp.accounting import gdp_to_delta
    >>> round(gdp_to_delta(1.0, 1.0), 6)
    0.126937
    """
    mu = check_within(mu, "mu", 0.0)
    epsilon = check_within(epsilon, "epsilon", -math.inf)
    return delta_of_mu(mu, epsilon)


def delta_of_mu(mu, epsilon):
    """Return `gdp_to_delta` without checks of the ranges, rounded up.

    With a = epsilon / mu - mu / 2, b = a + mu and Mills' ratio M, delta is phi(a) (M(a) - M(b)).
    First, a is lowered by a bound on its rounding errors, including that of `mu`. Then delta is
    raised by a bound on its relative error, on the assumption that erfcx is within 4 units in the
    last place. This bound is a multiple of 2^-53 that grows with the cancellation.
    """
    if epsilon < 0.0:
        rest = math.exp(epsilon) * delta_of_mu(mu, -epsilon)
        return min(1.0, (rest - math.expm1(epsilon)) * (1.0 + 8.0 * _UNIT))
    if mu == 0.0:
        return 0.0
    if mu == math.inf:
        if epsilon < math.inf:
            return 1.0
        return 0.0
    if epsilon > _MAX_EXPONENT**4 or mu > _MAX_EXPONENT**2:
        half = mu * (epsilon / mu / mu - 0.5)
    else:
        half = (epsilon - 0.5 * mu * mu) / mu
    if half > _UNDERFLOW:
        return up_from_underflow(0.0)
    a = half - 4.0 * _UNIT * (1.0 + abs(half) + mu)
    low = a / math.sqrt(2)
    width = mu / math.sqrt(2)
    scale = 0.5 * math.exp(-0.5 * a * a)
    if a < -1.0:
        delta = float(ndtr(-a)) - scale * float(erfcx(low + width))
        units = 32.0
    elif mu > 1.0:
        delta = scale * float(erfcx(low) - erfcx(low + width))
        units = a * a + 24.0 * (a + 2.0)
    else:
        x = low + 0.5 * width * (1.0 + _NODES)
        # The derivative of -erfcx, integrated by Gauss-Legendre quadrature.
        mean_derivative = 0.5 * float(_WEIGHTS @ (2.0 / math.sqrt(math.pi) - 2.0 * x * erfcx(x)))
        delta = scale * width * mean_derivative
        units = 18.0 * (a * a + 2.0)
    return min(1.0, up_from_underflow(delta * (1.0 + units * _UNIT)))


def gdp_to_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 with `gdp_to_delta(mu, epsilon) <= delta`.

    Parameters
    ----------
    mu : float
        The parameter of Gaussian DP, at least 0: 1 over the noise multiplier.
    delta : float
        The delta, in [0, 1].

    Returns
    -------
    float
        The epsilon, rounded up; infinite if there is none.

    Examples
    --------
    >>> from skdp.accounting import gdp_to_epsilon
    >>> round(gdp_to_epsilon(1.0, 1e-5), 6)
    4.377178
    """
    mu = check_within(mu, "mu", 0.0)
    delta = check_within(delta, "delta", 0.0, 1.0)
    if delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    if delta <= 0.0 or mu == math.inf:
        return math.inf
    low, high = 0.0, 0.5 * mu * mu + mu * math.sqrt(-2.0 * math.log(delta))
    growth = 1e-9
    while delta_of_mu(mu, high) > delta:
        low, high = high, high * (1.0 + growth)
        growth *= 2.0
        if not math.isfinite(high):
            return math.inf
    return smallest_epsilon(partial(delta_of_mu, mu), delta, high, low)


def smallest_epsilon(curve, delta, high, low=0.0):
    """Return the smallest epsilon in [low, high] with curve(epsilon) <= delta, rounded up."""
    if curve(low) <= delta:
        return low
    root = high
    if curve(high) < delta:
        root = _decreasing_root(curve, delta, low, high)

    def is_safe(epsilon):
        return curve(epsilon) <= delta

    return round_to_safe(is_safe, root)


def _decreasing_root(function, target, low, high):
    """Return x in [low, high] with function(x) close to the target, found on a log scale."""

    def gap(x):
        """Return ln(function(x) / target), whose root `brentq` finds."""
        value = function(x)
        # ln of a value that underflowed is below that of every positive float, about -745.
        if value > 0.0:
            log_value = math.log(value)
        else:
            log_value = -1e4
        return log_value - math.log(target)

    return brentq(gap, low, high, xtol=1e-300, rtol=4 * 2.0**-52, maxiter=200, disp=False)


def round_to_safe(is_safe, value, step=2.0**-52):
    """Return a value if it is safe, else the first safe value reached by growing steps."""
    while not is_safe(value):
        value += max(abs(value), 1e-20) * step
        step *= 2.0
    return value


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the exact delta at epsilon for one Gaussian release (Balle and Wang 2018).

    Parameters
    ----------
    noise_multiplier : float > 0
        Standard deviation of the noise divided by the L2 sensitivity.
    epsilon : float >= 0
        The epsilon.

    Returns
    -------
    float
        The smallest delta for which the release is (epsilon, delta)-DP.

    Examples
    --------
    >>> from skdp.accounting import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    check_within(epsilon, "epsilon", 0.0)
    noise = check_within(noise_multiplier, "noise_multiplier", 0.0, ends="(]")
    return delta_of_mu(1.0 / noise, float(epsilon))


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest noise multiplier of an (epsilon, delta)-DP Gaussian release.

    This is the analytic Gaussian mechanism (Balle and Wang 2018). It is valid for every epsilon,
    and accurate from 1e-6 to 1e12.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of the budget.
    delta : float in (0, 1)
        The delta of the budget.

    Returns
    -------
    float
        A noise multiplier z on the safe side: both ``gaussian_delta(z, epsilon) <= delta`` and
        ``get_epsilon(Gaussian(z), delta) <= epsilon`` hold in floating point.

    Raises
    ------
    ValueError
        If epsilon or delta is out of range; a Gaussian release needs delta > 0.

    Examples
    --------
    >>> from skdp.accounting import gaussian_noise_multiplier
    >>> round(gaussian_noise_multiplier(1.0, 1e-5), 6)
    3.730632
    """
    epsilon = check_positive(epsilon, "epsilon")
    return _noise_multiplier(epsilon, check_within(delta, "delta", 0.0, 1.0, "()"))


@lru_cache(maxsize=1024)
def _noise_multiplier(epsilon, delta):
    """Return `gaussian_noise_multiplier` without checks; both bounds hold for the result."""

    def is_safe(value):
        mu = 1.0 / value
        return delta_of_mu(mu, epsilon) <= delta and gdp_to_epsilon(mu, delta) <= epsilon

    return round_to_safe(is_safe, _multiplier_root(((1.0, 1.0, epsilon),), delta))


def sum_of_deltas(curves, multiplier):
    """Return the weighted sum of the deltas of Gaussian releases.

    Parameters
    ----------
    curves : sequence of tuple of (float, float, float)
        As for `summed_noise_multiplier`.
    multiplier : float
        The noise multiplier.
    """
    return sum(weight * delta_of_mu(distance / multiplier, eps) for weight, distance, eps in curves)


def summed_noise_multiplier(curves, delta, summed=sum_of_deltas):
    """Return the smallest noise multiplier at which a sum of Gaussian deltas is at most delta.

    Parameters
    ----------
    curves : sequence of tuple of (float, float, float)
        The terms (weight, distance, epsilon). Each is weight times `gdp_to_delta` at epsilon, with
        mu = distance / noise multiplier.
    delta : float in (0, 1)
        The largest sum.
    summed : callable, default=sum_of_deltas
        Function of the curves and a noise multiplier whose value must be at most delta:
        `sum_of_deltas` or `mean_delta`.

    Returns
    -------
    float
        A noise multiplier on the safe side: the computed sum is at most `delta`.
    """

    def is_safe(multiplier):
        return summed(curves, multiplier) <= delta

    return round_to_safe(is_safe, _multiplier_root(curves, delta, summed))


def mean_delta(curves, multiplier):
    """Return a bound on delta for a mean of positive parts of Gaussian privacy losses.

    The integrand of delta is not convex in the loss, but the positive part of a tangent is a
    convex upper bound; see ``docs/theory/objective_perturbation.md``, section 7.

    Parameters
    ----------
    curves : sequence of tuple of (float, float, float)
        As for `summed_noise_multiplier`, all with the same epsilon.
    multiplier : float
        The noise multiplier.
    """
    epsilon = curves[0][2]
    expected_excess = 0.0
    u = math.log1p(epsilon) * _TANGENTS
    for weight, distance, _ in curves:
        mu = distance / multiplier
        t = (epsilon + u - np.expm1(u)) / mu - 0.5 * mu
        density = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        excess = np.maximum(density - t * ndtr(-t), 0.0)
        expected_excess = expected_excess + weight * mu * excess
    # The factor is larger than the cancellation error.
    return float(np.min(np.exp(-u) * expected_excess)) * (1.0 + 1e-9)


def _multiplier_root(curves, delta, summed=sum_of_deltas):
    """Return a noise multiplier at which the sum of deltas is close to delta."""

    def delta_at(log_z):
        return summed(curves, math.exp(log_z))

    low = high = -0.5 * math.log(2.0 * max(max(epsilon for _, _, epsilon in curves), 1e-300))
    while delta_at(low) <= delta:
        low -= 1.0
    while delta_at(high) > delta:
        high += 1.0
    return math.exp(_decreasing_root(delta_at, delta, low, high))
