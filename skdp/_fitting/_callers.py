"""Detection of tools around a private fit that compute something from raw rows themselves.

A private estimator charges its releases. If a tool around it computes something else from the same
rows, nothing is charged for that. The call stack, from the outermost private fit to the user's
code, shows these tools, also in worker processes.
"""

import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import unwrap
from types import FunctionType, ModuleType

from skdp._fitting._arguments import NO_WEIGHTS
from skdp._fitting._search_prices import (
    has_refused_candidates,
    listed_values,
    price_of_container,
    price_of_search,
    price_of_validation,
)
from skdp._tools._entries import FITS
from skdp._tools._parts import (
    copy_parts,
    holds_private,
    is_estimator,
    is_frozen,
    is_private,
    is_step,
    nested_parts,
    parts_in,
    parts_of,
)
from skdp._tools._registry import is_known, is_study, known_caller, passes_on
from skdp._tools._scores_and_folds import is_unread, repeats_rows
from skdp.exceptions import BudgetExceededError, RawDataWarning
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user

CONTAINERS = (
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "imblearn.pipeline",
    "feature_engine.pipeline.pipeline",
)
VALIDATION = "sklearn.model_selection._validation"
FROZEN = "sklearn.frozen._frozen"
TARGETS = "sklearn.compose._target"
PARALLEL = "joblib.parallel"
# Modules of Python's threads, executors and pools. Their threads run or send tasks of another
# thread, which waits for them.
EXECUTORS = frozenset(
    "threading concurrent.futures.thread concurrent.futures.process concurrent.futures._base "
    "multiprocessing.pool multiprocessing.queues".split()
)
# Modules that run the tasks of a worker; outside of these are no calls of the task's tool.
RUNS_TASKS = frozenset(
    {"concurrent.futures.thread", "multiprocessing.pool", "joblib.externals.loky.process_executor"}
)
# Module of the functions that scikit-learn's tools send to joblib.
SENT_BY_SKLEARN = "sklearn.utils.parallel"
# Modules of joblib whose threads pickle tasks for worker processes.
SENDS_TASKS_OF_JOBLIB = frozenset({"joblib.externals.loky.backend.queues", "joblib.pool"})
# Functions of Python that do so, each in a separate thread.
SENDS_TASKS = frozenset(
    {("multiprocessing.pool", "_handle_tasks"), ("multiprocessing.queues", "_feed")}
)
# Packages whose distributions draw numbers only.
DRAW_NUMBERS = frozenset({"scipy", "skopt", "optuna", "numpy"})
IF_PASSED_ON = "if it gives each row to each fit once, as it is, ignore this warning"
RAW_STEPS = "has steps that learn from raw rows"
REPEATED_FOLDS = (
    "fits to folds that list rows more than once, so that a person's row counts repeatedly: use "
    "cv=KFold(5, shuffle=True, random_state=0)"
)
# Problem of a study whose function asks a private model for predictions outside of other tools.
STUDY_ANSWERS = "compares trials by predictions for rows, and so publishes or chooses by raw scores"
INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class ToolFinding(FrozenValue):
    """A problem of a call of a tool around a private estimator.

    Parameters
    ----------
    frame : frame
        The call.
    tool : str
        Name of the tool for users.
    problem : str
        Text that follows the names of the tool and of the estimator.
    is_refused : bool
        True if the fit is refused, also if the ledger's setting is "warn".
    """

    frame: object
    tool: str
    problem: str
    is_refused: bool


@dataclass
class _WarningState:
    """Warnings that were emitted for one call of a tool, stored in its frame.

    Attributes
    ----------
    texts : set of str
        Texts of the warnings.
    is_complete : bool
        True if a warning was about this call itself, which covers all inner calls.
    has_price : bool
        True if the price of a search was compared with the remaining budget.
    raw_candidates : list or None
        Problems of the candidates of a search; None before they were looked for.
    is_judged : bool
        True if the call was judged, so that answers of its estimators need no other judgment.
    has_private_parts : bool
        True if the parts of the tool were looked at and have no problem.
    """

    texts: set = field(default_factory=set)
    is_complete: bool = False
    has_price: bool = False
    raw_candidates: list | None = None
    is_judged: bool = False
    has_private_parts: bool = False


# Name of the local variable in the frame of the call that stores the state. It ends with the call,
# and each call has a separate one. All versions of Python can set it, also with PEP 667.
STATE_VARIABLE = "__skdp_warning_state__"
# Lock that is held while warning, so that the threads of a tool warn only once.
_warning = threading.RLock()
# Function that finds the steps of pipelines that learn from rows without privacy; at most one.
_step_readers: list[Callable] = []


def register_step_reader(find_raw_steps):
    """Set the function that finds the steps of an estimator that are not private.

    The modules of pipelines import this one, so they register their function here.
    """
    _step_readers[:] = [find_raw_steps]


def check_callers(estimator, on_raw_data, occasion="fit"):
    """Raise or warn if a tool around a private estimator computes on raw rows.

    It is called before the charge, and computes nothing from rows.

    Parameters
    ----------
    estimator : estimator
        Private estimator.
    on_raw_data : callable
        Function that returns the setting of the ledger, "warn" or "raise". It is called only if a
        problem was found.
    occasion : {"fit", "clone", "send", "answer"}
        Operation that is about to run. Tools clone or pickle an estimator before they send it to
        workers, whose call stacks do not show the tool; "send" is such a pickle. "answer" is a
        prediction or transform: in the `fit` of a tool it trains that tool.

    Raises
    ------
    ValueError
        If the tool repeats rows or sets seeds of the noise, or `on_raw_data` returns "raise".

    Warns
    -----
    RawDataWarning
        Once for each call of the outermost tool.

    Returns
    -------
    bool
        True if a plan around the estimator checked its steps.
    """
    if getattr(estimator, "_refusal", None) is not None:
        # The refusal was stored when the estimator was sent to this worker.
        raise estimator._refusal
    stack = _calls_around(sys._getframe(2))
    is_planned = is_of_plan(estimator) or bool(_inside_checked(stack.calls))
    if occasion == "answer" and stack.calls:
        if _is_in_study(stack.calls):
            _judge_answer_in_study(estimator, stack, on_raw_data)
            return is_planned
        if all(map(_is_judged, stack.calls)):
            return is_planned
    if occasion != "answer":
        _judge_classes_of_the_user(estimator, stack, on_raw_data)
    if stack.calls or (stack.direct is not None and _is_installed(stack.direct)):
        _judge(estimator, stack, on_raw_data, occasion)
        for frame in stack.calls:
            _state_of(frame).is_judged = True
    return is_planned


