"""The state of a data set after its records, and the privacy cost of the next charge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from skdp.accounting._composition import RULES, claimed_price, is_proved
from skdp.accounting._events import Event, cached_event_from_json
from skdp.accounting._guarantee import Guarantee, Neighbors, PrivacyParams
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import CHAIN_START
from skdp.utils._types import Composition
from skdp.utils._validation import check_choice, check_name, check_within
from skdp.utils._values import checked


class NotCopied:
    """Base class of handles for which clones and copies are the same object."""

    def __sklearn_clone__(self, memo=None):
        return self

    __copy__ = __deepcopy__ = __sklearn_clone__


@dataclass(frozen=True)
class LedgerConfig(PrivacyParams, Neighbors):
    """The settings with which a data set was opened. Only the limit can be changed.

    Attributes
    ----------
    neighbors : Neighbors
        The neighboring tables for which the ledger's guarantee holds.
    rule : object
        The rule by which charges add up, from `RULES`.
    """

    composition: Composition = checked(check_choice, default="basic", choices=RULES)
    rdp_order: float | None = checked(check_within, default=None, low=1.0, ends="()")
    missing_ids: str = checked(check_choice, default="error", choices=("error", "distinct"))
    on_raw_data: str = checked(check_choice, default="warn", choices=("warn", "raise"))
    # Each charge needs both, so they are made once, from the fields above.
    neighbors: Neighbors = field(init=False, repr=False, compare=False)
    rule: Any = field(init=False, repr=False, compare=False)

    limit = PrivacyParams.params

    def __post_init__(self):
        super().__post_init__()
        if self.missing_ids == "distinct" and self.unit != "person":
            raise ValueError(f"missing_ids='distinct' needs unit='person', got {self.unit!r}")
        if (self.rdp_order is not None) != (self.composition == "rdp"):
            raise ValueError(
                "rdp_order is required with composition='rdp' and not allowed otherwise, got "
                f"rdp_order={self.rdp_order!r} and composition={self.composition!r}"
            )
        neighbors = Neighbors(relation=self.relation, unit=self.unit, max_rows=self.max_rows)
        vars(self).update(neighbors=neighbors, rule=RULES[self.composition](self))

    def settings(self):
        """Return the parameters of the constructor, by name, as a ledger stores them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def holds_for_group(self, event, epsilon, delta):
        """Return True if the (epsilon, delta) for one row also bounds the cost for a group of rows.

        This holds if the group's cost, computed from the event, is no higher, or if the release
        satisfies, for one row, an (epsilon, delta) that implies this one for the group.
        """
        if self.max_rows == 1 or self.rule.single_epsilon(event, delta) <= epsilon:
            return True
        row = Guarantee(epsilon=epsilon, delta=delta, neighbors=self.neighbors).per_row
        return is_proved(event, row.epsilon, row.delta, row.relation)

    def n_affected_parts(self, part, n_parts):
        """Return the number of parts of a partition that a change to one unit can affect.

        Parameters
        ----------
        part : Part
            Any part of the partition.
        n_parts : int
            The number of parts that were charged, or of all parts.

        Returns
        -------
        int
        """
        if self.unit == "person":
            # A person can have rows in all parts.
            return n_parts
        if self.relation == "replace_one" and not part.by_index:
            # A replaced row can leave one part and enter another one.
            return 2 * self.max_rows
        return self.max_rows


@dataclass(frozen=True)
class Part:
    """One part of a partition of a data set's rows.

    Parameters
    ----------
    partition : str
        The partition's name.
    index : int
        The index of the part, from 0.
    parts : int
        Number of parts.
    by_index : bool
        True if the part of a row depends only on its index, and not on its values.
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
        Description of the release.
    event : Event
        The event of the mechanism, from which any composition method computes its cost.
    epsilon, delta : float
        The cost of this release alone, for the ledger's unit.
    seeded : bool
        True if the noise came from an integer seed.
    time : str
        Time of the charge, ISO 8601, UTC.
    version : str
        The version of skdp that made the charge.
    part : Part or None
        The part of the rows from which the release was computed; None for all rows.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    user, purpose : str
        The user who charged, and the purpose; "" if they were not named.
    """

    label: str
    event: Event
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
    """One step of a plan that ran, at no further cost, in a run that was already charged.

    Parameters
    ----------
    label : str
        Description of the release.
    event : Event
        The event of the mechanism.
    epsilon, delta : float
        0, because the charge of the run covers the step.
    seeded : bool
        True if the noise came from an integer seed.
    time, version : str
        Time of the step, ISO 8601, UTC, and the version of skdp that ran it.
    part : None
        The charge of the run records the part of the rows.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    user, purpose : str
        The user who ran it, and the purpose; "" if they were not named.
    """


