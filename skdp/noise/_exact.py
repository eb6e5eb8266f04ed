"""Exact comparison of a uniform random number with exp(-a/b), in integers."""

from decimal import Context, Decimal, localcontext

import numpy as np


def exp_bounds(numerator, denominator, precision):
    """Return integers that enclose ``2**precision * exp(-numerator / denominator)``.

    By the decimal arithmetic of the standard library, in which an exponential is rounded correctly.

    Parameters
    ----------
    numerator : ndarray of shape (n,), dtype object
        Python integers >= 0.
    denominator : int
        A positive integer.
    precision : int
        Bits behind the binary point.

    Returns
    -------
    low, high : ndarray of shape (n,), dtype object
        ``low <= 2**precision * exp(-numerator / denominator) <= high``; both are
        ``2**precision`` where the numerator is zero.
    """
    one = 1 << precision

    def below(n):
        return int(one * (-Decimal(n) / denominator).exp()) - bool(n)

    # With eight digits more than the result has, the quotient (below `precision` where anything is
    # left), the exponential and the product are off by less than 1 together.
    with localcontext(Context(prec=len(str(one)) + 8, traps=[])):
        low = np.maximum(np.frompyfunc(below, 1, 1)(numerator), 0)
    return low, np.minimum(low + 3, one)


class LazyUniform:
    """Uniform random numbers in [0, 1) of which more bits are drawn when they are needed.

    Parameters
    ----------
    leading : ndarray of shape (n,), dtype uint64
        The leading bits, as integers.
    precision : int
        How many leading bits there are.
    stream : Stream
        Where further bits come from.
    """

    def __init__(self, leading, precision, stream):
        self._value = leading.astype(object)
        self._precision = precision
        self._stream = stream

    def below(self, bounds):
        """Decide exactly whether each number lies below its threshold.

        Parameters
        ----------
        bounds : callable
            ``bounds(index, precision)`` returns integers `low`, `high` that enclose
            ``2**precision`` times the thresholds of the numbers at `index`, the closer the
            greater the precision.

        Returns
        -------
        ndarray of shape (n,), dtype bool
        """
        result = np.zeros(self._value.size, dtype=bool)
        undecided = np.arange(self._value.size)
        while undecided.size:
            low, high = bounds(undecided, self._precision + 8)
            value = self._value[undecided]
            yes = (((value + 1) << 8) <= low).astype(bool)
            no = ((value << 8) >= high).astype(bool)
            result[undecided] = yes
            undecided = undecided[~(yes | no)]
            if undecided.size:
                self._extend()
        return result

    def floors_of_logs(self, scale):
        """Return ``floor(-scale * ln U)`` of each number U, exactly.

        Parameters
        ----------
        scale : float
            Positive, at most 2**48.

        Returns
        -------
        ndarray of shape (n,), dtype int64
        """
        scale = Decimal(scale)
        size = self._value.size
        found = {}
        while True:
            one = 1 << self._precision
            # With 35 digits more than this has, quotient, logarithm and product are off by less
            # than the slack together. While all bits are 0 neither bound is a number.
            with localcontext(Context(prec=len(str(one)) + 35, traps=[])):
                slack = 1 / Decimal(one << 32)
                for i in set(range(size)) - found.keys():
                    value = Decimal(self._value[i])
                    most = -scale * (value / one).ln()
                    low, high = max(most - scale / value - slack, 0) // 1, (most + slack) // 1
                    if low == high:
                        found[i] = int(low)
            if len(found) == size:
                return np.array([found[i] for i in range(size)], dtype=np.int64)
            self._extend()

    def _extend(self):
        more = self._stream.words(self._value.size).astype(object)
        self._value = (self._value << 64) | more
        self._precision += 64


def floors(values, errors, *, exact=False, least=None):
    """Return floors of values that are known up to errors, and which of them are in doubt.

    Parameters
    ----------
    values, errors : ndarray of shape (n,), dtype float64
        Where a value is not a number, its floor is in doubt.
    exact : bool, default=False
        Doubt all of them.
    least : float, default=None
        A floor below which no value lies.

    Returns
    -------
    floors : ndarray of shape (n,), dtype int64
        0 where in doubt.
    open_ : ndarray of int
        The positions in doubt.
    """
    with np.errstate(invalid="ignore"):
        floor = np.floor(values)
        rest = values - floor
        decided = ((rest > errors) | (floor == least)) & (1.0 - rest > errors)
    open_ = np.arange(values.size) if exact else np.flatnonzero(~decided)
    floor[open_] = 0
    return floor.astype(np.int64), open_


def is_below(approximate, bounds, stream, *, exact=False):
    """Draw uniform numbers and decide exactly which of them lie below their thresholds.

    Numbers of 64 bits are compared with floats; where the two are within 2**-40, the comparison
    is repeated in integers with as many further bits as it takes.

    Parameters
    ----------
    approximate : ndarray of shape (n,), dtype float64
        The thresholds, within 2**-45.
    bounds : callable
        Of the thresholds, as `LazyUniform.below` takes it.
    stream : Stream
        Where the bits come from.
    exact : bool, default=False
        Compare all of them in integers. The result is the same.

    Returns
    -------
    ndarray of shape (n,), dtype bool
    """
    words = stream.words(approximate.size)
    distance = words * 2.0**-64 - approximate
    result = distance < 0
    close = np.arange(words.size) if exact else np.flatnonzero(np.abs(distance) <= 2.0**-40)
    if close.size:
        uniform = LazyUniform(words[close], 64, stream)
        result[close] = uniform.below(lambda index, precision: bounds(close[index], precision))
    return result


def bernoulli_exp(exponent, exact_exponent, stream, *, exact=False):
    """Draw independent Bernoulli(exp(-x)) variables, exactly; see `is_below`.

    Parameters
    ----------
    exponent : ndarray of shape (n,), dtype float64
        The exponents x >= 0, such that ``exp(-exponent)`` is within 2**-45 of ``exp(-x)``.
    exact_exponent : callable
        ``exact_exponent(index)`` returns x at `index` as ``(numerators, denominator)``.
    stream : Stream
        Where the bits come from.
    exact : bool, default=False
        Compare all of them in integers. The result is the same.

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


def truthful(exponent, others, n, stream, *, exact=False):
    """Draw independent Bernoulli variables with P(1) = 1 / (1 + others * exp(-exponent)), exactly.

    It is the probability with which randomized response over ``others + 1`` categories reports
    the truth. Floats decide outside a guard band, integers inside it.

    Parameters
    ----------
    exponent : float > 0
        Used as the exact rational that the float is.
    others : int
        The number of other answers.
    n : int
        How many variables.
    stream : Stream
        Where the bits come from.
    exact : bool, default=False
        Decide all draws in integers. The result is the same.

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
        bits = precision + others.bit_length() + 2
        one = 1 << bits
        low, high = exp_bounds(np.array([numerator], dtype=object), denominator, bits)
        below = (one << precision) // (one + others * high[0])
        above = -((-one << precision) // (one + others * low[0]))
        return np.full(index.size, below), np.full(index.size, above)

    approximate = np.full(n, 1.0 / (1.0 + others * np.exp(-exponent)))
    return is_below(approximate, bounds, stream, exact=exact)
