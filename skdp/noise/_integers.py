"""Uniform integers and orders, and choices among weighted candidates, all exact."""

from fractions import Fraction

import numpy as np

from skdp.noise._exact import exp_bounds, is_below
from skdp.utils._validation import check_integer

_TOTAL_BITS = 60
_LARGEST_WEIGHT = 2**56


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
    words = stream.words(int(np.prod(size))).copy()
    last = np.uint64(2**64 // bound * bound - 1)
    beyond = np.flatnonzero(words > last)
    while beyond.size:
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


def choose_by_distance(weights, distances, rate, stream):
    """Choose j with probability proportional to weights[j] exp(-rate distances[j]), exactly.

    Candidate j is proposed with probability proportional to an integer that is certainly at least
    ``weights[j] exp(-rate distances[j])`` in a common unit. It is accepted with the ratio of the
    two as probability. Where floating point leaves a doubt, the ratio is compared with a uniform
    number in integers.

    Parameters
    ----------
    weights : array-like of int, shape (n,)
        Not negative, of sum at most 2**56 and not all 0.
    distances : array-like of int, shape (n,)
        Not negative, below 2**62.
    rate : Fraction
        Not negative.
    stream : Stream
        From ``RandomSource().stream()``.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the weights are all 0, or too large.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from skdp.noise import RandomSource, choose_by_distance
    >>> choose_by_distance([5, 0, 1], [3, 0, 900], Fraction(1, 2), RandomSource().stream())
    0
    """
    weights = np.asarray(weights, np.int64)
    distances = np.asarray(distances, np.int64)
    open_ = np.flatnonzero(weights)
    if not open_.size or not weights.sum() <= _LARGEST_WEIGHT:
        raise ValueError("weights must not be all 0 and must sum to at most 2**56")
    weights = weights[open_]
    distances = distances[open_]
    distances = distances - distances.min()
    # Of a larger rate as little is left at any distance. The exponents are within 2**-40 where they
    # are below 200.
    factor = float(min(rate, 10**300))
    with np.errstate(over="ignore", under="ignore"):
        masses = weights * np.exp(-factor * distances)
    # Below 2**60 in sum, for the sum and the slack of the proposals to fit 63 bits.
    unit_bits = _TOTAL_BITS - int(np.frexp(masses.sum())[1])
    masses = np.ldexp(masses, unit_bits)
    # Above what the rounding of the exponent and of the exponential can take away.
    proposals = np.ceil(masses * (1.0 + 2.0**-30)).astype(np.int64) + 1
    ends = np.cumsum(proposals)
    while True:
        drawn = uniform_integers(int(ends[-1]), 1, stream)[0]
        j = int(np.searchsorted(ends, drawn, side="right"))
        exponent = rate * int(distances[j])
        factor = Fraction(int(weights[j]) << unit_bits, int(proposals[j]))
        if _below_scaled_exp(masses[j] / proposals[j], factor, exponent, stream):
            return int(open_[j])


def _below_scaled_exp(approximate, factor, exponent, stream):
    """Whether a uniform number lies below factor * exp(-exponent), which is `approximate`."""

    def bounds(index, precision):
        bits = precision + factor.numerator.bit_length()
        numerator = np.array([exponent.numerator], dtype=object)
        low, high = exp_bounds(numerator, exponent.denominator, bits)
        scale = factor.denominator << (bits - precision)
        below = low[0] * factor.numerator // scale
        above = -(-high[0] * factor.numerator // scale)
        return np.array([below], dtype=object), np.array([above], dtype=object)

    return bool(is_below(np.array([approximate]), bounds, stream)[0])
