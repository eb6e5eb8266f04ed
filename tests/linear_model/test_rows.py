import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from skdp import ChunkedArray
from tests._private import BoundedRows, max_additions, max_bounded_additions, read_block


def exact_squared_norm(row, factor):
    return sum((Fraction(v) * Fraction(factor)) ** 2 for v in row.tolist())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1.0 + 1e-15, 1e3, 1e150])
def test_exact_norms_never_exceed_the_bound(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
    rows = BoundedRows(X, 1.0, 0.0)
    for row, factor in zip(X, rows.row_args[0], strict=True):
        assert exact_squared_norm(row, factor) <= 1


def test_rows_inside_the_bound_keep_their_length():
    X = np.random.default_rng(0).normal(size=(50, 3)) * 0.1
    assert (BoundedRows(X, 1.0, 0.0).row_args[0] == 1.0).all()
    X = np.random.default_rng(0).normal(size=(50, 3)) * 100.0
    factor = BoundedRows(X, 1.0, 0.0).row_args[0]
    np.testing.assert_allclose(np.linalg.norm(X, axis=1) * factor, 1.0, rtol=1e-13)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 1000])
def test_blocks_give_what_whole_tables_give(n_rows, monkeypatch):
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    rng = np.random.default_rng(0)
    X, w, r = rng.normal(size=(n_rows, 4)), rng.normal(size=(3, 5)), rng.normal(size=(n_rows, 3))
    rows = BoundedRows(X, 1.0, 0.5)
    whole = np.column_stack([X * rows.row_args[0][:, None], np.full(n_rows, 0.5)])
    scores = np.vstack([rows[block].scores(w) for block in rows.blocks()])
    np.testing.assert_allclose(scores, whole @ w.T, atol=1e-13)
    total = sum(rows[block].weighted_sum(r[block]) for block in rows.blocks())
    np.testing.assert_allclose(total, r.T @ whole, atol=1e-11)
    gram, h = np.zeros((5, 5)), rng.uniform(size=n_rows)
    for block in rows.blocks():
        rows[block].add_weighted_gram(h[block], gram)
    np.testing.assert_allclose(gram, (whole * h[:, None]).T @ whole, atol=1e-11)


def sparse_table(n=500, d=12, density=0.3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X[3] = 0.0
    return X


def with_64_bit_indices(X):
    S = csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


def with_split_entries(X):
    """Return X in CSR with each entry in two parts of which one is longer than the row."""
    S = csr_array(X)
    data = np.column_stack([3.0 * S.data, -2.0 * S.data]).ravel()
    return csr_array((data, np.repeat(S.indices, 2), 2 * S.indptr), shape=X.shape)


CONTAINERS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "CSR array": csr_array,
    "CSR matrix": csr_matrix,
    "64-bit indices": with_64_bit_indices,
    "split entries": with_split_entries,
    "chunks": lambda X: ChunkedArray([X[:99], X[99:100], X[100:]]),
}


@pytest.mark.parametrize("density", [0.02, 0.3])
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_what_a_table_gives(container, constant, density, monkeypatch):
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    X, rng = sparse_table(density=density), np.random.default_rng(1)
    rows = BoundedRows(CONTAINERS[container](X), 1.0, constant)
    factor = np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(X, axis=1), 1e-300))
    np.testing.assert_allclose(rows.row_args[0], factor, rtol=1e-12)
    whole = X * factor[:, None]
    if constant:
        whole = np.column_stack([whole, np.full(500, constant)])
    p = whole.shape[1]
    w, W, r, R = (rng.normal(size=shape) for shape in (p, (3, p), 500, (500, 3)))
    for weights, coefficients in ((w, r), (W, R)):
        scores = np.concatenate([rows[block].scores(weights) for block in rows.blocks()])
        np.testing.assert_allclose(scores, whole @ weights.T, atol=1e-12)
        total = sum(rows[block].weighted_sum(coefficients[block]) for block in rows.blocks())
        np.testing.assert_allclose(total, coefficients.T @ whole, atol=1e-11)
    gram, h = np.zeros((p, p)), rng.uniform(size=500)
    for block in rows.blocks():
        rows[block].add_weighted_gram(h[block], gram)
    expected = (whole * h[:, None]).T @ whole
    np.testing.assert_allclose(gram, expected, atol=1e-11)


def test_exact_norms_of_sparse_rows_never_exceed_the_bound():
    X = sparse_table()
    for S in (csr_array(X), with_split_entries(X)):
        rows = BoundedRows(S, 1.0, 0.0)
        for row, factor in zip(rows_of(S), rows.row_args[0], strict=True):
            assert exact_squared_norm(row, factor) <= 1


def rows_of(S):
    return np.vstack([read_block(S, slice(i, i + 1)).toarray() for i in range(S.shape[0])])


def test_sparse_rows_whose_norm_overflows_count_as_zero():
    X = sparse_table()
    X[:7, 2] = 1e200
    rows = BoundedRows(csr_array(X), 1.0, 0.0)
    assert (rows.row_args[0][:7] == 0.0).all()
    (block,) = rows.blocks()
    assert np.isfinite(rows[block].scores(np.full(12, 1e200))).all()
    np.testing.assert_array_equal(rows[block].scores(np.full(12, 1e200))[:7], 0.0)


@pytest.mark.parametrize("n_rows", [10, 5000, 200_000])
@pytest.mark.parametrize("n_columns", [3, 1000, 10_000])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_add_no_more_often_than_the_bound_counts(is_sparse, n_rows, n_columns):
    table = csr_array((n_rows, n_columns)) if is_sparse else np.broadcast_to(0.0, (64, n_columns))
    rows = BoundedRows(table, 1.0, 0.0)
    assert max_additions(rows.block_size) <= max_bounded_additions(n_columns)


def test_a_sparse_table_is_never_dense_as_a_whole():
    rng = np.random.default_rng(0)
    places = rng.integers(20_000, size=10_000), rng.integers(5000, size=10_000)
    S = csr_array((rng.normal(size=10_000), places), shape=(20_000, 5000))
    tracemalloc.start()
    rows, total = BoundedRows(S, 1.0, 0.3), 0.0
    for block in rows.blocks():
        total += rows[block].weighted_sum(rows[block].scores(np.ones(5001)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The table has 800 MB as an array.
    assert peak < 20e6
