"""Principal component analysis with differential privacy."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._tables import linear_scores, read_table
from skdp.base import plans_for_groups, private_answer, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import one_charge
from skdp.preprocessing._planned import PlannedTransformer, TransformerPlan, prefixed_names
from skdp.stats._bounds import NormPlan, plan_norm
from skdp.stats._second_moment import MEAN_WEIGHT, SecondMoment
from skdp.utils._row_wise import row_combinations
from skdp.utils._validation import as_doubles, check_integer, public_inputs


@dataclass(frozen=True, kw_only=True, eq=False)
class PCAPlan(TransformerPlan):
    """A bound on the rows' norm, unless it is declared, then their second moment.

    Parameters
    ----------
    search : NormPlan or None
    moment : SecondMoment
        Of the declared norm, or of another in its place.
    mechanism : plan
        What is charged.
    n_components : int
        How many are kept.
    """

    search: NormPlan | None
    moment: SecondMoment
    n_components: int

    released = "the second moment"

    def run(self, X, source, **shared):
        """Return the released attributes."""
        moment = self.moment
        kept = self.n_components
        if self.search is not None:
            data_norm = self.search.run(X, source, center=moment.center, **shared)
            moment = replace(moment, data_norm=data_norm)
        mean, covariance = moment.release(X, source, **shared)
        variances, components = _principal_axes(covariance)
        total = variances.sum()
        return {
            "components_": components[:kept],
            "explained_variance_": variances[:kept],
            "explained_variance_ratio_": variances[:kept] / (total if total > 0 else 1.0),
            "mean_": moment.center + mean,
            "n_components_": kept,
            "data_norm_": moment.data_norm,
        }


class DPPCA(ClassNamePrefixFeaturesOutMixin, PlannedTransformer):
    """Principal components of a noisy covariance matrix.

    Rows are clipped to an L2 norm of `data_norm`, in `fit` only. One joint release holds the
    second moment of the rows and, with ``center="mean"``, their mean; the components are the
    eigenvectors of the noisy symmetric matrix.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). Gaussian noise; 0 takes the Gamma-norm mechanism, whose
        noise is larger by about the number of features.
    n_components : int, default=None
        How many components are kept; None keeps as many as there are features, or rows if they
        are fewer.
    data_norm : float or "auto", default=1.0
        The bound on a row's L2 norm after `center` was subtracted, between 1e-50 and 1e50. Longer
        rows are scaled down to it. It must not be computed from the data. "auto" finds privately,
        for a fifth of epsilon, what about 98 % of the rows stay below.
    center : "mean", float, array-like of shape (n_features,) or None, default="mean"
        "mean" releases the mean as well, which makes the noise of the second moment 22 % larger
        (add/remove). Numbers are subtracted as they are; they must not be computed from the data.
        None subtracts nothing.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Eigenvectors of the noisy covariance, by falling variance. The entry of largest magnitude
        of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Eigenvalues of the noisy covariance, raised to 0 where noise made them negative.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the sum of all eigenvalues so raised; 0 if that is 0.
    mean_ : ndarray of shape (n_features,)
        What `transform` subtracts: the noisy mean of the clipped rows, or `center`.
    n_components_ : int
        Number of components.
    data_norm_ : float
        The bound on a row's norm, declared or found.
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
    row as the unit. The number of rows is public. A fit takes time and memory for a dense matrix
    of n_features squared entries. The proof is in ``docs/encoders.md``.

    References
    ----------
    C. Dwork, K. Talwar, A. Thakurta and L. Zhang. Analyze Gauss: optimal bounds for
    privacy-preserving principal component analysis. STOC 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50_000, 1)) * [0.3, 0.4, 0.0] + rng.normal(size=(50_000, 3)) * 0.01
    >>> pca = DPPCA(epsilon=1.0, n_components=1, center=None, data_norm=2.0).fit(X)
    >>> abs(pca.components_).round(1)
    array([[0.6, 0.8, 0. ]])
    """

    _accepts = ("sparse",)
    _shape_dependent_if_auto = ("data_norm",)

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        n_components: int | None = None,
        data_norm: float | str = 1.0,
        center: str | float | list | np.ndarray | None = "mean",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_components = n_components
        self.data_norm = data_norm
        self.center = center
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

    def _read(self, X, reset=True):
        return read_table(self, X, reset=reset, accept_sparse=True)

    def _statement(self, plan):
        declared = () if plan.moment.constant else ("center",)
        return {"public": public_inputs(self, "data_norm", *declared)}

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
        n_components = min(shape.n_rows, shape.n_columns)
        if self.n_components is not None:
            n_components = check_integer(self.n_components, "n_components", 1, shape.n_columns)
        constant, center = _check_center(self.center, shape.n_columns)
        search, rest, data_norm = plan_norm(self.data_norm, shape.n_rows, guarantee)
        table = {"n_rows": shape.n_rows, "n_columns": shape.n_columns, "data_norm": data_norm}
        moment = SecondMoment(guarantee=rest, center=center, constant=constant, **table)
        return PCAPlan(
            search=search,
            moment=moment,
            mechanism=one_charge((search, moment.mechanism), guarantee),
            n_components=n_components,
        )

    @row_wise_answer
    def transform(self, X):
        """Return the coordinates of samples along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
        """
        X = self._read_samples(X)
        return linear_scores(X, self.components_, -(self.components_ @ self.mean_))

    @private_answer
    def inverse_transform(self, X):
        """Return the points that have given coordinates along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        check_is_fitted(self)
        return row_combinations(np.asarray(X, dtype=np.float64), self.components_) + self.mean_

    @property
    def _n_features_out(self):
        return self.n_components_

    def _planned_names(self, form):
        n_components = self.n_components
        if n_components is None:
            if None in (form.n_rows, form.n_columns):
                return None
            n_components = min(form.n_rows, form.n_columns)
        most = math.inf if form.n_columns is None else form.n_columns
        return prefixed_names(self, check_integer(n_components, "n_components", 1, most))


def _check_center(center, n_features):
    """Return the constant feature with which the mean is released, or 0; and what is subtracted."""
    if center is None or (isinstance(center, str) and center == "mean"):
        return 0.0 if center is None else MEAN_WEIGHT, np.zeros(n_features)
    array = as_doubles(center)
    if array.ndim > 1 or not np.isfinite(array).all() or np.abs(array).max(initial=0.0) > 1e150:
        raise ValueError(
            f"center must be 'mean', None, or finite numbers within 1e150, got {center!r}"
        )
    if array.ndim == 1 and array.shape != (n_features,):
        raise ValueError(f"center must be of shape ({n_features},), got {array.shape}")
    return 0.0, np.broadcast_to(array, (n_features,)).copy()


def _principal_axes(covariance):
    """Return the eigenvalues, from the largest down and at least 0, and eigenvectors as rows."""
    values, vectors = eigh(covariance, check_finite=False)
    components = vectors.T[::-1].copy()
    largest = np.abs(components).argmax(axis=1)
    components *= np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)[:, None]
    return np.maximum(values[::-1], 0.0), components
