"""The form of the table that a step will receive is known before the first charge."""

import datetime

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import (
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPLinearSVC,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
)
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import split_budget

pl = pytest.importorskip("polars")

N = 60
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(N, 3))
Y = np.arange(N) % 2
TABLE = pd.DataFrame(X, columns=["p", "q", "r"])


def selects_pandas_columns_by_steps():
    """Return True if scikit-learn accepts a slice with a step for a pandas frame, as 1.7 does."""
    try:
        ColumnTransformer([("part", "passthrough", slice(None, None, 2))]).fit(TABLE)
    except NotImplementedError:
        return False
    return True


def scaler():
    return DPMinMaxScaler(bounds=(0, 1))


def standard(bounds=(0, 1)):
    return DPStandardScaler(bounds=bounds)


def classifier():
    return DPLogisticRegression(data_norm=2.0)


def one_part(columns, **params):
    return ColumnTransformer([("part", scaler(), columns)], **params)


def split(pipe, table, accountant, **params):
    split_budget(pipe, 1.0, 1e-5, accountant, **params).fit(table, Y)


def split_of_a_shape(pipe, table, accountant):
    split(pipe, table, accountant, n_samples=N, n_features=table.shape[1])


def search(pipe, table, accountant):
    options = {"strategy": "holdout", "accountant": accountant, **BUDGET}
    DPGridSearchCV(pipe, {}, **options).fit(table, Y)


def folds(pipe, table, accountant):
    dp_cross_val_score(pipe, table, Y, cv=2, accountant=accountant, **BUDGET)


META_OBJECTS = [split, split_of_a_shape, search, folds]


def refused(pipe, table, fit=split, unit="row"):
    """Return the message of a fit that is refused before a charge."""
    accountant = PrivacyAccountant(1.0, 1e-5, unit=unit)
    with pytest.raises(ValueError) as caught:
        fit(pipe, table, accountant)
    assert accountant.epsilon_spent == 0.0, caught.value
    return str(caught.value)


def accepted(pipe, table, fit=split):
    accountant = PrivacyAccountant(1.0, 1e-5)
    fit(pipe, table, accountant)
    assert accountant.epsilon_spent == 1.0


# Labels of a frame that are not strings. scikit-learn calls its columns x0, x1, x2.
LABELS = {
    "range": range(3),
    "integers": [5, 6, 7],
    "floats": [0.5, 1.5, 2.5],
    "tuples": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
}
# Steps behind a scaler that name a column "p", which the table lacks.
NAMING_P = {
    "a list": one_part(["p"]),
    "a slice": one_part(slice("p", "q")),
    "a label as text": one_part(["5"]),
    "bounds": standard({"p": (0, 1)}),
    "directions": DPAdditiveClassifier(monotonic_cst={"p": 1}),
    "interactions": DPAdditiveClassifier(interactions=[("p", "q")]),
    "bounds of a vectorizer": DPTableVectorizer(numeric="scaled", bounds={"p": (0, 1)}),
    "a frozen step": FrozenEstimator(standard().fit(TABLE)),
    "a function before": make_pipeline(FunctionTransformer(np.abs), one_part(["p"])),
    "repeated names": ColumnTransformer(
        [("a", scaler(), [0]), ("b", scaler(), [0])], verbose_feature_names_out=False
    ),
    "repeated names of a union": FeatureUnion(
        [("a", scaler()), ("b", scaler())], verbose_feature_names_out=False
    ),
}


def in_frames(step, output="pandas"):
    steps = [("front", scaler()), ("later", sklearn.clone(step))]
    if not hasattr(step, "predict"):
        steps.append(("model", classifier()))
    return Pipeline(steps).set_output(transform=output)


@pytest.mark.quick_cases(every=13)
@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("case", NAMING_P)
def test_names_of_a_frame_without_names_cost_nothing(case, labels, output):
    table = pd.DataFrame(X, columns=LABELS[labels])
    if output == "polars" and case == "a function before":
        pytest.skip("NumPy makes an array of a polars frame")
    assert "step 'later" in refused(in_frames(NAMING_P[case], output), table)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("fit", META_OBJECTS)
