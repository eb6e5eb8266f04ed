"""Numbers as floats that are not below them."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

# More than the operations of one formula round by, relatively.
UP = 1.0 + 2.0**-50
DOWN = 1.0 - 2.0**-50


def float_up(number: Fraction) -> float:
    """The least float that is not below a rational number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    if nearest == math.inf or Fraction(nearest) >= number:
        return nearest
    return math.nextafter(nearest, math.inf)


def sum_up(counted) -> float:
    """The sum of count * cost over pairs (count, cost), costs at least 0, rounded up once."""
    counted = list(counted)
    if any(cost == math.inf for _, cost in counted):
        return math.inf
    return float_up(sum((Fraction(n) * Fraction(cost) for n, cost in counted), Fraction(0)))


def in_digits(*costs: float, digits: int = 6) -> str:
    """Epsilons and deltas for people: no text says less than was spent, but for float drift."""
    up = Context(prec=digits, rounding=ROUND_CEILING)
    kept = 1 - Decimal("1e-12")
    return ", ".join(f"{float(up.plus(Decimal(float(cost)) * kept)):g}" for cost in costs)
