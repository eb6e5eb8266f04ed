"""
Noisy gradient descent in three regimes
=======================================

`DPSGDClassifier` chooses the sampling, the noise and the composition of its steps together:

* all rows, gradients clipped in L1 and Laplace noise: pure epsilon, δ = 0;
* all rows, gradients clipped in L2 and Gaussian noise, composed by zero-concentrated differential
  privacy (zCDP);
* each row with some probability (Poisson sampling) and Gaussian noise, composed by privacy loss
  distributions (PLD): most rows are not in a batch, and the rows of a batch are secret.
"""

import matplotlib.pyplot as plt
import numpy as np
from example_table import load_table
from sklearn.linear_model import LogisticRegression

from skdp import DPSGDClassifier
from skdp.accounting import Composed, get_epsilon
from skdp.pipeline import planned_charge

plt.style.use("tableau-colorblind10")
X, y, X_test, y_test = load_table()
n_samples, n_features = X.shape

regimes = {
    "all rows, Laplace, δ = 0": DPSGDClassifier(delta=0.0, sampling="full"),
    "all rows, zCDP": DPSGDClassifier(delta=1e-5, sampling="full"),
    "Poisson batches, PLD": DPSGDClassifier(
        delta=1e-5, sampling="poisson", batch_size=n_samples // 40, max_iter=10
    ),
}
methods = ["basic", "zcdp", "pld"]
styles = ["C3^-", "C0o-", "C1s-"]

# %%
# The charge is known before any row is read. It consists of an epsilon for each step in the first
# regime and of a noise multiplier in the others; in the last regime, it also contains the
# probability that a row is in a batch.

for name, model in regimes.items():
    print(f"{name}\n  {planned_charge(model, n_samples, n_features).event}")

# %%
# Accuracy at several epsilons
# ----------------------------

epsilons = np.array([0.1, 0.3, 1.0, 3.0])
scores = {
    name: np.array(
        [
            [model.set_params(epsilon=eps).fit(X, y).score(X_test, y_test) for _ in range(3)]
            for eps in epsilons
        ]
    )
    for name, model in regimes.items()
}
reference = LogisticRegression(C=100, max_iter=1000).fit(X, y).score(X_test, y_test)

# %%
# The cost after each step
# ------------------------
#
# The curves show the cost of a run that stops after that many steps.


def spent(model, method, n_points=12):
    """Return the epsilon of growing parts of a run at epsilon = 1."""
    event = planned_charge(model.set_params(epsilon=1.0), n_samples, n_features).event
    # Noisy class frequencies are released before the steps.
    *first, steps = event.events if isinstance(event, Composed) else [event]
    counts = np.unique(np.linspace(1, steps.count, n_points).astype(int))
    runs = [Composed((*first, steps.event * int(count))) for count in counts]
    return counts / steps.count, [get_epsilon(run, model.delta, method=method) for run in runs]


# %%
# **Result:** with δ = 0 every step costs the same. So a run can afford only a few steps with much
# noise each, and loses accuracy at a small epsilon. With δ > 0 the cost grows like the square root
# of the number of steps. With many rows, both kinds of batches reach about the same accuracy, but
# Poisson batches read the rows ten times, and full batches up to a few hundred times. The exact
# composition of Gaussian noise gives a cost of 1, which is charged; zCDP gives slightly more.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 4.2), layout="constrained")
for (name, model), method, style in zip(regimes.items(), methods, styles, strict=True):
    left.errorbar(
        epsilons,
        scores[name].mean(axis=1),
        scores[name].std(axis=1, ddof=1),
        fmt=style,
        markersize=4,
        capsize=2,
    )
    right.plot(*spent(model, method), style, markersize=4, label=name)
left.axhline(reference, color="0.3", linestyle="--", label="without privacy")
left.set(xscale="log", xlabel="ε", ylabel="accuracy on test rows", title="Mean of 3 fits")
left.set_xticks(epsilons, [f"{eps:g}" for eps in epsilons])
left.minorticks_off()
right.set(xlabel="fraction of the steps", ylabel="ε spent", title="A run at ε = 1")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
