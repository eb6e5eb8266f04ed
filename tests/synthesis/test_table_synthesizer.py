"""Rows of a table synthesizer: containers, kinds of values, partitions, persons and pickles."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skdp import ChunkedArray, PrivacyAccountant
from skdp.exceptions import BudgetExceededError, SeededNoiseWarning
from skdp.synthesis import DPTableSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")

N_ROWS = 3000
DATES = ("2020-01-01", "2020-12-31")
BOUNDS = {
    "age": (0, 100),
    "income": (0.0, 10.0),
    "visits": (0, 9),
    "day": DATES,
    "stay": (np.timedelta64(0, "D"), np.timedelta64(30, "D")),
}
CATEGORIES = {"color": ["red", "green", "blue"], "group": ["u", "v", "w"]}


def make_frame(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n_rows)
    visits = rng.integers(0, 5, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.where(rng.random(n_rows) < 0.3, 0.0, rng.exponential(2.0, n_rows)),
            "visits": pd.array(np.where(rng.random(n_rows) < 0.2, None, visits), dtype="Int64"),
            "color": rng.choice(["red", "green", "blue", "pink", None], n_rows),
            "group": pd.Categorical(rng.choice(["u", "v"], n_rows), categories=["u", "v", "x"]),
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 365, n_rows), unit="D"),
            "stay": pd.to_timedelta(rng.integers(1, 20 * 24, n_rows), unit="h"),
            "ratio": rng.random(n_rows).astype("float32"),
            "is_ill": rng.random(n_rows) < age / 100,
        }
    )


def synthesizer(**params):
    params = {"bounds": BOUNDS | {"ratio": (0, 1)}, "random_state": 0} | params
    return DPTableSynthesizer(5.0, categories=CATEGORIES, **params)


FRAME = make_frame()


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return synthesizer(target="is_ill", decimals={"day": 0, "income": 2}).fit(FRAME)


@pytest.fixture(scope="module")
def rows(fitted):
    return fitted.sample(4000, random_state=1)


def test_columns_and_types_are_those_of_the_table(rows):
    assert list(rows.columns) == list(FRAME.columns) and len(rows) == 4000
    for name in FRAME:
        if name != "group":
            assert rows[name].dtype == FRAME[name].dtype, name
    # The labels that a categorical type lists may come from the rows: declared ones replace them.
    assert set(rows["group"].cat.categories) <= set(CATEGORIES["group"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categorical_types_list_the_categories_of_the_fit(library):
    """Not those of the drawn rows, so the types of all samples are equal, and ordered ones too."""
    levels = ["low", "middle", "high"]
    frame = pd.DataFrame(
        {
            "level": pd.Categorical(levels * 100, categories=levels, ordered=True),
            "copy": pd.Categorical(levels * 100),
            "other": pd.Categorical(["a", "b", "c"] * 100),
        }
    )
    categories = {"level": levels, "other": ["a"]}
    if library == "polars":
        pl = pytest.importorskip("polars")
        enums = {"level": pl.Enum(levels), "copy": pl.Enum(levels), "other": pl.Enum(list("abc"))}
        frame = pl.from_pandas(frame.astype(str)).cast(enums)
    synth = DPTableSynthesizer(
        50.0, categories=categories, same_as={"copy": "level"}, random_state=0
    ).fit(frame)
    for n_rows in (1, 200):
        for name in ("level", "copy"):
            column = synth.sample(n_rows, random_state=0)[name]
            if library == "polars":
                assert column.dtype == pl.Enum(levels)
            else:
                assert column.cat.categories.tolist() == levels
                assert column.cat.ordered == (name == "level")
    assert set(synth.sample(200)["other"]) == {"a", "other"}


def test_values_are_in_bounds_or_lists(rows):
    assert rows["age"].between(0, 100).all() and rows["income"].between(0.0, 10.0).all()
    assert rows["visits"].dropna().between(0, 9).all()
    assert rows["day"].between(*map(pd.Timestamp, DATES)).all()
    assert rows["stay"].between(pd.Timedelta(0), pd.Timedelta(30, "D")).all()
    assert set(rows["color"].dropna()) <= {*CATEGORIES["color"], "other"}


def test_decimals_are_kept(rows):
    assert (rows["day"] == rows["day"].dt.normalize()).all()
    assert np.array_equal(rows["income"], np.round(rows["income"], 2))


def test_gaps_and_other_values_are_as_frequent_as_in_the_table(rows):
    for name, tolerance in [("visits", 0.03), ("color", 0.03)]:
        assert abs(rows[name].isna().mean() - FRAME[name].isna().mean()) < tolerance
    assert abs((rows["color"] == "other").mean() - (FRAME["color"] == "pink").mean()) < 0.03
    for name in ("age", "income", "group", "day", "stay", "ratio", "is_ill"):
        assert not rows[name].isna().any(), name


def test_atoms_stay_atoms(rows):
    assert abs((rows["income"] == 0.0).mean() - (FRAME["income"] == 0.0).mean()) < 0.03


def test_the_dependence_on_the_target_is_kept(rows):
    for frame in (FRAME, rows):
        is_old = frame["age"] > 60
        difference = frame["is_ill"][is_old].mean() - frame["is_ill"][~is_old].mean()
        assert 0.2 < difference < 0.5


def test_sampling_costs_nothing_and_follows_its_seed(fitted, rows):
    assert fitted.sample(4000, random_state=1).equals(rows)
    assert not fitted.sample(4000, random_state=2).equals(rows)
    assert len(fitted.sample(random_state=0)) == N_ROWS


def test_polars_and_arrow():
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(FRAME)
    rows = synthesizer().fit(frame).sample(500, random_state=1)
    assert type(rows) is pl.DataFrame and rows.columns == frame.columns
    assert [str(t) for t in rows.dtypes] == [str(t) for t in frame.dtypes]
    lazy = synthesizer().fit(frame.lazy()).sample(500, random_state=1)
    assert type(lazy) is pl.DataFrame and lazy.dtypes == rows.dtypes
    table = frame.to_arrow()
    arrow = synthesizer().fit(table).sample(500, random_state=1)
    assert arrow.schema.equals(table.schema)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, object])
def test_arrays(dtype):
    X = FRAME[["age", "is_ill"]].to_numpy().astype(dtype)
    rows = DPTableSynthesizer(1.0, bounds=(0, 100)).fit(X).sample(100)
    assert rows.dtype == X.dtype and rows.shape == (100, 2)


def test_lists():
    rows = DPTableSynthesizer(1.0, bounds=(0, 100)).fit([[1, 2.5], [3, 4.0]] * 100).sample(5)
    assert isinstance(rows, list) and len(rows) == 5 and len(rows[0]) == 2


def test_names_that_are_no_strings():
    frame = pd.DataFrame({2019: [1, 2] * 100, 2020: [0.5, 0.1] * 100})
    synth = DPTableSynthesizer(1.0, bounds={2019: (0, 5), 2020: (0, 1)}, target=2020).fit(frame)
    assert list(synth.sample(3).columns) == [2019, 2020]
    assert synth.marginal(2019).columns == (2019,)


def test_partitions_release_the_same(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    columns = ["age", "income", "color", "is_ill"]
    frame = FRAME[columns]
    bounds = {"age": (0, 100), "income": (0, 10)}
    params = {"bounds": bounds, "categories": {"color": CATEGORIES["color"]}, "random_state": 0}
    path = tmp_path / "table.parquet"
    frame.to_parquet(path, row_group_size=700)
    whole = DPTableSynthesizer(1.0, **params).fit(frame)
    rows = whole.sample(200, random_state=3)
    for table in (dd.from_pandas(frame, npartitions=3), Path(path)):
        other = DPTableSynthesizer(1.0, **params).fit(table)
        assert np.array_equal(other.scores_, whole.scores_)
        for one, two in zip(other.tables_, whole.tables_, strict=True):
            assert np.array_equal(one.counts, two.counts)
        drawn = other.sample(200, random_state=3)
        drawn = drawn if hasattr(drawn, "iloc") else drawn.to_pandas()
        for name in columns:
            assert drawn[name].isna().tolist() == rows[name].isna().tolist()
            assert drawn[name].dropna().tolist() == rows[name].dropna().tolist()


def test_workers_send_little_of_forty_columns(monkeypatch):
    """Tables of all pairs would be 22 MB; the release is that of a table in memory."""
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")
    compute = dask.compute
    sent = []

    def recorded(*values, **options):
        results = compute(*values, **options)
        sent.extend(len(pickle.dumps(result)) for result in results)
        return results

    labels = [str(i) for i in range(60)]
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.choice(labels, 6000) for j in range(39)}
    frame = pd.DataFrame(columns | {"x39": columns["x0"]})
    params = {"categories": dict.fromkeys(frame, labels), "random_state": 0}
    whole = DPTableSynthesizer(1000.0, **params).fit(frame)
    assert min(len(counts) for counts in whole.marginal("x0", "x39").groups) >= 60
    monkeypatch.setattr(dask, "compute", recorded)
    parts = DPTableSynthesizer(1000.0, **params).fit(dd.from_pandas(frame, npartitions=2))
    assert 0 < sum(sent) < 10_000_000
    assert np.array_equal(parts.scores_, whole.scores_)
    for one, two in zip(parts.tables_, whole.tables_, strict=True):
        assert np.array_equal(one.counts, two.counts)


def test_progress_follows_from_the_plan(capsys):
    printed = []
    for frame in (FRAME, FRAME.iloc[::-1].assign(age=0)):
        synthesizer(verbose=1).fit(frame)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    first, *stages = printed[0].splitlines()
    assert first.startswith("DPTableSynthesizer: ") and "; epsilon 5, delta" in first
    names = [line.partition(":")[0] for line in stages]
    assert names == [
        "counts of columns",
        "scores of pairs of columns",
        "tables of chosen columns",
        "model",
    ]
    spent = [float(line.split()[-6]) for line in stages]
    assert 0.0 < spent[0] < spent[1] < spent[2] == spent[3] == 5.0
    synthesizer().fit(FRAME)
    assert not capsys.readouterr().out
    with pytest.raises(ValueError, match="verbose must be"):
        synthesizer(verbose=-1).fit(FRAME)


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_callbacks_receive_the_epsilon_of_each_stage(delta):
    pytest.importorskip("sklearn.callback")

    class Recorder:
        def __init__(self):
            self.ends = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
            assert X is y is metadata is fitted_estimator is None

        def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
            assert X is y is fitted_estimator is None
            self.ends.append((context.task_name, metadata["epsilon"]))

    recorder = Recorder()
    synthesizer(delta=delta).set_callbacks(recorder).fit(FRAME)
    names, spent = zip(*recorder.ends, strict=True)
    assert len(names) == 5 and names[-2] == "model"
    assert list(spent) == sorted(spent) and spent[-1] == 5.0


def test_chunks_of_arrays():
    X = FRAME[["age", "income"]].to_numpy()
    chunked = ChunkedArray([X[:1000], X[1000:]])
    params = {"bounds": (0, 100), "random_state": 0}
    one, two = (DPTableSynthesizer(1.0, **params).fit(table) for table in (X, chunked))
    assert np.array_equal(one.sample(50, random_state=0), two.sample(50, random_state=0))


@pytest.mark.thorough
def test_pickles_sample_in_another_process(fitted, rows, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(fitted))
    assert path.stat().st_size < 1_000_000
    code = (
        "import pickle, sys; model = pickle.load(open(sys.argv[1], 'rb'));"
        "model.sample(4000, random_state=1).to_pickle(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", code, path, tmp_path / "rows.pkl"], check=True)
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "rows.pkl"), rows)


def arrays_in(value, seen):
    """Yield the arrays that an object holds, at any depth."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_in(item, seen)
    elif isinstance(value, list | tuple) or isinstance(value, np.ndarray):
        for item in value:
            yield from arrays_in(item, seen)
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("skdp"):
        yield from arrays_in(vars(value), seen)


