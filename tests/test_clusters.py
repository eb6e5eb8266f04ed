"""Fits on dask arrays: sums travel, rows stay, and what is released is what memory would give."""

import pickle
import threading
import time

import dask
import distributed
import numpy as np
import pytest
from sklearn.base import clone

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKMeans,
    DPLinearSVC,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRandomForestClassifier,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp.stats import (
    dp_count,
    dp_covariance,
    dp_histogram,
    dp_histogramdd,
    dp_mean,
    dp_sum,
    dp_var,
    estimate_bounds,
)
from skdp.utils import ChunkedArray
from tests.test_containers import leaves
from tests.utils.test_chunked import counted

HEIGHTS = (700, 1, 0, 1600, 423)
N, D = sum(HEIGHTS), 4

# The passes over the rows are: a check of them, the search for bounds or a norm, what is held of
# each row, then the sums; a check of the weights is two.
PASSES = [
    (DPStandardScaler(bounds=(0, 1)), 2),
    (DPStandardScaler(bounds="auto"), 3),
    (DPMeanTransformer(bounds=(0, 1)), 2),
    (DPHistogramTransformer(edges="uniform", bounds=(0, 1)), 2),
    (DPHistogramTransformer(edges="uniform"), 3),
    # Quantiles are found in a column that is brought here: a pass each.
    (DPHistogramTransformer(bounds=(0, 1)), 2 + D),
    (DPMinMaxScaler(bounds=(0, 1)), 1 + D),
    (DPPCA(data_norm=2.0), 2),
    (DPPCA(data_norm="auto"), 3),
    (DPKMeans(n_clusters=3, bounds=(0, 1)), None),
    (DPGaussianNB(bounds=(0, 1)), 2),
    (DPSimpleImputer(bounds=(0, 1)), 2),
    (DPSimpleImputer(strategy="most_frequent", categories=[0, 1]), None),
    (DPOneHotEncoder(categories=[0, 1]), None),
    (DPTargetEncoder(categories=[0, 1], classes=[0, 1]), None),
    (DPSGDClassifier(max_iter=3, batch_size=N), 5),
    # The steps of these read what is held.
    (DPAdditiveClassifier(bounds=(0, 1), interactions=[(0, 1)]), 3),
    (DPAdditiveClassifier(categories={1: "auto"}), 5),
    (DPAdditiveClassifier(delta=0.0, bounds=(0, 1), classes=[0, 1, 2]), 3),
    (DPAdditiveRegressor(bounds=(0, 1), interactions=1, target_bounds=(0, 1)), 3),
    (DPDecisionTreeClassifier(bounds=(0, 1), max_depth=2), 3),
    (DPRandomForestClassifier(bounds=(0, 1), n_estimators=10), 3),
    (DPHistogramNB(bounds=(0, 1)), 3),
    (DPTableVectorizer(bounds=(0, 1)), 2),
    (DPOneHotEncoder(delta=1e-6), None),
]
ITERATIVE = [
    DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics", data_norm="auto"),
    DPLogisticRegression(C=0.1),
    DPLogisticRegression(C=0.1, mechanism="gradient", standard_errors="total"),
    DPLogisticRegression(data_norm="auto", classes=[0, 1, 2]),
    DPLinearSVC(C=0.1, mechanism="output"),
    DPPoissonRegressor(alpha=0.1, target_bounds=(0, 1)),
    DPSGDClassifier(max_iter=2, batch_size=300),
    DPSGDRegressor(max_iter=2, batch_size=300, target_bounds=(0, 1)),
]
STATISTICS = [
    (dp_mean, {"bounds": (0, 1), "axis": 0}, 2),
    (dp_var, {"bounds": "auto", "axis": 0}, 3),
    (dp_sum, {"bounds": (0, 1), "axis": 0}, 2),
    (dp_count, {"axis": 0}, 2),
    (dp_histogram, {"range": (0, 1), "axis": 0}, 2),
    (dp_histogramdd, {"range": [(0, 1)] * D, "bins": 3}, 2),
    (estimate_bounds, {"axis": 0}, 2),
    (dp_covariance, {"bounds": (0, 1)}, 2),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N, D)) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N) > 1).astype(int), np.arange(N) // 3


@pytest.fixture
def no_rows_here(monkeypatch):
    """Let no chunk be read where the fit is."""

    def read(self):
        raise AssertionError("a chunk was pulled")

    monkeypatch.setattr("skdp.utils._chunked._DaskRows.open", read)


@pytest.fixture
def cluster():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=False, **settings) as local,
        distributed.Client(local) as client,
    ):
        yield client


def in_memory(X):
    return ChunkedArray(np.split(X, np.cumsum(HEIGHTS)[:-1]))


def fitted(estimator, *table, **settings):
    return clone(estimator).set_params(random_state=0, **settings).fit(*table[:2], groups=table[2])


def check_the_same(one, other):
    assert list(leaves(one)) == list(leaves(other))


def passes(computed):
    counts = np.bincount(computed, minlength=len(HEIGHTS))[np.array(HEIGHTS) > 0]
    assert np.ptp(counts) == 0
    return counts[0]


@pytest.mark.usefixtures("no_rows_here")
@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize(("estimator", "expected"), PASSES, ids=str)
def test_rows_are_read_once_in_a_pass_where_they_are(estimator, expected, by_person, table):
    X, y, groups = table
    if by_person and isinstance(estimator, DPSGDClassifier):
        estimator = clone(estimator).set_params(batch_size=groups[-1] + 1)
    groups = groups if by_person else None
    lazy, computed = counted(X, HEIGHTS)
    model = fitted(estimator, lazy, y, groups)
    assert expected in (None, passes(computed))
    check_the_same(model, fitted(estimator, in_memory(X), y, groups))


