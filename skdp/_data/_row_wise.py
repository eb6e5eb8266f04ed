"""Functions of the rows of a matrix; the result for a row depends only on that row.

The result must not depend, in any bit, on the number of other rows, on the memory layout of the
matrix, on the size of blocks or on the number of threads. If the number of rows is private
(``unit="person"``, ``count="noisy"``), the rows of one person could otherwise change the last bit
of other persons' rows. A clip, the edge of a bin, a threshold or the rounding of a weight could
turn this bit into a difference of 1 for every person.

Before such a step, the values of a row must be computed by this module, or by

- ``+ - * /``, square roots, comparisons, minima, maxima and truncation of NumPy, whose results
  IEEE 754 determines;
- sums along the rows of C-ordered doubles. NumPy adds these pairwise, in an order that depends only
  on the number of columns. In other layouts it adds column by column unless there is a single
  row, so sums of nine or more columns differ. `row_sums` therefore copies first;
- compiled loops over rows, such as SciPy's sparse products, `cdist` and `scipy.special`;
- NumPy's ``exp``, ``log`` and similar functions, only on contiguous arrays: for strided arrays,
  NumPy may use another algorithm.

Products of matrices (``@``, ``dot``, ``einsum``) do not qualify. BLAS multiplies several rows at
once and the remaining ones differently, and ``einsum`` sums blocks of 8,192 values that may span
rows.
"""

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.utils import extmath

# Number of columns up to which NumPy adds one number after another; longer sums have eight partial
# sums.
MAX_SEQUENTIAL_COLUMNS = 7
# Number of values of a block of `row_combinations`, which stays in a processor's cache.
BLOCK_VALUES = 1 << 15


def row_sums(values):
    """Return the sums along the last axis, in double precision."""
    if 0 < values.shape[-1] <= MAX_SEQUENTIAL_COLUMNS:
        # Columns are added one by one, which is NumPy's order for so few columns. This works for
        # any layout and is faster.
        sums = values[..., 0].astype(np.float64)
        for j in range(1, values.shape[-1]):
            sums += values[..., j]
        return sums
    # Convert first: a sum with conversion adds buffers, whose boundaries may be anywhere.
    return np.add.reduce(np.ascontiguousarray(values, dtype=np.float64), axis=-1)


def row_norms(X):
    """Return the L2 norms of the rows of an array or a CSR matrix.

    They are computed in double precision, except those of a CSR matrix of float32, which are
    float32.
    """
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
    """Return ``X @ vectors``: for each row, the sum of vectors times the row's values.

    `DPPCA.inverse_transform` needs it instead of ``@``, with which a row of the result could depend
    on the number of other rows (see the module). The vectors are added one after another, which is
    fast for few long vectors. `row_products` would need a pass over the rows for each entry of a
    vector.

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
    """Return the Euclidean distances from the rows of an array to some points.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    points : ndarray of shape (n_points, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_points), float64
    """
    return cdist(np.ascontiguousarray(X, dtype=np.float64), points)
