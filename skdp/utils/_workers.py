"""Functions of the chunks of a dask array, called where the chunks are computed.

Dask is asked for sums, on whatever scheduler is current: a cluster's, or threads. A chunk goes
nowhere, and is forgotten when its sum is there unless the array was persisted. What goes with the
rows is sent once, and what is held of them is persisted. Each call can be made again, so dask
repeats those of a worker that died.
"""

from functools import partial
from itertools import pairwise

import numpy as np


class Beside(tuple):
    """Values that go with the rows, each part's where the part is: persisted Delayed."""


class Workers:
    """What calls functions of the chunks of a dask array.

    Parameters
    ----------
    array : dask array of shape (n_rows, n_columns), of known chunks
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
        rows = self._borders[number : number + 2]
        shape = (rows[1] - rows[0], self._array.shape[1])
        call = delayed(partial(_call, function, shape, self._array.dtype), pure=False)
        chunk = self._chunks[number] if of_chunk else None
        return call(chunk, self._part(along, number))

    def results(self, calls):
        """Return what calls return."""
        from dask import compute

        return compute(*calls)

    def made_of(self, value, function):
        """Return what a function makes of the value of a call, or of several, where that is."""
        from dask import delayed

        return delayed(function, pure=False)(value).compute()

    def held(self, calls):
        """Return what calls return, a value a row, held where it was computed."""
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


def _call(function, shape, dtype, chunk, along):
    chunk = None if chunk is None else np.asarray(chunk)
    if chunk is not None and (chunk.shape != shape or chunk.dtype != dtype):
        found = f"{chunk.dtype} of shape {chunk.shape}"
        raise ValueError(f"a block holds {found}, the dask array says {dtype} of shape {shape}")
    # A worker's warnings would tell of rows.
    with np.errstate(all="ignore"):
        return function(chunk, along)
