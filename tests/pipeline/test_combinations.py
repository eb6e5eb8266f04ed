"""Parameters of scikit-learn's tools that do not fit together are refused before a charge."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPPCA,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.model_selection import make_dp_scorer

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = (X[:, 0] > 0).astype(int)
three = np.arange(60) % 3
two_outputs = np.c_[y, 1 - y]
FOLDS = KFold(3, shuffle=True, random_state=0)


def classifier(accountant, **params):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **params)


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


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
    "one column": (
        lambda a: make_pipeline(
            ColumnTransformer([("s", scaler(a), [0])]), RFE(classifier(a), n_features_to_select=1)
        ),
        y,
        "at least 2 are needed",
    ),
    "folds without fits": (
        lambda a: RegressorChain(regressor(a), cv="prefit"),
        X[:, :2],
        "always fits its members",
    ),
    "folds of a search": (
        lambda a: GridSearchCV(classifier(a), {}, scoring=score(a), cv=KFold(61)),
        y,
        "61 folds, more than the 60 rows",
    ),
    "folds that were fitted": (
        lambda a: GridSearchCV(classifier(a), {}, scoring=score(a), cv="prefit"),
        y,
        "'cv' parameter",
    ),
    "covariance": (
        lambda a: LinearDiscriminantAnalysis(
            solver="lsqr", covariance_estimator=DPPCA(0.1, data_norm=2.0, accountant=a)
        ),
        y,
        "no attribute covariance_",
    ),
    "score function": (lambda a: SelectKBest(len, k=1), y, "cannot be called with X and y"),
    "one output": (lambda a: MultiOutputRegressor(regressor(a)), X[:, 0], "y has one dimension"),
    "order": (lambda a: RegressorChain(regressor(a), order=[0, 0]), X[:, :2], "does not list each"),
    "order beyond": (
        lambda a: ClassifierChain(classifier(a, classes=[0, 1]), order=[1, 2]),
        two_outputs,
        "does not list each",
    ),
}


# These are refused without a pipeline, too: scikit-learn would detect them after a member's fit.
DETECTED_LATE = [
    name for name in WRONG if name.startswith(("soft", "method", "misspelled", "covariance"))
]


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
@pytest.mark.parametrize("name", WRONG)
def test_combinations_are_refused_before_the_first_charge(name):
    make, target, words = WRONG[name]
    accountant = PrivacyAccountant(1000.0, 1e-2)
    with pytest.raises((TypeError, ValueError), match=words):
        make_pipeline(scaler(accountant), make(accountant)).fit(X, target)
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
        model = make_pipeline(scaler(accountant), model)
    with pytest.raises(ValueError, match="not among the declared classes"):
        model.fit(X, np.c_[y, three])
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OutputCodeClassifier])
def test_models_of_one_label_must_declare_zero_and_one(wrapper):
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = make_pipeline(scaler(accountant), wrapper(classifier(accountant, classes=[0, 2])))
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


ROWS = np.arange(12)
# Folds with row numbers, of which some put each row into exactly one test set.
ALL_FOLDS = {
    "folds": KFold(3),
    "number": 3,
    "too many": KFold(13),
    "each row": LeaveOneOut(),
    "pairs": LeavePOut(11),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random": ShuffleSplit(3, random_state=0),
    "in order": TimeSeriesSplit(3),
    "groups": LeaveOneGroupOut(),
    "declared": PredefinedSplit(ROWS % 3),
    "declared in part": PredefinedSplit(ROWS % 3 - 1),
    "list": list(KFold(3).split(ROWS)),
    "masks": [(ROWS % 2 == 0, ROWS % 2 == 1), (ROWS % 2 == 1, ROWS % 2 == 0)],
    "list of a part": list(KFold(3).split(ROWS))[:2],
    "list of a row twice": [*KFold(3).split(ROWS), (ROWS[1:], ROWS[:1])],
}
NEED_PREDICTIONS = {
    "stack": lambda a, cv: StackingRegressor([("r", regressor(a))], regressor(a), cv=cv),
    "chain": lambda a, cv: RegressorChain(regressor(a), cv=cv),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", NEED_PREDICTIONS)
@pytest.mark.parametrize("name", ALL_FOLDS)
def test_folds_that_predict_no_row_or_a_row_twice_cost_nothing(name, tool):
    """Exactly the folds that `cross_val_predict` refuses are refused before the first charge."""
    folds = ALL_FOLDS[name]
    table = X[: len(ROWS)]
    target = table[:, 0] if tool == "stack" else table[:, :2]
    is_valid = True
    try:
        cross_val_predict(Ridge(), table, table[:, 0], cv=folds)
    except ValueError:
        is_valid = False
    for is_behind in (False, True):
        accountant = PrivacyAccountant(1000.0, 1e-2, ledger="memory://")
        model = NEED_PREDICTIONS[tool](accountant, folds)
        if is_behind:
            model = make_pipeline(scaler(accountant), model)
        if is_valid:
            model.fit(table, target)
        else:
            with pytest.raises(ValueError, match="cv "):
                model.fit(table, target)
        assert (accountant.epsilon_spent > 0.0) == is_valid


def importances(model):
    """Return importances by position, for a model of any number of columns."""
    return np.arange(float(model.n_features_in_))


# Selections that fit their estimator to some of the columns, from all three to one or two.
SELECTIONS = {
    "half": lambda model, scores: RFE(model, importance_getter=importances),
    "two": lambda model, scores: RFE(model, n_features_to_select=2, importance_getter=importances),
    "all": lambda model, scores: RFE(model, n_features_to_select=3, importance_getter=importances),
    "fraction": lambda model, scores: RFE(
        model, n_features_to_select=0.7, importance_getter=importances
    ),
    "scored": lambda model, scores: RFECV(model, importance_getter=importances, **scores),
    "scored from two": lambda model, scores: RFECV(
        model, min_features_to_select=2, importance_getter=importances, **scores
    ),
    "forward": lambda model, scores: SequentialFeatureSelector(
        model, n_features_to_select=2, **scores
    ),
    "backward": lambda model, scores: SequentialFeatureSelector(
        model, n_features_to_select=2, direction="backward", **scores
    ),
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("n_read", [1, 2, 3])
def test_columns_by_number_in_a_selection_are_checked_for_all_widths(name, n_read):
    """A selection is refused exactly if it fails around a model that is not private."""
    columns = list(range(n_read))
    build = SELECTIONS[name]
    raw = make_pipeline(ColumnTransformer([("s", Normalizer(), columns)]), LogisticRegression())
    is_valid = True
    try:
        build(raw, {"cv": FOLDS}).fit(X, y)
    except ValueError:
        is_valid = False
    accountant = PrivacyAccountant(1000.0, 1e-2, ledger="memory://")
    private = make_pipeline(
        ColumnTransformer([("s", scaler(accountant), columns)]), classifier(accountant)
    )
    tool = build(private, {"cv": FOLDS, "scoring": score(accountant)})
    if is_valid:
        make_pipeline(scaler(accountant), tool).fit(X, y)
    else:
        for model in (tool, make_pipeline(scaler(accountant), tool)):
            with pytest.raises(ValueError, match="column"):
                model.fit(X, y)
    assert (accountant.epsilon_spent > 0.0) == is_valid


FITTED = DPLogisticRegression(0.1, data_norm=2.0).fit(X[:, :2], y)
FITTED_SCALER = DPStandardScaler(0.1, bounds=(-1, 1)).fit(X[:, :2])
UNFITTED = DPLogisticRegression(0.1, data_norm=2.0)
UNFITTED_SCALER = DPStandardScaler(0.1, bounds=(-1, 1))
# Places of a model, or of a step, that was fitted earlier.
FITTED_MODEL_IN = {
    "pipeline": lambda a, model: make_pipeline(scaler(a), FrozenEstimator(model)),
    "votes": lambda a, model: VotingClassifier(
        [("c", classifier(a)), ("f", FrozenEstimator(model))]
    ),
    "stack": lambda a, model: StackingClassifier(
        [("c", classifier(a)), ("f", FrozenEstimator(model))], classifier(a), cv=FOLDS
    ),
    "stack of fitted models": lambda a, model: make_pipeline(
        scaler(a), StackingClassifier([("f", model)], classifier(a), cv="prefit")
    ),
    "selection": lambda a, model: make_pipeline(
        scaler(a), SelectFromModel(model, prefit=True), classifier(a)
    ),
    "threshold": lambda a, model: make_pipeline(
        scaler(a), FixedThresholdClassifier(FrozenEstimator(model))
    ),
}
FITTED_STEP_IN = {
    "pipeline": lambda a, step: make_pipeline(scaler(a), FrozenEstimator(step), classifier(a)),
    "union": lambda a, step: make_pipeline(
        FeatureUnion([("s", scaler(a)), ("f", FrozenEstimator(step))]), classifier(a)
    ),
    "columns": lambda a, step: ColumnTransformer(
        [("s", scaler(a), [0]), ("f", FrozenEstimator(step), [0, 1, 2])]
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", [*FITTED_MODEL_IN, *(f"step {name}" for name in FITTED_STEP_IN)])
@pytest.mark.parametrize("is_fitted", [True, False])
def test_fitted_models_of_other_columns_are_refused_at_no_cost(place, is_fitted):
    accountant = PrivacyAccountant(1000.0, 1e-2, ledger="memory://")
    if place.startswith("step "):
        part = FITTED_SCALER if is_fitted else UNFITTED_SCALER
        tool = FITTED_STEP_IN[place.removeprefix("step ")](accountant, part)
    else:
        tool = FITTED_MODEL_IN[place](accountant, FITTED if is_fitted else UNFITTED)
    words = "2 columns, but the step receives 3" if is_fitted else "not fitted|fitted estimator"
    with pytest.raises(ValueError, match=words):
        tool.fit(X, y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["half", "two", "fraction", "forward", "backward"])
def test_columns_that_a_selection_drops_are_missed_before_the_first_charge(name):
    accountant = PrivacyAccountant(1000.0, 1e-2, ledger="memory://")
    scores = {"cv": FOLDS, "scoring": score(accountant)}
    selection = SELECTIONS[name](classifier(accountant), scores)
    behind = ColumnTransformer([("s", scaler(accountant), [0, 1, 2])])
    with pytest.raises(ValueError, match="column"):
        make_pipeline(selection, behind).fit(X, y)
    assert accountant.epsilon_spent == 0.0
    kept = SELECTIONS[name](classifier(accountant), scores)
    make_pipeline(kept, ColumnTransformer([("s", scaler(accountant), [0])])).fit(X, y)
    assert accountant.epsilon_spent > 0.0
