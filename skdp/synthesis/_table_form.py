"""Container, names and column types of a fit's table, which simulated rows receive.

Only public facts are stored: names and types. A categorical dtype of pandas or polars lists labels,
which may come from the rows; its labels are replaced by the declared or released categories.
"""

import datetime
import math
import re
from dataclasses import dataclass
from numbers import Real

import numpy as np

from skdp._data._chunked import meta_of
from skdp._data._frames import (
    column_values,
    columns_of,
    has_time_zone,
    is_frame,
    label_kind_of,
    names_of,
    number_type_of,
    objects,
    time_type_of,
    types_of,
)
from skdp._data._kinds import container_kinds
from skdp._data._labels import are_missing, label_key
from skdp._data._tables import TableShape
from skdp.utils._values import FrozenValue

# Placeholder of values outside the categories.
OTHER_TEXT = "other"
MICROSECONDS_PER_DAY = 86_400e6
# Largest magnitudes of dates and durations, in microseconds, that fit into 64 bits: in
# microseconds, and in nanoseconds.
MAX_MICROSECONDS = 2**63 - 2**40
MAX_MICROSECONDS_OF_NANOSECONDS = MAX_MICROSECONDS // 1000
# Days since 1970 of the first day of year 1 and of the end of year 9999, up to a tenth of a second.
# Python, and so Arrow, polars and most methods of pandas, have no dates beyond them. A table with
# the date 9999-12-31 for "no end" would otherwise have later dates, as found bounds are wider.
FIRST_DAY = -719_162.0
LAST_DAY = 2_932_897.0 - 1e-6
INTEGER_KINDS = "iu"
CALENDAR_DATE = np.dtype("M8[D]")


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedType(FrozenValue):
    """A categorical type without its labels.

    Parameters
    ----------
    name : {"category", "enum"}
        The type of pandas, or polars' Enum.
    is_ordered : bool
    """

    name: str
    is_ordered: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class TableForm(FrozenValue):
    """Names and types of a table.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow", "array", "list"}
    names : list or None
        Labels of the columns of a frame.
    types : list
        Type of each column; None in a list of rows.
    kinds : list of str
        Kind of each column, as `container_kinds` returns it.
    """

    library: str
    names: list | None
    types: list
    kinds: list

    @classmethod
    def of(cls, X, n_columns):
        """Return the form of a table.

        Parameters
        ----------
        X : array, list of rows, DataFrame or ChunkedArray
        n_columns : int
        """
        meta = meta_of(X)
        if not is_frame(meta):
            has_dtype = hasattr(meta, "dtype")
            if has_dtype:
                library = "array"
                dtype = _without_labels(meta.dtype)
                kinds = container_kinds(X)
            else:
                library = "list"
                dtype = None
                kinds = ["cells"] * n_columns
            return cls(library=library, names=None, types=[dtype] * n_columns, kinds=kinds)
        types = [_without_labels(dtype) for dtype in types_of(meta)]
        library = type(meta).__module__.partition(".")[0]
        if library not in ("polars", "pyarrow"):
            library = "pandas"
        return cls(library=library, names=names_of(meta), types=types, kinds=container_kinds(meta))

    def can_be_missing(self, j):
        """Return True if the type of a column can hold missing values."""
        dtype = getattr(self.types[j], "subtype", self.types[j])
        return not isinstance(dtype, np.dtype) or dtype.kind not in "biuSU"

    def can_be_other(self, j):
        """Return True if a column can have a label for values outside its categories.

        A categorical column whose type is numeric cannot: the count of its other values is dropped.
        """
        dtype = self.types[j]
        if dtype is None or isinstance(dtype, ListedType):
            return True
        return label_kind_of(dtype) != "numbers"

    def can_be_text(self, j):
        """Return True if the type of a column can hold the text "other".

        This matters only if no category was found. The text is then the label of all present
        values, if the type can hold it.
        """
        dtype = self.types[j]
        value_type = getattr(getattr(dtype, "pyarrow_dtype", dtype), "value_type", None)
        if value_type is not None and "string" not in str(value_type):
            # pandas 2.2 would replace Arrow's dictionary of numbers by a dictionary of text.
            return False
        return self.can_hold(j, objects([OTHER_TEXT]))

    def step(self, j):
        """Return the step of the grid of values of a column's type, or 0.0 without a grid.

        It is 1.0 for integers and for dates without a time of day, and a power of ten for
        decimals.
        """
        dtype = self.types[j]
        if dtype is None or isinstance(dtype, ListedType):
            return 0.0
        if self.kinds[j] == "date":
            is_date = str(dtype).startswith("date64")
            if isinstance(dtype, np.dtype):
                is_date = dtype == CALENDAR_DATE
            elif not is_date:
                is_date = time_type_of(dtype) == CALENDAR_DATE
            return float(is_date)
        if self.kinds[j] != "number":
            return 0.0
        number_type = _number_type(dtype)
        if number_type is not None:
            return float(number_type.kind in INTEGER_KINDS)
        decimals = getattr(getattr(dtype, "pyarrow_dtype", dtype), "scale", None)
        if decimals is None:
            return 0.0
        return float(f"1e{-decimals}")

    def value_range(self, j, *, has_bounds=False):
        """Return the smallest and the largest value of a column's type, in days for times.

        Parameters
        ----------
        j : int
        has_bounds : bool, default=False
            True if the bounds of the column are declared. Then dates of NumPy have the range of
            their type, and are not limited to the years that Python has.
        """
        dtype = self.types[j]
        if dtype is None or isinstance(dtype, ListedType):
            return -np.inf, np.inf
        if self.kinds[j] in ("date", "duration"):
            limit = MAX_MICROSECONDS
            if re.search(r"\bns\b", str(dtype)) is not None:
                limit = MAX_MICROSECONDS_OF_NANOSECONDS
            # One day less, because a time zone moves dates by up to half a day.
            limit = limit // MICROSECONDS_PER_DAY - 1.0
            is_of_numpy = isinstance(dtype, np.dtype)
            if self.kinds[j] == "duration" or (is_of_numpy and has_bounds):
                return -limit, limit
            margin = float(has_time_zone(dtype))
            return max(-limit, FIRST_DAY + margin), min(limit, LAST_DAY - margin)
        if self.kinds[j] != "number":
            return -np.inf, np.inf
        number_type = _number_type(dtype)
        if number_type is not None:
            return _range_of_numbers(number_type)
        decimal_type = getattr(dtype, "pyarrow_dtype", dtype)
        if getattr(decimal_type, "scale", None) is None:
            return -np.inf, np.inf
        # Without a precision, polars' decimals have 38 digits.
        digits = (decimal_type.precision or 38) - decimal_type.scale
        high = 10.0**digits - self.step(j)
        if high == 10.0**digits:
            high = float(np.nextafter(high, 0.0))
        return -high, high

    def build(self, columns, labels=()):
        """Return a table of this form.

        Parameters
        ----------
        columns : list of ndarray
            Values of each column: floats with NaN for missing values, dates or durations of NumPy,
            or objects with None for missing values.
        labels : dict of int to list, default=()
            Labels that the categorical type of a column lists, by position; other categorical types
            list the labels of the values.
        """
        labels = dict(labels)
        columns = [
            _within_range(values, dtype) for values, dtype in zip(columns, self.types, strict=True)
        ]
        if self.library == "polars":
            return self._build_polars(columns, labels)
        if self.library == "pyarrow":
            return self._build_arrow(columns)
        if self.library == "pandas":
            return self._build_pandas(columns, labels)
        dtype = self.types[0]
        if dtype is None or dtype.kind == "O":
            table = np.column_stack([_as_objects(values) for values in columns])
            if self.library == "list":
                return table.tolist()
            return table
        return np.column_stack([_as_numpy(values, dtype) for values in columns])

    def can_hold(self, j, values):
        """Return True if a column's type can hold values, an array as in `build`."""
        if self.library == "list":
            return True
        # Libraries read numbers as times since 1970, and times as numbers.
        is_time = values.dtype.kind in "mM"
        if is_time and self.kinds[j] in ("number", "boolean"):
            return False
        if values.dtype.kind == "f" and self.kinds[j] in ("date", "duration"):
            return False
        try:
            self._column(j, values)
        except Exception:  # Each library raises its own exceptions.
            return False
        return True

    def changed_values(self, j, values):
        """Return the values that a column's type cannot hold, or converts to other values.

        Parameters
        ----------
        j : int
        values : ndarray
            Values as in `build`. Missing values are left out.

        Returns
        -------
        list
        """
        values = values[~are_missing(values)]
        changed = []
        for i, value in enumerate(values.tolist() if values.dtype.kind == "O" else values):
            is_equal = label_key(value) is not None and self.can_hold(j, values[i : i + 1])
            if is_equal and self.library != "list":
                cell = column_values(self._column(j, values[i : i + 1]))[0][0]
                is_equal = _is_same_value(cell, value)
            if not is_equal:
                changed.append(value)
        return changed

    def _column(self, j, values):
        """Return values as a column of a table of this form."""
        names = None if self.names is None else [self.names[j]]
        form = TableForm(
            library=self.library, names=names, types=[self.types[j]], kinds=[self.kinds[j]]
        )
        table = form.build([values])
        if self.names is None:
            return table[0] if self.library == "list" else table[:, 0]
        return columns_of(table)[0]

    def _build_pandas(self, columns, labels):
        """Return a pandas frame of this form; see `build`."""
        import pandas as pd

        series = [
            _pandas_series(values, dtype, labels.get(j))
            for j, (values, dtype) in enumerate(zip(columns, self.types, strict=True))
        ]
        frame = pd.concat(series, axis=1)
        frame.columns = self.names
        return frame

    def _build_polars(self, columns, labels):
        """Return a polars frame of this form; see `build`."""
        import polars as pl

        series = []
        triples = zip(self.names, columns, self.types, strict=True)
        for j, (name, values, dtype) in enumerate(triples):
            if isinstance(dtype, ListedType):
                listed = labels.get(j)
                if listed is None:
                    listed = dict.fromkeys(value for value in values.tolist() if value is not None)
                dtype = pl.Enum([str(label) for label in listed])
            values = _without_nan(values, is_integer=dtype.is_integer())
            if dtype == pl.Object:
                series.append(pl.Series(name, values, dtype=dtype))
                continue
            column = pl.Series(name, values, strict=False)
            series.append(column.cast(dtype, strict=False))
        return pl.DataFrame(series)

    def _build_arrow(self, columns):
        """Return an Arrow table of this form; see `build`."""
        import pyarrow as pa

        arrays = []
        for values, dtype in zip(columns, self.types, strict=True):
            name = str(dtype)
            is_integer = name.startswith(("int", "uint"))
            values = _without_nan(values, is_integer=is_integer)
            if name == "null":
                # All values of the fit were missing.
                array = pa.nulls(len(values))
            elif name.startswith("dictionary"):
                array = pa.array(values, type=dtype.value_type).dictionary_encode().cast(dtype)
            elif is_integer or "string" in name:
                # Large unsigned integers have no other type, and old versions of Arrow do not cast
                # to string views.
                array = pa.array(values, type=dtype)
            else:
                array = pa.array(values, from_pandas=True).cast(dtype, safe=False)
            arrays.append(array)
        return pa.table(arrays, names=[str(name) for name in self.names])


