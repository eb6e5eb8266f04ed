"""Gaussian naive Bayes from the noisy sums of each class."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import row_weights_of
from skdp._data._row_wise import row_sums
from skdp.base import (
    TableEstimator,
    plans_for_groups,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.mechanisms._plan import plan_release
from skdp.stats._moments import (
    SUMS,
    UNIT_OF_SUMS,
    moments_of_sums,
    noise_of_sums,
    report_unfilled_moments,
    unit_sums,
)
from skdp.stats._release import plan_within_bounds
from skdp.utils._documents import count_of
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


def plan_class_moments(shape, guarantee, *, n_classes, prior=None):
    """Return the plan that releases each class's number of rows and the moments of its columns.

    If u is a value scaled to [-1, 1], a row adds u and u^2 - 1/2 for each column to the sums of its
    class, and 1 to the count of its class. The derivation is in ``docs/theory/naive_bayes.md``.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
    n_classes : int
    prior : ndarray of shape (n_classes,), default=None
        Declared class probabilities.

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,). It
        returns the `ClassMoments`.
    """
    d = shape.n_columns
    size = n_classes * (2 * d + 1)
    l1, l2 = class_moments_sensitivity(guarantee.neighbors.sensitivity_factor, d)
    mechanism = noise_of_sums(guarantee, l1, l2, size, shape.n_rows)
    run = partial(_release_class_moments, mechanism, shape.n_rows, n_classes, prior)
    return plan_release(
        mechanism, run, guarantee=guarantee, stage_name=SUMS, unit=UNIT_OF_SUMS, size=size
    )


def _release_class_moments(
    mechanism, n_rows, n_classes, prior, rows, source, low, high, persons=None
):
    """Release the counts and sums of all classes, and return the `ClassMoments`.

    The first four parameters are those of the plan. `rows` is a `RowsAndTarget` of class codes.
    """
    d = len(low)
    row_args = (rows.y, row_weights_of(persons))
    sums = np.zeros((n_classes, 2 * d + 1))
    unit_sums(rows.X, _add_class_moments, sums, low, high, row_args)
    noise_std = mechanism.deviation(sums.size)
    noisy = mechanism.release(sums, random_state=source)
    counts = np.maximum(noisy[:, -1:], noise_std)
    moments = (noisy[:, :d], noisy[:, d:-1])
    means, variances = moments_of_sums(moments, counts, noise_std, low, high)
    # Whether values fill the bounds is a property of the column, so the sums over all classes are
    # used.
    totals = noisy[:, :-1].sum(axis=0).reshape(2, d)
    report_unfilled_moments(totals, n_rows, math.sqrt(n_classes) * noise_std, low, high)
    if prior is None:
        prior = counts[:, 0] / counts.sum()
    return ClassMoments(counts[:, 0], prior, means, variances)


def class_moments_sensitivity(n_changed, n_columns):
    """Return the (L1, L2) sensitivities of all sums and counts, without rounding errors.

    `n_changed` is 1 if a row is added or removed, and 2 if a row is replaced.
    """
    # A row adds 1 to a count, and (u, u^2 - 1/2) in each column, with |u| <= 1: at most 1.5 in L1
    # norm and 1.25 in squared L2 norm. If a row is replaced by one of another class, the sums of
    # both classes change. If its class is the same, the count is unchanged, and (u, u^2) changes by
    # at most 4 in squared L2 norm (u from -1 to 1), and by less than 2 * 1.5 in L1 norm.
    squares = max(n_changed * (1.25 * n_columns + 1.0), (n_changed - 1) * 4.0 * n_columns)
    return n_changed * (1.5 * n_columns + 1.0), math.sqrt(squares)


def _add_class_moments(sums, u, row_args):
    """Add a block's sums of u, of u^2 - 1/2 and of 1 to the rows of their classes, in place.

    u are the row's values, scaled to [-1, 1].
    """
    codes, row_weights = row_args
    if row_weights is None:
        row_weights = 1.0
    of_class = (codes == np.arange(len(sums))[:, np.newaxis]) * row_weights
    sums += of_class.dot(np.hstack([u, u * u - 0.5, np.ones((len(u), 1))]))


class DPGaussianNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TableEstimator):
    """Gaussian naive Bayes from noisy counts, means and variances of classes.

    Values are clipped to `bounds`. For each class, the number of rows and the columns' sums and
    sums of squares are released jointly.

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
        Public probabilities of the classes, with sum 1. None uses the noisy counts.
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
        variance within the bounds. If a class has too few rows for that noise, its mean and
        variance are those of a uniform distribution over the bounds.
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
    DPHistogramNB : For columns of any kind and shape; at epsilon = 1, it is more accurate on every
        measured table.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. The proof is in ``docs/theory/naive_bayes.md``.
    With little noise, the model equals scikit-learn's ``GaussianNB`` on the clipped rows and shares
    its weakness: with skewed or correlated columns, its probabilities are far too close to 0 and 1.
    On a table of amounts, most of them zero, its accuracy is .41 without any noise, whereas
    guessing reaches .78. On this table, `DPHistogramNB` reaches .80 at epsilon = 1.

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
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

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
            that need no shape are still checked.
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
        plan_moments = partial(plan_class_moments, n_classes=n_classes, prior=prior)
        return plan_within_bounds(plan_moments, self.bounds, shape, guarantee)

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
    """Return a block's log likelihoods plus the classes' constants, of shape (n_rows, n_classes).

    Values are clipped to the bounds, as in the fit.
    """
    # `row_sums` needs C order. Converting once avoids a copy for each class.
    clipped = np.clip(block, *bounds, order="C")
    scores = []
    for constant, mean, variance in zip(constants, means, variances, strict=True):
        difference = clipped - mean
        scores.append(constant - 0.5 * row_sums(difference * difference / variance))
    return np.stack(scores, axis=1)


def _checked_priors(priors, n_classes):
    """Return declared class probabilities as an array, or raise `ValueError`."""
    prior = as_doubles(priors)
    if prior.shape == (n_classes,) and prior.min() >= 0.0 and abs(prior.sum() - 1.0) < 1e-9:
        return prior.copy()
    raise ValueError(
        f"priors must be {count_of(n_classes, 'probability', 'probabilities')} of sum 1, one per "
        f"class, got {priors!r}"
    )
