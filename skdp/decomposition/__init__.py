"""Decompositions with differential privacy."""

from skdp.decomposition._pca import DPPCA

__all__ = ["DPPCA"]
