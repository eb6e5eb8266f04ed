"""Scaling by private quantiles: extremes, interquartile range, or magnitudes."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from skdp._data._clipping import finite_doubles
from skdp._data._parts import Rows
from skdp._data._tables import read_samples
from skdp.base import (
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._planned import BoundedColumnsTransformer, CenteringTransformer
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds
from skdp.utils._validation import (
    check_any_true,
    check_boolean,
    check_increasing,
    check_within,
    is_auto,
)

# Quantiles lie on a grid of 2**24 steps between the bounds. A range of a few steps counts as empty.
LEAST_RANGE = 2.0**-21

# Rank of the extremes that "auto" releases, in multiples of the rank's noise scale: large enough
# that the empty ranges next to the bounds are rarely selected. The second constant is the maximum
# fraction of rows left out at either end.
RANKS_PER_SCALE = 12.0
LARGEST_TAIL = 0.05


class DPMinMaxScaler(BoundedColumnsTransformer):
    """Scale features to a range by two private extreme quantiles.

    The smallest and the largest value depend on single rows, so no private release can be close to
    them. Two quantiles are used instead. Values beyond them are mapped outside the range, unless
    `clip` is set.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all features together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With many features, a positive delta makes the noise smaller.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. low < high, both within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" finds it privately for a fifth of
        epsilon and at most a fifth of delta. Values are clipped to it in `fit`.
    feature_range : tuple of (float, float), default=(0, 1)
        Images of the two quantiles, within -1e100 and 1e100.
    quantile_range : "auto" or tuple of (float, float), default="auto"
        The two quantiles, in percent. "auto" chooses quantiles as extreme as the noise allows. If s
        is the noise scale of a quantile's rank, it leaves out the fraction min(0.05, 12 s /
        n_samples) of the rows at either end. This fraction tends to 0 as epsilon grows.
    clip : bool, default=False
        If True, `transform` clips to `feature_range`.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    data_min_, data_max_ : ndarray of shape (n_features,)
        The two noisy quantiles, within the bounds.
    data_range_ : ndarray of shape (n_features,)
        ``data_max_ - data_min_``.
    scale_, min_ : ndarray of shape (n_features,)
        `transform` returns ``X * scale_ + min_``. If the range is at most 2**-21 of the bounds'
        range, the bounds are used instead of the quantiles.
    quantile_range_ : tuple of (float, float)
        The two quantiles, in percent.
    bounds_ : tuple of ndarray of shape (n_features,)
        Bounds of each feature, declared or found privately.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/theory/encoders.md``.

    References
    ----------
    A. Smith. Privacy-preserving statistical estimation with optimal convergence rates. STOC 2011.

    H. Kaplan, S. Schnapp and U. Stemmer. Differentially private approximate quantiles. ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMinMaxScaler
    >>> X = np.random.default_rng(0).uniform(20, 60, size=(10_000, 1))
    >>> scaler = DPMinMaxScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.data_min_[0] - 20) < 5 and abs(scaler.data_max_[0] - 60) < 5)
    True
    """

    _undoes_scaling = True
    _known_range = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        feature_range: tuple[float, float] = (0, 1),
        quantile_range: tuple[float, float] | Literal["auto"] = "auto",
        clip: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.feature_range = feature_range
        self.quantile_range = quantile_range
        self.clip = clip
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            low, high = within.bounds
            data_min, _, data_max = within.released
            first, last = map(float, self.feature_range)
            scale = (last - first) / flat_ranges(data_max - data_min, low, high)
            below, _, above = (100.0 * plan.mechanism.quantiles).tolist()
            fit.publish(
                plan,
                bounds_=within.bounds,
                data_min_=data_min,
                data_max_=data_max,
                data_range_=data_max - data_min,
                scale_=scale,
                min_=first - data_min * scale,
                quantile_range_=(below, above),
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        check_boolean(self.clip, "clip")
        # A quantile is at most 2**74 minimal ranges away from 0, so `min_` is finite.
        check_increasing(self.feature_range, "feature_range", -1e100, 1e100, 1e-100)

        def planned(below, above):
            """Return the plan of the release of two outer quantiles and the median."""
            # The median costs nothing: two levels of the recursion release three quantiles.
            quantiles = below, 0.5, above
            plan_statistics = partial(plan_quantiles, quantiles=quantiles)
            return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

        if not is_auto(self.quantile_range):
            return planned(*check_quantile_range(self.quantile_range))
        tail = tail_of_noise(planned(LARGEST_TAIL, 1.0 - LARGEST_TAIL), shape)
        return planned(tail, 1.0 - tail)

    @row_wise_answer
    def transform(self, X):
        """Scale features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Values are clipped to the bounds; results that overflow become the largest
            double.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = self._clipped(X)
        X = finite_doubles(X * self.scale_ + self.min_)
        if self.clip:
            X = np.clip(X, *self.feature_range)
        return X

    @private_answer
    def inverse_transform(self, X):
        """Undo `transform`, except for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        return (read_samples(self, X) - self.min_) / self.scale_


def check_quantile_range(quantile_range):
    """Return two quantiles as fractions, or raise `ValueError`."""
    below, above = check_increasing(quantile_range, "quantile_range", 0.0, 100.0)
    return below / 100.0, above / 100.0


class DPRobustScaler(CenteringTransformer):
    """Scale features by private medians and interquantile ranges.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all features together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With many features, a positive delta makes the noise smaller.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. low < high, both within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" finds it privately for a fifth of
        epsilon and at most a fifth of delta. Values are clipped to it in `fit`.
    with_centering : bool, default=True
        If True, `transform` subtracts the median.
    with_scaling : bool, default=True
        If True, `transform` divides by the interquantile range. Otherwise only medians are
        released, with less noise.
    quantile_range : tuple of (float, float), default=(25.0, 75.0)
        Ends of the interquantile range, in percent.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Noisy medians, within the bounds. None without `with_centering`.
    scale_ : ndarray of shape (n_features,) or None
        Noisy interquantile ranges. A range of at most 2**-21 of the bounds' range is replaced by
        the bounds' range. None without `with_scaling`.
    bounds_ : tuple of ndarray of shape (n_features,)
        Bounds of each feature, declared or found privately.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/theory/encoders.md``.

    References
    ----------
    A. Smith. Privacy-preserving statistical estimation with optimal convergence rates. STOC 2011.

    H. Kaplan, S. Schnapp and U. Stemmer. Differentially private approximate quantiles. ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRobustScaler
    >>> X = np.random.default_rng(0).uniform(20, 60, size=(10_000, 1))
    >>> scaler = DPRobustScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.center_[0] - 40) < 1 and abs(scaler.scale_[0] - 20) < 2)
    True
    """

    @property
    def _undoes_scaling(self):
        return self.with_centering and self.with_scaling

    @property
    def _middle(self):
        """Numbers that are subtracted from the columns; None without centering."""
        if self.with_centering:
            return self.center_
        return None

    @property
    def _spread(self):
        """Numbers by which the columns are divided; None without scaling."""
        if self.with_scaling:
            return self.scale_
        return None

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            quantiles = within.released
            center = scale = None
            if self.with_centering:
                center = quantiles[len(quantiles) // 2]
            if self.with_scaling:
                scale = flat_ranges(quantiles[-1] - quantiles[0], *within.bounds)
            fit.publish(plan, bounds_=within.bounds, center_=center, scale_=scale)
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        check_any_true(with_centering=self.with_centering, with_scaling=self.with_scaling)
        ends = check_quantile_range(self.quantile_range)
        quantiles = (0.5,)
        if self.with_scaling:
            # Three quantiles require no more levels of the recursion than two.
            quantiles = (ends[0], 0.5, ends[1])
        plan_statistics = partial(plan_quantiles, quantiles=quantiles)
        return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)


def plan_magnitudes(shape, guarantee, *, level):
    """Return the plan of one quantile of the magnitudes of each column's clipped values.

    A magnitude depends on its row alone, so the sensitivities are the same as for quantiles of
    values.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
    level : float
        Probability of the quantile.

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,).
    """
    plan = plan_quantiles(shape, guarantee, quantiles=(level,))

    return replace(plan, run=partial(_release_magnitudes, plan))


def _release_magnitudes(plan, X, source, low, high, persons=None):
    """Return the quantiles of a plan for the magnitudes of the columns' clipped values."""
    # The magnitudes of values within the bounds are between these limits.
    min_magnitude = np.maximum(np.maximum(low, -high), 0.0)
    max_magnitude = np.maximum(-low, high)
    magnitudes = Rows(X).mapped(partial(_magnitudes, low=low, high=high))
    return plan.run(magnitudes, source, min_magnitude, max_magnitude, persons)


