"""
Three hospitals: one ledger, or one each
========================================

Three hospitals want one model, and each person is a patient of one of them. There are two ways. If
all trust one curator, the curator fits the pooled table and keeps one ledger. If they do not, each
hospital fits a model to its own rows, with its own ledger and noise. Only released models leave a
hospital, and the mean of their scores is the common model.

Run it as ``python examples/plot_three_hospitals.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.datasets import make_customers

plt.style.use("tableau-colorblind10")
people = make_customers(12_000)
X, y = people.data, people.target
# Rows 0 to 2999 are patients of the first hospital, and so on; the last 3000 are test persons.
rows = np.split(np.arange(12_000), 4)
hospitals, new = rows[:3], rows[3]


def model(epsilon, accountant, seed):
    own = {**people.schema, "accountant": accountant, "random_state": seed}
    return DPAdditiveClassifier(epsilon, delta=1e-6, **own)


# %%
# One curator and one ledger: the pooled table. The curator can also fit one model per hospital for
# the price of one, since each person is in only one of the parts: ``disjoint`` declares this.

ledger = PrivacyAccountant(epsilon=2.0, delta=2e-6)
pooled = np.concatenate(hospitals)
model(1.0, ledger, 0).fit(X.iloc[pooled], y[pooled])
for part, own in zip(ledger.disjoint("hospital", 3, by_index=True), hospitals, strict=True):
    model(1.0, part, 0).fit(X.iloc[own], y[own])
print(f"spent of 2 by four fits: {ledger.epsilon_spent}")

# %%
# One ledger per hospital: no hospital sees the rows of another. A person's epsilon is spent only at
# their own hospital. A patient of two hospitals would be charged at both, and no ledger shows this.


def mean_of_sites(epsilon, seed):
    scores = []
    for own in hospitals:
        accountant = PrivacyAccountant(epsilon=epsilon, delta=1e-6)
        site = model(epsilon, accountant, seed).fit(X.iloc[own], y[own])
        scores.append(site.decision_function(X.iloc[new]))
    return roc_auc_score(y[new], np.mean(scores, axis=0))


def single(epsilon, seed, own):
    site = model(epsilon, None, seed).fit(X.iloc[own], y[own])
    return roc_auc_score(y[new], site.decision_function(X.iloc[new]))


# %%
# **Result:** the mean of three models, each with separate noise, approaches the pooled model as the
# noise decreases; at a small epsilon it is no better than one hospital alone. Its advantage is
# trust: noise is drawn where the rows are, so only a patient's own hospital could learn more
# about them than epsilon allows. The values are means of five fits.

epsilons = [0.1, 0.3, 1.0, 3.0]
ways = {
    "pooled: one curator": ("-o", lambda e, s: single(e, s, pooled)),
    "mean of three: one ledger each": ("--s", mean_of_sites),
    "one hospital alone": (":^", lambda e, s: single(e, s, hospitals[0])),
}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, (style, auc) in ways.items():
    means = [np.mean([auc(epsilon, seed) for seed in range(5)]) for epsilon in epsilons]
    axes.semilogx(epsilons, means, style, label=name)
axes.set(xlabel="ε per person", ylabel="AUC on other persons", title="Three hospitals")
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
