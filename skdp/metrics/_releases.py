"""Releases of metrics: the counts and sums of each metric, and their sensitivities."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp._data._persons import row_weights_of
from skdp.base import private_release
from skdp.mechanisms._plan import plan_for
from skdp.metrics._binary import BinaryCells
from skdp.metrics._bootstrap import N_DRAWS
from skdp.metrics._counts import ReleasedMatrix, release_matrix
from skdp.metrics._grid import CALIBRATION_BINS, number_of_cells, probability_edges, score_cells
from skdp.metrics._multiclass import TopLabelCells
from skdp.metrics._statistics import (
    MEAN_FACTORS,
    REGRESSION_FACTORS,
    CellCounts,
    RowSums,
    count_cells,
)
from skdp.metrics._sums import RegressionSums, mean_score, regression_values
from skdp.utils._values import FrozenValue


def release_metric(
    label, n_rows, make_statistics, rows, *, epsilon, delta, groups, accountant, random_state
):
    """Plan and charge the release of a metric, and return the result of the plan's `run`.

    Parameters
    ----------
    label : str
        Name of the metric, for the ledger.
    n_rows : int
    make_statistics : callable
        Returns the `MetricStatistics` for a number of units and a `Guarantee` for one unit.
    rows : tuple of ndarray
        Arguments of their `statistics`.
    epsilon, delta, groups, accountant, random_state
        Parameters of the metric.
    """
    with private_release(label, accountant, random_state) as release:
        n_units = release.read_groups(groups, n_rows)

        def plan_for_unit(guarantee):
            return make_statistics(n_units, guarantee).plan()

        plan = plan_for(plan_for_unit, release.make_guarantee(epsilon, delta))
        return release.run_charged(plan, rows, release.charge(plan))


def pairs_of_codes(codes, predicted):
    """Return the true and the predicted codes, the pairs that a confusion matrix counts."""
    return codes, predicted


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixCounts(CellCounts):
    """Counts of pairs of codes: a confusion matrix, or right and wrong predictions by class.

    Parameters
    ----------
    shape : tuple of (int, int)
    n_units : int
    pairs : callable
        Returns the row and the column of each pair of codes in the matrix.
    """

    shape: tuple
    n_units: int
    pairs: Callable

    @classmethod
    def of_shape(cls, shape, n_units, guarantee, pairs=pairs_of_codes):
        """Return the counts of one matrix."""
        sizes = (shape[0] * shape[1],)
        return cls(sizes=sizes, guarantee=guarantee, shape=shape, n_units=n_units, pairs=pairs)

    def statistics(self, rows, row_weights=None):
        """Return the counts of the pairs of codes."""
        first, second = self.pairs(*rows)
        cells = np.asarray(first, dtype=np.int64) * self.shape[1] + second
        return count_cells([cells], self.sizes, row_weights)

    def metrics(self, noisy, mechanism, source):
        """Return the `ReleasedMatrix`."""
        counts = noisy.astype(np.float64).reshape(self.shape)
        return release_matrix(counts, self.n_units, mechanism, self.size, source.stream(), N_DRAWS)


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryCounts(CellCounts):
    """Counts by class and cell of the score, for two classes.

    Parameters
    ----------
    n_units : int
    edges : ndarray
        Inner edges of the cells, as probabilities.
    score_bounds : tuple of (low, high) or None
    classes : ndarray of shape (2,)
    threshold : float, default=0.5
        Probability above which rows are predicted positive; one of the edges.
    """

    n_units: int
    edges: np.ndarray
    score_bounds: tuple | None
    classes: np.ndarray
    threshold: float = 0.5

    @classmethod
    def on_grid(
        cls, n_units, guarantee, classes, score_bounds, *, threshold=0.5, n_bins=CALIBRATION_BINS
    ):
        """Return the counts on a grid that depends only on public numbers and the guarantee."""
        edges = probability_edges(number_of_cells(n_units, guarantee), (threshold,), n_bins)
        return cls(
            sizes=(2 * (len(edges) + 1),),
            guarantee=guarantee,
            n_units=n_units,
            edges=edges,
            score_bounds=score_bounds,
            classes=classes,
            threshold=threshold,
        )

    def statistics(self, rows, row_weights=None):
        """Return the counts by class code and score."""
        codes, scores = rows
        n_cells = len(self.edges) + 1
        cells = score_cells(scores, self.edges, self.score_bounds)
        cells += np.asarray(codes, dtype=np.int64) * n_cells
        return count_cells([cells], self.sizes, row_weights)

    def release_counts(self, rows, source, persons=None):
        """Return the noisy counts themselves, in one vector."""
        statistics = self.statistics(rows, row_weights_of(persons))
        return self.mechanism.release(statistics, random_state=source)

    def metrics(self, noisy, mechanism, source):
        """Return the `BinaryCells` of the noisy counts; bootstrap draws come from `source`."""
        counts = noisy.astype(np.float64).reshape(2, -1)
        matrix = release_matrix(
            counts, self.n_units, mechanism, self.size, source.stream(), N_DRAWS
        )
        return BinaryCells(
            matrix=matrix,
            edges=self.edges,
            score_bounds=self.score_bounds,
            classes=self.classes,
            threshold=self.threshold,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassMetrics(FrozenValue):
    """Released counts for a classifier with several classes.

    Parameters
    ----------
    matrix : ReleasedMatrix
        The confusion matrix.
    top_label : TopLabelCells or None
        Correctness by probability of the predicted label; None for models without probabilities.
    one_against_rest : tuple of ReleasedMatrix
        Counts by class and cell of the probability, for each class against the others; empty
        unless they were requested.
    """

    matrix: ReleasedMatrix
    top_label: TopLabelCells | None
    one_against_rest: tuple


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassCounts(CellCounts):
    """Counts of a confusion matrix and further blocks, for several classes.

    Each block adds 1 to the L1 sensitivity. The blocks are the confusion matrix, the calibration of
    the top label, and k histograms of one class against the others.

    Parameters
    ----------
    n_units : int
    n_classes : int
    has_probabilities : bool
    edges : ndarray or None
        Inner edges of the histograms against the others; None without them.
    """

    n_units: int
    n_classes: int
    has_probabilities: bool
    edges: np.ndarray | None = None

    @classmethod
    def of_classes(cls, n_units, guarantee, n_classes, *, has_probabilities, has_areas):
        """Return the counts with the requested blocks; sizes depend only on public numbers."""
        sizes = [n_classes**2]
        edges = None
        if has_probabilities:
            sizes.append(2 * CALIBRATION_BINS)
        if has_areas:
            edges = probability_edges(number_of_cells(n_units, guarantee))
            sizes += [2 * (len(edges) + 1)] * n_classes
        return cls(
            sizes=tuple(sizes),
            guarantee=guarantee,
            n_units=n_units,
            n_classes=n_classes,
            has_probabilities=has_probabilities,
            edges=edges,
        )

    def statistics(self, rows, row_weights=None):
        """Return the counts of all blocks.

        Parameters
        ----------
        rows : tuple of (codes, predicted, probabilities)
            The code of each true and predicted label, and the probabilities of the classes or None.
        row_weights : ndarray, default=None
        """
        codes, predicted, probabilities = rows
        codes = np.asarray(codes, dtype=np.int64)
        cells = [codes * self.n_classes + predicted]
        if self.has_probabilities:
            # The probability of the predicted label, row by row; NaN is in the first bin.
            top = probabilities[np.arange(len(codes)), predicted]
            inner = np.arange(1, CALIBRATION_BINS) / CALIBRATION_BINS
            bins = score_cells(top, inner)
            cells.append((codes == predicted) * CALIBRATION_BINS + bins)
        if self.edges is not None:
            n_cells = len(self.edges) + 1
            for label in range(self.n_classes):
                scores = score_cells(probabilities[:, label], self.edges)
                cells.append((codes == label) * n_cells + scores)
        return count_cells(cells, self.sizes, row_weights)

    def metrics(self, noisy, mechanism, source):
        """Return the `MulticlassMetrics` of noisy counts; bootstrap draws come from `source`."""
        blocks = np.split(noisy.astype(np.float64), np.cumsum(self.sizes)[:-1])
        n_rows = [self.n_classes] + [2] * (len(blocks) - 1)
        matrices = [
            release_matrix(
                block.reshape(rows, -1),
                self.n_units,
                mechanism,
                self.size,
                source.stream(),
                N_DRAWS,
            )
            for block, rows in zip(blocks, n_rows, strict=True)
        ]
        first_area = 1 + self.has_probabilities
        return MulticlassMetrics(
            matrix=matrices[0],
            top_label=TopLabelCells(matrix=matrices[1]) if self.has_probabilities else None,
            one_against_rest=tuple(matrices[first_area:]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LossSums(RowSums):
    """Sums of bounded losses, in units of their bound, and of the squared losses.

    Parameters
    ----------
    name_of_metric : str
    loss : callable
        Returns the loss of each row, computed from this row alone.
    bound : float, default=1
        Largest loss of a row, to which losses are clipped. The smallest possible loss is 0.
    """

    name_of_metric: str
    loss: Callable
    bound: float = 1.0

    factors = MEAN_FACTORS
    # Values about the middle of their range have half the sensitivity under add/remove.
    center = (0.5, 0.5)

    @property
    def exact_sensitivities(self):
        """The (L1, L2) sensitivities of sums without rounding errors."""
        change = self.guarantee.neighbors.sensitivity_factor / 2.0
        return change * sum(self.factors), change * math.hypot(*self.factors)

    def statistics(self, rows, row_weights=None):
        """Return the centered sums of the losses and of their squares, in units of the bound."""
        with np.errstate(all="ignore"):
            values = self.loss(*rows) / self.bound
        # NaN counts as the largest loss, for every row.
        values = np.clip(np.where(np.isnan(values), 1.0, values), 0.0, 1.0)
        return self.exact_sums(np.column_stack([values, values * values]), row_weights)

    def metrics(self, noisy, mechanism, source):
        """Return the `NoisyScore` of the mean loss; bootstrap draws come from `source`."""
        return mean_score(
            self.name_of_metric,
            self.uncentered(noisy),
            self,
            mechanism,
            source.stream(),
            N_DRAWS,
            scale=self.bound,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorSums(RowSums):
    """Sums of errors and of targets, from which all regression metrics are computed.

    With the targets scaled to u in [-1, 1] and the error e = (target - prediction) / width in
    [-1, 1], a row's vector is (e^2, |e|, u, u^2, e^4, u^3, u^4, e^2 u, e^2 u^2).

    Parameters
    ----------
    target_bounds : tuple of (low, high)
    """

    target_bounds: tuple

    factors = REGRESSION_FACTORS
    center = (0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.5)

    @property
    def exact_sensitivities(self):
        """The (L1, L2) sensitivities of sums without rounding errors.

        Each term is multiplied by its entry of `factors`, and so is its change. For each term, the
        largest change between two rows is used separately. Under add/remove, one of the two is the
        null row, whose centered terms are 0, so a term in [0, 1], centered at 1/2, changes by at
        most 1/2, and one in [-1, 1] by at most 1. Under replace-one, they change by at most 1 and
        2, but u and u^2 cannot both change by their maxima: if u changes by s, u + u' is at most
        2 - s in magnitude, so u^2 changes by at most s (2 - s).
        """
        squared, absolute, first, second, *others = self.factors
        fourth_error, third, fourth, error_first, error_second = others
        in_unit_interval = [squared, absolute, fourth_error, fourth, error_second]
        if self.guarantee.relation == "add_remove":
            halves = [0.5 * factor for factor in (*in_unit_interval, second)]
            changes = [*halves, first, third, error_first]
            return math.fsum(changes), math.hypot(*changes)
        independent = [*in_unit_interval, 2.0 * third, 2.0 * error_first]
        # The L1 change of the two, f1 s + f2 s (2 - s), is largest at the vertex of the parabola.
        s = min(2.0, 1.0 + first / (2.0 * second))
        l1 = math.fsum(independent) + first * s + second * s * (2.0 - s)
        # The squared L2 change s^2 (f1^2 + f2^2 (2 - s)^2) is at most the sum of both maxima.
        return l1, math.hypot(*independent, 2.0 * first, second)

    def statistics(self, rows, row_weights=None):
        """Return the centered sums of errors and targets."""
        y_true, y_pred = rows
        return self.exact_sums(regression_values(y_true, y_pred, self.target_bounds), row_weights)

    def metrics(self, noisy, mechanism, source):
        """Return the `RegressionSums`."""
        return RegressionSums.from_release(
            self.uncentered(noisy), self, mechanism, source.stream(), N_DRAWS, self.target_bounds
        )
