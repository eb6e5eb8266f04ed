"""Sums over the rows of a table, part by part.

A table lies in parts: an array is one, a `ChunkedArray` has one for each of its chunks. Its rows
are read in blocks: slices of the rows of one part. What is computed of a table is a sum of a
function of its blocks, or a function of each block by itself; both get a block and small values,
and nothing of other blocks, so that a part may be anywhere: those of a dask array are summed by
whoever computes them (`skdp.utils._workers`), and only sums come back.
"""

from bisect import bisect_right
from copy import copy
from functools import partial
from itertools import chain, pairwise

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array, issparse

from skdp._data._containers import canonical_rows
from skdp.utils import ChunkedArray
from skdp.utils._workers import JoblibWorkers, added, branch, cut, halves, joined, leaves, lopped

BLOCK_BYTES = 1 << 20
# So many blocks are added one after another. No table has 2**48 rows.
RUN_BLOCKS = 16
LOG2_MOST_ROWS = 48
# Sums over so many values take longer than it takes to hand them to several threads.
LONG = 1 << 22


def block_size(n_columns):
    """Return how many float64 rows of `n_columns` values are read at a time."""
    return max(64, BLOCK_BYTES // (8 * n_columns))


def row_blocks(table, size):
    """Yield slices of at most `size` rows that cover all rows in order, each within one part."""
    for first, last in pairwise(_borders(table)):
        for start in range(first, last, size):
            yield slice(start, min(start + size, last))


def read_block(X, rows):
    """Return rows of a table as `read_table` returned it, in double precision.

    Parameters
    ----------
    X : ndarray, csr_array or ChunkedArray
    rows : slice

    Returns
    -------
    ndarray or csr_array of float64
        Of a sparse table, with a row's entries added up by place; a sum that overflows is
        infinite.
    """
    # A row that overflows counts as zero, so that no warning may tell of one.
    with np.errstate(all="ignore"):
        if not issparse(X):
            return np.asarray(X[rows], dtype=np.float64)
        first, last = X.indptr[rows.start], X.indptr[rows.stop]
        indptr = X.indptr[rows.start : rows.stop + 1] - first
        entries = (X.data[first:last], X.indices[first:last], indptr)
        return canonical_rows(csr_array(entries, shape=(rows.stop - rows.start, X.shape[1])))


def as_dense(block):
    """Return a block as an array, which a sparse one becomes."""
    return block.toarray() if issparse(block) else block


class Rows:
    """The rows of a table, or what is read of them, in blocks.

    Parameters
    ----------
    X : table
        With `shape`, and with `borders` if it has several parts.
    size : int, default=None
        The number of rows in a block; None takes about a megabyte of doubles.
    read : callable, default=read_block
        Returns a block, of a table, a slice of its rows and what goes with them. A function of a
        module, as it may run where the part is.
    n_columns : int, default=None
        The number of columns that are read; None for all.
    along : tuple, default=()
        What goes with the rows, as in `sum_over`, and is read with them.

    Attributes
    ----------
    of_chunks : bool
        Whether a part itself is read, and not only what goes with its rows.
    """

    of_chunks = True

    def __init__(self, X, size=None, read=read_block, n_columns=None, along=()):
        self.X, self.shape, self.along = X, (X.shape[0], n_columns or X.shape[1]), along
        self.borders = _borders(X)
        self._size = size or block_size(self.shape[1])
        self._read = read

    @classmethod
    def of(cls, X):
        """Return the rows of a table, or X itself if it is what is read of some."""
        return X if isinstance(X, cls) else cls(X)

    def blocks(self):
        """Yield the slices of rows that are read."""
        return row_blocks(self, self._size)

    def __getitem__(self, rows):
        return self._read(self.X, rows, *[cut(values, rows) for values in self.along])

    def whole(self):
        """Return all that is read in one array; it may be a view."""
        if getattr(self.X, "workers", None) is not None:
            # A view would keep the chunk.
            return np.concatenate(self.of_parts(np.copy))
        if len(self.borders) == 2:
            return self[slice(*self.borders)]
        # A view would keep a part that was computed.
        return np.concatenate([self[rows].copy() for rows in self.blocks()])

    def of_parts(self, function):
        """Return what a function makes of all that is read of a part, of each; here all is one."""
        workers = getattr(self.X, "workers", None)
        if workers is None:
            return [function(self.whole())]
        what = partial(_part_there, self.sent(0), function)
        calls = [workers.call(i, what, self.along) for i in range(len(self.borders) - 1)]
        return workers.results(calls)

    def sized(self, size):
        """Return the same in blocks of another size."""
        rows = copy(self)
        rows._size = size
        return rows

    def sent(self, number):
        """Return what `there` needs of a part beside its rows, and what goes with these."""
        return self.there(None, ())

    def there(self, X, along):
        """Return the rows of a part, and what goes with them, as they are read here."""
        rows = copy(self)
        rows.X, rows.along = X, along
        rows.borders = (0, 0 if X is None else X.shape[0])
        return rows


def sum_over(table, add, total, *small, along=(), then=None):
    """Add a function of each block of a table to a total.

    Blocks of a part are added one after another in runs, then the sums of the runs by halves, then
    those of the parts by halves: the order depends on how the table lies and on nothing else. A
    part that no block is of is not opened.

    Parameters
    ----------
    table : Rows or like them
        With ``blocks()`` and, for a slice that this yields, ``table[rows]``.
    add : callable
        Of an array, to which it adds in place, a block, the block's rows of `along`, and `small`.
        A function of a module: it may run where the part is, and again if what ran it is lost.
    total : ndarray
        Zeros. It is changed.
    *small : objects
        The same for all blocks.
    along : tuple of (array of shape (n_rows, ...), a tuple of such, or None)
        What goes with the rows.
    then : callable, default=None
        Makes of the sum, where it was added up, what is returned.

    Returns
    -------
    ndarray
        `total`, or what `then` makes of it.
    """
    workers, trees = _workers(table), _trees(table)
    if workers is None or not any(trees):
        found = _sum_blocks(table, halves(list(filter(None, trees))), add, total, small, along)
        found = found if then is None else then(found)
    else:
        what = partial(_sum_there, add, total.shape, total.dtype, small)
        calls = _calls(workers, table, trees, what, (table.along, along))
        calls = halves([each for each, tree in zip(calls, trees, strict=True) if tree])
        found = workers.total(calls, then)
    if then is not None:
        return found
    total += found
    return total


def map_over(table, function, out, *small):
    """Put a function of each block, and of `small`, in its rows of an array, and return that."""
    workers = _workers(table)
    if workers is None:
        return _map_blocks(table, table.blocks(), function, out, small)
    return joined(workers.results(_mapped(workers, table, function, out, small)), out)


def held_over(table, function, *small, shape=(), dtype=np.float64):
    """Return numbers of each row, a function of each block and of `small`, held where the rows are.

    Returns
    -------
    ndarray of shape (n_rows, *shape), or what `cut` and `sum_over` take for one
    """
    workers, out = _workers(table), partial(np.empty, dtype=dtype, order="F")
    if workers is None:
        return _map_blocks(table, table.blocks(), function, out((table.shape[0], *shape)), small)
    return workers.held(_mapped(workers, table, function, out((0, *shape)), small))


def _part_there(sent, function, X, along):
    return function(sent.there(X, along).whole())


def _trees(table):
    """Return of each part the tree by which the sums of its runs of blocks are added."""
    borders = _borders(table)
    blocks = [[] for _ in borders[1:]]
    for rows in table.blocks():
        blocks[bisect_right(borders, rows.start) - 1].append(rows)
    return [
        halves([each[i : i + RUN_BLOCKS] for i in range(0, len(each), RUN_BLOCKS)])
        for each in blocks
    ]


def _workers(table):
    """Return what calls functions where the parts of a table are, None if that is here."""
    X = getattr(table, "X", None)
    workers = getattr(X, "workers", None)
    if workers is not None or not isinstance(table, Rows):
        return workers
    n_jobs = effective_n_jobs(None) if table.borders[-1] * table.shape[1] >= LONG else 1
    if n_jobs == 1:
        return None
    chunked = isinstance(X, ChunkedArray)
    parts = X.parts() if chunked else [lambda: X]
    # What goes with the rows is in memory.
    in_memory = not (table.of_chunks and chunked and X.opens_itself)
    return JoblibWorkers(parts, _borders(X), n_jobs, in_memory)


def _calls(workers, table, trees, function, along):
    """Return of each part the calls of a function of it, in a tree where they are several."""

    def call(number):
        sent = table.sent(number)
        of_part = partial(workers.call, number, along=along, of_part=table.of_chunks)
        return lambda path: of_part(partial(function, sent, path))

    return [lopped(tree, workers.depth, call(number)) for number, tree in enumerate(trees)]


def _sum_blocks(table, tree, add, total, small, along):
    def sum_of(run):
        sums = np.zeros_like(total)
        for rows in run:
            add(sums, table[rows], *[cut(values, rows) for values in along], *small)
        return sums

    return added(sum_of, tree)


def _sum_there(add, shape, dtype, small, sent, path, X, along):
    table, along = sent.there(X, along[0]), along[1]
    tree, zeros = branch(*_trees(table), path), np.zeros(shape, dtype)
    return _sum_blocks(table, tree, add, zeros, small, along)


def _map_blocks(table, blocks, function, out, small):
    stop = 0
    for rows in blocks:
        start, stop = stop, stop + rows.stop - rows.start
        out[start:stop] = function(table[rows], *small)
    return out


def _mapped(workers, table, function, out, small):
    """Return the calls of each part's workers that make something of it."""
    what = partial(_map_there, function, out.shape[1:], out.dtype, small)
    calls = _calls(workers, table, _trees(table), what, table.along)
    return list(chain.from_iterable(map(leaves, calls)))


def _map_there(function, shape, dtype, small, sent, path, X, along):
    table = sent.there(X, along)
    blocks = list(chain.from_iterable(leaves(branch(*_trees(table), path))))
    out = np.empty((sum(rows.stop - rows.start for rows in blocks), *shape), dtype, order="F")
    return _map_blocks(table, blocks, function, out, small)


def most_additions(size):
    r"""Bound how many additions a number goes through in `sum_over`, for any number of rows.

    They are those within a block of at most `size` rows, of the blocks of its run, of which the
    first is added to zero, of the runs of its part by halves, and of the parts by halves. There are
    fewer runs than rows, and no memory holds 2**48 rows: a single part's runs add 48. Several parts
    are 2**24 at most (`ChunkedArray` checks it) and add 24; a part of theirs adds 26, as it has
    fewer than 2**26 runs, of 16 blocks of 64 rows or more each: no part holds 2**36 rows. So the
    bound is the same where the number of rows is not public. A sum whose terms go through m
    additions is off by at most m units of roundoff of the sum of their magnitudes, and less than as
    much of that again (Higham 2002, section 4.2).
    """
    return size + RUN_BLOCKS + LOG2_MOST_ROWS + 2


def _borders(table):
    """Return where parts begin, and the end of the last."""
    return table.borders if hasattr(table, "borders") else (0, table.shape[0])
