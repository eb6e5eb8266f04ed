"""Exact samplers of uniform integers, permutations and weighted choices."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from skdp.noise._exact import exp_bounds, is_one_below
from skdp.noise._source import Stream
from skdp.utils._validation import check_integer

# Bits in the sum of scaled weights in `choose_by_distance`, so that the proposals fit into 63 bits.
_TOTAL_BITS = 60
_MAX_TOTAL_WEIGHT = 2**56
# Larger rates are too large for a float, and exp(-1e300) is already 0.
_MAX_RATE = Fraction(10**300)


def uniform_integers(bound: int, size: int | tuple[int, ...], stream: Stream) -> np.ndarray:
    """Draw independent integers, uniform on 0, ..., bound - 1, exactly.

    Words at or above the largest multiple of `bound` are drawn again.

    Parameters
    ----------
    bound : int
        Number of values, in [1, 2**63].
    size : int or tuple of int
        Shape of the result.
    stream : Stream
        A stream from ``RandomSource().stream()``.

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
    rejected = np.flatnonzero(words > last)
    while rejected.size:
        words[rejected] = stream.words(rejected.size)
        rejected = rejected[words[rejected] > last]
    return (words % np.uint64(bound)).astype(np.int64).reshape(size)


def uniform_integer(bound, stream):
    """Return one integer, as from `uniform_integers` with size 1, in a fraction of its time.

    Parameters
    ----------
    bound : int
        Number of values, in [1, 2**63].
    stream : Stream

    Returns
    -------
    int
    """
    last = 2**64 // bound * bound - 1
    word = int(stream.words(1)[0])
    while word > last:
        word = int(stream.words(1)[0])
    return word % bound


def random_order(n: int, stream: Stream) -> np.ndarray:
    """Draw a uniformly random permutation of 0, ..., n - 1, exactly.

    Parameters
    ----------
    n : int
        Number of items.
    stream : Stream
        A stream from ``RandomSource().stream()``.

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
        # The order is uniform only if no two words are equal.
        if not np.any(ordered[1:] == ordered[:-1]):
            return order


def choose_by_distance(
    weights: ArrayLike, distances: ArrayLike, rate: Fraction, stream: Stream
) -> int:
    """Choose j with probability proportional to weights[j] exp(-rate distances[j]), exactly.

    This is rejection sampling. Candidate j is proposed with probability proportional to an integer
    that is at least ``weights[j] exp(-rate distances[j])`` in a common unit, and accepted with
    probability equal to the ratio of the two. If floating point cannot decide, the ratio is
    compared with a uniform number in integers.

    Parameters
    ----------
    weights : array-like of int, shape (n,)
        Non-negative weights, not all 0, with a sum of at most 2**56.
    distances : array-like of int, shape (n,)
        Non-negative distances below 2**62.
    rate : Fraction
        A non-negative rate.
    stream : Stream
        A stream from ``RandomSource().stream()``.

    Returns
    -------
    int
        The index j.

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
    counts = np.asarray(weights, np.int64)
    steps = np.asarray(distances, np.int64)
    candidates = None
    if not counts.all():
        candidates = np.flatnonzero(counts)
        counts = counts[candidates]
        steps = steps[candidates]
    if not counts.size or not counts.sum() <= _MAX_TOTAL_WEIGHT:
        # The message does not contain the sum, which can be a count of private values.
        raise ValueError("weights must not be all 0 and must sum to at most 2**56")
    steps = steps - steps.min()
    # Exponents below 200 have an error of at most 2**-40.
    with np.errstate(over="ignore", under="ignore"):
        masses = -float(min(rate, _MAX_RATE)) * steps
        np.exp(masses, out=masses)
        masses *= counts
    # Scale the sum, which is at least 1, to less than 2**60, so that it fits into 63 bits together
    # with the slack of the proposals.
    unit_bits = _TOTAL_BITS - math.frexp(masses.sum())[1]
    masses *= 2.0**unit_bits
    # The factor exceeds the rounding errors of the exponent and of the exponential.
    proposals = np.ceil(masses * (1.0 + 2.0**-30)).astype(np.int64)
    proposals += 1
    ends = np.cumsum(proposals)
    while True:
        position = uniform_integer(int(ends[-1]), stream)
        j = int(np.searchsorted(ends, position, side="right"))
        proposal = int(proposals[j])
        approximate = float(masses[j]) / proposal
        scaled_count = int(counts[j]) << unit_bits
        if _is_below_scaled_exp(approximate, scaled_count, proposal, rate, int(steps[j]), stream):
            if candidates is None:
                return j
            return int(candidates[j])


def _is_below_scaled_exp(approximate, count, proposal, rate, distance, stream):
    """Return True with probability count / proposal * exp(-rate * distance), exactly.

    `choose_by_distance` accepts a proposed index with this probability.

    Parameters
    ----------
    approximate : float
        The probability, as in `is_one_below`: the exact one is computed only if a random number is
        too close to it.
    count, proposal : int
        The weight of the index and the mass with which it is proposed, in the same unit.
    rate : Fraction
    distance : int
    stream : Stream
    """

    def bounds(index, precision):
        """Return integer bounds on the probability, in units of 2**-precision, for `is_below`."""
        factor = Fraction(count, proposal)
        exponent = rate * distance
        bits = precision + factor.numerator.bit_length()
        numerator = np.array([exponent.numerator], dtype=object)
        low, high = exp_bounds(numerator, exponent.denominator, bits)
        scale = factor.denominator << (bits - precision)
        lower = low[0] * factor.numerator // scale
        # Floor division of a negative number rounds the upper bound up.
        upper = -(-high[0] * factor.numerator // scale)
        return np.array([lower], dtype=object), np.array([upper], dtype=object)

    return is_one_below(approximate, bounds, stream)
