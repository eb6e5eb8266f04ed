"""Containers of scikit-learn whose fits check every step's parameters before the first charge."""

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.pipeline._instances import CONTAINERS
from skdp.pipeline._parameters import PublicTable, check_parameters


class SplitBudget:
    """Marks containers whose private steps were planned together, before any of them ran."""

    _is_one_plan = True


class SplitPipeline(SplitBudget, Pipeline):
    """A `Pipeline` whose fits check the parameters of all steps before the first one runs."""

    def fit(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit(X, y, **params)

    def fit_transform(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit_transform(X, y, **params)

    def fit_predict(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit_predict(X, y, **params)


class SplitFeatureUnion(SplitBudget, FeatureUnion):
    """A `FeatureUnion` whose fits check the parameters of all parts before the first one runs."""

    def fit(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit(X, y, **params)

    def fit_transform(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit_transform(X, y, **params)


class SplitColumnTransformer(SplitBudget, ColumnTransformer):
    """A `ColumnTransformer` whose fits check all parts' parameters before the first one runs."""

    # `fit` of a ColumnTransformer calls `fit_transform`.
    def fit_transform(self, X, y=None, **params):
        check_parameters(self, PublicTable.of_fit(self, X, y))
        return super().fit_transform(X, y, **params)


CHECKED = {
    Pipeline: SplitPipeline,
    FeatureUnion: SplitFeatureUnion,
    ColumnTransformer: SplitColumnTransformer,
}
CONTAINERS.update(CHECKED.values())


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
    if type(pipe) not in CHECKED:
        return pipe
    checked = CHECKED[type(pipe)](**pipe.get_params(deep=False))
    # `set_output` and requests for metadata are kept beside the parameters.
    vars(checked).update(vars(pipe))
    return checked
