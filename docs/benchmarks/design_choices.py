"""Automatic choices of models, each beside its alternatives.

Usage: SKDP_DATA=folder python docs/benchmarks/design_choices.py columns [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py features [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py trends [fits]
       python docs/benchmarks/design_choices.py whitening [fits]
       python docs/benchmarks/design_choices.py classes [fits]

"columns": the AUC of `DPSGDClassifier` whose columns are never scaled, are scaled if a class is
rare, or are always scaled, on one half of the training rows for fits to the other half (numbers in
bins, categories one-hot). "features": the R² of `DPAdditiveRegressor` whose smooth features keep
the constant or leave it out, on three in ten training rows of the nine tables of numbers of
``many_tables.py``. "trends": the AUC or R² of additive models on the tables of ``many_tables.py``
with trends that keep the norm of every row within 1, or with longer trends and shortened rows.
"whitening": the R² of regressors as they are and without whitening, on 10,000
simulated rows that hardly vary (the norm of their mean is .85, their mean squared distance from it
.0054), of which one column varies 33 times as much as the others and says nothing, or with heavy
tails (Student's t with 2.5 degrees of freedom, bent targets). "classes": the AUC of logistic
regression on centered rows, and on whitened rows whatever the noise is, for 40,000 simulated rows
with 10 columns, of which one in ten, in 100 or in 1,000 is positive. delta is 1e-5, 1 / n² of each
table, or 1e-6; noise is drawn afresh in each fit.
"""

import os
import sys
import warnings
from statistics import fmean, stdev

import numpy as np
from scipy.special import expit
from sklearn.metrics import r2_score, roc_auc_score

from skdp import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, DPSGDClassifier
from skdp.gam import _blocks
from skdp.gam._plan import AdditiveFit
from skdp.linear_model import _row_center, _whitening


def scaled_columns(n_fits):
    from _tables import load

    # Largest frequency of the rarer class at which columns are scaled.
    choices = {"never": 0.0, "rare class": _row_center.MAX_SCALED_FREQUENCY, "always": 0.5}
    print(f"{'table':16}{'epsilon':>8}" + "".join(f"{name:>20}" for name in choices))
    for name in ("adult", "bank_marketing", "credit_default"):
        X, y, *_ = load(name, bins=True)
        rows = np.random.default_rng(0).permutation(len(X))
        fitted, held_out = np.array_split(rows, 2)
        for epsilon in (1.0, 4.0, 100.0):
            line = f"{name:16}{epsilon:8g}"
            for limit in choices.values():
                _row_center.MAX_SCALED_FREQUENCY = limit
                scores = []
                for _ in range(n_fits):
                    model = DPSGDClassifier(epsilon, delta=1e-5).fit(X[fitted], y[fitted])
                    scores.append(roc_auc_score(y[held_out], model.decision_function(X[held_out])))
                line += f"{fmean(scores):11.4f} ± {stdev(scores) / n_fits**0.5:.4f}"
            print(line, flush=True)


def print_scores_of_tables(task, choices, choose, n_fits):
    """Print the scores of the additive model on held-out training rows of each small table.

    Parameters
    ----------
    task : {"classes", "number"}
        The scores are AUC or R².
    choices : dict of str to object
        Alternatives by name.
    choose : callable
        Function of an alternative, which makes later fits use it.
    n_fits : int
    """
    import many_tables

    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from load import TABLES

    tables = [(name, many_tables.load(name, "train")) for name in TABLES if name != "medexp"]
    tables = [(name, table) for name, table in tables if table.task == task]
    print(f"{'table':12}{'epsilon':>8}" + "".join(f"{name:>22}" for name in choices))
    for epsilon in (1.0, 4.0):
        means = {name: [] for name in choices}
        for name, table in tables:
            line = f"{name:12}{epsilon:8g}"
            for choice, value in choices.items():
                choose(value)
                scores = [
                    many_tables.scores_of(table, "default", epsilon, True)[0] for _ in range(n_fits)
                ]
                means[choice].append(fmean(scores))
                line += f"{fmean(scores):13.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
            print(line, flush=True)
        line = "".join(f"{fmean(scores):22.4f}" for scores in means.values())
        print(f"{'mean':12}{epsilon:8g}{line}", flush=True)


def centered_features(n_fits):
    def choose(feature_rule):
        AdditiveFit._min_missing = feature_rule

    without_constant = AdditiveFit._min_missing
    choices = {"with the constant": property(lambda fit: None), "without": without_constant}
    print_scores_of_tables("number", choices, choose, n_fits)


