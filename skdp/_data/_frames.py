"""Kinds of columns (`TYPE_PREFIXES`), and conversion of frames to arrays, by declared types.

If a column's declared type is not a NumPy type, `numpy.asarray` derives a type from the values, so
one value would determine how the others are converted.
"""

import re
from dataclasses import dataclass

import numpy as np

from skdp.utils._values import FrozenValue

# Kinds of NumPy's numeric types, and of its durations and dates.
NUMBERS = "biuf"
TIMES = "mM"
# Kinds of columns whose values are numbers in a unit that depends on the column's type.
TIME_KINDS = ("date", "duration")
# Number of rows of a frame up to which columns of one type are copied to be read together.
MAX_COPIED_ROWS = 1 << 12
# Prefixes of the names of types, by kind.
TYPE_PREFIXES = {
    "object": ("struct",),
    "number": ("int", "uint", "float", "double", "halffloat", "decimal"),
    "boolean": ("bool",),
    "label": ("str", "large_str", "cat", "enum", "dictionary", "utf8"),
    "date": ("date", "timestamp"),
    "duration": ("duration", "timedelta"),
}


def is_frame(X):
    """Return True for a frame of pandas, polars, Arrow etc., whose columns have separate types."""
    # Attributes of the class are used, because attributes of an instance include column names.
    kind = type(X)
    has_types = hasattr(kind, "dtypes") or hasattr(kind, "schema")
    is_other = hasattr(kind, "to_frame") or hasattr(kind, "collect")
    return hasattr(kind, "columns") and has_types and not is_other


def kind_of(dtype):
    """Return the kind of a numpy, pandas, Arrow or polars dtype, read from its name."""
    dtype = getattr(dtype, "subtype", dtype)
    if hasattr(dtype, "categories"):
        return "label"
    if isinstance(dtype, np.dtype):
        name = dtype.name
    else:
        name = str(dtype)
    for kind, prefixes in TYPE_PREFIXES.items():
        if name.lower().startswith(prefixes):
            return kind
    return "object"


def label_kind_of(dtype):
    """Return the kind that a column's type implies for all of its labels, or None.

    Returns
    -------
    {"numbers", "text", "bytes", None}
        None for objects, dates, and categorical types that list labels of several kinds.
    """
    kind = kind_of(dtype)
    if kind in ("number", "boolean"):
        # Intervals have the subtype of their ends.
        if hasattr(dtype, "closed"):
            return None
        return "numbers"
    arrow_type = getattr(dtype, "pyarrow_dtype", dtype)
    if hasattr(arrow_type, "value_type") and kind == "label":
        # The type of Arrow's dictionaries names the type of their labels.
        return label_kind_of(arrow_type.value_type)
    if hasattr(dtype, "is_temporal"):
        if kind == "label":
            # polars' Categorical and Enum list strings.
            return "text"
        if str(dtype) == "Binary":
            return "bytes"
        return None
    if hasattr(dtype, "categories"):
        return _kind_of_listed_labels(dtype.categories)
    if isinstance(dtype, np.dtype):
        name = dtype.name
    else:
        name = str(dtype)
    if name.lower().startswith(("binary", "large_binary", "fixed_size_binary")):
        return "bytes"
    is_text = name.lower().startswith(("str", "large_str", "utf8"))
    if is_text and kind == "label":
        return "text"
    return None


def _kind_of_listed_labels(labels):
    """Return the kind of the labels that a pandas categorical dtype lists, or None.

    The list is part of the type, like the type of a column of strings. Only the kind is read.
    """
    if labels is None or getattr(labels, "dtype", None) is None:
        return None
    if not (isinstance(labels.dtype, np.dtype) and labels.dtype.kind == "O"):
        return label_kind_of(labels.dtype)
    texts = [isinstance(label, str) for label in labels]
    # Dask lists a single placeholder if it does not know the labels.
    is_known = texts and list(labels) != ["__UNKNOWN_CATEGORIES__"]
    if is_known and all(texts):
        return "text"
    return None


def number_type_of(dtype):
    """Return the NumPy type of a column of numbers or Booleans from its type's name, or None.

    A column with missing values is read as objects. These do not show that the floats of the column
    were rounded to four bytes.
    """
    dtype = getattr(dtype, "subtype", dtype)
    if isinstance(dtype, np.dtype):
        if dtype.kind in NUMBERS:
            return dtype
        return None
    name = str(dtype).lower().partition("[")[0]
    if name in ("bool", "boolean"):
        return np.dtype(bool)
    name = {"float": "float32", "halffloat": "float16", "double": "float64"}.get(name, name)
    if name.endswith("128"):
        return None
    if name.rstrip("0123456789") in ("int", "uint", "float"):
        return np.dtype(name)
    return None


