"""Parts of a tool, pipeline or search that learn from rows without privacy.

They are found before the first charge: in the steps of a pipeline, the members of an ensemble, and
the settings that a search is about to try. Nothing is fitted, and copies share everything but their
parameters.
"""

from collections.abc import Callable
from inspect import unwrap
from types import FunctionType
from typing import NamedTuple

from sklearn.preprocessing import FunctionTransformer

from skdp._data._forms import DENSE, sparsity_of_table
from skdp._fitting._call_stack import TARGETS, checks_its_steps, is_in_package
from skdp._fitting._call_states import state_of
from skdp._fitting._search_prices import dicts_of_grids, listed_values
from skdp._tools._advice import CALLBACKS
from skdp._tools._entries import REASONS
from skdp._tools._functions import has_non_finite_values
from skdp._tools._parts import (
    copy_parts,
    holds_private,
    is_estimator,
    is_frozen,
    is_private,
    is_step,
    nested_parts,
    parts_of,
    raw_callbacks,
    set_copies,
)
from skdp._tools._registry import find_entry, known_caller, passes_on
from skdp._tools._scores_and_folds import is_unread

# Packages whose distributions draw only numbers.
DRAW_NUMBERS = frozenset({"scipy", "skopt", "optuna", "numpy"})
RAW_STEPS = "has steps that learn from raw rows:"
UNKNOWN_STEPS = "has steps that skdp does not know, and that may learn from raw rows:"
ROUNDING_STEPS = f"has steps, each of which {REASONS['not_row_wise']}:"
FAILING_STEPS = (
    "replaces the error of a fit with NaN, so its scores may show which folds contain a row (set "
    "error_score='raise'), and has steps after private ones that fail for some values:"
)
OTHER_PROBLEMS = "has"
IF_PASSED_ON = "if it passes each row to each fit once and unchanged, ignore this warning"
# Modules of tools that pass each fit one column, or one label, of their targets.
SPLIT_TARGETS = ("sklearn.multioutput", "sklearn.multiclass")
# The functions that `register_step_reader` and `register_plan_reader` set. The lists are empty
# until `skdp.pipeline` is imported, and have one entry afterwards.
_step_readers: list[Callable] = []
_plan_readers: list[Callable] = []


class PartProblem(NamedTuple):
    """A problem of a part of an estimator.

    Parameters
    ----------
    text : str
    is_refused : bool
        True if the fit of the part would be refused after other parts were charged.
    group : str, default=RAW_STEPS
        Beginning of the sentence about all problems of this group: `RAW_STEPS`, `UNKNOWN_STEPS`,
        `ROUNDING_STEPS`, `FAILING_STEPS` or `OTHER_PROBLEMS`, with which nothing is learned from
        raw rows.
    """

    text: str
    is_refused: bool
    group: str = RAW_STEPS


def register_step_reader(find_raw_steps):
    """Set the function that finds the steps of an estimator that are not private.

    `skdp.pipeline._checked_fits` registers it, because this module cannot import it: the modules of
    pipelines import this one.
    """
    _step_readers[:] = [find_raw_steps]


def register_plan_reader(find_refusal):
    """Set the function that returns a private search's reason to refuse an estimator, or "".

    It is called with the estimator and the names of the steps that are declared public.
    """
    _plan_readers[:] = [find_refusal]


def read_steps(estimator, with_fitted=False, sparsity=DENSE, is_list=False):
    """Return the steps of an estimator that are not private; see `register_step_reader`."""
    if not _step_readers:
        return []
    return _step_readers[0](estimator, with_fitted=with_fitted, sparsity=sparsity, is_list=is_list)


def raw_steps(
    estimator, is_calling=False, leave_out="", y=None, with_fitted=True, only_tools=False
):
    """Return the problems of the steps of an estimator that learn from rows without privacy.

    Parameters
    ----------
    estimator : object
        A pipeline or another estimator; other objects have no steps.
    is_calling : bool, default=False
        True if a call of the estimator is being checked.
    leave_out : str, default=""
        Kind of steps that was already checked.
    y : array-like, default=None
        Targets of the outer fit, of which only the shape is used.
    with_fitted : bool, default=True
        True if frozen models, which have learned from unknown rows, are included.
    only_tools : bool, default=False
        True to return only the problems of tools around private estimators.

    Returns
    -------
    list of PartProblem
    """
    if not is_step(estimator) or not _step_readers or checks_its_steps(estimator):
        return []
    params = nested_parts(estimator)
    problems = []
    steps = []
    if not only_tools:
        steps = read_steps(estimator, with_fitted)
    for step in steps:
        # Planned steps were checked by the plan.
        if step.kind == leave_out or any(map(checks_its_steps, holders_of(step.name, params))):
            continue
        problems += _problems_of_step(step, is_calling and step.estimator is estimator)
    return problems + _problems_of_tools(estimator, params, is_calling, y)


