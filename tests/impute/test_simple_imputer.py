import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.impute import SimpleImputer

from skdp import DPSimpleImputer, PrivacyAccountant
from skdp.mechanisms import LaplaceMechanism
from tests._attacks import attack_choices
from tests._releases import record_releases

BOUNDS = ([0.0, -10.0], [1.0, 10.0])
RELATIONS = ["add_remove", "replace_one"]


def make_table(n=20_000, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    low, high = map(np.array, BOUNDS)
    X = low + (high - low) * rng.beta(2, 3, size=(n, 2))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def accountant(relation="add_remove"):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


@pytest.mark.parametrize(("strategy", "delta"), [("mean", 0.0), ("mean", 1e-6), ("median", 0.0)])
def test_huge_epsilon_equals_sklearn(strategy, delta):
    X = make_table()
    for bounds in (BOUNDS, "auto"):
        ours = DPSimpleImputer(1e10, delta=delta, strategy=strategy, bounds=bounds).fit(X)
        theirs = SimpleImputer(strategy=strategy).fit(X)
        ranges = np.subtract(*BOUNDS[::-1])
        errors = np.abs(ours.transform(X) - theirs.transform(X)) / ranges
        assert errors.max() <= 1e-3


@pytest.mark.parametrize("params", [{"categories": ["a", "b", "c"]}, {"delta": 1e-6}])
def test_huge_epsilon_equals_sklearn_for_categories(params):
    X = np.array([["a", "c"], ["b", None], ["b", "c"], [None, "a"]] * 50, dtype=object)
    ours = DPSimpleImputer(1e10, strategy="most_frequent", **params).fit(X)
    theirs = SimpleImputer(strategy="most_frequent", missing_values=None).fit(X)
    assert ours.statistics_.tolist() == theirs.statistics_.tolist() == ["b", "c"]
    np.testing.assert_array_equal(ours.transform(X), theirs.transform(X))
    constant = DPSimpleImputer(strategy="constant", fill_value="none").fit(X)
    assert constant.transform(X)[1, 1] == "none" and constant.privacy_.epsilon == 0.0


def exact_sums(column, monkeypatch):
    with monkeypatch.context() as patch:
        records = record_releases(patch)
        DPSimpleImputer(delta=1e-6, bounds=(0, 1)).fit(np.array(column)[:, None])
    ((_, values, _),) = records
    return values.ravel()


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_the_mean(relation, monkeypatch):
    values = [np.nan, -5.0, 0.0, 0.25, 1.0, 7.0]
    rest = [0.3, np.nan, 0.9]
    # A null row holds nothing, as one whose value is missing.
    others = values if relation == "replace_one" else [np.nan]
    largest = {}
    for a, b in itertools.product(values, others):
        move = exact_sums([a, *rest], monkeypatch) - exact_sums([b, *rest], monkeypatch)
        for norm in (1, 2):
            largest[norm] = max(largest.get(norm, 0.0), np.linalg.norm(move, norm))
    for delta, norm in ((0.0, 1), (1e-6, 2)):
        imputer = DPSimpleImputer(delta=delta, bounds=(0, 1), accountant=accountant(relation))
        claimed = imputer.fit(np.ones((4, 1))).privacy_.sensitivity
        assert claimed * (1 - 1e-9) < largest[norm] <= claimed


def test_the_noise_of_the_mean_has_the_expected_size():
    n, d = 1000, 300
    X = np.full((n, d), 0.5)
    X[500:] = np.nan
    imputer = DPSimpleImputer(300.0, bounds=(0, 1)).fit(X)
    # Of (B - A) / 2N for independent Laplace noise in A and B, about its middle.
    scale = imputer.privacy_.noise_scale * np.sqrt(2) * np.sqrt(2) / (2 * 500)
    errors = (imputer.statistics_ - 0.5) / scale
    # The variance of 300 such terms is known to 10 %: six of these.
    assert 0.4 < np.mean(errors**2) < 1.8
    assert abs(errors.mean()) < 6 / np.sqrt(d)


@pytest.mark.parametrize("strategy", ["mean", "median"])
@pytest.mark.parametrize("bounds", ["auto", (2, 4)])
def test_a_column_without_values_is_within_the_bounds(strategy, bounds):
    X = np.full((100, 2), np.nan)
    imputer = DPSimpleImputer(strategy=strategy, bounds=bounds).fit(X)
    low, high = imputer.bounds_
    assert ((low <= imputer.statistics_) & (imputer.statistics_ <= high)).all()
    assert np.isfinite(imputer.transform(X)).all()
    if strategy == "mean":
        middles = [DPSimpleImputer(bounds=(2, 4)).fit(X).statistics_ for _ in range(50)]
        assert np.mean(np.array(middles) == 3.0) > 0.3


def test_a_column_without_values_has_any_category():
    X = np.array([[None], [None]], dtype=object)
    declared = DPSimpleImputer(strategy="most_frequent", categories=["a", "b"]).fit(X)
    assert declared.transform(X)[0, 0] in ("a", "b")
    found = DPSimpleImputer(strategy="most_frequent", delta=1e-6, fill_value="?").fit(X)
    assert found.transform(X).tolist() == [["?"], ["?"]]
    assert DPSimpleImputer(strategy="most_frequent", delta=1e-6).fit(X).statistics_ == [0.0]


def test_indicators_are_of_all_columns():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    for Z in (X, np.ones((2, 2))):
        imputer = DPSimpleImputer(add_indicator=True, bounds=(0, 4)).fit(Z)
        assert imputer.get_feature_names_out().tolist() == [
            "x0", "x1", "missingindicator_x0", "missingindicator_x1",
        ]  # fmt: skip
        np.testing.assert_array_equal(imputer.transform(X)[:, 2:], [[0, 1], [0, 0]])


def test_types_of_output():
    numbers = np.array([[1, 2], [3, 4]])
    for params in ({"bounds": (0, 5)}, {"strategy": "constant"}):
        assert DPSimpleImputer(**params).fit(numbers).transform(numbers).dtype == np.float64
    words = DPSimpleImputer(strategy="constant", fill_value="x").fit(numbers)
    assert words.transform(numbers).dtype == object


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_dates_stay_dates(unit):
    days = np.array(["2020-01-01", "2020-01-02"] * 2, dtype=f"M8[{unit}]")
    X = np.array([*days, np.datetime64("NaT")])[:, np.newaxis]
    filled = DPSimpleImputer(strategy="constant", fill_value=days[0]).fit_transform(X)
    assert pd.factorize(pd.to_datetime(filled[:, 0]))[0].tolist() == [0, 1, 0, 1, 0]


def test_frames_and_metadata_routing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, None, 2.0], "b": pandas.array([1, None, 3], "Int64")})
    with config_context(enable_metadata_routing=True):
        imputer = DPSimpleImputer(strategy="constant", fill_value=7)
        filled = imputer.set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == ["a", "b"]
    assert filled.to_numpy().tolist() == [[1.0, 1], [7.0, 7], [2.0, 3]]


