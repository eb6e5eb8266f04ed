"""The guarantee of a release: epsilon and delta, and which tables are neighbors."""

import math
from dataclasses import dataclass, field, replace

from skdp.accounting._events import ApproximateDP, Event, PureDP
from skdp.utils import _validation as checks
from skdp.utils._values import FrozenValue, checked

UNITS = ("row", "person", "group")


@dataclass(frozen=True)
class PrivacyParams(FrozenValue):
    """An epsilon and a delta that a budget can be made of."""

    epsilon: float = checked(checks.check_epsilon)
    delta: float = checked(checks.check_delta)

    @property
    def params(self) -> tuple[float, float]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    @property
    def event(self) -> Event:
        """That of anything that costs no more."""
        return ApproximateDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Neighbors(FrozenValue):
    """Which two tables are neighbors: who may change, and how.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}, default="add_remove"
        Whether a row is there or counts nowhere, or has other values.
    unit : {"row", "person", "group"}, default="row"
        Whose rows change: a row by itself; all rows of a person, however many they are, which
        count together as one; or at most `max_rows` rows that count one each.
    max_rows : int, default=1
        How many rows of a unit a table holds at most.

    Raises
    ------
    ValueError
        If a parameter is not as described, or another unit than a group has a `max_rows`.

    Examples
    --------
    >>> from skdp.accounting import Neighbors
    >>> Neighbors(relation="replace_one").sensitivity_factor
    2
    """

    relation: str = checked(checks.check_relation, default="add_remove")
    unit: str = checked(checks.check_choice, default="row", choices=UNITS)
    max_rows: int = checked(checks.check_integer, default=1, low=1)

    def __post_init__(self):
        super().__post_init__()
        if self.unit != "group" and self.max_rows != 1:
            raise ValueError("max_rows goes with unit='group'")

    @property
    def sensitivity_factor(self) -> int:
        """By how many rows' contributions a sum moves where a row, or a person, changes: 1 or 2."""
        return 1 if self.relation == "add_remove" else 2

    @property
    def options(self) -> dict:
        """What functions of events take of it: the relation, and how many rows change together."""
        return {"relation": self.relation, "group_size": self.max_rows}

    @property
    def per_row(self) -> "Neighbors":
        """Those of a row alone, where these are of a group of rows."""
        return replace(self, unit="row", max_rows=1) if self.unit == "group" else self


@dataclass(frozen=True, kw_only=True)
class Guarantee(FrozenValue):
    """What a plan must meet.

    Parameters
    ----------
    epsilon : float
        At least 1e-100.
    delta : float, default=0.0
        0, or from 1e-100 to below 1.
    neighbors : Neighbors, default=Neighbors()
        Under which tables.

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

    event = PrivacyParams.event

    @property
    def relation(self) -> str:
        """The relation of its neighbors."""
        return self.neighbors.relation

    @property
    def per_row(self) -> "Guarantee":
        """What a plan for one row must meet, whatever it does, to meet this for a group of rows.

        Of k rows (epsilon / k, d) becomes (epsilon, d (e^epsilon - 1) / (e^(epsilon / k) - 1)).
        """
        epsilon = self.epsilon
        delta = self.delta
        k = self.neighbors.max_rows
        if k > 1:
            # Of a larger epsilon of the group a row's delta would hardly be a number.
            epsilon = math.nextafter(min(epsilon, 200.0 if delta else math.inf) / k, 0.0)
            one, all_ = (math.expm1(min(each, 200.0)) for each in (epsilon, k * epsilon))
            delta *= one / all_ * (1.0 - 1e-12)
        return Guarantee(epsilon=epsilon, delta=delta, neighbors=self.neighbors.per_row)
