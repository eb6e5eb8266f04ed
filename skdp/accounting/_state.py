"""What the records of a data set add up to: terms, totals and the price of a next charge."""

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter

from skdp.accounting._chain import NOTHING
from skdp.accounting._composition import claimed_price, composition_rule
from skdp.accounting._events import event_from_json
from skdp.accounting._guarantee import Guarantee, Neighbours
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.utils._validation import check_choice, check_privacy_parameters, check_within

_cached_event = lru_cache(maxsize=4096)(event_from_json)


class NotCopied:
    """A handle that stands for the same thing in every clone and copy."""

    def __sklearn_clone__(self, memo=None):
        return self

    __copy__ = __deepcopy__ = __sklearn_clone__


@dataclass(frozen=True)
class Terms:
    """What a data set's budget was opened with; only the cap can change."""

    epsilon: float
    delta: float
    relation: str = "add_remove"
    composition: str = "basic"
    rdp_order: float | None = None
    unit: str = "row"
    max_rows: int = 1
    missing_ids: str = "error"

    def __post_init__(self):
        epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
        order = self.rdp_order
        if order is not None:
            order = check_within(order, "rdp_order", 1.0, ends="()")
        rows = self.neighbours.max_rows
        check_choice(self.missing_ids, "missing_ids", ("error", "distinct"))
        if self.missing_ids == "distinct" and self.unit != "person":
            raise ValueError("missing_ids='distinct' goes with unit='person'")
        vars(self).update(epsilon=epsilon, delta=delta, rdp_order=order, max_rows=rows)
        composition_rule(self.composition, self.relation, rows, order)

    cap = property(attrgetter("epsilon", "delta"))

    @property
    def neighbours(self):
        """Who may change between two tables."""
        return Neighbours(relation=self.relation, unit=self.unit, max_rows=self.max_rows)

    @property
    def of_rows(self):
        """Those of a row alone, where these are of a group of rows."""
        return replace(self, **vars(self.neighbours.of_rows))

    def holds_for_group(self, event, epsilon, delta):
        """Say whether what is known to be a row's price is proved to be that of a group of rows.

        By the price of the group, or by one for a row from which the group's follows.
        """
        if self.max_rows == 1 or self.rule.single_epsilon(event, delta) <= epsilon:
            return True
        row = Guarantee(epsilon=epsilon, delta=delta, neighbours=self.neighbours).of_rows
        with suppress(ValueError):
            return bool(claimed_price(event, row.epsilon, row.delta, row.relation))
        return False

    @property
    def rule(self):
        """The rule by which charges add up."""
        return composition_rule(self.composition, self.relation, self.max_rows, self.rdp_order)


@dataclass(frozen=True)
class Part:
    """One part of a partition of a data set's rows.

    Parameters
    ----------
    partition : str
        The partition's name.
    index : int
        Which part, from 0.
    parts : int
        How many parts there are.
    by_index : bool
        Whether a row's part is fixed by its index, whatever its values.
    """

    partition: str
    index: int
    parts: int
    by_index: bool


@dataclass(frozen=True)
class Spend:
    """One charge in the ledger.

    Parameters
    ----------
    label : str
        What was released, in the words of whoever charged.
    event : Event
        What the mechanism did, from which any method computes its cost.
    epsilon, delta : float
        The price of this release alone, for the ledger's unit.
    seeded : bool
        Whether the noise came from an integer seed.
    time : str
        When it was charged, ISO 8601, UTC.
    version : str
        The version of skdp that charged.
    part : Part or None
        The part of the rows that it was computed from; None for all rows.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    """

    label: str
    event: object
    epsilon: float
    delta: float
    seeded: bool
    time: str
    version: str
    part: Part | None = None
    sequence: int = 0
    hash: str = ""


@dataclass(frozen=True)
class Draw:
    """One step of a plan that ran on a round which was charged before; it costs nothing more.

    Parameters
    ----------
    label : str
        What was released.
    event : Event
        What the mechanism did.
    seeded : bool
        Whether the noise came from an integer seed.
    time, version : str
        When, and by which version of skdp.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    """

    label: str
    event: object
    seeded: bool
    time: str
    version: str
    sequence: int = 0
    hash: str = ""


def read_entries(records, kind):
    """Return the `Spend` or the `Draw` that each record of kind "charge" or "draw" holds."""
    return tuple(_read_entry(record) for record in records if record.kind == kind)


def _read_entry(record):
    known = {"sequence": record.sequence, "hash": record.hash}
    try:
        body = {name: value for name, value in record.body.items() if name != "reservation"}
        body["event"] = _cached_event(body["event"])
        if record.kind == "draw":
            return Draw(**body, **known)
        part = body.pop("part")
        spend = Spend(**body, part=None if part is None else Part(**part), **known)
        if not (0.0 <= spend.epsilon < math.inf and 0.0 <= spend.delta <= 1.0):
            raise ValueError(f"its price is ({spend.epsilon}, {spend.delta})")
        return spend
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"record {record.sequence} cannot be read: {error}") from error


