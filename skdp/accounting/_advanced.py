"""Composition theorems on (epsilon, delta) pairs (Kairouz, Oh and Viswanath 2015)."""

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np

from skdp.accounting._gaussian import smallest_epsilon
from skdp.utils._rounding import up_from_underflow
from skdp.utils._validation import check_within

# Maximum number of terms in a sum over numbers of failures. Beyond it, `optimal_delta` is 1.
_MAX_TERMS = 40_000
# Factor that rounds a product up.
_UP = 1.0 + 2.0**-52


@lru_cache(maxsize=64)
def _binomial_losses(epsilon0: float, count: int):
    """Return (losses, probabilities, omitted mass) for `count` randomized responses.

    The terms cover 20 standard deviations. The result is None if there are too many terms.
    """
    if count > 2**53 or epsilon0 > 1e15:
        return None
    rate = 1.0 / (1.0 + math.exp(min(epsilon0, 700.0)))
    reach = 20.0 * math.sqrt(count * rate * (1.0 - rate)) + 60.0
    first = max(0, math.floor(count * rate - reach))
    last = min(count, math.ceil(count * rate + reach))
    if last - first > _MAX_TERMS:
        return None
    i = np.arange(first, last + 1, dtype=float)
    # Logarithms of the ratios of probabilities to the largest one, as sums of neighbors' ratios.
    ratios = np.log((count - i[:-1]) / i[1:]) - epsilon0
    mode = int(np.searchsorted(-ratios, 0.0))
    ratios[:mode] *= -1.0

    def sum_from_mode(values):
        """Return cumulative sums outwards from the mode, on either side of it."""
        below = np.cumsum(values[:mode][::-1])[::-1]
        above = np.cumsum(values[mode:])
        return np.concatenate((below, [0.0], above))

    log_p = sum_from_mode(ratios)
    # A bound on the rounding errors of the ratios and of every partial sum.
    rounding = 2.0**-51 * sum_from_mode(1.0 + epsilon0 - ratios - np.delete(log_p, mode))
    p = np.exp(log_p + rounding) / math.fsum(np.exp(log_p - rounding))
    # Terms decrease away from the mean, so each omitted term is at most the term at an end.
    losses = (count - 2.0 * i) * epsilon0
    if count > 1:
        losses = losses * _UP
    return losses, p, first * float(p[0])


def optimal_delta(epsilon0: float, count: int, epsilon: float) -> float:
    """Return the exact delta of `count` epsilon0-DP releases at epsilon (theorem 3.3).

    It is the sum over the losses (count - 2 i) epsilon0 of binomial probabilities times
    (1 - e^(epsilon - loss)), rounded up. The result is 1 if the sum would be too long.
    """
    if epsilon >= _total_epsilon(epsilon0, count):
        return 0.0
    terms = _binomial_losses(epsilon0, count)
    if terms is None:
        return 1.0
    losses, probabilities, omitted_mass = terms
    delta = float(probabilities @ -np.expm1(np.minimum(epsilon - losses, 0.0))) + omitted_mass
    return min(1.0, up_from_underflow(delta * (1.0 + 1e-15 * max(10.0, count**0.5))))


def optimal_epsilon(epsilon0: float, count: int, delta: float, delta0: float = 0.0) -> float:
    """Return the exact smallest epsilon at delta for `count` (epsilon0, delta0)-DP releases.

    It is the epsilon of `count` epsilon0-DP releases at the delta' of `remaining_delta`.
    """
    delta_left = remaining_delta([delta0], [count], delta)
    if delta_left < 0.0 or epsilon0 == math.inf:
        return math.inf

    def delta_at(epsilon):
        return optimal_delta(epsilon0, count, epsilon)

    return smallest_epsilon(delta_at, min(delta_left, 1.0), _total_epsilon(epsilon0, count))


def _total_epsilon(epsilon0, count):
    """Return the sum of the epsilons, rounded up."""
    if count == 1:
        return epsilon0
    return count * epsilon0 * _UP


def total_delta(counted):
    """Return 1 - prod (1 - delta)^count over pairs (count, delta), rounded up."""
    log_product = math.fsum(n * math.log1p(-min(delta, 1.0 - 1e-16)) for n, delta in counted)
    return min(1.0, -math.expm1(log_product) * (1.0 + 2.0**-50))


def remaining_delta(deltas, counts, delta):
    """Return delta' with 1 - delta = (1 - delta') prod (1 - delta_i)^count_i, rounded down.

    The result is negative if there is no such delta' >= 0.
    """
    counted = [(d, int(c)) for d, c in zip(deltas, counts, strict=True) if d > 0.0 and c > 0]
    if not counted or delta >= 1.0:
        return delta
    if counted == [(delta, 1)]:
        return 0.0
    # The difference can be as small as the square of a delta. Therefore, 30 more digits are
    # computed.
    exponent = Decimal(min(delta or 1.0, *(d for d, _ in counted))).adjusted()
    digits = 60 + len(str(max(c for _, c in counted))) - 2 * exponent
    with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        product = math.prod((1 - Decimal(d)) ** c for d, c in counted)
        delta_left = 1 - (1 - Decimal(delta)) / product - Decimal(10) ** (2 * exponent - 30)
        return float(delta_left) * (1.0 - 2.0**-52)


def advanced_epsilon(pairs: Iterable[tuple[float, ...]], delta: float) -> float:
    """Return epsilon at delta for releases that are (epsilon_i, delta_i)-DP (theorem 3.5).

    The bound holds for releases whose parameters were fixed beforehand; it is not a privacy filter.
    `get_epsilon` uses it with method="advanced", and a ledger with composition="advanced" or "auto"
    uses it for the claimed costs of its charges.

    Parameters
    ----------
    pairs : iterable of (float, float) or of (float, float, int)
        Epsilon and delta of each release, and the number of such releases.
    delta : float in [0, 1]
        The total, including the deltas of the releases: 1 - (1 - delta') prod (1 - delta_i).

    Returns
    -------
    float
        The smallest of the sum and the two advanced bounds; infinite if the deltas alone exceed
        the total.

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
    delta_left = remaining_delta(deltas, [pair[2] for pair in pairs], float(delta))
    total = float(math.fsum(epsilons * counts)) * (1.0 + 1e-15)
    if delta_left < 0.0 or not math.isfinite(total):
        return math.inf
    if delta_left == 0.0:
        return total
    squares = float(counts @ epsilons**2)
    mean = float(counts @ (epsilons * np.tanh(0.5 * epsilons)))
    log_factor = min(
        -math.log(min(delta_left, 1.0)), math.log(math.e + math.sqrt(squares) / delta_left)
    )
    deviation = math.sqrt(max(0.0, 2.0 * squares * log_factor))
    return min(total, (mean + deviation) * (1.0 + 1e-14))
