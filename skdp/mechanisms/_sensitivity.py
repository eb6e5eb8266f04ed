"""Sensitivities of common statistics, and how norms and relations bound one another."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Neighbours
from skdp.mechanisms._grid import round_up
from skdp.utils._validation import (
    broadcast_bounds,
    check_choice,
    check_integer,
    check_positive,
    check_relation,
)

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
    norm = check_positive(norm, "norm")
    rows = Neighbours(relation=relation).rows_moved
    return check_positive(rows * norm, "sensitivity")


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
    check_relation(relation)
    check_choice(norm, "norm", _NORMS)
    low, high = broadcast_bounds(bounds, _count_features(bounds, n_features))
    if relation == "add_remove":
        moved = np.maximum(np.abs(low), np.abs(high))
    else:
        with np.errstate(over="ignore"):
            moved = high - low
        moved = np.where(_inexact(high, low, moved), np.nextafter(moved, np.inf), moved)
    try:
        return check_positive(_norm_up(moved.tolist(), norm), "sensitivity")
    except OverflowError:
        return check_positive(math.inf, "sensitivity")


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
    check_choice(norm, "norm", _NORMS)
    check_relation(relation)
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
    sensitivity = check_positive(sensitivity, "sensitivity")
    d = check_integer(n_values, "n_values", 1, math.inf)
    step = _NORMS.index(check_choice(source, "source", _NORMS)) - _NORMS.index(
        check_choice(target, "target", _NORMS)
    )
    if step <= 0:
        return sensitivity
    root = math.isqrt(d)
    factor = float(d if step == 2 else root if root**2 == d else round_up(math.sqrt(d)))
    product = sensitivity * factor
    rounded = product if factor in (1.0, 2.0, 4.0) else round_up(product)
    return check_positive(rounded, "sensitivity")


def _count_features(bounds, n_features):
    if n_features is None:
        lengths = [len(bound) for bound in bounds if np.ndim(bound)] if np.iterable(bounds) else [1]
        if not lengths:
            raise ValueError(
                "bounds that are numbers need n_features, the number of columns that are summed"
            )
        n_features = lengths[0]
    return check_integer(n_features, "n_features", 1, math.inf)


def _norm_up(values, norm):
    largest = max(values)
    if norm == "linf" or len(values) == 1 or not math.isfinite(largest):
        return largest
    if norm == "l1":
        total = math.fsum(values)
        return total if math.fsum([*values, -total]) <= 0.0 else round_up(total)
    # The library's rounding is covered; it neither overflows nor underflows on the way.
    return round_up(math.hypot(*values) * (1.0 + 2.0**-50))


def _inexact(high, low, difference):
    """Whether the subtraction may have been rounded."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (high - difference != low) | (low + difference != high)
