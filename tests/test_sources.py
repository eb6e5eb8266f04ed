"""Tables of other libraries, read in parts: what is released is what memory would give."""

import copy
import gc
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import weakref

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline, make_union

from skdp import (
    ChunkedArray,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPGridSearchCV,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKMeans,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.model_selection import PersonKFold, bounded_score, dp_cross_val_score, make_dp_scorer
from skdp.stats import dp_mean
from tests._estimators import FIRST_OF_CLASS
from tests._private import Decoded, array_of_columns, in_memory, make_table
from tests.test_clusters import ITERATIVE, PASSES
from tests.test_containers import leaves

pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    pytest.mark.filterwarnings("ignore:column '.' holds numbers"),
]
N, NAMES = 300, ["a", "b", "c", "d"]
ESTIMATORS = [clone(e) for e in (*(e for e, _ in PASSES), ITERATIVE[0], *ITERATIVE[-2:])]
TRANSFORMERS = [e for e in ESTIMATORS if hasattr(e, "transform")]
PREDICTING = [e for e in FIRST_OF_CLASS if hasattr(e, "predict")]
PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")
KINDS = ["path", "LazyFrame", "dataset", "dask frame", "scans", "dask files"]
SCALER = DPStandardScaler(bounds=(0, 1), random_state=0)
SCALED = make_pipeline(
    DPStandardScaler(bounds=dict.fromkeys(NAMES, (0, 1))),
    DPRidge(mechanism="sufficient_statistics", target_bounds=(0, 1), data_norm=2.0),
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr("skdp._data._sources.SLICE_BYTES", 8 * len(NAMES) * 20)
    monkeypatch.setattr("skdp._data._sources.SLICES_PER_ROW_GROUP", 4)
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N, len(NAMES))) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N) > 1).astype(int), rng.integers(0, 90, size=N)