@dataclass(frozen=True)
class Rounds:
    """The rounds of one reservation: which were charged, and how often each step has run.

    Parameters
    ----------
    charged : tuple of (int, str)
        The sequence and the hash of each round's charge.
    uses : tuple of int
        For each step of the plan, how many rounds it has run in; never more than were charged.
    """

    charged: tuple
    uses: tuple

    def free(self, step):
        """Return the first round in which a step has not run, as (sequence, hash), or None."""
        used = self.uses[step]
        return self.charged[used] if used < len(self.charged) else None

    def after(self, step, position=None):
        """Return the rounds after a step ran, on a new round if its position is given."""
        charged = self.charged if position is None else (*self.charged, position)
        uses = list(self.uses)
        uses[step] += 1
        if uses[step] > len(charged):
            raise ValueError("a step ran on a round that was not charged")
        return Rounds(charged, tuple(uses))


@dataclass(frozen=True)
class State:
    """What the records of a data set up to a position in the ledger add up to.

    `whole` is the total of what was computed from all rows, `partitions` maps a partition's
    (name, number of parts, by_index) to the totals of its parts. `reservations` maps a
    reservation's name to its `Rounds`.
    """

    position: tuple = NOTHING
    terms: Terms | None = None
    whole: object = None
    partitions: dict = field(default_factory=dict)
    reservations: dict = field(default_factory=dict)

    def after(self, records):
        """Return the state after some more records.

        Raises
        ------
        LedgerError
            If a record holds what no accountant writes.
        """
        state = self
        for record in records:
            try:
                state = replace(state._after(record), position=(record.sequence, record.hash))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                text = f"record {record.sequence} cannot be read: {error}"
                raise LedgerError(text) from error
        return state

    def _after(self, record):
        if record.kind == "open":
            terms = Terms(**record.body)
            return State(terms=terms, whole=terms.rule.zero)
        if record.kind == "change_cap":
            cap = {name: record.body[name] for name in ("epsilon", "delta")}
            return replace(self, terms=replace(self.terms, **cap))
        if record.kind == "charge":
            return self.with_spend(_read_entry(record))._with_step(record)
        if record.kind == "draw":
            return self._with_step(record)
        raise LedgerError(f"record {record.sequence} is of the unknown kind {record.kind!r}")

    def with_spend(self, spend):
        """Return the state with one more spend."""
        rule, cost = self.terms.rule, self.terms.rule.cost(spend)
        if spend.part is None:
            return replace(self, whole=rule.add(self.whole, cost))
        part, totals = spend.part, self.partitions.get(spend.part.partition, {})
        if any((p.parts, p.by_index) != (part.parts, part.by_index) for p in totals):
            raise ValueError(f"partition {part.partition!r} was charged with other parts before")
        totals = totals | {part: rule.add(totals.get(part, rule.zero), cost)}
        return replace(self, partitions=self.partitions | {part.partition: totals})

    def rounds(self, name, steps):
        """Return the `Rounds` of a reservation whose plan has so many steps."""
        rounds = self.reservations.get(name, Rounds((), (0,) * steps))
        if len(rounds.uses) != steps:
            raise ValueError(f"reservation {name!r} was charged with another plan before")
        return rounds

    def _with_step(self, record):
        """Return the state after the step of a reservation, if any, that a record is about."""
        step = record.body.get("reservation")
        if step is None and record.kind == "charge":
            return self
        position = (record.sequence, record.hash) if record.kind == "charge" else None
        rounds = self.rounds(step["name"], step["steps"]).after(step["step"], position)
        return replace(self, reservations=self.reservations | {step["name"]: rounds})

    @property
    def total(self):
        """The worst that the records amount to for any one unit."""
        rule, worst = self.terms.rule, []
        for totals in self.partitions.values():
            # One unit can be in so many parts of a partition, or move between them.
            moves = self.terms.relation == "replace_one" and not next(iter(totals)).by_index
            affected = self.terms.max_rows * (2 if moves else 1)
            if self.terms.unit == "person":
                # Any part may hold rows of a person.
                affected = len(totals)
            worst.append(rule.worst(list(totals.values()), affected))
        return rule.add(self.whole, *worst) if worst else self.whole

    @property
    def spent(self):
        """The (epsilon, delta) spent so far."""
        return self.terms.rule.spent(self.total, self.terms.cap)

    @property
    def left(self):
        """What the cap has left."""
        return self.terms.rule.left(self.total, self.terms.cap)

    def priced(self, spend, epsilon=None, delta=None):
        """Return a spend with its price, if the cap can pay for it.

        Parameters
        ----------
        spend : Spend
            Its price is not read.
        epsilon, delta : float, default=None
            What the release was calibrated to; delta alone is where the event is priced, and so
            it is where they hold for a row, and not for the group of rows that is the unit.

        Raises
        ------
        BudgetExceededError
            If the cap cannot pay.
        """
        rule, cap = self.terms.rule, self.terms.cap
        if epsilon is not None:
            claim = epsilon, 0.0 if delta is None else delta
            price = claimed_price(spend.event, *claim, self.terms.relation)
        if epsilon is None or not self.terms.holds_for_group(spend.event, *price):
            price = rule.price(spend.event, self.total, cap, delta)
        spend = replace(spend, epsilon=price[0], delta=price[1])
        if price[0] == math.inf or not rule.within(self.with_spend(spend).total, cap):
            raise BudgetExceededError(price, self.left, cap)
        return spend
