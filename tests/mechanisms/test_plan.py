"""Every mechanism keeps the protocol of its kind."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from skdp import mechanisms
from skdp.accounting import Composed, Guarantee
from skdp.mechanisms._plan import Mechanism, Plan, join_plans, plan_release

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


def test_a_plan_is_a_frozen_value():
    plan = plan_release(mechanisms.LaplaceMechanism(1.0, 2.0), print, size=3)
    assert pickle.loads(pickle.dumps(plan)) == plan != replace(plan, epsilon=0.5)
    # Plans with the same releases are equal, whatever function makes them.
    assert plan == replace(plan, run=max) and hash(plan) == hash(replace(plan, run=max))
    with pytest.raises(FrozenInstanceError):
        plan.scale = 2.0
    with pytest.raises(TypeError, match="positional"):
        Plan("a sum")


def test_a_plan_of_one_release_has_the_cost_of_its_mechanism():
    mechanism = mechanisms.LaplaceMechanism(1.0, 2.0)
    plan = plan_release(mechanism, print, stage_name="a sum", size=3)
    assert (plan.event, plan.epsilon, plan.delta) == (mechanism.event, 1.0, 0.0)
    assert (plan.scale, plan.sensitivity, plan.run) == (mechanism.scale, 2.0, print)
    assert [(stage.name, stage.event) for stage in plan.stages] == [("a sum", mechanism.event)]
    charged = plan_release(mechanism, print, guarantee=Guarantee(epsilon=3.0, delta=1e-6))
    assert (charged.epsilon, charged.delta, charged.event) == (3.0, 1e-6, mechanism.event)
    with pytest.raises(FrozenInstanceError):
        plan.run = None


def test_a_plan_refuses_values_for_which_no_noise_can_be_drawn():
    mechanism = mechanisms.LaplaceMechanism(1e-13, 1.0)
    assert plan_release(mechanism, print, size=1).run is print
    with pytest.raises(ValueError, match="too small for 1000 value"):
        plan_release(mechanism, print, size=1000)


def test_joined_plans_are_charged_together():
    bounds = plan_release(mechanisms.LaplaceMechanism(0.25, 1.0), print, stage_name="bounds")
    total = plan_release(mechanisms.LaplaceMechanism(0.75, 3.0), print, stage_name="a sum")
    guarantee = Guarantee(epsilon=1.0)
    joined = join_plans([None, bounds, total], guarantee)
    assert (joined.event, joined.epsilon) == (Composed((bounds.event, total.event)), 1.0)
    assert (joined.name, joined.scale) == ("Laplace mechanism, then Laplace mechanism", total.scale)
    assert [stage.name for stage in joined.stages] == ["bounds", "a sum"]
    assert joined.run is None
    assert join_plans([bounds, total], guarantee, main=bounds).scale == bounds.scale
    assert join_plans([None, total], guarantee) is total
