"""Vectors of symmetric matrices, whose L2 norm is the Frobenius norm of the matrix."""

import math

import numpy as np

# Probability that the norm of the noise in a released matrix exceeds `spectral_margin`.
FAILURE_PROBABILITY = 0.05


def pack_symmetric(A):
    """Return the upper triangle as a vector, with off-diagonal entries multiplied by sqrt(2)."""
    i, j = np.triu_indices(len(A))
    return A[i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def unpack_symmetric(vector, size):
    """Return the symmetric matrix that `pack_symmetric` turned into this vector."""
    i, j = np.triu_indices(size)
    A = np.empty((size, size))
    A[i, j] = A[j, i] = vector / np.where(i == j, 1.0, math.sqrt(2.0))
    return A


def spectral_margin(deviation, size):
    """Return a bound on the spectral norm of the noise in a released matrix.

    The norm exceeds it with a probability of at most `FAILURE_PROBABILITY`.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise in an entry of the released vector.
    size : int
        Number of rows of the matrix.
    """
    tail = math.sqrt(2.0 * math.log(2.0 / FAILURE_PROBABILITY))
    return deviation * (math.sqrt(2.0 * size) + tail)
