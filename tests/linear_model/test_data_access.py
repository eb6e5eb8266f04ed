"""Every estimator of linear models gives one answer, whatever holds the rows."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csc_array, csr_array, csr_matrix
from sklearn.base import clone, is_classifier

from skdp import (
    ChunkedArray,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivacyAccountant,
)

ESTIMATORS = [
    DPLogisticRegression(C=0.1, random_state=0),
    DPLogisticRegression(C=0.1, classes=[0, 1, 2], random_state=0),
    DPLinearSVC(C=0.1, random_state=0),
    DPLinearRegression(target_bounds=(0, 1), random_state=0),
    DPRidge(target_bounds=(0, 1), fit_intercept=False, random_state=0),
    DPPoissonRegressor(alpha=0.1, target_bounds=(0, 1), random_state=0),
]


def make_table(n=400, d=6):
    """Return rows of values that float32 holds exactly, some zero, some rows long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    X = X.astype(np.float32).astype(np.float64)
    return X, (X[:, 0] > 0).astype(int)


def with_64_bit_indices(X):
    S = csr_matrix(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


CONTAINERS = {
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "data frame": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "CSR array": csr_array,
    "CSR matrix": csr_matrix,
    "CSR of float32": lambda X: csr_array(X.astype(np.float32)),
    "CSR of 64-bit indices": with_64_bit_indices,
    "CSC array": csc_array,
    "COO matrix": coo_matrix,
    "chunks": lambda X: ChunkedArray([X[:99], X[99:100].astype(np.float32), X[100:]]),
}


def published(model):
    return np.append(model.coef_.ravel(), model.intercept_)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore:.* holds numbers, and data_norm")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_one_seed_gives_one_answer_from_every_container(estimator, container):
    X, y = make_table()
    held = CONTAINERS[container](X)
    expected, model = clone(estimator).fit(X, y), clone(estimator).fit(held, y)
    # Sums in another order differ by rounding, which the grid of the noise can show.
    np.testing.assert_allclose(published(model), published(expected), rtol=1e-4, atol=1e-5)
    assert model.n_features_in_ == 6
    assert hasattr(model, "feature_names_in_") == (container == "data frame")
    np.testing.assert_allclose(model.predict(held), model.predict(X), atol=1e-12)
    assert model.score(held, y) == pytest.approx(model.score(X, y))
    if is_classifier(model):
        np.testing.assert_allclose(
            model.decision_function(held), model.decision_function(X), atol=1e-12
        )
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(held), model.predict_proba(X), atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_dask_array_is_fitted(estimator):
    da = pytest.importorskip("dask.array")
    X, y = make_table()
    lazy = da.from_array(X, chunks=(70, 4))
    model, expected = clone(estimator).fit(lazy, y), clone(estimator).fit(X, y)
    np.testing.assert_allclose(published(model), published(expected), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict(lazy), model.predict(X), atol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_bad_chunks_are_refused_and_not_charged(estimator):
    X, y = make_table()
    accountant = PrivacyAccountant(100.0, 0.1)
    model = clone(estimator).set_params(accountant=accountant)
    bad = X.copy()
    bad[399, 5] = np.nan
    for table, targets in ((bad, y), (X, y[:-1]), (X[:0], y[:0])):
        with pytest.raises(ValueError):
            model.fit(ChunkedArray([table[:200], table[200:]]), targets)
        assert not [name for name in vars(model) if name.endswith("_")]
    assert accountant.charges == []
    model.fit(ChunkedArray([X]), y)
    with pytest.raises(ValueError, match="5 features"):
        model.predict(ChunkedArray([X[:, :5]]))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_fitted_model_holds_no_table(estimator, tmp_path):
    X, y = make_table()
    np.save(tmp_path / "rows.npy", X)
    model = clone(estimator).fit(ChunkedArray([tmp_path / "rows.npy", X]), y.repeat(2))
    pickled = pickle.dumps(model)
    assert b"rows.npy" not in pickled and len(pickled) < 4000


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("number", [0, *range(2, len(ESTIMATORS))])
def test_a_mapped_table_is_never_held(number, tmp_path):
    check_what_is_held(ESTIMATORS[number], ("memmap", "files")[number % 2], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memmap", "files"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_mapped_table_is_never_held_of_either_kind(estimator, kind, tmp_path):
    check_what_is_held(estimator, kind, tmp_path)


def check_what_is_held(estimator, kind, tmp_path):
    """What is allocated while fitting and predicting stays below half of the table's 19 MB."""
    n, d, rng = 24_000, 200, np.random.default_rng(0)
    paths = [tmp_path / f"{part}.npy" for part in range(2)]
    for path in paths:
        half = rng.normal(size=(n // 2, d)).astype(np.float32)
        np.save(path, half / np.linalg.norm(half, axis=1, keepdims=True))
    if kind == "files":
        X = ChunkedArray(paths)
    else:
        X = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(n, d))
        X[: n // 2], X[n // 2 :] = np.load(paths[0]), np.load(paths[1])
    y = rng.integers(2, size=n)
    model = clone(estimator)
    tracemalloc.start()
    model.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Blocks of 4 MB, some vectors of n numbers a class, and the Hessian of 200 features.
    assert peak < 9.6e6
