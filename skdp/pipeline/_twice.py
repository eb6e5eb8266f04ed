"""Private steps that are paid for although what they learn is known or is undone."""

import itertools

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, QuantileTransformer

BUDGET = ("epsilon", "delta", "accountant", "random_state")

KNOWN_RANGE = (MaxAbsScaler, MinMaxScaler, QuantileTransformer)


def paid_twice(steps):
    """Yield private steps that are paid for to no purpose, each with the reason.

    Parameters
    ----------
    steps : list of Step
        In the order in which they are fitted.

    Yields
    ------
    step : Step
    message : str
    """
    for first, second in itertools.combinations(steps, 2):
        if first.kind == second.kind == "private" and _learned(first) == _learned(second):
            yield second, f"{first.title!r} learns the same from the same columns"
    named = {step.name: step for step in steps}
    for step in steps:
        earlier = named.get(step.before[-1]) if step.before else None
        if step.kind != "private" or earlier is None:
            continue
        before, params = earlier.estimator, step.estimator.get_params(deep=False)
        rescales = earlier.kind == "private" and getattr(before, "_rescales", False)
        if rescales and getattr(step.estimator, "_undoes_scaling", False):
            yield earlier, f"{step.title!r} shifts and scales the same features again"
        known_range = isinstance(before, KNOWN_RANGE) or getattr(before, "_known_range", False)
        if known_range and is_auto(params, "bounds"):
            message = f"bounds='auto' is paid for, but {earlier.title!r} makes the range known"
            yield step, message
        if isinstance(before, Normalizer) and is_auto(params, "data_norm"):
            message = f"data_norm='auto' is paid for, but {earlier.title!r} makes every norm 1"
            yield step, message


def _learned(step):
    """Return what a step learns, and from what; two that are the same learn the same."""
    params = step.estimator.get_params(deep=False).items()
    known = {name: repr(value) for name, value in params if name not in BUDGET}
    return type(step.estimator), step.before, step.columns, known


def is_auto(params, name):
    """Say whether a parameter leaves it to the fit what it is."""
    return isinstance(params.get(name), str) and params[name] == "auto"
