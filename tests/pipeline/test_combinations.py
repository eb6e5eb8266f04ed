"""Parameters of scikit-learn's tools that do not fit together are refused before a charge."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel, SequentialFeatureSelector
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
)
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import DPLinearSVC, DPLogisticRegression, DPRidge, DPStandardScaler, PrivacyAccountant
from skdp.model_selection import make_dp_scorer

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = (X[:, 0] > 0).astype(int)
three = np.arange(60) % 3
two_outputs = np.c_[y, 1 - y]
FOLDS = KFold(3, shuffle=True, random_state=0)


def classifier(accountant, **params):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **params)


def machine(accountant):
    return DPLinearSVC(0.1, data_norm=2.0, accountant=accountant)


def regressor(accountant):
    return DPRidge(0.1, delta=1e-6, data_norm=2.0, target_bounds=(-1, 1), accountant=accountant)


def score(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


def search(wrapper, grid, **options):
    def make(accountant):
        return wrapper(
            classifier(accountant), grid, cv=FOLDS, **({"scoring": score(accountant)} | options)
        )

    return make


# The second grid names a parameter that the classifier does not have.
MISSPELLED = [{"C": [0.1]}, {"c": [0.1]}]
# Tools that scikit-learn refuses in their fit, with a target, and words of the message.
WRONG = {
    "inverse function is missing": (
        lambda a: TransformedTargetRegressor(regressor(a), func=np.tanh),
        X[:, 0],
        "must be set together",
    ),
    "transformer and function": (
        lambda a: TransformedTargetRegressor(regressor(a), transformer=Normalizer(), func=np.tanh),
        X[:, 0],
        "are both set",
    ),
    "names": (
        lambda a: StackingClassifier(
            [("c", classifier(a)), ("c", classifier(a))], classifier(a), cv=FOLDS
        ),
        y,
        "not unique",
    ),
    "weights": (
        lambda a: VotingRegressor([("r", regressor(a))], weights=[1, 2]),
        X[:, 0],
        "weights has 2 numbers",
    ),
    "several columns": (
        lambda a: VotingClassifier([("c", classifier(a))]),
        two_outputs,
        "y has 2 columns",
    ),
    "soft votes": (
        lambda a: VotingClassifier([("c", classifier(a)), ("s", machine(a))], voting="soft"),
        y,
        "'s', a DPLinearSVC, has no predict_proba",
    ),
    "soft votes of a pipeline": (
        lambda a: VotingClassifier(
            [("c", classifier(a)), ("s", make_pipeline(Normalizer(), machine(a)))], voting="soft"
        ),
        y,
        "'s', a Pipeline, has no predict_proba",
    ),
    "method of a threshold": (
        lambda a: FixedThresholdClassifier(machine(a), response_method="predict_proba"),
        y,
        "has no predict_proba",
    ),
    "misspelled in a grid": (search(GridSearchCV, MISSPELLED), y, "Invalid parameter 'c'"),
    "misspelled after a long grid": (
        search(GridSearchCV, [{"C": list(np.linspace(0.1, 1.0, 300))}, {"c": [0.1]}]),
        y,
        "Invalid parameter 'c'",
    ),
    "misspelled": (
        search(RandomizedSearchCV, MISSPELLED, n_iter=1, random_state=0),
        y,
        "Invalid parameter 'c'",
    ),
    "misspelled distribution": (
        search(RandomizedSearchCV, [{"C": [0.1]}, {"c": uniform()}], n_iter=1, random_state=0),
        y,
        "Invalid parameter 'c'",
    ),
    "misspelled in a halving search": (
        search(HalvingRandomSearchCV, {"C": [0.1], "c": uniform()}, min_resources=20),
        y,
        "Invalid parameter 'c'",
    ),
    "empty grid": (search(GridSearchCV, {"C": []}), y, "non-empty"),
    "empty distribution": (search(RandomizedSearchCV, {"C": 1.0}), y, "iterable"),
    "refit": (
        lambda a: GridSearchCV(
            classifier(a), {}, cv=FOLDS, scoring={"p": score(a), "q": score(a)}, refit="r"
        ),
        y,
        "refit='r' is not one of",
    ),
    "rows": (search(HalvingGridSearchCV, {}, min_resources=100), y, "more than the 60 rows"),
    "number of features": (
        lambda a: SequentialFeatureSelector(
            classifier(a), n_features_to_select=3, cv=FOLDS, scoring=score(a)
        ),
        y,
        "less than the number of columns",
    ),
    "threshold": (lambda a: SelectFromModel(classifier(a), threshold="most"), y, "threshold"),
    "largest number": (
        lambda a: SelectFromModel(classifier(a), max_features=4),
        y,
        "max_features=4 is more",
    ),
    "one output": (lambda a: MultiOutputRegressor(regressor(a)), X[:, 0], "y has one dimension"),
    "order": (lambda a: RegressorChain(regressor(a), order=[0, 0]), X[:, :2], "does not list each"),
    "order beyond": (
        lambda a: ClassifierChain(classifier(a, classes=[0, 1]), order=[1, 2]),
        two_outputs,
        "does not list each",
    ),
}


# These are refused without a pipeline, too: scikit-learn would detect them after a member's fit.
DETECTED_LATE = [name for name in WRONG if name.startswith(("soft", "method", "misspelled"))]


@pytest.mark.parametrize("name", WRONG)
def test_combinations_are_refused_before_the_first_charge(name):
    make, target, words = WRONG[name]
    accountant = PrivacyAccountant(1000.0, 1e-2)
    scaler = DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)
    with pytest.raises((TypeError, ValueError), match=words):
        make_pipeline(scaler, make(accountant)).fit(X, target)
    if name in DETECTED_LATE:
        with pytest.raises(ValueError, match=words):
            make(accountant).fit(X, target)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.filterwarnings("ignore")
def test_labels_are_not_chosen_by_probabilities_that_do_not_exist():
    accountant = PrivacyAccountant(100.0, 1e-2)
    unlabeled = np.where(np.arange(60) % 3, y, -1)
    with pytest.raises(ValueError, match="has no predict_proba"):
        SelfTrainingClassifier(machine(accountant)).fit(X, unlabeled)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "around", [lambda tool: tool, lambda tool: make_pipeline(Normalizer(), tool)]
)
def test_a_stack_without_a_last_model_has_probabilities(around):
    """It has `predict_proba` only after its fit, from its default last model."""
    accountant = PrivacyAccountant(100.0, 1e-2)
    stack = StackingClassifier([("c", classifier(accountant))], cv=FOLDS)
    votes = VotingClassifier([("s", around(stack))], voting="soft").fit(X, y)
    assert votes.predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize("wrapper", [MultiOutputClassifier, ClassifierChain])
@pytest.mark.parametrize("is_behind", [False, True])
def test_each_column_is_checked_for_undeclared_labels_before_the_first_charge(wrapper, is_behind):
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = wrapper(classifier(accountant, classes=[0, 1]))
    if is_behind:
        model = make_pipeline(DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant), model)
    with pytest.raises(ValueError, match="not among the declared classes"):
        model.fit(X, np.c_[y, three])
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OutputCodeClassifier])
def test_models_of_one_label_must_declare_zero_and_one(wrapper):
    accountant = PrivacyAccountant(100.0, 1e-2)
    scaler = DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)
    model = make_pipeline(scaler, wrapper(classifier(accountant, classes=[0, 2])))
    with pytest.raises(ValueError, match="not among the declared classes"):
        model.fit(X, three)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("method", ["auto", "predict"])
@pytest.mark.parametrize("kind", ["stack", "vote"])
@pytest.mark.parametrize("is_behind", [False, True])
def test_an_encoder_of_labels_that_do_not_all_occur_is_refused_at_no_cost(kind, method, is_behind):
    """Without the declared label 2, a row with it would change the positions of other labels."""
    accountant = PrivacyAccountant(100.0, 1e-2)
    member = classifier(accountant, classes=[0, 1, 2])
    if kind == "vote":
        tool = VotingClassifier([("c", member)])
    else:
        final = classifier(accountant)
        tool = StackingClassifier([("c", member)], final, cv=FOLDS, stack_method=method)
    if is_behind:
        first = DPStandardScaler(0.1, bounds=(-9, 9), accountant=accountant)
        tool = make_pipeline(first, tool)
    with pytest.raises(ValueError, match="'c' declares 3 classes, and y holds 2"):
        tool.fit(X, y)
    assert accountant.epsilon_spent == 0.0
