"""Columns whose type shows that a declaration is wrong: dates under numbers, and mixed lists."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    DPHistogramNB,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.pipeline import split_budget
from skdp.stats import dp_crosstab, dp_mode

N_ROWS = 200
RNG = np.random.default_rng(0)
P = RNG.uniform(size=N_ROWS)
Y = P > 0.5
DAYS = pd.date_range("2020-01-01", periods=N_ROWS, freq="h")
TIMES = {"dates": pd.Series(DAYS), "durations": pd.Series(DAYS - DAYS[0])}


def containers(times):
    frame = pd.DataFrame({"p": P, "d": times})
    yield "pandas", frame
    yield "polars", pl.from_pandas(frame)
    yield "arrow", pa.Table.from_pandas(frame, preserve_index=False)
    yield "lazy", pl.from_pandas(frame).lazy()
    yield "array", times.to_numpy()[:, None]


BOUNDED = {
    "DPStandardScaler": {},
    "DPMinMaxScaler": {},
    "DPMaxAbsScaler": {},
    "DPRobustScaler": {},
    "DPQuantileTransformer": {},
    "DPKBinsDiscretizer": {},
    "DPHistogramTransformer": {},
    "DPSimpleImputer": {},
    "DPMeanTransformer": {},
    "DPGaussianNB": {},
    "DPKMeans": {"n_clusters": 2},
    "DPTableVectorizer": {"delta": 1e-6},
    "DPAdditiveClassifier": {"delta": 1e-6},
    "DPHistogramNB": {"delta": 1e-6},
    "DPRandomForestClassifier": {"n_estimators": 2},
}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_of_numbers_for_dates_cost_nothing(name, times):
    for form, table in containers(TIMES[times]):
        accountant = PrivacyAccountant(1.0, 1e-5)
        model = getattr(skdp, name)(bounds=(0, 1), accountant=accountant, **BOUNDED[name])
        with pytest.raises(ValueError, match=f"(bounds of|contains) {times}"):
            model.fit(table, Y)
        assert not accountant.charges, form


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", ["DPPCA", "DPLogisticRegression"])
def test_a_norm_of_dates_costs_nothing(name, times):
    for form, table in containers(TIMES[times]):
        accountant = PrivacyAccountant(1.0, 1e-5)
        model = getattr(skdp, name)(data_norm=1.0, delta=1e-6, accountant=accountant)
        with pytest.raises(ValueError, match=f"contains {times}"):
            model.fit(table, Y)
        assert not accountant.charges, form


@pytest.mark.parametrize("step", ["first", "last"])
def test_dates_in_a_split_pipeline_cost_nothing(step):
    accountant = PrivacyAccountant(1.0, 1e-5)
    scaler = DPStandardScaler(bounds=(0, 1))
    parts = [("p", scaler, ["p"]), ("d", DPMeanTransformer(bounds=(0, 1)), ["d"])]
    if step == "last":
        parts[1] = ("d", "passthrough", ["d"])
    steps = [ColumnTransformer(parts), skdp.DPLogisticRegression(data_norm=1.0)]
    pipe = split_budget(make_pipeline(*steps), 1.0, 1e-5, accountant)
    with pytest.raises(ValueError, match="dates"):
        pipe.fit(pd.DataFrame({"p": P, "d": DAYS}), Y)
    assert not accountant.charges


@pytest.mark.parametrize(
    "bounds",
    [
        (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
        (np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
        (np.timedelta64(1, "D"), np.timedelta64(2, "D")),
    ],
)
def test_bounds_of_dates_for_numbers_cost_nothing(bounds):
    accountant = PrivacyAccountant(1.0, 1e-5)
    for table in (pd.DataFrame({"p": P}), pd.DataFrame({"p": DAYS})):
        with pytest.raises(ValueError, match="bounds|contains dates"):
            DPStandardScaler(bounds=bounds, accountant=accountant).fit(table)
    assert not accountant.charges


WORDS = ["0", "1"] * (N_ROWS // 2)
TEXTS = {
    "str": pd.DataFrame({"w": pd.array(WORDS, dtype="string")}),
    "category": pd.DataFrame({"w": pd.Series(WORDS).astype("category")}),
    "category of objects": pd.DataFrame({"w": pd.Series(WORDS, dtype=object).astype("category")}),
    "polars": pl.DataFrame({"w": WORDS}),
    "polars Enum": pl.DataFrame({"w": pl.Series(WORDS, dtype=pl.Enum(["0", "1"]))}),
    "polars Categorical": pl.DataFrame({"w": pl.Series(WORDS, dtype=pl.Categorical)}),
    "arrow": pa.table({"w": WORDS}),
    "arrow dictionary": pa.table({"w": pa.array(WORDS).dictionary_encode()}),
}
CODES = np.tile([0, 1], N_ROWS // 2)
NUMBERS = {
    "int": pd.DataFrame({"w": CODES}),
    "category": pd.DataFrame({"w": pd.Series(CODES).astype("category")}),
    "arrow dictionary": pa.table({"w": pa.array(CODES).dictionary_encode()}),
}
MIXED = [(TEXTS, form, [0, 1, "zz"]) for form in TEXTS]
MIXED += [(NUMBERS, form, ["0", "1", 9]) for form in NUMBERS]
LABELED = {
    "DPOneHotEncoder": {"min_frequency": 3},
    "DPTargetEncoder": {},
    "DPHistogramNB": {},
    "DPAdditiveClassifier": {},
    "DPTableVectorizer": {},
    "DPSimpleImputer": {"strategy": "most_frequent"},
}


def make(name, accountant, categories):
    params = LABELED[name] | {"delta": 1e-6, "accountant": accountant}
    return getattr(skdp, name)(1.0, categories=categories, **params)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", LABELED)
@pytest.mark.parametrize("tables, form, categories", MIXED)
def test_one_label_of_the_right_kind_does_not_excuse_the_others(name, tables, form, categories):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="by its type, which never equal its category"):
        make(name, accountant, [categories]).fit(tables[form], Y)
    if name == "DPOneHotEncoder":
        column = tables[form]["w"]
        for count in (
            lambda: dp_mode(column, categories=categories, accountant=accountant),
            lambda: dp_crosstab(
                column, column, categories=(categories, categories), accountant=accountant
            ),
        ):
            with pytest.raises(ValueError, match="by its type, which never equal its category"):
                count()
    assert not accountant.charges


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPHistogramNB", "DPTableVectorizer"])
def test_mixed_lists_for_objects_are_warned_of_before_the_charge(name):
    """The cells decide nothing but errors about themselves, so that such a list is accepted."""
    accountant = PrivacyAccountant(10.0, 1e-3)
    table = pd.DataFrame({"w": pd.Series(WORDS, dtype=object)})
    with pytest.warns(UserWarning, match="'1' is not 1"):
        make(name, accountant, [[0, 1, "zz"]]).fit(table, Y)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", LABELED)
@pytest.mark.parametrize("form", TEXTS)
def test_complex_numbers_are_no_categories(name, form):
    accountant = PrivacyAccountant(10.0, 1e-3)
    for categories in ([1j, 2j], [0, 1 + 0j], [np.complex64(1), 2]):
        with pytest.raises(ValueError, match="complex"):
            make(name, accountant, [categories]).fit(TEXTS[form], Y)
        with pytest.raises(ValueError, match="complex"):
            dp_mode(TEXTS[form]["w"], categories=categories, accountant=accountant)
        with pytest.raises(ValueError, match="complex"):
            dp_crosstab(CODES, CODES, categories=(categories, [0, 1]), accountant=accountant)
    assert not accountant.charges


SERVED = {
    "dates": pd.Series(DAYS),
    "durations": pd.Series(DAYS - DAYS[0]),
    "bytes": pd.Series([b"1"] * N_ROWS),
    "objects": pd.Series([np.datetime64("2020-01-01", "D")] * N_ROWS, dtype=object),
}


@pytest.mark.parametrize(
    "name", ["DPHistogramNB", "DPAdditiveClassifier", "DPRandomForestClassifier"]
)
def test_a_column_of_numbers_is_not_served_other_kinds(name):
    fitted = getattr(skdp, name)(4.0, bounds={"p": (0, 1)}).fit(pd.DataFrame({"p": P}), Y)
    for kind, column in SERVED.items():
        with pytest.raises((TypeError, ValueError), match="not numbers|contains dates"):
            fitted.predict(pd.DataFrame({"p": column}))
            pytest.fail(kind)
    dates = (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))
    fitted = getattr(skdp, name)(4.0, bounds={"p": dates}).fit(pd.DataFrame({"p": DAYS}), Y)
    for column in (P, pd.Series(list(P), dtype=object), DAYS - DAYS[0]):
        with pytest.raises((TypeError, ValueError), match="not dates"):
            fitted.predict(pd.DataFrame({"p": column}))


def test_found_categories_are_served_their_own_kind():
    fitted = DPHistogramNB(50.0, delta=1e-3).fit(TEXTS["category"], Y)
    with pytest.raises(ValueError, match="categories"):
        fitted.predict(NUMBERS["category"])
    objects = pd.DataFrame({"w": pd.Series(CODES.tolist(), dtype=object)})
    with pytest.warns(UserWarning, match="the type that it had in the fit"):
        fitted.predict(objects)
    encoder = DPOneHotEncoder(50.0, delta=1e-3).fit(NUMBERS["int"])
    with pytest.raises(ValueError, match="categories"):
        encoder.transform(TEXTS["category"])


def test_dates_of_arrow_may_be_missing():
    days = [datetime.date(2020, 1, 1 + i % 20) if i % 3 else None for i in range(N_ROWS)]
    table = pd.DataFrame({"d": pd.Series(days, dtype=pd.ArrowDtype(pa.date32()))})
    bounds = {"d": (datetime.date(2020, 1, 1), datetime.date(2020, 2, 1))}
    one, two = (
        DPHistogramNB(4.0, bounds=bounds, random_state=0).fit(t, Y).predict_proba(t)
        for t in (table, pa.table({"d": days}))
    )
    np.testing.assert_array_equal(one, two)


def test_a_record_batch_has_names():
    batch = pa.table({"p": P, "q": P}).to_batches()[0]
    fitted = DPStandardScaler(bounds={"p": (0, 1), "q": (0, 1)}).fit(batch)
    assert fitted.feature_names_in_.tolist() == ["p", "q"]
    assert fitted.transform(batch).shape == (N_ROWS, 2)
    for name in ("DPAdditiveClassifier", "DPHistogramNB"):
        fitted = getattr(skdp, name)(delta=1e-6).fit(batch, Y)
        assert fitted.feature_names_in_.tolist() == ["p", "q"]


def test_a_path_in_a_string_is_refused_with_the_remedy():
    for name in ("DPStandardScaler", "DPAdditiveClassifier", "DPOneHotEncoder"):
        with pytest.raises(ValueError, match=r"pathlib\.Path"):
            getattr(skdp, name)().fit("table.parquet", Y)
