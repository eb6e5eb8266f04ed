"""Function calls on a table's partitions, on the machines that hold the partitions.

The calls are run by joblib with its active backend, by dask (`skdp._data._dask`) or by Spark
(`skdp._data._spark`), whose classes have the same methods. A call receives a function, values with
one entry per row, and small arguments, but neither accountant nor noise. Calls can be repeated, so
the calls of a worker that died run again elsewhere.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from operator import call

import numpy as np
from joblib import Parallel, cpu_count, delayed
from joblib.parallel import get_active_backend

from skdp._data._one_thread import one_thread
from skdp._version import __version__
from skdp.utils._values import FrozenValue

# Minimum number of calls per job; the maximum is twice this number. With more calls than jobs, no
# job is idle while another job runs a long call.
CALLS_PER_JOB = 2


def split_range(n, depth):
    """Return the pairs (first, last) into which `depth` halvings divide range(n)."""
    ends = [0, n]
    for _ in range(depth):
        ends = sorted({*ends, *((first + last) // 2 for first, last in pairwise(ends))})
    return list(pairwise(ends))


def tree_sum(values, n):
    """Return the sum of n >= 1 values of an iterator, added pairwise, in place.

    Arrays that the iterator yields may be overwritten.

    The sum is the same, to the last bit, if this function has already summed the values of each
    pair of `split_range`.
    """
    if n == 1:
        return next(values)
    left = tree_sum(values, n // 2)
    left += tree_sum(values, n - n // 2)
    return left


def slice_row_args(values, rows):
    """Return a slice of rows of an array, or of each array of a tuple; None is returned as None."""
    if isinstance(values, tuple):
        return tuple(slice_row_args(value, rows) for value in values)
    if values is None:
        return None
    return values[rows]


def concat_into(values, out):
    """Write a list of arrays into `out`, one after another; the list is emptied to save memory."""
    values.reverse()
    stop = 0
    while values:
        array = values.pop()
        start = stop
        stop = start + len(array)
        out[start:stop] = array
    return out


class JoblibWorkers:
    """Threads of this process, or the processes of joblib's active backend.

    Rows in memory are never sent to another process: threads share them. Processes receive a
    function that opens a partition's file.

    Parameters
    ----------
    partitions : list of callables
        Functions that each open a partition.
    offsets : sequence of int
        The first row of each partition, and the number of rows.
    n_jobs : int
        Number of threads or processes.
    in_memory : bool
        True if partitions must not be pickled, so that threads are used.

    Attributes
    ----------
    threads : bool
        True if calls see the arrays of this process, so they can write to slices of them.
    depth : int
        Number of halvings of a partition's runs; there is one call for each of the 2**depth pieces.
    persist : callable or None
        Function that receives calls which return one entry per row, and returns a reference to
        these values on the workers. None if results are in this process's memory.
    """

    persist = None

    def __init__(self, partitions, offsets, n_jobs, in_memory):
        self._partitions = partitions
        self._offsets = offsets
        backend, _ = get_active_backend(prefer="threads")
        self.threads = in_memory or getattr(backend, "supports_sharedmem", False)
        if self.threads:
            self._n_jobs = min(n_jobs, cpu_count())
        else:
            self._n_jobs = n_jobs
        self._depth = (CALLS_PER_JOB * self._n_jobs - 1).bit_length()
        self.depth = max(0, self._depth + 1 - len(partitions).bit_length())

    def call(self, number, function, *row_args, of_part=True):
        """Return a delayed call that can be passed to `total` or `results`.

        Linear algebra uses one thread during the call.

        Parameters
        ----------
        number : int
            Index of the partition.
        function : callable
            Pure function of the partition and of its rows of `row_args`. It is pickled with its
            arguments if the call runs in another process.
        *row_args : arrays of shape (n_rows, ...), values of `persist`, None, or tuples of such
        of_part : bool, default=True
            True to read the partition; otherwise the function receives None instead of it.
        """
        row_args = slice_row_args(row_args, slice(*self._offsets[number : number + 2]))
        partition = None
        if of_part:
            partition = self._partitions[number]
        return partial(_called, __version__, function, partition, *row_args)

    def total(self, calls, finalize=None):
        """Return the pairwise sum over partitions of the pairwise sums of their calls' values.

        Parameters
        ----------
        calls : list of lists
            The calls of each partition, one for each pair of `split_range` of its runs.
        finalize : callable, default=None
            Function of the sum whose value is returned instead.
        """
        if not self.depth:
            # There are more partitions than calls, so each call sums several partitions.
            spans = split_range(len(calls), self._depth)
            calls = [[partial(_sum, calls[first:last])] for first, last in spans]
        sums = iter(self.results(chain.from_iterable(calls)))
        total = tree_sum((tree_sum(sums, len(group)) for group in calls), len(calls))
        if finalize is None:
            return total
        return finalize(total)

    def results(self, calls):
        """Return the list of the values of calls, which `call` returned, in their order."""
        if not self.threads:
            # max_nbytes=None sends targets through pipes. Otherwise, joblib would write large
            # arrays to temporary files, which could stay on disk after a crash.
            pool = Parallel(n_jobs=self._n_jobs, max_nbytes=None, batch_size=1, pre_dispatch="all")
            return list(pool(delayed(call)() for call in calls))
        # joblib's pool polls for finished calls every 10 ms, which is as long as some sums take.
        with ThreadPoolExecutor(self._n_jobs) as pool:
            return list(pool.map(call, calls))


def _sum(calls):
    return tree_sum((call() for (call,) in calls), len(calls))


def _called(version, function, partition, *row_args):
    """Return the value of a delayed call; `partition` is a table, or a callable that opens it."""
    if version != __version__:
        raise RuntimeError(f"a worker has skdp {__version__}, the calling process {version}")
    # NumPy's warnings on a worker would reveal values of rows.
    with one_thread(), np.errstate(all="ignore"):
        table = partition
        if callable(partition):
            table = partition()
        return function(table, *row_args)


@dataclass(frozen=True, eq=False)
class Call(FrozenValue):
    """A delayed call of a function of partition `number`, for dask or Spark.

    `of_part` is False if the function receives None instead of the partition.
    """

    number: int
    function: object
    row_args: tuple
    of_part: bool


def delayed_call(number, function, *row_args, of_part=True):
    """Return a `Call`; parameters are as in `JoblibWorkers.call`."""
    return Call(number, partial(_called, __version__, function), row_args, of_part)


class PersistedRef:
    """A reference to values with one entry per row that stay next to their partitions.

    Parameters
    ----------
    calls : list of Call
        One call for each partition, which returns the partition's values.
    """

    def __init__(self, calls):
        self.calls = calls