@dataclass(frozen=True, kw_only=True, eq=False)
class FormedShape(TableShape):
    """A `TableShape` with the table's container and types.

    Parameters
    ----------
    form : TableForm, default=None
        None if only the shape is known.
    """

    form: TableForm | None = None


def _is_same_value(cell, value):
    """Return True if a cell equals the value it was made of, up to the precision of its type."""
    if isinstance(value, str) and isinstance(cell, np.datetime64 | datetime.date):
        # Dates may be written as text.
        try:
            value = np.datetime64(value, "us")
        except ValueError:
            return False
    keys = label_key(cell), label_key(value)
    if keys[0] == keys[1]:
        return True
    if all(isinstance(key, Real) for key in keys):
        # Half precision has eleven bits, but integers are not rounded.
        is_rounded = isinstance(cell, float | np.floating)
        return is_rounded and math.isclose(*keys, rel_tol=1e-3)
    # Dates may be stored with a time zone.
    are_dates = all(isinstance(key, tuple) and "instant" in str(key[0]) for key in keys)
    return are_dates and keys[0][1] == keys[1][1]


def _number_type(dtype):
    """Return NumPy's type of a column of numbers, or None for decimals."""
    number_type = number_type_of(dtype)
    name = str(dtype).lower()
    # Wider integers, such as polars' Int128.
    if number_type is None and name.startswith("int"):
        return np.dtype(np.int64)
    if number_type is None and name.startswith("uint"):
        return np.dtype(np.uint64)
    return number_type


