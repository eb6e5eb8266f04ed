"""A part of a budget that is charged before it is spent."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from skdp import BudgetExceededError, DPLogisticRegression, PrivacyAccountant, tabular_pipeline
from skdp.accounting import PureDP

X = np.random.default_rng(0).uniform(size=(300, 2))
y = X[:, 0] > 0.5


def test_a_reserved_cross_validation_is_whole_whatever_others_spend():
    accountant = PrivacyAccountant(3.0, 1e-5)
    folds = accountant.reserve(2.0, 4e-6, label="four folds")
    accountant.charge(PureDP(1.0))
    terms = {"epsilon": 0.5, "delta": 1e-6, "accountant": folds}
    pipe = tabular_pipeline(DPLogisticRegression, bounds=(0, 1), **terms)
    assert np.isfinite(cross_val_score(pipe, X, y, cv=KFold(4))).all()
    assert accountant.epsilon_spent == 3.0
    assert folds.epsilon_remaining == 0.0
    with pytest.raises(BudgetExceededError):
        clone(pipe).fit(X, y)


def test_what_cannot_be_paid_is_not_reserved():
    accountant = PrivacyAccountant(1.0, 0.0)
    for asked in ((1.5, 0.0), (0.5, 1e-6)):
        with pytest.raises(BudgetExceededError):
            accountant.reserve(*asked)
    assert accountant.charges == []


def test_a_reserved_part_keeps_its_cap_in_every_handle(tmp_path):
    accountant = PrivacyAccountant(2.0, 0.0, ledger=tmp_path / "budget.db", dataset="people")
    part = accountant.reserve(1.0, label="a plan")
    again = PrivacyAccountant(1.0, 0.0, ledger=tmp_path / "budget.db", dataset=part.dataset)
    for handle in (part, pickle.loads(pickle.dumps(part)), again):
        with pytest.raises(ValueError, match="cannot be changed"):
            handle.change_limit(9.0, 0.0, reason="more")
    assert [spend.label for spend in accountant.charges] == ["a plan"]
    # A second one is a part of its own.
    assert accountant.reserve(1.0).dataset != part.dataset
    assert accountant.epsilon_remaining == 0.0


def test_a_part_of_a_part_is_paid_by_the_part():
    accountant = PrivacyAccountant(1.0, 0.0)
    part = accountant.reserve(0.5)
    part.reserve(0.25)
    assert (accountant.epsilon_spent, part.epsilon_spent) == (0.5, 0.25)


@pytest.mark.parametrize("terms", [{"composition": "zcdp"}, {"unit": "group", "max_rows": 2}])
def test_terms_under_which_a_sum_is_no_price_are_refused(terms):
    accountant = PrivacyAccountant(1.0, 1e-5, **terms)
    with pytest.raises(ValueError, match="composition='basic'"):
        accountant.reserve(0.5)
    assert accountant.charges == []
