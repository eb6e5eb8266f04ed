"""Step 1 of the check of callers: read the call stack as a list of tool calls.

The stack leads outward from a private operation to the user's code, including through the threads
that wait for a task. Three kinds of calls matter: calls of known tools and containers, the
outermost call of an unknown installed package, and methods of user-defined classes that fit.
"""

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from types import CodeType, FrameType, ModuleType

from skdp._fitting._waiting_threads import TASK_MODULES, find_waiting
from skdp._tools._classes import INSTALLED
from skdp._tools._entries import FITS, KnownCaller
from skdp._tools._registry import STUDY, is_known, known_caller, passes_on

CONTAINERS = (
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "imblearn.pipeline",
    "feature_engine.pipeline.pipeline",
)
VALIDATION = "sklearn.model_selection._validation"
FROZEN = "sklearn.frozen._frozen"
TARGETS = "sklearn.compose._target"
# Module of the containers of skdp, whose plan checks the steps.
CHECKED = "skdp.pipeline._checked_fits"
# Modules that run a worker's tasks; no call of the task's tool is outside of these calls.
RUNS_TASKS = frozenset(
    {"concurrent.futures.thread", "multiprocessing.pool", "joblib.externals.loky.process_executor"}
)
# Module of the functions that scikit-learn's tools send to joblib.
SENT_BY_SKLEARN = "sklearn.utils.parallel"
# Names of the wrapper functions that decorators add.
DECORATORS = frozenset("wrapper wrapped inner decorated decorator call _wrapper".split())


@dataclass(frozen=True, eq=False)
class ToolCall:
    """A call on the stack.

    Parameters
    ----------
    frame : frame
        The running call. Its local variables are read only when a rule needs them, since reading
        keeps alive rows that the call deletes.
    module, function : str
        The function that is called.
    tool : KnownCaller or None
        Entry of the registry about this function; None for containers and unknown code.
    """

    frame: FrameType
    module: str
    function: str
    tool: KnownCaller | None

    @classmethod
    def of(cls, frame):
        """Return the call of a frame."""
        module = frame.f_globals.get("__name__") or ""
        function = frame.f_code.co_name
        return cls(frame, module, function, known_caller(module, function))

    @property
    def variables(self):
        """Local variables of the call."""
        return self.frame.f_locals

    @property
    def subject(self):
        """The object whose method is called, or None."""
        return subject_of(self.variables)

    @property
    def name(self):
        """Name of the class whose method is called, or of the function."""
        if self.subject is None:
            return self.function
        return type(self.subject).__name__

    @property
    def is_container(self):
        """True for a call of a pipeline, a column transformer or a union."""
        return self.module in CONTAINERS

    @property
    def is_validation(self):
        """True for a call of scikit-learn's functions that fit an estimator to folds."""
        return self.module == VALIDATION

    @property
    def is_study(self):
        """True for a tool that compares the results of a user-defined function."""
        return self.tool is STUDY