def _range_of_numbers(number_type):
    """Return the smallest and the largest double that a numeric NumPy type can hold."""
    if number_type.kind == "f":
        return float(np.finfo(number_type).min), float(np.finfo(number_type).max)
    limits = np.iinfo(number_type)
    high = float(limits.max)
    if number_type.itemsize == 8:
        # The largest integers of 64 bits are not doubles: stay below them.
        high = float(np.nextafter(high, 0.0))
    return float(limits.min), high


def _without_labels(dtype):
    """Return a type without the labels that it lists."""
    name = type(dtype).__name__
    if name == "CategoricalDtype":
        return ListedType(name="category", is_ordered=bool(dtype.ordered))
    if name == "Enum":
        return ListedType(name="enum")
    if isinstance(dtype, np.dtype) and dtype.kind in "SU":
        # The length of a NumPy string type is that of its longest value.
        return np.dtype(dtype.kind)
    return dtype


def _pandas_series(values, dtype, labels):
    """Return values as a pandas series of a type; `labels` are the categories of a `ListedType`."""
    import pandas as pd

    if isinstance(dtype, ListedType):
        return pd.Series(pd.Categorical(values, labels, ordered=dtype.is_ordered))
    if isinstance(dtype, np.dtype):
        return pd.Series(_as_numpy(values, dtype), dtype=dtype)
    if str(dtype) == "null[pyarrow]":
        # All values of the fit were missing.
        return pd.Series([None] * len(values), dtype=dtype)
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    if zone is not None and values.dtype.kind == "M":
        return pd.Series(values).dt.tz_localize("UTC").astype(dtype)
    if values.dtype.kind == "f" and "int" in str(dtype).lower():
        integer_type = "Int64"
        if "uint" in str(dtype).lower():
            integer_type = "UInt64"
        values = pd.array(_without_nan(values, is_integer=True), dtype=integer_type)
    if values.dtype.kind == "O":
        values = pd.array(values)
    return pd.Series(values).astype(dtype)


