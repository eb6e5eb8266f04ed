"""
Fit and read an additive model
==============================

This example goes from a raw table to a private model and its explanations. Numbers, strings, dates
and missing values need no preparation. Undeclared bounds and categories are found within the same
epsilon, and the figure shows every curve that the model uses. The table is Adult if the environment
variable ``SKDP_DATA`` names the folder with ``adult_train.csv.gz``, and otherwise consists of
simulated customers, some of whom renew a contract.

Run it as ``python examples/plot_additive_model.py [image]``.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.datasets import make_customers
from skdp.display import AdditiveDisplay

# %%
# Read the table and fit the model. Bounds and categories are not declared, so they are found
# privately. Nearly all capital gains and losses are 0, so the bounds from the census form are
# declared for these two columns.

folder = os.environ.get("SKDP_DATA")
bounds = "auto"
if folder:
    bounds = {"capital_gain": (0, 99_999), "capital_loss": (0, 4_356)}
    table = pd.read_csv(Path(folder) / "adult_train.csv.gz", dtype_backend="numpy_nullable")
    y = np.where(table.pop("target") == 1, ">50K", "<=50K")  # dollars a year
else:
    people = make_customers()
    table, y = people.data, np.where(people.target == 1, "renews", "leaves")

accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5, dataset="people")
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-5, bounds=bounds, accountant=accountant)
model.fit(table, y)

# %%
# **Result:** all panels have the same scale, and the most important column comes first. A person's
# score is the sum of the values of all columns. The curve for age rises until about 50 and then
# falls, which no straight line could show. The bands show the effect of the noise. The gray shapes
# are the noisy numbers of rows: where they are low, few rows support the curve.

display = AdditiveDisplay.from_estimator(model, max_terms=7)
if len(sys.argv) > 1:
    display.figure_.savefig(sys.argv[1], dpi=70)
else:
    plt.show()

# %%
# In a notebook the model itself is displayed in the same way. The contributions for one row add up
# to its score, and a curve can be edited: the edited copy costs no further epsilon.

first = table.iloc[:1]
reasons = model.explain(first).to_pandas().iloc[0]
print(reasons.sort_values(key=abs, ascending=False).round(2).head(5))
print("sum and intercept:", round(reasons.sum() + model.intercept_, 2))

age = next(shape for shape in model.shape_functions_ if shape.name == "age")
never_falling = model.edit("age", np.maximum.accumulate(age.values))
print("its score if the curve of age never fell:", never_falling.decision_function(first))
