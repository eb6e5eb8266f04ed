"""Naive Bayes: one release of what each class looks like, column by column."""

from skdp.naive_bayes._gaussian_nb import DPGaussianNB
from skdp.naive_bayes._histogram_nb import DPHistogramNB

__all__ = ["DPGaussianNB", "DPHistogramNB"]
