"""Functions of the parts of a table, called where the parts are.

What calls them is joblib, with whatever backend is active, dask (`skdp.utils._dask`) or Spark
(`skdp.utils._spark`). All have the same methods. They get functions, the values that go
with the rows and small values, and neither accountant nor noise. Each call can be made again, so
that those of a worker that died are repeated.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from operator import call

import numpy as np
from joblib import Parallel, cpu_count, delayed
from joblib.parallel import get_active_backend

from skdp._version import __version__
from skdp.utils._one_thread import one_thread
from skdp.utils._values import FrozenValue

# So many calls a job, or up to twice as many: one may take longer than others.
CALLS_A_JOB = 2


def spans(n, depth):
    """Return the pairs (first, last) into which halving n things some times cuts them."""
    ends = [0, n]
    for _ in range(depth):
        ends = sorted({*ends, *((first + last) // 2 for first, last in pairwise(ends))})
    return list(pairwise(ends))


def added(values, n):
    """Return the sum of n values of an iterator, added by halves.

    It is the same if those of `spans` were added before, each by halves.
    """
    if n == 1:
        return next(values)
    left = added(values, n // 2)
    left += added(values, n - n // 2)
    return left


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

    Attributes
    ----------
    threads : bool
        Whether they see the arrays of this process, of which each call gets its part to write to.
    depth : int
        How often the runs of a part are halved, for a call of each half.
    held : callable or None
        Of calls that return values of each row; it returns these, held where they were computed.
        None where that is this process's memory.
    """

    held = None

    def __init__(self, parts, borders, n_jobs, in_memory):
        self._parts = parts
        self._borders = borders
        backend, _ = get_active_backend(prefer="threads")
        self.threads = in_memory or getattr(backend, "supports_sharedmem", False)
        self._n_jobs = min(n_jobs, cpu_count()) if self.threads else n_jobs
        self._depth = (CALLS_A_JOB * self._n_jobs - 1).bit_length()
        self.depth = max(0, self._depth + 1 - len(parts).bit_length())

    def call(self, number, function, *along, of_part=True):
        """Return a call that is yet to be made, as the next two take them.

        Linear algebra has one thread meanwhile.

        Parameters
        ----------
        number : int
            Of the part.
        function : callable
            Of the part and of what goes with its rows. Pure; it is sent, with whatever it holds.
        *along : arrays of shape (n_rows, ...), what `held` returned, None, or tuples of such
        of_part : bool, default=True
            Whether the part is read; the function gets None for it otherwise.
        """
        along = cut(along, slice(*self._borders[number : number + 2]))
        part = self._parts[number] if of_part else None
        return partial(_called, __version__, function, part, *along)

    def total(self, calls, then=None):
        """Return the sum, by halves, of what the calls of each part return, added by halves.

        Or what `then` makes of it, where it was added up.

        Parameters
        ----------
        calls : list of lists
            A part's are those of `spans` of its runs.
        then : callable, default=None
        """
        if not self.depth:
            # Several parts a call.
            calls = [[partial(_sum, calls[slice(*own)])] for own in spans(len(calls), self._depth)]
        sums = iter(self.results(chain.from_iterable(calls)))
        total = added((added(sums, len(own)) for own in calls), len(calls))
        return total if then is None else then(total)

    def results(self, calls):
        """Return a list of what calls return."""
        if not self.threads:
            # Targets go by pipes: as files, which joblib would make, they could be left behind.
            pool = Parallel(n_jobs=self._n_jobs, max_nbytes=None, batch_size=1, pre_dispatch="all")
            return list(pool(delayed(call)() for call in calls))
        # A pool of joblib's looks every 10 ms whether a call has ended, as long as some sums take.
        with ThreadPoolExecutor(self._n_jobs) as pool:
            return list(pool.map(call, calls))


def _sum(calls):
    return added((call() for (call,) in calls), len(calls))


def _called(version, function, part, *along):
    if version != __version__:
        raise RuntimeError(f"a worker has skdp {__version__}, the calling process {version}")
    # A worker's warnings would tell of rows.
    with one_thread(), np.errstate(all="ignore"):
        return function(part() if callable(part) else part, *along)


@dataclass(frozen=True, eq=False)
class Call(FrozenValue):
    """A call that is yet to be made."""

    number: int
    function: object
    along: tuple
    of_part: bool


def called(number, function, *along, of_part=True):
    """Return a call that is yet to be made, of what `JoblibWorkers.call` takes."""
    return Call(number, partial(_called, __version__, function), along, of_part)


class Beside:
    """Values that go with the rows, each part's where the part is.

    Parameters
    ----------
    calls : list of Call
        Of each part, one that returns them.
    """

    def __init__(self, calls):
        self.calls = calls
