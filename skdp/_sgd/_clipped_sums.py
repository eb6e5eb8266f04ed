"""Sums of the clipped gradients of a batch's rows, without forming any row's gradient.

A row's gradient is its residual (a number, or one for each class) times the row with its constant
feature. Its norm is the product of the two norms, so clipping the residual clips the gradient.
"""

import math

import numpy as np
from scipy.sparse import issparse

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
from skdp.utils._row_wise import row_norms, row_sums
from skdp.utils._validation import check_choice, check_magnitude

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
# A residual this large is cut whatever the row's norm, so that times zero it is zero.
LARGEST_CAP = 1e30
# Rows of a larger norm count as zero: what underflow does to residuals is nothing beside a clip.
LARGEST_NORM = 1e150
# The squares of what is shorter than this lose their precision.
LEAST_NORM = 1e-140
# Three gains of a row, each in [-1, 1] and the last a part of it, are not longer than this.
LENGTH_OF_GAINS = {"l1": 2.5, "l2": 1.5}
PART_OF_SPREAD = 0.25
# Gains are summed in steps of this, exactly.
GAIN_STEP = 2.0**-20
# Enough for every place that a row can have relative to cache lines.
COMPARED_ROWS = 67


class ClippedSums(Rows):
    r"""Sums over batches of :math:`g_i \min(1, C / \|g_i\|)`, the rows' clipped gradients.

    The gradient of row i is :math:`g_i = r_i (x_i, c)^T`, where r_i is the loss's residual at the
    scores of x_i, computed in floating point. The norm of each summand, in exact arithmetic, is at
    most C. A row of a norm above 1e150 counts as zero. A residual that is no number, because scores
    overflowed, counts as the largest that is allowed, or as zero where a row has several. Several
    together whose norm is below 1e-140, or so large that the clip would underflow, count as zero.

    Parameters
    ----------
    X : ndarray, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        Validated; may be memory-mapped. Nothing is copied; rows are converted to float64 as they
        are read.
    y : ndarray of shape (n_rows,)
        As the loss wants it; float64 is fastest where the loss takes numbers.
    loss : loss
        With ``residual(scores, y)`` and ``weights_shape``.
    constant : float
        The value c of the constant feature that carries the intercept; 0 for none.
    clip : float
        The bound C, between 1e-50 and 1e50.
    norm : {"l2", "l1"}, default="l2"
        In which norm gradients are clipped; that of all classes together.
    persons : Persons, default=None
        By whose row weights clipped gradients count, and of whom batches consist then.
    of_gains : bool, default=False
        Whether gains alone are asked for, which need no row's norm.
    """

    local_attrs = Rows.local_attrs | {"read", "row_scores", "_persons", "_caps", "_firsts"}

    def __init__(self, X, y, loss, *, constant, clip, norm="l2", persons=None, of_gains=False):
        row_weights = row_weights_of(persons)
        tile = MAX_TILE_ROWS if issparse(X) else tile_rows(X.shape[1])
        super().__init__(X, tile, row_args=(y, None, row_weights))
        self.loss, self.constant = loss, float(constant)
        self.norm = check_choice(norm, "norm", LENGTH_OF_GAINS)
        self._clip = check_magnitude(clip, "clip")
        self._persons = persons
        self._indices = None
        if getattr(X, "workers", None) is None:
            self._open()
        if of_gains or is_sent(self):
            return
        self._caps = map_over(self, _largest_residuals, self._clip, persist=True)
        self.row_args = y, self._caps, row_weights

    def _open(self):
        self.read = open_rows(self.X).read
        self.row_scores = row_scores_function(self.shape[1], self.loss.weights_shape)

    def _batch(self, indices):
        """Return the rows of a batch; tiles are of one part each."""
        if indices is None:
            return self
        indices = self._persons.rows_of(indices) if self._persons else indices
        offsets = np.searchsorted(indices, self.offsets).tolist()
        return self._changed(_indices=indices, _firsts=self.offsets[:-1], offsets=offsets)

    def __getitem__(self, rows):
        return _Tile(self, rows if self._indices is None else self._indices[rows])

    def detach(self, number):
        batch = super().detach(number)
        if self._indices is not None:
            own = self._indices[slice(*self.offsets[number : number + 2])]
            steps = np.diff(own, prepend=self._firsts[number])
            # In as few bytes as the longest step takes: they are most of what is sent.
            batch._indices = steps.astype(np.min_scalar_type(steps.max(initial=0)))
        return batch

    def attach(self, X, row_args):
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
        ndarray of float64, shaped as `weights`
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return sum_over(self._batch(indices), _add_gradients, np.zeros(weights.shape), weights)

    @np.errstate(over="ignore", invalid="ignore")
    def gains(self, start, weights, indices, units):
        """Return the sums of what a batch's rows gain on the way from some weights to others.

        Of each row the product of what its score moves by and its residual, at the start with a
        minus and at the end, and the squared residual at the start. Each is clipped, and all are
        scaled so that a row's three values have a norm of at most C.

        Parameters
        ----------
        start, weights : ndarray of shape (*loss.weights_shape, n_columns + (constant != 0))
            That do not depend on the rows, or were released.
        indices : sorted ndarray of int64, or None
            The rows, or the persons, of the batch; None for all.
        units : (float, float)
            The moves and the residuals at which they are clipped.

        Returns
        -------
        ndarray of float64, shaped as `weights`
            The three values, and zeros.
        """
        ways = start, weights, units
        gains = sum_over(self._batch(indices), _add_gains, np.zeros(3), *ways)
        sums = np.zeros(weights.shape)
        sums.flat[:3] = gains * (self._clip / LENGTH_OF_GAINS[self.norm])
        return sums


