"""Who calls a private fit: other tools that compute something from the raw rows beside it.

A private estimator charges what it releases. What a tool around it computes from the same rows
without it is charged nowhere. The calls on the way from the outermost private fit to the user's
code name these tools, in worker processes too.
"""

import sys
import threading
import warnings
from dataclasses import dataclass, field, replace
from types import GeneratorType, ModuleType

import numpy as np

from skdp.exceptions import BudgetExceededError, RawDataWarning
from skdp.utils._known_callers import (
    FITS,
    holds_private,
    is_frozen,
    is_known,
    is_private,
    known_caller,
    passes_on,
)
from skdp.utils._search_prices import price_of_search
from skdp.utils._warnings import warn_user

CONTAINERS = (
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "imblearn.pipeline",
    "feature_engine.pipeline.pipeline",
)
VALIDATION = "sklearn.model_selection._validation"
TARGETS = "sklearn.compose._target"
PARALLEL = "joblib.parallel"
# They pickle tasks in threads of their own.
SENDS_TASKS = frozenset({"joblib.externals.loky.backend.queues", "joblib.pool"})
RAW_STEPS = "has steps that learn from raw rows"
INSTALLED = ("site-packages", "dist-packages")


@dataclass
class _Said:
    """What was said of one call of the outermost tool. It is kept in the frame of that call.

    Attributes
    ----------
    texts : set of str
        The warnings that were given.
    is_complete : bool
        Whether one of them was about the outermost tool itself. It speaks for all that is inside.
    has_price : bool
        Whether the price of a search was compared with what is left.
    """

    texts: set = field(default_factory=set)
    is_complete: bool = False
    has_price: bool = False


# The name of a local variable of the call. It ends with the call, and other calls of the same tool
# have another one. It can be set in every version of Python: PEP 667 has kept it.
SAID = "__skdp_said__"
# Threads of one tool warn of it once together.
_warning = threading.RLock()
# What reads the steps of pipelines that learn from rows without privacy.
_step_readers = []


def register_step_reader(find_raw_steps):
    """Set the function that names the steps of an estimator that learn from rows without privacy.

    Modules of pipelines stand above this one, and register theirs when they are imported.
    """
    _step_readers[:] = [find_raw_steps]


def check_callers(estimator, on_raw_data, occasion="fit"):
    """Refuse, or warn of, what tools around a private estimator compute from the raw rows.

    It is called before the charge, and computes nothing from rows.

    Parameters
    ----------
    estimator : estimator
        The private one.
    on_raw_data : callable
        Returns "warn" or "raise": what the ledger asks for. It is called if something was found.
    occasion : {"fit", "clone", "answer"}
        What is about to happen. Tools clone or pickle an estimator in the calling process before
        they send it to workers, where the tool itself cannot be seen any more. A fitted estimator
        that answers inside the `fit` of a tool trains that tool.

    Raises
    ------
    ValueError
        If the tool repeats rows, or sets the seeds of the noise, or `on_raw_data` is "raise".

    Warns
    -----
    RawDataWarning
        Once for each call of the outermost tool.
    """
    if getattr(estimator, "_refusal", None) is not None:
        # It was found when it was sent to this worker.
        raise estimator._refusal
    stack = _calls_around(sys._getframe(2))
    if stack.calls or (stack.direct is not None and _is_installed(stack.direct)):
        _judge(estimator, stack, on_raw_data, occasion)


def is_judged_before_copies():
    """Say whether a known tool that is called now is to be judged before it copies an estimator.

    Tools ask whether the estimator is a classifier just before they read the folds that they were
    given. Which splitter makes the folds of a generator can be seen only before they are read. And
    joblib loses what the first copy raises where all tasks are dispatched at once, as in
    `learning_curve`.
    """
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if frame.f_code is check_callers.__code__:
            # What judges the tool reads tags as well.
            return False
        if is_known(module):
            variables = frame.f_locals
            if module == VALIDATION and variables.get("pre_dispatch") == "all":
                return True
            folds = variables.get("cv", getattr(_subject(variables), "cv", None))
            if isinstance(folds, GeneratorType) and folds.gi_frame is not None:
                return True
        frame = frame.f_back
    return False