def arrow(X):
    return pa.table(dict(zip(NAMES, np.ascontiguousarray(X.T), strict=True)))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Return a folder of two files, one of several row groups."""
    path, rows = tmp_path_factory.mktemp("rows"), arrow(table[0])
    pq.write_table(rows.slice(0, 90), path / "0.parquet")
    pq.write_table(rows.slice(90), path / "1.parquet", row_group_size=100)
    return path


def sources(X, folder):
    frame = pd.DataFrame(X, columns=NAMES)
    return {
        "path": folder,
        "dataset": ds.dataset(folder),
        "LazyFrame": pl.DataFrame(frame).lazy(),
        "scans": pl.concat(map(pl.scan_parquet, sorted(folder.iterdir()))),
        "dask frame": dd.from_pandas(frame, npartitions=3),
        "dask files": dd.read_parquet(folder),
    }


def cut_as(source, X):
    return ChunkedArray(np.split(X, ChunkedArray(source).offsets[1:-1]))


def fitted(estimator, X, y=None, groups=None, **settings):
    return clone(estimator).set_params(random_state=0, **settings).fit(X, y, groups=groups)


def values(model):
    held = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "feature_names_in_"}
    return [re.sub(r"(?<=name=)'[^']*'", "", str(each)) for each in leaves(held)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_memory(kind, table, folder):
    source, rng = sources(table[0], folder)[kind], np.random.default_rng(0)
    chunked = ChunkedArray(source)
    assert len(chunked.offsets) > 2 and chunked.dtype == np.float64
    for start, stop in np.sort(rng.integers(0, N + 1, size=(20, 2))):
        np.testing.assert_array_equal(chunked[start:stop], table[0][start:stop])


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_decoded_of_a_chunk_is_forgotten_with_it(kind, table, folder):
    """Without a search for cycles, which may come after a gigabyte."""
    gc.disable()
    try:
        for open_chunk in ChunkedArray(sources(table[0], folder)[kind]).partitions():
            chunk = open_chunk()
            chunk[0:1]
            forgotten = weakref.ref(chunk)
            del chunk
            assert forgotten() is None
    finally:
        gc.enable()


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_what_is_released_is_what_memory_gives(number, table, folder):
    """Every estimator reads one of the sources, in turns; rows of a person lie in several parts."""
    X, y, groups = table
    estimator, kind = ESTIMATORS[number], KINDS[number % len(KINDS)]
    source, groups = sources(X, folder)[kind], None if number % 2 else groups
    if hasattr(estimator, "batch_size"):
        groups, estimator = None, clone(estimator).set_params(batch_size=50, max_iter=2)
    model = fitted(estimator, source, y, groups)
    assert model.feature_names_in_.tolist() == NAMES
    assert values(model) == values(fitted(estimator, cut_as(source, X), y, groups))


def test_statistics_read_the_sources(table, folder):
    X, _, groups = table
    for own, source in zip([None, groups] * 3, sources(X, folder).values(), strict=True):
        terms = {"bounds": (0, 1), "axis": 0, "random_state": 0, "groups": own}
        one, other = (dp_mean(held, **terms) for held in (source, cut_as(source, X)))
        np.testing.assert_array_equal(one, other)


def test_names_are_compared(table, folder):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=NAMES)
    for source in sources(X, folder).values():
        model = fitted(DPGaussianNB(bounds=(0, 1)), source, y)
        np.testing.assert_array_equal(model.predict(source), model.predict(frame))
    other = pl.DataFrame(X, schema=["a", "b", "d", "c"]).lazy()
    for call in (model.predict, fitted(SCALER, source).transform):
        with pytest.raises(ValueError, match="feature names should match"):
            call(other)


def test_targets_and_groups_may_be_lazy(table, folder):
    X, y, groups = table
    frame = pd.DataFrame({"y": y, "g": groups})
    lazy, parts = pl.DataFrame(frame).lazy(), dd.from_pandas(frame, npartitions=4)
    pairs = [
        (parts.y, parts.g),
        (parts.y.to_dask_array(), parts.g.to_dask_array()),
        (lazy.select("y"), lazy.select("g")),
        (pa.chunked_array([y[:5], y[5:]]), pa.chunked_array([groups[:7], groups[7:]])),
    ]
    expected = values(fitted(DPGaussianNB(bounds=(0, 1)), folder, y, groups))
    for targets, ids in pairs:
        assert values(fitted(DPGaussianNB(bounds=(0, 1)), folder, targets, ids)) == expected
    accountant = PrivacyAccountant(10.0, 0.1, unit="person")
    for targets, ids in ((lazy.select("y").head(5), groups), (y, lazy.select("g").head(5))):
        with pytest.raises(ValueError, match="rows, but X has"):
            fitted(DPGaussianNB(bounds=(0, 1)), folder, targets, ids, accountant=accountant)
    assert accountant.charges == []


# Each row is read by itself.


def read(table):
    return ChunkedArray(table)[:]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        *((kind, None) for kind in ("int64", "float32", "float64", "bool_", "uint8")),
        *(("int64", value) for value in (2**60 + 1, -7)),
        *(("float64", value) for value in (1e300, -0.0)),
        ("float32", 1e-40),
    ],
)
def test_one_value_has_no_say_in_how_others_are_read(kind, odd, tmp_path):
    """The type is that of the schema, whether a value is missing or not."""
    arrow_type = getattr(pa, kind)()
    cells = np.random.default_rng(0).integers(0, 2, 50).astype(kind.strip("_")).tolist()
    changed = pa.array([odd, *cells[1:]], arrow_type)
    for k, column in enumerate((pa.array(cells, arrow_type), changed)):
        pq.write_table(pa.table({"a": column, "b": column}), tmp_path / f"{k}.parquet")
    plain, other = (tmp_path / f"{k}.parquet" for k in range(2))
    scans = [lambda p: p, pl.scan_parquet, lambda p: dd.read_parquet(p, dtype_backend="pyarrow")]
    for scan in scans:
        one, two = read(scan(plain)), read(scan(other))
        assert one.dtype == two.dtype and one.dtype.kind == "f"
        assert one[1:].tobytes() == two[1:].tobytes()
        np.testing.assert_array_equal(two[0], np.nan if odd is None else changed[0].as_py())


def test_missing_numbers_are_refused_or_imputed_as_in_memory(table):
    X = table[0].copy()
    X[5, 1] = np.nan
    source = pl.DataFrame(X, schema=NAMES).with_columns(pl.all().fill_nan(None)).lazy()
    assert source.collect().null_count().sum_horizontal().item() == 1
    accountant = PrivacyAccountant(10.0, 0.1)
    with pytest.raises(ValueError, match="NaN"):
        fitted(SCALER, source, accountant=accountant)
    assert accountant.charges == []
    for imputer in (
        DPSimpleImputer(bounds=(0, 1)),
        DPSimpleImputer(strategy="most_frequent", categories=[0, 1]),
    ):
        model = fitted(imputer, source)
        filled = np.asarray(model.transform(source))
        np.testing.assert_array_equal(filled, model.transform(source.collect()))


def test_what_is_no_number_is_refused_in_words(table, folder, tmp_path):
    frame = pl.DataFrame({"a": [1.0], "city": ["x"]})
    frame = frame.with_columns(many=pl.concat_list("a"), two=pl.struct("a", "city"))
    frame.write_parquet(tmp_path / "x.parquet")
    for source in (frame.lazy(), tmp_path / "x.parquet"):
        with pytest.raises(ValueError, match="got 'many' of .*'two' of .*such columns"):
            fitted(SCALER, source)
    numbers = tmp_path / "numbers.csv"
    frame.select("a").write_csv(numbers)
    with pytest.raises(ValueError, match="one value determines"):
        fitted(SCALER, ds.dataset(numbers, format="csv"))
    # A file of another type than the first would be cast, and one value could make that fail.
    pq.write_table(arrow(table[0]), tmp_path / "0.parquet")
    pq.write_table(arrow(table[0].astype(int)), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match="write all files with the same schema"):
        ChunkedArray([tmp_path / "0.parquet", tmp_path / "1.parquet"])


def test_a_file_that_changes_is_refused(table, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(arrow(table[0]), path)
    X = ChunkedArray(path)
    X[:]
    for others in (table[0][:50], 1 - table[0]):
        pq.write_table(arrow(others), path)
        for _ in range(2):
            with pytest.raises(ValueError, match="x.parquet has changed"):
                ChunkedArray([X])[:]


def test_arrays_in_files_that_change_are_refused_in_views_too(table, tmp_path):
    """Where values alone are others, the file says when it was written."""
    path, X = tmp_path / "x.npy", table[0]
    for others in (X[:50], X.astype(np.float32), 1 - X):
        np.save(path, X)
        chunked = ChunkedArray([path])
        made = (chunked, chunked[np.arange(9)], chunked[:, [0]], np.hstack([chunked, chunked]))
        kept = [pickle.dumps(each) for each in made]
        np.save(path, others)
        os.utime(path, ns=(0, 0))
        for each in kept:
            with pytest.raises(ValueError, match="x.npy has changed"):
                pickle.loads(each)[0:2]


def of_a_view(X):
    return X[:, [1, 0]]


@pytest.mark.parametrize("made", [ChunkedArray, of_a_view])
@pytest.mark.parametrize("kind", ["path", "LazyFrame"])
def test_threads_read_one_table_each_where_it_was(kind, made, table, folder):
    X = made(ChunkedArray(sources(table[0], folder)[kind]))
    expected, turns = X[:], threading.Barrier(2)

    def read_on(step, found):
        for start in range(0, N, step):
            turns.wait(60)
            found.append(X[start : start + step])

    found = [], []
    # Both take N / 12 turns; one is ahead of the other, in the same chunk or in another one.
    other = threading.Thread(target=lambda: read_on(12, found[0]))
    other.start()
    for start in reversed(range(0, N, 12)):
        turns.wait(60)
        found[1].append(X[start : start + 12])
    other.join()
    np.testing.assert_array_equal(np.vstack(found[0]), expected)
    np.testing.assert_array_equal(np.vstack(found[1][::-1]), expected)


# The rows that a plan yields are the table: those of a LazyFrame are written once.

PLANS = {
    "sort": lambda f: f.sort("a"),
    "unique": lambda f: f.unique(),
    "group_by": lambda f: f.group_by("a").agg(pl.all().sum()),
    "join": lambda f: f.join(f.unique("a"), on="a"),
    "shuffle": lambda f: f.select(pl.all().shuffle()),
    "sample": lambda f: f.select(pl.all().sample(fraction=0.5, shuffle=True)),
    "sorted column": lambda f: f.select(pl.col("a").sort(), "b"),
    "filter": lambda f: f.filter(pl.col("a") > 0),
    "mean": lambda f: f.select(pl.all() - pl.all().mean()),
    "function of python": lambda f: f.map_batches(lambda each: each.sample(fraction=1.0)),
    "filtered, then cut": lambda f: f.filter(pl.col("a") > 0).slice(3, 60),
    "beside": lambda f: pl.concat([f.select("a"), f.select(e="b")], how="horizontal"),
    "cast": lambda f: f.cast(pl.Float32),
    "names": lambda f: f.select(pl.col("a").alias('SCAN ["'), pl.col("b").alias('1"\nSORT BY')),
}


def sorted_rows(X):
    return np.asarray(X)[np.lexsort(np.asarray(X).T)]


@pytest.mark.parametrize("plan", PLANS)
def test_the_rows_that_a_lazy_frame_yields_are_the_table(plan, folder):
    """A factor that is held of each row would otherwise be another row's."""
    frame = PLANS[plan](pl.scan_parquet(folder / "0.parquet"))
    chunked = ChunkedArray(frame)
    X = chunked[:]
    for again in (chunked, pickle.loads(pickle.dumps(chunked))):
        np.testing.assert_array_equal(again[:], X)
    rows = np.arange(0, len(X), 3)
    np.testing.assert_array_equal(chunked[rows][:], X[rows])
    expected = frame.collect()
    assert chunked.shape == expected.shape
    if plan not in ("sample", "shuffle"):
        np.testing.assert_allclose(sorted_rows(X), sorted_rows(expected), atol=1e-12)
    scaler = DPStandardScaler(bounds=(0, 1), random_state=0)
    known = fitted(scaler, np.array_split(X, 1)[0])
    assert fitted(scaler, chunked).feature_names_in_.tolist() == expected.columns
    np.testing.assert_array_equal(fitted(scaler, chunked).mean_, known.mean_)


