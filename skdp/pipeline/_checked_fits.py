"""Containers of scikit-learn whose fits check every step before the first charge."""

from traceback import walk_tb

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.pipeline._fit_params import check_fit_params
from skdp.pipeline._known import find_entry, find_raw_steps
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._trial import read_raw_cells
from skdp.utils._callers import register_step_reader

# Private fits look at the pipelines around them, and stand below this package.
register_step_reader(find_raw_steps)

NO_COLUMNS = (
    "the steps of the ColumnTransformer made no column, as no category was found. What was "
    "charged stays charged. Declare the categories, or give DPOneHotEncoder(other=...) a label "
    "for all others, which has a column in any case"
)


class CheckedFitsMixin:
    """Fits that check all steps' parameters and the raw cells before the first step is charged.

    Attributes
    ----------
    checks_fits : bool
        False in a trial of the fit.
    """

    checks_fits = True
    # All private steps were planned together, before any of them ran: a report composes them so.
    _is_one_plan = True

    def _fit_checked(self, fit, X, y, params):
        if self.checks_fits:
            check_fit_params(self, params)
            check_parameters(self, PublicTable.of_fit(self, X, y))
            read_raw_cells(self, X, y, params)
        try:
            return fit(X, y, **params)
        except ZeroDivisionError as error:
            if _is_of_column_transformer(error):
                # It divides by the number of cells, to find the density of a sparse table.
                raise ValueError(NO_COLUMNS) from error
            raise

    def fit(self, X, y=None, **params):
        return self._fit_checked(super().fit, X, y, params)

    def fit_transform(self, X, y=None, **params):
        return self._fit_checked(super().fit_transform, X, y, params)


def _is_of_column_transformer(error):
    """Return whether a `ColumnTransformer` raised an error itself, and no step inside it."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == ColumnTransformer.__module__


class SplitPipeline(CheckedFitsMixin, Pipeline):
    """A `Pipeline` whose fits check all steps before the first one runs."""

    def fit_predict(self, X, y=None, **params):
        return self._fit_checked(super().fit_predict, X, y, params)


class SplitFeatureUnion(CheckedFitsMixin, FeatureUnion):
    """A `FeatureUnion` whose fits check all parts before the first one runs."""


class SplitColumnTransformer(CheckedFitsMixin, ColumnTransformer):
    """A `ColumnTransformer` whose fits check all parts before the first one runs."""

    # It calls `fit_transform`, which checks.
    fit = ColumnTransformer.fit


CHECKED = {
    Pipeline: SplitPipeline,
    FeatureUnion: SplitFeatureUnion,
    ColumnTransformer: SplitColumnTransformer,
}


def with_checked_fits(pipe):
    """Return a container whose fits check the parameters of all steps first.

    Parameters
    ----------
    pipe : estimator
        Not fitted. One that is no container checks its parameters itself.

    Returns
    -------
    estimator
        With the same steps and settings.
    """
    kind = CHECKED.get(type(pipe))
    if kind is None and isinstance(pipe, Pipeline) and find_entry(pipe).kind == "container":
        # imbalanced-learn's. Without resamplers, which no plan accepts, it does the same.
        kind = SplitPipeline
    if kind is None:
        return pipe
    checked = kind(**pipe.get_params(deep=False))
    # `set_output` and requests for metadata are kept beside the parameters.
    vars(checked).update(vars(pipe))
    return checked
