"""Common parts of linear classifiers: labels, class weights, predictions, loss specifications."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin

from skdp._data._classes import DECLARED_CLASSES, LABEL_SET, check_classes
from skdp._data._tables import read_target
from skdp._optim._classification_losses import (
    BinaryLogisticLoss,
    ClassWeightedLoss,
    MultinomialLogisticLoss,
)
from skdp._optim._default_settings import LossSpec
from skdp.base import row_wise_answer
from skdp.linear_model._balanced import BalancedWeights, is_balanced
from skdp.linear_model._regressor import PrivateLinearModel, PrivatePredictorMixin
from skdp.utils._validation import check_magnitude

# Constants of the loss specifications, tuned on training rows; see docs/benchmarks/constants.md.
# Expected norm of the weights, times the norm of rows.
WEIGHTS_NORM = 20.0
# Expected variance of a score times the curvature, for the logistic loss.
SIGNAL = 0.04
# Expected variance of a score for hinge losses.
HINGE_SIGNAL = 0.1
# Noise in the mean gradient, relative to the gradient's bound, below which the clip grows.
CLIP_NOISE_THRESHOLD = 0.008
# Factor of the smallest clip with balanced class weights. The largest weight multiplies the noise,
# but half of the curvature comes from classes with smaller weights, so reducing the noise is worth
# clipping more rows. Chosen by the balanced accuracy on training rows of Adult, bank_marketing and
# credit_default with 1, 5 and 30 % of positives at epsilon 1 and 4.
BALANCED_CLIP_FACTOR = 0.5
# Typical curvature in the shrinkage rule: for the logistic loss, and for a hinge relative to its
# bound.
TYPICAL_CURVATURE = 0.15
HINGE_CURVATURE = 0.5
# Multiple of the null decrease that the shrinkage rule subtracts, and smallest shrinkage factor.
NULL_DECREASE_FACTOR = 0.8
MIN_SHRINKAGE_FACTOR = 0.1


class PrivateClassifierMixin(PrivatePredictorMixin, ClassifierMixin):
    """Labels, from y or declared in `classes`, and predictions from scores."""

    @row_wise_answer
    def predict(self, X):
        """Return the class with the highest score of each sample.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            codes = (scores > 0).astype(int)
        else:
            codes = scores.argmax(axis=1)
        return self.classes_[codes]

    def _planned_classes(self, shape):
        """Return the classes of a fit to a table of this shape."""
        labels = shape.classes
        if labels is None:
            labels = self.classes
        if labels is None:
            raise ValueError(
                "classes are not known: declare them in the parameter classes, or in shape.classes"
            )
        if self.classes is not None:
            return check_classes(self.classes, np.asarray(labels))[0]
        classes = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(f"classes must list at least two labels, got {classes!r}")
        return classes

    def _class_weights(self, shape):
        """Return the weight of each class, by the parameter `class_weight`."""
        return check_class_weight(self.class_weight, self._planned_classes(shape))

    def _read_target(self, y, n_rows, classes=None):
        """Return the classes and the class code of each row."""
        if classes is None:
            classes = self.classes
        return check_classes(classes, read_target(self, y, n_rows))

    def _assumptions(self):
        """Return the facts that a fit assumes to be public, including those about labels."""
        assumptions = super()._assumptions()
        class_weight = getattr(self, "class_weight", None)
        if class_weight is not None and not is_balanced(class_weight):
            assumptions = (*assumptions, "class_weight")
        if self.classes is None:
            return (*assumptions, LABEL_SET)
        return (*assumptions, DECLARED_CLASSES)


class PrivateLinearClassifier(PrivateClassifierMixin, PrivateLinearModel):
    """Scores and predictions from `coef_`, `intercept_` and `classes_`."""

    @row_wise_answer
    def decision_function(self, X):
        """Return the scores of samples.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, the score of the second class.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores


class LogisticProbabilitiesMixin:
    """Class probabilities of models whose scores are logits."""

    @row_wise_answer
    def predict_proba(self, X):
        """Return the class probabilities of samples.

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
        """Return the logarithms of the class probabilities of samples.

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
        As the parameter of the estimators.
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    list of float

    Raises
    ------
    ValueError
        If `class_weight` is not a dict of classes and positive weights.
    """
    if class_weight is None:
        return [1.0] * len(classes)
    if not isinstance(class_weight, dict):
        raise ValueError(
            "class_weight must be a dict of public weights, 'balanced' or None, got "
            f"{class_weight!r}"
        )
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(
            f"class_weight has the key {unknown[0]!r}, which is not one of the classes"
        )
    name = "a value in class_weight"
    return [check_magnitude(class_weight.get(label, 1.0), name) for label in labels]