def test_names_of_a_frame_without_names_cost_nothing_anywhere(fit, labels):
    table = pd.DataFrame(X, columns=LABELS[labels])
    pipe = in_frames(one_part(["p"]))
    message = refused(pipe, table, fit)
    assert message == (
        "step 'later__part': columns: column 'p' is selected, but the table has 'x0', 'x1', 'x2'"
    )
    pipe = Pipeline([("front", scaler()), ("later", one_part(["p"])), ("model", classifier())])
    with sklearn.config_context(transform_output="pandas"):
        assert refused(pipe, table, fit) == message


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("labels", LABELS)
def test_the_names_that_scikit_learn_gives_are_fitted_at_the_price(labels):
    chosen = ColumnTransformer(
        [("a", scaler(), ["x0"]), ("b", scaler(), make_column_selector(pattern="x[12]"))]
    )
    bounds = {"a__x0": (0, 1), "b__x1": (0, 1), "b__x2": (0, 1)}
    pipe = in_frames(make_pipeline(chosen, standard(bounds)))
    accepted(pipe, pd.DataFrame(X, columns=LABELS[labels]))


COLUMNS = {
    "pattern": make_column_selector(pattern="p"),
    "list": ["p"],
    "tuple": ("q",),
    "index": pd.Index(["q"]),
    "series": pd.Series(["q"]),
    "polars series": pl.Series(["q"]),
    "positions": [0, -1],
    "mask": [True, False, False],
    "short mask": [True],
    "names and positions": ["q", 0],
    "set": {"p"},
    "floats": [0.0],
    "all": slice(None),
    "every second": slice(None, None, 2),
    "every second position": slice(0, 3, 2),
    "every second name": slice("p", "r", 2),
    "slice of names": slice("p", "q"),
    "reversed slice": slice("q", "p"),
    "slice beyond": slice(5, 9),
    "positions beyond": [5],
    "empty list": [],
    "empty array": np.array([]),
    "empty array of integers": np.array([], dtype=int),
    "a number": np.array(1),
}
CONTAINERS = {"default": lambda X: X, "pandas": lambda X: TABLE, "polars": pl.from_pandas}


@pytest.mark.quick_cases(every=109)
@pytest.mark.parametrize("place", ["first", "behind", "in a union"])
@pytest.mark.parametrize("output", CONTAINERS)
@pytest.mark.parametrize("case", COLUMNS)
def test_columns_are_selected_or_cost_nothing(case, output, place):
    """Which columns can be selected depends on the container that the step receives."""
    parts = [("part", scaler(), COLUMNS[case]), ("rest", scaler(), [2])]
    later = ColumnTransformer(parts)
    if place == "in a union":
        later = FeatureUnion([("inner", later)])
    steps = [("front", scaler()), ("later", later), ("model", classifier())]
    pipe = Pipeline(steps[place == "first" :]).set_output(transform=output)
    table = X if output == "default" else TABLE
    if place == "first" and output == "polars":
        table = pl.from_pandas(TABLE)
    accountant = PrivacyAccountant(1.0, 1e-5)
    try:
        split(pipe, table, accountant)
    except ValueError as error:
        assert accountant.epsilon_spent == 0.0, error
        assert "step 'later" in str(error) and "columns" in str(error), error
    else:
        assert accountant.epsilon_spent == 1.0
        is_array = output == "default"
        wrong = {"short mask", "names and positions", "set", "floats"}
        wrong |= {"reversed slice", "slice beyond", "positions beyond"}
        if output != "pandas" or not selects_pandas_columns_by_steps():
            wrong |= {"every second", "every second name"}
        wrong |= {"empty array", "a number", "polars series"}
        wrong |= {"pattern", "list", "tuple", "index", "series", "all"} if is_array else set()
        wrong |= {"slice of names"} if is_array else set()
        wrong |= {"pattern"} if output == "polars" else set()
        assert case not in wrong


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("fit", META_OBJECTS)
def test_a_pattern_for_an_array_costs_nothing_anywhere(fit):
    pipe = make_pipeline(scaler(), one_part(make_column_selector(pattern="p")), classifier())
    assert 'set_output(transform="pandas")' in refused(pipe, TABLE, fit)
    accepted(pipe.set_output(transform="pandas"), TABLE, fit)