def test_a_fitted_model_holds_no_exact_table(fitted):
    counts = {
        array.shape
        for array in arrays_in(vars(pickle.loads(pickle.dumps(fitted))), {})
        if array.dtype.kind in "iuf"
        and array.size > 3
        and array.sum() > N_ROWS / 2
        and np.array_equal(array, np.rint(array))
        # The groups of cells, codes of columns and grids are whole numbers that release nothing.
        and not (np.diff(np.unique(array)) == 1).all()
    }
    assert not counts


def test_a_person_counts_as_one_row():
    frame = pd.concat([FRAME.iloc[:500]] * 4)
    ids = np.tile(np.arange(500), 4)
    accountant = PrivacyAccountant(10.0, 1e-5, unit="person")
    synth = synthesizer(accountant=accountant).fit(frame, groups=ids)
    assert synth.n_units_ == 500 and len(synth.sample()) == 500
    assert abs(synth.marginal("age").counts.sum() - 500) < 1e-6
    assert "person" in synth.privacy_.unit


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_relations(delta):
    epsilon_of = {}
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(10.0, 1e-5, relation=relation)
        params = {"delta": delta, "accountant": accountant, "categories": CATEGORIES}
        synth = DPTableSynthesizer(1.0, bounds=BOUNDS | {"ratio": (0, 1)}, **params).fit(FRAME)
        assert accountant.epsilon_spent == 1.0 and len(accountant.charges) == 1
        epsilon_of[relation] = np.mean(synth.marginal("color").standard_error)
    assert epsilon_of["replace_one"] > 1.3 * epsilon_of["add_remove"]


