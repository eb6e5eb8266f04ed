"""Tables that dask computes, and calls of functions of their parts, on its current scheduler."""

import sys
from itertools import pairwise
from threading import RLock

from skdp.utils._frames import checked_blocks
from skdp.utils._workers import Beside, added, called

# What dask raises for a sum that was asked for, and for one that its client cannot ask for.
LOSSES = {"FutureCancelledError", "ClosedClientError", "CommClosedError"}
# So often in a row a sum is asked for.
MOST_CLUSTERS = 4
LOST = (
    "the dask cluster was lost before it had computed a sum: its scheduler ended, or cancelled it. "
    "Nothing is published. What the fit had charged stays charged, as noise may have been drawn: a "
    "new fit is a new charge. A table ChunkedArray(..., reopen=...) goes on elsewhere, a few times"
)


def _client():
    """Return the current client of a cluster, None if there is none."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed and distributed.default_client()
    except ValueError:
        return None


class DaskTable:
    """A dask array of known chunks, and the same one elsewhere when its cluster was lost.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns)
        Whose blocks are what it says.
    names : list or None
        Of the columns, where they have some.
    reopen : callable, default=None
        Returns such a table, on another cluster.
    """

    def __init__(self, array, names, reopen=None):
        self.array, self._names, self._reopen = array, names, reopen
        # Folds of a table are taken from it while it may be opened again.
        self._lock, self._client = RLock(), _client() if reopen else None

    def __reduce__(self):
        return DaskTable, (self.array, self._names, self._reopen)

    def reopened_by(self, reopen):
        """Return the same table, that can be opened again."""
        return DaskTable(self.array, self._names, reopen)

    def rows(self, rows):
        """Return some rows, by number, as such a table."""
        return DaskRows(self, rows)

    def is_closed(self):
        """Say whether the client by which it was opened is closed: dask then computes here."""
        return self._client is not None and self._client.status in ("closing", "closed")

    def open_again(self, lost):
        """Open the table elsewhere, unless that was done since an array was lost.

        Raises
        ------
        RuntimeError
            If nobody said how.
        ValueError
            If what was opened is another table.
        """
        with self._lock:
            if self._reopen is None:
                raise RuntimeError(LOST)
            if self.array is lost:
                other = self._reopen()
                if other is None or other._form() != self._form():
                    raise ValueError("reopen did not return the table that was lost")
                self.array, self._client = other.array, _client()

    def _form(self):
        return self.array.chunks[0], self.array.shape, self.array.dtype, self._names


class DaskRows(DaskTable):
    """Some rows of a table, by number, wherever that is.

    Parameters
    ----------
    table : DaskTable
    rows : ndarray of int
    """

    def __init__(self, table, rows):
        self._table, self._rows, self._lock, self._whole = table, rows, RLock(), None

    def __reduce__(self):
        return DaskRows, (self._table, self._rows)

    @property
    def array(self):
        with self._lock:
            if self._whole is not self._table.array:
                self._whole = self._table.array
                self._own = checked_blocks(self._whole[self._rows])
            return self._own

    def is_closed(self):
        return self._table.is_closed()

    def open_again(self, lost):
        with self._lock:
            whole = self._whole if lost is self._own else None
        self._table.open_again(whole)


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
        self._table, self._borders, self._array = table, borders, None
        self._chunks, self._sent = None, {}

    call = staticmethod(called)

    def total(self, calls, then=None):
        from dask import delayed

        def asked():
            total = added((self._delayed(call) for (call,) in calls), len(calls))
            return [total if then is None else delayed(then, pure=False)(total)]

        return self._computed(asked)[0]

    def results(self, calls):
        calls = list(calls)
        return self._computed(lambda: map(self._delayed, calls))

    def _computed(self, asked):
        """Return what dask computes, and ask for all of it anew where a cluster was lost."""
        from dask import compute

        lost = None
        for _ in range(MOST_CLUSTERS):
            if self._array is not (array := self._table.array):
                self._array, self._chunks, self._sent = array, None, {}
            if not self._table.is_closed():
                try:
                    return list(compute(*asked()))
                except Exception as error:
                    is_loss = type(error).__module__.startswith("distributed.")
                    is_loss = is_loss and type(error).__name__ in LOSSES
                    if not (is_loss or self._table.is_closed()):
                        raise
                    lost = error
            try:
                self._table.open_again(array)
            except RuntimeError as error:
                raise error from lost
        raise RuntimeError(LOST) from lost

    def _delayed(self, call):
        from dask import delayed

        chunks = self._chunks
        if chunks is None:
            chunks = self._array.rechunk({1: -1}).to_delayed().ravel().tolist()
            self._chunks = chunks
        chunk = chunks[call.number] if call.of_part else None
        return delayed(call.function, pure=False)(chunk, *self._part(call.along, call.number))

    def _part(self, along, number):
        if isinstance(along, tuple):
            return tuple(self._part(values, number) for values in along)
        if along is None or isinstance(along, Beside):
            return along and self._kept(along, number)
        if id(along) not in (sent := self._sent):
            # Kept with what it was made of, whose id no other array has meanwhile.
            sent[id(along)] = along, self._send(along)
        return sent[id(along)][1][number]

    def _kept(self, beside, number):
        from dask import persist

        if beside.of is not self._array:
            beside.kept, beside.of = persist(*map(self._delayed, beside.calls)), self._array
        return beside.kept[number]

    def _send(self, values):
        from dask import delayed, persist

        # One by one: a message with the values of all rows would be large.
        slices = (values[slice(*rows)] for rows in pairwise(self._borders))
        return [persist(delayed(each, pure=False))[0] for each in slices]
