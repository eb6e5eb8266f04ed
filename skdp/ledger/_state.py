"""What the records of a data set add up to: terms, totals and the price of a next charge."""

import math
from dataclasses import field, replace
from functools import lru_cache

from skdp.accounting._composition import RULES, claimed_price, is_proved
from skdp.accounting._events import cached_event_from_json
from skdp.accounting._guarantee import Amounts, Guarantee, Neighbours
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import NOTHING
from skdp.utils._validation import check_choice, check_name, check_within
from skdp.utils._values import FrozenValue, checked


class NotCopied:
    """A handle that stands for the same thing in every clone and copy."""

    def __sklearn_clone__(self, memo=None):
        return self

    __copy__ = __deepcopy__ = __sklearn_clone__


class Terms(Amounts, Neighbours):
    """What a data set's budget was opened with; only the cap can change."""

    composition: str = checked(check_choice, default="basic", choices=RULES)
    rdp_order: float | None = checked(check_within, default=None, low=1.0, ends="()")
    missing_ids: str = checked(check_choice, default="error", choices=("error", "distinct"))
    on_raw_data: str = checked(check_choice, default="warn", choices=("warn", "raise"))

    cap = Amounts.amounts

    def __post_init__(self):
        super().__post_init__()
        if self.missing_ids == "distinct" and self.unit != "person":
            raise ValueError("missing_ids='distinct' goes with unit='person'")
        if (self.rdp_order is not None) != (self.composition == "rdp"):
            raise ValueError("give rdp_order with composition='rdp', and with no other composition")

    @property
    def neighbours(self):
        """Who may change between two tables."""
        return Neighbours(relation=self.relation, unit=self.unit, max_rows=self.max_rows)

    def holds_for_group(self, event, epsilon, delta):
        """Say whether what is known to be a row's price is proved to be that of a group of rows.

        By the price of the group, or by one for a row from which the group's follows.
        """
        if self.max_rows == 1 or self.rule.single_epsilon(event, delta) <= epsilon:
            return True
        row = Guarantee(epsilon=epsilon, delta=delta, neighbours=self.neighbours).of_rows
        return is_proved(event, row.epsilon, row.delta, row.relation)

    @property
    def rule(self):
        """The rule by which charges add up."""
        return _rule_of(self)


# Not a `cached_property`: it has a lock, for which a child would wait that is forked meanwhile.
@lru_cache
def _rule_of(terms):
    return RULES[terms.composition](terms)


class Part(FrozenValue):
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


class Spend(FrozenValue):
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
    user, purpose : str
        Who charged, and why, in the words of whoever charged; "" where nobody said.
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
    user: str = ""
    purpose: str = ""


class Draw(Spend):
    """One step of a plan that ran on a round which was charged before; it costs nothing more.

    Parameters
    ----------
    label : str
        What was released.
    event : Event
        What the mechanism did.
    epsilon, delta : float
        0: the round's charge pays for it.
    seeded : bool
        Whether the noise came from an integer seed.
    time, version : str
        When, and by which version of skdp.
    part : None
        The round's charge says of which rows.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    user, purpose : str
        Who ran it, and why.
    """


def read_entries(records, kind):
    """Return the `Spend` or the `Draw` that each record of kind "charge" or "draw" holds."""
    return tuple(_read(_read_entry, record) for record in records if record.kind == kind)


def composed_price(spends, terms):
    """Return the (epsilon, delta) of some charges together, by the rule of a data set's terms.

    Parameters
    ----------
    spends : sequence of Spend
        At least one. A single charge has its own price.
    terms : Terms

    Returns
    -------
    (float, float)
    """
    if len(spends) == 1:
        return spends[0].epsilon, spends[0].delta
    rule, of_parts = terms.rule, {}
    for spend in spends:
        of_parts.setdefault(("", "", spend.part), []).append(rule.cost(spend))
    totals = {key: rule.add(*costs) for key, costs in of_parts.items()}
    return State(terms=terms, totals=totals).spent