def _judge_classes_of_the_user(estimator, stack, on_raw_data):
    """Raise or warn if a class of the user was given a step that learns from raw rows.

    Its `fit` may fit this step beside the private estimator. A tool that was given such an object
    has reported its steps.
    """
    if is_of_plan(estimator) or getattr(estimator, "_was_reported", False):
        return
    calls = stack.calls
    # From the user's code inwards.
    for frame, n_inner in reversed(stack.of_user):
        subject = frame.f_locals.get("self")
        outer = calls[n_inner:]
        is_checked = any(_checks_its_steps(_subject(call.f_locals)) for call in outer)
        is_tool = any(_subject(call.f_locals) is subject for call in calls)
        if any(map(_has_warned, outer)) or is_checked:
            return
        if is_private(subject) or is_tool:
            continue
        steps = () if _has_warned(frame) else _raw_parts_of_the_user(subject)
        if steps:
            words = "; ".join(dict.fromkeys(text for text, _ in steps))
            text = (
                f"{type(subject).__name__} around {type(estimator).__name__} {RAW_STEPS}: {words}; "
                "if its fit gives them no rows, ignore this warning"
            )
            if on_raw_data() == "raise":
                raise ValueError(
                    f"{text}. Nothing was charged: this ledger was opened with on_raw_data='raise'"
                )
            # The object may be created in each fit of a tool, whose call warns once.
            with _warning:
                _warn_once(text, outer[-1] if outer else frame, [frame], calls)
            _state_of(frame).is_complete = True
        if _has_warned(frame):
            # The warning covers the tools that the class was given.
            part_types = {type(part) for part in nested_parts(subject).values()}
            for call in calls[:n_inner]:
                if type(_subject(call.f_locals)) in part_types:
                    _state_of(call).is_complete = True
            return


def _raw_parts_of_the_user(subject):
    """Return the problems of what a class of the user was given, as `_raw_steps` does."""
    if holds_private(subject):
        return _raw_steps(subject, is_calling=True, with_fitted=False)
    # It creates the private estimator in `fit`.
    return [
        (f"{text} of the member {name!r}", is_refused)
        for name, part in parts_of(subject)
        for text, is_refused in _raw_steps(part, with_fitted=False)
    ]


def _has_warned(frame):
    """Return True if a warning covers a call and all that it calls."""
    state = frame.f_locals.get(STATE_VARIABLE)
    return state is not None and state.is_complete


def has_warned_around():
    """Return True if a warning covers the calls around this one, so that workers need none."""
    stack = _calls_around(sys._getframe(1))
    frames = [*stack.calls, *(frame for frame, _ in stack.of_user)]
    if stack.direct is not None and _is_installed(stack.direct):
        frames.append(stack.direct)
    return any(map(_has_warned, frames))


def _is_in_study(calls):
    """Return True if a study is around an answer, and no other tool that learns is inside it."""
    tools = [known_caller(frame.f_globals["__name__"], frame.f_code.co_name) for frame in calls]
    return any(map(is_study, calls)) and all(
        tool is None or is_study(frame) for tool, frame in zip(tools, calls, strict=True)
    )


def _judge_answer_in_study(estimator, stack, on_raw_data):
    """Raise or warn if the function of a study asks a private model for predictions itself.

    Fits and the tools inside the function are judged separately, and private scores are releases.
    """
    if not hasattr(estimator, "predict"):
        return
    frame = sys._getframe(3)
    while frame is not None and frame is not stack.calls[0]:
        if frame.f_code.co_name in FITS:
            return
        frame = frame.f_back
    study = next(filter(is_study, reversed(stack.calls)))
    tool = known_caller(study.f_globals["__name__"], study.f_code.co_name)
    who = _public_name(study, tool, stack.calls)
    text = f"{who} around {type(estimator).__name__} {STUDY_ANSWERS}: {tool.instead}"
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was computed: this ledger was opened with on_raw_data='raise'"
        )
    with _warning:
        _warn_once(text, study, [study], stack.calls)


def is_of_plan(estimator):
    """Return True for a copy in a worker process that a fit of a plan has sent there.

    The plan checked the steps around the estimator. Its container is in the other process.
    """
    return getattr(estimator, "_is_sent_by_plan", False)


def _is_judged(frame):
    state = frame.f_locals.get(STATE_VARIABLE)
    return state is not None and state.is_judged


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
        # In a worker process, which may never fit it.
        return True
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if frame.f_code is check_callers.__code__:
            # The judgment of a tool reads tags too, which calls this function again.
            return False
        is_tool = is_known(module)
        # A frozen selection is asked for its tags, which are those of its model, before its fit.
        is_fitted = is_fitted or module == FROZEN
        if is_fitted and (is_tool or module in CONTAINERS or module == TARGETS):
            is_fit = frame.f_code.co_name in FITS or module == VALIDATION
            if is_fit and not _is_judged(frame):
                return True
        if is_tool:
            variables = frame.f_locals
            if module == VALIDATION and variables.get("pre_dispatch") == "all":
                return True
            folds = variables.get("cv", getattr(_subject(variables), "cv", None))
            if is_unread(folds):
                return True
        frame = frame.f_back
    return False


def is_sent_to_workers():
    """Return True if the current pickle is a task for worker processes of joblib or Python.

    Their threads pickle tasks only. Other pickles need no check.
    """
    if threading.current_thread() is threading.main_thread():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module in SENDS_TASKS_OF_JOBLIB or (module, frame.f_code.co_name) in SENDS_TASKS:
            return True
        frame = frame.f_back
    return False


def _calls_around(frame):
    """Return the `_Stack` of a frame, with the calls in other threads that wait for it."""
    stack = _read_stack(frame)
    calls = stack.calls
    of_user = stack.of_user
    direct = stack.direct
    is_outermost = stack.is_outermost
    threads = {threading.get_ident()}
    waiting = []
    # The outer calls of a worker thread, or of a thread that sends tasks, are in a waiting thread.
    while stack.is_parallel and (frame := _find_waiting(stack, threads)) is not None:
        waiting.append(frame)
        stack = _read_stack(frame)
        of_user = of_user + tuple((user_frame, len(calls) + n) for user_frame, n in stack.of_user)
        calls = calls + stack.calls
        if direct is None or _is_in_same_package(direct, stack.direct):
            direct = stack.direct
            is_outermost = stack.is_outermost
        else:
            is_outermost = is_outermost and not stack.calls
    return replace(
        stack,
        calls=calls,
        direct=direct,
        is_outermost=is_outermost,
        of_user=of_user,
        waiting=tuple(waiting),
    )


