"""How the defaults do on many small tables: one line per table, and means over the tables.

Usage: SKDP_TABLES=folder python docs/benchmarks/many_tables.py [options] [table ...]

The folder holds ``tables.json`` (task, target and public bounds of each table), the tables as
``*.csv.gz``, and ``load.py``, which splits each table and declares its schema by a rule.
Scores are AUC (with accuracy and log loss) for classes and R² for numbers, on held-out rows: three
in ten of the training rows (`--rows train`, for choosing constants) or the test rows (the default,
for the figures in the docs). Delta is 1 / n² of the training rows or persons, add/remove.
Noise is drawn afresh in each fit; the last columns are the mean of a constant prediction.
"""

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPHistogramNB,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPRidge,
    DPTableVectorizer,
    PrivacyAccountant,
)
from skdp.pipeline import split_budget

MODELS = {
    ("default", "classes"): DPAdditiveClassifier,
    ("default", "number"): DPAdditiveRegressor,
    ("forest", "classes"): DPRandomForestClassifier,
    ("forest", "number"): DPRandomForestRegressor,
    ("naive Bayes", "classes"): DPHistogramNB,
    # Behind a `DPTableVectorizer`, in one budget.
    ("linear, bins", "classes"): DPLogisticRegression,
    ("linear, bins", "number"): DPRidge,
    ("linear, scaled", "classes"): DPLogisticRegression,
    ("linear, scaled", "number"): DPRidge,
}


def load(name, rows):
    """Return the table, with three in ten training rows (or persons) as its test rows if asked."""
    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from dataclasses import replace

    from load import load

    table = load(name)
    if rows == "test":
        return table
    rng = np.random.default_rng(1)
    units = np.arange(len(table.X_train)) if table.groups is None else table.groups.to_numpy()
    distinct = rng.permutation(np.unique(units))
    is_test = np.isin(units, distinct[: 3 * len(distinct) // 10])
    X, y = table.X_train, table.y_train
    return replace(
        table,
        X_train=X[~is_test],
        y_train=y[~is_test],
        X_test=X[is_test],
        y_test=y[is_test],
        groups=None if table.groups is None else table.groups[~is_test],
    )


def scores_of(table, model, epsilon, is_declared):
    """Return the scores of one fit: (AUC, accuracy, log loss) or (R²,)."""
    from load import declared

    n_units = len(table.X_train) if table.groups is None else table.groups.nunique()
    unit = "row" if table.groups is None else "person"
    everything = pd.concat([table.X_train, table.X_test])
    params = declared(everything) if is_declared else {}
    delta = 1.0 / n_units**2
    accountant = PrivacyAccountant(epsilon, delta, unit=unit)
    own = {"epsilon": epsilon, "delta": delta, "accountant": accountant}
    if table.task == "number":
        own["target_bounds"] = table.target_bounds
    groups = {} if table.groups is None else {"groups": table.groups.to_numpy()}
    if model.startswith("linear, "):
        front = DPTableVectorizer(numeric=model.removeprefix("linear, "), **params)
        steps = make_pipeline(front, MODELS[model, table.task](**own))
        estimator = split_budget(steps, epsilon, delta, accountant)
        groups = {
            f"{step}__{key}": ids for step in estimator.named_steps for key, ids in groups.items()
        }
    else:
        estimator = MODELS[model, table.task](**params, **own)
    estimator.fit(table.X_train, table.y_train, **groups)
    if table.task == "number":
        return (r2_score(table.y_test, estimator.predict(table.X_test)),)
    p = estimator.predict_proba(table.X_test)
    auc = (
        roc_auc_score(table.y_test, p[:, 1])
        if p.shape[1] == 2
        else roc_auc_score(table.y_test, p, multi_class="ovr")
    )
    guess = estimator.classes_[p.argmax(axis=1)]
    loss = log_loss(table.y_test, p, labels=estimator.classes_)
    return auc, accuracy_score(table.y_test, guess), loss


def constant_scores(table):
    """Return the scores of the training rows' class frequencies, or of their mean."""
    if table.task == "number":
        return (r2_score(table.y_test, np.full(len(table.y_test), table.y_train.mean())),)
    shares = table.y_train.value_counts(normalize=True).sort_index()
    p = np.tile(shares.to_numpy(), (len(table.y_test), 1))
    accuracy = float((table.y_test == shares.idxmax()).mean())
    return 0.5, accuracy, log_loss(table.y_test, p, labels=shares.index.to_list())


def run(job):
    """Return the mean scores of some fits to one table."""
    name, model, epsilon, n_fits, rows, is_declared = job
    warnings.simplefilter("ignore")
    table = load(name, rows)
    if (model, table.task) not in MODELS:
        return None
    fits = [scores_of(table, model, epsilon, is_declared) for _ in range(n_fits)]
    return table.task, np.mean(fits, axis=0), np.std(fits, axis=0), constant_scores(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--fits", type=int, default=8)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 4.0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--rows", choices=["train", "test"], default="test")
    parser.add_argument(
        "--undeclared", action="store_true", help="declare no bounds, no categories"
    )
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from load import TABLES

    jobs = [
        (name, model, epsilon, args.fits, args.rows, not args.undeclared)
        for name in args.tables or TABLES
        for model in args.models
        for epsilon in args.epsilons
    ]
    means = {}
    with ProcessPoolExecutor(args.workers) as pool:
        for job, outcome in zip(jobs, pool.map(run, jobs), strict=True):
            if outcome is None:
                continue
            name, model, epsilon, *_ = job
            task, mean, spread, constant = outcome
            if name != "medexp":  # its scores are far below the others' and would hide them
                means.setdefault((task, model, epsilon), []).append(mean)
            columns = zip(mean, spread, constant, strict=True)
            text = "  ".join(f"{m:7.3f} ± {s:.3f} ({c:6.3f})" for m, s, c in columns)
            print(f"{name:12} {model:12} {epsilon:6g}  {text}", flush=True)
    for (task, model, epsilon), rows in means.items():
        text = "  ".join(f"{fmean(column):.4f}" for column in zip(*rows, strict=True))
        print(f"mean of {len(rows)} {task:8} {model:12} {epsilon:6g}  {text}")


if __name__ == "__main__":
    main()
