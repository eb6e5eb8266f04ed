"""The state of a call of a tool: its judgments and warnings, kept as long as the call lasts.

A tool calls many fits, each of which checks its callers. A `CallState` in a local variable of a
call's frame ensures that each call of the outermost tool warns only once, and that a search
examines its candidates only once. It ends with the call.
"""

from dataclasses import dataclass, field

# Name of the local variable. All versions of Python can set it, including those with PEP 667.
STATE_VARIABLE = "__skdp_warning_state__"


@dataclass
class CallState:
    """Judgments, intermediate results and warnings of one call of a tool.

    Attributes
    ----------
    texts : set of str
        Texts of the warnings.
    is_complete : bool
        True if a warning was about this call itself, which covers all inner calls.
    has_price : bool
        True if the price of a search has been compared with the remaining budget.
    raw_candidates : list or None
        Problems of a search's candidates; None until they have been looked for.
    is_judged : bool
        True if the call was judged, so that its estimators' answers need no further judgment.
    has_private_parts : bool
        True if the parts of the tool were examined and have no problem.
    """

    texts: set = field(default_factory=set)
    is_complete: bool = False
    has_price: bool = False
    raw_candidates: list | None = None
    is_judged: bool = False
    has_private_parts: bool = False


def state_of(frame):
    """Return the `CallState` of a call, which is created if there is none."""
    if not keeps_state(frame):
        # A function that uses `locals()` would see the variable, so none is set there, and each fit
        # warns.
        return CallState()
    # It must be one operation: if two threads of a tool created one state each, the second would
    # replace the first, and the record of its warning would be lost.
    return frame.f_locals.setdefault(STATE_VARIABLE, CallState())


def stored_state(frame):
    """Return the `CallState` of a call, or None."""
    return frame.f_locals.get(STATE_VARIABLE)


def keeps_state(frame):
    """Return True if a state can be stored in the frame of a call."""
    return "locals" not in frame.f_code.co_names


def has_warned(frame):
    """Return True if a warning covers a call and everything that it calls."""
    state = stored_state(frame)
    return state is not None and state.is_complete


def is_judged(frame):
    """Return True if a call has already been judged."""
    state = stored_state(frame)
    return state is not None and state.is_judged
