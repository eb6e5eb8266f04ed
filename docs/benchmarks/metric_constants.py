"""Constants of private metrics, compared on training rows.

Usage: SKDP_DATA=folder nice python docs/benchmarks/metric_constants.py [subject] [draws]
The subject is grid (the default), factors or thresholds.

`grid` compares the weight of probabilities and the factor of the number of cells in
`skdp.metrics._grid`, and `factors` those of the sums of a regression in `skdp.metrics._statistics`.
`thresholds` compares grids and weights of the logistic fit for `DPTunedThresholdClassifierCV`, by
the balanced accuracy that is lost against the best threshold on other rows, in thousandths.

A logistic or linear regression is fitted to one half of a table's training rows, and its metrics
are released for random subsamples of the other half: no row on which the documentation reports an
error is read here. Simulated tables have other seeds than those in ``metrics.py``. All settings are
applied to the same subsamples. The score of a setting is the geometric mean, over tables and
metrics, of its mean absolute error divided by the smallest error of any setting.
"""

import sys
import warnings
from collections import defaultdict
from itertools import product

import numpy as np
from _tables import load, read_rows
from metrics import N_BINS, TARGET_BOUNDS, raw_calibration, simulated_scores
from scipy.special import expit
from sklearn import metrics as sk
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPLinearSVC, DPLogisticRegression, DPSGDClassifier
from skdp.accounting import Guarantee, Neighbors
from skdp.mechanisms import LaplaceMechanism
from skdp.metrics import _grid
from skdp.metrics._binary import average_precision, brier_score, roc_auc
from skdp.metrics._counts import balanced_accuracy
from skdp.metrics._releases import BinaryCounts, ErrorSums
from skdp.metrics._statistics import REGRESSION_FACTORS
from skdp.model_selection import _tuned_threshold
from skdp.model_selection._score_cells import ScoreCells
from skdp.noise import RandomSource

N_ROWS = (2_000, 5_000, 15_000)
EPSILONS = (0.2, 0.5, 2.0)
PROBABILITY_WEIGHTS = (0.7, 0.8, 0.9, 0.95, 1.0)
CELLS_FACTORS = (0.5, 0.7, 0.9, 1.25, 1.75)
# Factors of the absolute error, y and y^2 that are compared; that of the squared error is 1. The
# other five, on which only standard errors depend, keep their ratio to each other.
ABSOLUTE = (0.3, 0.45, 0.6)
FIRST = (0.1, 0.15, 0.25)
SECOND = (0.15, 0.25, 0.4)
FOURTH = (1.0,)
# Factors of the number of cells for thresholds, and largest weights of the logistic fit.
THRESHOLD_FACTORS = (1.75, 3.0, 5.0)
LOGISTIC_WEIGHTS = (0.0, 0.5, 1.0)


def scored_tables():
    """Return labels and probabilities of rows that are training rows, but not the model's own."""
    tables = {}
    for name in ("adult", "bank_marketing", "credit_default"):
        X, y, _, _ = load(name, bins=True)
        half = len(y) // 2
        model = LogisticRegression(C=100, max_iter=500).fit(X[:half], y[:half])
        tables[name] = y[half:], model.predict_proba(X[half:])[:, 1]
    rng = np.random.default_rng(7)
    for rate in (0.5, 0.1, 0.03, 0.01):
        tables[f"simulated {rate}"] = simulated_scores(rate, 60_000, rng)
    return tables


def errors_of_grid(labels, probabilities, guarantee, setting, source):
    """Return the absolute error of each metric that depends on the grid, or NaN."""
    weight, factor = setting
    n_cells = _grid.number_of_cells(len(labels), guarantee, factor)
    _grid.PROBABILITY_WEIGHT = weight
    edges = _grid.probability_edges(n_cells, (0.5,))
    plan = BinaryCounts(
        sizes=(2 * (len(edges) + 1),),
        guarantee=guarantee,
        n_units=len(labels),
        edges=edges,
        score_bounds=(0.0, 1.0),
        classes=np.array([0, 1]),
    )
    counts = plan.statistics((labels, probabilities))
    noisy = plan.mechanism.release(counts, random_state=source).astype(float).reshape(2, -1)
    middles = _grid.cell_probabilities(plan.edges)
    bins = np.searchsorted(plan.edges, np.arange(1, N_BINS) / N_BINS) + 1
    binned = np.maximum(np.add.reduceat(noisy, np.concatenate([[0], bins]), axis=1), 0.0)
    curve = binned[1] / np.maximum(binned.sum(axis=0), 1.0)
    raw = raw_calibration(labels, probabilities)
    weights = np.histogram(probabilities, np.linspace(0, 1, N_BINS + 1))[0] / len(labels)
    return {
        "AUC": abs(np.clip(roc_auc(noisy), 0, 1) - sk.roc_auc_score(labels, probabilities)),
        "average precision": abs(
            np.clip(average_precision(noisy), 0, 1)
            - sk.average_precision_score(labels, probabilities)
        ),
        "Brier": abs(brier_score(noisy, middles) - sk.brier_score_loss(labels, probabilities)),
        "calibration": np.nansum(weights * np.abs(curve - raw)),
    }


