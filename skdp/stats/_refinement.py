"""The second step of a search for bounds: finer bounds of columns that lie in few of its bins.

Seconds since 1970 within a day, or measurements around a large offset, lie in one or two of the
exponentially spaced bins, whose width says nothing of theirs. Their bins are divided into equal
cells, which are counted with noise.
"""

from dataclasses import dataclass
from math import inf, nextafter, sqrt

import numpy as np

from skdp._data._parts import Rows
from skdp._data._persons import count_over, counts_of, shares_of
from skdp.accounting import Gaussian, PureDP
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import PlanValue
from skdp.mechanisms._stages import Stage

# Fraction of the search's epsilon, or of its mu**2 with Gaussian noise, that the refinement has.
# Ordinary columns pay for it by a threshold that is 5 % higher (2.6 % with Gaussian noise).
REFINEMENT_FRACTION = 0.05
# Number of equal cells of each column. It sets how narrow a column may be: 2**-13 of its bin.
N_CELLS = 1 << 13
# The bounds of a column are replaced only by bounds that are so many times narrower, so that those
# of ordinary columns stay.
MIN_GAIN = 4
# Fraction of the noisy counts of a column's bins that its new bounds must hold.
COVERAGE = 0.98
# The probability that a column has an empty block of cells that is taken to be occupied.
FALSE_ALARM = 1e-4
# Relative slack for the rounding of noise multipliers: raises noise, never lowers it.
SLACK = 1.0 + 2.0**-40
BLOCK_VALUES = 1 << 16


@dataclass(frozen=True)
class Refined:
    """Bounds of one column after the second step.

    Parameters
    ----------
    low, high : float
    is_seen : bool
        True if values stood out of the noise, so that the bounds are known to be good.
    """

    low: float
    high: float
    is_seen: bool


