"""Whatever stands before it, a wrong parameter of a later step costs nothing."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPDecisionTreeClassifier,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPRandomForestClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableSynthesizer,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp.pipeline import split_budget
from skdp.testing import wrong_widths

N = 60
RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, size=(N, 3)).astype(float)
Y = np.arange(N) % 2
Y3 = np.arange(N) % 3
FRAME = pd.DataFrame(X, columns=["p", "q", "r"])
BOUNDS = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
BY_NAME = {"p": (0, 1), "q": (0, 1), "r": (0, 1)}
LABELS = {0: [0.0, 1.0], 1: [0.0, 1.0], 2: [0.0, 1.0]}


def scaler():
    return DPMinMaxScaler(bounds=(0, 1))


def classifier():
    return DPLogisticRegression(data_norm=2.0)


def side_by_side(**parts):
    return ColumnTransformer([(name, part, [0, 1, 2]) for name, part in parts.items()])


# Fronts whose output is known before a fit: the table, the target, and how many columns they make.
FRONTS = {
    "imputed means": (DPSimpleImputer(bounds=BOUNDS), X, Y, 3),
    "imputed medians, by name": (
        DPSimpleImputer(strategy="median", bounds=BY_NAME, add_indicator=True),
        FRAME,
        Y,
        6,
    ),
    "imputed labels": (DPSimpleImputer(strategy="most_frequent", categories=LABELS), X, Y, 3),
    "encoded targets": (DPTargetEncoder(categories=LABELS), X, Y, 3),
    "encoded classes": (DPTargetEncoder(categories=[[0.0, 1.0]] * 3), X, Y3, 9),
    "indicators": (DPOneHotEncoder(categories=LABELS, sparse_output=False, other=9.0), X, Y, 9),
    "numbers of bins": (DPKBinsDiscretizer(bounds=BOUNDS, encode="ordinal"), X, Y, 3),
    "bins of equal width": (
        DPKBinsDiscretizer(strategy="uniform", encode="onehot-dense", n_bins=4),
        X,
        Y,
        12,
    ),
    "numbers of cells": (DPHistogramTransformer(bounds=BY_NAME, encode="ordinal"), FRAME, Y, 3),
    "cells of equal width": (
        DPHistogramTransformer(bounds=(0, 1), edges="uniform", n_bins=3, interactions=[(0, 1)]),
        X,
        Y,
        18,
    ),
    "a scaled table": (
        make_pipeline(DPTableVectorizer(numeric="scaled", bounds=BY_NAME), DPPCA(n_components=6)),
        FRAME,
        Y,
        6,
    ),
    "a scaled table in a frame": (
        DPTableVectorizer(numeric="scaled").set_output(transform="pandas"),
        FRAME,
        Y,
        6,
    ),
    "components": (DPPCA(n_components=2), X, Y, 2),
    "as many components as columns": (DPPCA(), X, Y, 3),
    "distances": (DPKMeans(n_clusters=4, bounds=(0, 1)), X, Y, 4),
    "scaled": (scaler(), X, Y, 3),
    "components of found columns": (
        make_pipeline(DPOneHotEncoder(delta=1e-6, sparse_output=False), DPPCA(n_components=2)),
        X,
        Y,
        2,
    ),
    "columns": (
        side_by_side(
            a=DPSimpleImputer(bounds=BOUNDS), b=DPKBinsDiscretizer(bounds=BOUNDS, encode="ordinal")
        ),
        X,
        Y,
        6,
    ),
    "a union": (
        FeatureUnion(
            [
                ("a", DPTargetEncoder(categories=LABELS)),
                ("b", DPHistogramTransformer(bounds=BOUNDS, encode="density")),
            ]
        ),
        X,
        Y,
        6,
    ),
    "columns in columns": (
        ColumnTransformer(
            [("a", side_by_side(c=DPSimpleImputer(bounds=BOUNDS)), [0, 1, 2])],
            remainder=DPStandardScaler(bounds=(0, 1)),
        ),
        X,
        Y,
        3,
    ),
    "a polynomial": (make_pipeline(scaler(), PolynomialFeatures(2)), X, Y, 10),
    "a function": (make_pipeline(scaler(), FunctionTransformer(np.abs)), X, Y, 3),
}


def refused(pipe, table, y):
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError) as caught:
        split_budget(pipe, 1.0, 1e-5, accountant).fit(table, y)
    assert accountant.epsilon_spent == 0.0, caught.value
    return str(caught.value)


def check(front, step, parameter):
    front, table, y, _ = FRONTS[front]
    # A model is last in any case: its labels must not be what is refused.
    steps = [("front", clone(front)), ("later", step)]
    if not hasattr(step, "predict") or isinstance(step, DPKMeans):
        steps.append(("model", classifier()))
    message = refused(Pipeline(steps), table, y)
    assert re.match(r"step 'later(__part)?': ", message), message
    assert re.search(rf"\b{parameter}\b", message), message


CASES = [
    (front, step, parameter)
    for front, (_, _, _, width) in FRONTS.items()
    for step, parameter in wrong_widths(width)
]


@pytest.mark.quick_cases(every=52)
@pytest.mark.parametrize(("front", "step", "parameter"), CASES, ids=lambda v: str(v)[:30])
def test_a_parameter_that_does_not_fit_the_output_of_the_step_before_costs_nothing(
    front, step, parameter
):
    check(front, step, parameter)


def test_there_are_enough_cases():
    assert len(CASES) >= 200
    assert len({front for front, _, _ in CASES}) == len(FRONTS)


@pytest.mark.quick_cases(every=22)
@pytest.mark.parametrize("front", FRONTS)
def test_right_parameters_are_fitted_at_the_price(front):
    front, table, y, width = FRONTS[front]
    steps = [
        ("front", clone(front)),
        ("bounds", DPStandardScaler(bounds=([-9.0] * width, [9.0] * width))),
        ("later", DPAdditiveClassifier(monotonic_cst=[1] * width)),
    ]
    if len(np.unique(y)) > 2:
        steps[-1] = ("later", classifier())
    # Categories are found of labels that many rows hold.
    table = pd.concat([table] * 20) if isinstance(table, pd.DataFrame) else np.tile(table, (20, 1))
    accountant = PrivacyAccountant(1.0, 1e-5)
    split_budget(Pipeline(steps), 1.0, 1e-5, accountant).fit(table, np.tile(y, 20))
    assert accountant.epsilon_spent == 1.0


KNOTS = np.linspace(0, 1, 4)[:, None].repeat(3, 1)
IGNORE = {"handle_unknown": "ignore"}
# Steps of scikit-learn behind a table of three columns of numbers, and the parameter that is wrong.
WRONG_OF_SKLEARN = {
    "an interval of degrees": (PolynomialFeatures((3, 1)), "degree"),
    "a degree below 0": (PolynomialFeatures(-1), "degree"),
    "knots of other columns": (SplineTransformer(knots=KNOTS[:, :2]), "knots"),
    "knots that do not increase": (SplineTransformer(knots=KNOTS[::-1]), "knots"),
    "one knot": (SplineTransformer(knots=KNOTS[:1]), "knots"),
    "periodic splines of few knots": (
        SplineTransformer(knots=KNOTS, degree=5, extrapolation="periodic"),
        "degree",
    ),
    "words for numbers": (OneHotEncoder(categories=[["a", "b"]] * 3, **IGNORE), "categories"),
    "ordinal words for numbers": (
        OrdinalEncoder(
            categories=[["a", "b"]] * 3, handle_unknown="use_encoded_value", unknown_value=-1
        ),
        "categories",
    ),
    "a function of two tables": (FunctionTransformer(np.invert), "func"),
}
FOUND = DPOneHotEncoder(delta=1e-6, sparse_output=False)


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("case", WRONG_OF_SKLEARN)
def test_a_wrong_parameter_of_scikit_learn_costs_nothing(case, found):
    step, parameter = WRONG_OF_SKLEARN[case]
    if found and case == "knots of other columns":
        pytest.skip("how many columns are found is not known")
    front = clone(FOUND) if found else scaler()
    pipe = Pipeline([("front", front), ("later", clone(step)), ("model", classifier())])
    message = refused(pipe, X, Y)
    assert message.startswith("step 'later': ") and parameter in message, message


@pytest.mark.parametrize(
    ("step", "parameter"),
    [(Binarizer(threshold=-1.0), "threshold"), (FunctionTransformer(np.exp), "func")],
    ids=str,
)
def test_what_a_sparse_table_forbids_costs_nothing(step, parameter):
    for front in (DPOneHotEncoder(delta=1e-6), DPOneHotEncoder(categories=LABELS)):
        pipe = Pipeline([("front", front), ("later", clone(step)), ("model", classifier())])
        message = refused(pipe, X, Y)
        assert message.startswith("step 'later': ") and parameter in message, message


def test_a_trial_of_a_step_leaves_the_global_generator_as_it_is():
    pipe = make_pipeline(scaler(), GaussianRandomProjection(2), classifier())
    split = split_budget(pipe, 1.0, 1e-5, PrivacyAccountant(1.0, 1e-5))
    # Without a seed of its own a step of scikit-learn draws from this one.
    np.random.seed(0)  # noqa: NPY002
    expected = GaussianRandomProjection(2).fit(X).components_
    np.random.seed(0)  # noqa: NPY002
    split.fit(X, Y)
    np.testing.assert_array_equal(split[1].components_, expected)


WORDS_FOR_NUMBERS = [
    DPOneHotEncoder(categories=["a", "b"]),
    DPOneHotEncoder(categories=[["a", "b"]] * 3, min_frequency=2),
    DPTargetEncoder(categories=["a", "b"]),
    DPSimpleImputer(strategy="most_frequent", categories=["a", "b"]),
    DPHistogramTransformer(categories=["a", "b"]),
    DPTableVectorizer(categories=[["a", "b"]] * 3),
    DPAdditiveClassifier(categories=[["a", "b"]] * 3),
]


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("step", WORDS_FOR_NUMBERS, ids=lambda s: type(s).__name__)
def test_words_that_are_declared_for_numbers_cost_nothing(step, found):
    front = clone(FOUND) if found else scaler()
    steps = [("front", front), ("later", clone(step))]
    if not hasattr(step, "predict"):
        steps.append(("model", classifier()))
    message = refused(Pipeline(steps), X, Y)
    assert message.startswith("step 'later': ") and "categories" in message, message


def pandas(container):
    return container.set_output(transform="pandas")


def twice(**params):
    return ColumnTransformer([("a", scaler(), [0]), ("b", scaler(), [0, 1])], **params)


# Containers behind a step that is charged, and the parameter that is wrong.
WRONG_CONTAINERS = {
    "a weight that is no number": (
        FeatureUnion([("a", scaler())], transformer_weights={"a": np.nan}),
        "transformer_weights",
    ),
    "a weight of no part": (
        FeatureUnion([("a", scaler())], transformer_weights={"b": 1.0}),
        "transformer_weights",
    ),
    "a weight of no columns": (twice(transformer_weights={"c": 1.0}), "transformer_weights"),
    "a word as a weight": (twice(transformer_weights={"a": "2"}), "transformer_weights"),
    "names that repeat": (pandas(twice(verbose_feature_names_out=False)), "verbose_feature_names"),
    "a bad format": (pandas(twice(verbose_feature_names_out="{name}")), "verbose_feature_names"),
    "a broken format": (pandas(twice(verbose_feature_names_out="{0")), "verbose_feature_names"),
    "names that repeat in a union": (
        pandas(FeatureUnion([("a", scaler()), ("b", scaler())], verbose_feature_names_out=False)),
        "verbose_feature_names",
    ),
    "names that repeat in polars": (
        twice(verbose_feature_names_out="{feature_name}").set_output(transform="polars"),
        "verbose_feature_names",
    ),
    "a function that makes no names": (
        pandas(twice(verbose_feature_names_out=lambda name: name)),
        "verbose_feature_names",
    ),
    "a part named twice": (ColumnTransformer([("a", scaler(), [0])] * 2), "transformers"),
    "a model in the middle": (ColumnTransformer([("a", classifier(), [0])]), "transformers"),
    "no remainder": (ColumnTransformer([("a", scaler(), [0])], remainder="keep"), "remainder"),
    "a threshold beyond 1": (
        ColumnTransformer([("a", scaler(), [0])], sparse_threshold=2),
        "sparse_threshold",
    ),
    "a word for jobs": (FeatureUnion([("a", scaler())], n_jobs="many"), "n_jobs"),
    "a pipeline of a model and more": (make_pipeline(classifier(), scaler()), "steps"),
}


@pytest.mark.parametrize("case", WRONG_CONTAINERS)
def test_a_wrong_parameter_of_a_container_costs_nothing(case):
    container, parameter = WRONG_CONTAINERS[case]
    pipe = Pipeline([("front", scaler()), ("later", container), ("model", classifier())])
    message = refused(pipe, X, Y)
    assert message.startswith("step 'later") and parameter in message, message


@pytest.mark.parametrize(
    "container",
    [
        ColumnTransformer([("a", "drop", [0])]),
        ColumnTransformer([]),
        FeatureUnion([("a", "drop")]),
        ColumnTransformer([("a", scaler(), [])]),
    ],
    ids=str,
)
def test_a_model_of_no_columns_costs_nothing(container):
    pipe = Pipeline([("front", scaler()), ("none", container), ("later", classifier())])
    assert "step 'later': the step receives no column" in refused(pipe, X, Y)


def test_a_column_without_a_list_costs_nothing():
    for part in (scaler(), make_pipeline(scaler(), scaler())):
        flat = ColumnTransformer([("part", part, 1)])
        pipe = Pipeline([("front", scaler()), ("later", flat), ("model", classifier())])
        message = refused(pipe, X, Y)
        assert message.startswith("step 'later") and "columns" in message, message
        right = flat.set_params(transformers=[("part", clone(part), [1])])
        split_budget(pipe.set_params(later=right), 1.0, 1e-5).fit(X, Y)


def test_a_selector_by_type_chooses_known_columns_of_a_frame():
    frame = FRAME.assign(word=np.where(Y, "a", "b"))
    numbers = ColumnTransformer([("part", scaler(), make_column_selector(dtype_include="number"))])
    pipe = Pipeline([("a", numbers), ("later", DPAdditiveClassifier(monotonic_cst=[1] * 4))])
    assert "step 'later': monotonic_cst" in refused(pipe, frame, Y)
    accountant = PrivacyAccountant(1.0, 1e-5)
    pipe.set_params(later__monotonic_cst=[1] * 3)
    split_budget(pipe, 1.0, 1e-5, accountant).fit(frame, Y)
    assert accountant.epsilon_spent == 1.0


def test_a_shown_error_names_the_parameters_where_the_step_does_not():
    step = FunctionTransformer(np.invert)
    message = refused(make_pipeline(scaler(), step, classifier()), X, Y)
    assert "it was given func=<ufunc 'invert'>" in message


WORDS = np.where(X == 1, "a", "b").astype(object)


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    "later",
    [
        DPStandardScaler(bounds=(0, 1)),
        DPPCA(),
        DPOneHotEncoder(categories=[0, 1]),
        DPTableVectorizer(),
        PolynomialFeatures(2),
        Normalizer(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_words_where_numbers_are_needed_cost_nothing(later):
    front = DPSimpleImputer(strategy="most_frequent", categories=["a", "b"])
    pipe = Pipeline([("front", front), ("later", later), ("model", classifier())])
    message = refused(pipe, WORDS, Y)
    assert message.startswith("step 'later': co"), message
    # Text that looks like numbers is text.
    digits = DPSimpleImputer(strategy="most_frequent", categories=["1", "0"])
    if not isinstance(later, DPOneHotEncoder):
        pipe = Pipeline([("front", digits), ("later", clone(later)), ("model", classifier())])
        message = refused(pipe, np.where(X == 1, "1", "0").astype(object), Y)
        assert message.startswith("step 'later': co"), message
    encoder = DPOneHotEncoder(categories=["a", "b"])
    right = make_pipeline(front, encoder, classifier())
    split_budget(right, 1.0, 1e-5, PrivacyAccountant(1.0, 1e-5)).fit(WORDS, Y)


def test_a_frozen_step_of_other_columns_costs_nothing():
    frozen = FrozenEstimator(DPStandardScaler(bounds=(0, 1)).fit(X[:, :2]))
    pipe = Pipeline([("front", scaler()), ("later", frozen), ("model", classifier())])
    assert "step 'later': estimator was fitted to 2 columns" in refused(pipe, X, Y)
    later = DPStandardScaler(bounds=([0.0] * 3, [1.0] * 3))
    pipe = Pipeline(
        [("a", FrozenEstimator(frozen.estimator)), ("later", later), ("m", classifier())]
    )
    assert "step 'later': bounds" in refused(pipe, X[:, :2], Y)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("names", [["p", "q", "s"], ["p", "r", "q"]], ids=["other", "order"])
def test_a_frozen_step_of_other_names_costs_nothing(names):
    frozen = FrozenEstimator(DPStandardScaler(bounds=(0, 1)).fit(FRAME))
    steps = [("front", pandas(scaler())), ("later", frozen), ("model", classifier())]
    table = FRAME.set_axis(names, axis=1)
    assert "step 'later': estimator was fitted to columns" in refused(Pipeline(steps), table, Y)
    split_budget(Pipeline(steps), 1.0, 1e-5).fit(FRAME, Y)
    # An array has no names that could be others.
    steps[0] = ("front", scaler())
    with pytest.warns(UserWarning, match="valid feature names"):
        split_budget(Pipeline(steps), 1.0, 1e-5).fit(table, Y)


def test_a_frozen_encoder_of_words_before_which_numbers_stand_costs_nothing():
    encoder = DPOneHotEncoder(categories=["a", "b"], sparse_output=False).fit(WORDS)
    frozen = FrozenEstimator(encoder)
    pipe = Pipeline([("front", scaler()), ("later", frozen), ("model", classifier())])
    assert "step 'later': column 0 holds numbers" in refused(pipe, X, Y)
    imputer = DPSimpleImputer(strategy="most_frequent", categories=["a", "b"])
    right = Pipeline([("front", imputer), ("later", frozen), ("model", classifier())])
    split_budget(right, 1.0, 1e-5).fit(WORDS, Y)


def test_columns_that_a_pattern_selects_are_known():
    front = pandas(scaler())
    for pattern, n_columns in (("p|q", 2), ("none", 0)):
        chosen = ColumnTransformer(
            [("part", scaler(), make_column_selector(pattern=pattern)), ("all", scaler(), ["r"])]
        )
        later = DPStandardScaler(bounds=([0.0] * 4, [1.0] * 4))
        pipe = Pipeline([("a", front), ("b", chosen), ("later", later), ("m", classifier())])
        assert "step 'later': bounds" in refused(pipe, FRAME, Y)
        right = DPStandardScaler(bounds=([0.0] * (n_columns + 1), [1.0] * (n_columns + 1)))
        accountant = PrivacyAccountant(1.0, 1e-5)
        split_budget(pipe.set_params(later=right), 1.0, 1e-5, accountant).fit(FRAME, Y)
        assert accountant.epsilon_spent == 1.0


BY_A_NAME = [
    DPStandardScaler(bounds={"p": (0, 1)}),
    DPOneHotEncoder(categories={"p": [0.0, 1.0]}),
    DPTargetEncoder(categories={"p": [0.0, 1.0]}),
    DPHistogramTransformer(bounds=(0, 1), interactions=[("p", "q")]),
    DPKMeans(bounds={"p": (0, 1)}),
    DPTableVectorizer(bounds={"p": (0, 1)}),
    DPAdditiveClassifier(bounds={"p": (0, 1)}),
    DPAdditiveClassifier(monotonic_cst={"p": 1}),
    DPAdditiveClassifier(interactions=[("p", "q")]),
]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("step", BY_A_NAME, ids=str)
def test_a_name_for_a_column_of_an_array_costs_nothing(step):
    """An array has no names, also where its width is found."""
    for front in (clone(FOUND), scaler()):
        for table in (X, FRAME):
            pipe = Pipeline([("front", front), ("later", clone(step))])
            message = refused(pipe, table, Y)
            assert message.startswith("step 'later': ") and "'p'" in message, message


TARGETS = {
    "series": pd.Series,
    "tuple": tuple,
    "extension array": lambda y: pd.array(y, dtype="Int64"),
    "categorical": pd.Categorical,
    "polars": lambda y: pytest.importorskip("polars").Series(y),
    "arrow": lambda y: pytest.importorskip("pyarrow").array(y),
}


@pytest.mark.parametrize("container", TARGETS)
def test_a_target_of_another_length_costs_nothing(container):
    pipe = Pipeline([("front", scaler()), ("model", classifier())])
    short = TARGETS[container](Y[:-1])
    assert refused(pipe, FRAME, short).startswith(f"y has {N - 1} rows, but X has {N}: ")
    split_budget(pipe, 1.0, 1e-5).fit(FRAME, TARGETS[container](Y))


@pytest.mark.parametrize("unread", [0, 7.5, np.array(1.0), {0: 0}], ids=str)
def test_a_wrong_parameter_is_refused_although_the_strategy_does_not_use_it(unread):
    imputer = DPSimpleImputer(bounds=(0, 1), categories=unread)
    message = refused(make_pipeline(scaler(), imputer), X, Y)
    assert message.startswith("step 'dpsimpleimputer': categories"), message


# Words whose categories are found, where only the table's shape is planned for.

JOBS = FRAME.assign(job=pd.Series(["care", "office", "crafts"] * (N // 3), dtype=str))
MODELS_OF_WORDS = [
    DPAdditiveClassifier(),
    DPHistogramNB(),
    DPDecisionTreeClassifier(),
    DPRandomForestClassifier(n_estimators=2),
]


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("model", MODELS_OF_WORDS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("shape", [{}, {"n_samples": N}, {"n_samples": N, "n_features": 4}])
def test_a_shape_without_dtypes_plans_for_words_too(model, shape):
    accountant = PrivacyAccountant(10.0, 1e-3)
    for table in (FRAME.assign(job=X[:, 0]), JOBS):
        pipe = split_budget(Pipeline([("model", model)]), 1.0, 1e-5, accountant, **shape)
        pipe.fit(table, Y)
    assert accountant.epsilon_spent == pytest.approx(2.0)


FILLED = DPSimpleImputer(strategy="most_frequent", categories="auto")
BEHIND_AN_IMPUTER = {
    "classifier": classifier(),
    "scaler": DPStandardScaler(bounds=(0, 1)),
    "additive": DPAdditiveClassifier(),
    "vectorizer": DPTableVectorizer(),
}


@pytest.mark.quick_cases(every=11)
@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
@pytest.mark.parametrize("container", ["str", "object", "array"])
@pytest.mark.parametrize("name", BEHIND_AN_IMPUTER)
def test_words_that_an_imputer_passes_on_to_numbers_cost_nothing(name, container, strategy):
    imputer = clone(FILLED).set_params(strategy=strategy)
    steps = [("filled", imputer), ("numeric", BEHIND_AN_IMPUTER[name]), ("model", classifier())]
    pipe = Pipeline(steps[:2] if name in ("classifier", "additive") else steps)
    words = JOBS[["job"]].astype(object)
    words.loc[3, "job"] = None
    tables = {"str": words.astype("str"), "object": words, "array": words.to_numpy()}
    assert refused(pipe, tables[container], Y).startswith("step 'numeric': column 0")
    numbers = np.where(words.isna(), np.nan, 1.0)
    accountant = PrivacyAccountant(10.0, 1e-3)
    split_budget(pipe, 1.0, 1e-5, accountant).fit(numbers, Y)
    assert len(accountant.charges) == 1


def test_an_encoder_gets_the_words_that_an_imputer_passes_on():
    words = JOBS[["job"]].astype(object)
    words.loc[3, "job"] = None
    for declared in ("auto", [["care", "crafts", "office"]]):
        encoder = DPOneHotEncoder(categories=[["care", "crafts", "office"]])
        # If no category is found, cells are filled with `fill_value`.
        imputer = clone(FILLED).set_params(categories=declared, fill_value="office")
        pipe = Pipeline([("filled", imputer), ("encoder", encoder), ("model", classifier())])
        split_budget(pipe, 50.0, 1e-5).fit(words, Y)


@pytest.mark.parametrize(
    "params",
    [
        {"same_as": {"a": "b"}},
        {"same_as": {"a": ("b", {0.0: 1.0})}},
        {"same_as": {0: 2}},
        {"workload": [("a", "b"), ("b", "c")]},
        {"forbidden": {("a", "b"): [(0.0, 1.0)]}},
        {"target": ["b", "a"]},
        {"decimals": {"b": 1}},
        {"bounds": {"c": (0.0, 1.0)}},
    ],
    ids=str,
)
def test_each_column_of_an_unknown_table_can_be_named(params):
    """Before the fit of the earlier step, no column of the synthesizer's table is known."""
    imputer = DPSimpleImputer(bounds=(0.0, 1.0)).set_output(transform="pandas")
    synthesizer = DPTableSynthesizer(**{"bounds": (0.0, 1.0), "categories": None} | params)
    steps = split_budget(make_pipeline(imputer, synthesizer), epsilon=1.0, delta=1e-6)
    assert [name for name, _ in steps.steps] == ["dpsimpleimputer", "dptablesynthesizer"]
