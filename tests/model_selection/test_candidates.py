"""Candidates: no accountant that is passed over, no label set that a part of the rows decides."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from skdp import DPGridSearchCV, DPStandardScaler, PrivacyAccountant
from skdp.model_selection import dp_cross_val_score, dp_validation_curve
from tests.model_selection.toys import NoisyVote

GRID = {"shift": [0.0, 1.0]}


@pytest.fixture
def table():
    return np.zeros((60, 1)), np.arange(60) % 2


@pytest.fixture
def accountant():
    return PrivacyAccountant(1.0, 1e-5)


@pytest.mark.parametrize("accounted", [False, True])
def test_an_accountant_that_would_not_be_charged_is_refused(table, accountant, accounted):
    own = PrivacyAccountant(1.0, 1e-5) if accounted else None
    vote = NoisyVote(accountant=accountant)
    curve = {"param_name": "shift", "param_range": [0.0]}
    for release in (
        lambda: DPGridSearchCV(vote, GRID, accountant=own).fit(*table),
        lambda: DPGridSearchCV(
            make_pipeline(NoisyVote()), {"noisyvote": [NoisyVote(), vote]}, accountant=own
        ).fit(*table),
        lambda: DPGridSearchCV(DPGridSearchCV(vote, GRID), {"refit": [True]}, accountant=own).fit(
            *table
        ),
        lambda: dp_cross_val_score(vote, *table, accountant=own),
        lambda: dp_validation_curve(vote, *table, accountant=own, **curve),
    ):
        with pytest.raises(ValueError, match="separate accountant"):
            release()
    assert not accountant.charges and (own is None or not own.charges)


def test_the_accountant_of_the_search_may_stand_in_it_too(table, accountant):
    inner = DPGridSearchCV(NoisyVote(accountant=accountant), GRID, accountant=accountant)
    given = {"delta": 1e-5, "accountant": accountant, "strategy": "holdout"}
    found = DPGridSearchCV(inner, {"refit": [True]}, **given).fit(*table)
    assert len(accountant.charges) == 1 and accountant.epsilon_spent == 1.0
    later = clone(found.best_estimator_)
    assert later.accountant is accountant and later.estimator.accountant is None


def test_what_is_fitted_no_more_keeps_its_accountant(accountant):
    X, y = np.random.default_rng(0).uniform(size=(60, 1)), np.arange(60) % 2
    scaler = DPStandardScaler(epsilon=0.5, bounds=(0, 1), accountant=accountant).fit(X)
    pipe = make_pipeline(FrozenEstimator(scaler), NoisyVote())
    found = DPGridSearchCV(pipe, {"noisyvote__shift": [0.0]}, strategy="holdout").fit(X, y)
    assert found.best_estimator_[0].estimator.accountant is accountant


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("flipped", [0, 7])
def test_a_search_inside_knows_all_labels(flipped):
    # Rows 30 to 59 alone are trained on: whether one of them is of the third label is private.
    y = np.arange(60) % 2
    y[0], y[40] = 7, flipped
    inner = DPGridSearchCV(NoisyVote(), GRID, strategy="holdout")
    for estimator in (inner, make_pipeline(inner)):
        name = "refit" if estimator is inner else "dpgridsearchcv__refit"
        cv = [(np.arange(30, 60), np.arange(30))]
        given = {"strategy": "holdout", "refit": False, "cv": cv}
        found = DPGridSearchCV(estimator, {name: [True]}, **given).fit(np.zeros((60, 1)), y)
        assert found.classes_.tolist() == [0, 1, 7]
