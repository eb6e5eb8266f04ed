"""Comparison of labels, independent of their container, their type and other cells."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from numbers import Number, Real
from operator import itemgetter

import numpy as np

from skdp._data._frames import TIMES

# Code of a label that is not declared.
UNDECLARED = -1

# Types whose values are their own `label_key`.
KEY_TYPES = frozenset({bool, int, bytes})
# Types whose hashes and comparisons agree with the hashes and comparisons of their keys.
BUILT_IN_TYPES = KEY_TYPES | {str, float, type(None)}
# Types of cells that have a `canonical_label` or are missing, numbers only below a magnitude.
TYPES_WITH_FORMS = frozenset({bool, int, str, float, type(None)})
# Number of cells that are joined at a time, to limit memory.
_JOINED_CELLS = 1 << 13
SECONDS_PER_DAY = 86_400
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
# At this magnitude and beyond, not every integer is a float. A missing value turns a column of
# integers into floats, so labels of this magnitude or more would depend on other rows.
MAX_EXACT_INTEGER = 2.0**53
MAX_FLOAT16 = float(np.finfo(np.float16).max)
MAX_FLOAT32 = float(np.finfo(np.float32).max)
# Units of NumPy's dates in attoseconds; years and months have no fixed length.
ATTOSECONDS = {
    "W": 7 * SECONDS_PER_DAY * 10**18,
    "D": SECONDS_PER_DAY * 10**18,
    "h": 3600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}


def is_missing(value):
    """Return True if a cell is missing: None, NaN, NaT or pandas' NA."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return type(value).__name__ == "NAType" or bool(value != value)
    except Exception:  # The comparison of a cell may raise any error.
        return False


# Types, by library and name, whose text is the same in every process and different for each label.
TYPES_WITH_TEXT = {("uuid", "UUID"), ("pandas", "Period"), ("pandas", "Interval")}

# The key of None, which is a label only if it is declared as a category.
MISSING_KEY = ("nothing",)


def label_key(value):
    """Return a hashable key that equal labels share, or None for a value that is not a label.

    Equal numbers of any types are one label (True, 1, 1.0, 1+0j). Decimals and fractions that are
    not integers are compared as the nearest floats. Equal instants of any types and units are one
    label; a date counts as its midnight. Strings are one label if all characters are equal,
    including NUL characters at the end. None has a key, because it can be declared as a category;
    other missing values and unhashable values are not labels.

    Parameters
    ----------
    value : object
        One cell. Errors that its methods raise are caught.

    Returns
    -------
    hashable or None
        `MISSING_KEY` for None, and None for NaN and other values that are not labels.
    """
    kind = type(value)
    if value is None:
        return MISSING_KEY
    if kind is float:
        if value == value:
            return value
        return None
    try:
        if isinstance(value, str):
            # A member of an enum of strings is its value.
            return str.__str__(value)
        if kind in KEY_TYPES:
            return value
        if isinstance(value, np.generic):
            return _key_of_scalar(value)
        return _key_of_object(value)
    except Exception:  # A cell whose methods raise an error is not a label.
        return None


def canonical_label(value):
    """Return the form of a label that is the same in every container, or None.

    Only labels with such a form can be found privately. Strings have one, as do numbers of
    magnitude below 2**53. 1, 1.0 and True are one label, and so are 0.0 and -0.0, because a missing
    value in another row may change the type of a column. Larger numbers may be inexact in a column
    of floats. Dates, intervals and other objects have different types in different libraries.

    Parameters
    ----------
    value : object
        One cell.

    Returns
    -------
    str, int, float or None
    """
    key = label_key(value)
    if isinstance(key, str):
        return key
    if not isinstance(key, Real) or not -MAX_EXACT_INTEGER < key < MAX_EXACT_INTEGER:
        return None
    number = float(key)
    if number != key:
        return None
    if number.is_integer():
        return int(number)
    return number


