"""A wrong parameter of any member of scikit-learn's tools costs nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.pipeline import make_pipeline, make_union

from skdp import (
    DPAdditiveClassifier,
    DPLinearSVC,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
    RawDataWarning,
)
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


def validated(estimator, y, name, **options):
    """Return a function that scores an estimator of a ledger with a private score."""
    score_params = options.pop("score_params", {})

    def run(a):
        score = make_dp_scorer(name, accountant=a, **score_params)
        cross_val_score(estimator(a), X, y, scoring=score, cv=FOLDS, **options)

    return run


def searched(make_search, behind=False):
    def run(a):
        search = make_search(a, make_dp_scorer("accuracy", accountant=a))
        pipe = make_pipeline(scaler(a), search) if behind else search
        pipe.fit(X, X[:, 0])

    return run


def test_a_score_that_does_not_suit_the_model_costs_nothing():
    """scikit-learn scores after the fit, and replaces the error by NaN."""
    words = np.where(Y, "yes", "no")
    wrong_counts = {"score_params": {"class_counts": {"yep": 40, "no": 50}}}
    bounds = {"score_params": {"target_bounds": (0, 1)}}

    def svc(a):
        return DPLinearSVC(data_norm=2.0, accountant=a)

    def grid_of_ridge(a, score):
        return GridSearchCV(ridge(a), {"alpha": [1.0, 2.0]}, scoring=score, cv=FOLDS)

    def random_ridge(a, score):
        grid = {"alpha": [1.0, 2.0]}
        return RandomizedSearchCV(ridge(a), grid, n_iter=1, scoring=score, cv=FOLDS)

    def several(a):
        scores = {"a": make_dp_scorer("accuracy", accountant=a)}
        cross_validate(make_pipeline(scaler(a), ridge(a)), X, X[:, 0], scoring=scores, cv=FOLDS)

    calls = [
        validated(svc, Y, "neg_log_loss"),
        validated(ridge, X[:, 0], "accuracy"),
        validated(model, Y, "r2", **bounds),
        validated(model, words, "roc_auc", **wrong_counts),
        searched(grid_of_ridge),
        searched(grid_of_ridge, behind=True),
        searched(random_ridge),
        several,
    ]
    assert [spent(call) for call in calls] == [0.0] * len(calls)


def test_counts_of_other_labels_are_refused_by_a_scorer_itself():
    words = np.where(Y, "yes", "no")
    fitted = DPLogisticRegression(data_norm=2.0).fit(X, words)

    def score(a):
        counts = {"yep": 40, "no": 50}
        make_dp_scorer("roc_auc", class_counts=counts, accountant=a)(fitted, X, words)

    assert spent(score) == 0.0


def test_listed_settings_of_random_searches_and_curves_are_checked():
    options = {"cv": FOLDS, "error_score": "raise"}

    def search(a):
        score = make_dp_scorer("accuracy", accountant=a)
        grid = {"C": [1.0, -1.0]}
        RandomizedSearchCV(model(a), grid, n_iter=2, scoring=score, **options).fit(X, Y)

    def curve(a):
        score = make_dp_scorer("accuracy", accountant=a)
        values = {"param_name": "C", "param_range": [1.0, -1.0]}
        validation_curve(model(a), X, Y, scoring=score, **values, **options)

    assert spent(search) == spent(curve) == 0.0


@pytest.mark.parametrize("y", [None, Y[:-1], X[:, 0]], ids=["missing", "short", "numbers"])
@pytest.mark.parametrize(
    "last",
    [model, lambda a: VotingClassifier([("a", model(a))]), lambda a: OneVsRestClassifier(model(a))],
    ids=["model", "voting", "one versus rest"],
)
def test_a_wrong_target_of_a_plain_pipeline_costs_nothing(last, y):
    assert spent(lambda a: make_pipeline(scaler(a), last(a)).fit(X, y)) == 0.0


def test_members_are_checked_with_the_table_that_they_receive():
    table = pd.DataFrame(X, columns=["age", "height", "weight"])
    bounds = dict.fromkeys(table, (0, 1))

    def additive(a, bounds):
        return DPAdditiveClassifier(bounds=bounds, accountant=a)

    def voting(a, name="agee"):
        members = [("a", additive(a, bounds)), ("b", additive(a, bounds | {name: (0, 1)}))]
        VotingClassifier(members).fit(table, Y)

    def joined(a):
        make_union(scaler(a), scaler(a, bounds={"agee": (0, 1)})).fit(table)

    def wide(a):
        members = [("a", model(a)), ("b", make_pipeline(scaler(a, bounds=[(0, 1)] * 4), model(a)))]
        VotingClassifier(members).fit(X, Y)

    assert spent(voting) == spent(joined) == spent(wide) == 0.0
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    voting(accountant, "age")
    assert accountant.epsilon_spent == pytest.approx(2.0)


def selected(member, last, **params):
    selection = SelectFromModel(member(), threshold=-np.inf, **params)
    return make_pipeline(selection, last)


def stacked(member, last, n_members=1, **params):
    members = [(f"m{i}", member()) for i in range(n_members)]
    return StackingClassifier([*members, ("dropped", "drop")], last, cv=FOLDS, **params)


# Functions of a private or a raw member and of the last model, of which another step or member
# decides how many columns it receives.
WIDTHS = {
    "stack of one": stacked,
    "stack of three": lambda m, last: stacked(m, last, 3),
    "stack with its table": lambda m, last: stacked(m, last, 2, passthrough=True),
    "stack of labels": lambda m, last: stacked(m, last, 2, stack_method="predict"),
    "stack in a vote": lambda m, last: VotingClassifier([("s", stacked(m, last, 2))]),
    "stack behind a step": lambda m, last: make_pipeline("passthrough", stacked(m, last, 2)),
    "one feature": lambda m, last: selected(m, last, max_features=1),
    "two features": lambda m, last: selected(m, last, max_features=2),
    "features in a pipeline": lambda m, last: selected(
        m, make_pipeline("passthrough", last), max_features=2
    ),
}


class Recorder(LogisticRegression):
    """It stores the numbers of columns of its fits."""

    widths = []

    def fit(self, X, y):
        self.widths.append(X.shape[1])
        return super().fit(X, y)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("width", range(1, 6))
@pytest.mark.parametrize("name", WIDTHS)
def test_a_frozen_model_of_another_width_costs_nothing(name, width):
    make = WIDTHS[name]
    Recorder.widths.clear()
    make(LogisticRegression, Recorder()).fit(X, Y)
    table = np.random.default_rng(1).uniform(size=(N, width))
    last = FrozenEstimator(model(PrivacyAccountant(1.0, 1e-2)).fit(table, Y))
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    tool = make(lambda: model(accountant), last)
    if Recorder.widths == [width]:
        tool.fit(X, Y)
        assert accountant.epsilon_spent > 0.0
    else:
        with pytest.raises(ValueError, match=f"was fitted to {width} column"):
            tool.fit(X, Y)
        assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("chain", [ClassifierChain, RegressorChain])
@pytest.mark.parametrize("width", [3, 4])
def test_a_frozen_member_of_a_chain_receives_the_targets_before_its_own(chain, width):
    """No width is right for all targets."""
    table = np.random.default_rng(1).uniform(size=(N, width))
    last = FrozenEstimator(ridge(PrivacyAccountant(1.0, 1e-2)).fit(table, X[:, 0]))
    assert spent(lambda a: chain(make_pipeline(scaler(a), last)).fit(X, np.c_[Y, Y])) == 0.0


@pytest.mark.parametrize("kind", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_classifier_of_two_labels_declares_no_more(kind, is_nested):
    """With three columns of scores, scikit-learn would predict wrong labels, or crash."""
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    labels = np.arange(N) % 3
    member = model(accountant, classes=[0, 1, 2])
    tool = kind(make_pipeline(scaler(accountant), member) if is_nested else member)
    with pytest.raises(ValueError, match=r"one declares 3 classes: use classes=\[0, 1\]"):
        tool.fit(X, labels)
    with pytest.raises(ValueError, match=r"one declares 3 classes: use classes=\[0, 1\]"):
        make_pipeline(scaler(accountant), tool).fit(X, labels)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("cv", [FOLDS, "prefit"])
def test_the_last_stage_of_a_stack_declares_only_labels_that_occur(cv):
    """It receives the positions of the labels that occur, which a single rare label shifts."""
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    labels = 2 * (np.arange(N) % 2)
    member = model(accountant)
    if cv == "prefit":
        member.fit(X, labels)
    charged = accountant.epsilon_spent
    final = make_pipeline(scaler(accountant), model(accountant, classes=[0, 1, 2]))
    with pytest.raises(ValueError, match="'final_estimator' declares 3 classes, and y holds 2"):
        StackingClassifier([("a", member)], final, cv=cv).fit(X, labels)
    assert accountant.epsilon_spent == charged
    with warnings.catch_warnings():
        warnings.simplefilter("error", RawDataWarning)
        final = model(accountant, classes=[0, 1])
        StackingClassifier([("a", member)], final, cv=cv).fit(X, labels)


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_a_threshold_is_for_two_labels(classes):
    """Only the folds of a search that contain a third label would fail."""
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    score = make_dp_scorer("accuracy", accountant=accountant)
    tool = FixedThresholdClassifier(model(accountant, classes=classes))
    labels = np.arange(N) % 2
    labels[7] = 2
    for fitted in (tool, make_pipeline(scaler(accountant), tool)):
        with pytest.raises(ValueError, match="it accepts two labels"):
            GridSearchCV(fitted, {}, scoring=score, cv=FOLDS).fit(X, labels)
    assert accountant.epsilon_spent == 0.0
