"""How often scikit-learn's meta-estimators fit what is inside them."""

from dataclasses import dataclass

from sklearn import calibration, compose, ensemble, feature_selection, model_selection

from skdp.pipeline._instances import is_estimator
from skdp.pipeline._verified import of_sklearn

__all__ = ["Fits", "fits_of"]

# Not imported: scikit-learn calls them experimental.
HALVING = ("HalvingGridSearchCV", "HalvingRandomSearchCV")


@dataclass(frozen=True)
class Fits:
    """A number of fits.

    Parameters
    ----------
    least : int, default=1
        That many, or more.
    exact : bool, default=True
        Whether it is never more.
    """

    least: int = 1
    exact: bool = True

    def __mul__(self, other):
        return Fits(self.least * other.least, self.exact and other.exact)


def fits_of(estimator, name):
    """Return how often a fit of a meta-estimator fits one of the estimators inside it.

    Parameters
    ----------
    estimator : estimator
    name : str
        The parameter, or the name in a list, under which the inner one stands.

    Returns
    -------
    Fits
        "At least one" for classes that are not known exactly: some fit one for each class, each
        target or each step of an elimination, which only the table tells.
    """
    rule = RULES.get(type(estimator))
    params = estimator.get_params(deep=False)
    if of_sklearn(estimator) and type(estimator).__name__ in HALVING:
        rule = _halving
    if rule is None or params.get("warm_start"):
        return AT_LEAST_ONE
    if _changes_what_is_charged(params):
        return Fits(0, exact=False)
    return rule(params, name)


def _changes_what_is_charged(params):
    """Say whether a search tries other budgets, or other steps in the place of what is priced."""
    grid = params.get("param_grid", params.get("param_distributions")) or {}
    tried = [pair for part in (grid if isinstance(grid, list) else [grid]) for pair in part.items()]
    return any(
        name.split("__")[-1] in ("epsilon", "delta", "accountant")
        or any(is_estimator(v) or isinstance(v, str) and v in ("passthrough", "drop") for v in each)
        for name, each in ((name, v if isinstance(v, list | tuple) else []) for name, v in tried)
    )


AT_LEAST_ONE = Fits(1, exact=False)


def _folds(cv):
    """Return how many folds there are, None if only the table tells; nothing is used up."""
    if cv is None:
        return 5
    if isinstance(cv, int):
        return cv
    if isinstance(cv, list | tuple):
        return len(cv)
    try:
        return int(cv.get_n_splits())
    except (AttributeError, TypeError, ValueError):
        return None


def _candidates(params):
    if "param_grid" in params:
        return len(model_selection.ParameterGrid(params["param_grid"]))
    tried, most = params["param_distributions"], params["n_iter"]
    parts = tried if isinstance(tried, list) else [tried]
    if any(hasattr(values, "rvs") for part in parts for values in part.values()):
        return most
    return min(most, len(model_selection.ParameterGrid(tried)))


def _search(params, name):
    folds = _folds(params["cv"])
    refit = bool(params["refit"])
    if folds is None:
        return Fits(_candidates(params) + refit, exact=False)
    return Fits(_candidates(params) * folds + refit)


def _halving(params, name):
    # The first round tries all; how many follow depends on the number of rows.
    folds = _folds(params["cv"]) or 1
    first = _candidates(params) if "param_grid" in params else 1
    return Fits(first * folds + bool(params["refit"]), exact=False)


def _stacking(params, name):
    if name == "final_estimator":
        return Fits()
    if isinstance(params["cv"], str):
        return Fits(0)
    folds = _folds(params["cv"])
    return AT_LEAST_ONE if folds is None else Fits(folds + 1)


def _calibrated(params, name):
    if isinstance(params["cv"], str):
        return Fits(0)
    folds = _folds(params["cv"])
    if folds is None or params["ensemble"] not in (True, False):
        return Fits(folds or 1, exact=False)
    return Fits(folds if params["ensemble"] else folds + 1)


def _bagging(params, name):
    return Fits(params["n_estimators"])


def _once(params, name):
    return Fits()


def _unless_prefit(params, name):
    return Fits(0 if params["prefit"] else 1)


RULES = {
    calibration.CalibratedClassifierCV: _calibrated,
    compose.TransformedTargetRegressor: _once,
    ensemble.BaggingClassifier: _bagging,
    ensemble.BaggingRegressor: _bagging,
    ensemble.StackingClassifier: _stacking,
    ensemble.StackingRegressor: _stacking,
    ensemble.VotingClassifier: _once,
    ensemble.VotingRegressor: _once,
    feature_selection.SelectFromModel: _unless_prefit,
    model_selection.FixedThresholdClassifier: _once,
    model_selection.GridSearchCV: _search,
    model_selection.RandomizedSearchCV: _search,
}
