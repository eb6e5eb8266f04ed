"""Private functions inside tools, names of classes, and private meta-estimators behind charges."""

import warnings

import numpy as np
import pytest
from scipy.ndimage import labeled_comprehension
from scipy.stats import binned_statistic
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, RANSACRegressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
    RawDataWarning,
    dp_evaluate,
)
from skdp.calibration import DPCalibratedClassifierCV
from skdp.metrics import dp_accuracy_score
from skdp.model_selection import DPTunedThresholdClassifierCV, make_dp_scorer
from skdp.stats import dp_describe, dp_mean

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 2))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(2, shuffle=True, random_state=0)


class Ledger:
    """A ledger with private estimators that charge it."""

    def __init__(self, **options):
        self.ledger = PrivacyAccountant(1000.0, 0.1, **options)
        self.model = DPLogisticRegression(
            0.1, data_norm=2.0, classes=[0, 1], accountant=self.ledger
        )
        self.scaler = DPStandardScaler(0.1, bounds=(-1, 1), accountant=self.ledger)
        self.score = make_dp_scorer("accuracy", epsilon=0.1, accountant=self.ledger)


def release_mean(table, ledger):
    return dp_mean(table[:, 0], epsilon=0.1, bounds=(-1, 1), accountant=ledger)


def release_description(table, ledger):
    return dp_describe(table, epsilon=0.1, accountant=ledger)


def release_accuracy(table, ledger):
    answers = np.zeros(len(table), dtype=int)
    return dp_accuracy_score(answers, answers, classes=[0, 1], epsilon=0.1, accountant=ledger)


class Releasing(ClassifierMixin, BaseEstimator):
    """A class of the user whose fit calls a private function."""

    __skdp_kind__ = "private"

    def __init__(self, function=release_mean, accountant=None, epsilon=0.1):
        self.function = function
        self.accountant = accountant
        self.epsilon = epsilon

    def fit(self, X, y):
        self.released_ = self.function(X, self.accountant)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Undeclared(Releasing):
    pass


FUNCTIONS = (release_mean, release_description, release_accuracy)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_in_a_bagging_is_refused_before_its_charge(function):
    ledger = PrivacyAccountant(1.0, 0.1)
    with pytest.raises(ValueError, match="BaggingClassifier around Releasing repeats") as error:
        BaggingClassifier(Releasing(function, ledger), 2).fit(X, y)
    # The class has no seed, so that the tool sets none.
    assert "seed" not in str(error.value)
    assert ledger.epsilon_spent == 0.0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_behind_a_raw_step_warns_before_its_charge(function):
    ledger = PrivacyAccountant(1.0, 0.1)
    with (
        warnings.catch_warnings(),
        pytest.raises(RawDataWarning, match=r"around dp_\w+ has steps that learn from raw rows"),
    ):
        warnings.simplefilter("error")
        make_pipeline(StandardScaler(), Releasing(function, ledger)).fit(X, y)
    assert ledger.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_in_a_sound_use_is_silent(function):
    names = Ledger(on_raw_data="raise")
    own = Releasing(function, names.ledger)
    own.fit(X, y)
    Undeclared(function, names.ledger).fit(X, y)
    make_pipeline(names.scaler, own).fit(X, y)
    VotingClassifier([("a", names.model), ("b", own)]).fit(X, y)
    cross_val_score(own, X, y, scoring=names.score, cv=FOLDS, error_score="raise")


def test_a_function_that_scores_permuted_rows_warns():
    names = Ledger()
    model = names.model.fit(X, y)

    def score(model, table, y):
        return float(release_mean(table, names.ledger))

    with pytest.warns(RawDataWarning, match="permutation_importance around dp_mean puts a cell"):
        permutation_importance(model, X, y, scoring=score, n_repeats=1)


def test_a_metric_of_skdp_is_a_private_score():
    names = Ledger(on_raw_data="raise")
    score = make_scorer(dp_accuracy_score, classes=[0, 1], epsilon=0.1, accountant=names.ledger)
    cross_val_score(names.model, X, y, scoring=score, cv=FOLDS, error_score="raise")
    spent = names.ledger.epsilon_spent
    with pytest.raises(ValueError, match="LogisticRegression"):
        cross_val_score(LogisticRegression(), X, y, scoring=score, cv=FOLDS, error_score="raise")
    assert names.ledger.epsilon_spent == spent


