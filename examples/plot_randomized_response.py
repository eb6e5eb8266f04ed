"""
Randomized response: frequencies from noisy answers
===================================================

Each person answers truthfully with some probability and otherwise at random, before the answer is
sent. So no one can tell whether a single answer is true, not even the party that collects the
answers. The frequencies of all answers can be estimated, because the probability is public.
"""

import csv
import gzip
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import RandomizedResponseTransformer
from skdp.datasets import make_customers

plt.style.use("tableau-colorblind10")

MARITAL_STATUS = [
    "Married-civ-spouse",
    "Never-married",
    "Divorced",
    "Separated",
    "Widowed",
    "Married-spouse-absent",
    "Married-AF-spouse",
]


def load_answers():
    """Return one column of answers, and the list of possible answers."""
    folder = os.environ.get("SKDP_DATA")
    if folder:
        with gzip.open(Path(folder) / "adult_train.csv.gz", "rt", newline="") as file:
            answers = [row["marital_status"] for row in csv.DictReader(file)]
        return np.array(answers)[:, None], MARITAL_STATUS
    people = make_customers()
    return people.data[["region"]].to_numpy(dtype=object), people.schema["categories"]["region"]


answers, categories = load_answers()
k = len(categories)

# %%
# Reports
# -------
#
# With k answers a report is true with probability e^ε / (k - 1 + e^ε). No one can tell which of the
# reports are true.

epsilon = 1.0
response = RandomizedResponseTransformer(epsilon, categories=categories).fit(answers)
reports = response.transform(answers)
truthful = np.exp(epsilon) / (k - 1 + np.exp(epsilon))
print(f"{len(answers)} rows, each answer is true with probability {truthful:.2f}")
print("the first five reports:", ", ".join(reports[:5, 0]))

# %%
# Frequencies
# -----------
#
# The frequencies of the reports are biased towards equal frequencies. Solving for the true
# frequencies removes the bias, but makes the intervals wider. The estimate for a rare answer can be
# negative.

(estimate,) = response.estimate_frequencies(reports)
(interval,) = response.confidence_intervals(reports)
raw = np.array([np.mean(reports == category) for category in categories])
truth = np.array([np.mean(answers == category) for category in categories])

# %%
# **Result:** in the reports (gray) all answers are about equally common; the estimates (blue, with
# 95 % intervals) are near the true frequencies (orange).

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
rows = np.arange(k)
ax.barh(rows, 100 * raw, color="0.85", label="raw reports")
ax.errorbar(
    100 * estimate,
    rows,
    xerr=100 * np.abs(interval.T - estimate),
    fmt="o",
    color="C0",
    capsize=3,
    label="estimate, 95 % interval",
)
ax.plot(
    100 * truth, rows, "d", color="C1", markersize=8, alpha=0.8, label="truth (never collected)"
)
ax.axvline(0, color="k", linewidth=0.8)
ax.set_yticks(rows, categories)
ax.invert_yaxis()
ax.set(xlabel="fraction of all rows, %", title=f"Randomized response, ε = {epsilon:g}")
ax.legend()
plt.show()
