"""
A private search on a cluster
=============================

`DPGridSearchCV` fits its candidates through joblib, so that they run on whatever joblib runs on:
here on two workers of a dask cluster, which are processes of their own. With workers on other hosts
nothing changes but the cluster's address. Without dask two processes of joblib do the same.

The search is one release with one price. It is charged once, before any candidate is sent away;
workers hold no budget and cannot overspend one.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from joblib import parallel_config
from tables import load_table

from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant

try:
    from dask.distributed import Client, SubprocessCluster
except ImportError:
    SubprocessCluster = None

plt.style.use("tableau-colorblind10")
X, y, _, _ = load_table()

# %%
# What is searched
# ----------------
#
# Five strengths of regularisation, each fitted three times to two of three folds: with the last
# fit, to all rows, these are 16 fits for an epsilon of 2 in all. Folds depend on row numbers alone.

strengths = np.geomspace(1e-4, 1, 5)
accountant = PrivacyAccountant(epsilon=4.0, delta=2e-5)


def timed_search(n_jobs):
    """Return a fitted search and its seconds."""
    search = DPGridSearchCV(
        DPLogisticRegression(mechanism="gradient"),
        {"C": strengths},
        epsilon=2.0,
        delta=1e-5,
        strategy="cv",
        cv=3,
        n_jobs=n_jobs,
        accountant=accountant,
    )
    start = time.perf_counter()
    return search.fit(X, y), time.perf_counter() - start


# %%
# In this process, and on two workers
# -----------------------------------

search, alone = timed_search(n_jobs=1)
if SubprocessCluster is None:
    print("dask.distributed is not installed: taking two processes of joblib.")
    where = "joblib, 2 processes"
    search, together = timed_search(n_jobs=2)
else:
    where = "dask, 2 workers"
    with SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1}) as cluster:
        with Client(cluster), parallel_config(backend="dask"):
            search, together = timed_search(n_jobs=2)
print(accountant.report())
print(f"chosen: C = {search.best_params_['C']:.2g}")

# %%
# **What to see:** on the left, the score that was released for each candidate, with the standard
# deviation of its noise (smaller than the dots where rows are many); the choice has noise of its
# own, so that the best may be narrowly missed. On the right, how long the same search took: rows
# must be sent and workers started, which pays for fits that take longer than these.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7.5, 3.6), width_ratios=(3, 2), layout="constrained"
)
scores = search.cv_results_["mean_test_score"]
noise = search.cv_results_["noise_std_test_score"]
best = search.best_index_
left.errorbar(strengths, scores, noise, fmt="o", color="C0", capsize=3, label="candidates")
left.plot(strengths[best], scores[best], "D", color="C1", markersize=9, label="chosen")
left.set(xscale="log", xlabel="C", ylabel="noisy accuracy", title="Released scores")
left.legend()
bars = right.bar(["1 process", where.replace(", ", "\n")], [alone, together], color=["C2", "C0"])
right.bar_label(bars, fmt="%.1f s")
right.margins(y=0.15)
right.set(ylabel="seconds", title="Time of the search")
plt.show()