def watched_plan(X, computed):
    """Return a LazyFrame that notes when it is computed, and shuffles its rows each time."""

    def shuffled(frame):
        computed.append(None)
        return frame.sample(fraction=1.0, shuffle=True)

    return pl.DataFrame(X, schema=NAMES).lazy().map_batches(shuffled)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_a_fit_computes_a_lazy_frame_once_and_leaves_no_file(number, table, rows_on_disk):
    X, y, _ = table
    estimator = ESTIMATORS[number]
    if hasattr(estimator, "batch_size"):
        estimator = clone(estimator).set_params(batch_size=50, max_iter=2)
    computed = []
    model = fitted(estimator, watched_plan(X, computed), y)
    assert len(computed) == 1 and rows_on_disk() == []
    for name in ("transform", *PREDICTIONS[:4]):
        if hasattr(model, name):
            np.asarray(getattr(model, name)(watched_plan(X, computed)))
            assert rows_on_disk() == []


@pytest.fixture
def rows_on_disk(tmp_path, monkeypatch):
    """Return what lists the files of raw rows that lie in the directory for temporary files."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return lambda: sorted(directory.glob("skdp-rows-*/*"))


def test_only_its_owner_can_read_the_file_of_a_lazy_frame(table, rows_on_disk):
    before = os.umask(0)
    try:
        with ChunkedArray(pl.DataFrame(table[0], schema=NAMES).lazy()):
            [file] = rows_on_disk()
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_the_file_of_a_lazy_frame_goes_with_the_table(table, rows_on_disk):
    X = table[0]
    frame = pl.DataFrame(X, schema=NAMES).lazy()
    chunked = ChunkedArray(frame)
    others = [chunked[[0, 5]], chunked[:, [1]], fitted(SCALER, X).transform(chunked)]
    sent, same = pickle.loads(pickle.dumps(chunked)), copy.deepcopy(chunked)
    for each in (*others, sent):
        each.close()
    assert len(rows_on_disk()) == 1
    np.testing.assert_array_equal(sent[:], X)
    chunked.close()
    chunked.close()
    assert rows_on_disk() == []
    for each in (chunked, *others, sent, same):
        with pytest.raises(ValueError, match="has changed, or was removed"):
            each[:]
    with ChunkedArray([frame.head(9), frame.tail(9)]) as several:
        assert len(several) == 18 and len(rows_on_disk()) == 2
    assert rows_on_disk() == []
    # Without a close it goes with the last table that reads it.
    chunked = ChunkedArray(frame)
    taken = copy.deepcopy(chunked)[np.arange(0, N, 2)]
    del chunked
    np.testing.assert_array_equal(taken[:], X[::2])
    del taken
    assert rows_on_disk() == []


FAILING = {
    "a fit before its charge": lambda frame, y: fitted(SCALER, frame.with_columns(a=np.inf)),
    "a fit that cannot pay": lambda frame, y: fitted(
        SCALER, frame, accountant=PrivacyAccountant(0.5, 0.0)
    ),
    "a fit of other rows": lambda frame, y: fitted(DPGaussianNB(bounds=(0, 1)), frame, y[:5]),
    "a fit after its charge": lambda frame, y: fitted(
        DPLogisticRegression(C=0.1, accountant=PrivacyAccountant(9.0, 0.1)), frame, y
    ),
    "a search": lambda frame, y: clone(SEARCH).fit(frame, y),
    "a statistic": lambda frame, y: dp_mean(
        frame, bounds=(0, 1), axis=0, accountant=PrivacyAccountant(0.5, 0.0)
    ),
    "a score": lambda frame, y: make_dp_scorer("accuracy", accountant=PrivacyAccountant(0.5, 0.0))(
        DPGaussianNB(bounds=(0, 1), random_state=0).fit(np.zeros((9, 4)), np.arange(9) % 2),
        frame,
        y,
    ),
    "a prediction": lambda frame, y: (
        DPGaussianNB(bounds=(0, 1), random_state=0)
        .fit(np.zeros((9, 3)), np.arange(9) % 2)
        .predict(frame)
    ),
    "a transform": lambda frame, y: fitted(SCALER, np.zeros((9, 3))).transform(frame),
    "a table of rows that cannot be made": lambda frame, y: ChunkedArray(
        frame.with_columns(pl.lit("x").cast(pl.Int64))
    ),
}


@pytest.mark.parametrize("what", FAILING)
def test_what_fails_leaves_no_file_while_the_error_is_kept(what, table, rows_on_disk, monkeypatch):
    X, y, _ = table
    if what in ("a fit after its charge", "a search"):
        seen = []

        def failing(*args, **kwargs):
            seen.append(len(rows_on_disk()))
            raise OSError("no noise is left")

        monkeypatch.setattr("skdp.noise._source.RandomSource.stream", failing)
    with pytest.raises(Exception) as kept:
        FAILING[what](pl.DataFrame(X, schema=NAMES).lazy(), y)
    assert rows_on_disk() == [] and kept.value.__traceback__ is not None
    if what in ("a fit after its charge", "a search"):
        assert seen[0] == 1 and "no noise is left" in str(kept.value)


LEAVING = """
import sys
import polars as pl
from skdp import ChunkedArray

X = ChunkedArray(pl.DataFrame({"a": [0.0, 1.0]}).lazy())
kept = X._sources
{how}
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "n_left"),
    [
        ("sys.exit(3)", 0),
        ("1 / 0", 0),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 1),
        ("import os; os.fork() or sys.exit(); assert X[:].shape == (2, 1)", 0),
    ],
)
def test_a_process_that_ends_removes_its_files_unless_it_is_killed(how, n_left, rows_on_disk):
    script = LEAVING.replace("{how}", how)
    environment = os.environ | {"TMPDIR": tempfile.tempdir}
    subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert len(rows_on_disk()) == n_left


