"""The statistics of all folds of a cross-validation, pooled before noise is added."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._persons import row_weights_of
from skdp.accounting import Guarantee
from skdp.model_selection._scores import BoundedScore

# Factor of the coarse statistics of single folds, from which only their spread is computed. The
# noise in the pooled statistics grows by sqrt(1 + f^2) if it is Gaussian, and by 1 + f if it is
# Laplace noise. Both factors are powers of two, so products with counts are exact.
FOLD_FACTOR = 0.5
PURE_FOLD_FACTOR = 0.25


@dataclass(frozen=True)
class PooledStatistics(BoundedScore):
    """Statistics of the predictions of all folds, used instead of a score.

    The released vector is the sum of the folds' statistics, followed by each fold's
    coarse statistics times a factor. Each row is in at most one fold, so the sensitivity of the
    vector is that of one table's statistics, times a factor for the coarse part.

    Parameters
    ----------
    task : BinaryTask, ClassesTask or NumbersTask
    guarantee : Guarantee
        Guarantee for one row or person. Its epsilon determines the grid of scores.
    fold_sizes : tuple of int
        Number of rows, or of persons, of each fold.
    """

    task: object
    guarantee: Guarantee
    fold_sizes: tuple

    name = "pooled statistics"

    @cached_property
    def statistics(self):
        """The `MetricStatistics` of all folds together."""
        return self.task.statistics(sum(self.fold_sizes), self.guarantee)

    @property
    def fold_factor(self):
        """Factor of the statistics of single folds."""
        if self.guarantee.delta > 0.0:
            return FOLD_FACTOR
        return PURE_FOLD_FACTOR

    @property
    def size(self):
        """Number of released values."""
        return self.statistics.size + len(self.fold_sizes) * self.task.n_coarse

    @property
    def sensitivities(self):
        """The (L1, L2) sensitivities of the released vector."""
        l1, l2 = self.statistics.sensitivities
        factor = self.fold_factor
        # Coarse statistics are sums of disjoint entries of the statistics, or some of the entries,
        # so a row changes them by no more. Under replace-one both rows are in the same fold,
        # because the index determines the fold. The relative 2**-40 covers the rounding.
        rounding = 1.0 + 2.0**-40
        return l1 * (1.0 + factor) * rounding, l2 * math.hypot(1.0, factor) * rounding

    def check_methods(self, estimator, persons=None):
        """Do nothing: `make_task` chose metrics that exist for the estimator."""

    def check(self, estimator, classes, persons=None):
        """Do nothing: `make_task` chose metrics that exist for the estimator."""

    def value(self, estimator, X, y, persons=None):
        """Return the statistics of one fold, which are not private."""
        return self.statistics.statistics(self.task.rows(estimator, X, y), row_weights_of(persons))

    def sensitivity(self, n_samples, relation="add_remove"):
        """Raise an error, because the statistics are a vector; see `sensitivities`."""
        raise NotImplementedError("pooled statistics have L1 and L2 sensitivities")

    def vector(self, statistics):
        """Return the vector to release from the statistics of all folds."""
        coarse = [self.task.coarse(values, self.statistics) for values in statistics]
        pooled = np.sum(statistics, axis=0)
        return np.concatenate([pooled, self.fold_factor * np.concatenate(coarse)]).astype(float)

    def split(self, noisy):
        """Return the noisy pooled statistics, and the coarse ones of each fold."""
        size = self.statistics.size
        coarse = noisy[size:].reshape(len(self.fold_sizes), -1) / self.fold_factor
        return noisy[:size], coarse
