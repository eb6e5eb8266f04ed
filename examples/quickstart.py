"""
Private logistic regression on census data, with every spend in a ledger
========================================================================

Run it as ``python examples/quickstart.py [folder with adult_train.csv.gz and adult_test.csv.gz]``.
Without a folder it looks in the one that the environment variable SKDP_DATA names, then asks
OpenML for Adult, then falls back to a table that scikit-learn brings along.
"""

import csv
import gzip
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import fetch_openml, load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from skdp import DPLogisticRegression, PrivacyAccountant

# What the census publishes about its own form: bounds and categories, never read off the data.
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

CELL_BOUNDS = {
    "radius": (5, 30),
    "texture": (5, 45),
    "perimeter": (40, 200),
    "area": (100, 2600),
    "smoothness": (0.05, 0.17),
    "compactness": (0, 0.4),
    "concavity": (0, 0.5),
    "concave points": (0, 0.25),
    "symmetry": (0.1, 0.35),
    "fractal dimension": (0.04, 0.1),
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


def fetch_adult():
    """Return Adult from OpenML, split like the census' own files."""
    data = fetch_openml("adult", version=2, as_frame=True, parser="liac-arff", n_retries=1)
    frame = data.data.rename(columns=lambda c: c.replace("-", "_")).rename(
        columns={"capitalgain": "capital_gain", "capitalloss": "capital_loss"}
    )
    table = frame[[*BOUNDS, *CATEGORIES]].astype(object).fillna("?").to_numpy()
    y = (data.target == ">50K").to_numpy().astype(int)
    return table[:32561], y[:32561], table[32561:], y[32561:]


def to_unit_range(X, bounds):
    """Scale numbers by their public bounds."""
    low, high = np.array(bounds, dtype=float).T
    return (np.clip(X.astype(float), low, high) - low) / (high - low)


to_unit_range.__skdp_kind__ = "stateless"  # each row by itself: `check_pipeline` cannot know


def make_scaler(bounds):
    return FunctionTransformer(to_unit_range, kw_args={"bounds": list(bounds.values())})


def make_encoder():
    """Return the public front of the pipeline: one-hot, min-max, rows of norm 1."""
    n_numbers = len(BOUNDS)
    columns = list(range(n_numbers + len(CATEGORIES)))
    categories = [np.array(names.split(), dtype=object) for names in CATEGORIES.values()]
    one_hot = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer(
        (make_scaler(BOUNDS), columns[:n_numbers]), (one_hot, columns[n_numbers:])
    )
    return make_pipeline(encoder, Normalizer())


def load():
    """Return the encoded training and test rows, and what was loaded."""
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SKDP_DATA")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, y, X_test, y_test = read_adult(folder) if folder else fetch_adult()
    except Exception as error:
        if folder:
            raise
        print(f"Adult is not at hand ({type(error).__name__}); taking breast cancer instead.")
        print("Its 426 training rows are few: at epsilon = 1 expect more noise than model.\n")
        X, y = load_breast_cancer(return_X_y=True)
        centre = FunctionTransformer(partial(np.add, -0.5))
        front = make_pipeline(make_scaler(CELL_BOUNDS), centre, Normalizer())
        return (*train_test_split(X[:, :10], y, random_state=0), front)
    return X, X_test, y, y_test, make_encoder()


def show(name, y, scores):
    accuracy = accuracy_score(y, scores > 0)
    print(f"{name:<28} accuracy {accuracy:.3f}   AUC {roc_auc_score(y, scores):.3f}")


def main():
    X, X_test, y, y_test, front = load()
    accountant = PrivacyAccountant(epsilon=4.0, delta=1e-5)
    classifier = DPLogisticRegression(epsilon=1.0, delta=1e-6, accountant=accountant)
    private = make_pipeline(front, classifier).fit(X, y)
    open_model = make_pipeline(front, LogisticRegression(max_iter=1000)).fit(X, y)

    show("without privacy", y_test, open_model.decision_function(X_test))
    show("private, epsilon = 1", y_test, private.decision_function(X_test))
    print("(majority class: accuracy", f"{max(y_test.mean(), 1 - y_test.mean()):.3f})\n")
    print(private[-1].privacy_, "\n")

    # Folds must depend on a row's index alone: stratified ones, the default of scikit-learn
    # for classifiers, follow the labels, and under them the ledger's sum is no guarantee.
    cross_val_score(private, X, y, cv=KFold(2, shuffle=True, random_state=0))
    print(accountant.report())


if __name__ == "__main__":
    main()
