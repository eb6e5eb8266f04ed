"""
Linkage, differencing, reconstruction: three attacks on answers
===============================================================

No name was published in any of these cases. Nevertheless a table without names, two sums, and a few
hundred counts each reveal secrets of individual persons. The same answers with noise, at one
epsilon for all of them together, do not. The persons are simulated.

Run it as ``python examples/plot_attacks_on_answers.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skdp.audit import differencing, linear_reconstruction
from skdp.datasets import make_customers
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.stats import dp_sum

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
people = make_customers(20_000)
table, left_the_club = people.data, people.target

# %%
# Linkage
# -------
#
# An attacker links a table without names to a public one (a register, a social network) that has
# names and some of the same columns. A person with a unique combination of age, region, job and
# education is identified, and with them the column that the public table lacks. Sweeney 2000 did
# this to a governor's hospital records. A private model or histogram of the same columns has no row
# that could be linked.

known = [
    ["age"],
    ["age", "region"],
    ["age", "region", "job"],
    ["age", "region", "job", "education"],
]
alone = [~table.duplicated(columns, keep=False) for columns in known]
linked = [100 * each.mean() for each in alone]
told = []
for columns, single in zip(known, alone, strict=True):
    cells = table.groupby(columns, dropna=False, observed=True, sort=False).ngroup()
    counts = np.zeros((2, cells.max() + 1))
    np.add.at(counts, (left_the_club, cells), 1.0)
    noisy = LaplaceMechanism(0.1, sensitivity=1.0).release(counts, random_state=0)
    guesses = np.argmax(noisy, axis=0)[cells[single]]
    told.append(100 * np.mean(guesses == left_the_club[single]) if single.sum() >= 100 else np.nan)
print("identified by", ", ".join(known[-1]), f": {linked[-1]:.0f} % of all persons")

# %%
# Differencing
# ------------
#
# Two sums that differ by one person reveal that person's value: the sum of all incomes in the
# region, and the sum without this person. Each sum alone looks harmless. With noise for ε = 1 added
# to each, the difference is mostly noise.

income = table.loc[table["region"] == "islands", "income"].dropna().to_numpy()[:400]
bounds = {"bounds": (0, 150_000)}
exact = differencing(np.sum, income, persons=range(100)).estimates
private = differencing(
    lambda rows: dp_sum(rows, 1.0, **bounds), income, persons=range(100)
).estimates

# %%
# Reconstruction
# --------------
#
# Dinur and Nissim 2003: from many nearly correct counts over random groups of persons, linear
# programming reconstructs nearly every person's secret bit (``linear_reconstruction``). Here the
# counts are exact, or they have Gaussian noise such that all of them together are
# (ε, 1e-5)-differentially private.

n_persons, n_counts = 200, 800
secret = left_the_club[:n_persons]
groups = rng.integers(0, 2, size=(n_counts, n_persons))


epsilons = [0.1, 1.0, 10.0, 100.0, 1000.0]
guess = max(secret.mean(), 1 - secret.mean())
rates = [linear_reconstruction(groups, groups @ secret).success(secret)]
for seed, epsilon in enumerate(epsilons):
    # A person may be in all counts, so the L2 sensitivity is sqrt(n_counts).
    noise = GaussianMechanism(epsilon, 1e-5, sensitivity=np.sqrt(n_counts))
    answers = noise.release((groups @ secret).astype(float), random_state=seed)
    rates.append(linear_reconstruction(groups, answers).success(secret))
print(f"{n_counts} exact counts reveal {rates[0]:.0%} of the bits, guessing {guess:.0%}")

# %%
# Result
# ------
#
# Left: the more columns a public table shares, the more persons are unique, and the secrets of all
# of these are revealed. Private counts of the same cells at ε = 0.1 reveal them hardly more often
# than a coin toss. Middle: exact sums reveal each income exactly; private sums vary by more than
# incomes differ. Right: exact counts reveal every bit. At ε = 1 for all counts together the
# attacker does no better than someone who guesses the more frequent bit for everyone.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
places = [str(len(columns)) for columns in known]
axes[0].bar(places, linked, color="C7", label="unique persons")
exactly = np.where(np.isnan(told), np.nan, 100.0)
axes[0].plot(places, exactly, "o", color="C0", label="secrets revealed by rows")
axes[0].plot(places, told, "x", color="C1", label="… by counts at ε = 0.1")
axes[0].axhline(50, color="gray", ls=":", label="… by a coin")
axes[0].set(
    xlabel="columns shared with a public table", ylabel="persons, %", ylim=(0, 160), title="Linkage"
)
axes[0].set_yticks(range(0, 101, 20))
axes[0].legend(loc="upper left")
axes[1].plot(income[:100] / 1000, np.array(private) / 1000, "x", color="C1", label="sums at ε = 1")
axes[1].plot(income[:100] / 1000, np.array(exact) / 1000, "o", color="C0", ms=4, label="exact sums")
axes[1].set(
    xlabel="income, thousands", ylabel="difference of two sums, thousands", title="Differencing"
)
axes[1].legend()
axes[2].semilogx(epsilons, 100 * np.array(rates[1:]), "-x", color="C1", label="private counts")
axes[2].axhline(100 * rates[0], color="C0", label="exact counts")
axes[2].axhline(100 * guess, color="gray", ls=":", label="guessing")
axes[2].set(xlabel="ε of all counts together", ylabel="bits revealed, %", title="Reconstruction")
axes[2].legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
