"""What linear regressors have in common once they are fitted."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._tables import linear_scores, read_table

__all__ = ["PrivateLinearRegressorMixin"]


class PrivateLinearRegressorMixin(RegressorMixin):
    """Predictions from `coef_` of shape (n_features,), `intercept_` and `target_bounds_`."""

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

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags
