"""What linear regressors have in common: the fit by a plan, and predictions."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._tables import RowsAndTarget, linear_scores, read_rows_and_target, read_table
from skdp.base import PrivateFit, PrivateMixin, TableShape
from skdp.utils._validation import public_inputs

__all__ = ["PrivateLinearRegressorMixin"]


class PrivateLinearRegressorMixin(PrivateMixin, RegressorMixin):
    """Predictions from `coef_` of shape (n_features,), `intercept_` and `target_bounds_`."""

    def fit(self, X, y):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Rows; longer ones are scaled down to `data_norm`. Data larger than memory are read
            block by block.
        y : array-like of shape (n_samples,)
            Targets, clipped to `target_bounds`.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses; the estimator is left unfitted.
        """
        with PrivateFit(self) as fit:
            X, y = read_rows_and_target(self, X, y, numeric=True)
            shape = TableShape(n_rows=X.shape[0], n_columns=X.shape[1])
            plan = self.plan_fit(shape, fit.guarantee)
            source = fit.charge(plan)
            fit.publish(
                plan,
                public=public_inputs(self, "data_norm", "target_bounds"),
                sampler=plan.sampler,
                **plan.run(RowsAndTarget(X, y), source),
            )
        return self

    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Clipped to `target_bounds`.
        """
        check_is_fitted(self)
        X = read_table(self, X, reset=False, accept_sparse=True)
        scores = linear_scores(X, self.coef_[None, :], self.intercept_)[:, 0]
        return np.clip(self._means(scores), *self.target_bounds_)

    def _means(self, scores):
        return scores

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags
