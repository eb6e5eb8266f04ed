"""Principal component analysis with differential privacy."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._row_wise import row_combinations
from skdp._data._tables import linear_scores, read_table
from skdp.base import (
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import join_plans, plan_release
from skdp.preprocessing._planned import PlannedTransformer, prefixed_names
from skdp.stats._bounds import plan_norm
from skdp.stats._second_moment import MEAN_WEIGHT, SECOND_MOMENT, SecondMoment
from skdp.utils._validation import as_doubles, check_integer, public_inputs
from skdp.utils._values import FrozenValue

# A covariance matrix of more columns has 8 TB. Where the number of columns is unknown, the names of
# all components are made before a table is seen, which takes a second for that many.
MAX_COMPONENTS = 10**6


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedComponents(FrozenValue):
    """Principal components of a noisy covariance matrix.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
    variances : ndarray of shape (n_components,)
        Variances along the components.
    variance_ratios : ndarray of shape (n_components,)
        Fractions of the total variance.
    mean : ndarray of shape (n_features,)
        Center that is subtracted before rows are projected.
    data_norm : float
        Bound on the norm of rows, declared or released.
    """

    components: np.ndarray
    variances: np.ndarray
    variance_ratios: np.ndarray
    mean: np.ndarray
    data_norm: float


class DPPCA(ClassNamePrefixFeaturesOutMixin, PlannedTransformer):
    """Principal component analysis of a noisy covariance matrix.

    Only `fit` clips rows to an L2 norm of `data_norm`. The second moment of the rows and, with
    ``center="mean"``, their mean are released jointly. The components are the eigenvectors of the
    noisy symmetric matrix.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). A positive delta adds Gaussian noise. 0 uses the Gamma-norm
        mechanism, and the noise is then larger by a factor of about the number of features.
    n_components : int, default=None
        Number of components. None is the number of features or of rows, whichever is smaller.
    data_norm : float or "auto", default=1.0
        Bound on a row's L2 norm after `center` is subtracted, between 1e-50 and 1e50. Longer rows
        are scaled down to it. It must not be computed from the data. "auto" privately finds a norm
        that about 98 % of the rows do not exceed, for a fifth of epsilon.
    center : "mean", float, array-like of shape (n_features,) or None, default="mean"
        "mean" releases the mean as well, which makes the noise of the second moment 22 % larger
        (add/remove). Numbers are subtracted unchanged; they must not be computed from the data.
        None subtracts nothing.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Eigenvectors of the noisy covariance, sorted by decreasing variance. In each eigenvector,
        the entry with the largest magnitude is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Eigenvalues of the noisy covariance; negative ones are replaced by 0.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Fractions of the sum of all non-negative eigenvalues; 0 if that sum is 0.
    mean_ : ndarray of shape (n_features,)
        Vector that `transform` subtracts: the noisy mean of the clipped rows, or `center`.
    n_components_ : int
        Number of components.
    data_norm_ : float
        Bound on a row's norm, declared or found privately.
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
    row as the unit. The number of rows is public. A fit needs time and memory for a dense matrix of
    shape (n_features, n_features). The proof is in ``docs/theory/encoders.md``.

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
        data_norm: float | Literal["auto"] = 1.0,
        center: Literal["mean"] | float | ArrayLike | None = "mean",
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
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows, which may be a sparse matrix. A table that is larger than memory is read block by
            block.
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
            declared = ()
            if not _releases_mean(self.center):
                # A declared center is public information.
                declared = ("center",)
            fit.publish(
                plan,
                public=public_inputs(self, "data_norm", *declared),
                components_=released.components,
                explained_variance_=released.variances,
                explained_variance_ratio_=released.variance_ratios,
                mean_=released.mean,
                n_components_=len(released.components),
                data_norm_=released.data_norm,
            )
        return self

    def _read(self, X, reset=True):
        return read_table(self, X, reset=reset, accept_sparse=True)

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
        n_components = min(shape.n_rows, shape.n_columns)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", 1, MAX_COMPONENTS)
            n_components = check_integer(self.n_components, "n_components", 1, shape.n_columns)
        constant, center = _check_center(self.center, shape.n_columns)
        search, rest, data_norm = plan_norm(self.data_norm, shape.n_rows, guarantee)
        moment = SecondMoment(
            guarantee=rest,
            center=center,
            constant=constant,
            n_rows=shape.n_rows,
            n_columns=shape.n_columns,
            data_norm=data_norm,
        )
        mechanism = join_plans((search, moment.mechanism), guarantee)
        run = partial(_release_components, search, moment, n_components)
        unit = "the square of data_norm"
        return plan_release(mechanism, run, stage_name=SECOND_MOMENT, unit=unit)

    @row_wise_answer
    def transform(self, X):
        """Return the coordinates of samples along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. They are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
        """
        X = self._read_samples(X)
        return linear_scores(X, self.components_, -(self.components_ @ self.mean_))

    @private_answer
    def inverse_transform(self, X):
        """Return the points with these coordinates along the components.

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
        """Return the names of the components before a fit, or None if their number is unknown."""
        n_components = self.n_components
        if n_components is None:
            if None in (form.n_rows, form.n_columns):
                return None
            n_components = min(form.n_rows, form.n_columns)
        max_components = MAX_COMPONENTS
        if form.n_columns is not None:
            max_components = form.n_columns
        return prefixed_names(self, check_integer(n_components, "n_components", 1, max_components))


def _check_center(center, n_features):
    """Return the constant feature that releases the mean, and the vector that is subtracted.

    The constant is 0 unless `center` is "mean".
    """
    if center is None:
        return 0.0, np.zeros(n_features)
    if _releases_mean(center):
        return MEAN_WEIGHT, np.zeros(n_features)
    array = as_doubles(center)
    if array.ndim > 1 or not np.isfinite(array).all() or np.abs(array).max(initial=0.0) > 1e150:
        raise ValueError(
            "center must be 'mean', None, or finite numbers of magnitude at most 1e150, "
            f"got {center!r}"
        )
    if array.ndim == 1 and array.shape != (n_features,):
        raise ValueError(f"center must be of shape ({n_features},), got {array.shape}")
    return 0.0, np.broadcast_to(array, (n_features,)).copy()


def _releases_mean(center):
    return isinstance(center, str) and center == "mean"


def _release_components(search, moment, n_components, X, source, persons=None):
    """Return the `ReleasedComponents`, after a search for the rows' norm unless it is declared."""
    if search is not None:
        data_norm = search.run(X, source, moment.center, persons)
        moment = replace(moment, data_norm=data_norm)
    mean, covariance = moment.release(X, source, persons=persons)
    return _components_of(covariance, n_components, moment.center + mean, moment.data_norm)


def _components_of(covariance, n_components, mean, data_norm):
    """Return the `ReleasedComponents` of a noisy covariance matrix."""
    variances, components = _principal_axes(covariance)
    total = variances.sum()
    if total <= 0.0:
        # Noise can leave no positive variance; the ratios are then 0.
        total = 1.0
    return ReleasedComponents(
        components=components[:n_components],
        variances=variances[:n_components],
        variance_ratios=variances[:n_components] / total,
        mean=mean,
        data_norm=data_norm,
    )


def _principal_axes(covariance):
    """Return the eigenvalues, clipped at 0, in decreasing order, and the eigenvectors as rows."""
    values, vectors = eigh(covariance, check_finite=False)
    components = vectors.T[::-1].copy()
    largest = np.abs(components).argmax(axis=1)
    components *= np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)[:, None]
    return np.maximum(values[::-1], 0.0), components
