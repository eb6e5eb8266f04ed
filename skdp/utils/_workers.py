"""Functions of the chunks of a dask array, called where the chunks are computed.

Dask is asked for sums, on whatever scheduler is current: a cluster's, or threads. A chunk goes
nowhere, and is forgotten when its sum is there unless the array was persisted. What goes with the
rows is sent once, and what is held of them is persisted. Each call can be made again, so dask
repeats those of a worker that died.
"""

from concurrent.futures import CancelledError
from functools import partial
from itertools import pairwise

import numpy as np

from skdp._version import __version__
from skdp.utils._one_thread import one_thread

LOST = (
    "the dask cluster was lost before it had computed a sum: its scheduler ended, or cancelled it. "
    "Nothing is published. What the fit had charged stays charged, as noise may have been drawn: a "
    "new fit is a new charge"
)


class Beside:
    """Values that go with the rows, each part's where the part is.

    Parameters
    ----------
    parts : list of persisted Delayed
    """

    def __init__(self, parts):
        self.parts = parts


class Workers:
    """What calls functions of the chunks of a dask array.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns), of known chunks
        Whose blocks are what it says.
    borders : tuple of int
        Where chunks begin, and the number of rows.
    """

    def __init__(self, array, borders):
        self._array, self._borders, self._chunks, self._sent = array, borders, None, {}

    def call(self, number, function, along, of_chunk=True):
        """Return the Delayed value of a function of a chunk, and of what goes with its rows.

        Parameters
        ----------
        number : int
            Of the chunk.
        function : callable
            Pure; it is sent, with whatever it holds.
        along : tuple of (array of shape (n_rows, ...), Beside, None, or tuple of such)
        of_chunk : bool, default=True
            Whether the chunk itself is needed; the function gets None for it otherwise.
        """
        from dask import delayed

        if self._chunks is None:
            whole = self._array.rechunk({1: -1})
            self._chunks = whole.to_delayed().ravel().tolist()
        call = delayed(partial(_call, __version__, function), pure=False)
        chunk = self._chunks[number] if of_chunk else None
        return call(chunk, self._part(along, number))

    def results(self, calls):
        """Return what calls return."""
        from dask import compute

        try:
            return compute(*calls)
        except CancelledError as error:
            raise RuntimeError(LOST) from error

    def made_of(self, value, function):
        """Return what a function makes of the value of a call, or of several, where that is."""
        from dask import delayed

        return self.results([delayed(function, pure=False)(value)])[0]

    def held(self, calls):
        """Return what calls return, a value a row, held where it was computed."""
        from dask import persist

        return Beside(persist(*calls))

    def _part(self, along, number):
        if isinstance(along, tuple):
            return tuple(self._part(values, number) for values in along)
        if along is None or isinstance(along, Beside):
            return along and along.parts[number]
        if id(along) not in self._sent:
            # Kept with what it was made of, whose id no other array has meanwhile.
            self._sent[id(along)] = along, self._send(along)
        return self._sent[id(along)][1][number]

    def _send(self, values):
        from dask import delayed, persist

        # One by one: a message with the values of all rows would be large.
        slices = (values[slice(*rows)] for rows in pairwise(self._borders))
        return [persist(delayed(each, pure=False))[0] for each in slices]


def _call(version, function, chunk, along):
    if version != __version__:
        raise RuntimeError(f"a worker has skdp {__version__}, the calling process {version}")
    # A worker's warnings would tell of rows.
    with one_thread(), np.errstate(all="ignore"):
        return function(chunk, along)
