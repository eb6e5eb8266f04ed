"""Fits on dask arrays: sums travel, rows stay, and what is released is what memory would give."""

import gc
import pickle
import struct
import threading
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack
from functools import partial

import cloudpickle
import dask
import dask.dataframe
import distributed
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone

from skdp import (
    DPPCA,
    ChunkedArray,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPGridSearchCV,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLinearSVC,
    DPLogisticRegression,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPQuantileTransformer,
    DPRandomForestClassifier,
    DPRidge,
    DPRobustScaler,
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
    dp_median,
    dp_quantile,
    dp_sum,
    dp_var,
    estimate_bounds,
)
from tests._containers import counted
from tests._estimators import CENTRAL_TRANSFORMERS, FIRST_OF_CLASS, instance
from tests._public import missing
from tests._tables import make_table as table_for
from tests.test_containers import leaves

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
    # Quantiles: counts, and for each of two or three levels two passes for ranks, one for rows.
    (DPMinMaxScaler(bounds=(0, 1), epsilon=1e6), 2 + 2 * 3),
    # Here all rows are near the wanted ranks.
    (DPMinMaxScaler(bounds=(0, 1), epsilon=1e-3), 2 + 2),
    (DPRobustScaler(epsilon=1e6), 3 + 2 * 3),
    (DPMaxAbsScaler(bounds=(0, 1), epsilon=1e6), 2 + 3),
    (DPQuantileTransformer(bounds=(0, 1), n_quantiles=9, epsilon=1e6), 2 + 3 * 3),
    (DPKBinsDiscretizer(strategy="quantile", bounds=(0, 1)), None),
    (DPHistogramTransformer(bounds=(0, 1), n_bins=4, epsilon=1e6), 2 + 2 * 3 + 1),
    (DPSimpleImputer(strategy="median", bounds=(0, 1), epsilon=1e6), 2 + 3),
    (DPPCA(data_norm=2.0), 2),
    (DPPCA(data_norm="auto"), 3),
    (DPKMeans(n_clusters=3, bounds=(0, 1)), None),
    (DPGaussianNB(bounds=(0, 1)), 2),
    (DPSimpleImputer(bounds=(0, 1)), 2),
    (DPSimpleImputer(strategy="most_frequent", categories=[0, 1]), 2),
    (DPOneHotEncoder(categories=[0, 1]), None),
    (DPOneHotEncoder(categories=[0, 1], min_frequency=5), 2),
    (DPTargetEncoder(categories=[0, 1], classes=[0, 1]), 2),
    (DPSGDClassifier(max_iter=3, batch_size=N), 6),
    # The steps of these read what is held.
    (DPAdditiveClassifier(bounds=(0, 1), interactions=[(0, 1)]), 3),
    (DPAdditiveClassifier(categories={1: "auto"}), 5),
    (DPAdditiveClassifier(delta=0.0, bounds=(0, 1), classes=[0, 1, 2]), 3),
    (DPAdditiveRegressor(bounds=(0, 1), interactions=1, target_bounds=(0, 1)), 3),
    (DPDecisionTreeClassifier(bounds=(0, 1), max_depth=2), 3),
    (DPRandomForestClassifier(bounds=(0, 1), n_estimators=10), 3),
    (DPHistogramNB(bounds=(0, 1)), 3),
    (DPTableVectorizer(bounds=(0, 1)), 2),
    (DPOneHotEncoder(delta=1e-6), 2),
]
# Of other transformers only the releases are compared.
LISTED = [estimator for estimator, _ in PASSES]
PASSES += [
    (instance(kind, bounds=(0, 1)), None)
    for kind in CENTRAL_TRANSFORMERS
    if missing([kind], LISTED)
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
    (dp_median, {"bounds": (0, 1), "axis": 0}, 5),
    (dp_quantile, {"q": [0.1, 0.9], "axis": 0}, None),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N, D)) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N) > 1).astype(int), np.arange(N) // 3


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


@pytest.mark.quick_cases(every=33)
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


