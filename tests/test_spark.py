"""Fits on Spark DataFrames: what is released is what the same parts in memory would give."""

import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    ChunkedArray,
    DPAdditiveClassifier,
    DPHistogramNB,
    DPKMeans,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.stats import dp_histogram

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
N, NAMES = 900, ["a", "b", "c"]
SCALER = DPStandardScaler(bounds=(0, 1), random_state=0)
LOGISTIC = DPLogisticRegression(C=0.1, mechanism="output", random_state=0)


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
        settings = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            settings = settings.config(name, "127.0.0.1")
        session = settings.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def table(spark):
    """Return a frame of partitions of several sizes, one of none, and the same rows in memory."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, len(NAMES)))
    pieces = [X[:100], X[100:101], X[:0], X[101:]]
    rdd = spark.sparkContext.parallelize([piece.tolist() for piece in pieces], len(pieces))
    frame = spark.createDataFrame(rdd.flatMap(list), ", ".join(f"{name} double" for name in NAMES))
    y = (X[:, 0] + rng.normal(scale=0.3, size=N) > 0.5).astype(int)
    return frame.localCheckpoint(), ChunkedArray(pieces), y


@pytest.mark.parametrize(
    "estimator",
    [
        DPStandardScaler(),
        DPKMeans(n_clusters=2, bounds=(0, 1)),
        DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics", data_norm="auto"),
        DPSGDClassifier(max_iter=2, batch_size=100),
        DPAdditiveClassifier(bounds=(0, 1), interactions=[(0, 1)], n_bins=4),
        make_pipeline(SCALER, LOGISTIC),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_released_and_predicted_is_what_memory_gives(estimator, table):
    frame, parts, y = table
    settings = {"random_state": 0} if "random_state" in estimator.get_params() else {}
    model, known = (
        clone(estimator).set_params(**settings).fit(X, y, **more)
        for X, more in ((frame, {}), (parts, {}))
    )
    assert model.feature_names_in_.tolist() == NAMES
    last, known_last = (getattr(each, "steps", [("", each)])[-1][1] for each in (model, known))
    for name, value in vars(known_last).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(last, name), value)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(frame), known.predict(parts[:]))


def test_words_stay_with_the_executors(spark, table):
    rng = np.random.default_rng(0)
    age, job = rng.integers(17, 90, N), rng.choice(["a", "b", None], N).tolist()
    rows = list(zip(age.tolist(), job, strict=True))
    held = spark.createDataFrame(rows, "age int, job string").repartition(3).localCheckpoint()
    frame = held.toArrow().to_pandas()
    encoder = DPOneHotEncoder(delta=1e-6, random_state=0)
    model, known = (clone(encoder).fit(X) for X in (held, frame))
    assert repr(model.categories_) == repr(known.categories_)
    assert repr(model.counts_) == repr(known.counts_)
    bayes = DPHistogramNB(bounds=(17, 90), categories={"job": ["a", "b"]}, random_state=0)
    model = bayes.fit(held, table[2])
    found, own = model.predict_proba(held), model.predict_proba(frame)
    np.testing.assert_array_equal(found, own)
    np.testing.assert_array_equal(own, bayes.fit(frame, table[2]).predict_proba(frame))


def test_persons_are_shared_out(table):
    frame, parts, _ = table
    found = [
        dp_histogram(X, range=(0, 1), axis=0, groups=np.arange(N) // 3, random_state=0)[0]
        for X in (frame, parts)
    ]
    np.testing.assert_array_equal(*found)


def test_executors_get_neither_accountant_nor_seed(table, monkeypatch):
    frame, _, y = table
    accountant, sent = PrivacyAccountant(10.0, 0.1, dataset="name_of_data"), []
    workers = type(ChunkedArray(frame).workers)
    made = workers.results

    def recorded(self, calls):
        sent.extend(pickle.dumps(call) for call in calls)
        return made(self, calls)

    monkeypatch.setattr(workers, "results", recorded)
    model = DPSGDClassifier(max_iter=1, accountant=accountant, random_state=987654321)
    model.fit(frame, y).predict(frame)
    secret = b"name_of_data", (987654321).to_bytes(4, "little")
    assert all(word in pickle.dumps(model) for word in secret) and len(accountant.charges) == 1
    assert sent and not any(word in each for word in secret for each in sent)


def test_frames_whose_rows_could_move_are_refused(spark, table):
    frame, _, _ = table
    for other in (
        spark.range(9).toDF("a"),
        spark.range(9).toDF("a").persist(),
        frame.filter("a > 0.5"),
        frame.select("a", "b"),
        frame.repartition(2),
        spark.createDataFrame(pd.DataFrame({"a": [1.0]})),
    ):
        with pytest.raises(ValueError, match="checkpoint"):
            SCALER.fit(other)
    for kind, value, match in (
        ("string", "x", "'a' contains strings"),
        ("binary", b"x", "'a' of bin"),
    ):
        with pytest.raises(ValueError, match=match):
            SCALER.fit(spark.createDataFrame([(value,)], f"a {kind}").localCheckpoint())


def test_rows_are_not_brought_home_nor_taken_by_number(table):
    parts = ChunkedArray(table[0])
    for read in (np.asarray, lambda rows: rows[3:5]):
        with pytest.raises(ValueError, match="not read in this process"):
            read(parts)
    with pytest.raises(ValueError, match="Spark chose"):
        parts[[1, 2]]


def test_what_is_missing_is_refused_before_the_charge(spark):
    rows = [(1, True), (None, False), (3, None)]
    frame = spark.createDataFrame(rows, "a int, b boolean").localCheckpoint()
    accountant = PrivacyAccountant(10.0, 0.1)
    with pytest.raises(ValueError, match="NaN"):
        DPStandardScaler(bounds=(0, 1), accountant=accountant).fit(frame)
    assert accountant.charges == []
