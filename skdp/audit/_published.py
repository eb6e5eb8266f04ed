"""Everything that can be seen in a fitted estimator, as numbers.

A composition of estimators is read like a single one: attributes, parameters, lists, dicts,
functions' variables and objects that hold estimators are searched, as a pickle would hold them.
"""

import copyreg
import types
import zlib
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

# Larger numbers are clipped to this, so that their squares can be summed.
LARGEST = 1e140
# The methods that are asked about the canary; the first that an estimator has answers.
OUTPUT_METHODS = ("decision_function", "predict_proba", "predict", "transform")
# Types whose values hold nothing beside the number that they are.
SCALARS = frozenset((bool, int, float, str, bytes))
# Code is public, and is not searched.
CODE = type | types.ModuleType | types.BuiltinFunctionType


def walk(value):
    """Yield the numbers within a value as (name, list of float), in a fixed order.

    Parameters
    ----------
    value : object
        An object that holds itself is looked into once.
    """
    seen = {}
    stack = [("", value)]
    while stack:
        name, part = stack.pop()
        if part is None:
            continue
        numbers = _numbers(part)
        if numbers is not None:
            yield name + _form(part), numbers
            # Most parts hold nothing else, which their type shows at once. A sparse matrix holds
            # which of its zeros are stored, and in which order.
            if type(part) in SCALARS or _is_array(part) or not _converts(part):
                continue
        if id(part) not in seen:
            # Kept, because the identity of an object that is gone is given to another.
            seen[id(part)] = part
            stack += [(name + place, item) for place, item in reversed(_inner(part))]


def observe(estimator, probe=None):
    """Return every number that a fitted estimator and all that is in it show.

    Differences between the rows of a matrix are among them, because noise that is shared between
    classes cancels there. Text is a number by its check sum.

    Parameters
    ----------
    estimator : fitted estimator
    probe : table, default=None
        The rows that the estimator is asked about. Its error, if it refuses them, is an answer.

    Returns
    -------
    dict of str to ndarray
        The numbers, by a description of the place where they were found.
    """
    found = [(f"published number {name.lstrip('.')}", part) for name, part in walk(estimator)]
    if probe is not None:
        answers = walk(_answers(estimator, probe))
        found += [(f"the model's answer to the canary{name}", part) for name, part in answers]
    return {name: np.array(numbers) for name, numbers in found}


def as_matrix(observations):
    """Return the numbers of all fits as rows of one width, and descriptions of the columns.

    The number of numbers that a fit shows is a column, too, because it may reveal a row.

    Parameters
    ----------
    observations : list of dict
        From `observe`.

    Returns
    -------
    values : ndarray of shape (n_fits, n_columns)
    names : list of str
    """
    blocks = [np.empty((len(observations), 0))]
    names = []
    sizes = {}
    for name in dict.fromkeys(name for seen in observations for name in seen):
        size = np.array([len(seen[name]) if name in seen else -1 for seen in observations])
        width = size.max()
        block = np.zeros((len(size), width))
        numbers = [seen[name] for seen in observations if name in seen]
        block[np.arange(width) < size[:, None]] = np.concatenate(numbers)
        blocks.append(block)
        names += [f"{name}[{i}]" for i in range(width)] if width > 1 else [name] * width
        sizes[f"how many numbers there are in {name}"] = size
    values = np.column_stack([*blocks, *sizes.values()])
    names = [*names, *sizes]
    # NaN becomes a number of its own.
    return np.clip(np.nan_to_num(values, nan=LARGEST / 2.0), -LARGEST, LARGEST), names


def _answers(estimator, probe):
    """Return an estimator's answer to rows, or the name of the error that it raises."""
    for name in OUTPUT_METHODS:
        if hasattr(estimator, name):
            try:
                return getattr(estimator, name)(probe)
            except Exception as error:
                return type(error).__name__
    return None


