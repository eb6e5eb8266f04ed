"""Clustering with differential privacy."""

from skdp.cluster._kmeans import DPKMeans as DPKMeans
