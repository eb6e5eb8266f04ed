"""DPMinMaxScaler, DPMaxAbsScaler, DPRobustScaler and DPQuantileTransformer."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, QuantileTransformer, RobustScaler

from skdp import (
    DPMaxAbsScaler,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPRobustScaler,
    PrivacyAccountant,
)
from skdp.accounting import Composed, Guarantee, Neighbors, get_epsilon
from skdp.base import TableShape
from tests._attacks import attack_choices

SCALERS = [DPMinMaxScaler, DPMaxAbsScaler, DPRobustScaler, DPQuantileTransformer]
BOUNDS = ([0.0, -10.0, 5.0], [1.0, 10.0, 6.0])


def make_table(n=20_000, seed=0):
    """Uniform, so that neighboring rows are near each other at the ends too."""
    low, high = map(np.array, BOUNDS)
    return low + (high - low) * np.random.default_rng(seed).uniform(size=(n, 3))


def accountant(relation="add_remove"):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


def test_huge_epsilon_equals_sklearn():
    X = make_table(n=100_000)
    common = {"epsilon": 1e10, "bounds": BOUNDS}
    pairs = [
        (DPMinMaxScaler(**common), MinMaxScaler()),
        (DPMinMaxScaler(**common, feature_range=(-1, 3), clip=True), MinMaxScaler((-1, 3))),
        (DPMaxAbsScaler(**common), MaxAbsScaler()),
        (DPRobustScaler(**common), RobustScaler()),
        (
            DPRobustScaler(**common, quantile_range=(10, 80), with_centering=False),
            RobustScaler(quantile_range=(10, 80), with_centering=False),
        ),
    ]
    for ours, theirs in pairs:
        ours.fit(X), theirs.fit(X)
        expected = theirs.transform(X)
        # Within a thousandth of the range of what scikit-learn returns.
        size = 1e-3 * np.ptp(expected, axis=0).max()
        np.testing.assert_allclose(ours.transform(X), expected, atol=size)
        if not getattr(ours, "clip", False):
            np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_extremes_far_from_other_rows_are_found_with_huge_epsilon(delta):
    X = np.clip(np.random.default_rng(0).standard_cauchy(size=(500, 3)), -90.0, 95.0)
    ours = DPMaxAbsScaler(1e10, delta=delta, bounds=(-100, 100)).fit(X)
    np.testing.assert_allclose(ours.max_abs_, np.abs(X).max(axis=0), atol=1e-3)
    ours = DPMinMaxScaler(1e10, delta=delta, bounds=(-100, 100)).fit(X)
    np.testing.assert_allclose(ours.data_min_, X.min(axis=0), atol=1e-3)
    np.testing.assert_allclose(ours.data_max_, X.max(axis=0), atol=1e-3)


@pytest.mark.thorough
def test_huge_epsilon_equals_sklearn_for_many_quantiles():
    X = np.vstack([make_table(n=100_000), *BOUNDS])
    for distribution in ("uniform", "normal"):
        ours = DPQuantileTransformer(
            1e10, bounds=BOUNDS, n_quantiles=1000, output_distribution=distribution
        ).fit(X)
        theirs = QuantileTransformer(
            n_quantiles=1000, output_distribution=distribution, subsample=None
        ).fit(X)
        np.testing.assert_array_equal(ours.references_, theirs.references_)
        np.testing.assert_allclose(ours.quantiles_[:, 0], theirs.quantiles_[:, 0], atol=1e-3)
        size = 1e-3 if distribution == "uniform" else 1e-3 * 10.4
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=size)
        np.testing.assert_allclose(
            ours.inverse_transform(ours.transform(X[:500])), X[:500], atol=1e-6
        )


@pytest.mark.parametrize("scaler", SCALERS)
def test_found_bounds_do_nearly_as_well(scaler):
    X = make_table()
    declared = scaler(bounds=BOUNDS).fit(X).transform(X)
    found = scaler().fit(X)
    assert np.median(np.abs(found.transform(X) - declared)) < 0.05


def ranks_of(released, X):
    return np.array([(X[:, j] < released[..., j, None]).mean(axis=-1) for j in range(X.shape[1])]).T


def test_errors_of_ranks_are_of_the_stated_scale():
    X = make_table()
    shape = TableShape(n_rows=len(X), n_columns=X.shape[1])
    plan = DPRobustScaler(bounds=BOUNDS).plan_fit(shape, Guarantee(epsilon=1.0))
    errors = []
    for _ in range(60):
        scaler = DPRobustScaler(bounds=BOUNDS).fit(X)
        errors.append((X < scaler.center_).mean(axis=0) - 0.5)
    errors = np.abs(errors) * len(X)
    scale = plan.scale
    # A rank's error is exponential: beyond 25 scales in 180 draws with probability 3e-9.
    assert errors.max() < 25 * scale and errors.mean() > scale / 20


@pytest.mark.parametrize("scaler", SCALERS)
def test_values_beyond_the_bounds_are_clipped_in_fit(scaler):
    X = make_table(n=500)
    wild = X.copy()
    wild[:20] = [1e300, -1e300, 1e9]
    clipped = np.clip(wild, *BOUNDS)
    one, other = (
        scaler(bounds=BOUNDS, random_state=0).fit(t).transform(X) for t in (wild, clipped)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("bounds", ["auto", (0, 1)])
def test_constants_one_row_and_small_budgets_stay_finite(scaler, bounds):
    for X in (np.full((1000, 2), 0.7), np.zeros((1000, 2)), [[0.3, 0.7]], np.eye(2)):
        for epsilon in (1e-3, 1.0, 1e6):
            fitted = scaler(epsilon, bounds=bounds).fit(X)
            assert np.isfinite(fitted.transform(X)).all()
            assert np.abs(fitted.transform(X)).max() < 1e7


def test_the_tails_that_are_cut_off_follow_from_public_sizes():
    def share(n, epsilon, d=1):
        X = np.random.default_rng(0).uniform(size=(n, d))
        return DPMinMaxScaler(epsilon, bounds=(0, 1)).fit(X).quantile_range_[0] / 100

    assert share(50, 1.0) == 0.05
    assert share(100_000, 1.0) < 0.001 < share(1000, 1.0)
    assert share(10_000, 1.0, d=10) > share(10_000, 1.0)
    assert share(10_000, 1e9) < 1e-10


def test_the_number_of_quantiles_follows_from_public_sizes():
    def count(n, epsilon, **params):
        X = np.random.default_rng(0).uniform(size=(n, 1))
        return DPQuantileTransformer(epsilon, bounds=(0, 1), **params).fit(X).n_quantiles_

    assert count(20, 0.1) == 3 and count(200_000, 1e6) == 1025
    assert 5 <= count(2000, 1.0) <= 65 and count(100, 1.0, n_quantiles=17) == 17


@pytest.mark.parametrize("scaler", SCALERS)
def test_bounds_and_quantiles_are_one_charge(scaler):
    account = accountant()
    scaler(2.0, delta=1e-6, accountant=account).fit(make_table(n=500))
    assert [(s.epsilon, s.delta) for s in account.charges] == [(2.0, 1e-6)]


def certified(epsilon, n_fits=1500):
    """The epsilon that the median certifies for the row at 0.1."""
    scaler = DPRobustScaler(epsilon, bounds=(0, 1), with_scaling=False)
    outputs = [[scaler.fit(X).center_[0] for _ in range(n_fits)] for X in ([[0.9]], [[0.1], [0.9]])]
    return attack_choices(*(np.array(o) > 0.9 for o in outputs), confidence=1 - 1e-6)


@pytest.mark.thorough
def test_a_distinguisher_finds_too_little_noise():
    assert certified(1.0) <= 1.0
    # A copy that claims 1 and draws its noise for 8 is found.
    assert certified(8.0) > 1.0


def test_bounds_are_searched_with_their_share_only():
    shape = TableShape(n_rows=100, n_columns=2)
    replaced = Neighbors(relation="replace_one")
    guarantee = Guarantee(epsilon=1.0, delta=1e-6, neighbors=replaced)
    plan = DPRobustScaler(with_scaling=False).plan_fit(shape, guarantee)
    search = Composed(tuple(stage.event for stage in plan.stages[:-1]))
    remaining = plan.mechanism.guarantee
    spent = get_epsilon(search, guarantee.delta - remaining.delta, relation="replace_one")
    assert 0.2 * (1 - 1e-9) <= spent <= 0.2
    assert 0.8 * (1 - 1e-9) <= remaining.epsilon <= 0.8 and remaining.delta > 0.0
    assert remaining.neighbors == replaced


@pytest.mark.parametrize("scaler", SCALERS)
def test_frames_and_metadata_routing(scaler):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(n=100), columns=["a", "b", "c"])
    with config_context(enable_metadata_routing=True):
        fitted = scaler(bounds=BOUNDS).set_output(transform="pandas").fit(frame)
    assert list(fitted.transform(frame).columns) == ["a", "b", "c"]


@pytest.mark.thorough
def test_many_columns():
    X = np.random.default_rng(0).uniform(size=(20, 10_000))
    assert DPRobustScaler(with_scaling=False).fit(X).center_.shape == (10_000,)


COMMON = [
    {"bounds": None},
    {"bounds": (1, 0)},
    {"bounds": (0, [1, np.nan, 1])},
    {"bounds": "found"},
    {"epsilon": -1.0},
]


@pytest.mark.parametrize(
    ("scaler", "params"),
    [
        *((scaler, params) for scaler in SCALERS for params in COMMON),
        (DPMinMaxScaler, {"feature_range": (1, 0)}),
        (DPMinMaxScaler, {"feature_range": "unit"}),
        (DPMinMaxScaler, {"clip": "yes"}),
        (DPMinMaxScaler, {"quantile_range": "all"}),
        (DPMinMaxScaler, {"quantile_range": (50, 20)}),
        (DPMaxAbsScaler, {"quantile": "all"}),
        (DPMaxAbsScaler, {"quantile": 0.0}),
        (DPMaxAbsScaler, {"quantile": 100.1}),
        (DPMaxAbsScaler, {"quantile": np.nan}),
        (DPMaxAbsScaler, {"quantile": True}),
        (DPMaxAbsScaler, {"clip": None}),
        (DPRobustScaler, {"quantile_range": (-1, 20)}),
        (DPRobustScaler, {"quantile_range": "auto"}),
        (DPRobustScaler, {"with_centering": False, "with_scaling": False}),
        (DPRobustScaler, {"with_centering": None}),
        (DPQuantileTransformer, {"n_quantiles": 2}),
        (DPQuantileTransformer, {"n_quantiles": 10.0}),
        (DPQuantileTransformer, {"output_distribution": "beta"}),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(scaler, params):
    account = accountant()
    with pytest.raises(ValueError):
        scaler(**({"accountant": account, "bounds": BOUNDS} | params)).fit(make_table(n=20))
    assert account.charges == []


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, "word"])
def test_bad_values_are_refused_and_not_charged(scaler, bad):
    account = accountant()
    X = make_table(n=20).astype(object)
    X[3, 1] = bad
    with pytest.raises(ValueError):
        scaler(accountant=account).fit(X)
    assert account.charges == []
