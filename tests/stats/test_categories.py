import itertools
import math
from collections import Counter

import dask.array
import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import stats
from sklearn.base import BaseEstimator

from skdp import ChunkedArray
from skdp.accounting import Guarantee, Neighbors
from skdp.noise import RandomSource
from skdp.stats import _categories
from skdp.stats._categories import StabilityThreshold, _all_counts, _value_counts, canonical_label
from tests._guarantees import meet
from tests._private import ColumnTable, as_chunked, plan_cell_weights, read_columns, read_persons

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
            claimed = plan_cell_weights(d, guarantee, whole=whole).sensitivity
            largest = max(np.linalg.norm(move, norm) for move in moves)
            assert claimed * (1 - 1e-12) <= largest * (1 + 1e-12) and largest <= claimed
