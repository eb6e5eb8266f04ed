"""Widths follow from parameters; they are those that transformers make."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
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
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp.accounting import ApproximateDP, PureDP
from skdp.base import TableShape, guarantee_of
from skdp.mechanisms import GaussianMechanism
from skdp.pipeline import check_pipeline, plan_pipeline, planned_charge, split_budget
from skdp.pipeline._forms import TableForm, form_of_table, output_form
from skdp.pipeline._kinds import sparsity
from skdp.pipeline._steps import find_steps
from tests._estimators import ESTIMATORS

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