def _is_in_same_package(frame, outer):
    """Return True if two calls are in one installed package, whose outer call the user made."""
    if outer is None or not (_is_installed(frame) and _is_installed(outer)):
        return False
    return _module_of(frame).partition(".")[0] == _module_of(outer).partition(".")[0]


def _module_of(frame):
    """Return the name of a call's module, also if Python runs it as a program."""
    module = frame.f_globals.get("__name__") or ""
    if module == "__main__":
        module = getattr(frame.f_globals.get("__spec__"), "name", module)
    return module


@dataclass(frozen=True)
class _Stack:
    """The calls from a frame outwards, in one thread.

    Attributes
    ----------
    calls : list of frames
        Calls of known tools and containers, from the inside out.
    direct : frame or None
        Innermost call of other code that does more than pass on rows. In an installed package it is
        the package's outermost call, which the user's code made.
    is_outermost : bool
        True if `direct` is outside of all `calls`.
    batches : list of frames
        Calls in which joblib runs or sends tasks, from the inside out.
    is_parallel : bool
        True if joblib runs a task of another thread, so that outer calls are missing.
    of_user : tuple of (frame, int)
        Fits of estimator classes of the user, from the inside out, and the number of `calls` inside
        each.
    waiting : tuple of frames, default=()
        Calls in other threads that wait for the task in which the ones before them are.
    """

    calls: list
    direct: object
    is_outermost: bool
    batches: list
    is_parallel: bool
    of_user: tuple
    waiting: tuple = ()


def _read_stack(frame):
    """Return the `_Stack` of a frame."""
    calls = []
    direct = None
    is_outermost = False
    batches = []
    of_user = []
    package = None
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module == "__main__":
            module = _module_of(frame)
        if not passes_on(module) and _is_fit_of_the_users(frame):
            of_user.append((frame, len(calls)))
        if is_known(module) or module in CONTAINERS or module == TARGETS:
            calls.append(frame)
            is_outermost = False
        elif module == PARALLEL or module in SENDS_TASKS_OF_JOBLIB or module in EXECUTORS:
            batches.append(frame)
        elif direct is None and not passes_on(module) and not _is_fit_of_the_users(frame):
            direct = frame
            is_outermost = True
            package = module.partition(".")[0] if _is_installed(frame) else None
        elif package is not None and module.partition(".")[0] == package and not passes_on(module):
            direct = frame
            is_outermost = True
        elif package is None and direct is not None and _is_installed_fit(frame):
            # A function of the user fits the private estimator while a tool calls it.
            direct = frame
            is_outermost = True
            package = module.partition(".")[0]
        frame = frame.f_back
    is_worker = threading.current_thread() is not threading.main_thread()
    is_parallel = is_worker and bool(batches)
    return _Stack(calls, direct, is_outermost, batches, is_parallel, tuple(of_user))


def _is_installed_fit(frame):
    """Return True for a fit of an estimator class of an installed package."""
    code = frame.f_code
    if code.co_name not in FITS or code.co_varnames[:1] != ("self",):
        return False
    return _is_installed(frame) and hasattr(frame.f_locals.get("self"), "get_params")


def _is_fit_of_the_users(frame):
    """Return True for `fit` of an estimator class of the user, which a tool may have called.

    A class that is derived from a private one, or wraps one, passes its rows on.
    """
    code = frame.f_code
    # Variables of other frames are not read, because that would keep rows alive that these frames
    # delete.
    if code.co_name not in FITS or code.co_varnames[:1] != ("self",) or _is_installed(frame):
        return False
    return hasattr(frame.f_locals.get("self"), "get_params")


def _find_waiting(stack, visited):
    """Return the call in another thread that waits for the task of a stack.

    Parameters
    ----------
    stack : _Stack
    visited : set of int
        Threads that were searched already. The thread of the result is added.

    Returns
    -------
    frame or None
        None if there is no such call, as in a worker process.
    """
    tasks = [_pickles_of(frame) for frame in stack.batches]
    of_executor = _senders_and_tasks(stack.batches)
    for thread, innermost in sys._current_frames().items():
        frame = innermost if thread not in visited else None
        while frame is not None:
            if of_executor and _waits_for(frame, of_executor):
                visited.add(thread)
                return frame
            if frame.f_globals.get("__name__") == PARALLEL:
                pickles = _pickles_of(frame)
                if pickles is not None and any(task is pickles for task in tasks):
                    visited.add(thread)
                    return frame
            frame = frame.f_back
    return None


def _senders_and_tasks(batches):
    """Return objects of Python that only the thread of a task, and the one that waits, have.

    These are the thread, the executor or the pool that runs or sends a task, and its future.
    """
    held = []
    for frame in batches:
        module = frame.f_globals.get("__name__")
        if module not in EXECUTORS:
            continue
        variables = frame.f_locals
        if module == "threading":
            held.append(variables.get("self"))
        elif module == "multiprocessing.pool":
            # The queues of the pool, in a thread that runs or sends its tasks.
            held += [variables.get(name) for name in ("inqueue", "taskqueue")]
        elif module == "multiprocessing.queues":
            pending = getattr(
                getattr(variables.get("onerror"), "__self__", None), "pending_work_items", {}
            )
            item = pending.get(getattr(variables.get("obj"), "work_id", None))
            held.append(getattr(item, "future", None))
        else:
            reference = variables.get("executor_reference")
            held += [
                reference() if callable(reference) else None,
                getattr(variables.get("self"), "future", None),
            ]
    return [value for value in held if value is not None]


def _waits_for(frame, values):
    """Return True if a call waits for one of some objects, or if a known tool started it."""
    module = frame.f_globals.get("__name__") or ""
    variables = frame.f_locals if module in EXECUTORS or is_known(module) else {}
    held = list(variables.values())
    for group in (variables.get("fs"), variables.get("futures")):
        held += list(group) if isinstance(group, list | tuple | set) else []
    if module == "multiprocessing.pool":
        if "taskqueue" in variables or "inqueue" in variables:
            # Another thread of the pool.
            return False
        owner = variables.get("self")
        # The result of `map_async` has the pool.
        pool = getattr(owner, "_pool", None)
        for holder in (owner, pool):
            held += [getattr(holder, name, None) for name in ("_inqueue", "_taskqueue")]
    return any(value is other for value in values for other in held)


