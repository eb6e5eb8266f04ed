"""Processor time and test loss of linear models with automatic settings, beside scikit-learn's.

Usage: python docs/benchmarks/automatic_choices.py [--rows n ...] [--fits n] [--models name ...]
       [--epsilon e ...] [--table name] [--save FILE] [--unwhitened]
       python docs/benchmarks/automatic_choices.py --compare FILE FILE

Tables are simulated: 20 correlated columns of unequal variances, scaled so that few rows are longer
than the declared bound. Each fit draws new rows; the rows and the noise depend only on the number
of the fit, so that fits of two versions are paired. The columns of the table are medians of seconds
of the process, which other work on the machine hardly touches, their ratio, and mean test losses
(log loss, mean hinge or squared hinge loss, half the squared error, half the deviance) in excess of
scikit-learn's, in units of the sampling error: 20 / (2 n) times the loss's variance per unit of
curvature (1 for classes and for counts, the residual variance for squared errors).

``--table`` selects other rows, to which only regressors are fitted: ``correlated`` columns, whose
variances differ by a factor of 10^5 and which are all of use, ``heavy`` tails (t distributions with
three degrees of freedom), and, with ``SKDP_DATA``, the real tables ``california_housing``,
``credit_default`` and ``bank_marketing``. Fits to the training rows of a real table differ only in
their noise; its target is in [0, 1], and only models of squared errors are fitted.
``--unwhitened`` fits models to rows that are never whitened.
``--compare`` prints mean differences of the test losses of two saved runs with their standard
errors, in the same units.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import time
import warnings

import numpy as np
from _tables import load, read_rows
from scipy.special import expit
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error

import skdp
from skdp.linear_model import _whitening

N_COLUMNS = 20
N_TEST = 200_000
DATA_NORM = 3.0
TARGET_BOUNDS = (-4.0, 4.0)
COUNT_BOUNDS = (0.0, 20.0)
NOISE_STD = 0.5
# Columns of california_housing and their public ranges.
CALIFORNIA = {
    "longitude": (-125.0, -114.0),
    "latitude": (32.0, 42.0),
    "housing_median_age": (0.0, 52.0),
    "total_rooms": (0.0, 10_000.0),
    "total_bedrooms": (0.0, 2000.0),
    "population": (0.0, 5000.0),
    "households": (0.0, 2000.0),
    "median_income": (0.0, 15.0),
}
HOUSE_VALUES = (0.0, 500_001.0)


def table(n_rows, seed):
    """Return rows, whose norms are mostly below `DATA_NORM`, and their linear predictor."""
    weights_rng = np.random.default_rng(0)
    mixing = weights_rng.normal(size=(N_COLUMNS, N_COLUMNS)) / np.sqrt(N_COLUMNS)
    mixing = np.eye(N_COLUMNS) + 0.5 * mixing
    scales = np.geomspace(1.0, 0.2, N_COLUMNS)
    weights = weights_rng.normal(size=N_COLUMNS) / scales
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n_rows, N_COLUMNS)) @ mixing) * scales
    X += 0.5 * scales
    score = 0.25 * (X @ weights)
    return X * (DATA_NORM / 4.0), score


def correlated_table(n_rows, seed):
    """Return rows whose directions of little variance say as much as the others."""
    weights_rng = np.random.default_rng(5)
    rotation, _ = np.linalg.qr(weights_rng.normal(size=(N_COLUMNS, N_COLUMNS)))
    values = np.random.default_rng(seed).normal(size=(n_rows, N_COLUMNS))
    score = values @ (0.25 * weights_rng.normal(size=N_COLUMNS))
    return 0.8 * (values * np.geomspace(1.0, 0.003, N_COLUMNS)) @ rotation.T, score


def heavy_table(n_rows, seed):
    """Return rows many of which are much longer than `DATA_NORM`, and their linear predictor."""
    X, score = table(n_rows, seed)
    lengths = 0.4 * np.random.default_rng([*seed, 2]).standard_t(3, size=n_rows)
    return X * lengths[:, np.newaxis], score * lengths


SIMULATED = {"plain": table, "correlated": correlated_table, "heavy": heavy_table}


def real_table(name):
    """Return X, y, X_test, y_test: rows of norm at most 1, and targets in [0, 1]."""
    if name != "california_housing":
        return load(name)
    rows = read_rows(name)
    columns = []
    for column, (low, high) in [*CALIFORNIA.items(), ("target", HOUSE_VALUES)]:
        values = np.array([float(row[column] or low) for row in rows])
        columns.append((np.clip(values, low, high) - low) / (high - low))
    X = np.column_stack(columns[:-1])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    order = np.random.default_rng(0).permutation(len(X))
    cut = 3 * len(X) // 4
    train, test = order[:cut], order[cut:]
    return X[train], columns[-1][train], X[test], columns[-1][test]


def targets(score, kind, seed):
    rng = np.random.default_rng([seed, 1])
    if kind == "classes":
        return (rng.random(len(score)) < expit(2.0 * score - 1.0)).astype(int)
    if kind == "counts":
        return rng.poisson(np.exp(np.clip(0.5 * score + 0.3, None, 3.0))).astype(float)
    return score + NOISE_STD * rng.normal(size=len(score))


def hinge(model, X, y):
    return float(np.mean(np.maximum(0.0, 1.0 - (2 * y - 1) * model.decision_function(X))))


def squared_hinge(model, X, y):
    margins = np.maximum(0.0, 1.0 - (2 * y - 1) * model.decision_function(X))
    return float(np.mean(margins**2))


def nats(model, X, y):
    return log_loss(y, model.predict_proba(X))


def half_squared_error(model, X, y):
    return 0.5 * mean_squared_error(y, model.predict(X))


def half_deviance(model, X, y):
    return 0.5 * mean_poisson_deviance(y, model.predict(X))


def cases(epsilon, data_norm=DATA_NORM, target_bounds=TARGET_BOUNDS):
    """Return the targets, the loss, the model and scikit-learn's model, by name."""
    common = {"epsilon": epsilon, "data_norm": data_norm}
    two = {**common, "classes": [0, 1]}
    bounded = {**common, "target_bounds": target_bounds}
    counts = {**common, "target_bounds": COUNT_BOUNDS}
    squares = "numbers", half_squared_error
    return {
        "DPRidge": (*squares, skdp.DPRidge(**bounded), Ridge()),
        "DPLinearRegression": (*squares, skdp.DPLinearRegression(**bounded), LinearRegression()),
        "DPSGDRegressor": (*squares, skdp.DPSGDRegressor(**bounded), SGDRegressor(random_state=0)),
        "DPPoissonRegressor": (
            "counts",
            half_deviance,
            skdp.DPPoissonRegressor(**counts),
            PoissonRegressor(alpha=0.0),
        ),
        "DPLogisticRegression": (
            "classes",
            nats,
            skdp.DPLogisticRegression(**two),
            LogisticRegression(),
        ),
        "DPSGDClassifier": (
            "classes",
            nats,
            skdp.DPSGDClassifier(loss="log_loss", **two),
            SGDClassifier(loss="log_loss", random_state=0),
        ),
        "DPLinearSVC": (
            "classes",
            hinge,
            skdp.DPLinearSVC(**two),
            SGDClassifier(loss="hinge", random_state=0),
        ),
    }


