"""Parameters and parts of estimators, and the settings of their output."""

import re
import sys
from functools import partial
from inspect import signature

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._data._output import asks_for_frame
from skdp.utils._validation import is_estimator

# Parameter of scikit-learn's containers that lists their parts, and the items of a part.
PART_LISTS = {
    Pipeline: ("steps", ("name", "estimator")),
    FeatureUnion: ("transformer_list", ("name", "transformer")),
    ColumnTransformer: ("transformers", ("name", "transformer", "columns")),
}


def check_parts(container):
    """Raise `ValueError` if a container's list of parts is not a list of tuples that name them.

    Otherwise, an error from unpacking a part would not name the parameter.
    """
    for kind, (parameter, items) in PART_LISTS.items():
        if not isinstance(container, kind):
            continue
        parts = getattr(container, parameter)
        is_list = isinstance(parts, list | tuple)
        if not is_list or not all(map(partial(_is_part, n_items=len(items)), parts)):
            raise ValueError(
                f"{parameter} must be a list of ({', '.join(items)}) tuples, got {parts!r}"
            )


def _is_part(part, n_items):
    """Return True for a list or tuple of `n_items` items, of which the first is a name."""
    return isinstance(part, list | tuple) and len(part) == n_items and isinstance(part[0], str)


def of_skdp(estimator):
    """Return True if an estimator's class is exported by skdp; subclasses do not count."""
    kind = type(estimator)
    package = sys.modules["skdp"]
    # Public names are imported when they are first used, so a class may not be there yet.
    is_public = kind.__module__.startswith("skdp.") and kind.__name__ in package.__all__
    return is_public and getattr(package, kind.__name__) is kind


def sklearn_name(value):
    """Return the name of a value's class if scikit-learn defines it, otherwise ""."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "sklearn":
        return kind.__name__
    return ""


def step_message(title, error, params=None):
    """Return an error message that begins with the step's name.

    Parameters
    ----------
    title : str
    error : Exception or str
    params : dict, default=None
        Parameters of the step. If the error names none of them, the message lists those that differ
        from their defaults.
    """
    text = str(error) or type(error).__name__
    is_named = text.startswith("step ")
    if title and text.startswith(f"step '{title}"):
        # An error in a step inside this step names both steps.
        return text
    if (
        params
        and not is_named
        and not any(re.search(rf"\b{re.escape(name)}\b", text) for name in params)
    ):
        settings = ", ".join(f"{name}={value!r}" for name, value in params.items())
        text = f"{text} (it was given {settings})"
    return f"step {title!r}: {text}"


def changed_params(estimator):
    """Return the parameters that differ from their defaults, except budget parameters.

    Parameters
    ----------
    estimator : estimator
    """
    defaults = {
        name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()
    }
    params = estimator.get_params(deep=False)
    set_by_plans = ("epsilon", "delta", "accountant", "random_state")
    return {
        name: value
        for name, value in params.items()
        if name not in set_by_plans and repr(value) != repr(defaults.get(name))
    }


def fitted_params(model, *names):
    """Return the parameters with these names of an estimator and all nested ones to be fitted.

    Parameters
    ----------
    model : estimator
    *names : str
        Names without the prefix that ``set_params`` requires. Without names, all are returned.

    Returns
    -------
    dict
    """
    params = model.get_params()
    frozen = [f"{name}__" for name, part in params.items() if isinstance(part, FrozenEstimator)]
    return {
        name: value
        for name, value in params.items()
        if (not names or name.rpartition("__")[2] in names) and not name.startswith(tuple(frozen))
    }


def with_params(estimator, params):
    """Return a clone with changed parameters and without `memory`, which would repeat a release.

    Raises
    ------
    ValueError
        If a parameter is one of a step that is not an estimator.
    """
    # The method of `FrozenEstimator` does not return the estimator.
    model = clone(estimator)
    try:
        model.set_params(**clone(params, safe=False))
    except AttributeError as error:
        steps = model.get_params()
        for name in params:
            parts = name.split("__")
            prefixes = ["__".join(parts[:n]) for n in range(1, len(parts))]
            no_estimators = [
                prefix
                for prefix in prefixes
                if prefix in steps and not hasattr(steps[prefix], "set_params")
            ]
            for step_name in no_estimators:
                raise ValueError(
                    f"{name} cannot be set: {step_name} must be an estimator, got "
                    f"{steps[step_name]!r}"
                ) from error
        raise
    model.set_params(**dict.fromkeys(fitted_params(model, "memory")))
    return model


def reason_for_missing(estimator, method):
    """Return why an estimator lacks a method, to be added to a message; "" if it does not say."""
    try:
        getattr(estimator, method)
    except AttributeError as error:
        reason = error
        # The reason of a pipeline is that of its final step.
        while reason.__cause__ is not None:
            reason = reason.__cause__
        if reason is not error:
            return f" ({reason})"
    return ""


def infers_types(estimator):
    """Return True if the output is a data frame whose dtypes depend on all of its cells.

    pandas and polars inspect objects: a single number among strings changes a column's dtype.
    """
    return asks_for_frame(estimator) and not gives_numbers(estimator)


def gives_numbers(estimator):
    """Return True if a step's output is known to be numeric, as it is for steps of skdp."""
    if not is_estimator(estimator):
        return type(estimator) is str and estimator == "drop"
    kind = type(estimator)
    if isinstance(estimator, Pipeline):
        return bool(estimator.steps) and gives_numbers(estimator.steps[-1][1])
    if isinstance(estimator, FeatureUnion | ColumnTransformer):
        is_union = isinstance(estimator, FeatureUnion)
        if is_union:
            named = estimator.transformer_list
        else:
            named = estimator.transformers
        parts = [part[1] for part in named]
        return all(map(gives_numbers, [*parts, getattr(estimator, "remainder", "drop")]))
    if kind.__name__ == "DPSimpleImputer" and estimator.strategy not in ("mean", "median"):
        return False
    return of_skdp(estimator) or "__skdp_kind__" in vars(kind)
