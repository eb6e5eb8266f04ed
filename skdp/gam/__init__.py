"""Additive models with one private shape function per column, fitted within one budget."""

from skdp.gam._explanation import Explanation
from skdp.gam._models import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.gam._shapes import ShapeFunction

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor", "Explanation", "ShapeFunction"]
