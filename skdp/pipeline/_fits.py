"""How often scikit-learn's meta-estimators fit what is inside them."""

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import ParameterGrid, check_cv

from skdp.pipeline._instances import is_changed, is_estimator, of_skdp
from skdp.pipeline._kinds import deep_params, is_private, step_kind
from skdp.pipeline._planning import may_release_nothing
from skdp.pipeline._steps import UNKNOWN, Fits
from skdp.pipeline._verified import sklearn_name


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
        "At least", once or not at all, for classes that are not known exactly: some fit one for
        each class, each target or each step of an elimination, which only the table tells.
        So it is for those that calibrate, stack, halve or tune a threshold.
    """
    params = estimator.get_params(deep=False)
    rule = RULES.get(sklearn_name(estimator))
    if rule is None or params.get("warm_start") or tries_other_prices(estimator):
        return UNKNOWN
    return rule(params, name)


def tries_other_prices(search):
    """Say whether what a search tries may change how often something is fitted, or its price.

    It does not if it sets numbers, words or None as parameters of estimators of skdp or
    scikit-learn in which there are no others; budgets, accountants, and whatever decides
    whether something is released at all, are not among them.
    """
    params = search.get_params(deep=False)
    known = deep_params(params.get("estimator"))
    return not all(
        name in known and _keeps_its_price(known, name) and _are_plain(values)
        for part in grid_parts(params)
        for name, values in part.items()
    )


def grid_parts(params):
    """Return the parts of what a search tries, each a dict; none of what is no search."""
    grid = params.get("param_grid", params.get("param_distributions"))
    return grid if isinstance(grid, list) else [] if grid is None else [grid]


def _keeps_its_price(known, name):
    path, _, parameter = name.rpartition("__")
    owner = known.get(path)
    if not is_estimator(owner) or any(map(is_estimator, owner.get_params().values())):
        return False
    if not is_private(owner):
        return bool(sklearn_name(owner)) and not is_changed(owner)
    return (
        of_skdp(owner)
        and step_kind(owner) == "private"
        and not may_release_nothing(owner)
        and parameter not in ("epsilon", "delta", "accountant")
    )


def _are_plain(values):
    if hasattr(values, "rvs"):
        return type(values).__module__.startswith("scipy.stats.")
    if isinstance(values, np.ndarray):
        values = values.tolist()
    plain = bool | int | float | str | None | np.generic
    return isinstance(values, list | tuple) and all(isinstance(v, plain) for v in values)


def _folds(cv):
    """Return how many folds there are, None if only the table tells; nothing is used up."""
    if isinstance(cv, Iterator):
        return None
    try:
        return int(check_cv(cv).get_n_splits())
    except (TypeError, ValueError):
        return None


def _candidates(params):
    if "param_grid" in params:
        return len(ParameterGrid(params["param_grid"]))
    tried, most = params["param_distributions"], params["n_iter"]
    if any(hasattr(values, "rvs") for part in grid_parts(params) for values in part.values()):
        return most
    return min(most, len(ParameterGrid(tried)))


def _search(params, name):
    folds = _folds(params["cv"])
    return Fits(_candidates(params) * (folds or 1) + bool(params["refit"]), folds is not None)


def _once_or_more(params, name):
    # What is "prefit" is not fitted; halving may try a parameter that decides the price.
    fitted = not isinstance(params.get("cv"), str)
    return Fits(fitted and params.get("resource", "n_samples") == "n_samples", exact=False)


ONCE = {
    *("FixedThresholdClassifier", "TransformedTargetRegressor"),
    *("VotingClassifier", "VotingRegressor"),
}
ONCE_OR_MORE = {
    *("CalibratedClassifierCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
    *("StackingClassifier", "StackingRegressor", "TunedThresholdClassifierCV"),
    *("ClassifierChain", "MultiOutputClassifier", "MultiOutputRegressor", "OneVsOneClassifier"),
    *("RFE", "RFECV", "RegressorChain", "SelfTrainingClassifier", "SequentialFeatureSelector"),
}
# By their names, since scikit-learn calls some experimental and imports these on demand alone.
RULES = {
    "SelectFromModel": lambda params, name: Fits(0 if params["prefit"] else 1),
    **dict.fromkeys(
        ("BaggingClassifier", "BaggingRegressor"), lambda p, _: Fits(p["n_estimators"])
    ),
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV"), _search),
    **dict.fromkeys(ONCE, lambda params, name: Fits()),
    **dict.fromkeys(ONCE_OR_MORE, _once_or_more),
}
