"""Hyperparameter search and cross-validation inside a privacy budget."""

from skdp.model_selection._scores import BoundedScore, bounded_score
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = ["BoundedScore", "DPGridSearchCV", "DPRandomizedSearchCV", "bounded_score"]