def _numbers(value):
    """Return a value as a list of numbers, or None if it is neither a number, text nor an array."""
    kind = type(value)
    if kind is bool or (kind is int and abs(value) <= 2**53):
        return [float(value)]
    if kind is float and 0.0 < abs(value) <= LARGEST:
        return [value]
    if kind in (str, bytes, int):
        text = value if kind is bytes else str(value).encode("utf-8", "surrogatepass")
        return [float(zlib.crc32(text))]
    if kind in (list, tuple) and value and set(map(type, value)) <= {bool, int, float}:
        return [number for item in value for number in _numbers(item)]
    array = _array(value)
    if array is None or array.dtype.kind not in "biufcmMSU":
        return None
    if array.dtype.kind in "SU":
        return [number for text in array.ravel().tolist() for number in _numbers(text)]
    if array.dtype.kind in "mM":
        array = array.astype(np.int64)
    elif array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1).reshape(*array.shape[:-1], -1)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = array
        array = array.astype(float)
        differences = np.diff(array, axis=0).ravel().tolist() if array.ndim == 2 else []
        hidden = np.abs(array) > (LARGEST if exact.dtype.kind == "f" else 2**53)
    # Doubles do not distinguish large integers, and comparisons do not distinguish 0.0 and -0.0;
    # the check sum of their bits does.
    hidden |= (array == 0.0) & np.signbit(array)
    bits = (exact if exact.dtype.kind in "iu" else array)[hidden].tobytes()
    check_sum = [float(zlib.crc32(bits))] if bits else []
    return array.ravel().tolist() + differences + check_sum


def _converts(value):
    """Return True if a value that is no array can be converted to one."""
    return hasattr(value, "__array__") or hasattr(value, "toarray")


def _array(value):
    """Return a value as an array, or None if it is no array and cannot be converted to one."""
    if isinstance(value, np.ndarray) or value is None:
        return value
    if isinstance(value, float | complex | np.generic | memoryview):
        return np.asarray(value)
    if isinstance(value, type):
        return None
    if hasattr(value, "toarray"):
        return value.toarray()
    return np.asarray(value) if hasattr(value, "__array__") else None


def _is_array(value):
    """Return True for NumPy's own arrays and numbers, which hold nothing beside their values."""
    return type(value) is np.ndarray or isinstance(value, np.generic)


def _form(value):
    """Return the type and layout of a value in words: they may depend on rows as well."""
    if not _is_array(value):
        return "" if type(value) in (float, list, str) else f" ({type(value).__name__})"
    if value.dtype == np.float64 and value.size and not value.flags.fnc:
        return ""
    order = ", by columns" if value.flags.fnc else ""
    return f" ({value.dtype.str}, {value.shape if not value.size else value.ndim}{order})"


def _inner(value):
    """Return (place, part) for each part of a value."""
    if isinstance(value, types.FunctionType):
        # A function that was made inside another one may hold variables of it.
        kept = (value.__defaults__, value.__kwdefaults__, vars(value))
        filled = [cell for cell in value.__closure__ or () if cell != types.CellType()]
        cells = [cell.cell_contents for cell in filled]
        return [(".kept", part) for part in (*kept, *cells)] if "<" in value.__qualname__ else []
    if isinstance(value, CODE) or hasattr(type(value), "charge"):
        return []
    plain = type(value) in (dict, list, tuple, set, frozenset) or _is_array(value)
    return _items(value) if plain else [*_items(value), *_state(value)]


def _items(value):
    """Return (place, item) for each item of a container or an array of objects."""
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: repr(item[0]))
        keys = [(f"[{i}].key", key) for i, (key, _) in enumerate(items)]
        keys.append((".order", list(value)))
        return keys + [(f"[{i}]", item) for i, (_, item) in enumerate(items)]
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [(".size", len(value)), *((f"[{i}]", item) for i, item in enumerate(value))]
    array = _array(value)
    if array is not None and array.dtype.names:
        return [(f".{name}", array[name]) for name in array.dtype.names]
    if array is not None and _numbers(value) is None:
        return [(f"[{i}]", item) for i, item in enumerate(array.ravel().tolist())]
    return []


@lru_cache(maxsize=1024)
def _has_slots(kind):
    """Return True if a class, or a base of it, declares slots."""
    return any(vars(base).get("__slots__") for base in kind.__mro__)


def _state(value):
    """Return (place, part) for an object's attributes and the other contents of its pickle."""
    attributes = vars(value) if hasattr(value, "__dict__") else {}
    parts = [(f".{name}", attributes[name]) for name in sorted(attributes)]
    kind = type(value)
    if parts and kind.__reduce__ is object.__reduce__ and not _has_slots(kind):
        return parts
    try:
        # The arguments and states of functions, ranges, generators' positions, queues' items.
        contents = copyreg.dispatch_table.get(kind, lambda v: v.__reduce_ex__(4))(value)[1:5]
    except Exception:
        # An object that cannot be pickled, as a lock, has no state to show.
        return parts
    contents = [list(part) if isinstance(part, Iterator) else part for part in contents]
    return [*parts, *((f".state{i}", part) for i, part in enumerate(contents) if part)]
