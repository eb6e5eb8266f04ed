"""The Gaussian mechanism's exact privacy curve (Balle and Wang 2018), without cancellation."""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from skdp.utils._validation import check_positive, check_within

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_MAX_EXPONENT = 700.0
_UNDERFLOW = 40.0
_UNIT = 2.0**-53
# Where the tangents of `mean_delta` touch, over the farthest.
_TANGENTS = np.geomspace(2.0**-12, 1.0, 64)


def gdp_to_delta(mu: float, epsilon: float) -> float:
    """Return delta of mu-Gaussian DP at epsilon (Balle and Wang 2018, theorem 8).

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). `epsilon` may be
    negative; `mu` may be 0 or infinite.

    Parameters
    ----------
    mu : float
        The parameter of Gaussian DP, at least 0: 1 over the noise multiplier.
    epsilon : float
        Any, or infinite.

    Returns
    -------
    float
        In [0, 1].

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
    """As `gdp_to_delta`, of numbers that are known to be in range; never below the truth.

    With a = epsilon / mu - mu / 2, b = a + mu and Mills' ratio M, delta is phi(a) (M(a) - M(b)).
    First a is lowered by more than roundings can have moved it, that of `mu` included. Then delta
    is raised by more than it is off if erfcx is within 4 units in the last place, a multiple of
    2^-53 that grows with the cancellation in its differences.
    """
    if epsilon < 0.0:
        rest = math.exp(epsilon) * delta_of_mu(mu, -epsilon)
        return min(1.0, (rest - math.expm1(epsilon)) * (1.0 + 8.0 * _UNIT))
    if mu == 0.0:
        return 0.0
    if mu == math.inf:
        return 1.0 if epsilon < math.inf else 0.0
    if epsilon > _MAX_EXPONENT**4 or mu > _MAX_EXPONENT**2:
        half = mu * (epsilon / mu / mu - 0.5)
    else:
        half = (epsilon - 0.5 * mu * mu) / mu
    if half > _UNDERFLOW:
        return 0.0
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
        slope = 0.5 * float(_WEIGHTS @ (2.0 / math.sqrt(math.pi) - 2.0 * x * erfcx(x)))
        delta = scale * width * slope
        units = 18.0 * (a * a + 2.0)
    return min(1.0, delta * (1.0 + units * _UNIT))


def gdp_to_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 with `gdp_to_delta(mu, epsilon) <= delta`.

    Parameters
    ----------
    mu : float
        The parameter of Gaussian DP, at least 0: 1 over the noise multiplier.
    delta : float
        In [0, 1].

    Returns
    -------
    float
        Rounded up; infinite where there is none.

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
    low, high = 0.0, 0.5 * mu * mu + mu * math.sqrt(2.0 * math.log(1.0 / delta))
    while delta_of_mu(mu, high) > delta:
        low, high = high, high * (1.0 + 1e-9)
        if not math.isfinite(high):
            return math.inf
    return least_epsilon(lambda e: delta_of_mu(mu, e), delta, high, low)


def least_epsilon(curve, delta, high, low=0.0):
    """The least epsilon in [low, high], rounded up, at which a curve is at most delta."""
    if curve(low) <= delta:
        return low
    root = _decreasing_root(curve, delta, low, high) if curve(high) < delta else high
    return round_to_safe(lambda e: curve(e) <= delta, root)


def _decreasing_root(function, target, low, high):
    """x in [low, high] with function(x) close to target, on the logarithms."""

    def gap(x):
        value = function(x)
        return (math.log(value) if value > 0.0 else -1e4) - math.log(target)

    return brentq(gap, low, high, xtol=1e-300, rtol=4 * 2.0**-52, maxiter=200, disp=False)


def round_to_safe(is_safe, value, step=2.0**-52):
    """The value, or the first one a little further in the direction of a step that is safe."""
    while not is_safe(value):
        value += max(abs(value), 1e-20) * step
        step *= 2.0
    return value


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return delta of one Gaussian release at epsilon, exactly (Balle and Wang 2018).

    Parameters
    ----------
    noise_multiplier : float > 0
        Standard deviation of the noise over the L2 sensitivity.
    epsilon : float >= 0
        At which delta is wanted.

    Returns
    -------
    float
        The least delta for which the release is (epsilon, delta)-DP.

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
    """The least noise multiplier whose Gaussian release is (epsilon, delta)-DP.

    Balle and Wang (2018), valid for every epsilon; good from 1e-6 to 1e12.

    Parameters
    ----------
    epsilon : float > 0
        Of the budget.
    delta : float in (0, 1)
        Of the budget.

    Returns
    -------
    float
        On the safe side: both ``gaussian_delta(z, epsilon) <= delta`` and
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
    def is_safe(value):
        mu = 1.0 / value
        return delta_of_mu(mu, epsilon) <= delta and gdp_to_epsilon(mu, delta) <= epsilon

    return round_to_safe(is_safe, _multiplier_root(((1.0, 1.0, epsilon),), delta))


def sum_of_deltas(curves, multiplier):
    """Return the sum of Gaussian curves."""
    return sum(weight * delta_of_mu(moved / multiplier, eps) for weight, moved, eps in curves)


def summed_noise_multiplier(curves, delta, summed=sum_of_deltas):
    """The least noise multiplier, rounded up, at which a sum of Gaussian curves is at most delta.

    Parameters
    ----------
    curves : sequence of tuple of (float, float, float)
        (weight, distance, epsilon) adds weight times `gdp_to_delta` at mu = distance over the
        noise multiplier.
    delta : float in (0, 1)
    summed : callable, default=sum_of_deltas
        Of curves and a noise multiplier; `mean_delta` is another.

    Returns
    -------
    float
        On the safe side: the computed sum is at most `delta` there.
    """
    root = _multiplier_root(curves, delta, summed)
    return round_to_safe(lambda z: summed(curves, z) <= delta, root)


def mean_delta(curves, multiplier):
    """Bound the delta of a mean of privacy losses, each the largest of 0 and of Gaussians'.

    Delta's integrand is not convex in the loss, a tangent's positive part above it is; see
    ``docs/objective_perturbation.md``, section 7.

    Parameters
    ----------
    curves : sequence of tuple of (float, float, float)
        As `summed_noise_multiplier` takes them, all of one epsilon.
    multiplier : float
    """
    epsilon = curves[0][2]
    above = 0.0
    u = math.log1p(epsilon) * _TANGENTS
    for weight, moved, _ in curves:
        mu = moved / multiplier
        t = (epsilon + u - np.expm1(u)) / mu - 0.5 * mu
        bell = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        above = above + weight * mu * np.maximum(bell - t * ndtr(-t), 0.0)
    # More than what cancels.
    return float(np.min(np.exp(-u) * above)) * (1.0 + 1e-9)


def _multiplier_root(curves, delta, summed=sum_of_deltas):
    def delta_at(log_z):
        return summed(curves, math.exp(log_z))

    low = high = -0.5 * math.log(2.0 * max(max(epsilon for _, _, epsilon in curves), 1e-300))
    while delta_at(low) <= delta:
        low -= 1.0
    while delta_at(high) > delta:
        high += 1.0
    return math.exp(_decreasing_root(delta_at, delta, low, high))
