"""What the records of a data set add up to: config, totals and the price of a next charge."""

import math
from dataclasses import field, replace
from functools import lru_cache

from skdp.accounting._composition import RULES, claimed_price, is_proved
from skdp.accounting._events import cached_event_from_json
from skdp.accounting._guarantee import Guarantee, Neighbors, PrivacyParams
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import NOTHING
from skdp.utils._validation import check_choice, check_name, check_within
from skdp.utils._values import FrozenValue, checked


class NotCopied:
    """A handle that stands for the same thing in every clone and copy."""

    def __sklearn_clone__(self, memo=None):
        return self

    __copy__ = __deepcopy__ = __sklearn_clone__


class LedgerConfig(PrivacyParams, Neighbors):
    """What a data set's budget was opened with; only the limit can change."""

    composition: str = checked(check_choice, default="basic", choices=RULES)
    rdp_order: float | None = checked(check_within, default=None, low=1.0, ends="()")
    missing_ids: str = checked(check_choice, default="error", choices=("error", "distinct"))
    on_raw_data: str = checked(check_choice, default="warn", choices=("warn", "raise"))

    limit = PrivacyParams.params

    def __post_init__(self):
        super().__post_init__()
        if self.missing_ids == "distinct" and self.unit != "person":
            raise ValueError("missing_ids='distinct' goes with unit='person'")
        if (self.rdp_order is not None) != (self.composition == "rdp"):
            raise ValueError("give rdp_order with composition='rdp', and with no other composition")

    @property
    def neighbors(self):
        """Who may change between two tables."""
        return Neighbors(relation=self.relation, unit=self.unit, max_rows=self.max_rows)

    def holds_for_group(self, event, epsilon, delta):
        """Say whether what is known to be a row's price is proved to be that of a group of rows.

        By the price of the group, or by one for a row from which the group's follows.
        """
        if self.max_rows == 1 or self.rule.single_epsilon(event, delta) <= epsilon:
            return True
        row = Guarantee(epsilon=epsilon, delta=delta, neighbors=self.neighbors).per_row
        return is_proved(event, row.epsilon, row.delta, row.relation)

    @property
    def rule(self):
        """The rule by which charges add up."""
        return _rule_of(self)


# Not a `cached_property`: it has a lock, for which a child would wait that is forked meanwhile.
@lru_cache
def _rule_of(config):
    return RULES[config.composition](config)


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


class Charge(FrozenValue):
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


class Reuse(Charge):
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
    """Return the `Charge` or the `Reuse` that each record of kind "charge" or "reuse" holds."""
    return tuple(_read(_read_entry, record) for record in records if record.kind == kind)


def composed_price(charges, config):
    """Return the (epsilon, delta) of some charges together, by the rule of a data set's config.

    Parameters
    ----------
    charges : sequence of Charge
        At least one. A single charge has its own price.
    config : LedgerConfig

    Returns
    -------
    (float, float)
    """
    if len(charges) == 1:
        return charges[0].epsilon, charges[0].delta
    rule, of_parts = config.rule, {}
    for charge in charges:
        of_parts.setdefault(("", "", charge.part), []).append(rule.cost(charge))
    totals = {key: rule.add(*costs) for key, costs in of_parts.items()}
    return State(config=config, totals=totals).spent


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
    if record.kind == "reuse":
        return Reuse(**body, epsilon=0.0, delta=0.0, **known)
    part = body.pop("part")
    charge = Charge(**body, part=None if part is None else Part(**part), **known)
    if not (0.0 <= charge.epsilon < math.inf and 0.0 <= charge.delta <= 1.0):
        raise ValueError(f"its price is ({charge.epsilon}, {charge.delta})")
    return charge


def _check_names(names, what):
    if isinstance(names, str):
        raise ValueError(f"{what} must be a list of names, got {names!r}")
    return tuple(check_name(name, what) for name in names)


