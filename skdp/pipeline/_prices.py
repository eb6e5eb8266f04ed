"""Separate and joint costs of a pipeline's private steps, and redundant charges."""

import itertools
import math
from dataclasses import dataclass, replace

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, QuantileTransformer

from skdp.accounting import Composed, get_epsilon
from skdp.accounting._events import leaves
from skdp.base import terms_of
from skdp.ledger import Reservation
from skdp.pipeline._instances import of_skdp, step_message
from skdp.pipeline._planning import planned_charge
from skdp.utils._validation import is_auto
from skdp.utils._values import FrozenValue

BUDGET = ("epsilon", "delta", "accountant", "random_state")
KNOWN_RANGE = (MaxAbsScaler, MinMaxScaler, QuantileTransformer)


@dataclass(frozen=True, kw_only=True)
class Cost(FrozenValue):
    """Cost of one fit of a step, and the number of its fits in one fit of the whole pipeline.

    Parameters
    ----------
    epsilon, delta : float
        Cost of a fit for the accountant's unit, 0 if nothing is charged.
    event : Event or None
        Event of the charge.
    fits : int
        Minimum number of fits, which is 0 in a search, an ensemble or another wrapper.
    exact : bool
        True if the number of fits and the cost are exact. Otherwise they depend on the table or
        are unknown.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    event: object = None
    fits: int = 0
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class Price(Cost):
    """The cost of a private step's fits, and the accountant that they charge.

    Parameters
    ----------
    accountant : PrivacyAccountant, handle, Reservation or None
    terms : LedgerConfig
    **cost
        Fields of `Cost`.
    """

    accountant: object
    terms: object


def price_steps(priced, n_samples):
    """Return a dict from the names of private steps to their `Price`."""
    charged = [step.params["accountant"] for step in priced]
    first = next((accountant for accountant in charged if accountant is not None), None)
    prices = {}
    for step, accountant in zip(priced, charged, strict=True):
        if accountant is None:
            # The step is priced as if it had the accountant of another step.
            terms = terms_of(first)
        else:
            terms = terms_of(accountant)
        terms_of_fit = terms
        if hasattr(accountant, "planned"):
            terms_of_fit = terms.per_row
        # Only steps outside wrappers are fitted to all rows; others are fitted to some of them.
        n_rows = None
        if step.fits == 1:
            n_rows = n_samples
        try:
            planned = planned_charge(
                step.estimator, n_rows, step.n_features or None, terms=terms_of_fit, name=step.title
            )
        except ValueError as error:
            raise ValueError(step_message(step.title, error)) from error
        is_exact = planned.exact or of_skdp(step.estimator)
        price = Price(
            epsilon=planned.epsilon,
            delta=planned.delta,
            event=planned.event,
            fits=step.fits or 0,
            exact=is_exact and step.fits is not None,
            accountant=accountant,
            terms=terms,
        )
        if not leaves(planned.event):
            # Nothing is charged.
            price = replace(price, epsilon=0.0, delta=0.0, exact=step.fits is not None)
        prices[step.name] = price
    return prices


@dataclass(frozen=True, kw_only=True)
class TotalPrice(FrozenValue):
    """The cost of one fit of a pipeline.

    Parameters
    ----------
    epsilon, delta : float
        Sums of the costs of the steps.
    joint_epsilon : float
        Epsilon of all charges together, at `delta`.
    exact : bool
        True if all numbers of fits and costs are exact.
    """

    epsilon: float
    delta: float
    joint_epsilon: float
    exact: bool


def total_price(prices):
    """Return the `TotalPrice` of steps, from a dict of their `Price`."""
    # If any step is charged, steps without an accountant do not count.
    fitted = [price for price in prices.values() if price.fits or not price.exact]
    charged = [price for price in fitted if price.accountant is not None] or fitted
    exact = len(charged) == len(fitted) and all(price.exact for price in charged)
    parts = [part for part in _with_rounds(charged) if part.fits]
    epsilon = math.fsum(part.epsilon * part.fits for part in parts)
    delta = min(math.fsum(part.delta * part.fits for part in parts), 1.0)
    joint = epsilon
    units = {(part.terms.relation, part.terms.max_rows) for part in parts}
    # A single round of a reservation costs what was planned. Different units have no joint cost.
    is_round = (
        len(parts) == 1 and parts[0].fits == 1 and isinstance(parts[0].accountant, Reservation)
    )
    if epsilon > 0.0 and len(units) == 1 and not is_round:
        relation, max_rows = units.pop()
        total_event = Composed(tuple(part.event * part.fits for part in parts))
        joint = min(joint, get_epsilon(total_event, delta, relation=relation, group_size=max_rows))
    return TotalPrice(epsilon=epsilon, delta=delta, joint_epsilon=joint, exact=exact)


def _with_rounds(prices):
    """Yield the prices, with a single price per reservation, which covers its rounds.

    A run of a step starts a new round if the step has run in all earlier rounds.
    """
    runs = {}
    for price in prices:
        whole = getattr(price.accountant, "reservation", None)
        if whole is None:
            yield price
        elif leaves(price.event):
            _, counts = runs.setdefault(whole.key, (whole, [0] * len(whole.planned)))
            counts[price.accountant.index] += price.fits
    for whole, counts in runs.values():
        yield Price(
            epsilon=whole.epsilon,
            delta=whole.delta,
            event=whole.event,
            fits=whole.new_rounds(counts),
            accountant=whole,
            terms=terms_of(whole.accountant),
        )


def paid_twice(steps):
    """Yield the private steps whose charge is redundant, with the reason.

    Parameters
    ----------
    steps : list of Step
        In the order in which they are fitted.

    Yields
    ------
    step : Step
    message : str
    """
    for first, second in itertools.combinations(steps, 2):
        if first.kind == second.kind == "private" and _learned(first) == _learned(second):
            yield second, f"{first.title!r} learns the same from the same columns"
    named = {step.name: step for step in steps}
    for step in steps:
        earlier = None
        if step.before:
            earlier = named.get(step.before[-1])
        if step.kind != "private" or earlier is None:
            continue
        before = earlier.estimator
        params = step.params
        rescales = earlier.kind == "private" and getattr(before, "_rescales", False)
        if rescales and getattr(step.estimator, "_undoes_scaling", False):
            yield earlier, f"{step.title!r} shifts and scales the same features again"
        known_range = isinstance(before, KNOWN_RANGE) or getattr(before, "_known_range", False)
        if known_range and is_auto(params.get("bounds")):
            message = f"bounds='auto' is charged, but {earlier.title!r} makes the range known"
            yield step, message
        if isinstance(before, Normalizer) and is_auto(params.get("data_norm")):
            message = f"data_norm='auto' is charged, but {earlier.title!r} makes every norm 1"
            yield step, message


def _learned(step):
    """Return a key for the values that a step learns; equal keys mean equal values."""
    settings = {name: repr(value) for name, value in step.params.items() if name not in BUDGET}
    return type(step.estimator), step.before, step.columns, settings
