"""
Attribute inference: secrets that a model reveals
=================================================

An attacker may know who is in the table, and want to learn an unknown column. Whatever the
attacker can infer from the other columns, or from a model of other rows, is statistics: the same
inference works for a person who is not in the table (Jayaraman and Evans 2022). Only the gain from
a model that was fitted to the row is a leak. The rows are simulated, and the secret column is
independent of all others.

Run it as ``python examples/plot_attribute_inference.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skdp import DPRandomForestClassifier
from skdp.audit import success_bound

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_rows, n_columns = 600, 12
X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
y = (X[:, 1:6].sum(axis=1) + rng.normal(0.0, 1.0, n_rows) > 2.5).astype(int)

# %%
# The attack
# ----------
#
# The attacker knows the row's other columns and its label, and guesses the secret from these. Then
# the attacker queries the model with each value of the secret column, and compares the answers with
# those of models that were fitted without the row. How to weigh that difference against the guess
# is learned from shadow models.
#
# A model is fitted to a random half of the rows and another one to the other half, several times.
# So every row is attacked with models that were fitted to it and with models that were not, and the
# difference is computed in pairs.


def attribute_inference(estimator, X, y, column, *, n_models=10, confidence=0.95):
    """Return the fraction of rows whose value is inferred correctly, for each kind of attacker.

    Parameters
    ----------
    estimator : classifier
        Private or not, without an accountant.
    X, y : ndarray
        All columns as numbers; labels are 0, 1, …
    column : int
        Index of the column that the attacker does not know.
    n_models : int, default=10
        Even number of models, which are fitted in pairs.
    confidence : float, default=0.95
        Confidence of the Student's t intervals over pairs of models.

    Returns
    -------
    dict of str to (float, float)
        A fraction, or the paired gain, and the half width of its confidence interval.
    """
    values, codes = np.unique(X[:, column], return_inverse=True)
    known = np.column_stack([np.delete(X, column, axis=1), y])
    guess = cross_val_predict(LogisticRegression(), known, codes, cv=5, method="predict_proba").T
    guess = np.log(guess)

    fitted = np.zeros((n_models, len(y)), dtype=bool)
    seen = np.empty((n_models, len(values), len(y)))
    for i, members in enumerate(fitted):
        members[:] = ~fitted[i - 1] if i % 2 else rng.permutation(len(y)) < len(y) // 2
        model = clone(estimator).fit(X[members], y[members])
        for j, value in enumerate(values):
            asked = X.copy()
            asked[:, column] = value
            p = np.clip(model.predict_proba(asked)[np.arange(len(y)), y], 1e-6, 1 - 1e-6)
            seen[i, j] = np.log(p / (1 - p))

    shares = []
    for pair in range(n_models // 2):
        own = np.arange(n_models) // 2 == pair
        outside = ~fitted[~own, None]
        excess = seen - (seen[~own] * outside).sum(axis=0) / outside.sum(axis=0)
        # Learn how to weigh guess and excess from the other pairs, whose true values are known.
        i, row = np.nonzero(fitted[~own])
        features = np.stack([guess[:, row], excess[~own][i, :, row].T])
        features -= features.mean(axis=1, keepdims=True)
        right = codes[row] == np.arange(len(values))[:, None]
        weights = LogisticRegression().fit(features.reshape(2, -1).T, right.ravel()).coef_[0]
        told = np.argmax(weights[0] * guess + weights[1] * excess[own], axis=1) == codes
        shares.append([told[~fitted[own]].mean(), told[fitted[own]].mean()])

    without_row, with_row = np.transpose(shares)
    found = {"the other columns": (float(np.mean(np.argmax(guess, axis=0) == codes)), 0.0)}
    for name, parts in {
        "a model of other rows": without_row,
        "a model of the row, too": with_row,
        "gain": with_row - without_row,
    }.items():
        half = t.ppf((1 + confidence) / 2, len(parts) - 1) * parts.std(ddof=1) / len(parts) ** 0.5
        found[name] = float(parts.mean()), float(half)
    return found


# %%
# The bound from a claim
# ----------------------
#
# All halves have the same size, so a row that takes part replaces another one. ``success_bound``
# bounds the success with the row by the success without it, under a claim for a replaced row. A
# claim of ε for a removed row is a claim of 2 ε for a replaced one (``docs/theory/auditing.md`` has
# the proof).

epsilon = 0.25
trees = {"delta": 0.0, "bounds": (0, 1), "n_estimators": 20, "max_depth": 8}
models = {
    "forest": RandomForestClassifier(20),
    "private forest, ε = 1000": DPRandomForestClassifier(1000.0, **trees),
    f"private forest, ε = {epsilon}": DPRandomForestClassifier(epsilon, **trees),
}
found = {name: attribute_inference(model, X, y, column=0) for name, model in models.items()}
for name, shares in found.items():
    allowed = success_bound(shares["a model of other rows"][0], 2 * epsilon)
    told = ", ".join(f"{has} {share:.3f} ± {half:.3f}" for has, (share, half) in shares.items())
    print(f"{name}: {told}; ε = {epsilon} allows {allowed:.3f}")

# %%
# **Result:** with the other columns alone, or with a model of other rows, the attacker is right as
# often as a coin toss. The forest reveals the secret of most rows that it was fitted to, more often
# than any model for which the claim ε = 0.25 holds could (dashed). The private model reveals
# nothing.

figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
has = list(found["forest"])[:3]
for shift, (name, shares) in zip((-0.27, 0.0, 0.27), found.items(), strict=True):
    value, half = 100 * np.transpose([shares[each] for each in has])
    bars = axes.bar(np.arange(3) + shift, value, 0.27, yerr=half, label=name)
    axes.bar_label(bars, fmt="%.0f", padding=2)
most = 100 * success_bound(found[f"private forest, ε = {epsilon}"][has[1]][0], 2 * epsilon)
axes.plot([1.55, 2.45], [most, most], "k--", label=f"maximum that ε = {epsilon} allows")
axes.set_xticks(range(3), has)
axes.set(xlabel="knowledge of the attacker", ylabel="secrets guessed correctly, %", ylim=(0, 110))
axes.legend(loc="upper left", ncols=2)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
