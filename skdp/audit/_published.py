"""All numbers that a fitted estimator contains.

Nested estimators are searched like the estimator itself: attributes, parameters, lists, dicts,
variables of functions, and all other content of a pickle.
"""

import copyreg
import math
import types
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import numpy as np

# Numbers are clipped to this absolute value, so their squares can be summed.
MAX_NUMBER = 1e140
# Methods that are called with the canary; only the first one that an estimator has is called.
OUTPUT_METHODS = ("decision_function", "predict_proba", "predict", "transform")
# Largest number of observed numbers that are stored as a list. An array needs a quarter of the
# memory, but creating one takes longer than finding a few numbers.
MAX_LIST = 64
# Types whose values contain only a single number or text.
SCALARS = frozenset((bool, int, float, str, bytes))
# Types whose values contain only their items.
CONTAINERS = frozenset((dict, list, tuple, set, frozenset))
# Code is public, so it is not searched.
CODE = type | types.ModuleType | types.BuiltinFunctionType


def walk(value):
    """Yield all numbers within a value as (name, list of float), in a fixed order.

    Parameters
    ----------
    value : object
        Containers that occur several times, or within themselves, are searched once.
    """
    seen = {}
    stack = [("", value)]
    while stack:
        name, part = stack.pop()
        if part is None:
            continue
        cls = type(part)
        numbers = _numbers(part)
        if cls is str or cls is float:
            # The most frequent parts have neither a description of their type nor contents.
            yield name, numbers
            continue
        if numbers is not None:
            yield name + _describe_type(part), numbers
            # Scalars and arrays contain nothing else. Sparse matrices do: their indices show which
            # zeros are stored, and their order.
            if cls in SCALARS or _is_array(part) or not _converts(part):
                continue
        if id(part) not in seen:
            # The reference keeps the object alive, as Python reuses the id of a deleted object.
            seen[id(part)] = part
            stack += [(name + suffix, item) for suffix, item in reversed(_children(part))]


def observe(estimator, probe=None):
    """Return all numbers of a fitted estimator and of its nested objects.

    For each matrix, the differences between its consecutive rows are included too, because noise
    that classes share cancels in them. Text is converted to a number by its checksum.

    Parameters
    ----------
    estimator : fitted estimator or dict
        Any object: a dict of attributes is searched in the same way as their owner.
    probe : table, default=None
        Rows for which the estimator's output is included; an error counts as an output.

    Returns
    -------
    dict of str to sequence of float
        The numbers, by a description of their location: a list of a few, an array of many.
    """
    parts = [(f"published number {name.lstrip('.')}", part) for name, part in walk(estimator)]
    if probe is not None:
        answers = walk(_answers(estimator, probe))
        parts += [(f"the model's output for the canary{name}", part) for name, part in answers]
    observed = {}
    for name, numbers in parts:
        if len(numbers) > MAX_LIST:
            numbers = np.array(numbers)
        observed[name] = numbers
    return observed


def as_matrix(observations):
    """Return the numbers of all fits as a matrix, and descriptions of its columns.

    The size of each array is also a column, because it may reveal a row.

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
    for name in dict.fromkeys(chain.from_iterable(observations)):
        numbers = [seen.get(name) for seen in observations]
        # -1 distinguishes a missing entry from an empty one.
        size = np.array([-1 if entry is None else len(entry) for entry in numbers])
        width = size.max()
        if size.min() == width:
            # One conversion of all lists is faster than one for each.
            block = np.array(numbers, dtype=np.float64).reshape(len(size), width)
        else:
            block = np.zeros((len(size), width))
            present = [entry for entry in numbers if entry is not None]
            block[np.arange(width) < size[:, None]] = np.concatenate(present)
        blocks.append(block)
        if width > 1:
            names += [f"{name}[{i}]" for i in range(width)]
        else:
            names += [name] * width
        sizes[f"the number of values in {name}"] = size
    values = np.column_stack([*blocks, *sizes.values()])
    names = [*names, *sizes]
    # NaN is mapped to a number that does not occur otherwise.
    return np.clip(np.nan_to_num(values, nan=MAX_NUMBER / 2.0), -MAX_NUMBER, MAX_NUMBER), names


def _answers(estimator, probe):
    """Return an estimator's output for rows, or the name of the error that it raises."""
    for name in OUTPUT_METHODS:
        if hasattr(estimator, name):
            try:
                return getattr(estimator, name)(probe)
            except Exception as error:
                return type(error).__name__
    return None


