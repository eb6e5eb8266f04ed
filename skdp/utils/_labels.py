"""Labels as they are compared: each cell by itself, whatever container or type it came in."""

import datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from numbers import Number, Real

import numpy as np

from skdp.utils._frames import TIMES

UNDECLARED = -1

PLAIN = frozenset({bool, int, bytes})
# The types whose own hashes and comparisons agree with those of their keys.
BUILT_IN = PLAIN | {str, float, type(None)}
DAY = 86_400
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
# From here on not every integer is a float, and one missing value makes a column one of floats.
INTEGERS_APART = 2.0**53
# Every unit of numpy's dates but years and months, in attoseconds.
ATTOSECONDS = {
    unit: size * 10**18 for unit, size in {"W": 7 * DAY, "D": DAY, "h": 3600, "m": 60}.items()
} | {unit: 10 ** (18 - 3 * k) for k, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))}


def is_missing(value):
    """Return whether a cell holds nothing: None, NaN, NaT or pandas' NA."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return type(value).__name__ == "NAType" or bool(value != value)
    except Exception:  # A cell's own comparison may raise anything: an array's, a broken proxy's.
        return False


# The key of None, which is a label only where it is declared to be one.
NOTHING = ("nothing",)


def label_key(value):
    """Return the hashable thing that equal labels share, None for what can be no label.

    Equal numbers are one label in every type (True, 1, 1.0, 1+0j), and decimals and fractions that
    are not whole are compared as the nearest floats. Equal instants are one in every type and
    unit, a date being its midnight. Texts are one label if all of their characters are the same,
    NUL characters at their ends included. What is missing or cannot be hashed is no label.

    Parameters
    ----------
    value : object
        One cell. It never raises.

    Returns
    -------
    hashable or None
    """
    kind = type(value)
    if value is None:
        return NOTHING
    if kind is float:
        return value if value == value else None
    try:
        if isinstance(value, str):
            # A class of its own may say that it is equal to others.
            return str.__str__(value)
        if kind in PLAIN:
            return value
        return (_key_of_scalar if isinstance(value, np.generic) else _key_of_object)(value)
    except Exception:  # Whatever a cell's own methods raise: it is no label, and no error tells.
        return None


def canonical_label(value):
    """Return the one form that a label has in every container, None for a cell without one.

    Only labels with such a form can be found privately. Which of 1, 1.0 and True, or of 0.0 and
    -0.0, a column holds, also where one missing value changes the type of the column, depends on
    single rows: they are one label. Text and numbers of a magnitude below 2**53 have such a form;
    larger numbers are not exact in a column of floats, and dates, intervals and other objects
    are of one type in pandas and of another one, or of none, elsewhere.

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
    if not isinstance(key, Real) or not -INTEGERS_APART < key < INTEGERS_APART:
        return None
    number = float(key)
    if number != key:
        return None
    return int(number) if number.is_integer() else number


def kind_without_form(values):
    """Return the kind of the first value that is present but has no `canonical_label`.

    Each value is judged by itself. It never raises.

    Parameters
    ----------
    values : ndarray
        Of any type and shape.

    Returns
    -------
    str or None
        None if all values have one.
    """
    if values.dtype.kind in "biuf":
        # No number of four bytes or fewer but a float can be as large as that.
        if values.dtype.kind != "f" and values.dtype.itemsize <= 4:
            return None
        with np.errstate(all="ignore"):
            # NaN is missing and compares with nothing.
            is_large = (values >= INTEGERS_APART) | (values <= -INTEGERS_APART)
        return LARGE_NUMBERS if is_large.any() else None
    if values.dtype.kind in "UT":
        return None
    if values.dtype.kind in "mM":
        return None if np.isnat(values).all() else ARRAY_KINDS[values.dtype.kind]
    for cell in values.ravel().tolist():
        kind = type(cell)
        if kind is str or cell is None or kind is bool:
            continue
        if kind in (int, float) and -INTEGERS_APART < cell < INTEGERS_APART:
            continue
        if canonical_label(cell) is None and not is_missing(cell):
            return _kind_of_cell(cell)
    return None


def _kind_of_cell(cell):
    key = label_key(cell)
    if key is None:
        return f"values of type {type(cell).__name__}"
    if isinstance(key, Number):
        is_large = not isinstance(key, Real) or not -INTEGERS_APART < key < INTEGERS_APART
        return LARGE_NUMBERS if is_large else "numbers that no float holds exactly"
    return _kind_of_key(key)


