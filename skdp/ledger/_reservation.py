"""Several releases that are charged together, before the first of them is made.

A plan is a tuple of `PlannedCharge`, one a step. Its parameters are fixed when it is charged, so
that the tightest bound on the composition of its events is its price. Estimators that run a
step receive a handle instead of their accountant. Its `charge` adds no charge, but checks that the
release was planned, and that it is made once.
"""

import hashlib
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from skdp._version import __version__
from skdp.accounting._bounds import get_epsilon
from skdp.accounting._composition import claimed_price, is_proved
from skdp.accounting._events import ApproximateDP, Composed, Event, Gaussian, PureDP, leaves
from skdp.accounting._laws import group_event
from skdp.exceptions import BudgetExceededError
from skdp.ledger._state import Charge, LedgerConfig, NotCopied
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import check_delta, check_epsilon
from skdp.utils._values import FrozenValue, checked


@dataclass(frozen=True)
class PlannedCharge(FrozenValue):
    """One release of a plan.

    Parameters
    ----------
    name : str
        The step that makes it.
    event : Event
        What it is planned to do, or `ApproximateDP` (or `PureDP`) of `epsilon` and `delta`,
        which stands for anything that is calibrated to them.
    epsilon, delta : float
        What the step is calibrated to, for one row.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> from skdp.ledger import PlannedCharge
    >>> planned = PlannedCharge("model", Gaussian(2.0), 2.0, 1e-5)
    >>> planned.covers(Gaussian(3.0), "add_remove"), planned.covers(Gaussian(1.0), "add_remove")
    (True, False)
    """

    name: str
    event: object
    epsilon: float = checked(check_epsilon)
    delta: float = checked(check_delta, default=0.0)

    @property
    def exact(self) -> bool:
        """Whether the event is what the step does, and not a stand-in for it."""
        return not isinstance(self.event, ApproximateDP | PureDP)

    def covers(self, event: Event, relation: str) -> bool:
        """Return True if a release costs at most what is planned, at every delta.

        It does if the events of the release are among the planned ones; if both are Gaussians
        alone, which together cost what one Gaussian costs, and the release has the more noise;
        and if a stand-in is planned whose (epsilon, delta) the release satisfies.

        Parameters
        ----------
        event : Event
            What is to be released.
        relation : {"add_remove", "replace_one"}
            What neighboring tables are.

        Returns
        -------
        bool
            Whether it is covered.
        """
        requested_events = leaves(event)
        planned_events = leaves(self.event)
        if all(n <= planned_events.get(part, 0) for part, n in requested_events.items()):
            return True
        requested = _precision(requested_events)
        planned = _precision(planned_events)
        if requested is not None and planned is not None:
            return requested <= planned
        delta = getattr(self.event, "delta", 0.0)
        return not self.exact and is_proved(event, self.event.epsilon, delta, relation)

    def price(
        self, event: Event, epsilon: float | None, delta: float | None, config: LedgerConfig
    ) -> tuple[float, float]:
        """Return the (epsilon, delta) of a covered release alone, for the unit of the config.

        Parameters
        ----------
        event : Event
            What is to be released.
        epsilon, delta : float or None
            What the release is calibrated to; None takes what was planned.
        config : LedgerConfig
            Of the accountant.

        Returns
        -------
        (float, float)
            Epsilon and delta for the unit.

        Raises
        ------
        ValueError
            If it is not covered, or costs more than it says.
        """
        if not self.covers(event, config.relation):
            raise ValueError(
                f"step {self.name!r} would release what was not planned: {event} instead "
                f"of {self.event}; a parameter or the table's shape has changed since the plan "
                "was made"
            )
        if epsilon is None:
            epsilon, delta = self.epsilon, self.delta if delta is None else delta
        delta = 0.0 if delta is None else delta
        price = claimed_price(event, epsilon, delta, config.relation)
        if config.max_rows == 1:
            return price
        cost = get_epsilon(event, delta, **config.options)
        # Several rows of an (epsilon, delta)-DP release have a larger delta than one.
        group = group_event(ApproximateDP(*price), config.max_rows)
        return (cost, delta) if cost < math.inf else (group.epsilon, group.delta)


