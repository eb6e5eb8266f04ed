"""
Linkage, differencing, reconstruction: three attacks on answers
===============================================================

No name was published in any of these cases. A table without names, two sums, and a few hundred
counts each tell an attacker what single persons wanted to keep to themselves. The same answers
with noise, at an epsilon that holds for all of them together, do not. The persons are made up.

Run it as ``python examples/plot_attacks_on_answers.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog

from skdp.datasets import make_people
from skdp.mechanisms import GaussianMechanism
from skdp.stats import dp_sum

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
people = make_people(20_000)
table, left_the_club = people.data, people.target

# %%
# Linkage
# -------
#
# A table without names is linked to a public one (a register, a social network) that has names and
# some of the same columns. Whoever is alone with her age, region, job and education is found, and
# with her the column that the public table has not. Sweeney 2000 did this to a governor's hospital
# records. A private model or histogram of the same columns has no row that could be linked.

known = [
    ["age"],
    ["age", "region"],
    ["age", "region", "job"],
    ["age", "region", "job", "education"],
]
alone = [~table.duplicated(columns, keep=False) for columns in known]
linked = [100 * each.mean() for each in alone]
print("found by", ", ".join(known[-1]), f": {linked[-1]:.0f} % of all persons")

# %%
# Differencing
# ------------
#
# Two sums that differ by one person tell her value: all incomes of the region, and those of all but
# her. Each sum alone looks harmless. With noise for ε = 1 in each, the difference is mostly noise.

income = table.loc[table["region"] == "islands", "income"].dropna().to_numpy()[:400]
bounds = {"bounds": (0, 150_000)}
exact, private = [], []
for person in range(100):
    others = np.delete(income, person)
    exact.append(income.sum() - others.sum())
    pair = [
        dp_sum(rows, 1.0, **bounds, random_state=2 * person + k)
        for k, rows in enumerate((income, others))
    ]
    private.append(pair[0] - pair[1])

# %%
# Reconstruction
# --------------
#
# Dinur and Nissim 2003: many counts over random groups of persons, each nearly right, give back
# nearly every person's secret bit by linear programming (Dwork, McSherry and Talwar 2007). The
# counts here are exact, or they have Gaussian noise such that all of them together are
# (ε, 1e-5)-differentially private.

n_persons, n_counts = 200, 800
secret = left_the_club[:n_persons]
groups = rng.integers(0, 2, size=(n_counts, n_persons))


def reconstructed(answers):
    """Return the bits whose counts are nearest to the answers in sum, rounded."""
    # Over bits b in [0, 1] and errors e >= |groups @ b - answers|.
    errors = -np.eye(n_counts)
    limits = np.block([[groups, errors], [-groups, errors]])
    cost = np.repeat([0.0, 1.0], [n_persons, n_counts])
    ends = [(0, 1)] * n_persons + [(0, None)] * n_counts
    found = linprog(cost, limits, np.concatenate([answers, -answers]), bounds=ends)
    return found.x[:n_persons] > 0.5


epsilons = [0.1, 1.0, 10.0, 100.0, 1000.0]
guess = max(secret.mean(), 1 - secret.mean())
rates = [np.mean(reconstructed(groups @ secret) == secret)]
for seed, epsilon in enumerate(epsilons):
    # A person is in all counts at most: the answers move by sqrt(n_counts) in Euclidean norm.
    noise = GaussianMechanism(epsilon, 1e-5, sensitivity=np.sqrt(n_counts))
    answers = noise.release((groups @ secret).astype(float), random_state=seed)
    rates.append(np.mean(reconstructed(answers) == secret))
print(f"{n_counts} exact counts give back {rates[0]:.0%} of the bits, guessing {guess:.0%}")

# %%
# What to see
# -----------
#
# Left: the more columns a public table shares, the more persons are alone in theirs. Middle: exact
# sums tell each income to the unit; private ones scatter by more than any income differs from
# another. Right: exact counts give back every bit. At ε = 1 for all counts together the attacker
# does no better than by calling everybody's bit the more frequent one.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
axes[0].bar([str(len(columns)) for columns in known], linked)
axes[0].set(xlabel="columns shared with a public table", ylabel="persons found, %", title="Linkage")
axes[1].plot(income[:100] / 1000, np.array(private) / 1000, "x", color="C1", label="sums at ε = 1")
axes[1].plot(income[:100] / 1000, np.array(exact) / 1000, "o", color="C0", ms=4, label="exact sums")
axes[1].set(
    xlabel="income, thousands", ylabel="difference of two sums, thousands", title="Differencing"
)
axes[1].legend()
axes[2].semilogx(epsilons, 100 * np.array(rates[1:]), "-x", color="C1", label="private counts")
axes[2].axhline(100 * rates[0], color="C0", label="exact counts")
axes[2].axhline(100 * guess, color="gray", ls=":", label="guessing")
axes[2].set(xlabel="ε of all counts together", ylabel="bits given back, %", title="Reconstruction")
axes[2].legend(loc="center left")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