def test_a_forked_process_does_not_take_the_rows_from_its_parent(table, rows_on_disk):
    chunked = ChunkedArray(pl.DataFrame(table[0], schema=NAMES).lazy())
    removing = chunked._sources[0].temporary
    child = multiprocessing.get_context("fork").Process(target=removing.remove)
    child.start()
    child.join()
    assert len(rows_on_disk()) == 1
    np.testing.assert_array_equal(chunked[:], table[0])


def test_a_lazy_frame_without_rows_or_columns_is_refused_in_words(table, rows_on_disk):
    frame = pl.DataFrame(table[0], schema=NAMES).lazy()
    for empty in (frame.head(0), frame.select([])):
        with pytest.raises(ValueError, match=r"Found array with 0 (sample|feature)"):
            fitted(SCALER, empty)
    assert rows_on_disk() == []


@pytest.mark.thorough
def test_a_dask_frame_is_read_as_it_is_computed(table):
    """In the order in which `compute` has its rows, whatever its plan does."""
    frame = dd.from_pandas(pd.DataFrame(table[0], columns=NAMES), npartitions=3)
    array = da.from_array(table[0], chunks=(90, 4))
    frames = {
        "filter": frame[frame.a > 0],
        "mean": frame - frame.mean(),
        "query": frame.query("a > a.mean()"),
        "chosen": frame[["b", "a"]],
        "Float64": frame.astype("Float64"),
        "of an array": dd.from_dask_array(array, columns=NAMES),
    }
    held = [each.persist() for each in frames.values()]
    # Rows that are equal in what they are sorted by, or joined by, may stand in another order each
    # time that they are computed.
    held += [frame.sort_values("a").persist(), frame.merge(frame.head(9), on="a").persist()]
    for each in (*frames.values(), *held):
        expected = each.compute().to_numpy(float)
        np.testing.assert_array_equal(read(each), expected)
        rows = np.arange(0, len(expected), 3)
        np.testing.assert_array_equal(ChunkedArray(each)[rows][:], expected[rows])


def test_a_dask_frame_keeps_the_order_that_dask_gives_it(table):
    """`from_pandas` sorts rows by their index unless it is told not to."""
    frame = pd.DataFrame(table[0], columns=NAMES)
    aged = frame.set_index(np.random.default_rng(0).permutation(N))
    for sort in (True, False):
        source = dd.from_pandas(aged, npartitions=3, sort=sort)
        np.testing.assert_array_equal(read(source), source.compute())
    np.testing.assert_array_equal(read(source), table[0])


def test_partitions_have_the_columns_that_are_declared_in_their_order(table):
    frame, accountant = pd.DataFrame(table[0], columns=NAMES), PrivacyAccountant(10.0, 0.1)
    for odd in (frame[NAMES[::-1]], frame[NAMES[:3]], frame.rename(columns={"a": "e"})):
        pieces = [frame, odd]
        source = dd.from_map(lambda i, pieces=pieces: pieces[i], range(2), meta=frame.iloc[:0])
        with pytest.raises(ValueError, match="a partition has the types"):
            fitted(SCALER, source, accountant=accountant)
        source = source.assign(day=pd.Timestamp("2020-01-01"))
        with pytest.raises(ValueError, match="a partition has the types"):
            in_memory(source)
    assert accountant.charges == []


def test_what_a_dask_frame_does_not_declare_is_refused(table):
    frame = pd.DataFrame(table[0], columns=NAMES)
    with dask.config.set({"dataframe.convert-string": False}):
        city = pd.Series(["x"] * N, dtype=object)
        source = dd.from_pandas(frame.assign(city=city), npartitions=2)
    with pytest.raises(ValueError, match=r"got 'city' of .*compute\(\)"):
        fitted(SCALER, source)


# Tables with words.

WORDS = {
    "bounds": {"age": (17, 90), "income": (0, 9)},
    "categories": {"job": ["a", "b", "c"], "home": ["own", "rent"]},
}
LISTS = [list(range(17, 90)), ["a", "b", "c"], ["own", "rent"], [0, 1], [0.0, 1.0]]
PREPARED = DPHistogramNB(bounds=(0, 90), categories=dict(enumerate(LISTS[1:3], 1)))
OF_WORDS = [
    DPAdditiveClassifier(**WORDS, interactions=[("age", "job")]),
    DPAdditiveClassifier(epsilon=30.0),
    DPAdditiveRegressor(**WORDS, target_bounds=(0, 1)),
    DPDecisionTreeClassifier(**WORDS, max_depth=2),
    DPRandomForestClassifier(**WORDS, n_estimators=8),
    DPRandomForestRegressor(**WORDS, n_estimators=8, target_bounds=(0, 1)),
    DPHistogramNB(**WORDS),
    DPTableVectorizer(**WORDS),
    DPTableVectorizer(**WORDS, numeric="scaled"),
    DPOneHotEncoder(epsilon=40.0, delta=1e-6),
    DPOneHotEncoder(categories=LISTS, min_frequency=3),
    DPTargetEncoder(categories=LISTS, classes=[0, 1]),
    DPTargetEncoder(epsilon=40.0, delta=1e-6, target_bounds=(0, 1)),
    DPSimpleImputer(strategy="constant", fill_value="?"),
    DPSimpleImputer(strategy="most_frequent", categories=LISTS, fill_value="?"),
    DPHistogramTransformer(
        edges="uniform", bounds=(0, 90), categories=WORDS["categories"] | {"flag": [0, 1]}
    ),
]
# What these take for a number, or a label, must not be missing.
OF_GAPS = [e for e in OF_WORDS if not isinstance(e, DPHistogramTransformer)]


def words(gaps=True):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, size=N),
            "job": pd.Series(rng.choice(["a", "b", "c", "d"], size=N), dtype="string"),
            "home": pd.Categorical(rng.choice(["own", "rent"], size=N)),
            "flag": rng.integers(0, 2, size=N) > 0,
            "income": rng.integers(0, 2, size=N) + 0.0,
        }
    )
    if gaps:
        frame.loc[::7, "job"], frame.loc[::11, "home"] = None, None
        frame.loc[::13, "income"] = np.nan
    return frame


def of_words(frame, path):
    path.mkdir(exist_ok=True)
    held = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(held.slice(0, 90), path / "0.parquet")
    pq.write_table(held.slice(90), path / "1.parquet", row_group_size=100)
    return {
        "path": path,
        "dataset": ds.dataset(path),
        "LazyFrame": pl.from_pandas(frame).lazy(),
        "scans": pl.concat(map(pl.scan_parquet, sorted(path.iterdir()))),
        "dask frame": dd.from_pandas(frame, npartitions=3, sort=False),
        "dask files": dd.read_parquet(path),
        "LazyFrames": ChunkedArray(
            [pl.from_pandas(each).lazy() for each in (frame[:9], frame[9:])]
        ),
    }


