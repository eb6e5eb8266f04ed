"""Statistics of several columns together, and of labels whose categories are declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, column_or_1d

from skdp._data._columns import check_label_kinds
from skdp._data._containers import as_cells, is_sequence
from skdp._data._tables import target_array
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._randomized_response import categories_array
from skdp.stats._moments import HistogramPlan, ModePlan
from skdp.stats._release import check_rows, release
from skdp.stats._second_moment import CovariancePlan
from skdp.utils._dask import in_one_run
from skdp.utils._labels import category_codes
from skdp.utils._sums import project_on_simplex


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
    """Covariances of columns with differential privacy, as `numpy.cov` with ``rowvar=False``.

    One release of the noisy second moments and means of all columns. It is
    (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows, n_columns)
        Finite numbers. A row is what is protected; the number of rows is public.
    epsilon : float, default=1.0
        What the release costs, positive.
    delta : float, default=0.0
        In [0, 1). 0 adds noise whose norm has a Gamma distribution, a positive delta Gaussian
        noise, which is smaller where there are several columns.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high; values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        Symmetric, positive definite and finite: in the units of half the bounds' widths no
        direction has less variance than the noise, before variances beyond what the bounds allow
        are cut.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

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
    correlation, spread = _release_covariance(
        "dp_covariance",
        a,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return correlation * np.outer(spread, spread)


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
    """Correlations of columns with differential privacy, as `numpy.corrcoef` of their transpose.

    They are computed from the release of `dp_covariance`.

    Parameters
    ----------
    a : array-like of shape (n_rows, n_columns)
        Finite numbers. A row is what is protected; the number of rows is public.
    epsilon : float, default=1.0
        What the release costs, positive.
    delta : float, default=0.0
        In [0, 1); as of `dp_covariance`.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high; values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        Symmetric and positive definite, with ones on the diagonal.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_correlation
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(10_000, 2))
    >>> X[:, 1] = (X[:, 1] + X[:, 0]) / 2
    >>> bool(abs(dp_correlation(X, epsilon=1.0, bounds=(0, 1))[0, 1] - 0.5**0.5) < 0.1)
    True
    """
    return _release_covariance(
        "dp_correlation",
        a,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )[0]


def _release_covariance(name, a, *, bounds="auto", **terms):
    X, _ = check_rows(a, 0)
    correlation, spread = release(name, X, CovariancePlan, bounds, **terms)
    np.fill_diagonal(correlation, 1.0)
    return np.clip(correlation, -1.0, 1.0), spread


def _codes(labels, categories, name):
    """Return the place of each label among declared categories; -1 of others and missing ones."""
    known = categories_array(categories)
    labels = as_cells(labels) if is_sequence(labels) else target_array(labels)
    labels = column_or_1d(labels)
    check_label_kinds(labels, name, known)
    return category_codes(labels, known), known


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
    """Contingency table of two columns of labels with differential privacy, as `pandas.crosstab`.

    A row is in one cell, or in none if one of its labels is not among the categories. The release
    is (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    index, columns : array-like of shape (n_rows,)
        Labels, paired by position; two Series must have the same index, which is public. The number
        of rows is public.
    epsilon : float, default=1.0
        What the release costs, positive.
    delta : float, default=0.0
        In [0, 1). 0 adds discrete Laplace noise, a positive delta Gaussian noise where it is
        smaller.
    categories : tuple of (sequence, sequence)
        The labels of the table's rows and of its columns, declared, never read off the data.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    ndarray of int64, shape (n_categories of index, n_categories of columns)
        Not negative. Of all such tables it is, but for rounding, the nearest to the noisy one of
        the same total, which is at most the number of rows, or of persons; so it is not unbiased.
        If `index` is a Series of pandas, a DataFrame with the categories as its labels.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

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
        raise ValueError(f"categories must be those of index and of columns, got {categories!r}")
    check_consistent_length(index, columns)
    pairings = [one.index for one in (index, columns) if hasattr(one, "iloc")]
    if len(pairings) == 2 and not pairings[0].equals(pairings[1]):
        raise ValueError("index and columns must have the same index: rows are paired by position")
    codes, known = zip(
        *map(_codes, (index, columns), categories, ("index", "columns")), strict=True
    )
    X = np.column_stack(codes).astype(np.float64)
    bins = tuple(np.arange(len(own) + 1) - 0.5 for own in known)
    plan = partial(CrosstabPlan, bins=bins, joint=True)
    counts = release(
        "dp_crosstab",
        X,
        plan,
        (0.0, 1.0),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    if not hasattr(index, "iloc"):
        return counts
    from pandas import DataFrame, Index

    named = zip(known, (index, columns), strict=True)
    return DataFrame(counts, *(Index(own, name=getattr(one, "name", None)) for own, one in named))


@dataclass(frozen=True, kw_only=True, eq=False)
class CrosstabPlan(HistogramPlan):
    """Counts of pairs of labels, together at most as many as there are units.

    Parameters
    ----------
    n_rows : int
        The public number of units.
    **of_histogram
        As of `HistogramPlan`.
    """

    n_rows: int

    def run(self, X, source, persons=None):
        """Return whole numbers, none negative."""
        return nearest_counts(super().run(X, source, persons)[0], self.n_rows)


def nearest_counts(noisy, most):
    """Return the nearest counts that are not negative, of the same total, 0 to `most`.

    All that are left above 0 are lowered by the same amount; fractions are then rounded so that
    the total stays.
    """
    total = np.rint(np.clip(noisy.sum(), 0.0, most))
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
    """Most frequent label with differential privacy.

    One category is chosen, by permute-and-flip; no count is released. The choice is
    (`epsilon`, 0)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,)
        Labels. The number of rows is public.
    epsilon : float, default=1.0
        What the release costs, positive.
    categories : sequence
        The labels that can be the answer, declared, never read off the data.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
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
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

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
    codes, known = _codes(a, categories, "a")
    plan = partial(ModePlan, n_categories=len(known))
    place = release(
        "dp_mode",
        codes[:, np.newaxis],
        plan,
        epsilon=epsilon,
        delta=0.0,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return known[place : place + 1].tolist()[0]
