"""Random forests, all of whose leaves are fitted together."""

from skdp.ensemble._forest import DPRandomForestClassifier as DPRandomForestClassifier
from skdp.ensemble._forest import DPRandomForestRegressor as DPRandomForestRegressor
