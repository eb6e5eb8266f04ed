"""An exact sampler of waiting times."""

import numpy as np

from skdp.noise._discrete import _geometric, check_scale

_BLOCK = 1 << 14


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
    scale = check_scale(scale)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        part = out[start : start + _BLOCK]
        part[:] = _geometric_block(scale, part.size, stream)
    return out


def _geometric_block(scale, n, stream):
    leading = stream.words((n + 1) // 2).view(np.uint32)[:n]
    u = leading * 2.0**-32
    with np.errstate(divide="ignore", invalid="ignore"):
        log = -np.log(u)
        z = scale * log
        # The logarithm is taken to be within 4 units in the last place; U is known to 2**-32.
        error = scale * (2.0**-49 * log + (2.0**-32 + 2.0**-50) / u)
        floor = np.floor(z)
        rest = z - floor
        decided = (rest > error) & (1.0 - rest > error)
    open_ = np.flatnonzero(~decided)
    if not open_.size:
        return floor.astype(np.int64)
    floor[open_] = 0
    result = floor.astype(np.int64)
    further = stream.words(open_.size) >> np.uint64(33)
    longer = (leading[open_].astype(np.uint64) << np.uint64(31)) | further
    result[open_] = _geometric(scale, longer, stream, False)
    return result
