"""Naive Bayes classifiers fitted to private statistics of each column by class."""

from skdp.naive_bayes._gaussian_nb import DPGaussianNB
from skdp.naive_bayes._histogram_nb import DPHistogramNB

__all__ = ["DPGaussianNB", "DPHistogramNB"]
