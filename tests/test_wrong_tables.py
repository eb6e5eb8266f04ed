"""Tables, targets and person ids that cannot be fitted, in every container and meta-object.

Each is refused by a `ValueError` or a `TypeError` of skdp or scikit-learn before any charge.
"""

import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import get_tags

from skdp import (
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    DPRidge,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
    RandomizedResponseTransformer,
    tabular_pipeline,
)
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, dp_validation_curve
from skdp.pipeline import split_budget
from skdp.stats import dp_crosstab, dp_mode
from tests._estimators import FIRST_OF_CLASS

dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

N = 60
LONGER = N + 5
Y = np.arange(LONGER) % 2
IDS = np.arange(LONGER) // 2
# Whole numbers, which every estimator reads, also as labels.
FRAME = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (LONGER, 3)) + 0.0, columns=[*"abc"])


def parquet(frame, folder):
    path = folder / f"{len(frame)}.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


def dask_frame(frame):
    return dd.from_pandas(frame, npartitions=3, sort=False)


TABLES = {
    "array": lambda frame, _: frame.to_numpy(),
    "list": lambda frame, _: frame.to_numpy().tolist(),
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "polars lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "dask frame": lambda frame, _: dask_frame(frame),
    "dask array": lambda frame, _: dask_frame(frame).to_dask_array(lengths=True),
    "Parquet": parquet,
}
COLUMNS = {
    "array": np.asarray,
    "list": lambda values: values.tolist(),
    "series": pd.Series,
    "polars lazy": lambda values: pl.DataFrame({"y": values}).lazy(),
    "arrow": pa.array,
    "dask series": lambda values: dask_frame(pd.Series(values)),
    "dask array of unknown length": lambda values: dask_frame(pd.Series(values)).to_dask_array(),
}


def scaler():
    return DPStandardScaler(bounds=(0, 1))


def classifier():
    return DPLogisticRegression(data_norm=2.0, classes=[0, 1])


def search_of(model, kind=DPGridSearchCV, grid=None, **params):
    return kind(model, {"C": [0.1, 1.0]} if grid is None else grid, **params)


def in_one_budget(pipe):
    def make(accountant):
        return split_budget(pipe, 1.0, 1e-6, accountant).fit

    return make


def fits(estimator):
    """Return a function that makes the `fit` of an estimator with an accountant."""
    return lambda accountant: clone(estimator).set_params(accountant=accountant).fit


def scores(function, model, **options):
    def make(accountant):
        def call(X, y, groups=None):
            options["groups"] = groups
            return function(model, X, y, epsilon=1.0, delta=1e-6, accountant=accountant, **options)

        return call

    return make


C = {"param_name": "C", "param_range": [0.1, 1.0]}
META_OBJECTS = {
    "classifier": fits(classifier()),
    "scaler": fits(scaler()),
    "additive": fits(DPAdditiveClassifier(bounds=(0, 1))),
    "pipeline": in_one_budget(make_pipeline(scaler(), classifier())),
    "tabular": lambda accountant: (
        tabular_pipeline(DPLogisticRegression, bounds=(0, 1), accountant=accountant).fit
    ),
    "tabular additive": lambda accountant: (
        tabular_pipeline("classifier", bounds=(0, 1), accountant=accountant).fit
    ),
    "union": in_one_budget(make_pipeline(make_union(scaler(), scaler()), classifier())),
    "union alone": in_one_budget(make_union(scaler(), DPTargetEncoder(categories=[[0, 1]] * 3))),
    "columns": in_one_budget(
        make_pipeline(make_column_transformer((scaler(), [0, 1])), classifier())
    ),
    "grid": fits(search_of(classifier())),
    "grid of a pipeline": fits(
        search_of(
            make_pipeline(scaler(), classifier()), grid={"dplogisticregression__C": [0.1, 1.0]}
        )
    ),
    "randomized": fits(search_of(classifier(), DPRandomizedSearchCV, n_iter=2)),
    "search in a pipeline": in_one_budget(make_pipeline(scaler(), search_of(classifier()))),
    "cross-validation": scores(dp_cross_val_score, make_pipeline(scaler(), classifier())),
    "learning curve": scores(dp_learning_curve, classifier(), train_sizes=[0.5, 1.0]),
    "validation curve": scores(dp_validation_curve, classifier(), **C),
}
# A ColumnTransformer selects columns of tables in memory only, and is refused with a remedy.
IN_MEMORY = ("array", "list", "pandas", "polars", "arrow", "dask array")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def refusal(make, X, y, *, unit="row", **params):
    """Return the error of a fit that must not spend anything."""
    accountant = PrivacyAccountant(100.0, 1e-3, unit=unit, ledger="memory://")
    with pytest.raises((ValueError, TypeError)) as caught:
        make(accountant)(X, y, **params)
    assert accountant.charges == [], f"charged, then raised {caught.value!r}"
    return caught.value


