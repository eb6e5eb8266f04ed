"""Noise with density proportional to exp(-||b||_2 / scale), rounded to integers exactly."""

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, getcontext, localcontext

import numpy as np

from skdp.noise._discrete import LARGEST_SCALE, MAGNITUDE_BITS
from skdp.noise._exact import floors
from skdp.utils._validation import check_within

_NEAR_CIRCLE = 2.0**-48


def rounded_norm_noise(offset, scale, stream, *, exact=False):
    """Draw a vector b with density ``exp(-||b||_2 / scale)`` and round ``offset + b`` to integers.

    With z and w vectors of d and d + 1 independent standard normal numbers, ``scale * ||w|| * z``
    has that density: it is a scale mixture of Gaussians whose variance has a gamma law of shape
    (d + 1) / 2. Here ``||w||**2`` is ``-2 * sum(ln U)`` over (d + 1) // 2 uniform numbers, plus
    one squared normal when d is even; the normal numbers come in pairs from the polar method.

    The sum is evaluated in floating point with a bound on its error. Where that bound does not
    decide the rounding, the coordinate is evaluated in decimal intervals from more and more bits
    of the same uniform numbers. The result is therefore a rounding of an exact real draw: mere
    post-processing.

    Parameters
    ----------
    offset : ndarray of shape (d,)
        Added before rounding, in [-1/2, 1/2].
    scale : float
        In units of the grid, in (0, 2**48].
    stream : Stream
        Where the bits come from.
    exact : bool, default=False
        Evaluate every coordinate in decimal intervals. The result is the same.

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
        result, open_ = floors(value, error, exact=exact)
        try:
            if open_.size:
                result[open_] = draw.round_exactly(open_, offset, scale)
            return result
        except _OutsideDisc:
            continue


class _OutsideDisc(Exception):
    """More bits showed that a point kept by its leading bits lies outside the unit disc."""


class _Draw:
    """The uniform numbers behind one vector, of which more bits can be drawn."""

    def __init__(self, d, stream):
        self._d = d
        self._stream = stream
        self._x, self._y, signs = _points_in_disc(d // 2 + 1, stream)
        self._signs = signs.ravel()[:d]
        self._uniforms = stream.words((d + 1) // 2)

    def approximate(self, scale):
        """The vector in floating point and a bound on the error of each coordinate."""
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
        """``floor(offset + b + 1/2)`` at `index`, from as many bits as it takes."""
        x = self._x.astype(object)
        y = self._y.astype(object)
        uniforms = self._uniforms.astype(object)
        result = {}
        bits = 63
        while True:
            with localcontext(Context(prec=2 * bits + 60, Emin=MIN_EMIN, Emax=MAX_EMAX)):
                radius = self._radius_interval(uniforms, x, y, bits)
                for i in set(index) - result.keys():
                    ends = zip(radius, _normal_interval(x, y, i, bits), strict=True)
                    low, high = _widen(*(a * b * Decimal(scale) for a, b in ends))
                    floor = _common_floor(low, high, self._signs[i], float(offset[i]))
                    if floor is not None:
                        result[i] = floor
            if len(result) == len(index):
                return np.array([result[i] for i in index], dtype=np.int64)
            x, y, uniforms = (self._extend(leading) for leading in (x, y, uniforms))
            bits += 64

    def _extend(self, leading):
        return (leading << 64) | self._stream.words(leading.size).astype(object)

    def _radius_interval(self, uniforms, x, y, bits):
        # A product of up to 1e10 factors is off by a relative 1e11 units of the last digit.
        slack = Decimal(10) ** (12 - getcontext().prec)
        low = max(_chi_square(uniforms + 1, bits + 1) - slack, Decimal(0))
        known = all(uniforms)
        high = _chi_square(uniforms, bits + 1) + slack if known else Decimal("Infinity")
        if self._d % 2 == 0:
            extra = _normal_interval(x, y, self._d, bits)
            low, high = low + extra[0] ** 2, high + extra[1] ** 2
        return _widen(low.sqrt(), high.sqrt())


def _points_in_disc(n, stream):
    """Leading 63 bits of |x| and |y| of `n` uniform points in the unit disc, and the signs."""
    points = []
    signs = []
    missing = n
    while missing:
        words = stream.words(2 * missing).reshape(missing, 2)
        leading = words & MAGNITUDE_BITS
        inside = _inside(leading)
        points.append(leading[inside])
        signs.append(np.where(words[inside] > MAGNITUDE_BITS, -1, 1))
        missing -= int(inside.sum())
    return *np.concatenate(points).T, np.concatenate(signs)


def _inside(leading):
    """Whether some point of the cell of side 2**-63 at each corner lies inside the unit disc.

    For a cell that the circle crosses, `_normal_interval` draws the bits that decide.
    """
    s = ((leading * 2.0**-63) ** 2).sum(axis=1)
    inside = s < 1.0
    for i in np.flatnonzero(np.abs(s - 1.0) < _NEAR_CIRCLE):
        a, b = (int(v) for v in leading[i])
        inside[i] = a * a + b * b < 1 << 126
    return inside


def _normal_magnitudes(x, y):
    """Magnitudes of normal numbers from points in the disc, with bounds on their errors.

    No bound is given for a point so near the circle that its further bits may lie outside.
    """
    x = x * 2.0**-63
    y = y * 2.0**-63
    s = x * x + y * y
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log = -np.log(s)
        t = 2.0 * log / s
        root = np.sqrt(np.maximum(t, 0.0))
        root_error = (2.0 / s) * 2.0**-47 * (1.0 + log) / root
        pairs = np.stack([x, y], axis=1)
        z = pairs * root[:, None]
        error = 2.0**-62 * root[:, None] + pairs * root_error[:, None] + 2.0**-51 * z
        error[(s < 2.0**-20) | (np.abs(s - 1.0) < _NEAR_CIRCLE)] = np.inf
    return z.ravel(), error.ravel()


def _normal_interval(x, y, i, bits):
    """Enclose the i-th normal magnitude; (0, infinity) while the point may lie outside."""
    a = x[i // 2]
    b = y[i // 2]
    own = a if i % 2 == 0 else b
    one = Decimal(1 << bits)
    square = Decimal(1 << (2 * bits))
    near = Decimal(a * a + b * b) / square
    far = Decimal((a + 1) ** 2 + (b + 1) ** 2) / square
    if near >= 1:
        raise _OutsideDisc
    if far >= 1 or near == 0:
        return Decimal(0), Decimal("Infinity")
    return _widen(Decimal(own) / one * _root(far), Decimal(own + 1) / one * _root(near))


def _chi_square(uniforms, bits):
    """``-2 * sum(ln U)``, from a single logarithm: that of the product."""
    one = Decimal(1 << bits)
    return -2 * math.prod((Decimal(u) / one for u in uniforms), start=Decimal(1)).ln()


def _root(s):
    return (-2 * s.ln() / s).sqrt()


def _common_floor(low, high, sign, offset):
    """``floor(offset + 1/2 + b)`` if it is the same for all magnitudes in [low, high]."""
    if sign < 0:
        low, high = -high, -low
    shift = Decimal(offset) + Decimal("0.5")
    slack = Decimal(10) ** (24 - getcontext().prec)
    ends = low + shift - slack, high + shift + slack
    low, high = (end.to_integral_value(ROUND_FLOOR) for end in ends)
    return int(low) if low == high else None


def _widen(low, high):
    """Cover the rounding of up to 1e10 decimal operations."""
    slack = Decimal(10) ** (12 - getcontext().prec)
    return low * (1 - slack), high * (1 + slack)
