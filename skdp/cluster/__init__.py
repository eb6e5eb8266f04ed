"""Clustering with differential privacy."""

from skdp.cluster._kmeans import DPKMeans

__all__ = ["DPKMeans"]
