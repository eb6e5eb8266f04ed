import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

from skdp import DPPCA, ChunkedArray, PrivacyAccountant

RELATIONS = ["add_remove", "replace_one"]


def make_table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [0.3, 0.2, 0.1, 0.05]
    return X @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + [0.2, 0.0, -0.1, 0.1]


def accountant(relation):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


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


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_is_calibrated_to_the_square_of_data_norm(relation):
    X = np.zeros((1000, 30))
    deviations = []
    for norm in (1.0, 10.0):
        pca = DPPCA(data_norm=norm, center=None, accountant=accountant(relation)).fit(X)
        deviations.append(pca.explained_variance_[0] / pca.privacy_.noise_scale)
    # The largest eigenvalue of the same noise: it fluctuates by a few per cent.
    assert 70 < deviations[1] / deviations[0] < 140


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