# Values that a numeric model cannot read.
FILLS = ["a", np.str_("a"), datetime.date(2020, 1, 1), 1j, np.inf]
GAPS = TABLE.assign(q=TABLE.q.where(TABLE.p > 0.2))


def imputer(fill_value, **params):
    return DPSimpleImputer(strategy="constant", fill_value=fill_value, **params)


def beside(part, columns):
    parts = [("scaled", standard(), ["p"]), ("filled", part, columns)]
    return ColumnTransformer(parts)


def unions(fill_value):
    return FeatureUnion([("a", DPSimpleImputer(bounds=(0, 1))), ("b", imputer(fill_value))])


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("fit", META_OBJECTS)
@pytest.mark.parametrize("place", ["columns", "union", "alone"])
@pytest.mark.parametrize("fill_value", FILLS, ids=repr)
def test_whether_a_cell_is_missing_does_not_decide_whether_a_fit_is_refused(fill_value, place, fit):
    front = {
        "columns": beside(imputer(fill_value), ["q"]),
        "union": unions(fill_value),
        "alone": imputer(fill_value),
    }[place]
    pipe = make_pipeline(front, classifier())
    message = refused(pipe, GAPS, fit)
    # The remedy is named, with the step.
    assert "fill_value" in message
    assert refused(pipe, TABLE, fit) == message


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("fill_value", [0.5, True])
def test_a_number_for_missing_numbers_is_fitted_at_the_price(fill_value):
    accepted(make_pipeline(beside(imputer(fill_value), ["q"]), classifier()), GAPS)


