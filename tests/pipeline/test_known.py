"""The table of known classes."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.preprocessing
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils import all_estimators

import skdp
from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.model_selection import PersonKFold, make_dp_scorer
from skdp.pipeline import check_pipeline, split_budget
from skdp.pipeline._known import find_raw_steps, kind_by_table
from tests._private import KNOWN_STEPS, REASONS, TOOLS, UNKNOWN, KnownStep, find_class


class OwnStep(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class OwnDeclaredStep(OwnStep):
    __skdp_kind__ = "stateless"


class OwnModel(DPLogisticRegression):
    """A private model with a method more."""


def model():
    return DPLogisticRegression(delta=0.0)


def kinds(estimator):
    return {step.name: step.kind for step in find_raw_steps(estimator)}


def by_person():
    return PrivacyAccountant(10.0, 1e-3, unit="person")


def library_class(module, name, *bases):
    """Return a class that is known as one of a library that need not be installed."""
    return type(name, bases, {"__module__": module})


def columns(*parts, **params):
    return ColumnTransformer([(f"p{i}", *part) for i, part in enumerate(parts)], **params)


PRIVATELY = {
    "scoring": make_dp_scorer("accuracy", epsilon=0.1),
    "cv": KFold(3, shuffle=True, random_state=0),
}
SILENT = {
    "a private model": model,
    "a class derived from a private one": OwnModel,
    "private steps": lambda: make_pipeline(DPStandardScaler(bounds=(0, 1)), model()),
    "steps that learn nothing": lambda: make_pipeline(Normalizer(), "passthrough", model()),
    "declared categories": lambda: make_pipeline(OneHotEncoder(categories=[["a", "b"]]), model()),
    "a step that declares its kind": lambda: make_pipeline(OwnDeclaredStep(), model()),
    "columns by type": lambda: make_pipeline(
        columns((DPStandardScaler(), make_column_selector(dtype_include="number"))), model()
    ),
    "what is frozen": lambda: make_pipeline(FrozenEstimator(StandardScaler()), model()),
    "a private search": lambda: DPGridSearchCV(model(), {}),
    "voting": lambda: VotingClassifier([("a", model()), ("b", model())]),
    "one against the rest": lambda: OneVsRestClassifier(model()),
    "features by private coefficients": lambda: make_pipeline(SelectFromModel(model()), model()),
    "features one after the other": lambda: RFE(model()),
    "a fixed threshold": lambda: FixedThresholdClassifier(model(), threshold=0.3),
    "targets by a function": lambda: TransformedTargetRegressor(
        DPRidge(), func=np.log1p, inverse_func=np.expm1
    ),
    "a search with a private scorer": lambda: GridSearchCV(model(), {}, **PRIVATELY),
    "a search with several private scorers": lambda: GridSearchCV(
        model(), {}, scoring={"a": PRIVATELY["scoring"]}, cv=KFold(3), refit="a"
    ),
    "features with a private scorer": lambda: RFECV(model(), **PRIVATELY),
    "a choice of features with a private scorer": lambda: SequentialFeatureSelector(
        model(), **PRIVATELY
    ),
    "a search by persons": lambda: GridSearchCV(
        model(), {}, scoring=make_dp_scorer("accuracy", accountant=by_person()), cv=PersonKFold(3)
    ),
    "dense columns": lambda: columns(
        (DPOneHotEncoder(categories=[["a"]], sparse_output=False), [0]), (Normalizer(), [1])
    ),
    "a private last stage": lambda: StackingClassifier(
        [("a", model())], final_estimator=model(), cv=KFold(3)
    ),
}
RAW = {
    "a scaler": (lambda: make_pipeline(StandardScaler(), model()), {"standardscaler": "learns"}),
    "a raw model": (
        lambda: make_pipeline(DPStandardScaler(), CalibratedClassifierCV(model())),
        {"calibratedclassifiercv": "calibrates"},
    ),
    "within a column transformer": (
        lambda: make_pipeline(
            columns((StandardScaler(), [0]), (OneHotEncoder(), [1]), remainder=StandardScaler()),
            model(),
        ),
        {
            "columntransformer__p0": "learns",
            "columntransformer__p1": "learns",
            "columntransformer__remainder": "learns",
            "columntransformer__sparse_threshold": "learns",
        },
    ),
    "columns chosen by a function": (
        lambda: make_pipeline(columns((DPStandardScaler(), lambda X: [0])), model()),
        {"columntransformer__p0__columns": "learns"},
    ),
    "within a union in a pipeline": (
        lambda: make_pipeline(FeatureUnion([("u", Pipeline([("s", StandardScaler())]))]), model()),
        {"featureunion__u__s": "learns"},
    ),
    "a memory": (
        lambda: Pipeline([("s", DPStandardScaler()), ("m", model())], memory="rows"),
        {"memory": "learns"},
    ),
    "a step of one's own": (lambda: make_pipeline(OwnStep(), model()), {"ownstep": "unknown"}),
    "a function of the whole table": (
        lambda: make_pipeline(FunctionTransformer(lambda X: X - X.mean()), model()),
        {"functiontransformer": "unknown"},
    ),
    "bagging": (lambda: BaggingClassifier(model()), {"": "resamples"}),
    "boosting": (lambda: AdaBoostClassifier(model()), {"": "resamples"}),
    "one against one": (lambda: OneVsOneClassifier(model()), {"": "resamples"}),
    "stacking": (lambda: StackingClassifier([("a", model())]), {"": "calibrates"}),
    "stacking on folds by label": (
        lambda: StackingClassifier([("a", model())], final_estimator=model()),
        {"": "calibrates"},
    ),
    "a threshold from rows": (lambda: TunedThresholdClassifierCV(model()), {"": "calibrates"}),
    "targets scaled by what they are": (
        lambda: TransformedTargetRegressor(DPRidge(), transformer=StandardScaler()),
        {"transformer": "learns"},
    ),
    "a search": (
        lambda: GridSearchCV(make_pipeline(StandardScaler(), model()), {}),
        {"": "cross_validates", "estimator__standardscaler": "learns"},
    ),
    "a search with a raw scorer beside a private one": (
        lambda: GridSearchCV(
            model(), {}, scoring={"a": PRIVATELY["scoring"], "b": "accuracy"}, cv=KFold(3)
        ),
        {"": "cross_validates"},
    ),
    "a search on folds by label": (
        lambda: GridSearchCV(model(), {}, scoring=PRIVATELY["scoring"]),
        {"": "cross_validates"},
    ),
    "features by raw scores": (lambda: RFECV(model()), {"": "cross_validates"}),
    "a raw step that a search tries": (
        lambda: GridSearchCV(
            Pipeline([("s", DPStandardScaler()), ("m", model())]),
            {"s": [DPStandardScaler(), StandardScaler()]},
            **PRIVATELY,
        ),
        {"estimator__s": "learns"},
    ),
    "a search on folds that split persons": (
        lambda: GridSearchCV(
            model(), {}, scoring=make_dp_scorer("accuracy", accountant=by_person()), cv=KFold(3)
        ),
        {"": "cross_validates"},
    ),
    "a form that the cells decide": (
        lambda: make_pipeline(columns((DPOneHotEncoder(categories=[["a"]]), [0])), model()),
        {"columntransformer__sparse_threshold": "learns"},
    ),
    "an estimator without parameters": (
        library_class("mapie.regression", "Conformal"),
        {"": "calibrates"},
    ),
    "voting of a raw model": (
        lambda: VotingClassifier([("a", model()), ("b", CalibratedClassifierCV(model()))]),
        {"b": "calibrates"},
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_private_or_learns_nothing_is_not_listed(name):
    assert find_raw_steps(SILENT[name]()) == []


@pytest.mark.parametrize("name", RAW)
def test_what_learns_from_raw_rows_is_listed_with_a_remedy(name):
    make, expected = RAW[name]
    assert kinds(make()) == expected
    assert all(step.advice for step in find_raw_steps(make()))


FRAME = {"transform": "pandas"}
WORDS_TO_WORDS = {
    "a function": FunctionTransformer(feature_names_out="one-to-one").set_output(**FRAME),
    "an imputer": SimpleImputer(
        strategy="constant", fill_value="?", keep_empty_features=True
    ).set_output(**FRAME),
    "a private imputer": DPSimpleImputer(strategy="constant", fill_value="?").set_output(**FRAME),
}
TYPES_ARE_GIVEN = {
    "nothing": "passthrough",
    "numbers": DPStandardScaler(bounds=(0, 1)).set_output(**FRAME),
    "frozen numbers": FrozenEstimator(DPStandardScaler(bounds=(0, 1)).set_output(**FRAME)),
}
SELECTORS = {
    "type": make_column_selector(dtype_include="string"),
    "another type": make_column_selector(dtype_exclude="number"),
    "pattern": make_column_selector("x"),
    "list": [0],
}
PLACES_OF_COLUMNS = {
    "behind": lambda step, columns: make_pipeline(step, columns),
    "later": lambda step, columns: make_pipeline(step, None, columns),
    "nested": lambda step, columns: make_pipeline(step, make_pipeline("passthrough", columns)),
    "beside": lambda step, columns: make_pipeline(step, FeatureUnion([("c", columns)])),
    "voting": lambda step, columns: make_pipeline(
        step, VotingClassifier([("m", make_pipeline(columns, model()))])
    ),
}


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("step", WORDS_TO_WORDS | TYPES_ARE_GIVEN)
@pytest.mark.parametrize("place", PLACES_OF_COLUMNS)
def test_columns_are_not_chosen_by_types_that_values_decide(place, step, selector):
    encoder = DPOneHotEncoder(categories=["a", "b"], sparse_output=False)
    by_columns = ColumnTransformer([("e", encoder, SELECTORS[selector])])
    pipe = PLACES_OF_COLUMNS[place]((WORDS_TO_WORDS | TYPES_ARE_GIVEN)[step], by_columns)
    found = [raw for raw in find_raw_steps(pipe) if raw.name.endswith("e__columns")]
    assert bool(found) == (step in WORDS_TO_WORDS and "type" in selector)


@pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) < 3, reason="pandas 2 does not infer a type of strings"
)
@pytest.mark.parametrize("step", WORDS_TO_WORDS)
def test_why_values_decide_the_types_of_columns(step):
    words = np.array([["a"], ["b"], ["a"]], dtype=object)
    one_number = np.array([["a"], ["b"], [3]], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = [
            SELECTORS["type"](WORDS_TO_WORDS[step].fit(table).transform(table))
            for table in (words, one_number)
        ]
    assert chosen == [["x0"], []]


def test_a_fitted_pipeline_is_looked_at_too():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = make_pipeline(columns((StandardScaler(), [0, 1])), model()).fit(X, X[:, 0] > 0.5)
    assert kinds(pipe) == {"columntransformer__p0": "learns"}


def test_nothing_is_copied_or_asked_of_known_classes(monkeypatch):
    """So it takes microseconds, and may stand before each fit."""
    pipe = make_pipeline(columns((StandardScaler(), [0]), (Normalizer(), [1])), model())

    def get_params(self, deep=True):
        raise AssertionError("parameters are read as attributes")

    monkeypatch.setattr(BaseEstimator, "get_params", get_params)
    monkeypatch.setattr(Pipeline, "get_params", get_params)
    monkeypatch.setattr(ColumnTransformer, "get_params", get_params)
    assert kinds(pipe) == {"columntransformer__p0": "learns"}


def test_every_class_of_scikit_learn_has_an_entry():
    missing = [
        name for name, kind in all_estimators() if find_class(kind.__module__, name) is UNKNOWN
    ]
    assert missing == []


@pytest.mark.quick_cases(every=11)
@pytest.mark.parametrize("name", [n for n, _ in all_estimators()])
def test_a_new_class_of_scikit_learn_is_never_accepted(name):
    """Whatever module it is added to, its kind is unknown or that it learns from rows."""
    kind = dict(all_estimators())[name]
    assert find_class(kind.__module__, "NewEstimator").kind in ("unknown", "learns")


def test_no_tool_has_two_entries():
    classes = [name for tool in TOOLS for name in tool.classes]
    modules = [name for tool in TOOLS for name in tool.modules]
    assert len(set(classes)) == len(classes)
    assert len(set(modules)) == len(modules)
    for tool in TOOLS:
        assert (tool.step is None) == (not tool.classes)
        assert (tool.call is None) == (not tool.modules)


@pytest.mark.parametrize("key", KNOWN_STEPS)
def test_every_entry_says_what_to_write_instead(key):
    entry = KNOWN_STEPS[key]
    assert {entry.kind, entry.otherwise} <= set(REASONS)
    is_accepted = entry.kind in ("stateless", "declared", "container", "wrapper")
    always = entry.condition is type(entry).condition
    assert entry.advice or (is_accepted and always)


def test_every_class_that_is_to_be_used_instead_exists():
    known = {name for name, _ in all_estimators()} | {"FrozenEstimator", "KFold", *skdp.__all__}
    advice = " ".join(entry.advice for entry in KNOWN_STEPS.values())
    names = set(re.findall(r"\b(?:DP[A-Z]|[A-Z][a-z]+[A-Z])\w+", advice))
    assert len(names) > 20 and names <= known


FUNCTIONS = [name for name in sklearn.preprocessing.__all__ if name.islower()]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bind", [lambda function: function, partial])
def test_a_function_of_scikit_learn_is_replaced_by_a_class(name, bind):
    step = FunctionTransformer(bind(getattr(sklearn.preprocessing, name)))
    kind, advice = kind_by_table(step)
    assert kind == "unknown"
    if name not in ("add_dummy_feature", "label_binarize"):
        instead = advice.removeprefix("use ")
        assert hasattr(skdp, instead) or hasattr(sklearn.preprocessing, instead)


def test_columns_scaled_by_their_norms_are_not_replaced_by_rows():
    step = FunctionTransformer(sklearn.preprocessing.normalize, kw_args={"axis": 0})
    assert "Normalizer" not in kind_by_table(step)[1]


@pytest.mark.parametrize("use_idf", [True, False])
@pytest.mark.parametrize("sublinear_tf", [True, False])
def test_words_may_be_weighted_in_each_row_alone(use_idf, sublinear_tf):
    step = TfidfTransformer(use_idf=use_idf, sublinear_tf=sublinear_tf)
    assert (kinds(step) == {}) == (not use_idf and not sublinear_tf)
    if kinds(step) == {}:
        before = set(vars(step))
        step.fit(np.array([[1.0, 0.0], [2.0, 1.0]]))
        assert set(vars(step)) - before <= {"n_features_in_"}
        table = np.random.default_rng(0).integers(0, 3, (9, 2))
        alone = [step.transform(row[None]).toarray()[0] for row in table]
        np.testing.assert_allclose(step.transform(table).toarray(), alone)


@pytest.mark.parametrize(
    ("module", "name", "kind"),
    [
        ("imblearn.over_sampling._smote.base", "SMOTE", "resamples"),
        ("imblearn.under_sampling._prototype_selection", "RandomUnderSampler", "resamples"),
        ("imblearn.ensemble._bagging", "BalancedBaggingClassifier", "resamples"),
        ("imblearn.pipeline", "Pipeline", "container"),
        ("imblearn.base", "FunctionSampler", "resamples"),
        ("skrub._table_vectorizer", "TableVectorizer", "learns"),
        ("skrub._apply_to_cols", "ApplyToCols", "container"),
        ("feature_engine.imputation.mean_median", "MeanMedianImputer", "learns"),
        ("feature_engine.selection.drop_psi_features", "DropHighPSIFeatures", "cross_validates"),
        ("feature_engine.selection.drop_features", "DropFeatures", "unknown"),
        ("feature_engine.creation.math_features", "MathFeatures", "unknown"),
        ("mlxtend.feature_selection.column_selector", "ColumnSelector", "unknown"),
        ("category_encoders.target_encoder", "TargetEncoder", "learns"),
        ("mapie.regression.regression", "SplitConformalRegressor", "calibrates"),
        ("econml.dml.dml", "LinearDML", "calibrates"),
        ("econml.metalearners._metalearners", "TLearner", "wrapper"),
        ("fairlearn.postprocessing._threshold_optimizer", "ThresholdOptimizer", "calibrates"),
        ("fairlearn.preprocessing._linear_dep_remover", "CorrelationRemover", "learns"),
        ("mlxtend.feature_selection.sequential_feature_selector", "X", "cross_validates"),
        ("optuna_integration.sklearn.sklearn", "OptunaSearchCV", "cross_validates"),
        ("sklearn_genetic.genetic_search", "GASearchCV", "cross_validates"),
        ("cleanlab.classification", "CleanLearning", "resamples"),
        ("a_library", "StandardScaler", "unknown"),
        ("__main__", "StandardScaler", "unknown"),
        ("sklearnex.preprocessing", "Normalizer", "unknown"),
    ],
)
def test_classes_of_other_libraries_are_known_by_their_modules(module, name, kind):
    assert find_class(module, name).kind == kind


X = np.random.default_rng(0).uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)


def private_steps(accountant=None):
    return [
        ("s", DPStandardScaler(bounds=(0, 1), accountant=accountant)),
        ("m", DPLogisticRegression(accountant=accountant)),
    ]


ImblearnPipeline = library_class("imblearn.pipeline", "Pipeline", Pipeline)
Sampler = library_class("imblearn.over_sampling._smote", "SMOTE", BaseEstimator)


def imblearn_pipelines():
    """Return a class that is known as imbalanced-learn's, and its own where it is installed."""
    try:
        from imblearn.pipeline import Pipeline as installed
    except ImportError:
        return [ImblearnPipeline]
    return [ImblearnPipeline, installed]


