"""Sums over the rows of a table, partition by partition.

A table has one or more partitions: an array is a single one, and each chunk of a `ChunkedArray` is
one. The rows of a partition are read in blocks, which are slices of its rows. A fit computes
either a sum over blocks (`sum_over`) or a value for each row of a block (`map_over`). The function
that is summed or mapped receives one block and a few small arguments, and nothing from other
blocks. A partition may therefore be on another machine: the partitions of a dask array are summed
by dask's workers (`skdp._data._workers`), and only the sums are sent back.

Use ``dot``, not ``@``, in functions of blocks. ``@`` holds Python's interpreter lock for products
of few values, as does all of `scipy.linalg.blas`, and threads would wait for each other.
"""

from bisect import bisect_right
from copy import copy
from functools import partial
from itertools import chain, islice, pairwise

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array, issparse

from skdp._data._chunked import ChunkedArray
from skdp._data._containers import canonical_rows
from skdp._data._sources import rows_within
from skdp._data._workers import JoblibWorkers, concat_into, slice_row_args, split_range, tree_sum
from skdp._loops import NUMPY, get_loops

# Size of a block in bytes.
BLOCK_BYTES = 1 << 22
# Number of blocks that are added one after another; their sums are added pairwise.
RUN_BLOCKS = 16
# Base-2 logarithm of a number of rows that no table reaches.
LOG2_MAX_ROWS = 48
# Number of values above which several threads are faster than one, including their start.
MIN_VALUES_FOR_THREADS = 1 << 22


def block_size(n_columns):
    """Return the number of float64 rows of `n_columns` values that are read at a time."""
    return rows_within(BLOCK_BYTES, n_columns, 64)


def row_blocks(table, size):
    """Yield slices of at most `size` rows, in order; each is within one partition."""
    for first, last in pairwise(_offsets(table)):
        for start in range(first, last, size):
            yield slice(start, min(start + size, last))


def read_block(X, rows):
    """Return rows of a table that `read_table` returned, in double precision.

    Parameters
    ----------
    X : ndarray, csr_array or ChunkedArray
    rows : slice

    Returns
    -------
    ndarray or csr_array of float64
        Sparse entries of a row that share a column are added up. A sum that overflows is
        infinite.
    """
    # A row that overflows counts as zero. A warning about it would reveal that it exists.
    with np.errstate(all="ignore"):
        if not issparse(X):
            return np.asarray(X[rows], dtype=np.float64)
        first = X.indptr[rows.start]
        last = X.indptr[rows.stop]
        indptr = X.indptr[rows.start : rows.stop + 1] - first
        entries = (X.data[first:last], X.indices[first:last], indptr)
        return canonical_rows(csr_array(entries, shape=(rows.stop - rows.start, X.shape[1])))


def as_dense(block):
    """Return a block as a dense array."""
    if issparse(block):
        return block.toarray()
    return block


class Rows:
    """The rows of a table, or values computed from them, read in blocks.

    Parameters
    ----------
    X : table
        Object with a `shape`, and with `offsets` if it has several partitions.
    size : int, default=None
        Number of rows per block. None uses at most four megabytes of doubles.
    read : callable, default=read_block
        Function of a table, a slice of its rows and these rows of `row_args`, which returns a
        block. It must be defined in a module, because it may run on another machine.
    n_columns : int, default=None
        Number of columns that are read; None reads all columns.
    row_args : tuple, default=()
        Arrays with one entry per row that `read` receives, as in `sum_over`.

    Attributes
    ----------
    reads_chunks : bool
        True if the partition is read; False if its `row_args` are all that is needed.
    run_blocks : int or None
        Number of blocks that are added one after another; None for `RUN_BLOCKS`.
    local_attrs : set of str
        Names of the attributes that are never sent to a worker.
    """

    reads_chunks = True
    run_blocks = None
    local_attrs = frozenset({"X", "row_args", "offsets"})

    def __init__(self, X, size=None, read=read_block, n_columns=None, row_args=()):
        self.X = X
        self.shape = (X.shape[0], n_columns or X.shape[1])
        self.row_args = row_args
        self.offsets = _offsets(X)
        self._size = size or block_size(self.shape[1])
        self._read = read

    @classmethod
    def wrap(cls, X):
        """Return X if it is already a `Rows`, else the rows of the table X."""
        if isinstance(X, cls):
            return X
        return cls(X)

    def blocks(self):
        """Yield the slice of rows of each block."""
        return row_blocks(self, self._size)

    def __getitem__(self, rows):
        return self._read(self.X, rows, *[slice_row_args(values, rows) for values in self.row_args])

    def to_array(self):
        """Return all blocks in one array."""
        # A view would keep a computed partition in memory.
        return gather_over(self, np.copy, np.concatenate)

    def mapped(self, function, *row_args):
        """Return the rows with a function applied to each block.

        Parameters
        ----------
        function : callable
            Function of a block and of its rows of `row_args`; it must be defined in a module.
        *row_args : array, tuple of arrays, or None
            Further values with one entry per row, as in `sum_over`.
        """
        read = partial(_read_mapped, self._read, len(self.row_args), function)
        return self._changed(_read=read, row_args=(*self.row_args, *row_args))

    def with_block_size(self, size, run_blocks=None):
        """Return the rows in blocks of another size, and with another number of blocks in a run."""
        return self._changed(_size=size, run_blocks=run_blocks)

    def detach(self, number):
        """Return a copy without the rows and without `row_args`, to be sent to a worker."""
        rows = copy(self)
        for name in self.local_attrs:
            vars(rows).pop(name, None)
        return rows

    def attach(self, X, row_args):
        """Return a copy that reads the rows of a partition; `detach` is the inverse.

        Parameters
        ----------
        X : table, or None if the partition is not read
        row_args : tuple
            The partition's rows of the values with one entry per row.
        """
        n_rows = 0
        if X is not None:
            n_rows = X.shape[0]
        return self._changed(X=X, row_args=row_args, offsets=(0, n_rows))

    def _changed(self, **attributes):
        """Return a copy with other values of some attributes."""
        rows = copy(self)
        vars(rows).update(attributes)
        return rows


