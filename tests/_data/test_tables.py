from enum import Enum, IntEnum

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator, clone

from skdp import (
    DPPCA,
    ChunkedArray,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp._data._containers import as_cells
from skdp._data._parts import read_block, row_blocks
from skdp._data._tables import (
    linear_scores,
    read_numeric_target,
    read_table,
    read_target,
    target_array,
)
from tests._private import check_classes, id_codes


def table(n=300, d=4):
    return np.random.default_rng(0).normal(size=(n, d))


def chunked(X, at=130):
    return ChunkedArray([X[:at], X[at:]])


def test_chunked_tables_are_checked_as_arrays_are():
    X, one, other = table(), BaseEstimator(), BaseEstimator()
    y = np.arange(300)
    checked = read_table(one, chunked(X))
    assert isinstance(checked, ChunkedArray) and one.n_features_in_ == 4
    target = read_target(one, y[:, None].ravel().tolist(), 300)
    np.testing.assert_array_equal(target, read_target(other, y, len(read_table(other, X))))
    assert read_table(one, chunked(X), reset=False).shape == (300, 4)
    assert not hasattr(one, "feature_names_in_")


def test_names_of_an_earlier_fit_are_forgotten_or_missed():
    X, estimator = table(), BaseEstimator()
    read_table(estimator, pd.DataFrame(X, columns=list("abcd")))
    assert list(estimator.feature_names_in_) == list("abcd")
    with pytest.warns(UserWarning, match="feature names"):
        read_table(estimator, chunked(X), reset=False)
    read_table(estimator, chunked(X))
    assert not hasattr(estimator, "feature_names_in_")


def bad_value(value):
    X = table()
    X[299, 3] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (bad_value(np.nan), np.zeros(300), "NaN"),
        (bad_value(np.inf), np.zeros(300), "infinity"),
        (table(), np.zeros(299), "rows, but X has"),
        (table(), np.full(300, np.nan), "NaN"),
        (table(), np.zeros((300, 2)), "1d"),
        (table(), None, "requires y"),
        (table()[:0], np.zeros(0), "0 sample"),
        (table()[:, :0], np.zeros(300), "0 feature"),
    ],
)
def test_what_is_refused_of_an_array_is_refused_of_chunks(X, y, words):
    class NeedsTarget(BaseEstimator):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.required = True
            return tags

    for container in (X, chunked(X)):
        with pytest.raises(ValueError, match=words):
            read = read_table(NeedsTarget(), container, accept_sparse=True)
            read_target(NeedsTarget(), y, read.shape[0])


def test_another_width_is_refused_when_predicting():
    estimator = BaseEstimator()
    read_table(estimator, chunked(table()))
    with pytest.raises(ValueError, match="3 features"):
        read_table(estimator, chunked(table(d=3)), reset=False)


def test_numbers_as_objects_become_numbers():
    y = np.arange(300).astype(object)
    assert read_numeric_target(BaseEstimator(), y, 300).dtype == np.float64


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_blocks_of_csr_are_those_of_the_array(index):
    X = table() * (np.random.default_rng(1).random((300, 4)) < 0.3)
    S = csr_array(X.astype(np.float32))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    for rows in row_blocks(S, 7):
        block = read_block(S, rows)
        assert block.dtype == np.float64
        np.testing.assert_array_equal(block.toarray(), X.astype(np.float32)[rows])


def test_entries_of_one_place_are_summed_and_the_table_is_left_alone():
    S = csr_array((np.array([1.0, 2.0, 5.0, 7.0]), np.array([1, 1, 2, 0]), np.array([0, 3, 4])))
    # A stale note of a canonical format is not believed.
    S.has_canonical_format = True
    data, indices = S.data.copy(), S.indices.copy()
    block = read_block(S, slice(0, 2))
    assert block.nnz == 3
    np.testing.assert_array_equal(block.toarray(), [[0, 3, 5], [7, 0, 0]])
    block.data[:] = 0.0
    np.testing.assert_array_equal(S.data, data)
    np.testing.assert_array_equal(S.indices, indices)


def test_numbers_beyond_double_precision_are_the_largest():
    largest = np.finfo(np.longdouble).max
    data = np.array([largest, -largest, 1.0], dtype=np.longdouble)
    X = csr_array((data, np.array([0, 0, 1]), np.array([0, 2, 3])))
    X = read_table(DPPCA(), X, accept_sparse=True)
    np.testing.assert_array_equal(read_block(X, slice(0, 2)).toarray(), [[0, 0], [0, 1]])
    assert np.isfinite(DPPCA().fit(X).components_).all()
    dense = read_table(DPPCA(), np.array([[largest], [-largest]]))
    assert dense.dtype == np.float64 and (np.abs(dense) == np.finfo(np.float64).max).all()


