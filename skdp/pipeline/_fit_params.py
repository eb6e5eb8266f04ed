"""The check of the fit parameters of all steps, before the first step of a pipeline is charged."""

import inspect

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline

from skdp._fitting._arguments import NO_WEIGHTS
from skdp.base import GROUPS_WITHOUT_PERSON_UNIT, terms_of
from skdp.pipeline._instances import of_skdp, step_message


def check_fit_params(container, params):
    """Raise the errors that a later step of a pipeline would raise for its fit parameters.

    With ``unit="person"`` every private step must receive the same person ids. Otherwise steps
    would protect different persons with one charge.

    Parameters
    ----------
    container : estimator
        Only the steps of a `Pipeline` receive parameters by name.
    params : dict
        Parameters of the container's fit, such as ``{"dplogisticregression__groups": ids}``.

    Raises
    ------
    TypeError
        If a step does not accept the parameter, or row weights are given.
    ValueError
        If only some private steps receive `groups`, if the ids differ between steps, or the unit
        does not allow them.
    """
    if not isinstance(container, Pipeline):
        return
    steps = {name: step for name, step in container.steps if _takes_groups(step)}
    groups = {}
    for name, value in params.items():
        step_name, _, argument = name.partition("__")
        if argument and step_name not in container.named_steps:
            raise ValueError(
                f"the parameter {name!r} of fit names no step; the steps are "
                f"{', '.join(container.named_steps)}"
            )
        if step_name not in steps or not argument:
            continue
        step = steps[step_name]
        if argument == "sample_weight" and value is not None:
            raise TypeError(step_message(step_name, NO_WEIGHTS))
        fit_parameters = inspect.signature(type(step).fit).parameters
        # A search passes other parameters to its candidates, and checks them before its charge.
        takes_any = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in fit_parameters.values()
        )
        if argument not in fit_parameters and argument != "sample_weight" and not takes_any:
            raise TypeError(
                step_message(step_name, f"its fit does not accept the parameter {argument!r}")
            )
        if argument == "groups" and value is not None:
            groups[step_name] = value
    if groups:
        _check_groups(steps, groups)


def groups_of_steps(pipe, params):
    """Return the fit parameters of a pipeline, with `groups` for each of its private steps.

    With metadata routing, scikit-learn does this. Otherwise a `Pipeline` accepts only parameters
    that begin with a step's name, although all private steps must receive the same ids.
    """
    if "groups" not in params or get_config()["enable_metadata_routing"]:
        return params
    others = {name: value for name, value in params.items() if name != "groups"}
    groups = {
        f"{name}__groups": params["groups"] for name, step in pipe.steps if _takes_groups(step)
    }
    return groups | others


def _takes_groups(step):
    """Return True if a step is a private estimator of skdp whose fit accepts person ids."""
    return of_skdp(step) and hasattr(step, "accountant") and hasattr(step, "fit")


def _check_groups(steps, groups):
    """Raise `ValueError` if person ids do not fit the privacy unit or differ between steps."""
    (first, ids), *others = groups.items()
    for name in groups:
        unit = terms_of(steps[name].accountant).unit
        if unit != "person":
            raise ValueError(step_message(name, GROUPS_WITHOUT_PERSON_UNIT.format(unit=unit)))
    missing = [name for name in steps if name not in groups]
    if missing:
        raise ValueError(
            f"step {missing[0]!r} receives no groups, but step {first!r} does: pass the same ids "
            f"to all private steps, here as {missing[0]}__groups"
        )
    for name, other in others:
        if other is not ids and not np.array_equal(np.asarray(ids), np.asarray(other)):
            raise ValueError(
                f"steps {first!r} and {name!r} receive different groups, so they would protect "
                "different persons"
            )
