"""A wrong parameter of any step of any meta-object costs nothing, and the error names both."""

import re
from itertools import count

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, SplineTransformer
from sklearn.utils import get_tags

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPRandomizedSearchCV,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
    tabular_pipeline,
)
from skdp.export import to_sklearn
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import check_pipeline, split_budget
from skdp.testing import wrong_values
from tests._estimators import FIRST_OF_CLASS
from tests._public import ESTIMATORS

N = 60
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(N, 3))
Y = (X[:, 0] > 0.5).astype(int)


def scaler():
    return DPMinMaxScaler(bounds=(0, 1))


def scaler_of_names():
    return DPMinMaxScaler(bounds={"r": (0, 1)})


def split(pipe, accountant):
    return split_budget(pipe, 1.0, 1e-5, accountant)


def in_pipeline(step, accountant):
    split(make_pipeline(scaler(), step), accountant).fit(X, Y)


def behind_columns(step, accountant):
    front = ColumnTransformer(
        [("a", scaler(), [0]), ("b", DPStandardScaler(bounds=(0, 1)), [1, 2])]
    )
    split(make_pipeline(front, step), accountant).fit(X, Y)


# Values with the position of a column that no table here has.
MISSING_COLUMN = ([(0, 10**6)], {10**6: 1})


def behind_found_columns(step, accountant):
    found = DPOneHotEncoder(delta=1e-6, sparse_output=False)
    split(make_pipeline(found, step), accountant).fit(X.round(), Y)


def in_columns(step, accountant):
    parts = [("a", scaler(), [0]), ("b", step, [1, 2])]
    split(ColumnTransformer(parts, sparse_threshold=0), accountant).fit(X, Y)


def in_union(step, accountant):
    split(FeatureUnion([("a", scaler()), ("b", step)]), accountant).fit(X, Y)


def in_nested_columns(step, accountant):
    inner = ColumnTransformer([("b", step, [0, 1])], sparse_threshold=0)
    split(make_pipeline(scaler(), inner), accountant).fit(X, Y)


def in_grid(step, accountant):
    pipe = make_pipeline(scaler(), step)
    options = {"strategy": "holdout", "accountant": accountant, **BUDGET}
    DPGridSearchCV(pipe, {"dpminmaxscaler__clip": [True]}, **options).fit(X, Y)


def in_draws(step, accountant):
    pipe = make_pipeline(scaler(), step)
    options = {"n_iter": 1, "strategy": "holdout", "accountant": accountant, **BUDGET}
    DPRandomizedSearchCV(pipe, {}, **options).fit(X, Y)


def in_folds(step, accountant):
    pipe = make_pipeline(scaler(), step)
    dp_cross_val_score(pipe, X, Y, cv=2, accountant=accountant, **BUDGET)


def in_tabular(step, accountant):
    tabular_pipeline(step, bounds=(0, 1), accountant=accountant, **BUDGET).fit(X, Y)


FOR_TRANSFORMERS = [in_columns, in_pipeline, in_union, in_nested_columns, behind_found_columns]
FOR_MODELS = [in_pipeline, behind_columns, behind_found_columns, in_grid, in_draws, in_folds]
RAW_OR_SPARSE = [in_tabular]
# A value that a place sets itself, or that is right in some of its uses.
SET_BY_TABULAR = {"bounds", "data_norm", "categories"}
# What every place sets of its steps; tests/test_wrong_values.py gives these to each estimator.
SET_BY_ALL = {"epsilon", "delta", "accountant", "random_state"}


def right(kind):
    """Return an estimator of a class whose fit to the table is refused for nothing."""
    params = kind().get_params()
    given = {"target_bounds": (0, 1), "data_norm": 2.0, "classes": [0, 1]}
    if kind.__name__ == "DPTargetEncoder":
        del given["classes"]
    # Of a choice that reads the threshold.
    given |= {"bounds": (0, 1), "huber_threshold": 1.0}
    if "huber_threshold" in params and "loss" in params:
        given["loss"] = "huber"
    return kind(**{name: value for name, value in given.items() if name in params})


def places(step):
    """Return the meta-objects that a step can be in."""
    if hasattr(step, "predict") and (is_classifier(step) or is_regressor(step)):
        takes_rows = get_tags(step).input_tags.sparse or hasattr(step, "categories")
        return FOR_MODELS + RAW_OR_SPARSE * takes_rows
    if not hasattr(step, "transform"):
        # A synthesizer can only be a last step.
        return (in_pipeline,)
    return FOR_TRANSFORMERS


KINDS = [
    kind
    for kind in ESTIMATORS
    if kind.__name__.startswith("DP") and not hasattr(kind, "_candidate_params")
]


