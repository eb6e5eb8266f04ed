"""
A private search on a cluster
=============================

`DPGridSearchCV` fits its candidates through joblib, so they run on any joblib backend: here on two
workers of a dask cluster, which are separate processes. With workers on other hosts, only the
cluster's address changes. Without dask, two joblib processes do the same.

The search is one release with one price. It is charged once, before any candidate is sent to a
worker; workers have no budget and cannot overspend one.
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
# The candidates
# --------------
#
# Each of five regularization strengths is fitted three times, to two of three folds. With the final
# fit to all rows, these are 16 fits for a total epsilon of 2. Folds depend only on row numbers.

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
# joblib asks dask for the number of workers, so wait until all workers are ready. The task stream
# records which worker was busy at which time.

if Client is None:
    print("dask.distributed is not installed: using two processes of joblib, without times.")
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
# **Result:** the upper figure shows the score that was released for each candidate, with the
# standard deviation of its noise (smaller than the dots if there are many rows). The noise of the
# choice is separate, so it may narrowly miss the best candidate. In the lower figure, each block is
# a fit on one of the workers. A worker starts the next fit as soon as it is free. The final fit
# runs locally.

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
    xlabel="C (inverse regularization strength)",
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