def is_sent_to_workers():
    """Say whether the pickle that is being made is a task for worker processes of joblib.

    Its threads pickle what they send, and nothing else. All other pickles are of no concern.
    """
    if threading.current_thread() is threading.main_thread():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in SENDS_TASKS:
            return True
        frame = frame.f_back
    return False


def _calls_around(frame):
    """Return the `_Stack` of a frame, with the calls in other threads that wait for it."""
    stack = _read_stack(frame)
    calls = stack.calls
    direct = stack.direct
    is_outermost = stack.is_outermost
    threads = {threading.get_ident()}
    # What is outside a worker's thread, or one that sends tasks to processes, waits elsewhere.
    while stack.is_parallel and (frame := _find_waiting(stack, threads)) is not None:
        stack = _read_stack(frame)
        calls = calls + stack.calls
        if direct is None:
            direct = stack.direct
            is_outermost = stack.is_outermost
        else:
            is_outermost = is_outermost and not stack.calls
    return replace(stack, calls=calls, direct=direct, is_outermost=is_outermost)


@dataclass(frozen=True)
class _Stack:
    """The calls from a frame outwards, in one thread.

    Attributes
    ----------
    calls : list of frames
        Those of known tools and containers, from the inside out.
    direct : frame or None
        Of other code that does not only pass on rows the innermost call; of an installed package
        the outermost one, which is what the user called.
    is_outermost : bool
        Whether `direct` is outside of all calls.
    batches : list of frames
        Those in which joblib works on tasks of a call, or sends them, from the inside out.
    is_parallel : bool
        Whether joblib works on a task of another thread, so that calls may be missing.
    """

    calls: list
    direct: object
    is_outermost: bool
    batches: list
    is_parallel: bool


def _read_stack(frame):
    """Return the `_Stack` of a frame."""
    calls = []
    direct = None
    is_outermost = False
    batches = []
    package = None
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if is_known(module) or module in CONTAINERS or module == TARGETS:
            calls.append(frame)
            is_outermost = False
        elif module == PARALLEL or module in SENDS_TASKS:
            batches.append(frame)
        elif direct is None and not passes_on(module) and not _is_fit_of_the_users(frame):
            direct = frame
            is_outermost = True
            package = module.partition(".")[0] if _is_installed(frame) else None
        elif package is not None and module.partition(".")[0] == package:
            direct = frame
            is_outermost = True
        frame = frame.f_back
    is_worker = threading.current_thread() is not threading.main_thread()
    return _Stack(calls, direct, is_outermost, batches, is_worker and bool(batches))


def _is_fit_of_the_users(frame):
    """Say whether a call is `fit` of an estimator of the user's own, which a tool may have called.

    A class derived from a private one, or around one, gives on the rows that it gets.
    """
    code = frame.f_code
    # Other frames' variables are not asked for: that would keep rows alive which they delete.
    if code.co_name not in FITS or code.co_varnames[:1] != ("self",) or _is_installed(frame):
        return False
    return hasattr(frame.f_locals.get("self"), "get_params")


def _find_waiting(stack, known):
    """Return the call of joblib, in another thread, that waits for the task of a stack.

    Parameters
    ----------
    stack : _Stack
    known : set of int
        Threads that were looked at. The one that is found is added.

    Returns
    -------
    frame or None
        None if there is none, as in a worker process.
    """
    tasks = [_pickles_of(frame) for frame in stack.batches]
    for thread, innermost in sys._current_frames().items():
        frame = innermost if thread not in known else None
        while frame is not None:
            if frame.f_globals.get("__name__") == PARALLEL:
                pickles = _pickles_of(frame)
                if pickles is not None and any(own is pickles for own in tasks):
                    known.add(thread)
                    return frame
            frame = frame.f_back
    return None


def _pickles_of(frame):
    """Return what a call of joblib has in common with its tasks, and no other call, or None.

    It is a dictionary in which they keep what they pickle.
    """
    variables = frame.f_locals
    owner = variables.get("self")
    if frame.f_globals.get("__name__") in SENDS_TASKS:
        # An item of loky has a function; one of a pool is a tuple with a function, in a wrapper.
        owner = variables.get("obj")
        owner = owner[2] if isinstance(owner, tuple) and len(owner) > 2 else owner
        for name in ("fn", "func"):
            owner = getattr(owner, name, owner)
    return getattr(owner, "_pickle_cache", None)


def check_scored(estimator, scorer, on_raw_data):
    """Refuse, or warn of, a model or a tool for which a private score is charged too little.

    It is called before the charge, and computes nothing from rows. How far a row moves a score is
    known for one row of the scored table and a model that is public.

    Parameters
    ----------
    estimator : object
        What is scored.
    scorer : object
        The private one.
    on_raw_data : callable
        Returns "warn" or "raise": what the ledger asks for. It is called if something was found.

    Raises
    ------
    ValueError
        If `on_raw_data` is "raise".

    Warns
    -----
    RawDataWarning
        Once for each call of the outermost tool.
    """
    name = type(scorer).__name__
    found = []
    raw = [step for step in _step_readers[0](estimator) if not _was_judged_at_its_fit(step)]
    if raw:
        steps = "; ".join(
            _title(step.estimator, step.name) + f" ({step.advice})" * bool(step.advice)
            for step in raw
        )
        found.append(
            f"{name} scores a model that learns from raw rows, one of which may change all that it "
            f"predicts: {steps}. The charge covers the score of a released model: score a private "
            "one, or FrozenEstimator(model) of a model of public rows"
        )
    calls = _calls_around(sys._getframe(2)).calls
    for call in calls:
        function = call.f_code.co_name
        row = known_caller(call.f_globals["__name__"], function)
        if row is not None and row.wrong_scores:
            found.append(f"{row.name or function} around {name} {row.wrong_scores}")
    if not found:
        return
    text = "; ".join(dict.fromkeys(found))
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was computed or charged: this ledger was opened with "
            "on_raw_data='raise'"
        )
    if calls:
        with _warning:
            _warn_once(text, calls[-1], [])
    else:
        warn_user(text, RawDataWarning, is_between=passes_on)


def _was_judged_at_its_fit(step):
    """Say whether a step is private, or around a private one whose fit has looked at it.

    A class of the user's own gives on the rows that it gets. Of an installed tool that is unknown
    the fit has warned.
    """
    is_around_private = step.kind == "unknown" and holds_private(step.estimator)
    return is_private(step.estimator) or is_around_private


class RefusedScore:
    """What a private scorer returns where scikit-learn would turn its error into a score of NaN.

    A search would go on after that, and fit the raw model at the end. A score that is no number it
    refuses, with a `ValueError` that quotes this object.

    Parameters
    ----------
    reason : Exception
    """

    def __init__(self, reason):
        self.reason = reason

    def __repr__(self):
        return f"a refusal: {self.reason}"


def hides_errors_of_scores():
    """Return True if a function of scikit-learn that calls a scorer goes on after its errors."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == VALIDATION and frame.f_code.co_name == "_score":
            return frame.f_locals.get("error_score", "raise") != "raise"
        frame = frame.f_back
    return False


def _is_installed(frame):
    """Say whether a call is one of an installed package's that was not written for skdp."""
    path = frame.f_code.co_filename
    if not any(folder in path for folder in INSTALLED):
        return False
    return not any(map(_is_of_skdp, list(frame.f_globals.values())))


def _is_of_skdp(value):
    """Say whether a value is skdp, one of its modules, or a class or function of one of these."""
    # A module has no `__module__`.
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == "skdp"


