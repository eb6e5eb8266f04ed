"""Cells of which no category can be found: refused before the charge, with a remedy that works."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdp
from skdp import ChunkedArray, PrivacyAccountant
from skdp._data._labels import canonical_label, distinct_cells, is_missing, kind_without_form
from skdp.stats import dp_crosstab, dp_mode

N_ROWS = 600
CODES = np.random.default_rng(0).integers(0, 3, N_ROWS)
Y = CODES == 1
IDS = [uuid.UUID(int=k) for k in range(3)]


def cells_of(values):
    """Return an array of objects, which may be tuples or lists."""
    cells = np.empty(N_ROWS, dtype=object)
    cells[:] = [values[k] for k in CODES]
    return cells


# Columns by the kind of their cells, as pandas has them.
REFUSED = {
    "intervals": pd.Series(pd.cut(CODES, [-1, 0, 1, 2])),
    "intervals of their own type": pd.Series(
        pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3])[CODES]
    ),
    "periods": pd.Series(pd.PeriodIndex(["2024-01", "2024-02", "2024-03"], freq="M")[CODES]),
    "UUIDs": pd.Series(cells_of(IDS)),
    "dates": pd.Series(cells_of([datetime.date(2024, 3, day) for day in (1, 2, 3)])),
    "times": pd.Series(cells_of([datetime.time(hour) for hour in (1, 2, 3)])),
    "tuples": pd.Series(cells_of([(0, 1), (1, 2), (2, 3)])),
    "lists": pd.Series(cells_of([[0], [1], [2]])),
    "bytes": pd.Series(cells_of([b"0", b"1", b"2"])),
    "large numbers": pd.Series(2**53 + 1 + 2 * CODES),
    "large numbers of objects": pd.Series(cells_of([2**60, 2**70, 10**400]), dtype=object),
    "large floats": pd.Series(1e18 + 1e6 * CODES),
    "infinite objects": pd.Series(cells_of([np.inf, 0.0, 1.0])),
}
# What dates are taken for where a column of their type is not declared.
DATES = {
    "days": pd.Series(np.datetime64("2024-03-01", "us") + CODES.astype("m8[D]")),
    "durations": pd.Series(CODES.astype("m8[D]").astype("m8[us]")),
}
ACCEPTED = {
    "text": pd.Series(CODES.astype(str)),
    "numbers": pd.Series(CODES),
    "numbers of objects": pd.Series(CODES.astype(object)),
    "decimals": pd.Series(cells_of([Decimal("0.1"), Decimal("0.2"), Decimal("0.3")])),
    "fractions": pd.Series(cells_of([Fraction(1, 3), Fraction(2, 3), Fraction(1, 7)])),
    "decimals that are floats": pd.Series(cells_of([Decimal(0), Decimal("0.5"), Decimal(2)])),
    "booleans": pd.Series(cells_of([True, False, True])),
    "almost large numbers": pd.Series(2**53 - 1 - CODES),
    "text with gaps": pd.Series(cells_of(["a", None, "c"])),
    "numbers with gaps": pd.Series(cells_of([1.5, np.nan, pd.NA])),
}

ESTIMATORS = {
    "DPOneHotEncoder": {},
    "DPOneHotEncoder with counts": {"min_frequency": 5},
    "DPTargetEncoder": {},
    "DPSimpleImputer": {"strategy": "most_frequent"},
    "DPTableVectorizer": {},
    "DPTableVectorizer scaled": {"numeric": "scaled"},
    "DPAdditiveClassifier": {},
    "DPHistogramNB": {},
    "DPDecisionTreeClassifier": {},
    "DPRandomForestClassifier": {"n_estimators": 3},
}


def make(name, accountant=None, categories="auto"):
    kind, params = getattr(skdp, name.split()[0]), dict(ESTIMATORS[name])
    params |= {"delta": 1e-6, "accountant": accountant, "random_state": 0}
    return kind(2.0, categories=categories, **params)


def per_column(name):
    """Return `categories` that make a column of any type one of labels to be found."""
    takes_all = ("DPOneHotEncoder", "DPTargetEncoder", "DPSimpleImputer")
    return "auto" if name.split()[0] in takes_all else ["auto"]


def containers(column):
    """Return a column as tables of many kinds, where the container can hold its cells."""
    objects = np.empty((len(column), 1), dtype=object)
    objects[:, 0] = column.astype(object).tolist()
    tables = {
        "frame": pd.DataFrame({"x": column}),
        "frame of objects": pd.DataFrame(objects, columns=["x"], dtype=object),
        "objects": objects,
    }
    if column.dtype.kind in "iufM":
        tables["array"] = column.to_numpy()[:, None]
    if column.dtype.kind in "iuf":
        tables["parts"] = ChunkedArray([tables["array"][:200], tables["array"][200:]])
    for name, convert in (("polars", pl.Series), ("arrow", pa.array)):
        try:
            values = convert(objects[:, 0].tolist())
        except Exception:
            continue
        if str(getattr(values, "dtype", "")) == "Float64":
            continue  # Polars makes doubles of fractions.
        tables[name] = pl.DataFrame({"x": values}) if name == "polars" else pa.table({"x": values})
    return tables


def in_text(table):
    """Turn the values of a table's only column into text, as the message says."""
    if isinstance(table, pd.DataFrame):
        return table.assign(x=table["x"].astype(str))
    if isinstance(table, np.ndarray):
        return np.array([[str(value)] for value in table[:, 0]], dtype=object)
    return pd.DataFrame({"x": [str(value) for value in table["x"].to_pylist()]}, dtype=object)


