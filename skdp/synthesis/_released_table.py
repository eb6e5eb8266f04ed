"""Released tables of counts, as users see them."""

from dataclasses import dataclass

import numpy as np

from skdp.synthesis._groups import unbiased_group_counts
from skdp.synthesis._table_form import days_as_times
from skdp.synthesis._values import placeholder
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._values import FrozenValue

# Number of categories that the name of a group lists.
MAX_LISTED = 3
MAX_PRINTED_ROWS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedTable(PrintedDocument, FrozenValue):
    """Noisy counts of the groups of one or more columns, with their standard error.

    Counts may be negative and need not add up to the number of rows, because they are not changed
    after the noise was added. If `groups` were passed to `fit`, persons are counted.

    Parameters
    ----------
    columns : tuple
        Names of the columns, or positions if the table has no names.
    groups : tuple of list of str
        Names of the groups of each column: categories, and ranges of numbers.
    counts : ndarray of shape (n_groups, ...)
        Noisy counts; the axes are the columns.
    standard_error : float or ndarray of the shape of the counts
        Standard deviation of the noise of each count. It does not include the sampling error.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.synthesis import DPTableSynthesizer
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 500, "smokes": [True, False] * 500})
    >>> synthesizer = DPTableSynthesizer(5.0, categories={"sex": ["F", "M"]}).fit(frame)
    >>> synthesizer.marginal("sex").columns
    ('sex',)
    """

    columns: tuple
    groups: tuple
    counts: np.ndarray
    standard_error: float | np.ndarray

    def to_pandas(self):
        """Return counts and standard errors as a pandas frame with one index level per column.

        Returns
        -------
        DataFrame
        """
        import pandas as pd

        names = [str(name) for name in self.columns]
        index = pd.MultiIndex.from_product(self.groups, names=names)
        if len(names) == 1:
            index = pd.Index(self.groups[0], name=names[0])
        errors = np.broadcast_to(self.standard_error, self.counts.shape)
        values = {"count": self.counts.ravel(), "standard_error": errors.ravel()}
        return pd.DataFrame(values, index=index)

    def section(self):
        """Return the largest counts as a section of a document.

        Returns
        -------
        Section
        """
        order = np.argsort(-self.counts, axis=None, kind="stable")[:MAX_PRINTED_ROWS]
        errors = np.broadcast_to(self.standard_error, self.counts.shape)
        rows = [(*map(str, self.columns), "count", "standard error")]
        for cell in zip(*np.unravel_index(order, self.counts.shape), strict=True):
            names = [groups[i] for groups, i in zip(self.groups, cell, strict=True)]
            rows.append((*names, f"{self.counts[cell]:,.0f}", f"{errors[cell]:,.1f}"))
        notes = ["The standard error describes only the noise."]
        if self.counts.size > len(order):
            notes.append(f"The {len(order)} largest of {self.counts.size} counts are shown.")
        heading = "Released counts of " + ", ".join(map(str, self.columns))
        return Section(heading, tables=(rows,), notes=tuple(notes))

    def __repr__(self):
        columns = ", ".join(map(repr, self.columns))
        error = float(np.mean(self.standard_error))
        return f"ReleasedTable({columns}; {self.counts.size} counts ± {error:.3g})"


def group_names(column):
    """Return a name for each group of a column: its categories, or the range of its numbers.

    Parameters
    ----------
    column : GroupedColumn
    """
    names = []
    for group in range(column.n_groups):
        members = np.flatnonzero((column.groups == group) & column.is_possible)
        if column.grid.is_categorical:
            names.append(_category_name(column.grid, members))
        else:
            names.append(_range_name(column.grid, members))
    return names


def _category_name(grid, members):
    """Return the name of a group of cells of a categorical column, for a table that users see."""
    labels = [*map(str, grid.categories.tolist()), "other values", "missing"]
    if placeholder(grid.categories) is not None:
        labels[-2] = f"{placeholder(grid.categories)} (not listed)"
    listed = [labels[cell] for cell in members]
    if len(listed) > MAX_LISTED:
        return ", ".join(listed[:MAX_LISTED]) + f" and {len(listed) - MAX_LISTED} more"
    return ", ".join(listed)


def _range_name(grid, members):
    """Return the name of a group of cells of a numeric column: a single value or a range."""
    if members[0] == grid.n_cells - 1:
        return "missing"
    if members[0] >= grid.n_equal_cells:
        return _number_text(grid, grid.atoms[members[0] - grid.n_equal_cells])
    equal = members[members < grid.n_equal_cells]
    low, high = grid.bounds
    if grid.has_value_cells:
        first = low + equal[0] * grid.step
        last = min(low + equal[-1] * grid.step, high)
        if first == last:
            return _number_text(grid, first)
        return f"{_number_text(grid, first)} to {_number_text(grid, last)}"
    edges = grid.equal_edges
    start = _number_text(grid, edges[equal[0]])
    return f"[{start}, {_number_text(grid, edges[equal[-1] + 1])})"


def _number_text(grid, number):
    """Return a number as text in the kind of its column: number, date or duration."""
    if grid.kind == "number":
        if abs(number) < 1e6:
            return f"{number:.6g}"
        return f"{number:,.0f}"
    times = days_as_times(np.array([number]), grid.kind)
    if grid.kind == "date":
        return str(times[0].astype("M8[s]")).removesuffix("T00:00:00")
    return f"{number:.6g} days"


def _name_of(index, names):
    """Return the name of a column, or its index in a table without names."""
    if names is None:
        return index
    return names[index]


def public_table(table, columns, names):
    """Return a `NoisyTable` as users see it, with the names of columns and of their groups."""
    table_columns = [columns[i] for i in table.columns]
    return ReleasedTable(
        columns=tuple(_name_of(column.grid.index, names) for column in table_columns),
        groups=tuple(group_names(column) for column in table_columns),
        counts=table.counts,
        standard_error=table.noise_std,
    )


def public_column(column, names, total):
    """Return unbiased counts of the groups of one column."""
    counts, standard_errors = unbiased_group_counts(column, float(total))
    return ReleasedTable(
        columns=(_name_of(column.grid.index, names),),
        groups=(group_names(column),),
        counts=counts,
        standard_error=standard_errors,
    )
