"""Check of the tools that call a private fit for computations on raw rows.

A private estimator charges its releases. If a tool around it computes something else from the same
rows, or selects, repeats or weights rows, no charge covers that. The call stack, from the outermost
private fit to the user's code, shows these tools, even in worker processes. The check has three
steps:

1. **Read** (`_call_stack.py`): the call stack becomes a list of `ToolCall`, with the calls in other
   threads that wait for this one.
2. **Judge** (`_tool_rules.py`): each rule returns findings about the calls, from the registry of
   tools (`skdp/_tools`) and from the steps and candidates passed to a tool (`_raw_parts.py`).
3. **Report** (`_tool_reports.py`): findings are raised as an error, or as one `RawDataWarning` for
   each call of the outermost tool. The price of a search is compared with the budget before its
   first fit (`_price_checks.py`).

`check_callers` takes these steps before a fit, a copy and an answer. `_scored_models.py` does the
same for private scores.
"""

import sys

from skdp._fitting._call_stack import (
    CONTAINERS,
    FROZEN,
    TARGETS,
    VALIDATION,
    checks_its_steps,
    read_stack,
    subject_of,
)
from skdp._fitting._call_states import has_warned, is_judged, state_of
from skdp._fitting._members import check_members_around
from skdp._fitting._price_checks import check_prices
from skdp._fitting._raw_parts import raw_parts_of_user, read_steps, text_of_problems
from skdp._fitting._tool_reports import for_persons, raise_if_asked, report, warn_once
from skdp._fitting._tool_rules import Operation, judge
from skdp._tools._entries import FITS
from skdp._tools._parts import is_private, nested_parts
from skdp._tools._registry import is_known
from skdp._tools._scores_and_folds import is_unread

# Problem of a study whose function uses predictions of a private model outside of other tools.
STUDY_ANSWERS = (
    "compares trials by predictions for rows, and thus publishes raw scores or chooses by them"
)


def check_callers(estimator, on_raw_data, occasion="fit"):
    """Raise or warn if a tool around a private estimator computes on raw rows.

    It is called before the charge.

    Parameters
    ----------
    estimator : estimator or NamedRelease
        A function's release is checked like the fit of an estimator.
    on_raw_data : callable
        Function that returns the setting of the ledger, "warn" or "raise". It is called only if a
        problem was found.
    occasion : {"fit", "clone", "send", "answer"}
        Operation that is about to run. Tools clone or pickle an estimator before they send it to
        workers, whose call stacks do not show the tool; "send" is such a pickle. "answer" is a
        prediction or transform, which trains a tool if it is in the tool's `fit`.

    Raises
    ------
    ValueError
        If the tool repeats rows or sets the seed of the noise, or `on_raw_data` returns "raise".

    Warns
    -----
    RawDataWarning
        Once for each call of the outermost tool.

    Returns
    -------
    bool
        True if the steps around the estimator were already checked by an enclosing plan.
    """
    if getattr(estimator, "_refusal", None) is not None:
        # The answer was stored when the estimator was sent to this worker.
        raise estimator._refusal
    innermost = sys._getframe(2)
    stack = read_stack(innermost)
    operation = Operation(estimator, occasion)
    if stack.is_bare:
        return operation.is_of_plan
    is_planned = operation.is_of_plan or bool(stack.planned_calls)
    if occasion == "answer" and stack.is_in_study:
        _check_answer_in_study(operation, stack, innermost, on_raw_data)
        return is_planned
    # Private estimators that are sent along with an accountant were judged when they were copied.
    is_repeated = occasion == "answer" or (occasion == "send" and operation.is_of_function)
    if is_repeated and stack.calls and all(is_judged(call.frame) for call in stack.calls):
        return is_planned
    has_classes = occasion != "answer" and not operation.is_of_plan
    if has_classes:
        _check_classes_of_user(operation, stack, on_raw_data, are_private=False)
    if stack.calls or stack.unknown_tool is not None:
        findings = judge(operation, stack)
        price = check_prices(stack.calls, occasion)
        report(operation, findings, stack, on_raw_data, price)
        for call in stack.calls:
            state_of(call.frame).is_judged = True
    if has_classes:
        # Tools around an estimator that is derived from a private one are not checked for its
        # parts.
        _check_classes_of_user(operation, stack, on_raw_data, are_private=True)
    return is_planned


def _check_classes_of_user(operation, stack, on_raw_data, are_private):
    """Raise or warn if a step that learns from raw rows was passed to a user-defined class.

    Its method may fit this step in addition to the private estimator. If a tool received such an
    object, the check of the tool has reported its steps.
    """
    if getattr(operation.estimator, "_was_reported", False):
        return
    # The loop goes inwards from the user's code.
    for call, n_inner in reversed(stack.of_user):
        outer = stack.calls[n_inner:]
        is_checked = any(checks_its_steps(around.subject) for around in outer)
        if is_checked or any(has_warned(around.frame) for around in outer):
            return
        subject = call.variables.get("self")
        is_tool = any(other.subject is subject for other in stack.calls)
        # The plan of a private search or pipeline checks its steps.
        is_planned = is_private(subject) and hasattr(subject, "public_steps")
        if is_private(subject) != are_private or is_planned or is_tool:
            continue
        if _is_reported_by_container(subject, outer):
            continue
        if not has_warned(call.frame):
            _report_class_of_user(operation, call, outer, stack.calls, on_raw_data)
        if has_warned(call.frame):
            _cover_parts(subject, stack.calls[:n_inner])
            return


