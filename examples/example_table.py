"""
The rows that several examples learn from
=========================================

Adult, a table of the census of the United States, if the environment variable ``SKDP_DATA`` names
a folder with ``adult_train.csv.gz`` and ``adult_test.csv.gz``. Otherwise the handwritten digits
that scikit-learn brings along: whether a digit is odd. That table has 1347 rows for training
instead of 32561, so that the same epsilon costs more accuracy.
"""

import os

import numpy as np
from quickstart import make_encoder, read_adult
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize


def load_table():
    """Return X, y, X_test, y_test with rows of norm 1, encoded by what is public."""
    folder = os.environ.get("SKDP_DATA")
    if folder:
        table, y, table_test, y_test = read_adult(folder)
        # Bounds and categories are those of the form that people filled in: nothing is learnt.
        encoder = make_encoder().fit(table)
        X, X_test = encoder.transform(table), encoder.transform(table_test)
        print(f"Adult: {len(y)} rows to train on, income above 50 000 dollars or not")
    else:
        X, digit = load_digits(return_X_y=True)
        rows = train_test_split(normalize(X), digit % 2, random_state=0)
        X, X_test, y, y_test = rows
        print("SKDP_DATA is not set: taking the digits of scikit-learn, odd or even.")
        print(f"{len(y)} rows to train on are few: expect more noise than on Adult.")
    return X, y, X_test, y_test


if __name__ == "__main__":
    X, y, X_test, y_test = load_table()
    print(f"{X.shape[1]} columns, {len(y_test)} rows to test on")
    print(f"share of the larger class: {np.bincount(y_test).max() / len(y_test):.3f}")
