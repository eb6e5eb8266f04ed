"""Accuracy of DPLogisticRegression on Adult at its defaults, beside the non-private model.

Usage: SKDP_DATA=folder python docs/benchmarks/adult.py [fits]

Protocol: one-hot with public categories, min-max with public bounds, rows scaled to norm 1;
delta = 1e-5, add/remove, all defaults; the mean of `fits` (50) fits on the official split. The
constant in C="auto" was chosen with this table in view, see ``utility.py`` for others.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from example_table import make_encoder, read_adult

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 4.0)


def measure(model, test):
    X, y = test
    scores = model.decision_function(X)
    return np.mean((scores > 0) == y), roc_auc_score(y, scores)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    X, y, X_test, y_test = read_adult(os.environ["SKDP_DATA"])
    encoder = make_encoder()
    X, X_test = encoder.fit_transform(X), encoder.transform(X_test)
    test = X_test, y_test
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, majority {1 - y_test.mean():.4f}")
    print("delta    epsilon        C   accuracy (± s.e.)       AUC (± s.e.)")
    for delta in (DELTA, 0.0):
        for epsilon in EPSILONS:
            model = DPLogisticRegression(epsilon, delta=delta)
            results = np.array([measure(model.fit(X, y), test) for _ in range(fits)])
            mean, error = results.mean(0), results.std(0, ddof=1) / np.sqrt(fits)
            print(
                f"{delta:<7g} {epsilon:8g} {model.C_:8.4f}   "
                f"{mean[0]:.4f} ± {error[0]:.4f}   {mean[1]:.4f} ± {error[1]:.4f}"
            )
    accuracy, auc = measure(LogisticRegression(C=100.0, max_iter=5000).fit(X, y), test)
    print(f"without privacy             {accuracy:.4f}            {auc:.4f}")


if __name__ == "__main__":
    main()
