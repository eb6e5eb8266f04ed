"""Audits that leave a person out, with all rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.audit import audit_epsilon, membership_inference
from skdp.exceptions import PrivacyViolationWarning

RNG = np.random.default_rng(0)
IDS = RNG.permutation(np.repeat(np.arange(40), RNG.integers(1, 5, 40)))
X = RNG.uniform(-1.0, 1.0, size=(len(IDS), 2))
Y = RNG.integers(0, 2, len(IDS))
QUIET = {"confidence": 1.0 - 1e-6, "n_fits": 200}


class NoisySum(ClassifierMixin, BaseEstimator):
    """A sum of labels that costs epsilon a person if rows count by shares, and a row if not."""

    def __init__(self, epsilon=0.5, shares=True):
        self.epsilon, self.shares = epsilon, shares

    def fit(self, X, y, *, groups=None):
        self.classes_ = np.array([0, 1])
        row_weights = np.ones(len(y))
        if self.shares and groups is not None:
            person = np.unique(groups, return_inverse=True)[1]
            row_weights = 1.0 / np.bincount(person)[person]
        signs = np.where(np.asarray(y) > 0, 1.0, -1.0)
        self.sum_ = row_weights @ signs + np.random.default_rng().laplace() / self.epsilon
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_rows_that_count_one_each_are_found(relation):
    """Without a violation it is found with a probability below 1e-6."""
    options = {"method": "two_worlds", "groups": IDS, "relation": relation, **QUIET}
    # Replaced, a person moves the sum by twice as much.
    epsilon = 0.5 if relation == "add_remove" else 1.0
    assert not audit_epsilon(NoisySum(), X, Y, epsilon=epsilon, **options).violation
    with pytest.warns(PrivacyViolationWarning):
        assert audit_epsilon(NoisySum(shares=False), X, Y, epsilon=epsilon, **options).violation


class CountingRows(DPLogisticRegression):
    """Tells how many rows there are, which is not public of persons."""

    def fit(self, X, y, *, groups=None):
        super().fit(X, y, groups=groups)
        self.rows_ = len(X) + 0.25
        return self


class CountingSum(NoisySum):
    """Tells how many rows there are."""

    def fit(self, X, y, *, groups=None):
        self.rows_ = len(y) + 0.25
        return super().fit(X, y, groups=groups)


def test_the_number_of_rows_is_not_public_of_persons():
    """Without a violation it is found with a probability below 1e-6."""
    options = {"method": "two_worlds", "relation": "replace_one", "epsilon": 1.0, **QUIET}
    with pytest.warns(PrivacyViolationWarning):
        assert audit_epsilon(CountingSum(), X, Y, groups=IDS, **options).violation
    assert not audit_epsilon(CountingSum(), X, Y, **options).violation


@pytest.mark.slow
def test_tables_of_one_number_of_persons_tell_of_their_rows():
    accountant = PrivacyAccountant(1e9, 0.5, unit="person")
    model = CountingRows(epsilon=0.2, mechanism="output", accountant=accountant)
    options = {"confidence": 1.0 - 1e-6, "n_fits": 60, "n_samples": 30}
    with pytest.warns(PrivacyViolationWarning):
        assert audit_epsilon(model, **options).violation
    row = model.set_params(accountant=None)
    assert not audit_epsilon(row, **options).violation
    assert accountant.epsilon_spent == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["worst_case", "two_worlds", "one_run"])
def test_the_claim_for_a_person_stands(method):
    model = DPLogisticRegression(
        mechanism="output", accountant=PrivacyAccountant(1e9, 0.5, unit="person")
    )
    options = {"confidence": 1.0 - 1e-6, "n_fits": 200, "n_canaries": 100, "n_samples": 60}
    assert not audit_epsilon(model, X, Y, groups=IDS, method=method, **options).violation


@pytest.mark.parametrize("attack", ["loss", "shadow", "lira", "rmia"])
def test_membership_is_of_persons(attack):
    tree, options = DecisionTreeClassifier(random_state=0), {"n_shadow": 16, "random_state": 0}
    found = membership_inference(tree, X, Y, groups=IDS, attack=attack, **options)
    assert found.members.shape == found.scores.shape == (40,) and found.members.sum() == 20
    assert found.train_score == 1.0 and found.auc.value > 0.7


def test_halves_are_of_whole_persons(monkeypatch):
    seen, own = [], DPLogisticRegression.fit

    def recording(self, X, y, *, groups=None):
        seen.append((X[:, 0].tolist(), groups))
        return own(self, X, y, groups=groups)

    monkeypatch.setattr(DPLogisticRegression, "fit", recording)
    model = DPLogisticRegression(mechanism="output")
    found = membership_inference(model, X, Y, groups=IDS, n_shadow=4, random_state=0)
    person_of = dict(zip(X[:, 0].tolist(), IDS, strict=True))
    assert len(seen) == 5
    for column, groups in seen:
        persons = {person_of[value] for value in column}
        assert len(persons) == len(set(groups)) == 20
        assert len(column) == np.isin(IDS, list(persons)).sum()
    # Persons are numbered by their first rows.
    rows = pd.factorize(IDS)[0]
    fitted = model.fit(X[found.members[rows]], Y[found.members[rows]])
    again = membership_inference(
        fitted, X, Y, groups=IDS, members=found.members[rows], attack="loss"
    )
    np.testing.assert_array_equal(again.members, found.members)
    torn = np.append(~found.members[rows][:1], found.members[rows][1:])
    with pytest.raises(ValueError, match="all rows of a person"):
        membership_inference(fitted, X, Y, groups=IDS[:1].repeat(len(IDS)), members=torn)
