"""What each strategy of a private search chooses, and what the published model reaches.

Eight candidates for a logistic regression on a third of Adult, or on another table where Adult is
not at hand. Every search, its published model included, costs epsilon = 1. A dot is one search: on
the left what it chose, on the right the accuracy of its model on test rows.

Run it as ``python examples/plot_private_grid_search.py [picture] [folder with Adult]``.
"""

import os
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from quickstart import load

from skdp import DPGridSearchCV, DPLogisticRegression

EPSILON, DELTA, REPEATS = 1.0, 1e-5, 3
STRATEGIES = ("random_stopping", "disjoint", "holdout", "cv")
STRENGTHS = np.geomspace(1e-4, 10, 8)

picture = sys.argv.pop(1) if len(sys.argv) > 1 else None
X, X_test, y, y_test, front = load()
rows = np.arange(len(y)) % 3 == 0 if len(y) > 10_000 else slice(None)
X, X_test, y = front.fit_transform(X[rows]), front.transform(X_test), y[rows]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for height, strategy in enumerate(STRATEGIES):
    search = DPGridSearchCV(
        DPLogisticRegression(mechanism="gradient"),
        {"C": STRENGTHS},
        epsilon=EPSILON,
        delta=DELTA,
        strategy=strategy,
        mean_runs=16,
    )
    chosen, accuracy = [], []
    for _ in range(REPEATS):
        search.fit(X, y)
        chosen.append(search.best_params_["C"])
        accuracy.append(np.mean(search.predict(X_test) == y_test))
    heights = height + np.linspace(-0.15, 0.15, REPEATS)
    left.plot(chosen, heights, "o", alpha=0.7)
    right.plot(accuracy, heights, "o", alpha=0.7)
    print(f"{strategy:<16} accuracy {np.mean(accuracy):.3f}, cost {search.cost()}")

free = LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
right.axvline(free, color="grey", linestyle="--", label="without privacy")
right.legend(loc="lower left", fontsize="small")
left.set_yticks(range(len(STRATEGIES)), [s.replace("_", " ") for s in STRATEGIES])
left.set(xscale="log", xlim=(5e-5, 20), xlabel="chosen C", ylabel="strategy")
right.set(xlabel="test accuracy of the published model")
figure.suptitle(f"Searches that cost ε = {EPSILON:g}, δ = {DELTA:g} each, final model included")
figure.tight_layout()
if picture:
    figure.savefig(picture, dpi=120)
else:
    plt.show()
