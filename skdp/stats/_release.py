"""Steps of a private statistic: validate, plan, charge, run, return."""

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral

import numpy as np
from sklearn import config_context
from sklearn.utils import check_array

from skdp._data._chunked import as_chunked
from skdp._data._columns import declared_bounds
from skdp._data._errors import check_finite
from skdp._data._parts import Rows
from skdp._data._tables import RowsAndTarget, check_chunks, check_types_of_numbers, number_array
from skdp.base import TableShape, private_release
from skdp.mechanisms._plan import join_plans, plan_for
from skdp.stats._bounds import plan_search
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
    # Without this check, a single row that is not finite would make a release fail after its
    # charge. The check sums the values, and a NumPy warning would reveal an overflow.
    with config_context(assume_finite=False), np.errstate(all="ignore"):
        # A vector becomes a one-column table before it is read; in dask, this happens lazily.
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
    # The type is checked first, because an array compares as an array.
    is_axis = (axis is None or isinstance(axis, Integral)) and not isinstance(axis, bool)
    if not is_axis or axis not in (None, 0, -1 if is_vector else -2):
        raise ValueError(
            f"axis must be 0, got {axis!r}: rows are protected, and a release combines them"
        )
    if axis is None and not is_vector:
        raise ValueError(
            "axis must be 0 for a matrix, got None: the row is protected, and its values are not "
            "independent records that could be pooled"
        )
    return (X[:, None] if X.ndim == 1 else X), is_vector


def release(
    name, X, make_plan, *, epsilon, delta=0.0, groups=None, accountant=None, random_state=None
):
    """Plan the release of a statistic, charge it, run it and return the result.

    Parameters
    ----------
    name : str
        Name of the statistic, for the ledger.
    X : ndarray of shape (n_rows, n_columns)
    make_plan : callable
        ``make_plan(shape, guarantee)`` returns the plan for one privacy unit.
    epsilon, delta, groups, accountant, random_state
        Parameters of the statistic.
    """
    with private_release(name, accountant, random_state) as private:
        shape = TableShape(n_rows=private.read_groups(groups, len(X)), n_columns=X.shape[1])
        plan = plan_for(partial(make_plan, shape), private.make_guarantee(epsilon, delta))
        return private.run_charged(plan, X, private.charge(plan))


def shaped(values, is_vector):
    """Return the values of columns or, for a vector, the value of its column as a Python number."""
    if is_vector:
        values = values[..., 0]
    if values.ndim:
        return values
    return values.item()


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


def plan_within_bounds(make_plan, bounds, shape, guarantee):
    """Return the plan of a release within declared or found bounds of a table's columns.

    Parameters
    ----------
    make_plan : callable
        ``make_plan(shape, guarantee)`` returns the plan of the release. Its cost cannot depend on
        the bounds, because they are passed only to
        ``run(X, source, low=low, high=high, persons=None)``, as arrays of shape (n_columns,).
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto"
        "auto", for all columns or for one of them, spends a fifth of epsilon, and at most a fifth
        of delta, on a search for bounds.
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    Plan
        Its `run` returns the release and the bounds, as an `InBounds`.

    Raises
    ------
    ValueError
        If the bounds are invalid, or epsilon is too small for the number of columns.
    """
    low, high = declared_bounds(bounds, shape)
    undeclared = np.flatnonzero(np.isnan(low))
    if not len(undeclared):
        main = make_plan(shape, guarantee)
        return replace(main, run=partial(_run_in_declared, main, low, high))

    search, remaining = plan_search(replace(shape, n_columns=len(undeclared)), guarantee)
    main = make_plan(shape, remaining)
    run = partial(_run_in_found, search, main, low, high)
    return replace(join_plans((search, main), guarantee), run=run)


def _run_in_declared(main, low, high, X, source, persons=None):
    """Make the main release within declared bounds, and return it as `InBounds`."""
    released = main.run(X, source, low=low, high=high, persons=persons)
    return InBounds(released, (low.copy(), high.copy()))


def _run_in_found(search, main, low, high, X, source, persons=None):
    """Search for the bounds that are NaN, then make the main release within all bounds.

    Parameters
    ----------
    search : Plan
        Private search for the bounds of the undeclared columns.
    main : Plan
        The main release.
    low, high : ndarray of shape (n_columns,)
        Declared bounds; NaN in undeclared columns.
    X : array, CSR matrix, ChunkedArray or RowsAndTarget
    source : RandomSource
    persons : Persons, default=None

    Returns
    -------
    InBounds
        The main release, with the declared and the found bounds.
    """
    low = low.copy()
    high = high.copy()
    undeclared = np.flatnonzero(np.isnan(low))
    table = X
    if isinstance(X, RowsAndTarget):
        table = X.X
    if len(undeclared) < len(low):
        table = Rows.wrap(table).mapped(partial(_take_columns, columns=undeclared))
    low[undeclared], high[undeclared] = search.run(
        table, source, columns=undeclared, persons=persons
    )
    released = main.run(X, source, low=low, high=high, persons=persons)
    return InBounds(released, (low, high))


def _take_columns(block, columns):
    return block[:, columns]
