"""Additive models: one curve a column, learned privately within one budget."""

from skdp.gam._models import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.gam._shapes import ShapeFunction

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor", "ShapeFunction"]
