"""Balanced weights, tuned thresholds and calibration where one row in a hundred is positive.

Usage: SKDP_DATA=folder python docs/benchmarks/rare_classes.py [repetitions] [table ...]

Protocol: 50,000 rows to train on, epsilon = 1, delta = 1e-6, add/remove. "simulated" has eight
numeric columns and labels of a logistic model; "adult" has rows of Adult's training part, drawn
with replacement so that 1 % are positive, and is scored on rows of its test part; linear models
read it one-hot encoded with public categories. For balanced weights and thresholds the score is
the distance of the balanced accuracy from one half, relative to that of scikit-learn's logistic
regression with balanced weights; the median and the smallest of the repetitions are printed. For
calibration it is the log loss and the Brier score before and after, on test rows of the same
frequency. The same relative scores are printed for scikit-learn's other linear classifiers.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.svm import LinearSVC

from skdp import (
    DPAdditiveClassifier,
    DPCalibratedClassifierCV,
    DPLinearSVC,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPSGDClassifier,
    DPTunedThresholdClassifierCV,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from example_table import BOUNDS, CATEGORIES, make_encoder, read_adult

N_ROWS = 50_000
POSITIVE_FRACTION = 0.01
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def simulated(rng):
    """Return X, y, X_test, y_test with labels of a logistic model; rows have norm about 1/2."""
    X = np.clip(rng.normal(size=(2 * N_ROWS, 8)), -4.0, 4.0)
    scores = X @ np.array([1.5, -1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0])
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2.0
        is_rare = expit(scores + middle).mean() < POSITIVE_FRACTION
        low, high = (middle, high) if is_rare else (low, middle)
    y = (rng.random(len(X)) < expit(scores + low)).astype(int)
    X = X / np.sqrt(32.0)
    return X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]


def adult(rng):
    """Return Adult with 1 % of positives, drawn with replacement from each part."""
    X, y, X_test, y_test = read_adult(os.environ["SKDP_DATA"])
    tables = []
    for rows, labels in ((X, y), (X_test, y_test)):
        frame = pd.DataFrame(rows, columns=[*BOUNDS, *CATEGORIES])
        labels = np.asarray(labels).astype(int)
        n_positive = int(POSITIVE_FRACTION * N_ROWS)
        positives = rng.choice(np.flatnonzero(labels == 1), n_positive)
        negatives = rng.choice(np.flatnonzero(labels == 0), N_ROWS - n_positive)
        drawn = rng.permutation(np.concatenate([positives, negatives]))
        tables += [frame.astype(dict.fromkeys(BOUNDS, float)).iloc[drawn], labels[drawn]]
    return tables


TABLES = {"simulated": simulated, "adult": adult}


def classifiers(table):
    """Return the private classifiers, each by its name, and the schema of raw tables."""
    schema = {"bounds": (-1, 1)}
    if table == "adult":
        categories = {name: labels.split() for name, labels in CATEGORIES.items()}
        schema = {"bounds": BOUNDS, "categories": categories}
    return {
        "logistic": DPLogisticRegression(),
        "linear SVC": DPLinearSVC(),
        "SGD": DPSGDClassifier(),
        "additive": DPAdditiveClassifier(**schema),
        "forest": DPRandomForestClassifier(**schema),
    }


def relative(score, reference):
    return (score - 0.5) / (reference - 0.5)


def measure(table, repetitions):
    raw, y, raw_test, y_test = TABLES[table](np.random.default_rng(0))
    X, X_test = raw, raw_test
    if table == "adult":
        encoder = make_encoder()
        X = np.asarray(encoder.fit_transform(raw.to_numpy(dtype=object)))
        X_test = np.asarray(encoder.transform(raw_test.to_numpy(dtype=object)))
    best = LogisticRegression(C=100.0, max_iter=2000, class_weight="balanced").fit(X, y)
    reference = balanced_accuracy_score(y_test, best.predict(X_test))
    plain = LogisticRegression(C=100.0, max_iter=2000)
    tuned = TunedThresholdClassifierCV(plain).fit(X, y)
    probabilities = tuned.estimator_.predict_proba(X_test)[:, 1]
    print(f"{table}: {len(X)} rows, {y.mean():.4f} positive")
    print(f"  without privacy: balanced accuracy {reference:.3f}, tuned threshold ", end="")
    print(f"{balanced_accuracy_score(y_test, tuned.predict(X_test)):.3f}, log loss ", end="")
    print(f"{log_loss(y_test, probabilities):.4f}, ", end="")
    print(f"Brier {brier_score_loss(y_test, probabilities):.5f}")
    siblings = {"linear SVC": LinearSVC(), "SGD": SGDClassifier(loss="log_loss", random_state=0)}
    for name, model in siblings.items():
        tuned = TunedThresholdClassifierCV(model).fit(X, y)
        balanced = model.set_params(class_weight="balanced").fit(X, y)
        by_weight, by_threshold = (
            relative(balanced_accuracy_score(y_test, fitted.predict(X_test)), reference)
            for fitted in (balanced, tuned)
        )
        print(f"  without privacy, {name}: balanced {by_weight:.3f}, threshold {by_threshold:.3f}")
    for name, model in classifiers(table).items():
        if name == "additive":
            # These models read the raw table.
            X, X_test = raw, raw_test
        model.set_params(**BUDGET)
        balanced = model.set_params(class_weight="balanced")
        scores = []
        n_fits = repetitions if name != "forest" else max(repetitions // 3, 1)
        for _ in range(n_fits):
            labels = balanced.fit(X, y).predict(X_test)
            scores.append(relative(balanced_accuracy_score(y_test, labels), reference))
        print(f"  {name}: balanced {np.median(scores):.3f} (least {min(scores):.3f})", end="")
        model.set_params(class_weight=None)
        if name == "forest":
            print()
            continue
        scores = []
        for _ in range(n_fits):
            labels = DPTunedThresholdClassifierCV(model, **BUDGET).fit(X, y).predict(X_test)
            scores.append(relative(balanced_accuracy_score(y_test, labels), reference))
        print(f", threshold {np.median(scores):.3f} (least {min(scores):.3f})", flush=True)
        for method in ("sigmoid", "isotonic"):
            losses = []
            for _ in range(n_fits):
                fitted = DPCalibratedClassifierCV(model, method=method, **BUDGET).fit(X, y)
                inner = fitted.estimator_
                if hasattr(inner, "predict_proba"):
                    before = inner.predict_proba(X_test)[:, 1]
                else:
                    before = expit(inner.decision_function(X_test))
                after = fitted.predict_proba(X_test)[:, 1]
                losses.append(
                    [
                        measure_of(y_test, p)
                        for measure_of in (log_loss, brier_score_loss)
                        for p in (before, after)
                    ]
                )
            log_before, log_after, brier_before, brier_after = np.mean(losses, axis=0)
            print(f"    {method}: log loss {log_before:.4f} -> {log_after:.4f}, ", end="")
            print(f"Brier {brier_before:.5f} -> {brier_after:.5f}", flush=True)


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    # Isotonic probabilities may be 0 for a positive row; scikit-learn clips them.
    warnings.simplefilter("ignore")
    names = sys.argv[2:] or TABLES
    for name in names:
        measure(name, repetitions)


if __name__ == "__main__":
    main()