def _pickles_of(frame):
    """Return an object that a call of joblib shares with its tasks only, or None.

    It is the dictionary in which joblib caches pickles.
    """
    variables = frame.f_locals
    owner = variables.get("self")
    if frame.f_globals.get("__name__") in SENDS_TASKS_OF_JOBLIB:
        # An item of loky has a function. An item of a pool is a tuple with a wrapped function.
        owner = variables.get("obj")
        owner = owner[2] if isinstance(owner, tuple) and len(owner) > 2 else owner
        for name in ("fn", "func"):
            owner = getattr(owner, name, owner)
    return getattr(owner, "_pickle_cache", None)


def check_scored(estimator, scorer, on_raw_data):
    """Raise or warn if the charge of a private score is too low for a model or tool.

    It is called before the charge, and computes nothing from rows. The sensitivity of a score is
    known for a change of the scored table and a fixed model, which must have been released.

    Parameters
    ----------
    estimator : object
        Model that is scored.
    scorer : object
        Private scorer.
    on_raw_data : callable
        Function that returns the setting of the ledger, "warn" or "raise". It is called only if a
        problem was found.

    Raises
    ------
    ValueError
        If `on_raw_data` returns "raise".

    Warns
    -----
    RawDataWarning
        Once for each call of the outermost tool.
    """
    name = type(scorer).__name__
    problems = []
    raw = _raw_scored_steps(estimator)
    if raw:
        steps = "; ".join(
            _title(step.estimator, step.name) + (f" ({step.advice})" if step.advice else "")
            for step in raw
        )
        problems.append(
            f"{name} scores a model that learns from raw rows, which its charge does not cover: "
            f"{steps}; score a private one, or FrozenEstimator(model) of a model of public rows"
        )
    stack = _calls_around(sys._getframe(2))
    calls = stack.calls
    for frame in calls:
        function = frame.f_code.co_name
        tool = known_caller(frame.f_globals["__name__"], function)
        if tool is not None and tool.wrong_scores:
            problems.append(f"{tool.name or function} around {name} {tool.wrong_scores}")
    if not problems:
        return
    text = "; ".join(dict.fromkeys(problems))
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was computed or charged: this ledger was opened with "
            "on_raw_data='raise'"
        )
    parts = nested_parts(estimator).values() if is_step(estimator) else ()
    if any(getattr(part, "_was_reported", False) for part in (scorer, estimator, *parts)):
        # The process that sent it to this worker has warned.
        return
    direct = stack.direct if stack.direct is not None and _is_installed(stack.direct) else None
    if direct is not None and (stack.is_outermost or not calls):
        # A tool of scikit-learn, or another one, that skdp does not know by its fits.
        with _warning:
            _warn_once(f"{_name_of(direct)}: {text}", direct, [direct], calls)
    elif calls:
        with _warning:
            _warn_once(text, calls[-1], [], calls)
            # Later findings about the same candidates are covered.
            _state_of(calls[-1]).is_complete = True
    else:
        warn_user(text, RawDataWarning, is_skipped=passes_on)


def _raw_scored_steps(estimator):
    """Return the steps of a scored model that learn from raw rows and that no fit checked."""
    raw = [step for step in _step_readers[0](estimator) if not _was_checked_by_fit(step)]
    if not raw:
        return []
    # The steps of a plan are private, or were declared public.
    params = nested_parts(estimator)
    planned = [part for part in (estimator, *params.values()) if _checks_its_steps(part)]
    # Steps may have been replaced since the fit.
    if any(_refusal_of_plan(plan) for plan in planned):
        return raw
    return [
        step
        for step in raw
        if not any(map(_checks_its_steps, (estimator, *_holders(step.name, params))))
    ]


def _was_checked_by_fit(step):
    """Return True if a step is private, or contains a private estimator whose fit checked it.

    A class that the user wrote passes its rows on. For an unknown installed tool, the fit of the
    private estimator has warned.
    """
    if is_private(step.estimator):
        return True
    # A class may create its private estimators in `fit`.
    fitted = getattr(step.estimator, "__dict__", {}).values()
    inside = [part for value in fitted for _, part in parts_in("", value)]
    return step.kind == "unknown" and any(map(holds_private, (step.estimator, *inside)))


class RefusedScore:
    """Value that a private scorer returns if scikit-learn would replace its error by NaN.

    With a score of NaN a search would continue, and fit the model that is not private at the end.
    scikit-learn refuses a score that is not a number, with a `ValueError` that quotes this object.

    Parameters
    ----------
    reason : Exception
        Reason of the refusal.
    """

    def __init__(self, reason):
        self.reason = reason

    def __repr__(self):
        return f"a refusal: {self.reason}"


def hides_errors_of_scores():
    """Return True if the calling function of scikit-learn replaces errors of a scorer by NaN."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == VALIDATION and frame.f_code.co_name == "_score":
            return frame.f_locals.get("error_score", "raise") != "raise"
        frame = frame.f_back
    return False


def _is_installed(frame):
    """Return True for a call of an installed package that does not use skdp itself."""
    return _is_in_package(frame.f_code.co_filename, frame.f_globals)


def _is_in_package(path, names):
    """Return True for a file of an installed package whose global names are not skdp's."""
    if not any(folder in path for folder in INSTALLED):
        return False
    return not any(map(_is_of_skdp, list(names.values())))


def _is_of_skdp(value):
    """Return True for skdp, its modules, and their classes and functions."""
    # A module has no `__module__`.
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == "skdp"