def kind_without_form(values):
    """Return the kind of the first present value without a `canonical_label`.

    Each value is checked independently. The function never raises.

    Parameters
    ----------
    values : ndarray
        Array of any type and shape.

    Returns
    -------
    str or None
        None if there is no such value.
    """
    if values.dtype.kind in "biuf":
        # Integers of at most four bytes are smaller.
        if values.dtype.kind != "f" and values.dtype.itemsize <= 4:
            return None
        with np.errstate(all="ignore"):
            # Comparisons with NaN, which counts as missing, are False.
            is_large = (values >= MAX_EXACT_INTEGER) | (values <= -MAX_EXACT_INTEGER)
        if is_large.any():
            return LARGE_NUMBERS
        return None
    if values.dtype.kind in "UT":
        return None
    if values.dtype.kind in "mM":
        if np.isnat(values).all():
            return None
        return ARRAY_KINDS[values.dtype.kind]
    cells = values.ravel().tolist()
    if _all_have_forms(cells):
        return None
    for cell in cells:
        if canonical_label(cell) is None and not is_missing(cell):
            return _kind_of_cell(cell)
    return None


def _all_have_forms(cells):
    """Return True if all cells are text, missing, or numbers with a `canonical_label`.

    False if a cell has another type, even if it has such a label. No cell is read on its own, which
    would take several times as long.
    """
    try:
        for start in range(0, len(cells), _JOINED_CELLS):
            # An error if a cell is not a string.
            "".join(cells[start : start + _JOINED_CELLS])
        return True
    except TypeError:
        types = set(map(type, cells))
    if not types <= TYPES_WITH_FORMS:
        return False
    if types <= TYPES_WITH_FORMS - {int, float}:
        return True
    return all(
        type(cell) is str
        or cell is None
        or -MAX_EXACT_INTEGER < cell < MAX_EXACT_INTEGER
        or cell != cell
        for cell in set(cells)
    )


def _kind_of_cell(cell):
    """Return the kind of a cell that cannot be a label, as text for the message that refuses it."""
    key = label_key(cell)
    if key is None:
        return f"values of type {type(cell).__name__}"
    if isinstance(key, Number):
        is_large = not isinstance(key, Real) or not -MAX_EXACT_INTEGER < key < MAX_EXACT_INTEGER
        if is_large:
            return LARGE_NUMBERS
        return "numbers that no float represents exactly"
    return _kind_of_key(key)


def rounded_labels(values, float_type):
    """Return labels with their numbers rounded to a floating-point type of less than 8 bytes.

    A number becomes the shortest decimal that is rounded to the same number of the type. Thus 0.1
    in a float32 column, which is 0.10000000149 in double precision, and 0.1 in double precision are
    the same label. Each value is rounded independently.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Labels of any type.
    float_type : dtype
        Type to which numbers are rounded, such as float32.

    Returns
    -------
    ndarray of shape (n_values,)
        Numbers in double precision if `values` are numbers, else objects or the values unchanged.
    """
    if _are_doubles_or_integers(values):
        with np.errstate(all="ignore"):
            distinct, inverse = np.unique(values.astype(float_type), return_inverse=True)
        decimals = [_shortest(number) for number in distinct]
        return np.array(decimals, dtype=np.float64)[inverse]
    if values.dtype.kind != "O":
        return values
    rounded = values.copy()
    for i, key in enumerate(_keys(values)):
        if isinstance(key, Real):
            with np.errstate(all="ignore"):
                number = float_type.type(key)
            rounded[i] = _shortest(number)
    return rounded


def text_array(texts):
    """Return strings as an array of strings, or of objects if one ends in a NUL character.

    Arrays of fixed-width strings drop these characters, so different labels would be equal.

    Parameters
    ----------
    texts : list of str

    Returns
    -------
    ndarray of shape (n_texts,)
    """
    array = np.array(texts, dtype=str)
    if array.tolist() == texts:
        return array
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def id_codes(values):
    """Return an integer code for each id of a column; ids that are equal labels share a code.

    NUL characters at the end of an id are ignored: NumPy's arrays of strings drop them, and the
    id of a person must be the same in every container.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Ids of any type.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
        -1 for a value that is not a label.
    """
    if _are_doubles_or_integers(values):
        codes = np.unique(values, return_inverse=True)[1]
        return np.where(values == values, codes, UNDECLARED)
    codes_by_key = {None: UNDECLARED, MISSING_KEY: UNDECLARED}
    codes = np.full(len(values), UNDECLARED, dtype=np.int64)
    n_ids = 0
    for i, key in enumerate(map(_without_nuls, _keys(values))):
        try:
            codes[i] = codes_by_key.setdefault(key, n_ids)
        except Exception:  # The comparison of ids may raise any error: such an id is not a label.
            continue
        if codes[i] == n_ids:
            n_ids += 1
    return codes