def test_a_refused_charge_leaves_nothing():
    accountant = PrivacyAccountant(0.5, 1e-5)
    with pytest.raises(BudgetExceededError):
        synthesizer(accountant=accountant).fit(FRAME)
    assert accountant.epsilon_spent == 0.0


def test_found_bounds_and_categories():
    synth = DPTableSynthesizer(5.0, delta=1e-5, random_state=0).fit(FRAME)
    rows = synth.sample(1000, random_state=0)
    assert rows.dtypes.drop("group").equals(FRAME.dtypes.drop("group"))
    assert {"red", "green", "blue", "pink"} <= set(rows["color"].dropna())
    assert rows["age"].between(-50, 200).all()
    with pytest.raises(ValueError, match="delta > 0"):
        DPTableSynthesizer(5.0, delta=0.0).fit(FRAME)


def test_one_column():
    rows = DPTableSynthesizer(1.0, bounds=(0, 100)).fit(FRAME[["age"]]).sample(100)
    assert rows["age"].dtype == FRAME["age"].dtype


def test_more_budget_is_better():
    errors = []
    for epsilon in (0.2, 1000.0):
        synth = synthesizer().set_params(epsilon=epsilon).fit(FRAME)
        rows = synth.sample(N_ROWS, random_state=0)
        counts = [f["color"].value_counts() for f in (rows, FRAME.replace({"pink": "other"}))]
        errors.append(counts[0].sub(counts[1], fill_value=0).abs().sum())
    assert errors[1] < 0.02 * N_ROWS and errors[1] < errors[0]


