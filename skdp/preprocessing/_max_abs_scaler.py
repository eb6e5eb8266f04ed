"""Scaling by private upper quantiles of magnitudes."""

from dataclasses import replace

import numpy as np

from skdp._data._tables import read_samples
from skdp.preprocessing._planned import (
    LARGEST_TAIL,
    BoundedColumnsTransformer,
    TransformerPlan,
    flat_ranges,
    plan_column_quantiles,
    tail_of_noise,
)
from skdp.utils._validation import check_boolean, check_within, is_auto


class ScaledByMagnitude(TransformerPlan):
    """One quantile of the magnitudes of each column's values, which are clipped to bounds before.

    A magnitude depends on its row alone, so the sensitivities are those of quantiles of values.
    """

    def run(self, X, source, **shared):
        """Return the released attributes."""
        plan = self.mechanism.find(X, source, **shared)
        low, high = plan.low, plan.high
        # Between these are the magnitudes of numbers within the bounds.
        least, largest = np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)
        columns = zip(X.T, low, high, strict=True)
        magnitudes = (np.abs(np.clip(x, *ends, dtype=np.float64)) for x, *ends in columns)
        plan_magnitudes = replace(plan, low=least, high=largest)
        max_abs = plan_magnitudes.run(magnitudes, source, **shared)[0]
        return {
            "max_abs_": max_abs,
            "scale_": flat_ranges(max_abs, 0.0, largest),
            "quantile_": 100.0 * float(plan.quantiles[0]),
            "bounds_": (low, high),
        }


class DPMaxAbsScaler(BoundedColumnsTransformer):
    r"""Divide features by private upper quantiles of their magnitudes.

    The largest magnitude is that of a single row, so that no private release can be near it. A
    quantile takes its place; beyond it values leave [-1, 1], unless `clip` is set. Nothing is
    subtracted: signs stay, and zero stays zero.

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
    quantile : "auto" or float, default="auto"
        Which quantile of the magnitudes, in per cent, above 0 and at most 100. "auto" takes one
        as far out as noise allows: with s the scale of the noise of a quantile's rank, the share
        min(0.05, 12 s / n_samples) of the rows is left out: none as epsilon grows.
    clip : bool, default=False
        Whether `transform` clips to [-1, 1].
    {accountant}
    {random_state}

    Attributes
    ----------
    max_abs_ : ndarray of shape (n_features,)
        Noisy quantiles of the magnitudes, as large as the bounds allow at most.
    scale_ : ndarray of shape (n_features,)
        What `transform` divides by: `max_abs_`; where that is nearly nothing (2**-21 of the
        bounds' larger magnitude or less) the bounds' larger magnitude.
    quantile_ : float
        The quantile, in per cent.
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

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMaxAbsScaler
    >>> X = np.random.default_rng(0).uniform(-60, 20, size=(10_000, 1))
    >>> scaler = DPMaxAbsScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.max_abs_[0] - 60) < 5)
    True
    """

    quantile: float | str = "auto"
    clip: bool = False

    _undoes_scaling, _known_range = False, True

    def plan_fit(self, shape, guarantee):
        check_boolean(self.clip, "clip")

        def planned(share):
            return plan_column_quantiles((share,), self.bounds, shape, guarantee)

        if is_auto(self.quantile):
            share = 1.0 - tail_of_noise(planned(1.0 - LARGEST_TAIL))
        else:
            share = check_within(self.quantile, "quantile", 0.0, 100.0, "(]") / 100.0
        return ScaledByMagnitude(mechanism=planned(share), n_features_out=shape.n_columns)

    def transform(self, X):
        """Scale features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; what is beyond the bounds counts as the bound.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = self._clipped(X) / self.scale_
        return np.clip(X, -1.0, 1.0) if self.clip else X

    def inverse_transform(self, X):
        """Undo `transform`, but for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        return read_samples(self, X) * self.scale_
