"""Transformers and quantiles by persons: what they learn is what one row of each would teach."""

from functools import partial

import numpy as np
import pytest

from skdp import (
    DPPCA,
    DPCalibratedClassifierCV,
    DPGridSearchCV,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPMaxAbsScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPRandomizedSearchCV,
    DPSimpleImputer,
    DPTableSynthesizer,
    DPTableVectorizer,
    DPTargetEncoder,
    DPTunedThresholdClassifierCV,
    RandomizedResponseTransformer,
    stats,
)
from tests import test_persons
from tests._estimators import CENTRAL_TRANSFORMERS, instance
from tests._public import ESTIMATORS, missing, takes_groups
from tests.test_persons import accountant_of, run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BOUNDS = {"bounds": (0.0, 8.0)}
PLENTY = {"epsilon": 1e5}
BOTH = PLENTY | {"delta": 1e-6}
CALLS = {
    "max-abs": DPMaxAbsScaler(**PLENTY),
    "quantiles": DPQuantileTransformer(**BOUNDS, **PLENTY, n_quantiles=9),
    "bins": DPKBinsDiscretizer(**PLENTY, n_bins=4),
    "histograms": DPHistogramTransformer(**PLENTY, n_bins=4, edges_fraction=0.5),
    "histograms of labels": DPHistogramTransformer(
        **PLENTY, edges=[0.0, 4.0, 8.0], categories={1: [0.0, 1.0]}
    ),
    "one-hot": DPOneHotEncoder(**BOTH),
    "one-hot, declared": DPOneHotEncoder(**PLENTY, categories=[0, 3, 1], min_frequency=50),
    "one-hot, nothing": DPOneHotEncoder(categories=[0, 3, 1]),
    "target": DPTargetEncoder(**BOTH, target_bounds=(0.0, 1.0)),
    "target, classes": DPTargetEncoder(**PLENTY, categories=[0, 3, 1]),
    "imputer": DPSimpleImputer(**PLENTY),
    "imputer, median": DPSimpleImputer(**PLENTY, strategy="median", bounds=(0.0, 8.0)),
    "imputer, labels": DPSimpleImputer(**BOTH, strategy="most_frequent"),
    "imputer, constant": DPSimpleImputer(strategy="constant"),
    "pca": DPPCA(**PLENTY, data_norm=8.0),
    "pca, norm": DPPCA(**PLENTY, data_norm="auto"),
    "k-means": DPKMeans(**PLENTY, **BOUNDS, n_clusters=2),
    "vectorizer": DPTableVectorizer(**BOTH, categories={1: "auto"}),
    "vectorizer, declared": DPTableVectorizer(**BOUNDS, categories={1: [0, 1]}, numeric="scaled"),
    "dp_quantile": partial(stats.dp_quantile, q=[0.1, 0.5], **BOUNDS, **PLENTY),
    "dp_median": partial(stats.dp_median, **PLENTY),
}


# Searches are in model_selection/test_persons.py; local reports refuse persons.
OTHERS = [DPGridSearchCV, DPRandomizedSearchCV, RandomizedResponseTransformer]
# Persons are in model_selection/test_tuned_threshold.py, for the first two, and in
# synthesis/test_sensitivity.py.
OTHERS += [DPTunedThresholdClassifierCV, DPCalibratedClassifierCV, DPTableSynthesizer]
LISTED = [*CALLS.values(), *test_persons.CALLS.values(), *OTHERS]
# Transformers that need no special parameters here are not listed.
for kind in CENTRAL_TRANSFORMERS:
    if missing([kind], LISTED):
        CALLS[kind.__name__] = instance(kind, **BOUNDS, **PLENTY)


def test_no_estimator_is_missing_here():
    tried = [*CALLS.values(), *test_persons.CALLS.values(), *OTHERS]
    assert not missing(filter(takes_groups, ESTIMATORS), tried)


def scalars(value):
    """Return all that is in lists of lists."""
    return sum(map(scalars, value), []) if isinstance(value, list) else [value]


def table():
    """Return rows of 400 persons, one each, and how many copies of each a table has."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 400), rng.random(400) < 0.3]).astype(float)
    y = (rng.random(400) < 0.1 * X[:, 0]).astype(int)
    return X, y, 1 + 5 * (X[:, 0] > 5).astype(int)


@pytest.mark.parametrize("name", CALLS)
def test_persons_with_many_rows_teach_no_more_than_others(name):
    X, y, copies = table()
    ids = np.repeat(np.arange(len(X)), copies)
    order = np.random.default_rng(1).permutation(len(ids))
    one = run(CALLS[name], X, y, groups=np.arange(len(X)))
    other = run(CALLS[name], X[ids[order]], y[ids[order]], groups=ids[order])
    for key, value in one.items():
        for own, same in zip(scalars(value), scalars(other.pop(key)), strict=True):
            assert own == same or own == pytest.approx(same, abs=0.02, rel=0.01)
    assert not other


@pytest.mark.parametrize("name", CALLS)
def test_what_is_refused_costs_nothing(name):
    X, y, copies = table()
    person, row = accountant_of(), accountant_of("row")
    with pytest.raises(ValueError, match="pass groups"):
        run(CALLS[name], X, y, person)
    with pytest.raises(ValueError, match="unit='person'"):
        run(CALLS[name], X, y, row, groups=copies)
    with pytest.raises(ValueError, match="groups has .* rows, but"):
        run(CALLS[name], X, y, person, groups=copies[1:])
    assert person.epsilon_spent == row.epsilon_spent == 0.0
