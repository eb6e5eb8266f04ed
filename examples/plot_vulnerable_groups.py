"""
Membership inference by group
=============================

An attack that finds few members on average may find most members of a small group. Here a group of
one tenth of the rows is hard to predict, so a forest must memorize each of its rows. The audit
by group shows, before the model is published, who is exposed. The rows are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from skdp import DPLogisticRegression
from skdp.audit import membership_inference
from skdp.display import MembershipInferenceDisplay

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_rows, n_columns = 1000, 12
X = rng.integers(0, 2, size=(n_rows, n_columns)).astype(float)
minority = rng.random(n_rows) < 0.1
# The labels of the minority are almost random.
y = (X[:, 1:6].sum(axis=1) + rng.normal(0.0, np.where(minority, 8.0, 0.5)) > 2.5).astype(int)

# %%
# Membership by group and by class
# --------------------------------
#
# ``by_group`` accepts the group of each row, or `y` for the classes. Its intervals hold for all
# groups together: the more groups there are, the wider they are.

epsilon = 0.25
private = DPLogisticRegression(epsilon, delta=0.0, mechanism="output", C=0.1, data_norm=3.5)
models = {"forest": RandomForestClassifier(25, random_state=0), f"private, ε = {epsilon}": private}
found = {
    name: membership_inference(model, X, y, n_shadow=24, random_state=0)
    for name, model in models.items()
}
groups = np.where(minority, "minority", np.where(y, "others, label 1", "others, label 0"))
exposed = {name: result.by_group(groups) for name, result in found.items()}
for name, by_group in exposed.items():
    print(name, {group: str(result.auc) for group, result in by_group.items()})

# %%
# Result
# ------
#
# Left: the forest reveals members of the minority far more often than others. For the private model
# every group stays near guessing. The claim holds for each row, and so for every group. Right: the
# ROC curves of the forest's groups. All of them leave the region that ε = 0.25 would allow, and the
# curve of the minority does so by far.

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
MembershipInferenceDisplay.from_results(exposed["forest"], epsilon=epsilon).plot(ax=right)
right.set_title("The forest, by group")
plt.show()
