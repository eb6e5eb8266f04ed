"""Checks of all steps' fit parameters before the first step of a pipeline is charged."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature

import numpy as np
from sklearn import config_context, get_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.metadata_routing import process_routing

from skdp._data._lengths import n_rows_of
from skdp._data._persons import read_persons
from skdp._fitting._release_context import GROUPS_MISSING
from skdp._fitting._tool_rules import NO_WEIGHTS
from skdp.base import GROUPS_WITHOUT_PERSON_UNIT, terms_of
from skdp.pipeline._instances import (
    fitted_params,
    is_estimator,
    of_skdp,
    sklearn_name,
    step_message,
)
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import inner_parts, is_skrub_container, join_names
from skdp.utils._values import FrozenValue

# Arguments of a fit that no fit parameter may replace.
TABLE_ARGUMENTS = ("self", "X", "y")
# scikit-learn tools, among them searches, that pass the parameters of their fit to members by known
# rules. Without metadata routing, the first ones pass on all parameters, searches all except
# `groups`, and the others only row weights.
PASS_PARAMS_ON = frozenset(
    "TransformedTargetRegressor SelectFromModel RFE MultiOutputClassifier "
    "MultiOutputRegressor".split()
)
SEARCHES = frozenset(
    "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV".split()
)
PASS_WEIGHTS_ON = frozenset(
    "VotingClassifier VotingRegressor StackingClassifier StackingRegressor OneVsRestClassifier "
    "OneVsOneClassifier OutputCodeClassifier FixedThresholdClassifier ClassifierChain "
    "RegressorChain".split()
)
STACKS = frozenset({"StackingClassifier", "StackingRegressor"})
TOOLS = PASS_PARAMS_ON | SEARCHES | PASS_WEIGHTS_ON


@dataclass(frozen=True, kw_only=True, eq=False)
class StepParams(FrozenValue):
    """The parameters that the fit of one step receives.

    Parameters
    ----------
    name : str
        Name of the step, as in `set_params`; "" for a single estimator.
    estimator : estimator
    params : dict
        Keyword arguments besides X and y.
    method : {"fit", "fit_transform", "fit_predict", "score"}
        The method that receives them; "score" for a private scorer.
    is_in_parts : bool, default=False
        True inside a tool other than a `Pipeline`, where a fit parameter cannot be directed to this
        step alone by its name.
    """

    name: str
    estimator: object
    params: dict
    method: str
    is_in_parts: bool = False

    @property
    def title(self):
        """The name of the step, or the class name of a single estimator."""
        return self.name or type(self.estimator).__name__

    @property
    def groups(self):
        """The person ids that a private step receives, or None."""
        if self.is_private:
            return self.params.get("groups")
        return None

    @property
    def is_private(self):
        """True if the step charges an accountant."""
        if self.method == "score":
            return True
        return is_private(self.estimator) and hasattr(self.estimator, "accountant")


def params_of_steps(estimator, params, method="fit", name=""):
    """Return the parameters that the fit of each step receives, regardless of nesting.

    With metadata routing, scikit-learn decides by the requests of the steps. Otherwise, a
    `Pipeline` assigns parameters by the name before the two underscores, a `FeatureUnion` passes
    all of them to each part, and a `ColumnTransformer` accepts none. scikit-learn's ensembles and
    searches have their own rules; see `TOOLS`.

    Parameters
    ----------
    estimator : estimator
        A container, or one estimator.
    params : dict
        Keyword arguments of its method.
    method : {"fit", "fit_transform", "fit_predict"}, default="fit"
    name : str, default=""
        Name of the estimator, as in `set_params`.

    Returns
    -------
    list of StepParams

    Raises
    ------
    TypeError, ValueError
        If a container does not accept a parameter.
    """
    if isinstance(estimator, Pipeline):
        parts = [(part[0], part[1]) for part in estimator.steps]
        divided = _divide_by_name
    elif isinstance(estimator, FeatureUnion):
        parts = [(part[0], part[1]) for part in estimator.transformer_list]
        divided = _pass_on
    elif isinstance(estimator, ColumnTransformer):
        parts = [(part[0], part[1]) for part in estimator.transformers]
        parts.append(("remainder", estimator.remainder))
        divided = _refuse_all
    elif is_skrub_container(estimator):
        parts = [("transformer", estimator.transformer)]
        divided = _refuse_all
    elif passes_params_on(estimator):
        parts = list(inner_parts(estimator))
        divided = _divide_in_tool
    else:
        return [StepParams(name=name, estimator=estimator, params=params, method=method)]
    if get_config()["enable_metadata_routing"] and not is_skrub_container(estimator):
        divided = _route
    title = name or type(estimator).__name__
    received = divided(estimator, parts, params, method, title)
    steps = []
    for part, inner in parts:
        if is_estimator(inner):
            inner_method = _method_of(estimator, part, inner, method)
            inner_name = join_names(name, part)
            inside = params_of_steps(inner, received.get(part, {}), inner_method, inner_name)
            if not isinstance(estimator, Pipeline):
                inside = [replace(step, is_in_parts=True) for step in inside]
            steps += inside
        elif received.get(part) and not passes_params_on(estimator):
            parameter = next(iter(received[part]))
            raise TypeError(
                step_message(
                    join_names(name, part),
                    f"{inner!r} has no fit that could accept the parameter {parameter!r}",
                )
            )
    if sklearn_name(estimator) in SEARCHES:
        score_params = received.get("scorer", {})
        steps += params_of_scorers(estimator.scoring, score_params, join_names(name, "scoring"))
    return steps


def params_of_scorers(scoring, params, name="scoring"):
    """Return the parameters that each private scorer of a search or a validation receives.

    Parameters
    ----------
    scoring : object
        The parameter `scoring` of the search.
    params : dict
        Keyword arguments of its scores.
    name : str, default="scoring"

    Returns
    -------
    list of StepParams
    """
    return [
        StepParams(name=name, estimator=scorer, params=params, method="score", is_in_parts=True)
        for scorer in private_scorers(scoring)
    ]


def private_scorers(scoring):
    """Return the private scorers in a parameter `scoring`, one scorer or a dictionary of them."""
    if isinstance(scoring, dict):
        scorers = scoring.values()
    else:
        scorers = [scoring]
    return [scorer for scorer in scorers if getattr(scorer, "releases_privately", False) is True]


def passes_params_on(tool):
    """Return True if a tool passes parameters of its `fit` on to its members as `_divide_in_tool`.

    These are scikit-learn's ensembles and searches. Without metadata routing, some of them pass on
    all parameters, and others only row weights.
    """
    if sklearn_name(tool) not in TOOLS:
        return False
    # The models of a prefit tool are already fitted.
    cv = getattr(tool, "cv", None)
    return getattr(tool, "prefit", None) is not True and not (
        isinstance(cv, str) and cv == "prefit"
    )


def _divide_in_tool(tool, parts, params, method, title):
    """Return the parameters of each member of an ensemble or search without metadata routing.

    Parameters
    ----------
    tool : estimator
    parts : list of (str, estimator)
        Names and members.
    params : dict
        Parameters of the tool's fit.
    method : str
        Name of the tool's method.
    title : str
        Name of the tool in errors.

    Returns
    -------
    dict of str to dict
        Parameters of each member.

    Raises
    ------
    ValueError
        If a tool that passes on only row weights is given another parameter.
    """
    kind = sklearn_name(tool)
    passed = dict(params)
    if kind in SEARCHES:
        passed.pop("groups", None)
    elif kind in PASS_WEIGHTS_ON:
        others = {name for name in params if name != "sample_weight"}
        _refuse_all(tool, parts, others, method, title)
    received = {name: passed for name, _ in parts}
    # This member of a `TransformedTargetRegressor` is fitted to the target without parameters.
    received.pop("transformer", None)
    return received


def _method_of(container, name, inner, method):
    """Return the method that a container's method uses to fit a part."""
    # The other steps of a pipeline also transform, as do all parts of a `ColumnTransformer`.
    if passes_params_on(container):
        return "fit"
    is_last = isinstance(container, Pipeline) and name == container.steps[-1][0]
    if not (is_last or isinstance(container, FeatureUnion)):
        method = "fit_transform"
    if hasattr(inner, method):
        return method
    return "fit"


