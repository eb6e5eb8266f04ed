"""Functions of the parts of a table, called where the parts are.

`Workers` says what whoever calls them does; what does it is dask, on whatever scheduler is current,
or joblib, with whatever backend is active. They get functions, the values that go with the rows and
small values, and neither accountant nor noise. Each call can be made again, so that those of a
worker that died are repeated.
"""

from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from joblib import Parallel, cpu_count, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

# So many calls a job, or up to twice as many: one may take longer than others.
CALLS_A_JOB = 4
LOST = (
    "the dask cluster was lost before it had computed a sum: its scheduler ended, or cancelled it. "
    "Nothing is published. What the fit had charged stays charged, as noise may have been drawn: a "
    "new fit is a new charge"
)
# What has `limit` for its threads. To look for the libraries takes as long as a short sum.
linear_algebra = cache(ThreadpoolController)


class Workers(Protocol):
    """What calls functions where the parts of a table are.

    Attributes
    ----------
    depth : int
        How often the sum of a part is halved, each half by a call of its own.
    """

    depth: int

    def call(self, number, function, along):
        """Return a call that is yet to be made, as the next three take them.

        Parameters
        ----------
        number : int
            Of the part.
        function : callable
            Of the part and of what goes with its rows. Pure; it is sent, with whatever it holds.
        along : tuple of (array of shape (n_rows, ...), what `held` returned, None, or such a tuple)
        """

    def total(self, calls):
        """Return the sum of what the calls of a tree of `halves` return, added as it says."""

    def results(self, calls):
        """Return a list of what calls return."""

    def held(self, calls):
        """Return what calls return, a value a row, held where it was computed."""


def halves(leaves):
    """Return the tree of pairs by which leaves are added: by halves. No leaf is a tuple."""
    half = len(leaves) // 2
    return (halves(leaves[:half]), halves(leaves[half:])) if half else leaves[0] if leaves else []


def added(value, tree):
    """Return the sum of the values of a tree's leaves, one of them after another."""
    if not isinstance(tree, tuple):
        return value(tree)
    left = added(value, tree[0])
    left += added(value, tree[1])
    return left


def lopped(tree, depth, value, path=()):
    """Return a tree whose branches from some depth on are what a function makes of their paths."""
    if not depth or not isinstance(tree, tuple):
        return value(path)
    return tuple(lopped(half, depth - 1, value, (*path, i)) for i, half in enumerate(tree))


def branch(tree, path):
    """Return the branch of a tree that a path leads to."""
    for side in path:
        tree = tree[side]
    return tree


def leaves(tree):
    """Yield the leaves of a tree in order."""
    if not isinstance(tree, tuple):
        yield tree
        return
    for half in tree:
        yield from leaves(half)


def cut(values, rows):
    """Return a slice of rows of what goes with them: arrays, tuples of such, or None."""
    if isinstance(values, tuple):
        return tuple(cut(each, rows) for each in values)
    return None if values is None else values[rows]


def joined(values, out):
    """Put a list of the values of parts in an array in order, and forget them one by one."""
    values.reverse()
    stop = 0
    while values:
        part = values.pop()
        start, stop = stop, stop + len(part)
        out[start:stop] = part
    return out


class JoblibWorkers:
    """Threads of this process, or joblib's active backend where that has processes.

    Processes are sent what opens a part: rows in memory are not sent anywhere, threads share them.

    Parameters
    ----------
    parts : list of callables
        That open them.
    borders : sequence of int
        Where parts begin, and the number of rows.
    n_jobs : int
    in_memory : bool
        Whether parts are not to be pickled.
    """

    def __init__(self, parts, borders, n_jobs, in_memory):
        self._parts, self._borders = parts, borders
        backend, _ = get_active_backend(prefer="threads")
        self._threads = in_memory or getattr(backend, "supports_sharedmem", False)
        self._n_jobs = min(n_jobs, cpu_count()) if self._threads else n_jobs
        self._depth = (CALLS_A_JOB * self._n_jobs - 1).bit_length()
        self.depth = max(0, self._depth + 1 - len(parts).bit_length())

    def call(self, number, function, along):
        along = cut(along, slice(*self._borders[number : number + 2]))
        return partial(_called, function, self._parts[number], along)

    def total(self, calls):
        tops = []
        tree = lopped(calls, self._depth, lambda path: tops.append(branch(calls, path)))
        sums = iter(self.results([partial(added, _made, top) for top in tops]))
        return added(lambda _: next(sums), tree)

    def results(self, calls):
        if not self._threads:
            # Targets go by pipes: as files, which joblib would make, they could be left behind.
            pool = Parallel(n_jobs=self._n_jobs, max_nbytes=None)
            return list(pool(delayed(call)() for call in calls))
        # A pool of joblib's looks every 10 ms whether a call has ended, as long as some sums take.
        with (
            linear_algebra().limit(limits=max(1, cpu_count() // self._n_jobs)),
            ThreadPoolExecutor(self._n_jobs) as pool,
        ):
            return list(pool.map(_made, calls))

    def held(self, calls):
        values = self.results(calls)
        return joined(values, np.empty(sum(map(len, values))))


def _made(call):
    return call()


def _called(function, part, along):
    # A worker's warnings would tell of rows.
    with np.errstate(all="ignore"):
        return function(part(), along)


class Beside(tuple):
    """Values that go with the rows, one a row, each part's where the part is: persisted Delayed."""


class DaskWorkers:
    """Dask's, on whatever scheduler is current: a cluster's, or threads.

    A chunk goes nowhere, and is forgotten when its sum is there unless the array was persisted.
    What goes with the rows is sent once, and what is held of them is persisted.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns), of known chunks
    borders : tuple of int
        Where chunks begin, and the number of rows.
    """

    depth = 0

    def __init__(self, array, borders):
        self._array, self._borders, self._chunks, self._sent = array, borders, None, {}

    def call(self, number, function, along):
        from dask import delayed

        if self._chunks is None:
            whole = self._array.rechunk({1: -1})
            self._chunks = whole.to_delayed().ravel().tolist()
        rows = self._borders[number : number + 2]
        shape = (rows[1] - rows[0], self._array.shape[1])
        call = delayed(partial(_of_chunk, function, shape, self._array.dtype), pure=False)
        return call(self._chunks[number], self._part(along, number))

    def total(self, calls):
        return self.results([added(lambda call: call, calls)])[0]

    def results(self, calls):
        from dask import compute

        try:
            return list(compute(*calls))
        except CancelledError as error:
            raise RuntimeError(LOST) from error

    def held(self, calls):
        from dask import persist

        return Beside(persist(*calls))

    def _part(self, along, number):
        if along is None or isinstance(along, Beside):
            return None if along is None else along[number]
        if isinstance(along, tuple):
            return tuple(self._part(values, number) for values in along)
        if id(along) not in self._sent:
            # Kept with what it was made of, whose id no other array has meanwhile.
            self._sent[id(along)] = along, self._send(along)
        return self._sent[id(along)][1][number]

    def _send(self, values):
        from dask import delayed, persist

        # One by one: a message with the values of all rows would be large.
        slices = (values[slice(*rows)] for rows in pairwise(self._borders))
        return Beside(persist(delayed(each, pure=False))[0] for each in slices)


def _of_chunk(function, shape, dtype, chunk, along):
    chunk = np.asarray(chunk)
    if chunk.shape != shape or chunk.dtype != dtype:
        found = f"{chunk.dtype} of shape {chunk.shape}"
        raise ValueError(f"a block holds {found}, the dask array says {dtype} of shape {shape}")
    return _called(function, lambda: chunk, along)
