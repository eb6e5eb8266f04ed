"""Where randomness comes from: the operating system, or a seed that is marked as one."""

import numbers
import os
import threading
import warnings
from contextvars import ContextVar

import numpy as np

from skdp.exceptions import SeededNoiseWarning


class _ExistsOnce:
    """Refuse every road by which a state of randomness could come to exist twice."""

    __slots__ = ()

    def __reduce_ex__(self, protocol):
        # The way of pickle, and of copy too.
        raise TypeError(f"a {type(self).__name__} is never copied: its noise would repeat")


_active_guard = ContextVar("guard", default=None)


class NoiseGuard:
    """A context inside which noise is drawn from the source of its release, and from no other.

    Until that source is set nothing is drawn at all. Doors nest: within an inner one the inner
    release's source is the only one. A thread or process that is started inside a guard has none.

    Attributes
    ----------
    source : RandomSource or None
        The only source of noise; None while there is none.

    Examples
    --------
    >>> from skdp.noise import NoiseGuard, RandomSource
    >>> with NoiseGuard() as guard:
    ...     guard.source = RandomSource()
    ...     words = guard.source.stream().words(3)
    """

    source = None

    def __enter__(self):
        self._token = _active_guard.set(self)
        return self

    def __exit__(self, *error):
        _active_guard.reset(self._token)


def is_inside_release():
    """Say whether a private release is going on in this thread."""
    return _active_guard.get() is not None


class Stream(_ExistsOnce):
    """Random bits for one release.

    Without a seed each request reads its own block from the operating system and nothing is kept
    between requests, so that there is no state to repeat after a fork and none to share among
    threads. With one the bits follow from it.
    """

    __slots__ = ("_bits", "_pid", "_source")

    def __init__(self, source, seed=None):
        self._source, self._pid = source, os.getpid()
        self._bits = None if seed is None else np.random.PCG64(seed)

    def words(self, n):
        """Return `n` independent uniform integers of 64 bits.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        ndarray of shape (n,), dtype uint64

        Raises
        ------
        RuntimeError
            Inside a private release, unless its charge returned the source of this stream; or if
            the stream is seeded and was carried over a fork.
        """
        guard = _active_guard.get()
        if guard is not None and guard.source is not self._source:
            when = "before the release was charged" if guard.source is None else "from elsewhere"
            raise RuntimeError(
                f"noise was to be drawn {when}: inside a private fit it comes only from the source "
                "that charge returns; pass that source on as random_state"
            )
        if self._bits is None:
            return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        _refuse_after_fork(self._pid)
        return self._bits.random_raw(n)


def check_seed(random_state):
    """Raise `ValueError` unless a `random_state` is None or a seed.

    Parameters
    ----------
    random_state : object
    """
    is_seed = isinstance(random_state, numbers.Integral) and type(random_state) is not bool
    if not (random_state is None or (is_seed and random_state >= 0)):
        raise ValueError(
            f"random_state must be None or an integer >= 0, got {random_state!r}; generators "
            "are not accepted, because their state can be copied"
        )


class RandomSource(_ExistsOnce):
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

    __slots__ = ("_lock", "_pid", "_seeds")

    def __init__(self, random_state=None):
        check_seed(random_state)
        self._seeds = None if random_state is None else np.random.SeedSequence(int(random_state))
        self._lock = threading.Lock()
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
        return self._seeds is not None

    def __repr__(self):
        return f"RandomSource(seeded={self.seeded})"

    def stream(self):
        """Return a new stream, independent of all others.

        Returns
        -------
        Stream
            An object whose ``words(n)`` gives `n` uniform 64-bit integers.

        Raises
        ------
        RuntimeError
            If the source is seeded and was carried over a fork.
        """
        if not self.seeded:
            return Stream(self)
        _refuse_after_fork(self._pid)
        with self._lock:
            return Stream(self, self._seeds.spawn(1)[0])


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


def _refuse_after_fork(pid):
    if os.getpid() != pid:
        raise RuntimeError(
            "a seeded source of noise was carried over a fork and would repeat the parent's "
            "noise; build a RandomSource in the child process"
        )