def _divide_by_name(pipe, parts, params, method, title):
    """Return the parameters of each step of a `Pipeline` without metadata routing.

    The arguments are those of `_divide_in_tool`.
    """
    received = {name: {} for name, _ in parts}
    for name, value in params.items():
        step_name, _, argument = name.partition("__")
        if not argument:
            raise ValueError(
                f"{title} does not accept the parameter {name!r} of fit: write step__{name}, where "
                f"step is one of {', '.join(received)}"
            )
        if step_name not in received:
            raise ValueError(
                f"the parameter {name!r} of fit names no step; the steps of {title} are "
                f"{', '.join(received)}"
            )
        received[step_name][argument] = value
    return received


def _pass_on(union, parts, params, method, title):
    """Return the parameters of each part of a `FeatureUnion` without metadata routing.

    The arguments are those of `_divide_in_tool`.
    """
    return {name: params for name, part in parts if is_estimator(part)}


def _refuse_all(container, parts, params, method, title):
    """Return no parameters; raise `ValueError` if any are given without metadata routing.

    This is the rule of a `ColumnTransformer` and of skrub's containers, and that of ensembles for
    all parameters except row weights. The arguments are those of `_divide_in_tool`.
    """
    if params:
        raise ValueError(
            f"{title} passes parameters of fit, here {', '.join(map(repr, params))}, only with "
            "metadata routing: call sklearn.set_config(enable_metadata_routing=True)"
        )
    return {}