def _problems_of_step(step, is_calling):
    """Return the problem of a step as a list, which is empty for containers of private estimators.

    Parameters
    ----------
    step : RawStep
    is_calling : bool
        True if the step is the tool whose call is being checked, which was judged by its entry.
    """
    advice = step.bracketed_advice
    if not is_step(step.estimator):
        return [PartProblem(f"the parameter {step.name!r}{advice}", False)]
    kind = type(step.estimator)
    # Functions that transform targets run before the private regressor.
    is_of_targets = kind.__module__ == TARGETS
    if holds_private(step.estimator) and not is_of_targets:
        is_checked_elsewhere = step.kind != "learns" or tool_of_class(kind) is not None
        if step.kind == "opaque":
            is_checked_elsewhere = not _has_steps_of_unknown_rows(step.estimator)
        package = ""
        if step.kind == "unknown":
            package = unknown_package(kind)
        if package:
            is_checked_elsewhere = is_calling
            advice = f", a tool of {package} that skdp does not know ({IF_PASSED_ON})"
        if is_checked_elsewhere:
            return []
    name = title(step.estimator, step.name)
    if is_of_targets:
        name = f"func or inverse_func of {name}"
    repeats_rows = hasattr(step.estimator, "fit_resample")
    group = {"unknown": UNKNOWN_STEPS, "not_row_wise": ROUNDING_STEPS}.get(step.kind, RAW_STEPS)
    return [PartProblem(name + advice, repeats_rows, group)]


def problems_of_table(estimator, X):
    """Return the problems that an estimator has only with tables such as X, as `raw_steps` does.

    If the table is sparse, a column transformer publishes whether an exact count of cells is above
    a limit. If it is a list of rows, NumPy infers its type from all of its cells.
    """
    sparsity = sparsity_of_table(X)
    is_list = isinstance(X, list | tuple)
    if not (sparsity or is_list) or not is_step(estimator) or checks_its_steps(estimator):
        return []
    params = nested_parts(estimator)
    known = {step.name for step in read_steps(estimator)}
    problems = []
    for step in read_steps(estimator, sparsity=sparsity, is_list=is_list):
        is_planned = any(map(checks_its_steps, holders_of(step.name, params)))
        if step.name not in known and not is_planned:
            problems += _problems_of_step(step, is_calling=False)
    return problems


def problems_of_errors(estimator, variables):
    """Return the steps that make a search publish that a fit failed, as `raw_steps` does.

    They fail for some values that a private step returns for a row. Values of the table itself are
    checked before the first charge.

    Parameters
    ----------
    estimator : object
        The estimator that a search, or a validation, fits.
    variables : dict
        Local variables of its call.
    """
    owner = variables.get("self")
    error_score = variables.get("error_score", getattr(owner, "error_score", "raise"))
    if isinstance(error_score, str) or not is_step(estimator):
        return []
    problems = []
    for holder, part in {"": estimator, **nested_parts(estimator)}.items():
        is_behind = False
        for name, step in getattr(part, "steps", ()):
            if is_behind and is_step(step):
                path = "__".join(filter(None, (holder, name)))
                problems += _failing_steps(step, path)
            is_behind |= is_step(step) and holds_private(step)
    return problems


def _failing_steps(step, path):
    """Return the problems of a step, and of those inside it, that fail for some values."""
    inside = {path: step, **{f"{path}__{name}": part for name, part in nested_parts(step).items()}}
    problems = []
    for name, part in inside.items():
        values = find_entry(part).fails_on(part)
        # A function such as `np.exp` fails only for large numbers.
        is_of_large = type(part) is FunctionTransformer and not has_non_finite_values(
            part.func, largest=100.0
        )
        if values and not is_of_large:
            text = f"{title(part, name)} ({values})"
            problems.append(PartProblem(text, False, FAILING_STEPS))
    return problems


def _has_steps_of_unknown_rows(frozen):
    """Return True if a frozen estimator has a part that may have been fitted alone.

    A tool around a private estimator was judged in its fit. A part without a private estimator may
    have been fitted before it became a part.
    """
    model = frozen.estimator
    if checks_its_steps(model):
        return False
    if is_frozen(model):
        return not holds_private(model) or _has_steps_of_unknown_rows(model)
    params = nested_parts(model)
    for step in read_steps(model, with_fitted=True):
        part = step.estimator
        if not is_step(part) or any(map(checks_its_steps, holders_of(step.name, params))):
            continue
        if not holds_private(part) or (is_frozen(part) and _has_steps_of_unknown_rows(part)):
            return True
    return False


