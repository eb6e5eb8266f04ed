import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

from skdp import DPPCA, ChunkedArray, PrivacyAccountant
from skdp.accounting import Guarantee, Neighbors
from tests._attacks import attack_choices
from tests._private import (
    MEAN_WEIGHT,
    SecondMoment,
    _second_moment,
    pack_symmetric,
    second_moment_sensitivity,
)

RELATIONS = ["add_remove", "replace_one"]


def make_table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [0.3, 0.2, 0.1, 0.05]
    return X @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + [0.2, 0.0, -0.1, 0.1]


def accountant(relation):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


def plan(shape, *, with_mean=True, relation="add_remove", epsilon=1.0, delta=1e-6):
    neighbors = Neighbors(relation=relation)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
    n_rows, n_columns = shape
    constant = MEAN_WEIGHT if with_mean else 0.0
    return SecondMoment(guarantee=guarantee, n_rows=n_rows, n_columns=n_columns, constant=constant)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("center", ["mean", None, [0.2, 0.0, -0.1, 0.1]])
def test_huge_epsilon_equals_sklearn(center, delta):
    X = make_table()
    ours = DPPCA(1e10, delta=delta, data_norm=10.0, center=center).fit(X)
    theirs = PCA().fit(X)
    if center != "mean":
        shift = np.zeros(4) if center is None else np.array(center)
        values, vectors = np.linalg.eigh((X - shift).T @ (X - shift) / (len(X) - 1))
        theirs.components_, theirs.explained_variance_ = vectors.T[::-1], values[::-1]
        theirs.explained_variance_ratio_, theirs.mean_ = values[::-1] / values.sum(), shift
    signs = np.sign(np.sum(ours.components_ * theirs.components_, axis=1))[:, None]
    np.testing.assert_allclose(ours.components_ * signs, theirs.components_, atol=1e-3)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, atol=1e-4)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-3
    )
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-3)
    np.testing.assert_allclose(
        ours.transform(X) * signs.T, (X - theirs.mean_) @ theirs.components_.T, atol=1e-3
    )
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-9)


def test_the_norm_can_be_found():
    X = make_table(n=20_000)
    account = accountant("replace_one")
    found = DPPCA(data_norm="auto", accountant=account).fit(X)
    assert [(s.epsilon, s.delta) for s in account.charges] == [(1.0, 1e-6)]
    assert np.mean(np.linalg.norm(X, axis=1) <= found.data_norm_) > 0.95
    assert found.data_norm_ < 4 * np.linalg.norm(X, axis=1).max()
    cosine = abs(found.components_[0] @ PCA().fit(X).components_[0])
    assert cosine > 0.99


def largest_move(relation, with_mean, step=15):
    """The largest distance of neighbors' statistics, over rows of the plane (and beyond)."""
    angles = np.radians(np.arange(0, 360, step))
    rows = [r * np.array([np.cos(a), np.sin(a)]) for r in (0.3, 0.7, 1.0, 3.0) for a in angles]
    vectors = [plan((1, 2), with_mean=with_mean).statistics(row[None]) for row in rows]
    if relation == "add_remove":
        return max(np.linalg.norm(vector) for vector in vectors)
    return max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity(relation, with_mean):
    claimed = plan((1, 2), with_mean=with_mean, relation=relation).mechanism.sensitivity
    assert 0.999 * claimed < largest_move(relation, with_mean) <= claimed


def test_brute_force_catches_a_constant_forgotten_and_one_relation_for_both(monkeypatch):
    assert largest_move("add_remove", True) > second_moment_sensitivity(0.0, "add_remove")
    assert largest_move("replace_one", True) > second_moment_sensitivity(MEAN_WEIGHT, "add_remove")
    monkeypatch.setattr(_second_moment, "clip_rows", lambda X, norm: X)
    assert largest_move("add_remove", False) > second_moment_sensitivity(0.0, "add_remove")


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_is_calibrated_to_the_square_of_data_norm(relation):
    X = np.zeros((1000, 30))
    deviations = []
    for norm in (1.0, 10.0):
        pca = DPPCA(data_norm=norm, center=None, accountant=accountant(relation)).fit(X)
        deviations.append(pca.explained_variance_[0] / pca.privacy_.noise_scale)
    # The largest eigenvalue of the same noise: it fluctuates by a few per cent.
    assert 70 < deviations[1] / deviations[0] < 140


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_has_the_stated_law(delta):
    d, n = 12, 50
    planned = plan((n, d), delta=delta)
    released = []
    for _ in range(40):
        mean, covariance = planned.release(np.zeros((n, d)), None)
        second = covariance * (n - 1) + n * np.outer(mean, mean)
        released.append(pack_symmetric(second))
    noise = np.concatenate(released)
    if delta == 0.0:
        # The norm is Gamma(size)-distributed, a direction uniform: near enough normal.
        law = stats.norm(scale=planned.mechanism.scale * math.sqrt(planned.size))
        assert 0.9 < noise.std() / law.std() < 1.1
    else:
        # A false alarm in 1e6 runs.
        assert stats.kstest(noise, stats.norm(scale=planned.mechanism.scale).cdf).pvalue > 1e-6