def _is_reported_by_container(subject, outer):
    """Return True if a pipeline around an object reports the raw parts of the object.

    A pipeline looks for them in all of its steps except those derived from a private estimator.
    """
    for container in (around.subject for around in outer if around.is_container):
        raw_names = [f"{step.name}__" for step in read_steps(container)]
        for name, part in nested_parts(container).items():
            is_same = type(part) is type(subject)
            if is_same and any(raw.startswith(f"{name}__") for raw in raw_names):
                return True
    return False


def _report_class_of_user(operation, call, outer, calls, on_raw_data):
    """Raise or warn if the object whose method fits has parts that learn from raw rows."""
    subject = call.variables.get("self")
    problems = raw_parts_of_user(subject)
    if not problems:
        return
    around = "" if operation.estimator is subject else f" around {operation.name}"
    text = (
        f"{type(subject).__name__}{around} {text_of_problems(problems)}; if its "
        f"{call.function} passes them no rows, ignore this warning"
    )
    text = for_persons(text, operation.estimator)
    raise_if_asked(text, on_raw_data, "charged")
    # A tool may create the object anew in each fit; the warning is raised once per call of the
    # tool.
    if outer:
        warn_once(text, outer[-1], [call], calls)
    else:
        warn_once(text, call, [call], calls)
    state_of(call.frame).is_complete = True


def _cover_parts(subject, inner_calls):
    """Mark the calls of tools that were passed to a user-defined class as covered by a warning."""
    part_types = {type(part) for part in nested_parts(subject).values()}
    for call in inner_calls:
        if type(call.subject) in part_types:
            state_of(call.frame).is_complete = True


def _check_answer_in_study(operation, stack, innermost, on_raw_data):
    """Raise or warn if a study's function itself uses predictions of a private model.

    Fits and the tools inside the function are judged separately, and private scores are releases.
    """
    if not hasattr(operation.estimator, "predict"):
        return
    frame = innermost
    while frame is not None and frame is not stack.calls[0].frame:
        if frame.f_code.co_name in FITS:
            return
        frame = frame.f_back
    study = next(call for call in reversed(stack.calls) if call.is_study)
    name = stack.public_name(study)
    text = f"{name} around {operation.name} {STUDY_ANSWERS}: {study.tool.instead}"
    raise_if_asked(text, on_raw_data, "computed")
    warn_once(text, study, [study], stack.calls)


def check_members_of_sender():
    """Raise `ValueError` if a tool that sends an estimator to workers has an invalid member.

    The tool waits in another thread than the one in which the estimator is pickled.
    """
    for frame in read_stack(sys._getframe(1)).waiting:
        check_members_around(frame)


def has_warned_around():
    """Return True if a warning covers the calls around this one, so that workers need not warn."""
    stack = read_stack(sys._getframe(1))
    calls = [*stack.calls, *(call for call, _ in stack.of_user)]
    if stack.unknown_tool is not None:
        calls.append(stack.unknown_tool)
    return any(has_warned(call.frame) for call in calls)


def is_judged_before_copies(estimator, is_fitted):
    """Return True if a known tool in the call stack must be judged before it copies an estimator.

    Tools check whether the estimator is a classifier just before they read their folds, which
    calls this function. Three kinds of calls cannot wait for the first copy. The splitter of a
    generator of folds is visible only before the generator is read. joblib loses an error of
    the first copy if all tasks are dispatched at once, as in `learning_curve`. And a fitted
    estimator may be frozen, so that the tool neither copies nor fits it.

    Parameters
    ----------
    estimator : estimator
        Private estimator.
    is_fitted : bool
        True if the estimator is fitted.
    """
    if getattr(estimator, "_refusal", None) is not None:
        # This is a worker process, which may never fit the estimator.
        return True
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if frame.f_code is check_callers.__code__:
            # Judging a tool also involves reading tags, which calls this function again.
            return False
        is_tool = is_known(module)
        # A frozen selection is asked for its tags, which are those of its model, before its fit.
        is_fitted = is_fitted or module == FROZEN
        if is_fitted and (is_tool or module in CONTAINERS or module == TARGETS):
            is_fit = frame.f_code.co_name in FITS or module == VALIDATION
            if is_fit and not is_judged(frame):
                return True
        if is_tool:
            variables = frame.f_locals
            if module == VALIDATION and variables.get("pre_dispatch") == "all":
                return True
            folds = variables.get("cv", getattr(subject_of(variables), "cv", None))
            if is_unread(folds):
                return True
        frame = frame.f_back
    return False