def sum_over(table, add, total, *args, row_args=(), finalize=None):
    """Add a function of each block of a table to a total.

    The blocks of a partition are added one after another in runs; then the sums of the runs are
    added pairwise, and finally the sums of the partitions. This order depends only on the
    partitions and the block size. A partition without a block is not opened.

    Parameters
    ----------
    table : Rows or an object with its interface
        An object with a method ``blocks()`` that yields slices, and with ``table[rows]`` for each
        slice.
    add : callable
        Function of an array, a block, the block's rows of `row_args`, and `args`, which adds to the
        array in place. It must be defined in a module, because it may run on another machine, and
        again if a worker is lost.
    total : ndarray
        Array of zeros, which is changed in place.
    *args : objects
        Further arguments of `add`, the same for all blocks; they are sent with each call.
    row_args : tuple of (array of shape (n_rows, ...), a tuple of such arrays, or None)
        Values with one entry per row.
    finalize : callable, default=None
        Function of the sum whose value is returned instead. It runs where the sum was computed.

    Returns
    -------
    ndarray
        `total`, or the value of `finalize`.
    """
    workers = _workers(table)
    if workers is None:
        # Most tables in memory have one block, whose sum needs no merging.
        blocks = list(islice(table.blocks(), 2))
        if len(blocks) == 1:
            if finalize is None:
                _add_block(table, blocks[0], add, total, args, row_args)
                return total
            result = np.zeros_like(total)
            _add_block(table, blocks[0], add, result, args, row_args)
            return finalize(result)
    runs = _runs(table)
    nonempty_runs = [partition_runs for partition_runs in runs if partition_runs]
    if not nonempty_runs:
        result = np.zeros_like(total)
        if finalize is not None:
            result = finalize(result)
    elif workers is None:
        sums = (
            _sum_runs(table, partition_runs, add, total, args, row_args)
            for partition_runs in nonempty_runs
        )
        result = tree_sum(sums, len(nonempty_runs))
        if finalize is not None:
            result = finalize(result)
    else:
        function = partial(_sum_on_worker, add, total.shape, total.dtype, args)
        calls = zip(_calls(workers, table, runs, function, row_args), runs, strict=True)
        nonempty_calls = [
            partition_calls for partition_calls, partition_runs in calls if partition_runs
        ]
        result = workers.total(nonempty_calls, finalize)
    if finalize is not None:
        return result
    total += result
    return total


