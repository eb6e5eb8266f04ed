"""What a column is by its container and by what is declared; missing and other values."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp import ChunkedArray, DPAdditiveClassifier, DPAdditiveRegressor
from skdp.stats._column_cells import (
    Term,
    binary_edges,
    cell_reader,
    cells_of,
    integer_edges,
    with_atoms,
    with_finer_bin_at_zero,
)
from tests._private import edge_names, one_hot_csr, read_kinds

N = 3000
START = datetime.datetime(2020, 1, 1)


def make_frame(seed=0):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 1000, size=N)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(0, 10, size=N),
            "color": rng.choice(["red", "green", "blue"], size=N),
            "day": pd.Series([START + datetime.timedelta(int(day)) for day in days]),
            "new": rng.choice([True, False], size=N),
        }
    )
    y = frame["size"] + 3 * (frame["color"] == "red") + days / 300 > 8
    frame.loc[rng.choice(N, 300, replace=False), "size"] = np.nan
    return frame, y.to_numpy().astype(int)


def exact(**params):
    return DPAdditiveClassifier(epsilon=1e4, interactions=0, **params)


def kinds(model):
    return [shape.kinds[0] for shape in model.shape_functions_]


CONTAINERS = {
    "pandas": lambda frame: frame,
    "pandas category": lambda frame: frame.astype({"color": "category"}),
    "pandas nullable": lambda frame: frame.convert_dtypes(),
    "pandas zoned": lambda frame: frame.assign(day=frame["day"].dt.tz_localize("UTC")),
    "polars": pl.from_pandas,
    "polars categorical": lambda f: pl.from_pandas(f).with_columns(
        pl.col("color").cast(pl.Categorical)
    ),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame),
}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_raw_frame_is_fitted_without_a_word(container):
    frame, y = make_frame()
    X = CONTAINERS[container](frame)
    model = exact().fit(X, y)
    assert kinds(model) == ["number", "label", "date", "label"]
    assert model.score(X, y) > 0.85
    colors, news = model.shape_functions_[1].edges[0], model.shape_functions_[3].edges[0]
    assert sorted(colors) == ["blue", "green", "red"] and list(news) == [False, True]
    assert "bounds" not in model.privacy_.public


def test_declared_values_are_not_searched_for():
    frame, y = make_frame()
    bounds = {"size": (0, 10), "day": (START, START + datetime.timedelta(1000))}
    model = exact(bounds=bounds, categories={"color": ["red", "blue"]}).fit(frame, y)
    assert list(model.shape_functions_[1].edges[0]) == ["red", "blue"]
    edges = model.shape_functions_[2].edges[0]
    days = (START - datetime.datetime(1970, 1, 1)).days
    assert (edges[0], edges[-1]) == (days, days + 1000)
    # Two categories, the others, and what is missing.
    counts = model.shape_functions_[1].counts
    truth = [sum(frame["color"] == c) for c in ("red", "blue", "green")]
    np.testing.assert_allclose(counts, [*truth, 0], atol=1.0)


def test_missing_values_have_a_cell():
    frame, y = make_frame()
    shape = exact(bounds={"size": (0, 10)}).fit(frame, y).shape_functions_[0]
    assert len(shape.values) == len(shape.edges[0])
    assert shape.counts[-1] == pytest.approx(300, abs=1.0)
    numbers = frame["size"].to_numpy()
    found = np.histogram(numbers[~np.isnan(numbers)], bins=shape.edges[0])[0]
    np.testing.assert_allclose(shape.counts[:-1], found, atol=1.0)


def test_a_label_that_is_missing_is_not_another():
    X = np.array([["a"], ["b"], [None], [np.nan], ["c"]] * 200, dtype=object)
    model = exact(categories={0: ["a", "b"]}).fit(X, np.arange(1000) % 2)
    np.testing.assert_allclose(model.shape_functions_[0].counts, [200, 200, 200, 400], atol=1.0)
    declared = exact(categories={0: ["a", None]}).fit(X, np.arange(1000) % 2)
    np.testing.assert_allclose(declared.shape_functions_[0].counts, [200, 200, 400, 200], atol=1)


def test_after_a_frame_rows_of_any_kind_are_read_by_position():
    frame, y = make_frame()
    model = exact().fit(frame, y)
    expected = model.decision_function(frame)
    cells = frame.astype(object).to_numpy()
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_array_equal(model.decision_function(cells), expected)
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_array_equal(model.decision_function(cells[:20].tolist()), expected[:20])
    np.testing.assert_array_equal(model.decision_function(frame.astype({"day": "M8[s]"})), expected)


def test_after_a_frame_predictions_have_the_kinds_of_the_fit():
    """Of labels that look like numbers, and numbers among objects, by position."""
    rng = np.random.default_rng(0)
    codes, sizes = rng.integers(0, 3, size=1000), rng.uniform(0, 10, size=1000)
    frame = pd.DataFrame({"code": pd.Series(codes).astype("category"), "size": sizes})
    y = np.where(codes == 1, 9.0, 0.0) + sizes / 10
    params = {"bounds": {"size": (0, 10)}, "categories": {"code": [0, 1, 2]}}
    models = (exact(**params), DPAdditiveRegressor(1e4, target_bounds=(0, 10), **params))
    for model, target in zip(models, (y > 5, y), strict=True):
        expected = model.fit(frame, target).predict(frame)
        assert kinds(model) == ["label", "number"] and len(set(expected)) > 1
        array = np.column_stack([codes, sizes])
        for X in (
            array,
            array.astype(object),
            array.tolist(),
            list(zip(codes, sizes, strict=True)),
        ):
            with pytest.warns(UserWarning, match="valid feature names"):
                np.testing.assert_array_equal(model.predict(X), expected)
        odd = array.astype(object)
        odd[0, 1] = "red"
        with pytest.raises(ValueError, match="column 1"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict(odd)


def test_a_duration_is_no_date():
    hours = np.arange(400) % 48
    frame = pd.DataFrame({"wait": pd.to_timedelta(hours, "h")})
    limits = {"wait": (datetime.timedelta(0), datetime.timedelta(2))}
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = exact(bounds=limits).fit(X, hours > 24)
        assert kinds(model) == ["duration"] and model.score(X, hours > 24) > 0.95
        assert list(model.shape_functions_[0].edges[0][[0, -1]]) == [0.0, 2.0]


def test_values_never_seen_are_others_and_values_outside_are_clipped():
    frame, y = make_frame()
    model = exact(bounds={"size": (0, 10)}).fit(frame, y)
    odd = frame.iloc[:4].copy()
    odd["color"], odd["size"] = "mauve", [1e9, 10.0, -1e9, 0.0]
    parts = model.explain(odd)
    np.testing.assert_array_equal(parts[:, 1], model.shape_functions_[1].values[-2])
    assert parts[0, 0] == parts[1, 0] and parts[2, 0] == parts[3, 0]


def test_objects_are_numbers_unless_declared():
    X = np.array([[0.5], [1], [True], [None]] * 50, dtype=object)
    assert kinds(exact(bounds=(0, 1)).fit(X, np.arange(200) % 2)) == ["number"]
    X[7, 0] = "red"
    for model in (exact(), DPAdditiveRegressor(target_bounds=(0, 1))):
        with pytest.raises(ValueError, match="categories"):
            model.fit(X, np.arange(200) % 2)
        assert not hasattr(model, "privacy_")
    assert kinds(exact(categories={0: "auto"}).fit(X, np.arange(200) % 2)) == ["label"]


def test_a_pandas_category_declares_no_list():
    # Nobody has the last one, and a single row has the first.
    colors = pd.Categorical(["rare"] + ["red"] * 499, categories=["rare", "red", "unused"])
    X = pd.DataFrame({"color": colors})
    model = DPAdditiveClassifier(epsilon=1.0, delta=1e-9).fit(X, np.arange(500) % 2)
    assert list(model.shape_functions_[0].edges[0]) in (["red"], [])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"bounds": {"color": (0, 1)}}, "categorical, by its type.*pd.to_datetime"),
        ({"bounds": {"size": (1, 0)}}, "low"),
        ({"bounds": {"day": ("x", "y")}}, "dates"),
        ({"bounds": {"nothing": (0, 1)}}, "no column"),
        ({"categories": {"color": []}}, "empty"),
        ({"categories": "red"}, "categories"),
        ({"n_bins": 1}, "n_bins"),
        ({"monotonic_cst": {"color": 1}}, "categorical"),
        ({"monotonic_cst": {"size": 2}}, "monotonic_cst"),
        ({"verbose": -1}, "verbose"),
        ({"class_weight": "even"}, "public"),
    ],
)
def test_bad_parameters_are_refused(params, words):
    frame, y = make_frame()
    # Before pandas 3 words are in a column of objects, which bounds would make numbers.
    frame["color"] = frame["color"].astype("string")
    with pytest.raises(ValueError, match=words):
        DPAdditiveClassifier(**params).fit(frame, y)


def test_chunks_give_what_one_array_gives():
    X = np.random.default_rng(5).uniform(-1, 1, size=(5000, 3))
    X[::7, 1] = np.nan
    y = (X[:, 0] > 0).astype(int)
    model = DPAdditiveClassifier(bounds=(-1, 1), random_state=0)
    whole = model.fit(X[:, ::2], y).decision_function(X[:, ::2])
    chunks = ChunkedArray([X[:1000, ::2], X[1000:, ::2]])
    np.testing.assert_array_equal(model.fit(chunks, y).decision_function(X[:, ::2]), whole)


def cells_by_numpy(values, edges):
    cells = np.searchsorted(edges, values, side="right") - 1
    cells[values == edges[-1]] -= 1
    return np.where(np.isnan(values), len(edges) - 1, np.clip(cells, 0, len(edges) - 2))


@pytest.mark.parametrize("container", ["array", "frame", "chunks"])
@pytest.mark.parametrize("order", ["012", "201", "10", "00 1", "01 12 2", "2 22 0", "3", "30 1 3"])
def test_cells_of_all_columns_are_those_of_each_by_itself(order, container):
    rng = np.random.default_rng(0)
    edges = [np.linspace(-1, 1, 9), np.array([-2.0, 0.5, 0.75, 3.0]), np.array([0.0, 1.0])]
    X = rng.normal(size=(500, 3))
    X[:40, 1], X[20:50, 2], X[100, :2], X[200:205, 0] = np.nan, np.nan, (1e300, 3.0), edges[0][::2]
    labels, known = rng.choice(["a", "b", "c"], size=500), np.array(["a", "b"])
    by_column = [*map(cells_by_numpy, X.T, edges), np.where(labels == "c", 2, labels == "b")]
    sizes, kinds = [*map(len, edges), 4], ["number"] * 3 + ["label"]
    frame = pd.DataFrame(X).add_prefix("x").assign(label=labels)
    if container == "array" or (container == "chunks" and "3" not in order):
        frame = X if container == "array" else ChunkedArray([X[:90], X[90:]])
    if container != "frame" and "3" in order:
        frame = np.column_stack([X.astype(object), labels.astype(object)])
    terms, expected = [], []
    for word in order.split() if " " in order else order:
        places = tuple(map(int, word))
        own = {"kinds": tuple(kinds[j] for j in places), "features": places}
        terms.append(Term(edges=tuple([*edges, known][j] for j in places), **own))
        shape = [sizes[j] for j in places]
        expected.append(np.ravel_multi_index([by_column[j] for j in places], shape))
    table = read_kinds(DPAdditiveClassifier(), frame)[0]
    found = cell_reader(terms)(table, slice(30, 400))
    for own, cells in zip(expected, found, strict=True):
        np.testing.assert_array_equal(cells, own[30:400])


def test_blocks_of_cells_are_short_and_what_they_share_is_not_written_to():
    table = read_kinds(DPAdditiveClassifier(), np.zeros((20_000, 1)))[0]
    term = Term(features=(0,), kinds=("number",), edges=(np.array([0.0, 1.0]),))
    assert max(rows.stop - rows.start for rows in cells_of(table, [term]).blocks()) <= 1 << 13
    marks = one_hot_csr(np.zeros((3, 1), dtype=int), [2])
    with pytest.raises(ValueError, match="read-only"):
        marks.data *= 2.0


@pytest.mark.parametrize(
    ("kind", "edges", "words"),
    [
        ("number", [0.0, 0.5, 20000.0], ["0", "0.5", "20000"]),
        ("number", [1.0, 1.000001, 2.0], ["1", "1.000001", "2"]),
        ("date", [0.0, 1.0], ["1970-01-01", "1970-01-02"]),
        ("date", [0.0, 0.5], ["1970-01-01T00:00", "1970-01-01T12:00"]),
        ("date", [0.0, 1e300], ["0", "1e+300"]),
        ("duration", [0.0, 1.5], ["0", "1.5"]),
    ],
)
def test_edges_are_as_short_as_they_can_be_told_apart(kind, edges, words):
    assert list(edge_names(kind, np.array(edges))) == words


DOMAINS = [
    *[(0.0, 1.0), (18.0, 100.0), (-1000.0, 9000.0), (0.0, 1e6), (-9.0, -3.0), (-1.0, 0.0)],
    *[(1.6e9, 1.6e9 + 86_400.0), (0.0, 1e-12), (-5.0, 5.0)],
]


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("n_cells", [64, 256, 1024])
def test_finer_cells_keep_the_edges_of_bins(domain, n_cells):
    edges = np.linspace(*domain, n_cells + 1)
    finer = with_finer_bin_at_zero(edges, 32)
    assert (np.diff(finer) > 0.0).all()
    np.testing.assert_array_equal(finer[:: n_cells // 32], edges[:: n_cells // 32])
    half_width = 2.0**-10 * np.diff(finer).min()
    atoms = with_atoms(finer, domain, half_width)
    assert (np.diff(atoms) > 0.0).all()
    for atom in domain:
        cell = min(np.searchsorted(atoms, atom, side="right") - 1, n_cells - 1)
        assert atoms[cell] <= atom <= atoms[cell + 1]
        assert atoms[cell + 1] - atoms[cell] <= 2.001 * half_width


@pytest.mark.parametrize("domain", DOMAINS)
def test_binary_edges_have_round_widths(domain):
    edges = binary_edges(domain, 256)
    assert edges is not None
    assert edges[0] == domain[0]
    assert edges[-1] >= domain[1] > edges[len(edges) // 2 - 1]
    (width,) = set(np.diff(edges))
    assert np.log2(width) == round(np.log2(width))


def test_binary_edges_of_other_bounds_are_refused():
    assert binary_edges((1.0, 1.0 + 2.0**-50), 256) is None
    assert binary_edges((-1.7e308, 1.7e308), 256) is None


@pytest.mark.parametrize("domain", [(0, 1), (0, 40), (1, 16), (-3, 3), (0, 16_384), (17, 90)])
def test_integers_are_inside_their_cells(domain):
    edges = integer_edges(domain, 1024)
    assert (edges % 1.0 == 0.5).all()
    assert edges[0] < domain[0] < domain[1] < edges[-1]
    assert (len(edges) - 1) & (len(edges) - 2) == 0
    if len(edges) == 1025:
        finer = with_finer_bin_at_zero(edges, 32, is_integer=True)
        assert (finer % 1.0 == 0.5).all()
        assert (np.diff(finer) > 0.0).all()
    assert integer_edges((0, 2.0**60), 1024) is None
