"""Small private estimators whose releases a test can look through."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.base import PrivateFit, TableShape
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism


class NoisyVote(ClassifierMixin, BaseEstimator):
    """Predicts the class of the larger noisy sum of signs, moved by `shift`."""

    __skdp_kind__ = "private"

    def __init__(
        self, epsilon=1.0, *, delta=0.0, shift=0.0, classes=None, accountant=None, random_state=None
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.shift = shift
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        with PrivateFit(self) as fit:
            if self.shift > 1e6:
                raise ValueError("shift is too large")
            classes = np.unique(y if self.classes is None else self.classes)
            codes = np.searchsorted(classes, y)
            shape = TableShape(n_rows=len(codes), n_columns=1, classes=classes)
            mechanism = self.plan_fit(shape, fit.guarantee)
            source = fit.charge(mechanism)
            total = mechanism.release(float(np.sum(2 * codes - 1)), random_state=source)
            released = {"classes_": classes, "coef_": np.array([total]), "n_features_in_": 1}
            fit.publish(mechanism, public=("the labels",), **released)
        return self

    def plan_fit(self, shape, guarantee):
        if guarantee.delta:
            moved = float(guarantee.neighbors.sensitivity_factor)
            return GaussianMechanism(guarantee.epsilon, guarantee.delta, moved)
        return LaplaceMechanism(guarantee.epsilon, float(guarantee.neighbors.sensitivity_factor))

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[int(self.coef_[0] + self.shift > 0)])
