"""What all transformers have in common: bad input, frames, routing, and what an attacker sees."""

import numpy as np
import pytest
import sklearn
from sklearn import clone, config_context
from sklearn.base import TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from tests._estimators import ESTIMATORS

# It reads no names of columns from polars 2.
OLD_SKLEARN = sklearn.__version__.startswith("1.7")
WITHIN_BOUNDS = [
    kind
    for kind in dict.fromkeys(map(type, ESTIMATORS))
    if issubclass(kind, TransformerMixin)
    and hasattr(kind(), "bounds")
    # It takes words, and what is missing.
    and kind is not DPTableVectorizer
]
NUMERIC = [*(kind(bounds=(-1, 1)) for kind in WITHIN_BOUNDS), DPPCA()]
CATEGORICAL = [
    DPOneHotEncoder(categories=[0, 1], min_frequency=2, sparse_output=False),
    DPOneHotEncoder(delta=1e-6, sparse_output=False),
    DPTargetEncoder(categories=[0, 1]),
    DPSimpleImputer(strategy="most_frequent", categories=[0, 1]),
    DPHistogramTransformer(categories=[0, 1]),
]
y = np.arange(40) % 2


def table(n=40, d=3):
    return np.random.default_rng(0).integers(0, 2, size=(n, d)).astype(float)


def named(estimators):
    return pytest.mark.parametrize("transformer", estimators, ids=str)


def assert_refused(transformer, X, target=y):
    accountant = PrivacyAccountant(1e6, 0.5)
    transformer = clone(transformer).set_params(accountant=accountant)
    with pytest.raises(ValueError):
        transformer.fit(X, target)
    assert accountant.charges == []
    assert not [name for name in vars(transformer) if name.endswith("_")]


@named(NUMERIC)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_numbers_are_refused(transformer, value):
    X = table()
    X[3, 1] = value
    if isinstance(transformer, DPSimpleImputer) and np.isnan(value):
        assert np.isfinite(clone(transformer).fit_transform(X)).all()
    else:
        assert_refused(transformer, X)


@pytest.mark.filterwarnings("error")
@named(NUMERIC)
def test_huge_numbers_do_not_warn(transformer):
    X = np.where(np.arange(3000)[:, None] % 2, 1e308, -1e308) * np.ones(3)
    clone(transformer).fit(X, np.arange(3000) % 2)


@named(NUMERIC)
def test_tiny_numbers_raise_nothing_after_the_charge(transformer):
    X = np.full((40, 3), 5e-324)
    with np.errstate(all="raise"):
        transformer = clone(transformer).fit(X, y)
        transformed = transformer.transform(X)
        if hasattr(transformer, "inverse_transform"):
            transformer.inverse_transform(transformed)


@named(NUMERIC)
def test_words_in_the_place_of_numbers_are_refused(transformer):
    for rows in (3, slice(None)):
        X = table().astype(object)
        X[rows, 1] = "word"
        assert_refused(transformer, X)
    assert_refused(transformer, np.full((40, 2), "word"))


@pytest.mark.quick_cases(every=2)
@named(NUMERIC + CATEGORICAL)
@pytest.mark.parametrize("shape", [(40, 0), (0, 3), (40,)])
def test_tables_without_a_row_or_a_column_are_refused(transformer, shape):
    assert_refused(transformer, np.zeros(shape), y[: shape[0]])


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", WITHIN_BOUNDS)
@pytest.mark.parametrize(
    "bounds",
    [
        None,
        (np.nan, 1.0),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (0.0, [1.0, np.nan, 1.0]),
        (1.0, 0.0),
        (0.0, [1.0, 1.0]),
        (0.0,),
        "narrow",
    ],
)
def test_bounds_that_are_no_ranges_are_refused(kind, bounds):
    assert_refused(kind(bounds=bounds), table())


@named(NUMERIC + CATEGORICAL)
def test_one_row_is_fitted(transformer):
    X = table(n=1)
    if isinstance(transformer, DPTargetEncoder):
        transformer = clone(transformer).set_params(classes=[0, 1])
    fitted = clone(transformer).fit(X, y[:1])
    out = fitted.transform(X)
    out = out.toarray() if hasattr(out, "toarray") else out
    assert len(out) == 1 and np.isfinite(np.asarray(out, dtype=float)).all()


