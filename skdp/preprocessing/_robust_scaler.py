"""Scaling by private medians and interquantile ranges."""

from functools import partial

from skdp.preprocessing._min_max_scaler import check_quantile_range
from skdp.preprocessing._planned import (
    CentringTransformer,
    ColumnsFit,
    flat_ranges,
    plan_column_quantiles,
)
from skdp.utils._validation import check_boolean


class DPRobustScaler(CentringTransformer):
    r"""Scale features by private medians and interquantile ranges.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive, for all features together.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). A positive delta makes the noise smaller where there are
        many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high), default="auto"
        The range of each feature: numbers or arrays of shape (n_features,), or one pair for each
        column by its name or place; with low < high, within -1e150 and 1e150 and at least 1e-150
        apart; it must not be computed from the data. "auto" finds it privately, for a fifth of
        epsilon and at most of delta. Values are clipped to it in `fit`.
    with_centering : bool, default=True
        Whether `transform` subtracts the median.
    with_scaling : bool, default=True
        Whether `transform` divides by the interquantile range. Without it only medians are
        released, with less noise.
    quantile_range : tuple of (float, float), default=(25.0, 75.0)
        The range's ends, in per cent.
    {accountant}
    {random_state}

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Noisy medians, within the bounds. None without `with_centering`.
    scale_ : ndarray of shape (n_features,) or None
        Noisy interquantile ranges; one that is nearly nothing (2**-21 of the bounds' range or
        less) counts as the bounds' range. None without `with_scaling`.
    bounds_ : tuple of ndarray of shape (n_features,)
        The bounds, declared or found.
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/encoders.md``.

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

    with_centering: bool = True
    with_scaling: bool = True
    quantile_range: tuple[float, float] = (25.0, 75.0)

    _middle = property(lambda self: self.center_ if self.with_centering else None)
    _spread = property(lambda self: self.scale_ if self.with_scaling else None)

    def plan_fit(self, shape, guarantee):
        with_centering = check_boolean(self.with_centering, "with_centering")
        with_scaling = check_boolean(self.with_scaling, "with_scaling")
        if not (with_centering or with_scaling):
            raise ValueError("one of with_centering and with_scaling must be true")
        ends = check_quantile_range(self.quantile_range)
        # Three quantiles take as many levels of choices as the two ends alone.
        quantiles = (ends[0], 0.5, ends[1]) if with_scaling else (0.5,)
        plan = plan_column_quantiles(quantiles, self.bounds, shape, guarantee)
        attributes = partial(_attributes, centred=with_centering, scaled=with_scaling)
        return ColumnsFit(mechanism=plan, n_features_out=shape.n_columns, attributes=attributes)


def _attributes(quantiles, low, high, *, centred, scaled):
    return {
        "center_": quantiles[len(quantiles) // 2] if centred else None,
        "scale_": flat_ranges(quantiles[-1] - quantiles[0], low, high) if scaled else None,
    }