def test_folds_that_were_read_before_a_function_is_called_are_named():
    ledger = PrivacyAccountant(1.0, 0.1)
    score = make_dp_scorer("accuracy", epsilon=0.1, accountant=ledger)
    folds = StratifiedKFold(2).split(X, y)
    with pytest.warns(RawDataWarning, match="iterator about which nothing is known"):
        cross_val_score(Releasing(release_mean, ledger), X, y, scoring=score, cv=folds)


class Stratified(StratifiedKFold):
    pass


class ByLabel(KFold):
    def split(self, X, y=None, groups=None):
        yield np.flatnonzero(y == 0), np.flatnonzero(y == 1)


class Shuffled(KFold):
    def __init__(self):
        super().__init__(2, shuffle=True, random_state=0)


Stratified.__name__ = ByLabel.__name__ = "KFold"


@pytest.mark.parametrize("folds", [Stratified(2), ByLabel(2)], ids=["stratified", "by label"])
def test_a_splitter_is_not_known_by_its_name(folds):
    names = Ledger(on_raw_data="raise")
    with pytest.raises(ValueError, match="depend on their labels"):
        cross_val_score(names.model, X, y, scoring=names.score, cv=folds)
    assert names.ledger.epsilon_spent == 0.0


def test_a_derived_splitter_without_other_methods_is_known():
    names = Ledger(on_raw_data="raise")
    cross_val_score(names.model, X, y, scoring=names.score, cv=Shuffled(), error_score="raise")


def meta_estimators(inner):
    """Return private meta-estimators around an estimator, by name."""
    return {
        "calibrated": DPCalibratedClassifierCV(inner, epsilon=0.1),
        "threshold": DPTunedThresholdClassifierCV(inner, epsilon=0.1),
        "search": DPGridSearchCV(inner, {}, epsilon=0.1),
    }


PLAIN = DPLogisticRegression(data_norm=2.0, classes=[0, 1])
REFUSED = {
    **{f"{k} raw": m for k, m in meta_estimators(make_pipeline(StandardScaler(), PLAIN)).items()},
    **{f"{k} bag": m for k, m in meta_estimators(BaggingClassifier(PLAIN)).items()},
    "several folds": DPCalibratedClassifierCV(PLAIN, cv=3, epsilon=0.1),
    "not fitted": DPTunedThresholdClassifierCV(PLAIN, cv="prefit", epsilon=0.1),
    "read folds": DPGridSearchCV(PLAIN, {}, cv=KFold(2).split(X), epsilon=0.1),
}
PLACES = {
    "step": lambda names, meta: make_pipeline(names.scaler, meta),
    "member": lambda names, meta: VotingClassifier([("a", names.model), ("b", meta)]),
    "candidate": lambda names, meta: GridSearchCV(
        Pipeline([("m", names.model)]),
        {"m": [names.model, meta]},
        scoring=names.score,
        cv=FOLDS,
        error_score="raise",
    ),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_private_meta_estimator_is_refused_before_other_charges(name, place):
    names = Ledger()
    # scikit-learn does not copy a generator.
    with pytest.raises((TypeError, ValueError)), warnings.catch_warnings():
        warnings.simplefilter("ignore", RawDataWarning)
        PLACES[place](names, REFUSED[name]).fit(X, y)
    assert names.ledger.epsilon_spent == 0.0


def test_a_tool_among_the_candidates_of_a_later_search_is_refused_before_other_charges():
    names = Ledger()
    steps = Pipeline([("m", names.model)])
    candidates = {"m": [names.model, BaggingClassifier(names.model)]}
    search = GridSearchCV(steps, candidates, scoring=names.score, cv=FOLDS)
    with pytest.raises(ValueError, match="BaggingClassifier in 'm'"):
        make_pipeline(names.scaler, search).fit(X, y)
    assert names.ledger.epsilon_spent == 0.0


def fit_by_helper(table, ledger):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=ledger).fit(table)


class Centered(TransformerMixin, BaseEstimator):
    def __init__(self, accountant=None):
        self.accountant = accountant

    def fit(self, X, y=None):
        self.scaler_ = fit_by_helper(X, self.accountant)
        return self

    def transform(self, X):
        return self.scaler_.transform(X)


