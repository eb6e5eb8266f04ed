"""Classification by an additive model on private bins."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp._data._tables import read_target
from skdp.gam._additive import PrivateAdditiveMixin
from skdp.gam._tasks import BinaryTask, MultinomialTask
from skdp.linear_model._classifier import check_class_weight
from skdp.utils._callbacks import with_callbacks
from skdp.utils._validation import check_classes

__all__ = ["DPAdditiveClassifier"]


class DPAdditiveClassifier(PrivateAdditiveMixin, ClassifierMixin, BaseEstimator):
    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=1e-6,
        bounds="auto",
        categories=None,
        n_bins="auto",
        interactions=0,
        monotonic_cst=None,
        classes=None,
        class_weight=None,
        accountant=None,
        random_state=None,
        verbose=0,
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

    @with_callbacks
    def fit(self, X, y):
        return self._fit(X, y)

    def plan_fit(self, shape, guarantee):
        classes = self._planned_classes(shape)
        weights = np.array(check_class_weight(self.class_weight, classes))
        weights = tuple((weights / weights.max()).tolist())
        if len(classes) == 2:
            task = BinaryTask(weights=weights)
        elif self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is for two classes only")
        else:
            task = MultinomialTask(weights=weights, order=1 if guarantee.delta == 0.0 else 2)
        return self._plan(task, shape, guarantee)

    def _planned_classes(self, shape):
        known = self.classes if shape.classes is None else shape.classes
        if known is None:
            raise ValueError("the labels are not known: declare classes, or give shape.classes")
        return check_classes(self.classes, np.asarray(known))[0]

    def _read_target(self, y, n_rows):
        return check_classes(self.classes, read_target(self, y, n_rows))

    def decision_function(self, X):
        return self._scores(X)

    def predict_proba(self, X):
        scores = self._scores(X)
        if scores.ndim == 1:
            return BinaryTask().probabilities(scores[:, None])
        return MultinomialTask(weights=(1.0,) * len(self.classes_)).probabilities(scores)

    def predict_log_proba(self, X):
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        scores = self._scores(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _assumptions(self):
        labels = "the labels of y" if self.classes is None else "the declared classes"
        weights = ("class_weight",) if self.class_weight is not None else ()
        return (*super()._assumptions(), *weights, labels)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
