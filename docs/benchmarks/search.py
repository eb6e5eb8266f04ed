"""What a private search for hyperparameters reaches on Adult, strategy by strategy.

Usage: SKDP_DATA=folder python docs/benchmarks/search.py [--candidates 20] [--epsilon 1]
[--repeats 10] [--rows random_stopping,naive,...]

Without options the whole table of ``search.md`` is made, in about an hour on two cores.

Protocol: the table of ``adult.py``, delta = 1e-5, add/remove. The grid is the mechanism
("objective", "gradient") times m/2 values of C from 1e-4 to 10. The total (epsilon, delta) pays for
the search and for the published model. "best known" fits the best candidate with the whole budget,
as if somebody had known it: three fits of each candidate find it, and further ones measure it.
"naive" gives every candidate epsilon / m and delta / m on three
quarters of the rows and takes the best raw score on the rest, which is not even private.
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import ParameterGrid

from skdp import DPGridSearchCV, DPLogisticRegression

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from example_table import make_encoder, read_adult

DELTA = 1e-5
ROWS = ("random_stopping", "disjoint", "holdout", "cv", "auto", "naive", "best_known")
MANY = ("random_stopping", "disjoint")


def make_grid(m):
    return {"C": np.geomspace(1e-4, 10.0, m // 2).tolist(), "mechanism": ["objective", "gradient"]}


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

    def accuracies(params, repeats):
        model = DPLogisticRegression(epsilon, delta=DELTA, **params)
        return [np.mean(model.fit(X, y).predict(X_test) == y_test) for _ in range(repeats)]

    best = max(ParameterGrid(make_grid(m)), key=lambda params: np.mean(accuracies(params, 3)))
    return accuracies(best, repeats), f"{best['mechanism']}, C={best['C']:.2g}"


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


def compare(table, m, epsilon, repeats, rows):
    for row in rows:
        if row == "naive":
            show(m, epsilon, row, naive(table, m, epsilon, repeats))
        elif row == "best_known":
            show(m, epsilon, row, *best_known(table, m, epsilon, repeats))
        else:
            found, seconds, name = search(table, m, epsilon, row, repeats)
            show(m, epsilon, row, found, f"{seconds:.1f} s" + f" ({name})" * (row == "auto"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candidates", type=int, nargs="*", default=[20, 6, 100])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 0.5, 4.0])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--rows", type=lambda text: text.split(","))
    given = parser.parse_args()
    table = load()
    warnings.simplefilter("ignore")
    print("   m   eps  row              accuracy (± s.e.)")
    for m, epsilon in itertools.product(given.candidates, given.epsilon):
        if m != 20 and epsilon != 1.0:
            continue
        rows = MANY if m > 20 else ROWS
        repeats = given.repeats or (10 if epsilon == 1.0 and m <= 20 else 3)
        compare(table, m, epsilon, repeats, given.rows or rows)


if __name__ == "__main__":
    main()