class BudgetLimit(PrivacyParams):
    """A limit on what some users charge, for some purposes; that of a data set is on everything.

    Parameters
    ----------
    epsilon, delta : float
        The limit.
    name : str, default=""
        Of a limit inside the data set's: of a user, a team or a purpose.
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
def _data_set_limit(config):
    return BudgetLimit(*config.limit)


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
    rows. `sub_limits` maps names to `BudgetLimit`, `reservations` a reservation's name to its `Rounds`.
    `closed` is the reason why the data set was closed. `identity` is the hash of the record that
    opened it, None before. `reserved_from` is None for an ordinary data set; for a reserved part it
    has the `dataset` and the `hash` of the charge that pays for it.
    """

    position: tuple = NOTHING
    config: LedgerConfig | None = None
    totals: dict = field(default_factory=dict)
    sub_limits: dict = field(default_factory=dict)
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
            if self.config is not None:
                raise ValueError("the data set was opened before")
            # A nonce that makes the record's hash unlike any other ledger's.
            about_ledger = ("nonce", "reserved_from")
            config = {name: v for name, v in record.body.items() if name not in about_ledger}
            paid = record.body.get("reserved_from")
            if paid is not None and set(paid) != {"dataset", "hash"}:
                raise ValueError("it does not say which charge pays for it")
            config = LedgerConfig(**config)
            return State(position, config, identity=record.hash, reserved_from=paid)
        if record.kind == "change_limit":
            limit = {name: record.body[name] for name in ("epsilon", "delta")}
            return replace(self, position=position, config=replace(self.config, **limit))
        if record.kind == "sub_limit":
            told = ("reason", "time")
            limit = BudgetLimit(
                **{name: record.body[name] for name in record.body if name not in told}
            )
            return replace(
                self, position=position, sub_limits=self.sub_limits | {limit.name: limit}
            )
        if record.kind == "close":
            reason = str(record.body["reason"]) or "no reason"
            return replace(self, position=position, closed=reason)
        if record.kind == "charge":
            state = self.with_spend(_read_entry(record), position)
            # A step of a reservation begins a new round.
            step = record.body.get("reservation")
            return state if step is None else state._with_step(step, position, position)
        if record.kind == "reuse":
            return self._with_step(record.body["reservation"], position, None)
        raise LedgerError(f"record {record.sequence} is of the unknown kind {record.kind!r}")

    def check_not_closed(self):
        """Raise LedgerError if nothing can be charged any more."""
        if self.closed is not None:
            raise LedgerError(f"the data set was closed and accepts no charge: {self.closed}")

    def with_spend(self, charge, position=NOTHING):
        """Return the state with one more charge, which the record at a position holds."""
        rule, part = self.config.rule, charge.part
        key = charge.user, charge.purpose, part
        if part and key not in self.totals:
            same = (p for _, _, p in self.totals if p and p.partition == part.partition)
            if any(replace(p, index=part.index) != part for p in same):
                name = part.partition
                raise ValueError(f"partition {name!r} was charged with other parts before")
        total = rule.add(self.totals.get(key, rule.zero), rule.cost(charge))
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
        rule, partitions = self.config.rule, {}
        for (user, purpose, part), total in self.totals.items():
            if counts(user, purpose):
                totals = partitions.setdefault(part and part.partition, {})
                totals[part] = rule.add(totals[part], total) if part in totals else total
        whole = partitions.pop(None, {None: rule.zero})[None]
        worst = []
        for totals in partitions.values():
            # One unit can be in so many parts of a partition, or move between them.
            moves = self.config.relation == "replace_one" and not next(iter(totals)).by_index
            affected = self.config.max_rows * (2 if moves else 1)
            if self.config.unit == "person":
                # Any part may hold rows of a person.
                affected = len(totals)
            worst.append(rule.worst(list(totals.values()), affected))
        return rule.add(whole, *worst) if worst else whole

    # The (epsilon, delta) spent so far.
    spent = property(lambda self: self.config.rule.spent(self.total(), self.config.limit))

    def limits(self, user, purpose):
        """Return every limit that a user's charge for a purpose must keep, the data set's first."""
        inside = (limit for limit in self.sub_limits.values() if limit.counts(user, purpose))
        return [_data_set_limit(self.config), *inside]

    def remaining_of(self, limit):
        """Return what a limit has left; nothing once the data set is closed."""
        if self.closed is not None:
            return 0.0, 0.0
        return self.config.rule.left(self.total(limit.counts), limit.params)

    def left(self, user="", purpose=""):
        """Return what is left to a user for a purpose: the least of all limits."""
        each = map(self.remaining_of, self.limits(user, purpose))
        return tuple(map(min, zip(*each, strict=True)))

    def shares(self):
        """Return what counts towards each limit, and what each user and purpose named has spent."""
        rule, shares = self.config.rule, []
        for limit in (BudgetLimit(*self.config.limit, "data set"), *self.sub_limits.values()):
            spent = rule.spent(self.total(limit.counts), limit.params)
            known = {
                "of": str(limit),
                "spent": spent,
                "limit": limit.params,
                "left": self.remaining_of(limit),
            }
            shares.append(known)
        for place, what in enumerate(("user", "purpose")):
            names = {key[place] for key in self.totals}
            for name in sorted(names) if any(names) else ():
                total = self.total(lambda *key, i=place, n=name: key[i] == n)
                spent = rule.spent(total, self.config.limit)
                shares.append({"of": f"{what} {name or 'not named'}", "spent": spent})
        return tuple(shares)

    def priced(self, charge, epsilon=None, delta=None):
        """Return a charge with its price, if all limits can pay for it.

        Parameters
        ----------
        charge : Charge
            Its price is not read.
        epsilon, delta : float, default=None
            What the release was calibrated to; delta alone is where the event is priced, and so
            it is where they hold for a row, and not for the group of rows that is the unit.

        Raises
        ------
        BudgetExceededError
            If a limit cannot pay.
        LedgerError
            If the data set was closed.
        """
        self.check_not_closed()
        rule, limits = self.config.rule, self.limits(charge.user, charge.purpose)
        if epsilon is not None:
            claim = epsilon, 0.0 if delta is None else delta
            price = claimed_price(charge.event, *claim, self.config.relation)
        if epsilon is None or not self.config.holds_for_group(charge.event, *price):
            budgets = [(self.total(limit.counts), limit.params) for limit in limits]
            price = rule.price(charge.event, budgets, delta)
        charge = replace(charge, epsilon=price[0], delta=price[1])
        after = self.with_spend(charge) if price[0] < math.inf else None
        if after is None:
            # It is priced at what the limit with the least delta has left of it.
            limits.sort(key=lambda limit: self.remaining_of(limit)[1])
        for limit in limits:
            if after is None or not rule.within(after.total(limit.counts), limit.params):
                raise BudgetExceededError(price, self.remaining_of(limit), limit.params, limit.name)
        return charge
