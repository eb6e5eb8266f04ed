"""The additive classifier and the additive regressor on private bins."""

import numpy as np

from skdp.gam._additive import PrivateAdditiveModel, RawTableModel
from skdp.gam._tasks import BinaryTask, MultinomialTask, NumberTask
from skdp.linear_model._classifier import PrivateClassifierMixin
from skdp.linear_model._regressor import PrivateRegressorMixin


def _task_of_classes(weights, delta):
    """Return the task of as many classes; with delta = 0 vectors are not clipped."""
    if len(weights) == 2:
        return BinaryTask(weights=weights)
    return MultinomialTask(weights=weights, clipped=delta > 0.0)


class RawTableClassifier(PrivateClassifierMixin, RawTableModel):
    """A classifier by the scores of an `AdditivePlan`; it has `classes` and `class_weight`."""

    def plan_fit(self, shape, guarantee):
        weights = np.array(self._class_weights(shape))
        weights = tuple((weights / weights.max()).tolist())
        return self._plan(_task_of_classes(weights, guarantee.delta), shape, guarantee)

    def decision_function(self, X):
        """Return the scores of samples: the sums of their cells' values.

        Parameters
        ----------
        X : array-like, DataFrame or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array has the same columns in the same order.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of the second.
        """
        return self._scores(X)

    def predict_proba(self, X):
        """Return the probabilities of the classes, corrected for the clipping of residuals.

        Parameters
        ----------
        X : array-like, DataFrame or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array has the same columns in the same order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        scores, weights = self._scores(X), (1.0,) * len(self.classes_)
        task = _task_of_classes(weights, self.privacy_.delta)
        return task.probabilities(scores.reshape(len(scores), -1))

    def predict_log_proba(self, X):
        """Return the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : array-like, DataFrame or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array has the same columns in the same order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.log(self.predict_proba(X))


class RawTableRegressor(PrivateRegressorMixin, RawTableModel):
    """A regressor by the scores of an `AdditivePlan`.

    Parameters
    ----------
    target_bounds : tuple of (float, float)
        The range of targets, required; it must not be computed from the data. Targets are clipped
        to it, and predictions lie within it.

    Attributes
    ----------
    target_bounds_ : tuple of (float, float)
        As declared.
    """

    def plan_fit(self, shape, guarantee):
        return self._plan(NumberTask(unit=self._units.half**2), shape, guarantee)

    def _released(self, run, plan):
        (terms, values, constant), units = run, self._units
        run = terms, [units.half * own for own in values], units.middle + units.half * constant
        return super()._released(run, plan) | {"target_bounds_": (units.low, units.high)}

    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, DataFrame or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array has the same columns in the same order.

        Returns
        -------
        ndarray of shape (n_samples,)
            Clipped to `target_bounds`.
        """
        return np.clip(self._scores(X), *self.target_bounds_)


class DPAdditiveClassifier(RawTableClassifier, PrivateAdditiveModel):
    r"""Classifier that adds up one private curve a column.

    Each column is cut into bins by private counts, or has categories; each bin and category has a
    value, and a row's score is the sum of the values of its cells. Noisy gradients find the values.
    Bins and gradients are one Gaussian release together. Tables are taken as they are: numbers,
    strings, dates and gaps.

    Parameters
    ----------
    {epsilon}
    {delta}
    {bounds}
    {categories}
    {n_bins}
    {interactions}
    {monotonic_cst}
    {classes}
    {class_weight}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {shape_functions_}
    intercept_ : float or ndarray of shape (n_classes,)
        What is added to the sum of the shapes.
    {feature_importances_}
    {noise_multiplier_}
    {classes_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    See Also
    --------
    DPLogisticRegression : For rows of bounded norm, where no column needs a curve.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    A column's kind is that of its type, never of its values: a column of Python objects is one of
    numbers, unless its categories are declared. The proof is in ``docs/additive_models.md``.

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

    classes: list | np.ndarray | None = None
    class_weight: dict | None = None


class DPAdditiveRegressor(RawTableRegressor, PrivateAdditiveModel):
    r"""Regressor that adds up one private curve a column.

    Each column is cut into bins by private counts, or has categories; each bin and category has a
    value, and a row's prediction is the sum of the values of its cells. Noisy gradients find the
    values. Bins and gradients are one Gaussian release together. Tables are taken as they are:
    numbers, strings, dates and gaps.

    Parameters
    ----------
    {epsilon}
    {delta}
    {bounds}
    {categories}
    {n_bins}
    {interactions}
    {monotonic_cst}
    {target_bounds}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {shape_functions_}
    intercept_ : float
        What is added to the sum of the shapes.
    {feature_importances_}
    {noise_multiplier_}
    {target_bounds_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    See Also
    --------
    DPRidge : For rows of bounded norm, where no column needs a curve.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    A column's kind is that of its type, never of its values: a column of Python objects is one of
    numbers, unless its categories are declared. Residuals are clipped to an eighth of the span of
    `target_bounds`: where errors are larger, predictions are between the mean and the median.
    The proof is in ``docs/additive_models.md``.

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

    target_bounds: tuple[float, float] | None = None
