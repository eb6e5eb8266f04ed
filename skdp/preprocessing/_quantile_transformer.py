"""A private estimate of each feature's distribution function, as a transformer."""

from functools import partial
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from skdp._data._tables import read_samples
from skdp.base import (
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._planned import BoundedColumnsTransformer
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds
from skdp.utils._validation import check_choice, check_integer, is_auto

# "auto" uses the largest number of levels, at most 9, at which neighboring quantiles are at least
# this many noise scales of a rank apart.
SCALES_APART = 4.0
MOST_LEVELS = 10
# Maximum of `n_quantiles`: the quantiles, and the nodes of the tree that finds them, fit into 1 GB.
MAX_QUANTILES = 2**20

# Probability at which the normal output is clipped, as in scikit-learn.
LEAST_SHARE = 1e-7


class DPQuantileTransformer(BoundedColumnsTransformer):
    """Map features to a uniform or normal distribution with private quantiles.

    A value is mapped to the fraction of the rows below it, interpolated between noisy quantiles.
    The first and the last quantile are the bounds.

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
    n_quantiles : "auto" or int, default="auto"
        Number of quantiles, including the two bounds; from 3 to 2**20. "auto" chooses the
        largest of 3, 5, 9, ..., 1025 whose noise is small compared with the distance between
        quantiles. It depends only on the numbers of rows and features, epsilon and delta.
    output_distribution : {"uniform", "normal"}, default="uniform"
        Distribution of the output. The normal one is clipped to -5.2 and 5.2.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Noisy quantiles, non-decreasing; the first and the last are the bounds.
    references_ : ndarray of shape (n_quantiles,)
        Fractions of the rows below the quantiles, evenly spaced from 0 to 1.
    n_quantiles_ : int
        Number of quantiles.
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
    >>> from skdp import DPQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(size=(10_000, 1))
    >>> transformer = DPQuantileTransformer(epsilon=1.0, bounds=(0, 10)).fit(X)
    >>> median = transformer.inverse_transform([[0.5]])
    >>> bool(abs(median[0, 0] - np.log(2)) < 0.1)
    True
    """

    _rescales = False
    _undoes_scaling = True
    _known_range = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        n_quantiles: int | Literal["auto"] = "auto",
        output_distribution: Literal["uniform", "normal"] = "uniform",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
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
            quantiles = np.vstack([low, within.released, high])
            fit.publish(
                plan,
                bounds_=within.bounds,
                quantiles_=quantiles,
                references_=np.linspace(0.0, 1.0, len(quantiles)),
                n_quantiles_=len(quantiles),
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
        check_choice(self.output_distribution, "output_distribution", ("uniform", "normal"))

        def planned(n_quantiles):
            """Return the plan of a number of quantiles, of which the outer two are the bounds."""
            probabilities = np.linspace(0, 1, n_quantiles)[1:-1]
            plan_statistics = partial(plan_quantiles, quantiles=probabilities)
            return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

        if not is_auto(self.n_quantiles):
            return planned(check_integer(self.n_quantiles, "n_quantiles", 3, MAX_QUANTILES))
        plan = planned(3)
        for intervals in 2 ** np.arange(2, MOST_LEVELS + 1):
            finer = planned(intervals + 1)
            if shape.n_rows < SCALES_APART * finer.scale * intervals:
                break
            plan = finer
        return plan

    @row_wise_answer
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
            # The mean of two interpolations maps a value shared by several quantiles to the middle
            # of their fractions.
            up = np.interp(X[:, j], quantiles, self.references_)
            down = np.interp(-X[:, j], -quantiles[::-1], -self.references_[::-1])
            shares[:, j] = 0.5 * (up - down)
        if self.output_distribution == "uniform":
            return shares
        return ndtri(np.clip(shares, LEAST_SHARE, 1.0 - LEAST_SHARE))

    @private_answer
    def inverse_transform(self, X):
        """Map values of the output distribution back to values of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = read_samples(self, X)
        if self.output_distribution == "normal":
            X = ndtr(X)
        # From here on, the values are probabilities.
        columns = zip(X.T, self.quantiles_.T, strict=True)
        return np.column_stack([np.interp(p, self.references_, q) for p, q in columns])