def test_wide_tables_score_a_limited_number_of_pairs():
    X = np.random.default_rng(0).random((100, 66))
    synth = DPTableSynthesizer(1.0, bounds=(0, 1), target=65).fit(X)
    assert len(synth.pairs_) == 2016 and (0, 65) in synth.pairs_ and (0, 1) in synth.pairs_


def test_a_full_last_value_leaves_no_empty_group():
    """The cells after the upper bound are one group with the last value, from which rows come."""
    frame = pd.DataFrame({"days": [0] * 100 + [30] * 900, "is_ill": [True, False] * 500})
    synth = DPTableSynthesizer(1000.0, bounds={"days": (0, 30)}, random_state=0).fit(frame)
    assert (synth.sample(1000)["days"] == 30).mean() > 0.88


def test_small_epsilon_without_delta():
    synth = synthesizer(delta=0.0, bounds=BOUNDS | {"ratio": (0, 1)}).set_params(epsilon=0.01)
    assert len(synth.fit(FRAME).sample(10)) == 10


EXTREMES = {
    "large integers": (np.array([2**53, 2**53 + 8] * 50), (2**53, 2**53 + 10_000)),
    "short integers": (np.array([1, 2] * 50, dtype=np.int8), (-1e9, 1e9)),
    "large numbers": (np.array([-1e149, 1e149] * 50), (-1e149, 1e149)),
    "close bounds": (np.array([0.1, 0.2] * 50), (0.1, 0.1 + 1e-12)),
    "late dates": (np.array(["2250-01-01"] * 100, dtype="M8[ns]"), ("1700-01-01", "9999-12-31")),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("decimals", [None, {"x": 2}, {"x": -3}, {"x": 15}])
def test_extreme_bounds(case, decimals):
    values, bounds = EXTREMES[case]
    frame = pd.DataFrame({"x": values, "y": [True, False] * 50})
    if case == "close bounds" and decimals == {"x": -3}:
        accountant = PrivacyAccountant(2.0, 1e-5)
        synth = DPTableSynthesizer(bounds={"x": bounds}, decimals=decimals, accountant=accountant)
        with pytest.raises(ValueError, match="column 'x' can hold no value between"):
            synth.fit(frame)
        assert accountant.epsilon_spent == 0.0
    else:
        synth = DPTableSynthesizer(1.0, bounds={"x": bounds}, decimals=decimals).fit(frame)
        rows = synth.sample(50)
        assert rows.dtypes.equals(frame.dtypes) and not rows["x"].isna().any()
    found = DPTableSynthesizer(1.0, decimals=decimals, delta=1e-3).fit(frame)
    assert found.sample(50).dtypes.equals(frame.dtypes)


def short_columns():
    """Yield columns whose bounds, found or declared, are outside of the range of their types."""
    signed = np.array([100, 127] * 100)
    times = np.array(["2020-01-01T01:02:03", "2020-03-01T04:05:06"] * 100, dtype="M8[s]")
    for dtype in ("int8", "Int8", "int8[pyarrow]"):
        yield dtype, pd.Series(signed).astype(dtype), (0, 200)
    for dtype in ("uint8", "UInt8", "uint8[pyarrow]"):
        yield dtype, pd.Series(signed + 128).astype(dtype), (-50, 300)
    for dtype in ("float16", "float32", "Float32"):
        yield dtype, pd.Series(signed).astype(dtype), (-1e6, 1e39)
    for unit in ("s", "ms", "us", "ns"):
        for dtype in (f"M8[{unit}]", f"timestamp[{unit}][pyarrow]"):
            yield dtype, pd.Series(times).astype(dtype), ("1600-01-01", "2300-01-01")


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize(("name", "values", "bounds"), [*short_columns()])
@pytest.mark.parametrize("library", ["pandas", "pyarrow", "polars"])
def test_drawn_values_are_in_the_range_of_their_type(name, values, bounds, library):
    """Libraries wrap values outside of it around, make them missing or refuse the conversion."""
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": values, "y": [True, False] * 100})
    table = frame
    if library == "pyarrow":
        table = pa.Table.from_pandas(frame)
    elif library == "polars":
        pl = pytest.importorskip("polars")
        if name == "float16" or name.endswith("[s]") or name == "timestamp[s][pyarrow]":
            pytest.skip("polars has no such type")
        table = pl.from_arrow(pa.Table.from_pandas(frame))
    synth = DPTableSynthesizer(1.0, bounds={"x": bounds}, random_state=0).fit(table)
    drawn = synth.sample(200, random_state=0)["x"]
    # All libraries return the same values.
    expected = DPTableSynthesizer(1.0, bounds={"x": bounds}, random_state=0).fit(frame)
    expected = expected.sample(200, random_state=0)["x"]
    assert expected.dtype == values.dtype and not expected.isna().any()
    if library != "pandas":
        drawn = drawn.to_pandas()
    if "M8" in name or "timestamp" in name:
        assert list(drawn) == list(expected)
        return
    numbers = np.array([float(value) for value in expected])
    assert [float(value) for value in drawn] == numbers.tolist()
    assert np.isfinite(numbers).all()
    if "int" in name.lower():
        low, high = (0, 255) if name.lower().startswith("u") else (-128, 127)
        assert max(bounds[0], low) <= numbers.min() and numbers.max() <= high


def test_columns_of_python_objects_of_polars():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"x": pl.Series(["a", "b"] * 100, dtype=pl.Object), "y": [1.0, 2.0] * 100})
    synth = DPTableSynthesizer(20.0, categories={"x": ["a", "b"]}).fit(table)
    assert set(synth.sample(50)["x"]) == {"a", "b"}


