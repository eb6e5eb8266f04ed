"""Standardisation with differential privacy."""

import numpy as np

from skdp.preprocessing._planned import CentringTransformer, plan_columns
from skdp.stats._moments import MomentsPlan


class DPStandardScaler(CentringTransformer):
    r"""Standardise features by noisy means and variances.

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
    {accountant}
    {random_state}

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
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

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

    _of_shape_if_auto = ("bounds",)

    with_mean: bool = True
    with_std: bool = True

    _middle = property(lambda self: self.mean_ if self.with_mean else None)
    _spread = property(lambda self: self.scale_ if self.with_std else None)

    def plan_fit(self, shape, guarantee):
        _, with_std = self._switches("with_mean", "with_std")

        return plan_columns(self, MomentsPlan, shape, guarantee, n_moments=2 if with_std else 1)

    def _learnt(self, released, low, high, plan):
        mean, variance = released
        scale = None if variance is None else np.sqrt(variance)
        return {"mean_": mean, "var_": variance, "scale_": scale}
