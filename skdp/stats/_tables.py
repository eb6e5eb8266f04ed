"""Private covariances and correlations of columns, and counts of declared categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, column_or_1d

from skdp._data._columns import (
    check_distinct_labels,
    check_label_kinds,
    check_no_half_floats,
    check_type_of_labels,
    float_type_of_labels,
    is_shorter,
)
from skdp._data._containers import as_cells, is_sequence
from skdp._data._dask import in_one_run
from skdp._data._frames import columns_of, float_type_of, is_frame, listed_number_type_of, types_of
from skdp._data._labels import category_codes, rounded_labels
from skdp._data._sums import project_on_simplex
from skdp._data._tables import target_array
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._randomized_response import categories_array
from skdp.stats._moments import plan_histogram, plan_mode
from skdp.stats._release import check_rows, plan_within_bounds, release
from skdp.stats._second_moment import plan_covariance
from skdp.utils._documents import count_of


@in_one_run
def dp_covariance(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Return covariances with differential privacy, like `numpy.cov` with ``rowvar=False``.

    They are computed from one release of the noisy second moments and means of all columns, which
    is (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the norm of the noise has a Gamma distribution.
        Otherwise the noise is Gaussian, which is smaller if there are several columns.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        Noisy covariances, symmetric, positive definite and finite. With columns in units of half
        the width of their bounds, the variance in every direction is at least that of the noise.
        Variances larger than the bounds allow are then reduced to the largest possible ones.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_covariance
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(10_000, 2))
    >>> X[:, 1] = (X[:, 1] + X[:, 0]) / 2
    >>> noisy = dp_covariance(X, epsilon=1.0, bounds=(0, 1))
    >>> bool(np.abs(noisy - np.cov(X, rowvar=False)).max() < 0.01)
    True
    """
    correlation, std = _release_correlations(
        "dp_covariance",
        a,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return correlation * np.outer(std, std)


@in_one_run
def dp_correlation(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Return correlations with differential privacy, like `numpy.corrcoef` with ``rowvar=False``.

    They are computed from the release of `dp_covariance`.

    Parameters
    ----------
    a : array-like of shape (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1), as in `dp_covariance`.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        Noisy correlations, symmetric and positive definite, with ones on the diagonal.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_correlation
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(10_000, 2))
    >>> X[:, 1] = (X[:, 1] + X[:, 0]) / 2
    >>> bool(abs(dp_correlation(X, epsilon=1.0, bounds=(0, 1))[0, 1] - 0.5**0.5) < 0.1)
    True
    """
    return _release_correlations(
        "dp_correlation",
        a,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )[0]


def _release_correlations(name, a, *, bounds, epsilon, delta, groups, accountant, random_state):
    """Release the covariances and return the correlations and the standard deviations."""
    X, _ = check_rows(a, 0)
    correlation, std = release(
        name,
        X,
        partial(plan_within_bounds, plan_covariance, bounds),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    ).released
    np.fill_diagonal(correlation, 1.0)
    return np.clip(correlation, -1.0, 1.0), std


def _one_column(labels, name):
    """Return the column of a one-column data frame; other labels are returned unchanged."""
    if not is_frame(labels):
        return labels
    if labels.shape[1] != 1:
        raise ValueError(
            f"{name} must be one column of labels, got a data frame of "
            f"{count_of(labels.shape[1], 'column')}"
        )
    return columns_of(labels)[0]


def _codes(labels, categories, name):
    """Return the code of each label, -1 for undeclared and missing ones, and the categories."""
    labels = _one_column(labels, name)
    declared_type = float_type_of_labels(categories)
    categories = categories_array(categories)
    check_type_of_labels(labels, name, categories)
    # An Arrow column has an attribute `type` instead of `dtype`.
    dtype = (list(types_of(labels)) or [getattr(labels, "type", None)])[0]
    if dtype is None:
        float_type = None
    else:
        float_type = float_type_of(dtype)
        if is_shorter(declared_type, listed_number_type_of(dtype)):
            float_type = declared_type
    if is_sequence(labels):
        labels = as_cells(labels)
    else:
        labels = target_array(labels)
    labels = column_or_1d(labels)
    check_label_kinds(labels, name, categories)
    if labels.dtype == object and float_type is None:
        check_no_half_floats(name, declared_type)
    if float_type is None:
        return category_codes(labels, categories), categories
    check_distinct_labels(name, float_type, categories)
    rounded = rounded_labels(labels, float_type), rounded_labels(categories, float_type)
    return category_codes(*rounded), categories


@in_one_run
def dp_crosstab(
    index: ArrayLike,
    columns: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    categories: tuple[Sequence, Sequence],
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> object:
    """Return a contingency table of labels with differential privacy; see `pandas.crosstab`.

    A row is counted in one cell, or in none if one of its labels is not among the categories. The
    release is (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    index, columns : array-like of shape (n_rows,)
        Labels, paired by position. If both are Series, they must have the same index, which is
        public. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    categories : tuple of (sequence, sequence)
        Labels of the table's rows and of its columns. They must not be computed from the data.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of int64, shape (n_categories of index, n_categories of columns)
        Non-negative counts. Up to rounding, they form the non-negative table that is nearest to the
        noisy table among those with its total, which is limited to the number of rows, or of
        persons. They are therefore biased. If `index` is a pandas Series, the result is a DataFrame
        labeled by the categories.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_crosstab
    >>> sex, smokes = np.random.default_rng(0).integers(0, 2, size=(2, 10_000))
    >>> table = dp_crosstab(sex, smokes, categories=([0, 1], [0, 1]))
    >>> bool(np.abs(table - 2500).max() < 200)
    True
    """
    if not (isinstance(categories, tuple | list) and len(categories) == 2):
        raise ValueError(
            "categories must be a pair of sequences, the labels of index and those of columns, got "
            f"{categories!r}"
        )
    index = _one_column(index, "index")
    columns = _one_column(columns, "columns")
    check_consistent_length(index, columns)
    row_index = _index_of(index)
    column_index = _index_of(columns)
    both_have_one = row_index is not None and column_index is not None
    if both_have_one and not row_index.equals(column_index):
        raise ValueError("index and columns must have the same index: rows are paired by position")
    index_codes, index_labels = _codes(index, categories[0], "index")
    column_codes, column_labels = _codes(columns, categories[1], "columns")
    X = np.column_stack([index_codes, column_codes]).astype(np.float64)
    # One bin per code; other labels have the code -1, which is in no bin.
    bins = (np.arange(len(index_labels) + 1) - 0.5, np.arange(len(column_labels) + 1) - 0.5)
    counts = release(
        "dp_crosstab",
        X,
        partial(plan_crosstab, bins=bins),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    if not hasattr(index, "iloc"):
        return counts
    from pandas import DataFrame, Index

    return DataFrame(
        counts,
        index=Index(index_labels, name=getattr(index, "name", None)),
        columns=Index(column_labels, name=getattr(columns, "name", None)),
    )


def _index_of(values):
    """Return the index of a pandas Series; None for other arrays."""
    if hasattr(values, "iloc"):
        return values.index
    return None


def plan_crosstab(shape, guarantee, *, bins):
    """Return the plan of the counts of pairs of labels, whose total is at most the number of units.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
    bins : tuple of ndarray
        Edges of the bins of the codes of either label.

    Returns
    -------
    Plan
        Its `run` returns the counts as non-negative integers.
    """
    histogram = plan_histogram(shape, guarantee, bins=bins, joint=True)

    return replace(histogram, run=partial(_release_crosstab, histogram, shape.n_rows))


def _release_crosstab(histogram, n_rows, X, source, persons=None):
    """Return the counts from the plan of a histogram as non-negative integers."""
    # The edges are declared, so the range is not used.
    counts, _ = histogram.run(X, source, low=np.zeros(2), high=np.ones(2), persons=persons)
    return nearest_counts(counts, n_rows)


def nearest_counts(noisy, max_total):
    """Return the nearest non-negative integers with the same total, clipped to [0, `max_total`].

    The projection lowers all counts that stay positive by the same amount. Rounding to integers
    preserves the total.
    """
    total = np.rint(np.clip(noisy.sum(), 0.0, max_total))
    sums = np.rint(np.cumsum(project_on_simplex(noisy.ravel().astype(np.float64), total)))
    return np.diff(sums, prepend=0.0).astype(np.int64).reshape(noisy.shape)


@in_one_run
def dp_mode(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    categories: Sequence,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> object:
    """Return the most frequent label with differential privacy.

    One category is chosen by permute-and-flip, and no count is released. The choice is
    (`epsilon`, 0)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,)
        Labels. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    categories : sequence
        The labels that can be chosen. They must not be computed from the data.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    label
        One of `categories`.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    References
    ----------
    R. McKenna and D. Sheldon. Permute-and-Flip: A new mechanism for differentially private
    selection. NeurIPS 2020.

    Examples
    --------
    >>> from skdp.stats import dp_mode
    >>> dp_mode(["tea"] * 700 + ["coffee"] * 300, categories=["coffee", "tea", "water"])
    'tea'
    """
    codes, labels = _codes(a, categories, "a")
    index = release(
        "dp_mode",
        codes[:, np.newaxis],
        partial(plan_mode, n_categories=len(labels)),
        epsilon=epsilon,
        delta=0.0,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    # `tolist` converts the label to a Python value.
    return labels[index : index + 1].tolist()[0]