def text_of_problems(problems):
    """Return the problems as the end of a sentence about the tool that has the parts.

    Parameters
    ----------
    problems : list of PartProblem
        At least one.
    """
    groups = {
        group: []
        for group in (RAW_STEPS, UNKNOWN_STEPS, ROUNDING_STEPS, OTHER_PROBLEMS, FAILING_STEPS)
    }
    for problem in problems:
        groups[problem.group].append(problem.text)
    return "; ".join(
        f"{beginning} {'; '.join(dict.fromkeys(texts))}"
        for beginning, texts in groups.items()
        if texts
    )


def _problems_of_tools(estimator, params, is_calling, y):
    """Return the problems of the tools inside an estimator, and of the settings that they try.

    Parameters
    ----------
    estimator : estimator
    params : dict
        Its nested parts by name.
    is_calling : bool
        True if a call of the estimator, which was judged by its entry, is being checked.
    y : array-like or None
    """
    problems = []
    parts = params
    if not is_calling:
        parts = {"": estimator, **params}
    for name, part in parts.items():
        holders = list(holders_of(name, params))
        if name:
            holders.append(estimator)
        part_y = y
        if any(map(splits_targets, holders)):
            part_y = None
        if is_private(part):
            if not any(map(checks_its_steps, holders)):
                problems += _problems_of_private(part, name)
        elif holds_private(part):
            problems += _problems_of_part(part, name, part_y)
        problems += _raw_settings(part, part_y)
    return problems


def _problems_of_part(part, name, y):
    """Return the problem, known to the registry, of a tool inside another one, as a list."""
    tool = next(filter(None, map(tool_of_class, type(part).__mro__)), None)
    if tool is None:
        return []
    problem, is_refused = tool.problem_of_part(part, y)
    if not problem:
        return []
    return [PartProblem(f"{title(part, name)}, which {problem} ({tool.instead})", is_refused)]


def _problems_of_private(part, name):
    """Return the reason why a private meta-estimator refuses its estimator, as a list.

    Its fit plans the fits of its estimator and raises the same error, but only after the charges of
    earlier steps or members.
    """
    estimator = getattr(part, "estimator", None)
    if not _plan_readers or not is_estimator(estimator) or not hasattr(part, "public_steps"):
        return []
    for candidate in part._candidate_params():
        changed = copy_parts(estimator)
        try:
            set_copies(changed, candidate)
        except (TypeError, ValueError, AttributeError):
            # The search itself refuses invalid names and values.
            continue
        refusal = _plan_readers[0](changed, part.public_steps)
        if refusal:
            return [
                PartProblem(
                    f"{title(part, name)}, which refuses its estimator: {refusal}",
                    is_refused=True,
                    group=OTHER_PROBLEMS,
                )
            ]
    return []


def splits_targets(estimator):
    return type(estimator).__module__ in SPLIT_TARGETS


def unknown_package(kind):
    """Return the package of a class whose `fit` is an unknown tool's; "" for classes of users."""
    owner = next((cls for cls in kind.__mro__ if "fit" in vars(cls)), kind)
    fit = unwrap(vars(owner).get("fit"))
    if passes_on(owner.__module__) or not isinstance(fit, FunctionType):
        return ""
    if not is_in_package(fit.__code__.co_filename, fit.__globals__):
        return ""
    return owner.__module__.partition(".")[0]


def raw_in_members(tool, y):
    """Return the problems inside the models passed to a tool, as `raw_steps` does.

    No model must be charged before the problems are found. Models without a private estimator are
    covered by the entry of their tool, and the parameter `estimator` is checked with the call.
    """
    if tool is None:
        return []
    problems = []
    for name, member in parts_of(tool):
        if name == "estimator" or not holds_private(member):
            continue
        if is_frozen(member):
            inside = _problems_of_frozen(member)
        else:
            inside = raw_steps(member, y=y) + _problems_of_copies(member)
        problems += [p._replace(text=f"{p.text} of the member {name!r}") for p in inside]
    return problems


def _problems_of_frozen(member):
    """Return the problems of a frozen member of a tool, as a list of `PartProblem`.

    They are the steps inside it that are not private. No tool fits or copies it, so the other
    problems that `raw_steps` and `_problems_of_copies` find cannot occur.
    """
    return [
        problem
        for step in read_steps(member, with_fitted=True)
        for problem in _problems_of_step(step, is_calling=False)
    ]


