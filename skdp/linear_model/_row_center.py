r"""The noisy mean row, about which the rows of a linear model are scaled and clipped.

A gradient is the product of a residual and a row. Rows in one corner of their ball, such as amounts
that are scaled by wide public bounds, have a large norm although they hardly vary. The clip, and
with it the noise, is proportional to their norm, but only their variation is useful to the weights.
After the mean row is subtracted, the norm is small. One Gaussian release contains the mean row, the
mean squares of its columns and the mean squared norm, from which the mean squared distance from the
released center and the variance of each column are computed. If one of two classes is rare, columns
are divided by their standard deviations unless noise hides these. Otherwise, a few columns with a
large variance would determine the norm of the rows, and the noise would hide the other columns. The
sensitivity and the rule for the budget are derived in ``docs/theory/guarantees.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import Rows, as_dense, sum_over
from skdp._data._persons import row_weights_of
from skdp._data._row_wise import row_sums
from skdp._data._sums import sum_grid, sum_of_steps
from skdp.accounting import Gaussian, get_epsilon
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import plan_release
from skdp.utils._values import FrozenValue

# Lower and upper limit of the center's fraction of mu squared. Between them, the fraction makes
# the norm of the center's noise, relative to the bound on rows, equal to `CENTER_NOISE_NORM`. All
# constants were tuned on the training rows of the tables of docs/benchmarks/many_tables.py, with
# numbers scaled by public bounds.
CENTER_FRACTIONS = (0.001, 0.2)
CENTER_NOISE_NORM = 0.1
# The noise is planned for at least this many columns, since it must also be small relative to the
# distance of the rows from the center.
MIN_COLUMNS = 24
# The fraction is increased, up to a limit, until the noise in the variance of a column is this
# number over the number of columns. The next constants are for the factors of the columns: the
# variance that is added to each, relative to the mean variance, and the multiple of the noise in a
# variance that is added. All of them were chosen by the balanced accuracy of linear classifiers on
# one half of Adult's training rows for fits to the other half, of which 1 % were positive.
VARIANCE_NOISE = 0.15
MAX_VARIANCES_FRACTION = 0.05
ADDED_VARIANCE = 0.03
ADDED_NOISE = 0.5
# Largest factor of a column; it bounds rounding errors.
MAX_COLUMN_FACTOR = 16.0
# Columns are scaled if the released frequency of one of two classes is at most this. Scaling always
# would add .004 to the AUC on Adult at epsilon = 1, but take .003 from it on bank_marketing (rarer
# class: 11 %) and, at epsilon = 100, .006 on credit_default, whose rare categories then have large
# weights (docs/benchmarks/design_choices.py, training rows).
MAX_SCALED_FREQUENCY = 0.05
# Factor of the squares in the release, rounded down from the root of 1/2; see the proof.
SQUARES_FACTOR = 0.7071067811865475
# Rows are not centered if the noise in the center would have a larger norm than this.
MAX_CENTER_NOISE_NORM = 0.35
# Unit of centered rows, relative to their root mean squared norm. The gradients of longer rows are
# shortened.
UNIT_PER_SPREAD = 1.25
# Smallest unit, relative to the bound on rows. It bounds rounding errors.
MIN_UNIT = 0.05
# Larger tables are not centered, because the sums require dense copies of blocks of a sparse table.
MAX_COLUMNS = 2000
# Smallest value of the constant feature, relative to the bound on rows, with which rows are
# centered; see `center_rounding_factor`.
MIN_CONSTANT = 0.05
# Number of values of rows that stay in a processor's cache together with their squares.
CACHED_VALUES = 1 << 15
# Relative slack in a budget fraction, for rounding errors in noise multipliers.
SLACK = 1e-6


@dataclass(frozen=True, kw_only=True)
class RowCenter(FrozenValue):
    """The release of the mean row and of the spread of rows and of columns around it.

    Parameters
    ----------
    n_rows, n_columns : int
    mechanism : GaussianMechanism
    """

    n_rows: int
    n_columns: int
    mechanism: GaussianMechanism

    def __post_init__(self):
        self.mechanism.check_size(2 * self.n_columns + 1)

    def plan(self):
        """Return the plan of the release."""
        return plan_release(self.mechanism, self.run, stage_name="the mean row", unit="data_norm")

    def run(self, X, norm, source, persons=None):
        """Return the center, the factors of the columns and the unit of the centered rows.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        norm : float
            Norm to which rows are scaled down for this release.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        center : ndarray of shape (n_columns,)
            Its norm is at most `norm`.
        column_factors : ndarray of shape (n_columns,)
            In (0, `MAX_COLUMN_FACTOR`]. With them, the mean squared norm of the centered rows is
            about the same as without them.
        unit : float
            In (0, 1], relative to `norm`.
        """
        n_columns = self.n_columns
        total = np.zeros(2 * n_columns + 1)
        row_args = (row_weights_of(persons),)
        sum_over(Rows(X), _add_rows, total, norm, self.n_rows, row_args=row_args)
        means = self.mechanism.release(total, random_state=source) / self.n_rows
        row = means[:n_columns]
        center = row / max(1.0, float(np.linalg.norm(row)))
        noise_std = self.mechanism.deviation(len(means)) / self.n_rows
        noise = n_columns * noise_std**2
        # The noise contributes to the squared norm of the released mean, and to the squared
        # distances between the rows and this mean.
        spread = means[-1] / SQUARES_FACTOR - (float(row @ row) - noise) + noise
        spread = max(spread, noise, 0.0)
        variances = means[n_columns:-1] / SQUARES_FACTOR - row**2 + 2.0 * noise_std**2
        factors = _column_factors(variances, spread, noise_std / SQUARES_FACTOR)
        unit = UNIT_PER_SPREAD * math.sqrt(spread)
        return norm * center, factors, min(max(unit, MIN_UNIT), 1.0)


def is_rare(frequency):
    """Return True if columns are scaled for a released frequency of the second of two classes."""
    return min(frequency, 1.0 - frequency) <= MAX_SCALED_FREQUENCY


def _column_factors(variances, spread, noise_std):
    """Return factors by which columns are multiplied so that their variances become more equal.

    They leave the mean squared norm of the centered rows about unchanged. This is post-processing
    of released numbers.

    Parameters
    ----------
    variances : ndarray of shape (n_columns,)
    spread : float
        Their sum, which is known with less noise than the sum of the noisy numbers.
    noise_std : float
        Standard deviation of the noise in a variance.

    Returns
    -------
    ndarray of shape (n_columns,)
    """
    factors = np.ones(len(variances))
    variances = np.maximum(variances, 0.0)
    total = variances.sum()
    if not (total > 0.0 and spread > 0.0):
        return factors
    variances = variances * (spread / total)
    added = ADDED_VARIANCE * spread / len(variances) + ADDED_NOISE * noise_std
    factors = 1.0 / np.sqrt(variances + added)
    factors = factors * math.sqrt(spread / float(factors**2 @ variances))
    return np.minimum(factors, MAX_COLUMN_FACTOR)


def _add_rows(total, block, row_weights, norm, n_rows):
    """Add the rows, scaled down to norm 1, the squares of their values, and their squared norms.

    Both kinds of squares are multiplied by `SQUARES_FACTOR`. The sums are exact, as those of
    `exact_sum`, so they do not depend on the size of the parts of the block.
    """
    block = as_dense(block)
    n_rows_of_part = max(1, CACHED_VALUES // block.shape[1])
    buffers = np.empty((2, min(n_rows_of_part, len(block)), block.shape[1]))
    # No magnitude is larger than 1, and the weights of the rows add up to at most `n_rows`.
    grid = sum_grid(1.0, n_rows)
    steps = np.zeros_like(total)
    for start in range(0, len(block), n_rows_of_part):
        rows = slice(start, start + n_rows_of_part)
        part = block[rows]
        scaled, squares = buffers[:, : len(part)]
        squared_norms = _scale_rows(part, norm, scaled, squares)
        squares *= SQUARES_FACTOR
        squared_norms *= SQUARES_FACTOR
        sums = []
        for values in (scaled, squares, squared_norms[:, np.newaxis]):
            if row_weights is not None:
                values *= row_weights[rows, np.newaxis]
            sums.append(sum_of_steps(values, grid))
        steps += np.concatenate(sums)
    total += grid * steps


def _scale_rows(block, norm, scaled, squares):
    """Write the rows of a block, scaled down to norm 1, and the squares of their values to arrays.

    The squared norms of the scaled rows are returned. A row whose norm overflows becomes zero.
    """
    with np.errstate(all="ignore"):
        norms = np.sqrt(row_sums(np.multiply(block, block, out=squares)))
        # As in `BoundedRows`: rounded down so that no row is longer than 1.
        margin = 1.0 - 2.0 * (block.shape[1] + 4) * np.finfo(np.float64).eps
        factors = np.minimum(margin / norm, margin / norms)
        np.multiply(block, factors[:, np.newaxis], out=scaled)
    is_zero = ~np.isfinite(norms)
    if is_zero.any():
        scaled[is_zero] = 0.0
    np.multiply(scaled, scaled, out=squares)
    return np.minimum(np.sqrt(row_sums(squares)) ** 2, 1.0)


def center_rounding_factor(rows):
    """Return the factor by which centering increases the rounding error of sums of gradients.

    Rows are not centered when they are read: a gradient is the residual times the row minus the
    residual times the center, both times the factors of the columns. Let a be the largest norm of
    the center times these factors, over the constant feature. The residual is at most the clip
    over the norm of the centered and scaled row with its constant feature, so it is at most the
    clip over the constant. The second product is therefore at most a times the clip, and the
    first one, which is the gradient plus the second product, at most 1 + a times the clip. The
    entry of the constant feature is not centered: its error is the bound without centering. The
    result is 1 + 2 (1 + a), which bounds the sum of the three errors.

    Parameters
    ----------
    rows : RowsFit
        The bound on the norm of rows and the value of the constant feature are read.
    """
    # The norm of the center is at most `data_norm`. Centered rows are divided by a unit of at least
    # `MIN_UNIT`, and so is the center; the constant feature is not.
    center_norm = MAX_COLUMN_FACTOR * rows.data_norm
    return 1.0 + 2.0 * (1.0 + center_norm / (MIN_UNIT * rows.constant))


def reserve_for_center(rows, shape):
    """Return the `RowsFit` with a fraction of the Gaussian budget reserved for the center.

    Gaussian releases whose fractions of mu squared add up to 1 together form one Gaussian release
    (Dong, Roth and Su 2022). This function is therefore for weights computed with full-batch
    Gaussian steps. Rows are not centered, and the `RowsFit` is returned unchanged, if delta = 0, if
    there is no baseline, or if the noise in the center would cost more than centering gains.

    Parameters
    ----------
    rows : RowsFit
    shape : TableShape

    Returns
    -------
    RowsFit
    """
    remaining = rows.remaining
    n_columns = shape.n_columns
    is_possible = rows.baseline is not None and remaining.delta > 0.0
    if not is_possible or n_columns > MAX_COLUMNS or rows.constant < MIN_CONSTANT * rows.data_norm:
        return rows
    # A row adds a vector u of norm a <= 1, and the squares of its values and a**2, both times
    # sqrt(1/2). One row changes the sums by at most sqrt(1 + 1), two rows by
    # sqrt((a + b)**2 + (a**2 - b**2)**2) <= 2.
    sensitivity = math.nextafter(math.sqrt(2.0), math.inf)
    if remaining.neighbors.sensitivity_factor == 2:
        sensitivity = 2.0
    whole = GaussianMechanism(remaining.epsilon, remaining.delta, sensitivity)
    noise_norm = whole.scale / shape.n_rows * math.sqrt(max(n_columns, MIN_COLUMNS))
    low, high = CENTER_FRACTIONS
    fraction = min(max((noise_norm / CENTER_NOISE_NORM) ** 2, low), high)
    variance_noise = whole.scale / shape.n_rows / SQUARES_FACTOR * n_columns
    variances_fraction = min((variance_noise / VARIANCE_NOISE) ** 2, MAX_VARIANCES_FRACTION)
    fraction = max(fraction, variances_fraction)
    if noise_norm / math.sqrt(fraction) > MAX_CENTER_NOISE_NORM:
        return rows
    scale = whole.scale / math.sqrt(fraction)
    mechanism = GaussianMechanism.from_scale(scale, sensitivity, remaining.delta)
    rest = Gaussian(whole.noise_multiplier / math.sqrt(1.0 - fraction - SLACK))
    epsilon = get_epsilon(rest, remaining.delta)
    center = RowCenter(n_rows=shape.n_rows, n_columns=n_columns, mechanism=mechanism)
    return replace(rows, center=center, remaining=replace(remaining, epsilon=epsilon))
