"""Parts of an epsilon."""

from fractions import Fraction
from math import nextafter

__all__ = ["split_epsilon"]


def split_epsilon(epsilon, share):
    """Return two parts of epsilon that add up to no more than it, exactly.

    Parameters
    ----------
    epsilon : float
    share : float in (0, 1)
        Of the first part.

    Returns
    -------
    tuple of (float, float)
    """
    first = share * epsilon
    rest = epsilon - first
    while Fraction(first) + Fraction(rest) > Fraction(epsilon):
        rest = nextafter(rest, 0.0)
    return first, rest
