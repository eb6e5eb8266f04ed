"""Composition theorems on (epsilon, delta) pairs (Kairouz, Oh and Viswanath 2015)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from scipy.special import betaln

from skdp.accounting._gaussian import least_epsilon
from skdp.utils._validation import check_within

_MAX_TERMS = 40_000


@lru_cache(maxsize=64)
def _binomial_losses(epsilon0: float, count: int):
    """(losses, probabilities, mass left out) of `count` randomised responses, or None if the
    20 standard deviations that matter are too many terms."""
    if count > 2**53 or epsilon0 > 1e15:
        return None
    rate = 1.0 / (1.0 + math.exp(min(epsilon0, 700.0)))
    reach = 20.0 * math.sqrt(count * rate * (1.0 - rate)) + 60.0
    first, last = max(0, math.floor(count * rate - reach)), math.ceil(count * rate + reach)
    last = min(count, last)
    if last - first > _MAX_TERMS:
        return None
    i = np.arange(first, last + 1, dtype=float)
    log_choose = -math.log1p(count) - betaln(count - i + 1.0, i + 1.0)
    log_choose[(i == 0.0) | (i == count)] = 0.0
    log_p = log_choose - i * epsilon0 - count * np.logaddexp(0.0, -epsilon0)
    # Terms fall away from the mean, so that those left out are no larger than the ends.
    left_out = first * math.exp(float(log_p[0]))
    return (count - 2.0 * i) * epsilon0, np.exp(log_p), left_out


def optimal_delta(epsilon0: float, count: int, epsilon: float, delta0: float = 0.0) -> float:
    """delta of `count` releases of (epsilon0, delta0)-DP at epsilon: exact (theorem 3.3).

    1 - delta = (1 - delta0)^count (1 - the sum over the losses (count - 2 i) epsilon0 of
    binomial probabilities times (1 - e^(epsilon - loss))). Returns 1 when the sum would be
    too long.
    """
    pure = 0.0
    if epsilon < count * epsilon0:
        terms = _binomial_losses(epsilon0, count)
        if terms is None:
            return 1.0
        losses, probabilities, left_out = terms
        pure = float(probabilities @ -np.expm1(np.minimum(epsilon - losses, 0.0))) + left_out
        pure = min(1.0, pure * (1.0 + 1e-15 * max(10.0, count**0.5)))
    if delta0 == 0.0:
        return pure
    kept = count * math.log1p(-delta0) if delta0 < 1.0 else -math.inf
    return min(1.0, -math.expm1(kept) + math.exp(kept) * pure)


def optimal_epsilon(epsilon0: float, count: int, delta: float, delta0: float = 0.0) -> float:
    """The least epsilon with `optimal_delta` at most delta."""
    spare = spare_delta([delta0], [count], delta)
    if spare < 0.0 or epsilon0 == math.inf:
        return math.inf
    most = count * epsilon0
    found = least_epsilon(lambda e: optimal_delta(epsilon0, count, e), min(spare, 1.0), most)
    # Losses are rounded by a share of the largest one, and an epsilon near a loss as much.
    return min(most, found + 2.0**-50 * most) if found > 0.0 else 0.0


def spare_delta(deltas, counts, delta):
    """delta' with 1 - delta = (1 - delta') prod (1 - delta_i)^count_i; negative if none."""
    if any(d >= 1.0 and c > 0 for d, c in zip(deltas, counts, strict=True)):
        return -1.0 if delta < 1.0 else 1.0
    if delta >= 1.0:
        return 1.0
    log_kept = math.fsum(c * math.log1p(-d) for d, c in zip(deltas, counts, strict=True))
    spare = -math.expm1(math.log1p(-delta) - log_kept)
    return spare * (1.0 - 1e-15) if spare > 0.0 else spare


def advanced_epsilon(pairs: Iterable[tuple[float, ...]], delta: float) -> float:
    """Return epsilon at delta of releases that are (epsilon_i, delta_i)-DP (theorem 3.5).

    For a schedule fixed beforehand: it is no filter.

    Parameters
    ----------
    pairs : iterable of (float, float) or of (float, float, int)
        epsilon and delta of each release, and how often it occurs.
    delta : float in [0, 1]
        The total, the deltas of the releases included: 1 - (1 - delta') prod (1 - delta_i).

    Returns
    -------
    float
        The least of the plain sum and the two advanced bounds; infinite when the deltas
        alone exceed the total.

    Examples
    --------
    >>> from skdp.accounting import advanced_epsilon
    >>> round(advanced_epsilon([(0.1, 0.0)] * 100, 1e-6), 4)
    5.7561
    """
    check_within(delta, "delta", 0.0, 1.0)
    pairs = [(*pair, 1)[:3] for pair in pairs]
    if not pairs:
        return 0.0
    epsilons = np.array([float(pair[0]) for pair in pairs])
    counts = np.array([float(pair[2]) for pair in pairs])
    spare = spare_delta([float(p[1]) for p in pairs], [p[2] for p in pairs], float(delta))
    plain = float(math.fsum(epsilons * counts)) * (1.0 + 1e-15)
    if spare < 0.0 or not math.isfinite(plain):
        return math.inf
    if spare == 0.0:
        return plain
    squares = float(counts @ epsilons**2)
    mean = float(counts @ (epsilons * np.tanh(0.5 * epsilons)))
    slack = (
        2.0
        * squares
        * min(-math.log(min(spare, 1.0)), math.log(math.e + math.sqrt(squares) / spare))
    )
    return min(plain, (mean + math.sqrt(max(0.0, slack))) * (1.0 + 1e-14))
