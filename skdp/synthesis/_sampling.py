"""Draws of simulated rows that satisfy constraints; `_table_form` gives them names and types."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._frames import objects
from skdp.synthesis._model import TableModel
from skdp.synthesis._table_form import TableForm
from skdp.synthesis._values import cell_values, placeholder
from skdp.utils._values import FrozenValue

# Minimum fraction of the drawn rows that constraints may accept.
MIN_ACCEPTED_FRACTION = 1e-3
# Minimum number of drawn rows before that fraction is checked: a few rows may all be refused by
# chance.
MIN_DRAWN_ROWS = 10_000
# Number of rows drawn in addition to the expected number that is needed.
MIN_EXTRA_ROWS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class RowDrawer(FrozenValue):
    """A fitted model with the container of its rows and their constraints.

    Parameters
    ----------
    model : TableModel
    form : TableForm
    copies : dict of int to CopiedColumn
    forbidden : list of ForbiddenPairs
    """

    model: TableModel
    form: TableForm
    copies: dict
    forbidden: list

    def draw(self, n_rows, rng, where=None):
        """Return a table of rows that meet the constraints, and the fraction that was refused.

        Parameters
        ----------
        n_rows : int
        rng : RandomState
        where : callable, default=None
            Function of a table, in the container of the fit, that returns a boolean for each row.

        Raises
        ------
        ValueError
            If fewer than one in a thousand rows are accepted.
        """
        accepted = []
        n_accepted = 0
        n_drawn = 0
        n_next = n_rows
        while n_accepted < n_rows:
            columns = self._draw_columns(n_next, rng)
            is_accepted = self._meets_constraints(columns, n_next, where)
            n_drawn += n_next
            n_accepted += int(is_accepted.sum())
            accepted.append([values[is_accepted] for values in columns])
            is_known = n_drawn >= MIN_DRAWN_ROWS
            if is_known and n_accepted < MIN_ACCEPTED_FRACTION * n_drawn:
                raise ValueError(
                    f"`forbidden` and `where` accept only {n_accepted} of {n_drawn} drawn rows: "
                    "the condition may contradict the released tables"
                )
            fraction = max(n_accepted / n_drawn, MIN_ACCEPTED_FRACTION)
            n_next = int((n_rows - n_accepted) / fraction) + MIN_EXTRA_ROWS
            # One batch must not need much more memory than the requested rows.
            n_next = min(n_next, max(2 * n_rows, MIN_DRAWN_ROWS))
        columns = [np.concatenate(pieces)[:n_rows] for pieces in zip(*accepted, strict=True)]
        return self.form.build(columns, self._labels), 1.0 - n_accepted / n_drawn

    @cached_property
    def _labels(self):
        """Labels of the categorical columns, in the order of their categories, by position."""
        labels = {}
        for column in self.model.columns:
            grid = column.grid
            if grid.is_categorical:
                # None is a category of missing values, and no type lists it.
                listed = grid.categories.tolist()
                labels[grid.index] = [label for label in listed if label is not None]
                other = placeholder(grid.categories)
                if column.is_possible[-2] and other is not None:
                    labels[grid.index].append(other)
        for j, copied in self.copies.items():
            if copied.source in labels:
                values = copied.values(objects(labels[copied.source])).tolist()
                labels[j] = list(dict.fromkeys(v for v in values if v is not None and v == v))
        return labels

    def _draw_columns(self, n_rows, rng):
        """Return the values of all columns of simulated rows."""
        columns = [None] * len(self.form.types)
        cells = self.model.draw_cells(n_rows, rng)
        for column, column_cells in zip(self.model.columns, cells, strict=True):
            columns[column.grid.index] = cell_values(column.grid, column_cells, rng)
        for j, copied in self.copies.items():
            columns[j] = copied.values(columns[copied.source])
        return columns

    def _meets_constraints(self, columns, n_rows, where):
        """Return a mask of the rows without forbidden pairs for which `where` is true.

        `columns` are arrays of values. `where` receives the table that is built from them, in the
        container of the fit.
        """
        is_accepted = np.ones(n_rows, dtype=bool)
        for pairs in self.forbidden:
            first, second = pairs.columns
            is_accepted &= ~pairs.is_violated(columns[first], columns[second])
        if where is not None:
            is_accepted &= np.asarray(where(self.form.build(columns, self._labels)), dtype=bool)
        return is_accepted
