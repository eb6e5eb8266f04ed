"""
Membership inference on a forest, and at epsilon = 1
====================================================

A forest of deep trees predicts the rows that it was fitted to almost without error. An attacker who
may query its probabilities can use that. A likelihood-ratio attack (LiRA) fits shadow forests to
rows of the same kind. For each person it learns the answers of forests that were fitted with their
row, and of forests that were fitted without it. Here 2000 people are the candidates, and 1000 of
them are members.
"""

import matplotlib.pyplot as plt
import numpy as np
from example_table import load_table
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp.audit import membership_inference
from skdp.display import MembershipInferenceDisplay

plt.style.use("tableau-colorblind10")
X, y, *_ = load_table()
rows = np.random.default_rng(0).permutation(len(y))[:2000]
X, y = X[rows], y[rows]

# %%
# One attack on three models
# --------------------------
#
# The attacker sees predicted probabilities and fits 32 models of the same kind, each to a random
# half of the candidates. The private model is attacked as hard as the others: the attacker knows
# its epsilon and every other parameter.

models = {
    "deep forest": RandomForestClassifier(50, random_state=0),
    "logistic regression": LogisticRegression(C=100, max_iter=1000),
    "private, ε = 1": DPLogisticRegression(epsilon=1.0, delta=1e-5),
}
found = {
    name: membership_inference(model, X, y, n_shadow=32, n_jobs=2, random_state=0)
    for name, model in models.items()
}
print(f"{'':<22}{'members':>9}{'others':>9}{'attack':>9}{'recognized at 1 % false alarms':>28}")
for name, result in found.items():
    print(
        f"{name:<22}{result.train_score:9.3f}{result.test_score:9.3f}"
        f"{result.accuracy.value:9.3f}{result.tpr_at[0.01].value:28.3f}"
    )

# %%
# Result
# ------
#
# The axes of the left figure are logarithmic. At their left end the attacker wrongly accuses hardly
# anyone, and nevertheless recognizes several times as many of the forest's members. The curve of
# the private model stays near guessing, inside the shaded region. No attack on it can leave this
# region, except by chance because there are so few rows. The right figure shows the cost of
# privacy. It also shows that the forest, which makes no error on its members, is not better on
# others for that reason.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4.2), width_ratios=(3, 2), layout="constrained"
)
MembershipInferenceDisplay.from_results(found, epsilon=1.0, delta=1e-5).plot(ax=left)
left.set_title("Who was in the table?")
places = np.arange(len(found))
for shift, name, of in ((-0.2, "members", "train_score"), (0.2, "others", "test_score")):
    bars = right.bar(places + shift, [getattr(r, of) for r in found.values()], 0.4, label=name)
    right.bar_label(bars, fmt="%.2f")
right.set(ylabel="accuracy", ylim=(0.5, 1.1), title="Over-fitting")
right.set_xticks(places, [name.replace(" ", "\n", 1) for name in found])
right.legend(loc="upper right", ncols=2, frameon=False)
plt.show()