def problems_of_callbacks(tool):
    """Return the problem of callbacks that a tool gives its rows, as `raw_steps` does.

    A private estimator passes no rows to its callbacks.
    """
    if not raw_callbacks(tool):
        return []
    return [PartProblem(f"the parameter 'callbacks' ({CALLBACKS})", False)]


def _problems_of_copies(estimator):
    """Return the reasons why scikit-learn cannot copy an estimator, before its fit."""
    return [
        PartProblem(
            f"{title(part, '')}, whose folds are a generator, which cannot be copied (give it a "
            "list, or a splitter)",
            is_refused=True,
            group=OTHER_PROBLEMS,
        )
        for part in (estimator, *nested_parts(estimator).values())
        if is_unread(getattr(part, "cv", None))
    ]


def raw_parts_of_user(subject):
    """Return the problems of the parts passed to a user-defined class, as `raw_steps` does."""
    if holds_private(subject) and not is_private(subject):
        return raw_steps(subject, is_calling=True, with_fitted=False)
    # The class creates the private estimator in `fit`, or is derived from one.
    return [
        problem._replace(text=f"{problem.text} of the member {name!r}")
        for name, part in parts_of(subject)
        for problem in raw_steps(part, with_fitted=False)
    ]


def raw_candidates(call, calls, estimator, y):
    """Return the problems of the settings that a search or validation curve tries.

    A setting may replace a step by one that learns from raw rows. Its fit may come after private
    fits were charged, so all settings are examined before the first fit. The result is stored in
    the state of the call, for the later fits.

    Parameters
    ----------
    call : ToolCall
        Call of the search, or of `validation_curve`.
    calls : list of ToolCall
        All calls, from the inside out, among which is the one that has the drawn candidates.
    estimator : object
        The estimator whose parameters the settings replace.
    y : array-like or None
        Targets of the outer fit.

    Returns
    -------
    list
        Problems, as `raw_steps` returns them.
    """
    candidates, holder = _candidates_of(call, calls)
    state = state_of(holder.frame)
    if state.raw_candidates is None:
        state.raw_candidates = _problems_of_candidates(candidates, estimator, y)
    return state.raw_candidates


def _candidates_of(call, calls):
    """Return the settings that a search, or a validation curve, is about to try, as dictionaries.

    Parameters
    ----------
    call : ToolCall
    calls : list of ToolCall

    Returns
    -------
    candidates : list of dict
        Candidates. Before scikit-learn's searches have drawn them, and in other libraries'
        searches, each value of each parameter is a separate candidate.
    holder : ToolCall
        The call to which they belong.
    """
    variables = call.variables
    if "param_name" in variables and "param_range" in variables:
        values = listed_values(variables["param_range"])
        return [{variables["param_name"]: value} for value in values], call
    subject = call.subject
    for inner in calls:
        if inner.function == "evaluate_candidates" and inner.subject is subject:
            drawn = inner.variables.get("candidate_params")
            if not isinstance(drawn, list):
                drawn = []
            return drawn, inner
    return _listed_candidates(subject), call


def _listed_candidates(search):
    """Return each listed value of each parameter that a search tries, as one dictionary each."""
    return [
        {name: value} for name, values in _grid_items(search) for value in listed_values(values)
    ]


def _grid_items(search):
    """Yield the parameters that a search tries, with their values or distributions."""
    grids = None
    for name in ("param_grid", "param_distributions", "search_spaces"):
        grids = getattr(search, name, grids)
    for grid in dicts_of_grids(grids):
        yield from grid.items()


def _drawn_candidates(search, estimator):
    """Yield the parameters whose values a search draws after other fits may have been charged.

    Neither parameters of private estimators nor numbers cause learning from raw rows.
    """
    if not hasattr(estimator, "get_params"):
        return
    params = estimator.get_params()
    for name, values in _grid_items(search):
        is_drawn = hasattr(values, "rvs") and not hasattr(values, "__len__")
        draws_numbers = type(values).__module__.partition(".")[0] in DRAW_NUMBERS
        is_of_private = is_private(params.get(name.rpartition("__")[0], estimator))
        if is_drawn and not (draws_numbers or listed_values(values) or is_of_private):
            yield name, type(values).__name__


def find_raw_settings(search):
    """Return texts on listed values with which a search's estimator would learn from raw rows.

    Estimators among the values are left out, because the pipelines' `find_raw_steps` finds them.
    """
    return [problem.text for problem in _raw_settings(search)]


