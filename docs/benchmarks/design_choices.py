"""Automatic choices of models, each beside its alternatives.

Usage: SKDP_DATA=folder python docs/benchmarks/design_choices.py columns [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py features [fits]
       python docs/benchmarks/design_choices.py whitening [fits]

"columns": the AUC of `DPSGDClassifier` whose columns are never scaled, are scaled if a class is
rare, or are always scaled, on one half of the training rows for fits to the other half (numbers in
bins, categories one-hot). "features": the R² of `DPAdditiveRegressor` whose smooth features keep
the constant or leave it out, on three in ten training rows of the nine tables of numbers of
``many_tables.py``. "whitening": the R² of regressors as they are, without whitening, and with
noise in the second moment of up to 2 of it, on simulated rows that hardly vary (the norm of their
mean is .85, and their mean squared distance from it is .0054). delta is 1e-5, 1 / n² of each table,
or 1e-6; noise is drawn afresh in each fit.
"""

import os
import sys
import warnings
from statistics import fmean, stdev

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

from skdp import DPLinearRegression, DPPoissonRegressor, DPSGDClassifier
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


def centered_features(n_fits):
    import many_tables

    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from load import TABLES

    without_constant = AdditiveFit._min_missing
    choices = {"with the constant": property(lambda fit: None), "without": without_constant}
    tables = [(name, many_tables.load(name, "train")) for name in TABLES if name != "medexp"]
    tables = [(name, table) for name, table in tables if table.task == "number"]
    print(f"{'table':12}{'epsilon':>8}" + "".join(f"{name:>22}" for name in choices))
    for epsilon in (1.0, 4.0):
        means = {name: [] for name in choices}
        for name, table in tables:
            line = f"{name:12}{epsilon:8g}"
            for choice, feature_rule in choices.items():
                AdditiveFit._min_missing = feature_rule
                scores = [
                    many_tables.scores_of(table, "default", epsilon, True)[0] for _ in range(n_fits)
                ]
                means[choice].append(fmean(scores))
                line += f"{fmean(scores):13.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
            print(line, flush=True)
        line = "".join(f"{fmean(scores):22.4f}" for scores in means.values())
        print(f"{'mean':12}{epsilon:8g}{line}", flush=True)


def rows_that_hardly_vary(n_rows, n_columns, seed):
    """Return rows near one point, and targets that are linear in them, apart from an error."""
    rng = np.random.default_rng(seed)
    deviations = rng.normal(size=(n_rows, n_columns))
    X = 0.85 / n_columns**0.5 + 0.03 * (6.0 / n_columns) ** 0.5 * deviations
    y = deviations.sum(axis=1) / n_columns**0.5 + 0.7 * rng.normal(size=n_rows)
    return X, np.clip(y, -5.0, 5.0)


def whitened_rows(n_fits):
    limits = {"as it is": (_whitening.TARGET_NOISE, _whitening.MAX_NOISE)}
    limits |= {"never": (0.1, 0.0), "limit of 2": (0.1, 2.0)}
    print(f"{'rows, columns, epsilon':24}{'loss':8}" + "".join(f"{name:>18}" for name in limits))
    for n_rows, n_columns, epsilon in ((10_000, 6, 1.0), (40_000, 20, 1.0), (100_000, 20, 10.0)):
        X, y = rows_that_hardly_vary(n_rows, n_columns, 0)
        X_test, y_test = rows_that_hardly_vary(8000, n_columns, 5)
        models = {
            "squares": DPLinearRegression(epsilon, target_bounds=(-5, 5), mechanism="gradient"),
            "Poisson": DPPoissonRegressor(epsilon, target_bounds=(0, 20), mechanism="gradient"),
        }
        for name, model in models.items():
            targets, test_targets = y, y_test
            if name == "Poisson":
                targets, test_targets = np.exp(y / 2.0), np.exp(y_test / 2.0)
            line = f"{f'{n_rows:,}, {n_columns}, {epsilon:g}':24}{name:8}"
            for _whitening.TARGET_NOISE, _whitening.MAX_NOISE in limits.values():
                scores = [
                    r2_score(test_targets, model.fit(X, targets).predict(X_test))
                    for _ in range(n_fits)
                ]
                line += f"{fmean(scores):10.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    choices_by_name = {
        "columns": scaled_columns,
        "features": centered_features,
        "whitening": whitened_rows,
    }
    choices_by_name[sys.argv[1]](repetitions)
