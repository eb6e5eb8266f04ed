"""Private steps that are paid for although what they learn is known or is undone."""

import itertools

BUDGET = ("epsilon", "delta", "accountant", "random_state")

# Their result does not change if each feature was shifted and scaled before.
UNDO_SCALING = (
    "DPKBinsDiscretizer",
    "DPMeanTransformer",
    "DPMinMaxScaler",
    "DPQuantileTransformer",
    "DPRobustScaler",
    "DPStandardScaler",
)
SCALERS = ("DPMeanTransformer", "DPMinMaxScaler", "DPRobustScaler", "DPStandardScaler")
KNOWN_RANGE = ("DPMinMaxScaler", "DPQuantileTransformer", "MinMaxScaler", "QuantileTransformer")


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
    named = {step.name: step for step in steps}
    for first, second in itertools.combinations(steps, 2):
        if first.kind == second.kind == "private" and _same(first, second):
            yield second, f"{first.title!r} learns the same from the same columns"
    for step in steps:
        earlier = named.get(step.before[-1]) if step.before else None
        if step.kind == "private" and earlier is not None:
            yield from (
                (earlier if undone else step, text) for undone, text in _after(earlier, step)
            )


def _same(first, second):
    where = (first.before, first.columns) == (second.before, second.columns)
    return (
        where
        and type(first.estimator) is type(second.estimator)
        and _equal_parameters(first.estimator, second.estimator)
    )


def _equal_parameters(first, second):
    ones, others = (
        {k: repr(v) for k, v in estimator.get_params(deep=False).items() if k not in BUDGET}
        for estimator in (first, second)
    )
    return ones == others


def _after(earlier, step):
    """Yield whether it is the earlier step that is for nothing, and why."""
    before, name = type(earlier.estimator).__name__, type(step.estimator).__name__
    params = step.estimator.get_params(deep=False)
    if before in SCALERS and earlier.kind == "private" and name in UNDO_SCALING:
        yield True, f"{step.title!r} shifts and scales the same features again"
    if before in KNOWN_RANGE and is_auto(params, "bounds"):
        yield False, f"bounds='auto' is paid for, but {earlier.title!r} makes the range known"
    if before == "Normalizer" and is_auto(params, "data_norm"):
        yield False, f"data_norm='auto' is paid for, but {earlier.title!r} makes every norm 1"


def is_auto(params, name):
    """Say whether a parameter leaves it to the fit what it is."""
    return isinstance(params.get(name), str) and params[name] == "auto"
