"""Every mechanism keeps the protocol of its kind."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from skdp import mechanisms
from skdp.mechanisms._plan import Mechanism, MechanismPlan

KINDS = [kind for kind in vars(mechanisms).values() if inspect.isclass(kind)]
# They choose, answer, stand for others or release nothing: no noise is added to a vector.
WITHOUT_A_VECTOR = {
    *("ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"),
    *("JointMechanism", "NoRelease", "RandomizedResponse"),
}


def missing(kind):
    """Return what the protocol asks of a mechanism, and its class neither has nor is given."""
    asked = {*inspect.get_annotations(Mechanism)}
    if kind.__name__ not in WITHOUT_A_VECTOR:
        asked |= {name for name in vars(Mechanism) if not name.startswith("_")}
    return sorted(asked - {*dir(kind), *inspect.signature(kind).parameters})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_mechanism_keeps_the_protocol(kind):
    assert missing(kind) == []


def test_what_is_missing_is_named():
    class Silent:
        def __init__(self, epsilon, delta, scale, sensitivity, event):
            pass

        def release(self, values, *, random_state=None):
            return values

    assert missing(Silent) == ["check_size", "deviation", "name"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Whole(MechanismPlan):
    mechanism: object


@dataclass(frozen=True, kw_only=True, eq=False)
class Part(Whole):
    size: int = 1


@dataclass(frozen=True, kw_only=True)
class Compared(Part):
    more: int = 2


def test_subclasses_of_a_plan_are_frozen_dataclasses():
    plan = Compared(mechanism=mechanisms.LaplaceMechanism(1.0, 2.0), size=3)
    assert (plan.epsilon, plan.size, plan.more) == (1.0, 3, 2)
    assert pickle.loads(pickle.dumps(plan)) == plan != replace(plan, size=4)
    part = Part(mechanism=plan.mechanism)
    assert part == part != replace(part) and hash(part) == hash(part)
    with pytest.raises(FrozenInstanceError):
        part.size = 2
    with pytest.raises(TypeError, match="positional"):
        Part(plan.mechanism)