def pulled(array, number):
    raise AssertionError("a chunk was pulled")


@pytest.mark.quick_cases(every=16)
@pytest.mark.parametrize("number", range(len(OF_WORDS)))
def test_words_are_read_as_in_memory(number, table, tmp_path, monkeypatch):
    """What is released and what is made, but that numbers are doubles; and nothing is loaded."""
    estimator, groups = OF_WORDS[number], table[2] if number % 2 else None
    frame = words(gaps=estimator in OF_GAPS)
    known = fitted(estimator, frame, table[1], groups)
    answers = [name for name in ("transform", *PREDICTIONS[:2]) if hasattr(known, name)]
    for source in [*of_words(frame, tmp_path / "rows").values()][number % 2 :: 2]:
        with monkeypatch.context() as patched:
            patched.setattr(ChunkedArray, "__array__", None)
            if groups is None:
                patched.setattr("skdp._data._sources._compute_block", pulled)
            model = fitted(estimator, source, table[1], groups)
            found = [getattr(model, name)(source) for name in answers]
        assert values(model) == values(known)
        assert model.feature_names_in_.tolist() == list(frame)
        for name, made in zip(answers, found, strict=True):
            assert name != "transform" or isinstance(made, da.Array | ChunkedArray)
            expected = getattr(known, name)(frame)
            expected = expected.toarray() if hasattr(expected, "toarray") else expected
            # What is made of a table that was opened above is pulled nowhere.
            again = np.asarray(getattr(model, name)(source))
            np.testing.assert_array_equal(again, expected)


@pytest.mark.thorough
def test_folds_and_pipelines_of_words_never_materialize(table, tmp_path, monkeypatch):
    y, frame = table[1], words(gaps=False)
    columns = ColumnTransformer(
        [
            ("number", DPStandardScaler(bounds=([17, 0], [90, 9]), random_state=0), [0, 4]),
            ("word", DPOneHotEncoder(categories=LISTS[1:3]), [1, 2]),
            ("rest", "passthrough", [3]),
        ],
        # The density of the whole table would be an exact count.
        sparse_threshold=0,
    )
    filled = make_pipeline(OF_WORDS[13], DPOneHotEncoder(categories=LISTS))
    last = DPLogisticRegression(data_norm=3.0, random_state=0)
    search = DPGridSearchCV(PREPARED, {"bounds": [(0, 90), (9, 90)]}, strategy="cv", cv=2)
    terms = {"cv": 2, "epsilon": 1.0, "random_state": 0}
    expected = clone(search).set_params(random_state=0).fit(frame, y).best_score_
    score = dp_cross_val_score(OF_WORDS[6], frame, y, **terms).mean_
    made = [clone(first).fit_transform(frame.to_numpy(object)) for first in (columns, filled)]
    for kind, source in of_words(frame, tmp_path / "rows").items():
        if kind not in ("path", "dask frame"):
            continue
        with monkeypatch.context() as patched:
            patched.setattr(ChunkedArray, "__array__", None)
            patched.setattr("skdp._data._sources._compute_block", pulled)
            pipes = [make_pipeline(clone(each), last) for each in (columns, filled)]
            predicted = [pipe.fit(ChunkedArray(source), y).predict(source) for pipe in pipes[1:]]
            pipes[0].fit(ChunkedArray(source), y).predict(ChunkedArray(source))
            found = clone(search).set_params(random_state=0).fit(source, y)
            assert dp_cross_val_score(OF_WORDS[6], source, y, **terms).mean_ == score
        assert found.best_score_ == expected and len(predicted[0]) == N
        assert pipes[0][0].named_transformers_["number"].feature_names_in_.tolist() == [
            "age",
            "income",
        ]
        for pipe, rows in zip(pipes, made, strict=True):
            rows = rows.toarray() if hasattr(rows, "toarray") else rows.astype(float)
            np.testing.assert_allclose(np.asarray(pipe[0].transform(ChunkedArray(source))), rows)


def test_how_labels_are_stored_and_which_a_part_lists_has_no_effect(tmp_path):
    """One row's cells say nothing of how those of others are read."""
    frame, own = words(), tmp_path / "own"
    cells = {}
    for kind, source in of_words(frame, own).items():
        cells[kind] = ChunkedArray(source)[:].tolist()
    odd = frame.copy()
    odd["home"] = odd["home"].cat.add_categories([f"home {k}" for k in range(200)])
    odd["home"] = odd["home"].cat.reorder_categories(odd["home"].cat.categories[::-1])
    odd.loc[0] = [33, "?" * 400, "home 7", True, -np.inf]
    for kind, source in of_words(odd, tmp_path / "odd").items():
        found = ChunkedArray(source)[:].tolist()
        assert repr(found[1:]) == repr(cells[kind][1:]) == repr(cells["path"][1:])
        assert found[0] == [33.0, "?" * 400, "home 7", 1.0, -np.inf]
    # Parts may list labels of their own, also so many that their codes are longer.
    odd.iloc[90:].to_parquet(own / "1.parquet")
    assert repr(ChunkedArray(own)[:].tolist()) == repr(cells["path"])


@pytest.mark.thorough
def test_kinds_are_those_of_the_schema(table, tmp_path):
    """Where a part knows no label, or none but numbers, or has no row, it is read as the others."""
    frame, y = words(), table[1]
    frame["home"] = pd.Categorical.from_codes(np.arange(N) % 2, [0.5, np.inf])
    frame["mixed"] = pd.Categorical([0.5] * 200 + ["x"] * (N - 200))
    frame.loc[:110, "job"], frame.loc[:110, "income"] = None, np.nan
    estimators = (
        DPTableVectorizer(bounds=WORDS["bounds"], categories={"job": ["a"], "home": [0.5, np.inf]}),
        DPSimpleImputer(strategy="constant", fill_value="?"),
    )
    for npartitions in (1, 4):
        parts = dd.from_pandas(frame, npartitions=npartitions, sort=False)
        for estimator in estimators:
            known = fitted(estimator, frame, y)
            assert values(fitted(estimator, parts, y)) == values(known)
    for kind, source in of_words(frame.drop(columns=["home", "mixed"]), tmp_path / "rows").items():
        model = fitted(DPTableVectorizer(epsilon=9.0), source, y)
        assert model.kinds_ == ["number", "label", "label", "number"], kind
    meta, pieces = frame.iloc[:0], [frame.iloc[:99], frame.iloc[99:].astype({"age": float})]
    other = dd.from_map(lambda i: pieces[i], range(2), meta=meta)
    with pytest.raises(ValueError, match="a partition has the types"):
        fitted(estimators[1], other)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("kind", ["path", "LazyFrame", "dask frame"])
