"""Loops over rows that numba compiles; see `skdp._loops` and, for the parameters, `numpy_loops`."""

import numpy as np

from skdp._loops.compiling import compiled

# Number of rows that are processed at a time, so that their codes and scores stay in a processor's
# cache.
CHUNK_ROWS = 1 << 14


def code_scores(codes, ends, code_values, constant):
    """Return the sum of the values of each row's codes, and the constant. Exact."""
    scores = np.empty((len(codes), code_values.shape[1]))
    _gather(codes, _starts(ends), code_values, constant, scores)
    return scores


def add_code_sums(sums, codes, ends, values):
    """Add to each code's sum the values of its rows. Exact."""
    _scatter(codes, _starts(ends), values, sums)


def add_residual_sums(sums, codes, ends, code_values, constant, residuals, row_args):
    """Add to each code's sum the residuals of its rows, which are computed from their scores. Exact.

    The rows of the block are added one after another, starting with zero.
    """
    starts = _starts(ends)
    block_sums = np.zeros_like(sums)
    scores = np.empty((min(CHUNK_ROWS, len(codes)), sums.shape[1]))
    for first in range(0, len(codes), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        chunk = codes[rows]
        chunk_scores = scores[: len(chunk)]
        _gather(chunk, starts, code_values, constant, chunk_scores)
        values = residuals(chunk_scores, *(arg if arg is None else arg[rows] for arg in row_args))
        _scatter(chunk, starts, values, block_sums)
    sums += block_sums


def _starts(ends):
    """Return the index of the first code of each group.

    Unsigned indices need no comparison with 0, which takes longer than the sums.
    """
    return np.array([0, *ends[:-1]], dtype=np.uint64)


def _gather(codes, starts, code_values, constant, scores):
    if scores.shape[1] == 1:
        _gather_one(codes, starts, code_values[:, 0], constant[0, 0], scores[:, 0])
    else:
        _gather_all(codes, starts, code_values, constant[0], scores)


def _scatter(codes, starts, values, sums):
    if sums.shape[1] == 1:
        _scatter_one(codes, starts, values[:, 0], sums[:, 0])
    else:
        _scatter_all(codes, starts, values, sums)


@compiled
def _gather_one(codes, starts, code_values, constant, scores):
    for i in range(len(codes)):
        total = 0.0
        for g in range(len(starts)):
            total += code_values[starts[g] + np.uint64(codes[i, g])]
        scores[i] = total + constant


@compiled
def _gather_all(codes, starts, code_values, constant, scores):
    for i in range(len(codes)):
        scores[i] = 0.0
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(scores.shape[1]):
                scores[i, k] += code_values[code, k]
        for k in range(scores.shape[1]):
            scores[i, k] += constant[k]


@compiled
def _scatter_one(codes, starts, values, sums):
    for i in range(len(codes)):
        for g in range(len(starts)):
            sums[starts[g] + np.uint64(codes[i, g])] += values[i]


@compiled
def _scatter_all(codes, starts, values, sums):
    for i in range(len(codes)):
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(sums.shape[1]):
                sums[code, k] += values[i, k]
