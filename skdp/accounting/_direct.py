"""Composition of grid distributions by sums of positive terms alone.

A transform's round-off is a share of the largest tilted mass. Where rare samples carry all of
delta, no tilt brings that below delta; a convolution summed term by term errs relatively in every
mass, however small. It takes the square of the number of cells, so that it is kept for this case.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from skdp.accounting._grid import GridLoss, discretise, loss_range

__all__ = ["MAX_CELLS", "compose_directly"]

MAX_CELLS = 1 << 13
# The share of delta that one release, or one convolution, may move to infinity.
_TRIMMED = 1e-6
_UNIT = 2.0**-53


def compose_directly(counted_pairs, step: float, delta: float) -> GridLoss | None:
    """The distribution of the total loss, never below it; None if it would take too long.

    What is trimmed off the upper end, no more than about 1e-5 of delta, is mass at infinity;
    what is trimmed off the lower end moves up to the lowest loss kept.
    """
    total = sum(count for _, count in counted_pairs)
    share = _TRIMMED * delta / total
    result, cells = None, 0
    for pair, count in counted_pairs:
        grid, releases = discretise(pair, step, *loss_range(pair, share)), 1
        while count:
            if count & 1:
                result = grid if result is None else _sum_of(result, grid, share * total)
            count >>= 1
            if count:
                releases *= 2
                grid = _sum_of(grid, grid, share * releases)
            if max(len(grid.mass), len(result.mass) if result else 0) > 4 * MAX_CELLS:
                return None
            cells = max(cells, len(grid.mass), len(result.mass) if result else 0)
    # A mass of n releases is a sum of at most as many products as there are cells, n times over;
    # what underflows on the way is added.
    round_off = math.exp(2.0 * _UNIT * total * (cells + 100.0))
    lost = 1e-300 * total
    return replace(
        result,
        mass=result.mass * round_off,
        infinite=min(1.0, result.infinite * round_off + lost),
    )


def _sum_of(one: GridLoss, two: GridLoss, share: float) -> GridLoss:
    mass = np.convolve(one.mass, two.mass)
    infinite = one.infinite + two.infinite
    above, below = np.cumsum(mass[::-1]), np.cumsum(mass)
    cut = int(np.searchsorted(above, share, side="right"))
    low = min(int(np.searchsorted(below, share, side="right")), len(mass) - cut - 1)
    if cut:
        infinite += float(above[cut - 1])
        mass = mass[:-cut]
    if low > 0:
        mass = mass[low:].copy()
        mass[0] += float(below[low - 1])
    return GridLoss(one.step, one.first + two.first + max(low, 0), mass, infinite)