def _read(reader, record):
    """Return what is read of a record; LedgerError if it holds what no accountant writes."""
    try:
        return reader(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LedgerError(f"record {record.sequence} cannot be read: {error}") from error


def _read_entry(record):
    known = {"sequence": record.sequence, "hash": record.hash}
    body = {name: value for name, value in record.body.items() if name != "reservation"}
    body["event"] = cached_event_from_json(body["event"])
    if record.kind == "draw":
        return Draw(**body, epsilon=0.0, delta=0.0, **known)
    part = body.pop("part")
    spend = Spend(**body, part=None if part is None else Part(**part), **known)
    if not (0.0 <= spend.epsilon < math.inf and 0.0 <= spend.delta <= 1.0):
        raise ValueError(f"its price is ({spend.epsilon}, {spend.delta})")
    return spend


def _check_names(names, what):
    if isinstance(names, str):
        raise ValueError(f"{what} must be a list of names, got {names!r}")
    return tuple(check_name(name, what) for name in names)


class Cap(Amounts):
    """A cap on what some users charge, for some purposes; that of a data set is on everything.

    Parameters
    ----------
    epsilon, delta : float
        The cap.
    name : str, default=""
        Of a cap inside the data set's: of a user, a team or a purpose.
    users, purposes : sequence of str, default=()
        Whose charges count, and for which purposes; none stands for all.
    """

    name: str = ""
    users: tuple = checked(_check_names, default=())
    purposes: tuple = checked(_check_names, default=())

    def counts(self, user, purpose):
        """Say whether a user's charge for a purpose counts towards it."""
        of_user = not self.users or user in self.users
        return of_user and (not self.purposes or purpose in self.purposes)

    def __str__(self):
        of, purposes = ", ".join(self.users), ", ".join(self.purposes)
        return self.name + f" of {of}" * bool(of) + f" for {purposes}" * bool(purposes)


@lru_cache
def _data_set_cap(terms):
    return Cap(*terms.cap)


class Rounds(FrozenValue):
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


class State(FrozenValue):
    """What the records of a data set up to a position in the ledger add up to.

    `totals` maps (user, purpose, part) to the total of what they charged, the part None for all
    rows. `sub_caps` maps names to `Cap`, `reservations` a reservation's name to its `Rounds`.
    `closed` is the reason why the data set was closed. `identity` is the hash of the record that
    opened it, None before. `reserved_from` is None for an ordinary data set; for a reserved part it
    has the `dataset` and the `hash` of the charge that pays for it.
    """

    position: tuple = NOTHING
    terms: Terms | None = None
    totals: dict = field(default_factory=dict)
    sub_caps: dict = field(default_factory=dict)
    reservations: dict = field(default_factory=dict)
    closed: str | None = None
    identity: str | None = None
    reserved_from: dict | None = None

    def after(self, records):
        """Return the state after some more records.

        Raises
        ------
        LedgerError
            If a record holds what no accountant writes, or follows the closing.
        """
        state = self
        for record in records:
            state = _read(state._after, record)
        return state

    def _after(self, record):
        """Return the state after one more record."""
        self.check_not_closed()
        position = record.sequence, record.hash
        if record.kind == "open":
            if self.terms is not None:
                raise ValueError("the data set was opened before")
            # A nonce that makes the record's hash unlike any other ledger's.
            about_ledger = ("nonce", "reserved_from")
            terms = {name: v for name, v in record.body.items() if name not in about_ledger}
            paid = record.body.get("reserved_from")
            if paid is not None and set(paid) != {"dataset", "hash"}:
                raise ValueError("it does not say which charge pays for it")
            terms = Terms(**terms)
            return State(position, terms, identity=record.hash, reserved_from=paid)
        if record.kind == "change_cap":
            cap = {name: record.body[name] for name in ("epsilon", "delta")}
            return replace(self, position=position, terms=replace(self.terms, **cap))
        if record.kind == "sub_cap":
            told = ("reason", "time")
            cap = Cap(**{name: record.body[name] for name in record.body if name not in told})
            return replace(self, position=position, sub_caps=self.sub_caps | {cap.name: cap})
        if record.kind == "close":
            reason = str(record.body["reason"]) or "no reason"
            return replace(self, position=position, closed=reason)
        if record.kind == "charge":
            state = self.with_spend(_read_entry(record), position)
            # A step of a reservation begins a new round.
            step = record.body.get("reservation")
            return state if step is None else state._with_step(step, position, position)
        if record.kind == "draw":
            return self._with_step(record.body["reservation"], position, None)
        raise LedgerError(f"record {record.sequence} is of the unknown kind {record.kind!r}")

    def check_not_closed(self):
        """Raise LedgerError if nothing can be charged any more."""
        if self.closed is not None:
            raise LedgerError(f"the data set was closed and accepts no charge: {self.closed}")

    def with_spend(self, spend, position=NOTHING):
        """Return the state with one more spend, which the record at a position holds."""
        rule, part = self.terms.rule, spend.part
        key = spend.user, spend.purpose, part
        if part and key not in self.totals:
            same = (p for _, _, p in self.totals if p and p.partition == part.partition)
            if any(replace(p, index=part.index) != part for p in same):
                name = part.partition
                raise ValueError(f"partition {name!r} was charged with other parts before")
        total = rule.add(self.totals.get(key, rule.zero), rule.cost(spend))
        return replace(self, position=position, totals=self.totals | {key: total})

    def rounds(self, name, steps):
        """Return the `Rounds` of a reservation whose plan has so many steps."""
        rounds = self.reservations.get(name, Rounds((), (0,) * steps))
        if len(rounds.uses) != steps:
            raise ValueError(f"reservation {name!r} was charged with another plan before")
        return rounds

    def _with_step(self, step, position, charged):
        """Return the state after a step of a reservation, which the record at a position is about.

        `charged` is the position where a new round was charged for it, None for an earlier round.
        """
        rounds = self.rounds(step["name"], step["steps"]).after(step["step"], charged)
        reservations = self.reservations | {step["name"]: rounds}
        return replace(self, position=position, reservations=reservations)

    def total(self, counts=lambda user, purpose: True):
        """Return the worst that charges amount to for any one unit.

        Parameters
        ----------
        counts : callable
            Says of a user and a purpose whether their charges count; all do by default.
        """
        rule, partitions = self.terms.rule, {}
        for (user, purpose, part), total in self.totals.items():
            if counts(user, purpose):
                totals = partitions.setdefault(part and part.partition, {})
                totals[part] = rule.add(totals[part], total) if part in totals else total
        whole = partitions.pop(None, {None: rule.zero})[None]
        worst = []
        for totals in partitions.values():
            # One unit can be in so many parts of a partition, or move between them.
            moves = self.terms.relation == "replace_one" and not next(iter(totals)).by_index
            affected = self.terms.max_rows * (2 if moves else 1)
            if self.terms.unit == "person":
                # Any part may hold rows of a person.
                affected = len(totals)
            worst.append(rule.worst(list(totals.values()), affected))
        return rule.add(whole, *worst) if worst else whole

    # The (epsilon, delta) spent so far.
    spent = property(lambda self: self.terms.rule.spent(self.total(), self.terms.cap))

    def caps(self, user, purpose):
        """Return every cap that a user's charge for a purpose must keep, the data set's first."""
        inside = (cap for cap in self.sub_caps.values() if cap.counts(user, purpose))
        return [_data_set_cap(self.terms), *inside]

    def left_of(self, cap):
        """Return what a cap has left; nothing once the data set is closed."""
        if self.closed is not None:
            return 0.0, 0.0
        return self.terms.rule.left(self.total(cap.counts), cap.amounts)

    def left(self, user="", purpose=""):
        """Return what is left to a user for a purpose: the least of all caps."""
        each = map(self.left_of, self.caps(user, purpose))
        return tuple(map(min, zip(*each, strict=True)))

    def shares(self):
        """Return what counts towards each cap, and what each user and purpose named has spent."""
        rule, shares = self.terms.rule, []
        for cap in (Cap(*self.terms.cap, "data set"), *self.sub_caps.values()):
            spent = rule.spent(self.total(cap.counts), cap.amounts)
            known = {"of": str(cap), "spent": spent, "cap": cap.amounts, "left": self.left_of(cap)}
            shares.append(known)
        for place, what in enumerate(("user", "purpose")):
            names = {key[place] for key in self.totals}
            for name in sorted(names) if any(names) else ():
                total = self.total(lambda *key, i=place, n=name: key[i] == n)
                spent = rule.spent(total, self.terms.cap)
                shares.append({"of": f"{what} {name or 'not named'}", "spent": spent})
        return tuple(shares)

    def priced(self, spend, epsilon=None, delta=None):
        """Return a spend with its price, if all caps can pay for it.

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
            If a cap cannot pay.
        LedgerError
            If the data set was closed.
        """
        self.check_not_closed()
        rule, caps = self.terms.rule, self.caps(spend.user, spend.purpose)
        if epsilon is not None:
            claim = epsilon, 0.0 if delta is None else delta
            price = claimed_price(spend.event, *claim, self.terms.relation)
        if epsilon is None or not self.terms.holds_for_group(spend.event, *price):
            budgets = [(self.total(cap.counts), cap.amounts) for cap in caps]
            price = rule.price(spend.event, budgets, delta)
        spend = replace(spend, epsilon=price[0], delta=price[1])
        after = self.with_spend(spend) if price[0] < math.inf else None
        if after is None:
            # It is priced at what the cap with the least delta has left of it.
            caps.sort(key=lambda cap: self.left_of(cap)[1])
        for cap in caps:
            if after is None or not rule.within(after.total(cap.counts), cap.amounts):
                raise BudgetExceededError(price, self.left_of(cap), cap.amounts, cap.name)
        return spend
