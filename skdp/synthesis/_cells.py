"""Cells of columns: public grids, exact counts of cells, and the codes of rows.

A numeric column has equal cells, atoms (single values that many rows may share: 0 and the two
bounds) and a cell for missing values. A column on a public grid with few values, such as integers,
has one cell per value and does not need atoms. A categorical column has one cell per category, one
for other values and one for missing values.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._dyadic import level_counts
from skdp._data._parts import sum_over
from skdp._data._persons import weighted_bincount, zero_counts
from skdp.stats._column_cells import Term, cells_of
from skdp.utils._values import FrozenValue

# A column on a grid has one cell per value if it has at most this many values.
MAX_VALUE_CELLS = 1024
# Largest bounds, in grid steps, for which one cell per value can be represented in double
# precision.
MAX_RESOLVED_STEPS = 2.0**50
# The coarsest counted level of a numeric column has 2**COARSEST_LEVEL cells.
COARSEST_LEVEL = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoryCells(FrozenValue):
    """The cells of a categorical column.

    Parameters
    ----------
    index : int
        Position of the column in the table.
    categories : ndarray
        Declared or found categories.
    can_be_other : bool
        True if values outside the categories can be generated, as a text or as missing; False for
        types of numbers.
    can_be_missing : bool
        True if the column's type can hold missing values.
    can_be_text : bool
        True if the column's type can hold the text "other", which is the label of all present
        values if no category was found.
    """

    index: int
    categories: np.ndarray
    can_be_other: bool = True
    can_be_missing: bool = True
    can_be_text: bool = True

    is_categorical = True
    counts_per_row = 1

    @property
    def n_cells(self):
        """Number of cells, including those for other values and for missing values."""
        return len(self.categories) + 2

    @property
    def term(self):
        """The column as a `Term`, by which rows are read."""
        return Term(features=(self.index,), kinds=("label",), edges=(self.categories,))

    @property
    def cell_of_raw(self):
        """Cell of each code of `term`."""
        return np.arange(self.n_cells)

    def queries(self, counts):
        """Return the counts that are released, from the exact counts of the cells."""
        return counts


@dataclass(frozen=True, kw_only=True, eq=False)
class NumericCells(FrozenValue):
    """The cells of a column of numbers, dates or durations.

    Parameters
    ----------
    index : int
        Position of the column in the table.
    kind : {"number", "date", "duration"}
        Dates are in days since 1970, durations in days.
    bounds : tuple of (float, float)
        Declared or found bounds.
    step : float
        Step of the grid on which the values lie; 0 if they may be any real number.
    max_levels : int
        Number of times that the range is halved, unless each value of the grid has a cell.
    counts_all_levels : bool
        True if the counts of all levels are released, False for those of the finest level only.
    can_be_missing : bool
        True if the column's type can hold missing values.
    """

    index: int
    kind: str
    bounds: tuple
    step: float
    max_levels: int
    counts_all_levels: bool = True
    can_be_missing: bool = True

    is_categorical = False

    @cached_property
    def has_value_cells(self):
        """True if each value of the grid has a cell."""
        low, high = self.bounds
        if self.step == 0.0 or max(-low, high) > MAX_RESOLVED_STEPS * self.step:
            return False
        return (high - low) / self.step < MAX_VALUE_CELLS - 1

    @cached_property
    def levels(self):
        """Number of times that the range is halved."""
        if not self.has_value_cells:
            return self.max_levels
        low, high = self.bounds
        n_values = round((high - low) / self.step) + 1
        return max(math.ceil(math.log2(n_values)), 1)

    @property
    def coarsest(self):
        """The coarsest level whose counts are released."""
        if self.counts_all_levels:
            return min(COARSEST_LEVEL, self.levels)
        return self.levels

    @property
    def counts_per_row(self):
        """Maximum number of released counts to which a row contributes."""
        return self.levels - self.coarsest + 1

    @property
    def n_equal_cells(self):
        """Number of equal cells, a power of two."""
        return 1 << self.levels

    @property
    def width(self):
        """Width of an equal cell."""
        low, high = self.bounds
        if self.has_value_cells:
            return self.step
        return (high - low) / self.n_equal_cells

    @cached_property
    def atoms(self):
        """Single values with a cell: zero and the two bounds, unless each grid value has one."""
        low, high = self.bounds
        if self.has_value_cells:
            return np.empty(0)
        values = {low, high}
        if self.kind != "date" and low <= 0.0 <= high:
            values.add(0.0)
        return np.array(sorted(values))

    @property
    def n_cells(self):
        """Number of cells: equal cells, atoms, and the cell for missing values."""
        return self.n_equal_cells + len(self.atoms) + 1

    @cached_property
    def equal_edges(self):
        """Edges of the equal cells; with a cell per value they are midway between values."""
        low, high = self.bounds
        if self.has_value_cells:
            return low + (np.arange(self.n_equal_cells + 1) - 0.5) * self.step
        return np.linspace(low, high, self.n_equal_cells + 1)

    @cached_property
    def _raw_edges(self):
        """Edges of the equal cells and of the atoms; an atom a is the interval [a, next double)."""
        return np.union1d(self.equal_edges, [self.atoms, np.nextafter(self.atoms, np.inf)])

    @property
    def term(self):
        """The column as a `Term`, by which rows are read."""
        return Term(features=(self.index,), kinds=(self.kind,), edges=(self._raw_edges,))

    @cached_property
    def cell_of_raw(self):
        """Cell of each code of `term`."""
        starts = self._raw_edges[:-1]
        cells = np.searchsorted(self.equal_edges, starts, side="right") - 1
        cells = np.clip(cells, 0, self.n_equal_cells - 1)
        for i, atom in enumerate(self.atoms):
            cells[starts == atom] = self.n_equal_cells + i
        return np.append(cells, self.n_cells - 1)

    @cached_property
    def can_hold_values(self):
        """For each equal cell, True if it contains a value within the bounds."""
        low, high = self.bounds
        smallest = self.equal_edges[:-1]
        if self.has_value_cells:
            # The edges are half a step away from the values.
            smallest = smallest + 0.5 * self.step
        return smallest <= high

    def queries(self, counts):
        """Return the released counts: those of the levels, the atoms and missing values."""
        equal_counts = level_counts(counts[: self.n_equal_cells], self.coarsest)
        return np.append(equal_counts, counts[self.n_equal_cells :])


def count_cells(grids, table, row_weights=None):
    """Return the exact counts of the cells of each column, in one pass.

    Parameters
    ----------
    grids : list of CategoryCells or NumericCells
    table : ColumnTable
    row_weights : ndarray of shape (n_rows,), default=None
        Row weights of persons; None gives every row the weight 1.

    Returns
    -------
    list of ndarray of shape (n_cells,)
    """
    lookups = [grid.cell_of_raw for grid in grids]
    sizes = [grid.n_cells for grid in grids]
    counts = zero_counts(sum(sizes), row_weights)
    ends = np.cumsum(sizes)
    rows = read_cells(grids, table)
    sum_over(rows, _add_cell_counts, counts, lookups, ends, row_args=(row_weights,))
    return np.split(counts, ends[:-1])


def _add_cell_counts(counts, raw_codes, row_weights, lookups, ends):
    """Add a block's counts of each column's groups, one column after another."""
    columns = zip(raw_codes, lookups, np.split(counts, ends[:-1]), strict=True)
    for codes, lookup, total in columns:
        total += weighted_bincount(lookup[codes], row_weights, len(total))


def read_cells(grids, table):
    """Return the rows' codes in the columns' terms, as `Rows` of shape (n_columns, n)."""
    return cells_of(table, [grid.term for grid in grids])


def joint_tables(cells, lookups, sizes, subsets, row_weights=None):
    """Return the exact table of counts for each subset of columns, in one pass over the rows.

    Parameters
    ----------
    cells : Rows
        Result of `read_cells`.
    lookups : list of ndarray of int
        Group of each code, for each column.
    sizes : list of int
        Number of groups of each column.
    subsets : list of tuple of int
        Columns of each table.
    row_weights : ndarray of shape (n_rows,), default=None
        Row weights of persons; None gives every row the weight 1.

    Returns
    -------
    list of ndarray of the shape of the columns' groups
        Exact counts, without noise.
    """
    if not subsets:
        return []
    shapes = [tuple(sizes[j] for j in subset) for subset in subsets]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    counts = zero_counts(ends[-1], row_weights)
    sum_over(
        cells, _add_joint_counts, counts, lookups, subsets, shapes, ends, row_args=(row_weights,)
    )
    tables = np.split(counts, ends[:-1])
    return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]


def _add_joint_counts(counts, cells, row_weights, lookups, subsets, shapes, ends):
    """Add a block's counts to the tables of all subsets, one after another, which end at `ends`."""
    codes = [lookup[column] for lookup, column in zip(lookups, cells, strict=True)]
    start = 0
    for subset, shape, end in zip(subsets, shapes, ends, strict=True):
        joint_codes = np.ravel_multi_index(tuple(codes[j] for j in subset), shape)
        counts[start:end] += weighted_bincount(joint_codes, row_weights, end - start)
        start = end
