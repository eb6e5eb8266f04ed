"""
A first look at private rows
============================

`dp_describe` is ``df.describe()`` for one charge: missing values, quantiles and histograms of
numbers, frequent categories, and how strongly the two columns of each pair depend on each other.
Bounds and categories are found in the same charge, and their schema is ready for a fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.datasets import make_customers
from skdp.stats import dp_describe

plt.style.use("tableau-colorblind10")

customers = make_customers(20_000)
accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
profile = dp_describe(customers.data, epsilon=0.5, delta=1e-6, accountant=accountant)
print(profile)

# %%
# **Result:** the figure has a panel for each column, with bars for the noise. The lines are a
# simultaneous 95 % band: with this probability, no bin of a panel is outside it. The table shows
# the associations of pairs of columns: 0 if the columns are independent, and 1 if one determines
# the other.

profile.plot()
plt.show()

# %%
# Each interval contains the true quartile, which is not released, with a probability of 95 %.

age = profile["age"]
for level in (0.25, 0.5, 0.75):
    low, high = age.quantile_intervals[level]
    exact = np.quantile(customers.data["age"], level)
    print(
        f"{level:.0%}: {age.quantiles[level]:.1f}, between {low:.1f} and {high:.1f} ({exact:.1f})"
    )

# %%
# The schema that was found is released, so a fit with it pays for no search for bounds and
# categories.

schema = profile.schema
model = DPAdditiveClassifier(
    epsilon=1.0,
    delta=1e-6,
    bounds=schema.bounds,
    categories=schema.categories,
    accountant=accountant,
)
model.fit(customers.data, customers.target)
print(f"spent {accountant.epsilon_spent:g} of {accountant.epsilon:g}")
