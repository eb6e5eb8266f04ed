"""K-means: noisy counts of a grid, where it starts, then Lloyd's steps with noisy sums.

Derived in ``docs/clustering.md``. Rows are divided by one number, half the widest range, so that
distances keep their proportions.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from skdp._data._answers import by_parts
from skdp._data._parts import most_additions
from skdp._data._persons import counts_of, no_counts, shares_of, times_shares
from skdp._data._tables import read_samples, read_table
from skdp.base import plans_for_groups, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, JointMechanism
from skdp.mechanisms._plan import counting_mechanism, vector_noise
from skdp.mechanisms._stages import one_stage, stages_of
from skdp.preprocessing._planned import PlannedTransformer, plan_columns, prefixed_names
from skdp.stats import _moments
from skdp.utils import clip_rows
from skdp.utils._autologging import without_autologging
from skdp.utils._clipping import finite_doubles
from skdp.utils._row_wise import row_distances
from skdp.utils._sums import split_guarantee
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Of epsilon and delta for the moments, and of the rest for the cells. These and the numbers below
# were chosen with the tables of docs/benchmarks/incumbent.py in view.
MOMENTS_SHARE = 0.1
CELLS_SHARE = 0.4
SLACK = 1e-9
# There are so many cells that their mean count is at least so many deviations of its noise.
MOST_BITS = 10
LEAST_COUNT = 2.0
POINTS = 4 << MOST_BITS
POINTS_PER_CLUSTER = 16
# What is left of a normal distribution's variance on one side of its median: 1 - 2 / pi.
HALF_VARIANCE = 0.3634
SMALLEST_DEVIATION = 1e-9
# How far off its center a row counts, over the root mean square of the sample's distances, and at
# least over the deviation of all rows.
RADIUS = 1.2
LEAST_RADIUS = 0.1
# A further step is made if noise then moves a center of mean count by at most this, over the
# radius. A noisy count is taken to be at least so many deviations of its noise.
MOST_STEPS = 4
LARGEST_ERROR = 0.4
LEAST_DEVIATIONS = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class KMeansPlan(_moments.StatisticPlan):
    """What a fit will release: moments of the columns, counts of cells, and each step's blocks.

    A block is of one cluster: its weighted count, and the sum of its rows' offsets from the center,
    over the radius.

    Parameters
    ----------
    n_rows : int
        Public.
    low, high : ndarray of shape (n_columns,)
        What it costs does not depend on them.
    guarantee : Guarantee
    n_clusters : int
    """

    n_rows: int
    low: np.ndarray
    high: np.ndarray
    n_clusters: int

    @cached_property
    def mechanism(self):
        of_moments, rest = split_guarantee(self.guarantee, MOMENTS_SHARE)
        of_cells, of_steps = split_guarantee(rest, CELLS_SHARE)
        known = {"n_rows": self.n_rows, "low": self.low, "high": self.high}
        moments = _moments.MomentsPlan(guarantee=of_moments, n_moments=2, **known)
        counting = counting_mechanism(self.guarantee.neighbors.sensitivity_factor, of_cells)
        parts = (moments, counting, *self._steps(of_steps))
        return JointMechanism(parts, self.epsilon, self.delta)

    @property
    def stages(self):
        """The moments, the counts of cells, and the steps."""
        moments, counting, *steps = self.mechanism.parts
        # All steps have one law.
        of_steps = replace(one_stage(steps[0], "blocks of clusters"), n_releases=len(steps))
        return (*stages_of(moments), *stages_of(counting, "counts of cells"), of_steps)

    def _steps(self, guarantee):
        """Return the mechanisms of as many steps as are worth their price."""
        whole = vector_noise(guarantee, self.step_sensitivity)
        of_error = math.sqrt(len(self.low)) * self.n_clusters / self.n_rows

        def one_of(n_steps):
            share = (1.0 - SLACK) / n_steps
            if guarantee.delta == 0.0:
                return GammaNormMechanism(share * whole.epsilon, whole.sensitivity)
            return GaussianMechanism.from_rho(share * whole.rho, whole.sensitivity, whole.delta)

        n_steps = MOST_STEPS
        while n_steps > 1 and of_error * one_of(n_steps).deviation(self.size) > LARGEST_ERROR:
            n_steps -= 1
        return [one_of(n_steps) for _ in range(n_steps)]

    @property
    def step_sensitivity(self):
        """By how much a step's blocks move: the sum of their norms, with delta the L2 norm.

        A row adds (weight, offset) to one block. Another in its place adds to another block, or to
        the same: then the count stays and the sum moves by 2.
        """
        norm = moved = math.hypot(1.0, self.weight)
        if self.guarantee.relation == "replace_one":
            moved = 2.0 * norm if self.delta == 0.0 else max(2.0, math.sqrt(2.0) * norm)
        additions = most_additions(_moments.BLOCK_ROWS) + 1
        return moved + 2.0 * additions * self.n_rows * np.finfo(np.float64).eps * norm

    # Of a count, for the least expected error of a center (Su et al. 2016, section 4).
    @property
    def weight(self):
        return math.sqrt(0.5 / math.sqrt(len(self.low)))

    @property
    def size(self):
        """How many values are released together: a block, where the noise is that of its norm."""
        return (1 if self.delta == 0.0 else self.n_clusters) * (1 + len(self.low))

    @property
    def n_bits(self):
        """The logarithm to the base 2 of the number of cells."""
        noise = max(self.mechanism.parts[1].deviation(1 << MOST_BITS), SLACK)
        return int(np.clip(np.log2(self.n_rows / (LEAST_COUNT * noise)), 1, MOST_BITS))

    # Half of each column's range, over half of the widest.
    @property
    def half_ranges(self):
        return (self.high - self.low) / (self.high - self.low).max()

    def check_size(self, size):
        moments, counting, *steps = self.mechanism.parts
        moments.check_size(moments.size)
        counting.check_size(1 << self.n_bits)
        steps[0].check_size(size)

    def run(self, X, source, persons=None):
        """Return the released attributes."""
        moments, counting, *steps = self.mechanism.parts
        middle = self.low + (self.high - self.low) / 2
        unit = (self.high - self.low).max() / 2
        mean, variance = moments.run(X, source, persons)
        spread = np.maximum(np.sqrt(variance) / unit, SMALLEST_DEVIATION)
        cells = Cells((mean - middle) / unit, spread, _intervals(spread**2, self.n_bits))
        counts = no_counts(1 << self.n_bits, shares_of(persons))
        counts = self._sum(X, _add_cells, counts, persons, cells)
        noisy = counting.release(counts, random_state=source)
        kept = np.where(noisy > counting.deviation(counts.size), noisy, 0.0)
        centers, distance = self._starts(cells, kept)
        radius = max(RADIUS * distance, LEAST_RADIUS * np.linalg.norm(spread))
        for step in steps:
            blocks = self.blocks(X, centers, radius, persons)
            parts = [step.release(b, random_state=source) for b in blocks.reshape(-1, self.size)]
            moves = self._moves(np.reshape(parts, blocks.shape), step.deviation(self.size))
            centers = np.clip(centers + radius * moves, -self.half_ranges, self.half_ranges)
        centers = np.clip(middle + unit * centers, self.low, self.high)
        return {"cluster_centers_": centers, "n_iter_": len(steps)}

    def blocks(self, X, centers, radius, persons=None):
        """Return the blocks of a step, of shape (n_clusters, 1 + n_columns)."""
        blocks = np.zeros((len(centers), 1 + len(self.low)))
        return self._sum(X, _add_blocks, blocks, persons, centers, radius, self.weight)

    def _sum(self, X, add, total, persons, *small):
        add = partial(add, self.half_ranges, *small)
        return _moments.unit_sums(X, add, total, self.low, self.high, shares_of(persons))

    def _starts(self, cells, counts):
        """Return centers of a weighted sample, and the points' root mean square distance."""
        points, places = cells.sample(max(POINTS, POINTS_PER_CLUSTER * self.n_clusters))
        # Without any count that stands out, all points weigh the same.
        weights = (counts + max(SLACK * counts.sum(), SLACK))[places]
        # It is slow to import, and nothing else in this package needs it.
        from sklearn.cluster import KMeans

        found = KMeans(self.n_clusters, n_init=8, max_iter=30, random_state=0)
        points = np.clip(points, -self.half_ranges, self.half_ranges)
        with without_autologging():
            found.fit(points, sample_weight=weights / weights.sum())
        return found.cluster_centers_, math.sqrt(found.inertia_)

    def _moves(self, noisy, deviation):
        """Return the means of noisy blocks, shrunk by what noise alone would come to."""
        counts = np.maximum(noisy[:, 0], LEAST_DEVIATIONS * deviation) / self.weight
        squares = np.maximum(np.sum(noisy[:, 1:] ** 2, axis=1), 1e-300)
        kept = np.maximum(0.0, 1.0 - len(self.low) * deviation**2 / squares)
        return clip_rows(noisy[:, 1:] * (kept / counts)[:, np.newaxis], 1.0)