def weighted_loss(loss, class_weight):
    """Return a loss with class weights, and the typical weight of a row.

    Parameters
    ----------
    loss : ClippableLoss
    class_weight : list of float or BalancedWeights
        Weight of each class.

    Returns
    -------
    loss : ClippableLoss
        Its bounds hold for the largest weight.
    typical_weight : float
        The mean weight of rows with balanced weights, otherwise the largest weight.
    """
    if isinstance(class_weight, BalancedWeights):
        return ClassWeightedLoss(loss, class_weight.values), 1.0
    if any(weight != 1.0 for weight in class_weight):
        loss = ClassWeightedLoss(loss, tuple(class_weight))
    return loss, max(class_weight)


def max_class_weight(class_weight):
    """Return the largest weight of a list or of `BalancedWeights`."""
    if isinstance(class_weight, BalancedWeights):
        return class_weight.max_weight
    return max(class_weight)


def with_balanced_clip(loss_spec, class_weight):
    """Return a loss specification with the smallest clip for balanced class weights.

    The clip still grows where there is little noise, up to the bound on residuals.

    Parameters
    ----------
    loss_spec : LossSpec
    class_weight : BalancedWeights

    Returns
    -------
    LossSpec
    """
    return replace(
        loss_spec,
        min_clip_fraction=BALANCED_CLIP_FACTOR * loss_spec.min_clip_fraction,
        clip_noise_threshold=CLIP_NOISE_THRESHOLD / class_weight.max_weight,
    )


def logistic_loss_spec(class_weight):
    """Return the specification of the logistic loss.

    Parameters
    ----------
    class_weight : list of float or BalancedWeights
        Weight of each class.

    Returns
    -------
    LossSpec
    """
    n_classes = len(class_weight)
    if n_classes == 2:
        loss = BinaryLogisticLoss()
        # Norm of the residual at zero weights.
        typical_residual = 0.5
        curvature_from = "curvature"
    else:
        loss = MultinomialLogisticLoss(n_classes)
        typical_residual = math.sqrt(1.0 - 1.0 / n_classes)
        # With several classes, the curvature is known too roughly to be estimated along the
        # weights.
        curvature_from = None
    min_clip_fraction = typical_residual / loss.loss_lipschitz
    row_curvature = loss.curvature_bound
    loss, typical_weight = weighted_loss(loss, class_weight)
    loss_spec = LossSpec(
        loss,
        residual_norm=loss.loss_lipschitz,
        curvature=typical_weight * row_curvature,
        weights_norm=WEIGHTS_NORM,
        signal=SIGNAL * math.prod(loss.weights_shape),
        min_clip_fraction=min_clip_fraction,
        clip_noise_threshold=CLIP_NOISE_THRESHOLD * typical_weight / max_class_weight(class_weight),
        shrinkage_residual=typical_residual * max_class_weight(class_weight),
        typical_curvature=TYPICAL_CURVATURE * typical_weight,
        null_decrease_factor=NULL_DECREASE_FACTOR,
        curvature_from=curvature_from,
        min_shrinkage_factor=MIN_SHRINKAGE_FACTOR,
        score_exponent=0,
    )
    if isinstance(class_weight, BalancedWeights):
        return with_balanced_clip(loss_spec, class_weight)
    return loss_spec


def hinge_loss_spec(loss, residual_norm, curvature, class_weight):
    """Return the specification of a hinge loss.

    Parameters
    ----------
    loss : ClippableLoss
    residual_norm, curvature : float
        Typical norm of a residual and typical curvature.
    class_weight : list of float or BalancedWeights
        Weight of each class.

    Returns
    -------
    LossSpec
    """
    loss_spec = LossSpec(
        loss,
        residual_norm=residual_norm,
        curvature=curvature,
        weights_norm=WEIGHTS_NORM,
        signal=HINGE_SIGNAL * curvature * math.prod(loss.weights_shape),
        shrinkage_residual=residual_norm,
        typical_curvature=HINGE_CURVATURE * curvature,
        null_decrease_factor=NULL_DECREASE_FACTOR,
        min_shrinkage_factor=MIN_SHRINKAGE_FACTOR,
        score_exponent=1,
    )
    if isinstance(class_weight, BalancedWeights):
        return with_balanced_clip(loss_spec, class_weight)
    return loss_spec
