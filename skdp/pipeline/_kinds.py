"""What a step of a pipeline learns from the table, and at whose cost."""

import sys
from inspect import signature

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from skdp.pipeline._verified import ROW_BY_ROW_ONCE_FITTED, of_sklearn, verified

__all__ = [
    "KINDS",
    "REASONS",
    "is_changed",
    "is_estimator",
    "is_private",
    "local_part",
    "of_skdp",
    "plans_its_fit",
    "step_kind",
]

REASONS = {
    "private": "its fit is charged",
    "local": "each row's transform is charged, in predictions too",
    "stateless": "learns nothing",
    "frozen": "was fitted before and is not fitted again",
    "declared": "learns nothing beyond what its parameters declare",
    "learns": "learns from the data without privacy",
    "wrapper": "fits the estimators inside it in ways that cannot be checked",
    "cross_validates": "chooses by scores on private rows, which are raw",
}
KINDS = tuple(REASONS)
ACCEPTED = ("private", "stateless", "frozen", "declared")

# Parameters of these names are functions that never see a row once the estimator is fitted.
SEES_NO_ROW = {"feature_name_combiner", "feature_names_out", "importance_getter", "score_func"}


def is_estimator(value):
    """Say whether a value is an estimator and not a class or a word."""
    return hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type)


def is_private(estimator):
    """Say whether an estimator has what every private one has: a price and an accountant."""
    names = estimator.get_params(deep=False) if is_estimator(estimator) else {}
    return {"epsilon", "accountant"} <= set(names)


def of_skdp(estimator):
    """Say whether an estimator's class is one that skdp exports, and no subclass of it."""
    kind = type(estimator)
    return vars(sys.modules["skdp"]).get(kind.__name__) is kind


def is_changed(estimator):
    """Say whether an estimator has, beside its parameters and results, a method of its own."""
    kind = type(estimator)
    own = set(getattr(estimator, "__dict__", {})) - set(signature(kind.__init__).parameters)
    return any(name.startswith("__") or hasattr(kind, name) for name in own)


def plans_its_fit(estimator):
    """Say whether a private estimator says beforehand what its fit releases.

    Its ``plan_fit`` is that of the class whose `fit` runs, or of one derived from that. A search
    is planned by its epsilon and delta.
    """
    if is_estimator(estimator.get_params(deep=False).get("estimator")):
        return False
    places = {}
    for place, kind in enumerate(type(estimator).__mro__):
        for name in {"fit", "plan_fit"} & set(vars(kind)):
            places.setdefault(name, place)
    return "plan_fit" in places and places["plan_fit"] <= places["fit"]


def step_kind(estimator):
    """Say what an estimator learns from the table, and at whose cost.

    What was verified is known by its exact class and its parameters. A class of your own says
    what it is by an attribute ``__skdp_kind__``, one of `KINDS`; subclasses do not inherit it.

    - "private" is an estimator of skdp with parameters `epsilon` and `accountant`; "local"
      moreover releases in `transform`, as its tag ``non_deterministic`` says,
    - "frozen" is a `sklearn.frozen.FrozenEstimator`, unless what is inside it is "local", or
      is not known to transform each row by itself,
    - "stateless" is one of scikit-learn's that treats each row by itself and keeps nothing, as
      `sklearn.preprocessing.Normalizer`; or is "passthrough",
    - "declared" is one of scikit-learn's whose parameters leave it nothing to learn but the
      table's width, as ``OneHotEncoder(categories=[["a", "b"]])``,
    - "cross_validates" has a parameter `cv`, "wrapper" has estimators as parameters,
    - "learns" is everything else, so also every unknown estimator.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If ``__skdp_kind__`` is no kind, or says "private" where there is no price to set.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> from skdp import DPStandardScaler
    >>> from skdp.pipeline import step_kind
    >>> step_kind(DPStandardScaler()), step_kind(StandardScaler()), step_kind(Normalizer())
    ('private', 'learns', 'stateless')
    >>> step_kind(OneHotEncoder()), step_kind(OneHotEncoder(categories=[["no", "yes"]]))
    ('learns', 'declared')
    """
    if estimator is None or (type(estimator) is str and estimator in ("passthrough", "drop")):
        return "stateless"
    declared = vars(type(estimator)).get("__skdp_kind__")
    if declared is not None and declared not in KINDS:
        raise ValueError(f"__skdp_kind__ must be one of {KINDS}, got {declared!r}")
    if declared in ("private", "local") and not is_private(estimator):
        raise ValueError(f"{estimator!r} says it is {declared} but has no epsilon to set")
    if is_changed(estimator):
        return "learns"
    if declared is not None:
        return declared
    if type(estimator) is FrozenEstimator:
        return _frozen_kind(estimator.estimator)
    if of_skdp(estimator) and is_private(estimator):
        return "local" if get_tags(estimator).non_deterministic else "private"
    found = verified(estimator)
    if found is not None:
        return found.kind
    params = estimator.get_params(deep=False) if is_estimator(estimator) else {}
    if "cv" in params:
        return "cross_validates"
    return "wrapper" if any(map(_holds_estimator, params.values())) else "learns"


def _frozen_kind(estimator):
    """Return the kind of a frozen estimator: what its `transform` would do with a table."""
    parts = list(_estimators_in(estimator, set()))
    if any(_is_local(part) for part in parts):
        return "local"
    return "frozen" if parts and all(map(_is_safe_once_fitted, parts)) else "learns"


def _estimators_in(value, seen):
    """Yield the estimators that a value holds as parameters, results, or deeper inside."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if is_estimator(value):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, list | tuple):
        for part in value:
            yield from _estimators_in(part, seen)


def local_part(estimator):
    """Return the estimator whose transforms are charged, in a step that is "local"."""
    if type(estimator) is not FrozenEstimator:
        return estimator
    return next(part for part in _estimators_in(estimator, set()) if _is_local(part))


def _is_local(estimator):
    return type(estimator) is not FrozenEstimator and step_kind(estimator) == "local"


def _is_safe_once_fitted(estimator):
    if is_changed(estimator):
        return False
    if "__skdp_kind__" in vars(type(estimator)) or of_skdp(estimator):
        return True
    if not of_sklearn(estimator):
        return False
    if not hasattr(type(estimator), "transform") or _only_combines(estimator):
        return True
    if type(estimator) not in ROW_BY_ROW_ONCE_FITTED:
        return False
    if step_kind(estimator) == "stateless":
        return True
    params = estimator.get_params(deep=False)
    return "FunctionTransformer" != type(estimator).__name__ and all(
        name in SEES_NO_ROW or isinstance(value, type) or not callable(value)
        for name, value in params.items()
        if not is_estimator(value)
    )


def _only_combines(estimator):
    """Say whether an estimator's `transform` is that of the estimators inside it."""
    names = ("Pipeline", "FeatureUnion", "ColumnTransformer", "FrozenEstimator")
    searches = ("GridSearchCV", "RandomizedSearchCV", "VotingClassifier", "VotingRegressor")
    return type(estimator).__name__ in (*names, *searches)


def _holds_estimator(value):
    values = value if isinstance(value, list | tuple) else [value]
    parts = [p for v in values for p in (v if isinstance(v, tuple) else [v])]
    return any(map(is_estimator, parts))
