"""Step 2 of the check of callers: judge the tool calls around an operation by rules.

`judge` is a function of the calls and of the private estimator alone. It reads parameters, shapes
and listed folds, computes nothing from rows, and reports nothing. Two of its results are kept with
the calls (`_call_states.py`), so that each call is examined once.

Each finding comes from one rule:

====================  ==============================================================================
known_tool            The registry knows a problem of the tool with its parameters.
repeated_fold         The fit of a fold is about to get a row twice.
folds_of_validation   A tool gives scikit-learn's validation folds that its entry could not read.
mixed_rows            A tool makes the rows of a release from the cells of several persons.
read_folds            A tool has read its folds from a generator, so nothing is known about them.
raw_steps             Steps or members inside the tool learn from raw rows.
late_weights          A pipeline passes weights to a private step, which refuses them.
unknown_tool          An installed package fits the estimator, and the registry does not know it.
set_seed              Such a package sets the seed of the noise.
====================  ==============================================================================
"""

from dataclasses import dataclass

from skdp._fitting._call_stack import TARGETS, ToolCall, module_of
from skdp._fitting._call_states import is_judged, state_of
from skdp._fitting._raw_parts import (
    IF_PASSED_ON,
    problems_of_callbacks,
    problems_of_errors,
    problems_of_table,
    raw_candidates,
    raw_in_members,
    raw_steps,
    splits_targets,
    text_of_problems,
    title,
)
from skdp._tools._entries import FITS
from skdp._tools._parts import holds_private, is_private, nested_parts, parts_in, parts_of
from skdp._tools._scores_and_folds import UNKNOWN_FOLDS, generators_in, repeats_rows
from skdp.utils._values import FrozenValue

NO_WEIGHTS = (
    "sample_weight is not supported: the noise would have to hide the largest weight. Weight "
    "classes with class_weight={label: weight}, which is public, or leave sample_weight out"
)
REPEATED_FOLDS = (
    "fits to folds that list rows more than once, so a person's row counts repeatedly: use "
    "cv=KFold(5, shuffle=True, random_state=0)"
)
SETS_SEED = (
    "sets the seed of the noise, which can be read from the fitted model: use a tool that leaves "
    "random_state=None unchanged, such as VotingClassifier"
)
UNKNOWN_TOOL = (
    "is a tool that skdp does not know: no charge covers what it computes from the rows apart "
    "from the private fits, or rows that it chooses, repeats or weights depending on others "
    f"({IF_PASSED_ON})"
)


@dataclass(frozen=True)
class NamedRelease:
    """Private release of a function, which is checked like the fit of an estimator.

    Parameters
    ----------
    name : str
        Name of the function, such as "dp_mean", or of a class whose fit releases something.
    unit : str, default="row"
        Privacy unit of its accountant.
    """

    name: str
    unit: str = "row"


def public_name_of(estimator):
    """Return the name, shown to users, of an estimator or of a function that releases something."""
    if isinstance(estimator, NamedRelease):
        return estimator.name
    return getattr(estimator, "_release_label", type(estimator).__name__)


@dataclass(frozen=True)
class Operation:
    """Operation of a private estimator that is about to run.

    Parameters
    ----------
    estimator : estimator or NamedRelease
    occasion : {"fit", "clone", "send", "answer"}
        "send" is a pickle for a worker, and "answer" a prediction or transform.
    """

    estimator: object
    occasion: str

    @property
    def name(self):
        """Name of the estimator or function that is shown to users."""
        return public_name_of(self.estimator)

    @property
    def is_of_plan(self):
        """True for a copy that the fit of a plan has sent to a worker process.

        The plan checked the steps around the estimator, but its container is in the other process.
        """
        return getattr(self.estimator, "_is_sent_by_plan", False)

    @property
    def is_copy(self):
        """True for a copy, which does not reveal the tool's purpose."""
        return self.occasion in ("clone", "send")

    @property
    def is_of_function(self):
        """True if a function, not an estimator, makes the release."""
        return isinstance(self.estimator, NamedRelease)

    @property
    def shows_no_parts(self):
        """True if a tool's parts are checked even though it may have no private part."""
        return self.is_copy or self.is_of_function

    @property
    def is_for_fit(self):
        """True for a fit, and for a pickle of an unfitted estimator, which a worker will fit.

        If an accountant is sent, its holder is unknown and may be fitted.
        """
        is_sent = self.occasion == "send" and not (
            self.is_of_function or hasattr(self.estimator, "privacy_")
        )
        return self.occasion == "fit" or is_sent


@dataclass(frozen=True)
class ToolFinding(FrozenValue):
    """A problem in the call of a tool around a private estimator.

    Parameters
    ----------
    rule : str
        Name of the rule that found it.
    call : ToolCall
    tool : str
        Name of the tool that is shown to users.
    problem : str
        Text that follows the names of the tool and of the estimator.
    is_refused : bool
        True if the operation is refused, even if the ledger's setting is "warn".
    """

    rule: str
    call: ToolCall
    tool: str
    problem: str
    is_refused: bool


def judge(operation, stack):
    """Return the list of `ToolFinding` about the calls around an operation.

    Parameters
    ----------
    operation : Operation
    stack : CallStack
    """
    findings = []
    other_calls = []
    planned = stack.planned_calls
    if operation.is_of_plan:
        planned = [call for call in stack.calls if call.is_container]
    # The loop goes inwards from the user's code.
    for call in reversed(stack.calls):
        if call.is_validation and operation.occasion == "fit":
            findings += _repeated_fold(call, stack)
        if operation.occasion != "fit" and not _learns_in(call):
            other_calls.append(call)
            continue
        # A finding about the steps of a pipeline covers the pipelines inside it.
        has_steps = any(finding.rule == "raw_steps" for finding in findings)
        if call.is_validation and stack.is_called_by_tool(call):
            findings += _inner_validation(call, operation, stack, has_steps)
        else:
            findings += _judge_call(call, operation, stack, has_steps or call in planned)
    # A copy alone does not reveal the tool's purpose.
    if findings and operation.is_copy:
        outer_findings = []
        for call in other_calls:
            outer_findings += _judge_call(call, operation, stack, skips_steps=True)
        findings = outer_findings + findings
    if stack.unknown_tool is not None and (operation.is_for_fit or findings):
        findings.append(_judge_unknown(stack.unknown_tool, operation.estimator))
    return findings


def _learns_in(call):
    """Return True for a function in which a tool learns; for some tools, this is any function."""
    return call.function in FITS or (call.tool is not None and call.tool.functions is not None)


def _judge_call(call, operation, stack, skips_steps):
    """Return the findings about a call.

    Parameters
    ----------
    call : ToolCall
    operation : Operation
    stack : CallStack
    skips_steps : bool
        True if the steps inside the tool were checked by a plan or have already been reported.
    """
    findings = _known_tool(call, stack)
    if operation.occasion == "fit":
        findings += _mixed_rows(call, stack)
    if operation.occasion == "fit" or operation.is_of_function:
        findings += _read_folds(call, stack)
    if call.is_container and operation.occasion == "fit":
        findings += _late_weights(call, stack)
    if not skips_steps:
        findings += _raw_steps(call, operation, stack, has_findings=bool(findings))
    return findings


def _repeated_fold(call, stack):
    """Return a finding if a validation received folds in which a row occurs several times."""
    if not repeats_rows(call.variables):
        return []
    name = stack.outer_name(call)
    return [ToolFinding("repeated_fold", call, name, REPEATED_FOLDS, is_refused=True)]


def _known_tool(call, stack):
    """Return a finding if the registry has a problem with this call of a known tool."""
    if call.tool is None:
        return []
    problem, is_refused = call.tool.problem_of(call.variables)
    if not problem:
        return []
    name = call.tool.name or stack.public_name(call)
    return [ToolFinding("known_tool", call, name, f"{problem}: {call.tool.instead}", is_refused)]


def _mixed_rows(call, stack):
    """Return a finding if a tool scores rows that it composes from the cells of several rows.

    The tool's own scores are checked with the scorer. A user-defined function that it calls to
    score may fit or release something else.
    """
    if call.tool is None or not call.tool.wrong_scores:
        return []
    name = call.tool.name or stack.public_name(call)
    return [ToolFinding("mixed_rows", call, name, call.tool.wrong_scores, is_refused=False)]


def _read_folds(call, stack):
    """Return a finding if a tool has read a generator of folds and was not judged before.

    The splitter of such a generator, which may split by private values, is visible only until the
    generator has ended. A tool around a private estimator is therefore judged earlier, when it
    copies the estimator or reads its tags. If a user-defined class creates its private estimators
    in `fit`, or a scorer releases something, the tool is judged only now, after it read the folds.
    """
    if call.tool is None or is_judged(call.frame):
        return []
    folds = call.variables.get("cv", getattr(call.subject, "cv", None))
    # A generator that has ended has no frame.
    if all(generator.gi_frame is not None for generator in generators_in(folds)):
        return []
    name = call.tool.name or stack.public_name(call)
    problem = f"{UNKNOWN_FOLDS}: {call.tool.instead}"
    return [ToolFinding("read_folds", call, name, problem, is_refused=False)]


def _inner_validation(call, operation, stack, has_steps):
    """Return the findings about a scikit-learn validation function that a tool called.

    The entry of the outer tool covers its scores and predictions.
    """
    findings = []
    if call.tool is None:
        return findings
    # Folds that the tool received as an iterator become a list only in this call.
    refusal = ""
    if call.tool.refusal:
        refusal = call.tool.refusal(call.variables)
    if refusal:
        problem = f"{refusal}: {call.tool.instead}"
        name = stack.public_name(call)
        findings.append(ToolFinding("folds_of_validation", call, name, problem, is_refused=True))
    # A tool may put its estimator into a pipeline that was not checked with the tool.
    inner = call.variables.get("estimator")
    subjects = [outer.subject for outer in stack.calls]
    tuned = [getattr(subject, "estimator", None) for subject in subjects if subject is not None]
    is_built = inner is not None and not any(inner is part for part in tuned)
    if is_built and not has_steps:
        # A private score of a model fitted to public rows is a release.
        problems = raw_steps(inner, with_fitted=not operation.is_of_function)
        findings += _finding_of_steps(call, stack.outer_name(call), problems)
    return findings


def _late_weights(call, stack):
    """Return a finding if a pipeline passes `sample_weight` to a private step, which refuses it.

    The steps before it would be charged first.
    """
    variables = call.variables
    params = {**(variables.get("params") or {}), **(variables.get("fit_params") or {})}
    weighted = [
        param.rpartition("__")[0]
        for param, value in params.items()
        if param.endswith("__sample_weight") and value is not None
    ]
    if not weighted:
        return []
    parts = nested_parts(call.subject)
    for step in weighted:
        part = parts.get(step)
        # scikit-learn's ensembles pass weights to all of their members.
        is_ensemble = holds_private(part) and type(part).__module__.startswith("sklearn.ensemble")
        if is_private(part) or is_ensemble:
            problem = f"passes {step}__sample_weight to {title(part, step)}: {NO_WEIGHTS}"
            name = stack.public_name(call)
            return [ToolFinding("late_weights", call, name, problem, is_refused=True)]
    return []