def cases(kind, every=False):
    """Yield an estimator with one wrong parameter, its name and a meta-object around it."""
    number, base = count(), right(kind)
    for name, value in wrong_values(base):
        allowed = [place for place in places(base) if not _is_set_by(place, name)]
        if any(value == missing for missing in MISSING_COLUMN if type(value) is type(missing)):
            # Only the columns that are found can tell, which the docs say.
            allowed = [place for place in allowed if place is not behind_found_columns]
        chosen = allowed if every or not allowed else [allowed[next(number) % len(allowed)]]
        for place in chosen:
            step = clone(base)
            if isinstance(step, DPSimpleImputer) and name == "categories":
                # Means are of numbers, and read no categories.
                step.set_params(strategy="most_frequent")
            yield step.set_params(**{name: value}), name, place


def _is_set_by(place, name):
    return name in SET_BY_ALL or (place is in_tabular and name in SET_BY_TABULAR)


def check(step, name, place):
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError) as caught:
        place(step, accountant)
    where = f"{name}={getattr(step, name)!r} {place.__name__}: {caught.value}"
    assert accountant.epsilon_spent == 0.0, where
    assert name in str(caught.value), where
    title = (
        "b" if place in (in_columns, in_union, in_nested_columns) else type(step).__name__.lower()
    )
    # A second step of a class has a number.
    assert re.search(rf"{title}(-2)?':", str(caught.value)), where


@pytest.mark.quick_cases(every=29)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_wrong_parameter_costs_nothing(kind):
    for case in cases(kind):
        check(*case)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_wrong_parameter_costs_nothing_in_any_place(kind):
    for case in cases(kind, every=True):
        check(*case)


def class_name(estimator):
    return type(estimator).__name__


def classifier_of_found_columns():
    return DPLogisticRegression(data_norm=2.0)


SEARCHES = [estimator for estimator in FIRST_OF_CLASS if hasattr(estimator, "_candidate_params")]


def search_in_search(step, accountant):
    pipe = make_pipeline(scaler(), step)
    DPGridSearchCV(pipe, {"dpminmaxscaler__clip": [True]}, accountant=accountant).fit(X, Y)


# Pipelines set these parameters of their steps. The seed is set by the caller.
SET_BY_PIPELINES = SET_BY_ALL - {"random_state"}


@pytest.mark.quick_cases(every=12)
@pytest.mark.parametrize("place", [in_pipeline, search_in_search, in_folds])
@pytest.mark.parametrize("base", SEARCHES, ids=lambda search: type(search).__name__)
def test_a_wrong_parameter_of_a_search_in_a_pipeline_costs_nothing(base, place):
    for name, value in wrong_values(base):
        if name not in SET_BY_PIPELINES:
            search = clone(base)
            setattr(search, name, value)
            accountant = PrivacyAccountant(1.0, 1e-5)
            where = f"{name}={value!r}"
            with pytest.raises(ValueError) as caught:
                place(search, accountant)
            assert accountant.epsilon_spent == 0.0, where
            assert name in str(caught.value), where
            assert type(base).__name__.lower() in str(caught.value).lower(), where


# Values of a step that is part of a plan already: wrong ones, and ones that cost more.
CHANGED_BUDGETS = [("epsilon", -1.0), ("epsilon", 5.0), ("delta", (0.0, "a")), ("delta", 0.5)]


@pytest.mark.quick_cases(every=17)
@pytest.mark.parametrize("name, value", CHANGED_BUDGETS, ids=str)
@pytest.mark.parametrize("unit", ["row", "group"])
@pytest.mark.parametrize("base", [*SEARCHES, classifier_of_found_columns()], ids=class_name)
def test_a_budget_that_was_changed_after_the_plan_costs_nothing(base, unit, name, value):
    accountant = PrivacyAccountant(10.0, 1e-2, unit=unit, max_rows=1 if unit == "row" else 2)
    steps = [scaler(), base]
    if not hasattr(base, "_candidate_params"):
        # The number of columns is unknown until categories are found.
        steps = [DPOneHotEncoder(delta=1e-6, sparse_output=False), base]
    pipe = split(make_pipeline(*steps), accountant)
    setattr(pipe[-1], name, value)
    with pytest.raises(ValueError, match=name) as caught:
        pipe.fit(X, Y)
    assert accountant.epsilon_spent == 0.0
    assert type(base).__name__.lower() in str(caught.value)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, np.inf), ("a", "b")], ids=str)
def test_wrong_bounds_of_all_columns_cost_nothing_behind_unknown_ones(bounds):
    """Columns of objects do not read them, so they were not checked where kinds are unknown."""
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="bounds"):
        behind_found_columns(DPTableVectorizer(bounds=bounds), accountant)
    assert accountant.epsilon_spent == 0.0


