"""Every class of scikit-learn that holds estimators, around private ones, in every place.

The expected result of a class is its kind in the table of known classes: what learns nothing but
what the estimators inside it learn is silent, and everything else is named before the charge. A
class that is not in that table, or that no line here builds, fails a test.
"""

import inspect
import itertools
import operator
import sys
import types
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.base import ClusterMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch, KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.utils import all_estimators

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPKMeans,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
    RawDataWarning,
    tabular_pipeline,
)
from skdp.model_selection import PersonKFold, make_dp_scorer
from skdp.pipeline import split_budget
from tests._private import UNKNOWN, find_class, find_raw_steps

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 3))
y = (X[:, 0] > 0).astype(int)
TWO = np.c_[y, 1 - y]
THREE = np.arange(120) % 3
TARGET = X[:, 0]
TARGETS = np.c_[TARGET, TARGET]
FOLDS = KFold(2, shuffle=True, random_state=0)
PERSONS = np.arange(120) // 2


def budget(name="", **more):
    ledger = None if "processes" in name else "memory://"
    return PrivacyAccountant(1000.0, 1e-2, ledger=ledger, **more)


def classifier(accountant, **more):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **more)


def regressor(accountant):
    return DPRidge(0.1, delta=1e-6, data_norm=2.0, target_bounds=(-1, 1), accountant=accountant)


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


def planned(accountant):
    steps = [DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(data_norm=2.0)]
    return split_budget(make_pipeline(*steps), 0.1, 1e-6, accountant)


CLASSIFIERS = {
    "a model": classifier,
    "a pipeline": lambda a: make_pipeline(scaler(a), classifier(a)),
    "a plan": planned,
    "a tabular pipeline": lambda a: tabular_pipeline(
        DPLogisticRegression, bounds=(-1, 1), epsilon=0.1, delta=1e-6, accountant=a
    ),
    "a private search": lambda a: DPGridSearchCV(
        DPLogisticRegression(data_norm=2.0), {"C": [0.1, 1.0]}, epsilon=0.1, accountant=a
    ),
}


def scores(accountant, name="accuracy"):
    return {"scoring": make_dp_scorer(name, epsilon=0.1, accountant=accountant), "cv": FOLDS}


# Tools around a classifier, as functions of an accountant and of what they are around.
def equal_importances(model):
    return np.ones(model.n_features_in_)


