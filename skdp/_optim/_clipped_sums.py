"""Sums of the clipped gradients of a batch's rows, computed without forming individual gradients.

A row's gradient is its residual (a number, or one number per class) times the row with its constant
feature. Its norm is the product of the two norms, so clipping the residual clips the gradient.
"""

import math

import numpy as np
from scipy.sparse import csr_array, issparse

from skdp._data._batch_rows import MAX_TILE_ROWS, open_rows, tile_rows
from skdp._data._parts import (
    LOG2_MAX_ROWS,
    Rows,
    is_sent,
    map_over,
    max_additions,
    slice_row_args,
    sum_over,
)
from skdp._data._persons import row_weights_of, times_row_weights
from skdp._data._row_wise import row_norms, row_sums
from skdp._loops import NUMBA, NUMPY, get_loops
from skdp.utils._validation import check_choice, check_within

# Twice the relative rounding error of a double, and the smallest double for which this error holds.
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
# Residuals are always clipped at this bound, so that their product with 0 is 0.
MAX_CAP = 1e30
# Rows with a larger norm count as zero, so that underflow of residuals is negligible.
MAX_NORM = 1e150
# For shorter vectors, the squares lose their precision.
MIN_NORM = 1e-140
# Weight of the squared residual, one of the three values that a row adds to the loss decreases.
SQUARED_RESIDUAL_WEIGHT = 0.25
# Upper bound on the norm of these three values: two in [-1, 1] and the weighted one in [0, 1/4].
MAX_DECREASE_NORM = {"l1": 2.5, "l2": 1.5}
# Grid on which loss decreases are summed without rounding errors.
DECREASE_GRID = 2.0**-20
# Types of the rows that compiled loops read, in the machine's byte order.
COMPILED_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
# Number of equal rows that are compared: enough for all offsets relative to cache lines.
COMPARED_ROWS = 67
# Range of clips. Plans accept clips from 1e-50 to 1e50 before the charge. A clip is multiplied by
# the unit of the rows, which is released after the charge, so this range is far wider, and no clip
# of a plan is refused here. Squares of these clips neither under- nor overflow.
CLIP_RANGE = (1e-100, 1e100)


