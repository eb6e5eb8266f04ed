"""Gaussian naive Bayes: its sensitivities, its limit, and what it does where noise rules."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skdp import ChunkedArray, DPGaussianNB
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism

KINDS = {0.0: LaplaceMechanism, 1e-6: GaussianMechanism}


def blobs(n=3000, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    X = rng.normal(size=(n, 2)) * [1.0, 3.0] + 2.5 * np.column_stack([y, -y])
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("delta", KINDS)
def test_without_noise_it_is_scikit_learns(delta, n_classes):
    X, y = blobs(n_classes=n_classes)
    theirs = GaussianNB().fit(X, y)
    ours = DPGaussianNB(1e10, delta=delta, bounds=(-20, 20)).fit(X, y)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, atol=1e-3)
    np.testing.assert_allclose(ours.var_, theirs.var_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    assert ours.decision_function(X).shape == ((len(y),) if n_classes == 2 else (len(y), 3))


def test_declared_priors_change_predictions_alone():
    X, y = blobs()
    priors = [0.5, 0.0, 0.5]
    ours = DPGaussianNB(1e10, bounds=(-20, 20), priors=priors).fit(X, y)
    theirs = GaussianNB(priors=priors).fit(X, y)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, atol=1e-3)
    assert ours.class_prior_.tolist() == priors and not (ours.predict(X) == 1).any()
    for wrong in (
        [0.5, 0.5],
        [0.5, 0.6, 0.5],
        [1.5, -0.5, 0.0],
        [np.nan, 0.5, 0.5],
        "auto",
        10**400,
    ):
        with pytest.raises(ValueError, match="priors must be"):
            DPGaussianNB(bounds=(-20, 20), priors=wrong).fit(X, y)


def test_a_class_that_noise_drowns_is_spread_over_the_bounds(monkeypatch):
    """A class of a few rows beside 20 000: its own moments say nothing at this epsilon."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(1.0, 0.5, size=(20_000, 3)), (np.arange(20_000) < 5).astype(int)
    for _ in range(5):
        model = DPGaussianNB(0.1, bounds=(-4, 4)).fit(X, y)
        assert np.isfinite(model.decision_function(X[:9])).all() and (model.var_ > 0).all()
        assert model.class_prior_.min() > 0.0 and model.class_prior_.sum() == pytest.approx(1.0)
    # As if noise had been 0, but as large as it is.
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, values, **_: values)
    model = DPGaussianNB(0.1, bounds=(-4, 4)).fit(X, y)
    np.testing.assert_allclose(model.theta_[0], X[5:].mean(axis=0), atol=0.01)
    assert (model.theta_[1] == 0.0).all()
    np.testing.assert_allclose(model.var_[1], 4.0**2 / 3.0)


def test_bounds_are_found_and_chunks_are_read():
    X, y = blobs(20_000)
    model = DPGaussianNB(1.0).fit(X, y)
    low, high = model.bounds_
    assert (low < -1).all() and (high > 1).all() and model.score(X, y) > 0.8
    parts = ChunkedArray(np.array_split(X, 7))
    fits = [DPGaussianNB(bounds=(-20, 20), random_state=0).fit(table, y) for table in (X, parts)]
    np.testing.assert_allclose(fits[0].theta_, fits[1].theta_, rtol=1e-9)
    np.testing.assert_array_equal(fits[0].predict(X), fits[0].predict(parts))
