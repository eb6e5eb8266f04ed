"""Check, before the first fit, that a search, validation or pipeline is within the budget."""

from skdp._fitting._call_states import keeps_state, state_of
from skdp._fitting._search_prices import (
    has_refused_candidates,
    price_of_container,
    price_of_search,
    price_of_validation,
)
from skdp._tools._entries import FITS
from skdp.exceptions import BudgetExceededError


def check_prices(calls, occasion):
    """Raise an error before the first fit of a search if its total price exceeds the budget.

    Parameters
    ----------
    calls : list of ToolCall
        The calls, from the inside out.
    occasion : {"fit", "clone", "send", "answer"}
        Operation that is about to run.

    Returns
    -------
    str
        Total price of a search that begins, and the budget that is left. `report` appends it to its
        `RawDataWarning`, and drops it if there is nothing to warn about. "" if no search begins or
        its price is unknown.

    Raises
    ------
    BudgetExceededError
        If the price of a search, a validation or a container exceeds the budget.
    """
    if occasion == "answer":
        return ""
    for call in reversed(calls):
        state = state_of(call.frame)
        if state.has_price or not keeps_state(call.frame):
            continue
        if call.is_validation:
            # The validation clones its estimator, or reads its tags, before the first fit.
            state.has_price = True
            price = price_of_validation(call.function, call.variables)
            _check_price(call.function, price, None, call)
        # A search clones its estimator before each fit, so nothing is charged before the first
        # clone.
        elif occasion in ("clone", "send") and call.function == "fit":
            text = _check_search_price(call, state)
            if text:
                return text
        elif call.function in FITS:
            _check_container(call, state)
    return ""


def _check_search_price(call, state):
    """Check the price of a call of `fit`, and return the price of a search as text.

    The text is also printed if the search has `verbose`. It is "" for a search that charges nothing
    or has an unknown price, and for other tools, of which the searches inside them are checked.

    Parameters
    ----------
    call : ToolCall
    state : CallState
        Its `has_price` is set to True, so that each call is checked once.

    Raises
    ------
    BudgetExceededError
        If the price exceeds the budget.
    """
    state.has_price = True
    subject = call.subject
    name = type(subject).__name__
    price = price_of_search(subject, call.variables.get("X"))
    if price is None:
        _check_container(call, state)
        return ""
    _check_price(name, price, subject, call)
    if price.is_exact and price.epsilon == 0.0:
        # All its models are frozen, and its scores are not private.
        return ""
    text = f"{price}, of {price.accountant._remaining_for_charge():.6g} left"
    if getattr(subject, "verbose", 0):
        print(f"{name}: {text}")
    return text


def _check_container(call, state):
    """Check the sum over the searches of a pipeline or an ensemble.

    The searches may run after other parts have been charged. `has_price` of the state is set to
    True, so that each call is checked once.
    """
    state.has_price = True
    subject = call.subject
    _check_price(type(subject).__name__, price_of_container(subject), subject, call)


def _check_price(name, price, subject, call):
    """Raise `BudgetExceededError` if a price is more than the budget that remains.

    No error is raised if candidates are refused: their fits charge nothing.

    Parameters
    ----------
    name : str
        Name of the tool.
    price : SearchPrice or None
        None if it is unknown.
    subject : object or None
        Search or container whose fit begins.
    call : ToolCall
        Call of the tool.
    """
    if price is None:
        return
    accountant = price.accountant
    # Charges on one part of the rows count only to the extent that they exceed those on other
    # parts.
    remaining = accountant._remaining_for_charge()
    if price.epsilon <= remaining * (1 + 1e-9) or has_refused_candidates(subject, call.variables):
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