def _raw_settings(search, y=None):
    """Return the problems of all values that a search lists or draws, without its call.

    `raw_candidates` has the candidates of a running search.
    """
    # The step reader does not look at candidates for the steps of a plan.
    estimator = getattr(search, "estimator", None)
    settings = []
    with_tools = []
    for setting in _listed_candidates(search):
        if checks_its_steps(estimator) or not any(map(is_estimator, setting.values())):
            settings.append(setting)
        elif any(map(holds_private, setting.values())):
            # The step reader looks at the steps among these candidates, not at the tools around
            # them.
            with_tools.append(setting)
    drawn = [
        PartProblem(
            f"the parameter {name!r} of {type(search).__name__}, whose candidates {distribution} "
            "draws after other fits may have been charged (list the candidates)",
            False,
        )
        for name, distribution in _drawn_candidates(search, estimator)
    ]
    problems = _problems_of_candidates(settings, estimator, y)
    return problems + _problems_of_candidates(with_tools, estimator, y, only_tools=True) + drawn


def _problems_of_candidates(candidates, estimator, y, only_tools=False):
    """Return the problems that an estimator has only with some candidates, each once.

    Parameters
    ----------
    candidates : iterable of dict
        Settings of the estimator's parameters.
    estimator : object
        The estimator that a search tunes.
    y : array-like or None
        Target of the search's fit.
    only_tools : bool, default=False
        True to look only at the tools around private estimators, not at their steps.

    Returns
    -------
    list of PartProblem
        Each text names the parameters that cause the problem.
    """
    if not hasattr(estimator, "get_params"):
        return []
    params = estimator.get_params()
    texts = {problem.text for problem in raw_steps(estimator, y=y)}
    visited = set()
    problems = {}
    for candidate in candidates:
        values = _relevant_values(candidate, estimator, params)
        key = tuple((name, id(value)) for name, value in values.items())
        if key in visited:
            continue
        visited.add(key)
        for problem in _raw_with(estimator, values, y, only_tools):
            if problem.text not in texts:
                texts.add(problem.text)
                names = _causes(problem.text, estimator, values, y)
                text = f"{problem.text} among the candidates for {' and '.join(map(repr, names))}"
                problems[text] = problem._replace(text=text)
    return list(problems.values())


def _relevant_values(candidate, estimator, params):
    """Return the values of a candidate that can make an estimator learn from raw rows.

    Other settings of a private estimator, which are most settings, cannot cause this.
    """
    return {
        name: value
        for name, value in candidate.items()
        if is_step(value)
        or any(holder in candidate for holder in _outer_names(name))
        or not is_private(params.get(name.rpartition("__")[0], estimator))
    }


def _causes(text, estimator, values, y):
    """Return the names of the values that cause a problem on their own, or all names."""
    names = [
        name
        for name, value in values.items()
        if text in {problem.text for problem in _raw_with(estimator, {name: value}, y)}
    ]
    return names or list(values)


def _outer_names(name):
    """Return the names of the estimators that contain a nested parameter."""
    names = name.split("__")
    return ["__".join(names[:i]) for i in range(1, len(names))]


def _raw_with(estimator, values, y, only_tools=False):
    """Return the problems of an estimator with other parameter values, as `raw_steps` does."""
    if not values:
        return []
    changed = copy_parts(estimator)
    try:
        set_copies(changed, values)
    except (TypeError, ValueError, AttributeError):
        # The search itself refuses invalid names and values.
        return []
    problems = raw_steps(changed, y=y, only_tools=only_tools)
    for value in filter(is_step, values.values()):
        problems += _problems_of_copies(value)
    if checks_its_steps(changed):
        refusal = refusal_of_plan(changed)
        if refusal:
            problems.append(PartProblem(refusal, is_refused=True, group=OTHER_PROBLEMS))
    return problems


def refusal_of_plan(container):
    """Return the reason why a plan would refuse its current steps, or ""."""
    try:
        container.check_steps()
    except ValueError as error:
        return str(error)
    return ""


def holders_of(name, params):
    """Yield the estimators that contain a nested parameter, from its name."""
    for outer in _outer_names(name):
        yield params.get(outer)


def title(estimator, name):
    """Return the class of an estimator and, if it is a named part, its name."""
    class_name = type(estimator).__name__
    if name:
        return f"{class_name} in {name!r}"
    return class_name


def tool_of_class(kind):
    """Return the registry entry for the `fit` of a class."""
    return known_caller(kind.__module__, "fit")