def _raw_steps(call, operation, stack, has_findings):
    """Return a finding about the parts inside a tool that learn from raw rows.

    Parameters
    ----------
    call : ToolCall
    operation : Operation
    stack : CallStack
    has_findings : bool
        True if the call has another problem. Its text then covers resamplers, and the parts are
        looked at again even if they were found to have no problem.
    """
    # A function such as `cross_val_score` fits its estimator, just like the `fit` of a search.
    fits = (call.is_validation and call.tool is not None) or (
        call.subject is not None and call.function in FITS
    )
    # A frozen step of a pipeline only predicts or transforms.
    is_only_asked = operation.occasion == "answer" and not call.is_container
    if is_only_asked or not fits:
        return []
    variables = call.variables
    y = variables.get("Y", variables.get("y"))
    if splits_targets(call.subject):
        # Tools for several targets pass one of them to each fit.
        y = None
    if call.is_container:
        leave_out = ""
        if has_findings:
            # Samplers are covered by the entry of their pipeline.
            leave_out = "resamples"
        problems = raw_steps(call.subject, is_calling=True, leave_out=leave_out, y=y)
        problems += problems_of_table(call.subject, variables.get("X"))
    elif call.module == TARGETS:
        problems = raw_steps(call.subject, is_calling=True, y=y)
    elif has_findings or operation.shows_no_parts or not state_of(call.frame).has_private_parts:
        problems = _raw_parts(call, stack, y, operation, has_findings)
    else:
        problems = []
    return _finding_of_steps(call, stack.public_name(call), problems)


def _raw_parts(call, stack, y, operation, has_findings):
    """Return the problems inside a tool, whose parts are checked with it before its fits.

    Worker processes could not inform the user about these parts, and some tools fit their members
    without cloning them.

    Parameters
    ----------
    call : ToolCall
    stack : CallStack
    y : array-like or None
    operation : Operation
    has_findings : bool
        True if the call has another problem.
    """
    subject = call.subject
    if call.is_validation:
        inner = call.variables.get("estimator")
    else:
        inner = getattr(subject, "estimator", None)
    problems = problems_of_callbacks(subject) + raw_in_members(subject, y)
    reader = inner if subject is None else subject
    problems += problems_of_table(reader, call.variables.get("X"))
    problems += problems_of_errors(inner, call.variables)
    # A user-defined class may create the private estimator that is being fitted, and a function
    # that releases something may score a model that is not private.
    if has_findings or operation.shows_no_parts or holds_private(inner):
        steps = raw_steps(inner, y=y, with_fitted=not operation.is_of_function)
        problems = steps + raw_candidates(call, stack.calls, inner, y) + problems
    state_of(call.frame).has_private_parts = not problems
    return problems


def _finding_of_steps(call, name, problems):
    """Return the finding about the given `PartProblem` instances, as a list."""
    if not problems:
        return []
    is_refused = any(problem.is_refused for problem in problems)
    return [ToolFinding("raw_steps", call, name, text_of_problems(problems), is_refused)]


def _judge_unknown(call, estimator):
    """Return the finding about a tool that is not in the registry."""
    name = f"{call.name} of {module_of(call.frame).partition('.')[0]}"
    if _sets_seed(call, estimator):
        return ToolFinding("set_seed", call, name, SETS_SEED, is_refused=True)
    return ToolFinding("unknown_tool", call, name, UNKNOWN_TOOL, is_refused=False)


def _sets_seed(call, estimator):
    """Return True if a tool set the seed of an estimator that the user left without a seed."""
    if getattr(estimator, "random_state", None) is None:
        return False
    if getattr(estimator, "_was_sent_without_seed", False):
        # The estimator had no seed when it was sent to this worker process.
        return True
    variables = call.variables
    # These are the tool's models, or the arguments of its function.
    code = call.frame.f_code
    models = []
    for name in code.co_varnames[: code.co_argcount]:
        value = variables.get(name)
        if name == "self":
            parts = parts_of(value)
        else:
            parts = parts_in(name, value)
        for _, part in parts:
            models += [part, *nested_parts(part).values()]
    same = [part for part in models if type(part) is type(estimator)]
    return bool(same) and all(getattr(part, "random_state", None) is None for part in same)
