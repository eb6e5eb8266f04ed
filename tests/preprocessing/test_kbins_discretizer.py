import numpy as np
import pytest
from sklearn.preprocessing import KBinsDiscretizer

from skdp import DPKBinsDiscretizer, PrivacyAccountant
from tests._attacks import attack_choices

BOUNDS = ([0.0, -5.0], [1.0, 5.0])


def make_table(n=5000):
    return np.random.default_rng(0).uniform(*BOUNDS, size=(n, 2))


@pytest.mark.parametrize(
    ("encode", "delta"),
    [("onehot", 0.0), ("onehot-dense", 0.0), ("ordinal", 0.0), ("ordinal", 1e-6)],
)
def test_little_noise_gives_the_answer_of_sklearn(encode, delta):
    X = make_table()
    ours = DPKBinsDiscretizer(1e10, delta=delta, bounds=BOUNDS, encode=encode).fit(X)
    theirs = KBinsDiscretizer(encode=encode, quantile_method="averaged_inverted_cdf").fit(X)
    for one, other, span in zip(ours.bin_edges_, theirs.bin_edges_, (1.0, 10.0), strict=True):
        assert np.abs(one - other).max() < 1e-3 * span
    np.testing.assert_array_equal(ours.n_bins_, theirs.n_bins_)
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    encoded, expected = ours.transform(X), theirs.transform(X)
    assert type(encoded).__name__ in ("ndarray", "csr_array")
    assert abs(encoded - expected).sum() < 0.002 * X.size
    middles = theirs.inverse_transform(expected)
    assert np.mean(np.abs(ours.inverse_transform(encoded) - middles) > 1e-3 * 10) < 0.002


def test_uniform_bins_between_private_bounds():
    X = make_table()
    accountant = PrivacyAccountant(1.0, 0.0)
    fitted = DPKBinsDiscretizer(
        1.0, strategy="uniform", n_bins=4, encode="ordinal", accountant=accountant
    ).fit(X)
    assert accountant.charges[0].epsilon == 1.0 and fitted.n_bins_.tolist() == [4, 4]
    for edges, low, high in zip(fitted.bin_edges_, *BOUNDS, strict=True):
        np.testing.assert_allclose(np.diff(edges), (edges[-1] - edges[0]) / 4)
        assert edges[0] <= low + 0.5 * (high - low) and edges[-1] >= high - 0.5 * (high - low)
    with pytest.raises(ValueError, match="two rows"):
        DPKBinsDiscretizer(strategy="uniform", bounds=BOUNDS).fit(X)


def test_quantiles_between_private_bounds_are_one_charge():
    X = make_table(50_000)
    accountant = PrivacyAccountant(1.0, 0.0)
    fitted = DPKBinsDiscretizer(1.0, n_bins=4, accountant=accountant).fit(X)
    assert [spend.epsilon for spend in accountant.charges] == [1.0]
    shares = np.asarray(fitted.transform(X).sum(axis=0)).ravel() / len(X)
    assert np.abs(shares - 0.25).max() < 0.05


def certified(epsilon, runs=2000):
    """The epsilon by which an edge tells two rows from the same with one replaced."""
    outputs = []
    model = DPKBinsDiscretizer(epsilon, n_bins=2, bounds=(0, 1), delta=0.0)
    for X in ([[0.0], [0.0]], [[0.0], [1.0]]):
        medians = []
        for _ in range(runs):
            # Each fit has a ledger of its own, as a charge reads the ones before.
            accountant = PrivacyAccountant(epsilon, 0.0, relation="replace_one", ledger="memory://")
            model.set_params(accountant=accountant)
            medians.append(model.fit(np.array(X)).bin_edges_[0][1])
        outputs.append(np.digitize(medians, [0.1, 0.9]))
    return attack_choices(*outputs, confidence=0.999999)


@pytest.mark.thorough
def test_a_distinguisher_finds_no_more_than_epsilon():
    assert certified(1.0) <= 1.0
    # A quarter of the noise.
    assert certified(40.0) > 1.0


@pytest.mark.parametrize("X", [np.full((20, 1), 0.3), np.full((1, 2), -4.0), np.zeros((5, 1000))])
def test_constants_few_rows_and_many_columns_are_fitted(X):
    for bounds in ("auto", (-1, 1)):
        discretizer = DPKBinsDiscretizer(5.0, bounds=bounds, n_bins=2, encode="ordinal").fit(X)
        assert discretizer.transform(X).shape == X.shape


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(200), columns=["a", "b"])
    bounds = {"a": (0, 1), "b": (-5, 5)}
    discretizer = DPKBinsDiscretizer(1e3, bounds=bounds, n_bins=2, encode="onehot-dense")
    out = discretizer.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["a_0.0", "a_1.0", "b_0.0", "b_1.0"]


@pytest.mark.parametrize(
    "params",
    [
        {"bounds": None},
        {"bounds": (0, np.nan)},
        {"n_bins": 1},
        {"n_bins": [3, 4]},
        {"encode": "dense"},
        {"strategy": "kmeans"},
        {"strategy": "uniform"},
        {"epsilon": 0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError):
        DPKBinsDiscretizer(**({"bounds": BOUNDS, "accountant": accountant} | params)).fit(
            make_table(50)
        )
    assert accountant.charges == []


def test_a_table_of_another_width_is_not_inverted():
    discretizer = DPKBinsDiscretizer(bounds=BOUNDS, encode="ordinal").fit(make_table(50))
    with pytest.raises(ValueError, match="columns"):
        discretizer.inverse_transform(np.zeros((3, 5)))
