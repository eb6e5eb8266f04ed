"""Scores of binary classes, and rows that a model answers from the columns of X."""

import numpy as np

from skdp.model_selection import bounded_score

COUNTS = {0: 6, 1: 4}


SCORES = [
    bounded_score("accuracy"),
    bounded_score("neg_error_count"),
    bounded_score("balanced_accuracy", class_counts=COUNTS),
    bounded_score("recall", class_counts=COUNTS),
    bounded_score("f1", class_counts=COUNTS),
    bounded_score("neg_log_loss", bound=3.0),
    bounded_score("neg_brier_score"),
    bounded_score("roc_auc", class_counts=COUNTS),
    bounded_score("neg_mean_squared_error", target_bounds=(0, 1)),
    bounded_score("neg_mean_absolute_error", target_bounds=(0, 1)),
    bounded_score("r2", target_bounds=(0, 1), target_variance=0.5),
]


class Oracle:
    """A fitted estimator whose outputs stand in the columns of X."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return X[:, 0]

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 1], X[:, 1]])

    def decision_function(self, X):
        return X[:, 2]


def make_rows(rng, n):
    labels = rng.integers(0, 2, n).astype(float)
    probabilities = rng.choice([0.0, 1e-9, 0.3, 0.5, 1.0], n)
    X = np.column_stack([rng.integers(0, 2, n), probabilities, rng.integers(0, 4, n)]).astype(float)
    return X, labels
