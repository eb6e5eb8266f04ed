"""Exact samplers on the integers: discrete Laplace, discrete Gaussian, waiting times."""

import math

import numpy as np

from skdp.noise._exact import LazyUniform, bernoulli_exp, floors
from skdp.utils._validation import check_within

_BLOCK = 1 << 15
_GEOMETRIC_BLOCK = 1 << 14
LARGEST_SCALE = 2.0**48
MAGNITUDE_BITS = np.uint64(2**63 - 1)


def discrete_laplace(scale, size, stream, *, exact=False):
    """Draw from the discrete Laplace distribution, exactly.

    ``P(X = x)`` is proportional to ``exp(-|x| / scale)`` on the integers.

    A magnitude is ``floor(-scale * ln U)`` for a uniform U, which is geometric, and gets a
    random sign; a negative zero is drawn again. The floor is taken in floating point and
    accepted only when a bound on its error leaves no doubt; otherwise U is compared with
    ``exp(-m / scale)`` in integers, with as many bits of U as it takes.

    Parameters
    ----------
    scale : float
        In units of the grid, in (0, 2**48]. It is used as the exact rational that the float is.
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        From ``RandomSource().stream()``.
    exact : bool, default=False
        Decide every draw in integers: thousands of times slower, with the same results for the
        same stream unless a stream's later words were already needed to decide a draw.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    ValueError
        If the scale is not a number in (0, 2**48].

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", 2020.

    Examples
    --------
    >>> from skdp.noise import RandomSource, discrete_laplace
    >>> discrete_laplace(10.0, (2, 3), RandomSource().stream()).shape
    (2, 3)
    """
    scale = check_within(scale, "scale", 0.0, LARGEST_SCALE, "(]")
    return _collect(lambda n: _laplace_block(scale, n, stream, exact), size, 1.0)


def discrete_gaussian(sigma, size, stream, *, exact=False):
    """Draw from the discrete Gaussian distribution, exactly.

    ``P(X = x)`` is proportional to ``exp(-x**2 / (2 * sigma**2))`` on the integers.

    Algorithm 3 of Canonne, Kamath and Steinke: a discrete Laplace variable of scale
    ``t = floor(sigma) + 1`` is kept with probability
    ``exp(-(|x| - sigma**2 / t)**2 / (2 * sigma**2))``. Both steps are exact.

    Parameters
    ----------
    sigma : float
        In units of the grid, in (0, 2**47]. It is used as the exact rational that the float is.
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        From ``RandomSource().stream()``.
    exact : bool, default=False
        Decide every draw in integers, as in `discrete_laplace`.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    ValueError
        If sigma is not a number in (0, 2**47].

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", 2020.

    Examples
    --------
    >>> from skdp.noise import RandomSource, discrete_gaussian
    >>> discrete_gaussian(10.0, 5, RandomSource().stream()).shape
    (5,)
    """
    sigma = check_within(sigma, "sigma", 0.0, LARGEST_SCALE / 2, "(]")
    return _collect(lambda n: _gaussian_block(sigma, n, stream, exact), size, 1.33)


def geometric(scale, size, stream):
    """Draw how many independent trials fail before the first success, exactly.

    A trial fails with probability ``exp(-1 / scale)``, so that
    ``P(X >= k) = exp(-k / scale)`` for k = 0, 1, ...

    The magnitude of a draw is ``floor(-scale * ln U)``. The floor is first taken from 32 bits of
    the uniform number U; where these leave a doubt, from 63 bits and, as in `discrete_laplace`, in
    integers.

    Parameters
    ----------
    scale : float
        In (0, 2**48]. It is used as the exact rational that the float is.
    size : int
        How many.
    stream : Stream
        From ``RandomSource().stream()``.

    Returns
    -------
    ndarray of shape (size,), dtype int64

    Raises
    ------
    ValueError
        If the scale is not a number in (0, 2**48].

    Examples
    --------
    >>> from skdp.noise import RandomSource, geometric
    >>> bool((geometric(10.0, 100, RandomSource().stream()) >= 0).all())
    True
    """
    scale = check_within(scale, "scale", 0.0, LARGEST_SCALE, "(]")
    return _collect(lambda n: _geometric_block(scale, n, stream), size, 1.0, _GEOMETRIC_BLOCK)


def _collect(draw, size, factor, most=_BLOCK):
    out = np.empty(size, dtype=np.int64)
    filled = 0
    flat = out.reshape(-1)
    while filled < out.size:
        missing = out.size - filled
        block = draw(min(most, math.ceil(missing * factor) + 4 * (factor > 1)))[:missing]
        flat[filled : filled + block.size] = block
        filled += block.size
    return out


def _laplace_block(scale, n, stream, exact):
    words = stream.words(n)
    magnitude = _geometric(scale, words & MAGNITUDE_BITS, stream, exact)
    negative = words > MAGNITUDE_BITS
    negative_zero = negative & (magnitude == 0)
    np.negative(magnitude, out=magnitude, where=negative)
    return magnitude[~negative_zero] if negative_zero.any() else magnitude


def _geometric(scale, leading, stream, exact):
    """``floor(-scale * ln U)`` where `leading` holds the first 63 bits of U.

    U itself is known up to ``2**-63`` and its float up to ``2**-53`` relative.
    """
    options = {"exact": exact, "least": 0.0 if scale < 1 else None}
    magnitude, open_ = _floors_of_logs(scale, leading * 2.0**-63, 2.0**-52, 2.0**-63, **options)
    if open_.size:
        magnitude[open_] = LazyUniform(leading[open_], 63, stream).floors_of_logs(scale)
    return magnitude


def _floors_of_logs(scale, u, error, error_of_u, **options):
    """Return floors of ``-scale * ln U`` for floats u near U, and the positions in doubt.

    The logarithm is taken to be within 4 units in the last place; `error` bounds what else moves
    it, but for what moves U itself, which `error_of_u` bounds.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log = -np.log(u)
        errors = scale * (error + 2.0**-49 * log + error_of_u / u)
        return floors(scale * log, errors, **options)


def _gaussian_block(sigma, n, stream, exact):
    p, q = sigma.as_integer_ratio()
    t = math.floor(sigma) + 1
    proposal = _laplace_block(float(t), n, stream, exact)
    with np.errstate(over="ignore"):
        exponent = (np.abs(proposal) - sigma / t * sigma) / sigma
        exponent *= 0.5 * exponent

    def exact_exponent(index):
        shifted = np.abs(proposal[index]).astype(object) * (q * q * t) - p * p
        return shifted * shifted, 2 * (p * q * t) ** 2

    return proposal[bernoulli_exp(exponent, exact_exponent, stream, exact=exact)]


def _geometric_block(scale, n, stream):
    leading = stream.words((n + 1) // 2).view(np.uint32)[:n]
    result, open_ = _floors_of_logs(scale, leading * 2.0**-32, 0.0, 2.0**-32 + 2.0**-50)
    if not open_.size:
        return result
    further = stream.words(open_.size) >> np.uint64(33)
    longer = (leading[open_].astype(np.uint64) << np.uint64(31)) | further
    result[open_] = _geometric(scale, longer, stream, False)
    return result
