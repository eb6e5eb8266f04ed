"""Additive models on small tables, beside the library's other classifiers and the noisy majority.

Usage: SKDP_DATA=folder python docs/benchmarks/small_tables.py FILE [draws] [table ...] [n=...]

Subsamples of n rows of Adult, bank_marketing, credit_default and kddcup99 (of its first 50,000),
everything at its defaults, delta = 1e-5 under add/remove, `draws` (20) paired draws: all models of
a draw see the same rows. Each result is a line of FILE, so that a run which was stopped goes on;
the table of ``small_tables.md`` is printed from FILE at the end. With ``training`` among the
tables' names, models are judged on rows of the training part that were not drawn: constants were
chosen that way. Numbers of rows are 200, 500, 1000, 3000 and 0 for all; ``n=200,500`` takes some.
With all rows, which draws share, only noise differs.

Rivals: `DPLogisticRegression` and `DPSGDClassifier` on columns scaled by public bounds and one-hot
categories, rows of norm 1, and private bins with a private linear model (``private_bins.py``). The
noisy majority predicts the class of more rows, by the count of one class with Gaussian noise.

A cell with n mu >= 30 is a loss, in bold, if the accuracy is more than .002 below the noisy
majority's, or the AUC is more than .005 (Adult, bank_marketing), .01 (others, n >= 1000) or .03
(others, smaller) and two paired standard errors below the best rival's.
"""

import csv
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import private_bins
from additive import LOADERS, raw, scaled, schema_of
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPLogisticRegression, DPSGDClassifier
from skdp.accounting import gaussian_noise_multiplier

DELTA = 1e-5
SIZES = (200, 500, 1000, 3000, 0)
EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0, 8.0)
TABLES = ("adult", "bank_marketing", "credit_default", "kdd")
RIVALS = ("logistic", "sgd", "bins")
# More rows of a test part tell no more; of kddcup99 the first rows are all that are drawn from.
TESTED, LARGEST = 10_000, 50_000


def pipeline(epsilon, schema, seed):
    private_bins.EPSILON, private_bins.BINS_EPSILON = epsilon, 0.1 * epsilon
    result = private_bins.private_pipeline(schema)
    return result.set_params(**{f"{name}__random_state": seed for name, _ in result.steps})


def makers(epsilon, declared, seed):
    """Return, by name, a model and which encoding of the rows it takes."""
    own = {"delta": DELTA, "random_state": seed}
    return {
        "additive": (lambda: DPAdditiveClassifier(epsilon, **own, **declared), 0),
        "logistic": (lambda: DPLogisticRegression(epsilon, **own), 1),
        "sgd": (lambda: DPSGDClassifier(epsilon, **own), 1),
        "bins": (lambda: pipeline(epsilon, schema_of(declared), seed), 2),
    }


def majority(y, y_test, epsilon, rng):
    """Return the accuracy of the class that has more rows by a noisy count."""
    noise = rng.normal(0.0, gaussian_noise_multiplier(epsilon, DELTA))
    return np.mean(y_test == (y.sum() + noise > len(y) / 2))


def parts_of(name, training):
    (X, y), (X_test, y_test), declared = LOADERS[name]()
    declared = {key: declared[key] for key in ("bounds", "categories")}
    if training:
        order = np.random.default_rng(1).permutation(len(y))
        (X, y), (X_test, y_test) = ((X.iloc[p], y[p]) for p in (order[TESTED:], order[:TESTED]))
    X, y, X_test, y_test = X[:LARGEST], y[:LARGEST], X_test[:TESTED], y_test[:TESTED]
    encodings = [(X, X_test), *((e(X, declared), e(X_test, declared)) for e in (scaled, raw))]
    return encodings, y, y_test, declared


def cells_of(sizes, n_all):
    return [(n or n_all, epsilon) for n in sizes for epsilon in EPSILONS if n <= n_all]


def run(file, name, draws, sizes, training, models):
    done = {tuple(row[:5]) for row in read(file)}
    encodings, y, y_test, declared = parts_of(name, training)
    with Path(file).open("a", newline="") as out:
        writer = csv.writer(out)
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            order = rng.permutation(len(y))
            for n, epsilon in cells_of(sizes, len(y)):
                rows = order[:n]
                rows = rows if n < len(y) else np.sort(rows)
                guess = majority(y[rows], y_test, epsilon, rng)
                for model, (make, place) in makers(epsilon, declared, draw).items():
                    key = (name, str(n), f"{epsilon:g}", str(draw), model)
                    if key in done or model not in models:
                        continue
                    X, X_test = encodings[place]
                    X = X.iloc[rows] if place == 0 else X[rows]
                    fitted = make().fit(X, y[rows])
                    scores = fitted.predict_proba(X_test)[:, 1]
                    accuracy = np.mean(fitted.predict(X_test) == y_test)
                    writer.writerow([*key, accuracy, roc_auc_score(y_test, scores), guess])
                    out.flush()


def read(file):
    if not Path(file).exists():
        return []
    with Path(file).open(newline="") as text:
        return list(csv.reader(text))


def tolerance(name, n):
    if name in ("adult", "bank_marketing"):
        return 0.005
    return 0.01 if n >= 1000 else 0.03


def summary(file):
    """Print a line for each cell: n mu, accuracies, and AUC beside the best rival's."""
    found = {}
    for name, n, epsilon, draw, model, *figures in read(file):
        cell = found.setdefault((name, int(n), float(epsilon)), {})
        cell.setdefault(model, {})[int(draw)] = np.array(figures, float)
    print("| table | n | ε | n·μ | accuracy, majority's | AUC | logistic | sgd | bins |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, n, epsilon), cell in sorted(found.items()):
        draws = sorted(set.intersection(*(set(cell.get(m, ())) for m in ("additive", *RIVALS))))
        values = {model: np.array([own[d] for d in draws]) for model, own in cell.items()}
        if not draws:
            continue
        ours = values.pop("additive")
        means = {model: own[:, 1].mean() for model, own in values.items()}
        best = max(means, key=means.get)
        gaps = values[best][:, 1] - ours[:, 1]
        error = gaps.std(ddof=1) / math.sqrt(len(draws)) if len(draws) > 1 else math.inf
        n_mu = n / gaussian_noise_multiplier(epsilon, DELTA)
        judged = n_mu >= 30.0
        accuracy, guess = ours[:, 0].mean(), ours[:, 2].mean()
        words = f"{accuracy:.3f}, {guess:.3f}"
        words = f"**{words}**" if judged and accuracy < guess - 0.002 else words
        auc = f"{ours[:, 1].mean():.3f}"
        lost = judged and gaps.mean() > tolerance(name, n) + 2.0 * error
        auc = f"**{auc}** (2 s.e. {2 * error:.3f})" if lost else auc
        rest = " | ".join(f"{means[m]:.3f}" if m in means else "" for m in RIVALS)
        print(f"| {name} | {n} | {epsilon:g} | {n_mu:.0f} | {words} | {auc} | {rest} |")


def main():
    file, words = sys.argv[1], sys.argv[2:]
    draws = next((int(word) for word in words if word.isdigit()), 20)
    sizes = next((tuple(map(int, w[2:].split(","))) for w in words if w[:2] == "n="), SIZES)
    models = next((w[7:].split(",") for w in words if w[:7] == "models="), ("additive", *RIVALS))
    for name in [word for word in words if word in TABLES] or TABLES:
        run(file, name, draws, sizes, "training" in words, models)
    summary(file)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
