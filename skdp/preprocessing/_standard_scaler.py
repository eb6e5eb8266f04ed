"""Standardization with differential privacy."""

from functools import partial
from typing import Literal

import numpy as np

from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._planned import CenteringTransformer
from skdp.stats._moments import plan_moments
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds
from skdp.utils._validation import check_any_true


class DPStandardScaler(CenteringTransformer):
    """Standardize features with noisy means and variances.

    Values are clipped to `bounds`. The sums and sums of squares of all features are released
    jointly.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). 0 adds Laplace noise. A positive delta adds Gaussian noise, which
        is smaller with many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. low < high, both within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" spends a fifth of epsilon, and at most
        a fifth of delta, on `skdp.stats.estimate_bounds`, in the same charge.
    with_mean : bool, default=True
        If True, `transform` subtracts the mean.
    with_std : bool, default=True
        If True, `transform` divides by the standard deviation. Otherwise only the means are
        released, with less noise.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        Bounds of each feature, declared or found privately.
    mean_ : ndarray of shape (n_features,)
        Noisy means, clipped to the bounds.
    var_ : ndarray of shape (n_features,) or None
        Noisy variances, at least the standard deviation of their noise and at most the largest
        variance within the bounds. If that noise exceeds the variance of a uniform distribution
        over the bounds, `var_` is this variance and `mean_` the midpoint of the bounds. None
        without `with_std`.
    scale_ : ndarray of shape (n_features,) or None
        Square roots of `var_`.
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
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. The proof is in
    ``docs/theory/guarantees.md``.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith. Calibrating noise to sensitivity in private
    data analysis. TCC 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPStandardScaler
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=(10_000, 1))
    >>> scaler = DPStandardScaler(epsilon=1.0, bounds=(17, 90)).fit(ages)
    >>> bool(abs(scaler.mean_[0] - ages.mean()) < 1.0)
    True
    """

    _shape_dependent_if_auto = ("bounds",)

    @property
    def _undoes_scaling(self):
        return self.with_mean and self.with_std

    @property
    def _middle(self):
        """Numbers that are subtracted from the columns; None without centering."""
        if self.with_mean:
            return self.mean_
        return None

    @property
    def _spread(self):
        """Numbers by which the columns are divided; None without scaling."""
        if self.with_std:
            return self.scale_
        return None

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        with_mean: bool = True,
        with_std: bool = True,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_mean = with_mean
        self.with_std = with_std
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
            mean, variance = within.released
            scale = None
            if variance is not None:
                scale = np.sqrt(variance)
            fit.publish(plan, bounds_=within.bounds, mean_=mean, var_=variance, scale_=scale)
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
        check_any_true(with_mean=self.with_mean, with_std=self.with_std)
        n_moments = 1
        if self.with_std:
            n_moments = 2
        plan_statistics = partial(plan_moments, n_moments=n_moments)
        return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)
