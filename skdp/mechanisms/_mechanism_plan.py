"""Plans that cost what one mechanism costs."""

from skdp.mechanisms._joint import JointMechanism

__all__ = ["MechanismPlan", "one_charge"]


class MechanismPlan:
    """A plan whose price and noise are those of its `mechanism`; see `Plan`.

    Attributes
    ----------
    mechanism : plan
        What is charged.
    n_features_out : int or None
        How many columns a transformer makes; None where that is learnt.
    sparse_output : bool
        Whether a transformer makes sparse matrices.
    """

    n_features_out = None
    sparse_output = False

    @property
    def event(self):
        return self.mechanism.event

    @property
    def epsilon(self):
        return self.mechanism.epsilon

    @property
    def delta(self):
        return self.mechanism.delta

    @property
    def name(self):
        return self.mechanism.name

    @property
    def scale(self):
        return self.mechanism.scale

    @property
    def sensitivity(self):
        return self.mechanism.sensitivity


def one_charge(parts, guarantee):
    """Return the only one of some mechanisms, or all of them as one.

    Parameters
    ----------
    parts : sequence of plans or None
        In the order in which they run; None where there is none.
    guarantee : Guarantee
        What they were calibrated to, together.

    Returns
    -------
    plan
    """
    parts = tuple(part for part in parts if part is not None)
    if len(parts) == 1:
        return parts[0]
    return JointMechanism(parts, guarantee.epsilon, guarantee.delta)
