"""Loops over rows that numba compiles; see `skdp._loops` and, for the parameters, `numpy_loops`."""

import numpy as np

from skdp._loops import numpy_loops
from skdp._loops.compiling import compiled
from skdp._loops.numba_intrinsics import prefetch, row_product

# Number of rows that are processed at a time, so that their codes and scores stay in the
# processor's cache.
CHUNK_ROWS = 1 << 15
# Bound on the difference between SciPy's logistic function and 1 / (1 + NumPy's exponential). Both
# exponentials have relative errors of at most 2**-51, so each probability p has an error of at most
# 2**-51 p (1 - p), and two operations are rounded with 2**-53 each.
EXPIT_ERROR = 2.0**-49
# Largest margin, in grid steps, for which only few rows are computed twice.
MAX_MARGIN = 2.0**-8
# Size of the rows of a batch that are read twice, first for their scores and then for the sum of
# their gradients. They stay in the processor's cache.
BATCH_BYTES = 1 << 18
MIN_BATCH_ROWS = 64
# Rows that are requested from memory before they are read, and the bytes of one request.
ROWS_AHEAD = 8
LINE_BYTES = 64


def code_scores(codes, ends, code_values, constants):
    """Return the sum of the values of each row's codes, and of the constants. Exact."""
    scores = np.empty((len(codes), code_values.shape[1]))
    _gather(codes, _starts(ends), code_values, constants, scores)
    return scores


def add_code_sums(sums, codes, ends, values):
    """Add to each code's sum the values of its rows. Exact."""
    _scatter(codes, _starts(ends), values, sums)


