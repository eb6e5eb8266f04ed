"""Regressors at their defaults: least squares and counts, small tables and large, δ = 0 and not.

Usage: SKDP_DATA=folder python docs/benchmarks/regression.py [draws] [paired draws]

Prints the tables of ``docs/theory/linear_models.md``: R² on rows that were held out, means of
`draws` (10) fits to rows drawn anew, for `DPRidge`, `DPLinearRegression` and `DPSGDRegressor`, the
paired difference between the first and the last over `paired draws` (40) and its standard error; R²
on made tables; and the explained deviance of `DPPoissonRegressor`. Means and, after ±, their
standard errors.
"""

import sys
import warnings

import numpy as np
from _tables import one_hot, read_rows, unit_range
from scipy.sparse import csr_array
from sklearn.datasets import make_regression
from sklearn.linear_model import PoissonRegressor, Ridge

from skdp import DPLinearRegression, DPPoissonRegressor, DPRidge, DPSGDRegressor
from skdp.exceptions import SeededNoiseWarning

EPSILONS = (0.1, 0.5, 1.0, 4.0)
HOUSING = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "total_rooms": (0, 10_000),
    "total_bedrooms": (0, 2000),
    "population": (0, 5000),
    "households": (0, 2000),
    "median_income": (0, 15),
}
PLACES = ("<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN")


def housing():
    """Return rows of norm at most 3, from public bounds and categories, and prices."""
    rows = read_rows("california_housing")
    columns = [2.0 * unit_range(rows, name, bounds) - 1.0 for name, bounds in HOUSING.items()]
    places = one_hot([row["ocean_proximity"] for row in rows], PLACES)
    return np.column_stack([*columns, places]), np.array([float(row["target"]) for row in rows])


def many_columns():
    """Return rows and targets of 100 columns, scaled by their ranges, which are taken as public."""
    X, y = make_regression(3400, 100, n_informative=10, noise=122.0, random_state=1)
    return X / np.abs(X).max(axis=0), y, (float(np.floor(y.min())), float(np.ceil(y.max())))


def binned_columns():
    """Return 3,000 one-hot columns, of 30 binned numbers, and targets in [0, 1]."""
    rng = np.random.default_rng(3)
    values = rng.uniform(size=(7000, 30))
    X = np.zeros((7000, 3000))
    for column in range(30):
        X[np.arange(7000), 100 * column + (100 * values[:, column]).astype(int)] = 1.0
    y = 0.5 + 0.25 * np.sin(6 * values[:, 0]) + 0.2 * (values[:, 1] - 0.5)
    return csr_array(X), np.clip(y + 0.1 * rng.normal(size=7000), 0.0, 1.0)


def counts():
    """Return the rows and counts of the benchmark's table of rates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (12_000, 50))
    y = rng.poisson(np.exp(1 + X[:, :8] @ (0.5 * rng.normal(size=8))))
    return X, np.minimum(y, 60)


def score(model, X, y, train, test):
    return model.fit(X[train], y[train]).score(X[test], y[test])


def line(name, scores):
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    print(f"  {name:<48} {np.mean(scores):7.3f} ± {error:.3f}", flush=True)


def on_housing(draws, paired):
    X, y = housing()
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:14_447], rows[14_447:]
    print(f"California housing, Ridge {score(Ridge(), X, y, train, test):.3f}")
    bounds = {"target_bounds": (0, 500_001)}
    models = {"DPRidge": DPRidge, "DPLinearRegression": DPLinearRegression}
    for n in (500, 2000, 14_447):
        for epsilon in EPSILONS:
            own, other = [], []
            for draw in range(paired):
                part = np.random.default_rng(draw).choice(train, n, replace=False)
                common = {"epsilon": epsilon, "delta": 1e-5, "random_state": draw, **bounds}
                own.append(score(DPRidge(data_norm=3.0, **common), X, y, part, test))
                other.append(score(DPSGDRegressor(**common), X, y, part, test))
            where = f"n = {n}, epsilon = {epsilon:g}"
            line(f"{where}, DPRidge", own[:draws])
            line(f"{where}, DPSGDRegressor", other[:draws])
            line(f"{where}, difference, {paired} draws", np.subtract(own, other))
    for name, model in models.items():
        for delta in (0.0, 1e-5):
            common = {"data_norm": 3.0, "delta": delta, **bounds}
            fits = [model(random_state=draw, **common) for draw in range(draws)]
            line(
                f"all rows, epsilon = 1, delta = {delta:g}, {name}",
                [score(fit, X, y, train, test) for fit in fits],
            )


def on_made_tables(draws):
    X, y, bounds = many_columns()
    train, test = np.arange(1400), np.arange(1400, len(X))
    print(f"make_regression, 1,400 x 100, Ridge {score(Ridge(), X, y, train, test):.3f}")
    for epsilon in EPSILONS:
        common = {"epsilon": epsilon, "delta": 1e-5, "data_norm": 10.0, "target_bounds": bounds}
        fits = [DPRidge(random_state=draw, **common) for draw in range(draws)]
        line(f"epsilon = {epsilon:g}", [score(fit, X, y, train, test) for fit in fits])
    X, y = binned_columns()
    train, test = np.arange(5000), np.arange(5000, len(y))
    print(f"3,000 one-hot columns, 5,000 rows, Ridge {score(Ridge(), X, y, train, test):.3f}")
    for epsilon in EPSILONS:
        for delta in (0.0, 1e-5):
            common = {"epsilon": epsilon, "delta": delta, "target_bounds": (0, 1)}
            fits = [
                DPRidge(data_norm=30**0.5, random_state=draw, **common) for draw in range(draws)
            ]
            scores = [score(fit, X, y, train, test) for fit in fits]
            line(f"epsilon = {epsilon:g}, delta = {delta:g} (least {min(scores):.3f})", scores)


def on_counts(draws):
    X, y = counts()
    train, test = np.arange(10_000), np.arange(10_000, len(y))
    peer = PoissonRegressor(alpha=1e-6)
    print(f"Counts, 10,000 x 50, PoissonRegressor {score(peer, X, y, train, test):.3f}")
    for epsilon in (*EPSILONS, 1e6):
        for delta in (0.0, 1e-5):
            for mechanism in ("output", "gradient", "auto"):
                common = {"delta": delta, "data_norm": 50**0.5, "target_bounds": (0, 60)}
                common |= {"epsilon": epsilon, "mechanism": mechanism}
                fits = [DPPoissonRegressor(random_state=draw, **common) for draw in range(draws)]
                scores = [score(fit, X, y, train, test) for fit in fits]
                line(f"epsilon = {epsilon:g}, delta = {delta:g}, {mechanism}", scores)


def main(draws=10, paired=40):
    # Seeds make the figures repeatable; the rows are public.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    on_housing(draws, max(draws, paired))
    on_made_tables(draws)
    on_counts(draws)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