def certified(row, n_fits=700):
    """The epsilon that the released largest variance certifies for a row added to null rows."""
    tables = np.zeros((2, 40, 2))
    tables[1, 0] = row
    outputs = [
        [DPPCA(delta=1e-2, center=None).fit(table).explained_variance_[0] for _ in range(n_fits)]
        for table in tables
    ]
    threshold = np.median(outputs)
    return attack_choices(
        *(np.array(o) > threshold for o in outputs), delta=1e-2, confidence=1 - 1e-6
    )


@pytest.mark.thorough
def test_a_distinguisher_finds_rows_that_are_not_clipped(monkeypatch):
    assert certified([1.0, 0.0]) <= 1.0 and certified([3.0, 0.0]) <= 1.0
    monkeypatch.setattr(_second_moment, "clip_rows", lambda X, norm: X)
    # Of squared length 9: what a sensitivity of R in place of R^2 comes to at R = 9.
    assert certified([3.0, 0.0]) > 1.0


def test_rows_are_clipped():
    X = make_table()
    wild = X.copy()
    wild[:50] *= 1e9
    wild[50] = 1e300
    norms = np.linalg.norm(wild[:50], axis=1, keepdims=True)
    wild[51:] = np.minimum(1.0, 0.5 / np.linalg.norm(X[51:], axis=1, keepdims=True)) * X[51:]
    clipped = wild.copy()
    clipped[:50] *= 0.5 / norms
    clipped[50] = 0.0
    one, other = (DPPCA(data_norm=0.5, random_state=0).fit(table) for table in (wild, clipped))
    np.testing.assert_allclose(one.mean_, other.mean_, atol=1e-9)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, atol=1e-9)


@pytest.mark.parametrize("center", ["mean", 0.1])
def test_containers_give_one_answer(center):
    X = make_table(n=300)
    X[X < 0] = 0.0
    expected = DPPCA(random_state=0, center=center).fit(X)
    for table in (csr_array(X), ChunkedArray([X[:100], X[100:]]), np.asfortranarray(X)):
        other = DPPCA(random_state=0, center=center).fit(table)
        np.testing.assert_allclose(other.components_, expected.components_, atol=1e-9)
    np.testing.assert_allclose(expected.transform(csr_array(X)), expected.transform(X), atol=1e-12)


def test_signs_follow_a_public_rule_and_values_are_not_negative():
    pca = DPPCA(0.01).fit(make_table(n=100))
    largest = np.abs(pca.components_).argmax(axis=1)
    assert (pca.components_[np.arange(4), largest] > 0).all()
    assert (pca.explained_variance_ >= 0).all()
    assert (np.diff(pca.explained_variance_) <= 0).all()
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert np.linalg.norm(pca.mean_) <= 1 + 1e-12


def test_one_row_and_frames():
    assert np.isfinite(DPPCA().fit([[0.1, 0.2]]).components_).all()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(), columns=list("abcd"))
    pca = DPPCA(n_components=2).set_output(transform="pandas").fit(frame)
    assert list(pca.transform(frame).columns) == ["dppca0", "dppca1"]


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 5},
        {"n_components": 0},
        {"n_components": 0.9},
        {"data_norm": 0.0},
        {"data_norm": 1e60},
        {"data_norm": "unit"},
        {"center": "median"},
        {"center": [0.0, 1.0]},
        {"center": [0.0, np.nan, 0.0, 0.0]},
        {"center": np.zeros((1, 4))},
        {"epsilon": -1.0},
        {"delta": 1.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    account = accountant("add_remove")
    with pytest.raises(ValueError):
        DPPCA(**({"accountant": account} | params)).fit(make_table(n=20))
    assert account.charges == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, "word"])
def test_bad_values_are_refused_and_not_charged(bad):
    account = accountant("add_remove")
    X = make_table(n=20).astype(object)
    X[3, 1] = bad
    with pytest.raises(ValueError):
        DPPCA(accountant=account).fit(X)
    assert account.charges == []


def largest_computed_move(n=2**18):
    """Return by how much a row moves the statistics as they are computed, rounding and all.

    The other rows make the sums so large that they round what the row adds to them.
    """
    X = np.zeros((n, 2))
    X[: n // 2] = [1.0, 0.0]
    X[n // 2 : -1] = [np.sqrt(0.5), np.sqrt(0.5)]
    planned = plan(X.shape, with_mean=False)
    without, moves = planned.statistics(X), []
    for angle in np.linspace(0.1, 1.5, 12):
        X[-1] = np.cos(angle), np.sin(angle)
        moves.append(np.linalg.norm(planned.statistics(X) - without))
    return max(moves), planned


def test_the_sensitivity_holds_for_sums_as_they_are_computed(monkeypatch):
    moved, planned = largest_computed_move()
    exact = second_moment_sensitivity(0.0, "add_remove")
    # Rounding takes more than the slack of 1e-12 that the formula itself has.
    assert exact * (1.0 + 2e-12) < moved <= planned.mechanism.sensitivity
    monkeypatch.setattr(_second_moment, "UNIT_ROUNDOFF", 0.0)
    assert moved > plan((2**18, 2), with_mean=False).mechanism.sensitivity
