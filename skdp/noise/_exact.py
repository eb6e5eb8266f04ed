"""Exact comparison of a uniform random number with exp(-a/b), in integers."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from skdp.noise._source import Stream

# Distance between a number of 64 bits and a threshold from which on floats decide their order.
_CLOSE = 2.0**-40


def exp_bounds(numerator, denominator, precision):
    """Return integers that enclose ``2**precision * exp(-numerator / denominator)``.

    This uses the standard library's decimal arithmetic, whose `exp` is correctly rounded.

    Parameters
    ----------
    numerator : ndarray of shape (n,), dtype object
        Python integers >= 0.
    denominator : int
        A positive integer.
    precision : int
        Number of bits after the binary point.

    Returns
    -------
    low, high : ndarray of shape (n,), dtype object
        ``low <= 2**precision * exp(-numerator / denominator) <= high``; both are
        ``2**precision`` where the numerator is zero.
    """
    one = 1 << precision

    def lower_bound(n):
        """Return a lower bound on 2**precision * exp(-n / denominator), at most 3 too low."""
        if n == 0:
            return one
        return int(one * (-Decimal(n) / denominator).exp()) - 1

    # Eight digits more than the result are sufficient: the errors of the quotient (which is below
    # `precision` unless the result is 0), the exponential and the product add up to less than 1.
    with localcontext(Context(prec=len(str(one)) + 8, traps=[])):
        low = np.maximum(np.frompyfunc(lower_bound, 1, 1)(numerator), 0)
    return low, np.minimum(low + 3, one)


class LazyUniform:
    """Uniform random numbers in [0, 1) whose remaining bits are drawn when they are needed.

    Parameters
    ----------
    leading : ndarray of shape (n,), dtype uint64
        The leading bits, as integers.
    precision : int
        Number of leading bits.
    stream : Stream
        The source of further bits.
    """

    def __init__(self, leading, precision, stream):
        self._value = leading.astype(object)
        self._precision = precision
        self._stream = stream

    def is_below(self, bounds):
        """Compare every number with its threshold, exactly.

        Parameters
        ----------
        bounds : callable
            ``bounds(index, precision)`` returns integers `low`, `high` that enclose
            ``2**precision`` times the thresholds of the numbers at `index`. The relative distance
            between `low` and `high` must tend to 0 as the precision grows.

        Returns
        -------
        ndarray of shape (n,), dtype bool
            True if the number is below its threshold.
        """
        result = np.zeros(self._value.size, dtype=bool)
        undecided = np.arange(self._value.size)
        while undecided.size:
            low, high = bounds(undecided, self._precision + 8)
            value = self._value[undecided]
            is_below = (((value + 1) << 8) <= low).astype(bool)
            is_above = ((value << 8) >= high).astype(bool)
            result[undecided] = is_below
            undecided = undecided[~(is_below | is_above)]
            if undecided.size:
                self._extend()
        return result

    def floors_of_logs(self, scale):
        """Return ``floor(-scale * ln U)`` of every number U, exactly.

        Parameters
        ----------
        scale : float
            A positive number, at most 2**48.

        Returns
        -------
        ndarray of shape (n,), dtype int64
        """
        scale = Decimal(scale)
        size = self._value.size
        floors_by_index = {}
        while True:
            one = 1 << self._precision
            # 35 digits more than `one` are sufficient: the errors of the quotient, logarithm and
            # product add up to less than the slack. Neither bound is finite while all bits are 0.
            with localcontext(Context(prec=len(str(one)) + 35, traps=[])):
                slack = 1 / Decimal(one << 32)
                for i in set(range(size)) - floors_by_index.keys():
                    value = Decimal(self._value[i])
                    upper = -scale * (value / one).ln()
                    low = max(upper - scale / value - slack, 0) // 1
                    high = (upper + slack) // 1
                    if low == high:
                        floors_by_index[i] = int(low)
            if len(floors_by_index) == size:
                return np.array([floors_by_index[i] for i in range(size)], dtype=np.int64)
            self._extend()

    def _extend(self):
        """Draw 64 further bits of every number."""
        bits = self._stream.words(self._value.size).astype(object)
        self._value = (self._value << 64) | bits
        self._precision += 64


def floors(values, errors, *, exact=False, lower_bound=None):
    """Return the floors of values with bounded errors, and the positions that are undecided.

    Parameters
    ----------
    values, errors : ndarray of shape (n,), dtype float64
        The values and bounds on their errors. The floor of a NaN is undecided.
    exact : bool, default=False
        True declares all positions undecided.
    lower_bound : float, default=None
        An integer that is a lower bound on all exact values.

    Returns
    -------
    floors : ndarray of shape (n,), dtype int64
        The floors, 0 at undecided positions.
    undecided : ndarray of int
        The undecided positions.
    """
    with np.errstate(invalid="ignore"):
        floor = np.floor(values)
        fraction = values - floor
        is_decided = fraction > errors
        if lower_bound is not None:
            is_decided |= floor == lower_bound
        is_decided &= np.subtract(1.0, fraction, out=fraction) > errors
    if exact:
        undecided = np.arange(values.size)
    else:
        undecided = np.flatnonzero(~is_decided)
    floor[undecided] = 0
    return floor.astype(np.int64), undecided


def is_below(approximate, bounds, stream, *, exact=False):
    """Draw uniform numbers and return a boolean array: True where a number is below its threshold.

    Numbers of 64 bits are compared with floats. If the two differ by at most 2**-40, the
    comparison is repeated in integers, with as many further bits as necessary.

    Parameters
    ----------
    approximate : ndarray of shape (n,), dtype float64
        The thresholds, up to an error of 2**-45.
    bounds : callable
        Bounds on the thresholds, as for `LazyUniform.is_below`.
    stream : Stream
        The source of the random bits.
    exact : bool, default=False
        True compares all numbers in integers. The result is the same.

    Returns
    -------
    ndarray of shape (n,), dtype bool
    """
    words = stream.words(approximate.size)
    distance = words * 2.0**-64 - approximate
    result = distance < 0
    if exact:
        close = np.arange(words.size)
    else:
        close = np.flatnonzero(np.abs(distance) <= _CLOSE)
    if close.size:
        uniform = LazyUniform(words[close], 64, stream)

        def close_bounds(index, precision):
            return bounds(close[index], precision)

        result[close] = uniform.is_below(close_bounds)
    return result


def is_one_below(approximate, bounds, stream):
    """Return the result of `is_below` for one threshold, as a bool, in a fraction of its time.

    Parameters
    ----------
    approximate : float
        The threshold, up to an error of 2**-45.
    bounds : callable
        Bounds on the threshold, as for `LazyUniform.is_below`.
    stream : Stream

    Returns
    -------
    bool
    """
    words = stream.words(1)
    distance = float(words[0]) * 2.0**-64 - approximate
    if abs(distance) > _CLOSE:
        return distance < 0
    return bool(LazyUniform(words, 64, stream).is_below(bounds)[0])


def bernoulli_exp(
    exponent: np.ndarray,
    exact_exponent: Callable[[int], Fraction],
    stream: Stream,
    *,
    exact: bool = False,
) -> np.ndarray:
    """Draw independent Bernoulli(exp(-x)) variables, exactly; see `is_below`.

    Parameters
    ----------
    exponent : ndarray of shape (n,), dtype float64
        Approximations of x >= 0, such that ``exp(-exponent)`` is within 2**-45 of ``exp(-x)``.
    exact_exponent : callable
        ``exact_exponent(index)`` returns x at `index` as ``(numerators, denominator)``.
    stream : Stream
        The source of the random bits.
    exact : bool, default=False
        True compares all numbers in integers. The result is the same.

    Returns
    -------
    ndarray of shape (n,), dtype bool

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.noise import RandomSource, bernoulli_exp
    >>> half = np.full(1000, 0.5)
    >>> def exact(index):
    ...     return np.ones(len(index), dtype=object), 2
    >>> draws = bernoulli_exp(half, exact, RandomSource().stream())
    >>> bool(abs(draws.mean() - np.exp(-0.5)) < 0.1)
    True
    """

    def bounds(index, precision):
        return exp_bounds(*exact_exponent(index), precision)

    return is_below(np.exp(-exponent), bounds, stream, exact=exact)


def truthful(
    exponent: float, others: int, n: int, stream: Stream, *, exact: bool = False
) -> np.ndarray:
    """Draw independent Bernoulli variables with P(1) = 1 / (1 + others * exp(-exponent)), exactly.

    This is the probability that randomized response over ``others + 1`` categories reports the
    truth. A draw is decided in floating point outside a guard band, and in integers within it.

    Parameters
    ----------
    exponent : float > 0
        The privacy parameter epsilon. The float is used as an exact rational number.
    others : int
        Number of other categories.
    n : int
        Number of variables.
    stream : Stream
        The source of the random bits.
    exact : bool, default=False
        True decides all draws in integers. The result is the same.

    Returns
    -------
    ndarray of shape (n,), dtype bool

    Examples
    --------
    >>> from skdp.noise import RandomSource, truthful
    >>> draws = truthful(1.0, 2, 1000, RandomSource().stream())
    >>> bool(abs(draws.mean() - 0.576) < 0.1)
    True
    """
    numerator, denominator = exponent.as_integer_ratio()

    def bounds(index, precision):
        """Return integer bounds on P(1) for each index, in units of 2**-precision."""
        bits = precision + others.bit_length() + 2
        one = 1 << bits
        low, high = exp_bounds(np.array([numerator], dtype=object), denominator, bits)
        lower = (one << precision) // (one + others * high[0])
        # Floor division of a negative number rounds the upper bound up.
        upper = -((-one << precision) // (one + others * low[0]))
        return np.full(index.size, lower), np.full(index.size, upper)

    approximate = np.full(n, 1.0 / (1.0 + others * np.exp(-exponent)))
    return is_below(approximate, bounds, stream, exact=exact)
