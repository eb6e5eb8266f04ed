"""What a fit is that learns nothing from the data."""

from dataclasses import dataclass
from typing import ClassVar

from skdp.accounting import Composed, Event

__all__ = ["NoRelease"]


@dataclass(frozen=True)
class NoRelease:
    """The mechanism of a fit whose outcome follows from public parameters alone.

    It is never charged; a privacy statement describes it with an epsilon of 0.

    Examples
    --------
    >>> from skdp.mechanisms import NoRelease
    >>> NoRelease().epsilon
    0.0
    """

    name: ClassVar[str] = "none: nothing is computed from the data"
    epsilon: ClassVar[float] = 0.0
    delta: ClassVar[float] = 0.0
    scale: ClassVar[float] = 0.0
    sensitivity: ClassVar[float] = 0.0

    @property
    def event(self) -> Event:
        """What it costs: an empty composition."""
        return Composed(())
