"""Naive Bayes: one release of what each class looks like, column by column."""

from skdp.naive_bayes._gaussian_nb import DPGaussianNB as DPGaussianNB
from skdp.naive_bayes._histogram_nb import DPHistogramNB as DPHistogramNB