def _judge(estimator, stack, on_raw_data, occasion):
    """Raise or warn for what is wrong with any of the calls around an estimator."""
    name = type(estimator).__name__
    calls = stack.calls
    direct = stack.direct
    findings = []
    others = []
    checked = _inside_checked(calls)
    # From the user's code inwards.
    for call in reversed(calls):
        module = call.f_globals["__name__"]
        function = call.f_code.co_name
        row = known_caller(module, function)
        if occasion != "fit" and function not in FITS and (row is None or row.functions is None):
            others.append((call, row))
            continue
        if module == VALIDATION and _is_called_by_tool(call):
            # That tool's row says what it makes of the scores or the answers. Folds that it was
            # given as an iterator are a list here alone.
            refusal = row.refusal(call.f_locals) if row is not None and row.refusal else ""
            if refusal:
                who = _public_name(call, row, calls)
                findings.append((call, who, f"{refusal}: {row.instead}", True))
            continue
        title = _public_name(call, row, calls)
        # What was found of a pipeline speaks for the pipelines inside it.
        skips_steps = call in checked or any(
            what.startswith(RAW_STEPS) for _, _, what, _ in findings
        )
        findings += _findings_of(call, row, title, occasion, skips_steps)
    is_unknown = direct is not None and _is_installed(direct)
    # By itself a copy says nothing of what a tool will do.
    if findings and occasion == "clone":
        around = [_findings_of(c, r, _public_name(c, r, calls), occasion, True) for c, r in others]
        findings = [finding for found in around for finding in found] + findings
    if is_unknown and (occasion == "fit" or findings):
        findings += _unknown_caller(direct, estimator)
    price = _price_of_searches(calls, occasion)
    if not findings:
        return
    # A tool's own parts do what it does.
    said = {}
    for _, who, what, _ in findings:
        said.setdefault(what, f"{who} around {name} {what}")
    text = "; ".join(said.values())
    if any(refused for *_, refused in findings):
        raise ValueError(f"{text}. Nothing was computed or charged")
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was computed or charged: this ledger was opened with "
            "on_raw_data='raise'"
        )
    found_in = [call for call, *_ in findings]
    outermost = direct if is_unknown and stack.is_outermost or not calls else calls[-1]
    with _warning:
        _warn_once(text, outermost, found_in, more=price and f"; {price}")


def _price_of_searches(calls, occasion):
    """Refuse a search whose fits the budget cannot pay, before the first one.

    Returns
    -------
    str
        What its fits will charge, in words; "" if no search begins, or that is not known.
    """
    for call in reversed(calls) if occasion == "clone" else ():
        search = _subject(call.f_locals)
        said = _said_of(call)
        if call.f_code.co_name != "fit" or said.has_price:
            continue
        # Searches clone what they fit: the first time there was no charge.
        said.has_price = True
        price = price_of_search(search, call.f_locals.get("X"))
        if price is None:
            continue
        name = type(search).__name__
        accountant = price.accountant
        left = accountant.epsilon_remaining
        if price.epsilon > left * (1 + 1e-9):
            total = accountant.epsilon, accountant.delta
            raise BudgetExceededError(
                (price.epsilon, price.delta),
                (left, max(total[1] - accountant.delta_spent, 0.0)),
                total,
                message=f"{name}: {price}, and the budget has {left:.6g} left: give each fit a "
                "smaller epsilon, try fewer candidates, or use DPGridSearchCV, which makes one "
                "charge. Nothing was computed or charged",
            )
        words = f"{price}, of {left:.6g} left"
        if getattr(search, "verbose", 0):
            print(f"{name}: {words}")
        return words
    return ""


def _warn_once(text, outermost, found_in, more=""):
    """Warn, once for each call of the outermost tool; always if the user made it an error.

    Parameters
    ----------
    text : str
        What is wrong.
    outermost : frame
        The call of the tool that the user's code called.
    found_in : list of frames
        The calls in which something is wrong.
    more : str, default=""
        What the warning says beside, and what makes no new one.
    """
    said = _said_of(outermost)
    if (said.is_complete or text in said.texts) and not _is_error():
        return
    warn_user(text + more, RawDataWarning, is_between=passes_on)
    # Not before: a warning that is an error stops the next call as well.
    said.texts.add(text)
    said.is_complete = said.is_complete or outermost in found_in


def _said_of(call):
    """Return what was said of a call of a tool."""
    said = call.f_locals.get(SAID)
    if said is None:
        said = _Said()
        # A function that reads `locals()` would see it: of such a one each fit is warned of.
        if "locals" not in call.f_code.co_names:
            call.f_locals[SAID] = said
    return said