def _judge(estimator, stack, on_raw_data, occasion):
    """Raise an error or warn if a call around an estimator has a problem."""
    name = type(estimator).__name__
    calls = stack.calls
    direct = stack.direct
    findings = []
    others = []
    checked = _inside_checked(calls)
    if is_of_plan(estimator):
        checked = [frame for frame in calls if frame.f_globals["__name__"] in CONTAINERS]
    # From the user's code inwards.
    for frame in reversed(calls):
        module = frame.f_globals["__name__"]
        function = frame.f_code.co_name
        tool = known_caller(module, function)
        if module == VALIDATION and occasion == "fit" and repeats_rows(frame.f_locals):
            who = _outer_name(frame, calls)
            findings.append(ToolFinding(frame, who, REPEATED_FOLDS, is_refused=True))
        if occasion != "fit" and function not in FITS and (tool is None or tool.functions is None):
            others.append((frame, tool))
            continue
        if module == VALIDATION and _is_called_by_tool(frame, stack.waiting):
            # The entry of the outer tool covers its scores and predictions. But folds that it
            # received as an iterator are a list only in this call.
            refusal = tool.refusal(frame.f_locals) if tool is not None and tool.refusal else ""
            if refusal:
                who = _public_name(frame, tool, calls)
                problem = f"{refusal}: {tool.instead}"
                findings.append(ToolFinding(frame, who, problem, is_refused=True))
            # A tool may put its estimator into a pipeline that was not checked with the tool.
            inner = frame.f_locals.get("estimator") if tool is not None else None
            is_built = inner is not None and not any(inner is part for part in _judged_parts(calls))
            if is_built and not any(map(_is_about_steps, findings)):
                steps = _raw_steps(inner)
                if steps:
                    findings.append(_finding_of_steps(frame, _outer_name(frame, calls), steps))
            continue
        title = _public_name(frame, tool, calls)
        # A finding about the steps of a pipeline covers the pipelines inside it.
        skips_steps = frame in checked or any(map(_is_about_steps, findings))
        findings += _findings_of(frame, tool, title, occasion, skips_steps, calls)
    is_unknown = direct is not None and _is_installed(direct)
    # A clone alone does not show the purpose of a tool.
    if findings and occasion in ("clone", "send"):
        outer_findings = []
        for frame, tool in others:
            title = _public_name(frame, tool, calls)
            outer_findings += _findings_of(frame, tool, title, occasion, True, calls)
        findings = outer_findings + findings
    # A pickle of an unfitted estimator for a worker process is for its fit.
    is_for_fit = occasion == "fit" or (occasion == "send" and not hasattr(estimator, "privacy_"))
    if is_unknown and (is_for_fit or findings):
        findings += _unknown_caller(direct, estimator)
    price = _price_of_searches(calls, occasion)
    if not findings:
        return
    # Inner functions of a tool may have the same problem, which is reported once.
    sentences = {}
    for finding in findings:
        sentence = f"{finding.tool} around {name} {finding.problem}"
        sentences.setdefault(finding.problem, sentence)
    text = "; ".join(sentences.values())
    if any(finding.is_refused for finding in findings):
        raise ValueError(f"{text}. Nothing was computed or charged")
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was computed or charged: this ledger was opened with "
            "on_raw_data='raise'"
        )
    if getattr(estimator, "_was_reported", False):
        # The process that sent it to this worker has warned.
        return
    found_in = [finding.frame for finding in findings]
    outermost = direct if is_unknown and stack.is_outermost or not calls else calls[-1]
    with _warning:
        _warn_once(text, outermost, found_in, calls, more=price and f"; {price}")


def _price_of_searches(calls, occasion):
    """Raise before the first fit of a search if its total price exceeds the budget.

    Returns
    -------
    str
        Text about the price; "" if no search begins or its price is unknown.
    """
    for frame in reversed(calls) if occasion != "answer" else ():
        subject = _subject(frame.f_locals)
        function = frame.f_code.co_name
        state = _state_of(frame)
        if state.has_price or not _keeps_state(frame):
            continue
        if frame.f_globals["__name__"] == VALIDATION:
            # It clones its estimator, or reads its tags, before the first fit.
            state.has_price = True
            price = price_of_validation(function, frame.f_locals)
            if price is not None:
                _check_price(function, price, None, frame)
            continue
        # A search clones its estimator before each fit: nothing is charged before the first clone.
        if occasion in ("clone", "send") and function == "fit":
            state.has_price = True
            price = price_of_search(subject, frame.f_locals.get("X"))
            if price is not None:
                _check_price(type(subject).__name__, price, subject, frame)
                words = f"{price}, of {price.accountant._remaining_for_charge():.6g} left"
                if getattr(subject, "verbose", 0):
                    print(f"{type(subject).__name__}: {words}")
                return words
        # The searches of a pipeline or an ensemble may follow charges of its other parts.
        if function in FITS:
            state.has_price = True
            price = price_of_container(subject)
            if price is not None:
                _check_price(type(subject).__name__, price, subject, frame)
    return ""


def _check_price(name, price, subject, frame):
    """Raise `BudgetExceededError` if a price is more than the budget that remains.

    Parameters
    ----------
    name : str
        Name of the tool.
    price : SearchPrice
    subject : object or None
        Search or container whose fit begins.
    frame : frame
        Call of the tool.
    """
    accountant = price.accountant
    # Charges on a part of the rows count only beyond those on the other parts.
    remaining = accountant._remaining_for_charge()
    if price.epsilon <= remaining * (1 + 1e-9) or has_refused_candidates(subject, frame.f_locals):
        return
    total = accountant.epsilon, accountant.delta
    raise BudgetExceededError(
        (price.epsilon, price.delta),
        (remaining, max(total[1] - accountant.delta_spent, 0.0)),
        total,
        message=f"{name}: {price}, and the budget has {remaining:.6g} left: give each fit "
        "a smaller epsilon, try fewer candidates, or use DPGridSearchCV, which makes one "
        "charge. Nothing was computed or charged",
    )


def _warn_once(text, outermost, found_in, calls, more=""):
    """Warn once for each call of the outermost tool, or always if the warning is an error.

    Parameters
    ----------
    text : str
        Text about the problems.
    outermost : frame
        Call of the tool that the user's code called.
    found_in : list of frames
        Calls that have problems.
    calls : list of frames
        All calls of known tools, from the inside out.
    more : str, default=""
        Further text, which alone causes no new warning.
    """
    state = _state_of(outermost)
    is_covered = state.is_complete or text in state.texts or _is_covered(found_in, calls)
    if is_covered and not _is_error():
        return
    warn_user(text + more, RawDataWarning, is_skipped=passes_on)
    # After the warning: if it is an error, it is raised at the next call again.
    state.texts.add(text)
    for frame in found_in:
        _state_of(frame).is_complete = True