def compare_grids(n_draws):
    """Print the score of each weight of probabilities and factor of the number of cells."""
    errors = defaultdict(list)
    tables = scored_tables()
    settings = list(product(PROBABILITY_WEIGHTS, CELLS_FACTORS))
    for name, n_rows, epsilon in product(tables, N_ROWS, EPSILONS):
        labels, probabilities = tables[name]
        if n_rows > len(labels):
            continue
        guarantee = Guarantee(epsilon=epsilon, neighbors=Neighbors(relation="add_remove"))
        rng = np.random.default_rng(1)
        for draw in range(n_draws):
            rows = rng.choice(len(labels), n_rows, replace=False)
            if labels[rows].min() == labels[rows].max():
                continue
            for setting in settings:
                found = errors_of_grid(
                    labels[rows], probabilities[rows], guarantee, setting, RandomSource(draw)
                )
                for metric, error in found.items():
                    errors[(name, n_rows, epsilon, metric), setting].append(error)
    print_scores(errors, settings)


def compare_factors(n_draws):
    """Print the score of factors of the sums of a regression."""
    records = [row for row in read_rows("california_housing")]
    names = [name for name in records[0] if name not in ("target", "ocean_proximity")]
    X = np.array([[float(row[name] or 0.0) for name in names] for row in records])
    y = np.array([float(row["target"]) for row in records])
    # The same order as in metrics.py, whose scored rows begin at 8,000.
    order = np.random.default_rng(0).permutation(len(y))[:8_000]
    X, y = X[order], y[order]
    model = LinearRegression().fit(X[:2_500], y[:2_500])
    rng = np.random.default_rng(8)
    linear = rng.normal(size=(6_000, 5))
    amounts = rng.gamma(1.0, 20_000.0, 6_000)
    tables = {
        "california_housing": (y[2_500:], model.predict(X[2_500:])),
        "simulated": (
            250_000 + 50_000 * linear.sum(axis=1),
            250_000 + 50_000 * linear[:, :4].sum(axis=1),
        ),
        "simulated, skewed": (amounts, amounts * rng.uniform(0.3, 1.5, 6_000)),
    }
    settings = [
        (1.0, a, f, s, *(k * factor for factor in REGRESSION_FACTORS[4:]))
        for a, f, s, k in product(ABSOLUTE, FIRST, SECOND, FOURTH)
    ]
    assert REGRESSION_FACTORS in settings
    errors = defaultdict(list)
    for (name, (targets, predictions)), n_rows, epsilon in product(
        tables.items(), (1_000, 5_000), EPSILONS
    ):
        guarantee = Guarantee(epsilon=epsilon, neighbors=Neighbors(relation="add_remove"))
        rng = np.random.default_rng(2)
        for draw in range(n_draws):
            rows = rng.choice(len(targets), n_rows, replace=False)
            actual = np.clip(targets[rows], *TARGET_BOUNDS)
            predicted = np.clip(predictions[rows], *TARGET_BOUNDS)
            for setting in settings:
                found = errors_of_sums(actual, predicted, guarantee, setting, RandomSource(draw))
                for metric, error in found.items():
                    errors[(name, n_rows, epsilon, metric), setting].append(error)
    print_scores(errors, settings)


def errors_of_sums(actual, predicted, guarantee, factors, source):
    """Return the absolute error of each metric of a regression, relative where it has a unit."""

    class Plan(ErrorSums):
        pass

    Plan.factors = factors
    plan = Plan(n_units=len(actual), guarantee=guarantee, target_bounds=TARGET_BOUNDS)
    noisy = plan.mechanism.release(plan.statistics((actual, predicted)), random_state=source)
    squared, absolute, first, second, *_ = plan.uncentered(noisy) / len(actual)
    width = TARGET_BOUNDS[1] - TARGET_BOUNDS[0]
    # The error is in units of the width, and the target in units of half of it.
    r2 = 1.0 - 4.0 * squared / max(second - first**2, 1e-3)
    mean_squared = sk.mean_squared_error(actual, predicted) / width**2
    mean_absolute = sk.mean_absolute_error(actual, predicted) / width
    return {
        "R2": abs(np.clip(r2, -1, 1) - np.clip(sk.r2_score(actual, predicted), -1, 1)),
        "MSE": abs(squared - mean_squared) / mean_squared,
        "MAE": abs(absolute - mean_absolute) / mean_absolute,
    }


