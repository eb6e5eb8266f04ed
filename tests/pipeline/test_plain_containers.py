"""Steps of plain containers are checked with the columns that reach them, before any charge."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
)

import skdp
from skdp import (
    DPLogisticRegression,
    DPMinMaxScaler,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.model_selection import make_dp_scorer

N = 90
TABLE = pd.DataFrame(np.random.default_rng(0).uniform(size=(N, 3)), columns=["p", "q", "r"])
WORDS = TABLE.assign(r=pd.Series(["a", "b", "c"] * (N // 3), dtype="str"))
LABELS = (TABLE["p"] > 0.5).to_numpy().astype(int)
TARGET_BOUNDS = {"target_bounds": (0, 1)}

pytestmark = pytest.mark.filterwarnings("ignore")


def estimators_with(parameter):
    classes = (getattr(skdp, name) for name in skdp.__all__)
    return [
        cls
        for cls in classes
        if isinstance(cls, type)
        and issubclass(cls, BaseEstimator)
        and parameter in cls._get_param_names()
    ]


def make(cls, accountant, **params):
    names = cls._get_param_names()
    params = {k: v for k, v in TARGET_BOUNDS.items() if k in names} | params
    return cls(accountant=accountant, **params)


def scaler(accountant, **params):
    return DPMinMaxScaler(0.1, **({"bounds": (0, 1), "accountant": accountant} | params))


def model(accountant, **params):
    return DPLogisticRegression(0.1, **({"data_norm": 2.0, "accountant": accountant} | params))


def in_pipeline(accountant, step):
    return Pipeline([("first", scaler(accountant)), ("step", step)])


def in_nested_pipeline(accountant, step):
    inner = Pipeline([("z", scaler(accountant)), ("step", step)])
    return Pipeline([("first", scaler(accountant)), ("inner", inner)])


def in_columns(accountant, step):
    parts = [("a", scaler(accountant), ["p"]), ("step", step, ["p", "q", "r"])]
    return ColumnTransformer(parts)


def in_union(accountant, step):
    return FeatureUnion([("a", scaler(accountant)), ("step", step)])


def behind_columns(accountant, step):
    columns = ColumnTransformer([("a", scaler(accountant), ["p"]), ("b", "passthrough", ["q"])])
    return Pipeline([("columns", columns), ("step", step)])


def in_grid(accountant, step):
    pipe = in_pipeline(accountant, step)
    if hasattr(step, "transform"):
        pipe.steps.append(("last", model(accountant)))
    return GridSearchCV(pipe, {}, cv=KFold(2), error_score="raise")


CONTAINERS = [in_pipeline, in_nested_pipeline, in_columns, in_union, behind_columns, in_grid]
TRANSFORMERS_ONLY = (in_columns, in_union)


def fits_into(container, cls):
    """Return whether a container can hold an estimator: a synthesizer has nothing to score."""
    if container is in_grid:
        return any(hasattr(cls, name) for name in ("transform", "predict"))
    return container not in TRANSFORMERS_ONLY or hasattr(cls, "transform")


def refusal_of(container, table=TABLE, target=LABELS, accountant=None):
    """Return the error of a fit, which must not have charged anything."""
    with pytest.raises(ValueError, match=r"step") as caught:
        container.fit(table, target)
    assert accountant.charges == []
    return str(caught.value)


@pytest.mark.quick_cases(every=13)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cls", estimators_with("bounds"))
@pytest.mark.parametrize("bounds", [{"zz": (0, 1)}, ([0.0] * 5, [1.0] * 5)])
def test_bounds_of_columns_that_a_later_step_lacks_cost_nothing(container, cls, bounds):
    if not fits_into(container, cls):
        return
    accountant = PrivacyAccountant(100.0, 1e-2)
    tool = container(accountant, make(cls, accountant, bounds=bounds))
    text = refusal_of(tool, accountant=accountant)
    assert "step'" in text and "bounds" in text


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cls", estimators_with("categories"))
def test_categories_of_columns_that_a_later_step_lacks_cost_nothing(container, cls):
    if not fits_into(container, cls):
        return
    accountant = PrivacyAccountant(100.0, 1e-2)
    params = {"categories": [[0.0, 1.0]] * 9}
    if "strategy" in cls._get_param_names():
        params["strategy"] = "most_frequent"
    tool = container(accountant, make(cls, accountant, **params))
    text = refusal_of(tool, accountant=accountant)
    assert "step'" in text and "categories" in text


def test_what_the_columns_of_a_later_step_allow_is_fitted():
    accountant = PrivacyAccountant(100.0, 1e-2)
    named = {"p": (0, 1), "q": (0, 1), "r": (0, 1)}
    pipe = Pipeline([("a", scaler(accountant)), ("b", scaler(accountant, bounds=named))])
    pipe.set_output(transform="pandas").fit(TABLE)
    step = scaler(accountant, bounds={0: (0, 1), 1: (0, 1)})
    behind_columns(accountant, step).fit(TABLE, LABELS)
    assert len(accountant.charges) == 4


def test_a_part_that_receives_one_column_as_a_vector_costs_nothing():
    accountant = PrivacyAccountant(100.0, 1e-2)
    columns = ColumnTransformer([("part", scaler(accountant), "p")])
    pipe = Pipeline([("first", scaler(accountant).set_output(transform="pandas")), ("c", columns)])
    assert "write ['p'] instead" in refusal_of(pipe, accountant=accountant)


# Steps by the column that they receive: numbers or words. In a column of one dimension, some find
# rows, others fail or return one dimension.
STEPS_OF_COLUMNS = {
    "passed on": ("p", lambda: "passthrough"),
    "dropped": ("p", lambda: "drop"),
    "norm": ("p", Normalizer),
    "identity": ("p", FunctionTransformer),
    "elementwise": ("p", lambda: FunctionTransformer(np.sqrt)),
    "validated": ("p", lambda: FunctionTransformer(validate=True)),
    "pipeline": ("p", lambda: make_pipeline(FunctionTransformer(), Normalizer())),
    "pipeline of nothing": ("p", lambda: make_pipeline("passthrough", FunctionTransformer())),
    "union": ("p", lambda: FeatureUnion([("a", Normalizer()), ("b", "passthrough")])),
    "columns": ("p", lambda: ColumnTransformer([("a", "passthrough", ["p"])])),
    "categories": ("r", lambda: OneHotEncoder(categories=[["a", "b", "c"]], sparse_output=False)),
    "words": ("r", lambda: HashingVectorizer(n_features=4)),
    "counted words": ("r", lambda: CountVectorizer(vocabulary=["a", "b"])),
    "pipeline of words": (
        "r",
        lambda: make_pipeline("passthrough", HashingVectorizer(n_features=4)),
    ),
    "union of words": ("r", lambda: FeatureUnion([("a", HashingVectorizer(n_features=4))])),
}


@pytest.mark.parametrize("name", STEPS_OF_COLUMNS)
def test_a_step_that_cannot_read_its_selected_column_costs_nothing(name):
    """A selection is refused before the charge exactly if scikit-learn would fail after it."""
    column, make_step = STEPS_OF_COLUMNS[name]
    for columns in (column, [column]):
        selected = ("step", make_step(), columns)
        plain = ColumnTransformer([("first", Normalizer(), ["q"]), selected], sparse_threshold=0)
        accountant = PrivacyAccountant(100.0, 1e-2)
        first = ("first", scaler(accountant), ["q"])
        private = ColumnTransformer([first, selected], sparse_threshold=0)
        try:
            plain.fit(WORDS)
        except (ValueError, IndexError):
            with pytest.raises(ValueError, match="columns: "):
                private.fit(WORDS)
            assert accountant.epsilon_spent == 0.0
        else:
            private.fit(WORDS)
            assert accountant.epsilon_spent > 0.0


def test_a_step_without_parameters_returns_an_unknown_table():
    class Doubled:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.hstack([X, X])

    accountant = PrivacyAccountant(100.0, 1e-2)
    last = scaler(accountant, bounds={5: (0, 1), **dict.fromkeys(range(5), (0, 2))})
    Pipeline([("first", scaler(accountant)), ("own", Doubled()), ("last", last)]).fit(TABLE)
    assert len(accountant.charges) == 2


# Strings of their own type, objects as in pandas 2, and one string among numbers.
TABLES_OF_STRINGS = {
    "strings": WORDS,
    "objects": WORDS.astype({"r": object}),
    "one string": TABLE.assign(r=[*TABLE["r"].tolist()[:-1], "a"]).astype({"r": object}),
}


@pytest.mark.parametrize("strings", TABLES_OF_STRINGS)
@pytest.mark.parametrize("cls", [DPStandardScaler, skdp.DPPCA, skdp.DPKBinsDiscretizer])
def test_a_part_that_receives_columns_of_strings_costs_nothing(cls, strings):
    accountant = PrivacyAccountant(100.0, 1e-2)
    columns = in_columns(accountant, cls(accountant=accountant))
    encoder = skdp.DPOneHotEncoder(categories="auto", delta=1e-6, accountant=accountant)
    union = FeatureUnion([("encoder", encoder), ("step", cls(accountant=accountant))])
    for tool in (columns, union):
        text = refusal_of(tool, TABLES_OF_STRINGS[strings], accountant=accountant)
        assert "column 'r' contains strings" in text


@pytest.mark.parametrize("strings", TABLES_OF_STRINGS)
def test_strings_that_a_container_passes_on_to_a_model_cost_nothing(strings):
    accountant = PrivacyAccountant(100.0, 1e-2)
    first = ColumnTransformer([("part", scaler(accountant), ["p"])], remainder="passthrough")
    pipe = Pipeline([("columns", first), ("step", model(accountant))])
    text = refusal_of(pipe, TABLES_OF_STRINGS[strings], accountant=accountant)
    assert "contains strings" in text


@pytest.mark.parametrize(
    "step",
    [
        Normalizer(norm="l7"),
        PolynomialFeatures(degree=-1),
        SplineTransformer(n_knots=0),
        VotingClassifier([("a", LogisticRegression())], voting="loud"),
    ],
)
@pytest.mark.parametrize("container", [in_pipeline, in_nested_pipeline, behind_columns])
def test_a_wrong_parameter_of_a_later_step_of_sklearn_costs_nothing(container, step):
    accountant = PrivacyAccountant(100.0, 1e-2)
    text = refusal_of(container(accountant, step), accountant=accountant)
    wrong = {"norm", "degree", "n_knots", "voting"}
    assert "step'" in text and any(name in text for name in wrong)


def test_the_last_stage_of_a_stack_is_checked_before_its_members():
    accountant = PrivacyAccountant(100.0, 1e-2)
    last = LogisticRegression(C=-1.0)
    stack = StackingClassifier([("a", model(accountant))], final_estimator=last, cv=KFold(2))
    assert "'C'" in refusal_of(stack, accountant=accountant)


def test_sklearn_need_not_check_parameters():
    accountant = PrivacyAccountant(100.0, 1e-2)
    pipe = in_pipeline(accountant, PolynomialFeatures(degree=np.float64(2.0)))
    with config_context(skip_parameter_validation=True), warnings.catch_warnings():
        # scikit-learn itself fails later, or does not.
        try:
            pipe.fit(TABLE)
        except (TypeError, ValueError):
            pass
    assert len(accountant.charges) == 1


def test_a_wrong_epsilon_of_randomized_response_costs_nothing():
    accountant = PrivacyAccountant(100.0, 1e-2)
    step = RandomizedResponseTransformer(-1, categories=[[0.0, 1.0]] * 3, accountant=accountant)
    assert "epsilon" in refusal_of(in_pipeline(accountant, step), accountant=accountant)


@pytest.mark.parametrize("value", [[1], "x", float("nan"), float("inf"), None])
@pytest.mark.parametrize("parameter", ["epsilon", "delta"])
def test_a_wrong_budget_names_the_step(parameter, value):
    accountant = PrivacyAccountant(100.0, 1e-2)
    pipe = in_pipeline(accountant, model(accountant).set_params(**{parameter: value}))
    search = GridSearchCV(pipe, {"step__C": [1.0, 2.0]}, cv=KFold(2), error_score="raise")
    assert f"step': {parameter} must" in refusal_of(search, accountant=accountant)
    with pytest.raises(ValueError, match=f"step': {parameter} must"):
        cross_validate(pipe, TABLE, LABELS, cv=KFold(2), error_score="raise")
    assert accountant.charges == []


def test_a_wrong_accountant_names_the_step():
    accountant = PrivacyAccountant(100.0, 1e-2)
    text = refusal_of(in_pipeline(accountant, model("x")), accountant=accountant)
    assert text.startswith("step 'step': accountant must be")


def test_a_search_that_goes_on_after_errors_warns_before_its_charges():
    accountant = PrivacyAccountant(100.0, 1e-2)
    score = make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)
    search = GridSearchCV(model(accountant), {"C": [1.0, -1.0]}, scoring=score, cv=KFold(2))
    spent = []

    def note(message, category, *args, **kwargs):
        text = str(message)
        if "candidate would fail" in text:
            spent.append((text, accountant.epsilon_spent))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        search.fit(TABLE, LABELS)
    ((text, before),) = spent
    assert before == 0.0
    assert re.search("GridSearchCV: .*step 'estimator': C must be", text)
    assert accountant.epsilon_spent > 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("routes", [False, True])
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("kind", [RFECV, SequentialFeatureSelector])
def test_a_selector_that_scores_protects_persons_or_is_refused(kind, unit, routes):
    accountant = PrivacyAccountant(100.0, 1e-2, unit=unit)
    score = make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)
    persons = np.arange(N) // 3
    with config_context(enable_metadata_routing=routes):
        selector = kind(model(accountant), scoring=score, cv=KFold(2))
        if kind is RFECV and unit == "row" and not routes:
            # Without metadata routing these groups are for the folds alone.
            selector.fit(TABLE, LABELS, groups=persons)
            assert selector.estimator_.privacy_.unit == "row"
            return
        if not (routes and unit == "person"):
            with pytest.raises((TypeError, ValueError)):
                selector.fit(TABLE, LABELS, groups=persons)
            assert accountant.charges == []
            return
        selector.fit(TABLE, LABELS, groups=persons)
        assert {charge.label for charge in accountant.charges} == {
            "DPLogisticRegression",
            "DPScorer",
        }
        if kind is RFECV:
            assert selector.estimator_.privacy_.unit.startswith("person")
