"""Automatic choices of models, each beside its alternatives.

Usage: SKDP_DATA=folder python docs/benchmarks/design_choices.py columns [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py features [fits]
       SKDP_TABLES=folder python docs/benchmarks/design_choices.py trends [fits]
       python docs/benchmarks/design_choices.py dependent [fits]
       python docs/benchmarks/design_choices.py whitening [fits]
       python docs/benchmarks/design_choices.py classes [fits]

"columns": the AUC of `DPSGDClassifier` whose columns are never scaled, are scaled if a class is
rare, or are always scaled, on one half of the training rows for fits to the other half (numbers in
bins, categories one-hot). "features": the R² of `DPAdditiveRegressor` whose smooth features keep
the constant or leave it out, on three in ten training rows of the nine tables of numbers of
``many_tables.py``. "trends": the AUC or R² of additive models on the tables of ``many_tables.py``
with trends that keep the norm of every row within 1, or with longer trends and shortened rows.
"dependent": the R² of `DPAdditiveRegressor` whose trends are never longer, always, or only with
much noise, on 1,400 simulated rows with 120 dependent columns.
"whitening": the R² of regressors as they are and without whitening, on 10,000
simulated rows that hardly vary (the norm of their mean is .85, their mean squared distance from it
.0054), of which one column varies 33 times as much as the others and says nothing, or with heavy
tails (Student's t with 2.5 degrees of freedom, bent targets). "classes": how the AUC and the
expected loss (in sampling errors, the number of columns / 2n) of logistic regression and of support
vector machines change if rows are whitened instead of centered, for 40,000 simulated rows with 20
columns of five kinds, of which three in ten or one in 100 are positive; both fits of a pair have
the same rows and seed. delta is 1e-5, 1 / n² of each table, or the default; except for "classes",
noise is drawn afresh in each fit.
"""

import itertools
import os
import sys
import warnings
from statistics import fmean, stdev

import numpy as np
from scipy.special import expit
from sklearn.metrics import r2_score, roc_auc_score

from skdp import (
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPPoissonRegressor,
    DPSGDClassifier,
)
from skdp.gam import _blocks
from skdp.gam._plan import AdditiveFit
from skdp.linear_model import _row_center, _whitening

# Number of columns of the tables of classes, and the limit of the noise with which they are
# whitened.
N_COLUMNS = 20
LIMIT = _whitening.MAX_NOISE


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


def trends_of_dependent_columns(n_fits):
    def make_rows(rng, n_rows):
        factors = rng.normal(size=(n_rows, 10))
        mixed = factors @ np.random.default_rng(99).normal(size=(10, 120)) / 10**0.5
        X = np.clip((mixed + 0.7 * rng.normal(size=mixed.shape)) / 3.6, -1.0, 1.0)
        return X, 0.45 * factors[:, :5].sum(axis=1)

    # The largest factor, and the mean square of residuals that determines it.
    usual = _blocks.MAX_TREND_FACTOR, _blocks.RESIDUAL_SQUARE
    choices = {"never": (1.0, usual[1]), "always": (usual[0], 1e-12), "as it is": usual}
    X_test, signal = make_rows(np.random.default_rng(12345), 10_000)
    y_test = signal + 0.8 * np.random.default_rng(1).normal(size=len(signal))
    print(f"{'epsilon':>8}" + "".join(f"{name:>18}" for name in choices))
    for epsilon in (3.0, 10.0, 100.0, 1000.0):
        line = f"{epsilon:8g}"
        for choice in choices.values():
            _blocks.MAX_TREND_FACTOR, _blocks.RESIDUAL_SQUARE = choice
            scores = []
            for fit in range(n_fits):
                rng = np.random.default_rng([fit, 3])
                X, signal = make_rows(rng, 1_400)
                y = np.clip(signal + 0.8 * rng.normal(size=len(signal)), -5.0, 5.0)
                model = DPAdditiveRegressor(
                    epsilon, delta=1e-6, bounds=(-1, 1), target_bounds=(-5, 5), interactions=0
                )
                scores.append(r2_score(y_test, model.fit(X, y).predict(X_test)))
            line += f"{fmean(scores):10.3f} ± {stdev(scores) / n_fits**0.5:.3f}"
        print(line, flush=True)


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


def independent_columns(rng, n_rows):
    values = np.clip(rng.normal(size=(n_rows, N_COLUMNS)), -4.0, 4.0)
    weights = np.random.default_rng(1).normal(size=N_COLUMNS) / N_COLUMNS**0.5
    return values / 7.5, 2.4 * values @ weights


