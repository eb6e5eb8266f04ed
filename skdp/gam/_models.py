"""Additive classifier and regressor on private bins."""

from typing import Literal

import numpy as np

from skdp.base import plans_for_groups, private_fit, private_fit_method, row_wise_answer
from skdp.gam._additive import FittedTerms, PrivateAdditiveModel, RawTableModel
from skdp.gam._poisson_task import PoissonTask
from skdp.gam._tasks import BinaryTask, MultinomialTask, NumberTask
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._balanced import is_balanced
from skdp.linear_model._classifier import PrivateClassifierMixin
from skdp.linear_model._regressor import PrivateRegressorMixin
from skdp.utils._types import Bounds, Categories, Classes
from skdp.utils._validation import check_choice, check_target_bounds

# Losses of `DPAdditiveRegressor`.
LOSSES = ("squared_error", "poisson")


def _class_task(weights, delta, balanced=False):
    """Return the task with class weights; with delta = 0, residual vectors are not clipped."""
    if len(weights) == 2:
        return BinaryTask(weights=weights, is_balanced=balanced)
    return MultinomialTask(weights=weights, clipped=delta > 0.0, is_balanced=balanced)


class RawTableClassifier(PrivateClassifierMixin, RawTableModel):
    """Base of classifiers that build an `AdditiveFit` and weight classes by `class_weight`."""

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
        if is_balanced(self.class_weight):
            weights = (1.0,) * len(self._planned_classes(shape))
        else:
            weights = np.array(self._class_weights(shape))
            weights = tuple((weights / weights.max()).tolist())
        task = _class_task(weights, guarantee.delta, is_balanced(self.class_weight))
        return self._plan(task, shape, guarantee)

    @row_wise_answer
    def decision_function(self, X):
        """Return the scores of samples, which sum the values of their bins and categories.

        Parameters
        ----------
        X : array-like, DataFrame or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, the score of the second class.
        """
        return self._scores(X)

    @row_wise_answer
    def predict_proba(self, X):
        """Return the probabilities of the classes, corrected for the clipping of residuals.

        Parameters
        ----------
        X : array-like, DataFrame or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Values in the order of `classes_`.
        """
        scores = self._scores(X)
        weights = (1.0,) * len(self.classes_)
        task = _class_task(weights, self.privacy_.delta)
        return task.probabilities(scores.reshape(len(scores), -1))

    @row_wise_answer
    def predict_log_proba(self, X):
        """Return the log-probabilities of the classes.

        Parameters
        ----------
        X : array-like, DataFrame or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Values in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))


class RawTableRegressor(PrivateRegressorMixin, RawTableModel):
    """Base of regressors that make an `AdditiveFit`."""

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
        return self._plan(self._task(guarantee), shape, guarantee)

    def _task(self, guarantee):
        """Return the loss for targets scaled to [-1, 1], with its constants."""
        return NumberTask(unit=self._target_scale.half_range**2)

    @row_wise_answer
    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, DataFrame or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, clipped to `target_bounds`.
        """
        return np.clip(self._scores(X), *self.target_bounds_)


