"""Several releases of one fit, charged together, and none."""

from dataclasses import dataclass
from typing import ClassVar

from skdp.accounting import Composed, Event
from skdp.utils._validation import check_privacy_parameters

__all__ = ["JointMechanism", "NoRelease"]


@dataclass(frozen=True)
class JointMechanism:
    """Several mechanisms that one fit runs one after another on the same rows.

    It goes to the accountant as one charge. The parameters of every part are fixed before the
    first of them runs, so that the tightest bound on their composition applies.

    Parameters
    ----------
    parts : tuple of mechanisms
        In the order in which they run. The last one makes the release that a privacy
        statement's noise scale and sensitivity describe.
    epsilon, delta : float
        What the parts together were calibrated to; the accountant refuses an event that costs
        more.

    Attributes
    ----------
    event : skdp.accounting.Composed
        What all parts cost together.

    Examples
    --------
    >>> from skdp.mechanisms import JointMechanism, LaplaceMechanism
    >>> bounds = LaplaceMechanism(0.25, sensitivity=1.0)
    >>> total = LaplaceMechanism(0.75, sensitivity=3.0)
    >>> round(JointMechanism((bounds, total), epsilon=1.0).scale, 6)
    4.0
    """

    parts: tuple
    epsilon: float
    delta: float = 0.0

    def __post_init__(self):
        if not self.parts:
            raise ValueError("parts must not be empty")
        check_privacy_parameters(self.epsilon, self.delta)

    @property
    def event(self) -> Event:
        """What all parts cost together."""
        return Composed(tuple(part.event for part in self.parts))

    @property
    def name(self) -> str:
        """The parts' names, in order."""
        return ", then ".join(part.name for part in self.parts)

    @property
    def scale(self) -> float:
        """The noise scale of the last part."""
        return self.parts[-1].scale

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the last part."""
        return self.parts[-1].sensitivity


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
