"""What a step of a pipeline learns from the table, and at whose cost."""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from skdp.pipeline._functions import is_plain
from skdp.pipeline._instances import infers_types, is_changed, is_estimator, named_parts, of_skdp
from skdp.pipeline._verified import ROW_BY_ROW_ONCE_FITTED, is_class_of, sklearn_name, verified

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

# Parameters and results of these names never see a row once the estimator is fitted.
SEES_NO_ROW = {
    *("feature_name_combiner", "feature_names_out", "verbose_feature_names_out"),
    *("importance_getter", "score_func", "scoring", "refit", "cv", "memory"),
    *("param_grid", "param_distributions", "scorer_"),
}
# What a classifier keeps for its labels; of a table they make as many columns as it has labels.
LABEL_CODES = ("LabelBinarizer", "LabelEncoder")
LIBRARIES = ("numpy", "pandas", "scipy", "skdp", "sklearn")
# What these of scikit-learn do once they are fitted is what the estimators inside them do.
COMBINE = {
    *("Pipeline", "FeatureUnion", "ColumnTransformer", "FrozenEstimator"),
    *("GridSearchCV", "RandomizedSearchCV", "VotingClassifier", "VotingRegressor"),
}


def is_private(estimator):
    """Say whether an estimator has what every private one has: a price and an accountant."""
    names = estimator.get_params(deep=False) if is_estimator(estimator) else {}
    return {"epsilon", "accountant"} <= set(names)


def deep_params(estimator):
    """Return an estimator and all in it by their names, what is in no estimator left out."""
    try:
        return {"": estimator} | (estimator.get_params() if is_estimator(estimator) else {})
    except TypeError:
        # A class stands in the place of an estimator; it is refused as a step.
        return {"": estimator}


def plans_its_fit(estimator):
    """Say whether a private estimator says beforehand what its fit releases.

    Its ``plan_fit`` is that of the class whose `fit` runs, or of one derived from that. A search
    is planned by its epsilon and delta.
    """
    if is_estimator(estimator.get_params(deep=False).get("estimator")):
        return False
    own = (vars(kind).keys() & {"fit", "plan_fit"} for kind in type(estimator).__mro__)
    return "plan_fit" in next(filter(None, own), ())


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
    - "learns" is everything else, so also every unknown estimator, and one told by `set_output`
      to make a frame of what may be words, because pandas infers types from all cells.

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
        if get_tags(estimator).non_deterministic:
            return "local"
        return "learns" if infers_types(estimator) else "private"
    found = verified(estimator)
    if found is not None:
        return "learns" if infers_types(estimator) else found.kind
    if not is_estimator(estimator):
        return "learns"
    if "cv" in estimator.get_params(deep=False):
        return "cross_validates"
    return "wrapper" if any(is_estimator(part) for _, part in named_parts(estimator)) else "learns"


def _frozen_kind(estimator):
    """Return the kind of a frozen estimator: what its `transform` would do with a table."""
    parts = list(estimators_in(estimator, set()))
    if any(_is_local(part) for part in parts):
        return "local"
    return "frozen" if parts and all(map(_is_safe_once_fitted, parts)) else "learns"


def estimators_in(value, seen):
    """Yield the estimators that a value holds as parameters, results, or deeper inside."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if is_estimator(value):
        yield value
        codes = LABEL_CODES if hasattr(value, "predict") else ()
        value = [part for part in vars(value).values() if sklearn_name(part) not in codes]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, list | tuple):
        for part in value:
            yield from estimators_in(part, seen)


def local_part(estimator):
    """Return the estimator whose transforms are charged, in a step that is "local"."""
    if type(estimator) is not FrozenEstimator:
        return estimator
    return next(part for part in estimators_in(estimator, set()) if _is_local(part))


def _is_local(estimator):
    return type(estimator) is not FrozenEstimator and step_kind(estimator) == "local"


def _is_safe_once_fitted(estimator):
    """Say whether what an estimator does with a row depends on no other, nested ones apart."""
    if not is_estimator(estimator) or is_changed(estimator) or infers_types(estimator):
        return False
    kind, params = type(estimator), estimator.get_params(deep=False)
    if "__skdp_kind__" in vars(kind):
        return step_kind(estimator) in ACCEPTED
    # A result of another class can take over an operation with the table.
    given = {*params, *SEES_NO_ROW}
    if not all(_is_result(v) for name, v in vars(estimator).items() if name not in given):
        return False
    if of_skdp(estimator):
        return True
    name = sklearn_name(estimator)
    if name in ("", "FunctionTransformer"):
        return bool(name) and step_kind(estimator) == "stateless"
    known = name in ROW_BY_ROW_ONCE_FITTED | COMBINE or not hasattr(kind, "transform")
    if params.get("input", "content") != "content":
        return False
    if kind is ColumnTransformer:
        # What is chosen for each is no estimator.
        entries = (*estimator.transformers, *getattr(estimator, "transformers_", ()))
        params["transformers"] = [part for _, part, _ in entries]
    return known and all(name in SEES_NO_ROW or _is_inert(value) for name, value in params.items())


def _is_result(value):
    """Say whether a fitted attribute is data, or of the libraries' classes and holds only such."""
    seen, stack = {}, [value]
    while stack:
        part = stack.pop()
        kind = type(part)
        if isinstance(part, np.ndarray) and is_class_of(kind, *LIBRARIES):
            # A memory map, or a masked array.
            part = np.asarray(part)
            part = part.ravel().tolist() if part.dtype.hasobject else part
        if id(part) in seen or is_plain(part) or is_estimator(part):
            continue
        seen[id(part)] = part
        # A class or a function of the libraries, or an instance of one that hides nothing.
        known = is_class_of(part if hasattr(part, "__qualname__") else kind, *LIBRARIES)
        hides = hasattr(kind, "to_numpy") or kind is np.ufunc
        if hides or not (known or type(part) in (list, tuple, dict)):
            return False
        stack += getattr(part, "__dict__", {}).values()
        if isinstance(part, list | tuple | dict):
            stack += part.values() if isinstance(part, dict) else part
    return True


def _is_inert(value):
    """Say whether a parameter is data, or estimators, which are judged by themselves."""
    if type(value) in (list, tuple):
        return all(map(_is_inert, value))
    return is_estimator(value) or is_plain(value)