class DPAdditiveClassifier(RawTableClassifier, PrivateAdditiveModel):
    """Additive classifier with one private shape function per column.

    A numeric column is divided into bins by private counts; a categorical column has categories.
    Each bin and category has a value, and the score of a row is the sum of the values of its bins
    and categories. The values are fitted by noisy gradients. Bins and gradients are released by one
    joint Gaussian mechanism. With enough rows, pairs and triples of columns that act together are
    chosen privately and get joint tables of values. The data need no preprocessing: numbers,
    strings, dates and missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, the model is less accurate
        and categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values form one further category. A data frame's column of dtype object is categorical
        unless `bounds` names it.
    n_bins : int or "auto", default="auto"
        Approximate maximum number of bins of a numeric column, from 2 to 1024. "auto" is 32. A
        column has fewer bins if the noise would hide the counts of smaller bins.
    interactions : int, list of pairs of columns or "auto", default="auto"
        Pairs or triples of columns with a joint table of values: pairs declared by position or
        name, or the maximum number of tables, which are then chosen within the same budget. "auto"
        chooses at most 5 tables if delta > 0 and n mu >= 1200, where n is the number of rows and mu
        is the parameter of Gaussian differential privacy at (`epsilon`, `delta`). Otherwise it
        means 0.
    monotonic_cst : dict of column to int, list of int, default=None
        1 for numeric columns whose shape function must not decrease, -1 for those whose shape
        function must not increase.
    classes : array-like of shape (n_classes,), default=None
        Possible class labels. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    class_weight : dict or "balanced", default=None
        Weights of classes, by which the loss of a row is multiplied. A dict has public positive
        weights; classes that are not in it have weight 1. "balanced" weights class c by
        n / (k n_c), as scikit-learn does, from class counts that the fit releases first, for at
        most a tenth of the budget. Counts are raised to the standard deviation of their noise and
        to n / (100 k), so a weight is at most 100. The noise grows with the largest weight.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    shape_functions_ : list of ShapeFunction
        Shape functions of the columns, then of pairs and triples. Each has mean 0 over the noisy
        counts.
    intercept_ : float or ndarray of shape (n_classes,)
        Constant that is added to the sum of the shape functions.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute value of each column's shape function, weighted by the noisy counts and
        normalized to a sum of 1.
    noise_multiplier_ : float or None
        Noise scale divided by the sensitivity of a gradient to one row or person, for a single step
        that would cost as much as all steps together. None with delta = 0, where no gradient is
        noisy.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_weight_ : ndarray of shape (n_classes,)
        The released weight of each class; only with ``class_weight="balanced"``.
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
    DPLogisticRegression : For linear effects and rows of bounded norm.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public. A
    column's dtype, never its values, determines whether it is numeric or categorical. A column in
    an array of Python objects is numeric, unless its categories are declared. The proof is in
    ``docs/theory/additive_models.md``.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022.

    H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni. Accuracy, interpretability, and
    differential privacy via explainable boosting. ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(17, 90, size=5000), rng.integers(0, 3, size=5000)])
    >>> y = (X[:, 0] > 40) & (X[:, 1] != 2)
    >>> model = DPAdditiveClassifier(epsilon=1.0, bounds={0: (17, 90)}, categories={1: [0, 1, 2]})
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    >>> model.shape_functions_[1].values.shape  # three categories, others, missing values
    (5,)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        n_bins: int | Literal["auto"] = "auto",
        interactions: int | list | Literal["auto"] = "auto",
        monotonic_cst: dict | list | None = None,
        classes: Classes | None = None,
        class_weight: dict | Literal["balanced"] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.interactions = interactions
        self.monotonic_cst = monotonic_cst
        self.classes = classes
        self.class_weight = class_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
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
            fitted = FittedTerms(*fit.run(plan, table)).without_output_axis()
            shapes, intercept = self._centered_shapes(plan.mechanism, fitted)
            fit.publish(
                plan,
                classes_=table.shape.classes,
                shape_functions_=shapes,
                intercept_=intercept,
                feature_importances_=self._importances(shapes),
                noise_multiplier_=plan.noise_multiplier,
            )
            if fitted.class_weight is not None:
                self.class_weight_ = fitted.class_weight
        return self


class DPAdditiveRegressor(RawTableRegressor, PrivateAdditiveModel):
    """Additive regressor with one private shape function per column.

    A numeric column is divided into bins by private counts; a categorical column has categories.
    Each bin and category has a value, and the prediction of a row is the sum of the values of its
    bins and categories. The values are fitted by noisy gradients. Bins and gradients are released
    by one joint Gaussian mechanism. With enough rows, pairs and triples of columns that act
    together are chosen privately and get joint tables of values. The data need no preprocessing:
    numbers, strings, dates and missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, the model is less accurate
        and categories must be declared.
    loss : {"squared_error", "poisson"}, default="squared_error"
        "poisson" is half the Poisson deviance with a log link, for counts and amounts on which
        columns have multiplicative effects: the logarithm of a prediction is the sum of the values.
        It needs delta > 0 and non-negative `target_bounds`.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values form one further category. A data frame's column of dtype object is categorical
        unless `bounds` names it.
    n_bins : int or "auto", default="auto"
        Approximate maximum number of bins of a numeric column, from 2 to 1024. "auto" is 32. A
        column has fewer bins if the noise would hide the counts of smaller bins.
    interactions : int, list of pairs of columns or "auto", default="auto"
        Pairs or triples of columns with a joint table of values: pairs declared by position or
        name, or the maximum number of tables, which are then chosen within the same budget. "auto"
        chooses at most 5 tables if delta > 0 and n mu >= 1200, where n is the number of rows and mu
        is the parameter of Gaussian differential privacy at (`epsilon`, `delta`). Otherwise it
        means 0.
    monotonic_cst : dict of column to int, list of int, default=None
        1 for numeric columns whose shape function must not decrease, -1 for those whose shape
        function must not increase.
    target_bounds : tuple of (float, float)
        Range of the targets, which is required and must not be computed from the data. Targets and
        predictions are clipped to it.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    shape_functions_ : list of ShapeFunction
        Shape functions of the columns, then of pairs and triples. Each has mean 0 over the noisy
        counts.
    intercept_ : float
        Constant that is added to the sum of the shape functions. With ``loss="poisson"`` the sum is
        the logarithm of the prediction.
    feature_importances_ : ndarray of shape (n_features,)
        Mean absolute value of each column's shape function, weighted by the noisy counts and
        normalized to a sum of 1.
    noise_multiplier_ : float or None
        Noise scale divided by the sensitivity of a gradient to one row or person, for a single step
        that would cost as much as all steps together. None with delta = 0, where no gradient is
        noisy.
    target_bounds_ : tuple of (float, float)
        Declared range of the targets.
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
    DPRidge : For linear effects and rows of bounded norm.
    DPPoissonRegressor : For linear effects on the logarithm, and for delta = 0.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    A column's dtype, never its values, determines whether it is numeric or categorical. A column in
    an array of Python objects is numeric, unless its categories are declared. Residuals are clipped
    to the released standard deviation of the targets and, if tables of columns are chosen, later to
    that of the residuals. The clip is larger with little noise, and with ``delta=0``, but at most
    an eighth of the width of `target_bounds`. If errors are larger, a column's effect is between
    its effect on the mean and its effect on the median. With ``loss="poisson"``, the same clip
    bounds residuals, and the predictions are then multiplied by one released factor that makes
    their mean equal to that of the targets. The proof is in ``docs/theory/additive_models.md``.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022.

    H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni. Accuracy, interpretability, and
    differential privacy via explainable boosting. ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = np.abs(X[:, 0]) + X[:, 1] ** 3
    >>> model = DPAdditiveRegressor(epsilon=1.0, bounds=(-1, 1), target_bounds=(-1, 2))
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        loss: Literal["squared_error", "poisson"] = "squared_error",
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        n_bins: int | Literal["auto"] = "auto",
        interactions: int | list | Literal["auto"] = "auto",
        monotonic_cst: dict | list | None = None,
        target_bounds: tuple[float, float] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.interactions = interactions
        self.monotonic_cst = monotonic_cst
        self.target_bounds = target_bounds
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
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
            scale = self._target_scale
            fitted = FittedTerms(*fit.run(plan, table))
            if self.loss == "poisson":
                fitted = fitted.with_log_target_scale(scale)
            else:
                fitted = fitted.with_target_scale(scale)
            shapes, intercept = self._centered_shapes(plan.mechanism, fitted.without_output_axis())
            fit.publish(
                plan,
                target_bounds_=(scale.low, scale.high),
                shape_functions_=shapes,
                intercept_=intercept,
                feature_importances_=self._importances(shapes),
                noise_multiplier_=plan.noise_multiplier,
            )
        return self

    @property
    def _target_scale(self):
        """Scale with targets in [-1, 1]; with the Poisson loss, targets must not be negative."""
        if check_choice(self.loss, "loss", LOSSES) == "poisson":
            check_target_bounds(self.target_bounds, minimum=0.0)
        return super()._target_scale

    def _task(self, guarantee):
        """Return the loss for scaled targets, with its constants, as `loss` names it.

        Raise `ValueError` if `loss` is invalid, or is "poisson" with delta = 0.
        """
        if check_choice(self.loss, "loss", LOSSES) == "squared_error":
            return super()._task(guarantee)
        if guarantee.delta == 0.0:
            raise ValueError(
                'loss="poisson" needs delta > 0, because its curvature is not bounded. With '
                'delta=0, write loss="squared_error".'
            )
        scale = self._target_scale
        return PoissonTask(unit=scale.half_range, offset=scale.offset / scale.half_range)

    @row_wise_answer
    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, DataFrame or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, clipped to `target_bounds`.
        """
        scores = self._scores(X)
        if self.loss == "poisson":
            # Scores are limited so that none overflows; larger ones are clipped anyway.
            scores = np.exp(np.minimum(scores, np.log(self.target_bounds_[1]) + 1.0))
        return np.clip(scores, *self.target_bounds_)
