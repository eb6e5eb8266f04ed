"""
Persons with several rows
=========================

A table of contracts has up to thirty rows per person. There are three ways to protect the person
and not only a row: let the rows of a person share the weight of one row, keep one row per person,
or divide epsilon by the maximum number of rows. The table is simulated: contracts that were renewed
or not, over time.

Run it as ``python examples/plot_persons.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.datasets import make_customers

# %%
# ``groups`` holds the person of each row. With ``unit="person"`` the budget protects all rows of a
# person, however many there are; a fit without ``groups`` is refused.

MOST_ROWS, N_PERSONS = 30, 2000
people = make_customers(50_000, rows_per_person=MOST_ROWS)
known = people.groups < N_PERSONS
X, y, person = people.data[known], people.target[known], people.groups[known]
new_X, new_y = people.data[~known], people.target[~known]

accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6, unit="person")
model = DPAdditiveClassifier(1.0, **people.schema, accountant=accountant)
model.fit(X, y, groups=person)
print(model.privacy_)

# %%
# **Result:** with shared weights every row is used, with the noise of one row per person. One row
# per person means the same noise and fewer rows to learn from, which matters more when there is
# less noise. A thirtieth of epsilon per row uses every row, with thirty times the noise. All three
# are scored on other persons, and each value is the mean of five fits.

epsilons = [0.25, 0.5, 1.0, 2.0, 4.0]
first = np.unique(person, return_index=True)[1]


def fitted(way, epsilon, seed):
    own = {**people.schema, "random_state": seed}
    if way == "shares of rows: groups=person":
        return DPAdditiveClassifier(epsilon, **own).fit(X, y, groups=person)
    if way == "one row of each person":
        return DPAdditiveClassifier(epsilon, **own).fit(X.iloc[first], y[first])
    # For a group of k rows that are protected one by one: k epsilon, and k exp(epsilon) delta.
    delta = 1e-6 / (MOST_ROWS * np.exp(epsilon))
    return DPAdditiveClassifier(epsilon / MOST_ROWS, delta=delta, **own).fit(X, y)


WAYS = {
    "shares of rows: groups=person": "-o",
    "one row of each person": "--s",
    "epsilon / 30 a row": ":^",
}
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for way, style in WAYS.items():
    scores = [
        np.mean(
            [
                roc_auc_score(new_y, fitted(way, epsilon, seed).decision_function(new_X))
                for seed in range(5)
            ]
        )
        for epsilon in epsilons
    ]
    print(f"{way:32}", np.round(scores, 3))
    axes.plot(epsilons, scores, style, label=way)
axes.set_xscale("log", base=2)
axes.set_xticks(epsilons, epsilons)
axes.set(xlabel="epsilon per person", ylabel="AUC on other persons' rows")
axes.set_title(f"{N_PERSONS} persons with 1 to {MOST_ROWS} rows each")
axes.grid(alpha=0.3)
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=70)
else:
    plt.show()