def listed_number_type_of(dtype):
    """Return `number_type_of` a type, or of the values that a categorical type lists.

    Checks of labels need it, because the labels of a categorical column are the listed values.
    `number_type_of` is for columns that contain numbers themselves.
    """
    arrow_type = getattr(dtype, "pyarrow_dtype", dtype)
    if hasattr(arrow_type, "value_type"):
        dtype = arrow_type.value_type
    elif hasattr(dtype, "categories") and not hasattr(dtype, "is_temporal"):
        dtype = getattr(dtype.categories, "dtype", None)
    if dtype is None:
        return None
    return number_type_of(dtype)


def has_time_zone(dtype):
    """Return True for a type of dates with a time zone, False for other dates, else None."""
    if kind_of(dtype) != "date":
        return None
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    return zone is not None or getattr(dtype, "time_zone", None) is not None


def float_type_of(dtype):
    """Return the type of a column's numbers if it is a float of less than 8 bytes, else None.

    Parameters
    ----------
    dtype : type of numpy, pandas, Arrow or polars
        For a categorical type, the numbers are those that it lists.
    """
    number_type = listed_number_type_of(dtype)
    is_coarse = number_type is not None and number_type.kind == "f" and number_type.itemsize < 8
    if is_coarse:
        return number_type
    return None


def time_type_of(dtype):
    """Return the NumPy type of a column of dates or durations, with the unit of its type.

    Parameters
    ----------
    dtype : type of numpy, pandas, Arrow or polars

    Returns
    -------
    dtype or None
        None for other columns, and for dates with a time zone, which NumPy does not have.
    """
    code = {"date": "M8", "duration": "m8"}.get(kind_of(dtype))
    if code is None or has_time_zone(dtype):
        return None
    unit = re.search(r"\b(s|ms|us|ns)\b", str(dtype))
    if unit is None:
        # Types that name no unit, or the unit "day", are types of calendar dates.
        return np.dtype(f"{code}[D]")
    return np.dtype(f"{code}[{unit[1]}]")


def in_memory(table):
    """Return a dask collection or polars LazyFrame in memory, and other tables unchanged.

    Raises
    ------
    ValueError
        If a partition's type differs from the one dask declares, which would change the type of the
        others, or if dask declares no type. Also as `check_not_masked`.
    """
    kind = type(table)
    check_not_masked(table)
    if kind.__name__ == "RecordBatch" and hasattr(kind, "to_pylist"):
        # scikit-learn reads the names of an Arrow table, but not those of a batch.
        return _table_of_batch(table)
    if hasattr(kind, "collect_schema") and hasattr(kind, "collect"):
        frame = table.collect()
        if frame.width == 1:
            return frame.to_series()
        return frame
    if not hasattr(kind, "compute"):
        return table
    if hasattr(kind, "map_blocks"):
        return checked_blocks(table).compute()
    if not hasattr(kind, "map_partitions"):
        raise ValueError(
            f"a {kind.__name__} of dask does not declare its type: pass the result of its "
            "compute(), or convert it to a dask array by dask.array.from_delayed"
        )
    checked = table.map_partitions(checked_partition, declared(table), meta=table._meta)
    return checked.compute()


def check_not_masked(array, name="a masked array"):
    """Raise `ValueError` for an array with masked cells.

    NumPy drops the mask when it converts such an array, so the hidden cells would count as values.
    They are not replaced by NaN or None, because one masked cell would change the type of the
    others.

    Parameters
    ----------
    array : object
        Arrays without masked cells, and objects that are no arrays, are accepted.
    name : str, default="a masked array"
        Name of the array for messages.
    """
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"{name} hides cells by its mask, which would count as values: pass filled(np.nan) of "
            "its floats, or a data frame with missing values"
        )


def _table_of_batch(batch):
    """Return a record batch of Arrow as a table."""
    from pyarrow import Table

    return Table.from_batches([batch])


def checked_blocks(array):
    """Return a dask array whose computation raises an error if a block has another shape or type.

    Dask joins blocks without checking them: one row could become many, and the type of one block
    could change that of the others. Therefore, blocks are checked before any other operation on an
    array.
    """
    return array.map_blocks(_checked_block, dtype=array.dtype, meta=array._meta)