def category_codes(values, categories, other=UNDECLARED):
    """Return the position of each value among the categories.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Values of any type. A value whose comparison raises is undeclared.
    categories : ndarray of shape (n_categories,)
        Labels. Among equal labels, the first is used.
    other : int, default=-1
        Code of a value that is not among the categories.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
    """
    # NumPy rounds integers of 2**53 or more when it compares them with floats, and a missing value
    # elsewhere in the column turns it into a column of floats.
    are_numbers = _are_doubles_or_integers(values) and _are_doubles_or_integers(categories)
    if are_numbers and (np.abs(categories.astype(np.float64)) < MAX_EXACT_INTEGER).all():
        if not len(categories):
            return np.full(values.shape, other, dtype=np.int64)
        codes_of_labels = np.arange(len(categories))
        if values.dtype.kind == "f":
            twins = short_float_twins(categories.tolist())
            if twins:
                categories = np.append(categories.astype(np.float64), list(twins))
                codes_of_labels = np.append(codes_of_labels, list(twins.values()))
        order = np.argsort(categories, kind="stable")
        ranks = np.searchsorted(categories, values, sorter=order)
        matches = order[np.minimum(ranks, len(categories) - 1)]
        return np.where(categories[matches] == values, codes_of_labels[matches], other)
    keys = _keys(categories)
    # The dict is built backwards, so that the first of equal categories is kept.
    index = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    index |= short_float_twins(keys)
    index[None] = other
    distinct, inverse = distinct_cells(values)
    if distinct is not None:
        codes = [index.get(label_key(cell), other) for cell in distinct]
        return np.array(codes, dtype=np.int64)[inverse]
    codes = np.full(len(values), other, dtype=np.int64)
    for i, key in enumerate(_keys(values)):
        try:
            codes[i] = index.get(key, other)
        except Exception:  # The comparison of labels may raise any error: it is undeclared.
            continue
    return codes


def short_float_twins(keys):
    """Return the numbers that some labels become on their way through single or half precision.

    The double 0.1 is 0.10000000149 if it was stored as float32, and 0.09997558594 if it was stored
    as float16; converting these back to double precision does not make them 0.1 again. A column of
    objects or of doubles does not show whether its numbers or the declared ones were stored so, and
    all rows would be undeclared. A decimal of few digits and the shorter floats that are written so
    are therefore one label, as are any label and its float32, unless both are declared.

    Parameters
    ----------
    keys : list of hashable
        Keys of the labels, as in `label_key`.

    Returns
    -------
    dict of float to int
        Indices of labels by numbers that are not declared. Whole numbers have no other form.
    """
    twins = {}
    declared = None
    for i, key in enumerate(keys):
        if type(key) is not float or key.is_integer() or not abs(key) < MAX_FLOAT32:
            continue
        if declared is None:
            declared = set(keys)
        decimal = _short_decimal(key)
        if decimal != key and decimal in declared:
            continue
        for twin in (decimal, *_stored_forms(decimal)):
            if twin not in declared and not twin.is_integer():
                twins.setdefault(twin, i)
    return twins


def _short_decimal(number):
    """Return the shortest decimal of a double that was stored in half or single precision.

    There are three stored forms: a half read as double, a single read as double, and a half that
    was read as single and written as a decimal, which is then the shortest decimal of the single.
    `short_float_twins` and the keys of halves need the decimal that was stored. Other doubles, and
    whole numbers, are returned unchanged.
    """
    if number.is_integer():
        return number
    with np.errstate(over="ignore"):
        half = np.float16(number)
        single = np.float32(number)
    # `_shortest(single)` is the third form; `_stored_forms` lists it last.
    if half == single and number in (float(half), _shortest(single)):
        return _shortest(half)
    if float(single) == number:
        return _shortest(single)
    return number


