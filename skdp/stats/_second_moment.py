r"""Plans of the noisy second moment and mean of rows with bounded norm.

Rows are divided by the bound on their norm, so :math:`\|x_i\| \le 1`. The release is one
vector. It contains the upper triangle of :math:`\sum x_i x_i^\top`, with off-diagonal entries
multiplied by :math:`\sqrt 2` so that distances are Frobenius norms. If the mean is released, the
vector also contains :math:`\sqrt 2\, c \sum x_i`. These are the entries of
:math:`\sum z_i z_i^\top` for :math:`z_i = (x_i, c)`, except for the last one, which is public. See
the derivation in ``docs/theory/encoders.md``.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from skdp._data._clipping import clip_rows
from skdp._data._parts import Rows, as_dense, block_size, max_additions, read_block, sum_over
from skdp._data._persons import row_weights_of
from skdp._data._symmetric import pack_symmetric, unpack_symmetric
from skdp.accounting import Guarantee
from skdp.mechanisms._plan import plan_release, vector_noise
from skdp.stats._moments import UNIT_OF_SUMS
from skdp.utils._values import FrozenValue

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2

# Number of values that are clipped at a time.
CACHED_VALUES = 1 << 16

# Name of the released values in privacy statements.
SECOND_MOMENT = "the second moment"
# The constant feature c. It raises the noise of the second moment by 22 % under add/remove.
MEAN_WEIGHT = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondMoment(FrozenValue):
    """The second moment and the mean of rows, with the noise of their release.

    Parameters
    ----------
    guarantee : Guarantee
        With delta = 0 the Gamma-norm mechanism is used, otherwise Gaussian noise.
    n_rows, n_columns : int
        Public shape of the table.
    data_norm : float, default=1.0
        Bound on the norm of a row. Rows are clipped to it.
    center : float or ndarray of shape (n_features,), default=0.0
        Vector that is subtracted from each row before clipping.
    constant : float, default=0.5
        The constant c. With 0, the mean about `center` is not released.

    Raises
    ------
    ValueError
        If epsilon is too small for the number of columns.
    """

    guarantee: Guarantee
    n_rows: int
    n_columns: int
    data_norm: float = 1.0
    center: np.ndarray | float = 0.0
    constant: float = MEAN_WEIGHT

    def __post_init__(self):
        self.mechanism.check_size(self.size)

    @property
    def size(self):
        """Number of values that are released together."""
        d = self.n_columns
        n_products = d * (d + 1) // 2
        if self.constant:
            return n_products + d
        return n_products

    @cached_property
    def mechanism(self):
        """The mechanism that adds noise to the packed second moment and the mean."""
        sensitivity = second_moment_sensitivity(self.constant, self.guarantee.relation)
        # The error in a sum of m products is at most m + 1 units of roundoff times the sum of their
        # magnitudes (Higham 2002, section 3.1). The sum of all outer products of magnitudes has a
        # norm of at most n (1 + c^2).
        additions = max_additions(block_size(self.n_columns)) + 16
        rounding = 1.1 * UNIT_ROUNDOFF * self.n_rows * additions
        rounding = 2.0 * rounding * (1.0 + self.constant**2)
        return vector_noise(self.guarantee, sensitivity * (1.0 + 1e-12) + rounding)

    def statistics(self, X, persons=None):
        """Return the vector to which noise is added."""
        d = self.n_columns
        total = np.zeros((d + 1, d))
        small = (self.center, self.data_norm)
        sum_over(
            Rows.wrap(X), _add_second_moment, total, *small, row_args=(row_weights_of(persons),)
        )
        if self.constant:
            mean = self.constant * total[d]
        else:
            mean = total[d, :0]
        return np.concatenate([pack_symmetric(total[:d]), math.sqrt(2.0) * mean])

    def release(self, X, source, persons=None):
        """Return the noisy mean, about `center`, and the noisy covariance of the rows.

        Parameters
        ----------
        X : validated table, or Rows
        source : RandomSource
        persons : Persons, default=None
            Person of each row.

        Returns
        -------
        mean : ndarray of shape (n_features,)
        covariance : ndarray of shape (n_features, n_features)
            Symmetric; divided by n - 1 as in scikit-learn.
        """
        released = self.mechanism.release(self.statistics(X, persons), random_state=source)
        n = self.n_rows
        d = self.n_columns
        n_triangle = d * (d + 1) // 2
        second = unpack_symmetric(released[:n_triangle], d) / n
        mean = np.zeros(d)
        if self.constant:
            mean = released[n_triangle:] / (n * self.constant * math.sqrt(2.0))
            mean /= max(1.0, np.linalg.norm(mean))
        covariance = (second - np.outer(mean, mean)) * (n / max(n - 1, 1))
        return mean * self.data_norm, covariance * self.data_norm**2


def _add_second_moment(total, block, row_weights, center, data_norm):
    """Add a block's weighted second moment to the first d rows of `total`, its sum to the last."""
    block = _clipped_rows(as_dense(block), center, data_norm)
    if row_weights is None:
        total[-1] += np.ones(len(block)).dot(block)
    else:
        total[-1] += row_weights.dot(block)
        block *= np.sqrt(row_weights)[:, np.newaxis]
    total[:-1] += block.T.dot(block)