class Passing(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Answering(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_fit_transform_of_a_class_of_the_user_is_no_unknown_tool():
    Centered(PrivacyAccountant(1.0, 0.1, on_raw_data="raise")).fit_transform(X)


def test_a_tool_of_a_frozen_model_says_what_it_computes():
    ledger = PrivacyAccountant(10.0, 0.1, on_raw_data="raise")
    model = DPLogisticRegression(1.0, data_norm=2.0, accountant=ledger).fit(X, y)
    BaggingClassifier(FrozenEstimator(model), 2).fit(X, y)
    with pytest.raises(ValueError, match="oob_score"):
        BaggingClassifier(FrozenEstimator(model), 2, oob_score=True).fit(X, y)
    ridge = DPRidge(1.0, data_norm=2.0, target_bounds=(-1, 1), accountant=ledger).fit(X, X[:, 0])
    BaggingRegressor(FrozenEstimator(ridge), 2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="errors on raw rows"):
        AdaBoostRegressor(FrozenEstimator(ridge), n_estimators=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="small raw residuals"):
        RANSACRegressor(FrozenEstimator(ridge), min_samples=10).fit(X, X[:, 0])


def test_a_class_of_the_user_may_learn_nothing_from_raw_rows():
    names = Ledger()
    with pytest.warns(RawDataWarning, match="skdp does not know, and that may learn"):
        make_pipeline(Passing(), names.model).fit(X, y)
    with pytest.warns(RawDataWarning, match=r"members \['b'\] that skdp does not know"):
        VotingClassifier([("a", names.model), ("b", Answering())]).fit(X, y)


def test_persons_are_advised_their_folds():
    ledger = PrivacyAccountant(10.0, 0.1, unit="person", on_raw_data="raise")
    model = DPLogisticRegression(0.1, data_norm=2.0, classes=[0, 1], accountant=ledger)
    with pytest.raises(ValueError, match=r"cv=PersonKFold\(5\)") as error:
        cross_val_score(model, X, y)
    assert "cv=KFold" not in str(error.value)


def test_names_of_private_classes_are_in_no_message():
    names = Ledger(on_raw_data="raise")
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="dp_evaluate scores a model"):
        dp_evaluate(model, X, y, accountant=names.ledger)
    assert names.ledger.epsilon_spent == 0.0


def test_numpy_and_pandas_pass_columns_to_functions():
    pandas = pytest.importorskip("pandas")
    options = {
        "epsilon": 0.1,
        "bounds": (-1, 1),
        "accountant": PrivacyAccountant(10.0, 0.1, on_raw_data="raise"),
    }
    frame = pandas.DataFrame(X, columns=["u", "v"])
    frame.apply(dp_mean, **options)
    frame["u"].agg(dp_mean, **options)
    frame.pipe(dp_mean, axis=0, **options)
    np.apply_along_axis(dp_mean, 0, X, **options)


def test_groups_of_rows_are_seen_around_any_function():
    """The number of rows of a group is exact, whoever forms the groups."""
    pandas = pytest.importorskip("pandas")
    accountant = PrivacyAccountant(10.0, 0.1, on_raw_data="raise")

    def release(values, **more):
        return dp_mean(np.asarray(values), epsilon=0.1, bounds=(-1, 1), accountant=accountant)

    def fit(table):
        return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant).fit(table)

    frame = pandas.DataFrame(X, columns=["u", "v"], index=pandas.date_range("2020", periods=60))
    groups = frame["u"].groupby(y)
    by_group = [
        lambda: groups.agg(dp_mean, epsilon=0.1, bounds=(-1, 1), accountant=accountant),
        lambda: groups.agg(lambda values: release(values)),
        lambda: groups.apply(release),
        lambda: groups.transform(release),
        lambda: frame.groupby(y).apply(lambda group: fit(group)),
        lambda: frame.assign(y=y).pivot_table("u", "y", aggfunc=release),
        lambda: frame["u"].resample("30D").agg(release),
        lambda: frame["u"].rolling("30D").apply(release),
        lambda: binned_statistic(X[:, 0], X[:, 1], lambda values: release(values), 2),
        lambda: labeled_comprehension(X[:, 0], y, [0, 1], release, float, 0),
    ]
    for call in by_group:
        with pytest.raises(ValueError, match="exact number of rows of each group"):
            call()
    assert accountant.epsilon_spent == 0.0
    # The rows of these windows are chosen by their numbers.
    frame["u"].rolling(59).apply(release)
    frame["u"].expanding(59).apply(release)
    model = fit(X)
    frame.groupby(y).apply(lambda group: model.transform(group.to_numpy()).sum())
