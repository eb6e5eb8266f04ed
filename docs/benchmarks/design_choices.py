"""Two automatic choices of models, each beside its alternatives, on held-out training rows.

Usage: SKDP_DATA=folder python docs/benchmarks/design_choices.py columns [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py features [fits]

"columns": the AUC of `DPSGDClassifier` whose columns are never scaled, are scaled if a class is
rare, or are always scaled, on one half of the training rows for fits to the other half (numbers in
bins, categories one-hot). "features": the R² of `DPAdditiveRegressor` whose smooth features keep
the constant or leave it out, on three in ten training rows of the nine tables of numbers of
``many_tables.py``. delta is 1e-5, or 1 / n² of each table; noise is drawn afresh in each fit.
"""

import os
import sys
import warnings
from statistics import fmean, stdev

import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier
from skdp.gam._plan import AdditiveFit
from skdp.linear_model import _row_center


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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    {"columns": scaled_columns, "features": centered_features}[sys.argv[1]](repetitions)
