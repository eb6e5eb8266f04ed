"""Check of a private score: the model that it scores, and the use of scores by tools around it.

The charge of a score covers a change in the scored table for a fixed model. So the model must have
been released, or have learned from public rows.
"""

import sys

from skdp._fitting._call_stack import VALIDATION, checks_its_steps, read_stack
from skdp._fitting._call_states import state_of
from skdp._fitting._raw_parts import holders_of, read_steps, refusal_of_plan, title
from skdp._fitting._tool_reports import for_persons, raise_if_asked, warn_once
from skdp._fitting._tool_rules import public_name_of
from skdp._tools._parts import holds_private, is_private, is_step, nested_parts, parts_in
from skdp._tools._registry import passes_on
from skdp.exceptions import RawDataWarning
from skdp.utils._warnings import warn_user


def check_scored(estimator, scorer, on_raw_data):
    """Raise or warn if the charge of a private score does not cover a model or tool.

    This is called before the charge, and computes nothing from rows.

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
    stack = read_stack(sys._getframe(2))
    problems = _problems_of_score(estimator, public_name_of(scorer), stack)
    if not problems:
        return
    text = for_persons("; ".join(dict.fromkeys(problems)), scorer)
    raise_if_asked(text, on_raw_data, "computed or charged")
    parts = ()
    if is_step(estimator):
        parts = nested_parts(estimator).values()
    if any(getattr(part, "_was_reported", False) for part in (scorer, estimator, *parts)):
        # The process that sent the scorer to this worker has warned.
        return
    calls = stack.calls
    tool = stack.unknown_tool
    if tool is not None and (stack.is_outermost or not calls):
        # A tool, from scikit-learn or elsewhere, whose fits skdp does not recognize.
        warn_once(f"{tool.name}: {text}", tool, [tool], calls)
    elif calls:
        warn_once(text, calls[-1], [], calls)
        # This warning covers later findings about the same candidates.
        state_of(calls[-1].frame).is_complete = True
    else:
        warn_user(text, RawDataWarning, is_skipped=passes_on)


def _problems_of_score(estimator, name, stack):
    """Return texts about a scored model that is not private and about tools around its score.

    A tool is reported if its entry has `wrong_scores`, the predicate of a sentence such as
    "permutation_importance around <name> puts a cell of each person into the row of another one".
    """
    problems = []
    raw = _raw_scored_steps(estimator)
    if raw:
        steps = "; ".join(
            f"{title(step.estimator, step.name)}{step.bracketed_advice}" for step in raw
        )
        learns = "learns"
        if all(step.kind == "unknown" for step in raw):
            learns = "may learn"
        problems.append(
            f"{name} scores a model that {learns} from raw rows, which its charge does not cover: "
            f"{steps}; score a private model, or FrozenEstimator(model) for a model fitted to "
            "public rows"
        )
    for call in stack.calls:
        if call.tool is not None and call.tool.wrong_scores:
            tool = call.tool.name or call.function
            problems.append(f"{tool} around {name} {call.tool.wrong_scores}")
    return problems


def _raw_scored_steps(estimator):
    """Return the steps of a scored model that learn from raw rows unchecked by any fit."""
    raw = [step for step in read_steps(estimator) if not _was_checked_by_fit(step)]
    if not raw:
        return []
    # The steps of a plan are private, or were declared public.
    params = nested_parts(estimator)
    planned = [part for part in (estimator, *params.values()) if checks_its_steps(part)]
    # Steps may have been replaced since the fit.
    if any(refusal_of_plan(plan) for plan in planned):
        return raw
    return [
        step
        for step in raw
        if not any(map(checks_its_steps, (estimator, *holders_of(step.name, params))))
    ]


def _was_checked_by_fit(step):
    """Return True if a step is private, or contains a private estimator whose fit checked it.

    A user-defined class passes its rows on. For an unknown installed tool, the fit of the private
    estimator has warned.
    """
    if is_private(step.estimator):
        return True
    # A class may create its private estimators in `fit`.
    fitted = getattr(step.estimator, "__dict__", {}).values()
    inside = [part for value in fitted for _, part in parts_in("", value)]
    return step.kind == "unknown" and any(map(holds_private, (step.estimator, *inside)))


class RefusedScore:
    """Value that a private scorer returns where scikit-learn would replace its error with NaN.

    With a score of NaN, a search would continue and finally fit the model that is not private. If a
    score is not a number, scikit-learn raises a `ValueError` that quotes this object.

    Parameters
    ----------
    reason : Exception
        Reason for the refusal.
    """

    def __init__(self, reason):
        self.reason = reason

    def __repr__(self):
        return f"a refusal: {self.reason}"


def hides_errors_of_scores():
    """Return True if the calling function of scikit-learn replaces a scorer's errors with NaN."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == VALIDATION and frame.f_code.co_name == "_score":
            return frame.f_locals.get("error_score", "raise") != "raise"
        frame = frame.f_back
    return False
