"""Sums over the rows of a table, part by part.

A table lies in parts: an array is one, a `ChunkedArray` has one for each of its chunks. Its rows
are read in blocks: slices of the rows of one part. What is computed of a table is a sum of a
function of its blocks, or a function of each block by itself; both get a block and small values,
and nothing of other blocks, so that a part may be anywhere: those of a dask array are summed by
whoever computes them (`skdp.utils._workers`), and only sums come back.

Threads wait for each other where a function holds the interpreter, as numpy's ``@`` does for
products of few values, however long they take, and all of `scipy.linalg.blas`; ``dot`` does not.
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
from skdp.utils._sources import rows_within
from skdp.utils._workers import JoblibWorkers, added, cut, joined, spans

BLOCK_BYTES = 1 << 22
# So many blocks are added one after another, or fewer. No table has 2**48 rows.
RUN_BLOCKS = 16
LOG2_MOST_ROWS = 48
# Sums over so many values take longer than it takes to hand them to several threads.
LONG = 1 << 22


def block_size(n_columns):
    """Return how many float64 rows of `n_columns` values are read at a time."""
    return rows_within(BLOCK_BYTES, n_columns, 64)


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
        first = X.indptr[rows.start]
        last = X.indptr[rows.stop]
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
        The number of rows in a block; None takes four megabytes of doubles, or less.
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
    run_blocks : int or None
        How many blocks are added one after another; None for the usual number.
    stays : set of str
        The attributes that are never sent.
    """

    of_chunks = True
    run_blocks = None
    stays = frozenset({"X", "along", "borders"})

    def __init__(self, X, size=None, read=read_block, n_columns=None, along=()):
        self.X = X
        self.shape = (X.shape[0], n_columns or X.shape[1])
        self.along = along
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
        """Return all that is read in one array."""
        # A view would keep a part that was computed.
        return gather_over(self, np.copy, np.concatenate)

    def mapped(self, function, *along):
        """Return what a function makes of each block, and of what else goes with its rows.

        Parameters
        ----------
        function : callable
            Of a block as it was read, and of its rows of `along`. A function of a module.
        *along : as `sum_over` takes it
        """
        read = partial(_read_mapped, self._read, len(self.along), function)
        return self._changed(_read=read, along=(*self.along, *along))

    def sized(self, size, run_blocks=None):
        """Return the same in blocks of another size, of which so many are added in a run."""
        return self._changed(_size=size, run_blocks=run_blocks)

    def without_rows(self, number):
        """Return what is sent to where a part is: all but the rows and what goes with them."""
        rows = copy(self)
        for name in self.stays:
            vars(rows).pop(name, None)
        return rows

    def with_rows(self, X, along):
        """Return, of what was sent, the rows of a part as they are read here.

        Parameters
        ----------
        X : table, or None where no part is read
        along : tuple
            What goes with its rows.
        """
        return self._changed(X=X, along=along, borders=(0, 0 if X is None else X.shape[0]))

    def _changed(self, **attributes):
        rows = copy(self)
        vars(rows).update(attributes)
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
    workers = _workers(table)
    runs = _runs(table)
    filled = [own for own in runs if own]
    if workers is None or not filled:
        sums = (_sum_runs(table, own, add, total, small, along) for own in filled)
        found = added(sums, len(filled)) if filled else np.zeros_like(total)
        found = found if then is None else then(found)
    else:
        what = partial(_sum_there, add, total.shape, total.dtype, small)
        calls = zip(_calls(workers, table, runs, what, along), runs, strict=True)
        found = workers.total([each for each, own in calls if own], then)
    if then is not None:
        return found
    total += found
    return total


