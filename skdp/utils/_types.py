"""Types of parameters and arguments that many functions share, for annotations."""

from pathlib import Path
from typing import Literal, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

# The parameters and the result of a function whose signature a decorator preserves, and the class
# of its `self`.
P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")

# The relation between neighboring data sets, and the privacy unit.
Relation = Literal["add_remove", "replace_one"]
Unit = Literal["row", "person", "group"]
# The methods by which an accountant adds up charges, and those by which an event is priced.
Composition = Literal["basic", "advanced", "zcdp", "rdp", "gdp", "pld", "auto"]
Method = Literal["auto", "basic", "advanced", "zcdp", "rdp", "pld"]

# Bounds of all columns as (low, high), or a dict from columns to their bounds.
Bounds = tuple[ArrayLike, ArrayLike] | dict
# Categories of one column or of each column, or a dict from columns to their categories.
Categories = list | dict | np.ndarray
# The labels of a classifier.
Classes = list | tuple | np.ndarray


class _HasShape(Protocol):
    """A table with a public shape that is not an array, such as a sparse matrix or a dask frame."""

    @property
    def shape(self) -> tuple:
        """Number of rows and of columns."""


class _HasSchema(Protocol):
    """A table that is read later, such as a polars LazyFrame or an Arrow dataset."""

    @property
    def schema(self) -> object:
        """Names and types of the columns."""


# Rows: an array, a data frame, a sparse matrix, a lazy table or the path of Parquet files.
TableLike = ArrayLike | Path | _HasShape | _HasSchema
