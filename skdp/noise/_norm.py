"""Noise with density proportional to exp(-||b||_2 / scale), rounded to integers exactly."""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, getcontext, localcontext

import numpy as np

from skdp.noise._discrete import LARGEST_SCALE, MAGNITUDE_BITS
from skdp.noise._exact import floors
from skdp.noise._source import Stream
from skdp.utils._validation import check_within

# Points whose squared norm differs from 1 by less than this are compared with the unit circle in
# integers.
_NEAR_CIRCLE = 2.0**-48


def rounded_norm_noise(
    offset: np.ndarray, scale: float, stream: Stream, *, exact: bool = False
) -> np.ndarray:
    """Draw a vector b with density ``exp(-||b||_2 / scale)`` and round ``offset + b`` to integers.

    Let z and w be vectors of d and d + 1 independent standard normal numbers. Then
    ``scale * ||w|| * z`` has this density: it is a scale mixture of Gaussians whose variance has a
    gamma distribution with shape (d + 1) / 2. Here ``||w||**2`` is ``-2 * sum(ln U)`` over (d + 1)
    // 2 uniform numbers, plus one squared normal number if d is even. The normal numbers come in
    pairs from the polar method.

    The sum is computed in floating point with a bound on its error. If the bound does not determine
    how a coordinate is rounded, the coordinate is computed in decimal intervals, from more and more
    bits of the same uniform numbers. The result is therefore the rounding of an exact real draw,
    which is post-processing.

    Parameters
    ----------
    offset : ndarray of shape (d,)
        A vector in [-1/2, 1/2] that is added before rounding.
    scale : float
        The scale in grid steps, in (0, 2**48].
    stream : Stream
        The source of the random bits.
    exact : bool, default=False
        True computes every coordinate in decimal intervals. The result is the same.

    Returns
    -------
    ndarray of shape (d,), dtype int64

    Raises
    ------
    ValueError
        If the scale is not a number in (0, 2**48], or the offset not a vector in [-1/2, 1/2].

    References
    ----------
    G. Marsaglia, T. Bray, "A convenient method for generating normal variables", 1964.
    K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially private empirical risk
    minimization", 2011 (the density).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.noise import RandomSource, rounded_norm_noise
    >>> rounded_norm_noise(np.zeros(3), 1000.0, RandomSource().stream()).shape
    (3,)
    """
    scale = check_within(scale, "scale", 0.0, LARGEST_SCALE, "(]")
    offset = np.asarray(offset, dtype=np.float64)
    if offset.ndim != 1 or not offset.size or not np.all(np.abs(offset) <= 0.5):
        raise ValueError("offset must be a vector of numbers in [-1/2, 1/2]")
    while True:
        draw = _Draw(offset.size, stream)
        value, error = draw.approximate(scale)
        value = value + offset + 0.5
        error = error + 2.0**-51 * (np.abs(value) + 1.0)
        result, undecided = floors(value, error, exact=exact)
        try:
            if undecided.size:
                result[undecided] = draw.round_exactly(undecided, offset, scale)
            return result
        except _OutsideDisc:
            # The polar method rejects the point, so a new vector is drawn.
            continue


class _OutsideDisc(Exception):
    """Further bits show that a point accepted by its leading bits is outside the unit disc."""