def _largest_residuals(tile, clip):
    """C over each row's norm, rounded down by more than all rounding up to the residual."""
    n_columns = tile.block.shape[1]
    loss = tile.table.loss
    margin = 1.0 - (n_columns + math.prod(loss.weights_shape) + 16) * EPS
    with np.errstate(over="ignore", divide="ignore"):
        if tile.table.norm == "l1":
            norms = _row_l1_norms(tile.block) + abs(tile.table.constant)
        else:
            norms = np.hypot(row_norms(tile.block), tile.table.constant)
        caps = np.minimum(clip / norms * margin, LARGEST_CAP)
    return np.where(norms <= LARGEST_NORM, caps, 0.0)


@np.errstate(all="ignore")
def sum_gains(moved, first, last, units, row_weights):
    """Return the exact sums of what rows gain, of which one has a length of `LENGTH_OF_GAINS`.

    Parameters
    ----------
    moved, first, last : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        What scores move by, and the residuals before and after.
    units : (float, float)
        The norms at which moves and residuals are clipped.
    row_weights : ndarray of shape (n_rows,), or None
        By which rows count.

    Returns
    -------
    ndarray of shape (3,)
    """
    moved, first, last = (
        _shortened(each.reshape(len(each), -1) / unit)
        for each, unit in zip((moved, first, last), (*units, units[1]), strict=True)
    )
    products = -first * moved, last * moved, PART_OF_SPREAD * first**2
    gains = np.stack([row_sums(product) for product in products], axis=1)
    # Towards zero: no unit's norm grows. What overflowed to no number is zero.
    steps = np.trunc(times_row_weights(np.nan_to_num(gains) / GAIN_STEP, row_weights))
    return GAIN_STEP * steps.sum(axis=0)


def _row_l1_norms(block):
    if issparse(block):
        return np.ravel(abs(block).sum(axis=1))
    return row_sums(np.abs(block))


def _shortened(vectors):
    return vectors / np.maximum(1.0, row_norms(vectors))[:, np.newaxis]


class _Tile:
    """Some rows of a batch, valid until the next are read, and what goes with them.

    A row's residual depends, to the last bit, on the row, its label and the weights alone:
    not on its place or on the other rows of the batch.

    Parameters
    ----------
    table : ClippedSums
    rows : slice or sorted ndarray of int64
        Of one part.
    """

    def __init__(self, table, rows):
        self.table, self.block = table, table.read(rows)
        self.y, self.caps, self.row_weights = (_taken(values, rows) for values in table.row_args)

    def scores(self, weights):
        """Return the rows' scores."""
        table = self.table
        d = self.block.shape[1]
        scores = table.row_scores(self.block, weights[..., :d])
        if table.constant:
            scores += table.constant * weights[..., d]
        return scores

    def clipped(self, weights):
        """Return the rows' clipped residuals, times their row weights."""
        residual = self.table.loss.residual(self.scores(weights), self.y)
        if self.caps is None:
            self.caps = _largest_residuals(self, self.table._clip)
        if residual.ndim > 1:
            _clip_vectors(residual, self.caps, self.table.norm)
        else:
            _clip_numbers(residual, self.caps)
        return times_row_weights(residual, self.row_weights)


