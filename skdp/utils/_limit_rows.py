"""At most so many rows a person, so that a person can be the unit of privacy."""

from collections.abc import Sequence

import numpy as np
from sklearn.utils import check_consistent_length

from skdp.utils._frames import column_values, in_memory, is_frame, take_rows
from skdp.utils._labels import is_missing, label_codes
from skdp.utils._validation import check_integer


def limit_rows(X, y, groups, max_rows):
    """Keep each person's first rows by index.

    ``PrivacyAccountant(unit="group", max_rows=max_rows)`` then protects persons. Where an estimator
    takes ``fit(X, y, groups=)``, ``unit="person"`` needs less noise and no limit.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or None
        Labels.
    groups : array-like of shape (n_samples,)
        Whose row each is.
    max_rows : int
        How many rows of a person are kept at most.

    Returns
    -------
    X : array-like of shape (n_kept, n_features)
        The rows kept, in their order and in the same kind of container; a list of those of a list.
    y : array-like of shape (n_kept,) or None
        Their labels, likewise.

    Raises
    ------
    ValueError
        If lengths differ, `groups` is no column, `max_rows` is no positive integer, or whose a row
        is, is missing.

    Notes
    -----
    Which rows are kept depends on `groups` and on order alone. A person who comes or goes
    changes no one else's rows, but moves the indices of the rows behind; where folds or parts
    follow the index, use splits that depend on the person alone:
    ``list(PersonKFold(5).split(X, groups=groups))``, of the rows that are kept. ``GroupKFold``
    balances the folds' sizes, so that one person's rows move others'.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.utils import limit_rows
    >>> X, y = np.arange(10).reshape(5, 2), np.arange(5)
    >>> limit_rows(X, y, ["ann", "bob", "ann", "ann", "bob"], max_rows=2)[1]
    array([0, 1, 2, 4])
    """
    max_rows = check_integer(max_rows, "max_rows", 1)
    check_consistent_length(X, y, groups)
    codes = person_codes(groups)
    order = np.argsort(codes, kind="stable")
    rank = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    kept = np.sort(order[rank < max_rows])
    return take_rows(X, kept), None if y is None else take_rows(y, kept)


def id_column(groups):
    """Return the ids of persons, one a row, as an array.

    Raises
    ------
    ValueError
        If they are no list and no column. An iterator is none: it can be read once.
    """
    groups = in_memory(groups)
    if np.ma.is_masked(groups):
        groups = np.where(groups.mask, None, groups.data.astype(object))
    if hasattr(groups, "shape") or hasattr(type(groups), "to_pylist"):
        groups = np.asarray(groups) if is_frame(groups) else column_values(groups)[0]
    elif isinstance(groups, Sequence) and not isinstance(groups, str | bytes):
        # No value of a list has a say in another's type.
        groups = np.fromiter(groups, dtype=object, count=len(groups))
    else:
        kind = type(groups).__name__
        raise ValueError(f"groups must be a list, an array or a column of ids, got a {kind}")
    if groups.ndim != 1:
        raise ValueError(f"groups must be one column, got {groups.ndim} dimensions")
    return groups


def person_codes(groups, missing="error"):
    """Number the persons that a column of ids names, one a row: equal labels are one person.

    With missing="distinct" each row without an id is one more.
    """
    ids = id_column(groups)
    codes = label_codes(ids)
    nobody = np.flatnonzero(codes < 0)
    if len(nobody) and (missing == "error" or not all(map(is_missing, ids[nobody]))):
        raise ValueError(
            "groups must name the person of every row by a number, a string or a date, and one is "
            "missing or something else: leave such rows out; if rows without an id are of distinct "
            "persons, give each an id of its own, or fit with an accountant of unit='person' and "
            "missing_ids='distinct'"
        )
    codes[nobody] = codes.max(initial=0) + 1 + np.arange(len(nobody))
    return codes