def add_residual_sums(sums, codes, ends, code_values, constants, residuals, row_args):
    """Add to each code's sum the residuals of its rows, computed from their scores. Exact.

    The rows of the block are added one after another, starting with zero.
    """
    starts = _starts(ends)
    block_sums = np.zeros_like(sums)
    scores = np.empty((min(CHUNK_ROWS, len(codes)), sums.shape[1]))
    for first in range(0, len(codes), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        chunk = codes[rows]
        chunk_scores = scores[: len(chunk)]
        _gather(chunk, starts, code_values, constants, chunk_scores)
        chunk_args = [None if arg is None else arg[rows] for arg in row_args]
        _scatter(chunk, starts, residuals(chunk_scores, *chunk_args), block_sums)
    sums += block_sums


def _starts(ends):
    """Return the index of the first code of each group.

    With unsigned indices, there is no comparison with 0, which would take longer than the sums.
    """
    return np.array([0, *ends[:-1]], dtype=np.uint64)


def _gather(codes, starts, code_values, constants, scores):
    """Write each row's score, the sum of the values of its codes and the constants, to `scores`.

    `starts` has the index of each group's first code in `code_values`, as in `_starts`.
    """
    if scores.shape[1] == 1:
        _gather_one(codes, starts, code_values[:, 0], constants[:, 0], scores[:, 0])
    else:
        _gather_all(codes, starts, code_values, constants, scores)


def _scatter(codes, starts, values, sums):
    """Add each row's values, one per output, to the sums of the row's codes, in place.

    `add_code_sums` and `add_residual_sums` call it. It is exact: a code belongs to one group, so
    both loops add the rows of a code in the order of the rows, as the NumPy version does.
    """
    if sums.shape[1] == 1:
        _scatter_one(codes, starts, values[:, 0], sums[:, 0])
    else:
        _scatter_all(codes, starts, values, sums)


def class_residual_steps(scores, targets, weights, clip, step):
    """Return the clipped residuals of two classes, weighted, in multiples of `step`. Exact.

    SciPy's `expit` takes longer than all other loops together. Here, the probability is computed
    from NumPy's exponential. The two differ by less than `EXPIT_ERROR`, as do the residuals before
    rounding, in units of the largest weight. Both versions round a row's residual toward zero to
    the same multiple, unless a multiple is that close to it. This happens for about one row in
    millions; such rows are computed again as in the NumPy version.
    """
    margin = EXPIT_ERROR * max(weights) / step
    steps = np.empty((len(scores), 1))
    if margin > MAX_MARGIN:
        return numpy_loops.class_residual_steps(scores, targets, weights, clip, step)
    result = steps[:, 0]
    np.negative(scores[:, 0], out=result)
    with np.errstate(over="ignore"):
        np.exp(result, out=result)
    first, second = weights
    n_doubtful = _round_residuals(result, targets, first, second, clip, 1.0 / step, margin)
    if n_doubtful:
        doubtful = np.isnan(result)
        steps[doubtful] = numpy_loops.class_residual_steps(
            scores[doubtful], targets[doubtful], weights, clip, step
        )
    return steps


@compiled
def _round_residuals(values, targets, first, second, clip, scale, margin):
    """Replace exponentials by residuals in multiples of 1 / `scale`; NaN for a doubtful row.

    The scale is a power of two, so the product with it is exact.
    """
    n_doubtful = 0
    for i in range(len(values)):
        is_second = targets[i] != 0
        residual = 1.0 / (1.0 + values[i]) - (1.0 if is_second else 0.0)
        clipped = min(max(residual, -clip), clip)
        scaled = clipped * (second if is_second else first) * scale
        rounded = np.trunc(scaled)
        fraction = abs(scaled - rounded)
        # This is also False for NaN. Rounding toward zero makes no difference at 0 or where the
        # residual is beyond its clip.
        is_decided = (fraction < 1.0 - margin) and (fraction > margin or rounded == 0.0)
        is_decided = is_decided or abs(residual) > clip + 2.0 * EXPIT_ERROR
        values[i] = rounded if is_decided else np.nan
        n_doubtful += not is_decided
    return n_doubtful


@compiled
def _gather_one(codes, starts, code_values, constants, scores):
    """Compute `_gather` for one output, given as vectors."""
    n_rows = len(scores)
    n_groups = len(starts)
    n_tiled = n_groups - n_groups % 4
    for i in range(n_rows):
        scores[i] = 0.0
    # Four groups are processed at a time, so that their first codes stay in registers.
    for g in range(0, n_tiled, 4):
        start_0, start_1, start_2, start_3 = starts[g], starts[g + 1], starts[g + 2], starts[g + 3]
        for i in range(n_rows):
            score = scores[i] + code_values[start_0 + np.uint64(codes[i, g])]
            score += code_values[start_1 + np.uint64(codes[i, g + 1])]
            score += code_values[start_2 + np.uint64(codes[i, g + 2])]
            score += code_values[start_3 + np.uint64(codes[i, g + 3])]
            scores[i] = score
    for g in range(n_tiled, n_groups):
        start = starts[g]
        for i in range(n_rows):
            scores[i] += code_values[start + np.uint64(codes[i, g])]
    for constant in constants:
        for i in range(n_rows):
            scores[i] += constant


@compiled
def _gather_all(codes, starts, code_values, constants, scores):
    """Compute `_gather` for several outputs: the last axis of values, constants and scores."""
    for i in range(len(scores)):
        scores[i] = 0.0
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(scores.shape[1]):
                scores[i, k] += code_values[code, k]
        for constant in constants:
            for k in range(scores.shape[1]):
                scores[i, k] += constant[k]


@compiled
def _scatter_one(codes, starts, values, sums):
    """Compute `_scatter` for one output, given as vectors."""
    n_rows = len(codes)
    n_groups = len(starts)
    n_tiled = n_groups - n_groups % 4
    for g in range(0, n_tiled, 4):
        start_0, start_1, start_2, start_3 = starts[g], starts[g + 1], starts[g + 2], starts[g + 3]
        for i in range(n_rows):
            value = values[i]
            sums[start_0 + np.uint64(codes[i, g])] += value
            sums[start_1 + np.uint64(codes[i, g + 1])] += value
            sums[start_2 + np.uint64(codes[i, g + 2])] += value
            sums[start_3 + np.uint64(codes[i, g + 3])] += value
    for g in range(n_tiled, n_groups):
        start = starts[g]
        for i in range(n_rows):
            sums[start + np.uint64(codes[i, g])] += values[i]


@compiled
def _scatter_all(codes, starts, values, sums):
    """Compute `_scatter` for several outputs: the last axis of values and sums."""
    for i in range(len(codes)):
        for g in range(len(starts)):
            code = starts[g] + np.uint64(codes[i, g])
            for k in range(sums.shape[1]):
                sums[code, k] += values[i, k]


def clipped_gradient(X, rows, weights, constants, y, caps, residual):
    """Return the sum of rows times their clipped residuals, and that of these residuals. Rounded.

    The rows are read where they are, without a copy. A row's score depends, to the last bit, only
    on the row, the weights and the constants. The rows' gradients are added one after another.

    Parameters
    ----------
    X : C-contiguous ndarray of shape (n_rows, n_columns)
        All rows of the table, float32 or float64.
    rows : ndarray of int64
        Indices of the rows of the batch.
    weights : ndarray of shape (n_columns,)
    constants : (float, float)
        Numbers that are subtracted from each score, and then added to it.
    y, caps : ndarray of shape (n_rows,)
        Targets and largest magnitudes of residuals, for all rows of the table.
    residual : callable
        Function of scores and targets that returns a new array; each row is computed independently.

    Returns
    -------
    ndarray of shape (n_columns + 1,)
        The sum of the rows, followed by the sum of the residuals.
    """
    sums = np.zeros(X.shape[1] + 1)
    n_rows = max(BATCH_BYTES // (X.itemsize * X.shape[1]), MIN_BATCH_ROWS)
    for first in range(0, len(rows), n_rows):
        chunk = rows[first : first + n_rows]
        scores = np.empty(len(chunk))
        targets = np.empty(len(chunk), y.dtype)
        bounds = np.empty(len(chunk))
        _batch_scores(X, chunk, weights, *constants, y, caps, scores, targets, bounds)
        _add_clipped(sums, X, chunk, residual(scores, targets), bounds)
    return sums


@compiled
def _batch_scores(X, rows, weights, subtracted, added, y, caps, scores, targets, bounds):
    """Write the scores, targets and bounds of a batch's rows to `scores`, `targets` and `bounds`.

    The memory of later rows is requested in advance. See `clipped_gradient` for the parameters.
    """
    n_columns = X.shape[1]
    n_rows = len(rows)
    n_per_line = LINE_BYTES // X.itemsize
    for i in range(n_rows):
        if i + ROWS_AHEAD < n_rows:
            ahead = rows[i + ROWS_AHEAD]
            for j in range(0, n_columns, n_per_line):
                prefetch(X, (ahead, j))
            prefetch(y, (ahead,))
            prefetch(caps, (ahead,))
        row = rows[i]
        scores[i] = (row_product(X[row], weights) - subtracted) + added
        targets[i] = y[row]
        bounds[i] = caps[row]


@compiled
def _add_clipped(sums, X, rows, residuals, bounds):
    """Add the rows times their clipped residuals to `sums`, and the residuals to its last entry.

    A residual is clipped to plus or minus its bound.
    """
    n_columns = X.shape[1]
    for i in range(len(rows)):
        bound = bounds[i]
        residual = residuals[i]
        # NaN becomes the bound, as in the NumPy version.
        if not residual <= bound:
            residual = bound
        if residual < -bound:
            residual = -bound
        row = X[rows[i]]
        for j in range(n_columns):
            sums[j] += residual * row[j]
        sums[n_columns] += residual


def add_on_grid(values, noise, step, max_steps):
    """Return values, rounded to multiples of `step`, plus noise in multiples of `step`. Exact.

    The result is None if a value exceeds `max_steps` steps.
    """
    result = np.empty(len(values))
    if _add_on_grid(values, noise, step, max_steps, result):
        return result
    return None


@compiled
def _add_on_grid(values, noise, step, max_steps, result):
    """Write the noisy values to `result`, and return False if a value exceeds `max_steps` steps."""
    for i in range(len(values)):
        rounded = np.rint(values[i] / step)
        if not abs(rounded) <= max_steps:
            return False
        result[i] = (np.int64(rounded) + noise[i]) * step
    return True