AROUND_CLASSIFIERS = {
    "voting": lambda a, m: VotingClassifier([("a", m), ("b", classifier(a))]),
    "voting with a raw member": lambda a, m: VotingClassifier(
        [("a", m), ("raw", LogisticRegression())]
    ),
    "stacking": lambda a, m: StackingClassifier([("a", m)], cv=FOLDS),
    "stacking of private stages": lambda a, m: StackingClassifier(
        [("a", m)], classifier(a), cv=FOLDS, passthrough=True
    ),
    "stacking by labels": lambda a, m: StackingClassifier([("a", m)], classifier(a), cv=2),
    "one against the rest": lambda a, m: OneVsRestClassifier(m),
    "one against one": lambda a, m: OneVsOneClassifier(m),
    "output codes": lambda a, m: OutputCodeClassifier(m, random_state=0),
    # Pipelines and searches have no coefficients, and a missing attribute is refused.
    "selection": lambda a, m: SelectFromModel(m, importance_getter=equal_importances),
    "fixed threshold": lambda a, m: FixedThresholdClassifier(m, threshold=0.3),
    "tuned threshold": lambda a, m: TunedThresholdClassifierCV(m, cv=2),
    "calibration": lambda a, m: CalibratedClassifierCV(m, cv=FOLDS),
    "bagging": lambda a, m: BaggingClassifier(m, n_estimators=2),
    "boosting": lambda a, m: AdaBoostClassifier(m, n_estimators=2),
    "boosted trees": lambda a, m: GradientBoostingClassifier(init=m, n_estimators=2),
    "self-training": lambda a, m: SelfTrainingClassifier(m),
    "grid search": lambda a, m: GridSearchCV(m, {}, cv=FOLDS),
    "private grid search": lambda a, m: GridSearchCV(m, {}, **scores(a)),
    "random search": lambda a, m: RandomizedSearchCV(m, {}, n_iter=1, cv=FOLDS),
    "private random search": lambda a, m: RandomizedSearchCV(m, {}, n_iter=1, **scores(a)),
    "halving": lambda a, m: HalvingGridSearchCV(m, {}, cv=FOLDS, min_resources=50),
    "random halving": lambda a, m: HalvingRandomSearchCV(m, {}, cv=FOLDS, min_resources=50),
    "sequential selection": lambda a, m: SequentialFeatureSelector(
        m, n_features_to_select=1, cv=FOLDS
    ),
    "private sequential selection": lambda a, m: SequentialFeatureSelector(
        m, n_features_to_select=1, **scores(a)
    ),
}
# Tools that need coefficients, several columns of labels, or targets that are numbers.
OTHERS = {
    "elimination": lambda a: (RFE(classifier(a), n_features_to_select=1), y),
    "elimination by raw scores": lambda a: (RFECV(classifier(a), cv=FOLDS), y),
    "elimination by private scores": lambda a: (RFECV(classifier(a), **scores(a)), y),
    "several outputs": lambda a: (MultiOutputClassifier(classifier(a, classes=[0, 1])), TWO),
    "chain": lambda a: (ClassifierChain(classifier(a, classes=[0, 1])), TWO),
    "chain of folds": lambda a: (ClassifierChain(classifier(a, classes=[0, 1]), cv=2), TWO),
    "several targets": lambda a: (MultiOutputRegressor(regressor(a)), np.c_[TARGET, TARGET]),
    "chain of regressors": lambda a: (RegressorChain(regressor(a)), np.c_[TARGET, TARGET]),
    "voting of regressors": lambda a: (VotingRegressor([("a", regressor(a))]), TARGET),
    "stacking of regressors": lambda a: (StackingRegressor([("a", regressor(a))]), TARGET),
    "private stacking of regressors": lambda a: (
        StackingRegressor([("a", regressor(a))], regressor(a), cv=FOLDS),
        TARGET,
    ),
    "bagging of regressors": lambda a: (BaggingRegressor(regressor(a), n_estimators=2), TARGET),
    "boosting of regressors": lambda a: (AdaBoostRegressor(regressor(a), n_estimators=2), TARGET),
    "boosted trees of targets": lambda a: (
        GradientBoostingRegressor(init=regressor(a), n_estimators=2),
        TARGET,
    ),
    "ransac": lambda a: (RANSACRegressor(regressor(a), min_samples=50), TARGET),
    "transformed targets": lambda a: (
        TransformedTargetRegressor(regressor(a), func=np.tanh, inverse_func=np.arctanh),
        TARGET,
    ),
    "scaled targets": lambda a: (
        TransformedTargetRegressor(regressor(a), transformer=StandardScaler()),
        TARGET,
    ),
    "the default regressor": lambda a: (TransformedTargetRegressor(transformer=scaler(a)), TARGET),
    "imputation": lambda a: (IterativeImputer(regressor(a), max_iter=1), TARGET),
    "private steps": lambda a: (Pipeline([("s", scaler(a)), ("c", classifier(a))]), y),
    "a raw step": lambda a: (Pipeline([("s", StandardScaler()), ("c", classifier(a))]), y),
    "a raw last step": lambda a: (Pipeline([("s", scaler(a)), ("c", LogisticRegression())]), y),
    "a union": lambda a: (FeatureUnion([("s", scaler(a)), ("raw", StandardScaler())]), y),
    "a private union": lambda a: (FeatureUnion([("s", scaler(a)), ("p", "passthrough")]), y),
    "columns": lambda a: (
        ColumnTransformer([("s", scaler(a), [0]), ("raw", StandardScaler(), [1])]),
        y,
    ),
    "private columns": lambda a: (ColumnTransformer([("s", scaler(a), [0])]), y),
}
# What is inside these is no private estimator: a `covariance_estimator` has `covariance_`, which
# no estimator of skdp has. A frozen estimator is fitted before.
WITHOUT_PRIVATE = {"LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "FrozenEstimator"}
HOLDERS = {
    "estimator",
    "estimators",
    "base_estimator",
    "final_estimator",
    "covariance_estimator",
    "regressor",
    "classifier",
    "transformer",
    "transformers",
    "transformer_list",
    "steps",
}


def labels_for(name):
    return THREE if name in ("one against the rest", "one against one", "output codes") else y


CASES = {
    name: lambda a, n=name: (AROUND_CLASSIFIERS[n](a, classifier(a)), labels_for(n))
    for name in AROUND_CLASSIFIERS
} | OTHERS


def test_every_class_that_holds_estimators_is_known_and_built():
    built = {type(build(budget())[0]).__name__ for build in CASES.values()}
    for name, cls in all_estimators():
        assert find_class(cls.__module__, name) is not UNKNOWN
        if HOLDERS & set(inspect.signature(cls.__init__).parameters):
            assert name in built | WITHOUT_PRIVATE


def is_private_by_table(tool):
    """Return True if the table of known classes says that a tool learns nothing of raw rows."""
    return not find_raw_steps(tool)


def run(fit, accountant):
    """Return the texts of skdp's warnings, and the error that a fit raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = None
        try:
            fit(accountant)
        except (ValueError, RuntimeError, AttributeError) as raised:
            error = raised
    return [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)], error


def check(fit, is_private, name="", **more):
    """Check that a fit is silent, or that it is named once and before its charge."""
    accountant = budget(name, on_raw_data="raise", **more)
    texts, error = run(fit, accountant)
    if is_private:
        assert (texts, error) == ([], None)
        assert accountant.epsilon_spent > 0.0
        return
    assert error is not None
    assert accountant.epsilon_spent == 0.0
    accountant = budget(name, **more)
    texts, error = run(fit, accountant)
    if error is None:
        assert len(texts) == 1
    else:
        # AdaBoostClassifier asks for weights before skdp is called.
        assert "Nothing was computed or charged" in str(error) or "sample_weight" in str(error)
        assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=17)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "fit_predict"])
def test_each_class_is_judged_as_the_table_says(name, method):
    tool, labels = CASES[name](budget())
    if not hasattr(tool, method):
        pytest.skip(f"it has no {method}")

    def fit(accountant):
        tool, labels = CASES[name](accountant)
        getattr(tool, method)(X, labels)

    check(fit, is_private_by_table(tool))


@pytest.mark.quick_cases(every=120)
@pytest.mark.parametrize("inner", CLASSIFIERS)
@pytest.mark.parametrize("name", AROUND_CLASSIFIERS)
def test_it_does_not_matter_what_a_tool_is_around(name, inner):
    def build(accountant):
        return AROUND_CLASSIFIERS[name](accountant, CLASSIFIERS[inner](accountant))

    check(lambda a: build(a).fit(X, labels_for(name)), is_private_by_table(build(budget())))


PLACES = {
    "a pipeline": lambda a, tool: make_pipeline(scaler(a), tool),
    "a union": lambda a, tool: FeatureUnion([("s", scaler(a)), ("tool", tool)]),
    "columns": lambda a, tool: ColumnTransformer([("s", scaler(a), [0]), ("tool", tool, [0, 1])]),
    "a pipeline of a pipeline": lambda a, tool: make_pipeline(scaler(a), make_pipeline(tool)),
    "voting": lambda a, tool: VotingClassifier([("a", classifier(a)), ("tool", tool)]),
    "stacking": lambda a, tool: StackingClassifier(
        [("a", classifier(a))], tool, cv=FOLDS, passthrough=True
    ),
    "one against the rest": lambda a, tool: OneVsRestClassifier(tool),
    "a search": lambda a, tool: GridSearchCV(tool, {}, **scores(a)),
    "a search of a union": lambda a, tool: make_pipeline(
        scaler(a), GridSearchCV(make_pipeline(scaler(a), tool), {}, **scores(a))
    ),
    "a candidate": lambda a, tool: GridSearchCV(
        Pipeline([("c", classifier(a))]), {"c": [classifier(a), tool]}, **scores(a)
    ),
    "a search with processes": lambda a, tool: GridSearchCV(tool, {}, n_jobs=2, **scores(a)),
}
TRANSFORMS = ("a union", "columns")


def fits_into(tool, place):
    if place in TRANSFORMS:
        return hasattr(tool, "transform") or type(tool).__name__ in ("RFECV", "RFE")
    return hasattr(tool, "predict")


@pytest.mark.quick_cases(every=133)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("imputation", "boosting")])
def test_it_does_not_matter_where_a_tool_is(name, place):
    tool, labels = CASES[name](budget())
    # Their targets are several columns, or numbers.
    if labels is not y or not fits_into(tool, place):
        pytest.skip("this tool has no place there")

    def fit(accountant):
        PLACES[place](accountant, CASES[name](accountant)[0]).fit(X, y)

    check(fit, is_private_by_table(PLACES[place](budget(), tool)), place)


def sgd(accountant):
    return DPSGDClassifier(0.1, delta=1e-6, data_norm=2.0, accountant=accountant)


@pytest.mark.parametrize(
    ("build", "labels", "options"),
    [
        (OneVsRestClassifier, THREE, {"classes": [0, 1, 2]}),
        (OneVsOneClassifier, THREE, {"classes": [0, 1, 2]}),
        (MultiOutputClassifier, TWO, {"classes": [[0, 1], [0, 1]]}),
        (SelectFromModel, y, {"classes": [0, 1]}),
    ],
)
def test_parts_of_a_table_are_judged_too(build, labels, options):
    is_private = is_private_by_table(build(sgd(budget())))
    check(lambda a: build(sgd(a)).partial_fit(X, labels, **options), is_private)


@pytest.mark.parametrize("jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
def test_outputs_of_a_part_are_charged_only_if_all_labels_are_declared(jobs):
    """`partial_fit` declares the labels of each output, so a constant column reveals nothing."""
    declared = [[0, 1], [0, 1]]
    constant = np.c_[y, np.zeros_like(y)]
    accountant = budget("processes" if jobs else "", on_raw_data="raise")
    tool = MultiOutputClassifier(sgd(accountant), n_jobs=jobs)
    tool.partial_fit(X, constant, classes=declared).partial_fit(X, TWO)
    spent = accountant.epsilon_spent
    assert spent == pytest.approx(0.4)
    refused = {
        "not among the declared classes": lambda: tool.partial_fit(X, np.c_[y, THREE]),
        "classes differ": lambda: tool.partial_fit(X, TWO, classes=[[0, 1], [0, 1, 2]]),
        "at least two labels": lambda: clone(tool).partial_fit(X, constant, classes=[[0, 1], [0]]),
    }
    for words, call in refused.items():
        with pytest.raises(ValueError, match=words):
            call()
        assert accountant.epsilon_spent == spent


class Callback:
    """A callback of the user, which receives the rows of a tool."""

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, **rows):
        pass

    on_fit_task_end = on_fit_task_begin


def with_callback(tool):
    if not hasattr(tool, "set_callbacks"):
        pytest.skip("this version of scikit-learn has no callbacks")
    return tool.set_callbacks(Callback())


CALLED_BACK = {
    "grid search": lambda a: with_callback(GridSearchCV(classifier(a), {}, **scores(a))),
    "random search": lambda a: with_callback(
        RandomizedSearchCV(classifier(a), {}, n_iter=1, **scores(a))
    ),
    "pipeline": lambda a: with_callback(make_pipeline(scaler(a), classifier(a))),
    "search in a pipeline": lambda a: make_pipeline(
        scaler(a), with_callback(GridSearchCV(classifier(a), {}, **scores(a)))
    ),
    "pipeline in a search": lambda a: GridSearchCV(
        with_callback(make_pipeline(scaler(a), classifier(a))), {}, **scores(a)
    ),
}


@pytest.mark.parametrize("name", CALLED_BACK)
def test_callbacks_that_receive_rows_are_named(name):
    check(lambda a: CALLED_BACK[name](a).fit(X, y), False)


def test_callbacks_of_private_estimators_receive_no_rows():
    check(lambda a: with_callback(sgd(a)).fit(X, y), True)


FUNCTIONS = {
    "cross_val_score": lambda m, **more: cross_val_score(m, X, y, **more),
    "cross_validate": lambda m, **more: cross_validate(m, X, y, **more),
    "learning_curve": lambda m, **more: learning_curve(m, X, y, train_sizes=[0.5, 1.0], **more),
    "validation_curve": lambda m, **more: validation_curve(
        m, X, y, param_name="C", param_range=[0.1, 1.0], **more
    ),
}
JOBS = {"one process": None, "threads": "threading", "processes": "loky"}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("name", [*FUNCTIONS, "cross_val_predict", "permutation_test_score"])
def test_functions_are_judged_by_their_scores(name, jobs):
    def runs(with_scores):
        def fit(accountant):
            more = scores(accountant) if with_scores else {"cv": FOLDS}
            with joblib.parallel_config(JOBS[jobs] or "sequential"):
                function(classifier(accountant), n_jobs=2 if JOBS[jobs] else None, **more)

        return fit

    if name in FUNCTIONS:
        function = FUNCTIONS[name]
        check(runs(True), True, jobs)
    elif name == "cross_val_predict":

        def function(model, **more):
            cross_val_predict(model, X, y, **more)
    else:

        def function(model, **more):
            permutation_test_score(model, X, y, n_permutations=2, **more)

        check(runs(True), False, jobs)
    check(runs(False), False, jobs)


def by_person(function):
    """Return a function of an accountant that runs with metadata routing."""

    def fit(accountant):
        with sklearn.config_context(enable_metadata_routing=True):
            return function(accountant)

    return fit


def scored_persons(accountant, cv):
    return {**scores(accountant), "cv": cv}


# Tools by persons: whether they are private with folds by row numbers, and with folds of persons.
BY_PERSON = {
    "voting": (lambda a, cv: VotingClassifier([("a", classifier(a))]), True, True),
    "stacking": (
        lambda a, cv: StackingClassifier([("a", classifier(a))], classifier(a), cv=cv),
        False,
        True,
    ),
    "search": (lambda a, cv: GridSearchCV(classifier(a), {}, **scored_persons(a, cv)), False, True),
    "halving": (
        lambda a, cv: HalvingGridSearchCV(
            classifier(a), {}, min_resources=50, **scored_persons(a, cv)
        ),
        False,
        False,
    ),
    "elimination": (lambda a, cv: RFECV(classifier(a), **scored_persons(a, cv)), False, True),
}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("name", BY_PERSON)
@pytest.mark.parametrize("cv", [FOLDS, PersonKFold(2)])
def test_folds_of_persons_do_not_depend_on_how_many_rows_others_have(name, cv):
    build, *verdicts = BY_PERSON[name]
    is_private = verdicts[isinstance(cv, PersonKFold)]
    check(by_person(lambda a: build(a, cv).fit(X, y, groups=PERSONS)), is_private, unit="person")


@pytest.mark.parametrize("name", ["cross_val_score", "learning_curve"])
@pytest.mark.parametrize("cv", [FOLDS, PersonKFold(2)])
def test_scores_by_persons(name, cv):
    def fit(accountant):
        more = {**scored_persons(accountant, cv), "params": {"groups": PERSONS}}
        FUNCTIONS[name](classifier(accountant), **more)

    is_private = name == "cross_val_score" and isinstance(cv, PersonKFold)
    check(by_person(fit), is_private, unit="person")
    # Without routing the scores get no groups, which they would find out after a fit was charged.
    if isinstance(cv, PersonKFold):
        return
    accountant = budget(unit="person")
    _, error = run(fit, accountant)
    assert "enable_metadata_routing=True" in str(error)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("build", [RFE, SelectFromModel])
def test_a_selection_by_a_model_without_coefficients_is_refused_before_its_charge(build):
    for inner in CLASSIFIERS:
        if inner == "a model":
            continue
        accountant = budget()
        tool = build(CLASSIFIERS[inner](accountant))
        # `SelectFromModel` alone fits, and fails when it is asked for features.
        _, error = run(lambda a, t=tool: make_pipeline(t, classifier(a)).fit(X, y), accountant)
        assert "set importance_getter" in str(error)
        assert accountant.epsilon_spent == 0.0
    tool = build(
        make_pipeline(scaler(accountant), classifier(accountant)),
        importance_getter="named_steps.dplogisticregression.coef_",
    )
    assert run(lambda a: tool.fit(X, y), accountant) == ([], None)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("build", [RFE, SelectFromModel])
def test_a_selection_by_the_name_of_a_missing_attribute_is_refused_before_its_charge(build):
    """A name is refused exactly if the fitted model of that name would not have it."""
    names = ("coef_", "feature_importances_", "named_steps.dplogisticregression.coef_")
    wrong = ("named_steps.logisticregression.coef_", "named_steps.dpstandardscaler.coef_")
    models = {
        "a model": classifier,
        "a pipeline": lambda a: make_pipeline(scaler(a), classifier(a)),
        "an additive model": lambda a: DPAdditiveClassifier(0.1, bounds=(-1, 1), accountant=a),
        "a search": lambda a: GridSearchCV(classifier(a), {"C": [1.0]}, **scores(a)),
    }
    n_refused = 0
    for model, getter in itertools.product(models.values(), (*names, *wrong)):
        fitted = model(budget()).fit(X, y)
        try:
            has_attribute = operator.attrgetter(getter)(fitted) is not None
        except AttributeError:
            has_attribute = False
        accountant = budget()
        tool = build(model(accountant), importance_getter=getter)
        _, error = run(lambda a, t=tool: make_pipeline(t, classifier(a)).fit(X, y), accountant)
        assert (error is None) == has_attribute
        assert (accountant.epsilon_spent > 0.0) == has_attribute
        n_refused += error is not None
    # The model and the pipeline have one of the names each, and so has the additive model.
    assert n_refused == len(models) * len((*names, *wrong)) - 3


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_a_stack_whose_member_lacks_the_method_is_refused_before_its_charge(method, n_jobs):
    accountant = PrivacyAccountant(100.0, 1e-2)
    svc = DPLinearSVC(0.1, delta=1e-6, data_norm=2.0, accountant=accountant)
    stack = StackingClassifier(
        [("a", classifier(accountant)), ("b", svc), ("c", "drop")],
        classifier(accountant),
        cv=FOLDS,
        stack_method=method,
        n_jobs=n_jobs,
    )
    for tool in (stack, make_pipeline(scaler(accountant), stack)):
        before = accountant.epsilon_spent
        _, error = run(lambda _, t=tool: t.fit(X, y), accountant)
        assert ("'b', a DPLinearSVC, has no" in str(error)) == (not hasattr(svc, method))
        assert (accountant.epsilon_spent == before) == (not hasattr(svc, method))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_candidate_with_an_unknown_parameter_is_refused_before_other_candidates(n_jobs):
    accountant = PrivacyAccountant(100.0, 1e-2)
    grids = [{"C": [0.1, 1.0]}, {"unknown": [1]}]
    halving = HalvingGridSearchCV(
        classifier(accountant), grids, n_jobs=n_jobs, min_resources=30, **scores(accountant)
    )
    plain = GridSearchCV(classifier(accountant), grids, n_jobs=n_jobs, **scores(accountant))
    for search in (plain, halving):
        _, error = run(lambda _, s=search: s.fit(X, y), accountant)
        assert "Invalid parameter 'unknown'" in str(error)
        assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", ["a raw model", "a raw member"])
def test_raw_models_beside_frozen_private_ones_are_named(name):
    """No private estimator is fitted there: the frozen one is asked for its answers or its tags."""
    accountant = budget()
    if name == "a raw model":
        first = FrozenEstimator(scaler(accountant).fit(X))
        tool = make_pipeline(first, LogisticRegression())
    else:
        first = FrozenEstimator(classifier(accountant).fit(X, y))
        tool = VotingClassifier([("private", first), ("raw", LogisticRegression())])
    texts, error = run(lambda _: tool.fit(X, y), accountant)
    assert error is None
    assert len(texts) == 1


def test_halving_by_declared_labels_does_not_publish_how_many_of_them_occur():
    def fit(accountant, **more):
        model = classifier(accountant, classes=[0, 1, 2])
        HalvingGridSearchCV(model, {}, **scores(accountant), **more).fit(X, y)

    check(fit, False)
    check(lambda a: fit(a, min_resources=50), True)


class Draws:
    """A distribution of estimators, which a search can only draw from."""

    def __init__(self, *values):
        self.values = values
        self.n_drawn = 0

    def rvs(self, size=None, random_state=None):
        self.n_drawn += 1
        return self.values[self.n_drawn % len(self.values)]


def pipe(accountant):
    return Pipeline([("s", scaler(accountant)), ("c", classifier(accountant))])


def stack(accountant):
    return StackingClassifier([("a", classifier(accountant))], classifier(accountant), cv=FOLDS)


# Settings that a search tries: its estimator, and the values of a parameter, the last one raw.
TRIED = {
    "a raw step": (pipe, "s", lambda a, path: [scaler(a), StandardScaler()]),
    "a memory": (pipe, "memory", lambda a, path: [None, path]),
    "a last stage": (stack, "final_estimator", lambda a, path: [classifier(a), None]),
    "folds": (stack, "cv", lambda a, path: [FOLDS, 2]),
    "a number of features": (
        lambda a: make_pipeline(SelectFromModel(classifier(a)), classifier(a)),
        "selectfrommodel__max_features",
        lambda a, path: [1, lambda rows: 1],
    ),
    "a step of a plan": (
        planned,
        "dpstandardscaler",
        lambda a, path: ["passthrough", StandardScaler()],
    ),
    "scores of an inner search": (
        lambda a: GridSearchCV(classifier(a), {}, **scores(a)),
        "scoring",
        lambda a, path: [scores(a)["scoring"], "accuracy"],
    ),
}


@pytest.mark.quick_cases(every=42)
@pytest.mark.parametrize(
    "search", ["grid", "random", "drawn", "curve", "in a pipeline", "in an ensemble"]
)
@pytest.mark.parametrize("name", TRIED)
def test_no_candidate_is_charged_before_all_are_looked_at(name, search, tmp_path):
    build, parameter, values_of = TRIED[name]

    def fit(accountant):
        model, values = build(accountant), values_of(accountant, str(tmp_path))
        more = scores(accountant)
        if search == "grid":
            GridSearchCV(model, {parameter: values}, **more).fit(X, y)
        elif search.startswith("in a"):
            # A search inside another tool is looked at before the steps, or members, before it.
            inner = GridSearchCV(model, {parameter: values}, **more)
            if search == "in a pipeline":
                make_pipeline(scaler(accountant), inner).fit(X, y)
            else:
                VotingClassifier([("a", classifier(accountant)), ("b", inner)]).fit(X, y)
        elif search == "curve":
            validation_curve(model, X, y, param_name=parameter, param_range=values, **more)
        else:
            grid = {parameter: Draws(*values) if search == "drawn" else values}
            RandomizedSearchCV(model, grid, n_iter=2, **more).fit(X, y)

    check(fit, False)


def test_numbers_among_candidates_are_not_named():
    grid = {"c__C": [0.1, 1.0], "s__bounds": [(-1, 1), (-2, 2)], "c": [classifier(budget())]}
    check(lambda a: GridSearchCV(pipe(a), grid, **scores(a)).fit(X, y), True)


def test_what_a_search_looks_at_is_not_changed():
    accountant = budget()
    model = pipe(accountant)
    tried = make_pipeline(scaler(accountant))
    search = GridSearchCV(
        model, {"s": [tried], "s__dpstandardscaler__bounds": [(-2, 2)]}, **scores(accountant)
    )
    assert run(lambda _: search.fit(X, y), accountant) == ([], None)
    assert model.named_steps["s"].bounds == (-1, 1)
    assert tried[0].bounds == (-1, 1)


def test_every_sampler_of_imbalanced_learn_is_refused_in_a_pipeline():
    testing = pytest.importorskip("imblearn.utils.testing")
    imblearn = pytest.importorskip("imblearn.pipeline")
    for name, cls in testing.all_estimators("sampler"):
        sampler = cls(categorical_features=[0]) if name == "SMOTENC" else cls()
        tool = imblearn.make_pipeline(sampler, classifier(budget()))
        check(lambda a, t=tool: t.set_params(dplogisticregression=classifier(a)).fit(X, y), False)
        assert not is_private_by_table(tool)


def test_a_pipeline_in_one_of_imbalanced_learn_is_refused_before_other_charges():
    imblearn = pytest.importorskip("imblearn.pipeline")
    for inner in (lambda a: make_pipeline(scaler(a)), lambda a: imblearn.make_pipeline(scaler(a))):
        accountant = budget()
        tool = imblearn.make_pipeline(inner(accountant), classifier(accountant))
        _, error = run(lambda a, t=tool: make_pipeline(scaler(a), t).fit(X, y), accountant)
        assert "accepts only as the last step" in str(error)
        assert accountant.epsilon_spent == 0.0


def test_every_ensemble_of_imbalanced_learn_is_refused():
    testing = pytest.importorskip("imblearn.utils.testing")
    for _, cls in testing.all_estimators():
        if "estimator" in inspect.signature(cls).parameters and hasattr(cls, "predict"):
            check(lambda a, c=cls: c(estimator=classifier(a)).fit(X, y), False)


def default_regressor():
    return TransformedTargetRegressor(func=np.tanh, inverse_func=np.arctanh, check_inverse=False)


def target_scorer(accountant):
    more = {"target_bounds": (-1, 1), "accountant": accountant}
    return make_dp_scorer("neg_mean_squared_error", epsilon=0.1, **more)


def target_search(accountant, model, grid):
    return GridSearchCV(model, grid, scoring=target_scorer(accountant), cv=FOLDS)


# Places of a regressor that None stands for, as functions of an accountant.
DEFAULT_REGRESSOR = {
    "a pipeline": lambda a: make_pipeline(scaler(a), default_regressor()),
    "a tool of a tool": lambda a: make_pipeline(
        scaler(a), TransformedTargetRegressor(default_regressor())
    ),
    "voting": lambda a: VotingRegressor([("a", regressor(a)), ("b", default_regressor())]),
    "stacking": lambda a: StackingRegressor(
        [("a", regressor(a)), ("b", default_regressor())], regressor(a), cv=FOLDS
    ),
    "a last stage": lambda a: StackingRegressor(
        [("a", regressor(a))], default_regressor(), cv=FOLDS
    ),
    "a selection": lambda a: make_pipeline(
        scaler(a), SelectFromModel(default_regressor(), importance_getter="regressor_.coef_")
    ),
    "a candidate": lambda a: target_search(
        a, Pipeline([("m", regressor(a))]), {"m": [regressor(a), default_regressor()]}
    ),
    "a setting": lambda a: target_search(
        a, TransformedTargetRegressor(regressor(a)), {"regressor": [None]}
    ),
    "a removed regressor": lambda a: make_pipeline(
        scaler(a), TransformedTargetRegressor(regressor(a)).set_params(regressor=None)
    ),
}


@pytest.mark.parametrize("place", DEFAULT_REGRESSOR)
def test_a_regressor_that_is_fitted_by_default_is_judged(place):
    check(lambda a: DEFAULT_REGRESSOR[place](a).fit(X, TARGET), False)


def test_a_private_score_of_a_default_regressor_is_judged():
    accountant = budget(on_raw_data="raise")
    model = default_regressor().fit(X, TARGET)
    _, error = run(lambda a: target_scorer(a)(model, X, TARGET), accountant)
    assert "LinearRegression in 'regressor'" in str(error)
    assert accountant.epsilon_spent == 0.0


def private_stack(accountant, **more):
    members = [("a", classifier(accountant)), ("b", classifier(accountant))]
    return StackingClassifier(members, classifier(accountant), cv=FOLDS, **more)


BACKENDS = [
    "threading",
    pytest.param("loky in processes", marks=pytest.mark.thorough),
    pytest.param("multiprocessing in processes", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_that_a_private_tool_calls_in_workers_is_no_call_of_the_users(backend):
    with joblib.parallel_config(backend=backend.split()[0], n_jobs=2):
        check(lambda a: make_pipeline(scaler(a), private_stack(a)).fit(X, y), True, backend)
        assert run(lambda a: private_stack(a).fit(X, y), budget(backend)) == ([], None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_that_the_user_calls_in_workers_is_judged_there(backend):
    def fit(accountant):
        task = joblib.delayed(cross_val_predict)(classifier(accountant), X, y, cv=FOLDS)
        joblib.Parallel(2)([task, task])

    accountant = budget(backend, on_raw_data="raise")
    with joblib.parallel_config(backend=backend.split()[0]):
        _, error = run(fit, accountant)
    assert "cross_val_predict" in str(error)
    assert accountant.epsilon_spent == 0.0


def public_plan(accountant, n_jobs=None):
    """Return a plan of a public step and private ones; with `n_jobs`, inside a union."""
    steps = make_pipeline(StandardScaler(), DPStandardScaler(bounds=(-1, 1)))
    name = "standardscaler"
    if n_jobs is not None:
        parts = [("a", steps), ("b", DPStandardScaler(bounds=(-1, 1)))]
        steps = make_pipeline(FeatureUnion(parts, n_jobs=n_jobs))
        name = "featureunion__a__standardscaler"
    steps.steps.append(("model", DPLogisticRegression(data_norm=2.0)))
    return split_budget(steps, 0.1, 1e-6, accountant, public_steps=[name])


PUBLIC_STEPS = {
    "a fit": lambda a: public_plan(a).fit(X, y),
    "a union in processes": lambda a: public_plan(a, n_jobs=2).fit(X, y),
    "a score": lambda a: cross_val_score(public_plan(a), X, y, **scores(a)),
    "a score of a pipeline": lambda a: cross_val_score(
        make_pipeline("passthrough", public_plan(a)), X, y, **scores(a)
    ),
    "a search": lambda a: GridSearchCV(public_plan(a), {"model__C": [0.1]}, **scores(a)).fit(X, y),
}
IN_PROCESSES = {
    "scores in processes": lambda a: cross_val_score(public_plan(a), X, y, n_jobs=2, **scores(a)),
    "voting in processes": lambda a: VotingClassifier(
        [("one", public_plan(a, n_jobs=1)), ("two", public_plan(a))], n_jobs=2
    ).fit(X, y),
}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    "name", [*PUBLIC_STEPS, *(pytest.param(n, marks=pytest.mark.thorough) for n in IN_PROCESSES)]
)
def test_steps_that_a_plan_declares_public_are_not_named(name):
    fit = (PUBLIC_STEPS | IN_PROCESSES)[name]
    check(fit, True, name)
    assert run(fit, budget(name)) == ([], None)


def test_a_step_is_public_only_in_its_plan():
    fitted = public_plan(budget("processes"), n_jobs=2).fit(X, y)
    part = fitted[0].transformer_list[0][1]
    check(lambda a: make_pipeline(StandardScaler(), part[1].set_params(accountant=a)).fit(X), False)
    # Steps that were replaced after the fit were not checked by it.
    changed = public_plan(budget()).fit(X, y).set_params(dpstandardscaler=StandardScaler().fit(X))
    accountant = budget(on_raw_data="raise")
    _, error = run(lambda a: scores(a)["scoring"](changed, X, y), accountant)
    assert "scores a model that learns from raw rows" in str(error)
    assert accountant.epsilon_spent == 0.0


def tool_module(monkeypatch):
    """Return a module of an installed package that skdp does not know."""
    module = types.ModuleType("some_tool")
    monkeypatch.setitem(sys.modules, "some_tool", module)
    code = """
from sklearn.base import BaseEstimator, ClassifierMixin, clone


class Tool(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X):
        return self.estimator_.predict(X)
"""
    exec(compile(code, "/usr/lib/python3/site-packages/some_tool.py", "exec"), vars(module))
    return module


def drawn(accountant, *values):
    return RandomizedSearchCV(
        Pipeline([("s", "passthrough"), ("c", classifier(accountant))]),
        {"s": Draws(*values)},
        n_iter=1,
        **scores(accountant),
    )


def with_folds(accountant, cv):
    return GridSearchCV(classifier(accountant), {}, **{**scores(accountant), "cv": cv})


# Tools whose problem shows in what their fit gets or draws, with labels.
LATE = {
    "labels of several columns": (lambda a: OneVsRestClassifier(classifier(a)), TWO),
    "outputs": (lambda a: MultiOutputClassifier(classifier(a)), TWO),
    "a chain": (lambda a: ClassifierChain(classifier(a)), TWO),
    "drawn steps": (lambda a: drawn(a, StandardScaler()), y),
    "an iterator": (lambda a: with_folds(a, iter(list(FOLDS.split(X)))), y),
    "an iterator of folds by labels": (
        lambda a: with_folds(a, map(tuple, StratifiedKFold(2).split(X, y))),
        y,
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_what_a_later_step_gets_is_looked_at_before_the_first_charge(name):
    build, labels = LATE[name]
    check(lambda a: make_pipeline(scaler(a), build(a)).fit(X, labels), False)
    if labels is TWO:

        def fit(accountant):
            selection = SelectFromModel(build(accountant), importance_getter=equal_importances)
            FeatureUnion([("s", scaler(accountant)), ("m", selection)]).fit(X, labels)

        check(fit, False)
    elif "by labels" not in name:
        # A generator cannot be copied.
        check(
            lambda a: VotingClassifier([("a", classifier(a)), ("b", build(a))]).fit(X, labels),
            False,
        )


def test_what_a_later_step_gets_may_be_private():
    for build, labels in (
        (lambda a: OneVsRestClassifier(classifier(a)), THREE),
        (lambda a: MultiOutputClassifier(classifier(a, classes=[0, 1])), TWO),
        # Each of these gets one column of the labels.
        (lambda a: MultiOutputClassifier(OneVsRestClassifier(classifier(a, classes=[0, 1]))), TWO),
        (lambda a: with_folds(a, FOLDS.split(X)), y),
        (lambda a: with_folds(a, map(tuple, FOLDS.split(X))), y),
        (
            lambda a: RandomizedSearchCV(
                classifier(a), {"C": loguniform(0.1, 1.0)}, n_iter=1, **scores(a)
            ),
            y,
        ),
    ):
        check(lambda a, b=build, z=labels: make_pipeline(scaler(a), b(a)).fit(X, z), True)


def test_an_unknown_tool_behind_a_private_step_is_named_before_the_charge(monkeypatch):
    tool = tool_module(monkeypatch).Tool
    for fit in (
        lambda a: make_pipeline(scaler(a), tool(classifier(a))).fit(X, y),
        lambda a: VotingClassifier([("a", classifier(a)), ("b", tool(classifier(a)))]).fit(X, y),
        lambda a: GridSearchCV(make_pipeline(scaler(a), tool(classifier(a))), {}, **scores(a)).fit(
            X, y
        ),
    ):
        check(fit, False)

    class Own(tool):
        """A user's own class, which passes its rows on."""

        def fit(self, X, y):
            return super().fit(X, y)

    texts, error = run(lambda a: make_pipeline(scaler(a), Own(classifier(a))).fit(X, y), budget())
    assert error is None
    assert len(texts) == 1


@pytest.mark.parametrize("total", [0.25, 0.55, 0.65])
def test_the_price_of_a_search_is_known_before_the_step_before_it(total):
    # 2 folds, a score for each, and the last fit, behind a scaler.
    accountant = PrivacyAccountant(total, 1e-2, ledger="memory://")
    model = make_pipeline(scaler(accountant), with_folds(accountant, FOLDS))
    if total > 0.6:
        model.fit(X, y)
        assert accountant.epsilon_spent == pytest.approx(0.6)
        return
    with pytest.raises(BudgetExceededError, match=r"Pipeline: .* 0\.6 or more"):
        model.fit(X, y)
    assert accountant.epsilon_spent == 0.0


def frozen_selection(build=SelectFromModel):
    return FrozenEstimator(build(classifier(budget("processes"))).fit(X, y))


def frozen_regressor():
    return FrozenEstimator(regressor(budget()).fit(X, TARGET))


# Fits beside frozen private estimators, of which none is fitted again: True if private.
BESIDE_FROZEN = {
    "scaled targets": (
        lambda a: TransformedTargetRegressor(frozen_regressor(), transformer=StandardScaler()),
        False,
    ),
    "targets by a function": (
        lambda a: TransformedTargetRegressor(
            frozen_regressor(), func=np.tanh, inverse_func=np.arctanh, check_inverse=False
        ),
        True,
    ),
    "a model behind a selection": (
        lambda a: make_pipeline(frozen_selection(), LogisticRegression()),
        False,
    ),
    "a model behind an elimination": (
        lambda a: make_pipeline(frozen_selection(RFE), LogisticRegression()),
        False,
    ),
    "a model behind a pipeline": (
        lambda a: make_pipeline(
            FrozenEstimator(make_pipeline(SelectFromModel(classifier(budget()))).fit(X, y)),
            LogisticRegression(),
        ),
        False,
    ),
    "a column": (
        lambda a: ColumnTransformer(
            [("s", frozen_selection(), [0, 1, 2]), ("raw", StandardScaler(), [1])]
        ),
        False,
    ),
    "a union in processes": (
        lambda a: FeatureUnion([("s", frozen_selection()), ("raw", StandardScaler())], n_jobs=2),
        False,
    ),
    "a private model": (lambda a: make_pipeline(frozen_selection(), classifier(a)), True),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] if name.endswith("in processes") else [])
        for name in BESIDE_FROZEN
    ],
)
def test_tools_beside_frozen_estimators_are_judged(name):
    build, is_private = BESIDE_FROZEN[name]
    labels = TARGET if "targets" in name else y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build(budget()).fit(X, labels)
    texts = [w for w in caught if issubclass(w.category, RawDataWarning)]
    assert len(texts) == (0 if is_private else 1)
    if not is_private:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RawDataWarning)
            with pytest.raises(RawDataWarning):
                build(budget()).fit(X, labels)


