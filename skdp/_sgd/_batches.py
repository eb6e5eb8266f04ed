"""Which rows take part in each step: never a function of the data.

Each class draws the batches of many steps at a time from a stream and yields them one by one, as
sorted arrays of distinct row numbers (None for all rows); its `rule` says in words which rows go
into a step.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.noise import geometric, uniform_integers
from skdp.utils._units import UnitText
from skdp.utils._validation import check_integer, check_within
from skdp.utils._values import FrozenValue, checked

BLOCK_ROWS = 1 << 14
LARGEST_WAITING_TIME = 2.0**48


@dataclass(frozen=True)
class PoissonBatches(FrozenValue):
    """Each row takes part in each step with the same probability, independently of all else.

    The trials of all rows and steps form one sequence, of which the waiting times between
    successes are drawn exactly. The probability is ``1 - exp(-1 / scale)`` for a float `scale`
    that makes it at most `rate`, and below it by a relative 2**-48 at most; at a lower rate the
    privacy loss is no greater. Time and memory do not depend on the number of rows.

    Parameters
    ----------
    n_rows : int
    rate : float in (0, 1]
    """

    n_rows: int
    rate: float = checked(check_within, low=0.0, high=1.0, ends="(]")

    def __post_init__(self):
        super().__post_init__()
        if self.rate < 1.0 and not self._scale <= LARGEST_WAITING_TIME:
            raise ValueError(f"rate={self.rate!r} is too small: batches would all be empty")

    # The largest batch there can be.
    @property
    def largest(self):
        return self.n_rows

    @property
    def rule(self):
        """Which rows go into a step, in words."""
        rate = f"with probability {self.rate:.4g}, independently"
        return UnitText(lambda unit: f"each {unit} {rate}")

    @property
    def expected_size(self):
        return self.rate * self.n_rows

    @property
    def _scale(self):
        # The factor covers the rounding of the logarithm, the division and the product.
        return (1.0 + 2.0**-50) / -math.log1p(-self.rate)

    def draw(self, n_steps, stream):
        """Yield the rows of each step.

        Parameters
        ----------
        n_steps : int
        stream : Stream

        Yields
        ------
        ndarray of int64
            Sorted; possibly empty.
        """
        if self.rate == 1.0:
            yield from (np.arange(self.n_rows) for _ in range(n_steps))
            return
        steps_at_once = max(1, int(BLOCK_ROWS / (self.expected_size + 1.0)))
        for first in range(0, n_steps, steps_at_once):
            n = min(steps_at_once, n_steps - first)
            successes = self._successes(n * self.n_rows, stream)
            ends = np.searchsorted(successes, np.arange(1, n + 1) * self.n_rows)
            start = 0
            for step, end in enumerate(ends.tolist()):
                rows = successes[start:end]
                yield rows - step * self.n_rows if step else rows
                start = end

    def _successes(self, n_trials, stream):
        """Which of a sequence of trials succeed; what lies beyond them has no memory of them."""
        found = []
        last = -1
        while last < n_trials:
            expected = (n_trials - 1 - last) * self.rate
            count = min(int(expected + 4.0 * math.sqrt(expected)) + 16, 4 * BLOCK_ROWS)
            waits = geometric(self._scale, count, stream)
            waits += 1
            waits[0] += last
            found.append(np.cumsum(waits, out=waits))
            last = int(waits[-1])
        found[-1] = found[-1][: np.searchsorted(found[-1], n_trials)]
        return np.concatenate(found) if len(found) > 1 else found[0]


@dataclass(frozen=True)
class FixedSizeBatches(FrozenValue):
    """A uniformly random set of `size` rows in each step, independent of the other steps.

    Parameters
    ----------
    n_rows : int
    size : int
        At least 1, at most `n_rows`.
    """

    n_rows: int
    size: int

    def __post_init__(self):
        check_integer(self.size, "size", 1, self.n_rows)

    @property
    def largest(self):
        return self.size

    @property
    def expected_size(self):
        return self.largest

    @property
    def rule(self):
        """Which rows go into a step, in words."""
        size = f"{self.size} of {self.n_rows}"
        return UnitText(lambda unit: f"{size} {unit}s without replacement")

    def draw(self, n_steps, stream):
        """Yield the rows of each step.

        Parameters
        ----------
        n_steps : int
        stream : Stream

        Yields
        ------
        ndarray of shape (size,), dtype int64
            Sorted.
        """
        left_out = self.n_rows - self.size
        drawn = min(self.size, left_out)
        steps_at_once = max(1, BLOCK_ROWS // (drawn + 1))
        for first in range(0, n_steps, steps_at_once):
            n = min(steps_at_once, n_steps - first)
            for subset in _subsets(self.n_rows, drawn, n, stream):
                yield subset if drawn == self.size else np.delete(np.arange(self.n_rows), subset)


def _subsets(n_rows, size, n_steps, stream):
    """Uniformly random subsets, sorted, one a line.

    Rows are drawn with replacement, and again for those that were there already. No row is
    preferred to another in any of this, so every subset has the same probability.
    """
    keys = np.empty(0, dtype=np.int64)
    missing = np.full(n_steps, size)
    starts = np.arange(n_steps) * n_rows
    edges = np.append(starts, n_steps * n_rows)
    while missing.any():
        more = uniform_integers(n_rows, int(missing.sum()), stream)
        more += np.repeat(starts, missing)
        keys = np.unique(np.concatenate([keys, more]))
        missing = size - np.diff(np.searchsorted(keys, edges))
    return keys.reshape(n_steps, size) - starts[:, None]


@dataclass(frozen=True)
class FullBatches(FrozenValue):
    """All rows in each step.

    Parameters
    ----------
    n_rows : int
    """

    n_rows: int

    @property
    def largest(self):
        return self.n_rows

    @property
    def expected_size(self):
        return self.largest

    rule = UnitText(lambda unit: f"all {unit}s")

    def draw(self, n_steps, stream):
        """Yield None, for all rows, once for each step; nothing is drawn.

        Parameters
        ----------
        n_steps : int
        stream : Stream

        Yields
        ------
        None
        """
        for _ in range(n_steps):
            yield None