def _magnitudes(block, low, high):
    return np.abs(np.clip(block, low, high))


class DPMaxAbsScaler(BoundedColumnsTransformer):
    """Divide features by private upper quantiles of their magnitudes.

    The largest magnitude depends on a single row, so no private release can be close to it. A
    quantile is used instead. Values beyond it are mapped outside [-1, 1], unless `clip` is set.
    Nothing is subtracted, so signs and zeros are preserved.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all features together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With many features, a positive delta makes the noise smaller.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. low < high, both within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" finds it privately for a fifth of
        epsilon and at most a fifth of delta. Values are clipped to it in `fit`.
    quantile : "auto" or float, default="auto"
        Quantile of the magnitudes, in percent, above 0 and at most 100. "auto" chooses one as
        extreme as the noise allows. If s is the noise scale of a quantile's rank, it leaves out the
        fraction min(0.05, 12 s / n_samples) of the rows. This fraction tends to 0 as epsilon grows.
    clip : bool, default=False
        If True, `transform` clips to [-1, 1].
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    max_abs_ : ndarray of shape (n_features,)
        Noisy quantiles of the magnitudes, at most the largest magnitude within the bounds.
    scale_ : ndarray of shape (n_features,)
        Divisor of `transform`: `max_abs_`, or the larger magnitude of the bounds if `max_abs_` is
        at most 2**-21 of it.
    quantile_ : float
        The quantile, in percent.
    bounds_ : tuple of ndarray of shape (n_features,)
        Bounds of each feature, declared or found privately.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/theory/encoders.md``.

    References
    ----------
    A. Smith. Privacy-preserving statistical estimation with optimal convergence rates. STOC 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMaxAbsScaler
    >>> X = np.random.default_rng(0).uniform(-60, 20, size=(10_000, 1))
    >>> scaler = DPMaxAbsScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.max_abs_[0] - 60) < 5)
    True
    """

    _known_range = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        quantile: float | Literal["auto"] = "auto",
        clip: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.quantile = quantile
        self.clip = clip
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            low, high = within.bounds
            (max_abs,) = within.released
            fit.publish(
                plan,
                bounds_=within.bounds,
                max_abs_=max_abs,
                scale_=flat_ranges(max_abs, 0.0, np.maximum(-low, high)),
                quantile_=100.0 * float(plan.mechanism.quantiles[0]),
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        check_boolean(self.clip, "clip")

        def plan_quantile(level):
            plan_statistics = partial(plan_magnitudes, level=level)
            return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

        if not is_auto(self.quantile):
            percent = check_within(self.quantile, "quantile", 0.0, 100.0, "(]")
            return plan_quantile(percent / 100.0)
        # The noise of a quantile depends very little on its level.
        preliminary = plan_quantile(1.0 - LARGEST_TAIL)
        return plan_quantile(1.0 - tail_of_noise(preliminary, shape))

    @row_wise_answer
    def transform(self, X):
        """Scale features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Values are clipped to the bounds.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = self._clipped(X) / self.scale_
        if self.clip:
            X = np.clip(X, -1.0, 1.0)
        return X

    @private_answer
    def inverse_transform(self, X):
        """Undo `transform`, except for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        return read_samples(self, X) * self.scale_


def tail_of_noise(plan, shape):
    """Return the fraction of rows to leave out at each end, from a plan with the maximum one."""
    return min(LARGEST_TAIL, RANKS_PER_SCALE * plan.scale / shape.n_rows)


def flat_ranges(ranges, low, high):
    """Return the ranges, with those that are too small replaced by the bounds' range.

    After a division by them, values within the bounds are therefore at most ``1 / LEAST_RANGE``
    apart, regardless of their unit.
    """
    return np.where(ranges > LEAST_RANGE * (high - low), ranges, high - low)