def read_entries(records, kind):
    """Return the entries of the records of a kind: "charge" as `Charge`, "reuse" as `Reuse`."""
    return tuple(_read(_read_entry, record) for record in records if record.kind == kind)


def composed_price(charges, config):
    """Return the (epsilon, delta) of several charges together, by the composition of a config.

    Parameters
    ----------
    charges : sequence of Charge
        At least one charge. The cost of a single charge is the recorded one.
    config : LedgerConfig
        The configuration of the data set.

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
    """Return `reader(record)`; raise LedgerError if the record cannot be read."""
    try:
        return reader(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LedgerError(f"record {record.sequence} cannot be read: {error}") from error


def _read_entry(record):
    """Return the `Charge` or the `Reuse` of a record."""
    body = dict(record.body)
    # The number of the step in a plan is read elsewhere; see `State._with_step`.
    body.pop("reservation", None)
    body["event"] = cached_event_from_json(body["event"])
    if record.kind == "reuse":
        return Reuse(**body, epsilon=0.0, delta=0.0, sequence=record.sequence, hash=record.hash)
    part = body.pop("part")
    if part is not None:
        part = Part(**part)
    charge = Charge(**body, part=part, sequence=record.sequence, hash=record.hash)
    if not (0.0 <= charge.epsilon < math.inf and 0.0 <= charge.delta <= 1.0):
        raise ValueError(f"its cost ({charge.epsilon}, {charge.delta}) is out of range")
    return charge


def _check_names(names, parameter):
    """Return a tuple of valid names; raise ValueError for a string or an invalid name."""
    if isinstance(names, str):
        raise ValueError(f"{parameter} must be a list of names, got {names!r}")
    return tuple(check_name(name, parameter) for name in names)


@dataclass(frozen=True)
class BudgetLimit(PrivacyParams):
    """A limit on the charges of some users or for some purposes, or on all charges.

    Parameters
    ----------
    epsilon, delta : float
        The limit.
    name : str, default=""
        The name of a sub-limit: a user, a team or a purpose. "" for the data set's limit.
    users, purposes : sequence of str, default=()
        The users and the purposes whose charges count; all if none is named.
    """

    name: str = ""
    users: Sequence[str] = checked(_check_names, default=())
    purposes: Sequence[str] = checked(_check_names, default=())

    def counts(self, user, purpose):
        """Return True if a user's charge for a purpose counts toward the limit."""
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
    """A selection of the charges of one user, or for one purpose; see `State.total`."""

    user: str | None = None
    purpose: str | None = None

    def counts(self, user, purpose):
        """Return True if a user's charge for a purpose is selected."""
        return user == self.user or purpose == self.purpose


@lru_cache
def _data_set_limit(config):
    return BudgetLimit(*config.limit)


@dataclass(frozen=True)
class PlanRuns:
    """The charged runs of a reserved plan, and the number of runs of each step.

    Parameters
    ----------
    charged : tuple of (int, str)
        The sequence and the hash of each run's charge.
    step_counts : tuple of int
        For each step of the plan, the number of its runs, at most the number of charged runs.
    """

    charged: tuple
    step_counts: tuple

    def first_without(self, step):
        """Return the first run in which a step has not run, as (sequence, hash), or None."""
        count = self.step_counts[step]
        if count < len(self.charged):
            return self.charged[count]
        return None

    def with_step(self, step, position=None):
        """Return the runs after a step of the plan has run once more.

        Parameters
        ----------
        step : int
            Index of the step.
        position : tuple of (int, str), default=None
            The sequence and the hash of the charge of a new run, if the step begins one.

        Raises
        ------
        ValueError
            If the step has already run in every charged run.
        """
        charged = self.charged
        if position is not None:
            charged = (*charged, position)
        step_counts = list(self.step_counts)
        step_counts[step] += 1
        if step_counts[step] > len(charged):
            raise ValueError("a step ran in a run of the plan that was not charged")
        return PlanRuns(charged, tuple(step_counts))


