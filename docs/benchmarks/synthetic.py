"""Synthetic tables at their defaults, judged by test rows.

Usage: SKDP_DATA=folder python docs/benchmarks/synthetic.py [fits] [row ...]

Rows: adult, bank (without the duration of the call), no_target, unlimited (epsilon = 1000), small
(500, 2,000 and 8,000 rows of Adult), found (bounds and categories found privately), pure (Adult
with delta = 0), kdd (processor time and memory only), ``real`` (the training rows themselves, rows
of independent columns, and uniform draws from the schema).
``python docs/benchmarks/synthetic.py judge adult FILE`` judges a CSV file of rows of another tool.

The judge: mean total variation distance to the test rows of all single columns, all pairs and 64
fixed triples of columns (16 quantile bins per number, edges midway between values), and the area
under the ROC curve on the test rows of gradient boosting and of logistic regression that were
trained on n synthetic rows. Means of `fits` (3) fits; delta = 1e-5, add/remove. Adult by its
official split; of bank 30 % are held out. docs/theory/synthetic_tables.md says how constants were
chosen.
"""

import itertools
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import SCHEMAS, read_rows
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skdp.synthesis import DPTableSynthesizer

DELTA = 1e-5
INTEGERS = {
    "adult": ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"],
    "bank_marketing": ["age", "campaign", "pdays", "previous"],
    "credit_default": list(SCHEMAS["credit_default"][0]),
}
HELD_OUT = 0.3
N_BINS = 16
N_TRIPLES = 64


class Table:
    """Training and test rows with their public schema; the target is the last column."""

    def __init__(self, name):
        self.bounds, categories = SCHEMAS[name]
        self.categories = {n: text.split() for n, text in categories.items()}
        self.categories["target"] = ["0", "1"]
        if name == "adult":
            parts = [read_rows("adult_train"), read_rows("adult_test")]
        else:
            rows = read_rows(name)
            order = np.random.default_rng(0).permutation(len(rows))
            cut = int((1.0 - HELD_OUT) * len(rows))
            parts = [[rows[i] for i in part] for part in (order[:cut], order[cut:])]
        self.train, self.test = (self._frame(rows, INTEGERS[name]) for rows in parts)

    def _frame(self, rows, integers):
        table = pd.DataFrame(rows)
        columns = {}
        for name in table.columns:
            if name in self.bounds:
                low, high = self.bounds[name]
                numbers = pd.to_numeric(table[name]).fillna(low).clip(low, high)
                columns[name] = numbers.astype(int if name in integers else float)
            elif name in self.categories:
                columns[name] = table[name].astype(str)
        return pd.DataFrame(columns)

    def edges(self, name):
        """Return edges of bins for the judge; a value with an eighth of the rows is a bin."""
        values, counts = np.unique(self.train[name], return_counts=True)
        is_frequent = counts > len(self.train) / 8
        rest = np.repeat(values[~is_frequent], counts[~is_frequent])
        last = is_frequent.copy()
        if len(rest) > 50:
            quantiles = np.quantile(rest, np.arange(1, N_BINS) / N_BINS, method="lower")
            last |= np.isin(values, quantiles)
        last[:-1] |= is_frequent[1:]
        return ((values[:-1] + values[1:]) / 2)[last[:-1]]

    def codes(self, frame):
        """Return the bins and categories of a frame, and their numbers."""
        codes, sizes = [], []
        for name in self.train.columns:
            if name in self.bounds:
                edges = self.edges(name)
                codes.append(np.searchsorted(edges, frame[name].to_numpy(float), side="right"))
                sizes.append(len(edges) + 1)
            else:
                labels = pd.Categorical(frame[name], categories=self.categories[name]).codes
                size = len(self.categories[name])
                codes.append(np.where(labels < 0, size, labels))
                sizes.append(size + 1)
        return codes, sizes


def distances(table, rows):
    """Return the mean distances of single columns, pairs and triples to the test rows."""
    codes, sizes = table.codes(rows)
    test, _ = table.codes(table.test)
    indices = range(len(sizes))
    triples = list(itertools.combinations(indices, 3))
    chosen = np.random.default_rng(7).permutation(len(triples))[:N_TRIPLES]
    result = []
    for subsets in (
        [(j,) for j in indices],
        list(itertools.combinations(indices, 2)),
        [triples[i] for i in chosen],
    ):
        values = []
        for subset in subsets:
            shape = [sizes[j] for j in subset]
            fractions = []
            for columns in (codes, test):
                joint = np.ravel_multi_index([columns[j] for j in subset], shape)
                fractions.append(np.bincount(joint, minlength=np.prod(shape)) / len(joint))
            values.append(0.5 * np.abs(fractions[0] - fractions[1]).sum())
        result.append(float(np.mean(values)))
    return result


def areas(table, rows):
    """Return the test AUC of boosting and of logistic regression trained on the rows."""
    labels = [n for n in table.categories if n != "target"]
    lists = [table.categories[n] for n in labels]
    numbers = list(table.bounds)
    y = rows["target"].astype(str).to_numpy() == "1"
    if y.all() or not y.any():
        return [0.5, 0.5]
    ordinal = OrdinalEncoder(
        categories=lists, handle_unknown="use_encoded_value", unknown_value=np.nan
    )
    one_hot = OneHotEncoder(categories=lists, handle_unknown="ignore")
    boosting = HistGradientBoostingClassifier(
        random_state=0, categorical_features=list(range(len(labels)))
    )
    models = (
        make_pipeline(
            make_column_transformer((ordinal, labels), remainder="passthrough"), boosting
        ),
        make_pipeline(
            make_column_transformer(
                (one_hot, labels), (make_pipeline(SimpleImputer(), StandardScaler()), numbers)
            ),
            LogisticRegression(max_iter=300),
        ),
    )
    z = table.test["target"].to_numpy() == "1"
    columns = numbers + labels
    result = []
    for model in models:
        train, test = (f[columns].astype(dict.fromkeys(labels, object)) for f in (rows, table.test))
        result.append(roc_auc_score(z, model.fit(train, y).predict_proba(test)[:, 1]))
    return result


