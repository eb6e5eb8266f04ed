"""The life of a private statistic: validate, plan, charge, run, return."""

from dataclasses import replace

import numpy as np
from sklearn import config_context
from sklearn.utils import check_array

from skdp._data._tables import number_array
from skdp.base import relation_of
from skdp.mechanisms import JointMechanism
from skdp.noise import RandomSource
from skdp.stats._bounds import AUTO_SHARE, plan_search
from skdp.utils._shares import split_epsilon
from skdp.utils._validation import check_bounds, check_privacy_parameters, is_auto

__all__ = ["check_rows", "release", "release_within", "shaped"]

_UNKNOWN = (-1.0, 1.0)


def check_rows(a, axis):
    """Return a table of rows, a view of `a`, and whether it was one column without a second axis.

    Raises
    ------
    ValueError
        If `a` is not a vector or a matrix of finite numbers, or the axis is not that of the rows.
    """
    # Unchecked, one row that is not finite makes a release fail after its charge. The check sums
    # the values, so that no warning may tell of an overflow.
    with config_context(assume_finite=False), np.errstate(all="ignore"):
        X = check_array(number_array(a), dtype="numeric", ensure_2d=False, input_name="a")
    if X.ndim not in (1, 2) or X.size == 0 or np.iscomplexobj(X):
        raise ValueError("a must be a vector or a matrix of real numbers, and not empty")
    if axis not in (None, 0, -X.ndim) or isinstance(axis, bool):
        raise ValueError(
            f"axis must be 0, got {axis!r}: rows are what is protected, a release combines them"
        )
    if axis is None and X.ndim == 2:
        raise ValueError(
            "axis must be 0 for a matrix: a row is what is protected, and its values are not "
            "independent records that could be pooled"
        )
    return (X[:, None], True) if X.ndim == 1 else (X, False)


def release(name, X, plan, epsilon, delta, accountant, random_state):
    """Charge a plan and run it."""
    plan.check_size(plan.size)
    source = _charge(name, plan, epsilon, delta, accountant, random_state)
    return plan.run(X, source)


def release_within(name, X, make_plan, bounds, budget, accountant, random_state):
    """Charge a plan whose bounds are given or "auto", and run it.

    Parameters
    ----------
    name : str
        Of the statistic, for the ledger.
    X : ndarray of shape (n_rows, n_columns)
    make_plan : callable
        Of low, high, epsilon, delta, relation. What the plan costs must not depend on the bounds.
    bounds : tuple of (low, high) or "auto"
    budget : tuple of (epsilon, delta)
    accountant, random_state
    """
    epsilon, delta = check_privacy_parameters(*budget)
    relation = relation_of(accountant)
    n_rows, n_columns = X.shape
    if not is_auto(bounds):
        low, high = check_bounds(bounds, n_columns)
        plan = make_plan(low, high, epsilon, delta, relation)
        return release(name, X, plan, epsilon, delta, accountant, random_state)
    first, rest = split_epsilon(epsilon, AUTO_SHARE)
    search, rest_delta = plan_search(n_rows, n_columns, first, delta, relation)
    unknown = (np.full(n_columns, bound) for bound in _UNKNOWN)
    plan = make_plan(*unknown, rest, rest_delta, relation)
    plan.check_size(plan.size)
    both = JointMechanism((search, plan), epsilon, delta)
    source = _charge(name, both, epsilon, delta, accountant, random_state)
    low, high = search.run(X, source)
    return replace(plan, low=low, high=high).run(X, source)


def shaped(values, flat):
    """Return a vector, or its only value as a Python number."""
    return values[0].item() if flat else values


def _charge(name, mechanism, epsilon, delta, accountant, random_state):
    source = RandomSource(random_state)
    if accountant is not None:
        accountant.charge(
            mechanism.event, label=name, epsilon=epsilon, delta=delta, seeded=source.seeded
        )
    return source
