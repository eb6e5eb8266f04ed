import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import StandardScaler

from skdp import DPStandardScaler, PrivacyAccountant


def make_table(n=5000, d=3):
    rng = np.random.default_rng(0)
    return rng.uniform([0, -5, 10], [1, 5, 30], size=(n, d))


BOUNDS = ([0, -5, 10], [1, 5, 30])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_little_noise_gives_the_answer_of_sklearn(delta):
    X = make_table()
    ours = DPStandardScaler(epsilon=1e10, delta=delta, bounds=BOUNDS).fit(X)
    theirs = StandardScaler().fit(X)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-3)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-3)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-3)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_of_means_has_the_stated_law(delta):
    X = np.zeros((1000, 200))
    scaler = DPStandardScaler(delta=delta, bounds=(-1, 1), with_std=False, epsilon=100.0).fit(X)
    noise = scaler.mean_ * 1000 / scaler.privacy_.noise_scale
    law = stats.laplace() if delta == 0.0 else stats.norm()
    # 200 draws from the operating system's generator: a false alarm in 1e6 runs.
    assert stats.kstest(noise, law.cdf).pvalue > 1e-6


def test_values_are_clipped_to_the_bounds():
    X = make_table()
    wild = X.copy()
    wild[:100] = [1e300, -1e300, 1e5]
    clipped = np.clip(wild, *BOUNDS)
    one = DPStandardScaler(bounds=BOUNDS, random_state=0).fit(wild)
    other = DPStandardScaler(bounds=BOUNDS, random_state=0).fit(clipped)
    np.testing.assert_array_equal(one.mean_, other.mean_)
    np.testing.assert_array_equal(one.var_, other.var_)


@pytest.mark.parametrize("bounds", [(0, 0.1), (-1e150, 0), (0, 1e-150)])
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_no_warning_tells_that_a_value_is_extreme(bounds, dtype, recwarn):
    X = np.zeros((20, 2), dtype=dtype)
    X[3, 1] = np.finfo(dtype).max
    scaler = DPStandardScaler(bounds=bounds).fit(X)
    assert np.isfinite(scaler.scale_).all() and (scaler.scale_ > 0).all()
    assert not recwarn.list


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1e-1, 10.0])
def test_what_is_published_is_within_the_bounds(epsilon):
    X = make_table(n=50)
    low, high = map(np.array, BOUNDS)
    for seed in range(20):
        scaler = DPStandardScaler(epsilon, bounds=BOUNDS, random_state=seed).fit(X)
        assert ((low <= scaler.mean_) & (scaler.mean_ <= high)).all()
        assert (0 < scaler.scale_).all() and (scaler.scale_ <= (high - low) / 2).all()


def test_where_noise_leaves_nothing_the_scaler_is_constant():
    scaler = DPStandardScaler(1e-4, bounds=(0, 2)).fit(make_table(n=50))
    np.testing.assert_allclose(scaler.mean_, 1.0)
    np.testing.assert_allclose(scaler.var_, 1 / 3)


def test_a_constant_column_stays_finite():
    X = np.full((1000, 2), 0.7)
    scaler = DPStandardScaler(bounds=(0, 1), epsilon=10.0).fit(X)
    assert np.abs(scaler.transform(X)).max() < 10


def test_means_alone_cost_less_noise():
    X = make_table()
    both = DPStandardScaler(bounds=BOUNDS).fit(X)
    mean = DPStandardScaler(bounds=BOUNDS, with_std=False).fit(X)
    assert mean.privacy_.noise_scale < both.privacy_.noise_scale
    assert mean.var_ is None and mean.scale_ is None
    np.testing.assert_allclose(mean.transform(X), X - mean.mean_)
    scale = DPStandardScaler(bounds=BOUNDS, with_mean=False).fit(X)
    np.testing.assert_allclose(scale.transform(X), X / scale.scale_)
    np.testing.assert_allclose(scale.inverse_transform(scale.transform(X)), X)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_every_type_of_number_is_computed_in_double_precision(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(500, 3)).astype(dtype)
    one = DPStandardScaler(bounds=(0, 2), random_state=0).fit(X)
    other = DPStandardScaler(bounds=(0, 2), random_state=0).fit(X.astype(np.float64))
    np.testing.assert_array_equal(one.var_, other.var_)


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(), columns=["a", "b", "c"])
    scaler = DPStandardScaler(bounds=BOUNDS).set_output(transform="pandas").fit(frame)
    assert list(scaler.transform(frame).columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "params",
    [
        {"bounds": None},
        {"bounds": (1, 0)},
        {"bounds": (0, 0)},
        {"bounds": ([0, 0], [1, 1])},
        {"bounds": (0, [1, np.nan, 1])},
        {"bounds": (0, np.inf)},
        {"bounds": (-1e308, 1e308)},
        {"bounds": (0, 5e-324)},
        {"with_mean": "no"},
        {"bounds": "automatic"},
        {"bounds": (0, "high")},
        {"bounds": (0, 1, 2)},
        {"with_mean": False, "with_std": False},
        {"epsilon": -1.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    accountant = PrivacyAccountant(10.0, 1e-3)
    params = {"bounds": BOUNDS, "accountant": accountant} | params
    with pytest.raises(ValueError):
        DPStandardScaler(**params).fit(make_table())
    assert accountant.charges == []
