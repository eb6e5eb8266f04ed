"""The state that the records of a data set add up to, and the price of the next charge."""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

from skdp.accounting._composition import RULES, claimed_price, is_proved
from skdp.accounting._events import cached_event_from_json
from skdp.accounting._guarantee import Guarantee, Neighbors, PrivacyParams
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import NOTHING
from skdp.utils._validation import check_choice, check_name, check_within
from skdp.utils._values import checked


class NotCopied:
    """A handle that every clone and copy shares."""

    def __sklearn_clone__(self, memo=None):
        return self

    __copy__ = __deepcopy__ = __sklearn_clone__


@dataclass(frozen=True)
class LedgerConfig(PrivacyParams, Neighbors):
    """The settings with which a data set was opened; only the limit can change."""

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
        """The `Neighbors` under which the ledger's guarantee holds."""
        return Neighbors(relation=self.relation, unit=self.unit, max_rows=self.max_rows)

    def holds_for_group(self, event, epsilon, delta):
        """Return True if (epsilon, delta) of one row also bounds a group of rows.

        It does if the group's own price is no higher, or if the row satisfies an (epsilon, delta)
        from which the group's follows.
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
class Charge:
    """One charge in the ledger.

    Parameters
    ----------
    label : str
        Description of the release, as it was charged.
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
        Who charged, and why; "" where it was not stated.
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


@dataclass(frozen=True)
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
    rule = config.rule
    costs_by_part = {}
    for charge in charges:
        costs_by_part.setdefault(("", "", charge.part), []).append(rule.cost(charge))
    totals = {key: rule.add(*costs) for key, costs in costs_by_part.items()}
    return State(config=config, totals=totals).spent


