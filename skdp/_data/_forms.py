"""Public facts of a table before a fit: its shape, its columns and its container."""

from dataclasses import dataclass, field, replace

from skdp._data._frames import non_positional_labels
from skdp._data._tables import TableShape

# Sparsity of a table, by its container. A frame is sparse if any of its columns is a Sparse column
# of pandas.
DENSE = ""
SPARSE_MATRIX = "matrix"
SPARSE_FRAME = "frame"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableForm(TableShape):
    """A `TableShape` with properties of the container; None means unknown.

    A pipeline passes it from step to step: a transformer's method ``_output_form`` maps the form of
    its input to the form of its output.

    Parameters
    ----------
    n_rows, n_columns : int or None, default=None
    classes, names, kinds
        As in `TableShape`. `names` is also None if the columns have no names. A kind may also be
        "text", for a column of objects whose cells are known to be strings and not numbers, or
        "mixed", for a column of objects that may hold values of several kinds; see `examples`.
    library : str or None, default=None
        Library of the data frame: "pandas", "polars" or another one; "" for other containers.
    has_names : bool or None, default=None
        False if the columns have no names: in an array, and in a frame whose labels are not
        strings. scikit-learn then calls them x0, x1, ...
    examples : dict of int to list, default={}
        By position, one value of each kind that a "mixed" column may hold, or a string for a column
        that is known to hold strings. This is known from its type or, only in checks, from its
        cells.
    is_sparse : bool or None, default=None
        True for a sparse matrix.
    holds_numbers : bool, default=False
        True if all columns are numeric, even if their number is unknown.
    name_prefixes : tuple of str or None, default=None
        If `names` is None, prefixes such that every name outside `known_names` begins with one of
        them. None means that nothing is known about the names.
    known_names : tuple of str, default=()
        Names of some columns, if `name_prefixes` is not None.
    empty : DataFrame, default=None
        A pandas frame without rows, from whose types a column selector chooses columns.
    """

    n_rows: int | None = None
    n_columns: int | None = None
    library: str | None = None
    has_names: bool | None = None
    examples: dict = field(default_factory=dict)
    is_sparse: bool | None = None
    holds_numbers: bool = False
    name_prefixes: tuple | None = None
    known_names: tuple = ()
    empty: object = None

    def __post_init__(self):
        super().__post_init__()
        if self.names is not None:
            vars(self)["names"] = tuple(self.names)
        if self.kinds is not None:
            vars(self)["kinds"] = tuple(self.kinds)
        # `kinds` and `holds_numbers` can express the same fact: set both.
        if self.kinds is None and self.holds_numbers and self.n_columns is not None:
            vars(self)["kinds"] = ("number",) * self.n_columns
        elif self.kinds is not None and not set(self.kinds) - {"number"}:
            vars(self)["holds_numbers"] = True
        if self.names is not None:
            vars(self)["has_names"] = True
        elif self.library == "":
            vars(self)["has_names"] = False

    @property
    def is_frame(self):
        """True if the table is a data frame; None if unknown."""
        if self.library is None:
            return None
        return self.library != ""

    @property
    def has_known_cells(self):
        """True if the kinds of the values that each column may hold are known."""
        return self.kinds is not None and not set(self.kinds) - {"number", "text", "mixed"}

    @property
    def labels(self):
        """Keys of dicts in parameters for a pandas frame whose labels are not strings, or None."""
        if self.has_names is not False or self.empty is None:
            return None
        return non_positional_labels(self.empty)

    @property
    def input_names(self):
        """Names that scikit-learn uses for the columns; None if they are unknown."""
        if self.names is not None:
            return [*self.names]
        if self.has_names is not False or self.n_columns is None:
            return None
        return [f"x{j}" for j in range(self.n_columns)]

    def take(self, indices):
        """Return the form of some of the columns, such as those of a part of a `ColumnTransformer`.

        Parameters
        ----------
        indices : list of int or str, or None
            None for unknown columns. Names, whose positions are unknown, determine only the number
            of columns.
        """
        if indices is None:
            return self.with_columns(None)
        if any(isinstance(index, str) for index in indices):
            return self.with_columns(len(indices))
        empty = self.empty
        if empty is not None:
            empty = empty.iloc[:, indices]
        return self.with_columns(
            len(indices),
            empty=empty,
            names=_entries_at(indices, self.names),
            kinds=_entries_at(indices, self.kinds),
            examples={
                place: self.examples[j] for place, j in enumerate(indices) if j in self.examples
            },
        )

    def with_columns(self, n_columns, *, names=None, kinds=None, empty=None, examples=None):
        """Return the form of other columns; their names and kinds are unknown by default."""
        return replace(
            self,
            n_columns=n_columns,
            names=names,
            kinds=kinds,
            empty=empty,
            examples=examples or {},
            name_prefixes=None,
            known_names=(),
        )

    def lacks(self, name):
        """Return True if it is known that no column has this name."""
        if self.names is not None:
            return name not in self.names
        if self.name_prefixes is None:
            return False
        return name not in self.known_names and not name.startswith(self.name_prefixes)


def _entries_at(indices, entries):
    """Return the entries of some columns; None if they are unknown."""
    if entries is None:
        return None
    return [entries[j] for j in indices]


UNKNOWN_FORM = TableForm()


def sparsity_of_table(X):
    """Return the sparsity of a table without reading any value.

    Parameters
    ----------
    X : object

    Returns
    -------
    {DENSE, SPARSE_MATRIX, SPARSE_FRAME}
    """
    if hasattr(X, "tocsr"):
        return SPARSE_MATRIX
    # The class is inspected, because some objects, such as skrub's data ops, have every attribute.
    is_frame = hasattr(type(X), "iloc") and hasattr(type(X), "columns")
    if is_frame and any(type(dtype).__name__ == "SparseDtype" for dtype in X.dtypes):
        return SPARSE_FRAME
    return DENSE
