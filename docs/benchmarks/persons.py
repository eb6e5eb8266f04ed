"""Persons with several rows: what a person as the unit costs, in AUC and in time.

Usage: python docs/benchmarks/persons.py [draws] [persons]
       python docs/benchmarks/persons.py time
       python docs/benchmarks/persons.py means [draws] [persons]

The made table of `skdp.datasets.make_customers` with 1 to 30 rows a person, of 2,000 persons unless
another number is given; the AUC is on rows of 1,000 others, each with the share of its person.
epsilon = 1 and delta = 1e-6 a person, everything else at its defaults, `draws` (10) tables. "Not
private" weights rows by person too: scikit-learn's logistic regression, and the additive model at
epsilon = 1e5. "Group" is a ledger of groups of 30 rows. "Row" protects a row alone, at the same
epsilon. "One row" is a table of the first row of each person, private and ("np") not. "Toy" is a
table of 5 features, of 300 persons with 8 rows each, and of 2,000 with 1 to 30 (`toy` makes it).
"Visits" has 10 features, and most persons have few rows: 4 on average, 30 at most.

With ``time``: seconds of the processor for reading the ids of 1e6 rows of 1e5 persons, and for a
fit without groups and with groups that were read, the least of two. Without groups there are 1e6
units, so that rules that go by their number take more steps.

With ``means``: what a logistic regression would reach that clips the *mean* of a person's gradients
to a part of the bound on a row's. It is a simulation with numpy's noise, of no use as a release: 60
full batches at a rate of 3 with a momentum of .9, which were the best of six settings on other
tables, and the average of the last 30 iterates.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import (
    DPAdditiveClassifier,
    DPHistogramTransformer,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRobustScaler,
    DPSGDClassifier,
    PrivacyAccountant,
)
from skdp._data._frames import take_rows
from skdp._data._persons import read_persons
from skdp.accounting import gaussian_noise_multiplier
from skdp.datasets import make_customers

EPSILON, DELTA = 1.0, 1e-6
MOST_ROWS, OTHERS = 30, 1000


def encoded(people):
    """Return the columns as numbers in [-1, 1], by public bounds and categories."""
    data, columns = people.data, []
    for name in data:
        if name in people.schema["bounds"]:
            low, high = people.schema["bounds"][name]
            values = data[name]
            if values.dtype.kind == "M":
                values, low, high = (
                    np.asarray(v, "M8[D]").astype(float) for v in (values, low, high)
                )
            scaled = 2.0 * (np.asarray(values, float) - low) / (high - low) - 1.0
            columns += [np.nan_to_num(np.clip(scaled, -1.0, 1.0)), np.isnan(scaled).astype(float)]
        else:
            columns += [
                (data[name] == label).astype(float) for label in people.schema["categories"][name]
            ]
    return np.column_stack(columns)


def auc(draw, n_persons):
    """Return the AUC of each model, by its name."""
    people = make_customers(18 * (n_persons + OTHERS), rows_per_person=MOST_ROWS, random_state=draw)
    codes, y = encoded(people), people.target
    train = people.groups < n_persons
    test = (people.groups >= n_persons) & (people.groups < n_persons + OTHERS)
    groups = people.groups[train]
    weights = read_persons(people.groups, len(y)).row_weights
    own = {"delta": DELTA, "random_state": draw}
    models = {
        "additive": (people.data, lambda e: DPAdditiveClassifier(e, **own, **people.schema)),
        "logistic": (codes, lambda e: DPLogisticRegression(e, **own, data_norm=2.0)),
        "logistic, gradient": (
            codes,
            lambda e: DPLogisticRegression(e, **own, data_norm=2.0, mechanism="gradient"),
        ),
    }
    found = {}
    for name, (table, make) in models.items():
        rows, labels, others = table[train], y[train], table[test]

        def score(model, others=others):
            scores = model.decision_function(others)
            return roc_auc_score(y[test], scores, sample_weight=weights[test])

        def whole(rows, labels, groups, make=make, name=name):
            if name == "additive":
                return make(1e5).fit(rows, labels, groups=groups)
            row_weights = read_persons(groups, len(labels)).row_weights
            return LogisticRegression(C=1e3, max_iter=1000).fit(
                rows, labels, sample_weight=row_weights
            )

        found[name, "person"] = score(make(EPSILON).fit(rows, labels, groups=groups))
        found[name, "not private"] = score(whole(rows, labels, groups))
        group = PrivacyAccountant(EPSILON, DELTA, unit="group", max_rows=MOST_ROWS)
        model = make(EPSILON).set_params(accountant=group)
        found[name, "group"] = score(model.fit(rows, labels))
        found[name, "row"] = score(make(EPSILON).fit(rows, labels))
        # As many rows as there are persons: one of each, the first.
        one = np.flatnonzero(np.diff(groups, prepend=-1))
        few = take_rows(rows, one)
        found[name, "one row"] = score(make(EPSILON).fit(few, labels[one]))
        found[name, "one row, np"] = score(whole(few, labels[one], groups[one]))
    return found


def toy(draw, n_persons, fewest, most, n_features=5, mean=None):
    """Return accuracies and areas on rows of 2,000 others, by the names of model and measure.

    Numbers of rows from `fewest` to `most` are equally frequent, unless there is a `mean`: then
    they have a geometric law, as visits do.
    """
    rng = np.random.default_rng(draw)
    counts = rng.integers(fewest, most + 1, n_persons + 2000)
    if mean is not None:
        counts = np.minimum(rng.geometric(1.0 / mean, len(counts)), most)
    groups = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(counts), n_features))[groups]
    X += rng.normal(size=X.shape)
    y = (X @ np.ones(n_features) + rng.logistic(size=len(X)) > 0).astype(int)
    train = groups < n_persons
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    row_weights = read_persons(groups, len(y)).row_weights
    data, by_person, weights = (X[train], y[train]), groups[train], row_weights[~train]
    own = {"delta": DELTA, "random_state": draw}
    logistic = DPLogisticRegression(EPSILON, **own, data_norm=1.0)
    additive = DPAdditiveClassifier(EPSILON, **own, bounds=(-1, 1))
    plain = LogisticRegression(C=1e3).fit(*data, sample_weight=row_weights[train])
    close = clone(additive).set_params(epsilon=1e5).fit(*data, groups=by_person)
    found, name = {}, f"{'toy' if mean is None else 'visits'} {n_persons} x {most}"
    for kind, model, whole in (("additive", additive, close), ("logistic", logistic, plain)):
        group = PrivacyAccountant(EPSILON, DELTA, unit="group", max_rows=most)
        of_group = clone(model).set_params(accountant=group)
        for whose, fitted in (
            ("person", clone(model).fit(*data, groups=by_person)),
            ("not private", whole),
            ("group", of_group.fit(*data)),
            ("row", clone(model).fit(*data)),
        ):
            scores = fitted.decision_function(X[~train])
            area = roc_auc_score(y[~train], scores, sample_weight=weights)
            accuracy = fitted.score(X[~train], y[~train], sample_weight=weights)
            found |= {
                (f"{name} {kind}, AUC", whose): area,
                (f"{name} {kind}, accuracy", whose): accuracy,
            }
    return found


def clipped_means(draw, n_persons, n_steps=60):
    """Return the AUC by the part of a row's bound that persons' mean gradients are clipped to."""
    people = make_customers(18 * (n_persons + OTHERS), rows_per_person=MOST_ROWS, random_state=draw)
    codes, y = np.pad(encoded(people), [(0, 0), (0, 1)], constant_values=0.6), people.target
    weights = read_persons(people.groups, len(y)).row_weights
    train = people.groups < n_persons
    test = (people.groups >= n_persons) & (people.groups < n_persons + OTHERS)
    found = {}
    for name, rows in (
        ("all rows", np.flatnonzero(train)),
        ("one row", np.flatnonzero(train & (np.diff(people.groups, prepend=-1) > 0))),
    ):
        own, labels, ids = codes[rows], y[rows], people.groups[rows]
        row_weights = read_persons(ids, len(ids)).row_weights
        mean_of = csr_array((row_weights, (ids, np.arange(len(ids)))), shape=(n_persons, len(ids)))
        plain = LogisticRegression(C=1e3, max_iter=1000).fit(own, labels, sample_weight=row_weights)
        weights_of = {"not private": plain.coef_[0]}
        for part in (0.125, 0.25, 0.5, 1.0):
            clip, rng = part * np.hypot(2.0, 0.6), np.random.default_rng(draw)
            scale = clip * gaussian_noise_multiplier(EPSILON, DELTA) * np.sqrt(n_steps)
            point, move, average = np.zeros((3, own.shape[1]))
            for step in range(n_steps):
                means = mean_of @ (own * (expit(own @ point) - labels)[:, None])
                norms = np.linalg.norm(means, axis=1)
                total = np.minimum(1.0, clip / np.maximum(norms, 1e-9)) @ means
                noisy = total + rng.normal(0.0, scale, len(total))
                move = 0.9 * move - 3.0 * noisy / n_persons
                point = point + move
                average = average + point * (2 * step >= n_steps)
            weights_of[f"clip {part}"] = average
        for kind, coef in weights_of.items():
            area = roc_auc_score(y[test], codes[test] @ coef, sample_weight=weights[test])
            found[f"means, {name}", kind] = area
    return found


def timed(run, times=2):
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def times():
    rng = np.random.default_rng(0)
    n, n_persons = 10**6, 10**5
    ids = rng.integers(0, n_persons, n)
    X = rng.uniform(-1, 1, (n, 10))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    print(f"reading ids: integers {timed(lambda: read_persons(ids, n)):.2f} s, ", end="")
    words = np.array([f"person {i}" for i in ids])
    print(f"strings {timed(lambda: read_persons(words, n)):.2f} s", flush=True)
    persons = read_persons(ids, n)
    of_rows = replace(persons, n_persons=n)
    additive = DPAdditiveClassifier(bounds=(-1, 1))
    objective = DPLogisticRegression(data_norm=2.0, mechanism="objective")
    full = DPSGDClassifier(sampling="full", max_iter=10)
    poisson = DPSGDClassifier(sampling="poisson", max_iter=2, batch_size=20_000)
    fewer = DPSGDClassifier(sampling="poisson", max_iter=2, batch_size=2000)
    robust = DPRobustScaler(bounds=(-1, 1))
    quantiles = DPHistogramTransformer(edges="quantile", bounds=(-1, 1))
    discovery = DPOneHotEncoder(delta=DELTA)
    numbers = rng.integers(0, 50, (n, 5))
    for name, plain, model, whose in (
        ("additive", additive, additive, persons),
        ("additive, as many steps", additive, additive, of_rows),
        ("logistic, objective", objective, objective, persons),
        ("SGD, 10 full batches", full, full, persons),
        ("SGD, 100 batches of 2 %", poisson, fewer, persons),
        ("robust scaler", robust, robust, persons),
        ("histograms, 31 quantiles", quantiles, quantiles, persons),
        ("discovery of numbers", discovery, discovery, persons),
    ):
        table = numbers if plain is discovery else X
        rows = timed(partial(plain.fit, table, y))
        with mock.patch(
            "skdp._fitting._release_context.read_persons",
            lambda groups, n_rows, missing, whose=whose: whose,
        ):
            by_person = timed(partial(model.fit, table, y, groups=ids))
        print(f"{name:24} {rows:6.2f} {by_person:6.2f} {by_person / rows:5.2f}", flush=True)


def main(words):
    if words == ["time"]:
        times()
        return
    means = words[:1] == ["means"]
    words = words[means:]
    n_draws, n_persons = map(int, [*words, *("10", "2000")[len(words) :]])
    draws = [
        clipped_means(draw, n_persons)
        if means
        else auc(draw, n_persons)
        | toy(draw, 300, 8, 8)
        | toy(draw, n_persons, 1, MOST_ROWS)
        | toy(draw, n_persons, 1, MOST_ROWS, n_features=10, mean=4)
        for draw in range(n_draws)
    ]
    for key in draws[0]:
        values = np.array([draw[key] for draw in draws])
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(f"{key[0]:30} {key[1]:12} {values.mean():.4f} ± {error:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