MANY = [
    DPMeanTransformer(),
    DPStandardScaler(),
    DPStandardScaler(bounds=(-1, 1)),
    DPSimpleImputer(),
    DPHistogramTransformer(edges="uniform", n_bins=2, bounds=(-1, 1)),
    DPKBinsDiscretizer(n_bins=2, strategy="uniform", encode="ordinal"),
]


@pytest.mark.thorough
@named(MANY + CATEGORICAL)
def test_ten_thousand_columns_are_fitted(transformer):
    X = np.zeros((2, 10_000))
    assert clone(transformer).fit(X, y[:2]).n_features_in_ == 10_000


@named(CATEGORICAL)
@pytest.mark.filterwarnings("ignore:the categories of column")
def test_mixed_categories_are_fitted_and_stay_apart(transformer):
    X = np.array([[1, "1", None if i % 2 else 0.5] for i in range(40)], dtype=object)
    transformer = clone(transformer)
    if transformer.categories is not None:
        transformer.set_params(categories=[1, "1", 0.5])
    if isinstance(transformer, DPHistogramTransformer):
        X[:, 2] = 1.0
    fitted = transformer.fit(X, y)
    fitted.transform(X)
    if isinstance(transformer, DPOneHotEncoder) and transformer.categories is not None:
        np.testing.assert_array_equal(fitted.categories_[0], np.array([1, "1", 0.5], object))


@named(CATEGORICAL)
@pytest.mark.parametrize("categories", [[], [0, 0], [[0, 1]], "ab", [0, np.nan], {0, 1}])
def test_categories_that_are_no_lists_of_labels_are_refused(transformer, categories):
    assert_refused(clone(transformer).set_params(categories=categories), table())


@pytest.mark.quick_cases(every=4)
@named(NUMERIC + CATEGORICAL)
def test_metadata_routing_changes_nothing(transformer):
    def outputs():
        one = clone(transformer).set_params(random_state=0)
        columns = ColumnTransformer([("some", one, [0, 2])], remainder="drop")
        for each in (one, make_pipeline(one), columns):
            out = clone(each).fit(table(), y).transform(table())
            yield out.toarray() if hasattr(out, "toarray") else out

    plain = list(outputs())
    with config_context(enable_metadata_routing=True):
        routed = list(outputs())
    for one, other in zip(plain, routed, strict=True):
        np.testing.assert_array_equal(one, other)


@named(NUMERIC + CATEGORICAL)
def test_polars_frames_are_read_and_returned(transformer):
    polars = pytest.importorskip("polars")
    X = table()
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    transformer = clone(transformer).set_params(random_state=0)
    if isinstance(transformer, DPHistogramTransformer | DPKBinsDiscretizer):
        transformer.set_params(encode="ordinal")
    expected = transformer.fit(X, y).transform(X)
    fitted = clone(transformer).set_output(transform="polars").fit(frame, y)
    out = fitted.transform(frame)
    assert isinstance(out, polars.DataFrame)
    assert list(out.columns) == list(fitted.get_feature_names_out())
    if not OLD_SKLEARN:
        assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert out.width == expected.shape[1]
    if out.width:
        np.testing.assert_array_equal(out.to_numpy(), expected)


@named(CATEGORICAL)
def test_polars_frames_of_words_are_read(transformer):
    polars = pytest.importorskip("polars")
    X = np.where(table() > 0, "yes", "no").astype(object)
    transformer = clone(transformer).set_params(random_state=0)
    if transformer.categories is not None:
        transformer.set_params(categories=["no", "yes"])
    if isinstance(transformer, DPHistogramTransformer):
        transformer.set_params(encode="ordinal")
    frame = polars.DataFrame({name: X[:, j].tolist() for j, name in enumerate("abc")})
    one, other = (clone(transformer).fit(t, y).transform(t) for t in (X, frame))
    np.testing.assert_array_equal(one, other)