def certified(n_fits=1500):
    """The epsilon that the filled-in mean certifies for whether one value is missing."""
    tables = [np.full((10, 1), np.nan) for _ in range(2)]
    for X in tables:
        X[:3] = 0.0
    tables[1][3] = 1.0
    outputs = [
        [DPSimpleImputer(bounds=(0, 1)).fit(X).statistics_[0] for _ in range(n_fits)]
        for X in tables
    ]
    bins = [np.digitize(o, [0.05, 0.2, 0.45, 0.55, 0.9]) for o in outputs]
    return attack_choices(*bins, confidence=1 - 1e-6)


@pytest.mark.thorough
def test_a_distinguisher_finds_a_number_of_values_without_noise():
    assert certified() <= 1.0

    def with_exact_count(X):
        total = LaplaceMechanism(1.0, 1.0).release(np.nansum(X, axis=0))
        return (np.round(total) / np.sum(~np.isnan(X)))[0]

    outputs = [
        [with_exact_count(X) for _ in range(200)]
        for X in (np.array([[0.0]] * n + [[np.nan]] * (10 - n)) for n in (3, 4))
    ]
    whole = [np.abs(3.0 * np.array(o) - np.round(3.0 * np.array(o))) < 1e-9 for o in outputs]
    assert attack_choices(*whole) > 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_of_counts_has_the_stated_law(relation):
    X = np.zeros((100, 200))
    imputer = DPSimpleImputer(
        strategy="most_frequent", categories=[0], accountant=accountant(relation)
    ).fit(X)
    noise = np.concatenate(imputer.counts_) - 100
    scale = 200 * (1 if relation == "add_remove" else 2)
    assert imputer.privacy_.noise_scale == pytest.approx(scale)
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    "params",
    [
        {"strategy": "mode"},
        {"bounds": None},
        {"bounds": (1, 0)},
        {"strategy": "most_frequent"},
        {"strategy": "most_frequent", "categories": "ab"},
        {"strategy": "constant", "fill_value": np.nan},
        {"strategy": "constant", "fill_value": [1, 2]},
        {"add_indicator": "yes"},
        {"epsilon": -1.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    account = accountant()
    with pytest.raises(ValueError):
        DPSimpleImputer(**({"accountant": account} | params)).fit(make_table(n=20))
    assert account.charges == []


@pytest.mark.parametrize("bad", [np.inf, -np.inf, "word"])
@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_bad_values_are_refused_and_not_charged(bad, strategy):
    account = accountant()
    X = make_table(n=20).astype(object)
    X[3, 1] = bad
    with pytest.raises(ValueError):
        DPSimpleImputer(strategy=strategy, accountant=account).fit(X)
    infinite = make_table(n=20)
    infinite[3, 1] = np.inf
    with pytest.raises(ValueError):
        DPSimpleImputer(strategy="constant", accountant=account).fit(infinite)
    assert account.charges == []


def test_many_columns_and_one_row():
    X = np.full((3, 10_000), 0.5)
    assert DPSimpleImputer(bounds=(0, 1)).fit(X).statistics_.shape == (10_000,)
    assert np.isfinite(DPSimpleImputer().fit([[0.5]]).statistics_).all()


@pytest.mark.parametrize("present", [0, 3, 1000])
def test_what_a_mean_is_follows_from_the_release_alone(present, monkeypatch):
    """Whether there are enough values is decided by their noisy number, not by the true one."""
    X = np.full((1000, 3), np.nan)
    X[:present] = 5.0
    # The noisy numbers of values are 1, 8 and 500; the noise of one of them is root two times 4.
    released = np.array([[0.25, 2.0, 100.0], [0.75, 6.0, 400.0]])
    monkeypatch.setattr(LaplaceMechanism, "deviation", lambda self, size: 4.0)
    monkeypatch.setattr(LaplaceMechanism, "release", lambda self, values, random_state: released)
    means = DPSimpleImputer(bounds=(0, 10)).fit(X).statistics_
    np.testing.assert_array_equal(means, [5.0, 7.5, 8.0])
