"""What linear classifiers have in common once they are fitted."""

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._tables import linear_scores, read_table

__all__ = ["PrivateLinearClassifierMixin"]


class PrivateLinearClassifierMixin(ClassifierMixin):
    """Scores and predictions from `coef_`, `intercept_` and `classes_`."""

    def decision_function(self, X):
        """Return the scores of samples.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of the second.
        """
        check_is_fitted(self)
        X = read_table(self, X, reset=False, accept_sparse=True)
        scores = linear_scores(X, self.coef_, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the class with the highest score of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags
