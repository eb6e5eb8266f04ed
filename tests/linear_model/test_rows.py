from fractions import Fraction

import numpy as np
import pytest

from skdp.linear_model._rows import BoundedRows


def exact_squared_norm(row, factor):
    return sum((Fraction(v) * Fraction(factor)) ** 2 for v in row.tolist())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1.0 + 1e-15, 1e3, 1e150])
def test_exact_norms_never_exceed_the_bound(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
    rows = BoundedRows(X, 1.0, 0.0)
    for row, factor in zip(X, rows._factor, strict=True):
        assert exact_squared_norm(row, factor) <= 1


def test_rows_inside_the_bound_keep_their_length():
    X = np.random.default_rng(0).normal(size=(50, 3)) * 0.1
    assert (BoundedRows(X, 1.0, 0.0)._factor == 1.0).all()
    X = np.random.default_rng(0).normal(size=(50, 3)) * 100.0
    factor = BoundedRows(X, 1.0, 0.0)._factor
    np.testing.assert_allclose(np.linalg.norm(X, axis=1) * factor, 1.0, rtol=1e-13)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 1000])
def test_blocks_give_what_whole_tables_give(n_rows, monkeypatch):
    monkeypatch.setattr("skdp.utils._tables.BLOCK_BYTES", 1)
    rng = np.random.default_rng(0)
    X, w, r = rng.normal(size=(n_rows, 4)), rng.normal(size=(3, 5)), rng.normal(size=(n_rows, 3))
    rows = BoundedRows(X, 1.0, 0.5)
    whole = np.column_stack([X * rows._factor[:, None], np.full(n_rows, 0.5)])
    scores = np.vstack([rows.scores(block, w) for block in rows.blocks()])
    np.testing.assert_allclose(scores, whole @ w.T, atol=1e-13)
    total = sum(rows.weighted_sum(block, r[block]) for block in rows.blocks())
    np.testing.assert_allclose(total, r.T @ whole, atol=1e-11)
    gram, h = np.zeros((5, 5), order="F"), rng.uniform(size=n_rows)
    for block in rows.blocks():
        rows.add_weighted_gram(block, h[block], gram)
    np.testing.assert_allclose(np.triu(gram), np.triu((whole * h[:, None]).T @ whole), atol=1e-11)