def _findings_of(call, row, name, occasion, skips_steps):
    """Return (call, who, what is wrong, whether it is refused) for what a call does.

    Parameters
    ----------
    call : frame
    row : KnownCaller or None
        What is known of it.
    name : str
        Of the tool, as users know it.
    occasion : str
    skips_steps : bool
        Whether its steps were checked by a plan, or are known already.
    """
    module = call.f_globals["__name__"]
    function = call.f_code.co_name
    variables = call.f_locals
    subject = _subject(variables)
    # A function such as `cross_val_score` fits what it is given, as the `fit` of a search does.
    is_validation = module == VALIDATION and row is not None
    found = []
    if row is not None:
        problem, is_refused = row.problem_of(variables)
        if problem:
            who = row.name or name
            found.append((call, who, f"{problem}: {row.instead}", is_refused))
    fits = is_validation or (subject is not None and function in FITS)
    if occasion == "answer" or skips_steps or not fits:
        return found
    if module in CONTAINERS:
        # Samplers are in the row of their pipeline.
        steps = _raw_steps(subject, is_calling=True, leave_out="resamples" if found else "")
    elif module == TARGETS:
        steps = _raw_steps(subject, is_calling=True)
        if getattr(subject, "regressor", None) is None:
            steps.append(("LinearRegression, its regressor by default (use DPRidge)", False))
    elif found or occasion == "clone":
        # The pipeline inside a tool is looked at with it: it is fitted later, and often. Worker
        # processes cannot tell the user of its steps.
        inner = variables.get("estimator") if is_validation else getattr(subject, "estimator", None)
        steps = _raw_steps(inner)
        steps += _raw_candidates(_grids_of(call)) + _raw_in_members(subject)
    else:
        steps = []
    if steps:
        words = "; ".join(text for text, _ in steps)
        found.append((call, name, f"{RAW_STEPS}: {words}", any(refused for _, refused in steps)))
    return found


def _raw_steps(estimator, is_calling=False, leave_out=""):
    """Return which steps learn from rows without privacy.

    Parameters
    ----------
    estimator : object
        A pipeline or another estimator; of anything else there are no steps.
    is_calling : bool, default=False
        Whether a call of it is being judged.
    leave_out : str, default=""
        A kind of steps that was judged already.

    Returns
    -------
    list of (str, bool)
        What is wrong with each, in words, and whether its fit would be refused.
    """
    if not hasattr(estimator, "get_params") or not _step_readers or _checks_its_steps(estimator):
        return []
    params = estimator.get_params()
    found = []
    for step in _step_readers[0](estimator, with_fitted=True):
        # Tools with private estimators inside follow. What was planned was checked.
        # What functions do with the targets comes before the private regressor gets them.
        is_of_targets = type(step.estimator).__module__ == TARGETS
        is_judged = step.kind == leave_out
        if holds_private(step.estimator) and not is_of_targets:
            is_judged = step.kind != "learns" or _row_of_class(type(step.estimator)) is not None
        if is_judged or any(map(_checks_its_steps, _holders(step.name, params))):
            continue
        advice = f" ({step.advice})" if step.advice else ""
        if hasattr(step.estimator, "fit"):
            title = "func or inverse_func of " * is_of_targets + _title(step.estimator, step.name)
            repeats_rows = hasattr(step.estimator, "fit_resample")
            found.append((title + advice, repeats_rows))
        else:
            found.append((f"the parameter {step.name!r}{advice}", False))
    # The tool that calls, if it is this one, was judged by its call.
    parts = params if is_calling else {"": estimator, **params}
    for name, part in parts.items():
        if holds_private(part) and not is_private(part):
            for row in filter(None, map(_row_of_class, type(part).__mro__)):
                problem, is_refused = row.problem_of({"self": part})
                if problem:
                    title = _title(part, name)
                    found.append((f"{title}, which {problem} ({row.instead})", is_refused))
                break
    return found


def _grids_of(call):
    """Return the candidates of a search, or of a validation curve, as a list of grids."""
    variables = call.f_locals
    if "param_name" in variables and "param_range" in variables:
        return [{variables["param_name"]: variables["param_range"]}]
    subject = _subject(variables)
    grids = getattr(subject, "param_grid", getattr(subject, "param_distributions", None))
    return grids if isinstance(grids, list | tuple) else [grids]


def _raw_candidates(grids):
    """Return what is wrong with estimators that a search tries, as `_raw_steps` does.

    Some of them may be private: these must not be charged before the others are found.
    """
    found = []
    for grid in grids:
        for name, values in grid.items() if isinstance(grid, dict) else ():
            for value in values if isinstance(values, list | tuple | np.ndarray) else ():
                found += [
                    (f"{text} among the candidates for {name!r}", refused)
                    for estimator in _estimators_of_candidate(value)
                    for text, refused in _raw_steps(estimator)
                ]
    return found


