"""Symmetric matrices as vectors whose L2 norm is the matrix's Frobenius norm."""

import math

import numpy as np

# The probability that the noise in a released matrix exceeds what `spectral_margin` says.
FAILURE = 0.05


def pack_symmetric(A):
    """Return the upper triangle, its off-diagonal entries times the root of two."""
    i, j = np.triu_indices(len(A))
    return A[i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def unpack_symmetric(vector, size):
    """Return the symmetric matrix of which `pack_symmetric` is the vector."""
    i, j = np.triu_indices(size)
    A = np.empty((size, size))
    A[i, j] = A[j, i] = vector / np.where(i == j, 1.0, math.sqrt(2.0))
    return A


def spectral_margin(deviation, size):
    """Bound the spectral norm of the noise in a released matrix, but for a chance of `FAILURE`.

    Parameters
    ----------
    deviation : float
        The standard deviation of the noise in an entry of the released vector.
    size : int
        The number of rows of the matrix.
    """
    return deviation * (math.sqrt(2.0 * size) + math.sqrt(2.0 * math.log(2.0 / FAILURE)))
