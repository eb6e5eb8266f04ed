"""The life of a private statistic: validate, plan, charge, run, return."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn import config_context
from sklearn.utils import check_array

from skdp._data._columns import declared_bounds
from skdp._data._parts import Rows
from skdp._data._refusals import check_finite
from skdp._data._tables import RowsAndTarget, check_chunks, number_array
from skdp.base import PrivateRelease, TableShape
from skdp.mechanisms._plan import MechanismPlan, one_charge, plan_for
from skdp.stats._bounds import BoundsPlan, plan_search
from skdp.utils._chunked import as_chunked
from skdp.utils._validation import check_choice
from skdp.utils._values import FrozenValue


def check_rows(a, axis, nan_policy="raise"):
    """Return a table of rows, a view of `a`, and whether it was one column without a second axis.

    Values may be missing if `nan_policy` is "omit".

    Raises
    ------
    ValueError
        If `a` is not a vector or a matrix of finite numbers, or the axis is not that of the rows.
    """
    # Unchecked, one row that is not finite makes a release fail after its charge. The check sums
    # the values, so that no warning may tell of an overflow.
    omits = check_choice(nan_policy, "nan_policy", ("raise", "omit")) == "omit"
    flat = getattr(a, "ndim", 2) == 1
    with config_context(assume_finite=False), np.errstate(all="ignore"):
        # A vector is a table of one column, which dask makes where its parts are.
        X = as_chunked(a.to_frame() if hasattr(a, "to_frame") else a[:, None] if flat else a)
        if X is None:
            X = check_array(number_array(a), ensure_2d=False, ensure_all_finite=False)
            check_finite(X, "a", allow_nan=omits)
            flat = X.ndim == 1
        else:
            check_chunks(X, "a", allow_nan=omits)
    if X.ndim not in (1, 2) or 0 in X.shape or X.dtype.kind == "c":
        raise ValueError("a must be a vector or a matrix of real numbers, and not empty")
    if axis not in (None, 0, -1 if flat else -2) or isinstance(axis, bool):
        raise ValueError(
            f"axis must be 0, got {axis!r}: rows are what is protected, a release combines them"
        )
    if axis is None and not flat:
        raise ValueError(
            "axis must be 0 for a matrix: a row is what is protected, and its values are not "
            "independent records that could be pooled"
        )
    return (X[:, None] if X.ndim == 1 else X), flat


def release(
    name, X, plan_main, *limits, epsilon, delta=0.0, groups=None, accountant=None, random_state=None
):
    """Plan a release of a table, charge it and run it.

    Parameters
    ----------
    name : str
        Of the statistic, for the ledger.
    X : ndarray of shape (n_rows, n_columns)
    plan_main : callable
        Of the keyword `guarantee`, and of `n_rows`, of units, and `n_columns` where these are
        fields; with bounds as `plan_within_bounds` takes it.
    *limits : "auto" or tuple of (low, high)
        One, or none where the statistic needs none.
    groups, epsilon, delta, accountant, random_state
        As the statistic takes them.
    """
    with PrivateRelease(label=name, accountant=accountant, random_state=random_state) as private:
        shape = TableShape(n_rows=private.read_groups(groups, len(X)), n_columns=X.shape[1])
        fields = getattr(plan_main, "func", plan_main).__dataclass_fields__
        sizes = {name: getattr(shape, name) for name in ("n_rows", "n_columns") if name in fields}
        plan_main = partial(plan_main, **sizes)
        make = partial(plan_within_bounds, plan_main, *limits, shape) if limits else plan_main
        plan = plan_for(lambda own: make(guarantee=own), private.make_guarantee(epsilon, delta))
        found = plan.run(X, private.charge(plan, size=plan.size), **private.run_params)
        return found.released if limits else found


def shaped(values, flat):
    """Return values of columns, or of the only column, one value as a Python number."""
    values = values[..., 0] if flat else values
    return values if values.ndim else values.item()


@dataclass(frozen=True, eq=False)
class InBounds(FrozenValue):
    """What a plan released within bounds, and the bounds.

    Parameters
    ----------
    released : object
    bounds : tuple of (low, high)
        Arrays of shape (n_columns,).
    """

    released: object
    bounds: tuple


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinBounds(MechanismPlan):
    """Bounds, unless they are declared, then a release within them.

    Parameters
    ----------
    search : BoundsPlan or None
    main : plan
        With the bounds `low` and `high` that are declared, or others in their place; what it
        costs does not depend on them.
    mechanism : plan
        What is charged.
    sought : ndarray of int
        The columns whose bounds the search finds.
    """

    search: BoundsPlan | None
    main: object
    mechanism: object
    sought: np.ndarray

    # How many values are released together.
    @property
    def size(self):
        return self.main.size

    @property
    def by_person(self):
        return self.main.by_person

    def check_size(self, size):
        self.main.check_size(size)

    def run(self, X, source, **shared):
        """Release what the main plan does `InBounds`, which are found first if not declared."""
        main = self.main
        if self.search is not None:
            table = X.X if isinstance(X, RowsAndTarget) else X
            low = main.low.copy()
            high = main.high.copy()
            sought = self.sought
            if len(sought) < len(low):
                table = Rows.of(table).mapped(partial(_take_columns, columns=sought))
            low[sought], high[sought] = self.search.run(table, source, columns=sought, **shared)
            main = replace(main, low=low, high=high)
        return InBounds(main.run(X, source, **shared), (main.low.copy(), main.high.copy()))


def plan_within_bounds(plan_main, bounds, shape, guarantee):
    """Plan a release within bounds of a table's columns.

    Parameters
    ----------
    plan_main : callable
        Of the keywords `low`, `high` and `guarantee`, what is left for it. It returns a plan, a
        frozen dataclass with these three fields, with `size` and `check_size(size)`, `by_person`,
        and ``run(X, source, persons=None)``. What it costs must not depend on the bounds.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
        "auto", for all columns or for one, spends a fifth of epsilon, and at most of delta, on
        bounds.
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    WithinBounds

    Raises
    ------
    ValueError
        If the bounds are not as described, or epsilon is too small for so many columns.
    """
    search = None
    left = guarantee
    low, high = declared_bounds(bounds, shape)
    sought = np.flatnonzero(np.isnan(low))
    if len(sought):
        search, left = plan_search(replace(shape, n_columns=len(sought)), guarantee)
        low[sought], high[sought] = -1.0, 1.0
    main = plan_main(low=low, high=high, guarantee=left)
    main.check_size(main.size)
    mechanism = one_charge((search, main), guarantee)
    return WithinBounds(search=search, main=main, mechanism=mechanism, sought=sought)


def _take_columns(block, columns):
    return block[:, columns]
