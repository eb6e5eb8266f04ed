"""Plans of several releases that are charged together, before the first of them is made.

A plan is a tuple of `PlannedCharge`, one per step. Its parameters are fixed when it is charged, so
the tightest bound on the composition of its events is its privacy cost. An estimator that runs a
step receives a handle instead of its accountant. The `charge` of the handle adds no charge, but
checks that the release was planned and that it is made once.
"""

import hashlib
import math
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

from skdp._version import __version__
from skdp.accounting._bounds import get_epsilon
from skdp.accounting._composition import claimed_price, is_proved
from skdp.accounting._events import ApproximateDP, Composed, Event, Gaussian, PureDP, leaves
from skdp.accounting._laws import group_event
from skdp.exceptions import BudgetExceededError
from skdp.ledger._accountant import PrivacyAccountant
from skdp.ledger._state import Charge, LedgerConfig, NotCopied
from skdp.utils._documents import count_of
from skdp.utils._rounding import format_rounded_up
from skdp.utils._types import Relation
from skdp.utils._validation import check_delta, check_epsilon
from skdp.utils._values import FrozenValue, checked


@dataclass(frozen=True)
class PlannedCharge(FrozenValue):
    """One release of a plan.

    Parameters
    ----------
    name : str
        The name of the step that makes it.
    event : Event
        The planned event of the mechanism. `ApproximateDP` (or `PureDP`) of `epsilon` and `delta`
        is a placeholder for any mechanism that is calibrated to them.
    epsilon, delta : float
        The (epsilon, delta) for one row to which the step is calibrated.
    stages : tuple of skdp.mechanisms.Stage, default=()
        The stages of the release, for its description. Empty if they depend on a shape that is
        unknown.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> from skdp.ledger import PlannedCharge
    >>> planned = PlannedCharge("model", Gaussian(2.0), 2.0, 1e-5)
    >>> planned.covers(Gaussian(3.0), "add_remove"), planned.covers(Gaussian(1.0), "add_remove")
    (True, False)
    """

    name: str
    event: Event
    epsilon: float = checked(check_epsilon)
    delta: float = checked(check_delta, default=0.0)
    stages: tuple = field(default=(), compare=False, repr=False)

    @property
    def exact(self) -> bool:
        """True if the event is that of the mechanism, not a placeholder."""
        return not isinstance(self.event, ApproximateDP | PureDP)

    def covers(self, event: Event, relation: Relation) -> bool:
        """Return True if a release costs at most as much as the planned one, at every delta.

        This holds in two cases. In the first, the Gaussians of the release, which compose to one
        Gaussian, have at least as much noise as the planned ones, and its other events are among
        the planned ones. In the second, the planned event is a placeholder whose (epsilon, delta)
        the release satisfies.

        Parameters
        ----------
        event : Event
            The event of the release.
        relation : {"add_remove", "replace_one"}
            The relation between neighboring tables.

        Returns
        -------
        bool
        """
        requested, requested_others = _precision_and_others(event)
        planned, planned_others = _precision_and_others(self.event)
        are_planned = all(n <= planned_others[leaf] for leaf, n in requested_others.items())
        if are_planned and requested <= planned:
            return True
        if not isinstance(self.event, ApproximateDP | PureDP):
            return False
        delta = getattr(self.event, "delta", 0.0)
        return is_proved(event, self.event.epsilon, delta, relation)

    def price(
        self, event: Event, epsilon: float | None, delta: float | None, config: LedgerConfig
    ) -> tuple[float, float]:
        """Return the (epsilon, delta) of a covered release alone, for the unit of the config.

        Parameters
        ----------
        event : Event
            The event of the release.
        epsilon, delta : float or None
            The (epsilon, delta) to which the release is calibrated; None means the planned values.
        config : LedgerConfig
            The configuration of the accountant.

        Returns
        -------
        (float, float)
            Epsilon and delta for the unit.

        Raises
        ------
        ValueError
            If the release is not covered, or costs more than the (epsilon, delta) that it claims.
        """
        if not self.covers(event, config.relation):
            raise ValueError(
                f"step {self.name!r} would make a release that was not planned: {event} instead "
                f"of {self.event}. A parameter or the shape of the table changed after the plan "
                "was made; make a new plan"
            )
        if epsilon is None:
            epsilon = self.epsilon
            if delta is None:
                delta = self.delta
        if delta is None:
            delta = 0.0
        price = claimed_price(event, epsilon, delta, config.relation)
        if config.max_rows == 1:
            return price
        cost = get_epsilon(event, delta, relation=config.relation, group_size=config.max_rows)
        if cost < math.inf:
            return (cost, delta)
        # For several rows, no finite epsilon is known at the delta of one row. Their delta is
        # larger.
        group = group_event(ApproximateDP(*price), config.max_rows)
        return (group.epsilon, group.delta)


