"""Functions whose value for a row depends only on that row, and those that read other tables."""

import builtins
import dis
from functools import partial
from numbers import Integral
from types import CodeType, FunctionType, MethodType

import numpy as np
import scipy.special

from skdp._tools._classes import INSTALLED

# Maximum length of a list that is searched for tables.
MAX_VALUES = 1000
# Functions that are not accepted, because one cell can determine the dtype of a column and thereby
# the values in other rows. The first three return different values for 0. For a sparse matrix (not
# array), np.square is a matrix product. np.clip and np.nan_to_num are not unary ufuncs and have the
# same problem; np.digitize of objects starts its search at the bin of the previous row.
TYPE_DECIDES = (np.floor_divide, np.remainder, np.fmod, np.square)
# Functions that are exact, or whose rounding IEEE 754 determines. For others, such as np.exp and
# np.log1p, NumPy has several algorithms, and the layout of the table determines which one is used.
# Functions of scipy.special process one number at a time, so they are safe.
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
    """Return True for functions of NumPy and SciPy that are known, by name, to act elementwise.

    Parameters
    ----------
    function : callable or None
        None returns the table itself. A `functools.partial` may bind leading constants.
    arguments : dict, default=None
        Further arguments of the call. If there are any, the function is not accepted.

    Returns
    -------
    bool
    """
    constants = ()
    while type(function) is partial and not function.keywords:
        function, constants = function.func, (*function.args, *constants)
    if function is None or arguments or not isinstance(function, np.ufunc):
        return function is None and not arguments
    # np.frompyfunc turns any function into a ufunc: accept only ufuncs that NumPy and SciPy define.
    name = function.__name__
    is_library = any(getattr(library, name, None) is function for library in (np, scipy.special))
    takes_one = function.signature is None and (function.nin, function.nout) == (
        1 + len(constants),
        1,
    )
    if not (is_library and takes_one) or function in TYPE_DECIDES:
        return False
    return all(map(_is_constant, constants))


def treats_rows_alone(function, arguments=None):
    """Return True if a function is known to compute each row from that row alone.

    These are elementwise functions, and functions that declare it by an attribute ``__skdp_kind__ =
    "stateless"``. The attribute is ignored on a function to which `functools.wraps` copied it.

    Parameters
    ----------
    function : callable or None
    arguments : dict, default=None
        Further arguments of the call.

    Returns
    -------
    bool
    """
    if is_elementwise(function, arguments):
        return True
    while type(function) is partial:
        function = function.func
    attributes = getattr(function, "__dict__", {})
    return attributes.get("__skdp_kind__") == "stateless" and "__wrapped__" not in attributes


def rounds_elements_alone(function):
    """Return True if rounding in a row-wise function does not depend on the other rows.

    Parameters
    ----------
    function : callable or None
        A function that `treats_rows_alone` accepts: a ufunc, or a function with a declaration.
    """
    while type(function) is partial:
        function = function.func
    if not isinstance(function, np.ufunc):
        return True
    return function in ROUNDED_ONCE or getattr(np, function.__name__, None) is not function


def has_non_finite_values(function, largest=1e4):
    """Return True if a function turns some finite numbers into NaN or infinity.

    A step with such a function raises an error for some tables: `np.log` for numbers that are not
    positive, `np.exp` for large ones. Only NumPy ufuncs are tried; the result is False for other
    functions.

    Parameters
    ----------
    function : callable or None
    largest : float, default=1e4
        Largest absolute value that is tried.
    """
    constants = ()
    tried = np.array([[-largest], [-2.0], [0.0], [0.5], [2.0], [largest]])
    while type(function) is partial:
        function, constants = function.func, (*function.args, *constants)
    with np.errstate(all="ignore"):
        try:
            return (
                isinstance(function, np.ufunc)
                and not np.isfinite(function(*constants, tried)).all()
            )
        except (TypeError, ValueError):
            return False


def refers_to_table(function):
    """Return True if a user-defined function may read a table that it does not receive.

    Such a table is in a variable that the function names, in a default or bound argument, in an
    attribute of the object whose method it is, or in one of these for another function that the
    user wrote and that the function names.

    Parameters
    ----------
    function : object
        False for objects that cannot be called.
    """
    if not callable(function) or isinstance(function, type):
        return False
    visited = set()
    pending = [function]
    while pending:
        value = pending.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        values = _values_in(value)
        if any(map(_holds_table, values)):
            return True
        pending += [item for item in values if _is_of_user(item)]
    return False


def _values_in(function):
    """Return the values that a function, a method or another callable object can read."""
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, MethodType):
        attributes = getattr(function.__self__, "__dict__", {})
        return [function.__func__, *attributes.values()]
    if not isinstance(function, FunctionType):
        return [type(function).__call__, *getattr(function, "__dict__", {}).values()]
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            # The variable has no value yet.
            continue
    names = _global_names(function.__code__)
    return values + [function.__globals__[name] for name in names if name in function.__globals__]


def _global_names(code):
    """Return the names of the global variables in a function and in the functions inside it."""
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for item in code.co_consts:
        if isinstance(item, CodeType):
            names |= _global_names(item)
    return names - vars(builtins).keys()


def _is_of_user(value):
    """Return True for a function that is not defined in an installed package."""
    if isinstance(value, partial | MethodType):
        return True
    path = value.__code__.co_filename if isinstance(value, FunctionType) else INSTALLED[0]
    return not any(folder in path for folder in INSTALLED)


def _holds_table(value):
    """Return True for an array with several rows and columns, and for a collection of one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(_is_table, value[:MAX_VALUES]))
    return _is_table(value)


def _is_table(value):
    # A lazy frame has no shape.
    if hasattr(type(value), "columns"):
        return True
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or len(shape) < 2:
        return False
    # Dask does not know the number of rows.
    return not (isinstance(shape[0], Integral) and shape[0] == 1)


def _is_constant(value):
    """Return True for a number or one number per column, which cannot differ between rows."""
    if value is None or isinstance(value, str | bool | int | float | np.number):
        return True
    is_list = isinstance(value, list | tuple | np.ndarray)
    return is_list and np.ndim(value) <= 1 and np.asarray(value).dtype.kind in "buif"
