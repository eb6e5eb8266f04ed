"""Random forests and one decision tree, beside our other estimators and diffprivlib's trees.

Usage: SKDP_DATA=folder python docs/benchmarks/forests.py PEER [fits] [table ...] [runs]

PEER is the Python of an environment with diffprivlib and scikit-learn 1.7.2, see ``incumbent.py``;
"-" leaves it out. "runs" is a file whose name ends in ".jsonl", as there: what either script has
fitted the other takes from it. Tables of classes: those of ``incumbent.py``; "parity k of d", whose
class is the sign of the product of k of d columns, a tenth of the labels turned; and "crossed" of
``pairs.py``.
Tables of numbers are those of ``pairs.py``. Everything is at defaults, under the replacement of a
row, with public bounds and categories; means of `fits` (5) fits.

Of classes a cell has accuracy and AUC, of numbers R². "Pairs" is ``interactions=5``, or 1 for two
columns; with delta = 0 pairs cannot be chosen, and it is the additive model. "Linear" is
`DPLogisticRegression` or `DPSGDRegressor` on columns scaled by the bounds. diffprivlib has
delta = 0 only, and no trees for numbers.
"""

import sys
import warnings
from functools import partial

import numpy as np
from _runs import Runs
from additive import quality, scaled
from incumbent import EPSILONS, class_tables, replacing, runs_of_peer
from pairs import N_ROWS, TABLES, halves

import skdp

DELTAS = (0.0, 1e-5)
NUMBERS = ("california_housing", "hours", "friedman1", "friedman2", "friedman3")


def parity(k, d):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N_ROWS + 10_000, d))
    turned = rng.uniform(size=len(X)) < 0.1
    y = (np.prod(X[:, :k], axis=1) > 0) ^ turned
    return halves(X, y.astype(int), ((-1, 1),) * d, None)


def made_tables():
    """Yield names, what diffprivlib reads, and rows, test rows, what is declared, the target."""
    made = {f"parity {k} of {d}": (k, d) for k, d in ((2, 2), (2, 6), (3, 6))}
    tables = {name: parity(*sizes) for name, sizes in made.items()}
    tables |= {"crossed": TABLES["crossed"]()}
    for name, (train, test, declared, _) in tables.items():
        X, X_test = (scaled(part[0], declared | {"categories": {}}) for part in (train, test))
        encoded = {"X": X, "y": train[1], "X_test": X_test, "y_test": test[1]}
        yield name, encoded, (train, test, declared, None)
    for name, encoded, table in class_tables():
        yield f"{name}, classes", encoded, (*table, None)
    for name in NUMBERS:
        yield name, None, TABLES[name]()


class Linear:
    """A linear model on scaled columns."""

    def __init__(self, model, declared):
        self.model, self.declared = model, {"categories": {}} | declared
        self.classes_ = (0, 1)

    def fit(self, X, y):
        self.model.fit(scaled(X, self.declared), y)
        if hasattr(self.model, "predict_proba"):
            self.predict_proba = lambda X: self.model.predict_proba(scaled(X, self.declared))
        return self

    def predict(self, X):
        return self.model.predict(scaled(X, self.declared))


def models(epsilon, delta, declared, target, n_columns):
    """Return the words and the maker of each of our models."""
    raw = {"epsilon": epsilon} | replacing(delta)
    terms = raw | declared
    pairs = {"interactions": 0 if delta == 0.0 else 5 if n_columns > 2 else 1}
    if target is None:
        kinds = "RandomForestClassifier DecisionTreeClassifier AdditiveClassifier HistogramNB"
        linear, additive = skdp.DPLogisticRegression, skdp.DPAdditiveClassifier
    else:
        terms["target_bounds"] = raw["target_bounds"] = target
        kinds = "RandomForestRegressor AdditiveRegressor"
        linear, additive = skdp.DPSGDRegressor, skdp.DPAdditiveRegressor
    made = {f"DP{kind}": partial(getattr(skdp, f"DP{kind}"), **terms) for kind in kinds.split()}
    made |= {"pairs": partial(additive, **terms, **pairs)} if delta > 0.0 else {}
    return made | {"linear": lambda: Linear(linear(**raw), declared)}


def words_of(runs):
    means = np.mean(runs, axis=0)
    errors = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    cells = zip(means, errors, strict=True)
    return ", ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in cells if mean == mean)


def measure(name, encoded, table, python, fits, runs):
    train, test, declared, target = table
    own_name = name.removesuffix(", classes")
    for epsilon in EPSILONS:
        for delta in DELTAS:
            where = f"| {name} | {epsilon} | {delta:g} |"
            for words, make in models(epsilon, delta, declared, target, train[0].shape[1]).items():
                found = runs.of(
                    f"{own_name} | {epsilon} | {delta:g} | {words}",
                    fits,
                    lambda n, m=make: (quality(m().fit(*train), *test) for _ in range(n)),
                )
                print(f"{where} {words} | {words_of(found)} |", flush=True)
            if delta == 0.0 and python != "-" and encoded:
                for peer in ("RandomForestClassifier", "DecisionTreeClassifier"):
                    found = runs_of_peer(own_name, peer, epsilon, encoded, python, fits, runs)
                    print(f"{where} diffprivlib's {peer} | {words_of(found)} |", flush=True)


def main():
    python, *words = sys.argv[1:]
    fits = int(next((word for word in words if word.isdigit()), 5))
    runs = Runs(next((word for word in words if word.endswith(".jsonl")), None))
    names = [word for word in words if not word.isdigit() and word != runs.path]
    for name, encoded, table in made_tables():
        if not names or name in names:
            measure(name, encoded, table, python, fits, runs)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
