"""
A table that anyone may look at
===============================

One private fit yields any number of rows with the columns, types and missing values of the table.
This example draws rows from a table of customers, looks at them as one would look at the real
rows, and shows what they keep and what they do not. The customers are simulated, so real and
synthetic rows can be shown side by side; do not publish such a picture of real rows.

Run it as ``python examples/plot_synthetic_table.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.datasets import make_customers
from skdp.synthesis import DPTableSynthesizer, evaluate_synthetic

# %%
# Fit once. The form's lists of answers are declared, and the bounds of the other columns are found
# within the same epsilon. The column that the rows will be used to predict is the target.

customers = make_customers()
table = customers.data.assign(renews=customers.target == 1)
train, test = table[:15_000], table[15_000:]

accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6, dataset="customers")
synthesizer = DPTableSynthesizer(
    epsilon=1.0, delta=1e-6, target="renews", accountant=accountant, **customers.schema
).fit(train)

# %%
# Rows cost nothing, however many are drawn. Missing values and types are those of the table.

rows = synthesizer.sample(15_000, random_state=0)
print(rows.head(3).T)
print("epsilon spent:", accountant.epsilon_spent)

# %%
# **Result:** single columns and pairs of columns look like those of the real rows, and the fraction
# of renewals by age peaks at the same age. ``synthesizer.report()`` compares drawn rows with what
# was released, at no cost; in a notebook it has a plot of every column and of all pairs.

edges = np.linspace(18, 90, 25)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for name, frame, style in (("real rows", train, "C7"), ("synthetic rows", rows, "C0")):
    axes[0].hist(frame["age"], edges, histtype="step", density=True, color=style, label=name)
    middle = (edges[:-1] + edges[1:]) / 2
    place = np.digitize(frame["age"], edges[1:-1])
    renewals = [frame["renews"][place == i].mean() for i in range(len(middle))]
    axes[1].plot(middle, renewals, color=style)
axes[0].set(title="Customers", xlabel="age", ylabel="density")
axes[0].legend()
axes[1].set(title="Renewals", xlabel="age", ylabel="fraction", ylim=(0, None))
released = synthesizer.marginal("renews", "job").to_pandas()["count"].unstack()
released.T.plot.barh(stacked=True, ax=axes[2], color=["C7", "C0"])
axes[2].set(title="Released counts", xlabel="customers", xlim=(0, 3_300))
axes[2].legend(title="renews", loc="center right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=70)
else:
    plt.show()

# %%
# Counts should be read from released tables and not counted in synthetic rows: they come with the
# standard error of their noise.

print(synthesizer.marginal("job"))

# %%
# A model can be trained on the rows, as on any table. If one model is all that is needed, fit it
# to the real rows at the same epsilon: it is at least as accurate, because nothing was spent on
# pairs of columns that it does not use.

evaluation = evaluate_synthetic(synthesizer, test, random_state=0)
print(evaluation)
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-6, **customers.schema)
model.fit(train.drop(columns="renews"), train["renews"])
probabilities = model.predict_proba(test.drop(columns="renews"))[:, 1]
print("additive model, roc_auc:", round(roc_auc_score(test["renews"], probabilities), 4))