@pytest.mark.usefixtures("no_rows_here")
@pytest.mark.parametrize("estimator", ITERATIVE, ids=str)
def test_iterations_are_the_same_to_the_last_bit(estimator, table):
    X, y, _ = table
    lazy, _ = counted(X, HEIGHTS)
    model = fitted(estimator, lazy, y, None)
    check_the_same(model, fitted(estimator, in_memory(X), y, None))
    np.testing.assert_array_equal(model.predict(lazy), model.predict(in_memory(X)))


@pytest.mark.usefixtures("no_rows_here")
@pytest.mark.parametrize(("statistic", "terms", "expected"), STATISTICS)
def test_statistics_are_the_same_to_the_last_bit(statistic, terms, expected, table):
    X, _, groups = table
    for own in (None, groups):
        lazy, computed = counted(X, HEIGHTS)
        one, other = (
            statistic(held, epsilon=1.0, random_state=0, groups=own, **terms)
            for held in (lazy, in_memory(X))
        )
        assert passes(computed) == expected
        check_the_same(one, other)


def test_a_table_in_memory_may_be_a_chunked_array():
    X = np.arange(20.0).reshape(10, 2)
    X[3, 1] = np.nan
    terms = {"bounds": (0, 20), "axis": 0, "epsilon": 1e6, "nan_policy": "omit"}
    means = dp_mean(ChunkedArray([X[:4], X[4:]]), **terms)
    np.testing.assert_allclose(means, np.nanmean(X, axis=0), atol=1e-3)
    with pytest.raises(ValueError, match="NaN"):
        dp_mean(ChunkedArray([X]), axis=0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_a_chunk_must_not_hold_is_refused_and_not_charged(value, table):
    X, y, _ = table
    accountant = PrivacyAccountant(10.0, 0.1)
    bad = X.copy()
    bad[-1, 2] = value
    typed = dask.array.map_blocks(
        lambda block: block.astype(np.float32), counted(X, HEIGHTS)[0], dtype=float
    )
    words = "NaN" if np.isnan(value) else "infinity"
    for held, expected in ((counted(bad, HEIGHTS)[0], words), (typed, "float32")):
        with pytest.raises(ValueError, match=expected):
            fitted(DPStandardScaler(bounds=(0, 1)), held, y, None, accountant=accountant)
    assert accountant.spends == []


@pytest.mark.parametrize(
    "estimator",
    [
        DPSGDClassifier(max_iter=1, batch_size=500),
        DPRidge(mechanism="sufficient_statistics", target_bounds=(0, 1)),
        DPAdditiveClassifier(bounds=(0, 1), interactions=[(0, 1)]),
        DPStandardScaler(bounds=(0, 1)),
    ],
    ids=str,
)
def test_workers_get_neither_accountant_nor_noise_and_can_begin_again(
    estimator, table, monkeypatch, tmp_path
):
    """What is sent is a function of a chunk, which gives the same when it is called again."""
    X, y, _ = table
    sent, of_dask = [], dask.delayed

    def recorded(function, *args, **options):
        if callable(function):
            sent.append(pickle.dumps(function))
        return of_dask(function, *args, **options)

    lazy, _ = counted(X, HEIGHTS)
    monkeypatch.setattr(dask, "delayed", recorded)
    accountant = PrivacyAccountant(10.0, 0.1, ledger=str(tmp_path / "ledger.db"))
    fitted(estimator, lazy, y, None, accountant=accountant)
    assert sent and max(map(len, sent)) < 40_000
    for word in (b"ccountant", b"ledger", b"oise", b"Source", X[5:9].tobytes()):
        assert not any(word in each for each in sent)
    if isinstance(estimator, DPStandardScaler):
        of_last_chunk = pickle.loads(sent[-1])
        chunk = X[-HEIGHTS[-1] :], ((), (None,))
        once, again = (of_last_chunk(*chunk).copy() for _ in range(2))
        assert once.any() and (once == again).all()


# Workers are threads here: how many chunks they have computed.
COMPUTED = []


def watched(block):
    COMPUTED.append(None)
    return block


def lose(client, worker, n_computed):
    """Close a worker when that many chunks have been computed."""
    while len(COMPUTED) < n_computed:
        time.sleep(0.001)
    client.cluster.sync(worker.close)


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize(
    "estimator",
    [
        DPSGDClassifier(max_iter=2, batch_size=500),
        DPLogisticRegression(C=0.1),
        DPAdditiveClassifier(bounds=(0, 1)),
    ],
    ids=str,
)
def test_a_worker_that_is_lost_changes_nothing(estimator, table, cluster):
    X, y, _ = table
    lost = cluster.cluster.workers[0]
    # After the check, and when something is held of each row; dask leaves out what is empty.
    n_computed = 3 * np.count_nonzero(HEIGHTS)
    watching = threading.Thread(target=lose, args=(cluster, lost, n_computed))
    blocks = [
        dask.array.from_delayed(dask.delayed(watched)(block), block.shape, block.dtype)
        for block in np.split(X, np.cumsum(HEIGHTS)[:-1])
    ]
    accountant = PrivacyAccountant(10.0, 0.1)
    COMPUTED.clear()
    watching.start()
    model = fitted(estimator, dask.array.concatenate(blocks), y, None, accountant=accountant)
    watching.join()
    assert lost.status == distributed.Status.closed and len(accountant.spends) == 1
    expected = fitted(estimator, in_memory(X), y, None)
    check_the_same(model, expected)
