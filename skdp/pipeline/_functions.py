"""Functions whose value for a row depends on that row alone."""

from functools import partial

import numpy as np
import scipy.special

# np.clip and np.nan_to_num are not known: of a frame's column, or of a category column, whose type
# one cell decides, they return other values for other rows. So do three of these, for 0. Nor is
# np.digitize: among objects it starts where it was with the row before, which may be NaN.
# np.square of a sparse matrix (no array) is a product of matrices.
TYPE_DECIDES = (np.floor_divide, np.remainder, np.fmod, np.square)
# What IEEE 754 rounds in one way, or what is exact. For others, as np.exp and np.log1p, NumPy has
# several algorithms: which of them rounds a number depends on the layout of the table, which may be
# another one where a row is alone. The functions of scipy.special take one number at a time.
ROUNDED_ONCE = {
    getattr(np, name)
    for name in (
        "absolute add ceil copysign deg2rad degrees divide equal fabs floor fmax fmin greater "
        "greater_equal heaviside isfinite isinf isnan less less_equal logical_and logical_not "
        "logical_or logical_xor maximum minimum multiply negative not_equal positive rad2deg "
        "radians reciprocal rint sign signbit sqrt subtract trunc"
    ).split()
}


def is_elementwise(function, arguments=None):
    """Return True if a function is known to act on each element: numpy's and scipy's, by name.

    Parameters
    ----------
    function : callable or None
        None returns the table itself. A `functools.partial` may give constants first.
    arguments : dict, default=None
        What it is called with beside the table: then it is not known.

    Returns
    -------
    bool
    """
    given = ()
    while type(function) is partial and not function.keywords:
        function, given = function.func, (*function.args, *given)
    if function is None or arguments or not isinstance(function, np.ufunc):
        return function is None and not arguments
    # np.frompyfunc makes a ufunc of any function: only those of the libraries are known.
    name = function.__name__
    own = any(getattr(library, name, None) is function for library in (np, scipy.special))
    takes_one = function.signature is None and (function.nin, function.nout) == (1 + len(given), 1)
    return own and takes_one and function not in TYPE_DECIDES and all(map(_is_constant, given))


def treats_rows_alone(function, arguments=None):
    """Return True if a function is known to compute each row from that row alone.

    Known are functions that act on each element, and those that declare it by an attribute
    ``__skdp_kind__ = "stateless"``. `functools.wraps` copies that attribute to another function,
    for which it does not count.

    Parameters
    ----------
    function : callable or None
    arguments : dict, default=None
        What it is called with beside the table.

    Returns
    -------
    bool
    """
    if is_elementwise(function, arguments):
        return True
    while type(function) is partial:
        function = function.func
    own = getattr(function, "__dict__", {})
    return own.get("__skdp_kind__") == "stateless" and "__wrapped__" not in own


def rounds_elements_alone(function):
    """Return whether a function that treats rows alone rounds each as if no other row were there.

    Parameters
    ----------
    function : callable or None
        Which `treats_rows_alone` accepts; if it is no ufunc, its owner declared it.
    """
    while type(function) is partial:
        function = function.func
    if not isinstance(function, np.ufunc):
        return True
    return function in ROUNDED_ONCE or getattr(np, function.__name__, None) is not function


def has_bounded_domain(function, largest=1e4):
    """Return True if a function turns some finite numbers to NaN or infinity.

    Parameters
    ----------
    function : callable or None
    largest : float, default=1e4
        The size of the largest numbers that are tried.
    """
    given = ()
    tried = np.array([[-largest], [-2.0], [0.0], [0.5], [2.0], [largest]])
    while type(function) is partial:
        function, given = function.func, (*function.args, *given)
    with np.errstate(all="ignore"):
        try:
            return isinstance(function, np.ufunc) and not np.isfinite(function(*given, tried)).all()
        except (TypeError, ValueError):
            return False


def _is_constant(value):
    """Return True for a number, or numbers one a column, so that rows cannot differ by it."""
    if value is None or isinstance(value, str | bool | int | float | np.number):
        return True
    is_list = isinstance(value, list | tuple | np.ndarray)
    return is_list and np.ndim(value) <= 1 and np.asarray(value).dtype.kind in "buif"