def test_cells_beside_words_are_checked_before_the_charge(kind, table, tmp_path):
    """With the words of memory; and tables of numbers alone have no words."""
    frame, accountant = words(), PrivacyAccountant(100.0, 0.1)
    wild = frame.assign(income=np.where(np.arange(N) == 150, np.inf, 1.0))
    cases = [(e, wild, "infinity") for e in (OF_WORDS[0], OF_WORDS[7], OF_WORDS[14])]
    cases.append((OF_WORDS[-1], frame.assign(income=1.0), "'job' contains NaN or None"))
    ridge = DPRidge(mechanism="sufficient_statistics", target_bounds=(0, 1), data_norm=9.0)
    numbers = (SCALER, ridge, DPKMeans(bounds=(0, 1)), DPSimpleImputer(bounds=(0, 1)))
    cases += [
        (e, frame, "'job' and column 'home' contain strings.*their labels there")
        for e in (*numbers, DPHistogramTransformer())
    ]
    for k, (estimator, rows, match) in enumerate(cases):
        source = of_words(rows, tmp_path / str(k))[kind]
        for held in (rows, source):
            with pytest.raises((ValueError, TypeError), match=match):
                fitted(estimator, held, table[1], accountant=accountant)
    with pytest.raises(ValueError, match="'job' and column 'home' contain strings"):
        dp_mean(source, bounds=(0, 1), axis=0, accountant=accountant)
    assert accountant.charges == []


def with_a_row_that_raises(frame, path):
    """Return tables of which a partition, or what is to be computed of one row, cannot be read."""

    def part(number):
        if number:
            raise OSError("one row cannot be read")
        return frame.iloc[:150]

    age = frame.age.astype(str).astype("string").where(np.arange(N) != 150, "one row")
    cast = pl.col("age").cast(pl.Int64)
    held = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(held, path, row_group_size=150, compression="none", use_dictionary=False)
    last = pq.ParquetFile(path).metadata.row_group(1).column(0)
    with path.open("r+b") as file:
        file.seek(last.data_page_offset)
        file.write(b"\xff" * 16)
    return {
        "dask frame": dd.from_map(part, range(2), meta=frame.iloc[:0]),
        "LazyFrame": pl.from_pandas(frame.assign(age=age)).lazy().with_columns(cast),
        "path": path,
    }


UNREADABLE = ((OSError, pl.exceptions.InvalidOperationError), "one row|Couldn't deserialize thrift")


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", ["dask frame", "LazyFrame", "path"])
@pytest.mark.parametrize("number", range(len(OF_WORDS)))
def test_every_row_is_read_before_the_charge(number, kind, table, tmp_path):
    estimator = OF_WORDS[number]
    frame = words(gaps=estimator in OF_GAPS)
    source = with_a_row_that_raises(frame, tmp_path / "rows.parquet")[kind]
    accountant = PrivacyAccountant(100.0, 0.1)
    with pytest.raises(UNREADABLE[0], match=UNREADABLE[1]):
        fitted(estimator, source, table[1], accountant=accountant)
    assert accountant.charges == []


@pytest.mark.parametrize("kind", ["dask frame", "LazyFrame", "path"])
def test_randomized_response_reads_every_row_before_its_charge(kind, tmp_path):
    frame, accountant = words(gaps=False), PrivacyAccountant(100.0, 0.1)
    model = RandomizedResponseTransformer(categories=LISTS, accountant=accountant).fit(frame)
    source = with_a_row_that_raises(frame, tmp_path / "rows.parquet")[kind]
    with pytest.raises(UNREADABLE[0], match=UNREADABLE[1]):
        model.transform(source)
    assert accountant.charges == []


# Files that pandas and dask write.


@pytest.mark.parametrize("name", [None, "age"])
def test_an_index_is_no_column(name, table, tmp_path):
    """As pandas and dask read what they have written."""
    frame = pd.DataFrame(table[0], columns=NAMES)
    frame.index = pd.Index(np.random.default_rng(0).permutation(N), name=name)
    frame.to_parquet(tmp_path / "x.parquet")
    dd.from_pandas(frame, npartitions=3, sort=False).to_parquet(tmp_path / "parts")
    for path in (tmp_path / "x.parquet", tmp_path / "parts"):
        for source in (path, ds.dataset(path), dd.read_parquet(path)):
            X = ChunkedArray(source)
            assert fitted(SCALER, X).feature_names_in_.tolist() == NAMES
            np.testing.assert_array_equal(X[:], table[0])
        if name is None:
            with pytest.raises(ValueError, match="a frame's index"):
                ChunkedArray(pl.scan_parquet(path))


def test_numbered_files_are_read_in_the_order_in_which_dask_writes_them(table, tmp_path):
    frame = pd.DataFrame(table[0], columns=NAMES).assign(a=np.arange(N) + 0.0)
    dd.from_pandas(frame, npartitions=12).to_parquet(tmp_path / "1" / "rows")
    for source in (tmp_path / "1" / "rows", dd.read_parquet(tmp_path / "1" / "rows")):
        np.testing.assert_array_equal(read(source), frame)
    own = [tmp_path / "1" / "rows" / f"part.{k}.parquet" for k in (11, 2, 0)]
    for source in (own, ds.dataset(own)):
        assert read(source)[::25, 0].tolist() == [275, 50, 0]


# Rows by number.


def test_rows_by_number_are_decoded_once(table, folder, monkeypatch):
    """Every second row, and no row behind the last of a block, which begins the next one."""
    decoded = []

    def counted(columns, n_rows, *rest):
        decoded.append(n_rows)
        return array_of_columns(columns, n_rows, *rest)

    monkeypatch.setattr("skdp._data._sources.matrix_of_columns", counted)
    for source in (folder, sources(table[0], folder)["LazyFrame"]):
        X = ChunkedArray(source)
        for rows in (np.arange(0, N, 2), np.arange(1, N, 7), np.flatnonzero(table[0][:, 0])):
            taken = X[rows]
            for width in (1, 13, 40):
                decoded.clear()
                for start in range(0, len(rows), width):
                    stop = start + width
                    np.testing.assert_array_equal(taken[start:stop], table[0][rows[start:stop]])
                    assert taken[stop:stop].shape == (0, 4)
                assert 0 < sum(decoded) <= N


