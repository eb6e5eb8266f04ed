"""Every mechanism keeps the protocol of its kind."""

import inspect

import pytest

from skdp import mechanisms
from skdp.mechanisms._plan import Mechanism, Plan

KINDS = [kind for name in mechanisms.__all__ if inspect.isclass(kind := getattr(mechanisms, name))]
# They choose, answer, stand for others or release nothing: no noise is added to a vector.
WITHOUT_A_VECTOR = {
    *("ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"),
    *("JointMechanism", "NoRelease", "RandomizedResponse"),
}


def missing(kind):
    """Return what the protocol asks of a mechanism, and its class neither has nor is given."""
    asked = {*inspect.get_annotations(Plan)}
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