def _precision_and_others(event):
    """Return the sum of 1 / noise_multiplier**2 over Gaussians, and a counter of other events.

    The composition of Gaussians is one Gaussian with this precision (Dong, Roth and Su 2022,
    Corollary 3.3). The precision is an exact fraction.

    Parameters
    ----------
    event : Event
    """
    precision = Fraction(0)
    others = Counter()
    for leaf, count in leaves(event).items():
        if isinstance(leaf, Gaussian):
            precision += count / Fraction(leaf.noise_multiplier) ** 2
        else:
            others[leaf] += count
    return precision, others


def covering_event(events):
    """Return one event that costs at least as much as each alternative event of a release.

    Alternatives may differ by rounding, for example between tables of different shapes. They may
    also differ by the delta that is reserved to find categories, which a table without categories
    does not need. If they differ by more, a plan keeps its placeholder, an event of (epsilon,
    delta).

    Parameters
    ----------
    events : sequence of Event

    Returns
    -------
    Event or None
        One Gaussian, whose noise multiplier is smaller by a relative 1e-9 than the smallest of the
        alternatives, and the largest number of each reserved delta. None if an event is not a
        composition of Gaussians and reserved deltas, or if the squared inverse noise multipliers
        differ by more than a relative 1e-9, or by more than 5 % if deltas are reserved.
    """
    parts = [_precision_and_others(event) for event in events]
    precisions = [precision for precision, _ in parts]
    reserved = Counter()
    for _, others in parts:
        reserved |= others
    reserves_delta = all(isinstance(e, ApproximateDP) and e.epsilon == 0.0 for e in reserved)
    tolerance = Fraction(1, 10**9)
    if reserved:
        # A reserved delta reduces the Gaussian's budget by a few percent at most.
        tolerance = Fraction(1, 20)
    is_close = max(precisions) <= min(precisions) * (1 + tolerance)
    if not (min(precisions) > 0 and reserves_delta and is_close):
        return None
    gaussian = Gaussian((1 - 1e-9) / math.sqrt(max(precisions)))
    if not reserved:
        return gaussian
    return Composed((gaussian, *reserved.elements()))


def plan_event(plan: Sequence[PlannedCharge]) -> Event:
    """Return the event of a whole plan.

    Parameters
    ----------
    plan : sequence of PlannedCharge
        The releases of the plan.

    Returns
    -------
    Composed
        The composition of the planned events.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, get_epsilon
    >>> from skdp.ledger import PlannedCharge, plan_event
    >>> plan = [PlannedCharge(name, Gaussian(4.0), 2.0, 1e-5) for name in ("scaler", "model")]
    >>> round(get_epsilon(plan_event(plan), 1e-5), 2)
    1.36
    """
    return Composed(tuple(step.event for step in plan))


def _describe_plan(n_steps, price):
    """Return a description of a plan and its cost.

    Parameters
    ----------
    n_steps : int or None
        Number of releases of the plan, None if it is secret.
    price : Charge, Reservation or None
        An object with the `epsilon` and `delta` of one run of the plan; None if the plan is not
        charged.
    """
    releases = "a secret number of releases"
    if n_steps is not None:
        releases = count_of(n_steps, "release")
    description = f"part of a plan of {releases}"
    if price is None:
        return f"{description}, not charged"
    cost = f"epsilon={format_rounded_up(price.epsilon)}, delta={format_rounded_up(price.delta)}"
    return f"{description} that was charged as one, ({cost}) together"


class _HasPlannedCharge(Protocol):
    """The attributes of a subclass of `_PlannedRelease`."""

    @property
    def planned(self) -> PlannedCharge:
        """The planned release."""

    @property
    def config(self) -> LedgerConfig:
        """The configuration of the accountant."""

    def _paying_charge(
        self, price: tuple[float, float], event: Event, label: str, seeded: bool
    ) -> Charge:
        """Return the charge that covers the release."""

    def _plan_price(self) -> tuple[float, float] | None:
        """Return the (epsilon, delta) of a run of the whole plan, None if it was not charged."""


