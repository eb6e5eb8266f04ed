import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from skdp._data._row_wise import (
    row_combinations,
    row_distances,
    row_norms,
    row_products,
    row_softmax,
    row_sums,
)
from skdp.base import clip_rows

HEIGHTS = (1, 2, 3, 5, 4096)
# Sums of eight numbers or fewer are added in one order, whatever the layout.
WIDTHS = (1, 2, 3, 9, 20, 300, 9000)
TYPES = (np.float64, np.float32, np.float16, np.int64)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    # What a slice of a table leaves: no dimension is contiguous.
    "rows of F": lambda X: np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
    "columns of C": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def vectors(n_columns, n_vectors=3):
    return np.random.default_rng(1).normal(size=(n_vectors, n_columns))


FUNCTIONS = {
    "sums": row_sums,
    "norms": row_norms,
    "softmax": lambda X: row_softmax(X / 8),
    "products": lambda X: row_products(X, vectors(X.shape[1])),
    "combinations": lambda X: row_combinations(X[:, :20], vectors(30, min(X.shape[1], 20))),
    "distances": lambda X: row_distances(X, vectors(X.shape[1])),
    "clipped": lambda X: clip_rows(X, 1.0),
}


def rows_of(n_rows, n_columns, dtype):
    """Some rows, repeated; whole numbers too are rounded once they are squared and summed."""
    rng = np.random.default_rng(n_columns)
    distinct = (1.5e8 if dtype is np.int64 else 1.0) * rng.normal(size=(7, n_columns))
    return np.resize(distinct.astype(dtype), (n_rows, n_columns))


def alone(function, X):
    """What a function returns for the first and the last rows, each in a table of its own."""
    return np.concatenate([function(X[i : i + 1].copy()) for i in edges(X)])


def cut_off(function, X):
    """The same for views of the table, which keep its strides."""
    return np.concatenate([function(X[i : i + 1]) for i in edges(X)])


def edges(X):
    """The numbers of the first and of the last rows: a kernel may treat these in another way."""
    return sorted({*range(min(8, len(X))), *range(max(len(X) - 8, 0), len(X))})


def cases():
    """Yield a height, a width and a type; the largest tables of each kind would fill memory."""
    for n_rows, n_columns, dtype in itertools.product(HEIGHTS, WIDTHS, TYPES):
        yield (100 if (n_rows, n_columns) == (4096, 9000) else n_rows), n_columns, dtype


@pytest.mark.quick_cases(one_per=lambda name, layout: (name, layout == "F"))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_alone_has_the_value_that_it_has_among_others(name, layout):
    function, lay_out = FUNCTIONS[name], LAYOUTS[layout]
    for case in cases():
        rows = rows_of(*case)
        X = lay_out(rows)
        among = function(X)[edges(X)]
        np.testing.assert_array_equal(alone(function, X), among, err_msg=str(case))
        np.testing.assert_array_equal(cut_off(function, X), among, err_msg=str(case))
        # Nor does the layout say anything.
        np.testing.assert_array_equal(function(rows[:5]), function(X[:5]), err_msg=str(case))


@pytest.mark.parametrize("n_columns", WIDTHS)
def test_a_sparse_row_alone(n_columns):
    X = csr_array(np.where(np.random.default_rng(0).random((50, n_columns)) < 0.3, 0.1, 0.0))
    for function in (row_norms, FUNCTIONS["products"]):
        among = function(X)
        for i in range(50):
            np.testing.assert_array_equal(function(X[[i]])[0], among[i])


@pytest.mark.parametrize("name", ["norms", "products", "combinations", "distances", "softmax"])
def test_values(name):
    X, V = np.random.default_rng(0).normal(size=(6, 9)), vectors(9)
    expected = {
        "norms": np.linalg.norm(X, axis=1),
        "products": X @ V.T,
        "combinations": X @ vectors(30, 9),
        "distances": np.linalg.norm(X[:, None] - V, axis=2),
        "softmax": np.exp(X / 8) / np.exp(X / 8).sum(axis=1, keepdims=True),
    }[name]
    np.testing.assert_allclose(FUNCTIONS[name](X), expected, rtol=1e-13)


def products_of_matrices(X):
    """Norms as they must not be computed: as products of matrices."""
    return np.sqrt(np.matmul(X[:, np.newaxis, :], X[:, :, np.newaxis])[:, 0, 0])


@pytest.mark.parametrize(
    "norms",
    [
        products_of_matrices,
        lambda X: np.sqrt((X * X).sum(axis=1)),
        lambda X: X @ np.ones(X.shape[1]),
    ],
)
def test_other_ways_are_told_apart(norms):
    """A product of matrices and a sum in another order: the test above can fail."""
    different = []
    for n_rows, n_columns in itertools.product((3, 5, 103), (9, 20, 300)):
        X = np.asfortranarray(rows_of(n_rows, n_columns, np.float64))
        different.append(np.any(alone(norms, X) != norms(X)[edges(X)]))
    assert any(different)


@pytest.mark.parametrize("n_columns", [1, 3, 100, 8193, 10_000, 12_289])
def test_norms_of_rows_are_those_of_each_row_alone(n_columns):
    """To the last bit: what one row is cut to must not tell how many others were read with it."""
    X = np.random.default_rng(n_columns).normal(size=(23, n_columns))
    norms = row_norms(X)
    np.testing.assert_allclose(norms, np.linalg.norm(X, axis=1))
    for height in (1, 2, 3, 22):
        for start in range(0, 23 - height, 3):
            rows = slice(start, start + height)
            np.testing.assert_array_equal(row_norms(X[rows]), norms[rows])
            np.testing.assert_array_equal(clip_rows(X[rows], 1.0), clip_rows(X, 1.0)[rows])
