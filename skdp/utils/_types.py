"""Types of parameters and arguments that many functions share, for annotations."""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

# The relation between neighboring data sets, and the privacy unit.
Relation = Literal["add_remove", "replace_one"]
Unit = Literal["row", "person", "group"]
# The methods by which an accountant adds up charges, and by which an event is priced.
Composition = Literal["basic", "advanced", "zcdp", "rdp", "gdp", "pld", "auto"]
Method = Literal["auto", "basic", "advanced", "zcdp", "rdp", "pld"]

# Bounds of columns, (low, high), or a dict from columns to theirs.
Bounds = tuple[ArrayLike, ArrayLike] | dict
# Categories of one column or of each column, or a dict from columns to theirs.
Categories = list | dict | np.ndarray
# The labels of a classifier.
Classes = list | tuple | np.ndarray


class _Table(Protocol):
    """A table that is no array: a sparse matrix, a lazy frame, a file or chunks of rows."""

    @property
    def shape(self) -> tuple: ...


# Rows: an array, a data frame, a sparse matrix, or a source of rows in partitions.
TableLike = ArrayLike | _Table