def _is_covered(found_in, calls):
    """Return True if each call that has a problem was warned of, or is inside one that was."""
    for frame in found_in or calls[:1]:
        outer = calls[calls.index(frame) :] if frame in calls else [frame]
        states = [around.f_locals.get(STATE_VARIABLE) for around in outer]
        if not any(state is not None and state.is_complete for state in states):
            return False
    return bool(found_in or calls)


def _state_of(frame):
    """Return the `_WarningState` of a call of a tool."""
    state = frame.f_locals.get(STATE_VARIABLE)
    if state is None:
        state = _WarningState()
        # A function that uses `locals()` would see the variable, so it gets none, and each fit
        # warns.
        if _keeps_state(frame):
            frame.f_locals[STATE_VARIABLE] = state
    return state


def _keeps_state(frame):
    """Return True if a state can be stored in the frame of a call."""
    return "locals" not in frame.f_code.co_names


def _findings_of(frame, tool, name, occasion, skips_steps, calls):
    """Return the list of `ToolFinding` about a call.

    Parameters
    ----------
    frame : frame
    tool : KnownCaller or None
        Entry of the table about the call.
    name : str
        Name of the tool for users.
    occasion : str
    skips_steps : bool
        True if its steps were checked by a plan, or reported already.
    calls : list of frames
        All calls of known tools, from the inside out.
    """
    module = frame.f_globals["__name__"]
    function = frame.f_code.co_name
    variables = frame.f_locals
    subject = _subject(variables)
    # A function such as `cross_val_score` fits its estimator, as the `fit` of a search does.
    is_validation = module == VALIDATION and tool is not None
    findings = []
    if tool is not None:
        problem, is_refused = tool.problem_of(variables)
        if problem:
            who = tool.name or name
            findings.append(ToolFinding(frame, who, f"{problem}: {tool.instead}", is_refused))
    fits = is_validation or (subject is not None and function in FITS)
    # Tools for several targets give each fit one of them.
    y = None if _splits_targets(subject) else variables.get("Y", variables.get("y"))
    if module in CONTAINERS and occasion == "fit":
        findings += _weight_findings(frame, name)
    # A frozen step of a pipeline is only asked for its answers.
    is_only_asked = occasion == "answer" and module not in CONTAINERS
    if is_only_asked or skips_steps or not fits:
        return findings
    if module in CONTAINERS:
        # Samplers are covered by the entry of their pipeline.
        leave_out = "resamples" if findings else ""
        steps = _raw_steps(subject, is_calling=True, leave_out=leave_out, y=y)
    elif module == TARGETS:
        steps = _raw_steps(subject, is_calling=True, y=y)
    elif findings or occasion in ("clone", "send") or not _state_of(frame).has_private_parts:
        # The pipeline inside a tool is checked with the tool, before its fits. Worker processes
        # cannot tell the user about its steps. Some tools fit their members without a clone.
        inner = variables.get("estimator") if is_validation else getattr(subject, "estimator", None)
        steps = _raw_in_members(subject, y)
        # A class of the user may create the private estimator that is being fitted.
        if findings or occasion in ("clone", "send") or holds_private(inner):
            steps = _raw_steps(inner, y=y) + _raw_candidates(frame, calls, inner, y) + steps
        _state_of(frame).has_private_parts = not steps
    else:
        steps = []
    if steps:
        findings.append(_finding_of_steps(frame, name, steps))
    return findings


def _finding_of_steps(frame, name, steps):
    words = "; ".join(text for text, _ in steps)
    is_refused = any(refused for _, refused in steps)
    return ToolFinding(frame, name, f"{RAW_STEPS}: {words}", is_refused)


def _is_about_steps(finding):
    """Return True if a finding is about the steps of a pipeline."""
    return finding.problem.startswith(RAW_STEPS)


def _judged_parts(calls):
    """Return the estimators that tools around a fit tune, which are checked with these tools."""
    subjects = [_subject(frame.f_locals) for frame in calls]
    return [getattr(subject, "estimator", None) for subject in subjects if subject is not None]


def _outer_name(frame, calls):
    """Return the name of the outermost tool around a function of scikit-learn's validation."""
    outer = [c for c in calls if known_caller(c.f_globals["__name__"], c.f_code.co_name)]
    tool = (
        known_caller(outer[-1].f_globals["__name__"], outer[-1].f_code.co_name) if outer else None
    )
    return _public_name(outer[-1], tool, calls) if outer else _name_of(frame)


def _raw_steps(estimator, is_calling=False, leave_out="", y=None, with_fitted=True):
    """Return the steps of an estimator that learn from rows without privacy.

    Parameters
    ----------
    estimator : object
        A pipeline or another estimator; other objects have no steps.
    is_calling : bool, default=False
        True if a call of the estimator is being checked.
    leave_out : str, default=""
        Kind of steps that was checked already.
    y : array-like, default=None
        Targets of the outer fit, of which only the shape is used.
    with_fitted : bool, default=True
        True if frozen models are included, which have learned from unknown rows.

    Returns
    -------
    list of (str, bool)
        Text about the problem of a step, and True if its fit would be refused.
    """
    if not is_step(estimator) or not _step_readers or _checks_its_steps(estimator):
        return []
    params = nested_parts(estimator)
    problems = []
    for step in _step_readers[0](estimator, with_fitted=with_fitted):
        # Containers of private estimators are checked below, and planned steps were checked by the
        # plan. Functions of targets run before the private regressor.
        is_of_targets = type(step.estimator).__module__ == TARGETS
        is_judged = step.kind == leave_out
        advice = f" ({step.advice})" if step.advice else ""
        if holds_private(step.estimator) and not is_of_targets:
            is_judged = step.kind != "learns" or _tool_of_class(type(step.estimator)) is not None
            if step.kind == "unknown" and (package := _unknown_package(type(step.estimator))):
                is_judged = is_calling and step.estimator is estimator
                advice = f", a tool of {package} that skdp does not know ({IF_PASSED_ON})"
        if is_judged or any(map(_checks_its_steps, _holders(step.name, params))):
            continue
        if is_step(step.estimator):
            title = "func or inverse_func of " * is_of_targets + _title(step.estimator, step.name)
            repeats_rows = hasattr(step.estimator, "fit_resample")
            problems.append((title + advice, repeats_rows))
        else:
            problems.append((f"the parameter {step.name!r}{advice}", False))
    # The tool whose call is being checked was checked by its entry.
    parts = params if is_calling else {"": estimator, **params}
    for name, part in parts.items():
        holders = (*([estimator] if name else []), *_holders(name, params))
        part_y = None if any(map(_splits_targets, holders)) else y
        if holds_private(part) and not is_private(part):
            for tool in filter(None, map(_tool_of_class, type(part).__mro__)):
                problem, is_refused = tool.problem_of_part(part, part_y)
                if problem:
                    title = _title(part, name)
                    problems.append((f"{title}, which {problem} ({tool.instead})", is_refused))
                break
        problems += _raw_settings(part, part_y)
    return problems


