"""Declared categories of another kind than the column: refused before the charge, and served."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdp
from skdp import ChunkedArray, PrivacyAccountant
from skdp.stats import dp_crosstab, dp_mode

N_ROWS = 300
NUMBERS = np.random.default_rng(0).integers(0, 3, N_ROWS)
Y = NUMBERS == 1
DAY = np.datetime64("2024-03-01")
# Columns of three values each, by kind, and the list that fits each of them.
COLUMNS = {
    "numbers": NUMBERS,
    "text": NUMBERS.astype(str),
    "bytes": NUMBERS.astype("S1"),
    "booleans": NUMBERS > 0,
    "dates": DAY + NUMBERS,
}
LISTS = {
    "numbers": [0, 1, 2],
    "text": ["0", "1", "2"],
    "bytes": [b"0", b"1", b"2"],
    "booleans": [False, True],
    "words": ["False", "True"],
    "dates": [datetime.date(2024, 3, d) for d in (1, 2, 3)],
    "written dates": ["2024-03-01", "2024-03-02", "2024-03-03"],
}
# Of a column the lists that it can be equal to.
FITTING = {
    "numbers": {"numbers", "booleans"},
    "booleans": {"numbers", "booleans"},
    "text": {"text", "words", "written dates"},
    "bytes": {"bytes"},
    "dates": {"dates"},
}
WRONG = [(c, d) for c in COLUMNS for d in LISTS if d not in FITTING[c]]

ESTIMATORS = {
    "DPOneHotEncoder": {},
    "DPOneHotEncoder with counts": {"min_frequency": 5},
    "DPTargetEncoder": {},
    "DPSimpleImputer": {"strategy": "most_frequent"},
    "DPHistogramTransformer": {},
    "RandomizedResponseTransformer": {},
    "DPTableVectorizer": {},
    "DPAdditiveClassifier": {},
    "DPHistogramNB": {},
    "DPDecisionTreeClassifier": {},
    "DPRandomForestClassifier": {"n_estimators": 3},
}


def make(name, categories, accountant=None):
    kind, params = getattr(skdp, name.split()[0]), dict(ESTIMATORS[name])
    if name != "RandomizedResponseTransformer":
        params["delta"] = 1e-6
    return kind(2.0, categories=categories, accountant=accountant, random_state=0, **params)


def containers(values):
    """Return the column as tables of many kinds."""
    objects = np.empty((len(values), 1), dtype=object)
    # Numpy would make integers of dates.
    objects[:, 0] = values.tolist() if values.dtype.kind != "M" else list(map(pd.Timestamp, values))
    tables = {
        "objects": objects,
        "frame": pd.DataFrame({"x": values if values.dtype.kind != "S" else list(values)}),
        "frame of objects": pd.DataFrame(objects, columns=["x"], dtype=object),
        "rows": objects.tolist(),
    }
    if values.dtype.kind != "M":
        tables["array"] = values[:, None]
    if values.dtype.kind in "ib":
        column = values[:, None].astype(np.int64)
        tables["blocks"] = ChunkedArray([column[:100], column[100:]])
    if values.dtype.kind != "S":
        tables["polars"] = pl.DataFrame({"x": objects[:, 0].tolist()})
        tables["arrow"] = pa.table({"x": objects[:, 0].tolist()})
    return tables


def charges_of(run, accountant):
    with pytest.raises(ValueError, match="categories"):
        run()
    return accountant.epsilon_spent


@pytest.mark.quick_cases(every=29)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind, declared", WRONG)
def test_a_list_of_another_kind_costs_nothing(name, kind, declared):
    accountant = PrivacyAccountant(1000.0, 0.1)
    for form, table in containers(COLUMNS[kind]).items():
        estimator = make(name, [LISTS[declared]], accountant)
        answer = hasattr(estimator, "fit_transform")
        method = estimator.fit_transform if answer else estimator.fit
        assert charges_of(lambda m=method, t=table: m(t, Y), accountant) == 0.0, form


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ["numbers", "text", "booleans"])
def test_samples_after_a_fit_are_refused_likewise(name, kind):
    if name in ("DPSimpleImputer", "RandomizedResponseTransformer"):
        pytest.skip("it compares samples with nothing, or charges for them")
    table = pd.DataFrame({"x": COLUMNS[kind]})
    fitted = make(name, [LISTS[kind]]).fit(table, Y)
    answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    answer(table)
    for other in COLUMNS.keys() - {"dates"}:
        if kind in FITTING[other]:
            continue
        for form, samples in containers(COLUMNS[other]).items():
            if not hasattr(samples, "columns") or form == "arrow":
                continue
            with pytest.raises(ValueError, match="categories"):
                answer(samples)


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPAdditiveClassifier", "DPTableVectorizer"])
def test_found_categories_are_compared_with_the_types_of_columns(name):
    words = pd.DataFrame({"x": pd.array(COLUMNS["text"], dtype="string")})
    fitted = make(name, None).fit(words, Y)
    answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    answer(words)
    with pytest.raises(ValueError, match="categories"):
        answer(pd.DataFrame({"x": NUMBERS}))
    # A row without a value says nothing.
    answer(pd.DataFrame({"x": [np.nan]}) if name != "DPOneHotEncoder" else words)


def test_rare_values_of_another_kind_in_a_discovered_column_of_objects_are_no_error():
    cells = np.array([*COLUMNS["text"][:-1], 7], dtype=object)[:, None]
    encoder = make("DPOneHotEncoder", None)
    assert encoder.fit_transform(cells)[-1].sum() == 0


@pytest.mark.parametrize("kind, declared", WRONG)
def test_functions_refuse_it_likewise(kind, declared):
    accountant, categories = PrivacyAccountant(10.0, 0.1), LISTS[declared]
    for form, table in containers(COLUMNS[kind]).items():
        if form in ("blocks", "rows"):
            continue
        labels = table[:, 0] if isinstance(table, np.ndarray) else table["x"]
        mode = lambda a=labels: dp_mode(a, categories=categories, accountant=accountant)  # noqa: E731
        assert charges_of(mode, accountant) == 0.0
        if form == "array":
            cross = {"categories": ([0, 1, 2], categories), "accountant": accountant}
            assert (
                charges_of(lambda a=labels, c=cross: dp_crosstab(NUMBERS, a, **c), accountant) == 0
            )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_decimals_that_a_small_float_rounds_are_matched(dtype, make):
    """0.1 is no float32 value, but the shortest decimal of one."""
    cells, y = np.array([[0.1], [0.2]] * 100, dtype=dtype), np.array([0, 1] * 100)
    X = make(cells)
    accountant = PrivacyAccountant(1000.0, 1e-3)
    model = skdp.DPAdditiveClassifier(categories={0: [0.1, 0.2]}, accountant=accountant)
    assert model.fit(X, y).score(X, y) > 0.9
    counted = {"categories": [0.1, 0.3], "epsilon": 50.0, "accountant": accountant}
    assert dp_mode(cells[:, 0], **counted) == 0.1
    # Numbers that the type holds are matched, too.
    model.set_params(categories={0: np.unique(cells).astype(float).tolist()}).fit(X, y)
    assert model.score(X, y) > 0.9
    # A model that was fitted to doubles serves those that the type rounds.
    model.set_params(categories={0: [0.1, 0.2]}).fit(make(cells.astype(float).round(1)), y)
    assert model.score(X, y) > 0.9
    # Categories that the type does not tell apart are refused.
    spent = accountant.epsilon_spent
    close = [0.1, 0.1 + 1e-12]
    with pytest.raises(ValueError, match=f"compared as {np.dtype(dtype)}.*the same number"):
        model.set_params(categories={0: close}).fit(X, y)
    with pytest.raises(ValueError, match="the same number: declare only one"):
        dp_mode(cells[:, 0], categories=close, epsilon=5.0, accountant=accountant)
    assert accountant.epsilon_spent == spent
    model.fit(make(cells.astype(float)), y)
    with pytest.raises(ValueError, match="convert the samples to float64"):
        model.predict(X)


def tables_of_booleans():
    """Yield a column of Booleans in containers whose type says that it is one."""
    frame = pd.DataFrame({"x": COLUMNS["booleans"]})
    yield "array", COLUMNS["booleans"][:, None]
    yield "frame", frame
    yield "nullable", frame.astype("boolean")
    yield "frame of Arrow", frame.astype("bool[pyarrow]")
    yield "polars", pl.from_pandas(frame)
    yield "lazy", pl.from_pandas(frame).lazy()
    yield "arrow", pa.table({"x": COLUMNS["booleans"]})


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_zero_and_one_are_categories_of_a_column_of_booleans(name):
    accountant = PrivacyAccountant(1000.0, 0.1)
    for form, table in tables_of_booleans():
        if form == "lazy" and name == "RandomizedResponseTransformer":
            continue
        for categories in ([0, 1, 2], [-1, 1], [False, True, 0.5]):
            estimator = make(name, [categories], accountant)
            answer = hasattr(estimator, "fit_transform")
            method = estimator.fit_transform if answer else estimator.fit
            with pytest.raises(ValueError, match="holds Booleans by its type"):
                method(table, Y)
            assert accountant.epsilon_spent == 0.0, form
        make(name, [[1.0, 0.0]]).fit(table, Y)


def test_the_mode_of_booleans_has_only_zero_and_one_as_categories():
    accountant = PrivacyAccountant(10.0, 0.1)
    for form, table in tables_of_booleans():
        if form != "lazy":
            labels = table[:, 0] if isinstance(table, np.ndarray) else table["x"]
            with pytest.raises(ValueError, match="holds Booleans by its type"):
                dp_mode(labels, categories=[0, 1, 2], accountant=accountant)
            dp_mode(labels, categories=[0, 1], accountant=PrivacyAccountant(10.0, 0.1))
    assert accountant.epsilon_spent == 0.0


def columns_of_floats(dtype):
    """Yield a column of 0.1, 0.2 and 0.3 of a floating-point type, in several containers."""
    values = np.array([0.1, 0.2, 0.3], dtype=dtype)[NUMBERS]
    yield values[:, None]
    yield pd.DataFrame({"x": values})
    yield pd.DataFrame({"x": pd.Series(values).astype("category")})
    yield pl.DataFrame({"x": values})
    yield pa.table({"x": pa.array(values)})
    yield ChunkedArray([values[:100, None], values[100:, None]])


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("declared", [np.float16, np.float32])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make_list", [list, np.asarray, pd.Series, pl.Series])
def test_lists_of_shorter_floats_match_their_decimals(declared, dtype, make_list):
    """The float32 0.1 is not the double 0.1."""
    labels = np.array([0.1, 0.2, 0.3], dtype=declared)
    if make_list is pl.Series and declared == np.float16:
        pytest.skip("polars has had such a type since version 1.36 only")
    for table in columns_of_floats(dtype):
        accountant = PrivacyAccountant(1000.0, 1e-3)
        model = skdp.DPAdditiveClassifier(
            50.0, categories=[make_list(labels)], accountant=accountant, random_state=0
        )
        assert model.fit(table, Y).score(table, Y) == 1.0
        # The same numbers in double precision are served likewise.
        samples = np.array([[0.1], [0.2], [0.3]])
        np.testing.assert_array_equal(model.predict(samples), [False, True, False])
        numbers = np.array([0.1, 0.2, 0.3], dtype=dtype)[NUMBERS]
        mode = dp_mode(numbers, 50.0, categories=make_list(labels), random_state=0)
        assert float(mode) in labels.astype(float)


TENTHS = [0.1, 0.2, 0.3]


def columns_of_tenths():
    """Yield the tenths as cells, by how they were stored; the type of the column does not tell."""
    doubles = np.array(TENTHS)[NUMBERS]
    floats = doubles.astype(np.float32)
    scalars = np.empty(N_ROWS, dtype=object)
    scalars[:] = list(floats)
    halves = np.empty(N_ROWS, dtype=object)
    halves[:] = list(doubles.astype(np.float16))
    decimals = np.array([Decimal(str(number)) for number in doubles], dtype=object)
    yield "doubles", doubles
    yield "floats", floats
    yield "doubles that were floats", floats.astype(np.float64)
    yield "doubles that were halves", doubles.astype(np.float16).astype(np.float64)
    yield "floats that were halves", doubles.astype(np.float16).astype(np.float32)
    yield "objects", doubles.astype(object)
    yield "objects that were floats", floats.astype(object)
    yield "objects that are floats", scalars
    yield "objects that are halves", halves
    yield "decimals", decimals
    yield "mixed", np.where(np.arange(N_ROWS) % 2, scalars, decimals)


LISTS_OF_TENTHS = {
    "doubles": TENTHS,
    "floats": np.array(TENTHS, dtype=np.float32),
    "doubles that were floats": np.array(TENTHS, dtype=np.float32).tolist(),
    "doubles that were halves": np.array(TENTHS, dtype=np.float16).tolist(),
    "decimals": [Decimal("0.1"), Decimal("0.2"), Decimal("0.3")],
}


@pytest.mark.parametrize("declared", LISTS_OF_TENTHS)
def test_a_tenth_is_one_label_in_whatever_precision_it_was_stored(declared):
    categories = LISTS_OF_TENTHS[declared]
    accountant = PrivacyAccountant(1000.0, 0.1)
    for stored, column in columns_of_tenths():
        for table in (column[:, None], pd.DataFrame({"x": column})):
            encoder = make("DPOneHotEncoder", [categories], accountant)
            encoded = encoder.set_params(sparse_output=False).fit_transform(table)
            np.testing.assert_array_equal(encoded, np.eye(3)[NUMBERS], err_msg=stored)
            # Other samples than the fit's are served likewise, each by itself.
            for _, samples in columns_of_tenths():
                served = encoder.transform(pd.DataFrame({"x": samples[:3]}).to_numpy())
                np.testing.assert_array_equal(served, np.eye(3)[NUMBERS[:3]], err_msg=stored)
        mode = dp_mode(column, 50.0, categories=categories, random_state=0)
        most_frequent = categories[np.bincount(NUMBERS).argmax()]
        np.testing.assert_allclose(float(mode), float(most_frequent), rtol=1e-6)


def test_labels_stay_apart_if_both_forms_of_a_number_are_declared():
    """No whole number has another form, and no number is counted in the label of another one."""
    rounded = float(np.float32(0.1))
    values = np.array([0.1, rounded, 16777216.0, 16777217.0, 0.1 + 1e-12, 0.25])[:, None]
    for cells in (values, values.astype(object)):
        encoder = skdp.DPOneHotEncoder(sparse_output=False)
        encoder.set_params(categories=[[0.1, rounded, 16777217.0]])
        expected = np.zeros((6, 3))
        expected[[0, 1, 3], [0, 1, 2]] = 1.0
        np.testing.assert_array_equal(encoder.fit_transform(cells), expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_lists_of_half_floats_are_refused_for_columns_of_objects(name):
    """Cells of objects may be floats of any type: where 0.1 differs, all rows would be lost."""
    accountant = PrivacyAccountant(1000.0, 0.1)
    values = np.array(TENTHS, dtype=object)[NUMBERS]
    labels = np.array(TENTHS, dtype=np.float16)
    decimals = [Decimal(str(value)) for value in values]
    tables = [values[:, None], pd.DataFrame({"x": values}), pa.table({"x": decimals})]
    tables.append(pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)}))
    for table in tables:
        model = make(name, [labels], accountant)
        with pytest.raises(ValueError, match="type float16, which differ from Python's floats"):
            model.fit(table, Y)
    with pytest.raises(ValueError, match="type float16, which differ from Python's floats"):
        dp_mode(values, categories=labels, accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def test_random_decimals_are_found_in_whatever_precision_they_were_stored():
    """Labels and cells were stored in any precision, and no label gets the rows of another."""
    rng = np.random.default_rng(0)
    types = (np.float64, np.float32, np.float16)
    for _ in range(20):
        # Three digits are different numbers in half precision.
        numbers = rng.choice(np.arange(1, 1000), size=5, replace=False) / 10.0 ** rng.integers(1, 5)
        for declared in types:
            labels = numbers.astype(declared).astype(np.float64).tolist()
            encoder = skdp.DPOneHotEncoder(categories=[labels], sparse_output=False)
            for stored in types:
                cells = numbers.astype(stored).astype(np.float64)[:, None]
                np.testing.assert_array_equal(encoder.fit_transform(cells), np.eye(5))


def test_a_third_is_found_in_doubles_that_were_floats():
    thirds = [1 / 3, 2 / 3]
    encoder = skdp.DPOneHotEncoder(categories=[thirds], sparse_output=False)
    cells = np.array(thirds, dtype=np.float32).astype(np.float64)[:, None]
    np.testing.assert_array_equal(encoder.fit_transform(cells), np.eye(2))


def test_whole_numbers_in_half_precision_are_exact_in_objects():
    """The shortest text of the float16 65504 is 6.55e+04."""
    numbers = np.arange(1, 65505, dtype=np.float64)
    numbers = np.unique(numbers.astype(np.float16)).tolist()
    cells = np.empty((len(numbers), 1), dtype=object)
    cells[:, 0] = [np.float16(number) for number in numbers]
    encoder = skdp.DPOneHotEncoder(categories=[numbers])
    assert encoder.fit_transform(cells).sum() == len(numbers)


def test_long_doubles_that_equal_no_double_are_refused():
    accountant = PrivacyAccountant(10.0, 0.1)
    labels = [np.longdouble(1) / 3, np.longdouble(1.0)]
    if float(labels[0]) == labels[0]:
        pytest.skip("long doubles are doubles on this platform")
    encoder = make("DPOneHotEncoder", [labels], accountant)
    with pytest.raises(ValueError, match="long doubles"):
        encoder.fit(np.ones((20, 1)))
    assert accountant.epsilon_spent == 0.0


def test_a_list_of_shorter_floats_does_not_change_whole_numbers():
    """16777217 is no float32: the labels must stay apart where the list needs no rounding."""
    table = pd.DataFrame({"x": 16777216.0 + NUMBERS})
    labels = np.array([16777216.0, 16777218.0], dtype=np.float32)
    encoder = skdp.DPOneHotEncoder(categories=[labels], sparse_output=False)
    encoded = encoder.fit_transform(table)
    np.testing.assert_array_equal(encoded, np.eye(3)[NUMBERS][:, [0, 2]])


def categorical_whole_numbers():
    """Yield a column of whole numbers whose categorical type lists them."""
    yield pd.DataFrame({"x": pd.Series(NUMBERS).astype("category")})
    yield pa.table({"x": pa.array(NUMBERS).dictionary_encode()})
    arrow = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.int64()))
    yield pd.DataFrame({"x": pd.Series(NUMBERS).astype("int64[pyarrow]").astype(arrow)})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fractions_are_no_categories_of_categorical_whole_numbers(name):
    accountant = PrivacyAccountant(1000.0, 0.1)
    for table in categorical_whole_numbers():
        estimator = make(name, [[0.5, 1.5, 2.5]], accountant)
        method = getattr(estimator, "fit_transform", estimator.fit)
        with pytest.raises(ValueError, match="int64 values by its type"):
            method(table, Y)
        assert accountant.epsilon_spent == 0.0
