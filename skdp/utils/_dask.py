"""Tables that dask computes, and calls of functions of their parts, on its current scheduler."""

import re
from contextvars import ContextVar
from functools import partial, wraps
from itertools import pairwise
from traceback import clear_frames, format_exception_only

from skdp.utils._frames import checked_blocks
from skdp.utils._workers import Beside, added, called

# What dask raises for a sum that was asked for, or that its client cannot ask for; and where
# another client, or none, is asked for what one has. Compared by name, as only distributed has the
# classes, which may not be installed.
LOSSES = r"distributed\.[\w.]+\.(FutureCancelled|ClosedClient|CommClosed)Error\b"
ELSEWHERE = "ValueError: (Missing dependency|Inputs contain futures that were created by another)"
MESSAGE_LOG = "recent_message_log"
LOST = (
    "the dask cluster was lost before it had computed a sum: it ended, its client was closed, or "
    "what was persisted there is asked of another client, or of none. Nothing is published. What "
    "the fit had charged stays charged, as noise may have been drawn: a new fit is a new charge"
)
RUN = ContextVar("run", default=None)


def _client():
    """Return the client by which dask computes now, None if it does without one."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "persist") else None


class Run:
    """The sums of a fit, which one cluster computes; a context that lets go of what is held there.

    The temporary files of tables that are opened in the context are removed at its end, whether
    the fit succeeds or fails.

    Without the client of its first sum dask would go on in this process. A run within another one
    is on the same cluster, also in another thread, if it is told the outer one. In another process
    it is a new run.

    Parameters
    ----------
    outer : Run, default=None
    """

    def __init__(self, outer=None):
        outer = outer or RUN.get()
        # The client, or None, once a sum was asked for.
        self._client = outer._client if outer else []
        self._held = {}
        self._temporary = []

    def __reduce__(self):
        return Run, ()

    def __enter__(self):
        self._token = RUN.set(self)

    def __exit__(self, kind, error, traceback):
        RUN.reset(self._token)
        if self._held:
            # An error that is kept has the frames of dask, and these have what was asked for.
            clear_frames(traceback)
        self._held.clear()
        # Not left to the last reference: an error that is kept has frames that refer to the table.
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

    def once(self, make, *of):
        """Return what a function makes of some things, once a run."""
        key = tuple(map(id, of))
        if key not in self._held:
            # Kept with what it was made of, whose ids no other things have meanwhile.
            self._held[key] = make(), of
        return self._held[key][0]


def in_one_run(function):
    """Make a function that reads a table a `Run`, so that it leaves no temporary file behind.

    Not for functions that return a lazy table.
    """

    @wraps(function)
    def read(*args, **kwargs):
        with Run():
            return function(*args, **kwargs)

    return read


def _is_closed(client):
    return getattr(client, "status", None) in ("closing", "closed")


class DaskTable:
    """A dask array of known chunks.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns)
        Whose blocks are what it says.
    """

    def __init__(self, array):
        self.array = array

    def rows(self, chosen):
        """Return the table of some rows, those of a chunk in one.

        Parameters
        ----------
        chosen : list of (int, ndarray of int)
            Of chunks the number, and which rows.
        """
        from dask.array import concatenate

        blocks = [self.array.blocks[number][rows] for number, rows in chosen]
        return DaskTable(checked_blocks(concatenate(blocks)))

    def computed(self, asked):
        """Return what dask computes.

        Parameters
        ----------
        asked : callable
            Returns what is to be computed, of the run, the array and its client.

        Raises
        ------
        RuntimeError
            If the cluster is lost: the fit fails, and what was charged stays charged.
        """
        from dask import compute

        run = RUN.get() or Run()
        client = run.client()
        try:
            if _is_closed(client):
                raise RuntimeError(LOST)
            return list(compute(*asked(run, self.array, client), scheduler=client))
        except Exception as error:
            what = format_exception_only(error)[0]
            if _is_closed(client) or re.match(f"{LOSSES}|{ELSEWHERE}", what):
                raise RuntimeError(LOST) from error
            raise
        finally:
            # A client keeps its last messages: of batches, the numbers of all their rows.
            if log := getattr(getattr(client, "scheduler_comm", None), MESSAGE_LOG, None):
                log.clear()


class DaskWorkers:
    """Dask's, on whatever scheduler is current: a cluster's, or threads.

    A chunk goes nowhere, and is forgotten when its sum is there unless the array was persisted.
    What goes with the rows is sent once, and what is held of them is persisted. The methods are
    those of `JoblibWorkers`.

    Parameters
    ----------
    table : DaskTable
    borders : tuple of int
        Where chunks begin, and the number of rows.
    """

    depth = 0
    held = Beside

    def __init__(self, table, borders):
        self._table = table
        self._borders = borders

    call = staticmethod(called)

    def total(self, calls, then=None):
        from dask import delayed

        def asked(*at):
            total = added((self._delayed(at, call) for (call,) in calls), len(calls))
            return [total if then is None else delayed(then, pure=False)(total)]

        return self._table.computed(asked)[0]

    def results(self, calls):
        calls = list(calls)
        return self._table.computed(lambda *at: [self._delayed(at, call) for call in calls])

    def _delayed(self, at, call):
        from dask import delayed

        chunks = at[0].once(lambda: at[1].rechunk({1: -1}).to_delayed().ravel().tolist(), at[1])
        chunk = chunks[call.number] if call.of_part else None
        return delayed(call.function, pure=False)(chunk, *self._part(at, call.along, call.number))

    def _part(self, at, along, number):
        if along is None or isinstance(along, tuple):
            return along and tuple(self._part(at, values, number) for values in along)
        run, *of = at
        make = self._keep if isinstance(along, Beside) else self._send
        return run.once(partial(make, at, along), *of, along)[number]

    def _keep(self, at, beside):
        from dask import persist

        return persist(*(self._delayed(at, call) for call in beside.calls), scheduler=at[-1])

    def _send(self, at, values):
        from dask import delayed, persist

        # One by one: a message with the values of all rows would be large.
        slices = (delayed(values[slice(*rows)], pure=False) for rows in pairwise(self._borders))
        return [persist(each, scheduler=at[-1])[0] for each in slices]