def scored_private_models():
    """Yield the label and the scores of held-out rows and of other rows, for private models.

    All are training rows. Fractions of positives are 1, 10 and 30 %, of fewer rows the more.
    """
    rng = np.random.default_rng(3)
    tables = {name: load(name)[:2] for name in ("adult", "bank_marketing", "credit_default")}
    X = np.clip(rng.normal(size=(300_000, 8)), -4.0, 4.0) / np.sqrt(32.0)
    scores = X @ np.array([8.0, -6.0, 6.0, 3.0, 3.0, 0.0, 0.0, 0.0])
    tables["simulated"] = X, (rng.random(len(X)) < expit(scores - 4.0)).astype(int)
    for name, (X, y) in tables.items():
        for rate, n_rows in ((0.01, 50_000), (0.1, 10_000), (0.3, 4_000)):
            parts = []
            thirds = np.array_split(rng.permutation(len(y)), 3)
            for third, size in zip(thirds, (3 * n_rows // 4, n_rows // 4, 40_000), strict=True):
                n_positive = int(rate * size)
                positives = rng.choice(third[y[third] == 1], n_positive)
                negatives = rng.choice(third[y[third] == 0], size - n_positive)
                parts.append(np.concatenate([positives, negatives]))
            for model in (DPLogisticRegression(), DPSGDClassifier(), DPLinearSVC()):
                model.set_params(epsilon=1.0, delta=1e-6).fit(X[parts[0]], y[parts[0]])
                bounds = None if isinstance(model, DPLinearSVC) else (0.0, 1.0)
                tested = []
                for rows in parts[1:]:
                    scores = model.decision_function(X[rows])
                    tested += [y[rows], scores if bounds is None else expit(scores)]
                yield f"{name} {rate}", bounds, tested


def compare_thresholds(n_draws):
    """Print the lost balanced accuracy of each factor of the cells and weight of the fit."""
    settings = list(product(THRESHOLD_FACTORS, LOGISTIC_WEIGHTS))
    guarantee = Guarantee(epsilon=1.0, neighbors=Neighbors(relation="add_remove"))
    losses = defaultdict(list)
    for name, bounds, (labels, scores, test_labels, test_scores) in scored_private_models():
        false_rates, true_rates, cuts = sk.roc_curve(
            test_labels, test_scores, drop_intermediate=False
        )
        gains = (true_rates - false_rates) / 2.0
        for setting in settings:
            factor, _tuned_threshold.MAX_LOGISTIC_WEIGHT = setting
            edges = _grid.probability_edges(_grid.number_of_cells(len(labels), guarantee, factor))
            cells = _grid.score_cells(scores, edges, bounds) + labels * (len(edges) + 1)
            counts = np.bincount(cells, minlength=2 * (len(edges) + 1))
            mechanism = LaplaceMechanism(1.0, 1.0)
            for draw in range(n_draws):
                noisy = mechanism.release(counts, random_state=RandomSource(draw))
                bins = ScoreCells(
                    counts=noisy.astype(float).reshape(2, -1),
                    count_std=mechanism.deviation(len(counts)),
                    edges=edges,
                    score_bounds=bounds,
                ).bins()
                values, stds = _tuned_threshold.threshold_scores(bins, balanced_accuracy)
                threshold = 0.0 if bounds is None else 0.5
                if bins.n_bins > 1:
                    threshold = bins.thresholds[np.argmax(values - stds)]
                reached = gains[np.sum(cuts >= threshold) - 1]
                losses[name, setting].append(1000.0 * (gains.max() - reached))
    names = list(dict.fromkeys(name for name, _ in losses))
    for setting in settings:
        means = [np.mean(losses[name, setting]) for name in names]
        figures = " | ".join(f"{value:.1f}" for value in (*means, np.mean(means)))
        print(f"| {setting} | {figures} |")
    print("tables:", ", ".join(names), "and their mean")


def print_scores(errors, settings):
    """Print the mean error of each setting relative to the smallest, by metric and over all."""
    cells = sorted({cell for cell, _ in errors}, key=str)
    means = np.array([[np.mean(errors[cell, s]) for s in settings] for cell in cells])
    ratios = np.log(means / means.min(axis=1, keepdims=True))
    metrics = list(dict.fromkeys(cell[-1] for cell in cells))
    print("| setting |", " | ".join([*metrics, "all"]), "|")
    print("|---|" + "---|" * (len(metrics) + 1))
    for i, setting in sorted(enumerate(settings), key=lambda pair: ratios[:, pair[0]].mean()):
        by_metric = [
            np.exp(np.mean([ratios[j, i] for j, cell in enumerate(cells) if cell[-1] == metric]))
            for metric in metrics
        ]
        figures = " | ".join(f"{value:.3f}" for value in (*by_metric, np.exp(ratios[:, i].mean())))
        print(f"| {setting} | {figures} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    subject = sys.argv[1] if len(sys.argv) > 1 else "grid"
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    subjects = {"grid": compare_grids, "factors": compare_factors, "thresholds": compare_thresholds}
    subjects[subject](draws)
