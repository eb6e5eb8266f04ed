"""What a release must meet: a price, and who may change between two tables."""

from dataclasses import dataclass, field

from skdp.utils._validation import RELATIONS, check_choice, check_integer, check_privacy_parameters

UNITS = ("row", "person", "group")


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Which two tables are neighbours: who may change, and how.

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
    >>> from skdp.accounting import Neighbours
    >>> Neighbours(relation="replace_one").rows_moved
    2
    """

    relation: str = "add_remove"
    unit: str = "row"
    max_rows: int = 1

    def __post_init__(self):
        check_choice(self.relation, "relation", RELATIONS)
        check_choice(self.unit, "unit", UNITS)
        vars(self).update(max_rows=check_integer(self.max_rows, "max_rows", 1))
        if self.unit != "group" and self.max_rows != 1:
            raise ValueError("max_rows goes with unit='group'")

    @property
    def rows_moved(self) -> int:
        """By how many rows' contributions a sum moves where a row, or a person, changes: 1 or 2."""
        return 1 if self.relation == "add_remove" else 2


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a plan must meet.

    Parameters
    ----------
    epsilon : float
        At least 1e-100.
    delta : float, default=0.0
        0, or from 1e-100 to below 1.
    neighbours : Neighbours, default=Neighbours()
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

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = field(default_factory=Neighbours)

    def __post_init__(self):
        epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
        vars(self).update(epsilon=epsilon, delta=delta)

    @property
    def relation(self) -> str:
        """The relation of its neighbours."""
        return self.neighbours.relation