@dataclass(frozen=True, eq=False)
class CallStack:
    """The calls around an operation, from the inside out.

    Parameters
    ----------
    calls : list of ToolCall
        Calls of known tools and containers.
    direct : frame or None
        Innermost call of other code that does more than pass rows on. In an installed package, it
        is the package's outermost call, which the user's code made.
    is_outermost : bool
        True if `direct` is outside of all `calls`.
    of_user : tuple of (ToolCall, int)
        Methods of user-defined classes that fit, and the number of `calls` inside each.
    batches : list of frames
        Calls in which joblib or Python runs or sends tasks.
    is_parallel : bool
        True if a task of another thread is running, so outer calls are missing.
    waiting : tuple of frames, default=()
        Calls in other threads, each waiting for the task to which the calls before it belong.
    """

    calls: list
    direct: FrameType | None
    is_outermost: bool
    of_user: tuple
    batches: list
    is_parallel: bool
    waiting: tuple = ()

    @cached_property
    def unknown_tool(self):
        """Call of an installed package that is not in the registry, or None."""
        if self.direct is not None and is_installed(self.direct):
            return ToolCall.of(self.direct)
        return None

    @property
    def is_bare(self):
        """True if the operation is inside neither a tool nor the fit of a user-defined class."""
        return not (self.calls or self.of_user) and self.unknown_tool is None

    @property
    def outermost(self):
        """Call of the tool that the user's code called."""
        if self.unknown_tool is not None and (self.is_outermost or not self.calls):
            return self.unknown_tool
        return self.calls[-1]

    @property
    def planned_calls(self):
        """Calls of containers whose steps were checked by a plan, from the inside out."""
        last = -1
        for i, call in enumerate(self.calls):
            if call.is_container and checks_its_steps(call.subject):
                last = i
        return [call for call in self.calls[: last + 1] if call.is_container]

    @property
    def is_in_study(self):
        """True if the operation is in a study, with no other tool that learns in between."""
        tools = [call for call in self.calls if call.tool is not None]
        is_around = any(call.is_study for call in tools)
        return is_around and all(call.is_study for call in tools)

    def is_called_by_tool(self, call):
        """Return True if a call was made by a known tool, not by the user's code."""
        outer = call.frame.f_back
        is_sent_by_sklearn = False
        waiting_calls = list(self.waiting)
        while outer is not None:
            module = outer.f_globals.get("__name__") or ""
            if known_caller(module, outer.f_code.co_name):
                return True
            is_sent_by_sklearn = is_sent_by_sklearn or module == SENT_BY_SKLEARN
            if module in RUNS_TASKS:
                # Calls in the threads inside this one are left out.
                while waiting_calls and _is_inside(waiting_calls[0], outer):
                    waiting_calls.pop(0)
                if not waiting_calls:
                    # This is a worker process. The tool was judged when it copied its estimators.
                    return is_sent_by_sklearn
                outer = waiting_calls.pop(0)
                continue
            if not passes_on(module):
                return False
            outer = outer.f_back
        return False

    def public_name(self, call):
        """Return the name by which users know the tool that is called.

        For an inner or private function, it is the name of the outermost public call with the same
        registry entry. An entry for all functions of a package also covers inner functions and
        classes, which have public names.
        """
        name = call.name
        tool = call.tool
        if tool is None or (not name.startswith("_") and tool.functions is not None):
            return name
        outer_names = [outer.name for outer in reversed(self.calls) if outer.tool is tool]
        public_names = (name for name in outer_names if not name.startswith("_"))
        return next((name for name in public_names if name not in DECORATORS), name)

    def outer_name(self, call):
        """Return the name of the outermost tool around a function of scikit-learn's validation."""
        outer = [other for other in self.calls if other.tool is not None]
        if not outer:
            return call.name
        return self.public_name(outer[-1])


def is_outside_of_tools(frame):
    """Return True if a call is surely outside of tools and of methods that fit estimators.

    Most fits are called from a script or a notebook, and the check of callers finds nothing there.
    One pass over the names of the calls shows this, without reading their variables. If in doubt,
    the result is False, and the calls must be examined; see `read_stack` and
    `check_members_around`.
    """
    has_caller = False
    while frame is not None:
        code = frame.f_code
        module = module_of(frame)
        if is_known(module) or module in CONTAINERS or module == TARGETS or module in TASK_MODULES:
            return False
        if passes_on(module):
            # A fit of scikit-learn, such as `fit_transform`, may have members.
            may_be_tool = code.co_name in FITS and not module.startswith("skdp.")
        elif code.co_varnames[:1] == ("self",):
            may_be_tool = code.co_name in FITS or _calls_fit(code)
        else:
            may_be_tool = False
        if not has_caller and not passes_on(module):
            # If the caller of skdp is in an installed package, this package is an unknown tool.
            has_caller = True
            may_be_tool = may_be_tool or is_in_folder_of_packages(code.co_filename)
        if may_be_tool:
            return False
        frame = frame.f_back
    return True


def read_stack(frame):
    """Return the `CallStack` of a frame, with the calls in other threads that wait for it."""
    stack = _read_thread(frame)
    if not stack.is_parallel:
        return stack
    calls = stack.calls
    of_user = stack.of_user
    direct = stack.direct
    is_outermost = stack.is_outermost
    threads = {threading.get_ident()}
    waiting = []
    # The outer calls of a worker thread, or of a thread that sends tasks, are on a waiting thread.
    while stack.is_parallel and (frame := find_waiting(stack.batches, threads)) is not None:
        waiting.append(frame)
        stack = _read_thread(frame)
        of_user = of_user + tuple((call, len(calls) + n_inner) for call, n_inner in stack.of_user)
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