def test_arrays_of_strings_do_not_tell_the_longest_value():
    X = np.array([["a", "b"], ["b", "c"]] * 200 + [["a", "x" * 50]])
    synth = DPTableSynthesizer(5.0, categories=[["a", "b"], ["b", "c"]]).fit(X)
    assert synth.sample(500).dtype.itemsize < 4 * 50


BOUNDS_BEYOND_TYPES = {
    "int8": (np.array([1, 2] * 50), (-1e9, 1e9)),
    "uint64": (np.array([1, 2] * 50), (0, 2.0**64)),
    "int64": (np.array([1, 2] * 50), (-(2.0**70), 2.0**70)),
    "float16": (np.array([1, 2] * 50), (-1e9, 1e9)),
    "date": (np.array(["2020-01-01"] * 100, dtype="M8[D]"), ("1700-01-01", "9999-12-31T12:00")),
    "timestamp": (np.array(["2020-01-01"] * 100, dtype="M8[ns]"), ("1600-01-01", "9999-12-31")),
    "decimal": (np.array([1, 2] * 50), (-1e9, 1e9)),
}


@pytest.mark.parametrize("library", ["pandas", "arrow in pandas", "polars", "arrow"])
@pytest.mark.parametrize("case", BOUNDS_BEYOND_TYPES)
def test_values_fit_into_the_type_of_their_column(case, library):
    """Bounds beyond the range of a type add no gaps, no wrapped numbers and no late errors."""
    values, bounds = BOUNDS_BEYOND_TYPES[case]
    pa = pytest.importorskip("pyarrow")
    array = pa.array(values)
    if case == "decimal":
        array = array.cast(pa.decimal128(22, 0)).cast(pa.decimal128(5, 2), safe=False)
    elif values.dtype.kind != "M":
        array = pa.array(values.astype(case))
    table = pa.table({"x": array, "y": [True, False] * 50})
    if library == "polars":
        pl = pytest.importorskip("polars")
        if case == "float16":
            pytest.skip("polars reads half precision as single precision")
        table = pl.from_arrow(table)
    elif library == "arrow in pandas":
        table = table.to_pandas(types_mapper=pd.ArrowDtype)
    elif library == "pandas":
        if case in ("date", "decimal"):
            pytest.skip("no type of pandas")
        nullable = {"int8": "Int8", "uint64": "UInt64", "int64": "Int64"}.get(case)
        table = table.to_pandas()
        if nullable:
            table["x"] = table["x"].astype(nullable)
    synth = DPTableSynthesizer(0.1, bounds={"x": bounds}, random_state=0).fit(table)
    rows = synth.sample(300, random_state=0)
    column = rows["x"]
    if library == "arrow":
        assert rows.schema == table.schema and column.null_count == 0
        column = column.to_pandas()
    elif library == "polars":
        assert rows.schema == table.schema and column.null_count() == 0
    else:
        assert rows.dtypes.equals(table.dtypes) and not column.isna().any()
    if case in ("int8", "int64", "float16", "decimal"):
        # Wrapped numbers would be far from uniform draws.
        assert min(column) < 0 < max(column) and len(set(column)) > 20
    elif case == "uint64":
        assert max(column) > 2**63


