"""What a private search for hyperparameters reaches on Adult, strategy by strategy.

Usage: SKDP_DATA=folder python docs/benchmarks/search.py [main | strategies | many] [repeats]

Protocol: the table of ``adult.py``, delta = 1e-5, add/remove. The grid is the mechanism
("objective", "gradient") times m/2 values of C from 1e-4 to 10. The total (epsilon, delta) pays for
the search and for the published model. "best known" fits the best candidate with the whole budget,
as if somebody had known it; "naive" gives every candidate epsilon / m and delta / m on three
quarters of the rows and takes the best raw score on the rest, which is not even private.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import ParameterGrid

from skdp import DPGridSearchCV, DPLogisticRegression

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from quickstart import make_encoder, read_adult

DELTA = 1e-5
STRATEGIES = ("auto", "random_stopping", "holdout", "cv", "disjoint")


def make_grid(m):
    return {
        "C": np.geomspace(1e-4, 10.0, (m + 1) // 2).tolist(),
        "mechanism": ["objective", "gradient"],
    }


def load():
    X, y, X_test, y_test = read_adult(os.environ["SKDP_DATA"])
    encoder = make_encoder()
    return encoder.fit_transform(X), y, encoder.transform(X_test), y_test


def search(table, m, epsilon, strategy, repeats):
    X, y, X_test, y_test = table
    found, seconds, names = [], [], set()
    for _ in range(repeats):
        model = DPGridSearchCV(
            DPLogisticRegression(), make_grid(m), epsilon=epsilon, delta=DELTA, strategy=strategy
        )
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        found.append(np.mean(model.predict(X_test) == y_test))
        names.add(model.strategy_)
    return found, np.median(seconds), ", ".join(sorted(names))


def best_known(table, m, epsilon, repeats):
    X, y, X_test, y_test = table
    best = []
    for params in ParameterGrid(make_grid(m)):
        model = DPLogisticRegression(epsilon, delta=DELTA, **params)
        found = [np.mean(model.fit(X, y).predict(X_test) == y_test) for _ in range(repeats)]
        best.append((np.mean(found), found))
    return max(best)[1]


def naive(table, m, epsilon, repeats):
    X, y, X_test, y_test = table
    rows = np.random.default_rng(0).permutation(len(y))
    train, held = rows[len(y) // 4 :], rows[: len(y) // 4]
    found = []
    for _ in range(repeats):
        models = [
            DPLogisticRegression(epsilon / m, delta=DELTA / m, **p).fit(X[train], y[train])
            for p in ParameterGrid(make_grid(m))
        ]
        best = max(models, key=lambda model: np.mean(model.predict(X[held]) == y[held]))
        found.append(np.mean(best.predict(X_test) == y_test))
    return found


def show(m, epsilon, name, found, note=""):
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
    print(f"{m:4d} {epsilon:5g}  {name:<16} {np.mean(found):.4f} ± {error:.4f}  {note}", flush=True)


def compare(table, m, epsilon, repeats, strategies=STRATEGIES, beside=True):
    for strategy in strategies:
        found, seconds, names = search(table, m, epsilon, strategy, repeats)
        show(m, epsilon, strategy, found, f"{seconds:.1f} s" + f" ({names})" * (strategy == "auto"))
    if beside:
        show(m, epsilon, "naive", naive(table, m, epsilon, repeats))
        show(m, epsilon, "best known", best_known(table, m, epsilon, min(repeats, 3)))


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else "main"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else None
    table = load()
    warnings.simplefilter("ignore")
    print("   m   eps  strategy         accuracy (± s.e.)")
    if part == "main":
        compare(table, 20, 1.0, repeats or 10)
    if part == "strategies":
        compare(table, 5, 1.0, repeats or 10)
        for epsilon in (0.5, 4.0):
            compare(table, 20, epsilon, repeats or 3)
    if part == "many":
        compare(table, 100, 1.0, repeats or 3, ("random_stopping", "disjoint"), beside=False)


if __name__ == "__main__":
    main()
