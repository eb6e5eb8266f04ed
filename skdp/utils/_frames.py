"""Frames and their columns as arrays, as the types declare that they have.

`numpy.asarray` of a column asks its values for a type where the declared one is none of numpy's:
one value then decides how the others are converted.
"""

from dataclasses import dataclass

import numpy as np

from skdp.utils._values import FrozenValue

NUMBERS = "biuf"
TIMES = "mM"
# Up to so many rows of a frame are copied to read columns of one type together.
FEW_ROWS = 1 << 12
# How the names of types begin.
STARTS = {
    "object": ("struct",),
    "number": ("int", "uint", "float", "double", "halffloat", "decimal"),
    "boolean": ("bool",),
    "label": ("str", "large_str", "cat", "enum", "dictionary", "utf8"),
    "date": ("date", "timestamp"),
    "duration": ("duration", "timedelta"),
}


def is_frame(X):
    """Return whether a table has columns of types of their own: pandas, polars, Arrow or like."""
    # An instance has its columns' names among its attributes.
    kind = type(X)
    has_types = hasattr(kind, "dtypes") or hasattr(kind, "schema")
    is_other = hasattr(kind, "to_frame") or hasattr(kind, "collect")
    return hasattr(kind, "columns") and has_types and not is_other


def kind_of(dtype):
    """Return the kind of a type of numpy, pandas, Arrow or polars, by its name."""
    dtype = getattr(dtype, "subtype", dtype)
    if hasattr(dtype, "categories"):
        return "label"
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    found = (kind for kind, starts in STARTS.items() if name.lower().startswith(starts))
    return next(found, "object")


def label_kind_of(dtype):
    """Return the kind that all labels of a frame's column have by its type, None if it says none.

    Returns
    -------
    {"numbers", "text", None}
        None of objects, of dates, and of types that hold a list of labels of some other type.
    """
    kind = kind_of(dtype)
    if kind in ("number", "boolean"):
        # The subtype of intervals is that of their ends.
        return None if hasattr(dtype, "closed") else "numbers"
    # What a type of categories, of polars' Enum or of Arrow's dictionary holds is not in its name.
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    return (
        "text"
        if name.lower().startswith(("str", "large_str", "utf8")) and kind == "label"
        else None
    )


def number_type_of(dtype):
    """Return the numpy type of a column of floats or integers, by the name of its type, or None.

    A column of pandas, polars or Arrow with gaps is read as objects, which no longer say that
    its floats were rounded to four bytes.
    """
    dtype = getattr(dtype, "subtype", dtype)
    if isinstance(dtype, np.dtype):
        return dtype if dtype.kind in "iuf" else None
    name = str(dtype).lower().partition("[")[0]
    name = {"float": "float32", "halffloat": "float16", "double": "float64"}.get(name, name)
    return np.dtype(name) if name.rstrip("0123456789") in ("int", "uint", "float") else None


def in_memory(table):
    """Return what dask, or a polars LazyFrame, holds, anything else as it is.

    Raises
    ------
    ValueError
        If a part is of another type than is declared: joined with the others it would change
        theirs. Or if nothing is declared.
    """
    kind = type(table)
    if hasattr(kind, "collect_schema") and hasattr(kind, "collect"):
        frame = table.collect()
        return frame.to_series() if frame.width == 1 else frame
    if not hasattr(kind, "compute"):
        return table
    if hasattr(kind, "map_blocks"):
        return checked_blocks(table).compute()
    if not hasattr(kind, "map_partitions"):
        raise ValueError(
            f"a {kind.__name__} of dask does not declare what it holds: give what its compute() "
            "returns, or make it a dask array by dask.array.from_delayed"
        )
    return table.map_partitions(checked_part, declared(table), meta=table._meta).compute()


def checked_blocks(array):
    """Return a dask array that raises where it is computed if a block is not what it says.

    Dask joins blocks without a look at them: one row could be taken for many, and one block's
    type change the others. So this comes before anything else is done with an array.
    """
    return array.map_blocks(_checked_block, dtype=array.dtype, meta=array._meta)


def _checked_block(block, block_info=None):
    declared = block_info[None]
    shape = declared["chunk-shape"]
    dtype = declared["dtype"]
    # Subclasses have other ideas of what a value is: masked ones hide some.
    is_plain = type(block) in (np.ndarray, np.memmap) and block.dtype == dtype
    is_plain = is_plain and block.ndim == len(shape)
    # A length that is unknown is NaN.
    if not is_plain or any(own != n == n for own, n in zip(block.shape, shape, strict=True)):
        found = f"{getattr(block, 'dtype', None)} of shape {np.shape(block)}"
        raise ValueError(
            f"a block is a {type(block).__name__}, {found}; the dask array says that it is an "
            f"ndarray, {dtype} of shape {shape}"
        )
    return block