def _shortest(number):
    """Return the shortest decimal that is rounded to a number of NumPy's type."""
    return float(np.format_float_scientific(number))


def _stored_forms(decimal):
    """Return a number of less than `MAX_FLOAT32` as it is when read from single or half precision.

    Half precision is omitted if its number is written as another decimal.
    """
    forms = [float(np.float32(decimal))]
    # Half precision has at most five digits.
    if float(f"{decimal:.5g}") == decimal and abs(decimal) < MAX_FLOAT16:
        half = np.float16(decimal)
        if _shortest(half) == decimal:
            forms += [float(half), _shortest(np.float32(half))]
    return forms


def distinct_cells(values):
    """Return the distinct cells of an array, and the index of each row's cell among them.

    Cells of built-in types that are equal and have equal hashes are one label. A function of labels
    can therefore be computed once per distinct cell without changing the result for any row.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Values of any type.

    Returns
    -------
    distinct : list or None
        None if a cell's type defines its own comparison.
    inverse : ndarray of int, shape (n_rows,), or None
    """
    # `tolist` truncates times or returns integers.
    if values.dtype.kind in TIMES:
        return None, None
    cells = values.tolist()
    types = list(map(type, cells))
    # Counting the most frequent type takes a tenth of the time of the set of all types.
    if types.count(str) < len(types) and not BUILT_IN_TYPES.issuperset(types):
        return None, None
    distinct = list(set(cells))
    index = {cell: i for i, cell in enumerate(distinct)}
    if len(cells) > 1:
        # The fastest way to look up many cells.
        inverse = itemgetter(*cells)(index)
    else:
        inverse = [index[cell] for cell in cells]
    if len(distinct) <= 256:
        # Python converts integers to bytes faster than NumPy converts them to an array.
        return distinct, np.frombuffer(bytes(inverse), dtype=np.uint8)
    return distinct, np.array(inverse, dtype=np.intp)


def label_hashes(values, key):
    """Return a hash below 2**64 for each id; equal labels have the same hash.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Ids of any type.
    key : str
        Public key of the hash function.

    Returns
    -------
    ndarray of shape (n_rows,), dtype uint64

    Raises
    ------
    ValueError
        If an id is missing, or its type has hashes that may differ between processes.
    """
    ids = map(_without_nuls, _keys(values))
    hashes = (blake2b(_hashed_bytes(k), key=key.encode(), digest_size=8) for k in ids)
    return np.frombuffer(b"".join(h.digest() for h in hashes), dtype="<u8").astype(np.uint64)


LARGE_NUMBERS = "numbers of a magnitude of 2**53 or more"
# Kind of the values of an array as labels, by the kind of its type.
ARRAY_KINDS = dict.fromkeys("biuf", "numbers") | {
    "c": "complex numbers",
    "U": "text",
    "T": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
}
TYPE_KINDS = {str: "text", bytes: "bytes", bool: "numbers", int: "numbers", float: "numbers"}
INSTANT_KINDS = {"instant": "dates", "instant in UTC": "dates with a time zone"}


def label_kinds(categories):
    """Return the kinds of labels in a list; labels of different kinds are never equal.

    Parameters
    ----------
    categories : ndarray of shape (n_categories,)

    Returns
    -------
    set of str
        None, and values that are not labels, have no kind.
    """
    kind = ARRAY_KINDS.get(categories.dtype.kind)
    if len(categories) and kind in ("text", "bytes"):
        return {kind}
    return {kind for kind in map(_kind_of_key, _keys(categories)) if kind is not None}


