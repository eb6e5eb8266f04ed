"""What a model is served is what it was fitted to, or is refused, in every container."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdp
from skdp import PrivacyAccountant, schema_from
from skdp.stats import dp_mean, dp_mode, dp_quantile

N = 300
RNG = np.random.default_rng(0)
NUMBERS = RNG.uniform(0, 1, N)
DAYS = np.datetime64("2020-01-01") + RNG.integers(0, 1000, N).astype("m8[D]")
Y = NUMBERS > 0.5
TENTHS = RNG.choice([0.1, 0.2, 0.3], N)
CODES = RNG.integers(0, 3, N)


def dask_frame(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2, sort=False)


def containers(frame):
    """Yield a pandas frame in several containers that know the types of columns."""
    yield "pandas", frame
    yield "polars", pl.from_pandas(frame)
    yield "lazy", pl.from_pandas(frame).lazy()
    yield "arrow", pa.Table.from_pandas(frame, preserve_index=False)
    yield "dask", dask_frame(frame)


def answers(fitted, table):
    """Return what a fitted model answers, as an array."""
    method = fitted.predict_proba if hasattr(fitted, "predict_proba") else None
    if method is None:
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    found = method(table)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


NUMERIC = {
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
    "DPPCA": {},
    "DPLogisticRegression": {"data_norm": 2.0},
    "DPLinearSVC": {"data_norm": 2.0},
    "DPRidge": {"data_norm": 2.0, "target_bounds": (0, 1)},
    "DPSGDClassifier": {"data_norm": 2.0},
}
TEXT = pd.Series(NUMBERS.astype(str))
NOT_NUMBERS = {
    "seconds": pd.Series(DAYS.astype("M8[s]")),
    "nanoseconds": pd.Series(DAYS.astype("M8[ns]")),
    "with a zone": pd.Series(DAYS.astype("M8[us]")).dt.tz_localize("UTC"),
    "durations": pd.Series((DAYS - DAYS.min()).astype("m8[us]")),
    "text": TEXT.astype("string"),
    "text objects": TEXT.astype(object),
    "categories of text": TEXT.astype("category"),
}


@pytest.mark.quick_cases(every=17)
@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_estimators_refuse_dates_and_text_in_every_container(name, kind):
    """A date has another number in another container, and text another type."""
    accountant = PrivacyAccountant(100.0, 1e-3)
    make = getattr(skdp, name)
    served = make(**NUMERIC[name]).fit(pd.DataFrame({"x": NUMBERS}), Y)
    for form, table in containers(pd.DataFrame({"x": NOT_NUMBERS[kind]})):
        with pytest.raises((ValueError, TypeError), match="'x'") as error:
            make(**NUMERIC[name], accountant=accountant).fit(table, Y)
        assert "first" in str(error.value) or "read in parts" in str(error.value), form
        with pytest.raises((ValueError, TypeError), match="'x'|column 0") as error:
            answers(served, table)
        if not (kind == "with a zone" or "objects" in kind):
            assert "convert the samples" in str(error.value), form
    assert not accountant.charges


LOOSE = {
    "array of strings": NUMBERS.astype(str)[:, None],
    "list": [[text] for text in NUMBERS.astype(str)],
    "objects": NUMBERS.astype(str).astype(object)[:, None],
    "dates": DAYS[:, None],
    "list of dates": [[day] for day in DAYS],
    "Python dates": [[day] for day in DAYS.tolist()],
}
# NumPy 2 has strings of any length.
if hasattr(np.dtypes, "StringDType"):
    LOOSE["array of new strings"] = NUMBERS.astype(str).astype(np.dtypes.StringDType())[:, None]


@pytest.mark.parametrize("form", LOOSE)
def test_arrays_and_lists_of_dates_and_text_are_no_numbers(form):
    accountant = PrivacyAccountant(100.0, 1e-3)
    for name in ("DPStandardScaler", "DPLogisticRegression", "DPKMeans"):
        with pytest.raises((ValueError, TypeError), match="not numbers|numbers are expected"):
            getattr(skdp, name)(accountant=accountant).fit(LOOSE[form], Y)
    with pytest.raises((ValueError, TypeError), match="not numbers|numbers are expected"):
        dp_mean(LOOSE[form], bounds="auto", axis=0, accountant=accountant)
    assert not accountant.charges


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_statistics_of_dates_and_text_are_refused(kind):
    accountant = PrivacyAccountant(100.0, 1e-3)
    for _, table in containers(pd.DataFrame({"x": NOT_NUMBERS[kind]})):
        columns = [table] if hasattr(table, "collect_schema") else [table, table["x"]]
        for column in columns:
            params = {"bounds": "auto", "axis": 0, "accountant": accountant}
            refusal = "not numbers|numbers are expected|read in parts"
            with pytest.raises((ValueError, TypeError), match=refusal):
                dp_mean(column, **params)
            with pytest.raises((ValueError, TypeError), match=refusal):
                dp_quantile(column, 0.5, **params)
    assert not accountant.charges


@pytest.mark.parametrize("kind", ["text", "text objects", "categories of text"])
def test_targets_that_are_text_are_no_numbers(kind):
    accountant = PrivacyAccountant(100.0, 1e-3)
    target = NOT_NUMBERS[kind]
    for y in (target, pl.from_pandas(target), target.tolist(), target.to_numpy()):
        model = skdp.DPRidge(target_bounds=(0, 1), accountant=accountant)
        with pytest.raises(ValueError, match="y (contains strings|must contain numbers)"):
            model.fit(NUMBERS[:, None], y)
    assert not accountant.charges


def test_objects_that_are_numbers_are_numbers_each_by_itself():
    objects = np.array([Decimal("0.5"), 1, True, None, 0.25, np.float32(0.5)], dtype=object)
    imputer = skdp.DPSimpleImputer(bounds=(0, 1), random_state=0)
    filled = [
        imputer.fit(table).transform(table)
        for table in (objects[:, None], pd.DataFrame({"x": objects}), [[v] for v in objects])
    ]
    assert np.array_equal(filled[0], filled[1]) and np.array_equal(filled[0], filled[2])
    assert filled[0][[0, 1, 2, 4, 5], 0].tolist() == [0.5, 1.0, 1.0, 0.25, 0.5]


READ_DATES = {
    "DPAdditiveClassifier": {},
    "DPTableVectorizer": {},
    "DPHistogramNB": {},
    "DPDecisionTreeClassifier": {},
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", READ_DATES)
def test_models_of_dates_serve_every_unit_and_no_numbers(name):
    frame = pd.DataFrame({"x": DAYS.astype("M8[us]")})
    bounds = {"x": ("2020-01-01", "2023-01-01")}
    model = getattr(skdp, name)(5.0, bounds=bounds, random_state=0).fit(frame, Y)
    expected = answers(model, frame)
    for unit in ("s", "ms", "ns"):
        for form, table in containers(frame.astype(f"M8[{unit}]")):
            if form == "arrow" and unit == "s":
                continue
            np.testing.assert_array_equal(answers(model, table), expected, err_msg=form)
    for form, table in containers(pd.DataFrame({"x": NUMBERS})):
        with pytest.raises((ValueError, TypeError), match="not dates") as error:
            answers(model, table)
        assert "convert the samples" in str(error.value), form


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", READ_DATES)
def test_dates_with_a_zone_are_served_dates_with_a_zone(name):
    naive = pd.DataFrame({"x": DAYS.astype("M8[us]")})
    frames = [naive, naive.assign(x=naive["x"].dt.tz_localize("Europe/Zurich"))]
    for fitted_to, other in (frames, frames[::-1]):
        model = getattr(skdp, name)(5.0, random_state=0).fit(fitted_to, Y)
        expected = answers(model, fitted_to)
        assert np.array_equal(answers(model, pl.from_pandas(fitted_to)), expected)
        for _, table in containers(other):
            with pytest.raises(ValueError, match="'x' contains dates with"):
                answers(model, table)


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich"])
@pytest.mark.parametrize("name", READ_DATES)
def test_dates_with_a_zone_are_fitted_alike_in_every_container(name, zone, tmp_path):
    moments = pd.Series(DAYS.astype("M8[us]")).dt.tz_localize("UTC").dt.tz_convert(zone)
    frame = pd.DataFrame({"x": moments, "z": NUMBERS})
    frame.loc[3, "x"] = pd.NaT
    path = tmp_path / "x.parquet"
    frame.to_parquet(path, row_group_size=100)
    low, high = pd.Timestamp("2020-01-01", tz=zone), pd.Timestamp("2023-01-01", tz=zone)
    for bounds in ({"x": (low, high), "z": (0, 1)}, {"x": "auto", "z": (0, 1)}):
        params = {"epsilon": 5.0, "delta": 1e-6, "bounds": bounds, "random_state": 0}
        expected = None
        for form, table in [*containers(frame), ("parquet", path)]:
            found = answers(getattr(skdp, name)(**params).fit(table, Y), table)
            expected = found if expected is None else expected
            np.testing.assert_array_equal(found, expected, err_msg=form)


def forms_of_objects(dates):
    """Yield dates in containers whose type does not show whether the dates have a zone."""
    column = np.empty((len(dates), 1), dtype=object)
    column[:, 0] = dates
    yield "array of objects", column
    yield "list", column.tolist()
    yield "frame of objects", pd.DataFrame({"x": column[:, 0]}, dtype=object)


@pytest.mark.quick_cases(every=2)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", READ_DATES)
def test_each_date_in_objects_has_a_zone_if_those_of_the_fit_had_one(name):
    naive = DAYS.astype("M8[us]").tolist()
    zoned = [day.replace(tzinfo=datetime.UTC) for day in naive]
    plain = pd.DataFrame({"x": DAYS.astype("M8[us]")})
    fits = {False: plain, True: plain.assign(x=plain["x"].dt.tz_localize("UTC"))}
    for has_zone, frame in fits.items():
        model = getattr(skdp, name)(5.0, random_state=0).fit(frame, Y)
        expected = answers(model, frame)
        same, other = (zoned, naive) if has_zone else (naive, zoned)
        for form, table in forms_of_objects(same):
            np.testing.assert_array_equal(answers(model, table), expected, err_msg=form)
        # One row suffices, and missing values have no zone.
        mixed = [None, *same[1:-1], other[-1]]
        refused = [*forms_of_objects(other), *forms_of_objects(mixed)]
        if has_zone:
            refused.append(("array of dates", DAYS[:, None]))
            refused.extend(forms_of_objects([str(day) for day in DAYS]))
        for _, table in refused:
            with pytest.raises(ValueError, match="dates of the fit were with(out)? a time zone"):
                answers(model, table)
        for _, table in forms_of_objects([None, *same[1:]]):
            assert np.array_equal(answers(model, table)[1:], expected[1:])
    # The type of an array of dates shows that they have no zone.
    model = getattr(skdp, name)(5.0, bounds=("2020-01-01", "2023-01-01"), random_state=0)
    model.fit(DAYS[:, None], Y)
    for _, table in forms_of_objects(zoned):
        with pytest.raises(ValueError, match="dates of the fit were without a time zone"):
            answers(model, table)
    lazy = pl.DataFrame({"x": zoned}).lazy()
    with pytest.raises(ValueError, match="'x' contains dates with a time zone"):
        answers(model, lazy)


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTargetEncoder", "DPAdditiveClassifier"])
def test_text_is_refused_by_a_model_of_whole_numbers_in_every_container(name):
    params = {"epsilon": 50.0, "delta": 1e-6, "categories": "auto", "random_state": 0}
    if name == "DPAdditiveClassifier":
        params["categories"] = {"x": "auto"}
    model = getattr(skdp, name)(**params).fit(pd.DataFrame({"x": CODES}), Y)
    for form, table in containers(
        pd.DataFrame({"x": pd.Series(CODES.astype(str), dtype="string")})
    ):
        with pytest.raises(ValueError, match="holds text") as error:
            answers(model, table)
        assert "convert the samples" in str(error.value), form


WRONG_DATES = [
    ("20190101", "20230101"),
    ("today", "now"),
    ("2019-01-01", "NaT"),
    ("2019-01-01", "2023-01-01Z"),
    ("2019-01-01", "99999-01-01"),
    ("2019-01-01", np.datetime64("20230101")),
    (b"2019-01-01", b"2023-01-01"),
]


@pytest.mark.parametrize("bounds", WRONG_DATES)
@pytest.mark.parametrize("name", READ_DATES)
def test_text_that_numpy_reads_as_another_date_costs_nothing(name, bounds):
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = getattr(skdp, name)(bounds={"x": bounds}, accountant=accountant)
    with pytest.raises(ValueError, match="must be dates.*2020-12-31"):
        model.fit(pd.DataFrame({"x": DAYS.astype("M8[us]")}), Y)
    assert not accountant.charges


@pytest.mark.parametrize("name", READ_DATES)
def test_cells_of_text_are_dates_in_one_form(name):
    frame = pd.DataFrame({"x": DAYS.astype("M8[us]")})
    model = getattr(skdp, name)(5.0, bounds={"x": ("2020", "2023-01")}, random_state=0)
    model.fit(frame, Y)
    day = [np.datetime64("2021-01-05"), datetime.date(2021, 1, 5), "2021-01-05", "2021-01-05T00:00"]
    cells = pd.DataFrame({"x": np.array([*day, None], dtype=object)})
    found = answers(model, cells)
    assert (found[:4] == found[0]).all()
    for wrong in ("20210105", "today", "", "2021-1-5", np.datetime64("20210105"), 18_000):
        with pytest.raises((ValueError, TypeError), match="not dates"):
            answers(model, pd.DataFrame({"x": np.array([wrong], dtype=object)}))
    with pytest.raises(ValueError, match="not dates"):
        answers(model, pl.DataFrame({"x": pl.Series(["99999-01-01"])}))


FINDERS = {
    "DPOneHotEncoder": {},
    "DPTargetEncoder": {},
    "DPTableVectorizer": {"categories": {"x": "auto"}},
    "DPAdditiveClassifier": {"categories": {"x": "auto"}},
    "DPHistogramNB": {"categories": {"x": "auto"}},
    "DPDecisionTreeClassifier": {"categories": {"x": "auto"}},
}


def tables_of_tenths():
    """Yield tables of the tenths in floats of four or eight bytes, beside whole numbers."""
    frame = pd.DataFrame({"x": TENTHS, "k": CODES})
    yield "doubles", frame
    yield "two bytes", frame.astype({"x": "f2"})
    yield "nullable", frame.astype({"x": "Float32"})
    yield "categories", frame.astype({"x": "f4"}).astype({"x": "category"})
    for form, table in containers(frame.astype({"x": "f4"})):
        yield f"{form} of four bytes", table


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", FINDERS)
def test_a_tenth_is_a_tenth_in_floats_of_every_length(name):
    """Fitted to one table and served another one, both ways."""
    params = FINDERS[name] | {"epsilon": 50.0, "delta": 1e-6, "random_state": 0}
    tables = dict(tables_of_tenths())
    expected = None
    for fitted_to in (
        "doubles",
        "two bytes",
        "nullable",
        "pandas of four bytes",
        "lazy of four bytes",
    ):
        model = getattr(skdp, name)(**params).fit(tables[fitted_to], Y)
        for form, table in tables.items():
            found = answers(model, table)
            expected = found if expected is None else expected
            np.testing.assert_array_equal(found, expected, err_msg=f"{fitted_to}, {form}")
    # The same four bytes, written as doubles by a container without their type.
    model = getattr(skdp, name)(**params).fit(tables["pandas of four bytes"], Y)
    widened = tables["pandas of four bytes"].astype(float)
    np.testing.assert_array_equal(answers(model, widened), expected)
    names = widened.columns
    lists = pl.DataFrame(widened.to_numpy().tolist(), schema=[*names], orient="row")
    np.testing.assert_array_equal(answers(model, lists), expected)
    # The answer of a row does not depend on the other rows.
    for i in (0, N // 2):
        np.testing.assert_array_equal(answers(model, widened[i : i + 1])[0], expected[i])


def tables_with_gaps():
    codes = pd.Series(CODES, dtype="Int64").where(CODES > 0)
    yield "integers", pd.DataFrame({"x": codes})
    yield "booleans", pd.DataFrame({"x": pd.Series(CODES == 1, dtype="boolean").where(CODES > 0)})
    yield "floats", pd.DataFrame({"x": np.where(CODES > 0, CODES, np.nan)})


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTargetEncoder"])
def test_gaps_are_unknown_categories_in_every_container(name, declared):
    for kind, frame in tables_with_gaps():
        categories = {"categories": [[1, 2] if kind != "booleans" else [False, True]]}
        params = {"epsilon": 50.0, "delta": 1e-6, "random_state": 0}
        make = getattr(skdp, name)
        for extra in ({}, {"word": "a", "whole": CODES}):
            table = frame.assign(**extra)
            if declared and extra:
                continue
            expected = None
            for form, held in containers(table):
                model = make(**params, **(categories if declared else {})).fit(held, Y)
                found = answers(model, held)
                expected = found if expected is None else expected
                np.testing.assert_array_equal(found, expected, err_msg=f"{kind}, {form}")


LABELED = {**NUMERIC, **FINDERS, "DPTableVectorizer": {}, "DPAdditiveClassifier": {}}
LABELED |= {"DPHistogramNB": {}, "DPDecisionTreeClassifier": {}}
WIDE = pd.DataFrame({10: NUMBERS, 20: CODES})
TUPLES = WIDE.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), axis=1)


@pytest.mark.quick_cases(every=11)
@pytest.mark.parametrize("name", LABELED)
def test_labels_of_columns_are_those_of_the_fit(name):
    params = LABELED[name] | ({"delta": 1e-6} if name in FINDERS else {})
    for frame in (WIDE, TUPLES, dask_frame(WIDE)):
        model = getattr(skdp, name)(**params).fit(frame, Y)
        known = TUPLES if frame is TUPLES else WIDE
        swapped = known[known.columns[::-1]]
        others = [swapped, known.set_axis([30, 40], axis=1), known.set_axis([20, 11], axis=1)]
        if frame is not TUPLES:
            others.append(dask_frame(swapped))
        for other in others:
            with pytest.raises(ValueError, match="labels of the columns must be those of the fit"):
                answers(model, other)
        # Arrays, and frames of the fit's labels or of none, are served.
        for table in (frame, known, known.to_numpy(dtype=float), known.set_axis([0, 1], axis=1)):
            assert len(answers(model, table)) == N


def test_positions_are_labels_of_a_frame_in_another_order():
    frame = pd.DataFrame(WIDE.to_numpy())
    scaler = skdp.DPStandardScaler(bounds={0: (0, 1), 1: (0, 3)}).fit(frame)
    with pytest.raises(ValueError, match=r"expected \[0, 1\], got \[1, 0\]"):
        scaler.transform(frame[[1, 0]])
    scaler = skdp.DPStandardScaler().fit(frame[[1, 0]])
    with pytest.raises(ValueError, match=r"expected \[1, 0\], got \[0, 1\]"):
        scaler.transform(frame)
    model = skdp.DPSGDClassifier(classes=[False, True], data_norm=2.0).partial_fit(WIDE, Y)
    with pytest.raises(ValueError, match=r"expected \[10, 20\], got \[20, 10\]"):
        model.partial_fit(WIDE[[20, 10]], Y)


@pytest.mark.parametrize("rows", [2000, 20_000])
def test_a_column_without_values_is_warned_of(rows):
    missing = np.full((rows, 1), np.nan)
    with pytest.warns(UserWarning, match="Nearly all values of column 0 are missing"):
        skdp.DPSimpleImputer(5.0, bounds=(0, 5), random_state=0).fit(missing)
    with pytest.warns(UserWarning, match="Nearly all values of column 0 are missing"):
        dp_mean(missing[:, 0], 5.0, bounds=(0, 5), nan_policy="omit", random_state=0)


def test_a_column_with_some_values_is_not_warned_of(recwarn):
    values = np.where(np.arange(20_000) % 4, np.nan, 2.0)
    skdp.DPSimpleImputer(5.0, bounds=(0, 5), random_state=0).fit(values[:, None])
    dp_mean(values, 5.0, bounds=(0, 5), nan_policy="omit", random_state=0)
    assert not [w for w in recwarn if "missing" in str(w.message)]


def test_integers_of_16_bytes_are_numbers():
    frame = pl.DataFrame({"x": pl.Series(CODES.tolist(), dtype=pl.Int128)})
    scaler = skdp.DPStandardScaler(bounds=(0, 3), random_state=0)
    expected = scaler.fit(CODES[:, None]).mean_
    assert np.array_equal(scaler.fit(frame).mean_, expected)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="128"):
        scaler.set_params(accountant=accountant).fit(frame.lazy())
    assert not accountant.charges


def test_lazy_frames_of_polars_have_a_schema():
    frame = pl.DataFrame({"x": NUMBERS, "w": ["a"] * N})
    assert schema_from(frame.lazy()) == schema_from(frame)


def test_a_frame_of_one_column_has_a_mode():
    frame = pd.DataFrame({"x": CODES})
    for table in (frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy()):
        assert dp_mode(table, categories=[0, 1, 2], epsilon=50.0) == np.bincount(CODES).argmax()