def text_array(texts):
    """Return texts as an array of strings, or of objects where one ends in a NUL.

    Arrays of fixed-width strings drop such characters, and would make equal what is not.

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


def label_codes(values):
    """Number the distinct ids of a column, as labels are compared.

    NUL characters at the end of an id do not count: numpy's arrays of strings drop them, and a
    person has one id in every container.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Of any type.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
        -1 for what can be no label.
    """
    if _are_plain_numbers(values):
        codes = np.unique(values, return_inverse=True)[1]
        return np.where(values == values, codes, UNDECLARED)
    numbers = {None: UNDECLARED, NOTHING: UNDECLARED}
    keys = map(_without_nuls, _keys(values))
    codes = (_found(numbers.setdefault, UNDECLARED, key, len(numbers) - 2) for key in keys)
    return np.fromiter(codes, dtype=np.int64, count=len(values))


def category_codes(values, categories, other=UNDECLARED):
    """Return the position of each value among the categories.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Of any type; what cannot be compared is undeclared. It never raises.
    categories : ndarray of shape (n_categories,)
        Labels; of equal ones the first counts.
    other : int, default=-1
        The code of a value that is not among them.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
    """
    # From 2**53 on numpy rounds integers to compare them with numbers of other types, and a null
    # elsewhere in the column would decide whether they are of another type.
    plain = _are_plain_numbers(values) and _are_plain_numbers(categories)
    if plain and (np.abs(categories.astype(np.float64)) < 2.0**53).all():
        order = np.argsort(categories, kind="stable")
        place = np.searchsorted(categories, values, sorter=order)
        codes = order[np.minimum(place, len(categories) - 1)] if len(order) else place
        return np.where(categories[codes] == values, codes, other) if len(order) else place + other
    keys = _keys(categories)
    # From the last one on: of equal categories the first counts.
    index = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    index[None] = other
    cells = values.tolist()
    if values.dtype.kind not in TIMES and BUILT_IN.issuperset(map(type, cells)):
        # Cells of these types that are equal share their key: each is looked up once.
        codes = {cell: index.get(label_key(cell), other) for cell in set(cells)}
        return np.array([codes[cell] for cell in cells], dtype=np.int64)
    codes = (_found(index.get, other, key, other) for key in _keys(values))
    return np.fromiter(codes, dtype=np.int64, count=len(values))


def label_hashes(values, key):
    """Return a whole number below 2**64 for each id, by a public key: equal ones have the same.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Of any type.
    key : str

    Returns
    -------
    ndarray of shape (n_rows,), dtype uint64

    Raises
    ------
    ValueError
        If one is missing, or of a type of its own, whose values no two processes need hash alike.
    """
    ids = map(_without_nuls, _keys(values))
    hashes = (blake2b(_bytes_of(k), key=key.encode(), digest_size=8) for k in ids)
    return np.frombuffer(b"".join(h.digest() for h in hashes), dtype="<u8").astype(np.uint64)


LARGE_NUMBERS = "numbers of a magnitude of 2**53 or more"
# What an array's type says of all its values: their kind as labels.
ARRAY_KINDS = dict.fromkeys("biufc", "numbers") | {
    "U": "text",
    "T": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
}
TYPE_KINDS = {str: "text", bytes: "bytes", bool: "numbers", int: "numbers", float: "numbers"}
INSTANTS = {"instant": "dates", "instant in UTC": "dates with a time zone"}


def label_kinds(categories):
    """Return the kinds of the labels in a list: labels of different kinds are never equal.

    Parameters
    ----------
    categories : ndarray of shape (n_categories,)

    Returns
    -------
    set of str
        Without those of None and of what is no label.
    """
    kind = ARRAY_KINDS.get(categories.dtype.kind)
    if len(categories) and kind in ("text", "bytes"):
        return {kind}
    return {kind for kind in map(_kind_of_key, _keys(categories)) if kind is not None}


def kind_of_others(values, kinds):
    """Return the kind of the first value that is of none of some kinds, None if there is none.

    Each value is judged by itself; what is missing is of every kind, what can be no label (a
    list, say) of none. It never raises.

    Parameters
    ----------
    values : ndarray
        Of any type and shape.
    kinds : set of str
        As of `label_kinds`.

    Returns
    -------
    str or None
    """
    if values.dtype.kind != "O":
        kind = ARRAY_KINDS.get(values.dtype.kind)
        if kind is None or kind in kinds:
            return None
        is_present = True if values.dtype.kind not in "fcmM" else values == values
        return kind if np.any(np.broadcast_to(is_present, values.shape)) else None
    cells = values.ravel().tolist()
    # Nearly always a few types hold all cells, and their kinds are allowed.
    doubtful = {kind for kind in set(map(type, cells)) if TYPE_KINDS.get(kind) not in kinds}
    doubtful.discard(type(None))
    if doubtful:
        for cell in cells:
            if type(cell) in doubtful and not is_missing(cell):
                key = label_key(cell)
                kind = _kind_of_cell(cell) if key is None else _kind_of_key(key)
                if kind is not None and kind not in kinds:
                    return kind
    return None


def _kind_of_key(key):
    """Return the kind of a label by its key, None of what is missing or no label."""
    if key is None or key is NOTHING:
        return None
    if isinstance(key, str):
        return "text"
    if isinstance(key, bytes):
        return "bytes"
    if isinstance(key, Number):
        return "numbers"
    if isinstance(key[0], type):
        return f"values of type {key[0].__name__}"
    return INSTANTS.get(key[0], "durations")


def _without_nuls(key):
    if isinstance(key, str):
        return key.rstrip("\0")
    return key.rstrip(b"\0") if isinstance(key, bytes) else key


def _bytes_of(key):
    """Return what is hashed of a label's key."""
    if key in (None, NOTHING):
        raise ValueError(
            "an id is missing, and nothing else says in which part its row is: leave such rows out"
        )
    if isinstance(key, Number):
        # Python's own hash of a number is that of equal ones of other types, in each process.
        key = hash(key)
    elif isinstance(key, tuple) and isinstance(key[0], type):
        raise ValueError("an id must be a number, a string, bytes or a date: make a string of it")
    return ascii(key).encode()


