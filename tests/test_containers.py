"""Every estimator, statistic and search on every container: one row has no say in the others.

A row is given again in other types, with its entries in another order, or replaced by what is no
number. Either the release is the same to the last bit, for the same seed, or the fit is refused
and nothing is spent. `pytest -m slow` tries all combinations, by default some are drawn.
"""

import warnings
import zlib

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRandomizedSearchCV,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.model_selection import (
    dp_cross_val_score,
    dp_learning_curve,
    dp_validation_curve,
    make_dp_scorer,
)
from skdp.stats import (
    dp_count,
    dp_covariance,
    dp_histogram,
    dp_histogram2d,
    dp_histogramdd,
    dp_mean,
    dp_median,
    dp_quantile,
    dp_sum,
    dp_var,
    estimate_bounds,
)
from tests._containers import (
    DATES,
    GONE,
    LABELS,
    NO_LABELS,
    NUMERIC,
    OTHER_ENTRIES,
    OTHER_NUMBERS,
    SAME_ENTRIES,
    SAME_NUMBERS,
    SPARSE,
    date_rows,
    entry_rows,
    label_rows,
    number_rows,
)
from tests._estimators import ESTIMATORS

DRAWN = 4
BOUNDS = (-1.0, 3.0)


class Fit:
    """Fits an estimator and returns what is released."""

    def __init__(self, estimator):
        self.estimator = estimator
        self.accept_sparse = get_tags(estimator).input_tags.sparse
        self.name = repr(estimator)

    def __call__(self, X, y, accountant):
        estimator = clone(self.estimator).set_params(accountant=accountant, random_state=0)
        if isinstance(estimator, RandomizedResponseTransformer):
            return estimator.fit(X).transform(X)
        estimator.fit(X, y)
        return {k: v for k, v in vars(estimator).items() if k.endswith("_") and k != "privacy_"}


class Statistic:
    """Calls a statistic on the first column, or on the first two."""

    accept_sparse = False

    def __init__(self, function, columns=1, **options):
        self.function, self.columns, self.options = function, columns, options
        self.name = function.__name__

    def __call__(self, X, y, accountant):
        columns = [_column(X, j) for j in range(self.columns)]
        options = self.options | {"accountant": accountant, "random_state": 0}
        return self.function(*columns, epsilon=1.0, **options)


class Scored:
    """Calls a cross-validation or a curve."""

    accept_sparse = True

    def __init__(self, function, **options):
        self.function, self.options, self.name = function, options, function.__name__

    def __call__(self, X, y, accountant):
        options = self.options | {"accountant": accountant, "random_state": 0}
        scores = self.function(
            DPLogisticRegression(classes=[0, 1]), X, y, epsilon=1.0, delta=1e-6, **options
        )
        return {name: getattr(scores, name) for name in ("mean_",) if hasattr(scores, name)}


class Scorer:
    accept_sparse = True
    name = "make_dp_scorer"
    model = DPLogisticRegression(classes=[0, 1], random_state=0)

    def __call__(self, X, y, accountant):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clone(self.model).fit(np.array([[1, 0, 1], [0, 2, 0]] * 20), [0, 1] * 20)
        # What predictions raise comes after the charge, as docs/theory/model_selection.md says.
        model.predict(X)
        scorer = make_dp_scorer("accuracy", accountant=accountant, random_state=0)
        return scorer(model, X, y)


def _column(X, j):
    if not hasattr(X, "shape"):
        return [row[j] for row in X]
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    if hasattr(X, "column_names"):
        return X.column(j)
    return X[:, j]


CALLS = [
    *map(Fit, ESTIMATORS),
    Fit(DPOneHotEncoder(epsilon=6.0, delta=1e-6, min_frequency=0.1)),
    Statistic(dp_count),
    Statistic(dp_sum, bounds=BOUNDS),
    Statistic(dp_mean, bounds=BOUNDS),
    Statistic(dp_var, bounds=BOUNDS),
    Statistic(dp_median, bounds=BOUNDS),
    Statistic(dp_quantile, q=0.25, bounds=BOUNDS),
    Statistic(dp_histogram, range=BOUNDS),
    Statistic(dp_histogram2d, columns=2, range=(BOUNDS, BOUNDS)),
    Statistic(dp_covariance, bounds=BOUNDS),
    Statistic(dp_histogramdd, bins=2, range=(BOUNDS,)),
    Statistic(estimate_bounds),
    Scored(dp_cross_val_score, cv=2),
    Scored(dp_learning_curve, train_sizes=[0.5, 1.0], cv=2),
    Scored(dp_validation_curve, param_name="C", param_range=[0.1, 1.0], cv=2),
    Scorer(),
]


def combinations(call):
    """Every container with every other first row, and whether that is the same row."""
    odd = [(row, True) for row in SAME_NUMBERS.values()]
    odd += [(row, False) for row in OTHER_NUMBERS.values()]
    pairs = [(container, number_rows(), *each) for container in NUMERIC for each in odd]
    # Where numbers are needed these are refused, or count from 1970 on; a category is no number.
    rows = {"labels": label_rows(), "dates": date_rows()}
    odd = [(row, False) for row in NO_LABELS.values()]
    pairs += [(c, rows[c.holds], *each) for c in (*LABELS, *DATES) for each in odd]
    if call.accept_sparse:
        odd = [(row, True) for row in SAME_ENTRIES.values()]
        odd += [(row, False) for row in OTHER_ENTRIES.values()]
        pairs += [(container, entry_rows(), *each) for container in SPARSE for each in odd]
    return pairs


def drawn(call):
    pairs = combinations(call)
    rng = np.random.default_rng(zlib.crc32(call.name.encode()))
    return [pairs[i] for i in rng.choice(len(pairs), DRAWN, replace=False)]


