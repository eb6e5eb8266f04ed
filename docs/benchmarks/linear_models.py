"""Accuracy of the other linear models at their defaults, beside models without privacy.

Usage: SKDP_DATA=folder python docs/benchmarks/linear_models.py [fits]

`DPLinearSVC` on Adult with the protocol of ``adult.py``, beside `DPLogisticRegression`;
`DPLinearRegression` and `DPRidge` on California housing, with public ranges of the columns and
of the target, and on two made tables of many features, beside ordinary least squares; half the
variance of the second one's targets is noise.
delta = 1e-6, add/remove, means of `fits` (20; of the wide tables a fifth).
The shares of AdaSSP's statistics and the norm that "gradient" expects were chosen with the
second table in view.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from skdp import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPRidge

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from example_table import make_encoder, read_adult

EPSILONS = (0.1, 0.5, 1.0, 4.0)
RANGES = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "median_income": (0, 15.1),
}
LOGARITHMS = {"total_rooms": 4e4, "total_bedrooms": 6500, "population": 36000, "households": 6100}
PLACES = ("<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN")


def read_california(folder):
    """Return rows within a ball of radius 3.5 and prices, from public ranges."""
    table = pd.read_csv(Path(folder) / "california_housing.csv.gz").dropna()
    columns = [2 * (table[c] - a) / (b - a) - 1 for c, (a, b) in RANGES.items()]
    columns += [2 * np.log1p(table[c]) / np.log1p(top) - 1 for c, top in LOGARITHMS.items()]
    columns += [2.0 * (table.ocean_proximity == place) - 1 for place in PLACES]
    return np.column_stack(columns), table.target.to_numpy(float)


def make_wide(n=40_000, d=400, noise=0.1):
    """Return rows of norm 1 and targets that are linear but for noise, most of them in [-1, 1]."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.normal(size=d)
    return X, X @ (0.3 * np.sqrt(d) * w / np.linalg.norm(w)) + noise * rng.normal(size=n)


def least_squares(words, X, y, common, fits):
    held_out = np.arange(len(X)) % 5 == 0
    train, test = (X[~held_out], y[~held_out]), (X[held_out], y[held_out])
    print(f"{words}, R² on every fifth row")
    for epsilon in EPSILONS:
        for mechanism in ("sufficient_statistics", "auto"):
            for cls in (DPLinearRegression, DPRidge):
                model = cls(epsilon, mechanism=mechanism, **common)
                scores = [model.fit(*train).score(*test) for _ in range(fits)]
                line(f"{cls.__name__}, {mechanism}, epsilon = {epsilon:g}", scores)
    print(f"  {'LinearRegression':<58} {LinearRegression().fit(*train).score(*test):.4f}")


def line(name, scores):
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    print(f"  {name:<58} {np.mean(scores):.4f} ± {error:.4f}")


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    folder = os.environ["SKDP_DATA"]
    X, y, X_test, y_test = read_adult(folder)
    encoder = make_encoder()
    X, X_test = encoder.fit_transform(X), encoder.transform(X_test)
    print("Adult, accuracy on the official split")
    for epsilon in EPSILONS:
        for model in (DPLinearSVC(epsilon), DPLogisticRegression(epsilon)):
            scores = [model.fit(X, y).score(X_test, y_test) for _ in range(fits)]
            line(f"{type(model).__name__}, epsilon = {epsilon:g}", scores)
    peer = LinearSVC(loss="hinge", C=10.0, max_iter=100_000).fit(X, y)
    print(f"  {'LinearSVC(loss=hinge), C = 10':<58} {peer.score(X_test, y_test):.4f}")

    bounds = {"data_norm": 3.5, "target_bounds": (0, 600_000)}
    least_squares("California housing", *read_california(folder), bounds, fits)
    wide = {"data_norm": 1.0, "target_bounds": (-1, 1)}
    fits = max(2, fits // 5)
    least_squares("40,000 rows of 400 features", *make_wide(), wide, fits)
    weak = make_wide(6250, 100, noise=0.3)
    least_squares("6250 rows of 100 features, half noise", *weak, wide, fits)


if __name__ == "__main__":
    main()