class _PlannedRelease(NotCopied):
    """One release of a plan, to be used instead of an estimator's accountant.

    A subclass has the attributes of `_HasPlannedCharge`.
    """

    def charge(
        self: _HasPlannedCharge,
        event: Event,
        *,
        label: str = "",
        epsilon: float | None = None,
        delta: float | None = None,
        seeded: bool = False,
    ) -> Charge:
        """Check and record the release; the parameters are as in `PrivacyAccountant.charge`.

        Parameters
        ----------
        event : Event
            The event of the mechanism, from `skdp.accounting`.
        label : str, default=""
            Description of the release.
        epsilon, delta : float, default=None
            The (epsilon, delta) to which the release is calibrated; None means the planned values.
        seeded : bool, default=False
            Whether the noise comes from an integer seed.

        Returns
        -------
        Charge
            This release and its cost, with the sequence and hash of the charge that covers it.

        Raises
        ------
        ValueError
            If the release is not covered by the planned one.
        BudgetExceededError
            If an allowance was already used, or if another run of the plan exceeds the budget.
        LedgerError
            If another run must be charged and the ledger cannot be used.
        """
        price = self.planned.price(event, epsilon, delta, self.config)
        charge = self._paying_charge(price, event, label, seeded)
        plan = self._plan_price()
        # The whole plan may be cheaper than the price of a step alone, which is a looser bound.
        if plan is not None and plan[0] <= price[0] and plan[1] <= price[1]:
            price = plan
        return replace(charge, label=label, event=event, epsilon=price[0], delta=price[1])


class Allowance(_PlannedRelease):
    """A planned release that has already been charged and can be made once.

    An estimator uses it instead of its accountant if the caller has charged a whole plan. It opens
    no ledger, so it can be sent to another process. Send only one copy. A second release is
    refused, even in a clone of the estimator.

    Parameters
    ----------
    planned : PlannedCharge
        The release.
    config : LedgerConfig
        The configuration of the accountant that was charged; see `skdp.base.terms_of`.
    plan_charge : Charge or None
        The charge that covers the plan, None if nothing was charged.
    steps : int or None, default=1
        Number of releases in the plan, None if it is secret.
    """

    def __init__(
        self,
        planned: PlannedCharge,
        config: LedgerConfig,
        plan_charge: Charge | None,
        steps: int | None = 1,
    ):
        self.planned = planned
        self.config = config
        self.plan_charge = plan_charge
        self.steps = steps
        # `list.pop` is atomic: if two threads call it, the list is empty for one of them.
        self._unused = [True]

    @property
    def plan(self) -> str:
        """Description of the plan and its cost."""
        return _describe_plan(self.steps, self.plan_charge)

    def _paying_charge(self, price, event, label, seeded):
        """Return the charge of the plan; raise BudgetExceededError if it was already used."""
        try:
            self._unused.pop()
        except IndexError:
            total = (self.planned.epsilon, self.planned.delta)
            raise BudgetExceededError(price, (0.0, 0.0), total) from None
        charge = self.plan_charge or Charge(label, event, *price, seeded, time="", version="")
        return replace(charge, seeded=bool(seeded), version=__version__)

    def _plan_price(self):
        """Return the (epsilon, delta) of a run of the whole plan, None if it was not charged."""
        if self.plan_charge is None:
            return None
        return (self.plan_charge.epsilon, self.plan_charge.delta)

    def __repr__(self):
        state = "used"
        if self._unused:
            state = "unused"
        return f"Allowance({self.planned.name!r}, {state})"


def _new_name():
    """Return a name that no other reservation has."""
    return uuid.uuid4().hex


def _check_plan(planned, name):
    """Return a sequence of planned charges as a tuple, or raise `ValueError` if it is empty."""
    if not planned:
        raise ValueError(f"{name} is empty: a plan needs at least one PlannedCharge")
    return tuple(planned)