@pytest.mark.parametrize(
    ("bounds", "decimals", "values"),
    [((0.5, 10.2), None, range(1, 11)), ((0.5, 1.5), None, [1]), ((0, 1500), {"x": -3}, [0, 1000])],
)
def test_values_on_a_grid_are_within_the_bounds(bounds, decimals, values):
    frame = pd.DataFrame({"x": np.arange(100) * 20, "y": [True, False] * 50})
    synth = DPTableSynthesizer(1.0, bounds={"x": bounds}, decimals=decimals).fit(frame)
    assert set(synth.sample(500)["x"]) <= set(values)


@pytest.mark.parametrize(
    ("dtype", "bounds"), [("int64", (0.2, 0.8)), ("int8", (500, 600)), ("float16", (1e6, 2e6))]
)
def test_bounds_without_a_value_of_the_type_are_refused(dtype, bounds):
    accountant = PrivacyAccountant(2.0, 1e-5)
    frame = pd.DataFrame({"x": np.ones(100, dtype=dtype)})
    synth = DPTableSynthesizer(bounds={"x": bounds}, accountant=accountant)
    with pytest.raises(ValueError, match="can hold no value between"):
        synth.fit(frame)
    assert accountant.epsilon_spent == 0.0


# The date that tables use for "no end", and the first one.
ENDS = {
    "last": np.array(["2024-01-01", "9999-12-31", "2023-05-05"], dtype="M8[D]"),
    "first": np.array(["2024-01-01", "0001-01-01", "2023-05-05"], dtype="M8[D]"),
}


