"""What linear models have in common: the fit by a plan; and regressors their predictions."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._kinds import types_of
from skdp._data._refusals import column_name, no_numbers
from skdp._data._tables import linear_scores, read_numeric_target, read_table
from skdp.base import TableEstimator, row_wise_answer
from skdp.linear_model._planning import ExpectedLossMixin
from skdp.utils._fit_progress import fits_alone
from skdp.utils._frames import is_frame, kind_of, names_of
from skdp.utils._validation import check_target_bounds
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user


@dataclass(frozen=True)
class TargetScale(FrozenValue):
    """Targets are clipped and fitted as (y - middle) / half."""

    low: float
    high: float
    middle: float
    half: float

    def targets(self, y):
        scaled = np.clip(y, self.low, self.high, dtype=np.float64)
        scaled -= self.middle
        scaled /= self.half
        return scaled


class PrivateLinearModel(ExpectedLossMixin, TableEstimator):
    """The parameters of linear models, and their fit by their plans.

    A model reads by ``_read_target(y, n_rows)`` the classes that there can be, or None, and a
    number a row.
    """

    _accepts = ("sparse",)
    _public = ("data_norm",)
    _shape_dependent_if_auto = ("data_norm", "mechanism", "C", "alpha")
    # Codes of classes are not scaled.
    _units = TargetScale(-math.inf, math.inf, 0.0, 1.0)

    def _read(self, X, reset=True):
        """Read rows, refuse dates, and warn of a frame's numbers at the norm of scaled rows."""
        names = names_of(X) if is_frame(X) else None
        large = []
        # What comes out of a step as a float is scaled.
        types = ("int", "uint", "float", "double") if fits_alone() else ("int", "uint")
        for j, dtype in enumerate(types_of(X)):
            if kind_of(dtype) in ("date", "duration"):
                raise no_numbers(column_name(j, names))
            if names is not None and str(dtype).lower().startswith(types):
                large.append(column_name(j, names))
        if large and self.data_norm == 1.0:
            warn_user(
                f"{large[0]} holds numbers, and data_norm=1.0 shortens longer rows to norm 1, so "
                "that large columns hide the others: scale the columns first, by tabular_pipeline "
                "or DPTableVectorizer(numeric='scaled'); of scaled ones give the norm of a row, "
                "for example data_norm=n_columns**0.5"
            )
        return read_table(self, X, reset=reset, accept_sparse=True)

    def _charge_needs_no_shape(self):
        # How much of epsilon is for the center depends on the number of rows.
        centered = getattr(self, "mechanism", "gradient") == "gradient" and not hasattr(self, "C")
        return not centered and super()._charge_needs_no_shape()

    def _scores(self, X):
        """Return the scores of samples, a column for each output."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False, accept_sparse=True)
        return linear_scores(X, np.atleast_2d(self.coef_), self.intercept_)


class PrivatePredictorMixin:
    """Of predictors: they answer row by row, and few rows teach them nothing at epsilon 1."""

    _row_by_row = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        (tags.classifier_tags or tags.regressor_tags).poor_score = True
        return tags


class PrivateRegressorMixin(PrivatePredictorMixin, RegressorMixin):
    """Targets, which plans take on the scale of the parameter `target_bounds`."""

    @property
    def _units(self):
        """The scale on which targets lie in [-1, 1]; without an intercept it keeps their 0."""
        low, high = check_target_bounds(self.target_bounds)
        middle = low + (high - low) / 2 if getattr(self, "fit_intercept", True) else 0.0
        return TargetScale(low, high, middle, max(abs(high - middle), abs(low - middle)))

    def _read_target(self, y, n_rows):
        """Return that there are no classes, and the targets on their scale."""
        return None, self._units.targets(read_numeric_target(self, y, n_rows))

    def _assumptions(self):
        return (*super()._assumptions(), "target_bounds")


class PrivateLinearRegressor(PrivateRegressorMixin, PrivateLinearModel):
    """Predictions from `coef_` of shape (n_features,), `intercept_` and `target_bounds_`."""

    def _released(self, run, plan):
        units = self._units
        return run | {
            "coef_": units.half * run["coef_"][0],
            "intercept_": float(units.middle + units.half * run["intercept_"][0]),
            "target_bounds_": (units.low, units.high),
        }

    @row_wise_answer
    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Clipped to `target_bounds`.
        """
        return np.clip(self._means(self._scores(X)[:, 0]), *self.target_bounds_)

    def _means(self, scores):
        return scores
