"""Means: grids, sums and divisors of columns, and the noise of a target by categories."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import StandardScaler

from skdp import ChunkedArray, DPMeanTransformer, DPTargetEncoder, PrivacyAccountant
from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape, guarantee_of
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from skdp.preprocessing import _mean_transformer
from skdp.preprocessing._mean_transformer import (
    COARSE_STEP,
    FINE_STEP,
    plan_means,
    rounded_sums,
    scaled_means,
    sums_by_noise,
)
from skdp.preprocessing._target_encoder import _shrunk_means
from tests._attacks import attack_choices
from tests._private import read_persons

LOW, HIGH = np.array([0.0, -5.0, 10.0]), np.array([1.0, 5.0, 30.0])
BOUNDS = (LOW, HIGH)


def make_table(n=5000):
    return np.random.default_rng(0).uniform(LOW, HIGH, size=(n, 3))


@pytest.mark.parametrize("params", [{}, {"delta": 1e-6}, {"count": "noisy"}])
def test_little_noise_gives_the_answer_of_sklearn(params):
    X = make_table()
    ours = DPMeanTransformer(epsilon=1e10, bounds=BOUNDS, **params).fit(X)
    theirs = StandardScaler(with_std=False).fit(X)
    assert (np.abs(ours.mean_ - theirs.mean_) < 1e-5 * (HIGH - LOW)).all()
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-3)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-9)


def plan(mechanism, *, relation="add_remove", noisy=False, shape=(1, 2), delta=1e-6):
    neighbors = Neighbors(relation=relation)
    guarantee = Guarantee(epsilon=1.0, delta=delta, neighbors=neighbors)
    n_rows, n_columns = shape
    shape = TableShape(n_rows=n_rows, n_columns=n_columns)
    return plan_means(shape, guarantee, noise=mechanism, noisy_count=noisy)


def largest_move(relation, noisy_count):
    """The largest L1 and L2 distances of what is released, over neighbors in a grid."""
    grid = np.linspace(-1.3, 1.3, 27)
    # Two features; the corners are among the rows.
    rows = [np.array([[a, b]]) for a in grid for b in grid[::13]]
    values = [np.append(rounded_sums(row, -np.ones(2), np.ones(2)), 1.0) for row in rows]
    values = [value if noisy_count else value[:2] for value in values]
    pairs = itertools.combinations(values, 2)
    moves = values if relation == "add_remove" else [a - b for a, b in pairs]
    return max(np.abs(m).sum() for m in moves), max(np.linalg.norm(m) for m in moves)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("relation", "noisy"), [("add_remove", False), ("add_remove", True), ("replace_one", False)]
)
def test_brute_force_sensitivity(relation, noisy, name):
    moved = dict(zip(("laplace", "gaussian"), largest_move(relation, noisy), strict=True))[name]
    claimed = plan(name, relation=relation, noisy=noisy).sensitivity
    assert 0.999 * claimed < moved <= claimed
    # The factor of replace-one left out.
    if relation == "replace_one":
        forgotten = plan(name, noisy=noisy)
        assert moved > 1.9 * forgotten.sensitivity


def test_sums_do_not_depend_on_the_order_of_rows():
    X = make_table(n=50_000) * 1.1
    backwards = rounded_sums(X[::-1], LOW, HIGH)
    np.testing.assert_array_equal(rounded_sums(X, LOW, HIGH), backwards)


def persons_of(n_persons, seed=0):
    """Rows of persons with one to nine rows each, and their persons."""
    counts = np.random.default_rng(seed).integers(1, 10, size=n_persons)
    ids = np.repeat(np.arange(n_persons), counts)
    return np.random.default_rng(seed + 1).uniform(LOW, HIGH, size=(len(ids), 3)), ids


def sums_of_persons(X, ids, grid, total=sums_by_noise):
    return total(X, LOW, HIGH, read_persons(ids, len(X)).row_weights, grid)


@pytest.mark.parametrize("n_persons", [1, 2, 3, 5, 4096])
def test_sums_by_persons_take_no_step_from_their_number(n_persons):
    """What a person adds is the same to the last bit, however many others there are."""
    (one, _), (others, ids) = persons_of(1, seed=5), persons_of(n_persons)
    together = np.vstack([one, others]), np.append(np.full(len(one), -1), ids)
    # As fine as a double can hold the sums of the largest number of persons: nothing is rounded.
    own, rest, both = (
        sums_of_persons(X, of, COARSE_STEP / 2)
        for X, of in ((one, np.zeros(len(one))), (others, ids), together)
    )
    np.testing.assert_array_equal(own + rest, both)
    np.testing.assert_array_equal(both, np.rint(both / COARSE_STEP) * COARSE_STEP)
    assert (np.abs(own) <= 1.0).all()
    # With more noise the parts are finer, and the sums are multiples of the noise's grid.
    for grid in (2.0**-27, 2.0**-20, 2.0**-3, 2.0**6, 2.0**60):
        rounded = sums_of_persons(*together, grid)
        step = min(grid, 2.0**4)
        np.testing.assert_array_equal(rounded, np.rint(rounded / step) * step)
        exact = np.sum(mean_parts(*together), axis=0)
        assert (np.abs(rounded - exact) <= 0.5 * step + len(together[0]) * FINE_STEP).all()


def mean_parts(X, ids):
    """What each row adds: its scaled values on the grid, by its share."""
    scaled = np.rint((X - (LOW + HIGH) / 2) * (2 / (HIGH - LOW)) * 2.0**22) / 2.0**22
    return scaled * read_persons(ids, len(X)).row_weights[:, None]


def test_a_grid_from_the_number_of_persons_is_found():
    """The sums for a public number of persons: one person more moves the parts of all others."""

    def by_number(X, low, high, row_weights, grid):
        return rounded_sums(X, low, high, read_persons(ids_of[len(X)], len(X)))

    (one, _), (others, ids) = persons_of(1, seed=5), persons_of(4096)
    ids_of = {len(one): np.zeros(len(one)), len(others): ids}
    ids_of[len(one) + len(others)] = both = np.append(np.full(len(one), -1), ids)
    sums = [
        sums_of_persons(X, of, 1.0, by_number)
        for X, of in ((one, np.zeros(len(one))), (others, ids), (np.vstack([one, others]), both))
    ]
    assert (sums[0] + sums[1] != sums[2]).any()


@pytest.mark.parametrize(
    ("d", "delta", "expected"),
    [(1, 0.0, LaplaceMechanism), (2, 1e-6, LaplaceMechanism), (100, 1e-6, GaussianMechanism)],
)
def test_auto_takes_the_smaller_noise(d, delta, expected):
    errors = {}
    for name in ("auto", "laplace", "gaussian")[: 3 if delta else 2]:
        transformer = DPMeanTransformer(delta=delta, bounds=(0, 1), mechanism=name)
        errors[name] = transformer.expected_error(1000, n_features=d)[0]
    assert errors["auto"] == min(errors.values())
    assert isinstance(plan("auto", shape=(1000, d), delta=delta).mechanism, expected)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("params", "position"),
    [
        ({}, 0.0),
        ({"delta": 1e-5, "mechanism": "gaussian"}, 0.0),
        ({"count": "noisy"}, 0.0),
        ({"count": "noisy"}, 1.0),
    ],
)
def test_errors_have_the_expected_size(params, position):
    # 1000 fits of seeds that were not chosen; 5 standard errors: false alarms of 6e-7.
    low, high = np.array([-1.0, -10.0]), np.array([1.0, 30.0])
    middle, half = (low + high) / 2, (high - low) / 2
    X = np.tile(middle + position * half, (500, 1))
    transformer = DPMeanTransformer(bounds=(low, high), **params)
    shape = TableShape(n_rows=len(X), n_columns=2)
    mechanism = transformer.plan_fit(shape, guarantee_of(transformer)).mechanism
    n_rows = None if params.get("count") == "noisy" else len(X)
    sources = map(RandomSource, range(1000))
    runs = [scaled_means(mechanism, X, source, low, high, n_rows) for source in sources]
    runs = np.array(runs)
    squares = (runs - position) ** 2
    expected = (transformer.expected_error(500) / half) ** 2 * (1 + position**2)
    error = squares.std(axis=0, ddof=1) / math.sqrt(len(runs))
    # The noisy count's error is of first order: a hundredth more for 500 rows.
    slack = 0.01 * expected * ("count" in params)
    assert (np.abs(squares.mean(axis=0) - expected) < 5 * error + slack).all()


@pytest.mark.parametrize("count", ["public", "noisy"])
def test_what_is_published_is_a_function_of_the_release(count, monkeypatch):
    monkeypatch.setattr(
        LaplaceMechanism, "release", lambda self, values, **_: np.full(len(values), 7.0)
    )
    tables = [make_table(100), make_table(100) + 3.0]
    if count == "noisy":
        tables.append(make_table(60))
    fits = [DPMeanTransformer(bounds=BOUNDS, count=count).fit(X) for X in tables]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fits[0].mean_, fitted.mean_)
        assert fits[0].privacy_.sensitivity == fitted.privacy_.sensitivity


def test_a_divisor_that_depends_on_the_count_is_caught(monkeypatch):
    def divided_by_the_count(mechanism, X, source, low, high, n_rows, persons):
        exact = np.append(rounded_sums(X, low, high), float(X.shape[0]))
        return mechanism.release(exact, random_state=source)[:-1] / X.shape[0]

    monkeypatch.setattr(_mean_transformer, "scaled_means", divided_by_the_count)
    with pytest.raises(AssertionError):
        test_what_is_published_is_a_function_of_the_release("noisy", monkeypatch)


def certified(row, null, epsilon=1.0, runs=500):
    """The epsilon by which published means tell one row from none."""
    outputs = []
    for value in (row, null):
        fits = (
            DPMeanTransformer(epsilon, bounds=(-4, 4)).fit([[value], [0.0]]) for _ in range(runs)
        )
        outputs.append(np.array([int(fit.mean_[0] > 1.9) for fit in fits]))
    # With a probability of 0.999999 that the bound is right.
    return attack_choices(*outputs, confidence=0.999999)


@pytest.mark.thorough
def test_a_distinguisher_finds_no_more_than_epsilon():
    assert certified(4.0, 0.0) <= 1.0


@pytest.mark.thorough
def test_a_distinguisher_finds_a_third_of_the_noise(monkeypatch):
    def careless(shape, guarantee, **terms):
        return plan_means(shape, replace(guarantee, epsilon=3.0), **terms)

    monkeypatch.setattr(_mean_transformer, "plan_means", careless)
    assert certified(4.0, 0.0) > 1.0


def test_automatic_bounds_cost_part_of_epsilon():
    X = make_table(20_000)
    accountant = PrivacyAccountant(1.0, 0.0)
    fitted = DPMeanTransformer(epsilon=1.0, accountant=accountant).fit(X)
    assert len(accountant.charges) == 1 and accountant.charges[0].epsilon == 1.0
    assert (np.abs(fitted.mean_ - X.mean(axis=0)) < 0.05 * (HIGH - LOW)).all()
    assert "bounds" not in " ".join(fitted.privacy_.public)


@pytest.mark.parametrize("n", [1, 100])
def test_few_rows_and_constants_are_fitted(n):
    for bounds in ("auto", (0, 1)):
        fitted = DPMeanTransformer(bounds=bounds).fit(np.full((n, 2), 0.25))
        assert np.isfinite(fitted.mean_).all()


def test_many_columns_are_fitted():
    X = np.zeros((20, 10_000))
    assert DPMeanTransformer(delta=1e-6, bounds=(0, 1)).fit(X).mean_.shape == (10_000,)


def test_tables_in_parts_and_on_disk(tmp_path):
    X = make_table(40_000)
    np.save(tmp_path / "X.npy", X)
    tables = [X, np.load(tmp_path / "X.npy", mmap_mode="r"), ChunkedArray([X[:100], X[100:]])]
    fits = [DPMeanTransformer(bounds=BOUNDS, random_state=0).fit(table) for table in tables]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fits[0].mean_, fitted.mean_)


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(), columns=["a", "b", "c"])
    bounds = {"a": (0, 1), "b": (-5, 5), "c": (10, 30)}
    center = DPMeanTransformer(bounds=bounds).set_output(transform="pandas").fit(frame)
    assert list(center.transform(frame).columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "params",
    [
        {"bounds": None},
        {"bounds": (1, 0)},
        {"bounds": (0, np.inf)},
        {"bounds": ([0, 0], [1, 1])},
        {"bounds": {0: (0, 1)}},
        {"bounds": {9: (0, 1)}},
        {"bounds": "wide"},
        {"mechanism": "gaussian"},
        {"mechanism": "geometric"},
        {"count": "exact"},
        {"count": "noisy", "bounds": "auto"},
        {"epsilon": 0.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    accountant = PrivacyAccountant(10.0, 1e-3)
    params = {"bounds": BOUNDS, "accountant": accountant} | params
    with pytest.raises(ValueError):
        DPMeanTransformer(**params).fit(make_table(100))
    assert accountant.charges == []


def test_a_noisy_count_is_refused_where_one_row_replaces_another():
    accountant = PrivacyAccountant(10.0, 0.0, relation="replace_one")
    with pytest.raises(ValueError, match="replace_one"):
        DPMeanTransformer(bounds=BOUNDS, count="noisy", accountant=accountant).fit(make_table(9))
    assert accountant.charges == []


@pytest.mark.parametrize(
    "X",
    [
        np.full((5, 3), np.nan),
        np.full((5, 3), np.inf),
        np.zeros((0, 3)),
        np.zeros((5, 0)),
        np.array([["a", "b", "c"]] * 5, dtype=object),
        np.zeros(5),
    ],
)
def test_bad_tables_are_refused_and_not_charged(X):
    accountant = PrivacyAccountant(10.0, 0.0)
    with pytest.raises(ValueError):
        DPMeanTransformer(bounds=(0, 1), accountant=accountant).fit(X)
    assert accountant.charges == []


def test_the_expected_error_needs_bounds():
    with pytest.raises(ValueError, match="bounds"):
        DPMeanTransformer().expected_error(100)


# Means of a target by categories.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_has_the_stated_law(delta, monkeypatch):
    released = []
    monkeypatch.setattr(
        "skdp.preprocessing._target_encoder._shrunk_means",
        lambda sums, variance, smooth: (
            released.append((sums, variance)) or _shrunk_means(sums, variance, smooth)
        ),
    )
    X = np.zeros((100, 200))
    DPTargetEncoder(delta=delta, categories=[0], target_bounds=(0, 1)).fit(X, np.zeros(100))
    sums, variance = released[0]
    noise = sums - [100.0, 0.0]
    scale = np.sqrt(variance / 2) if delta == 0.0 else np.sqrt(variance)
    law = stats.laplace(scale=scale) if delta == 0.0 else stats.norm(scale=scale)
    assert stats.kstest(noise.ravel(), law.cdf).pvalue > 1e-6
