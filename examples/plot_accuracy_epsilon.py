"""
Accuracy against epsilon, by mechanism
======================================

`DPLogisticRegression` can add its noise in three places: to the final weights ("output"), to the
objective before it is minimized ("objective"), or to the gradient of every step ("gradient").
"auto", the default, chooses "objective" or "gradient" from public quantities: the shape of the
table, epsilon, delta and the bound on the norm of a row. All other parameters have their defaults.
"""

import matplotlib.pyplot as plt
import numpy as np
from example_table import load_table
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression

plt.style.use("tableau-colorblind10")
X, y, X_test, y_test = load_table()

# %%
# Fits at several epsilons
# ------------------------
#
# Noise comes from the operating system, so every run of this page gives different results. Each fit
# to private rows costs its epsilon. If you choose epsilon from such a curve, you pay for all of its
# fits, and its scores are not private. So compute the curve on public or simulated rows like yours.

epsilons = np.array([0.1, 0.3, 1.0, 3.0])
mechanisms = ["output", "objective", "gradient", "auto"]
scores = np.empty((len(mechanisms), len(epsilons), 5))
for i, mechanism in enumerate(mechanisms):
    for j, epsilon in enumerate(epsilons):
        model = DPLogisticRegression(epsilon, delta=1e-5, mechanism=mechanism)
        scores[i, j] = [model.fit(X, y).score(X_test, y_test) for _ in range(5)]
        if mechanism == "auto":
            print(f"epsilon {epsilon:<4g} auto chooses {model.mechanism_}")
reference = LogisticRegression(C=100, max_iter=1000).fit(X, y).score(X_test, y_test)
majority = max(y_test.mean(), 1 - y_test.mean())

# %%
# **Result:** noise on the final weights costs the most accuracy. The other two mechanisms are close
# to each other and, above a certain epsilon, to the model without privacy. "auto" chooses between
# them without reading the rows.

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
styles = {"output": "C2s-", "objective": "C0o-", "gradient": "C1^-", "auto": "kD:"}
for mechanism, mechanism_scores, shift in zip(mechanisms, scores, [-3, -1, 1, 3], strict=True):
    ax.errorbar(
        epsilons * 1.02**shift,
        mechanism_scores.mean(axis=1),
        mechanism_scores.std(axis=1, ddof=1),
        fmt=styles[mechanism],
        markersize=4,
        capsize=2,
        label=mechanism,
    )
ax.axhline(reference, color="0.3", linestyle="--", label="without privacy")
ax.axhline(majority, color="0.6", linestyle=":", label="larger class")
ax.set(
    xscale="log",
    xlabel="ε (δ = 1e-5)",
    ylabel="accuracy on test rows",
    title="Mean of 5 fits and their standard deviation",
)
ax.margins(y=0.1)
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(loc="center right", bbox_to_anchor=(1, 0.4), ncols=2)
plt.show()