def _checked_block(block, block_info=None):
    """Return a block, or raise `ValueError`; dask passes the declared shape in `block_info`."""
    declared = block_info[None]
    shape = declared["chunk-shape"]
    dtype = declared["dtype"]
    # Subclasses of ndarray may treat values differently: masked arrays hide some.
    is_valid = type(block) in (np.ndarray, np.memmap) and block.dtype == dtype
    if is_valid and block.ndim == len(shape):
        for length, declared_length in zip(block.shape, shape, strict=True):
            # An unknown length is NaN.
            if length != declared_length and declared_length == declared_length:
                is_valid = False
    else:
        is_valid = False
    if not is_valid:
        description = f"{getattr(block, 'dtype', None)} of shape {np.shape(block)}"
        raise ValueError(
            f"a block is a {type(block).__name__}, {description}; the dask array declares an "
            f"ndarray, {dtype} of shape {shape}"
        )
    return block


def checked_partition(partition, types):
    """Return a partition of a dask collection, or raise if its columns are not as declared."""
    if declared(partition) != types:
        raise ValueError(
            f"a partition has the types {declared(partition)}, but {types} are declared"
        )
    return partition


def declared(table):
    """Return the names and types of the columns of a partition, or of a dask collection."""
    if is_frame(table):
        names = names_of(table)
        dtypes = table.dtypes
    else:
        names = [""]
        dtypes = [table.dtype]
    # The labels of a categorical type depend on the rows of the partition.
    dtypes = ["category" if hasattr(dtype, "categories") else dtype for dtype in dtypes]
    return list(zip(names, dtypes, strict=True))


def types_of(X):
    """Return the types of a frame's columns; an array has a single type."""
    if is_frame(X):
        # Attributes of the class are used, because attributes of a pandas frame include its
        # columns.
        is_arrow = hasattr(type(X), "schema") and hasattr(type(X), "column_names")
        if is_arrow:
            return X.schema.types
        return X.dtypes
    if hasattr(X, "dtype"):
        return [X.dtype]
    return []


def frame_columns(frame):
    """Return a frame's columns as separate arrays.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
        Numbers, dates or durations if the column's type is a NumPy type that can represent its
        missing values, and objects otherwise. Missing values are None in columns that are converted
        to objects. An object column of pandas is not converted, so it keeps its NaN.
    numeric : list of bool
        True for each column with a numeric type.
    """
    return columns_in_blocks(frame_blocks(frame))


@dataclass(frozen=True, eq=False)
class FrameBlock(FrozenValue):
    """Columns of a frame that are read as one array.

    Parameters
    ----------
    columns : list of int
        Indices of the columns.
    values : ndarray of shape (n_rows, n_block_columns)
        As in `frame_columns`.
    is_numeric : bool
        True if the columns' type is numeric.
    """

    columns: list
    values: np.ndarray
    is_numeric: bool


def frame_blocks(frame):
    """Return the columns of a frame as blocks, whose order is not that of the columns.

    In a pandas frame of at most `MAX_COPIED_ROWS` rows, all columns of one type are one block:
    reading a column takes 20 microseconds, which would be most of the time of a prediction for one
    row. Only columns of NumPy's numbers, booleans and objects, and of pandas' strings are joined.
    Dates, durations, categories and the number types of pandas and Arrow are converted column by
    column.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    list of FrameBlock
    """
    frame = in_memory(frame)
    blocks = []
    if _is_short_pandas_frame(frame):
        blocks = _pandas_blocks(frame)
    is_read = np.zeros(frame.shape[1], dtype=bool)
    for block in blocks:
        is_read[block.columns] = True
    others = np.flatnonzero(~is_read).tolist()
    for j, column in zip(others, columns_of(frame, others), strict=True):
        values, is_numeric = column_values(column)
        blocks.append(FrameBlock([j], values[:, np.newaxis], is_numeric))
    return blocks


def columns_in_blocks(blocks):
    """Return the columns of a frame's blocks, as in `frame_columns`.

    Callers that also use the blocks call it instead of `frame_columns`, to read them only once.
    """
    n_columns = sum(len(block.columns) for block in blocks)
    columns = [None] * n_columns
    numeric = [False] * n_columns
    for block in blocks:
        for j, values in zip(block.columns, block.values.T, strict=True):
            columns[j], numeric[j] = values, block.is_numeric
    return columns, numeric


def _is_short_pandas_frame(frame):
    """Return True for a pandas frame whose columns may be joined in blocks."""
    # Joining the columns of a long frame would copy it.
    return hasattr(type(frame), "iloc") and len(frame) <= MAX_COPIED_ROWS


