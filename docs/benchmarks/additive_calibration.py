"""Whether an additive model's probabilities are what they say, with and without the correction.

``python additive_calibration.py [fits] [table ...]`` fits `DPAdditiveClassifier` at its defaults,
declared bounds and categories, δ = 1e-5, and prints for the test rows the log-loss, the Brier
score and the mean of ``predict_proba``, which is corrected for the clip of residuals, and of the
scores' logistic function, which is not; at ε = 1 also, in tenths of the predicted probabilities,
the share of rows, the mean prediction and the share of positive labels. "perfect" has the same
scores, recalibrated on the test rows themselves by isotonic regression: what no map of the scores
can beat there.
"""

import sys
import warnings

import numpy as np
from additive import DELTA, EPSILONS, LOADERS
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from skdp import DPAdditiveClassifier

TABLES = ("adult", "credit_default", "bank_marketing")


def predictions(model, X, y):
    """Return the probabilities of the second class by name of the map that makes them."""
    scores = model.decision_function(X)
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(scores, y)
    return {
        "corrected": model.predict_proba(X)[:, 1],
        "uncorrected": expit(scores),
        "perfect": np.clip(isotonic, 1e-6, 1.0 - 1e-6),
    }


def reliability(p, y):
    """Return the share of rows in each tenth of the probabilities, their mean, the labels' mean."""
    tenth = np.minimum((10 * p).astype(int), 9)
    size = np.bincount(tenth, minlength=10)
    means = [np.bincount(tenth, weights=w, minlength=10) / np.maximum(size, 1) for w in (p, y)]
    return np.column_stack([size / len(y), *means])


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for name in sys.argv[2:] or TABLES:
        (X, y), (X_test, y_test), declared = LOADERS[name]()
        print(f"{name}: {len(y)} rows, positive {y_test.mean():.4f} of {len(y_test)} to test on")
        for epsilon in EPSILONS:
            models = [
                DPAdditiveClassifier(epsilon, delta=DELTA, **declared).fit(X, y)
                for _ in range(fits)
            ]
            found = [predictions(model, X_test, y_test) for model in models]
            for kind in found[0]:
                losses = [log_loss(y_test, p[kind]) for p in found]
                error = np.std(losses, ddof=1) / np.sqrt(fits)
                brier = np.mean([brier_score_loss(y_test, p[kind]) for p in found])
                mean = np.mean([p[kind].mean() for p in found])
                print(
                    f"  ε = {epsilon:<4g} {kind:<12} log-loss {np.mean(losses):.4f} ± {error:.4f}"
                    f"   Brier {brier:.4f}   mean {mean:.4f}",
                    flush=True,
                )
            if epsilon == 1.0:
                labels = np.tile(y_test, fits)
                tables = {
                    kind: reliability(np.concatenate([p[kind] for p in found]), labels)
                    for kind in ("corrected", "uncorrected")
                }
                print("    tenth    corrected: rows  predicted  positive   uncorrected: the same")
                for tenth, rows in enumerate(zip(*tables.values(), strict=True)):
                    cells = ["  ".join(f"{value:9.3f}" for value in row) for row in rows]
                    print(f"    {tenth / 10:.1f}  {'      '.join(cells)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