def _route(container, parts, params, method, title):
    """Return the parameters of each step of a container with metadata routing.

    The arguments are those of `_divide_in_tool`.
    """
    # Without parameters `process_routing` returns an object that has every attribute.
    if not params:
        return {}
    if passes_params_on(container):
        # The `fit_transform` of these containers calls `fit`.
        method = "fit"
    routed = process_routing(container, method, **params)
    received = {}
    for name, inner in parts:
        if is_estimator(inner) and name in routed:
            inner_method = _method_of(container, name, inner, method)
            received[name] = dict(routed[name].get(inner_method, {}))
    if sklearn_name(container) in STACKS:
        # scikit-learn passes all parameters of a stack's fit to its last stage.
        received["final_estimator"] = params
    elif sklearn_name(container) in SEARCHES:
        received["scorer"] = dict(routed["scorer"].get("score", {}))
    for name in getattr(container, "transform_input", None) or ():
        if any(step.get("groups") is params.get(name, step) for step in received.values()):
            raise ValueError(
                f"{title}: transform_input contains {name!r}, which is the person id of each row, "
                "not a table: remove it"
            )
    return received


def check_fit_params(steps, ids=None, n_rows=None, terms=None):
    """Raise the errors that the steps of one charge would raise for their fit parameters.

    All private steps of one charge must receive the same person ids. Otherwise they would protect
    different persons with one charge.

    Parameters
    ----------
    steps : list of StepParams
    ids : array-like, default=None
        The person ids of the charge, if the caller knows them.
    n_rows : int, default=None
        Number of rows of the table, if it is known.
    terms : LedgerConfig, default=None
        Configuration of the accountant that is charged; None means that of each step.

    Returns
    -------
    array-like or None
        The person ids that all private steps receive.

    Raises
    ------
    TypeError
        If a step does not accept a parameter, or row weights are given.
    ValueError
        If only some private steps receive `groups`, if the persons differ between steps, or the
        unit does not allow them.
    """
    for step in steps:
        _check_accepted(step)
    return _check_groups(steps, ids, n_rows, terms)


def check_fit_params_of_charges(steps):
    """Raise the errors of `check_fit_params` for steps that charge separately.

    A ledger adds up the steps' charges as charges for one set of persons. A step without an
    accountant has no charge.
    """
    for step in steps:
        _check_accepted(step)
    charged = [step for step in steps if step.is_private and step.estimator.accountant is not None]
    _check_groups(charged, None, None, None)


def _check_accepted(step):
    """Raise `TypeError` for parameters that the fit of a step does not accept."""
    if not step.params or step.method == "score":
        return
    kind = type(step.estimator)
    accepted = signature(kind.fit).parameters
    method_parameters = signature(getattr(kind, step.method)).parameters
    # `fit_transform` of scikit-learn's mixin passes all parameters to `fit`.
    if not _takes_any(method_parameters):
        accepted = method_parameters
    for argument, value in step.params.items():
        if argument == "sample_weight" and of_skdp(step.estimator):
            if value is not None:
                raise TypeError(step_message(step.title, NO_WEIGHTS))
            continue
        is_named = argument in accepted and argument not in TABLE_ARGUMENTS
        # A search passes other parameters to its candidates, which `check_parameters` checks.
        if not (is_named or _takes_any(accepted)):
            raise TypeError(
                step_message(step.title, f"its fit does not accept the parameter {argument!r}")
            )


