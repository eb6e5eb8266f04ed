"""Standardization with differential privacy."""

import numpy as np

from skdp.base import plans_for_groups, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._planned import CenteringTransformer, plan_columns
from skdp.stats._moments import MomentsPlan


class DPStandardScaler(CenteringTransformer):
    """Standardize features by noisy means and variances.

    Values are clipped to `bounds`. One joint release holds the sums and the
    sums of squares of all features.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). 0 adds Laplace noise; a positive delta adds Gaussian
        noise, which is smaller where there are many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        The range of each feature: numbers or arrays of shape (n_features,), or one pair for each
        column by its name or place; with low < high, within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" spends a fifth of epsilon, and at most
        of delta, on `skdp.stats.estimate_bounds`, in the same charge.
    with_mean : bool, default=True
        Whether `transform` subtracts the mean.
    with_std : bool, default=True
        Whether `transform` divides by the standard deviation. Without it only the means are
        released, with less noise.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        The given bounds, or the released ones.
    mean_ : ndarray of shape (n_features,)
        Noisy means, within the bounds.
    var_ : ndarray of shape (n_features,) or None
        Noisy variances, at least the noise's own standard deviation and at most what the
        bounds allow. Where that noise exceeds the variance of a uniform distribution over the
        bounds, nothing of the data is left: `var_` is that variance and `mean_` the middle.
        None without `with_std`.
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
    the row as the unit. The number of rows is public. The proof is in ``docs/guarantees.md``.

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
    def _middle(self):
        return self.mean_ if self.with_mean else None

    @property
    def _spread(self):
        return self.scale_ if self.with_std else None

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: tuple | dict | str = "auto",
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
        """Release statistics of each feature and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows; `DPPCA` takes a sparse matrix too. They are read block by block where what is
            released is a sum.
        y : None
            Ignored, present for pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

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
        return self._fit(X, y, groups)

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. Where the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are checked all the same.
        guarantee : Guarantee
            Guarantee that the fit must meet; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Made from public information only: no data, no charge, no noise.

        Raises
        ------
        ValueError
            If `fit` would refuse a parameter.
        """
        _, with_std = self._switches("with_mean", "with_std")

        return plan_columns(self, MomentsPlan, shape, guarantee, n_moments=2 if with_std else 1)

    def _learned(self, released, low, high, plan):
        mean, variance = released
        scale = None if variance is None else np.sqrt(variance)
        return {"mean_": mean, "var_": variance, "scale_": scale}