def tables_of_dates(dates):
    """Yield a column of dates in several libraries and types, with and without a time zone."""
    days = pa.table({"x": pa.array(dates.tolist(), pa.date32())})
    instants = days.cast(pa.schema([("x", pa.timestamp("us"))]))
    in_zone = days.cast(pa.schema([("x", pa.timestamp("us", "UTC"))]))
    yield from (days, instants, in_zone)
    yield from (table.to_pandas(types_mapper=pd.ArrowDtype) for table in (days, instants, in_zone))
    yield from (pl.from_arrow(table) for table in (days, instants, in_zone))
    yield pd.DataFrame({"x": dates.astype("M8[s]")})


def as_python_dates(table):
    """Return the values of a table as Python's dates, which raises an error beyond year 9999."""
    if isinstance(table, pa.Table):
        return table["x"].to_pylist()
    if isinstance(table, pl.DataFrame):
        return table["x"].to_list()
    return [pd.Timestamp(date).to_pydatetime() for date in table["x"].tolist()]


@pytest.mark.parametrize("end", ENDS)
def test_drawn_dates_are_dates_of_python(end):
    """Found bounds are wider than the dates, and no library shows a date of year 10000."""
    dates = ENDS[end][np.arange(600) % 3]
    for table in tables_of_dates(dates):
        rows = DPTableSynthesizer(50.0, random_state=0).fit(table).sample(300, random_state=0)
        years = {date.year for date in as_python_dates(rows)}
        assert years <= {*range(1, 10_000)}
        repr(rows)


def test_declared_dates_of_numpy_may_be_later():
    dates = np.array(["12000-01-01", "15000-01-01"] * 100, dtype="M8[s]")
    table = pd.DataFrame({"x": dates})
    bounds = {"x": (np.datetime64("11000-01-01"), np.datetime64("16000-01-01"))}
    rows = DPTableSynthesizer(50.0, bounds=bounds, random_state=0).fit(table).sample(20)
    assert (rows["x"].to_numpy() > np.datetime64("11000-01-01")).all()