def seconds(model, X, y):
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def measure(n_rows, epsilon, names, n_fits, table_name):
    """Return the seconds and test losses of both models of each case."""
    results = {}
    for fit in range(n_fits):
        X, score = SIMULATED[table_name](n_rows, [n_rows, fit])
        X_test, score_test = SIMULATED[table_name](N_TEST, [n_rows, fit, 1])
        for name, (kind, loss, model, sibling) in cases(epsilon).items():
            is_left_out = table_name != "plain" and kind == "classes"
            if (names and name not in names) or is_left_out:
                continue
            y, y_test = targets(score, kind, fit), targets(score_test, kind, 10_000 + fit)
            model.set_params(random_state=fit)
            row = results.setdefault(name, [])
            times = seconds(model, X, y), seconds(sibling, X, y)
            row.append([*times, loss(model, X_test, y_test), loss(sibling, X_test, y_test)])
    return results


def measure_real(table_name, epsilon, names, n_fits):
    """Return the same for the regressors of squared errors on a real table, and its shape."""
    X, y, X_test, y_test = real_table(table_name)
    results = {}
    for name, (kind, loss, model, sibling) in cases(epsilon, 1.0, (0.0, 1.0)).items():
        if kind != "numbers" or (names and name not in names):
            continue
        for fit in range(n_fits):
            model.set_params(random_state=fit)
            times = seconds(model, X, y), seconds(sibling, X, y)
            losses = loss(model, X_test, y_test), loss(sibling, X_test, y_test)
            results.setdefault(name, []).append([*times, *losses])
    return results, X.shape


