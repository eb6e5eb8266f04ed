"""Uniform integers and orders."""

import numpy as np

from skdp.utils._validation import check_integer


def uniform_integers(bound, size, stream):
    """Draw independent integers, uniform on 0, ..., bound - 1, exactly.

    Words beyond the largest multiple of `bound` are drawn again.

    Parameters
    ----------
    bound : int
        In [1, 2**63].
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        From ``RandomSource().stream()``.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> from skdp.noise import RandomSource, uniform_integers
    >>> bool((uniform_integers(6, 100, RandomSource().stream()) < 6).all())
    True
    """
    bound = check_integer(bound, "bound", 1, 2**63)
    words = stream.words(int(np.prod(size)))
    last = np.uint64(2**64 // bound * bound - 1)
    beyond = np.flatnonzero(words > last)
    while beyond.size:
        words = words.copy() if not words.flags.writeable else words
        words[beyond] = stream.words(beyond.size)
        beyond = beyond[words[beyond] > last]
    return (words % np.uint64(bound)).astype(np.int64).reshape(size)


def random_order(n, stream):
    """Draw a uniformly random permutation of 0, ..., n - 1, exactly.

    Parameters
    ----------
    n : int
        The number of items.
    stream : Stream
        From ``RandomSource().stream()``.

    Returns
    -------
    ndarray of shape (n,), dtype int64

    Examples
    --------
    >>> from skdp.noise import RandomSource, random_order
    >>> sorted(random_order(4, RandomSource().stream()).tolist())
    [0, 1, 2, 3]
    """
    while True:
        words = stream.words(n)
        order = np.argsort(words)
        ordered = words[order]
        if not np.any(ordered[1:] == ordered[:-1]):
            return order
