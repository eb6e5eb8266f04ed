"""Pipelines: what their steps learn, what they cost, and one budget for all of them."""

from skdp.pipeline._kinds import step_kind
from skdp.pipeline._planning import PipelinePlan, joint_scale, plan_pipeline, planned_charge

__all__ = ["PipelinePlan", "joint_scale", "plan_pipeline", "planned_charge", "step_kind"]
