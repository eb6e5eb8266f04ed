"""Functions whose value for a row depends only on that row, and those that read other tables."""

import builtins
import dis
from collections import deque
from functools import partial
from itertools import islice
from math import prod
from numbers import Integral, Number
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np
import scipy.special

from skdp._tools._classes import INSTALLED, is_in_library
from skdp._tools._parts import attributes_of, is_estimator, is_frozen, is_private, is_record

# Maximum length of a collection that is searched for tables.
MAX_VALUES = 1000
# Maximum number of constants that a function may refer to in one array or collection, such as one
# for each column. A longer array, or one with a constant for each row, may be a column of a table.
MAX_CONSTANTS = 100
# Maximum number of objects that are searched. A function that refers to more may read anything.
MAX_OBJECTS = 10_000
COLLECTIONS = (list, tuple, set, frozenset, deque)
# Functions that are not accepted, because one cell can determine the dtype of a column and thereby
# the values in other rows. The first three return different values for 0, and np.reciprocal rounds
# integers to 0. For a sparse matrix (not array), np.square is a matrix product. np.clip and
# np.nan_to_num are not unary ufuncs and have the same problem; np.digitize of objects starts its
# search at the bin of the previous row.
TYPE_DECIDES = (np.floor_divide, np.remainder, np.fmod, np.reciprocal, np.square)
# Functions that are exact, or whose rounding IEEE 754 determines. For others, such as np.exp and
# np.log1p, NumPy has several algorithms, and the layout of the table determines which one is used.
# Functions of scipy.special process one number at a time, so they are safe.
ROUNDED_ONCE = {
    getattr(np, name)
    for name in (
        "absolute add ceil copysign deg2rad degrees divide equal fabs floor fmax fmin greater "
        "greater_equal heaviside isfinite isinf isnan less less_equal logical_and logical_not "
        "logical_or logical_xor maximum minimum multiply negative not_equal positive rad2deg "
        "radians rint sign signbit sqrt subtract trunc"
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
        None returns the table itself. The declaration of a callable object is read from the object,
        not from its class.
    arguments : dict, default=None
        Further arguments of the call. With any, an elementwise function is not accepted, because
        they may change what it does; a declaration holds for all arguments.

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


def depends_on_type(function):
    """Return True for a ufunc, whose values depend on the type of the array that it receives.

    NumPy rounds `np.exp` of booleans to 16 bits, and products of integers have another range. A
    function with a declaration reads the rows itself.
    """
    while type(function) is partial:
        function = function.func
    return isinstance(function, np.ufunc)


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


def refers_to_table(function, n_rows=None):
    """Return True if a user-defined function may read rows that it does not receive.

    They are in a table or in a column, or a fitted model was computed from them. The function can
    reach these through its variables, defaults and bound arguments, through collections, and
    through other functions, classes, modules and objects of the user. Private and frozen models are
    not searched: the rows of a frozen one count as public.

    Parameters
    ----------
    function : object
        False for objects that cannot be called.
    n_rows : int, default=None
        Number of rows of the table that the function could read; None if it is unknown.
    """
    if not callable(function) or isinstance(function, type):
        return False
    max_constants = MAX_CONSTANTS
    if n_rows is not None:
        max_constants = min(MAX_CONSTANTS, n_rows - 1)
    # Objects by their ids, so that no id is used again.
    visited = {}
    pending = [function]
    while pending:
        value = pending.pop()
        if id(value) in visited:
            continue
        if len(visited) > MAX_OBJECTS:
            return True
        visited[id(value)] = value
        if value is not function and (_is_table(value, max_constants) or _is_fitted_raw(value)):
            return True
        pending += _values_in(value, is_passed=value is function)
    return False


def _values_in(value, is_passed=False):
    """Return the values that a function can read, or that a collection or an object holds.

    Functions and objects of libraries hold nothing of the user's, unless they are collections.

    Parameters
    ----------
    value : object
    is_passed : bool, default=False
        True for the function that a tool received, whose attributes are read in any case.
    """
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        return _values_in_function(value) if is_passed or _is_of_user(value) else []
    if isinstance(value, dict):
        return list(islice(value.values(), MAX_VALUES))
    if isinstance(value, COLLECTIONS):
        return list(islice(value, MAX_VALUES))
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, type):
        return _attributes_of_class(value)
    if is_private(value) or is_frozen(value):
        return []
    if is_passed or is_record(value) or is_estimator(value) or not is_in_library(type(value)):
        return [*attributes_of(value).values(), *_attributes_of_class(type(value))]
    return []


def _values_in_function(function):
    """Return the arguments and variables of a function outside of its body."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            # The variable has no value yet.
            continue
    names = _global_names(function.__code__)
    values += [function.__globals__[name] for name in names if name in function.__globals__]
    # A module of the user may hold a table.
    for module in [value for value in values if isinstance(value, ModuleType)]:
        if not _is_installed(getattr(module, "__file__", None)):
            values += [vars(module)[name] for name in _attribute_names(function.__code__, module)]
    return [value for value in values if not isinstance(value, ModuleType)]


def _attributes_of_class(kind):
    """Return the attributes of a class and of its base classes that the user wrote."""
    return [
        item
        for cls in kind.__mro__
        if not is_in_library(cls)
        for name, item in vars(cls).items()
        if not (name.startswith("__") and name.endswith("__")) or name == "__call__"
    ]


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


def _attribute_names(code, module):
    """Return the names in a function, and in the functions inside it, that a module defines."""
    names = set(code.co_names) & vars(module).keys()
    for item in code.co_consts:
        if isinstance(item, CodeType):
            names |= _attribute_names(item, module)
    return names


def _is_of_user(function):
    """Return True for a function that is not defined in an installed package."""
    return not _is_installed(function.__code__.co_filename)


def _is_installed(path):
    """Return True for the path of a file of an installed package; modules in C have none."""
    return path is None or any(folder in path for folder in INSTALLED)


def _is_table(value, max_constants):
    """Return True for a table, and for an array or a collection of too many constants."""
    # A lazy frame has no shape.
    if hasattr(type(value), "columns"):
        return True
    if isinstance(value, COLLECTIONS):
        return _count_constants(value, max_constants) > max_constants
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or not shape:
        return False
    # Dask does not know the number of rows.
    if not all(isinstance(length, Integral) for length in shape):
        return True
    has_rows = len(shape) > 1 and shape[0] != 1
    return has_rows or prod(shape) > max_constants


def _count_constants(collection, max_constants):
    """Return the number of constants in a collection and in those inside it, or above the limit."""
    count = 0
    pending = [collection]
    while pending and count <= max_constants:
        for item in islice(pending.pop(), MAX_VALUES):
            if isinstance(item, Number | str):
                count += 1
            elif isinstance(item, COLLECTIONS):
                pending.append(item)
    return count


def _is_fitted_raw(value):
    """Return True for an estimator that learned from rows and is neither private nor frozen."""
    if not is_estimator(value) or is_private(value) or is_frozen(value):
        return False
    names = getattr(value, "__dict__", {})
    return any(name.endswith("_") and not name.startswith("_") for name in names)


def _is_constant(value):
    """Return True for a number or one number per column, which cannot differ between rows."""
    if value is None or isinstance(value, str | bool | int | float | np.number):
        return True
    is_list = isinstance(value, list | tuple | np.ndarray)
    return is_list and np.ndim(value) <= 1 and np.asarray(value).dtype.kind in "buif"
