"""How good `dp_describe` is: its standard errors, its time, its quantiles and its schema.

Usage: SKDP_DATA=folder [SKDP_TABLES=folder] python docs/benchmarks/describe.py [part ...]

Parts: ``errors`` (fraction of all released numbers beyond three standard errors, by table),
``time`` (processor seconds for 100,000 rows and 15 columns), ``quantiles`` (errors, compared with
`dp_quantile` at the same price) and ``schema`` (AUC of the default model with the
schema that was found, and with the declared one; ten fits). Epsilon is .5, delta 1e-6, add/remove.
Noise is drawn afresh in each run.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parent))
from _tables import SCHEMAS

from skdp import DPAdditiveClassifier
from skdp.stats import _describe_plan, dp_describe, dp_quantile
from skdp.stats._profile_columns import QUANTILES

EPSILON, DELTA = 0.5, 1e-6
LARGE_TABLES = ("adult_train", "bank_marketing", "credit_default", "california_housing")
N_RUNS = 20
N_FITS = 10


def read_table(name):
    """Return a table of the folder SKDP_DATA as a frame; codes of credit_default are text."""
    frame = pd.read_csv(
        Path(os.environ["SKDP_DATA"]) / f"{name}.csv.gz", keep_default_na=name != "adult_train"
    )
    if name == "credit_default":
        categorical = SCHEMAS[name][1]
        frame = frame.astype({column: str for column in categorical if column in frame})
    return frame


def small_tables():
    """Yield names and frames of the folder SKDP_TABLES, if it is set."""
    if "SKDP_TABLES" not in os.environ:
        return
    sys.path.insert(0, os.environ["SKDP_TABLES"])
    from load import TABLES, load

    for name in TABLES:
        yield name, load(name).X_train


def describe(frame, **params):
    """Return the profile of a frame, and the exact scores of its pairs, relative to the largest."""
    captured = []

    def capture(tables, expected, n_units):
        scores = exact_scores(tables, expected, n_units)
        captured.append(scores)
        return scores

    def capture_largest(*args):
        captured.append(exact_largest(*args))
        return captured[-1]

    exact_scores, exact_largest = _describe_plan.pair_scores, _describe_plan.max_scores
    _describe_plan.pair_scores, _describe_plan.max_scores = capture, capture_largest
    try:
        profile = dp_describe(frame, **params)
    finally:
        _describe_plan.pair_scores, _describe_plan.max_scores = exact_scores, exact_largest
    with np.errstate(all="ignore"):
        return profile, captured[0] / captured[1] if captured else None


def standardized_errors(frame, profile, associations):
    """Yield (kind, error in standard errors) of each released number of a profile."""
    for name, column in profile.columns.items():
        values = frame[name]
        n = len(values)
        yield "missing", (column.missing - values.isna().mean()) / column.missing_std
        if column.kind in ("date", "duration"):
            continue
        if column.kind == "label":
            text = values[values.notna()].astype(str)
            counts = text.value_counts()
            exact = np.array([counts.get(str(label), 0) for label in column.categories])
            for error in (column.counts - exact) / column.count_std:
                yield "categories", error
            other = (len(text) - exact.sum()) / n
            yield "categories", (column.other - other) / (column.count_std / n)
            continue
        low, high = column.bounds
        numbers = values.dropna().to_numpy(np.float64)
        clipped = np.clip(numbers, low, high)
        histogram = column.histogram
        inner = histogram.edges[1:-1]
        exact = np.bincount(np.searchsorted(inner, numbers, side="right"), minlength=len(inner) + 1)
        for error in (histogram.counts - exact) / histogram.stds:
            yield "histograms", error
        yield "means", (column.mean - clipped.mean()) / column.mean_std
        for fraction in QUANTILES:
            start, end = column.quantile_intervals[fraction]
            below = (clipped < start).mean()
            yield (
                "quantiles outside their interval",
                float(not below <= fraction <= (clipped <= end).mean()),
            )
    for exact, association in zip(
        [] if associations is None else associations, profile.associations, strict=True
    ):
        if np.isfinite(association.value):
            yield "associations", (association.value - min(exact, 1.0)) / association.std


def errors():
    """Print the fraction of the released numbers beyond three standard errors."""
    tables = [(name, read_table(name)) for name in LARGE_TABLES] + list(small_tables())
    total = {}
    for name, frame in tables:
        by_kind = {}
        for _ in range(N_RUNS if len(frame) > 10_000 else 5):
            profile, exact = describe(frame, epsilon=EPSILON, delta=DELTA)
            for kind, error in standardized_errors(frame, profile, exact):
                by_kind.setdefault(kind, []).append(error)
        parts = []
        for kind, values in by_kind.items():
            if kind == "quantiles outside their interval":
                parts.append(f"{kind} {100 * np.mean(values):.1f} %")
                continue
            beyond = np.abs(values) > 3.0
            total.setdefault(kind, []).extend(beyond)
            parts.append(f"{kind} {100 * np.mean(beyond):.2f} %")
        print(f"{name} ({len(frame):,} x {frame.shape[1]}): {', '.join(parts)}", flush=True)
    everything = np.concatenate(list(total.values()))
    print(f"all: {100 * everything.mean():.2f} % of {len(everything):,} beyond 3 standard errors")
    for kind, beyond in total.items():
        print(f"  {kind}: {100 * np.mean(beyond):.2f} %")


def measure_time():
    """Print processor seconds for 100,000 rows of Adult, with 15 columns."""
    frame = read_table("adult_train")
    frame = pd.concat([frame] * 4).iloc[:100_000].reset_index(drop=True)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        dp_describe(frame, epsilon=EPSILON, delta=DELTA)
        seconds.append(time.process_time() - start)
    print(f"100,000 x 15: {np.median(seconds):.2f} s of processor time")


def quantiles():
    """Print mean errors of quantiles of the histogram and of `dp_quantile`, at the same price.

    Errors are relative to the range of 90 % of the rows, for numeric columns that have one.
    """
    for name in LARGE_TABLES:
        frame = read_table(name).select_dtypes("number").dropna()
        spread = frame.quantile(0.95) - frame.quantile(0.05)
        frame = frame.loc[:, spread > 0.0]
        low, high = frame.min(), frame.max()
        params = {"epsilon": EPSILON, "delta": DELTA}
        bounds = dict(zip(frame, zip(low, high, strict=True), strict=True))
        errors = {"histogram": [], "dp_quantile": []}
        for _ in range(5):
            profile = dp_describe(frame, bounds=bounds, associations=False, **params)
            released = {
                "histogram": pd.DataFrame(
                    {column: profile[column].quantiles.values() for column in frame}
                ),
                "dp_quantile": dp_quantile(
                    frame.to_numpy(float),
                    QUANTILES,
                    bounds=(low.to_numpy(), high.to_numpy()),
                    axis=0,
                    **params,
                ),
            }
            for method, values in released.items():
                error = np.abs(np.asarray(values, float) - frame.quantile(QUANTILES).to_numpy())
                errors[method].append((error / spread[frame.columns].to_numpy()).mean())
        text = ", ".join(f"{m} {100 * np.mean(e):.2f} %" for m, e in errors.items())
        print(f"{name}: mean error of quantiles: {text}", flush=True)


def schema():
    """Print the AUC with the schema that was found and with the declared one, at two epsilons."""
    for name in ("adult_train", "bank_marketing", "credit_default"):
        frame = read_table(name)
        if name == "bank_marketing":
            frame = frame.drop(columns="duration", errors="ignore")
        if name == "adult_train":
            frame = frame.drop(columns="fnlwgt")
        y = frame.pop("target").to_numpy()
        key = "adult" if name == "adult_train" else name
        bounds, categories = SCHEMAS[key]
        declared = {
            "bounds": {c: b for c, b in bounds.items() if c in frame},
            "categories": {c: v.split() for c, v in categories.items() if c in frame},
        }
        rng = np.random.default_rng(0)
        for epsilon in (0.5, 1.0):
            scores = {"found": [], "declared": []}
            for _ in range(N_FITS):
                order = rng.permutation(len(frame))
                test, train = order[: len(order) // 4], order[len(order) // 4 :]
                X_train, y_train = frame.iloc[train], y[train]
                found = dp_describe(X_train, epsilon=EPSILON, delta=DELTA).schema
                for way, known in (("found", found), ("declared", declared)):
                    model = DPAdditiveClassifier(
                        epsilon, delta=DELTA, bounds=known["bounds"], categories=known["categories"]
                    ).fit(X_train, y_train)
                    score = model.predict_proba(frame.iloc[test])[:, 1]
                    scores[way].append(roc_auc_score(y[test], score))
            means = {way: np.mean(values) for way, values in scores.items()}
            difference = np.array(scores["found"]) - np.array(scores["declared"])
            error = difference.std() / np.sqrt(N_FITS)
            print(
                f"{name} ({len(train):,} rows), epsilon {epsilon}: found {means['found']:.4f}, "
                f"declared {means['declared']:.4f}, difference {difference.mean():+.4f} "
                f"± {error:.4f}",
                flush=True,
            )


PARTS = {"errors": errors, "time": measure_time, "quantiles": quantiles, "schema": schema}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