# Modules of tools that give each fit one column, or one label, of their targets.
SPLIT_TARGETS = ("sklearn.multioutput", "sklearn.multiclass")


def _splits_targets(estimator):
    return type(estimator).__module__ in SPLIT_TARGETS


def _unknown_package(kind):
    """Return the package of a class whose `fit` is an unknown tool's; "" for classes of users."""
    owner = next((cls for cls in kind.__mro__ if "fit" in vars(cls)), kind)
    fit = unwrap(vars(owner).get("fit"))
    if passes_on(owner.__module__) or not isinstance(fit, FunctionType):
        return ""
    if not _is_in_package(fit.__code__.co_filename, fit.__globals__):
        return ""
    return owner.__module__.partition(".")[0]


def _candidates_of(frame, calls):
    """Return the settings that a search, or a validation curve, is about to try, as dictionaries.

    Parameters
    ----------
    frame : frame
    calls : list of frames

    Returns
    -------
    candidates : list of dict
        Before scikit-learn's searches have drawn theirs, and in searches of other libraries, each
        value of each parameter alone.
    holder : frame
        The call to which they belong.
    """
    variables = frame.f_locals
    if "param_name" in variables and "param_range" in variables:
        values = listed_values(variables["param_range"])
        return [{variables["param_name"]: value} for value in values], frame
    subject = _subject(variables)
    for inner in calls:
        if inner.f_code.co_name == "evaluate_candidates" and _subject(inner.f_locals) is subject:
            drawn = inner.f_locals.get("candidate_params")
            return (drawn if isinstance(drawn, list) else []), inner
    return _listed_candidates(subject), frame


def _listed_candidates(search):
    """Return each listed value of each parameter that a search tries, alone, as dictionaries."""
    return [
        {name: value} for name, values in _grid_items(search) for value in listed_values(values)
    ]


def _grid_items(search):
    """Yield the parameters that a search tries, with their values or distributions."""
    grids = None
    for name in ("param_grid", "param_distributions", "search_spaces"):
        grids = getattr(search, name, grids)
    for grid in grids if isinstance(grids, list | tuple) else [grids]:
        # skopt has a number of draws beside a grid.
        grid = grid[0] if isinstance(grid, tuple) and grid else grid
        yield from grid.items() if isinstance(grid, dict) else ()