@pytest.mark.parametrize("kind", imblearn_pipelines())
def test_the_pipeline_of_imbalanced_learn_works_as_that_of_scikit_learn(kind):
    accountant = PrivacyAccountant(10.0, 1e-3)
    result = check_pipeline(kind(private_steps(accountant)))
    assert result.accepted and result.exact and not result.findings
    pipe = split_budget(kind(private_steps()), 1.0, 1e-6, accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe.fit(X, Y)
    assert accountant.epsilon_spent == 1.0
    # Its fits check the parameters of all steps before the first charge.
    pipe.set_params(m__C=-1.0)
    with pytest.raises(ValueError, match="'m'"):
        pipe.fit(X, Y)
    assert accountant.epsilon_spent == 1.0


def test_a_resampler_is_refused_and_cannot_be_excused():
    pipe = ImblearnPipeline([("r", Sampler()), *private_steps()])
    (finding,) = (f for f in check_pipeline(pipe, public_steps=["r"]) if f.step == "r")
    assert finding.problem == "resampled rows" and "class_weight" in finding.message
    for public_steps in ((), ("r",)):
        with pytest.raises(ValueError, match="'r' fits rows that are repeated"):
            split_budget(pipe, 1.0, 1e-6, public_steps=public_steps)


@pytest.mark.parametrize(
    "wrapper",
    [BaggingClassifier(model()), AdaBoostClassifier(model()), OneVsOneClassifier(model())],
)
def test_the_advice_for_what_repeats_rows_is_to_use_something_else(wrapper):
    result = check_pipeline(wrapper)
    message = next(f.message for f in result if f.problem == "resampled rows")
    assert "use " in message and "unplanned" not in message and "without a plan" not in message
    assert not result.accepted and not result.exact


def test_columns_of_skrub_are_looked_into():
    skrub = pytest.importorskip("skrub")
    pd = pytest.importorskip("pandas")
    table, accountant = pd.DataFrame(X, columns=["a", "b"]), PrivacyAccountant(10.0, 1e-3)

    def pipe(**params):
        steps = private_steps(accountant)
        return Pipeline([("c", skrub.ApplyToCols(steps[0][1], **params)), steps[1]])

    result = check_pipeline(pipe())
    assert result.accepted and [step.step for step in result.steps] == ["c__transformer", "m"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe().fit(table, Y)
        assert accountant.epsilon_spent == result.epsilon == 2.0
        split_budget(pipe(), 1.0, 1e-6, accountant).fit(table, Y)
    assert accountant.epsilon_spent == 3.0
    by_name = (["a"], "a", skrub.selectors.numeric() - "a", skrub.selectors.glob("a*"))
    assert all(check_pipeline(pipe(cols=cols)).accepted for cols in by_name)
    by_value = (skrub.selectors.cardinality_below(3), ~skrub.selectors.has_nulls())
    for cols in by_value:
        assert kinds(pipe(cols=cols)) == {"c__cols": "learns"}
        assert not check_pipeline(pipe(cols=cols)).accepted
    assert not check_pipeline(skrub.ApplyToCols(StandardScaler())).accepted


def test_every_verified_class_is_judged():
    """A new one is row-wise only by a decision: compare with this list."""
    accepted = {k: e for k, e in KNOWN_STEPS.items() if e.kind in ("stateless", "declared")}
    judged = {
        key.rpartition(".")[2]
        for key, entry in accepted.items()
        if entry.is_row_wise is KnownStep.is_row_wise and key.startswith("sklearn")
    }
    assert judged == {
        "Binarizer",
        "CountVectorizer",
        "FeatureHasher",
        "HashingVectorizer",
        "MissingIndicator",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "SimpleImputer",
        "SplineTransformer",
    }


def test_settings_of_a_search_that_make_its_estimator_raw_are_found():
    plan = split_budget(Pipeline(private_steps()), 1.0, 1e-6)
    for estimator, grid in (
        (Pipeline(private_steps()), {"memory": [None, "folder"]}),
        (plan, {"s": ["passthrough", StandardScaler()]}),
    ):
        (name,) = grid
        found = check_pipeline(GridSearchCV(estimator, grid, **PRIVATELY))
        assert [f for f in found if f"among the candidates for {name!r}" in f.message]
    harmless = GridSearchCV(Pipeline(private_steps()), {"m__C": [0.1, 1.0]}, **PRIVATELY)
    assert not [f for f in check_pipeline(harmless) if "candidates" in f.message]


FROZEN = {
    "itself": lambda step: step,
    "again": FrozenEstimator,
    "a third time": lambda step: FrozenEstimator(FrozenEstimator(step)),
    "in a pipeline": lambda step: FrozenEstimator(make_pipeline(Normalizer(), step)),
    "in a union": lambda step: FrozenEstimator(FeatureUnion([("step", step)])),
    "in columns": lambda step: FrozenEstimator(columns((step, [0]))),
    "in a prefit selection": lambda step: SelectFromModel(step, prefit=True),
}


@pytest.mark.parametrize("name", FROZEN)
def test_an_estimator_that_learned_from_unknown_rows_is_found_however_often_it_is_frozen(name):
    """A frozen step is opaque exactly if the step inside learned from raw rows."""
    for step, is_raw in [(StandardScaler(), True), (DPStandardScaler(), False)]:
        pipe = make_pipeline(FROZEN[name](FrozenEstimator(step)), model())
        steps = find_raw_steps(pipe, with_fitted=True)
        assert [found.kind for found in steps] == ["opaque"] * is_raw
        assert find_raw_steps(pipe) == []
