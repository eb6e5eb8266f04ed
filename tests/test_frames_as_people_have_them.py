"""One table in the frames that people have it in: the same values are released for a seed."""

import datetime
import warnings

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from scipy.sparse import issparse
from sklearn.base import clone

import skdp
from skdp import (
    DPAdditiveClassifier,
    DPHistogramNB,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPStandardScaler,
    DPTableSynthesizer,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
    schema_from,
    tabular_pipeline,
)

N_ROWS = 600
RNG = np.random.default_rng(0)
DAYS = RNG.integers(0, 900, N_ROWS)
COLUMNS = {
    "age": RNG.integers(18, 90, N_ROWS),
    "income": RNG.normal(3e4, 1e4, N_ROWS).round(2),
    "job": RNG.choice(["care", "office", "crafts"], N_ROWS).astype(object),
    "member": RNG.random(N_ROWS) < 0.4,
    "joined": np.datetime64("2020-01-01", "us") + DAYS.astype("m8[D]"),
}
Y = (COLUMNS["age"] < 45) ^ (COLUMNS["job"] == "office")


def pandas_frame(**types):
    frame = pd.DataFrame(COLUMNS)
    return frame.astype({"job": object} | types)


FRAMES = {
    "as pandas reads it": lambda: pd.DataFrame(COLUMNS).astype({"job": str}),
    "strings": lambda: pandas_frame(job="string"),
    "categories": lambda: pandas_frame(job="category"),
    "nullable": lambda: pandas_frame(age="Int64", income="Float64", member="boolean"),
    "arrow in pandas": lambda: pandas_frame(
        age="int64[pyarrow]", job="string[pyarrow]", joined="timestamp[us][pyarrow]"
    ),
    "polars": lambda: pl.DataFrame({k: v.tolist() for k, v in COLUMNS.items()}),
    "arrow": lambda: pa.table({k: v.tolist() for k, v in COLUMNS.items()}),
}
# Tables that are read in parts; the resolution of dates is that of the frame.
LAZY = {
    "polars lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "dask": lambda frame, _: pytest.importorskip("dask.dataframe").from_pandas(
        frame, npartitions=3, sort=False
    ),
    "Parquet": lambda frame, folder: written(frame, folder),
    "dataset": lambda frame, folder: pa.dataset.dataset(written(frame, folder)),
}


def written(frame, folder):
    path = folder / "table.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


ESTIMATORS = {
    "additive": lambda **terms: DPAdditiveClassifier(2.0, delta=1e-6, **terms),
    "naive Bayes": lambda **terms: DPHistogramNB(2.0, delta=1e-6, **terms),
    "vectorizer": lambda **terms: DPTableVectorizer(2.0, delta=1e-6, **terms),
    "pipeline": lambda **terms: tabular_pipeline("classifier", epsilon=2.0, delta=1e-6, **terms),
}
DECLARED = {
    "bounds": {"age": (18, 90), "joined": (datetime.date(2020, 1, 1), datetime.date(2023, 1, 1))},
    "categories": {"job": ["care", "crafts", "office"]},
}


def released(fitted, table):
    if hasattr(fitted, "transform"):
        encoded = fitted.transform(table)
        return encoded.toarray() if hasattr(encoded, "toarray") else encoded
    return fitted.predict_proba(table)


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("declared", [{}, {"bounds": "auto", "categories": "auto"}, DECLARED])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_table_gives_the_same_released_values(name, declared):
    table = pandas_frame()
    expected = released(ESTIMATORS[name](random_state=0, **declared).fit(table, Y), table)
    for form, make in FRAMES.items():
        frame = make()
        fitted = ESTIMATORS[name](random_state=0, **declared).fit(frame, Y)
        np.testing.assert_array_equal(released(fitted, frame), expected, err_msg=form)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("form", LAZY)
@pytest.mark.parametrize("declared", [{}, {"bounds": "auto", "categories": "auto"}, DECLARED])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_table_that_is_read_in_parts_gives_the_same_released_values(
    name, declared, form, tmp_path
):
    table = pandas_frame(job=str)
    lazy = LAZY[form](table, tmp_path)
    one, two = (ESTIMATORS[name](random_state=0, **declared).fit(t, Y) for t in (table, lazy))
    np.testing.assert_array_equal(released(one, table), released(two, lazy))