def _precision(parts):
    """Return the sum of 1 / noise_multiplier**2, on which the cost of Gaussians depends alone.

    Dong, Roth and Su 2022, Corollary 3.3. It is exact; None where not all are Gaussians.
    """
    if not parts or not all(isinstance(part, Gaussian) for part in parts):
        return None
    return sum(count / Fraction(part.noise_multiplier) ** 2 for part, count in parts.items())


def covering_gaussian(events):
    """Return one Gaussian that covers each of some events which differ by rounding alone.

    Parameters
    ----------
    events : sequence of Event
        What a release is in different circumstances.

    Returns
    -------
    Gaussian or None
        Of a noise multiplier smaller by a relative 1e-9, None if an event is not of Gaussians
        alone, or if the events differ by more.
    """
    precisions = [_precision(leaves(event)) for event in events]
    if None in precisions or max(precisions) > min(precisions) * (1 + Fraction(1, 10**9)):
        return None
    return Gaussian((1 - 1e-9) / math.sqrt(max(precisions)))


def plan_event(plan: Sequence[PlannedCharge]) -> Event:
    """Return the event of a whole plan.

    Parameters
    ----------
    plan : sequence of PlannedCharge
        The releases of the plan.

    Returns
    -------
    Composed
        What they cost together.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, get_epsilon
    >>> from skdp.ledger import PlannedCharge, plan_event
    >>> plan = [PlannedCharge(name, Gaussian(4.0), 2.0, 1e-5) for name in ("scaler", "model")]
    >>> round(get_epsilon(plan_event(plan), 1e-5), 2)
    1.36
    """
    return Composed(tuple(step.event for step in plan))


def _describe_plan(steps, charge):
    whole = f"part of a plan of {steps} release{'s' * (steps > 1)}"
    if charge is None:
        return f"{whole}, not charged"
    price = f"epsilon={format_rounded_up(charge.epsilon)}, delta={format_rounded_up(charge.delta)}"
    return f"{whole} that was charged as one, ({price}) together"


class _PlannedRelease(NotCopied):
    """One release of a plan, to be used instead of an estimator's accountant.

    A subclass has what is `planned`, the `config`, and `_paid(price, event, label, seeded)`, which
    returns the charge that pays for it.
    """

    def charge(
        self,
        event: Event,
        *,
        label: str = "",
        epsilon: float | None = None,
        delta: float | None = None,
        seeded: bool = False,
    ) -> Charge:
        """Make the release; the parameters are those of `PrivacyAccountant.charge`.

        Parameters
        ----------
        event : Event
            What is to be released.
        label : str, default=""
            Who releases it.
        epsilon, delta : float, default=None
            What the release is calibrated to; None takes what was planned.
        seeded : bool, default=False
            Whether its noise can be reproduced.

        Returns
        -------
        Charge
            This release and its own price, with the position and hash of the charge that pays.

        Raises
        ------
        ValueError
            If the release is not covered by what was planned.
        BudgetExceededError
            If an allowance was used before, or the budget cannot pay for another round.
        LedgerError
            If another round must be charged and the ledger cannot be used.
        """
        price = self.planned.price(event, epsilon, delta, self.config)
        paid = self._paid(price, event, label, seeded)
        return replace(paid, label=label, event=event, epsilon=price[0], delta=price[1])


