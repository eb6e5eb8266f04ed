"""Errors and coverage of private metrics (skdp.metrics, dp_evaluate).

python docs/benchmarks/metrics.py errors      mean absolute errors over 200 subsamples of 5,000 rows
python docs/benchmarks/metrics.py coverage    coverage of both intervals in 2,000 runs (30 minutes)
python docs/benchmarks/metrics.py coverage --runs 200
python docs/benchmarks/metrics.py coverage --tables california      only the table of numbers
python docs/benchmarks/metrics.py coverage --persons       by persons with one to four rows each

"calibration" is the mean over the bins of a report: at most eight of about equally many rows. Its
coverage is that of the intervals of all these bins.

The files are those of `_tables.py`, in the folder that SKDP_DATA names. Epsilon is .5 and delta 0
for neighbors under add/remove, as one charge for all metrics of a table.
"""

import argparse
import warnings

import numpy as np
from _tables import load, read_rows
from sklearn import metrics as sk
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp._data._persons import read_persons
from skdp.accounting import Guarantee, Neighbors
from skdp.metrics._counts import accuracy, balanced_accuracy
from skdp.metrics._releases import BinaryCounts, ErrorSums
from skdp.noise import RandomSource

EPSILON = 0.5
N_ROWS = 5_000
N_SUBSAMPLES = 200
N_BINS = 8
UNIFORM_EDGES = np.linspace(0.0, 1.0, N_BINS + 1)
TARGET_BOUNDS = (0.0, 500_001.0)


def scores_of_adult():
    """Return labels and probabilities of a logistic regression on Adult's test rows."""
    X, y, X_test, y_test = load("adult", bins=True)
    model = LogisticRegression(C=100, max_iter=500).fit(X, y)
    return y_test, model.predict_proba(X_test)[:, 1]


def simulated_scores(rate, n_rows, rng, separation=1.5):
    """Return labels and calibrated probabilities, for a public rate of positives."""
    y = (rng.random(n_rows) < rate).astype(int)
    values = rng.normal(size=n_rows) + separation * y
    logits = np.log(rate / (1.0 - rate)) + separation * values - separation**2 / 2
    return y, 1.0 / (1.0 + np.exp(-logits))


def california():
    """Return targets and predictions of a linear model on rows that it was not fitted to."""
    rows = read_rows("california_housing")
    names = [name for name in rows[0] if name not in ("target", "ocean_proximity")]
    X = np.array([[float(row[name] or 0.0) for name in names] for row in rows])
    y = np.array([float(row["target"]) for row in rows])
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = LinearRegression().fit(X[:8000], y[:8000])
    return y[8000:], model.predict(X[8000:])


def released_cells(y, scores, persons=None):
    """Return the released cells of a table, by persons if they are passed."""
    unit, n_units = ("row", len(y)) if persons is None else ("person", persons.n_persons)
    guarantee = Guarantee(epsilon=EPSILON, neighbors=Neighbors(relation="add_remove", unit=unit))
    plan = BinaryCounts.on_grid(n_units, guarantee, np.array([0, 1]), (0.0, 1.0))
    return plan.run((y, scores), RandomSource(), persons)


def released_sums(y, predicted):
    """Return the released sums of a table of numbers."""
    guarantee = Guarantee(epsilon=EPSILON, neighbors=Neighbors(relation="add_remove"))
    plan = ErrorSums(n_units=len(y), guarantee=guarantee, target_bounds=TARGET_BOUNDS)
    return plan.run((y, predicted), RandomSource())


def raw_calibration(y, scores, edges=UNIFORM_EDGES):
    """Return the fraction of positives of each bin, NaN for empty ones."""
    n_bins = len(edges) - 1
    bins = np.searchsorted(edges[1:-1], scores, side="left")
    totals = np.bincount(bins, minlength=n_bins)
    return np.bincount(bins, y, n_bins) / np.where(totals > 0, totals, np.nan)