def _read_thread(frame):
    """Return the `CallStack` of a frame in its own thread."""
    calls = []
    direct = None
    is_outermost = False
    batches = []
    of_user = []
    package = None
    while frame is not None:
        module = module_of(frame)
        passes_rows_on = passes_on(module)
        is_of_user = not passes_rows_on and _is_method_that_fits(frame)
        is_fit_of_user = is_of_user and frame.f_code.co_name in FITS
        if is_of_user:
            of_user.append((ToolCall.of(frame), len(calls)))
        if is_known(module) or module in CONTAINERS or module == TARGETS:
            calls.append(ToolCall.of(frame))
            is_outermost = False
        elif module in TASK_MODULES:
            batches.append(frame)
        elif direct is None and not passes_rows_on and not is_fit_of_user:
            direct = frame
            is_outermost = True
            package = module.partition(".")[0] if is_installed(frame) else None
        elif package is not None and not passes_rows_on and module.partition(".")[0] == package:
            direct = frame
            is_outermost = True
        elif (
            package is None
            and direct is not None
            and not passes_rows_on
            and _is_installed_fit(frame)
        ):
            # A user-defined function fits the private estimator while a tool calls it.
            direct = frame
            is_outermost = True
            package = module.partition(".")[0]
        frame = frame.f_back
    is_worker = threading.current_thread() is not threading.main_thread()
    return CallStack(
        calls=calls,
        direct=direct,
        is_outermost=is_outermost,
        of_user=tuple(of_user),
        batches=batches,
        is_parallel=is_worker and bool(batches),
    )


def module_of(frame):
    """Return the name of a call's module, even if Python runs the module as a program."""
    module = frame.f_globals.get("__name__") or ""
    if module == "__main__":
        module = getattr(frame.f_globals.get("__spec__"), "name", module)
    return module


def subject_of(variables):
    """Return the object whose method is called; bagging workers receive it as an argument."""
    subject = variables.get("self", variables.get("ensemble"))
    if isinstance(subject, type):
        return None
    return subject


def checks_its_steps(container):
    """Return True for a container of skdp, whose plan checked the steps."""
    return type(container).__module__ == CHECKED


def _is_in_same_package(frame, outer):
    """Return True if two calls are in one installed package, whose outer call the user made."""
    if outer is None or not (is_installed(frame) and is_installed(outer)):
        return False
    return module_of(frame).partition(".")[0] == module_of(outer).partition(".")[0]


def _is_installed_fit(frame):
    """Return True for a fit of an estimator class of an installed package."""
    code = frame.f_code
    if code.co_name not in FITS or code.co_varnames[:1] != ("self",):
        return False
    return is_installed(frame) and hasattr(frame.f_locals.get("self"), "get_params")


def _is_method_that_fits(frame):
    """Return True for a method of a user-defined class that fits estimators.

    This is `fit`, or a method of any other name, such as `train`, that calls the `fit` of something
    itself. The class need not have `get_params`. A tool may have called its `fit`. A class that is
    derived from a private estimator, or wraps one, just passes its rows on.
    """
    code = frame.f_code
    # Variables of other frames are not read, because that would keep alive rows that these frames
    # delete.
    if code.co_varnames[:1] != ("self",) or is_installed(frame):
        return False
    if code.co_name not in FITS and not _calls_fit(code):
        return False
    return frame.f_locals.get("self") is not None


def _calls_fit(code):
    """Return True if the code of a function, or of a function inside it, names a fit."""
    if not FITS.isdisjoint(code.co_names):
        return True
    return any(isinstance(item, CodeType) and _calls_fit(item) for item in code.co_consts)


def _is_inside(frame, outer):
    """Return True if a frame is a call, or inside it in the same thread."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None


def is_installed(frame):
    """Return True for a call of an installed package that does not use skdp itself."""
    return is_in_package(frame.f_code.co_filename, frame.f_globals)


def is_in_folder_of_packages(path):
    """Return True for a file in a folder of installed packages, which may use skdp themselves."""
    return any(folder in path for folder in INSTALLED)


def is_in_package(path, names):
    """Return True for a file of an installed package whose global names are not skdp's."""
    if not is_in_folder_of_packages(path):
        return False
    return not any(map(_is_of_skdp, list(names.values())))


def _is_of_skdp(value):
    """Return True for skdp, its modules, and their classes and functions."""
    if isinstance(value, ModuleType):
        # A module has no `__module__`.
        name = value.__name__
    else:
        name = getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == "skdp"
