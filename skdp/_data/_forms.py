"""What is known of a table before a fit: its shape, its columns and its container."""

from dataclasses import dataclass, replace

from skdp._data._tables import TableShape


@dataclass(frozen=True, kw_only=True, eq=False)
class TableForm(TableShape):
    """A `TableShape` with properties of the container. None stands for what is not known.

    A pipeline passes it from step to step: each transformer states the form of its output from
    that of its input, by ``_output_form``.

    Parameters
    ----------
    n_rows, n_columns : int or None, default=None
    classes, names, kinds
        As in `TableShape`. `names` is None also where the columns have no names. A kind may be
        "text", too, of cells of objects that are known to be words.
    is_frame : bool or None, default=None
        True if columns can be chosen by name.
    is_sparse : bool or None, default=None
        True for a sparse matrix.
    holds_numbers : bool, default=False
        True if every column is one of numbers, also where it is not known how many there are.
    empty : DataFrame, default=None
        A frame of pandas without rows: by the types of its columns a selector chooses.
    """

    n_rows: int | None = None
    n_columns: int | None = None
    is_frame: bool | None = None
    is_sparse: bool | None = None
    holds_numbers: bool = False
    empty: object = None

    def __post_init__(self):
        super().__post_init__()
        # Two ways to say the same: whoever reads one of them must not miss the other.
        if self.kinds is None and self.holds_numbers and self.n_columns is not None:
            vars(self)["kinds"] = ("number",) * self.n_columns
        elif self.kinds is not None and not set(self.kinds) - {"number"}:
            vars(self)["holds_numbers"] = True

    @property
    def tells_cells(self):
        """True if every column is known to be one of numbers, or one of words."""
        return self.kinds is not None and not set(self.kinds) - {"number", "text"}

    def take(self, indices):
        """Return the form of some of the columns.

        Parameters
        ----------
        indices : list of int or str, or None
            None stands for columns that are not known. Of those with a name whose position is not
            known it is known how many there are.
        """
        if indices is None:
            return self.of_columns(None)
        if any(isinstance(index, str) for index in indices):
            return self.of_columns(len(indices))
        return self.of_columns(
            len(indices),
            empty=None if self.empty is None else self.empty.iloc[:, indices],
            names=None if self.names is None else [self.names[j] for j in indices],
            kinds=None if self.kinds is None else [self.kinds[j] for j in indices],
        )

    def of_columns(self, n_columns, *, names=None, kinds=None, empty=None):
        """Return the form of other columns, of which names and kinds are not known by default."""
        return replace(
            self,
            n_columns=n_columns,
            names=None if names is None else tuple(names),
            kinds=None if kinds is None else tuple(kinds),
            empty=empty,
        )


UNKNOWN_FORM = TableForm()
