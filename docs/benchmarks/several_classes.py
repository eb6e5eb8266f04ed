"""What the check of additive models keeps of the weights of several classes: training rows alone.

Usage: SKDP_DATA=folder python docs/benchmarks/several_classes.py [draws] [digits|marital|nothing]

The share of what weights explain by chance (`overlap`, docs/theory/additive_models.md, section 8a)
decides how much of them is kept. One fit with all weights gives the scores at every share: those of
the center, and so much of what the weights add. Accuracy on training rows that were held out, means
of `draws` (4) fits, delta = 1e-5: at shares of 1/2, 0.1 and 0.06, with all weights, and of the
center.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np
from additive import marital
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdp import DPAdditiveClassifier
from skdp._optim._noisy_gradients import ShrinkageRule
from skdp.gam._tasks import MultinomialTask

SHARES = (0.5, 0.1, 0.06, 0.0)
DELTA = 1e-5


def tables():
    """Yield names, epsilons, rows to train on, rows held out and what is declared."""
    X, _, y, _ = train_test_split(*load_digits(return_X_y=True), random_state=0)
    parts = train_test_split(X, y, random_state=1, train_size=1000)
    yield "digits", (0.5, 1, 2, 4, 8), parts[::2], parts[1::2], {"bounds": (0, 16)}
    (X, y), _, declared = marital()
    order = np.random.default_rng(3).permutation(len(y))
    declared = {name: declared[name] for name in ("bounds", "categories")}
    for n in (300, 1000, 4000):
        rows = order[4000 : 4000 + n], order[:4000]
        yield f"marital, {n} rows", (0.5, 2, 8), *((X.iloc[r], y[r]) for r in rows), declared
    rng = np.random.default_rng(9)
    for n, d, shares in ((800, 30, (0.5, 0.3, 0.2)), (3000, 20, (0.4, 0.3, 0.2, 0.1))):
        X = rng.uniform(-1, 1, (n + 3000, d))
        y = rng.choice(len(shares), n + 3000, p=shares)
        parts = ((X[:n], y[:n]), (X[n:], y[n:]))
        yield f"nothing, {n} x {d}", (1, 4, 8), *parts, {"bounds": (-1, 1)}


def accuracies(model, train, held_out):
    """Return the accuracy at each share, and that of the center."""
    known = {}
    kept, begin = ShrinkageRule.shrinkage_factor, MultinomialTask.initial_scores

    def all_kept(self, *gains):
        known["shrinkage_factor"] = [
            kept(
                replace(self, null_fraction=self.null_fraction * share / MultinomialTask.overlap),
                *gains,
            )
            for share in SHARES
        ]
        return 1.0

    def begun(self, center):
        known["center"] = begin(self, center)
        return known["center"]

    ShrinkageRule.shrinkage_factor, MultinomialTask.initial_scores = all_kept, begun
    try:
        scores = model.fit(*train).decision_function(held_out[0])
    finally:
        ShrinkageRule.shrinkage_factor, MultinomialTask.initial_scores = kept, begin
    center = known["center"]
    each = [center + share * (scores - center) for share in (*known["shrinkage_factor"], 0.0)]
    return [np.mean(model.classes_[one.argmax(axis=1)] == held_out[1]) for one in each]


def main():
    draws = next((int(word) for word in sys.argv[1:] if word.isdigit()), 4)
    names = [word for word in sys.argv[1:] if not word.isdigit()]
    print("table, epsilon                  1/2     .1    .06    all center")
    for name, epsilons, train, held_out, declared in tables():
        if names and name.split(",")[0] not in names:
            continue
        for epsilon in epsilons:
            own = {"classes": np.unique(train[1]), "delta": DELTA} | declared
            found = [
                accuracies(DPAdditiveClassifier(epsilon, random_state=seed, **own), train, held_out)
                for seed in range(draws)
            ]
            cells = " ".join(f"{value:6.3f}" for value in np.mean(found, axis=0))
            print(f"{name}, {epsilon:g}".ljust(28), cells, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