def test_rows_by_number_are_tables_in_parts(table, folder):
    X, rng = table[0], np.random.default_rng(1)
    for source in sources(X, folder).values():
        chunked = ChunkedArray(source)
        for size in (0, 1, 40):
            rows = np.sort(rng.choice(N, size, replace=False))
            mask = np.isin(np.arange(N), rows)
            for taken in (
                chunked[rows],
                chunked[mask],
                chunked[rows, :],
                chunked[rows.tolist()] if size else chunked[rows],
            ):
                assert isinstance(taken, ChunkedArray) and taken.shape == (size, X.shape[1])
                np.testing.assert_array_equal(np.asarray(taken), X[rows])
        again = chunked[np.arange(0, N, 2)][np.arange(1, N // 2, 3)]
        np.testing.assert_array_equal(again[5:30], X[::2][1::3][5:30])
        for rows in ([2, 1], [1, 1], [-1, 2], [0, N]):
            with pytest.raises(ValueError, match="distinct, increasing"):
                chunked[rows]
        with pytest.raises(TypeError, match="step 1"):
            chunked[[0.5]]
    with pytest.raises(ValueError, match="distinct, increasing"):
        train_test_split(chunked, random_state=0)


@pytest.mark.parametrize("kind", ["file", "lazy"])
def test_what_is_decoded_is_made_an_array_once(kind, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "0.parquet")
    made = []

    def counted(*args):
        made.append(1)
        return array_of_columns(*args)

    monkeypatch.setattr("skdp._data._sources.SLICE_BYTES", 1 << 21)
    monkeypatch.setattr("skdp._data._sources.matrix_of_columns", counted)
    path = tmp_path / "0.parquet"
    for size in (500, 5000):
        chunk = ChunkedArray(path if kind == "file" else pl.scan_parquet(path)).partitions()[0]()
        made.clear()
        for _ in range(3):
            read = [np.array(chunk[start : start + size]) for start in range(0, 5000, size)]
            np.testing.assert_array_equal(np.concatenate(read), X)
        assert len(made) == 1


def test_what_decodes_is_closed_at_the_last_row_and_keeps_no_row_that_was_read():
    X, closed = np.arange(60.0).reshape(30, 2), []

    def frames():
        try:
            for start in (0, 10, 20):
                yield pa.table({"a": X[start : start + 10, 0], "b": X[start : start + 10, 1]})
        finally:
            closed.append(len(closed))

    chunk = Decoded("table", frames, X.shape, [np.dtype(float)] * 2)
    for rows, n_closed in [((0, 30), 1), ((0, 20), 1), ((20, 24), 2), ((24, 30), 2), ((3, 30), 3)]:
        read = chunk[slice(*rows)]
        np.testing.assert_array_equal(read, X[slice(*rows)])
        assert len(closed) == n_closed
        kept = weakref.ref(read if read.base is None else read.base)
        del read
        assert (kept() is None) or kept().size <= 20


def test_slices_in_any_order_are_those_of_the_rows(table, folder):
    X, chunked, rng = table[0], ChunkedArray(folder), np.random.default_rng(0)
    for start, stop in np.sort(rng.integers(0, N + 1, size=(200, 2))):
        np.testing.assert_array_equal(chunked[start:stop], X[start:stop])
    again = pickle.loads(pickle.dumps(chunked))
    np.testing.assert_array_equal(again[30:270], X[30:270])


SEARCH = DPGridSearchCV(SCALED, {"dpridge__alpha": [1.0, 9.0]}, strategy="cv", cv=2, epsilon=9.0)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("kind", ["path", "LazyFrame", "dask frame"])
def test_searches_take_rows_of_every_source(kind, table, folder, monkeypatch):
    X, y, groups = table
    source = sources(X, folder)[kind]
    known = cut_as(source, X)
    ridge, terms = SCALED[-1], {"cv": 2, "epsilon": 1.0, "random_state": 0}
    terms["scoring"] = bounded_score("r2", target_bounds=(0, 1))
    score = dp_cross_val_score(ridge, known, y, **terms).mean_
    with monkeypatch.context() as patched:
        patched.setattr(ChunkedArray, "__array__", None)
        found = clone(SEARCH).set_params(random_state=0).fit(source, y)
        assert found.feature_names_in_.tolist() == NAMES
        assert dp_cross_val_score(ridge, source, y, **terms).mean_ == score
        of_persons = clone(SEARCH).set_params(random_state=0, estimator=ridge)
        of_persons.set_params(param_grid={"alpha": [1.0, 9.0]}).fit(source, y, groups=groups)
        scorer = make_dp_scorer("r2", target_bounds=(0, 1), random_state=0)
        assert scorer(found, source, y) == scorer(found, pd.DataFrame(X, columns=NAMES), y)
    other = clone(of_persons).fit(known, y, groups=groups)
    assert of_persons.best_score_ == other.best_score_


def test_rows_whose_places_depend_on_values_are_not_taken_by_number(
    table, folder, tmp_path, tmp_path_factory
):
    X, y, _ = table
    for value in (0, 1):
        held = tmp_path / f"a={value}"
        held.mkdir()
        pq.write_table(arrow(X[X[:, 0] == value]), held / "x.parquet")
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    arrays = [one / "x.npy", other / "x.npy", other / "y.npy"]
    for path in arrays:
        np.save(path, X)
    files = sorted(tmp_path.glob("a=*"))
    views = [ChunkedArray(each)[:, [0, 1]] for each in files]
    rows = [ChunkedArray(each)[[0, 1]] for each in files]
    [group] = ds.dataset(folder / "1.parquet").get_fragments()
    group = group.subset(row_group_ids=[0, 2])
    group = ds.FileSystemDataset([group], group.physical_schema, group.format, group.filesystem)
    joined = {
        "several folders, one by one": ChunkedArray(files),
        "folders of views": ChunkedArray(views),
        "folders of rows": ChunkedArray(rows),
        "a folder and a dataset of another": ChunkedArray([files[0], ds.dataset(files[1])]),
        "folders of arrays": ChunkedArray(arrays),
    }
    moved = {
        "some row groups": group,
        "several folders": ds.dataset(tmp_path),
        "folders, by path": tmp_path,
    }
    accountant = PrivacyAccountant(10.0, 0.1)
    search = clone(SEARCH).set_params(accountant=accountant)
    for source in (*joined.values(), *moved.values()):
        chunked = ChunkedArray(source)
        made = fitted(SCALER, source).transform(source)
        beside = np.hstack([chunked, made])
        for table_in_parts in (chunked, made, beside, chunked[:, [0, 1]]):
            with pytest.raises(ValueError, match="cannot be taken by number"):
                table_in_parts[np.arange(5)]
    for source in moved.values():
        with pytest.raises(ValueError, match="cannot be taken by number"):
            search.fit(source, np.arange(len(ChunkedArray(source))) % 2)
    assert accountant.charges == []
    own = ChunkedArray([arrays[1], X, arrays[2]])
    np.testing.assert_array_equal(own[[0, N, 3 * N - 1]][:], X[[0, 0, N - 1]])
    beside = np.hstack([ChunkedArray([path]) for path in arrays[:2]])
    np.testing.assert_array_equal(beside[[0, 5]][:], np.hstack([X, X])[[0, 5]])
    with pytest.raises(ValueError, match="folder names"):
        fitted(
            SCALER,
            ds.dataset(
                tmp_path,
                partitioning=ds.partitioning(pa.schema([("k", pa.int64())]), flavor="hive"),
            ),
        )


# Lazy tables give lazy tables.


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=str)
def test_transforms_are_lazy(estimator, table, folder):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=NAMES)
    model = fitted(estimator, frame, y)
    expected = model.transform(frame)
    expected = expected.toarray() if hasattr(expected, "toarray") else expected
    for name, source in sources(X, folder).items():
        made = model.transform(source)
        assert isinstance(made, da.Array if "dask" in name else ChunkedArray)
        assert made.shape == expected.shape and made.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(made), expected)


