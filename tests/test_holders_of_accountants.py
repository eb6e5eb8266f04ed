"""Classes of users that hold an accountant, in tools: clones, worker processes and raw parts."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant, RawDataWarning
from skdp.model_selection import make_dp_scorer
from skdp.stats import dp_mean

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 2))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(2, shuffle=True, random_state=0)


def new_ledger(**options):
    return PrivacyAccountant(100.0, 0.1, **options)


def new_classifier(ledger, **options):
    return DPLogisticRegression(0.1, data_norm=2.0, classes=[0, 1], accountant=ledger, **options)


def new_scaler(ledger, epsilon=0.1):
    return DPStandardScaler(epsilon, bounds=(-1, 1), accountant=ledger)


def new_score(ledger):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=ledger)


def texts_of(call):
    """Return the texts of the warnings about raw data in a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RawDataWarning)
        call()
    return [str(warning.message) for warning in caught]


class Creating(ClassifierMixin, BaseEstimator):
    """A class whose fit creates its private classifier."""

    def __init__(self, accountant=None):
        self.accountant = accountant

    def fit(self, X, y):
        self.model_ = new_classifier(self.accountant).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


class Centering(TransformerMixin, BaseEstimator):
    """A class whose fit releases a mean by a function."""

    def __init__(self, accountant=None):
        self.accountant = accountant

    def fit(self, X, y=None):
        self.mean_ = dp_mean(X[:, 0], epsilon=0.1, bounds=(-1, 1), accountant=self.accountant)
        return self

    def transform(self, X):
        return X - self.mean_


