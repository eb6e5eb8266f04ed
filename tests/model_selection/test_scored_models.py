"""Private scores of raw models, and of tables in which a person changes two rows, are named."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant, RawDataWarning
from skdp.base import private_fit
from skdp.mechanisms import LaplaceMechanism
from skdp.model_selection import make_dp_scorer
from skdp.pipeline import check_pipeline, split_budget

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 3))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(3, shuffle=True, random_state=0)


def budget(**more):
    return PrivacyAccountant(100.0, 1e-2, ledger="memory://", **more)


def classifier(accountant=None):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant)


def scorer(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


class Unknown(ClassifierMixin, BaseEstimator):
    """A classifier that says nothing of what it learns."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class OwnPrivate(ClassifierMixin, BaseEstimator):
    """A private classifier of a user's own, on the interface for these."""

    def __init__(self, epsilon=1.0, accountant=None, random_state=None):
        self.epsilon, self.accountant, self.random_state = epsilon, accountant, random_state

    def fit(self, X, y):
        with private_fit(self) as fit:
            table = fit.read(X, y)
            X, y = table.X, table.y
            mechanism = LaplaceMechanism(fit.guarantee.epsilon, sensitivity=1.0)
            source = fit.charge(mechanism, size=1)
            count = mechanism.release(np.array([float(y.sum())]), random_state=source)
            public = ("the labels", "the number of rows")
            share = count[0] / len(y)
            fit.publish(mechanism, public=public, share_=share, classes_=np.array([0, 1]))
        return self

    def predict(self, X):
        return np.full(len(X), int(self.share_ > 0.5))


RAW = {
    "neighbors": KNeighborsClassifier(1),
    "logistic regression": LogisticRegression(),
    "forest": RandomForestClassifier(3),
    "most frequent label": DummyClassifier(),
    "Bayes": GaussianNB(),
    "unknown": Unknown(),
    "raw step": make_pipeline(StandardScaler(), classifier()),
    "raw last step": make_pipeline(DPStandardScaler(bounds=(-1, 1)), LogisticRegression()),
    "raw member": VotingClassifier([("one", classifier()), ("two", LogisticRegression())]),
}
FINE = {
    "private": classifier,
    "private, of a user's own": lambda a: OwnPrivate(0.1, accountant=a),
    "private steps": lambda a: make_pipeline(
        DPStandardScaler(0.1, bounds=(-1, 1), accountant=a), classifier(a)
    ),
    "behind a step that learns nothing": lambda a: make_pipeline(Normalizer("max"), classifier(a)),
    "a plan": lambda a: split_budget(
        make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(data_norm=2.0)),
        0.2,
        1e-6,
        a,
    ),
    "members": lambda a: VotingClassifier([("one", classifier(a)), ("two", classifier(a))]),
    "a model of public rows": lambda a: FrozenEstimator(LogisticRegression().fit(X, y)),
}


def fitted(model):
    with warnings.catch_warnings(action="ignore"):
        return model.fit(X, y)


@pytest.mark.parametrize("name", RAW)
def test_a_private_score_of_a_raw_model_is_warned_of_or_refused_before_its_charge(name):
    model = fitted(RAW[name])
    accountant = budget()
    with pytest.warns(RawDataWarning, match="scores a model that (learns|may learn) from raw rows"):
        scorer(accountant)(model, X, y)
    assert accountant.epsilon_spent == pytest.approx(0.1)
    accountant = budget(on_raw_data="raise")
    with pytest.raises(ValueError, match="Nothing was computed or charged"):
        scorer(accountant)(model, X, y)
    assert accountant.epsilon_spent == 0.0
    accountant = budget()
    with warnings.catch_warnings(action="error", category=RawDataWarning):
        with pytest.raises(RawDataWarning):
            scorer(accountant)(model, X, y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", FINE)
def test_a_private_score_of_a_released_model_is_not_warned_of(name):
    accountant = budget(on_raw_data="raise")
    with warnings.catch_warnings(action="error", category=RawDataWarning):
        scores = cross_val_score(FINE[name](accountant), X, y, scoring=scorer(accountant), cv=FOLDS)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("function", [cross_val_score, cross_validate])
def test_a_cross_validation_of_a_raw_model_is_warned_of_once(function):
    accountant = budget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(KNeighborsClassifier(1), X, y, scoring=scorer(accountant), cv=FOLDS)
    assert sum(issubclass(w.category, RawDataWarning) for w in caught) == 1


@pytest.mark.parametrize("raw", ["neighbors", "logistic regression", "raw last step"])
def test_a_raw_candidate_is_named(raw):
    accountant = budget()
    pipe = Pipeline([("model", classifier(accountant))])
    grid = {"model": [classifier(accountant), RAW[raw]]}
    search = GridSearchCV(pipe, grid, scoring=scorer(accountant), cv=FOLDS)
    found = [f for f in check_pipeline(search) if f.problem == "not private"]
    assert len(found) == 1
    assert found[0].step.startswith("estimator__model")
    assert "which the search tries" in found[0].message
    with pytest.warns(RawDataWarning):
        search.fit(X, y)
    grid = {"model": [classifier(accountant), classifier(accountant)]}
    search = GridSearchCV(pipe, grid, scoring=scorer(accountant), cv=FOLDS)
    assert not [f for f in check_pipeline(search) if f.problem == "not private"]


def test_a_permuted_column_is_warned_of_before_the_first_score():
    accountant = budget()
    model = classifier(accountant).fit(X, y)
    spent = accountant.epsilon_spent
    with warnings.catch_warnings(action="error", category=RawDataWarning):
        with pytest.raises(RawDataWarning, match="one person changes two rows"):
            permutation_importance(model, X, y, scoring=scorer(accountant), n_repeats=2)
        # Its rows may be public.
        permutation_importance(model, X, y, n_repeats=2)
    assert accountant.epsilon_spent == spent
    strict = budget(on_raw_data="raise")
    with pytest.raises(ValueError, match="one person changes two rows"):
        permutation_importance(model, X, y, scoring=scorer(strict), n_repeats=2)
    assert strict.epsilon_spent == 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        permutation_importance(model, X, y, scoring=scorer(accountant), n_repeats=2)
    assert sum(issubclass(w.category, RawDataWarning) for w in caught) == 1
    assert accountant.epsilon_spent == pytest.approx(spent + 0.1 * (1 + 3 * 2))


def test_one_person_moves_the_score_of_a_permuted_column_by_two_rows():
    class Sign:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return (X[:, 0] * X[:, 1] > 0).astype(int)

    score = scorer(None).score
    table = np.ones((4, 2))
    neighbor = table.copy()
    neighbor[0] = [1.0, -1.0]
    labels, order = np.ones(4, dtype=int), [1, 0, 3, 2]
    other = labels.copy()
    other[0] = 0

    def permuted(rows):
        return np.column_stack([rows[:, 0], rows[order, 1]])

    moved = abs(
        score.value(Sign(), permuted(table), labels)
        - score.value(Sign(), permuted(neighbor), other)
    )
    assert moved == pytest.approx(2 * score.sensitivity(4, "replace_one"))