def two_columns_of_use(rng, n_rows):
    X, _ = independent_columns(rng, n_rows)
    return X, 1.7 * 7.5 * (X[:, 0] + X[:, 1])


def one_large_column(rng, n_rows):
    X, score = independent_columns(rng, n_rows)
    score -= X[:, 0] * (score @ X[:, 0]) / (X[:, 0] @ X[:, 0])
    return X * np.append(2.3, np.full(N_COLUMNS - 1, 0.25)), score


def heavy_tails(rng, n_rows):
    values = np.clip(rng.standard_t(2.5, size=(n_rows, N_COLUMNS)), -50.0, 50.0)
    weights = np.random.default_rng(1).normal(size=N_COLUMNS) / N_COLUMNS**0.5
    return values / 32.0, 3.1 * np.tanh(values) @ weights


def two_categories(rng, n_rows):
    """Return one-hot columns of two categorical columns with ten unequal frequencies each."""
    effects_rng = np.random.default_rng(2)
    frequencies = np.arange(1.0, 11.0) ** -1.5
    frequencies /= frequencies.sum()
    columns, score = [], 0.0
    for _ in range(2):
        codes = rng.choice(10, size=n_rows, p=frequencies)
        columns.append(np.eye(10)[codes])
        score = score + effects_rng.normal(size=10)[codes]
    return np.hstack(columns) / 2.0**0.5, 1.13 * score


def with_rate(score, rate):
    """Return the probabilities of the second class of a logistic model with a mean rate."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2.0
        is_below = expit(score + middle).mean() < rate
        low, high = (middle, high) if is_below else (low, middle)
    return low, expit(score + low)


def expected_scores(model, X, p):
    """Return the expected AUC and loss of a classifier where class 1 has the probabilities p."""
    score = model.decision_function(X)
    labels = np.repeat([1, 0], len(p))
    auc = roc_auc_score(labels, np.tile(score, 2), sample_weight=np.append(p, 1.0 - p))
    losses = np.logaddexp(0.0, -score), np.logaddexp(0.0, score)
    if isinstance(model, DPLinearSVC):
        losses = np.maximum(0.0, 1.0 - score), np.maximum(0.0, 1.0 + score)
    return auc, np.mean(p * losses[0] + (1.0 - p) * losses[1])


def whitened_classes(n_fits):
    n_rows = 40_000
    sampling_error = N_COLUMNS / (2.0 * n_rows)
    models = {"log_loss": DPSGDClassifier(loss="log_loss"), "hinge": DPLinearSVC()}
    tables = (
        independent_columns,
        two_columns_of_use,
        one_large_column,
        heavy_tails,
        two_categories,
    )
    print(
        f"{'table':20}{'positive':>9}{'epsilon':>8} {'loss':10}{'AUC':>6}"
        f"{'d AUC':>16}{'d loss':>14}"
    )
    for make_rows, rate, epsilon in itertools.product(tables, (0.3, 0.01), (0.3, 1.0)):
        X_test, score_test = make_rows(np.random.default_rng(12345), 20_000)
        intercept, p_test = with_rate(score_test, rate)
        for name, model in models.items():
            pairs = []
            for fit in range(n_fits):
                rng = np.random.default_rng([fit, 7])
                X, score = make_rows(rng, n_rows)
                y = (rng.random(n_rows) < expit(score + intercept)).astype(int)
                model.set_params(epsilon=epsilon, random_state=fit)
                pair = []
                for _whitening.MAX_NOISE in (0.0, LIMIT):
                    pair.append(expected_scores(model.fit(X, y), X_test, p_test))
                pairs.append(pair)
            scores = np.array(pairs)
            change = (scores[:, 1] - scores[:, 0]) / [1.0, sampling_error]
            mean, error = change.mean(axis=0), change.std(axis=0, ddof=1) / n_fits**0.5
            print(
                f"{make_rows.__name__:20}{rate:9g}{epsilon:8g} {name:10}"
                f"{scores[:, 0, 0].mean():6.3f}{mean[0]:+9.4f} ± {error[0]:.4f}"
                f"{mean[1]:+8.2f} ± {error[1]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    choices_by_name = {
        "columns": scaled_columns,
        "features": centered_features,
        "trends": longer_trends,
        "dependent": trends_of_dependent_columns,
        "whitening": whitened_rows,
        "classes": whitened_classes,
    }
    choices_by_name[sys.argv[1]](repetitions)
