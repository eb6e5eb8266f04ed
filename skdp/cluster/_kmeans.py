"""K-means: initial centers from the noisy counts of a grid, then noisy steps of Lloyd's algorithm.

The derivation is in ``docs/theory/clustering.md``. All columns are divided by the same number, half
the widest range, so ratios of distances do not change.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from skdp._data._answers import partitionwise
from skdp._data._clipping import clip_rows, finite_doubles
from skdp._data._parts import max_additions
from skdp._data._persons import row_weights_of, times_row_weights, weighted_bincount, zero_counts
from skdp._data._row_wise import row_distances
from skdp._data._tables import TableShape, read_samples
from skdp._fitting._autologging import without_autologging
from skdp.accounting import Guarantee
from skdp.accounting._guarantee import split_guarantee
from skdp.base import plans_for_groups, private_fit, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, JointMechanism
from skdp.mechanisms._plan import counting_mechanism, plan_release, vector_noise
from skdp.mechanisms._stages import stages_of
from skdp.preprocessing._planned import PlannedTransformer, prefixed_names
from skdp.stats import _moments
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds
from skdp.utils._units import ALL_IN_EACH
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# The tuned constants were chosen on the tables of docs/benchmarks/incumbent.py.
# Fraction of epsilon and delta for the moments.
MOMENTS_FRACTION = 0.1
# Fraction of the remaining epsilon and delta for the counts of the grid's cells.
COUNTS_FRACTION = 0.4
# Largest base-2 logarithm of the number of cells.
MAX_BITS = 10
# Smallest mean count of a cell, in standard deviations of the noise of a count.
MIN_MEAN_COUNT = 2.0
# Number of points in the clustered synthetic sample: the minimum, and the number per cluster.
MIN_POINTS = 4 << MAX_BITS
POINTS_PER_CLUSTER = 16
# Radius to which a row's offset from its center is clipped, relative to the root mean square
# distance in the sample; and the minimum radius, relative to the standard deviation of all rows.
RADIUS = 1.2
MIN_RADIUS = 0.1
# Maximum number of steps. Fewer steps are taken if noise would otherwise be expected to move a
# center of average count by more than MAX_NOISE_ERROR times the radius.
MAX_STEPS = 4
MAX_NOISE_ERROR = 0.4
# Lower bound on the noisy count of a cluster, in standard deviations of its noise.
MIN_COUNT_STDS = 2.0

# Variance of a standard normal distribution restricted to one side of its median: 1 - 2 / pi.
HALF_VARIANCE = 0.3634
# Lower bound on the standard deviation of a column, relative to half the widest range.
MIN_STD = 1e-9
# Relative margin for rounding.
SLACK = 1e-9


def plan_clusters(shape, guarantee, *, n_clusters):
    """Return the plan of a fit: the moments of columns, the counts of cells, and the steps.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
    n_clusters : int

    Returns
    -------
    Plan
        Its `run` also receives the bounds as arrays `low` and `high` of shape (n_columns,). It
        returns the cluster centers and the number of steps.
    """
    ones = np.ones(shape.n_columns)
    descent = NoisyLloyd(
        n_rows=shape.n_rows, low=-ones, high=ones, guarantee=guarantee, n_clusters=n_clusters
    )
    descent.check_sizes()
    plan = plan_release(descent.mechanism, partial(_run_within, descent), guarantee=guarantee)
    return replace(plan, stages=descent.stages)


def _run_within(descent, X, source, low, high, persons=None):
    """Run the descent within bounds, which may be released bounds."""
    return replace(descent, low=low, high=high).run(X, source, persons)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyLloyd(FrozenValue):
    """Lloyd's algorithm with noise: moments of the columns, counts of the grid's cells, and steps.

    The block of a cluster contains its weighted count and the sum of its rows' offsets from the
    center, divided by the radius.

    Parameters
    ----------
    n_rows : int
        Public number of rows.
    low, high : ndarray of shape (n_columns,)
        Bounds of the columns. The mechanisms do not depend on them.
    guarantee : Guarantee
    n_clusters : int
    """

    n_rows: int
    low: np.ndarray
    high: np.ndarray
    guarantee: Guarantee
    n_clusters: int

    @cached_property
    def mechanism(self):
        """The mechanism of all stages; its `parts` are those of the moments, counts and steps."""
        moments_guarantee, rest = split_guarantee(self.guarantee, MOMENTS_FRACTION)
        counts_guarantee, steps_guarantee = split_guarantee(rest, COUNTS_FRACTION)
        shape = TableShape(n_rows=self.n_rows, n_columns=len(self.low))
        moments = _moments.plan_moments(shape, moments_guarantee, n_moments=2)
        counting = counting_mechanism(self.guarantee.neighbors.sensitivity_factor, counts_guarantee)
        stages = (moments, counting, *self._step_mechanisms(steps_guarantee))
        return JointMechanism(stages, self.guarantee.epsilon, self.guarantee.delta)

    @property
    def stages(self):
        """Stages of the release: the moments, the counts of cells, and the steps."""
        moments, counting, *steps = self.mechanism.parts
        # All steps have the same noise distribution.
        (step_stage,) = stages_of(steps[0], "blocks of clusters")
        steps_stage = replace(step_stage, n_releases=len(steps), reads=ALL_IN_EACH)
        return (*stages_of(moments), *stages_of(counting, "counts of cells"), steps_stage)

    def _step_mechanisms(self, guarantee):
        """Return one mechanism per step, for the largest number of steps that the noise allows."""
        total = vector_noise(guarantee, self.step_sensitivity)
        error_per_noise = math.sqrt(len(self.low)) * self.n_clusters / self.n_rows

        def single_step(n_steps):
            """Return the mechanism of one of `n_steps` steps with equal parts of the budget."""
            budget_fraction = (1.0 - SLACK) / n_steps
            if guarantee.delta == 0.0:
                return GammaNormMechanism(budget_fraction * total.epsilon, total.sensitivity)
            return GaussianMechanism.from_rho(
                budget_fraction * total.rho, total.sensitivity, total.delta
            )

        n_steps = MAX_STEPS
        while n_steps > 1:
            noise_error = error_per_noise * single_step(n_steps).deviation(self.size)
            if noise_error <= MAX_NOISE_ERROR:
                break
            n_steps -= 1
        return [single_step(n_steps) for _ in range(n_steps)]

    @property
    def step_sensitivity(self):
        """Sensitivity of a step's blocks: sum of the blocks' norms, or L2 norm with delta > 0.

        A row adds (weight, offset) to one block. A row that replaces it adds to another block, or
        to the same block; in the latter case, the count is unchanged and the sum of offsets changes
        by at most 2. The last term bounds the rounding errors of the sums.
        """
        norm = math.hypot(1.0, self.weight)
        sensitivity = norm
        if self.guarantee.relation == "replace_one":
            if self.guarantee.delta == 0.0:
                sensitivity = 2.0 * norm
            else:
                sensitivity = max(2.0, math.sqrt(2.0) * norm)
        additions = max_additions(_moments.BLOCK_ROWS) + 1
        return sensitivity + 2.0 * additions * self.n_rows * np.finfo(np.float64).eps * norm

    @property
    def weight(self):
        """Weight of the count in a block.

        It minimizes the expected error of a center (Su et al. 2016, section 4).
        """
        return math.sqrt(0.5 / math.sqrt(len(self.low)))

    @property
    def size(self):
        """Number of values per release: one block with delta = 0, else all blocks of a step."""
        block_size = 1 + len(self.low)
        if self.guarantee.delta == 0.0:
            return block_size
        return self.n_clusters * block_size

    @property
    def n_bits(self):
        """Base-2 logarithm of the number of cells."""
        noise_std = max(self.mechanism.parts[1].deviation(size=1 << MAX_BITS), SLACK)
        return int(np.clip(np.log2(self.n_rows / (MIN_MEAN_COUNT * noise_std)), 1, MAX_BITS))

    @property
    def half_ranges(self):
        """Half the range of each column, divided by half the widest range."""
        return (self.high - self.low) / (self.high - self.low).max()

    def check_sizes(self):
        """Raise `ValueError` if epsilon is too small for the number of values."""
        _, counting, *steps = self.mechanism.parts
        counting.check_size(1 << self.n_bits)
        steps[0].check_size(self.size)

    def run(self, X, source, persons=None):
        """Return the noisy centers of the clusters and the number of steps."""
        moments, counting, *steps = self.mechanism.parts
        offset = self.low + (self.high - self.low) / 2
        half_range = (self.high - self.low).max() / 2
        mean, variance = moments.run(X, source, self.low, self.high, persons)
        std = np.maximum(np.sqrt(variance) / half_range, MIN_STD)
        cells = Cells((mean - offset) / half_range, std, _intervals(std**2, self.n_bits))
        counts = zero_counts(1 << self.n_bits, row_weights_of(persons))
        counts = self._sum(X, _add_cells, counts, persons, cells)
        noisy = counting.release(counts, random_state=source)
        # Counts that are hidden by their noise are set to 0.
        significant_counts = np.where(noisy > counting.deviation(counts.size), noisy, 0.0)
        centers, distance = self._initial_centers(cells, significant_counts)
        radius = max(RADIUS * distance, MIN_RADIUS * np.linalg.norm(std))
        for step in steps:
            blocks = self.blocks(X, centers, radius, persons)
            noisy = [step.release(b, random_state=source) for b in blocks.reshape(-1, self.size)]
            offsets = self._mean_offsets(np.reshape(noisy, blocks.shape), step.deviation(self.size))
            centers = np.clip(centers + radius * offsets, -self.half_ranges, self.half_ranges)
        centers = np.clip(offset + half_range * centers, self.low, self.high)
        return centers, len(steps)

    def blocks(self, X, centers, radius, persons=None):
        """Return the blocks of a step, of shape (n_clusters, 1 + n_columns)."""
        blocks = np.zeros((len(centers), 1 + len(self.low)))
        return self._sum(X, _add_blocks, blocks, persons, centers, radius, self.weight)

    def _sum(self, X, add, total, persons, *args):
        """Return the sum of `add` over blocks of rows, whose values are scaled to [-1, 1]."""
        add = partial(add, self.half_ranges, *args)
        return _moments.unit_sums(X, add, total, self.low, self.high, row_weights_of(persons))

    def _initial_centers(self, cells, counts):
        """Return the centers of a weighted synthetic sample and its root mean square distance."""
        points, indices = cells.sample(max(MIN_POINTS, POINTS_PER_CLUSTER * self.n_clusters))
        # If all counts are 0, all points have the same weight.
        weights = (counts + max(SLACK * counts.sum(), SLACK))[indices]
        # Imported here because it is slow to import and only this method needs it.
        from sklearn.cluster import KMeans

        model = KMeans(self.n_clusters, n_init=8, max_iter=30, random_state=0)
        points = np.clip(points, -self.half_ranges, self.half_ranges)
        with without_autologging():
            model.fit(points, sample_weight=weights / weights.sum())
        return model.cluster_centers_, math.sqrt(model.inertia_)

    def _mean_offsets(self, noisy, noise_std):
        """Return the mean offsets in noisy blocks, shrunk by the expected square of the noise.

        The shrinkage factor is the James-Stein factor.
        """
        counts = np.maximum(noisy[:, 0], MIN_COUNT_STDS * noise_std) / self.weight
        squares = np.maximum(np.sum(noisy[:, 1:] ** 2, axis=1), 1e-300)
        shrinkage_factor = np.maximum(0.0, 1.0 - len(self.low) * noise_std**2 / squares)
        return clip_rows(noisy[:, 1:] * (shrinkage_factor / counts)[:, np.newaxis], 1.0)


@dataclass(frozen=True, eq=False)
class Cells(FrozenValue):
    """Grid of cells with equal probability under independent normal distributions of columns.

    Parameters
    ----------
    mean, deviation : ndarray of shape (n_columns,)
        Means and standard deviations of the columns.
    intervals : ndarray of shape (n_columns,), dtype int64
        Number of intervals of each column.
    """

    mean: np.ndarray
    deviation: np.ndarray
    intervals: np.ndarray

    @property
    def _strides(self):
        return np.cumprod(self.intervals) // self.intervals

    def cell_indices(self, rows):
        """Return the index of the cell of each row."""
        ranks = ndtr((rows - self.mean) / self.deviation) * self.intervals
        return np.minimum(ranks.astype(np.int64), self.intervals - 1) @ self._strides

    def sample(self, n_points):
        """Return points of the distribution, stratified by cell, and their cell indices."""
        indices = np.arange(n_points) % self.intervals.prod()
        inner = check_random_state(0).random((n_points, len(self.mean)))
        ranks = (indices[:, np.newaxis] // self._strides % self.intervals + inner) / self.intervals
        return self.mean + self.deviation * ndtri(ranks), indices


def _intervals(variances, n_bits):
    """Return the number of intervals of each column.

    Each of `n_bits` steps halves the intervals of the column whose variance within them is largest.
    """
    intervals = np.ones(len(variances), dtype=np.int64)
    remaining_variances = variances.copy()
    for _ in range(n_bits):
        widest = remaining_variances.argmax()
        intervals[widest] *= 2
        remaining_variances[widest] *= HALF_VARIANCE
    return intervals


def _add_cells(scale, cells, counts, u, row_weights):
    """Add the counts of the cells in which the scaled rows are, in place."""
    counts += weighted_bincount(cells.cell_indices(u * scale), row_weights, counts.size)


def _add_blocks(scale, centers, radius, weight, blocks, u, row_weights):
    """Add the scaled rows to blocks, one per nearest center, in place.

    A block is the sum of (weight, offset) over its rows. The offset is the distance vector of a row
    from its center, divided by `radius` and clipped to norm 1.
    """
    rows = u * scale
    nearest = row_distances(rows, centers).argmin(axis=1)
    offsets = clip_rows((rows - centers[nearest]) / radius, 1.0)
    values = times_row_weights(np.column_stack([np.full(len(rows), weight), offsets]), row_weights)
    blocks += np.equal.outer(np.arange(len(centers)), nearest).astype(np.float64).dot(values)


# Maximum number of clusters: the distances from a block of rows to all centers must fit into
# memory.
MAX_CLUSTERS = 4096


class DPKMeans(ClassNamePrefixFeaturesOutMixin, PlannedTransformer):
    """K-means from the noisy cell counts of a grid and a few noisy steps of Lloyd's algorithm.

    Only `fit` clips values to `bounds`. The initial centers are computed from a synthetic sample
    that is drawn from the noisy counts of a grid. Each step moves a center to the noisy mean of its
    rows; the distance from each row to its center is clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With a positive delta, the steps use Gaussian noise, which allows
        more steps.
    n_clusters : int, default=8
        Number of centers, at most 4096.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. It must not be computed from the data. "auto" spends a fifth
        of epsilon, and at most a fifth of delta, on `skdp.stats.estimate_bounds`, in the same
        charge.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centers of the clusters, within the bounds.
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        Bounds of each feature, declared or found privately.
    n_iter_ : int
        Number of steps, from 1 to 4. It depends only on the table's shape and the budget.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The number of rows is public. `labels_` and `inertia_` do not exist, because
    they would be computed from the raw rows; for the same reason, the class does not inherit from
    scikit-learn's ``ClusterMixin``, because scikit-learn's checks of clusterers require labels.
    `fit_predict` returns one label per raw row; show the labels only to people who may see the
    rows. Euclidean distances depend on the features' units: scale the features first. The proof is
    in ``docs/theory/clustering.md``.

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino and H. Jin. Differentially private k-means clustering.
    CODASPY 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-2.0, 2.0], size=(5000, 1)) + rng.normal(size=(5000, 2)) * 0.1
    >>> kmeans = DPKMeans(epsilon=1.0, n_clusters=2, bounds=(-3, 3)).fit(X)
    >>> kmeans.transform([[2.0, 0.0]]).shape
    (1, 2)
    >>> bool(kmeans.predict([[2.0, 0.0]]) != kmeans.predict([[-2.0, 0.0]]))
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        n_clusters: int = 8,
        bounds: Bounds | Literal["auto"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted model.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            centers, n_iter = within.released
            fit.publish(plan, bounds_=within.bounds, cluster_centers_=centers, n_iter_=n_iter)
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        k = check_integer(self.n_clusters, "n_clusters", 1, MAX_CLUSTERS)
        plan_statistics = partial(plan_clusters, n_clusters=k)
        return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

    @row_wise_answer
    def transform(self, X):
        """Return the distances from samples to the centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. They are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            Distances; those that overflow become the largest double.
        """
        return self._distances(X)

    @row_wise_answer
    def predict(self, X):
        """Return the index of the center nearest to each sample.

        Parameters
        ----------
        X : array-like, or source of ChunkedArray, of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), dtype int64
        """
        return self._distances(X).argmin(axis=1)

    def fit_predict(self, X, y=None, *, groups=None):
        """Fit the model and return the index of the center nearest to each row.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows, as in `fit`. The returned indices reveal the cluster of each row, so show them
            only to people who may see the rows.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        ndarray of shape (n_samples,), dtype int64

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self.fit(X, y, groups=groups).predict(X)

    def score(self, X, y=None):
        """Return the negative sum of the samples' squared distances to their centers.

        Parameters
        ----------
        X : array-like, or source of ChunkedArray, of shape (n_samples, n_features)
            Samples. The score of private rows is not private.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        with np.errstate(over="ignore"):
            return -float(np.sum(self._to_nearest(X) ** 2))

    @partitionwise
    def _to_nearest(self, X):
        return self._distances(X).min(axis=1)

    def _distances(self, X):
        # `transform` cannot be used: `set_output` may turn its output into a data frame.
        return finite_doubles(row_distances(read_samples(self, X), self.cluster_centers_))

    @property
    def _n_features_out(self):
        return self.n_clusters

    def _planned_names(self, form):
        """Return the names of the output columns: one distance per cluster."""
        # The number of outputs does not depend on the number of columns.
        n_clusters = check_integer(self.n_clusters, "n_clusters", 1, MAX_CLUSTERS)
        return prefixed_names(self, n_clusters)