def map_over(table, function, *small, shape=(), dtype=np.float64, held=False):
    """Return what a function makes of each block, and of `small`: an array of all rows.

    Parameters
    ----------
    table, function, *small : as `sum_over` takes them
        The function returns a row for each of the block's.
    shape : tuple of int, default=()
        Of what it makes of a row.
    dtype : dtype, default=float64
    held : bool, default=False
        Whether that stays where the rows are: what is returned is for `cut` and `sum_over`.
    """
    workers = _workers(table)
    out = partial(np.empty, dtype=dtype)
    if workers is None:
        return _map_blocks(table, table.blocks(), function, out((table.shape[0], *shape)), small)
    # Threads put it in its place, which goes with the rows; others return it.
    here = out((table.shape[0], *shape)) if getattr(workers, "threads", False) else None
    what = partial(_map_there, function, shape, dtype, small)
    calls = list(chain.from_iterable(_calls(workers, table, _runs(table), what, here)))
    if held and workers.held:
        return workers.held(calls)
    found = workers.results(calls)
    return joined(found, out((table.shape[0], *shape))) if here is None else here


def gather_over(table, function, merge, *small):
    """Return what a function makes of all blocks, and of `small`, merged into one.

    Parameters
    ----------
    table, function, *small : as `sum_over` takes them
        What the function returns may keep nothing of its block, as a view does.
    merge : callable
        Makes one of a list of what blocks became, or several blocks together. A function of a
        module: those of a part are merged where it is.
    """
    workers = _workers(table)
    runs = _runs(table)
    if workers is None:
        return merge([function(table[rows], *small) for rows in table.blocks()])
    what = partial(_gather_there, function, merge, small)
    calls = zip(_calls(workers, table, runs, what), runs, strict=True)
    return merge(workers.results(chain.from_iterable(each for each, own in calls if own)))


def _read_mapped(read, n_along, function, X, rows, *along):
    return function(read(X, rows, *along[:n_along]), *along[n_along:])


def _gather_there(function, merge, small, sent, span, X, along):
    table = sent.with_rows(X, along)
    blocks = chain.from_iterable(_runs(table)[0][slice(*span)])
    return merge([function(table[rows], *small) for rows in blocks])


def _runs(table):
    """Return the runs of blocks of each part; a run is a list of slices."""
    borders = _borders(table)
    blocks = [[] for _ in borders[1:]]
    for rows in table.blocks():
        blocks[bisect_right(borders, rows.start) - 1].append(rows)
    n = getattr(table, "run_blocks", None) or RUN_BLOCKS
    return [[each[i : i + n] for i in range(0, len(each), n)] for each in blocks]


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


def is_sent(table):
    """Say whether what goes with the rows is sent with each sum, to other processes."""
    workers = _workers(table)
    return isinstance(workers, JoblibWorkers) and not workers.threads


def _calls(workers, table, runs, function, *along):
    """Return of each part the calls of a function of it, each of some of its runs."""

    def calls(number, own):
        what = partial(function, table.without_rows(number))
        goes_along = (table.along, *along)
        call = partial(workers.call, number, of_part=table.of_chunks)
        return [call(partial(what, span), *goes_along) for span in spans(len(own), workers.depth)]

    return [calls(number, own) for number, own in enumerate(runs)]


def _sum_runs(table, runs, add, total, small, along):
    def sum_of(run):
        sums = np.zeros_like(total)
        for rows in run:
            add(sums, table[rows], *[cut(values, rows) for values in along], *small)
        return sums

    return added(map(sum_of, runs), len(runs))


def _sum_there(add, shape, dtype, small, sent, span, X, read_with, along):
    table = sent.with_rows(X, read_with)
    runs = _runs(table)[0][slice(*span)]
    return _sum_runs(table, runs, add, np.zeros(shape, dtype), small, along)


def _map_blocks(table, blocks, function, out, small, first=0):
    for rows in blocks:
        out[rows.start - first : rows.stop - first] = function(table[rows], *small)
    return out


def _map_there(function, shape, dtype, small, sent, span, X, along, out):
    table = sent.with_rows(X, along)
    first = 0
    blocks = list(chain.from_iterable(_runs(table)[0][slice(*span)]))
    if out is None:
        first = blocks[0].start if blocks else 0
        n_rows = sum(b.stop - b.start for b in blocks)
        out = np.empty((n_rows, *shape), dtype)
    return _map_blocks(table, blocks, function, out, small, first)


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