@pytest.mark.quick_cases(every=8)
@pytest.mark.usefixtures("no_rows_here")
@pytest.mark.parametrize("estimator", ITERATIVE, ids=str)
def test_iterations_are_the_same_to_the_last_bit(estimator, table):
    X, y, _ = table
    lazy, _ = counted(X, HEIGHTS)
    model = fitted(estimator, lazy, y, None)
    check_the_same(model, fitted(estimator, in_memory(X), y, None))
    np.testing.assert_array_equal(model.predict(lazy), model.predict(in_memory(X)))


@pytest.mark.thorough
@pytest.mark.usefixtures("no_rows_here", "cluster")
def test_words_stay_where_they_are(table):
    """On a cluster's workers, of all rows and of some by number, persons in several partitions."""
    rng, names = np.random.default_rng(0), ["age", "job", "flag"]
    columns = rng.integers(17, 90, N), rng.choice(["a", "b", "c"], N), rng.integers(0, 2, N) > 0
    frame = pd.DataFrame(dict(zip(names, columns, strict=True))).astype({"job": "category"})
    frame.loc[::9, "job"] = None
    lazy = dask.dataframe.from_pandas(frame, npartitions=4)
    rows = np.arange(5, N, 3)
    for estimator in (
        DPHistogramNB(epsilon=9.0, delta=1e-6, bounds=(17, 90)),
        DPOneHotEncoder(epsilon=90.0, delta=1e-6),
    ):
        groups = None if isinstance(estimator, DPOneHotEncoder) else table[2]
        model = fitted(estimator, lazy, table[1], groups)
        check_the_same(model, fitted(estimator, frame, table[1], groups))
        folds = ((X, table[1][rows], None) for X in (ChunkedArray(lazy)[rows], frame.iloc[rows]))
        check_the_same(*(fitted(estimator, *fold) for fold in folds))
    assert model.transform(lazy).sum().compute() == model.transform(frame).sum()


@pytest.mark.quick_cases(every=4)
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
        assert expected in (None, passes(computed))
        check_the_same(one, other)


@pytest.mark.usefixtures("no_rows_here")
def test_a_vector_is_a_table_of_one_column(table):
    x = table[0][:, 0]
    lazy = dask.array.from_array(x, chunks=HEIGHTS)
    series = dask.dataframe.from_pandas(pd.Series(x), npartitions=3)
    for statistic, terms in ((dp_mean, {}), (dp_quantile, {"q": [0.2, 0.7]}), (dp_count, {})):
        bounds = {} if statistic is dp_count else {"bounds": (0, 1)}
        exact = statistic(x, epsilon=1e9, **terms, **bounds)
        for held in (lazy, series):
            found = statistic(held, epsilon=1e9, **terms, **bounds)
            np.testing.assert_allclose(found, exact, atol=1e-6)


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
    assert accountant.charges == []


@pytest.mark.quick_cases(every=4)
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
        chunk = X[-HEIGHTS[-1] :], (), (None,)
        once, again = (of_last_chunk(*chunk).copy() for _ in range(2))
        assert once.any() and (once == again).all()


# Workers are threads here: how many chunks they have computed, and the end of their scheduler.
COMPUTED, ENDS = [], {}
COMPUTE = dask.compute


def watched(block):
    COMPUTED.append(None)
    if len(COMPUTED) in ENDS:
        ENDS.pop(len(COMPUTED))()
        time.sleep(0.2)
    return block


def of_watched(X):
    """Return a dask array whose chunks are counted when they are computed."""
    COMPUTED.clear()
    blocks = [
        dask.array.from_delayed(dask.delayed(watched)(block), block.shape, block.dtype)
        for block in np.split(X, np.cumsum(HEIGHTS)[:-1])
    ]
    return dask.array.concatenate(blocks)


