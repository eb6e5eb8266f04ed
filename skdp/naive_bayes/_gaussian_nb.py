"""Gaussian naive Bayes from noisy sums by class."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import shares_of
from skdp._data._tables import read_table
from skdp.base import TableEstimator, plans_for_groups, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.preprocessing._planned import plan_columns
from skdp.stats._moments import MomentsPlan, unit_sums
from skdp.utils._row_wise import row_sums
from skdp.utils._validation import as_doubles


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMomentsPlan(MomentsPlan):
    """The number of rows of each class, and the means and variances of its columns.

    A row adds u and u^2 - 1/2 of each column, in [-1, 1], to the sums of its class, and 1 to its
    count. Derived in ``docs/naive_bayes.md``.

    Parameters
    ----------
    n_classes : int
    prior : ndarray of shape (n_classes,) or None
        Declared.
    """

    n_classes: int
    prior: np.ndarray | None

    @property
    def size(self):
        return self.n_classes * (2 * len(self.low) + 1)

    @property
    def moved(self):
        d = len(self.low)
        rows = self.guarantee.neighbors.sensitivity_factor
        # A row in place of another is of another class, or of the same.
        squares = max(rows * (1.25 * d + 1.0), (rows - 1) * 4.0 * d)
        return rows * (1.5 * d + 1.0), math.sqrt(squares)

    def run(self, rows, source, persons=None):
        """Return the released attributes."""
        d = len(self.low)
        along = (rows.y, shares_of(persons))
        sums = np.zeros((self.n_classes, 2 * d + 1))
        unit_sums(rows.X, _add_class_moments, sums, self.low, self.high, along)
        noisy = self.mechanism.release(sums, random_state=source)
        counts = np.maximum(noisy[:, -1:], self.mechanism.deviation(self.size))
        means, variances = self.read((noisy[:, :d], noisy[:, d:-1]), counts)
        return {
            "class_count_": counts[:, 0],
            "class_prior_": counts[:, 0] / counts.sum() if self.prior is None else self.prior,
            "theta_": means,
            "var_": variances,
        }


def _add_class_moments(sums, u, along):
    codes, shares = along
    of_class = (codes == np.arange(len(sums))[:, np.newaxis]) * (1.0 if shares is None else shares)
    sums += of_class.dot(np.hstack([u, u * u - 0.5, np.ones((len(u), 1))]))


class DPGaussianNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TableEstimator):
    """Gaussian naive Bayes from noisy counts, means and variances of classes.

    Values are clipped to `bounds`. One joint release holds the number of rows of each class and
    the sums and sums of squares of its columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 adds Laplace noise; a positive delta adds Gaussian
        noise, which is smaller where there are many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        The range of each feature: numbers or arrays of shape (n_features,), or one pair for each
        column by its name or place; with low < high, within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" spends a fifth of epsilon, and at most
        of delta, on `skdp.stats.estimate_bounds`, in the same charge.
    priors : array-like of shape (n_classes,), default=None
        The public probabilities of the classes, of sum 1. None takes the noisy counts.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None takes the labels of y and thereby declares them public;
        the privacy statement says so. A declared class without rows is fitted like any other.
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
    class_count_ : ndarray of shape (n_classes,)
        Noisy numbers of rows, at least the standard deviation of that noise.
    class_prior_ : ndarray of shape (n_classes,)
        The given priors, or the shares of the counts.
    theta_ : ndarray of shape (n_classes, n_features)
        Noisy means, within the bounds.
    var_ : ndarray of shape (n_classes, n_features)
        Noisy variances, at least the noise's own standard deviation and at most what the bounds
        allow. A class of too few rows for that noise has the mean and the variance of a uniform
        distribution over the bounds.
    classes_ : ndarray of shape (n_classes,)
        The labels.
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
    DPHistogramNB : For columns of any kind and shape; at epsilon 1 it is more accurate on every
        table that was measured.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. The proof is in ``docs/naive_bayes.md``.
    With little noise the answer is that of scikit-learn's ``GaussianNB`` on the clipped rows, and
    no better: where columns are skewed or say the same, its probabilities are far too close to 0
    and 1. On a table of amounts, most of them zero, its accuracy without any noise is .41, where
    guessing has .78; there `DPHistogramNB` has .80 at epsilon 1.

    References
    ----------
    J. Vaidya, B. Shafiq, A. Basu and Y. Hong. Differentially private naive Bayes classification.
    WI-IAT 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=5000)
    >>> X = rng.normal(size=(5000, 2)) + 3 * y[:, None]
    >>> model = DPGaussianNB(epsilon=1.0, bounds=(-4, 7)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _read = read_table
    _public = ("bounds", "priors")

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: tuple | dict | str = "auto",
        priors: list | np.ndarray | None = None,
        classes: list | np.ndarray | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.priors = priors
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows; linear models take a sparse matrix too. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Labels; or targets, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

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
        n_classes = len(self._planned_classes(shape))
        prior = None if self.priors is None else _checked_priors(self.priors, n_classes)
        classes = {"n_classes": n_classes, "prior": prior}
        return plan_columns(self, ClassMomentsPlan, shape, guarantee, **classes)

    def _released(self, run, plan):
        return run.released | {"bounds_": run.bounds}

    @row_wise_answer
    def decision_function(self, X):
        """Return the logarithms of the classes' probabilities, but for a constant of each row.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples; what is beyond the bounds counts as the bound.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the difference of the second to the first.
        """
        X = self._read_samples(X)
        with np.errstate(divide="ignore"):
            start = np.log(self.class_prior_) - 0.5 * np.log(self.var_).sum(axis=1)
        rows = Rows(X, block_size(self.theta_.size))
        known = (self.theta_, self.var_, self.bounds_)
        scores = map_over(rows, _log_likelihoods, start, *known, shape=start.shape)
        return scores[:, 1] - scores[:, 0] if len(start) == 2 else scores


def _log_likelihoods(block, start, means, variances, bounds):
    # In C order once, so that no class has to copy its terms before they are added.
    clipped = np.clip(block, *bounds, order="C")
    scores = []
    for of_class, mean, variance in zip(start, means, variances, strict=True):
        apart = clipped - mean
        scores.append(of_class - 0.5 * row_sums(apart * apart / variance))
    return np.stack(scores, axis=1)


def _checked_priors(priors, n_classes):
    prior = as_doubles(priors)
    if prior.shape == (n_classes,) and prior.min() >= 0.0 and abs(prior.sum() - 1.0) < 1e-9:
        return prior
    raise ValueError(
        f"priors must be {n_classes} probabilities of sum 1, one of each class, got {priors!r}"
    )
