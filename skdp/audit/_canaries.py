"""Tables that differ in what an attacker looks for."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier, is_regressor

__all__ = [
    "Canaries",
    "Worlds",
    "canary_worlds",
    "orthogonal_canaries",
    "with_as_many_rows",
    "worst_case_worlds",
]

# The short rows' length, as a part of the longest row's.
SHORT = 0.01


@dataclass(frozen=True, eq=False)
class Worlds:
    """Two neighbouring tables."""

    X_in: np.ndarray
    y_in: np.ndarray
    X_out: np.ndarray
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
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    labels, counts = np.unique(y, return_counts=True)
    if canary is None:
        row = np.zeros(X.shape[1])
        row[np.argmin(np.var(X, axis=0))] = np.sqrt(np.max(np.einsum("ij,ij->i", X, X)))
        canary = row, labels[np.argmin(counts)]
    row, label = np.asarray(canary[0], dtype=np.float64), canary[1]
    X_in, y_in = np.vstack([X, row]), np.append(y, label)
    if replacement is not None:
        row, label = np.asarray(replacement[0], dtype=np.float64), replacement[1]
        return Worlds(X_in, y_in, np.vstack([X, row]), np.append(y, label))
    if relation == "add_remove":
        return Worlds(X_in, y_in, X, y)
    other = labels[-1] if labels[-1] != label else labels[0]
    return Worlds(X_in, y_in, X_in, np.append(y, other))


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
    norm = estimator.get_params().get("data_norm", 1.0)
    norm = norm if isinstance(norm, float | int) else 1.0
    low, high = _labels(estimator)
    X = np.zeros((n_samples, 2))
    X[:-1, 0] = SHORT * norm
    X[-1, 0] = norm
    # A short row of each label, so that every table has both.
    X[0] = 0.0, SHORT * norm
    y = np.full(n_samples, high)
    y[0] = y[-1] = low
    if relation == "add_remove":
        return Worlds(X, y, X[:-1], y[:-1])
    other = y.copy()
    other[-1] = high
    return Worlds(X, y, X, other)


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
    usual = np.argmin(np.linalg.norm(X - X.mean(axis=0), axis=1))
    return Worlds(worlds.X_in, worlds.y_in, np.vstack([X, X[usual]]), np.append(y, y[usual]))


@dataclass(frozen=True, eq=False)
class Canaries:
    """A table with canaries, each in it, or with its own label in it, by the fall of a coin.

    Parameters
    ----------
    X, y : ndarray
        The table that is fitted.
    labels : ndarray of shape (n_canaries,)
        The labels with which canaries are in the table where their coins say so.
    coins : ndarray of bool, shape (n_canaries,)
    """

    X: np.ndarray
    y: np.ndarray
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
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    coins = random.randint(0, 2, n_canaries).astype(bool)
    known = np.unique(y)
    codes = random.randint(0, len(known), n_canaries)
    labels, others = known[codes], known[(codes + len(known) // 2) % len(known)]
    rows = np.hstack([np.zeros((n_canaries, X.shape[1])), norm * np.eye(n_canaries)])
    targets = np.where(coins, labels, others)
    if relation == "add_remove":
        rows, targets = rows[coins], labels[coins]
    wide = np.hstack([X, np.zeros((len(X), n_canaries))])
    return Canaries(np.vstack([wide, rows]), np.append(y, targets), labels, coins)


def _labels(estimator):
    if is_classifier(estimator):
        classes = estimator.get_params().get("classes")
        return (0, 1) if classes is None else (classes[0], classes[-1])
    if is_regressor(estimator):
        return estimator.get_params().get("target_bounds") or (0.0, 1.0)
    return 0, 1
