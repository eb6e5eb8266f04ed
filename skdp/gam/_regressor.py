"""Regression by an additive model on private bins."""

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from skdp._data._tables import read_numeric_target
from skdp.gam._additive import PrivateAdditiveMixin
from skdp.gam._tasks import NumberTask
from skdp.utils._callbacks import with_callbacks
from skdp.utils._validation import check_target_bounds

__all__ = ["DPAdditiveRegressor"]


class DPAdditiveRegressor(PrivateAdditiveMixin, RegressorMixin, BaseEstimator):
    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=1e-6,
        target_bounds=None,
        bounds="auto",
        categories=None,
        n_bins="auto",
        interactions=0,
        monotonic_cst=None,
        accountant=None,
        random_state=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.interactions = interactions
        self.monotonic_cst = monotonic_cst
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y):
        return self._fit(X, y)

    def plan_fit(self, shape, guarantee):
        check_target_bounds(self.target_bounds)
        return self._plan(NumberTask(), shape, guarantee)

    def _read_target(self, y, n_rows):
        y = read_numeric_target(self, y, n_rows)
        low, high = check_target_bounds(self.target_bounds)
        # Halved first: the span of finite bounds is finite.
        return None, np.clip((y - 0.5 * (low + high)) / (0.5 * (high - low)), -1.0, 1.0)

    def _rescaled(self, shapes, constant):
        low, high = check_target_bounds(self.target_bounds)
        half, middle = 0.5 * (high - low), 0.5 * low + 0.5 * high
        shapes = [replace(shape, values=half * shape.values) for shape in shapes]
        released = super()._rescaled(shapes, middle + half * constant)
        return released | {"target_bounds_": (low, high)}

    def predict(self, X):
        return np.clip(self._scores(X), *self.target_bounds_)

    def _assumptions(self):
        return (*super()._assumptions(), "target_bounds")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
