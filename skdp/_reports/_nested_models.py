"""Search for the fitted models, scorers and prototypes that an estimator contains."""

import numpy as np
from sklearn.frozen import FrozenEstimator

# Attributes in which scikit-learn's wrappers, which may themselves learn from rows, store the
# estimators that they fitted. All of these are reported. In other attributes, only private models
# are looked for, not other estimators such as label encoders.
BEST_ESTIMATOR = "best_estimator_"
WRAPPED_ESTIMATORS = ("estimators_", "estimator_", "regressor_", "final_estimator_", BEST_ESTIMATOR)
# Values from these packages, and from skdp itself, contain no fitted models.
PACKAGES_WITHOUT_MODELS = {"builtins", "numpy", "scipy", "pandas", "polars", "pyarrow", "skdp"}
# Larger containers contain a vocabulary or labels, but no models.
MAX_ENTRIES = 10_000
# Maximum depth to which containers and objects are searched for models.
MAX_DEPTH = 6


def find_nested(estimator, outer=()):
    """Return the names and fitted estimators of a container's steps, or of a wrapper.

    `outer` contains the estimators in which it is nested.
    """
    if steps := steps_of(estimator):
        return [(name, step) for name, step, *_ in steps if hasattr(step, "get_params")]
    return wrapped_estimators(estimator, outer)


def steps_of(estimator):
    """Return the steps of a pipeline, column transformer or union; () for other estimators."""
    for attribute in ("steps", "transformers_", "transformer_list"):
        if entries := getattr(estimator, attribute, ()):
            return entries
    return ()


def wrapped_estimators(estimator, outer=()):
    """Return the names and fitted estimators of a search or of another wrapper.

    `outer` contains the estimators in which it is nested, which are not found again.
    """
    # The statement of a private model covers its inner estimators. Only the model that a search
    # published has a separate statement.
    is_private = hasattr(estimator, "privacy_")
    attributes = WRAPPED_ESTIMATORS
    if is_private:
        attributes = (BEST_ESTIMATOR,)
    nested = []
    for attribute in attributes:
        value = getattr(estimator, attribute, None)
        if isinstance(value, list | tuple | np.ndarray):
            values = value
        else:
            values = [value]
        for name, item in _numbered(attribute, values):
            if hasattr(item, "get_params"):
                nested.append((name, item))
    if is_private or steps_of(estimator) or not hasattr(estimator, "__dict__"):
        return nested
    seen = {id(item) for _, item in nested} | {id(item) for item in outer} | {id(estimator)}
    for attribute, value in list(vars(estimator).items()):
        if attribute.endswith("_") and not attribute.startswith("_"):
            nested += _models_within(value, attribute, seen, (*outer, estimator))
    return nested


def is_of_sklearn(estimator):
    return type(estimator).__module__.partition(".")[0] == "sklearn"


def is_fitted(estimator):
    """Return True if an estimator has fitted attributes."""
    names = getattr(estimator, "__dict__", ())
    return any(name.endswith("_") and not name.startswith("_") for name in names)


def private_scorers(estimator):
    """Return the private scorers in the parameters of an estimator, each once."""
    scorers = []
    for value in estimator.get_params(deep=False).values():
        if isinstance(value, dict):
            values = value.values()
        else:
            values = [value]
        # The class, which cannot be imported here, is recognized by its attributes.
        scorers += [
            scorer
            for scorer in values
            if getattr(type(scorer), "releases_privately", False) is True
            and hasattr(scorer, "accountant")
        ]
    return scorers


def number_of_scores(search):
    """Return the number of scores that a search computes per scorer; None if it is unknown.

    A private scorer without a ledger makes one charge per score, and nothing records them: a
    report multiplies the charge of a score by this number.
    """
    results = getattr(search, "cv_results_", None)
    if not (isinstance(results, dict) and "params" in results and hasattr(search, "n_splits_")):
        return None
    n_tables = 1 + bool(getattr(search, "return_train_score", False))
    return len(results["params"]) * search.n_splits_ * n_tables


def private_prototypes(estimator, outer):
    """Yield the private estimators in a wrapper's parameters, at any depth.

    The wrapper, such as a search, fits copies of them, which it may not store. A report then looks
    for the charges of their classes in the ledger. Frozen estimators are not fitted.

    Parameters
    ----------
    estimator : estimator
        The wrapper, or an estimator inside it.
    outer : tuple of estimator
        The estimators around `estimator`, so that a cycle ends.
    """
    if isinstance(estimator, FrozenEstimator) or any(estimator is other for other in outer):
        return
    for value in estimator.get_params(deep=False).values():
        for entry in _as_sequence(value):
            for part in _as_sequence(entry):
                if not hasattr(part, "get_params") or isinstance(part, type):
                    continue
                params = part.get_params(deep=False)
                if "epsilon" in params and "accountant" in params:
                    yield part
                else:
                    yield from private_prototypes(part, (*outer, estimator))


def _as_sequence(value):
    """Return a list or tuple unchanged, and another value as a list of one."""
    if isinstance(value, list | tuple):
        return value
    return [value]


def _numbered(name, values):
    """Return values with their names, which contain a number if there are several values."""
    if len(values) == 1:
        return [(name, values[0])]
    return [(f"{name}{i}", value) for i, value in enumerate(values)]


def _models_within(value, name, seen, outer, depth=0):
    """Yield the names and the estimators with private models that an attribute contains.

    Lists, tuples, dicts and other objects are searched.

    Parameters
    ----------
    value : object
    name : str
        Name of the attribute.
    seen : set of int
        Ids of the objects that were searched, which is updated.
    outer : tuple
        The estimators in which the value is nested.
    depth : int, default=0
        Number of containers around the value.
    """
    if id(value) in seen or depth > MAX_DEPTH or isinstance(value, str | bytes | type):
        return
    if isinstance(value, list | tuple | dict | np.ndarray) and len(value) > MAX_ENTRIES:
        return
    seen.add(id(value))
    if hasattr(value, "get_params"):
        if _has_private_model(value, outer):
            yield name, value
        return
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        entries = _numbered(name, value)
    elif isinstance(value, dict):
        entries = [(f"{name}[{key!r}]", entry) for key, entry in value.items()]
    elif type(value).__module__.partition(".")[0] in PACKAGES_WITHOUT_MODELS:
        return
    else:
        entries = [
            (f"{name}.{key}", entry) for key, entry in getattr(value, "__dict__", {}).items()
        ]
    for entry_name, entry in entries:
        yield from _models_within(entry, entry_name, seen, outer, depth + 1)


def _has_private_model(estimator, outer):
    """Return True if an estimator is a fitted private model or contains one."""
    if hasattr(estimator, "privacy_"):
        return True
    if isinstance(estimator, FrozenEstimator):
        return _has_private_model(estimator.estimator, outer)
    if any(estimator is other for other in outer):
        return False
    outer = (*outer, estimator)
    nested = find_nested(estimator, outer)
    return any(_has_private_model(item, outer) for _, item in nested)