def test_components_beyond_every_table_are_refused_where_the_width_is_unknown():
    """Names are planned for all components, so a limit must precede them."""
    with pytest.raises(ValueError, match="step 'dppca': n_components must be at most 1000000,"):
        split(make_pipeline(DPPCA(n_components=2 * 10**6), classifier()), None)


def test_there_are_enough_cases():
    assert sum(len(list(cases(kind))) for kind in KINDS) >= 200


TABLE = pd.DataFrame(X, columns=["p", "q", "r"])


def classifier(**params):
    return DPLogisticRegression(data_norm=2.0, **params)


def of_names(*names):
    return ColumnTransformer([("m", scaler(), list(names))])


def in_frames(*steps):
    return make_pipeline(*steps).set_output(transform="pandas")


# A pipeline, its table and target, and the step and what the message names.
REFUSED_BY_THE_TABLE = {
    "a target without entries": (
        make_pipeline(scaler(), classifier()),
        X,
        np.array(1),
        ("dplogisticregression", "y"),
    ),
    "names of columns behind a step that returns an array": (
        make_pipeline(
            ColumnTransformer(
                [("b", make_pipeline(DPSimpleImputer(bounds=(0, 1)), scaler_of_names()), ["r"])]
            ),
            classifier(),
        ),
        pd.DataFrame({"r": X[:, 0]}),
        Y,
        ("columntransformer__b__dpminmaxscaler", "set_output"),
    ),
    "a column that the table lacks": (
        in_frames(scaler(), of_names("age"), classifier()),
        TABLE,
        Y,
        ("columntransformer__m", "'age'"),
    ),
    "a column that the step before drops": (
        in_frames(of_names("p"), ColumnTransformer([("n", scaler(), ["q"])]), classifier()),
        TABLE,
        Y,
        ("columntransformer-2__n", "'q'"),
    ),
    "names of an array": (
        make_pipeline(scaler(), of_names("p"), classifier()),
        TABLE,
        Y,
        ("columntransformer__m", "columns p are selected by name"),
    ),
    "a position beyond the table": (
        make_pipeline(scaler(), ColumnTransformer([("m", scaler(), [3])]), classifier()),
        X,
        Y,
        ("columntransformer__m", "column 3"),
    ),
    "bounds of a column that is elsewhere": (
        FeatureUnion([("a", scaler()), ("b", DPStandardScaler(bounds={"age": (0, 1)}))]),
        TABLE,
        Y,
        ("b", "bounds: X has no column 'age'"),
    ),
    "too few directions": (
        make_pipeline(scaler(), DPAdditiveClassifier(monotonic_cst=[1, 0])),
        X,
        Y,
        ("dpadditiveclassifier", "monotonic_cst"),
    ),
    "a pair beyond the table": (
        make_pipeline(scaler(), DPAdditiveClassifier(interactions=[(0, 3)])),
        X,
        Y,
        ("dpadditiveclassifier", "interactions"),
    ),
    "a batch of more rows": (
        make_pipeline(scaler(), DPSGDClassifier(data_norm=2.0, batch_size=N + 1)),
        X,
        Y,
        ("dpsgdclassifier", "batch_size"),
    ),
    "a label that is not declared": (
        make_pipeline(scaler(), classifier(classes=[0, 7])),
        X,
        Y,
        ("dplogisticregression", "classes"),
    ),
    "words for a regressor": (
        make_pipeline(scaler(), DPRidge(data_norm=2.0, target_bounds=(0, 1))),
        X,
        np.where(Y, "yes", "no"),
        ("dpridge", "y"),
    ),
    "no target": (make_pipeline(scaler(), classifier()), X, None, ("dplogisticregression", "y")),
    "a sparse table": (
        make_pipeline(DPTableVectorizer(), scaler()),
        X,
        Y,
        ("dpminmaxscaler", "sparse"),
    ),
    "a sparse table for a step of scikit-learn": (
        make_pipeline(
            DPOneHotEncoder(delta=1e-6), SplineTransformer(knots=np.ones((2, 9))), classifier()
        ),
        X,
        Y,
        ("splinetransformer", "sparse"),
    ),
    "a parameter of scikit-learn": (
        make_pipeline(scaler(), Normalizer("l7"), classifier()),
        X,
        Y,
        ("normalizer", "'norm'"),
    ),
    "lists for other columns": (
        make_pipeline(
            scaler(),
            OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False),
            classifier(),
        ),
        X,
        Y,
        ("onehotencoder", "categories"),
    ),
    "a function that has no floats": (
        make_pipeline(scaler(), FunctionTransformer(np.invert), classifier()),
        X,
        Y,
        ("functiontransformer", "invert"),
    ),
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("case", REFUSED_BY_THE_TABLE)
def test_what_the_table_refuses_costs_nothing(case):
    pipe, table, y, words = REFUSED_BY_THE_TABLE[case]
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError) as caught:
        split(pipe, accountant).fit(table, y)
    assert accountant.epsilon_spent == 0.0
    assert all(word in str(caught.value) for word in (f"'{words[0]}'", words[1])), caught.value


