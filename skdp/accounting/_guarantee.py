"""The guarantee of a release: epsilon, delta, and the relation between neighboring tables."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

from skdp.accounting._events import ApproximateDP, Event, PureDP
from skdp.utils import _validation as checks
from skdp.utils._types import Relation, Unit
from skdp.utils._values import FrozenValue, checked

UNITS = ("row", "person", "group")


def _event_at(epsilon: float, delta: float) -> Event:
    """Return the event of any release that is (epsilon, delta)-DP."""
    if delta:
        return ApproximateDP(epsilon, delta)
    return PureDP(epsilon)


@dataclass(frozen=True)
class PrivacyParams(FrozenValue):
    """A valid pair of epsilon and delta."""

    epsilon: float = checked(checks.check_epsilon)
    delta: float = checked(checks.check_delta)

    @property
    def params(self) -> tuple[float, float]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    @property
    def event(self) -> Event:
        """The event of any release that is (epsilon, delta)-DP."""
        return _event_at(self.epsilon, self.delta)


@dataclass(frozen=True, kw_only=True)
class Neighbors(FrozenValue):
    """The relation between neighboring tables and the privacy unit.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The change of a row: it is removed (and contributes nothing), or its values are replaced.
    unit : {"row", "person", "group"}, default="row"
        The rows that change: one row; all rows of a person, whose weights add up to the weight of
        one row; or at most `max_rows` rows of weight 1.
    max_rows : int, default=1
        The largest number of rows of a group; 1 for other units.

    Raises
    ------
    ValueError
        If a parameter is invalid, or `max_rows` is given for a unit other than "group".

    Examples
    --------
    >>> from skdp.accounting import Neighbors
    >>> Neighbors(relation="replace_one").sensitivity_factor
    2
    """

    relation: Relation = checked(checks.check_relation, default="add_remove")
    unit: Unit = checked(checks.check_choice, default="row", choices=UNITS)
    max_rows: int = checked(checks.check_integer, default=1, low=1)

    def __post_init__(self):
        super().__post_init__()
        if self.unit != "group" and self.max_rows != 1:
            raise ValueError(f"max_rows={self.max_rows} needs unit='group', got unit={self.unit!r}")

    @property
    def sensitivity_factor(self) -> int:
        """The factor on the sensitivity: 1 under "add_remove", 2 under "replace_one".

        If one row or person changes, a sum changes by at most this number of rows' contributions.
        """
        if self.relation == "add_remove":
            return 1
        return 2

    @property
    def per_row(self) -> Self:
        """The neighbors for a single row if the unit is a group, else unchanged."""
        if self.unit == "group":
            return replace(self, unit="row", max_rows=1)
        return self


@dataclass(frozen=True, kw_only=True)
class Guarantee(FrozenValue):
    """The guarantee that a plan must satisfy.

    Parameters
    ----------
    epsilon : float
        The epsilon, at least 1e-100.
    delta : float, default=0.0
        The delta: 0, or at least 1e-100 and below 1.
    neighbors : Neighbors, default=Neighbors()
        The relation between neighboring tables and the privacy unit.
    prefers_gaussian : bool, default=False
        True if only Gaussian releases compose without loss: in a ledger with composition="gdp",
        and for groups of rows. A plan that could choose candidates by the exponential mechanism
        then chooses them by scores with Gaussian noise.

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.accounting import Guarantee
    >>> from skdp.base import TableShape
    >>> scaler = DPStandardScaler(bounds=(0, 1))
    >>> scaler.plan_fit(TableShape(n_rows=1000, n_columns=3), Guarantee(epsilon=0.5)).event
    Laplace(epsilon=0.5)
    """

    epsilon: float = checked(checks.check_epsilon)
    delta: float = checked(checks.check_delta, default=0.0)
    neighbors: Neighbors = field(default_factory=Neighbors)
    prefers_gaussian: bool = field(default=False, repr=False)

    @property
    def event(self) -> Event:
        """The event of any release that satisfies the guarantee for its privacy unit."""
        return _event_at(self.epsilon, self.delta)

    @property
    def relation(self) -> Relation:
        """The relation between neighboring tables."""
        return self.neighbors.relation

    @property
    def per_row(self) -> "Guarantee":
        """The guarantee for one row that implies this guarantee for a group of rows.

        For k rows, (epsilon / k, d) implies (epsilon, d (e^epsilon - 1) / (e^(epsilon / k) - 1)).
        """
        epsilon = self.epsilon
        delta = self.delta
        k = self.neighbors.max_rows
        if k > 1:
            if delta:
                # With a larger epsilon for the group, the delta for a row would underflow.
                epsilon = min(epsilon, 200.0)
            epsilon = math.nextafter(epsilon / k, 0.0)
            row_growth = math.expm1(min(epsilon, 200.0))
            group_growth = math.expm1(min(k * epsilon, 200.0))
            delta *= row_growth / group_growth * (1.0 - 1e-12)
        return Guarantee(
            epsilon=epsilon,
            delta=delta,
            neighbors=self.neighbors.per_row,
            prefers_gaussian=self.prefers_gaussian,
        )


def split_epsilon(epsilon: float, fraction: float) -> tuple[float, float]:
    """Return two numbers whose exact sum is at most epsilon.

    Parameters
    ----------
    epsilon : float
    fraction : float in (0, 1)
        Ratio of the first number to epsilon.

    Returns
    -------
    tuple of (float, float)
    """
    first = fraction * epsilon
    rest = epsilon - first
    while Fraction(first) + Fraction(rest) > Fraction(epsilon):
        rest = math.nextafter(rest, 0.0)
    return first, rest


def split_guarantee(guarantee: Guarantee, fraction: float) -> list[Guarantee]:
    """Return two guarantees that compose to one; the first has the given fraction of its budget."""
    epsilons = split_epsilon(guarantee.epsilon, fraction)
    deltas = split_epsilon(guarantee.delta, fraction)
    return [replace(guarantee, epsilon=epsilons[i], delta=deltas[i]) for i in (0, 1)]
