"""Tables for the benchmarks, encoded with public bounds and categories; rows have norm 1.

The files are described in the folder that SKDP_DATA names: ``adult_train.csv.gz``,
``adult_test.csv.gz``, ``bank_marketing.csv.gz`` and ``credit_default.csv.gz``, gzipped CSV with
a header row and the label in the column ``target``. Bounds and categories are those of the
published descriptions of the data sets, rounded; values outside a bound are clipped, categories
outside a list are encoded as zeros.
"""

import csv
import gzip
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from example_table import BOUNDS as ADULT_BOUNDS
from example_table import CATEGORIES as ADULT_CATEGORIES

# `duration` is left out: it is known only after the call whose outcome is to be predicted.
BANK_BOUNDS = {
    "age": (17, 90),
    "campaign": (1, 20),
    "pdays": (0, 30),
    "previous": (0, 5),
    "emp_var_rate": (-4, 2),
    "cons_price_idx": (92, 95),
    "cons_conf_idx": (-51, -26),
    "euribor3m": (0, 6),
    "nr_employed": (4900, 5300),
}
BANK_CATEGORIES = {
    "job": "admin. blue-collar entrepreneur housemaid management retired self-employed services "
    "student technician unemployed unknown",
    "marital": "divorced married single unknown",
    "education": "basic.4y basic.6y basic.9y high.school illiterate professional.course "
    "university.degree unknown",
    "default": "no unknown yes",
    "housing": "no unknown yes",
    "loan": "no unknown yes",
    "contact": "cellular telephone",
    "month": "mar apr may jun jul aug sep oct nov dec",
    "day_of_week": "mon tue wed thu fri",
    "poutcome": "failure nonexistent success",
}
CREDIT_BOUNDS = {"limit_bal": (10_000, 800_000), "age": (20, 80)}
CREDIT_BOUNDS |= {f"bill_amt{i}": (0, 500_000) for i in range(1, 7)}
CREDIT_BOUNDS |= {f"pay_amt{i}": (0, 100_000) for i in range(1, 7)}
CREDIT_CATEGORIES = {"sex": "1 2", "education": "0 1 2 3 4 5 6", "marriage": "0 1 2 3"}
CREDIT_CATEGORIES |= {f"pay_{i}": "-2 -1 0 1 2 3 4 5 6 7 8" for i in (0, 2, 3, 4, 5, 6)}

SCHEMAS = {
    "adult": (ADULT_BOUNDS, ADULT_CATEGORIES),
    "bank_marketing": (BANK_BOUNDS, BANK_CATEGORIES),
    "credit_default": (CREDIT_BOUNDS, CREDIT_CATEGORIES),
}


def read_rows(name):
    """Return the rows of a gzipped CSV file, each a dict of strings."""
    with gzip.open(Path(os.environ["SKDP_DATA"]) / f"{name}.csv.gz", "rt", newline="") as file:
        return list(csv.DictReader(file))


def one_hot(values, categories):
    return (np.array(values)[:, None] == np.array(categories)[None, :]).astype(float)


def unit_range(rows, name, bounds):
    low, high = bounds
    values = np.array([float(row[name] or low) for row in rows])
    return (np.clip(values, low, high) - low) / (high - low)


def binned(values, name):
    """One-hot public bins of a number in [0, 1]: 20 equal ones, finer near 0 for money."""
    edges = np.linspace(0.0, 1.0, 21)[1:-1]
    if name in MONEY:
        edges = np.array([1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 100, 150, 250, 500, 990]) / 1000
    return one_hot(np.searchsorted(edges, values), np.arange(len(edges) + 1))


MONEY = {"capital_gain", "capital_loss"}


def encode(rows, schema, bins=False):
    """Return one-hot categories and min-max (or binned) numbers, every row of norm 1."""
    bounds, categories = schema
    parts = []
    for name, limits in bounds.items():
        values = unit_range(rows, name, limits)
        parts.append(binned(values, name) if bins else values[:, None])
    for name, values in categories.items():
        parts.append(one_hot([row[name] for row in rows], values.split()))
    X = np.hstack(parts)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def split_rows(name):
    """Return the rows to train and to test on; Adult's official split, of others a fixed one."""
    if name == "adult":
        return read_rows("adult_train"), read_rows("adult_test")
    rows = read_rows(name)
    order = np.random.default_rng(0).permutation(len(rows))
    cut = 3 * len(rows) // 4
    return tuple([rows[i] for i in part] for part in (order[:cut], order[cut:]))


def load(name, bins=False):
    """Return X, y, X_test, y_test; Adult by its official split, others by a fixed one."""
    tables = []
    for part in split_rows(name):
        tables += [encode(part, SCHEMAS[name], bins), np.array([int(r["target"]) for r in part])]
    return tables
