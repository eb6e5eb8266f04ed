"""What linear classifiers have in common: labels, class weights, predictions."""

import math

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin

from skdp._data._tables import read_target
from skdp._losses._classes import BinaryLogisticLoss, ClassWeightedLoss, MultinomialLogisticLoss
from skdp._sgd._defaults import Task
from skdp.base import row_wise_answer
from skdp.linear_model._regressor import PrivateLinearModel, PrivatePredictorMixin
from skdp.utils._validation import check_classes, check_magnitude

# What is expected of weights, times the norm of rows, and of the variance of a score, times its
# curvature; and the noise below which clips grow. Chosen with training rows in view, see
# docs/benchmarks/constants.md.
WEIGHTS_NORM = 20.0
SIGNAL = 0.04
KNEE = 0.008
# That of a score alone, for hinges.
HINGE_SIGNAL = 0.1
# Of the check of weights: the curvature of the logistic loss, and that of hinges in units of its
# bound.
USUAL_CURVATURE = 0.15
HINGE_CURVATURE = 0.5
CHECK = {"null_decrease_factor": 0.8, "least_kept": 0.1}


class PrivateClassifierMixin(PrivatePredictorMixin, ClassifierMixin):
    """Labels, which are those of y or declared by `classes`, and predictions from scores."""

    @row_wise_answer
    def predict(self, X):
        """Return the class with the highest score of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _planned_classes(self, shape):
        """Return the labels that a fit to a table of that shape is for."""
        known = self.classes if shape.classes is None else shape.classes
        if known is None:
            raise ValueError("the labels are not known: declare classes, or give shape.classes")
        if self.classes is not None:
            return check_classes(self.classes, np.asarray(known))[0]
        classes = np.unique(known)
        if len(classes) < 2:
            raise ValueError(f"a fit takes at least two classes, got {classes!r}")
        return classes

    def _class_weights(self, shape):
        """Return the weight of each of these labels, by the parameter `class_weight`."""
        return check_class_weight(self.class_weight, self._planned_classes(shape))

    def _read_target(self, y, n_rows, classes=None):
        """Return the labels that can occur and the code of each row's."""
        classes = self.classes if classes is None else classes
        return check_classes(classes, read_target(self, y, n_rows))

    def _assumptions(self):
        weights = ("class_weight",) if getattr(self, "class_weight", None) is not None else ()
        labels = "the labels of y" if self.classes is None else "the declared classes"
        return (*super()._assumptions(), *weights, labels)


class PrivateLinearClassifier(PrivateClassifierMixin, PrivateLinearModel):
    """Scores and predictions from `coef_`, `intercept_` and `classes_`."""

    @row_wise_answer
    def decision_function(self, X):
        """Return the scores of samples.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of the second.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores


class LogisticProbabilitiesMixin:
    """Probabilities of classes whose scores are logits."""

    @row_wise_answer
    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    @row_wise_answer
    def predict_log_proba(self, X):
        """Return the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(np.ascontiguousarray(scores), axis=1)


def check_class_weight(class_weight, classes):
    """Return the weight of each class.

    Parameters
    ----------
    class_weight : dict or None
        As the estimators take it.
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    list of float

    Raises
    ------
    ValueError
        If it is no dict of weights of classes.
    """
    if class_weight is None:
        return [1.0] * len(classes)
    if not isinstance(class_weight, dict):
        raise ValueError(
            "class_weight must be a dict of public weights or None; 'balanced' would be computed "
            f"from the data, got {class_weight!r}"
        )
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes")
    name = "a value in class_weight"
    return [check_magnitude(class_weight.get(label, 1.0), name) for label in labels]


def logistic_task(class_weight):
    """Return the logistic loss of so many classes with weights, and what is expected of it."""
    n_classes = len(class_weight)
    loss = BinaryLogisticLoss() if n_classes == 2 else MultinomialLogisticLoss(n_classes)
    # The residual at zero weights.
    usual = 0.5 if n_classes == 2 else math.sqrt(1.0 - 1.0 / n_classes)
    share = usual / loss.slope_bound
    if any(weight != 1.0 for weight in class_weight):
        loss = ClassWeightedLoss(loss, tuple(class_weight))
    largest = max(class_weight)
    signal = SIGNAL * math.prod(loss.weights_shape)
    known = loss.slope_bound, loss.curvature_bound, WEIGHTS_NORM, signal, share, KNEE
    checked = usual * largest, USUAL_CURVATURE * largest
    # The curvature of several classes together is known too roughly to tell the spread of rows.
    spread_from = "curvature" if n_classes == 2 else None
    return Task(loss, *known, *checked, spread_from=spread_from, **CHECK)


def hinge_task(loss, slope, curvature):
    """Return a hinge, whose slope and curvature are typical ones, and what is expected of it."""
    known = slope, curvature, WEIGHTS_NORM, HINGE_SIGNAL * curvature * math.prod(loss.weights_shape)
    return Task(loss, *known, checked=slope, usual_curvature=HINGE_CURVATURE * curvature, **CHECK)