@dataclass(frozen=True)
class Reservation(NotCopied, FrozenValue):
    """A plan whose rounds are charged to an accountant, each when its first step runs.

    A round is one run of all steps. A step uses a charged round in which it has not run yet. If
    there is none, it charges a new round, for the whole plan. So if the ledger has charged r
    rounds, no step has run more than r times, regardless of the steps' order and processes, and
    everything released is part of r runs of the whole plan.

    Copies and pickles refer to the same reservation. Creating one charges nothing. The rounds are
    charged to the accountant's data set; a reserved budget (`PrivacyAccountant.reserve`) is
    something else: a separate data set, for charges that are not planned.

    Parameters
    ----------
    accountant : PrivacyAccountant
        The accountant to charge.
    planned : tuple of PlannedCharge
        The plan.
    epsilon, delta : float
        The cost of a round, for the accountant's unit.
    label : str, default="plan"
        The label of a round's charge in the ledger.
    name : str, default=None
        The name of the reservation, a new one by default.

    Attributes
    ----------
    steps : tuple of ReservedStep
        The handles that estimators use as their accountants, in the order of the plan.
    """

    accountant: PrivacyAccountant
    planned: tuple[PlannedCharge, ...] = field(metadata={"check": _check_plan})
    epsilon: float
    delta: float
    label: str = "plan"
    name: str = field(default_factory=_new_name)

    @property
    def event(self) -> Event:
        """The event of one run of the plan."""
        return plan_event(self.planned)

    @property
    def key(self) -> str:
        """The name in the ledger, which differs by plan, part, user and purpose."""
        user = self.accountant.user
        purpose = self.accountant.purpose
        text = f"{self.event.to_json()} {self.accountant.part}"
        if user or purpose:
            text += f" {(user, purpose)}"
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def steps(self) -> "tuple[ReservedStep, ...]":
        """One handle per step, to be used instead of an estimator's accountant."""
        return tuple(ReservedStep(self, index) for index in range(len(self.planned)))

    @property
    def rounds(self) -> int:
        """Number of rounds that the ledger has charged."""
        return len(self.accountant._plan_runs(self).charged)

    def new_rounds(self, runs: Sequence[int]) -> int:
        """Return the number of new rounds that will be charged for further runs of the steps.

        Parameters
        ----------
        runs : sequence of int
            For each step, the number of times that it will run.

        Returns
        -------
        int
        """
        plan_runs = self.accountant._plan_runs(self)
        counts = zip(plan_runs.step_counts, runs, strict=True)
        n_needed = max(count + n_new for count, n_new in counts)
        return max(0, n_needed - len(plan_runs.charged))

    def __repr__(self):
        return (
            f"Reservation({self.label!r}, {count_of(len(self.planned), 'step')}, {self.name[:8]})"
        )


@dataclass(frozen=True)
class ReservedStep(_PlannedRelease, FrozenValue):
    """One step of a reservation, to be used instead of an estimator's accountant.

    Parameters
    ----------
    reservation : Reservation
        The reservation.
    index : int
        The index of the step, from 0.
    """

    reservation: Reservation
    index: int

    @property
    def planned(self) -> PlannedCharge:
        """The planned release of this step."""
        return self.reservation.planned[self.index]

    @property
    def config(self) -> LedgerConfig:
        """The configuration of the accountant that is charged."""
        return self.reservation.accountant.config

    @property
    def dataset(self) -> str:
        """The data set of the accountant that is charged."""
        return self.reservation.accountant.dataset

    @property
    def plan(self) -> str:
        """Description of the plan and its cost."""
        return _describe_plan(len(self.reservation.planned), self.reservation)

    def _open_config(self):
        return self.reservation.accountant._open_config()

    def _paying_charge(self, price, event, label, seeded):
        """Reuse a run of the plan that is already charged, or charge a new one."""
        reservation = self.reservation
        accountant = self.reservation.accountant
        step_label = self.planned.name
        if label:
            step_label += f" ({label})"
        run_label = f"{reservation.label}, from {step_label}"
        request = accountant._make_request(reservation.event, run_label, seeded)
        entry = accountant._make_request(event, step_label, seeded)
        step = {"name": reservation.key, "step": self.index, "steps": len(reservation.planned)}
        return accountant._charge_step(request, reservation.epsilon, reservation.delta, step, entry)

    def _plan_price(self):
        """Return the (epsilon, delta) of a run of the whole plan."""
        return (self.reservation.epsilon, self.reservation.delta)

    def __repr__(self):
        return f"ReservedStep({self.planned.name!r}, {self.reservation!r})"