def _takes_any(parameters):
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def _check_groups(steps, ids, n_rows, terms):
    """Return the person ids of all private steps, or raise `ValueError` if they differ.

    Parameters
    ----------
    steps : list of StepParams
    ids : array-like or None
        Person ids of a search around the steps.
    n_rows : int or None
        None uses the number of ids.
    terms : LedgerConfig or None
        Configuration of the ledger that all steps charge; None uses that of each step.
    """
    private = [step for step in steps if step.is_private]
    receivers = [step for step in private if step.groups is not None]
    if not receivers and ids is None:
        for step in private:
            if (terms or _terms_of_step(step)).unit == "person":
                raise ValueError(step_message(step.title, GROUPS_MISSING))
        return None
    for step in receivers:
        unit = (terms or _terms_of_step(step)).unit
        if unit != "person":
            raise ValueError(step_message(step.title, GROUPS_WITHOUT_PERSON_UNIT.format(unit=unit)))
    for step in private:
        if step.groups is None:
            other = "the search"
            if receivers:
                other = f"step {receivers[0].title!r}"
            remedy = f"pass the same ids to all private steps, here as {step.title}__groups"
            if step.is_in_parts:
                remedy = (
                    "scikit-learn passes groups on to it only with metadata routing. Call "
                    "sklearn.set_config(enable_metadata_routing=True), and pass groups without the "
                    "name of a step"
                )
            if get_config()["enable_metadata_routing"]:
                remedy = (
                    "call set_fit_request(groups=True) on it, and pass the same ids to all private "
                    "steps"
                )
            raise ValueError(f"step {step.title!r} receives no groups, but {other} does: {remedy}")
    if ids is not None:
        first = "the search"
    else:
        first = f"step {receivers[0].title!r}"
    if ids is None:
        ids = receivers[0].groups
    if n_rows is None:
        n_rows = n_rows_of(ids)
    for step in receivers:
        missing_ids = (terms or _terms_of_step(step)).missing_ids
        if not _are_same_persons(ids, step.groups, n_rows, missing_ids):
            raise ValueError(
                f"{first} and step {step.title!r} receive different groups, so they would protect "
                "different persons, and their costs would not add up: pass the same ids to both"
            )
    return ids


def _terms_of_step(step):
    """Return the configuration of a step's accountant; errors for other values name the step."""
    try:
        return terms_of(step.estimator.accountant)
    except ValueError as error:
        raise ValueError(step_message(step.title, error)) from error


def _are_same_persons(ids, others, n_rows, missing_ids):
    """Return True if two lists of ids assign the rows to the same persons."""
    if others is ids:
        return True
    if n_rows_of(others) != n_rows:
        return False
    # Persons are numbered in the order of their first rows.
    codes = [read_persons(values, n_rows, missing_ids).codes for values in (ids, others)]
    return np.array_equal(*codes)


@contextmanager
def routed_groups(container, params):
    """Yield a container's fit parameters in a context that passes `groups` to every step.

    With metadata routing, scikit-learn passes `groups` on. Otherwise, a `Pipeline` accepts only
    parameters that begin with a step's name, and these cannot reach the parts of a
    `ColumnTransformer`. So the fit of a container with such parts enables metadata routing, as
    searches do. Private steps then request `groups` if the unit of their accountant is a person.
    """
    if "groups" not in params or get_config()["enable_metadata_routing"]:
        yield params
        return
    others = {name: value for name, value in params.items() if name != "groups"}
    accountants = fitted_params(container, "accountant").values()
    by_person = any(terms_of(accountant).unit == "person" for accountant in accountants)
    if by_person and _holds_parts(container):
        if others:
            raise ValueError(
                f"{type(container).__name__} passes groups to the parts of a ColumnTransformer or "
                f"FeatureUnion, but not together with {', '.join(map(repr, others))}: call "
                "sklearn.set_config(enable_metadata_routing=True), and set_fit_request on the "
                "steps that receive the other parameters"
            )
        with config_context(enable_metadata_routing=True):
            yield params
    elif isinstance(container, Pipeline):
        yield _groups_by_name(container, params["groups"], "") | others
    else:
        yield params


def _holds_parts(container):
    """Return True if a private step is inside a `ColumnTransformer` or `FeatureUnion`."""
    if isinstance(container, FeatureUnion | ColumnTransformer):
        return bool(fitted_params(container, "accountant"))
    if isinstance(container, Pipeline):
        return any(_holds_parts(step) for _, step in container.steps)
    return False


def _groups_by_name(pipe, ids, prefix):
    """Return `groups` for the private steps of a pipeline, and of pipelines inside it."""
    groups = {}
    for name, step in pipe.steps:
        if isinstance(step, Pipeline):
            groups |= _groups_by_name(step, ids, f"{prefix}{name}__")
        elif of_skdp(step) and hasattr(step, "accountant") and hasattr(step, "fit"):
            groups[f"{prefix}{name}__groups"] = ids
    return groups
