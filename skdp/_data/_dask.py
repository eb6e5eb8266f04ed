"""Tables of dask arrays, and function calls on their partitions by dask's scheduler."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from itertools import pairwise
from traceback import clear_frames, format_exception_only

from skdp._data._frames import checked_blocks
from skdp._data._workers import PersistedRef, delayed_call, tree_sum
from skdp.utils._types import P, R

# Errors that dask raises if the cluster ends or its client is closed before a sum is computed, or
# if values persisted by one client are needed by another client or without a client. They are
# compared by name, because their classes are in distributed, which may not be installed.
LOST_WORKERS = r"distributed\.[\w.]+\.(FutureCancelled|ClosedClient|CommClosed)Error\b"
ELSEWHERE = "ValueError: (Missing dependency|Inputs contain futures that were created by another)"
MESSAGE_LOG = "recent_message_log"
LOST = (
    "the dask cluster was lost before it had computed a sum: it ended, its client was closed, or "
    "persisted values are needed by another client or without a client. Nothing is published. The "
    "charge of the fit is not refunded, because noise may have been drawn; a new fit charges again"
)
RUN = ContextVar("run", default=None)


def _client():
    """Return the client that dask currently uses, or None."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    if hasattr(client, "persist"):
        return client
    return None


class Run:
    """Context of a fit, in which one dask client computes all sums.

    At its end, values that were persisted on the cluster are released, and temporary files of
    tables that were opened in the context are removed, whether the fit succeeds or fails.

    The client of the first sum is kept: if it were closed, dask would continue in this process. A
    run within another one uses the same client, even in another thread if `outer` is passed. In
    another process, a run is independent.

    Parameters
    ----------
    outer : Run, default=None
        The enclosing run; None uses that of the current context, if there is one.
    """

    def __init__(self, outer=None):
        outer = outer or RUN.get()
        # A list that nested runs share. It is empty before the first sum and then contains the
        # client or None.
        if outer:
            self._client = outer._client
        else:
            self._client = []
        self._memo = {}
        self._temporary = []

    def __reduce__(self):
        return Run, ()

    def __enter__(self):
        self._token = RUN.set(self)

    def __exit__(self, kind, error, traceback):
        RUN.reset(self._token)
        if self._memo:
            # A stored exception contains dask's frames, which refer to persisted values.
            clear_frames(traceback)
        self._memo.clear()
        # Remove the files now, because the frames of a stored exception may refer to the table.
        for temporary in self._temporary:
            temporary.remove()
        self._temporary.clear()

    def remove_at_exit(self, temporary):
        """Remove a temporary file when the fit ends."""
        self._temporary.append(temporary)

    def client(self):
        """Return the client of the first sum, or None if there was none."""
        if not self._client:
            self._client[:] = [_client()]
        return self._client[0]

    def memoize(self, make, *of):
        """Return ``make()``, computed once per run for the same objects `of`.

        `make` is not part of the key, so the objects must determine its value. Runs within one
        another share the client, but not these values.
        """
        key = tuple(map(id, of))
        if key not in self._memo:
            # The objects are kept as well, because the id of a deleted object could be reused.
            self._memo[key] = make(), of
        return self._memo[key][0]


