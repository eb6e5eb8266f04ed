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
import pandas as pd

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


# Rows to train and to test on of the simulated tables.
N_SIMULATED = (17_000, 8_000)


def simulated(name):
    """Return a simulated table: X, y, bounds of the columns and of the target (None of classes).

    - hours: counts; the hour acts otherwise at weekends. Four columns, and six of noise.
    - product: a product of two columns, one of three, and one that acts alone. Ten columns.
    - friedman1: scikit-learn's function with noise of standard deviation 1. Ten columns.
    - crossed: classes by the sign of a product, where a third column is large. Eight columns.
    - additive: four columns that act alone, and eight of noise.
    """
    rng = np.random.default_rng(5)
    n = sum(N_SIMULATED)
    return _SIMULATED[name](rng, n)


def _uniform(rng, n, n_columns, low=-1.0):
    return pd.DataFrame({f"x{j}": rng.uniform(low, 1.0, n) for j in range(n_columns)})


def _hours(rng, n):
    hour, day = rng.integers(0, 24, n), rng.integers(0, 7, n)
    warm = rng.uniform(-5, 35, n)
    rng.integers(0, 4, n)
    work = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    free = 0.8 * np.exp(-((hour - 14) ** 2) / 25)
    rate = 400 * (0.1 + np.where(day < 5, work, free)) * (0.4 + np.clip(warm, 0, 28) / 28)
    columns = {"hour": hour, "day": day, "warm": warm, "noise": rng.uniform(0, 100, n)}
    columns |= {f"z{j}": rng.uniform(0, 1, n) for j in range(6)}
    bounds = {"hour": (0, 24), "day": (0, 7), "warm": (-5, 35), "noise": (0, 100)}
    bounds |= {f"z{j}": (0, 1) for j in range(6)}
    X = pd.DataFrame(columns).astype(float)
    return X, rng.poisson(rate).astype(float), bounds, (0, 1000)


def _product(rng, n):
    X = _uniform(rng, n, 10)
    y = 2 * X.x0 * X.x1 + 1.5 * X.x2 * (X.x3 > 0) * np.sign(X.x4) + X.x5
    y = y + rng.normal(0, 0.5, n)
    return X, y.to_numpy(), dict.fromkeys(X, (-1, 1)), (-5, 5)


def _friedman1(rng, n):
    X = _uniform(rng, n, 10, low=0.0)
    y = 10 * np.sin(np.pi * X.x0 * X.x1) + 20 * (X.x2 - 0.5) ** 2 + 10 * X.x3 + 5 * X.x4
    y = y + rng.normal(0, 1, n)
    return X, y.to_numpy(), dict.fromkeys(X, (0, 1)), (0, 30)


def _crossed(rng, n):
    X = _uniform(rng, n, 8)
    p = 1 / (1 + np.exp(-(3 * np.sign(X.x0 * X.x1) * (X.x2 > -0.5) + X.x3)))
    return X, (rng.uniform(size=n) < p).astype(int).to_numpy(), dict.fromkeys(X, (-1, 1)), None


def _additive(rng, n):
    X = _uniform(rng, n, 12)
    y = np.sin(3 * X.x0) + np.abs(X.x1) * 2 + X.x2 + 0.5 * X.x3 + rng.normal(0, 1, n)
    return X, y.to_numpy(), dict.fromkeys(X, (-1, 1)), (-6, 8)


_SIMULATED = {
    "hours": _hours,
    "product": _product,
    "friedman1": _friedman1,
    "crossed": _crossed,
    "additive": _additive,
}