class RefinementPlan(PlanValue):
    r"""Finer bounds of narrow columns, from noisy counts of equal cells between their bounds.

    Which columns are narrow, and their bounds, was released by the first step. Given these, a row
    is in at most one cell of each of the k narrow columns, so that counts of all cells move by
    m k in L1 norm and by :math:`\sqrt{m k}` in L2 norm, with m = 1 under add/remove and 2 under
    replace-one. The noise is calibrated to this k: the price is the same for every outcome of
    the first step, so that the two steps compose adaptively.

    Parameters
    ----------
    guarantee : Guarantee
        Of the whole search.
    n_columns : int
        The number of columns of which some may be narrow.
    whole : GeometricMechanism, LaplaceMechanism or GaussianMechanism
        What the whole search would release if it had one step.
    share : float
        The epsilon that is left for the refinement where the noise is not Gaussian.

    References
    ----------
    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022 (adaptive composition).
    """

    guarantee: object
    n_columns: int
    whole: object
    share: float

    @property
    def event(self):
        """The price for every number of narrow columns."""
        if isinstance(self.whole, GaussianMechanism):
            return Gaussian(self.whole.noise_multiplier / sqrt(REFINEMENT_FRACTION))
        return PureDP(self.share)

    def mechanism(self, n_narrow):
        """Return the noise on the cells of some number of narrow columns."""
        moved = n_narrow * self.guarantee.neighbors.sensitivity_factor
        if isinstance(self.whole, GaussianMechanism):
            return gaussian_part(self.whole, REFINEMENT_FRACTION, nextafter(sqrt(moved), inf))
        return type(self.whole)(self.share, moved)

    @property
    def stage(self):
        """The stage of a privacy statement, with the noise for as many narrow columns as can be."""
        mechanism = self.mechanism(self.n_columns)
        return Stage(
            name="finer bounds of narrow columns",
            law=f"{mechanism.name} on equal cells",
            scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            event=self.event,
        )

    def run(self, X, low, high, totals, source, persons=None):
        """Release finer bounds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Numbers, read block by block.
        low, high : ndarray of shape (n_columns,)
            The bounds that the first step released; NaN for columns that are not narrow.
        totals : ndarray of shape (n_columns,)
            The noisy counts of the first step between these bounds.
        source : RandomSource
            What the charge returned.
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        dict of int to Refined
            One for each narrow column.
        """
        narrow = np.flatnonzero(low == low)
        if not len(narrow):
            return {}
        size = len(narrow) * N_CELLS
        table = Rows.of(X).sized(max(1, max(BLOCK_VALUES, size) // X.shape[1]))
        args = size, narrow, low[narrow], high[narrow]
        counts = count_over(table, _add_cells, *args, shares=shares_of(persons))
        mechanism = self.mechanism(len(narrow))
        noisy = mechanism.release(counts, random_state=source).reshape(len(narrow), N_CELLS)
        return {
            j: refined_bounds(cells, low[j], high[j], totals[j], mechanism, size)
            for j, cells in zip(narrow.tolist(), noisy, strict=True)
        }


def gaussian_part(whole, fraction, sensitivity):
    """Return Gaussian noise of a sensitivity whose mu**2 is a fraction of another one's."""
    multiplier = whole.noise_multiplier / sqrt(fraction) * SLACK
    return GaussianMechanism.from_scale(multiplier * sensitivity * SLACK, sensitivity, whole.delta)


def refined_bounds(noisy, low, high, total, mechanism, size):
    """Return the `Refined` bounds of one column.

    The cells that stand out of the noise are widened until they hold most of the column's noisy
    count. Tails that are spread over many cells do not stand out, and are held by this.

    Parameters
    ----------
    noisy : ndarray of shape (N_CELLS,)
        Noisy counts of equal cells between `low` and `high`.
    low, high : float
    total : float
        The noisy count between these bounds, from the first step.
    mechanism : mechanism
        That made the counts.
    size : int
        How many values it released together.
    """
    marked = occupied_cells(noisy, mechanism, size)
    if not marked.any():
        return Refined(low, high, is_seen=False)
    first, last = int(marked.argmax()), N_CELLS - int(marked[::-1].argmax())
    margin = max(1, (last - first) // 2)
    while True:
        start, end = max(0, first - margin), min(N_CELLS, last + margin)
        if (end - start) * MIN_GAIN > N_CELLS:
            return Refined(low, high, is_seen=True)
        if noisy[start:end].sum() >= COVERAGE * total:
            width = (high - low) / N_CELLS
            return Refined(low + start * width, low + end * width, is_seen=True)
        margin *= 2


def occupied_cells(noisy, mechanism, size):
    """Return which cells are taken to be occupied.

    Those that stand out of the noise and, of blocks of 2, 4, 8, ... cells in which none does, all
    where their sum stands out of the noise of a sum: so values are seen that are spread widely.
    """
    marked = np.zeros(N_CELLS, dtype=bool)
    for level in range(N_CELLS.bit_length()):
        threshold = mechanism.tail(FALSE_ALARM / (2 * N_CELLS), size, 1 << level)
        is_above = noisy.reshape(-1, 1 << level).sum(axis=1) > threshold
        is_new = is_above & ~marked.reshape(-1, 1 << level).any(axis=1)
        marked |= np.repeat(is_new, 1 << level)
    return marked


def _add_cells(counts, block, shares, narrow, low, high):
    values = np.asarray(block, dtype=np.float64)[:, narrow]
    # No warning may tell of a value that overflows. Every operation is row-wise to the last bit.
    with np.errstate(all="ignore"):
        is_inside = (values >= low) & (values < high)
        places = (values - low) / ((high - low) / N_CELLS)
    places = np.minimum(np.where(is_inside, places, 0.0).astype(np.int64), N_CELLS - 1)
    places += np.arange(len(narrow)) * N_CELLS
    if shares is not None:
        shares = np.broadcast_to(shares[:, np.newaxis], places.shape)[is_inside]
    counts += counts_of(places[is_inside], shares, counts.size)
