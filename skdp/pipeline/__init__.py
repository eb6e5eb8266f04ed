"""Pipelines: what their steps learn, what they cost, and one budget for all of them."""

from skdp.pipeline._check import PipelineCheck as PipelineCheck
from skdp.pipeline._check import check_pipeline as check_pipeline
from skdp.pipeline._kinds import step_kind as step_kind
from skdp.pipeline._planning import PipelinePlan as PipelinePlan
from skdp.pipeline._planning import plan_pipeline as plan_pipeline
from skdp.pipeline._planning import planned_charge as planned_charge
from skdp.pipeline._split import joint_scale as joint_scale
from skdp.pipeline._split import split_budget as split_budget
from skdp.pipeline._split import tabular_pipeline as tabular_pipeline
from skdp.pipeline._table_vectorizer import DPTableVectorizer as DPTableVectorizer
