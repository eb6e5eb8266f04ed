r"""The noisy mean row, about which the rows of a linear model are clipped.

A gradient is the product of a residual and a row. Rows in one corner of the ball, such as amounts
scaled by wide public bounds, have a large norm although they hardly vary. The clip, and with it the
noise, is proportional to their norm, but only their variation helps to fit the weights. Once the
mean row is subtracted, the norm is small. One Gaussian release contains the mean row and the mean
squared norm, from which the mean squared distance from the released center is computed. Its
sensitivity and the rule for its budget are derived in ``docs/theory/guarantees.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import Rows, as_dense, sum_over
from skdp._data._persons import row_weights_of
from skdp._data._row_wise import row_norms
from skdp._data._sums import exact_sum
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
# centered; see `rounding_factor`.
MIN_CONSTANT = 0.05
# Relative slack in a budget fraction, for rounding errors in noise multipliers.
SLACK = 1e-6


@dataclass(frozen=True, kw_only=True)
class RowCenter(FrozenValue):
    """Release of the mean row and of the spread of rows around it.

    Parameters
    ----------
    n_rows, n_columns : int
    mechanism : GaussianMechanism
    """

    n_rows: int
    n_columns: int
    mechanism: GaussianMechanism

    def __post_init__(self):
        self.mechanism.check_size(self.n_columns + 1)

    def plan(self):
        """Return the plan of the release."""
        return plan_release(self.mechanism, self.run, stage_name="the mean row")

    def run(self, X, norm, source, persons=None):
        """Return the center and the unit of the centered rows.

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
        unit : float
            In (0, 1], relative to `norm`.
        """
        total = np.zeros(self.n_columns + 1)
        row_args = (row_weights_of(persons),)
        sum_over(Rows(X), _add_rows, total, norm, self.n_rows, row_args=row_args)
        means = self.mechanism.release(total, random_state=source) / self.n_rows
        center = means[:-1] / max(1.0, float(np.linalg.norm(means[:-1])))
        noise = self.n_columns * (self.mechanism.deviation(len(means)) / self.n_rows) ** 2
        # The noise contributes to the squared norm of the released mean, and to the squared
        # distances between the rows and this mean.
        spread = means[-1] - (float(means[:-1] @ means[:-1]) - noise) + noise
        unit = UNIT_PER_SPREAD * math.sqrt(max(spread, noise, 0.0))
        return norm * center, min(max(unit, MIN_UNIT), 1.0)


def _add_rows(total, block, row_weights, norm, n_rows):
    """Add the rows, scaled down to norm 1, and their squared norms."""
    block = as_dense(block)
    with np.errstate(all="ignore"):
        norms = row_norms(block)
        # As in `BoundedRows`: rounded down so that no row is longer than 1.
        margin = 1.0 - 2.0 * (block.shape[1] + 4) * np.finfo(np.float64).eps
        factors = np.minimum(margin / norm, margin / norms)
        factors = np.where(np.isfinite(norms), factors, 0.0)
        scaled = np.where(factors[:, np.newaxis] == 0.0, 0.0, block) * factors[:, np.newaxis]
    squares = np.minimum(row_norms(scaled) ** 2, 1.0)
    values = np.column_stack([scaled, squares])
    total += exact_sum(values, (-1.0, 1.0), n_samples=n_rows, row_weights=row_weights)


def rounding_factor(rows):
    """Return the factor by which centering increases the rounding error of sums of gradients.

    Rows are not centered when they are read: a gradient is the residual times the row minus the
    residual times the center. The residual is at most the clip divided by the norm of the centered
    row with its constant feature. So each product is at most the clip times (1 plus the norm of the
    center divided by the constant).
    """
    if rows.center is None:
        return 1.0
    return 1.0 + 2.0 * (1.0 + rows.data_norm / (MIN_UNIT * rows.constant))


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
    # A row adds a vector u of norm a <= 1 and a**2. One row changes the sums by at most
    # sqrt(1 + 1), two rows by sqrt((a + b)**2 + (a**2 - b**2)**2) <= 2.
    sensitivity = math.nextafter(math.sqrt(2.0), math.inf)
    if remaining.neighbors.sensitivity_factor == 2:
        sensitivity = 2.0
    whole = GaussianMechanism(remaining.epsilon, remaining.delta, sensitivity)
    noise_norm = whole.scale / shape.n_rows * math.sqrt(max(n_columns, MIN_COLUMNS))
    low, high = CENTER_FRACTIONS
    fraction = min(max((noise_norm / CENTER_NOISE_NORM) ** 2, low), high)
    if noise_norm / math.sqrt(fraction) > MAX_CENTER_NOISE_NORM:
        return rows
    scale = whole.scale / math.sqrt(fraction)
    mechanism = GaussianMechanism.from_scale(scale, sensitivity, remaining.delta)
    rest = Gaussian(whole.noise_multiplier / math.sqrt(1.0 - fraction - SLACK))
    epsilon = get_epsilon(rest, remaining.delta)
    center = RowCenter(n_rows=shape.n_rows, n_columns=n_columns, mechanism=mechanism)
    return replace(rows, center=center, remaining=replace(remaining, epsilon=epsilon))
