"""Joint codes of the cells of several columns, and their one-hot encoding."""

import math

import numpy as np

from skdp._data._chunked import ChunkedArray
from skdp._data._parts import Rows, map_over, slice_row_args
from skdp.stats._column_cells import BLOCK_ROWS

# Number of rows per block in a step with an exact gradient, and number of blocks per task.
STEP_ROWS = 1 << 17
STEP_BLOCKS = 2
# Maximum number of joint codes of a group of columns: MAX_JOINT_CODES or, with many rows, one code
# per ROWS_PER_CODE rows, up to the range of a two-byte code.
MAX_JOINT_CODES = 1 << 12
ROWS_PER_CODE = 64
MAX_TWO_BYTE_CODES = 1 << 16


class JointCodes(Rows):
    """Cells of rows, with the cells of several columns encoded as one mixed-radix code.

    The codes are stored where the rows are. Indexing with a slice returns the codes for a block.

    Parameters
    ----------
    rows : Rows
        Rows whose cells are encoded.
    cells : callable
        Function of a block of rows and `args` that returns the cells of each column. It must be
        picklable.
    *args : objects
    sizes : list of int
        Number of cells of each column.
    n_units : int
        Public number of rows, or of persons. It determines how columns are grouped, which affects
        the rounding of all scores, so it must be public.
    targets : ndarray of shape (n_rows,)
    loops : str
        Version of the loops over rows, see `skdp._loops`.
    row_weights : ndarray of shape (n_rows,), default=None
        Row weights of persons; None gives every row the weight 1.

    Attributes
    ----------
    codes : ndarray of shape (n_rows, n_groups)
        Joint codes of the groups of columns.
    ends : ndarray of shape (n_groups,)
        Index after the last code of each group, with codes numbered group by group.
    """

    reads_chunks = False

    def __init__(self, rows, cells, *args, sizes, n_units, targets, loops, row_weights=None):
        super().__init__(rows.X)
        self.loops = loops
        self.n_units = n_units
        max_codes = max_joint_codes(n_units)
        groups = [[]]
        for j, size in enumerate(sizes):
            if groups[-1] and size * math.prod(sizes[k] for k in groups[-1]) > max_codes:
                groups.append([])
            groups[-1].append(j)
        self.sizes = sizes
        self._groups = groups
        self._size = _block_rows(len(groups), BLOCK_ROWS)
        self._shapes = [tuple(sizes[j] for j in group) for group in groups]
        lengths = [math.prod(shape) for shape in self._shapes]
        self.ends = np.cumsum(lengths)
        codes = map_over(
            rows,
            _joint_codes,
            groups,
            self._shapes,
            cells,
            *args,
            shape=(len(groups),),
            dtype=np.min_scalar_type(max(lengths) - 1),
            persist=True,
        )
        self.row_args = codes, targets, row_weights
        if isinstance(rows.X, ChunkedArray):
            # The codes replace the rows, which are not read again.
            rows.X.forget()

    @property
    def targets(self):
        return self.row_args[1]

    @property
    def row_weights(self):
        return self.row_args[2]

    @property
    def codes(self):
        return self.row_args[0]

    def __getitem__(self, rows):
        return self.attach(None, slice_row_args(self.row_args, rows))

    def attach(self, X, row_args):
        """Return the codes of a partition or a block, from its arrays with one entry per row."""
        n_rows = 0
        if row_args:
            n_rows = len(row_args[0])
        return self._changed(X=None, row_args=row_args, offsets=(0, n_rows))

    def with_row_weights(self, row_weights):
        """Return the codes with other row weights."""
        codes, targets, _ = self.row_args
        return self._changed(row_args=(codes, targets, row_weights))

    def with_step_blocks(self, n_outputs):
        """Return the codes in fewer, longer blocks: threads wait for each other in short ones."""
        rows = _block_rows(max(len(self.ends), 8 * n_outputs), STEP_ROWS)
        return self.with_block_size(rows, STEP_BLOCKS)

    def column_cells(self):
        """Return the cells of all columns, decoded from the codes."""
        cells = [
            np.unravel_index(codes, shape)
            for codes, shape in zip(self.codes.T, self._shapes, strict=True)
        ]
        return np.concatenate(cells)

    def code_values(self, bin_values):
        """Return the value of each joint code: the sum of the values of its columns' cells.

        Parameters
        ----------
        bin_values : dict of column to ndarray of shape (n_cells, n_outputs)

        Returns
        -------
        ndarray of shape (n_joint_codes, n_outputs)
        """
        n_outputs = bin_values[self._groups[0][0]].shape[1]
        result = np.empty((self.ends[-1], n_outputs))
        for group, code_values in zip(self._groups, split_at(result, self.ends), strict=True):
            values = bin_values[group[0]]
            for j in group[1:]:
                values = (values[:, np.newaxis] + bin_values[j]).reshape(-1, n_outputs)
            code_values[...] = values
        return result

    def column_sums(self, totals):
        """Return the sums of each column's cells, concatenated, from the sums of joint codes."""
        sums = []
        group_totals = split_at(totals, self.ends)
        for total, shape in zip(group_totals, self._shapes, strict=True):
            cube = total.reshape(*shape, -1)
            if len(shape) == 1:
                sums.append(cube)
                continue
            for axis in range(len(shape)):
                other_axes = tuple(k for k in range(len(shape)) if k != axis)
                sums.append(np.add.reduce(cube, axis=other_axes))
        return np.concatenate(sums)


def split_at(array, ends):
    """Return the slices of an array's first axis that end at `ends`. Faster than `numpy.split`."""
    parts = []
    start = 0
    for end in ends:
        parts.append(array[start:end])
        start = end
    return parts


def _block_rows(n_groups, max_rows):
    """Return the number of rows per block: `max_rows` for up to eight groups, fewer for more."""
    return max(8 * max_rows // max(n_groups, 8), 1)


def max_joint_codes(n_units):
    """Return the maximum number of codes of a group, so that sums over codes are cheap."""
    code_limit = max(MAX_JOINT_CODES, min(n_units // ROWS_PER_CODE, MAX_TWO_BYTE_CODES))
    return min(max(n_units // 4, 64), code_limit)


def _joint_codes(block, groups, shapes, cells, *args):
    """Return one mixed-radix code per group of columns for each row of a block.

    The digits of a code are the row's cells in the columns of the group, and the radix of a digit
    is the column's number of cells.

    Parameters
    ----------
    block : array-like
        Rows of the table.
    groups : list of list of int
        The columns of each group.
    shapes : list of tuple of int
        The number of cells of each column of each group.
    cells : callable
        ``cells(block, *args)`` returns the cells of each column, one array of codes per column.
    *args
        Further arguments of `cells`.

    Returns
    -------
    ndarray of shape (n_rows, n_groups)
    """
    column_cells = cells(block, *args)
    codes = []
    for group, shape in zip(groups, shapes, strict=True):
        codes.append(np.ravel_multi_index([column_cells[j] for j in group], shape))
    return np.stack(codes, axis=1)
