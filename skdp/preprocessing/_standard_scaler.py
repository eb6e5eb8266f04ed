"""Standardisation with differential privacy."""

import math

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.base import PrivateFit, relation_of
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.preprocessing._additive import noise_deviation
from skdp.preprocessing._unit_blocks import BLOCK_ROWS, unit_blocks
from skdp.utils._validation import check_boolean, check_bounds, check_privacy_parameters

__all__ = ["DPStandardScaler"]

# The (L1, L2) sensitivities of one feature's sums of u, and of u and u^2 - 1/2, for u in
# [-1, 1]; derived in docs/guarantees.md.
SENSITIVITY = {
    ("add_remove", 1): (1.0, 1.0),
    ("replace_one", 1): (2.0, 2.0),
    ("add_remove", 2): (1.5, math.sqrt(1.25)),
    ("replace_one", 2): (2.25, 2.0),
}
UNIFORM_VARIANCE = 1.0 / 3.0


class DPStandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Standardise features by noisy means and variances.

    Values are clipped to `bounds`, in `fit` only. One joint release holds the sums and the
    sums of squares of all features.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). 0 adds Laplace noise; a positive delta adds Gaussian
        noise, which is smaller where there are many features.
    bounds : tuple of (low, high)
        The range of each feature, numbers or arrays of shape (n_features,), with low < high,
        within -1e150 and 1e150 and at least 1e-150 apart. It must be given and must not be
        computed from the data.
    with_mean : bool, default=True
        Whether `transform` subtracts the mean.
    with_std : bool, default=True
        Whether `transform` divides by the standard deviation. Without it only the means are
        released, with less noise.
    accountant : PrivacyAccountant, default=None
        Where fits are charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes
        the noise reproducible and thereby removable by whoever knows it.

    Attributes
    ----------
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
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has string names.
    privacy_ : PrivacyStatement
        What was guaranteed, and under which assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses; the estimator is left unfitted.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=0.0,
        bounds=None,
        with_mean=True,
        with_std=True,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_mean = with_mean
        self.with_std = with_std
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None):
        """Release noisy means and variances and charge the accountant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; values are clipped to `bounds`.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        self : DPStandardScaler
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses; the estimator is left unfitted.
        """
        with PrivateFit(self) as fit:
            epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
            with_mean = check_boolean(self.with_mean, "with_mean")
            with_std = check_boolean(self.with_std, "with_std")
            if not (with_mean or with_std):
                raise ValueError("one of with_mean and with_std must be true")
            X = validate_data(self, X, dtype="numeric", order=None)
            low, high = check_bounds(self.bounds, X.shape[1])
            n_moments = 2 if with_std else 1
            relation = relation_of(self.accountant)
            mechanism = _plan(*X.shape, n_moments, relation, epsilon, delta)

            source = fit.charge(mechanism, n_moments * X.shape[1])
            middle, half = low + (high - low) / 2, (high - low) / 2
            sums = mechanism.release(_sums(X, low, high, n_moments), random_state=source)

            mean, variance = _moments(sums, len(X), noise_deviation(mechanism, sums.size))
            fit.publish(
                mechanism,
                public=("the numbers of rows and columns", "bounds"),
                mean_=middle + half * mean,
                var_=None if variance is None else variance * half**2,
                scale_=None if variance is None else np.sqrt(variance) * half,
            )
        return self

    def transform(self, X):
        """Subtract the mean and divide by the standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.with_mean:
            X = X - self.mean_
        return X / self.scale_ if self.with_std else X

    def inverse_transform(self, X):
        """Undo `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Standardised samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.with_std:
            X = X * self.scale_
        return X + self.mean_ if self.with_mean else X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")


def _plan(n_rows, n_features, n_moments, relation, epsilon, delta):
    """Return the mechanism that releases the sums of `_sums`."""
    l1, l2 = SENSITIVITY[relation, n_moments]
    # A sum in float64 is off by a relative (blocks + rows in a block) rounding errors of the
    # sum of magnitudes, for each of the two neighbours.
    n_values = n_moments * n_features
    additions = BLOCK_ROWS + n_rows / BLOCK_ROWS + 4
    rounding = 2.0 * additions * n_rows * np.finfo(np.float64).eps
    if delta == 0.0:
        return LaplaceMechanism(epsilon, sensitivity=l1 * n_features + rounding * n_values)
    sensitivity = l2 * math.sqrt(n_features) + rounding * math.sqrt(n_values)
    return GaussianMechanism(epsilon, delta, sensitivity=sensitivity)


def _sums(X, low, high, n_moments):
    """Return the sums over rows of u and of u^2 - 1/2, for X clipped and scaled to [-1, 1]."""
    sums = np.zeros((n_moments, X.shape[1]))
    for u in unit_blocks(X, low, high):
        sums[0] += np.ones(len(u)) @ u
        if n_moments == 2:
            sums[1] += np.einsum("ij,ij->j", u, u)
    sums[1:] -= len(X) / 2
    return sums


def _moments(sums, n_rows, deviation):
    """Return the means of u and, if sums of squares were released, its variances or None."""
    noise = deviation / n_rows
    nothing_left = noise > UNIFORM_VARIANCE
    mean = np.zeros(sums.shape[1]) if nothing_left else np.clip(sums[0] / n_rows, -1.0, 1.0)
    if len(sums) == 1:
        return mean, None
    if nothing_left:
        return mean, np.full_like(mean, UNIFORM_VARIANCE)
    return mean, np.clip(sums[1] / n_rows + 0.5 - mean**2, noise, 1.0)