def _estimators_of_candidate(value):
    """Return the estimators that a candidate is, or lists with names, as "steps" does."""
    if not isinstance(value, list | tuple):
        return [value]
    return [part[1] for part in value if isinstance(part, tuple) and len(part) > 1]


def _raw_in_members(ensemble):
    """Return what is wrong inside the members of an ensemble, as `_raw_steps` does.

    The members before them must not be charged first. Members without anything private are in the
    row of their ensemble.
    """
    members = getattr(ensemble, "estimators", None)
    pairs = [pair for pair in members or () if isinstance(pair, tuple) and len(pair) == 2]
    pairs.append(("final_estimator", getattr(ensemble, "final_estimator", None)))
    return [
        (f"{text} of the member {name!r}", refused)
        for name, member in pairs
        if holds_private(member) and not is_frozen(member)
        for text, refused in _raw_steps(member)
    ]


def _holders(name, params):
    """Yield the parameters in which a parameter stands, from its name."""
    names = name.split("__")
    for i in range(1, len(names)):
        yield params.get("__".join(names[:i]))


def _title(estimator, name):
    return type(estimator).__name__ + f" in {name!r}" * bool(name)


def _row_of_class(kind):
    """Return the row of the table that is about `fit` of a class."""
    return known_caller(kind.__module__, "fit")


def _checks_its_steps(container):
    """Say whether a container is one of skdp's, whose steps were checked when it was planned."""
    return type(container).__module__ == "skdp.pipeline._checked_fits"


def _inside_checked(calls):
    """Return the calls of containers, from the inside on, whose steps were checked by a plan."""
    last = -1
    for i, call in enumerate(calls):
        if call.f_globals["__name__"] in CONTAINERS and _checks_its_steps(_subject(call.f_locals)):
            last = i
    inside = calls[: last + 1]
    return [call for call in inside if call.f_globals["__name__"] in CONTAINERS]


def _is_called_by_tool(call):
    """Say whether a known tool has called a function, and not the user's code."""
    outer = call.f_back
    while outer is not None:
        module = outer.f_globals.get("__name__") or ""
        if known_caller(module, outer.f_code.co_name):
            return True
        if not passes_on(module):
            return False
        outer = outer.f_back
    return False


def _unknown_caller(direct, estimator):
    """Return the finding about a tool that is in no table."""
    package = direct.f_globals["__name__"].partition(".")[0]
    who = f"{_name_of(direct)} of {package}"
    if _sets_seed(_subject(direct.f_locals), estimator):
        what = (
            "sets the seed of the noise, which whoever has the fitted model can read: use a tool "
            "that leaves random_state=None as it is, such as VotingClassifier"
        )
        return [(direct, who, what, True)]
    what = (
        "is a tool that skdp does not know. Nothing charges for what it computes from the rows "
        "beside the private fits, nor for rows that it chooses, repeats or weights by other rows. "
        "If it gives each row to each fit once, as it is, ignore this warning"
    )
    return [(direct, who, what, False)]


def _sets_seed(subject, estimator):
    """Say whether an estimator has a seed that the one which its owner was given has not."""
    if getattr(estimator, "random_state", None) is None or not hasattr(subject, "get_params"):
        return False
    same = [part for part in subject.get_params().values() if type(part) is type(estimator)]
    return bool(same) and all(getattr(part, "random_state", None) is None for part in same)


def _subject(variables):
    """Return the object whose method is called; of a bagging's workers it is their argument."""
    subject = variables.get("self", variables.get("ensemble"))
    return None if isinstance(subject, type) else subject


def _name_of(call):
    """Return the class whose method is called, or the function."""
    subject = _subject(call.f_locals)
    return call.f_code.co_name if subject is None else type(subject).__name__


def _public_name(call, row, calls):
    """Return the name of a tool; of the outermost of its calls where an inner one is private."""
    name = _name_of(call)
    if not name.startswith("_") or row is None:
        return name
    of_tool = [c for c in calls if known_caller(c.f_globals["__name__"], c.f_code.co_name) is row]
    return next((n for n in map(_name_of, reversed(of_tool)) if not n.startswith("_")), name)


def _is_error():
    """Say whether the user has made `RawDataWarning` an error."""
    for action, message, category, module, line in warnings.filters:
        if message is None and module is None and not line and issubclass(RawDataWarning, category):
            return action == "error"
    return False
