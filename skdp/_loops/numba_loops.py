"""Loops over rows that numba compiles; see `skdp._loops` and, for the parameters, `numpy_loops`."""

import numpy as np

from skdp._loops.compiling import compiled


def add_code_sums(totals, codes, ends, values):
    """Add to each code's total the sum of the values of its rows. Exact."""
    sums = np.zeros_like(totals)
    _add_code_sums(sums, codes, _starts(ends), values)
    totals += sums


def code_scores(codes, ends, code_values, constants):
    """Return the sum of the values of each row's codes, then each of the constants. Exact."""
    scores = np.empty((len(codes), code_values.shape[1]))
    _gather(codes, _starts(ends), np.ascontiguousarray(code_values), scores)
    for constant in constants:
        scores += constant
    return scores


def _starts(ends):
    """Return the index of the first code of each group; unsigned indices need no check."""
    return np.array([0, *ends[:-1]], dtype=np.uint64)


@compiled
def _add_code_sums(sums, codes, starts, values):
    n_rows, n_groups = codes.shape
    n_outputs = values.shape[1]
    for i in range(n_rows):
        for g in range(n_groups):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(n_outputs):
                sums[code, k] += values[i, k]


@compiled
def _gather(codes, starts, code_values, scores):
    n_rows, n_groups = codes.shape
    n_outputs = code_values.shape[1]
    for i in range(n_rows):
        for k in range(n_outputs):
            total = 0.0
            for g in range(n_groups):
                total += code_values[starts[g] + np.uint64(codes[i, g]), k]
            scores[i, k] = total
