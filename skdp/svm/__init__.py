"""Support vector machines with differential privacy."""

from skdp.svm._linear_svc import DPLinearSVC

__all__ = ["DPLinearSVC"]
