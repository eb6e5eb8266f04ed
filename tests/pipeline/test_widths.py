"""Widths follow from parameters; they are those that transformers make."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.stats import uniform
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.model_selection import KFold, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import skdp
from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLinearSVC,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp.accounting import ApproximateDP, PureDP
from skdp.base import TableShape, guarantee_of
from skdp.mechanisms import GaussianMechanism
from skdp.pipeline import check_pipeline, plan_pipeline, planned_charge, split_budget, step_kind
from skdp.pipeline._forms import TableForm, form_of_table, output_form
from skdp.pipeline._kinds import sparsity
from skdp.pipeline._members import check_members
from skdp.pipeline._steps import find_steps
from tests._estimators import BOUNDED_TRANSFORMERS, CENTRAL_TRANSFORMERS, ESTIMATORS, completed
from tests._private import KNOWN_STEPS

RNG = np.random.default_rng(0)
A = RNG.uniform(size=(60, 3))
W = RNG.choice(["no", "yes", "so"], size=(60, 3)).astype(object)
Y = np.arange(60) % 2
LISTS = [["no", "yes"], ["no", "yes", "so"], ["yes", "so"]]
C = {"categories": LISTS}
SPARSITIES = ("made", "kept", "dense")
MECHANISMS = ("auto", "gradient", "objective", "output", "sufficient_statistics")
IGNORE = C | {"handle_unknown": "ignore"}
KNOWN = [
    *(
        (OneHotEncoder(drop=d, **IGNORE), W)
        for d in (None, "first", "if_binary", ["no"] * 2 + ["so"])
    ),
    (OneHotEncoder(sparse_output=False, **IGNORE), W),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, **C), W),
    (SimpleImputer(strategy="constant", fill_value="?", keep_empty_features=True), W),
    *(
        (PolynomialFeatures(degree, interaction_only=only, include_bias=bias), A)
        for degree in (1, 2, (2, 3), (0, 2), (1, 4), (3, 3))
        for only in (True, False)
        for bias in (True, False)
    ),
    *(
        (
            SplineTransformer(
                knots=np.linspace(0, 1, 5)[:, np.newaxis].repeat(3, 1),
                degree=degree,
                extrapolation=beyond,
                include_bias=degree == 2,
                sparse_output=degree == 3,
            ),
            A,
        )
        for degree in (2, 3)
        for beyond in ("constant", "periodic")
    ),
    (RBFSampler(gamma=0.1, n_components=7), A),
    (SkewedChi2Sampler(n_components=5), A),
    (PolynomialCountSketch(n_components=9), A),
    (GaussianRandomProjection(2), A),
    (SparseRandomProjection(2), A),
    (Normalizer(), A),
    (Binarizer(), A),
    (FunctionTransformer(), A),
    (FunctionTransformer(np.log1p), A),
    (FunctionTransformer(partial(np.multiply, [1.0, 2.0, 3.0])), A),
    (MissingIndicator(features="all"), A),
    (MissingIndicator(features="all", sparse=True), A),
    (DPOneHotEncoder(**C), W),
    (DPOneHotEncoder(**C, sparse_output=False), W),
    (DPOneHotEncoder(categories=["no", "yes"]), W),
    (DPPCA(n_components=2), A),
    (DPSimpleImputer(bounds=(0, 1)), A),
    (DPSimpleImputer(bounds=(0, 1), add_indicator=True), A),
    (DPStandardScaler(bounds=(0, 1)), A),
    (DPTargetEncoder(**C, target_bounds=(0, 1)), W),
    (DPKBinsDiscretizer(bounds=(0, 1), encode="ordinal"), A),
    (DPHistogramTransformer(bounds=(0, 1), encode="density"), A),
    (DPHistogramTransformer(bounds={0: (0, 1), 1: (0, 1), 2: "auto"}, encode="ordinal"), A),
    (DPHistogramTransformer(bounds=(0, 1), edges="uniform", n_bins=4), A),
    (DPHistogramTransformer(edges=[0.0, 0.5, 1.0], interactions=[(0, 2)], sparse_output=True), A),
    (DPKBinsDiscretizer(bounds={0: (0, 1), 1: (0, 1), 2: "auto"}, encode="ordinal"), A),
    (DPKBinsDiscretizer(strategy="uniform"), A),
    (DPKBinsDiscretizer(strategy="uniform", encode="onehot-dense", n_bins="auto"), A),
    (
        DPSimpleImputer(bounds={"a": (0, 1), 1: (0, 1), "c": "auto"}),
        pd.DataFrame(A, columns=[*"abc"]),
    ),
]
UNKNOWN = [
    PCA(),
    DPOneHotEncoder(delta=1e-6),
    # As many components as the smaller of rows and columns.
    DPPCA(),
    DPOneHotEncoder(categories=LISTS, min_frequency=5),
    DPKBinsDiscretizer(),
    DPHistogramTransformer(),
    DPTargetEncoder(**C),
    OneHotEncoder(),
    OneHotEncoder(categories=LISTS[:2]),
    FrozenEstimator(OneHotEncoder()),
    FrozenEstimator(DPStandardScaler()),
]


def output_width(estimator, n_columns):
    return output_form(estimator, TableForm(n_columns=n_columns)).n_columns


# What they make is as wide whatever the table is: their parameters say it.
OF_ANY_WIDTH = (
    OneHotEncoder,
    SplineTransformer,
    RBFSampler,
    SkewedChi2Sampler,
    PolynomialCountSketch,
    GaussianRandomProjection,
    SparseRandomProjection,
    DPPCA,
)


@pytest.mark.quick_cases(every=2)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize(("estimator", "X"), KNOWN, ids=lambda v: str(v)[:40].split("\n")[0])
def test_a_known_width_is_that_of_the_output(estimator, X):
    made = clone(estimator).fit(X, Y).transform(X)
    known = output_form(estimator, replace(form_of_table(X), classes=[0, 1]))
    assert output_width(estimator, 3) == known.n_columns == made.shape[1]
    assert known.is_sparse in (None, sp.issparse(made))
    assert sparsity(estimator) == "made" or not sp.issparse(made)
    assert output_width(estimator, None) == (
        made.shape[1] if isinstance(estimator, OF_ANY_WIDTH) else None
    )
    for table in (sp.csr_array(A), sp.csc_matrix(np.round(A))):
        try:
            made = clone(estimator).fit(table, Y).transform(table)
        except (TypeError, ValueError):
            continue
        assert sparsity(estimator) in (("made", "kept") if sp.issparse(made) else SPARSITIES)


def test_a_number_a_column_may_make_several_of_one():
    step = FunctionTransformer(partial(np.add, [1.0, 2.0, 3.0]))
    assert step.fit_transform(A[:, :1]).shape[1] == 3
    assert output_width(step, 1) is None and output_width(step, 3) == 3


TRANSFORMERS = [
    kind
    for kind in (getattr(skdp, name) for name in skdp.__all__)
    # A search makes what its estimator does.
    if isinstance(kind, type)
    and hasattr(kind, "transform")
    and not issubclass(kind, MetaEstimatorMixin)
]


@pytest.mark.parametrize("kind", TRANSFORMERS, ids=lambda kind: kind.__name__)
def test_what_every_private_transformer_makes_is_sparse_where_that_is_said(kind):
    ranged = "bounds" in kind().get_params() or kind is DPPCA
    params = {} if ranged else {"categories": [0, 1]}
    made = kind(**params).fit(np.round(A), Y).transform(np.round(A))
    assert (sparsity(kind(**params)) == "made") is sp.issparse(made)


@pytest.mark.parametrize("estimator", UNKNOWN, ids=str)
def test_what_is_learned_has_no_known_width(estimator):
    assert output_width(estimator, 3) is None


@pytest.mark.parametrize(
    ("estimator", "width"), [(StandardScaler(), 3), (PCA(2), 2), (SelectKBest(k=1), 1)], ids=str
)
def test_the_width_of_a_public_step_that_follows_from_its_parameters_is_known(estimator, width):
    assert output_width(estimator, 3) == width


@pytest.mark.parametrize("estimator", [each for each, _ in KNOWN] + UNKNOWN, ids=str)
def test_of_no_columns_nothing_is_made(estimator):
    assert output_width(estimator, 0) == 0
    # The model behind gets no column.
    assert find_steps(make_pipeline(estimator, DPLogisticRegression()))
    empty = ColumnTransformer([("step", estimator, [])])
    assert check_pipeline(make_pipeline(empty, DPLogisticRegression()), n_features=2).steps


def test_nothing_is_fitted_to_find_a_width(monkeypatch):
    def fit(self, *args):
        raise AssertionError("a fit")

    for estimator, _ in KNOWN:
        monkeypatch.setattr(type(estimator), "fit", fit)
        output_width(estimator, 3)


@pytest.mark.parametrize("columns", [[0, 0], [0, -3], [1, 0]])
def test_a_column_that_is_chosen_twice_is_there_twice(columns):
    pipe = Pipeline(
        [("c", ColumnTransformer([("s", DPStandardScaler(), columns)])), ("m", model())]
    )
    assert [step.n_features for step in find_steps(pipe, 3)] == [2, 2]


def model(**params):
    return DPLogisticRegression(0.85, delta=1e-6, **params)


def behind(*steps):
    return Pipeline([*((f"s{i}", step) for i, step in enumerate(steps)), ("m", model())])


def encoder():
    return DPOneHotEncoder(0.15, delta=1e-6, sparse_output=False, other="rest")


@pytest.mark.parametrize(
    "between", [(), (Normalizer(),), (make_union("passthrough", Normalizer()),), (encoder(),)]
)
def test_behind_a_learned_width_any_event_of_the_price_is_planned(between):
    plan = plan_pipeline(behind(encoder(), *between), 40_000, 3)
    *_, last = plan.charges(1.0, 1e-6)
    assert plan.steps[-1].n_features is None
    assert last.event == ApproximateDP(last.epsilon, last.delta)


@pytest.mark.parametrize("shape", [(40_000, None), (None, 3), (None, None)])
def test_that_several_shapes_cost_the_same_is_no_plan_for_others(shape, monkeypatch):
    same = GaussianMechanism(0.85, 1e-6, 1.0)
    monkeypatch.setattr(DPLogisticRegression, "plan_fit", lambda *args: same)
    assert planned_charge(model(), *shape).event == ApproximateDP(0.85, 1e-6)
    assert planned_charge(model(mechanism="output", C=1.0), *shape).event == same.event


PLANNED = [estimator for estimator in ESTIMATORS if hasattr(estimator, "plan_fit")]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("estimator", PLANNED, ids=lambda e: str(e)[:40])
def test_a_plan_without_a_shape_covers_every_shape(estimator):
    options = {"mechanism": MECHANISMS, "delta": (0.0, 1e-6)}
    for name, value in ((n, v) for n, vs in options.items() if hasattr(estimator, n) for v in vs):
        changed = clone(estimator).set_params(**{name: value})
        planned = planned_charge(changed)
        if isinstance(planned.event, ApproximateDP | PureDP):
            continue  # it stands for whatever meets the guarantee
        for n_rows, n_columns in ((30, 3), (10**6, 20), (400, 3_000)):
            shape = TableShape(n_rows=n_rows, n_columns=n_columns, classes=np.array([0, 1]))
            try:
                event = changed.plan_fit(shape, guarantee_of(changed)).event
            except ValueError:  # a mechanism that the estimator has not, or a shape it refuses
                continue
            assert planned.covers(event, "add_remove"), (name, value, n_rows, n_columns)


@pytest.mark.parametrize("labels", [pytest.param(2, marks=pytest.mark.slow), 12])
def test_how_many_categories_are_found_decides_nothing_else(labels):
    accountant = PrivacyAccountant(1.0, 1e-6)
    n = 20_000
    X = RNG.integers(0, labels, size=(n, 1)).astype(str).astype(object)
    pipe = split_budget(behind(encoder()), 1.0, 1e-6, accountant, n_samples=n, n_features=1)
    pipe.fit(X, np.arange(n) % 2)
    assert accountant.epsilon_spent == 1.0


@pytest.mark.parametrize("n_features", [0, -1, 2.0, True, "3"])
@pytest.mark.parametrize("name", ["n_samples", "n_features"])
def test_impossible_shapes(name, n_features):
    accountant = PrivacyAccountant(1.0, 1e-6)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), model())
    for call in (check_pipeline, plan_pipeline, lambda p, **k: split_budget(p, 1.0, 1e-6, **k)):
        with pytest.raises(ValueError, match=name):
            call(pipe, **{name: n_features})
    assert not accountant.charges


@pytest.mark.parametrize("columns", [[2], [-3], 5, [True], [False, True, True]])
def test_columns_that_a_table_has_not(columns):
    pipe = behind(ColumnTransformer([("s", DPStandardScaler(), columns)]))
    assert check_pipeline(pipe).accepted
    for call in (check_pipeline, plan_pipeline, lambda p, **k: split_budget(p, 1.0, 1e-6, **k)):
        with pytest.raises(ValueError, match="column"):
            call(pipe, n_features=2)


@pytest.mark.parametrize("remainder", [StandardScaler(), DPStandardScaler(bounds=(0, 1))])
def test_a_remainder_behind_a_learned_width_is_judged(remainder):
    columns = ColumnTransformer([("k", DPStandardScaler(bounds=(0, 1)), [0])], remainder=remainder)
    pipe = behind(encoder(), columns)
    private = not isinstance(remainder, StandardScaler)
    assert check_pipeline(pipe, n_features=1).accepted is private
    if private:
        assert len(plan_pipeline(pipe, 1000, 1).steps) == 4
    else:
        with pytest.raises(ValueError, match="remainder"):
            split_budget(pipe, 1.0, 1e-6, n_features=1)


# What a transformer states of its output before a fit is what its fit makes.


N = 400


NUMBERS = RNG.uniform(size=(N, 3)).round(2)


WORDS = RNG.choice(["no", "yes"], size=(N, 3)).astype(object)


NAMES = ["p", "q", "r"]


TARGETS = np.arange(N) % 2


Y3 = np.arange(N) % 3


BY_COLUMN = {0: (0, 1), 1: (0, 1), 2: (0, 1)}


SOME_FOUND = {0: (0, 1), 1: (0, 1), 2: "auto"}


WORD_LISTS = [["no", "yes"], ["yes", "so"], ["no", "yes", "so"]]


DIGITS = [[0.0, 0.5, 1.0]] * 3


CELLS = {"bounds": (0, 1), "edges": "uniform", "n_bins": 4}


# Of these the number of columns depends on bins that are found.
WIDTH_IS_FOUND = (DPKBinsDiscretizer, DPHistogramTransformer, DPTableVectorizer)


# Transformers of tables of numbers, whose width and names must be known.
LISTED = [
    *(
        kind(bounds=bounds)
        for bounds in ((0, 1), BY_COLUMN, SOME_FOUND)
        for kind in BOUNDED_TRANSFORMERS
        if kind not in WIDTH_IS_FOUND
    ),
    DPSimpleImputer(strategy="median", bounds=BY_COLUMN, add_indicator=True),
    DPSimpleImputer(strategy="constant"),
    DPSimpleImputer(strategy="constant", fill_value="?"),
    DPSimpleImputer(strategy="most_frequent", categories=DIGITS),
    DPSimpleImputer(strategy="most_frequent", categories=dict(enumerate(DIGITS))),
    DPSimpleImputer(strategy="most_frequent", delta=1e-6),
    DPPCA(n_components=2),
    DPPCA(),
    DPKMeans(n_clusters=4, bounds=BY_COLUMN),
    DPKBinsDiscretizer(bounds=BY_COLUMN, encode="ordinal"),
    DPKBinsDiscretizer(strategy="uniform"),
    DPKBinsDiscretizer(strategy="uniform", encode="onehot-dense", n_bins="auto"),
    *(DPHistogramTransformer(encode=e, bounds=BY_COLUMN) for e in ("ordinal", "density")),
    DPHistogramTransformer(encode="cumulative", bounds=SOME_FOUND),
    DPHistogramTransformer(**CELLS),
    DPHistogramTransformer(**CELLS, interactions=[(0, 1), (2, 0)], sparse_output=True),
    DPHistogramTransformer(edges=[0.0, 0.3, 1.0]),
    DPHistogramTransformer(categories={1: [0.0, 0.5]}, edges={0: "uniform", 2: [0.0, 1.0]}),
    DPOneHotEncoder(categories=DIGITS),
    DPOneHotEncoder(categories=dict(enumerate(DIGITS)), other=7.0, sparse_output=False),
    DPTargetEncoder(categories=DIGITS),
    DPTargetEncoder(categories=DIGITS, target_bounds=(0, 2)),
    DPTargetEncoder(categories=dict(enumerate(DIGITS)), classes=[0, 1, 2, 3]),
    DPTableVectorizer(numeric="scaled", bounds=BY_COLUMN),
    DPTableVectorizer(numeric="scaled", bounds=SOME_FOUND),
    DPTableVectorizer(numeric="scaled"),
    DPTableVectorizer(categories=DIGITS),
    MissingIndicator(features="all"),
    MissingIndicator(features="all", sparse=True),
    PolynomialCountSketch(n_components=4),
    RBFSampler(gamma=0.5, n_components=4),
    SkewedChi2Sampler(n_components=4),
    Binarizer(),
    FunctionTransformer(),
    FunctionTransformer(np.sqrt),
    FunctionTransformer(np.isnan),
    FunctionTransformer(partial(np.add, 1.0)),
    Normalizer(),
    TfidfTransformer(use_idf=False),
    PolynomialFeatures(2),
    SplineTransformer(knots=np.linspace(0, 1, 4)[:, None].repeat(3, 1)),
    SplineTransformer(knots=np.linspace(0, 1, 4)[:, None].repeat(3, 1), sparse_output=True),
    GaussianRandomProjection(2),
    SparseRandomProjection(2),
    "passthrough",
    "drop",
]


OF_NUMBERS = completed(LISTED, CENTRAL_TRANSFORMERS, bounds=BY_COLUMN)


OF_WORDS = [
    DPOneHotEncoder(categories=WORD_LISTS),
    DPOneHotEncoder(categories=dict(enumerate(WORD_LISTS)), other="rest"),
    DPTargetEncoder(categories=WORD_LISTS),
    DPTargetEncoder(categories=["no", "yes"], classes=[0, 1, 2]),
    DPHistogramTransformer(categories=WORD_LISTS, bounds="auto"),
    DPHistogramTransformer(categories=WORD_LISTS, interactions=[(0, 2)]),
    DPHistogramTransformer(categories=WORD_LISTS, encode="ordinal"),
    DPSimpleImputer(strategy="most_frequent", categories=WORD_LISTS),
    DPSimpleImputer(strategy="constant", fill_value="?", add_indicator=True),
    DPTableVectorizer(categories=WORD_LISTS),
    DPTableVectorizer(categories=WORD_LISTS, numeric="scaled"),
    OneHotEncoder(categories=WORD_LISTS, handle_unknown="ignore"),
    OneHotEncoder(
        categories=WORD_LISTS, handle_unknown="ignore", sparse_output=False, drop="first"
    ),
    OrdinalEncoder(categories=WORD_LISTS, handle_unknown="use_encoded_value", unknown_value=-1),
    SimpleImputer(strategy="constant", fill_value="?", keep_empty_features=True),
    "passthrough",
]


# What they make is found: a width must not be stated.
FOUND = [
    (DPOneHotEncoder(delta=1e-6), NUMBERS.round(1)),
    (DPOneHotEncoder(categories=DIGITS, min_frequency=5), NUMBERS.round(1)),
    (DPOneHotEncoder(categories={0: [0.0], 1: [1.0], 2: "auto"}, delta=1e-6), NUMBERS.round(1)),
    (DPKBinsDiscretizer(bounds=(0, 1)), NUMBERS),
    (DPHistogramTransformer(bounds=(0, 1)), NUMBERS),
    (DPTableVectorizer(bounds=(0, 1)), NUMBERS),
    (DPTableVectorizer(numeric="scaled"), WORDS),
]


def frame(table):
    return pd.DataFrame(table, columns=NAMES)


CONTAINERS = {
    "array": np.asarray,
    "single precision": lambda table: table.astype(np.float32),
    "whole numbers": lambda table: table.astype(np.int64),
    "objects": lambda table: table.astype(object),
    "pandas": frame,
    "pandas objects": lambda table: frame(table.astype(object)),
    "polars": lambda table: pl.DataFrame(table, schema=NAMES),
    "category": lambda table: frame(table).astype("category"),
    "sparse": sp.csr_array,
}


# What a column of another type is: a label that is found.
NUMBERS_BY_TYPE = ("array", "single precision", "whole numbers", "objects", "pandas", "polars")


FINDS_LABELS = str(DPTableVectorizer(numeric="scaled"))


OUTPUTS = ("default", "pandas", "polars")


def numbers_of(made):
    return np.asarray(made.toarray() if sp.issparse(made) else made)


def check(estimator, X, y, output="default"):
    """Compare what is stated with what is made; return what is stated."""
    step = clone(estimator) if hasattr(estimator, "fit") else estimator
    if output != "default":
        step.set_output(transform=output)
    if step_kind(step) == "learns":
        # A frame of words is refused: its types follow from its cells.
        assert output != "default" and isinstance(step, DPSimpleImputer)
        return None
    form = replace(form_of_table(X), n_rows=N, classes=np.unique(y))
    stated = output_form(step, form)
    if not hasattr(step, "fit"):
        made = X if step == "passthrough" else None
    else:
        try:
            made = step.fit(X, y).transform(X)
        except (ValueError, TypeError, NotImplementedError):
            return None
    if made is None:
        assert stated.n_columns == 0
        return stated
    found = form_of_table(made)
    for name in ("n_columns", "names", "kinds", "is_frame", "is_sparse"):
        said = getattr(stated, name)
        if name == "kinds" and said is not None:
            # That cells are words, or of several kinds, is more than a container says.
            said = tuple("cells" if kind in ("text", "mixed") else kind for kind in said)
        assert said is None or said == getattr(found, name), (name, said, getattr(found, name))
    if stated.holds_numbers:
        assert np.asarray(numbers_of(made)).dtype.kind in "fiu"
    return stated


@pytest.mark.quick_cases(every=27)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_what_is_stated_of_an_output_is_what_a_fit_makes(container, output):
    tried = 0
    for estimators, table in ((OF_NUMBERS, NUMBERS), (OF_WORDS, WORDS)):
        if table is WORDS and container in ("single precision", "whole numbers", "sparse"):
            continue
        for estimator in estimators:
            is_of_skdp = type(estimator).__module__.startswith("skdp")
            if output != "default" and not is_of_skdp:
                continue
            if str(estimator) == FINDS_LABELS and container not in NUMBERS_BY_TYPE:
                continue
            for y in (TARGETS, Y3) if isinstance(estimator, DPTargetEncoder) else (TARGETS,):
                stated = check(estimator, CONTAINERS[container](table), y, output)
                if stated is None:
                    continue
                tried += 1
                # What is public of a table of numbers or words tells everything.
                assert stated.n_columns is not None, estimator
                if output != "default" and is_of_skdp and stated.holds_numbers:
                    assert stated.names is not None, estimator
                is_known = hasattr(estimator, "fit") and is_of_skdp
                if is_known and not isinstance(estimator, DPSimpleImputer):
                    assert stated.holds_numbers and stated.is_sparse is not None, estimator
    assert tried >= (2 if container == "sparse" else 40 if output == "default" else 30)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("estimator", "X"), FOUND, ids=str)
def test_what_is_found_is_not_stated(estimator, X):
    stated = check(estimator, frame(X) if X is WORDS else X, TARGETS)
    assert stated.n_columns is None and stated.names is None
    assert stated.holds_numbers and stated.is_sparse is not None


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_of_a_frozen_step_the_output_is_known(output):
    for estimator in (DPOneHotEncoder(delta=1e-6), DPStandardScaler(bounds=(0, 1))):
        if output == "pandas" and isinstance(estimator, DPOneHotEncoder):
            estimator.set_params(sparse_output=False)
        fitted = clone(estimator).set_output(transform=output).fit(np.round(NUMBERS, 1), TARGETS)
        made = form_of_table(fitted.transform(NUMBERS))
        stated = output_form(FrozenEstimator(fitted), form_of_table(NUMBERS))
        for name in ("n_columns", "names", "kinds", "is_frame", "is_sparse"):
            assert getattr(stated, name) == getattr(made, name)


def test_every_transformer_is_compared():
    compared = {type(each) for each in (*OF_NUMBERS, *OF_WORDS)}
    kinds = [
        kind
        for kind in (getattr(skdp, name) for name in skdp.__all__)
        if hasattr(kind, "transform")
    ]
    ours = {kind for kind in kinds if not issubclass(kind, MetaEstimatorMixin)}
    # What it charges is its transform: no plan holds it.
    assert ours - compared == {skdp.RandomizedResponseTransformer}
    names = {kind.__name__ for kind in compared}
    accepted = {
        path.rpartition(".")[2]
        for path, entry in KNOWN_STEPS.items()
        if path.startswith("sklearn.") and entry.kind in ("stateless", "declared")
    }
    # They read texts, and no table.
    of_text = {"CountVectorizer", "HashingVectorizer", "TfidfVectorizer"}
    assert accepted - names == {"FeatureHasher", *of_text}


OF_SKDP = [
    kind
    for name in skdp.__all__
    if isinstance(kind := getattr(skdp, name), type) and hasattr(kind, "_output_form")
]


@pytest.mark.parametrize("kind", OF_SKDP, ids=lambda kind: kind.__name__)
def test_no_transformer_fails_to_state_its_output(kind):
    """What `output_form` would hide: an error that no wrong parameter has caused."""
    tables = [pd.DataFrame(NUMBERS, columns=NAMES), NUMBERS]
    tables += [pd.DataFrame({"p": NUMBERS[:, 0], "s": WORDS[:, 0]})] * hasattr(kind(), "categories")
    for table in tables:
        form = form_of_table(table)
        made = kind()._output_form(form)
        assert made.is_sparse is not None and made.is_frame is False


# Candidates of random searches.


FOLDS = KFold(3, shuffle=True, random_state=0)


def classifier(accountant, **params):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **params)


@pytest.mark.parametrize("grid", ["a part of a grid", "a distribution"])
def test_a_random_search_may_never_draw_a_wrong_candidate(grid):
    """A grid is refused only if no combination of its listed values has all parameters."""
    accountant = PrivacyAccountant(100.0, 1e-2)
    other = DPLinearSVC(0.1, data_norm=2.0, accountant=accountant)
    mechanisms = {"a part of a grid": ["output"], "a distribution": uniform()}[grid]
    grids = {"model": [other, classifier(accountant)], "model__mechanism": mechanisms}
    tool = RandomizedSearchCV(
        Pipeline([("model", classifier(accountant))]), grids, n_iter=1, cv=FOLDS, refit=False
    )
    check_members(tool)