def checked_part(part, types):
    """Return a part of a dask collection if its columns are those that are declared."""
    if declared(part) != types:
        raise ValueError(f"a part has the types {declared(part)}, declared are {types}")
    return part


def declared(table):
    """Return the names and types of the columns of a part, or of a dask collection, in order."""
    names, dtypes = (names_of(table), table.dtypes) if is_frame(table) else ([""], [table.dtype])
    # Which labels a part lists depends on its rows.
    dtypes = ["category" if hasattr(dtype, "categories") else dtype for dtype in dtypes]
    return list(zip(names, dtypes, strict=True))


def types_of(X):
    """Return the types of a frame's columns, and that of an array once."""
    if is_frame(X):
        # An instance of pandas has its columns among its attributes.
        is_arrow = hasattr(type(X), "schema") and hasattr(type(X), "column_names")
        return X.schema.types if is_arrow else X.dtypes
    return [X.dtype] if hasattr(X, "dtype") else []


def frame_columns(frame, *, without_zones=False):
    """Return a frame's columns one by one.

    Parameters
    ----------
    frame : DataFrame
    without_zones : bool, default=False
        Whether dates of a time zone are dates of numpy, in UTC; otherwise they are objects.

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
        Of numbers, dates or durations where the column's declared type is one of numpy's and
        nothing is missing that it cannot hold; of objects otherwise, where what is missing is
        None, or was an object before.
    numeric : list of bool
        Whether the column's type is one of numbers.
    """
    return columns_in_blocks(frame_blocks(frame, without_zones))


@dataclass(frozen=True, eq=False)
class FrameBlock(FrozenValue):
    """Columns of a frame that are read together.

    Parameters
    ----------
    columns : list of int
        Their positions.
    values : ndarray of shape (n_rows, n_block_columns)
        As in `frame_columns`.
    is_numeric : bool
        Whether the columns' type is one of numbers.
    """

    columns: list
    values: np.ndarray
    is_numeric: bool


def frame_blocks(frame, without_zones=False):
    """Return the columns of a frame as blocks, in any order.

    Columns of one type are one block where the frame is a short one of pandas: to take its columns
    one by one takes 20 microseconds for each, which is most of the time of an answer for one row.

    Parameters
    ----------
    frame : DataFrame
    without_zones : bool, default=False
        As in `frame_columns`.

    Returns
    -------
    list of FrameBlock
    """
    frame = in_memory(frame)
    blocks = _pandas_blocks(frame) if _is_short_pandas_frame(frame) else []
    together = {j for block in blocks for j in block.columns}
    others = [j for j in range(frame.shape[1]) if j not in together]
    for j, column in zip(others, columns_of(frame, others), strict=True):
        values, is_numeric = column_values(column, without_zones)
        blocks.append(FrameBlock([j], values[:, np.newaxis], is_numeric))
    return blocks


def columns_in_blocks(blocks):
    """Return the columns of a frame's blocks one by one, as `frame_columns` does."""
    n_columns = sum(len(block.columns) for block in blocks)
    columns = [None] * n_columns
    numeric = [False] * n_columns
    for block in blocks:
        for j, values in zip(block.columns, block.values.T, strict=True):
            columns[j], numeric[j] = values, block.is_numeric
    return columns, numeric


def _is_short_pandas_frame(frame):
    # Joining the columns of a long frame would copy it.
    return hasattr(type(frame), "iloc") and len(frame) <= FEW_ROWS


def _pandas_blocks(frame):
    """Return blocks of the columns whose type has no lists, zones or gaps of its own."""
    of_types = {}
    for j, dtype in enumerate(frame.dtypes):
        is_plain = isinstance(dtype, np.dtype) and dtype.kind in f"{NUMBERS}O"
        if is_plain or type(dtype).__name__ == "StringDtype":
            of_types.setdefault(dtype, []).append(j)
    blocks = []
    for dtype, columns in of_types.items():
        part = frame if len(columns) == frame.shape[1] else frame.iloc[:, columns]
        if isinstance(dtype, np.dtype):
            values = part.to_numpy()
        else:
            values = part.to_numpy(dtype=object, na_value=None)
        blocks.append(FrameBlock(columns, values, dtype.kind in NUMBERS))
    return blocks