def longer_trends(n_fits):
    def choose(factor):
        _blocks.MAX_TREND_FACTOR = factor

    choices = {"largest norm 1": 1.0, "mean norm 1": _blocks.MAX_TREND_FACTOR}
    for task in ("classes", "number"):
        print_scores_of_tables(task, choices, choose, n_fits)


def rows_that_hardly_vary(rng, n_rows, n_columns=6):
    deviations = rng.normal(size=(n_rows, n_columns))
    X = 0.85 / n_columns**0.5 + 0.03 * (6.0 / n_columns) ** 0.5 * deviations
    return X, deviations.sum(axis=1) / n_columns**0.5


def rows_with_one_large_column(rng, n_rows, n_columns=20):
    values = rng.normal(size=(n_rows, n_columns))
    scales = np.append(0.5, np.full(n_columns - 1, 0.015))
    return values * scales, values[:, 1:].sum(axis=1) / n_columns**0.5


def rows_with_heavy_tails(rng, n_rows, n_columns=8):
    values = rng.standard_t(2.5, size=(n_rows, n_columns))
    return np.clip(values, -50.0, 50.0) / 20.0, np.tanh(values).sum(axis=1) / 2.0


def whitened_rows(n_fits):
    limits = {"as it is": _whitening.MAX_NOISE, "never": 0.0}
    print(f"{'table':30}{'epsilon':>8} {'loss':8}" + "".join(f"{name:>18}" for name in limits))
    for make_rows in (rows_that_hardly_vary, rows_with_one_large_column, rows_with_heavy_tails):
        rng = np.random.default_rng(0)
        (X, signal), (X_test, test_signal) = (make_rows(rng, n) for n in (10_000, 20_000))
        y = np.clip(signal + 0.7 * rng.normal(size=len(X)), -5.0, 5.0)
        y_test = np.clip(test_signal + 0.7 * rng.normal(size=len(X_test)), -5.0, 5.0)
        for epsilon in (1.0, 10.0):
            models = {
                "squares": DPLinearRegression(epsilon, target_bounds=(-5, 5), mechanism="gradient"),
                "Poisson": DPPoissonRegressor(epsilon, target_bounds=(0, 20), mechanism="gradient"),
            }
            for name, model in models.items():
                targets, test_targets = y, y_test
                if name == "Poisson":
                    targets, test_targets = np.exp(y / 2.0), np.exp(y_test / 2.0)
                line = f"{make_rows.__name__:30}{epsilon:8g} {name:8}"
                for _whitening.MAX_NOISE in limits.values():
                    scores = [
                        r2_score(test_targets, model.fit(X, targets).predict(X_test))
                        for _ in range(n_fits)
                    ]
                    line += f"{fmean(scores):10.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
                print(line, flush=True)


def rare_rows(rng, n_rows, n_columns, rate):
    """Return rows within the unit ball, and labels of a logistic model with a rate of positives."""
    values = np.clip(rng.normal(size=(n_rows, n_columns)), -4.0, 4.0)
    scores = values @ np.random.default_rng(1).normal(size=n_columns) * (2.4 / n_columns**0.5)
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2.0
        is_rare = expit(scores + middle).mean() < rate
        low, high = (middle, high) if is_rare else (low, middle)
    y = (rng.random(n_rows) < expit(scores + low)).astype(int)
    return values / np.linalg.norm(values, axis=1).max(), y


def whitened_classes(n_fits):
    limits = {"centered": 0.0, "whitened": _whitening.MAX_NOISE}
    print(f"{'positive':>10}{'epsilon':>8}" + "".join(f"{name:>18}" for name in limits))
    for rate in (0.1, 0.01, 0.001):
        for epsilon in (1.0, 10.0):
            line = f"{rate:10g}{epsilon:8g}"
            for _whitening.MAX_NOISE_OF_CLASSES in limits.values():
                scores = []
                for fit in range(n_fits):
                    X, y = rare_rows(np.random.default_rng(fit), 60_000, 10, rate)
                    model = DPLogisticRegression(epsilon, mechanism="gradient")
                    model.fit(X[:40_000], y[:40_000])
                    scores.append(roc_auc_score(y[40_000:], model.decision_function(X[40_000:])))
                line += f"{fmean(scores):10.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    choices_by_name = {
        "columns": scaled_columns,
        "features": centered_features,
        "trends": longer_trends,
        "whitening": whitened_rows,
        "classes": whitened_classes,
    }
    choices_by_name[sys.argv[1]](repetitions)
