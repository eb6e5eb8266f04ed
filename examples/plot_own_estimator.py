"""
Write, check and attack an estimator of your own
================================================

A nearest-centroid classifier is made private in thirty lines with `private_fit`. A second one
differs in a single line: it does not clip. `check_dp_estimator` accepts the first and finds that
the second violates its claim. The figure shows the epsilon that an attacker can prove for both with
one row that is five times as long as declared. The correct estimator stays below the line of its
claims, and the broken one rises above it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skdp.audit import audit_epsilon
from skdp.base import private_fit, read_array
from skdp.mechanisms import LaplaceMechanism
from skdp.testing import check_dp_estimator


class PrivateCentroids(ClassifierMixin, BaseEstimator):
    """Noisy sums of the rows of each class, of features within the bounds."""

    def __init__(self, epsilon=1.0, *, bounds=(-1.0, 1.0), accountant=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.accountant = accountant
        self.random_state = random_state

    def clip(self, X):
        return np.clip(X, *self.bounds)

    def fit(self, X, y):
        with private_fit(self) as fit:
            table = fit.read(X, y)
            check_classification_targets(table.y)
            classes, codes = np.unique(table.y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError("y holds one class only")
            # A row is in one sum; a replaced row leaves it and joins another.
            factor = fit.guarantee.neighbors.sensitivity_factor
            n_features = table.shape.n_columns
            sensitivity = factor * np.abs(self.bounds).max() * n_features
            mechanism = LaplaceMechanism(self.epsilon, sensitivity)
            source = fit.charge(mechanism, size=len(classes) * n_features)

            sums = np.zeros((len(classes), n_features))
            np.add.at(sums, codes, self.clip(table.X))
            sums = mechanism.release(sums, random_state=source)
            fit.publish(mechanism, public=("the labels",), classes_=classes, coef_=sums)
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = read_array(self, X, dtype=np.float64, reset=False)
        return self.classes_[np.argmax(X @ self.coef_.T, axis=1)]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class BrokenCentroids(PrivateCentroids):
    """The same without clipping."""

    def clip(self, X):
        return X


warnings.simplefilter("ignore")
honest, broken = PrivateCentroids(), BrokenCentroids()
passed = check_dp_estimator(honest, on_skip=None)
print(f"honest: {len(passed)} checks, none failed")
for result in check_dp_estimator(broken, on_fail=None, on_skip=None):
    if result["status"] == "failed":
        print(f"broken: {result['check_name']}: {result['exception']}")

claims = np.array([0.25, 0.5, 1.0, 1.5])
X, y = np.zeros((40, 1)), np.arange(40) % 2
canary = np.array([5.0]), 1
attack = {"method": "two_worlds", "canary": canary, "n_fits": 2000, "confidence": 0.999}

figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for kind, marker, words in (
    (PrivateCentroids, "o", "as written"),
    (BrokenCentroids, "s", "without clipping"),
):
    audits = [audit_epsilon(kind(claim), X, y, **attack) for claim in claims]
    bounds = [audit.lower_bound for audit in audits]
    print(f"{kind.__name__}: claims {claims}, epsilon is at least {np.round(bounds, 2)}")
    axes.plot(claims, bounds, marker=marker, label=words)
axes.plot(claims, claims, color="black", linestyle="--", label="the claim")
axes.fill_between(claims, claims, 3.0, color="tab:red", alpha=0.08, linewidth=0)
axes.text(0.3, 2.75, "the claim is proved false", color="tab:red")
axes.set(
    xlabel="claimed epsilon",
    ylabel="certified lower bound on epsilon (99.9 %)",
    title="Lower bounds on epsilon from an attack",
    xlim=(claims[0], claims[-1]),
    ylim=(0.0, 3.0),
)
axes.legend(loc="upper right")
plt.show()
