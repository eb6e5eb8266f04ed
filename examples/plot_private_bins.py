"""
Private bins for a private model
================================

A straight line cannot follow an income that rises with age and then falls again. One weight per bin
can. Bins and model share one budget, epsilon = 1 and delta = 1e-5. The left figure shows the bins
that were found privately, each with about the same number of rows. The right figure shows the
probability of a high income by age, as each model predicts it and as the people were simulated.

Run it as ``python examples/plot_private_bins.py [image]``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skdp import DPHistogramTransformer, DPLogisticRegression, DPMeanTransformer, PrivacyAccountant

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n = 30_000
age = 17 + 73 * rng.beta(1.6, 3.5, n)


def chance(age):
    return 0.05 + 0.5 * np.exp(-(((age - 50) / 14) ** 2))


y = rng.random(n) < chance(age)
X = age[:, None]
bounds = (17, 90)

# %%
# A tenth of the budget is spent on the bins, and the rest on the model. The budget for the line is
# split in the same way.

accountant = PrivacyAccountant(1.0, 1e-5, dataset="with bins")
bins = DPHistogramTransformer(0.1, bounds=bounds, n_bins=16, accountant=accountant)
model = DPLogisticRegression(0.9, delta=1e-5, accountant=accountant)
with_bins = make_pipeline(bins, model).fit(X, y)

accountant = PrivacyAccountant(1.0, 1e-5, dataset="straight")
center = DPMeanTransformer(0.1, bounds=bounds, accountant=accountant)
model = DPLogisticRegression(0.9, delta=1e-5, data_norm=73.0, accountant=accountant)
straight = make_pipeline(center, model).fit(X, y)

# %%
# **Result:** bins are narrow where there are many rows. With bins the model follows the rise and
# the fall; the line does not.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.6))
left.hist(age, bins=73, range=bounds, color="0.8", density=True, label="rows (private)")
edges, counts = bins.bin_edges_[0], bins.counts_[0]
left.stairs(counts / counts.sum() / np.diff(edges), edges, color="C0", label="released bins")
left.set(
    xlabel="age in years",
    ylabel="fraction of rows per year",
    ylim=(0, 0.06),
    title="Private bins, ε = 0.1",
)
left.legend(frameon=False)

ages = np.linspace(*bounds, 500)
right.plot(ages, chance(ages), color="0.6", linewidth=4, label="truth")
right.plot(ages, with_bins.predict_proba(ages[:, None])[:, 1], "C0", label="private bins")
right.plot(ages, straight.predict_proba(ages[:, None])[:, 1], "C1--", label="private line")
right.set(
    xlabel="age in years",
    ylabel="probability of a high income",
    ylim=(0, 0.8),
    title="Models, ε = 1 in total",
)
right.legend(frameon=False)
figure.tight_layout()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