@pytest.mark.parametrize(
    "estimator",
    [
        DPLinearRegression(target_bounds=(0, 1)),
        DPRidge(target_bounds=(0, 1)),
        DPPoissonRegressor(target_bounds=(0, 1)),
        DPSGDRegressor(target_bounds=(0, 1)),
        DPTargetEncoder(categories=[0, 1], target_bounds=(0, 1)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_target_is_refused_before_the_charge(estimator, missing):
    y = np.full(60, 0.5, dtype=object)
    y[7] = missing
    accountant = PrivacyAccountant(1e6, 0.5)
    with pytest.raises((ValueError, TypeError)):
        clone(estimator).set_params(accountant=accountant).fit(table(60), y)
    assert accountant.charges == []


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, csr_array, chunked])
def test_scores_are_products(container, monkeypatch):
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    X, rng = table(), np.random.default_rng(2)
    coef, intercept = rng.normal(size=(3, 4)), rng.normal(size=3)
    scores = linear_scores(container(X), coef, intercept)
    np.testing.assert_allclose(scores, X @ coef.T + intercept, atol=1e-13)


def test_other_sparse_formats_become_csr():
    checked = read_table(BaseEstimator(), coo_array(table()), accept_sparse=True)
    assert checked.format == "csr"


class AnyLabel:
    """A label that says that it is equal to each, and sorts behind all."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(0)

    def __lt__(self, other):
        return False

    def __gt__(self, other):
        return True


@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(classes=[0, 1, 2]),
        DPLinearSVC(classes=[0, 1, 2]),
        DPSGDClassifier(classes=[0, 1, 2]),
        DPTargetEncoder(categories=[0, 1], classes=[0, 1, 2]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_label_that_is_none_of_the_declared_is_refused_before_the_charge(estimator):
    y = np.array([0, 1, 2] * 20, dtype=object)
    for odd in (AnyLabel(), object(), [1], 1j, pd.NA, "1", 3):
        y[0] = odd
        accountant = PrivacyAccountant(1e6, 0.5)
        with pytest.raises((TypeError, ValueError)):
            clone(estimator).set_params(accountant=accountant).fit(table(60), y)
        assert accountant.charges == []


def test_the_label_set_does_not_hold_a_label_of_one_row():
    class Secret(str):
        pass

    for odd in (np.str_("a"), Secret("a")):
        classes, codes = check_classes(None, np.array([odd, "b", "a", odd], dtype=object))
        assert [type(label) for label in classes] == [str, str] and codes.tolist() == [0, 1, 0, 0]


class Answer(str, Enum):  # noqa: UP042
    NO = "no"
    YES = "yes"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@pytest.mark.parametrize("kind", [Answer, Level])
def test_members_of_an_enum_are_their_values(kind):
    """Numpy takes the names of words, cut to the length of the longest value."""
    y = target_array([*kind] * 3)
    assert y.tolist() == [member.value for member in kind] * 3
    assert set(map(type, y.tolist())) == {type(y[0].item())}
    cells = as_cells([[member, 1.0] for member in kind])
    assert cells.shape == (2, 2) and id_codes(cells[:, 0]).tolist() == [0, 1]


def test_the_label_set_does_not_tell_the_sign_of_one_zero():
    for odd in range(4):
        y = np.array([0.0, 1.0, 0.0, 1.0])
        y[odd] *= -1.0 if y[odd] == 0.0 else 1.0
        classes, codes = check_classes(None, y)
        assert not np.signbit(classes).any() and codes.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("column", [-1, 4, 100])
@pytest.mark.parametrize("kind", [csr_array, coo_array])
def test_an_entry_outside_of_its_row_is_refused(kind, column):
    X = kind(table())
    columns = X.indices if kind is csr_array else X.col
    columns[7] = column
    with pytest.raises(ValueError, match="ind(ices|ex values) must be"):
        read_table(BaseEstimator(), X, accept_sparse=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_rows_scores_do_not_depend_on_how_many_rows_there_are(n_outputs, order):
    rng = np.random.default_rng(0)
    row, coef = rng.normal(size=33) * 10.0 ** rng.integers(0, 12, 33), rng.normal(size=(3, 33))
    intercept = np.zeros(n_outputs)
    tables = [np.asarray(np.tile(row, (n, 1)), order=order) for n in range(1, 18)]
    scores = [linear_scores(X, coef[:n_outputs], intercept) for X in tables]
    assert all((each == scores[0]).all() for each in scores)