def _without_nan(values, *, is_integer):
    """Return a list or an array in which missing values are None, and integers are integers."""
    if values.dtype.kind == "O":
        return values.tolist()
    if values.dtype.kind != "f":
        return values
    if is_integer and not np.isnan(values).any():
        integer_type = np.int64
        if (values >= 2.0**63).any():
            integer_type = np.uint64
        return np.rint(values).astype(integer_type)
    cells = values.tolist()
    if is_integer:
        return [None if value != value else round(value) for value in cells]
    return [None if value != value else value for value in cells]


def _within_range(values, dtype):
    """Return numbers and times within the range of a column's type, times in its unit.

    Found bounds may lie outside the range of a short type, and drawn dates have microseconds.
    Depending on the type, libraries wrap such values around, replace them by missing values or
    raise.

    Parameters
    ----------
    values : ndarray
        Values of one column, as in `TableForm.build`.
    dtype : type of numpy, pandas, Arrow or polars, ListedType or None
    """
    if dtype is None or isinstance(dtype, ListedType):
        return values
    if values.dtype.kind == "f":
        number_type = number_type_of(dtype)
        if number_type is None or number_type.kind == "b":
            return values
        if number_type.kind in INTEGER_KINDS:
            values = np.rint(values)
        return np.clip(values, *_range_of_numbers(number_type))
    if values.dtype.kind not in "mM":
        return values
    unit = re.search(r"\b(s|ms|us|ns)\b", str(dtype))
    if unit is None or unit[1] == "us":
        return values
    if unit[1] == "ns":
        limit = np.array(MAX_MICROSECONDS_OF_NANOSECONDS).view(values.dtype)
        low = np.array(-MAX_MICROSECONDS_OF_NANOSECONDS).view(values.dtype)
        return np.clip(values, low, limit)
    return values.astype(f"{values.dtype.kind}8[{unit[1]}]")


def _as_numpy(values, dtype):
    """Return values, limited to the range of a NumPy type, as an array of that type."""
    if dtype.kind in INTEGER_KINDS and values.dtype.kind == "f":
        return np.nan_to_num(values).astype(dtype)
    if dtype.kind == "O":
        return _as_objects(values)
    if values.dtype.kind == "O" and dtype.kind == "f":
        return np.array([np.nan if value is None else value for value in values], dtype=dtype)
    return values.astype(dtype)


def _as_objects(values):
    """Return an object array of the values; dates and durations remain NumPy's."""
    if values.dtype.kind in "mM":
        return objects(list(values))
    return objects(values.tolist())


def days_as_times(days, kind):
    """Return days as NumPy dates or durations in microseconds.

    Parameters
    ----------
    days : ndarray of float
        Days, since 1970 for dates; NaN for missing values.
    kind : {"date", "duration"}
    """
    code = "m8"
    if kind == "date":
        code = "M8"
    microseconds = np.rint(np.nan_to_num(days) * MICROSECONDS_PER_DAY)
    microseconds = np.clip(microseconds, -MAX_MICROSECONDS, MAX_MICROSECONDS).astype(np.int64)
    times = microseconds.view(f"{code}[us]")
    times[np.isnan(days)] = "NaT"
    return times