LENGTHS = {"X": (LONGER, N, N), "y": (N, LONGER, N), "groups": (N, N, LONGER)}


def check_lengths_are_compared(make, table, column, longer, folder):
    n_rows, n_targets, n_ids = LENGTHS[longer]
    X = TABLES[table](FRAME[:n_rows], folder)
    y = COLUMNS[column](Y[:n_targets])
    params = {"groups": COLUMNS[column](IDS[:n_ids]), "unit": "person"} if n_ids > N else {}
    error = refusal(make, X, y, **params)
    name = "groups" if longer == "groups" else "y"
    assert f"{name} has {n_ids if longer == 'groups' else n_targets} rows, but X has" in str(error)


# As in scikit-learn, a transformer that is fitted alone ignores a target that it does not need.
READ_TARGETS = [name for name in META_OBJECTS if name != "scaler"]


@pytest.mark.quick_cases(every=34)
@pytest.mark.parametrize("longer", LENGTHS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", READ_TARGETS)
def test_a_table_target_or_ids_of_another_length_cost_nothing(name, table, longer, tmp_path):
    if name == "columns" and table not in IN_MEMORY:
        return
    check_lengths_are_compared(META_OBJECTS[name], table, "array", longer, tmp_path)


@pytest.mark.quick_cases(every=13)
@pytest.mark.parametrize("longer", LENGTHS)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", READ_TARGETS)
def test_a_lazy_target_or_ids_of_another_length_cost_nothing(name, column, longer, tmp_path):
    check_lengths_are_compared(META_OBJECTS[name], "array", column, longer, tmp_path)


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("longer", LENGTHS)
@pytest.mark.parametrize("estimator", FIRST_OF_CLASS, ids=lambda each: type(each).__name__)
def test_every_estimator_compares_lengths_before_it_is_charged(estimator, longer, tmp_path):
    if longer != "groups" and not get_tags(estimator).target_tags.required:
        return
    make = fits(clone(estimator).set_params(random_state=None))
    for table, column in (("pandas", "array"), ("dask frame", "dask series")):
        if isinstance(estimator, RandomizedResponseTransformer) and table == "dask frame":
            continue
        check_lengths_are_compared(make, table, column, longer, tmp_path)


@pytest.mark.quick_cases(every=73)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", META_OBJECTS)
def test_a_table_of_the_right_length_is_fitted(name, table, tmp_path):
    if name == "columns" and table not in IN_MEMORY:
        return
    X = TABLES[table](FRAME[:N], tmp_path)
    accountant = PrivacyAccountant(100.0, 1e-3, ledger="memory://")
    META_OBJECTS[name](accountant)(X, COLUMNS["polars lazy"](Y[:N]))
    assert len(accountant.charges) == 1


CELLS = FRAME[:N]
TWICE = CELLS.set_axis([*"aba"], axis=1)
WRONG_TABLES = {
    "None": None,
    "a number": 3.5,
    "text": "table",
    "bytes": b"table",
    "a dict": {"a": [1, 2]},
    "a set": {1, 2},
    "a class": list,
    "an object": object(),
    "a scalar array": np.array(3.0),
    "an empty list": [],
    "a list of empty lists": [[]] * N,
    "no rows": np.empty((0, 3)),
    "no columns": np.empty((N, 0)),
    "no rows in pandas": CELLS[:0],
    "no columns in pandas": CELLS[[]],
    "no rows in polars": pl.from_pandas(CELLS[:0]),
    "no columns in polars": pl.DataFrame(),
    "no rows in arrow": pa.Table.from_pandas(CELLS[:0], preserve_index=False),
    "no rows in a LazyFrame": pl.from_pandas(CELLS[:0]).lazy(),
    "no rows in dask": dd.from_pandas(CELLS[:0], npartitions=1),
    "one dimension": CELLS["a"].to_numpy(),
    "a series": CELLS["a"],
    "a polars series": pl.Series(CELLS["a"].to_numpy()),
    "an arrow column": pa.chunked_array([CELLS["a"].to_numpy()]),
    "a list of numbers": CELLS["a"].tolist(),
    "a dask series": dask_frame(CELLS["a"]),
    "three dimensions": np.zeros((N, 3, 2)),
    "a sparse vector": sp.coo_array(CELLS["a"].to_numpy()),
    "ragged rows": [[1, 2, 3]] * (N - 1) + [[1, 2]],
    "two columns of one name": TWICE,
    "two columns of one name in arrow": pa.table([[1.0] * N] * 3, names=[*"aba"]),
    "two columns of one name in dask": dask_frame(CELLS).rename(columns={"c": "a"}),
    "infinite numbers": CELLS.replace(1.0, np.inf),
    "complex numbers": CELLS.to_numpy() * 1j,
    "a Delayed": dask.delayed(CELLS),
}
WRONG_TARGETS = {
    "a number": 1,
    "text": "y",
    "a dict": {"a": 1},
    "a set": {0, 1},
    "an object": object(),
    "no entry": [],
    "NaN": np.where(np.arange(N) == 3, np.nan, Y[:N]),
    "a missing entry": [None, *Y[1:N].tolist()],
    "a missing entry in polars": pl.Series([None, *Y[1:N].tolist()]),
    "a missing entry in arrow": pa.array([None, *Y[1:N].tolist()]),
    "labels of two kinds": ["a", *Y[1:N].tolist()],
    "two columns": np.stack([Y[:N]] * 2, axis=1),
    "ragged rows": [[1]] * 5 + [[1, 2]] * (N - 5),
    "a sparse column": sp.csr_array(Y[:N, None]),
    "an iterator": iter(()),
}


def check_is_understood(error):
    """The error is raised by skdp or by scikit-learn's validation, not by a library inside.

    An object that scikit-learn's validation compares may refuse the comparison.
    """
    *_, caller, last = traceback.extract_tb(error.__traceback__)
    is_compared = "sklearn" in caller.filename and last.name == "__bool__"
    is_ours = "skdp" in last.filename or "sklearn" in last.filename
    assert is_ours or is_compared, f"{last.filename}: {error!r}"


@pytest.mark.quick_cases(every=67)
@pytest.mark.parametrize("wrong", WRONG_TABLES)
@pytest.mark.parametrize("name", META_OBJECTS)
def test_what_is_no_table_costs_nothing(name, wrong):
    check_is_understood(refusal(META_OBJECTS[name], WRONG_TABLES[wrong], Y[:N]))


@pytest.mark.quick_cases(every=29)
@pytest.mark.parametrize("wrong", WRONG_TARGETS)
@pytest.mark.parametrize("name", READ_TARGETS)
def test_what_is_no_target_costs_nothing(name, wrong):
    check_is_understood(refusal(META_OBJECTS[name], CELLS, WRONG_TARGETS[wrong]))


@pytest.mark.parametrize("make", [list, tuple, set, iter, dict.fromkeys])
def test_a_target_that_is_no_column_says_what_to_pass(make):
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    model = DPLogisticRegression(data_norm=2.0, accountant=accountant)
    if make in (list, tuple):
        model.fit(CELLS, make(Y[:N]))
        return
    with pytest.raises(ValueError, match=r"y must be a list.* pass list\(y\)"):
        model.fit(CELLS, make(Y[:N].tolist()))
    assert accountant.epsilon_spent == 0.0


def test_labels_of_statistics_may_be_a_frame_of_one_column():
    frame = pd.DataFrame({"job": ["a", "b"] * 30, "city": ["c"] * 60}, dtype=object)
    for make in (lambda x: x, pl.from_pandas, lambda x: pa.Table.from_pandas(x)):
        assert dp_mode(make(frame[["city"]]), 10.0, categories=["c", "d"]) == "c"
        with pytest.raises(ValueError, match="a must be one column of labels.* 2 columns"):
            dp_mode(make(frame), categories=["a", "b"])
        table = dp_crosstab(
            make(frame[["job"]]), make(frame[["city"]]), 50.0, categories=(["a", "b"], ["c"])
        )
        assert np.asarray(table).sum() == pytest.approx(60, abs=5)


def test_statistics_of_sufficient_width_only():
    """A matrix that no memory holds is refused by the public number of features."""
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    ridge = DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics")
    wide = make_pipeline(DPStandardScaler(bounds=(0, 1)), PolynomialFeatures(12), ridge)
    X = np.random.default_rng(0).uniform(size=(N, 9))
    with pytest.raises(ValueError, match="at most 50000 features"):
        split_budget(wide, 1.0, 1e-6, accountant).fit(X, X[:, 0])
    assert accountant.epsilon_spent == 0.0
