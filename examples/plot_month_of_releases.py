"""
A budget over a month of releases
=================================

A shop publishes figures about its members every day, and decides each day what to publish next. All
figures are about the same members, so all of them are charged to one budget, which is stored in a
file. A program that starts on another day opens the file and finds how much was spent.

The members are simulated; the costs are real.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import BudgetExceededError, DPLogisticRegression, PrivacyAccountant
from skdp.display import BudgetDisplay
from skdp.stats import dp_histogram, dp_mean

plt.style.use("tableau-colorblind10")

n_members, n_departments = 20_000, 12
rng = np.random.default_rng(0)
age = rng.uniform(18, 90, n_members)

folder = tempfile.TemporaryDirectory()
ledger = Path(folder.name) / "budget.db"
terms = {"epsilon": 1.0, "delta": 1e-5, "composition": "zcdp", "dataset": "members"}

# %%
# Thirty days
# -----------
#
# Every day the shop publishes the mean spending in each department, every Sunday the distribution
# of spending, and on days 15 and 30 a model of returning members. Costs are composed by
# zero-concentrated differential privacy (zCDP), which stays valid if a release is chosen after
# seeing the previous ones.

days, spent, added = range(1, 31), [], []
for day in days:
    accountant = PrivacyAccountant(**terms, ledger=ledger)
    spending = rng.gamma(0.5, 20.0, (n_members, n_departments))
    came = rng.random(n_members) < 0.3
    dp_mean(spending, 0.1, delta=1e-6, bounds=(0, 200), axis=0, accountant=accountant)
    if day % 7 == 0:
        total = spending.sum(axis=1)
        dp_histogram(total, 0.05, bins=12, range=(0, 600), accountant=accountant)
    if day % 15 == 0:
        model = DPLogisticRegression(
            0.5, delta=1e-6, mechanism="gradient", data_norm=1.5, accountant=accountant
        )
        X = np.column_stack([age / 90, np.clip(spending.sum(axis=1) / 1000, 0, 1)])
        try:
            model.fit(X, came)
        except BudgetExceededError as error:
            print(f"day {day}: {error}")
    spent.append(accountant.epsilon_spent)
    added.append(sum(charge.epsilon for charge in accountant.charges))

# %%
# The refused fit computed nothing, left its estimator unfitted and is not in the ledger, whose
# records form a chain of hashes.

accountant = PrivacyAccountant(**terms, ledger=ledger)
print(f"{len(accountant.charges)} releases, epsilon {accountant.epsilon_spent:.3f} spent of 1")
print(f"the second model has weights: {hasattr(model, 'coef_')}")
print(f"hash of the last record: {accountant.verify()[:16]}…")

# %%
# **Result:** in the upper figure, the sum of the epsilons (gray) exceeds the budget in the second
# week, while the cost by zCDP grows ever more slowly. On the last day the model costs more than the
# rest of the budget, and is refused. The lower figure shows the cost of each kind of release.

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.4, 6.4), height_ratios=(3, 2), layout="constrained"
)
top.step(days, added, color="C2", where="post", label="if epsilons were added")
top.step(days, spent, color="C0", where="post", linewidth=2, label="spent, by zCDP")
top.axhline(1.0, color="C3", linestyle="--", label="budget")
top.plot(30, spent[-1], "x", color="C5", markersize=10, markeredgewidth=2, label="refused")
top.set(xlabel="day of the month", ylabel="ε (δ = 1e-5)", ylim=(0, 2), title="Spent day by day")
top.legend(loc="upper right")
BudgetDisplay.from_accountant(accountant).plot(ax=bottom)
plt.show()
folder.cleanup()
