"""
A private grid search, by strategy
==================================

`DPGridSearchCV` compares eight regularization strengths of a logistic regression. Each search costs
epsilon = 1, including the published model. There are four strategies: "disjoint" fits each
candidate to a separate part of the rows, "holdout" and "cv" fit all of them to the same rows and
share the budget, and "random_stopping" keeps the best of a secret random number of runs.
"""

import matplotlib.pyplot as plt
import numpy as np
from example_table import load_table
from sklearn.linear_model import LogisticRegression

from skdp import DPGridSearchCV, DPLogisticRegression

plt.style.use("tableau-colorblind10")
X, y, X_test, y_test = load_table()
if len(y) > 10_000:
    # Use only a third of the rows, to keep the page quick.
    X, y = X[::3], y[::3]

# %%
# Three searches per strategy
# ---------------------------
#
# A search publishes the chosen candidate, noisy scores and the model. Noise comes from the
# operating system, so every run of this page may choose differently.

strategies = ("random_stopping", "disjoint", "holdout", "cv")
chosen, accuracy = np.empty((2, len(strategies), 3))
for i, strategy in enumerate(strategies):
    search = DPGridSearchCV(
        DPLogisticRegression(mechanism="gradient"),
        {"C": np.geomspace(1e-4, 10, 8)},
        epsilon=1.0,
        delta=1e-5,
        strategy=strategy,
        mean_runs=16,
    )
    for j in range(3):
        search.fit(X, y)
        chosen[i, j] = search.best_params_["C"]
        accuracy[i, j] = np.mean(search.predict(X_test) == y_test)
    print(f"{strategy:<16} accuracy {accuracy[i].mean():.3f}, cost {search.cost()}")

# %%
# Choices and accuracy
# --------------------
#
# Each dot is one search: on the left the strength that it chose, on the right the accuracy of its
# model. The chosen strengths are far apart, but the accuracies are not: under noise many strengths
# are about equally good. Accuracy is lost where many fits share a budget, as in "cv", where each
# row is in four of five folds for every candidate.

figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.8), sharey=True, layout="constrained")
for i in range(len(strategies)):
    heights = i + np.linspace(-0.15, 0.15, 3)
    left.plot(chosen[i], heights, "o")
    right.plot(accuracy[i], heights, "o")
free = LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
right.axvline(free, color="gray", linestyle="--", label="no privacy, C = 1")
left.set_yticks(range(len(strategies)), [name.replace("_", " ") for name in strategies])
left.set(xscale="log", xlim=(5e-5, 20), xlabel="chosen strength C", ylabel="strategy")
right.set(xlabel="accuracy on test rows")
figure.legend(loc="outside lower right")
figure.suptitle("Searches of 8 candidates at ε = 1, δ = 1e-5, final model included")
plt.show()