def _taken(values, rows):
    if values is None or isinstance(rows, slice):
        return slice_row_args(values, rows)
    return values.take(rows, None, None, "clip")


def _add_gradients(total, tile, weights):
    block = tile.block
    residual = tile.clipped(weights)
    constant = tile.table.constant
    d = block.shape[1]
    total[..., :d] += block.T.dot(residual).T
    if constant:
        total[..., d] += constant * np.add.reduce(residual, axis=0)


def _add_gains(total, tile, start, weights, units):
    scores = [tile.scores(one) for one in (start, weights)]
    residuals = [tile.table.loss.residual(each, tile.y) for each in scores]
    total += sum_gains(scores[1] - scores[0], *residuals, units, tile.row_weights)


def sum_rounding(n_columns, n_outputs, clip, batch_bound):
    """Bound the rounding error of a sum of clipped gradients, from public numbers.

    Parameters
    ----------
    n_columns : int
        Of the table, without the constant feature.
    n_outputs : int
        How many scores a row has.
    clip : float
    batch_bound : int
        No batch has more rows, or persons, of whom each may have any number of rows.

    Returns
    -------
    float
        In the norm of the clip. The computed sum is within it of the exact sum of the summands,
        each of which has exactly a norm of at most `clip`.
    """
    additions = max_additions(MAX_TILE_ROWS) + 3
    summed = additions * 0.5 * EPS * batch_bound * clip
    underflow = 4.0 * 2.0**LOG2_MAX_ROWS * n_outputs * (n_columns + 1) * TINY
    return 1.01 * (summed + underflow)


def _clip_numbers(residual, caps):
    """Clip numbers to [-cap, cap] in place; what is no number becomes one of them."""
    np.fmin(residual, caps, out=residual)
    np.fmax(residual, -caps, out=residual)


def _clip_vectors(residual, caps, norm):
    """Scale lines down to norms of at most the caps, in place.

    A line becomes zero if its norm, or the factor that it needs, cannot be told precisely.
    """
    if norm == "l1":
        norms = row_sums(np.abs(residual))
    else:
        norms = row_norms(residual)
    factors = np.ones_like(norms)
    np.divide(caps, norms, out=factors, where=norms > caps)
    residual *= factors[:, None]
    precise = (norms >= LEAST_NORM) & (norms < np.inf) & (factors >= TINY)
    if not precise.all():
        residual[~precise] = 0.0


def row_scores_function(n_columns, weights_shape):
    """Return a function of a block of rows and weights that gives the scores of the rows.

    A row's score depends on nothing but the row and the weights, to the last bit. A matrix product
    rounds it by where the row stands in the block and by how many rows there are; in a sampled
    batch these depend on the other rows of the batch.

    The BLAS library multiplies one row at a time. A library that uses the addresses of arrays may
    give equal rows different scores. This is tried here on made-up numbers, and if so NumPy's own
    sums are used. SciPy multiplies sparse rows one at a time.

    Parameters
    ----------
    n_columns : int
    weights_shape : tuple
        () for one score, (k,) for k of them.

    Returns
    -------
    callable
        Of a C-contiguous block or CSR matrix of shape (n, n_columns) and weights of shape
        (*weights_shape, n_columns), of float64.
    """
    row = np.sin(np.arange(1.0, n_columns + 1.0))
    weights = np.resize(np.cos(row), (*weights_shape, n_columns))
    scores = _by_the_library(np.tile(row, (COMPARED_ROWS, 1)), weights)
    dense = _by_the_library if (scores == scores[0]).all() else _by_sums
    return lambda block, weights: block @ weights.T if issparse(block) else dense(block, weights)


def _by_the_library(block, weights):
    return np.matmul(block[:, None, :], weights.T)[:, 0]


def _by_sums(block, weights):
    if weights.ndim == 1:
        return row_sums(block * weights)
    return np.column_stack([row_sums(block * one) for one in weights])