class _Draw:
    """The uniform numbers for one vector, whose remaining bits are drawn when they are needed."""

    def __init__(self, d, stream):
        self._d = d
        self._stream = stream
        self._x, self._y, signs = _points_in_disc(d // 2 + 1, stream)
        self._signs = signs.ravel()[:d]
        self._uniforms = stream.words((d + 1) // 2)

    def approximate(self, scale):
        """Return the vector in floating point and a bound on the error of every coordinate."""
        z, z_error = _normal_magnitudes(self._x, self._y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            u = self._uniforms * 2.0**-64
            log = -np.log(u)
            log_error = 2.0**-52 + 2.0**-49 * log + 2.0**-64 / u
            q = 2.0 * math.fsum(log)
            q_error = 2.0 * math.fsum(log_error)
            if self._d % 2 == 0:
                q += z[self._d] ** 2
                q_error += (2.0 * z[self._d] + z_error[self._d]) * z_error[self._d]
            radius = np.sqrt(np.float64(q))
            radius_error = (q_error + 2.0**-50 * q) / radius + 2.0**-52 * radius
            z = z[: self._d]
            z_error = z_error[: self._d]
            value = scale * (z * radius)
            error = scale * (z_error * (radius + radius_error) + z * radius_error)
            return self._signs * value, error + 2.0**-50 * value

    def round_exactly(self, index, offset, scale):
        """Return ``floor(offset + b + 1/2)`` at `index`, computed with all necessary bits."""
        x = self._x.astype(object)
        y = self._y.astype(object)
        uniforms = self._uniforms.astype(object)
        result = {}
        # Number of bits of x and y; the uniform numbers have one more.
        bits = 63
        while True:
            with localcontext(Context(prec=2 * bits + 60, Emin=MIN_EMIN, Emax=MAX_EMAX)):
                radius = self._radius_interval(uniforms, x, y, bits)
                for i in set(index) - result.keys():
                    normal = _normal_interval(x, y, i, bits)
                    low, high = _widen(
                        radius[0] * normal[0] * Decimal(scale),
                        radius[1] * normal[1] * Decimal(scale),
                    )
                    floor = _common_floor(low, high, self._signs[i], float(offset[i]))
                    if floor is not None:
                        result[i] = floor
            if len(result) == len(index):
                return np.array([result[i] for i in index], dtype=np.int64)
            x = self._extend(x)
            y = self._extend(y)
            uniforms = self._extend(uniforms)
            bits += 64

    def _extend(self, leading):
        """Return the leading bits of uniform numbers with 64 further bits."""
        return (leading << 64) | self._stream.words(leading.size).astype(object)

    def _radius_interval(self, uniforms, x, y, bits):
        """Return an interval that contains ||w||."""
        # A product of up to 1e10 factors has an error of up to 1e11 units of the last digit.
        slack = Decimal(10) ** (12 - getcontext().prec)
        low = max(_chi_square(uniforms + 1, bits + 1) - slack, Decimal(0))
        high = Decimal("Infinity")
        if all(uniforms):
            high = _chi_square(uniforms, bits + 1) + slack
        if self._d % 2 == 0:
            normal = _normal_interval(x, y, self._d, bits)
            low += normal[0] ** 2
            high += normal[1] ** 2
        return _widen(low.sqrt(), high.sqrt())


def _points_in_disc(n, stream):
    """Draw `n` uniform points in the unit disc: leading 63 bits of |x| and |y|, and the signs."""
    points = []
    signs = []
    missing = n
    while missing:
        words = stream.words(2 * missing).reshape(missing, 2)
        leading = words & MAGNITUDE_BITS
        is_inside = _is_inside_disc(leading)
        points.append(leading[is_inside])
        signs.append(np.where(words[is_inside] > MAGNITUDE_BITS, -1, 1))
        missing -= int(is_inside.sum())
    x, y = np.concatenate(points).T
    return x, y, np.concatenate(signs)


def _is_inside_disc(leading):
    """Return a mask of the cells of side 2**-63 that intersect the unit disc.

    If the circle crosses a cell, `_normal_interval` later draws the bits that decide.

    Parameters
    ----------
    leading : ndarray of shape (n, 2), dtype uint64
        The corner of each cell that is nearest to 0, in units of 2**-63.
    """
    s = ((leading * 2.0**-63) ** 2).sum(axis=1)
    is_inside = s < 1.0
    for i in np.flatnonzero(np.abs(s - 1.0) < _NEAR_CIRCLE):
        a = int(leading[i, 0])
        b = int(leading[i, 1])
        is_inside[i] = a * a + b * b < 1 << 126
    return is_inside


def _normal_magnitudes(x, y):
    """Return magnitudes of normal numbers from points in the disc, and bounds on their errors.

    A bound is infinite for a point so close to the circle that its further bits may be outside, and
    for one with a squared norm s < 2**-20, whose further bits change s by too much. The numbers of
    such points are computed exactly.

    Parameters
    ----------
    x, y : ndarray of shape (n,), dtype uint64
        Leading 63 bits of the magnitudes of the coordinates, in units of 2**-63.

    Returns
    -------
    magnitudes, errors : ndarray of shape (2 * n,)
        Numbers of the first point, of the second point, and so on.
    """
    x = x * 2.0**-63
    y = y * 2.0**-63
    s = x * x + y * y
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log = -np.log(s)
        t = 2.0 * log / s
        root = np.sqrt(np.maximum(t, 0.0))
        # For s >= 2**-20, the relative error of s is less than 2**-50: at most 2**-51 from rounding
        # and 2**-62 (x + y) / s <= 2**-51.5 from further bits of x and y. As dt/ds is
        # -(2 / s**2) (1 + log), t changes by less than (2 / s) (1 + log) 2**-50. Its own rounding
        # adds less than that, and the error of its root is at most that of t, divided by the root.
        # These sum to 2**-49; the rest of 2**-47 is a margin, also for the errors of `log`.
        root_error = (2.0 / s) * 2.0**-47 * (1.0 + log) / root
        pairs = np.stack([x, y], axis=1)
        z = pairs * root[:, None]
        error = 2.0**-62 * root[:, None] + pairs * root_error[:, None] + 2.0**-51 * z
        error[(s < 2.0**-20) | (np.abs(s - 1.0) < _NEAR_CIRCLE)] = np.inf
    return z.ravel(), error.ravel()


def _normal_interval(x, y, i, bits):
    """Return an interval that contains the i-th normal magnitude.

    It is (0, infinity) while the point may be outside the disc. If the point is outside,
    `_OutsideDisc` is raised.
    """
    a = x[i // 2]
    b = y[i // 2]
    coordinate = b
    if i % 2 == 0:
        coordinate = a
    one = Decimal(1 << bits)
    square = Decimal(1 << (2 * bits))
    # The squared norms of the nearest and the farthest corner of the point's cell.
    near = Decimal(a * a + b * b) / square
    far = Decimal((a + 1) ** 2 + (b + 1) ** 2) / square
    if near >= 1:
        raise _OutsideDisc
    if far >= 1 or near == 0:
        return Decimal(0), Decimal("Infinity")
    return _widen(
        Decimal(coordinate) / one * _polar_factor(far),
        Decimal(coordinate + 1) / one * _polar_factor(near),
    )


def _chi_square(uniforms, bits):
    """Return ``-2 * sum(ln U)``, by a single logarithm of the product."""
    one = Decimal(1 << bits)
    return -2 * math.prod((Decimal(u) / one for u in uniforms), start=Decimal(1)).ln()


def _polar_factor(s):
    """Return the polar method's factor for a point with squared norm s; it decreases in s."""
    return (-2 * s.ln() / s).sqrt()


def _common_floor(low, high, sign, offset):
    """Return ``floor(offset + 1/2 + b)`` if it is equal for all |b| in [low, high], else None."""
    if sign < 0:
        low, high = -high, -low
    shift = Decimal(offset) + Decimal("0.5")
    slack = Decimal(10) ** (24 - getcontext().prec)
    low = (low + shift - slack).to_integral_value(ROUND_FLOOR)
    high = (high + shift + slack).to_integral_value(ROUND_FLOOR)
    if low != high:
        return None
    return int(low)


def _widen(low, high):
    """Return the interval, widened by the rounding errors of up to 1e10 decimal operations."""
    slack = Decimal(10) ** (12 - getcontext().prec)
    return low * (1 - slack), high * (1 + slack)
