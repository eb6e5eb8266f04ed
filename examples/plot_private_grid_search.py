"""What each strategy of a private search chooses, and what the chosen model reaches.

Twenty candidates for a logistic regression on Adult, or on another table where Adult is not at
hand, at a total of epsilon = 1. Every search costs the same; bars show which candidates five
searches chose, dots the accuracy of their models on test rows.

Run it as ``python examples/plot_private_grid_search.py [picture] [folder with Adult]``.
"""

import os
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from quickstart import load

from skdp import DPGridSearchCV, DPLogisticRegression

picture = sys.argv.pop(1) if len(sys.argv) > 1 else None
REPEATS = int(os.environ.get("REPEATS", "5"))
STRATEGIES = ("random_stopping", "disjoint", "holdout")
strengths = np.geomspace(1e-4, 10, 20)

X, X_test, y, y_test, front = load()
X, X_test = front.fit_transform(X), front.transform(X_test)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(2, 1))
for row, strategy in enumerate(STRATEGIES):
    chosen, accuracy = [], []
    for _ in range(REPEATS):
        search = DPGridSearchCV(
            DPLogisticRegression(mechanism="gradient"),
            {"C": strengths},
            epsilon=1.0,
            delta=1e-5,
            strategy=strategy,
        ).fit(X, y)
        chosen.append(search.best_index_)
        accuracy.append(np.mean(search.predict(X_test) == y_test))
    counts = np.bincount(chosen, minlength=len(strengths))
    left.bar(
        np.arange(len(strengths)) + 0.27 * (row - 1), counts, 0.27, label=strategy.replace("_", " ")
    )
    right.plot([row] * REPEATS, accuracy, "o", alpha=0.6)
    print(f"{strategy:<16} accuracy {np.mean(accuracy):.3f}, cost {search.cost()}")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ticks = range(0, len(strengths), 4)
    left.set_xticks(ticks, [f"{strengths[i]:.0e}" for i in ticks])
left.set(xlabel="C", ylabel="times chosen", title="Chosen candidates, ε = 1 in all")
left.legend()
right.set_xticks(range(len(STRATEGIES)), [s.replace("_", "\n") for s in STRATEGIES])
right.set(ylabel="test accuracy", title="The published models", xlim=(-0.5, len(STRATEGIES) - 0.5))
figure.tight_layout()
if picture:
    figure.savefig(picture, dpi=120)
else:
    plt.show()
