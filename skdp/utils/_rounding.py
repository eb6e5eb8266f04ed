"""Rounding numbers up."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

# Factors that exceed the relative rounding errors of the operations in a formula.
UP = 1.0 + 2.0**-50
DOWN = 1.0 - 2.0**-50
# Above this number, no intermediate result has lost digits to underflow.
_MIN_PRECISE = 1e-300
_SMALLEST_DOUBLE = 2.0**-1074


def float_up(number: Fraction) -> float:
    """Return the smallest float that is at least a rational number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    if nearest == math.inf or Fraction(nearest) >= number:
        return nearest
    return math.nextafter(nearest, math.inf)


def up_from_underflow(bound: float) -> float:
    """Return an upper bound on a positive number whose computation may have underflowed.

    Below the smallest normal double, about 2e-308, a result has an absolute rounding error of the
    smallest double; it may be 0.
    """
    if bound >= _MIN_PRECISE:
        return bound
    return bound + _SMALLEST_DOUBLE


def sum_up(counted) -> float:
    """Return the sum of count * cost over pairs (count, cost) with costs >= 0, rounded up once."""
    counted = list(counted)
    if any(cost == math.inf for _, cost in counted):
        return math.inf
    return float_up(sum((Fraction(n) * Fraction(cost) for n, cost in counted), Fraction(0)))


def format_rounded_up(*costs: float, digits: int = 6) -> str:
    """Return epsilons and deltas as text, rounded up in their last digit.

    A relative 1e-12 is subtracted first, so that a floating-point rounding error does not raise the
    last digit.
    """
    context = Context(prec=digits, rounding=ROUND_CEILING)
    factor = 1 - Decimal("1e-12")
    return ", ".join(f"{float(context.plus(Decimal(float(cost)) * factor)):g}" for cost in costs)
