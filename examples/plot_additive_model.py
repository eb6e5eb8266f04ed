"""
An additive model, read like a page
===================================

From a table as it is to a private model and its reasons: numbers, labels, dates and gaps need no
preparation, ranges and categories that nobody declares are found within the same epsilon, and
every curve that the model uses is in the picture. The table is Adult if the environment variable
``SKDP_DATA`` names the folder of ``adult_train.csv.gz``, otherwise made people, of whom some renew
a contract.

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
# The whole way from a CSV file. Without ``bounds`` and ``categories`` both are found privately.

folder = os.environ.get("SKDP_DATA")
if folder:
    table = pd.read_csv(Path(folder) / "adult_train.csv.gz", dtype_backend="numpy_nullable")
    y = np.where(table.pop("target") == 1, ">50K", "<=50K")  # dollars a year
else:
    people = make_customers()
    table, y = people.data, np.where(people.target == 1, "renews", "leaves")

accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5, dataset="people")
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-5, accountant=accountant).fit(table, y)

# %%
# **What to see:** all panels have one scale, and the most important column comes first. A person's
# score is the sum of what the columns add. The curve of age rises up to about 50 and then falls, as
# no straight line could. The bands are what the noise of the fit may have changed. The gray shapes
# are the noisy numbers of rows: where they are low, the curve rests on little.

display = AdditiveDisplay.from_estimator(model, max_terms=7)
if len(sys.argv) > 1:
    display.figure_.savefig(sys.argv[1], dpi=70)
else:
    plt.show()

# %%
# The same numbers as a document, for a notebook, are what the model itself shows. The reasons for
# one row add up to its score, and a curve can be changed: the copy has cost nothing more.

first = table.iloc[:1]
reasons = model.explain(first).to_pandas().iloc[0]
print(reasons.sort_values(key=abs, ascending=False).round(2).head(5))
print("sum and start:", round(reasons.sum() + model.intercept_, 2))

age = next(shape for shape in model.shape_functions_ if shape.name == "age")
never_falling = model.edit("age", np.maximum.accumulate(age.values))
print("its score if age never counted against anyone:", never_falling.decision_function(first))
