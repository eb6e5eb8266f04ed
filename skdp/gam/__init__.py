"""Additive models: one curve a column, learnt privately within one budget."""

from skdp.gam._classifier import DPAdditiveClassifier
from skdp.gam._regressor import DPAdditiveRegressor
from skdp.gam._shapes import ShapeFunction

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor", "ShapeFunction"]
