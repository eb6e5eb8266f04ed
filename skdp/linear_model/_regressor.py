"""What linear models have in common: the fit by a plan; and regressors their predictions."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data._kinds import kind_of, types_of
from skdp._data._refusals import column_name, no_numbers
from skdp._data._tables import RowsAndTarget, linear_scores, read_rows_and_target, read_table
from skdp.base import PrivateEstimator, ReadTable
from skdp.linear_model._planning import ExpectedLossMixin
from skdp.utils._fit_progress import fits_alone
from skdp.utils._frames import is_frame, names_of
from skdp.utils._validation import check_target_bounds, is_auto, public_inputs
from skdp.utils._warnings import warn_user


class PrivateLinearModel(ExpectedLossMixin, PrivateEstimator):
    """The parameters of linear models, and their fit by their plans.

    A model reads by ``_read_table(X, y)``, which returns a `RowsAndTarget` with its shape, and says
    in words by ``_assumptions()`` what it takes to be public.
    """

    delta: float = 1e-6
    data_norm: float | str = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 0.3
    verbose: int = 0

    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Rows; longer ones are scaled down to `data_norm`. Data larger than memory are read
            block by block.
        y : array-like of shape (n_samples,)
            Labels; or targets, which are clipped to `target_bounds`.
        {groups}

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        {raises}
        """
        return self._fit(X, y, groups)

    def _look_at_types(self, X):
        """Refuse dates, and warn of a frame's numbers at the norm of scaled rows."""
        names, large = names_of(X) if is_frame(X) else None, []
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
                "or DPTableVectorizer(numbers='scaled'); of scaled ones give the norm of a row, "
                "for example data_norm=n_columns**0.5"
            )

    def _charge_needs_no_shape(self):
        # How much of epsilon is for the centre depends on the number of rows.
        names = ("data_norm", "mechanism", "C", "alpha")
        centred = getattr(self, "mechanism", None) == "gradient" and not hasattr(self, "C")
        return not centred and not any(is_auto(getattr(self, name, None)) for name in names)

    def _scores(self, X):
        """Return the scores of samples, a column for each output."""
        check_is_fitted(self)
        X = read_table(self, X, reset=False, accept_sparse=True)
        return linear_scores(X, np.atleast_2d(self.coef_), self.intercept_)

    def _statement(self, plan):
        return {"public": self._assumptions(), "sampler": plan.sampler}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class TargetScale:
    """Targets are clipped and fitted as (y - middle) / half."""

    low: float
    high: float
    middle: float
    half: float

    def targets(self, y):
        return (np.clip(y, self.low, self.high, dtype=np.float64) - self.middle) / self.half


def target_scale(estimator):
    """Return the scale on which targets lie in [-1, 1]; without an intercept it keeps their 0."""
    low, high = check_target_bounds(estimator.target_bounds)
    middle = low + (high - low) / 2 if estimator.fit_intercept else 0.0
    return TargetScale(low, high, middle, max(abs(high - middle), abs(low - middle)))


class PrivateLinearRegressor(RegressorMixin, PrivateLinearModel):
    """Predictions from `coef_` of shape (n_features,), `intercept_` and `target_bounds_`."""

    target_bounds: tuple[float, float] | None = None

    def _read_table(self, X, y=None, reset=True):
        self._look_at_types(X)
        X, y = read_rows_and_target(self, X, y, reset=reset, numeric=True)
        return ReadTable(rows=RowsAndTarget(X, y), shape=self._shape_of(X))

    def _assumptions(self):
        return public_inputs(self, "data_norm", "target_bounds")

    def predict(self, X):
        """Return the predicted targets of samples.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Samples, not scaled to `data_norm`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Clipped to `target_bounds`.
        """
        return np.clip(self._means(self._scores(X)[:, 0]), *self.target_bounds_)

    def _means(self, scores):
        return scores

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
