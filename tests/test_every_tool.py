"""Every class of scikit-learn that holds estimators, around private ones, in every place.

The expected result of a class is its kind in the table of known classes: what learns nothing but
what the estimators inside it learn is silent, and everything else is named before the charge. A
class that is not in that table, or that no line here builds, fails a test.
"""

import inspect
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
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
from sklearn.utils import all_estimators

from skdp import (
    DPGridSearchCV,
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
from skdp.pipeline._known import UNKNOWN, find_class, find_raw_steps

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 3))
y = (X[:, 0] > 0).astype(int)
TWO = np.c_[y, 1 - y]
THREE = np.arange(120) % 3
TARGET = X[:, 0]
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
    # Others than models have no coefficients, which is refused: see the test below.
    "selection": lambda a, m: SelectFromModel(m, importance_getter="coef_"),
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


@pytest.mark.quick_cases(every=4)
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


@pytest.mark.quick_cases(every=6)
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


@pytest.mark.quick_cases(every=9)
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
        (MultiOutputClassifier, TWO[:, :1], {"classes": [[0, 1]]}),
        (SelectFromModel, y, {"classes": [0, 1]}),
    ],
)
def test_parts_of_a_table_are_judged_too(build, labels, options):
    is_private = is_private_by_table(build(sgd(budget())))
    check(lambda a: build(sgd(a)).partial_fit(X, labels, **options), is_private)


FUNCTIONS = {
    "cross_val_score": lambda m, **more: cross_val_score(m, X, y, **more),
    "cross_validate": lambda m, **more: cross_validate(m, X, y, **more),
    "learning_curve": lambda m, **more: learning_curve(m, X, y, train_sizes=[0.5, 1.0], **more),
    "validation_curve": lambda m, **more: validation_curve(
        m, X, y, param_name="C", param_range=[0.1, 1.0], **more
    ),
}
JOBS = {"one process": None, "threads": "threading", "processes": "loky"}


@pytest.mark.quick_cases(every=5)
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


@pytest.mark.parametrize("build", [RFE, SelectFromModel])
def test_a_selection_by_a_model_without_coefficients_is_refused_before_its_charge(build):
    for inner in CLASSIFIERS:
        if inner == "a model":
            continue
        accountant = budget()
        tool = build(CLASSIFIERS[inner](accountant))
        # `SelectFromModel` alone fits, and fails when it is asked for features.
        _, error = run(lambda a, t=tool: make_pipeline(t, classifier(a)).fit(X, y), accountant)
        assert "give importance_getter" in str(error)
        assert accountant.epsilon_spent == 0.0
    tool = build(
        make_pipeline(scaler(accountant), classifier(accountant)),
        importance_getter="named_steps.dplogisticregression.coef_",
    )
    assert run(lambda a: tool.fit(X, y), accountant) == ([], None)


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


@pytest.mark.quick_cases(every=2)
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


def test_every_ensemble_of_imbalanced_learn_is_refused():
    testing = pytest.importorskip("imblearn.utils.testing")
    for _, cls in testing.all_estimators():
        if "estimator" in inspect.signature(cls).parameters and hasattr(cls, "predict"):
            check(lambda a, c=cls: c(estimator=classifier(a)).fit(X, y), False)