def _found(look_up, other, *arguments):
    """Look up a label's code, or return another one where comparing labels raises."""
    try:
        return look_up(*arguments)
    except Exception:
        return other


def _are_plain_numbers(values):
    return values.dtype.kind in "biuf" and values.dtype.itemsize <= 8


def _keys(values):
    """Return the key of each value of an array."""
    if values.dtype.kind in TIMES:
        # The values of an object array would be truncated or become integers.
        found, inverse = np.unique(values, return_inverse=True)
        keys = [label_key(value) for value in found]
        return [keys[code] for code in inverse]
    if values.dtype.kind == "U":
        # Without NUL characters at their ends.
        return values.tolist()
    # The items of long numbers are these themselves.
    return [label_key(cell) for cell in values.tolist()]


def are_missing(values):
    """Return which values of an array are missing, as `is_missing` says of each by itself.

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
    if BUILT_IN.issuperset(map(type, cells)):
        return np.array([cell is None or cell != cell for cell in cells], dtype=bool)
    return np.array([is_missing(cell) for cell in cells], dtype=bool)


def _key_of_scalar(value):
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _key_of_numpy_time(value)
    if isinstance(value, np.bytes_):
        # Its item has no NUL at the end.
        return bytes(value)
    if isinstance(value, np.complexfloating):
        return _key_of_scalar(value.real) if value.imag == 0 else None
    if isinstance(value, np.floating):
        number = float(value)
        return number if number == value else None
    return label_key(value.item())


def _key_of_numpy_time(value):
    if np.isnat(value):
        return None
    unit, count = np.datetime_data(value.dtype)
    kind = "instant" if isinstance(value, np.datetime64) else "duration"
    if kind == "instant" and unit in ("Y", "M"):
        value = value.astype("M8[D]")
        unit = "D"
        count = 1
    units = int(value.astype(np.int64)) * count
    # A duration may be a number without a unit, or of months, which are of no one length.
    return (kind, units * ATTOSECONDS[unit]) if unit in ATTOSECONDS else (kind, unit, units)


def _key_of_date(value):
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    key = _attoseconds(value.replace(tzinfo=None) - EPOCH)
    offset = value.utcoffset()
    return ("instant", key) if offset is None else ("instant in UTC", key - _attoseconds(offset))


def _attoseconds(duration):
    """Return a duration in attoseconds; pandas' type holds nanoseconds beside microseconds."""
    return duration // MICROSECOND * 10**12 + getattr(duration, "nanoseconds", 0) * 10**9


def _key_of_object(value):
    if is_missing(value):
        return None
    if isinstance(value, datetime.date):
        return _key_of_date(value)
    if isinstance(value, datetime.timedelta):
        return "duration", _attoseconds(value)
    for plain in (int, float, bytes):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, complex):
        return _key_of_object(value.real) if value.imag == 0 else None
    for exact in (Decimal, Fraction):
        if isinstance(value, exact):
            number = exact(value)
            if number == int(number):
                # Whole numbers are exact in every type that holds them, however large.
                return int(number)
            # A decimal 0.1 is the category 0.1 of a declared list, although no float is exactly a
            # tenth: decimals are compared as the nearest floats, as a column of floats holds them.
            return float(number)
    hash(value)
    # A label of a type of its own is equal to none of another type, whatever it says.
    return type(value), value
