"""Base classes of linear models: reading rows, scaling targets, predictions of regressors."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._chunked import meta_of
from skdp._data._errors import column_name
from skdp._data._frames import is_frame, names_of
from skdp._data._kinds import types_of
from skdp._data._lengths import opened_table
from skdp._data._tables import (
    check_types_of_numbers,
    is_number_array,
    linear_scores,
    read_numeric_target,
    read_table,
)
from skdp._fitting._fit_progress import fits_alone
from skdp.base import TableEstimator, row_wise_answer
from skdp.linear_model._planning import ExpectedLossMixin
from skdp.utils._validation import check_boolean, check_target_bounds
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user


@dataclass(frozen=True)
class TargetScale(FrozenValue):
    """Scale of targets: y is clipped to [low, high] and mapped to (y - offset) / half_range."""

    low: float
    high: float
    offset: float
    half_range: float

    def targets(self, y):
        """Return the clipped and scaled targets."""
        scaled = np.clip(y, self.low, self.high, dtype=np.float64)
        scaled -= self.offset
        scaled /= self.half_range
        return scaled


UNSCALED = TargetScale(-math.inf, math.inf, 0.0, 1.0)


class PrivateLinearModel(ExpectedLossMixin, TableEstimator):
    """Base class of linear models.

    A model's ``_read_target(y, n_rows)`` returns the classes, or None for a regressor, and one
    number per row.
    """

    _accepts = ("sparse",)
    _public = ("data_norm",)
    _shape_dependent_if_auto = ("data_norm", "mechanism", "C", "alpha")

    @property
    def _target_scale(self):
        """The scale of the numbers per row. Class codes are not scaled."""
        return UNSCALED

    def _read(self, X, reset=True):
        """Return the rows; refuse dates, and warn about unscaled columns if data_norm is 1."""
        if is_number_array(X):
            # No column has a name by which the advice about its scale could name it.
            return read_table(self, X, reset=reset, accept_sparse=True)
        # The types of a partitioned table are known only once it has been opened.
        X = opened_table(X)
        check_types_of_numbers(X, after_fit=not reset)
        # The table is read first, because a table that is refused should not trigger advice about
        # its scale.
        table = read_table(self, X, reset=reset, accept_sparse=True)
        meta = meta_of(X)
        names = None
        if is_frame(meta):
            names = names_of(meta)
        unscaled = []
        types = ("int", "uint")
        if fits_alone():
            # Within a pipeline, floats are assumed to be scaled by an earlier step.
            types += ("float", "double")
        for j, dtype in enumerate(types_of(X)):
            if names is not None and str(dtype).lower().startswith(types):
                unscaled.append(column_name(j, names))
        if unscaled and isinstance(self.data_norm, Real) and self.data_norm == 1.0:
            warn_user(
                f"{unscaled[0]} holds numbers, and data_norm=1.0 scales longer rows down to norm "
                "1, so that columns of large numbers hide the others: scale the columns first, "
                "with tabular_pipeline or DPTableVectorizer(numeric='scaled'); for scaled columns, "
                "set data_norm to the norm of a row, for example data_norm=n_columns**0.5"
            )
        return table

    def _charge_needs_no_shape(self):
        """Return True if a fit charges the same for tables of every shape."""
        # The budget fraction of the baseline depends on the number of rows.
        mechanism = getattr(self, "mechanism", "gradient")
        has_baseline = mechanism == "gradient" and not hasattr(self, "C")
        return not has_baseline and super()._charge_needs_no_shape()

    def _scores(self, X):
        """Return the scores of samples, one column per output."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False, accept_sparse=True)
        return linear_scores(X, np.atleast_2d(self.coef_), self.intercept_)


class PrivatePredictorMixin:
    """Tags of predictors, whose scores are poor on few rows at epsilon = 1."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        (tags.classifier_tags or tags.regressor_tags).poor_score = True
        return tags


class PrivateRegressorMixin(PrivatePredictorMixin, RegressorMixin):
    """Targets of regressors, which are clipped to `target_bounds` and scaled."""

    @property
    def _target_scale(self):
        """The scale with targets in [-1, 1]. Without an intercept the offset is 0."""
        low, high = check_target_bounds(self.target_bounds)
        offset = 0.0
        if check_boolean(getattr(self, "fit_intercept", True), "fit_intercept"):
            offset = low + (high - low) / 2
        half_range = max(abs(high - offset), abs(low - offset))
        return TargetScale(low, high, offset, half_range)

    def _read_target(self, y, n_rows):
        """Return None, for no classes, and the scaled targets."""
        return None, self._target_scale.targets(read_numeric_target(self, y, n_rows))

    def _assumptions(self):
        return (*super()._assumptions(), "target_bounds")


class PrivateLinearRegressor(PrivateRegressorMixin, PrivateLinearModel):
    """Predictions from `coef_` of shape (n_features,), `intercept_` and `target_bounds_`."""

    @row_wise_answer
    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, clipped to `target_bounds`.
        """
        return np.clip(self._means(self._scores(X)[:, 0]), *self.target_bounds_)

    def _means(self, scores):
        """Return the mean target for each score."""
        return scores
