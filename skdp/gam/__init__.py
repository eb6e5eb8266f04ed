"""Additive models: one curve a column, learnt privately within one budget."""

from skdp.gam._models import DPAdditiveClassifier as DPAdditiveClassifier
from skdp.gam._models import DPAdditiveRegressor as DPAdditiveRegressor
from skdp.gam._shapes import ShapeFunction as ShapeFunction
