"""Sources of randomness: the operating system, or an integer seed that is reported as such."""

import numbers
import os
import threading
import warnings
from contextvars import ContextVar

import numpy as np

from skdp.exceptions import SeededNoiseWarning


class _NotCopyable:
    """Base class of objects that cannot be pickled or copied, because noise would repeat."""

    __slots__ = ()

    def __reduce_ex__(self, protocol):
        # The modules pickle and copy both call this method.
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: noise would repeat")


_active_guard = ContextVar("guard", default=None)


class NoiseGuard:
    """A context in which noise can only be drawn from the source of one charged release.

    Before the source is set, no noise can be drawn. Guards nest: inside an inner guard only
    its source can be used. A thread or process that is started inside a guard has no guard.

    Attributes
    ----------
    source : RandomSource or None
        The only source of noise, None before the release is charged.

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
    """Return True if this thread is inside a `NoiseGuard`."""
    return _active_guard.get() is not None


class Stream(_NotCopyable):
    """Random bits for one release.

    Without a seed, each call reads a new block from the operating system and stores nothing.
    Therefore, no state can be repeated after a fork or shared by threads. With a seed, the bits are
    a function of the seed.

    Parameters
    ----------
    source : RandomSource
        The source that created the stream.
    seed : SeedSequence, default=None
        The seed; None for bits from the operating system.
    """

    __slots__ = ("_generator", "_pid", "_source")

    def __init__(self, source, seed=None):
        self._source = source
        self._pid = os.getpid()
        self._generator = None
        if seed is not None:
            self._generator = np.random.PCG64(seed)

    def words(self, n):
        """Return `n` independent uniform integers of 64 bits.

        Parameters
        ----------
        n : int
            Number of integers.

        Returns
        -------
        ndarray of shape (n,), dtype uint64

        Raises
        ------
        RuntimeError
            If it is called inside a private release whose charge did not return the source of this
            stream, or if the stream is seeded and the process is a fork of its creator.
        """
        guard = _active_guard.get()
        if guard is not None and guard.source is not self._source:
            problem = "before the release was charged"
            if guard.source is not None:
                problem = "from another source"
            raise RuntimeError(
                f"noise was to be drawn {problem}: a private fit can use only the source that "
                "charge returns; pass that source on as random_state"
            )
        if self._generator is None:
            return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        _refuse_after_fork(self._pid)
        return self._generator.random_raw(n)


def check_seed(random_state):
    """Raise `ValueError` unless a `random_state` is None or an integer >= 0.

    Parameters
    ----------
    random_state : object
        The value to check.
    """
    is_seed = isinstance(random_state, numbers.Integral) and type(random_state) is not bool
    if not (random_state is None or (is_seed and random_state >= 0)):
        raise ValueError(
            f"random_state must be None or an integer >= 0, got {random_state!r}; generators "
            "are not accepted, because their state can be copied"
        )


class RandomSource(_NotCopyable):
    """A source of independent random streams, one for each release.

    With ``random_state=None``, all bits come from the operating system's cryptographic
    generator, read in blocks. With an integer, they are reproducible: the i-th call of `stream`
    returns the i-th stream spawned from the seed, and anyone who knows the seed can subtract the
    noise.

    A source cannot be pickled or copied. After a fork, the operating system's bits differ between
    the two processes, and a seeded source raises an error in the child, where it would repeat the
    parent's noise. Several threads may call `stream` at once.

    Parameters
    ----------
    random_state : None or int, default=None
        None for the operating system's generator, an integer >= 0 for a reproducible source.

    Attributes
    ----------
    seeded : bool
        True if the noise can be reproduced from a seed.

    Raises
    ------
    ValueError
        If `random_state` is neither None nor a non-negative integer.

    Warns
    -----
    SeededNoiseWarning
        For every source that is created from an integer.

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

    def __init__(self, random_state: int | None = None):
        check_seed(random_state)
        self._seeds = None
        if random_state is not None:
            self._seeds = np.random.SeedSequence(int(random_state))
        self._lock = threading.Lock()
        self._pid = os.getpid()
        if self.seeded:
            warnings.warn(
                "noise drawn from an integer random_state gives no privacy against anyone who "
                "knows or guesses the seed; use random_state=None for a real release",
                SeededNoiseWarning,
                stacklevel=2,
            )

    @property
    def seeded(self):
        """True if the noise can be reproduced from a seed."""
        return self._seeds is not None

    def __repr__(self):
        return f"RandomSource(seeded={self.seeded})"

    def stream(self):
        """Return a new stream, independent of all others.

        Returns
        -------
        Stream
            An object whose ``words(n)`` returns `n` uniform 64-bit integers.

        Raises
        ------
        RuntimeError
            If the source is seeded and the process is a fork of its creator.
        """
        if not self.seeded:
            return Stream(self)
        _refuse_after_fork(self._pid)
        with self._lock:
            return Stream(self, self._seeds.spawn(1)[0])


# Values that a `random_state` parameter accepts.
SourceLike = int | RandomSource | None


def as_source(random_state: SourceLike) -> RandomSource:
    """Return `random_state` if it is a `RandomSource`, else a new source created from it.

    Parameters
    ----------
    random_state : None, int or RandomSource
        None is the operating system's generator. An integer seed makes the noise reproducible.

    Returns
    -------
    RandomSource

    Examples
    --------
    >>> from skdp.noise import as_source
    >>> as_source(None).seeded
    False
    """
    if isinstance(random_state, RandomSource):
        return random_state
    return RandomSource(random_state)


def _refuse_after_fork(pid):
    """Raise RuntimeError unless this is the process that created a seeded source or stream."""
    if os.getpid() != pid:
        raise RuntimeError(
            "a seeded RandomSource was used in a fork of its process, where it would repeat the "
            "parent's noise; create a RandomSource in the child process"
        )
