"""Composition theorems on (epsilon, delta) pairs (Kairouz, Oh and Viswanath 2015)."""

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np

from skdp.accounting._gaussian import least_epsilon
from skdp.utils._validation import check_within

_MAX_TERMS = 40_000
_UP = 1.0 + 2.0**-52


@lru_cache(maxsize=64)
def _binomial_losses(epsilon0: float, count: int):
    """(losses, probabilities, mass left out) of `count` randomized responses, or None if the
    20 standard deviations that matter are too many terms."""
    if count > 2**53 or epsilon0 > 1e15:
        return None
    rate = 1.0 / (1.0 + math.exp(min(epsilon0, 700.0)))
    reach = 20.0 * math.sqrt(count * rate * (1.0 - rate)) + 60.0
    first = max(0, math.floor(count * rate - reach))
    last = min(count, math.ceil(count * rate + reach))
    if last - first > _MAX_TERMS:
        return None
    i = np.arange(first, last + 1, dtype=float)
    # Logarithms of the probabilities over the largest one, each from its neighbor's.
    ratios = np.log((count - i[:-1]) / i[1:]) - epsilon0
    mode = int(np.searchsorted(-ratios, 0.0))
    ratios[:mode] *= -1.0

    def summed(values):
        before = np.cumsum(values[:mode][::-1])[::-1]
        behind = np.cumsum(values[mode:])
        return np.concatenate((before, [0.0], behind))

    log_p = summed(ratios)
    # What the ratios and each partial sum are rounded by at most.
    rounding = 2.0**-51 * summed(1.0 + epsilon0 - ratios - np.delete(log_p, mode))
    p = np.exp(log_p + rounding) / math.fsum(np.exp(log_p - rounding))
    # Terms fall away from the mean, so that those left out are no larger than the ends.
    up = 1.0 if count == 1 else _UP
    return (count - 2.0 * i) * epsilon0 * up, p, first * float(p[0])


def optimal_delta(epsilon0: float, count: int, epsilon: float) -> float:
    """delta of `count` epsilon0-DP releases at epsilon: exact (theorem 3.3).

    It is the sum over the losses (count - 2 i) epsilon0 of binomial probabilities times
    (1 - e^(epsilon - loss)). Returns 1 when the sum would be too long.
    """
    if epsilon >= _most(epsilon0, count):
        return 0.0
    terms = _binomial_losses(epsilon0, count)
    if terms is None:
        return 1.0
    losses, probabilities, left_out = terms
    delta = float(probabilities @ -np.expm1(np.minimum(epsilon - losses, 0.0))) + left_out
    return min(1.0, delta * (1.0 + 1e-15 * max(10.0, count**0.5)))


def optimal_epsilon(epsilon0: float, count: int, delta: float, delta0: float = 0.0) -> float:
    """The least epsilon at delta of `count` releases that are (epsilon0, delta0)-DP: exact.

    With delta' of `remaining_delta` it is that of as many epsilon0-DP releases at delta'.
    """
    spare = remaining_delta([delta0], [count], delta)
    if spare < 0.0 or epsilon0 == math.inf:
        return math.inf
    most = _most(epsilon0, count)
    return least_epsilon(lambda e: optimal_delta(epsilon0, count, e), min(spare, 1.0), most)


def _most(epsilon0, count):
    """Return the sum of the epsilons, rounded up."""
    return epsilon0 if count == 1 else count * epsilon0 * _UP


def total_delta(counted):
    """1 - prod (1 - delta)^count over pairs (count, delta), rounded up."""
    kept = math.fsum(n * math.log1p(-min(delta, 1.0 - 1e-16)) for n, delta in counted)
    return min(1.0, -math.expm1(kept) * (1.0 + 2.0**-50))


def remaining_delta(deltas, counts, delta):
    """delta' with 1 - delta = (1 - delta') prod (1 - delta_i)^count_i, rounded down; negative if
    there is none."""
    own = [(d, int(c)) for d, c in zip(deltas, counts, strict=True) if d > 0.0 and c > 0]
    if not own or delta >= 1.0:
        return delta
    if own == [(delta, 1)]:
        return 0.0
    # The difference is as small as the square of a delta: it has 30 digits more than that.
    least = Decimal(min(delta or 1.0, *(d for d, _ in own))).adjusted()
    digits = 60 + len(str(max(c for _, c in own))) - 2 * least
    with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        kept = math.prod((1 - Decimal(d)) ** c for d, c in own)
        spare = 1 - (1 - Decimal(delta)) / kept - Decimal(10) ** (2 * least - 30)
        return float(spare) * (1.0 - 2.0**-52)


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
    epsilons = np.array([check_within(pair[0], "epsilon", 0.0) for pair in pairs])
    deltas = [check_within(pair[1], "delta", 0.0, 1.0) for pair in pairs]
    counts = np.array([check_within(pair[2], "count", 0.0) for pair in pairs])
    spare = remaining_delta(deltas, [pair[2] for pair in pairs], float(delta))
    plain = float(math.fsum(epsilons * counts)) * (1.0 + 1e-15)
    if spare < 0.0 or not math.isfinite(plain):
        return math.inf
    if spare == 0.0:
        return plain
    squares = float(counts @ epsilons**2)
    mean = float(counts @ (epsilons * np.tanh(0.5 * epsilons)))
    logarithm = min(-math.log(min(spare, 1.0)), math.log(math.e + math.sqrt(squares) / spare))
    spread = math.sqrt(max(0.0, 2.0 * squares * logarithm))
    return min(plain, (mean + spread) * (1.0 + 1e-14))