def _clipped_rows(block, center, data_norm):
    """Return the centered rows divided by the bound on their norm, and clipped to norm 1.

    A few rows are processed at a time, so intermediate arrays stay in the processor's cache.
    """
    clipped = np.empty(block.shape)
    is_centered = np.any(center)
    size = max(1, CACHED_VALUES // block.shape[1])
    for start in range(0, len(block), size):
        rows = slice(start, start + size)
        with np.errstate(all="ignore"):
            if is_centered:
                scaled = (block[rows] - center) / data_norm
            else:
                scaled = block[rows] / data_norm
            clipped[rows] = clip_rows(scaled, 1.0)
    return clipped


def second_moment_sensitivity(constant, relation):
    r"""Return the L2 sensitivity of the packed second moment, for rows of norm 1 and c at most 1.

    Under add/remove, it is :math:`\sqrt{1 + 2 c^2}`. Under replace-one, let t be the cosine of the
    angle between the two rows. The distance is largest at :math:`t = -c^2`, where it is
    :math:`\sqrt 2 (1 + c^2)`.
    """
    if relation == "replace_one":
        return math.sqrt(2.0) * (1.0 + constant**2)
    return math.sqrt(1.0 + 2.0 * constant**2)


def plan_covariance(shape, guarantee):
    """Return the plan of the covariances of columns within bounds.

    Columns are scaled to [-1, 1] by their bounds, and divided by the square root of the number of
    columns. So the norm of a row is at most 1.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,). It
        returns the noisy correlations and standard deviations. The scaled variance in every
        direction is at least the standard deviation of the noise, and at most the largest one of
        rows within the bounds.
    """
    moment = SecondMoment(guarantee=guarantee, n_rows=shape.n_rows, n_columns=shape.n_columns)
    run = partial(_release_covariance, moment)
    return plan_release(
        moment.mechanism, run, guarantee=guarantee, stage_name=SECOND_MOMENT, unit=UNIT_OF_SUMS
    )


def _release_covariance(moment, X, source, low, high, persons=None):
    """Return the noisy correlations and standard deviations of columns within bounds."""
    n_rows = moment.n_rows
    half_range = high / 2 - low / 2
    unit = half_range * math.sqrt(len(half_range))
    rows = Rows(X, read=partial(_read_scaled, low, high, unit))
    values, vectors = np.linalg.eigh(moment.release(rows, source, persons)[1])
    # Largest variance, in any direction, of rows of norm 1.
    max_variance = n_rows / max(n_rows - 1, 1)
    min_variance = min(moment.mechanism.deviation(moment.size) / n_rows, max_variance)
    roots = vectors * np.sqrt(np.clip(values, min_variance, max_variance))
    stds = np.linalg.norm(roots, axis=1)
    roots /= stds[:, np.newaxis]
    max_std = math.sqrt(max_variance / len(half_range))
    return roots @ roots.T, unit * np.minimum(stds, max_std)


def _read_scaled(low, high, unit, X, rows):
    """Return a slice of rows, clipped to the bounds and divided so that norms are at most 1."""
    return (np.clip(read_block(X, rows), low, high) - (low + (high - low) / 2)) / unit
