"""AUC of `DPLogisticRegression` with public encodings of numbers and categories.

Usage: SKDP_DATA=folder python docs/benchmarks/encodings.py [draws]

Training rows of Adult and bank_marketing, of which 8,000 are held out; categories are one-hot,
rows have norm 1, delta = 1e-5, add/remove; means of `draws` (3) draws of rows and noise. Bins are
those of ``_tables.py``. A thermometer has a column per edge, divided by the root of their number.
Prints a table of Markdown.
"""

import sys
import warnings

import numpy as np
from _tables import SCHEMAS, binned, one_hot, split_rows, unit_range
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression

EPSILONS = (0.1, 1.0, 4.0)
HELD_OUT = 8_000
SMALL = 2_000
CROSSES = {
    "adult": (("education", "occupation"), ("marital_status", "sex")),
    "bank_marketing": (("month", "contact"), ("poutcome", "contact")),
}


def thermometer(bins, low):
    """Return a column per edge between bins: 1 above the edge, `low` below it."""
    above = (bins @ np.tri(bins.shape[1]))[:, 1:]
    return (low + (1.0 - low) * above) / np.sqrt(above.shape[1])


def encodings(table, rows):
    """Yield the name of each encoding and the rows in it."""
    bounds, categories = SCHEMAS[table]
    units = {name: unit_range(rows, name, limits) for name, limits in bounds.items()}
    bins = {name: binned(values, name) for name, values in units.items()}
    words = {name: one_hot([r[name] for r in rows], c.split()) for name, c in categories.items()}
    crosses = []
    for one, other in CROSSES[table]:
        crosses.append((words[one][:, :, None] * words[other][:, None]).reshape(len(rows), -1))
    signed = [thermometer(b, -1.0) for b in bins.values()]
    parts = {
        "numbers in [0, 1]": [values[:, None] for values in units.values()],
        "numbers in [−1, 1]": [2.0 * values[:, None] - 1.0 for values in units.values()],
        "one-hot bins": [*bins.values()],
        "thermometer of 0 and 1": [thermometer(b, 0.0) for b in bins.values()],
        "thermometer of −1 and 1": signed,
        "bins and thermometer": [*bins.values(), *signed],
        "bins, two crosses of categories": [*bins.values(), *crosses],
    }
    for name, columns in parts.items():
        X = np.hstack([*columns, *words.values()])
        yield name, X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def main(n_draws=3):
    warnings.simplefilter("ignore")
    cells = {}
    header = "| |"
    for table in CROSSES:
        rows, _ = split_rows(table)
        y = np.array([int(row["target"]) for row in rows])
        sizes = (SMALL, len(rows) - HELD_OUT)
        for n_rows in sizes:
            header += "".join(f" {table}, {n_rows:,} rows, ε = {e:g} |" for e in EPSILONS)
        rng = np.random.default_rng(0)
        orders = [rng.permutation(len(rows)) for _ in range(n_draws)]
        for name, X in encodings(table, rows):
            for n_rows in sizes:
                for epsilon in EPSILONS:
                    scores = []
                    for order in orders:
                        fitted, held_out = order[HELD_OUT : HELD_OUT + n_rows], order[:HELD_OUT]
                        model = DPLogisticRegression(epsilon, delta=1e-5, classes=[0, 1])
                        model.fit(X[fitted], y[fitted])
                        margins = model.decision_function(X[held_out])
                        scores.append(roc_auc_score(y[held_out], margins))
                    cells.setdefault(name, []).append(f"{np.mean(scores):.3f}"[1:])
    print(header + "\n|" + "---|" * header.count("|", 1))
    for name, values in cells.items():
        print(f"| {name} | {' | '.join(values)} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
