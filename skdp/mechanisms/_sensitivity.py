"""Sensitivities of common statistics, and how norms and relations bound one another."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Neighbors
from skdp.mechanisms._grid import round_up
from skdp.utils import _validation as checks
from skdp.utils._rounding import float_up

_NORMS = ("l1", "l2", "linf")


def sum_sensitivity(norm: float, relation: str = "add_remove") -> float:
    """Sensitivity of a sum of rows whose norm is bounded.

    Parameters
    ----------
    norm : float > 0
        Bound on each row, in L1, L2 or L-infinity; the sensitivity is in the same norm.
    relation : {"add_remove", "replace_one"}, default="add_remove"

    Returns
    -------
    float
        The bound under add/remove, twice that under replace-one.

    Examples
    --------
    >>> from skdp.mechanisms import sum_sensitivity
    >>> sum_sensitivity(0.5, "replace_one")
    1.0
    """
    norm = checks.check_positive(norm, "norm")
    rows = Neighbors(relation=relation).sensitivity_factor
    return checks.check_positive(rows * norm, "sensitivity")


def bounded_sum_sensitivity(
    bounds: tuple[ArrayLike, ArrayLike],
    relation: str = "add_remove",
    norm: str = "l1",
    *,
    n_features: int | None = None,
) -> float:
    """Sensitivity of a vector of column sums whose values lie within bounds.

    Parameters
    ----------
    bounds : tuple of (low, high)
        Scalars or arrays of shape (n_features,).
    relation : {"add_remove", "replace_one"}, default="add_remove"
    norm : {"l1", "l2", "linf"}, default="l1"
    n_features : int, default=None
        How many columns are summed. Required when both bounds are scalars; None takes the length
        of the arrays.

    Returns
    -------
    float
        The norm, rounded up, of ``max(|low|, |high|)`` under add/remove and of ``high - low``
        under replace-one, over all columns. `skdp.utils.exact_sum` moves by no more, but for one
        step of its grid a column under replace-one where a range does not hold 0.

    Raises
    ------
    ValueError
        If the bounds are not finite ranges, leave a sensitivity of zero or one beyond the floats,
        or are scalars without `n_features`.

    Examples
    --------
    >>> from skdp.mechanisms import bounded_sum_sensitivity
    >>> bounded_sum_sensitivity((-1.0, [3.0, 0.5]))
    4.0
    >>> bounded_sum_sensitivity((-1.0, 3.0), "replace_one", n_features=5)
    20.0
    """
    checks.check_relation(relation)
    checks.check_choice(norm, "norm", _NORMS)
    low, high = checks.broadcast_bounds(bounds, _count_features(bounds, n_features))
    sides = zip(low.tolist(), high.tolist(), strict=True)
    if relation == "add_remove":
        moved = [Fraction(max(abs(a), abs(b))) for a, b in sides]
    else:
        moved = [Fraction(b) - Fraction(a) for a, b in sides]
    if norm == "l1":
        bound = float_up(sum(moved, Fraction(0)))
    elif norm == "linf" or len(moved) == 1:
        bound = float_up(max(moved))
    else:
        # The library's rounding is covered; it neither overflows nor underflows on the way.
        bound = round_up(math.hypot(*map(float_up, moved)) * (1.0 + 2.0**-50))
    return checks.check_positive(bound, "sensitivity")


def histogram_sensitivity(relation: str = "add_remove", norm: str = "l1") -> float:
    """Sensitivity of the counts of disjoint bins.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}, default="add_remove"
    norm : {"l1", "l2", "linf"}, default="l1"

    Returns
    -------
    float
        1 under add/remove; under replace-one 2 in L1, sqrt(2) in L2, 1 in L-infinity.

    Examples
    --------
    >>> from skdp.mechanisms import histogram_sensitivity
    >>> histogram_sensitivity("replace_one", "l1")
    2.0
    """
    checks.check_choice(norm, "norm", _NORMS)
    checks.check_relation(relation)
    replaced = {"l1": 2.0, "l2": round_up(math.sqrt(2.0)), "linf": 1.0}[norm]
    return 1.0 if relation == "add_remove" else replaced


def convert_sensitivity(sensitivity: float, n_values: int, source: str, target: str) -> float:
    """Bound a sensitivity in one norm by that in another.

    ``L2 <= L1 <= sqrt(d) L2`` and ``Linf <= L2 <= sqrt(d) Linf``, ``Linf <= L1 <= d Linf``.

    Parameters
    ----------
    sensitivity : float > 0
        In the norm that is known.
    n_values : int >= 1
        The number d of values that are released together.
    source, target : {"l1", "l2", "linf"}

    Returns
    -------
    float
        Rounded up.

    Examples
    --------
    >>> from skdp.mechanisms import convert_sensitivity
    >>> convert_sensitivity(0.5, 4, "linf", "l1")
    2.0
    >>> convert_sensitivity(0.5, 4, "l1", "l2")
    0.5
    """
    sensitivity = checks.check_positive(sensitivity, "sensitivity")
    d = checks.check_integer(n_values, "n_values", 1, math.inf)
    step = _NORMS.index(checks.check_choice(source, "source", _NORMS)) - _NORMS.index(
        checks.check_choice(target, "target", _NORMS)
    )
    if step <= 0:
        return sensitivity
    root = math.isqrt(d)
    factor = d if step == 2 else root if root**2 == d else round_up(math.sqrt(d))
    return checks.check_positive(float_up(Fraction(sensitivity) * Fraction(factor)), "sensitivity")


def _count_features(bounds, n_features):
    if n_features is None:
        lengths = [len(bound) for bound in bounds if np.ndim(bound)] if np.iterable(bounds) else [1]
        if not lengths:
            raise ValueError(
                "bounds that are numbers need n_features, the number of columns that are summed"
            )
        n_features = lengths[0]
    return checks.check_integer(n_features, "n_features", 1, math.inf)
