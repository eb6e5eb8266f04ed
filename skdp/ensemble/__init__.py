"""Random forests with all leaves fitted together."""

from skdp.ensemble._forest import DPRandomForestClassifier, DPRandomForestRegressor

__all__ = ["DPRandomForestClassifier", "DPRandomForestRegressor"]