def judge(table, rows):
    return [*distances(table, rows), *areas(table, rows)]


def show(label, runs):
    """Print the means of several runs: distances, areas, and processor seconds."""
    means = np.mean(runs, axis=0)
    errors = np.std(runs, axis=0) / np.sqrt(max(len(runs) - 1, 1))
    text = "  ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True))
    print(f"{label:28s} {text}", flush=True)


def run(table, epsilon, fits, train=None, **params):
    """Return the figures of several fits."""
    train = table.train if train is None else train
    declared = {"bounds": table.bounds, "categories": table.categories, "target": "target"}
    figures = []
    for seed in range(fits):
        start = time.process_time()
        synthesizer = DPTableSynthesizer(
            epsilon, **({"delta": DELTA, "random_state": seed} | declared | params)
        )
        rows = synthesizer.fit(train).sample(len(train), random_state=seed)
        seconds = time.process_time() - start
        figures.append([*judge(table, rows), seconds])
    return figures


def small(adult, fits):
    for n_rows in (500, 2_000, 8_000):
        for epsilon in (0.1, 1.0):
            figures = []
            for seed in range(fits):
                order = np.random.default_rng(seed).permutation(len(adult.train))[:n_rows]
                part = adult.train.iloc[order].reset_index(drop=True)
                figures += run(adult, epsilon, 1, train=part, random_state=seed)
            show(f"Adult, {n_rows} rows, {epsilon}", figures)


def without_fit(table, name):
    """Print what no fit reaches, and what every fit must beat."""
    rng = np.random.default_rng(0)
    n_rows = len(table.train)
    shuffled = table.train.apply(lambda column: rng.permutation(column.to_numpy()))
    uniform = {}
    for column in table.train.columns:
        if column in table.bounds:
            low, high = table.bounds[column]
            values = rng.uniform(low, high + 1, n_rows)
            is_integer = table.train[column].dtype.kind == "i"
            uniform[column] = np.floor(values) if is_integer else values.clip(low, high)
        else:
            uniform[column] = rng.choice(table.categories[column], n_rows)
    show(f"{name}, real rows", [judge(table, table.train)])
    show(f"{name}, independent columns", [judge(table, shuffled)])
    show(f"{name}, uniform draws", [judge(table, pd.DataFrame(uniform))])


def reset_peak(only_read=False):
    """Return the largest resident memory of this process in KiB, after a reset (Linux only)."""
    if not only_read:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def kdd():
    """Print the processor time and the memory of a fit to 494,021 rows of 42 columns."""
    table = pd.DataFrame(read_rows("kddcup99_10pct"))
    columns = {}
    for name in table.columns:
        numbers = pd.to_numeric(table[name], errors="coerce")
        columns[name] = table[name].astype(str) if numbers.isna().any() else numbers
    frame = pd.DataFrame(columns)
    del table, columns
    before = reset_peak()
    start = time.process_time()
    synthesizer = DPTableSynthesizer(1.0, delta=DELTA, target=frame.columns[-1]).fit(frame)
    fitted = time.process_time()
    synthesizer.sample(100_000)
    drawn = time.process_time()
    memory = (reset_peak(only_read=True) - before) / 1024
    print(
        f"kddcup99, {frame.shape}: fit {fitted - start:.1f} s, 100,000 rows {drawn - fitted:.1f} s,"
        f" {memory:.0f} MiB above the frame, {len(synthesizer.tables_)} tables"
    )


def main(fits, names):
    adult = Table("adult")
    bank = Table("bank_marketing")
    print("1-way, 2-way, 3-way distance; AUC of boosting, logistic regression; seconds")
    if "real" in names:
        without_fit(adult, "Adult")
        without_fit(bank, "bank")
    for name, table in (("adult", adult), ("bank", bank)):
        for epsilon in (0.1, 1.0, 4.0) if name in names else ():
            show(f"{name}, {epsilon}", run(table, epsilon, fits))
    if "no_target" in names:
        show("Adult, no target, 1", run(adult, 1.0, fits, target=None))
    if "unlimited" in names:
        show("Adult, 1000", run(adult, 1000.0, fits))
    if "found" in names:
        show("Adult, all found, 1", run(adult, 1.0, fits, bounds="auto", categories="auto"))
    if "pure" in names:
        for epsilon in (0.1, 1.0, 4.0):
            show(f"Adult, delta = 0, {epsilon}", run(adult, epsilon, fits, delta=0.0))
    if "small" in names:
        small(adult, fits)
    if "kdd" in names:
        kdd()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["judge"]:
        judged = Table({"bank": "bank_marketing"}.get(sys.argv[2], sys.argv[2]))
        rows = pd.read_csv(sys.argv[3], dtype=dict.fromkeys(judged.categories, str))
        show(sys.argv[3], [judge(judged, rows[list(judged.train.columns)])])
    else:
        default = ["adult", "bank", "no_target", "unlimited", "small"]
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or default)
