"""A private estimate of each feature's distribution function, as a transformer."""

import numpy as np
from scipy.special import ndtr, ndtri

from skdp._data._tables import read_samples
from skdp.preprocessing._planned import BoundedColumnsTransformer, plan_columns
from skdp.stats._quantiles import QuantilePlan
from skdp.utils._validation import check_choice, check_integer, is_auto

# "auto" takes as many levels of quantiles, at most 9, as keep this many scales of the ranks'
# errors between neighbouring quantiles.
SCALES_APART = 4.0
MOST_LEVELS = 10

# As in scikit-learn: where the normal output ends.
LEAST_SHARE = 1e-7


class DPQuantileTransformer(BoundedColumnsTransformer):
    r"""Map features to a uniform or normal distribution, by many private quantiles.

    A value is mapped to the share of the rows below it, interpolated between noisy quantiles that
    start and end with the bounds.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive, for all features together.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). A positive delta makes the noise smaller where there are
        many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        The range of each feature: numbers or arrays of shape (n_features,), or one pair for each
        column by its name or place; with low < high, within -1e150 and 1e150 and at least 1e-150
        apart; it must not be computed from the data. "auto" finds it privately, for a fifth of
        epsilon and at most of delta. Values are clipped to it in `fit`.
    n_quantiles : "auto" or int, default="auto"
        How many quantiles are used, the two bounds included; at least 3. "auto" takes the most, of
        3, 5, 9, ..., 1025, whose noise is small against the distance between them; it depends on
        the numbers of rows and features, epsilon and delta alone.
    output_distribution : {"uniform", "normal"}, default="uniform"
        What features are mapped to. The normal one ends at -5.2 and 5.2.
    {accountant}
    {random_state}

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Noisy quantiles, non-decreasing; the first and the last are the bounds.
    references_ : ndarray of shape (n_quantiles,)
        The shares of the rows that they stand for, evenly from 0 to 1.
    n_quantiles_ : int
        Number of quantiles.
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
    >>> from skdp import DPQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(size=(10_000, 1))
    >>> transformer = DPQuantileTransformer(epsilon=1.0, bounds=(0, 10)).fit(X)
    >>> median = transformer.inverse_transform([[0.5]])
    >>> bool(abs(median[0, 0] - np.log(2)) < 0.1)
    True
    """

    n_quantiles: int | str = "auto"
    output_distribution: str = "uniform"

    _rescales, _known_range = False, True

    def plan_fit(self, shape, guarantee):
        check_choice(self.output_distribution, "output_distribution", ("uniform", "normal"))

        def planned(n_quantiles):
            wanted = np.linspace(0, 1, n_quantiles)[1:-1]
            return plan_columns(self, QuantilePlan, shape, guarantee, quantiles=wanted)

        if not is_auto(self.n_quantiles):
            return planned(check_integer(self.n_quantiles, "n_quantiles", 3))
        plan = planned(3)
        for intervals in 2 ** np.arange(2, MOST_LEVELS + 1):
            finer = planned(intervals + 1)
            if shape.n_rows < SCALES_APART * finer.main.scale * intervals:
                break
            plan = finer
        return plan

    def _learnt(self, released, low, high, plan):
        quantiles = np.vstack([low, released, high])
        return {
            "quantiles_": quantiles,
            "references_": np.linspace(0.0, 1.0, len(quantiles)),
            "n_quantiles_": len(quantiles),
        }

    def transform(self, X):
        """Map features to the output distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = read_samples(self, X)
        shares = np.empty_like(X)
        for j, quantiles in enumerate(self.quantiles_.T):
            # The mean of two, so that a value on equal quantiles gets the middle of their shares.
            up = np.interp(X[:, j], quantiles, self.references_)
            down = np.interp(-X[:, j], -quantiles[::-1], -self.references_[::-1])
            shares[:, j] = 0.5 * (up - down)
        if self.output_distribution == "uniform":
            return shares
        return ndtri(np.clip(shares, LEAST_SHARE, 1.0 - LEAST_SHARE))

    def inverse_transform(self, X):
        """Map values of the output distribution to those of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = read_samples(self, X)
        shares = X if self.output_distribution == "uniform" else ndtr(X)
        columns = zip(shares.T, self.quantiles_.T, strict=True)
        return np.column_stack([np.interp(s, self.references_, q) for s, q in columns])