def map_over(table, function, *args, shape=(), dtype=np.float64, order="C", persist=False):
    """Return the values of a function of each block, as one array with an entry per row.

    Parameters
    ----------
    table : Rows or an object with its interface
        As in `sum_over`.
    function : callable
        Function of a block and `args`, which returns one entry per row of the block. It must be
        defined in a module.
    *args : objects
        As in `sum_over`.
    shape : tuple of int, default=()
        Shape of the entry of one row.
    dtype : dtype, default=float64
        Type of the values.
    order : {"C", "F"}, default="C"
        "F" stores the array column by column.
    persist : bool, default=False
        True to leave the values on the workers, if the rows are there. The result can then be used
        only as one of the `row_args` of `sum_over`.
    """
    workers = _workers(table)
    out_shape = (table.shape[0], *shape)
    if workers is None:
        out = np.empty(out_shape, dtype, order)
        return _map_blocks(table, table.blocks(), function, out, args)
    # Threads write into the array of all rows. Other workers return their values.
    shared_out = None
    if getattr(workers, "threads", False):
        shared_out = np.empty(out_shape, dtype, order)
    on_worker = partial(_map_on_worker, function, shape, dtype, args)
    calls = list(chain.from_iterable(_calls(workers, table, _runs(table), on_worker, shared_out)))
    if persist and workers.persist:
        return workers.persist(calls)
    results = workers.results(calls)
    if shared_out is not None:
        return shared_out
    return concat_into(results, np.empty(out_shape, dtype, order))


def gather_over(table, function, merge, *args):
    """Return the values of a function of each block, merged into one value.

    Unlike `sum_over`, it allows values of any type and size, such as the keys of selected rows.

    Parameters
    ----------
    table : Rows or an object with its interface
        As in `sum_over`.
    function : callable
        Function of a block and `args`. Its value must not refer to the block, as a view would.
    merge : callable
        Function that merges a list of values, or of merged values, into one value. It must be
        defined in a module, because the values of a partition are merged where the partition is.
    *args : objects
        As in `sum_over`.
    """
    workers = _workers(table)
    runs = _runs(table)
    if workers is None:
        return merge([function(table[rows], *args) for rows in table.blocks()])
    on_worker = partial(_gather_on_worker, function, merge, args)
    calls = zip(_calls(workers, table, runs, on_worker), runs, strict=True)
    nonempty_calls = (partition_calls for partition_calls, group in calls if group)
    return merge(workers.results(chain.from_iterable(nonempty_calls)))


def _read_mapped(read, n_read_args, function, X, rows, *row_args):
    """Return a function of a block; the first `n_read_args` of `row_args` are for `read`."""
    return function(read(X, rows, *row_args[:n_read_args]), *row_args[n_read_args:])


def _gather_on_worker(function, merge, args, detached, span, X, row_args):
    """Return the merged values of some runs of a partition, for `gather_over`."""
    table = detached.attach(X, row_args)
    blocks = chain.from_iterable(_runs(table)[0][slice(*span)])
    return merge([function(table[rows], *args) for rows in blocks])


def _runs(table):
    """Return the runs of blocks of each partition; a run is a list of slices.

    A worker returns one value per run of blocks, not one per block.
    """
    offsets = _offsets(table)
    blocks = [[] for _ in offsets[1:]]
    for rows in table.blocks():
        blocks[bisect_right(offsets, rows.start) - 1].append(rows)
    n = getattr(table, "run_blocks", None) or RUN_BLOCKS
    runs = []
    for slices in blocks:
        runs.append([slices[i : i + n] for i in range(0, len(slices), n)])
    return runs


def _workers(table):
    """Return the workers that hold a table's partitions, or None for a loop in this thread."""
    X = getattr(table, "X", None)
    workers = getattr(X, "workers", None)
    if workers is not None or not isinstance(table, Rows):
        return workers
    n_jobs = 1
    if table.offsets[-1] * table.shape[1] >= MIN_VALUES_FOR_THREADS:
        n_jobs = effective_n_jobs(None)
    if n_jobs == 1:
        return None
    chunked = isinstance(X, ChunkedArray)
    if chunked:
        partitions = X.partitions()
    else:
        partitions = [partial(_identity, X)]
    # The `row_args` are in memory, so without chunks to read, there is nothing to open elsewhere.
    in_memory = not (table.reads_chunks and chunked and X.opens_itself)
    return JoblibWorkers(partitions, _offsets(X), n_jobs, in_memory)


def _identity(X):
    """Return X; a `partial` of this function opens a table that is in memory."""
    return X


def check_loops(table, version):
    """Raise `RuntimeError` if this process or a worker of the table lacks a version of the loops.

    A private fit calls it before the charge, by `check_loops_of`, so that missing compiled loops
    cost nothing. Workers are asked in two rounds. The first asks all workers of a dask cluster,
    because any of them may compute a later sum. The second makes one call per partition. It is the
    only one for joblib's processes, and for Spark, which does not list its executors.

    Parameters
    ----------
    table : Rows or an object with its interface
    version : str
        Value of `skdp._loops.choose_loops`.
    """
    get_loops(version)
    workers = _workers(table)
    if version == NUMPY or workers is None:
        return
    if hasattr(workers, "run_on_all"):
        workers.run_on_all(partial(_load_loops, version))
    numbers = range(len(_offsets(table)) - 1)
    load = partial(_load_loops, version)
    workers.results([workers.call(number, load, of_part=False) for number in numbers])


