"""What a private choice of tables is worth, and where interactions="auto" makes it.

Usage: SKDP_DATA=folder python docs/benchmarks/pairs.py [fits] [table ...]

R² of regression on california_housing and on four made tables of 20,000 rows: Friedman's three
functions with noise, and a table of hourly counts (the hour's effect is another on working days).
AUC of classification on Adult, bank_marketing, credit_default, 50,000 rows of kddcup99, and on a
made table of two crossed columns. delta = 1e-5, add/remove, public bounds and categories, means of
`fits` (3) fits with and without five chosen tables; "auto" is what the public rule takes.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from additive import DELTA, PRICES, classification, housing, kdd, quality
from scipy.special import expit
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.accounting import gaussian_noise_multiplier
from skdp.gam._interaction_plan import MIN_SIGNAL_FOR_CHOICE

EPSILONS = (0.1, 1.0, 2.0, 4.0)
N_ROWS, N_TESTED = 20_000, 10_000
WIDE = ((0, 100), (40 * np.pi, 560 * np.pi), (0, 1), (1, 11))


def halves(X, y, bounds, target):
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    parts = [(X[:N_ROWS], y[:N_ROWS]), (X[N_ROWS:], y[N_ROWS:])]
    return *parts, {"bounds": dict(zip(X, bounds, strict=True))}, target


def friedman(make, noise, bounds, target):
    X, y = make(N_ROWS + N_TESTED, noise=noise, random_state=0)
    return halves(X, y, bounds, target)


def hours():
    rng = np.random.default_rng(0)
    n = N_ROWS + N_TESTED
    hour, day, warmth = rng.integers(0, 24, n), rng.integers(0, 7, n), rng.uniform(-5, 35, n)
    work = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    free = 0.8 * np.exp(-((hour - 14) ** 2) / 25)
    rate = 400 * (0.1 + np.where(day < 5, work, free)) * (0.4 + np.clip(warmth, 0, 28) / 28)
    columns = np.column_stack([hour, day, warmth, rng.uniform(0, 100, n)]).astype(float)
    return halves(columns, rng.poisson(rate), ((0, 24), (0, 7), (-5, 35), (0, 100)), (0, 1000))


def crossed():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N_ROWS + N_TESTED, 8))
    y = rng.uniform(size=len(X)) < expit(
        3 * np.sign(X[:, 0] * X[:, 1]) * (X[:, 2] > -0.5) + X[:, 3]
    )
    return halves(X, y.astype(int), ((-1, 1),) * 8, None)


def fewer(table):
    (X, y), (X_test, y_test), declared = table
    return (X[:50_000], y[:50_000]), (X_test[:10_000], y_test[:10_000]), declared


TABLES = {
    "california_housing": lambda: (*housing(), PRICES),
    "friedman1": lambda: friedman(make_friedman1, 1.0, ((0, 1),) * 10, (0, 30)),
    "friedman2": lambda: friedman(make_friedman2, 125.0, WIDE, (0, 2000)),
    "friedman3": lambda: friedman(make_friedman3, 0.1, WIDE, (0, 2)),
    "hours": hours,
    "adult": lambda: (*classification("adult"), None),
    "bank_marketing": lambda: (*classification("bank_marketing"), None),
    "credit_default": lambda: (*classification("credit_default"), None),
    "kdd": lambda: (*fewer(kdd()), None),
    "crossed": lambda: crossed(),
}


def model_of(epsilon, pairs, declared, target):
    terms = {"delta": DELTA, "interactions": pairs} | declared
    if target is None:
        return DPAdditiveClassifier(epsilon, **terms)
    return DPAdditiveRegressor(epsilon, target_bounds=target, **terms)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for name in sys.argv[2:] or TABLES:
        train, test, declared, target = TABLES[name]()
        for epsilon in EPSILONS:
            means, errors = [], []
            for pairs in (0, 5):
                models = [model_of(epsilon, pairs, declared, target) for _ in range(fits)]
                found = [quality(model.fit(*train), *test) for model in models]
                own = np.array([auc if auc == auc else score for score, auc in found])
                means.append(own.mean())
                errors.append(own.std(ddof=1) / np.sqrt(fits))
            n_mu = len(train[1]) / gaussian_noise_multiplier(epsilon, DELTA)
            auto = "5" if n_mu >= MIN_SIGNAL_FOR_CHOICE else "0"
            cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True)]
            words = " | ".join(cells)
            print(f"| {name} | {epsilon:g} | {n_mu:.0f} | {words} | {auto} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
