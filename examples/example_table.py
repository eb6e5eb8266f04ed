"""
The table that several examples use
===================================

It contains the simulated customers of `skdp.datasets`. If the environment variable ``SKDP_DATA``
names a folder with ``adult_train.csv.gz`` and ``adult_test.csv.gz``, it is Adult, a table from the
US census.
"""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from skdp import DPTableVectorizer
from skdp.datasets import make_customers

# The bounds and categories come from the published census form, not from the data.
BOUNDS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99999),
    "capital_loss": (0, 4356),
    "hours_per_week": (1, 99),
}
CATEGORIES = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc "
    "State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors "
    "Doctorate HS-grad Masters Preschool Prof-school Some-college",
    "marital_status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
    "Never-married Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
    "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty "
    "Protective-serv Sales Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native_country": "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador "
    "El-Salvador England France Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong "
    "Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico Nicaragua "
    "Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South "
    "Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}


def read_adult(folder):
    """Return numbers, categories and labels of Adult's training and test rows."""
    parts = []
    for name in ("adult_train.csv.gz", "adult_test.csv.gz"):
        with gzip.open(Path(folder) / name, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        table = np.array([[row[c] for c in (*BOUNDS, *CATEGORIES)] for row in rows], dtype=object)
        parts += [table, np.array([int(row["target"]) for row in rows])]
    return parts


def to_unit_range(X, bounds):
    """Scale numbers by their public bounds."""
    low, high = np.array(bounds, dtype=float).T
    return (np.clip(X.astype(float), low, high) - low) / (high - low)


to_unit_range.__skdp_kind__ = "stateless"  # row-wise, which `check_pipeline` cannot verify


def make_encoder():
    """Return the public preprocessor: one-hot encoding, min-max scaling, rows of norm 1."""
    n_numbers = len(BOUNDS)
    columns = list(range(n_numbers + len(CATEGORIES)))
    categories = [np.array(names.split(), dtype=object) for names in CATEGORIES.values()]
    scaler = FunctionTransformer(to_unit_range, kw_args={"bounds": list(BOUNDS.values())})
    one_hot = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((scaler, columns[:n_numbers]), (one_hot, columns[n_numbers:]))
    return make_pipeline(encoder, Normalizer())


def load_table():
    """Return X, y, X_test, y_test, encoded from public facts, with rows of norm at most 1."""
    folder = os.environ.get("SKDP_DATA")
    # Bounds and categories are those of the census form, so nothing is learned.
    if folder:
        table, y, table_test, y_test = read_adult(folder)
        encoder = make_encoder().fit(table)
        X, X_test = encoder.transform(table), encoder.transform(table_test)
        print(f"Adult: {len(y)} rows to train on, income above $50,000 or not")
    else:
        people = make_customers()
        encoder = DPTableVectorizer(numeric="scaled", **people.schema)
        X = encoder.fit_transform(people.data).toarray()
        X, X_test, y, y_test = train_test_split(X, people.target, random_state=0)
        print(f"Simulated customers: {len(y)} rows to train on, contract renewed or not")
    return X, y, X_test, y_test


if __name__ == "__main__":
    X, y, X_test, y_test = load_table()
    print(f"{X.shape[1]} columns, {len(y_test)} rows to test on")
    print(f"fraction of the larger class: {np.bincount(y_test).max() / len(y_test):.3f}")
