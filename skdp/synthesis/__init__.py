"""Private synthetic tables: rows drawn from a model that was fitted to noisy tables of counts."""

from skdp.synthesis._evaluation import SyntheticEvaluation, evaluate_synthetic
from skdp.synthesis._released_table import ReleasedTable
from skdp.synthesis._report import SynthesisReport
from skdp.synthesis._table_synthesizer import DPTableSynthesizer

__all__ = [
    "DPTableSynthesizer",
    "ReleasedTable",
    "SynthesisReport",
    "SyntheticEvaluation",
    "evaluate_synthetic",
]
