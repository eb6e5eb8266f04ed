"""The steps of a private statistic: validate, plan, charge, run, return."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn import config_context
from sklearn.utils import check_array

from skdp._data._chunked import as_chunked
from skdp._data._columns import declared_bounds
from skdp._data._errors import check_finite
from skdp._data._parts import Rows
from skdp._data._tables import RowsAndTarget, check_chunks, check_types_of_numbers, number_array
from skdp.base import TableShape, private_release
from skdp.mechanisms._plan import MechanismPlan, one_charge, plan_for
from skdp.stats._bounds import BoundsPlan, plan_search
from skdp.utils._validation import check_choice
from skdp.utils._values import FrozenValue


def check_rows(a, axis, nan_policy="raise"):
    """Return a validated table, a view of `a`, and True if `a` is a vector.

    Values may be missing if `nan_policy` is "omit".

    Raises
    ------
    ValueError
        If `a` is not a vector or a matrix of finite numbers, or `axis` is not the axis of rows.
    """
    allow_nan = check_choice(nan_policy, "nan_policy", ("raise", "omit")) == "omit"
    is_vector = getattr(a, "ndim", 2) == 1
    # Without this check, one row that is not finite makes a release fail after its charge. The
    # check sums the values, so a NumPy warning would reveal an overflow.
    with config_context(assume_finite=False), np.errstate(all="ignore"):
        # A vector becomes a table of one column before it is read, which dask does lazily.
        if hasattr(a, "to_frame"):
            X = as_chunked(a.to_frame())
        else:
            X = as_chunked(a[:, None] if is_vector else a)
        if X is None:
            check_types_of_numbers(a, "a")
            X = check_array(number_array(a), ensure_2d=False, ensure_all_finite=False)
            check_finite(X, "a", allow_nan=allow_nan)
            is_vector = X.ndim == 1
        else:
            check_types_of_numbers(X, "a")
            check_chunks(X, "a", allow_nan=allow_nan)
    if X.ndim not in (1, 2) or 0 in X.shape or X.dtype.kind == "c":
        raise ValueError(
            "a must be a vector or a matrix of real numbers, and not empty, got shape "
            f"{X.shape} and dtype {X.dtype}"
        )
    if axis not in (None, 0, -1 if is_vector else -2) or isinstance(axis, bool):
        raise ValueError(
            f"axis must be 0, got {axis!r}: rows are protected, and a release combines them"
        )
    if axis is None and not is_vector:
        raise ValueError(
            "axis must be 0 for a matrix, got None: a row is protected, and its values are not "
            "independent records that could be pooled"
        )
    return (X[:, None] if X.ndim == 1 else X), is_vector


def release(
    name, X, plan_main, *limits, epsilon, delta=0.0, groups=None, accountant=None, random_state=None
):
    """Plan the release of a statistic, charge it, run it and return the result.

    Parameters
    ----------
    name : str
        Name of the statistic, for the ledger.
    X : ndarray of shape (n_rows, n_columns)
    plan_main : callable
        A plan class, or a partial of one, with the field `guarantee`. It also receives `n_rows`,
        the number of privacy units, and `n_columns` if it has these fields. With `limits` it must
        be as described in `plan_within_bounds`.
    *limits : "auto" or tuple of (low, high)
        The bounds of the columns, none if the statistic needs no bounds.
    groups, epsilon, delta, accountant, random_state
        Parameters of the statistic.
    """
    with private_release(name, accountant, random_state) as private:
        shape = TableShape(n_rows=private.read_groups(groups, len(X)), n_columns=X.shape[1])
        fields = getattr(plan_main, "func", plan_main).__dataclass_fields__
        if "n_rows" in fields:
            plan_main = partial(plan_main, n_rows=shape.n_rows)
        if "n_columns" in fields:
            plan_main = partial(plan_main, n_columns=shape.n_columns)

        def plan_for_unit(guarantee):
            if limits:
                return plan_within_bounds(plan_main, *limits, shape, guarantee)
            return plan_main(guarantee=guarantee)

        plan = plan_for(plan_for_unit, private.make_guarantee(epsilon, delta))
        result = plan.run(X, private.charge(plan, size=plan.size), **private.run_params)
        return result.released if limits else result


def shaped(values, is_vector):
    """Return the values of columns, or of the only column of a vector as Python numbers."""
    values = values[..., 0] if is_vector else values
    return values if values.ndim else values.item()


@dataclass(frozen=True, eq=False)
class InBounds(FrozenValue):
    """Result of a release within bounds, together with the bounds.

    Parameters
    ----------
    released : object
        The result of the plan's `run`.
    bounds : tuple of (low, high)
        Arrays of shape (n_columns,).
    """

    released: object
    bounds: tuple


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinBounds(MechanismPlan):
    """Plan that searches for bounds unless they are declared, then makes a release within them.

    Parameters
    ----------
    search : BoundsPlan or None
        Plan of the search; None if all bounds are declared.
    main : plan
        Plan of the release. Its `low` and `high` are the declared bounds, with placeholders for
        unknown ones. Its cost does not depend on them.
    mechanism : plan
        Both plans as one charge.
    undeclared : ndarray of int
        Indices of the columns whose bounds the search finds.
    """

    search: BoundsPlan | None
    main: object
    mechanism: object
    undeclared: np.ndarray

    @property
    def size(self):
        """Number of values that the main plan releases together."""
        return self.main.size

    @property
    def by_person(self):
        return self.main.by_person

    def check_size(self, size):
        self.main.check_size(size)

    def run(self, X, source, **shared):
        """Search for bounds that are not declared, and return the main release `InBounds`."""
        main = self.main
        if self.search is not None:
            table = X.X if isinstance(X, RowsAndTarget) else X
            low = main.low.copy()
            high = main.high.copy()
            undeclared = self.undeclared
            if len(undeclared) < len(low):
                table = Rows.wrap(table).mapped(partial(_take_columns, columns=undeclared))
            low[undeclared], high[undeclared] = self.search.run(
                table, source, columns=undeclared, **shared
            )
            main = replace(main, low=low, high=high)
        return InBounds(main.run(X, source, **shared), (main.low.copy(), main.high.copy()))


def plan_within_bounds(plan_main, bounds, shape, guarantee):
    """Return the plan of a release within bounds of a table's columns.

    Parameters
    ----------
    plan_main : callable
        Returns a plan for the keywords `low`, `high` and `guarantee`, the remaining budget. The
        plan is a frozen dataclass with these three fields, with `size` and `check_size(size)`,
        `by_person`, and ``run(X, source, persons=None)``. Its cost must not depend on the bounds.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
        "auto", for all columns or for one, spends a fifth of epsilon, and at most a fifth of delta,
        on a search for bounds.
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    WithinBounds

    Raises
    ------
    ValueError
        If the bounds are invalid, or epsilon is too small for the number of columns.
    """
    search = None
    remaining = guarantee
    low, high = declared_bounds(bounds, shape)
    undeclared = np.flatnonzero(np.isnan(low))
    if len(undeclared):
        search, remaining = plan_search(replace(shape, n_columns=len(undeclared)), guarantee)
        low[undeclared] = -1.0
        high[undeclared] = 1.0
    main = plan_main(low=low, high=high, guarantee=remaining)
    main.check_size(main.size)
    mechanism = one_charge((search, main), guarantee)
    return WithinBounds(search=search, main=main, mechanism=mechanism, undeclared=undeclared)


def _take_columns(block, columns):
    return block[:, columns]
