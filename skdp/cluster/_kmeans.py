"""K-means with differential privacy."""

from functools import partial
from operator import attrgetter

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from skdp._data._tables import read_samples, read_table
from skdp.cluster._lloyd import KMeansPlan
from skdp.preprocessing._planned import ColumnsFit, PlannedTransformer
from skdp.stats._release import plan_within_bounds
from skdp.utils._clipping import finite_doubles
from skdp.utils._validation import check_integer

# A block of rows is compared with all of them at once.
MOST_CLUSTERS = 4096


class DPKMeans(ClassNamePrefixFeaturesOutMixin, PlannedTransformer):
    """K-means by noisy counts of a grid's cells and a few of Lloyd's steps with noisy sums.

    Values are clipped to `bounds`, in `fit` only. The steps start at the centres of a sample with
    the noisy counts of a grid. Each moves a centre to the noisy mean of its rows, of which those
    far away count as if they were nearer.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). A positive one takes Gaussian noise for the steps, of which
        there can be more then.
    n_clusters : int, default=8
        The number of centres, at most 4096.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high), default="auto"
        The range of each feature: numbers or arrays of shape (n_features,), or one pair for each
        column by its name or place. It must not be computed from the data. "auto" spends a fifth
        of epsilon, and at most of delta, on `skdp.stats.estimate_bounds`, in the same charge.
    {accountant}
    {random_state}

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, within the bounds.
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        The given bounds, or the released ones.
    n_iter_ : int
        The number of steps, from 1 to 4: as many as their noise makes worth while, by the table's
        shape and the budget alone.
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. There are no `labels_` and no `inertia_`:
    these would be computed from the raw rows. So scikit-learn's ``ClusterMixin``, whose checks
    demand labels, is not inherited. What `fit_predict` returns is one label for each raw row: it is
    for whoever may see the rows. Euclidean distances depend on the features' units: scale them
    first. The proof is in ``docs/clustering.md``.

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

    n_clusters: int = 8
    bounds: tuple | dict | str = "auto"

    def plan_fit(self, shape, guarantee):
        k = check_integer(self.n_clusters, "n_clusters", 1, MOST_CLUSTERS)
        plan = partial(KMeansPlan, n_rows=shape.n_rows, n_clusters=k)
        plan = plan_within_bounds(plan, self.bounds, shape, guarantee)
        return ColumnsFit(mechanism=plan, n_features_out=k, attributes=_attributes)

    def transform(self, X):
        """Return the distances of samples to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            What overflows is the largest double.
        """
        return self._distances(X)

    def predict(self, X):
        """Return the number of the nearest centre of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), dtype int64
        """
        return self._distances(X).argmin(axis=1)

    def fit_predict(self, X, y=None, *, groups=None):
        """Fit, and return the number of the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. The labels say of each where it lies; they are for whoever may see the rows.
        y : None
            Ignored, present for pipelines.
        {groups}

        Returns
        -------
        ndarray of shape (n_samples,), dtype int64
        """
        return self.fit(X, y, groups=groups).predict(X)

    def score(self, X, y=None):
        """Return minus the sum of the samples' squared distances to their centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. The score of private rows is not private.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        with np.errstate(over="ignore"):
            return -float(np.sum(self._distances(X).min(axis=1) ** 2))

    def _distances(self, X):
        # Not `transform`, whose output may be set to be a frame.
        return finite_doubles(cdist(read_samples(self, X), self.cluster_centers_))

    _n_features_out = property(attrgetter("n_clusters"))


def _attributes(released, low, high):
    return released