ACCEPTED = {
    "names in frames": (in_frames(scaler(), of_names("r", "p"), classifier()), TABLE),
    "names with prefixes": (
        in_frames(of_names("p", "q"), ColumnTransformer([("n", scaler(), ["m__q"])]), classifier()),
        TABLE,
    ),
    "a slice of names": (
        in_frames(scaler(), ColumnTransformer([("m", scaler(), slice("p", "q"))]), classifier()),
        TABLE,
    ),
    "a mask, from the end and all": (
        make_pipeline(
            scaler(),
            ColumnTransformer(
                [("a", scaler(), [True, False, True]), ("b", scaler(), [-1])],
                remainder=DPStandardScaler(bounds=(0, 1)),
            ),
            classifier(),
        ),
        X,
    ),
    "found categories": (
        make_pipeline(
            DPOneHotEncoder(delta=1e-6, sparse_output=False),
            DPAdditiveClassifier(bounds={f"{name}_1": (0, 1) for name in "pqr"}),
        ).set_output(transform="pandas"),
        pd.concat([TABLE.round()] * 50),
    ),
    "a sparse table": (make_pipeline(DPTableVectorizer(), classifier()), X),
    "lists": (make_pipeline(scaler(), classifier()), X.tolist()),
    "dates": (
        make_pipeline(
            DPTableVectorizer(bounds={"p": (0, 1), "day": ("2020-01-01", "2021-01-01")}),
            classifier(),
        ),
        pd.DataFrame({"p": X[:, 0], "day": pd.date_range("2020-01-01", periods=N)}),
    ),
}


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_right_is_fitted_at_the_price(case):
    pipe, table = ACCEPTED[case]
    accountant = PrivacyAccountant(1.0, 1e-5)
    split(pipe, accountant).fit(table, np.resize(Y, len(table)))
    assert accountant.epsilon_spent == 1.0


def test_without_the_check_the_budget_is_spent():
    """What the property above would see: the same steps one by one, which nothing checks."""
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="target_bounds"):
        in_pipeline(DPRidge(), accountant)
    assert accountant.epsilon_spent == 0.0
    rows = scaler().set_params(epsilon=0.5, accountant=accountant).fit_transform(X)
    with pytest.raises(ValueError, match="target_bounds"):
        DPRidge(epsilon=0.5, accountant=accountant).fit(rows, Y)
    assert accountant.epsilon_spent == 0.5


def encoded():
    parts = [("w", DPOneHotEncoder(categories=[[0.0, 1.0]]), ["p"]), ("n", scaler(), ["q"])]
    return ColumnTransformer(parts)


def test_an_encoder_beside_a_scaler_works_at_the_defaults():
    accountant = PrivacyAccountant(2.0, 2e-5)
    table = TABLE.round()
    made = split(encoded(), accountant).fit_transform(table, Y)
    assert isinstance(made, np.ndarray) and made.shape == (N, 3)
    split(make_pipeline(encoded(), classifier()), accountant).fit(table, Y)
    assert accountant.epsilon_spent == 2.0
    accountant = PrivacyAccountant(1.0, 1e-5)
    pipe = make_pipeline(encoded(), classifier())
    DPGridSearchCV(pipe, {}, strategy="holdout", accountant=accountant, **BUDGET).fit(table, Y)
    assert accountant.epsilon_spent == 1.0 and encoded().sparse_threshold == 0.3


def test_a_threshold_that_was_set_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="use sparse_threshold=0"):
        split(encoded().set_params(sparse_threshold=0.5), None)


def test_a_check_reports_wrong_parameters_of_a_plain_pipeline():
    """It is fitted by scikit-learn: its steps are charged one after the other."""
    accountant = PrivacyAccountant(2.0, 1e-5)
    model = DPRidge(accountant=accountant, data_norm=2.0)
    pipe = make_pipeline(scaler().set_params(accountant=accountant), model)
    (finding,) = check_pipeline(pipe)
    assert (finding.step, finding.problem) == ("dpridge", "wrong parameter")
    assert "target_bounds" in finding.message
    assert not list(check_pipeline(pipe.set_params(dpridge__target_bounds=(0, 1))))


def test_what_is_exported_of_a_split_pipeline_is_of_scikit_learn():
    front = ColumnTransformer([("a", scaler(), [0, 1, 2])])
    for pipe, plain in ((make_pipeline(front, classifier()), Pipeline), (front, ColumnTransformer)):
        fitted = split(pipe, PrivacyAccountant(1.0, 1e-5)).fit(X, Y)
        assert type(clone(fitted)) is type(fitted) is not plain
        assert type(to_sklearn(fitted)) is plain