def _pandas_blocks(frame):
    """Return blocks of the columns whose dtype is a NumPy number, object or string type."""
    of_types = {}
    for j, dtype in enumerate(frame.dtypes):
        is_numpy_type = isinstance(dtype, np.dtype) and dtype.kind in f"{NUMBERS}O"
        if is_numpy_type or type(dtype).__name__ == "StringDtype":
            of_types.setdefault(dtype, []).append(j)
    blocks = []
    for dtype, columns in of_types.items():
        if len(columns) == frame.shape[1]:
            selected = frame
        else:
            selected = frame.iloc[:, columns]
        if isinstance(dtype, np.dtype):
            values = selected.to_numpy()
        else:
            values = selected.to_numpy(dtype=object, na_value=None)
        blocks.append(FrameBlock(columns, values, dtype.kind in NUMBERS))
    return blocks


def names_of(frame):
    """Return the names of a frame's columns; names of a subclass of str become plain strings."""
    if hasattr(type(frame), "column_names"):
        return list(frame.column_names)
    labels = list(frame.columns)
    # Most tables have no other labels, and may have thousands of columns.
    if {*map(type, labels)} <= {str, int}:
        return labels
    return [_plain_name(label) for label in labels]


def _plain_name(label):
    """Return a column's label, as a plain string if it is one of NumPy or of an enumeration."""
    if isinstance(label, str):
        # `str(label)` would be the name of an enumeration's member.
        return str.__str__(label)
    return label


def with_plain_names(X):
    """Return a table whose names scikit-learn stores and compares, for `validate_data`.

    scikit-learn reads labels only if their type is str. pandas before version 3 keeps strings of
    NumPy, as of ``df.columns = list(array_of_names)``, and members of enumerations: without names,
    keys of dicts would not be found, and columns in another order would be confused.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame

    Returns
    -------
    object
        X, or a frame with plain names and no rows.
    """
    if not is_frame(X) or not hasattr(type(X), "set_axis"):
        return X
    names = names_of(X)
    if {*map(type, X.columns)} == {*map(type, names)}:
        return X
    return X.iloc[:0].set_axis(names, axis=1)


def check_names_differ(table, parameter="X"):
    """Raise `ValueError` if two columns of a frame, the argument `parameter`, have the same name.

    In `bounds`, `categories`, messages and statements, a name must refer to one column.
    """
    if not is_frame(table):
        return
    names = names_of(table)
    if len(set(names)) < len(names):
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        shown = ", ".join(map(repr, repeated[:5]))
        if len(repeated) > 5:
            shown += ", ..."
        raise ValueError(
            f"{parameter} has several columns with the same name ({shown}): rename them, so that "
            "all names differ"
        )


def non_positional_labels(X):
    """Return a frame's column labels, or None if they are strings or positions.

    scikit-learn stores names only if they are strings. If column 0 of a frame with the labels 0
    to 3 was dropped, a dict with the keys 1, 2, 3 must mean labels, not positions.
    """
    if not is_frame(X):
        return None
    names = names_of(X)
    if any(isinstance(name, str) for name in names) or names == [*range(len(names))]:
        return None
    return names


def check_labels_match(estimator, X):
    """Raise `ValueError` if the labels of a frame's columns are not those of the fit.

    scikit-learn compares only names, which are strings. Labels that are numbers or tuples have the
    same meaning: without this check, columns in another order would be confused.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator, with the labels of the fit in `_labels_in` if they were not strings or
        positions.
    X : object
        The samples. Arrays, and frames whose labels are positions, count as having no labels, but a
        position that was another column's label in the fit is refused.
    """
    if not is_frame(X) or hasattr(estimator, "feature_names_in_"):
        return
    fit_labels = getattr(estimator, "_labels_in", None)
    labels = names_of(X)
    if fit_labels is None:
        # scikit-learn warns about string names.
        if non_positional_labels(X) is None:
            return
        fit_labels = range(len(labels))
        must_be_equal = False
    else:
        must_be_equal = labels != [*range(len(labels))]
    fit_labels = list(fit_labels)
    positions = {label: j for j, label in enumerate(fit_labels)}
    has_other_position = any(positions.get(label, j) != j for j, label in enumerate(labels))
    if has_other_position or (must_be_equal and labels != fit_labels):
        raise ValueError(
            f"The labels of the columns must be those of the fit, in the same order: expected "
            f"{_shown_labels(fit_labels)}, got {_shown_labels(labels)}. Select the columns by "
            "X[labels], or pass an array without labels"
        )


def _shown_labels(labels):
    """Return up to five labels as text for a message."""
    shown = ", ".join(map(repr, labels[:5]))
    if len(labels) > 5:
        return f"[{shown}, ...]"
    return f"[{shown}]"