def lose(client, worker, n_computed):
    """Close a worker when that many chunks have been computed."""
    while len(COMPUTED) < n_computed:
        time.sleep(0.001)
    client.cluster.sync(worker.close)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(C=0.1),
        DPSGDClassifier(max_iter=2, batch_size=500),
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
    accountant, lazy = PrivacyAccountant(10.0, 0.1), of_watched(X)
    watching.start()
    model = fitted(estimator, lazy, y, None, accountant=accountant)
    watching.join()
    assert lost.status == distributed.Status.closed and len(accountant.charges) == 1
    expected = fitted(estimator, in_memory(X), y, None)
    check_the_same(model, expected)


@pytest.mark.parametrize("n_passes", [0, 3])
def test_a_sum_that_is_cancelled_publishes_nothing_and_what_was_charged_stays(
    n_passes, table, monkeypatch
):
    """What dask raises where its client has given up the scheduler; the slow test loses one."""
    X, y, _ = table
    accountant, estimator = PrivacyAccountant(10.0, 0.1), DPLogisticRegression(C=0.1)
    computed, of_dask = [], dask.compute

    def cancelled(*calls, **options):
        computed.append(calls)
        if len(computed) > n_passes:
            raise distributed.client.FutureCancelledError("_of_chunk", "scheduler-connection-lost")
        return of_dask(*calls, **options)

    monkeypatch.setattr(dask, "compute", cancelled)
    with pytest.raises(RuntimeError, match="cluster was lost .* not refunded"):
        estimator.set_params(accountant=accountant).fit(counted(X, HEIGHTS)[0], y)
    assert len(accountant.charges) == bool(n_passes)
    assert not [name for name in vars(estimator) if name.endswith("_")]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "rows",
    [np.arange(N) % 3 > 0, np.arange(N // 2), np.arange(HEIGHTS[0], N), [3, 800, N - 1], []],
    ids=["two thirds", "half", "no first chunk", "three", "none"],
)
def test_folds_are_those_of_the_chunks_to_the_last_bit(rows):
    """Uneven numbers: sums of zeros and ones would be the same in any order."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, D)) * 10.0 ** rng.integers(-8, 1, size=(N, 1))
    rows = np.asarray(rows, dtype=bool if len(rows) == N else int)
    parts, lazy = in_memory(X)[rows], ChunkedArray(dask.array.from_array(X, chunks=(HEIGHTS, 3)))
    assert lazy[rows].offsets == parts.offsets
    np.testing.assert_array_equal(np.asarray(lazy[rows]), np.asarray(parts))
    if len(parts):
        again = np.flatnonzero(np.arange(len(parts)) % 2 == 0)
        for held, other in ((lazy[rows], parts), (lazy[rows][again], parts[again])):
            scaler = DPStandardScaler(bounds=(0, 1), epsilon=1e12, random_state=0)
            check_the_same(clone(scaler).fit(held), clone(scaler).fit(other))


class ClosedClientError(Exception):
    pass


@pytest.mark.parametrize("error", [CancelledError, ClosedClientError])
def test_what_a_chunk_raises_is_no_loss(error, table):
    def raising(block):
        raise error("a pool was shut down")

    lazy = dask.array.map_blocks(raising, counted(table[0], HEIGHTS)[0], dtype=float)
    with pytest.raises(error, match="a pool"):
        DPStandardScaler(bounds=(0, 1)).fit(lazy)


def after(n_sums, act, monkeypatch):
    """Do something once, when that many sums were computed."""
    computed = []

    def compute(*calls, **options):
        results = COMPUTE(*calls, **options)
        computed.append(None)
        if len(computed) == n_sums:
            act()
        return results

    monkeypatch.setattr(dask, "compute", compute)


@pytest.fixture
def connect():
    """Return what opens another client of one cluster, and the list of those that it opened."""
    settings = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, **settings) as local, ExitStack() as stack:
        # Clients that are not closed in order leave what they set.
        stack.enter_context(dask.config.set(scheduler=None))

        def opening():
            clients.append(distributed.Client(local))
            stack.callback(clients[-1].close)
            return clients[-1]

        clients = opening.clients = []
        yield opening


def is_worker():
    try:
        return bool(distributed.get_worker())
    except ValueError:
        return False


class Disk:
    """Chunks are read of it, and it knows by whom; a function of a class goes by its name."""

    by_workers, fails_at = [], None

    @classmethod
    def read(cls, block):
        cls.by_workers.append(is_worker())
        if len(cls.by_workers) == cls.fails_at:
            raise OSError("the disk is gone")
        return block


def on_disk(X):
    Disk.by_workers.clear()
    reads = [
        dask.array.from_delayed(dask.delayed(Disk.read)(block), block.shape, block.dtype)
        for block in np.split(X, np.cumsum(HEIGHTS)[:-1])
    ]
    return dask.array.concatenate(reads)


OF_A_LOSS = [
    (DPStandardScaler(bounds=(0, 1)), 1),
    (DPLogisticRegression(C=0.1), 3),
    (DPAdditiveClassifier(bounds=(0, 1)), 2),
    # Of a search: between two fits, of whose tables none was asked for before.
    (DPGridSearchCV(DPGaussianNB(bounds=(0, 1)), {"priors": [None]}, cv=2), 6),
    # Columns that are brought home.
    (DPMinMaxScaler(bounds=(0, 1)), 2),
]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
@pytest.mark.parametrize(("another", "persisted"), [(False, False), (True, True)])
@pytest.mark.parametrize(("estimator", "n_sums"), OF_A_LOSS, ids=str)
def test_a_client_that_is_closed_between_two_sums_is_a_loss(
    estimator, n_sums, persisted, another, table, connect, monkeypatch
):
    """Dask would go on in this process, or by another client."""
    X, y, _ = table
    accountant = PrivacyAccountant(10.0, 0.1)
    model = clone(estimator).set_params(accountant=accountant)
    connect()
    lazy = on_disk(X)
    if persisted:
        lazy = lazy.persist()
    lost = []

    def lose():
        if another:
            connect()
        connect.clients[0].close()
        lost.append(len(Disk.by_workers))

    after(n_sums, lose, monkeypatch)
    with pytest.raises(RuntimeError, match="client was closed.* not refunded"):
        model.fit(lazy, y)
    assert all(Disk.by_workers) and lost == [len(Disk.by_workers)] != [0]
    assert len(accountant.charges) == 1
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.quick_cases(every=2)
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
@pytest.mark.parametrize("made", ["before the client", "by one that was closed", "by another"])
def test_the_client_that_counts_is_that_of_the_fit(made, table, connect, monkeypatch):
    X, y, _ = table
    model = DPStandardScaler(bounds=(0, 1), random_state=0)
    if made != "before the client":
        connect()
    lazy = ChunkedArray(on_disk(X))
    current = connect()
    if made == "by one that was closed":
        connect.clients[0].close()
    check_the_same(clone(model).fit(lazy, y), fitted(model, in_memory(X), y, None))
    assert Disk.by_workers and all(Disk.by_workers)
    after(1, current.close, monkeypatch)
    with pytest.raises(RuntimeError, match="client was closed"):
        clone(model).fit(lazy, y)
    assert all(Disk.by_workers)


@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
def test_a_table_of_which_nothing_lives_on_a_cluster_is_used_on_others_and_on_none(table, connect):
    X, y, _ = table
    model = DPStandardScaler(bounds=(0, 1), random_state=0)
    lazy = ChunkedArray(on_disk(X))
    expected = fitted(model, in_memory(X), y, None)
    for _ in range(2):
        with connect():
            check_the_same(clone(model).fit(lazy, y), expected)
        assert Disk.by_workers and all(Disk.by_workers)
    check_the_same(clone(model).fit(lazy, y), expected)
    assert not all(Disk.by_workers)


@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
def test_what_lives_on_a_cluster_that_is_gone_is_said_before_the_charge(table, connect):
    X, y, _ = table
    accountant = PrivacyAccountant(10.0, 0.1)
    with connect():
        lazy = dask.array.from_array(X, chunks=500).persist()
    for follow in (connect, lambda: None):
        with pytest.raises(RuntimeError, match="persisted values are needed by another client"):
            DPStandardScaler(bounds=(0, 1), accountant=accountant).fit(lazy)
        follow()
    assert accountant.charges == []


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
@pytest.mark.parametrize("backend", [None, "loky", "dask"])
def test_the_fits_of_a_search_are_where_the_client_is(backend, table, connect):
    """A process of joblib's would read the chunks of a cluster itself, if it could."""
    X, y, _ = table
    connect()
    lazy = on_disk(X).persist()
    search = DPGridSearchCV(
        DPGaussianNB(bounds=(0, 1)), {"priors": [None, [0.5, 0.5]]}, cv=2, n_jobs=2, random_state=0
    )
    settings = {"backend": backend} if backend else {"n_jobs": 2}
    with parallel_config(**settings):
        found = clone(search).fit(lazy, y)
    assert Disk.by_workers == [True] * np.count_nonzero(HEIGHTS)
    check_the_same(
        found.best_estimator_, search.set_params(n_jobs=1).fit(in_memory(X), y).best_estimator_
    )


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
def test_nothing_of_a_fit_stays_with_the_table_or_on_the_cluster(table, connect):
    X, y, _ = table
    client, estimator = connect(), DPLogisticRegression(C=0.1)
    lazy = ChunkedArray(dask.array.from_array(X, chunks=500))
    before = len(cloudpickle.dumps(lazy))
    clone(estimator).fit(lazy, y)
    # As many bytes as rows are far less than any of their targets.
    assert len(cloudpickle.dumps(lazy)) < before + N and no_tasks(client)


def no_tasks(client):
    """Wait until the scheduler holds nothing; what a client has released it tells soon."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.quick_cases(every=2)
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
@pytest.mark.parametrize(
    ("estimator", "n_passes"),
    [(DPLogisticRegression(C=0.1), 1), (DPSGDClassifier(max_iter=2, batch_size=N), 2)],
    ids=str,
)
def test_a_fit_that_failed_leaves_no_error_to_the_next(
    estimator, n_passes, table, connect, monkeypatch
):
    """Not even while the error, or what refers to it in a circle, is kept."""
    X, y, _ = table
    client, lazy = connect(), on_disk(X)
    monkeypatch.setattr(Disk, "fails_at", n_passes * np.count_nonzero(HEIGHTS) + 2)
    gc.disable()
    try:
        with pytest.raises(OSError, match="the disk is gone") as kept:
            fitted(estimator, lazy, y, None)
        assert no_tasks(client) and kept.value.__traceback__
        model = fitted(estimator, lazy, y, None)
    finally:
        gc.enable()
    check_the_same(model, fitted(estimator, in_memory(X), y, None))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending large graph", "ignore:Port")
@pytest.mark.parametrize("n_passes", [0, 3])
def test_a_cluster_that_is_lost_publishes_nothing_and_what_was_charged_stays(n_passes, table):
    """In the check of the rows, before the charge, and in the sums of the second step after it."""
    X, y, _ = table
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    accountant, estimator = PrivacyAccountant(10.0, 0.1), DPLogisticRegression(C=0.1)
    with distributed.LocalCluster(processes=False, **settings) as local, distributed.Client(local):
        lazy = of_watched(X)
        ENDS[n_passes * len(HEIGHTS) + 1] = partial(local.loop.add_callback, local.scheduler.close)
        with pytest.raises(RuntimeError, match="cluster was lost .* not refunded"):
            estimator.set_params(accountant=accountant).fit(lazy, y)
    assert not ENDS and len(accountant.charges) == bool(n_passes)
    assert not [name for name in vars(estimator) if name.endswith("_")]


def lazy(block, shape, dtype=float):
    return dask.array.from_delayed(dask.delayed(lambda: block)(), shape, dtype)


class Other(np.ndarray):
    pass


TRUE = np.full((20, 2), 0.5)
LIES = {
    "one row for all": TRUE[:1],
    "one column for all": TRUE[:, :1],
    "more rows": np.vstack([TRUE, TRUE]),
    "one dimension": TRUE[0],
    "a number": np.float64(0.5),
    "a longer type": TRUE.astype("f4"),
    "integers": TRUE.astype(int),
    "complex": TRUE + 1j,
    "objects": TRUE.astype(object),
    "masked": np.ma.masked_array(TRUE, TRUE > 0),
    "another kind of array": TRUE.view(Other),
    "a list": TRUE.tolist(),
}


@pytest.fixture
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def of_a_dask_array(X):
    return X


def of_rows_by_number(X):
    return ChunkedArray(X)[np.arange(5, len(X) - 5)]


def of_columns_by_number(X):
    return ChunkedArray(X)[:, [1, X.shape[1] - 1]]


def of_what_a_scaler_made(X):
    return DPStandardScaler(bounds=(0, 1)).fit(np.zeros((9, X.shape[1]))).transform(X)


def of_one_chunk_of_several(X):
    return ChunkedArray([X, X])


@pytest.mark.quick_cases(cover="values")
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "made",
    [
        of_a_dask_array,
        *(of_rows_by_number, of_columns_by_number, of_what_a_scaler_made, of_one_chunk_of_several),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("lie", LIES)
def test_a_block_that_is_not_what_the_array_says_is_refused_before_the_charge(lie, axis, made):
    X = dask.array.concatenate([lazy(TRUE, TRUE.shape), lazy(LIES[lie], TRUE.shape)], axis=axis)
    accountant = PrivacyAccountant(10.0, 0.1)
    for estimator in (DPStandardScaler, DPMinMaxScaler):
        with pytest.raises(ValueError, match="a block is a"):
            estimator(bounds=(0, 1), accountant=accountant).fit(made(X))
    assert accountant.charges == []


@pytest.mark.usefixtures("here")
def test_one_stored_cell_moves_a_sum_by_what_is_charged_for_at_most():
    """Dask would take a block of one row for twenty, if it lies beside one that has them."""

    def total(value, n_stored):
        right = lazy(np.full((n_stored, 1), value), (20, 1))
        X = dask.array.concatenate([lazy(np.zeros((20, 1)), (20, 1)), right], axis=1)
        return dp_sum(X, bounds=(0, 1), axis=0, epsilon=1e6, random_state=0)[1]

    with pytest.raises(ValueError, match=r"of shape \(1, 1\)"):
        total(1.0, 1)
    assert total(1.0, 20) == pytest.approx(20.0, abs=0.01)


@pytest.mark.quick_cases(every=5)
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("estimator", FIRST_OF_CLASS, ids=lambda each: type(each).__name__)
def test_every_estimator_releases_the_same_of_chunks_in_memory_and_of_a_grid_of_blocks(estimator):
    X, y = table_for(estimator)
    heights = (7, 0, 1, 92, 20)
    models = (
        fitted(estimator, held, y, None)
        for held in (
            ChunkedArray(np.split(X, np.cumsum(heights)[:-1])),
            dask.array.from_array(X, chunks=(heights, (1, 2))),
        )
    )
    check_the_same(*models)


@pytest.mark.quick_cases(every=2)
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "estimator",
    [
        DPSimpleImputer(bounds=(0, 1)),
        DPSimpleImputer(bounds=(0, 1), add_indicator=True),
        DPSimpleImputer(strategy="median", bounds=(0, 1)),
        DPSimpleImputer(strategy="most_frequent", categories=[0, 1]),
        DPSimpleImputer(strategy="constant", fill_value=7.0),
        DPAdditiveClassifier(bounds=(0, 1)),
        DPAdditiveRegressor(bounds=(0, 1), target_bounds=(0, 1)),
        DPHistogramNB(bounds=(0, 1)),
    ],
    ids=str,
)
def test_what_is_missing_in_parts_is_what_is_missing_in_memory(estimator):
    X = np.random.default_rng(0).integers(0, 2, size=(90, 3)) + 0.0
    y, X[::7, 1] = X[:, 0].astype(int), np.nan
    models = []
    for held in (
        X,
        ChunkedArray([X[:50], X[50:]]),
        dask.array.from_array(X, chunks=((50, 0, 40), (1, 2))),
    ):
        model = clone(estimator).set_params(random_state=0).fit(held, y)
        answer = model.transform if hasattr(model, "transform") else model.predict
        models.append([*leaves(model), np.asarray(answer(held)).tobytes()])
    assert models[0] == models[1] == models[2]


@pytest.mark.usefixtures("here")
def test_targets_that_declare_nothing_are_refused(table):
    X, y, _ = table
    with pytest.raises(ValueError, match="from_delayed"):
        DPLogisticRegression(C=0.1).fit(counted(X, HEIGHTS)[0], dask.delayed(y))
    one = dask.array.from_delayed(dask.delayed(y[:1]), (N,), y.dtype)
    with pytest.raises(ValueError, match="a block is a"):
        DPLogisticRegression(C=0.1).fit(X, one)
    with pytest.raises(ValueError, match="0 sample"):
        DPStandardScaler(bounds=(0, 1)).fit(counted(X, HEIGHTS)[0][:0])


SEED = 987654321


@pytest.fixture(scope="module")
def another_process():
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, memory_limit=0, **settings) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture
def sent(monkeypatch):
    """Return all pickles that go to other processes."""
    pickles, dumps = [], distributed.protocol.pickle.dumps

    def recorded(*args, **options):
        pickles.append(bytes(dumps(*args, **options)))
        return pickles[-1]

    monkeypatch.setattr("distributed.protocol.pickle.dumps", recorded)
    return pickles


@pytest.mark.thorough
@pytest.mark.usefixtures("another_process")
@pytest.mark.parametrize(
    "estimator",
    [
        DPStandardScaler(bounds=(0, 1)),
        DPSGDClassifier(max_iter=1, batch_size=500),
        DPAdditiveClassifier(bounds=(0, 1)),
    ],
    ids=str,
)
def test_another_process_gets_neither_accountant_nor_ledger_nor_noise_nor_seed(
    estimator, table, sent, tmp_path
):
    X, y, _ = table
    lazy, expected = (
        dask.array.from_array(X, chunks=(N // 2, (1, 3))),
        ChunkedArray([X[: N // 2], X[N // 2 :]]),
    )
    path, seed = tmp_path / "address_of_it.db", struct.pack("<i", SEED)
    accountant = PrivacyAccountant(10.0, 0.1, ledger=str(path), dataset="name_of_data")
    secret = (b"address_of_it", b"name_of_data", seed)
    kept = clone(estimator).set_params(accountant=accountant, random_state=SEED)
    assert all(word in cloudpickle.dumps(kept) for word in secret)
    model = kept.fit(lazy, y)
    assert sent
    for word in (*secret, b"ccountant", b"edger", b"oise", b"Source"):
        assert not any(word in each for each in sent)
    sent.clear()
    answer, same = (
        getattr(each, "transform" if hasattr(each, "transform") else "predict")
        for each in (model, clone(estimator).set_params(random_state=SEED).fit(expected, y))
    )
    # A function of the user's script is pickled whole, and what comes with it as well.
    np.testing.assert_array_equal(answer(lazy.map_blocks(lambda block: 1 - block)), same(1 - X))
    assert sent
    assert not any(word in each for word in secret for each in sent)


@pytest.mark.thorough
@pytest.mark.usefixtures("no_rows_here")
def test_a_client_does_not_keep_what_it_sent(table, cluster):
    """Of a batch the numbers of its rows, which nobody is to know; and a thousand take memory."""
    X, y, _ = table
    lazy, _ = counted(X, HEIGHTS)
    fitted(DPSGDClassifier(batch_size=N // 9, max_iter=1), lazy, y, None)
    words = repr(list(cluster.scheduler_comm.recent_message_log))
    assert "update-graph" not in words
