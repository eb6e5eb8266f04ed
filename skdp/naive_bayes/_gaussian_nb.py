"""Gaussian naive Bayes from the noisy sums of each class."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import row_weights_of
from skdp._data._row_wise import row_sums
from skdp._data._tables import read_table
from skdp.base import (
    TableEstimator,
    plans_for_groups,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.preprocessing._planned import plan_columns
from skdp.stats._moments import MomentsPlan, unit_sums
from skdp.utils._types import Bounds, Classes
from skdp.utils._validation import as_doubles
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class ClassMoments(FrozenValue):
    """Noisy counts, means and variances of classes.

    Parameters
    ----------
    class_count, class_prior : ndarray of shape (n_classes,)
    mean, variance : ndarray of shape (n_classes, n_features)
    """

    class_count: np.ndarray
    class_prior: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMomentsPlan(MomentsPlan):
    """Plan of the number of rows of each class, and the means and variances of its columns.

    With u a value scaled to [-1, 1], a row adds u and u^2 - 1/2 of each column to the sums of its
    class, and 1 to its count. The derivation is in ``docs/theory/naive_bayes.md``.

    Parameters
    ----------
    n_classes : int
    prior : ndarray of shape (n_classes,) or None
        Declared class probabilities.
    """

    n_classes: int
    prior: np.ndarray | None

    @property
    def size(self):
        return self.n_classes * (2 * len(self.low) + 1)

    @property
    def exact_sensitivities(self):
        """The (L1, L2) sensitivities of sums without rounding errors."""
        d = len(self.low)
        rows = self.guarantee.neighbors.sensitivity_factor
        # The maximum of two cases: the replacing row belongs to another class, or to the same
        # class.
        squares = max(rows * (1.25 * d + 1.0), (rows - 1) * 4.0 * d)
        return rows * (1.5 * d + 1.0), math.sqrt(squares)

    def run(self, rows, source, persons=None):
        """Return the `ClassMoments`."""
        d = len(self.low)
        row_args = (rows.y, row_weights_of(persons))
        sums = np.zeros((self.n_classes, 2 * d + 1))
        unit_sums(rows.X, _add_class_moments, sums, self.low, self.high, row_args)
        noisy = self.mechanism.release(sums, random_state=source)
        counts = np.maximum(noisy[:, -1:], self.mechanism.deviation(self.size))
        means, variances = self.means_and_variances((noisy[:, :d], noisy[:, d:-1]), counts)
        # Bounds that no value fills are those of the column, so all rows are taken together.
        totals = noisy[:, :-1].sum(axis=0).reshape(2, d)
        deviation = math.sqrt(self.n_classes) * self.mechanism.deviation(self.size)
        self.report_unfilled(totals, self.n_rows, deviation)
        prior = self.prior
        if prior is None:
            prior = counts[:, 0] / counts.sum()
        return ClassMoments(counts[:, 0], prior, means, variances)


def _add_class_moments(sums, u, row_args):
    codes, row_weights = row_args
    if row_weights is None:
        row_weights = 1.0
    of_class = (codes == np.arange(len(sums))[:, np.newaxis]) * row_weights
    sums += of_class.dot(np.hstack([u, u * u - 0.5, np.ones((len(u), 1))]))


class DPGaussianNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TableEstimator):
    """Gaussian naive Bayes from noisy counts, means and variances of classes.

    Values are clipped to `bounds`. The number of rows of each class and the sums and sums of
    squares of its columns are released jointly.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). 0 adds Laplace noise. A positive delta adds Gaussian noise, which
        is smaller with many features.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. low < high, both within -1e150 and 1e150 and at least 1e-150
        apart. It must not be computed from the data. "auto" spends a fifth of epsilon, and at most
        a fifth of delta, on `skdp.stats.estimate_bounds`, in the same charge.
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes, of sum 1. None uses the noisy counts.
    classes : array-like of shape (n_classes,), default=None
        Possible class labels. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        Bounds of each feature, declared or found privately.
    class_count_ : ndarray of shape (n_classes,)
        Noisy numbers of rows, at least the standard deviation of the noise.
    class_prior_ : ndarray of shape (n_classes,)
        Declared priors, or the normalized noisy counts.
    theta_ : ndarray of shape (n_classes, n_features)
        Noisy means, clipped to the bounds.
    var_ : ndarray of shape (n_classes, n_features)
        Noisy variances, at least the standard deviation of their noise and at most the largest
        variance within the bounds. A class with too few rows for that noise has the mean and the
        variance of a uniform distribution over the bounds.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
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
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/theory/naive_bayes.md``.
    With little noise, the model equals scikit-learn's ``GaussianNB`` on the clipped rows and shares
    its weakness: with skewed or correlated columns its probabilities are far too close to 0 and 1.
    On a table of amounts, most of them zero, its accuracy without any noise is .41, where guessing
    has .78; `DPHistogramNB` has .80 there at epsilon 1.

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

    _public = ("bounds", "priors")

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        priors: ArrayLike | None = None,
        classes: Classes | None = None,
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

    def _read(self, X, reset=True):
        """Return validated rows of numbers."""
        return read_table(self, X, reset=reset)

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/theory/persons.md``.
            Requires an accountant with unit="person", or none.

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
        with private_fit(self) as fit:
            table = fit.read(X, y, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            moments = within.released
            fit.publish(
                plan,
                classes_=table.shape.classes,
                bounds_=within.bounds,
                class_count_=moments.class_count,
                class_prior_=moments.class_prior,
                theta_=moments.mean,
                var_=moments.variance,
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table; with its class labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape; parameters
            that need no shape are checked nevertheless.
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
        n_classes = len(self._planned_classes(shape))
        prior = None
        if self.priors is not None:
            prior = _checked_priors(self.priors, n_classes)
        return plan_columns(
            self, ClassMomentsPlan, shape, guarantee, n_classes=n_classes, prior=prior
        )

    @row_wise_answer
    def decision_function(self, X):
        """Return the log-probabilities of the classes, up to a constant per row.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples. Values are clipped to the bounds.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log-odds of the second class.
        """
        X = self._read_samples(X)
        with np.errstate(divide="ignore"):
            constants = np.log(self.class_prior_) - 0.5 * np.log(self.var_).sum(axis=1)
        rows = Rows(X, block_size(self.theta_.size))
        params = (self.theta_, self.var_, self.bounds_)
        scores = map_over(rows, _log_likelihoods, constants, *params, shape=constants.shape)
        if len(constants) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores


def _log_likelihoods(block, constants, means, variances, bounds):
    # `row_sums` needs C order; converting once avoids a copy for each class.
    clipped = np.clip(block, *bounds, order="C")
    scores = []
    for constant, mean, variance in zip(constants, means, variances, strict=True):
        difference = clipped - mean
        scores.append(constant - 0.5 * row_sums(difference * difference / variance))
    return np.stack(scores, axis=1)


def _checked_priors(priors, n_classes):
    prior = as_doubles(priors)
    if prior.shape == (n_classes,) and prior.min() >= 0.0 and abs(prior.sum() - 1.0) < 1e-9:
        return prior
    raise ValueError(
        f"priors must be {n_classes} probabilities of sum 1, one per class, got {priors!r}"
    )
