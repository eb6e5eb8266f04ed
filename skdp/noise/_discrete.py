"""Exact samplers on the integers: discrete Laplace, discrete Gaussian, waiting times."""

import math

import numpy as np

from skdp.noise._exact import LazyUniform, bernoulli_exp, floors
from skdp.noise._source import Stream
from skdp.utils._validation import check_within

# Number of draws per block, small enough for temporary arrays to stay in the processor's cache.
# Seeded draws depend on these two sizes.
_BLOCK = 1 << 15
_GEOMETRIC_BLOCK = 1 << 14
# The largest scale, in grid steps. A magnitude exceeds 64 * scale * ln(2) only with probability
# 2**-64, so it fits into 63 bits.
LARGEST_SCALE = 2.0**48
# A random word has a sign in its first bit and a magnitude in the other 63 bits.
MAGNITUDE_BITS = np.uint64(2**63 - 1)


def discrete_laplace(
    scale: float, size: int | tuple[int, ...], stream: Stream, *, exact: bool = False
) -> np.ndarray:
    """Draw from the discrete Laplace distribution, exactly.

    ``P(X = x)`` is proportional to ``exp(-|x| / scale)`` on the integers.

    For a uniform U, the magnitude ``floor(-scale * ln U)`` is geometric. It is given a random sign,
    and a negative zero is drawn again. The floor is computed in floating point, and used only if an
    error bound proves that it is correct. Otherwise it is computed in decimal arithmetic, with as
    many bits of U as necessary.

    Parameters
    ----------
    scale : float
        The scale in grid steps, in (0, 2**48]. The float is used as an exact rational number.
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        A stream from ``RandomSource().stream()``.
    exact : bool, default=False
        True computes every draw in decimal arithmetic, which is thousands of times slower. The
        results for the same stream are equal, unless a draw needs further words from the stream.

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

    def draw(n):
        return _laplace_block(scale, n, stream, exact)

    return _collect(draw, size)


def discrete_gaussian(
    sigma: float, size: int | tuple[int, ...], stream: Stream, *, exact: bool = False
) -> np.ndarray:
    """Draw from the discrete Gaussian distribution, exactly.

    ``P(X = x)`` is proportional to ``exp(-x**2 / (2 * sigma**2))`` on the integers.

    Algorithm 3 of Canonne, Kamath and Steinke: a discrete Laplace variable of scale
    ``t = floor(sigma) + 1`` is accepted with probability
    ``exp(-(|x| - sigma**2 / t)**2 / (2 * sigma**2))``. Both steps are exact.

    Parameters
    ----------
    sigma : float
        The parameter sigma in grid steps, in (0, 2**47]. The float is used as an exact rational
        number.
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        A stream from ``RandomSource().stream()``.
    exact : bool, default=False
        True decides every draw in exact arithmetic, as in `discrete_laplace`.

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

    def draw(n):
        return _gaussian_block(sigma, n, stream, exact)

    # About three in four proposals are accepted.
    return _collect(draw, size, 1.33)


def geometric(scale: float, size: int, stream: Stream) -> np.ndarray:
    """Draw from the geometric distribution (number of failures before a success), exactly.

    A trial fails with probability ``exp(-1 / scale)``, so
    ``P(X >= k) = exp(-k / scale)`` for k = 0, 1, ...

    A draw is ``floor(-scale * ln U)`` for a uniform U. The floor is first computed from 32 bits of
    U. If these do not determine it, it is computed from 63 bits and then, as in
    `discrete_laplace`, in decimal arithmetic.

    Parameters
    ----------
    scale : float
        The scale, in (0, 2**48]. The float is used as an exact rational number.
    size : int
        Number of draws.
    stream : Stream
        A stream from ``RandomSource().stream()``.

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

    def draw(n):
        return _geometric_block(scale, n, stream)

    return _collect(draw, size, max_block=_GEOMETRIC_BLOCK)


def _collect(draw, size, proposals_per_draw=1.0, max_block=_BLOCK):
    """Return an array of a given size, filled from calls of `draw(n)` that may return fewer than n.

    Parameters
    ----------
    draw : callable
        Function that makes n proposals and returns an array of the accepted draws.
    size : int or tuple of int
        Shape of the result.
    proposals_per_draw : float, default=1.0
        The expected number of proposals for one accepted draw.
    max_block : int, default=_BLOCK
        The largest n that is passed to `draw`.
    """
    out = np.empty(size, dtype=np.int64)
    filled = 0
    flat = out.reshape(-1)
    while filled < out.size:
        missing = out.size - filled
        n_proposals = math.ceil(missing * proposals_per_draw)
        if proposals_per_draw > 1:
            # The margin ensures that the last draws of a small array rarely need another block.
            n_proposals += 4
        block = draw(min(max_block, n_proposals))[:missing]
        flat[filled : filled + block.size] = block
        filled += block.size
    return out


def _laplace_block(scale, n, stream, exact):
    """Return at most n discrete Laplace draws: n proposals, without the negative zeros."""
    words = stream.words(n)
    magnitude = _geometric(scale, words & MAGNITUDE_BITS, stream, exact)
    negative = words > MAGNITUDE_BITS
    negative_zero = negative & (magnitude == 0)
    np.negative(magnitude, out=magnitude, where=negative)
    if negative_zero.any():
        return magnitude[~negative_zero]
    return magnitude


def _geometric(scale, leading, stream, exact):
    """Return ``floor(-scale * ln U)``, where `leading` contains the first 63 bits of U.

    The bits determine U up to ``2**-63``, and the float of U has a relative error of ``2**-53``.
    """
    # For a scale below 1, most floors are 0, which can be proved without a lower bound on the
    # value.
    lower_bound = None
    if scale < 1:
        lower_bound = 0.0
    magnitude, undecided = _floors_of_logs(
        scale, leading * 2.0**-63, 2.0**-52, 2.0**-63, exact=exact, lower_bound=lower_bound
    )
    if undecided.size:
        magnitude[undecided] = LazyUniform(leading[undecided], 63, stream).floors_of_logs(scale)
    return magnitude


def _floors_of_logs(scale, u, log_error, u_error, *, exact=False, lower_bound=None):
    """Return floors of ``-scale * ln U`` for floats u near U, and the undecided positions.

    `u_error` bounds the distance between u and U, and `log_error` all other errors of the
    logarithm, except the error of `np.log`, which is assumed to be at most 4 units in the last
    place.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log = -np.log(u)
        errors = scale * (log_error + 2.0**-49 * log + u_error / u)
        return floors(scale * log, errors, exact=exact, lower_bound=lower_bound)


def _gaussian_block(sigma, n, stream, exact):
    """Return at most n discrete Gaussian draws: the accepted ones of n proposals."""
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
    """Return n geometric draws; 32 bits are used for each if they determine the result."""
    leading = stream.words((n + 1) // 2).view(np.uint32)[:n]
    result, undecided = _floors_of_logs(scale, leading * 2.0**-32, 0.0, 2.0**-32 + 2.0**-50)
    if not undecided.size:
        return result
    # With 31 further bits, there are 63 bits, as `_geometric` requires.
    further = stream.words(undecided.size) >> np.uint64(33)
    bits = (leading[undecided].astype(np.uint64) << np.uint64(31)) | further
    result[undecided] = _geometric(scale, bits, stream, False)
    return result