def print_errors():
    """Print mean absolute errors against the raw rows."""
    rng = np.random.default_rng(0)
    tables = {
        "Adult (test rows)": scores_of_adult(),
        "simulated, 10 % positive": simulated_scores(0.1, 200_000, rng),
        "simulated, 1 % positive": simulated_scores(0.01, 200_000, rng),
    }
    print(
        "| table | AUC | average precision | accuracy | Brier | calibration | the same in bins ",
        end="",
    )
    print("of equal width | bins | AUC known to |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (labels, probabilities) in tables.items():
        errors = []
        widths = []
        n_bins = []
        for _ in range(N_SUBSAMPLES):
            rows = rng.choice(len(labels), N_ROWS, replace=False)
            y, scores = labels[rows], probabilities[rows]
            cells = released_cells(y, scores)
            area = cells.roc_auc()
            curve = cells.calibration_curve(N_BINS, "quantile")
            uniform = cells.calibration_curve(N_BINS)
            n_bins.append(len(curve.y))
            widths.append(np.ptp(area.noise_interval) / 2)
            errors.append(
                (
                    area - sk.roc_auc_score(y, scores),
                    cells.average_precision() - sk.average_precision_score(y, scores),
                    cells.at_threshold.score("accuracy", accuracy) - np.mean((scores > 0.5) == y),
                    cells.brier_score() - sk.brier_score_loss(y, scores),
                    np.nanmean(np.abs(curve.y - raw_calibration(y, scores, curve.bin_edges))),
                    np.nanmean(np.abs(uniform.y - raw_calibration(y, scores))),
                )
            )
        means = np.abs(errors).mean(axis=0)
        figures = " | ".join(f"{value:.4f}" for value in means)
        print(f"| {name} | {figures} | {np.mean(n_bins):.1f} ", end="")
        print(f"| ± {np.mean(widths):.3f} |", flush=True)
    targets, predictions = california()
    errors = []
    for _ in range(N_SUBSAMPLES):
        rows = rng.choice(len(targets), N_ROWS, replace=False)
        y = np.clip(targets[rows], *TARGET_BOUNDS)
        predicted = np.clip(predictions[rows], *TARGET_BOUNDS)
        sums = released_sums(y, predicted)
        errors.append(
            (
                sums.r2() - sk.r2_score(y, predicted),
                sums.root_mean_squared_error() / sk.root_mean_squared_error(y, predicted) - 1,
                sums.mean_absolute_error() / sk.mean_absolute_error(y, predicted) - 1,
            )
        )
    r2, rmse, mae = np.abs(errors).mean(axis=0)
    print(f"\ncalifornia_housing: R2 {r2:.4f}, RMSE {rmse:.2%}, MAE {mae:.2%} of their values")


def rows_of_persons(labels, n_persons, rng):
    """Return row numbers and person ids: one to four rows per person, all with one label."""
    first_rows = rng.integers(0, len(labels), n_persons)
    sizes = rng.integers(1, 5, n_persons)
    ids = np.repeat(np.arange(n_persons), sizes)
    label_of_row = labels[first_rows][ids]
    rows = np.empty(len(ids), dtype=np.int64)
    for label in (0, 1):
        is_of_label = label_of_row == label
        rows[is_of_label] = rng.choice(np.flatnonzero(labels == label), is_of_label.sum())
    return rows, ids


def print_coverage(n_runs, tables, by_person=False, n_rows=10_000):
    """Print the fraction of runs in which each interval contains the truth."""
    print("| positives | metric | noise | noise and sampling |")
    print("|---|---|---|---|")
    for rate in (0.5, 0.1, 0.01):
        if f"{rate:g}" not in tables:
            continue
        rng = np.random.default_rng(1)
        labels, probabilities = simulated_scores(rate, 4_000_000, rng)
        truth = raw_metrics(labels, probabilities)
        # The fractions in bins that depend on the release are those of fewer rows, which is fast.
        population = labels[:400_000], probabilities[:400_000]
        hits = {name: np.zeros(2) for name in truth}
        calibration = []
        for _ in range(n_runs):
            persons = weights = None
            if by_person:
                rows, ids = rows_of_persons(labels[:400_000], n_rows, rng)
                persons = read_persons(ids, len(ids))
                weights = 1.0 / np.bincount(ids)[ids]
            else:
                rows = rng.integers(0, len(labels), n_rows)
            y, scores = labels[rows], probabilities[rows]
            raw = raw_metrics(y, scores, weights)
            cells = released_cells(y, scores, persons)
            matrix = cells.at_threshold
            released = {
                "AUC": cells.roc_auc(),
                "average precision": cells.average_precision(),
                "accuracy": matrix.score("accuracy", accuracy),
                "balanced accuracy": matrix.score("balanced_accuracy", balanced_accuracy),
                "Brier": cells.brier_score(),
            }
            for name, score in released.items():
                low, high = score.noise_interval
                hits[name][0] += low <= raw[name] <= high
                low, high = score.interval
                hits[name][1] += low <= truth[name] <= high
            if by_person:
                continue
            curve = cells.calibration_curve(N_BINS, "quantile")
            fractions = (
                raw_calibration(y, scores, curve.bin_edges),
                raw_calibration(*population, curve.bin_edges),
            )
            intervals = (curve.noise_interval, curve.interval)
            calibration.append(
                [
                    (low <= fraction) & (fraction <= high)
                    for (low, high), fraction in zip(intervals, fractions, strict=True)
                ]
            )
        if calibration:
            hits["calibration"] = np.concatenate(calibration, axis=1).mean(axis=1) * n_runs
        for name, counts in hits.items():
            noise, both = counts / n_runs
            print(f"| {rate:.0%} | {name} | {noise:.1%} | {both:.1%} |", flush=True)
    if "california" not in tables or by_person:
        return
    targets, predictions = california()
    truth = raw_numbers(targets, predictions)
    hits = {name: np.zeros(2) for name in truth}
    rng = np.random.default_rng(2)
    for _ in range(n_runs):
        rows = rng.integers(0, len(targets), n_rows)
        sums = released_sums(targets[rows], predictions[rows])
        raw = raw_numbers(targets[rows], predictions[rows])
        released = {
            "R2": sums.r2(),
            "RMSE": sums.root_mean_squared_error(),
            "MAE": sums.mean_absolute_error(),
        }
        for name, score in released.items():
            low, high = score.noise_interval
            hits[name][0] += low <= raw[name] <= high
            low, high = score.interval
            hits[name][1] += low <= truth[name] <= high
    for name, counts in hits.items():
        noise, both = counts / n_runs
        print(f"| california | {name} | {noise:.1%} | {both:.1%} |")


def raw_metrics(y, scores, weights=None):
    """Return the metrics of raw rows, with `weights` of the rows if they are passed."""
    is_positive = scores > 0.5
    weighted = {"sample_weight": weights}
    return {
        "AUC": sk.roc_auc_score(y, scores, **weighted),
        "average precision": sk.average_precision_score(y, scores, **weighted),
        "accuracy": sk.accuracy_score(y, is_positive, **weighted),
        "balanced accuracy": sk.balanced_accuracy_score(y, is_positive, **weighted),
        "Brier": sk.brier_score_loss(y, scores, **weighted),
    }


def raw_numbers(y, predicted):
    """Return the metrics of raw numbers, clipped to the bounds."""
    y, predicted = (np.clip(values, *TARGET_BOUNDS) for values in (y, predicted))
    return {
        "R2": sk.r2_score(y, predicted),
        "RMSE": sk.root_mean_squared_error(y, predicted),
        "MAE": sk.mean_absolute_error(y, predicted),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["errors", "coverage"])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--tables", nargs="+", default=["0.5", "0.1", "0.01", "california"])
    parser.add_argument("--persons", action="store_true", help="the unit is a person")
    arguments = parser.parse_args()
    if arguments.part == "errors":
        print_errors()
    else:
        print_coverage(arguments.runs, arguments.tables, arguments.persons)
