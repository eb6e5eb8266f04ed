"""Everything that can be seen in a fitted estimator, as numbers.

A composition of estimators is read like a single one: attributes, parameters, lists, dicts,
functions' variables and objects that hold estimators are searched, as a pickle would hold them.
"""

import copyreg
import types
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

LARGEST = 1e140
ANSWERS = ("decision_function", "predict_proba", "predict", "transform")
CODE = type | types.ModuleType | types.BuiltinFunctionType


@dataclass(frozen=True, eq=False)
class Observation:
    """What one fit shows.

    Parameters
    ----------
    names : tuple of str
        Where the numbers are.
    sizes : tuple of int
        How many there are in each place.
    values : ndarray of shape (sum of sizes,)
    """

    names: tuple
    sizes: tuple
    values: np.ndarray


def walk(value):
    """Yield the numbers within a value as (name, list of float), in a fixed order.

    Parameters
    ----------
    value : object
        An object that holds itself is looked into once.
    """
    seen, stack = {}, [("", value)]
    while stack:
        name, part = stack.pop()
        numbers = _numbers(part)
        if numbers is not None:
            yield name + _form(part), numbers
        # Of a sparse matrix, which of its zeros are stored, and in which order.
        converts = hasattr(part, "__array__") or hasattr(part, "toarray")
        holds_more = numbers is None or (converts and not _is_array(part))
        if part is not None and holds_more and id(part) not in seen:
            # Kept, as the identity of an object that is gone is given to another.
            seen[id(part)] = part
            stack += [(name + place, item) for place, item in reversed(_inner(part))]


def observe(estimator, probe=None):
    """Return every number that a fitted estimator and all that is in it show.

    Differences between the rows of a matrix are among them, where noise that is shared between
    classes cancels. Text is a number by its check sum.

    Parameters
    ----------
    estimator : fitted estimator
    probe : table, default=None
        The rows that it is asked about. To refuse them is an answer, too.

    Returns
    -------
    Observation
    """
    found = [(f"published number {name.lstrip('.')}", part) for name, part in walk(estimator)]
    if probe is not None:
        answers = walk(_answers(estimator, probe))
        found += [(f"the model's answer to the canary{name}", part) for name, part in answers]
    names, numbers = zip(*found, strict=True) if found else ((), ())
    return Observation(names, tuple(map(len, numbers)), np.array(list(chain(*numbers)), float))


def as_matrix(observations):
    """Return the numbers of all fits as rows of one width, and what the columns are.

    How many numbers a fit shows is a column too, because it may reveal a row.

    Parameters
    ----------
    observations : list of Observation

    Returns
    -------
    values : ndarray of shape (n_fits, n_columns)
    names : list of str
    """
    rows = {}
    for row, seen in enumerate(observations):
        rows.setdefault((seen.names, seen.sizes), []).append(row)
    widths = {}
    for layout in rows:
        for name, size in zip(*layout, strict=True):
            widths[name] = max(size, widths.get(name, 0))
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    n_numbers = sum(widths.values())
    values = np.zeros((len(observations), n_numbers + len(widths)))
    for layout, fits in rows.items():
        places = [starts[n] + np.arange(size) for n, size in zip(*layout, strict=True)]
        columns = np.concatenate([np.empty(0, dtype=int), *places])
        values[np.ix_(fits, columns)] = [observations[fit].values for fit in fits]
        lengths = dict(zip(*layout, strict=True))
        values[fits, n_numbers:] = [lengths.get(name, -1) for name in widths]
    names = [f"{n}[{i}]" if width > 1 else n for n, width in widths.items() for i in range(width)]
    names += [f"how many numbers there are in {name}" for name in widths]
    # Numbers whose squares can be summed, and one for what is none.
    return np.clip(np.nan_to_num(values, nan=LARGEST / 2.0), -LARGEST, LARGEST), names


def _answers(estimator, probe):
    for name in ANSWERS:
        if hasattr(estimator, name):
            try:
                return getattr(estimator, name)(probe)
            except Exception as error:
                return type(error).__name__
    return None


def _numbers(value):
    """Return the numbers that a value is as a list, None if it is none."""
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
        exact, array = array, array.astype(float)
        differences = np.diff(array, axis=0).ravel().tolist() if array.ndim == 2 else []
        hidden = np.abs(array) > (LARGEST if exact.dtype.kind == "f" else 2**53)
    # Others than these are not told apart by their doubles, or by comparing them.
    hidden |= (array == 0.0) & np.signbit(array)
    bits = (exact if exact.dtype.kind in "iu" else array)[hidden].tobytes()
    told = [float(zlib.crc32(bits))] if bits else []
    return array.ravel().tolist() + differences + told


def _array(value):
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
    """Say whether a value is an array or a number of numpy's, and holds nothing beside."""
    return type(value) is np.ndarray or isinstance(value, np.generic)


def _form(value):
    """Return in words what of an array is not in its numbers, and tells of rows, too."""
    if not _is_array(value):
        return "" if type(value) in (float, list, str) else f" ({type(value).__name__})"
    if value.dtype == np.float64 and value.size and not value.flags.fnc:
        return ""
    order = ", by columns" if value.flags.fnc else ""
    return f" ({value.dtype.str}, {value.shape if not value.size else value.ndim}{order})"


def _inner(value):
    """Return what is within a value, as pairs of place and part."""
    if isinstance(value, types.FunctionType):
        # One that was made while something ran may keep what it saw.
        kept = (value.__defaults__, value.__kwdefaults__, vars(value))
        filled = [cell for cell in value.__closure__ or () if cell != types.CellType()]
        cells = [cell.cell_contents for cell in filled]
        return [(".kept", part) for part in (*kept, *cells)] if "<" in value.__qualname__ else []
    if isinstance(value, CODE) or hasattr(type(value), "charge"):
        return []
    plain = type(value) in (dict, list, tuple, set, frozenset) or _is_array(value)
    return _items(value) if plain else [*_items(value), *_state(value)]


def _items(value):
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


def _state(value):
    """Return what an object is made of again by a pickle, beside its items."""
    own = vars(value) if hasattr(value, "__dict__") else {}
    found = [(f".{name}", own[name]) for name in sorted(own)]
    kind = type(value)
    has_slots = any(vars(base).get("__slots__") for base in kind.__mro__)
    if found and kind.__reduce__ is object.__reduce__ and not has_slots:
        return found
    try:
        # What it is made of again: a function, a range, a generator's position, a queue's items.
        made = copyreg.dispatch_table.get(kind, lambda v: v.__reduce_ex__(4))(value)[1:5]
    except Exception:
        # What has no state to show, a lock say, is no release.
        return found
    made = [list(part) if isinstance(part, Iterator) else part for part in made]
    return [*found, *((f".state{i}", part) for i, part in enumerate(made) if part)]
