"""Samplers of the rows for each step, which never depend on the data.

Each class draws the batches of many steps at a time from a stream and yields them one by one, as
sorted arrays of distinct row numbers (None for all rows). Its `rule` describes the sampling for
privacy statements, which name the privacy unit: "each row with probability 0.01, independently", or
the same with "person".
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.noise import geometric, uniform_integers
from skdp.utils._units import UnitText
from skdp.utils._validation import check_integer, check_within
from skdp.utils._values import FrozenValue, checked

# Number of rows that are drawn at once.
BLOCK_ROWS = 1 << 14
# Maximum mean number of trials until the next success.
MAX_WAITING_TIME = 2.0**48


@dataclass(frozen=True)
class PoissonBatches(FrozenValue):
    """Batches that contain each row with the same probability, independently of all others.

    The trials of all rows and steps form one sequence. The waiting times between successes are
    drawn exactly. The probability is ``1 - exp(-1 / scale)``, where the float `scale` is such that
    it is at most `rate`, and smaller by at most a relative 2**-48. At a lower rate, the privacy
    loss is no greater. Time and memory do not depend on the number of rows.

    Parameters
    ----------
    n_rows : int
    rate : float in (0, 1]
    """

    n_rows: int
    rate: float = checked(check_within, low=0.0, high=1.0, ends="(]")

    def __post_init__(self):
        super().__post_init__()
        if self.rate < 1.0 and not self._scale <= MAX_WAITING_TIME:
            raise ValueError(
                f"rate is {self.rate!r}, which is too small: all batches would be empty; use "
                "larger batches"
            )

    @property
    def max_size(self):
        """The size of the largest possible batch."""
        return self.n_rows

    @property
    def rule(self):
        """Description of the sampling: a `UnitText`, with a text for rows and one for persons."""
        rate = f"with probability {self.rate:.4g}, independently"

        def rule_of(unit):
            return f"each {unit} {rate}"

        return UnitText(rule_of)

    @property
    def expected_size(self):
        """The expected size of a batch."""
        return self.rate * self.n_rows

    @property
    def _scale(self):
        """The scale of the waiting times."""
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
            Row indices, sorted; there may be none.
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
                if step:
                    rows = rows - step * self.n_rows
                yield rows
                start = end

    def _successes(self, n_trials, stream):
        """Return the indices of the trials that succeed.

        Waiting times are memoryless, so successes beyond the last trial can be dropped.
        """
        blocks = []
        last = -1
        while last < n_trials:
            expected = (n_trials - 1 - last) * self.rate
            count = min(int(expected + 4.0 * math.sqrt(expected)) + 16, 4 * BLOCK_ROWS)
            waits = geometric(self._scale, count, stream)
            waits += 1
            # The index of the first success of this block. Before the first block, `last` is -1,
            # the index before the first trial.
            waits[0] += last
            blocks.append(np.cumsum(waits, out=waits))
            last = int(waits[-1])
        blocks[-1] = blocks[-1][: np.searchsorted(blocks[-1], n_trials)]
        if len(blocks) == 1:
            return blocks[0]
        return np.concatenate(blocks)


@dataclass(frozen=True)
class FixedSizeBatches(FrozenValue):
    """Batches that are uniformly random sets of `size` rows, independent of each other.

    Parameters
    ----------
    n_rows : int
    size : int
        Number of rows in a batch, from 1 to `n_rows`.
    """

    n_rows: int
    size: int

    def __post_init__(self):
        check_integer(self.size, "size", 1, self.n_rows)

    @property
    def max_size(self):
        """The size of each batch."""
        return self.size

    @property
    def expected_size(self):
        """The size of each batch."""
        return self.size

    @property
    def rule(self):
        """Description of the sampling, a `UnitText`; see `PoissonBatches.rule`."""
        size = f"{self.size} of {self.n_rows}"

        def rule_of(unit):
            return f"{size} {unit}s without replacement"

        return UnitText(rule_of)

    def draw(self, n_steps, stream):
        """Yield the rows of each step.

        Parameters
        ----------
        n_steps : int
        stream : Stream

        Yields
        ------
        ndarray of shape (size,), dtype int64
            Sorted row indices.
        """
        # For large batches, the complement is drawn, because it has fewer rows.
        n_drawn = min(self.size, self.n_rows - self.size)
        draws_batch = n_drawn == self.size
        steps_at_once = max(1, BLOCK_ROWS // (n_drawn + 1))
        for first in range(0, n_steps, steps_at_once):
            n = min(steps_at_once, n_steps - first)
            for subset in _random_subsets(self.n_rows, n_drawn, n, stream):
                if draws_batch:
                    yield subset
                else:
                    yield np.delete(np.arange(self.n_rows), subset)


def _random_subsets(n_rows, size, n_steps, stream):
    """Return a matrix whose rows are uniformly random subsets of row indices, each sorted.

    Rows are drawn with replacement, and duplicates are drawn again. All rows are treated alike, so
    every subset has the same probability.
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


def _all_units(unit):
    """Return the rule of `FullBatches` for a unit."""
    return f"all {unit}s"


@dataclass(frozen=True)
class FullBatches(FrozenValue):
    """Batches of all rows.

    Parameters
    ----------
    n_rows : int
    """

    n_rows: int

    @property
    def max_size(self):
        """The number of rows."""
        return self.n_rows

    @property
    def expected_size(self):
        """The number of rows."""
        return self.n_rows

    @property
    def rule(self):
        """Description of the sampling, a `UnitText`; see `PoissonBatches.rule`."""
        return UnitText(_all_units)

    def draw(self, n_steps, stream):
        """Yield None, meaning all rows, once per step. Nothing is drawn.

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