def kind_of_others(values, kinds):
    """Return the kind of the first value whose kind is not in a set, or None.

    Each value is checked independently. A missing value belongs to every kind, and a value that is
    not a label, such as a list, to none. The function never raises.

    Parameters
    ----------
    values : ndarray
        Array of any type and shape.
    kinds : set of str
        Allowed kinds, as in `label_kinds`.

    Returns
    -------
    str or None
    """
    if values.dtype.kind != "O":
        kind = ARRAY_KINDS.get(values.dtype.kind)
        if kind is None or kind in kinds:
            return None
        if values.dtype.kind not in "fcmM":
            is_present = True
        else:
            is_present = values == values
        if np.any(np.broadcast_to(is_present, values.shape)):
            return kind
        return None
    cells = values.ravel().tolist()
    # Usually, the cells have few types, all of allowed kinds, and need no further check.
    doubtful = {cls for cls in set(map(type, cells)) if TYPE_KINDS.get(cls) not in kinds}
    doubtful.discard(type(None))
    if doubtful:
        for cell in cells:
            if type(cell) in doubtful and not is_missing(cell):
                key = label_key(cell)
                if key is None:
                    kind = _kind_of_cell(cell)
                else:
                    kind = _kind_of_key(key)
                if kind is not None and kind not in kinds:
                    return kind
    return None


def kind_of_zone(values, has_zone):
    """Return the kind of the first date that matches `has_zone`, or None if there is none.

    Text counts as a date without a time zone, because no text with a zone is read as a date. Each
    value is checked independently. The function never raises.

    Parameters
    ----------
    values : ndarray
        Array of any type and shape.
    has_zone : bool
        True to look for dates with a time zone, False for those without one.

    Returns
    -------
    str or None
    """
    if has_zone:
        kinds = {"dates with a time zone"}
    else:
        kinds = {"dates", "text"}
    kind = None
    if values.dtype.kind != "O":
        array_kind = ARRAY_KINDS.get(values.dtype.kind)
        if array_kind in kinds and np.any(values == values):
            kind = array_kind
    else:
        for cell in values.ravel().tolist():
            # Numbers are the most frequent cells.
            if type(cell) in (int, float) or is_missing(cell):
                continue
            cell_kind = _kind_of_key(label_key(cell))
            if cell_kind in kinds:
                kind = cell_kind
                break
    if kind in ("dates", "text"):
        return f"{kind} without a time zone"
    return kind


def has_kind(values, kinds):
    """Return True if all values are missing, or if the kind of at least one value is in the set."""
    is_empty = True
    for cell in values.ravel().tolist():
        if is_missing(cell):
            continue
        is_empty = False
        if TYPE_KINDS.get(type(cell)) in kinds or _kind_of_key(label_key(cell)) in kinds:
            return True
    return is_empty


def _kind_of_key(key):
    """Return the kind of the label with this key; None if it is missing or not a label."""
    if key is None or key is MISSING_KEY:
        return None
    if isinstance(key, str):
        return "text"
    if isinstance(key, bytes):
        return "bytes"
    if isinstance(key, Number):
        return "numbers"
    if isinstance(key[0], type):
        return f"values of type {key[0].__name__}"
    return INSTANT_KINDS.get(key[0], "durations")


def _without_nuls(key):
    """Return a key without the NUL characters at its end, which NumPy drops from strings."""
    if isinstance(key, str):
        return key.rstrip("\0")
    if isinstance(key, bytes):
        return key.rstrip(b"\0")
    return key


def _hashed_bytes(key):
    """Return the bytes of a label's key that are hashed."""
    if key in (None, MISSING_KEY):
        raise ValueError(
            "groups: an id is missing, so that its row cannot be assigned to a fold: leave such "
            "rows out"
        )
    if isinstance(key, Number):
        # Python's hash of a number is the same for equal numbers of all types, in each process.
        key = hash(key)
    elif isinstance(key, tuple) and isinstance(key[0], type):
        kind, value = key
        if kind is tuple:
            return b"(" + b",".join(_hashed_bytes(label_key(cell)) for cell in value) + b")"
        library = kind.__module__.partition(".")[0]
        if (library, kind.__name__) not in TYPES_WITH_TEXT:
            raise ValueError(
                f"groups: an id is of type {kind.__name__}: convert it to a number, a string, "
                "bytes or a date"
            )
        key = kind.__name__, repr(value)
    return ascii(key).encode()


