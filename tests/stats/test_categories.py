"""Categories that are found, and what a column is by its container and its declaration."""

import datetime
import itertools
import math
import warnings
from collections import Counter

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import stats
from sklearn.base import BaseEstimator

from skdp import ChunkedArray, DPAdditiveClassifier, DPAdditiveRegressor
from skdp.accounting import Guarantee, Neighbors
from skdp.noise import RandomSource
from skdp.stats import _categories
from skdp.stats._categories import StabilityThreshold, _all_counts, _value_counts, canonical_label
from skdp.stats._column_cells import (
    Term,
    binary_edges,
    cell_reader,
    cells_of,
    integer_edges,
    with_atoms,
    with_finer_bin_at_zero,
)
from tests._guarantees import meet
from tests._private import (
    ColumnTable,
    as_chunked,
    edge_names,
    noise_of_cell_weights,
    one_hot_csr,
    read_columns,
    read_kinds,
    read_persons,
)

RELATIONS = ["add_remove", "replace_one"]


def discovered(values, epsilon=100.0, delta=1e-6, relation="add_remove"):
    """Return the categories and counts of one column."""
    values = np.asarray(values)
    table = ColumnTable((len(values), 1), columns=[values])
    mechanism = StabilityThreshold(n_columns=1, guarantee=meet(epsilon, delta, relation))
    labels, counts = mechanism.run(table, RandomSource())
    return labels[0], counts[0]


def tail(t, scale):
    """P(Z >= t) of discrete Laplace noise, for t >= 1."""
    a = math.exp(-1.0 / scale)
    return a**t / (1.0 + a)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
@pytest.mark.parametrize("d", [1, 3, 50])
def test_the_threshold_is_the_least_that_hides_single_rows(relation, epsilon, delta, d):
    mechanism = StabilityThreshold(n_columns=d, guarantee=meet(epsilon, delta, relation))
    moved = d if relation == "add_remove" else 2 * d
    assert mechanism.sensitivity == moved and mechanism.scale >= moved / epsilon
    assert tail(mechanism.threshold - 1, mechanism.scale) <= delta / d
    assert mechanism.threshold == 2 or (
        tail(mechanism.threshold - 2 - 1e-6 * mechanism.threshold, mechanism.scale) > delta / d
    )


def law(count, scale, threshold, width=120):
    """The probabilities of one value's outputs: not released, then each noisy count."""
    if count == 0:
        return np.eye(1, width + 1)[0]
    a = math.exp(-1.0 / scale)
    m = np.arange(threshold, threshold + width)
    released = (1.0 - a) / (1.0 + a) * a ** np.abs(m - count)
    return np.concatenate([[1.0 - released.sum()], released])


def divergence(first, second, epsilon, scale, threshold):
    """The exact delta of counts of several values, between two tables."""
    p, q = ([law(c, scale, threshold) for c in counts] for counts in (first, second))
    joint_p, joint_q = (np.array([1.0]) for _ in range(2))
    for one, other in zip(p, q, strict=True):
        joint_p = np.multiply.outer(joint_p, one).ravel()
        joint_q = np.multiply.outer(joint_q, other).ravel()
    return max(
        np.maximum(joint_p - math.exp(epsilon) * joint_q, 0.0).sum(),
        np.maximum(joint_q - math.exp(epsilon) * joint_p, 0.0).sum(),
    )


def neighbors(relation, d):
    """Counts of the values that one row, or two rows, hold in d columns, around the threshold."""
    counts = [0, 1, 2, 5]
    for before in itertools.product(counts, repeat=d):
        if relation == "add_remove":
            yield before, tuple(c + 1 for c in before)
        else:
            for other in itertools.product([0, 3], repeat=d):
                after = tuple(c + 1 for c in before)
                yield (*before, *(c + 1 for c in other)), (*after, *other)


@pytest.mark.parametrize(
    ("relation", "d"), [("add_remove", 1), ("add_remove", 2), ("replace_one", 1)]
)
def test_the_exact_divergence_is_within_delta(relation, d):
    epsilon, delta = 2.0, 0.02
    mechanism = StabilityThreshold(n_columns=d, guarantee=meet(epsilon, delta, relation))
    worst = max(
        divergence(one, other, epsilon, mechanism.scale, mechanism.threshold)
        for one, other in neighbors(relation, d)
    )
    assert 0.2 * delta < worst <= delta
    # Mutations: a threshold lower by the scale of the noise, and noise for one column only.
    for scale, threshold in [
        (mechanism.scale, mechanism.threshold - math.ceil(2 * mechanism.scale)),
        (mechanism.scale / 2.5, max(2, mechanism.threshold - 8)),
    ]:
        worst = max(
            divergence(one, other, epsilon, scale, threshold)
            for one, other in neighbors(relation, d)
        )
        assert worst > delta


