"""Base classes of released counts and sums: their noise, exact sums, and factors of each sum.

The sums of each metric and their sensitivities are in `skdp.metrics._releases`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._persons import row_weights_of, weighted_bincount
from skdp._data._sums import exact_sum
from skdp.accounting import Guarantee
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, LaplaceMechanism
from skdp.mechanisms._plan import counting_mechanism, plan_release
from skdp.utils._values import FrozenValue

# Relative bound on the rounding of a row's values, its weight and the sensitivity itself.
ROUNDING = 1.0 + 2.0**-40

# Factors of the sums of a regression: squared error, absolute error, y, y^2 and, for the standard
# errors only, the fourth power of the error, the third and fourth power of y, and the squared error
# times y and times y^2. A larger factor means less noise in that sum and more in the others. With
# these factors, the errors in R^2 and in the mean squared and absolute errors are within a third of
# the smallest possible ones, on training rows of california_housing and two simulated tables
# (`docs/benchmarks/metric_constants.py factors`).
REGRESSION_FACTORS = (1.0, 0.45, 0.1, 0.15, 0.05, 0.03, 0.03, 0.03, 0.03)
# Factors for the mean of values in [0, 1] and for their mean square, which is needed only for the
# standard error of the mean.
MEAN_FACTORS = (1.0, 0.2)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricStatistics(FrozenValue):
    """Base class of statistics to which noise is added, and from which metrics are computed.

    The `statistics` of disjoint sets of rows can be added. ``metrics(noisy, mechanism, source)``
    also accepts statistics to which another mechanism added its noise, as in cross-validation.
    Subclasses define both methods, the `mechanism` of the noise, the `size` of the statistics and
    their (L1, L2) `sensitivities`.

    Parameters
    ----------
    guarantee : Guarantee
    """

    guarantee: Guarantee

    def plan(self):
        """Return the plan of the release, whose `run` returns the metrics."""
        return plan_release(
            self.mechanism,
            self.run,
            guarantee=self.guarantee,
            stage_name=self.released_name,
            size=self.size,
        )

    def run(self, rows, source, persons=None):
        """Return the metrics of the rows, after noise was added to their statistics."""
        return self.release(self.statistics(rows, row_weights_of(persons)), source)

    def release(self, statistics, source):
        """Return the metrics of statistics after adding noise to them once."""
        noisy = self.mechanism.release(statistics, random_state=source)
        return self.metrics(noisy, self.mechanism, source)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts(MetricStatistics):
    """Counts of cells, to which each row adds one unit per block.

    A row is in at most one cell of each block. In each block, one count changes by 1 under
    add/remove, and two counts do under replace-one.

    Parameters
    ----------
    sizes : tuple of int
        Number of cells of each block.
    """

    sizes: tuple

    released_name = "counts of cells of labels and scores"

    @property
    def size(self):
        """Number of values that are released together."""
        return sum(self.sizes)

    @property
    def l1_sensitivity(self):
        """Number of counts that one row, or person, changes by 1."""
        return self.guarantee.neighbors.sensitivity_factor * len(self.sizes)

    @property
    def sensitivities(self):
        """The (L1, L2) sensitivities of the counts."""
        return self.l1_sensitivity, math.nextafter(math.sqrt(self.l1_sensitivity), math.inf)

    @cached_property
    def mechanism(self):
        return counting_mechanism(self.l1_sensitivity, self.guarantee)


def count_cells(cells, sizes, row_weights=None):
    """Return the counts of all blocks in one vector, integers unless rows have weights.

    Weights are multiples of 2**-26, so their sums are exact.
    """
    counts = [
        # Rows with the code -1 are counted in an entry that is left out.
        weighted_bincount(codes + 1, row_weights, size + 1)[1:]
        for codes, size in zip(cells, sizes, strict=True)
    ]
    return np.concatenate(counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowSums(MetricStatistics):
    """Base class of sums over rows of bounded vectors.

    Subclasses define `factors`, the factor of each sum, `center`, the vector that is subtracted
    from each row, and `exact_sensitivities`. Under add/remove, a null record adds the zero vector.
    """

    n_units: int

    released_name = "sums over rows"

    @property
    def size(self):
        """Number of values that are released together."""
        return len(self.factors)

    @property
    def sensitivities(self):
        """The (L1, L2) sensitivities of the sums, with their rounding."""
        # `exact_sum` rounds each value towards zero, which never increases a norm. Rounding
        # increases the difference of two values by at most one step of the grid, which is less than
        # 4 n_units 2**-53; a margin of a factor of 4 is added.
        rounding = self.size * (2.0 * self.n_units) * 2.0**-50
        l1, l2 = self.exact_sensitivities
        return (l1 + rounding) * ROUNDING, (l2 + rounding) * ROUNDING

    @cached_property
    def mechanism(self):
        """The mechanism of least noise: Laplace or Gamma-norm, or Gaussian noise if delta > 0."""
        l1, l2 = self.sensitivities
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        candidates = [LaplaceMechanism(epsilon, l1), GammaNormMechanism(epsilon, l2)]
        if delta > 0.0:
            candidates.append(GaussianMechanism(epsilon, delta, l2))
        return min(candidates, key=self._noise_of)

    def _noise_of(self, mechanism):
        return mechanism.deviation(self.size)

    def exact_sums(self, values, row_weights=None):
        """Return the exact sums of centered values times their factors."""
        centered = (values - np.array(self.center)) * np.array(self.factors)
        # The weights of a person's rows sum to 1, so the grid can represent all sums over `n_units`
        # units. If the unit is a person, the number of rows is private and the grid must not depend
        # on it: a finer or coarser grid would round the values of all other rows differently.
        return exact_sum(centered, (-1.0, 1.0), n_samples=self.n_units, row_weights=row_weights)

    def uncentered(self, sums):
        """Return sums of values from sums of centered values times their factors."""
        return self.uncentered_noise(sums) + self.n_units * np.array(self.center)

    def uncentered_noise(self, noise):
        """Return the noise in sums of values from that in sums times their factors."""
        return noise / np.array(self.factors)