def _are_doubles_or_integers(values):
    """Return True for an array of numbers of at most double precision."""
    return values.dtype.kind in "biuf" and values.dtype.itemsize <= 8


def _keys(values):
    """Return the key of each value of an array."""
    if values.dtype.kind in TIMES:
        # `tolist` is not used, because it truncates times or returns integers.
        distinct, inverse = np.unique(values, return_inverse=True)
        keys = [label_key(value) for value in distinct]
        return [keys[code] for code in inverse]
    if values.dtype.kind == "U":
        # These strings have no NUL characters at the end.
        return values.tolist()
    # `tolist` returns long doubles unchanged, which `label_key` converts.
    return [label_key(cell) for cell in values.tolist()]


def are_missing(values):
    """Return a mask of the missing values of an array, as in `is_missing`.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    if values.dtype.kind != "O":
        return values != values
    cells = values.tolist()
    if BUILT_IN_TYPES.issuperset(map(type, cells)):
        return np.array([cell is None or cell != cell for cell in cells], dtype=bool)
    return np.array([is_missing(cell) for cell in cells], dtype=bool)


def _key_of_scalar(value):
    """Return the `label_key` of a NumPy scalar.

    It is that of the equal Python value, and None if there is none, as for NaN and for a longdouble
    between two doubles.
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _key_of_numpy_time(value)
    if isinstance(value, np.bytes_):
        # `item` would drop NUL characters at the end.
        return bytes(value)
    if isinstance(value, np.complexfloating):
        if value.imag == 0:
            return _key_of_scalar(value.real)
        return None
    if isinstance(value, np.float16):
        # A double does not show that it was stored in half precision.
        number = float(value)
        if not math.isfinite(number):
            return number if number == number else None
        return _short_decimal(number)
    if isinstance(value, np.floating):
        number = float(value)
        if number == value:
            return number
        return None
    return label_key(value.item())


def _key_of_numpy_time(value):
    """Return the key of a NumPy date or duration, or None for NaT.

    Equal times have equal keys in all units of fixed length.
    """
    if np.isnat(value):
        return None
    unit, count = np.datetime_data(value.dtype)
    kind = "duration"
    if isinstance(value, np.datetime64):
        kind = "instant"
    if kind == "instant" and unit in ("Y", "M"):
        value = value.astype("M8[D]")
        unit = "D"
        count = 1
    units = int(value.astype(np.int64)) * count
    # A duration may have no unit, or be in months, which have no fixed length.
    if unit in ATTOSECONDS:
        return (kind, units * ATTOSECONDS[unit])
    return (kind, unit, units)


def _key_of_date(value):
    """Return the key of a date or datetime; those with a time zone never equal those without."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    key = _attoseconds(value.replace(tzinfo=None) - EPOCH)
    offset = value.utcoffset()
    if offset is None:
        return ("instant", key)
    return ("instant in UTC", key - _attoseconds(offset))


def _attoseconds(duration):
    """Return a duration in attoseconds; pandas' type also has nanoseconds."""
    return duration // MICROSECOND * 10**12 + getattr(duration, "nanoseconds", 0) * 10**9


def _key_of_object(value):
    """Return the key of a value that is not of NumPy's types, or None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, datetime.date):
        return _key_of_date(value)
    if isinstance(value, datetime.timedelta):
        return "duration", _attoseconds(value)
    for built_in in (int, float, bytes):
        if isinstance(value, built_in):
            return built_in(value)
    if isinstance(value, complex):
        if value.imag == 0:
            return _key_of_object(value.real)
        return None
    for exact in (Decimal, Fraction):
        if isinstance(value, exact):
            number = exact(value)
            if number == int(number):
                # Integers are compared exactly, however large they are.
                return int(number)
            # The decimal 0.1 must equal a declared category 0.1, although no float is exactly a
            # tenth. Decimals are therefore compared as the nearest floats.
            return float(number)
    hash(value)
    # A label of a user-defined type never equals a label of another type, however it defines
    # equality.
    return type(value), value
