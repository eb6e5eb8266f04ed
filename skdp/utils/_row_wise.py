"""Functions of the rows of a matrix whose result for a row depends on that row alone.

"Alone" means to the last bit: not on how many rows stand beside it, on the order of the matrix in
memory, on the size of the block it is read in or on the number of threads. Where the number of rows
is private (``unit="person"``, ``count="noisy"``) one person's rows would otherwise change a last
bit of other persons' rows, and a clip, a bin's edge, a threshold or the rounding of a share makes
a whole unit of it, for as many persons as there are.

Whatever is computed of a row before such a step comes from this module, or is made of

- ``+ - * /``, square roots, comparisons, minima, maxima and truncation of NumPy's, which IEEE 754
  rounds in one way;
- sums along the rows of C-ordered doubles. NumPy adds these pairwise, by the number of columns
  only. In another order it adds column by column, except where there is a single row: so sums of
  nine or more columns differ, and `row_sums` copies first;
- compiled loops that treat one row after another, as SciPy's sparse products, `cdist` and the
  functions of `scipy.special`;
- ``exp``, ``log`` and other such functions of NumPy on contiguous arrays only: for strided arrays
  NumPy may take another algorithm.

Products of matrices (``@``, ``dot``, ``einsum``) are none of these. BLAS multiplies several rows at
once and the remaining ones in another way; ``einsum`` sums by blocks of 8,192 values that may
span rows.
"""

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.utils import extmath

# NumPy's sums of more numbers have eight partial sums.
FEW_COLUMNS = 7
# A block of `row_combinations` stays in a processor's cache.
BLOCK_VALUES = 1 << 15


def row_sums(values):
    """Return the sums along the last axis, in double precision."""
    if 0 < values.shape[-1] <= FEW_COLUMNS:
        # One column after another, as NumPy adds so few: in any layout, and faster than row by row.
        sums = values[..., 0].astype(np.float64)
        for j in range(1, values.shape[-1]):
            sums += values[..., j]
        return sums
    # The conversion comes first: a sum that converts adds by buffers, whose ends may lie anywhere.
    return np.add.reduce(np.ascontiguousarray(values, dtype=np.float64), axis=-1)


def row_norms(X):
    """Return the L2 norms of the rows of an array or a CSR matrix, in double precision."""
    if issparse(X):
        return extmath.row_norms(X)
    return np.sqrt(row_sums(np.multiply(X, X, order="C", dtype=np.float64)))


def row_softmax(scores):
    """Return the softmax along the last axis."""
    return softmax(np.ascontiguousarray(scores, dtype=np.float64), axis=-1)


def row_products(X, vectors):
    """Return the products of the rows with each of some vectors.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
    vectors : ndarray of shape (n_vectors, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_vectors), float64
    """
    if issparse(X):
        return X @ vectors.T
    products = [row_sums(np.multiply(X, vector, order="C", dtype=np.float64)) for vector in vectors]
    return np.stack(products, axis=1)


def row_combinations(X, vectors):
    """Return, for each row, the sum of vectors times the row's values: ``X @ vectors``.

    The vectors are added one after another, so that this is fast where they are few and long, for
    which `row_products` would take a pass over the rows for each of their entries.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_vectors)
    vectors : ndarray of shape (n_vectors, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float64
    """
    sums = np.zeros((X.shape[0], vectors.shape[1]))
    size = max(1, BLOCK_VALUES // max(vectors.shape[1], 1))
    for start in range(0, len(sums), size):
        block = sums[start : start + size]
        for values, vector in zip(X[start : start + size].T, vectors, strict=True):
            block += values[:, np.newaxis] * vector
    return sums


def row_distances(X, points):
    """Return the Euclidean distances of the rows of an array to some points.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    points : ndarray of shape (n_points, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_points), float64
    """
    return cdist(np.ascontiguousarray(X, dtype=np.float64), points)