def _read(reader, record):
    """Return the value that a function reads from a record; LedgerError if it cannot be read."""
    try:
        return reader(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LedgerError(f"record {record.sequence} cannot be read: {error}") from error


def _read_entry(record):
    body = dict(record.body)
    # It says in which run of a plan a step was; see `State._with_step`.
    body.pop("reservation", None)
    body["event"] = cached_event_from_json(body["event"])
    if record.kind == "reuse":
        return Reuse(**body, epsilon=0.0, delta=0.0, sequence=record.sequence, hash=record.hash)
    part = body.pop("part")
    if part is not None:
        part = Part(**part)
    charge = Charge(**body, part=part, sequence=record.sequence, hash=record.hash)
    if not (0.0 <= charge.epsilon < math.inf and 0.0 <= charge.delta <= 1.0):
        raise ValueError(f"its price is ({charge.epsilon}, {charge.delta})")
    return charge


def _check_names(names, what):
    if isinstance(names, str):
        raise ValueError(f"{what} must be a list of names, got {names!r}")
    return tuple(check_name(name, what) for name in names)


@dataclass(frozen=True)
class BudgetLimit(PrivacyParams):
    """A limit on the charges of some users, for some purposes; a data set's is on all charges.

    Parameters
    ----------
    epsilon, delta : float
        The limit.
    name : str, default=""
        The name of a limit inside the data set's: a user, a team or a purpose.
    users, purposes : sequence of str, default=()
        Whose charges count, and for which purposes; all if none is named.
    """

    name: str = ""
    users: tuple = checked(_check_names, default=())
    purposes: tuple = checked(_check_names, default=())

    def counts(self, user, purpose):
        """Return True if a user's charge for a purpose counts towards it."""
        counts_user = not self.users or user in self.users
        return counts_user and (not self.purposes or purpose in self.purposes)

    def __str__(self):
        text = self.name
        if self.users:
            text += f" of {', '.join(self.users)}"
        if self.purposes:
            text += f" for {', '.join(self.purposes)}"
        return text


@dataclass(frozen=True)
class _UserTotal:
    """Selects the charges of one user, or for one purpose, as a `BudgetLimit` selects its own."""

    user: str | None = None
    purpose: str | None = None

    def counts(self, user, purpose):
        """Return True if a user's charge for a purpose is one of them."""
        return user == self.user or purpose == self.purpose


@lru_cache
def _data_set_limit(config):
    return BudgetLimit(*config.limit)


@dataclass(frozen=True)
class PlanRuns:
    """The charged runs of a reserved plan, and how often each step has run.

    Parameters
    ----------
    charged : tuple of (int, str)
        The sequence and the hash of each run's charge.
    step_counts : tuple of int
        For each step of the plan, in how many runs it was; never more than were charged.
    """

    charged: tuple
    step_counts: tuple

    def first_without(self, step):
        """Return the first run in which a step has not run, as (sequence, hash), or None."""
        count = self.step_counts[step]
        return self.charged[count] if count < len(self.charged) else None

    def after(self, step, position=None):
        """Return the runs after a step ran, in a new run if its position is given."""
        charged = self.charged if position is None else (*self.charged, position)
        step_counts = list(self.step_counts)
        step_counts[step] += 1
        if step_counts[step] > len(charged):
            raise ValueError("a step ran in a run of the plan that was not charged")
        return PlanRuns(charged, tuple(step_counts))


@dataclass(frozen=True)
class State:
    """The sum of the records of a data set up to a position in the ledger.

    `totals` maps (user, purpose, part) to the total of their charges; the part is None for all
    rows. `sub_limits` maps names to `BudgetLimit`, `reservations` names to `PlanRuns`.
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
            state = _read(state._after_record, record)
        return state

    def _after_record(self, record):
        """Return the state after one more record."""
        self.check_not_closed()
        body = record.body
        position = (record.sequence, record.hash)
        if record.kind == "charge":
            state = self.with_charge(_read_entry(record), position)
            step = body.get("reservation")
            # A step of a reservation, which begins a new run of its plan.
            return state if step is None else state._with_step(step, position, position)
        if record.kind == "reuse":
            return self._with_step(body["reservation"], position, None)
        if record.kind == "open":
            return self._opened(record, position)
        if record.kind == "change_limit":
            config = replace(self.config, epsilon=body["epsilon"], delta=body["delta"])
            return replace(self, position=position, config=config)
        if record.kind == "sub_limit":
            params = {name: body[name] for name in body if name not in ("reason", "time")}
            limit = BudgetLimit(**params)
            sub_limits = self.sub_limits | {limit.name: limit}
            return replace(self, position=position, sub_limits=sub_limits)
        if record.kind == "close":
            reason = str(body["reason"]) or "no reason"
            return replace(self, position=position, closed=reason)
        raise LedgerError(f"record {record.sequence} is of the unknown kind {record.kind!r}")

    def _opened(self, record, position):
        if self.config is not None:
            raise ValueError("the data set was opened before")
        settings = dict(record.body)
        # A nonce that makes the record's hash unlike any other ledger's.
        settings.pop("nonce", None)
        reserved_from = settings.pop("reserved_from", None)
        if reserved_from is not None and set(reserved_from) != {"dataset", "hash"}:
            raise ValueError("it does not say which charge pays for it")
        config = LedgerConfig(**settings)
        return State(position, config, identity=record.hash, reserved_from=reserved_from)

    def check_not_closed(self):
        """Raise LedgerError if nothing can be charged any more."""
        if self.closed is not None:
            raise LedgerError(f"the data set was closed and accepts no charge: {self.closed}")

    def with_charge(self, charge, position=NOTHING):
        """Return the state with one more charge, which the record at a position holds."""
        rule = self.config.rule
        part = charge.part
        key = charge.user, charge.purpose, part
        if part and key not in self.totals:
            same = (p for _, _, p in self.totals if p and p.partition == part.partition)
            if any(replace(p, index=part.index) != part for p in same):
                name = part.partition
                raise ValueError(f"partition {name!r} was charged with other parts before")
        cost = rule.cost(charge)
        total = rule.add(self.totals[key], cost) if key in self.totals else cost
        return replace(self, position=position, totals=self.totals | {key: total})

    def plan_runs(self, name, n_steps):
        """Return the `PlanRuns` of a reservation whose plan has a number of steps."""
        runs = self.reservations.get(name, PlanRuns((), (0,) * n_steps))
        if len(runs.step_counts) != n_steps:
            raise ValueError(f"reservation {name!r} was charged with another plan before")
        return runs

    def _with_step(self, step, position, charged):
        """Return the state after a step of a reservation, which the record at a position is about.

        `charged` is the position where a new run was charged for it, None for an earlier run.
        """
        runs = self.plan_runs(step["name"], step["steps"]).after(step["step"], charged)
        reservations = self.reservations | {step["name"]: runs}
        return replace(self, position=position, reservations=reservations)

    def total(self, limit=None):
        """Return the total of the charges that count towards a limit, for any one unit.

        Parameters
        ----------
        limit : BudgetLimit or UserTotal, default=None
            None counts all charges.
        """
        rule = self.config.rule
        partitions = {}
        for (user, purpose, part), total in self.totals.items():
            if limit is None or limit.counts(user, purpose):
                totals = partitions.setdefault(part and part.partition, {})
                totals[part] = rule.add(totals[part], total) if part in totals else total
        all_rows = partitions.pop(None, {None: rule.zero})[None]
        if not partitions:
            return all_rows
        worst = []
        for totals in partitions.values():
            # The rows of one unit can be in this many parts of a partition, or move between them.
            moves = self.config.relation == "replace_one" and not next(iter(totals)).by_index
            affected = self.config.max_rows * (2 if moves else 1)
            if self.config.unit == "person":
                # Any part may hold rows of a person.
                affected = len(totals)
            worst.append(rule.worst(list(totals.values()), affected))
        return rule.add(all_rows, *worst)

    @property
    def spent(self):
        """The (epsilon, delta) spent so far."""
        return self.config.rule.spent(self.total(), self.config.limit)

    def limits(self, user, purpose):
        """Return every limit on a user's charge for a purpose, the data set's first."""
        limits = [_data_set_limit(self.config)]
        for limit in self.sub_limits.values():
            if limit.counts(user, purpose):
                limits.append(limit)
        return limits

    def remaining_of(self, limit):
        """Return the remainder of a limit; (0, 0) once the data set is closed."""
        if self.closed is not None:
            return 0.0, 0.0
        return self.config.rule.left(self.total(limit), limit.params)

    def remaining(self, user="", purpose=""):
        """Return the remainder for a user and a purpose: the smallest epsilon and delta."""
        remaining = [self.remaining_of(limit) for limit in self.limits(user, purpose)]
        return min(epsilon for epsilon, _ in remaining), min(delta for _, delta in remaining)

    def breakdown(self):
        """Return the totals of each limit, and of each user and purpose that was named."""
        rule = self.config.rule
        entries = []
        for limit in (BudgetLimit(*self.config.limit, "data set"), *self.sub_limits.values()):
            entries.append(
                {
                    "of": str(limit),
                    "spent": rule.spent(self.total(limit), limit.params),
                    "limit": limit.params,
                    "remaining": self.remaining_of(limit),
                }
            )
        users = {user for user, _, _ in self.totals}
        purposes = {purpose for _, purpose, _ in self.totals}
        for user in sorted(users) if any(users) else ():
            spent = rule.spent(self.total(_UserTotal(user=user)), self.config.limit)
            entries.append({"of": f"user {user or 'not named'}", "spent": spent})
        for purpose in sorted(purposes) if any(purposes) else ():
            spent = rule.spent(self.total(_UserTotal(purpose=purpose)), self.config.limit)
            entries.append({"of": f"purpose {purpose or 'not named'}", "spent": spent})
        return tuple(entries)

    def priced(self, charge, epsilon=None, delta=None):
        """Return a charge with its price, if it keeps all limits.

        Parameters
        ----------
        charge : Charge
            Its price is not read.
        epsilon, delta : float, default=None
            What the release was calibrated to. Delta alone is where the event is priced; so it is
            where the two hold for a row, and not for the group of rows that is the unit.

        Raises
        ------
        BudgetExceededError
            If a limit cannot pay.
        LedgerError
            If the data set was closed.
        """
        self.check_not_closed()
        limits = self.limits(charge.user, charge.purpose)
        rule = self.config.rule
        price = None
        if epsilon is not None:
            claimed_delta = 0.0 if delta is None else delta
            price = claimed_price(charge.event, epsilon, claimed_delta, self.config.relation)
            if not self.config.holds_for_group(charge.event, *price):
                price = None
        if price is None:
            budgets = []
            for limit in limits:
                budgets.append((self.total(limit), (limit.epsilon, limit.delta)))
            price = rule.price(charge.event, budgets, delta)
        if price[0] == math.inf:
            # It is priced at what the limit with the smallest delta has left of it.
            limit = min(limits, key=lambda limit: self.remaining_of(limit)[1])
            raise BudgetExceededError(price, self.remaining_of(limit), limit.params, limit.name)
        charge = replace(charge, epsilon=price[0], delta=price[1])
        after = self.with_charge(charge)
        for limit in limits:
            if not rule.within(after.total(limit), (limit.epsilon, limit.delta)):
                raise BudgetExceededError(price, self.remaining_of(limit), limit.params, limit.name)
        return charge
