"""A wrong parameter of any member of scikit-learn's tools costs nothing."""

import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union

from skdp import DPLogisticRegression, DPOneHotEncoder, DPRidge, DPStandardScaler, PrivacyAccountant
from skdp.model_selection import make_dp_scorer

N = 90
X = np.random.default_rng(0).uniform(size=(N, 3))
Y = (X[:, 0] > 0.5).astype(int)
FOLDS = KFold(2)

pytestmark = pytest.mark.filterwarnings("ignore")


def model(accountant, **params):
    return DPLogisticRegression(**({"data_norm": 2.0, "accountant": accountant} | params))


def scaler(accountant, **params):
    return DPStandardScaler(**({"bounds": (0, 1), "accountant": accountant} | params))


def ridge(accountant, **params):
    options = {"data_norm": 2.0, "target_bounds": (0, 1), "accountant": accountant}
    return DPRidge(**(options | params))


def grid(accountant, wrong):
    grid = [{"C": [1.0]}, {name: [value] for name, value in wrong.items()}]
    score = make_dp_scorer("accuracy", accountant=accountant)
    return GridSearchCV(model(accountant), grid, scoring=score, cv=FOLDS, error_score="raise")


CLASSIFIERS = {
    "pipeline": lambda a, w: make_pipeline(scaler(a), model(a, **w)),
    "voting": lambda a, w: VotingClassifier([("a", model(a)), ("b", model(a, **w))]),
    "voting in threads": lambda a, w: VotingClassifier(
        [("a", model(a)), ("b", model(a, **w))], n_jobs=2
    ),
    "voting of pipelines": lambda a, w: VotingClassifier(
        [("a", model(a)), ("b", make_pipeline(scaler(a), model(a, **w)))]
    ),
    "voting in a pipeline": lambda a, w: make_pipeline(
        scaler(a), VotingClassifier([("a", model(a)), ("b", model(a, **w))])
    ),
    "stacking": lambda a, w: StackingClassifier(
        [("a", model(a)), ("b", model(a, **w))], final_estimator=model(a), cv=FOLDS
    ),
    "final estimator": lambda a, w: StackingClassifier(
        [("a", model(a))], final_estimator=model(a, **w), cv=FOLDS
    ),
    "selection": lambda a, w: make_pipeline(SelectFromModel(model(a)), model(a, **w)),
    "grid": grid,
}
WRONG = [
    {"mechanism": "x"},
    {"C": -1},
    {"data_norm": -1},
    {"classes": [0, 5]},
    {"class_weight": {7: 1.0}},
    {"epsilon": "1"},
]


def spent(fit):
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    with pytest.raises((TypeError, ValueError)):
        fit(accountant)
    return accountant.epsilon_spent


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))
@pytest.mark.parametrize("tool", sorted(CLASSIFIERS))
def test_a_wrong_parameter_of_a_later_member_costs_nothing(tool, wrong):
    assert spent(lambda a: CLASSIFIERS[tool](a, wrong).fit(X, Y)) == 0.0


@pytest.mark.parametrize("wrong", [{"target_bounds": None}, {"data_norm": "a"}, {"mechanism": "x"}])
def test_a_wrong_regressor_costs_nothing(wrong):
    def voting(a):
        VotingRegressor([("a", ridge(a)), ("b", ridge(a, **wrong))]).fit(X, X[:, 0])

    def transformed(a):
        TransformedTargetRegressor(ridge(a, **wrong), transformer=scaler(a)).fit(X, X[:, 0])

    assert spent(voting) == spent(transformed) == 0.0


def test_validation_of_a_pipeline_and_a_union_check_their_parts():
    def validated(a):
        pipe = make_pipeline(scaler(a), model(a, mechanism="x"))
        score = make_dp_scorer("accuracy", accountant=a)
        cross_val_score(pipe, X, Y, scoring=score, cv=FOLDS, error_score="raise")

    def joined(a):
        make_union(scaler(a), DPOneHotEncoder(min_frequency=-1, accountant=a)).fit(X, Y)

    assert spent(validated) == spent(joined) == 0.0


def test_what_is_right_for_some_table_is_not_refused():
    """Labels and shapes that a member receives may differ from those of its tool."""
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    weights = {0: 1.0, 1: 2.0, 2: 1.0}
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = [("a", model(accountant)), ("b", model(accountant, class_weight=weights))]
        VotingClassifier(members).fit(X, labels)
        OneVsRestClassifier(model(accountant, classes=[0, 1])).fit(X, labels)
        # A search goes on after an error, by default, so its members are its own matter.
        score = make_dp_scorer("accuracy", accountant=accountant)
        search = GridSearchCV(model(accountant), {"C": [1.0, -1.0]}, scoring=score, cv=FOLDS)
        search.fit(X, Y)
    assert accountant.epsilon_spent > 0.0
