"""The state of a call of a tool: its judgments and warnings, as long as the call lasts.

A tool calls many fits, and each of them checks its callers. So that each call of the outermost tool
warns once, and a search looks at its candidates once, a `CallState` is stored in a local variable
of the call's frame. It ends with the call, and each call has a separate one.
"""

from dataclasses import dataclass, field

# Name of the local variable. All versions of Python can set it, including those with PEP 667.
STATE_VARIABLE = "__skdp_warning_state__"


@dataclass
class CallState:
    """The judgments, intermediate results and warnings of one call to a tool.

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
        True if the call was judged, so answers of its estimators need no other judgment.
    has_private_parts : bool
        True if the parts of the tool were looked at and have no problem.
    """

    texts: set = field(default_factory=set)
    is_complete: bool = False
    has_price: bool = False
    raw_candidates: list | None = None
    is_judged: bool = False
    has_private_parts: bool = False


def state_of(frame):
    """Return the `CallState` of a call, which is created if there is none."""
    state = stored_state(frame)
    if state is None:
        state = CallState()
        # A function that uses `locals()` would see the variable, so it gets none, and each fit
        # warns.
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
    """Return True if a warning covers a call and all that it calls."""
    state = stored_state(frame)
    return state is not None and state.is_complete


def is_judged(frame):
    """Return True if a call was judged before."""
    state = stored_state(frame)
    return state is not None and state.is_judged