@pytest.mark.quick_cases(every=10)
@pytest.mark.parametrize("estimator", PREDICTING, ids=lambda each: type(each).__name__)
def test_predictions_are_made_in_parts(estimator, tmp_path, monkeypatch):
    """What an estimator says of rows is, in values and types, what it says of them in memory."""
    X, y = make_table(estimator)
    if is_classifier(estimator):
        y = np.array(["no", "yes"], object if hasattr(estimator, "predict_proba") else None)[y]
    model = fitted(estimator, X, y)
    frame = pd.DataFrame(X).add_prefix("c")
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=17)
    heights = (7, 0, 1, 32, len(X) - 40)
    tables = (
        ChunkedArray(np.split(X, np.cumsum(heights)[:-1])),
        da.from_array(X, chunks=(heights, (1, X.shape[1] - 1))),
        dd.from_pandas(frame, npartitions=3),
        tmp_path,
        pl.from_pandas(frame).lazy(),
    )
    # Whoever loads a table, or pulls a chunk, fails.
    monkeypatch.setattr(ChunkedArray, "__array__", None)
    monkeypatch.setattr("skdp._data._sources._compute_block", pulled)
    for name in PREDICTIONS:
        for table in tables if hasattr(model, name) else ():
            more = [y] if name == "score" else []
            known, found = (getattr(model, name)(each, *more) for each in (X, table))
            assert type(found) is type(known) and np.asarray(found).dtype == np.asarray(known).dtype
            np.testing.assert_array_equal(found, known)


def test_rows_of_other_columns_are_not_predicted(table, folder):
    X, y, _ = table
    model = fitted(DPKMeans(n_clusters=2, bounds=(0, 1)), folder)
    with pytest.raises(ValueError, match="4 features"):
        model.predict(ChunkedArray([X[:, :3]]))
    with pytest.raises(ValueError, match="names"):
        model.predict(pl.DataFrame(X, schema=["a", "b", "c", "e"]).lazy())
    with pytest.raises(ValueError, match="NaN"):
        model.predict(pl.DataFrame(np.where(X, X, np.nan), schema=NAMES).lazy())
    with pytest.raises(NotFittedError):
        clone(model).predict(folder)


@pytest.mark.thorough
def test_pipelines_never_materialize(table, folder, monkeypatch):
    X, y, _ = table
    scaler, other = clone(SCALER), DPStandardScaler(bounds=(0, 2), random_state=0)
    both = make_union(scaler, other)
    columns = ColumnTransformer([("x", scaler, [0, 2]), ("y", "passthrough", [1])])
    model = clone(SCALED[-1]).set_params(random_state=0)
    for first in (scaler, both, columns):
        for kind in ("path", "dask frame"):
            source, expected = ChunkedArray(sources(X, folder)[kind]), clone(first)
            made = np.asarray(expected.fit_transform(cut_as(source, X)))
            np.testing.assert_allclose(made, expected.transform(X), atol=0)
            known = fitted(model, cut_as(source, made), y)
            with monkeypatch.context() as patched:
                patched.setattr(ChunkedArray, "__array__", None)
                pipe = make_pipeline(clone(first), clone(model)).fit(source, y)
                predicted = pipe.predict(source)
            np.testing.assert_array_equal(pipe[-1].coef_, known.coef_)
            np.testing.assert_array_equal(predicted, known.predict(made))


def test_frames_that_are_asked_for_are_made(table, folder):
    scaler = fitted(SCALER, folder).set_output(transform="pandas")
    made = scaler.transform(folder)
    assert isinstance(made, pd.DataFrame) and made.shape == table[0].shape


def test_who_transforms_gets_no_accountant(table, folder, tmp_path):
    accountant = PrivacyAccountant(10.0, 0.1, ledger=str(tmp_path / "ledger.db"))
    model = fitted(SCALER, table[0], accountant=accountant)
    for sent in (
        model.transform(ChunkedArray([table[0]])),
        model.transform(da.from_array(table[0])),
    ):
        held = pickle.dumps(sent if isinstance(sent, ChunkedArray) else dict(sent.dask))
        assert b"ledger.db" not in held and b"_answers" in held
    assert model.accountant is accountant


def test_other_functions_of_numpy_load_the_table(table, folder):
    X, chunked = table[0], ChunkedArray(folder)
    assert np.sum(chunked) == X.sum() and np.shape(chunked) == X.shape
    np.testing.assert_array_equal(np.concatenate([chunked, X]), np.concatenate([X, X]))
    np.testing.assert_array_equal(np.hstack([chunked, X[:, :1]]), np.hstack([X, X[:, :1]]))
    singles = np.hstack([chunked, chunked], dtype=np.float32)
    assert singles.dtype == np.float32 and singles.shape == (N, 2 * X.shape[1])
    for columns in (np.array([1, 2]), [False, True, True, False], slice(1, 3)):
        np.testing.assert_array_equal(chunked[:, columns][:], X[:, 1:3])


def test_folds_of_scikit_learn_are_of_the_same_rows(table, folder):
    X, _, groups = table
    for cv, more in (
        (KFold(3, shuffle=True, random_state=0), {}),
        (PersonKFold(3), {"groups": groups}),
    ):
        for train, _ in cv.split(ChunkedArray(folder), **more):
            np.testing.assert_array_equal(ChunkedArray(folder)[train][:], X[train])


def test_a_ridge_of_a_slice_of_columns(table, folder):
    X, y, _ = table
    ridge = DPRidge(mechanism="sufficient_statistics", target_bounds=(0, 1))
    model = fitted(ridge, ChunkedArray(folder)[:, [2, 0]], y)
    known = fitted(ridge, cut_as(folder, X[:, [2, 0]]), y)
    assert values(model) == values(known)
