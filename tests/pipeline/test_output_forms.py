"""What a transformer states of its output before a fit is what its fit makes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import skdp
from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
)
from skdp.pipeline import step_kind
from skdp.pipeline._forms import form_of_table, output_form
from tests._estimators import BOUNDED_TRANSFORMERS, CENTRAL_TRANSFORMERS, completed
from tests._private import KNOWN_STEPS

N = 400
RNG = np.random.default_rng(0)
NUMBERS = RNG.uniform(size=(N, 3)).round(2)
WORDS = RNG.choice(["no", "yes"], size=(N, 3)).astype(object)
NAMES = ["p", "q", "r"]
Y = np.arange(N) % 2
Y3 = np.arange(N) % 3

BY_COLUMN = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
SOME_FOUND = {0: (0, 1), 1: (0, 1), 2: "auto"}
LISTS = [["no", "yes"], ["yes", "so"], ["no", "yes", "so"]]
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
    DPOneHotEncoder(categories=LISTS),
    DPOneHotEncoder(categories=dict(enumerate(LISTS)), other="rest"),
    DPTargetEncoder(categories=LISTS),
    DPTargetEncoder(categories=["no", "yes"], classes=[0, 1, 2]),
    DPHistogramTransformer(categories=LISTS, bounds="auto"),
    DPHistogramTransformer(categories=LISTS, interactions=[(0, 2)]),
    DPHistogramTransformer(categories=LISTS, encode="ordinal"),
    DPSimpleImputer(strategy="most_frequent", categories=LISTS),
    DPSimpleImputer(strategy="constant", fill_value="?", add_indicator=True),
    DPTableVectorizer(categories=LISTS),
    DPTableVectorizer(categories=LISTS, numeric="scaled"),
    OneHotEncoder(categories=LISTS, handle_unknown="ignore"),
    OneHotEncoder(categories=LISTS, handle_unknown="ignore", sparse_output=False, drop="first"),
    OrdinalEncoder(categories=LISTS, handle_unknown="use_encoded_value", unknown_value=-1),
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
            for y in (Y, Y3) if isinstance(estimator, DPTargetEncoder) else (Y,):
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
    stated = check(estimator, frame(X) if X is WORDS else X, Y)
    assert stated.n_columns is None and stated.names is None
    assert stated.holds_numbers and stated.is_sparse is not None


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_of_a_frozen_step_the_output_is_known(output):
    for estimator in (DPOneHotEncoder(delta=1e-6), DPStandardScaler(bounds=(0, 1))):
        if output == "pandas" and isinstance(estimator, DPOneHotEncoder):
            estimator.set_params(sparse_output=False)
        fitted = clone(estimator).set_output(transform=output).fit(np.round(NUMBERS, 1), Y)
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
    assert accepted - names == {"FeatureHasher", "HashingVectorizer"}


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
