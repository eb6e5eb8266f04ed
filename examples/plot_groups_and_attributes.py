"""
Which group is exposed, and which secret: two audits before a model goes out
============================================================================

An attack that finds few members on average may find most of a small group. And an attacker need not
ask who was in the table: often he knows that, and wants a column that he does not know. Both audits
are made here on a forest and on a private model. The rows are made: a group of one in ten is
predicted badly, and a column that is to be kept secret follows from no other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from skdp import DPLogisticRegression
from skdp.audit import attribute_inference, membership_inference, success_bound

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_rows, n_columns = 1000, 12
X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
minority = rng.random(n_rows) < 0.1
# Of the minority the label is all but chance.
y = (X[:, 1:6].sum(axis=1) + rng.normal(0.0, np.where(minority, 8.0, 0.5)) > 2.5).astype(int)
epsilon = 0.25
models = {
    "forest": RandomForestClassifier(25, random_state=0),
    f"private, ε = {epsilon}": DPLogisticRegression(
        epsilon, delta=0.0, mechanism="output", C=0.1, data_norm=3.5
    ),
}

# %%
# Membership by group
# -------------------
#
# ``by_group`` takes the group of each row, or `y` for the classes. Its intervals hold for all
# groups together: they are wider the more groups there are.

found = {
    name: membership_inference(model, X, y, n_shadow=24, random_state=0)
    for name, model in models.items()
}
groups = np.where(minority, "minority", np.where(y, "others, label 1", "others, label 0"))
exposed = {name: result.by_group(groups) for name, result in found.items()}
for name, by_group in exposed.items():
    print(name, {group: str(result.auc) for group, result in by_group.items()})

# %%
# Attribute inference
# -------------------
#
# The attacker knows the row's other columns and its label. What can be told from those, or from a
# model of other rows, is statistics: it would be told of somebody who is not in the table. The gain
# from a model that was fitted to the row is what the table gave away.

secrets = {
    name: attribute_inference(model, X, y, column=0, n_models=16, random_state=0)
    for name, model in models.items()
}
for result in secrets.values():
    print(result)

# %%
# What to see
# -----------
#
# Left: the forest gives away members of the minority far more often than others, because it must
# learn each of them by heart. Of the private model every group stays near guessing. Right: the
# forest tells the secret of most rows that it was fitted to, and of others no more often than a
# coin does. The private model gains nothing. The mark is the most that any attack could reach at
# this ε, where a row that takes part does so in the place of another.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for shift, (name, by_group) in zip((-0.1, 0.1), exposed.items(), strict=True):
    areas = [(r.auc.value, r.auc.low, r.auc.high) for r in by_group.values()]
    value, low, high = np.transpose(areas)
    places = np.arange(len(by_group)) + shift
    left.errorbar(places, value, (value - low, high - value), fmt="o", capsize=4, label=name)
left.axhline(0.5, color="gray", ls=":", label="guessing")
left.set_xticks(range(len(by_group)), by_group)
left.set(xlabel="group", ylabel="area under the attack's ROC curve", title="Who is in the table?")
left.legend()
columns = ("baseline", "without_row", "with_row")
for shift, (name, result) in zip((-0.2, 0.2), secrets.items(), strict=True):
    shares = [100 * getattr(getattr(result, each), "value", result.baseline) for each in columns]
    bars = right.bar(np.arange(3) + shift, shares, 0.4, label=name)
    right.bar_label(bars, fmt="%.0f")
most = 100 * success_bound(result.without_row.value, 2 * epsilon)
right.plot([2.0, 2.4], [most, most], "k--", label=f"allowed by ε = {epsilon}")
right.set_xticks(range(3), ["other columns", "a model of\nother rows", "a model of\nthe row, too"])
right.set(xlabel="what the attacker has", ylabel="secrets told rightly, %", ylim=(0, 100))
right.set_title("What is her secret?")
right.legend(loc="upper left")
plt.show()