def _load_loops(version, part=None):
    """Load the loops on a worker, or raise; `part` is the partition, which is not read."""
    get_loops(version)


def is_sent(table):
    """Return True if `row_args` are sent to other processes with each sum."""
    workers = _workers(table)
    return isinstance(workers, JoblibWorkers) and not workers.threads


def _calls(workers, table, runs, function, *row_args):
    """Return, for each partition, a list of calls of a function; each call covers some runs."""

    def calls_of(number, partition_runs):
        """Return the calls that sum a partition's runs, one for each pair of `split_range`."""
        detached = partial(function, table.detach(number))
        call = partial(workers.call, number, of_part=table.reads_chunks)
        spans = split_range(len(partition_runs), workers.depth)
        return [call(partial(detached, span), table.row_args, *row_args) for span in spans]

    return [calls_of(number, partition_runs) for number, partition_runs in enumerate(runs)]


def _add_block(table, rows, add, sums, args, row_args):
    """Add a function of one block, a slice of rows, to an array."""
    args_of_rows = []
    for values in row_args:
        if values is not None:
            values = slice_row_args(values, rows)
        args_of_rows.append(values)
    add(sums, table[rows], *args_of_rows, *args)


def _sum_runs(table, runs, add, total, args, row_args):
    """Return the pairwise sum of the runs of one partition.

    The caller adds the sums of partitions, pairwise too, so that the order of additions depends
    only on the numbers of rows. `total` only determines the shape and the type of the result.
    """

    def sum_of(run):
        """Return the sum over the blocks of a run."""
        sums = np.zeros_like(total)
        for rows in run:
            _add_block(table, rows, add, sums, args, row_args)
        return sums

    return tree_sum(map(sum_of, runs), len(runs))


def _sum_on_worker(add, shape, dtype, args, detached, span, X, read_args, row_args):
    """Return the sum of some runs of a partition, for `sum_over`.

    `span` is the range of the runs to sum, counted within the partition. `X` is the partition, or
    None if the table does not read it. `read_args` are the partition's entries of the table's
    ``row_args``, with which it reads blocks; `row_args` are those of the arguments of `add`.
    """
    table = detached.attach(X, read_args)
    runs = _runs(table)[0][slice(*span)]
    return _sum_runs(table, runs, add, np.zeros(shape, dtype), args, row_args)


def _map_blocks(table, blocks, function, out, args, first=0):
    """Write the values of a function of blocks to `out`, whose first entry is for row `first`."""
    for rows in blocks:
        out[rows.start - first : rows.stop - first] = function(table[rows], *args)
    return out


def _map_on_worker(function, shape, dtype, args, detached, span, X, read_args, out):
    """Return the values of some runs of a partition, for `map_over`.

    `detached`, `span`, `X` and `read_args` are as in `_sum_on_worker`. Threads pass `out`, the
    partition's slice of the array of all rows. If it is None, the values are returned in a new
    array, which starts at the first row of the runs.
    """
    table = detached.attach(X, read_args)
    first = 0
    blocks = list(chain.from_iterable(_runs(table)[0][slice(*span)]))
    if out is None:
        first = 0
        if blocks:
            first = blocks[0].start
        n_rows = sum(b.stop - b.start for b in blocks)
        out = np.empty((n_rows, *shape), dtype)
    return _map_blocks(table, blocks, function, out, args, first)


def max_additions(size):
    r"""Return a bound on the number of additions in `sum_over` that involve one term.

    The bound holds for any number of rows, so the number need not be public. A term is added
    within its block of at most `size` rows, then with the blocks of its run (the first of which is
    added to zero), then with the runs of its partition pairwise, then with the partitions
    pairwise. There are fewer runs than rows, and no memory holds 2**48 rows, so a table with one
    partition adds 48. Otherwise, there are at most 2**24 partitions (`ChunkedArray` checks this),
    which add 24, and each partition adds 26: it holds fewer than 2**36 rows, and therefore fewer
    than 2**26 runs of 16 blocks with at least 64 rows.

    If m additions involve each term of a sum, the error is at most m units of roundoff times the
    sum of the terms' magnitudes, plus a remainder that is smaller than this bound (Higham 2002,
    section 4.2).
    """
    return size + RUN_BLOCKS + LOG2_MAX_ROWS + 2


def _offsets(table):
    """Return the first row of each partition, and the number of rows."""
    if hasattr(table, "offsets"):
        return table.offsets
    return (0, table.shape[0])
