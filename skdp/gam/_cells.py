"""Cells of a table: the terms that have them, exact counts, and the cells of all rows, packed."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from skdp._data._parts import cut, row_blocks
from skdp._data._persons import counts_of, no_counts
from skdp.gam._bins import CELLS, level_counts
from skdp.gam._columns import n_cells

BLOCK_ROWS = 1 << 15
LARGEST_PACK = 1 << 12


@dataclass(frozen=True, eq=False, kw_only=True)
class Term:
    """The released cells of one column, or of two.

    Parameters
    ----------
    columns : tuple of Column
    positions : tuple of int
        Of the columns in the table.
    edges : tuple of ndarray
        One a column: the edges of its bins, or its categories.
    counts : ndarray
        Noisy, of all cells.
    """

    columns: tuple
    positions: tuple
    edges: tuple
    counts: np.ndarray

    @property
    def variety(self):
        """How likely two rows are in different cells, by the noisy counts."""
        parts = self.counts / max(self.counts.sum(), 1.0)
        return float(np.sum(parts * (1.0 - parts)))

    def cells(self, table, rows):
        """Return the cell of each of a slice of rows."""
        parts = zip(self.columns, self.positions, self.edges, strict=True)
        found = [column.cells(table.values(j, rows), edges) for column, j, edges in parts]
        return np.ravel_multi_index(found, self.counts.shape)


def finest_edges(column, n_cells=CELLS):
    """Return the edges of a number's finest cells, or a label's categories."""
    return column.categories if column.is_label else np.linspace(*column.bounds, n_cells + 1)


def exact_counts(columns, edges, table, shares=None, codes=None, n_classes=1):
    """Return the counts of each column's cells, of numbers at all levels; missing values last.

    With `codes`, the classes of the rows, they are of shape (n_classes, n_counts).
    """
    sizes = [n_cells(*pair) for pair in zip(columns, edges, strict=True)]
    counts = [no_counts(n_classes * size, shares) for size in sizes]
    for rows in row_blocks(table, BLOCK_ROWS):
        for j, (column, total) in enumerate(zip(columns, counts, strict=True)):
            cells = column.cells(table.values(j, rows), edges[j])
            if codes is not None:
                cells += sizes[j] * codes[rows]
            total += counts_of(cells, cut(shares, rows), len(total))
    if codes is not None:
        counts = [own.reshape(n_classes, -1) for own in counts]
    return [
        own if column.is_label else np.apply_along_axis(_at_all_levels, -1, own)
        for column, own in zip(columns, counts, strict=True)
    ]


def _at_all_levels(counts):
    return np.append(level_counts(counts[:-1]), counts[-1])


class PackedCells:
    """The cells of rows, several columns in one number.

    Parameters
    ----------
    sizes : list of int
        How many cells each column has.
    n_rows : int
    shares : ndarray of shape (n_rows,), default=None
        By which residuals count; None for ones.
    n_units : int, default=None
        The public number of persons; None where rows are the unit. How columns are packed says how
        scores are rounded, those of all rows.
    """

    def __init__(self, sizes, n_rows, shares=None, n_units=None):
        self.n_units = n_units or n_rows
        largest = min(LARGEST_PACK, max(self.n_units // 4, 64))
        packs, product = [[]], 1
        for j, size in enumerate(sizes):
            if product * size > largest and packs[-1]:
                packs.append([])
                product = 1
            packs[-1].append(j)
            product *= size
        self.sizes, self.n_rows, self.shares = sizes, n_rows, shares
        self._packs = [np.array(pack, dtype=np.intp) for pack in packs]
        self._shapes = [tuple(sizes[j] for j in pack) for pack in packs]
        types = [np.min_scalar_type(math.prod(shape) - 1) for shape in self._shapes]
        self._codes = [np.empty(n_rows, dtype=each) for each in types]
        self._ends = np.cumsum([math.prod(shape) for shape in self._shapes])

    def blocks(self):
        """Yield the slices of rows that are read."""
        return gen_batches(self.n_rows, BLOCK_ROWS)

    def __getitem__(self, rows):
        return rows

    def set(self, rows, cells):
        """Set the cells of a slice of rows, of shape (n_columns, rows in the slice)."""
        for codes, pack, shape in zip(self._codes, self._packs, self._shapes, strict=True):
            codes[rows] = np.ravel_multi_index(tuple(cells[pack]), shape)

    def column(self, j, rows):
        """Return the cells of one column for a slice of rows."""
        for codes, pack, shape in zip(self._codes, self._packs, self._shapes, strict=True):
            if j in pack:
                return np.unravel_index(codes[rows], shape)[int(j - pack[0])]

    def scores(self, rows, tables):
        """Return the sum of the columns' values for a slice of rows.

        Parameters
        ----------
        rows : slice
        tables : list of ndarray of shape (n_packed_cells, n_outputs)
            From `packed`.
        """
        total = 0.0
        for codes, table in zip(self._codes, tables, strict=True):
            total = total + np.take(table, codes[rows], axis=0)
        return total

    def packed(self, tables):
        """Return the values of packed cells from those of each column's cells."""
        result = []
        for pack, shape in zip(self._packs, self._shapes, strict=True):
            total = np.zeros((*shape, tables[pack[0]].shape[1]))
            for axis, j in enumerate(pack):
                total += np.expand_dims(tables[j], [k for k in range(len(shape)) if k != axis])
            result.append(total.reshape(math.prod(shape), -1))
        return result

    def steps(self, rows, residuals, step):
        """Return a slice's residuals in whole steps, of shape (n_outputs, rows), towards zero.

        So no row's norm grows; nor does a person's, whose shares leave room for the rounding of a
        product wherever one is rounded.
        """
        steps = np.trunc(residuals.T / step)
        return steps if self.shares is None else np.trunc(steps * self.shares[rows])

    def add_sums(self, totals, rows, steps):
        """Add a slice's residuals in steps to packed cells, which begin as `zeros`."""
        for codes, total in zip(self._codes, np.split(totals, self._ends[:-1]), strict=True):
            places = codes[rows].astype(np.intp)
            for k, each in enumerate(steps):
                total[:, k] += np.bincount(places, weights=each, minlength=len(total))

    def zeros(self, n_outputs):
        """Return the packed cells' totals before anything is added."""
        return np.zeros((self._ends[-1], n_outputs))

    def unpacked(self, totals):
        """Return the sums of each column's cells from those of packed cells."""
        sums, totals = {}, np.split(totals, self._ends[:-1])
        for total, pack, shape in zip(totals, self._packs, self._shapes, strict=True):
            cube = total.reshape(*shape, -1)
            for axis, j in enumerate(pack):
                others = tuple(k for k in range(len(shape)) if k != axis)
                sums[int(j)] = cube.sum(axis=others)
        return sums
