"""What of a table is public."""

from dataclasses import dataclass

__all__ = ["TableShape"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableShape:
    """What a plan may know of a table: what is public, and nothing else.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    n_columns : int
        The number of columns.
    classes : ndarray of shape (n_classes,), default=None
        The label set of y, sorted; None without labels.
    names : ndarray of str of shape (n_columns,), default=None
        The columns' names, where the container has them.

    Examples
    --------
    >>> from skdp.base import TableShape
    >>> TableShape(n_rows=1000, n_columns=3).n_columns
    3
    """

    n_rows: int
    n_columns: int
    classes: object = None
    names: object = None