def _numbers(value):
    """Return a value as a list of numbers, or None if it is neither a number, text nor an array."""
    cls = type(value)
    if cls is str:
        return [float(zlib.crc32(value.encode("utf-8", "surrogatepass")))]
    if cls is float and _is_ordinary(value):
        return [value]
    if cls is np.ndarray and value.dtype == np.float64 and value.ndim < 2:
        # Most published arrays need none of the steps below.
        numbers = value.ravel().tolist()
        if all(map(_is_ordinary, numbers)):
            return numbers
    if cls is bool or (cls is int and abs(value) <= 2**53):
        return [float(value)]
    if cls is int:
        value = str(value).encode()
    if cls in (bytes, int):
        return [float(zlib.crc32(value))]
    if cls in (list, tuple) and value and set(map(type, value)) <= {bool, int, float}:
        return [number for item in value for number in _numbers(item)]
    if cls in CONTAINERS:
        return None
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
        differences = []
        if array.ndim == 2:
            differences = np.diff(array, axis=0).ravel().tolist()
        max_distinct = 2**53
        if exact.dtype.kind == "f":
            max_distinct = MAX_NUMBER
        hidden = np.abs(array) > max_distinct
    # Doubles do not distinguish between large integers, and comparisons do not distinguish 0.0 from
    # -0.0; the checksum of their bits does.
    hidden |= (array == 0.0) & np.signbit(array)
    numbers = array.ravel().tolist() + differences
    if exact.dtype.kind not in "iu":
        exact = array
    bits = exact[hidden].tobytes()
    if bits:
        numbers.append(float(zlib.crc32(bits)))
    return numbers


def _is_ordinary(number):
    """Return True for a float that is not too large, and neither NaN nor -0.0."""
    return 0.0 < abs(number) <= MAX_NUMBER or (number == 0.0 and math.copysign(1.0, number) > 0.0)


def _converts(value):
    """Return True if a value that is not an array can be converted to an array."""
    return hasattr(value, "__array__") or hasattr(value, "toarray")


def _array(value):
    """Return a value as an array, or None if it cannot be converted to one."""
    if isinstance(value, np.ndarray) or value is None:
        return value
    if isinstance(value, float | complex | np.generic | memoryview):
        return np.asarray(value)
    if isinstance(value, type):
        return None
    if hasattr(value, "toarray"):
        return value.toarray()
    if hasattr(value, "__array__"):
        return np.asarray(value)
    return None


def _is_array(value):
    """Return True for plain NumPy arrays and scalars, which contain only their values."""
    return type(value) is np.ndarray or isinstance(value, np.generic)


def _describe_type(value):
    """Return a description of type and memory layout, which may also depend on rows."""
    cls = type(value)
    if cls in (str, float, list):
        return ""
    if not _is_array(value):
        return f" ({cls.__name__})"
    if value.dtype == np.float64 and value.size and not value.flags.fnc:
        return ""
    # An empty array has no values that reflect its shape.
    layout = value.ndim
    if value.size == 0:
        layout = value.shape
    description = f"{value.dtype.str}, {layout}"
    if value.flags.fnc:
        description += ", by columns"
    return f" ({description})"


def _children(value):
    """Return (location, content) for each object that a value directly contains."""
    if type(value) in CONTAINERS or _is_array(value):
        return _items(value)
    if isinstance(value, types.FunctionType):
        # Functions in modules are public. Nested ones may contain variables of the outer function.
        if "<" not in value.__qualname__:
            return []
        variables = [value.__defaults__, value.__kwdefaults__, vars(value)]
        for cell in value.__closure__ or ():
            # An empty cell has no contents to read.
            if cell != types.CellType():
                variables.append(cell.cell_contents)
        return [(".kept", variable) for variable in variables]
    if isinstance(value, CODE) or hasattr(type(value), "charge"):
        return []
    return [*_items(value), *_state(value)]


def _items(value):
    """Return (location, item) for each item of a container or an array of objects."""
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
def _pickles_attributes(cls):
    """Return True if pickles of a class contain exactly the attributes of its instances."""
    methods = ("__reduce__", "__reduce_ex__", "__getstate__")
    if any(getattr(cls, name) is not getattr(object, name) for name in methods):
        return False
    return not any(vars(base).get("__slots__") for base in cls.__mro__)


def _is_attribute(attributes, key, item):
    """Return True if an entry of a pickled state is an attribute of the object."""
    return key in attributes and attributes[key] is item


def _state(value):
    """Return (location, content) for attributes and for other content of an object's pickle."""
    attributes = getattr(value, "__dict__", {})
    parts = [(f".{name}", attributes[name]) for name in sorted(attributes)]
    cls = type(value)
    if parts and _pickles_attributes(cls):
        return parts
    try:
        # Examples are arguments of partial functions, positions of iterators and items of queues.
        contents = copyreg.dispatch_table.get(cls, lambda v: v.__reduce_ex__(4))(value)[1:5]
    except Exception:
        # An object that cannot be pickled, such as a lock, has no further state.
        return parts
    for i, part in enumerate(contents):
        if isinstance(part, Iterator):
            part = list(part)
        if type(part) is dict:
            # Pickles of most classes with their own state also contain the attributes.
            part = {
                key: item for key, item in part.items() if not _is_attribute(attributes, key, item)
            }
        if part:
            parts.append((f".state{i}", part))
    return parts