def sampling_error(name, n_rows):
    error = N_COLUMNS / (2.0 * n_rows)
    if name in ("DPRidge", "DPLinearRegression", "DPSGDRegressor"):
        error *= NOISE_STD**2
    return error


def sampling_error_of(results, shape):
    """Return the sampling error of squared errors with the residual variance of scikit-learn's."""
    n_rows, n_columns = shape
    return n_columns / n_rows * float(np.mean(np.array(results)[:, 3]))


def compare(before, after):
    print("| model | rows | epsilon | seconds before | after | loss, sampling errors |")
    print("|---|---|---|---|---|---|")
    for key in before:
        if key not in after:
            continue
        name, n_rows, epsilon = key.split()
        unit, *first = before[key]
        _, *second = after[key]
        first, second = np.array(first), np.array(second)
        n_fits = min(len(first), len(second))
        difference = (second[:n_fits] - first[:n_fits])[:, 2] / unit
        error = difference.std(ddof=1) / np.sqrt(n_fits)
        times = np.median(first[:, 0]), np.median(second[:, 0])
        print(
            f"| {name} | {n_rows} | {epsilon} | {times[0]:.3g} | {times[1]:.3g} | "
            f"{difference.mean():+.2f} ± {error:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--table", default="plain")
    parser.add_argument("--save")
    parser.add_argument("--unwhitened", action="store_true")
    parser.add_argument("--compare", nargs=2)
    options = parser.parse_args()
    if options.compare:
        compare(*(json.load(open(name)) for name in options.compare))
        return
    if options.unwhitened:
        _whitening.MAX_NOISE = 0.0
    warnings.simplefilter("ignore")
    saved = {}
    print("| model | rows | epsilon | seconds | scikit-learn | ratio | loss, sampling errors |")
    print("|---|---|---|---|---|---|---|")
    is_real = options.table not in SIMULATED
    for n_rows in [0] if is_real else options.rows:
        for epsilon in options.epsilon:
            if is_real:
                table_args = options.table, epsilon, options.models, options.fits
                results, shape = measure_real(*table_args)
            else:
                shape = n_rows, N_COLUMNS
                results = measure(n_rows, epsilon, options.models, options.fits, options.table)
            for name, rows in results.items():
                unit = sampling_error(name, n_rows) if n_rows else sampling_error_of(rows, shape)
                saved[f"{name} {shape[0]} {epsilon:g}"] = [unit, *rows]
                own, peer = np.median(rows, axis=0)[:2]
                mean = np.mean(rows, axis=0)
                excess = (mean[2] - mean[3]) / unit
                print(
                    f"| {name} | {shape[0]} | {epsilon:g} | {own:.3g} | {peer:.3g} | "
                    f"{own / peer:.2f} | {excess:+.2f} |",
                    flush=True,
                )
            if options.save:
                with open(options.save, "w") as file:
                    json.dump(saved, file)


if __name__ == "__main__":
    main()
