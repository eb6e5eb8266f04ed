"""Step 3 of the check in `_callers.py`: refuse an operation, or warn once.

There is one warning per call of the outermost tool. The checks of private scores
(`_scored_models.py`), of user-defined classes and of predictions in a study (`_callers.py`) use the
same functions, without findings of rules.

A finding whose operation is refused always raises an error; others do if the ledger's setting is
"raise". The state of the calls (`_call_states.py`) records the warnings that were given.
"""

import re
import threading
import warnings

from skdp._fitting._call_states import has_warned, state_of
from skdp._tools._registry import passes_on
from skdp._tools._scores_and_folds import is_by_person
from skdp.exceptions import RawDataWarning
from skdp.utils._warnings import warn_user

# Folds of rows that the texts recommend.
ROW_FOLDS = re.compile(r"\bKFold\((\w+), shuffle=True, random_state=0\)")
# Lock that is held while warning, so that the threads of a tool warn only once.
_warning_lock = threading.RLock()


def report(operation, findings, stack, on_raw_data, price=""):
    """Raise an error or warn about the findings of `_tool_rules.judge`; the last step of a check.

    Parameters
    ----------
    operation : Operation
        The fit, copy or answer of a private estimator that is checked.
    findings : list of ToolFinding
        Problems of the calls around the operation.
    stack : CallStack
        The calls around the operation.
    on_raw_data : callable
        Function that returns the setting of the ledger, "warn" or "raise". It is called only if
        there are findings.
    price : str, default=""
        Price of a search that begins, as text; see `check_prices`. The warning ends with it.

    Raises
    ------
    ValueError
        If the operation is refused, or if the setting is "raise".

    Warns
    -----
    RawDataWarning
        Otherwise; see `warn_once`.
    """
    if not findings:
        return
    name = operation.name
    # Inner functions of a tool may have the same problem, which is reported once.
    sentences = {}
    for finding in findings:
        sentences.setdefault(finding.problem, f"{finding.tool} around {name} {finding.problem}")
    text = for_persons("; ".join(sentences.values()), operation.estimator)
    if any(finding.is_refused for finding in findings):
        raise ValueError(f"{text}. Nothing was computed or charged")
    raise_if_asked(text, on_raw_data, "computed or charged")
    if getattr(operation.estimator, "_was_reported", False):
        # The process that sent this estimator or scorer to a worker has warned; it sets the
        # attribute when it pickles them.
        return
    more = ""
    if price:
        more = f"; {price}"
    warn_once(text, stack.outermost, [finding.call for finding in findings], stack.calls, more)


def for_persons(text, estimator):
    """Return a text that recommends folds of persons if the privacy unit is a person.

    Parameters
    ----------
    text : str
    estimator : estimator or NamedRelease
        Private estimator, scorer or function.
    """
    if getattr(estimator, "unit", "") == "person" or is_by_person(estimator):
        return ROW_FOLDS.sub(r"PersonKFold(\1)", text)
    return text


def raise_if_asked(text, on_raw_data, avoided):
    """Raise `ValueError` if the ledger's setting is "raise".

    Parameters
    ----------
    text : str
        Text about the problems.
    on_raw_data : callable
        Function that returns the setting of the ledger, "warn" or "raise".
    avoided : str
        What was not done.
    """
    if on_raw_data() == "raise":
        raise ValueError(
            f"{text}. Nothing was {avoided}: this ledger was opened with on_raw_data='raise'"
        )


def warn_once(text, outermost, found_in, calls, more=""):
    """Warn once per call of the outermost tool, or always if warnings are turned into errors.

    Parameters
    ----------
    text : str
        Text about the problems.
    outermost : ToolCall
        Call of the tool that the user's code called.
    found_in : list of ToolCall
        Calls that have problems. The list is empty for a private score of a model that is not
        private: the problem is then that of the innermost call, which computed the score, but
        later findings about the same call are not covered by the warning.
    calls : list of ToolCall
        All calls of known tools, from the inside out.
    more : str, default=""
        Further text, which is appended to the warning. It does not count as a new problem: if a
        warning with the same `text` was given, there is none.
    """
    with _warning_lock:
        state = state_of(outermost.frame)
        is_covered = state.is_complete or text in state.texts or _is_covered(found_in, calls)
        if is_covered and not _is_error():
            return
        warn_user(text + more, RawDataWarning, is_skipped=passes_on)
        # This comes after the warning, so that the next call raises it again if it is an error.
        state.texts.add(text)
        for call in found_in:
            state_of(call.frame).is_complete = True


def _is_covered(found_in, calls):
    """Return True if a warning was given for each call with a problem, or for a call around it.

    A warning about a call covers everything that it calls (`CallState.is_complete`). Without
    calls with a problem, the innermost call is looked at; see `warn_once`.
    """
    checked = found_in or calls[:1]
    for call in checked:
        outer = [call]
        if call in calls:
            outer = calls[calls.index(call) :]
        if not any(has_warned(around.frame) for around in outer):
            return False
    return bool(checked)


def _is_error():
    """Return True if the user turned `RawDataWarning` into an error."""
    for action, message, category, module, line in warnings.filters:
        if message is None and module is None and not line and issubclass(RawDataWarning, category):
            return action == "error"
    return False