def columns_of(frame, indices=None):
    """Return columns of a frame as objects of its library; all of them if `indices` is None."""
    frame = in_memory(frame)
    if indices is None:
        indices = range(frame.shape[1])
    if hasattr(type(frame), "column_names"):
        # Arrow makes a new list of all columns each time.
        columns = frame.columns
        return [columns[j] for j in indices]
    indexer = frame
    if hasattr(type(frame), "iloc"):
        indexer = frame.iloc
    return [indexer[:, j] for j in indices]


def column_values(column):
    """Return the values of a column of any library, and True if its type is numeric.

    Parameters
    ----------
    column : Series, or array of NumPy, pandas, Arrow or dask

    Returns
    -------
    values : ndarray
    numeric : bool
    """
    column = in_memory(column)
    if hasattr(type(column), "to_pylist"):
        return _arrow_values(column)
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "is_temporal"):
        return _polars_values(column)
    if hasattr(dtype, "construct_array_type"):
        return _pandas_values(column)
    values = np.asarray(column)
    return values, values.dtype.kind in NUMBERS


def map_types(function, types):
    """Return a function's values for a list of types; it is called once for each distinct type."""
    # Types are distinguished by identity, because comparing categorical types is slow. The list
    # keeps the types alive, so that ids are unique.
    types = list(types)
    results = {}
    for dtype in types:
        if id(dtype) not in results:
            results[id(dtype)] = function(dtype)
    return [results[id(dtype)] for dtype in types]


def take_rows(table, rows):
    """Return rows of a table, or items of a list, by their indices or by a mask."""
    if np.asarray(rows).dtype == bool:
        rows = np.flatnonzero(rows)
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(type(table), "to_pylist"):
        return table.take(rows)
    if hasattr(table, "shape"):
        return table[rows]
    return [table[row] for row in rows]


def objects(values):
    """Return a sequence of values, which may be arrays, as an array of objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _pandas_values(column):
    """Return the `column_values` of a column with a type of pandas, also of Arrow within pandas."""
    from pandas import Series

    column, dtype = Series(column), column.dtype
    if hasattr(dtype, "categories"):
        labels, _ = column_values(dtype.categories)
        # 0.0 and -0.0 are one category, which has the sign of one of the rows. Zeros become 0.0, so
        # that this row does not change the values of others.
        labels = [v + 0.0 if isinstance(v, float | np.floating) else v for v in labels]
        # The code of a missing value is -1, which selects the last item. The list of labels depends
        # on rows, so the values are read, not the codes.
        return objects([*labels, None])[np.asarray(column.cat.codes)], False
    if hasattr(dtype, "fill_value") and hasattr(dtype, "subtype"):
        # A sparse column. Without a dtype, the type would depend on whether all values are present.
        return np.asarray(column, dtype=dtype.subtype), dtype.subtype.kind in NUMBERS
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    if dtype.kind in TIMES and zone is None:
        if str(dtype).startswith("date"):
            # pandas cannot convert Arrow's dates without a time of day if one is missing.
            return column.to_numpy(dtype=object, na_value=None).astype(dtype.numpy_dtype), False
        return column.to_numpy(dtype=dtype.numpy_dtype, na_value=None), False
    # Nullable numbers become objects even if none is missing: otherwise, the type of the values
    # would depend on whether one is missing.
    return column.to_numpy(dtype=object, na_value=None), dtype.kind in NUMBERS


def _polars_values(column):
    """Return the `column_values` of a column of polars."""
    dtype = column.dtype
    numeric = dtype.is_numeric() or str(dtype) == "Boolean"
    # NumPy has no 128-bit integers.
    has_array = not dtype.is_decimal() and not str(dtype).endswith("128")
    is_complete = numeric and has_array and not column.null_count()
    is_time = dtype.is_temporal() and getattr(dtype, "time_zone", None) is None
    return _array_or_objects(column, is_complete or is_time, column.to_list), numeric


def _arrow_values(column):
    """Return the `column_values` of an array of Arrow."""
    kind = str(column.type)
    numeric = kind.startswith(("int", "uint", "float", "double", "halffloat", "bool"))
    is_time = kind.startswith(("timestamp", "duration", "date")) and "tz=" not in kind
    is_complete = numeric and not column.null_count
    return _array_or_objects(column, is_complete or is_time, column.to_pylist), numeric


def _array_or_objects(column, has_array, to_list):
    """Return a column as an array of numbers or times if possible, otherwise of objects."""
    if has_array:
        values = np.asarray(column)
        if values.dtype.kind in NUMBERS + TIMES:
            return values
    return objects(to_list())