@dataclass(frozen=True)
class State:
    """The state of a data set after its records up to a position in the ledger.

    Parameters
    ----------
    position : tuple of (int, str)
        The sequence and the hash of the last record.
    config : LedgerConfig or None
        The configuration with the current limit; None before the data set is opened.
    totals : dict
        Maps (user, purpose, part) to the total cost of the charges. The part is None for charges on
        all rows.
    sub_limits : dict
        Maps names to `BudgetLimit`.
    reservations : dict
        Maps the keys of reservations to `PlanRuns`.
    closed : str or None
        The reason why the data set was closed, None if it is open.
    identity : str or None
        The hash of the record that opened the data set, None before.
    reserved_from : dict or None
        For a reserved budget, the `dataset` and the `hash` of the charge that covers it.
    """

    position: tuple = CHAIN_START
    config: LedgerConfig | None = None
    totals: dict = field(default_factory=dict)
    sub_limits: dict = field(default_factory=dict)
    reservations: dict = field(default_factory=dict)
    closed: str | None = None
    identity: str | None = None
    reserved_from: dict | None = None

    def with_records(self, records):
        """Return the state after further records.

        Raises
        ------
        LedgerError
            If a record is invalid, or follows the closing of the data set.
        """
        state = self
        for record in records:
            state = _read(state._with_record, record)
        return state

    def _with_record(self, record):
        """Return the state after one further record, which is read by its kind."""
        self.check_not_closed()
        body = record.body
        position = (record.sequence, record.hash)
        if record.kind == "charge":
            state = self.with_charge(_read_entry(record), position)
            step = body.get("reservation")
            if step is None:
                return state
            # A step that begins a new run of the plan makes the charge of a reservation.
            return state._with_step(step, position, position)
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
        raise LedgerError(f"record {record.sequence} has the unknown kind {record.kind!r}")

    def _opened(self, record, position):
        """Return the state after the record that opens the data set."""
        if self.config is not None:
            raise ValueError("the data set was opened before")
        body = dict(record.body)
        # The nonce only makes the hash of the record unique.
        body.pop("nonce", None)
        reserved_from = body.pop("reserved_from", None)
        if reserved_from is not None and set(reserved_from) != {"dataset", "hash"}:
            raise ValueError("reserved_from must have a dataset and the hash of a charge")
        config = LedgerConfig(**body)
        return State(position, config, identity=record.hash, reserved_from=reserved_from)

    def check_not_closed(self):
        """Raise LedgerError if the data set is closed."""
        if self.closed is not None:
            raise LedgerError(f"the data set was closed and accepts no charge: {self.closed}")

    def with_charge(self, charge, position=CHAIN_START):
        """Return the state after one more charge; its record is at `position`.

        ValueError is raised if the part's partition was charged with a different number of parts.
        """
        rule = self.config.rule
        part = charge.part
        key = charge.user, charge.purpose, part
        if part and key not in self.totals:
            for _, _, other in self.totals:
                if other is None or other.partition != part.partition:
                    continue
                if replace(other, index=part.index) != part:
                    raise ValueError(
                        f"partition {part.partition!r} was charged with other parts before: "
                        f"parts={other.parts}, by_index={other.by_index}"
                    )
        cost = rule.cost(charge)
        total = cost
        if key in self.totals:
            total = rule.add(self.totals[key], cost)
        return replace(self, position=position, totals=self.totals | {key: total})

    def plan_runs(self, name, n_steps):
        """Return the `PlanRuns` of a reservation; raise ValueError if its plan had other steps."""
        runs = self.reservations.get(name, PlanRuns(charged=(), step_counts=(0,) * n_steps))
        if len(runs.step_counts) != n_steps:
            raise ValueError(f"reservation {name!r} was charged with another plan before")
        return runs

    def _with_step(self, step, position, charged):
        """Return the state after a step of a reservation; its record is at `position`.

        `charged` is the position of the charge of a new run, None if the step ran in an earlier
        one.
        """
        runs = self.plan_runs(step["name"], step["steps"]).with_step(step["step"], charged)
        reservations = self.reservations | {step["name"]: runs}
        return replace(self, position=position, reservations=reservations)

    def total(self, limit=None, charged_part=None):
        """Return the total cost of the charges that count toward a limit.

        Charges on all rows add up. Within a partition, only the most expensive parts add up: the
        number of parts that can contain rows of one unit (parallel composition).

        Parameters
        ----------
        limit : BudgetLimit or _UserTotal, default=None
            Limit whose charges are added up; None counts all charges.
        charged_part : Part, default=None
            Part that counts even if others of its partition are more expensive, so a further
            charge on it adds to the total. None counts the most expensive parts.
        """
        rule = self.config.rule
        partitions = {}
        for (user, purpose, part), total in self.totals.items():
            if limit is None or limit.counts(user, purpose):
                totals = partitions.setdefault(part and part.partition, {})
                if part in totals:
                    total = rule.add(totals[part], total)
                totals[part] = total
        all_rows = partitions.pop(None, {None: rule.zero})[None]
        if not partitions:
            return all_rows
        partition_totals = []
        for partition, totals in partitions.items():
            if charged_part is not None and charged_part.partition == partition:
                n_parts = len({*totals, charged_part})
                n_affected = self.config.n_affected_parts(charged_part, n_parts)
                others = [total for part, total in totals.items() if part != charged_part]
                partition_totals.append(totals.get(charged_part, rule.zero))
                partition_totals.append(rule.worst(others, n_affected - 1))
                continue
            n_affected = self.config.n_affected_parts(next(iter(totals)), len(totals))
            partition_totals.append(rule.worst(list(totals.values()), n_affected))
        return rule.add(all_rows, *partition_totals)

    @property
    def spent(self):
        """The (epsilon, delta) spent so far."""
        return self.config.rule.spent(self.total(), self.config.limit)

    def limits(self, user, purpose):
        """Return all limits on a user's charge for a purpose, the data set's limit first."""
        limits = [_data_set_limit(self.config)]
        for limit in self.sub_limits.values():
            if limit.counts(user, purpose):
                limits.append(limit)
        return limits

    def remaining_of(self, limit, part=None):
        """Return the remaining (epsilon, delta) of a limit; (0, 0) if the data set is closed."""
        if self.closed is not None:
            return 0.0, 0.0
        return self.config.rule.remaining(self.total(limit, part), limit.params)

    def remaining(self, user="", purpose="", part=None):
        """Return the smallest remaining epsilon and delta of all limits on a user and purpose.

        With a part of the rows, they are what remains for charges on this part.
        """
        remaining = [self.remaining_of(limit, part) for limit in self.limits(user, purpose)]
        return min(epsilon for epsilon, _ in remaining), min(delta for _, delta in remaining)

    def breakdown(self):
        """Return a tuple of one dict for each limit and for each named user and purpose.

        Each dict has the total in `spent`. That of a limit also has `limit` and `remaining`.
        """
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
        # Charges without a name are listed only if some charges have a name.
        if any(users):
            for user in sorted(users):
                spent = rule.spent(self.total(_UserTotal(user=user)), self.config.limit)
                entries.append({"of": f"user {user or 'not named'}", "spent": spent})
        if any(purposes):
            for purpose in sorted(purposes):
                spent = rule.spent(self.total(_UserTotal(purpose=purpose)), self.config.limit)
                entries.append({"of": f"purpose {purpose or 'not named'}", "spent": spent})
        return tuple(entries)

    def price_charge(self, charge, epsilon=None, delta=None):
        """Return a charge with its cost, after a check that it respects all limits.

        Parameters
        ----------
        charge : Charge
            A charge without a cost.
        epsilon, delta : float, default=None
            The (epsilon, delta) to which the release was calibrated. With delta alone, epsilon is
            computed from the event at this delta. The same is done if the two hold for a row, but
            not for the group of rows that is the unit.

        Raises
        ------
        BudgetExceededError
            If the charge exceeds a limit.
        LedgerError
            If the data set is closed.
        """
        self.check_not_closed()
        limits = self.limits(charge.user, charge.purpose)
        rule = self.config.rule
        price = None
        if epsilon is not None:
            claimed_delta = 0.0
            if delta is not None:
                claimed_delta = delta
            price = claimed_price(charge.event, epsilon, claimed_delta, self.config.relation)
            if not self.config.holds_for_group(charge.event, *price):
                price = None
        if price is None:
            budgets = []
            for limit in limits:
                budgets.append((self.total(limit), (limit.epsilon, limit.delta)))
            price = rule.price(charge.event, budgets, delta)
        if price[0] == math.inf:
            # The limit with the smallest remaining delta determines the cost.
            limit = min(limits, key=lambda limit: self.remaining_of(limit)[1])
            raise BudgetExceededError(price, self.remaining_of(limit), limit.params, limit.name)
        charge = replace(charge, epsilon=price[0], delta=price[1])
        new_state = self.with_charge(charge)
        for limit in limits:
            if not rule.is_within(new_state.total(limit), (limit.epsilon, limit.delta)):
                raise BudgetExceededError(price, self.remaining_of(limit), limit.params, limit.name)
        return charge