def released(call, table, y):
    """Return what is released, or None where the call is refused and nothing was spent."""
    accountant = PrivacyAccountant(epsilon=1e6, delta=0.5, ledger="memory://")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(table, y, accountant)
        except Exception as error:
            assert accountant.charges == [], f"{call.name} charged, then raised {error!r}"
            return None


def leaves(value):
    """Yield what a release holds, to the last bit."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield key
            yield from leaves(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield value.dtype.str, value.shape, value.tobytes()
    elif isinstance(value, np.ndarray):
        yield from leaves(value.tolist())
    elif hasattr(value, "get_params"):
        yield from leaves({k: v for k, v in vars(value).items() if k[-1] == "_" != k[-2]})
    else:
        yield "privacy" if hasattr(value, "epsilon") else repr(value)


def check(call, container, rows, odd, is_same, known):
    """Check one combination; `known` keeps what is released from the container's own rows."""
    try:
        table = container.build([odd, *rows[1:]])
        y = np.arange(_length(table)) % 2
    except Exception:
        # The container itself cannot hold such a row.
        return
    after = released(call, table, y)
    if not is_same or after is None:
        return
    if container not in known:
        known[container] = released(call, container.build(rows), y)
    before = known[container]
    if before is not None:
        where = f"{call.name} on {container.name}"
        assert list(leaves(before)) == list(leaves(after)), f"{where}, first row {odd!r}"


def _length(table):
    return table.shape[0] if sp.issparse(table) else len(table)


def first_of_each_class():
    """The first instance of each class that is one, and everything else that releases."""
    first = {}
    for call in CALLS:
        first.setdefault(type(call.estimator) if isinstance(call, Fit) else call.name, call)
    return list(first.values())


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("call", first_of_each_class(), ids=lambda call: call.name)
def test_one_row_has_no_say_in_the_others(call):
    known = {}
    for combination in drawn(call):
        check(call, *combination, known)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_one_row_has_no_say_in_the_others_anywhere(call):
    known = {}
    for combination in combinations(call):
        check(call, *combination, known)


SEARCHED = (Scored, DPGridSearchCV, DPRandomizedSearchCV)
NOT_TAKEN = {
    "pyarrow": (Statistic,),
    "chunks": (Statistic, RandomizedResponseTransformer, *SEARCHED),
    "chunks of polars": (Statistic, RandomizedResponseTransformer, *SEARCHED),
    "chunk of Sparse": (Statistic, *SEARCHED),
    "dask": (Statistic, RandomizedResponseTransformer),
    "dask frame": (Scorer, *SEARCHED),
}


def containers_of(call):
    """The containers that the call takes."""
    kind = call.estimator if isinstance(call, Fit) else call
    return [c for c in NUMERIC if not isinstance(kind, NOT_TAKEN.get(c.name, ()))]


def check_taken(call, container):
    rows = number_rows()
    if container.name in ("array of bool", "pandas boolean"):
        rows = [[cell % 2 for cell in row] for row in rows]
    taken = released(call, container.build(rows), np.arange(len(rows)) % 2)
    assert taken is not None, f"{call.name} refuses {container.name}"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("call", first_of_each_class(), ids=lambda call: call.name)
def test_a_container_is_taken(call):
    containers = containers_of(call)
    rng = np.random.default_rng(zlib.crc32(call.name.encode()))
    for i in rng.choice(len(containers), 3, replace=False):
        check_taken(call, containers[i])


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_every_container_is_taken(call):
    for container in containers_of(call):
        check_taken(call, container)


TARGETS = {
    "floats": [0.0, 1.0] * 20,
    "one float": [0.0, *[1, 0] * 19, 1],
    "one bool": [False, *[1, 0] * 19, 1],
    "one numpy integer": [np.int8(0), *[1, 0] * 19, 1],
    "one string": ["0", *[1, 0] * 19, 1],
    "one missing": [None, *[1, 0] * 19, 1],
    "one NaN": [float("nan"), *[1, 0] * 19, 1],
    "objects": np.array([0.0, *[1, 0] * 19, 1], dtype=object),
    "one object": np.array(["?", *[1, 0] * 19, 1], dtype=object),
    "one that is gone": np.array([0, *[1, 0] * 19, 1], dtype=object),
    "a sparse array": pd.arrays.SparseArray([0, 1] * 20),
    "one float of a series of objects": pl.Series([0.0, *[1, 0] * 19, 1], dtype=pl.Object),
    "a part of another type": dask.array.concatenate(
        [
            dask.array.from_delayed(dask.delayed(np.array)([0.0, 1.0]), (2,), np.int64),
            dask.array.from_array(np.array([0, 1] * 19)),
        ]
    ),
}
TARGETS["one that is gone"][0] = GONE


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("call", first_of_each_class(), ids=lambda call: call.name)
def test_one_label_has_no_say_in_the_others(call):
    if not isinstance(call, Fit) or not get_tags(call.estimator).target_tags.required:
        return
    X = np.array(number_rows())
    before = released(call, X, [0, 1] * 20)
    assert before is not None
    for name, labels in TARGETS.items():
        after = released(call, X, labels)
        assert after is None or name != "a part of another type"
        if after is not None and not isinstance(labels, np.ndarray):
            assert list(leaves(before)) == list(leaves(after))


def test_a_search_reads_lists_by_a_rule():
    X, y = [[i % 2] for i in range(200)], [i % 2 for i in range(200)]
    search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, strategy="holdout")
    for odd in (["?"], [None], [1j]):
        accountant = PrivacyAccountant(epsilon=10.0, delta=1e-3)
        with pytest.raises(ValueError):
            clone(search).set_params(accountant=accountant).fit([odd, *X[1:]], y)
        assert accountant.charges == []
