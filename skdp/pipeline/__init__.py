"""Pipelines: checks of their steps, their privacy cost, and one budget for all steps."""

from skdp.pipeline._check import PipelineCheck, check_pipeline
from skdp.pipeline._kinds import step_kind
from skdp.pipeline._planning import PipelinePlan, plan_pipeline, planned_charge
from skdp.pipeline._split import joint_scale, split_budget, tabular_pipeline
from skdp.pipeline._table_vectorizer import DPTableVectorizer

__all__ = [
    "DPTableVectorizer",
    "PipelineCheck",
    "PipelinePlan",
    "check_pipeline",
    "joint_scale",
    "plan_pipeline",
    "planned_charge",
    "split_budget",
    "step_kind",
    "tabular_pipeline",
]