@pytest.mark.parametrize("form", [*LAZY])
def test_models_that_refuse_dates_refuse_them_in_parts(form, tmp_path):
    frame = pandas_frame()[["age", "joined"]]
    accountant = PrivacyAccountant(5.0, 1e-5)
    for table in (frame, LAZY[form](frame, tmp_path)):
        with pytest.raises(ValueError, match="'joined' contains dates"):
            DPLogisticRegression(accountant=accountant).fit(table, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("kind", [DPOneHotEncoder, DPTargetEncoder])
@pytest.mark.parametrize("categories", [None, "auto", [["care", "crafts", "office"]]])
def test_encoders_give_the_same_released_values(kind, categories, tmp_path):
    params = {"delta": 1e-6, "categories": categories, "random_state": 0}
    table = pandas_frame()[["job"]]
    expected = released(kind(2.0, **params).fit(table, Y), table)
    for form, make in FRAMES.items():
        frame = make()
        frame = frame.select(["job"]) if hasattr(frame, "select") else frame[["job"]]
        found = released(kind(2.0, **params).fit(frame, Y), frame)
        np.testing.assert_array_equal(found, expected, err_msg=form)
    for form, make in LAZY.items():
        frame = make(table.astype(str), tmp_path)
        found = released(kind(2.0, **params).fit(frame, Y), frame)
        np.testing.assert_array_equal(found, expected, err_msg=form)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("form", LAZY)
def test_a_model_behind_the_vectorizer_gets_the_same_weights(form, tmp_path):
    table = pandas_frame(job=str)
    lazy = LAZY[form](table, tmp_path)
    one, two = (
        tabular_pipeline(DPLogisticRegression, epsilon=2.0, random_state=0).fit(t, Y)
        for t in (table, lazy)
    )
    np.testing.assert_array_equal(one[-1].coef_, two[-1].coef_)


@pytest.mark.parametrize("form", LAZY)
def test_truth_values_and_whole_numbers_are_the_same_labels_in_parts(form, tmp_path):
    table = pandas_frame(job=str)[["age", "member", "job"]]
    lazy = LAZY[form](table, tmp_path)
    encoder = DPOneHotEncoder(4.0, delta=1e-6, categories="auto", random_state=0)
    one, two = (clone(encoder).fit(t) for t in (table, lazy))
    assert [len(found) for found in one.categories_] == [len(found) for found in two.categories_]
    np.testing.assert_array_equal(released(one, table), released(two, lazy))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("form", FRAMES)
def test_a_draft_with_blanks_is_accepted(form):
    frame = FRAMES[form]()
    draft = schema_from(frame)
    assert "job" in draft["categories"] and "age" in draft["bounds"]
    model = DPAdditiveClassifier(2.0, delta=1e-6, random_state=0, **draft).fit(frame, Y)
    assert model.shape_functions_[2].kinds == ("label",)
    for word in ("auto", None):
        filled = {half: dict.fromkeys(names, word) for half, names in draft.items()}
        again = DPAdditiveClassifier(2.0, delta=1e-6, random_state=0, **filled).fit(frame, Y)
        assert np.array_equal(again.intercept_, model.intercept_)


def test_bounds_make_numbers_of_a_column_of_objects():
    frame = pd.DataFrame({"x": COLUMNS["age"].astype(object), "job": COLUMNS["job"]})
    labels = DPTableVectorizer(2.0, random_state=0).fit(frame)
    assert labels.kinds_ == ["label", "label"]
    for bounds in ((18, 90), "auto"):
        own = DPTableVectorizer(2.0, bounds={"x": bounds}, random_state=0).fit(frame)
        assert own.kinds_ == ["number", "label"]


def test_one_odd_cell_changes_no_other_row():
    frame = pandas_frame()
    odd = frame.copy()
    odd.loc[0, "job"] = 7
    terms = {"categories": "auto", "random_state": 0}
    one, two = (
        DPTableVectorizer(50.0, **terms).fit(t).transform(t).toarray() for t in (frame, odd)
    )
    assert one.shape == two.shape and np.array_equal(one[1:], two[1:])


def test_errors_name_all_columns_at_once():
    accountant = PrivacyAccountant(5.0, 1e-5)
    bounds = {"age": (18, 90), "job": (0, 1), "town": (0, 1)}
    frame = pandas_frame().assign(town=pd.Series(COLUMNS["job"], dtype=object))
    with pytest.raises(ValueError, match=r"(?s)'job'.*'town'"):
        DPAdditiveClassifier(1.0, bounds=bounds, accountant=accountant).fit(frame, Y)
    wrong = {"job": [0, 1], "town": [1, 2]}
    with pytest.raises(ValueError, match=r"(?s)'job'.*'town'"):
        DPAdditiveClassifier(1.0, categories=wrong, accountant=accountant).fit(frame, Y)
    assert accountant.epsilon_spent == 0.0


def test_labels_may_be_called_auto():
    frame = pd.DataFrame({"gear": RNG.choice(["auto", "manual"], N_ROWS).astype(object)})
    model = DPTableVectorizer(2.0, categories=["auto", "manual"], random_state=0).fit(frame)
    assert model.bin_edges_[0].tolist() == ["auto", "manual"]


@pytest.mark.parametrize("lazy", [False, True])
def test_integer_labels_of_columns_are_labels_and_never_positions(lazy):
    X = pd.DataFrame(RNG.random((N_ROWS, 3)) * [1, 10, 100], columns=[1, 2, 3])
    if lazy:
        X = pytest.importorskip("dask.dataframe").from_pandas(X, npartitions=2, sort=False)
    own, accountant = {1: (0, 1), 2: (0, 10), 3: (0, 100)}, PrivacyAccountant(1000.0, 1e-3)
    params = {"epsilon": 100.0, "accountant": accountant}
    scaler = DPStandardScaler(**params, bounds=own).fit(X)
    np.testing.assert_allclose(scaler.mean_, [0.5, 5, 50], rtol=0.2)
    front = DPTableVectorizer(**params, bounds=own).fit(X)
    assert [edges[-1] for edges in front.bin_edges_] == [1, 10, 100]
    spent = accountant.epsilon_spent
    wrong = {0: (0, 1), 1: (0, 10), 2: (0, 100)}
    for kind in (DPStandardScaler, DPTableVectorizer):
        with pytest.raises(ValueError, match="no column 0"):
            kind(**params, bounds=wrong).fit(X)
    assert accountant.epsilon_spent == spent
    # An array has positions again.
    values = RNG.random((N_ROWS, 3)) * [1, 10, 100]
    assert DPStandardScaler(**params, bounds=wrong | {0: (0, 2)}).fit(values).n_features_in_ == 3


@pytest.mark.parametrize(
    "model",
    [skdp.DPLogisticRegression(), skdp.DPLinearSVC(), skdp.DPRidge(target_bounds=(0, 1))],
    ids=lambda model: type(model).__name__,
)
def test_a_refused_frame_gets_no_advice_about_its_scale(model):
    frame = pd.DataFrame({"age": [30, 40, 50], "job": pd.Series(["a", "b", "c"], dtype=object)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="strings"):
            model.fit(frame, [0, 1, 0])
    with pytest.warns(UserWarning, match="data_norm"):
        model.fit(frame[["age"]], [0, 1, 0])


@pytest.mark.filterwarnings("ignore:No category")
@pytest.mark.parametrize("model", [DPAdditiveClassifier, DPTableSynthesizer, DPTableVectorizer])
def test_a_column_without_values_has_a_type_of_its_own(model, tmp_path):
    """polars and Arrow have such a type; the whole table is read as in pandas."""
    table = pa.table({"empty": pa.nulls(N_ROWS), "age": COLUMNS["age"], "job": COLUMNS["job"]})
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(table, path)
    frames = {
        "pandas": table.to_pandas(),
        "arrow in pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "arrow": table,
        "polars": pl.from_arrow(table),
        "polars lazy": pl.from_arrow(table).lazy(),
        "parquet": pyarrow.dataset.dataset(path),
        "dask": dask.dataframe.from_pandas(
            table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2
        ),
    }
    expected = None
    for name, frame in frames.items():
        fitted = model(50.0, random_state=0).fit(frame, Y)
        if hasattr(fitted, "sample"):
            rows = fitted.sample(20, random_state=0)
            rows = rows if isinstance(rows, pd.DataFrame) else rows.to_pandas()
            assert rows["empty"].isna().all(), name
            values = rows[["age", "job"]].to_numpy().tolist()
        else:
            answer = getattr(fitted, "predict_proba", getattr(fitted, "transform", None))
            values = answer(table.to_pandas())
            values = values.toarray().tolist() if issparse(values) else values.tolist()
        expected = expected or values
        assert values == expected, name


PAIRS = [(i % 7 / 7, "ab"[i % 2]) for i in range(50)]
NO_TABLES = {
    "dict": ({"x": [x for x, _ in PAIRS], "word": [word for _, word in PAIRS]}, "pd.DataFrame"),
    "records": ([{"x": x, "word": word} for x, word in PAIRS], "pd.DataFrame"),
    "structured": (np.array(PAIRS, dtype=[("x", float), ("word", "U1")]), "pd.DataFrame"),
    "numbers in records": (np.array([(x, x) for x, _ in PAIRS], dtype="f8,f8"), "pd.DataFrame"),
    "reader": (pa.table({"x": [x for x, _ in PAIRS]}).to_reader(), "X.read_all()"),
    "structs": (pl.DataFrame(PAIRS, orient="row").to_struct(), "X.struct.unnest()"),
    "iterator": (iter(PAIRS), "a list of rows"),
    "set": ({*PAIRS}, "a list of rows"),
    "path": ("table.parquet", "pathlib.Path"),
}


@pytest.mark.parametrize("form", NO_TABLES)
@pytest.mark.parametrize(
    "model",
    [
        DPAdditiveClassifier(),
        DPLogisticRegression(data_norm=2.0),
        DPStandardScaler(bounds=(0, 1)),
        DPTableSynthesizer(),
        None,
    ],
    ids=lambda model: "tabular_pipeline" if model is None else type(model).__name__,
)
def test_what_is_no_table_is_refused_with_the_remedy(model, form):
    table, remedy = NO_TABLES[form]
    accountant = PrivacyAccountant(10.0, 1e-3)
    if model is None:
        charged = tabular_pipeline("classifier", accountant=accountant)
    else:
        charged = clone(model).set_params(accountant=accountant)
    with pytest.raises(ValueError, match="Expected 2D array, got") as caught:
        charged.fit(table, [word == "a" for _, word in PAIRS])
    assert remedy in str(caught.value)
    # scikit-learn would print the rows.
    assert "0.857" not in str(caught.value)
    assert not accountant.charges