@dataclass(frozen=True, eq=False)
class Cells(FrozenValue):
    """A grid of cells, equally likely under a normal distribution of independent columns.

    Parameters
    ----------
    mean, deviation : ndarray of shape (n_columns,)
    intervals : ndarray of shape (n_columns,), dtype int64
        Into how many of them each column is cut.
    """

    mean: np.ndarray
    deviation: np.ndarray
    intervals: np.ndarray

    @property
    def _strides(self):
        return np.cumprod(self.intervals) // self.intervals

    def places(self, rows):
        """Return the number of the cell of each row."""
        ranks = ndtr((rows - self.mean) / self.deviation) * self.intervals
        return np.minimum(ranks.astype(np.int64), self.intervals - 1) @ self._strides

    def sample(self, n_points):
        """Return points of that distribution, as many in each cell, and their cells."""
        places = np.arange(n_points) % self.intervals.prod()
        inner = check_random_state(0).random((n_points, len(self.mean)))
        ranks = (places[:, np.newaxis] // self._strides % self.intervals + inner) / self.intervals
        return self.mean + self.deviation * ndtri(ranks), places


def _intervals(variances, n_bits):
    """Return into how many intervals to cut each column: what varies most is cut, repeatedly."""
    intervals = np.ones(len(variances), dtype=np.int64)
    left = variances.copy()
    for _ in range(n_bits):
        widest = left.argmax()
        intervals[widest] *= 2
        left[widest] *= HALF_VARIANCE
    return intervals


def _add_cells(scale, cells, counts, u, shares):
    counts += counts_of(cells.places(u * scale), shares, counts.size)


def _add_blocks(scale, centers, radius, weight, blocks, u, shares):
    rows = u * scale
    nearest = row_distances(rows, centers).argmin(axis=1)
    offsets = clip_rows((rows - centers[nearest]) / radius, 1.0)
    values = times_shares(np.column_stack([np.full(len(rows), weight), offsets]), shares)
    blocks += np.equal.outer(np.arange(len(centers)), nearest).astype(np.float64).dot(values)


# A block of rows is compared with all of them at once.
MOST_CLUSTERS = 4096


class DPKMeans(ClassNamePrefixFeaturesOutMixin, PlannedTransformer):
    """K-means by noisy counts of a grid and a few noisy steps of Lloyd's algorithm.

    Values are clipped to `bounds`, in `fit` only. The initial centers are computed from a synthetic
    sample that is drawn from the noisy counts of a grid. Each step moves a center to the noisy mean
    of its rows; the distance of rows from their center is clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With a positive delta the steps use Gaussian noise, which allows
        more of them.
    n_clusters : int, default=8
        Number of centers, at most 4096.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or a dict from a column's
        name or position to its pair. It must not be computed from the data. "auto" spends a fifth
        of epsilon, and at most a fifth of delta, on `skdp.stats.estimate_bounds`, in the same
        charge.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
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
    they would be computed from the raw rows; for the same reason scikit-learn's ``ClusterMixin``,
    whose checks need labels, is not inherited. `fit_predict` returns one label per raw row, which
    is for those who may see the rows. Euclidean distances depend on the features' units: scale the
    features first. The proof is in ``docs/clustering.md``.

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

    _read = read_table

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        n_clusters: int = 8,
        bounds: tuple | dict | str = "auto",
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
            Rows. Only `DPPCA` accepts a sparse matrix. Transformers that release sums read the rows
            block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self._fit(X, y, groups)

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table; with its class labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape; parameters
            that need no shape are checked nevertheless.
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
        k = check_integer(self.n_clusters, "n_clusters", 1, MOST_CLUSTERS)
        return plan_columns(self, KMeansPlan, shape, guarantee, n_clusters=k)

    def _released(self, run, plan):
        return run.released | {"bounds_": run.bounds}

    @row_wise_answer
    def transform(self, X):
        """Return the distances of samples to the centers.

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
        """Return the index of the nearest center of each sample.

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
        """Fit the model and return the index of the nearest center of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. The returned labels reveal the cluster of each row, so they are for those who may
            see the rows.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        ndarray of shape (n_samples,), dtype int64
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

    @by_parts
    def _to_nearest(self, X):
        return self._distances(X).min(axis=1)

    def _distances(self, X):
        # Not `transform`, whose output may be set to be a frame.
        return finite_doubles(row_distances(read_samples(self, X), self.cluster_centers_))

    @property
    def _n_features_out(self):
        return self.n_clusters

    def _planned_names(self, form):
        # Distances to as many centers, whatever the number of columns is.
        n_clusters = check_integer(self.n_clusters, "n_clusters", 1, MOST_CLUSTERS)
        return prefixed_names(self, n_clusters)
