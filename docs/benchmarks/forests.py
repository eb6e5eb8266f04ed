"""Random forests and one decision tree, beside our other estimators and diffprivlib's trees.

Usage: SKDP_DATA=folder python docs/benchmarks/forests.py PEER [fits] [table ...]

PEER is the Python of an environment with diffprivlib and scikit-learn 1.7.2, see ``incumbent.py``;
"-" leaves it out. Tables of classes: those of ``incumbent.py``; "parity k of d", whose class is the
sign of the product of k of d columns, a tenth of the labels turned; and "crossed" of ``pairs.py``.
Tables of numbers are those of ``pairs.py``. Everything is at defaults, under the replacement of a
row, with public bounds and categories; means of `fits` (5) fits.

Of classes a cell has accuracy and AUC, of numbers R². "Pairs" is ``interactions=5``, or 1 for two
columns; with delta = 0 pairs cannot be chosen, and it is the additive model. "Linear" is
`DPLogisticRegression` or `DPSGDRegressor` on columns scaled by the bounds. diffprivlib has
delta = 0 only, and no trees for numbers.
"""

import sys
import warnings

import numpy as np
from additive import quality, scaled
from incumbent import EPSILONS, ask_peer, class_tables, replacing
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
        return {
            "forest": lambda: skdp.DPRandomForestClassifier(**terms),
            "tree": lambda: skdp.DPDecisionTreeClassifier(**terms),
            "additive": lambda: skdp.DPAdditiveClassifier(**terms),
            "pairs": lambda: skdp.DPAdditiveClassifier(**terms, **pairs),
            "naive Bayes": lambda: skdp.DPHistogramNB(**terms),
            "linear": lambda: Linear(skdp.DPLogisticRegression(**raw), declared),
        }
    terms["target_bounds"] = raw["target_bounds"] = target
    return {
        "forest": lambda: skdp.DPRandomForestRegressor(**terms),
        "additive": lambda: skdp.DPAdditiveRegressor(**terms),
        "pairs": lambda: skdp.DPAdditiveRegressor(**terms, **pairs),
        "linear": lambda: Linear(skdp.DPSGDRegressor(**raw), declared),
    }


def words_of(runs):
    means = np.mean(runs, axis=0)
    errors = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    cells = zip(means, errors, strict=True)
    return ", ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in cells if mean == mean)


def measure(name, encoded, table, python, fits):
    train, test, declared, target = table
    theirs = ask_peer(python, encoded, fits) if python != "-" and encoded else {}
    for epsilon in EPSILONS:
        for delta in DELTAS:
            where = f"| {name} | {epsilon} | {delta:g} |"
            for words, make in models(epsilon, delta, declared, target, train[0].shape[1]).items():
                if words == "pairs" and delta == 0.0:
                    continue
                runs = [quality(make().fit(*train), *test) for _ in range(fits)]
                print(f"{where} {words} | {words_of(runs)} |", flush=True)
            for peer in ("RandomForestClassifier", "DecisionTreeClassifier"):
                if delta == 0.0 and theirs:
                    print(
                        f"{where} diffprivlib's {peer} | {words_of(theirs[f'{peer} {epsilon}'])} |"
                    )


def main():
    python = sys.argv[1]
    fits = int(next((word for word in sys.argv[2:] if word.isdigit()), 5))
    names = [word for word in sys.argv[2:] if not word.isdigit()]
    for name, encoded, table in made_tables():
        if not names or name in names:
            measure(name, encoded, table, python, fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
