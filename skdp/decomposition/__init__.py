"""Decompositions with differential privacy."""

from skdp.decomposition._pca import DPPCA as DPPCA
