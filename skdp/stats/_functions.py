"""Private statistics of columns, with results shaped like NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._columns import declared_bounds
from skdp._data._dask import in_one_run
from skdp._data._histogram import check_edges
from skdp.ledger import PrivacyAccountant
from skdp.stats._bounds import plan_bounds
from skdp.stats._moments import (
    bin_edges,
    check_bins,
    plan_histogram,
    plan_moments,
    plan_nonzero_counts,
    plan_sums,
)
from skdp.stats._quantiles import check_quantiles, plan_quantiles
from skdp.stats._release import check_rows, plan_within_bounds, release, shaped
from skdp.utils._validation import as_doubles, is_auto


def _release_columns(
    name,
    a,
    plan,
    index,
    *,
    bounds,
    axis,
    epsilon,
    delta,
    groups,
    accountant,
    random_state,
    nan_policy="raise",
):
    """Release a statistic of columns within bounds and return element `index` of the result."""
    X, is_vector = check_rows(a, axis, nan_policy)
    within = release(
        name,
        X,
        partial(plan_within_bounds, plan, bounds),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return shaped(within.released[index], is_vector)


@in_one_run
def dp_mean(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    nan_policy: Literal["raise", "omit"] = "raise",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> float | np.ndarray:
    """Return the mean with differential privacy.

    Noise is added to the sum of the differences from the center of the bounds, and the sum is
    divided by the public number of rows. The release is (`epsilon`, `delta`)-DP under the
    accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is Laplace noise, otherwise Gaussian
        noise.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
    nan_policy : {"raise", "omit"}, default="raise"
        "omit" leaves out missing values (NaN, None). The release then includes the number of
        non-missing values in each column. This raises the noise, except for `dp_mean` under
        replace-one.
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
    float or ndarray of shape (n_columns,)
        The noisy mean, within the bounds.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_mean
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=10_000)
    >>> bool(abs(dp_mean(ages, epsilon=1.0, bounds=(17, 90)) - ages.mean()) < 1.0)
    True
    """
    plan = partial(plan_moments, n_moments=1, counted=nan_policy == "omit")
    return _release_columns(
        "dp_mean",
        a,
        plan,
        0,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        axis=axis,
        nan_policy=nan_policy,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_var(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    nan_policy: Literal["raise", "omit"] = "raise",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> float | np.ndarray:
    """Return the variance with differential privacy, like `numpy.var` with ``ddof=0``.

    The variance is computed from one release of noisy sums and sums of squares, which is
    (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is Laplace noise, otherwise Gaussian
        noise.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
    nan_policy : {"raise", "omit"}, default="raise"
        "omit" leaves out missing values (NaN, None). The release then includes the number of
        non-missing values in each column. This raises the noise, except for `dp_mean` under
        replace-one.
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
    float or ndarray of shape (n_columns,)
        The noisy variance. It is at least the standard deviation of the noise, and at most the
        largest variance within the bounds. If the noise hides the data, it is the variance of a
        uniform distribution over the bounds.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_var
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=10_000)
    >>> bool(abs(dp_var(ages, epsilon=1.0, bounds=(17, 90)) / ages.var() - 1) < 0.1)
    True
    """
    plan = partial(plan_moments, n_moments=2, counted=nan_policy == "omit")
    return _release_columns(
        "dp_var",
        a,
        plan,
        1,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        axis=axis,
        nan_policy=nan_policy,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_sum(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> float | np.ndarray:
    """Return the sum with differential privacy.

    Under add/remove, a null row counts as 0, and the sensitivity is the larger magnitude of the
    bounds. Under replace-one, it is the distance between the bounds. The release is (`epsilon`,
    `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is Laplace noise, otherwise Gaussian
        noise.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    float or ndarray of shape (n_columns,)

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_sum
    >>> hours = np.random.default_rng(0).uniform(0, 24, size=10_000)
    >>> bool(abs(dp_sum(hours, epsilon=1.0, bounds=(0, 24)) - hours.sum()) < 1000)
    True
    """
    return _release_columns(
        "dp_sum",
        a,
        plan_sums,
        ...,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        axis=axis,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_count(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> int | np.ndarray:
    """Return the number of nonzero values with differential privacy; see `numpy.count_nonzero`.

    Pass a condition, such as ``ages > 65``. The release is (`epsilon`, `delta`)-DP under the
    accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    int or ndarray of int64, shape (n_columns,)
        The noisy count. It is unbiased and can be negative.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_count
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=10_000)
    >>> bool(abs(dp_count(ages > 65, epsilon=1.0) - np.count_nonzero(ages > 65)) < 50)
    True
    """
    X, is_vector = check_rows(a, axis)
    return shaped(
        release(
            "dp_count",
            X,
            plan_nonzero_counts,
            epsilon=epsilon,
            delta=delta,
            groups=groups,
            accountant=accountant,
            random_state=random_state,
        ),
        is_vector,
    )


@in_one_run
def dp_histogram(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bins: int | ArrayLike = 10,
    range: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a histogram with differential privacy.

    Bins are as in `numpy.histogram`: they contain their lower edge, the last one contains both its
    edges, and values outside the edges are not counted. All columns are counted in one pass, with
    one charge. The release is (`epsilon`, `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    bins : int or array-like of shape (n_bins + 1,), default=10
        Number of bins of equal width, or their edges, which must not be computed from the data.
    range : "auto" or tuple of (low, high), default="auto"
        Range of the bins, numbers or arrays of shape (n_columns,). It is not used if `bins` are
        edges. It must not be computed from the data. "auto" spends a fifth of epsilon on
        `estimate_bounds`, in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    counts : ndarray of int64, shape (n_bins,) or (n_columns, n_bins)
        Noisy counts. They are unbiased and can be negative.
    edges : ndarray of shape (n_bins + 1,) or (n_columns, n_bins + 1)

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_histogram
    >>> ages = np.random.default_rng(0).uniform(0, 100, size=10_000)
    >>> counts, edges = dp_histogram(ages, epsilon=1.0, bins=5, range=(0, 100))
    >>> edges.tolist()
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> bool(np.abs(counts - 2000).max() < 300)
    True
    """
    X, is_vector = check_rows(a, axis)
    counts, edges = release(
        "dp_histogram",
        X,
        _histogram_planner(X.shape[1], bins, range, joint=False),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    ).released
    if is_vector:
        return (counts[0], edges[0])
    return (np.stack(counts), np.stack(edges))


@in_one_run
def dp_histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: object = "auto",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a histogram of two columns with differential privacy, like `numpy.histogram2d`.

    The release is (`epsilon`, `delta`)-DP under the accountant's relation; a row is a pair of
    values.

    Parameters
    ----------
    x, y : array-like of shape (n_rows,)
        Finite numbers. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    bins : int, or pair of int or array-like, default=10
        Number of bins, or edges, of x and y.
    range : "auto" or pair of (low, high), default="auto"
        Ranges of the bins of x and of y. Not used if `bins` are edges. It must not be computed
        from the data. "auto" spends a fifth of epsilon on `estimate_bounds`, in the same charge.
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
    counts : ndarray of int64, shape (n_bins of x, n_bins of y)
        Noisy counts. They are unbiased and can be negative.
    x_edges, y_edges : ndarray

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_histogram2d
    >>> x, y = np.random.default_rng(0).uniform(0, 1, size=(2, 10_000))
    >>> counts, _, _ = dp_histogram2d(x, y, bins=(2, 3), range=((0, 1), (0, 1)))
    >>> counts.shape
    (2, 3)
    """
    columns = [check_rows(column, 0) for column in (x, y)]
    if not all(is_vector for _, is_vector in columns) or len(columns[0][0]) != len(columns[1][0]):
        raise ValueError("x and y must be vectors of the same length")
    X = np.hstack([column for column, _ in columns])
    counts, edges = release(
        "dp_histogram2d",
        X,
        _histogram_planner(X.shape[1], bins, range),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    ).released
    return counts, *edges


@in_one_run
def dp_histogramdd(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: object = "auto",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return a joint histogram of columns with differential privacy; see `numpy.histogramdd`.

    The release is (`epsilon`, `delta`)-DP under the accountant's relation. A row is in at most one
    bin, regardless of the number of columns.

    Parameters
    ----------
    a : array-like of shape (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    bins : int, or sequence of int or array-like, default=10
        Number of bins, or edges, of each column.
    range : "auto" or sequence of (low, high), default="auto"
        Range of the bins of each column. Not used if `bins` are edges. It must not be computed
        from the data. "auto" spends a fifth of epsilon on `estimate_bounds`, in the same charge.
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
    counts : ndarray of int64, shape (n_bins of the first, n_bins of the second, ...)
        Noisy counts. They are unbiased and can be negative.
    edges : list of ndarray

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_histogramdd
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(10_000, 3))
    >>> counts, _ = dp_histogramdd(X, bins=(2, 3, 4), range=[(0, 1)] * 3)
    >>> counts.shape
    (2, 3, 4)
    """
    X, _ = check_rows(a, 0)
    return release(
        "dp_histogramdd",
        X,
        _histogram_planner(X.shape[1], bins, range),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    ).released


def _histogram_planner(n_columns, bins, range, *, joint=True):
    """Return the function of a shape and a guarantee that plans the counts of bins.

    With `joint`, `bins` and `range` may differ between columns.
    """
    if not (joint and isinstance(bins, tuple | list) and len(bins) == n_columns):
        bins = (bins,) * n_columns
    bins = tuple(check_bins(column_bins) for column_bins in bins)
    if not any(isinstance(column_bins, int) for column_bins in bins):
        # The edges are declared, so the range is not used.
        range = (0.0, 1.0)
    elif joint and not is_auto(range):
        ends = as_doubles(range)
        if ends.size != 2 * n_columns or np.isnan(ends).any():
            raise ValueError(f"range must be one pair (low, high) per column, got {range!r}")
        range = tuple(ends.reshape(n_columns, 2).T)

    def make_plan(shape, guarantee):
        """Return the plan of the histogram for a table of this shape."""
        try:
            low, high = declared_bounds(range, shape)
        except ValueError as error:
            raise ValueError(f"range: {error}") from None
        _check_resolved_bins(bins, low, high)
        plan_counts = partial(plan_histogram, bins=bins, joint=joint)
        return plan_within_bounds(plan_counts, range, shape, guarantee)

    return make_plan


def _check_resolved_bins(bins, low, high):
    """Raise `ValueError` if doubles do not resolve the edges of the bins.

    An undeclared range is NaN, and a range of [-1, 1] is then checked before the charge. If a
    narrower range is found, its bins may be empty.
    """
    low = np.nan_to_num(low, nan=-1.0)
    high = np.nan_to_num(high, nan=1.0)
    for edges in bin_edges(low, high, bins):
        check_edges(edges, "range is too narrow for that many bins")


@in_one_run
def dp_quantile(
    a: ArrayLike,
    q: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> float | np.ndarray:
    """Return quantiles with differential privacy.

    All quantiles of all columns are released with one charge. Each is one of 2**24 + 1 points
    between the bounds, chosen by the exponential mechanism. Several quantiles are chosen
    recursively, so the error grows with the logarithm of their number. The release is (`epsilon`,
    `delta`)-DP under the accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    q : float or array-like of shape (n_quantiles,)
        Probabilities in [0, 1].
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). A positive delta permits a tighter composition of the
        choices, which helps if there are many quantiles.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    float or ndarray of shape (n_quantiles,), (n_columns,) or (n_quantiles, n_columns)
        Noisy quantiles with the shape that `numpy.quantile` returns, non-decreasing in q.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    References
    ----------
    A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates", 2011. H.
    Kaplan, S. Schnapp, U. Stemmer, "Differentially Private Approximate Quantiles", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_quantile
    >>> ages = np.random.default_rng(0).uniform(0, 100, size=10_000)
    >>> quartiles = dp_quantile(ages, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(0, 100))
    >>> bool(np.abs(quartiles - [25, 50, 75]).max() < 5)
    True
    """
    plan = partial(plan_quantiles, quantiles=check_quantiles(q, "q"))
    index = ... if np.ndim(q) else 0
    return _release_columns(
        "dp_quantile",
        a,
        plan,
        index,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        axis=axis,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_median(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | Literal["auto"] = "auto",
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> float | np.ndarray:
    """Return the median with differential privacy, like `dp_quantile` with q = 0.5.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). A positive delta permits a tighter composition of the
        choices, which helps if there are many quantiles.
    bounds : "auto" or tuple of (low, high), default="auto"
        Numbers or arrays of shape (n_columns,), with low < high. Values are clipped to them. They
        must not be computed from the data. "auto" spends a fifth of epsilon on `estimate_bounds`,
        in the same charge.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    float or ndarray of shape (n_columns,)

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import dp_median
    >>> ages = np.random.default_rng(0).uniform(0, 100, size=10_000)
    >>> bool(abs(dp_median(ages, epsilon=1.0, bounds=(0, 100)) - 50) < 5)
    True
    """
    plan = partial(plan_quantiles, quantiles=0.5)
    return _release_columns(
        "dp_median",
        a,
        plan,
        0,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        axis=axis,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def estimate_bounds(
    a: ArrayLike,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    axis: int | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Return bounds of columns with differential privacy.

    They are read from a noisy histogram over bins whose width grows with their distance from 0. A
    bin counts as occupied if its noisy count exceeds a threshold. In an empty column, the
    probability that noise exceeds it in any bin is 1e-4. A few distant values may therefore be
    outside the bounds. The bins are ranges between powers of two, each divided into up to 8 bins if
    there are many rows.

    If a column occupies only one or two bins, these are divided into equal cells, which are counted
    in a second step with a small part of the budget. So bounds are also tight for values whose
    spread is small relative to their magnitude. The release is (`epsilon`, `delta`)-DP under the
    accountant's relation.

    Parameters
    ----------
    a : array-like of shape (n_rows,) or (n_rows, n_columns)
        Finite numbers. The privacy unit is a row. The number of rows is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is discrete Laplace noise. Otherwise,
        Gaussian noise is used if its expected error is smaller.
    axis : None or 0, default=None
        The axis of the rows. It must be 0 for a matrix; the result has one entry per column.
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
    low, high : float or ndarray of shape (n_columns,)
        The outer edges of the outermost occupied bins, or of occupied cells if these are at least
        four times as narrow; low < high. If no value except 0 is visible above the noise, they are
        -1 and 1, with a warning. Magnitudes are between 2**-100 and 2**100.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    References
    ----------
    R. Wilson, C. Y. Zhang, W. Lam, D. Desfontaines, D. Simmons-Marengo, B. Gipson,
    "Differentially Private SQL with Bounded User Contribution", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.stats import estimate_bounds
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=10_000)
    >>> estimate_bounds(ages, epsilon=1.0, random_state=0)
    (16.0, 96.0)
    """
    X, is_vector = check_rows(a, axis)
    low, high = release(
        "estimate_bounds",
        X,
        plan_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return shaped(low, is_vector), shaped(high, is_vector)
