"""The life of a private statistic: validate, plan, charge, run, return."""

import numpy as np
from sklearn import config_context
from sklearn.utils import check_array

from skdp._data._tables import number_array
from skdp.accounting import Guarantee
from skdp.base import PrivateRelease, TableShape, neighbours_of
from skdp.stats._within_bounds import plan_within_bounds

__all__ = ["check_rows", "release", "release_within", "shaped"]


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


def release(name, X, plan_fit, *, epsilon, delta, accountant, random_state):
    """Plan a release of a table, charge it and run it.

    Parameters
    ----------
    name : str
        Of the statistic, for the ledger.
    X : ndarray of shape (n_rows, n_columns)
    plan_fit : callable
        Of the table's shape and the guarantee; as an estimator's.
    epsilon, delta, accountant, random_state
        As the statistic takes them.
    """
    with PrivateRelease(label=name, accountant=accountant, random_state=random_state) as door:
        terms = {"epsilon": epsilon, "delta": delta}
        guarantee = Guarantee(neighbours=neighbours_of(accountant), **terms)
        plan = plan_fit(TableShape(n_rows=X.shape[0], n_columns=X.shape[1]), guarantee)
        return plan.run(X, door.charge(plan, size=plan.size))


def release_within(name, X, plan_main, bounds, **terms):
    """Do the same with a plan of bounds `low` and `high` and the guarantee that they leave."""

    def plan_fit(shape, guarantee):
        return plan_within_bounds(plan_main, bounds, shape, guarantee)

    return release(name, X, plan_fit, **terms)


def shaped(values, flat):
    """Return a vector, or its only value as a Python number."""
    return values[0].item() if flat else values
