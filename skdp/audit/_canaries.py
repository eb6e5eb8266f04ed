"""Tables that differ in what an attacker looks for."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor

from skdp.audit import _tables
from skdp.audit._outputs import parameter
from skdp.utils._frames import take_rows

# The short rows' length, as a part of the longest row's.
SHORT = 0.01


@dataclass(frozen=True, eq=False)
class Worlds:
    """Two neighbouring tables."""

    X_in: object
    y_in: np.ndarray
    X_out: object
    y_out: np.ndarray


def canary_worlds(X, y, canary, relation, replacement=None):
    """Return a table with a canary and the same without it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    canary : tuple of (row, label), or None
        None takes a long row in the direction in which the table varies least, with the label
        that is rarer.
    relation : {"add_remove", "replace_one"}
        Under "replace_one" the other table holds the canary with another label in its place.
    replacement : tuple of (row, label), or None
        What the other table holds in its place instead.

    Returns
    -------
    Worlds
    """
    X, y = _tables.as_table(X), np.asarray(y)
    labels, counts = np.unique(y, return_counts=True)
    if canary is None:
        canary = long_row(X), labels[np.argmin(counts)]
    pool, targets, n = _tables.append_row(X, canary[0]), np.append(y, canary[1]), len(y)
    if replacement is None and relation == "replace_one":
        replacement = canary[0], labels[-1] if labels[-1] != canary[1] else labels[0]
    # Both tables are cut from one, so that the container's types are those of all rows in both.
    inside, outside = np.arange(n + 1), np.arange(n)
    if replacement is not None:
        pool, targets = _tables.append_row(pool, replacement[0]), np.append(targets, replacement[1])
        outside = np.append(outside, n + 1)
    tables = (take_rows(pool, inside), targets[inside], take_rows(pool, outside), targets[outside])
    return Worlds(*tables)


def long_row(X):
    """Return a row as long as the longest in the direction in which a table varies least.

    Where a column holds no numbers it is the rarest of the column's values.

    Parameters
    ----------
    X : table, as `as_table` returns it

    Returns
    -------
    list of length n_features
    """
    numbers = _tables.coordinates(X)
    table = numbers if issparse(X) else X
    columns = [_tables.column_of(table, place) for place in range(X.shape[1])]
    numeric = np.array([_tables.is_numeric(column) for column in columns])
    rarest = np.argmax(numbers, axis=0)
    row = [
        0.0 if is_number else column[rare]
        for column, is_number, rare in zip(columns, numeric, rarest, strict=True)
    ]
    if numeric.any():
        squares = np.einsum("ij,ij->i", numbers[:, numeric], numbers[:, numeric])
        spread = np.where(numeric, np.var(numbers, axis=0), np.inf)
        row[int(np.argmin(spread))] = float(np.sqrt(np.max(squares)))
    return row


def worst_case_worlds(estimator, n_samples, relation):
    """Return neighbours that move a linear model's optimum nearly as far as one row can.

    Many short rows fix the sign of the first weight and hardly curve the objective; one row of
    the full norm has the other label. The second feature is there only to be estimated.

    Parameters
    ----------
    estimator : estimator
        With a parameter `data_norm`, 1 without.
    n_samples : int
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    Worlds
    """
    norm = parameter(estimator, "data_norm")
    norm = norm if isinstance(norm, float | int) else 1.0
    ends = parameter(estimator, "classes" if is_classifier(estimator) else "target_bounds")
    free = (0.0, 1.0) if is_regressor(estimator) else (0, 1)
    low, *_, high = free if ends is None else ends
    X = np.zeros((n_samples, 2))
    X[:-1, 0] = SHORT * norm
    X[-1, 0] = norm
    # A short row of each label, so that every table has both.
    X[0] = 0.0, SHORT * norm
    y = np.full(n_samples, high)
    y[0] = y[-1] = low
    if relation == "add_remove":
        return Worlds(X, y, X[:-1], y[:-1])
    return Worlds(X, y, X, np.where(np.arange(n_samples) < n_samples - 1, y, high))


def with_as_many_rows(worlds):
    """Return the same with a second copy of the most usual row in the canary's place.

    Parameters
    ----------
    worlds : Worlds
        A table with a canary as its last row and the same without it.

    Returns
    -------
    Worlds
        A removal and an addition apart.
    """
    X, y = worlds.X_out, worlds.y_out
    rows = np.append(np.arange(len(y)), usual_row(X))
    return Worlds(worlds.X_in, worlds.y_in, take_rows(X, rows), y[rows])


def usual_row(X):
    """Return the position of the row that is nearest to the mean.

    Parameters
    ----------
    X : table, as `as_table` returns it
    """
    numbers = _tables.coordinates(X)
    return int(np.argmin(np.linalg.norm(numbers - numbers.mean(axis=0), axis=1)))


def other_tables(worlds):
    """Return for each world two tables of its size of one repeated row, and their neighbour.

    A number that is the same in all fits to these follows from the number of rows alone.

    Parameters
    ----------
    worlds : Worlds

    Returns
    -------
    inside, outside : list of tuple of (X, y)
    """
    X, y, usual, found = worlds.X_in, worlds.y_in, usual_row(worlds.X_out), []
    canary = len(y) - 1
    for n in (len(y), len(worlds.y_out)):
        same = [np.full(n, canary), np.full(n, usual)]
        near = np.append(np.arange(n - 1) % canary, usual if n > canary else canary)
        tables = [(take_rows(X, rows), _other_targets(y[:n])) for rows in same]
        found.append([*tables, (take_rows(X, near), y[near])])
    return tuple(found)


def _other_targets(y):
    """Return targets of the same kind as y, of which no statistic need be the same."""
    if y.dtype.kind == "f":
        return 0.5 * y[::-1]
    labels = np.unique(y)
    other = np.full(len(y), labels[0])
    other[: len(labels)] = labels
    return other


@dataclass(frozen=True, eq=False)
class Canaries:
    """A table with canaries, each in it, or with its own label in it, by the fall of a coin.

    Parameters
    ----------
    X, y : table and ndarray
        What is fitted.
    rows : table of n_canaries rows
        The canaries.
    null : table of one row
        With nothing in the canaries' columns.
    labels : ndarray of shape (n_canaries,)
        The labels with which canaries are in the table where their coins say so.
    coins : ndarray of bool, shape (n_canaries,)
    """

    X: object
    y: np.ndarray
    rows: object
    null: object
    labels: np.ndarray
    coins: np.ndarray


def orthogonal_canaries(X, y, n_canaries, norm, relation, random):
    """Return a table to which each canary adds a column of its own, its only non-zero one.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_canaries : int
    norm : float
        Of a canary.
    relation : {"add_remove", "replace_one"}
        Whether a coin decides that the canary is in the table, or with which of two labels.
    random : RandomState
        Of coins and labels.

    Returns
    -------
    Canaries
    """
    X, y = _tables.as_table(X), np.asarray(y)
    coins = random.randint(0, 2, n_canaries).astype(bool)
    known = np.unique(y)
    codes = random.randint(0, len(known), n_canaries)
    labels, others = known[codes], known[(codes + len(known) // 2) % len(known)]
    targets, present = np.where(coins, labels, others), np.full(n_canaries, True)
    if relation == "add_remove":
        targets, present = labels[coins], coins
    n, longer = len(y), _tables.with_null_rows(X, n_canaries + 1)
    pool = _tables.append_columns(longer, norm * np.eye(n + n_canaries + 1, n_canaries, k=-n))
    places = n + np.arange(n_canaries + 1)
    table = take_rows(pool, np.append(np.arange(n), places[:-1][present]))
    rows, null = take_rows(pool, places[:-1]), take_rows(pool, places[-1:])
    return Canaries(table, np.append(y, targets), rows, null, labels, coins)
