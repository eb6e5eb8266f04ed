"""Where randomness comes from: the operating system, or a seed that is marked as one."""

import numbers
import os
import threading
import warnings

import numpy as np

from skdp.exceptions import SeededNoiseWarning


class _NotCopied:
    """Refuse every road by which a state of randomness could come to exist twice."""

    __slots__ = ()

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a {type(self).__name__} is never pickled: its noise would repeat")

    def __copy__(self):
        raise TypeError(f"a {type(self).__name__} is never copied: its noise would repeat")

    def __deepcopy__(self, memo):
        return self.__copy__()


class Stream(_NotCopied):
    """Random bits for one release, from the operating system's generator.

    Each request reads its own block from the operating system and nothing is kept between
    requests, so that there is no state to repeat after a fork and none to share among threads.
    """

    __slots__ = ()
    seeded = False

    def words(self, n):
        """Return `n` independent uniform integers of 64 bits.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        ndarray of shape (n,), dtype uint64
        """
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededStream(_NotCopied):
    """Random bits for one release, reproducible from a seed and a number of the stream."""

    __slots__ = ("_bits", "_pid")
    seeded = True

    def __init__(self, seed, number):
        self._pid = os.getpid()
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,)))

    def words(self, n):
        """Return `n` independent uniform integers of 64 bits.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        ndarray of shape (n,), dtype uint64
        """
        _refuse_after_fork(self._pid)
        return self._bits.random_raw(n)


class RandomSource(_NotCopied):
    """A source of independent random streams, one for each release.

    With ``random_state=None`` all bits come from the operating system's cryptographic
    generator, read in blocks. With an integer they are reproducible: the i-th call of
    `stream` gives the i-th stream that is spawned from the seed, and whoever knows the seed
    can subtract the noise.

    A source is never pickled and never copied. After a fork the operating system's bits are
    fresh in both processes; a seeded source raises in the child, where it would repeat the
    parent's noise. Streams may be asked for by several threads at once.

    Parameters
    ----------
    random_state : None or int, default=None
        None for the operating system's generator, an integer >= 0 for a reproducible source.

    Attributes
    ----------
    seeded : bool
        Whether the noise can be reproduced.

    Raises
    ------
    ValueError
        If `random_state` is neither None nor a non-negative integer.

    Warns
    -----
    SeededNoiseWarning
        Once for each source that is built from an integer.

    Examples
    --------
    >>> from skdp.noise import RandomSource
    >>> source = RandomSource()
    >>> source.seeded
    False
    >>> source.stream().words(3).dtype
    dtype('uint64')
    """

    __slots__ = ("_lock", "_next", "_pid", "_seed")

    def __init__(self, random_state=None):
        self._seed = _check_seed(random_state)
        self._lock = threading.Lock()
        self._next = 0
        self._pid = os.getpid()
        if self.seeded:
            warnings.warn(
                "noise drawn from an integer random_state gives no privacy against whoever "
                "knows or guesses the seed; use random_state=None for a real release",
                SeededNoiseWarning,
                stacklevel=2,
            )

    @property
    def seeded(self):
        return self._seed is not None

    def __repr__(self):
        return f"RandomSource(seeded={self.seeded})"

    def stream(self):
        """Return a new stream, independent of all others.

        Returns
        -------
        Stream or SeededStream
            An object whose ``words(n)`` gives `n` uniform 64-bit integers.

        Raises
        ------
        RuntimeError
            If the source is seeded and was carried over a fork.
        """
        if not self.seeded:
            return Stream()
        _refuse_after_fork(self._pid)
        with self._lock:
            number = self._next
            self._next += 1
        return SeededStream(self._seed, number)


# What stands for a source where a `random_state` is taken.
SourceLike = int | RandomSource | None


def as_source(random_state: SourceLike) -> RandomSource:
    """Return `random_state` if it is a `RandomSource`, else a new source built from it.

    Parameters
    ----------
    random_state : None, int or RandomSource
        None is the operating system's generator; an int makes noise that can be reproduced.

    Returns
    -------
    RandomSource
        The source.

    Examples
    --------
    >>> from skdp.noise import as_source
    >>> as_source(None).seeded
    False
    """
    return random_state if isinstance(random_state, RandomSource) else RandomSource(random_state)


def _check_seed(random_state):
    if random_state is None:
        return None
    is_integer = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if not is_integer or random_state < 0:
        raise ValueError(
            f"random_state must be None or an integer >= 0, got {random_state!r}; generators are "
            "not accepted, because their state can be copied"
        )
    return int(random_state)


def _refuse_after_fork(pid):
    if os.getpid() != pid:
        raise RuntimeError(
            "a seeded source of noise was carried over a fork and would repeat the parent's "
            "noise; build a RandomSource in the child process"
        )
