"""Several releases of one fit, charged together."""

from dataclasses import dataclass

from skdp.accounting import Composed, Event
from skdp.utils._validation import check_privacy_parameters

__all__ = ["JointMechanism"]


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
