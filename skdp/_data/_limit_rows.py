"""Limit on the rows per person; codes of persons from their ids, and the error for missing ids."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from skdp._data._frames import column_values, in_memory, is_frame, take_rows
from skdp._data._labels import id_codes, is_missing
from skdp.utils._types import TableLike
from skdp.utils._validation import check_integer


def limit_rows(
    X: TableLike, y: ArrayLike | None, groups: ArrayLike, max_rows: int
) -> tuple[TableLike, ArrayLike | None]:
    """Return the first `max_rows` rows of each person.

    ``PrivacyAccountant(unit="group", max_rows=max_rows)`` then protects persons. If an estimator
    has ``fit(X, y, groups=)``, ``unit="person"`` needs less noise and no limit.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or None
        Labels.
    groups : array-like of shape (n_samples,)
        Person id of each row.
    max_rows : int
        Maximum number of rows per person.

    Returns
    -------
    X : array-like of shape (n_selected, n_features)
        The selected rows, in their order and in the same kind of container.
    y : array-like of shape (n_selected,) or None
        Their labels.

    Raises
    ------
    ValueError
        If lengths differ, if `groups` is not a column, if `max_rows` is not a positive integer, or
        if an id is missing.

    Notes
    -----
    The selection depends only on `groups` and the order of the rows. Adding or removing a person
    does not change the selected rows of other persons, but shifts the indices of later rows. If
    folds depend on indices, use splits that depend only on the person:
    ``list(PersonKFold(5).split(X, groups=groups))`` for the selected rows. ``GroupKFold`` balances
    the sizes of folds, so one person's rows can change which fold other people's rows are in.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import limit_rows
    >>> X, y = np.arange(10).reshape(5, 2), np.arange(5)
    >>> limit_rows(X, y, ["ann", "bob", "ann", "ann", "bob"], max_rows=2)[1]
    array([0, 1, 2, 4])
    """
    max_rows = check_integer(max_rows, "max_rows", 1)
    check_consistent_length(X, y, groups)
    codes = person_codes(groups)
    order = np.argsort(codes, kind="stable")
    rank = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    selected = np.sort(order[rank < max_rows])
    if y is not None:
        y = take_rows(y, selected)
    return take_rows(X, selected), y


def id_column(groups):
    """Return the ids of persons, one per row, as an array.

    Raises
    ------
    ValueError
        If `groups` is not a list or a column. Iterators, which can be read only once, are refused.
    """
    if np.ma.is_masked(groups):
        groups = np.where(groups.mask, None, groups.data.astype(object))
    groups = in_memory(groups)
    if hasattr(groups, "shape") or hasattr(type(groups), "to_pylist"):
        if is_frame(groups):
            groups = np.asarray(groups)
        else:
            groups = column_values(groups)[0]
    elif isinstance(groups, Sequence) and not isinstance(groups, str | bytes):
        # Convert to objects, so that no value in a list changes the type of another one.
        groups = np.fromiter(groups, dtype=object, count=len(groups))
    else:
        name = type(groups).__name__
        raise ValueError(f"groups must be a list, an array or a column of ids, got a {name}")
    if groups.ndim != 1:
        raise ValueError(
            "groups must be one column of ids, with one dimension, such as X['id'], got the shape "
            f"{groups.shape}"
        )
    return groups


def person_codes(groups, missing="error"):
    """Return an integer code of the person of each row; equal ids denote the same person.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Person ids.
    missing : {"error", "distinct"}, default="error"
        With "distinct", each row whose id is missing counts as a separate person. An id of a type
        that is not read, such as a list, is refused in both cases: it may be that of other rows.

    Returns
    -------
    ndarray of int, shape (n_rows,)

    Raises
    ------
    ValueError
        If an id is missing and `missing` is "error", if the type of an id is not read, or as in
        `id_column`.
    """
    ids = id_column(groups)
    codes = id_codes(ids)
    without_id = np.flatnonzero(codes < 0)
    if missing == "distinct" and not all(map(is_missing, ids[without_id])):
        raise ValueError(
            "groups must name persons by numbers, strings or dates, and an id is of another type: "
            "convert it to a string, or leave such rows out. Only rows whose id is missing are "
            "rows of distinct persons"
        )
    if missing == "error" and len(without_id):
        raise ValueError(
            "groups must name the person of every row by a number, a string or a date, and one is "
            "missing or of another type: leave such rows out. If rows without an id are of "
            "distinct persons, give each a distinct id, or fit with an accountant of "
            "unit='person' and missing_ids='distinct'"
        )
    codes[without_id] = codes.max(initial=0) + 1 + np.arange(len(without_id))
    return codes
