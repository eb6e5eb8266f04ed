"""
What is her secret? What a model adds to statistics
===================================================

An attacker need not ask who was in the table: often he knows that, and wants a column that he does
not know. What he can tell from the other columns, or from a model of other rows, is statistics: he
would tell it of somebody who is not in the table. The gain from a model that was fitted to the row
is what the table gave away. The rows are made, and the secret column follows from no other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp.audit import attribute_inference, success_bound

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_rows, n_columns = 600, 12
X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
y = (X[:, 1:6].sum(axis=1) + rng.normal(0.0, 1.0, n_rows) > 2.5).astype(int)

# %%
# Attribute inference
# -------------------
#
# The attacker knows the row's other columns and its label. He asks the model about the row with
# each value of the secret column, and compares the answers with those of models of other rows. A
# claim bounds what he can reach: ``success_bound``, where a row that takes part does so in the
# place of another, so that ε = 0.25 for a removed row allows what 0.5 does.

epsilon = 0.25
models = {
    "forest": RandomForestClassifier(25),
    "logistic regression": LogisticRegression(C=100.0, max_iter=1000),
    f"private, ε = {epsilon}": DPLogisticRegression(
        epsilon, delta=0.0, mechanism="output", C=0.1, data_norm=3.5
    ),
}
found = {
    name: attribute_inference(
        model, X, y, column=0, baseline=LogisticRegression(), n_models=16, random_state=0
    )
    for name, model in models.items()
}
for name, result in found.items():
    print(f"{name:<20} gain {result.gain}")
print(result)

# %%
# **What to see:** with the other columns alone, or with a model of other rows, the secret is told
# as often as by a coin. The forest tells that of most rows that it was fitted to, more often than
# any model could whose claim of ε = 0.25 is true (dashed). The private model gains nothing.

figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
columns = ("baseline", "without_row", "with_row")
for shift, (name, result) in zip((-0.27, 0.0, 0.27), found.items(), strict=True):
    shares = [100 * getattr(getattr(result, each), "value", result.baseline) for each in columns]
    bars = axes.bar(np.arange(3) + shift, shares, 0.27, label=name)
    axes.bar_label(bars, fmt="%.0f")
most = 100 * success_bound(result.without_row.value, 2 * epsilon)
axes.plot([1.6, 2.4], [most, most], "k--", label=f"most that ε = {epsilon} allows")
axes.set_xticks(range(3), ["the other columns", "a model of other rows", "a model of the row, too"])
axes.set(xlabel="what the attacker has", ylabel="secrets told rightly, %", ylim=(0, 110))
axes.legend(loc="upper left", ncols=2)
plt.show()
