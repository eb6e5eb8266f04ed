r"""The noisy second moment of rows of bounded norm, and with it their mean.

Rows are divided by the bound on their norm, so that :math:`\|x_i\| \le 1`. The release is one
vector: the upper triangle of :math:`\sum x_i x_i^\top`, off-diagonal entries times
:math:`\sqrt 2` so that distances are Frobenius norms, followed by :math:`\sqrt 2\, c \sum x_i`
where the mean is wanted: these are the entries of :math:`\sum z_i z_i^\top` for
:math:`z_i = (x_i, c)` but the last, which is public. Derived in ``docs/encoders.md``.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from skdp._data._parts import Rows, as_dense, block_size, max_additions, read_block, sum_over
from skdp._data._persons import row_weights_of
from skdp.mechanisms._plan import vector_noise
from skdp.stats._moments import StatisticPlan
from skdp.utils import clip_rows
from skdp.utils._symmetric import pack_symmetric, unpack_symmetric

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2

# The constant feature c. The second moment has 22 % more noise (add/remove) than without a mean.
MEAN_WEIGHT = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondMoment(StatisticPlan):
    """What will be released of a table.

    Parameters
    ----------
    guarantee : Guarantee
        delta = 0 takes the Gamma-norm mechanism.
    n_rows, n_columns : int
        The table's.
    data_norm : float, default=1.0
        The bound on a row's norm.
    center : float or ndarray of shape (n_features,), default=0.0
        What is subtracted from each row before it is clipped.
    constant : float, default=0.5
        The constant c, 0 where no mean about `center` is released.

    Raises
    ------
    ValueError
        If epsilon is too small for so many columns.
    """

    n_rows: int
    n_columns: int
    data_norm: float = 1.0
    center: np.ndarray | float = 0.0
    constant: float = MEAN_WEIGHT

    released = "the second moment"

    def __post_init__(self):
        self.check_size(self.size)

    @property
    def size(self):
        """How many values are released."""
        d = self.n_columns
        return d * (d + 1) // 2 + (d if self.constant else 0)

    @cached_property
    def mechanism(self):
        moved = second_moment_sensitivity(self.constant, self.guarantee.relation)
        # A sum of m products is off by m + 1 units of roundoff of the sum of magnitudes at most
        # (Higham 2002, section 3.1), and the sum of all outer products of magnitudes has a norm of
        # at most n (1 + c^2).
        additions = max_additions(block_size(self.n_columns)) + 16
        rounding = 1.1 * UNIT_ROUNDOFF * self.n_rows * additions
        rounding = 2.0 * rounding * (1.0 + self.constant**2)
        return vector_noise(self.guarantee, moved * (1.0 + 1e-12) + rounding)

    def statistics(self, X, persons=None):
        """Return the vector that is released, without noise."""
        d = self.n_columns
        total = np.zeros((d + 1, d))
        small = (self.center, self.data_norm)
        sum_over(
            Rows.wrap(X), _add_second_moment, total, *small, row_args=(row_weights_of(persons),)
        )
        mean = self.constant * total[d] if self.constant else total[d, :0]
        return np.concatenate([pack_symmetric(total[:d]), math.sqrt(2.0) * mean])

    def release(self, X, source, persons=None):
        """Return the noisy mean, about `center`, and the noisy covariance of the rows.

        Parameters
        ----------
        X : validated table, or Rows
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        mean : ndarray of shape (n_features,)
        covariance : ndarray of shape (n_features, n_features)
            Symmetric; over n - 1 as in scikit-learn.
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
    with np.errstate(all="ignore"):
        block = clip_rows((as_dense(block) - center) / data_norm, 1.0)
    total[-1] += (np.ones(len(block)) if row_weights is None else row_weights).dot(block)
    if row_weights is not None:
        block *= np.sqrt(row_weights)[:, np.newaxis]
    total[:-1] += block.T.dot(block)


def second_moment_sensitivity(constant, relation):
    r"""Return the L2 sensitivity of the packed second moment of rows of norm 1, for c at most 1.

    Add/remove: :math:`\sqrt{1 + 2 c^2}`. Replace-one: for rows at an angle of cosine t it is
    largest at :math:`t = -c^2`, where it is :math:`\sqrt 2 (1 + c^2)`.
    """
    if relation == "replace_one":
        return math.sqrt(2.0) * (1.0 + constant**2)
    return math.sqrt(1.0 + 2.0 * constant**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariancePlan(SecondMoment):
    """The covariances of columns within bounds.

    Scaled by its bounds and divided by the root of their number, a row of columns has a norm of at
    most 1.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
    """

    low: np.ndarray
    high: np.ndarray

    def run(self, X, source, persons=None):
        """Return the correlations and deviations, no variance below the noise or beyond bounds."""
        half = self.high / 2 - self.low / 2
        unit = half * math.sqrt(len(half))
        rows = Rows(X, read=partial(_read_scaled, self.low, self.high, unit))
        values, vectors = np.linalg.eigh(self.release(rows, source, persons)[1])
        # Rows of norm 1 have no larger variance in any direction.
        most = self.n_rows / max(self.n_rows - 1, 1)
        least = min(self.mechanism.deviation(self.size) / self.n_rows, most)
        roots = vectors * np.sqrt(np.clip(values, least, most))
        spread = np.linalg.norm(roots, axis=1)
        roots /= spread[:, np.newaxis]
        return roots @ roots.T, unit * np.minimum(spread, math.sqrt(most / len(half)))


def _read_scaled(low, high, unit, X, rows):
    return (np.clip(read_block(X, rows), low, high) - (low + (high - low) / 2)) / unit
