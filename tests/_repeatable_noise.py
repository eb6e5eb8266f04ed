"""Noise that is the same in every run of the tests, though not predictable from a parameter.

`random_state=None` reads the operating system's generator, so a test that compares a score with a
tolerance would fail once in a while, in different places. During tests the bits come from a
generator whose seed is the name of the test, or the name of the fixture if several tests share
it. Processes that a test starts, forks included, still read the operating system's generator.
"""

import os
import zlib
from contextlib import contextmanager

import numpy as np

from skdp.noise import _source


class RepeatableSystem:
    """Stand-in for the module `os` where noise is drawn: `urandom` repeats from run to run."""

    def __init__(self):
        self._pid = os.getpid()
        self._generator = np.random.default_rng(0)

    def getpid(self):
        return os.getpid()

    def urandom(self, n_bytes):
        if os.getpid() != self._pid:
            # A fork would repeat the noise of the process that it was forked from.
            return os.urandom(n_bytes)
        return self._generator.bytes(n_bytes)

    def restart(self, name):
        """Draw the bits that belong to a name from now on."""
        self._generator = np.random.default_rng(zlib.crc32(name.encode()))

    @contextmanager
    def named(self, name):
        """Draw the bits that belong to a name, and afterwards go on with the others."""
        others = self._generator
        self.restart(name)
        try:
            yield
        finally:
            self._generator = others


SYSTEM = RepeatableSystem()


def make_noise_repeatable():
    """Use `SYSTEM` in this process for all noise that has no seed."""
    _source.os = SYSTEM
