"""
A private search on a cluster
=============================

`DPGridSearchCV` fits its candidates through joblib, so that they run on whatever joblib runs on:
here on two workers of a dask cluster, which are processes of their own. With workers on other hosts
nothing changes but the cluster's address. Without dask two processes of joblib do the same.

The search is one release with one price. It is charged once, before any candidate is sent away;
workers hold no budget and cannot overspend one.
"""

import matplotlib.pyplot as plt
import numpy as np
from example_table import load_table
from joblib import parallel_config

from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant

try:
    from dask.distributed import Client, SubprocessCluster, get_task_stream
except ImportError:
    Client = None

plt.style.use("tableau-colorblind10")
X, y, _, _ = load_table()

# %%
# What is searched
# ----------------
#
# Each of five strengths of regularization is fitted three times, to two of three folds. With the
# last fit, to all rows, these are 16 fits for a total epsilon of 2. Folds depend on row numbers.

strengths = np.geomspace(1e-4, 1, 5)
accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
search = DPGridSearchCV(
    DPLogisticRegression(mechanism="gradient"),
    {"C": strengths},
    epsilon=2.0,
    delta=1e-5,
    strategy="cv",
    cv=3,
    n_jobs=2,
    accountant=accountant,
)

# %%
# On two workers
# --------------
#
# joblib asks dask for the number of workers, so all workers should be ready before. The stream of
# tasks says which worker was busy at which time.

if Client is None:
    print("dask.distributed is not installed: taking two processes of joblib, which keep no time.")
    tasks = []
    search.fit(X, y)
else:
    with SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1}) as cluster:
        with Client(cluster) as client:
            client.wait_for_workers(2)
            with get_task_stream(client) as stream, parallel_config(backend="dask"):
                search.fit(X, y)
    tasks = [
        (task["worker"], phase["start"], phase["stop"])
        for task in stream.data
        for phase in task["startstops"]
        if phase["action"] == "compute"
    ]
print(accountant.report())
print(f"chosen: C = {search.best_params_['C']:.2g}")

# %%
# **What to see:** above, the score that was released for each candidate, with the standard
# deviation of its noise (smaller than the dots if there are many rows). The choice has noise of its
# own, so it may miss the best candidate narrowly. Below, each block is a fit on one of the workers.
# A worker takes the next fit as soon as it is free. The last fit, to all rows, runs locally.

workers = sorted({worker for worker, _, _ in tasks})
heights = (4, len(workers)) if workers else (1,)
figure, axes = plt.subplots(
    len(heights), 1, figsize=(6.4, 4.8), height_ratios=heights, squeeze=False, layout="constrained"
)
scores = search.cv_results_["mean_test_score"]
noise = search.cv_results_["noise_std_test_score"]
best, top = search.best_index_, axes[0, 0]
top.errorbar(strengths, scores, noise, fmt="o", color="C0", capsize=3, label="candidates")
top.plot(strengths[best], scores[best], "D", color="C1", markersize=9, label="chosen")
top.set(
    xscale="log",
    xlabel="C (inverse strength of regularization)",
    ylabel="noisy accuracy",
    title="One release, ε = 2",
)
top.legend()
if workers:
    bottom, begin = axes[1, 0], min(start for _, start, _ in tasks)
    for worker, start, stop in tasks:
        row = workers.index(worker)
        bottom.barh(row, stop - start, left=start - begin, color="C4", edgecolor="white")
    bottom.set_yticks(range(len(workers)), [f"worker {i + 1}" for i in range(len(workers))])
    bottom.set(xlabel="seconds since the first fit began", title=f"{len(tasks)} fits")
plt.show()