TOOLS = {
    "GridSearchCV": lambda model, **more: GridSearchCV(model, {}, cv=FOLDS, **more).fit(X, y),
    "cross_val_score": lambda model, **more: cross_val_score(model, X, y, cv=FOLDS, **more),
    "CalibratedClassifierCV": lambda model, **more: CalibratedClassifierCV(model, cv=2, **more).fit(
        X, y
    ),
    "StackingClassifier": lambda model, **more: StackingClassifier(
        [("model", model)], cv=FOLDS, **more
    ).fit(X, y),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_clone_of_a_holder_shows_its_tool(name):
    (text,) = texts_of(lambda: TOOLS[name](Creating(new_ledger())))
    assert f"{name} around Creating" in text
    ledger = new_ledger(on_raw_data="raise")
    with pytest.raises(ValueError, match=f"{name} around Creating"):
        TOOLS[name](Creating(ledger))
    assert ledger.epsilon_spent == 0.0


IN_WORKERS = {
    "cross_val_score": lambda a: cross_val_score(Creating(a), X, y, cv=FOLDS, n_jobs=2),
    "OneVsOneClassifier": lambda a: OneVsOneClassifier(Creating(a), n_jobs=2).fit(
        X, np.arange(60) % 3
    ),
    "FeatureUnion": lambda a: FeatureUnion(
        [("center", Centering(a)), ("pca", PCA(1))], n_jobs=2
    ).fit(X),
}


def test_workers_of_a_tool_of_holders():
    """Some tools clone their estimators in the workers alone, or not at all."""
    ledger = new_ledger()
    for name, call in IN_WORKERS.items():
        (text,) = texts_of(lambda call=call: call(ledger))
        assert f"{name} around" in text
    private = [
        lambda: cross_val_score(
            Creating(ledger), X, y, cv=FOLDS, scoring=new_score(ledger), n_jobs=2
        ),
        lambda: VotingClassifier(
            [("one", Creating(ledger)), ("two", new_classifier(ledger))], n_jobs=2
        ).fit(X, y),
        lambda: FeatureUnion(
            [("center", Centering(ledger)), ("scale", new_scaler(ledger))], n_jobs=2
        ).fit(X),
        # A private score of a model of public rows.
        lambda: cross_val_score(
            FrozenEstimator(LogisticRegression().fit(X, y)),
            X,
            y,
            cv=FOLDS,
            scoring=new_score(ledger),
            n_jobs=2,
        ),
    ]
    for call in private:
        assert texts_of(call) == []


# After an error, joblib starts new workers, which takes seconds.
@pytest.mark.thorough
@pytest.mark.parametrize("name", IN_WORKERS)
def test_what_is_sent_to_workers_is_refused_before_a_charge(name):
    ledger = new_ledger(on_raw_data="raise")
    with pytest.raises(ValueError, match=f"{name} around"):
        IN_WORKERS[name](ledger)
    assert ledger.epsilon_spent == 0.0


@pytest.mark.thorough
def test_a_wrong_member_that_is_sent_to_workers_is_refused_before_a_charge():
    ledger = new_ledger()
    union = FeatureUnion([("a", new_scaler(ledger)), ("b", new_scaler(ledger, -1.0))], n_jobs=2)
    with pytest.raises(ValueError, match="epsilon must be"):
        union.fit(X)
    assert ledger.epsilon_spent == 0.0


def test_holders_count_as_private():
    ledger = new_ledger()
    silent = [
        lambda: clone(Creating(ledger)).fit(X, y),
        lambda: make_pipeline(Centering(ledger), new_classifier(ledger)).fit(X, y),
        lambda: VotingClassifier([("one", Creating(ledger))]).fit(X, y),
        lambda: GridSearchCV(Creating(ledger), {}, cv=FOLDS, scoring=new_score(ledger)).fit(X, y),
    ]
    for call in silent:
        assert texts_of(call) == []
    (text,) = texts_of(lambda: make_pipeline(Centering(ledger), LogisticRegression()).fit(X, y))
    assert "LogisticRegression in 'logisticregression'" in text


def test_a_holder_in_a_bagging_behind_a_step_is_refused_before_the_step():
    ledger = new_ledger()
    with pytest.raises(ValueError, match="repeats or leaves out rows"):
        make_pipeline(new_scaler(ledger), BaggingClassifier(Creating(ledger))).fit(X, y)
    assert ledger.epsilon_spent == 0.0


class WithoutParameters:
    """A class without `get_params`."""

    def __init__(self, scaler, model):
        self.scaler = scaler
        self.model = model

    def fit(self, X, y):
        self.model.fit(self.scaler.fit_transform(X), y)
        return self


class Derived(DPLogisticRegression):
    """A class that is derived from a private one, and was given a further step."""

    def __init__(self, scaler=None, epsilon=0.1, *, data_norm=2.0, accountant=None):
        super().__init__(epsilon, data_norm=data_norm, accountant=accountant)
        self.scaler = scaler

    def fit(self, X, y):
        return super().fit(self.scaler.fit_transform(X), y)


@pytest.mark.parametrize(
    "make",
    [
        lambda scaler, ledger: WithoutParameters(scaler, new_classifier(ledger)),
        lambda scaler, ledger: Derived(scaler, accountant=ledger),
        lambda scaler, ledger: make_pipeline(Derived(scaler, accountant=ledger)),
    ],
    ids=["without parameters", "derived", "in a pipeline"],
)
def test_raw_steps_that_a_class_was_given(make):
    ledger = new_ledger()
    assert texts_of(lambda: make(new_scaler(ledger), ledger).fit(X, y)) == []
    (text,) = texts_of(lambda: make(StandardScaler(), ledger).fit(X, y))
    assert "StandardScaler" in text
    assert "use DPStandardScaler" in text


class Filling(Centering):
    """A class that fits a step beside its release."""

    def __init__(self, filler=None, accountant=None):
        super().__init__(accountant)
        self.filler = filler

    def fit(self, X, y=None):
        self.filler_ = clone(self.filler).fit(X)
        return super().fit(X)


class Declared(Creating):
    """A class with the parameters of a private estimator, and a further step."""

    def __init__(self, scaler=None, epsilon=0.1, accountant=None):
        super().__init__(accountant)
        self.scaler = scaler
        self.epsilon = epsilon


@pytest.mark.parametrize(
    "make",
    [
        lambda a: make_pipeline(Filling(SimpleImputer(), a), new_classifier(a)),
        lambda a: FeatureUnion([("fill", Filling(SimpleImputer(), a)), ("scale", new_scaler(a))]),
        lambda a: make_pipeline(Declared(StandardScaler(), accountant=a)),
        lambda a: make_pipeline(StandardScaler(), Derived(PCA(1), accountant=a)),
    ],
    ids=["first step", "union", "declared", "derived"],
)
def test_a_pipeline_warns_once_of_the_parts_of_its_steps(make):
    texts = texts_of(lambda: make(new_ledger()).fit(X, y))
    # A pipeline does not look into an estimator that is derived from a private one.
    assert len(texts) == 1
    ledger = new_ledger(on_raw_data="raise")
    with pytest.raises(ValueError, match="learn from raw rows"):
        make(ledger).fit(X, y)
    assert ledger.epsilon_spent == 0.0


def test_repeated_folds_follow_row_numbers():
    ledger = new_ledger()

    def texts(folds):
        model = new_classifier(ledger)
        return texts_of(lambda: cross_val_score(model, X, y, cv=folds, scoring=new_score(ledger)))

    folds = RepeatedKFold(n_splits=2, n_repeats=1)
    assert texts(folds) == []
    folds.cv = StratifiedKFold
    (text,) = texts(folds)
    assert "folds that depend on their labels" in text


def test_a_later_search_of_an_unknown_parameter_is_refused_before_other_charges():
    ledger = new_ledger()
    search = GridSearchCV(
        new_classifier(ledger), {"unknown": [1]}, cv=FOLDS, scoring=new_score(ledger)
    )
    with pytest.raises(ValueError, match="step 'gridsearchcv': Invalid parameter 'unknown'"):
        make_pipeline(new_scaler(ledger), search).fit(X, y)
    assert ledger.epsilon_spent == 0.0


def test_the_steps_of_a_pipeline_of_imbalanced_learn_are_checked_before_its_charge():
    pipeline = pytest.importorskip("imblearn.pipeline")
    ledger = new_ledger()
    steps = pipeline.make_pipeline(new_scaler(ledger), new_classifier(ledger, C=-1.0))
    with pytest.raises(ValueError, match="C must be"):
        steps.fit(X, y)
    assert ledger.epsilon_spent == 0.0