def n_found(fitted):
    """Return how many categories were found in the first column."""
    if hasattr(fitted, "categories_"):
        return len(fitted.categories_[0])
    if hasattr(fitted, "counts_") and isinstance(fitted.counts_, list):
        return len(fitted.counts_[0])
    if hasattr(fitted, "bin_edges_"):
        return len(fitted.bin_edges_[0])
    if hasattr(fitted, "shape_functions_"):
        return len(fitted.shape_functions_[0].edges[0])
    return 3


@pytest.mark.quick_cases(every=17)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", [*REFUSED, *DATES])
def test_cells_without_a_form_cost_nothing_and_are_found_as_text(name, kind):
    accountant, column = PrivacyAccountant(1e4, 0.1), (REFUSED | DATES)[kind]
    for form, table in containers(column).items():
        estimator = make(name, accountant, per_column(name))
        with pytest.raises(
            ValueError, match=r"column ('x'|0) ((holds|contains) .* (in)?to text|contains inf)"
        ):
            estimator.fit(table, Y)
        assert accountant.epsilon_spent == 0.0, form
    for form in ("frame", "objects"):
        table = in_text(containers(column)[form])
        fitted = make(name, None, per_column(name)).fit(table, Y)
        assert n_found(fitted) == column.astype(object).map(str).nunique(), form


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ACCEPTED)
def test_cells_with_a_form_are_found(name, kind):
    for form, table in containers(ACCEPTED[kind]).items():
        fitted = make(name, None, per_column(name)).fit(table, Y)
        distinct = {value for value in ACCEPTED[kind].tolist() if not pd.isna(value)}
        assert n_found(fitted) in (len(distinct), 3), form


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTableVectorizer", "DPAdditiveClassifier"])
def test_frames_of_dask_refuse_them_likewise(name):
    dd, accountant = pytest.importorskip("dask.dataframe"), PrivacyAccountant(1e4, 0.1)
    table = pd.DataFrame({"job": np.array(["a", "b", "c"])[CODES], "key": REFUSED["large numbers"]})
    lazy = dd.from_pandas(table, npartitions=3, sort=False)
    categories = "auto" if name == "DPOneHotEncoder" else {"key": "auto"}
    with pytest.raises(ValueError, match=r"^column 'key' (holds|contains) .* (in)?to text"):
        make(name, accountant, categories).fit(lazy, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_cell_is_judged_by_itself(name):
    cells = cells_of(["a", "b", None])
    make(name, None, per_column(name)).fit(cells[:, None], Y)
    accountant = PrivacyAccountant(1e4, 0.1)
    for odd in (pd.Interval(0, 1), (1, 2), 2**53, -(2.0**53), IDS[0], b"a", [1]):
        table = cells.copy()
        table[-1] = odd
        with pytest.raises(ValueError, match="column 0 holds"):
            make(name, accountant, per_column(name)).fit(table[:, None], Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("odd", [pd.Interval(0, 1), 2**53, b"a", datetime.date(2024, 3, 1), [1]])
def test_samples_after_a_fit_are_refused_likewise(name, odd):
    if name == "DPSimpleImputer":
        pytest.skip("it returns present values unchanged and compares them with nothing")
    for column in (cells_of(["a", "b", None]), CODES.astype(object)):
        fitted = make(name, None, per_column(name)).fit(column[:, None], Y)
        answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
        answer(column[:5, None])
        samples = np.empty((3, 1), dtype=object)
        samples[:, 0] = [column[0], odd, None]
        with pytest.raises(ValueError, match="column 0 holds"):
            answer(samples)


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTableVectorizer"])
def test_errors_name_all_columns(name):
    accountant = PrivacyAccountant(10.0, 0.1)
    frame = pd.DataFrame({"age": REFUSED["intervals"], "job": "care", "key": REFUSED["UUIDs"]})
    with pytest.raises(ValueError, match=r"(?s)'age'.*'key'") as refusal:
        make(name, accountant).fit(frame)
    assert "'job'" not in str(refusal.value) and accountant.epsilon_spent == 0.0


def test_pipelines_refuse_them_before_the_charge():
    accountant = PrivacyAccountant(10.0, 0.1)
    frame = pd.DataFrame({"age": REFUSED["intervals"], "size": CODES})
    model = skdp.tabular_pipeline("classifier", epsilon=1.0, delta=1e-6, accountant=accountant)
    with pytest.raises(ValueError, match="'age' holds values of type Interval"):
        model.fit(frame, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("kind", ["dates", "UUIDs", "intervals"])
def test_auto_is_not_advised_where_it_finds_nothing(kind):
    frame = pd.DataFrame({"x": REFUSED[kind].astype(object)})
    if kind == "dates":
        frame["x"] = REFUSED["UUIDs"]
    with pytest.raises(ValueError, match="to text") as refusal:
        skdp.DPAdditiveClassifier(1.0, delta=1e-6, bounds={"x": (0, 1)}).fit(frame, Y)
    assert "auto" not in str(refusal.value)


def test_declared_categories_refuse_cells_that_are_no_labels():
    accountant = PrivacyAccountant(10.0, 0.1)
    cells = cells_of(["a", "b", ["c"]])
    with pytest.raises(ValueError, match="values of type list"):
        dp_mode(cells, categories=["a", "b"], accountant=accountant)
    with pytest.raises(ValueError, match="values of type list"):
        dp_crosstab(cells, CODES, categories=(["a", "b"], [0, 1]), accountant=accountant)
    with pytest.raises(ValueError, match="values of type list"):
        make("DPTableVectorizer", accountant, [["a", "b"]]).fit(cells[:, None])
    assert accountant.epsilon_spent == 0.0


class Caseless(str):
    """Text that is equal to the same text in other letters."""

    def __eq__(self, other):
        return self.lower() == str(other).lower()

    def __hash__(self):
        return hash(self.lower())


# Cells that are read together with others of their column, and cells that are read on their own.
CELLS_OF_PLAIN_TYPES = ["a", "", None, np.nan, True, 3, 0.5, 2**53 - 1, 1.0]
OTHER_CELLS = [2**53, -(2.0**53), np.inf, b"a", (1, 2), IDS[0], 1j]
OTHER_CELLS += [Decimal("0.1"), Decimal(3), np.float64(2.0), np.str_("b"), pd.NA, Caseless("A")]


@pytest.mark.parametrize("n_others", [0, 1, 3, len(OTHER_CELLS)])
def test_the_kind_of_a_column_is_that_of_its_first_cell_without_a_label(n_others):
    rng = np.random.default_rng(n_others)
    n_refused = 0
    for _ in range(100):
        among = CELLS_OF_PLAIN_TYPES.copy()
        among += [OTHER_CELLS[i] for i in rng.permutation(len(OTHER_CELLS))[:n_others]]
        values = np.empty(30, dtype=object)
        values[:] = [among[i] for i in rng.integers(0, len(among), 30)]
        refused = [x for x in values if canonical_label(x) is None and not is_missing(x)]
        expected = None
        if refused:
            n_refused += 1
            first = np.empty(1, dtype=object)
            first[0] = refused[0]
            expected = kind_without_form(first)
            assert expected is not None
        assert kind_without_form(values) == expected
    assert (n_refused > 0) == (n_others > 0)


@pytest.mark.parametrize("n_labels", [2, 256, 257, 3000])
def test_distinct_cells_and_their_indices_are_the_cells(n_labels):
    labels = [f"label {i}" for i in range(n_labels - 2)] + [1, None]
    values = np.empty(5 * n_labels, dtype=object)
    values[:] = [labels[i % n_labels] for i in range(len(values))]
    # Equal cells of built-in types are one label.
    values[[i for i, x in enumerate(values) if x == 1][1:3]] = True, 1.0
    distinct, inverse = distinct_cells(values)
    assert len(distinct) == n_labels
    assert [distinct[i] for i in inverse] == values.tolist()


@pytest.mark.parametrize("cells", [[], ["a"], [np.nan], [np.nan, "a", np.nan]])
def test_few_cells_have_their_distinct_cells(cells):
    distinct, inverse = distinct_cells(np.array(cells, dtype=object))
    # A missing value is one object here, which is equal to itself in a list.
    assert [distinct[i] for i in inverse] == cells


@pytest.mark.parametrize("cell", [Caseless("LABEL 0"), np.str_("label 0"), Decimal(1)])
def test_cells_of_types_with_their_own_comparison_are_not_counted_with_equal_ones(cell):
    values = np.empty(3, dtype=object)
    values[:] = ["label 0", 1, cell]
    assert distinct_cells(values) == (None, None)