def times_found(n_fits=2000):
    values = np.array(["common"] * 50 + ["rare"])
    return sum("rare" in discovered(values, 1.0, 0.05)[0] for _ in range(n_fits))


def test_a_single_row_is_found_with_probability_delta_at_most(monkeypatch):
    limit = stats.binom.ppf(1 - 1e-7, 2000, 0.05)
    assert times_found() <= limit
    low = property(lambda self: 2)
    monkeypatch.setattr(StabilityThreshold, "threshold", low)
    assert times_found() > limit


def test_common_values_are_found_and_sorted():
    values = np.array([3.5, 1, "b", "a", -7] * 100, dtype=object)
    labels, counts = discovered(values)
    assert labels.tolist() == [-7, 1, 3.5, "a", "b"]
    np.testing.assert_allclose(counts, 100, atol=2)
    labels, _ = discovered(np.array(["b", "a"] * 100))
    assert labels.tolist() == ["a", "b"]


def _item(label):
    return label.item() if isinstance(label, np.generic) else label


def test_what_is_released_says_nothing_of_what_is_not():
    # One long string widens numpy's type, one missing value makes integers floats.
    for column in (["a"] * 100 + ["x" * 50], ["a"] * 100 + ["a\0"]):
        assert discovered(np.array(column))[0].dtype == np.dtype("<U1")
    for column in ([1] * 100, [1.0] * 100 + [np.nan], [True] * 100, [1] * 100 + [None, "s"]):
        labels, _ = discovered(np.array(column, dtype=None if None not in column else object))
        assert labels.tolist() == [1] and labels.dtype.kind == "i"
    for column in ([0.0, -0.0] * 50, [-0.0, 0.0] * 50):
        labels, counts = discovered(np.array(column))
        assert str(labels[0]) == "0" and abs(counts[0] - 100) < 3


def test_missing_and_strange_values_count_nowhere():
    strange = np.empty(400, dtype=object)
    strange[:] = [None, float("nan"), (1, 2), [3]] * 100
    labels, counts = discovered(strange)
    assert len(labels) == len(counts) == 0
    assert len(discovered(np.full(100, np.nan))[0]) == 0
    assert canonical_label(10**400) is None and canonical_label(np.float32(2.0)) == 2
    assert _value_counts(np.array([np.nan, 1.0]))[1].tolist() == [1]


DAYS = np.array(["2020-01-01", "2021-01-01"])
LARGE = [2**53 + 1, 2**60 + 1]


@pytest.mark.parametrize(
    ("column", "same"),
    [
        (np.repeat(LARGE, 100), np.repeat(LARGE, 100).astype(float)),
        (np.repeat(LARGE, 100), np.repeat(LARGE, 100).astype(object)),
        (np.repeat([2**53 - 1, 3], 100), np.repeat([2**53 - 1, 3], 100).astype(float)),
        (np.repeat(DAYS, 100).astype("M8[ns]"), np.repeat(DAYS, 100).astype("M8[us]").astype("O")),
        (
            np.repeat([0, 1000], 100).astype("m8[ns]"),
            np.repeat([0, 1], 100).astype("m8[us]").astype("O"),
        ),
        (np.repeat([1, 2.5], 100).astype(np.longdouble), np.repeat([1, 2.5], 100)),
        (np.full(100, np.longdouble(3)).astype(object), np.full(100, 3)),
    ],
    ids=lambda column: str(column.dtype),
)
def test_the_type_of_a_column_which_one_row_can_change_is_not_seen(column, same):
    def found(values):
        labels, counts = _value_counts(values)
        # As Python compares them, which does not round long integers.
        return [_item(label) for label in labels], list(counts)

    assert found(column) == found(same)
    discovered(column)


def counted(values, ids):
    """Return all values among which discovery chooses, and how many persons each counts."""
    columns = ColumnTable((len(values), 1), columns=[values]).select([0])
    return dict(zip(*_all_counts(columns, read_persons(ids, len(ids)))[0], strict=True))


