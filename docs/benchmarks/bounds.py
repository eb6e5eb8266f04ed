"""How many rows a search for bounds takes, and what comes out.

Usage: python docs/benchmarks/bounds.py [columns] [rows]

Prints the tables of ``docs/theory/statistics.md``, section 4: how many rows a bin needs to be seen
by bounds="auto" at epsilon = 1, then, for one column and delta = 0, the share of the rows inside
the bounds and the bounds' width, medians of `columns` (201; 3 for 1e7 rows) columns drawn anew for
up to `rows` (1e7) rows. The search spends a fifth of epsilon.
"""

import sys
import warnings

import numpy as np

from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape
from skdp.stats import estimate_bounds
from skdp.stats._bounds import BOUNDS_FRACTION, plan_search

COLUMNS = {
    "uniform on 17-90": lambda rng, n: rng.uniform(17, 90, n),
    "standard normal": lambda rng, n: rng.normal(size=n),
    "lognormal(10, 1/2)": lambda rng, n: rng.lognormal(10, 0.5, n),
    "7 in every row": lambda rng, n: np.full(n, 7.0),
}


def thresholds():
    print(f"{'columns':>8}  relation      δ = 0   δ = 1e-6")
    for d in (1, 3, 10, 100):
        for relation in ("add_remove", "replace_one"):
            neighbors = Neighbors(relation=relation)
            needed = [
                plan_search(
                    TableShape(n_rows=100, n_columns=d),
                    Guarantee(epsilon=1.0, delta=delta, neighbors=neighbors),
                )[0].mechanism.threshold
                for delta in (0.0, 1e-6)
            ]
            print(f"{d:8}  {relation:<12} {needed[0]:6.0f}   {needed[1]:8.0f}")


def found(draw, epsilon, n, repeats, rng):
    shares, widths = [], []
    for _ in range(repeats):
        column = draw(rng, n)
        low, high = estimate_bounds(column, BOUNDS_FRACTION * epsilon)
        shares.append(np.mean((column >= low) & (column <= high)))
        widths.append(high - low)
    return np.median(shares), np.median(widths)


def main(repeats=201, most=1e7):
    # Where nothing is found, the bounds in the table show it.
    warnings.simplefilter("ignore")
    thresholds()
    rng = np.random.default_rng()
    for name, draw in COLUMNS.items():
        for epsilon in (1.0, 10.0):
            for n in (100, 1000, 10_000, 10_000_000):
                if n <= most:
                    times = repeats if n < 1e6 else 3
                    share, width = found(draw, epsilon, n, times, rng)
                    print(f"{name:<20} ε = {epsilon:<4g} n = {n:<9} {share:.3f}, {width:.3g}")


if __name__ == "__main__":
    main(*(int(float(word)) for word in sys.argv[1:]))
