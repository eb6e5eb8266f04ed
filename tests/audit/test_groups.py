"""Membership by class and by group, and of a sequence of releases."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier

from skdp import DPLogisticRegression
from skdp.audit import membership_inference, success_bound


def table(n=400, d=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] > 0).astype(int) ^ (rng.random(n) < 0.3)


class Remembers(ClassifierMixin, BaseEstimator):
    """Gives away the rows of a group, and of no other."""

    def fit(self, X, y):
        self.classes_, self.rows_ = np.unique(y), {row.tobytes() for row in X}
        return self

    def predict_proba(self, X):
        known = np.array([row[0] > 0 and row.tobytes() in self.rows_ for row in X])
        noise = np.random.default_rng(0).uniform(0.2, 0.4, len(X))
        right = np.where(known, 0.9, noise)
        return np.column_stack([1.0 - right, right])

    def predict(self, X):
        return np.ones(len(X), dtype=int)


def test_the_group_that_a_model_remembers_is_named():
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.ones(400, dtype=int)
    y[:2] = 0
    group = np.where(X[:, 0] > 0, "shown", "hidden")
    found = membership_inference(Remembers(), X, y, attack="loss", random_state=0)
    by_group = found.by_group(group)
    assert by_group["shown"].auc.low > 0.9
    assert by_group["hidden"].auc.low <= 0.5 <= by_group["hidden"].auc.high
    assert sum(len(each.scores) for each in by_group.values()) == 400
    assert by_group["shown"].confidence == pytest.approx(0.975)


@pytest.mark.thorough
def test_intervals_of_groups_hold_together():
    """P(Binomial(100, .95) < 85) = 3e-5; of five groups at 95 % each only 77 % would hold."""
    rng, held = np.random.default_rng(0), 0
    X, y = table(300, 2)
    found = membership_inference(LogisticRegression(), X, y, attack="loss", random_state=0)
    for _ in range(100):
        # Members are drawn after the fit: there is nothing to find.
        chance = replace(found, members=rng.permutation(found.members))
        groups = chance.by_group(np.arange(300) % 5).values()
        held += all(each.auc.low <= 0.5 <= each.auc.high for each in groups)
    assert held >= 85


def test_groups_of_persons_and_bad_groups():
    X, y = table(90, 3)
    person = np.arange(90) // 3
    found = membership_inference(
        LogisticRegression(), X, y, groups=person, n_shadow=4, random_state=0
    )
    assert len(found.by_group(np.arange(30) % 2)) == 2
    with pytest.raises(ValueError, match="inconsistent"):
        found.by_group(y)
    with pytest.raises(ValueError, match="group 29 with only members"):
        found.by_group(np.where(np.arange(30) == 29, 29, 0))


def months(estimator, X, y, members):
    for size in range(300, 401, 20):
        rows = np.flatnonzero(members[:size])
        yield clone(estimator).fit(X[rows], y[rows])


def last_month(estimator, X, y, members):
    yield estimator.fit(X[members], y[members])


def epochs(estimator, X, y, members, n_seen, n_epochs=16):
    for epoch in range(n_epochs):
        estimator.partial_fit(X[members], y[members], classes=[0, 1])
        if epoch >= n_epochs - n_seen:
            yield estimator


@pytest.mark.thorough
def test_refits_of_a_growing_table_give_away_who_joined():
    X, y = table()
    late, model = np.arange(400) >= 300, LogisticRegression(C=10.0)
    options = {"n_shadow": 32, "random_state": 0}
    one = membership_inference(model, X, y, releases=last_month, **options)
    same = membership_inference(model, X, y, variance="global", **options)
    # A sequence of one model is one model, up to what few shadows leave to chance.
    assert np.corrcoef(one.scores, same.scores)[0, 1] > 0.9
    both = [
        membership_inference(model, X, y, releases=releases, **options).by_group(late)[True]
        for releases in (last_month, months)
    ]
    assert both[1].auc.low > 0.7 and both[1].auc.value > both[0].auc.value + 0.05


@pytest.mark.thorough
def test_observed_epochs_give_away_more_than_the_last():
    """Means over eight targets: 0.59 and 0.53; over eight seeds the first varied by 0.013."""
    X, y = table()
    # The order of rows in each epoch is that of numpy's global generator.
    np.random.seed(0)  # noqa: NPY002
    model = SGDClassifier("log_loss", learning_rate="constant", eta0=50.0)
    few, many = (
        [
            membership_inference(
                model, X, y, releases=partial(epochs, n_seen=n), n_shadow=12, random_state=seed
            ).auc.value
            for seed in range(8)
        ]
        for n in (1, 16)
    )
    assert np.mean(many) > 0.54 and np.mean(many) > np.mean(few)


@pytest.mark.thorough
def test_a_claim_for_a_sequence_stands_and_a_leaky_one_breaks_it():
    """At 99.99 %: false alarms below 1e-4. Each private fit has a sixth of 0.1.

    An attack is right with a probability of at most 1 / (1 + e^-0.2), members being so many.
    """
    X, y = table()
    private = DPLogisticRegression(0.1 / 6, delta=0.0, mechanism="output", C=0.1)
    most = 1.0 / (1.0 + np.exp(-0.2))
    options = {"releases": months, "n_shadow": 16, "confidence": 0.9999, "random_state": 0}
    plain = membership_inference(LogisticRegression(C=10.0), X, y, **options)
    assert plain.accuracy.low > most
    assert membership_inference(private, X, y, **options).accuracy.low <= most


@pytest.mark.parametrize(
    "options", [{"attack": "rmia"}, {"offline": True}, {"members": np.arange(60) < 30}]
)
def test_what_sequences_are_not_attacked_with(options):
    X, y = table(60, 3)
    with pytest.raises(ValueError, match="releases"):
        membership_inference(KNeighborsClassifier().fit(X, y), X, y, releases=last_month, **options)


def test_success_bound():
    """It is the region of the definition: for an event, and for its other."""
    p = np.linspace(0.0, 1.0, 101)
    for epsilon, delta in ((0.0, 0.0), (0.5, 0.0), (1.0, 1e-2), (3.0, 0.2)):
        most = success_bound(p, epsilon, delta)
        assert (most >= p - 1e-12).all() and (most <= 1.0).all()
        assert (most <= np.exp(epsilon) * p + delta + 1e-12).all()
        assert (1.0 - p <= np.exp(epsilon) * (1.0 - most) + delta + 1e-12).all()
        corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
        largest = (np.exp(epsilon) - 1.0 + 2.0 * delta) / (np.exp(epsilon) + 1.0)
        assert success_bound(corner, epsilon, delta) - corner == pytest.approx(largest)
        assert (most - p <= largest + 1e-12).all()
    assert success_bound(0.0, np.inf) == 1.0 and success_bound(0.5, 800.0) == 1.0
    for bad in ((1.5, 1.0), (-0.1, 1.0), (np.nan, 1.0), (0.5, -1.0), (0.5, 1.0, 2.0)):
        with pytest.raises(ValueError, match=r"without|epsilon|delta"):
            success_bound(*bad)
