"""Loops over rows that numba compiles; see `skdp._loops` and, for the parameters, `numpy_loops`."""

import numpy as np

from skdp._loops.compiling import compiled

# Rows that are processed at a time, so that their codes and scores stay in a processor's cache.
CHUNK_ROWS = 1 << 13


def encode_codes(codes, ends):
    """Return the form of codes that `code_scores` and `add_code_sums` read."""
    # Unsigned indices are not compared with 0, which takes longer than the sums.
    return codes, np.array([0, *ends[:-1]], dtype=np.uint64)


def code_scores(encoded, code_values, constant):
    """Return the sum of the values of each row's codes, and the constant. Exact."""
    codes, starts = encoded
    scores = np.empty((len(codes), code_values.shape[1]))
    if code_values.shape[1] == 1:
        _gather(codes, starts, code_values[:, 0], constant[0, 0], scores[:, 0])
    else:
        _gather_rows(codes, starts, code_values, constant[0], scores)
    return scores


def add_code_sums(sums, encoded, values):
    """Add to each code's sum the values of its rows, in the order of rows. Exact."""
    codes, starts = encoded
    if sums.shape[1] == 1:
        _scatter(codes, starts, np.ascontiguousarray(values)[:, 0], sums[:, 0])
    else:
        _scatter_rows(codes, starts, values, sums)


@compiled
def _gather(codes, starts, code_values, constant, scores):
    for i in range(len(codes)):
        total = 0.0
        for g in range(len(starts)):
            total += code_values[starts[g] + np.uint64(codes[i, g])]
        scores[i] = total + constant


@compiled
def _gather_rows(codes, starts, code_values, constant, scores):
    for i in range(len(codes)):
        scores[i] = 0.0
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(scores.shape[1]):
                scores[i, k] += code_values[code, k]
        for k in range(scores.shape[1]):
            scores[i, k] += constant[k]


@compiled
def _scatter(codes, starts, values, sums):
    for i in range(len(codes)):
        for g in range(len(starts)):
            sums[starts[g] + np.uint64(codes[i, g])] += values[i]


@compiled
def _scatter_rows(codes, starts, values, sums):
    for i in range(len(codes)):
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(sums.shape[1]):
                sums[code, k] += values[i, k]
