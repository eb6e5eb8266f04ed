"""Random forests, all of whose leaves are fitted together."""

from skdp.ensemble._forest import DPRandomForestClassifier, DPRandomForestRegressor

__all__ = ["DPRandomForestClassifier", "DPRandomForestRegressor"]
