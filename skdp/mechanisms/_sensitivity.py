"""Sensitivities of sums and histograms, and bounds between norms."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Neighbors
from skdp.mechanisms._grid import round_up
from skdp.utils import _validation as checks
from skdp.utils._rounding import float_up
from skdp.utils._types import Relation

_NORMS = ("l1", "l2", "linf")


def sum_sensitivity(norm: float, relation: Relation = "add_remove") -> float:
    """Return the sensitivity of a sum of rows with bounded norm.

    Parameters
    ----------
    norm : float > 0
        Bound on the L1, L2 or L-infinity norm of each row. The sensitivity is in the same norm.
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
    factor = Neighbors(relation=relation).sensitivity_factor
    return checks.check_positive(factor * norm, "sensitivity")


def bounded_sum_sensitivity(
    bounds: tuple[ArrayLike, ArrayLike],
    relation: Relation = "add_remove",
    norm: str = "l1",
    *,
    n_features: int | None = None,
) -> float:
    """Return the sensitivity of a vector of column sums of bounded values.

    It is for releases that users write with a mechanism, such as ``LaplaceMechanism(epsilon,
    sensitivity)``; skdp's own plans compute their sensitivities.

    Parameters
    ----------
    bounds : tuple of (low, high)
        Bounds of the values, scalars or arrays of shape (n_features,).
    relation : {"add_remove", "replace_one"}, default="add_remove"
    norm : {"l1", "l2", "linf"}, default="l1"
    n_features : int, default=None
        Number of columns. None uses the length of the bounds. It is required if both bounds are
        scalars.

    Returns
    -------
    float
        The norm over all columns, rounded up, of ``max(|low|, |high|)`` under add/remove and of
        ``high - low`` under replace-one. It also bounds the change of `skdp.base.exact_sum` under
        add/remove. Under replace-one, the rounding of `exact_sum` must be added to it: one step of
        its grid for each column whose range does not contain 0.

    Raises
    ------
    ValueError
        If the bounds are not finite ranges, or are scalars without `n_features`, or the sensitivity
        is zero or infinite.

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
        changes = [Fraction(max(abs(a), abs(b))) for a, b in sides]
    else:
        changes = [Fraction(b) - Fraction(a) for a, b in sides]
    if norm == "l1":
        bound = float_up(sum(changes, Fraction(0)))
    elif norm == "linf" or len(changes) == 1:
        bound = float_up(max(changes))
    else:
        # math.hypot neither overflows nor underflows. The factor covers its rounding.
        bound = round_up(math.hypot(*map(float_up, changes)) * (1.0 + 2.0**-50))
    return checks.check_positive(bound, "sensitivity")


def histogram_sensitivity(relation: Relation = "add_remove", norm: str = "l1") -> float:
    """Return the sensitivity of the counts of disjoint bins.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}, default="add_remove"
    norm : {"l1", "l2", "linf"}, default="l1"

    Returns
    -------
    float
        1 under add/remove. Under replace-one, it is 2 in L1, sqrt(2) in L2 and 1 in L-infinity.

    Examples
    --------
    >>> from skdp.mechanisms import histogram_sensitivity
    >>> histogram_sensitivity("replace_one", "l1")
    2.0
    """
    checks.check_choice(norm, "norm", _NORMS)
    checks.check_relation(relation)
    if relation == "add_remove":
        return 1.0
    return {"l1": 2.0, "l2": round_up(math.sqrt(2.0)), "linf": 1.0}[norm]


def convert_sensitivity(sensitivity: float, n_values: int, source: str, target: str) -> float:
    """Return a bound on the sensitivity in one norm, given the sensitivity in another.

    It uses ``L2 <= L1 <= sqrt(d) L2``, ``Linf <= L2 <= sqrt(d) Linf`` and ``Linf <= L1 <= d Linf``.

    Parameters
    ----------
    sensitivity : float > 0
        Sensitivity in the norm `source`.
    n_values : int >= 1
        The number d of values that are released together.
    source, target : {"l1", "l2", "linf"}

    Returns
    -------
    float
        The bound, rounded up.

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
    source_index = _NORMS.index(checks.check_choice(source, "source", _NORMS))
    target_index = _NORMS.index(checks.check_choice(target, "target", _NORMS))
    if source_index <= target_index:
        # The norms are in decreasing order.
        return sensitivity
    root = math.isqrt(d)
    factor: float
    if source_index - target_index == 2:
        factor = d
    elif root**2 == d:
        factor = root
    else:
        factor = round_up(math.sqrt(d))
    return checks.check_positive(float_up(Fraction(sensitivity) * Fraction(factor)), "sensitivity")


def _count_features(bounds, n_features):
    """Return the number of columns, by default the length of the bounds."""
    if n_features is None:
        lengths = [1]
        if np.iterable(bounds):
            lengths = [len(bound) for bound in bounds if np.ndim(bound)]
        if not lengths:
            raise ValueError(
                "n_features is missing: with bounds that are numbers pass the number of columns"
            )
        n_features = lengths[0]
    return checks.check_integer(n_features, "n_features", 1, math.inf)
