"""Folds from iterators: what cannot be known of them is said, and what is known is judged."""

import itertools
import warnings

import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

from skdp import DPLogisticRegression, PrivacyAccountant, RawDataWarning
from skdp.calibration import DPCalibratedClassifierCV
from skdp.model_selection import (
    DPGridSearchCV,
    DPTunedThresholdClassifierCV,
    dp_cross_val_score,
    dp_cross_validate,
    make_dp_scorer,
)

X, y = make_classification(300, 4, n_informative=2, random_state=0)


def stratified():
    return StratifiedKFold(3).split(X, y)


def by_row():
    return KFold(3).split(X)


def generated(folds):
    yield from folds


UNKNOWN = {
    "tee": lambda: itertools.tee(stratified())[0],
    "chain": lambda: itertools.chain(stratified()),
    "islice": lambda: itertools.islice(stratified(), 2),
    "iterator of a list": lambda: iter(list(stratified())),
    "function": lambda: generated(stratified()),
    "splitter": stratified,
}
KNOWN = {
    "splitter": by_row,
    "expression": lambda: (fold for fold in by_row()),
    "list": lambda: list(by_row()),
}


def warnings_of(cv, run):
    accountant = PrivacyAccountant(100.0, 1e-3)
    model = DPLogisticRegression(
        0.1, delta=1e-6, data_norm=2.0, classes=[0, 1], accountant=accountant
    )
    scorer = make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(model, cv, scorer)
    return [warning for warning in caught if issubclass(warning.category, RawDataWarning)]


def score(model, cv, scorer):
    cross_val_score(model, X, y, scoring=scorer, cv=cv)


def search(model, cv, scorer):
    GridSearchCV(model, {"C": [0.1, 1.0]}, scoring=scorer, cv=cv).fit(X, y)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("run", [score, search])
@pytest.mark.parametrize("name", UNKNOWN)
def test_folds_of_which_nothing_is_known_are_named_once(name, run):
    assert len(warnings_of(UNKNOWN[name](), run)) == 1


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("run", [score, search])
@pytest.mark.parametrize("name", KNOWN)
def test_folds_by_row_number_are_silent(name, run):
    assert warnings_of(KNOWN[name](), run) == []


OWN = {
    "cross_validate": lambda model, **params: dp_cross_validate(model, X, y, **params),
    "cross_val_score": lambda model, **params: dp_cross_val_score(model, X, y, **params),
    "search": lambda model, **params: DPGridSearchCV(model, {"C": [0.1, 1.0]}, **params).fit(X, y),
    "threshold": lambda model, **params: DPTunedThresholdClassifierCV(
        model, refit=True, **params
    ).fit(X, y),
    "calibration": lambda model, **params: DPCalibratedClassifierCV(
        model, refit=True, **params
    ).fit(X, y),
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", OWN)
def test_the_generator_of_a_splitter_is_what_the_splitter_is(name):
    accountant = PrivacyAccountant(100.0, 1e-3)
    model = DPLogisticRegression(data_norm=2.0)
    with pytest.raises(ValueError, match="StratifiedKFold"):
        OWN[name](model, cv=stratified(), accountant=accountant)
    assert accountant.epsilon_spent == 0.0
    OWN[name](model, cv=by_row(), accountant=accountant)
    assert accountant.epsilon_spent == 1.0
