"""Private bins, then a private model, in one budget; and the best published peer for tables.

Usage: SKDP_DATA=folder python docs/benchmarks/private_bins.py [fits] [table ...]

Raw tables: numbers as they are, categories as strings; bounds and categories are those of the
published descriptions (``_tables.py``), Adult by its official split, the others by a fixed one.
Everything is learned privately in one total budget, epsilon = 1 and delta = 1e-5 under add/remove.
Bins get BINS_EPSILON of it and no delta, the model the rest; a ledger with that limit pays both,
which is checked. All else is at its default. Means of `fits` (10) fits with standard errors, and
the median processor time of a fit; set OPENBLAS_NUM_THREADS=1 for it.

The peer is DP-EBM of interpret-core (Nori et al., "Accuracy, Interpretability, and Differential
Privacy via Explainable Boosting", ICML 2021), at its default number of rounds and at 3000 (3
fits), with the same public bounds. It runs where it can be imported, best in an environment of
its own::

    python -m venv peers && peers/bin/pip install interpret-core pandas scikit-learn scipy
    SKDP_DATA=folder PYTHONPATH=. peers/bin/python docs/benchmarks/private_bins.py 10

Its own composition ("gdp") and its bins' share (0.1) are left as they are. It has no declared
categories: it reads them off the data.
"""

import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from _tables import SCHEMAS, split_rows
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPHistogramTransformer, DPLogisticRegression, PrivacyAccountant

EPSILON, DELTA = 1.0, 1e-5
# The bins only have to be roughly even. The tenth was chosen with Adult in view.
BINS_EPSILON = 0.1
# Fits of the peer's slow setting.
FEW = 3


def raw_table(rows, schema):
    """Return the columns of a schema, an object array of numbers and strings, and the label."""
    bounds, categories = schema
    X = np.empty((len(rows), len(bounds) + len(categories)), dtype=object)
    for j, name in enumerate([*bounds, *categories]):
        values = [row[name] for row in rows]
        # An empty field counts as the lower bound, as in the other benchmarks.
        numbers = name in bounds
        X[:, j] = [float(v or bounds[name][0]) for v in values] if numbers else values
    return X, np.array([int(row["target"]) for row in rows])


def public_schema(schema):
    """Return bounds and categories by the columns' positions."""
    bounds, categories = schema
    lists = {len(bounds) + j: text.split() for j, text in enumerate(categories.values())}
    return dict(enumerate(bounds.values())), lists


def private_pipeline(schema, accountant=None):
    bounds, categories = public_schema(schema)
    return make_pipeline(
        DPHistogramTransformer(
            BINS_EPSILON, bounds=bounds, categories=categories, accountant=accountant
        ),
        DPLogisticRegression(EPSILON - BINS_EPSILON, delta=DELTA, accountant=accountant),
    )


def public_pipeline(schema):
    """Bins with next to no noise, and a model without any."""
    bounds, categories = public_schema(schema)
    return make_pipeline(
        DPHistogramTransformer(1e6, bounds=bounds, categories=categories),
        LogisticRegression(C=100.0, max_iter=5000),
    )


def declared_pipeline(schema):
    """The same with public bins of equal width, so that the model gets all of the budget."""
    bounds, categories = public_schema(schema)
    bins = DPHistogramTransformer(1e6, edges="uniform", bounds=bounds, categories=categories)
    return make_pipeline(bins, DPLogisticRegression(EPSILON, delta=DELTA))


def boosting(schema, **params):
    from interpret.privacy import DPExplainableBoostingClassifier

    bounds, categories = public_schema(schema)
    kinds = ["continuous"] * len(bounds) + ["nominal"] * len(categories)
    return DPExplainableBoostingClassifier(
        feature_types=kinds, epsilon=EPSILON, delta=DELTA, privacy_bounds=bounds, n_jobs=1, **params
    )


def measure(name, make, tables, fits):
    X, y, X_test, y_test = tables
    results = []
    for _ in range(fits):
        start = time.process_time()
        model = make().fit(X, y)
        seconds = time.process_time() - start
        scores = model.predict_proba(X_test)[:, 1]
        results.append((np.mean((scores > 0.5) == y_test), roc_auc_score(y_test, scores), seconds))
    results = np.array(results)
    mean, error = results.mean(axis=0), results.std(axis=0, ddof=1) / np.sqrt(fits)
    print(
        f"  {name:<40} {mean[0]:.4f} ± {error[0]:.4f}   {mean[1]:.4f} ± {error[1]:.4f}   "
        f"{np.median(results[:, 2]):7.2f} s",
        flush=True,
    )


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for table in sys.argv[2:] or SCHEMAS:
        schema = SCHEMAS[table]
        train, test = (raw_table(rows, schema) for rows in split_rows(table))
        tables = (*train, *test)
        print(
            f"{table}: {len(train[1])} rows, {train[0].shape[1]} columns, {len(test[1])} to test on"
        )
        print(f"{'':43}accuracy (± s.e.)   AUC (± s.e.)    fit (processor)")
        print(f"  {'majority class':<40} {1 - test[1].mean():.4f}            0.5000")
        accountant = PrivacyAccountant(EPSILON, DELTA, dataset=table)
        private_pipeline(schema, accountant).fit(*train)
        spent = accountant.epsilon_spent
        makers = {
            f"private bins and model, ε = {spent:.4g}": partial(private_pipeline, schema),
            "equal public bins, private model": partial(declared_pipeline, schema),
            "without privacy": partial(public_pipeline, schema),
        }
        if find_spec("interpret") is None:
            print("  interpret-core is not installed")
        else:
            makers["DP-EBM, its defaults"] = partial(boosting, schema)
            makers["DP-EBM, 3000 rounds"] = partial(boosting, schema, max_rounds=3000)
        for name, make in makers.items():
            measure(name, make, tables, min(fits, FEW) if "3000" in name else fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
