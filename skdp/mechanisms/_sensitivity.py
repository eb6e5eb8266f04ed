"""Sensitivities of common statistics, and how norms and relations bound one another."""

import math

import numpy as np

from skdp.mechanisms._checks import check_integer, check_number, round_up

_RELATIONS = ("add_remove", "replace_one")
_NORMS = ("l1", "l2", "linf")


def sum_sensitivity(norm, relation="add_remove"):
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
    norm = check_number("norm", norm)
    return norm if _check_choice("relation", relation, _RELATIONS) == "add_remove" else 2.0 * norm


def bounded_sum_sensitivity(bounds, relation="add_remove", norm="l1"):
    """Sensitivity of a vector of column sums whose values lie within bounds.

    Parameters
    ----------
    bounds : tuple of (low, high)
        Scalars or arrays of shape (n_features,).
    relation : {"add_remove", "replace_one"}, default="add_remove"
    norm : {"l1", "l2", "linf"}, default="l1"

    Returns
    -------
    float
        The norm, rounded up, of ``max(|low|, |high|)`` under add/remove and of ``high - low``
        under replace-one.

    Raises
    ------
    ValueError
        If the bounds are not finite ranges or leave a sensitivity of zero.

    Examples
    --------
    >>> from skdp.mechanisms import bounded_sum_sensitivity
    >>> bounded_sum_sensitivity((-1.0, 3.0))
    3.0
    >>> bounded_sum_sensitivity((-1.0, 3.0), "replace_one")
    4.0
    """
    _check_choice("relation", relation, _RELATIONS)
    low, high = np.broadcast_arrays(*(np.asarray(b, dtype=np.float64).ravel() for b in bounds))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low <= high)):
        raise ValueError(f"bounds must be finite with low <= high, got {bounds!r}")
    if relation == "add_remove":
        moved = np.maximum(np.abs(low), np.abs(high))
    else:
        difference = high - low
        moved = np.where(
            _inexact(high, low, difference), np.nextafter(difference, np.inf), difference
        )
    return check_number("sensitivity", _norm_up(moved.tolist(), norm))


def histogram_sensitivity(relation="add_remove", norm="l1"):
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
    _check_choice("norm", norm, _NORMS)
    if _check_choice("relation", relation, _RELATIONS) == "add_remove":
        return 1.0
    return {"l1": 2.0, "l2": round_up(math.sqrt(2.0)), "linf": 1.0}[norm]


def convert_sensitivity(sensitivity, n_values, source, target):
    """Bound a sensitivity in one norm by that in another.

    ``L2 <= L1 <= sqrt(d) L2`` and ``Linf <= L2 <= sqrt(d) Linf``, ``Linf <= L1 <= d Linf``.

    Parameters
    ----------
    sensitivity : float > 0
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
    sensitivity = check_number("sensitivity", sensitivity)
    d = check_integer("n_values", n_values, low=1)
    step = _NORMS.index(_check_choice("source", source, _NORMS)) - _NORMS.index(
        _check_choice("target", target, _NORMS)
    )
    if step <= 0:
        return sensitivity
    if step == 2:
        factor = float(d)
    else:
        factor = float(math.isqrt(d)) if math.isqrt(d) ** 2 == d else round_up(math.sqrt(d))
    product = sensitivity * factor
    return product if factor in (1.0, 2.0, 4.0) else round_up(product)


def _norm_up(values, norm):
    _check_choice("norm", norm, _NORMS)
    if norm == "linf" or len(values) == 1:
        return max(values)
    total = math.fsum(values) if norm == "l1" else math.sqrt(math.fsum(v * v for v in values))
    return total * (1.0 + 2.0**-50)


def _inexact(high, low, difference):
    """Whether the subtraction may have been rounded."""
    return (high - difference != low) | (low + difference != high)


def _check_choice(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")
    return value
