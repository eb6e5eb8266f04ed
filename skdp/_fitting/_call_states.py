"""The state of a call of a tool: its judgments and warnings, kept as long as the call lasts.

A tool calls many fits, each of which checks its callers. A `CallState` in a local variable of a
call's frame ensures that each call of the outermost tool warns only once, and that a search
examines its candidates only once. It ends with the call.
"""

import threading
from dataclasses import dataclass, field

# Name of the local variable. All versions of Python can set it, including those with PEP 667.
STATE_VARIABLE = "__skdp_warning_state__"
# Lock that is held while a state is created: if two threads of a tool created one each, the second
# would replace the first, and the record of its warning would be lost.
_creation_lock = threading.Lock()


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
    with _creation_lock:
        state = stored_state(frame)
        if state is None:
            state = CallState()
            # A function that uses `locals()` would see the variable, so none is set there, and each
            # fit warns.
            if keeps_state(frame):
                frame.f_locals[STATE_VARIABLE] = state
    return state


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
