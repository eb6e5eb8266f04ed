"""Public facts of a table before a fit: its shape, its columns and its container."""

from dataclasses import dataclass, replace

from skdp._data._tables import TableShape


@dataclass(frozen=True, kw_only=True, eq=False)
class TableForm(TableShape):
    """A `TableShape` with properties of the container; None means unknown.

    A pipeline passes it from step to step: the method ``_output_form`` of a transformer returns
    the form of its output for the form of its input.

    Parameters
    ----------
    n_rows, n_columns : int or None, default=None
    classes, names, kinds
        As in `TableShape`. `names` is also None if the columns have no names. A kind may also be
        "text": a column of objects whose cells are known to be strings.
    is_frame : bool or None, default=None
        True if columns can be chosen by name.
    is_sparse : bool or None, default=None
        True for a sparse matrix.
    holds_numbers : bool, default=False
        True if all columns are numeric, even if their number is unknown.
    empty : DataFrame, default=None
        A pandas frame without rows, with whose types a column selector chooses columns.
    """

    n_rows: int | None = None
    n_columns: int | None = None
    is_frame: bool | None = None
    is_sparse: bool | None = None
    holds_numbers: bool = False
    empty: object = None

    def __post_init__(self):
        super().__post_init__()
        # `kinds` and `holds_numbers` can express the same fact: set both.
        if self.kinds is None and self.holds_numbers and self.n_columns is not None:
            vars(self)["kinds"] = ("number",) * self.n_columns
        elif self.kinds is not None and not set(self.kinds) - {"number"}:
            vars(self)["holds_numbers"] = True

    @property
    def has_known_cells(self):
        """True if each column is known to be numeric or to hold strings only."""
        return self.kinds is not None and not set(self.kinds) - {"number", "text"}

    def take(self, indices):
        """Return the form of some of the columns.

        Parameters
        ----------
        indices : list of int or str, or None
            None for unknown columns. Names, whose positions are unknown, give the number of
            columns only.
        """
        if indices is None:
            return self.with_columns(None)
        if any(isinstance(index, str) for index in indices):
            return self.with_columns(len(indices))
        return self.with_columns(
            len(indices),
            empty=None if self.empty is None else self.empty.iloc[:, indices],
            names=None if self.names is None else [self.names[j] for j in indices],
            kinds=None if self.kinds is None else [self.kinds[j] for j in indices],
        )

    def with_columns(self, n_columns, *, names=None, kinds=None, empty=None):
        """Return the form of other columns; their names and kinds are unknown by default."""
        return replace(
            self,
            n_columns=n_columns,
            names=None if names is None else tuple(names),
            kinds=None if kinds is None else tuple(kinds),
            empty=empty,
        )


UNKNOWN_FORM = TableForm()