def test_a_raw_score_of_a_frozen_estimator_is_refused_and_not_nan():
    accountant = budget()
    model = FrozenEstimator(classifier(accountant).fit(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RawDataWarning)
        with pytest.raises(RawDataWarning, match="scores of the raw rows"):
            cross_val_score(model, X, y)
    texts, error = run(lambda a: cross_val_score(model, X, y, **scores(a)), accountant)
    assert (texts, error) == ([], None)


def private_centers(accountant):
    def init(X, n_clusters, random_state):
        model = DPKMeans(n_clusters=n_clusters, epsilon=0.1, bounds=(-1, 1), accountant=accountant)
        return model.fit(X).cluster_centers_

    return init


def test_an_estimator_that_calls_a_function_of_the_user_is_seen_outside_of_it():
    def kernel(accountant):
        return lambda A, B: scaler(accountant).fit_transform(A) @ B.T

    for fit in (
        lambda a: KMeans(2, init=private_centers(a), n_init=1).fit(X),
        lambda a: MiniBatchKMeans(2, init=private_centers(a), n_init=1).fit(X),
        lambda a: SVC(kernel=kernel(a)).fit(X, y),
    ):
        check(fit, False)
    # By itself, the function is the user's.
    check(lambda a: private_centers(a)(X, 2, None), True)


def test_a_raw_step_around_a_private_estimator_is_named_once():
    class Clusters(ClusterMixin, DPKMeans):
        @property
        def labels_(self):
            return np.zeros(len(X), dtype=int)

    def fit(accountant):
        clusters = Clusters(n_clusters=2, epsilon=0.1, bounds=(-1, 1), accountant=accountant)
        make_pipeline(scaler(accountant), Birch(n_clusters=clusters)).fit(X)

    accountant = budget()
    texts, _ = run(fit, accountant)
    assert len(texts) == 1
    assert "Birch in 'birch'" in texts[0]


def test_a_chain_of_folds_by_persons_is_refused_before_its_charge():
    for build in (
        lambda a, cv: RegressorChain(regressor(a), cv=cv),
        lambda a, cv: make_pipeline(scaler(a), RegressorChain(regressor(a), cv=cv)),
    ):
        for cv in (FOLDS, PersonKFold(2)):
            accountant = budget(unit="person")
            fit = by_person(lambda a, b=build, f=cv: b(a, f).fit(X, TARGETS, groups=PERSONS))
            _, error = run(fit, accountant)
            assert "does not pass groups to the fits of its folds (use cv=None)" in str(error)
            assert accountant.epsilon_spent == 0.0