WORDS = pd.Series(np.where(X[:, 0] < 0.2, None, np.where(Y, "a", "b")))
WORD_TABLES = {
    "str": TABLE.assign(w=WORDS.astype("string")),
    "object": TABLE.assign(w=WORDS.astype(object)),
}
READERS = {"model": DPAdditiveClassifier(), "vectorizer": DPTableVectorizer()}


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("strategy", ["constant", "most_frequent"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("words", WORD_TABLES)
def test_words_that_an_imputer_passes_on_are_read_with_declared_categories(words, reader, strategy):
    part = DPSimpleImputer(strategy=strategy, fill_value="a")
    steps = [("front", beside(part, ["w"])), ("later", sklearn.clone(READERS[reader]))]
    if reader == "vectorizer":
        steps.append(("model", classifier()))
    pipe = Pipeline(steps)
    assert "categories={column: 'auto'}" in refused(pipe, WORD_TABLES[words])
    for categories in ("auto", ["a", "b"]):
        pipe.set_params(later__categories={1: categories})
        accepted(pipe, WORD_TABLES[words])


def test_a_fill_value_of_another_kind_than_declared_categories_costs_nothing():
    encoder = DPOneHotEncoder(categories=[["a", "b"]], sparse_output=False)
    behind = ColumnTransformer([("filled", imputer("a"), [0])])
    message = refused(make_pipeline(standard(), behind, encoder, classifier()), TABLE)
    assert "fill_value='a' of step 'columntransformer__filled'" in message
    # The hint for a single step does not know the imputer.
    assert "an earlier DPSimpleImputer" not in message and ".." not in message
    for table in WORD_TABLES.values():
        for fill_value, fit in (("a", accepted), (None, refused)):
            for strategy in ("constant", "most_frequent"):
                part = imputer(fill_value).set_params(strategy=strategy)
                encoded = make_pipeline(part, sklearn.clone(encoder))
                fit(make_pipeline(beside(encoded, ["w"]), classifier()), table)


def test_a_plain_pipeline_names_the_fill_value_of_another_kind():
    table = pd.DataFrame({"a": np.array(["x", "y", None] * 20, dtype=object)})
    modes = DPSimpleImputer(strategy="most_frequent", categories=["x", "y"])
    with pytest.raises(ValueError, match="column 'a' holds numbers.*DPSimpleImputer.*fill_value"):
        make_pipeline(imputer(0).set_output(transform="pandas"), modes).fit(table)
    with pytest.raises(ValueError, match="column 'a' holds numbers") as refusal:
        modes.fit(pd.DataFrame({"a": np.arange(60)}))
    assert "fill_value" not in str(refusal.value)


def test_a_weight_of_words_costs_nothing():
    front = unions("a").set_params(transformer_weights={"b": 2.0})
    assert "transformer_weights" in refused(make_pipeline(front, classifier()), TABLE)


# Parameters of steps that learn from rows that are declared public.
WRONG_PUBLIC = {
    "more components than columns": (PCA(n_components=9), classifier(), "'pca': n_components"),
    "no feature": (SelectKBest(k=0), classifier(), "receives no column"),
    "bounds of other components": (
        PCA(n_components=2),
        standard(([0.0] * 3, [1.0] * 3)),
        "'dpstandardscaler': bounds",
    ),
    "bounds of other features": (
        SelectKBest(k=2),
        standard(([0.0] * 3, [1.0] * 3)),
        "'dpstandardscaler': bounds",
    ),
    "another name": (StandardScaler(), one_part(["s"]), "'columntransformer__part': columns"),
}


@pytest.mark.parametrize("case", WRONG_PUBLIC)
def test_a_wrong_parameter_around_a_public_step_costs_nothing(case):
    step, later, words = WRONG_PUBLIC[case]
    pipe = make_pipeline(scaler(), step, later)
    if not hasattr(later, "predict"):
        pipe.steps.append(("model", classifier()))
    if case == "another name":
        pipe.set_output(transform="pandas")
    public = [name for name, part in pipe.steps if part is step]

    def fit(pipe, table, accountant):
        split(pipe, table, accountant, public_steps=public)

    assert words in refused(pipe, TABLE, fit)


def test_right_parameters_around_a_public_step_are_fitted_at_the_price():
    for step, width in ((PCA(2), 2), (SelectKBest(k=2), 2), (StandardScaler(), 3)):
        later = standard(([-9.0] * width, [9.0] * width))
        pipe = Pipeline([("a", scaler()), ("public", step), ("later", later), ("m", classifier())])
        accepted(
            pipe,
            TABLE,
            lambda pipe, table, accountant: split(pipe, table, accountant, public_steps=["public"]),
        )


WRONG_OF_CONTAINERS = {
    "no jobs": (one_part([0], n_jobs=0), "n_jobs"),
    "no jobs of a union": (FeatureUnion([("a", scaler())], n_jobs=0), "n_jobs"),
    "a list of weights": (FeatureUnion([("a", scaler())], transformer_weights=[1]), "_weights"),
    "a weight that makes infinity": (
        FeatureUnion([("a", scaler())], transformer_weights={"a": 1e308}),
        "transformer_weights",
    ),
    "a word as threshold": (one_part([0], sparse_threshold="x"), "sparse_threshold"),
}


@pytest.mark.parametrize("case", WRONG_OF_CONTAINERS)
def test_a_wrong_parameter_of_a_container_costs_nothing(case):
    container, parameter = WRONG_OF_CONTAINERS[case]
    steps = [("front", scaler()), ("later", container), ("model", classifier())]
    message = refused(Pipeline(steps), TABLE)
    assert message.startswith("step 'later'") and parameter in message


def test_a_wrong_number_of_jobs_in_a_grid_costs_nothing():
    pipe = Pipeline([("front", scaler()), ("later", one_part([0])), ("model", classifier())])
    for grid, word in (
        ({"later__n_jobs": [1, 0]}, "n_jobs"),
        ({"model": [classifier(), DPLinearSVC]}, "DPLinearSVC()"),
    ):

        def fit(pipe, table, accountant, grid=grid):
            options = {"strategy": "holdout", "accountant": accountant, **BUDGET}
            DPGridSearchCV(pipe, grid, **options).fit(table, Y)

        assert word in refused(pipe, TABLE, fit)


def test_ids_that_a_pipeline_would_transform_cost_nothing():
    def fit(pipe, table, accountant):
        split_budget(pipe, 1.0, 1e-5, accountant).fit(table, Y, groups=np.arange(N))

    with sklearn.config_context(enable_metadata_routing=True):
        steps = [
            ("a", standard().set_fit_request(groups=True)),
            ("b", classifier().set_fit_request(groups=True)),
        ]
        pipe = Pipeline(steps, transform_input=["groups"])
        assert "transform_input" in refused(pipe, TABLE, fit, unit="person")


def test_a_fit_parameter_of_no_step_costs_nothing():
    def fit(pipe, table, accountant):
        split_budget(pipe, 1.0, 1e-5, accountant).fit(table, Y, zzz__groups=np.arange(N))

    assert "'zzz__groups' of fit names no step" in refused(
        make_pipeline(standard(), classifier()), TABLE, fit, unit="person"
    )


def test_a_selector_for_labels_that_are_not_strings_names_the_step():
    table = pd.DataFrame(X, columns=[5, 6, 7])
    for selector in (make_column_selector("p"), make_column_selector(dtype_include="number")):
        pipe = make_pipeline(one_part(selector), classifier())
        assert refused(pipe, table).startswith("step 'columntransformer__part': columns")


def found_and_scaled(**params):
    """Return a container of which only some column names are known before the fit."""
    parts = [
        ("found", DPOneHotEncoder(sparse_output=False), ["job"]),
        ("s", DPStandardScaler(bounds=(0, 100)), ["age"]),
    ]
    return ColumnTransformer(parts, **params)


def behind_found(container, last):
    frame = pd.DataFrame({"age": np.arange(80.0), "job": ["a", "b"] * 40})
    accountant = PrivacyAccountant(9.0, 1e-3, ledger="memory://")

    def fit():
        pipe = split_budget(make_pipeline(container, last), 8.0, 1e-4, accountant)
        pipe.fit(frame, np.arange(80) % 2)

    return accountant, fit


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("form", "right"), [(True, "s__age"), ("{transformer_name}:{feature_name}", "s:age")]
)
def test_a_name_that_no_found_column_can_have_costs_nothing(output, form, right):
    """The prefixes of the parts are public, and so are the names of other parts."""

    def scaled_by_name(name):
        return ColumnTransformer([("t", DPMinMaxScaler(bounds=(-9, 9)), [name])])

    for make in (lambda name: DPAdditiveClassifier(monotonic_cst={name: 1}), scaled_by_name):
        for name in ("age", "found", "job_a", "t__age"):
            container = found_and_scaled(verbose_feature_names_out=form)
            accountant, fit = behind_found(container.set_output(transform=output), make(name))
            with pytest.raises(ValueError, match=f"column '{name}'"):
                fit()
            assert accountant.epsilon_spent == 0.0
    container = found_and_scaled(verbose_feature_names_out=form).set_output(transform=output)
    accountant, fit = behind_found(container, DPAdditiveClassifier(monotonic_cst={right: 1}))
    fit()
    assert accountant.epsilon_spent == 8.0


@pytest.mark.parametrize("form", [False, "{feature_name}_{transformer_name}"])
def test_a_name_that_a_found_column_may_have_is_left_to_the_fit(form):
    container = found_and_scaled(verbose_feature_names_out=form).set_output(transform="pandas")
    name = "age" if form is False else "age_s"
    accountant, fit = behind_found(container, DPAdditiveClassifier(monotonic_cst={name: 1}))
    fit()
    assert accountant.epsilon_spent == 8.0