def in_one_run(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it runs in a `Run` and leaves no temporary file.

    It must not be used for functions that return a lazy table.
    """

    @wraps(function)
    def read(*args, **kwargs):
        with Run():
            return function(*args, **kwargs)

    return read


def _is_closed(client):
    return getattr(client, "status", None) in ("closing", "closed")


class DaskTable:
    """A dask array whose chunk sizes are known.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns)
        Its blocks must have the shape and type that it declares.
    """

    def __init__(self, array):
        self.array = array

    def rows(self, selection):
        """Return the table of some rows, with one chunk for each chunk of `selection`.

        Parameters
        ----------
        selection : list of (int, ndarray of int)
            Pairs of a chunk's index and the indices of its rows.
        """
        from dask.array import concatenate

        blocks = [self.array.blocks[number][rows] for number, rows in selection]
        return DaskTable(checked_blocks(concatenate(blocks)))

    def compute(self, make_delayed):
        """Return the values of delayed objects, as a list.

        Parameters
        ----------
        make_delayed : callable
            Function of the run, the array and the client that returns the delayed objects.

        Raises
        ------
        RuntimeError
            If the cluster is lost. The fit fails, and its charge stays in the ledger.
        """
        from dask import compute

        run = RUN.get() or Run()
        client = run.client()
        try:
            if _is_closed(client):
                raise RuntimeError(LOST)
            delayed_values = make_delayed(run, self.array, client)
            return list(compute(*delayed_values, scheduler=client))
        except Exception as error:
            message = format_exception_only(error)[0]
            if _is_closed(client) or re.match(f"{LOST_WORKERS}|{ELSEWHERE}", message):
                raise RuntimeError(LOST) from error
            raise
        finally:
            # A client logs its last messages, which may contain the row indices of batches.
            if log := getattr(getattr(client, "scheduler_comm", None), MESSAGE_LOG, None):
                log.clear()


def _delayed_chunks(array):
    return array.rechunk({1: -1}).to_delayed().ravel().tolist()


class DaskWorkers:
    """Workers of dask's current scheduler: a cluster, or threads.

    A chunk is never sent anywhere. It is released after its sum unless the user persisted the
    array. `row_args` are sent once per run, and values of `persist` stay on the cluster for the
    run. The methods are as in `JoblibWorkers`.

    Parameters
    ----------
    table : DaskTable
    offsets : tuple of int
        The first row of each chunk, and the number of rows.
    """

    depth = 0
    persist = PersistedRef

    def __init__(self, table, offsets):
        self._table = table
        self._offsets = offsets

    call = staticmethod(delayed_call)

    def run_on_all(self, function):
        """Call a function without arguments on every worker of a cluster, even those without rows.

        Threads of this process need no call.
        """
        client = (RUN.get() or Run()).client()
        if client is not None:
            client.run(function)

    def total(self, calls, finalize=None):
        """Return the sum of the calls' values, added on the workers; see `JoblibWorkers.total`.

        Each partition has one call, because `depth` is 0.
        """
        from dask import delayed

        def make_delayed(*at):
            """Return the delayed sum of the values, for the delayed partitions of the table."""
            total = tree_sum((self._delayed(at, call) for (call,) in calls), len(calls))
            if finalize is not None:
                total = delayed(finalize, pure=False)(total)
            return [total]

        return self._table.compute(make_delayed)[0]

    def results(self, calls):
        """Return the list of the calls' values, computed where the chunks are."""
        calls = list(calls)

        def make_delayed(*at):
            return [self._delayed(at, call) for call in calls]

        return self._table.compute(make_delayed)

    def _delayed(self, at, call):
        """Return the delayed value of a call; `at` is the run, the array and the client."""
        from dask import delayed

        run, array, _ = at
        chunk = None
        if call.of_part:
            chunk = run.memoize(partial(_delayed_chunks, array), array)[call.number]
        return delayed(call.function, pure=False)(
            chunk, *self._part(at, call.row_args, call.number)
        )

    def _part(self, at, row_args, number):
        """Return partition `number` of `row_args`, on the cluster."""
        if row_args is None or isinstance(row_args, tuple):
            return row_args and tuple(self._part(at, values, number) for values in row_args)
        run, *of = at
        if isinstance(row_args, PersistedRef):
            make = self._keep
        else:
            make = self._send
        return run.memoize(partial(make, at, row_args), *of, row_args)[number]

    def _keep(self, at, reference):
        """Compute the values of a `PersistedRef` on the cluster, and leave them there."""
        from dask import persist

        return persist(*(self._delayed(at, call) for call in reference.calls), scheduler=at[-1])

    def _send(self, at, values):
        """Return each partition's rows of an array, after sending them to the cluster.

        Parameters
        ----------
        at : tuple
            The run, the array and the client, as in `_delayed`.
        values : ndarray of shape (n_rows, ...)
        """
        from dask import delayed, persist

        # One message is sent per partition, because a single message with all rows would be large.
        slices = (delayed(values[slice(*rows)], pure=False) for rows in pairwise(self._offsets))
        return [persist(rows, scheduler=at[-1])[0] for rows in slices]
