"""
A private histogram and its error bars
======================================

The distribution of the noise in a count is public. So a histogram can have error bars that are
computed without reading the rows again. The error bars do not depend on the counts: they are the
same for an empty bin and a full one. With fewer and wider bins they are relatively smaller.
"""

import csv
import gzip
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import PrivacyAccountant
from skdp.datasets import make_customers
from skdp.stats import dp_histogram, expected_error

plt.style.use("tableau-colorblind10")


def load_ages():
    """Return the ages in Adult, or those of simulated people."""
    folder = os.environ.get("SKDP_DATA")
    if folder:
        with gzip.open(Path(folder) / "adult_train.csv.gz", "rt", newline="") as file:
            return np.array([float(row["age"]) for row in csv.DictReader(file)])
    return make_customers().data["age"].to_numpy()


ages, larger, smaller = load_ages(), 0.1, 0.01
print(f"{len(ages)} people")

# %%
# The error is known before anything is spent: `expected_error` is the mean distance from a
# released count to the true one. It is the same for every bin, however the bins are chosen.

for epsilon in (larger, smaller):
    print(
        f"epsilon {epsilon:<5g} error {expected_error('histogram', len(ages), epsilon):.1f} people"
    )

# %%
# Each histogram is one release, charged to one budget. The last two cost the same, but the bins of
# the last are five years wide.

accountant = PrivacyAccountant(epsilon=1.5 * larger, delta=0.0)
years, fives = np.arange(15, 96), np.arange(15, 96, 5)
choices = [(larger, years), (smaller, years), (smaller, fives)]
released = [
    dp_histogram(ages, epsilon, bins=edges, accountant=accountant)[0] for epsilon, edges in choices
]
print(f"spent {accountant.epsilon_spent:g} of {accountant.epsilon:g}")

# %%
# **Result:** the area is the release, the bars are the expected error, and the dots are the true
# counts, which are not released. At the larger ε the error is small compared with most counts. At
# the smaller ε it is as large as many of them, and some released counts are negative. Bins that are
# five times as wide contain five times as many people and have the same error, so the shape is
# clear.

figure, panels = plt.subplots(1, 3, figsize=(7.5, 3.6), sharey=True, layout="constrained")
for ax, (epsilon, edges), counts in zip(panels, choices, released, strict=True):
    width = edges[1] - edges[0]
    error = expected_error("histogram", len(ages), epsilon)
    middles = (edges[:-1] + edges[1:]) / 2
    truth, _ = np.histogram(ages, edges)
    ax.stairs(counts / width, edges, fill=True, color="C4", alpha=0.6, label="released")
    ax.errorbar(
        middles,
        counts / width,
        error / width,
        fmt="none",
        ecolor="k",
        elinewidth=0.8,
        label="± expected error",
    )
    ax.plot(middles, truth / width, "o", color="C1", markersize=2.5, label="true (private)")
    ax.axhline(0, color="k", linewidth=0.8)
    unit = "1 year" if width == 1 else f"{width} years"
    ax.set(title=f"ε = {epsilon:g}, bins of {unit}", xlabel="age in years")
panels[0].set_ylabel("people per year of age")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
