"""
Membership inference on a sequence of models
============================================

A model is seldom published once. Training writes a model to a shared folder after every epoch, or a
table grows and the model is fitted again each month. Whoever sees the whole sequence learns more
about the members than from the last model alone: the noise of single epochs averages out, and the
change between two months is due to the few who joined. A budget that is charged for every release
holds for all of them together.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier

from skdp import DPLogisticRegression, DPSGDClassifier
from skdp.audit import membership_inference
from skdp.display import MembershipInferenceDisplay

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_rows, n_columns = 400, 60
X = rng.normal(size=(n_rows, n_columns))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = (X[:, 0] > 0).astype(int) ^ (rng.random(n_rows) < 0.3)

# %%
# Observed epochs
# ---------------
#
# ``releases`` describes what is published: a function that fits a clone to the members and yields
# one model after another. Here it trains sixteen epochs, and the attacker sees the last few. The
# attacker repeats the whole sequence with shadow models (LiRA on several releases). An epoch of the
# private model costs ε = 1/16, so all epochs cost ε = 1.

N_EPOCHS = 16


def epochs(estimator, X, y, members, n_seen):
    for epoch in range(N_EPOCHS):
        estimator.partial_fit(X[members], y[members], classes=[0, 1])
        if epoch >= N_EPOCHS - n_seen:
            yield estimator


models = {
    "scikit-learn's SGD": SGDClassifier("log_loss", learning_rate="constant", eta0=50.0),
    "private, ε = 1 for all": DPSGDClassifier(1 / N_EPOCHS, delta=1e-6, classes=[0, 1]),
}
seen = {"scikit-learn's SGD": [1, 4, 16], "private, ε = 1 for all": [1, 16]}
n_targets = {"scikit-learn's SGD": 4, "private, ε = 1 for all": 2}
areas = {
    name: [
        [
            membership_inference(
                model, X, y, releases=partial(epochs, n_seen=n), n_shadow=24, random_state=target
            ).auc.value
            for target in range(n_targets[name])
        ]
        for n in seen[name]
    ]
    for name, model in models.items()
}
for name, found in areas.items():
    print(f"{name:<24}", seen[name], np.mean(found, axis=1).round(3))

# %%
# A table that grows
# ------------------
#
# The first model is fitted to the members among 300 persons. Five more models follow, each after
# twenty more persons may have joined. The attacker asks which of the last hundred are members.
# ``by_group`` evaluates one attack by group.

late = np.arange(n_rows) >= 300


def months(estimator, X, y, members):
    for size in range(300, n_rows + 1, 20):
        rows = np.flatnonzero(members[:size])
        yield clone(estimator).fit(X[rows], y[rows])


def last_month(estimator, X, y, members):
    yield estimator.fit(X[members], y[members])


plain = LogisticRegression(C=10.0)
private = DPLogisticRegression(1 / 6, delta=0.0, mechanism="output", C=0.1)
of_late = {
    name: membership_inference(
        model, X, y, releases=releases, n_shadow=32, random_state=0
    ).by_group(late)[True]
    for name, model, releases in (
        ("plain, last model", plain, last_month),
        ("plain, all six", plain, months),
        ("private, all six", private, months),
    )
}

# %%
# Result
# ------
#
# Left: the more epochs of the plain model are seen, the better members can be recognized (means of
# four targets, two for the private model, with standard errors). The private sequence stays near
# guessing, whether one model is seen or all. Right: among those who joined late, six plain models
# reveal several times as many members as the last one alone. The curve of the six private models
# stays in the region that ε = 1 for all of them allows, except by chance because there are so few
# rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for (name, found), marker in zip(areas.items(), ("-o", "-x"), strict=True):
    error = np.std(found, axis=1, ddof=1) / np.sqrt(n_targets[name])
    left.errorbar(seen[name], np.mean(found, axis=1), error, fmt=marker, capsize=3, label=name)
left.axhline(0.5, color="gray", ls=":", label="guessing")
left.set(xlabel="number of last epochs that are seen", ylabel="area under the attack's ROC curve")
left.set_title("Observed epochs")
left.legend()
MembershipInferenceDisplay.from_results(of_late, epsilon=1.0).plot(ax=right)
right.set_title("Who joined?")
plt.show()