def names_of(frame):
    """Return the names of a frame's columns."""
    return list(frame.column_names if hasattr(type(frame), "column_names") else frame.columns)


def check_names_differ(table):
    """Raise `ValueError` if two columns of a frame have one name; other tables have no names.

    A name stands for one column in `bounds`, `categories`, messages and statements.
    """
    if not is_frame(table):
        return
    names = names_of(table)
    if len(set(names)) < len(names):
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        shown = ", ".join(map(repr, repeated[:5])) + ", ..." * (len(repeated) > 5)
        raise ValueError(
            f"X has several columns of one name ({shown}): rename them, so that each column has "
            "a name of its own"
        )


def columns_of(frame, places=None):
    """Return a frame's columns, all or those at some places, as the frame's library makes them."""
    frame = in_memory(frame)
    places = range(frame.shape[1]) if places is None else places
    if hasattr(type(frame), "column_names"):
        return [frame.columns[j] for j in places]
    take = frame.iloc if hasattr(type(frame), "iloc") else frame
    return [take[:, j] for j in places]


def column_values(column, without_zones=False):
    """Return a column's values, of any container with a type, and whether that is one of numbers.

    Parameters
    ----------
    column : Series, array of numpy, pandas, Arrow or dask, or like
    without_zones : bool, default=False
        As in `frame_columns`.

    Returns
    -------
    values : ndarray
    numeric : bool
    """
    column = in_memory(column)
    if hasattr(type(column), "to_pylist"):
        return _arrow_values(column, without_zones)
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "is_temporal"):
        return _polars_values(column, without_zones)
    if hasattr(dtype, "construct_array_type"):
        return _pandas_values(column, without_zones)
    values = np.asarray(column)
    return values, values.dtype.kind in NUMBERS


def map_types(function, types):
    """Return what a function returns for each of a list of types, calling it once for each type."""
    # By identity, which is quick where a type holds categories. The list keeps the types alive, so
    # that no two have the same.
    types = list(types)
    results = {}
    for dtype in types:
        if id(dtype) not in results:
            results[id(dtype)] = function(dtype)
    return [results[id(dtype)] for dtype in types]


def take_rows(table, rows):
    """Return some rows of a table or some of a list of values, by number or by a mask."""
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else rows
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(type(table), "to_pylist"):
        return table.take(rows)
    return table[rows] if hasattr(table, "shape") else [table[row] for row in rows]


def objects(values):
    """Return values, which may be arrays, as an array of objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _pandas_values(column, without_zones=False):
    from pandas import Series

    column, dtype = Series(column), column.dtype
    if hasattr(dtype, "categories"):
        labels, _ = column_values(dtype.categories)
        # A column's zeros have the sign of the first of them; what is missing has the code -1,
        # which finds the end.
        labels = [each + 0.0 if isinstance(each, float | np.floating) else each for each in labels]
        # Which labels its list holds depends on rows, also those that no row has any more.
        return objects([*labels, None])[np.asarray(column.cat.codes)], False
    if hasattr(dtype, "fill_value") and hasattr(dtype, "subtype"):
        # Left to itself its type depends on whether every value is stored.
        return np.asarray(column, dtype=dtype.subtype), dtype.subtype.kind in NUMBERS
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    if dtype.kind in TIMES and zone is not None and without_zones:
        return column_values(column.dt.tz_convert(None))
    if dtype.kind in TIMES and zone is None:
        return column.to_numpy(dtype=dtype.numpy_dtype, na_value=None), False
    return column.to_numpy(dtype=object, na_value=None), dtype.kind in NUMBERS


def _polars_values(column, without_zones=False):
    dtype = column.dtype
    numeric = dtype.is_numeric() or str(dtype) == "Boolean"
    is_plain = numeric and not column.null_count() and not dtype.is_decimal()
    is_time = dtype.is_temporal() and (without_zones or getattr(dtype, "time_zone", None) is None)
    return _plain_or_objects(column, is_plain or is_time, column.to_list), numeric


def _arrow_values(column, without_zones=False):
    kind = str(column.type)
    numeric = kind.startswith(("int", "uint", "float", "double", "halffloat", "bool"))
    is_time = kind.startswith(("timestamp", "duration", "date"))
    is_time &= without_zones or "tz=" not in kind
    is_plain = numeric and not column.null_count
    return _plain_or_objects(column, is_plain or is_time, column.to_pylist), numeric


def _plain_or_objects(column, is_plain, to_list):
    if is_plain:
        values = np.asarray(column)
        if values.dtype.kind in NUMBERS + TIMES:
            return values
    return objects(to_list())