class ClippedSums(Rows):
    r"""Sums over batches of :math:`g_i \min(1, C / \|g_i\|)`, the rows' clipped gradients.

    The gradient of row i is :math:`g_i = r_i (x_i, c)^T`, where r_i is the loss's residual at the
    scores of x_i, computed in floating point. The norm of each summand, in exact arithmetic, is at
    most C. A row with a norm above 1e150 counts as zero. A residual that is NaN because scores
    overflowed counts as the largest allowed residual if a row has one score, and as zero if it has
    several. A vector of residuals whose norm is below 1e-140, or so large that the clip would
    underflow, counts as zero.

    Parameters
    ----------
    X : ndarray, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        Validated table, which may be memory-mapped. Nothing is copied: rows are converted to
        float64 when they are read.
    y : ndarray of shape (n_rows,)
        Targets in the form that the loss expects; float64 is fastest if the loss accepts numbers.
    loss : ClippableLoss
        Loss whose ``residual(scores, y)`` and ``weights_shape`` are used.
    constant : float
        Value c of the constant feature for the intercept; 0 for no such feature.
    clip : float
        Upper bound C on the norm of a row's gradient, within `CLIP_RANGE`.
    norm : {"l2", "l1"}, default="l2"
        Norm in which gradients, of all classes together, are clipped.
    persons : Persons, default=None
        Persons whose row weights multiply the clipped gradients. Batches then consist of persons.
    only_loss_decreases : bool, default=False
        True if only `loss_decreases` is called, which does not need the norms of rows.
    center : ndarray of shape (n_columns,), default=None
        Vector that is subtracted from each row x_i; it was released, or does not depend on the
        rows. Rows are not changed when they are read: the contribution of the center is subtracted
        from each score, and from the sum of the gradients. Requires the norm "l2".
    column_factors : ndarray of shape (n_columns,), default=None
        Positive factors of the columns of the centered rows, released or independent of the rows as
        the center. They multiply the weights in the scores, and the sum of the gradients. Only with
        a center.
    whitening : WhitenedRows, default=None
        Whitening of the rows, released or independent of the rows as the center. The gradient of
        row i is then that of the whitened row with its constant feature, clipped, times the weight
        of the row. Only for losses with one score, with a constant feature, in the norm "l2", and
        without a center.
    loops : str, default="numpy"
        Value of `skdp._loops.choose_loops`. Compiled loops sum the rows of sampled batches from one
        array in memory, for a loss with one score and without persons. Otherwise, and for full
        batches and decreases of the loss, NumPy's version is used.
    """

    local_attrs = Rows.local_attrs | {
        "read",
        "row_scores",
        "row_products",
        "_persons",
        "_caps",
        "_firsts",
        "_loops",
    }

    def __init__(
        self,
        X,
        y,
        loss,
        *,
        constant,
        clip,
        norm="l2",
        persons=None,
        only_loss_decreases=False,
        center=None,
        column_factors=None,
        whitening=None,
        loops=NUMPY,
    ):
        row_weights = row_weights_of(persons)
        tile = MAX_TILE_ROWS
        if not issparse(X):
            tile = tile_rows(X.shape[1])
        super().__init__(X, tile, row_args=(y, None, row_weights))
        # Largest batch that is read as one tile, if the table is one partition in this process.
        self._one_tile = 0
        if len(self.offsets) == 2 and getattr(X, "workers", None) is None:
            self._one_tile = tile
        self.loss = loss
        self.constant = float(constant)
        self.center = center
        self.column_factors = column_factors
        self.whitening = whitening
        self.norm = check_choice(norm, "norm", MAX_DECREASE_NORM)
        self._clip = check_within(clip, "clip", *CLIP_RANGE)
        self._persons = persons
        self._indices = None
        self._reads_tiles = True
        self._loops = None
        if loops == NUMBA and self._is_plain():
            self._loops = get_loops(NUMBA)
        if getattr(X, "workers", None) is None:
            self._open()
        # The weights of whitened rows are computed once, or by each tile of rows that are sent.
        self._weights_are_known = whitening is None or not is_sent(self)
        if is_sent(self):
            return
        if whitening is not None:
            row_weights = map_over(self, _whitened_row_weights, persist=True)
            self.row_args = (y, None, row_weights)
        if only_loss_decreases:
            return
        self._caps = map_over(self, _max_residuals, self._clip, persist=True)
        self.row_args = (y, self._caps, row_weights)

    def _open(self):
        """Set the functions that read rows and multiply them, which are not sent to workers."""
        self.read = open_rows(self.X).read
        n_columns = self.shape[1]
        self.row_scores = row_scores_function(n_columns, self.loss.weights_shape)
        if self.whitening is not None:
            self.row_products = row_scores_function(n_columns, (n_columns,))

    def _is_plain(self):
        """Return True if compiled loops can read the rows and their targets."""
        y = self.row_args[0]
        return (
            self._one_tile > 0
            and self._persons is None
            and self.whitening is None
            and self.loss.weights_shape == ()
            and type(self.X) is np.ndarray
            and self.X.flags.c_contiguous
            and self.X.dtype in COMPILED_DTYPES
            and type(y) is np.ndarray
        )

    def _batch(self, indices, reads_tiles=True):
        """Return a batch of rows. They are read in tiles, each within one partition.

        Compiled loops receive the indices of a tile's rows, which they read themselves.
        """
        if indices is None:
            return self
        return self._changed(
            _indices=indices,
            _firsts=self.offsets[:-1],
            offsets=np.searchsorted(indices, self.offsets).tolist(),
            _reads_tiles=reads_tiles,
        )

    def __getitem__(self, rows):
        if self._indices is not None:
            rows = self._indices[rows]
        if not self._reads_tiles:
            return rows
        return _Tile(self, rows)

    def detach(self, number):
        """Return a copy for a worker, without rows, whose indices are stored as differences."""
        batch = super().detach(number)
        if self._indices is not None:
            indices = self._indices[slice(*self.offsets[number : number + 2])]
            steps = np.diff(indices, prepend=self._firsts[number])
            # Most of the data sent to a worker are indices, so the smallest integer type is used.
            batch._indices = steps.astype(np.min_scalar_type(steps.max(initial=0)))
        return batch

    def attach(self, X, row_args):
        """Return a copy that reads the batch's rows of a partition; `detach` is the inverse."""
        batch = super().attach(X, row_args)
        batch._open()
        if self._indices is not None:
            batch._indices = np.cumsum(self._indices, dtype=np.int64)
            batch.offsets = (0, len(batch._indices))
        return batch

    def sums(self, weights, indices):
        """Return the sum of a batch's clipped gradients.

        Parameters
        ----------
        weights : ndarray of shape (*loss.weights_shape, n_columns + (constant != 0))
            float64.
        indices : sorted ndarray of int64, or None
            The rows, or the persons, of the batch; None for all.

        Returns
        -------
        ndarray of float64, of the same shape as `weights`
        """
        if indices is not None and self._persons:
            indices = self._persons.rows_of(indices)
        # Most batches are one tile, whose sum needs no plan.
        is_one_tile = indices is not None and 0 < len(indices) <= self._one_tile
        total = np.zeros(weights.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.whitening is not None:
                weights = self.whitening.weights_of_rows(weights, self.constant)
                sum_over(self._batch(indices), _add_gradients_of_rows, total, weights)
                return self.whitening.gradient(total, self.constant)
            if self._loops is not None and indices is not None:
                if is_one_tile:
                    return _sum_by_compiled_loops(self, indices, weights)
                batch = self._batch(indices, reads_tiles=False)
                sum_over(batch, _add_by_compiled_loops, total, self, weights)
            elif is_one_tile:
                _add_gradients(total, _Tile(self, indices), weights)
            else:
                sum_over(self._batch(indices), _add_gradients, total, weights)
        return total

    @np.errstate(over="ignore", invalid="ignore")
    def loss_decreases(self, start, weights, indices, clip_norms):
        """Return sums over a batch that estimate the decrease of the loss between two weights.

        Each row adds three values. The first two are the products of its score's change and its
        residual, at the start with a minus sign and at the end; they are the first-order decreases
        of the loss at either end. The third is the squared residual at the start. Each value is
        clipped, and all are scaled so that a row's three values have a norm of at most C.

        Parameters
        ----------
        start, weights : ndarray of shape (*loss.weights_shape, n_columns + (constant != 0))
            Weights that do not depend on the rows, or were released.
        indices : sorted ndarray of int64, or None
            The rows, or the persons, of the batch; None for all.
        clip_norms : (float, float)
            Norms to which changes of scores and residuals are clipped.

        Returns
        -------
        ndarray of float64, of the same shape as `weights`
            The three values, followed by zeros.
        """
        if indices is not None and self._persons:
            indices = self._persons.rows_of(indices)
        decreases = sum_over(
            self._batch(indices), _add_loss_decreases, np.zeros(3), start, weights, clip_norms
        )
        sums = np.zeros(weights.shape)
        sums.flat[:3] = decreases * (self._clip / MAX_DECREASE_NORM[self.norm])
        return sums


def _max_residuals(tile, clip):
    """Return the norm to which the residuals of each row of a tile are clipped.

    It is C divided by the row's norm, rounded down by more than all later rounding errors, at most
    `MAX_CAP`, and multiplied by the row's relative weight. Rows longer than `MAX_NORM` have the
    norm 0, so they count as zero.
    """
    n_columns = tile.block.shape[1]
    loss = tile.table.loss
    margin = 1.0 - (n_columns + math.prod(loss.weights_shape) + 16) * EPS
    with np.errstate(over="ignore", divide="ignore"):
        if tile.table.norm == "l1":
            norms = _row_l1_norms(tile.block) + abs(tile.table.constant)
        else:
            norms = np.hypot(_centered_norms(tile), tile.table.constant)
        caps = np.minimum(clip / norms * margin, MAX_CAP)
    # Classes may have different clips (see `ClippableLoss.relative_weights`). A clip above C would
    # exceed the sensitivity, so the weights are cut at 1 for every loss.
    caps = caps * np.minimum(loss.relative_weights(tile.y), 1.0)
    return np.where(norms <= MAX_NORM, caps, 0.0)


@np.errstate(all="ignore")
def sum_loss_decreases(score_changes, first, last, clip_norms, row_weights):
    """Return the exact sums of the three values per row; see `ClippedSums.loss_decreases`.

    The norm of a row's three values is at most `MAX_DECREASE_NORM`.

    Parameters
    ----------
    score_changes, first, last : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Changes of the scores, and the residuals before and after.
    clip_norms : (float, float)
        Norms to which changes of scores and residuals are clipped.
    row_weights : ndarray of shape (n_rows,), or None
        Weights of the rows.

    Returns
    -------
    ndarray of shape (3,)
    """
    max_change, max_residual = clip_norms
    score_changes = _clip_to_unit_norm(score_changes, max_change)
    first = _clip_to_unit_norm(first, max_residual)
    last = _clip_to_unit_norm(last, max_residual)
    products = -first * score_changes, last * score_changes, SQUARED_RESIDUAL_WEIGHT * first**2
    sums = np.empty(len(products))
    for number, product in enumerate(products):
        if product.ndim > 1:
            product = row_sums(product)
        # NaN from an overflow becomes 0. Rounding toward 0 does not increase any unit's norm.
        decreases = np.nan_to_num(product, copy=False)
        decreases /= DECREASE_GRID
        sums[number] = np.trunc(times_row_weights(decreases, row_weights)).sum()
    return DECREASE_GRID * sums


def _clip_to_unit_norm(values, norm):
    """Return numbers, or the vectors of rows, divided by a norm and clipped to norm 1."""
    values = values / norm
    if values.ndim == 1:
        return np.clip(values, -1.0, 1.0)
    return values / np.maximum(1.0, row_norms(values))[:, np.newaxis]


def _whitened_row_weights(tile):
    """Return the weights of whitened rows, times those of the rows' persons."""
    return times_row_weights(tile.table.whitening.row_weights(tile.block), tile.row_weights)


def _centered_norms(tile):
    """Return the norms of the centered and scaled rows, or upper bounds for sparse rows."""
    block = tile.block
    center = tile.table.center
    factors = tile.table.column_factors
    if tile.table.whitening is not None:
        return tile.table.whitening.norms(block, tile.table.row_products)
    if center is None:
        return row_norms(block)
    if not issparse(block):
        block = block - center
        if factors is not None:
            block *= factors
        return row_norms(block)
    if factors is not None:
        values = block.data * factors[block.indices]
        block = csr_array((values, block.indices, block.indptr), shape=block.shape)
        center = center * factors
    # The squared norm is a difference. Its rounding error is at most that of a sum of the three
    # terms' magnitudes, which the square of the sum of norms bounds.
    norms = row_norms(block)
    center_norm = np.linalg.norm(center)
    squares = norms**2 - 2.0 * (block @ center) + center_norm**2
    rounding = 8.0 * (block.shape[1] + 8) * EPS * (norms + center_norm) ** 2
    return np.sqrt(np.maximum(squares, 0.0) + rounding)


def _row_l1_norms(block):
    """Return the L1 norm of each row of a dense or sparse block."""
    if issparse(block):
        return np.ravel(abs(block).sum(axis=1))
    return row_sums(np.abs(block))


class _Tile:
    """Some rows of a batch with their targets, caps and weights, valid until the next are read.

    A row's residual depends, to the last bit, only on the row, its label and the weights, and not
    on its position or on the other rows of the batch.

    Parameters
    ----------
    table : ClippedSums
    rows : slice or sorted ndarray of int64
        Rows within one partition.
    """

    def __init__(self, table, rows):
        y, caps, row_weights = table.row_args
        self.table = table
        self.block = table.read(rows)
        self.y = _take(y, rows)
        self.caps = _take(caps, rows)
        self.row_weights = _take(row_weights, rows)
        if not table._weights_are_known:
            self.row_weights = _whitened_row_weights(self)

    def scores(self, weights):
        """Return the rows' scores; the last weight is that of the constant feature, if any."""
        table = self.table
        if table.whitening is not None:
            return self.scores_of_rows(table.whitening.weights_of_rows(weights, table.constant))
        n_columns = self.block.shape[1]
        column_weights = weights[..., :n_columns]
        if table.column_factors is not None:
            column_weights = column_weights * table.column_factors
        scores = table.row_scores(self.block, column_weights)
        if table.center is not None:
            scores = scores - column_weights @ table.center
        if table.constant:
            scores += table.constant * weights[..., n_columns]
        return scores

    def scores_of_rows(self, weights):
        """Return the rows' scores for weights of the rows as they are read, and an intercept."""
        return self.table.row_scores(self.block, weights[:-1]) + weights[-1]

    def clipped_residuals(self, weights):
        """Return the rows' clipped residuals, times their weights."""
        return self.clipped_residuals_at(self.scores(weights))

    def clipped_residuals_at(self, scores):
        """Return the clipped residuals at some scores of the rows, times the rows' weights."""
        residual = self.table.loss.residual(scores, self.y)
        if self.caps is None:
            self.caps = _max_residuals(self, self.table._clip)
        if residual.ndim > 1:
            _clip_vectors(residual, self.caps, self.table.norm)
        else:
            _clip_numbers(residual, self.caps)
        return times_row_weights(residual, self.row_weights)


def _take(values, rows):
    """Return the values of some rows, or None if there are no values."""
    if values is None or isinstance(rows, slice):
        return slice_row_args(values, rows)
    # With mode "clip", NumPy does not check the indices, which are valid.
    return values.take(rows, None, None, "clip")


def _add_gradients(total, tile, weights):
    """Add the clipped gradients of a tile's rows, which are centered and scaled, to `total`."""
    residual = tile.clipped_residuals(weights)
    constant = tile.table.constant
    n_columns = tile.block.shape[1]
    gradient = tile.block.T.dot(residual).T
    center = tile.table.center
    if not constant and center is None:
        total[..., :n_columns] += gradient
        return
    residual_sum = np.add.reduce(residual, axis=0)
    if center is not None:
        gradient = _centered_gradient(gradient, residual_sum, tile.table)
    total[..., :n_columns] += gradient
    if constant:
        total[..., n_columns] += constant * residual_sum


def _centered_gradient(gradient, residual_sum, table):
    """Return the gradient of centered and scaled rows for that of the rows."""
    gradient = gradient - np.multiply.outer(residual_sum, table.center)
    if table.column_factors is not None:
        gradient *= table.column_factors
    return gradient


def _add_by_compiled_loops(total, rows, table, weights):
    """Add the clipped gradients of some rows, given by their indices, of a table with one score."""
    total += _sum_by_compiled_loops(table, rows, weights)


def _sum_by_compiled_loops(table, rows, weights):
    """Return the sum of the clipped gradients of some rows, given by their indices.

    See `_add_gradients` for the sum without compiled loops.
    """
    n_columns = table.shape[1]
    constant = table.constant
    center = table.center
    column_weights = weights[:n_columns]
    subtracted = 0.0
    added = 0.0
    if center is not None:
        if table.column_factors is not None:
            column_weights = column_weights * table.column_factors
        subtracted = column_weights.dot(center)
    if constant:
        added = constant * weights[n_columns]
    y, caps, _ = table.row_args
    sums = table._loops.clipped_gradient(
        table.X, rows, column_weights, (subtracted, added), y, caps, table.loss.residual
    )
    if center is not None:
        sums[:n_columns] = _centered_gradient(sums[:n_columns], sums[n_columns], table)
    if not constant:
        return sums[:n_columns]
    sums[n_columns] *= constant
    return sums


def _add_gradients_of_rows(total, tile, weights):
    """Add the residuals times the rows as they are read, and the residuals."""
    residual = tile.clipped_residuals_at(tile.scores_of_rows(weights))
    total[:-1] += tile.block.T.dot(residual)
    total[-1] += np.add.reduce(residual)


def _add_loss_decreases(total, tile, start, weights, clip_norms):
    """Add a tile's sums to the three sums of `ClippedSums.loss_decreases`, before their scaling."""
    loss = tile.table.loss
    before = tile.scores(start)
    after = tile.scores(weights)
    first = loss.residual(before, tile.y)
    last = loss.residual(after, tile.y)
    total += sum_loss_decreases(after - before, first, last, clip_norms, tile.row_weights)


def sum_rounding(n_columns, n_outputs, clip, batch_bound):
    """Return an upper bound on the rounding error of a sum of clipped gradients.

    Parameters
    ----------
    n_columns : int
        Number of columns of the table, without the constant feature.
    n_outputs : int
        Number of scores per row.
    clip : float
    batch_bound : int
        Upper bound on the number of rows or persons in a batch. A person may have any number of
        rows.

    Returns
    -------
    float
        Distance, in the norm of the clip, between the computed sum and the exact sum of summands
        whose norms are at most `clip` in exact arithmetic.
    """
    additions = max_additions(MAX_TILE_ROWS) + 3
    summed = additions * 0.5 * EPS * batch_bound * clip
    underflow = 4.0 * 2.0**LOG2_MAX_ROWS * n_outputs * (n_columns + 1) * TINY
    return 1.01 * (summed + underflow)


def _clip_numbers(residual, caps):
    """Clip numbers to [-cap, cap] in place. NaN becomes one of the two ends."""
    np.fmin(residual, caps, out=residual)
    np.fmax(residual, -caps, out=residual)


def _clip_vectors(residual, caps, norm):
    """Scale the vectors of rows down to norms of at most the caps, in place.

    A vector becomes zero if its norm, or its factor, cannot be computed precisely.
    """
    if norm == "l1":
        norms = row_sums(np.abs(residual))
    else:
        norms = row_norms(residual)
    factors = np.ones_like(norms)
    np.divide(caps, norms, out=factors, where=norms > caps)
    residual *= factors[:, None]
    is_precise = (norms >= MIN_NORM) & (norms < np.inf) & (factors >= TINY)
    if not is_precise.all():
        residual[~is_precise] = 0.0


def row_scores_function(n_columns, weights_shape):
    """Return a function that computes the scores of a block of rows for some weights.

    A row's score depends, to the last bit, only on the row and the weights. The rounding of a
    matrix product depends on the position of the row in the block and on the number of rows, and
    in a sampled batch these depend on the other rows.

    Therefore BLAS multiplies one row at a time. A BLAS library whose rounding depends on the
    addresses of arrays may still give equal rows different scores. This function tests for that
    with synthetic numbers; if it happens, NumPy's own sums are used. SciPy multiplies sparse rows
    one at a time.

    Parameters
    ----------
    n_columns : int
    weights_shape : tuple
        () for one score per row, (k,) for k scores.

    Returns
    -------
    callable
        Function of a C-contiguous block or CSR matrix of shape (n, n_columns) and of weights of
        shape (*weights_shape, n_columns), both float64.
    """
    row = np.sin(np.arange(1.0, n_columns + 1.0))
    weights = np.resize(np.cos(row), (*weights_shape, n_columns))
    scores = _scores_by_blas(np.tile(row, (COMPARED_ROWS, 1)), weights)
    has_equal_scores = (scores == scores[0]).all()
    dense_scores = _scores_by_sums
    if has_equal_scores:
        dense_scores = _scores_by_blas

    def row_scores(block, weights):
        """Return the scores of the rows of a block, of shape (n_rows, n_outputs)."""
        if issparse(block):
            return block @ weights.T
        return dense_scores(block, weights)

    return row_scores


def _scores_by_blas(block, weights):
    """Return the scores of the rows, computed with one matrix product per row."""
    return np.matmul(block[:, None, :], weights.T)[:, 0]


def _scores_by_sums(block, weights):
    """Return the rows' scores, computed as sums whose order does not depend on other rows."""
    if weights.ndim == 1:
        return row_sums(block * weights)
    return np.column_stack([row_sums(block * output) for output in weights])