def columns_of_no_library():
    """Yield tables whose library does not convert values to the type of their column."""
    numbers = pa.array([1, 2, 3] * 100)
    runs = pc.run_end_encode(numbers)
    yield pa.table({"x": runs})
    yield pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([runs])))})
    yield pd.DataFrame({"x": pd.period_range("2020-01", periods=300, freq="M")})


def test_a_type_without_samples_is_refused_before_the_charge():
    for table in columns_of_no_library():
        accountant = PrivacyAccountant(1.0, 1e-5)
        with pytest.raises(ValueError, match="column 'x'"):
            DPTableSynthesizer(accountant=accountant).fit(table)
        assert accountant.epsilon_spent == 0.0


def columns_without_frequent_values():
    """Yield a name and a table of each type whose categories can be found; "x" has few of each."""
    numbers = np.arange(40) % 8
    values = {
        "integers": numbers,
        "floats": numbers / 4,
        "short integers": numbers.astype(np.int8),
        "booleans": numbers > 3,
        "text": numbers.astype(str),
    }
    for name, column in values.items():
        frame = pd.DataFrame({"x": column})
        arrow = pa.table({"x": pa.array(column.tolist())})
        yield f"pandas {name}", frame
        yield f"nullable {name}", frame.convert_dtypes()
        yield f"listed {name}", frame.astype("category")
        yield f"Arrow in pandas {name}", arrow.to_pandas(types_mapper=pd.ArrowDtype)
        yield f"polars {name}", pl.from_arrow(arrow)
        yield f"Arrow {name}", arrow
        if name != "booleans":
            encoded = pa.table({"x": arrow["x"].combine_chunks().dictionary_encode()})
            yield f"dictionary {name}", encoded
            yield f"dictionary in pandas {name}", encoded.to_pandas(types_mapper=pd.ArrowDtype)
    periods = pd.DataFrame({"x": pd.period_range("2020", periods=40)})
    yield "periods", pa.Table.from_pandas(periods)


@pytest.mark.parametrize(("name", "table"), list(columns_without_frequent_values()))
def test_rows_are_drawn_although_no_category_was_found(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPTableSynthesizer(1e-3, categories="auto", random_state=0).fit(table)
    rows = model.sample(30, random_state=0)
    assert len(rows) == 30
    if not name.startswith("listed"):
        types = [
            getattr(t, "dtypes", None) if hasattr(t, "dtypes") else t.schema for t in (rows, table)
        ]
        assert list(types[0]) == list(types[1])


@pytest.mark.parametrize(("labels", "cells"), [(["a"], [1, 2]), ([1], ["a", "b"]), ([1.5], ["a"])])
def test_declared_categories_of_another_type_are_named(labels, cells):
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        accountant = PrivacyAccountant(1.0, 1e-5)
        model = DPTableSynthesizer(categories={"x": labels}, accountant=accountant)
        with pytest.raises(ValueError, match="declare categories of the column's"):
            model.fit(make({"x": cells * 20}))
        assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("unit", ["row", "person", "group"])
def test_a_report_names_the_units_and_the_guarantee(unit):
    config = {"max_rows": 2} if unit == "group" else {}
    # Rounding to the nearest number of six digits would print less than the cost.
    epsilon = 1.23456149
    accountant = PrivacyAccountant(9.0, 1e-4, unit=unit, **config)
    frame = pd.DataFrame({"a": [True, False] * 30, "b": [True, True, False] * 20})
    params = {"groups": np.arange(60) // 2} if unit == "person" else {}
    fitted = DPTableSynthesizer(epsilon, delta=0.0, accountant=accountant, random_state=0)
    summary = dict(fitted.fit(frame, **params).report().summary)
    name, number = ("persons", 30) if unit == "person" else ("rows", 60)
    assert summary[name] == f"{number}, which is public"
    assert "(1.23457, 0)" in summary["guarantee"]