@pytest.mark.parametrize("kind", [float, object])
def test_a_person_counts_one_value_a_column_whatever_the_rows_of_others(kind):
    rng = np.random.default_rng(0)
    few, many = np.array([1, 2, 3.5, np.nan, 2.0**60]), np.append(np.arange(30.0), np.nan)
    # Counts are in a table where it is small, and sorted where it is not.
    for among, n_persons in [(few, 6), (many, 20)] * 25:
        ids = rng.integers(0, n_persons, 25)
        values = rng.choice(among, 25).astype(kind)
        alone = [counted(values[ids == one], ids[ids == one]) for one in np.unique(ids)]
        assert all(sum(own.values()) <= 1 for own in alone)
        assert counted(values, ids) == dict(sum(map(Counter, alone), Counter()))


def test_a_persons_most_frequent_value_counts_and_ties_are_numbers_before_strings():
    ids = [7, 7, 7, 3, 3, 3, 3, 5, 1, 1]
    values = np.array(["a", "b", "b", 2, "x", 2.0, "x", None, 2**53, "own"], dtype=object)
    assert counted(values, ids) == {"b": 1, 2: 1, "own": 1}


@pytest.mark.parametrize("among", [3, 60_000])
def test_a_person_of_many_rows_counts_the_most_frequent_value(among):
    # Small counts are in a table of small numbers, which these are too many for.
    values = np.repeat([1.0, 2.0, 0.0], [2**15 - 2, 2**15 - 1, 1])
    for more in (0, 2, 2**15 + 9):
        own = np.append(values, np.full(more, 2.0))
        others = np.arange(among), np.arange(among) + 1
        found = counted(np.append(own, others[0]), np.append(np.zeros(len(own)), others[1]))
        assert found == {float(one): 1 + (one == 2) for one in range(among)}


def test_parts_count_labels_where_they_are():
    values = np.random.default_rng(0).integers(-3, 3, (500, 1)) / 2.0
    values[::7], values[3] = np.nan, 2.0**53
    lazy = as_chunked(dask.array.from_array(values, chunks=(90, 1)))
    [(labels, counts)] = _all_counts(ColumnTable(lazy.shape, lazy).select([0]), None)
    expected = _value_counts(values[:, 0])
    assert labels.tolist() == expected[0].tolist() and counts.tolist() == expected[1].tolist()
    assert counts.dtype == expected[1].dtype


@pytest.mark.parametrize("words", [False, True])
def test_parts_send_the_places_of_labels_of_persons(words, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    values, ids, sent = (
        rng.choice([1.0, 2.5, -3.0, np.nan, 2.0**60], 500),
        rng.integers(60, size=500),
        [],
    )
    if words:
        values = np.where(np.isnan(values), None, values.astype(str))
    expected = counted(values, ids)
    parquet.write_table(pyarrow.table({"x": values}), tmp_path / "x.parquet", row_group_size=90)
    join = _categories._concatenate_codes
    monkeypatch.setattr(
        _categories, "_concatenate_codes", lambda parts: join(sent.append(parts) or parts)
    )
    table = read_columns(BaseEstimator(), ChunkedArray(tmp_path / "x.parquet"), allow_nan=True)
    found = dict(zip(*_all_counts(table.select([0]), read_persons(ids, 500))[0], strict=True))
    assert found == expected and sum(found.values()) <= 60
    assert [len(codes) for _, codes in sent[0]] == [90] * 5 + [50]
    assert all(codes.dtype == np.int8 for _, codes in sent[0])


def test_discovery_needs_delta():
    with pytest.raises(ValueError, match="delta"):
        StabilityThreshold(n_columns=1, guarantee=meet(1.0))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 3])
def test_brute_force_sensitivity_of_cell_weights(relation, d):
    """Rows that add weights of a sum of 1 to one of two cells, in each column, or nothing."""
    weights = [np.array(w) for w in ([1.0, 0.0], [0.0, 1.0], [0.25, 0.75])]
    cells = [np.zeros(4)] + [np.roll(np.append(w, [0, 0]), 2 * c) for w in weights for c in (0, 1)]
    rows = [np.concatenate(row) for row in itertools.product(cells, repeat=d)]
    others = rows if relation == "replace_one" else [np.zeros(4 * d)]
    moves = [a - b for a in rows for b in others]
    neighbors = Neighbors(relation=relation)
    for delta, norm in ((0.0, 1), (1e-6, 2)):
        guarantee = Guarantee(epsilon=1.0, delta=delta, neighbors=neighbors)
        for whole in (True, False):
            claimed = noise_of_cell_weights(d, guarantee, whole=whole).sensitivity
            largest = max(np.linalg.norm(move, norm) for move in moves)
            assert claimed * (1 - 1e-12) <= largest * (1 + 1e-12) and largest <= claimed


# What a column is by its container and by what is declared; missing and other values.


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