def _drawn_candidates(search, estimator):
    """Yield the parameters whose values a search draws when other fits may have been charged.

    Parameters of private estimators make nothing raw, and neither do numbers.
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


def _raw_candidates(frame, calls, estimator, y):
    """Return the problems of the settings that a search will try, as `_raw_steps` does.

    Private candidates must not be charged before the problems of others are found.
    """
    candidates, holder = _candidates_of(frame, calls)
    state = _state_of(holder)
    if state.raw_candidates is None:
        state.raw_candidates = _problems_of_candidates(candidates, estimator, y)
    return state.raw_candidates


def find_raw_settings(search):
    """Return texts about the listed values that a search tries and that make its estimator raw.

    Estimators among them are left out, because `find_raw_steps` of the pipelines' modules finds
    them.
    """
    return [text for text, _ in _raw_settings(search)]


def _raw_settings(search, y=None):
    # The step reader does not look at candidates for the steps of a plan.
    estimator = getattr(search, "estimator", None)
    settings = [
        setting
        for setting in _listed_candidates(search)
        if _checks_its_steps(estimator) or not any(map(is_estimator, setting.values()))
    ]
    drawn = [
        (
            f"the parameter {name!r} of {type(search).__name__}, whose candidates {distribution} "
            "draws after other fits may have been charged (list the candidates)",
            False,
        )
        for name, distribution in _drawn_candidates(search, estimator)
    ]
    return _problems_of_candidates(settings, estimator, y) + drawn


def _problems_of_candidates(candidates, estimator, y):
    if not hasattr(estimator, "get_params"):
        return []
    params = estimator.get_params()
    known = {text for text, _ in _raw_steps(estimator, y=y)}
    looked_at = set()
    problems = {}
    for candidate in candidates:
        # Other settings of a private estimator make nothing raw. They are most settings.
        relevant = {
            name: value
            for name, value in candidate.items()
            if is_step(value)
            or any(holder in candidate for holder in _outer_names(name))
            or not is_private(params.get(name.rpartition("__")[0], estimator))
        }
        key = tuple((name, id(value)) for name, value in relevant.items())
        if key in looked_at:
            continue
        looked_at.add(key)
        for text, refused in _raw_with(estimator, relevant, y):
            if text not in known:
                known.add(text)
                names = [
                    name
                    for name, value in relevant.items()
                    if text in dict(_raw_with(estimator, {name: value}, y))
                ]
                words = " and ".join(map(repr, names or relevant))
                problems[f"{text} among the candidates for {words}"] = refused
    return list(problems.items())


def _outer_names(name):
    """Return the names of the estimators that hold a nested parameter."""
    names = name.split("__")
    return ["__".join(names[:i]) for i in range(1, len(names))]


def _raw_with(estimator, values, y):
    """Return the problems of an estimator with other parameter values, as `_raw_steps` does."""
    if not values:
        return []
    changed = copy_parts(estimator)
    try:
        changed.set_params(**{name: copy_parts(value) for name, value in values.items()})
    except (TypeError, ValueError, AttributeError):
        # The search refuses names and values that do not fit.
        return []
    problems = _raw_steps(changed, y=y)
    if _checks_its_steps(changed):
        refusal = _refusal_of_plan(changed)
        problems += [(refusal, True)] if refusal else []
    return problems


def _refusal_of_plan(container):
    """Return the reason for which a plan refuses its present steps, or ""."""
    try:
        container.check_steps()
    except ValueError as error:
        return str(error)
    return ""


def _raw_in_members(tool, y):
    """Return the problems inside the models that a tool was given, as `_raw_steps` does.

    Earlier models must not be charged before these are found. Models without a private estimator
    are covered by the entry of their tool, and the parameter `estimator` is checked with the call.
    """
    if tool is None:
        return []
    return [
        (f"{text} of the member {name!r}", refused)
        for name, member in parts_of(tool)
        if name != "estimator" and holds_private(member) and not is_frozen(member)
        for text, refused in _raw_steps(member, y=y)
    ]


def _weight_findings(frame, name):
    """Return a finding if a pipeline passes `sample_weight` to a private step, which refuses it.

    The steps before it would have been charged.
    """
    variables = frame.f_locals
    passed = {**(variables.get("params") or {}), **(variables.get("fit_params") or {})}
    weighted = [
        param.rpartition("__")[0]
        for param, value in passed.items()
        if param.endswith("__sample_weight") and value is not None
    ]
    parts = nested_parts(_subject(variables)) if weighted else {}
    for step in weighted:
        part = parts.get(step)
        # An ensemble of scikit-learn passes weights to all of its members.
        is_ensemble = holds_private(part) and type(part).__module__.startswith("sklearn.ensemble")
        if is_private(part) or is_ensemble:
            problem = f"passes {step}__sample_weight to {_title(part, step)}: {NO_WEIGHTS}"
            return [ToolFinding(frame, name, problem, is_refused=True)]
    return []


def _holders(name, params):
    """Yield the estimators that contain a nested parameter, from its name."""
    for outer in _outer_names(name):
        yield params.get(outer)


def _title(estimator, name):
    class_name = type(estimator).__name__
    return f"{class_name} in {name!r}" if name else class_name


def _tool_of_class(kind):
    """Return the entry of the table about `fit` of a class."""
    return known_caller(kind.__module__, "fit")


def _checks_its_steps(container):
    """Return True for a container of skdp, whose plan checked the steps."""
    return type(container).__module__ == "skdp.pipeline._checked_fits"


def _inside_checked(calls):
    """Return the calls of containers whose steps were checked by a plan, from the inside out."""
    last = -1
    for i, frame in enumerate(calls):
        if frame.f_globals["__name__"] in CONTAINERS and _checks_its_steps(
            _subject(frame.f_locals)
        ):
            last = i
    inside = calls[: last + 1]
    return [frame for frame in inside if frame.f_globals["__name__"] in CONTAINERS]


def _is_called_by_tool(frame, waiting):
    """Return True if a known tool called a function, and not the user's code.

    Parameters
    ----------
    frame : frame
    waiting : tuple of frames
        Calls in other threads that wait for a task, from the inside out.
    """
    outer = frame.f_back
    is_sent_by_sklearn = False
    waiting_calls = list(waiting)
    while outer is not None:
        module = outer.f_globals.get("__name__") or ""
        if known_caller(module, outer.f_code.co_name):
            return True
        is_sent_by_sklearn = is_sent_by_sklearn or module == SENT_BY_SKLEARN
        if module in RUNS_TASKS:
            # Leave out the calls in the threads inside this one.
            while waiting_calls and _is_inside(waiting_calls[0], outer):
                waiting_calls.pop(0)
            if not waiting_calls:
                # In a worker process. The tool was judged when it copied its estimators.
                return is_sent_by_sklearn
            outer = waiting_calls.pop(0)
            continue
        if not passes_on(module):
            return False
        outer = outer.f_back
    return False


def _is_inside(frame, outer):
    """Return True if a frame is a call, or inside it, in one thread."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None


def _unknown_caller(direct, estimator):
    """Return the finding about a tool that is not in the table."""
    package = _module_of(direct).partition(".")[0]
    who = f"{_name_of(direct)} of {package}"
    if _sets_seed(direct, estimator):
        problem = (
            "sets the seed of the noise, which can be read from the fitted model: use a tool "
            "that leaves random_state=None unchanged, such as VotingClassifier"
        )
        return [ToolFinding(direct, who, problem, is_refused=True)]
    problem = (
        "is a tool that skdp does not know: no charge covers what it computes from the rows beside "
        f"the private fits, or rows that it chooses, repeats or weights by others ({IF_PASSED_ON})"
    )
    return [ToolFinding(direct, who, problem, is_refused=False)]


def _sets_seed(direct, estimator):
    """Return True if a tool set the seed of an estimator that the user left without a seed."""
    if getattr(estimator, "random_state", None) is None:
        return False
    if getattr(estimator, "_was_sent_without_seed", False):
        # It had no seed when it was sent to this worker process.
        return True
    variables = direct.f_locals
    # The tool's models, or the arguments of its function.
    code = direct.f_code
    models = []
    for name in code.co_varnames[: code.co_argcount]:
        value = variables.get(name)
        parts = parts_of(value) if name == "self" else parts_in(name, value)
        for _, part in parts:
            models += [part, *nested_parts(part).values()]
    same = [part for part in models if type(part) is type(estimator)]
    return bool(same) and all(getattr(part, "random_state", None) is None for part in same)


def _subject(variables):
    """Return the object whose method is called; workers of a bagging have it as an argument."""
    subject = variables.get("self", variables.get("ensemble"))
    return None if isinstance(subject, type) else subject


def _name_of(frame):
    """Return the class whose method is called, or the function."""
    subject = _subject(frame.f_locals)
    return frame.f_code.co_name if subject is None else type(subject).__name__


# Names of the functions that decorators put around others.
DECORATORS = frozenset("wrapper wrapped inner decorated decorator call _wrapper".split())


def _public_name(frame, tool, calls):
    """Return the name of a tool; for an inner or private function, that of its public call.

    A private function is called by the outermost public call of its entry. An entry about all
    functions of a package also covers inner functions and classes, which have public names.
    """
    name = _name_of(frame)
    if tool is None or (not name.startswith("_") and tool.functions is not None):
        return name
    of_tool = [c for c in calls if known_caller(c.f_globals["__name__"], c.f_code.co_name) is tool]
    names = (n for n in map(_name_of, reversed(of_tool)) if not n.startswith("_"))
    return next((n for n in names if n not in DECORATORS), name)


def _is_error():
    """Return True if the user turned `RawDataWarning` into an error."""
    for action, message, category, module, line in warnings.filters:
        if message is None and module is None and not line and issubclass(RawDataWarning, category):
            return action == "error"
    return False
