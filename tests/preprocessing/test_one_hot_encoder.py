import numpy as np
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.preprocessing import OneHotEncoder

from skdp import DPOneHotEncoder, PrivacyAccountant
from tests._attacks import attack_choices

LABELS = [["a", "b", "c"], [1, 2, 3]]


def make_table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 2), dtype=object)
    X[:, 0], X[:, 1] = rng.choice(["a", "b", "c"], n), rng.integers(1, 4, n)
    return X


def accountant(relation="add_remove"):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


@pytest.mark.parametrize(
    "params",
    [
        {"categories": LABELS},
        {"epsilon": 1e10, "delta": 1e-6},
        {"epsilon": 1e10, "categories": LABELS, "min_frequency": 2},
    ],
)
def test_huge_epsilon_equals_sklearn(params):
    X = make_table()
    ours = DPOneHotEncoder(**params).fit(X)
    theirs = OneHotEncoder(categories=[np.array(c, dtype=object) for c in LABELS]).fit(X)
    assert [c.tolist() for c in ours.categories_] == [c.tolist() for c in theirs.categories_]
    np.testing.assert_array_equal(ours.transform(X).toarray(), theirs.transform(X).toarray())
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(ours.inverse_transform(ours.transform(X)), X)


def test_declared_categories_alone_cost_nothing():
    account = accountant()
    encoder = DPOneHotEncoder(categories=LABELS, accountant=account).fit(make_table())
    assert account.charges == [] and encoder.privacy_.epsilon == 0.0 and encoder.counts_ is None
    assert "nothing is computed" in str(encoder.privacy_)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_have_the_stated_noise(relation, delta):
    X = np.zeros((500, 200))
    encoder = DPOneHotEncoder(
        delta=delta, categories=[0], min_frequency=1, accountant=accountant(relation)
    ).fit(X)
    noise = np.concatenate(encoder.counts_) - 500
    scale = encoder.privacy_.noise_scale
    moved = 200 * (1 if relation == "add_remove" else 2)
    assert encoder.privacy_.sensitivity == pytest.approx(moved if delta == 0 else moved**0.5)
    law = stats.laplace(scale=scale) if delta == 0.0 else stats.norm(scale=scale)
    assert stats.kstest(noise, law.cdf).pvalue > 1e-6


def test_unknown_values_are_zeros_or_other():
    X = make_table()
    strange = np.array([["z", 1], [None, np.nan], ["a", 9.5], ["7", 8]], dtype=object)
    zeros = DPOneHotEncoder(categories=LABELS, sparse_output=False).fit(X).transform(strange)
    np.testing.assert_array_equal(zeros.sum(axis=1), [1, 0, 1, 0])
    other = DPOneHotEncoder(categories=LABELS, other="rest", sparse_output=False).fit(strange)
    encoded = other.transform(strange)
    np.testing.assert_array_equal(encoded.sum(axis=1), 2)
    np.testing.assert_array_equal(encoded[:, [3, 7]], [[1, 0], [1, 1], [0, 1], [1, 1]])
    assert other.get_feature_names_out()[3] == "x0_rest"
    assert other.inverse_transform(encoded)[0].tolist() == ["rest", 1]


def test_other_may_be_a_declared_category_and_counts_the_unknown():
    X = np.array([["a"]] * 300 + [["z"]] * 200 + [["b"]] * 5, dtype=object)
    encoder = DPOneHotEncoder(
        100.0, categories=["b", "a"], min_frequency=0.1, other="a", sparse_output=False
    ).fit(X)
    np.testing.assert_allclose(encoder.counts_[0], [5, 500], atol=3)
    assert encoder.infrequent_categories_[0].tolist() == ["b"]
    assert encoder.get_feature_names_out().tolist() == ["x0_a"]
    assert encoder.transform([["b"], ["a"], ["q"]]).tolist() == [[1.0], [1.0], [1.0]]


def test_infrequent_categories_become_zeros():
    X = np.repeat([[0], [1], [2]], [500, 490, 10], axis=0)
    for least in (0.1, 100):
        encoder = DPOneHotEncoder(5.0, delta=1e-3, min_frequency=least, sparse_output=False).fit(X)
        assert encoder.get_feature_names_out().tolist() == ["x0_0", "x0_1"]
        assert encoder.transform([[2], [1]]).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_nothing_discovered_gives_no_columns():
    X = np.random.default_rng(0).normal(size=(50, 3))
    encoder = DPOneHotEncoder(delta=1e-6).fit(X)
    assert encoder.transform(X).shape == (50, 0)
    assert DPOneHotEncoder(delta=1e-6, other="o").fit(X).transform(X).shape == (50, 3)


@pytest.mark.thorough
def test_categories_are_not_read_off_the_data():
    def found(epsilon, delta, n_fits=400):
        """How often the value of a single row gets a column, with and without that row."""
        tables = [np.array([["a"]] * 50), np.array([["a"]] * 49 + [["secret"]])]
        encoder = DPOneHotEncoder(epsilon, delta=delta)
        return [[len(encoder.fit(X).categories_[0]) for _ in range(n_fits)] for X in tables]

    assert attack_choices(*found(1.0, 1e-3), delta=1e-3, confidence=1 - 1e-6) <= 1.0
    # A copy that claims as much, and whose threshold hides no single row.
    assert attack_choices(*found(1.0, 0.9), delta=1e-3) > 1.0


def test_frames_and_metadata_routing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(), columns=["letter", "number"])
    with config_context(enable_metadata_routing=True):
        encoder = DPOneHotEncoder(categories=LABELS, sparse_output=False)
        encoded = encoder.set_output(transform="pandas").fit_transform(frame)
    assert list(encoded.columns)[:4] == ["letter_a", "letter_b", "letter_c", "number_1"]
    assert encoded.shape == (600, 6)


def test_many_columns_and_one_row():
    X = np.zeros((3, 10_000))
    assert DPOneHotEncoder(categories=[0]).fit(X).transform(X).sum() == 30_000
    assert DPOneHotEncoder(delta=1e-6).fit([["a"]]).transform([["a"]]).shape == (1, 0)


@pytest.mark.parametrize(
    "params",
    [
        {"delta": 0.0},
        {"categories": [["a", "b"]]},
        {"categories": [["a", "a"], [1]]},
        {"categories": "ab"},
        {"categories": {"a": 1}},
        {"categories": [[], [1]]},
        {"other": ["a"]},
        {"other": np.nan},
        {"min_frequency": 0.0},
        {"min_frequency": 1.5},
        {"min_frequency": -3},
        {"min_frequency": "many"},
        {"sparse_output": None},
        {"epsilon": 0.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    account = accountant()
    with pytest.raises(ValueError):
        DPOneHotEncoder(**({"delta": 1e-6, "accountant": account} | params)).fit(make_table())
    assert account.charges == []
