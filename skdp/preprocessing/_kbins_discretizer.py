"""Discretization of features into bins with differentially private edges."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_numeric_columns
from skdp._data._frames import objects
from skdp.base import (
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import join_plans, plan_release
from skdp.preprocessing import _binning
from skdp.preprocessing._planned import PlannedTransformer
from skdp.utils._documents import count_of
from skdp.utils._types import Bounds
from skdp.utils._validation import check_choice, has_auto, is_choice
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class ReleasedBins(FrozenValue):
    """Bins of all columns, with released edges and counts.

    Parameters
    ----------
    bins : list of ColumnBins
    counts : ndarray of ndarray, default=None
        Counts of the bins of each column; None if they are not released.
    """

    bins: list
    counts: np.ndarray | None = None

    @property
    def bin_edges(self):
        """Edges, or declared categories, of each column."""
        return objects([column.limits for column in self.bins])

    @property
    def n_bins(self):
        """Number of bins of each column."""
        return np.array([column.size for column in self.bins])


def _release_edges(edges, table, source, persons=None):
    """Return the `ReleasedBins` of an `EdgesSearch`."""
    return ReleasedBins(edges.run(table, source, persons))


class DPKBinsDiscretizer(PlannedTransformer):
    """Bin continuous features into intervals with private edges.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With many columns, a positive delta makes the noise smaller.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or one pair per column. It
        must not be computed from the data. "auto" finds it privately, for a fifth of epsilon with
        "quantile" and for all of it with "uniform".
    n_bins : int or "auto", default=5
        Number of bins, from 2 to 2**20. A feature with only a few common values has fewer bins.
        "auto" is 32 for "uniform". For "quantile" it is the largest number from 8 to 32 for which
        each bin has at least 2.5 times as many rows as the noise scale of a quantile's rank.
    encode : {"onehot", "onehot-dense", "ordinal"}, default="onehot"
        "onehot": a sparse matrix with one column per bin. "onehot-dense": the same as an array.
        "ordinal": the index of the bin, from 0.
    strategy : {"quantile", "uniform"}, default="quantile"
        "quantile": bins with about equal numbers of rows. "uniform": bins of equal width between
        the bounds, which must then be "auto", because with declared bounds there is nothing to
        learn.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features,), of ndarray
        Edges of each feature's bins; the outermost ones are the bounds.
    n_bins_ : ndarray of shape (n_features,)
        Number of bins of each feature.
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

    See Also
    --------
    DPHistogramTransformer : Also releases counts and accepts categorical columns.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. The proof is in
    ``docs/theory/transformers.md``. A row of one-hot output has norm ``sqrt(n_features)``.

    References
    ----------
    H. Kaplan, S. Schnapp and U. Stemmer. Differentially private approximate quantiles. ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKBinsDiscretizer
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(10_000, 1))
    >>> discretizer = DPKBinsDiscretizer(bounds=(0, 100), n_bins=4, encode="ordinal").fit(X)
    >>> bool(np.abs(discretizer.bin_edges_[0] - [0, 25, 50, 75, 100]).max() < 5)
    True
    """

    _undoes_scaling = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        n_bins: int | Literal["auto"] = 5,
        encode: Literal["onehot", "onehot-dense", "ordinal"] = "onehot",
        strategy: Literal["quantile", "uniform"] = "quantile",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_bins = n_bins
        self.encode = encode
        self.strategy = strategy
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X, reset=True):
        """Return validated columns of numbers."""
        return read_numeric_columns(self, X, reset=reset)

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
            released = fit.run(plan, table)
            fit.publish(
                plan, bin_edges_=released.bin_edges, n_bins_=released.n_bins, _bins=released.bins
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
        check_choice(self.encode, "encode", ("onehot", "onehot-dense", "ordinal"))
        check_choice(self.strategy, "strategy", _binning.AUTOMATIC)
        if self.strategy == "uniform" and not has_auto(self.bounds):
            raise ValueError(
                "between declared bounds the edges of strategy='uniform' are known without data: "
                "fit scikit-learn's KBinsDiscretizer on the bounds, as a table of two rows"
            )
        bins = _binning.column_bins(None, None, self.strategy, shape.names, shape.n_columns)
        edges = _binning.EdgesSearch.make(bins, self.n_bins, self.bounds, shape, guarantee)
        plan = join_plans((edges.search, edges.quantiles), guarantee)
        run = partial(_release_edges, edges)
        return plan_release(plan, run, sparse_output=self.encode == "onehot")

    @row_wise_answer
    def transform(self, X):
        """Replace each value by its bin.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Values beyond the outermost edges belong to the outermost bins.

        Returns
        -------
        csr_array or ndarray, float64
            Shape (n_samples, sum of `n_bins_`), or (n_samples, n_features) for "ordinal".
        """
        codes = _binning.bin_codes(self._read_samples(X), self._bins)
        if self.encode == "ordinal":
            return codes.astype(np.float64)
        return _binning.one_hot(codes, self.n_bins_, 1.0, sparse=self.encode == "onehot")

    @private_answer
    def inverse_transform(self, X):
        """Replace each bin by its midpoint.

        Parameters
        ----------
        X : array-like or sparse matrix
            Output of `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64

        Raises
        ------
        ValueError
            If the number of columns of X differs from that of the output of `transform`.
        """
        check_is_fitted(self)
        if hasattr(X, "toarray"):
            X = X.toarray()
        X = np.asarray(X, dtype=np.float64)
        sizes = self.n_bins_
        width = len(sizes)
        if self.encode != "ordinal":
            width = int(sizes.sum())
        if X.ndim != 2 or X.shape[1] != width:
            raise ValueError(f"X must have {count_of(width, 'column')}, got shape {X.shape}")
        codes = X.T
        if self.encode != "ordinal":
            indicators = np.split(X, np.cumsum(sizes)[:-1], axis=1)
            codes = [column_indicators.argmax(axis=1) for column_indicators in indicators]
        values = np.empty((len(X), len(sizes)))
        for j, edges in enumerate(self.bin_edges_):
            middles = edges[:-1] + 0.5 * np.diff(edges)
            values[:, j] = middles[np.clip(codes[j], 0, sizes[j] - 1).astype(np.intp)]
        return values

    def _parts_of_columns(self):
        if self.encode != "ordinal":
            return [map(float, range(size)) for size in self.n_bins_]

    def _planned_parts(self, form):
        """Return the names of each column's bins before a fit, or None where they are found.

        The result is None if every column has one output.
        """
        if is_choice(self.encode, "ordinal"):
            return None
        if not is_choice(self.strategy, "uniform"):
            # The number of bins is not known: quantiles that fall on a common value form one edge.
            return [None] * form.n_columns
        n_bins = _binning.planned_n_bins(self.n_bins)
        return [[float(k) for k in range(n_bins)]] * form.n_columns

    @property
    def _makes_sparse(self):
        return is_choice(self.encode, "onehot")