class Allowance(_PlannedRelease):
    """A planned release that is already paid for, and can be made once.

    It takes the place of an estimator's accountant where the caller has charged a whole plan.
    It opens no ledger, so it can go to other processes; send one copy only. A second release
    is refused, also in a clone of the estimator.

    Parameters
    ----------
    planned : PlannedCharge
        The release.
    config : LedgerConfig
        What the accountant protects that was charged; see `skdp.base.terms_of`.
    plan_charge : Charge or None
        The charge that covers the plan, None if nothing was charged.
    steps : int, default=1
        How many releases the plan has.
    """

    def __init__(
        self,
        planned: PlannedCharge,
        config: LedgerConfig,
        plan_charge: Charge | None,
        steps: int = 1,
    ):
        self.planned = planned
        self.config = config
        self.plan_charge = plan_charge
        self.steps = steps
        # Taking the last element is atomic: of two threads one finds the list empty.
        self._left = [True]

    @property
    def plan(self) -> str:
        """Description of the plan and its cost."""
        return _describe_plan(self.steps, self.plan_charge)

    def _paid(self, price, event, label, seeded):
        try:
            self._left.pop()
        except IndexError:
            total = (self.planned.epsilon, self.planned.delta)
            raise BudgetExceededError(price, (0.0, 0.0), total) from None
        paid = self.plan_charge or Charge(label, event, *price, seeded, "", "")
        return replace(paid, seeded=bool(seeded), version=__version__)

    def __repr__(self):
        state = "unused" if self._left else "used"
        return f"Allowance({self.planned.name!r}, {state})"


def _check_plan(planned, name):
    if not planned:
        raise ValueError("a plan must have a step")
    return tuple(planned)


@dataclass(frozen=True)
class Reservation(NotCopied, FrozenValue):
    """A plan whose every round is charged to an accountant when its first step runs.

    A round is one run of all steps. A step that runs draws on a round that was charged and in
    which it has not run yet; if there is none, it charges a new round, for the whole plan. So
    whatever runs, however often, in whatever process and order, is part of as many whole plans
    as the ledger has charged: r rounds, in which no step ran more than r times.

    Copies and pickles stand for the same reservation. Nothing is charged by making one.

    Parameters
    ----------
    accountant : PrivacyAccountant
        Which is charged.
    planned : tuple of PlannedCharge
        The plan.
    epsilon, delta : float
        The price of a round, for the accountant's unit.
    label : str, default="plan"
        What the ledger calls a round.
    name : str, default=None
        The reservation's name, a new one by default.

    Attributes
    ----------
    steps : tuple of ReservedStep
        What estimators take as their accountant, in the plan's order.
    """

    accountant: object
    planned: tuple = checked(_check_plan)
    epsilon: float
    delta: float
    label: str = "plan"
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def event(self) -> Event:
        """The event of one run of the plan."""
        return plan_event(self.planned)

    @property
    def key(self) -> str:
        """Its name in the ledger: another plan, part, user or purpose is another one."""
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
        """How many rounds the ledger has charged."""
        return len(self.accountant._plan_runs(self).charged)

    def new_rounds(self, runs: Sequence[int]) -> int:
        """Return how many rounds will be charged if the steps run so often.

        Parameters
        ----------
        runs : sequence of int
            One number a step.

        Returns
        -------
        int
        """
        before = self.accountant._plan_runs(self)
        counts = zip(before.step_counts, runs, strict=True)
        n_needed = max(count + more for count, more in counts)
        return max(0, n_needed - len(before.charged))

    def __repr__(self):
        return f"Reservation({self.label!r}, {len(self.planned)} steps, {self.name[:8]})"


@dataclass(frozen=True)
class ReservedStep(_PlannedRelease, FrozenValue):
    """One step of a reservation, to be used instead of an estimator's accountant.

    Parameters
    ----------
    reservation : Reservation
    index : int
        Which step, from 0.
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

    def _paid(self, price, event, label, seeded):
        """Reuse a run of the plan that is charged, or charge a new one."""
        reservation = self.reservation
        accountant = self.reservation.accountant
        step = f"{self.planned.name} ({label})" if label else self.planned.name
        label_of_run = f"{reservation.label}, from {step}"
        request = accountant._request(reservation.event, label_of_run, seeded)
        entry = accountant._request(event, step, seeded)
        place = {"name": reservation.key, "step": self.index, "steps": len(reservation.planned)}
        return accountant._charge_step(
            request, reservation.epsilon, reservation.delta, place, entry
        )

    def __repr__(self):
        return f"ReservedStep({self.planned.name!r}, {self.reservation!r})"
